# SPDX-License-Identifier: MIT
"""gdal_hsi_info: its report describes the scene as it was made, and its plans equal the tools' plans."""

import json

import numpy as np
import pytest

import product_files
from conftest import cube, first_error, real_scene, run, succeed, write_scene


def info(*args):
    return json.loads(succeed(run("gdal_hsi_info", "-json", *args)).out)


@pytest.fixture
def scene(tmp_path):
    """Makes 30 x 20 pixels and 12 bands, three of them bad, with five pixels without a value."""
    path = tmp_path / "scene.img"
    succeed(run("gdal_hsi_synth", "-q", "-size", 30, 20, 12, "-bad-bands", 3, "-nodata-stripe", 4, 1, "-of", "ENVI", path))
    return path


@pytest.mark.quick
def test_tells_what_the_scene_is_made_of(scene):
    facts = info("-count", scene)
    assert facts["size"] == [30, 20, 9] and facts["driver"] == "ENVI"
    assert len(facts["bad_bands"]) == 3 and len(facts["bands"]) == 9
    assert not set(facts["bands"]) & set(facts["bad_bands"])
    assert len(facts["wavelengths_nm"]) == 9 and all(300 < w < 2600 for w in facts["wavelengths_nm"])
    assert facts["valid_pixels"] == 29 * 20
    assert len(facts["mean"]) == 9
    assert facts["access"] == "raw" and "UTM" in facts["srs_wkt"]
    everything = info("-bbl", "ignore", scene)
    assert everything["size"] == [30, 20, 12] and everything["bad_bands"] == facts["bad_bands"]
    assert info("-b", "2-4", "-srcwin", 1, 2, 5, 6, scene)["size"] == [5, 6, 3]


def test_a_scene_without_anything_is_told_plainly(tmp_path):
    path = tmp_path / "bare.tif"
    write_scene(path, cube(10, 8, 2))
    facts = info(path)
    assert facts["nodata"] is None and facts["bad_bands"] == []
    assert facts["size"] == [10, 8, 2]
    text = succeed(run("gdal_hsi_info", path)).out
    assert "Wavelengths:    unknown" in text and "Nodata:         none" in text


def test_one_thing_is_not_told_as_many(tmp_path):
    data = cube(9, 8, 4)
    data[:, 2, 3] = -9
    scene = write_scene(tmp_path / "s.img", data, nodata=-9)
    text = succeed(run("gdal_hsi_info", "-srcwin", 0, 0, 5, 1, "-b", 2, "-plan", scene)).out
    assert "5 samples, 1 line, 1 band;" in text and "1 component, 8 copies" in text, text
    assert "1 of 72 pixels is invalid" in succeed(run("gdal_hsi_pca", scene, tmp_path / "y.tif")).out
    assert "9 samples, 8 lines, 4 bands;" in succeed(run("gdal_hsi_info", scene)).out
    result = run("gdal_hsi_pca", "-b", 2, "-nc", 2, scene, tmp_path / "z.tif")
    assert result.code != 0 and "1 band " in result.err and "1 bands" not in result.err, result.err


def test_the_plans_are_the_tools_own(scene, tmp_path):
    common = ("-memory", "24MB", "-threads", 2)
    plans = info("-plan", *common, scene)["plans"]
    assert set(plans) == {"spp", "pca", "vd", "eadp", "atdca", "sahic", "regularize", "unmix", "detect", "mnf",
                          "endmembers", "profile"}
    for tool, name, more in (("spp", "displacement", ()), ("vd", "covariance", ())):
        report = tmp_path / (tool + ".json")
        outputs = [] if tool == "vd" else [tmp_path / "y.tif"]
        succeed(run("gdal_hsi_" + tool, "-q", "-dry-run", "-device" if tool != "vd" else "-q",
                    *(["cpu"] if tool != "vd" else []), "-report", report, *common, *more, scene, *outputs))
        plan = json.loads(report.read_text())["plan"][name]
        assert plans[tool]["tiles"] == plan["tiles"]
        assert plans[tool]["buffer_bytes"] == plan["buffer_bytes"]
    for tool, name in (("mnf", "covariances"), ("endmembers", "moments"), ("detect", "background")):
        report = tmp_path / (tool + ".json")
        more = ("-t", 3) if tool == "endmembers" else ()
        succeed(run("gdal_hsi_" + tool, "-q", "-dry-run", "-report", report, *more, *common, scene,
                    tmp_path / ("y.gpkg" if tool == "endmembers" else "y.tif")))
        plan = json.loads(report.read_text())["plan"][name]
        assert plans[tool]["tiles"] == plan["tiles"]
        assert plans[tool]["buffer_bytes"] == plan["buffer_bytes"]
    report = tmp_path / "profile.json"
    succeed(run("gdal_hsi_profile", "-q", "-dry-run", "-device", "cpu", "-report", report, *common, scene,
                tmp_path / "y.tif"))
    plan = json.loads(report.read_text())["plan"]["profile"]
    assert plans["profile"]["buffer_bytes"] == plan["workers"] * plan["side_bytes"]


def test_what_does_not_fit_is_said(scene):
    plans = info("-plan", "-memory", "300kB", scene)["plans"]
    assert all(p["tiles"] > 0 or "memory" in p["what"] for p in plans.values()), plans


@pytest.mark.quick
def test_bad_input(tmp_path):
    result = run("gdal_hsi_info", tmp_path / "none.img")
    assert result.code == 1 and "none.img" in first_error(result)
    assert run("gdal_hsi_info").code == 2


def test_a_real_scene():
    facts = info("-count", real_scene("jasper_ridge/jasper_ridge.img"))
    assert facts["size"][2] >= 100 and facts["valid_pixels"] > 0
    assert np.isfinite([m for m in facts["mean"] if m is not None]).all()


def test_only_commands_that_run_are_suggested(tmp_path):
    """A product in sensor geometry can be orthorectified only if it has a lookup table."""
    pytest.importorskip("netCDF4")
    values = np.random.default_rng(1).uniform(0.1, 0.6, (20, 8, 6)).astype("f4")
    y, x = np.mgrid[1:13, 1:13].astype("i4")
    inside = (y <= 8) & (x <= 6)
    for drop, suggested in (((), True), (("glt",), False)):
        folder = tmp_path / str(suggested)
        folder.mkdir()
        path = product_files.emit(folder, values, glt=(np.where(inside, x, 0), np.where(inside, y, 0)), drop=drop).rename(folder / "emit.nc")
        commands = info(path)["next"]
        assert any("orthorectify" in one for one in commands) == suggested
        result = run("gdal_hsi_orthorectify", "-q", path, folder / "o.tif")
        assert (result.code == 0) == suggested, result.err
