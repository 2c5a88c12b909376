# SPDX-License-Identifier: MIT
"""gdal_hsi_cluster, compared with Lloyd's algorithm in numpy and scikit-learn from the same start; its outputs, and
refused input."""

import json

import numpy as np
import pytest
from osgeo import gdal

from conftest import assert_untouched, cube, envi_header, first_error, open_band, read, run, succeed, write_scene

WAVELENGTHS = [400 + 10 * b for b in range(12)]
HOLES = [(0, 0), (7, 9), (29, 39)]


def cluster(*args):
    return run("gdal_hsi_cluster", *args)


def made(**options):
    data = cube(**options).astype("f4")
    data[:, 0, 0] = 0
    data[3, 7, 9] = np.nan
    data[5, 29, 39] = np.inf
    return data


@pytest.fixture
def scene(tmp_path):
    return write_scene(tmp_path / "scene.img", made(), wavelengths=WAVELENGTHS)


def labels(path):
    return gdal.Open(str(path)).ReadAsArray()


def centres(path):
    table = np.genfromtxt(str(path), delimiter=",", skip_header=1)
    return table[:, -int(table.shape[1] - 2):].T


def pixels_of(path, angle=False):
    data = read(path)
    x = data.reshape(len(data), -1).T
    valid = np.isfinite(x).all(axis=1) & (x != 0).any(axis=1)
    x = x[valid]
    if angle:
        x = np.rint(x / np.sqrt((x * x).sum(axis=1))[:, None] * 2.0**40) / 2.0**40
    return x, valid


def philox(c, key):
    """Computes 10 rounds on arrays of counters."""
    c = [np.asarray(v, np.uint64) for v in np.broadcast_arrays(*c)]
    k = [key & 0xFFFFFFFF, key >> 32]
    for _ in range(10):
        a, b = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        low = np.uint64(0xFFFFFFFF)
        c = [(b >> np.uint64(32)) ^ c[1] ^ np.uint64(k[0]), b & low,
             (a >> np.uint64(32)) ^ c[3] ^ np.uint64(k[1]), a & low]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def start_of(x, numbers, k, seed=1):
    numbers = np.asarray(numbers, np.uint64)
    words = philox([np.zeros_like(numbers), np.full_like(numbers, 2 << 24), numbers & np.uint64(0xFFFFFFFF),
                    numbers >> np.uint64(32)], seed)[0]
    order = np.lexsort((numbers, words))[:16384]
    chosen, nearest = [order[0]], np.full(len(order), np.inf)
    for j in range(1, k):
        nearest = np.minimum(nearest, ((x[order] - x[chosen[-1]])**2).sum(axis=1))
        running = np.cumsum(nearest)
        u = (int(philox([[j], [3 << 24], [0], [0]], seed)[0][0]) + 0.5) / 2**32
        chosen.append(order[np.argmax(running > u * running[-1])])
    return x[chosen]


def lloyd(x, c, most, angle=False):
    c, before = c.copy(), None
    for iteration in range(1, most + 1):
        found = np.argmin(((x[:, None] - c[None])**2).sum(axis=2), axis=1)
        if before is not None and (found == before).all():
            return found, c, iteration
        before = found
        for k in range(len(c)):
            mean = x[found == k].mean(axis=0)
            c[k] = mean / np.linalg.norm(mean) if angle else mean
    return np.argmin(((x[:, None] - c[None])**2).sum(axis=2), axis=1), c, most


@pytest.mark.quick
@pytest.mark.parametrize("angle", [False, True])
@pytest.mark.parametrize("most", [100, 2])
def test_is_numpys_lloyd_from_the_same_start(scene, out, angle, most):
    x, valid = pixels_of(scene, angle)
    expected, c, iterations = lloyd(x, start_of(x, np.flatnonzero(valid), 6, 3), most, angle)
    result = succeed(cluster("-k", 6, "-seed", 3, "-json", "-iterations", most, "-distance", "angle" if angle else "euclidean",
                             "-centres", out / "c.csv", scene, out / "map.tif"))
    facts = json.loads(result.out)
    assert facts["iterations"] == iterations and facts["converged"] == (most == 100)
    assert ("still moved" in result.err) == (most == 2)
    got = labels(out / "map.tif").ravel()
    assert (got[~valid] == 0).all() and (got[valid] == expected + 1).all()
    assert facts["counts"] == list(np.bincount(expected, minlength=6))
    inertia = ((x - c[expected])**2).sum()
    assert facts["inertia"] == pytest.approx(inertia, rel=1e-9)
    if angle:
        length = np.linalg.norm(pixels_of(scene)[0], axis=1)
        c = c * np.array([length[expected == k].mean() for k in range(6)])[:, None]
    np.testing.assert_allclose(centres(out / "c.csv"), c, rtol=2e-7)


def test_is_scikit_learns(scene, out):
    clusters = pytest.importorskip("sklearn.cluster")
    x, valid = pixels_of(scene)
    begin = start_of(x, np.flatnonzero(valid), 5)
    peer = clusters.KMeans(5, init=begin, n_init=1, algorithm="lloyd", tol=0, max_iter=100).fit(x)
    facts = json.loads(succeed(cluster("-k", 5, "-json", "-centres", out / "c.csv", scene, out / "map.tif")).out)
    assert (labels(out / "map.tif").ravel()[valid] == peer.labels_ + 1).all()
    assert facts["iterations"] == peer.n_iter_
    assert facts["inertia"] == pytest.approx(peer.inertia_, rel=1e-9)
    np.testing.assert_allclose(centres(out / "c.csv"), peer.cluster_centers_, rtol=1e-7)


def test_known_spectra_are_the_start(scene, out):
    """The clusters keep their order. The spectra may have other units than the scene."""
    x, valid = pixels_of(scene)
    begin = x[[5, 400, 900]] / 1000
    library = out / "start.csv"
    rows = [",".join(["wavelength_nm", "a", "b", "c"])]
    rows += [",".join(map(repr, [float(w), *map(float, begin[:, b])])) for b, w in enumerate(WAVELENGTHS)]
    library.write_text("\n".join(rows) + "\n")
    succeed(cluster("-start", library, "-library-scale", 1000, "-centres", out / "c.csv", scene, out / "map.tif"))
    expected, c, _ = lloyd(x, begin * 1000, 100)
    assert (labels(out / "map.tif").ravel()[valid] == expected + 1).all()
    np.testing.assert_allclose(centres(out / "c.csv"), c, rtol=2e-7)
    with assert_untouched(out):
        result = cluster("-overwrite", "-k", 4, "-start", library, scene, out / "map.tif")
        assert result.code == 2 and "has 3 spectra" in first_error(result)
        result = cluster("-overwrite", "-seed", 4, "-start", library, scene, out / "map.tif")
        assert result.code == 2 and "-seed" in first_error(result)


def test_the_map_is_a_class_map(scene, out):
    succeed(cluster("-k", 3, scene, out / "map.tif"))
    dataset = gdal.Open(str(out / "map.tif"))
    band = dataset.GetRasterBand(1)
    assert band.DataType == gdal.GDT_Byte and band.GetNoDataValue() == 0
    assert band.GetCategoryNames()[1:] == ["cluster 1", "cluster 2", "cluster 3"]
    assert band.GetColorTable() is not None
    assert dataset.GetMetadataItem("HSI_CLUSTER_DISTANCE") == "euclidean"
    assert dataset.GetMetadataItem("HSI_CLUSTER_SEED") == "1"
    assert dataset.GetGeoTransform()[0] == 500000
    succeed(cluster("-k", 300, scene, out / "many.tif"))
    band = open_band(out / "many.tif")
    assert band.DataType == gdal.GDT_UInt16 and band.ReadAsArray().max() == 300
    succeed(cluster("-k", 3, "-centres", out / "c.sli", scene, out / "again.tif"))
    assert envi_header(out / "c.sli")["spectra names"] == ["cluster 1", "cluster 2", "cluster 3"]


@pytest.mark.parametrize("options", [("-threads", 3, "-tile", 16, 8), ("-memory", "2MB", "-tile", 40, 4)])
def test_same_bits(options, scene, out):
    succeed(cluster("-k", 5, "-threads", 1, "-centres", out / "a.csv", scene, out / "a.tif"))
    succeed(cluster("-k", 5, *options, "-centres", out / "b.csv", scene, out / "b.tif"))
    assert (labels(out / "a.tif") == labels(out / "b.tif")).all()
    assert (out / "a.csv").read_bytes() == (out / "b.csv").read_bytes()


def test_a_window_has_the_numbers_of_the_file(scene, out):
    x, valid = pixels_of(scene)
    inside = np.zeros((30, 40), bool)
    inside[4:20, 3:33] = True
    some = inside.ravel()[valid]
    numbers = np.flatnonzero(valid)[some]
    expected, _, _ = lloyd(x[some], start_of(x[some], numbers, 4), 100)
    succeed(cluster("-k", 4, "-srcwin", 3, 4, 30, 16, scene, out / "map.tif"))
    got = labels(out / "map.tif").ravel()
    assert (got[got > 0] == expected + 1).all()


def test_a_mask_decides_on_the_clusters_alone(scene, out):
    mask = np.zeros((1, 30, 40))
    mask[0, :, :20] = 1
    write_scene(out / "mask.tif", mask, driver="GTiff", dtype="u1")
    x, valid = pixels_of(scene)
    inside = (mask[0] > 0).ravel()[valid]
    _, c, _ = lloyd(x[inside], start_of(x[inside], np.flatnonzero(valid)[inside], 4), 100)
    expected = np.argmin(((x[:, None] - c[None])**2).sum(axis=2), axis=1) + 1
    succeed(cluster("-k", 4, "-mask", out / "mask.tif", scene, out / "map.tif"))
    assert (labels(out / "map.tif").ravel()[valid] == expected).all()
    succeed(cluster("-k", 4, "-mask", out / "mask.tif", "-mask-output", scene, out / "cut.tif"))
    cut = labels(out / "cut.tif").ravel()[valid]
    assert (cut[inside] == expected[inside]).all() and (cut[~inside] == 0).all()


def test_inertia_of_angles_close_to_their_centres(tmp_path, out):
    random = np.random.default_rng(1)
    base = np.array([.5 + .1 * np.sin(np.arange(10)), .3 + .2 * np.cos(np.arange(10) / 3)])
    for noise in (1e-4, 1e-6):
        data = base[random.integers(0, 2, 600)] * (1 + random.normal(0, noise, (600, 10)))
        path = write_scene(tmp_path / "tight.img", data.T.reshape(10, 20, 30).astype("f4"))
        facts = json.loads(succeed(cluster("-overwrite", "-k", 2, "-distance", "angle", "-json", path, out / "map.tif")).out)
        x = pixels_of(path, True)[0].astype(np.longdouble)
        label = labels(out / "map.tif").ravel()
        inertia = 0
        for k in (1, 2):
            mean = x[label == k].mean(axis=0)
            inertia += ((x[label == k] - mean / np.sqrt((mean * mean).sum()))**2).sum()
        assert facts["inertia"] == pytest.approx(float(inertia), rel=1e-9), noise


@pytest.mark.parametrize("distance", ["angle", "euclidean"])
def test_centres_of_empty_clusters_may_start_the_next_run(distance, tmp_path, out):
    data = np.ones((3, 4, 6)) * np.array([1, 2, 5])[:, None, None]
    nm = [401, 402, 403]
    path = write_scene(tmp_path / "same.img", data, wavelengths=nm)
    start = tmp_path / "start.csv"
    start.write_text("wavelength_nm,a,b,c\n401,1,1,9\n402,2,2,1\n403,5,5,1\n")
    result = succeed(cluster("-start", start, "-distance", distance, "-centres", out / "c.csv", "-json", path, out / "map.tif"))
    empty = np.array(json.loads(result.out)["counts"]) == 0
    assert empty.any() and "no pixel" in result.err
    found = centres(out / "c.csv")
    assert (found != 0).any(axis=1).all()
    if distance == "angle":  # as long as the average pixel
        np.testing.assert_allclose(np.linalg.norm(found, axis=1), np.sqrt(30), rtol=1e-6)
    succeed(cluster("-overwrite", "-start", out / "c.csv", "-distance", distance, path, out / "map.tif"))


def test_fewer_spectra_than_clusters(tmp_path, out):
    data = np.ones((3, 4, 5))
    data[:, :, 2:] = 2
    path = write_scene(tmp_path / "two.img", data)
    result = succeed(cluster("-k", 5, path, out / "map.tif"))
    assert "2 different spectra" in result.err
    assert sorted(np.unique(labels(out / "map.tif"))) == [1, 2]


@pytest.mark.quick
@pytest.mark.parametrize("args, code, words", [
    ((), 2, "number of clusters"),
    (("-k", 1), 2, "-k"),
    (("-k", 65536), 2, "-k"),
    (("-k", 3, "-iterations", 0), 2, "-iterations"),
    (("-k", 3, "-library-scale", 2), 2, "-library-scale"),
    (("-k", 3, "-distance", "cosine"), 2, "-distance"),
    (("-k", 3, "-centres", "c.txt"), 2, "-centres"),
    (("-k", 2000), 1, "2000 clusters"),
    (("-start", "absent.sli"), 1, "absent.sli"),
])
def test_refuses(args, code, words, scene, out):
    args = [out / a if a == "c.txt" else a for a in args]
    with assert_untouched(out):
        result = cluster(*args, scene, out / "map.tif")
        assert result.code == code, result.err
        assert words in first_error(result)


def test_refuses_scenes_without_spectra(tmp_path, out):
    one = write_scene(tmp_path / "one.img", np.ones((1, 4, 5)))
    nothing = write_scene(tmp_path / "nothing.img", np.zeros((4, 4, 5)))
    with assert_untouched(out):
        assert cluster("-k", 2, one, out / "map.tif").code != 0
        result = cluster("-k", 2, nothing, out / "map.tif")
        assert result.code == 1 and "valid" in first_error(result)
        assert cluster("-k", 2, "-dry-run", scene_path(tmp_path), out / "map.tif").code == 0


def scene_path(folder):
    return write_scene(folder / "plan.img", cube())
