# SPDX-License-Identifier: MIT
"""The name and format of a destination: ENVI's extensions, formats that need a trial on disk, a position or a folder,
formats that keep fewer bands, and names that are not files. tests/raster/output_format_test.cpp tests every driver."""

import contextlib
import itertools
import json
import pathlib
import sqlite3

import numpy as np
import pytest
from osgeo import gdal, ogr, osr

from conftest import (PLUGINS, UTM, assert_untouched, cube, envi_header, first_error, open_band, read, refuse, refuse_spp, run,
                      spp, succeed, write_scene)


def pca(*args, **kwargs):
    return run("gdal_hsi_pca", "-device", "cpu", *args, **kwargs)


@pytest.fixture(scope="module")
def big_bands(tmp_path_factory):
    """Returns a scene whose outputs need at least a megabyte."""
    return write_scene(tmp_path_factory.mktemp("bands") / "scene.img", cube(60, 50, 70))


def has_driver(name):
    if gdal.GetDriverByName(name) is None:
        pytest.skip(f"this GDAL has no driver {name}")


@pytest.mark.parametrize("name", ["y.dat", "y.raw", "y.bsq", "y.bil", "y.bip", "Y.DAT"])
@pytest.mark.parametrize("tool", ["gdal_hsi_spp", "gdal_hsi_pca"])
def test_envis_extensions_mean_envi(scene, out, name, tool):
    succeed(run(tool, "-device", "cpu", scene, out / name))
    succeed(run(tool, "-device", "cpu", scene, out / "want.tif"))
    dataset = gdal.Open(str(out / name))
    assert dataset.GetDriver().ShortName == "ENVI"
    interleave = name[2:] if name[2:] in ("bil", "bip") else "bsq"
    assert envi_header(out / name)["interleave"] == interleave
    assert np.array_equal(read(out / name), read(out / "want.tif"))


@pytest.mark.quick
def test_an_interleave_that_is_given_wins(scene, out):
    succeed(spp("-co", "INTERLEAVE=BSQ", scene, out / "y.bil"))
    assert envi_header(out / "y.bil")["interleave"] == "bsq"


def test_an_img_is_what_gdal_translate_makes_of_it(scene, out):
    has_driver("HFA")
    succeed(spp(scene, out / "y.img"))
    assert gdal.Open(str(out / "y.img")).GetDriver().ShortName == "HFA"


@pytest.mark.parametrize("driver", ["ZMap", "GSAG", "GSBG", "GTX", "CTable2", "CALS", "XYZ", "HF2"])
def test_formats_of_one_band_are_refused(scene, out, driver):
    has_driver(driver)
    with assert_untouched(out):
        result = spp("-of", driver, scene, out / "y.dat")
    assert result.code == 2, (result.code, result.err)
    assert f"{driver} cannot store 12 bands of Float32" in first_error(result)


def test_values_that_come_back_different_are_refused(scene, out):
    has_driver("CALS")
    with assert_untouched(out):
        result = pca("-nc", 1, "-ot", "Byte", "-of", "CALS", scene, out / "y.cal")
    assert result.code == 2 and "cannot store 1 band of Byte" in first_error(result)


@pytest.mark.quick
def test_netcdf_holds_all_bands_and_their_wavelengths(utm_scene, out):
    has_driver("netCDF")
    scene = utm_scene
    succeed(spp(scene, out / "y.tif"))
    succeed(spp(scene, out / "y.nc"))
    dataset = gdal.Open(str(out / "y.nc"))
    assert dataset.RasterCount == 12
    assert np.array_equal(read(out / "y.nc"), read(out / "y.tif"))
    assert np.allclose(dataset.GetGeoTransform(), gdal.Open(scene).GetGeoTransform(), rtol=0, atol=1e-6)
    assert dataset.GetSpatialRef().GetAuthorityCode(None) == "32616"
    # The bands are a dimension of the variable, and our own reader finds the wavelengths there.
    assert [float(open_band(out / "y.nc", b + 1).GetMetadataItem("NETCDF_DIM_wavelength")) for b in range(12)] == \
        [400 + 10 * b for b in range(12)]
    succeed(pca("-nc", 3, "-model", out / "m.json", scene, out / "c.tif"))
    result = pca("-apply", out / "m.json", out / "y.nc", out / "d.tif")
    succeed(result)
    assert "wavelength" not in result.err, result.err
    assert sorted(p.name for p in out.iterdir()) == ["c.tif", "d.tif", "m.json", "y.nc", "y.nc.aux.xml", "y.tif"]


def test_netcdf_of_derived_bands_without_a_place(tmp_path, out):
    has_driver("netCDF")
    path = write_scene(tmp_path / "s.img", cube(), geotransform=None, epsg=None)
    succeed(pca("-nc", 5, path, out / "y.tif"))
    succeed(pca("-nc", 5, path, out / "y.nc"))
    assert np.array_equal(read(out / "y.nc"), read(out / "y.tif"))


@pytest.mark.parametrize("name, options", [("y.nc", []), ("y.img", ["-of", "HFA"])])
def test_a_full_disk_is_no_wrong_format(big_bands, small_disk, name, options):
    """The trial of a format fails if the disk is full, which proves nothing about the format."""
    has_driver("netCDF")
    with open(small_disk / "full", "wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    with assert_untouched(small_disk):
        result = pca("-nc", 60, *options, big_bands, small_disk / name)
    assert result.code == 1 and "space" in first_error(result) and "cannot store" not in result.err, result.err


@pytest.mark.quick
def test_netcdf_as_source_and_destination(scene, out):
    has_driver("netCDF")
    succeed(spp(scene, out / "a.nc"))
    # The source has a dimension for its bands that this output lacks.
    for bands, name in ((3, "b.nc"), (1, "c.nc")):
        succeed(pca("-nc", bands, out / "a.nc", out / name))
        succeed(pca("-nc", bands, out / "a.nc", out / "want.tif", "-overwrite"))
        assert np.array_equal(read(out / name), read(out / "want.tif"))


@pytest.mark.quick
def test_geopackage_holds_one_band_of_floats_where_it_has_a_place(scene, tmp_path, out):
    has_driver("GPKG")
    succeed(pca("-nc", 1, scene, out / "y.tif"))
    succeed(pca("-nc", 1, scene, out / "y.gpkg"))
    assert np.array_equal(read(out / "y.gpkg"), read(out / "y.tif"))
    nowhere = write_scene(tmp_path / "s.img", cube(), geotransform=None, epsg=None)
    with assert_untouched(out):
        result = pca("-nc", 1, nowhere, out / "z.gpkg")
    assert result.code == 2 and "GPKG cannot store" in first_error(result)


@pytest.mark.quick
def test_zarr_is_a_folder_that_is_complete(scene, out):
    has_driver("Zarr")
    result = spp(scene, out / "y.zarr")
    succeed(result)
    succeed(spp(scene, out / "y.tif"))
    want = read(out / "y.tif")

    def bands():
        whole = gdal.Open(str(out / "y.zarr"))
        if whole.RasterCount:
            return whole.ReadAsArray()
        return np.stack([gdal.Open(f'ZARR:"{out / "y.zarr"}":/Band{b + 1}').ReadAsArray() for b in range(len(want))])

    assert np.array_equal(bands(), want)
    assert sorted(p.name for p in out.iterdir()) == ["y.tif", "y.zarr"]
    with assert_untouched(out):
        assert "already exists" in first_error(spp(scene, out / "y.zarr"))
    succeed(spp("-ws", 3, "-overwrite", scene, out / "y.zarr"))
    succeed(spp("-ws", 3, "-overwrite", scene, out / "y.tif"))
    want = read(out / "y.tif")
    assert np.array_equal(bands(), want)
    assert sorted(p.name for p in out.iterdir()) == ["y.tif", "y.zarr"]


@pytest.mark.parametrize("name", ["PG:dbname=x", "MYSQL:x", "NETCDF:a.nc:cube", "GTIFF_RAW:a.tif", "gtiff_raw:a.tif",
                                  "NITF_IM:0:a.ntf", "L1BGCPS:a.tif", "HDF4_GR:a:b"])
def test_a_connection_is_no_destination(scene, tmp_path, name):
    work = tmp_path / "work"
    work.mkdir()
    with assert_untouched(work):
        for args in (["gdal_hsi_spp", "-device", "cpu", scene, name], ["gdal_hsi_atdca", "-device", "cpu", "-t", "3", scene, name],
                     ["gdal_hsi_spp", "-device", "cpu", "-of", "GTiff", scene, name]):
            result = run(*args, cwd=work)
            assert result.code == 2, (args, result.err)
            assert name in first_error(result) and "is not a file" in first_error(result)


def test_a_database_driver_is_refused(scene, out):
    has_driver("PostgreSQL")
    refuse(2, "into files", "gdal_hsi_atdca", "-device", "cpu", "-t", 3, "-of", "PostgreSQL", scene, out / "t", untouched=[out])


def test_a_header_is_no_destination(scene, out):
    refuse_spp(2, "header", scene, out / "y.hdr", untouched=[out])


# --- Files that an output would remove
# -----------------------------------------------------------------------------------

def test_a_folder_is_no_zarr_file_to_be_replaced(scene, tmp_path):
    has_driver("Zarr")
    folder = tmp_path / "day"
    folder.mkdir()
    inside = folder / "scene.img"
    gdal.Translate(str(inside), scene, format="ENVI")
    (folder / "notes.txt").write_text("notes")
    (tmp_path / "link").symlink_to(folder)
    refuse_spp(1, "is a folder", "-overwrite", "-of", "Zarr", scene, folder, untouched=[tmp_path])
    refuse_spp(1, "is a folder", "-overwrite", "-of", "Zarr", scene, tmp_path / "link", untouched=[tmp_path])
    refuse_spp(2, "would overwrite", "-overwrite", "-of", "Zarr", inside, folder, untouched=[tmp_path])
    (folder / ".zgroup").write_text('{"zarr_format": 2}')  # this does not make it a Zarr store
    refuse_spp(1, "is a folder", "-overwrite", "-of", "Zarr", scene, folder, untouched=[tmp_path])


def test_nothing_in_a_zarr_source_is_replaced(tmp_path):
    has_driver("Zarr")
    one = tmp_path / "one.zarr"
    succeed(run("gdal_hsi_synth", "-q", "-size", 20, 20, 1, one))
    inner = next(p.parent for p in one.rglob(".zarray"))
    names = [("-report", inner / ".zarray", one, tmp_path / "x.tif"), (one, inner / "0.0", "-of", "GTiff"),
             ('ZARR:"%s":/%s' % (one, inner.name), one, "-of", "Zarr"), (one, inner, "-of", "Zarr"),
             (one, one / "new.tif", "-of", "GTiff")]
    for args in names:
        with assert_untouched(tmp_path):
            result = run("gdal_hsi_eadp", "-q", "-no-pca", "-c", 1, "-overwrite", *args)
        assert result.code in (1, 2), (args, result)
    # The intended case: a Zarr file of an earlier run.
    succeed(run("gdal_hsi_synth", "-q", "-overwrite", "-seed", 2, "-size", 20, 20, 1, one))


@pytest.mark.parametrize("driver,option", [("PDS4", "IMAGE_FILENAME"), ("ISIS3", "EXTERNAL_FILENAME"), ("MRF", "DATANAME"),
                                           ("MRF", "INDEXNAME"), ("MRF", "dataname")])
def test_creation_options_name_no_files(driver, option, scene, out):
    has_driver(driver)
    target = out / "precious.tif"
    gdal.Translate(str(target), scene)
    refuse_spp(2, "-co", "-of", driver, "-co", "%s=%s" % (option, target), target, out / "q.out", untouched=[out])


@pytest.mark.parametrize("suffix", [".aux.xml", ".ovr", ".msk"])
def test_side_files_of_an_output_that_is_gone(suffix, scene, out):
    side = out / ("x.tif" + suffix)
    side.write_text("<PAMDataset/>" if suffix == ".aux.xml" else "old")
    refuse_spp(1, "already exists", scene, out / "x.tif", untouched=[out])
    succeed(spp("-q", "-overwrite", scene, out / "x.tif"))
    assert not side.exists() or side.read_bytes()[:13] != b"<PAMDataset/>" and side.read_bytes() != b"old"


@pytest.mark.parametrize("kind, options", [("ENVI", ["-co", "INTERLEAVE=BSQ"]), ("ENVI", ["-co", "INTERLEAVE=BIP"]),
                                           ("GTiff", []), ("GTiff", ["-co", "INTERLEAVE=PIXEL"])])
@pytest.mark.parametrize("dtype, value, beside", [("Byte", 255, 254), ("Int16", 300, 299), ("Int16", 0, 1), ("UInt16", 0, 1)])
def test_values_that_meet_nodata_are_moved_and_told(tmp_path, out, kind, options, dtype, value, beside):
    """If a value equals the nodata value of an integer type, the pixel does not become a hole, and a warning states how
    often this happened."""
    data = cube() / (2 if value else 2000)
    data[:, 3, 3] = -9
    path = write_scene(tmp_path / "scene.img", data, nodata=-9)
    floats = read(succeed_at(spp("-q", path, out / "f.tif"), out / "f.tif"))
    floats[np.isnan(floats)] = -1e6
    limits = {"Byte": (0, 255), "Int16": (-32768, 32767), "UInt16": (0, 65535)}[dtype]
    valid = floats > -1e6
    # Values are not near halves, where GDAL's rounding decides.
    met = valid & (np.clip(np.floor(floats + 0.5), *limits) == value)
    said = set()
    for threads, tile in itertools.product((1, 2), ((40, 30), (16, 16))):
        name = out / f"{threads}{tile[0]}.img"
        result = succeed(spp("-q", "-of", kind, *options, "-ot", dtype, "-dstnodata", value, "-threads", threads, "-tile", *tile,
                             path, name))
        stored = np.frombuffer(gdal.Open(str(name)).ReadAsArray().tobytes(),
                               {"Byte": "u1", "Int16": "i2", "UInt16": "u2"}[dtype]).reshape(floats.shape)
        assert (stored[~valid] == value).all() and (stored[valid] != value).all()
        assert (stored[met] == beside).all()
        said.add(result.err.replace(str(name), "y"))
    (text,) = said
    count = met.sum()
    assert count > 0
    assert text.startswith(f"Warning: 'y': {count} value{' is' if count == 1 else 's are'} stored as {beside} instead of {value},"), text


def succeed_at(result, path):
    succeed(result)
    return path


def test_labels_and_maps_keep_their_zeros(scene, out):
    """In a class map, 0 means unclassified and is nodata, so it is never moved."""
    result = succeed(run("gdal_hsi_atdca", "-q", "-t", 3, "-map", out / "near.tif", "-max-angle", 0.5, scene, out / "t.gpkg"))
    assert result.err == ""
    near = gdal.Open(str(out / "near.tif")).ReadAsArray()
    assert set(np.unique(near)) == {0, 1, 2, 3}


def test_half_precision_floats_are_read_as_such(scene, out):
    """GDAL calls them Float32, also in the layout of the raw file, although a sample has two bytes."""
    copy = out / "half.tif"
    gdal.Translate(str(copy), str(scene), creationOptions=["NBITS=16", "INTERLEAVE=BAND"], outputType=gdal.GDT_Float32)
    with open(copy, "ab") as file:
        file.write(bytes(4 * copy.stat().st_size))  # as many bytes as a file of 32-bit floats
    succeed(run("gdal_hsi_pca", "-q", "-device", "cpu", "-nc", 2, "-model", out / "half.json", copy, out / "half_pcs.tif"))
    mean = json.loads((out / "half.json").read_text())["mean"]
    values = gdal.Open(str(copy)).ReadAsArray().astype(np.float64)
    valid = np.isfinite(values).all(axis=0) & (values != 0).any(axis=0)
    assert np.allclose(mean, values[:, valid].mean(axis=1), rtol=1e-6)


@pytest.mark.parametrize("extension", ["gpkg", "sqlite"])
def test_logs_of_an_old_database_are_not_played_into_the_next(extension, scene, out):
    """SQLite replays the files that a program left next to the old file, or that a program with the old file open
    uses."""
    dst = out / f"points.{extension}"
    command = ["gdal_hsi_atdca", "-q", "-device", "cpu", "-t", 3]
    succeed(run(*command, scene, dst))
    with contextlib.closing(sqlite3.connect(dst, isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE TABLE note (text)")
        for _ in range(300):
            database.execute("INSERT INTO note VALUES (?)", ("x" * 200,))
        database.execute("BEGIN")
        database.execute("SELECT COUNT(*) FROM note").fetchall()
        assert pathlib.Path(f"{dst}-wal").stat().st_size > 0
        succeed(run(*command, "-overwrite", scene, dst))
        assert ogr.Open(str(dst)).GetLayer(0).GetFeatureCount() == 3
    dst.unlink()
    log = pathlib.Path(f"{dst}-wal")
    log.write_bytes(b"of a program that ended")
    result = run(*command, scene, dst)
    assert result.code == 1 and f"{dst.name}-wal" in first_error(result) and log.exists() and not dst.exists()
    succeed(run(*command, "-overwrite", scene, dst))
    assert ogr.Open(str(dst)).GetLayer(0).GetFeatureCount() == 3 and not log.exists()


@pytest.mark.parametrize("driver, name", [("GTiff", "y.tif"), ("ENVI", "y.dat"), ("HFA", "y.img"), ("VICAR", "y.vic"),
                                          ("ISIS3", "y.lbl"), ("netCDF", "y.nc")])
def test_formats_that_lose_the_meaning_of_nodata_are_told(tmp_path, out, driver, name):
    """Readers would take pixels without a value for numbers."""
    has_driver(driver)
    data = cube()
    data[:, 3, 4] = -9
    scene = write_scene(tmp_path / "s.img", data, nodata=-9, epsg=UTM)
    result = succeed(spp("-of", driver, "-ot", "Float32", scene, out / name))
    kept = open_band(out / name).GetNoDataValue() == -9
    assert kept or driver in ("VICAR", "ISIS3")
    assert ("does not store the nodata value -9" in result.err) == (not kept), result.err
    succeed(run("gdal_hsi_svm_train", "-q", "-C", 1, "-gamma", 1, scene, write_scene(
        tmp_path / "l.tif", np.arange(cube()[0].size).reshape(1, *cube()[0].shape) % 3, "GTiff", "u1", epsg=UTM), out / "m.json"))
    result = succeed(run("gdal_hsi_svm_classify", "-of", driver, scene, out / "m.json", out / ("map_" + name)))
    assert "nodata value" not in result.err  # 0 means unclassified in every map


@pytest.mark.parametrize("driver, name", [("GTiff", "y.tif"), ("ENVI", "y.dat"), ("HFA", "y.img"), ("netCDF", "y.nc"),
                                          ("AAIGrid", "y.asc"), ("VRT", "y.vrt"), ("PCIDSK", "y.pix"), ("MFF", "y.hdr"),
                                          ("VICAR", "y.vic"), ("ERS", "y.ers"), ("XYZ", "y.xyz"), ("ISIS3", "y.lbl"),
                                          ("FITS", "y.fits")])
def test_formats_that_lose_where_the_scene_lies_are_told(tmp_path, out, driver, name):
    """For every format, version of GDAL and form of the SRS: a warning appears if the pixels' positions cannot be read
    back."""
    has_driver(driver)
    scene = write_scene(tmp_path / "s.img", cube(), epsg=32633)
    result = succeed(run("gdal_hsi_pca", "-q", "-device", "cpu", "-nc", 1, "-of", driver, scene, out / name))
    wanted, dataset = gdal.Open(str(scene)), gdal.Open(str(out / name))
    place, srs = dataset.GetGeoTransform(can_return_null=True), dataset.GetSpatialRef()
    kept = place is not None and np.allclose(place, wanted.GetGeoTransform(), rtol=1e-9)
    same = srs is not None and bool(srs.IsSame(wanted.GetSpatialRef()))
    told = [line for line in result.err.splitlines() if f"the format {driver} does not store " in line and "nodata value" not in line]
    assert len(told) == (not kept or not same), (place, srs, result.err)
    if told and srs is None:
        assert told[0].endswith("the SRS" if kept else "the georeference"), told
    assert driver not in ("MFF", "VICAR") or told
    bare = write_scene(tmp_path / "bare.img", cube(), geotransform=None, epsg=None)
    result = succeed(run("gdal_hsi_pca", "-q", "-device", "cpu", "-nc", 1, "-overwrite", "-of", driver, bare, out / name))
    assert "does not store" not in result.err


@pytest.mark.parametrize("out", ["a.tif", "a.img", "zipped.tif", "a.nc"])
@pytest.mark.parametrize("kind, share, told", [("Byte", 0.6, True), ("Byte", 0.4, False), ("Int16", 0.6, True), ("Int32", 0.6, True),
                                               ("Float32", 1.0, False)])
def test_whole_numbers_of_scores(tmp_path, out, kind, share, told):
    """A warning appears if most values become 0; a few small values, or zeros, cause no warning."""
    data = np.full((2, 10, 30), 7.0, np.float32)
    data.flat[:int(600 * share)] = 0.25
    write_scene(tmp_path / "s.img", data, wavelengths=[500, 510])
    options = ["-co", "COMPRESS=DEFLATE"] if out == "zipped.tif" else []
    said = succeed(run("gdal_hsi_resample", "-like", tmp_path / "s.img", "-ot", kind, *options, tmp_path / "s.img", tmp_path / out)).err
    assert ("360 of 600 values are between -0.5 and 0.5 and become 0, since " + kind in said) == told, said


@pytest.mark.parametrize("kind, beyond, verb", [("Byte", [-0.6, 255.5, 1e9], "are"), ("UInt16", [-3], "is"), ("Int16", [-4e4, 4e4], "are"),
                                                ("UInt32", [-1, 5e9], "are"), ("Float64", [], "are")])
def test_values_beyond_the_type(tmp_path, kind, beyond, verb):
    data = np.full((2, 10, 10), 7.0, np.float32)
    data[0].flat[1:1 + len(beyond)] = beyond
    data[:, 9, 9] = np.nan
    write_scene(tmp_path / "s.img", data, wavelengths=[500, 510])
    said = succeed(run("gdal_hsi_resample", "-like", tmp_path / "s.img", "-ot", kind, tmp_path / "s.img", tmp_path / "a.tif")).err
    if beyond:
        assert f"{len(beyond)} of 198 values {verb} outside the range of {kind}" in said, said
    else:
        assert "outside the range" not in said


@pytest.mark.parametrize("kind, extension, keeps", [("GTiff", "tif", True), ("ENVI", "dat", True), ("HFA", "img", True), ("PCIDSK", "pix", True),
                                                    ("netCDF", "nc", False), ("Zarr", "zarr", False)])
@pytest.mark.parametrize("how", ["points", "RPC"])
def test_places_that_formats_do_not_keep(tmp_path, kind, extension, keeps, how):
    """netCDF makes coordinates from pixel numbers if there is no geotransform; they are not positions."""
    if gdal.GetDriverByName(kind) is None:
        pytest.skip("this GDAL has no " + kind)
    path = write_scene(tmp_path / "s.tif", cube(30, 20, 3), driver="GTiff", geotransform=None, epsg=None)
    scene = gdal.Open(path, gdal.GA_Update)
    if how == "RPC":
        scene.SetMetadata({"LINE_OFF": "10", "SAMP_OFF": "15", "LAT_OFF": "50", "LONG_OFF": "10", "HEIGHT_OFF": "0", "LINE_SCALE": "10",
                           "SAMP_SCALE": "15", "LAT_SCALE": "0.1", "LONG_SCALE": "0.1", "HEIGHT_SCALE": "100",
                           **{part + "_COEFF": " ".join(["0 1", *["0"] * 18]) for part in ("LINE_NUM", "SAMP_NUM")},
                           **{part + "_COEFF": " ".join(["1", *["0"] * 19]) for part in ("LINE_DEN", "SAMP_DEN")}}, "RPC")
    else:
        srs = osr.SpatialReference()
        srs.ImportFromEPSG(4326)
        scene.SetGCPs([gdal.GCP(10 + x / 100, 50 - y / 100, 0, x, y) for x, y in ((0, 0), (30, 0), (0, 20), (30, 20), (15, 9))], srs.ExportToWkt())
    scene = None
    said = succeed(run("gdal_hsi_pca", "-nc", 1, "-of", kind, path, tmp_path / ("out." + extension))).err
    keeps = keeps or (how, kind) == ("RPC", "netCDF")  # next to it, in GDAL's side file
    assert ("does not store the " + ("rational polynomial" if how == "RPC" else "ground control points") in said) != keeps, said
    assert (gdal.Open(str(tmp_path / ("out." + extension))).GetMetadata("RPC") != {}) == (keeps and how == "RPC")


# The names of metadata in the warnings of formats that lose them.
PIECES = {"wavelengths": ["the wavelengths"], "widths": ["widths (fwhm)"], "bad bands": ["the bad-band list"], "names": ["the band names"],
          "scale": ["scale and offset", "'reflectance scale factor'"], "unit": ["the unit", "'data units'"], "nodata": ["the nodata value"],
          "time": ["'acquisition_time'", "'acquisition time'"], "sensor": ["'sensor'", "'sensor type'"], "classes": ["the class names"],
          "colours": ["the colours"], "place": ["does not store the georeference", "does not store the geotransform", "the position of its pixels"],
          "srs": ["does not store the SRS", "does not store the georeference", "the position of its pixels"], "points": ["the ground control points"],
          "RPC": ["the rational polynomial coefficients"]}

# Name of a file and type of its values, by driver, and whether it keeps everything except the positions in the last
# column.
WRITTEN = [("GTiff", "y.tif", "Float32", True, []), ("ENVI", "y.dat", "Float32", True, []), ("COG", "y.cog", "Float32", True, []),
           ("VRT", "y.vrt", "Float32", True, []), ("HSI", "y.hsi", "Float32", True, []), ("netCDF", "y.nc", "Float32", True, ["points"]),
           ("HFA", "y.img", "Float32", True, []), ("PCIDSK", "y.pix", "Float32", True, []), ("JP2OpenJPEG", "y.jp2", "UInt16", True, []),
           ("PNG", "y.png", "UInt16", True, []), ("Zarr", "y.zarr", "Float32", False, []), ("NITF", "y.ntf", "Float32", False, []),
           ("GPKG", "y.gpkg", "Byte", False, []), ("KEA", "y.kea", "Float32", False, []), ("MRF", "y.mrf", "Float32", False, []),
           ("RST", "y.rst", "Float32", False, []), ("SAGA", "y.sdat", "Float32", False, []), ("EHdr", "y.flt", "Float32", False, []),
           ("ERS", "y.ers", "Float32", False, []), ("PDS4", "y.xml", "Float32", False, []), ("ISIS3", "y.lbl", "Float32", False, []),
           ("VICAR", "y.vic", "Float32", False, []), ("FITS", "y.fits", "Float32", False, []), ("BMP", "y.bmp", "Byte", False, []),
           ("GIF", "y.gif", "Byte", False, []), ("AAIGrid", "y.asc", "Float32", False, []), ("MFF", "y.hdr", "Float32", False, []),
           ("PAux", "y.raw", "Float32", False, []), ("ISCE", "y.isce", "Float32", False, []), ("KRO", "y.kro", "Float32", False, []),
           ("HDF4Image", "y.hdf", "Float32", False, [])]


def pieces_of(path):
    """Returns all of PIECES that the file contains, in a uniform form; a Zarr has one array per band if there are
    several."""
    dataset = gdal.Open(str(path))
    parts = [gdal.Open(name) for name, _ in dataset.GetSubDatasets() if "Band" in name] if dataset.RasterCount == 0 else [dataset]
    dataset = parts[0]
    bands = [part.GetRasterBand(b + 1) for part in parts for b in range(part.RasterCount)]
    envi, own = dataset.GetMetadata("ENVI"), dataset.GetMetadata()
    factor = float(envi.get("reflectance_scale_factor", 1))

    def floats(key):
        return [float(band.GetMetadataItem(key) or "nan") for band in bands]

    table, srs = bands[0].GetColorTable(), dataset.GetSpatialRef()
    names = bands[0].GetCategoryNames()
    rpc = dataset.GetMetadata("RPC")
    return {"wavelengths": floats("wavelength"), "widths": floats("fwhm"), "bad bands": [band.GetMetadataItem("bbl") == "0" for band in bands],
            "names": [band.GetDescription().split(" (")[0] for band in bands],
            "scale": [((band.GetScale() or 1) / factor, band.GetOffset() or 0) for band in bands],
            "unit": [band.GetUnitType() or envi.get("data_units", "") for band in bands],
            "nodata": [band.GetNoDataValue() for band in bands], "time": own.get("acquisition_time", envi.get("acquisition_time")),
            "sensor": own.get("sensor", envi.get("sensor_type")), "classes": names and [name for name in names if name],
            "colours": table and [table.GetColorEntry(i)[:3] for i in range(3)],
            "place": None if dataset.GetGCPCount() else dataset.GetGeoTransform(can_return_null=True), "srs": srs and srs.GetName(),
            "points": [(p.GCPPixel, p.GCPLine, round(p.GCPX, 9), round(p.GCPY, 9)) for p in dataset.GetGCPs()],
            "RPC": {key: rpc[key].split() for key in rpc if key.endswith(("OFF", "COEFF"))}}


def scene_with_all(folder, how):
    data = np.random.default_rng(4).integers(1, 200, (3, 12, 15)).astype(np.float32)
    spectral = {"wavelengths": [400 + 10.5 * b for b in range(3)], "names": ["alpha", "beta", "gamma"]}
    if how == "header":
        path = write_scene(folder / "s.img", data, nodata=0, fwhm=[9, 9.125, 9.25], bbl=[1, 0, 1], epsg=UTM, **spectral)
        with open(folder / "s.hdr", "a", encoding="utf-8") as header:
            header.write("reflectance scale factor = 10000\nacquisition time = 2022-08-28T05:19:16Z\nsensor type = HyMap\n"
                         "data units = reflectance\n")
        return path
    placed = how == "bands"
    path = write_scene(folder / "s.tif", data, driver="GTiff", nodata=0, **spectral, **({"epsg": UTM} if placed else {"geotransform": None, "epsg": None}))
    dataset = gdal.Open(path, gdal.GA_Update)
    dataset.SetMetadata({"acquisition_time": "2022-08-28T05:19:16Z", "sensor": "HyMap"})
    for b in range(3):
        band = dataset.GetRasterBand(b + 1)
        for key, value in (("fwhm", 9 + b / 8), ("bbl", int(b != 1))):
            band.SetMetadataItem(key, str(value))
        band.SetScale(1e-4)
        band.SetOffset(-0.1)
        band.SetUnitType("W/m2")
    if how == "points":
        srs = osr.SpatialReference()
        srs.ImportFromEPSG(4326)
        dataset.SetGCPs([gdal.GCP(10 + x / 100, 50 - y / 90, 0, x, y) for x, y in ((0, 0), (15, 0), (0, 12), (15, 12), (7, 5))], srs.ExportToWkt())
    if how == "RPC":
        dataset.SetMetadata({"LINE_OFF": "6", "SAMP_OFF": "7", "LAT_OFF": "50", "LONG_OFF": "10", "HEIGHT_OFF": "0", "LINE_SCALE": "6",
                             "SAMP_SCALE": "7", "LAT_SCALE": "0.1", "LONG_SCALE": "0.1", "HEIGHT_SCALE": "100",
                             **{part + "_COEFF": " ".join(["0 1", *["0"] * 18]) for part in ("LINE_NUM", "SAMP_NUM")},
                             **{part + "_COEFF": " ".join(["1", *["0"] * 19]) for part in ("LINE_DEN", "SAMP_DEN")}}, "RPC")
    return path


@pytest.mark.parametrize("how", ["header", "bands", "points", "RPC", "classes"])
@pytest.mark.parametrize("driver, name, kind, all_of_it, but", WRITTEN, ids=[row[0] for row in WRITTEN])
def test_all_metadata_are_kept_or_told(monkeypatch, tmp_path, out, driver, name, kind, all_of_it, but, how):
    """Checks the table of formats and metadata: our tools read the same metadata from an output as from a GeoTIFF, or a
    warning lists the missing metadata."""
    if driver != "HSI":
        has_driver(driver)
    monkeypatch.setenv("GDAL_DRIVER_PATH", str(PLUGINS))
    scene = scene_with_all(tmp_path, "header" if how == "classes" else how)
    if how == "classes":
        if driver in ("VRT", "HSI"):
            pytest.skip("no format of maps")
        labels = write_scene(tmp_path / "l.tif", np.arange(180).reshape(1, 12, 15) % 3, "GTiff", "u1", epsg=UTM)
        succeed(run("gdal_hsi_svm_train", "-q", "-C", 1, "-gamma", 1, "-bbl", "ignore", scene, labels, tmp_path / "m.json"))
        command = ["gdal_hsi_svm_classify", "-q", "-bbl", "ignore"]
        last = [tmp_path / "m.json"]
    else:
        command = ["gdal_hsi_spp", "-q", "-ws", 3, "-bbl", "ignore", "-ot", kind]
        last = []
        if kind in ("UInt16", "Byte"):
            command += ["-dstnodata", 0]
    options = {"JP2OpenJPEG": ["-co", "REVERSIBLE=YES", "-co", "QUALITY=100"]}.get(driver, [])
    said = run(*command, "-of", driver, *options, scene, *last, out / name)
    if said.code == 2 and "cannot store" in said.err:
        pytest.skip("it holds no such raster")
    succeed(said)
    succeed(run(*command, scene, *last, tmp_path / "want.tif"))
    want = pieces_of(tmp_path / "want.tif")
    again = run("gdal_hsi_pipeline", "-q", f"read {out / name} -bbl ignore ! write {tmp_path / 'again.tif'}")
    got = pieces_of(tmp_path / "again.tif" if again.code == 0 else out / name)
    assert again.code == 0 or not all_of_it, again.err
    lost = [piece for piece in want if want[piece] not in (None, [], {}) and not same(want[piece], got[piece]) and
            not (isinstance(want[piece], list) and all(value in (None, "", False, (1, 0)) or value != value for value in want[piece]))]
    untold = [piece for piece in lost if not any(word in said.err for word in PIECES[piece])]
    assert untold == [], ({piece: (want[piece], got[piece]) for piece in untold}, said.err, again.err)
    if all_of_it:
        assert set(lost) <= set(but), ({piece: (want[piece], got[piece]) for piece in lost}, said.err)
        assert "cannot store" not in said.err, said.err


def same(a, b):
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) <= len(b) and all(same(x, y) for x, y in zip(a, b, strict=False))
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (a != a and b != b) or abs(a - b) <= 1e-6 * abs(a)
    return a == b


@pytest.mark.parametrize("driver, name", [("GTiff", "y.tif"), ("ENVI", "y.dat"), ("HFA", "y.img"), ("netCDF", "y.nc"), ("PCIDSK", "y.pix")])
@pytest.mark.parametrize("of_source, source", [("GTiff", "s.tif"), ("ENVI", "s.img")])
def test_a_local_srs_is_kept_or_told(tmp_path, out, of_source, source, driver, name):
    """GDAL's ENVI driver writes the name of a local SRS as "Arbitrary", which means no SRS."""
    has_driver(driver)
    said = succeed(spp("-q", "-of", driver, write_scene(tmp_path / source, cube(9, 8, 4), driver=of_source), out / name))
    srs = gdal.Open(str(out / name)).GetSpatialRef()
    kept = srs is not None and srs.GetName() == "local"
    assert kept or driver not in ("GTiff", "ENVI")
    assert kept != ("the SRS" in said.err), said.err


@pytest.mark.parametrize("driver, name", [("GTiff", "y.tif"), ("HFA", "y.img"), ("ENVI", "y.dat")])
def test_a_shift_of_datum_that_a_format_loses(tmp_path, out, driver, name):
    """The coordinates of the corners are equal, but the positions are hundreds of metres apart."""
    has_driver(driver)
    srs = osr.SpatialReference()
    srs.SetFromUserInput("+proj=tmerc +lat_0=1.5 +lon_0=7.25 +k=0.9997 +x_0=123456 +ellps=bessel "
                         "+towgs84=598.1,73.7,418.2,0.202,0.045,-2.455,6.7 +units=m")
    path = write_scene(tmp_path / "s.tif", cube(), driver="GTiff", geotransform=(1000, 30, 0, 2000, 0, -30), epsg=None)
    gdal.Open(path, gdal.GA_Update).SetProjection(srs.ExportToWkt())
    assert gdal.Open(path).GetSpatialRef().GetTOWGS84()[0] == 598.1
    said = succeed(run("gdal_hsi_pca", "-q", "-nc", 1, "-of", driver, path, out / name)).err
    kept = gdal.Open(str(out / name)).GetSpatialRef().GetTOWGS84()[0] == 598.1
    assert kept == (driver != "ENVI")
    assert ("does not store the position of its pixels" in said) != kept, said


@pytest.mark.parametrize("options", [["RPB=YES"], ["RPCTXT=YES"], ["PROFILE=BASELINE"], ["PROFILE=GeoTIFF"]])
def test_side_files_of_coefficients_are_the_outputs_own(tmp_path, out, options):
    scene = scene_with_all(tmp_path, "RPC")
    command = ["gdal_hsi_spp", "-q", "-overwrite", *itertools.chain(*(("-co", option) for option in options))]
    for _ in range(2):
        result = succeed(run(*command, scene, out / "y.tif"))
        assert "does not belong to" not in result.err, result.err
        assert gdal.Open(str(out / "y.tif")).GetMetadata("RPC") != {}
    assert len(list(out.iterdir())) > 1
    # If the output has no coefficients, this file belongs to no output, and would be read with it.
    placed = write_scene(tmp_path / "placed.img", cube())
    if options[0].startswith("RP"):
        assert "does not belong to" in succeed(run("gdal_hsi_spp", "-q", "-overwrite", placed, out / "y.tif")).err


def test_netcdf_turns_no_lines_over(tmp_path, out):
    has_driver("netCDF")
    scene = write_scene(tmp_path / "s.img", cube(), geotransform=(500000, 20, 0, 4480000, 0, 20))
    for bands in (1, 3):
        refuse(2, "here they run from south to north", "gdal_hsi_pca", "-q", "-nc", bands, scene, out / "y.nc", untouched=[out])


def test_a_stream_is_no_file(scene, out):
    refuse_spp(2, "which is not written as a stream", "-co", "STREAMABLE_OUTPUT=YES", scene, out / "y.tif", untouched=[out])
    succeed(spp("-co", "STREAMABLE_OUTPUT=NO", scene, out / "y.tif"))


@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("driver, name", [("ENVI", "y.dat"), ("GTiff", "y.tif"), ("PNG", "y.png"), ("HFA", "y.img")])
def test_a_link_leads_to_all_of_an_output(tmp_path, out, driver, name, absolute):
    """Side files of the old pixels next to the link would be read with the new pixels."""
    has_driver(driver)
    scene, far = scene_with_all(tmp_path, "header"), tmp_path / "far"
    far.mkdir()
    real, link = far / f"real{name[1:]}", out / name
    kind = ["-ot", "UInt16", "-dstnodata", 0] if driver == "PNG" else ["-ot", "Float32"]
    command = ["gdal_hsi_spp", "-q", "-overwrite", "-bbl", "ignore", "-of", driver, *kind]
    succeed(run(*command, "-ws", 5, scene, link))
    for file in list(out.iterdir()):  # as if a file was moved away without its side files
        (far / file.name.replace("y.", "real.")).write_bytes(file.read_bytes())
    link.unlink()
    link.symlink_to(real if absolute else f"../far/{real.name}")
    for suffix in (".aux.xml", ".ovr", ".msk"):
        (out / (name + suffix)).write_text("<PAMDataset><Metadata><MDI key='old'>1</MDI></Metadata></PAMDataset>")
    header = out / "y.hdr"
    if driver == "ENVI":
        assert header.exists() and not header.is_symlink()
    succeed(run(*command, scene, link))
    succeed(run(*command, scene, tmp_path / ("want" + name[1:])))
    assert link.is_symlink()
    want = pieces_of(tmp_path / ("want" + name[1:]))
    for path in (link, real):
        assert np.array_equal(read(path), read(tmp_path / ("want" + name[1:])), equal_nan=True)
        got = pieces_of(path)
        assert all(same(want[piece], got[piece]) and same(got[piece], want[piece]) for piece in want), (want, got)
        assert gdal.Open(str(path)).GetMetadataItem("old") is None
        assert gdal.Open(str(path)).GetRasterBand(1).GetOverviewCount() == 0
    assert {file.name.replace("y.", "real.") for file in out.iterdir()} == {file.name for file in far.iterdir()}
    assert all(file.is_symlink() for file in out.iterdir())
    # Another format through the same link: the files of the previous output are removed from both folders.
    succeed(run("gdal_hsi_pca", "-q", "-overwrite", "-of", "GTiff", "-nc", 1, scene, link))
    for folder in (out, far):
        assert len(list(folder.iterdir())) == 1, list(folder.iterdir())


def test_what_lies_beside_a_link_is_someones(tmp_path, out):
    """If a header belongs to another scene, its position cannot be used for a link."""
    scene = scene_with_all(tmp_path, "header")
    (tmp_path / "far").mkdir()
    (out / "y.dat").symlink_to("../far/real.dat")
    write_scene(out / "y.img", cube())
    refuse(1, "is the header of", "gdal_hsi_spp", "-q", "-overwrite", scene, out / "y.dat", untouched=[out])
    for file in ("y.img", "y.hdr"):
        (out / file).unlink()
    (out / "y.hdr").write_text("ENVI\n")
    with assert_untouched(out):
        result = run("gdal_hsi_spp", "-q", scene, out / "y.dat")
    assert result.code == 1 and "y.hdr" in first_error(result) and "already exists" in first_error(result), result.err
    succeed(run("gdal_hsi_spp", "-q", "-overwrite", scene, out / "y.dat"))
    assert gdal.Open(str(out / "y.dat")).RasterCount == 2


def test_a_link_to_a_zarr_stays_one(scene, tmp_path, out):
    has_driver("Zarr")
    succeed(pca("-nc", 1, scene, tmp_path / "real.zarr"))
    (out / "y.zarr").symlink_to("../real.zarr")
    for name in ("y.zarr", "y.zarr/"):
        succeed(pca("-nc", 1, "-overwrite", "-of", "Zarr", "-ot", "Float64", scene, f"{out}/{name}"))
        assert (out / "y.zarr").is_symlink() and open_band(tmp_path / "real.zarr").DataType == gdal.GDT_Float64
        assert [file.name for file in out.iterdir()] == ["y.zarr"]
        succeed(pca("-nc", 1, "-overwrite", "-ot", "Float32", scene, tmp_path / "real.zarr"))


@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("driver", ["netCDF", "GTiff", "COG", "HFA", "ENVI"])
def test_scales_of_bands_are_their_own_or_none(tmp_path, driver, same):
    """netCDF has one scale for all bands, and reported the last band's."""
    if gdal.GetDriverByName(driver) is None:
        pytest.skip(f"GDAL here has no {driver}")
    scene = write_scene(tmp_path / "s.tif", cube(9, 8, 4, scale=1000.0), driver="GTiff", dtype="i2")
    data = gdal.Open(str(scene), gdal.GA_Update)
    wanted = [(0.1, 1.0)] * 4 if same else [(0.1 * b, float(b)) for b in (1, 2, 3, 4)]
    for b, (scale, offset) in enumerate(wanted, 1):
        data.GetRasterBand(b).SetScale(scale)
        data.GetRasterBand(b).SetOffset(offset)
    data = None
    result = succeed(run("gdal_hsi_pipeline", "read", scene, "!", "write", "-of", driver, tmp_path / "x.out"))
    made = gdal.Open(str(tmp_path / "x.out"))
    found = [(band.GetScale() or 1, band.GetOffset() or 0) for band in map(made.GetRasterBand, range(1, 5))]
    told = "scale and offset" in result.err
    assert np.allclose(found, wanted) != told and (not told or found == [(1, 0)] * 4), (found, result.err)


def test_colours_of_classes_with_gaps(tmp_path):
    """HFA counted the colours of classes, and gave one class the colour of another."""
    if gdal.GetDriverByName("HFA") is None:
        pytest.skip("GDAL here has no HFA")
    labels = np.zeros((1, 20, 30))
    for k, value in enumerate((1, 3, 5, 6)):
        labels[0, 5 * k:5 * k + 3] = value
    write_scene(tmp_path / "l.tif", labels, driver="GTiff", dtype="u1")
    tables = {}
    for driver in "GTiff", "HFA":
        succeed(run("gdal_hsi_sample", "-of", driver, "-fraction", 0.5, tmp_path / "l.tif", tmp_path / f"{driver}.img", tmp_path / f"{driver}_rest.img"))
        made = gdal.Open(str(tmp_path / f"{driver}.img"))
        table = made.GetRasterBand(1).GetColorTable()
        tables[driver] = [table.GetColorEntry(v)[:3] for v in (1, 3, 5, 6)]
    assert tables["HFA"] == tables["GTiff"] and len(set(tables["HFA"])) == 4
