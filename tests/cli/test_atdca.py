# SPDX-License-Identifier: MIT
"""gdal_hsi_atdca against a double-precision reference in numpy: targets, layers, spectra, maps, and bad input."""

import csv
import json
import re
import subprocess

import numpy as np
import pytest
from osgeo import gdal, ogr, osr

from conftest import (assert_untouched, cube, envi_header, first_error, read, real_scene, run, spp, succeed,
                      write_scene)

ogr.UseExceptions()


def atdca(*args, **kwargs):
    return run("gdal_hsi_atdca", "-device", "cpu", *args, **kwargs)


def reference(data, targets, gs=False):
    """Returns [(line, sample, score)] from explicit residuals, one scan per target. data: bands x lines x samples, NaN
    where invalid."""
    bands, lines, samples = data.shape
    x = data.reshape(bands, -1).T
    valid = np.isfinite(x).all(1) & (x != 0).any(1)
    original = np.where(valid[:, None], x, 0.0)
    residual = original.copy()
    w = np.ones(bands)
    found = []
    first = None
    for t in range(targets):
        if gs and t:
            score = np.abs(original @ w)
        else:
            score = (residual ** 2).sum(1)
        at = int(np.where(valid, score, -1.0).argmax())
        left = (residual[at] ** 2).sum()
        first = left if first is None else first
        if left < 1e-6 * first:
            break
        found.append((at // samples, at % samples, score[at]))
        q = residual[at] / np.sqrt(left)
        for _ in range(2):
            residual -= np.outer(residual @ q, q)
            w -= (q @ w) * q
    return found


def points(path):
    dataset = gdal.OpenEx(str(path), gdal.OF_VECTOR)
    layer = dataset.GetLayer(0)
    rows = []
    for feature in layer:
        row = feature.items()
        geometry = feature.GetGeometryRef()
        row["x"], row["y"] = (geometry.GetX(), geometry.GetY()) if geometry else (None, None)
        rows.append(row)
    srs = layer.GetSpatialRef()
    if all("rank" in row for row in rows):  # without libkml, GDAL reads no fields of a KML
        rows.sort(key=lambda row: int(row["rank"]))
    return rows, srs.ExportToWkt() if srs else ""


def pixels(path):
    return [(int(r["line"]), int(r["sample"])) for r in points(path)[0]]


@pytest.mark.quick
@pytest.mark.parametrize("method", ["osp", "gs"])
def test_targets_are_the_references(utm_scene, out, method):
    succeed(atdca("-t", 10, "-method", method, utm_scene, out / "t.gpkg"))
    rows, srs = points(out / "t.gpkg")
    want = reference(read(utm_scene), 10, method == "gs")
    assert [(r["rank"], r["line"], r["sample"]) for r in rows] == [(k + 1, l, s) for k, (l, s, _) in enumerate(want)]
    assert np.allclose([r["score"] for r in rows], [w[2] for w in want], rtol=1e-9)
    for r in rows:  # pixel centres in the scene's SRS
        assert (r["x"], r["y"]) == (500000 + 20 * (r["sample"] + 0.5), 4480000 - 20 * (r["line"] + 0.5))
    assert osr.SpatialReference(srs).GetAuthorityCode(None) == "32616"


SCENES = ["indian_pines/indian_pines.img", "jasper_ridge/jasper_ridge.img", "pavia_centre/pavia_centre.img",
          "enmap_potsdam/enmap_potsdam.vrt", "enmap_berlin/EnMAP_BerlinUrbanGradient.bsq",
          "emit/emit20250324t221005_jpl_unmix_ex", "avirisng/ang20170323t202244_rdn_7000-7010"]


@pytest.mark.parametrize("method", ["osp", "gs"])
@pytest.mark.parametrize("name", SCENES)
def test_real_scenes(name, method, out):
    path = real_scene(name)
    report = out / "r.json"
    succeed(atdca("-q", "-t", 30, "-method", method, "-report", report, "-spectra", out / "t.csv", path, out / "t.gpkg"))
    # The bands that the tool used: without bad bands and bands without values.
    with open(out / "t.csv") as file:
        kept = len(list(csv.reader(file))) - 1
    dataset = gdal.Open(str(path))
    fields = envi_header(path) if path.with_suffix(".hdr").exists() else {}
    bbl = fields.get("bbl")
    bands = [b for b in range(1, dataset.RasterCount + 1) if not bbl or float(bbl[b - 1]) != 0]
    data = read(path, bands)
    data = data[~np.isnan(data).all(axis=(1, 2))]
    if len(data) != kept:  # bad bands that a VRT marks in its own way
        pytest.fail(f"{len(data)} bands here, {kept} there")
    assert pixels(out / "t.gpkg") == [(l, s) for l, s, _ in reference(data, 30, method == "gs")]


def test_same_targets_for_every_tiling_memory_and_format(tmp_path, out):
    data = cube(90, 70, 16, seed=4)
    path = write_scene(tmp_path / "s.img", data)
    copies = [path]
    for options, name in ((["-of", "ENVI", "-co", "INTERLEAVE=BIP"], "bip.dat"), (["-co", "TILED=YES"], "t.tif")):
        subprocess.run(["gdal_translate", "-q", *options, path, str(tmp_path / name)], check=True)
        copies.append(tmp_path / name)
    want = None
    for k, (scene, options) in enumerate([(copies[0], []), (copies[1], []), (copies[2], ["-tile", 32, 16]),
                                          (copies[0], ["-tile", 90, 3, "-threads", 1]), (copies[0], ["-memory", "2MB"]),
                                          (copies[2], ["-memory", "2MB", "-threads", 3])]):
        target = out / f"t{k}.gpkg"
        succeed(atdca("-q", "-t", 12, *options, scene, target))
        got = [(r["line"], r["sample"], r["score"]) for r in points(target)[0]]
        want = want or got
        assert got == want


def test_lon_lat_are_gdaltransforms(utm_scene, out):
    succeed(atdca("-q", "-t", 8, utm_scene, out / "t.geojson"))
    rows, _ = points(out / "t.geojson")
    # This test checks the fields; a test below checks the positions of the points.
    text = "".join(f"{500000 + 20 * (r['sample'] + 0.5)} {4480000 - 20 * (r['line'] + 0.5)}\n" for r in rows)
    result = subprocess.run(["gdaltransform", "-s_srs", "EPSG:32616", "-t_srs", "EPSG:4326", "-output_xy"], input=text,
                            capture_output=True, text=True, check=True)
    want = [tuple(map(float, line.split()[:2])) for line in result.stdout.splitlines()]
    assert np.allclose([(r["lon"], r["lat"]) for r in rows], want, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", SCENES)
def test_places_on_real_scenes_are_gdaltransforms(name, out):
    path = real_scene(name)
    succeed(atdca("-q", "-t", 10, path, out / "t.csv"))
    rows = points(out / "t.csv")[0]
    centres = "".join(f"{int(r['sample']) + 0.5} {int(r['line']) + 0.5}\n" for r in rows)

    def transform(*options):
        result = subprocess.run(["gdaltransform", "-output_xy", *options, str(path)], input=centres, capture_output=True,
                                text=True, check=True)
        return [tuple(map(float, line.split()[:2])) for line in result.stdout.splitlines()]

    dataset = gdal.Open(str(path))
    if dataset.GetGeoTransform(can_return_null=True) is None:
        pytest.skip(f"{name} has no georeference; test_scene_without_georeference looks at that")
    places = [(float(r["X"]), float(r["Y"])) for r in rows]
    assert np.allclose(places, transform(), rtol=1e-12, atol=1e-9)
    if dataset.GetSpatialRef():
        assert np.allclose([(float(r["lon"]), float(r["lat"])) for r in rows], transform("-t_srs", "EPSG:4326"), rtol=0,
                           atol=1e-9)
    else:
        assert all(r["lon"] in (None, "") for r in rows)


@pytest.mark.parametrize("name", ["t.gpkg", "t.geojson", "t.csv", "t.shp", "t.fgb", "t"])
def test_vector_drivers_by_extension(utm_scene, out, name):
    succeed(atdca("-q", "-t", 5, utm_scene, out / name))
    want = reference(read(utm_scene), 5)
    rows, _ = points(out / name)
    assert [(int(r["line"]), int(r["sample"])) for r in rows] == [w[:2] for w in want]
    assert {"rank", "line", "sample", "score", "lon", "lat"} <= set(rows[0])
    if name != "t.csv":
        assert rows[0]["x"] is not None
    assert not [p for p in out.iterdir() if p.name.startswith(".")]


# A transverse Mercator projection without a code.
OWN_SRS = "+proj=tmerc +lat_0=0 +lon_0=13.3 +k=0.9999 +x_0=400000 +y_0=0 +ellps=GRS80 +units=m +no_defs"


@pytest.mark.parametrize("name", ["t.geojson", "t.geojsonl", "t.kml"])
@pytest.mark.parametrize("srs", ["EPSG:32616", OWN_SRS])
def test_formats_of_degrees_get_degrees(scene, out, tmp_path, name, srs):
    subprocess.run(["gdal_translate", "-q", "-a_srs", srs, scene, str(tmp_path / "s.tif")], check=True)
    succeed(atdca("-q", "-t", 6, tmp_path / "s.tif", out / name))
    rows, _ = points(out / name)
    succeed(atdca("-q", "-t", 6, tmp_path / "s.tif", tmp_path / "t.gpkg"))
    numbered, _ = points(tmp_path / "t.gpkg")
    assert len(rows) == len(numbered) == 6
    text = "".join(f"{500000 + 20 * (r['sample'] + 0.5)} {4480000 - 20 * (r['line'] + 0.5)}\n" for r in numbered)
    result = subprocess.run(["gdaltransform", "-s_srs", srs, "-t_srs", "EPSG:4326", "-output_xy"], input=text,
                            capture_output=True, text=True, check=True)
    want = [tuple(map(float, line.split()[:2])) for line in result.stdout.splitlines()]
    assert np.allclose([(r["x"], r["y"]) for r in rows], want, rtol=0, atol=1e-8)  # a millimetre
    if name == "t.geojson":
        document = json.loads((out / name).read_text())
        assert "crs" not in document  # RFC 7946 has no crs
        # The order of its axes is longitude, latitude.
        assert np.allclose(document["features"][0]["geometry"]["coordinates"], want[0], rtol=0, atol=1e-8)


def test_geojson_of_2008_keeps_an_srs_that_has_a_code(utm_scene, out, tmp_path):
    succeed(atdca("-q", "-t", 3, "-lco", "RFC7946=NO", utm_scene, out / "t.geojson"))
    assert "32616" in json.dumps(json.loads((out / "t.geojson").read_text())["crs"])
    rows, _ = points(out / "t.geojson")
    assert all(r["x"] == 500000 + 20 * (r["sample"] + 0.5) for r in rows)
    subprocess.run(["gdal_translate", "-q", "-a_srs", OWN_SRS, utm_scene, str(tmp_path / "s.tif")], check=True)
    succeed(atdca("-q", "-t", 3, "-lco", "RFC7946=NO", tmp_path / "s.tif", out / "u.geojson"))
    assert all(-180 <= r["x"] <= 180 for r in points(out / "u.geojson")[0])  # no code exists for it


def test_points_without_a_place(tmp_path, out):
    path = write_scene(tmp_path / "s.img", cube(), geotransform=None, epsg=None)
    succeed(atdca("-q", "-t", 4, path, out / "t.geojson"))
    document = json.loads((out / "t.geojson").read_text())
    assert [f["geometry"] for f in document["features"]] == [None] * 4  # RFC 7946, 3.2: without a position
    assert all("line" in f["properties"] for f in document["features"])
    with assert_untouched(out):
        result = atdca("-q", "-t", 4, path, out / "t.kml")
    assert result.code == 1 and "georeference" in first_error(result)


def test_layer_and_dataset_options_reach_the_driver(scene, out):
    succeed(atdca("-q", "-t", 3, "-of", "CSV", "-lco", "SEPARATOR=SEMICOLON", scene, out / "t.csv"))
    assert ";" in (out / "t.csv").read_text().splitlines()[0]
    succeed(atdca("-q", "-t", 3, "-lco", "GEOMETRY_NAME=place", "-dsco", "VERSION=1.2", scene, out / "t.gpkg"))
    dataset = gdal.OpenEx(str(out / "t.gpkg"))
    layer = dataset.GetLayer(0)
    assert layer.GetGeometryColumn() == "place" and layer.GetName() == "t"


def test_scene_without_georeference(tmp_path, out):
    path = write_scene(tmp_path / "s.img", cube(), geotransform=None, epsg=None)
    succeed(atdca("-q", "-t", 4, path, out / "t.gpkg"))
    rows, srs = points(out / "t.gpkg")
    assert srs == "" or "Undefined" in srs
    for r in rows:
        assert (r["x"], r["y"]) == (r["sample"] + 0.5, -(r["line"] + 0.5)) and r["lon"] is None


def test_window_keeps_the_places(scene, out):
    succeed(atdca("-q", "-t", 4, "-srcwin", 10, 5, 20, 15, scene, out / "t.gpkg"))
    rows, _ = points(out / "t.gpkg")
    want = reference(read(scene)[:, 5:20, 10:30], 4)
    assert [(r["line"], r["sample"]) for r in rows] == [w[:2] for w in want]
    for r in rows:
        assert (r["x"], r["y"]) == (500000 + 20 * (r["sample"] + 10.5), 4480000 - 20 * (r["line"] + 5.5))


def test_spectra_as_library_and_csv(scene, out):
    succeed(atdca("-q", "-t", 4, "-spectra", out / "t.sli", scene, out / "t.gpkg"))
    succeed(atdca("-q", "-t", 4, "-spectra", out / "t.csv", scene, out / "u.gpkg"))
    data = read(scene)
    want = np.array([data[:, l, s] for l, s, _ in reference(data, 4)])
    fields = envi_header(out / "t.sli")
    assert fields["file type"] == "ENVI Spectral Library" and fields["wavelength units"] == "Nanometers"
    assert [float(w) for w in fields["wavelength"]] == [400 + 10 * b for b in range(12)]
    assert np.allclose([float(w) for w in fields["fwhm"]], [9.5 + b / 10 for b in range(12)])
    assert len(fields["spectra names"]) == 4 and fields["spectra names"][0].startswith("Target 1")
    assert np.array_equal(np.fromfile(out / "t.sli", "<f4").reshape(4, 12), want.astype("f4"))
    with open(out / "t.csv") as file:
        rows = list(csv.reader(file))
    assert rows[0][:2] == ["band", "wavelength"] and rows[1][:2] == ["1", "400"]
    assert np.allclose(np.array([r[2:] for r in rows[1:]], float).T, want, rtol=1e-7)


def test_chain_with_spp_reads_spectra_in_the_original(scene, out):
    succeed(spp("-q", scene, out / "y.tif"))
    succeed(atdca("-q", "-t", 5, "-original", scene, "-spectra", out / "t.sli", out / "y.tif", out / "t.gpkg"))
    found = pixels(out / "t.gpkg")
    assert found == [w[:2] for w in reference(read(out / "y.tif"), 5)]
    data = read(scene)
    assert np.array_equal(np.fromfile(out / "t.sli", "<f4").reshape(5, 12),
                          np.array([data[:, l, s] for l, s in found], "f4"))


@pytest.mark.quick
def test_map_scores_and_legend(scene, out):
    succeed(atdca("-q", "-t", 5, "-map", out / "m.tif", "-max-angle", 2, "-scores", out / "a.tif", "-score-kind", "angle",
                  scene, out / "t.gpkg"))
    data = read(scene)
    found = pixels(out / "t.gpkg")
    unit = data / np.sqrt((data ** 2).sum(0))
    angles = np.degrees(np.arccos(np.clip([np.tensordot(unit[:, l, s], unit, 1) for l, s in found], -1, 1)))
    assert np.allclose(read(out / "a.tif"), angles, atol=1e-3)
    dataset = gdal.Open(str(out / "m.tif"))
    band = dataset.GetRasterBand(1)
    assert np.array_equal(band.ReadAsArray(), np.where(angles.min(0) <= 2, angles.argmin(0) + 1, 0))
    # GDAL 3.6's Python returns None for category names, but gdalinfo shows them.
    told = gdal.Info(str(out / "m.tif"))
    for k, name in enumerate(["Unclassified"] + [f"Target {t}" for t in range(1, 6)]):
        assert re.search(rf"^ *{k}: {name}$", told, re.M)
    colours = [band.GetColorTable().GetColorEntry(k) for k in range(6)]
    assert len(set(colours)) == 6 and colours[0][3] == 0
    assert dataset.GetGeoTransform() == (500000, 20, 0, 4480000, 0, -20)
    assert (band.ReadAsArray() == 0).any()


def test_map_and_scores_classify_the_original(scene, out):
    succeed(spp("-q", scene, out / "y.tif"))
    succeed(atdca("-q", "-t", 4, "-original", scene, "-map", out / "m.tif", "-scores", out / "a.tif", "-score-kind", "angle",
                  out / "y.tif", out / "t.gpkg"))
    data = read(scene)
    unit = data / np.sqrt((data ** 2).sum(0))
    angles = np.degrees(np.arccos(np.clip([np.tensordot(unit[:, l, s], unit, 1) for l, s in pixels(out / "t.gpkg")], -1, 1)))
    assert np.allclose(read(out / "a.tif"), angles, atol=1e-3)
    assert np.array_equal(gdal.Open(str(out / "m.tif")).ReadAsArray(), angles.argmin(0) + 1)


def test_abundances_are_least_squares(scene, out):
    succeed(atdca("-q", "-t", 3, "-scores", out / "a.tif", "-co", "COMPRESS=LZW", scene, out / "t.gpkg"))
    data = read(scene)
    u = np.array([data[:, l, s] for l, s in pixels(out / "t.gpkg")]).T
    want = np.linalg.pinv(u) @ data.reshape(12, -1)
    assert np.allclose(read(out / "a.tif").reshape(3, -1), want, atol=1e-5)
    assert gdal.Open(str(out / "a.tif")).GetMetadata("IMAGE_STRUCTURE")["COMPRESSION"] == "LZW"


def test_reference_table(scene, out):
    data = read(scene)
    l, s, _ = reference(data, 3)[2]
    names = ["one", "other"]
    spectra = np.array([data[:, l, s] * 3, data[:, 9, 9]])
    (out / "lib.csv").write_text("band,wavelength," + ",".join(names) + "\n" + "".join(
        f"{b + 1},{400 + 10 * b}," + ",".join(f"{v:.9g}" for v in spectra[:, b]) + "\n" for b in range(12)))
    result = succeed(atdca("-q", "-t", 3, "-reference", out / "lib.csv", "-report", out / "r.json", scene, out / "t.gpkg"))
    found = [data[:, a, b] for a, b in pixels(out / "t.gpkg")]
    angle = [np.degrees(np.arccos(min(1, x @ spectra[1] / np.linalg.norm(x) / np.linalg.norm(spectra[1])))) for x in found]
    table = json.loads((out / "r.json").read_text())["reference"]["best"]
    assert table[0]["target"] == 3 and table[0]["sad_degrees"] < 1e-5
    assert table[1]["target"] == int(np.argmin(angle)) + 1 and abs(table[1]["sad_degrees"] - min(angle)) < 1e-5
    assert re.search(r"^one +3 +0\.0000$", result.out, re.M) and "Average" in result.out
    # Other wavelengths are interpolated where they overlap.
    (out / "half.csv").write_text("wavelength_nm,a\n" + "".join(f"{405 + 20 * k},{k + 1}\n" for k in range(4)))
    succeed(atdca("-q", "-t", 3, "-reference", out / "half.csv", "-report", out / "r2.json", scene, out / "u.gpkg"))
    assert json.loads((out / "r2.json").read_text())["reference"]["bands"] == 6
    # Damage is an error, even if it only affects some bands.
    damaged = np.arange(1, 13, dtype="<f4")
    damaged[4] = np.inf
    damaged.tofile(out / "bad.sli")
    (out / "bad.hdr").write_text(
        "ENVI\nsamples = 12\nlines = 1\nbands = 1\ndata type = 4\ninterleave = bsq\nbyte order = 0\nheader offset = 0\n"
        "file type = ENVI Spectral Library\nwavelength units = Nanometers\nspectra names = {a}\n"
        f"wavelength = {{{', '.join(str(400 + 10 * b) for b in range(12))}}}\n")
    result = atdca("-q", "-t", 3, "-reference", out / "bad.sli", scene, out / "v.gpkg")
    assert result.code == 1 and "'a' has infinite values" in first_error(result)
    assert not (out / "v.gpkg").exists()


def test_reference_library_of_jasper_ridge(out):
    path, library = real_scene("jasper_ridge/jasper_ridge.img"), real_scene("jasper_ridge/references.sli")
    succeed(atdca("-q", "-t", 10, "-reference", library, "-report", out / "r.json", path, out / "t.gpkg"))
    references = np.fromfile(library, "<f4").reshape(4, 198).astype(float)
    data = read(path)
    found = np.array([data[:, l, s] for l, s in pixels(out / "t.gpkg")])
    cosine = (references @ found.T) / np.outer(np.linalg.norm(references, axis=1), np.linalg.norm(found, axis=1))
    want = np.degrees(np.arccos(np.clip(cosine, -1, 1))).min(1)
    table = json.loads((out / "r.json").read_text())["reference"]["best"]
    assert np.allclose([row["sad_degrees"] for row in table], want, atol=1e-4)


def test_auto_takes_the_virtual_dimensionality(scene, out):
    number = int(succeed(run("gdal_hsi_vd", "-q", "-method", "nwhfc", scene)).out.split()[-1])
    succeed(atdca("-q", "-t", "auto", "-vd-method", "nwhfc", scene, out / "t.gpkg"))
    assert len(points(out / "t.gpkg")[0]) == number


@pytest.mark.parametrize("method", ["osp", "gs"])
def test_planted_targets_are_found(tmp_path, out, method):
    # The scene has one pure pixel per material. They are the corners of its simplex, and OSP finds them one after
    # another. GS searches one direction at a time, so its targets are compared only with the reference.
    succeed(run("gdal_hsi_synth", "-q", "-size", 90, 80, 60, "-targets", 8, "-endmembers", 8, "-snr", 60, "-truth",
                tmp_path / "truth.json", "-of", "ENVI", tmp_path / "s.dat"))
    planted = {(t["line"], t["sample"]) for t in json.loads((tmp_path / "truth.json").read_text())["targets"]}
    assert len(planted) == 8
    succeed(atdca("-q", "-t", 8, "-method", method, tmp_path / "s.dat", out / "t.gpkg"))
    found = pixels(out / "t.gpkg")
    assert found == [w[:2] for w in reference(read(tmp_path / "s.dat"), 8, method == "gs")]
    if method == "osp":
        assert set(found) == planted


def test_signed_score_is_the_literal_algorithm(scene, out):
    data = read(scene)
    x = data.reshape(len(data), -1).T
    chosen, w = [int((x ** 2).sum(1).argmax())], np.ones(len(data))
    basis = np.empty((0, len(data)))
    while len(chosen) < 5:
        q = x[chosen[-1]] - basis.T @ (basis @ x[chosen[-1]])
        q -= basis.T @ (basis @ q)
        basis = np.vstack([basis, q / np.linalg.norm(q)])
        p = w - basis.T @ (basis @ w)
        score = x @ p
        score[chosen] = -np.inf
        if score.max() <= 0:
            break
        chosen.append(int(score.argmax()))
    result = succeed(atdca("-t", 5, "-method", "gs", "-score", "signed", scene, out / "t.gpkg"))
    assert pixels(out / "t.gpkg") == [(i // 40, i % 40) for i in chosen]
    assert ("positive" in result.err) == (len(chosen) < 5)


def test_rank_is_a_warning_and_as_many_as_there_are(tmp_path, out):
    path = write_scene(tmp_path / "s.img", cube(bands=4), dtype="f8")
    result = succeed(atdca("-q", "-t", 9, path, out / "t.gpkg"))
    assert "only 4 of 9 targets" in result.err and len(points(out / "t.gpkg")[0]) == 4


def test_invalid_pixels_and_empty_bands(tmp_path, out):
    data = cube()
    best = reference(data, 1)[0]
    data[2, best[0], best[1]] = -9999
    data[7] = -9999
    path = write_scene(tmp_path / "s.img", data, nodata=-9999)
    result = succeed(atdca("-t", 5, "-map", out / "m.tif", path, out / "t.gpkg"))
    assert "band 8" in result.err and "1 of 1200 pixels is invalid" in result.out
    kept = np.where(data == -9999, np.nan, data)
    assert pixels(out / "t.gpkg") == [w[:2] for w in reference(np.delete(kept, 7, 0).astype("f4").astype(float), 5)]
    assert gdal.Open(str(out / "m.tif")).ReadAsArray()[best[0], best[1]] == 0


def test_report_tells_what_the_search_cost(scene, out):
    succeed(atdca("-q", "-t", 10, "-report", out / "r.json", scene, out / "t.gpkg"))
    report = json.loads((out / "r.json").read_text())
    search = report["search"]
    assert search["held_by_system"] and not search["in_memory"] and not search["on_device"]
    assert search["full_scans"] == 10 and 1 <= search["full_scan_equivalents"] < 10
    packed = out / "s.tif"
    gdal.Translate(str(packed), str(scene), creationOptions=["COMPRESS=DEFLATE"])
    succeed(atdca("-q", "-t", 10, "-report", out / "r2.json", packed, out / "t2.gpkg"))
    kept = json.loads((out / "r2.json").read_text())["search"]
    assert kept["in_memory"] and not kept["held_by_system"] and kept["tile_visits"] == kept["tiles"]
    assert pixels(out / "t2.gpkg") == pixels(out / "t.gpkg")
    assert [t["rank"] for t in report["targets"]] == list(range(1, 11))
    assert "Search" in succeed(atdca("-dry-run", "-t", 10, scene, out / "u.gpkg")).out
    assert not (out / "u.gpkg").exists()


@pytest.mark.quick
@pytest.mark.parametrize("options, words", [
    (["-t", 0], "-t"), (["-t", "few"], "-t"), (["-method", "abc"], "-method"), (["-score", "signed"], "-score signed"),
    (["-max-angle", 200], "-max-angle"), (["-pf", 2], "-pf"), (["-map", "DST"], "same file"),
    (["-spectra", "x.txt"], "-spectra"), (["-b", 3], "-b"), (["-of", "GTiff"], "-of GTiff"), (["-of", "Nope"], "-of Nope"),
    (["-of", "AVCE00"], "-of AVCE00"), (["-max-angle", 9], "-max-angle requires -map"),
    (["-score-kind", "angle"], "-score-kind requires -scores"),
    (["-co", "COMPRESS=LZW"], "-co requires -map FILE or -scores"), (["-pf", 0.01], "-pf requires"),
    (["-vd-method", "nwhfc"], "-vd-method requires -t auto")])
def test_wrong_command_lines(scene, out, options, words):
    target = out / "t.gpkg"
    with assert_untouched(out):
        result = atdca("-t", 3, *[str(target) if o == "DST" else o for o in options], scene, target) if options[0] != "-t" \
            else atdca(*options, scene, target)
    assert result.code == 2 and words in first_error(result)


def test_existing_outputs_are_not_touched(scene, out):
    for option, name in ((None, "t.gpkg"), ("-map", "m.tif"), ("-spectra", "t.sli"), ("-spectra", "t.csv"), ("-scores", "s.tif")):
        (out / name).write_text("mine")
        with assert_untouched(out):
            extra = [option, out / name] if option else []
            result = atdca("-t", 3, *extra, scene, out / name if not option else out / "new.gpkg")
            assert result.code == 1 and "-overwrite" in result.err
        (out / name).unlink()
    # A header of another file.
    (out / "x.hdr").write_text("mine")
    with assert_untouched(out):
        assert atdca("-t", 3, "-overwrite", "-spectra", out / "x.sli", scene, out / "n.gpkg").code == 1
    for _ in range(2):
        succeed(atdca("-q", "-t", 3, "-overwrite", "-map", out / "m.tif", "-spectra", out / "t.sli", scene, out / "t.shp"))
    assert len(points(out / "t.shp")[0]) == 3


def test_library_whose_header_alone_is_there(scene, out):
    def search(*options):
        return atdca("-q", "-t", 3, *options, "-spectra", out / "u.sli", scene, out / "u.gpkg")
    succeed(search())
    header = (out / "u.hdr").read_bytes()
    for name in ("u.sli", "u.gpkg"):
        (out / name).unlink()
    with assert_untouched(out):
        assert "already exists" in first_error(search())
    succeed(search("-overwrite"))
    assert (out / "u.sli").stat().st_size == 3 * 12 * 4 and (out / "u.hdr").read_bytes().startswith(header[:40])


def test_outputs_that_cannot_be(scene, out, tmp_path):
    with assert_untouched(out):
        result = atdca("-t", 3, scene, out / "t.xyz")
        assert result.code == 2 and ".xyz" in first_error(result)
        result = atdca("-t", 3, scene, out / "none" / "t.gpkg")
        assert result.code == 1 and "none" in first_error(result)
        other = write_scene(tmp_path / "o.img", cube(samples=20))
        result = atdca("-t", 3, "-original", other, scene, out / "t.gpkg")
        assert result.code == 1 and "20x30" in first_error(result)
        other = write_scene(tmp_path / "e.img", cube(), geotransform=(0, 20, 0, 4480000, 0, -20))
        result = atdca("-t", 3, "-original", other, scene, out / "t.gpkg")
        assert result.code == 1 and "has another position" in first_error(result) and str(other) in first_error(result)
        result = atdca("-t", 3, "-reference", out / "no.sli", scene, out / "t.gpkg")
        assert result.code == 1 and "no.sli" in first_error(result)
        nothing = write_scene(tmp_path / "n.img", np.zeros((4, 6, 5)))
        result = atdca("-t", 3, nothing, out / "t.gpkg")
        assert result.code == 1 and "no pixel is valid" in first_error(result)


def test_memory_is_a_ceiling(tmp_path, out):
    path = write_scene(tmp_path / "s.img", np.tile(cube(200, 150, 40, seed=2), (1, 4, 2)) +
                       np.random.default_rng(1).normal(0, 20, (40, 600, 400)))
    small = succeed(atdca("-q", "-t", 12, "-memory", "8MB", "-report", out / "r.json", path, out / "t.gpkg"))
    report = json.loads((out / "r.json").read_text())
    assert not report["search"]["in_memory"]
    assert report["search"]["tile_visits"] < 12 * report["search"]["tiles"]
    succeed(atdca("-q", "-t", 12, path, out / "u.gpkg"))
    assert pixels(out / "t.gpkg") == pixels(out / "u.gpkg")
    assert report["peak_resident_bytes"] < (8 + 150) << 20
