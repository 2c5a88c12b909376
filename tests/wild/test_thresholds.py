# SPDX-License-Identifier: MIT
"""Thresholds of gdal_hsi_detect as shares of the scores and as false alarm rates, compared with sorted scores, closed
forms and normal noise."""

import json

import numpy as np
import pytest
from osgeo import gdal

from conftest import assert_untouched, cube, first_error, quick_only, read, run, succeed, write_scene

TARGETS = ["-target-pixel", 4, 7, "-target-pixel", 20, 31]
SMALL = ("sam", "sid")


@pytest.fixture
def files(tmp_path):
    data = cube().astype(np.float32)
    data[3, 7, 9] = np.nan
    write_scene(tmp_path / "scene.img", data)
    inside = np.zeros((1, 30, 40), np.uint8)
    inside[0, 3:23, 5:25] = 1
    write_scene(tmp_path / "mask.tif", inside, driver="GTiff", dtype="u1")
    return tmp_path


def detect(folder, method, *options, scene="scene.img"):
    """Returns (best scores as stored, map, report of the threshold, stdout, metadata of the map)."""
    targets = [] if method == "rx" else TARGETS
    result = succeed(run("gdal_hsi_detect", "-overwrite", "-device", "cpu", "-method", method, *targets, "-map", folder / "map.tif",
                         "-report", folder / "r.json", *options, folder / scene, folder / "d.tif"))
    (folder / "warnings.txt").write_text(result.err)
    scores = read(folder / "d.tif")
    best = scores.min(axis=0) if method in SMALL else scores.max(axis=0)
    classes = gdal.Open(str(folder / "map.tif")).ReadAsArray()
    metadata = [gdal.Open(str(folder / name)).GetMetadata() for name in ("map.tif", "d.tif")]
    report = json.loads((folder / "r.json").read_text())["threshold"]
    for items in metadata:
        assert float(items["HSI_DETECT_THRESHOLD"]) == pytest.approx(report["value"], rel=1e-8)
    return best, classes, report, result.out, metadata[0]


def within(best, threshold, method):
    return best <= threshold if method in SMALL else best >= threshold


@pytest.mark.parametrize("method,options", [(m, []) for m in ("sam", "sid", "mf", "cem", "ace", "rx")] + [("rx", ["-window", 3, 9])])
def test_shares_of_the_scores(files, method, options):
    # One method uses all shares, the others the greatest and one more: the count depends only on sorted scores.
    turn = ("sam", "sid", "mf", "cem", "ace", "rx").index(method)
    for percent in (99, 99.9, 50, 1e-3, 99.9999) if method == "ace" else (99.9999, (99, 99.9, 50, 1e-3)[turn % 4]):
        best, classes, report, out, metadata = detect(files, method, *options, "-threshold", f"{percent}%")
        scores = np.sort(best[np.isfinite(best)])
        if method not in SMALL:
            scores = scores[::-1]
        wanted = max(1, int(np.floor(len(scores) * (100 - percent) / 100 + 1e-9)))
        threshold = scores[wanted - 1]
        assert np.float32(report["value"]) == np.float32(threshold)
        found = np.isfinite(best) & within(best, threshold, method)
        assert (report["pixels"], report["within"], report["percent"]) == (len(scores), found.sum(), percent)
        assert np.array_equal(classes > 0, found)
        assert metadata["HSI_DETECT_THRESHOLD_SHARE"] == f"{percent:.9g}%"
        assert f"reached by {found.sum()} " in out
        assert report["reached"] == {"pixels": found.sum(), "of": len(scores), "share": found.sum() / len(scores)}


def test_equal_scores_are_one(tmp_path):
    """Half of the scene has one spectrum, so many ranks have its score."""
    data = cube(samples=20, lines=20)
    data[:, 10:] = data[:, :1, :1]
    write_scene(tmp_path / "scene.img", data)
    best, classes, report, _, _ = detect(tmp_path, "rx", "-threshold", "90%")
    threshold = np.sort(best.ravel())[::-1][39]
    assert report["value"] == threshold and (classes == 1).sum() == (best >= threshold).sum() == report["within"]


@pytest.mark.parametrize("method,options", [("ace", ["-threshold", "97%"]), ("sam", ["-threshold", "97%"]),
                                            ("rx", ["-threshold", "97%", "-window", 3, 7])])
def test_tiles_and_threads_change_nothing(files, method, options):
    first = detect(files, method, *options)
    for others in (["-tile", 7, 5, "-threads", 1], ["-tile", 40, 1, "-threads", 3], ["-threads", 4]):
        again = detect(files, method, *options, *others)
        assert again[2] == first[2] and np.array_equal(again[1], first[1])


@pytest.mark.parametrize("method,options", [(m, []) for m in ("sam", "sid", "mf", "cem", "ace", "rx")] + [("rx", ["-window", 3, 9])])
def test_false_alarms_of_a_background(files, method, options):
    best, classes, report, out, metadata = detect(files, method, *options, "-background", files / "mask.tif", "-false-alarms", 0.02)
    inside = (read(files / "mask.tif")[0] == 1) & np.isfinite(best)
    scores = np.sort(best[inside])
    if method not in SMALL:
        scores = scores[::-1]
    assert inside.sum() == report["pixels"] == 399
    threshold = scores[6]  # 0.02 of 399 is 7.98
    assert np.float32(report["value"]) == np.float32(threshold) and report["false_alarms"] == 0.02
    assert np.array_equal(classes > 0, np.isfinite(best) & within(best, threshold, method))
    assert "of the background" in out and metadata["HSI_DETECT_FALSE_ALARMS"] == "0.02"
    outside = np.isfinite(best) & (read(files / "mask.tif")[0] == 0)
    some, all_ = int((outside & (classes > 0)).sum()), int(outside.sum())
    assert report["reached_outside_background"] == {"pixels": some, "of": all_, "share": some / all_}
    assert f"{some} of {all_} pixels outside the background ({100 * some / all_:.3g} %) " in out
    assert "longer tails" not in (files / "warnings.txt").read_text()


def normal(path, lines, samples, bands, seed=5):
    """Makes normal spectra, the first two of them far from the mean: targets that are excluded from the statistics."""
    random = np.random.default_rng(seed)
    mixing = random.normal(0, 1, (bands, bands))
    data = np.moveaxis(50 + random.normal(0, 1, (lines, samples, bands)) @ mixing, 2, 0)
    return write_scene(path, data, dtype="f8")


def library(path, bands):
    rows = np.random.default_rng(8).normal(50, 9, (2, bands))
    path.write_text("band,wavelength,a,b\n" + "".join(f"{b + 1},,{rows[0, b]:.9f},{rows[1, b]:.9f}\n" for b in range(bands)))
    return path


@pytest.mark.parametrize("rate", quick_only(0.3, [0.3, 1e-2, 1e-6]))
def test_closed_forms(tmp_path, rate):
    """Beta distributions with a parameter of 1 have tails that are powers."""
    n = 600
    normal(tmp_path / "two.img", 20, 30, 2)
    _, _, report, out, _ = detect(tmp_path, "rx", "-false-alarms", rate, scene="two.img")
    assert report["value"] == pytest.approx((n - 1) ** 2 / n * (1 - rate ** (2 / (n - 3))), rel=1e-8)
    assert "normal background" in out
    normal(tmp_path / "three.img", 20, 30, 3)
    spectra = library(tmp_path / "t.csv", 3)
    for names, targets in ((["-spectrum", "a"], 1), ([], 2)):
        result = succeed(run("gdal_hsi_detect", "-overwrite", "-device", "cpu", "-target", spectra, *names, "-map", tmp_path / "map.tif",
                             "-false-alarms", rate, "-report", tmp_path / "r.json", tmp_path / "three.img", tmp_path / "d.tif"))
        value = json.loads((tmp_path / "r.json").read_text())["threshold"]["value"]
        assert value == pytest.approx((1 - 2 * rate / targets) ** 2, rel=1e-8), result.out


def test_the_matched_filter_of_four_pixels(tmp_path):
    """Its squares are then (n-1)^2 / n B(1/2, 1) / (t-m)'C^-1(t-m)."""
    data = np.array([[[1., 2, 4, 9]], [[3., 1, 1, 2]]])
    write_scene(tmp_path / "scene.img", data, dtype="f8")
    (tmp_path / "t.csv").write_text("band,wavelength,a\n1,,20\n2,,-3\n")
    succeed(run("gdal_hsi_detect", "-method", "mf", "-target", tmp_path / "t.csv", "-map", tmp_path / "m.tif", "-false-alarms", 0.1,
                "-report", tmp_path / "r.json", tmp_path / "scene.img", tmp_path / "d.tif"))
    x = data[:, 0].T
    z = np.array([20, -3]) - x.mean(axis=0)
    contrast = z @ np.linalg.solve(np.cov(x.T), z)
    value = json.loads((tmp_path / "r.json").read_text())["threshold"]["value"]
    assert value == pytest.approx(np.sqrt(9 / 4 * 0.8 ** 2 / contrast), rel=1e-9)


@pytest.mark.parametrize("method", ["rx", "ace", "mf"])
def test_normal_noise_has_as_many_false_alarms(tmp_path, method):
    normal(tmp_path / "scene.img", 200, 250, 9)
    spectra = [] if method == "rx" else ["-target", library(tmp_path / "t.csv", 9)]
    for rate in 0.05, 1e-3, 0.7:
        for names in ([],) if method == "rx" else ([], ["-spectrum", "a"]):
            succeed(run("gdal_hsi_detect", "-overwrite", "-q", "-device", "cpu", "-method", method, *spectra, *names, "-map",
                        tmp_path / "map.tif", "-false-alarms", rate, tmp_path / "scene.img", tmp_path / "d.tif"))
            found = (gdal.Open(str(tmp_path / "map.tif")).ReadAsArray() > 0).sum()
            expected, spread = 50000 * rate, np.sqrt(50000 * rate)
            assert found < expected + 5 * spread
            if method == "rx" or names:  # where two targets share the rate, they may be similar: fewer, but not more
                assert found > expected - 5 * spread


@pytest.mark.parametrize("method,options", [(m, []) for m in ("sam", "sid", "mf", "cem", "ace")] + [("rx", []), ("rx", ["-window", 3, 9])])
def test_who_reaches_the_threshold_and_the_best_scores(files, method, options):
    """Counts each target as the map and the scores do, for all tiles."""
    first = None
    for tiling in ([], ["-tile", 7, 5, "-threads", 3]):
        best, classes, report, out, _ = detect(files, method, "-threshold", "95%", *options, *tiling)
        whole = json.loads((files / "r.json").read_text())["detection"]
        scores = read(files / "d.tif")
        extreme = np.nanmin if method in SMALL else np.nanmax
        assert np.array_equal(np.float32(whole["best_scores"]), [extreme(band) for band in scores])
        counts = [int((classes == k + 1).sum()) for k in range(len(scores))]
        assert whole["map_pixels"] == counts and report["reached"]["pixels"] == sum(counts) > 0
        share = f"{sum(counts)} of 1199 pixels ({100 * sum(counts) / 1199:.3g} %) reach the threshold"
        if method == "rx":
            assert f"Best score: RX {whole['best_scores'][0]:.4g}\n" in out and share + "\n" in out, out
        else:
            names = [f"4,7 {whole['best_scores'][0]:.4g}", f"20,31 {whole['best_scores'][1]:.4g}"]
            assert "Best scores: " + ", ".join(names) + "\n" in out, out
            each = ", ".join(f"{name} {count}" for name, count in zip(("4,7", "20,31"), counts) if count)
            assert f"{share}; by their best target: {each}\n" in out, out
        first = first or (report, whole)
        assert (report, whole) == first
    assert detect(files, method, "-threshold", "95%", "-q", *options)[3] == ""


def test_a_threshold_that_nobody_reaches(files):
    _, _, report, out, _ = detect(files, "rx", "-threshold", 1e9)
    assert report["reached"] == {"pixels": 0, "of": 1199, "share": 0} and "0 of 1199 pixels (0 %) reach the threshold\n" in out


def test_many_targets_are_told_in_one_line(files):
    spectra = np.random.default_rng(4).uniform(100, 900, (14, 12))
    rows = "".join(f"{b + 1},," + ",".join(f"{v:.6f}" for v in spectra[:, b]) + "\n" for b in range(12))
    (files / "many.csv").write_text("band,wavelength," + ",".join(f"t{k}" for k in range(14)) + "\n" + rows)
    out = succeed(run("gdal_hsi_detect", "-device", "cpu", "-target", files / "many.csv", files / "scene.img", files / "d.tif")).out
    line = next(line for line in out.splitlines() if line.startswith("Best scores: "))
    assert line.count(",") == 9 and line.endswith(" and 4 others") and "threshold" not in out


@pytest.mark.parametrize("method", ["rx", "ace", "mf"])
def test_longer_tails_than_normal(tmp_path, method):
    """Normal spectra, and spectra with tails: in a twentieth of the pixels, noise is ten times as strong (which the
    angle of ace ignores), or a target is present. More pixels are found than requested."""
    random = np.random.default_rng(9)
    some = random.random((1, 60, 70)) < 0.05
    calm = random.normal(0, 1, (6, 60, 70))
    target = np.loadtxt(library(tmp_path / "t.csv", 6), delimiter=",", skiprows=1, usecols=2) - 50
    wild = np.where(some, calm + target[:, None, None] if method == "ace" else 10 * calm, calm)
    targets = [] if method == "rx" else ["-target", library(tmp_path / "t.csv", 6), "-spectrum", "a"]
    inside = np.zeros((1, 60, 70), np.uint8)
    inside[:, ::2] = 1
    mask = write_scene(tmp_path / "mask.tif", inside, driver="GTiff", dtype="u1")
    for data, warned in (calm, False), (wild, True):
        scene = write_scene(tmp_path / "scene.img", 50 + data, dtype="f8")
        for rate, background in (1e-3, []), (2e-3, ["-background", mask]):
            result = succeed(run("gdal_hsi_detect", "-overwrite", "-device", "cpu", "-method", method, *targets, "-map", tmp_path / "m.tif",
                                 "-false-alarms", rate, *background, "-report", tmp_path / "r.json", scene, tmp_path / "d.tif"))
            reached = json.loads((tmp_path / "r.json").read_text())["threshold"]["reached"]
            if background:
                assert "longer tails" not in result.err and "outside the background" in result.out
                continue
            assert (reached["pixels"] > 3 * rate * 4200) == warned, reached
            assert (f"{reached['pixels']} of 4200 pixels" in result.err and "longer tails" in result.err) == warned, result.err
            assert ("corresponds to 4:" in result.err) == warned and ("-background" in result.err) == warned


def test_few_pixels_beyond_a_rate_are_what_was_looked_for(tmp_path):
    data = np.random.default_rng(2).normal(50, 1, (4, 40, 50))
    data[:, 5, 5:9] += 30
    scene = write_scene(tmp_path / "scene.img", data, dtype="f8")
    result = succeed(run("gdal_hsi_detect", "-map", tmp_path / "m.tif", "-false-alarms", 1e-6, scene, tmp_path / "d.tif"))
    assert "4 of 2000 pixels (0.2 %) reach the threshold" in result.out and "longer tails" not in result.err


@pytest.mark.parametrize("size,targets", [(["4", "3"], []), (["13", "1"], []), (["13", "1"], ["-target-pixel", 0, 1])])
def test_advice_for_few_pixels_helps(files, size, targets):
    """The advice of -nc auto gives a known distribution."""
    command = ["gdal_hsi_detect", "-overwrite", "-map", files / "m.tif", "-false-alarms", 0.1, *targets, "-srcwin", 0, 0, *size]
    refused = run(*command, files / "scene.img", files / "d.tif")
    assert refused.code == 1 and "Use -nc auto" in refused.err and "-shrinkage auto" not in refused.err, refused.err
    succeed(run(*command, "-nc", "auto", files / "scene.img", files / "d.tif"))
    shrunk = run(*command, "-shrinkage", "auto", files / "scene.img", files / "d.tif")
    assert shrunk.code == 2 and "Use -nc auto" in shrunk.err


def test_a_rate_below_a_background_is_advised_what_there_is(files):
    for options, leave_out in ([], True), (["-window", 3, 9], False), (["-shrinkage", 0.2], False), (["-method", "sam", *TARGETS], False):
        result = run("gdal_hsi_detect", "-map", files / "m.tif", "-false-alarms", 1e-3, "-background", files / "mask.tif", *options,
                     files / "scene.img", files / "d.tif")
        assert result.code == 1 and "too few for a rate" in result.err
        assert ("leave -background out" in result.err) == leave_out, result.err


@pytest.mark.parametrize("options,code,message", [
    (["-threshold", "0%"], 2, "above 0 % and below 100 %"),
    (["-threshold", "100%"], 2, "above 0 % and below 100 %"),
    (["-threshold", "-5%"], 2, "above 0 % and below 100 %"),
    (["-threshold", "%"], 2, "is not a number"),
    (["-threshold", "many"], 2, "is not a number"),
    (["-threshold", "nan"], 2, "number"),
    (["-threshold", "99", *TARGETS], 2, "-threshold 99 with -method ace: scores are between -1 and 1"),
    (["-threshold", "-1.5", *TARGETS], 2, "scores are between -1 and 1"),
    (["-threshold", "5", "-method", "sam", *TARGETS], 2, "scores are angles in radians"),
    (["-threshold", "-0.1", "-method", "sam", *TARGETS], 2, "scores are angles in radians"),
    (["-threshold", "-0.1", "-method", "sid", *TARGETS], 2, "scores are never below 0"),
    (["-threshold", "-5"], 2, "-threshold -5 with -method rx: scores are never below 0"),
    (["-threshold", "-5", "-window", "3", "7"], 2, "scores are never below 0"),
    (["-false-alarms", "0"], 2, "above 0 and below 1"),
    (["-false-alarms", "1"], 2, "above 0 and below 1"),
    (["-false-alarms", "-1e-3"], 2, "above 0 and below 1"),
    (["-false-alarms", "0.1", "-threshold", "3"], 2, "-threshold"),
    (["-false-alarms", "0.1", "-window", "3", "7"], 2, "requires -background"),
    (["-false-alarms", "0.1", "-method", "cem", *TARGETS], 2, "requires -background"),
    (["-false-alarms", "0.1", "-method", "sam", *TARGETS], 2, "requires -background"),
    (["-false-alarms", "1e-3", "-background", "MASK"], 1, "too few for a rate below 1 in 399"),
    (["-false-alarms", "1e-3", "-srcwin", "0", "0", "4", "3"], 1, "distribution of the scores is unknown"),
    (["-false-alarms", "1e-3", "-srcwin", "0", "0", "13", "1"], 1, "too few to predict false alarms"),
])
def test_what_is_refused(files, options, code, message):
    words = [files / "mask.tif" if o == "MASK" else o for o in options]
    with assert_untouched(files):
        result = run("gdal_hsi_detect", "-q", "-map", files / "map.tif", *words, files / "scene.img", files / "d.tif")
        error = next((line for line in result.err.splitlines() if line.startswith("ERROR")), "")
        assert result.code == code and message in error, result.err


def test_what_was_meant_by_a_threshold(files):
    """A share without its percent sign, degrees instead of radians; both ends of a scale are valid thresholds."""
    command = ["gdal_hsi_detect", "-overwrite", "-map", files / "m.tif", *TARGETS, files / "scene.img", files / "d.tif"]
    assert "add %: 99%." in run(*command, "-threshold", "99").err
    assert "5 degrees are 0.0872664626 radians" in run(*command, "-method", "sam", "-threshold", "5").err
    for method, threshold in (("ace", 1), ("ace", -1), ("sam", 0), ("sam", 1.2), ("mf", 99), ("cem", -7)):
        assert "degrees" not in succeed(run(*command, "-method", method, "-threshold", threshold)).err
    for degrees in 2, 3:  # all non-negative spectra are within a right angle
        result = succeed(run(*command, "-method", "sam", "-threshold", degrees))
        assert "all pixels reach this threshold" in result.err and "check that the threshold is not in degrees" in result.err


def test_a_threshold_needs_a_map(files):
    for option in (["-threshold", "99%"], ["-false-alarms", "0.1"]):
        result = run("gdal_hsi_detect", *option, files / "scene.img", files / "d.tif")
        assert result.code == 2 and option[0] + " requires -map" in first_error(result) and not (files / "d.tif").exists()
