# SPDX-License-Identifier: MIT
"""gdal_hsi_reflect, compared with a NumPy reference in double precision; its coefficients, virtual scenes, and refused
input."""
import csv
import os
import subprocess

import numpy as np
import pytest
from osgeo import gdal

from conftest import BIN, PLUGINS, cube, first_error, read, run, succeed, write_scene

BANDS, LINES, SAMPLES = 16, 20, 31
NM = [500 + 10.0 * b for b in range(BANDS)]
TARGETS = {"Dark": (2, 3), "grey panel": (8, 9), "bright": (14, 20)}  # line, sample of 4 x 4 pixels


def reflect(*args):
    return run("gdal_hsi_reflect", *args)


def library(path, spectra, nm=NM):
    with open(path, "w") as f:
        f.write("wavelength," + ",".join(spectra) + "\n")
        for b, x in enumerate(nm):
            f.write(f"{x!r}," + ",".join(f"{s[b]:.9g}" for s in spectra.values()) + "\n")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reflect")
    scene = cube(SAMPLES, LINES, BANDS, seed=9) + 50
    gains = 2e-4 * (1 + np.arange(BANDS) / 10)
    known = {name: np.full(BANDS, r) + 0.02 * np.sin(np.arange(BANDS) + k) for k, (name, r) in enumerate(zip(TARGETS, (0.05, 0.3, 0.6)))}
    labels = np.zeros((1, LINES, SAMPLES))
    rng = np.random.default_rng(1)
    for k, (name, (y, x)) in enumerate(TARGETS.items()):
        scene[:, y:y + 4, x:x + 4] = ((known[name] + 0.03) / gains)[:, None, None] * rng.normal(1, 0.01, (BANDS, 4, 4))
        labels[0, y:y + 4, x:x + 4] = k + 1
    scene[5, 0, 0] = np.nan
    scene[:, 1, 1] = 0
    scene[3, 2, 30] = -4  # has no logarithm
    write_scene(folder / "scene.img", scene.astype(np.float32), wavelengths=NM)
    write_scene(folder / "labels.tif", labels, driver="GTiff", dtype="u1")
    dataset = gdal.Open(str(folder / "labels.tif"), gdal.GA_Update)
    dataset.GetRasterBand(1).SetCategoryNames(["", *TARGETS])
    dataset = None
    area = np.zeros((1, LINES, SAMPLES))
    area[0, 10:14, 2:9] = 1
    write_scene(folder / "area.tif", area, driver="GTiff", dtype="u1")
    library(folder / "panels.csv", {"DARK": known["Dark"], "Grey Panel": known["grey panel"], "bright": known["bright"]})
    return folder


def values(folder):
    scene = read(folder / "scene.img").astype(np.float64)
    scene[:, ~np.isfinite(scene).all(0) | (scene == 0).all(0)] = np.nan
    return scene


def agree(got, expected, limit=1e-6):
    assert got.shape == expected.shape and (np.isnan(got) == np.isnan(expected)).all()
    there = np.isfinite(expected).all(0)
    assert there.sum() > 500
    assert (np.abs(got - expected) <= limit * (np.abs(expected) + np.abs(np.nan_to_num(expected)).max(0)))[:, there].all()


def column(v):
    return v[:, None, None]


def log_residual(scene):
    with np.errstate(all="ignore"):
        v = np.log(np.where((scene > 0).all(0), scene, np.nan))
    return np.exp(v - v.mean(0) - column(np.nanmean(v, (1, 2))) + np.nanmean(v))


def lines_of(files, through_origin=False):
    scene, labels = values(files), read(files / "labels.tif")[0]
    stored = np.array([scene[:, labels == k + 1].mean(1) for k in range(3)])
    rho = np.genfromtxt(files / "panels.csv", delimiter=",", skip_header=1)[:, 1:].T
    if through_origin:
        return (stored * rho).sum(0) / (stored ** 2).sum(0), np.zeros(BANDS)
    fits = [np.polyfit(stored[:, b], rho[:, b], 1) for b in range(BANDS)]
    return np.array(fits).T


def expected_of(method, files):
    scene = values(files)
    if method == "flat":
        return scene / column(scene[:, 10:14, 2:9].mean((1, 2)))
    if method == "iarr":
        return scene / column(np.nanmean(scene, (1, 2)))
    if method == "log-residual":
        return log_residual(scene)
    gain, offset = lines_of(files)
    return scene * column(gain) + column(offset)


def words_of(method, files):
    return {"flat": ("-area", files / "area.tif"), "empirical-line": ("-targets", files / "labels.tif", "-library", files / "panels.csv")}.get(method, ())


METHODS = ["flat", "iarr", "log-residual", "empirical-line"]


@pytest.mark.parametrize("method", METHODS)
def test_values_virtual_scenes_and_pipelines(files, tmp_path, method):
    words = ("-method", method, *words_of(method, files))
    succeed(reflect(*words, files / "scene.img", tmp_path / "a.tif"))
    expected = read(tmp_path / "a.tif")
    agree(expected, expected_of(method, files), 1e-6)
    for k, options in enumerate([("-tile", "7", "3"), ("-threads", "3"), ("-of", "HSI"), ("-of", "VRT")]):
        path = tmp_path / f"{k}.{ {'HSI': 'hsi', 'VRT': 'vrt'}.get(options[-1], 'tif')}"
        succeed(reflect(*words, *options, files / "scene.img", path))
        if path.suffix in (".hsi", ".vrt"):
            subprocess.run(["gdal_translate", "-q", path, tmp_path / f"{k}.tif"], check=True,
                           env={**os.environ, "GDAL_DRIVER_PATH": str(PLUGINS)})
            path = tmp_path / f"{k}.tif"
        assert np.array_equal(read(path), expected, equal_nan=True), options
    succeed(run("gdal_hsi_pipeline", "read", files / "scene.img", "!", "reflect", *words, "!", "write", tmp_path / "p.tif"))
    assert np.array_equal(read(tmp_path / "p.tif"), expected, equal_nan=True)


def test_flat_with_a_reference_and_masks(files, tmp_path):
    r = 0.4 + 0.01 * np.arange(BANDS)
    library(tmp_path / "r.csv", {"r": r[:12]}, NM[:12])
    out = succeed(reflect("-method", "flat", *words_of("flat", files), "-reference", tmp_path / "r.csv", files / "scene.img", tmp_path / "f.tif"))
    assert "4 bands are left out" in out.out and "13 (620 nm)" in out.out
    agree(read(tmp_path / "f.tif"), (expected_of("flat", files) * column(r))[:12])
    succeed(reflect("-method", "iarr", "-mask-exclude", files / "labels.tif", files / "scene.img", tmp_path / "m.tif"))
    scene = values(files)
    agree(read(tmp_path / "m.tif"), scene / column(np.nanmean(np.where(read(files / "labels.tif")[0] == 0, scene, np.nan), (1, 2))))


@pytest.mark.parametrize("through_origin", [False, True])
def test_coefficients_are_applied_again(files, tmp_path, through_origin):
    words = ("-method", "empirical-line", *words_of("empirical-line", files), *(("-through-origin",) if through_origin else ()))
    out = succeed(reflect(*words, "-coefficients", tmp_path / "c.csv", files / "scene.img", tmp_path / "a.tif"))
    assert "Target grey panel: residual" in out.out
    rows = list(csv.DictReader((tmp_path / "c.csv").open(newline="")))
    assert list(rows[0]) == ["band", "wavelength", "gain", "offset", "rmse", "r2", "targets"]
    gain, offset = lines_of(files, through_origin)
    assert np.allclose([float(r["gain"]) for r in rows], gain, rtol=1e-5) and np.allclose([float(r["offset"]) for r in rows], offset, rtol=1e-5, atol=1e-12)
    assert rows[0]["targets"] == "3" and float(rows[0]["r2"]) > 0.9
    succeed(reflect("-apply", tmp_path / "c.csv", files / "scene.img", tmp_path / "b.tif"))
    assert np.array_equal(read(tmp_path / "a.tif"), read(tmp_path / "b.tif"), equal_nan=True)
    (tmp_path / "bad.csv").write_text("band,gain,offset\n1,x,0\n")
    out = reflect("-apply", tmp_path / "bad.csv", files / "scene.img", tmp_path / "x.tif")
    assert out.code == 1 and "bad.csv" in first_error(out)


def test_targets_without_a_spectrum(files, tmp_path):
    known = np.genfromtxt(files / "panels.csv", delimiter=",", skip_header=1)
    library(tmp_path / "two.csv", {"dark": known[:, 1], "Bright": known[:, 3]})
    words = ("-method", "empirical-line", "-targets", files / "labels.tif", "-library")
    out = succeed(reflect(*words, tmp_path / "two.csv", files / "scene.img", tmp_path / "t.tif"))
    assert "target 'grey panel' has no spectrum with its name" in out.err
    library(tmp_path / "one.csv", {"dark": known[:, 1]})
    out = reflect(*words, tmp_path / "one.csv", files / "scene.img", tmp_path / "o.tif")
    assert out.code == 1 and "a line needs two targets" in out.err
    succeed(reflect(*words, tmp_path / "one.csv", "-through-origin", files / "scene.img", tmp_path / "o.tif"))
    library(tmp_path / "none.csv", {"x": known[:, 1]})
    out = reflect(*words, tmp_path / "none.csv", files / "scene.img", tmp_path / "n.tif")
    assert out.code == 1 and "no target of" in out.err


def test_bands_without_a_mean_above_zero(files, tmp_path):
    scene = read(files / "scene.img")
    scene[2] = -np.abs(scene[2]) - 1
    write_scene(tmp_path / "s.img", scene, wavelengths=NM)
    out = succeed(reflect("-method", "iarr", tmp_path / "s.img", tmp_path / "r.tif"))
    assert "1 band is left out" in out.out and "3 (520 nm)" in out.out and read(tmp_path / "r.tif").shape[0] == BANDS - 1


def test_a_damaged_wavelength_in_coefficients(files, tmp_path):
    """Without this check, bands were matched by number without a warning."""
    succeed(reflect("-method", "empirical-line", *words_of("empirical-line", files), "-coefficients", tmp_path / "c.csv", files / "scene.img", tmp_path / "a.tif"))
    head, first, *rest = (tmp_path / "c.csv").read_text().splitlines()
    cells = first.split(",")
    for word in ("x", "nan", "0", "-1", "inf"):
        (tmp_path / "d.csv").write_text("\n".join([head, ",".join([cells[0], word, *cells[2:]]), *rest]) + "\n")
        done = reflect("-apply", tmp_path / "d.csv", files / "scene.img", tmp_path / "b.tif")
        assert done.code == 1 and "the wavelength of band" in first_error(done), word


@pytest.mark.parametrize("options, first", [
    ((), "-method is missing"), (("-method", "flat"), "-method flat requires -area"),
    (("-method", "iarr", "-area", "x.tif"), "-area requires -method flat"), (("-method", "iarr", "-reference", "x.csv"), "-reference requires"),
    (("-method", "empirical-line", "-targets", "x.tif"), "-method empirical-line requires -targets and -library"),
    (("-method", "iarr", "-through-origin"), "-through-origin requires -method empirical-line"),
    (("-method", "iarr", "-apply", "c.csv"), "-method cannot be used with -apply"),
    (("-method", "log-residual", "-coefficients", "c.csv"), "-coefficients requires")])
def test_bad_input(files, tmp_path, options, first):
    out = reflect(*options, files / "scene.img", tmp_path / "bad.tif")
    assert out.code == 2 and first in first_error(out), out.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("redirection", [">&-", ">/dev/full", ">&- 2>&-", "<&- >&- 2>&-"])
def test_the_residuals_are_no_product(files, tmp_path, redirection):
    """The standard output is closed or full, but dst is written."""
    shell = 'exec "$0" "$@" ' + redirection
    words = ["-method", "empirical-line", *words_of("empirical-line", files), files / "scene.img", tmp_path / "a.tif"]
    code = subprocess.run(["sh", "-c", shell, str(BIN / "gdal_hsi_reflect"), *map(str, words)], stderr=subprocess.DEVNULL).returncode
    assert code == 0 and read(tmp_path / "a.tif").shape == (BANDS, LINES, SAMPLES)
