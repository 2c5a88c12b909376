# SPDX-License-Identifier: MIT
"""Labelled points in tables, labels in pixel coordinates, and points that our own tools wrote."""
import json

import numpy as np
import pytest
from conftest import assert_untouched, first_error, refuse, run, succeed, write_utm_scene as write_scene
from label_files import (LINES, PLACE, SAMPLES, labels_on, points_of, scene_of, truth, write_features, write_labels)
from osgeo import gdal, ogr, osr

CLASS = [("class", ogr.OFTInteger)]


def places(step=2):
    return [(i, j) for i in range(0, LINES, step) for j in range(0, SAMPLES, step)]


def labels():
    return truth() + 1


def wanted(step=2):
    want = np.full((LINES, SAMPLES), np.nan)
    for p in places(step):
        want[p] = labels()[p]
    return want


def on_map(line, sample):
    return PLACE[0] + 30 * (sample + 0.5), PLACE[3] - 30 * (line + 0.5)


def in_degrees(line, sample):
    utm, degrees = osr.SpatialReference(), osr.SpatialReference()
    utm.ImportFromEPSG(32633)
    degrees.ImportFromEPSG(4326)
    degrees.SetAxisMappingStrategy(osr.OAMS_TRADITIONAL_GIS_ORDER)
    lon, lat, _ = osr.CoordinateTransformation(utm, degrees).TransformPoint(*on_map(line, sample))
    return lon, lat


def table(path, head, where, separator=",", step=2, line="{x}{s}{y}{s}{v}", point="."):
    def text(v):
        return (f"{v:.10f}".rstrip("0").rstrip(".") if isinstance(v, float) else str(v)).replace(".", point)

    rows = [line.format(x=text(where(*p)[0]), y=text(where(*p)[1]), v=labels()[p], s=separator) for p in places(step)]
    path.write_text((head.replace(",", separator) + "\n" if head else "") + "\n".join(rows) + "\n", encoding="utf-8")
    return path


TABLES = {
    "x,y,class": ("p.csv", "x,y,class", on_map, {}),
    "capitals and quotes": ("p.csv", '"X","Y","Class"', on_map, {}),
    "easting and northing": ("p.csv", "Easting,Northing,class_id", on_map, {}),
    "units": ("p.csv", "x [m],y [m],label", on_map, {}),
    "semicolons": ("p.csv", "X,Y,class", on_map, {"separator": ";"}),
    "decimal commas": ("p.csv", "x,y,class", on_map, {"separator": ";", "point": ","}),
    "tabs": ("p.tsv", "x,y,class", on_map, {"separator": "\t"}),
    "tabs in a .txt": ("p.txt", "x,y,class", on_map, {"separator": "\t"}),
    "blanks": ("p.xyz", "x,y,class", on_map, {"separator": " "}),
    "numpy.savetxt": ("p.txt", "# x,y,class", on_map, {"separator": " "}),
    "a byte-order mark": ("p.csv", "\ufeffx,y,class", on_map, {}),
    "y first": ("p.csv", "y,x,class", lambda i, j: on_map(i, j)[::-1], {}),
    "other columns": ("p.csv", "id,x,y,z,class,remark", on_map, {"line": "7{s}{x}{s}{y}{s}12.5{s}{v}{s}a"}),
    "longitude and latitude": ("p.csv", "lon,lat,class", in_degrees, {}),
    "latitude first": ("p.csv", "Latitude,Longitude,class", lambda i, j: in_degrees(i, j)[::-1], {}),
    "degrees as x and y": ("p.csv", "x,y,class", in_degrees, {}),
    "samples and lines": ("p.csv", "sample,line,class", lambda i, j: (j, i), {}),
    "rows and columns": ("p.csv", "row,col,class", lambda i, j: (i, j), {}),
}


@pytest.mark.parametrize("regular", [True, False])
@pytest.mark.parametrize("case", TABLES)
def test_tables_of_points(tmp_path, case, regular):
    """Each point labels its pixel, both on a regular grid, which GDAL opens as a raster, and off it."""
    name, head, where, options = TABLES[case]
    path = table(tmp_path / name, head, where, **options)
    want = wanted()
    if not regular:
        lines = path.read_text(encoding="utf-8").splitlines()
        del lines[5]
        path.write_text("\n".join(lines), encoding="utf-8")
        want[places()[4]] = np.nan
    got, said = labels_on(tmp_path, path)
    assert np.array_equal(got, want, equal_nan=True), (np.isfinite(got).sum(), np.isfinite(want).sum())
    assert ("has no SRS: the SRS of the other file is assumed" in said) == (where in (on_map, TABLES["y first"][2]))
    assert ("its coordinates are read as longitudes and latitudes on WGS 84" in said) == (case == "degrees as x and y")


def test_tables_in_every_tool_that_reads_labels(tmp_path):
    write_scene(tmp_path / "scene.tif", scene_of(labels()), "GTiff", geotransform=PLACE, epsg=32633)
    path = table(tmp_path / "p.csv", "x,y,class", on_map)
    scene = tmp_path / "scene.tif"
    said = succeed(run("gdal_hsi_spectra", scene, path, tmp_path / "s.csv")).out
    assert f"3 spectra of {len(places())} labelled pixels" in said
    report = tmp_path / "r.json"
    succeed(run("gdal_hsi_svm_train", "-C", 1, "-gamma", 1, scene, path, tmp_path / "m.json", "-report", report))
    assert json.loads(report.read_text())["labelled_pixels"] == len(places())
    succeed(run("gdal_hsi_sahic", "-device", "cpu", "-iterations", 3, scene, path, tmp_path / "map.tif"))
    judged = json.loads(succeed(run("gdal_hsi_accuracy", "-json", tmp_path / "map.tif", path)).out)
    assert judged["pixels"] == len(places()) and judged["overall_accuracy"]["value"] > 0.9
    judged = json.loads(succeed(run("gdal_hsi_accuracy", "-json", "-mask", path, tmp_path / "map.tif", tmp_path / "map.tif")).out)
    assert judged["pixels"] == len(places())


def test_names_and_gaps_in_tables(tmp_path):
    """Names become classes; points without a position or a class are counted."""
    x, y = on_map(3, 4)
    path = tmp_path / "p.csv"
    path.write_text(f"x;y;class\n{x};{y};oats\n{x + 30};{y};\n;;corn\n{x + 60};{y};corn\nNA;{y};corn\n\n{x + 90};{y};oats\n"
                    f"{x + 120};{y};corn\n")
    got, said = labels_on(tmp_path, path)
    assert [got[3, s] for s in (4, 6, 7, 8)] == [2, 1, 2, 1] and np.isfinite(got).sum() == 4
    assert "1 feature has no class and is left out" in said and "2 features have no geometry and are left out" in said


BAD = {
    "no names": ("p.csv", "500015,5399985,1\n500045,5399985,2\n", "is a table, and its columns have no names"),
    "other names": ("p.csv", "a,b,class\n1,2,3\n", "no column has the positions of the points"),
    "other names in a text": ("p.txt", "a b class\n1 2 3\n", "no column has the positions of the points"),
    "half of them": ("p.csv", "lon,b,class\n1,2,3\n", "no column has the positions of the points"),
    "no number": ("p.csv", "x,y,class\n1,2,3\n1,here,3\n", "'here' in column y is not a coordinate"),
    "no angle": ("p.csv", "lon,lat,class\n500015,5399985,3\n", "are not longitude and latitude in degrees"),
    "lines of different lengths": ("p.csv", "x,y,class\n1,2,3\n1,2\n", "line 3 has 2 columns"),
    "nothing but names": ("p.csv", "x,y,class\n", "has no table"),
    "several columns of classes": ("p.csv", "x,y,a,b\n1,2,3,4\n", "the field with the classes is not known"),
    "a fraction": ("p.csv", "x,y,class\n500015,5399985,1.5\n", "1.5 is not a class number"),
}


@pytest.mark.parametrize("case", BAD)
def test_tables_that_cannot_be_read_say_why(tmp_path, case):
    name, text, words = BAD[case]
    (tmp_path / name).write_text(text)
    write_labels(tmp_path / "like.tif", np.zeros((LINES, SAMPLES)))
    with assert_untouched(tmp_path):
        result = run("gdal_hsi_sample", "-like", tmp_path / "like.tif", tmp_path / name, tmp_path / "a.tif", tmp_path / "b.tif")
    assert result.code == 1 and words in result.err, result.err
    if "table" in words or "no column has" in words:
        assert "name the columns x and y" in result.err or case == "nothing but names"


def test_a_grid_in_xyz_is_still_a_raster(tmp_path):
    """Without class names, and if it is not a sheet: each number fills a pixel of its own grid."""
    for name, head in (("g.xyz", ""), ("g.xyz", "x y z\n"), ("g.txt", "x y z\n")):
        (tmp_path / name).write_text(head + "".join(f"{on_map(i, j)[0]} {on_map(i, j)[1]} {labels()[i, j]}\n"
                                                    for i in range(LINES) for j in range(SAMPLES)))
        got, _ = labels_on(tmp_path, tmp_path / name)
        assert np.array_equal(got, labels()), (name, head)


def flat_scene(folder, name="flat.tif"):
    data = scene_of(labels())
    write_scene(folder / name, data, "GTiff", geotransform=None, epsg=None)
    return folder / name


def pixels_of(folder, scene, features, *options):
    """Returns the pixels that gdal_hsi_spectra treats as labelled: {(line, sample): class}."""
    result = succeed(run("gdal_hsi_spectra", "-overwrite", "-kind", "every", *options, scene, features, folder / "s.geojson"))
    found = [f["properties"] for f in json.loads((folder / "s.geojson").read_text())["features"]]
    return {(p["line"], p["sample"]): p["class"] for p in found}, result.out + result.err


SQUARES = [((2, 3), (6, 9), 1), ((10, 4), (12, 20), 2)]


def square(up, corner, opposite):
    (top, left), (bottom, right) = corner, opposite
    sign = -1 if up else 1
    return "POLYGON ((" + ", ".join(f"{x} {sign * y}" for x, y in ((left, top), (right, top), (right, bottom), (left, bottom), (left, top))) + "))"


def in_squares():
    return {(i, j): v for (top, left), (bottom, right), v in SQUARES for i in range(top, bottom) for j in range(left, right)}


@pytest.mark.parametrize("up", [False, True])
@pytest.mark.parametrize("driver, name", [("ESRI Shapefile", "v.shp"), ("GPKG", "v.gpkg"), ("GeoJSON", "v.geojson")])
def test_polygons_in_pixel_coordinates(tmp_path, driver, name, up):
    """Lines go downwards, or as QGIS draws a scene without georeference: from 0 to negative numbers."""
    shapes = [(square(up, a, b), (v,)) for a, b, v in SQUARES]
    path = write_features(tmp_path / name, shapes, CLASS, driver, srs=None)
    found, said = pixels_of(tmp_path, flat_scene(tmp_path), path)
    assert found == in_squares()
    assert "its coordinates are read as samples and lines of the scene" in said
    assert ("as in QGIS" in said) == up and "Warning" not in said
    _, quiet = pixels_of(tmp_path, tmp_path / "flat.tif", path, "-q")
    assert "are read as" not in quiet
    again, said = pixels_of(tmp_path, tmp_path / "flat.tif", path, "-pixel-coordinates")
    assert again == found and "are read as" not in said


def test_pixel_coordinates_count_within_srcwin(tmp_path):
    path = write_features(tmp_path / "v.gpkg", [(square(False, (0, 0), (2, 3)), (1,))], CLASS, srs=None)
    found, _ = pixels_of(tmp_path, flat_scene(tmp_path), path, "-srcwin", 4, 5, 10, 10)
    assert found == {(i, j): 1 for i in range(2) for j in range(3)}


@pytest.mark.quick
def test_points_in_pixel_coordinates(tmp_path):
    scene = flat_scene(tmp_path)
    want = {p: int(labels()[p]) for p in places(4)}
    for name, head, where in (("p.csv", "sample,line,class", lambda i, j: (j, i)), ("q.csv", "x,y,class", lambda i, j: (j + 0.5, i + 0.5)),
                              ("r.csv", "X,Y,class", lambda i, j: (j + 0.5, -i - 0.5)),
                              ("t.csv", "x,y,class", lambda i, j: (j, i))):
        found, _ = pixels_of(tmp_path, scene, table(tmp_path / name, head, where, step=4))
        assert found == want, name


def test_what_has_an_srs_is_no_pixel_coordinate(tmp_path):
    """Unless the user requests it; GeoJSON that names its SRS is such a case."""
    scene = flat_scene(tmp_path)
    shapes = [(square(False, a, b), (v,)) for a, b, v in SQUARES]
    write_features(tmp_path / "v.gpkg", shapes, CLASS)
    write_features(tmp_path / "v.geojson", shapes, CLASS, "GeoJSON", srs="EPSG:32633")
    for name in ("v.gpkg", "v.geojson"):
        result = refuse(1, "the scene has no georeference: the features of", "gdal_hsi_spectra", scene, tmp_path / name, tmp_path / "x.csv",
                        untouched=[tmp_path])
        assert "-pixel-coordinates" in result.err
        assert pixels_of(tmp_path, scene, tmp_path / name, "-pixel-coordinates")[0] == in_squares()


def test_a_scene_placed_otherwise_takes_no_pixel_coordinates_unasked(tmp_path):
    """Features without an SRS may be at the position of its ground control points."""
    dataset = gdal.Open(str(flat_scene(tmp_path)), gdal.GA_Update)
    dataset.SetGCPs([gdal.GCP(13.0 + x / 100, 52.0 - y / 100, 0, x, y) for x in (0, SAMPLES) for y in (0, LINES)], 'GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,298.257223563]],PRIMEM["Greenwich",0],UNIT["degree",0.0174532925199433]]')
    dataset = None
    path = write_features(tmp_path / "v.gpkg", [(square(False, a, b), (v,)) for a, b, v in SQUARES], CLASS, srs=None)
    result = run("gdal_hsi_spectra", tmp_path / "flat.tif", path, tmp_path / "x.csv")
    assert result.code == 1 and "the scene has no geotransform" in first_error(result) and "gdalwarp" in result.err
    assert pixels_of(tmp_path, tmp_path / "flat.tif", path, "-pixel-coordinates")[0] == in_squares()


@pytest.mark.parametrize("flat", [True, False])
@pytest.mark.parametrize("tool", ["atdca", "endmembers"])
@pytest.mark.parametrize("name", ["t.gpkg", "t.geojson", "t.csv", "t.shp"])
def test_points_of_our_own_are_read_again(tmp_path, tool, name, flat):
    """With a georeference, and without it, where GeoJSON has no geometries: the pixels that were found, by rank."""
    scene = flat_scene(tmp_path)
    if not flat:
        write_scene(tmp_path / "placed.tif", scene_of(labels()), "GTiff", geotransform=PLACE, epsg=32633)
        scene = tmp_path / "placed.tif"
    report = tmp_path / "r.json"
    succeed(run(f"gdal_hsi_{tool}", "-t", 5, scene, tmp_path / name, "-report", report))
    dataset = ogr.Open(str(tmp_path / name))
    found = {(int(f["line"]), int(f["sample"])): int(f["rank"]) for f in dataset.GetLayer(0)}
    assert len(found) == 5
    read, said = pixels_of(tmp_path, scene, tmp_path / name)
    assert read == found, said


def test_spectra_of_our_own_are_labels_again(tmp_path):
    """GeoJSON without geometries for a scene without georeference, and with longitudes for a scene that has one."""
    for scene in (flat_scene(tmp_path), write_scene(tmp_path / "placed.tif", scene_of(labels()), "GTiff", geotransform=PLACE, epsg=32633)):
        first, _ = pixels_of(tmp_path, scene, table(tmp_path / "p.csv", "sample,line,class", lambda i, j: (j, i), step=5))
        (tmp_path / "s.geojson").rename(tmp_path / "again.geojson")
        assert pixels_of(tmp_path, scene, tmp_path / "again.geojson")[0] == first and len(first) == len(places(5))
    # Longitudes cannot select pixels of a copy without georeference, but lines and samples can.
    found, said = pixels_of(tmp_path, tmp_path / "flat.tif", tmp_path / "again.geojson")
    assert found == first and f"{len(first)} points are located by the fields sample and line" in said


def test_pixels_beside_the_scene_are_counted(tmp_path):
    (tmp_path / "p.csv").write_text(f"sample,line,class\n1,1,1\n{SAMPLES},2,1\n3,{LINES},2\n-1,4,2\n{SAMPLES - 1},{LINES - 1},2\n")
    found, said = pixels_of(tmp_path, flat_scene(tmp_path), tmp_path / "p.csv")
    assert found == {(1, 1): 1, (LINES - 1, SAMPLES - 1): 2}
    assert "3 of 5 features lie outside the scene by samples and lines" in said
    # Also on a scene with a georeference.
    placed = write_scene(tmp_path / "placed.tif", scene_of(labels()), "GTiff", geotransform=PLACE, epsg=32633)
    found, said = pixels_of(tmp_path, placed, tmp_path / "p.csv")
    assert found == {(1, 1): 1, (LINES - 1, SAMPLES - 1): 2}
    assert "3 of 5 points lie outside the scene by samples and lines" in said


def test_points_without_a_place_lie_where_their_fields_say(tmp_path):
    """Features without geometry over a georeferenced scene, in a layer without any geometries."""
    want = {(2, 3): 1, (7, 11): 2}
    write_features(tmp_path / "v.gpkg", [(None, (v, i, j)) for (i, j), v in want.items()],
                   CLASS + [("line", ogr.OFTInteger), ("sample", ogr.OFTInteger)])
    write_scene(tmp_path / "placed.tif", scene_of(labels()), "GTiff", geotransform=PLACE, epsg=32633)
    for scene in (tmp_path / "placed.tif", flat_scene(tmp_path)):
        assert pixels_of(tmp_path, scene, tmp_path / "v.gpkg")[0] == want


@pytest.mark.quick
def test_points_of_ungridded_labels_stay_points(tmp_path):
    """A table with names that GDAL also opens as a layer: WKT in a CSV."""
    (tmp_path / "w.csv").write_text("WKT,class\n" + "".join(f'"{text}",{value[0]}\n' for text, value in points_of(labels())))
    got, _ = labels_on(tmp_path, tmp_path / "w.csv")
    assert np.array_equal(got, labels())


@pytest.mark.parametrize("head", ["lon,lat,class", "x,y,class"])
@pytest.mark.parametrize("west, epsg", [(170, 4326), (-190, 4326), (170, None), (-190, None)])
def test_longitudes_of_either_count_in_tables(tmp_path, head, west, epsg):
    """A scene across 180 degrees, with points on both sides of it, for both conventions of longitude in both files."""
    write_scene(tmp_path / "like.tif", np.ones((1, LINES, SAMPLES)), driver="GTiff", geotransform=(west, 1, 0, 40, 0, -1), epsg=epsg)
    want = wanted(3)
    for shift in (lambda lon: (lon + 180) % 360 - 180, lambda lon: lon % 360):
        if epsg is None and head.startswith("x"):
            continue  # nothing states that these are degrees
        rows = [f"{shift(west + j + 0.5)},{40 - i - 0.5},{labels()[i, j]}" for i, j in places(3)]
        (tmp_path / "p.csv").write_text(head + "\n" + "\n".join(rows) + "\n")
        got, _ = labels_on(tmp_path, tmp_path / "p.csv")
        assert np.array_equal(got, want, equal_nan=True)


@pytest.mark.parametrize("scene_west, label_west, scene_epsg, label_epsg", [(170, -190, None, 4326), (-190, 170, 4326, None), (170, -190, 4326, 4326)])
def test_longitudes_of_either_count_in_rasters_without_an_srs(tmp_path, scene_west, label_west, scene_epsg, label_epsg):
    write_scene(tmp_path / "like.tif", np.ones((1, LINES, SAMPLES)), driver="GTiff", geotransform=(scene_west, 1, 0, 40, 0, -1), epsg=scene_epsg)
    write_scene(tmp_path / "l.tif", labels()[None], driver="GTiff", dtype="u1", geotransform=(label_west, 1, 0, 40, 0, -1), epsg=label_epsg)
    got, said = labels_on(tmp_path, tmp_path / "l.tif")
    assert np.array_equal(got, labels())
