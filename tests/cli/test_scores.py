# SPDX-License-Identifier: MIT
"""gdal_hsi_accuracy -scores, compared with scikit-learn: curves, rates, objects, guard zones, types, ties; and maps of
one class."""
import csv
import json
import re

import numpy as np
import pytest
from osgeo import gdal

from conftest import assert_untouched, first_error, run, succeed, write_scene

pytestmark = pytest.mark.filterwarnings("ignore")
RATES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)


def truth_of(lines, samples, seed, classes=2):
    """Makes blobs of classes; most pixels are background, 0."""
    rng, truth = np.random.default_rng(seed), np.zeros((lines, samples), np.uint8)
    for k in range(max(6, lines * samples // 900)):
        y, x, h, w = rng.integers(0, lines), rng.integers(0, samples), rng.integers(1, 4), rng.integers(1, 5)
        truth[y:y + h, x:x + w] = 1 + k % classes
    return truth


def scores_of(truth, seed, bands=1, step=None, lack=0.01):
    """Makes scores that are higher at targets; of several bands, each at its own targets. NaN in a hundredth of the
    pixels."""
    rng = np.random.default_rng(seed)
    scores = np.stack([rng.normal(size=truth.shape) + 1.5 * (truth == b + 1 if bands > 1 else truth > 0) for b in range(bands)])
    scores = np.round(scores / step) * step if step else scores
    scores[rng.random(scores.shape) < lack] = np.nan
    return scores


def write(folder, scores, truth, dtype="f4", names=None, metadata=None):
    scores = np.asarray(scores, np.float32 if dtype == "f4" else np.float64)
    write_scene(folder / "s.tif", scores, "GTiff", dtype, names=names)
    if metadata:
        dataset = gdal.Open(str(folder / "s.tif"), gdal.GA_Update)
        for band in range(1, len(scores) + 1):
            dataset.GetRasterBand(band).SetMetadataItem("HSI_BETTER", metadata)
    write_scene(folder / "t.tif", truth[None], "GTiff", "u1")
    return scores


def near(truth, guard):
    out = np.zeros(truth.shape, bool)
    for y, x in np.argwhere(truth):
        out[max(0, y - guard):y + guard + 1, max(0, x - guard):x + guard + 1] = True
    return out


def check(one, positive, negative, objects=None):
    """positive, negative: scores, where larger is better. objects: the best score of each object."""
    metrics = pytest.importorskip("sklearn.metrics")
    there, missing = positive[np.isfinite(positive)], negative[np.isfinite(negative)]
    labels, scores = np.repeat([1, 0], [len(there), len(missing)]), np.concatenate([there, missing])
    assert (one["target_pixels"], one["background_pixels"]) == (len(there), len(missing))
    assert one["auc"] == pytest.approx(metrics.roc_auc_score(labels, scores), abs=1e-9)
    assert one["average_precision"] == pytest.approx(metrics.average_precision_score(labels, scores), abs=1e-9)
    pfa, pd, thresholds = metrics.roc_curve(labels, scores, drop_intermediate=False)
    for rate, point in zip(RATES, one["points"]):
        best = pd[pfa <= rate].max()
        assert point["pd"] == pytest.approx(best, abs=1e-12) and point["pfa_reached"] <= rate == point["pfa"]
        if best == 0:
            assert point["threshold"] is None
            continue
        found = there >= point["threshold"]
        assert found.mean() == pytest.approx(best) and (missing >= point["threshold"]).mean() == pytest.approx(point["pfa_reached"])
        assert point["precision"] == pytest.approx(found.sum() / (found.sum() + (missing >= point["threshold"]).sum()))
        if objects is not None:
            assert point["objects_found"] == (np.array(objects) >= point["threshold"]).sum()


def best_of_objects(own, truth, of):
    ndimage = pytest.importorskip("scipy.ndimage")
    parts, count = ndimage.label(truth == of, np.ones((3, 3)))
    return [np.nanmax(np.append(own[parts == k], -np.inf)) for k in range(1, count + 1)]


@pytest.mark.quick
@pytest.mark.parametrize("lines, samples, guard, step, dtype", [
    (90, 70, 0, None, "f4"), (90, 70, 2, 0.25, "f4"), (300, 41, 5, None, "f8"), (611, 23, 8, None, "f4"), (40, 3000, 1, 1e-9, "f8")])
def test_one_band_against_scikit_learn(tmp_path, lines, samples, guard, step, dtype):
    truth = truth_of(lines, samples, 3)
    raw = scores_of(truth, 4, step=step and max(step, 0.25))
    if step == 1e-9:  # distinct only in double precision
        raw = 1 + 1e-10 * raw
    scores = write(tmp_path, raw, truth, dtype)[0].astype(float)
    done = succeed(run("gdal_hsi_accuracy", "-scores", "-json", "-guard", guard, "-csv", tmp_path / "m.csv", "-curves", tmp_path / "c.csv",
                       tmp_path / "s.tif", tmp_path / "t.tif"))
    result = json.loads(done.out)
    background = scores[~near(truth, guard)]
    objects = {of: best_of_objects(scores, truth, of) for of in (1, 2)}
    for of, one in zip((1, 2), result["targets"]):
        assert one["name"] == str(of) and one["objects"] == len(objects[of])
        check(one, scores[truth == of], background, objects[of])
    check(result["pooled"], scores[truth > 0], background, objects[1] + objects[2])
    rows = list(csv.DictReader((tmp_path / "m.csv").open()))
    assert [row["target"] for row in rows[::5]] == ["1", "2", ""] and float(rows[-5]["auc"]) == result["pooled"]["auc"]
    curve = [row for row in csv.DictReader((tmp_path / "c.csv").open()) if row["target"] == "1"]
    pfa, pd = (np.array([0.0] + [float(row[key]) for row in curve]) for key in ("pfa", "pd"))
    assert pfa[-1] == pd[-1] == 1 and np.trapz(pd, pfa) == pytest.approx(result["targets"][0]["auc"], abs=1e-9)


@pytest.mark.parametrize("names, small", [(None, False), (["second", "first"], False), (["second MF", "x infeasibility", "first MF"], False),
                                         (["second", "first"], True)])
def test_bands_of_targets(tmp_path, names, small):
    """Bands match by name, otherwise by number. Scores are inverted if the bands say so. mtmf's infeasibility bands are
    omitted."""
    truth = truth_of(80, 60, 8)
    scores = scores_of(truth, 9, bands=2) * (-1 if small else 1)
    order = [0, 1] if names is None else [1, 0]
    kept = scores[order]
    stored = kept if not names or len(names) == 2 else np.stack([kept[0], np.ones_like(kept[0]), kept[1]])
    write(tmp_path, stored, truth, "f8", names, "smaller" if small else None)
    dataset = gdal.Open(str(tmp_path / "t.tif"), gdal.GA_Update)
    dataset.GetRasterBand(1).SetCategoryNames(["", "First", "second"])
    dataset = None
    found = {one["name"]: one for one in json.loads(succeed(run("gdal_hsi_accuracy", "-scores", "-json", tmp_path / "s.tif", tmp_path / "t.tif")).out)["targets"]}
    assert len(found) == 2
    for name, one in found.items():
        of = int(name[-1]) if names is None else 1 + ["first", "second"].index(name)
        own = scores[of - 1] * (-1 if small else 1)
        flipped = json.loads(json.dumps(one))
        for point in flipped["points"]:
            if small and point["threshold"] is not None:
                point["threshold"] *= -1
        check(flipped, own[truth == of], own[truth != of])
    forced = json.loads(succeed(run("gdal_hsi_accuracy", "-scores", "-json", "-better", "larger", tmp_path / "s.tif", tmp_path / "t.tif")).out)
    assert forced["better"] == "larger" and (forced["targets"][0]["auc"] < 0.5) == small


def test_left_out_classes_are_background(tmp_path):
    """One target of a map that labels every pixel."""
    truth = truth_of(80, 60, 8)
    scores = scores_of(truth, 9)
    write(tmp_path, scores, truth + 1)
    stored = scores[0].astype("f4").astype(float)
    refused = run("gdal_hsi_accuracy", "-scores", tmp_path / "s.tif", tmp_path / "t.tif")
    assert refused.code == 1 and "make classes background with -leave-out" in refused.err
    (one,) = json.loads(succeed(run("gdal_hsi_accuracy", "-scores", "-json", "-guard", 1, "-leave-out", "1,3", tmp_path / "s.tif",
                                    tmp_path / "t.tif")).out)["targets"]
    assert one["name"] == "2"
    check(one, stored[truth == 1], stored[~near(truth == 1, 1)])


def test_plots(tmp_path):
    truth = truth_of(60, 60, 8)
    write(tmp_path, scores_of(truth, 9, bands=2), truth, names=["grass & <sand>", "two"])
    succeed(run("gdal_hsi_accuracy", "-scores", "-roc", tmp_path / "r.svg", "-recall", tmp_path / "p.png", tmp_path / "s.tif", tmp_path / "t.tif"))
    text = (tmp_path / "r.svg").read_text()
    result = json.loads(succeed(run("gdal_hsi_accuracy", "-scores", "-json", tmp_path / "s.tif", tmp_path / "t.tif")).out)
    for one in (*result["targets"], result["pooled"]):
        assert f", AUC {one['auc']:.3f}" in text
    # Curves stay clear of the axes, and the legend of the edges.
    axis = min(float(x) for x in re.findall("<line x1='[^']*' y1='[^']*' x2='([0-9.]+)'", text))
    curves = [[tuple(map(float, point.split(","))) for point in line.split()] for line in re.findall("polyline points='([^']*)'", text)]
    assert axis == 90 and all(95 <= x <= 635 or x > 640 for curve in curves for x, _ in curve)
    assert all(45 <= y <= 555 for curve in curves for _, y in curve)
    assert "Pfa (false alarms" in text and "<sand>" not in text and "All targets" in text
    picture = gdal.Open(str(tmp_path / "p.png")).ReadAsArray()
    assert picture.shape[1] == 640 and picture.shape[2] >= 900 and len(np.unique(picture.reshape(picture.shape[0], -1), axis=1).T) > 4


@pytest.mark.parametrize("ranks, shown", [(0, "1.000"), (3, "0.999933"), (8, "0.99982"), (40, "0.999"), (400, "0.991")])
def test_a_measure_near_1_has_more_digits(tmp_path, ranks, shown):
    """The target is better than all but `ranks` of its 44,520 background pixels."""
    truth = np.zeros((211, 211), np.uint8)
    truth[100, 100] = 1
    scores = np.arange(truth.size, dtype="f8").reshape(1, *truth.shape)
    scores[0, 100, 100] = truth.size - ranks - 0.5
    write(tmp_path, scores, truth)
    auc = json.loads(succeed(run("gdal_hsi_accuracy", "-scores", "-json", tmp_path / "s.tif", tmp_path / "t.tif")).out)["targets"][0]["auc"]
    result = succeed(run("gdal_hsi_accuracy", "-scores", "-roc", tmp_path / "r.svg", "-recall", tmp_path / "p.png", tmp_path / "s.tif", tmp_path / "t.tif"))
    assert abs(float(shown) - auc) < 0.5 * 10.0 ** -len(shown.split(".")[1])
    assert f", AUC {shown}<" in (tmp_path / "r.svg").read_text()
    assert "done" not in result.out and "100 -" not in result.out


def test_text_masks_missing_scores_and_few_background_pixels(tmp_path):
    truth = truth_of(50, 40, 2, 1)
    scores = scores_of(truth, 3, lack=0)
    y, x = np.argwhere(truth)[0]
    scores[0, y, x] = np.nan
    write(tmp_path, scores, truth)
    mask = np.zeros((1, 50, 40), np.uint8)
    mask[0, :30] = 1
    write_scene(tmp_path / "mask.tif", mask, "GTiff", "u1")
    done = succeed(run("gdal_hsi_accuracy", "-scores", "-mask", tmp_path / "mask.tif", tmp_path / "s.tif", tmp_path / "t.tif"))
    inside = scores[0, :30].astype(np.float32)
    assert f"1: {(np.isfinite(inside) & (truth[:30] > 0)).sum()} target pixels in" in done.out
    assert f"{(truth[:30] == 0).sum()} background pixels" in done.out and "AUC 0." in done.out and "All targets" not in done.out
    assert "1 pixel of the target '1' has no score and is left out" in done.err
    assert "is less than one pixel of the" in done.out
    assert "Scores: 1 band" in succeed(run("gdal_hsi_accuracy", "-scores", "-dry-run", tmp_path / "s.tif", tmp_path / "t.tif")).out


def test_scores_of_detect_say_what_is_better(tmp_path):
    rng = np.random.default_rng(1)
    truth = truth_of(40, 50, 5, 1)
    target = np.linspace(1, 3, 8)
    scene = rng.uniform(0.5, 1, (8, 40, 50)) + (truth > 0) * target[:, None, None]
    write_scene(tmp_path / "scene.img", scene, wavelengths=list(range(400, 480, 10)))
    (tmp_path / "target.csv").write_text("wavelength,it\n" + "".join(f"{400 + 10 * b},{v}\n" for b, v in enumerate(target)))
    write_scene(tmp_path / "t.tif", truth[None], "GTiff", "u1")
    for method in ("sam", "sid", "ace"):
        for end in ("tif", "dat"):
            succeed(run("gdal_hsi_detect", "-device", "cpu", "-method", method, "-target", tmp_path / "target.csv", tmp_path / "scene.img", tmp_path / f"{method}.{end}"))
            result = json.loads(succeed(run("gdal_hsi_accuracy", "-scores", "-json", tmp_path / f"{method}.{end}", tmp_path / "t.tif")).out)
            assert (result["better"] == "smaller") == (method != "ace") and result["targets"][0]["auc"] > 0.9, (method, end)


@pytest.mark.parametrize("options, code, message", [
    (["-scores", "-folds", "3"], 2, "-scores"),
    (["-scores", "-unclassified", "error"], 2, "-scores"),
    (["-scores", "-leave-out", "7"], 2, "-leave-out"),
    (["-guard", "3"], 2, "-guard requires -scores"),
    (["-better", "larger"], 2, "-better requires -scores"),
    (["-curves", "c.csv"], 2, "-curves requires -scores"),
    (["-roc", "r.svg"], 2, "-roc requires -scores"),
    (["-recall", "r.svg"], 2, "-recall requires -scores"),
    (["-scores", "-roc", "r.jpg"], 2, "-roc: 'r.jpg' does not end in .svg or .png"),
    (["-scores", "-guard", "-1"], 2, "-guard"),
    (["-scores", "-guard", "9000"], 1, "no pixel with a score is background"),
    (["-scores", "-mask", "empty.tif"], 1, "t.tif"),
    (["-scores", "-csv", "there.csv"], 1, "already exists"),
    (["-scores", "-curves", "s.tif"], 2, "would overwrite map"),
    (["-scores", "-field", "x"], 1, "is a raster, which has no features"),
])
def test_mistakes(tmp_path, options, code, message):
    truth = truth_of(30, 30, 2)
    write(tmp_path, scores_of(truth, 3), truth)
    write_scene(tmp_path / "empty.tif", np.zeros((1, 30, 30)), "GTiff", "u1")
    (tmp_path / "there.csv").write_text("mine")
    with assert_untouched(tmp_path):
        done = run("gdal_hsi_accuracy", *options, "s.tif", "t.tif", cwd=tmp_path)
    assert done.code == code and message in first_error(done), done.err


@pytest.mark.parametrize("change, message", [
    (lambda s, t: (s[:1].repeat(3, 0), t), None),
    (lambda s, t: (s, np.where(t == 2, 7, t)), "no band of s.tif belongs to class 7"),
    (lambda s, t: (s, t[:-1]), "t.tif"),
    (lambda s, t: (np.full_like(s, np.nan), t), "no pixel with a score is background"),
    (lambda s, t: (s, 0 * t), "t.tif"),
])
def test_odd_scores_and_references(tmp_path, change, message):
    truth = truth_of(30, 30, 2)
    scores, truth = change(scores_of(truth, 3, bands=2), truth)
    write(tmp_path, scores, truth.astype(np.uint8))
    if message == "t.tif":
        dataset = gdal.Open(str(tmp_path / "t.tif"), gdal.GA_Update)
        dataset.SetGeoTransform((0, 1, 0, 0, 0, -1)) if truth.any() else None
        dataset = None
    done = run("gdal_hsi_accuracy", "-scores", "s.tif", "t.tif", cwd=tmp_path)
    if message is None:
        assert "the reference has no pixel of the target" in succeed(done).err
    else:
        assert message in first_error(done)


@pytest.mark.quick
def test_maps_of_one_class_tell_false_alarms(tmp_path):
    truth = np.zeros((40, 50), np.uint8)
    truth[5, 3:20] = 1
    found = truth.copy()
    found[10:, ::2] = 1
    write_scene(tmp_path / "map.tif", found[None], "GTiff", "u1", nodata=0)
    write_scene(tmp_path / "truth.tif", truth[None], "GTiff", "u1", nodata=0)
    alarms = int((found > truth).sum())
    done = succeed(run("gdal_hsi_accuracy", tmp_path / "map.tif", tmp_path / "truth.tif"))
    assert f"{alarms} of {found.sum()} pixels with a class in the map have no label" in done.err and f"False alarms: {alarms} unlabelled" in done.out
    assert json.loads(succeed(run("gdal_hsi_accuracy", "-json", tmp_path / "map.tif", tmp_path / "truth.tif")).out)["false_alarms"] == alarms
    truth[0] = 2
    found[0] = 2
    write_scene(tmp_path / "map2.tif", found[None], "GTiff", "u1", nodata=0)
    write_scene(tmp_path / "truth2.tif", truth[None], "GTiff", "u1", nodata=0)
    done = succeed(run("gdal_hsi_accuracy", tmp_path / "map2.tif", tmp_path / "truth2.tif"))
    assert "False alarms" not in done.out and "one class" not in done.err


def test_zeros_are_counted_once(tmp_path):
    """The truth is read in two passes, and with a guard zone in overlapping strips."""
    truth = truth_of(600, 20, 3)
    write(tmp_path, scores_of(truth, 4), truth)
    dataset = gdal.Open(str(tmp_path / "t.tif"), gdal.GA_Update)
    dataset.GetRasterBand(1).SetNoDataValue(255)
    dataset = None
    for guard in (0, 3):
        result = succeed(run("gdal_hsi_accuracy", "-q", "-scores", "-guard", guard, tmp_path / "s.tif", tmp_path / "t.tif"))
        assert f"{(truth == 0).sum()} pixels are 0, which is read as 'no label'" in result.err
