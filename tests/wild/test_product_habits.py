# SPDX-License-Identifier: MIT
"""Products as agencies deliver and people store them: additional sensors, several files, archives, links, other names,
and impossible numbers."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import zipfile

import numpy as np
import pytest
from conftest import ROOT, cube, first_error, open_band, read, run, succeed, write_scene
from osgeo import gdal

sys.path.insert(0, str(ROOT / "tests" / "cli"))
import product_files as files  # noqa: E402

h5py = pytest.importorskip("h5py")
pytest.importorskip("netCDF4")

VALUES = np.round(cube(samples=12, lines=10, bands=9))


def info(path):
    return succeed(run("gdal_hsi_info", "-q", path)).out


def report_of(path, out, *options):
    """Returns the report of a run about its source, and its other messages."""
    result = succeed(run("gdal_hsi_pca", "-nc", "2", "-overwrite", "-report", out / "report.json", *options, path,
                         out / "pca.tif"))
    return json.loads((out / "report.json").read_text()), result.err


def same_as_plain(path, out, values, wavelengths=None):
    """Compares every value of the scene, in the product's order, through spp on it and on a plain file."""
    plain = write_scene(out / "plain.img", values, dtype="f4", epsg=None, geotransform=None)
    for name, source in (("a.tif", path), ("b.tif", plain)):
        succeed(run("gdal_hsi_spp", "-q", "-ws", "3", "-bbl", "ignore", "-overwrite", source, out / name))
    np.testing.assert_array_equal(read(out / "a.tif"), read(out / "b.tif"))
    if wavelengths is not None:
        dataset = gdal.Open(str(out / "a.tif"))
        got = [float(dataset.GetRasterBand(b + 1).GetMetadataItem("wavelength")) for b in range(len(values))]
        np.testing.assert_allclose(got, wavelengths, rtol=1e-5)


# --- sensors


@pytest.mark.parametrize("kind", ["rhos", "Rrs"])
def test_pace_level_2(tmp_path, out, kind):
    path = files.pace(tmp_path, VALUES, kind)
    text = info(path)
    assert "PACE OCI L2" in text and "2e-05" in text, text
    same_as_plain(path, out, VALUES, files.wavelengths_of(9, 346, 2260))
    targets = out / "targets.geojson"
    succeed(run("gdal_hsi_atdca", "-q", "-t", "2", path, targets))
    lon, lat = files.places(10, 12)
    for feature in json.loads(targets.read_text())["features"]:
        x, y = feature["geometry"]["coordinates"][:2]
        assert np.min(np.hypot(lon - x, lat - y)) < 1e-4


def test_pace_without_wavelengths_is_an_error(tmp_path):
    path = files.pace(tmp_path, VALUES, drop=("wavelength_3d",))
    assert "wavelength_3d" in first_error(run("gdal_hsi_info", path))


def test_pace_level_1b_is_one_scene(tmp_path, out):
    path = files.pace_l1b(tmp_path, VALUES, blue=4, red=3)
    listed = np.concatenate([np.linspace(314, 605, 4), np.linspace(597, 894, 3), np.linspace(940, 2258, 2)])
    order = np.argsort(listed, kind="stable")
    assert list(order) != sorted(order)
    same_as_plain(path, out, VALUES[order], listed[order])


@pytest.mark.parametrize("spelling", [("scale_factor", "add_offset"), ("slope", "intercept")])
def test_hico(tmp_path, out, spelling):
    path = files.hico(tmp_path, VALUES, spelling)
    text = info(path)
    assert "HICO L1B" in text and "0.02" in text, text
    same_as_plain(path, out, VALUES, files.wavelengths_of(9, 353, 1080))
    dataset = gdal.Open(str(out / "a.tif"))
    assert dataset.GetMetadata("GEOLOCATION")["X_DATASET"].endswith("navigation/longitudes")


def check_marked(path, folder, values, marked):
    """Checks that pixels marked by an array have no value in any band, and that all other pixels have their values."""
    out = folder / "seen.tif"
    succeed(run("gdal_hsi_pipeline", "-q", f"read '{path}' ! write '{out}' -ot Float32 -dstnodata nan"))
    want = values.astype("f4")
    want[:, marked] = np.nan
    np.testing.assert_array_equal(read(out), want)


MARKS = [  # attributes of an array, and a sample that they mark
    ({"_FillValue": 77}, 77), ({"_FillValue": 77, "missing_value": 78}, 78), ({"valid_max": 20000}, 20001),
    ({"valid_min": 1}, 0), ({"valid_range": [1, 20000]}, 20001)]


@pytest.mark.parametrize("attributes, sample", MARKS, ids=str)
@pytest.mark.parametrize("product, array", [("pace", "geophysical_data/rhos"), ("hico", "products/Lt")])
def test_marked_pixels_of_pace_and_hico(tmp_path, product, array, attributes, sample):
    values = 100 + np.arange(9 * 10 * 12).reshape(9, 10, 12)
    values[:, 4, 5] = sample
    path = getattr(files, product)(tmp_path, values)
    with h5py.File(path, "a") as f:
        f[array].attrs.update({name: np.array(told, f[array].dtype) for name, told in attributes.items()})
    marked = np.zeros((10, 12), bool)
    marked[4, 5] = True
    check_marked(path, tmp_path, values, marked)


@pytest.mark.parametrize("attributes, sample", MARKS, ids=str)
def test_each_array_of_pace_level_1b_marks_its_own_pixels(tmp_path, attributes, sample):
    """The same number is a value in the arrays that do not mark it."""
    nm = np.concatenate([np.linspace(314, 605, 3), np.linspace(597, 894, 3), np.linspace(940, 2258, 3)])
    for k, marking in enumerate(["blue", "red", "SWIR"]):
        folder = tmp_path / marking
        folder.mkdir()
        values = 100. + np.arange(9 * 10 * 12).reshape(9, 10, 12)
        marked = np.zeros((10, 12), bool)
        for of_array in range(3):
            values[3 * of_array + 1, 4, of_array] = sample
        marked[4, k] = True
        path = files.pace_l1b(folder, values, 3, 3)
        with h5py.File(path, "a") as f:
            f["observation_data/rhot_" + marking].attrs.update(
                {name: np.array(told, "f4") for name, told in attributes.items()})
        check_marked(path, folder, values[np.argsort(nm, kind="stable")], marked)


def test_enmap_l1b_is_one_scene_of_both_detectors(tmp_path, out):
    listed = [800, 900, 985, 905, 1000, 1100, 1200]
    images = files.enmap_l1b(tmp_path, VALUES[:3], VALUES[3:7], listed)
    order = np.argsort(listed, kind="stable")
    for name in (*images, tmp_path / "ENMAP01-METADATA.XML"):
        assert "EnMAP L1B" in info(name)
        same_as_plain(name, out, VALUES[:7][order], np.array(listed)[order])
        names = [open_band(out / "a.tif", b).GetDescription() for b in range(1, 8)]
        assert names == ["VNIR 1", "VNIR 2", "SWIR 1", "VNIR 3", "SWIR 2", "SWIR 3", "SWIR 4"], names
        for part in (*images, tmp_path / "ENMAP01-METADATA.XML"):
            result = run("gdal_hsi_pca", "-q", "-of", "GTiff", "-overwrite", name, part)
            assert result.code == 2, result.err
    result = run("gdal_hsi_spp", "-q", "-of", "VRT", images[0], out / "spp.vrt")
    assert result.code == 2 and "two images" in first_error(result), result.err
    scales = [open_band(out / "a.tif", b).GetScale() for b in range(1, 8)]
    np.testing.assert_allclose(scales, 0.0001 * (order + 1))  # they stay with their bands


def test_enmap_l1b_that_lacks_a_part(tmp_path):
    images = files.enmap_l1b(tmp_path, VALUES[:3], VALUES[3:7], drop=("ENMAP01-SPECTRAL_IMAGE_SWIR.TIF",))
    for name in (images[0], tmp_path / "ENMAP01-METADATA.XML"):
        assert "SWIR is missing" in first_error(run("gdal_hsi_info", name))
    files.enmap_l1b(tmp_path, VALUES[:3], VALUES[3:7], listed=[500, 600, 700])
    assert "images have 3 and 4" in first_error(run("gdal_hsi_info", images[0]))
    files.enmap_l1b(tmp_path, VALUES[:3], VALUES[3:7, :5])
    assert "different sizes" in first_error(run("gdal_hsi_info", images[0]))


# --- impossible numbers


@pytest.mark.parametrize("wrong, told", [
    (lambda w: np.where(np.arange(len(w)) == 2, np.nan, w), "1 band has"),
    (lambda w: np.where(np.arange(len(w)) < 3, -w, w), "3 bands have"),
    (lambda w: np.where(np.arange(len(w)) == 0, np.inf, w), "1 band has"),
    (lambda w: np.full(len(w), np.nan), "9 bands have"),
    (lambda w: np.full(len(w), 550.0), "same wavelength"),
    (lambda w: w / 1000, "micrometres")])
@pytest.mark.parametrize("product", ["emit", "prisma"])
def test_wavelengths_that_cannot_be(tmp_path, out, product, wrong, told):
    path = getattr(files, product)(tmp_path, VALUES)
    with h5py.File(path, "a") as h:
        if product == "emit":
            list_ = h["sensor_band_parameters/wavelengths"]
            list_[:] = wrong(list_[:])
        else:
            w = np.concatenate([h.attrs["List_Cw_Vnir"], h.attrs["List_Cw_Swir"]])
            w[w == 0] = (900, 2500)
            w = wrong(w).astype("f4")
            h.attrs.modify("List_Cw_Vnir", w[:3])
            h.attrs.modify("List_Cw_Swir", w[3:])
    _, said = report_of(path, out)
    assert told in said, said
    text = info(path)
    if told == "micrometres":
        assert "to 2494 nm" in text or "to 2500 nm" in text or "2493" in text, text
    if told in ("same wavelength", "9 bands have"):
        result = run("gdal_hsi_pca", "-q", "-overwrite", "-exclude-range", "500-600nm", path, out / "x.tif")
        assert result.code == 1 and "no wavelengths" in first_error(result), result.err


@pytest.mark.parametrize("code", [-1, 0, 999999])
def test_a_code_of_no_reference_system(tmp_path, out, code):
    path = files.prisma(tmp_path, VALUES)
    with h5py.File(path, "a") as h:
        h.attrs["Epsg_Code"] = code
    _, said = report_of(path, out)
    assert f"EPSG code {code}" in said, said
    path = files.tanager(tmp_path, VALUES, ortho=True)
    with h5py.File(path, "a") as h:
        h["/HDFEOS/GRIDS/HYP"].attrs["epsg_code"] = code
    assert f"EPSG code {code}" in report_of(path, out)[1]


def test_a_grid_without_extent(tmp_path, out):
    path = files.prisma(tmp_path, VALUES)
    with h5py.File(path, "a") as h:
        h.attrs["Product_LRcorner_easting"] = h.attrs["Product_ULcorner_easting"]
    assert "has no extent" in report_of(path, out)[1]
    assert gdal.Open(str(out / "pca.tif")).GetGeoTransform(can_return_null=True) is None


def test_right_products_say_nothing(tmp_path, out):
    for product in ("emit", "prisma", "neon", "aviris", "tanager", "pace", "hico", "enmap", "desis"):
        path = getattr(files, product)(tmp_path, VALUES)
        assert "WARNING" not in report_of(path, out)[1].upper(), product


# --- locations of products


@pytest.mark.parametrize("product", ["emit", "prisma", "enmap", "desis"])
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_products_in_archives(tmp_path, out, product, kind):
    folder = tmp_path / "p"
    folder.mkdir()
    path = getattr(files, product)(folder, VALUES)
    archive = tmp_path / f"a.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(archive, "w") as z:
            for each in folder.iterdir():
                z.write(each, f"in/{each.name}")
    else:
        with tarfile.open(archive, "w") as t:
            t.add(folder, "in")
    name = f"/vsi{kind}/{archive}/in/{path.name}"
    products, components = [], []
    for source in (name, path):
        products.append(report_of(source, out)[0]["source"]["product"])
        components.append(read(out / "pca.tif"))
    assert products[0] == products[1]
    np.testing.assert_array_equal(*components)
    before = archive.read_bytes()
    assert run("gdal_hsi_pca", "-q", "-of", "GTiff", "-overwrite", name, archive).code == 2
    assert archive.read_bytes() == before


@pytest.mark.parametrize("product", ["emit", "prisma", "neon", "tanager", "aviris", "pace", "hico"])
def test_other_names_and_links(tmp_path, out, product):
    path = getattr(files, product)(tmp_path, VALUES)
    expected = report_of(path, out)[0]["source"]["product"]
    before = json.loads(succeed(run("gdal_hsi_info", "-json", path)).out)
    for name in ("SCENE.NC", "scene.HE5", "scene", "a scene.H5", "x.tif"):
        path = path.rename(tmp_path / name)
        told = json.loads(succeed(run("gdal_hsi_info", "-json", path)).out)
        assert told["product"] == expected, name
        assert {key for key in told if before[key] != told[key]} <= {"path", "driver", "next"}, name
    (out / "link").symlink_to(path)
    assert report_of(out / "link", out)[0]["source"]["product"] == expected
    assert run("gdal_hsi_pca", "-q", "-of", "GTiff", "-overwrite", out / "link", path).code == 2


def test_an_image_beside_its_xml_by_other_names(tmp_path, out):
    image = files.enmap(tmp_path, VALUES)
    (out / "link.tif").symlink_to(image)
    assert "EnMAP L2A" in info(out / "link.tif")
    for old, new in (("ENMAP01-SPECTRAL_IMAGE.TIF", "berlin.tif"), ("ENMAP01-METADATA.XML", "berlin_metadata.xml")):
        shutil.move(tmp_path / old, tmp_path / new)
    assert "EnMAP L2A" in info(tmp_path / "berlin.tif")
    shutil.copy(tmp_path / "berlin.tif", tmp_path / "berlin2.tif")
    assert "EnMAP" not in info(tmp_path / "berlin2.tif")  # another file with a longer name


def test_products_as_zarr(tmp_path, out):
    if gdal.GetDriverByName("Zarr") is None:
        pytest.skip("this GDAL has no driver Zarr")
    if shutil.which("gdalmdimtranslate") is None:
        pytest.skip("gdalmdimtranslate is absent")
    path = files.emit(tmp_path, VALUES)
    zarr = tmp_path / "emit.zarr"
    subprocess.run(["gdalmdimtranslate", "-of", "Zarr", path, zarr], check=True, capture_output=True)
    assert "EMIT L2A reflectance" in info(zarr)
    same_as_plain(zarr, out, VALUES, files.wavelengths_of(9))
    result = run("gdal_hsi_pca", "-q", "-of", "GTiff", "-overwrite", zarr, zarr / "reflectance" / "0.0.0")
    assert result.code == 2, result.err
    succeed(run("gdal_hsi_atdca", "-q", "-t", "2", zarr, out / "targets.geojson"))
    lon, lat = files.places(10, 12)
    for feature in json.loads((out / "targets.geojson").read_text())["features"]:
        x, y = feature["geometry"]["coordinates"][:2]
        assert np.min(np.hypot(lon - x, lat - y)) < 1e-4


def test_products_as_virtual_zarr(tmp_path, out):
    """Kerchunk's references: the chunks stay in the product's own file."""
    driver = gdal.GetDriverByName("Zarr")
    if driver is None or int(gdal.VersionInfo("VERSION_NUM")) < 3110000:
        pytest.skip("GDAL reads Kerchunk's references from 3.11 on")
    path = files.emit(tmp_path, VALUES)
    refs = {".zgroup": '{"zarr_format": 2}'}
    with h5py.File(path) as h:
        for name in ("reflectance", "sensor_band_parameters/wavelengths", "sensor_band_parameters/fwhm",
                     "sensor_band_parameters/good_wavelengths", "location/lon", "location/lat"):
            data = h[name]
            values = np.ascontiguousarray(data[...])
            raw = out / (name.replace("/", "_") + ".raw")
            raw.write_bytes(values.tobytes())
            for k in range(1, name.count("/") + 1):
                refs["/".join(name.split("/")[:k]) + "/.zgroup"] = '{"zarr_format": 2}'
            refs[name + "/.zarray"] = json.dumps({
                "zarr_format": 2, "shape": values.shape, "chunks": values.shape, "dtype": values.dtype.str, "order": "C",
                "compressor": None, "filters": None, "fill_value": None})
            refs[name + "/.zattrs"] = json.dumps({"_ARRAY_DIMENSIONS": ["downtrack", "crosstrack", "bands"][:values.ndim]
                                                  if values.ndim > 1 else ["bands"]})
            refs[name + "/" + ".".join("0" * values.ndim)] = [str(raw), 0, values.nbytes]
    scene = tmp_path / "emit.json"
    scene.write_text(json.dumps({"version": 1, "refs": refs}))
    assert "EMIT L2A reflectance" in info(scene)
    same_as_plain(scene, out, VALUES, files.wavelengths_of(9))
    for raw in out.glob("*.raw"):
        assert run("gdal_hsi_pca", "-q", "-of", "GTiff", "-overwrite", scene, raw).code == 2


# --- storage


def test_small_chunks_stay_within_memory(tmp_path, out):
    """HDF5 stores as much data in addition to each chunk of a piece as a thousand values."""
    lines, samples, bands, memory, slack = 208, 208, 200, 64, 16
    values = np.random.default_rng(1).integers(1, 9000, (bands, lines, samples))
    peaks, results = [], []
    for name, chunks in (("small", (4, 4, 4)), ("one", (52, 52, 40))):
        folder = tmp_path / name
        folder.mkdir()
        path = folder / "scene.h5"
        with h5py.File(path, "w") as h:
            h.create_dataset("SITE/Reflectance/Reflectance_Data", data=np.moveaxis(values, 0, 2).astype("i2"), chunks=chunks)
            h["SITE/Reflectance/Metadata/Spectral_Data/Wavelength"] = files.wavelengths_of(bands)
        succeed(run("gdal_hsi_pca", "-q", "-device", "cpu", "-nc", "2", "-threads", "4", "-memory", f"{memory}MB", "-report",
                    out / "report.json", path, out / f"{name}.tif"))
        peaks.append(json.loads((out / "report.json").read_text())["peak_resident_bytes"] / 2**20)
        results.append(read(out / f"{name}.tif"))
    np.testing.assert_array_equal(*results)
    tiny = files.neon(tmp_path, VALUES)
    idle = report_of(tiny, out, "-threads", "4", "-memory", f"{memory}MB")[0]["peak_resident_bytes"] / 2**20
    assert max(peaks) <= idle + memory + slack, f"{peaks} MB, {idle:.0f} MB for a scene of a few pixels"


def test_channels_that_an_image_has(tmp_path, out):
    """EnMAP L1B lists all bands, and each image has some of them."""
    images = files.enmap_l1b(tmp_path, VALUES[:2], VALUES[2:4], listed=[500, 600, 700, 950, 1000, 1100])
    xml = tmp_path / "ENMAP01-METADATA.XML"
    lists = "".join(f"<{name}ProductQuality><expectedChannelsList>{text}</expectedChannelsList></{name}ProductQuality>"
                    for name, text in (("vnir", "1,3"), ("swir", "4, 6")))
    xml.write_text(xml.read_text().replace("<specific>", "<specific>" + lists))
    same_as_plain(images[1], out, VALUES[:4], [500, 700, 950, 1100])


# --- numbers as text


@pytest.mark.parametrize("text", [lambda v: str(float(v)), lambda v: np.bytes_(str(float(v))), lambda v: [str(float(v))],
                                  lambda v: f" {float(v):e} "])
def test_numbers_that_are_written_as_text(tmp_path, out, text):
    values = VALUES.copy()
    values[:, 0, 0], values[2, 4, 4] = -9999, 0
    def told():
        found = json.loads(succeed(run("gdal_hsi_info", "-json", "-count", path)).out)
        scale = [f"{v:.5e}" for v in np.atleast_1d(found["scale"] or [])]  # attributes are in single precision
        return scale, found["nodata"], found["pixels"] if "pixels" in found else found["valid_pixels"], \
            found["geotransform"]
    path = files.neon(tmp_path, values)
    right = told()
    with h5py.File(path, "a") as h:
        attributes = h["/SERC/Reflectance/Reflectance_Data"].attrs
        for name, number in (("Data_Ignore_Value", -9999), ("Scale_Factor", 10000)):
            attributes[name] = text(number)
        h["/SERC/Reflectance"].attrs["Band_Window_1_Nanometers"] = "1340, 1445"
    assert told() == right
    path = files.prisma(tmp_path, VALUES)
    right = told()
    with h5py.File(path, "a") as h:
        for name in ("Epsg_Code", "L2ScaleVnirMin", "L2ScaleVnirMax", "Product_ULcorner_easting"):
            h.attrs[name] = text(h.attrs[name])
    assert told() == right and "WGS 84 / UTM zone 32N" in succeed(run("gdal_hsi_info", path)).out
    path = files.tanager(tmp_path, VALUES, ortho=True)
    right = told()
    with h5py.File(path, "a") as h:
        h["/HDFEOS/GRIDS/HYP/Data Fields/surface_reflectance"].attrs["_FillValue"] = text(-9999)
        h["/HDFEOS/GRIDS/HYP"].attrs["epsg_code"] = text(32611)
    assert told() == right


def test_texts_that_are_no_numbers_are_told(tmp_path, out):
    path = files.neon(tmp_path, VALUES)
    with h5py.File(path, "a") as h:
        h["/SERC/Reflectance/Reflectance_Data"].attrs["Data_Ignore_Value"] = "none"
    assert "Data_Ignore_Value is 'none', which is not a number" in report_of(path, out)[1]


# --- other files of a product


@pytest.mark.parametrize("name", ["ENMAP01-QL_PIXELMASK.TIF", "ENMAP01-QL_QUALITY_TESTFLAGS.TIF", "ENMAP01-QL_SWIR.TIF"])
def test_masks_of_a_product_are_not_its_scene(tmp_path, name):
    """A mask with as many bands."""
    image = files.enmap(tmp_path, VALUES)
    shutil.copy(image, tmp_path / name)
    assert "EnMAP" in info(image) and "EnMAP" not in info(tmp_path / name)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_metadata_in_utf_16(tmp_path, encoding):
    image = files.enmap(tmp_path, VALUES)
    xml = tmp_path / "ENMAP01-METADATA.XML"
    text = xml.read_text().replace("UTF-8", "UTF-16")
    xml.write_bytes((b"" if encoding == "utf-16" else b"\xff\xfe" if encoding.endswith("le") else b"\xfe\xff") +
                    text.encode(encoding))
    for name in (image, xml):
        assert "EnMAP L2A" in info(name)


@pytest.mark.parametrize("suffix", [".aux.xml", ".ovr", ".msk"])
def test_names_that_gdal_reads_with_a_source_are_no_results(tmp_path, suffix):
    """Such a file does not exist yet, but once it exists, it is a part of the scene."""
    scene = write_scene(tmp_path / "in.tif", VALUES, driver="GTiff")
    result = run("gdal_hsi_pca", "-q", "-nc", "2", "-of", "GTiff", scene, scene + suffix)
    assert result.code == 2 and "would overwrite" in first_error(result), result.err
    assert [p.name for p in tmp_path.iterdir()] == ["in.tif"]
