# SPDX-License-Identifier: MIT
"""-inside-only: pixels that are completely inside a polygon, compared with GEOS's result for every pixel's square."""
import numpy as np
import pytest
from conftest import first_error, read, run, succeed, write_scene
from label_files import scene_of, write_features, write_labels
from osgeo import ogr

LINES, SAMPLES = 37, 41
PLACES = {"north up": (500000, 30, 0, 5400000, 0, -30), "degrees": (13.1, 1 / 3600, 0, 52.3, 0, -1 / 3600),
          "turned": (500000, 21.7, 8.3, 5400000, 7.9, -22.1), "south up": (500000, 30, 0, 5400000, 0, 30)}
CLASS = [("class", ogr.OFTInteger)]


def map_of(place, x, y):
    return place[0] + place[1] * x + place[2] * y, place[3] + place[4] * x + place[5] * y


def ring(place, corners):
    points = [map_of(place, x, y) for x, y in [*corners, corners[0]]]
    return "(" + ", ".join(f"{x!r} {y!r}" for x, y in points) + ")"


def star(random, x, y, radius, corners=24):
    """Returns a ring around a pixel position that does not cross itself."""
    angles = np.sort(random.uniform(0, 2 * np.pi, corners))
    radii = radius * random.uniform(0.4, 1, corners)
    return [(float(x + r * np.cos(a)), float(y + r * np.sin(a))) for a, r in zip(angles, radii)]


def on_borders(random, x, y, size):
    """Returns a staircase whose sides are borders of pixels."""
    steps = [(x, y + size)] + [p for k in range(size) for p in ((x + k, y + size - k - 1), (x + k + 1, y + size - k - 1))] + [(x + size, y + size)]
    return [(float(a), float(b)) for a, b in dict.fromkeys(steps)]


def shapes(place, random):
    """Returns stars with holes, a staircase, a triangle with corners on corners of pixels, two parts, and shapes that
    leave the grid."""
    hole = ring(place, star(random, 20, 20, 6))
    outer = ring(place, [(20 + 1.1 * 16 * np.cos(a), 20 + 1.1 * 16 * np.sin(a)) for a in np.arange(0, 6.28, 0.2)])
    return [("POLYGON (" + outer + ", " + hole + ")", 1), ("POLYGON (" + ring(place, star(random, 8, 28, 9)) + ")", 2),
            ("POLYGON (" + ring(place, on_borders(random, 27, 3, 8)) + ")", 3),
            ("POLYGON (" + ring(place, [(2.0, 2.0), (11.0, 5.0), (4.0, 12.0)]) + ")", 4),
            ("MULTIPOLYGON ((" + ring(place, star(random, 34, 30, 6)) + "), (" + ring(place, [(22.0, 33.0), (25.5, 33.0), (25.5, 36.0), (22.0, 36.0)]) + "))", 5),
            ("POLYGON (" + ring(place, star(random, 41, 10, 8)) + ")", 6), ("POLYGON (" + ring(place, star(random, 3, -1, 7)) + ")", 7)]


def shrunk(place, line, sample):
    """Returns a pixel's square minus a millionth of a pixel: within this distance, shapes count as on its border."""
    e = 1e-6
    corners = [(sample + e, line + e), (sample + 1 - e, line + e), (sample + 1 - e, line + 1 - e), (sample + e, line + 1 - e)]
    return ogr.CreateGeometryFromWkt("POLYGON (" + ring(place, corners) + ")")


def inside(place, text):
    polygon = ogr.CreateGeometryFromWkt(text)
    assert polygon.IsValid()
    return np.array([[polygon.Contains(shrunk(place, i, j)) for j in range(SAMPLES)] for i in range(LINES)])


def burned(folder, place, texts, *options, epsg="EPSG:32633"):
    write_labels(folder / "like.tif", np.zeros((LINES, SAMPLES)), place=place)
    write_features(folder / "v.gpkg", [(text, (value,)) for text, value in texts], CLASS, srs=epsg)
    said = succeed(run("gdal_hsi_sample", "-overwrite", "-fraction", 0.5, "-like", folder / "like.tif", *options, folder / "v.gpkg",
                       folder / "a.tif", folder / "b.tif")).err
    a, b = read(folder / "a.tif")[0], read(folder / "b.tif")[0]
    return np.where(np.isnan(a), b, a), said


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("place", PLACES)
def test_pixels_inside_of_polygons(tmp_path, place, seed):
    place = PLACES[place]
    texts = shapes(place, np.random.default_rng(seed))
    want = np.full((LINES, SAMPLES), np.nan)
    for text, value in texts:
        want[inside(place, text)] = value
    got, _ = burned(tmp_path, place, texts, "-inside-only")
    assert np.array_equal(got, want, equal_nan=True), np.argwhere(~((got == want) | (np.isnan(got) & np.isnan(want))))[:5]
    assert len(np.unique(want[np.isfinite(want)])) >= 6
    # Fewer pixels than by centres, and these are fewer than by -all-touched.
    centres, touched = burned(tmp_path, place, texts)[0], burned(tmp_path, place, texts, "-all-touched")[0]
    assert np.isfinite(got).sum() < np.isfinite(centres).sum() < np.isfinite(touched).sum()


def test_a_long_polygon_crosses_strips(tmp_path):
    """Lines are burned 256 at a time, without an effect on the pixels."""
    write_labels(tmp_path / "like.tif", np.zeros((700, 9)))
    place = PLACES["north up"]
    text = "POLYGON (" + ring(place, [(1.5, 3.5), (7.25, 250.0), (6.0, 690.5), (0.5, 511.0)]) + ")"
    write_features(tmp_path / "v.gpkg", [(text, (1,))], CLASS)
    succeed(run("gdal_hsi_sample", "-fraction", 0.5, "-inside-only", "-like", tmp_path / "like.tif", tmp_path / "v.gpkg", tmp_path / "a.tif",
                tmp_path / "b.tif"))
    a, b = read(tmp_path / "a.tif")[0], read(tmp_path / "b.tif")[0]
    polygon = ogr.CreateGeometryFromWkt(text)
    want = np.array([[polygon.Contains(shrunk(place, i, j)) for j in range(9)] for i in range(700)])
    assert np.array_equal(np.isfinite(a) | np.isfinite(b), want) and want.sum() > 1500


def test_what_has_no_inside_is_told(tmp_path):
    place = PLACES["north up"]
    big, small = [(1.0, 1.0), (9.0, 1.0), (9.0, 9.0), (1.0, 9.0)], [(20.2, 20.2), (21.9, 20.2), (21.9, 21.9), (20.2, 21.9)]
    x, y = map_of(place, 30.5, 30.5)
    texts = [("POLYGON (" + ring(place, big) + ")", 1), ("POLYGON (" + ring(place, small) + ")", 2), (f"POINT ({x} {y})", 3),
             (f"LINESTRING ({x} {y}, {x + 100} {y})", 4)]
    got, said = burned(tmp_path, place, texts, "-inside-only")
    assert (got == 1).sum() == 64 and np.isfinite(got).sum() == 64
    assert "2 features have no area and contain no pixel, and are left out" in said
    assert "1 feature contains no whole pixel and labels no pixel" in said
    write_features(tmp_path / "p.gpkg", [(text, (value,)) for text, value in texts[2:]], CLASS)
    result = run("gdal_hsi_sample", "-inside-only", "-like", tmp_path / "like.tif", tmp_path / "p.gpkg", tmp_path / "x.tif", tmp_path / "y.tif")
    assert result.code == 1 and "has no feature that can be used" in first_error(result)


def test_every_tool_that_burns_polygons(tmp_path):
    """The pixels are the same in each tool, and it cannot be combined with -all-touched."""
    place = PLACES["north up"]
    labels = np.where(np.arange(SAMPLES) < 20, 1, 2) * np.ones((LINES, 1), int)
    write_scene(tmp_path / "scene.tif", scene_of(labels), "GTiff", geotransform=place, epsg=32633)
    write_labels(tmp_path / "map.tif", labels, place=place)
    p = np.stack([labels == 1, labels == 2]) * 0.8 + 0.1
    write_scene(tmp_path / "p.tif", p, "GTiff", geotransform=place, epsg=32633)
    corners = [[(1.3, 1.3), (15.2, 2.4), (9.8, 30.6)], [(22.7, 5.1), (38.4, 8.8), (27.2, 33.3)]]
    texts = ["POLYGON (" + ring(place, c) + ")" for c in corners]
    write_features(tmp_path / "v.gpkg", list(zip(texts, [(1,), (2,)])), CLASS)
    count = sum(inside(place, t).sum() for t in texts)
    scene, v = tmp_path / "scene.tif", tmp_path / "v.gpkg"
    tools = {"spectra": [scene, v, tmp_path / "s.csv"], "accuracy": [tmp_path / "map.tif", v],
             "svm_train": ["-C", 1, "-gamma", 1, scene, v, tmp_path / "m.json"],
             "sahic": ["-device", "cpu", "-iterations", 2, scene, v, tmp_path / "c.tif"],
             "sample": ["-n", 5, "-like", scene, v, tmp_path / "a.tif", tmp_path / "b.tif"],
             "regularize": ["-device", "cpu", "-iterations", 2, "-labels", v, tmp_path / "p.tif", tmp_path / "q.tif"]}
    for tool, args in tools.items():
        result = run(f"gdal_hsi_{tool}", "-inside-only", "-all-touched", *args)
        assert result.code == 2 and "-all-touched" in first_error(result) and "-inside-only" in first_error(result), tool
        text = succeed(run(f"gdal_hsi_{tool}", "-inside-only", *args, "-report", tmp_path / f"{tool}.json")).out
        facts = (tmp_path / f"{tool}.json").read_text()
        if tool == "spectra":
            assert f"of {count} labelled pixels" in text
        elif tool == "accuracy":
            assert f"Pixels: {count} compared" in text
        elif tool != "regularize":
            assert f"{count}" in facts, tool
    result = run("gdal_hsi_regularize", "-inside-only", tmp_path / "p.tif", tmp_path / "q2.tif")
    assert result.code == 2 and "-inside-only applies to labels, but no labels are given" in first_error(result)
