# SPDX-License-Identifier: MIT
"""gdal_hsi_detect with a separate background for every group of pixels (columns of a scanner, classes of a map), with
shrinkage on bands of unit variance, excluded pixels, and absorptions as targets, compared with numpy."""

import json
import os
import shutil
import subprocess

import numpy as np
import pytest
from osgeo import gdal

from conftest import BIN, PLUGINS, assert_untouched, first_error, read, run, succeed, write_scene

METHODS = ["mf", "cem", "ace", "rx"]
LINES, SAMPLES, BANDS = 40, 21, 12
WAVELENGTHS = [2000 + 20 * b for b in range(BANDS)]


def striped(lines=LINES, samples=SAMPLES, bands=BANDS, seed=5):
    """Makes mixtures of four spectra, read by detectors whose gains and offsets differ; two pixels are bad."""
    random = np.random.default_rng(seed)
    spectra = 200 + np.abs(np.cumsum(random.normal(0, 25, (4, bands)), axis=1))
    data = random.dirichlet(np.ones(4), (lines, samples)) @ spectra + random.normal(0, 1, (lines, samples, bands))
    data = data * random.normal(1, 0.05, (samples, bands)) + random.normal(0, 8, (samples, bands))
    if lines > 9 and samples > 6:
        data[3, 5] = np.nan
        data[9, 6] = 0
    return np.moveaxis(data, 2, 0).astype(np.float32)


def write_library(path, rows, wavelengths=WAVELENGTHS):
    lines = [",".join(["wavelength_nm"] + ["t%d" % (k + 1) for k in range(len(rows))])]
    lines += [",".join(["%g" % w] + ["%.17g" % row[b] for row in rows]) for b, w in enumerate(wavelengths)]
    path.write_text("\n".join(lines) + "\n")
    return path


def class_map():
    """Makes patches of classes 1, 4 and 9, and pixels without a class."""
    classes = np.zeros((1, LINES, SAMPLES))
    classes[0, :, :8], classes[0, :25, 8:], classes[0, 25:, 8:] = 4, 9, 1
    classes[0, 10:14, 3:12] = 9
    classes[0, :2, 10:] = 0
    return classes


@pytest.fixture
def files(tmp_path):
    data = striped()
    write_scene(tmp_path / "scene.img", data, wavelengths=WAVELENGTHS, geotransform=None, epsg=None)
    write_library(tmp_path / "library.csv", targets_of(data))
    write_scene(tmp_path / "classes.tif", class_map(), driver="GTiff", dtype="u1", geotransform=None, epsg=None)
    inside = np.ones((1, LINES, SAMPLES))
    inside[0, ::5, :] = 0
    write_scene(tmp_path / "mask.tif", inside, driver="GTiff", dtype="u1", geotransform=None, epsg=None)
    return tmp_path


def targets_of(data):
    x = np.moveaxis(data.astype(float), 0, 2)
    return [x[20, 10] * 1.2, x[7, 2] + np.linspace(-30, 40, x.shape[2])]


def detect(folder, *options, name="scene.img", out="d.tif"):
    return succeed(run("gdal_hsi_detect", "-overwrite", *options, "-report", folder / "r.json", folder / name, folder / out))


def share_of(z):
    """Returns Ledoit and Wolf's share of rows on bands of unit variance, by definition."""
    n, bands = z.shape
    p = z.T @ z / n
    delta = ((p - np.eye(bands)) ** 2).sum() / bands
    beta = sum(((np.outer(row, row) - p) ** 2).sum() for row in z) / (bands * n * n)
    return min(beta, delta) / delta if delta > 0 else 1.0


def one_group(x, inside, method, targets, shrinkage, exclude=0.0, rounds=1, absorption=False):
    """Returns (scores (targets, pixels), share) of pixels (pixels, bands), against those that are `inside`."""
    kept, share = np.flatnonzero(inside), 0.0
    count = len(kept)
    for again in range(rounds + 1 if exclude else 1):
        background = x[kept]
        used = np.ones(x.shape[1], bool) if method == "cem" else background.std(axis=0) > 0
        b = background[:, used]
        centre = np.zeros(used.sum()) if method == "cem" else b.mean(axis=0)
        matrix = (b - centre).T @ (b - centre) / (len(b) - (method != "cem"))
        rms = np.sqrt(((b - centre) ** 2).mean(axis=0))
        share = {"ledoit-wolf": lambda: share_of((b - centre) / rms), "none": lambda: 0.0}.get(shrinkage, lambda: float(shrinkage))()
        matrix = (1 - share) * matrix + share * np.diag(np.diag(matrix))
        if (share == 0 and len(b) <= used.sum()) or np.linalg.eigvalsh(matrix)[0] < 1e-10 * np.trace(matrix) / used.sum():
            matrix = matrix + 1e-6 * np.trace(matrix) / used.sum() * np.eye(used.sum())
        d = x[:, used] - centre
        rx = (d * np.linalg.solve(matrix, d.T).T).sum(axis=1)
        scores = []
        for t in targets if method != "rx" else [None]:
            if method == "rx":
                scores.append(rx)
                continue
            z = centre * t[used] if absorption else t[used] - centre
            w = np.linalg.solve(matrix, z)
            along, contrast = d @ w, z @ w
            scores.append(along * abs(along) / (contrast * rx) if method == "ace" else along / contrast)
        scores = np.array(scores)
        if exclude and again < rounds:
            candidates = np.flatnonzero(inside)
            best = scores[:, candidates].max(axis=0)
            leave = np.argsort(-best, kind="stable")[:int(np.floor(exclude * count + 1e-9))]
            kept = np.delete(candidates, leave)
    return scores, share


def reference(data, keys, method, targets, shrinkage="ledoit-wolf", inside=None, **more):
    """Returns scores (targets, lines, samples), and the shares of the groups. keys: group of every pixel, 0 without a
    group."""
    x = np.moveaxis(data.astype(float), 0, 2)
    valid = np.isfinite(x).all(axis=2) & (x != 0).any(axis=2)
    scores, shares = np.full((1 if method == "rx" else len(targets), *valid.shape), np.nan), []
    for key in np.unique(keys[keys > 0]):
        of_group = valid & (keys == key)
        background = of_group if inside is None else of_group & inside
        scores[:, of_group], share = one_group(x[of_group], background[of_group], method, targets, shrinkage, **more)
        shares.append(share)
    return scores, shares


def column_keys(width=1, first=0, lines=LINES, samples=SAMPLES):
    return np.tile((np.arange(samples) + first) // width + 1, (lines, 1))


def close(method, got, want, exclusion=False):
    if exclusion:
        limit = 1e-3 * (1 + abs(want))
    else:
        limit = 2e-4 * abs(want) + (0 if method == "rx" else 1e-4)
    return np.array_equal(np.isnan(got), np.isnan(want)) and (np.isnan(want) | (abs(got - want) <= limit)).all()


def target_option(folder, method):
    return [] if method == "rx" else ["-target", folder / "library.csv"]


@pytest.mark.parametrize("shrinkage", [None, "ledoit-wolf", "0.3", "none"])
@pytest.mark.parametrize("method", METHODS)
def test_columns_are_the_method_on_each_group(method, shrinkage, files):
    width = 1 if shrinkage is None else 4
    result = detect(files, "-method", method, *target_option(files, method), "-background-by", "columns", "-columns-per-group", width,
                    *(["-shrinkage", shrinkage] if shrinkage else []))
    data = read(files / "scene.img")
    want, shares = reference(data, column_keys(width), method, targets_of(data), shrinkage or "ledoit-wolf")
    assert close(method, read(files / "d.tif"), want)
    report = json.loads((files / "r.json").read_text())["background"]
    assert report["groups"] == report["groups_with_scores"] == -(-SAMPLES // width) and report["columns_per_group"] == width
    assert report["least_pixels"] == LINES - (width == 1)  # two pixels are bad; the last group has one column
    assert report["median_shrinkage"] == pytest.approx(sorted(shares)[len(shares) // 2], rel=1e-5, abs=1e-12)
    dataset = gdal.Open(str(files / "d.tif"))
    assert dataset.GetMetadataItem("HSI_DETECT_BACKGROUND") == f"columns {width}"
    assert dataset.GetMetadataItem("HSI_DETECT_SHRINKAGE") == (shrinkage or "ledoit-wolf")
    assert f"Background: {-(-SAMPLES // width)} groups" in result.out and result.err == ""


@pytest.mark.parametrize("shrinkage", [None, "0.3", "none"])
@pytest.mark.parametrize("method", METHODS)
def test_classes_are_the_method_on_each_group(method, shrinkage, files):
    detect(files, "-method", method, *target_option(files, method), "-background-by", files / "classes.tif",
           *(["-shrinkage", shrinkage] if shrinkage else []))
    data = read(files / "scene.img")
    want, shares = reference(data, class_map()[0], method, targets_of(data), shrinkage or "ledoit-wolf")
    assert close(method, read(files / "d.tif"), want)
    report = json.loads((files / "r.json").read_text())
    assert report["background"]["groups"] == 3 and report["background"]["pixels_without_group"] == 22
    assert report["background"]["median_shrinkage"] == pytest.approx(sorted(shares)[1], rel=1e-6, abs=1e-12)
    assert report["background_map"]["classes"] == [1, 4, 9]
    assert gdal.Open(str(files / "d.tif")).GetMetadataItem("HSI_DETECT_BACKGROUND").endswith("classes.tif")


@pytest.mark.parametrize("method", METHODS)
def test_a_group_is_the_method_run_on_it_alone(method, files):
    options = ["-method", method, *target_option(files, method), "-shrinkage"]
    for width, first in ((1, 8), (3, 9)):
        for shrinkage, alone in (("ledoit-wolf", "ledoit-wolf"), ("0.2", "bands:0.2"), ("none", "none")):
            detect(files, *options, shrinkage, "-background-by", "columns", "-columns-per-group", width)
            detect(files, *options, alone, "-srcwin", first, 0, width, LINES, out="alone.tif")
            got, want = read(files / "d.tif")[:, :, first:first + width], read(files / "alone.tif")
            assert close(method, got, want), (width, shrinkage)
    data = read(files / "scene.img")
    for key in (1, 4, 9):
        only = np.where(class_map() == key, data, np.nan)
        write_scene(files / "only.img", only, wavelengths=WAVELENGTHS, geotransform=None, epsg=None)
        detect(files, *options, "ledoit-wolf", out="alone.tif", name="only.img")
        detect(files, *options, "ledoit-wolf", "-background-by", files / "classes.tif")
        assert close(method, np.where(class_map() == key, read(files / "d.tif"), np.nan), read(files / "alone.tif"))


@pytest.mark.parametrize("width,first", [(4, 5), (4, 8), (1, 3), (100, 2), (19, 2)])
def test_columns_count_in_the_file(width, first, files):
    detect(files, "-method", "mf", *target_option(files, "mf"), "-background-by", "columns", "-columns-per-group", width,
           "-srcwin", first, 4, 13, 30, "-tile", 1, 1)
    data = read(files / "scene.img")[:, 4:34, first:first + 13]
    want, _ = reference(data, column_keys(width, first, 30, 13), "mf", targets_of(read(files / "scene.img")))
    assert close("mf", read(files / "d.tif"), want)
    assert json.loads((files / "r.json").read_text())["background"]["groups"] == (first + 12) // width - first // width + 1


@pytest.mark.parametrize("by", ["columns", "classes.tif"])
@pytest.mark.parametrize("method", METHODS)
def test_a_mask_is_the_background_of_every_group(method, by, files):
    by_columns = by == "columns"
    detect(files, "-method", method, *target_option(files, method), "-background-by", by if by_columns else files / by,
           "-background", files / "mask.tif")
    data, inside = read(files / "scene.img"), read(files / "mask.tif")[0] > 0
    keys = column_keys() if by_columns else class_map()[0]
    want, _ = reference(data, keys, method, targets_of(data), inside=inside)
    assert close(method, read(files / "d.tif"), want)
    detect(files, "-method", method, *target_option(files, method), "-background-by", by if by_columns else files / by,
           "-mask", files / "mask.tif", out="masked.tif")
    assert np.array_equal(read(files / "masked.tif"), read(files / "d.tif"), equal_nan=True)


@pytest.mark.parametrize("by", [None, "columns", "classes.tif"])
@pytest.mark.parametrize("method,rounds", [("mf", 1), ("mf", 3), ("ace", 1), ("cem", 2), ("rx", 2)])
def test_the_greatest_scores_leave_the_statistics(method, rounds, by, files):
    options = [] if by is None else ["-background-by", by if by == "columns" else files / by]
    detect(files, "-method", method, *target_option(files, method), *options, "-exclude-share", 0.07, "-exclude-iterations", rounds,
           "-shrinkage", "ledoit-wolf")
    data = read(files / "scene.img")
    keys = np.ones((LINES, SAMPLES)) if by is None else column_keys() if by == "columns" else class_map()[0]
    want, _ = reference(data, keys, method, targets_of(data), exclude=0.07, rounds=rounds)
    without, _ = reference(data, keys, method, targets_of(data))
    assert close(method, read(files / "d.tif"), want, True) and not close(method, want, without, True)
    report = json.loads((files / "r.json").read_text())
    groups = [np.count_nonzero((keys == key) & ~np.isnan(want[0])) for key in np.unique(keys[keys > 0])]
    assert (report if by is None else report["background"])["excluded_pixels"] == sum(n * 7 // 100 for n in groups)
    assert gdal.Open(str(files / "d.tif")).GetMetadataItem("HSI_DETECT_EXCLUDED_SHARE") == "0.07"


@pytest.mark.parametrize("options", [["-shrinkage", "auto"], ["-nc", "5"], [], ["-shrinkage", "0.2"]])
def test_exclusion_of_one_background_goes_with_what_it_had(options, files):
    """The excluded pixels are those with the greatest scores without exclusion; a -background of the others gives the
    same result."""
    base = ["-method", "mf", "-target", write_library(files / "one.csv", targets_of(read(files / "scene.img"))[:1]), *options]
    detect(files, *base)
    scores = read(files / "d.tif")[0]
    order = np.argsort(np.where(np.isnan(scores), np.inf, -scores), axis=None, kind="stable")
    inside = np.ones(LINES * SAMPLES)
    inside[order[:41]] = 0  # 0.05 of 838
    write_scene(files / "others.tif", inside.reshape(1, LINES, SAMPLES), driver="GTiff", dtype="u1", geotransform=None, epsg=None)
    detect(files, *base, "-background", files / "others.tif", out="others_d.tif")
    detect(files, *base, "-exclude-share", 0.05)
    assert np.array_equal(read(files / "d.tif"), read(files / "others_d.tif"), equal_nan=True)


def plume_scene(lines=300, samples=24, bands=30, seed=3):
    """Makes a striped scene of radiance with a gas of known amount in a part of it: (data, amounts, absorption)."""
    random = np.random.default_rng(seed)
    spectra = 60 + np.abs(np.cumsum(random.normal(0, 6, (5, bands)), axis=1))
    data = random.dirichlet(np.ones(5) * 3, (lines, samples)) @ spectra
    amounts = np.zeros((lines, samples))
    amounts[140:150, 4:20] = 250.0
    absorption = -2e-4 * np.exp(-0.5 * ((np.arange(bands) - 17) / 3) ** 2) * (1.3 + np.sin(np.arange(bands) * 1.7))
    data = data * (1 + amounts[:, :, None] * absorption)
    data = data * random.normal(1, 0.02, (samples, bands)) + random.normal(0, 0.02, (lines, samples, bands))
    return np.moveaxis(data, 2, 0).astype(np.float32), amounts, absorption


def test_a_plume_in_a_striped_scene(tmp_path):
    data, amounts, absorption = plume_scene()
    wavelengths = [2100 + 10 * b for b in range(30)]
    write_scene(tmp_path / "scene.img", data, wavelengths=wavelengths, geotransform=None, epsg=None)
    write_library(tmp_path / "gas.csv", [absorption * 1000], wavelengths)
    base = ["-method", "mf", "-target", tmp_path / "gas.csv", "-library-scale", 0.001, "-target-is-absorption"]
    columns = ["-background-by", "columns"]
    result = detect(tmp_path, *base, *columns)
    assert result.err == ""  # without a warning about units
    got = read(tmp_path / "d.tif")[0]
    want, _ = reference(data, column_keys(1, 0, 300, 24), "mf", [absorption], absorption=True)
    assert close("mf", got, want[0])
    # The plume is detected, slightly weakened by its own background; stripes are not.
    assert 200 < got[amounts > 0].mean() < 251 and abs(got[amounts == 0].mean()) < 12
    detect(tmp_path, *base, out="whole.tif")
    whole = read(tmp_path / "whole.tif")[0]
    quiet = amounts == 0
    # Another gain of each detector changes nothing here, but much with one background.
    random = np.random.default_rng(8)
    again = data * random.normal(1, 0.02, (30, 1, 24))
    write_scene(tmp_path / "again.img", again.astype(np.float32), wavelengths=wavelengths, geotransform=None, epsg=None)
    quiet = amounts == 0
    detect(tmp_path, *base, *columns, name="again.img", out="again.tif")
    changed = abs(read(tmp_path / "again.tif")[0] - got).max()
    detect(tmp_path, *base, name="again.img", out="again.tif")
    assert changed < 0.01 and abs(read(tmp_path / "again.tif")[0] - whole).max() > 5
    detect(tmp_path, *base, *columns, "-exclude-share", 0.05)
    assert got[~quiet].mean() < read(tmp_path / "d.tif")[0][~quiet].mean() < 260


@pytest.mark.parametrize("method", ["mf", "ace"])
def test_absorption_in_one_background_and_in_a_vrt(method, files):
    data = read(files / "scene.img")
    k = -1e-5 * (1 + np.cos(np.arange(BANDS)))
    write_library(files / "gas.csv", [k])
    detect(files, "-method", method, "-target", files / "gas.csv", "-target-is-absorption")
    want, _ = reference(data, np.ones((LINES, SAMPLES)), method, [k], "none", absorption=True)
    limit = 1e-5 if method == "ace" else 1e-4 * (1 + abs(want))
    assert (np.isnan(want) | (abs(read(files / "d.tif") - want) <= limit)).all()
    os.environ["GDAL_DRIVER_PATH"] = str(PLUGINS)
    succeed(run("gdal_hsi_detect", "-of", "VRT", "-method", method, "-target", files / "gas.csv", "-target-is-absorption",
                files / "scene.img", files / "d.vrt"))


def test_closed_forms(tmp_path):
    """mf of m (1 + a k) is a, of the target 1 and of the mean 0, in every group; constant bands have no effect."""
    data = striped(60, 6, 10)
    data[4] = 3
    data[:, 3, 5], data[:, 9, 5] = data[:, 4, 5], data[:, 10, 5]
    k = -0.01 * (1 + np.arange(10) % 3) * (np.arange(10) != 4)
    groups = np.tile(np.arange(6) // 2, (60, 1))
    inside = np.ones((1, 60, 6))
    x = data.astype(float)
    for g in range(3):
        mean = x[:, 1:, 2 * g:2 * g + 2].reshape(10, -1).mean(axis=1)
        data[:, 0, 2 * g] = mean * (1 + 7 * k)
        data[:, 0, 2 * g + 1] = mean
    inside[0, 0] = 0
    write_scene(tmp_path / "scene.img", data, geotransform=None, epsg=None)
    write_scene(tmp_path / "mask.tif", inside, driver="GTiff", dtype="u1", geotransform=None, epsg=None)
    (tmp_path / "gas.csv").write_text("band,gas\n" + "".join(f"{b + 1},{k[b]:.17g}\n" for b in range(10)))
    detect(tmp_path, "-method", "mf", "-target", tmp_path / "gas.csv", "-target-is-absorption", "-background-by", "columns",
           "-columns-per-group", 2, "-background", tmp_path / "mask.tif")
    got = read(tmp_path / "d.tif")[0]
    for g in range(3):
        assert got[0, 2 * g] == pytest.approx(7, abs=2e-3) and got[0, 2 * g + 1] == pytest.approx(0, abs=2e-3)
    # Without shrinkage, rx of n pixels has the mean (n - 1) B / n.
    detect(tmp_path, "-method", "rx", "-shrinkage", "none", "-background-by", "columns", "-columns-per-group", 2)
    for g in range(3):
        assert read(tmp_path / "d.tif")[0][groups == g].mean() == pytest.approx(9 * 119 / 120, rel=1e-5)
    # A single group in a raster of classes, and columns that include all samples, equal one background.
    write_scene(tmp_path / "one.tif", np.full((1, 60, 6), 7), driver="GTiff", dtype="u1", geotransform=None, epsg=None)
    results = []
    for options in (["-background-by", tmp_path / "one.tif"], ["-background-by", "columns", "-columns-per-group", 6],
                    ["-shrinkage", "ledoit-wolf"]):
        detect(tmp_path, "-method", "rx", *options)
        results.append(read(tmp_path / "d.tif"))
    assert np.allclose(results[0], results[1], rtol=1e-5) and np.allclose(results[0], results[2], rtol=1e-5)


@pytest.mark.parametrize("method", ["mf", "ace", "rx"])
@pytest.mark.parametrize("by", ["columns", "classes"])
def test_neither_tiles_threads_memory_nor_ranks_change_a_bit(by, method, tmp_path):
    data = striped(600, 70, 9)
    write_scene(tmp_path / "scene.img", data, geotransform=None, epsg=None)
    gdal.Translate(str(tmp_path / "tiled.tif"), str(tmp_path / "scene.img"), creationOptions=["TILED=YES", "COMPRESS=DEFLATE"])
    classes = (np.arange(600)[:, None] // 7 + np.arange(70)[None, :] // 5) % 6
    write_scene(tmp_path / "classes.tif", classes[None], driver="GTiff", dtype="u1", geotransform=None, epsg=None)
    (tmp_path / "t.csv").write_text("band,t\n" + "".join(f"{b + 1},{300 + 9 * b}\n" for b in range(9)))
    base = ["-q", "-method", method, *([] if method == "rx" else ["-target", tmp_path / "t.csv"]), "-exclude-share", 0.05,
            *(["-background-by", "columns", "-columns-per-group", 3, "-srcwin", 1, 0, 69, 600] if by == "columns"
              else ["-background-by", tmp_path / "classes.tif"])]
    bits = lambda: gdal.Open(str(tmp_path / "d.tif")).ReadAsArray().tobytes()
    detect(tmp_path, *base)
    want = bits()
    for further in (["-threads", 1], ["-threads", 3, "-tile", 8, 8], ["-tile", 40, 100], ["-memory", "12MB"], ["-tile", 64, 600]):
        detect(tmp_path, *base, *further)
        assert bits() == want, further
    detect(tmp_path, *base, name="tiled.tif")
    assert bits() == want
    if shutil.which("mpirun") and (BIN.parent / "lib/hsi/hsi_mpi.so").exists():
        for ranks in (2, 3):
            subprocess.run(["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(ranks),
                            *map(str, [BIN / "gdal_hsi_detect", *base, "-overwrite", "-tile", 16, 16, "-report", tmp_path / "r.json",
                                       tmp_path / "scene.img", tmp_path / "d.tif"])], check=True, capture_output=True)
            assert bits() == want, ranks
            report = json.loads((tmp_path / "r.json").read_text())["background"]
            assert report["groups"] == report["groups_with_scores"] == (24 if by == "columns" else 5)


def test_maps_and_thresholds(files):
    base = ["-method", "mf", *target_option(files, "mf"), "-background-by", "columns", "-map", files / "map.tif"]
    detect(files, *base, "-threshold", 0.4)
    scores, best = read(files / "d.tif"), gdal.Open(str(files / "map.tif")).ReadAsArray()
    filled = np.nan_to_num(scores, nan=-9)
    assert np.array_equal(best, np.where(filled.max(axis=0) >= 0.4, filled.argmax(axis=0) + 1, 0))
    detect(files, *base, "-threshold", "95%")
    threshold = json.loads((files / "r.json").read_text())["threshold"]["value"]
    assert threshold == pytest.approx(np.sort(scores.max(axis=0)[~np.isnan(scores[0])])[-41], rel=1e-6)
    assert (gdal.Open(str(files / "map.tif")).ReadAsArray() > 0).sum() == 41
    detect(files, *base, "-background", files / "mask.tif", "-false-alarms", 0.01)
    assert json.loads((files / "r.json").read_text())["threshold"]["pixels"] == read(files / "mask.tif").sum() - 2


def test_groups_without_a_background(tmp_path):
    data = striped(30, 8, 6, seed=9)
    data[:, :, 2] = 5                # without variance
    data[:, 1:, 4] = np.nan          # one pixel
    data[:, 10:12, 6] = np.nan
    mean = data[:, :, 7].astype(float).mean(axis=1)
    data[:, :, 7] = (data[:, :1, 7] + [[0, 1] * 15])  # its mean is exact
    mean = data[:, :, 7].astype(float).mean(axis=1)
    write_scene(tmp_path / "scene.img", data, geotransform=None, epsg=None)
    (tmp_path / "t.csv").write_text("band,t\n" + "".join(f"{b + 1},{mean[b]:.17g}\n" for b in range(6)))
    base = ["-method", "mf", "-target", tmp_path / "t.csv", "-background-by"]
    classes = np.tile(np.arange(1, 9), (1, 30, 1))
    write_scene(tmp_path / "classes.tif", classes, driver="GTiff", dtype="u1", geotransform=None, epsg=None)
    for by in ("columns", tmp_path / "classes.tif"):
        result = detect(tmp_path, *base, by)
        got, report = read(tmp_path / "d.tif")[0], json.loads((tmp_path / "r.json").read_text())["background"]
        assert "3 groups have no background (1 with fewer than 2 background pixels, 1 without variance, 1 with a mean that equals a target)" in result.err
        assert np.isnan(got[:, [2, 4, 7]]).all() and np.isfinite(got[:, [0, 1, 3]]).all() and np.isnan(got[:, 5]).sum() == 1 and np.isnan(got[10:12, 6]).all()
        assert report["groups"] == 8 and report["groups_with_scores"] == 5 and report["pixels_without_background"] == 61
    with assert_untouched(tmp_path):
        refused = run("gdal_hsi_detect", *base, "columns", "-srcwin", 2, 0, 1, 30, tmp_path / "scene.img", tmp_path / "none.tif")
    assert refused.code == 1 and "ERROR: -background-by: no group has a background" in refused.err


def test_few_pixels_and_maps_are_told(files):
    short = ["-method", "rx", "-background-by", "columns", "-shrinkage", "none", "-srcwin", 0, 0, 6]
    result = detect(files, *short, 10)
    assert "in 6 groups, the pixels do not span the bands" in result.err and "ledoit-wolf" in result.err
    want, _ = reference(read(files / "scene.img")[:, :10, :6], column_keys(1, 0, 10, 6), "rx", [], "none")
    assert (np.isnan(want) | (abs(read(files / "d.tif") - want) <= 2e-4 * want)).all()
    result = detect(files, *short, 20)
    assert "the smallest group has 19 background pixels for 12 bands" in result.err
    for gt, srs, word in (((5e5, 20, 0, 4e6, 0, -20), 32616, "the grid of a map"), ((5, 2, 0.5, 4, 0.5, -2), None, "a rotated grid")):
        write_scene(files / "map.img", striped(), geotransform=gt, epsg=srs)
        result = detect(files, "-method", "rx", "-background-by", "columns", name="map.img")
        assert word in result.err and "columns" in result.err


def test_lost_bands(files):
    data = read(files / "scene.img")
    data[5] = np.nan
    write_scene(files / "lost.img", data, wavelengths=WAVELENGTHS, geotransform=None, epsg=None)
    for by, keys in (("columns", column_keys()), (files / "classes.tif", class_map()[0])):
        result = detect(files, "-method", "mf", *target_option(files, "mf"), "-background-by", by, name="lost.img")
        assert "no valid value in band 6" in result.err
        full = read(files / "scene.img")
        others = np.arange(BANDS) != 5
        want, _ = reference(data[others], keys, "mf", [t[others] for t in targets_of(full)])
        assert close("mf", read(files / "d.tif"), want)


def test_a_plan_says_what_the_run_does(files):
    for by in ("columns", files / "classes.tif"):
        with assert_untouched(files):
            plan = succeed(run("gdal_hsi_detect", "-dry-run", "-method", "rx", "-background-by", by, files / "scene.img", files / "p.tif"))
        assert "Pass detection" in plan.out
    whole = succeed(run("gdal_hsi_detect", "-dry-run", "-method", "rx", "-shrinkage", "ledoit-wolf", "-exclude-share", 0.1,
                        files / "scene.img", files / "p.tif"))
    assert all(f"Pass {name}" in whole.out for name in ("background", "shrinkage", "exclusion", "detection"))


MF = ["-method", "mf", "-target", "LIBRARY"]
RX_COLUMNS = ["-method", "rx", "-background-by", "columns"]


@pytest.mark.parametrize("options,code,words", [
    (["-method", "sam", "-target", "LIBRARY", "-background-by", "columns"], 2, "cannot be used with -method sam"),
    (["-method", "sid", "-target", "LIBRARY", "-exclude-share", "0.1"], 2, "cannot be used with -method sid"),
    (["-window", "3", "7", "-background-by", "columns"], 2, "cannot be used with -window"),
    (["-window", "3", "7", "-exclude-share", "0.1"], 2, "cannot be used with -window"),
    (["-method", "rx", "-columns-per-group", "2"], 2, " requires -"),
    (["-method", "rx", "-background-by", "CLASSES", "-columns-per-group", "2"], 2, " requires -"),
    ([*RX_COLUMNS, "-columns-per-group", "0"], 2, "from 1 on"),
    (["-method", "rx", "-exclude-share", "0.5"], 2, "below 0.5"),
    (["-method", "rx", "-exclude-share", "-0.1"], 2, "below 0.5"),
    (["-method", "rx", "-exclude-iterations", "2"], 2, " requires -"),
    (["-method", "rx", "-exclude-share", "0.1", "-exclude-iterations", "0"], 2, "from 1 on"),
    ([*RX_COLUMNS, "-nc", "3"], 2, "-nc cannot be used with"),
    ([*RX_COLUMNS, "-shrinkage", "auto"], 2, "cannot be used with -background-by"),
    ([*RX_COLUMNS, "-shrinkage", "1.5"], 2, "from 0 to 1"),
    (["-method", "rx", "-shrinkage", "bands:2"], 2, "from 0 to 1"),
    (["-method", "rx", "-shrinkage", "bands:auto"], 2, "from 0 to 1"),
    ([*RX_COLUMNS, "-of", "VRT"], 2, "-of VRT"),
    ([*MF, "-of", "VRT", "-background-by", "columns"], 2, "cannot be used with -background-by"),
    ([*RX_COLUMNS, "-map", "MAP", "-false-alarms", "0.1"], 2, "requires -background"),
    (["-method", "rx", "-exclude-share", "0.1", "-map", "MAP", "-false-alarms", "0.1"], 2, "requires -background"),
    (["-method", "cem", "-target", "LIBRARY", "-target-is-absorption"], 2, "requires -method mf or ace"),
    (["-method", "mf", "-target-pixel", "1", "1", "-target-is-absorption"], 2, "-target-is-absorption requires -target"),
    (["-method", "rx", "-background-by", "missing.tif"], 1, "missing.tif"),
    (["-method", "rx", "-background-by", "EMPTY"], 1, "no pixel of the scene has a class"),
    ([*RX_COLUMNS, "-memory", "1KB"], 1, "-memory"),
])
def test_bad_input(options, code, words, files):
    write_scene(files / "empty.tif", np.zeros((1, LINES, SAMPLES)), driver="GTiff", dtype="u1", geotransform=None, epsg=None)
    names = {"LIBRARY": "library.csv", "CLASSES": "classes.tif", "EMPTY": "empty.tif", "MAP": "map.tif"}
    options = [files / names[o] if o in names else o for o in options]
    with assert_untouched(files):
        refused = run("gdal_hsi_detect", *options, files / "scene.img", files / "bad.tif")
    assert refused.code == code and words in refused.err and refused.err.startswith("ERROR: "), refused.err


def test_absorption_of_nothing(files):
    write_library(files / "none.csv", [np.zeros(BANDS)])
    with assert_untouched(files):
        refused = run("gdal_hsi_detect", "-method", "mf", "-target", files / "none.csv", "-target-is-absorption", files / "scene.img",
                      files / "bad.tif")
    assert refused.code == 1 and "absorbs nothing" in first_error(refused)
