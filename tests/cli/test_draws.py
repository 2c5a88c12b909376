# SPDX-License-Identifier: MIT
"""gdal_hsi_unmix -draws, compared with draws, noise and least squares in numpy; and whether the deviations cover the
truth."""

import itertools

import numpy as np
import pytest
from osgeo import gdal

from conftest import assert_untouched, first_error, read, run, succeed, write_scene

BANDS = 14
CLASSES = {"soil": 5, "tree": 4, "water": 1}


def philox(c, key):
    c = [np.asarray(v, np.uint64) for v in np.broadcast_arrays(*c)]
    k = [key & 0xFFFFFFFF, key >> 32]
    low = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        a, b = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [(b >> np.uint64(32)) ^ c[1] ^ np.uint64(k[0]), b & low,
             (a >> np.uint64(32)) ^ c[3] ^ np.uint64(k[1]), a & low]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def subset(sizes, wanted, draw, seed):
    words = (int(w[0]) for q in itertools.count() for w in philox([[q], [0], [draw], [0]], seed))
    first, chosen = 0, []
    for n in sizes:
        members = list(range(first, first + n))
        first += n
        if n > wanted:
            for i in range(wanted):
                j = i + (next(words) * (n - i) >> 32)
                members[i], members[j] = members[j], members[i]
            members = members[:wanted]
        chosen.append(members)
    return chosen


def noise(pixels, bands, draw, seed):
    """Returns noise as [pixel][band]."""
    q = np.arange((bands + 3) // 4)
    w = philox([q[None], np.full((1, 1), 2**24 + draw), np.asarray(pixels)[:, None], np.zeros((1, 1), int)], seed)
    u = [(v.astype(float) + 0.5) / 2**32 for v in w]
    z = []
    for a, b in ((0, 1), (2, 3)):
        r = np.sqrt(-2 * np.log(u[a]))
        z += [r * np.cos(2 * np.pi * u[b]), r * np.sin(2 * np.pi * u[b])]
    return np.stack(z, axis=2).reshape(len(pixels), -1)[:, :bands]


def least_squares(e, x, total, positive):
    """Returns the minimiser over every set of spectra; e: [band][spectrum]."""
    best, found = np.inf, None
    p = e.shape[1]
    for some in itertools.chain.from_iterable(itertools.combinations(range(p), n) for n in range(0 if not total else 1, p + 1)):
        if not positive and len(some) < p:
            continue
        a = np.zeros(p)
        if some:
            s = e[:, some]
            if total:
                m = np.block([[s.T @ s, np.ones((len(some), 1))], [np.ones((1, len(some))), np.zeros((1, 1))]])
                a[list(some)] = np.linalg.solve(m, np.append(s.T @ x, 1))[:-1]
            else:
                a[list(some)] = np.linalg.lstsq(s, x, rcond=None)[0]
        error = ((x - e @ a)**2).sum()
        if (not positive or (a >= 0).all()) and error < best:
            best, found = error, a
    return found, best


def reference(x, library, sizes, method, draws, wanted, seed, normalise="none", sigma=None, pixels=None):
    """Returns means [pixel][class], deviations, sums and errors."""
    length = np.linalg.norm(library, axis=1, keepdims=True)
    if normalise == "unit":
        library = library / length
    if normalise == "brightness":
        library = library * length.mean() / length
    shares, sums, errors = [], [], []
    for d in range(draws):
        chosen = subset(sizes, wanted, d, seed)
        e = library[sum(chosen, [])].T
        y = x if sigma is None else x + sigma * noise(pixels, x.shape[1], d, seed)
        if normalise == "unit":
            y = y / np.linalg.norm(y, axis=1, keepdims=True)
        a, error = zip(*[least_squares(e, one, method in ("fcls", "scls"), method != "scls") for one in y])
        a = np.array(a)
        ends = np.cumsum([0] + [len(c) for c in chosen])
        f = np.stack([a[:, s:t].sum(axis=1) for s, t in zip(ends, ends[1:])], axis=1)
        sums.append(f.sum(axis=1))
        shares.append(f / f.sum(axis=1, keepdims=True) if method == "nnls" else f)
        errors.append(np.sqrt(np.array(error) / x.shape[1]))
    return np.mean(shares, axis=0), np.std(shares, axis=0, ddof=1), np.mean(sums, axis=0), np.mean(errors, axis=0)


def library_of(random, sizes, spread=0.03, bands=BANDS):
    spectra = []
    for n in sizes:
        middle = random.uniform(200, 900, bands)
        spectra += [middle * (1 + random.normal(0, spread, bands)) for _ in range(n)]
    return np.array(spectra)


def write_library(path, spectra, names):
    rows = [",".join(["band", *names])]
    rows += [",".join([str(b + 1), *(repr(float(v)) for v in spectra[:, b])]) for b in range(spectra.shape[1])]
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture
def made(tmp_path):
    random = np.random.default_rng(4)
    sizes = list(CLASSES.values())
    names = [f"{c} {i}" for c, n in CLASSES.items() for i in range(n)]
    spectra = library_of(random, sizes)
    shares = random.dirichlet([1, 1, 1], 35)
    pick = [random.integers(s, s + n, 35) for s, n in zip(np.cumsum([0] + sizes), sizes)]
    x = sum(shares[:, [c]] * spectra[pick[c]] for c in range(3)) + random.normal(0, 4, (35, BANDS))
    x = x.astype("f4").astype(float)
    data = x.T.reshape(BANDS, 5, 7).copy()
    sigma = random.uniform(0, 9, data.shape).astype("f4")
    return dict(scene=write_scene(tmp_path / "s.img", data), x=x, sizes=sizes, spectra=spectra,
                library=write_library(tmp_path / "library.csv", spectra, names), sigma=sigma.reshape(BANDS, -1).T.astype(float),
                uncertainty=write_scene(tmp_path / "u.img", sigma))


def unmix(*args):
    return run("gdal_hsi_unmix", *args)


def flat(path):
    data = read(path)
    return data.reshape(len(data), -1).T


@pytest.mark.quick
@pytest.mark.parametrize("method, normalise, noisy", [
    ("fcls", "none", False), ("fcls", "none", True), ("scls", "none", True), ("nnls", "none", True), ("nnls", "brightness", False),
    ("fcls", "unit", True)])
def test_is_numpys(method, normalise, noisy, made, out):
    options = ["-uncertainty", made["uncertainty"]] if noisy else []
    succeed(unmix("-method", method, "-draws", 6, "-per-class", 2, "-seed", 9, "-normalise", normalise, *options,
                  "-deviation", out / "d.tif", "-rmse", out / "e.tif", made["scene"], made["library"], out / "f.tif"))
    mean, deviation, sums, error = reference(made["x"], made["spectra"], made["sizes"], method, 6, 2, 9, normalise,
                                             made["sigma"] if noisy else None, np.arange(35))
    got = flat(out / "f.tif")
    np.testing.assert_allclose(got[:, :3], mean, atol=2e-5)
    if method == "nnls":
        np.testing.assert_allclose(got[:, 3], sums, rtol=1e-5)
    np.testing.assert_allclose(flat(out / "d.tif"), deviation, atol=3e-5)
    np.testing.assert_allclose(flat(out / "e.tif")[:, 0], error, rtol=1e-5, atol=1e-3 if normalise == "none" else 1e-6)
    dataset = gdal.Open(str(out / "f.tif"))
    names = [dataset.GetRasterBand(b + 1).GetDescription() for b in range(dataset.RasterCount)]
    assert names == [*CLASSES, *(["sum"] if method == "nnls" else [])]
    assert [dataset.GetMetadataItem("HSI_UNMIX_" + item) for item in ("DRAWS", "SEED", "PER_CLASS")] == ["6", "9", "2"]
    assert gdal.Open(str(out / "d.tif")).GetRasterBand(1).GetDescription() == "soil deviation"


@pytest.mark.parametrize("window", [(), ("-srcwin", 2, 1, 4, 3)])
def test_same_bits(window, made, out):
    command = ["-draws", 4, "-uncertainty", made["uncertainty"], "-deviation"]
    succeed(unmix(*command, out / "d.tif", made["scene"], made["library"], out / "a.tif"))
    succeed(unmix(*command, out / "e.tif", *window, "-threads", 3, "-tile", 3, 2, made["scene"], made["library"], out / "b.tif"))
    lines, samples = (slice(1, 4), slice(2, 6)) if window else (slice(None), slice(None))
    for one, other in (("a.tif", "b.tif"), ("d.tif", "e.tif")):
        assert (read(out / one)[:, lines, samples] == read(out / other)).all()


def test_deviations_cover_the_truth(tmp_path, out):
    """Over eight libraries, two of three values are within one deviation, provided that classes vary little."""
    inside, count = 0, 0
    for seed in range(8):
        random = np.random.default_rng(seed)
        sizes = [25] * 3
        spectra = library_of(random, sizes, 0.02, 30)
        n = 400
        truth = 0.12 + random.dirichlet([1, 1, 1], n) * (1 - 0.36)
        pick = [random.integers(25 * c, 25 * c + 25, n) for c in range(3)]
        x = sum(truth[:, [c]] * spectra[pick[c]] for c in range(3)) + random.normal(0, 5, (n, 30))
        scene = write_scene(tmp_path / f"s{seed}.img", x.T.reshape(30, 20, 20))
        sigma = write_scene(tmp_path / f"u{seed}.img", np.full((30, 20, 20), 5.0))
        names = [f"{c} {i}" for c in "abc" for i in range(25)]
        succeed(unmix("-q", "-draws", 100, "-uncertainty", sigma, "-deviation", out / f"d{seed}.tif", scene,
                      write_library(tmp_path / f"l{seed}.csv", spectra, names), out / f"f{seed}.tif"))
        apart = np.abs(flat(out / f"f{seed}.tif") - truth)
        inside += (apart <= flat(out / f"d{seed}.tif")).sum()
        count += apart.size
    assert 0.65 < inside / count < 0.71, inside / count


def test_pixels_without_noise_or_value(made, out):
    sigma = made["sigma"].T.reshape(BANDS, 5, 7).copy()
    sigma[2, 0, 0], sigma[3, 1, 1], sigma[:, 2, 2] = -1, np.nan, 0
    path = write_scene(out.parent / "bad.img", sigma)
    succeed(unmix("-draws", 3, "-uncertainty", path, made["scene"], made["library"], out / "f.tif"))
    got = read(out / "f.tif")
    assert np.isnan(got[:, 0, 0]).all() and np.isnan(got[:, 1, 1]).all() and np.isfinite(got).sum() == 3 * 33


@pytest.mark.parametrize("args, code, words", [
    (("-draws", 0), 2, "-draws"),
    (("-draws", 65536), 2, "-draws"),
    (("-draws", 5, "-method", "ucls"), 2, "ucls"),
    (("-draws", 1, "-deviation", "d.tif"), 2, "-deviation"),
    (("-seed", 3), 2, "-seed"),
    (("-per-class", 2), 2, "-per-class"),
    (("-uncertainty", "u.img"), 2, "-uncertainty"),
    (("-draws", 5, "-uncertainty", "small.img"), 1, "-uncertainty"),
])
def test_refuses(args, code, words, made, out):
    write_scene(out.parent / "small.img", np.ones((BANDS, 5, 6)))
    args = [out.parent / a if str(a).endswith(".img") else out / a if a == "d.tif" else a for a in args]
    with assert_untouched(out):
        result = unmix(*args, made["scene"], made["library"], out / "f.tif")
        assert result.code == code, result.err
        assert words in first_error(result)


def test_dependent_draws_are_left_out(made, out):
    """Two classes share a spectrum, so draws that contain it twice cannot distinguish them."""
    spectra = np.vstack([made["spectra"][:3], made["spectra"][[0, 7]]])
    library = write_library(out.parent / "twice.csv", spectra, ["a 1", "a 2", "a 3", "b 1", "b 2"])
    result = succeed(unmix("-draws", 40, made["scene"], library, out / "f.tif"))
    assert "left out of 40" in result.err
    library = write_library(out.parent / "same.csv", spectra[[0, 3]], ["a 1", "b 1"])
    with assert_untouched(out):
        assert unmix("-draws", 4, made["scene"], library, out / "g.tif").code == 1


def test_classes_by_a_table_and_by_a_field(made, out):
    """Tries -classes, then the library's field, then the names: equal classes give equal numbers."""
    names = [f"{c} {i}" for c, n in CLASSES.items() for i in range(n)]
    spectra = np.array([list(map(float, row.split(",")[1:])) for row in made["library"].read_text().splitlines()[1:]])
    kinds = [n.rsplit(" ", 1)[0] for n in names]
    nm = [400 + 10 * b for b in range(BANDS)]
    scene = write_scene(out.parent / "nm.img", read(made["scene"]), wavelengths=nm)
    plain, other = out.parent / "plain.csv", out.parent / "other.csv"
    for path, columns in ((plain, names), (other, [f"x{k:02}y" for k in range(len(names))])):
        path.write_text("wavelength," + ",".join(columns) + "\n" +
                        "".join(f"{nm[b]}," + ",".join(repr(float(v)) for v in spectra[b]) + "\n" for b in range(BANDS)))
    rows = out.parent / "rows.csv"
    rows.write_text("name,class," + ",".join(f"{w} nm" for w in nm) + "\n" +
                    "".join(f"x{k:02}y,{kind}," + ",".join(repr(float(v)) for v in spectra[:, k]) + "\n" for k, kind in enumerate(kinds)))
    table = out.parent / "classes.csv"
    table.write_text("Name;Class;remark\n" + "".join(f"x{k:02}y;{kind};-\n" for k, kind in reversed(list(enumerate(kinds)))) + "more;soil;\n")
    want = ("-q", "-draws", 7, "-seed", 3)
    succeed(unmix(*want, scene, plain, out / "names.tif"))
    succeed(unmix(*want, "-classes", table, scene, other, out / "table.tif"))
    succeed(unmix(*want, scene, rows, out / "field.tif"))
    for name in ("table", "field"):
        np.testing.assert_array_equal(read(out / f"{name}.tif"), read(out / "names.tif"))
        dataset = gdal.Open(str(out / f"{name}.tif"))
        assert [dataset.GetRasterBand(k + 1).GetDescription() for k in range(3)] == list(CLASSES)
    # The table has priority over the field.
    table.write_text("name,class\n" + "".join(f"x{k:02}y,{'all' if k else 'one'}\n" for k in range(len(names))))
    succeed(unmix(*want, "-classes", table, scene, rows, out / "two.tif"))
    assert gdal.Open(str(out / "two.tif")).RasterCount == 2
    # Where the field is empty, the name is used, with a note.
    rows.write_text(rows.read_text().replace("x03y,soil", "soil 17,"))
    told = succeed(unmix(*want, scene, rows, out / "some.tif"))
    assert "field class is empty for 'soil 17'" in told.err
    np.testing.assert_array_equal(read(out / "some.tif"), read(out / "names.tif"))


@pytest.mark.parametrize("text, words", [
    ("name,class\nsoil 0,a\n", "has no line for the spectrum 'soil 1'"),
    ("name,class\n" + "".join(f"{c} {i},{c}\n" for c, n in CLASSES.items() for i in range(n)) + "soil 1,b\n", "'soil 1' has two classes"),
    ("name,class\nsoil 0,\n", "'soil 0' has no class"),
    ("spectrum,class\nsoil 0,a\n", "no column 'name'"),
])
def test_refuses_tables_of_classes(text, words, made, out):
    (out.parent / "classes.csv").write_text(text)
    with assert_untouched(out):
        result = unmix("-draws", 3, "-classes", out.parent / "classes.csv", made["scene"], made["library"], out / "f.tif")
    assert result.code == 1 and words in first_error(result)


def test_classes_need_draws(made, out):
    (out.parent / "classes.csv").write_text("name,class\n")
    result = unmix("-classes", out.parent / "classes.csv", made["scene"], made["library"], out / "f.tif")
    assert result.code == 2 and "-classes" in first_error(result)
