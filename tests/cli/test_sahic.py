# SPDX-License-Identifier: MIT
"""gdal_hsi_sahic on files: the map compared with its probabilities, tiles and memory limits, borders, models, bad
input."""

import json

import numpy as np
import pytest
from osgeo import gdal

from conftest import assert_untouched, first_error, run, succeed, write_utm_scene as write_scene
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


@pytest.mark.quick
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
    assert dataset.GetProjection()  # GDAL 3.6 reads the side file, with the category names, only here
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


@pytest.fixture
def larger(tmp_path):
    field = truth(300, 260)
    write_scene(tmp_path / "scene.dat", scene_of(field, noise=500.0))
    few = np.where(np.random.default_rng(4).uniform(size=field.shape) < 0.002, field, 0).astype(np.uint8)
    write_labels(tmp_path / "labels.tif", few)
    return tmp_path


@pytest.mark.parametrize("boundary", ["reflect", "periodic"])
def test_a_temporary_file_gives_what_memory_gives(larger, boundary):
    """More probabilities than -memory allows go through a temporary file, which is removed."""
    options = ["-boundary", boundary, "-overwrite"]
    succeed(sahic(larger, *options, "-probabilities", larger / "p.tif", "-report", larger / "r.json"))
    assert json.loads((larger / "r.json").read_text())["mrf"]["store"] == "memory"
    whole, labels = read(larger / "p.tif"), read(larger / "map.tif")
    before = {path.name for path in larger.iterdir()}
    succeed(sahic(larger, *options, "-memory", "5MB", "-probabilities", larger / "p.tif", "-report", larger / "r.json",
                  dst="map.tif"))
    report = json.loads((larger / "r.json").read_text())["mrf"]
    assert report["store"] == "file" and report["tiles"] > 4
    assert {path.name for path in larger.iterdir()} == before
    tiled, tiled_labels = read(larger / "p.tif"), read(larger / "map.tif")
    assert np.abs(tiled - whole).max() < 1e-4
    assert (tiled_labels == labels).mean() >= 0.9999
    # The same tiles with the probabilities in memory give equal bits.
    width, height = report["tile_samples"], report["tile_lines"]
    succeed(sahic(larger, *options, "-tile", width, height, "-probabilities", larger / "p.tif", "-report",
                  larger / "r.json"))
    report = json.loads((larger / "r.json").read_text())["mrf"]
    assert (report["store"], report["tile_samples"], report["tile_lines"]) == ("memory", width, height)
    assert np.array_equal(read(larger / "p.tif"), tiled) and np.array_equal(read(larger / "map.tif"), tiled_labels)


def test_tiles_are_chosen_for_little_work_twice(larger):
    """For any limit, the windows of all tiles together stay small compared with the limit."""
    computed = []
    for memory in (6, 8, 12, 16, 24):
        succeed(sahic(larger, "-memory", f"{memory}MB", "-dry-run", "-report", larger / "r.json", "-overwrite"))
        plan = json.loads((larger / "r.json").read_text())["plan"]["mrf"]
        assert plan["buffer_bytes"] <= memory * 2**20
        computed.append(plan["tiles"] * min(plan["tile_samples"] + 48, 300) * min(plan["tile_lines"] + 48, 260) / 78000)
    assert computed == sorted(computed, reverse=True)
    assert computed[0] < 7 and computed[2] < 2.5 and computed[-1] < 1.4


def test_the_optimum_is_reported_with_its_proof(files):
    succeed(sahic(files, "-no-spatial", "-report", files / "paper.json"))
    succeed(sahic(files, "-no-spatial", "-lorsal-solver", "optimum", "-model", files / "m.json", "-report",
                  files / "r.json", dst="optimum.tif"))
    paper, optimum = (json.loads((files / n).read_text())["training"] for n in ("paper.json", "r.json"))
    assert (paper["solver"], optimum["solver"]) == ("paper", "optimum")
    assert 0 <= optimum["relative_gap"] <= 1e-4
    assert optimum["gap"] == pytest.approx(optimum["relative_gap"] * optimum["objective"])
    assert optimum["objective"] - optimum["gap"] <= paper["objective"]
    assert optimum["iterations"] > 0 and optimum["active_features"] > 0
    # The proof from the model file: the objective, and the dual's value at the point that the model gives.
    model = json.loads((files / "m.json").read_text())
    labels = read(files / "labels.tif")
    spectra = read(files / "scene.dat")[:, labels > 0].T.astype(np.float64) / model["features"]["scale"]
    anchors = np.array(model["mlr"]["anchors"]) / model["features"]["scale"]
    weights = np.array(model["mlr"]["weights"])
    gamma = 1 / (2 * model["mlr"]["delta"] ** 2 * model["mlr"]["spread"])
    kernel = lambda a: np.hstack([np.ones((len(spectra), 1)), np.exp(-gamma * ((spectra[:, None] - a) ** 2).sum(axis=2))])
    logits = np.hstack([kernel(anchors) @ weights.T, np.zeros((len(spectra), 1))])
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    one_hot = np.eye(3)[labels[labels > 0] - 1]
    lambda_c = model["training"]["lambda_c"]
    objective = -np.log((p * one_hot).sum(axis=1)).sum() + lambda_c * np.abs(weights).sum()
    assert objective == pytest.approx(optimum["objective"], rel=1e-6)
    share = min(1, lambda_c / np.abs(kernel(spectra).T @ (one_hot - p)[:, :2]).max())
    inside = (1 - share) * one_hot + share * p
    bound = -(inside * np.log(np.maximum(inside, 1e-300))).sum()
    assert bound <= objective and objective - bound < 0.05 * objective


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
    for option in (["-field", "x"], ["-name-field", "x"], ["-layer", "x"], ["-all-touched"]):
        result = sahic(files, "-apply", files / "m.json", *option, labels="none", dst="no.tif")
        assert result.code == 2 and f"{option[0]} applies to labels, but no labels are given" in result.err, result.err


def test_invalid_pixels_have_no_class(files):
    data = scene_of(truth(90, 80), noise=500.0)
    data[:, 10:20, 30:50] = -9999
    write_scene(files / "holes.tif", data, driver="GTiff", nodata=-9999)
    succeed(sahic(files, "-probabilities", files / "p.tif", scene="holes.tif"))
    mapped = read(files / "map.tif")
    assert (mapped[10:20, 30:50] == 0).all() and (mapped == 0).sum() == 200
    assert (read(files / "p.tif")[:, 10:20, 30:50] == -9999).all()


@pytest.mark.quick
def test_pixels_without_data_count_alike_in_lines_and_samples(files):
    """The map of a transposed scene is the transposed map: pixels without data leave out the same neighbours."""
    data = scene_of(truth(90, 80), noise=500.0)
    data[:, 10:20, 30:50] = -9999
    data[:, 40:70:7, 5:80:6] = -9999
    for name, values in (("holes", data), ("turned", data.transpose(0, 2, 1))):
        write_scene(files / f"{name}.tif", np.ascontiguousarray(values), driver="GTiff", nodata=-9999)
    succeed(sahic(files, "-model", files / "m.json", scene="holes.tif"))
    found = []
    for name in ("holes", "turned"):
        succeed(sahic(files, "-overwrite", "-apply", files / "m.json", "-probabilities", files / f"{name}_p.tif", labels="none",
                      scene=f"{name}.tif", dst=f"{name}_map.tif"))
        found.append(read(files / f"{name}_p.tif"))
    assert np.abs(found[0] - found[1].transpose(0, 2, 1)).max() < 1e-4


@pytest.mark.quick
@pytest.mark.parametrize("args, code, words", [
    (["-delta", "0"], 2, "-delta"), (["-delta", "-1"], 2, "-delta"), (["-delta", "nan"], 2, "-delta"),
    (["-lambda", "-1"], 2, "-lambda"), (["-lambda", "0"], 2, "-lambda"), (["-lambda-c", "0"], 2, "-lambda-c"),
    (["-beta", "-1e-4"], 2, "-beta"), (["-mu", "0"], 2, "-mu"), (["-lorsal-solver", "lbfgs"], 2, "-lorsal-solver"),
    (["-lorsal-solver", "optimum", "-beta", "1e-3"], 2, "-beta cannot be used with -lorsal-solver optimum"), (["-iterations", "0"], 2, "-iterations"), (["-tv", "vector"], 2, "-tv"),
    (["-boundary", "mirror"], 2, "-boundary"), (["-no-spatial", "-mu", "1"], 2, "-mu"),
    (["-mu", "10", "-tile", "32", "32"], 1, "reaches too far"),
    (["-iterations", "201", "-tile", "32", "32"], 1, "reaches too far"), (["-ot", "Byte"], 2, "classes up to 255"),
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


def test_a_penalty_that_reaches_too_far_names_the_way_out(larger):
    """Tiles would be wrong, whether memory or -tile requires them; each solution in the message works."""
    far = ["-mu", "10", "-iterations", "40"]
    for option in (["-memory", "8MB"], ["-tile", "100", "100"]):
        with assert_untouched(larger):
            result = sahic(larger, *far, *option)
        assert result.code == 1 and "-mu 10 with 40 iterations reaches too far for tiles" in first_error(result)
        for way in ("-tile", "-memory", "-mu 0.05", "200 -iterations"):
            assert way in result.err
    succeed(sahic(larger, *far, "-dry-run"))
    succeed(sahic(larger, "-mu", "0.05", "-iterations", "200", "-memory", "8MB", "-dry-run"))


def test_more_classes_than_a_type_holds(files):
    """Class numbers above 255 make a UInt16 map automatically; numbers above 65535 are refused."""
    source = gdal.Open(str(files / "labels.tif"))
    for name, kind, value in (("wide.tif", gdal.GDT_UInt16, 65535), ("wider.tif", gdal.GDT_UInt32, 65536)):
        wide = gdal.GetDriverByName("GTiff").Create(str(files / name), 90, 80, 1, kind)
        wide.SetGeoTransform(source.GetGeoTransform())
        wide.SetProjection(source.GetProjection())
        few = source.ReadAsArray().astype(np.int64)
        wide.GetRasterBand(1).WriteArray(np.where(few == 3, value, few))
        wide = None
    succeed(sahic(files, labels="wide.tif", dst="wide_map.tif"))
    mapped = gdal.Open(str(files / "wide_map.tif"))
    assert mapped.GetRasterBand(1).DataType == gdal.GDT_UInt16 and mapped.ReadAsArray().max() == 65535
    with assert_untouched(files):
        result = sahic(files, labels="wider.tif")
    assert result.code == 1 and "65536 is not a class number (1 to 65535" in first_error(result)


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
