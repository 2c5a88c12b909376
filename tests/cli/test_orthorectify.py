# SPDX-License-Identifier: MIT
"""gdal_hsi_orthorectify: every pixel of a lookup table's grid has the values of the pixel that it names. The expected
result is indexing in NumPy; tables rotate, repeat and omit pixels."""

import json
import re

import numpy as np
import pytest
from osgeo import gdal

import product_files as files
from conftest import (assert_untouched, envi_header, first_error, open_band, refuse, run, stored_bytes, succeed,
                      write_scene)

LINES, SAMPLES, BANDS = 41, 29, 12
PLACE = (500000.0, 18.0, 6.0, 4100000.0, 6.0, -18.0)


def turned(lines, samples, height, width, angle=0.5, seed=3):
    """Returns the sample and line (from 1; 0 for no pixel) of every pixel of a grid that sees a rotated swath with
    holes."""
    y, x = np.mgrid[0:height, 0:width].astype(float)
    x -= width / 2
    y -= height / 2
    c, s = np.cos(angle), np.sin(angle)
    sample = np.floor(c * x - s * y + samples / 2).astype(int) + 1
    line = np.floor((s * x + c * y) * 0.9 + lines / 2).astype(int) + 1
    inside = (sample >= 1) & (sample <= samples) & (line >= 1) & (line <= lines)
    inside &= np.random.default_rng(seed).random(inside.shape) > 0.02
    return np.where(inside, sample, 0), np.where(inside, line, 0)


def placed(cube, table, hole=np.nan):
    """Returns the expected result by NumPy's indexing."""
    sample, line = np.abs(table[0]), np.abs(table[1])
    out = cube[:, np.maximum(line, 1) - 1, np.maximum(sample, 1) - 1].astype(float)
    out[:, sample == 0] = hole
    return out


def values(bands=BANDS, seed=1):
    return np.random.default_rng(seed).integers(1, 3000, (bands, LINES, SAMPLES))


def write_table(path, table, dtype="i4", driver="ENVI", place=PLACE):
    return write_scene(path, np.stack(table), driver, dtype, geotransform=place, epsg=32611)


@pytest.fixture
def table():
    return turned(LINES, SAMPLES, 53, 47)


@pytest.fixture
def swath(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    return write_scene(folder / "swath.img", values(), "ENVI", "i2"), values()


def orthorectify(*args, **kwargs):
    return run("gdal_hsi_orthorectify", "-q", *args, **kwargs)


@pytest.mark.quick
def test_values_are_numpys(swath, table, tmp_path):
    path, cube = swath
    # Negative numbers also name pixels; they mark pixels that fill gaps.
    signed = (np.where(np.indices(table[0].shape)[1] % 5 == 0, -table[0], table[0]), table[1])
    glt = write_table(tmp_path / "in" / "line_glt", signed)
    succeed(orthorectify("-glt", glt, "-report", tmp_path / "r.json", path, tmp_path / "o.tif"))
    ds = gdal.Open(str(tmp_path / "o.tif"))
    assert ds.GetRasterBand(1).DataType == gdal.GDT_Int16
    hole = ds.GetRasterBand(1).GetNoDataValue()
    assert hole is not None and hole < 0
    assert np.array_equal(ds.ReadAsArray(), placed(cube, table, hole))
    assert np.allclose(ds.GetGeoTransform(), PLACE)
    assert ds.GetSpatialRef().GetAuthorityCode(None) == "32611"
    told = json.loads((tmp_path / "r.json").read_text())
    assert told["pixels"] == {"grid": table[0].size, "placed": int((table[0] > 0).sum())}


@pytest.mark.parametrize("driver, options", [("ENVI", ()), ("GTiff", ("TILED=YES", "INTERLEAVE=BAND", "COMPRESS=DEFLATE"))])
def test_the_memory_that_is_named_is_enough(tmp_path, driver, options):
    """Also if the scene is in memory in addition to the pieces that are read."""
    cube = np.random.default_rng(1).integers(1, 3000, (60, 300, 300))
    scene = write_scene(tmp_path / "s.img", cube, driver, "i2", options)
    line, sample = np.mgrid[1:301, 1:301]
    glt = write_table(tmp_path / "g.tif", (sample, line), driver="GTiff")
    common = ("-threads", 1, "-glt", glt, scene, tmp_path / "o.tif")
    named = set()
    for size in ("1MB", "20MB", "30MB", "40MB"):
        result = run("gdal_hsi_orthorectify", "-q", "-memory", size, *common)
        assert result.code == 1 and "more than" in first_error(result), result.err
        named.add(re.search(r"Use -memory ([0-9]+)MB or more", result.err)[1])
    for size in (*named, 60, 70, 80, 100):
        if int(size) >= min(map(int, named)):
            succeed(orthorectify("-overwrite", "-memory", f"{size}MB", *common))
    assert all(int(size) < 64 for size in named), named


def test_neither_tiles_nor_threads_nor_memory_matter(swath, table, tmp_path):
    path, cube = swath
    glt = write_table(tmp_path / "in" / "line_glt", table)
    compressed = tmp_path / "in" / "swath.tif"
    gdal.Translate(str(compressed), str(path), creationOptions=["COMPRESS=DEFLATE", "TILED=YES", "BLOCKXSIZE=16", "BLOCKYSIZE=16"])
    succeed(orthorectify("-glt", glt, path, tmp_path / "o.dat"))
    want = stored_bytes(tmp_path / "o.dat")
    for k, (source, options) in enumerate((
            (path, ("-tile", 7, 5)), (path, ("-threads", 3, "-tile", 47, 2)), (compressed, ()), (compressed, ("-tile", 16, 16)),
            (compressed, ("-memory", "64MB", "-threads", 1)))):
        succeed(orthorectify("-glt", glt, *options, source, tmp_path / f"{k}.dat"))
        assert stored_bytes(tmp_path / f"{k}.dat") == want, options


def test_a_scene_whose_pieces_do_not_fit_the_scratch(tmp_path):
    # 400 bands, and a table that jumps across the whole scene: its window has 60 MB in single precision.
    cube = np.random.default_rng(5).integers(0, 255, (400, 200, 200)).astype("u1")
    path = write_scene(tmp_path / "s.img", cube, "ENVI", "u1")
    random = np.random.default_rng(6)
    table = (random.integers(0, 201, (30, 40)), random.integers(1, 201, (30, 40)))
    glt = write_table(tmp_path / "glt", table)
    succeed(orthorectify("-glt", glt, "-dstnodata", 255, "-ot", "Int16", path, tmp_path / "o.tif"))
    assert np.array_equal(gdal.Open(str(tmp_path / "o.tif")).ReadAsArray(), placed(cube, table, 255))


def test_holes_and_nan_of_the_scene_stay(table, tmp_path):
    cube = np.random.default_rng(2).normal(size=(3, LINES, SAMPLES)).astype("f4")
    cube[1, 5, 6] = np.nan
    cube[:, 20, 10] = -9999
    path = write_scene(tmp_path / "s.tif", cube, "GTiff", "f4", nodata=-9999)
    glt = write_table(tmp_path / "glt", table)
    succeed(orthorectify("-glt", glt, path, tmp_path / "o.tif"))
    want = placed(np.where(np.isnan(cube), -9999, cube), table, -9999)
    assert np.array_equal(gdal.Open(str(tmp_path / "o.tif")).ReadAsArray(), want.astype("f4"))


def test_what_is_said_of_bands_travels(swath, table, tmp_path):
    path = write_scene(tmp_path / "in" / "told.img", swath[1], "ENVI", "i2", wavelengths=[400.5 + 10 * k for k in range(BANDS)],
                       bbl=[int(k != 4) for k in range(BANDS)])
    glt = write_table(tmp_path / "in" / "line_glt", table)
    succeed(orthorectify("-glt", glt, path, tmp_path / "o.img", "-of", "ENVI"))
    kept = [k for k in range(BANDS) if k != 4]
    assert [float(n) for n in envi_header(tmp_path / "o.img")["wavelength"]] == [400.5 + 10 * k for k in kept]
    # A class map keeps its legend.
    labels = (values(1) % 4).astype("u1")
    classes = write_scene(tmp_path / "in" / "map.tif", labels, "GTiff", "u1")
    ds = gdal.Open(str(classes), gdal.GA_Update)
    ds.GetMetadata()  # GDAL 3.6 reads the .aux.xml only then, and overwrites earlier settings
    ds.GetRasterBand(1).SetCategoryNames(["none", "water", "soil", "grass"])
    colours = gdal.ColorTable()
    for k in range(4):
        colours.SetColorEntry(k, (10 * k, 200 - 10 * k, 7, 255))
    ds.GetRasterBand(1).SetColorTable(colours)
    ds = None
    succeed(orthorectify("-glt", glt, classes, tmp_path / "map.tif"))
    band = open_band(tmp_path / "map.tif")
    band.GetMetadata()
    assert band.GetCategoryNames() == ["none", "water", "soil", "grass"] and band.DataType == gdal.GDT_Byte
    assert band.GetColorTable().GetColorEntry(2) == (20, 180, 7, 255)


def test_emit_by_its_own_table(tmp_path):
    pytest.importorskip("netCDF4", reason="EMIT's layout is written with netCDF4 (Debian: python3-netcdf4)")
    cube = values(10).astype("f4")
    table = turned(LINES, SAMPLES, LINES + 4, SAMPLES + 6)
    folder = tmp_path / "product"
    folder.mkdir()
    path = files.emit(folder, cube, glt=table, chunks=(8, 5, 7))
    succeed(orthorectify("-bbl", "ignore", path, tmp_path / "o.tif"))
    ds = gdal.Open(str(tmp_path / "o.tif"))
    assert np.array_equal(ds.ReadAsArray(), placed(cube, table, ds.GetRasterBand(1).GetNoDataValue()).astype("f4"))
    assert np.allclose(ds.GetGeoTransform(), (-118.01, 0.0006, 0, 34.01, 0, -0.0006))
    assert ds.GetSpatialRef().IsGeographic() and not ds.GetMetadata("GEOLOCATION")
    # A result made from the scene, and from a part of it.
    for name, window in (("whole", ()), ("part", ("-srcwin", 4, 7, 20, 25))):
        succeed(run("gdal_hsi_pca", "-q", "-device", "cpu", "-nc", 2, *window, path, tmp_path / f"{name}.tif"))
        components = gdal.Open(str(tmp_path / f"{name}.tif")).ReadAsArray()
        sample, line = table
        if window:
            _, x, y, w, h = window
            there = (sample > x) & (sample <= x + w) & (line > y) & (line <= y + h)
            sample, line = np.where(there, sample - x, 0), np.where(there, line - y, 0)
        succeed(orthorectify("-glt", path, tmp_path / f"{name}.tif", tmp_path / f"{name}_o.tif"))
        ds = gdal.Open(str(tmp_path / f"{name}_o.tif"))
        got = np.where(ds.ReadAsArray() == ds.GetRasterBand(1).GetNoDataValue(), np.nan, ds.ReadAsArray())
        assert np.array_equal(got, placed(components, (sample, line)).astype("f4"), equal_nan=True), name
        assert ds.GetRasterBand(1).GetDescription() == "PC1"


@pytest.mark.quick
def test_bad_input(swath, table, tmp_path):
    path, cube = swath
    before = tmp_path / "in"
    good = write_table(before / "good", table)
    far = (np.where(table[0] > 0, table[0] + 1000, 0), table[1])
    cases = {
        "no table": ((path,), "is not a lookup table: it has 12 bands"),
        "floats": (("-glt", write_table(before / "floats", table, "f4"), path), "its bands are Float32"),
        "nowhere": (("-glt", write_table(before / "nowhere.tif", table, driver="GTiff", place=None), path),
                    "it has no geotransform"),
        "empty": (("-glt", write_table(before / "empty", tuple(0 * t for t in table)), path), "no pixel of the grid has a value"),
        "missing": (("-glt", before / "missing", path), "missing"),
        "vrt": (("-glt", good, "-of", "VRT", path), "VRT"),
    }
    with assert_untouched(before):
        for name, (arguments, words) in cases.items():
            result = orthorectify(*arguments, tmp_path / "o.tif")
            assert result.code != 0, name
            assert words is None or words in first_error(result), (name, result.err)
            assert not (tmp_path / "o.tif").exists(), name
        # If the table does not state the size of its scene, it may refer to pixels outside src.
        result = orthorectify("-glt", write_table(tmp_path / "far", far), path, tmp_path / "o.tif")
        assert result.code == 1 and "no pixel of the grid has a value" in first_error(result)


def test_bad_products(tmp_path):
    pytest.importorskip("netCDF4", reason="EMIT's layout is written with netCDF4 (Debian: python3-netcdf4)")
    cube = values(10).astype("f4")
    table = turned(LINES, SAMPLES, LINES + 4, SAMPLES + 6)
    table[1][3, 3], table[0][3, 3] = LINES + 1, 1
    path = files.emit(tmp_path, cube, glt=table)
    result = orthorectify(path, tmp_path / "o.tif")
    assert result.code == 1 and f"points to sample 1, line {LINES + 1}, outside" in first_error(result)
    # A raster whose size differs from the table's scene.
    other = write_scene(tmp_path / "other.img", cube[:, :-1], "ENVI", "f4")
    result = orthorectify("-glt", path, other, tmp_path / "o.tif")
    assert result.code == 2 and f"is for a scene of {SAMPLES}x{LINES} pixels" in first_error(result)
    assert not (tmp_path / "o.tif").exists()


def test_as_a_scene_that_computes(tmp_path, swath, table):
    """-of HSI gives the bits of the file: from the scene, from another virtual scene, and as a step of a pipeline."""
    path, _ = swath
    glt = write_table(tmp_path / "in" / "glt", table)
    cpu = ("-q", "-device", "cpu")
    succeed(orthorectify("-glt", glt, path, tmp_path / "o.dat"))
    succeed(orthorectify("-glt", glt, path, tmp_path / "o.hsi"))
    succeed(run("gdal_hsi_spp", *cpu, path, tmp_path / "y.dat"))
    succeed(orthorectify("-glt", glt, tmp_path / "y.dat", tmp_path / "oy.dat"))
    succeed(run("gdal_hsi_spp", *cpu, path, tmp_path / "y.hsi"))
    succeed(orthorectify("-glt", glt, tmp_path / "y.hsi", tmp_path / "oy.hsi"))
    for name in ("o", "oy"):
        succeed(run("gdal_hsi_pca", *cpu, "-nc", 3, tmp_path / f"{name}.dat", tmp_path / f"{name}_pca.dat"))
        for tile in ((), ("-tile", 11, 9, "-threads", 3)):
            succeed(run("gdal_hsi_pca", *cpu, "-overwrite", *tile, "-nc", 3, tmp_path / f"{name}.hsi",
                        tmp_path / f"{name}_computed.dat"))
            assert stored_bytes(tmp_path / f"{name}_computed.dat") == stored_bytes(tmp_path / f"{name}_pca.dat")
    facts = [json.loads(succeed(run("gdal_hsi_info", "-json", tmp_path / f"o.{kind}")).out) for kind in ("dat", "hsi")]
    for key in ("samples", "lines", "bands", "type", "geotransform", "srs", "nodata"):
        assert facts[0].get(key) == facts[1].get(key), key
    succeed(run("gdal_hsi_pipeline", *cpu, "read", path, "!", "spp", "!", "orthorectify", "-glt", glt, "!", "tee", "pca",
                "-nc", 3, tmp_path / "p_pca.dat", "!", "write", tmp_path / "p.dat", "-of", "ENVI"))
    assert stored_bytes(tmp_path / "p.dat") == stored_bytes(tmp_path / "oy.dat")
    assert stored_bytes(tmp_path / "p_pca.dat") == stored_bytes(tmp_path / "oy_pca.dat")


def test_a_computed_grid_whose_table_was_changed(tmp_path, swath, table):
    path, _ = swath
    glt = write_table(tmp_path / "in" / "glt", table)
    succeed(orthorectify("-glt", glt, path, tmp_path / "o.hsi"))
    (tmp_path / "out").mkdir()
    write_table(tmp_path / "in" / "glt", turned(LINES, SAMPLES, 53, 47, seed=9))
    refuse(1, "was changed after", "gdal_hsi_pca", "-q", tmp_path / "o.hsi", tmp_path / "out" / "p.tif", untouched=[tmp_path])
