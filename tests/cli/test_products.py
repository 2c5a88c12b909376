# SPDX-License-Identifier: MIT
"""Products whose band axis is not where GDAL's two-dimensional readers expect it. They are refused with a command that
reorders the axes, and this command works. The small files have the layouts of EMIT L2A (user guide JPL D-107866:
reflectance is downtrack x crosstrack x bands) and PRISMA L2D (ASI product specification: VNIR_Cube is line x band x
sample)."""

import re
import subprocess

import numpy as np
import pytest
from osgeo import gdal

from conftest import first_error, run, succeed

DOWN, CROSS, BANDS = 40, 30, 25


def vd(*args):
    return run("gdal_hsi_vd", *args)


@pytest.fixture
def emit(tmp_path):
    netcdf = pytest.importorskip("netCDF4", reason="EMIT's layout is written with netCDF4 (Debian: python3-netcdf4)")
    values = np.random.default_rng(1).random((DOWN, CROSS, BANDS), dtype="f4")
    path = tmp_path / "EMIT_L2A_RFL.nc"
    with netcdf.Dataset(path, "w") as d:
        for name, size in (("downtrack", DOWN), ("crosstrack", CROSS), ("bands", BANDS)):
            d.createDimension(name, size)
        d.geotransform = np.array([-118, 0.0005, 0, 34, 0, -0.0005])
        d.spatial_ref = 'GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,298.257223563]],PRIMEM["Greenwich",0],' \
                        'UNIT["degree",0.0174532925199433]]'
        d.createVariable("reflectance", "f4", ("downtrack", "crosstrack", "bands"), fill_value=-9999.)[:] = values
        group = d.createGroup("sensor_band_parameters")
        for name, content in (("wavelengths", np.linspace(380, 2500, BANDS)), ("fwhm", 8.5), ("good_wavelengths", 1)):
            group.createVariable(name, "f4", ("bands",))[:] = content
        group = d.createGroup("location")
        for name in ("lat", "lon", "elev"):
            group.createVariable(name, "f8", ("downtrack", "crosstrack"))[:] = 1
    return path, np.moveaxis(values, 2, 0)


PRISMA = "/HDFEOS/SWATHS/PRS_L2D_HCO/Data Fields/"


@pytest.fixture
def prisma(tmp_path):
    h5py = pytest.importorskip("h5py", reason="PRISMA's layout is written with h5py (Debian: python3-h5py)")
    random = np.random.default_rng(2)
    path = tmp_path / "PRS_L2D_STD.he5"
    vnir = random.integers(0, 60000, (DOWN, 12, CROSS), dtype="u2")
    with h5py.File(path, "w") as h:
        for name, size in (("Vnir", 12), ("Swir", 20)):
            h.attrs["List_Cw_" + name] = np.linspace(1000, 400, size).astype("f4")
            h.attrs["List_Fwhm_" + name] = np.full(size, 10, "f4")
        h.attrs["Epsg_Code"] = 32632
        h[PRISMA + "VNIR_Cube"] = vnir
        h[PRISMA + "SWIR_Cube"] = random.integers(0, 60000, (DOWN, 20, CROSS), dtype="u2")
        h["/HDFEOS INFORMATION/StructMetadata.0"] = np.bytes_("GROUP=SwathStructure\nEND_GROUP=SwathStructure\nEND\n")
    return path, np.moveaxis(vnir, 1, 0)


def misread(name, bands):
    """Returns true if this GDAL reads the axes in the wrong order; newer versions support some products."""
    dataset = gdal.Open(name)
    return dataset.RasterCount != bands


def follow(result, cube):
    """Runs the command in the advice, and returns the resulting cube."""
    command = re.search(r"gdalmdimtranslate .*? cube\.nc", result.err).group(0)
    subprocess.run(["sh", "-c", command], cwd=cube.parent, check=True, capture_output=True)
    assert "--config GDAL_NETCDF_BOTTOMUP NO" in result.err
    return cube


def check_turned(cube, want, tmp_path):
    gdal.SetConfigOption("GDAL_NETCDF_BOTTOMUP", "NO")
    try:
        assert np.array_equal(gdal.Open(str(cube)).ReadAsArray(), want)
    finally:
        gdal.SetConfigOption("GDAL_NETCDF_BOTTOMUP", None)
    # The tools read it so, too: the first component equals that of the same values in a GeoTIFF.
    straight = gdal.GetDriverByName("GTiff").Create(str(tmp_path / "straight.tif"), CROSS, DOWN, len(want),
                                                    gdal.GDT_Float32)
    straight.WriteArray(want.astype("f4"))
    straight = None
    for source, name in ((cube, "a.tif"), (tmp_path / "straight.tif", "b.tif")):
        succeed(run("gdal_hsi_pca", "-device", "cpu", "--config", "GDAL_NETCDF_BOTTOMUP", "NO", "-nc", 1, source,
                    tmp_path / name))
    assert np.array_equal(gdal.Open(str(tmp_path / "a.tif")).ReadAsArray(), gdal.Open(str(tmp_path / "b.tif")).ReadAsArray())


def test_emit_is_refused_with_a_way_out(emit, tmp_path):
    path, want = emit
    name = f'NETCDF:"{path}":reflectance'
    if not misread(name, BANDS):
        pytest.skip("this GDAL takes EMIT's axes in the right order")
    succeed(vd(name))  # without -if, the product's own array is read
    result = vd("-if", "netCDF", name)
    assert result.code == 1, result.out
    assert "downtrack 40 x crosstrack 30 x bands 25" in first_error(result)
    assert "reads the 25 bands as columns" in first_error(result)
    assert f"Use '{path}' itself, which is read as EMIT L2A reflectance" in result.err
    succeed(vd(path))  # the file itself is recognised (test_product_scenes.py)
    check_turned(follow(result, tmp_path / "cube.nc"), want, tmp_path)


def test_prisma_is_refused_with_a_way_out(prisma, tmp_path):
    path, want = prisma
    if gdal.GetDriverByName("HDF5") is None:
        pytest.skip("this GDAL has no driver HDF5")
    name = f'HDF5:"{path}":/{PRISMA.replace(" ", "_")}VNIR_Cube'
    if not misread(name, 12):
        pytest.skip("this GDAL takes PRISMA's axes in the right order")
    succeed(vd(path))  # the file itself is recognised (test_product_scenes.py)
    succeed(vd(name))
    result = vd("-if", "HDF5Image", name)
    assert result.code == 1 and "reads the 12 bands as lines" in first_error(result)
    check_turned(follow(result, tmp_path / "cube.nc"), want, tmp_path)


@pytest.mark.parametrize("axes", [("band", "y", "x"), ("wavelength", "lat", "lon"), ("time", "y", "x"), ("z", "rows", "cols")])
def test_cubes_in_order_are_read(tmp_path, axes):
    netcdf = pytest.importorskip("netCDF4", reason="the cubes are written with netCDF4 (Debian: python3-netcdf4)")
    path = tmp_path / "cube.nc"
    values = np.random.default_rng(3).random((BANDS, 5, 4), dtype="f4")  # many bands, few columns
    with netcdf.Dataset(path, "w") as d:
        for name, size in zip(axes, values.shape):
            d.createDimension(name, size)
        d.createVariable("cube", "f4", axes)[:] = values
        d.createVariable("wavelengths", "f4", axes[:1])[:] = np.linspace(400, 900, BANDS)
    succeed(run("gdal_hsi_pca", "-device", "cpu", "-nc", 2, path, tmp_path / "y.tif"))


def test_nameless_axes_with_many_bands_and_few_columns(tmp_path):
    h5py = pytest.importorskip("h5py", reason="the cube is written with h5py (Debian: python3-h5py)")
    with h5py.File(tmp_path / "a.h5", "w") as h:
        h["cube"] = np.random.default_rng(4).random((120, 30, 25), dtype="f4")
        h["other"] = np.zeros((2, 2))
    with h5py.File(tmp_path / "b.h5", "w") as h:
        h["cube"] = np.random.default_rng(4).random((60, 30, 25), dtype="f4")
        h["other"] = np.zeros((2, 2))
    if gdal.GetDriverByName("HDF5") is None:
        pytest.skip("this GDAL has no driver HDF5")
    result = vd(f'HDF5:"{tmp_path}/a.h5"://cube')
    assert result.code == 1 and "25 bands as columns" in first_error(result)
    succeed(vd(f'HDF5:"{tmp_path}/b.h5"://cube'))
