# SPDX-License-Identifier: MIT
"""gdal_hsi_detect -method sff, compared with a slow reference in double precision; and refused input."""

import json

import numpy as np
import pytest
from osgeo import gdal

from conftest import assert_untouched, first_error, read, run, succeed, write_scene

BANDS = 60
NM = [2000 + 7.0 * b + (b % 3) for b in range(BANDS)]
MINERALS = {"kaolinite": [(2165, 12, 0.1), (2205, 15, 0.3)], "alunite": [(2170, 25, 0.4), (2320, 20, 0.15)],
            "calcite": [(2340, 25, 0.35)]}
RANGES = {"kaolinite": [(2120, 2250)], "alunite": [(2120, 2250), (2280, 2370)], "calcite": [(2280, 2400)]}


def spectrum(features, slope=0.05):
    x = np.array(NM)
    v = 0.6 + slope * (x - 2000) / 400
    for centre, width, depth in features:
        v = v * (1 - depth * np.exp(-0.5 * ((x - centre) / width) ** 2))
    return v


def write_library(path, spectra):
    with open(path, "w") as f:
        f.write("wavelength_nm," + ",".join(spectra) + "\n")
        for b, nm in enumerate(NM):
            f.write(",".join([f"{nm:.9g}"] + [f"{v[b]:.12g}" for v in spectra.values()]) + "\n")


def write_features(path, lines, columns="name,from_nm,to_nm,weight,fit_min,depth_min"):
    path.write_text(columns + "\n" + "".join(",".join(str(c) for c in line) + "\n" for line in lines))


def removed_of(x, v):
    """Returns the ratios by the greatest of all chords; nothing if an end is not above 0."""
    if not (v[0] > 0 and v[-1] > 0):
        return None
    hull = np.array(v, float)
    for i in range(len(x)):
        for a in range(i):
            for b in range(i + 1, len(x)):
                hull[i] = max(hull[i], v[a] + (v[b] - v[a]) * (x[i] - x[a]) / (x[b] - x[a]))
    return np.minimum(v / hull, 1)


def bands_in(low, high):
    return [b for b in range(BANDS) if low <= NM[b] <= high]


def reference(scene, spectra, features):
    """features: name -> [(from, to, weight or None, fit_min, depth_min)]. Returns arrays of fit, depth and fd:
    [target][line][sample]."""
    used = sorted({b for lines in features.values() for one in lines for b in bands_in(*one[:2])})
    lines, samples = scene.shape[1:]
    result = np.full((3, len(spectra), lines, samples), np.nan)
    for k, (name, target) in enumerate(spectra.items()):
        parts, weights = [], []
        for low, high, weight, fit_min, depth_min in features[name]:
            b = bands_in(low, high)
            x = np.array(NM)[b]
            ell = removed_of(x, target[b])
            weights.append(np.trapz(1 - ell, x) if weight is None else weight)
            parts.append((b, x, ell, fit_min, depth_min))
        weights = np.array(weights) / sum(weights)
        for y in range(lines):
            for s in range(samples):
                pixel = scene[used, y, s].astype(float)
                if not np.isfinite(pixel).all() or (pixel == 0).all():
                    continue
                sums, good = np.zeros(3), True
                for w, (b, x, ell, fit_min, depth_min) in zip(weights, parts):
                    o = removed_of(x, scene[b, y, s].astype(float))
                    if o is None:
                        sums[:] = np.nan
                        continue
                    do, dl = o - o.mean(), ell - ell.mean()
                    fit = depth = 0.0
                    slope = (do @ dl) / (dl @ dl)
                    if do @ do >= 1e-12 * len(o) and slope > 0:
                        fit = (do @ dl) / np.sqrt((do @ do) * (dl @ dl))
                        depth = slope * (1 - ell.min())
                    good = good and fit >= fit_min and depth >= depth_min
                    sums += w * np.array([fit, depth, fit * depth])
                result[:, k, y, s] = np.where(np.isnan(sums), np.nan, sums if good else 0)
    return result


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(3)
    spectra = {name: spectrum(f) for name, f in MINERALS.items()}
    shares = rng.dirichlet([0.6] * 4, (11, 43))
    ends = np.stack([*spectra.values(), spectrum([], -0.1)])
    scene = np.einsum("yxk,kb->byx", shares, ends) * rng.uniform(0.5, 1.5, (11, 43))
    scene = (scene + rng.normal(0, 0.004, scene.shape)).astype(np.float32)
    scene[20, 4, 5] = np.nan
    scene[:, 6, 7] = 0
    scene[bands_in(2280, 2370)[0], 8, 9] = -1  # an end of alunite's second range, and of calcite's only one
    scene[:, 3, 3] = 0.25  # no features
    scene[bands_in(2120, 2250)[3], 5, 40] = -0.1  # values inside a range may be negative
    write_scene(tmp_path / "scene.img", scene, wavelengths=NM)
    write_library(tmp_path / "minerals.csv", spectra)
    return tmp_path


def sff(files, *args, library="minerals.csv"):
    return run("gdal_hsi_detect", "-method", "sff", "-target", files / library, *args)


LINES = [("kaolinite", 2120, 2250, "", "", ""), ("alunite", 2120, 2250, 2, 0.3, ""), ("Calcite", 2280, 2400, "", "", 0.02),
         ("alunite", 2280, 2370, 1, "", "")]
FEATURES = {"kaolinite": [(2120, 2250, None, 0, 0)], "alunite": [(2120, 2250, 2, 0.3, 0), (2280, 2370, 1, 0, 0)],
            "calcite": [(2280, 2400, None, 0, 0.02)]}


@pytest.mark.parametrize("score", ["fit", "depth", "fd"])
def test_scores_depths_and_map_against_the_reference(files, score):
    write_features(files / "f.csv", LINES)
    out = succeed(sff(files, "-features", files / "f.csv", "-score", score, "-depth", files / "d.tif", "-map", files / "m.tif",
                      "-threshold", "0.05", "-report", files / "r.json", files / "scene.img", files / "s.tif"))
    spectra = {name: spectrum(f) for name, f in MINERALS.items()}
    want = reference(read(files / "scene.img"), spectra, FEATURES)
    got, index = read(files / "s.tif"), ["fit", "depth", "fd"].index(score)
    np.testing.assert_allclose(got, want[index], atol=1e-5)
    np.testing.assert_allclose(read(files / "d.tif"), want[1], atol=1e-5)
    # Where pixels are dark at an end, other targets still have scores.
    assert np.isnan(got[1:, 8, 9]).all() and got[0, 8, 9] >= 0 and np.isnan(got[:, 4, 5]).all() and np.isnan(got[:, 6, 7]).all()
    assert (got[:, 3, 3] == 0).all() and (got == 0).any(axis=(1, 2)).all() and (got > 0.05).any(axis=(1, 2)).all()
    best = np.where(np.isnan(want[index]), -1, want[index])
    order = np.sort(best, axis=0)
    clear = (order[-1] - order[-2] > 2e-5) & (abs(order[-1] - 0.05) > 2e-5)
    expected = np.where(order[-1] >= 0.05, best.argmax(axis=0) + 1, 0)
    mapped = gdal.Open(str(files / "m.tif")).ReadAsArray()
    assert clear.mean() > 0.9 and (mapped == expected)[clear].all() and set(mapped.ravel()) == {0, 1, 2, 3}
    dataset = gdal.Open(str(files / "s.tif"))
    assert [dataset.GetRasterBand(k).GetDescription() for k in (1, 2, 3)] == list(MINERALS)
    assert dataset.GetMetadataItem("HSI_DETECT_METHOD") == "sff" and dataset.GetMetadataItem("HSI_DETECT_SCORE") == score
    assert gdal.Open(str(files / "d.tif")).GetRasterBand(2).GetDescription() == "alunite"
    report = json.loads((files / "r.json").read_text())
    assert report["without_continuum"] == 1 and report["detection"]["features"] == 4 and len(report["detection"]["ranges"]) == 3
    assert "1 pixel has no score for some targets" in out.err


def test_common_ranges_for_targets_without_lines(files):
    write_features(files / "f.csv", [("alunite", 2120, 2250), ("gypsum", 2120, 2250)], "name,from_nm,to_nm")
    out = succeed(sff(files, "-features", files / "f.csv", "-range", "2120-2250nm", "-range", "2.13-2.24um",
                      "-spectrum", "alunite", "-spectrum", "kaolinite", files / "scene.img", files / "s.tif"))
    assert "no target is called 'gypsum'" in out.err
    spectra = {name: spectrum(MINERALS[name]) for name in ("alunite", "kaolinite")}
    want = reference(read(files / "scene.img"), spectra, {"alunite": [(2120, 2250, None, 0, 0)],
                                                          "kaolinite": [(2120, 2250, None, 0, 0), (2130, 2240, None, 0, 0)]})
    np.testing.assert_allclose(read(files / "s.tif"), want[0], atol=1e-5)


def test_a_copy_is_one_whatever_its_contrast(files):
    """b = 1/(1 + k) and F = 1 for O = (L + k)/(1 + k)."""
    target, k = spectrum(MINERALS["calcite"], 0), 1.7
    b = bands_in(2280, 2400)
    ell = removed_of(np.array(NM)[b], target[b])
    scene = np.zeros((BANDS, 1, 2), np.float32) + 0.5
    scene[b, 0, 0] = (ell + k) / (1 + k)
    scene[b, 0, 1] = 2 - ell  # an inverted feature
    scene[b[0], 0, 1] = scene[b[-1], 0, 1] = 1
    write_scene(files / "copy.img", scene, wavelengths=NM)
    succeed(sff(files, "-range", "2280-2400nm", "-spectrum", "calcite", "-depth", files / "d.tif", files / "copy.img", files / "s.tif"))
    np.testing.assert_allclose(read(files / "s.tif")[0, 0, 0], 1, atol=1e-5)
    np.testing.assert_allclose(read(files / "d.tif")[0, 0, 0], (1 - ell.min()) / (1 + k), atol=1e-5)
    assert read(files / "s.tif")[0, 0, 1] < 0.5


def test_tiles_and_threads_change_nothing(files):
    write_features(files / "f.csv", LINES)
    same = []
    for i, options in enumerate([("-threads", "1"), ("-threads", "3", "-tile", "17", "5"), ("-tile", "64", "11")]):
        paths = [files / f"{name}{i}.img" for name in "sdm"]
        succeed(sff(files, "-features", files / "f.csv", "-depth", paths[1], "-map", paths[2], "-threshold", "90%", *options,
                    files / "scene.img", paths[0], "-of", "ENVI"))
        same.append([p.read_bytes() for p in paths])
    assert same[0] == same[1] == same[2]


def test_a_share_as_threshold_counts_pixels_that_have_a_score(files):
    """If one target has no score, the scores of the others count."""
    write_features(files / "f.csv", [("calcite", 2280, 2400, "", "", ""), ("kaolinite", 2120, 2250, "", "", "")])
    succeed(sff(files, "-features", files / "f.csv", "-spectrum", "calcite", "-spectrum", "kaolinite", "-map", files / "m.tif",
                "-threshold", "80%", "-report", files / "r.json", files / "scene.img", files / "s.tif"))
    scores = read(files / "s.tif")
    best = np.where(np.isnan(scores).all(axis=0), np.nan, np.where(np.isnan(scores), -1, scores).max(axis=0))
    pixels = int(np.isfinite(best).sum())
    want = np.sort(best[np.isfinite(best)])[::-1][int(pixels * 0.2 + 1e-9) - 1]
    threshold = json.loads((files / "r.json").read_text())["threshold"]
    assert threshold["pixels"] == pixels == 11 * 43 - 2 and threshold["value"] == pytest.approx(want, abs=1e-7)


def test_other_bands_are_no_matter(files):
    """Only bands in a range can make a pixel invalid, and their order has no effect."""
    scene = read(files / "scene.img")
    outside = [b for b in range(BANDS) if not 2280 <= NM[b] <= 2400]
    holes = scene.copy()
    holes[outside] = np.nan
    order = np.random.default_rng(1).permutation(BANDS)
    write_scene(files / "holes.img", holes, wavelengths=NM)
    write_scene(files / "mixed.img", scene[order], wavelengths=[NM[b] for b in order])
    for name in ("scene", "holes", "mixed"):
        succeed(sff(files, "-range", "2280-2400nm", "-spectrum", "calcite", files / f"{name}.img", files / f"{name}_s.tif"))
    plain = read(files / "scene_s.tif")
    np.testing.assert_array_equal(read(files / "holes_s.tif"), plain)
    np.testing.assert_array_equal(read(files / "mixed_s.tif"), plain)


@pytest.mark.parametrize("args,code,text", [
    (("-range", "2280-2400nm", "-target-pixel", "1", "1"), 2, "-target"),
    (("-range", "2280-2400nm"), 2, "requires -target LIBRARY"),
    (("-target", "minerals.csv"), 1, "target 'kaolinite' has no features"),
    (("-target", "minerals.csv", "-range", "2280-2290nm"), 1, "target 'kaolinite', 2280-2290 nm has 2 good bands, but a fit needs at least 4"),
    (("-target", "flat.csv", "-range", "2280-2400nm"), 1, "target 'flat', 2280-2400 nm: the target has no feature"),
    (("-target", "dark.csv", "-range", "2280-2400nm"), 1, "target 'dark', 2280-2400 nm: the target has no continuum"),
    (("-target", "minerals.csv", "-range", "2280-2400nm", "-map", "m.tif", "-threshold", "1.5"), 2, "between 0 and 1"),
    (("-target", "minerals.csv", "-range", "2280-2400nm", "-map", "m.tif", "-false-alarms", "0.01"), 2, "requires -background"),
    (("-target", "minerals.csv", "-range", "2280-2400nm", "-shrinkage", "0.1"), 2, "-shrinkage cannot be used with -method sff"),
    (("-target", "minerals.csv", "-range", "2280-2400nm", "-nc", "3"), 2, "-nc cannot be used with -method sff"),
    (("-target", "minerals.csv", "-range", "2280-2400nm", "-background", "scene.img"), 2, "-background cannot be used with"),
    (("-target", "minerals.csv", "-range", "2280-2400nm", "-background-by", "columns"), 2, "-background-by cannot be used with"),
    (("-target", "minerals.csv", "-range", "2280-2400nm", "-target-is-absorption"), 2, "requires -method mf or ace"),
    (("-target", "minerals.csv", "-range", "2280-2400nm", "-window", "3", "9"), 2, "-window"),
    (("-target", "minerals.csv", "-range", "2280-2400nm", "-of", "VRT"), 2, "-method sff cannot be used with a virtual scene as dst"),
    (("-target", "minerals.csv", "-range", "17"), 2, "-range"),
])
def test_bad_input(files, args, code, text):
    write_library(files / "flat.csv", {"flat": spectrum([])})
    dark = spectrum(MINERALS["calcite"])
    dark[bands_in(2280, 2400)[0]] = -0.1
    write_library(files / "dark.csv", {"dark": dark})
    known = {"minerals.csv", "flat.csv", "dark.csv", "scene.img", "m.tif"}
    args = [files / a if a in known else a for a in args]
    with assert_untouched(files):
        result = run("gdal_hsi_detect", "-method", "sff", *args, files / "scene.img", files / "s.tif")
    assert result.code == code and text in first_error(result), result.err


@pytest.mark.parametrize("option", [("-range", "2280-2400nm"), ("-features", "f.csv"), ("-score", "fd"), ("-depth", "d.tif")])
def test_options_of_sff_alone(files, option):
    write_features(files / "f.csv", LINES)
    args = [files / a if "." in a else a for a in option]
    result = run("gdal_hsi_detect", "-method", "ace", "-target", files / "minerals.csv", *args, files / "scene.img", files / "s.tif")
    assert result.code == 2 and f"{option[0]} requires -method sff" in first_error(result)


@pytest.mark.parametrize("text,message", [
    ("spectrum,from_nm,to_nm\nalunite,2120,2250\n", "no column 'name'"),
    ("name,from_nm,to_nm\nalunite,2250,2120\n", "in ascending order"),
    ("name,from_nm,to_nm\nalunite,,2250\n", "in ascending order"),
    ("name,from_nm,to_nm,weight\nalunite,2120,2250,much\n", "weight 'much' is not a number"),
    ("name,from_nm,to_nm,weight\nalunite,2120,2250,-1\n", "weight -1 is below 0"),
    ("name,from_nm,to_nm,weight\nalunite,2120,2250,0\n", "weights of its features are all 0"),
    ("name,from_nm,to_nm,weight\nalunite,2120,2250,nan\n", "weight 'nan' is not a number"),
    ("name,from_nm,to_nm,weight\nalunite,2120,2250,inf\n", "weight 'inf' is not a number"),
    ("name,from_nm,to_nm,fit_min\nalunite,2120,2250,80\n", "fit_min 80 is above 1"),
    ("name,from_nm,to_nm,fit_min\nalunite,2120,2250,NaN\n", "fit_min 'NaN' is not a number"),
    ("name,from_nm,to_nm,fit_min\nalunite,2120,2250,-0.1\n", "fit_min -0.1 is below 0"),
    ("name,from_nm,to_nm,depth_min\nalunite,2120,2250,1.01\n", "depth_min 1.01 is above 1"),
    ("name,from_nm,to_nm,depth_min\nalunite,2120,2250,nan\n", "depth_min 'nan' is not a number"),
    ("name,from_nm,to_nm\nalunite,nan,2250\n", "in ascending order"),
    ("name,from_nm,to_nm\n,2120,2250\n", "no name"),
    ("name,from_nm,to_nm\n", "f.csv"),
    ("name,from_nm,to_nm,name\nalunite,2120,2250,x\n", "two columns"),
])
def test_bad_tables(files, text, message):
    (files / "f.csv").write_text(text)
    with assert_untouched(files):
        result = sff(files, "-features", files / "f.csv", "-spectrum", "alunite", files / "scene.img", files / "s.tif")
    assert result.code == 1 and message in first_error(result), result.err


def test_a_scene_without_wavelengths(files):
    write_scene(files / "bare.img", read(files / "scene.img"))
    result = sff(files, "-range", "2280-2400nm", files / "bare.img", files / "s.tif")
    assert result.code == 1 and "no wavelengths" in first_error(result)


def test_a_column_that_means_nothing_is_told(files):
    (files / "f.csv").write_text("name;from_nm;to_nm;fit-min\nalunite;2120,0;2250,0;0,9\n")
    out = succeed(sff(files, "-features", files / "f.csv", "-spectrum", "alunite", files / "scene.img", files / "s.tif"))
    assert "these columns are ignored: fit-min" in out.err


def test_ranges_that_are_cut_short(tmp_path):
    spectra = {name: spectrum(lines) for name, lines in MINERALS.items()}
    write_library(tmp_path / "m.csv", spectra)
    write_features(tmp_path / "f.csv", [("calcite", 2280, 2600, "", 0, 0), ("kaolinite", 2120, 2250, "", 0, 0)])
    scene = np.stack(list(spectra.values()), axis=1).reshape(BANDS, 1, 3)
    write_scene(tmp_path / "scene.img", scene.astype(np.float32), wavelengths=NM)
    said = succeed(run("gdal_hsi_detect", "-method", "sff", "-target", tmp_path / "m.csv", "-features", tmp_path / "f.csv", "-range",
                       "1900-2250nm", tmp_path / "scene.img", tmp_path / "d.tif")).out
    assert "'calcite', 2280-2600 nm, has good bands only from 2281 nm to 2415 nm" in said, said
    assert "-range 1900-2250nm has good bands only from 2000 nm to" in said and "'kaolinite'" not in said
