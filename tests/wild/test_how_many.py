# SPDX-License-Identifier: MIT
"""gdal_hsi_endmembers -t 2-20: nested sets, their volumes, residuals and knee, compared with numpy and an independent
solver; and the first output of gdal_hsi_vd."""
import csv
import json
import math
import xml.etree.ElementTree

import numpy as np
import pytest
from conftest import assert_untouched, first_error, real_scene, run, succeed, write_scene
from osgeo import gdal


def mixtures(sources=4, lines=16, samples=18, bands=9, noise=0.5, seed=5):
    random = np.random.default_rng(seed)
    spectra = random.uniform(20, 200, (sources, bands))
    data = random.dirichlet(np.full(sources, 0.5), (lines, samples)) @ spectra
    data = np.moveaxis(data + random.normal(0, noise, data.shape), 2, 0)
    return data.astype("f4").astype(float)  # as tools read it


def search(folder, data, numbers, *options):
    """Returns (report of the range, targets, result)."""
    scene = data if isinstance(data, str) else write_scene(folder / "scene.img", data, dtype="f8")
    result = succeed(run("gdal_hsi_endmembers", "-overwrite", "-t", numbers, *options, "-report", folder / "r.json", scene, folder / "e.gpkg"))
    report = json.loads((folder / "r.json").read_text())
    return report["range"], [(t["line"], t["sample"]) for t in report["targets"]], result


def grown(data, t):
    """Returns the pixels of the growing simplex: the greatest determinant, tried for every pixel."""
    bands, lines, samples = data.shape
    x = data.reshape(bands, -1)
    values, vectors = np.linalg.eigh(np.cov(x))
    order = np.argsort(values)[::-1]
    z = (vectors[:, order].T @ (x - x.mean(1)[:, None])) / np.sqrt(values[order])[:, None]
    chosen = [int(np.argmax(np.abs(z[0])))]
    while len(chosen) < t:
        k = len(chosen)
        fixed = np.vstack([np.ones(k), z[:k, chosen]])
        volumes = [abs(np.linalg.det(np.column_stack([fixed, np.append(1, z[:k, p])]))) for p in range(x.shape[1])]
        chosen.append(int(np.argmax(volumes)))
    return [divmod(p, samples) for p in chosen]


def residual(x, members):
    optimize = pytest.importorskip("scipy.optimize")
    weight = 1e4 * np.abs(members).max()
    system = np.vstack([members.T, weight * np.ones(len(members))])
    return np.sqrt(sum(optimize.nnls(system, np.append(row, weight))[1] ** 2 for row in x) / x.size)


def knee(steps):
    rmse = np.array([s["rmse"] for s in steps])
    x, y = np.linspace(0, 1, len(rmse)), (rmse - rmse[-1]) / (rmse[0] - rmse[-1])
    depth = 1 - x - y
    return steps[int(np.argmax(depth))]["t"] if depth.max() >= 0.05 else None


def test_the_growing_simplex_is_numpys(tmp_path):
    for seed in 1, 2, 3:
        data = mixtures(seed=seed)
        found, targets, _ = search(tmp_path, data, "2-7")
        want = grown(data, 7)
        assert [(s["line"], s["sample"]) for s in found["steps"]] == want[1:]
        assert targets == want[:found["chosen"]]


@pytest.mark.parametrize("method", ["nfindr", "vca", "atdca"])
def test_what_every_number_explains(tmp_path, method):
    data = mixtures()
    x = data.reshape(9, -1).T
    found, targets, result = search(tmp_path, data, "2-7", "-method", method, "-spectra", tmp_path / "e.csv", "-plot", tmp_path / "c.csv")
    steps = found["steps"]
    assert [s["t"] for s in steps] == [2, 3, 4, 5, 6, 7]
    _, all_places, _ = search(tmp_path, data, "5-7", "-method", method) if method != "vca" else (0, None, 0)
    places = [targets[0]] + [(s["line"], s["sample"]) for s in steps]
    assert targets == places[:found["chosen"]]
    if all_places:
        assert all_places == places[:len(all_places)]  # the same sets for any range
    variance = x.var(0).mean()
    before = None
    for step in steps:
        members = np.array([data[:, line, sample] for line, sample in places[:step["t"]]])
        sides = members[1:] - members[0]
        volume = math.sqrt(np.linalg.det(sides @ sides.T)) / math.factorial(step["t"] - 1)
        assert step["log10_volume"] == pytest.approx(math.log10(volume), abs=1e-6)
        rest = sides[-1] - sides[:-1].T @ np.linalg.lstsq(sides[:-1].T, sides[-1], rcond=None)[0] if len(sides) > 1 else sides[0]
        assert step["height"] == pytest.approx(np.linalg.norm(rest), rel=1e-6)
        assert step["rmse"] == pytest.approx(residual(x, members), rel=2e-4)
        assert step["explained"] == pytest.approx(1 - step["rmse"] ** 2 / variance, abs=1e-6)
        assert step["gain"] == pytest.approx(step["explained"] - (before["explained"] if before else 0), abs=1e-12)
        assert not before or step["rmse"] <= before["rmse"] * (1 + 1e-6)  # a set contains the previous one
        before = step
    assert found["knee"] == knee(steps) == found["chosen"] and "grows" not in result.err
    assert f"Knee: {found['chosen']} endmembers" in result.out and result.out.count("\n   ") >= 6
    with open(tmp_path / "c.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(int(r["t"]), int(r["line"]), int(r["sample"])) for r in rows] == [(s["t"], s["line"], s["sample"]) for s in steps]
    assert [float(r["rmse"]) for r in rows] == pytest.approx([s["rmse"] for s in steps], rel=1e-8)
    assert [int(r["t"]) for r in rows if r["chosen"] == "1"] == [found["chosen"]]


def test_the_knee_is_the_number_of_materials(tmp_path):
    """Where noise is small compared with the materials' differences, only the materials are visible."""
    for sources in 3, 4, 5:
        found, targets, _ = search(tmp_path, mixtures(sources, 24, 24, 12, 0.05, seed=sources), "2-12")
        assert found["knee"] == sources == len(targets)


def test_jasper_ridge_has_four(tmp_path):
    found, targets, _ = search(tmp_path, str(real_scene("jasper_ridge/jasper_ridge.img")), "2-20")
    assert found["knee"] == 4 and targets == [(45, 52), (81, 40), (31, 89), (64, 68)]


def test_the_library_is_that_of_the_knee(tmp_path):
    data = mixtures(4, 24, 24, 12, 0.05)
    found, targets, _ = search(tmp_path, data, "2-9", "-spectra", tmp_path / "e.csv")
    table = [line.split(",") for line in (tmp_path / "e.csv").read_text().splitlines() if not line.startswith("#")]
    spectra = np.array([[float(v) for v in row[-len(targets):]] for row in table[-12:]]).T
    assert found["chosen"] == 4 and np.allclose(spectra, [data[:, line, sample] for line, sample in targets], rtol=1e-6)


def test_curves_without_a_knee(tmp_path):
    # Every pixel has its own band, so each additional one explains as much as the previous.
    data = np.zeros((8, 2, 8))
    for k in range(8):
        data[k, :, k] = 100
    scene = write_scene(tmp_path / "scene.img", data + 1, dtype="f8")
    result = succeed(run("gdal_hsi_endmembers", "-method", "atdca", "-t", "5-7", "-report", tmp_path / "r.json", scene, tmp_path / "e.gpkg"))
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["range"]["knee"] == knee(report["range"]["steps"])
    if report["range"]["knee"] is None:
        assert "no knee" in result.err and report["range"]["chosen"] == 7 == len(report["targets"])
    else:
        pytest.fail("this curve was meant to fall evenly")


def test_a_scene_of_fewer_dimensions_ends_the_range(tmp_path):
    data = mixtures(3, 20, 20, 8, 0)
    for method in "nfindr", "atdca":
        found, targets, result = search(tmp_path, data, "2-8", "-method", method)
        assert found["steps"][-1]["t"] < 8 and len(targets) == found["chosen"] <= 3, found
        assert any(words in result.err for words in ("instead of 8", "only 3 of 8", "the range ends at")), result.err


def test_nothing_depends_on_tiles_threads_and_memory(tmp_path):
    data = mixtures(4, 60, 50, 9)
    scene = write_scene(tmp_path / "scene.img", data)
    gdal.Translate(str(tmp_path / "z.tif"), scene, creationOptions=["COMPRESS=DEFLATE", "TILED=YES", "BLOCKXSIZE=16", "BLOCKYSIZE=16"])
    for method in "nfindr", "atdca":
        results = set()
        for source, options in ((scene, ()), (scene, ("-threads", 1)), (scene, ("-threads", 3, "-tile", 7, 5)), (str(tmp_path / "z.tif"), ("-memory", "24MB"))):
            found, targets, _ = search(tmp_path, source, "3-7", "-method", method, "-plot", tmp_path / "p.svg", *options)
            results.add((json.dumps(found), tuple(targets), (tmp_path / "p.svg").read_text()))
        assert len(results) == 1


def test_the_plot_is_a_picture_of_the_curve(tmp_path):
    found, _, _ = search(tmp_path, mixtures(), "2-7", "-plot", tmp_path / "p.svg")
    name = "{http://www.w3.org/2000/svg}"
    root = xml.etree.ElementTree.parse(tmp_path / "p.svg").getroot()
    circles = root.findall(name + "circle")
    x, y = np.array([[float(c.get("cx")), float(c.get("cy"))] for c in circles]).T
    rmse = np.array([s["rmse"] for s in found["steps"]])
    assert np.allclose(np.diff(x), np.diff(x)[0], atol=0.02) and np.all(np.diff(y) >= 0)
    slope, offset = np.polyfit(rmse, y, 1)
    assert slope < 0 and np.allclose(slope * rmse + offset, y, atol=0.02)
    assert offset == pytest.approx(340, abs=0.1)  # zero is on the axis
    assert f"t = {found['chosen']}" in [t.text for t in root.findall(name + "text")]


@pytest.mark.parametrize("options,code,words", [
    (["-t", "2-11"], 2, "-t: 11 endmembers cannot be found in a scene of 9 bands"), (["-t", "2-10", "-method", "vca"], 2, "-t: 10"),
    (["-t", "3-10", "-method", "atdca"], 2, "-t: 10"), (["-t", "5-3"], 2, "'5-3'"), (["-t", "4-5"], 2, "fewer than three numbers"), (["-t", "1-5"], 2, "-t: 1"),
    (["-t", "2-"], 2, "is not a number or a range"), (["-t", "-3"], 2, "-t"), (["-t", "2-5-7"], 2, "is not a number or a range"), (["-t", "2..5"], 2, "is not a number or a range"),
    (["-t", "2-99999999999"], 2, "is not a number or a range"), (["-t", "2-5", "-residual"], 2, "-residual"), (["-t", "4", "-plot", "{out}/p.svg"], 2, "-plot requires a range"),
    (["-t", "2-5", "-plot", "{out}/p.jpg"], 2, ".svg"), (["-t", "2-5", "-plot", "{out}/no/p.svg"], 1, "p.svg"), (["-t", "2-5", "-plot", "{out}/old.csv"], 1, "old.csv")])
def test_ranges_that_cannot_be(tmp_path, options, code, words):
    scene = write_scene(tmp_path / "scene.img", mixtures())
    (tmp_path / "old.csv").write_text("old")
    with assert_untouched(tmp_path):
        result = run("gdal_hsi_endmembers", *[o.format(out=tmp_path) for o in options], scene, tmp_path / "e.gpkg")
        errors = [line for line in result.err.splitlines() if line.startswith("ERROR: ")]
        assert result.code == code and errors and words in errors[0], result.err


def test_plans_of_a_range(tmp_path):
    scene = write_scene(tmp_path / "scene.img", mixtures())
    with assert_untouched(tmp_path):
        assert "Pass components" in succeed(run("gdal_hsi_endmembers", "-t", "2-6", "-dry-run", scene, tmp_path / "e.gpkg")).out


@pytest.mark.parametrize("method", ["hfc", "nwhfc", "hysime"])
def test_the_number_comes_first_and_the_table_on_request(tmp_path, method):
    scene = write_scene(tmp_path / "scene.img", mixtures(noise=2))
    number = json.loads(succeed(run("gdal_hsi_vd", "-json", "-method", method, scene)).out)
    line = f"Virtual dimensionality: {number['virtual_dimensionality']}"
    plain = succeed(run("gdal_hsi_vd", "-q", "-method", method, scene)).out
    assert plain == line + "\n"
    loud = succeed(run("gdal_hsi_vd", "-method", method, scene)).out
    assert "an upper bound, not a count of materials" in loud.splitlines()[-2]
    assert loud.splitlines()[-1] == line and "eigenvalue" not in loud and "correlation" not in loud
    table = succeed(run("gdal_hsi_vd", "-q", "-table", "-method", method, scene)).out.splitlines()
    assert table[0] == line and len(table) == 2 + 9 and table[1].split()[0] == "no."
    assert [row.split()[-1] for row in table[2:]].count("yes") == number["virtual_dimensionality"]
    refused = run("gdal_hsi_vd", "-table", "-json", scene)
    assert refused.code == 2 and "-table" in first_error(refused)


def test_the_scene_is_read_once_for_all_numbers(tmp_path):
    """The results for a number equal those of a separate run, bit by bit."""
    data = mixtures()
    scene = write_scene(tmp_path / "s.tif", data, driver="GTiff", options=["COMPRESS=DEFLATE"])
    def told(numbers):
        report = tmp_path / "r.json"
        succeed(run("gdal_hsi_endmembers", "-q", "-overwrite", "-method", "atdca", "-t", numbers, "-report", report, scene, tmp_path / "m.csv"))
        facts = json.loads(report.read_text())
        assert [p["name"] for p in facts["passes"]].count("residual") == 1
        return {step["t"]: step["rmse"] for step in facts["range"]["steps"]}
    wide = told("2-8")
    for numbers in ("2-4", "3-5", "6-8"):
        narrow = told(numbers)
        assert narrow == {t: wide[t] for t in narrow}
    report = tmp_path / "q.json"
    succeed(run("gdal_hsi_endmembers", "-q", "-overwrite", "-method", "atdca", "-t", 5, "-residual", "-report", report, scene, tmp_path / "m.csv"))
    facts = json.loads(report.read_text())
    assert [p["name"] for p in facts["passes"]].count("residual") == 1
    assert (facts["residual"]["rmse"], facts["residual"]["rmse_of_one_less"]) == (wide[5], wide[4])
