# SPDX-License-Identifier: MIT
"""gdal_hsi_info: what it tells of places, wavelengths and values, and the commands that it proposes, which must run."""

import json
import shlex

import numpy as np
import pytest
from osgeo import osr

from conftest import cube, run, succeed, write_scene


def info(*args):
    return json.loads(succeed(run("gdal_hsi_info", "-json", *args)).out)


def text_of(*args):
    return succeed(run("gdal_hsi_info", *args)).out


def test_epsg_and_extent(tmp_path):
    scene = write_scene(tmp_path / "s.tif", cube(9, 7, 3), driver="GTiff", epsg=32633,
                        geotransform=(300000, 30, 0, 5800000, 0, -30))
    facts = info(scene)
    assert facts["epsg"] == 32633 and facts["extent"] == [300000, 5800000 - 7 * 30, 300000 + 9 * 30, 5800000]
    assert "WGS 84 / UTM zone 33N (EPSG:32633)" in text_of(scene)
    assert "300000 to 300270, 5799790 to 5800000 (x, y)" in text_of(scene)
    # Of the window.
    assert info("-srcwin", 2, 3, 4, 2, scene)["extent"] == [300060, 5800000 - 150, 300180, 5800000 - 90]
    # Rotated: corners by hand.
    gt = (100, 3, 2, 50, 1, -4)
    rotated = write_scene(tmp_path / "r.tif", cube(9, 7, 3), driver="GTiff", geotransform=gt)
    corners = [(gt[0] + x * gt[1] + y * gt[2], gt[3] + x * gt[4] + y * gt[5]) for x in (0, 9) for y in (0, 7)]
    low, high = np.min(corners, axis=0), np.max(corners, axis=0)
    assert info(rotated)["extent"] == [*low, *high]


def test_an_srs_that_does_not_say_its_code(tmp_path):
    """ENVI's headers have ESRI's WKT, without codes."""
    scene = write_scene(tmp_path / "s.img", cube(9, 7, 3), epsg=32616)
    assert info(scene)["epsg"] == 32616
    own = write_scene(tmp_path / "own.tif", cube(9, 7, 3), driver="GTiff", epsg=None)
    srs = osr.SpatialReference()
    srs.SetFromUserInput("+proj=laea +lat_0=11 +lon_0=22 +x_0=33 +y_0=44 +ellps=bessel")
    from osgeo import gdal
    dataset = gdal.Open(str(own), gdal.GA_Update)
    dataset.SetSpatialRef(srs)
    del dataset
    assert info(own)["epsg"] is None and "EPSG" not in text_of(own).split("Next:")[0]
    bare = write_scene(tmp_path / "bare.tif", cube(9, 7, 3), driver="GTiff", epsg=None, geotransform=None)
    assert info(bare)["epsg"] is None and info(bare)["extent"] is None and "no SRS" in text_of(bare)


def test_wavelengths_out_of_order(tmp_path):
    nm = [450, 500, 550, 545, 550, 600]
    scene = write_scene(tmp_path / "s.img", cube(9, 7, 6), wavelengths=nm)
    assert info(scene)["wavelengths_out_of_order"] == [4, 5]
    assert "450 to 600 nm; not above one before: band 4,5" in text_of(scene)
    assert info("-b", "1-3,6", scene)["wavelengths_out_of_order"] == []


@pytest.mark.parametrize("interleave", ["BSQ", "BIP"])
def test_empty_bands_and_extremes(tmp_path, interleave):
    data = np.random.default_rng(3).normal(100, 900, (7, 31, 37)).astype(np.float32)
    data[[2, 5]] = -9999
    data[:, 4, 9] = -9999
    data[1, 5, 6] = np.nan  # so that the pixel is none that counts
    data[0, 5, 6] = 1e9
    data[[0, 1, 3, 4, 6], 8, 8] = 0
    scene = write_scene(tmp_path / "s.img", data, nodata=-9999, options=[f"INTERLEAVE={interleave}"])
    kept = [0, 1, 3, 4, 6]
    valid = np.isfinite(data[kept]).all(axis=0) & (data[kept] != -9999).all(axis=0) & (data[kept] != 0).any(axis=0)
    pixels = data[kept][:, valid]
    for args in (("-extremes",), ("-extremes", "-tile", 8, 5, "-threads", 3), ("-extremes", "-count")):
        facts = info(*args, scene)
        assert facts["empty_bands"] == [3, 6] and facts["counted_bands"] == [1, 2, 4, 5, 7]
        assert facts["valid_pixels"] == valid.sum() == 31 * 37 - 3
        assert facts["minimum"] == pixels.min(axis=1).tolist() and facts["maximum"] == pixels.max(axis=1).tolist()
        assert np.allclose(facts["mean"], pixels.mean(axis=1, dtype=np.float64), rtol=1e-6)
    facts = info("-count", scene)
    assert facts["empty_bands"] == [3, 6] and "minimum" not in facts
    assert "empty_bands" not in info(scene), "not without a pass"
    text = text_of("-extremes", scene)
    assert "Empty bands:    3,6 (" in text and f"Band 4:         {pixels[2].min():.6g} to {pixels[2].max():.6g}, mean" in text
    whole = write_scene(tmp_path / "whole.img", data[kept])
    assert info("-count", whole)["empty_bands"] == [] and "Empty bands:    none" in text_of("-count", whole)


def commands(*args, cwd):
    facts = json.loads(succeed(run("gdal_hsi_info", "-json", *args, cwd=cwd)).out)
    return facts.get("next", [])


@pytest.mark.parametrize("name", ["s.img", "it's a scene.img", "s;x $HOME.img"])
def test_the_next_commands_run(tmp_path, name):
    write_scene(tmp_path / name, cube(20, 15, 12))
    (tmp_path / f"{name[:-4]}_pca.tif").write_text("is there")
    proposed = commands(name, cwd=tmp_path)
    assert [shlex.split(c)[0] for c in proposed] == ["gdal_hsi_info", "gdal_hsi_vd", "gdal_hsi_pca"]
    for command in proposed:
        tool, *args = shlex.split(command)
        succeed(run(tool, *args, cwd=tmp_path))
    assert (tmp_path / f"{name[:-4]}_pca_2.tif").exists()
    assert (tmp_path / f"{name[:-4]}_pca.tif").read_text() == "is there"
    shown = succeed(run("gdal_hsi_info", name, cwd=tmp_path)).out.split("Next:")[1].split("\n")
    assert "gdal_hsi_info -count" in shown[0] and "gdal_hsi_vd" in shown[1]


def test_what_was_seen_decides(tmp_path):
    single = write_scene(tmp_path / "one.tif", cube(20, 15, 1), driver="GTiff")
    assert [shlex.split(c)[0] for c in commands(single, cwd=tmp_path)] == ["gdal_hsi_info"]
    assert commands("-count", single, cwd=tmp_path) == []
    few = write_scene(tmp_path / "few.tif", cube(20, 15, 4), driver="GTiff")
    assert "-nc 4 " in commands("-count", few, cwd=tmp_path)[-1]
    assert " -if GTiff " in commands("-if", "GTiff", few, cwd=tmp_path)[0]
