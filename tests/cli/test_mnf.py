# SPDX-License-Identifier: MIT
"""gdal_hsi_mnf, compared with numpy in double precision, on synthetic and real scenes; models, inverse and bad
input."""

import json
import os

import numpy as np
import pytest
from osgeo import gdal

from conftest import assert_untouched, first_error, read, real_scene, run, succeed, write_scene

WAVELENGTHS = [400 + 10 * b for b in range(12)]


def mnf(*args):
    return run("gdal_hsi_mnf", *args)


def made(samples=60, lines=50, bands=12, seed=1):
    """Makes smooth fields in several directions, with noise of a different size in every band."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[:lines, :samples]
    fields = [np.sin(0.05 * x + 0.02 * y), np.cos(0.07 * y), x * y / samples / lines]
    data = 1000 + sum(np.cos(0.3 * (k + 1) * np.arange(bands))[:, None, None] * 150 / (k + 1) * f for k, f in enumerate(fields))
    return data + random.normal(0, 1, data.shape) * (2 + np.arange(bands) % 4)[:, None, None]


def reference(data):
    """Returns eigenvalues, loadings (rows), components, mean and noise covariance, after whitening Cn by its
    eigenvectors."""
    valid = np.isfinite(data).all(0) & (data != 0).any(0)
    x = data[:, valid]
    mean = x.mean(1)
    pair = valid[:, 1:] & valid[:, :-1]
    d = (data[:, :, 1:] - data[:, :, :-1])[:, pair]
    noise = d @ d.T / (2 * d.shape[1])
    w, q = np.linalg.eigh(noise)
    white = q / np.sqrt(w)
    values, u = np.linalg.eigh(white.T @ np.cov(x) @ white)
    values, v = values[::-1], (white @ u[:, ::-1]).T
    v = v * np.sign(v[np.arange(len(v)), np.abs(v).argmax(1)])[:, None]
    y = np.full(data.shape, np.nan)
    y[:, valid] = v @ (x - mean[:, None])
    return values, v, y, mean, noise


def check(got, data, nc=7):
    values, _, y, _, _ = reference(data)
    for k in range(nc):
        assert np.array_equal(np.isnan(got[k]), np.isnan(y[k]))
        assert np.nanmax(np.abs(got[k] - y[k])) <= 2e-4 * np.sqrt(values[k]), f"component {k + 1}"


@pytest.fixture
def scene(tmp_path):
    return write_scene(tmp_path / "scene.img", made(), wavelengths=WAVELENGTHS)


@pytest.mark.quick
def test_components_are_numpys_whatever_the_tiles_threads_and_interleave(scene, tmp_path):
    result = succeed(mnf(scene, tmp_path / "y.tif", "-nc", 7, "-report", tmp_path / "r.json"))
    data = read(scene)
    whole = read(tmp_path / "y.tif")
    check(whole, data)
    values = reference(data)[0]
    dataset = gdal.Open(str(tmp_path / "y.tif"))
    for k in range(7):
        band = dataset.GetRasterBand(k + 1)
        assert band.GetDescription() == f"MNF{k + 1}"
        assert float(band.GetMetadataItem("snr")) == pytest.approx(values[k] - 1, rel=1e-8)
        assert f"MNF{k + 1}: eigenvalue" in result.out
    assert json.loads((tmp_path / "r.json").read_text())["snr"] == pytest.approx(values - 1, rel=1e-8)
    gdal.Translate(str(tmp_path / "bip.img"), scene, format="ENVI", creationOptions=["INTERLEAVE=BIP"])
    gdal.Translate(str(tmp_path / "z.tif"), scene, creationOptions=["COMPRESS=DEFLATE", "TILED=YES", "BLOCKXSIZE=16", "BLOCKYSIZE=16"])
    for i, (source, more) in enumerate(((scene, ["-threads", 1]), (scene, ["-tile", 13, 9]), (tmp_path / "bip.img", []),
                                        (tmp_path / "z.tif", []), (scene, ["-memory", "16MB"]))):
        succeed(mnf(source, tmp_path / f"{i}.tif", "-nc", 7, *more))
        assert np.array_equal(read(tmp_path / f"{i}.tif"), whole)


@pytest.mark.parametrize("folder,snr", [("jasper_ridge/jasper_ridge.img", [80.1193, 19.5531, 8.10315, 7.31452]),
                                        ("indian_pines/indian_pines.img", [47.5, 16.1, 12.6])])
def test_real_scenes_have_their_known_ratios(folder, snr, tmp_path):
    source = real_scene(folder)
    succeed(mnf(source, tmp_path / "y.tif", "-model", tmp_path / "m.json", "-bbl", "ignore"))
    model = json.loads((tmp_path / "m.json").read_text())
    digits = 1e-5 if len(snr) == 4 else 3e-3
    assert np.allclose(np.array(model["eigenvalues"][:len(snr)]) - 1, snr, rtol=digits)
    data = read(source)
    check(read(tmp_path / "y.tif"), data)
    values, _, _, _, noise = reference(data)
    assert np.allclose(model["eigenvalues"], values, rtol=1e-8)
    v = np.array(model["loadings"])
    assert np.abs(v @ noise @ v.T - np.eye(len(v))).max() < 1e-8
    assert model["regularised"] is False and len(model["inverse_loadings"]) == len(v)


def test_invalid_pixels_and_pairs_take_no_part(tmp_path):
    data = made()
    data[3, 5:9, 7:20] = -9999
    data[:, 20, ::3] = 0
    data[6] = -9999
    source = write_scene(tmp_path / "s.img", data, nodata=-9999)
    result = succeed(mnf(source, tmp_path / "y.tif", "-nc", 5))
    assert "band 7" in result.err
    seen = np.delete(data, 6, 0)
    seen[seen == -9999] = np.nan
    check(read(tmp_path / "y.tif"), seen.astype("f4").astype(float), 5)


def test_bands_without_noise_are_named_and_left_out(scene, tmp_path):
    data = np.insert(read(scene), 4, 17, axis=0)
    source = write_scene(tmp_path / "s.img", data, wavelengths=list(range(400, 530, 10)))
    result = succeed(mnf(source, tmp_path / "y.tif", "-model", tmp_path / "m.json", "-nc", 12))
    assert "No noise in band 5" in result.out
    assert json.loads((tmp_path / "m.json").read_text())["bands"] == [b for b in range(1, 14) if b != 5]
    succeed(mnf(scene, tmp_path / "z.tif", "-nc", 12))
    assert np.array_equal(read(tmp_path / "y.tif"), read(tmp_path / "z.tif"))
    succeed(mnf("-apply", tmp_path / "m.json", source, tmp_path / "a.tif"))
    assert np.array_equal(read(tmp_path / "a.tif"), read(tmp_path / "y.tif"))
    with assert_untouched(tmp_path):
        result = mnf(source, tmp_path / "n.tif", "-nc", 13)
    assert result.code == 2 and "13" in first_error(result) and "12 bands" in first_error(result)


def test_dependent_bands_are_told(scene, tmp_path):
    data = read(scene)
    source = write_scene(tmp_path / "s.img", np.concatenate([data, 2 * data[:1]]))
    result = succeed(mnf(source, tmp_path / "y.tif", "-model", tmp_path / "m.json"))
    assert "singular" in result.err
    assert json.loads((tmp_path / "m.json").read_text())["regularised"] is True
    assert gdal.Open(str(tmp_path / "y.tif")).GetMetadataItem("HSI_MNF_REGULARISED") == "YES"


def test_a_saved_model_gives_the_same_components_by_wavelength(scene, tmp_path):
    succeed(mnf(scene, tmp_path / "y.tif", "-nc", 5, "-model", tmp_path / "m.json"))
    succeed(mnf("-apply", tmp_path / "m.json", "-nc", 5, scene, tmp_path / "z.tif"))
    assert np.array_equal(read(tmp_path / "y.tif"), read(tmp_path / "z.tif"))
    order = [11, 3] + [b for b in range(12) if b not in (3, 11)]
    shuffled = write_scene(tmp_path / "s.img", read(scene)[order], wavelengths=[WAVELENGTHS[b] for b in order])
    succeed(mnf("-apply", tmp_path / "m.json", "-nc", 5, shuffled, tmp_path / "s.tif"))
    assert np.allclose(read(tmp_path / "y.tif"), read(tmp_path / "s.tif"), rtol=1e-6, atol=1e-4)


def test_the_inverse_gives_the_scene_back_and_fewer_components_a_smooth_one(scene, tmp_path):
    succeed(mnf(scene, tmp_path / "y.tif", "-nc", 12, "-model", tmp_path / "m.json"))
    succeed(mnf("-apply", tmp_path / "m.json", "-inverse", tmp_path / "y.tif", tmp_path / "back.img", "-of", "ENVI"))
    data = read(scene)
    assert np.abs(read(tmp_path / "back.img") - data).max() <= 1e-6 * np.ptp(data) + 6.2e-5  # and the last bit of a float
    succeed(mnf("-apply", tmp_path / "m.json", "-inverse", "-nc", 3, tmp_path / "y.tif", tmp_path / "smooth.tif"))
    values, _, y, mean, noise = reference(data)
    want = mean[:, None, None] + np.tensordot((noise @ reference(data)[1][:3].T), y[:3], 1)
    assert np.allclose(read(tmp_path / "smooth.tif"), want, atol=1e-2)
    assert float(gdal.Open(str(tmp_path / "smooth.tif")).GetRasterBand(2).GetMetadataItem("wavelength")) == 410


def test_the_inverse_takes_components_only(scene, tmp_path):
    model, y = tmp_path / "m.json", tmp_path / "y.tif"
    succeed(mnf(scene, y, "-nc", 12, "-model", model))
    succeed(run("gdal_hsi_pca", scene, tmp_path / "pc.tif", "-nc", 12, "-model", tmp_path / "pca.json"))
    data = read(y)
    fresh = write_scene(tmp_path / "fresh.tif", data[:4], driver="GTiff",
                        names=["MNF1", "MNF2 (filtered)", "MNF3", "MNF4"])
    bare = write_scene(tmp_path / "bare.tif", data[:4], driver="GTiff")
    other = write_scene(tmp_path / "other.tif", data[:4], driver="GTiff", names=["a", "b", "c", "MNF"])
    with assert_untouched(tmp_path):
        for tool, saved, source, more, text in (
                ("gdal_hsi_mnf", model, scene, (), "band 1 has a wavelength"),
                ("gdal_hsi_mnf", model, scene, ("-b", "7,8"), "band 7 has a wavelength"),
                ("gdal_hsi_mnf", model, tmp_path / "pc.tif", (), "band 1 is called PC1"),
                ("gdal_hsi_mnf", model, y, ("-b", "1,3,2"), "band 3 is called MNF3"),
                ("gdal_hsi_pca", tmp_path / "pca.json", y, ("-nc", 3), "band 1 is called MNF1"),
                ("gdal_hsi_pca", tmp_path / "pca.json", scene, (), "band 1 has a wavelength")):
            result = run(tool, "-apply", saved, "-inverse", *more, source, tmp_path / "n.tif")
            assert result.code == 1 and text in first_error(result) and "Use components" in result.err, result
    succeed(mnf("-apply", model, "-inverse", "-nc", 4, y, tmp_path / "want.tif"))
    for source in fresh, bare, other:
        succeed(mnf("-apply", model, "-inverse", "-overwrite", source, tmp_path / "got.tif"))
        assert np.array_equal(read(tmp_path / "got.tif"), read(tmp_path / "want.tif"))


@pytest.mark.parametrize("tool", ["gdal_hsi_mnf", "gdal_hsi_pca"])
@pytest.mark.parametrize("name", ["b.tif", "b.img", "b.vrt"])
def test_the_inverse_has_scale_offset_and_unit_of_the_scene(tool, name, tmp_path):
    data, source = made(), tmp_path / "s.tif"
    write_scene(source, data, driver="GTiff", wavelengths=WAVELENGTHS)
    dataset = gdal.Open(str(source), gdal.GA_Update)
    for b in range(1, 13):
        band = dataset.GetRasterBand(b)
        band.SetScale(1e-4 * b)
        band.SetOffset(-0.1)
        band.SetUnitType("W/m2")
    dataset = band = None

    def values(path, count):
        dataset = gdal.Open(str(path))
        assert dataset.RasterCount == count
        bands = [dataset.GetRasterBand(b + 1) for b in range(count)]
        return [(band.GetScale(), band.GetOffset(), band.GetUnitType()) for band in bands]
    succeed(run(tool, "-b", "2,3,5,9", "-nc", 4, "-model", tmp_path / "m.json", source, tmp_path / "y.tif"))
    assert values(tmp_path / "y.tif", 4) == [(None, None, "")] * 4  # components have no scale
    succeed(run(tool, "-apply", tmp_path / "m.json", "-inverse", "-of", {"tif": "GTiff", "img": "ENVI", "vrt": "VRT"}[name[2:]],
                tmp_path / "y.tif", tmp_path / name))
    found = values(tmp_path / name, 4)
    assert np.allclose([f[0] for f in found], [2e-4, 3e-4, 5e-4, 9e-4], rtol=1e-12, atol=0)
    assert [f[1:] for f in found] == [(-0.1, "W/m2")] * 4
    if name != "b.vrt":  # the values are those to which the scale applies
        assert np.abs(read(tmp_path / name) - data[[1, 2, 4, 8]]).max() < 0.01
    # If the scene states no scale, the inverse states none.
    plain = write_scene(tmp_path / "plain.img", data)
    succeed(run(tool, "-overwrite", "-model", tmp_path / "p.json", "-nc", 4, plain, tmp_path / "y.tif"))
    succeed(run(tool, "-apply", tmp_path / "p.json", "-inverse", tmp_path / "y.tif", tmp_path / "plain.tif"))
    assert values(tmp_path / "plain.tif", 12) == [(None, None, "")] * 12


def test_a_vrt_computes_when_it_is_read(scene, tmp_path):
    succeed(mnf(scene, tmp_path / "y.vrt", "-nc", 3, "-model", tmp_path / "m.json"))
    text = (tmp_path / "y.vrt").read_text()
    assert text.count("hsi_project") == 3
    succeed(mnf(scene, tmp_path / "y.tif", "-nc", 3))
    succeed(mnf("-apply", tmp_path / "m.json", "-inverse", tmp_path / "y.tif", tmp_path / "b.vrt"))
    assert (tmp_path / "b.vrt").read_text().count("hsi_project") == 12


def test_dry_run_prints_both_passes_and_makes_nothing(scene, tmp_path):
    with assert_untouched(tmp_path):
        result = succeed(mnf(scene, tmp_path / "y.tif", "-model", tmp_path / "m.json", "-dry-run"))
    assert "Pass covariances" in result.out and "Pass projection" in result.out


@pytest.mark.quick
@pytest.mark.parametrize("options,code,text", [
    (["-nc", 0], 2, "-nc"), (["-nc", 13], 2, "-nc: 13"), (["-b", 3], 2, "-b"), (["-inverse"], 2, "-inverse"),
    (["-srcwin", 7, 0, 1, 50], 1, "0 pairs"), (["-apply", "nowhere.json"], 1, "nowhere.json"),
    (["-apply", "{model}", "-model", "x.json"], 2, "-model"), (["-apply", "{model}", "-nc", 13], 2, "-nc: 13"),
    (["-apply", "{pca}"], 1, "not a usable MNF model"), (["-model", "{model}"], 1, "already exists"),
    (["-any-scale"], 2, "-any-scale")])
def test_bad_input_is_refused(options, code, text, scene, tmp_path):
    succeed(mnf(scene, tmp_path / "made.tif", "-model", tmp_path / "m.json"))
    succeed(run("gdal_hsi_pca", scene, tmp_path / "pca.tif", "-model", tmp_path / "pca.json"))
    options = [str(o).format(model=tmp_path / "m.json", pca=tmp_path / "pca.json") for o in options]
    with assert_untouched(tmp_path):
        result = mnf(scene, tmp_path / "y.tif", *options)
    assert result.code == code and text in first_error(result), result.err


def test_scenes_without_neighbours_are_errors(tmp_path):
    data = made()
    data[:, ::2, ::2] = np.nan
    data[:, 1::2, 1::2] = np.nan
    source = write_scene(tmp_path / "sieve.img", data)
    with assert_untouched(tmp_path):
        result = mnf(source, tmp_path / "y.tif")
    assert result.code == 1 and "noise cannot be estimated" in first_error(result)
    nothing = write_scene(tmp_path / "n.img", np.zeros((4, 9, 9)))
    result = mnf(nothing, tmp_path / "y.tif")
    assert result.code == 1 and "no pixel is valid" in first_error(result)


def test_a_device_that_is_not_there_is_an_error_and_auto_does_without(scene, tmp_path):
    env = dict(os.environ, CUDA_VISIBLE_DEVICES="")
    with assert_untouched(tmp_path):
        for more in ([], ["-dry-run"]):
            result = run("gdal_hsi_mnf", "-device", "cuda", *more, scene, tmp_path / "y.tif", env=env)
            assert result.code == 1 and "-device cuda" in first_error(result), result.err
        assert run("gdal_hsi_mnf", "-device", "gpu", scene, tmp_path / "y.tif").code == 2
        planned = succeed(run("gdal_hsi_mnf", "-dry-run", scene, tmp_path / "y.tif", env=env))
    assert "CPU, about" in planned.out
    succeed(run("gdal_hsi_mnf", "-device", "auto", "-report", tmp_path / "r.json", scene, tmp_path / "auto.tif", env=env))
    assert json.loads((tmp_path / "r.json").read_text())["device"].startswith("CPU, ")
    succeed(mnf("-device", "cpu", scene, tmp_path / "cpu.tif"))
    assert np.array_equal(read(tmp_path / "auto.tif"), read(tmp_path / "cpu.tif"))
