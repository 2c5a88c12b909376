# SPDX-License-Identifier: MIT
"""Models and the scale of the values to which they are applied: equal, convertible, contradictory, unknown; and values
far outside the model's range."""

import json
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from osgeo import gdal

from conftest import assert_untouched, first_error, read, run, succeed, write_utm_scene as write_scene

SAMPLES, LINES, BANDS = 60, 50, 9
TOOLS = ["pca", "svm", "mlr"]


def field():
    line, sample = np.mgrid[:LINES, :SAMPLES]
    return 1 + (line // 9 + sample // 8) % 3


def reflectance():
    """Returns reflectances in 0..1 as multiples of 1/10000."""
    random = np.random.default_rng(3)
    spectra = random.uniform(0.05, 0.45, (4, BANDS))
    data = np.moveaxis(spectra[field()], 2, 0) + random.normal(0, 0.01, (BANDS, LINES, SAMPLES))
    return np.round(np.maximum(data, 0.001), 4)


def write(path, factor, dtype="f4", scale=None, offset=0.0, unit="", envi=None):
    """Writes reflectance() * factor, with these properties of the bands."""
    data = reflectance() * factor
    write_scene(path, np.round(data) if dtype == "i2" else data, driver="ENVI" if envi else "GTiff", dtype=dtype)
    if envi:
        with open(path.with_suffix(".hdr"), "a") as header:
            header.write(envi)
        return path
    dataset = gdal.Open(str(path), gdal.GA_Update)
    for b in range(BANDS):
        band = dataset.GetRasterBand(b + 1)
        if scale is not None:
            band.SetScale(scale)
            band.SetOffset(offset)
        if unit:
            band.SetUnitType(unit)
    band = dataset = None
    return path


@pytest.fixture
def files(tmp_path):
    labels = gdal.GetDriverByName("GTiff").Create(str(tmp_path / "labels.tif"), SAMPLES, LINES, 1)
    labels.SetGeoTransform((500000, 20, 0, 4480000, 0, -20))
    labels.SetProjection("EPSG:32616")
    chosen = field() * (np.random.default_rng(1).uniform(size=(LINES, SAMPLES)) < 0.1)
    labels.GetRasterBand(1).WriteArray(chosen.astype(np.uint8))
    labels = None
    return tmp_path


def train(tool, folder, scene):
    model = folder / f"{tool}.json"
    labels = folder / "labels.tif"
    if tool == "pca":
        succeed(run("gdal_hsi_pca", "-device", "cpu", "-overwrite", "-nc", 3, "-model", model, scene, folder / "first.tif"))
    elif tool == "svm":
        succeed(run("gdal_hsi_svm_train", "-overwrite", "-C", 10, "-gamma", 1, scene, labels, model))
        succeed(run("gdal_hsi_svm_classify", "-overwrite", "-device", "cpu", scene, model, folder / "first.tif"))
    else:
        succeed(run("gdal_hsi_sahic", "-overwrite", "-device", "cpu", "-no-spatial", "-model", model, scene, labels, folder / "first.tif"))
    return model


def apply(tool, model, scene, dst, *args):
    args = ("-device", "cpu", "-report", dst.with_suffix(".run.json"), *args)
    if tool == "pca":
        return run("gdal_hsi_pca", *args, "-apply", model, scene, dst)
    if tool == "svm":
        return run("gdal_hsi_svm_classify", *args, scene, model, dst)
    return run("gdal_hsi_sahic", *args, "-no-spatial", "-apply", model, scene, "none", dst)


def report(dst):
    return json.loads(dst.with_suffix(".run.json").read_text())


def check_same(tool, folder, dst):
    first, second = read(folder / "first.tif"), read(dst)
    if tool == "pca":
        np.testing.assert_allclose(second, first, rtol=0, atol=2e-5 * first.std())
    else:
        assert (first == second).mean() > 0.999


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("trained, applied", [(10000, 1), (1, 10000), (100, 1), (1, 255)])
def test_another_scale_without_a_word_is_a_warning(files, tool, trained, applied):
    model = train(tool, files, write(files / "a.tif", trained))
    result = succeed(apply(tool, model, write(files / "b.tif", applied), files / "o.tif"))
    facts = report(files / "o.tif")
    assert facts["value_range"]["far_outside_share"] > 0.9
    assert any("far outside" in w and "check that the scale is the same" in w for w in facts["warnings"])
    assert "Warning: " in result.err and "100 % of the pixels" in result.err


@pytest.mark.parametrize("tool", TOOLS)
def test_a_scale_that_the_model_does_not_know_is_a_warning(files, tool):
    """A model of reflectances has no scale, and a scene of integers has one."""
    model = train(tool, files, write(files / "a.tif", 1))
    document = json.loads(model.read_text())
    assert "values" not in document.get("features", document)
    result = succeed(apply(tool, model, write(files / "b.tif", 10000, "i2", scale=1e-4), files / "o.tif"))
    assert "Warning: 100 % of the pixels are far outside the range that the model was made from" in result.err


@pytest.mark.parametrize("tool", TOOLS)
def test_the_same_numbers_are_no_warning(files, tool):
    scene = write(files / "a.tif", 10000, "i2", scale=1e-4, unit="reflectance")
    model = train(tool, files, scene)
    result = succeed(apply(tool, model, scene, files / "o.tif"))
    assert result.err == ""
    facts = report(files / "o.tif")
    assert facts["value_range"]["far_outside"] == 0 and facts["value_range"]["pixels_looked_at"] == SAMPLES * LINES
    assert not facts["value_scale"]["converted"]
    assert (files / "o.tif").read_bytes() != b"" and (read(files / "first.tif") == read(files / "o.tif")).all()


@pytest.mark.quick
@pytest.mark.parametrize("tool", TOOLS)
def test_scales_that_both_sides_tell_are_converted(files, tool):
    model = train(tool, files, write(files / "a.tif", 10000, "i2", scale=1e-4))
    percent = write(files / "b.tif", 100, scale=0.01)
    result = succeed(apply(tool, model, percent, files / "o.tif"))
    assert "scale 0.01" in result.out and "scale 0.0001" in result.out and "converted" in result.out
    facts = report(files / "o.tif")
    assert facts["value_scale"]["converted"] and facts["value_range"]["far_outside"] == 0
    assert result.err == ""
    check_same(tool, files, files / "o.tif")
    # Values that are used unchanged have another range, and a warning states this.
    raw = succeed(apply(tool, model, percent, files / "raw.tif", "-any-scale"))
    assert "far outside" in raw.err


@pytest.mark.parametrize("tool", TOOLS)
def test_offsets_are_converted(files, tool):
    model = train(tool, files, write(files / "a.tif", 10000, "i2", scale=1e-4))
    shifted = write(files / "b.tif", 1000, scale=1e-3)
    dataset = gdal.Open(str(shifted), gdal.GA_Update)
    for b in range(BANDS):
        band = dataset.GetRasterBand(b + 1)
        band.WriteArray(band.ReadAsArray() + np.float32(500))
        band.SetOffset(-0.5)
    band = dataset = None
    assert succeed(apply(tool, model, shifted, files / "o.tif")).err == ""
    check_same(tool, files, files / "o.tif")


@pytest.mark.parametrize("tool", TOOLS)
def test_an_envi_header_tells_its_scale(files, tool):
    model = train(tool, files, write(files / "a.img", 10000, "i2", envi="reflectance scale factor = 10000\n"))
    assert json.loads(model.read_text()).get("features", json.loads(model.read_text()))["values"]["scale"] == 1e-4
    assert succeed(apply(tool, model, write(files / "b.tif", 1000, scale=1e-3), files / "o.tif")).err == ""
    check_same(tool, files, files / "o.tif")
    gains = ", ".join(["0.01"] * BANDS)
    lists = write(files / "c.img", 100, envi=f"data reflectance gain values = {{{gains}}}\n")
    assert succeed(apply(tool, model, lists, files / "p.tif")).err == ""
    check_same(tool, files, files / "p.tif")


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("dst", ["o.tif", "o.vrt"])
@pytest.mark.parametrize("scale, unit, words", [(0.02, "W/m2/sr/um", "different units"), (-1e-4, "", "the factor between them is not above 0")])
def test_contradicting_scales_are_refused(files, tool, dst, scale, unit, words):
    model = train(tool, files, write(files / "a.tif", 10000, "i2", scale=1e-4, unit="reflectance"))
    other = write(files / "b.tif", 5000, "i2", scale=scale, unit=unit)
    apply(tool, model, other, files / dst)
    (files / dst).with_suffix(".run.json").unlink()
    with assert_untouched(files):
        result = run({"pca": "gdal_hsi_pca", "svm": "gdal_hsi_svm_classify", "mlr": "gdal_hsi_sahic"}[tool], "-device", "cpu",
                     *{"pca": ["-apply", model, other, files / dst], "svm": [other, model, files / dst],
                       "mlr": ["-no-spatial", "-apply", model, other, "none", files / dst]}[tool])
    assert result.code == 1
    assert "scale 0.0001" in first_error(result) and words in first_error(result), result.err
    assert str(scale) in first_error(result) or "-0.0001" in first_error(result)
    assert "-any-scale" in result.err
    succeed(apply(tool, model, other, files / dst, "-any-scale"))


def test_bands_of_different_factors(files):
    """SVM models and components are rescaled band by band; the kernel of the regression has one scale for all bands."""
    scene = write(files / "a.tif", 10000, "i2", scale=1e-4)
    other = write(files / "b.tif", 10000, scale=1e-4)
    dataset = gdal.Open(str(other), gdal.GA_Update)
    band = dataset.GetRasterBand(4)
    band.WriteArray(band.ReadAsArray() / np.float32(8))
    band.SetScale(8e-4)
    band = dataset = None
    for tool in ("pca", "svm"):
        assert succeed(apply(tool, train(tool, files, scene), other, files / f"{tool}.tif")).err == ""
        check_same(tool, files, files / f"{tool}.tif")
    result = apply("mlr", train("mlr", files, scene), other, files / "mlr.tif")
    assert result.code == 1 and "the factor between them differs by band" in first_error(result)
    assert not (files / "mlr.tif").exists()


def test_units_alone_are_a_warning(files):
    model = train("svm", files, write(files / "a.tif", 10000, "i2", scale=1e-4, unit="reflectance"))
    result = succeed(apply("svm", model, write(files / "b.tif", 10000, "i2", scale=1e-4, unit="1"), files / "o.tif"))
    assert "unit" in result.err and "reflectance" in result.err
    assert (read(files / "first.tif") == read(files / "o.tif")).all()


def test_a_vrt_is_made_for_the_scale_of_its_source(files):
    model = train("pca", files, write(files / "a.tif", 10000, "i2", scale=1e-4))

    def weights(scene, dst):
        succeed(apply("pca", model, scene, files / dst))
        found = [node for node in ElementTree.parse(files / dst).iter() if "weights" in node.attrib]
        return np.array([[float(x) for x in node.attrib["weights"].split()] for node in found])

    own = weights(files / "a.tif", "a.vrt")
    percent = weights(write(files / "b.tif", 100, scale=0.01), "b.vrt")
    assert own.shape == (3, BANDS)
    np.testing.assert_allclose(percent, 100 * own, rtol=1e-12)


@pytest.mark.parametrize("tool", TOOLS)
def test_models_without_these_entries_still_load(files, tool):
    scene = write(files / "a.tif", 10000, "i2", scale=1e-4)
    model = train(tool, files, scene)
    document = json.loads(model.read_text())
    bands = document.get("features", document)
    assert bands["values"] == {"scale": 1e-4, "offset": 0}
    assert len(bands["minimum"]) == len(bands["maximum"]) == len(bands["mean"]) == BANDS
    assert all(low <= mean <= high for low, mean, high in zip(bands["minimum"], bands["mean"], bands["maximum"]))
    del document["checksum"]  # added in later versions, with it
    for key in {"pca": ["values", "minimum", "maximum"], "svm": ["values", "mean"], "mlr": ["values", "minimum", "maximum", "mean"]}[tool]:
        del bands[key]
    model.write_text(json.dumps(document))
    assert succeed(apply(tool, model, scene, files / "o.tif")).err == ""
    assert (read(files / "first.tif") == read(files / "o.tif")).all()


def test_what_is_found_does_not_depend_on_tiles_and_threads(files):
    """The scene is larger than the grid of sampled pixels, including the halo."""
    data = np.tile(reflectance(), (1, 6, 5))
    data[:, 120:200, 30:170] *= 300
    scene = write_scene(files / "large.tif", data, driver="GTiff", dtype="f4", options=["TILED=YES", "BLOCKXSIZE=64", "BLOCKYSIZE=32"])
    first = write(files / "a.tif", 1)
    for tool in TOOLS:
        model = train(tool, files, first)
        found = []
        for options in ([], ["-tile", 64, 32, "-threads", 3], ["-tile", 37, 11, "-threads", 1], ["-tile", 300, 7, "-threads", 2]):
            succeed(apply(tool, model, scene, files / "o.tif", "-overwrite", *options))
            found.append(report(files / "o.tif")["value_range"])
        assert all(f == found[0] for f in found)
        assert 4096 <= found[0]["pixels_looked_at"] < 16384
        assert abs(found[0]["far_outside_share"] - 80 * 140 / (300 * 300)) < 0.01


def test_the_random_field_looks_once_at_each_pixel(files):
    model = train("mlr", files, write(files / "a.tif", 10000))
    result = succeed(run("gdal_hsi_sahic", "-device", "cpu", "-iterations", 20, "-tile", 17, 13, "-threads", 2, "-mu", 0.05,
                         "-report", files / "run.json", "-apply", model, write(files / "b.tif", 1), "none", files / "o.tif"))
    facts = json.loads((files / "run.json").read_text())["value_range"]
    assert facts["pixels_looked_at"] == facts["far_outside"] == SAMPLES * LINES
    assert "100 % of the pixels" in result.err


@pytest.mark.parametrize("args", [
    ["gdal_hsi_pca", "-any-scale", "a", "b"], ["gdal_hsi_sahic", "-any-scale", "a", "b", "c"],
    ["gdal_hsi_pca", "-apply", "m", "-inverse", "-any-scale", "a", "b"]])
def test_any_scale_needs_a_model_to_compare_with(args):
    result = run(*args)
    assert result.code == 2 and "-any-scale" in first_error(result)
