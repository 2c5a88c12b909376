# SPDX-License-Identifier: MIT
"""-leave-out: pixels of the named classes have no label in any tool that reads labels; compared with files in which
numpy has removed the labels."""
import json

import numpy as np
import pytest
from conftest import assert_untouched, first_error, open_band, read, refuse, run, succeed, write_scene
from label_files import NAMES, PLACE, points_of, scene_of, truth, write_features, write_labels
from osgeo import gdal, ogr
BOTH = ["labels.tif", "labels.gpkg"]
NAMED = ["", *NAMES]  # 1 water, 2 forest, 3 soil
NAMED_MAP = ["Unclassified", "water", "forest"]


@pytest.fixture
def place(tmp_path):
    """Makes a scene with the classes 1 to 3, as a raster and as points, and the raster without class 3."""
    labels = truth() + 1
    write_scene(tmp_path / "scene.tif", scene_of(labels), "GTiff", geotransform=PLACE, epsg=32633)
    write_labels(tmp_path / "labels.tif", labels, names=NAMED)
    write_labels(tmp_path / "wiped.tif", np.where(labels == 3, 0, labels), names=NAMED[:3])
    write_features(tmp_path / "labels.gpkg", points_of(labels, lambda v: (int(v), NAMED[v])),
                   [("class", ogr.OFTInteger), ("class_name", ogr.OFTString)])
    return tmp_path


@pytest.mark.parametrize("labels", BOTH)
@pytest.mark.parametrize("which", ["3", "soil", "SOIL"])
def test_every_tool_reads_labels_without_it(place, labels, which):
    plain, without = place / "wiped.tif", (place / labels, "-leave-out", which)
    for number, given in enumerate(((plain,), without)):
        at = place / str(number)
        at.mkdir()
        like = ("-like", place / "scene.tif")
        succeed(run("gdal_hsi_sample", "-n", 20, *like, *given, at / "train.tif", at / "test.tif"))
        succeed(run("gdal_hsi_svm_train", "-C", 10, "-gamma", 1, "-probability", place / "scene.tif", *given, at / "m.json"))
        succeed(run("gdal_hsi_svm_classify", "-probabilities", at / "p.tif", place / "scene.tif", at / "m.json", at / "map.tif"))
        succeed(run("gdal_hsi_regularize", "-labels", *given, "-map", at / "smooth.tif", at / "p.tif", at / "q.tif"))
        succeed(run("gdal_hsi_sahic", "-device", "cpu", "-iterations", 3, place / "scene.tif", *given, at / "sahic.tif"))
        succeed(run("gdal_hsi_spectra", place / "scene.tif", *given, at / "s.csv"))
        (at / "a.json").write_text(succeed(run("gdal_hsi_accuracy", "-json", at / "map.tif", *given)).out)
    for name in ("train.tif", "test.tif", "map.tif", "smooth.tif", "sahic.tif"):
        first, second = open_band(place / "0" / name), open_band(place / "1" / name)
        assert np.array_equal(first.ReadAsArray(), second.ReadAsArray()), name
        assert first.GetNoDataValue() == second.GetNoDataValue() == 0, name  # and GDAL 3.6 reads names with it
        names = second.GetCategoryNames()
        assert names == first.GetCategoryNames() == NAMED_MAP, name
        colours = [[tuple(table.GetColorEntry(i)) for i in range(4)] for table in (first.GetColorTable(), second.GetColorTable())]
        assert colours[0] == colours[1], name
    for name in ("s.csv", "a.json"):
        assert (place / "0" / name).read_text() == (place / "1" / name).read_text(), name
    judged = json.loads((place / "1" / "a.json").read_text())
    assert judged["unlabelled"] == (truth() == 2).sum() and [c["value"] for c in judged["classes"]] == [1, 2]


def test_a_map_keeps_the_class_that_the_reference_loses(place):
    """Pixels that the map assigns to its name are wrong. Pixels of the class in the reference are not assessed, and
    training pixels not counted."""
    labels = truth() + 1
    mapped = np.where(np.arange(labels.size).reshape(labels.shape) % 5 == 0, 3, labels)
    write_labels(place / "map.tif", mapped, names=NAMED)
    write_labels(place / "train.tif", np.where(labels == 1, 1, 0), names=NAMED[:2])
    found = succeed(run("gdal_hsi_accuracy", "-json", "-leave-out", "soil", "-training", place / "train.tif", place / "map.tif",
                        place / "labels.tif"))
    judged = json.loads(found.out)
    kept = labels != 3
    assert judged["pixels"] == kept.sum() and judged["overall_accuracy"]["value"] == (mapped == labels)[kept].mean()
    assert [c["map_pixels"] for c in judged["classes"]] == [(mapped[kept] == v).sum() for v in (1, 2, 3)]
    assert f"{(labels == 1).sum()} of {kept.sum()} reference pixels are training pixels" in found.err


@pytest.mark.parametrize("labels", BOTH)
@pytest.mark.parametrize("which, missing", [("4", "4"), ("3,Sand", "Sand"), ("03", "03"), ("0", "0"), ("70000", "70000")])
def test_a_class_that_is_none(place, labels, which, missing):
    arguments = "-leave-out", which, "-like", place / "scene.tif", place / labels, place / "a.tif", place / "b.tif"
    result = refuse(2, f"has no class '{missing}'", "gdal_hsi_sample", *arguments, untouched=[place])
    assert "Its classes: 1 water, 2 forest, 3 soil." in result.err
    with assert_untouched(place):
        judged = run("gdal_hsi_accuracy", "-leave-out", which, place / "wiped.tif", place / labels)
    assert judged.code == 2 and f"has no class '{missing}'" in first_error(judged)


def test_numbers_without_names(place):
    """A raster without class names is read to its end before a number is reported missing."""
    labels = truth() + 1
    write_labels(place / "bare.tif", labels)
    succeed(run("gdal_hsi_sample", "-n", 20, "-leave-out", "1,3", place / "bare.tif", place / "a.tif", place / "b.tif"))
    assert np.array_equal(np.nan_to_num(read(place / "a.tif")[0] + read(place / "b.tif")[0]), np.zeros(labels.shape))
    both = np.nan_to_num(read(place / "a.tif")[0]) + np.nan_to_num(read(place / "b.tif")[0])
    assert np.array_equal(both, np.where(labels == 2, 2, 0))
    result = run("gdal_hsi_sample", "-leave-out", "5", place / "bare.tif", place / "c.tif", place / "d.tif")
    assert result.code == 2 and "Its classes: 1, 2, 3." in result.err
    # Files next to the scene still exist.
    write_features(place / "beside.gpkg", [("POINT (500015 5399985)", (1,)), ("POINT (900000 5399985)", (9,))], [("class", ogr.OFTInteger)])
    succeed(run("gdal_hsi_spectra", "-leave-out", 9, place / "scene.tif", place / "beside.gpkg", place / "s.csv"))


@pytest.mark.parametrize("labels", BOTH)
def test_all_classes_left_out(place, labels):
    with assert_untouched(place):
        result = run("gdal_hsi_spectra", "-leave-out", "1,2", "-leave-out", "soil", place / "scene.tif", place / labels, place / "s.csv")
    assert result.code == 1 and "no labelled pixel" in first_error(result) and "-leave-out" in first_error(result)


@pytest.mark.parametrize("text", ["", ",", "1,", "1,,2"])
def test_no_list_of_classes(place, text):
    refuse(2, "-leave-out", "gdal_hsi_spectra", "-leave-out", text, place / "scene.tif", place / "labels.tif", place / "s.csv", untouched=[place])


def test_without_labels_it_means_nothing(place):
    succeed(run("gdal_hsi_svm_train", "-C", 10, "-gamma", 1, "-probability", place / "scene.tif", place / "labels.tif", place / "m.json"))
    succeed(run("gdal_hsi_svm_classify", "-probabilities", place / "p.tif", place / "scene.tif", place / "m.json", place / "map.tif"))
    result = run("gdal_hsi_regularize", "-leave-out", 3, place / "p.tif", place / "q.tif")
    assert result.code == 2 and "-leave-out" in first_error(result)


def square(x, y, side):
    left, top = PLACE[0] + 30 * x, PLACE[3] - 30 * y
    return f"POLYGON (({left} {top}, {left + 30 * side} {top}, {left + 30 * side} {top - 30 * side}, {left} {top - 30 * side}, {left} {top}))"


def test_shares_without_it(place):
    """An omitted class has no band of shares, but keeps its pixels: classes below it get no label."""
    write_features(place / "v.gpkg", [(square(2, 2, 6), (1,)), (square(5, 2, 6), (2,)), (square(12, 2, 4.5), (3,))], [("class", ogr.OFTInteger)])
    files = {}
    for name, options in ("all", ()), ("some", ("-leave-out", "2")):
        files[name] = [place / f"{name}_{part}.tif" for part in "abc"]
        succeed(run("gdal_hsi_sample", "-n", 1, "-cover", files[name][2], *options, "-like", place / "scene.tif", place / "v.gpkg", *files[name][:2]))
    opened = [gdal.Open(str(f[2])) for f in files.values()]
    bands = [[d.GetRasterBand(k + 1).GetDescription() for k in range(d.RasterCount)] for d in opened]
    assert bands == [[f"cover of class {v}" for v in (1, 2, 3)], [f"cover of class {v}" for v in (1, 3)]]
    every, some = read(files["all"][2]), read(files["some"][2])
    assert np.array_equal(np.nan_to_num(every[[0, 2]]), np.nan_to_num(some))
    labels = [np.nan_to_num(read(f[0])[0]) + np.nan_to_num(read(f[1])[0]) for f in files.values()]
    assert np.array_equal(labels[1], np.where(labels[0] == 2, 0, labels[0])) and (labels[0] == 2).any()


COMMAS = ["", "Corn, young", 'Corn "old", dry', "Soil"]


@pytest.mark.parametrize("words, kept", [(('"Corn, young"',), [2, 3]), (('"Corn, young",3',), [2]), (('Soil,"Corn ""old"", dry"',), [1]),
                                         (('"Corn, young"', "Soil"), [2]), ((' "Soil" , 1',), [2])])
def test_names_with_commas(tmp_path, words, kept):
    labels = truth() + 1
    write_labels(tmp_path / "labels.tif", labels, names=COMMAS)
    options = [word for one in words for word in ("-leave-out", one)]
    succeed(run("gdal_hsi_sample", "-n", 20, *options, tmp_path / "labels.tif", tmp_path / "a.tif", tmp_path / "b.tif"))
    got = np.nansum([read(tmp_path / "a.tif")[0], read(tmp_path / "b.tif")[0]], axis=0)
    assert np.array_equal(got, np.where(np.isin(labels, kept), labels, 0))


@pytest.mark.parametrize("words", ['"Corn, young', '"Corn, young"x', '1,,2', '""', 'Soil,'])
def test_lists_that_are_none(tmp_path, words):
    write_labels(tmp_path / "labels.tif", truth() + 1, names=COMMAS)
    with assert_untouched(tmp_path):
        result = run("gdal_hsi_sample", "-n", 20, "-leave-out", words, tmp_path / "labels.tif", tmp_path / "a.tif", tmp_path / "b.tif")
    assert result.code == 2 and "is not understood" in first_error(result) and "double quotes" in result.err


def test_counts_of_classes_with_commas(tmp_path):
    labels = truth() + 1
    write_labels(tmp_path / "labels.tif", labels, names=COMMAS)
    outputs = tmp_path / "labels.tif", tmp_path / "a.tif", tmp_path / "b.tif"
    succeed(run("gdal_hsi_sample", "-n", 9, "-n", '5:"Corn, young"', "-n", "6:3", *outputs))
    train = read(tmp_path / "a.tif")[0]
    assert [(train == v).sum() for v in (1, 2, 3)] == [5, 9, 6]
    with assert_untouched(tmp_path):
        for options, words in [(("-n", "5:1", "-n", "6:1"), "-n: class '1' is named twice"), (("-n", "5:1,3", "-n", "6:Soil"), "-n: class 'Soil' is named twice"),
                               (("-fraction", "0.5:1", "-fraction", "0.4:1"), "-fraction: class '1' is named twice"), (("-n", 5, "-n", 6), "-n is given twice for all classes")]:
            result = run("gdal_hsi_sample", "-overwrite", *options, *outputs)
            assert result.code == 2 and words in first_error(result), result.err


def test_accents_composed_or_not(tmp_path):
    """NFC and NFD of a name are equal: the map's file name came from macOS."""
    composed, apart = ["", "Wald é", "Größe", "Лесной"], ["", "Wald e\u0301", "Gro\u0308ße", "Леснои\u0306"]
    labels = truth() + 1
    swapped = np.choose(labels, [0, 3, 2, 1])
    write_labels(tmp_path / "ref.tif", labels, names=composed)
    write_labels(tmp_path / "map.tif", np.where(np.arange(labels.size).reshape(labels.shape) % 4 == 0, 1, swapped), names=["", apart[3], apart[2], apart[1]])
    mapped = np.choose(read(tmp_path / "map.tif")[0].astype(int), [0, 3, 2, 1])
    result = succeed(run("gdal_hsi_accuracy", "-json", tmp_path / "map.tif", tmp_path / "ref.tif"))
    found = json.loads(result.out)
    assert [c["name"] for c in found["classes"]] == composed[1:]
    assert found["overall_accuracy"]["value"] == pytest.approx((mapped == labels).mean()) and result.err.count("are encoded differently") == 3
    # Two classes of one file remain two, and other letters are other names.
    write_labels(tmp_path / "both.tif", labels, names=["", composed[1], apart[1], "Groesse"])
    found = json.loads(succeed(run("gdal_hsi_accuracy", "-json", tmp_path / "both.tif", tmp_path / "both.tif")).out)
    assert [c["name"] for c in found["classes"]] == ["Wald é", "Wald e\u0301", "Groesse"]
    succeed(run("gdal_hsi_sample", "-n", "9", "-n", "5:" + apart[1], "-leave-out", apart[2], tmp_path / "ref.tif", tmp_path / "a.tif", tmp_path / "b.tif"))
    train = read(tmp_path / "a.tif")[0]
    assert [(train == v).sum() for v in (1, 2, 3)] == [5, 0, 9]


FIELDS = ["", "Corn, young", "Corn young", "Corn{young", "x"]


def scene_with_commas(folder):
    labels = np.kron(np.arange(1, 5).reshape(2, 2), np.ones((10, 10), int))
    write_labels(folder / "l.tif", labels, names=FIELDS)
    write_scene(folder / "s.tif", np.random.default_rng(1).random((6, 20, 20)) + labels, "GTiff", geotransform=PLACE, epsg=32633)
    return labels


def test_names_that_an_envi_library_cannot_hold(tmp_path):
    labels = scene_with_commas(tmp_path)
    result = succeed(run("gdal_hsi_spectra", tmp_path / "s.tif", tmp_path / "l.tif", tmp_path / "o.sli"))
    said = " ".join(result.err.split())
    assert "'Corn, young' becomes 'Corn young (2)', and 1 other name has changed likewise" in said and ".csv" in said
    header = (tmp_path / "o.hdr").read_text()
    names = [n.strip() for n in header.split("spectra names = {")[1].split("}")[0].split(",")]
    assert names == ["Corn young (2)", "Corn young", "Corn young (3)", "x"]
    succeed(run("gdal_hsi_unmix", "-method", "nnls", "-spectrum", "Corn young", tmp_path / "s.tif", tmp_path / "o.sli", tmp_path / "u.tif"))
    abundance = read(tmp_path / "u.tif")
    assert len(abundance) == 1  # only of this name: about 1 in its own field, and the true values elsewhere
    assert abundance[0][labels == 2].mean() == pytest.approx(1, abs=0.05)
    for name in ("o.csv", "plain.sli"):
        if name == "plain.sli":
            write_labels(tmp_path / "l.tif", labels, names=["", "a", "b", "c", "d"])
        assert succeed(run("gdal_hsi_spectra", tmp_path / "s.tif", tmp_path / "l.tif", tmp_path / name)).err == ""


@pytest.mark.parametrize("text,value", [('"Corn, young"=2', 1), ("Corn, young=2", 1), ("Corn{young=2", 3), ('"x"=2', 4), ("4=2", 4)])
def test_weights_of_classes_with_commas(tmp_path, text, value):
    scene_with_commas(tmp_path)
    succeed(run("gdal_hsi_svm_train", "-q", "-C", 1, "-gamma", 1, "-weight", text, tmp_path / "s.tif", tmp_path / "l.tif", tmp_path / "m.json"))
    classes = json.loads((tmp_path / "m.json").read_text())["classes"]
    assert {c["value"]: c["weight"] for c in classes} == {k: 2 if k == value else 1 for k in range(1, 5)}
