# SPDX-License-Identifier: MIT
"""Cubes with named axes: names identify lines, samples and bands with priority over lengths and over GDAL's order."""
import sys

import numpy as np
import pytest
from conftest import ROOT, cube, first_error, gdal, read, run, seen_pixels, succeed

sys.path.insert(0, str(ROOT / "tests" / "cli"))
import product_files as files  # noqa: E402

netcdf = pytest.importorskip("netCDF4")

LINES, SAMPLES, BANDS = 7, 9, 5
VALUES = cube(samples=SAMPLES, lines=LINES, bands=BANDS).astype("f4")
WAVELENGTHS = [400, 500, 600, 700, 800]


def write(path, dims, values=VALUES, coordinates=(), attributes=None, name="reflectance", format="NETCDF4"):
    """dims: names by role, ("b", "wavelength") and so on, in the order of the file; values (bands, lines, samples)."""
    order = ["bls".index(kind) for kind, _ in dims]
    with netcdf.Dataset(path, "w", format=format) as d:
        for k, (_, dim) in zip(order, dims):
            d.createDimension(dim, values.shape[k])
        for dim, numbers in dict(coordinates).items():
            d.createVariable(dim, "f8", (dim,))[:] = numbers
        variable = d.createVariable(name, "f4", [dim for _, dim in dims], fill_value=-9999.)
        variable[:] = values.transpose(order)
        d.setncatts(attributes or {})
    return path


def info(path):
    return succeed(run("gdal_hsi_info", path)).out


def position(path, out):
    succeed(run("gdal_hsi_pca", "-q", "-nc", "1", "-overwrite", path, out))
    return gdal.Open(str(out)).GetGeoTransform(can_return_null=True)


X, Y = 500015 + 30. * np.arange(SAMPLES), 4999985 - 30. * np.arange(LINES)
GRID = (500000, 30, 0, 5000000, 0, -30)


@pytest.mark.parametrize("size", [(9, 9, 9), (9, 11, 9), (9, 9, 11), (9, 11, 13)])
@pytest.mark.parametrize("ortho", [True, False])
def test_aviris_with_as_many_lines_or_samples_as_bands(tmp_path, size, ortho):
    values = np.random.default_rng(1).random(size).astype("f4")
    path = files.aviris(tmp_path, values, ortho)
    np.testing.assert_array_equal(seen_here(path, values.shape, tmp_path), values)


def seen_here(path, shape, folder):
    """Returns seen_pixels() for a scene that has a position."""
    labels = folder / "all.img"
    np.ones(shape[1:], "u1").tofile(labels)
    labels.with_suffix(".hdr").write_text(f"ENVI\nsamples = {shape[2]}\nlines = {shape[1]}\nbands = 1\nheader offset = 0\n"
                                          "data type = 1\ninterleave = bsq\nbyte order = 0\n")
    library = folder / "seen.sli"
    succeed(run("gdal_hsi_spectra", "-q", "-overwrite", "-kind", "every", "-bbl", "ignore", path, labels, library))
    return np.fromfile(library, "<f4").reshape(shape[1], shape[2], shape[0]).transpose(2, 0, 1)


@pytest.mark.parametrize("format", ["NETCDF4", "NETCDF3_CLASSIC"])
@pytest.mark.parametrize("order", ["bls", "bsl", "lsb", "slb", "lbs", "sbl"])
@pytest.mark.parametrize("names", [("y", "x"), ("lat", "lon"), ("lines", "samples"), ("northing", "easting")])
def test_named_axes_in_any_order(tmp_path, order, names, format):
    dims = {"b": "wavelength", "l": names[0], "s": names[1]}
    path = write(tmp_path / "a.nc", [(k, dims[k]) for k in order], format=format,
                 coordinates=[("wavelength", WAVELENGTHS), (names[0], Y), (names[1], X)])
    assert f"{SAMPLES} samples, {LINES} lines" in info(path) and "400" in info(path), info(path)
    np.testing.assert_array_equal(seen_here(path, VALUES.shape, tmp_path), VALUES)
    np.testing.assert_allclose(position(path, tmp_path / "p.tif"), GRID)


@pytest.mark.parametrize("names", [("y", "x"), ("rows", "cols"), ("number_of_lines", "pixels_per_line"),
                                   ("downtrack", "crosstrack"), ("along_track", "across_track")])
@pytest.mark.parametrize("order", ["bls", "slb"])
def test_named_axes_without_coordinates(tmp_path, order, names):
    """The first line of the file is the first line of the scene."""
    dims = {"b": "band", "l": names[0], "s": names[1]}
    path = write(tmp_path / "a.nc", [(k, dims[k]) for k in order])
    np.testing.assert_array_equal(seen_pixels(path, VALUES.shape, tmp_path), VALUES)


def test_lines_that_rise_are_turned_with_their_position(tmp_path):
    path = write(tmp_path / "a.nc", [("b", "wavelength"), ("l", "y"), ("s", "x")], VALUES[:, ::-1],
                 [("wavelength", WAVELENGTHS), ("y", Y[::-1]), ("x", X)])
    np.testing.assert_array_equal(seen_here(path, VALUES.shape, tmp_path), VALUES)


def test_coordinates_that_are_not_even_are_no_grid(tmp_path):
    path = write(tmp_path / "a.nc", [("b", "wavelength"), ("s", "x"), ("l", "y")],
                 coordinates=[("wavelength", WAVELENGTHS), ("x", X[0] + 30. * np.arange(SAMPLES) ** 2), ("y", Y)])
    result = succeed(run("gdal_hsi_pca", "-nc", "1", path, tmp_path / "p.tif"))
    assert "not evenly spaced" in result.out + result.err, result
    assert gdal.Open(str(tmp_path / "p.tif")).GetGeoTransform(can_return_null=True) is None


def test_columns_for_lines_by_an_array_s_name(tmp_path):
    """With the array's name, the file is read as without it; GDAL's driver cannot transpose it."""
    path = write(tmp_path / "a.nc", [("b", "wavelength"), ("s", "x"), ("l", "y")])
    name = f'NETCDF:"{path}":reflectance'
    np.testing.assert_array_equal(seen_pixels(name, VALUES.shape, tmp_path), VALUES)
    result = run("gdal_hsi_info", "-if", "netCDF", name)
    assert result.code == 1 and "reads the columns as lines" in first_error(result), result.err
    assert "transpose=[0,2,1]" in result.err


# --- EMIT files that were saved again


@pytest.mark.parametrize("kind", ["reflectance", "radiance"])
def test_emit_without_groups(tmp_path, out, kind):
    path = tmp_path / "a.nc"
    write(path, [("l", "downtrack"), ("s", "crosstrack"), ("b", "wavelengths")], name=kind,
          coordinates=[("wavelengths", WAVELENGTHS)])
    lon, lat = files.places(LINES, SAMPLES)
    with netcdf.Dataset(path, "a") as d:
        for name, numbers in (("lon", lon), ("lat", lat)):
            d.createVariable(name, "f8", ("downtrack", "crosstrack"))[:] = numbers
        d.createVariable("fwhm", "f4", ("wavelengths",))[:] = 8.5
    text = info(path)
    assert "EMIT" in text and "400" in text, text
    np.testing.assert_array_equal(seen_here(path, VALUES.shape, tmp_path), VALUES)
    succeed(run("gdal_hsi_atdca", "-q", "-t", "1", path, out / "t.geojson"))
    assert gdal.OpenEx(str(out / "t.geojson")).GetLayer(0).GetNextFeature().GetGeometryRef().GetX() < -117


def test_emit_on_its_grid(tmp_path):
    """Orthorectified by NASA's emit_tools: latitude and longitude are axes."""
    lat, lon = 34 - .001 * np.arange(LINES), -118 + .001 * np.arange(SAMPLES)
    path = write(tmp_path / "a.nc", [("l", "latitude"), ("s", "longitude"), ("b", "wavelengths")],
                 coordinates=[("wavelengths", WAVELENGTHS), ("latitude", lat), ("longitude", lon)])
    np.testing.assert_array_equal(seen_here(path, VALUES.shape, tmp_path), VALUES)
    np.testing.assert_allclose(position(path, tmp_path / "p.tif"), (-118.0005, .001, 0, 34.0005, 0, -.001))
    assert gdal.Open(str(tmp_path / "p.tif")).GetSpatialRef().IsGeographic()
    assert read(tmp_path / "p.tif").shape[1:] == (LINES, SAMPLES)
