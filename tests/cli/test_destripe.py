# SPDX-License-Identifier: MIT
"""gdal_hsi_destripe, compared with a NumPy reference in double precision; .hsi and pipelines, and refused input."""
import os
import subprocess

import numpy as np
import pytest

from conftest import PLUGINS, first_error, read, run, succeed, write_scene

BANDS, LINES, SAMPLES = 4, 57, 70
METHODS = ["difference", "ratio", "moment", "median"]


def destripe(*args):
    return run("gdal_hsi_destripe", *args)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("destripe")
    rng = np.random.default_rng(2)
    y, x = np.mgrid[:LINES, :SAMPLES]
    b = np.arange(BANDS)[:, None, None]
    scene = 400 + 50 * b + 60 * np.sin(x / 15 + b) * np.cos(y / 12) + 6 * rng.normal(size=(BANDS, LINES, SAMPLES))
    scene = scene * (1 + 0.03 * rng.normal(size=(BANDS, 1, SAMPLES))) + 8 * rng.normal(size=(BANDS, 1, SAMPLES))
    scene[0, 5:, 30:33] = np.nan  # unusable columns, and one at the side
    scene[1, :, 0] = np.nan
    scene[2, 7:12, 50] = -5
    write_scene(folder / "scene.img", scene.astype(np.float32), epsg=None, geotransform=None)
    mask = np.zeros((1, LINES, SAMPLES))
    mask[0, 10:, 3:] = 1
    write_scene(folder / "mask.tif", mask, driver="GTiff", dtype="u1", epsg=None, geotransform=None)
    return folder


def line(places, z, j, half, taken):
    near = [k for k in range(len(places)) if abs(places[k] - places[j]) <= half and taken[k]]
    if len(near) < 3:
        return None
    return np.polyval(np.polyfit([places[k] - places[j] for k in near], [z[k] for k in near], 1), 0)


def low_pass(places, z, window):
    half, everywhere = (window - 1) // 2, np.ones(len(z), bool)
    first = np.array([z[j] if (v := line(places, z, j, half, everywhere)) is None else v for j in range(len(z))])
    e = z - first
    t = 1.4826 * np.median(np.abs(e - np.median(e)))
    if not t > 0:
        return first
    taken = np.abs(e) <= 3 * t
    return np.array([first[j] if (v := line(places, z, j, half, taken)) is None else v for j in range(len(z))])


def reference(scene, method, window=15, counted=None):
    scene = scene.astype(np.float64)
    scene[:, ~np.isfinite(scene).all(0)] = np.nan
    counts = np.isfinite(scene).all(0) & (True if counted is None else counted)
    usable = [j for j in range(SAMPLES) if counts[:, j].sum() >= 20]
    out = scene.copy()
    for b in range(BANDS):
        z, s = [], []
        for k, j in enumerate(usable):
            v = scene[b][counts[:, j], j]
            s.append(v.std())
            if method in ("moment", "median"):
                z.append(v.mean() if method == "moment" else np.median(v))
                continue
            step = 0
            if k:
                i = usable[k - 1]
                both = counts[:, i] & counts[:, j]
                p, q = scene[b][both, i], scene[b][both, j]
                if method == "ratio":
                    good = (p > 0) & (q > 0)
                    p, q = np.log(p[good]), np.log(q[good])
                step = np.median(q - p) if len(p) >= 20 else 0
            z.append((z[-1] if z else 0) + step)
        z, s = np.array(z), np.array(s)
        m, spread = low_pass(usable, z, window), low_pass(usable, s, window)
        for k, j in enumerate(usable):
            x = scene[b, :, j]
            if method == "ratio":
                out[b, :, j] = x * np.exp(m[k] - z[k])
            else:
                factor = spread[k] / s[k] if method == "moment" and s[k] > 0 and spread[k] > 0 else 1
                out[b, :, j] = (x - z[k]) * factor + m[k]
    return out


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("words", [(), ("-window", "31"), ("-mask",)], ids=["plain", "window", "mask"])
def test_values_are_those_of_the_reference(files, tmp_path, method, words):
    counted = read(files / "mask.tif")[0] != 0 if words == ("-mask",) else None
    given = ("-mask", files / "mask.tif") if counted is not None else words
    succeed(destripe("-method", method, *given, files / "scene.img", tmp_path / "d.tif"))
    expected = reference(read(files / "scene.img"), method, 31 if words == ("-window", "31") else 15, counted)
    got = read(tmp_path / "d.tif")
    assert np.allclose(got, expected, rtol=1e-6, atol=1e-4, equal_nan=True)


@pytest.mark.parametrize("method", METHODS)
def test_computed_scenes_pipelines_tiles_and_threads_have_the_same_bits(files, tmp_path, method):
    asked = ("-method", method)
    succeed(destripe(*asked, files / "scene.img", tmp_path / "a.tif"))
    expected = read(tmp_path / "a.tif")
    for k, options in enumerate([("-threads", "3"), ("-memory", "8M"), ("-of", "HSI")]):
        path = tmp_path / f"{k}.{'hsi' if 'HSI' in options else 'tif'}"
        succeed(destripe(*asked, *options, files / "scene.img", path))
        if path.suffix == ".hsi":
            subprocess.run(["gdal_translate", "-q", path, tmp_path / f"{k}.tif"], check=True,
                           env={**os.environ, "GDAL_DRIVER_PATH": str(PLUGINS)})
            path = tmp_path / f"{k}.tif"
        assert np.array_equal(read(path), expected, equal_nan=True), options
    succeed(run("gdal_hsi_pipeline", "read", files / "scene.img", "!", "destripe", *asked, "!", "write", tmp_path / "p.tif"))
    assert np.array_equal(read(tmp_path / "p.tif"), expected, equal_nan=True)


def test_a_map_is_warned_of(files, tmp_path):
    write_scene(tmp_path / "map.img", np.nan_to_num(read(files / "scene.img"), nan=5))
    assert "the grid of a map" in succeed(destripe(tmp_path / "map.img", tmp_path / "d.tif")).err


@pytest.mark.parametrize("options, code, first", [
    (("-window", "4"), 2, "-window: '4'"), (("-window", "6"), 2, "-window: 6 is even"), (("-of", "VRT"), 2, "-of VRT"),
    (("-srcwin", "0", "0", "3", "57"), 1, "but 3 are needed"), (("-srcwin", "0", "0", "70", "19"), 1, "but 3 are needed")])
def test_bad_input(files, tmp_path, options, code, first):
    out = destripe(*options, files / "scene.img", tmp_path / "bad.tif")
    assert out.code == code and first in first_error(out), out.err
    assert not list(tmp_path.iterdir())
