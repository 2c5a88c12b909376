# SPDX-License-Identifier: MIT
"""Our outputs in QGIS, run without a screen (Debian: python3-qgis). Skipped if QGIS is missing."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from osgeo import gdal

from conftest import PLUGINS, ROOT, cube, real_scene, run, spp, succeed, write_utm_scene as write_scene
from test_classification import COLOURS, NAMES, scene_of, truth, write_labels

gdal.UseExceptions()

if subprocess.run([sys.executable, "-c", "import qgis.core"], capture_output=True, check=False).returncode != 0:
    pytest.skip("no QGIS with Python bindings on this machine (python3-qgis)", allow_module_level=True)


def open_in_qgis(raster, picture, *options):
    run = subprocess.run([sys.executable, ROOT / "tests" / "qgis" / "open_in_qgis.py", raster, picture, *options],
                         capture_output=True, text=True, timeout=300, check=False)
    lines = [line for line in run.stdout.splitlines() if line.startswith("QGIS ")]
    assert lines, run.stderr
    return json.loads(lines[-1][5:])


def test_panning_over_a_scene_that_computes(tmp_path):
    """A window on the screen computes only the pixels that it shows and that are not kept; the picture equals the
    file's."""
    scene = write_scene(tmp_path / "scene.img", cube(samples=900, lines=700, bands=4), wavelengths=[400, 500, 600, 700])
    for name in ("a.hsi", "a.tif"):
        assert run("gdal_hsi_detect", "-q", "-device", "cpu", "-method", "ace", "-target-pixel", "5", "5", scene,
                   tmp_path / name).code == 0
    told, pictures = {}, {}
    for name in ("a.hsi", "a.tif"):
        picture = tmp_path / f"{name}.png"
        looked = subprocess.run([sys.executable, ROOT / "tests" / "qgis" / "look_in_qgis.py", tmp_path / name, "100,90,400,300",
                                 "100,90,400,300", "160,90,400,300", "--picture", picture], capture_output=True, text=True,
                                timeout=300, check=False, env={**os.environ, "GDAL_DRIVER_PATH": str(PLUGINS)})
        lines = [line for line in looked.stdout.splitlines() if line.startswith("LOOKED ")]
        assert lines, looked.stderr
        told[name] = [one["computed"] for one in json.loads(lines[-1][7:])]
        pictures[name] = gdal.Open(str(picture)).ReadAsArray()
    first, again, beside = told["a.hsi"]
    block = 128 ** 2
    assert told["a.tif"] == [0, 0, 0]
    assert 16 * block <= first <= 25 * block and again == 0 and 0 < beside <= 5 * block
    assert (pictures["a.hsi"] == pictures["a.tif"]).all() and len(np.unique(pictures["a.tif"])) > 10


@pytest.mark.parametrize("name, options", [("out.tif", []), ("out.dat", ["-of", "ENVI"])])
def test_layer_is_valid_in_its_place_with_names_and_wavelengths(tmp_path, name, options):
    lines, samples, bands = 40, 30, 12
    rng = np.random.default_rng(5)
    values = (1 + rng.random((bands, lines, samples))).astype(np.float32)
    values[:, 10:14, 5:9] = -9999
    path = str(tmp_path / "scene.dat")
    scene = gdal.GetDriverByName("ENVI").Create(path, samples, lines, bands, gdal.GDT_Float32)
    scene.SetGeoTransform((500000, 30, 0, 5000000, 0, -30))
    scene.SetProjection("EPSG:32633")
    for b in range(bands):
        band = scene.GetRasterBand(b + 1)
        band.WriteArray(values[b])
        band.SetDescription(f"channel {b}")
        band.SetNoDataValue(-9999)
    del band, scene
    header = tmp_path / "scene.hdr"
    header.write_text(header.read_text() + "wavelength units = Nanometers\nwavelength = {"
                      + ", ".join(str(450 + 20 * b) for b in range(bands)) + "}\n")
    out = tmp_path / name
    assert spp(path, out, *options).code == 0
    facts = open_in_qgis(out, tmp_path / "picture.png", "--bands", "11", "6", "1")
    assert facts["valid"]
    assert facts["crs"] == "EPSG:32633"
    assert facts["extent"] == [500000, 5000000 - 30 * lines, 500000 + 30 * samples, 5000000]
    assert (facts["width"], facts["height"], facts["bands"]) == (samples, lines, bands)
    assert facts["nodata"] == -9999
    for b in range(bands):
        assert f"channel {b}" in facts["band_names"][b]
    assert facts["html_metadata"].count("wavelength") >= bands
    assert facts["colours_seen"] > 50
    assert (tmp_path / "picture.png").stat().st_size > 1000


def check_points(scene, layer, picture, targets):
    """The layer of targets opens with its raster, and each point is on its pixel: QGIS's identify tool returns that
    pixel's values there, and the picture shows the marker."""
    facts = open_in_qgis(scene, picture, "--vector", layer)
    vector = facts["vector"]
    assert vector["valid"] and vector["features"] == targets
    assert {"rank", "line", "sample", "score", "lon", "lat"} <= set(vector["fields"])
    dataset = gdal.Open(str(scene))
    for point in vector["points"]:
        line, sample = int(point["fields"]["line"]), int(point["fields"]["sample"])
        want = [dataset.GetRasterBand(b + 1).ReadAsArray(sample, line, 1, 1)[0, 0] for b in range(dataset.RasterCount)]
        assert np.allclose(point["values"], want), f"line {line} sample {sample}"
        assert point["colour"] == [255, 0, 255]
    return facts


@pytest.mark.parametrize("name", ["targets.gpkg", "targets.geojson", "targets.shp"])
def test_targets_lie_on_their_pixels(tmp_path, name):
    # QGIS resamples rotated scenes before it displays them, so this test excludes them.
    scene = write_scene(tmp_path / "scene.tif", cube(seed=3), driver="GTiff", geotransform=(500000, 18, 0, 4480000, 0, -25))
    succeed(run("gdal_hsi_atdca", "-q", "-device", "cpu", "-t", 8, scene, tmp_path / name))
    facts = check_points(scene, tmp_path / name, tmp_path / "picture.png", 8)
    assert facts["crs"] == "EPSG:32616"
    # GeoJSON is in degrees for every scene; QGIS transforms the points back to their pixels.
    assert facts["vector"]["crs"] in (("OGC:CRS84", "EPSG:4326") if name.endswith("geojson") else ("EPSG:32616",))


@pytest.mark.parametrize("name", ["indian_pines/indian_pines.img", "jasper_ridge/jasper_ridge.img"])
def test_targets_of_a_real_scene_lie_on_their_pixels(tmp_path, name):
    scene = real_scene(name)
    succeed(run("gdal_hsi_atdca", "-q", "-device", "cpu", "-t", 12, scene, tmp_path / "t.gpkg"))
    check_points(scene, tmp_path / "t.gpkg", tmp_path / "picture.png", 12)


def test_map_of_targets_shows_its_legend(scene, tmp_path):
    succeed(run("gdal_hsi_atdca", "-q", "-device", "cpu", "-t", 4, "-max-angle", 3, "-map", tmp_path / "m.tif", scene,
                tmp_path / "t.gpkg"))
    facts = open_in_qgis(tmp_path / "m.tif", tmp_path / "picture.png")
    assert facts["renderer"] == "paletted"
    assert len([entry for entry in facts["legend"] if entry]) >= 4


def test_class_map_of_sahic_shows_its_legend(tmp_path):
    field = truth(90, 80)
    write_scene(tmp_path / "scene.tif", scene_of(field, noise=500.0), driver="GTiff",
                geotransform=(500000, 20, 0, 4480000, 0, -20))
    few = np.where(np.random.default_rng(4).uniform(size=field.shape) < 0.05, field, 0).astype(np.uint8)
    write_labels(tmp_path / "labels.tif", few)
    succeed(run("gdal_hsi_sahic", "-q", "-device", "cpu", "-probabilities", tmp_path / "p.tif", "-confidence",
                tmp_path / "c.tif", tmp_path / "scene.tif", tmp_path / "labels.tif", tmp_path / "m.tif"))
    facts = open_in_qgis(tmp_path / "m.tif", tmp_path / "picture.png")
    assert facts["valid"] and facts["crs"] == "EPSG:32616" and facts["nodata"] == 0
    assert facts["renderer"] == "paletted"
    assert [name for name in facts["legend"] if name in NAMES] == NAMES
    assert facts["extent"] == [500000, 4480000 - 20 * 80, 500000 + 20 * 90, 4480000]
    # The picture has only the classes' own colours.
    picture = gdal.Open(str(tmp_path / "picture.png")).ReadAsArray()[:3].reshape(3, -1).T
    colours, counts = np.unique(picture, axis=0, return_counts=True)
    seen = {tuple(int(v) for v in c) for c, n in zip(colours, counts) if n > 0.01 * counts.sum()}
    assert seen == {colour[:3] for colour in COLOURS}
    facts = open_in_qgis(tmp_path / "p.tif", tmp_path / "p.png", "--bands", "1", "2", "3")
    assert facts["bands"] == 3
    for name, band in zip(NAMES, facts["band_names"]):
        assert f"P({name})" in band
    assert open_in_qgis(tmp_path / "c.tif", tmp_path / "c.png")["bands"] == 1


def test_class_map_of_a_real_scene_shows_its_legend(tmp_path):
    scene, labels = real_scene("indian_pines/indian_pines.img"), real_scene("indian_pines/indian_pines_gt.tif")
    succeed(run("gdal_hsi_sample", "-q", "-n", 15, labels, tmp_path / "train.tif", tmp_path / "test.tif"))
    succeed(run("gdal_hsi_sahic", "-q", "-device", "cpu", scene, tmp_path / "train.tif", tmp_path / "m.tif"))
    facts = open_in_qgis(tmp_path / "m.tif", tmp_path / "picture.png")
    assert facts["renderer"] == "paletted"
    # These labels have no names. A GeoTIFF of bytes has 256 colours, so QGIS lists the unused numbers after the labels.
    assert facts["legend"][:17] == ["Unclassified", *(str(c) for c in range(1, 17))]
    assert facts["colours_seen"] >= 10
