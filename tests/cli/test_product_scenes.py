# SPDX-License-Identifier: MIT
"""Scenes in the layouts of agencies' products: the recognised product and the report; values equal the arrays for any
order of axes, chunks, tiles and threads; positions equal the location arrays; damaged products are refused. The
expected values are the NumPy array passed to a writer of product_files.py."""

import csv
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from osgeo import gdal, osr

import product_files as files
from conftest import ROOT, assert_untouched, first_error, read, run, stored_bytes, succeed, write_scene

pytest.importorskip("netCDF4", reason="EMIT's and AVIRIS's layouts are written with netCDF4 (Debian: python3-netcdf4)")
pytest.importorskip("h5py", reason="the other layouts are written with h5py (Debian: python3-h5py)")
if gdal.GetDriverByName("HDF5") is None and gdal.GetDriverByName("netCDF") is None:
    pytest.skip("this GDAL has neither HDF5 nor netCDF", allow_module_level=True)

LINES, SAMPLES, BANDS = 37, 23, 30


def values(seed=1):
    random = np.random.default_rng(seed)
    mixed = random.random((3, LINES * SAMPLES)) ** 3
    spectra = np.abs(np.cumsum(random.normal(0, 1, (BANDS, 3)), axis=0)) + 1
    return (100 + (spectra @ mixed).reshape(BANDS, LINES, SAMPLES) * 40 + random.random((BANDS, LINES, SAMPLES)) * 3).round()


def prisma_order(_):
    """Returns both cubes sorted by wavelength, with the two missing bands at the end."""
    vnir = np.linspace(400, 1010, 10)[::-1].copy()
    swir = np.linspace(920, 2500, 20)[::-1].copy()
    listed = np.concatenate([vnir, swir])
    listed[[9, 29]] = np.inf
    return np.argsort(listed, kind="stable")


def same(_):
    return np.arange(BANDS)


# name -> writer, its arguments, the recognised product, order of bands, 1-based bad bands, scale, geotransform
PRODUCTS = {
    "emit-l2a": (files.emit, {}, "EMIT L2A reflectance", same, [16], None, None),
    "emit-l2a-chunks": (files.emit, {"chunks": (8, 5, 7)}, "EMIT L2A reflectance", same, [16], None, None),
    "emit-l1b": (files.emit, {"kind": "radiance"}, "EMIT L1B radiance", same, [16], None, None),
    "prisma-l2d": (files.prisma, {}, "PRISMA L2D", prisma_order, [29, 30], 0.89 / 65535, (500000, 30, 0, 4650000, 0, -30)),
    "prisma-l2c": (files.prisma, {"level": "L2C"}, "PRISMA L2C", prisma_order, [29, 30], 0.89 / 65535, None),
    "prisma-l2b": (files.prisma, {"level": "L2B"}, "PRISMA L2B", prisma_order, [29, 30], 0.89 / 65535, None),
    "prisma-l1": (files.prisma, {"level": "L1"}, "PRISMA L1", prisma_order, [29, 30], 0.01, None),
    "neon": (files.neon, {}, "NEON AOP reflectance", same, [15, 21, 22], 1e-4, (367000, 1, 0, 4310000, 0, -1)),
    "aviris-3": (files.aviris, {}, "AVIRIS-3 reflectance", same, [], None, (383000, 5, 0, 3768000, 0, -5)),
    "aviris-ng": (files.aviris, {"ortho": False, "sensor": "AVIRIS-NG"}, "AVIRIS-NG radiance", same, [], None, None),
    "tanager-basic": (files.tanager, {}, "Tanager basic reflectance", same, [2], None, None),
    "tanager-ortho": (files.tanager, {"ortho": True}, "Tanager ortho reflectance", same, [2], None,
                      (383000, 30, 0, 3768000, 0, -30)),
    "enmap-l2a": (files.enmap, {}, "EnMAP L2A", same, [], 1e-4, (600000, 30, 0, 5300000, 0, -30)),
    "enmap-l1c": (files.enmap, {"level": "L1C"}, "EnMAP L1C", same, [], 1e-4, (600000, 30, 0, 5300000, 0, -30)),
    "desis": (files.desis, {}, "DESIS L2A", same, [], 1e-4, (600000, 30, 0, 5300000, 0, -30)),
}


@pytest.fixture(params=PRODUCTS)
def product(request, tmp_path):
    writer, arguments, name, order, bad, scale, place = PRODUCTS[request.param]
    cube = values()
    folder = tmp_path / "product"
    folder.mkdir()
    path = writer(folder, cube, **arguments)
    return {"path": path, "cube": cube[order(None)], "name": name, "bad": bad, "scale": scale, "place": place, "key": request.param}


def info(path, *options):
    return json.loads(succeed(run("gdal_hsi_info", "-json", *options, path)).out)


def test_what_is_told(product):
    told = info(product["path"], "-bbl", "ignore")
    assert told["product"] == product["name"]
    assert told["size"] == [SAMPLES, LINES, BANDS]
    nm = np.array([np.nan if w is None else w for w in told["wavelengths_nm"]])
    missing = 2 if product["name"].startswith("PRISMA") else 0
    assert np.isnan(nm).sum() == missing and np.all(np.diff(nm[:BANDS - missing]) > 0)
    assert 370 < nm[0] < 470 and 1000 <= np.nanmax(nm) < 2510
    assert all(w is None or 3 < w < 12 for w in told["fwhm_nm"])
    assert info(product["path"])["bad_bands"] == product["bad"]
    if product["scale"]:
        assert np.allclose(told["scale"], product["scale"], rtol=1e-6)
        if product["name"].startswith("PRISMA"):
            assert np.allclose(told["offset"], -0.5 if product["name"].endswith("L1") else 0.01, rtol=1e-6)
    assert told["geotransform"] == (list(product["place"]) if product["place"] else None)
    if "float" not in told["type"].lower():
        assert told["type"] in ("UInt16", "Int16")


def test_digits_are_the_files_own(product, tmp_path):
    if product["name"].startswith(("PRISMA", "EnMAP", "DESIS")):
        pytest.skip("wavelengths are sorted, or were rounded by the writer")
    told = info(product["path"], "-bbl", "ignore")["wavelengths_nm"]
    assert [np.float32(w) for w in told] == list(files.wavelengths_of(BANDS))
    succeed(run("gdal_hsi_spp", "-device", "cpu", "-bbl", "ignore", product["path"], tmp_path / "spp.img", "-of", "ENVI"))
    assert [np.float32(w) for w in info(tmp_path / "spp.img", "-bbl", "ignore")["wavelengths_nm"]] == list(files.wavelengths_of(BANDS))


@pytest.mark.quick
def test_values_are_those_of_the_arrays(product, tmp_path):
    truth = write_scene(tmp_path / "truth.tif", product["cube"], "GTiff")
    for options in ((), ("-tile", 7, 5), ("-threads", 3, "-tile", 23, 4), ("-srcwin", 3, 5, 15, 20), ("-b", "3,9-12,30")):
        succeed(run("gdal_hsi_compare", "-q", "-bbl", "ignore", "-any-wavelengths", "-metric", "maxabs", "-max-maxabs", 0, *options,
                    product["path"], truth))


def test_a_run_tells_the_product_and_computes_on_its_values(product, tmp_path):
    truth = write_scene(tmp_path / "truth.tif", product["cube"], "GTiff")
    good = ",".join(str(b) for b in range(1, BANDS + 1) if b not in product["bad"])
    dry = succeed(run("gdal_hsi_spp", "-device", "cpu", "-dry-run", product["path"], tmp_path / "dry.tif"))
    assert product["name"] in dry.out
    succeed(run("gdal_hsi_spp", "-device", "cpu", "-report", tmp_path / "r.json", product["path"], tmp_path / "a.tif"))
    assert json.loads((tmp_path / "r.json").read_text())["source"]["product"] == product["name"]
    succeed(run("gdal_hsi_spp", "-device", "cpu", "-b", good, truth, tmp_path / "b.tif"))
    assert stored_bytes(tmp_path / "a.tif") == stored_bytes(tmp_path / "b.tif")
    succeed(run("gdal_hsi_pca", "-device", "cpu", "-nc", 3, tmp_path / "a.tif", tmp_path / "pca.tif"))


def points(path):
    with path.open() as table:
        return [{key.lower(): value for key, value in row.items()} for row in csv.DictReader(table)]


def check_place(row, product, srs):
    """Checks a point's x, y, longitude and latitude against the product's location arrays, or its grid and PROJ."""
    line, sample = int(float(row["line"])), int(float(row["sample"]))
    if product["place"] is None:
        lon, lat = (array[line, sample] for array in files.places(LINES, SAMPLES))
        x, y, near = lon, lat, 2e-5
    else:
        gt = product["place"]
        x, y, near = gt[0] + gt[1] * (sample + 0.5), gt[3] + gt[5] * (line + 0.5), 1e-6
        lon, lat = osr.CoordinateTransformation(srs, WGS84).TransformPoint(x, y)[:2]
        assert abs(float(row["lon"]) - lon) < 1e-7 and abs(float(row["lat"]) - lat) < 1e-7
    assert abs(float(row["x"]) - x) < near and abs(float(row["y"]) - y) < near
    assert abs(float(row["lon"]) - lon) < 2e-5 and abs(float(row["lat"]) - lat) < 2e-5
    return line, sample


WGS84 = osr.SpatialReference()
WGS84.ImportFromEPSG(4326)
WGS84.SetAxisMappingStrategy(osr.OAMS_TRADITIONAL_GIS_ORDER)


def test_a_chain(product, tmp_path):
    """Runs spp, atdca and unmix, from the product to targets with positions and to abundances."""
    targets = 4
    succeed(run("gdal_hsi_spp", "-device", "cpu", product["path"], tmp_path / "spp.tif"))
    succeed(run("gdal_hsi_atdca", "-device", "cpu", "-t", targets, "-original", product["path"], "-spectra", tmp_path / "targets.sli",
                tmp_path / "spp.tif", tmp_path / "targets.csv"))
    succeed(run("gdal_hsi_unmix", "-device", "cpu", product["path"], tmp_path / "targets.sli", tmp_path / "shares.tif"))
    made = gdal.Open(str(tmp_path / "shares.tif"))
    assert (made.RasterXSize, made.RasterYSize, made.RasterCount) == (SAMPLES, LINES, targets)
    if product["place"]:
        assert made.GetGeoTransform() == product["place"]
    else:
        assert made.GetMetadata("GEOLOCATION") or gdal.GetDriverByName("HDF5") is None
    rows = points(tmp_path / "targets.csv")
    assert len(rows) == targets
    shares = made.ReadAsArray()
    srs = made.GetSpatialRef()
    for k, row in enumerate(rows):
        line, sample = check_place(row, product, srs)
        # The spectrum is the product's own at that pixel, so the whole pixel consists of the target.
        assert shares[k, line, sample] == pytest.approx(1, abs=1e-5)
    assert np.allclose(shares.sum(axis=0), 1, atol=1e-5) and shares.min() >= 0


def test_products_are_shown():
    done = subprocess.run([sys.executable, ROOT / "scripts" / "show_products", "--bin", os.environ["HSI_BIN_DIR"], "prisma-l1", "neon"],
                          capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("  target ") == 8 and done.stdout.count("its share there 1.0000") == 8
    assert "PRISMA L1" in done.stdout and "NEON AOP reflectance" in done.stdout


@pytest.mark.parametrize("key", ["emit-l2a", "prisma-l1", "aviris-ng", "tanager-basic"])
@pytest.mark.parametrize("target", ["part.tif", "part.dat"])
def test_a_part_of_a_product_keeps_its_places(key, target, tmp_path):
    writer, arguments = PRODUCTS[key][:2]
    path = writer(tmp_path, values(), **arguments)
    part, x0, y0 = tmp_path / target, 4, 6
    succeed(run("gdal_hsi_spp", "-device", "cpu", "-srcwin", x0, y0, 12, 20, path, part))
    assert "a longitude and latitude for every pixel" in succeed(run("gdal_hsi_info", part)).out
    succeed(run("gdal_hsi_atdca", "-device", "cpu", "-t", 3, "-srcwin", 2, 1, 9, 18, part, tmp_path / "targets.csv"))
    lon, lat = files.places(LINES, SAMPLES)
    rows = points(tmp_path / "targets.csv")
    assert len(rows) == 3
    for row in rows:
        line, sample = int(row["line"]) + 1 + y0, int(row["sample"]) + 2 + x0  # of the window in the part
        assert abs(float(row["lon"]) - lon[line, sample]) < 2e-5 and abs(float(row["lat"]) - lat[line, sample]) < 2e-5


def test_a_scene_whose_product_is_gone(tmp_path):
    path = files.emit(tmp_path, values())
    succeed(run("gdal_hsi_spp", "-device", "cpu", path, tmp_path / "spp.tif"))
    with assert_untouched(tmp_path):  # its arrays are read with the output made from it
        result = run("gdal_hsi_atdca", "-device", "cpu", "-t", 3, "-overwrite", tmp_path / "spp.tif", path)
        assert result.code == 2 and "would overwrite" in first_error(result)
    path.rename(tmp_path / "elsewhere.nc")
    result = succeed(run("gdal_hsi_atdca", "-device", "cpu", "-t", 3, tmp_path / "spp.tif", tmp_path / "targets.csv"))
    assert "'" + str(path) + "', which is missing: its pixels have no longitude and latitude" in result.err
    assert [row["lon"] for row in points(tmp_path / "targets.csv")] == [""] * 3
    files.tanager(tmp_path, values()[:, :20])  # another product of another size with the same name
    succeed(run("gdal_hsi_atdca", "-device", "cpu", "-t", 3, tmp_path / "spp.tif", tmp_path / "again.csv"))
    assert [row["lon"] for row in points(tmp_path / "again.csv")] == [""] * 3


def test_bands_by_wavelength(product):
    told = info(product["path"])
    wanted = [b for b, w in zip(told["bands"], told["wavelengths_nm"]) if w is not None and 500 <= w <= 900]
    assert info(product["path"], "-b", "500-900nm")["bands"] == wanted


@pytest.mark.parametrize("key", ["emit-l2a", "prisma-l1", "tanager-basic"])
def test_outputs_can_be_warped_by_their_locations(key, tmp_path):
    if gdal.GetDriverByName("HDF5") is None:
        pytest.skip("this GDAL has no driver HDF5, which shows the location arrays")
    writer, arguments = PRODUCTS[key][:2]
    path = writer(tmp_path, values(), **arguments)
    x0, y0 = 4, 6
    succeed(run("gdal_hsi_spp", "-device", "cpu", "-srcwin", x0, y0, 12, 20, path, tmp_path / "spp.tif"))
    subprocess.run(["gdalwarp", "-q", "-geoloc", "-t_srs", "EPSG:4326", "-dstnodata", "-9999", tmp_path / "spp.tif",
                    tmp_path / "warped.tif"], check=True)
    warped = gdal.Open(str(tmp_path / "warped.tif"))
    gt = warped.GetGeoTransform()
    # GDAL reports the extent of the whole arrays, but the values belong to the window.
    at = np.argwhere(warped.GetRasterBand(1).ReadAsArray() != -9999)
    assert len(at) > 100
    (top, left), (bottom, right) = at.min(axis=0), at.max(axis=0) + 1
    lon, lat = files.places(LINES, SAMPLES)
    window = (slice(y0, y0 + 20), slice(x0, x0 + 12))
    near = 1.5 * gt[1]
    assert abs(gt[0] + gt[1] * left - lon[window].min()) < near and abs(gt[0] + gt[1] * right - lon[window].max()) < near
    assert abs(gt[3] + gt[5] * top - lat[window].max()) < near and abs(gt[3] + gt[5] * bottom - lat[window].min()) < near


@pytest.mark.parametrize("name", ["ENMAP01-METADATA.XML", "ENMAP01-SPECTRAL_IMAGE.TIF"])
def test_xml_as_source(tmp_path, name):
    files.enmap(tmp_path, values())
    told = info(tmp_path / name)
    assert told["product"] == "EnMAP L2A" and told["path"].endswith("SPECTRAL_IMAGE.TIF") and told["nodata"] == -32768
    with assert_untouched(tmp_path):
        for target in ("ENMAP01-METADATA.XML", "ENMAP01-SPECTRAL_IMAGE.TIF"):
            result = run("gdal_hsi_spp", "-device", "cpu", "-overwrite", tmp_path / name, tmp_path / target)
            assert result.code == 2 and "would overwrite" in first_error(result)


def test_a_product_is_not_overwritten(tmp_path):
    path = files.emit(tmp_path, values())
    with assert_untouched(tmp_path):
        result = run("gdal_hsi_spp", "-device", "cpu", "-overwrite", path, path)
        assert result.code == 2 and "would overwrite" in first_error(result)


@pytest.mark.quick
@pytest.mark.parametrize("writer, arguments, message", [
    (files.emit, {"drop": ("wavelengths",)}, "has no /sensor_band_parameters/wavelengths"),
    (files.emit, {"wavelengths": np.linspace(400, 2500, 29).astype("f4")}, "has 29 wavelengths, but /reflectance is 37 x 23 x 30"),
    (files.prisma, {"drop": ("List_Cw_Swir",)}, "has no attribute List_Cw_Swir"),
    (files.prisma, {"drop": ("SWIR_Cube",)}, "has no array"),
    (files.neon, {"drop": ("Wavelength",)}, "has no /SERC/Reflectance/Metadata/Spectral_Data/Wavelength"),
    (files.aviris, {"drop": ("wavelength",)}, "has no /reflectance/wavelength"),
    (files.tanager, {"drop": ("wavelengths",)}, "has no attribute wavelengths"),
])
def test_damaged_products_are_refused(tmp_path, writer, arguments, message):
    path = writer(tmp_path, values(), **arguments)
    result = run("gdal_hsi_vd", path)
    assert result.code == 1 and message in first_error(result)


def test_a_part_of_emit_without_wavelengths_is_a_cube(tmp_path):
    path = files.emit(tmp_path, values(), drop=("sensor_band_parameters",))
    told = info(path)
    assert told["product"].startswith("cube reflectance (") and told["size"] == [SAMPLES, LINES, BANDS]


def test_an_xml_file_of_other_bands(tmp_path):
    image = files.enmap(tmp_path, values(), listed=12)
    assert info(image)["product"] is None  # it describes another image
    result = run("gdal_hsi_vd", tmp_path / "ENMAP01-METADATA.XML")
    assert result.code == 1 and "has 30 bands, but the product states 12" in first_error(result)
    image.unlink()
    result = run("gdal_hsi_vd", tmp_path / "ENMAP01-METADATA.XML")
    assert result.code == 1 and "is missing" in first_error(result)


@pytest.mark.parametrize("extension", ["", ".dat", ".bsq", ".raw", ".img"])
def test_envi_by_its_header(tmp_path, extension):
    data = tmp_path / ("scene" + extension)
    write_scene(data, values(), wavelengths=list(files.wavelengths_of(BANDS)))
    told = info(tmp_path / "scene.hdr")
    assert told["path"] == str(data) and told["size"] == [SAMPLES, LINES, BANDS]
    truth = write_scene(tmp_path / "truth.tif", values(), "GTiff")
    succeed(run("gdal_hsi_compare", "-q", "-metric", "maxabs", "-max-maxabs", 0, tmp_path / "scene.hdr", truth))
    with assert_untouched(tmp_path):
        for target in (data, tmp_path / "scene.hdr"):
            result = run("gdal_hsi_spp", "-device", "cpu", "-overwrite", "-of", "GTiff", tmp_path / "scene.hdr", target)
            assert result.code == 2


def test_envi_header_without_data(tmp_path):
    write_scene(tmp_path / "scene.dat", values())
    (tmp_path / "scene.dat").unlink()
    result = run("gdal_hsi_vd", tmp_path / "scene.hdr")
    assert result.code == 1 and "is an ENVI header without a data file" in first_error(result)


@pytest.mark.parametrize("name", ["scene.nc", "scene.h5"])
def test_chunks_are_known_and_read_quietly(tmp_path, name):
    """For files that GDAL assigns to the driver netCDF, by their extension, and for files that it assigns to HDF5."""
    cube = values()
    files.emit(tmp_path, cube, chunks=(8, 5, 7)).rename(tmp_path / name)
    if gdal.GetDriverByName("netCDF") is None:
        pytest.skip("this GDAL has no driver netCDF, which knows chunks where HDF5's does not")
    assert "in blocks of 5 x 8" in succeed(run("gdal_hsi_info", tmp_path / name)).out
    result = succeed(run("gdal_hsi_pca", "-q", "-device", "cpu", "-nc", 2, "-threads", 3, "-tile", 7, 6, tmp_path / name,
                         tmp_path / "pca.tif"))
    assert result.err == ""


def test_read_quietly_where_hdf5_knows_no_attribute(tmp_path):
    """The netCDF library looks for attributes of compressed arrays that only it writes."""
    import h5py
    cube = np.moveaxis(values(), 0, 2)
    path = tmp_path / "scene.nc"
    with h5py.File(path, "w") as file:
        array = file.create_dataset("reflectance", data=cube, chunks=(8, 5, 7), compression="gzip", shuffle=True)
        for k, name in enumerate(("downtrack", "crosstrack", "bands")):
            file.create_dataset(name, data=np.arange(cube.shape[k], dtype="f4")).make_scale(name)
            array.dims[k].attach_scale(file[name])
        file["sensor_band_parameters/wavelengths"] = files.wavelengths_of(cube.shape[2])
    result = succeed(run("gdal_hsi_vd", "-q", path))
    assert result.err == ""


@pytest.mark.parametrize("writer, little", [(files.emit, 64), (files.prisma, 56), (files.neon, 56)])
def test_a_lone_lane_is_read_for_ahead(tmp_path, writer, little):
    """If memory holds one tile of chunks, the next tile's chunks are decoded into the remaining memory while this tile
    is computed."""
    random = np.random.default_rng(6)
    cube = (1000 * random.random((64, 600, 300), dtype="f4")).astype("f4")
    path = writer(tmp_path, cube, chunks=(200, 150, 32)) if writer is files.emit else writer(tmp_path, cube)
    answers, ahead = set(), []
    for memory, threads in ((little, 2), (little, 1), (2048, 2)):
        report = tmp_path / f"{memory}_{threads}.json"
        answers.add(succeed(run("gdal_hsi_vd", "-json", "-memory", f"{memory}MB", "-threads", threads, "-report", report, "-tile",
                                1024, 300, path)).out)
        facts = json.loads(report.read_text())
        assert facts["totals"]["buffer_bytes"] <= memory << 20
        ahead.append((facts["passes"][0]["lanes"], facts["passes"][0]["read_ahead_bytes"] > 0))
    assert len(answers) == 1
    assert ahead == [(1, True), (1, False), (2, False)]


def test_a_damaged_chunk_ahead_is_an_error(tmp_path):
    random = np.random.default_rng(6)
    path = files.emit(tmp_path, random.random((64, 600, 300), dtype="f4"), chunks=(200, 150, 32))
    content = bytearray(path.read_bytes())
    middle = len(content) * 2 // 3
    content[middle:middle + 4000] = bytes(4000)
    path.write_bytes(bytes(content))
    result = run("gdal_hsi_vd", "-memory", "56MB", "-threads", 2, "-tile", 1024, 300, path)
    assert result.code == 1 and "cannot read" in first_error(result)


def test_little_memory(tmp_path):
    random = np.random.default_rng(5)
    cube = random.random((60, 300, 200), dtype="f4")  # 14 MB in chunks of 0.3 MB
    path = files.emit(tmp_path, cube, chunks=(50, 40, 30))
    report = tmp_path / "r.json"
    succeed(run("gdal_hsi_spp", "-device", "cpu", "-memory", "64MB", "-threads", 2, "-report", report, path, tmp_path / "little.tif"))
    assert json.loads(report.read_text())["totals"]["buffer_bytes"] <= 64 << 20
    succeed(run("gdal_hsi_spp", "-device", "cpu", "-memory", "1GB", "-threads", 1, path, tmp_path / "much.tif"))
    assert stored_bytes(tmp_path / "little.tif") == stored_bytes(tmp_path / "much.tif")
    with_values = read(tmp_path / "much.tif")
    assert np.isfinite(with_values).any()


MARKED = {
    "emit": (files.emit, {}, "reflectance"),
    "aviris": (files.aviris, {}, "reflectance/reflectance"),
    "tanager": (files.tanager, {}, "HDFEOS/SWATHS/HYP/Data Fields/surface_reflectance"),
    "prisma": (files.prisma, {"level": "L1"}, "HDFEOS/SWATHS/PRS_L1_HCO/Data Fields/VNIR_Cube"),
    "neon": (files.neon, {}, "SERC/Reflectance/Reflectance_Data"),
}


@pytest.mark.parametrize("key", MARKED)
@pytest.mark.parametrize("name, number, none", [("missing_value", 7, 7), ("valid_max", 9000, 9001), ("valid_min", 3, 2)])
def test_pixels_that_attributes_mark(tmp_path, key, name, number, none):
    """By attributes that arrays of other files also have."""
    import h5py
    writer, arguments, array = MARKED[key]
    cube = values()
    cube[:, 4, 6] = none
    path = writer(tmp_path, cube, **arguments)
    with h5py.File(path, "r+") as f:
        attributes = [f[array].attrs]
        if key == "prisma":
            attributes.append(f[array.replace("VNIR", "SWIR")].attrs)
        for each in attributes:
            each[name] = np.array(number).astype(f[array].dtype)
    told = json.loads(succeed(run("gdal_hsi_info", "-json", "-count", path)).out)
    assert told["valid_pixels"] == LINES * SAMPLES - 1, told
