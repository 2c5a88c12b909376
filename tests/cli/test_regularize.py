# SPDX-License-Identifier: MIT
"""gdal_hsi_regularize, compared with the documented ADMM in double precision; cleaning, labels, one band, tiles, and
refused input."""

import json

import numpy as np
import pytest
from osgeo import gdal

from conftest import UTM, assert_untouched, cube, first_error, read, run, succeed, write_utm_scene as write_scene

K, LINES, SAMPLES = 3, 22, 27


def regularize(*args):
    return run("gdal_hsi_regularize", "-device", "cpu", *args)


def legend(path):
    dataset = gdal.Open(str(path))
    dataset.GetGeoTransform()  # GDAL 3.6 reads the files next to a GeoTIFF only for this, not for names
    return dataset.GetRasterBand(1).GetCategoryNames()


def differences(n, periodic):
    d = np.zeros((n, n))
    for i in range(n if periodic else n - 1):
        d[i, i] -= 1
        d[i, (i + 1) % n] += 1
    return d


def weights(scene, periodic=False):
    """Returns the weights a of a scene (bands, lines, samples) without invalid pixels."""
    u = scene.astype(np.float64) / np.abs(scene).max()
    squares = (u @ differences(u.shape[2], periodic).T) ** 2 + (differences(u.shape[1], periodic) @ u) ** 2
    return 1 / (1 + np.sqrt(squares.sum(0)))


def field(p, a, fixed=None, periodic=False, anisotropic=False, lam=2, mu=0.05, iterations=200):
    """Returns q of the documentation, before projection: p (classes, lines, samples), fixed (lines, samples), 0 if
    free."""
    valid = np.isfinite(p).all(0)
    p = np.where(valid, p, 1 / len(p))
    dy, dx = differences(p.shape[1], periodic), differences(p.shape[2], periodic)
    ly, ey = np.linalg.eigh(dy.T @ dy)
    lx, ex = np.linalg.eigh(dx.T @ dx)
    counts_x = valid & (np.roll(valid, -1, 1)) & (np.abs(dx).sum(1) > 0)[None, :]
    counts_y = valid & (np.roll(valid, -1, 0)) & (np.abs(dy).sum(1) > 0)[:, None]
    v1, v2, v3, v4 = (p.copy() for _ in range(4))
    v5 = [np.zeros_like(p), np.zeros_like(p)]
    d1, d2, d3, d4 = (np.zeros_like(p) for _ in range(4))
    d5 = [np.zeros_like(p), np.zeros_like(p)]
    limit = lam * a / mu
    for _ in range(iterations):
        q = (v1 + d1 + v2 + d2 + v3 + d3 + v4 + d4) / 4
        if fixed is not None:
            for k in range(len(p)):
                q[k] = np.where((fixed > 0) & valid, fixed == k + 1, q[k])
        v1 = np.where(valid, (p + mu * (q - d1)) / (1 + mu), q - d1)
        v2 = np.maximum(q - d2, 0)
        v3 = q - d3 + (1 - (q - d3).sum(0)) / len(p)
        rhs = q - d4 + (v5[0] + d5[0]) @ dx + np.einsum("ij,kil->kjl", dy, v5[1] + d5[1])
        turned = np.einsum("yi,kyx,xj->kij", ey, rhs, ex) / (1 + ly[:, None] + lx[None, :])
        v4 = np.einsum("yi,kij,xj->kyx", ey, turned, ex)
        h, v = v4 @ dx.T, np.einsum("ij,kjl->kil", dy, v4)
        th, tv = h - d5[0], v - d5[1]
        ch, cv = np.where(counts_x, th, 0), np.where(counts_y, tv, 0)
        if anisotropic:
            soft = [np.sign(t) * np.maximum(np.abs(t) - limit, 0) for t in (ch, cv)]
        else:
            norm = np.hypot(ch, cv)
            factor = np.where(norm > limit, 1 - limit / np.maximum(norm, 1e-300), 0)
            soft = [factor * ch, factor * cv]
        v5 = [np.where(counts_x, soft[0], th), np.where(counts_y, soft[1], tv)]
        d1, d2, d3, d4 = d1 - (q - v1), d2 - (q - v2), d3 - (q - v3), d4 - (q - v4)
        d5 = [d5[0] - (h - v5[0]), d5[1] - (v - v5[1])]
    return np.where(valid, q, np.nan)


def simplex(q):
    """Projects every pixel on the simplex, by sorting."""
    s = -np.sort(-q, axis=0)
    excess = (np.cumsum(s, 0) - 1) / np.arange(1, len(q) + 1)[:, None, None]
    count = (s > excess).sum(0)
    threshold = np.take_along_axis(excess, np.maximum(count - 1, 0)[None], 0)
    return np.maximum(q - threshold, 0)


def probabilities(seed=1, classes=K):
    random = np.random.default_rng(seed)
    truth = (np.arange(LINES)[:, None] // 6 + np.arange(SAMPLES)[None, :] // 7) % classes
    raw = np.exp(2 * random.uniform(0, 1, (classes, LINES, SAMPLES)) + 1.0 * (np.arange(classes)[:, None, None] == truth))
    return (raw / raw.sum(0)).astype(np.float32), truth + 1


@pytest.fixture
def files(tmp_path):
    p, truth = probabilities()
    p[:, 5, 6] = np.nan
    p[1, 9, 3] = np.nan
    write_scene(tmp_path / "p.tif", p, driver="GTiff", names=["P(corn)", "P(wheat)", "P(oats)"])
    scene = cube(SAMPLES, LINES, 8, seed=4).astype(np.float32)
    write_scene(tmp_path / "scene.img", scene)
    train = np.zeros((1, LINES, SAMPLES))
    train[0, ::5, ::6] = truth[::5, ::6]
    write_scene(tmp_path / "train.tif", train, driver="GTiff", dtype="u1", nodata=0)
    return tmp_path


@pytest.mark.quick
@pytest.mark.parametrize("tv", ["isotropic", "anisotropic"])
@pytest.mark.parametrize("boundary", ["reflect", "periodic"])
@pytest.mark.parametrize("with_scene", [False, True])
def test_the_field_is_that_of_the_page(tv, boundary, with_scene, files):
    p, scene, train = read(files / "p.tif"), read(files / "scene.img"), np.nan_to_num(read(files / "train.tif")[0])
    p[:, np.isnan(p).any(0)] = np.nan
    more = ("-scene", files / "scene.img", "-labels", files / "train.tif") if with_scene else ()
    succeed(regularize("-q", "-tv", tv, "-boundary", boundary, "-map", files / "map.tif", *more, files / "p.tif",
                       files / "q.tif"))
    periodic = boundary == "periodic"
    a = weights(scene, periodic) if with_scene else np.ones((LINES, SAMPLES))
    q = field(p, a, train if with_scene else None, periodic, tv == "anisotropic")
    found, labels = read(files / "q.tif"), read(files / "map.tif")[0]
    assert np.array_equal(np.isnan(found), np.isnan(q))
    assert np.nanmax(np.abs(found - simplex(q))) < 1e-5
    invalid = np.isnan(q[0])
    two = -np.sort(-np.where(invalid, 0, q), axis=0)[:2]
    clear = ~invalid & (two[0] - two[1] > 2e-5)
    assert clear.sum() > 500 and np.array_equal(labels[clear], q.argmax(0)[clear] + 1)
    assert np.isnan(labels[invalid]).all()
    if with_scene:
        assert np.array_equal(labels[(train > 0) & ~invalid], train[(train > 0) & ~invalid])
    assert np.abs(np.nansum(found, 0)[~invalid] - 1).max() < 1e-5 and np.nanmin(found) >= 0


def test_names_travel_and_the_map_has_a_legend(files):
    succeed(regularize("-q", "-iterations", 5, "-map", files / "map.tif", files / "p.tif", files / "q.tif"))
    q = gdal.Open(str(files / "q.tif"))
    assert [q.GetRasterBand(b).GetDescription() for b in (1, 2, 3)] == ["P(corn)", "P(wheat)", "P(oats)"]
    assert legend(files / "map.tif") == ["Unclassified", "corn", "wheat", "oats"]
    assert q.GetGeoTransform() == gdal.Open(str(files / "p.tif")).GetGeoTransform()


def test_unclean_probabilities(files):
    """Negative values become 0, and sums 1; pixels with a sum of 0 or an infinity are invalid."""
    p = read(files / "p.tif").astype(np.float32)
    clean = p.copy()
    p[:, 2:8] *= 3
    p[0, 12, :9] = -0.5
    clean[0, 12, :9] = 0
    p[:, 15, 3] = [0, -1, 0]
    clean[:, 15, 3] = np.nan
    p[2, 15, 4] = np.inf
    clean[:, 15, 4] = np.nan
    clean /= clean.sum(0)
    write_scene(files / "odd.tif", p, driver="GTiff")
    write_scene(files / "clean.tif", clean, driver="GTiff")
    result = succeed(regularize("-q", "-report", files / "r.json", "-iterations", 20, files / "odd.tif", files / "a.tif"))
    off = json.loads((files / "r.json").read_text())["pixels_off_one"]
    sums = np.maximum(p, 0).sum(0)
    valid = np.isfinite(p).all(0) & (sums > 0)
    assert off == (np.abs(sums - 1)[valid] > 1e-3).sum() and f"in {off} of {valid.sum()} pixels" in result.err
    result = succeed(regularize("-q", "-iterations", 20, files / "clean.tif", files / "b.tif"))
    assert "off 1" not in result.err
    a, b = read(files / "a.tif"), read(files / "b.tif")
    assert np.array_equal(np.isnan(a), np.isnan(b)) and np.nanmax(np.abs(a - b)) < 2e-6


def test_a_single_band_and_its_complement(files):
    p = read(files / "p.tif")[:1].astype(np.float32)
    p[0, 3, 4] = 0
    p[0, 3, 5] = 1.5
    write_scene(files / "one.tif", p, driver="GTiff", names=["P(corn)"])
    result = succeed(regularize("-q", "-map", files / "map.tif", files / "one.tif", files / "q.tif"))
    assert "in 1 of" in result.err and "outside 0..1" in result.err
    clean = np.clip(p, 0, 1)
    q = simplex(field(np.concatenate([clean, 1 - clean]), np.ones((LINES, SAMPLES))))
    found, labels = read(files / "q.tif"), read(files / "map.tif")[0]
    assert found.shape == (1, LINES, SAMPLES) and np.nanmax(np.abs(found[0] - q[0])) < 1e-5
    assert np.isfinite(found[0, 3, 4])
    clear = np.isfinite(found[0]) & (np.abs(q[0] - 0.5) > 2e-5)
    assert np.array_equal(labels[clear], np.where(q[0] >= 0.5, 1, 2)[clear])
    assert np.array_equal(np.isnan(labels), np.isnan(found[0]))
    assert legend(files / "map.tif") == ["Unclassified", "corn", "other"]


def test_pixels_without_a_value_in_the_scene_have_none(files):
    scene = read(files / "scene.img").astype(np.float32)
    scene[3, 11, 12] = np.nan
    scene[:, 11, 20] = 0
    write_scene(files / "holes.img", scene)
    succeed(regularize("-q", "-iterations", 5, "-scene", files / "holes.img", files / "p.tif", files / "q.tif"))
    found = read(files / "q.tif")
    assert np.isnan(found[:, 11, 12]).all() and np.isnan(found[:, 11, 20]).all() and np.isnan(found[0]).sum() == 4
    # Bands without any value, and bands that are marked bad, are omitted.
    scene = read(files / "scene.img").astype(np.float32)
    write_scene(files / "fewer.img", np.delete(scene, [2, 6], 0))
    scene[2] = np.nan
    scene[6] = 1e6
    write_scene(files / "empty.img", scene, bbl=[1] * 6 + [0, 1])
    for name in "fewer", "empty":
        succeed(regularize("-q", "-iterations", 5, "-scene", files / (name + ".img"), files / "p.tif",
                           files / (name + ".tif")))
    assert np.array_equal(read(files / "fewer.tif"), read(files / "empty.tif"), equal_nan=True)


def test_nothing_is_smoothed_with_a_weight_of_zero(files):
    succeed(regularize("-q", "-lambda", 0, "-mu", 0.5, "-iterations", 300, files / "p.tif", files / "q.tif"))
    p, q = read(files / "p.tif"), read(files / "q.tif")
    assert np.nanmax(np.abs(np.where(np.isnan(q), np.nan, p) - q)) < 1e-3


def test_tiles_and_threads(files):
    p = np.tile(probabilities()[0], (1, 6, 6))
    write_scene(files / "large.tif", p, driver="GTiff")
    scene = np.tile(read(files / "scene.img"), (1, 6, 6)).astype(np.float32)
    write_scene(files / "large.img", scene)
    common = ("-q", "-scene", files / "large.img")
    succeed(regularize(*common, "-threads", 1, files / "large.tif", files / "whole.tif"))
    succeed(regularize(*common, "-threads", 3, files / "large.tif", files / "threads.tif"))
    succeed(regularize(*common, "-tile", 70, 60, "-report", files / "r.json", files / "large.tif", files / "tiles.tif"))
    whole = read(files / "whole.tif")
    assert np.array_equal(whole, read(files / "threads.tif"))
    assert np.abs(whole - read(files / "tiles.tif")).max() < 1e-4
    assert json.loads((files / "r.json").read_text())["mrf"]["tiles"] > 4
    result = regularize(*common, "-tile", 70, 60, "-mu", 1, files / "large.tif", files / "far.tif")
    assert result.code == 1 and "reaches too far for tiles" in first_error(result)


def test_the_scene_must_lie_where_the_probabilities_do(files):
    p, scene = files / "p.tif", read(files / "scene.img")
    place = (500000, 20, 0, 4480000, 0, -20)

    def at(name, geotransform=place, epsg=UTM):
        driver = "GTiff" if name.endswith(".tif") else "ENVI"  # its header states an SRS in any case
        return write_scene(files / name, scene, driver, geotransform=geotransform, epsg=epsg)

    elsewhere = [at("shift.img", (600000, 20, 0, 4480000, 0, -20)), at("line.img", (500000, 20, 0, 4480020, 0, -20)),
                 at("size.img", (500000, 20.01, 0, 4480000, 0, -20)), at("zone.img", epsg=32633)]
    with assert_untouched(files):
        for path in elsewhere:
            result = regularize("-q", "-scene", path, p, files / "q.tif")
            assert result.code == 1 and "has another position" in first_error(result), (path, result)
            assert str(path) in first_error(result) and str(p) in first_error(result)
            assert ("SRS" in first_error(result)) == (path == elsewhere[3])
    succeed(regularize("-q", "-iterations", 5, "-scene", files / "scene.img", p, files / "q.tif"))
    want = read(files / "q.tif")
    # A thousandth of a pixel over the whole scene is ignored, and so is a missing position.
    for path, told in ((at("near.img", (500000.01, 20, 0, 4480000, 0, -20)), False), (at("bare.img", None, None), False),
                       (at("unnamed.tif", epsg=None), True)):
        result = succeed(regularize("-q", "-overwrite", "-iterations", 5, "-scene", path, p, files / "q.tif"))
        assert np.array_equal(read(files / "q.tif"), want, equal_nan=True)
        assert ("has no SRS" in result.err) == told, result.err
    # -srcwin cuts both.
    cut = ("-q", "-iterations", 5, "-srcwin", 3, 4, 12, 11)
    succeed(regularize(*cut, "-scene", files / "scene.img", p, files / "cut.tif"))
    assert regularize(*cut, "-scene", elsewhere[0], p, files / "none.tif").code == 1


def test_dry_run(files):
    with assert_untouched(files):
        result = succeed(regularize("-dry-run", files / "p.tif", files / "q.tif"))
    assert "Random field: the whole scene at once" in result.out


@pytest.mark.quick
def test_bad_input(files):
    p, q = files / "p.tif", files / "q.tif"
    write_scene(files / "small.img", read(files / "scene.img")[:, 1:])
    train = np.zeros((1, LINES, SAMPLES))
    train[0, 3, 3] = 4
    write_scene(files / "four.tif", train, driver="GTiff", dtype="u1", nodata=0)
    write_scene(files / "classes.tif", probabilities()[1][None], driver="GTiff", dtype="u1")
    write_scene(files / "zero.tif", np.zeros((2, 5, 5)), driver="GTiff")
    with assert_untouched(files):
        for code, message, args in (
                (1, "pixels, but the probabilities have", ("-scene", files / "small.img", p, q)),
                (1, "class 4", ("-labels", files / "four.tif", p, q)),
                (1, "is probably a class map", (files / "classes.tif", q)),
                (1, "no pixel is valid", (files / "zero.tif", q)),
                (1, "none.img", ("-scene", files / "none.img", p, q)),
                (1, "q.none/x.tif", (p, files / "q.none" / "x.tif")),
                (2, "-lambda", ("-lambda", -1, p, q)),
                (2, "-mu", ("-mu", 0, p, q)),
                (2, "-iterations", ("-iterations", 0, p, q)),
                (2, "-tv", ("-tv", "both", p, q)),
                (2, "-field", ("-field", "class", p, q)),
                (2, "dst", (p,))):
            result = regularize("-q", *args)
            assert result.code == code and message in result.err, (args, result)
            assert not q.exists()
