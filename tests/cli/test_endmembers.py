# SPDX-License-Identifier: MIT
"""gdal_hsi_endmembers: the known pixels of a real scene, a simplex that numpy cannot enlarge, outputs, and refused
input."""

import csv
import json

import numpy as np
import pytest
from osgeo import gdal, ogr

from conftest import UTM, assert_untouched, first_error, read, real_scene, run, succeed, write_scene

WAVELENGTHS = [400 + 10 * b for b in range(10)]


def endmembers(*args):
    return run("gdal_hsi_endmembers", *args)


def points(path):
    """Returns (line, sample, score) by rank."""
    dataset = ogr.Open(str(path))
    layer = dataset.GetLayer(0)
    rows = [(f["rank"], f["line"], f["sample"], f["score"]) for f in layer]
    assert [r[0] for r in rows] == list(range(1, len(rows) + 1))
    return [r[1:] for r in rows]


def places(path):
    return [p[:2] for p in points(path)]


def made(samples=50, lines=40, bands=10, pure=5, seed=3):
    random = np.random.default_rng(seed)
    e = random.uniform(200, 1000, (pure, bands))
    a = random.dirichlet(np.full(pure, 0.7), (lines, samples))
    return np.moveaxis(a @ e + random.normal(0, 2, (lines, samples, bands)), 2, 0)


@pytest.fixture
def scene(tmp_path):
    data = made()
    data[3, 7, 9] = np.nan
    return write_scene(tmp_path / "scene.img", data, wavelengths=WAVELENGTHS, epsg=UTM)


KNOWN = {"nfindr": [(45, 52), (64, 68), (31, 89), (69, 42)], "vca": [(91, 45), (53, 20), (92, 3), (87, 15)]}


@pytest.mark.parametrize("method", ["nfindr", "vca"])
def test_jasper_ridge_has_its_known_endmembers(method, tmp_path):
    path = real_scene("jasper_ridge/jasper_ridge.img")
    succeed(endmembers("-t", 4, "-method", method, path, tmp_path / "e.gpkg"))
    assert places(tmp_path / "e.gpkg") == KNOWN[method]


def test_atdca_is_the_tool_of_that_name(scene, tmp_path):
    succeed(endmembers("-t", 5, "-method", "atdca", "-spectra", tmp_path / "e.csv", scene, tmp_path / "e.geojson"))
    succeed(run("gdal_hsi_atdca", "-device", "cpu", "-t", 5, "-method", "osp", scene, tmp_path / "a.geojson"))
    assert points(tmp_path / "e.geojson") == points(tmp_path / "a.geojson")


@pytest.mark.quick
def test_numpy_finds_no_larger_simplex_by_one_replacement(scene, tmp_path):
    t = 5
    succeed(endmembers("-t", t, scene, tmp_path / "e.gpkg", "-report", tmp_path / "r.json"))
    data = read(scene)
    valid = np.isfinite(data).all(0)
    x = data[:, valid]
    centred = x - x.mean(1)[:, None]
    w, v = np.linalg.eigh(np.cov(x))
    components = v[:, ::-1][:, :t - 1].T @ centred
    y = np.vstack([np.ones(components.shape[1]), components / np.sqrt(w[::-1][:t - 1])[:, None]])
    index = -np.ones(valid.shape, int)
    index[valid] = np.arange(valid.sum())
    found = points(tmp_path / "e.gpkg")
    chosen = [index[line, sample] for line, sample, _ in found]
    b = np.linalg.inv(y[:, chosen]) @ y
    assert np.abs(b).max() <= 1 + 1e-9
    heights = 1 / np.linalg.norm(np.linalg.inv(y[:, chosen])[:, 1:] / np.sqrt(w[::-1][:t - 1]), axis=1)
    assert np.allclose([score for _, _, score in found], heights, rtol=1e-8)
    assert json.loads((tmp_path / "r.json").read_text())["search"]["in_memory"] is True


@pytest.mark.parametrize("method", ["nfindr", "vca"])
def test_nothing_depends_on_tiles_threads_memory_and_interleave(method, scene, tmp_path):
    gdal.Translate(str(tmp_path / "bip.img"), scene, format="ENVI", creationOptions=["INTERLEAVE=BIP"])
    gdal.Translate(str(tmp_path / "z.tif"), scene, creationOptions=["COMPRESS=DEFLATE", "TILED=YES", "BLOCKXSIZE=16", "BLOCKYSIZE=16"])
    results = set()
    for i, (source, options) in enumerate(((scene, []), (scene, ["-threads", 1]), (scene, ["-threads", 3, "-tile", 7, 5]),
                                           (tmp_path / "bip.img", []), (tmp_path / "z.tif", []))):
        succeed(endmembers("-q", "-t", 5, "-method", method, *options, source, tmp_path / f"{i}.csv"))
        results.add((tmp_path / f"{i}.csv").read_text())
    assert len(results) == 1


def test_what_does_not_fit_in_memory_is_read_again(tmp_path):
    source = write_scene(tmp_path / "s.dat", made(600, 500, 8))
    for name, options in (("a", []), ("b", ["-memory", "24MB", "-threads", 1])):
        succeed(endmembers("-q", "-t", 5, *options, "-report", tmp_path / f"{name}.json", source, tmp_path / f"{name}.csv"))
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()
    kept = [json.loads((tmp_path / f"{name}.json").read_text())["search"]["in_memory"] for name in "ab"]
    assert kept == [True, False]


def test_seeds_differ_and_repeat(scene, tmp_path):
    found = []
    for i, seed in enumerate((1, 1, 2, 3, 4)):
        succeed(endmembers("-q", "-t", 4, "-method", "vca", "-seed", seed, scene, tmp_path / f"{i}.csv"))
        found.append((tmp_path / f"{i}.csv").read_text())
    assert found[0] == found[1] and len(set(found)) > 2


@pytest.mark.quick
def test_references(scene, tmp_path):
    """-reference reports the nearest endmember to each known spectrum, also with -q; and -residual with -q."""
    pure = np.random.default_rng(3).uniform(200, 1000, (5, 10))
    library = tmp_path / "known.csv"
    library.write_text("\n".join(["wavelength," + ",".join(f"m{k}" for k in range(5))] + [
        ",".join([str(nm), *map(repr, map(float, pure[:, b]))]) for b, nm in enumerate(WAVELENGTHS)]) + "\n")
    result = succeed(endmembers("-q", "-t", 5, "-residual", "-reference", library, "-spectra", tmp_path / "e.csv", "-report", tmp_path / "r.json",
                                scene, tmp_path / "e.gpkg"))
    found = np.array([[float(v) for v in row.split(",")[2:]] for row in (tmp_path / "e.csv").read_text().splitlines()[1:]]).T
    angle = np.degrees(np.arccos(np.clip((pure @ found.T) / np.linalg.norm(pure, axis=1)[:, None] / np.linalg.norm(found, axis=1), -1, 1)))
    rows = [line.split() for line in result.out.splitlines() if line.startswith("m")]
    assert [(row[0], int(row[1])) for row in rows] == [(f"m{k}", 1 + angle[k].argmin()) for k in range(5)]
    assert np.allclose([float(row[2]) for row in rows], angle.min(axis=1), atol=1e-3)
    assert "Residual of unmixing:" in result.out and "Endmember SAD/degree" in result.out and "Rank" not in result.out
    report = json.loads((tmp_path / "r.json").read_text())["reference"]["best"]
    assert [one["endmember"] for one in report] == [1 + angle[k].argmin() for k in range(5)]
    result = endmembers("-t", 5, "-spectrum", "m1", scene, tmp_path / "x.gpkg")
    assert result.code == 2 and "-spectrum requires -reference" in first_error(result)


def test_names_of_references(scene, tmp_path):
    """A spectrum that is nearest to one reference gets its name; position and number stay."""
    data = read(scene)
    succeed(endmembers("-q", "-t", 4, scene, tmp_path / "e.gpkg"))
    where = places(tmp_path / "e.gpkg")
    values = [data[:, line, sample] for line, sample in where] + [data[:, where[2][0], where[2][1]] * 1.001]
    library = tmp_path / "known.csv"
    library.write_text("\n".join(["wavelength_nm,tree,soil,road,other road,roof"] + [
        ",".join([str(nm)] + [repr(float(values[k][b])) for k in (1, 0, 2, 4, 3)]) for b, nm in enumerate(WAVELENGTHS)]) + "\n")
    words = ("-overwrite", "-t", 4, "-reference", library, "-spectra", tmp_path / "e.csv", scene, tmp_path / "e.gpkg")
    plain = [f"Endmember {k + 1} (line {line} sample {sample})" for k, (line, sample) in enumerate(where)]

    def names():
        return next(csv.reader([(tmp_path / "e.csv").read_text().splitlines()[0]]))[-4:]
    succeed(endmembers("-q", *words))
    assert names() == plain
    result = succeed(endmembers("-q", "-reference-names", *words))
    assert names() == [f"soil, {plain[0]}", f"tree, {plain[1]}", plain[2], f"roof, {plain[3]}"]
    assert f"{plain[2]} is the nearest spectrum of road and other road, and keeps its name" in result.err
    for given, text in ((("-spectra", tmp_path / "x.csv"), "-reference-names requires -reference"),
                        (("-reference", library), "-reference-names requires -spectra")):
        result = endmembers("-t", 4, "-reference-names", *given, scene, tmp_path / "x.gpkg")
        assert result.code == 2 and text in first_error(result)
    succeed(run("gdal_hsi_atdca", "-q", "-device", "cpu", "-t", 4, "-reference", library, "-reference-names", "-spectra", tmp_path / "t.csv",
                scene, tmp_path / "t.gpkg"))
    assert ", Target " in (tmp_path / "t.csv").read_text().splitlines()[0]


def test_what_the_knee_says(scene, tmp_path):
    """The set at the knee is a part of the set for the whole range; a search for its number alone may find others."""
    out = succeed(endmembers("-t", "2-9", scene, tmp_path / "e.gpkg")).out
    count = len(places(tmp_path / "e.gpkg"))
    assert f"Knee: {count} endmembers, which are written; a run with -t {count} searches anew and may find others" in out
    out = succeed(endmembers("-t", "2-9", "-method", "atdca", scene, tmp_path / "a.gpkg")).out
    assert "which are written\n" in out
    succeed(endmembers("-t", len(places(tmp_path / "a.gpkg")), "-method", "atdca", scene, tmp_path / "b.gpkg"))
    assert places(tmp_path / "b.gpkg") == places(tmp_path / "a.gpkg")


def test_spectra_of_the_original_scene(scene, tmp_path):
    """After gdal_hsi_spp, the positions come from the preprocessed scene, and the spectra from the original scene."""
    succeed(run("gdal_hsi_spp", "-q", scene, tmp_path / "y.tif"))
    succeed(endmembers("-t", 4, tmp_path / "y.tif", tmp_path / "y.gpkg"))
    succeed(endmembers("-t", 4, "-original", scene, "-spectra", tmp_path / "e.sli", tmp_path / "y.tif", tmp_path / "e.gpkg"))
    assert places(tmp_path / "e.gpkg") == places(tmp_path / "y.gpkg") != []
    library = np.fromfile(tmp_path / "e.sli", "<f4").reshape(4, 10)
    assert np.array_equal(library, [read(scene)[:, line, sample].astype("f4") for line, sample in places(tmp_path / "e.gpkg")])
    for words, text in ((["-original", scene], "-original requires -spectra or -reference"),
                        (["-original", scene, "-with", scene, "-spectra", tmp_path / "x.sli"], "cannot be used with")):
        result = endmembers("-t", 4, *words, tmp_path / "y.tif", tmp_path / "x.gpkg")
        assert result.code == 2 and text in first_error(result)


def test_spectra_are_those_of_the_pixels_and_can_be_unmixed(scene, tmp_path):
    succeed(endmembers("-t", 4, "-spectra", tmp_path / "e.sli", scene, tmp_path / "e.gpkg"))
    library = np.fromfile(tmp_path / "e.sli", dtype="<f8" if (tmp_path / "e.sli").stat().st_size == 4 * 10 * 8 else "<f4").reshape(4, 10)
    assert "Endmember 1 (line" in (tmp_path / "e.hdr").read_text()
    data = read(scene)
    for k, (line, sample) in enumerate(places(tmp_path / "e.gpkg")):
        assert np.array_equal(library[k], data[:, line, sample].astype("f4"))
    succeed(run("gdal_hsi_unmix", "-q", scene, tmp_path / "e.sli", tmp_path / "a.tif"))
    abundances = read(tmp_path / "a.tif")
    for k, (line, sample) in enumerate(places(tmp_path / "e.gpkg")):
        assert abundances[k, line, sample] == pytest.approx(1, abs=1e-5)


def test_points_lie_at_the_pixels_centres(scene, tmp_path):
    succeed(endmembers("-t", 3, scene, tmp_path / "e.gpkg"))
    dataset = ogr.Open(str(tmp_path / "e.gpkg"))
    for f in dataset.GetLayer(0):
        x, y, _ = f.GetGeometryRef().GetPoint()
        assert (x, y) == (500000 + 20 * (f["sample"] + 0.5), 4480000 - 20 * (f["line"] + 0.5))


def test_fewer_components_than_asked_for_is_a_warning(tmp_path):
    y, x = np.mgrid[:20, :20]
    flat = np.stack([10 + y * (b + 1) + 3 * x * (b % 2) for b in range(5)]).astype(float)
    source = write_scene(tmp_path / "flat.img", flat)
    result = succeed(endmembers("-t", 5, source, tmp_path / "e.csv"))
    assert "3 endmembers instead of 5" in result.err
    assert len((tmp_path / "e.csv").read_text().splitlines()) == 4


def test_dry_run_prints_the_passes_and_makes_nothing(scene, tmp_path):
    with assert_untouched(tmp_path):
        result = succeed(endmembers("-t", 4, "-spectra", tmp_path / "e.sli", "-dry-run", scene, tmp_path / "e.gpkg"))
        assert "Pass moments" in result.out and "Pass components" in result.out
        assert "Search on the CPU" in succeed(endmembers("-t", 4, "-method", "atdca", "-dry-run", scene, tmp_path / "e.gpkg")).out


@pytest.mark.quick
@pytest.mark.parametrize("options,code,text", [
    ([], 2, "-t is missing"), (["-t", 1], 2, "-t"), (["-t", 0], 2, "-t"), (["-t", 12], 2, "-t: 12"),
    (["-t", 11, "-method", "vca"], 2, "-t: 11"), (["-t", 11, "-method", "atdca"], 2, "-t: 11"),
    (["-t", 7, "-srcwin", 0, 0, 3, 2], 2, "6 valid pixels"),
    (["-t", 7, "-srcwin", 0, 0, 3, 2, "-method", "vca"], 2, "6 valid pixels"),
    (["-t", 7, "-srcwin", 0, 0, 3, 2, "-method", "atdca"], 2, "6 valid pixels"),
    (["-t", 3, "-seed", 2], 2, "-seed"), (["-t", 3, "-seed", 2, "-method", "atdca"], 2, "-seed"),
    (["-t", 2, "-b", 3], 2, "-b"), (["-t", 3, "-spectra", "{there}"], 1, "already exists")])
def test_bad_input_is_refused(options, code, text, scene, tmp_path):
    (tmp_path / "there.csv").write_text("old")
    options = [str(o).format(there=tmp_path / "there.csv") for o in options]
    with assert_untouched(tmp_path):
        result = endmembers(*options, scene, tmp_path / "e.gpkg")
    error = next(line for line in result.err.splitlines() if line.startswith("ERROR: "))  # the search of ATDCA warns first
    assert result.code == code and text in error, result.err
    if code == 2 and text.startswith("-t: "):
        assert "2 to 1" in result.err  # 2 to 10, 2 to 11


def test_scenes_without_endmembers_are_errors(tmp_path):
    for name, data, text in (("c", np.full((4, 6, 5), 7.0), "all equal"), ("n", np.zeros((4, 6, 5)), "no pixel is valid")):
        source = write_scene(tmp_path / f"{name}.img", data)
        with assert_untouched(tmp_path):
            result = endmembers("-t", 3, source, tmp_path / "e.gpkg")
        assert result.code == 1 and text in first_error(result)
