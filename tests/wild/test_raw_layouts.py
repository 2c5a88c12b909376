# SPDX-License-Identifier: MIT
"""Formats whose driver tells where the samples lie: the tools see what RasterIO reads, in whatever order it lies in the
file."""
import numpy as np
import pytest
from conftest import cube, gdal, run, seen_pixels, succeed, write_scene

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
    if driver != "PDS4":  # which GDAL does not write as it should
        np.testing.assert_array_equal(found, data)
    if driver in ("ENVI", "GTiff", "PDS4"):
        assert access(path).strip().startswith("raw"), "no need to be slow"


@pytest.mark.skipif("FITS" not in HAVE, reason="this GDAL has no driver FITS")
@pytest.mark.parametrize("where", ["first line", "last line", "middle", "one pixel"])
def test_fits_that_is_empty_where_it_is_looked_at(tmp_path, where):
    """Equal samples prove no order: the lines that hold something must not be mirrored."""
    data = np.full((3, 41, 5), 7.0)
    line = {"first line": 0, "last line": 40, "middle": 18, "one pixel": 3}[where]
    data[:, line, 2 if where == "one pixel" else slice(None)] = 900
    path = convert("FITS", data, tmp_path / "a.fits")
    np.testing.assert_array_equal(seen_pixels(path, data.shape, tmp_path), data)
    assert access(path).strip().startswith("through GDAL")


def test_raw_files_that_hold_one_value_stay_raw(tmp_path):
    """ENVI's order is known; much of a flight line is filler, and reading it must not become slow."""
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
    """Blocks that nobody has written are zeros, also where there is no other."""
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
