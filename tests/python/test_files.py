# SPDX-License-Identifier: MIT
"""Files in child processes: run(), info(), and functions whose scene is a path."""
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from conftest import ROOT, cube, read, write_scene

import gdal_hsi as hsi


@pytest.fixture
def scene(tmp_path):
    values = cube(24, 20, 8)
    write_scene(tmp_path / "scene.dat", values, wavelengths=list(range(400, 800, 50)))
    return tmp_path / "scene.dat", values


@pytest.mark.quick
def test_run(scene, tmp_path):
    path, values = scene
    shares = []
    hsi.run("spp", path, tmp_path / "y.tif", ws=5, overwrite=True, progress=shares.append)
    np.testing.assert_array_equal(read(tmp_path / "y.tif"), hsi.spp(values, ws=5))
    assert shares and shares[-1] == 1.0
    assert "Virtual dimensionality: " in hsi.run("vd", path)
    hsi.run("pca", path, tmp_path / "c.tif", nc=2, model=tmp_path / "m.json", co=["COMPRESS=DEFLATE", "PREDICTOR=3"])
    assert hsi.Model.load(tmp_path / "m.json").document["format"] == "gdal_hsi_pca"


@pytest.mark.quick
def test_errors_of_tools(scene, tmp_path):
    path, _ = scene
    with pytest.raises(hsi.UsageError) as caught:
        hsi.run("spp", path, tmp_path / "y.tif", ws=6)
    assert caught.value.message == "-ws: 6 is not a window size" and "odd number" in caught.value.advice
    with pytest.raises(hsi.Error, match="nowhere") as caught:
        hsi.run("spp", "/nowhere/a.dat", tmp_path / "y.tif")
    assert not isinstance(caught.value, hsi.UsageError)
    with pytest.raises(hsi.UsageError, match="unknown tool"):
        hsi.run("spq", path)
    assert not (tmp_path / "y.tif").exists()


def test_info(scene):
    facts = hsi.info(scene[0])
    assert facts["size"] == [24, 20, 8] and facts["driver"] == "ENVI"


def test_functions_on_paths(scene, tmp_path):
    path, values = scene
    assert hsi.spp(path, ws=5, out=tmp_path / "y.tif") == tmp_path / "y.tif"
    np.testing.assert_array_equal(read(tmp_path / "y.tif"), hsi.spp(values, ws=5))
    result = hsi.spp(str(path), out=tmp_path / "z.tif", alpha=tmp_path / "alpha.tif")
    assert result.alpha == tmp_path / "alpha.tif" and result.report["valid_pixels"] == 480
    assert hsi.vd(path)["virtual_dimensionality"] == hsi.vd(values, wavelengths=range(400, 800, 50))["virtual_dimensionality"]
    model = hsi.pca(values, nc=2, model=True, wavelengths=range(400, 800, 50)).model
    hsi.pca(path, apply=model, out=tmp_path / "c.tif")
    np.testing.assert_array_equal(read(tmp_path / "c.tif"), hsi.pca(values, nc=2))


def test_what_is_refused(scene, tmp_path):
    path, values = scene
    with pytest.raises(hsi.UsageError, match="out does not name them"):
        hsi.spp(path)
    with pytest.raises(hsi.UsageError, match="band_axis"):
        hsi.spp(path, out=tmp_path / "y.tif", band_axis=-1)
    with pytest.raises(hsi.UsageError, match="is an array, but src is a path"):
        hsi.spp(path, out=tmp_path / "y.tif", mask=np.ones((20, 24)))
    with pytest.raises(hsi.UsageError, match="alpha=True"):
        hsi.spp(path, out=tmp_path / "y.tif", alpha=True)
    with pytest.raises(hsi.UsageError, match="is a path, but src is an array"):
        hsi.spp(values, mask=path)


def test_options_of_paths(scene, tmp_path):
    """Options accept the same types as for arrays, and invalid values are refused before the child starts."""
    path, values = scene
    expected = hsi.spp(values[1:4], ws=3, srcwin=(2, 1, 9, 8))
    for k, (ws, bands, window) in enumerate([(np.int8(3), np.array([2, 3, 4]), np.array([2, 1, 9, 8])), (np.array(3), range(2, 5), (2, 1, 9, 8)),
                                             (3.0, [2, 3, 4], [2.0, 1, 9, 8])]):
        hsi.spp(path, out=tmp_path / f"{k}.tif", ws=ws, b=bands, srcwin=window, nodata=np.float32("nan"))
        np.testing.assert_array_equal(read(tmp_path / f"{k}.tif"), expected)
        hsi.run("spp", path, os.fsencode(tmp_path / f"r{k}.tif"), ws=ws, b=bands, srcwin=window)
        np.testing.assert_array_equal(read(tmp_path / f"r{k}.tif"), expected)
    out = tmp_path / "out.tif"
    for word, call in [("ws: True", lambda: hsi.spp(path, out=out, ws=True)), ("ws: nan", lambda: hsi.spp(path, out=out, ws=np.nan)),
                       ("nodata=False", lambda: hsi.spp(path, out=out, nodata=False)), ("nodata='x'", lambda: hsi.spp(path, out=out, nodata="x")),
                       ("wavelengths applies to arrays", lambda: hsi.spp(path, out=out, wavelengths=np.arange(8))),
                       ("vd has no result", lambda: hsi.vd(path, out=out)), ("src is b'", lambda: hsi.spp(b"a.dat", out=out)),
                       ("b: the list is empty", lambda: hsi.run("spp", path, out, b=[])), ("NUL", lambda: hsi.run("spp", path, out, ws="3\0")),
                       ("NUL", lambda: hsi.run("spp", "a\0b", out)), ("ws: True", lambda: hsi.run("spp", path, out, ws=True))]:
        with pytest.raises(hsi.UsageError) as caught:
            call()
        assert word in caught.value.message and caught.value.advice
    with pytest.raises(hsi.Error, match="already exists") as caught:
        hsi.spp(path, out=tmp_path / "0.tif")
    assert caught.value.advice == "Remove it, or use run('spp', ..., overwrite=True), which replaces it."
    assert not out.exists()


def test_without_the_executable(monkeypatch, scene):
    monkeypatch.setenv("HSI_BIN_DIR", "/nowhere")
    with pytest.raises(hsi.Error, match="not found") as caught:
        hsi.info(scene[0])
    assert "HSI_BIN_DIR" in caught.value.advice


def test_no_gdal_is_loaded(scene, tmp_path):
    """Neither arrays nor files load a libgdal into the process."""
    script = f"""
import sys, numpy as np, gdal_hsi as hsi
hsi.spp(np.random.default_rng(1).random((4, 9, 9), dtype=np.float32) + 1)
hsi.spp({str(scene[0])!r}, out={str(tmp_path / "y.tif")!r})
maps = open("/proc/self/maps").read()
assert "libhsi" in maps and "libgdal" not in maps and "libproj" not in maps
assert "xarray" not in sys.modules and "sklearn" not in sys.modules and "osgeo" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", script], stderr=subprocess.PIPE, text=True,
                          env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
    assert done.returncode == 0, done.stderr


def test_beside_gdal_in_one_process(scene):
    from osgeo import gdal
    before = gdal.Open(str(scene[0])).ReadAsArray()
    np.testing.assert_array_equal(hsi.spp(before), hsi.spp(scene[1]))
    np.testing.assert_array_equal(gdal.Open(str(scene[0])).ReadAsArray(), before)


def test_ctrl_c_ends_the_child(tmp_path):
    """The child removes its unfinished files."""
    write_scene(tmp_path / "large.dat", cube(600, 500, 40), wavelengths=None)
    (tmp_path / "out").mkdir()
    script = f"""
import os, signal, sys, threading, gdal_hsi as hsi
def watch(done):
    if done > 0: os.kill(os.getpid(), signal.SIGINT)
try:
    hsi.run("detect", {str(tmp_path / "large.dat")!r}, {str(tmp_path / "out" / "rx.tif")!r}, window=(15, 31), tile=(50, 20), device="cpu", progress=watch)
    sys.exit("it came to its end")
except KeyboardInterrupt:
    pass
"""
    done = subprocess.run([sys.executable, "-c", script], stderr=subprocess.PIPE, text=True, timeout=900,
                          env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
                          preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "out").iterdir()) == []
