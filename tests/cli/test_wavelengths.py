# SPDX-License-Identifier: MIT
"""Bands by wavelength: -b 450-900nm, -b 0.45-0.9um, -b 2100nm, -exclude-range; and comparison of scenes with different
bands at common wavelengths."""

import json

import numpy as np
import pytest

from conftest import cube, first_error, read, run, stored_bytes, succeed, write_scene

NM = [400.5, 500, 600, 700, 800, 890.25, 905, 1340, 1400, 1460, 2090, 2110]


@pytest.fixture
def scene(tmp_path):
    return write_scene(tmp_path / "scene.img", cube(bands=len(NM)), wavelengths=NM, bbl=[1] * 5 + [0] + [1] * 6)


def bands(scene, *options):
    return json.loads(succeed(run("gdal_hsi_info", "-json", *options, scene)).out)["bands"]


@pytest.mark.parametrize("options, wanted", [
    (("-b", "450-900nm"), [2, 3, 4, 5]),
    (("-b", "450-900nm", "-bbl", "ignore"), [2, 3, 4, 5, 6]),
    (("-b", "0.45-0.9um"), [2, 3, 4, 5]),
    (("-b", "450nm-0.9um"), [2, 3, 4, 5]),
    (("-b", "0.45-0.9 UM"), [2, 3, 4, 5]),
    (("-b", "500-700nm"), [2, 3, 4]),  # includes both ends
    (("-b", "2100.5nm"), [12]),
    (("-b", "2.099um"), [11]),
    (("-b", "1,12,700-800nm,3"), [1, 12, 4, 5, 3]),
    (("-b", "600-800nm", "-b", "700-905nm"), [3, 4, 5, 7]),  # without duplicates
    (("-b", "890nm"), [7]),  # the nearer band is marked bad
    (("-exclude-range", "1340-1460nm"), [1, 2, 3, 4, 5, 7, 11, 12]),
    (("-exclude-range", "1.3-1.5um,450-550nm", "-exclude-range", "2090-2090nm"), [1, 3, 4, 5, 7, 12]),
    (("-b", "1-4", "-exclude-range", "590-610nm"), [1, 2, 4]),
    (("-exclude-range", "0-600nm"), [4, 5, 7, 8, 9, 10, 11, 12]),  # all shorter wavelengths
])
def test_bands(scene, options, wanted):
    assert bands(scene, *options) == wanted


def test_outputs_are_those_of_the_same_numbers(scene, tmp_path):
    for name, options in (("a", ("-b", "450-900nm")), ("b", ("-b", "2-5"))):
        succeed(run("gdal_hsi_spp", "-device", "cpu", *options, scene, tmp_path / f"{name}.tif"))
    assert stored_bytes(tmp_path / "a.tif") == stored_bytes(tmp_path / "b.tif")
    assert json.loads(run("gdal_hsi_info", "-json", tmp_path / "a.tif").out)["wavelengths_nm"] == NM[1:5]


def test_the_report_tells(scene, tmp_path):
    report = tmp_path / "r.json"
    succeed(run("gdal_hsi_info", "-b", "450-900nm", "-exclude-range", "590-610nm", "-report", report, scene))
    options = json.loads(report.read_text())["options"]
    assert options["b"] == ["450-900nm"] and options["exclude_range"] == ["590-610nm"]


@pytest.mark.parametrize("options, code, message", [
    (("-b", "450.5-900"), 2, "the unit of the wavelength is missing"),
    (("-b", "900-450nm"), 2, "the range is empty"),
    (("-b", "450-nm"), 2, "is not a wavelength"),
    (("-b", "blue"), 2, "is not a wavelength"),
    (("-b", "450-900cm"), 2, "is not a wavelength"),
    (("-b", "0nm"), 2, "the range is empty"),
    (("-b", "1-13,500nm"), 2, "has bands 1 to 12"),
    (("-b", "910-1300nm"), 1, "no band"),
    (("-b", "3000nm"), 1, "no band"),
    (("-b", "10um"), 1, "the nearest is at 2110 nm"),
    (("-exclude-range", "1340-1460"), 2, "the unit of the wavelength is missing"),
    (("-exclude-range", "1400nm"), 2, "is not a range"),
    (("-exclude-range", "100-3000nm"), 1, "leaves no band"),
])
def test_errors(scene, options, code, message):
    result = run("gdal_hsi_info", *options, scene)
    assert result.code == code and message in first_error(result)


@pytest.mark.parametrize("options", [("-b", "450-900nm"), ("-b", "2100nm"), ("-exclude-range", "1340-1460nm")])
def test_a_scene_without_wavelengths(tmp_path, options):
    plain = write_scene(tmp_path / "plain.tif", cube(), "GTiff")
    result = run("gdal_hsi_vd", *options, plain)
    assert result.code == 1 and "has no wavelengths" in first_error(result)


def test_a_range_without_bands_is_told(scene):
    result = succeed(run("gdal_hsi_vd", "-exclude-range", "3000-3100nm", scene))
    assert "-exclude-range 3000-3100nm: " in result.err and "has no band in this range" in result.err


def compare(*args):
    return run("gdal_hsi_compare", "-metric", "maxabs", "-max-maxabs", 0, *args)


def test_scenes_meet_at_their_wavelengths(tmp_path):
    data = cube(bands=len(NM))
    first = write_scene(tmp_path / "first.tif", data, "GTiff", wavelengths=NM)
    order = [11, 3, 0, 5, 8]
    other = write_scene(tmp_path / "other.tif", data[order], "GTiff", wavelengths=[NM[k] + 0.2 for k in order])
    result = succeed(compare(first, other))
    assert "5 match" in result.out
    succeed(compare(other, first))
    subset = write_scene(tmp_path / "subset.tif", data[2:9], "GTiff", wavelengths=NM[2:9])
    succeed(compare("-tile", 7, 5, first, subset))
    assert compare("-any-wavelengths", first, subset).code == 1  # 12 and 7 bands
    assert compare("-b", "1-5", first, other).code == 1  # band numbers are used unchanged
    strange = write_scene(tmp_path / "strange.tif", data, "GTiff", wavelengths=[w + 5000 for w in NM])
    result = compare(first, strange)
    assert result.code == 1 and "no common wavelengths" in first_error(result)
    succeed(compare("-any-wavelengths", first, strange))


def test_pairs_leave_no_room_for_ranges(scene):
    for options in (("-b", "450-900nm"), ("-exclude-range", "450-900nm"), ("-b", "1-3")):
        result = run("gdal_hsi_compare", "-band", "1:2", *options, scene, scene)
        assert result.code == 2 and "cannot be used with -band" in first_error(result)


def test_all_digits_travel(tmp_path):
    nm = [400.123456, 500.000001, 600.1, 700.25]
    scene = write_scene(tmp_path / "a.img", cube(bands=4), wavelengths=nm, fwhm=[9.876543, 10, 11, 12])
    for extension in ("img", "tif", "nc"):
        out = tmp_path / ("spp." + extension)
        succeed(run("gdal_hsi_spp", "-device", "cpu", "-overwrite", "-of", {"img": "ENVI", "tif": "GTiff", "nc": "netCDF"}[extension],
                    scene, out))
        told = json.loads(run("gdal_hsi_info", "-json", out).out)
        assert told["wavelengths_nm"] == nm
        assert extension == "nc" or told["fwhm_nm"] == [9.876543, 10, 11, 12]  # a band dimension cannot store widths
    assert np.isfinite(read(tmp_path / "spp.tif")).any()
