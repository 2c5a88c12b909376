# SPDX-License-Identifier: MIT
"""gdal_hsi_quicklook: pictures compared with NumPy's indexing, percentiles and powers."""

import base64
import json
import xml.etree.ElementTree
import zlib

import numpy as np
import pytest
from osgeo import gdal, ogr

from conftest import assert_untouched, first_error, run, succeed, write_scene

LINES, SAMPLES, BANDS = 60, 80, 6
NM = [450.0, 552.0, 649.0, 860.0, 1600.0, 2200.0]
PLACE = (400000.0, 30.0, 0.0, 5800000.0, 0.0, -30.0)


def values(seed=1, lines=LINES, samples=SAMPLES):
    return np.random.default_rng(seed).gamma(2.0, 300.0, (BANDS, lines, samples)).astype("f4")


@pytest.fixture
def cube():
    data = values()
    data[:, 5, 7] = -9999
    return data


@pytest.fixture
def scene(tmp_path, cube):
    folder = tmp_path / "in"
    folder.mkdir()
    return write_scene(folder / "s.img", cube, wavelengths=NM, nodata=-9999, geotransform=PLACE, epsg=32633)


def quicklook(*args, **kwargs):
    return run("gdal_hsi_quicklook", *args, **kwargs)


def picture(path):
    """Reads a picture as [3, lines, samples]."""
    return gdal.Open(str(path)).ReadAsArray()


def shaded(data, like=None, stretch=(2, 98), gamma=0.6):
    """Returns the expected result for bands whose missing values are -9999."""
    out = []
    for band, model in zip(data, data if like is None else like):
        low, high = np.percentile(model[model != -9999].astype(float), stretch)
        out.append(np.floor(255 * np.clip((band - low) / (high - low), 0, 1) ** gamma + 0.5))
    out = np.stack(out)
    out[:, np.any(data == -9999, axis=0)] = 0
    return out


def near(got, wanted):
    """Returns true if values differ by at most one step of rounding."""
    return got.shape == wanted.shape and np.abs(got.astype(int) - wanted).max() <= 1


def enlarged(data, times):
    return data.repeat(times, -2).repeat(times, -1)


@pytest.mark.quick
def test_natural_colours(scene, cube, tmp_path):
    result = succeed(quicklook("-size", 80, scene, tmp_path / "p.png"))
    assert "bands 3 (649 nm), 2 (552 nm), 1 (450 nm) as red, green, blue" in result.out
    assert near(picture(tmp_path / "p.png"), shaded(cube[[2, 1, 0]]))
    assert gdal.Open(str(tmp_path / "p.png")).GetDriver().ShortName == "PNG"


def test_enlarged_and_decimated(scene, cube, tmp_path):
    succeed(quicklook("-size", 319, scene, tmp_path / "large.png"))
    assert near(picture(tmp_path / "large.png"), enlarged(shaded(cube[[2, 1, 0]]), 3))
    succeed(quicklook("-size", 32, scene, tmp_path / "small.png"))
    y, x = ((2 * np.arange(n) + 1) * whole // (2 * n) for n, whole in [(24, LINES), (32, SAMPLES)])
    assert near(picture(tmp_path / "small.png"), shaded(cube[[2, 1, 0]][:, y][:, :, x]))


@pytest.mark.parametrize("options", [("-tile", 16, 16), ("-threads", 1), ("-memory", "64MB"), ("-tile", 7, 60)])
def test_the_same_however_it_is_cut(options, scene, tmp_path):
    succeed(quicklook("-size", 57, scene, tmp_path / "a.png"))
    succeed(quicklook("-size", 57, *options, scene, tmp_path / "b.png"))
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_bands_stretch_and_gamma(scene, cube, tmp_path):
    report = tmp_path / "r.json"
    succeed(quicklook("-b", 5, "-b", 1, "-b", 4, "-stretch", 10, 50, "-gamma", 2, "-size", 80, "-report", report, scene,
                      tmp_path / "p.tif"))
    assert near(picture(tmp_path / "p.tif"), shaded(cube[[4, 0, 3]], stretch=(10, 50), gamma=2))
    panel, = json.loads(report.read_text())["panels"]
    assert panel["bands"] == [5, 1, 4] and panel["gamma"] == 2
    assert np.allclose(panel["stretch"][1], np.percentile(cube[0][cube[0] != -9999], (10, 50)))
    succeed(quicklook("-b", 2, "-size", 80, scene, tmp_path / "grey.png"))
    assert near(picture(tmp_path / "grey.png"), np.repeat(shaded(cube[[1]], gamma=1), 3, 0))


def test_each_band_in_a_panel(scene, cube, tmp_path):
    succeed(quicklook("-each", "-b", 1, "-b", 2, "-b", 4, "-b", 6, "-size", 80, scene, tmp_path / "p.png"))
    got = picture(tmp_path / "p.png")
    assert got.shape == (3, 2 * LINES + 8, 3 * SAMPLES + 16)
    for k, band in enumerate([0, 1, 3, 5]):
        y, x = k // 3 * (LINES + 8), k % 3 * (SAMPLES + 8)
        assert near(got[:, y:y + LINES, x:x + SAMPLES], np.repeat(shaded(cube[[band]], gamma=1), 3, 0)), band
    assert np.all(got[:, LINES + 8:, SAMPLES + 8:] == 255) and np.all(got[:, LINES:LINES + 8] == 255)


def test_beside_is_stretched_as_src(scene, cube, tmp_path):
    other = np.where(cube == -9999, cube, cube * 1.5 + 100).astype("f4")
    write_scene(tmp_path / "in" / "o.tif", other, "GTiff", nodata=-9999, geotransform=PLACE, epsg=32633)
    succeed(quicklook("-b", 3, "-b", 2, "-b", 1, "-gamma", 1, "-size", 80, "-beside", tmp_path / "in" / "o.tif", scene,
                      tmp_path / "p.png"))
    got = picture(tmp_path / "p.png")
    assert near(got[:, :, :SAMPLES], shaded(cube[[2, 1, 0]], gamma=1))
    assert near(got[:, :, SAMPLES + 8:], shaded(other[[2, 1, 0]], cube[[2, 1, 0]], gamma=1))
    assert np.all(got[:, :, SAMPLES:SAMPLES + 8] == 255)


@pytest.fixture
def class_map(tmp_path, scene):
    data = np.zeros((1, LINES, SAMPLES), "u1")
    data[0, 10:30], data[0, 30:, 40:], data[0, 0, 0] = 1, 3, 9
    path = write_scene(tmp_path / "in" / "m.tif", data, "GTiff", "u1", geotransform=PLACE, epsg=32633)
    dataset = gdal.Open(str(path), gdal.GA_Update)
    table = gdal.ColorTable()
    for value, colour in {0: (0, 0, 0, 0), 1: (200, 30, 40, 255), 2: (1, 2, 3, 255), 3: (20, 90, 210, 255)}.items():
        table.SetColorEntry(value, colour)
    dataset.GetRasterBand(1).SetColorTable(table)
    dataset.GetRasterBand(1).SetCategoryNames(["Unclassified", "Wheat", "Unseen", "Größe"])
    return path, data[0]


def test_a_class_map_and_its_legend(class_map, scene, tmp_path):
    path, data = class_map
    colours = {0: (0, 0, 0), 1: (200, 30, 40), 3: (20, 90, 210)}
    wanted = np.zeros((3, LINES, SAMPLES), int)
    for value, colour in colours.items():
        wanted[:, data == value] = np.array(colour)[:, None]
    for k, args in enumerate([(path,), ("-beside", path, scene)]):
        succeed(quicklook("-size", 80, *args, tmp_path / f"{k}.png"))
        got = picture(tmp_path / f"{k}.png")
        x = k * (SAMPLES + 8)
        seen = got[:, :LINES, x:x + SAMPLES]
        assert np.array_equal(np.where(data == 9, 0, seen), np.where(data == 9, 0, wanted))
        assert np.any(seen[:, 0, 0] != 0), "a class without colour and name has a colour"
        legend = got[:, :, x + SAMPLES + 8:]
        # Not the hidden class; pixels without a class are the last entry.
        for line, colour in enumerate([(200, 30, 40), (20, 90, 210), tuple(seen[:, 0, 0]), (0, 0, 0)]):
            box = legend[:, 20 * line + 2:20 * line + 18, :18]
            assert np.all(box == np.array(colour)[:, None, None]), line
            words = legend[:, 20 * line:20 * line + 20, 24:]
            assert 0.02 < np.mean(np.all(words == 0, axis=0)) < 0.5, "letters"
        assert legend.shape[2] == 28 + len("3 Groesse") * 12 and got.shape[1] == max(LINES, 4 * 20)
        succeed(quicklook("-no-legend", "-overwrite", "-size", 80, *args, tmp_path / "no.png"))
        assert np.array_equal(picture(tmp_path / "no.png"), got[:, :LINES, :x + SAMPLES])


def points(path, places, srs=True):
    reference = None
    if srs:
        from osgeo import osr
        reference = osr.SpatialReference()
        reference.ImportFromEPSG(32633)
    layer = (dataset := ogr.GetDriverByName("GPKG").CreateDataSource(str(path))).CreateLayer("p", reference, ogr.wkbPoint)
    for x, y in places:
        feature = ogr.Feature(layer.GetLayerDefn())
        feature.SetGeometry(ogr.CreateGeometryFromWkt(f"POINT({x} {y})"))
        layer.CreateFeature(feature)
    del dataset
    return path


def test_rings_around_points(scene, cube, tmp_path):
    path = points(tmp_path / "in" / "p.gpkg", [(PLACE[0] + 30 * 20.4, PLACE[3] - 30 * 12.7)])
    succeed(quicklook("-size", 80, scene, tmp_path / "plain.png"))
    succeed(quicklook("-size", 80, "-points", path, scene, tmp_path / "rings.png"))
    plain, got = picture(tmp_path / "plain.png"), picture(tmp_path / "rings.png")
    y, x = np.mgrid[:LINES, :SAMPLES]
    r = np.hypot(x - 20, y - 12)
    ring, rim = (r >= 3.2) & (r < 4.6), (r >= 4.6) & (r < 5.6)
    assert np.all(got[:, ring] == np.array([255, 230, 26])[:, None]) and np.all(got[:, rim] == 0)
    assert np.array_equal(got[:, ~ring & ~rim], plain[:, ~ring & ~rim])


def test_names_at_points(scene, tmp_path):
    path = points(tmp_path / "in" / "p.gpkg", [(400000 + 30 * 20.5, 5800000 - 30 * 30.5), (400000 + 30 * 79.5, 5800000 - 30 * 59.5)])
    data = ogr.Open(str(path), update=1)
    data.GetLayer(0).CreateField(ogr.FieldDefn("rank", ogr.OFTInteger))
    for rank, feature in zip((7, 12), list(data.GetLayer(0))):
        feature["rank"] = rank
        data.GetLayer(0).SetFeature(feature)
    del feature, data
    size = ["-size", 4 * SAMPLES, "-points", path]
    succeed(quicklook(*size, "-point-names", "rank", scene, tmp_path / "p.svg"))
    root = xml.etree.ElementTree.parse(tmp_path / "p.svg").getroot()
    texts = {t.text: (int(t.get("x")), int(t.get("y"))) for t in root.findall("{http://www.w3.org/2000/svg}text")}
    assert list(texts) == ["7", "12"]
    assert abs(texts["7"][0] - 4 * 20.5) < 20 and abs(texts["7"][1] - 4 * 30.5) < 15  # next to its ring
    x, y = texts["12"]  # at the corner: inside, and left of its ring
    assert x + 2 * 12 <= 4 * 79.5 - 6 and y <= 4 * LINES
    wrong = quicklook(*size, "-point-names", "height", scene, tmp_path / "w.png")
    assert wrong.code == 1 and "Name a field with -point-names. Fields: rank" in wrong.err
    assert first_error(quicklook("-point-names", "rank", scene, tmp_path / "q.png")) == "-point-names requires -points"


def test_without_visible_light_or_wavelengths(cube, tmp_path):
    write_scene(tmp_path / "swir.img", cube, wavelengths=[1000.0 + 100 * k for k in range(BANDS)], nodata=-9999)
    write_scene(tmp_path / "none.img", cube, nodata=-9999)
    succeed(quicklook("-size", 80, tmp_path / "swir.img", tmp_path / "swir.png"))
    assert near(picture(tmp_path / "swir.png"), shaded(cube[[5, 3, 0]], gamma=1))
    succeed(quicklook("-size", 80, tmp_path / "none.img", tmp_path / "none.png"))
    assert near(picture(tmp_path / "none.png"), shaded(cube[[0, 2, 5]], gamma=1))


def test_constant_and_empty_bands(tmp_path):
    data = np.full((3, 20, 30), 5, "f4")
    write_scene(tmp_path / "s.img", data)
    said = succeed(quicklook("-size", 30, tmp_path / "s.img", tmp_path / "p.png")).err
    assert np.all(picture(tmp_path / "p.png") == 0)
    assert all(f"s.img': band {b}: all displayed pixels have the value 5, which is black" in said for b in (1, 2, 3))
    write_scene(tmp_path / "n.img", data * np.nan)
    said = succeed(quicklook("-size", 30, "-report", tmp_path / "n.json", tmp_path / "n.img", tmp_path / "n.png")).err
    assert np.all(picture(tmp_path / "n.png") == 0)
    assert "no displayed pixel has a value in bands 1, 2, 3 as red, green, blue: all are black" in said
    assert len(json.loads((tmp_path / "n.json").read_text())["warnings"]) == 1
    # Each band has values, but no pixel has all three; most values of a band are equal.
    apart = np.full((3, 20, 30), np.nan, "f4")
    for b in range(3):
        apart[b, :, 10 * b:10 * b + 10] = np.arange(200).reshape(20, 10)
    write_scene(tmp_path / "a.img", apart)
    assert "no displayed pixel has a value" in succeed(quicklook("-size", 30, tmp_path / "a.img", tmp_path / "a.png")).err
    data[1, 3, 4] = 90
    write_scene(tmp_path / "o.img", data)
    said = succeed(quicklook("-size", 30, "-b", 2, tmp_path / "o.img", tmp_path / "o.png")).err
    assert "band 2: all values from 2 to 98 per cent are 5: larger values are white, all others black" in said
    assert picture(tmp_path / "o.png")[0, 3, 4] == 255 and picture(tmp_path / "o.png")[0].sum() == 255


def test_a_scene_with_contrast_is_not_spoken_of(scene, tmp_path):
    assert succeed(quicklook("-stretch", 5, 90, scene, tmp_path / "p.png")).err == ""


def legend_words(got, x, line):
    return got[:, 20 * line:20 * line + 20, x + 24:] == 0


def test_a_legend_by_number_of_names_in_any_alphabet(scene, tmp_path):
    """Names that have no distinguishable letters get numbers; the legend of two maps is in their order."""
    x = SAMPLES + 8
    for name, classes, names in [("high.tif", (7, 5), ["", "", "", "", "", "Лес", "", "水"]), ("low.tif", (2, 6), ["", "", "Gro\u0308ße", "", "", "", "\u00c9t\u00e9"]),
                                 ("plain.tif", (2, 6), ["", "", "Größe", "", "", "", "Ete"])]:
        data = np.full((1, LINES, SAMPLES), classes[0], "u1")
        data[0, :30] = classes[1]
        dataset = gdal.Open(str(write_scene(tmp_path / "in" / name, data, "GTiff", "u1", geotransform=PLACE, epsg=32633)), gdal.GA_Update)
        dataset.GetRasterBand(1).SetCategoryNames(names)
        dataset = None
    colour = {}
    for name in "high", "low", "plain":
        succeed(quicklook("-size", 80, tmp_path / "in" / f"{name}.tif", tmp_path / f"{name}.png"))
        got = picture(tmp_path / f"{name}.png")
        boxes = [tuple(got[:, 20 * k + 10, x + 9]) for k in range(2)]
        assert boxes == [tuple(got[:, y, 5]) for y in ((10, 50) if name == "high" else (50, 10))]  # 5 and 7, 2 and 6
        colour[name] = boxes
    high, low, plain = (picture(tmp_path / f"{name}.png") for name in ("high", "low", "plain"))
    assert high.shape[2] == x + 28 + 12 * len("5 ???") and not np.array_equal(legend_words(high, x, 0)[:, :, :60], legend_words(high, x, 1)[:, :, :60])
    assert np.array_equal(legend_words(low, x, 0), legend_words(plain, x, 0)) and np.array_equal(legend_words(low, x, 1), legend_words(plain, x, 1))
    succeed(quicklook("-size", 80, "-beside", tmp_path / "in" / "low.tif", tmp_path / "in" / "high.tif", tmp_path / "both.png"))
    both = picture(tmp_path / "both.png")
    at = 2 * (SAMPLES + 8)
    assert [tuple(both[:, 20 * k + 10, at + 9]) for k in range(4)] == [colour["low"][0], colour["high"][0], colour["low"][1], colour["high"][1]]


def test_options_that_a_class_map_does_not_have(class_map, scene, tmp_path):
    path, _ = class_map
    with assert_untouched(tmp_path):
        for options, src, words in [(("-stretch", 10, 20), path, "-stretch: '"), (("-gamma", 0.3), path, "-gamma: '"),
                                    (("-gamma", 1, "-stretch", 2, 98, "-beside", path), path, "-stretch and -gamma: '"), (("-no-legend",), scene, "-no-legend: '")]:
            result = quicklook(*options, src, tmp_path / "p.png")
            assert result.code == 2 and words in first_error(result) and "is " in first_error(result), result.err
    succeed(quicklook("-stretch", 10, 20, "-gamma", 0.3, "-no-legend", "-beside", path, scene, tmp_path / "p.png"))


def test_points_beside_the_scene_are_counted(scene, tmp_path):
    inside, outside = (PLACE[0] + 30 * 20.4, PLACE[3] - 30 * 12.7), (PLACE[0] - 300, PLACE[3] + 30)
    path = points(tmp_path / "in" / "p.gpkg", [inside, outside, outside])
    result = succeed(quicklook("-points", path, scene, tmp_path / "p.png"))
    assert "p.gpkg': 2 features lie outside src and have no ring" in result.err
    (tmp_path / "in" / "t.csv").write_text("sample,line\n3,4\n-5,4\n100,4\n7,8\n")
    said = succeed(quicklook("-points", tmp_path / "in" / "t.csv", scene, tmp_path / "q.png")).err
    assert said.count("outside") == 1 and "2 of 4 points lie outside" in said
    path = points(tmp_path / "in" / "good.gpkg", [inside])
    assert succeed(quicklook("-points", path, scene, tmp_path / "r.png")).err == ""


REFUSED = {
    "two bands": (("-b", 1, "-b", 2), 2, "-b: 2 bands make no colours"),
    "stretch": (("-stretch", 50, 50), 2, "-stretch: the first number must be below the second"),
    "type": (("-ot", "Int16"), 2, "-ot Int16: a picture must have the type Byte"),
    "nodata": (("-dstnodata", 0), 2, "-dstnodata cannot be used for a picture"),
    "size": (("-size", 8), 2, "-size"),
}


@pytest.mark.quick
@pytest.mark.parametrize("case", REFUSED)
def test_refused(case, scene, tmp_path):
    options, code, words = REFUSED[case]
    with assert_untouched(tmp_path):
        assert words in first_error(result := quicklook(*options, scene, tmp_path / "p.png")) and result.code == code


def test_refused_of_an_svg(scene, tmp_path):
    (tmp_path / "there.svg").write_text("mine")
    for options, name, code, words in ((["-co", "X=Y"], "p.svg", 2, "-co cannot be used with an .svg or .pdf"),
                                       ([], "there.svg", 1, "already exists")):
        with assert_untouched(tmp_path):
            result = quicklook(*options, scene, tmp_path / name)
        assert result.code == code and words in first_error(result), result.err


def test_files_that_do_not_fit(scene, class_map, tmp_path):
    write_scene(tmp_path / "in" / "small.img", values(lines=10))
    far = points(tmp_path / "in" / "far.gpkg", [(0, 0)])
    for options, words in [(("-beside", tmp_path / "in" / "small.img"), "has 80x10 pixels"),
                           (("-points", far), "far.gpkg"), (("-beside", tmp_path / "in" / "none.img"), "none.img"),
                           (("-size", 8000, "-memory", "64MB"), "does not fit in -memory")]:
        with assert_untouched(tmp_path):
            result = quicklook(*options, scene, tmp_path / "p.png")
            assert result.code == 1 and words in first_error(result)


def test_many_panels(tmp_path):
    write_scene(tmp_path / "s.img", np.ones((65, 4, 4), "f4"))
    result = quicklook("-each", tmp_path / "s.img", tmp_path / "p.png")
    assert result.code == 2 and "-each: 65 panels are more than 64" in first_error(result)


def test_infinite_values_are_black(tmp_path):
    data = values()[:3]
    data[0, :, :30] = np.inf
    data[1, :, 30:40] = -np.inf
    half = write_scene(tmp_path / "half.img", data)
    result = succeed(quicklook("-size", SAMPLES, half, tmp_path / "h.png"))
    got = picture(tmp_path / "h.png")
    assert (got[:, :, :40] == 0).all() and got[:, :, 40:].mean() > 50 and result.err == ""
    everywhere = write_scene(tmp_path / "all.img", np.full((3, 20, 20), np.inf))
    said = succeed(quicklook("-size", 20, everywhere, tmp_path / "a.png")).err
    assert "no displayed pixel has a value" in said and (picture(tmp_path / "a.png") == 0).all()


def class_file(path, classes, names, nodata=None):
    classes = np.asarray(classes)
    dataset = gdal.GetDriverByName("GTiff").Create(str(path), classes.shape[1], classes.shape[0], 1, gdal.GDT_UInt16)
    band = dataset.GetRasterBand(1)
    band.WriteArray(classes)
    band.SetCategoryNames(names)
    if nodata is not None:
        band.SetNoDataValue(nodata)
    return path


def test_a_map_without_a_class(tmp_path):
    empty = class_file(tmp_path / "none.tif", np.zeros((20, 20), int), ["", "a"], 0)
    said = succeed(quicklook("-size", 20, empty, tmp_path / "n.png")).err
    assert "no displayed pixel has a class" in said and (picture(tmp_path / "n.png") == 0).all()
    some = class_file(tmp_path / "some.tif", np.eye(20, dtype=int), ["", "a"], 0)
    assert succeed(quicklook("-size", 20, some, tmp_path / "s.png")).err == ""


@pytest.mark.parametrize("stretch,told", [((49.99, 50), True), ((0, 0.1), True), ((40, 60), False), ((2, 98), False)])
def test_a_stretch_that_leaves_black_and_white(scene, tmp_path, stretch, told):
    said = succeed(quicklook("-b", 1, "-stretch", *stretch, "-size", SAMPLES, scene, tmp_path / "p.png")).err
    assert ("are within the stretch" in said and "wider -stretch" in said) == told, said
    shades = picture(tmp_path / "p.png")[0]
    assert (np.isin(shades, (0, 255)).mean() > 0.95) == told
    # Two values are shown unchanged.
    two = write_scene(tmp_path / "two.img", (values()[:1] > 500).astype("f4"))
    assert succeed(quicklook("-stretch", 2, 98, "-size", SAMPLES, two, tmp_path / "t.png")).err == ""


@pytest.mark.parametrize("classes,size,shown", [(4899, 100, 64), (4899, 2100, 104), (60, 100, 60)])
def test_the_legend_is_bounded(tmp_path, classes, size, shown):
    path = class_file(tmp_path / "many.tif", np.minimum(np.arange(4900), classes).reshape(100, 49),
                      [""] + [f"Class {k}" for k in range(1, classes + 1)])
    result = succeed(quicklook("-size", size, "-report", tmp_path / "r.json", path, tmp_path / "m.png"))
    assert picture(tmp_path / "m.png").shape[1] <= max(size, (64 + 1) * 20)
    report = json.loads((tmp_path / "r.json").read_text())
    assert report.get("legend_left_out", 0) == classes - shown
    assert (f"first {shown} of {classes} classes" in result.err and f"{classes - shown} are left out" in result.err) == (shown < classes)


def longest_black_run(row):
    best = count = 0
    for dark in (row == 0).all(axis=0):
        count = count + 1 if dark else 0
        best = max(best, count)
    return best


@pytest.mark.quick
def test_a_frame_for_a_report(scene, tmp_path):
    size = 10 * SAMPLES
    succeed(quicklook("-b", 1, "-size", size, scene, tmp_path / "plain.png"))
    succeed(quicklook("-b", 1, "-size", size, "-frame", scene, tmp_path / "frame.png"))
    succeed(quicklook("-b", 1, "-size", size, "-frame", "-title", "Pots dam", scene, tmp_path / "title.png"))
    plain, frame, title = (picture(tmp_path / f"{name}.png") for name in ("plain", "frame", "title"))
    # The panel is next to coordinates, with a white margin; a pixel without a value has a colour of its own.
    high, wide = plain.shape[1:]
    above = 10
    left = next(x for x in range(frame.shape[2] - wide)
                if np.array_equal(frame[:, above:above + high // 2, x + wide // 2], plain[:, :high // 2, wide // 2]))
    assert (frame[:, :, :10] == 255).all() and (frame[:, :, 10:left] == 0).any() and (frame[:, :3] == 255).all()
    hole = np.zeros((LINES, SAMPLES), bool)
    hole[5, 7] = True
    hole = np.kron(hole, np.ones((10, 10), bool))
    panel = frame[:, above:above + high, left:left + wide]
    assert (panel[:, ~hole] == plain[:, ~hole]).all() and (panel[:, hole] == np.array([[190], [210], [240]])).all()
    assert left > 6 * 12 and frame.shape[1] > high + 40 and frame.shape[2] > left + wide + 40
    # 500 m are a third of the panel at the most: pixels of 3 m.
    assert max(longest_black_run(frame[:, y]) for y in range(above + high + 20, frame.shape[1])) == round(500 / 3)
    assert title.shape[1] > frame.shape[1] and (title[:, -frame.shape[1]:, :frame.shape[2]] == frame).all()
    # The colour bar has all shades, from white to black.
    bar = frame[0, above:above + high, left + wide + 16 + 8].astype(int)
    assert bar[1] == 255 and bar[-2] == 0 and (np.diff(bar[1:-1]) <= 0).all()


@pytest.mark.quick
@pytest.mark.parametrize("words, times, dot", [(["-b", 1, "-frame", "-title", "A <b> & 'c'"], 4, 2), (["-b", 1, "-frame", "-title", "A"], 30, 4),
                                               (["-each", "-frame"], 4, 2), (["-each", "-frame"], 16, 6), ([], 4, 2)])
def test_an_svg_has_the_pixels_and_texts(words, times, dot, scene, tmp_path):
    """The embedded PNG is the picture without its letters, which are texts; by another reader of XML and PNG. Letters
    grow with the picture."""
    succeed(quicklook("-size", times * SAMPLES, *words, scene, tmp_path / "p.png"))
    succeed(quicklook("-size", times * SAMPLES, *words, scene, tmp_path / "p.svg"))
    root = xml.etree.ElementTree.parse(tmp_path / "p.svg").getroot()
    space = "{http://www.w3.org/2000/svg}"
    (image,) = root.findall(space + "image")
    (tmp_path / "inside.png").write_bytes(base64.b64decode(image.get("{http://www.w3.org/1999/xlink}href").split(",", 1)[1]))
    drawn, inside = picture(tmp_path / "p.png"), picture(tmp_path / "inside.png")
    assert drawn.shape == inside.shape == (3, int(image.get("height")), int(image.get("width")))
    texts = root.findall(space + "text")
    assert root.get("font-size") == str(10 * dot)
    differs = (drawn != inside).any(axis=0)
    assert (drawn[:, differs] == 0).all() and differs.any() == bool(texts) == bool(words)
    for text in texts:  # each text is at the position of its letters in the picture
        x, y, length = (int(text.get(key)) for key in ("x", "y", "textLength"))
        box = differs[max(0, y - length):y + 1, x - 7 * dot:x + 2 * dot] if text.get("transform") else differs[y - 7 * dot:y + 2 * dot, x:x + length]
        assert box.any() and len(text.text) * 6 * dot == length
        box[:] = False
    assert not differs.any(), "letters at the positions of the texts only"
    assert "-title" not in words or words[-1] in [text.text for text in texts]


@pytest.mark.skipif(gdal.GetDriverByName("PDF") is None or not gdal.GetDriverByName("PDF").GetMetadataItem("DCAP_OPEN"),
                    reason="GDAL reads no PDF here")
def test_a_pdf_has_the_pixels_and_texts(scene, tmp_path):
    """By another renderer, at a pixel of the page for each of the picture; and its table of offsets is right."""
    words = ["-size", 4 * SAMPLES, "-b", 1, "-frame", "-title", "A (b) \\ c"]
    succeed(quicklook(*words, scene, tmp_path / "p.png"))
    succeed(quicklook(*words, scene, tmp_path / "p.pdf"))
    data = (tmp_path / "p.pdf").read_bytes()
    table = data[int(data.split(b"startxref\n")[1].split()[0]):].split(b"\n")
    assert table[0] == b"xref" and table[1] == b"0 7"
    for number in range(1, 7):
        assert data[int(table[2 + number][:10]):].startswith(b"%d 0 obj\n" % number)
    drawn = picture(tmp_path / "p.png").astype(int)
    packed = data[data.index(b"FlateDecode"):].split(b"stream\n", 1)[1]
    inside = np.frombuffer(zlib.decompressobj().decompress(packed), np.uint8).reshape(*drawn.shape[1:], 3).transpose(2, 0, 1)
    letters = (drawn != inside).any(axis=0)
    assert letters.any() and (drawn[:, letters] == 0).all()
    page = gdal.OpenEx(str(tmp_path / "p.pdf"), open_options=["DPI=96"]).ReadAsArray()[:3].astype(int)
    assert page.shape == drawn.shape and np.abs(page - drawn)[:, ~letters].mean() < 20  # it smooths the noise
    assert (page[0, 2:20, :300] < 100).any() and (page[0, 2:20, -20:] == 255).all()  # the title
    assert b"(A \\(b\\) \\\\ c) Tj" in data


def test_a_frame_without_a_georeference_and_with_names(tmp_path):
    bare = write_scene(tmp_path / "bare.img", values(), wavelengths=NM, geotransform=None, epsg=None)
    succeed(quicklook("-size", SAMPLES, bare, tmp_path / "plain.png"))
    succeed(quicklook("-size", SAMPLES, "-frame", bare, tmp_path / "frame.png"))
    assert np.array_equal(picture(tmp_path / "plain.png"), picture(tmp_path / "frame.png"))
    for words in ([], ["-frame"]):
        succeed(quicklook("-each", "-size", 4 * SAMPLES, *words, bare, tmp_path / f"each{len(words)}.png"))
    plain, named = picture(tmp_path / "each0.png"), picture(tmp_path / "each1.png")
    wide = 4 * SAMPLES
    assert plain.shape[1] == named.shape[1] and (plain[:, 30:4 * LINES, :wide] == named[:, 30:4 * LINES, :wide]).all()
    assert (named[:, 1, :60] == 255).all()
    for first_line in (0, 4 * LINES + 8):  # a colour bar next to each panel
        bars = [x for x in range(named.shape[2] - 24) if (named[:, first_line, x:x + 24] == 0).all()
                and (named[:, first_line:first_line + 4 * LINES, x] == 0).all() and (named[:, first_line + 1, x + 12] > 250).all()]
        assert len(bars) == 3
    turned = write_scene(tmp_path / "turned.img", values(), wavelengths=NM, geotransform=(4e5, 20, 10, 5.8e6, 10, -20), epsg=32633)
    succeed(quicklook("-size", SAMPLES, "-frame", turned, tmp_path / "t.png"))
    assert picture(tmp_path / "t.png").shape[2] >= SAMPLES and picture(tmp_path / "t.png").shape[1] == LINES + 40


def texts_of(path):
    """Returns the texts of an .svg with their boxes: [(text, left, top, right, bottom)]."""
    root = xml.etree.ElementTree.parse(path).getroot()
    dot = int(root.get("font-size")) // 10
    found = []
    for text in root.findall("{http://www.w3.org/2000/svg}text"):
        x, y, length = (int(text.get(key)) for key in ("x", "y", "textLength"))
        found.append((text.text, x, y - 7 * dot, x + length, y + 2 * dot))
    return found


def named_points(path, rows):
    path.write_text("sample,line,label\n" + "".join(f"{x},{y},{name}\n" for x, y, name in rows))
    return path


def test_names_cover_neither_names_nor_rings(scene, tmp_path):
    rows = [(30 + dx, 30 + dy, name) for dx, dy, name in [(0, 0, "soil"), (2, 0, "so soil"), (0, 3, "wheat"), (2, 3, "roof"), (1, 1, "lake")]]
    path = named_points(tmp_path / "in" / "near.csv", rows)
    options = ["-size", 4 * SAMPLES, "-points", path, "-point-names", "label"]
    result = succeed(quicklook(*options, "-report", tmp_path / "r.json", scene, tmp_path / "p.svg"))
    boxes = texts_of(tmp_path / "p.svg")
    assert len(boxes) >= 3 and {box[0] for box in boxes} <= {name for _, _, name in rows}
    squares = [("ring", 4 * x + 2 - 6, 4 * y + 2 - 6, 4 * x + 2 + 6, 4 * y + 2 + 6) for x, y, _ in rows]
    for k, (_, left, top, right, bottom) in enumerate(boxes):
        assert left >= 0 and top >= 0 and right <= 4 * SAMPLES and bottom <= 4 * LINES
        for name, x0, y0, x1, y1 in boxes[:k] + squares:
            assert right <= x0 or x1 <= left or bottom <= y0 or y1 <= top, name
    left_out = len(rows) - len(boxes)
    assert json.loads((tmp_path / "r.json").read_text()).get("names_left_out", 0) == left_out
    # Without space, names are left out and counted.
    crowd = named_points(tmp_path / "in" / "crowd.csv", [(x, y, f"n{x}x{y}") for x in range(20, 32) for y in range(20, 32)])
    result = succeed(quicklook("-size", 4 * SAMPLES, "-points", crowd, "-point-names", "label", "-each", "-b", 1, "-b", 2, scene, tmp_path / "c.svg"))
    drawn = len(texts_of(tmp_path / "c.svg")) // 2
    assert 0 < drawn < 144 and f"{144 - drawn} names of {crowd} are left out" in result.out


def test_rings_grow_with_the_picture(scene, tmp_path):
    path = points(tmp_path / "in" / "p.gpkg", [(PLACE[0] + 30 * 20.4, PLACE[3] - 30 * 12.7)])
    succeed(quicklook("-size", 30 * SAMPLES, "-points", path, scene, tmp_path / "rings.png"))
    got = picture(tmp_path / "rings.png")
    y, x = np.mgrid[:got.shape[1], :got.shape[2]]
    r = np.hypot(x + 0.5 - 30 * 20.5, y + 0.5 - 30 * 12.5)
    assert np.all(got[:, (r >= 6.4) & (r < 9.2)] == np.array([255, 230, 26])[:, None]) and np.all(got[:, (r >= 9.2) & (r < 11.2)] == 0)


TITLE = "Felder und Wälder — Übersicht, Größe"


def test_texts_keep_their_letters(scene, class_map, tmp_path):
    path = named_points(tmp_path / "in" / "p.csv", [(30, 30, "Größe")])
    words = ["-size", 8 * SAMPLES, "-frame", "-title", TITLE, "-points", path, "-point-names", "label"]
    for name in ("p.svg", "p.pdf", "p.png"):
        assert succeed(quicklook(*words, scene, tmp_path / name)).err == ""
    texts = [box[0] for box in texts_of(tmp_path / "p.svg")]
    assert TITLE in texts and "Größe" in texts
    pdf = (tmp_path / "p.pdf").read_bytes()
    assert b"(" + TITLE.encode("cp1252") + b") Tj" in pdf and "(Größe) Tj".encode("cp1252") in pdf and b"/WinAnsiEncoding" in pdf
    words[words.index(TITLE)] = "Felder und Waelder - Uebersicht, Groesse"
    succeed(quicklook(*words, scene, tmp_path / "ascii.png"))
    assert np.array_equal(picture(tmp_path / "p.png"), picture(tmp_path / "ascii.png"))
    succeed(quicklook("-size", 4 * SAMPLES, class_map[0], tmp_path / "m.svg"))
    assert "3 Größe" in [box[0] for box in texts_of(tmp_path / "m.svg")]
    # Letters without a substitute: only an .svg has them.
    for name in ("q.svg", "q.pdf", "q.png"):
        said = succeed(quicklook("-title", "Лес 7 Łódź", scene, tmp_path / name)).err
        shown = "??? 7 L\u00f3dz" if name.endswith("pdf") else "??? 7 Lodz"
        assert (f"shown as '?', first in '{shown}'" in said) == (not name.endswith("svg")), said
    assert "Лес 7 Łódź" in [box[0] for box in texts_of(tmp_path / "q.svg")]


def test_letters_with_descenders(scene, tmp_path):
    below = {}
    for letter in "gpqyjabdo":
        succeed(quicklook("-overwrite", "-title", letter, "-b", 1, scene, tmp_path / "p.png"))
        below[letter] = (picture(tmp_path / "p.png")[0, 4 + 14:4 + 18, :40] == 0).any()
    assert {letter for letter, found in below.items() if found} == set("gpqyj")


def test_coordinates_and_values_are_named(scene, cube, tmp_path):
    succeed(quicklook("-frame", "-b", 1, scene, tmp_path / "p.svg"))
    texts = [box[0] for box in texts_of(tmp_path / "p.svg")]
    assert texts.count("WGS 84 / UTM zone 33N (m)") == 1 and "value at 450 nm" in texts
    degrees = write_scene(tmp_path / "in" / "d.tif", cube, "GTiff", nodata=-9999, geotransform=(13, 1e-4, 0, 52, 0, -1e-4), epsg=4326)
    dataset = gdal.Open(str(degrees), gdal.GA_Update)
    dataset.GetRasterBand(1).SetDescription("abundance of roof")
    dataset.GetRasterBand(1).SetUnitType("%")
    dataset = None
    for name, band in (("d.svg", 1), ("e.svg", 2)):
        succeed(quicklook("-frame", "-b", band, degrees, tmp_path / name))
    assert {"WGS 84 (degrees)", "abundance of roof (%)"} <= {box[0] for box in texts_of(tmp_path / "d.svg")}
    assert "value of band 2" in [box[0] for box in texts_of(tmp_path / "e.svg")]


def test_equal_stretches_share_a_colour_bar(cube, tmp_path):
    for name, factor in (("same", 1), ("other", 2)):
        data = np.stack([cube[0], cube[0][::-1] * factor])
        path = write_scene(tmp_path / f"{name}.tif", data, "GTiff", nodata=-9999 if factor == 1 else None)
        succeed(quicklook("-each", "-frame", "-size", 4 * SAMPLES, path, tmp_path / f"{name}.svg"))
    same, other = ([box[0] for box in texts_of(tmp_path / f"{name}.svg")] for name in ("same", "other"))
    assert same.count("value") == 1 and "value of band 1" not in same
    assert other.count("value of band 1") == other.count("value of band 2") == 1


def test_a_long_title_is_broken(scene, tmp_path):
    title = " ".join(f"word{k}" for k in range(20))
    bare = write_scene(tmp_path / "bare.img", values(), geotransform=None, epsg=None)
    for name, src, words in (("a", bare, ["-frame"]), ("b", scene, ["-frame"]), ("c", bare, [])):
        for size in (8 * SAMPLES, SAMPLES):
            succeed(quicklook("-overwrite", "-size", size, *words, "-title", title, src, tmp_path / f"{name}.svg"))
            image = xml.etree.ElementTree.parse(tmp_path / f"{name}.svg").getroot()
            lines = [box for box in texts_of(tmp_path / f"{name}.svg") if box[0].startswith("word")]
            assert len(lines) == 3 and all(left >= 10 and right <= int(image.get("width")) for _, left, _, right, _ in lines)
            shown = " ".join(line[0] for line in lines)
            assert title.startswith(shown.removesuffix("..")) and shown.endswith("..") == (shown != title)
            assert (shown == title) == (size > SAMPLES)
            assert all(b[2] - a[2] == 20 for a, b in zip(lines, lines[1:]))
