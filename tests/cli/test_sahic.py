# SPDX-License-Identifier: MIT
"""gdal_hsi_sahic on files: the map beside its probabilities, tiles and memory limits, borders, models, bad input."""

import json

import numpy as np
import pytest
from osgeo import gdal

from conftest import assert_untouched, first_error, run, succeed, write_scene
from test_classification import COLOURS, NAMES, read, scene_of, truth, write_labels

gdal.UseExceptions()


@pytest.fixture
def files(tmp_path):
    field = truth(90, 80)
    write_scene(tmp_path / "scene.dat", scene_of(field, noise=500.0), wavelengths=[500 + 50 * b for b in range(8)])
    few = np.where(np.random.default_rng(4).uniform(size=field.shape) < 0.03, field, 0).astype(np.uint8)
    write_labels(tmp_path / "labels.tif", few)
    return tmp_path


def sahic(folder, *args, labels="labels.tif", dst="map.tif", scene="scene.dat"):
    return run("gdal_hsi_sahic", "-q", "-device", "cpu", *args, folder / scene,
               labels if labels == "none" else folder / labels, folder / dst)


def test_map_probabilities_and_legend(files):
    succeed(sahic(files, "-probabilities", files / "p.tif", "-confidence", files / "c.tif", "-report",
                  files / "r.json"))
    mapped, p, c, labels = (read(files / n) for n in ("map.tif", "p.tif", "c.tif", "labels.tif"))
    assert p.min() >= 0 and np.abs(p.sum(axis=0) - 1).max() < 1e-5
    assert np.array_equal(p.argmax(axis=0) + 1, mapped)
    assert np.array_equal(p.max(axis=0), c)
    assert np.array_equal(mapped[labels > 0], labels[labels > 0])
    succeed(sahic(files, "-no-spatial", dst="alone.tif"))
    alone = read(files / "alone.tif")
    changes = [(m[1:] != m[:-1]).sum() + (m[:, 1:] != m[:, :-1]).sum() for m in (mapped, alone)]
    assert changes[0] < changes[1]
    dataset = gdal.Open(str(files / "map.tif"))
    band = dataset.GetRasterBand(1)
    assert dataset.GetProjection()  # GDAL 3.6 reads the side file, and with it category names, only now
    assert band.GetCategoryNames()[1:4] == NAMES and band.GetNoDataValue() == 0
    assert band.GetColorTable().GetColorEntry(1) == COLOURS[0]
    report = json.loads((files / "r.json").read_text())
    assert report["training"]["iterations"] == 200 and report["training"]["active_features"] > 0
    assert report["training"]["objective"] > 0 and report["mrf"]["iterations"] == 200
    assert set(report["mrf"]["residuals"]) == {"data", "positive", "sum_to_one", "smooth", "differences", "change"}
    assert sum(one["pixels"] for one in report["classes"]) == 90 * 80


@pytest.mark.parametrize("boundary", ["reflect", "periodic"])
def test_tiles_and_threads_give_the_whole(files, boundary):
    options = ["-boundary", boundary, "-overwrite"]
    succeed(sahic(files, *options, "-probabilities", files / "p.tif"))
    whole, labels = read(files / "p.tif"), read(files / "map.tif")
    succeed(sahic(files, *options, "-threads", "1", dst="one.tif"))
    assert np.array_equal(read(files / "one.tif"), labels)
    succeed(sahic(files, *options, "-tile", "32", "48", "-probabilities", files / "t.tif", "-report", files / "r.json",
                  dst="tiled.tif"))
    assert json.loads((files / "r.json").read_text())["mrf"]["tiles"] == 6
    assert np.abs(read(files / "t.tif") - whole).max() < 1e-4
    assert (read(files / "tiled.tif") == labels).mean() >= 0.9999


def test_the_two_borders_differ(files):
    for boundary in ("reflect", "periodic"):
        succeed(sahic(files, "-boundary", boundary, "-probabilities", files / f"{boundary}.tif", dst=f"{boundary}_m.tif"))
    assert np.abs(read(files / "reflect.tif") - read(files / "periodic.tif")).max() > 1e-3


def test_saved_model_gives_the_same_map(files):
    succeed(sahic(files, "-model", files / "m.json", "-probabilities", files / "p.tif"))
    succeed(sahic(files, "-apply", files / "m.json", "-probabilities", files / "q.tif", dst="again.tif"))
    assert np.array_equal(read(files / "p.tif"), read(files / "q.tif"))
    succeed(sahic(files, "-apply", files / "m.json", labels="none", dst="free.tif"))
    assert read(files / "free.tif").max() == 3


def test_invalid_pixels_have_no_class(files):
    data = scene_of(truth(90, 80), noise=500.0)
    data[:, 10:20, 30:50] = -9999
    write_scene(files / "holes.tif", data, driver="GTiff", nodata=-9999)
    succeed(sahic(files, "-probabilities", files / "p.tif", scene="holes.tif"))
    mapped = read(files / "map.tif")
    assert (mapped[10:20, 30:50] == 0).all() and (mapped == 0).sum() == 200
    assert (read(files / "p.tif")[:, 10:20, 30:50] == -9999).all()


@pytest.mark.parametrize("args, code, words", [
    (["-delta", "0"], 2, "-delta"), (["-lambda", "-1"], 2, "-lambda"), (["-lambda-c", "0"], 2, "-lambda-c"),
    (["-mu", "0"], 2, "-mu"), (["-iterations", "0"], 2, "-iterations"), (["-tv", "vector"], 2, "-tv"),
    (["-boundary", "mirror"], 2, "-boundary"), (["-no-spatial", "-mu", "1"], 2, "-mu"),
    (["-mu", "10", "-tile", "32", "32"], 1, "reaches too far"), (["-ot", "Byte"], 2, "class numbers up to 255"),
    (["-apply", "nothing.json"], 1, "nothing.json")])
def test_bad_input(files, args, code, words):
    labels = "labels.tif"
    if args[0] == "-ot":
        field = truth(90, 80).astype(np.uint16)
        wide = gdal.GetDriverByName("GTiff").Create(str(files / "wide.tif"), 90, 80, 1, gdal.GDT_UInt16)
        source = gdal.Open(str(files / "labels.tif"))
        wide.SetGeoTransform(source.GetGeoTransform())
        wide.SetProjection(source.GetProjection())
        wide.GetRasterBand(1).WriteArray(np.where(field == 3, 300, field))
        wide = source = None
        labels = "wide.tif"
    with assert_untouched(files):
        result = sahic(files, *args, labels=labels)
    assert result.code == code, result.err
    assert words in first_error(result)


def test_one_class_and_one_pixel(files):
    few = read(files / "labels.tif")
    write_labels(files / "one.tif", np.where(few == 2, few, 0))
    result = sahic(files, labels="one.tif")
    assert result.code == 1 and "one class" in first_error(result)
    lines, samples = np.nonzero(few == 3)
    few[few == 3] = 0
    few[lines[0], samples[0]] = 3
    write_labels(files / "single.tif", few)
    assert "one training pixel" in succeed(sahic(files, labels="single.tif")).err
