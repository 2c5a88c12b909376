# SPDX-License-Identifier: MIT
"""Damaged products. For some of them the HDF5 library ends the process (1.10.8 for any wrong byte in the list of a
group with many members). Every tool must report an ordinary error."""

import pathlib
import sys

import numpy as np
import pytest
from conftest import ROOT, cube, first_error, refuse, run, succeed, write_scene

sys.path.insert(0, str(ROOT / "tests" / "cli"))
import product_files  # noqa: E402

pytest.importorskip("h5py")
pytest.importorskip("netCDF4")

VALUES = cube(samples=12, lines=10, bands=9)
PRODUCTS = ("emit", "prisma", "neon", "aviris", "tanager")


def damaged(path, changes):
    content = bytearray(pathlib.Path(path).read_bytes())
    for at, value in changes:
        content[at] = value
    pathlib.Path(path).write_bytes(content)
    return path


def emit_with_a_damaged_list(folder, at=30):
    """Damages the root group's members, which are in a block with a checksum."""
    path = product_files.emit(folder, VALUES)
    begin = path.read_bytes().index(b"FHDB")
    return damaged(path, [(begin + at, 31)])


@pytest.mark.parametrize("at", [22, 31, 50])
@pytest.mark.parametrize("tool", ["gdal_hsi_info", "gdal_hsi_pca", "gdal_hsi_vd"])
def test_a_damaged_list_of_members_is_an_error(tmp_path, out, tool, at):
    path = emit_with_a_damaged_list(tmp_path, at)
    arguments = [out / "x.tif"] if tool == "gdal_hsi_pca" else []
    for name in (path, f'HDF5:"{path}"://reflectance'):
        refuse(1, str(path), tool, "-q", name, *arguments, untouched=[tmp_path])


def test_a_damaged_file_as_labels_and_as_an_old_output(tmp_path, out):
    path = emit_with_a_damaged_list(tmp_path)
    scene = write_scene(out / "scene.img", VALUES)
    result = run("gdal_hsi_sample", "-q", "-n", "3", path, out / "train.tif", out / "test.tif")
    assert result.code == 1 and "is damaged" in first_error(result), result.err
    old = out / "old.tif"
    old.write_bytes(path.read_bytes())
    succeed(run("gdal_hsi_pca", "-q", "-nc", "2", "-overwrite", scene, old))
    assert old.read_bytes()[:2] == b"II"


@pytest.mark.parametrize("product", PRODUCTS)
def test_no_damage_ends_a_tool_by_a_signal(tmp_path, out, product):
    """Damages bytes of headers and lists, before and after the values."""
    whole = getattr(product_files, product)(tmp_path, VALUES).read_bytes()
    random = np.random.default_rng(len(product))
    path = tmp_path / "damaged.h5"
    for k in range(12):
        path.write_bytes(whole)
        places = random.integers(0, len(whole), [1, 3, 10, 30][k % 4])
        damaged(path, [(at, int(random.integers(0, 256))) for at in places])
        result = run("gdal_hsi_info", "-q", path)
        assert result.code in (0, 1), (k, result.code, result.err)
        if result.code == 1:
            first_error(result)


def test_a_file_that_was_mended_is_read(tmp_path, out):
    """The result of the trial belongs to a state of the file, not to its name."""
    path = emit_with_a_damaged_list(tmp_path)
    assert run("gdal_hsi_info", "-q", path).code == 1
    product_files.emit(tmp_path, VALUES)
    succeed(run("gdal_hsi_info", "-q", path))


def classic_netcdf(path, form, records):
    """records: the lines are the unlimited dimension, and a second variable has a part of each record."""
    import netCDF4
    with netCDF4.Dataset(path, "w", format=form) as file:
        file.title = "odd"
        for name, size in (("band", 9), ("line", None if records else 10), ("sample", 12)):
            file.createDimension(name, size)
        order = ("line", "band", "sample") if records else ("band", "line", "sample")
        file.createVariable("cube", "i2", order)[:] = np.round(VALUES.transpose(1, 0, 2) if records else VALUES)
        if records:
            file.createVariable("flag", "i1", ("line",))[:] = np.arange(1, 11)
    return path


@pytest.mark.parametrize("records", [False, True])
@pytest.mark.parametrize("form", ["NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET"])
def test_classic_netcdf_that_ends_early(tmp_path, out, form, records):
    """The netCDF library reads zeros there."""
    path = classic_netcdf(tmp_path / "scene.nc", form, records)
    whole = path.read_bytes()
    names = [path] if records else [path, f"NETCDF:{path}:cube"]
    succeed(run("gdal_hsi_spp", "-q", "-device", "cpu", path, tmp_path / "right.tif"))
    # The padding after the last variable has no meaning: of records of bytes, or of a cube of 2160.
    padding = 3 if records else 0
    for length in (len(whole) - padding - 1, len(whole) - 500, len(whole) // 2):
        path.write_bytes(whole[:length])
        for name in names:
            refuse(1, "the rest is missing", "gdal_hsi_spp", "-q", "-device", "cpu", name, out / "out.tif", untouched=[out])
    path.write_bytes(whole[:len(whole) - padding])
    succeed(run("gdal_hsi_spp", "-q", "-device", "cpu", path, tmp_path / "again.tif"))
    path.write_bytes(whole + b"and more")
    succeed(run("gdal_hsi_spp", "-q", "-device", "cpu", path, tmp_path / "longer.tif"))


@pytest.mark.parametrize("form", ["NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET"])
def test_classic_netcdf_without_a_number_of_records(tmp_path, out, form):
    """For a streamed file, the netCDF library assumes wrong dimensions, or does not return."""
    path = damaged(classic_netcdf(tmp_path / "scene.nc", form, True), [(at, 0xff) for at in range(4, 8)])
    for name in (path, f"NETCDF:{path}:cube"):
        refuse(1, "does not state its count of records", "gdal_hsi_spp", "-q", "-device", "cpu", name, out / "out.tif", untouched=[out])
    result = run("gdal_hsi_info", path)
    assert result.code == 1 and "does not state its count of records" in first_error(result), result.err
