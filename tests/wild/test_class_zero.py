# SPDX-License-Identifier: MIT
"""Classes numbered from 0, as QGIS and machine learning use them. 0 is a class if this is unambiguous, and no label
disappears without a message. Labels are compared with numpy."""
import json
import os

import numpy as np
import pytest
from conftest import PLUGINS, assert_untouched, first_error, open_band, read, run, succeed, write_scene
from label_files import (LINES, NAMES, PLACE, SAMPLES, labels_on, nodata_of, points_of, scene_of, truth, write_features,
                         write_labels)
from osgeo import gdal, ogr

BOTH = ["labels.tif", "labels.gpkg"]


@pytest.fixture
def zeros(tmp_path):
    """Makes a scene with the classes 0, 1 and 2, as a raster and as points."""
    labels = truth()
    data = scene_of(labels)
    data[:, 4, 7] = np.nan
    write_scene(tmp_path / "scene.tif", data, "GTiff", geotransform=PLACE, epsg=32633, nodata=float("nan"))
    write_labels(tmp_path / "labels.tif", labels, names=NAMES)
    write_features(tmp_path / "labels.gpkg", points_of(labels, lambda v: (int(v), NAMES[v])),
                   [("class", ogr.OFTInteger), ("class_name", ogr.OFTString)])
    return tmp_path


@pytest.mark.parametrize("labels", BOTH)
def test_class_zero_goes_all_the_way(zeros, labels):
    """Class 0 is trained, mapped, assessed, split and averaged like any other class, as 0."""
    train = succeed(run("gdal_hsi_svm_train", "-C", 10, "-gamma", 1, "-probability", zeros / "scene.tif", zeros / labels, zeros / "m.json"))
    assert ("0 is read as a class, since it has the name 'water'" in train.err) == labels.endswith(".tif")
    classes = json.loads((zeros / "m.json").read_text())["classes"]
    valid = np.isfinite(read(zeros / "scene.tif")[0])
    assert [(c["value"], c["name"], c["samples"]) for c in classes] == [
        (v, NAMES[v], ((truth() == v) & valid).sum()) for v in range(3)]
    succeed(run("gdal_hsi_svm_classify", "-probabilities", zeros / "p.tif", zeros / "scene.tif", zeros / "m.json", zeros / "svm.tif"))
    succeed(run("gdal_hsi_sahic", "-device", "cpu", "-iterations", 3, zeros / "scene.tif", zeros / labels, zeros / "sahic.tif"))
    succeed(run("gdal_hsi_regularize", "-labels", zeros / labels, "-map", zeros / "smooth.tif", "-lambda", 0.1, zeros / "p.tif",
                zeros / "q.tif"))
    for name in ("svm.tif", "sahic.tif", "smooth.tif"):
        found = open_band(zeros / name)
        assert np.array_equal(found.ReadAsArray(), np.where(valid, truth(), 255)), name
        assert found.GetNoDataValue() == 255
        assert found.GetCategoryNames() == NAMES
        judged = json.loads(succeed(run("gdal_hsi_accuracy", "-json", zeros / name, zeros / labels)).out)
        assert judged["overall_accuracy"]["value"] == 1 and judged["pixels"] == valid.sum()
        assert [c["value"] for c in judged["classes"]] == [0, 1, 2]
    got, _ = labels_on(zeros, zeros / labels)
    assert np.array_equal(got, truth()) and nodata_of(zeros / "train.tif") == 255
    succeed(run("gdal_hsi_spectra", zeros / "scene.tif", zeros / labels, zeros / "s.csv"))
    table = np.genfromtxt(zeros / "s.csv", delimiter=",", names=True)
    data = read(zeros / "scene.tif")
    for value, name in enumerate(NAMES):
        assert np.allclose(table[name], data[:, (truth() == value) & valid].mean(axis=1), rtol=1e-6)


@pytest.mark.parametrize("name, options, nodata", [("m.tif", [], 255), ("map.dat", ["-of", "ENVI"], 255), ("m.img", [], 255),
                                                   ("m.tif", ["-ot", "Int16"], -1), ("m.tif", ["-ot", "Float32"], -1),
                                                   ("m.tif", ["-ot", "UInt16"], 65535), ("m.tif", ["-dstnodata", 77], 77)])
def test_a_map_with_class_zero_is_read_as_it_was_written(zeros, name, options, nodata):
    for named in (NAMES, None):
        write_labels(zeros / "labels.tif", truth(), names=named)
        succeed(run("gdal_hsi_svm_train", "-zero", "class", "-C", 10, "-gamma", 1, "-overwrite", zeros / "scene.tif",
                    zeros / "labels.tif", zeros / "m.json"))
        succeed(run("gdal_hsi_svm_classify", "-overwrite", *options, zeros / "scene.tif", zeros / "m.json", zeros / name))
        assert nodata_of(zeros / name) == nodata
        got, said = labels_on(zeros, zeros / name)
        assert np.array_equal(got, np.where(np.isfinite(read(zeros / "scene.tif")[0]), truth(), np.nan), equal_nan=True)
        assert "0 is" not in said


def test_a_map_that_is_computed_when_it_is_read(zeros):
    """Pixel functions store 0 for class 0, and nodata where the scene has no value."""
    environment = {**os.environ, "GDAL_DRIVER_PATH": str(PLUGINS)}
    scene, labels = zeros / "scene.tif", zeros / "labels.gpkg"
    succeed(run("gdal_hsi_svm_train", "-C", 10, "-gamma", 1, scene, labels, zeros / "m.json"))
    succeed(run("gdal_hsi_sahic", "-device", "cpu", "-no-spatial", "-model", zeros / "s.json", scene, labels, zeros / "map.tif"))
    succeed(run("gdal_hsi_svm_classify", scene, zeros / "m.json", zeros / "svm.vrt"))
    succeed(run("gdal_hsi_sahic", "-apply", zeros / "s.json", "-no-spatial", scene, "none", zeros / "sahic.vrt"))
    for name in ("svm.vrt", "sahic.vrt"):
        result = succeed(run("gdal_hsi_accuracy", "-json", zeros / name, labels, env=environment))
        judged = json.loads(result.out)
        assert [c["map_pixels"] for c in judged["classes"]] == [c["reference_pixels"] for c in judged["classes"]]
        assert judged["overall_accuracy"]["value"] == 1 and judged["unclassified"] == 1 and len(judged["classes"]) == 3


def test_class_zero_beside_great_numbers(zeros):
    """255 is a class, so the map needs two bytes. 65535 means unclassified, and cannot be a class together with 0."""
    write_labels(zeros / "labels.tif", np.where(truth() == 2, 255, truth()), "u2", names=["water"])
    args = ["gdal_hsi_sahic", "-device", "cpu", "-iterations", 2, "-overwrite", zeros / "scene.tif", zeros / "labels.tif"]
    succeed(run(*args, zeros / "map.tif"))
    found = open_band(zeros / "map.tif")
    assert found.DataType == gdal.GDT_UInt16 and found.GetNoDataValue() == 65535
    result = run(*args, "-ot", "Byte", zeros / "map.tif")
    assert result.code == 2 and "class 255 and class 0 leave no value for pixels without a class" in result.err
    write_labels(zeros / "labels.tif", np.where(truth() == 2, 65535, truth()), "u2", names=["water"])
    with assert_untouched(zeros):
        result = run(*args, zeros / "map.tif")
    assert result.code == 1 and "65535 is not a class number (0 to 65534, where 0 is a class)" in result.err


@pytest.mark.parametrize("word", ["Unclassified", "unlabelled", "Background", "No Data", "no_data", "none", "", "0", "Masked Pixels"])
def test_a_zero_that_is_called_nothing_is_no_label(zeros, word):
    write_labels(zeros / "labels.tif", truth(), names=[word, "forest", "soil"])
    write_features(zeros / "v.gpkg", points_of(truth(), lambda v: (int(v), [word, "forest", "soil"][v])),
                   [("class", ogr.OFTInteger), ("class_name", ogr.OFTString)])
    want = np.where(truth() == 0, np.nan, truth())
    got, said = labels_on(zeros, zeros / "labels.tif")
    assert np.array_equal(got, want, equal_nan=True) and "Warning" not in said
    got, said = labels_on(zeros, zeros / "v.gpkg")
    if word in ("", "0"):  # the features were drawn by hand, and nothing contradicts it
        assert np.array_equal(got, truth()) and f"0 is read as a class, since {(truth() == 0).sum()} features have it" in said
    else:
        assert np.array_equal(got, want, equal_nan=True)
        assert f"{(truth() == 0).sum()} features of class 0 are called '{word}' and read as 'no label'" in said
    for labels in ("labels.tif", "v.gpkg"):
        assert np.array_equal(labels_on(zeros, zeros / labels, "-zero", "class")[0], truth())
        assert np.array_equal(labels_on(zeros, zeros / labels, "-zero", "none")[0], want, equal_nan=True)


def test_a_name_in_an_attribute_table(zeros):
    write_labels(zeros / "labels.tif", truth())
    dataset = gdal.Open(str(zeros / "labels.tif"), gdal.GA_Update)
    table = gdal.RasterAttributeTable()
    table.CreateColumn("Value", gdal.GFT_Integer, gdal.GFU_MinMax)
    table.CreateColumn("Class_Name", gdal.GFT_String, gdal.GFU_Name)
    table.SetRowCount(3)
    for value, name in enumerate(NAMES):
        table.SetValueAsInt(value, 0, value)
        table.SetValueAsString(value, 1, name)
    dataset.GetRasterBand(1).SetDefaultRAT(table)
    dataset = None
    got, said = labels_on(zeros, zeros / "labels.tif")
    assert np.array_equal(got, truth()) and "0 is read as a class, since it has the name 'water'" in said
    assert open_band(zeros / "train.tif").GetNoDataValue() == 255


def test_a_zero_that_is_nodata_and_has_a_name_is_told(zeros):
    write_labels(zeros / "labels.tif", truth(), names=NAMES, nodata=0)
    got, said = labels_on(zeros, zeros / "labels.tif")
    assert np.array_equal(got, np.where(truth() == 0, np.nan, truth()), equal_nan=True)
    assert "0 is read as 'no label', since it is the nodata value, although it has the name 'water'" in said and "-zero class" in said
    got, said = labels_on(zeros, zeros / "labels.tif", "-zero", "class")
    assert np.array_equal(got, truth()) and "Warning" not in said


@pytest.mark.parametrize("dtype, nodata", [("u1", 255), ("f4", float("nan")), ("i2", -1)])
def test_zeros_beside_another_nodata_value_are_counted(zeros, dtype, nodata):
    """Ambiguous: programs declare nodata values that do not occur."""
    labels = truth().astype(float)
    labels[3, :5] = nodata
    count = (labels == 0).sum()
    write_labels(zeros / "labels.tif", labels, dtype, nodata=nodata)
    got, said = labels_on(zeros, zeros / "labels.tif")
    valid = labels != nodata
    assert np.array_equal(got, np.where((labels > 0) & valid, labels, np.nan), equal_nan=True)
    assert f"{count} pixels are 0, which is read as 'no label', although the file's nodata value is" in said
    got, said = labels_on(zeros, zeros / "labels.tif", "-zero", "class")
    assert np.array_equal(got, np.where(valid, labels, np.nan), equal_nan=True) and "Warning" not in said


def test_negative_numbers_are_counted(zeros):
    labels = truth() - 1
    count = (labels < 0).sum()
    write_labels(zeros / "labels.tif", labels, "i2")
    write_features(zeros / "v.gpkg", points_of(labels), [("class", ogr.OFTInteger)])
    for name, things in (("labels.tif", "pixels have"), ("v.gpkg", "features have")):
        for tool in (["gdal_hsi_svm_train", "-zero", "class", "-C", 1, "-gamma", 1, "-overwrite", zeros / "scene.tif", zeros / name, zeros / "m.json"],
                     ["gdal_hsi_spectra", "-overwrite", zeros / "scene.tif", zeros / name, zeros / "s.csv"],
                     ["gdal_hsi_accuracy", zeros / "labels.tif", zeros / name]):
            said = succeed(run(*tool)).err
            assert f"{name}': {count} {things} negative values (the lowest is -1), which are read as 'no label'" in said
        got, said = labels_on(zeros, zeros / name, "-zero", "class")
        assert np.array_equal(got, np.where(labels < 0, np.nan, labels), equal_nan=True) and "negative" in said


def accuracy(*args):
    result = succeed(run("gdal_hsi_accuracy", "-json", *args))
    return json.loads(result.out), result.err


@pytest.mark.parametrize("map_names, reference_names", [(["other", "forest"], ["other", "forest"]), (None, None),
                                                        (["other", "forest"], None), (None, ["other", "forest"])])
def test_accuracy_of_zeros_and_ones(tmp_path, map_names, reference_names):
    reference = (truth() == 1).astype(int)
    mapped = reference ^ (np.random.default_rng(8).random(reference.shape) < 0.1)
    write_labels(tmp_path / "map.tif", mapped, names=map_names)
    write_labels(tmp_path / "reference.tif", reference, names=reference_names)
    write_features(tmp_path / "reference.gpkg", points_of(reference), [("class", ogr.OFTInteger)])
    for name in ("reference.tif", "reference.gpkg"):
        judged, said = accuracy(tmp_path / "map.tif", tmp_path / name)
        assert judged["overall_accuracy"]["value"] == (mapped == reference).mean() and judged["pixels"] == reference.size
        assert judged["confusion_matrix"] == [[((reference == r) & (mapped == m)).sum() for m in (0, 1)] for r in (0, 1)]
        assert "0 is" in said
    judged, said = accuracy("-zero", "none", tmp_path / "map.tif", tmp_path / "reference.tif")
    assert judged["pixels"] == (mapped & reference).sum() and judged["unlabelled"] == (reference == 0).sum()
    assert judged["false_alarms"] == (mapped > reference).sum() and "with a class in the map have no label" in said and "0 is" not in said


def test_unclassified_zeros_are_no_class_for_who_says_so(tmp_path):
    """-unclassified error states the meaning of the map's zeros; with more classes, 0 means unclassified as usual."""
    reference = truth()
    write_labels(tmp_path / "one.tif", reference == 1)
    write_labels(tmp_path / "map.tif", np.where(np.arange(SAMPLES) < 12, 0, reference == 1))
    judged, said = accuracy("-unclassified", "error", tmp_path / "map.tif", tmp_path / "one.tif")
    assert judged["pixels"] == (reference == 1).sum() and "Warning" not in said
    assert judged["overall_accuracy"]["value"] == pytest.approx((reference[:, 12:] == 1).sum() / (reference == 1).sum())
    write_labels(tmp_path / "map.tif", reference)
    judged, said = accuracy(tmp_path / "map.tif", tmp_path / "map.tif")
    assert judged["pixels"] == (reference > 0).sum() and "Warning" not in said


def test_regularize_takes_the_numbers_of_bands(zeros):
    """Band k is class k only without other information: here the classes are 0, 2 and 5."""
    numbers = np.array([0, 2, 5])
    labels = numbers[truth()]
    write_labels(zeros / "labels.tif", labels, names=["water", "", "forest", "", "", "soil"])
    succeed(run("gdal_hsi_sahic", "-device", "cpu", "-no-spatial", "-probabilities", zeros / "p.tif", zeros / "scene.tif",
                zeros / "labels.tif", zeros / "map.tif"))
    fixed = np.where(np.arange(SAMPLES) < 6, np.roll(labels, 1, axis=0), 77)
    write_labels(zeros / "fixed.tif", np.where(fixed == 77, 255, fixed), names=["water"], nodata=255)
    succeed(run("gdal_hsi_regularize", "-labels", zeros / "fixed.tif", "-map", zeros / "smooth.tif", "-lambda", 1e-6, zeros / "p.tif",
                zeros / "q.tif"))
    valid = np.isfinite(read(zeros / "scene.tif")[0])
    want = np.where(valid, np.where(fixed == 77, labels, fixed), np.nan)
    assert np.array_equal(read(zeros / "smooth.tif")[0], want, equal_nan=True)
    write_labels(zeros / "fixed.tif", np.full((LINES, SAMPLES), 1))
    result = run("gdal_hsi_regularize", "-labels", zeros / "fixed.tif", zeros / "p.tif", zeros / "r.tif")
    assert result.code == 1 and "class 1, but the probabilities have 3 classes" in first_error(result)
