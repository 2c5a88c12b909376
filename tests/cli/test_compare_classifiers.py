# SPDX-License-Identifier: MIT
"""scripts/compare_classifiers on a small scene: its table, its accuracies against the tools' own, its splits, labels
from features, and bad input. It has scikit-learn's rows if scikit-learn is installed, otherwise a note."""

import json
import os
import subprocess
import sys
import types
from importlib.machinery import SourceFileLoader

import numpy as np
import pytest
from osgeo import gdal, ogr

from conftest import BIN, ROOT, UTM, Result, assert_untouched, first_error, run, succeed, write_scene

SCRIPT = ROOT / "scripts" / "compare_classifiers"
LINES, SAMPLES, SEEDS = 36, 40, 2
GEOTRANSFORM = (500000, 20, 0, 4480000, 0, -20)
FEATURES = ("raw", "pca", "mnf", "eadp", "profile")
try:
    import sklearn
except ImportError:
    sklearn = None


def compare(*words, **kwargs):
    done = subprocess.run([sys.executable, str(SCRIPT), "--bin", str(BIN), *map(str, words)], capture_output=True, text=True,
                          check=False, timeout=600, **kwargs)
    return Result(done.returncode, done.stdout, done.stderr)


def functions():
    """Imports the script as a module."""
    module = types.ModuleType("compare_classifiers")
    module.__file__ = str(SCRIPT)
    SourceFileLoader("compare_classifiers", str(SCRIPT)).exec_module(module)
    return module


def settings(case):
    return types.SimpleNamespace(scene=case.scene, labels=case.path, per_class=20, bin=BIN, nc=None, train=[], patch_pixels=0, seeds=SEEDS)


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def rows(text):
    """Returns the rows of a Markdown table as dicts."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [dict(zip(cells(lines[0]), cells(line))) for line in lines[2:]]


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    """Makes a scene of three classes in fields, which overlap enough for errors; class 4 has one patch. Also makes its
    labels."""
    folder = tmp_path_factory.mktemp("compare")
    line, sample = np.mgrid[:LINES, :SAMPLES]
    labels = (1 + (line // 9 + sample // 10) % 3).astype(np.uint8)
    labels[(line % 9 == 0) | (sample % 10 == 0)] = 0
    labels[1:4, 1:5] = 4
    random = np.random.default_rng(3)
    spectra = 1000 + random.normal(0, 60, (5, 10))
    data = np.moveaxis(spectra[labels], 2, 0) + random.normal(0, 60, (10, LINES, SAMPLES))
    scene = write_scene(folder / "scene.img", data, epsg=UTM)
    path = write_scene(folder / "labels.tif", labels[None], driver="GTiff", dtype="u1", epsg=UTM)
    return types.SimpleNamespace(scene=scene, path=path, labels=labels, folder=folder)


@pytest.fixture(scope="module")
def told(case):
    """Returns the text and the numbers of one comparison of everything."""
    numbers = case.folder / "numbers.json"
    done = succeed(compare(case.scene, case.path, "--seeds", SEEDS, "--per-class", 20, "--json", numbers))
    return done.out, {(r["split"], r["features"], r["classifier"]): r["runs"] for r in json.loads(numbers.read_text())["rows"]}


def test_every_way_has_its_row(told):
    text, numbers = told
    classifiers = ["gdal_hsi_svm"] + (["scikit-learn, SVM", "scikit-learn, random forest"] if sklearn else [])
    expected = [*((f, c) for f in FEATURES for c in classifiers), ("scene", "gdal_hsi_sahic")]
    found = rows(text)
    assert [(r["features"], r["classifier"]) for r in found] == expected
    names = {"gdal_hsi_svm": "svm", "gdal_hsi_sahic": "sahic", "scikit-learn, SVM": "sklearn-svm",
             "scikit-learn, random forest": "sklearn-forest"}
    assert len(numbers) == 2 * len(found)
    for row in found:
        for split in ("random", "disjoint"):
            feature = "sahic" if row["features"] == "scene" else row["features"]
            runs = numbers[split, feature, names[row["classifier"]]]
            assert [one["seed"] for one in runs] == [1, 2]
            for column, key in (("OA %", "overall_accuracy"), ("AA %", "average_accuracy"), ("kappa x 100", "kappa")):
                values = 100 * np.array([one[key] for one in runs])
                assert row[f"{split}: {column}"] == f"{values.mean():.1f} ± {values.std(ddof=1):.1f}"
    assert "Left out of the disjoint splits, being one patch: class 4." in text
    assert "40 x 36 pixels, 10 bands" in text and "at most 20 training pixels a class; seeds 1 to 2" in text
    assert ("rows are left out" in text) == (sklearn is None)
    accuracies = [one["overall_accuracy"] for runs in numbers.values() for one in runs]
    assert 0.5 < np.mean(accuracies) < 0.99  # otherwise nothing could differ


def test_a_random_split_is_that_of_the_tools(case, told, out):
    """Repeats the chain by hand, from gdal_hsi_sample to gdal_hsi_accuracy."""
    train, test, cube, model, mapped = (out / n for n in ("train.tif", "test.tif", "mnf.tif", "model.json", "map.tif"))
    succeed(run("gdal_hsi_sample", "-n", "20", "-n", "6:4", "-seed", "2", case.path, train, test))
    succeed(run("gdal_hsi_mnf", case.scene, cube))
    succeed(run("gdal_hsi_svm_train", "-seed", "2", cube, train, model))
    succeed(run("gdal_hsi_svm_classify", "-apply", model, cube, mapped))
    judged = json.loads(succeed(run("gdal_hsi_accuracy", "-json", mapped, test)).out)
    succeed(run("gdal_hsi_sahic", case.scene, train, out / "sahic.tif"))
    smooth = json.loads(succeed(run("gdal_hsi_accuracy", "-json", out / "sahic.tif", test)).out)
    for which, expected in ((("random", "mnf", "svm"), judged), (("random", "sahic", "sahic"), smooth)):
        mine = told[1][which][1]
        for key in ("overall_accuracy", "average_accuracy", "kappa"):
            assert mine[key] == expected[key]["value"]


def test_a_disjoint_split_takes_patches_as_a_whole(case, told, out):
    """A patch contains all pixels that a flood fill reaches through sides and corners, so no training pixel is next to
    a test pixel of its class. The accuracy on such a split equals the tools' own."""
    script = functions()
    split = script.Comparison(settings(case), out)
    train, test = split.split("disjoint", 1)
    learned, asked = (gdal.Open(str(p)).ReadAsArray() for p in (train, test))
    assert {1, 2, 3} == set(np.unique(learned[learned > 0])) == set(np.unique(asked[asked > 0]))
    assert not (learned[asked > 0] > 0).any()
    for value in (1, 2, 3):
        assert (learned == value).sum() == 20 and (case.labels[learned == value] == value).all()
        pool = script.disjoint_halves(case.labels, 1)[0] == value
        near = np.zeros_like(pool)
        for y, x in np.argwhere(pool):
            near[max(y - 1, 0):y + 2, max(x - 1, 0):x + 2] = True
        assert ((case.labels == value) & near).sum() == pool.sum()  # whole patches
        assert not (near & (asked == value)).any()
        assert (asked == value).sum() == (case.labels == value).sum() - pool.sum()
    model, mapped = out / "model.json", out / "map.tif"
    succeed(run("gdal_hsi_svm_train", "-seed", "1", case.scene, train, model))
    succeed(run("gdal_hsi_svm_classify", "-apply", model, case.scene, mapped))
    judged = json.loads(succeed(run("gdal_hsi_accuracy", "-json", mapped, test)).out)
    assert told[1]["disjoint", "raw", "svm"][0]["overall_accuracy"] == judged["overall_accuracy"]["value"]


def test_only_names_a_part(case):
    found = rows(succeed(compare(case.scene, case.path, "--seeds", 1, "--only", "disjoint,mnf,svm", "--nc", 4)).out)
    assert [(row["features"], row["classifier"]) for row in found] == [("mnf", "gdal_hsi_svm")]
    assert "±" not in found[0]["disjoint: OA %"] and "random: OA %" not in found[0]  # one seed gives no spread
    numbers = case.folder / "given.json"
    done = succeed(compare(case.scene, case.path, "--seeds", 1, "--only", "random,mnf,svm", "--train=-C 4 -gamma 0.5", "--json", numbers))
    (one,) = json.loads(numbers.read_text())["rows"][0]["runs"]
    assert (one["C"], one["gamma"]) == (4, 0.5) and "; svm_train -C 4 -gamma 0.5;" in done.out


def test_without_scikit_learn_its_rows_are_left_out(case, tmp_path):
    (tmp_path / "sklearn.py").write_text("raise ImportError\n")
    done = succeed(compare(case.scene, case.path, "--seeds", 1, "--only", "random,mnf",
                           env={**os.environ, "PYTHONPATH": str(tmp_path)}))
    assert [row["classifier"] for row in rows(done.out)] == ["gdal_hsi_svm"]
    assert "scikit-learn is not installed here: its rows are left out." in done.out


@pytest.mark.skipif(sklearn is None, reason="scikit-learn is not installed")
def test_peers_meet_the_pixels_that_our_tools_meet(case, told):
    """scikit-learn's forest on a split's files gives the accuracy in the table."""
    from sklearn.ensemble import RandomForestClassifier
    script = functions()
    split = script.Comparison(settings(case), case.folder)
    learned, asked = (gdal.Open(str(p)).ReadAsArray() for p in split.split("random", 1))
    pixels = gdal.Open(case.scene).ReadAsArray().astype(np.float64)
    forest = RandomForestClassifier(n_estimators=500, random_state=1).fit(pixels[:, learned > 0].T, learned[learned > 0])
    right = (forest.predict(pixels[:, asked > 0].T) == asked[asked > 0]).mean()
    assert told[1]["random", "raw", "sklearn-forest"][0]["overall_accuracy"] == pytest.approx(right)
    peer, own = ([100 * one["overall_accuracy"] for one in told[1]["disjoint", "mnf", m]] for m in ("sklearn-svm", "svm"))
    gains = np.subtract(peer, own)
    (line,) = [line for line in told[0].splitlines() if "'s SVM less ours" in line and "disjoint:" in line]
    assert f" mnf {gains.mean():.1f} ± {gains.std(ddof=1) / 2**0.5:.1f}," in line


def test_folds_hold_whole_patches_out(case, tmp_path):
    """Every pixel of classes with several patches is tested once, by models without pixels of its patch."""
    script = functions()
    comparison = script.Comparison(settings(case), tmp_path)
    tested = np.zeros_like(case.labels, dtype=int)
    for seed in range(1, SEEDS + 1):
        train, test = (gdal.Open(str(path)).ReadAsArray() for path in comparison.split("folds", seed))
        tested += test > 0
        assert not ((train > 0) & (test > 0)).any()
        assert not set(comparison.groups[train > 0]) & set(comparison.groups[test > 0])
        for labels in (train, test):
            assert np.array_equal(labels[labels > 0], case.labels[labels > 0])
    assert np.array_equal(tested > 0, (case.labels > 0) & (case.labels != 4)) and tested.max() == 1
    assert comparison.notes == ["Left out of the folds, being one patch: class 4."]


def test_labels_of_few_pixels_of_each_patch(case):
    script = functions()
    kept = script.centres_of_patches(case.labels, 5)
    numbers = script.patch_numbers(case.labels)
    assert set(np.bincount(numbers[kept > 0])[1:]) == {5} and np.array_equal(kept[kept > 0], case.labels[kept > 0])
    inner = np.pad(case.labels, 1)
    inside = np.ones_like(case.labels, bool)
    for y in range(3):
        for x in range(3):
            inside &= inner[y:y + LINES, x:x + SAMPLES] == case.labels
    assert inside[kept > 0].mean() > 0.8  # the middle of a field


def test_features_label_what_they_cover(case, tmp_path):
    """Computes shares by hand: a rectangle over 3.6 x 2 pixels, and a rectangle of another class."""
    path = str(tmp_path / "polygons.gpkg")
    data = ogr.GetDriverByName("GPKG").CreateDataSource(path)
    layer = data.CreateLayer("polygons", gdal.Open(case.scene).GetSpatialRef())
    layer.CreateField(ogr.FieldDefn("kind", ogr.OFTString))
    for kind, (left, right, top, bottom) in (("wood", (2, 5.6, 4, 6)), ("crop", (10, 14, 4.3, 8))):
        x, y = [500000 + 20 * v for v in (left, right)], [4480000 - 20 * v for v in (top, bottom)]
        feature = ogr.Feature(layer.GetLayerDefn())
        feature.SetField("kind", kind)
        feature.SetGeometry(ogr.CreateGeometryFromWkt(
            f"POLYGON(({x[0]} {y[0]},{x[1]} {y[0]},{x[1]} {y[1]},{x[0]} {y[1]},{x[0]} {y[0]}))"))
        layer.CreateFeature(feature)
    feature = layer = data = None
    script = functions()
    for cover, last_column, first_line in ((0.5, 6, 4), (0.65, 5, 4), (0.75, 5, 5)):
        expected = np.zeros((LINES, SAMPLES), int)
        expected[4:6, 2:last_column] = 2
        expected[first_line:8, 10:14] = 1
        found = script.read_vector_labels(path, "kind", cover, gdal.Open(case.scene))
        np.testing.assert_array_equal(found, expected)


def test_what_cannot_be_compared_is_said(case, tmp_path):
    small = write_scene(tmp_path / "small.tif", np.ones((1, 5, 5)), driver="GTiff", dtype="u1")
    one = write_scene(tmp_path / "one.tif", (case.labels[None] == 1), driver="GTiff", dtype="u1")
    patches = np.zeros((1, LINES, SAMPLES))
    patches[0, :8, :8], patches[0, 20:30, 20:30] = 1, 2
    single = write_scene(tmp_path / "single.tif", patches, driver="GTiff", dtype="u1")
    numbers = tmp_path / "numbers.json"
    for words, code, said in (
            ((case.scene, small), 1, "5 x 5 pixels, the scene 40 x 36"),
            ((case.scene, one), 1, "fewer than two classes"),
            ((case.scene, single, "--only", "disjoint,raw,svm"), 1, "there is no disjoint split"),
            ((case.scene, single, "--only", "folds,raw,svm"), 1, "there are no folds"),
            ((case.scene, tmp_path / "none.tif"), 1, "none.tif' is not there"),
            ((case.scene, case.path, "--only", "mfn"), 1, "--only: 'mfn' is not known"),
            ((case.scene, case.path, "--bin", tmp_path), 1, "is not there")):
        with assert_untouched(tmp_path):
            done = compare(*words, "--json", numbers)
        assert done.code == code and said in first_error(done), done.err
        assert done.out == ""
    for option, value in (("--seeds", 0), ("--per-class", 1), ("--min-cover", 0), ("--min-cover", 1.2), ("--nc", 0), ("--patch-pixels", -1)):
        assert compare(case.scene, case.path, option, value).code == 2
