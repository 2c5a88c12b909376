# SPDX-License-Identifier: MIT
"""gdal_hsi_sample, gdal_hsi_svm_train, gdal_hsi_svm_classify and gdal_hsi_accuracy on files: the chain from labels to
an assessed map, labels in all forms, comparison with LIBSVM's svm-predict, and bad input."""

import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from osgeo import gdal, ogr, osr

from conftest import DATA, ROOT, assert_untouched, first_error, refuse, run, succeed, write_utm_scene as write_scene

gdal.UseExceptions()
ogr.UseExceptions()

NAMES = ["corn", "oats, early", "wöods"]
COLOURS = [(250, 200, 10, 255), (10, 20, 230, 255), (0, 120, 0, 255)]
GEOTRANSFORM = (500000, 20, 0, 4480000, 0, -20)


def truth(samples=48, lines=40):
    line, sample = np.mgrid[:lines, :samples]
    field = 1 + (line // 9 + sample // 8) % 3
    field[(line % 9 == 0) | (sample % 8 == 0)] = 0
    return field.astype(np.uint8)


def scene_of(field, bands=8, seed=1, noise=60.0):
    random = np.random.default_rng(seed)
    spectra = random.uniform(500, 3000, (4, bands))
    return np.moveaxis(spectra[field], 2, 0) + random.normal(0, noise, (bands, *field.shape))


def write_labels(path, field, names=NAMES, colours=COLOURS, epsg=32616, geotransform=GEOTRANSFORM):
    dataset = gdal.GetDriverByName("GTiff").Create(str(path), field.shape[1], field.shape[0], 1, gdal.GDT_Byte)
    if geotransform:
        dataset.SetGeoTransform(geotransform)
    if epsg:
        dataset.SetProjection(f"EPSG:{epsg}")
    band = dataset.GetRasterBand(1)
    if names:
        band.SetCategoryNames(["none", *names])
    if colours:
        table = gdal.ColorTable()
        for i, colour in enumerate(colours):
            table.SetColorEntry(i + 1, colour)
        band.SetColorTable(table)
    band.WriteArray(field)
    band = dataset = None
    return path


def read(path):
    return gdal.Open(str(path)).ReadAsArray()


def polygonise(raster, path, epsg, names=None, driver="GPKG"):
    """Returns the labels as polygons in another SRS, with names instead of numbers if given."""
    source = gdal.Open(str(raster))
    memory = ogr.GetDriverByName("Memory").CreateDataSource("")
    utm = osr.SpatialReference()
    utm.ImportFromEPSG(32616)
    raw = memory.CreateLayer("raw", utm, ogr.wkbPolygon)
    raw.CreateField(ogr.FieldDefn("class", ogr.OFTInteger))
    gdal.Polygonize(source.GetRasterBand(1), source.GetRasterBand(1), raw, 0)
    other = osr.SpatialReference()
    other.ImportFromEPSG(epsg)
    for srs in (utm, other):
        srs.SetAxisMappingStrategy(osr.OAMS_TRADITIONAL_GIS_ORDER)
    transform = osr.CoordinateTransformation(utm, other)
    dataset = ogr.GetDriverByName(driver).CreateDataSource(str(path))
    layer = dataset.CreateLayer("fields", other, ogr.wkbPolygon)
    layer.CreateField(ogr.FieldDefn("crop", ogr.OFTString if names else ogr.OFTInteger))
    for feature in raw:
        out = ogr.Feature(layer.GetLayerDefn())
        geometry = feature.GetGeometryRef().Clone()
        geometry.Transform(transform)
        out.SetGeometry(geometry)
        value = feature.GetField("class")
        out.SetField("crop", names[value - 1] if names else value)
        layer.CreateFeature(out)
    layer = dataset = None
    return path


@pytest.fixture
def files(tmp_path):
    field = truth()
    write_scene(tmp_path / "scene.dat", scene_of(field), wavelengths=[500 + 50 * b for b in range(8)])
    write_labels(tmp_path / "labels.tif", field)
    return tmp_path


def train(folder, *args, labels="labels.tif", scene="scene.dat", model="model.json"):
    return run("gdal_hsi_svm_train", "-q", *args, folder / scene, folder / labels, folder / model)


def classify(folder, *args, scene="scene.dat", model="model.json", dst="map.tif"):
    return run("gdal_hsi_svm_classify", "-q", "-device", "cpu", *args, folder / scene, folder / model, folder / dst)


FIXED = ["-C", "8", "-gamma", "0.5"]
GRID = ["-C", "1", "-C", "8", "-gamma", "0.5"]


def told_of_folds(folder, *args, labels="labels.tif"):
    result = succeed(run("gdal_hsi_svm_train", *GRID, "-overwrite", *args, "-report", folder / "r.json", folder / "scene.dat", folder / labels,
                         folder / "m.json"))
    return result, json.loads((folder / "r.json").read_text())


@pytest.mark.quick
def test_folds_by_patches_and_groups(files):
    """Labels in fields are held out by field, single pixels one by one; the tool reports which method it used."""
    fields = 5 * 6  # fields of 8 x 7 pixels: truth() places them 9 lines and 8 samples apart
    result, report = told_of_folds(files)
    assert (report["cv_by"], report["cv_groups"], report["folds"]) == ("patches", fields, 5)
    assert f"folds of whole patches ({fields}), since most labelled pixels are in patches; use -cv-by pixels" in result.out
    assert "touch a pixel of another fold" not in result.err and report["pixels_touching_other_folds"] == 0
    result, report = told_of_folds(files, "-cv-by", "pixels")
    assert report["cv_by"] == "pixels" and "cv_groups" not in report and "folds of single pixels\n" in result.out
    assert "touch a pixel of another fold" in result.err and "Use -cv-by patches" in result.err
    polygonise(files / "labels.tif", files / "fields.gpkg", 32616)
    result, report = told_of_folds(files, labels="fields.gpkg")
    assert (report["cv_by"], report["cv_groups"]) == ("patches", fields) and "since the labels are polygons" in result.out
    field = truth()
    scattered = np.where(np.random.default_rng(3).random(field.shape) < 0.08, field, 0).astype("u1")
    write_labels(files / "few.tif", scattered)
    result, report = told_of_folds(files, labels="few.tif")
    assert report["cv_by"] == "pixels" and "single pixels; use -cv-by patches to keep" in result.out
    write_labels(files / "columns.tif", np.broadcast_to(np.arange(48) // 16, field.shape).astype("u1"), names=None, colours=None)
    result, report = told_of_folds(files, "-cv-by", files / "columns.tif")
    assert (report["cv_groups"], report["folds"]) == (3, 3) and f"folds of groups of {files / 'columns.tif'} (3)" in result.out


def write_areas(path):
    """Writes 6 x 2 polygons: the upper row is crop 1, the lower row crop 2. Each has two squares of 6 x 8 pixels, joined
    by a strip without the centre of a pixel."""
    srs = osr.SpatialReference()
    srs.ImportFromEPSG(32616)
    dataset = ogr.GetDriverByName("GPKG").CreateDataSource(str(path))
    layer = dataset.CreateLayer("areas", srs, ogr.wkbPolygon)
    for name, kind in (("crop", ogr.OFTInteger), ("plot", ogr.OFTInteger), ("farm", ogr.OFTString)):
        layer.CreateField(ogr.FieldDefn(name, kind))
    ring = [(20, 20), (140, 20), (140, 180), (81, 180), (81, 220), (140, 220), (140, 380), (20, 380), (20, 220), (79, 220), (79, 180),
            (20, 180), (20, 20)]
    for k in range(12):
        x, y = GEOTRANSFORM[0] + 160 * (k % 6), GEOTRANSFORM[3] - 400 * (k // 6)
        feature = ogr.Feature(layer.GetLayerDefn())
        feature.SetGeometry(ogr.CreateGeometryFromWkt("POLYGON((" + ",".join(f"{x + right} {y - down}" for right, down in ring) + "))"))
        feature["crop"], feature["plot"], feature["farm"] = 1 + k // 6, 1 + k, "AB"[k % 2]
        layer.CreateFeature(feature)
    layer = feature = dataset = None


def test_groups_of_the_sample_are_the_folds_of_the_search(files):
    """A raster of training pixels has lost the polygons; -groups keeps them. The field of the groups is chosen and named."""
    write_areas(files / "areas.gpkg")
    words = ("-field", "crop", "-like", files / "scene.dat", files / "areas.gpkg")
    succeed(run("gdal_hsi_sample", "-q", "-by", "patches", "-fraction", "0.6", "-groups", files / "groups.tif", *words, files / "train.tif",
                files / "rest.tif"))
    groups, kept = read(files / "groups.tif"), read(files / "train.tif") > 0
    plots = 1 + np.arange(48)[None] // 8 + 6 * (np.arange(40)[:, None] // 20)
    assert np.array_equal(groups > 0, kept | (read(files / "rest.tif") > 0)) and groups.dtype == np.uint16
    assert np.array_equal(groups[groups > 0], plots[groups > 0])
    count = len(np.unique(groups[kept]))
    _, report = told_of_folds(files, "-cv-by", "patches", labels="train.tif")
    assert report["cv_groups"] == 2 * count
    result, report = told_of_folds(files, "-cv-by", files / "groups.tif", labels="train.tif")
    assert report["cv_groups"] == count and "touch a pixel" not in result.err
    for name, number in (("plot", count), ("farm", 2)):
        result, report = told_of_folds(files, "-cv-by", files / "areas.gpkg", "-cv-field", name, labels="train.tif")
        assert report["cv_groups"] == number and f"areas.gpkg, field '{name}' ({number})" in result.out
    result = train(files, *GRID, "-cv-by", files / "areas.gpkg", labels="train.tif")
    assert result.code == 1 and "the field with the groups is not known" in first_error(result) and "with -cv-field" in result.err
    result = train(files, *GRID, "-cv-field", "plot", labels="train.tif")
    assert result.code == 2 and "-cv-field requires -cv-by FILE" in first_error(result)
    dataset = ogr.Open(str(files / "areas.gpkg"), 1)
    dataset.ExecuteSQL("ALTER TABLE areas RENAME COLUMN farm TO class")
    dataset = None
    result, report = told_of_folds(files, "-cv-by", files / "areas.gpkg", labels="train.tif")
    assert "the field 'class' has 2 groups for 2 classes: check that it holds groups" in result.err and report["cv_groups"] == 2
    write_labels(files / "columns.tif", np.broadcast_to(np.arange(48) // 12, (40, 48)).astype("u1"), names=None, colours=None)
    result, _ = told_of_folds(files, "-cv-by", files / "columns.tif")
    assert "touch a pixel of the same class in another fold, and neighbours are similar" in result.err


def test_few_pixels_of_each_patch(files):
    field = truth()
    succeed(run("gdal_hsi_sample", "-q", "-by", "patches", "-fraction", "0.5", "-patch-pixels", 5, "-report", files / "r.json",
                files / "labels.tif", files / "train.tif", files / "test.tif"))
    both = read(files / "train.tif") + read(files / "test.tif")
    assert np.array_equal(both[both > 0], field[both > 0]) and json.loads((files / "r.json").read_text())["labels"]["kept_pixels"] == 5 * 30
    inner = both[1:9, 1:8] > 0  # the first field: 8 lines, 7 samples
    line, sample = np.mgrid[1:9, 1:8]
    distance = (line - 4.5) ** 2 + (sample - 4) ** 2
    assert inner.sum() == 5 and distance[inner].max() <= distance[~inner].min()


def test_the_same_note_on_several_scenes_is_printed_once(files):
    field = truth()
    more = []
    for k in range(3):
        write_scene(files / f"wide{k}.dat", scene_of(field, bands=9, seed=k), wavelengths=[500 + 50 * b for b in range(9)])
        more += ["-with", files / f"wide{k}.dat", files / "labels.tif"]
    result = succeed(run("gdal_hsi_svm_train", *FIXED, *more, files / "scene.dat", files / "labels.tif", files / "m.json"))
    assert result.out.count("Bands: 8 of 9 are used") == 1, result.out


def test_a_class_of_one_pixel_is_left_to_the_other_folds(files):
    """The class has no second patch, so it is counted in no fold; single pixels cannot be held out."""
    field = truth().copy()
    field[field == 3] = 0
    field[1, 1] = 3
    write_labels(files / "one.tif", field)
    result, report = told_of_folds(files, labels="one.tif")
    assert report["cv_by"] == "patches" and report["cv_samples"] == (field > 0).sum() - 1
    result = train(files, *GRID, "-cv-by", "pixels", labels="one.tif")
    assert result.code == 1 and "cross-validation needs at least 2 of each class" in first_error(result)


def test_folds_by_groups_refused(files):
    field = truth()
    half = np.ones(field.shape, "u1")
    half[:, 24:] = 255
    dataset = gdal.Open(str(write_labels(files / "half.tif", half, names=None, colours=None)), gdal.GA_Update)
    dataset.GetRasterBand(1).SetNoDataValue(255)
    dataset = None
    lacking = int((field[:, 24:] > 0).sum())
    one = np.where(np.cumsum(np.ones_like(field), axis=1) < 9, field, 0)
    one[9:] = 0
    one[:9, 8:16] = truth()[:9, 8:16]
    write_labels(files / "one.tif", one.astype("u1"))
    for words, labels, code, message in (
            (["-cv-by", files / "none.tif"], "labels.tif", 1, "none.tif"),
            (["-cv-by", files / "half.tif"], "labels.tif", 1, f"has no group for {lacking} of {(field > 0).sum()} labelled pixels"),
            (["-cv-by", "patches"], "one.tif", 1, "fewer than two classes are in more than one patch"),
            (["-cv-by", files / "half.tif", "-with", files / "scene.dat", files / "labels.tif"], "labels.tif", 2,
             "-cv-by FILE cannot be used with -with")):
        result = train(files, *GRID, *words, labels=labels)
        assert result.code == code and message in first_error(result), result.err
    result, report = told_of_folds(files, labels="one.tif")
    assert report["cv_by"] == "pixels" and "since fewer than two classes are in more than one patch" in result.out


def test_a_search_no_better_than_a_guess(files):
    field = truth()
    write_scene(files / "scene.dat", np.random.default_rng(5).normal(1000, 50, (8, *field.shape)))
    result, report = told_of_folds(files)
    assert ("no C and gamma is better than a guess" in result.err) == (report["cv_accuracy"] <= report["cv_largest_class"])
    uneven = np.where(field == 2, 1, field).astype("u1")  # two thirds have class 1
    write_labels(files / "uneven.tif", uneven)
    result, report = told_of_folds(files, labels="uneven.tif")
    share = (uneven == 1).sum() / (uneven > 0).sum()
    assert report["cv_largest_class"] == pytest.approx(share) and report["cv_accuracy"] <= share
    assert "no C and gamma is better than a guess" in result.err


@pytest.mark.quick
def test_chain_from_labels_to_a_judged_map(files):
    sample = succeed(run("gdal_hsi_sample", "-n", "30", "-n", "20:corn", "-seed", "7", files / "labels.tif",
                         files / "train.tif", files / "test.tif"))
    assert "1 corn: 20 and" in sample.out
    train_labels, test_labels, field = read(files / "train.tif"), read(files / "test.tif"), truth()
    assert [(train_labels == v).sum() for v in (1, 2, 3)] == [20, 30, 30]
    assert np.array_equal(np.where(train_labels > 0, train_labels, test_labels), field)
    assert not ((train_labels > 0) & (test_labels > 0)).any()

    succeed(train(files, "-report", files / "train.json", labels="train.tif"))
    report = json.loads((files / "train.json").read_text())
    assert 20 < len(report["grid"]) < 110 and report["folds"] == 5 and report["cv_by"] == "pixels"
    best = max(point["accuracy"] for point in report["grid"])
    assert report["cv_accuracy"] == best > 0.9
    first = next(point for point in report["grid"] if point["accuracy"] == best)
    assert (report["C"], report["gamma"]) == (first["C"], first["gamma"])

    succeed(classify(files, "-report", files / "classify.json"))
    report = json.loads((files / "classify.json").read_text())
    assert report["classified"] == 48 * 40 and report["invalid_pixels"] == 0
    assert sum(one["pixels"] for one in report["classes"]) == 48 * 40
    result = json.loads(succeed(run("gdal_hsi_accuracy", "-json", files / "map.tif", files / "test.tif")).out)
    mapped, reference = read(files / "map.tif"), read(files / "test.tif")
    known = reference > 0
    assert result["pixels"] == known.sum()
    assert result["overall_accuracy"]["value"] == pytest.approx((mapped == reference)[known].mean(), abs=1e-12)
    assert result["overall_accuracy"]["value"] > 0.9
    per_class = [(mapped == v)[reference == v].mean() for v in (1, 2, 3)]
    assert [one["producers_accuracy"]["value"] for one in result["classes"]] == pytest.approx(per_class, abs=1e-12)
    assert result["average_accuracy"]["value"] == pytest.approx(np.mean(per_class), abs=1e-12)
    assert np.array(result["confusion_matrix"]).sum() == known.sum()
    assert [one["name"] for one in result["classes"]] == NAMES


def test_names_and_colours_travel_from_labels_to_the_map(files):
    succeed(train(files, *FIXED))
    succeed(classify(files))
    dataset = gdal.Open(str(files / "map.tif"))
    assert dataset.GetGeoTransform() == GEOTRANSFORM and dataset.GetProjection()
    band = dataset.GetRasterBand(1)
    assert band.DataType == gdal.GDT_Byte and band.GetNoDataValue() == 0
    assert band.GetCategoryNames() == ["Unclassified", *NAMES]
    assert [band.GetColorTable().GetColorEntry(v) for v in (1, 2, 3)] == COLOURS
    table = band.GetDefaultRAT()
    rows = [[table.GetValueAsString(r, c) for c in range(6)] for r in range(table.GetRowCount())]
    assert rows[1:] == [[str(v + 1), NAMES[v], *map(str, COLOURS[v])] for v in range(3)]


def shown_in_qgis(raster, picture):
    """Returns QGIS's properties of a class map, without a screen, and the set of colours in its rendering."""
    if subprocess.run([sys.executable, "-c", "import qgis.core"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no QGIS with Python bindings on this machine (python3-qgis)")
    shown = subprocess.run([sys.executable, ROOT / "tests" / "qgis" / "open_in_qgis.py", raster, picture],
                           capture_output=True, text=True, timeout=300, check=False)
    facts = json.loads(next(line for line in shown.stdout.splitlines() if line.startswith("QGIS "))[5:])
    pixels = gdal.Open(str(picture)).ReadAsArray()[:3].reshape(3, -1).T
    assert facts["valid"] and facts["renderer"] == "paletted"
    return facts, {tuple(colour) for colour in pixels.tolist()}


def test_the_legend_in_qgis(files):
    succeed(train(files, *FIXED))
    succeed(classify(files))
    facts, seen = shown_in_qgis(files / "map.tif", files / "map.png")
    assert facts["crs"] == "EPSG:32616"
    assert facts["legend"][:4] == ["Unclassified", *NAMES]  # a TIFF colour table always has 256 entries
    assert facts["nodata"] == 0
    assert {colour[:3] for colour in COLOURS} <= seen


def test_points_train_the_same_model(files):
    field = truth()
    other = osr.SpatialReference()
    other.ImportFromEPSG(4326)
    utm = osr.SpatialReference()
    utm.ImportFromEPSG(32616)
    for srs in (utm, other):
        srs.SetAxisMappingStrategy(osr.OAMS_TRADITIONAL_GIS_ORDER)
    transform = osr.CoordinateTransformation(utm, other)
    dataset = ogr.GetDriverByName("GPKG").CreateDataSource(str(files / "points.gpkg"))
    for name, kind in (("numbers", ogr.OFTInteger), ("names", ogr.OFTString)):
        layer = dataset.CreateLayer(name, other, ogr.wkbPoint)
        layer.CreateField(ogr.FieldDefn("crop", kind))
        layer.StartTransaction()
        for line, sample in np.argwhere(field):
            feature = ogr.Feature(layer.GetLayerDefn())
            x, y, _ = transform.TransformPoint(500000 + 20 * (sample + 0.3), 4480000 - 20 * (line + 0.8))
            feature.SetGeometry(ogr.CreateGeometryFromWkt(f"POINT({x!r} {y!r})"))
            value = int(field[line, sample])
            feature.SetField("crop", value if kind == ogr.OFTInteger else NAMES[value - 1])
            layer.CreateFeature(feature)
        layer.CommitTransaction()
    layer = dataset = None
    succeed(train(files, *FIXED))
    expected = json.loads((files / "model.json").read_text())
    for name in ("numbers", "names"):
        succeed(train(files, *FIXED, "-field", "crop", "-layer", name, labels="points.gpkg", model=f"{name}.json"))
        model = json.loads((files / f"{name}.json").read_text())
        assert model["svm"] == expected["svm"] and model["features"] == expected["features"]
        assert [c["samples"] for c in model["classes"]] == [c["samples"] for c in expected["classes"]]


@pytest.mark.parametrize("epsg, names", [(32616, False), (4326, False), (3857, True), (4326, True)])
def test_vector_labels_in_any_srs_train_the_same_model(files, epsg, names):
    polygonise(files / "labels.tif", files / "fields.gpkg", epsg, NAMES if names else None)
    succeed(train(files, *FIXED))
    succeed(train(files, *FIXED, "-field", "crop", labels="fields.gpkg", model="other.json"))
    one, other = (json.loads((files / name).read_text()) for name in ("model.json", "other.json"))
    assert one["svm"] == other["svm"] and one["features"] == other["features"]
    assert [c["samples"] for c in one["classes"]] == [c["samples"] for c in other["classes"]]
    assert [c["name"] for c in other["classes"]] == (NAMES if names else ["", "", ""])


def test_labels_on_another_grid_and_in_another_srs(files):
    succeed(train(files, *FIXED))
    fine = np.kron(truth(), np.ones((2, 2), np.uint8))
    write_labels(files / "fine.tif", fine, geotransform=(500000, 10, 0, 4480000, 0, -10))
    succeed(train(files, *FIXED, labels="fine.tif", model="fine.json"))
    one, other = (json.loads((files / name).read_text()) for name in ("model.json", "fine.json"))
    assert one["svm"] == other["svm"]
    gdal.Warp(str(files / "web.tif"), str(files / "fine.tif"), dstSRS="EPSG:3857", xRes=2, yRes=2)
    succeed(train(files, *FIXED, labels="web.tif", model="web.json"))
    counts = [[c["samples"] for c in json.loads((files / n).read_text())["classes"]] for n in ("model.json", "web.json")]
    assert np.allclose(*counts, rtol=0.05)


def scaled_features(folder, model):
    values = read(folder / "scene.dat")
    low, high = (np.array(model["features"][k], np.float64) for k in ("minimum", "maximum"))
    factor = 1.0 / (high - low)
    return ((values.reshape(len(low), -1).T.astype(np.float64) - low) * factor).astype(np.float32)


@pytest.mark.quick
@pytest.mark.skipif(shutil.which("svm-predict") is None, reason="no svm-predict on this machine (libsvm-tools)")
def test_labels_and_probabilities_are_those_of_svm_predict(files):
    write_scene(files / "scene.dat", scene_of(truth(), noise=700.0, seed=3))  # classes overlap
    succeed(train(files, "-C", "128", "-gamma", "2", "-probability", "-libsvm", files / "model.svm"))
    succeed(classify(files, "-probabilities", files / "p.tif", "-confidence", files / "c.tif"))
    features = scaled_features(files, json.loads((files / "model.json").read_text()))
    text = "\n".join("0 " + " ".join(f"{i + 1}:{float(v)!r}" for i, v in enumerate(row)) for row in features)
    (files / "pixels.txt").write_text(text + "\n")
    subprocess.run(["svm-predict", files / "pixels.txt", files / "model.svm", files / "labels.txt"], check=True,
                   capture_output=True)
    expected = np.loadtxt(files / "labels.txt")
    mapped = read(files / "map.tif").ravel()
    assert len(np.unique(mapped)) == 3
    assert (mapped == expected).all()
    subprocess.run(["svm-predict", "-b", "1", files / "pixels.txt", files / "model.svm", files / "p.txt"], check=True,
                   capture_output=True)
    order = (files / "p.txt").read_text().splitlines()[0].split()[1:]
    assert order == ["1", "2", "3"]
    table = np.loadtxt(files / "p.txt", skiprows=1)[:, 1:]  # six digits
    p = read(files / "p.tif").reshape(3, -1).T
    assert np.abs(p - table).max() < 1e-5
    assert np.array_equal(read(files / "c.tif").ravel(), p[np.arange(len(p)), mapped - 1])
    dataset = gdal.Open(str(files / "p.tif"))
    assert [dataset.GetRasterBand(b).GetDescription() for b in (1, 2, 3)] == [f"P({name})" for name in NAMES]


def test_tiles_threads_and_interleave_change_nothing(files):
    succeed(train(files, *FIXED, "-probability"))
    succeed(classify(files, "-probabilities", files / "p.tif"))
    gdal.Translate(str(files / "bip.dat"), str(files / "scene.dat"), format="ENVI", creationOptions=["INTERLEAVE=BIP"])
    for args, scene in ((["-tile", "7", "5", "-threads", "3"], "scene.dat"), (["-memory", "1MB"], "bip.dat")):
        succeed(classify(files, *args, "-overwrite", "-probabilities", files / "q.tif", scene=scene, dst="again.tif"))
        assert np.array_equal(read(files / "map.tif"), read(files / "again.tif"))
        assert np.array_equal(read(files / "p.tif"), read(files / "q.tif"))


def test_training_is_repeatable_and_takes_only_valid_pixels(files):
    values = read(files / "scene.dat")
    values[:, 3:6, 3:6] = -9999
    write_scene(files / "scene.dat", values, nodata=-9999)
    succeed(train(files, "-threads", "1", "-C", "1", "-C", "8", "-gamma", "0.5"))
    result = succeed(train(files, "-threads", "3", "-C", "1", "-C", "8", "-gamma", "0.5", "-tile", "16", "8", model="b.json"))
    one, other = (json.loads((files / name).read_text()) for name in ("model.json", "b.json"))
    for model in (one, other):
        del model["history"], model["checksum"]
    assert one == other
    assert "9 of " in result.err and "no valid spectrum" in result.err
    assert all(v > 0 for v in one["features"]["minimum"])
    succeed(classify(files))
    mapped = read(files / "map.tif")
    assert (mapped[3:6, 3:6] == 0).all() and (mapped == 0).sum() == 9


def test_a_model_finds_its_bands(files):
    succeed(train(files, *FIXED, "-b", "2-4,7"))
    succeed(classify(files, "-b", "2-4,7", dst="chosen.tif"))
    succeed(classify(files, dst="found.tif"))
    assert np.array_equal(read(files / "chosen.tif"), read(files / "found.tif"))
    wrong = classify(files, "-b", "1-4", dst="wrong.tif")
    assert wrong.code == 1 and "was made for other bands" in first_error(wrong) and "650.0 nm" in wrong.err
    succeed(classify(files, "-b", "1-4", "-any-wavelengths", dst="forced.tif"))
    few = classify(files, "-b", "1,2", dst="few.tif")
    assert few.code == 1 and "was made for 4 bands" in first_error(few)
    assert not (files / "wrong.tif").exists() and not (files / "few.tif").exists()


def test_no_output_loses_a_class(files):
    """An output keeps all classes, even if its type cannot hold a class number or its nodata value is one."""
    succeed(train(files, *FIXED))
    result = classify(files, "-dstnodata", "2")
    assert result.code == 2 and "class 2" in first_error(result) and not (files / "map.tif").exists()
    write_scene(files / "many.tif", np.where(truth() == 1, np.uint16(301), truth())[np.newaxis], "GTiff", "u2")
    for args, text in ((["-ot", "Byte"], "classes up to 255"), (["-dstnodata", "301"], "301")):
        result = run("gdal_hsi_sample", "-q", *args, "-n", "5", files / "many.tif", files / "a.tif", files / "b.tif")
        assert result.code == 2 and text in first_error(result), result
        assert not (files / "a.tif").exists() and not (files / "b.tif").exists()
    succeed(run("gdal_hsi_sample", "-q", "-dstnodata", "9", "-ot", "Int16", "-n", "5", files / "labels.tif", files / "a.tif",
                files / "b.tif"))
    for name in ("a.tif", "b.tif"):
        dataset = gdal.Open(str(files / name))
        band = dataset.GetRasterBand(1)
        assert band.GetNoDataValue() == 9 and gdal.GetDataTypeName(band.DataType) == "Int16"
        assert 0 not in band.ReadAsArray() and 9 in band.ReadAsArray(), "pixels without a label are nodata"


def test_the_model_may_be_named(files):
    """Tests -model and -apply, as in the other tools, and the model's traditional position in the command line."""
    succeed(train(files, *FIXED))
    succeed(run("gdal_hsi_svm_train", "-q", *FIXED, "-model", files / "named.json", files / "scene.dat", files / "labels.tif"))
    old, new = (json.loads((files / name).read_text()) for name in ("model.json", "named.json"))
    assert old.pop("history") != new.pop("history") and old.pop("checksum") != new.pop("checksum") and old == new
    assert new["format"] == "gdal_hsi_svm" and re.fullmatch(r"gdal_hsi_svm_train \d+\.\d+\.\d+", new["created_by"])
    succeed(classify(files, dst="old.tif"))
    succeed(run("gdal_hsi_svm_classify", "-q", "-apply", files / "named.json", files / "scene.dat", files / "new.tif"))
    assert np.array_equal(read(files / "old.tif"), read(files / "new.tif"))
    twice = run("gdal_hsi_svm_classify", "-apply", files / "named.json", files / "scene.dat", files / "model.json", files / "n.tif")
    assert twice.code == 2 and "unexpected argument" in first_error(twice)
    assert "-apply FILE" in run("gdal_hsi_svm_classify", "--help").out


def test_bands_are_found_by_wavelength(files):
    """More bands, other numbers or another order, with equal wavelengths, give an equal map."""
    succeed(train(files, *FIXED))
    succeed(classify(files))
    scene = gdal.Open(str(files / "scene.dat")).ReadAsArray()
    more = np.concatenate([np.full((2, *scene.shape[1:]), np.nan), scene])
    known = [500 + 50 * b for b in range(8)]
    write_scene(files / "more.dat", more, wavelengths=[400, 450] + known)
    succeed(run("gdal_hsi_svm_classify", "-q", "-apply", files / "model.json", files / "more.dat", files / "found.tif"))
    assert np.array_equal(read(files / "map.tif"), read(files / "found.tif"))
    write_scene(files / "turned.dat", scene[::-1], wavelengths=known[::-1])
    turned = succeed(run("gdal_hsi_svm_classify", "-apply", files / "model.json", files / "turned.dat", files / "t.tif"))
    assert "sorted into the order" in turned.out and np.array_equal(read(files / "map.tif"), read(files / "t.tif"))


def test_class_weights_and_single_weights(files):
    write_scene(files / "scene.dat", scene_of(truth(), noise=1500.0))
    succeed(train(files, *FIXED))
    succeed(classify(files))
    succeed(train(files, *FIXED, "-weight", "corn=50", model="weighted.json"))
    succeed(classify(files, model="weighted.json", dst="weighted.tif"))
    assert (read(files / "weighted.tif") == 1).sum() > 1.2 * (read(files / "map.tif") == 1).sum()
    succeed(train(files, *FIXED, "-class-weights", "balanced", model="balanced.json"))
    classes = json.loads((files / "balanced.json").read_text())["classes"]
    total = sum(c["samples"] for c in classes)
    assert [c["weight"] for c in classes] == pytest.approx([total / (3 * c["samples"]) for c in classes])


@pytest.mark.quick
def test_spatially_disjoint_sample(files):
    succeed(run("gdal_hsi_sample", "-q", "-n", "25", "-min-distance", "4", "-patches", "2", files / "labels.tif",
                files / "train.tif", files / "test.tif"))
    a, b = np.argwhere(read(files / "train.tif")), np.argwhere(read(files / "test.tif"))
    assert len(a) == 75 and len(b) > 50
    assert np.hypot(*(a[:, None] - b[None]).transpose(2, 0, 1)).min() >= 4


def test_sample_of_vector_labels(files):
    polygonise(files / "labels.tif", files / "fields.geojson", 4326, NAMES, "GeoJSON")
    succeed(run("gdal_hsi_sample", "-q", "-fraction", "0.2", "-field", "crop", "-like", files / "scene.dat",
                files / "fields.geojson", files / "train.tif", files / "test.tif"))
    field = truth()
    both = read(files / "train.tif") + read(files / "test.tif")
    assert np.array_equal(both, field)
    assert (read(files / "train.tif") > 0).sum() == sum(round(0.2 * (field == v).sum()) for v in (1, 2, 3))
    dataset = gdal.Open(str(files / "train.tif"))
    assert dataset.GetProjection()  # GDAL 3.6 reads the side file, with the category names, only here
    assert dataset.GetRasterBand(1).GetCategoryNames()[1:] == NAMES
    plain = run("gdal_hsi_sample", files / "fields.geojson", files / "a.tif", files / "b.tif")
    assert plain.code == 1 and "-like" in plain.err


def test_class_names_ignore_case(files):
    """In map and reference, in the labels of several scenes, and in options; unless case distinguishes classes."""
    field = truth()
    swapped = np.array([0, 2, 3, 1], "u1")[field]  # other numbers, the same names in other letters
    write_labels(files / "map.tif", swapped, names=["WöODS", "Corn", "Oats, Early"])
    result = succeed(run("gdal_hsi_accuracy", "-json", files / "map.tif", files / "labels.tif"))
    assert json.loads(result.out)["overall_accuracy"]["value"] == 1 and result.err == ""
    assert [c["name"] for c in json.loads(result.out)["classes"]] == NAMES
    write_scene(files / "other.dat", scene_of(field), wavelengths=[500 + 50 * b for b in range(8)])
    succeed(train(files, *FIXED, "-weight", "CORN=2", "-with", files / "other.dat", files / "map.tif", model="m.json"))
    classes = json.loads((files / "m.json").read_text())["classes"]
    assert [(c["name"], c["samples"]) for c in classes] == [(name, 2 * (field == v + 1).sum()) for v, name in enumerate(NAMES)]
    assert [c["weight"] for c in classes] == [2, 1, 1]
    succeed(run("gdal_hsi_sample", "-q", "-n", "9:CORN", "-leave-out", "wöoDS", files / "labels.tif", files / "a.tif", files / "b.tif"))
    assert (read(files / "a.tif") == 1).sum() == 9 and (read(files / "a.tif") == 3).sum() == 0
    write_labels(files / "both.tif", field, names=["corn", "Corn", "wöods"])
    result = succeed(run("gdal_hsi_accuracy", "-json", files / "both.tif", files / "both.tif"))
    assert [c["name"] for c in json.loads(result.out)["classes"]] == ["corn", "Corn", "wöods"] and result.err == ""
    result = run("gdal_hsi_sample", "-q", "-n", "9:CORN", files / "both.tif", files / "c.tif", files / "d.tif")
    assert result.code == 2 and "no pixel is labelled with class 'CORN'" in first_error(result)


def test_other_class_names_are_a_warning(files):
    """Classes are then matched by number, which is rarely meant."""
    field = truth()
    write_labels(files / "map.tif", field, names=["kaolinite", "alunite", "calcite"])
    result = succeed(run("gdal_hsi_accuracy", "-q", files / "map.tif", files / "labels.tif"))
    assert "no class name of the map is in the reference: classes are matched by number (1 kaolinite = 1 corn, 2 alunite = " \
        "2 oats, early, 3 calcite = 3 wöods)" in result.err
    write_labels(files / "map.tif", field, names=["corn", "", "calcite"])
    result = succeed(run("gdal_hsi_accuracy", "-q", files / "map.tif", files / "labels.tif"))
    assert "not all classes of map and reference have a name: classes are matched by number (3 calcite = 3 wöods)" in result.err
    for k in (1, 2):
        write_labels(files / f"map_{k}.tif", field, names=["kaolinite", "alunite", "calcite"])
    result = succeed(run("gdal_hsi_accuracy", "-q", "-folds", 2, files / "map.tif", files / "labels.tif"))
    assert result.err.count("no class name of the map") == 1
    write_labels(files / "map.tif", field, names=None)
    assert succeed(run("gdal_hsi_accuracy", "-q", files / "map.tif", files / "labels.tif")).err == ""


@pytest.mark.quick
def test_accuracy_with_mask_other_grid_names_and_csv(files):
    field = truth()
    wrong = field.copy()
    wrong[5, 9:12] = 1 + wrong[5, 9:12] % 3
    wrong[7, 9:13] = 0
    renumbered = np.array([0, 3, 1, 2], np.uint8)[wrong]
    write_labels(files / "map.tif", renumbered, names=[NAMES[1], NAMES[2], NAMES[0]])
    result = json.loads(succeed(run("gdal_hsi_accuracy", "-json", "-csv", files / "table.csv", files / "map.tif",
                                    files / "labels.tif")).out)
    assert result["unclassified"] == 4 and result["unlabelled"] == (field == 0).sum()
    assert result["pixels"] == (field > 0).sum() - 4
    assert result["overall_accuracy"]["value"] == 1 - 3 / result["pixels"]
    rows = (files / "table.csv").read_text(encoding="utf-8").splitlines()
    assert rows[0].startswith("class,name,map_1,map_2,map_3") and rows[2].startswith('2,"oats, early",')
    strict = json.loads(succeed(run("gdal_hsi_accuracy", "-json", "-unclassified", "error", files / "map.tif",
                                    files / "labels.tif")).out)
    assert strict["overall_accuracy"]["value"] == pytest.approx(1 - 7 / (field > 0).sum())
    assert strict["pixels"] == (field > 0).sum() == sum(c["reference_pixels"] for c in strict["classes"])
    assert strict["unclassified"] == 4 and strict["confusion_matrix"] == result["confusion_matrix"]
    write_labels(files / "mask.tif", (np.arange(40)[:, None] > 7).astype(np.uint8) * np.ones((1, 48), np.uint8))
    masked = json.loads(succeed(run("gdal_hsi_accuracy", "-json", "-mask", files / "mask.tif", files / "map.tif",
                                    files / "labels.tif")).out)
    assert masked["overall_accuracy"]["value"] == 1 and masked["masked"] == 8 * 48
    # A reference with half the pixel size, a larger one, and polygons in another SRS have equal results.
    big = np.zeros((100, 120), np.uint8)
    big[6:86, 10:106] = np.kron(field, np.ones((2, 2), np.uint8))
    write_labels(files / "fine.tif", big, geotransform=(500000 - 100, 10, 0, 4480000 + 60, 0, -10))
    polygonise(files / "labels.tif", files / "fields.gpkg", 4326, NAMES)
    for reference, args in (("fine.tif", []), ("fields.gpkg", ["-field", "crop"])):
        again = json.loads(succeed(run("gdal_hsi_accuracy", "-json", *args, files / "map.tif", files / reference)).out)
        assert again["confusion_matrix"] == result["confusion_matrix"]
    again = run("gdal_hsi_accuracy", "-csv", files / "table.csv", files / "map.tif", files / "labels.tif")
    assert again.code == 1 and "exists" in first_error(again)


def test_kappa_and_text(files):
    reference = np.array([[1] * 25 + [2] * 25], np.uint8)
    mapped = np.array([[1] * 20 + [2] * 5 + [1] * 10 + [2] * 15], np.uint8)
    for name, values in (("r.tif", reference), ("m.tif", mapped)):
        write_labels(files / name, values, names=None, colours=None)
    out = succeed(run("gdal_hsi_accuracy", files / "m.tif", files / "r.tif")).out
    assert "Overall accuracy (OA): 70.00 (56.25 to 80.90) %" in out
    assert "Kappa: 0.4000" in out and "50 compared" in out


BAD = {
    "one class": (lambda f: write_labels(f / "labels.tif", (truth() == 1).astype(np.uint8)), [], "only one class: class 1 (corn)"),
    "beside the scene": (lambda f: write_labels(f / "labels.tif", truth(), geotransform=(900000, 20, 0, 4480000, 0, -20)), [],
                         "no labelled pixel inside the scene"),
    "no georeference": (lambda f: write_labels(f / "labels.tif", truth(30, 30), epsg=None, geotransform=None), [],
                        "has 30x30 pixels, the scene has 48x40"),
    "not labels": (lambda f: shutil.copy(f / "scene.dat", f / "labels.tif") and gdal.Translate(
        str(f / "labels.tif"), str(f / "scene.dat"), bandList=[1]) and None, [], "is not a class number"),
    "a cube as labels": (lambda f: gdal.Translate(str(f / "labels.tif"), str(f / "scene.dat")) and None, [], "has 8 bands"),
    "a field of a raster": (lambda f: None, ["-field", "crop"], "is a raster"),
    "no such file": (lambda f: (f / "labels.tif").unlink(), [], "cannot open"),
}


@pytest.mark.quick
@pytest.mark.parametrize("case", BAD)
def test_bad_labels(files, case):
    spoil, args, message = BAD[case]
    spoil(files)
    with assert_untouched(files):
        result = train(files, *args)
    assert result.code == 1 and message in first_error(result), result.err


def label_tools(folder, labels):
    """Runs every tool that reads labels; accuracy gets the labels on either side."""
    scene, good = folder / "scene.dat", folder / "labels.tif"
    return {"sample": ["gdal_hsi_sample", "-n", 3, labels, folder / "a.tif", folder / "b.tif"],
            "svm_train": ["gdal_hsi_svm_train", *FIXED, scene, labels, folder / "m.json"],
            "sahic": ["gdal_hsi_sahic", "-device", "cpu", "-iterations", 2, scene, labels, folder / "c.tif"],
            "reference": ["gdal_hsi_accuracy", good, labels], "map": ["gdal_hsi_accuracy", labels, good]}


ODD = {
    "fractions": (lambda: (truth() + 0.37).astype(np.float32), ["not a class number", "Use class labels"]),
    "negative numbers": (lambda: -truth().astype(np.int16), ["no labelled pixel", "negative (the lowest is -3)", "from 1 to 65535"]),
    "nothing but 0": (lambda: 0 * truth(), ["no labelled pixel", "all are 0, nodata or negative", "from 1 to 65535"]),
    "colours": (lambda: np.stack([truth() * 80, truth() * 20, truth()]), ["3 bands of colours", "picture", "convert each colour"]),
    "a cube": (lambda: np.stack([truth()] * 5), ["has 5 bands", "not the scene"]),
}


@pytest.mark.parametrize("case", ODD)
@pytest.mark.parametrize("tool", ["sample", "svm_train", "sahic", "reference", "map"])
def test_odd_labels_are_told_what_they_are(files, case, tool):
    """The advice fits the mistake: for a picture, for example, it does not suggest comparing extents."""
    make, words = ODD[case]
    field = make()
    planes = field if field.ndim == 3 else field[None]
    kind = {"float32": gdal.GDT_Float32, "int16": gdal.GDT_Int16}.get(field.dtype.name, gdal.GDT_Byte)
    dataset = gdal.GetDriverByName("GTiff").Create(str(files / "odd.tif"), planes.shape[2], planes.shape[1], len(planes), kind,
                                                   ["PHOTOMETRIC=RGB"] if case == "colours" else ["PHOTOMETRIC=MINISBLACK"])
    good = gdal.Open(str(files / "labels.tif"))
    dataset.SetGeoTransform(good.GetGeoTransform())
    dataset.SetProjection(good.GetProjection())
    for b, plane in enumerate(planes):
        dataset.GetRasterBand(b + 1).WriteArray(plane)
    dataset = None
    result = refuse(1, "odd.tif'", *label_tools(files, files / "odd.tif")[tool], untouched=[files])
    for word in words:
        assert word in result.err, result.err
    assert "extents" not in result.err and "same area" not in result.err


def test_labels_of_another_size_name_the_two_rasters(files):
    write_labels(files / "odd.tif", truth(30, 30), epsg=None, geotransform=None)
    for tool, other in (("svm_train", "the scene has 48x40"), ("sahic", "the scene has 48x40"), ("reference", "labels.tif' has 48x40")):
        result = run(*label_tools(files, files / "odd.tif")[tool])
        assert result.code == 1 and "odd.tif' has 30x30 pixels" in first_error(result) and other in first_error(result), result.err
        assert first_error(result).endswith("and the file has no georeference")


def circle(x, y, radius):
    return (f"CURVEPOLYGON (CIRCULARSTRING ({x - radius} {y}, {x} {y + radius}, {x + radius} {y}, {x} {y - radius}, "
            f"{x - radius} {y}))")


def write_shapes(path, shapes, srs="EPSG:32616"):
    """Writes geometries in WKT with their classes."""
    reference = None
    if srs:
        reference = osr.SpatialReference()
        reference.SetFromUserInput(srs)
        reference.SetAxisMappingStrategy(osr.OAMS_TRADITIONAL_GIS_ORDER)
    dataset = ogr.GetDriverByName("GPKG").CreateDataSource(str(path))
    layer = dataset.CreateLayer("shapes", reference, ogr.wkbUnknown)
    layer.CreateField(ogr.FieldDefn("class", ogr.OFTInteger))
    for text, value in shapes:
        feature = ogr.Feature(layer.GetLayerDefn())
        feature.SetGeometry(ogr.CreateGeometryFromWkt(text))
        feature.SetField("class", value)
        layer.CreateFeature(feature)
    layer = dataset = None
    return path


def inside(condition):
    """Returns true where the centres of the pixels of labels.tif satisfy a condition of (x, y)."""
    line, sample = np.mgrid[:40, :48]
    return condition(GEOTRANSFORM[0] + 20 * (sample + 0.5), GEOTRANSFORM[3] - 20 * (line + 0.5))


def labels_on_grid(files, shapes):
    """Returns the labels as gdal_hsi_sample reads them."""
    succeed(run("gdal_hsi_sample", "-overwrite", "-fraction", 0.5, "-like", files / "labels.tif", shapes, files / "a.tif",
                files / "b.tif"))
    return read(files / "a.tif") + read(files / "b.tif")


def test_curved_polygons_label_their_pixels(files):
    """GDAL burns only straight lines, and skips others without a message."""
    x, y = 500400, 4479600
    shapes = write_shapes(files / "curved.gpkg", [
        (circle(x, y, 155), 1), (f"MULTISURFACE ({circle(x + 350, y, 133)})", 2),
        ("TIN (((500005 4479995, 500125 4479995, 500005 4479875, 500005 4479995)))", 3)])
    got = labels_on_grid(files, shapes)
    for value, want in ((1, inside(lambda a, b: np.hypot(a - x, b - y) < 155)),
                        (2, inside(lambda a, b: np.hypot(a - x - 350, b - y) < 133)),
                        (3, inside(lambda a, b: (a - 500005) + (4479995 - b) < 120))):
        assert want.sum() > 5 and np.array_equal(got == value, want), (value, (got == value).sum(), want.sum())


def test_geopackage_without_an_srs_lies_where_the_scene_does(files):
    """For such a layer GDAL returns an undefined SRS, from which nothing can be transformed."""
    square = "POLYGON ((500100 4479900, 500300 4479900, 500300 4479700, 500100 4479700, 500100 4479900))"
    result = run("gdal_hsi_sample", "-n", 3, "-like", files / "labels.tif",
                 write_shapes(files / "nowhere.gpkg", [(square, 7)], None), files / "a.tif", files / "b.tif")
    assert "nowhere.gpkg' has no SRS" in succeed(result).err
    got = read(files / "a.tif") + read(files / "b.tif")
    assert np.array_equal(got == 7, inside(lambda a, b: (abs(a - 500200) < 100) & (abs(b - 4479800) < 100)))


def test_the_layer_that_is_taken_of_several_is_told(files):
    square = "POLYGON ((500100 4479900, 500300 4479900, 500300 4479700, 500100 4479700, 500100 4479900))"
    write_shapes(files / "two.gpkg", [(square, 7)])
    dataset = ogr.Open(str(files / "two.gpkg"), 1)
    dataset.CopyLayer(dataset.GetLayer(0), "later")
    dataset = None
    args = ["gdal_hsi_sample", "-overwrite", "-n", 3, "-like", files / "labels.tif", files / "two.gpkg", files / "a.tif",
            files / "b.tif"]
    assert "the layer shapes is used; other layers: later" in succeed(run(*args)).err
    for option in (["-layer", "shapes"], ["-layer", "later"]):
        assert "is used; other" not in succeed(run(*args, *option)).err


@pytest.mark.parametrize("option", [["-all-touched"], ["-name-field", "x"], ["-field", "x"], ["-layer", "x"]])
def test_a_raster_has_no_features(files, option):
    with assert_untouched(files):
        for tool in ("sample", "svm_train", "sahic", "reference"):
            name, *rest = label_tools(files, files / "labels.tif")[tool]
            result = run(name, *option, *rest)
            assert result.code == 1 and "labels.tif' is a raster, which has no features" in first_error(result), result.err


@pytest.mark.parametrize("options, name", [(["-co", "NBITS=1"], "m.tif"), (["-co", "COMPRESS=JPEG"], "m.tif"),
                                           (["-co", "COMPRESS=CCITTFAX4", "-co", "NBITS=1"], "m.tif"), ([], "m.jpg")])
def test_class_numbers_are_never_lost(files, options, name):
    """Lossy formats are allowed on request, but a changed number would be a different class."""
    succeed(train(files, *FIXED))
    with assert_untouched(files):
        result = classify(files, *options, dst=name)
        assert result.code == 2 and "read back, values differ: 3 became" in first_error(result), result.err
        result = run("gdal_hsi_sample", "-n", 3, *options, files / "labels.tif", files / name, files / f"t_{name}")
        assert result.code == 2 and "values differ" in first_error(result), result.err
    succeed(classify(files, "-co", "NBITS=2", dst="two.tif"))
    succeed(classify(files))
    assert np.array_equal(read(files / "two.tif"), read(files / "map.tif"))
    two = gdal.Open(str(files / "two.tif"))
    assert two.GetRasterBand(1).GetMetadataItem("NBITS", "IMAGE_STRUCTURE") == "2"


def test_two_shares_of_one_class(files):
    for options, words in ((["-n", 3, "-fraction", 0.5], "every class"), (["-fraction", "0.5:corn", "-n", "3:1"], "'corn'")):
        with assert_untouched(files):
            result = run("gdal_hsi_sample", *options, files / "labels.tif", files / "a.tif", files / "b.tif")
        assert result.code == 2 and "-n and -fraction both" in first_error(result) and words in first_error(result)
    succeed(run("gdal_hsi_sample", "-n", 3, "-fraction", "0.5:1", files / "labels.tif", files / "a.tif", files / "b.tif"))
    train_labels = read(files / "a.tif")
    assert [(train_labels == v).sum() for v in (1, 2, 3)] == [round((truth() == 1).sum() / 2), 3, 3]


def test_a_class_with_too_few_samples(files):
    field = truth()
    lonely = np.argwhere(field == 3)[1:]
    field[tuple(lonely.T)] = 0
    write_labels(files / "labels.tif", field)
    with assert_untouched(files):
        result = train(files, "-cv-by", "pixels")
        assert result.code == 1 and "class 3 (wöods) has 1 training pixel" in first_error(result)
        result = run("gdal_hsi_sample", "-n", "5", files / "labels.tif", files / "a.tif", files / "b.tif")
        assert result.code == 1 and "class 3 (wöods) has 1 labelled pixel," in first_error(result)
    field[tuple(lonely[:2].T)] = 3
    write_labels(files / "labels.tif", field)
    result = succeed(train(files, "-C", "1", "-C", "8", "-gamma", "1", "-cv-by", "pixels"))
    assert "3 folds instead of 5" in result.err


def test_a_type_too_small_for_the_class_numbers(files):
    field = truth().astype(np.uint16)  # numpy 2 refuses to put 300 into bytes, but the cast gives 44
    write_labels(files / "labels.tif", field)
    wide = gdal.GetDriverByName("GTiff").CreateCopy(str(files / "wide.tif"), gdal.Translate(
        "", gdal.Open(str(files / "labels.tif")), format="MEM", outputType=gdal.GDT_UInt16))
    wide.GetRasterBand(1).WriteArray(np.where(field == 3, 300, field))
    wide = None
    succeed(train(files, *FIXED, labels="wide.tif"))
    with assert_untouched(files):
        result = classify(files, "-ot", "Byte")
    assert result.code == 2 and "classes up to 255" in first_error(result)
    succeed(classify(files))
    assert (read(files / "map.tif") == 300).any()


@pytest.mark.quick
def test_bad_models(files):
    succeed(train(files, *FIXED))
    good = (files / "model.json").read_bytes()
    no_estimates = classify(files, "-confidence", files / "c.tif")
    assert no_estimates.code == 1 and "-probability" in no_estimates.err
    for name, content in (("empty", b""), ("cut", good[: len(good) // 2]), ("other", b'{"a": 1}'), ("binary", bytes(range(256)) * 50),
                          ("old", good.replace(b'"version": 1', b'"version": 9'))):
        (files / "bad.json").write_bytes(content)
        with assert_untouched(files):
            result = classify(files, model="bad.json")
        said = "is not a text" if name == "binary" else "is not a usable SVM model"
        assert result.code == 1 and f"bad.json' {said}" in first_error(result), name
    with assert_untouched(files):
        assert classify(files, model="absent.json").code == 1


@pytest.mark.quick
@pytest.mark.parametrize("tool, args, message", [
    ("gdal_hsi_sample", ["-n", "0", "a", "b", "c"], "-n: '0'"),
    ("gdal_hsi_sample", ["-n", "5:", "a", "b", "c"], "-n: '5:'"),
    ("gdal_hsi_sample", ["-fraction", "2", "a", "b", "c"], "-fraction: '2'"),
    ("gdal_hsi_sample", ["-patches", "2", "a", "b", "c"], "-min-distance"),
    ("gdal_hsi_sample", ["a", "b", "b"], "same file"),
    ("gdal_hsi_svm_train", ["-C", "0", "a", "b", "c"], "-C"),
    ("gdal_hsi_svm_train", ["-gamma", "-1", "a", "b", "c"], "-gamma"),
    ("gdal_hsi_svm_train", ["-cv", "1", "a", "b", "c"], "-cv"),
    ("gdal_hsi_svm_train", ["-weight", "3", "a", "b", "c"], "-weight: '3'"),
    ("gdal_hsi_svm_train", ["-class-weights", "some", "a", "b", "c"], "-class-weights"),
    ("gdal_hsi_svm_train", ["a", "b", "a"], "overwrite"),
    ("gdal_hsi_svm_classify", ["a", "b", "b"], "overwrite model"),
    ("gdal_hsi_accuracy", ["-unclassified", "maybe", "a", "b"], "-unclassified"),
    ("gdal_hsi_accuracy", ["a"], "reference"),
])
def test_wrong_command_lines(tmp_path, tool, args, message):
    with assert_untouched(tmp_path):
        result = run(tool, *args, cwd=tmp_path)
    assert result.code == 2 and message in result.err, result.err


def test_existing_outputs_stay_and_dry_runs_write_nothing(files):
    (files / "model.json").write_text("mine")
    with assert_untouched(files):
        result = train(files, *FIXED)
        assert result.code == 1 and "exists" in first_error(result)
        succeed(train(files, *FIXED, "-dry-run", model="new.json"))
        succeed(run("gdal_hsi_sample", "-n", "5", "-dry-run", files / "labels.tif", files / "a.tif", files / "b.tif"))
    succeed(train(files, *FIXED, "-overwrite"))
    with assert_untouched(files):
        assert "Pass classification" in succeed(classify(files, "-dry-run")).out
    succeed(classify(files))
    with assert_untouched(files):
        assert classify(files).code == 1


def test_a_field_that_does_not_exist(files):
    polygonise(files / "labels.tif", files / "fields.gpkg", 4326)
    with assert_untouched(files):
        result = train(files, "-field", "kind", labels="fields.gpkg")
    assert result.code == 1 and "no field 'kind'" in first_error(result) and "crop" in result.err


needs_data = pytest.mark.skipif(not (DATA / "indian_pines").exists(), reason=f"REAL SCENES ARE NOT HERE ({DATA}): not tested")


INDIAN_PINES = ["alfalfa", "corn-notill", "corn-mintill", "corn", "grass-pasture", "grass-trees", "grass-pasture-mowed",
                "hay-windrowed", "oats", "soybean-notill", "soybean-mintill", "soybean-clean", "wheat", "woods",
                "buildings-grass-trees-drives", "stone-steel-towers"]


@needs_data
def test_indian_pines_from_labels_to_a_legend(tmp_path):
    folder = DATA / "indian_pines"
    scene = folder / "indian_pines.img"
    # The label file has colours but no names, so a VRT adds them.
    gdal.Translate(str(tmp_path / "labels.vrt"), str(folder / "indian_pines_gt.tif"), format="VRT")
    dataset = gdal.Open(str(tmp_path / "labels.vrt"), gdal.GA_Update)
    dataset.GetRasterBand(1).SetCategoryNames(["unlabelled", *INDIAN_PINES])
    colours = [dataset.GetRasterBand(1).GetColorTable().GetColorEntry(v) for v in range(1, 17)]
    dataset = None
    split = succeed(run("gdal_hsi_sample", "-n", "50", "-n", "15:alfalfa,7,oats", tmp_path / "labels.vrt", tmp_path / "train.tif",
                        tmp_path / "test.tif"))
    assert "9 oats: 15 and 5" in split.out and "2 corn-notill: 50 and" in split.out
    succeed(run("gdal_hsi_eadp", "-q", "-device", "cpu", scene, tmp_path / "profile.tif"))
    overall = {}
    for cube in (scene, tmp_path / "profile.tif"):
        succeed(run("gdal_hsi_svm_train", "-q", "-overwrite", "-C", "128", "-gamma", "0.125", cube, tmp_path / "train.tif",
                    tmp_path / "m.json"))
        succeed(run("gdal_hsi_svm_classify", "-q", "-overwrite", "-device", "cpu", cube, tmp_path / "m.json", tmp_path / "map.tif"))
        result = json.loads(succeed(run("gdal_hsi_accuracy", "-json", tmp_path / "map.tif", tmp_path / "test.tif")).out)
        assert result["unclassified"] == 0 and [c["name"] for c in result["classes"]] == INDIAN_PINES
        overall[cube] = result["overall_accuracy"]["value"]
    assert 0.68 < overall[scene] < 0.85
    assert overall[tmp_path / "profile.tif"] > 0.92
    dataset = gdal.Open(str(tmp_path / "map.tif"))
    assert dataset.GetProjection()
    band = dataset.GetRasterBand(1)
    assert [band.GetColorTable().GetColorEntry(v) for v in range(1, 17)] == colours
    assert band.GetCategoryNames() == ["Unclassified", *INDIAN_PINES]
    facts, seen = shown_in_qgis(tmp_path / "map.tif", tmp_path / "map.png")
    assert facts["legend"][1:17] == INDIAN_PINES
    assert {colour[:3] for colour in colours} <= seen


@needs_data
def test_polygons_without_srs_and_names_beside_numbers(tmp_path):
    folder = DATA / "enmap_berlin"
    for name in ("LandCov_BerlinUrbanGradient.shp", "LandCov_BerlinUrbanGradient.dbf"):
        shutil.copy(folder / name, tmp_path / name)
    result = succeed(run("gdal_hsi_svm_train", "--config", "SHAPE_RESTORE_SHX", "YES", "-C", "8", "-gamma", "0.5", "-field",
                         "Level_1_ID", folder / "EnMAP_BerlinUrbanGradient.bsq", tmp_path / "LandCov_BerlinUrbanGradient.shp",
                         tmp_path / "m.json"))
    assert "has no SRS" in result.err
    classes = json.loads((tmp_path / "m.json").read_text())["classes"]
    assert len(classes) >= 2 and all(c["name"] for c in classes)


@needs_data
def test_points_with_class_names(tmp_path):
    folder = DATA / "enmap_potsdam"
    succeed(run("gdal_hsi_svm_train", "-q", "-C", "8", "-gamma", "0.5", "-field", "level_1", folder / "enmap_potsdam.vrt",
                folder / "landcover_potsdam_point.gpkg", tmp_path / "m.json"))
    classes = json.loads((tmp_path / "m.json").read_text())["classes"]
    assert len(classes) >= 2 and sum(c["samples"] for c in classes) > 50
    assert not set(range(130, 136)) & set(json.loads((tmp_path / "m.json").read_text())["features"]["bands"])
    succeed(run("gdal_hsi_svm_classify", "-q", "-device", "cpu", folder / "enmap_potsdam.vrt", tmp_path / "m.json",
                tmp_path / "map.tif"))
    mapped = read(tmp_path / "map.tif")
    assert 0.4 < (mapped > 0).mean() < 0.8  # the mosaic has holes
