# SPDX-License-Identifier: MIT
"""-with SCENE LABELS, and @FILE of such pairs: training and assessment with many scenes equal those with one scene of
all their lines, and the option has one meaning in all tools."""
import json

import numpy as np
import pytest
from conftest import assert_untouched, cube, first_error, read, run, succeed, write_scene
from osgeo import gdal

BANDS, SAMPLES = 10, 31
WAVELENGTHS = [450 + 40 * b for b in range(BANDS)]
HEIGHTS = (23, 9, 40)
CLASSES = {1: "wheat", 2: "corn", 3: "soil"}


def write_classes(path, values, names):
    write_scene(path, values[None].astype(float), driver="GTiff", dtype="u1", geotransform=None, epsg=None)
    dataset = gdal.Open(str(path), gdal.GA_Update)
    dataset.GetRasterBand(1).SetCategoryNames([names.get(k, "") for k in range(max(names) + 1)])
    return path


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    """Makes three flight lines with labels, and one scene of all their lines with all labels. The second flight line
    numbers its classes differently, and the third has a class that the others lack."""
    folder = tmp_path_factory.mktemp("pairs")
    lines = sum(HEIGHTS)
    data = np.round(cube(SAMPLES, lines, BANDS, seed=7, scale=5000.0, noise=0.05))
    truth = (np.arange(lines)[:, None] // 7 + np.arange(SAMPLES)[None, :] // 5) % 2 + 1
    truth[HEIGHTS[0] + HEIGHTS[1]:, ::6] = 3
    labels = np.where(np.random.default_rng(1).random((lines, SAMPLES)) < 0.12, truth, 0)
    write_scene(folder / "all.img", data, dtype="u2", wavelengths=WAVELENGTHS, geotransform=None, epsg=None)
    write_classes(folder / "all_labels.tif", labels, CLASSES)
    first = 0
    for k, height in enumerate(HEIGHTS):
        part = slice(first, first + height)
        write_scene(folder / f"line{k}.img", data[:, part], dtype="u2", wavelengths=WAVELENGTHS, geotransform=None, epsg=None)
        own, names = labels[part], {1: "wheat", 2: "corn"}
        if k == 1:
            own, names = np.choose(own, [0, 2, 1]), {1: "corn", 2: "wheat"}
        elif k == 2:
            names = CLASSES
        write_classes(folder / f"labels {k}.tif", own, names)
        first += height
    (folder / "pairs.txt").write_text("# scene and labels\n\n" + "".join(f"line{k}.img\tlabels {k}.tif\n" for k in (1, 2)))
    return folder


def given(how):
    if how == "list":
        return ["-with", "@pairs.txt"]
    return ["-with", "line1.img", "labels 1.tif", "-with", "line2.img", "labels 2.tif"]


@pytest.mark.parametrize("how", ["words", "list"])
def test_sahic_trains_with_all_scenes(tmp_path, campaign, how):
    """The regression equals that of one scene of all lines; the map belongs to src."""
    options = ["-q", "-device", "cpu", "-no-spatial"]
    succeed(run("gdal_hsi_sahic", *options, "-model", tmp_path / "many.json", *given(how), "line0.img", "labels 0.tif",
                tmp_path / "map.tif", cwd=campaign))
    succeed(run("gdal_hsi_sahic", *options, "-model", tmp_path / "one.json", "all.img", "all_labels.tif", tmp_path / "all.tif",
                cwd=campaign))
    many, one = (json.loads((tmp_path / name).read_text()) for name in ("many.json", "one.json"))
    assert [(c["value"], c["name"]) for c in many["classes"]] == list(CLASSES.items())
    differing = {key for key in one if many.get(key) != one[key]}
    assert differing <= {"training", "history", "checksum"}, differing
    assert (read(tmp_path / "map.tif")[0] == read(tmp_path / "all.tif")[0][:HEIGHTS[0]]).all()
    # With the Markov random field, the map still belongs to src, and the model is the same.
    report = tmp_path / "r.json"
    succeed(run("gdal_hsi_sahic", "-q", "-device", "cpu", "-report", report, *given(how), "line0.img", "labels 0.tif", tmp_path / "field.tif",
                cwd=campaign))
    assert read(tmp_path / "field.tif").shape == (1, HEIGHTS[0], SAMPLES)
    assert [entry["scene"] for entry in json.loads(report.read_text())["with"]] == ["line1.img", "line2.img"]


@pytest.mark.parametrize("how", ["words", "list"])
def test_svm_and_spectra_take_the_same_pairs(tmp_path, campaign, how):
    succeed(run("gdal_hsi_svm_train", "-q", "-C", 8, "-gamma", 1, *given(how), "line0.img", "labels 0.tif", tmp_path / "many.json", cwd=campaign))
    succeed(run("gdal_hsi_svm_train", "-q", "-C", 8, "-gamma", 1, "all.img", "all_labels.tif", tmp_path / "one.json", cwd=campaign))
    many, one = (json.loads((tmp_path / name).read_text()) for name in ("many.json", "one.json"))
    assert many["svm"] == one["svm"] and many["features"] == one["features"] and many["classes"] == one["classes"]
    assert [c["name"] for c in many["classes"]] == list(CLASSES.values())
    for name, scene, labels, pairs in (("many", "line0.img", "labels 0.tif", given(how)), ("one", "all.img", "all_labels.tif", [])):
        succeed(run("gdal_hsi_spectra", "-q", *pairs, scene, labels, tmp_path / f"{name}.csv", cwd=campaign))
    assert (tmp_path / "many.csv").read_text() == (tmp_path / "one.csv").read_text()


@pytest.mark.parametrize("how", ["words", "list"])
@pytest.mark.parametrize("unclassified", ["ignore", "error"])
def test_accuracy_of_many_maps_is_that_of_all_pixels(tmp_path, campaign, how, unclassified):
    """Counted by numpy, by class name."""
    random = np.random.default_rng(5)
    matrix, missing, first = np.zeros((4, 4), int), 0, 0
    truth = gdal.Open(str(campaign / "all_labels.tif")).ReadAsArray()
    for k, height in enumerate(HEIGHTS):
        own = truth[first:first + height]
        mapped = np.where(random.random(own.shape) < 0.7, own, random.integers(0, 4, own.shape))
        mapped[own == 0] = 1
        for r, m in zip(own.ravel(), mapped.ravel()):
            if r and m:
                matrix[r, m] += 1
            elif r:
                missing += 1
        numbers = {1: 7, 2: 5, 3: 9} if k == 1 else {1: 1, 2: 2, 3: 3}  # a map with its own numbers
        write_classes(tmp_path / f"map{k}.tif", np.vectorize(lambda v: numbers.get(v, 0))(mapped), {numbers[v]: CLASSES[v] for v in CLASSES})
        first += height
    if how == "list":
        (tmp_path / "list.txt").write_text("".join(f"map{k}.tif\t{campaign / f'labels {k}.tif'}\n" for k in (1, 2)))
        pairs = ["-with", "@list.txt"]
    else:
        pairs = [word for k in (1, 2) for word in ("-with", f"map{k}.tif", campaign / f"labels {k}.tif")]
    result = json.loads(succeed(run("gdal_hsi_accuracy", "-json", "-unclassified", unclassified, *pairs, "map0.tif",
                                    campaign / "labels 0.tif", cwd=tmp_path)).out)
    names = [c["name"] for c in result["classes"]]
    assert sorted(names) == sorted(CLASSES.values())
    number = {name: value for value, name in CLASSES.items()}
    want = [[int(matrix[number[r], number[m]]) for m in names] for r in names]
    assert result["confusion_matrix"] == want
    total = int(matrix.sum()) + (missing if unclassified == "error" else 0)
    assert (result["pixels"], result["unclassified"]) == (total, missing)
    assert result["overall_accuracy"]["value"] == pytest.approx(np.trace(matrix) / total, rel=1e-12)
    if unclassified == "ignore":
        rows, columns = matrix.sum(1), matrix.sum(0)
        chance = (rows * columns).sum() / total ** 2
        assert result["kappa"]["value"] == pytest.approx((np.trace(matrix) / total - chance) / (1 - chance), rel=1e-12)
    assert len({c["value"] for c in result["classes"]}) == len(names)


def test_what_is_refused(tmp_path, campaign):
    (tmp_path / "short.txt").write_text("line1.img\n")
    (tmp_path / "long.txt").write_text("a b c\n")
    (tmp_path / "gone.txt").write_text("none.img\tlabels 1.tif\n")
    (tmp_path / "empty.txt").write_text("# none\n")
    model = ["line0.img", "labels 0.tif", tmp_path / "m.json"]
    tools = {"gdal_hsi_svm_train": model, "gdal_hsi_sahic": ["line0.img", "labels 0.tif", tmp_path / "m.tif"],
             "gdal_hsi_spectra": ["line0.img", "labels 0.tif", tmp_path / "m.csv"],
             "gdal_hsi_accuracy": ["labels 0.tif", "labels 0.tif"]}
    for tool, words in tools.items():
        for pairs, code, message in (
                (["-with", f"@{tmp_path}/short.txt"], 1, "'line1.img' are not two names"), (["-with", f"@{tmp_path}/long.txt"], 1, "are not two names"),
                (["-with", f"@{tmp_path}/gone.txt"], 1, "none.img"), (["-with", f"@{tmp_path}/empty.txt"], 1, "lists no pair of names"),
                (["-with", f"@{tmp_path}/none.txt"], 1, "none.txt"),
                (["-with", words[0], "labels 1.tif"], 2, "is given twice"),
                (["-with", "line1.img", "labels 1.tif", "-with", "line1.img", "labels 1.tif"], 2, "is given twice")):
            if tool == "gdal_hsi_accuracy" and pairs[1] == "line1.img":
                pairs = ["-with", "labels 1.tif", "labels 1.tif"] * 2
                pairs = pairs[:6]
            with assert_untouched(tmp_path, campaign):
                result = run(tool, *pairs, *words, cwd=campaign)
            assert result.code == code and message in first_error(result), (tool, pairs, result.err)
    result = run("gdal_hsi_sahic", "-apply", "m.json", "-with", "line1.img", "labels 1.tif", "line0.img", "none", tmp_path / "m.tif", cwd=campaign)
    assert result.code == 2 and "-with cannot be used with -apply" in first_error(result)
    result = run("gdal_hsi_accuracy", "-folds", 3, "-with", "a", "b", "m.tif", "t.tif")
    assert result.code == 2 and "cannot be used with" in first_error(result)
