# SPDX-License-Identifier: MIT
"""-stac: an Item of a SpatioTemporal Asset Catalog next to a raster. Its position, time, bands and classes are compared
with numpy's and PROJ's values of the scene. Every item is checked by the rules of STAC 1.1.0 and of the extensions that
it names, implemented here from their texts. If pystac is installed, its bundled schemas of the core are also used,
without network access."""
import datetime
import json
import math
import os
import re
import sys
import urllib.parse

import numpy as np
import pytest
from conftest import ROOT, assert_untouched, cube, first_error, open_band, run, succeed, write_utm_scene as write_scene
from osgeo import gdal, osr

sys.path.insert(0, str(ROOT / "tests" / "cli"))
import product_files  # noqa: E402

EXTENSIONS = {"eo": "v2.0.0", "raster": "v2.0.0", "projection": "v2.0.0", "classification": "v2.0.0", "processing": "v1.2.0"}
PREFIXES = {"eo": "eo:", "raster": "raster:", "projection": "proj:", "classification": "classification:",
            "processing": "processing:"}
TYPES = {"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"}
UTC = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
WAVELENGTHS = [381.0, 388.4, 395.8, 403.2, 1050.0, 2493.0]
FWHM = [8.4, 8.4, 8.41, 8.41, 8.6, 8.8]


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def judge_values(fields):
    """Checks the values of an asset or a band."""
    assert fields.get("data_type", "uint8") in TYPES
    nodata = fields.get("nodata", 0)
    assert is_number(nodata) or nodata in ("nan", "inf", "-inf")
    assert isinstance(fields.get("unit", ""), str)
    for key in ("raster:scale", "raster:offset", "eo:center_wavelength", "eo:full_width_half_max"):
        assert is_number(fields.get(key, 1))
    assert fields.get("eo:center_wavelength", 1) > 0 and fields.get("eo:full_width_half_max", 1) > 0
    for one in fields.get("classification:classes", []):
        assert isinstance(one["value"], int) and re.fullmatch("[0-9A-Za-z_-]+", one["name"])
        assert re.fullmatch("[0-9A-F]{6}", one.get("color_hint", "000000"))


def judge_projection(fields):
    code = fields.get("proj:code")
    assert code is None or re.fullmatch(r"\w+:\w+", code)
    assert [type(n) for n in fields.get("proj:shape", [1, 1])] == [int, int]
    for key, count in (("proj:transform", 6), ("proj:bbox", 4)):
        assert key not in fields or (len(fields[key]) == count and all(map(is_number, fields[key])))


def rings_of(item):
    """Returns the outer rings of all polygons; there are no holes."""
    geometry = item["geometry"]
    polygons = [geometry["coordinates"]] if geometry["type"] == "Polygon" else geometry["coordinates"]
    assert geometry["type"] in ("Polygon", "MultiPolygon") and all(len(polygon) == 1 for polygon in polygons)
    return [np.array(polygon[0]) for polygon in polygons]


def area(ring):
    """Returns a positive area for counter-clockwise rings."""
    return (ring[:-1, 0] * ring[1:, 1] - ring[1:, 0] * ring[:-1, 1]).sum() / 2


def judge_place(item):
    geometry = item["geometry"]
    if geometry is None:
        assert "bbox" not in item
        return
    for ring in rings_of(item):
        assert len(ring) >= 4 and np.array_equal(ring[0], ring[-1]) and area(ring) > 0
        assert (np.abs(ring[:, 0]) <= 180).all() and (np.abs(ring[:, 1]) <= 90).all()
    west, south, east, north = item["bbox"]
    assert south < north and -180 <= west <= 180 and -180 <= east <= 180
    assert (west < east) == (geometry["type"] == "Polygon") or (west, east) == (-180, 180)


def judge(path):
    """Returns the item, after it has checked the rules."""
    item = json.loads(path.read_text(), parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert item["type"] == "Feature" and item["stac_version"] == "1.1.0" and item["id"]
    assert item["links"] == []
    judge_place(item)
    properties = item["properties"]
    times = [properties[k] for k in ("datetime", "start_datetime", "end_datetime") if properties.get(k)]
    assert all(UTC.fullmatch(time) for time in times)
    assert properties["datetime"] or properties["start_datetime"] <= properties["end_datetime"]
    objects = [properties] + list(item["assets"].values()) + [b for a in item["assets"].values() for b in a.get("bands", [])]
    for name, prefix in PREFIXES.items():  # named if and only if its fields are used
        used = any(key.startswith(prefix) for one in objects for key in one)
        assert (f"https://stac-extensions.github.io/{name}/{EXTENSIONS[name]}/schema.json" in item["stac_extensions"]) == used
    for one in objects:
        judge_values(one)
        judge_projection(one)
    for asset in item["assets"].values():
        assert asset["href"] and asset["roles"] and " " not in asset["href"]
    assert all(isinstance(text, str) for text in properties["processing:software"].values())
    judge_by_pystac(item)
    return item


def judge_by_pystac(item):
    try:
        from jsonschema import Draft7Validator
        from pystac.validation.local_validator import get_local_schema_cache
        from referencing import Registry, Resource
    except ImportError:
        return
    schemas = get_local_schema_cache()
    registry = Registry().with_resources([(name, Resource.from_contents(text)) for name, text in schemas.items()])
    core = next(text for name, text in schemas.items() if name.endswith("v1.1.0/item-spec/json-schema/item.json"))
    assert [error.message for error in Draft7Validator(core, registry=registry).iter_errors(item)] == []


def in_wgs84(points, epsg):
    source, target = osr.SpatialReference(), osr.SpatialReference()
    source.ImportFromEPSG(epsg)
    target.ImportFromEPSG(4326)
    for srs in (source, target):
        srs.SetAxisMappingStrategy(osr.OAMS_TRADITIONAL_GIS_ORDER)
    return np.array([p[:2] for p in osr.CoordinateTransformation(source, target).TransformPoints(points)])


def corners(geotransform, samples, lines):
    g = geotransform
    return [(g[0] + x * g[1] + y * g[2], g[3] + x * g[4] + y * g[5]) for x, y in
            ((0, 0), (0, lines), (samples, lines), (samples, 0))]


@pytest.fixture
def spectrometer(tmp_path):
    """Makes a scene as EMIT's: floats, wavelengths from the visible on, a nodata value, the time of acquisition."""
    (tmp_path / "in").mkdir()
    scene = tmp_path / "in" / "scene.img"
    write_scene(scene, cube(bands=6), wavelengths=WAVELENGTHS, fwhm=FWHM, nodata=-9999)
    with scene.with_suffix(".hdr").open("a") as header:
        header.write("acquisition time = 2022-08-28T05:19:16.5Z\n")
    return scene


@pytest.mark.quick
def test_item_of_a_scene(spectrometer, out):
    """Checks position, time, bands, and the processing."""
    result = succeed(run("gdal_hsi_spp", "-device", "cpu", "-stac", out / "y.json", "-alpha", out / "alpha.tif", spectrometer, out / "y.tif"))
    assert "-stac" not in result.err
    succeed(run("gdal_hsi_spp", "-device", "cpu", "-stac", out / "again.json", "-alpha", out / "alpha2.tif", spectrometer, out / "y2.tif"))
    renamed = (out / "again.json").read_text().replace("again.json", "y.json").replace("y2", "y").replace("alpha2", "alpha")
    assert renamed == (out / "y.json").read_text()  # the only names in it are the scene and the command
    item = judge(out / "y.json")
    assert item["id"] == "y"
    expected = in_wgs84(corners((500000, 20, 0, 4480000, 0, -20), 40, 30), 32616)
    assert np.allclose(item["bbox"], [*expected.min(0), *expected.max(0)], rtol=0, atol=1e-8)
    ring = np.array(item["geometry"]["coordinates"][0])
    assert len(ring) == 5 and all(np.abs(ring - corner).max(1).min() < 1e-8 for corner in expected)
    properties = item["properties"]
    assert properties["datetime"] == "2022-08-28T05:19:16.5Z"
    assert properties["proj:code"] == "EPSG:32616"
    assert "gdal_hsi_spp" in properties["processing:lineage"] and "-alpha" in properties["processing:lineage"]
    version = succeed(run("gdal_hsi_spp", "--version")).out
    assert properties["processing:software"]["gdal-hsi"] in version and properties["processing:software"]["GDAL"] in version
    data = item["assets"]["data"]
    assert (data["href"], data["roles"], data["type"]) == ("./y.tif", ["data"], "image/tiff; application=geotiff")
    assert data["proj:shape"] == [30, 40] and data["proj:transform"] == [20, 0, 500000, 0, -20, 4480000]
    assert data["proj:bbox"] == [500000, 4479400, 500800, 4480000]
    srs = osr.SpatialReference()
    assert srs.ImportFromWkt(data["proj:wkt2"]) == 0 and srs.GetAuthorityCode(None) == "32616"
    assert (data["data_type"], data["nodata"]) == ("float32", -9999)
    assert [b["eo:center_wavelength"] for b in data["bands"]] == pytest.approx([w / 1000 for w in WAVELENGTHS], rel=1e-12)
    assert [b["eo:full_width_half_max"] for b in data["bands"]] == pytest.approx([w / 1000 for w in FWHM], rel=1e-12)
    assert len({b["name"] for b in data["bands"]}) == 6
    assert item["assets"]["alpha"] == {"href": "./alpha.tif", "type": "image/tiff; application=geotiff", "roles": ["data"]}


def test_item_of_a_class_map(tmp_path, out):
    """The classes with their numbers, names and colours; other numbers are not classes."""
    data = cube(bands=4)
    labels = np.zeros((1, 30, 40))
    labels[0, :, :13], labels[0, :, 13:26] = 1, 3
    data[:, labels[0] == 3] *= np.array([1, 2, 3, 4])[:, None]
    scene = write_scene(tmp_path / "scene.tif", data, driver="GTiff")
    write_scene(tmp_path / "labels.tif", labels, driver="GTiff", dtype="u1", nodata=0)
    band = gdal.Open(str(tmp_path / "labels.tif"), gdal.GA_Update)
    band.GetRasterBand(1).SetCategoryNames(["", "bare soil", "", "Wald/Bäume"])
    band = None
    succeed(run("gdal_hsi_svm_train", "-q", "-C", 8, "-gamma", 0.5, "-probability", scene, tmp_path / "labels.tif", out / "m.json"))
    succeed(run("gdal_hsi_svm_classify", "-q", "-stac", out / "map.json", "-confidence", out / "c.tif", scene, out / "m.json", out / "map.tif"))
    item = judge(out / "map.json")
    asset = item["assets"]["data"]
    band = open_band(out / "map.tif")
    hints = ["%02X%02X%02X" % band.GetColorTable().GetColorEntry(v)[:3] for v in (1, 3)]
    assert asset["classification:classes"] == [
        {"value": 0, "name": "Unclassified", "title": "Unclassified", "nodata": True},
        {"value": 1, "name": "bare_soil", "title": "bare soil", "color_hint": hints[0]},
        {"value": 3, "name": "Wald_B__ume", "title": "Wald/Bäume", "color_hint": hints[1]}]
    assert (asset["data_type"], asset["nodata"], asset["bands"]) == ("uint8", 0, [{"name": "class"}])
    assert item["assets"]["confidence"]["href"] == "./c.tif"


def test_scales_and_units(tmp_path, out):
    """Properties of all bands appear once, other properties in their band."""
    scene = write_scene(tmp_path / "scene.tif", cube(bands=3), driver="GTiff", dtype="i2")
    dataset = gdal.Open(str(scene), gdal.GA_Update)
    for b, scale in enumerate((0.5, 0.25, 0.25), 1):
        dataset.GetRasterBand(b).SetScale(scale)
        dataset.GetRasterBand(b).SetOffset(-3)
        dataset.GetRasterBand(b).SetUnitType("1")
    dataset = None
    succeed(run("gdal_hsi_pipeline", "-q", f"read {scene} ! write {out / 'copy.tif'} -stac {out / 'copy.json'}"))
    asset = judge(out / "copy.json")["assets"]["data"]
    assert [b["raster:scale"] for b in asset["bands"]] == [0.5, 0.25, 0.25]
    assert (asset["raster:offset"], asset["unit"], asset["data_type"]) == (-3, "1", "int16")
    assert "nodata" not in asset and all(b.keys() == {"name", "raster:scale"} for b in asset["bands"])


@pytest.mark.parametrize("fields, scale, offset, unit", [
    ("reflectance scale factor = 10000\ndata units = reflectance\n", 1e-4, 0, "reflectance"),
    ("data reflectance gain values = {0.5, 0.5, 0.5}\ndata reflectance offset values = {-1, -1, -1}\n", 0.5, -1, None),
    ("data gain values = {0.25, 0.25, 0.25}\nreflectance scale factor = 10000\n", 0.25, 0, None), ("", 1, 0, None)])
def test_scales_of_headers(tmp_path, out, fields, scale, offset, unit):
    """Scales apply, from any source."""
    scene = write_scene(tmp_path / "s.img", cube(bands=3), dtype="i2")
    with open(tmp_path / "s.hdr", "a", encoding="utf-8") as header:
        header.write(fields)
    succeed(run("gdal_hsi_pipeline", "-q", f"read {scene} ! write {out / 'copy.tif'} -stac {out / 'copy.json'}"))
    asset = judge(out / "copy.json")["assets"]["data"]
    assert (asset["raster:scale"], asset["raster:offset"], asset.get("unit")) == (scale, offset, unit)


@pytest.mark.parametrize("broken, expected", [
    ({"scale": math.nan}, {"raster:scale", "raster:offset"}), ({"offset": -math.inf}, {"raster:scale", "raster:offset"}),
    ({"wavelength": 1e308}, {"eo:center_wavelength"}), ({"place": math.nan}, {"proj:transform", "proj:bbox"}),
    ({"place": math.inf}, {"proj:transform", "proj:bbox"})])
def test_numbers_that_are_none(tmp_path, out, broken, expected):
    """JSON has no NaN and no infinity: such values are omitted, and all other values are stated."""
    scene = write_scene(tmp_path / "scene.tif", cube(bands=2), driver="GTiff", wavelengths=[500, broken.get("wavelength", 600)],
                        geotransform=(broken.get("place", 500000), 20, 0, 4480000, 0, -20))
    dataset = gdal.Open(str(scene), gdal.GA_Update)
    dataset.GetRasterBand(2).SetScale(broken.get("scale", 2))
    dataset.GetRasterBand(2).SetOffset(broken.get("offset", 3))
    dataset = None
    succeed(run("gdal_hsi_spp", "-q", "-device", "cpu", "-stac", out / "y.json", scene, out / "y.tif"))
    item = judge(out / "y.json")
    data = item["assets"]["data"]
    told = set(data) | set(data["bands"][1])
    assert told & expected == set()
    assert {"raster:scale", "raster:offset", "eo:center_wavelength", "proj:transform", "proj:bbox"} - told == expected
    assert (item["geometry"] is None) == ("place" in broken) and data["bands"][0]["eo:center_wavelength"] == 0.5


@pytest.mark.parametrize("name, media, more", [
    ("y.tif", "image/tiff; application=geotiff", ()), ("y.dat", "application/octet-stream", ("-of", "ENVI")),
    ("y.vrt", "application/xml", ()), ("y.hsi", "application/json", ()),
    ("y.cog", "image/tiff; application=geotiff; profile=cloud-optimized", ("-of", "COG")),
    ("y.nc", "application/netcdf", ())])
def test_formats(spectrometer, out, name, media, more):
    """The item is complete for any format, and for virtual outputs."""
    driver = {"nc": "netCDF", "cog": "COG"}.get(name[2:])
    if driver and gdal.GetDriverByName(driver) is None:
        pytest.skip(f"GDAL has no {driver} here")
    succeed(run("gdal_hsi_pca", "-q", "-nc", 2, *more, "-stac", out / "item.json", spectrometer, out / name))
    item = judge(out / "item.json")
    assert item["assets"]["data"]["type"] == media and item["assets"]["data"]["href"] == "./" + name
    assert [b["name"] for b in item["assets"]["data"]["bands"]] == ["PC1", "PC2"]
    assert item["properties"]["datetime"] == "2022-08-28T05:19:16.5Z"
    assert item["assets"]["data"]["proj:transform"] == [20, 0, 500000, 0, -20, 4480000]
    assert ("header" in item["assets"]) == (name == "y.dat")
    if name == "y.dat":
        assert (out / item["assets"]["header"]["href"]).is_file()


def test_no_georeference(tmp_path, out):
    """A missing position is stated as the specification requires; the shape of the raster is known anyway."""
    scene = write_scene(tmp_path / "scene.img", cube(bands=3), geotransform=None, epsg=None)
    succeed(run("gdal_hsi_spp", "-q", "-device", "cpu", "-stac", out / "y.json", scene, out / "y.tif"))
    item = judge(out / "y.json")
    data = item["assets"]["data"]
    assert item["geometry"] is None and item["properties"]["proj:code"] is None
    assert data["proj:shape"] == [30, 40] and "proj:wkt2" not in data and "proj:transform" not in data


@pytest.mark.parametrize("geotransform, epsg", [
    ((560000, 4000, 0, 7600000, 0, -4000), 32660),  # UTM 60N, beyond longitude 180 at its eastern end
    ((179.5, 0.05, 0, 10, 0, -0.05), 4326), ((-180.5, 0.05, 0, 10, 0, -0.05), 4326)])
def test_across_longitude_180(tmp_path, out, geotransform, epsg):
    """Two polygons, cut at 180 degrees, and a box whose west is greater than its east."""
    scene = write_scene(tmp_path / "scene.tif", cube(bands=2), driver="GTiff", geotransform=geotransform, epsg=epsg)
    succeed(run("gdal_hsi_spp", "-q", "-device", "cpu", "-stac", out / "y.json", scene, out / "y.tif"))
    item = judge(out / "y.json")
    assert item["geometry"]["type"] == "MultiPolygon"
    rings = rings_of(item)
    assert len(rings) == 2 and {float(np.abs(ring[:, 0]).max()) for ring in rings} == {180.0}
    points = in_wgs84(corners(geotransform, 40, 30), epsg)
    longitudes = points[:, 0] % 360
    west, south, east, north = item["bbox"]
    assert west == pytest.approx(longitudes.min(), abs=0.2) and east + 360 == pytest.approx(longitudes.max(), abs=0.2)
    assert south <= points[:, 1].min() + 1e-8 and north >= points[:, 1].max() - 1e-8


def test_around_a_pole(tmp_path, out):
    """The pole is in the scene, so it is the northernmost point."""
    scene = write_scene(tmp_path / "scene.tif", cube(samples=40, lines=40, bands=2), driver="GTiff",
                        geotransform=(-400000, 20000, 0, 400000, 0, -20000), epsg=3413)
    succeed(run("gdal_hsi_spp", "-q", "-device", "cpu", "-stac", out / "y.json", scene, out / "y.tif"))
    item = judge(out / "y.json")
    assert item["bbox"][0] == -180 and item["bbox"][2:] == [180, 90]
    assert 84 < item["bbox"][1] < 88
    assert 360 * 3 < sum(map(area, rings_of(item))) < 360 * 5.5  # all longitudes, from the border up to the pole


def test_control_points(tmp_path, out):
    """A scene with control points has their position."""
    scene = write_scene(tmp_path / "scene.tif", cube(bands=2), driver="GTiff", geotransform=None, epsg=None)
    dataset = gdal.Open(str(scene), gdal.GA_Update)
    srs = osr.SpatialReference()
    srs.ImportFromEPSG(4326)
    at = [(13 + x / 400 - y / 800, 52 - y / 400 - x / 900) for x, y in ((0, 0), (40, 0), (40, 30), (0, 30))]
    dataset.SetGCPs([gdal.GCP(lon, lat, 0, x, y) for (lon, lat), (x, y) in zip(at, ((0, 0), (40, 0), (40, 30), (0, 30)))], srs.ExportToWkt())
    dataset = None
    succeed(run("gdal_hsi_spp", "-q", "-device", "cpu", "-stac", out / "y.json", scene, out / "y.tif"))
    item = judge(out / "y.json")
    assert np.allclose(item["bbox"], [*np.min(at, 0), *np.max(at, 0)], rtol=0, atol=1e-7)
    assert item["properties"]["proj:code"] is None


@pytest.mark.parametrize("given, expected", [
    ("2022-08-28T05:19:16Z", "2022-08-28T05:19:16Z"), ("2022-08-28 07:19:16.25+02:00", "2022-08-28T05:19:16.25Z"),
    ("2022-01-01T01:00-0330", "2022-01-01T04:30:00Z"), ("2024-02-29T00:00:00", "2024-02-29T00:00:00Z"),
    ("2022-08-28", ("2022-08-28T00:00:00Z", "2022-08-28T23:59:59Z")),
    ("2022-08-28/2022-08-30T12:00Z", ("2022-08-28T00:00:00Z", "2022-08-30T12:00:00Z"))])
def test_time_that_is_given(spectrometer, out, given, expected):
    """It has priority over the metadata, and is always in UTC."""
    succeed(run("gdal_hsi_pca", "-q", "-nc", 1, "-stac", out / "y.json", "-stac-datetime", given, spectrometer, out / "y.tif"))
    properties = judge(out / "y.json")["properties"]
    if isinstance(expected, str):
        assert properties["datetime"] == expected and "start_datetime" not in properties
    else:
        assert (properties["datetime"], properties["start_datetime"], properties["end_datetime"]) == (None, *expected)


@pytest.mark.parametrize("metadata, expected", [
    ({"time_coverage_start": "2022-08-28T05:19:16+0000", "time_coverage_end": "2022-08-28T05:19:28+0000"},
     (None, "2022-08-28T05:19:16Z", "2022-08-28T05:19:28Z")),
    ({"NC_GLOBAL#time_coverage_start": "2022-08-28T05:19:16Z"}, ("2022-08-28T05:19:16Z", None, None)),
    ({"Product_StartTime": "2020-07-01T10:12:33.125", "Product_StopTime": "2020-07-01T10:12:37.5"},
     (None, "2020-07-01T10:12:33.125Z", "2020-07-01T10:12:37.5Z")),
    ({"ACQUISITIONDATETIME": "2013-07-10 09:00:00"}, ("2013-07-10T09:00:00Z", None, None))])
def test_time_of_metadata(tmp_path, out, metadata, expected):
    """In the forms of agencies' products."""
    scene = write_scene(tmp_path / "scene.tif", cube(bands=3), driver="GTiff")
    dataset = gdal.Open(str(scene), gdal.GA_Update)
    for key, value in metadata.items():
        dataset.SetMetadataItem(key, value)
    dataset = None
    succeed(run("gdal_hsi_spp", "-q", "-device", "cpu", "-stac", out / "y.json", scene, out / "y.tif"))
    properties = judge(out / "y.json")["properties"]
    assert tuple(properties.get(k) for k in ("datetime", "start_datetime", "end_datetime")) == expected


@pytest.mark.parametrize("product, start, end", [
    ("emit", "2022-08-28T05:19:16Z", "2022-08-28T05:19:28Z"), ("prisma", "2020-07-01T10:12:33.125Z", "2020-07-01T10:12:37.5Z"),
    ("pace", "2024-05-01T17:13:53.000Z", "2024-05-01T17:18:52.999Z"), ("enmap", "2022-06-17T10:34:24.123456Z", "2022-06-17T10:34:28.5Z"),
    ("desis", "2018-10-01T12:00:01.5Z", "2018-10-01T12:00:09Z")])
def test_time_of_products(tmp_path, out, product, start, end):
    """Times of the files themselves, for which GDAL has no items; a result made from a result keeps the time."""
    values = np.random.default_rng(1).uniform(500, 9000, (8, 20, 16)).round()
    scene = getattr(product_files, product)(tmp_path, values)
    succeed(run("gdal_hsi_spp", "-q", "-device", "cpu", "-stac", out / "y.json", scene, out / "y.tif"))
    succeed(run("gdal_hsi_pca", "-q", "-device", "cpu", "-nc", 2, "-stac", out / "p.json", out / "y.tif", out / "p.tif"))
    for name in "y.json", "p.json":
        properties = judge(out / name)["properties"]
        assert (properties["start_datetime"], properties["end_datetime"]) == (start, end), name


def test_time_that_nobody_knows(tmp_path, out):
    """The item then states any time until now, with a warning: the time of writing is not the time of acquisition."""
    scene = write_scene(tmp_path / "scene.tif", cube(bands=3), driver="GTiff", metadata={"TIFFTAG_DATETIME": "2001:02:03 04:05:06"})
    before = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    result = succeed(run("gdal_hsi_spp", "-q", "-device", "cpu", "-stac", out / "y.json", scene, out / "y.tif"))
    assert "acquisition time" in result.err and "-stac-datetime" in result.err
    properties = judge(out / "y.json")["properties"]
    assert properties["datetime"] is None and properties["start_datetime"] == "1970-01-01T00:00:00Z"
    assert before <= properties["end_datetime"] <= datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.mark.parametrize("time", ["yesterday", "2022-13-01", "2022-02-30", "2022-08-28T25:00Z", "2022-08-28T05:19:16+99:00",
                                  "2022-08-30/2022-08-28", "2022-08-28T05:19:16Zx", "/", "", "2022-+8-28", "0001-01-01", "2022-08-28T05:19:1",
                                  "2022-08-28T05:19:77Z", "2022-8-28", "2022-08-28T05:19:16+", "2022-08-28Z1"])
def test_no_time(spectrometer, out, time):
    with assert_untouched(out):
        result = run("gdal_hsi_spp", "-device", "cpu", "-stac", out / "y.json", "-stac-datetime", time or " ", spectrometer, out / "y.tif")
        assert result.code == 2 and "-stac-datetime" in first_error(result)


def test_orthorectified(tmp_path, out):
    """The position is that of the output, not of the input."""
    scene = write_scene(tmp_path / "scene.tif", cube(bands=2), driver="GTiff", geotransform=None, epsg=None)
    sample, line = np.meshgrid(np.arange(1, 41), np.arange(1, 31))
    glt = write_scene(tmp_path / "glt.tif", np.stack([sample, line]), driver="GTiff", dtype="i4", geotransform=(13, 0.01, 0, 52, 0, -0.01),
                      epsg=4326)
    succeed(run("gdal_hsi_orthorectify", "-q", "-glt", glt, "-stac", out / "y.json", scene, out / "y.tif"))
    item = judge(out / "y.json")
    assert item["bbox"] == pytest.approx([13, 51.7, 13.4, 52], abs=1e-8) and item["properties"]["proj:code"] == "EPSG:4326"


def test_arrays_of_places(tmp_path, out):
    """A scene in sensor geometry has the position in its arrays of longitudes and latitudes, and so has a part of
    it."""
    lines, samples = 20, 24
    y, x = np.mgrid[0:lines, 0:samples]
    longitude, latitude = 13 + 0.001 * x - 0.0004 * y, 52 - 0.001 * y - 0.0004 * x
    data = cube(samples=samples, lines=lines, bands=3)
    for name, values in (("lon", longitude), ("lat", latitude)):
        write_scene(tmp_path / f"{name}.tif", values[None], driver="GTiff", dtype="f8", geotransform=None, epsg=None)
    scene = write_scene(tmp_path / "scene.tif", data, driver="GTiff", geotransform=None, epsg=None)
    dataset = gdal.Open(str(scene), gdal.GA_Update)
    srs = osr.SpatialReference()
    srs.ImportFromEPSG(4326)
    dataset.SetMetadata({"SRS": srs.ExportToWkt(), "X_DATASET": str(tmp_path / "lon.tif"), "X_BAND": "1",
                         "Y_DATASET": str(tmp_path / "lat.tif"), "Y_BAND": "1", "PIXEL_OFFSET": "0", "LINE_OFFSET": "0",
                         "PIXEL_STEP": "1", "LINE_STEP": "1", "GEOREFERENCING_CONVENTION": "PIXEL_CENTER"}, "GEOLOCATION")
    dataset = None
    succeed(run("gdal_hsi_spp", "-q", "-device", "cpu", "-stac", out / "y.json", "-srcwin", 2, 3, 20, 15, scene, out / "y.tif"))
    item = judge(out / "y.json")
    inner = (slice(3, 18), slice(2, 22))
    assert np.allclose(item["bbox"], [longitude[inner].min(), latitude[inner].min(), longitude[inner].max(), latitude[inner].max()], atol=1e-8)


@pytest.mark.parametrize("folder, name", [
    ("data 1", "50% #1"), ("data", "a:b"), ("data", "http:x"), ("data", "-dash"), ("data", "new\nline"), ("data", "quo'te\"s"),
    ("data", "[a](b){c}&?*"), ("data", "<x>&amp;"), ("data", "back\\slash"), ("data", "a,b;c=d"), ("data", " lead trail "),
    ("data", "%25%2F"), ("data", "~^`|"), ("dätä", "größe"), ("?d#", "y")])
@pytest.mark.parametrize("place", [".", "items"])
def test_names_of_files(spectrometer, out, folder, name, place):
    """The URI that a reader makes of the item's own and of the reference leads to the file."""
    (out / "items").mkdir()
    raster = out / folder / (name + ".tif")
    raster.parent.mkdir()
    path = raster.parent / place / "y.json" if place == "." else out / place / "y.json"
    succeed(run("gdal_hsi_spp", "-q", "-device", "cpu", "-stac", path, spectrometer, raster))
    item = judge(path)
    href = item["assets"]["data"]["href"]
    parts = urllib.parse.urlsplit(urllib.parse.urljoin(path.resolve().as_uri(), href))
    assert (parts.scheme, parts.query, parts.fragment) == ("file", "", ""), href
    assert os.path.samefile(urllib.parse.unquote(parts.path), raster), href
    assert item["id"] == name


def test_name_that_is_no_text(spectrometer, out):
    """A file name consists of bytes: bytes that are not UTF-8 are encoded as in a URI."""
    raster = os.fsencode(out) + b"/b\xe4ume.tif"
    succeed(run("gdal_hsi_spp", "-q", "-device", "cpu", "-stac", out / "y.json", spectrometer, os.fsdecode(raster)))
    href = judge(out / "y.json")["assets"]["data"]["href"]
    assert href == "./b%E4ume.tif" and os.path.exists(os.fsencode(out) + b"/" + urllib.parse.unquote_to_bytes(href))


def test_written_with_the_outputs_or_not_at_all(spectrometer, out):
    """An existing item stops the run before its work, as dst does. -overwrite replaces both; a run that fails leaves
    neither."""
    stac = ("-stac", out / "y.json")
    (out / "y.json").write_text("mine")
    with assert_untouched(out):
        result = run("gdal_hsi_spp", "-device", "cpu", *stac, spectrometer, out / "y.tif")
        assert result.code == 1 and "y.json' already exists" in first_error(result)
    succeed(run("gdal_hsi_spp", "-q", "-device", "cpu", "-overwrite", *stac, spectrometer, out / "y.tif"))
    judge(out / "y.json")
    with assert_untouched(out):
        assert run("gdal_hsi_spp", "-device", "cpu", "-overwrite", "-ws", 63, *stac, spectrometer, out / "y.tif").code == 2
        succeed(run("gdal_hsi_spp", "-device", "cpu", "-overwrite", "-dry-run", *stac, spectrometer, out / "y.tif"))
    (out / "y.json").unlink()
    (out / "y.tif").unlink()
    with assert_untouched(out):
        result = run("gdal_hsi_spp", "-device", "cpu", "-stac", out / "nowhere" / "y.json", spectrometer, out / "y.tif")
        assert result.code == 1 and "nowhere" in first_error(result)


@pytest.mark.parametrize("arguments, word", [
    (("-stac", "{out}/y.tif", "{scene}", "{out}/y.tif"), "y.tif"), (("-stac", "{scene}", "{scene}", "{out}/y.tif"), "scene.img"),
    (("-stac", "{out}/a.json", "-report", "{out}/a.json", "{scene}", "{out}/y.tif"), "a.json"),
    (("-stac", "{out}/a.tif", "-alpha", "{out}/a.tif", "{scene}", "{out}/y.tif"), "a.tif"),
    (("-stac", "{out}/a.json", "{scene}", "/vsistdout/"), "-stac"), (("-stac-datetime", "2022-08-28", "{scene}", "{out}/y.tif"), "-stac")])
def test_places_that_are_taken(spectrometer, out, arguments, word):
    """Another output, an input, or not a file."""
    arguments = [a.format(out=out, scene=spectrometer) for a in arguments]
    with assert_untouched(out, spectrometer.parent):
        result = run("gdal_hsi_spp", "-device", "cpu", "-overwrite", *arguments)
        assert result.code == 2 and word in first_error(result)


def test_if_needed(spectrometer, out):
    """A run that has nothing to do keeps the item; if the item is missing or needs a change, the run works."""
    def made(*more):
        succeed(run("gdal_hsi_spp", "-q", "-device", "cpu", "-if-needed", "-overwrite", "-stac", out / "y.json", *more, spectrometer, out / "y.tif"))
        return (out / "y.json").stat().st_mtime_ns
    first = made()
    assert made() == first
    (out / "y.json").unlink()
    assert made() != first
    made("-stac-datetime", "2022-08-29")
    assert judge(out / "y.json")["properties"]["start_datetime"] == "2022-08-29T00:00:00Z"


def test_report_has_it(spectrometer, out):
    """Both are written; the item names the report, and the report the item."""
    succeed(run("gdal_hsi_spp", "-q", "-device", "cpu", "-stac", out / "y.json", "-report", out / "r.json", spectrometer, out / "y.tif"))
    item, report = judge(out / "y.json"), json.loads((out / "r.json").read_text())
    assert item["assets"]["report"] == {"href": "./r.json", "type": "application/json", "roles": ["metadata"]}
    assert report["options"]["stac"] == str(out / "y.json") and item["properties"]["processing:lineage"] == report["command"]


def test_pipeline(spectrometer, out):
    """write and tee have their own items; a step whose result is passed on has no file to describe."""
    succeed(run("gdal_hsi_pipeline", "-q", f"read {spectrometer} ! tee pca -nc 2 {out / 'p.tif'} -stac {out / 'p.json'} ! "
                                           f"spp -device cpu ! write {out / 'y.tif'} -stac {out / 'y.json'}"))
    assert len(judge(out / "p.json")["assets"]["data"]["bands"]) == 2
    item = judge(out / "y.json")
    assert len(item["assets"]["data"]["bands"]) == 6 and "gdal-hsi" in item["properties"]["processing:software"]
    with assert_untouched(out):
        result = run("gdal_hsi_pipeline", f"read {spectrometer} ! spp -stac {out / 'n.json'} ! write {out / 'n.tif'}")
        assert result.code == 2 and "-stac" in first_error(result)


def test_folds(tmp_path, out):
    """One item describes one raster."""
    scene = write_scene(tmp_path / "scene.tif", cube(bands=2), driver="GTiff")
    labels = write_scene(tmp_path / "labels.tif", 1 + (np.mgrid[0:30, 0:40][1:] > 20), driver="GTiff", dtype="u1")
    with assert_untouched(out):
        result = run("gdal_hsi_sample", "-folds", 3, "-stac", out / "y.json", labels, out / "train.tif", out / "test.tif")
        assert result.code == 2 and "-stac" in first_error(result)
    succeed(run("gdal_hsi_sample", "-q", "-n", 20, "-stac", out / "y.json", labels, out / "train.tif", out / "test.tif"))
    assert judge(out / "y.json")["assets"]["dst_test"]["href"] == "./test.tif"


@pytest.mark.parametrize("tool, options", [("gdal_hsi_eadp", ("-nc", 2)), ("gdal_hsi_mnf", ("-nc", 2)), ("gdal_hsi_cluster", ("-k", 3)),
                                           ("gdal_hsi_quicklook", ()), ("gdal_hsi_profile", ("-nc", 2))])
def test_tools(spectrometer, out, tool, options):
    """All tools that write rasters share the option."""
    succeed(run(tool, "-q", *options, "-stac", out / "y.json", spectrometer, out / "y.tif"))
    item, dataset = judge(out / "y.json"), gdal.Open(str(out / "y.tif"))
    assert item["assets"]["data"]["proj:shape"] == [dataset.RasterYSize, dataset.RasterXSize]
    assert len(item["assets"]["data"]["bands"]) == dataset.RasterCount
    assert item["assets"]["data"]["data_type"] == {"Byte": "uint8"}.get(
        gdal.GetDataTypeName(dataset.GetRasterBand(1).DataType), gdal.GetDataTypeName(dataset.GetRasterBand(1).DataType).lower())
    made = succeed(run("gdal_hsi_synth", "-q", "-size", 20, 10, 5, "-stac", out / "s.json", out / "s.dat"))
    assert "acquisition time" in made.err and judge(out / "s.json")["assets"]["data"]["proj:shape"] == [10, 20]


@pytest.mark.parametrize("geotransform, epsg", [((500000, 20, 0, 4480000, 0, -20), 4978), ((13, 1e-14, 0, 52, 0, -1e-14), 4326)])
def test_no_area(tmp_path, out, geotransform, epsg):
    """Coordinates in outer space or a single point cannot be mapped."""
    scene = write_scene(tmp_path / "scene.tif", cube(bands=2), driver="GTiff", geotransform=geotransform, epsg=epsg)
    succeed(run("gdal_hsi_spp", "-q", "-device", "cpu", "-stac", out / "y.json", scene, out / "y.tif"))
    item = judge(out / "y.json")
    assert item["geometry"] is None and item["properties"]["proj:code"] == f"EPSG:{epsg}"


def test_beside_the_equator_and_the_pole(tmp_path, out):
    """To the last digit: no latitude above 90, and no -0."""
    scene = write_scene(tmp_path / "scene.tif", cube(bands=2), driver="GTiff", geotransform=(-1e-12, 1, 0, 90 + 9e-10, 0, -3 - 4e-11), epsg=4326)
    succeed(run("gdal_hsi_spp", "-q", "-device", "cpu", "-stac", out / "y.json", scene, out / "y.tif"))
    assert judge(out / "y.json")["bbox"] == [0, 0, 40, 90] and "-0.0" not in (out / "y.json").read_text()


def test_the_moon(tmp_path, out):
    """A position on another body has no position on the Earth."""
    scene = write_scene(tmp_path / "scene.tif", cube(bands=2), driver="GTiff", geotransform=(10, 0.01, 0, 5, 0, -0.01), epsg=None)
    dataset = gdal.Open(str(scene), gdal.GA_Update)
    dataset.SetProjection('GEOGCS["Moon 2000",DATUM["D_Moon_2000",SPHEROID["Moon_2000_IAU_IAG",1737400,0]],PRIMEM["Reference_Meridian",0],'
                          'UNIT["degree",0.0174532925199433]]')
    dataset = None
    succeed(run("gdal_hsi_spp", "-q", "-device", "cpu", "-stac", out / "y.json", scene, out / "y.tif"))
    item = judge(out / "y.json")
    assert item["geometry"] is None and "Moon" in item["assets"]["data"]["proj:wkt2"]
