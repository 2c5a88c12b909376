# SPDX-License-Identifier: MIT
"""gdal_hsi_detect on backgrounds of few pixels: shrinkage of the matrix and scores of components, compared with
numpy."""

import json
import os
import subprocess

import numpy as np
import pytest


from conftest import PLUGINS, assert_untouched, read, run, succeed, write_scene

METHODS = ["mf", "cem", "ace", "rx"]
TARGET = (5, 6)


def scene_of(lines, samples, bands, seed=2):
    """Makes mixtures of four spectra with noise; the last pixel but one of the first line is bad, band 3 is
    constant."""
    random = np.random.default_rng(seed)
    spectra = 40 + np.abs(np.cumsum(random.normal(0, 10, (4, bands)), axis=1))
    data = random.dirichlet(np.ones(4), (lines, samples)) @ spectra + random.normal(0, 1, (lines, samples, bands))
    data[:, :, 2] = 7
    data[0, -2] = np.nan
    return np.moveaxis(data, 2, 0).astype(np.float32)


@pytest.fixture
def files(tmp_path):
    write_scene(tmp_path / "scene.img", scene_of(12, 14, 24))
    write_scene(tmp_path / "large.img", scene_of(40, 30, 24))
    inside = np.zeros((1, 12, 14))
    inside[0, 2:9, 1:10] = 1
    write_scene(tmp_path / "mask.tif", inside, driver="GTiff", dtype="u1")
    return tmp_path


def detect(folder, method, *options, name="scene.img"):
    target = [] if method == "rx" else ["-target-pixel", *TARGET]
    result = succeed(run("gdal_hsi_detect", "-overwrite", "-device", "cpu", "-method", method, *target, *options, "-report",
                         folder / "r.json", folder / name, folder / "d.tif"))
    return read(folder / "d.tif")[0], json.loads((folder / "r.json").read_text())["background"], result


def ledoit_wolf(z):
    """Returns the share of Ledoit and Wolf for centred rows, by definition."""
    n, p = z.shape
    s = z.T @ z / n
    mean = np.trace(s) / p
    distance = ((s - mean * np.eye(p)) ** 2).sum()
    error = sum(((np.outer(x, x) - s) ** 2).sum() for x in z) / n ** 2
    return min(error, distance) / distance


def reference(path, method, shrinkage=0.0, components=None, inside=None):
    """Returns (scores, shrinkage); with shrinkage None, by Ledoit and Wolf."""
    x = np.moveaxis(read(path), 0, 2)
    valid = np.isfinite(x).all(axis=2)
    background = x[valid if inside is None else valid & inside]
    used = np.ones(x.shape[2], bool) if method == "cem" else background.std(axis=0) > 0
    x, background = x[:, :, used], background[:, used]
    centre = np.zeros(x.shape[2]) if method == "cem" else background.mean(axis=0)
    z = background - centre
    matrix = z.T @ z / (len(z) - (method != "cem"))
    share = ledoit_wolf(z) if shrinkage is None else shrinkage
    matrix = (1 - share) * matrix + share * np.trace(matrix) / len(matrix) * np.eye(len(matrix))
    values, vectors = np.linalg.eigh(matrix)
    first = vectors[:, ::-1][:, :components]
    inverse = first @ np.diag(1 / values[::-1][:components]) @ first.T
    d, t = x - centre, x[TARGET] - centre
    rx, along, contrast = np.einsum("ijk,kl,ijl->ij", d, inverse, d), d @ inverse @ t, t @ inverse @ t
    scores = {"rx": rx, "ace": along * abs(along) / (contrast * rx), "mf": along / contrast, "cem": along / contrast}[method]
    return np.where(valid, scores, np.nan), share


def close(method, got, want):
    limit = 2e-5 if method == "ace" else 1e-4 * (1 + abs(want))
    return np.array_equal(np.isnan(got), np.isnan(want)) and (np.isnan(want) | (abs(got - want) <= limit)).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("share", ["auto", 0.2, 1])
def test_shrinkage(files, method, share):
    scores, background, result = detect(files, method, "-shrinkage", share)
    want, wanted_share = reference(files / "scene.img", method, None if share == "auto" else share)
    assert background["shrinkage"] == pytest.approx(wanted_share, rel=1e-6) and background["added_to_diagonal"] == 0
    assert close(method, scores, want)
    assert ("Shrinkage: " in result.out) == (share == "auto")


@pytest.mark.parametrize("method", METHODS)
def test_shrinkage_of_few_pixels(files, method):
    """Fewer pixels than bands: no ridge and no warning are needed."""
    options = ["-srcwin", 2, 3, 5, 4] + (["-target-pixel", 1, 1] if method != "rx" else [])
    result = succeed(run("gdal_hsi_detect", "-device", "cpu", "-method", method, *options, "-shrinkage", "auto", "-report",
                         files / "r.json", files / "scene.img", files / "d.tif"))
    background = json.loads((files / "r.json").read_text())["background"]
    assert background["pixels"] == 20 and 0 < background["shrinkage"] < 1
    assert not background["regularised"] and not background["few_pixels"] and result.err == ""
    scores = read(files / "d.tif")
    assert scores.std() > 0.05 * abs(scores).mean()  # rx: without shrinkage, all are equal


@pytest.mark.parametrize("method", METHODS)
def test_shrinkage_of_a_background_mask(files, method):
    inside = read(files / "mask.tif")[0] == 1
    scores, background, _ = detect(files, method, "-shrinkage", "auto", "-background", files / "mask.tif")
    want, share = reference(files / "scene.img", method, None, inside=inside)
    assert background["shrinkage"] == pytest.approx(share, rel=1e-6) and close(method, scores, want)
    masked, other, _ = detect(files, method, "-shrinkage", "auto", "-mask", files / "mask.tif")
    assert other["shrinkage"] == background["shrinkage"] and np.array_equal(masked, scores, equal_nan=True)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("components", [1, 4, 23])
def test_components(files, method, components):
    scores, background, _ = detect(files, method, "-nc", components)
    want, _ = reference(files / "scene.img", method, components=components)
    assert background["components"] == components and close(method, scores, want)
    both, background, _ = detect(files, method, "-nc", components, "-shrinkage", 0.1)
    want, _ = reference(files / "scene.img", method, 0.1, components)
    assert background["shrinkage"] == 0.1 and close(method, both, want)


@pytest.mark.parametrize("method", METHODS)
def test_as_many_components_as_there_are_pixels_for(files, method):
    scores, background, result = detect(files, method, "-nc", "auto")  # 167 pixels
    want, _ = reference(files / "scene.img", method, components=16)
    assert background["components"] == 16 and close(method, scores, want) and not background["few_pixels"]
    assert "first 16 components" in result.out and "for 24 bands" not in result.err
    scores, background, result = detect(files, method, "-nc", "auto", name="large.img")
    assert background["components"] == (24 if method == "cem" else 23) and "all 2" in result.out
    plain, _, _ = detect(files, method, name="large.img")
    assert np.array_equal(scores, plain, equal_nan=True)


def test_few_pixels_and_their_components(files):
    """20 pixels of 24 bands: two components."""
    options = ["-srcwin", 2, 3, 5, 4, "-method", "rx"]
    plain = succeed(run("gdal_hsi_detect", "-device", "cpu", *options, files / "scene.img", files / "p.tif"))
    assert "scores have no meaning" in plain.err and "-nc auto" in plain.err
    alike = read(files / "p.tif")
    assert alike.std() < 0.02 * alike.mean()
    result = succeed(run("gdal_hsi_detect", "-device", "cpu", *options, "-nc", "auto", files / "scene.img", files / "d.tif"))
    assert result.err == "" and "first 2 components" in result.out
    scores = read(files / "d.tif")
    assert scores.std() > 0.3 * scores.mean()


@pytest.mark.parametrize("options", [["-nc", 5], ["-shrinkage", "auto"], ["-nc", "auto", "-shrinkage", 0.3]])
def test_tiles_threads_and_vrts_change_nothing(files, options):
    for method in "ace", "mf":
        first, background, _ = detect(files, method, *options)
        for others in (["-tile", 5, 3, "-threads", 1], ["-tile", 14, 1, "-threads", 3]):
            again, other, _ = detect(files, method, *options, *others)
            assert np.array_equal(again, first, equal_nan=True) and other == background
        target = files / "v.vrt"
        succeed(run("gdal_hsi_detect", "-overwrite", "-method", method, "-target-pixel", *TARGET, *options, files / "scene.img", target))
        assert np.allclose(virtual(target), first, atol=1e-5, equal_nan=True)


def virtual(path):
    """Returns the pixel functions' result of a VRT, in a GDAL program."""
    copy = path.with_suffix(".tif")
    subprocess.run(["gdal_translate", "-q", str(path), str(copy)], check=True, env={**os.environ, "GDAL_DRIVER_PATH": str(PLUGINS)})
    return read(copy)[0]


def test_false_alarms_of_components(tmp_path):
    """Two components of six normal bands: the tail of B(1, (n-3)/2) is a power."""
    random = np.random.default_rng(1)
    data = np.moveaxis(random.normal(0, 1, (20, 30, 6)) * [9, 5, 1, 1, 1, 1] + 50, 2, 0)
    write_scene(tmp_path / "scene.img", data)
    n, rate = 600, 0.01
    succeed(run("gdal_hsi_detect", "-nc", 2, "-map", tmp_path / "m.tif", "-false-alarms", rate, "-report", tmp_path / "r.json",
                tmp_path / "scene.img", tmp_path / "d.tif"))
    value = json.loads((tmp_path / "r.json").read_text())["threshold"]["value"]
    assert value == pytest.approx((n - 1) ** 2 / n * (1 - rate ** (2 / (n - 3))), rel=1e-8)


@pytest.mark.parametrize("options,code,message", [
    (["-nc", "0"], 2, "is not a whole number"), (["-nc", "2.5"], 2, "is not a whole number"), (["-nc", "some"], 2, "is not a whole number"),
    (["-nc", "25"], 2, "the scene has 24 bands"), (["-nc", "24"], 1, "has only 23 usable components, but 24 are requested"),
    (["-nc", "20", "-srcwin", "2", "3", "5", "4"], 1, "has only 19 usable components, but 20 are requested"),
    (["-shrinkage", "-0.1"], 2, "from 0 to 1"), (["-shrinkage", "1.1"], 2, "from 0 to 1"), (["-shrinkage", "much"], 2, "from 0 to 1"),
    (["-shrinkage", "auto", "-window", "3", "7"], 2, "cannot be used with -window"),
    (["-nc", "auto", "-window", "3", "7"], 2, "cannot be used with -window"),
    (["-nc", "auto", "-method", "sam", "-target-pixel", "1", "1"], 2, "cannot be used with -method sam"),
    (["-shrinkage", "0.5", "-method", "sid", "-target-pixel", "1", "1"], 2, "cannot be used with -method sid"),
    (["-shrinkage", "0.5", "-map", "MAP", "-false-alarms", "0.1"], 2, "requires -background"),
])
def test_what_is_refused(files, options, code, message):
    words = [files / "map.tif" if o == "MAP" else o for o in options]
    with assert_untouched(files):
        result = run("gdal_hsi_detect", "-q", *words, files / "scene.img", files / "d.tif")
        error = next((line for line in result.err.splitlines() if line.startswith("ERROR")), "")
        assert result.code == code and message in error, result.err


@pytest.mark.parametrize("words,pixels,said", [
    (["-nc", 1], 168, "ace in one component is always 1 or -1"), (["-nc", 1, "-shrinkage", 0.1], 168, "ace in one component"),
    (["-b", "3,5"], 168, "ace in one band is always 1 or -1"),  # band 3 is constant
    (["-nc", 2], 168, None), (["-nc", "auto", "-srcwin", 2, 3, 5, 3], 15, None)])
def test_ace_of_one_dimension(files, words, pixels, said):
    """(t-m)(x-m) over the roots of their squares is a sign, so -nc auto takes two components."""
    result = succeed(run("gdal_hsi_detect", "-device", "cpu", "-target-pixel", 1, 1, *words, "-report", files / "r.json",
                         files / "scene.img", files / "d.tif"))
    scores = read(files / "d.tif")
    scores = scores[np.isfinite(scores)]
    assert (np.abs(np.abs(scores) - 1) < 1e-6).all() == (said is not None)
    assert (said in result.err) if said else "ace in one" not in result.err, result.err
    warnings = json.loads((files / "r.json").read_text())["warnings"]
    assert any("ace in one" in w for w in warnings) == (said is not None)


@pytest.mark.parametrize("method,size,options,advice", [
    ("rx", (2, 1), ["-nc", "auto"], "use a larger background"), ("rx", (2, 1), ["-shrinkage", "auto"], "use a larger background"),
    ("rx", (2, 1), [], "use a larger background"), ("rx", (3, 1), ["-shrinkage", "auto"], "use -nc auto, or a larger background"),
    ("rx", (4, 1), [], "use -nc auto, -shrinkage auto, or a larger background"),
    ("ace", (3, 1), ["-nc", "auto"], "use -shrinkage auto, or a larger background"),
    ("ace", (3, 1), [], "use -shrinkage auto, or a larger background")])
def test_advice_that_was_not_followed_yet(files, method, size, options, advice):
    """The message omits advice that cannot help: two pixels are as far from their mean in one component as in all
    bands."""
    target = ["-target-pixel", 0, 1] if method == "ace" else []
    result = succeed(run("gdal_hsi_detect", "-device", "cpu", "-method", method, *target, *options, "-srcwin", 3, 3, *size, "-report",
                         files / "r.json", files / "scene.img", files / "d.tif"))
    said = " ".join(result.err.split())
    assert json.loads((files / "r.json").read_text())["background"]["few_pixels"]
    assert "scores have no meaning" in said and said.rstrip().endswith("; " + advice), said
    if size == (2, 1):
        assert np.allclose(read(files / "d.tif"), 0.5, atol=1e-4)  # (n - 1)^2 / n


@pytest.mark.parametrize("method", ["mf", "ace", "cem", "sam", "sid"])
def test_a_target_of_zeros(files, method):
    """Represents darkness if a background has a mean, otherwise nothing. It has no units."""
    (files / "zero.csv").write_text("soil,none\n" + "".join(f"{40 + k % 3},0\n" for k in range(24)))
    result = run("gdal_hsi_detect", "-q", "-method", method, "-target", files / "zero.csv", files / "scene.img", files / "d.tif")
    assert "target 'none'" in result.err and "times as large" not in result.err, result.err
    assert result.code == (0 if method in ("mf", "ace") else 1)
    assert ("is all zero, so it finds dark pixels" in result.err) == (result.code == 0)
