# SPDX-License-Identifier: MIT
"""gdal_hsi_pca, compared with LAPACK in double precision (numpy), on synthetic and real scenes; models, inverse and bad
input."""

import json

import numpy as np
import pytest
from osgeo import gdal

from conftest import assert_untouched, cube, first_error, open_band, real_scene, run, succeed, write_utm_scene as write_scene


def pca(*args, **kwargs):
    return run("gdal_hsi_pca", "-device", "cpu", *args, **kwargs)


def values(path):
    """Returns bands as double, nodata as NaN."""
    dataset = gdal.Open(str(path))
    data = dataset.ReadAsArray().astype(float).reshape(dataset.RasterCount, dataset.RasterYSize, dataset.RasterXSize)
    nodata = dataset.GetRasterBand(1).GetNoDataValue()
    if nodata is not None and not np.isnan(nodata):
        data[data == nodata] = np.nan
    return data


def reference(data):
    """Returns mean, eigenvalues and loadings of the valid pixels by LAPACK, and the components."""
    valid = np.isfinite(data).all(0) & (data != 0).any(0)
    x = data[:, valid]
    mean = x.mean(1)
    w, v = np.linalg.eigh(np.cov(x))
    w, v = w[::-1], v[:, ::-1].T
    v = v * np.sign(v[np.arange(len(v)), np.abs(v).argmax(1)])[:, None]
    y = np.full(data.shape, np.nan)
    y[:, valid] = v @ (x - mean[:, None])
    return valid, mean, w, v, y


def check_components(got, data, nc=7):
    valid, _, w, v, y = reference(data)
    assert np.array_equal(np.isfinite(got).all(0), valid)
    assert np.array_equal(np.isnan(got).all(0), ~valid)
    for k in range(nc):
        assert np.abs(got[k][valid] - y[k][valid]).max() <= 1e-4 * np.sqrt(w[k]), f"component {k + 1}"


@pytest.fixture
def scene(tmp_path):
    return write_scene(tmp_path / "scene.img", cube(60, 50, 20), wavelengths=[400 + 10 * b for b in range(20)])


@pytest.mark.parametrize("folder,nodata", [("indian_pines/indian_pines.img", None), ("jasper_ridge/jasper_ridge.img", None), ("pavia_centre/pavia_centre.img", None),
                                           ("enmap_berlin/EnMAP_BerlinUrbanGradient.bsq", -99)])
def test_real_scenes_equal_lapack(folder, nodata, tmp_path):
    source = real_scene(folder)
    succeed(pca(source, tmp_path / "y.tif", "-model", tmp_path / "m.json", "-bbl", "ignore"))
    data = values(source)
    check_components(values(tmp_path / "y.tif"), data)
    model = json.loads((tmp_path / "m.json").read_text())
    v = np.array(model["loadings"])
    assert np.abs(v @ v.T - np.eye(7)).max() < 1e-6
    assert np.allclose(model["eigenvalues"][:7], reference(data)[2][:7], rtol=1e-6)


@pytest.mark.quick
def test_synthetic_scene_equals_lapack_whatever_the_tiles_and_threads(scene, tmp_path):
    succeed(pca(scene, tmp_path / "y.tif", "-nc", 7))
    whole = values(tmp_path / "y.tif")
    check_components(whole, values(scene), 4)  # from the fifth on, components are noise of nearly equal variance
    for i, more in enumerate((["-threads", 1], ["-tile", 13, 9], ["-tile", 60, 1, "-threads", 2], ["-memory", "8MB"])):
        succeed(pca(scene, tmp_path / f"{i}.tif", "-nc", 7, *more))
        assert np.array_equal(values(tmp_path / f"{i}.tif"), whole)


def test_compressed_scenes_are_read_once_and_give_the_same(scene, tmp_path):
    gdal.Translate(str(tmp_path / "z.tif"), scene, creationOptions=["COMPRESS=DEFLATE", "TILED=YES"])
    succeed(pca(scene, tmp_path / "a.tif"))
    succeed(pca(tmp_path / "z.tif", tmp_path / "b.tif", "-report", tmp_path / "r.json"))
    assert np.array_equal(values(tmp_path / "a.tif"), values(tmp_path / "b.tif"))
    passes = json.loads((tmp_path / "r.json").read_text())["passes"]
    assert [p["bytes_read"] > 0 for p in passes] == [True, False]


def test_bands_are_named_and_tell_their_variance(scene, tmp_path):
    result = succeed(pca(scene, tmp_path / "y.tif", "-nc", 3, "-report", tmp_path / "r.json"))
    dataset = gdal.Open(str(tmp_path / "y.tif"))
    assert [dataset.GetRasterBand(b).GetDescription() for b in (1, 2, 3)] == ["PC1", "PC2", "PC3"]
    w = reference(values(scene))[2]
    for b in range(3):
        items = dataset.GetRasterBand(b + 1).GetMetadata()
        assert float(items["explained_variance"]) == pytest.approx(w[b], rel=1e-6)
        assert float(items["explained_variance_ratio"]) == pytest.approx(w[b] / w.sum(), rel=1e-6)
        assert f"PC{b + 1}: variance" in result.out
    assert dataset.GetGeoTransform() == gdal.Open(scene).GetGeoTransform()
    assert dataset.GetSpatialRef().IsSame(gdal.Open(scene).GetSpatialRef())
    assert json.loads((tmp_path / "r.json").read_text())["explained_variance_ratio"][0] == pytest.approx(w[0] / w.sum())


def test_invalid_pixels_and_empty_bands_take_no_part(tmp_path):
    data = cube(40, 30, 10)
    data[3, 5:9, 7:20] = -9999
    data[:, 20, 20] = 0
    data[6] = -9999
    source = write_scene(tmp_path / "s.img", data, nodata=-9999)
    result = succeed(pca(source, tmp_path / "y.tif", "-nc", 5))
    assert "band 7: left out" in result.err
    seen = np.delete(data, 6, 0)
    seen[seen == -9999] = np.nan
    check_components(values(tmp_path / "y.tif"), seen.astype("f4").astype(float), 5)
    assert open_band(tmp_path / "y.tif").GetNoDataValue() == -9999


@pytest.mark.parametrize("fill", [65535, 1e25, 3e38])
def test_a_band_of_fill_values_does_not_hide_the_others(fill, tmp_path):
    data = cube(101, 97, 5)
    write_scene(tmp_path / "plain.img", data)
    write_scene(tmp_path / "filled.img", np.insert(data, 2, fill, axis=0))
    succeed(pca("-q", "-nc", 3, tmp_path / "plain.img", tmp_path / "plain.tif"))
    result = succeed(pca("-q", "-nc", 3, tmp_path / "filled.img", tmp_path / "filled.tif"))
    assert np.array_equal(values(tmp_path / "filled.tif"), values(tmp_path / "plain.tif"))
    assert ("band 3 has a mean of" in result.err and "-srcnodata" in result.err) == (fill > 1e6)


def test_bad_bands_are_left_out(tmp_path):
    data = cube(30, 30, 8)
    source = write_scene(tmp_path / "s.img", data, bbl=[1, 1, 0, 1, 1, 1, 1, 0])
    succeed(pca(source, tmp_path / "y.tif", "-nc", 5))
    check_components(values(tmp_path / "y.tif"), np.delete(data, [2, 7], 0).astype("f4").astype(float), 5)


def test_a_saved_model_gives_the_same_components(scene, tmp_path):
    for options in ([], ["-scale"], ["-whiten"], ["-scale", "-whiten"]):
        succeed(pca(scene, tmp_path / "y.tif", "-nc", 5, "-model", tmp_path / "m.json", "-overwrite", *options))
        succeed(pca("-apply", tmp_path / "m.json", scene, tmp_path / "z.tif", "-overwrite"))
        assert np.array_equal(values(tmp_path / "y.tif"), values(tmp_path / "z.tif"))
    assert np.allclose(np.nanvar(values(tmp_path / "z.tif"), axis=(1, 2), ddof=1), 1, atol=1e-4)


def test_a_model_is_applied_by_wavelength(scene, tmp_path):
    succeed(pca(scene, tmp_path / "y.tif", "-nc", 4, "-model", tmp_path / "m.json"))
    data = values(scene)
    order = [19, 3] + [b for b in range(20) if b not in (3, 19)]
    more = np.concatenate([data[order], data[:2]])
    more[20:] = np.nan  # bands that the model does not use make no pixel invalid
    shuffled = write_scene(tmp_path / "shuffled.img", more,
                           wavelengths=[400 + 10 * b for b in order] + [2000, 2100])
    succeed(pca("-apply", tmp_path / "m.json", shuffled, tmp_path / "z.tif"))
    assert np.allclose(values(tmp_path / "y.tif"), values(tmp_path / "z.tif"), rtol=1e-6, atol=1e-4)
    other = write_scene(tmp_path / "other.img", data, wavelengths=[405 + 10 * b for b in range(20)])
    with assert_untouched(tmp_path):
        result = pca("-apply", tmp_path / "m.json", other, tmp_path / "n.tif")
    assert result.code == 1
    assert "400.0 nm" in first_error(result)


def test_the_inverse_gives_the_spectra_back(scene, tmp_path):
    succeed(pca(scene, tmp_path / "y.tif", "-nc", 20, "-model", tmp_path / "m.json"))
    succeed(pca("-apply", tmp_path / "m.json", "-inverse", tmp_path / "y.tif", tmp_path / "back.img", "-of", "ENVI"))
    assert np.allclose(values(tmp_path / "back.img"), values(scene), rtol=1e-5)
    succeed(pca("-apply", tmp_path / "m.json", "-inverse", "-nc", 3, tmp_path / "y.tif", tmp_path / "smooth.tif"))
    data = values(scene)
    _, mean, w, v, y = reference(data)
    want = mean[:, None, None] + np.tensordot(v[:3].T, y[:3], 1)
    assert np.allclose(values(tmp_path / "smooth.tif"), want, rtol=1e-4, atol=1e-2)
    band = open_band(tmp_path / "smooth.tif", 2)
    assert float(band.GetMetadataItem("wavelength")) == 410


def test_dry_run_prints_both_passes_and_makes_nothing(scene, tmp_path):
    with assert_untouched(tmp_path):
        result = succeed(pca(scene, tmp_path / "y.tif", "-model", tmp_path / "m.json", "-dry-run"))
    assert "Pass covariance" in result.out and "Pass projection" in result.out


@pytest.mark.quick
@pytest.mark.parametrize("options,code,text", [
    (["-nc", 0], 2, "-nc"), (["-nc", -3], 2, "-nc"), (["-nc", 21], 2, "-nc: 21"), (["-b", 3], 2, "-b"),
    (["-inverse"], 2, "-inverse"), (["-apply", "nowhere.json"], 1, "nowhere.json"),
    (["-apply", "{model}", "-scale"], 2, "-scale"), (["-apply", "{model}", "-whiten"], 2, "-whiten"),
    (["-apply", "{model}", "-model", "x.json"], 2, "-model"), (["-apply", "{model}", "-nc", 6], 2, "-nc: 6"),
    (["-apply", "{model}", "-b", "1-19"], 1, "was made for 20 bands"), (["-apply", "{scene}"], 1, "is not a text"),
    (["-apply", "{model}", "-b", "1-4,6-20"], 1, "the model's band 5 (440.0 nm) has no match"),
    (["-apply", "{model}", "-inverse"], 0, ""), (["-model", "{model}"], 1, "already exists")])
def test_bad_input_is_refused(options, code, text, scene, tmp_path):
    succeed(pca(scene, tmp_path / "made.tif", "-nc", 5, "-model", tmp_path / "m.json"))
    names = {"model": tmp_path / "m.json", "scene": scene}
    options = [str(o).format(**names) for o in options]
    if code == 0:  # 20 bands are more than the model has components
        with assert_untouched(tmp_path):
            result = pca(scene, tmp_path / "y.tif", *options)
        assert result.code == 2 and "-nc" in first_error(result)
        return
    with assert_untouched(tmp_path):
        result = pca(scene, tmp_path / "y.tif", *options)
    assert result.code == code
    assert text in first_error(result)


def test_a_scene_without_valid_pixels_is_an_error(tmp_path):
    source = write_scene(tmp_path / "s.img", np.zeros((4, 9, 9)))
    with assert_untouched(tmp_path):
        result = pca(source, tmp_path / "y.tif", "-nc", 2)
    assert result.code == 1 and "no pixel is valid" in first_error(result)
