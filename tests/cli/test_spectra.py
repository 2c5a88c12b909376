# SPDX-License-Identifier: MIT
"""gdal_hsi_spectra, compared with NumPy: means and deviations of classes from rasters, polygons and points, single
spectra, the forms of the output, holes, tiles and threads, errors."""

import json
import re

import numpy as np
import pytest
from osgeo import gdal, ogr, osr

from conftest import UTM, assert_untouched, cube, envi_header, first_error, run, succeed, write_scene

BANDS, LINES, SAMPLES = 12, 30, 40
NM = [400 + 50 * b for b in range(BANDS)]


def spectra(*args, **kwargs):
    return run("gdal_hsi_spectra", *args, **kwargs)


@pytest.fixture
def data():
    values = cube(SAMPLES, LINES, BANDS).astype("f4")
    values[:, 4, 5] = -9999
    values[3, 10, 10] = np.nan
    values[:, 20, 3:9] = 0
    return values


@pytest.fixture
def scene(tmp_path, data):
    return write_scene(tmp_path / "scene.img", data, nodata=-9999, wavelengths=NM, fwhm=[9.5] * BANDS, epsg=UTM)


@pytest.fixture
def classes():
    y, x = np.mgrid[0:LINES, 0:SAMPLES]
    return np.where((x + y) % 3 == 0, 0, 1 + (y // 8) * 7 % 5).astype("u1")


@pytest.fixture
def labels(tmp_path, classes):
    write_scene(tmp_path / "labels.tif", classes[None], "GTiff", "u1", epsg=UTM)
    dataset = gdal.Open(str(tmp_path / "labels.tif"), gdal.GA_Update)
    dataset.GetRasterBand(1).SetCategoryNames(["", "meadow", "", "water, deep"])
    dataset = None
    return tmp_path / "labels.tif"


def valid(data):
    with np.errstate(invalid="ignore"):
        return np.isfinite(data).all(axis=0) & (data != -9999).all(axis=0) & (data != 0).any(axis=0)


def naive(data, mask):
    values = data[:, mask & valid(data)].astype(np.float64)
    return values.mean(axis=1), values.std(axis=1, ddof=1)


def csv_of(path):
    lines = path.read_text().splitlines()
    names, cells = [], []
    for line in lines:
        row, inside, cell = [], False, ""
        for c in line:
            if c == '"':
                inside = not inside
            elif c == "," and not inside:
                row.append(cell)
                cell = ""
            else:
                cell += c
        cells.append(row + [cell])
    names = cells[0]
    table = np.array([[float(v) for v in row] for row in cells[1:]])
    return {name: table[:, k] for k, name in enumerate(names)}


def name_of(value):
    return {1: "meadow", 3: "water, deep"}.get(value, f"Class {value}")


@pytest.mark.quick
def test_means_and_deviations(scene, labels, data, classes, tmp_path):
    out = tmp_path / "o.csv"
    succeed(spectra("-kind", "deviation", scene, labels, out))
    found = csv_of(out)
    assert list(found["wavelength"]) == NM
    for value in np.unique(classes[classes > 0]):
        mean, deviation = naive(data, classes == value)
        assert np.allclose(found[name_of(value)], mean, rtol=1e-8)
        assert np.allclose(found[name_of(value) + " deviation"], deviation, rtol=1e-8)
    assert len(found) == 2 + 2 * len(np.unique(classes[classes > 0]))


@pytest.mark.parametrize("options", [("-tile", 7, 5), ("-threads", 1), ("-threads", 4, "-tile", 40, 3), ("-memory", "64MB")])
def test_the_same_bytes(scene, labels, tmp_path, options):
    succeed(spectra("-kind", "deviation", scene, labels, tmp_path / "a.geojson"))
    succeed(spectra("-kind", "deviation", *options, scene, labels, tmp_path / "b.geojson"))
    assert (tmp_path / "a.geojson").read_bytes() == (tmp_path / "b.geojson").read_bytes()


@pytest.mark.quick
def test_envi_library(scene, labels, data, classes, tmp_path):
    succeed(spectra(scene, labels, tmp_path / "o.sli"))
    header = envi_header(tmp_path / "o.sli")
    values = np.fromfile(tmp_path / "o.sli", "f4").reshape(-1, BANDS)
    present = np.unique(classes[classes > 0])
    assert [float(w) for w in header["wavelength"]] == NM and set(header["fwhm"]) == {"9.5"}
    for row, value in zip(values, present):
        assert np.allclose(row, naive(data, classes == value)[0], rtol=1e-6)
    # The tools that read libraries also read it.
    succeed(run("gdal_hsi_unmix", scene, tmp_path / "o.sli", tmp_path / "o.tif"))


def curves_of(path):
    """Returns the polylines of a plot, by colour and dashes, without the legend's."""
    found = []
    for attributes in re.findall(r"<polyline ([^>]*)/>", path.read_text()):
        points = np.array([[float(v) for v in point.split(",")] for point in re.search("points='([^']*)'", attributes)[1].split()])
        if re.search("stroke-width='3'", attributes) is None:
            found.append((re.search("stroke='([^']*)'", attributes)[1], "dasharray" in attributes, points))
    return found


def axes_of(path):
    """Converts pixels to values, by the ticks."""
    text = path.read_text()
    ticks = [(float(x), float(y), anchor, float(v)) for x, y, anchor, v in
             re.findall(r"<text x='([\d.]+)' y='([\d.]+)' text-anchor='(\w+)'>(-?[\d.e+]+)</text>", text)]
    horizontal = sorted((x, v) for x, y, anchor, v in ticks if anchor == "middle")
    vertical = sorted((y - 5, v) for x, y, anchor, v in ticks if anchor == "end")
    return [np.polyfit(*zip(*pairs), 1) for pairs in (horizontal, vertical)]


@pytest.mark.quick
def test_plot_of_classes(scene, labels, data, classes, tmp_path):
    plot = tmp_path / "o.svg"
    succeed(spectra("-kind", "deviation", "-b", "1-5,8-12", "-plot", plot, scene, labels))
    present = np.unique(classes[classes > 0])
    curves = curves_of(plot)
    assert len(curves) == 2 * len(present)  # omitted bands leave a gap
    x, y = axes_of(plot)
    kept = [0, 1, 2, 3, 4, 7, 8, 9, 10, 11]
    for k, value in enumerate(present):
        mean = naive(data[kept], classes == value)[0]
        assert curves[2 * k][0] == curves[2 * k + 1][0]
        for part, (bands, values) in zip(curves[2 * k:2 * k + 2], (([0, 1, 2, 3, 4], mean[:5]), ([7, 8, 9, 10, 11], mean[5:]))):
            assert np.allclose(np.polyval(x, part[2][:, 0]), np.array(NM)[bands], atol=1)
            assert np.allclose(np.polyval(y, part[2][:, 1]), values, atol=np.ptp(values) / 50 + 1)
    text = plot.read_text()
    assert text.count("<polygon") == 2 * len(present) and "wavelength (nm)" in text and "stored value" in text
    for value in present:
        assert f">{name_of(value)}<" in text
    succeed(spectra("-plot", tmp_path / "o.png", scene, labels, tmp_path / "o.csv"))  # also of a library
    assert gdal.Open(str(tmp_path / "o.png")).RasterCount == 3 and (tmp_path / "o.csv").exists()
    succeed(spectra("-kind", "every", "-plot", tmp_path / "e.svg", scene, labels))
    assert len({colour for colour, _, _ in curves_of(tmp_path / "e.svg")}) == len(present)
    for value in present:  # the legend has the classes, not their pixels
        assert f">{name_of(value)}<" in (tmp_path / "e.svg").read_text()


@pytest.mark.quick
def test_plot_and_copy_of_a_library(tmp_path):
    nm = np.arange(2000, 2400, 10)
    depth = 0.3 * np.exp(-(((nm - 2200) / 30) ** 2))
    rows = {"clay <x>": (0.5 + (nm - 2000) / 4000) * (1 - depth), "flat": np.full(len(nm), 0.2)}
    rows["clay <x>"][5] = np.nan
    lines = ["wavelength (nm)," + ",".join(rows)] + [",".join([str(w)] + ["" if np.isnan(v[i]) else repr(float(v[i])) for v in rows.values()])
                                                for i, w in enumerate(nm)]
    library, plot = tmp_path / "l.csv", tmp_path / "l.svg"
    library.write_text("\n".join(lines) + "\n")
    succeed(spectra("-plot", plot, "-range", "2100-2300nm", "-out", tmp_path / "l.sli", library))
    curves, text = curves_of(plot), plot.read_text()
    solid = [curve for curve in curves if not curve[1]]
    assert [len(curve[2]) for curve in solid][:3] == [5, 34, 40] and "clay &#60;x&#62;" in text
    position, height = re.search(r">(\d+) nm, ([\d.]+)<", text).groups()
    assert abs(int(position) - 2200) < 3 and abs(float(height) - 0.3) < 0.02
    assert len([curve for curve in curves if curve[1]]) == 2  # one continuum per spectrum
    assert envi_header(tmp_path / "l.sli")["spectra names"] == list(rows)
    succeed(spectra("-plot", tmp_path / "one.svg", "-spectrum", "flat", library))
    assert "clay" not in (tmp_path / "one.svg").read_text()


def test_a_title_above_the_plot(tmp_path):
    (tmp_path / "l.csv").write_text("wavelength (nm),Größe\n400,1\n500,2\n600,1\n", encoding="utf-8")
    for title, lines in (("", 0), ("Wälder — Größe", 1), (" ".join(["Übersicht"] * 12), 2), (" ".join(["Übersicht"] * 40), 3)):
        result = succeed(spectra("-overwrite", "-title", title, "-plot", tmp_path / "p.svg", tmp_path / "l.csv"))
        text = (tmp_path / "p.svg").read_text(encoding="utf-8")
        above = [line for y, line in re.findall(r"<text x='100.00' y='([0-9.]+)' text-anchor='start'>(.*)</text>", text) if float(y) < 30 + 22 * lines]
        assert len(above) == lines and ">Größe<" in text
        assert " ".join(above) == title or (lines == 3 and title.startswith(" ".join(above)[:-2]))
        assert f"height='{600 + 22 * lines}'" in text
    result = succeed(spectra("-title", "Wälder", "-plot", tmp_path / "p.png", tmp_path / "l.csv"))
    assert "done" not in result.out and result.err == ""  # no progress of the picture


def test_plot_of_a_library_with_deviations(scene, labels, tmp_path):
    succeed(spectra("-kind", "deviation", "-plot", tmp_path / "a.svg", scene, labels, tmp_path / "l.sli"))
    succeed(spectra("-plot", tmp_path / "b.svg", tmp_path / "l.sli"))
    areas = [re.findall("<polygon[^>]*>", (tmp_path / f"{name}.svg").read_text()) for name in "ab"]
    assert areas[0] == areas[1] and len(areas[0]) > 1 and "deviation" not in (tmp_path / "b.svg").read_text()


@pytest.mark.parametrize("words, code, message", [
    (["{scene}", "{labels}"], 2, "out is missing"),
    (["-title", "x", "-out", "o.csv", "{library}"], 2, "-title requires -plot"),
    (["-plot", "o.svg", "{scene}"], 2, "labels is missing"),
    (["-plot", "o.jpg", "{scene}", "{labels}"], 2, "'o.jpg' does not end in .svg or .png"),
    (["-range", "500-600nm", "{scene}", "{labels}", "o.csv"], 2, "-range requires -plot"),
    (["-plot", "o.svg", "-kind", "every", "{library}"], 2, "-kind requires labels"),
    (["-plot", "o.svg", "-field", "x", "{library}"], 2, "-field applies to labels, but no labels are given"),
    (["-plot", "o.svg", "-b", "1-3", "{library}"], 2, "-b cannot be used with a spectral library"),
    (["-plot", "o.svg", "-spectrum", "none", "{library}"], 1, "none"),
    (["-plot", "there.svg", "{scene}", "{labels}"], 1, "there.svg"),
])
def test_plots_refused(scene, labels, tmp_path, words, code, message):
    (tmp_path / "l.csv").write_text("wavelength (nm),a\n400,1\n500,2\n600,1\n")
    (tmp_path / "there.svg").write_text("mine")
    words = [word.format(scene=scene, labels=labels, library=tmp_path / "l.csv") for word in words]
    with assert_untouched(tmp_path):
        result = spectra(*words, cwd=tmp_path)
    assert result.code == code and message in first_error(result), result.err


def test_every_spectrum(scene, labels, data, classes, tmp_path):
    succeed(spectra("-kind", "every", scene, labels, tmp_path / "o.geojson"))
    features = json.loads((tmp_path / "o.geojson").read_text())["features"]
    mask = (classes > 0) & valid(data)
    assert len(features) == mask.sum()
    for properties in (feature["properties"] for feature in features):
        place = f"(line {properties['line']} sample {properties['sample']})"
        assert properties["name"] == f"{name_of(properties['class'])} {place}"
    to_degrees = osr.CoordinateTransformation(utm(), degrees())
    for feature in features:
        line, sample = feature["properties"]["line"], feature["properties"]["sample"]
        assert mask[line, sample] and feature["properties"]["class"] == classes[line, sample]
        assert np.array_equal(np.float32(feature["properties"]["profiles"]["y"]), data[:, line, sample])
        assert feature["properties"]["profiles"]["x"] == NM and feature["properties"]["profiles"]["xUnit"] == "nm"
        lon, lat, _ = to_degrees.TransformPoint(500000 + 20 * (sample + 0.5), 4480000 - 20 * (line + 0.5))
        assert np.allclose(feature["geometry"]["coordinates"], [lon, lat], atol=1e-7)


def utm():
    srs = osr.SpatialReference()
    srs.ImportFromEPSG(32616)
    return srs


def degrees():
    srs = osr.SpatialReference()
    srs.ImportFromEPSG(4326)
    srs.SetAxisMappingStrategy(osr.OAMS_TRADITIONAL_GIS_ORDER)
    return srs


def vectors(path, shapes, kind):
    source = ogr.GetDriverByName("GPKG").CreateDataSource(str(path))
    layer = source.CreateLayer("shapes", srs=utm(), geom_type=kind)
    layer.CreateField(ogr.FieldDefn("crop", ogr.OFTString))
    for name, wkt in shapes:
        feature = ogr.Feature(layer.GetLayerDefn())
        feature["crop"] = name
        feature.SetGeometry(ogr.CreateGeometryFromWkt(wkt))
        layer.CreateFeature(feature)
    return path


def at(sample, line):
    return 500000 + 20 * sample, 4480000 - 20 * line


def test_polygons(scene, data, tmp_path):
    def box(x, y, w, h):
        corners = [at(x, y), at(x + w, y), at(x + w, y + h), at(x, y + h), at(x, y)]
        return "POLYGON((" + ",".join(f"{a} {b}" for a, b in corners) + "))"

    shapes = vectors(tmp_path / "s.gpkg", [("maize", box(2, 3, 10, 9)), ("oats", box(20, 10, 5, 15))], ogr.wkbPolygon)
    succeed(spectra("-field", "crop", "-kind", "deviation", scene, shapes, tmp_path / "o.csv"))
    found = csv_of(tmp_path / "o.csv")
    for name, window in (("maize", (slice(3, 12), slice(2, 12))), ("oats", (slice(10, 25), slice(20, 25)))):
        mask = np.zeros((LINES, SAMPLES), bool)
        mask[window] = True
        mean, deviation = naive(data, mask)
        assert np.allclose(found[name], mean, rtol=1e-8) and np.allclose(found[name + " deviation"], deviation, rtol=1e-8)


def test_points(scene, data, tmp_path):
    points = [("a", (7, 8)), ("b", (30, 21))]
    shapes = vectors(tmp_path / "p.gpkg", [(n, "POINT(%r %r)" % at(x + 0.5, y + 0.5)) for n, (x, y) in points], ogr.wkbPoint)
    succeed(spectra("-field", "crop", "-kind", "deviation", scene, shapes, tmp_path / "o.csv"))
    found = csv_of(tmp_path / "o.csv")
    assert set(found) == {"band", "wavelength", "a", "b"}  # a single pixel has no deviation
    for name, (x, y) in points:
        assert np.allclose(found[name], data[:, y, x], rtol=1e-8)


def test_bands_and_windows(scene, labels, data, classes, tmp_path):
    succeed(spectra("-b", "500-700nm", scene, labels, tmp_path / "o.csv"))
    found = csv_of(tmp_path / "o.csv")
    assert list(found["wavelength"]) == [500, 550, 600, 650, 700]
    part = data[2:7]
    assert np.allclose(found["meadow"], part[:, (classes == 1) & valid(part)].astype("f8").mean(axis=1), rtol=1e-8)


def test_the_srs_of_labels_and_of_the_scene_are_not_confused(scene, tmp_path, classes):
    write_scene(tmp_path / "l.tif", classes[None], "GTiff", "u1")
    result = spectra(scene, tmp_path / "l.tif", tmp_path / "o.csv")
    assert result.code == 1 and "from the SRS the local 'local' to the scene's SRS 'WGS 84 / UTM zone 16N'" in first_error(result)


def test_a_class_without_values_is_told(scene, tmp_path):
    classes = np.zeros((1, LINES, SAMPLES), "u1")
    classes[0, 4, 5] = 1
    classes[0, 8, 8:12] = 2
    write_scene(tmp_path / "l.tif", classes, "GTiff", "u1", epsg=UTM)
    result = succeed(spectra(scene, tmp_path / "l.tif", tmp_path / "o.csv"))
    assert "its 1 labelled pixel has no valid spectrum" in result.err
    assert list(csv_of(tmp_path / "o.csv")) == ["band", "wavelength", "Class 2"]
    classes[0, 8] = 0
    write_scene(tmp_path / "l.tif", classes, "GTiff", "u1", epsg=UTM)
    result = spectra("-overwrite", scene, tmp_path / "l.tif", tmp_path / "o.csv")
    assert result.code == 1 and "no labelled pixel has a valid spectrum" in result.err


@pytest.mark.quick
def test_what_is_refused(scene, labels, tmp_path):
    (tmp_path / "there.csv").write_text("x")
    with assert_untouched(tmp_path):
        result = spectra(scene, labels, tmp_path / "o.xls")
        assert result.code == 2
        assert all(form in first_error(result) for form in (".sli", ".csv", ".geojson")), first_error(result)
        assert spectra(scene, labels, tmp_path / "there.csv").code == 1
        assert spectra("-overwrite", scene, labels, scene).code == 2
        result = spectra(scene, tmp_path / "none.tif", tmp_path / "o.csv")
        assert result.code == 1
        succeed(spectra("-dry-run", scene, labels, tmp_path / "o.csv"))
