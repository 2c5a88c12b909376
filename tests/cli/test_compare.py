# SPDX-License-Identifier: MIT
"""gdal_hsi_compare, compared with numpy: every metric, counts, positions, maps, thresholds, and bad input."""

import itertools
import json

import numpy as np
import pytest
from osgeo import gdal

from conftest import assert_untouched, cube, first_error, read, real_scene, run, succeed, write_utm_scene as write_scene

SPECTRAL = ("nrmse", "maxsde", "sad", "rmse", "maxabs")


def compare(*args, **kwargs):
    return run("gdal_hsi_compare", *args, **kwargs)


def compared(*args):
    return json.loads(succeed(compare("-json", *args)).out)


def reference(s, t):
    """Returns the spectral metrics of every pixel; NaN where one of the cubes has no spectrum."""
    valid = np.isfinite(s).all(0) & np.isfinite(t).all(0) & (s != 0).any(0) & (t != 0).any(0)
    s, t = np.where(valid, s, 1.0), np.where(valid, t, 1.0)
    d = t - s
    with np.errstate(invalid="ignore", divide="ignore"):
        u, v = s / np.sqrt((s ** 2).sum(0)), t / np.sqrt((t ** 2).sum(0))
        metrics = {
            "nrmse": np.sqrt((d ** 2).sum(0) / ((s - s.mean(0)) ** 2).sum(0)),
            "maxsde": len(s) * np.abs(d).max(0) / np.abs(s).sum(0),
            "sad": np.degrees(2 * np.arctan2(np.sqrt(((u - v) ** 2).sum(0)), np.sqrt(((u + v) ** 2).sum(0)))),
            "rmse": np.sqrt((d ** 2).mean(0)),
            "maxabs": np.abs(d).max(0)}
    return valid, {name: np.where(valid, m, np.nan) for name, m in metrics.items()}


def ssim_map(s, t, valid):
    """Computes the SSIM of one band in a window of 11x11 pixels, sigma 1.5, with weights over the valid pixels."""
    taps = np.exp(-np.arange(-5, 6) ** 2 / 4.5)
    length = s[valid].max() - s[valid].min()

    def blur(x):
        padded = np.pad(np.where(valid, x, 0.0), 5)
        lines = sum(g * padded[:, k:k + s.shape[1]] for k, g in enumerate(taps))
        return sum(g * lines[k:k + s.shape[0]] for k, g in enumerate(taps))

    shift = s[valid].mean()
    s, t = s - shift, t - shift
    w = blur(np.ones_like(s))
    w[w == 0] = np.nan
    ms, mt = blur(s) / w, blur(t) / w
    vs, vt, c = blur(s * s) / w - ms ** 2, blur(t * t) / w - mt ** 2, blur(s * t) / w - ms * mt
    ms, mt = ms + shift, mt + shift
    c1, c2 = (0.01 * length) ** 2, (0.03 * length) ** 2
    value = (2 * ms * mt + c1) * (2 * c + c2) / ((ms ** 2 + mt ** 2 + c1) * (vs + vt + c2))
    return np.where(valid, value, np.nan)


def zones(x, valid):
    """Returns the flat zones of one band after Otsu's threshold."""
    low, high = x[valid].min(), x[valid].max()
    bins = np.minimum(255, ((np.where(valid, x, low) - low) * (256 / (high - low))).astype(int))
    h = np.bincount(bins[valid], minlength=256).astype(float)
    i = np.arange(256)
    best, threshold = 0.0, 255
    for k in range(255):
        below, above = h[:k + 1].sum(), h[k + 1:].sum()
        if below == 0 or above == 0:
            continue
        gap = (h * i)[:k + 1].sum() / below - (h * i)[k + 1:].sum() / above
        if below * above * gap ** 2 > best:
            best, threshold = below * above * gap ** 2, k
    phase = np.where(valid, bins > threshold, -1).astype(int)
    count = 0
    for line, sample in np.ndindex(*phase.shape):
        own = phase[line, sample]
        if own < 0:
            continue
        count += 1
        todo = [(line, sample)]
        phase[line, sample] = -1
        while todo:
            y, x0 = todo.pop()
            for j, k in ((y - 1, x0), (y + 1, x0), (y, x0 - 1), (y, x0 + 1)):
                if 0 <= j < phase.shape[0] and 0 <= k < phase.shape[1] and phase[j, k] == own:
                    phase[j, k] = -1
                    todo.append((j, k))
    return count


@pytest.fixture
def pair(out):
    """Makes two scenes with holes of all types, in two formats."""
    s = cube(samples=170, lines=47, bands=9, seed=3).astype(np.float32)
    t = (s + np.random.default_rng(4).normal(0, 20, s.shape)).astype(np.float32)
    s[:, 3, 4] = -9999
    t[:, 5, 6] = -9999
    t[2, 7, 8] = np.nan
    s[0, 9, 130] = np.inf
    t[:, 11, 12] = 0
    s[:, 20:22, 60:70] = t[:, 20:22, 60:70] = -9999
    t[:, 30, 40] = s[:, 30, 40]
    a = write_scene(out / "a.img", s, nodata=-9999, wavelengths=list(range(400, 490, 10)))
    b = write_scene(out / "b.tif", t, driver="GTiff", nodata=-9999, options=["TILED=YES", "BLOCKXSIZE=32", "BLOCKYSIZE=32"])
    s, t = s.astype(float), t.astype(float)
    s[s == -9999] = np.nan
    t[t == -9999] = np.nan
    return a, b, s, t


@pytest.mark.quick
def test_metrics_counts_positions_and_maps(pair, out):
    a, b, s, t = pair
    valid, want = reference(s, t)
    got = compared("-metric", ",".join(SPECTRAL), "-map", out / "map.tif", a, b)
    assert got["size"] == [170, 47, 9]
    assert got["pixels"] == {"compared": int(valid.sum()), "valid_only_in_a": 3, "valid_only_in_b": 2, "valid_in_neither": 20}
    maps = read(out / "map.tif")
    dataset = gdal.Open(str(out / "map.tif"))
    for k, name in enumerate(SPECTRAL):
        m = got["metrics"][name]
        assert m["mean"] == pytest.approx(np.nanmean(want[name]), rel=1e-12), name
        assert m["maximum"] == pytest.approx(np.nanmax(want[name]), rel=1e-12), name
        assert (m["line"], m["sample"]) == np.unravel_index(np.nanargmax(want[name]), valid.shape)
        np.testing.assert_allclose(maps[k], want[name].astype(np.float32), rtol=2e-6, atol=1e-5 if name == "sad" else 0)
        assert dataset.GetRasterBand(k + 1).GetDescription() == name
    assert dataset.GetGeoTransform() == gdal.Open(a).GetGeoTransform()
    assert dataset.GetSpatialRef().IsSame(gdal.Open(a).GetSpatialRef())
    assert want["sad"][30, 40] == 0 and maps[2][30, 40] == 0


def test_ssim_and_its_map(pair, out):
    a, b, s, t = pair
    valid, _ = reference(s, t)
    got = compared("-metric", "ssim,rmse", "-map", out / "m.tif", a, b)
    want = [ssim_map(s[k], t[k], valid) for k in range(9)]
    np.testing.assert_allclose(got["metrics"]["ssim"]["bands"], [np.nanmean(w) for w in want], rtol=1e-9)
    assert got["metrics"]["ssim"]["mean"] == pytest.approx(np.mean([np.nanmean(w) for w in want]), rel=1e-9)
    np.testing.assert_allclose(read(out / "m.tif")[0], np.mean(want, axis=0), rtol=1e-5)


def test_simplification_ratio(pair):
    a, b, s, t = pair
    valid, _ = reference(s, t)
    got = compared("-metric", "sr", a, b)["metrics"]["sr"]
    assert got["zones_a"] == [zones(s[k], valid) for k in range(9)]
    assert got["zones_b"] == [zones(t[k], valid) for k in range(9)]
    np.testing.assert_allclose(got["bands"], np.array(got["zones_b"]) / np.array(got["zones_a"]))


def test_tiles_and_threads_change_no_digit(pair, out):
    a, b, _, _ = pair
    results, maps = set(), set()
    for k, options in enumerate([(), ("-tile", 128, 1), ("-tile", 128, 13, "-threads", 3), ("-threads", 1, "-memory", "40MB")]):
        result = compare("-json", *options, "-metric", "nrmse,maxsde,sad,rmse,maxabs,ssim,sr", "-map", out / f"{k}.tif", a, b)
        results.add(succeed(result).out)
        maps.add(gdal.Open(str(out / f"{k}.tif")).ReadAsArray().tobytes())
    assert len(results) == 1 and len(maps) == 1


def test_a_scene_is_like_itself(scene):
    result = succeed(compare("-q", "-max-nrmse", 0, "-max-maxsde", 0, "-max-sad", 0, "-max-rmse", 0, "-max-maxabs", 0,
                             "-min-ssim", 0.999999, "-max-unmatched", 0, scene, scene))
    assert "Pixels compared: 1200" in result.out and result.err == ""


def test_text_shows_what_json_has(pair):
    a, b, _, _ = pair
    text = succeed(compare("-q", a, b)).out.splitlines()
    metrics = compared(a, b)["metrics"]
    assert list(metrics) and set(metrics) == set(SPECTRAL)
    rows = {line.split()[0]: line.replace(",", "").split() for line in text[2:]}
    for name, m in metrics.items():
        assert float(rows[name][1]) == pytest.approx(m["mean"], rel=1e-8)
        assert float(rows[name][2]) == pytest.approx(m["maximum"], rel=1e-8)
        assert [int(x) for x in rows[name][3:]] == [m["line"], m["sample"]]


@pytest.mark.parametrize("option,metric,field", [(f"-{kind}-{m}", m, field) for m in SPECTRAL
                                                 for kind, field in (("max", "maximum"), ("mean", "mean"))])
def test_thresholds(pair, option, metric, field):
    a, b, _, _ = pair
    value = compared("-metric", metric, a, b)["metrics"][metric][field]
    assert compare("-q", option, value, a, b).code == 0
    result = compare("-q", option, value * 0.999, a, b)
    assert result.code == 1 and option in first_error(result)
    assert metric in result.out  # the numbers are shown anyway


def test_thresholds_of_ssim_and_holes(pair):
    a, b, _, _ = pair
    worst = min(compared("-metric", "ssim", a, b)["metrics"]["ssim"]["bands"])
    assert compare("-q", "-min-ssim", worst, a, b).code == 0
    assert "-min-ssim" in first_error(compare("-q", "-min-ssim", worst + 1e-6, a, b))
    assert compare("-q", "-max-unmatched", 5, a, b).code == 0
    assert "-max-unmatched" in first_error(compare("-q", "-max-unmatched", 4, a, b))


def test_pairs_of_bands(pair):
    a, _, s, _ = pair
    got = compared("-metric", "rmse,ssim", "-band", "1:2,1:3,5-6:8-9", a, a)
    assert got["bands_a"] == [1, 1, 5, 6] and got["bands_b"] == [2, 3, 8, 9]
    valid, want = reference(s[[0, 0, 4, 5]], s[[1, 2, 7, 8]])
    assert got["metrics"]["rmse"]["mean"] == pytest.approx(np.nanmean(want["rmse"]), rel=1e-12)
    np.testing.assert_allclose(got["metrics"]["ssim"]["bands"], [
        np.nanmean(ssim_map(x, y, valid)) for x, y in zip(s[[0, 0, 4, 5]], s[[1, 2, 7, 8]])], rtol=1e-9)


def test_rmse_of_bands_and_of_all_values(pair, out):
    a, b, s, t = pair
    valid, _ = reference(s, t)
    square = np.where(valid, (t - s) ** 2, np.nan)
    got = compared(a, b)["metrics"]["rmse"]
    np.testing.assert_allclose(got["bands"], np.sqrt(np.nanmean(square, axis=(1, 2))), rtol=1e-12)
    assert got["all_values"] == pytest.approx(np.sqrt(np.nanmean(square)), rel=1e-12)
    assert compared("-tile", 128, 8, "-threads", 3, a, b)["metrics"]["rmse"] == got
    text = succeed(compare("-metric", "rmse", a, b)).out
    assert f"RMSE over all pixels and bands: {got['all_values']:.9g}\n" in text
    rows = [line.split() for line in text.split("\n") if line[:8].strip().isdigit()]
    assert [(row[0], row[1]) for row in rows] == [(str(k), str(k)) for k in range(1, 10)]
    assert [float(row[2]) for row in rows] == pytest.approx(got["bands"], rel=1e-8)
    got = compared("-metric", "rmse", "-band", "2:5", a, b)["metrics"]["rmse"]
    error = (t[4] - s[1])[np.isfinite(t[4]) & np.isfinite(s[1])]
    assert got["mean"] == pytest.approx(np.abs(error).mean()) and got["all_values"] == pytest.approx(np.sqrt((error ** 2).mean()))
    assert "rmse" not in compared("-metric", "maxabs", a, b)["metrics"]
    big = np.random.default_rng(1).uniform(1e6, 2e6, (2, 20, 30))
    wide = write_scene(out / "wide.tif", big, driver="GTiff", dtype="f8")
    near = write_scene(out / "near.tif", big + 1e-3, driver="GTiff", dtype="f8")
    assert compared("-metric", "rmse", wide, near)["metrics"]["rmse"]["bands"] == pytest.approx([1e-3, 1e-3], rel=1e-6)


def test_windows_and_bands_hold_for_both(pair):
    a, b, s, t = pair
    got = compared("-srcwin", 10, 12, 50, 20, "-b", "2-4", "-metric", "rmse", a, b)
    _, want = reference(s[1:4, 12:32, 10:60], t[1:4, 12:32, 10:60])
    assert got["metrics"]["rmse"]["mean"] == pytest.approx(np.nanmean(want["rmse"]), rel=1e-12)
    assert got["bands_a"] == got["bands_b"] == [2, 3, 4]


def test_single_bands(out):
    s = np.zeros((1, 6, 7))
    t = s.copy()
    t[0, 2, 3] = 0.5
    a, b = write_scene(out / "a.tif", s, driver="GTiff"), write_scene(out / "b.tif", t, driver="GTiff")
    got = compared(a, b)
    assert set(got["metrics"]) == {"rmse", "maxabs"}
    assert got["metrics"]["maxabs"] == {"mean": 0.5 / 42, "maximum": 0.5, "line": 2, "sample": 3}
    result = compare("-metric", "sad", a, b)
    assert result.code == 2 and "sad" in first_error(result)


def test_flat_reference_is_infinitely_far(out):
    s = np.ones((3, 4, 5))
    t = s.copy()
    t[0, 1, 2] = 2
    a, b = write_scene(out / "a.tif", s, driver="GTiff"), write_scene(out / "b.tif", t, driver="GTiff")
    assert compared("-metric", "nrmse", a, b)["metrics"]["nrmse"] == {"mean": "inf", "maximum": "inf", "line": 1, "sample": 2}
    assert compare("-q", "-max-nrmse", 1e30, a, b).code == 1


def test_small_differences_of_large_scenes(out):
    """The acceptance limits of SPP are near 1e-7: rounding one scene to float must be measured exactly, without
    noise."""
    s = cube(samples=64, lines=64, bands=50, seed=8)
    a = write_scene(out / "a.tif", s, driver="GTiff", dtype="f4")
    t = s.astype(np.float32)
    t = np.nextafter(t, np.float32(np.inf))
    b = write_scene(out / "b.tif", t, driver="GTiff", dtype="f4")
    got = compared(a, b)["metrics"]
    _, want = reference(s.astype(np.float32).astype(float), t.astype(float))
    for name in SPECTRAL:
        assert got[name]["mean"] == pytest.approx(np.nanmean(want[name]), rel=1e-9)
    assert 1e-8 < got["nrmse"]["mean"] < 1e-6 and 0 < got["sad"]["maximum"] < 1e-4


def test_different_sizes_are_named(pair, out):
    a, _, s, _ = pair
    b = write_scene(out / "c.tif", s[:, :40], driver="GTiff")
    result = compare(a, b)
    assert result.code == 1
    assert "a.img is 170x47x9" in first_error(result) and "c.tif is 170x40x9" in first_error(result)
    b = write_scene(out / "d.tif", s[:4], driver="GTiff")
    result = compare(a, b)
    assert result.code == 1 and "170x47x4" in first_error(result)


def test_different_places_are_told(pair, out):
    a, _, s, _ = pair
    b = write_scene(out / "c.tif", s, driver="GTiff", geotransform=(500020, 20, 0, 4480000, 0, -20))
    assert "georeference" in succeed(compare("-q", a, b)).err


BAD = {
    "psnr": ("-metric", "psnr"), "-band": ("-band", "1:2:3"), "pairs 2 bands": ("-band", "1-2:4"), "-b cannot": ("-b", "1", "-band", "1:2"),
    "-of": ("-of", "GTiff"), "-max-sad": ("-max-sad", "-3"), "-min-ssim": ("-min-ssim", "7"), "-device": ("-device", "cpu"),
    "sr has": ("-metric", "sr", "-map", "m.tif"), "would overwrite": ("-map",)}


@pytest.mark.quick
@pytest.mark.parametrize("word", BAD)
def test_refuses(pair, out, word):
    a, b, _, _ = pair
    options = BAD[word] if word != "would overwrite" else ("-map", a)
    with assert_untouched(out):
        result = compare(*options, a, b)
    assert result.code == 2, result.err
    assert word in first_error(result)


def test_nothing_in_common(out):
    s = cube()
    a = write_scene(out / "a.tif", s, driver="GTiff")
    b = write_scene(out / "b.tif", np.full_like(s, np.nan), driver="GTiff")
    with assert_untouched(out):
        result = compare("-map", out / "m.tif", a, b)
    assert result.code == 1 and "no pixel is valid in both" in first_error(result)


def test_missing_file_and_old_map(pair, out):
    a, b, _, _ = pair
    (out / "m.tif").write_text("mine")
    with assert_untouched(out):
        assert compare("-map", out / "m.tif", a, b).code == 1
        result = compare(a, out / "none.tif")
        assert result.code == 1 and "none.tif" in first_error(result)
        result = succeed(compare("-dry-run", "-metric", "nrmse,ssim,sr", a, b))
        assert all(f"Pass {name}" in result.out for name in ("ranges", "thresholds", "zones", "compare"))


def test_a_real_scene(out):
    path = real_scene("indian_pines")
    source = next(p for p in path.iterdir() if p.suffix not in (".hdr", ".xml", ".tif"))
    s = read(source)
    t = (s * 1.001 + 3).astype(np.float32)
    b = write_scene(out / "b.tif", t, driver="GTiff", epsg=None, geotransform=None)
    got = compared("-bbl", "ignore", source, b)["metrics"]
    _, want = reference(s, t.astype(float))
    for name in SPECTRAL:
        assert got[name]["mean"] == pytest.approx(np.nanmean(want[name]), rel=1e-9)
        assert got[name]["maximum"] == pytest.approx(np.nanmax(want[name]), rel=1e-9)


def test_bands_without_a_value_are_left_out(tmp_path):
    data = cube(40, 30, 10)
    other = data * 1.01
    data[6] = -9999          # dead in the first scene
    other[2] = -9999         # dead in the second scene
    other[:, 5:9, 7:20] = -9999
    a = write_scene(tmp_path / "a.img", data, nodata=-9999)
    b = write_scene(tmp_path / "b.img", other, nodata=-9999)
    result = succeed(compare("-json", "-metric", "nrmse,sad,ssim", "-report", tmp_path / "r.json", "-map", tmp_path / "m.tif", a, b))
    assert "band 3,7: left out" in result.err
    got = json.loads(result.out)
    kept = [0, 1, 3, 4, 5, 7, 8, 9]
    assert got["bands_a"] == got["bands_b"] == [k + 1 for k in kept]
    s, t = data[kept].astype("f4").astype(float), other[kept].astype("f4").astype(float)
    s[s == -9999] = np.nan
    t[t == -9999] = np.nan
    valid, metrics = reference(s, t)
    assert got["pixels"]["compared"] == valid.sum() and got["pixels"]["valid_only_in_a"] == (~valid).sum()
    assert got["metrics"]["nrmse"]["mean"] == pytest.approx(np.nanmean(metrics["nrmse"]), rel=1e-5)
    assert np.allclose(read(tmp_path / "m.tif")[0], metrics["nrmse"], rtol=1e-4, atol=1e-7, equal_nan=True)
    assert json.loads((tmp_path / "r.json").read_text())["bands_without_values"] == [3, 7]
    # Pairs of bands, one or two of them dead. The warning names both scenes.
    for pairs, text in (("1:1,7:5,4:4", "band 7 of src or in band 5 of other: this pair of bands is left out"),
                        ("1:1,7:5,8:3,4:4", "band 7,8 of src or in band 5,3 of other: these pairs of bands are left out")):
        result = succeed(compare("-json", "-band", pairs, a, b))
        assert f"no valid value in {text}" in result.err
        got = json.loads(result.out)
        assert (got["bands_a"], got["bands_b"]) == ([1, 4], [1, 4])


def test_scenes_whose_every_band_is_dead_are_refused(tmp_path):
    data = np.full((4, 20, 20), -9999.0)
    a = write_scene(tmp_path / "a.img", data, nodata=-9999)
    result = compare(a, a)
    assert result.code == 1 and "no pixel is valid" in first_error(result)


def test_two_bands_of_which_one_is_dead_are_no_spectrum(tmp_path):
    data = cube(20, 20, 2)
    data[1] = -9999
    a = write_scene(tmp_path / "a.img", data, nodata=-9999)
    result = compare("-metric", "sad", a, a)
    assert result.code == 2 and "one band is not a spectrum" in result.err


def test_enmap_equals_itself():
    scene = real_scene("enmap_potsdam/enmap_potsdam.vrt")
    got = compared("-bbl", "ignore", scene, scene)
    assert len(got["bands_a"]) == 218 and got["pixels"]["compared"] > 0
    assert got["metrics"]["maxabs"]["maximum"] == 0


def library(path, names, spectra, nm):
    path.write_text("\n".join(["wavelength (nm)," + ",".join(names)] + [
        ",".join([str(w), *(repr(float(v)) for v in spectra[:, b])]) for b, w in enumerate(nm)]) + "\n")
    return path


@pytest.mark.quick
@pytest.mark.parametrize("counts", [(5, 5), (3, 6), (6, 4)])
def test_libraries_are_matched_one_to_one(tmp_path, counts):
    """The result has the least sum of angles over all pairings."""
    for seed in range(4):
        random = np.random.default_rng(seed)
        nm = np.arange(500, 900, 20)
        a, b = (random.uniform(0.1, 1, (n, len(nm))) for n in counts)
        b[:2] = a[1::-1] * 1.5 + random.normal(0, 0.01, (2, len(nm)))
        files = [library(tmp_path / f"{name}.csv", [f"{name}{k}" for k in range(len(x))], x, nm) for name, x in (("a", a), ("b", b))]
        result = json.loads(succeed(run("gdal_hsi_compare", "-json", *files)).out)
        angle = np.degrees(np.arccos(np.clip((a @ b.T) / np.linalg.norm(a, axis=1)[:, None] / np.linalg.norm(b, axis=1), -1, 1)))
        few = min(counts)
        best = min((angle[range(few), list(p)].sum() if counts[0] <= counts[1] else angle[list(p), range(few)].sum())
                   for p in itertools.permutations(range(max(counts)), few))
        assert len(result["matches"]) == few and result["mean_sad"] * few == pytest.approx(best, abs=1e-9)
        for one in result["matches"]:
            i, k = int(one["src"][1:]), int(one["other"][1:])
            assert one["sad"] == pytest.approx(angle[i, k], abs=1e-6) and one["rmse"] == pytest.approx(np.sqrt(((a[i] - b[k]) ** 2).mean()))
        assert len({one["other"] for one in result["matches"]}) == few
        assert len(result["src_alone"]) + few == counts[0] and len(result["other_alone"]) + few == counts[1]
    text = succeed(run("gdal_hsi_compare", "-o", tmp_path / "o.txt", *files)).out
    assert text == (tmp_path / "o.txt").read_text() and "SAD/degree" in text and ("Without a match" in text) == (counts[0] != counts[1])


def test_libraries_at_other_bands_limits_and_refusals(tmp_path):
    nm = np.arange(500, 900, 10)
    spectra = np.array([0.3 + 0.2 * np.sin(nm / 80), 0.6 - nm / 3000])
    a = library(tmp_path / "a.csv", ["wave", "slope"], spectra, nm)
    b = library(tmp_path / "b.csv", ["slope", "wave"], spectra[::-1, ::2], nm[::2])
    result = json.loads(succeed(run("gdal_hsi_compare", "-json", a, b)).out)
    assert [(one["src"], one["other"]) for one in result["matches"]] == [("wave", "wave"), ("slope", "slope")]
    assert result["maximum_sad"] < 1 and result["bands"] == len(nm) - 1  # the last band is outside the other library
    result = run("gdal_hsi_compare", "-max-sad", 1e-9, a, b)
    assert result.code == 1 and "the maximum of sad is" in first_error(result)
    for words, code, message in ((["-metric", "nrmse", a, b], 2, "-metric cannot be used with spectral libraries"),
                                 (["-map", tmp_path / "m.tif", a, b], 2, "-map cannot be used"), (["-b", 3, a, b], 2, "-b cannot be used with"),
                                 (["-max-nrmse", 1, a, b], 2, "-max-nrmse cannot be used"), ([a, tmp_path / "none.csv"], 1, "none.csv")):
        result = run("gdal_hsi_compare", *words)
        assert result.code == code and message in first_error(result), result.err


def test_libraries_in_other_units(tmp_path):
    nm = np.arange(500, 900, 10)
    spectra = np.array([0.3 + 0.2 * np.sin(nm / 80), 0.6 - nm / 3000])
    files = [library(tmp_path / f"{k}.csv", ["wave", "slope"], spectra * factor, nm) for k, factor in enumerate((1, 10000, 3))]
    for order in ((0, 1), (1, 0)):
        result = succeed(run("gdal_hsi_compare", *(files[k] for k in order)))
        assert "1.csv' are 1e+04 times as large as the spectra of" in result.err and "0.csv', so their units probably differ" in result.err
    assert succeed(run("gdal_hsi_compare", files[0], files[2])).err == ""
