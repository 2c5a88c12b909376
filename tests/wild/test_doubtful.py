# SPDX-License-Identifier: MIT
"""Results that are computed as requested but may be meaningless: each warning appears for an input that deserves it,
and is absent for an input that does not."""

import json

import numpy as np
import pytest

from conftest import UTM, read, run, succeed, write_scene


def noise(lines, samples, bands, seed=1):
    """Returns (bands, lines, samples): normal numbers whose bands are mixed."""
    random = np.random.default_rng(seed)
    mixing = np.eye(bands) + 0.3 * random.normal(0, 1, (bands, bands)) / np.sqrt(bands)
    return np.moveaxis(100 + random.normal(0, 1, (lines, samples, bands)) @ mixing, 2, 0)


def detect(tmp_path, shape, *options):
    scene = tmp_path / "scene.img"
    write_scene(scene, noise(*shape))
    result = succeed(run("gdal_hsi_detect", "-overwrite", "-device", "cpu", "-report", tmp_path / "r.json", *options, scene,
                         tmp_path / "d.tif"))
    report = json.loads((tmp_path / "r.json").read_text())
    return result.err, report["background"], report["warnings"]


TARGET = ("-target-pixel", 1, 1)


@pytest.mark.parametrize("method", ["rx", "ace", "mf", "cem"])
def test_scores_of_a_background_of_few_pixels(tmp_path, method):
    options = ["-method", method] + (list(TARGET) if method != "rx" else [])
    for shape, pixels, words in [((5, 4, 24), 20, "scores have no meaning"), ((5, 5, 24), 25, "scores have no meaning"),
                                 ((13, 2, 24), 26, "scores mean little, and keep about 15 %"),
                                 ((6, 6, 24), 36, "scores keep only about 38 % of their contrast"), ((8, 6, 24), 48, None)]:
        err, background, warnings = detect(tmp_path, shape, *options)
        assert background["pixels"] == pixels and background["few_pixels"] == (words is not None)
        said = f"the background has {pixels} pixels for 24 bands"
        assert (said in err and words in err) if words else ("for 24 bands" not in err), err
        assert any(said in w for w in warnings) == (words is not None)


@pytest.mark.parametrize("options", [[], ["-nc", 24]])
def test_one_pixel_more_than_bands_tells_nothing(tmp_path, options):
    """The statistics of n pixels span n - 1 directions, so all scores are (n - 1)^2 / n."""
    err, background, _ = detect(tmp_path, (5, 5, 24), *options)
    scores = read(tmp_path / "d.tif")
    assert np.allclose(scores, 24 ** 2 / 25, rtol=1e-4)
    assert "scores have no meaning" in err and background["few_pixels"]


def spectrum_of(path, share):
    """Returns the eigenvalues of the covariance, and the number of directions that a shrinkage does not dominate."""
    x = read(path).reshape(read(path).shape[0], -1)
    values = np.linalg.eigvalsh(np.cov(x)).clip(0)[::-1][:x.shape[1] - 1]
    own = (1 - share) * values
    return float((own / (own + share * np.trace(np.cov(x)) / len(x))).sum())


@pytest.mark.parametrize("method", ["rx", "ace", "mf"])
@pytest.mark.parametrize("share", [1e-14, 1e-9, 1e-6, 0.01, 0.2, "auto"])
def test_a_shrinkage_counts_by_what_it_does(tmp_path, method, share):
    """Uses a scene of four materials and some noise, whose covariance has few large eigenvalues. A share of the mean
    eigenvalue may or may not dominate the other ones."""
    random = np.random.default_rng(5)
    spectra = 400 + np.abs(np.cumsum(random.normal(0, 100, (4, 40)), axis=1))
    data = random.dirichlet(np.ones(4), 30) @ spectra + random.normal(0, 1, (30, 40))
    write_scene(tmp_path / "s.img", data.T.reshape(40, 6, 5))
    target = list(TARGET) if method != "rx" else []
    result = succeed(run("gdal_hsi_detect", "-q", "-device", "cpu", "-method", method, *target, "-shrinkage", share, "-report",
                         tmp_path / "r.json", tmp_path / "s.img", tmp_path / "d.tif"))
    background = json.loads((tmp_path / "r.json").read_text())["background"]
    free = spectrum_of(tmp_path / "s.img", background["shrinkage"])
    assert background["free_dimensions"] == pytest.approx(free, rel=1e-4, abs=1e-4)
    assert background["few_pixels"] == (free > 15)
    told = "scores have no meaning" in result.err and f"{round(free)} directions keep their own variance" in result.err
    assert told == (share in (1e-14, 1e-9)) and ("for 40 bands" in result.err) == background["few_pixels"]
    assert (share in (0.01, 0.2, "auto")) == (not background["few_pixels"])
    if method == "rx":
        scores = read(tmp_path / "d.tif")
        assert (scores.std() < 0.02 * scores.mean()) == (share in (1e-14, 1e-9, 1e-6))
        assert (scores.std() > 0.1 * scores.mean()) == (share in (0.01, 0.2, "auto"))


def test_the_background_mask_is_what_counts(tmp_path):
    inside = np.zeros((1, 12, 10))
    inside[0, :4, :5] = 1
    mask = write_scene(tmp_path / "mask.tif", inside, driver="GTiff", dtype="u1")
    err, background, _ = detect(tmp_path, (12, 10, 24), *TARGET, "-background", mask)
    assert "20 pixels for 24 bands" in err and background["few_pixels"]
    err, background, _ = detect(tmp_path, (12, 10, 24), *TARGET)
    assert "for 24 bands" not in err and not background["few_pixels"]


def test_rings_of_few_pixels(tmp_path):
    err, background, _ = detect(tmp_path, (12, 12, 24), "-window", 1, 5)
    assert "rings of at most 24 pixels for 24 bands" in err and background == {
        "ring_pixels": 24, "few_pixels": True, "added_share_of_mean_variance": 0.01}
    err, background, _ = detect(tmp_path, (12, 12, 24), "-window", 1, 7)
    assert "rings of" not in err and background == {
        "ring_pixels": 48, "few_pixels": False, "added_share_of_mean_variance": 0.01}
    err, background, _ = detect(tmp_path, (4, 5, 24), "-window", 1, 31)  # no ring exceeds its scene
    assert "rings of at most 19 pixels" in err


def fields(path, blocks):
    """Returns labels as (line, sample, height, width, class) on 40 x 40 pixels."""
    labels = np.zeros((1, 40, 40))
    for line, sample, height, width, value in blocks:
        labels[0, line:line + height, sample:sample + width] = value
    return write_scene(path, labels, driver="GTiff", dtype="u1")


def scattered(path, step, classes=2, drop=None):
    """Returns one labelled pixel in each square of step x step; `drop`: limits a class to this number."""
    labels = np.zeros((1, 40, 40))
    places = [(y, x) for y in range(0, 40, step) for x in range(0, 40, step)]
    for k, (y, x) in enumerate(places):
        labels[0, y, x] = k % classes + 1
    if drop:
        y, x = np.nonzero(labels[0] == drop[0])
        labels[0, y[drop[1]:], x[drop[1]:]] = 0
    return write_scene(path, labels, driver="GTiff", dtype="u1")


def train(tmp_path, labels, *options):
    write_scene(tmp_path / "scene.img", noise(40, 40, 4))
    return succeed(run("gdal_hsi_svm_train", "-overwrite", "-C", 1, "-C", 10, "-gamma", 0.5, "-report", tmp_path / "r.json", *options,
                       tmp_path / "scene.img", labels, tmp_path / "m.json"))


def small_classes(tmp_path):
    return json.loads((tmp_path / "r.json").read_text())["small_classes"]


def test_classes_of_few_pixels(tmp_path):
    for kept, cv, said in [(9, 3, "fewer than 10"), (10, 5, None), (11, 6, "two for each of the 6 folds"), (12, 6, None)]:
        labels = scattered(tmp_path / "labels.tif", 4, drop=(2, kept))
        result = train(tmp_path, labels, "-cv", cv)
        assert ("few training pixels in class 2 (%d)" % kept in result.err and said in result.err) if said else (
            "few training pixels" not in result.err), result.err
        assert small_classes(tmp_path) == ([2] if said else [])
    scattered(tmp_path / "labels.tif", 4, drop=(1, 9))
    for kept in 9, 10:
        scattered(tmp_path / "labels.tif", 4, drop=(1, kept))
        result = succeed(run("gdal_hsi_sahic", "-overwrite", "-device", "cpu", "-no-spatial", "-report", tmp_path / "r.json",
                             tmp_path / "scene.img", tmp_path / "labels.tif", tmp_path / "map.tif"))
        assert ("few training pixels in class 1 (9)" in result.err) == (kept == 9)
        assert small_classes(tmp_path) == ([1] if kept == 9 else [])


def test_folds_that_touch(tmp_path):
    result = train(tmp_path, fields(tmp_path / "labels.tif", [(2, 2, 6, 6, 1), (20, 20, 6, 6, 2)]))
    assert "training pixels touch a pixel of another fold" in result.err
    assert json.loads((tmp_path / "r.json").read_text())["pixels_touching_other_folds"] > 60  # of 72, each with 3 to 8 neighbours
    result = train(tmp_path, scattered(tmp_path / "labels.tif", 2))
    assert "touch" not in result.err
    assert json.loads((tmp_path / "r.json").read_text())["pixels_touching_other_folds"] == 0


def touching(train_labels, test_labels):
    """Returns (test pixels that are training pixels, other test pixels that touch one), counted directly."""
    padded = np.pad(train_labels > 0, 1)
    near = np.any([padded[1 + dy:41 + dy, 1 + dx:41 + dx] for dy in (-1, 0, 1) for dx in (-1, 0, 1)], axis=0)
    same = (test_labels > 0) & (train_labels > 0)
    return same.sum(), ((test_labels > 0) & near & ~same).sum()


def labels_of(path):
    from osgeo import gdal
    return gdal.Open(str(path)).ReadAsArray()


def test_random_splits(tmp_path):
    labels = fields(tmp_path / "labels.tif", [(0, 0, 15, 15, 1), (20, 20, 15, 20, 2)])
    train_file, test_file = tmp_path / "train.tif", tmp_path / "test.tif"
    for options, warned in [((), True), (("-min-distance", 3), False)]:
        result = succeed(run("gdal_hsi_sample", "-overwrite", "-n", 20, "-report", tmp_path / "s.json", *options, labels,
                             train_file, test_file))
        _, near = touching(labels_of(train_file), labels_of(test_file))
        assert json.loads((tmp_path / "s.json").read_text())["test_pixels_touching_training"] == near
        assert ("test pixels touch a training pixel" in result.err) == warned == (near > 0)
        judged = succeed(run("gdal_hsi_accuracy", "-training", train_file, "-report", tmp_path / "a.json", labels, test_file))
        report = json.loads((tmp_path / "a.json").read_text())["training"]
        assert (report["pixels_of_training"], report["pixels_touching_training"]) == (0, near)
        assert ("reference pixels touch a training pixel" in judged.err) == warned
        assert "touch" not in succeed(run("gdal_hsi_accuracy", labels, test_file)).err


def test_reference_pixels_that_are_training_pixels(tmp_path):
    labels = fields(tmp_path / "labels.tif", [(0, 0, 15, 15, 1), (20, 20, 15, 20, 2)])
    part = fields(tmp_path / "part.tif", [(0, 0, 2, 2, 1), (38, 0, 1, 1, 2)])
    judged = succeed(run("gdal_hsi_accuracy", "-training", part, "-report", tmp_path / "a.json", labels, labels))
    report = json.loads((tmp_path / "a.json").read_text())["training"]
    assert (report["pixels_of_training"], report["pixels_touching_training"]) == touching(labels_of(part), labels_of(labels)) == (4, 5)
    assert "4 of 525 reference pixels are training pixels" in judged.err
    assert "touch a training pixel" not in judged.err  # 5 of 525


def test_training_labels_are_read_across_strips(tmp_path):
    """Neighbours on both sides of a border between strips of lines."""
    lines = 600
    training, reference = np.zeros((1, lines, 3)), np.zeros((1, lines, 3))
    for y in 255, 511:
        training[0, y, 1] = 1
        reference[0, y + 1, 1] = 1
    training[0, 300, 0] = 1
    reference[0, 256 + 42, 2] = 1
    paths = [write_scene(tmp_path / name, data, driver="GTiff", dtype="u1")
             for name, data in (("training.tif", training), ("reference.tif", reference), ("map.tif", np.ones((1, lines, 3))))]
    for first, second in (paths[0], paths[1]), (paths[1], paths[0]):
        succeed(run("gdal_hsi_accuracy", "-q", "-training", first, "-report", tmp_path / "a.json", paths[2], second))
        report = json.loads((tmp_path / "a.json").read_text())["training"]
        assert (report["judged_pixels"], report["pixels_touching_training"]) == (3, 2)
        (tmp_path / "a.json").unlink()


def mixtures(sources, lines=50, bands=12, noise=0.05):
    random = np.random.default_rng(3)
    spectra = np.abs(np.cumsum(random.normal(0, 30, (sources, bands)), axis=1)) + 50
    shares = random.dirichlet(np.ones(sources), lines * lines)
    return np.moveaxis((shares @ spectra + random.normal(0, noise, (lines * lines, bands))).reshape(lines, lines, bands), 2, 0)


def far_from_zero(bands=12):
    """Returns bands of all magnitudes, each with a mean of three standard deviations: every eigenvalue of the products
    becomes greater."""
    size = 2.0 ** np.arange(bands)[:, None, None]
    return size * np.random.default_rng(3).normal(3, 1, (bands, 50, 50))


def turned_signals(signals=9, bands=12, noise=0.005):
    """Returns signals far from zero, each in all bands, with noise."""
    random = np.random.default_rng(4)
    axes = np.linalg.qr(random.normal(size=(bands, signals)))[0]
    size = 2.0 ** np.arange(signals)[:, None]
    return (axes @ (size * random.normal(3, 1, (signals, 2500))) + random.normal(0, noise, (bands, 2500))).reshape(bands, 50, 50)


@pytest.mark.parametrize("method,many", [("hfc", far_from_zero()), ("nwhfc", turned_signals()), ("hysime", mixtures(7))])
def test_a_dimensionality_of_more_than_half_of_the_bands(tmp_path, method, many):
    for data, warned in (many, True), (mixtures(2), False):
        write_scene(tmp_path / "scene.img", data)
        result = succeed(run("gdal_hsi_vd", "-method", method, "-json", tmp_path / "scene.img"))
        number = json.loads(result.out)["virtual_dimensionality"]
        assert ("more than half" in result.err) == (number > 6) == warned, number
        if method == "hfc":
            found = succeed(run("gdal_hsi_atdca", "-overwrite", "-t", "auto", tmp_path / "scene.img", tmp_path / "t.gpkg"))
            assert ("more than half" in found.err) == warned


def test_geojson_without_a_georeference(tmp_path):
    data = noise(10, 12, 5)
    for name, reference, format_, warned in [("a", {"geotransform": None, "epsg": None}, "geojson", True), ("b", {"epsg": UTM}, "geojson", False),
                                             ("c", {"geotransform": None, "epsg": None}, "gpkg", False)]:
        write_scene(tmp_path / f"{name}.img", data, **reference)
        for tool in "atdca", "endmembers":
            target = tmp_path / f"{name}_{tool}.{format_}"
            result = succeed(run("gdal_hsi_" + tool, "-t", 3, tmp_path / f"{name}.img", target))
            assert ("the points have no geometry" in result.err) == warned, result.err
            if format_ == "geojson":
                for feature in json.loads(target.read_text())["features"]:
                    assert (feature["geometry"] is None) == warned
                    assert {"line", "sample"} <= set(feature["properties"])


def test_a_comparison_is_kept_as_text(tmp_path):
    data = noise(6, 5, 4)
    write_scene(tmp_path / "a.img", data)
    write_scene(tmp_path / "b.img", data + 1)
    for options in (), ("-json",):
        result = succeed(run("gdal_hsi_compare", "-q", "-overwrite", *options, "-o", tmp_path / "r.txt", tmp_path / "a.img",
                             tmp_path / "b.img"))
        assert (tmp_path / "r.txt").read_text() == result.out and "rmse" in result.out
    refused = run("gdal_hsi_compare", "-o", tmp_path / "r.txt", tmp_path / "a.img", tmp_path / "b.img")
    assert refused.code == 1 and "r.txt" in refused.err and (tmp_path / "r.txt").read_text() == result.out
    limited = run("gdal_hsi_compare", "-q", "-max-rmse", 0.5, "-o", tmp_path / "l.txt", tmp_path / "a.img", tmp_path / "b.img")
    assert limited.code == 1 and (tmp_path / "l.txt").read_text() == limited.out != ""


def simplex_residual(x, members):
    """Returns the root mean square of the rows of x outside the convex hull of the members, by an independent
    solver."""
    from scipy.optimize import nnls
    weight = 1e4 * np.abs(members).max()  # the sum of one as a heavy row
    system = np.vstack([members.T, weight * np.ones(len(members))])
    squares = 0
    for row in x:
        a, _ = nnls(system, np.append(row, weight))
        squares += ((row - a @ members) ** 2).sum()
    return np.sqrt(squares / x.size)


def residual_report(tmp_path, data, count, *options):
    write_scene(tmp_path / "scene.img", data, dtype="f8")
    result = succeed(run("gdal_hsi_endmembers", "-overwrite", "-t", count, "-residual", *options, "-spectra", tmp_path / "e.csv",
                         "-report", tmp_path / "r.json", tmp_path / "scene.img", tmp_path / "e.gpkg"))
    report = json.loads((tmp_path / "r.json").read_text())
    members = np.array([data[:, t["line"], t["sample"]] for t in report["targets"]])
    return result, report["residual"], members


def test_residuals_that_grow(tmp_path):
    """N-FINDR measures volume in components of equal variance: an amplified component of noise attracts the vertices
    away from the materials. The test searches for scenes with and without this, and both must occur, with the right
    message."""
    pytest.importorskip("scipy")
    seen = set()
    for seed in range(12):
        random = np.random.default_rng(seed)
        spectra = random.uniform(20, 100, (3, 6))
        data = np.moveaxis(random.dirichlet(np.ones(3), (12, 12)) @ spectra + random.normal(0, 2, (12, 12, 6)), 2, 0)
        result, residual, members = residual_report(tmp_path, data, 4)
        assert residual["rmse"] == pytest.approx(simplex_residual(data.reshape(6, -1).T, members), rel=1e-4)
        _, fewer, _ = residual_report(tmp_path, data, 3)
        assert residual["rmse_of_one_less"] == fewer["rmse"]
        grows = residual["rmse"] > fewer["rmse"]
        assert ("residual of unmixing grows" in result.err) == grows == ("or -t 2-4, which adds endmembers" in result.err)
        if grows:  # a set that grows explains at least as much
            succeed(run("gdal_hsi_endmembers", "-q", "-overwrite", "-t", "2-4", "-report", tmp_path / "g.json",
                        tmp_path / "scene.img", tmp_path / "g.gpkg"))
            steps = {s["t"]: s["rmse"] for s in json.loads((tmp_path / "g.json").read_text())["range"]["steps"]}
            assert steps[4] <= steps[3]
        seen.add(grows)
    assert seen == {True, False}


def test_nested_sets_do_not_grow(tmp_path):
    random = np.random.default_rng(0)
    data = np.moveaxis(random.dirichlet(np.ones(4), (20, 20)) @ random.uniform(20, 100, (4, 8)) + random.normal(0, 1, (20, 20, 8)), 2, 0)
    result, residual, _ = residual_report(tmp_path, data, 4, "-method", "atdca")
    assert residual["rmse"] <= residual["rmse_of_one_less"] and "grows" not in result.err
    two, residual, _ = residual_report(tmp_path, data, 2)
    assert "rmse_of_one_less" not in residual and "with 2 endmembers" in two.out


def named(path, data, names):
    from osgeo import gdal
    write_scene(path, data, driver="GTiff")
    file = gdal.Open(str(path), gdal.GA_Update)
    for k, name in enumerate(names):
        file.GetRasterBand(k + 1).SetDescription(name)
    return path


def test_names_of_bands_that_are_paired_in_their_order(tmp_path):
    data = np.random.default_rng(1).uniform(1, 2, (3, 5, 6))
    a = named(tmp_path / "a.tif", data, ["tree", "soil", "water"])
    for name, order, names, words in [
            ("same", [0, 1, 2], ["tree", "soil", "water"], None), ("none", [0, 1, 2], ["", "", ""], None),
            ("numbers", [0, 1, 2], ["Band 7", "Band 8", "Band 9"], None),
            ("other", [0, 1, 2], ["tree", "Endmember 2", "3-water"], "their names differ ('soil' and 'Endmember 2'); use -other-b"),
            ("twice", [0, 1, 2], ["soil", "soil", "water"], "their names differ ('tree' and 'soil')"),
            ("order", [2, 0, 1], ["water", "tree", "soil"], "their names have another order; use -other-b 2,3,1 to pair them by name")]:
        b = named(tmp_path / f"{name}.tif", data[order], names)
        out = succeed(run("gdal_hsi_compare", a, b)).out
        assert ("Bands are paired in their order" in out) == (words is not None) and (words or "") in out, out
        for chosen in ["-any-wavelengths"], ["-band", "1:1,2:2"], ["-b", "1,2"], ["-q"]:
            assert "paired" not in succeed(run("gdal_hsi_compare", *chosen, a, b)).out
    as_told = json.loads(succeed(run("gdal_hsi_compare", "-json", "-other-b", "2,3,1", a, tmp_path / "order.tif")).out)
    assert as_told["metrics"]["rmse"]["maximum"] == 0
    assert json.loads(succeed(run("gdal_hsi_compare", "-json", a, tmp_path / "order.tif")).out)["metrics"]["rmse"]["maximum"] > 0


def test_wavelengths_pair_bands_whatever_their_names(tmp_path):
    data = np.random.default_rng(1).uniform(1, 2, (3, 5, 6))
    for name, names in (("a", "{tree, soil, water}"), ("b", "{water, tree, soil}")):
        write_scene(tmp_path / f"{name}.img", data)
        with open(tmp_path / f"{name}.hdr", "a") as header:
            header.write(f"band names = {names}\nwavelength = {{500, 600, 700}}\nwavelength units = Nanometers\n")
    assert "paired" not in succeed(run("gdal_hsi_compare", tmp_path / "a.img", tmp_path / "b.img")).out


@pytest.mark.parametrize("tool", ["unmix", "detect", "atdca"])
def test_a_library_that_ends_before_the_scene(tmp_path, tool):
    data = np.random.default_rng(1).uniform(1, 2, (12, 6, 7))
    write_scene(tmp_path / "scene.img", data)
    with open(tmp_path / "scene.hdr", "a") as header:
        header.write("wavelength = {" + ", ".join(str(400 + 10 * b) for b in range(12)) + "}\nwavelength units = Nanometers\n")
    spectra = np.random.default_rng(2).uniform(1, 2, (2, 60))
    for first, last, hole, words in [
            (420, 479, None, "over 6 of 12 bands: the library covers 420 to 479 nm, and 6 bands of the scene are outside"),
            (400, 505, None, "over 11 of 12 bands: the library covers 400 to 505 nm, and 1 band of the scene is outside"),
            (415, 510, 470, "over 9 of 12 bands: the library covers 415 to 510 nm, and 2 bands of the scene are outside; "
             "1 other lacks values in some of the library's spectra"),
            (395, 515, 470, "over 11 of 12 bands: the other lacks values in some of the library's spectra"), (395, 515, None, None)]:
        wavelengths = np.linspace(first, last, 60)
        rows = [f"{w:.4f},{a:.6f},{b:.6f}\n" for w, a, b in zip(wavelengths, *spectra)]
        if hole:
            rows = [r if abs(w - hole) > 6 else f"{w:.4f},,\n" for r, w in zip(rows, wavelengths)]
        (tmp_path / "lib.csv").write_text("wavelength_nm,a,b\n" + "".join(rows))
        files = {"unmix": ["gdal_hsi_unmix", tmp_path / "scene.img", tmp_path / "lib.csv", tmp_path / "o.tif"],
                 "detect": ["gdal_hsi_detect", "-target", tmp_path / "lib.csv", tmp_path / "scene.img", tmp_path / "o.tif"],
                 "atdca": ["gdal_hsi_atdca", "-t", 2, "-reference", tmp_path / "lib.csv", tmp_path / "scene.img", tmp_path / "o.gpkg"]}[tool]
        out = succeed(run(files[0], "-overwrite", *files[1:])).out
        assert (words in out) if words else ("bands: " not in out), out


def gap_library(path, wavelengths):
    path.write_text("wavelength_nm,a,b\n" + "".join(f"{w},{0.1 + w / 9000:.4f},{0.5 - w / 9000:.4f}\n" for w in wavelengths))
    return path


@pytest.mark.parametrize("nm,gaps", [
    ([400, 2400], [(400, 2400)]), ([400, 450, 500, 550, 2300, 2350, 2400], [(550, 2300)]),
    ([400, 450, 900, 1000, 1050, 2000, 2400], [(450, 900), (1050, 2000), (2000, 2400)]),
    (range(400, 2401, 150), []),  # merely coarse
    (range(350, 2501, 1), []), ([*range(390, 1300, 10), *range(1400, 2410, 10)], [])])
def test_gaps_of_a_library(tmp_path, nm, gaps):
    between = ", ".join(f"{low} and {high} nm" for low, high in gaps)
    wavelengths = np.linspace(400, 2400, 40)  # 51.3 nm apart
    scene = write_scene(tmp_path / "s.img", np.random.default_rng(1).uniform(0.1, 0.5, (40, 8, 8)), wavelengths=wavelengths)
    library = gap_library(tmp_path / "l.csv", nm)
    for tool in (["gdal_hsi_unmix", scene, library], ["gdal_hsi_detect", "-method", "sam", "-target", library, scene]):
        result = succeed(run(*tool, "-overwrite", tmp_path / "o.tif"))
        said = " ".join(result.err.split())
        assert ("has no wavelengths between" in said) == bool(gaps), said
        if gaps:
            bands = sum(((wavelengths > low + 0.5) & (wavelengths < high - 0.5)).sum() for low, high in gaps)
            assert f"has no wavelengths between {between}, where the scene has {bands} bands" in said
    if between == "400 and 2400 nm":  # excluded bands are not mentioned
        result = succeed(run("gdal_hsi_unmix", "-overwrite", "-b", "1,2,39,40", scene, library, tmp_path / "o.tif"))
        assert "has no wavelength" not in result.err


@pytest.mark.parametrize("size,told", [((15, 10), True), ((30, 29), True), ((40, 30), False)])
def test_hysime_of_few_pixels(tmp_path, size, told):
    """Three signals in white noise: all additional signals are noise, which happens below nine pixels per band."""
    random = np.random.default_rng(18)
    data = random.normal(0, 1, (100, *size)) + 100 + np.tensordot(random.normal(0, 5, (100, 3)), random.normal(0, 1, (3, *size)), 1)
    scene = write_scene(tmp_path / "s.img", data)
    result = succeed(run("gdal_hsi_vd", "-json", "-method", "hysime", scene))
    number = json.loads(result.out)["virtual_dimensionality"]
    pixels = size[0] * size[1]
    assert (f"hysime has {pixels} pixels for 100 bands, fewer than 9 per band" in " ".join(result.err.split())) == told
    assert number <= 4 or told
    assert number > 10 or pixels > 200
    assert "fewer than 9" not in run("gdal_hsi_vd", "-method", "hfc", scene).err


def test_bands_that_b_names_are_others(tmp_path):
    """-b applies to both files, whose band numbers differ."""
    scene = write_scene(tmp_path / "s.tif", np.random.default_rng(5).uniform(0, 1, (10, 9, 9)) + np.arange(10)[:, None, None],
                        driver="GTiff")
    succeed(run("gdal_hsi_spp", "-q", "-b", "3,5,7-9", scene, tmp_path / "sub.tif"))
    said = "their numbers differ (3 and 1)"
    for options, told in ((["-b", "1-2"], True), (["-b", "1-2", "-any-wavelengths"], False), (["-b", "1-2", "-q"], False),
                          (["-b", "1-2", "-other-b", "3,5"], False), ([], False)):
        assert (said in succeed(run("gdal_hsi_compare", *options, tmp_path / "sub.tif", scene)).out) == told, options
    assert "they are others" not in succeed(run("gdal_hsi_compare", "-b", "1-2", scene, scene)).out
    for name, first in ("a", 500), ("b", 540):
        write_scene(tmp_path / f"{name}.img", read(scene), wavelengths=[first + 20 * k for k in range(10)])
    out = succeed(run("gdal_hsi_compare", "-b", "2-4", tmp_path / "a.img", tmp_path / "b.img")).out
    assert "their wavelengths differ (520 nm and 560 nm)" in out


@pytest.mark.parametrize("size,told", [((8, 9), True), ((12, 12), True), ((20, 20), True), ((40, 40), False)])
def test_the_snr_of_noise(tmp_path, size, told):
    """White noise has no signal. The apparent signal from a few pairs of neighbours is known."""
    write_scene(tmp_path / "s.img", np.random.default_rng(1).normal(5, 1, (60, *size)))
    result = succeed(run("gdal_hsi_mnf", "-report", tmp_path / "r.json", tmp_path / "s.img", tmp_path / "o.tif"))
    report = json.loads((tmp_path / "r.json").read_text())
    pairs = size[0] * (size[1] - 1)
    edge = np.sqrt(60 / pairs * (2 - 60 / pairs))
    assert report["pairs"] == pairs and report["snr_by_chance"] == pytest.approx(edge / (1 - edge))
    assert 0.3 * report["snr_by_chance"] < report["snr"][0] < 1.3 * report["snr_by_chance"]
    assert (f"the noise comes from {pairs} pairs of neighbours for 60 bands" in result.err) == told, result.err
    if told:
        assert f"up to about {report['snr_by_chance']:.3g} by chance" in result.err
    assert ("fewer than 7.5 per band" in result.err) == (pairs < 7.46 * 60) == told


def test_a_singular_noise_is_told_of_once(tmp_path):
    write_scene(tmp_path / "s.img", np.random.default_rng(1).normal(5, 1, (60, 7, 8)))
    result = succeed(run("gdal_hsi_mnf", "-report", tmp_path / "r.json", tmp_path / "s.img", tmp_path / "o.tif"))
    assert "49 pairs of neighbours for 60 bands" in result.err and "by chance" not in result.err
    assert "snr_by_chance" not in json.loads((tmp_path / "r.json").read_text())


@pytest.mark.parametrize("shape,said", [((1, 5, 64), "finds no signal in 19 pixels or fewer"), ((4, 4, 64), "finds no signal in 19"),
                                        ((5, 4, 64), ", too few"), ((8, 8, 64), ", too few"),
                                        ((13, 5, 64), None), ((5, 4, 19), None)])
def test_a_test_of_few_pixels(tmp_path, shape, said):
    write_scene(tmp_path / "s.img", noise(*shape))
    for method in ["hfc"] + (["nwhfc"] if shape[0] * shape[1] > shape[2] else []):
        result = succeed(run("gdal_hsi_vd", "-json", "-method", method, tmp_path / "s.img"))
        number = json.loads(result.out)["virtual_dimensionality"]
        assert (said in result.err) if said else (method + " has" not in result.err), result.err
        if said and "finds no" in said:
            assert number == 0
    if said and number > 0:
        found = succeed(run("gdal_hsi_atdca", "-t", "auto", tmp_path / "s.img", tmp_path / "t.gpkg"))
        assert said in found.err


def test_few_bands_bound_a_dimensionality(tmp_path):
    """In few bands, many signals are common, and do not indicate correlated noise."""
    for bands, words in (12, "the few bands limit the number"), (40, "signal and noise cannot be separated"):
        write_scene(tmp_path / "s.img", mixtures(7 * bands // 12 + 4, bands=bands, lines=100, noise=2e-4))
        result = succeed(run("gdal_hsi_vd", "-json", "-method", "hysime", tmp_path / "s.img"))
        number = json.loads(result.out)["virtual_dimensionality"]
        assert 2 * number > bands and f"{number} of {bands} bands, more than half: " + words in result.err, result.err


def test_components_have_no_mean(tmp_path):
    """hfc and nwhfc require a mean."""
    write_scene(tmp_path / "s.img", mixtures(4))
    succeed(run("gdal_hsi_mnf", "-q", "-nc", 6, tmp_path / "s.img", tmp_path / "c.tif"))
    for method, told in ("hfc", True), ("nwhfc", True), ("hysime", False):
        assert ("a mean of about 0" in succeed(run("gdal_hsi_vd", "-method", method, tmp_path / "c.tif")).err) == told
        assert "a mean of about 0" not in succeed(run("gdal_hsi_vd", "-method", method, tmp_path / "s.img")).err


def test_components_of_few_pixels(tmp_path):
    """n centred pixels span n - 1 directions."""
    write_scene(tmp_path / "s.img", noise(6, 6, 40))
    for window, left in ((0, 0, 2, 2), 3), ((0, 0, 4, 2), None), ((0, 0, 7, 1), None), ((1, 1, 5, 1), 4):
        if window[2] > 6:
            continue
        result = succeed(run("gdal_hsi_pca", "-overwrite", "-srcwin", *window, tmp_path / "s.img", tmp_path / "p.tif"))
        assert (f"only {left} components with variance" in result.err) if left else "components with variance" not in result.err


def test_endmembers_that_are_the_scene(tmp_path):
    write_scene(tmp_path / "s.img", noise(5, 5, 40))
    for count, told in (25, True), (13, True), (12, False), (3, False):
        for options in [], ["-method", "atdca"], ["-residual"]:
            result = succeed(run("gdal_hsi_endmembers", "-overwrite", "-t", count, *options, tmp_path / "s.img", tmp_path / "e.gpkg"))
            assert (f"{count} of 25 valid pixels are endmembers" in result.err) == told, result.err


def classified(tmp_path, tool):
    """Makes a map with or without neighbours, from labels whose names are in its model."""
    labels = fields(tmp_path / "labels.tif", [(2, 2, 12, 12, 1), (20, 20, 12, 12, 2)])
    data = noise(40, 40, 6)
    data[:, 20:] += 3
    write_scene(tmp_path / "scene.img", data)
    features = tmp_path / "scene.img"
    if tool in ("eadp", "spp", "profile"):
        features = tmp_path / "features.tif"
        succeed(run("gdal_hsi_" + tool, "-q", "-device", "cpu", tmp_path / "scene.img", features))
    if tool == "sahic":
        succeed(run("gdal_hsi_sahic", "-q", "-device", "cpu", tmp_path / "scene.img", labels, tmp_path / "map.tif"))
        return labels
    succeed(run("gdal_hsi_svm_train", "-q", "-C", 1, "-gamma", 0.5, features, labels, tmp_path / "m.json"))
    succeed(run("gdal_hsi_svm_classify", "-q", "-device", "cpu", features, tmp_path / "m.json", tmp_path / "map.tif"))
    return labels


@pytest.mark.parametrize("tool", ["eadp", "spp", "profile", "sahic", None])
def test_maps_made_with_neighbours(tmp_path, tool):
    labels = classified(tmp_path, tool)
    command = ["gdal_hsi_accuracy", tmp_path / "map.tif", labels]
    result = succeed(run(*command))
    assert (f"made with the neighbours of pixels (gdal_hsi_{tool})" in result.err) if tool else result.err == "", result.err
    if tool in ("eadp", "spp", "profile"):
        assert f"-training {labels}, which its model '{tmp_path}/m.json' names" in result.err
        (tmp_path / "m.json").unlink()
        assert "training labels (-training)" in succeed(run(*command)).err
    assert "made with the neighbours" not in succeed(run(*command, "-training", labels)).err


def class_map(path, labels, names):
    from osgeo import gdal
    dataset = gdal.GetDriverByName("GTiff").Create(str(path), labels.shape[1], labels.shape[0], 1)
    dataset.GetRasterBand(1).WriteArray(labels)
    dataset.GetRasterBand(1).SetCategoryNames(["none", *names])
    dataset = None
    return path


def test_classes_that_the_reference_lacks(tmp_path):
    """The classes of another field: all of them must be wrong."""
    labels = np.kron(np.arange(1, 5).reshape(2, 2), np.ones((10, 10), int)).astype("u1")
    for name, wrong, told in ("a", (labels == 1) | (labels == 2), True), ("b", np.arange(400).reshape(20, 20) < 20, False):
        mapped = np.where(wrong, 9, labels).astype("u1")
        mapped[19, 19] = 8 if told else mapped[19, 19]
        names = ["roof", "tree", "soil", "water", *"xyz", "cloud", "built"]
        command = ["gdal_hsi_accuracy", "-report", tmp_path / "r.json", class_map(tmp_path / f"{name}.tif", mapped, names),
                   class_map(tmp_path / "reference.tif", labels, names)]
        result = succeed(run(*command))
        unknown = int((mapped > 4).sum())
        report = json.loads((tmp_path / "r.json").read_text())
        assert report["pixels_of_unknown_classes"] == unknown
        assert (f"{unknown} of 400 judged pixels have classes in the map that the reference lacks" in result.err) == told, result.err
        if told:
            assert "(8 cloud, 9 built)" in result.err


@pytest.mark.parametrize("side", ["map", "reference"])
def test_kappa_of_one_class(tmp_path, side):
    """The formula gives 0 for any classes on the other side."""
    labels = np.kron(np.arange(1, 3).reshape(1, 2), np.ones((10, 10), int)).astype("u1")
    files = {"map": labels, "reference": labels[::-1, ::-1].copy()}
    files[side] = np.where(np.arange(20) < 20, 1, files[side]).astype("u1")
    paths = [class_map(tmp_path / f"{name}.tif", files[name], ["a", "b"]) for name in ("map", "reference")]
    result = succeed(run("gdal_hsi_accuracy", *paths))
    assert f"Kappa: - (not defined: the {side} has only one class)" in result.out
    assert json.loads(succeed(run("gdal_hsi_accuracy", "-json", *paths)).out)["kappa"]["value"] is None
