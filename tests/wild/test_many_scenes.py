# SPDX-License-Identifier: MIT
"""-with: targets and endmembers of several scenes equal those of one scene with all their lines, each reported with its
own scene."""
import csv
import json

import numpy as np
import pytest
from conftest import cube, refuse, run, succeed, write_utm_scene as write_scene
from osgeo import gdal, ogr
BANDS = 10
WAVELENGTHS = [450 + 40 * b for b in range(BANDS)]
HEIGHTS = (23, 9, 40)


@pytest.fixture(scope="module", params=["u2", "f4"])
def campaign(request, tmp_path_factory):
    """Makes three flight lines side by side on one grid, and one scene of all lines, one below another."""
    folder = tmp_path_factory.mktemp("lines")
    dtype = request.param
    data = cube(31, sum(HEIGHTS), BANDS, seed=7, scale=5000.0 if dtype == "u2" else 1.0, noise=0.05)
    data = np.round(data) if dtype == "u2" else data
    for k in range(3):  # one unique pixel in each flight line
        data[k::3, sum(HEIGHTS[:k]) + 2, 10 + k] *= 4
    data[:, 12, 4] = 0
    write_scene(folder / "all.img", data, dtype=dtype, wavelengths=WAVELENGTHS)
    first, lines = 0, []
    for k, height in enumerate(HEIGHTS):
        lines.append(folder / f"line{k}.img")
        write_scene(lines[-1], data[:, first:first + height], dtype=dtype, wavelengths=WAVELENGTHS,
                    geotransform=(500000 + 1000 * k, 20, 0, 4480000, 0, -20))
        first += height
    return folder / "all.img", lines, data


def points(path):
    dataset = gdal.OpenEx(str(path))  # the dataset must outlive its layer
    layer = dataset.GetLayer(0)
    return [{**{layer.GetLayerDefn().GetFieldDefn(k).GetName(): feature.GetField(k) for k in range(feature.GetFieldCount())},
             "x": feature.GetGeometryRef().GetX(), "y": feature.GetGeometryRef().GetY()} for feature in layer]


def place_in_all(lines, point):
    return sum(HEIGHTS[:[str(line) for line in lines].index(point["scene"])]) + point["line"], point["sample"]


SEARCHES = {
    "osp": ("gdal_hsi_atdca", ["-device", "cpu", "-t", 7]),
    "gs": ("gdal_hsi_atdca", ["-device", "cpu", "-t", 7, "-method", "gs"]),
    "auto": ("gdal_hsi_atdca", ["-device", "cpu", "-t", "auto"]),
    "nfindr": ("gdal_hsi_endmembers", ["-t", 5]),
    "vca": ("gdal_hsi_endmembers", ["-t", 5, "-method", "vca", "-seed", 3]),
    "atdca": ("gdal_hsi_endmembers", ["-t", 5, "-method", "atdca"]),
    "residual": ("gdal_hsi_endmembers", ["-t", 4, "-residual"]),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_the_same_as_of_one_scene_of_all_lines(tmp_path, campaign, name):
    whole, lines, data = campaign
    tool, options = SEARCHES[name]
    with_others = [word for line in lines[1:] for word in ("-with", line)]
    succeed(run(tool, "-q", *options, "-spectra", tmp_path / "one.csv", "-report", tmp_path / "one.json", whole, tmp_path / "one.gpkg"))
    for tile in [], ["-tile", 31, 5], ["-threads", 3]:
        succeed(run(tool, "-q", "-overwrite", *options, *tile, *with_others, "-spectra", tmp_path / "many.csv", "-report", tmp_path / "many.json",
                    lines[0], tmp_path / "many.gpkg"))
        one, many = points(tmp_path / "one.gpkg"), points(tmp_path / "many.gpkg")
        assert [(p["line"], p["sample"]) for p in one] == [place_in_all(lines, p) for p in many]
        assert [p["score"] for p in one] == [p["score"] for p in many]
        # Each target is in its own scene.
        for p in many:
            k = [str(line) for line in lines].index(p["scene"])
            assert (p["x"], p["y"]) == (500000 + 1000 * k + 20 * (p["sample"] + 0.5), 4480000 - 20 * (p["line"] + 0.5))
        rows = [[list(csv.reader(open(tmp_path / f"{kind}.csv")))] for kind in ("one", "many")]
        assert [row[1:] for row in rows[0][0][1:]] == [row[1:] for row in rows[1][0][1:]]
        reports = [json.loads((tmp_path / f"{kind}.json").read_text()) for kind in ("one", "many")]
        assert reports[0]["valid_pixels"] == reports[1]["valid_pixels"] == sum(HEIGHTS) * 31 - 1
        assert [t["scene"] for t in reports[1]["targets"]] == [p["scene"] for p in many]
        if name == "residual":
            assert reports[0]["residual"] == reports[1]["residual"]
    assert name == "auto" or len({p["scene"] for p in many}) > 1


def test_a_range_of_numbers(tmp_path, campaign):
    whole, lines, _ = campaign
    succeed(run("gdal_hsi_endmembers", "-q", "-t", "2-6", "-plot", tmp_path / "one.csv", whole, tmp_path / "one.gpkg"))
    succeed(run("gdal_hsi_endmembers", "-q", "-t", "2-6", "-with", lines[1], "-with", lines[2], "-plot", tmp_path / "many.csv", lines[0],
                tmp_path / "many.gpkg"))
    one, many = (list(csv.DictReader(open(tmp_path / f"{kind}.csv"))) for kind in ("one", "many"))
    for a, b in zip(one, many):
        scene = b.pop("scene")
        b["line"] = str(int(b["line"]) + sum(HEIGHTS[:[str(line) for line in lines].index(scene)]))
        assert a == b


def test_a_list_narrower_scenes_and_other_orders_of_bands(tmp_path, campaign):
    whole, lines, data = campaign
    dtype = "u2" if data.max() > 100 else "f4"
    narrow, wide = data[:, 23:32, :20], data[:, :23]
    both = np.zeros((BANDS, 32, 31))
    both[:, :23], both[:, 23:, :20] = wide, narrow
    write_scene(tmp_path / "both.img", both, dtype=dtype, wavelengths=WAVELENGTHS)
    write_scene(tmp_path / "narrow.img", narrow[::-1], dtype=dtype, wavelengths=WAVELENGTHS[::-1])
    (tmp_path / "others.txt").write_text(f"# one\n{tmp_path}/narrow.img\n")
    succeed(run("gdal_hsi_endmembers", "-q", "-t", 5, tmp_path / "both.img", tmp_path / "one.gpkg"))
    succeed(run("gdal_hsi_endmembers", "-q", "-t", 5, "-with", f"@{tmp_path}/others.txt", lines[0], tmp_path / "many.gpkg"))
    one, many = points(tmp_path / "one.gpkg"), points(tmp_path / "many.gpkg")
    assert [(p["line"], p["sample"]) for p in one] == [(p["line"] + (23 if "narrow" in p["scene"] else 0), p["sample"]) for p in many]


def test_a_mask_holds_for_all_of_them(tmp_path, campaign):
    """One file of features over the whole campaign."""
    whole, lines, data = campaign
    driver = ogr.GetDriverByName("GPKG")
    dataset, first_line = driver.CreateDataSource(str(tmp_path / "clouds.gpkg")), gdal.Open(str(lines[0]))
    layer = dataset.CreateLayer("clouds", first_line.GetSpatialRef())
    for k in range(3):
        x, y = 500000 + 1000 * k, 4480000
        feature = ogr.Feature(layer.GetLayerDefn())
        feature.SetGeometry(ogr.CreateGeometryFromWkt(f"POLYGON(({x} {y},{x + 200} {y},{x + 200} {y - 100},{x} {y - 100},{x} {y}))"))
        layer.CreateFeature(feature)
    dataset = layer = feature = None
    cleared, first = data.copy(), 0
    for height in HEIGHTS:
        cleared[:, first:first + 5, :10] = 0
        first += height
    write_scene(tmp_path / "cleared.img", cleared, dtype="u2" if data.max() > 100 else "f4", wavelengths=WAVELENGTHS)
    options = ["-q", "-device", "cpu", "-t", 6]
    succeed(run("gdal_hsi_atdca", *options, tmp_path / "cleared.img", tmp_path / "one.gpkg"))
    succeed(run("gdal_hsi_atdca", *options, "-with", lines[1], "-with", lines[2], "-mask-exclude", tmp_path / "clouds.gpkg", lines[0],
                tmp_path / "many.gpkg"))
    assert [(p["line"], p["sample"]) for p in points(tmp_path / "one.gpkg")] == [place_in_all(lines, p) for p in points(tmp_path / "many.gpkg")]


def test_what_is_refused(tmp_path, campaign):
    whole, lines, data = campaign
    dtype = "u2" if data.max() > 100 else "f4"
    write_scene(tmp_path / "other.img", data[:5], dtype=dtype, wavelengths=[2000 + 10 * b for b in range(5)])
    write_scene(tmp_path / "far.img", data[:, :5], dtype=dtype, wavelengths=WAVELENGTHS, epsg=32733)
    (tmp_path / "empty.txt").write_text("\n")
    write_scene(tmp_path / "scaled.tif", data[:, :5], driver="GTiff", dtype=dtype, wavelengths=WAVELENGTHS)
    scaled = gdal.Open(str(tmp_path / "scaled.tif"), gdal.GA_Update)
    for b in range(BANDS):
        scaled.GetRasterBand(b + 1).SetScale(2)
    scaled = None

    def fails(code, text, *options):
        refuse(code, text, "gdal_hsi_endmembers", "-q", "-t", 4, *options, lines[0], tmp_path / "o.gpkg", untouched=[tmp_path])

    fails(1, "have no match", "-with", tmp_path / "other.img")
    fails(1, "another SRS", "-with", tmp_path / "far.img")
    fails(1, "its values have scale 2", "-with", tmp_path / "scaled.tif")
    fails(1, "gone.img", "-with", lines[1], "-with", tmp_path / "gone.img")
    fails(2, "given twice", "-with", lines[1], "-with", lines[1])
    fails(2, "given twice", "-with", lines[0])
    fails(1, "lists no scene", "-with", f"@{tmp_path}/empty.txt")
    refuse(2, "cannot be used with", "gdal_hsi_atdca", "-q", "-t", 4, "-with", lines[1], "-original", lines[0], lines[0], tmp_path / "o.gpkg",
           untouched=[tmp_path])


def labelled(data, count):
    """Labels every sixth pixel."""
    height, width = data.shape[1:]
    labels = np.zeros((height, width))
    labels[::2, ::3] = 1 + (np.arange(height)[::2, None] // 6 + np.arange(width)[None, ::3] // 9) % count
    return labels


def write_classes(path, labels, names):
    write_scene(path, labels[None], driver="GTiff", dtype="u1", nodata=0)
    if names:
        dataset = gdal.Open(str(path), gdal.GA_Update)
        dataset.GetRasterBand(1).SetCategoryNames(["none", *names])
    return path


def test_one_training_of_many_scenes(tmp_path, campaign):
    """The model equals that of one scene of all lines, also if some labels number the classes differently."""
    whole, lines, data = campaign
    names = ["corn", "wheat", "oats"]
    labels = labelled(data, 3)
    write_classes(tmp_path / "all.tif", labels, names)
    first, order, parts = 0, [[0, 1, 2], [2, 0, 1], [1, 2, 0]], []
    for k, height in enumerate(HEIGHTS):
        part = labels[first:first + height]
        turned = np.zeros_like(part)
        for new, old in enumerate(order[k]):
            turned[part == old + 1] = new + 1
        path = tmp_path / f"labels{k}.tif"
        write_scene(path, turned[None], driver="GTiff", dtype="u1", nodata=0, geotransform=(500000 + 1000 * k, 20, 0, 4480000, 0, -20))
        dataset = gdal.Open(str(path), gdal.GA_Update)
        dataset.GetRasterBand(1).SetCategoryNames(["none", *[names[old] for old in order[k]]])
        dataset = None
        parts.append(path)
        first += height
    options = ["-q", "-C", 8, "-gamma", 0.5]
    succeed(run("gdal_hsi_svm_train", *options, whole, tmp_path / "all.tif", tmp_path / "one.json"))
    result = succeed(run("gdal_hsi_svm_train", *[o for o in options if o != "-q"], "-with", lines[1], parts[1], "-with", lines[2], parts[2],
                         "-report", tmp_path / "r.json", lines[0], parts[0], tmp_path / "many.json"))
    assert "class 1 oats is 3 of the first labels" in result.out
    one, many = (json.loads((tmp_path / f"{kind}.json").read_text()) for kind in ("one", "many"))
    for document in one, many:  # file names differ
        del document["history"], document["checksum"], document["training"]["labels"], document["training"]["scene"]
    for key in one:
        assert one[key] == many[key], key
    assert [part["scene"] for part in json.loads((tmp_path / "r.json").read_text())["with"]] == [str(lines[1]), str(lines[2])]


def test_classes_that_one_scene_alone_has(tmp_path, campaign):
    _, lines, data = campaign
    first = write_classes(tmp_path / "a.tif", labelled(data[:, :23], 2), ["corn", "wheat"])
    second = tmp_path / "b.tif"
    labels = labelled(data[:, :9], 2)
    write_scene(second, labels[None], driver="GTiff", dtype="u1", nodata=0, geotransform=(501000, 20, 0, 4480000, 0, -20))
    dataset = gdal.Open(str(second), gdal.GA_Update)
    dataset.GetRasterBand(1).SetCategoryNames(["none", "wheat", "water"])
    dataset = None
    succeed(run("gdal_hsi_svm_train", "-q", "-C", 8, "-gamma", 0.5, "-with", lines[1], second, lines[0], first, tmp_path / "m.json"))
    classes = json.loads((tmp_path / "m.json").read_text())["classes"]
    a = labelled(data[:, :23], 2)
    assert [(c["value"], c["name"]) for c in classes] == [(1, "corn"), (2, "wheat"), (3, "water")]
    assert classes[1]["samples"] == (a == 2).sum() + (labels == 1).sum() and classes[2]["samples"] == (labels == 2).sum()


def test_what_training_refuses(tmp_path, campaign):
    _, lines, data = campaign
    labels = write_classes(tmp_path / "a.tif", labelled(data[:, :23], 2), ["corn", "wheat"])

    def fails(code, text, *options):
        refuse(code, text, "gdal_hsi_svm_train", "-q", *options, lines[0], labels, tmp_path / "o.json", untouched=[tmp_path])

    fails(2, "given twice", "-with", lines[0], labels)
    fails(2, "cannot be used with a mask", "-with", lines[1], labels, "-mask", labels)
    fails(1, "gone.tif", "-with", lines[1], tmp_path / "gone.tif")
    fails(1, "gone.img", "-with", tmp_path / "gone.img", labels)


@pytest.mark.parametrize("kind", ["mean", "deviation", "every"])
def test_spectra_of_many_scenes(tmp_path, campaign, kind):
    """Spectra equal those of one scene of all lines, class by class."""
    whole, lines, data = campaign
    names = ["corn", "wheat", "oats"]
    labels = labelled(data, 3)
    write_classes(tmp_path / "all.tif", labels, names)
    first, parts = 0, []
    for k, height in enumerate(HEIGHTS):
        parts.append(tmp_path / f"labels{k}.tif")
        write_scene(parts[-1], labels[None, first:first + height], driver="GTiff", dtype="u1", nodata=0,
                    geotransform=(500000 + 1000 * k, 20, 0, 4480000, 0, -20))
        dataset = gdal.Open(str(parts[-1]), gdal.GA_Update)
        dataset.GetRasterBand(1).SetCategoryNames(["none", *names])
        dataset = None
        first += height
    succeed(run("gdal_hsi_spectra", "-q", "-kind", kind, whole, tmp_path / "all.tif", tmp_path / "one.csv"))
    succeed(run("gdal_hsi_spectra", "-q", "-kind", kind, "-with", lines[1], parts[1], "-with", lines[2], parts[2], lines[0], parts[0],
                tmp_path / "many.csv"))
    one, many = (list(csv.reader(open(tmp_path / f"{name}.csv"))) for name in ("one", "many"))
    assert len(one) == BANDS + 1 and [row[1:] for row in one[1:]] == [row[1:] for row in many[1:]]
    if kind != "every":
        assert one == many
        pixels = data[:, labels == 1].astype("f4").astype(float)
        assert np.allclose([float(row[one[0].index("corn")]) for row in one[1:]], pixels.mean(axis=1), rtol=1e-6)
        return
    assert any(str(lines[1]) in name for name in many[0])
    succeed(run("gdal_hsi_spectra", "-q", "-kind", "every", "-with", lines[1], parts[1], lines[0], parts[0], tmp_path / "p.geojson"))
    features = json.loads((tmp_path / "p.geojson").read_text())["features"]
    second = [f for f in features if f["properties"]["scene"] == str(lines[1])]
    assert second and all(f["properties"]["line"] < HEIGHTS[1] for f in second)
    eastward = min(f["geometry"]["coordinates"][0] for f in second) - min(f["geometry"]["coordinates"][0] for f in features)
    assert eastward > 0.005  # a kilometre further east
