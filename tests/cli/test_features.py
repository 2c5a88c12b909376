# SPDX-License-Identifier: MIT
"""gdal_hsi_features, compared with a slow reference in double precision and closed forms; metadata, and refused
input."""

import csv
import json
import os
import subprocess

import numpy as np
import pytest
from osgeo import gdal

from conftest import PLUGINS, assert_untouched, cube, first_error, open_band, read, run, succeed, write_scene

BANDS = 40
NM = [2000 + 10.0 * b + (b % 3) for b in range(BANDS)]
MEASURES = ["depth", "position", "width", "area", "asymmetry"]


def features(*args):
    return run("gdal_hsi_features", *args)


@pytest.fixture
def files(tmp_path):
    scene = cube(33, 21, BANDS, seed=8).astype(np.float32)
    scene[7, 4, 5] = np.nan
    scene[:, 6, 7] = 0
    scene[10, 8, 9] = -3
    scene[11, 9, 9] = -3
    write_scene(tmp_path / "scene.img", scene, wavelengths=NM, fwhm=[9] * BANDS)
    return tmp_path


def removed_of(x, v):
    """Returns the ratios by the greatest of all chords; nothing if an end is not above 0."""
    if not (v[0] > 0 and v[-1] > 0):
        return np.full(len(v), np.nan)
    hull = np.array(v, float)
    for i in range(len(x)):
        for a in range(i):
            b = np.arange(i + 1, len(x))
            if len(b):
                hull[i] = max(hull[i], (v[a] + (v[b] - v[a]) * (x[i] - x[a]) / (x[b] - x[a])).max())
    return np.minimum(v / hull, 1)


def measures_of(x, r):
    if np.isnan(r).any():
        return [np.nan] * 5
    m = int(np.argmax(r <= r.min() + 1e-10))
    depth, area = 1 - r[m], np.trapz(1 - r, x)
    if depth < 1e-6:
        return [0, np.nan, np.nan, area, np.nan]
    d1, d2 = (r[m] - r[m - 1]) / (x[m] - x[m - 1]), (r[m + 1] - r[m]) / (x[m + 1] - x[m])
    a = (d2 - d1) / (x[m + 1] - x[m - 1])
    position = np.clip((x[m - 1] + x[m]) / 2 - d1 / (2 * a), (x[m - 1] + x[m]) / 2, (x[m] + x[m + 1]) / 2) if a > 0 else x[m]
    half = 1 - depth / 2
    i = max(i for i in range(m) if r[i] >= half)
    k = min(k for k in range(m + 1, len(x)) if r[k] >= half)
    left = np.interp(half, [r[i + 1], r[i]], [x[i + 1], x[i]])
    right = np.interp(half, [r[k - 1], r[k]], [x[k - 1], x[k]])
    return [depth, position, right - left, area, ((right - position) - (position - left)) / (right - left)]


def in_range(low, high):
    return [b for b in range(BANDS) if low <= NM[b] <= high]


@pytest.mark.quick
def test_features_against_the_reference(files):
    out = succeed(features("-range", "2100-2250nm", "-range", "2.2-2.39um", files / "scene.img", files / "f.tif"))
    scene, got = read(files / "scene.img"), read(files / "f.tif")
    assert got.shape == (10, 21, 33)
    for k, ends in enumerate([(2100, 2250), (2200, 2390)]):
        bands = in_range(*ends)
        x = np.array([NM[b] for b in bands])
        for y in range(21):
            for s in range(33):
                v = scene[:, y, s]
                selected = in_range(2100, 2390)
                bad = np.isnan(v[selected]).any() or (v[selected] == 0).all()
                want = [np.nan] * 5 if bad else measures_of(x, removed_of(x, v[bands]))
                np.testing.assert_allclose(got[5 * k:5 * k + 5, y, s], want, rtol=2e-5, atol=2e-5, err_msg=f"{k} {y} {s}")
    dataset = gdal.Open(str(files / "f.tif"))
    names = [dataset.GetRasterBand(b + 1).GetDescription() for b in range(10)]
    assert names == [f"{r} {m}" for r in ("2100-2250nm", "2.2-2.39um") for m in MEASURES]
    assert [dataset.GetRasterBand(b + 1).GetUnitType() for b in range(5)] == ["", "nm", "nm", "nm", ""]
    # -3 at 2100 nm is inside the range but at an end of the first range; NaN at 2070 nm does not matter.
    assert not np.isnan(got[:, 4, 5]).any()
    assert np.isnan(got[:5, 8, 9]).all() == (in_range(2100, 2250)[0] == 10)
    assert "1 pixel has no continuum" in out.err


def test_removed_against_the_reference(files):
    succeed(features("-output", "removed", "-range", "2100-2200nm", "-range", "2250-2390nm", files / "scene.img", files / "r.tif"))
    scene, got = read(files / "scene.img"), read(files / "r.tif")
    first, second = in_range(2100, 2200), in_range(2250, 2390)
    assert got.shape[0] == len(first) + len(second)
    for y in range(0, 21, 2):
        for s in range(0, 33, 2):
            want = np.concatenate([removed_of(np.array(NM)[b], scene[b, y, s]) for b in (first, second)])
            if np.isnan(want).any() or (scene[first + second, y, s] == 0).all():
                want[:] = np.nan
            np.testing.assert_allclose(got[:, y, s], want, atol=1e-6)
    dataset = gdal.Open(str(files / "r.tif"))
    for k, b in enumerate(first + second):
        items = dataset.GetRasterBand(k + 1).GetMetadata()
        assert float(items["wavelength"]) == NM[b] and float(items["fwhm"]) == 9


def test_removed_drops_scales_and_keeps_items(files):
    data = np.abs(np.nan_to_num(read(files / "scene.img"), nan=4)) + 1
    write_scene(files / "scaled.tif", data, driver="GTiff", wavelengths=NM)
    dataset = gdal.Open(str(files / "scaled.tif"), gdal.GA_Update)
    for b in range(BANDS):
        band = dataset.GetRasterBand(b + 1)
        band.SetScale(0.5)
        band.SetUnitType("W")
        band.SetMetadataItem("detector", str(b))
    dataset = None
    succeed(features("-q", "-output", "removed", files / "scaled.tif", files / "r.img", "-of", "ENVI"))
    dataset = gdal.Open(str(files / "r.img"))
    assert dataset.RasterCount == BANDS
    band = dataset.GetRasterBand(5)
    assert band.GetScale() in (None, 1.0) and band.GetUnitType() == "" and band.GetMetadataItem("detector") == "4"
    header = (files / "r.hdr").read_text()
    assert "wavelength = {" in header and "2041" in header
    r = read(files / "r.img")
    assert (r[0] == 1).all() and (r[-1] == 1).all() and (r <= 1).all()


def test_closed_forms(files):
    x = np.array(NM)
    flat, line = np.full(BANDS, 0.5), 0.2 + x / 4000
    v = np.ones(BANDS)
    v[20] = 0.6                                             # a triangle
    scene = np.stack([flat, line, v], axis=1).reshape(BANDS, 1, 3).astype(np.float32)
    write_scene(files / "c.img", scene, wavelengths=NM)
    succeed(features("-q", "-range", "2000-2400nm", files / "c.img", files / "c.tif"))
    depth, position, width, area, asymmetry = read(files / "c.tif")[:, 0]
    assert depth[0] == 0 and depth[1] == 0 and np.isnan(position[:2]).all() and np.isnan(width[:2]).all()
    assert area[:2] == pytest.approx([0, 0], abs=1e-4)
    assert depth[2] == pytest.approx(0.4, abs=1e-6)
    assert width[2] == pytest.approx((NM[21] - NM[19]) / 2, rel=1e-5)
    assert area[2] == pytest.approx(0.4 * (NM[21] - NM[19]) / 2, rel=1e-5)


def test_tiles_threads_memory_and_interleave_change_no_byte(files):
    for output in ("features", "removed"):
        fixed = ["-q", "-output", output, "-range", "2100-2300nm", "-of", "ENVI"]
        succeed(features(*fixed, files / "scene.img", files / f"{output}.img"))
        one = (files / f"{output}.img").read_bytes()
        write_scene(files / "bip.img", read(files / "scene.img"), options=["INTERLEAVE=BIP"], wavelengths=NM)
        for k, args in enumerate((["-threads", 3, "-tile", 7, 5], ["-threads", 1, "-tile", 33, 1], ["-memory", "64MB"])):
            for scene in ("scene.img", "bip.img"):
                out = files / f"{output}{k}{scene}"
                succeed(features(*fixed, *args, files / scene, out))
                assert out.read_bytes() == one, (output, args, scene)


def test_vrt_has_the_same_values(files):
    for output in ("features", "removed"):
        fixed = ["-q", "-output", output, "-range", "2100-2200nm", "-range", "2250-2390nm", files / "scene.img"]
        succeed(features(*fixed, files / f"{output}.tif"))
        succeed(features(*fixed, files / f"{output}.vrt"))
        subprocess.run(["gdal_translate", "-q", str(files / f"{output}.vrt"), str(files / f"{output}_v.tif")], check=True,
                       env={**os.environ, "GDAL_DRIVER_PATH": str(PLUGINS)})
        assert np.array_equal(read(files / f"{output}.tif"), read(files / f"{output}_v.tif"), equal_nan=True)
    assert open_band(files / "removed.vrt").GetMetadataItem("wavelength")


def test_bad_bands_take_no_part(files):
    bbl = [1] * BANDS
    bbl[15] = 0
    data = np.nan_to_num(read(files / "scene.img"), nan=4.0)
    write_scene(files / "bad.img", data, wavelengths=NM, bbl=bbl)
    succeed(features("-q", "-range", "2100-2300nm", files / "bad.img", files / "f.tif", "-report", files / "r.json"))
    assert json.loads((files / "r.json").read_text())["ranges"][0]["bands"] == len(in_range(2100, 2300)) - 1


@pytest.mark.quick
@pytest.mark.parametrize("args, code, words", [
    (["-range", "2100-2105nm", "scene.img", "o.tif"], 1, ["2100-2105nm", "needs 3"]),
    (["-range", "2100", "scene.img", "o.tif"], 2, ["-range"]),
    (["-range", "2100nm", "scene.img", "o.tif"], 2, ["-range 2100nm", "not a range"]),
    (["-range", "2200-2100nm", "scene.img", "o.tif"], 2, ["empty"]),
    (["-output", "removed", "-range", "2100-2200nm", "-range", "2190-2300nm", "scene.img", "o.tif"], 2, ["share band"]),
    (["-output", "depth", "scene.img", "o.tif"], 2, ["-output"]),
    (["-b", "1,2", "scene.img", "o.tif"], 1, ["needs 3"]),
    (["plain.tif", "o.tif"], 1, ["plain.tif", "no wavelengths"]),
    (["scene.img", "there.tif"], 1, ["there.tif"]),
])
def test_bad_input(files, args, code, words):
    write_scene(files / "plain.tif", cube(5, 4, 6), driver="GTiff")
    (files / "there.tif").write_text("old")
    with assert_untouched(files):
        result = features(*[str(files / a) if a.endswith((".img", ".tif")) else a for a in args])
        assert result.code == code, result.err
        for word in words:
            assert word in first_error(result), result.err


def test_dry_run_writes_nothing(files):
    with assert_untouched(files):
        assert "features" in succeed(features("-dry-run", files / "scene.img", files / "o.tif")).out


@pytest.mark.parametrize("words, told", [("1900-2500nm", "from 2000 nm to 2390 nm"), ("2200-2450nm", "from 2202 nm to 2390 nm"),
                                         ("1985-2405nm", ""), ("2100-2300nm", "")])
def test_a_range_that_is_cut_short(files, words, told):
    """A range may be cut by the ends of the scene or by bad bands."""
    said = succeed(features("-range", words, files / "scene.img", files / "f.tif")).out
    assert (f"-range {words} has good bands only {told}" in said) if told else "has good bands only" not in said, said
    said = succeed(features("-overwrite", "-range", "2100-2300nm", "-exclude-range", "2250-2320nm", files / "scene.img", files / "f.tif")).out
    assert "-range 2100-2300nm has good bands only from 2101 nm to 2240 nm" in said, said


@pytest.mark.quick
def test_a_library_against_the_reference(tmp_path):
    random = np.random.default_rng(4)
    spectra = random.uniform(0.2, 0.8, (3, BANDS))
    spectra[1, 12:14] = np.nan  # each spectrum uses its valid bands
    spectra[2, 0] = -0.1
    names = ["one", "two, young", "three"]
    library = tmp_path / "l.csv"
    library.write_text("\n".join(["wavelength," + ",".join(f'"{n}"' for n in names)] + [
        ",".join([str(NM[b]), *("" if np.isnan(v) else repr(float(v)) for v in spectra[:, b])]) for b in range(BANDS)]) + "\n")
    succeed(features("-range", "2100-2250nm", "-range", "2.2-2.39um", library, tmp_path / "f.csv"))
    rows = list(csv.reader((tmp_path / "f.csv").open()))
    assert rows[0] == ["name", "range", *MEASURES] and len(rows) == 1 + 6
    x = np.array(NM)
    for row, (name, values, (low, high)) in zip(rows[1:], [(n, v, limits) for n, v in zip(names, spectra) for limits in ((2100, 2250), (2200, 2390))]):
        at = [b for b in in_range(low, high) if np.isfinite(values[b])]
        assert row[0] == name and np.allclose([float(v) for v in row[2:]], measures_of(x[at], removed_of(x[at], values[at])), rtol=1e-7)
    result = succeed(features("-output", "removed", library, tmp_path / "r.csv"))
    assert "spectra without a continuum: three (all)" in result.err
    got = np.genfromtxt(tmp_path / "r.csv", delimiter=",", skip_header=1)[:, -3:].T
    for k in (0, 1):
        at = np.isfinite(spectra[k])
        assert np.allclose(got[k, at], removed_of(x[at], spectra[k, at]), rtol=1e-7) and np.isnan(got[k, ~at]).all()
    assert np.isnan(got[2]).all()
    for words, code, message in ((["-range", "3000-3100nm"], 1, "no spectrum of"), (["-b", "1-9"], 2, "-b cannot be used with a spectral library")):
        result = features(*words, library, tmp_path / "x.csv")
        assert result.code == code and message in result.err and not (tmp_path / "x.csv").exists()
