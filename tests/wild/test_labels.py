# SPDX-License-Identifier: MIT
"""Labels of other programs: numbers written as texts, rasters of every type, layers with unusual geometries."""
import json


import numpy as np
import pytest
from conftest import first_error, refuse, run, succeed
from label_files import LINES, NAMES, PLACE, SAMPLES, centre, labels_on, points_of, truth, write_features, write_labels
from osgeo import gdal, ogr, osr
CLASS = [("class", ogr.OFTInteger)]
TEXT = [("class", ogr.OFTString)]


def values_at(got, places):
    return [None if np.isnan(got[p]) else int(got[p]) for p in places]


def sampled(folder, labels, *options):
    """Returns labels_on() for a run that fails."""
    write_labels(folder / "like.tif", np.zeros((LINES, SAMPLES)))
    return run("gdal_hsi_sample", "-fraction", 0.5, "-like", folder / "like.tif", *options, labels, folder / "train.tif",
               folder / "test.tif")


def features(folder, values, fields, driver="GPKG", name="v.gpkg"):
    """Returns points in the first line of pixels, two per value."""
    shapes = [(centre(line, s), value if isinstance(value, tuple) else (value,)) for s, value in enumerate(values) for line in (0, 1)]
    return write_features(folder / name, shapes, fields, driver)


@pytest.mark.parametrize("texts, want, note", [
    (["1", "2", "10"], [1, 2, 10], None),
    (["1.0", "2.0", "+3"], [1, 2, 3], None),
    (["01", "1", "02"], [1, 1, 2], None),
    (["0", "1", " 2 "], [0, 1, 2], "0 is read as a class, since 2 features have it"),
    (["-1", "1", "2"], [None, 1, 2], "2 features have negative values (the lowest is -1)"),
    (["10", "2", "corn"], [1, 2, 3], "4 of 6 class texts are numbers and the others are not"),
    (["corn", "", "  "], [1, None, None], "4 features have no class and are left out"),
    (["corn", "Corn", "beet"], [3, 1, 2], None),
    (["1000001", "1000002", "7"], [1, 2, 3], "2 of 6 class texts are numbers"),
    (["1.5", "2.5", "2.5"], [1, 2, 2], None),
])
def test_texts_as_classes(tmp_path, texts, want, note):
    got, said = labels_on(tmp_path, features(tmp_path, texts, TEXT))
    assert values_at(got, [(0, s) for s in range(3)]) == want
    assert (note in said) if note else "Warning" not in said, said


@pytest.mark.parametrize("kind, values, want", [
    (ogr.OFTReal, [1.0, 2.0, None], [1, 2, None]), (ogr.OFTInteger64, [1, 65535, 7], [1, 65535, 7]),
    (ogr.OFTReal, [1.0, float("nan"), 3.0], [1, None, 3])])
def test_numbers_as_classes(tmp_path, kind, values, want):
    got, said = labels_on(tmp_path, features(tmp_path, values, [("class", kind)]))
    assert values_at(got, [(0, s) for s in range(3)]) == want
    assert ("2 features have no class and are left out" in said) == (None in want)


@pytest.mark.parametrize("kind, value, words", [
    (ogr.OFTInteger, 65536, "65536 is not a class number (1 to 65535; 0: no label)"), (ogr.OFTReal, 1.5, "1.5 is not a class number"),
    (ogr.OFTString, "65536", "65536 is not a class number"), (ogr.OFTInteger64, 1 << 60, "is not a class number"),
    (ogr.OFTReal, 1e300, "is not a class number")])
def test_numbers_that_are_no_classes(tmp_path, kind, value, words):
    result = sampled(tmp_path, features(tmp_path, [value], [("class", kind)]))
    assert result.code == 1 and words in first_error(result) and not (tmp_path / "train.tif").exists()


def test_a_date_is_no_class(tmp_path):
    result = sampled(tmp_path, features(tmp_path, ["2024/05/01"], [("day", ogr.OFTDate)]), "-field", "day")
    assert result.code == 1 and "field 'day' does not have numbers or names" in first_error(result)


@pytest.mark.parametrize("kind, value", [(ogr.OFTStringList, ["wheat"]), (ogr.OFTIntegerList, [5]), (ogr.OFTRealList, [5.0]),
                                         (ogr.OFTInteger64List, [5])])
@pytest.mark.parametrize("args", [(), ("-field", "class")])
def test_a_list_is_no_class(tmp_path, kind, value, args):
    path = tmp_path / "list.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": [
        {"type": "Feature", "properties": {"class": [1 << 40] if kind == ogr.OFTInteger64List else value},
         "geometry": {"type": "Point", "coordinates": [1.5, 1.5]}}]}))
    result = sampled(tmp_path, path, *args)
    assert result.code == 1 and "field 'class' does not have numbers or names" in first_error(result), result.err
    assert not (tmp_path / "train.tif").exists()


def test_an_object_is_no_class(tmp_path):
    path = tmp_path / "object.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": [
        {"type": "Feature", "properties": {"class": value}, "geometry": {"type": "Point", "coordinates": [1.5, 1.5]}}
        for value in ({"name": "wheat"}, "corn")]}))
    result = sampled(tmp_path, path)
    assert result.code == 1 and "field 'class' has lists" in first_error(result), result.err


def test_names_that_two_classes_share_and_two_names_of_one(tmp_path):
    fields = [("class", ogr.OFTInteger), ("class_name", ogr.OFTString)]
    _, said = labels_on(tmp_path, features(tmp_path, [(1, "forest"), (3, "forest"), (3, "wood")], fields))
    assert "classes 1 and 3 are both called 'forest'" in said and "class 3 has 2 names; 'forest' is used" in said
    write_labels(tmp_path / "labels.tif", truth() + 1, names=["", "forest", "soil", "forest"])
    _, said = labels_on(tmp_path, tmp_path / "labels.tif")
    assert "labels.tif': classes 1 and 3 are both called 'forest'" in said
    said = succeed(run("gdal_hsi_accuracy", tmp_path / "labels.tif", tmp_path / "labels.tif")).err
    assert "classes 1 and 3 are both called 'forest': classes are matched by their numbers" in said


def test_names_in_latin_1(tmp_path):
    """Names are equal for all sources, and are written in UTF-8."""
    write_labels(tmp_path / "a.tif", truth() + 1, names=["", "Gr\u00fcnland", "W\u00e4lder", "H\u00e4user"])
    side = tmp_path / "a.tif.aux.xml"
    text = side.read_text()
    (tmp_path / "b.tif").write_bytes((tmp_path / "a.tif").read_bytes())
    (tmp_path / "b.tif.aux.xml").write_bytes(text.encode("latin-1"))
    assert "\u00fc".encode() in side.read_bytes() and b"\xfc" in (tmp_path / "b.tif.aux.xml").read_bytes()
    succeed(run("gdal_hsi_sample", tmp_path / "b.tif", tmp_path / "c.tif", tmp_path / "d.tif", "-report", tmp_path / "r.json"))
    assert "W\u00e4lder" in (tmp_path / "r.json").read_text(encoding="utf-8")
    out = succeed(run("gdal_hsi_accuracy", tmp_path / "b.tif", tmp_path / "a.tif")).out
    assert "2 W\u00e4lder" in out and "Overall accuracy (OA): 100.00" in out


RASTERS = {
    "Float32 and NaN": ("f4", float("nan"), lambda v: np.where(v == 0, np.nan, v)),
    "Float32, NaN undeclared": ("f4", None, lambda v: np.where(v == 0, np.nan, v)),
    "Int16 and -9999": ("i2", -9999, lambda v: np.where(v == 0, -9999, v)),
    "Int32 and its least": ("i4", -2147483648, lambda v: np.where(v == 0, -2147483648, v)),
    "Int64 and its least": ("i8", -9223372036854775808, lambda v: np.where(v == 0, np.iinfo("i8").min, v)),
    "Int64 and 0": ("i8", 0, lambda v: v),
    "Int64 and a class": ("i8", 2, lambda v: np.where(v == 0, 2, v + 2)),
}


@pytest.mark.quick
@pytest.mark.parametrize("case", RASTERS)
def test_rasters_of_every_type(tmp_path, case):
    dtype, nodata, make = RASTERS[case]
    labels = make(truth())
    write_labels(tmp_path / "labels.tif", labels, dtype, nodata=nodata)
    got, said = labels_on(tmp_path, tmp_path / "labels.tif")
    want = np.where(truth() == 0, np.nan, truth() + (2 if case == "Int64 and a class" else 0))
    assert np.array_equal(got, want, equal_nan=True) and "Warning" not in said, said


def test_undeclared_nodata_of_minus_one(tmp_path):
    write_labels(tmp_path / "labels.tif", np.where(truth() == 0, -1, truth()), "i2")
    got, said = labels_on(tmp_path, tmp_path / "labels.tif")
    assert np.array_equal(got, np.where(truth() == 0, np.nan, truth()), equal_nan=True)
    assert f"{(truth() == 0).sum()} pixels have negative values (the lowest is -1)" in said


def test_bands_beside_the_numbers(tmp_path):
    """An alpha band is a mask; any other second band is an error."""
    hidden = np.arange(SAMPLES) < 5
    planes = np.stack([truth() + 1, np.where(np.broadcast_to(hidden, (LINES, SAMPLES)), 0, 255)])
    write_labels(tmp_path / "alpha.tif", planes, options=["ALPHA=YES"])
    got, _ = labels_on(tmp_path, tmp_path / "alpha.tif")
    assert np.array_equal(got, np.where(hidden, np.nan, truth() + 1), equal_nan=True)
    write_labels(tmp_path / "two.tif", planes, options=["ALPHA=NO"])
    refuse(1, "two.tif' has 2 bands; a raster of labels must have one", "gdal_hsi_sample", tmp_path / "two.tif", tmp_path / "x.tif", tmp_path / "y.tif",
           untouched=[tmp_path])


@pytest.mark.parametrize("driver, name", [("PNG", "p.png"), ("GTiff", "p.tif")])
def test_palettes(tmp_path, driver, name):
    memory = gdal.GetDriverByName("MEM").Create("", SAMPLES, LINES, 1, gdal.GDT_Byte)
    memory.SetGeoTransform(PLACE)
    memory.GetRasterBand(1).WriteArray(truth())
    colours = gdal.ColorTable()
    for value, colour in enumerate([(0, 0, 0, 255), (10, 200, 30, 255), (200, 100, 0, 255)]):
        colours.SetColorEntry(value, colour)
    memory.GetRasterBand(1).SetColorTable(colours)
    gdal.GetDriverByName(driver).CreateCopy(str(tmp_path / name), memory)
    got, _ = labels_on(tmp_path, tmp_path / name)
    assert np.array_equal(got, np.where(truth() == 0, np.nan, truth()), equal_nan=True)
    table = gdal.Open(str(tmp_path / "train.tif"))
    assert table.GetRasterBand(1).GetColorTable().GetColorEntry(2) == (200, 100, 0, 255)


def box(left, top, right, bottom, z=""):
    """Returns a polygon over pixels, as coordinates."""
    corners = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]
    return "((" + ", ".join(f"{PLACE[0] + 30 * x} {PLACE[3] - 30 * y}{z}" for x, y in corners) + "))"


def test_heights_and_measures(tmp_path):
    """Z and M have no effect on positions."""
    shapes = [("POLYGON Z " + box(1, 1, 4, 4, " 7"), (1,)), ("POLYGON M " + box(5, 1, 8, 4, " 7"), (2,)),
              ("POLYGON ZM " + box(9, 1, 12, 4, " 7 8"), (3,)),
              (centre(10, 3).replace("POINT", "POINT ZM").replace(")", " 1 2)"), (4,)),
              ("GEOMETRYCOLLECTION (" + centre(12, 3) + ", POLYGON " + box(1, 14, 3, 16) + ")", (5,))]
    got, _ = labels_on(tmp_path, write_features(tmp_path / "v.gpkg", shapes, CLASS))
    want = np.full((LINES, SAMPLES), np.nan)
    want[1:4, 1:4], want[1:4, 5:8], want[1:4, 9:12], want[10, 3], want[12, 3], want[14:16, 1:3] = 1, 2, 3, 4, 5, 5
    assert np.array_equal(got, want, equal_nan=True)


def test_features_of_several_classes_in_one_pixel(tmp_path):
    shapes = [("POLYGON " + box(1, 1, 6, 6), (1,)), ("POLYGON " + box(4, 2, 9, 5), (2,)), ("POLYGON " + box(1, 1, 3, 3), (1,)),
              (centre(8, 8), (1,)), (centre(8, 8), (3,))]
    got, said = labels_on(tmp_path, write_features(tmp_path / "v.gpkg", shapes, CLASS))
    assert (got[2:5, 4:9] == 2).all() and got[8, 8] == 3
    assert f"at least {2 * 3 + 1} pixels have features of several classes; the last feature sets the class" in said
    _, said = labels_on(tmp_path, write_features(tmp_path / "w.gpkg", shapes[:1] + shapes[2:4], CLASS))
    assert "several classes" not in said


def test_features_too_small_for_a_pixel(tmp_path):
    """Without area, between pixel centres, or thinner than a pixel."""
    shapes = [("POLYGON " + box(1, 1, 6, 6), (1,)), ("POLYGON " + box(10.6, 3.6, 11.4, 4.4), (2,)),
              ("POLYGON " + box(10, 8, 15, 8), (2,)), ("POLYGON " + box(10, 9.6, 15, 10.4), (2,)),
              ("POLYGON " + box(-3, 9.6, 0.2, 10.4), (2,)), (centre(15, 3), (4,))]
    got, said = labels_on(tmp_path, write_features(tmp_path / "v.gpkg", shapes, CLASS))
    assert "3 features cover no pixel centre and label no pixel (-all-touched labels every touched pixel)" in said
    assert set(np.unique(got[np.isfinite(got)])) == {1, 4}
    got, said = labels_on(tmp_path, tmp_path / "v.gpkg", "-all-touched")
    assert (got == 2).sum() > 8 and "centre" not in said


def test_several_geometries_a_feature(tmp_path):
    (tmp_path / "two.csv").write_text("first,second,class\n" + "".join(
        f'"{centre(i, 2)}","{centre(i, 9)}",{1 + i % 2}\n' for i in range(6)))
    (tmp_path / "two.vrt").write_text(
        '<OGRVRTDataSource><OGRVRTLayer name="two"><SrcDataSource relativeToVRT="1">two.csv</SrcDataSource>'
        '<GeometryField name="first" encoding="WKT" field="first"/><GeometryField name="second" encoding="WKT" field="second"/>'
        '<Field name="class" type="Integer"/></OGRVRTLayer></OGRVRTDataSource>')
    got, said = labels_on(tmp_path, tmp_path / "two.vrt")
    assert "features have several geometries; only the first, first, is used" in said
    assert np.isfinite(got).sum() == 6 and np.isfinite(got[:6, 2]).all()


def test_a_layer_by_its_name(tmp_path):
    write_features(tmp_path / "v.gpkg", points_of(truth() + 1), CLASS)
    dataset = ogr.Open(str(tmp_path / "v.gpkg"), 1)
    dataset.CopyLayer(dataset.GetLayer(0), "other")
    dataset.ExecuteSQL("UPDATE other SET class = class + 10")
    dataset = None
    got, said = labels_on(tmp_path, tmp_path / "v.gpkg", "-layer", "other")
    assert np.array_equal(got, truth() + 11) and "Warning" not in said
    result = sampled(tmp_path / ".", tmp_path / "v.gpkg", "-layer", "absent", "-overwrite")
    assert result.code == 1 and "has no layer 'absent'" in first_error(result) and "shapes, other" in result.err


def test_names_travel_from_a_shapefile(tmp_path):
    """Fields of ten letters, with names in the file's encoding."""
    fields = [("class_id", ogr.OFTInteger), ("class_name", ogr.OFTString)]
    shapes = points_of(truth(), lambda v: (int(v) + 1, NAMES[v] + " \u00fc"))
    write_features(tmp_path / "v.shp", shapes, fields, "ESRI Shapefile")
    got, _ = labels_on(tmp_path, tmp_path / "v.shp")
    assert np.array_equal(got, truth() + 1)
    train = gdal.Open(str(tmp_path / "train.tif"))
    assert train.GetMetadata() and train.GetRasterBand(1).GetCategoryNames()[1:] == [n + " \u00fc" for n in NAMES]


# --- longitudes from -180 to 180, and from 0 to 360

def degrees(folder, west, east):
    """Returns a grid that begins at one longitude, and labels at the same position with another longitude."""
    like = gdal.GetDriverByName("GTiff").Create(str(folder / "like.tif"), SAMPLES, LINES)
    like.SetGeoTransform((west, 0.25, 0, 40, 0, -0.25))
    srs = osr.SpatialReference()
    srs.ImportFromEPSG(4326)
    like.SetProjection(srs.ExportToWkt())
    del like
    return (east, 0.25, 0, 40, 0, -0.25), srs


@pytest.mark.parametrize("west, east", [(190, -170), (-170, 190), (178, -182), (100, 100), (-185, 175)])
@pytest.mark.parametrize("driver, suffix", [("GPKG", "gpkg"), ("GeoJSON", "geojson"), ("GTiff", "tif")])
def test_longitudes_of_either_count(tmp_path, west, east, driver, suffix):
    place, srs = degrees(tmp_path, west, east)
    labels = truth(4)
    path = tmp_path / f"labels.{suffix}"
    if driver == "GTiff":
        made = gdal.GetDriverByName(driver).Create(str(path), SAMPLES, LINES)
        made.SetGeoTransform(place)
        made.SetProjection(srs.ExportToWkt())
        made.GetRasterBand(1).WriteArray(labels.astype("u1"))
        del made
    else:
        def corner(i, j):
            return f"{place[0] + 0.25 * j} {place[3] - 0.25 * i}"
        shapes = [(f"POLYGON (({corner(i, j)}, {corner(i, j + 1)}, {corner(i + 1, j + 1)}, {corner(i + 1, j)}, {corner(i, j)}))",
                   (int(labels[i, j]),)) for i in range(LINES) for j in range(SAMPLES) if labels[i, j]]
        write_features(path, shapes, CLASS, driver, "EPSG:4326")
    got, _ = labels_on(tmp_path, path)
    np.testing.assert_array_equal(np.nan_to_num(got), labels)


def test_a_scene_whose_srs_stands_for_none(tmp_path):
    """ENVI headers always have an SRS, "Arbitrary" without one: it equals the missing SRS of a TIFF."""
    random = np.random.default_rng(3)
    dataset = gdal.GetDriverByName("GTiff").Create(str(tmp_path / "s.tif"), SAMPLES, LINES, 4, gdal.GDT_Float32)
    dataset.SetGeoTransform(PLACE)
    dataset.WriteArray(random.random((4, LINES, SAMPLES)).astype("f4"))
    dataset = None
    write_labels(tmp_path / "l.tif", truth())
    found = []
    for name in "p.tif", "p.dat":
        succeed(run("gdal_hsi_pca", "-q", "-nc", 3, tmp_path / "s.tif", tmp_path / name))
        result = succeed(run("gdal_hsi_svm_train", "-C", 1, "-gamma", 1, tmp_path / name, tmp_path / "l.tif", tmp_path / f"{name}.json"))
        assert "the scene has no SRS: the SRS of the other file is assumed" in result.err, result.err
        found.append(json.loads((tmp_path / f"{name}.json").read_text())["classes"])
    assert found[0] == found[1]


def test_a_local_srs_leads_nowhere(tmp_path):
    """PROJ's message would contain pages of WKT."""
    local = osr.SpatialReference()
    local.SetLocalCS("Site grid")
    dataset = gdal.GetDriverByName("GTiff").Create(str(tmp_path / "s.tif"), SAMPLES, LINES, 4, gdal.GDT_Float32)
    dataset.SetGeoTransform(PLACE)
    dataset.SetSpatialRef(local)
    dataset.WriteArray(np.random.default_rng(3).random((4, LINES, SAMPLES)).astype("f4"))
    dataset = None
    write_labels(tmp_path / "l.tif", truth())
    result = run("gdal_hsi_svm_train", "-q", tmp_path / "s.tif", tmp_path / "l.tif", tmp_path / "m.json")
    error = first_error(result)
    assert result.code == 1 and "cannot be transformed from the SRS" in error and "the local 'Site grid'" in error and len(error) < 300, error
