# SPDX-License-Identifier: MIT
"""-min-cover and -cover: the share of a pixel that polygons of a class cover. It is compared with the area of each
polygon in each pixel's square (clipped side by side, shoelace formula) and, where polygons overlap, with a fine grid of
points."""
import json

import numpy as np
import pytest
from conftest import assert_untouched, first_error, quick_only, read, run, succeed, write_scene
from label_files import scene_of, write_features, write_labels
from osgeo import ogr

LINES, SAMPLES = 33, 29
PLACES = {"north up": (500000, 30, 0, 5400000, 0, -30), "degrees": (13.1, 1 / 3600, 0, 52.3, 0, -1 / 3600),
          "turned": (500000, 21.7, 8.3, 5400000, 7.9, -22.1), "south up": (500000, 30, 0, 5400000, 0, 30)}
NORTH = PLACES["north up"]
CLASS = [("class", ogr.OFTInteger)]


def ring(place, corners):
    points = [(place[0] + place[1] * x + place[2] * y, place[3] + place[4] * x + place[5] * y) for x, y in [*corners, corners[0]]]
    return "(" + ", ".join(f"{x!r} {y!r}" for x, y in points) + ")"


def polygon(place, *rings):
    return "POLYGON (" + ", ".join(ring(place, r) for r in rings) + ")"


def box(x0, y0, x1, y1):
    return [(x0, y0), (x1, y0), (x1, y1), (x0, y1)]


def area(points):
    if len(points) < 3:
        return 0.0
    x, y = np.array(points, float).T
    return abs(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1))) / 2


def clipped(points, axis, bound, keep):
    """Returns the part of a ring on one side of a line."""
    out = []
    for a, b in zip(points, points[1:] + points[:1]):
        inside_a, inside_b = keep(a[axis], bound), keep(b[axis], bound)
        if inside_a:
            out.append(a)
        if inside_a != inside_b:
            t = (bound - a[axis]) / (b[axis] - a[axis])
            out.append((a[0] + t * (b[0] - a[0]), a[1] + t * (b[1] - a[1])))
    return out


def shares(corners, lines=LINES, samples=SAMPLES):
    """Returns the exact share of every pixel that a simple ring covers."""
    result = np.zeros((lines, samples))
    for i in range(lines):
        row = clipped(clipped(list(corners), 1, i, np.greater_equal), 1, i + 1, np.less_equal)
        for j in range(samples):
            cell = clipped(clipped(row, 0, j, np.greater_equal), 0, j + 1, np.less_equal) if row else []
            result[i, j] = area(cell)
    return result


def star(random, x, y, radius, corners=17):
    angles = np.sort(random.uniform(0, 2 * np.pi, corners))
    radii = radius * random.uniform(0.3, 1, corners)
    return [(float(x + r * np.cos(a)), float(y + r * np.sin(a))) for a, r in zip(angles, radii)]


def sample(folder, place, texts, *options, size=(LINES, SAMPLES), srs="EPSG:32633"):
    """Returns (labels, messages, shares by class if requested)."""
    write_labels(folder / "like.tif", np.zeros(size), place=place)
    write_features(folder / "v.gpkg", [(text, (value,)) for text, value in texts], CLASS, srs=srs)
    said = succeed(run("gdal_hsi_sample", "-overwrite", "-fraction", 0.5, "-like", folder / "like.tif", *options, folder / "v.gpkg",
                       folder / "a.tif", folder / "b.tif")).err
    a, b = read(folder / "a.tif")[0], read(folder / "b.tif")[0]
    return np.nan_to_num(np.where(np.isnan(a), b, a)), said


@pytest.mark.parametrize("place", quick_only("north up", PLACES))
def test_shares_are_areas(tmp_path, place):
    place = PLACES[place]
    random = np.random.default_rng(7)
    outer, hole = [(float(14 + 11 * np.cos(a)), float(12 + 10 * np.sin(a))) for a in np.arange(0, 6.28, 0.21)], star(random, 14, 12, 5)
    rings = {1: shares(outer) - shares(hole), 2: shares(star1 := star(random, 5, 27, 7)), 3: shares(box(20, 25, 26, 30)),
             4: shares(leaving := star(random, 28, 3, 9)), 5: shares(thin := [(1.2, 1.1), (12.9, 1.3), (12.9, 1.45)]) + shares(box(20.25, 31.5, 20.75, 32))}
    texts = [(polygon(place, outer, hole), 1), (polygon(place, star1), 2), (polygon(place, box(20, 25, 26, 30)), 3), (polygon(place, leaving), 4),
             ("MULTIPOLYGON (" + polygon(place, thin)[8:] + ", " + polygon(place, box(20.25, 31.5, 20.75, 32))[8:] + ")", 5)]
    _, _ = sample(tmp_path, place, texts, "-cover", tmp_path / "cover.tif")
    cover = read(tmp_path / "cover.tif")
    want = np.stack([rings[k] for k in sorted(rings)]).round(9)
    inside = want.max(0) > 1e-6
    assert np.isnan(cover[:, want.max(0) == 0]).all() and inside.sum() > 300
    assert np.abs(cover[:, inside] - want[:, inside]).max() < 2e-6
    for least in 0.3, 0.5, 0.7, 1:
        labels, _ = sample(tmp_path, place, texts, "-min-cover", least)
        close = np.abs(np.sort(want, 0)[-1] - least) < 1e-5  # rounding decides
        if least in (0.5, 1):
            close &= False  # corners and borders of pixels are decided exactly
        expected = np.where(want.max(0) >= least - 1e-6, want.argmax(0) + 1, 0)
        assert np.array_equal(labels[~close], expected[~close]), np.argwhere((labels != expected) & ~close)[:5]
        assert close.sum() < 3


def points_in(texts, place, fine):
    """Returns the share of a fine grid of points inside the union of the ring lists, pixel by pixel."""
    steps = (np.arange(fine) + 0.5) / fine
    x, y = (np.arange(SAMPLES)[:, None] + steps).ravel(), (np.arange(LINES)[:, None] + steps).ravel()
    inside = np.zeros((len(y), len(x)), bool)
    for corners in texts:
        odd = np.zeros_like(inside)
        for (x0, y0), (x1, y1) in zip(corners, corners[1:] + corners[:1]):
            if y0 == y1:
                continue
            rows = (y >= min(y0, y1)) & (y < max(y0, y1))
            at = x0 + (y[rows] - y0) * (x1 - x0) / (y1 - y0)
            odd[rows] ^= x[None, :] > at[:, None]
        inside |= odd
    return inside.reshape(LINES, fine, SAMPLES, fine).mean((1, 3))


def test_polygons_of_a_class_add_up_and_overlaps_count_once(tmp_path):
    random = np.random.default_rng(11)
    of_one = [star(random, 12, 12, 9), star(random, 15, 15, 9), box(4.5, 20.25, 9.5, 24.5), box(9.5, 20.25, 11.75, 24.5), box(9.0, 21, 10, 22)]
    of_two = [star(random, 20, 20, 8)]
    texts = [(polygon(NORTH, c), 1) for c in of_one] + [(polygon(NORTH, c), 2) for c in of_two]
    labels, said = sample(tmp_path, NORTH, texts, "-min-cover", 0.6, "-cover", tmp_path / "cover.tif")
    cover = np.nan_to_num(read(tmp_path / "cover.tif"))
    want = np.stack([points_in(of_one, NORTH, 48), points_in(of_two, NORTH, 48)])
    assert np.abs(cover - want).max() < 0.015
    assert cover[0, 21, 9] == 1 and cover[0, 20, 9] == pytest.approx(0.75)  # two halves, with the overlap counted once
    assert np.array_equal(labels, np.where(cover.max(0) >= 0.6 - 1e-6, cover.argmax(0) + 1, 0))
    both = ((cover.sum(0) > 1.01) & (labels > 0)).sum()
    assert both > 10 and f"{both} labelled pixels have overlapping polygons of several classes; the class with the largest share is used" in said


def test_the_larger_share_wins_and_the_lower_number_of_equal_ones(tmp_path):
    # Pixel (2, 2): halves of classes 4 and 3, in either order; (2, 5): 0.4 of class 3 and 0.6 of class 4; (2, 8): 0.55 and 0.9, overlapping.
    shapes = [(box(2, 2, 2.5, 3), 4), (box(2.5, 2, 3, 3), 3), (box(5, 2, 5.4, 3), 3), (box(5.4, 2, 6, 3), 4), (box(8, 2, 8.9, 3), 3),
              (box(8, 2, 8.55, 3), 4), (box(10, 2, 20, 12), 3)]
    for order in shapes, shapes[::-1]:
        labels, _ = sample(tmp_path, NORTH, [(polygon(NORTH, c), v) for c, v in order], "-min-cover", 0.3)
        assert (labels[2, 2], labels[2, 5], labels[2, 8]) == (3, 4, 3)
        labels, _ = sample(tmp_path, NORTH, [(polygon(NORTH, c), v) for c, v in order], "-min-cover", 0.56)
        assert (labels[2, 2], labels[2, 5], labels[2, 8]) == (0, 4, 3)


def test_class_zero_takes_labels_away_where_its_share_is_larger(tmp_path):
    shapes = [(box(2, 2, 10, 10), 1), (box(4, 4, 6.6, 6.6), 0)]
    labels, _ = sample(tmp_path, NORTH, [(polygon(NORTH, c), v) for c, v in shapes], "-min-cover", 0.5, "-zero", "none")
    want = shares(box(2, 2, 10, 10)) >= 0.5
    want[4:6, 4:6] = False  # a tie of all classes: no label
    assert np.array_equal(labels > 0, want)


def test_bow_ties_are_mended(tmp_path):
    labels, _ = sample(tmp_path, NORTH, [(polygon(NORTH, [(2, 2), (12, 12), (12, 2), (2, 12)]), 1)], "-min-cover", 0.5, "-cover", tmp_path / "c.tif")
    want = shares([(2, 2), (7, 7), (2, 12)]) + shares([(12, 2), (12, 12), (7, 7)])
    assert np.abs(np.nan_to_num(read(tmp_path / "c.tif")[0]) - want).max() < 1e-6 and np.array_equal(labels > 0, want >= 0.5 - 1e-6)


def test_lines_are_read_alike_across_strips(tmp_path):
    """Strips of lines end at 256, 512, ...; nothing is counted twice there."""
    size = (600, 7)
    tall = [(1.3, 3.5), (6.2, 250.0), (5.1, 590.5), (0.5, 511.0)]
    labels, said = sample(tmp_path, NORTH, [(polygon(NORTH, tall), 1), (polygon(NORTH, box(2, 255.5, 3, 256.5)), 2), (polygon(NORTH, box(0, 100, 7, 101)), 3)],
                          "-min-cover", 0.7, "-cover", tmp_path / "cover.tif", size=size)
    want = shares(tall, *size)
    assert np.abs(np.nan_to_num(read(tmp_path / "cover.tif")[0]) - want).max() < 1e-6
    assert np.array_equal(labels == 1, (want >= 0.7 - 1e-6) & (labels != 3)) and (labels == 1).sum() > 1000
    assert "1 polygon or group of polygons covers less than 0.7 of every pixel and labels no pixel" in said
    assert set(np.unique(labels[100])) == {1, 3} or set(np.unique(labels[100])) == {3}


def test_small_polygons_are_told(tmp_path):
    texts = [(polygon(NORTH, box(2, 2, 6, 6)), 1), (polygon(NORTH, box(10.2, 10.2, 10.9, 10.9)), 1), (polygon(NORTH, box(20.1, 8, 20.6, 9)), 2),
             (polygon(NORTH, box(20.6, 8, 21, 9)), 2), (f"POINT ({NORTH[0] + 500} {NORTH[3] - 500})", 2)]
    labels, said = sample(tmp_path, NORTH, texts, "-min-cover", 0.8)
    assert (labels == 1).sum() == 16 and np.argwhere(labels == 2).tolist() == [[8, 20]]  # two together
    assert "1 polygon or group of polygons covers less than 0.8 of every pixel and labels no pixel" in said
    assert "1 feature has no area and covers no pixel, and is left out" in said


@pytest.mark.parametrize("options", [("-min-cover", 0.7), (), ("-inside-only",)])
def test_labels_smaller_than_a_pixel_are_refused(tmp_path, options):
    write_labels(tmp_path / "like.tif", np.zeros((LINES, SAMPLES)), place=NORTH)
    write_features(tmp_path / "v.gpkg", [(polygon(NORTH, box(x + 0.05, 3.05, x + 0.45, 3.45)), (1,)) for x in (3, 5, 9)], CLASS)
    with assert_untouched(tmp_path):
        result = run("gdal_hsi_sample", *options, "-like", tmp_path / "like.tif", tmp_path / "v.gpkg", tmp_path / "a.tif", tmp_path / "b.tif")
        assert result.code == 1 and "no labelled pixel" in result.err and "3 polygons are too small or narrow" in result.err, result.err
        assert "-all-touched" in result.err and "same area" not in result.err


@pytest.mark.parametrize("value", ["0", "-0.1", "1.01", "nan", "inf", "much"])
def test_covers_outside_of_0_to_1(tmp_path, value):
    write_labels(tmp_path / "like.tif", np.zeros((LINES, SAMPLES)), place=NORTH)
    write_features(tmp_path / "v.gpkg", [(polygon(NORTH, box(2, 2, 6, 6)), (1,))], CLASS)
    with assert_untouched(tmp_path):
        result = run("gdal_hsi_sample", "-min-cover", value, "-like", tmp_path / "like.tif", tmp_path / "v.gpkg", tmp_path / "a.tif", tmp_path / "b.tif")
        assert result.code == 2 and "-min-cover" in first_error(result) and "above 0 to 1" in result.err, result.err


def test_one_family_of_options(tmp_path):
    write_labels(tmp_path / "like.tif", np.ones((LINES, SAMPLES)), place=NORTH)
    write_features(tmp_path / "v.gpkg", [(polygon(NORTH, box(2, 2, 6, 6)), (1,))], CLASS)
    write_features(tmp_path / "p.gpkg", [(f"POINT ({NORTH[0] + 500} {NORTH[3] - 500})", (1,))], CLASS)
    outputs = tmp_path / "a.tif", tmp_path / "b.tif"
    with assert_untouched(tmp_path):
        for other in "-all-touched", "-inside-only":
            result = run("gdal_hsi_sample", "-min-cover", 0.5, other, "-like", tmp_path / "like.tif", tmp_path / "v.gpkg", *outputs)
            assert result.code == 2 and other in first_error(result) and "-min-cover" in first_error(result)
        for option in ("-min-cover", 0.5), ("-cover", tmp_path / "c.tif"):
            result = run("gdal_hsi_sample", *option, tmp_path / "like.tif", *outputs)
            assert result.code == 1 and "is a raster, which has no features" in first_error(result) and option[0] in result.err
            result = run("gdal_hsi_sample", *option, "-like", tmp_path / "like.tif", tmp_path / "p.gpkg", *outputs)
            assert result.code == 1, result.err


def test_every_tool_that_burns_polygons(tmp_path):
    labels = np.where(np.arange(SAMPLES) < 15, 1, 2) * np.ones((LINES, 1), int)
    write_scene(tmp_path / "scene.tif", scene_of(labels), "GTiff", geotransform=NORTH, epsg=32633)
    write_labels(tmp_path / "map.tif", labels, place=NORTH)
    write_scene(tmp_path / "p.tif", np.stack([labels == 1, labels == 2]) * 0.8 + 0.1, "GTiff", geotransform=NORTH, epsg=32633)
    corners = [[(1.3, 1.3), (13.2, 2.4), (9.8, 30.6)], [(17.7, 5.1), (27.4, 8.8), (20.2, 31.3)]]
    write_features(tmp_path / "v.gpkg", [(polygon(NORTH, c), (k + 1,)) for k, c in enumerate(corners)], CLASS)
    count = sum((shares(c) >= 0.7 - 1e-6).sum() for c in corners)
    scene, v = tmp_path / "scene.tif", tmp_path / "v.gpkg"
    tools = {"spectra": [scene, v, tmp_path / "s.csv"], "accuracy": [tmp_path / "map.tif", v],
             "svm_train": ["-C", 1, "-gamma", 1, scene, v, tmp_path / "m.json"], "sahic": ["-device", "cpu", "-iterations", 2, scene, v, tmp_path / "c.tif"],
             "sample": ["-n", 5, "-like", scene, v, tmp_path / "a.tif", tmp_path / "b.tif"],
             "regularize": ["-device", "cpu", "-iterations", 2, "-labels", v, tmp_path / "p.tif", tmp_path / "q.tif"]}
    for tool, args in tools.items():
        text = succeed(run(f"gdal_hsi_{tool}", "-min-cover", 0.7, *args, "-report", tmp_path / f"{tool}.json")).out
        facts = json.loads((tmp_path / f"{tool}.json").read_text())
        if tool == "spectra":
            assert f"of {count} labelled pixels" in text
        elif tool == "accuracy":
            assert f"Pixels: {count} compared" in text
        elif tool == "sample":
            assert facts["labels"]["pixels"] == count
        elif tool != "regularize":
            assert facts["labelled_pixels"] == count
    result = run("gdal_hsi_regularize", "-min-cover", 0.7, tmp_path / "p.tif", tmp_path / "q2.tif")
    assert result.code == 2 and "-min-cover applies to labels, but no labels are given" in first_error(result)
