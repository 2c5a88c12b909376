# SPDX-License-Identifier: MIT
"""gdal_hsi_smooth, compared with a NumPy reference in double precision, scipy and chemotools; virtual scenes,
pipelines, libraries, metadata, and refused input."""
import math
import os
import subprocess

import numpy as np
import pytest
from osgeo import gdal

from conftest import PLUGINS, cube, first_error, read, run, succeed, write_scene

BANDS, LINES, SAMPLES = 70, 9, 41
# Uneven steps, one missing band (12), a gap (30), a second detector that overlaps (50), two isolated bands at the end.
NM = [400 + 9.0 * b + 0.7 * (b % 3) + (9 if b >= 12 else 0) + (150 if b >= 30 else 0) - (40 if b >= 50 else 0) + (300 if b >= 68 else 0)
      for b in range(BANDS)]
BAD = {5, 60}
GOOD = [b for b in range(BANDS) if b not in BAD]
X = np.array([NM[b] for b in GOOD])
METHODS = ["savgol", "mean", "whittaker", "absorbance", "snv", "msc", "detrend", "normalise"]


def smooth(*args):
    return run("gdal_hsi_smooth", *args)


def segments(x, max_gap=None):
    steps = np.diff(x)
    gap = max_gap or 2.5 * np.median(steps[steps > 0])
    ends = [0] + [k + 1 for k, d in enumerate(steps) if not 0 < d <= gap] + [len(x)]
    return list(zip(ends, ends[1:]))


def savgol(v, x, window=9, degree=2, deriv=0, max_gap=None):
    out = np.full(v.shape, np.nan)
    for begin, end in segments(x, max_gap):
        n = min(window, end - begin)
        p = min(degree, n - 1)
        if end - begin <= deriv:
            continue
        for i in range(begin, end):
            first = min(max(i - n // 2, begin), end - n)
            s = np.abs(x[first:first + n] - x[i]).max() or 1
            c = np.linalg.lstsq(np.vander((x[first:first + n] - x[i]) / s, p + 1, increasing=True), v[first:first + n], rcond=None)[0]
            out[i] = math.factorial(deriv) * c[deriv] / s ** deriv
    return out


def moving_mean(v, x, window=5):
    h = (window - 1) // 2
    return np.concatenate([np.array([v[max(b, i - h):min(e, i + h + 1)].mean(0) for i in range(b, e)]) for b, e in segments(x)])


def whittaker(v, x, lam=10.0, order=2):
    u, out = x / np.median(np.diff(x)[np.diff(x) > 0]), v.copy()
    for b, e in segments(x):
        if e - b <= order:
            continue
        d = np.eye(e - b)
        for k in range(1, order + 1):
            d = k * np.diff(d, axis=0) / (u[b + k:e] - u[b:e - k])[:, None]
        out[b:e] = np.linalg.solve(np.eye(e - b) + lam * d.T @ d, v[b:e])
    return out


def msc(v, x, r=None):
    r = v[:, np.isfinite(v).all(0)].mean(1) if r is None else r
    rc = r - r.mean()
    b = (rc[:, None] * (v - v.mean(0))).sum(0) / (rc ** 2).sum()
    b = np.where(b > 0, b, np.nan)
    return (v - (v.mean(0) - b * r.mean())) / b


def detrend(v, x, degree=2):
    a = np.vander((x - x.mean()) / 1000, degree + 1)
    return v - a @ np.linalg.lstsq(a, v, rcond=None)[0]


def normalise(v, x, norm="area"):
    by = {"area": lambda: sum(np.trapz(v[b:e], x[b:e], axis=0) for b, e in segments(x)), "max": lambda: v.max(0),
          "l2": lambda: np.sqrt((v ** 2).sum(0)), "mean": lambda: v.mean(0)}[norm]()
    return v / np.where(by > 0, by, np.nan)


def absorbance(v, x, scale=1.0):
    with np.errstate(all="ignore"):
        return np.where((v > 0).all(0), -np.log10(scale * v), np.nan)


def snv(v, x):
    return (v - v.mean(0)) / v.std(0, ddof=1)


CASES = [((), savgol, {}), (("-window", "5", "-degree", "3"), savgol, {"window": 5, "degree": 3}),
         (("-window", "11", "-deriv", "1"), savgol, {"window": 11, "deriv": 1}),
         (("-window", "13", "-degree", "4", "-deriv", "2"), savgol, {"window": 13, "degree": 4, "deriv": 2}),
         (("-max-gap", "200"), savgol, {"max_gap": 200}), (("-window", "255", "-degree", "5"), savgol, {"window": 255, "degree": 5}),
         (("-method", "mean"), moving_mean, {}), (("-method", "mean", "-window", "7"), moving_mean, {"window": 7}),
         (("-method", "whittaker"), whittaker, {}), (("-method", "whittaker", "-lambda", "1e4", "-order", "3"), whittaker, {"lam": 1e4, "order": 3}),
         (("-method", "whittaker", "-order", "1"), whittaker, {"order": 1}),
         (("-method", "absorbance", "-scale", "1e-4"), absorbance, {"scale": 1e-4}), (("-method", "snv"), snv, {}), (("-method", "msc"), msc, {}),
         *((("-method", "detrend", "-degree", str(d)), detrend, {"degree": d}) for d in (0, 1, 2, 5)),
         *((("-method", "normalise", "-norm", n), normalise, {"norm": n}) for n in ("area", "max", "l2", "mean"))]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("smooth")
    scene = cube(SAMPLES, LINES, BANDS, seed=4).astype(np.float32)
    scene[40, 1, 2] = np.nan
    scene[:, 3, 4] = 0
    scene[33, 5, 6] = -9999
    scene[20, 7, 8] = -2  # has no absorbance
    write_scene(folder / "scene.img", scene, wavelengths=NM, fwhm=[9] * BANDS, nodata=-9999,
                bbl=[0 if b in BAD else 1 for b in range(BANDS)])
    return folder


def values(folder):
    scene = read(folder / "scene.img").astype(np.float64).reshape(BANDS, -1)[GOOD]
    scene[scene == -9999] = np.nan
    scene[:, ~np.isfinite(scene).all(0) | (scene == 0).all(0)] = np.nan
    return scene


def agree(got, expected):
    got = got.reshape(got.shape[0], -1).astype(float)
    assert got.shape == expected.shape
    assert (np.isnan(got) == np.isnan(expected)).all()
    there = np.isfinite(expected).all(0)
    limit = 1e-6 * (np.abs(expected) + np.abs(expected).max(0))
    assert there.sum() > 300 and (np.abs(got - expected) <= limit)[:, there].all()


def reference_of(function, scene, options):
    expected = np.full(scene.shape, np.nan)
    good = np.isfinite(scene).all(0)
    expected[:, good] = function(scene[:, good], X, **options)
    return expected[np.isfinite(expected).any(1)]


@pytest.mark.parametrize("words, function, options", CASES, ids=[" ".join(c[0]) or "savgol" for c in CASES])
def test_values_are_those_of_the_reference(files, tmp_path, words, function, options):
    succeed(smooth(*words, files / "scene.img", tmp_path / "s.tif"))
    agree(read(tmp_path / "s.tif"), reference_of(function, values(files), options))


@pytest.mark.parametrize("method", METHODS)
def test_virtual_scenes_pipelines_tiles_threads_and_interleave_have_the_same_bits(files, tmp_path, method):
    asked = ("-method", method)
    succeed(smooth(*asked, files / "scene.img", tmp_path / "a.tif"))
    expected = read(tmp_path / "a.tif")
    again = [("-tile", "7", "2"), ("-threads", "3"), ("-of", "HSI"), ("-of", "VRT")]
    for k, options in enumerate(again):
        path = tmp_path / f"{k}.{ {'HSI': 'hsi', 'VRT': 'vrt'}.get(options[-1], 'tif')}"
        succeed(smooth(*asked, *options, files / "scene.img", path))
        if path.suffix in (".hsi", ".vrt"):
            subprocess.run(["gdal_translate", "-q", path, tmp_path / f"{k}.tif"], check=True,
                           env={**os.environ, "GDAL_DRIVER_PATH": str(PLUGINS)})
            path = tmp_path / f"{k}.tif"
        assert np.array_equal(read(path), expected, equal_nan=True), options
    write_scene(tmp_path / "bip.img", read(files / "scene.img"), wavelengths=NM, nodata=-9999,
                bbl=[0 if b in BAD else 1 for b in range(BANDS)], options=["INTERLEAVE=BIP"])
    succeed(smooth(*asked, tmp_path / "bip.img", tmp_path / "bip.tif"))
    assert np.array_equal(read(tmp_path / "bip.tif"), expected, equal_nan=True)
    succeed(run("gdal_hsi_pipeline", "read", files / "scene.img", "!", "smooth", *asked, "!", "write", tmp_path / "p.tif"))
    assert np.array_equal(read(tmp_path / "p.tif"), expected, equal_nan=True)


def test_two_transforms_in_one_pass(files, tmp_path):
    succeed(run("gdal_hsi_pipeline", "read", files / "scene.img", "!", "smooth", "-method", "absorbance", "-scale", "1e-4", "!",
                "smooth", "-deriv", "1", "!", "write", tmp_path / "p.tif"))
    scene = values(files)
    good = np.isfinite(scene).all(0) & (scene > 0).all(0)
    expected = np.full(scene.shape, np.nan)
    expected[:, good] = savgol(absorbance(scene[:, good], X, 1e-4).astype(np.float32).astype(float), X, deriv=1)
    got = read(tmp_path / "p.tif")
    agree(got, expected[np.isfinite(expected).any(1)])


def test_scale_and_unit(files, tmp_path):
    scene = np.round(cube(SAMPLES, LINES, BANDS, seed=6))
    write_scene(tmp_path / "dn.img", scene, dtype="i2", wavelengths=NM)
    header = tmp_path / "dn.hdr"
    header.write_text(header.read_text() + "reflectance scale factor = 10000\ndata units = Reflectance\n")
    for method in METHODS + ["deriv"]:
        words = ("-deriv", "1") if method == "deriv" else ("-method", method)
        for name in "s.tif", "s.img":
            (tmp_path / name).unlink(missing_ok=True)
            succeed(smooth(*words, "-overwrite", *(("-of", "ENVI") if name == "s.img" else ()), tmp_path / "dn.img", tmp_path / name))
            info = succeed(run("gdal_hsi_info", tmp_path / name)).out
            drops = method in ("absorbance", "snv", "normalise")
            assert ("0.0001" in info) != drops, (method, name, info)
            assert ("Reflectance" in info) != drops, (method, name, info)
            if method == "deriv":
                assert "Reflectance/nm" in info
        if method == "absorbance":
            got, expected = read(tmp_path / "s.tif"), -np.log10(scene / 10000)
            assert np.allclose(got[10], expected[10], rtol=1e-5)
    # Bands of different scales: the scaled values count.
    gdal.Translate(str(tmp_path / "mixed.tif"), str(tmp_path / "dn.img"))
    dataset = gdal.Open(str(tmp_path / "mixed.tif"), gdal.GA_Update)
    for b in range(BANDS):
        dataset.GetRasterBand(b + 1).SetScale(0.001 if b < 20 else 0.0001)
        dataset.GetRasterBand(b + 1).SetOffset(0.25)
    dataset = None
    out = succeed(smooth(tmp_path / "mixed.tif", tmp_path / "m.tif"))
    assert "applied first" in out.out
    meant = (scene * np.where(np.arange(BANDS) < 20, 0.001, 0.0001)[:, None, None] + 0.25).reshape(BANDS, -1)
    agree(read(tmp_path / "m.tif"), savgol(meant, np.array(NM)))


def test_a_derivative_leaves_out_short_segments(files, tmp_path):
    out = succeed(smooth("-deriv", "2", files / "scene.img", tmp_path / "d.tif"))
    assert "2 bands are left out" in out.out and f"{NM[68]:.6g} nm" in out.out
    assert read(tmp_path / "d.tif").shape[0] == len(GOOD) - 2
    dataset = gdal.Open(str(tmp_path / "d.tif"))
    assert dataset.GetRasterBand(1).GetUnitType() == "1/nm2"


def test_masks_choose_the_mean_of_msc(files, tmp_path):
    mask = np.zeros((1, LINES, SAMPLES))
    mask[0, :4] = 1
    write_scene(tmp_path / "mask.tif", mask, driver="GTiff", dtype="u1")
    succeed(smooth("-method", "msc", "-mask", tmp_path / "mask.tif", files / "scene.img", tmp_path / "m.tif"))
    scene = values(files)
    inside = scene[:, :4 * SAMPLES]
    agree(read(tmp_path / "m.tif"), msc(scene, X, inside[:, np.isfinite(inside).all(0)].mean(1)))
    out = smooth("-method", "snv", "-mask", tmp_path / "mask.tif", files / "scene.img", tmp_path / "n.tif")
    assert out.code == 2 and "-mask-output" in out.err


def library_of(path, spectra, nm, names):
    with open(path, "w") as f:
        f.write("wavelength," + ",".join(names) + "\n")
        for b, x in enumerate(nm):
            f.write(f"{float(x)!r}," + ",".join("" if np.isnan(s[b]) else f"{s[b]:.9g}" for s in spectra) + "\n")


def test_msc_by_a_library(files, tmp_path):
    r = 3 + np.sin(X / 200)
    library_of(tmp_path / "r.csv", [r, 2 * r], X, ["first", "second"])
    succeed(smooth("-method", "msc", "-reference", tmp_path / "r.csv", files / "scene.img", tmp_path / "m.tif"))
    expected = reference_of(msc, values(files), {"r": r})
    got = read(tmp_path / "m.tif").reshape(len(GOOD), -1)
    there = np.isfinite(expected).all(0)
    limit = 1e-6 * (np.abs(expected) + np.abs(expected).max(0))
    assert (np.isfinite(got).all(0) == there).all() and (np.abs(got - expected) <= limit)[:, there].all()
    # Bands outside the library.
    library_of(tmp_path / "cut.csv", [r[20:]], X[20:], ["cut"])
    out = succeed(smooth("-method", "msc", "-reference", tmp_path / "cut.csv", files / "scene.img", tmp_path / "c.tif"))
    assert read(tmp_path / "c.tif").shape[0] < len(GOOD) and "bands" in out.out


@pytest.mark.parametrize("words, function, options", [c for c in CASES if "-scale" not in c[0]], ids=lambda v: None)
def test_a_library_is_transformed_like_a_scene(files, tmp_path, words, function, options):
    scene = values(files)
    spectra = [scene[:, p].astype(np.float32).astype(float) for p in (0, 10, 99)]
    library_of(tmp_path / "l.csv", spectra, X, ["a", "b", "c"])
    succeed(smooth(*words, tmp_path / "l.csv", tmp_path / "s.csv"))
    expected = function(np.array(spectra).T, X, **options)
    expected = expected[np.isfinite(expected).any(1)]
    rows = [line.split(",") for line in (tmp_path / "s.csv").read_text().splitlines()]
    assert rows[0][-3:] == ["a", "b", "c"]
    got = np.array([[float(v) for v in row[-3:]] for row in rows[1:]])
    assert np.allclose(got, expected, rtol=1e-6, atol=1e-7 * np.abs(expected).max())


def test_spectra_of_a_library_with_holes(files, tmp_path):
    scene = values(files)
    whole, holes = scene[:, 0].copy(), scene[:, 10].copy()
    holes[[3, 40]] = np.nan
    library_of(tmp_path / "l.csv", [whole, holes, -whole], X, ["whole", "holes", "negative"])
    out = succeed(smooth("-method", "absorbance", "-scale", "1e-4", tmp_path / "l.csv", tmp_path / "s.csv"))
    assert "negative" in out.err
    rows = [line.split(",") for line in (tmp_path / "s.csv").read_text().splitlines()][1:]
    assert rows[3][-2:] == ["nan", "nan"] and float(rows[4][-2]) == pytest.approx(-math.log10(holes[4] * 1e-4), rel=1e-6)


def test_against_scipy():
    signal = pytest.importorskip("scipy.signal")
    rng = np.random.default_rng(2)
    x, v = np.arange(400, 900, 5.0), rng.normal(size=(100, 3))
    for window, degree, deriv in ((9, 2, 0), (11, 3, 1), (7, 4, 2)):
        assert np.allclose(savgol(v, x, window, degree, deriv), signal.savgol_filter(v, window, degree, deriv, delta=5.0, axis=0), atol=1e-10)
    assert np.allclose(detrend(v, x, 1), signal.detrend(v, axis=0), atol=1e-10)


def test_against_chemotools():
    pytest.importorskip("chemotools")
    from chemotools.scatter import MultiplicativeScatterCorrection, StandardNormalVariate
    v = np.random.default_rng(3).uniform(1, 2, (60, 5)) + np.linspace(0, 3, 60)[:, None]
    n = len(v)
    assert np.allclose(snv(v, X), StandardNormalVariate().fit_transform(v.T).T * math.sqrt((n - 1) / n))
    assert np.allclose(msc(v, X), MultiplicativeScatterCorrection().fit_transform(v.T).T)


@pytest.mark.parametrize("options, code, first", [
    (("-window", "8"), 2, "-window: 8 is even"), (("-window", "1"), 2, "-window: '1'"), (("-window", "257"), 2, "-window: '257'"),
    (("-degree", "9"), 2, "-degree: 9 is out of range (0 to 8)"), (("-deriv", "3"), 2, "-deriv: 3 is out of range (0 to 2)"),
    (("-method", "detrend", "-degree", "6"), 2, "-degree: 6 is out of range (0 to 5)"),
    (("-lambda", "5"), 2, "-lambda requires -method whittaker"), (("-method", "whittaker", "-lambda", "0"), 2, "-lambda"),
    (("-method", "whittaker", "-order", "4"), 2, "-order"), (("-norm", "max"), 2, "-norm requires -method normalise"),
    (("-method", "snv", "-deriv", "1"), 2, "-deriv requires -method savgol"), (("-scale", "2"), 2, "-scale requires -method absorbance"),
    (("-method", "snv", "-max-gap", "5"), 2, "-max-gap requires -method savgol, mean, whittaker"),
    (("-method", "snv", "-reference", "x.csv"), 2, "-reference requires -method msc"),
    (("-deriv", "1", "-max-gap", "1"), 1, "has no segment of more than 1 band"),
    (("-b", "3", "-method", "snv"), 2, "1 band")])
def test_bad_input(files, tmp_path, options, code, first):
    out = smooth(*options, files / "scene.img", tmp_path / "bad.tif")
    assert out.code == code and first in first_error(out), out.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("method", METHODS)
def test_a_scene_without_wavelengths(files, tmp_path, method):
    write_scene(tmp_path / "plain.img", np.abs(read(files / "scene.img")[:4, :1, 10:]))
    out = smooth("-method", method, tmp_path / "plain.img", tmp_path / "x.tif")
    assert out.code == (0 if method in ("absorbance", "snv", "msc") else 1), out.err
    if out.code:
        assert "has no wavelengths" in first_error(out) and not (tmp_path / "x.tif").exists()


def test_no_pixel_has_a_result(files, tmp_path):
    write_scene(tmp_path / "flat.img", np.full((4, 2, 2), 5.0))
    out = smooth("-method", "snv", tmp_path / "flat.img", tmp_path / "x.tif")
    assert out.code == 1 and "no pixel has a result, since all values are equal" in first_error(out)
    assert not (tmp_path / "x.tif").exists()
