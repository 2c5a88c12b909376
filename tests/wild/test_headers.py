# SPDX-License-Identifier: MIT
"""ENVI headers as people write them: every common form gives its intended values, or an error with the reason. The
expected values do not come from the tools."""
import json

import numpy as np
import pytest
from conftest import cube, first_error, gdal, run, seen_pixels, succeed
from envi_scenes import NM, braces, facts, fields, small, text_of, warnings, write

# --- long lines ----------------------------------------------------------------------------------------------------------

def long_list(bands):
    """Writes a list on one line, as Spectral Python does."""
    return "{ " + " , ".join(repr(400 + i * 3.3333333333) for i in range(bands)) + " }"


@pytest.mark.parametrize("dtype, interleave", [("<f4", "bip"), (">u2", "bip"), ("<i2", "bil"), (">f4", "bsq")])
@pytest.mark.parametrize("first", [True, False], ids=["in front of all", "behind what tells the layout"])
def test_fields_behind_a_line_that_gdal_does_not_read(tmp_path, dtype, interleave, first):
    bands = 620
    data = np.floor(cube(7, 5, bands)).clip(1, 9000)
    wide = {"wavelength units": "Nanometers", "wavelength": long_list(bands)}
    behind = {"data ignore value": -9999, "reflectance scale factor": 10000,
              "map info": "{UTM, 1, 1, 500000, 4000000, 30, 30, 12, North, WGS-84, units=Meters}",
              "band names": "{" + ",".join(f"n{b}" for b in range(bands)) + "}",
              "bbl": "{" + ",".join(["0"] + ["1"] * (bands - 1)) + "}"}
    layout = fields(data.shape, dtype, interleave)
    header = {**wide, **layout, **behind} if first else {**layout, **wide, **behind}
    path = write(tmp_path, data, text_of(header), dtype=dtype, interleave=interleave)
    seen = facts(path)
    assert seen["size"] == [7, 5, bands - 1] and seen["bad_bands"] == [1]
    assert seen["nodata"] == -9999 and seen["scale"] == [1 / 10000] * (bands - 1)
    assert seen["geotransform"] == [500000, 30, 0, 4000000, 0, -30] and "UTM zone 12N" in seen["srs_wkt"]
    assert seen["band_names"][1].startswith("n2")
    np.testing.assert_allclose(seen["wavelengths_nm"], [400 + i * 3.3333333333 for i in range(1, bands)])
    assert seen["access"] == "raw", "no slower for it"
    # The same pixels, without the effect of a georeference.
    del header["map info"]
    path = write(tmp_path, data, text_of(header), dtype=dtype, interleave=interleave)
    np.testing.assert_array_equal(seen_pixels(path, data.shape, tmp_path, "-bbl", "ignore"), data)


def test_nodata_behind_a_long_line_is_no_value(tmp_path):
    data = cube(10, 12, 620)
    data[:, :4] = -9999
    path = write(tmp_path, data, {"wavelength": long_list(620), "data ignore value": -9999})
    assert facts(path, "-count")["valid_pixels"] == 80


@pytest.mark.parametrize("tool", ["raster", "labels"])
def test_class_names_behind_a_long_line(tmp_path, tool):
    classes = np.random.default_rng(0).integers(1, 4, (1, 8, 9)).astype("u1")
    path = write(tmp_path, classes, {"description": "{" + "long " * 2500 + "}", "file type": "ENVI Classification",
                                     "classes": 4, "class names": "{none, water, wood, soil}",
                                     "class lookup": "{0,0,0, 0,0,255, 0,255,0, 99,66,33}"}, dtype="u1", name="c")
    reference = gdal.GetDriverByName("GTiff").Create(str(tmp_path / "r.tif"), 9, 8)
    reference.GetRasterBand(1).WriteArray(classes[0])
    reference.GetRasterBand(1).SetCategoryNames(["", "soil", "wood", "water"])
    reference = None
    map_, truth = (path, tmp_path / "r.tif") if tool == "raster" else (tmp_path / "r.tif", path)
    result = json.loads(succeed(run("gdal_hsi_accuracy", "-json", map_, truth)).out)
    right = (classes == 2).mean()  # by name: water and soil have exchanged numbers there
    assert abs(result["overall_accuracy"]["value"] - right) < 1e-9 or result["overall_accuracy"] == pytest.approx(right)


def test_an_output_of_such_a_scene_is_read_by_gdal(tmp_path):
    """Fields are copied, in lines that GDAL can read; a field that fits no list is stored in braces."""
    data = cube(6, 5, 4)
    path = write(tmp_path, data, {"wavelength": braces(NM), "history": "step, " * 3000, "sensor type": "x",
                                  "data ignore value": -1})
    succeed(run("gdal_hsi_spp", "-q", path, tmp_path / "out.img", "-of", "ENVI"))
    lines = (tmp_path / "out.hdr").read_bytes().splitlines()
    assert max(map(len, lines)) < 10000
    dataset = gdal.Open(str(tmp_path / "out.img"))
    assert dataset.GetMetadataItem("sensor_type", "ENVI") == "x"
    assert dataset.GetMetadataItem("history", "ENVI").count("step") == 3000
    assert dataset.GetRasterBand(1).GetNoDataValue() == -1


def test_a_vrt_of_a_scene_that_gdal_reads_otherwise_is_refused(tmp_path):
    data = cube(6, 5, 620)
    wide = {"wavelength units": "nm", "wavelength": long_list(620)}
    layout = fields(data.shape, interleave="bip")
    lost = {key: layout.pop(key) for key in ("interleave", "byte order")}
    path = write(tmp_path, data, text_of({**layout, **wide, **lost}), interleave="bip")
    result = run("gdal_hsi_spp", "-of", "VRT", path, tmp_path / "o.vrt")
    assert result.code == 2 and str(path) in first_error(result) and not (tmp_path / "o.vrt").exists()
    # A header made by GDAL lists bands that do not exist.
    gdal.Translate(str(tmp_path / "made.vrt"), str(path), format="VRT")
    result = run("gdal_hsi_info", tmp_path / "made.vrt")
    assert result.code == 1 and str(path) in first_error(result)
    path = write(tmp_path, data, text_of({**layout, **lost, **wide}), interleave="bip")
    succeed(run("gdal_hsi_spp", "-q", "-of", "VRT", path, tmp_path / "o.vrt"))


# --- entries -------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("habit, value", [
    ("plain", braces(NM)), ("double quotes", braces(f'"{v}"' for v in NM)), ("single quotes", braces(f"'{v}'" for v in NM)),
    ("a comment first", "{\n; centres\n" + ",\n".join(map(str, NM)) + "}"),
    ("a comment with commas and a brace", "{\n450,\n  ; two, more } of them\n666.25, 883.5, 1100}"),
    ("comments behind", "{\n450, ; blue\n666.25, ; red\n883.5, ; near, infrared\n1100 ; last\n}"),
    ("a trailing comma", "{450, 666.25, 883.5, 1100,\n}"), ("tabs", "{\t450,\t666.25\t,883.5,\t1100\t}"),
    ("exponents", "{4.5e2, 6.6625E+02, 883.5, 1.1e3}"), ("a comment after the brace", braces(NM) + " ; nm"),
    ("on the next line", "\n" + braces(NM)), ("blank lines", "{\n\n450,\n\n666.25, 883.5,\n\n1100\n}"),
    ("units", "{450 nm, 666.25nm, 883.5 nm, 1100 nm}"), ("no braces", "450, 666.25, 883.5, 1100")])
def test_wavelengths(tmp_path, habit, value):
    path = write(tmp_path, small(), {"wavelength": value, "wavelength units": "Nanometers"})
    assert facts(path)["wavelengths_nm"] == NM
    assert warnings(path) == ""


@pytest.mark.quick
def test_widths_have_the_unit_of_the_wavelengths(tmp_path):
    """Without a stated unit, the wavelengths decide: 9 is a width in nanometres, 0.009 one in micrometres."""
    for k, factor in enumerate([1, 1e-3]):
        lists = {key: "{" + ", ".join(f"{factor * value:g}" for value in values) + "}"
                 for key, values in (("wavelength", NM), ("fwhm", [9, 9, 8, 7]))}
        seen = facts(write(tmp_path, small(), lists))
        assert seen["wavelengths_nm"] == pytest.approx(NM) and seen["fwhm_nm"] == pytest.approx([9, 9, 8, 7])


@pytest.mark.parametrize("entry", ["N/A", "NA", "", "nan", "unknown", "-", "inf", '"N/A"', "1.2.3"])
def test_a_wavelength_that_is_no_number_is_unknown(tmp_path, entry):
    path = write(tmp_path, small(), {"wavelength": f"{{450, {entry}, 883.5, 1100}}", "fwhm": f"{{9, {entry}, 8, 7}}",
                                     "wavelength units": "Nanometers"})
    seen = facts(path)
    assert seen["wavelengths_nm"] == [450, None, 883.5, 1100] and seen["fwhm_nm"] == [9, None, 8, 7]
    told = warnings(path)
    assert "'wavelength' has" in told and "'fwhm' has" in told and "band 2" in told
    # The output's list has no gaps: a missing wavelength is 0, which is read as unknown.
    succeed(run("gdal_hsi_spp", "-q", "-of", "ENVI", path, tmp_path / "o.img"))
    assert facts(tmp_path / "o.img")["wavelengths_nm"] == [450, None, 883.5, 1100]


def in_items(path, scene, wavelengths, widths, units):
    """Writes the scene as a GTiff with band items."""
    gdal.Translate(str(path), str(scene))
    dataset = gdal.Open(str(path), gdal.GA_Update)
    for b, (nm, width) in enumerate(zip(wavelengths, widths), 1):
        for key, value in (("wavelength", nm), ("fwhm", width), ("wavelength_units", units)):
            dataset.GetRasterBand(b).SetMetadataItem(key, str(value))
    del dataset
    return path


@pytest.mark.parametrize("key", ["wavelength", "fwhm"])
def test_a_negative_entry_is_unknown(tmp_path, key):
    lists = {"wavelength": list(NM), "fwhm": [9, 9, 8, 7]}
    lists[key][1] *= -1
    path = write(tmp_path, small(), {**{k: braces(v) for k, v in lists.items()}, "wavelength units": "Nanometers"})
    name = "wavelengths_nm" if key == "wavelength" else "fwhm_nm"
    assert [v is None for v in facts(path)[name]] == [False, True, False, False]
    told = warnings(path)
    assert f"the list '{key}' has '-" in told and "for band 2, which is not a number above 0: the value is unknown there" in told


def test_a_negative_width_among_the_items_of_a_band_is_unknown(tmp_path):
    path = write(tmp_path, small())
    tif = in_items(tmp_path / "t.tif", path, NM, [9, -9, 8, -7], "Nanometers")
    assert facts(tif)["fwhm_nm"] == [9, None, 8, None]
    assert "band 2 has the width -9 (and 1 more such value), which is not a number above 0: the width is unknown there" in warnings(tif)
    succeed(run("gdal_hsi_spp", "-q", tif, tmp_path / "o.tif"))
    assert warnings(tmp_path / "o.tif") == "" and facts(tmp_path / "o.tif")["fwhm_nm"] == [9, None, 8, None]


@pytest.mark.parametrize("units, wavelengths, widths, told", [
    ("Micrometers", [2.0, 2.1, 2.2, 2.3], [14, 14, 14, 14], "the width of band 1 is read as 14000 nm"),
    ("Nanometers", [2000, 2100, 2200, 2300], [14, 14, 6100, 14], "the width of band 3 is read as 6100 nm"),
    ("Nanometers", [450, 450, 450, 450], [10, 10, 1000, 10], "the width of band 3 is read as 1000 nm"),
    ("Nanometers", [450, 560, 665, 842], [66, 36, 31, 106], ""),
    ("Nanometers", [450, 451, 452, 453], [10, 10, 10, 10], ""),      # finer than the bands' widths
    ("Nanometers", [550, 550.1, 1600, 1600.1], [900, 900, 900, 900], ""),  # less than all together
    ("Nanometers", [450, 450, 450, 450], [10, 100, 400, 10], ""),
    ("Nanometers", [450, 500, 550, 600], [10, 400, 900, 10], ""),    # one panchromatic band
])
def test_a_width_of_another_unit_is_told(tmp_path, units, wavelengths, widths, told):
    path = write(tmp_path, small(), {"wavelength": braces(wavelengths), "fwhm": braces(widths), "wavelength units": units})
    for scene in (path, in_items(tmp_path / "t.tif", path, wavelengths, widths, units)):
        said = warnings(scene)
        assert (said == "") if told == "" else (told in said and "'wavelength units'" in said), said
    if units == "Micrometers":
        assert "(and 3 more such widths)" in warnings(path)



def test_wavelengths_of_zero_are_unknown(tmp_path):
    path = write(tmp_path, small(), {"wavelength": "{0, 0, 0, 0}", "wavelength units": "Nanometers"})
    assert facts(path)["wavelengths_nm"] == []


@pytest.mark.parametrize("spelling, factor", [
    ("Nanometers", 1), ("nm", 1), ("NM", 1), ("nanometres", 1), ('"nm"', 1), ("{Nanometers}", 1), ("[nm]", 1),
    ("Nanometers (nm)", 1), ("nm.", 1), ("nanometers ; as the camera says", 1), ("Nanómetros", 1), ("Unknown", 1),
    ("", 1), ("micron", 1000), ("Microns", 1000), ("µm", 1000), ("μm", 1000), ("um", 1000), ("Mikrometer", 1000),
    ("micro meters", 1000), ("Micrometers", 1000), ("Millimeters", 1e6), ("Centimeters", 1e7), ("m", 1e9),
    ("Angstroms", 0.1), ("Å", 0.1)])
def test_spellings_of_units(tmp_path, spelling, factor):
    path = write(tmp_path, small(), {"wavelength": braces(repr(v / factor) for v in NM), "wavelength units": spelling})
    np.testing.assert_allclose(facts(path)["wavelengths_nm"], NM, rtol=1e-12)


@pytest.mark.parametrize("spelling, of_nm", [
    ("Wavenumber", lambda v: 1e7 / v), ("cm-1", lambda v: 1e7 / v), ("1/cm", lambda v: 1e7 / v),
    ("Wavenumbers (cm^-1)", lambda v: 1e7 / v), ("GHz", lambda v: 299792458 / v), ("MHz", lambda v: 299792458e3 / v)])
def test_units_that_fall_with_the_wavelength(tmp_path, spelling, of_nm):
    path = write(tmp_path, small(), {"wavelength": braces(repr(of_nm(v)) for v in NM), "wavelength units": spelling,
                                     "fwhm": "{1, 2, 3, 4}"})
    seen = facts(path)
    np.testing.assert_allclose(seen["wavelengths_nm"], NM, rtol=1e-12)
    assert seen["fwhm_nm"] == [], "a width there is no width in nanometres"


def test_an_index_is_no_wavelength(tmp_path):
    path = write(tmp_path, small(), {"wavelength": "{1, 2, 3, 4}", "wavelength units": "Index"})
    assert facts(path)["wavelengths_nm"] == []


@pytest.mark.quick
@pytest.mark.parametrize("value, bad", [
    ('{"1", "0", "1", "1"}', [2]), ("{1.0, 0.0, 1.0, 1.0}", [2]), ("{\n; good?\n1, 0, 1, 1}", [2]),
    ("{true, false, true, true}", [2]), ("{1, N/A, 1, 0}", [4]), ("1, 0, 1, 1", [2])])
def test_bad_band_lists(tmp_path, value, bad):
    path = write(tmp_path, small(), {"bbl": value})
    assert facts(path)["bad_bands"] == bad
    assert ("used as good" in warnings(path)) == ("N/A" in value)


def test_gains(tmp_path):
    for value in ("{\n; gains\n0.5,\n0.25, 2, 1}", '{"0.5", "0.25", "2", "1"}', "{0.5 , 0.25 ; two\n, 2, 1}"):
        for key in ("data gain values", "data reflectance gain values"):
            path = write(tmp_path, small(), {key: value})
            assert facts(path)["scale"] == [0.5, 0.25, 2, 1], value


@pytest.mark.parametrize("key", ["data gain values", "data reflectance gain values"])
@pytest.mark.parametrize("entry", ["N/A", "", "0"])
def test_a_gain_that_is_none(tmp_path, key, entry):
    """It must not be read as 1: the whole list is ignored, with its offsets, and a warning states this, unless the band
    is excluded."""
    header = {key: f"{{0.5, {entry}, 2, 4}}", key.replace("gain", "offset"): "{1, 2, 3, 4}"}
    path = write(tmp_path, small(), header)
    seen = facts(path)
    assert seen["scale"] == [] and seen["offset"] == []
    assert f"'{key}' has '{entry}' for band 2" in warnings(path)
    path = write(tmp_path, small(), {**header, "bbl": "{1, 0, 1, 1}"})
    assert facts(path)["scale"] == [0.5, 2, 4] and facts(path)["offset"] == [1, 3, 4] and warnings(path) == ""


def test_a_scale_factor_that_is_none(tmp_path):
    path = write(tmp_path, small(), {"reflectance scale factor": "10000,0"})
    assert facts(path)["scale"] == [1 / 10000] * 4
    path = write(tmp_path, small(), {"reflectance scale factor": "none"})
    assert facts(path)["scale"] == [] and "reflectance scale factor = none" in warnings(path)


@pytest.mark.parametrize("value, nodata", [
    ("-9999", -9999), ("-9999.0", -9999), ("{-9999}", -9999), ('"-9999"', -9999), ("-9999 ; filler", -9999),
    ("-9999,0", -9999), ("-0,5", -0.5), ("-9.999e+03", -9999), ("\t-9999\t", -9999), ("nan", "nan"), ("none", None),
    ("-9,999", None), ("-9999 -1", None), ("0", 0)])
def test_ignored_values(tmp_path, value, nodata):
    data = small()
    path = write(tmp_path, data, {"data ignore value": value})
    assert facts(path)["nodata"] == nodata
    assert ("is not a number" in warnings(path)) == (nodata is None)
    if isinstance(nodata, (int, float)) and nodata != 0:
        data[:, 2, 3] = nodata
        path = write(tmp_path, data, {"data ignore value": value})
        assert facts(path, "-count")["valid_pixels"] == 29


# --- the text ------------------------------------------------------------------------------------------------------------

HABITS = {
    "a byte-order mark": lambda t: b"\xef\xbb\xbf" + t.encode(),
    "Windows": lambda t: t.replace("\n", "\r\n").encode(),
    "old Macintosh": lambda t: t.replace("\n", "\r").encode(),
    "all of them": lambda t: b"\xef\xbb\xbf" + t.replace("\n", "\r\n").encode("latin-1"),
    "capitals": lambda t: "\n".join(line.split("=")[0].upper() + "=" + line.split("=", 1)[1] if "=" in line else line
                                    for line in t.split("\n")).encode(),
    "tabs": lambda t: t.replace(" = ", "\t=\t").replace("data type", "\tdata\ttype").encode(),
    "blanks": lambda t: t.replace("data type", "  data   type").replace("byte order", " byte  order ").encode(),
    "underscores": lambda t: t.replace("data type", "data_type").replace("wavelength units", "wavelength_units").encode(),
    "no blanks": lambda t: t.replace(" = ", "=").encode(),
    "padding": lambda t: t.encode() + bytes(64),
    "lower case": lambda t: t.replace("ENVI", "envi").encode(),
    "an empty line first": lambda t: ("\n" + t).encode(),
    "quotes": lambda t: t.replace("= bil", '= "bil"').replace("type = 12", "type = '12'").encode(),
    "comments": lambda t: t.replace("= bil", "= bil ; by line").replace("order = 1", "order = 1 ; IEEE").encode(),
    "numbers with a point": lambda t: t.replace("samples = 7", "samples = 7.0").replace("bands = 4", "bands = 4e0").encode(),
    "one field twice": lambda t: t.replace("samples = 7", "samples = 99\nsamples = 7").encode(),
}


@pytest.mark.parametrize("habit", HABITS)
def test_habits_of_writing(tmp_path, habit):
    data = np.floor(cube(7, 5, 4))
    header = {"wavelength units": "Micrometers", "wavelength": braces(v / 1000 for v in NM),
              "band names": "{Blau, Grün, Rot, NIR}", "data ignore value": -7}
    text = HABITS[habit](text_of({**fields(data.shape, ">u2", "bil"), **header}))
    path = write(tmp_path, data, text, dtype=">u2", interleave="bil")
    seen = facts(path)
    assert seen["size"] == [7, 5, 4] and seen["driver"] == "ENVI"
    np.testing.assert_allclose(seen["wavelengths_nm"], NM)
    assert [name.split(" ")[0] for name in seen["band_names"]] == ["Blau", "Grün", "Rot", "NIR"]
    np.testing.assert_array_equal(seen_pixels(path, data.shape, tmp_path), data)
    assert ("'samples' more than once" in warnings(path)) == (habit == "one field twice")
    named = facts(tmp_path / "s.hdr")
    assert [command.replace("s.hdr", "s.dat") for command in named.pop("next")] == seen.pop("next")
    assert named == seen, "and by its header's name"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("named", ["s.dat", "s.hdr"])
def test_utf_16_is_refused_with_its_name(tmp_path, encoding, named):
    write(tmp_path, small(), text_of(fields((4, 5, 6))), encoding=encoding)
    result = run("gdal_hsi_info", tmp_path / named)
    assert result.code == 1 and "UTF-16" in first_error(result), result.err


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-8"])
def test_names_in_any_encoding(tmp_path, encoding):
    """Compares a map with itself, with the same names in another encoding: all pixels agree."""
    classes = np.random.default_rng(0).integers(1, 3, (1, 12, 16)).astype("u1")
    wood = "Wald – Forêt" if encoding != "latin-1" else "Wald; Forêt"
    path = write(tmp_path, classes, {"file type": "ENVI Classification", "classes": 3, "class lookup":
                 "{0,0,0, 255,0,0, 0,255,0}", "class names": f"{{Unclassified, {wood}, Grünland}}"}, dtype="u1", name="c",
                 encoding=encoding)
    reference = gdal.GetDriverByName("GTiff").Create(str(tmp_path / "ref.tif"), 16, 12)
    reference.GetRasterBand(1).WriteArray(classes[0])
    reference.GetRasterBand(1).SetCategoryNames(["", wood, "Grünland"])
    reference = None
    text = succeed(run("gdal_hsi_accuracy", path, tmp_path / "ref.tif")).out
    assert "(OA): 100" in text, text
    scene = write(tmp_path, cube(16, 12, 4), {
        "wavelength": braces(v / 1000 for v in NM), "wavelength units": "µm", "data units": "µW/cm²",
        "band names": "{Blau, Grün, Rot, NIR}", "description": "{Straße}"}, encoding=encoding)
    seen = facts(scene)
    np.testing.assert_allclose(seen["wavelengths_nm"], NM)
    assert seen["unit"] == "µW/cm²" and seen["band_names"][1].startswith("Grün")
    succeed(run("gdal_hsi_spectra", "-q", scene, path, tmp_path / "o.geojson"))
    names = {feature["properties"]["name"] for feature in json.loads((tmp_path / "o.geojson").read_text())["features"]}
    assert names == {wood, "Grünland"}
    succeed(run("gdal_hsi_spp", "-q", "-of", "ENVI", "-report", tmp_path / "r.json", scene, tmp_path / "o.img"))
    assert "Straße" in (tmp_path / "o.hdr").read_text("utf-8")


def test_texts_of_other_formats_that_are_not_utf_8(tmp_path):
    made = gdal.GetDriverByName("GTiff").Create(str(tmp_path / "s.tif"), 6, 5, 4, gdal.GDT_Float32)
    made.WriteArray(small())
    made = None
    vrt = (tmp_path / "s.vrt")
    gdal.Translate(str(vrt), str(tmp_path / "s.tif"), format="VRT")
    text = vrt.read_text().replace('<VRTRasterBand dataType="Float32" band="2">',
                                   '<VRTRasterBand dataType="Float32" band="2"><Description>Grün</Description>')
    vrt.write_bytes(text.encode("latin-1"))
    assert facts(vrt)["band_names"][1] == "Grün"
    odd = tmp_path / "gr\udcfcn.tif"  # file names are bytes
    (tmp_path / "s.tif").rename(odd)
    assert facts(odd)["size"] == [6, 5, 4]


# --- lists of other programs ---------------------------------------------------------------------------------------------

@pytest.mark.parametrize("form", [str, lambda v: str(tuple(v)), lambda v: str(np.array(v)), lambda v: "{" + str(np.array(v)) + "}",
                                  lambda v: repr(np.array(v))], ids=["list", "tuple", "numpy", "numpy in braces", "repr"])
def test_lists_as_python_prints_them(tmp_path, form):
    """Reads them through the tools, as GDAL is shown them; tests/raster/envi_header_test.cpp has all forms of such
    lists."""
    nm = [float(v) for v in np.linspace(450, 900, 12)]
    header = {"wavelength units": "Nanometers", "wavelength": form(nm), "fwhm": form([10.0] * 12),
              "bbl": form([0] + [1] * 10 + [0]), "data gain values": form([0.0001] * 12), "data offset values": "0.5"}
    path = write(tmp_path, cube(6, 5, 12), header)
    seen = facts(path)
    np.testing.assert_allclose(seen["wavelengths_nm"], nm[1:-1], rtol=1e-7)
    assert seen["bad_bands"] == [1, 12] and seen["fwhm_nm"] == [10] * 10
    assert seen["scale"] == [0.0001] * 10 and seen["offset"] == [0.5] * 10
    assert facts(path, "-bbl", "ignore")["bad_bands"] == [1, 12]
    assert warnings(path) == ""


def test_a_list_that_numpy_has_shortened(tmp_path):
    data = cube(6, 5, 12)
    path = write(tmp_path, data, {"wavelength": "[450. 460. 470. ... 880. 890. 900.]"})
    assert "a list of the ENVI header of" in warnings(path) and "'wavelength': elements are left out ('...')" in warnings(path)
    assert all(value is None for value in facts(path)["wavelengths_nm"])
    np.testing.assert_array_equal(seen_pixels(path, data.shape, tmp_path), data.astype("f4"))


# --- georeference --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("info, epsg", [
    ("UTM, 1, 1, 500000, 4000000, 2, 2, 11, North, WGS-84, units=Meters", 32611),
    ("UTM, 1, 1, 500000, 4000000, 2, 2, 33, South, WGS-84, units=Meters", 32733),
    ("UTM, 1, 1, 500000, 4000000, 2, 2, 11, North, WGS-84, units=Meters, rotation=20", 32611),
    ("UTM, 1, 1, 500000, 4000000, 2, 2, 11, North, North America 1983, units=Meters", 26911),
    ("UTM, 1, 1, 500000, 4000000, 2, 2, 11, North, NAD-83, units=Meters", 26911),
    ("UTM, 1, 1, 500000, 4000000, 2, 2, 11, North, NAD27", 26711),
    ("Geographic Lat/Lon, 1, 1, 10, 50, 0.001, 0.001, WGS-84, units=Degrees", 4326),
    ("UTM, 1, 1, 500000, 4000000, 2, 2, 11, North, WGS-84, units=Feet", None),
    ("Arbitrary, 1, 1, 0, 0, 1, 1, 0, North", None)])
def test_codes_of_map_info(tmp_path, info, epsg):
    """GDAL names the SRS of most of these "unnamed"."""
    path = write(tmp_path, small(), {"map info": f"{{{info}}}"})
    assert facts(path)["epsg"] == epsg
    if "rotation" not in info and "Arbitrary" not in info:
        succeed(run("gdal_hsi_spp", "-q", "-ws", 3, "-stac", tmp_path / "o.json", path, tmp_path / "o.tif"))
        code = json.loads((tmp_path / "o.json").read_text())["properties"]["proj:code"]
        assert code == (epsg and f"EPSG:{epsg}")


# --- outputs -------------------------------------------------------------------------------------------------------------

def test_an_output_has_no_scales_that_its_source_has_not(tmp_path):
    """Also without a side file that repeats the header."""
    path = write(tmp_path, cube(9, 8, 4), {"wavelength": braces(NM), "wavelength units": "Nanometers"})
    for name, tool in {"spp": ("gdal_hsi_spp", "-ws", 3), "pca": ("gdal_hsi_pca", "-nc", 2),
                       "mnf": ("gdal_hsi_mnf", "-nc", 2)}.items():
        succeed(run(*tool, "-q", path, tmp_path / f"{name}.dat"))
        header, side = (tmp_path / f"{name}.hdr").read_text(), (tmp_path / f"{name}.dat.aux.xml").read_text()
        assert "gain" not in header and "offset values" not in header
        assert "IMAGE_STRUCTURE" not in side and "<Scale>" not in side
        if name == "spp":
            assert "PAMRasterBand" not in side and "HSI_HISTORY" in side
    assert facts(tmp_path / "pca.dat")["band_names"] == ["PC1", "PC2"]
    succeed(run("gdal_hsi_spp", "-q", "-ws", 3, path, tmp_path / "o.tif"))
    assert all(b"SCALE" not in text for text in [(tmp_path / "o.tif").read_bytes()])
    # Scales of the source are kept, for all bands.
    path = write(tmp_path, cube(9, 8, 4), {"data gain values": "{0.5, 1, 1, 1}"}, name="g")
    succeed(run("gdal_hsi_spp", "-q", "-ws", 3, path, tmp_path / "scaled.dat"))
    assert facts(tmp_path / "scaled.dat")["scale"] == [0.5, 1, 1, 1]


def test_class_names_with_commas_come_back(tmp_path):
    """From a GeoTIFF to an ENVI file and back; GDAL splits names at every comma."""
    names = ["Unclassified", "Corn, young", "Soil, \"dry\"", "Water"]
    classes = np.random.default_rng(0).integers(1, 4, (1, 8, 9)).astype("u1")
    path = write(tmp_path, classes, {"file type": "ENVI Classification", "classes": 4,
                                     "class names": "{Unclassified, \"Corn, young\", 'Soil, \"dry\"', Water}"}, dtype="u1", name="c")
    scene = write(tmp_path, cube(9, 8, 4))
    report = tmp_path / "svm.json"
    succeed(run("gdal_hsi_svm_train", "-q", "-C", 8, "-gamma", 0.5, scene, path, report))
    for name in ("map.dat", "map.tif"):
        succeed(run("gdal_hsi_svm_classify", "-q", scene, report, tmp_path / name))
        told = succeed(run("gdal_hsi_accuracy", "-json", tmp_path / name, path)).out
        assert all(json.dumps(name)[1:-1] in told for name in names[1:]), told
    assert gdal.Open(str(tmp_path / "map.dat")).GetRasterBand(1).GetCategoryNames() == [n.replace(",", " ") for n in names]
    header = (tmp_path / "map.hdr").read_text()
    assert 'class names in quotes = {Unclassified, "Corn, young"' in header
