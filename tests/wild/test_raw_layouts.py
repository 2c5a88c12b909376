# SPDX-License-Identifier: MIT
"""Formats whose driver states the positions of samples: the tools read RasterIO's values, in any order in the file."""
import json

import numpy as np
import pytest
from conftest import cube, first_error, gdal, run, seen_pixels, succeed, write_scene

gdal.DontUseExceptions()
HAVE = {gdal.GetDriver(i).ShortName for i in range(gdal.GetDriverCount())}
gdal.UseExceptions()


def convert(driver, data, path, dtype="f4", options=()):
    made = write_scene(path.with_suffix(".from.tif"), data, driver="GTiff", dtype=dtype, geotransform=None, epsg=None)
    gdal.GetDriverByName(driver).CreateCopy(str(path), gdal.Open(made), options=list(options))
    return path


def access(path):
    return succeed(run("gdal_hsi_info", path)).out.split("Access:", 1)[1].splitlines()[0]


@pytest.mark.parametrize("driver, name, dtype", [
    ("FITS", "a.fits", "f4"), ("FITS", "a.fits", "i2"), ("FITS", "a.fits", "u2"), ("FITS", "a.fits", "f8"),
    ("ENVI", "a.img", "u2"), ("EHdr", "a.bil", "i2"), ("GTiff", "a.tif", "f4"), ("ISIS3", "a.cub", "f4"),
    ("PDS4", "a.xml", "i2"), ("VICAR", "a.vic", "i2"), ("RRASTER", "a.grd", "f4"), ("ISCE", "a.slc", "f4"),
    ("NITF", "a.ntf", "u2"), ("VRT", "a.vrt", "f4")])
def test_pixels_are_those_of_rasterio(tmp_path, driver, name, dtype):
    if driver not in HAVE:
        pytest.skip(f"this GDAL has no driver {driver}")
    data = np.floor(cube(9, 7, 4, noise=0.2))
    path = convert(driver, data, tmp_path / name, dtype)
    found = seen_pixels(path, data.shape, tmp_path)
    np.testing.assert_array_equal(found, gdal.Open(str(path)).ReadAsArray())
    if driver != "PDS4":  # GDAL writes it incorrectly
        np.testing.assert_array_equal(found, data)
    if driver in ("ENVI", "GTiff", "PDS4"):
        assert access(path).strip().startswith("raw"), "no need to be slow"


@pytest.mark.skipif("FITS" not in HAVE, reason="this GDAL has no driver FITS")
@pytest.mark.parametrize("where", ["first line", "last line", "middle", "one pixel"])
def test_fits_that_is_empty_where_it_is_looked_at(tmp_path, where):
    """Equal samples do not prove an order: lines with different values must not be mirrored."""
    data = np.full((3, 41, 5), 7.0)
    line = {"first line": 0, "last line": 40, "middle": 18, "one pixel": 3}[where]
    data[:, line, 2 if where == "one pixel" else slice(None)] = 900
    path = convert("FITS", data, tmp_path / "a.fits")
    np.testing.assert_array_equal(seen_pixels(path, data.shape, tmp_path), data)
    assert access(path).strip().startswith("through GDAL")


def fits(path, cards, data, bits):
    cards = [("SIMPLE", "T"), ("BITPIX", bits), ("NAXIS", data.ndim),
             *((f"NAXIS{k + 1}", size) for k, size in enumerate(data.shape[::-1])), *cards]
    text = "".join(f"{key:<8}= {value:>20}".ljust(80) for key, value in cards) + "END".ljust(80)
    stored = data.astype({8: "u1", 16: ">i2", 32: ">i4", -32: ">f4", -64: ">f8"}[bits]).tobytes()
    whole = [block + fill * (-len(block) % 2880) for block, fill in ((text.encode(), b" "), (stored, bytes(1)))]
    path.write_bytes(b"".join(whole))
    return path


@pytest.mark.skipif("FITS" not in HAVE, reason="this GDAL has no driver FITS")
@pytest.mark.parametrize("bits", [8, 16, 32, -32, -64])
def test_scales_of_fits(tmp_path, bits):
    """Scales are applied once, in all bands; integers would be rounded."""
    data = np.arange(60.).reshape(3, 4, 5)
    path = fits(tmp_path / "a.fits", [("BSCALE", 0.5), ("BZERO", 10.0)], data, bits)
    if bits > 0:
        result = run("gdal_hsi_info", path)
        assert result.code == 1 and "integers with BSCALE = 0.5 and BZERO = 10" in first_error(result), result.err
        return
    # Its first line is the lowest one
    np.testing.assert_array_equal(seen_pixels(path, data.shape, tmp_path), data[:, ::-1] / 2 + 10)
    assert json.loads(succeed(run("gdal_hsi_info", "-json", path)).out)["scale"] == []


@pytest.mark.skipif("FITS" not in HAVE, reason="this GDAL has no driver FITS")
@pytest.mark.parametrize("shape, size, advice", [
    ((1, 3, 4, 5), "4 axes (5 x 4 x 3 x 1)", "[0], "), ((1, 2, 3, 4, 5), "5 axes (5 x 4 x 3 x 2 x 1)", "[0, 0], "),
    ((5,), "1 axis (5)", "(.csv)")])
def test_axes_that_gdal_does_not_read_in_fits(tmp_path, shape, size, advice):
    result = run("gdal_hsi_info", fits(tmp_path / "a.fits", [], np.ones(shape), -32))
    assert result.code == 1 and f"its image has {size}, but GDAL's driver FITS reads 2 or 3" in first_error(result), result.err
    assert advice in result.err


@pytest.mark.skipif("FITS" not in HAVE, reason="this GDAL has no driver FITS")
def test_scaled_scenes_keep_their_samples_in_fits(tmp_path):
    data = np.arange(60.).reshape(3, 4, 5) + 1
    path = convert("GTiff", data, tmp_path / "a.tif", "i2")
    dataset = gdal.Open(str(path), gdal.GA_Update)
    for b in range(1, 4):
        dataset.GetRasterBand(b).SetScale(0.01)
    del dataset
    result = succeed(run("gdal_hsi_pipeline", "-q", f"read '{path}' ! write '{tmp_path}/a.fits' -of FITS"))
    assert "cannot store scale and offset" in result.err
    np.testing.assert_array_equal(gdal.Open(str(tmp_path / "a.fits")).ReadAsArray(), data)


@pytest.mark.skipif("FITS" not in HAVE, reason="this GDAL has no driver FITS")
@pytest.mark.parametrize("kind, unit, first, step", [
    ("WAVE", "nm", 400, 100), ("WAVE", "", 4e-7, 1e-7), ("AWAV", "um", 0.4, 0.1), ("FREQ", "THz", 700, -100),
    ("WAVN", "", 2e6, -1e5), ("VELO", "m/s", 400, 100)])
def test_spectral_axes_of_fits(tmp_path, kind, unit, first, step):
    cards = [("CTYPE3", f"'{kind:<8}'"), ("CRVAL3", first), ("CRPIX3", 1.0), ("CDELT3", step)]
    path = fits(tmp_path / "a.fits", cards + ([("CUNIT3", f"'{unit:<8}'")] if unit else []), np.ones((3, 4, 5)), -32)
    at = first + step * np.arange(3.)
    want = {"WAVE": at * {"nm": 1, "": 1e9}.get(unit, 1), "AWAV": at * 1e3, "FREQ": 299792.458 / at, "WAVN": 1e9 / at}
    told = json.loads(succeed(run("gdal_hsi_info", "-json", path)).out)["wavelengths_nm"]
    np.testing.assert_allclose(told, want.get(kind, []))


@pytest.mark.skipif("FITS" not in HAVE, reason="this GDAL has no driver FITS")
@pytest.mark.parametrize("cards, want", [
    ([("CD1_1", -1e-4), ("CD2_2", 1e-4), ("CD3_3", 100.)], [400, 500, 600]),
    ([("CD3_3", 100.), ("CDELT3", 7.)], [400, 500, 600]), ([("PC3_3", 10.), ("CDELT3", 10.)], [400, 500, 600]),
    ([("CTYPE3", "'LAMBDA  '"), ("CDELT3", 100.)], [400, 500, 600]), ([("CTYPE3", "'        '"), ("CDELT3", 100.)], [400, 500, 600]),
    ([("CTYPE3", "'WAVE-LOG'"), ("CDELT3", 100.)], 400 * np.exp(np.arange(3) / 4)),
    ([("CTYPE3", "'STOKES  '"), ("CUNIT3", "'        '"), ("CDELT3", 1.)], None),
    ([("CD3_3", 100.), ("CD3_1", 5.)], "the wavelengths are unknown: CD3_1 = 5"),
    ([("CTYPE3", "'WAVE-F2W'"), ("CDELT3", 100.)], "CTYPE3 = 'WAVE-F2W' is not a linear axis of wavelengths"),
    ([("CTYPE3", "'VOPT    '"), ("CDELT3", 100.)], "CTYPE3 = 'VOPT' is not a linear axis of wavelengths")])
def test_steps_of_spectral_axes_of_fits(tmp_path, cards, want):
    axis = {"CTYPE3": "'AWAV    '", "CRVAL3": 400.0, "CRPIX3": 1.0, "CUNIT3": "'nm      '", **dict(cards)}
    said = succeed(run("gdal_hsi_info", "-json", fits(tmp_path / "a.fits", list(axis.items()), np.ones((3, 4, 5)), -32)))
    told = json.loads(said.out)["wavelengths_nm"]
    if isinstance(want, str) or want is None:
        assert told == [] and (want or "") in said.err and ("unknown" in said.err) == (want is not None), said.err
    else:
        np.testing.assert_allclose(told, want)


def test_raw_files_that_hold_one_value_stay_raw(tmp_path):
    """ENVI's order is known. Much of a flight line is filler, and reading it must stay fast."""
    path = write_scene(tmp_path / "a.img", np.full((3, 6, 5), 7.0))
    assert access(path).strip().startswith("raw")
    data = cube(5, 6, 3)
    data[:, [0, -1]] = np.nan
    data[:, :, [0, -1]] = np.nan
    assert access(write_scene(tmp_path / "b.img", data)).strip().startswith("raw"), "NaN is compared by its bits"


def test_a_window_of_a_fits_scene(tmp_path):
    if "FITS" not in HAVE:
        pytest.skip("this GDAL has no driver FITS")
    data = cube(9, 7, 4)
    path = convert("FITS", data, tmp_path / "a.fits")
    window = ["-srcwin", 2, 1, 5, 3, "-b", "4,2"]
    same = convert("GTiff", data, tmp_path / "b.tif")
    out = succeed(run("gdal_hsi_compare", "-json", *window, "-max-maxabs", 0, path, same)).out
    assert '"pixels": 15' in out or '"compared": 15' in out, out


@pytest.mark.parametrize("interleave", ["BAND", "PIXEL"])
@pytest.mark.parametrize("lines", [(), (0,), (5,)])
def test_sparse_geotiffs(tmp_path, interleave, lines):
    """Blocks that were never written are zeros, even if no block was written."""
    path = tmp_path / "a.tif"
    dataset = gdal.GetDriverByName("GTiff").Create(str(path), 7, 6, 3, gdal.GDT_Float32,
                                                   ["SPARSE_OK=TRUE", "INTERLEAVE=" + interleave, "BLOCKYSIZE=1"])
    data = np.zeros((3, 6, 7), "f4")
    for line in lines:
        data[:, line] = 2
        dataset.WriteRaster(0, line, 7, 1, data[:, line].tobytes())
    del dataset
    succeed(run("gdal_hsi_quicklook", "-size", 16, path, tmp_path / "a.png"))
    shown = gdal.Open(str(tmp_path / "a.png")).ReadAsArray()
    for line in range(6):
        assert np.all(shown[:, 2 * line:2 * line + 2] == (255 if line in lines else 0))


# --- labels that GDAL reads partially
# ---------------------------------------------------------------------------------------

SHAPE = (3, 4, 6)  # bands, lines, samples


def pds(folder, label, data, name="p.img"):
    text = ("PDS_VERSION_ID = PDS3\r\nRECORD_TYPE = FIXED_LENGTH\r\nRECORD_BYTES = 512\r\nLABEL_RECORDS = 4\r\nFILE_RECORDS = 12\r\n"
            + "\r\n".join(label) + "\r\nEND\r\n")
    (folder / name).write_bytes(text.encode().ljust(2048) + data.ljust(4096, b"\0"))
    return folder / name


def numbered():
    band, line, sample = np.indices(SHAPE)
    return 1000 * (band + 1) + 100 * line + sample


def qube(folder, axes, suffix, kind, dtype, name="SPECTRAL_QUBE"):
    sizes = {"SAMPLE": 6, "LINE": 4, "BAND": 3}
    place = {"BAND": 0, "LINE": 1, "SAMPLE": 2}
    core = numbered().transpose([place[axis] for axis in reversed(axes)])
    data = b""
    for plane in range(core.shape[0] + suffix[2]):
        for row in range(core.shape[1] + suffix[1]):
            inside = plane < core.shape[0] and row < core.shape[1]
            data += core[plane, row].astype(dtype).tobytes() if inside else b"\xff\xff\xff\xfe" * core.shape[2]
            data += b"\xff\xff\xff\xfe" * suffix[0]
    return pds(folder, [f"^{name} = 5", f"OBJECT = {name}", "  AXES = 3", f"  AXIS_NAME = ({', '.join(axes)})",
                        f"  CORE_ITEMS = ({', '.join(str(sizes[a]) for a in axes)})", f"  CORE_ITEM_BYTES = {np.dtype(dtype).itemsize}",
                        f"  CORE_ITEM_TYPE = {kind}", "  CORE_BASE = 0.0", "  CORE_MULTIPLIER = 1.0",
                        f"  SUFFIX_ITEMS = ({', '.join(map(str, suffix))})", "  SUFFIX_BYTES = 4", f"END_OBJECT = {name}"], data)


def right_or_refused(path, folder, field=None):
    """Checks whether the scene is read; otherwise the error names `field`."""
    result = run("gdal_hsi_info", path)
    if result.code == 0:
        np.testing.assert_array_equal(seen_pixels(path, SHAPE, folder), numbered())
    elif field:
        assert field in first_error(result), result.err
    return result.code == 0


BSQ, BIL = ("SAMPLE", "LINE", "BAND"), ("SAMPLE", "BAND", "LINE")


@pytest.mark.quick
@pytest.mark.parametrize("axes, suffix, kind, dtype, read", [
    (BSQ, (0, 0, 0), "MSB_INTEGER", ">i2", True), (BSQ, (1, 0, 0), "MSB_INTEGER", ">i2", False),
    (BSQ, (0, 0, 1), "MSB_INTEGER", ">i2", True), (BIL, (0, 0, 0), "SUN_INTEGER", ">i2", True),
    (BIL, (0, 2, 0), "SUN_INTEGER", ">i2", False), (BIL, (1, 1, 0), "IEEE_REAL", ">f4", False),
    (BSQ, (0, 0, 0), "IEEE_REAL", ">f4", True), (BSQ, (0, 0, 0), "PC_REAL", "<f4", False),
    (BSQ, (0, 0, 0), "LSB_INTEGER", "<i2", False), (BSQ, (0, 0, 0), "MSB_INTEGER", ">i4", False)])
def test_qubes_of_pds3(tmp_path, axes, suffix, kind, dtype, read):
    path = qube(tmp_path, axes, suffix, kind, dtype)
    field = "SUFFIX_ITEMS = (" if any(suffix) else f"CORE_ITEM_TYPE = {kind}"
    assert right_or_refused(path, tmp_path, field) == read
    # As GDAL's driver ISIS2 reads them.
    right_or_refused(qube(tmp_path, axes, suffix, kind, dtype, "QUBE"), tmp_path)


@pytest.mark.parametrize("order", ["BAND_SEQUENTIAL", "LINE_INTERLEAVED", "SAMPLE_INTERLEAVED"])
@pytest.mark.parametrize("kind, dtype", [("MSB_INTEGER", ">i2"), ("LSB_UNSIGNED_INTEGER", "<u2"), ("PC_REAL", "<f4"), ("IEEE_REAL", ">f4"),
                                         ("UNSIGNED_INTEGER", ">u2"), ("IEEE_REAL", ">f8")])
def test_images_of_pds3(tmp_path, order, kind, dtype):
    turned = {"BAND_SEQUENTIAL": (0, 1, 2), "LINE_INTERLEAVED": (1, 0, 2), "SAMPLE_INTERLEAVED": (1, 2, 0)}[order]
    path = pds(tmp_path, ["^IMAGE = 5", "OBJECT = IMAGE", "  LINES = 4", "  LINE_SAMPLES = 6", f"  SAMPLE_TYPE = {kind}",
                          f"  SAMPLE_BITS = {8 * np.dtype(dtype).itemsize}", "  BANDS = 3", f"  BAND_STORAGE_TYPE = {order}",
                          "END_OBJECT = IMAGE"], numbered().transpose(turned).astype(dtype).tobytes())
    readable = order != "SAMPLE_INTERLEAVED" and kind != "UNSIGNED_INTEGER"
    field = "SAMPLE_TYPE = UNSIGNED_INTEGER" if kind == "UNSIGNED_INTEGER" else f"BAND_STORAGE_TYPE = {order}"
    assert right_or_refused(path, tmp_path, field) == readable


def test_detached_labels_of_pds3(tmp_path):
    (tmp_path / "CUBE.IMG").write_bytes(numbered().astype("<f4").tobytes())
    label = ["RECORD_BYTES = 24", "OBJECT = IMAGE", " LINES = 4", " LINE_SAMPLES = 6", " SAMPLE_TYPE = PC_REAL", " SAMPLE_BITS = 32",
             " BANDS = 3", " BAND_STORAGE_TYPE = BAND_SEQUENTIAL", "END_OBJECT = IMAGE", "END", ""]
    for name, pointer in {"quoted": '"CUBE.IMG"', "plain": "CUBE.IMG", "part": "(CUBE.IMG, 1)"}.items():
        (tmp_path / f"{name}.lbl").write_text("\r\n".join(["PDS_VERSION_ID = PDS3", "RECORD_TYPE = FIXED_LENGTH", f"^IMAGE = {pointer}", *label]))
    np.testing.assert_array_equal(seen_pixels(tmp_path / "quoted.lbl", SHAPE, tmp_path), numbered())
    for name in ("plain", "part"):
        result = run("gdal_hsi_info", tmp_path / f"{name}.lbl")
        assert result.code == 1 and "without quotes (^IMAGE = " in first_error(result)
        assert '"CUBE.IMG"' in result.err


@pytest.mark.parametrize("unit, factor", [("nm", 1), ("um", 1000), ("Micrometers", 1000), ("angstrom", 0.1)])
def test_unit_of_an_esri_header(tmp_path, unit, factor):
    nm = np.array([900, 901.25, 902.5])
    numbered().transpose(1, 0, 2).astype("<u2").tofile(tmp_path / "e.bil")
    (tmp_path / "e.hdr").write_text("BYTEORDER I\nLAYOUT BIL\nNROWS 4\nNCOLS 6\nNBANDS 3\nNBITS 16\n"
                                    f"WAVELENGTH_UNITS {unit}\nWAVELENGTHS\n" + "\n".join(map(str, nm / factor)) + "\nWAVELENGTHS_END\n")
    said = succeed(run("gdal_hsi_info", "-json", tmp_path / "e.bil"))
    np.testing.assert_allclose(json.loads(said.out)["wavelengths_nm"], nm)
    assert "is not stated" not in said.err


@pytest.mark.parametrize("ending, words", [("bil", "WAVELENGTHS\n{}\nWAVELENGTHS_END\n"), ("bil", "WAVELENGTHS {}"), ("raw", "wavelengths\n{}\nWAVELENGTHS_END\n")])
def test_wavelengths_of_an_esri_header(tmp_path, ending, words):
    nm = [900, 901.25, 902.5]
    numbered().transpose(1, 0, 2).astype("<u2").tofile(tmp_path / f"e.{ending}")
    (tmp_path / "e.hdr").write_text("BYTEORDER I\nLAYOUT BIL\nNROWS 4\nNCOLS 6\nNBANDS 3\nNBITS 16\nBANDROWBYTES 12\nTOTALROWBYTES 36\n"
                                    "BANDGAPBYTES 0\n" + words.format("\n".join(map(str, nm))))
    for name in (f"e.{ending}", "e.hdr"):
        facts = json.loads(succeed(run("gdal_hsi_info", "-json", tmp_path / name)).out)
        assert facts["wavelengths_nm"] == nm and facts["driver"] == "EHdr"
        np.testing.assert_array_equal(seen_pixels(tmp_path / name, SHAPE, tmp_path), numbered())
    succeed(run("gdal_hsi_spp", "-q", "-ws", 3, tmp_path / "e.hdr", tmp_path / "o.dat"))
    assert json.loads(succeed(run("gdal_hsi_info", "-json", tmp_path / "o.dat")).out)["wavelengths_nm"] == nm
