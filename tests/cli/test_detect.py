# SPDX-License-Identifier: MIT
"""gdal_hsi_detect, compared with the definitions in numpy, on synthetic and real scenes, and refused input."""

import json
import os

import numpy as np
import pytest
from osgeo import gdal, ogr, osr

from conftest import ROOT, assert_untouched, cube, envi_header, first_error, open_band, read, real_scene, run, succeed, write_utm_scene as write_scene

WAVELENGTHS = [400 + 10 * b for b in range(12)]
METHODS = ["sam", "sid", "mf", "cem", "ace", "rx"]
SHIFTED = (500000, 20, 0, 4480000, 0, -20)


def detect(*args):
    return run("gdal_hsi_detect", *args)


def write_library(path, rows, wavelengths=WAVELENGTHS, names=None):
    names = names or ["t%d" % (k + 1) for k in range(len(rows))]
    lines = [",".join(["band", "wavelength"] + names)]
    for b in range(len(rows[0])):
        lines.append(",".join([str(b + 1), str(wavelengths[b]) if wavelengths else ""] + ["%.17g" % r[b] for r in rows]))
    path.write_text("\n".join(lines) + "\n")
    return path


def spectra(scene):
    """Returns the spectra of two pixels, slightly changed."""
    return np.array([scene[:, 4, 7] * 1.1, scene[:, 20, 31] + 15])


@pytest.fixture
def files(tmp_path):
    data = cube().astype(np.float32)
    data[3, 7, 9] = np.nan
    write_scene(tmp_path / "scene.img", data, wavelengths=WAVELENGTHS)
    write_library(tmp_path / "library.csv", spectra(data.astype(float)))
    mask = np.zeros((1, 30, 40), np.uint8)
    mask[0, :, 5:25] = 3
    write_scene(tmp_path / "mask.tif", mask, driver="GTiff", dtype="u1")
    return tmp_path


def reference(scene, targets, method, inside=None):
    """Returns the scores of all pixels (targets, lines, samples); `inside` selects the background."""
    x = np.moveaxis(scene, 0, 2).astype(float)
    valid = np.isfinite(x).all(axis=2) & (x != 0).any(axis=2)
    background = x[valid & inside if inside is not None else valid]
    if method == "sam":
        unit = x / np.linalg.norm(x, axis=2, keepdims=True)
        scores = [2 * np.arctan2(np.linalg.norm(unit - t / np.linalg.norm(t), axis=2),
                                 np.linalg.norm(unit + t / np.linalg.norm(t), axis=2)) for t in targets]
    elif method == "sid":
        positive = lambda v: np.maximum(v, 1e-6 * v.max(axis=-1, keepdims=True))
        p = positive(x) / positive(x).sum(axis=2, keepdims=True)
        scores = [((p - q) * (np.log(p) - np.log(q))).sum(axis=2)
                  for q in (positive(t) / positive(t).sum() for t in targets)]
    elif method == "cem":
        r = background.T @ background / len(background)
        scores = [x @ np.linalg.solve(r, t) / (t @ np.linalg.solve(r, t)) for t in targets]
    else:
        mean, c = background.mean(axis=0), np.cov(background.T)
        d = x - mean
        rx = (d * np.linalg.solve(c, d.reshape(-1, len(mean)).T).T.reshape(d.shape)).sum(axis=2)
        if method == "rx":
            scores = [rx]
        else:
            w = [np.linalg.solve(c, t - mean) for t in targets]
            power = [v @ (t - mean) for v, t in zip(w, targets)]
            scores = ([d @ v / p for v, p in zip(w, power)] if method == "mf" else
                      [(d @ v) * abs(d @ v) / (p * rx) for v, p in zip(w, power)])
    scores = np.array(scores)
    scores[:, ~valid] = np.nan
    return scores


def close(method, got, want):
    tolerance = {"sam": 1e-6, "sid": 1e-6 + 1e-5 * abs(want), "ace": 1e-5, "rx": 1e-4 * abs(want)}
    limit = tolerance.get(method, 1e-4 * (1 + abs(want)))
    return np.array_equal(np.isnan(got), np.isnan(want)) and (np.isnan(want) | (abs(got - want) <= limit)).all()


@pytest.mark.quick
@pytest.mark.parametrize("mask", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_scores_are_their_definitions(method, mask, files):
    if mask and method in ("sam", "sid"):
        result = detect("-method", method, "-target", files / "library.csv", "-background", files / "mask.tif",
                        files / "scene.img", files / "d.tif")
        assert result.code == 2 and "-background" in first_error(result)
        return
    target = [] if method == "rx" else ["-target", files / "library.csv"]
    result = succeed(detect("-method", method, *target, *(["-background", files / "mask.tif"] if mask else []), "-report",
                            files / "r.json", files / "scene.img", files / "d.tif"))
    assert result.err == "" and "1 of 1200 pixels is invalid" in result.out
    scene, got = read(files / "scene.img"), read(files / "d.tif")
    inside = read(files / "mask.tif")[0] == 3 if mask else None
    assert close(method, got, reference(scene, spectra(scene), method, inside))
    dataset = gdal.Open(str(files / "d.tif"))
    names = ["RX"] if method == "rx" else ["t1", "t2"]
    assert [dataset.GetRasterBand(b + 1).GetDescription() for b in range(dataset.RasterCount)] == names
    assert dataset.GetMetadataItem("HSI_DETECT_METHOD") == method
    assert "gdal_hsi_detect" in dataset.GetMetadataItem("HSI_HISTORY")
    assert dataset.GetGeoTransform() == SHIFTED and "16N" in dataset.GetProjection()
    report = json.loads((files / "r.json").read_text())
    assert report["detection"]["method"] == method and report["valid_pixels"] == 1199
    if method not in ("sam", "sid"):
        assert report["background"]["pixels"] == (599 if mask else 1199)
        assert report["background"]["regularised"] is False and report["background"]["bands"] == 12


def ring(scene, inner, outer, y, x):
    bands, lines, samples = scene.shape
    pixels = [scene[:, j, i] for j in range(y - outer // 2, y + outer // 2 + 1) for i in range(x - outer // 2, x + outer // 2 + 1)
              if 0 <= j < lines and 0 <= i < samples and (abs(j - y) > inner // 2 or abs(i - x) > inner // 2)]
    pixels = np.array([p for p in pixels if np.isfinite(p).all() and p.any()])
    c = np.cov(pixels.T)
    d = scene[:, y, x] - pixels.mean(axis=0)
    return d @ np.linalg.solve(c + 1e-2 * np.trace(c) / bands * np.eye(bands), d)


@pytest.mark.parametrize("inner,outer", [(1, 3), (3, 9)])
def test_local_rx(inner, outer, files):
    succeed(detect("-q", "-window", inner, outer, files / "scene.img", files / "d.tif"))
    scene, got = read(files / "scene.img"), read(files / "d.tif")[0]
    assert np.isnan(got).sum() == 1 and np.isnan(got[7, 9])
    for y in range(0, 30, 3):
        for x in range(0, 40, 3):
            if (y, x) != (7, 9) and not np.isnan(got[y, x]):
                want = ring(scene, inner, outer, y, x)
                assert abs(got[y, x] - want) <= 1e-3 * want + 1e-6, (y, x)


def test_local_rx_without_background_or_variance(files):
    scene = read(files / "scene.img")
    scene[:, :, 20:] = 5
    scene[2, 15, 30] = 9
    write_scene(files / "flat.img", scene)
    mask = np.ones((1, 30, 40), np.uint8)
    mask[:, :, :8] = 0
    write_scene(files / "some.tif", mask, driver="GTiff", dtype="u1")
    result = succeed(detect("-window", 1, 5, "-background", files / "some.tif", "-report", files / "r.json", files / "flat.img",
                            files / "d.tif"))
    got, report = read(files / "d.tif")[0], json.loads((files / "r.json").read_text())
    assert "fewer than 2 background pixels" in result.err and "all equal" in result.err
    assert np.isnan(got[:, :6]).all() and report["pixels_without_background"] == 180
    assert np.isnan(got[15, 30]) and got[5, 30] == 0 and report["pixels_without_variance"] > 300


@pytest.mark.parametrize("args", [["-method", m] for m in METHODS] + [["-window", "3", "7"], ["-window", "1", "3"]],
                         ids=METHODS + ["bands", "pixels"])
def test_tiles_threads_memory_and_interleave_change_no_byte(args, files):
    if args[-1] in METHODS[:5]:
        args = args + ["-target-pixel", 4, 7, "-target-pixel", 20, 31]
    args = args + ["-of", "ENVI", "-map"]
    threshold = ["-threshold", "0.2"] if args[1] in METHODS[:5] else ["-threshold", "12"]
    succeed(detect("-q", *args, files / "am.img", *threshold, files / "scene.img", files / "a.img"))
    gdal.Translate(str(files / "bip.img"), str(files / "scene.img"), format="ENVI", creationOptions=["INTERLEAVE=BIP"])
    gdal.Translate(str(files / "tiled.tif"), str(files / "scene.img"), creationOptions=["TILED=YES", "BLOCKXSIZE=16",
                                                                                       "BLOCKYSIZE=16", "COMPRESS=DEFLATE"])
    for k, more in enumerate((["-threads", 3, "-tile", 7, 5], ["-threads", 1, "-tile", 40, 1], ["-memory", "64MB"])):
        for scene in ("scene.img", "bip.img", "tiled.tif"):
            out, names = files / ("b%d%s.img" % (k, scene)), files / ("m%d%s.img" % (k, scene))
            succeed(detect("-q", *more, *args, names, *threshold, files / scene, out))
            assert out.read_bytes() == (files / "a.img").read_bytes(), (more, scene)
            assert names.read_bytes() == (files / "am.img").read_bytes(), (more, scene)


def test_target_pixels_count_within_srcwin(files):
    succeed(detect("-q", "-method", "sam", "-srcwin", 3, 2, 30, 25, "-target-pixel", 2, 4, "-target-pixel", 0, 0,
                   files / "scene.img", files / "d.tif"))
    scene = read(files / "scene.img")
    want = reference(scene, [scene[:, 4, 7], scene[:, 2, 3]], "sam")[:, 2:27, 3:33]
    assert close("sam", read(files / "d.tif"), want)
    dataset = gdal.Open(str(files / "d.tif"))
    assert [dataset.GetRasterBand(b).GetDescription() for b in (1, 2)] == ["2,4", "0,0"]
    assert dataset.GetGeoTransform()[0] == 500060 and dataset.GetGeoTransform()[3] == 4479960


def test_background_of_a_vector_file(files):
    srs = osr.SpatialReference()
    srs.ImportFromEPSG(32616)
    source = ogr.GetDriverByName("GPKG").CreateDataSource(str(files / "area.gpkg"))
    layer = source.CreateLayer("area", srs)
    feature = ogr.Feature(layer.GetLayerDefn())
    feature.SetGeometry(ogr.CreateGeometryFromWkt("POLYGON((500100 4480000,500500 4480000,500500 4479400,500100 4479400,500100 4480000))"))
    layer.CreateFeature(feature)
    source = layer = None
    for k, background in enumerate(["mask.tif", "area.gpkg"]):
        succeed(detect("-q", "-background", files / background, files / "scene.img", files / ("d%d.tif" % k)))
    assert np.array_equal(read(files / "d0.tif"), read(files / "d1.tif"), equal_nan=True)


@pytest.mark.parametrize("method,threshold", [("sam", 0.15), ("sid", 0.02), ("mf", 0.4), ("cem", 0.6), ("ace", 0.1)])
def test_map(method, threshold, files):
    succeed(detect("-q", "-method", method, "-target", files / "library.csv", "-map", files / "all.tif", files / "scene.img",
                   files / "a.tif"))
    succeed(detect("-q", "-method", method, "-target", files / "library.csv", "-map", files / "some.png", "-threshold", threshold,
                   "-dstnodata", -9, files / "scene.img", files / "b.tif"))
    scores = reference(read(files / "scene.img"), spectra(read(files / "scene.img")), method)
    small = method in ("sam", "sid")
    scores = np.where(np.isnan(scores), -1e9, -scores if small else scores)
    best = np.where(scores[0] == -1e9, 0, scores.argmax(axis=0) + 1)
    doubtful = abs(scores[0] - scores[1]) < 1e-4 * abs(scores[0])
    band = open_band(files / "all.tif")
    got = band.ReadAsArray()
    assert band.DataType == gdal.GDT_Byte and (got == best)[~doubtful].all() and band.GetNoDataValue() == 0
    assert band.GetCategoryNames() == ["Unclassified", "t1", "t2"] and band.GetColorTable().GetCount() >= 3
    within = scores.max(axis=0) >= (-threshold if small else threshold)
    some = gdal.Open(str(files / "some.png")).ReadAsArray()
    assert 0 < (some > 0).sum() < (got > 0).sum()
    assert (some == np.where(within, best, 0))[~doubtful & (abs(abs(scores.max(axis=0)) - threshold) > 1e-4)].all()
    assert open_band(files / "b.tif").GetNoDataValue() == -9


def test_map_of_anomalies(files):
    succeed(detect("-q", "-map", files / "map.tif", "-threshold", 20, files / "scene.img", files / "d.tif"))
    scores = read(files / "d.tif")[0]
    band = open_band(files / "map.tif")
    assert np.array_equal(band.ReadAsArray(), (scores >= 20).astype(np.uint8)) and (scores >= 20).any()
    assert band.GetNoDataValue() == 0 and band.GetCategoryNames() == ["Unclassified", "RX"]


def test_many_targets(files):
    pixels = [str(v) for k in range(260) for v in ("-target-pixel", k // 40 + 10, k % 40)]
    succeed(detect("-q", "-method", "sam", *pixels, "-map", files / "map.tif", files / "scene.img", files / "d.tif"))
    band = open_band(files / "map.tif")
    assert band.DataType == gdal.GDT_UInt16 and gdal.Open(str(files / "d.tif")).RasterCount == 260
    found = band.ReadAsArray()
    assert found[10, 0] == 1 and found[16, 19] == 260


def test_equal_targets_give_the_first(files):
    scene = read(files / "scene.img")
    write_library(files / "twice.csv", [scene[:, 4, 7], scene[:, 4, 7], scene[:, 20, 31]])
    for method in METHODS[:5]:
        succeed(detect("-q", "-overwrite", "-method", method, "-target", files / "twice.csv", "-map", files / "map.tif",
                       files / "scene.img", files / "d.tif"))
        assert set(np.unique(read(files / "map.tif")[~np.isnan(read(files / "map.tif"))])) == {1, 3}


def test_formats_and_types(files):
    library = ["-target", files / "library.csv"]
    succeed(detect("-q", *library, "-of", "ENVI", "-co", "INTERLEAVE=BIP", files / "scene.img", files / "d.dat"))
    header = envi_header(files / "d.dat")
    assert header["band names"] == ["t1", "t2"] and header["interleave"] == "bip"
    succeed(detect("-q", *library, "-of", "COG", files / "scene.img", files / "cog.tif"))
    assert np.array_equal(read(files / "d.dat"), read(files / "cog.tif"), equal_nan=True)
    succeed(detect("-q", "-ot", "Int16", "-dstnodata", -99, files / "scene.img", files / "int.tif"))
    succeed(detect("-q", files / "scene.img", files / "float.tif"))
    whole, rounded = read(files / "float.tif"), read(files / "int.tif")
    assert open_band(files / "int.tif").DataType == gdal.GDT_Int16
    assert np.nanmax(abs(whole - rounded)) <= 0.5 and np.isnan(rounded[0, 7, 9])


def test_a_library_of_other_bands_is_interpolated(files):
    scene = read(files / "scene.img")
    half = write_library(files / "half.csv", spectra(scene)[:, 2:9:2], WAVELENGTHS[2:9:2])
    result = succeed(detect("-method", "mf", "-target", half, files / "scene.img", files / "d.tif"))
    assert "Detection over 7 of 12 bands" in result.out
    t = [np.interp(WAVELENGTHS[2:9], WAVELENGTHS[2:9:2], s[2:9:2]) for s in spectra(scene)]
    assert np.array_equal(np.isnan(read(files / "d.tif")[0]), np.isnan(scene[2:9]).any(axis=0))
    assert close("mf", read(files / "d.tif"), reference(scene[2:9], t, "mf"))


def test_a_library_in_other_units_is_told(files):
    scene = read(files / "scene.img")
    small = write_library(files / "small.csv", spectra(scene) / 10000)
    assert "-library-scale" in succeed(detect("-q", "-target", small, files / "scene.img", files / "a.tif")).err
    assert succeed(detect("-q", "-library-scale", 10000, "-target", small, files / "scene.img", files / "b.tif")).err == ""
    succeed(detect("-q", "-target", files / "library.csv", files / "scene.img", files / "c.tif"))
    assert np.allclose(read(files / "b.tif"), read(files / "c.tif"), atol=1e-6, equal_nan=True)


@pytest.mark.parametrize("args", [["-method", "sam"], ["-method", "ace"], ["-window", "3", "7"]])
@pytest.mark.parametrize("wavelengths", [WAVELENGTHS, None])
def test_a_band_without_values_is_left_out(args, wavelengths, files):
    scene = read(files / "scene.img")
    scene[5] = np.nan
    write_scene(files / "hole.img", scene, wavelengths=wavelengths)
    bands = [b for b in range(12) if b != 5]
    targets = {"library": ["-target", write_library(files / "l.csv", spectra(read(files / "scene.img")), wavelengths)],
               "pixels": ["-target-pixel", 4, 7]}
    for kind, target in targets.items() if args[0] == "-method" else [("none", [])]:
        result = succeed(detect("-q", *args, *target, files / "hole.img", files / (kind + ".tif")))
        assert "band 6" in result.err, result.err
        if args[0] == "-method":
            t = spectra(read(files / "scene.img"))[:, bands] if kind == "library" else [scene[bands, 4, 7]]
            assert close(args[1], read(files / (kind + ".tif")), reference(scene[bands], t, args[1]))
        else:
            want = ring(scene[bands], 3, 7, 12, 14)
            assert abs(read(files / "none.tif")[0, 12, 14] - want) < 1e-3 * want


def test_constant_bands_and_small_backgrounds_are_told(files):
    scene = read(files / "scene.img")
    scene[4] = 12.5
    write_scene(files / "constant.img", scene)
    result = succeed(detect("-target-pixel", 4, 7, "-report", files / "r.json", files / "constant.img", files / "d.tif"))
    assert "constant over the background: band 5" in result.out and json.loads((files / "r.json").read_text())["background"]["constant_bands"] == [5]
    bands = [b for b in range(12) if b != 4]
    assert close("ace", read(files / "d.tif"), reference(scene[bands], [scene[bands, 4, 7]], "ace"))
    result = succeed(detect("-srcwin", 0, 0, 4, 3, "-report", files / "s.json", files / "scene.img", files / "s.tif"))
    assert "12 pixels for 12 bands" in result.err
    report = json.loads((files / "s.json").read_text())["background"]
    assert report["regularised"] and abs(report["added_to_diagonal"] - 1e-6 * report["mean_eigenvalue"]) < 1e-20
    scene = read(files / "scene.img")
    scene[6] = scene[5]
    write_scene(files / "twice.img", scene)
    for method, what in ("rx", "covariance"), ("cem", "correlation"):
        target = ["-target-pixel", 4, 7] if method == "cem" else []
        result = succeed(detect("-q", "-method", method, *target, files / "twice.img", files / (method + ".tif")))
        assert "are linear combinations of others" in result.err and what in result.err


def test_dry_run_prints_the_plan(files):
    with assert_untouched(files):
        result = succeed(detect("-dry-run", "-target", files / "library.csv", "-map", files / "m.tif", files / "scene.img",
                                files / "d.tif"))
        assert "Pass background:" in result.out and "Pass detection:" in result.out
        result = succeed(detect("-dry-run", "-window", 3, 9, files / "scene.img", files / "d.tif"))
        assert "halo 4" in result.out and "Pass background:" not in result.out
        succeed(detect("-dry-run", "-method", "sid", "-target-pixel", 1, 1, files / "scene.img", files / "d.tif"))
        for method in ("ace", "sam"):  # without map pixels, no pass writes scores
            plan = succeed(detect("-dry-run", "-method", method, "-target", files / "library.csv", files / "scene.img", files / "d.hsi")).out
            assert "An .hsi: pixels are computed when they are read" in plan and "Pass detection" not in plan


WITHOUT_GPU = dict(os.environ, CUDA_VISIBLE_DEVICES="")


@pytest.mark.parametrize("args", [["-method", "sam", "-target", "library.csv"], ["-target", "library.csv"], ["-window", 3, 7],
                                  ["-target", "library.csv", "-background-by", "columns", "-exclude-share", 0.1],
                                  ["-method", "rx", "-background-by", "mask.tif"]],
                         ids=["sam", "ace", "local", "columns", "classes"])
def test_devices_without_a_gpu(args, files, monkeypatch):
    monkeypatch.chdir(files)
    with assert_untouched(files):
        for device in ("cuda", "cuda:0", "cuda:0,1"):
            result = run("gdal_hsi_detect", "-device", device, *args, "scene.img", "d.tif", env=WITHOUT_GPU)
            assert result.code == 1 and "no CUDA device" in first_error(result), result.err
        assert run("gdal_hsi_detect", "-device", "gpu", *args, "scene.img", "d.tif", env=WITHOUT_GPU).code == 2
    written = {}
    for device in ("auto", "cpu"):
        report = device + ".json"
        succeed(run("gdal_hsi_detect", "-device", device, "-device-memory", "1GB", *args, "-of", "ENVI", "-report", report,
                    "scene.img", device + ".img", env=WITHOUT_GPU))
        written[device] = (files / (device + ".img")).read_bytes()
        told = json.loads((files / report).read_text())
        assert told["device"].startswith("CPU, ") and "kernel_seconds" not in told
        assert ("background_device" in told) == (args == ["-target", "library.csv"])
    assert written["auto"] == written["cpu"]


def test_a_vrt_wants_no_device(files):
    result = succeed(run("gdal_hsi_detect", "-device", "cuda", "-of", "VRT", "-target", files / "library.csv", "-report",
                         files / "r.json", files / "scene.img", files / "d.vrt", env=WITHOUT_GPU))
    assert "Device: CPU" in result.out and json.loads((files / "r.json").read_text())["device"].startswith("CPU, ")


def test_dry_run_estimates_the_work(files):
    seconds = []
    for k, window in enumerate(([], ["-window", 1, 3], ["-window", 15, 31], ["-window", 31, 63])):
        result = succeed(detect("-dry-run", "-device", "auto", "-threads", 1, *window, "-report", files / ("%d.json" % k),
                                files / "scene.img", files / "d.tif"))
        assert "CPU, about" in result.out
        seconds.append(json.loads((files / ("%d.json" % k)).read_text())["estimated_seconds"]["cpu"])
    assert seconds[1] < seconds[2] < seconds[3] and seconds[0] < seconds[3]


@pytest.mark.quick
@pytest.mark.parametrize("method", ["sam", "sid"])
def test_a_library_in_the_place_of_the_scene(method, files):
    """Scores the spectra of one library against another library's, as if they were pixels."""
    random = np.random.default_rng(5)
    field = random.uniform(0.1, 0.9, (4, 12))
    known = random.uniform(0.1, 0.9, (3, 12))
    write_library(files / "known.csv", known, names=["clay", "chalk", "rust"])
    write_library(files / "field.csv", field, names=["f1", "f2", "f3", "f4"])
    said = succeed(detect("-method", method, "-target", files / "known.csv", files / "field.csv", files / "o.csv")).out
    assert ("The scores are angles in radians" in said) == (method == "sam")
    rows = [line.split(",") for line in (files / "o.csv").read_text().splitlines()]
    want = reference(field.T[:, None, :], known, method)[:, 0].T
    assert rows[0] == ["name", "best", "clay", "chalk", "rust"] and [row[0] for row in rows[1:]] == ["f1", "f2", "f3", "f4"]
    assert close(method, np.array([[float(v) for v in row[2:]] for row in rows[1:]]), want)
    assert [row[1] for row in rows[1:]] == [rows[0][2 + k] for k in want.argmin(axis=1)]
    # A spectrum that lacks a band takes it from all; one target, by name.
    holes = field.copy()
    holes[1, 3] = np.nan
    write_library(files / "holes.csv", holes)
    text = (files / "holes.csv").read_text().replace("nan", "")
    (files / "holes.csv").write_text(text)
    said = succeed(detect("-method", method, "-target", files / "known.csv", "-spectrum", "rust", files / "holes.csv", files / "h.csv")).out
    kept = [b for b in range(12) if b != 3]
    rows = [line.split(",") for line in (files / "h.csv").read_text().splitlines()]
    assert "11 of 12 have a value" in said and rows[0] == ["name", "best", "rust"]
    assert close(method, np.array([float(row[2]) for row in rows[1:]]), reference(field.T[kept][:, None, :], known[2:, kept], method)[0, 0])


@pytest.mark.parametrize("words, text", [
    ([], "-method ace cannot be used with a spectral library"),
    (["-method", "mf"], "-method mf cannot be used with a spectral library"),
    (["-method", "sam", "-map", "m.tif"], "-map cannot be used with a spectral library"),
    (["-method", "sam", "-any-scale"], "-any-scale cannot be used with a spectral library"),
    (["-method", "sam", "-b", "1-3"], "-b cannot be used with a spectral library")])
def test_what_a_library_does_not_have(words, text, files, monkeypatch):
    monkeypatch.chdir(files)
    with assert_untouched(files):
        result = detect(*words, "-target", "library.csv", "library.csv", "o.csv")
    assert result.code == 2 and text in first_error(result), result.err


LIBRARY = ["-target", "library.csv"]
MISUSE = {
    "no target": (["-method", "ace"], "-method ace requires a target"),
    "no target for angles": (["-method", "sam"], "-method sam requires a target"),
    "a target with rx": (LIBRARY + ["-method", "rx"], "-method rx uses no target"),
    "a pixel with rx": (["-target-pixel", 1, 1, "-method", "rx"], "-method rx uses no target"),
    "both kinds": (LIBRARY + ["-target-pixel", 1, 1], "cannot be used with"),
    "window with ace": (LIBRARY + ["-window", 3, 5], "requires -method rx"),
    "shrinkage of a ring by estimate": (["-window", 3, 5, "-shrinkage", "auto"], "-shrinkage auto cannot be used with -window"),
    "shrinkage of a ring towards its diagonal": (["-window", 3, 5, "-shrinkage", "bands:0.1"], "cannot be used with -window"),
    "components of a ring": (["-window", 3, 5, "-nc", 2], "-nc cannot be used with -window"),
    "even window": (["-window", 3, 6], "-window 3 6 is not a ring"),
    "even inner window": (["-window", 2, 7], "-window 2 7 is not a ring"),
    "inverted window": (["-window", 7, 3], "-window 7 3 is not a ring"),
    "equal windows": (["-window", 3, 3], "-window 3 3 is not a ring"),
    "no inner window": (["-window", 0, 3], "is not a ring"),
    "window too large": (["-window", 3, 129], "from 1 to 127"),
    "half a window": (["-window", 3, "-q"], "-window"),
    "threshold without map": (LIBRARY + ["-threshold", 1], "-threshold"),
    "anomalies without threshold": (["-map", "m.tif"], "requires a threshold"),
    "background of angles": (LIBRARY + ["-method", "sid", "-background", "mask.tif"], "-background cannot be used with"),
    "scale without library": (["-target-pixel", 1, 1, "-library-scale", 2], "-library-scale"),
    "scale of nothing": (LIBRARY + ["-library-scale", 0], "-library-scale"),
    "pixel outside": (["-target-pixel", 30, 1], "lines 0 to 29"),
    "pixel outside of the window": (["-srcwin", 5, 5, 10, 10, "-target-pixel", 1, 10], "samples 0 to 9"),
    "pixel before": (["-target-pixel", -1, 1], "-target-pixel"),
    "unknown method": (LIBRARY + ["-method", "osp"], "-method"),
    "dst is the map": (LIBRARY + ["-map", "d.tif"], "d.tif"),
    "one band": (["-b", 3], "not a spectrum"),
    "VRT with a map": (LIBRARY + ["-of", "VRT", "-map", "m.tif"], "VRT"),
    "map as VRT": (LIBRARY + ["-map", "m.vrt"], "VRT"),
}


@pytest.mark.quick
@pytest.mark.parametrize("what", MISUSE)
def test_misuse_is_told_before_any_work(what, files, monkeypatch):
    monkeypatch.chdir(files)
    args, text = MISUSE[what]
    with assert_untouched(files):
        result = detect(*args, "scene.img", "d.tif")
    assert result.code == 2 or (what in ("map as VRT",) and result.code == 1), result.err
    assert text in result.err, result.err


BAD = {
    "invalid pixel": (["-target-pixel", 7, 9], "-target-pixel 7 9: the pixel is invalid"),
    "invalid pixel for angles": (["-method", "sam", "-target-pixel", 7, 9], "-target-pixel 7 9: the pixel is invalid"),
    "background of one pixel": (["-background", "one.tif"], "1 valid pixel"),
    "empty background": (["-background", "none.tif"], "the mask contains no pixel of the scene"),
    "background without variance": (["-background", "same.tif", "same.img"], "no variance"),
    "other bands without wavelengths": (["-target", "short.csv"], "no wavelengths"),
    "nothing in common": (["-target", "far.csv"], "fewer than 2 bands"),
    "an infinite number in the library": (["-target", "infinite.csv"], "t2"),
    "a dark target": (["-method", "sam", "-target", "dark.csv"], "'t2' is all zero"),
    "a target that is nowhere positive": (["-method", "sid", "-target", "dark.csv"], "'t2' has no positive value"),
    "no such library": (["-target", "missing.csv"], "missing.csv"),
    "mask of another size": (["-background", "small.tif"], "small.tif"),
    "no valid pixel": (["nothing.img"], "no pixel is valid"),
    "nothing positive": (["-method", "sid", "-target-pixel", 0, 0, "negative.img"], "no positive value"),
    "an old dst": (["-target", "library.csv", "scene.img", "old.tif"], "old.tif"),
}


@pytest.mark.parametrize("what", BAD)
def test_data_that_cannot_be_used(what, files, monkeypatch):
    monkeypatch.chdir(files)
    rows = spectra(read("scene.img"))
    write_library(files / "short.csv", rows[:, :7], None)
    write_library(files / "far.csv", rows, [3000 + 10 * b for b in range(12)])
    write_library(files / "infinite.csv", np.where(rows == rows[1, 4], np.inf, rows))
    write_library(files / "dark.csv", [rows[0], np.zeros(12)])
    none = np.zeros((1, 30, 40), np.uint8)
    one, same = none.copy(), none.copy()
    one[0, 3, 3] = 1
    same[0, :4] = 1
    for name, mask in ("none", none), ("one", one), ("same", same):
        write_scene(name + ".tif", mask, driver="GTiff", dtype="u1")
    write_scene("small.tif", none[:, :5], driver="GTiff", dtype="u1", geotransform=None, epsg=None)
    scene = read("scene.img")
    scene[:, :4] = 3
    write_scene("same.img", scene)
    write_scene("nothing.img", np.full((12, 4, 4), np.nan))
    write_scene("negative.img", np.full((12, 4, 4), -1.0))
    (files / "old.tif").write_text("old")
    args, text = BAD[what]
    names = [a for a in args if str(a).endswith(".img")]
    args = [a for a in args if a not in names and a != "old.tif"]
    with assert_untouched(files):
        result = detect(*args, names[0] if names else "scene.img", "old.tif" if what == "an old dst" else "d.tif")
    assert result.code == 1 or (what == "an old dst" and result.code in (1, 2)), result.err
    assert text in first_error(result), result.err


def test_jasper_ridge(tmp_path):
    """Uses a real scene with the library of its endmembers: water, road, trees and soil must be found where they are
    abundant."""
    scene, library = real_scene("jasper_ridge/jasper_ridge.img"), real_scene("jasper_ridge/references.sli")
    truth = read(real_scene("jasper_ridge/abundances.tif"))
    x = read(scene)
    names = gdal.Open(str(real_scene("jasper_ridge/abundances.tif")))
    succeed(detect("-q", "-method", "rx", scene, tmp_path / "rx.tif"))
    assert close("rx", read(tmp_path / "rx.tif"), reference(x, [], "rx"))
    result = detect("-q", "-method", "ace", "-target", library, "-library-scale", 5300, scene, tmp_path / "ace.tif")
    succeed(result)
    scores = read(tmp_path / "ace.tif")
    assert scores.shape == truth.shape and names.RasterCount == 4
    for k in range(4):
        pure = truth[k] > 0.9
        assert np.nanmedian(scores[k][pure]) > np.nanmedian(scores[k][~pure]), k


def test_common_targets_of_jasper_ridge(tmp_path):
    """The table of docs/backgrounds.md: materials that are common have many pixels with a small angle, but few with a high
    ACE; a background without the material helps."""
    scene, library = real_scene("jasper_ridge/jasper_ridge.img"), real_scene("jasper_ridge/references.sli")
    truth = read(real_scene("jasper_ridge/abundances.tif"))
    rows = []

    def found(scores, target):
        """Returns the number of pixels above half of the best score, and Pd at a Pfa of 0.001."""
        return [int((scores > scores.max() / 2).sum()), f"{(scores[target] > np.quantile(scores[~target], 0.999)).mean():.2f}"]

    for k, name in enumerate(("tree", "water", "dirt", "road")):
        words = ("-q", "-overwrite", "-target", library, "-spectrum", f"{k + 1}-{name}")
        succeed(detect(*words, "-method", "sam", scene, tmp_path / "sam.tif"))
        angle = read(tmp_path / "sam.tif")[0]
        write_scene(tmp_path / "bg.tif", (angle > 0.3)[None].astype("u1"), "GTiff", "u1", geotransform=None, epsg=None)
        ace = []
        for more in ((), ("-background", tmp_path / "bg.tif")):
            succeed(detect(*words, *more, "-method", "ace", "-library-scale", 10000, scene, tmp_path / "ace.tif"))
            ace.append(read(tmp_path / "ace.tif")[0])
        rows.append([name, int((angle < 0.1).sum()), f"{ace[0].max():.2f}"] + [v for one in ace for v in found(one, truth[k] > 0.7)])
    page = (ROOT / "docs" / "backgrounds.md").read_text()
    for row in rows:
        assert "| " + " | ".join(map(str, row)) + " |" in page, rows


@pytest.mark.parametrize("name", ["indian_pines/indian_pines.img", "pavia_centre/pavia_centre.img"])
def test_real_scenes_keep_their_least_eigenvalues(name, tmp_path):
    """Neighbouring bands are nearly equal, but statistics and factors in double precision stay within the tolerance."""
    scene = real_scene(name)
    x = read(scene)
    targets = [x[:, 20, 30], x[:, 60, 70]]
    for method in ("rx", "mf", "ace", "cem"):
        pixels = [] if method == "rx" else ["-target-pixel", 20, 30, "-target-pixel", 60, 70]
        succeed(detect("-q", "-method", method, *pixels, scene, tmp_path / (method + ".tif")))
        assert close(method, read(tmp_path / (method + ".tif")), reference(x, targets, method)), method
