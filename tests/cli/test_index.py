# SPDX-License-Identifier: MIT
"""gdal_hsi_index, compared with a NumPy reference in double precision and with spyndex; virtual scenes, libraries,
lists, and refused input."""

import csv
import itertools
import json
import os
import re
import subprocess

import numpy as np
import pytest
from osgeo import gdal

from conftest import PLUGINS, assert_untouched, cube, first_error, read, run, succeed, write_scene

BANDS = 230
# Difficult wavelengths: uneven steps, an overlap of two detectors, two equal wavelengths.
NM = [398.3 + 9.17 * b + 0.6 * (b % 3) for b in range(BANDS)]
NM[70], NM[71] = NM[66] + 0.2, NM[67]
BAD = {5, 30, 150}
LINES, SAMPLES = 9, 31


def index(*args):
    return run("gdal_hsi_index", *args)


def copy_computed(scene, copy):
    subprocess.run(["gdal_translate", "-q", scene, copy], check=True, env={**os.environ, "GDAL_DRIVER_PATH": str(PLUGINS)})


def catalogue():
    return json.loads(succeed(index("-list", "-json")).out)["indices"]


GOOD = [b for b in range(BANDS) if b not in BAD]


def rising(low, high):
    bands, seen = [], []
    for b in GOOD:  # among equal wavelengths, the first in the file
        if low <= NM[b] <= high and all(abs(NM[b] - nm) > 1e-6 for nm in seen):
            bands.append(b)
            seen.append(NM[b])
    return sorted(bands, key=lambda b: NM[b])


def weights_at(nm, choice, tolerance, width):
    if choice == "nearest":
        best = min(GOOD, key=lambda b: (abs(NM[b] - nm), b))
        return {best: 1.0} if abs(NM[best] - nm) <= tolerance else None
    if choice == "average":
        bands = rising(nm - width / 2, nm + width / 2)
        return {b: 1 / len(bands) for b in bands} if bands else None
    bands = rising(0, 1e9)
    for a, b in zip(bands, bands[1:]):
        if NM[a] <= nm <= NM[b] and NM[b] - NM[a] <= 4 * tolerance:
            t = (nm - NM[a]) / (NM[b] - NM[a])
            return {a: 1 - t, b: t}
    return None


def edge(x, v):
    s, m = np.diff(v, axis=0) / np.diff(x)[:, None], (x[1:] + x[:-1]) / 2
    result = np.full(v.shape[1], np.nan)
    for p in range(v.shape[1]):
        most = s[:, p].max()
        if not most > 0:
            continue
        j = int(np.argmax(s[:, p] >= most - 1e-12 * most))
        result[p] = m[j]
        if 0 < j < len(m) - 1:
            a, b, _ = np.polyfit(m[j - 1:j + 2] - m[j], s[j - 1:j + 2, p], 2)
            if a < 0:
                result[p] = np.clip(m[j] - b / (2 * a), (m[j - 1] + m[j]) / 2, (m[j] + m[j + 1]) / 2)
    return result


def reference(formula, scene, choice="nearest", tolerance=10, width=10):
    """Computes an index in double precision by Python's own grammar; None if a band is missing. Also returns the bands
    that it uses."""
    used, names = set(), {}

    def wavelength(match):
        weights = weights_at(float(match[1]), choice, tolerance, width)
        if weights is None:
            raise LookupError
        used.update(weights)
        names[name := f"v{len(names)}"] = sum(w * scene[b] for b, w in weights.items())
        return name

    def of_range(match):
        bands = rising(float(match[2]), float(match[3]))
        if len(bands) < {"edge": 4, "std": 2, "slope": 2, "area": 2}.get(match[1], 1):
            raise LookupError
        used.update(bands)
        x, v = np.array([NM[b] for b in bands]), scene[bands]
        functions = {"mean": lambda: v.mean(0), "sum": lambda: v.sum(0), "min": lambda: v.min(0), "max": lambda: v.max(0),
                     "std": lambda: v.std(0, ddof=1), "slope": lambda: np.polyfit(x - x.mean(), v, 1)[0],
                     "area": lambda: np.trapz(v, x, axis=0), "edge": lambda: edge(x, v),
                     "argmin": lambda: x[v.argmin(0)], "argmax": lambda: x[v.argmax(0)]}
        names[name := f"v{len(names)}"] = functions[match[1]]()
        return name

    try:
        text = re.sub(r"(\w+)\(r\[([\d.]+):([\d.]+)\]\)", of_range, formula)
        text = re.sub(r"\br([\d.]+)", wavelength, text)
    except LookupError:
        return None, used
    functions = {"sqrt": np.sqrt, "tanh": np.tanh, "log10": np.log10, "exp": np.exp, "ln": np.log, "abs": np.abs}
    with np.errstate(all="ignore"):
        value = eval(text.replace("^", "**"), {"__builtins__": {}}, {**names, **functions})
    return np.where(np.isfinite(value), value, np.nan), used


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("index")
    scene = (0.05 + 0.5 * cube(SAMPLES, LINES, BANDS, seed=3) / cube(SAMPLES, LINES, BANDS, seed=3).max()).astype(np.float32)
    scene[40, 1, 2] = np.nan
    scene[:, 3, 4] = 0
    scene[100, 5, 6] = -9999
    write_scene(folder / "scene.img", scene, wavelengths=NM, fwhm=[9] * BANDS, nodata=-9999,
                bbl=[0 if b in BAD else 1 for b in range(BANDS)])
    return folder


def values(folder):
    scene = read(folder / "scene.img").astype(np.float64).reshape(BANDS, -1)
    scene[scene == -9999] = np.nan
    return scene


def compare(got, expected, scene, used, name, share=1.0):
    got, expected = got.reshape(-1).astype(float), expected.copy()
    pixels = scene[sorted(used)]
    expected[~np.isfinite(pixels).all(0) | (pixels == 0).all(0)] = np.nan
    assert (np.isnan(got) == np.isnan(expected)).all(), name
    there = ~np.isnan(expected)
    limit = 1e-5 * np.abs(expected[there]) + 1e-9 * np.abs(pixels[:, there]).max(0)
    good = np.abs(got[there] - expected[there]) <= limit
    assert good.mean() >= share, (name, np.abs(got[there] - expected[there]).max())


@pytest.mark.quick
@pytest.mark.parametrize("choice, options", [("nearest", ()), ("linear", ()), ("average", ("-width", "25"))])
def test_all_indices_against_the_reference(files, tmp_path, choice, options):
    scene, width = values(files), 25 if options else 10
    found = [(one["name"], *reference(one["formula"], scene, choice, width=width)) for one in catalogue()]
    assert len(found) == 78
    there = [one for one in found if one[1] is not None]
    assert len(there) > 60
    succeed(index("-name", "all", "-choice", choice, *options, files / "scene.img", tmp_path / "all.tif"))
    dataset = gdal.Open(str(tmp_path / "all.tif"))
    assert [dataset.GetRasterBand(k + 1).GetDescription() for k in range(dataset.RasterCount)] == [one[0] for one in there]
    got, used = read(tmp_path / "all.tif"), set().union(*(one[2] for one in there))
    for k, (name, expected, _) in enumerate(there):
        compare(got[k], expected, scene, used, name)


@pytest.mark.parametrize("formula", [
    "std(r[600:700])", "slope(r[600:700])*1000", "area(r[600:700])", "sum(r[600:700])", "min(r[600:700])", "max(r[600:700])",
    "argmin(r[600:700])", "argmax(r[600:700])", "edge(r[500:900])", "-r800^2", "2^r670^r800", "sqrt(r670-r700)", "ln(r800-r670)",
    "abs(r800-r670)/r700", "exp(r800)*1e38"])
def test_expressions_against_the_reference(files, tmp_path, formula):
    scene = values(files)
    succeed(index("-expr", formula, files / "scene.img", tmp_path / "e.tif"))
    expected, used = reference(formula, scene)
    expected = np.where(np.abs(expected) <= np.finfo(np.float32).max, expected, np.nan)
    compare(read(tmp_path / "e.tif"), expected, scene, used, formula)
    assert gdal.Open(str(tmp_path / "e.tif")).GetRasterBand(1).GetDescription() == "expr1"


def test_virtual_scenes_pipelines_tiles_threads_and_interleave_have_the_same_bits(files, tmp_path):
    asked = ("-name", "NDVI,REP,RGRI,TCARI_OSAVI", "-expr", "x=if(r800>0.3,std(r[600:700]),b12)", "-choice", "linear")
    succeed(index(*asked, files / "scene.img", tmp_path / "a.tif"))
    expected = read(tmp_path / "a.tif")
    again = [("-tile", "7", "2"), ("-threads", "3"), ("-of", "HSI"), ("-of", "VRT")]
    for interleave in "BIL", "BIP":
        write_scene(tmp_path / f"{interleave}.img", gdal.Open(str(files / "scene.img")).ReadAsArray(), wavelengths=NM, nodata=-9999,
                    bbl=[0 if b in BAD else 1 for b in range(BANDS)], options=[f"INTERLEAVE={interleave}"])
    for k, options in enumerate(again):
        path = tmp_path / f"{k}.{ {'HSI': 'hsi', 'VRT': 'vrt'}.get(options[-1], 'tif')}"
        succeed(index(*asked, *options, files / "scene.img", path))
        if path.suffix in (".hsi", ".vrt"):
            copy_computed(path, tmp_path / f"{k}.tif")
            path = tmp_path / f"{k}.tif"
        assert np.array_equal(read(path), expected, equal_nan=True), options
    for name in "BIL", "BIP":
        succeed(index(*asked, tmp_path / f"{name}.img", tmp_path / f"{name}.tif"))
        assert np.array_equal(read(tmp_path / f"{name}.tif"), expected, equal_nan=True), name
    succeed(run("gdal_hsi_pipeline", "read", files / "scene.img", "!", "index", *asked, "!", "write", tmp_path / "p.tif"))
    assert np.array_equal(read(tmp_path / "p.tif"), expected, equal_nan=True)


def test_bands_have_names_units_formulas_and_bands(files, tmp_path):
    succeed(index("-name", "ndvi,NDVI", "-name", "rep", "-expr", "ratio = b13/b14", files / "scene.img", tmp_path / "n.tif"))
    dataset = gdal.Open(str(tmp_path / "n.tif"))
    bands = [dataset.GetRasterBand(k + 1) for k in range(dataset.RasterCount)]
    assert [b.GetDescription() for b in bands] == ["NDVI", "REP", "ratio"]
    assert [b.GetUnitType() for b in bands] == ["", "nm", ""]
    near = min(GOOD, key=lambda b: abs(NM[b] - 800))
    assert f"r800=band {near + 1} ({NM[near]:.6g} nm)" in bands[0].GetMetadataItem("HSI_INDEX_BANDS")
    assert bands[0].GetMetadataItem("HSI_INDEX_FORMULA") == "(r800-r670)/(r800+r670)"


@pytest.mark.quick
def test_scale_and_offset(files, tmp_path):
    scene = np.nan_to_num(values(files), nan=0.5).reshape(BANDS, LINES, SAMPLES)
    write_scene(tmp_path / "dn.img", np.round(scene * 10000), dtype="i2", wavelengths=NM)
    out = index("-name", "EVI", tmp_path / "dn.img", tmp_path / "dn.tif")
    assert out.code == 0 and "-scale" in out.err and "EVI" in out.err
    assert "-scale" not in index("-name", "NDVI", tmp_path / "dn.img", tmp_path / "ndvi.tif").err
    out = index("-name", "EVI", "-scale", "0.0001", tmp_path / "dn.img", tmp_path / "scaled.tif")
    assert out.code == 0 and "-scale" not in out.err
    gdal.Translate(str(tmp_path / "tagged.tif"), str(tmp_path / "dn.img"))
    dataset = gdal.Open(str(tmp_path / "tagged.tif"), gdal.GA_Update)
    for k in range(BANDS):
        dataset.GetRasterBand(k + 1).SetScale(0.0001)
        dataset.GetRasterBand(k + 1).SetOffset(0.01)
        dataset.GetRasterBand(k + 1).SetMetadataItem("wavelength", str(NM[k]))
        dataset.GetRasterBand(k + 1).SetMetadataItem("wavelength_units", "Nanometers")
    dataset = None
    for name in "offset.tif", "offset.vrt", "offset.hsi":
        succeed(index("-expr", "r800+mean(r[600:700])", tmp_path / "tagged.tif", tmp_path / name))
    plain = read(tmp_path / "dn.img").astype(float)
    near = min(range(BANDS), key=lambda b: abs(NM[b] - 800))
    red = [b for b in range(BANDS) if 600 <= NM[b] <= 700]
    red = [b for k, b in enumerate(red) if all(abs(NM[b] - NM[c]) > 1e-6 for c in red[:k])]
    expected = plain[near] * 1e-4 + plain[red].mean(0) * 1e-4 + 0.02
    expected[3, 4] = np.nan  # all values are 0
    assert np.allclose(read(tmp_path / "offset.tif")[0], expected, rtol=1e-6, atol=0, equal_nan=True)
    for name in "vrt", "hsi":
        copy_computed(tmp_path / f"offset.{name}", tmp_path / f"{name}.tif")
        assert np.array_equal(read(tmp_path / f"{name}.tif"), read(tmp_path / "offset.tif"), equal_nan=True)


def test_a_library_gives_a_table(files, tmp_path):
    scene = values(files)[:, :3]
    with open(tmp_path / "library.csv", "w") as f:
        f.write("wavelength_nm,grass,\"soil, dry\",hole\n")
        for b in range(BANDS):
            hole = "" if abs(NM[b] - 800) < 20 else f"{scene[b, 2]:.9g}"
            f.write(f"{NM[b]!r},{scene[b, 0]:.9g},{scene[b, 1]:.9g},{hole}\n")
    succeed(index("-name", "NDVI,CIgreen", tmp_path / "library.csv", tmp_path / "t.csv"))
    with open(tmp_path / "t.csv", newline="") as f:
        rows = list(csv.reader(f))
    assert [row[0] for row in rows] == ["name", "grass", "soil, dry", "hole"] and rows[0][1:] == ["NDVI", "CIgreen"]
    near = [min(range(BANDS), key=lambda b: (abs(NM[b] - nm), b)) for nm in (800, 670)]
    for k in range(2):
        a, b = scene[near, k]
        assert float(rows[k + 1][1]) == pytest.approx((a - b) / (a + b), rel=1e-6)
    assert rows[3][1:] == ["", ""]  # a used band has no value there
    with assert_untouched(tmp_path):
        assert "already exists" in index("-name", "NDVI", tmp_path / "library.csv", tmp_path / "t.csv").err


def test_response_is_what_gdal_hsi_resample_makes(files, tmp_path):
    (tmp_path / "bands.csv").write_text("wavelength,fwhm\n800,25\n")
    succeed(index("-expr", "r800", "-choice", "response", "-width", "25", files / "scene.img", tmp_path / "i.tif"))
    succeed(run("gdal_hsi_resample", "-bands", tmp_path / "bands.csv", files / "scene.img", tmp_path / "r.tif"))
    ours, theirs = read(tmp_path / "i.tif"), read(tmp_path / "r.tif")
    both = ~np.isnan(ours) & ~np.isnan(theirs)
    assert both.sum() > 200 and np.allclose(ours[both], theirs[both], rtol=1e-6)


def test_masks(files, tmp_path):
    mask = np.zeros((1, LINES, SAMPLES))
    mask[0, :5] = 1
    write_scene(tmp_path / "mask.tif", mask, driver="GTiff", dtype="u1")
    out = index("-name", "NDVI", "-mask", tmp_path / "mask.tif", files / "scene.img", tmp_path / "m.tif")
    assert out.code == 2 and "-mask-output" in out.err
    succeed(index("-name", "NDVI", "-mask", tmp_path / "mask.tif", "-mask-output", files / "scene.img", tmp_path / "m.tif"))
    got = read(tmp_path / "m.tif")[0]
    assert np.isnan(got[5:]).all() and (~np.isnan(got[:5])).sum() > 150


def test_list(files):
    listed = {one["name"]: one for one in json.loads(succeed(index("-list", "-json", files / "scene.img")).out)["indices"]}
    assert listed["NDVI"]["supported"] and len(listed["NDVI"]["bands"]) == 2 and listed["NDVI"]["wavelengths_nm"] == [670, 800]
    assert not (set(itertools.chain(*(one["bands"] for one in listed.values()))) & {b + 1 for b in BAD})
    for one in listed.values():
        assert one["supported"] == (reference(one["formula"], values(files))[0] is not None), one["name"]
    assert all(one["supported"] is None and one["bands"] is None for one in catalogue())
    text = succeed(index("-list", files / "scene.img")).out
    assert "NDVI: (r800-r670)/(r800+r670)" in text and "Rouse" in text


# spyndex 0.12 differs from the papers in ARVI, AWEInsh, mND705 and mSR705; the specification follows the papers.
SPYNDEX = {"NDVI": "NDVI", "GNDVI": "GNDVI", "EVI": "EVI", "EVI2": "EVI2", "SAVI": "SAVI", "OSAVI": "OSAVI", "RDVI": "RDVI",
           "WDRVI": "WDRVI", "VARI": "VARI", "NIRv": "NIRv", "kNDVI": "kNDVI", "MSAVI": "MSAVI", "TVI": "TriVI", "MTVI2": "MTVI2",
           "NDSI": "NDSI", "NDWI_McFeeters": "NDWI", "MNDWI": "MNDWI", "BAI": "BAI", "NDBI": "NDBI", "NBR": "NBR", "SR": "SR", "MCARI": "MCARI",
           "TCARI": "TCARI", "TCARI_OSAVI": "TCARIOSAVI", "MTCI": "MTCI", "NDRE": "NDREI", "ND705": "RENDVI", "PSRI": "PSRI", "SIPI": "SIPI",
           "NDII": "NDMI", "NDWI_Gao": "NDMI", "MSI": "MSI", "ARI1": "ARI", "ARI2": "ARI2", "CRI1": "CRI550", "CRI2": "CRI700",
           "NDCI": "NDCI", "NMDI": "NMDI", "NPCI": "NPCI", "CCI": "CCI"}
ROLES = {"A": 445, "B": 470, "G1": 531, "G": 550, "R": 670, "RE1": 705, "RE2": 740, "RE3": 780, "N": 800, "N2": 860, "S1": 1650, "S2": 2200}


def test_formulas_against_spyndex():
    spyndex = pytest.importorskip("spyndex")
    rng = np.random.default_rng(5)
    listed = {one["name"]: one["formula"] for one in catalogue()}
    functions = {"sqrt": np.sqrt, "tanh": np.tanh, "log10": np.log10}
    for ours, theirs in SPYNDEX.items():
        v = {role: rng.uniform(0.05, 0.6, 50) for role in ROLES}
        formula = listed[ours]
        # The roles of the formula's wavelengths in spyndex: the nearest role. kNDVI's parameters are kernels of N and
        # R.
        roles = ["N", "R"] if ours == "kNDVI" else [one for one in spyndex.indices[theirs].bands if one in ROLES]
        named = {nm: min(roles, key=lambda r: abs(ROLES[r] - float(nm)))
                 for nm in re.findall(r"\br([\d.]+)", formula)}
        text = re.sub(r"\br([\d.]+)", lambda m: named[m[1]], formula).replace("^", "**")
        mine = eval(text, {"__builtins__": {}}, {**v, **functions})
        constants = {name: value.default for name, value in spyndex.constants.items() if value.default is not None}
        constants.update(L=0.5 if ours == "SAVI" else 1.0, alpha=0.1, gamma=1.0, C1=6.0, C2=7.5, g=2.5)
        if ours == "kNDVI":
            v["kNN"], v["kNR"] = np.ones(50), np.exp(-((v["N"] - v["R"]) ** 2) / (2 * (0.5 * (v["N"] + v["R"])) ** 2))
        other = eval(spyndex.indices[theirs].formula, {"__builtins__": {}}, {**constants, **v, **functions})
        assert np.allclose(mine, other, rtol=1e-9), ours


@pytest.mark.quick
@pytest.mark.parametrize("options, code, first, rest", [
    (("-name", "NDWI"), 2, "-name: several indices are called 'NDWI'", "NDWI_Gao or NDWI_McFeeters"),
    (("-name", "NDVII"), 2, "-name: unknown index 'NDVII'", "NDVI"),
    (("-expr", "r800+*2"), 2, "-expr: cannot read 'r800+*2' at column 6", ""),
    (("-expr", "a=r800", "-expr", "A=r670"), 2, "two indices are called 'A'", ""),
    (("-name", "NDVI", "-width", "5"), 2, "-width requires -choice average or response", ""),
    (("-name", "NDVI", "-choice", "average", "-tolerance", "5"), 2, "-tolerance requires -choice nearest or linear", ""),
    (("-name", "NDVI", "-json"), 2, "-json requires -list", ""),
    (("-name", "NDVI", "-scale", "0"), 2, "-scale: '0'", ""),
    ((), 2, "the indices are missing", "-list"),
    (("-expr", "a=r800", "-expr", "c=1"), 2, "-expr c=1 uses no band", ""),
    (("-expr", "r3000"), 1, "expr1: no good band represents r3000 (3000 nm)", ""),
    (("-expr", "x=edge(r[600:610])"), 1, "x: edge(r[600:610]) needs 4 good bands", ""),
    (("-expr", "b6"), 1, "expr1: there is no good band 6", ""),
    (("-expr", "b231"), 1, "expr1: there is no good band 231", "")])
def test_bad_input(files, tmp_path, options, code, first, rest):
    out = index(*options, files / "scene.img", tmp_path / "bad.tif")
    assert out.code == code, out.err
    assert first in first_error(out) and rest in out.err
    assert not list(tmp_path.iterdir())


def test_a_scene_without_wavelengths(files, tmp_path):
    write_scene(tmp_path / "plain.img", read(files / "scene.img")[:4])
    for options in (("-name", "NDVI"), ("-name", "all")):
        out = index(*options, tmp_path / "plain.img", tmp_path / "x.tif")
        assert out.code == 1 and "wavelength" in out.err and not (tmp_path / "x.tif").exists()
    succeed(index("-expr", "b2-b1", tmp_path / "plain.img", tmp_path / "x.tif"))
