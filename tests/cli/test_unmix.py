# SPDX-License-Identifier: MIT
"""gdal_hsi_unmix, compared with scipy's and numpy's least squares, on synthetic and real scenes; and refused input."""

import json

import numpy as np
import pytest
from osgeo import gdal

from conftest import DATA, assert_untouched, first_error, read, run, succeed, write_scene

WAVELENGTHS = [400 + 10 * b for b in range(20)]


def unmix(*args):
    return run("gdal_hsi_unmix", *args)


def spectra(count=4, bands=20, seed=3):
    return np.random.default_rng(seed).uniform(200, 2000, (count, bands))


def write_library(path, rows, wavelengths=WAVELENGTHS, names=None):
    names = names or ["m%d" % (k + 1) for k in range(len(rows))]
    lines = [",".join(["band", "wavelength"] + names)]
    for b in range(len(rows[0])):
        lines.append(",".join([str(b + 1), str(wavelengths[b]) if wavelengths else ""] + ["%.17g" % r[b] for r in rows]))
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def files(tmp_path):
    e = spectra()
    random = np.random.default_rng(5)
    a = random.dirichlet(np.full(4, 0.5), (31, 40))
    scene = np.moveaxis(a @ e + random.normal(0, 5, (31, 40, 20)), 2, 0).astype(np.float32)
    scene[3, 7, 9] = np.nan
    write_scene(tmp_path / "scene.img", scene, wavelengths=WAVELENGTHS)
    write_library(tmp_path / "library.csv", e)
    return tmp_path


def reference(e, x, method):
    """Computes abundances with numpy: ucls and scls in closed form; nnls and fcls over every set of endmembers."""
    p = len(e)
    best, least = None, np.inf
    for choice in range(1, 2 ** p) if method in ("nnls", "fcls") else [2 ** p - 1]:
        index = [k for k in range(p) if choice >> k & 1]
        f = e[index].T
        gram, right = f.T @ f, f.T @ x
        if method in ("scls", "fcls"):
            gram = np.block([[gram, np.ones((len(index), 1))], [np.ones((1, len(index))), np.zeros((1, 1))]])
            right = np.append(right, 1)
        found = np.linalg.solve(gram, right)[:len(index)]
        if method in ("nnls", "fcls") and (found < 0).any():
            continue
        full = np.zeros(p)
        full[index] = found
        error = ((x - e.T @ full) ** 2).sum()
        if error < least:
            best, least = full, error
    return best if best is not None else np.zeros(p), np.sqrt(min(least, (x ** 2).sum()) / len(x))


@pytest.mark.quick
@pytest.mark.parametrize("method", ["ucls", "nnls", "scls", "fcls"])
def test_abundances_are_the_minimisers(method, files):
    succeed(unmix("-q", "-method", method, "-rmse", files / "rmse.tif", files / "scene.img", files / "library.csv", files / "a.tif"))
    scene, a, rmse = read(files / "scene.img"), read(files / "a.tif"), read(files / "rmse.tif")[0]
    e = spectra()
    assert a.shape == (4, 31, 40) and np.isnan(a[:, 7, 9]).all() and np.isnan(rmse[7, 9])
    assert np.isnan(a).sum() == 4
    for y in range(0, 31, 3):
        for x in range(0, 40, 3):
            want, error = reference(e, scene[:, y, x].astype(float), method)
            assert np.allclose(a[:, y, x], want, atol=1e-5), (y, x)
            assert abs(rmse[y, x] - error) < 1e-5 * error + 2e-3
    dataset = gdal.Open(str(files / "a.tif"))
    assert [dataset.GetRasterBand(b + 1).GetDescription() for b in range(4)] == ["m1", "m2", "m3", "m4"]
    assert dataset.GetMetadataItem("HSI_UNMIX_METHOD") == method


def test_tiles_threads_and_interleave_change_no_byte(files):
    succeed(unmix("-q", files / "scene.img", files / "library.csv", files / "a.img", "-of", "ENVI"))
    gdal.Translate(str(files / "bip.img"), str(files / "scene.img"), format="ENVI", creationOptions=["INTERLEAVE=BIP"])
    one = (files / "a.img").read_bytes()
    for k, args in enumerate((["-threads", 3, "-tile", 7, 5], ["-threads", 1, "-tile", 40, 1], ["-memory", "64MB"])):
        for scene in ("scene.img", "bip.img"):
            out = files / ("b%d%s" % (k, scene))
            succeed(unmix("-q", *args, files / scene, files / "library.csv", out, "-of", "ENVI"))
            assert out.read_bytes() == one


def test_a_library_of_other_bands_is_interpolated(files):
    # Spectra are linear between bands, so a library of every other band has the same values at all bands.
    flat = np.array([[100 + 3 * w for w in range(20)], [900 - 7 * w for w in range(20)]], float)
    scene = np.moveaxis(np.random.default_rng(1).dirichlet([1, 1], (6, 7)) @ flat, 2, 0)
    write_scene(files / "lines.img", scene, wavelengths=WAVELENGTHS)
    write_library(files / "half.csv", flat[:, 0:15:2], WAVELENGTHS[0:15:2])
    result = succeed(unmix(files / "lines.img", files / "half.csv", files / "a.tif", "-report", files / "r.json"))
    assert "15 of 20 bands" in result.out
    succeed(unmix("-q", "-b", "1-15", files / "lines.img", write_library(files / "all.csv", flat), files / "b.tif"))
    assert np.allclose(read(files / "a.tif"), read(files / "b.tif"), atol=1e-6)
    assert json.loads((files / "r.json").read_text())["library"]["bands"] == 15


def test_a_library_in_other_units_is_told(files):
    write_library(files / "small.csv", spectra() / 10000)
    result = succeed(unmix("-q", files / "scene.img", files / "small.csv", files / "a.tif"))
    assert "-library-scale" in result.err
    result = succeed(unmix("-q", "-library-scale", 10000, files / "scene.img", files / "small.csv", files / "b.tif"))
    assert result.err == ""
    succeed(unmix("-q", files / "scene.img", files / "library.csv", files / "c.tif"))
    assert np.allclose(read(files / "b.tif"), read(files / "c.tif"), atol=1e-6, equal_nan=True)


def test_a_band_without_values_is_left_out(files):
    scene = read(files / "scene.img")
    scene[11] = np.nan
    write_scene(files / "hole.img", scene, wavelengths=WAVELENGTHS)
    result = succeed(unmix(files / "hole.img", files / "library.csv", files / "a.tif"))
    assert "Warning" in result.err
    bands = [b for b in range(20) if b != 11]
    want, _ = reference(spectra()[:, bands], scene[bands, 2, 3].astype(float), "fcls")
    assert np.allclose(read(files / "a.tif")[:, 2, 3], want, atol=1e-5)


def twice(e):
    return np.vstack([e, e[1]])


BAD = {
    "an endmember twice": (twice, WAVELENGTHS, "'m5'"),
    "a mixture": (lambda e: np.vstack([e, 0.5 * e[0] + 0.5 * e[1]]), WAVELENGTHS, "mixture"),
    "an infinite number": (lambda e: np.where(e == e[2, 4], np.inf, e), WAVELENGTHS, "m3"),
    "other bands without wavelengths": (lambda e: e[:, :7], None, "no wavelengths"),
    "nothing in common": (lambda e: e, [3000 + 10 * b for b in range(20)], "fewer than 2 bands"),
    "more than the bands": (lambda e: spectra(22), WAVELENGTHS, "at most 21"),
}


@pytest.mark.quick
@pytest.mark.parametrize("what", BAD)
def test_libraries_that_cannot_be_used(what, files):
    change, wavelengths, text = BAD[what]
    rows = change(spectra())
    write_library(files / "bad.csv", rows, wavelengths[:rows.shape[1]] if wavelengths else None)
    with assert_untouched(files):
        result = unmix(files / "scene.img", files / "bad.csv", files / "a.tif")
    assert result.code == 1 and text in result.err, result.err


def test_dark_endmembers(files):
    write_library(files / "dark.csv", np.vstack([spectra(2), np.zeros(20)]))
    succeed(unmix("-q", files / "scene.img", files / "dark.csv", files / "a.tif"))
    for method in ("ucls", "nnls"):
        result = unmix("-method", method, files / "scene.img", files / "dark.csv", files / "b.tif")
        assert result.code == 1 and "all zero" in first_error(result)


@pytest.mark.skipif(not (DATA / "jasper_ridge" / "references.sli").exists(), reason="the scene is not here")
@pytest.mark.parametrize("method,rmse,distance", [("nnls", 71.8212, 0.0761), ("scls", 59.9940, 0.1137), ("fcls", 123.3178, 0.0780)])
def test_jasper_ridge(method, rmse, distance, tmp_path):
    folder = DATA / "jasper_ridge"
    succeed(unmix("-q", "-method", method, "-library-scale", 5300, "-rmse", tmp_path / "rmse.tif", folder / "jasper_ridge.img",
                  folder / "references.sli", tmp_path / "a.tif"))
    assert abs(np.nanmean(read(tmp_path / "rmse.tif").astype(float)) - rmse) < 2e-4 * rmse
    published = read(folder / "abundances.tif").astype(float)
    assert abs(np.sqrt(np.nanmean((read(tmp_path / "a.tif") - published) ** 2)) - distance) < 2e-4


def test_a_band_without_values_is_left_out_of_a_library_without_wavelengths(files, tmp_path):
    """The band is found only when every pixel is invalid; the library's values are assigned by position."""
    scene = read(files / "scene.img").astype(np.float32)
    lost = scene.copy()
    lost[6] = np.nan
    write_scene(tmp_path / "lost.img", lost)
    write_scene(tmp_path / "short.img", np.delete(scene, 6, 0))
    e = spectra()
    write_library(tmp_path / "all.csv", e, wavelengths=None)
    write_library(tmp_path / "short.csv", np.delete(e, 6, 1), wavelengths=None)
    result = succeed(unmix("-q", tmp_path / "lost.img", tmp_path / "all.csv", tmp_path / "a.tif"))
    assert "no valid value in band 7" in result.err
    succeed(unmix("-q", tmp_path / "short.img", tmp_path / "short.csv", tmp_path / "b.tif"))
    assert np.array_equal(read(tmp_path / "a.tif"), read(tmp_path / "b.tif"), equal_nan=True)
