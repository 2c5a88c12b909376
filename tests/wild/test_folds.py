# SPDX-License-Identifier: MIT
"""Whole patches and folds of gdal_hsi_sample, and mean and spread of gdal_hsi_accuracy, compared with a flood fill and
numpy."""
import csv
import json
import zipfile

import numpy as np
import pytest
from conftest import assert_untouched, first_error, read, run, succeed
from label_files import write_features, write_labels
from osgeo import ogr

PLACE = (500000, 30, 0, 5400000, 0, -30)


def patches(labels):
    """Numbers the patches from 1 on: pixels of a class that touch at sides or corners."""
    number, found = np.zeros(labels.shape, int), 0
    for start in np.argwhere(labels > 0):
        if number[tuple(start)]:
            continue
        found += 1
        waiting = [tuple(start)]
        while waiting:
            y, x = waiting.pop()
            if not (0 <= y < labels.shape[0] and 0 <= x < labels.shape[1]) or number[y, x] or labels[y, x] != labels[tuple(start)]:
                continue
            number[y, x] = found
            waiting += [(y + dy, x + dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1)]
    return number


def fields(lines=60, samples=50, seed=4):
    """Makes small fields of four classes, some of which touch."""
    random = np.random.default_rng(seed)
    labels = np.zeros((lines, samples), int)
    for _ in range(60):
        y, x = random.integers(0, lines - 6), random.integers(0, samples - 6)
        labels[y:y + random.integers(1, 7), x:x + random.integers(1, 7)] = random.integers(1, 5)
    return labels


def sample(folder, labels, *options):
    path = labels if isinstance(labels, (str, type(folder))) else write_labels(folder / "labels.tif", labels, place=PLACE)
    return succeed(run("gdal_hsi_sample", "-overwrite", "-report", folder / "s.json", *options, path, folder / "train.tif", folder / "test.tif"))


def pair(folder, fold=None):
    suffix = "" if fold is None else f"_{fold}"
    return [np.nan_to_num(read(folder / f"{name}{suffix}.tif")[0]) for name in ("train", "test")]


def touching(train, test):
    padded = np.pad(train > 0, 1)
    near = np.any([padded[1 + dy:padded.shape[0] - 1 + dy, 1 + dx:padded.shape[1] - 1 + dx] for dy in (-1, 0, 1) for dx in (-1, 0, 1)], axis=0)
    return int(((test > 0) & near).sum())


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_whole_patches_are_drawn(tmp_path, seed):
    labels = fields()
    number = patches(labels)
    result = sample(tmp_path, labels, "-by", "patches", "-n", 40, "-seed", seed)
    train, test = pair(tmp_path)
    assert np.array_equal(train + test, labels)
    assert json.loads((tmp_path / "s.json").read_text())["patches"] == number.max() == int(result.out.split(" patches of labelled")[0].split()[-1])
    for value in range(1, 5):
        own = np.unique(number[train == value])
        assert not set(own) & set(np.unique(number[test == value]))
        sizes = [(number == k).sum() for k in own]
        # No patch more than necessary.
        assert sum(sizes) >= 40 and sum(sizes) - max(sizes) < 40 and (test == value).any()
    first = train
    sample(tmp_path, labels, "-by", "patches", "-n", 40, "-seed", seed)
    assert np.array_equal(pair(tmp_path)[0], first)
    sample(tmp_path, labels, "-by", "patches", "-n", 40, "-seed", seed + 10)
    assert not np.array_equal(pair(tmp_path)[0], first)


def test_the_last_patch_stays_for_the_test(tmp_path):
    labels = np.zeros((20, 20), int)
    labels[0:4, 0:4], labels[10:14, 0:4], labels[0:5, 10:15], labels[10:15, 10:15] = 1, 1, 2, 3
    labels[17, 17] = 3
    said = sample(tmp_path, labels, "-by", "patches", "-n", 20).err
    train, test = pair(tmp_path)
    assert (train == 1).sum() == (test == 1).sum() == 16 and "class 1: 16 of the 20 training pixels requested, since one patch is kept" in said
    assert (train == 2).sum() == 25 and "no test pixel is left of class 2" in said
    single = write_labels(tmp_path / "one.tif", np.where(labels == 2, 2, 0), place=PLACE)
    with assert_untouched(tmp_path):
        result = run("gdal_hsi_sample", "-by", "patches", "-n", 20, single, tmp_path / "x.tif", tmp_path / "y.tif")
        assert result.code == 1 and "no test pixel is left" in first_error(result) and "one patch" in result.err


def ring(corners):
    points = [(PLACE[0] + 30 * x, PLACE[3] - 30 * y) for x, y in [*corners, corners[0]]]
    return "((" + ", ".join(f"{x} {y}" for x, y in points) + "))"


def test_polygons_stay_whole_and_multipolygons_do_not(tmp_path):
    """A polygon with a waist that contains no pixel centre is one patch; the parts of a multipolygon are several."""
    dumbbell = [(1, 1), (5, 1), (5, 3), (9, 3), (9, 1), (13, 1), (13, 6), (9, 6), (9, 3.3), (5, 3.3), (5, 6), (1, 6)]
    parts = [[(1 + 7 * k, 10), (5 + 7 * k, 10), (5 + 7 * k, 14), (1 + 7 * k, 14)] for k in range(3)]
    write_labels(tmp_path / "like.tif", np.zeros((30, 30)), place=PLACE)
    other = [(20, 20), (23, 20), (23, 23), (20, 23)]
    write_features(tmp_path / "v.gpkg", [("POLYGON " + ring(dumbbell), (1,)), ("POLYGON " + ring([(20, 1), (24, 1), (24, 5), (20, 5)]), (1,)),
                                         ("MULTIPOLYGON (" + ", ".join(map(ring, parts)) + ")", (2,)), ("POLYGON " + ring(other), (3,)),
                                         ("POLYGON " + ring([(x + 5, y) for x, y in other]), (3,))], [("class", ogr.OFTInteger)])
    seen = set()
    for seed in range(12):
        sample(tmp_path, tmp_path / "v.gpkg", "-by", "patches", "-n", 10, "-n", "9:3", "-seed", seed, "-like", tmp_path / "like.tif")
        train, test = pair(tmp_path)
        assert json.loads((tmp_path / "s.json").read_text())["patches"] == 7
        assert len(np.unique(train[1:6, 1:13])) <= 2 and ((train[1:6, 1:13] > 0).sum() in (0, 40)), "the dumbbell is cut"
        assert (train[10:14, :] == 2).sum() == 16 and (test[10:14, :] == 2).sum() == 32
        seen.add(((train[1:6, 1:13] > 0).any(), tuple(np.argwhere(train == 2)[0])))
    assert len(seen) >= 4


@pytest.mark.parametrize("by", ["pixels", "patches"])
@pytest.mark.parametrize("count", [2, 5])
def test_folds_share_all_pixels_out(tmp_path, by, count):
    labels = fields(seed=6)
    number = patches(labels)
    result = sample(tmp_path, labels, "-folds", count, "-by", by)
    report = json.loads((tmp_path / "s.json").read_text())
    times, near = np.zeros(labels.shape, int), 0
    sizes = np.zeros((count, 5), int)
    for k in range(1, count + 1):
        train, test = pair(tmp_path, k)
        assert np.array_equal(train + test, labels) and not ((train > 0) & (test > 0)).any()
        times += test > 0
        if by == "patches":
            assert not set(np.unique(number[train > 0])) & set(np.unique(number[test > 0]))
        assert report["folds"][k - 1]["test_pixels_touching_training"] == touching(train, test)
        near += touching(train, test)
        sizes[k - 1] = [(test == v).sum() for v in range(5)]
        assert {c["value"]: (c["train"], c["test"]) for c in report["folds"][k - 1]["classes"]} == {
            v: ((train == v).sum(), (test == v).sum()) for v in range(1, 5)}
    assert np.array_equal(times > 0, labels > 0) and times.max() == 1
    assert report["test_pixels_touching_training"] == near
    assert ("touch a training pixel" in result.err) == (near > 0.05 * (labels > 0).sum())
    if by == "pixels":
        assert near > 0.05 * (labels > 0).sum() and "-by patches to keep fields together" in result.err
        assert (sizes[:, 1:].max(0) - sizes[:, 1:].min(0) <= 1).all() and np.ptp(sizes[:, 1:].sum(1)) <= 1
    assert not (tmp_path / "train.tif").exists() and not (tmp_path / "test.tif").exists()


def test_folds_of_fields_that_stand_apart_do_not_touch(tmp_path):
    labels = np.zeros((40, 40), int)
    for k, (y, x) in enumerate((y, x) for y in range(0, 40, 8) for x in range(0, 40, 8)):
        labels[y:y + 5, x:x + 5] = k % 2 + 1
    for by, warned in ("patches", False), ("pixels", True):
        result = sample(tmp_path, labels, "-folds", 5, "-by", by)
        assert ("touch a training pixel" in result.err) == warned, result.err
    # Fewer for training, drawn from the other folds.
    sample(tmp_path, labels, "-folds", 5, "-by", "patches", "-n", 60, "-n", "25:2")
    for k in range(1, 6):
        train, test = pair(tmp_path, k)
        assert ((train == 1).sum(), (train == 2).sum()) == (75, 25) and not ((train > 0) & (test > 0)).any()
    sample(tmp_path, labels, "-folds", 5, "-n", 60, "-fraction", "0.5:2")
    for k in range(1, 6):
        train, test = pair(tmp_path, k)
        assert ((train == 1).sum(), (train == 2).sum()) == (60, round((300 - (test == 2).sum()) / 2))
    # Distances between fields are three pixels.
    result = sample(tmp_path, labels, "-folds", 5, "-by", "patches", "-min-distance", 6)
    for k in range(1, 6):
        train, test = pair(tmp_path, k)
        a, b = np.argwhere(train > 0), np.argwhere(test > 0)
        assert ((a[:, None] - b[None]) ** 2).sum(2).min() >= 36
    assert "left out there" in result.out


def test_classes_that_folds_cannot_test(tmp_path):
    labels = np.zeros((30, 30), int)
    for k, (y, x) in enumerate((y, x) for y in range(0, 24, 6) for x in range(0, 24, 6)):
        labels[y:y + 3, x:x + 3] = 1
    labels[26:29, 0:3], labels[26:29, 10:13], labels[26:29, 20:23] = 2, 2, 3
    said = sample(tmp_path, labels, "-folds", 4, "-by", "patches").err
    report = json.loads((tmp_path / "s.json").read_text())["folds"]
    fold = 1 + [{c["value"]: c["train"] for c in f["classes"]}[3] for f in report].index(0)
    assert f"all of its test pixels will be wrong: class 3 (fold {fold})" in said
    assert "no test pixel in some folds (their count in brackets) of class 2 (2)" in said
    said = sample(tmp_path, np.where(labels == 1, 1, 0) + np.where(np.roll(labels, 3, 1) == 1, 2, 0), "-folds", 4, "-by", "patches").err
    assert "no test pixel" not in said and "no training pixel" not in said


@pytest.mark.parametrize("distance", [0, 2, 12])
def test_classes_of_one_patch_or_pixel(tmp_path, distance):
    """Messages about folds refer to the pixels that remain after -min-distance."""
    labels = np.zeros((90, 90), int)
    for y, x in ((y, x) for y in range(0, 80, 16) for x in range(0, 80, 16)):
        labels[y:y + 3, x:x + 3] = 1
    labels[8:11, 8:11] = 6  # one patch, within 12 pixels of the four around it
    labels[88, 10], labels[88, 60] = 4, 4  # two pixels
    said = sample(tmp_path, labels, "-folds", 3, "-by", "patches", "-min-distance", distance).err
    train, test = zip(*(pair(tmp_path, k) for k in (1, 2, 3)))
    strangers = [k + 1 for k in range(3) if (test[k] == 6).any() and not (train[k] == 6).any()]
    neither = [k + 1 for k in range(3) if not (test[k] == 6).any() and not (train[k] == 6).any()]
    single = [k + 1 for k in range(3) if (train[k] == 4).sum() == 1]
    assert len(strangers) == (distance < 12) and len(neither) == (distance == 12) and len(single) == 2
    for k in strangers:
        assert f"all of its test pixels will be wrong: class 6 (fold {k})" in said
    for k in neither:
        assert f"no training pixel and no test pixel is left of class 6 (fold {k})" in said
    assert ("no test pixel in any fold of class 6" in said) == (distance == 12)
    assert f"only 1 training pixel of class 4 (folds {single[0]}, {single[1]})" in said and "-leave-out" in said
    assert ("class 1" in said) is False
    said = sample(tmp_path, labels, "-folds", 3, "-by", "patches", "-min-distance", distance, "-leave-out", "4,6").err
    assert "only 1 training pixel" not in said and "no training pixel" not in said


def test_folds_that_cannot_be(tmp_path):
    labels = np.zeros((20, 20), int)
    labels[0:4, 0:4], labels[10:14, 0:4], labels[0:5, 10:15] = 1, 1, 2
    path = write_labels(tmp_path / "labels.tif", labels, place=PLACE)
    outputs = tmp_path / "a.tif", tmp_path / "b.tif"
    cases = [(("-folds", 4, "-by", "patches"), 1, "4 folds cannot be made of 3 patches"), (("-folds", 100), 1, "100 folds cannot be made of 57 labelled pixels"),
             (("-folds", 1), 2, "-folds"), (("-folds", 3, "-min-distance", 2), 2, "-min-distance"), (("-patches", 2, "-by", "patches", "-min-distance", 2), 2, "-patches"),
             (("-folds", 3, "-n", 30), 1, "class 1 has 21 labelled pixels outside of fold 1, fewer than the 30 training pixels requested")]
    with assert_untouched(tmp_path):
        for options, code, words in cases:
            result = run("gdal_hsi_sample", *options, path, *outputs)
            assert result.code == code and words in first_error(result), result.err
    write_labels(tmp_path / "b_2.tif", labels, place=PLACE)
    with assert_untouched(tmp_path):
        result = run("gdal_hsi_sample", "-folds", 3, path, *outputs)
        assert result.code == 1 and "b_2.tif" in first_error(result)
        result = run("gdal_hsi_sample", "-overwrite", "-folds", 3, tmp_path / "b_2.tif", *outputs)
        assert result.code in (1, 2) and "b_2.tif" in result.err


def figures(mapped, reference):
    """Returns OA, AA, kappa and {class: (producer's, user's, F1)} of the classes in the reference."""
    m, r = mapped[reference > 0], reference[reference > 0]
    classes = np.unique(r)
    n, agreed = len(r), (m == r).sum()
    chance = sum((m == c).sum() * (r == c).sum() for c in np.union1d(classes, m)) / n ** 2
    by_class = {}
    for c in classes:
        hit, of_r, of_m = ((m == c) & (r == c)).sum(), (r == c).sum(), (m == c).sum()
        by_class[int(c)] = (hit / of_r, hit / of_m if of_m else np.nan, 2 * hit / (of_r + of_m))
    return agreed / n, np.mean([v[0] for v in by_class.values()]), (agreed / n - chance) / (1 - chance), by_class


def write_folds(folder, count, seed=1):
    random = np.random.default_rng(seed)
    pairs = []
    for k in range(1, count + 1):
        reference = random.integers(0, 4, (20, 20))
        if k == 2:
            reference[reference == 3] = 0  # a fold without a class
        mapped = np.where(random.uniform(size=reference.shape) < 0.5 + 0.1 * k, np.maximum(reference, 1), random.integers(1, 4, reference.shape))
        write_labels(folder / f"map_{k}.tif", mapped, place=PLACE)
        write_labels(folder / f"test_{k}.tif", reference, place=PLACE)
        pairs.append((mapped, reference))
    return pairs


def close(found, values):
    values = np.array(values, float)
    values = values[~np.isnan(values)]
    assert found["mean"] == pytest.approx(values.mean(), abs=1e-12) and found["standard_deviation"] == pytest.approx(values.std(ddof=1), abs=1e-12)
    assert found["folds"] == len(values)


@pytest.mark.quick
def test_mean_and_spread_over_folds(tmp_path):
    pairs = write_folds(tmp_path, 4)
    want = [figures(*p) for p in pairs]
    arguments = "-folds", 4, tmp_path / "map.tif", tmp_path / "test.tif"
    result = json.loads(succeed(run("gdal_hsi_accuracy", "-json", "-csv", tmp_path / "f.csv", "-report", tmp_path / "r.json", *arguments)).out)
    for name, k in ("overall_accuracy", 0), ("average_accuracy", 1), ("kappa", 2):
        close(result[name], [w[k] for w in want])
    assert [c["value"] for c in result["classes"]] == [1, 2, 3]
    for c in result["classes"]:
        for name, k in ("producers_accuracy", 0), ("users_accuracy", 1), ("f1", 2):
            close(c[name], [w[3][c["value"]][k] for w in want if c["value"] in w[3]])
    assert result["classes"][2]["f1"]["folds"] == 3
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["accuracy"] == result and [f["map"]["path"] for f in report["folds"]] == [str(tmp_path / f"map_{k}.tif") for k in range(1, 5)]
    for k in range(4):
        alone = json.loads(succeed(run("gdal_hsi_accuracy", "-json", tmp_path / f"map_{k + 1}.tif", tmp_path / f"test_{k + 1}.tif")).out)
        assert alone == result["folds"][k]
    text = succeed(run("gdal_hsi_accuracy", *arguments)).out
    oa = np.array([w[0] for w in want])
    assert f"Overall accuracy (OA): {100 * oa.mean():.2f} +- {100 * oa.std(ddof=1):.2f} %" in text and "over 4 folds" in text
    with open(tmp_path / "f.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [r["fold"] for r in rows] == ["1", "2", "3", "4", "mean", "standard_deviation"]
    assert [float(r["overall_accuracy"]) for r in rows] == pytest.approx([*oa, oa.mean(), oa.std(ddof=1)], abs=1e-6)
    assert rows[1]["f1 3"] == "" and float(rows[0]["f1 3"]) == pytest.approx(want[0][3][3][2], abs=1e-6)


def test_one_reference_for_several_maps(tmp_path):
    pairs = write_folds(tmp_path, 3)
    write_labels(tmp_path / "truth.tif", pairs[0][1], place=PLACE)
    result = json.loads(succeed(run("gdal_hsi_accuracy", "-json", "-folds", 3, tmp_path / "map.tif", tmp_path / "truth.tif")).out)
    close(result["overall_accuracy"], [figures(m, pairs[0][1])[0] for m, _ in pairs])


def test_one_reference_in_an_archive(tmp_path):
    """A file in GDAL's file systems also exists."""
    pairs = write_folds(tmp_path, 2)
    write_labels(tmp_path / "truth.tif", pairs[0][1], place=PLACE)
    with zipfile.ZipFile(tmp_path / "truth.zip", "w") as archive:
        archive.write(tmp_path / "truth.tif", "truth.tif")
    result = json.loads(succeed(run("gdal_hsi_accuracy", "-json", "-folds", 2, tmp_path / "map.tif", f"/vsizip/{tmp_path}/truth.zip/truth.tif")).out)
    close(result["overall_accuracy"], [figures(m, pairs[0][1])[0] for m, _ in pairs])


def test_folds_beside_their_training_pixels(tmp_path):
    labels = np.zeros((40, 40), int)
    for k, (y, x) in enumerate((y, x) for y in range(0, 40, 8) for x in range(0, 40, 8)):
        labels[y:y + 5, x:x + 5] = k % 2 + 1
    for by, warned in ("pixels", True), ("patches", False):
        sample(tmp_path, labels, "-folds", 3, "-by", by)
        for k in range(1, 4):
            write_labels(tmp_path / f"map_{k}.tif", np.maximum(labels, 1), place=PLACE)
        result = succeed(run("gdal_hsi_accuracy", "-folds", 3, "-training", tmp_path / "train.tif", "-report", tmp_path / "a.json", tmp_path / "map.tif",
                             tmp_path / "test.tif"))
        assert (result.err.count("touch a training pixel") == 1) == warned and ("touch" in result.err) == warned
        for k, fold in enumerate(json.loads((tmp_path / "a.json").read_text())["folds"], 1):
            train, test = pair(tmp_path, k)
            assert (fold["training"]["pixels_of_training"], fold["training"]["pixels_touching_training"]) == (0, touching(train, test))


@pytest.mark.parametrize("options", [("-field", "class"), ("-all-touched",), ("-min-cover", 0.5)])
def test_a_training_raster_beside_polygons(tmp_path, options):
    """Options for features refer to the reference; a raster of training labels does not use them."""
    labels = np.zeros((20, 20), int)
    labels[2:8, 2:8] = 1
    write_labels(tmp_path / "map.tif", np.maximum(labels, 2), place=PLACE)
    train = write_labels(tmp_path / "train.tif", np.roll(labels, 3, 1), place=PLACE)
    write_features(tmp_path / "v.gpkg", [("POLYGON " + ring([(2.1, 2.1), (7.9, 2.1), (7.9, 7.9), (2.1, 7.9)]), (1,))], [("class", ogr.OFTInteger)])
    result = succeed(run("gdal_hsi_accuracy", *options, "-training", train, tmp_path / "map.tif", tmp_path / "v.gpkg"))
    assert "18 of 36 reference pixels are training pixels" in result.err
    refused = run("gdal_hsi_accuracy", *options, "-training", train, tmp_path / "map.tif", train)
    assert refused.code == 1 and "is a raster, which has no features" in first_error(refused)


def test_folds_that_are_not_there(tmp_path):
    write_folds(tmp_path, 2)
    with assert_untouched(tmp_path):
        result = run("gdal_hsi_accuracy", "-folds", 3, "-csv", tmp_path / "f.csv", tmp_path / "map.tif", tmp_path / "test.tif")
        assert result.code == 1 and "map_3.tif" in first_error(result)
        result = run("gdal_hsi_accuracy", "-folds", 2, "-overwrite", "-csv", tmp_path / "map_2.tif", tmp_path / "map.tif", tmp_path / "test.tif")
        assert result.code in (1, 2) and "map_2.tif" in result.err


def test_classes_of_few_reference_pixels(tmp_path):
    """The report lists classes with fewer than ten pixels and their folds, and the table has each class's minimum and
    maximum."""
    labels = np.zeros((40, 40), int)
    labels[:20], labels[20:30] = 1, 2
    counts = {3: (1, 25, 1, 12), 4: (30, 10, 9, 4)}
    for k in range(4):
        own = labels.copy()
        for value, number in counts.items():
            own[30 + 2 * (value - 3)].flat[:number[k]] = value
        write_labels(tmp_path / f"test_{k + 1}.tif", own, place=PLACE)
        write_labels(tmp_path / f"map_{k + 1}.tif", np.maximum(labels, 1), place=PLACE)
    result = succeed(run("gdal_hsi_accuracy", "-folds", 4, "-report", tmp_path / "r.json", tmp_path / "map.tif", tmp_path / "test.tif"))
    assert "few reference pixels of class 3 (1 in folds 1, 3), 4 (4 to 9 in folds 3, 4): under 10" in result.err
    rows = {line.split()[0]: line.split() for line in result.out.split("Class")[1].splitlines() if line[:1].isdigit()}
    assert [rows[v][1:5] for v in "34"] == [["4", "1", "to", "25"], ["4", "4", "to", "30"]] and rows["1"][1:3] == ["4", "800"]
    classes = json.loads((tmp_path / "r.json").read_text())["accuracy"]["classes"]
    assert [c["reference_pixels"] for c in classes] == [{"least": n, "most": m} for n, m in ((800, 800), (400, 400), (1, 25), (4, 30))]
    single = succeed(run("gdal_hsi_accuracy", tmp_path / "map_4.tif", tmp_path / "test_4.tif"))
    assert "few reference pixels of class 4 (4): under 10" in single.err and "class 3" not in single.err


def test_files_of_more_folds_are_told(tmp_path):
    """A pattern also matches files that an earlier run with more folds left."""
    labels = fields()
    sample(tmp_path, labels, "-folds", 5)
    assert "not part of this split" not in sample(tmp_path, labels, "-folds", 5).err
    (tmp_path / "train_007.tif").write_bytes(b"x")  # not one of our names
    (tmp_path / "train_9.tif.aux.xml").write_bytes(b"x")
    said = " ".join(sample(tmp_path, labels, "-folds", 3).err.split())
    names = [f"'{tmp_path}/{part}_{k}.tif'" for part in ("train", "test") for k in (4, 5)]
    assert f"{', '.join(names)} are from more than 3 folds" in said and "delete them" in said
    assert json.loads((tmp_path / "s.json").read_text())["files_of_more_folds"] == [name.strip("'") for name in names]
    write_folds(tmp_path, 4)
    said = succeed(run("gdal_hsi_accuracy", "-folds", 3, tmp_path / "map.tif", tmp_path / "test.tif")).err
    assert f"there is a map of more folds than the 3 assessed: '{tmp_path}/map_4.tif'" in said
    assert "more folds" not in succeed(run("gdal_hsi_accuracy", "-folds", 4, tmp_path / "map.tif", tmp_path / "test.tif")).err


def named_folds(folder, lists, seed=2):
    """Writes maps and references of folds that number their classes as in `lists`; returns the names of the pixels in
    both."""
    random = np.random.default_rng(seed)
    pairs = []
    for k, names in enumerate(lists, 1):
        reference, mapped = random.integers(1, len(names), (2, 20, 20))
        mapped = np.where(random.uniform(size=mapped.shape) < 0.4 + 0.1 * k, reference, mapped)
        for name, plane in ("map", mapped), ("test", reference):
            write_labels(folder / f"{name}_{k}.tif", plane, names=names if any(names) else None, place=PLACE)
        pairs.append((np.array(names)[mapped], np.array(names)[reference]))
    return pairs


def figures_by_name(mapped, reference, name):
    hit = ((mapped == name) & (reference == name)).sum()
    return hit / (reference == name).sum(), hit / (mapped == name).sum()


def test_folds_that_number_their_classes_differently(tmp_path):
    lists = [["", "A", "B"], ["", "B", "A"], ["", "C", "B", "A"]]
    pairs = named_folds(tmp_path, lists)
    result = succeed(run("gdal_hsi_accuracy", "-json", "-folds", 3, "-csv", tmp_path / "f.csv", tmp_path / "map.tif", tmp_path / "test.tif"))
    found = {c["name"]: c for c in json.loads(result.out)["classes"]}
    assert {name: c["value"] for name, c in found.items()} == {"A": 1, "B": 2, "C": 1}
    for name, folds in ("A", [0, 1, 2]), ("B", [0, 1, 2]):
        for k, figure in enumerate(("producers_accuracy", "users_accuracy")):
            close(found[name][figure], [figures_by_name(*pairs[f], name)[k] for f in folds])
    assert found["C"]["f1"]["folds"] == 1
    assert result.err.count("the folds number their classes differently: classes are matched by name") == 1
    with open(tmp_path / "f.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    for k in range(3):
        assert float(rows[k]["producers_accuracy 2 B"]) == pytest.approx(figures_by_name(*pairs[k], "B")[0], abs=1e-6)
    # Equal numbers are not mentioned.
    named_folds(tmp_path, [["", "A", "B"]] * 2)
    assert "differently" not in succeed(run("gdal_hsi_accuracy", "-folds", 2, tmp_path / "map.tif", tmp_path / "test.tif")).err


def test_folds_without_names_beside_some_with(tmp_path):
    pairs = named_folds(tmp_path, [["", "A", "B"], ["", "", ""]])
    classes = json.loads(succeed(run("gdal_hsi_accuracy", "-json", "-folds", 2, tmp_path / "map.tif", tmp_path / "test.tif")).out)["classes"]
    assert [(c["value"], c["name"], c["f1"]["folds"]) for c in classes] == [(1, "A", 2), (2, "B", 2)]
    named_folds(tmp_path, [["", "A", "B"], ["", "B", "A"], ["", "", ""]])
    with assert_untouched(tmp_path):
        result = run("gdal_hsi_accuracy", "-folds", 3, "-csv", tmp_path / "f.csv", tmp_path / "map.tif", tmp_path / "test.tif")
    assert result.code == 1 and "class 1 has no name in fold 3, but it is called 'A' in one of the others and 'B' in another" in first_error(result)


def test_a_class_left_out_of_the_folds_that_have_it(tmp_path):
    """As gdal_hsi_sample -folds makes them: a class of one patch is tested in only one fold."""
    write_folds(tmp_path, 3)  # the second has no class 3
    result = json.loads(succeed(run("gdal_hsi_accuracy", "-json", "-folds", 3, "-leave-out", 3, tmp_path / "map.tif", tmp_path / "test.tif")).out)
    assert [c["value"] for c in result["classes"]] == [1, 2]
    for k, fold in enumerate(result["folds"], 1):
        reference = read(tmp_path / f"test_{k}.tif")[0]
        assert fold["pixels"] == np.isin(reference, (1, 2)).sum()
    with assert_untouched(tmp_path):
        result = run("gdal_hsi_accuracy", "-folds", 3, "-leave-out", "3,7", "-csv", tmp_path / "f.csv", tmp_path / "map.tif", tmp_path / "test.tif")
        assert result.code == 2 and "-leave-out: no reference has a class '7'" in first_error(result) and "1, 2" in result.err
        alone = run("gdal_hsi_accuracy", "-leave-out", 3, tmp_path / "map_2.tif", tmp_path / "test_2.tif")
        assert alone.code == 2 and "has no class '3'" in first_error(alone)


@pytest.mark.parametrize("options", [["-leave-out", 2], ["-leave-out", "B"], ["-leave-out", "9,2"], ["-leave-out", 9, "-leave-out", 2]])
@pytest.mark.parametrize("which", ["map", "training"])
def test_a_class_left_out_by_its_number_in_the_first_fold(tmp_path, options, which):
    lists = [["", "A", "B", "C", "D"], ["", "B", "A", "C", "D"], ["", "D", "C", 'B', "A"], ["", "A", "C", "D"]]
    pairs = named_folds(tmp_path, lists)
    # A number that the first fold lacks means the class of the first fold that has it.
    lists[3] += [""] * 5 + ["E"]
    labels = np.random.default_rng(3).choice([1, 2, 3, 9], (20, 20))
    for name in ("map", "test"):
        write_labels(tmp_path / f"{name}_4.tif", labels, names=lists[3], place=PLACE)
    pairs[3] = (np.array(lists[3])[labels],) * 2
    training = ["-training", tmp_path / "test.tif", "-report", tmp_path / "r.json"] if which == "training" else []
    out = succeed(run("gdal_hsi_accuracy", "-json", "-folds", 4, *options, *training, tmp_path / "map.tif", tmp_path / "test.tif")).out
    result = json.loads(out)
    gone = ["B", "E"] if any("9" in str(o) for o in options) else ["B"]
    assert [(c["value"], c["name"]) for c in result["classes"]] == [
        c for c in [(1, "A"), (3, "C"), (4, "D"), (9, "E")] if c[1] not in gone]
    for fold, (mapped, reference) in zip(result["folds"], pairs):
        judged = ~np.isin(reference, gone)
        assert fold["pixels"] == judged.sum()
        assert fold["overall_accuracy"]["value"] == pytest.approx((mapped == reference)[judged].mean())
    if which == "training":  # each fold has its own model: all tested pixels were trained, and omitted pixels were not
        report = json.loads((tmp_path / "r.json").read_text())
        assert [f["training"]["pixels_of_training"] for f in report["folds"]] == [f["pixels"] for f in result["folds"]]


def test_numbers_left_out_of_folds_without_names(tmp_path):
    """One fold has no names, so its numbers mean the classes that the others name; and a number that no fold has."""
    pairs = named_folds(tmp_path, [["", "A", "B", "C"], ["", "", "", ""], ["", "A", "B"]])
    result = json.loads(succeed(run("gdal_hsi_accuracy", "-json", "-folds", 3, "-leave-out", 2, tmp_path / "map.tif", tmp_path / "test.tif")).out)
    assert [c["name"] for c in result["classes"]] == ["A", "C"]
    second = read(tmp_path / "test_2.tif")[0]
    assert result["folds"][0]["pixels"] == (pairs[0][1] != "B").sum() and result["folds"][1]["pixels"] == (second != 2).sum()
    assert result["folds"][2]["pixels"] == (pairs[2][1] != "B").sum()
    refused = run("gdal_hsi_accuracy", "-folds", 3, "-leave-out", "2,7", tmp_path / "map.tif", tmp_path / "test.tif")
    assert refused.code == 2 and "-leave-out: no reference has a class '7'" in first_error(refused)
