# SPDX-License-Identifier: MIT
"""Headers and their data: which belong together, missing or invalid fields, and wavelengths outside the header."""
import json

import numpy as np
import pytest
from conftest import cube, first_error, gdal, run, seen_pixels, succeed
from envi_scenes import NM, braces, facts, fields, small, text_of, warnings, write


# --- missing or invalid fields
# ---------------------------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", ["<u2", "<f4", "<f8"])
def test_without_a_byte_order(tmp_path, dtype):
    """PlantCV wrote thousands of such headers."""
    data = np.floor(cube(5, 6, 20))
    header = fields(data.shape, dtype, "bil")
    del header["byte order"], header["header offset"]
    path = write(tmp_path, data, text_of(header), dtype=dtype, interleave="bil")
    assert "does not state 'byte order': 0 is assumed" in warnings(path)
    np.testing.assert_array_equal(seen_pixels(path, data.shape, tmp_path), data)


def test_bytes_without_a_byte_order(tmp_path):
    path = write(tmp_path, small("u1"), {"byte order": None}, dtype="u1")
    assert warnings(path) == ""


@pytest.mark.parametrize("key, value, word", [
    ("samples", "six", "not a whole number"), ("bands", "-4", "not a whole number"), ("header offset", "none", "not a whole number"),
    ("header offset", "5000000000", "limit is 2147483647"), ("byte order", "2", "which is invalid"),
    ("interleave", "bis", "which is invalid")])
def test_fields_that_are_none(tmp_path, key, value, word):
    result = run("gdal_hsi_info", write(tmp_path, small(), {key: value}))
    assert result.code == 1 and (word in first_error(result) or key in ("samples", "bands")), result.err


def test_a_header_offset(tmp_path):
    data = small()
    path = write(tmp_path, data, {"header offset": "{ 100 } ; bytes"})
    path.write_bytes(bytes(100) + path.read_bytes())
    np.testing.assert_array_equal(seen_pixels(path, data.shape, tmp_path), data)


# --- which header belongs to which data
# ------------------------------------------------------------------------------------

@pytest.mark.parametrize("data_name, header", [
    ("p", "p.hdr"), ("p.img", "p.hdr"), ("p.img", "p.img.hdr"), ("p.IMG", "p.HDR"), ("p.bip", "p.hdr"),
    ("p.spectral", "p.hdr"), ("p.img", "p.img.HDR"), ("p.v1.img", "p.v1.hdr")])
def test_data_and_header_by_name(tmp_path, data_name, header):
    path = write(tmp_path, small(), {"wavelength": braces(NM), "wavelength units": "nm"}, data_name=data_name, name="h")
    (tmp_path / "h.hdr").rename(tmp_path / header)
    for name in (path, tmp_path / header):
        seen = facts(name)
        assert seen["wavelengths_nm"] == NM and seen["path"] == str(path) and seen["access"] == "raw"
    assert facts(tmp_path / header, "-if", "ENVI")["wavelengths_nm"] == NM


def test_a_header_that_is_named_counts(tmp_path):
    """GDAL takes p.img.hdr before p.hdr."""
    write(tmp_path, small(), {"wavelength": braces(NM), "wavelength units": "nm"}, name="p.img", data_name="p.img")
    other = [v + 10 for v in NM]
    path = write(tmp_path, small(), {"wavelength": braces(other), "wavelength units": "nm"}, name="p", data_name="p.img")
    assert facts(tmp_path / "p.hdr")["wavelengths_nm"] == other
    assert facts(tmp_path / "p.img.hdr")["wavelengths_nm"] == NM
    assert facts(path)["wavelengths_nm"] == NM
    result = run("gdal_hsi_spp", "-overwrite", tmp_path / "p.hdr", tmp_path / "p.hdr")
    assert result.code != 0 and (tmp_path / "p.hdr").exists()


@pytest.mark.parametrize("magic", [b"II*\0", b"MM\0*", b"II+\0", b"\x89PNG\r\n\x1a\n", b"\x89HDF\r\n\x1a\n", b"\xff\xd8\xff\xe0",
                                   b"GIF89a", b"SIMPLE  =", b"CDF\1"])
@pytest.mark.parametrize("named", ["g.hdr", "g.dat"])
def test_data_that_begin_as_another_format(tmp_path, magic, named):
    data = np.floor(cube(8, 8, 4)).astype("<u2")
    bytes_ = magic + data.tobytes()[len(magic):]
    data = np.frombuffer(bytes_, "<u2").reshape(data.shape)
    write(tmp_path, data, {"wavelength": braces(NM), "wavelength units": "nm"}, dtype="<u2", name="g")
    assert facts(tmp_path / named)["driver"] == "ENVI"
    np.testing.assert_array_equal(seen_pixels(tmp_path / named, data.shape, tmp_path), data)


def test_labels_by_their_header(tmp_path):
    classes = np.random.default_rng(0).integers(1, 3, (1, 5, 6)).astype("u1")
    write(tmp_path, classes, {"class names": "{none, a, b}", "classes": 3}, dtype="u1", name="c")
    text = succeed(run("gdal_hsi_accuracy", tmp_path / "c.hdr", tmp_path / "c.dat")).out
    assert "(OA): 100" in text


# --- outside the header
# ----------------------------------------------------------------------------------------------------

def geotiff(path, dataset=(), bands=()):
    """Makes a scene of 3 bands with items (key, value, domain) of the dataset, and (key, values, domain) of its
    bands."""
    made = gdal.GetDriverByName("GTiff").Create(str(path), 5, 4, 3, gdal.GDT_Float32)
    made.WriteArray(cube(5, 4, 3).astype("f4"))
    for key, value, domain in dataset:
        made.SetMetadataItem(key, value, domain)
    for key, values, domain in bands:
        for b, value in enumerate(values):
            made.GetRasterBand(b + 1).SetMetadataItem(key, value, domain)
    made = None
    return path


@pytest.mark.parametrize("domain", ["ENVI", ""])
@pytest.mark.parametrize("form", ["400,500,600", "400, 500, 600", "400;500;600", "400 500 600", "{400,500,600}", "{400, 500,\n600}"])
@pytest.mark.parametrize("key", ["wavelength", "wavelengths"])
def test_lists_among_the_items_of_a_dataset(tmp_path, domain, form, key):
    path = geotiff(tmp_path / "a.tif", [(key, form, domain), ("wavelength units", "nm", domain), ("bbl", "0,1,1", domain)])
    seen = facts(path)
    assert seen["wavelengths_nm"] == [500, 600] and seen["bad_bands"] == [1]


@pytest.mark.parametrize("units", ["wavelength units", "wavelength_units"])
def test_items_of_bands_in_the_domain_envi(tmp_path, units):
    path = geotiff(tmp_path / "b.tif", bands=[("wavelength", ["0.4", "0.5", "0.6"], "ENVI"), (units, ["um"] * 3, "ENVI"),
                                              ("fwhm", ["0.01"] * 3, "ENVI"), ("bbl", ["0", "1", "1"], "ENVI")])
    seen = facts(path)
    assert seen["wavelengths_nm"] == [500, 600] and seen["bad_bands"] == [1]
    np.testing.assert_allclose(seen["fwhm_nm"], [10, 10])
    succeed(run("gdal_hsi_spp", "-q", "-bbl", "ignore", path, tmp_path / "o.tif"))
    assert facts(tmp_path / "o.tif")["wavelengths_nm"] == [500, 600]


@pytest.mark.parametrize("center, nm", [
    ("(0.88611, 0.902567, 0.919022)", [886.11, 902.567, 919.022]), ("(0.5, 0.6, 0.7) <micrometers>", [500, 600, 700]),
    ("(500, 600, 700) <nanometers>", [500, 600, 700]), ("(500.5, 600, 700)", [500.5, 600, 700]),
    ("(0.5 <um>, 0.6 <um>, 0.7 <um>)", [500, 600, 700]), ('(0.5, "N/A", 0.7)', [500, None, 700]), ("(0.5, 0.6)", []),
    ("N/A", []), ("(0.5, 0.6, -\n   0.7)", [500, 600, 700])])
def test_isis_cubes(tmp_path, center, nm):
    path = tmp_path / "c.cub"
    made = gdal.GetDriverByName("ISIS3").Create(str(path), 5, 4, 3, gdal.GDT_Float32)
    made.SetMetadata([json.dumps({"IsisCube": {"BandBin": {"_type": "group", "Width": [0.01, 0.01, 0.02],
                                                           "Room": "x" * 100}}})], "json:ISIS3")
    made.WriteArray(cube(5, 4, 3).astype("f4"))
    made = None
    label = path.read_bytes()  # GDAL reads forms that it does not write
    begin = label.index(b"    Room")
    end = label.index(b"  End_Group", begin)
    path.write_bytes(label[:begin] + f"    Center = {center}".encode().ljust(end - begin - 1) + b"\n" + label[end:])
    assert facts(path)["wavelengths_nm"] == [v if v is None else pytest.approx(v) for v in nm]


@pytest.mark.parametrize("fields, nm", [
    ('Center = (20000, 10000, 5000)\nUnits = "cm-1"', [500, 1000, 2000]), ("FilterCenter = (500, 600, 700)\nUnits = nanometers", [500, 600, 700]),
    ("Wavelength = (0.5, 0.6, 0.7)\nUnits = (um, um, um)", [500, 600, 700]),
    ('FilterCenter = ("a", "b", "c")\nWavelength = (500, 600, 700)\nUnit = nm', [500, 600, 700])])
def test_names_of_isis_cubes(tmp_path, fields, nm):
    path = tmp_path / "c.cub"
    made = gdal.GetDriverByName("ISIS3").Create(str(path), 5, 4, 3, gdal.GDT_Float32)
    made.SetMetadata([json.dumps({"IsisCube": {"BandBin": {"_type": "group", "Room": "x" * 200}}})], "json:ISIS3")
    made.WriteArray(cube(5, 4, 3).astype("f4"))
    made = None
    label = path.read_bytes()
    begin = label.index(b"    Room")
    end = label.index(b"  End_Group", begin)
    path.write_bytes(label[:begin] + f"    {fields}".encode().ljust(end - begin - 1) + b"\n" + label[end:])
    said = succeed(run("gdal_hsi_info", "-json", path))
    assert json.loads(said.out)["wavelengths_nm"] == pytest.approx(nm) and "is not stated" not in said.err, said.err


@pytest.mark.parametrize("name", ["s.hdr", "s.img"])
@pytest.mark.parametrize("begin", [b"II*\0", b"MM\0*", b"\x89HDF\r\n\x1a\n", b"\x89PNG\r\n\x1a\n", b"<VRTDataset>"])
def test_a_vrt_of_data_that_begin_like_another_format(tmp_path, begin, name):
    """GDAL would open only the data, as the format that they resemble."""
    data = np.ones((5, 7, 9), "<f4").tobytes()
    (tmp_path / "s.img").write_bytes(begin + data[len(begin):])
    (tmp_path / "s.hdr").write_text("ENVI\nsamples = 9\nlines = 7\nbands = 5\nheader offset = 0\ndata type = 4\n"
                                    "interleave = bsq\nbyte order = 0\n")
    result = run("gdal_hsi_pca", "-q", "-nc", "2", "-of", "VRT", tmp_path / name, tmp_path / "o.vrt")
    if result.code != 0:
        assert first_error(result) and not (tmp_path / "o.vrt").exists(), result.err
        return
    # This GDAL passes files that HDF5's driver cannot open on to ENVI's driver.
    seen = gdal.Open(str(tmp_path / "s.img"))
    assert seen.GetDriver().ShortName == "ENVI"
    np.testing.assert_array_equal(seen.ReadAsArray().tobytes(), (tmp_path / "s.img").read_bytes())


def places(folder, info, tie):
    """Returns the position of a pixel's corner (from 1), by the scene's geotransform, and by an output's."""
    np.ones((1, 7, 9)).tofile(folder / "s.img")
    (folder / "s.hdr").write_text("ENVI\nsamples = 9\nlines = 7\nbands = 1\nheader offset = 0\ndata type = 5\ninterleave = bsq\n"
                                  f"byte order = 0\nmap info = {{{info}}}\n")
    gt = json.loads(succeed(run("gdal_hsi_info", "-json", folder / "s.img")).out)["geotransform"]
    return gt and [gt[3 * k] + (tie[0] - 1) * gt[3 * k + 1] + (tie[1] - 1) * gt[3 * k + 2] for k in range(2)]


@pytest.mark.parametrize("rotation", [0, -15.5, 30, 90, 180])
@pytest.mark.parametrize("tie", [(1, 1), (4, 5), (1.5, 1.5), (9, 1), (-3, 100)])
def test_maps_that_are_turned_around_a_pixel(tmp_path, rotation, tie):
    found = places(tmp_path, f"UTM, {tie[0]}, {tie[1]}, 500000, 4000000, 30, 30, 33, North, WGS-84, units=Meters, "
                             f"rotation={rotation}", tie)
    np.testing.assert_allclose(found, (500000, 4000000), rtol=0, atol=1e-6)


@pytest.mark.parametrize("info", [
    "UTM, 1, 1, 500000,5, 4000000,5, 30, 30, 33, North, WGS-84", "UTM, 1, 1, 500000,5, 4000000, 30, 30, 33, North, WGS-84",
    "UTM, 1,0, 1,0, 500000,0, 4000000,0, 30,0, 30,0, 33, North, WGS-84", "Geographic Lat/Lon, 1, 1, 13,5, 52, 0.1, 0.1, WGS-84"])
def test_decimal_commas_in_map_info(tmp_path, info):
    assert places(tmp_path, info, (1, 1)) is None
    result = run("gdal_hsi_spp", "-ws", "3", tmp_path / "s.img", tmp_path / "o.tif")
    assert "decimal commas" in result.err, result.err


@pytest.mark.parametrize("info", [
    "UTM, 1, 1, 500000.5, 4000000, 30, 30, 33, North, WGS-84", "Geographic Lat/Lon, 1, 1, 13.5, 52, 0.1, 0.1, WGS-84, units=Degrees",
    "State Plane (NAD 27), 1, 1, 500000, 4000000, 30, 30, 403, North America 1927", "Arbitrary, 1, 1, 0, 0, 1, 1, 0, North"])
def test_right_map_info_is_not_taken_for_one_with_commas(tmp_path, info):
    places(tmp_path, info, (1, 1))
    result = run("gdal_hsi_spp", "-ws", "3", tmp_path / "s.img", tmp_path / "o.tif")
    assert "decimal commas" not in result.err, result.err
