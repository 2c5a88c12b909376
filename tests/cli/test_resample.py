# SPDX-License-Identifier: MIT
"""gdal_hsi_resample, compared with a slow reference in double precision, on rasters and libraries; and refused
input."""

import json
import math
import os
import subprocess

import numpy as np
import pytest
from osgeo import gdal

from conftest import PLUGINS, assert_untouched, cube, first_error, open_band, read, run, succeed, write_scene

BANDS, STEP, WIDTH = 40, 5.0, 6.0
CENTRES = [400 + STEP * b for b in range(BANDS)]
TARGETS = [(390 + 11.0 * j, 14 + j % 3) for j in range(20)]
INSIDE = [t for t in TARGETS if CENTRES[0] <= t[0] <= CENTRES[-1]]


def resample(*args):
    return run("gdal_hsi_resample", *args)


def table(path, rows, head="wavelength_nm,fwhm"):
    path.write_text("\n".join([head] + [",".join("%.10g" % v if isinstance(v, float) else str(v) for v in r) for r in rows]) + "\n")
    return path


@pytest.fixture
def files(tmp_path):
    scene = cube(33, 21, BANDS).astype(np.float32)
    scene[7, 4, 5] = np.nan
    scene[:, 6, 7] = 0
    write_scene(tmp_path / "scene.img", scene, wavelengths=CENTRES, fwhm=[WIDTH] * BANDS)
    table(tmp_path / "bands.csv", TARGETS)
    return tmp_path


def normal(z):
    return math.erfc(-z / math.sqrt(2)) / 2


def row(centre, width, centres=CENTRES, w=WIDTH):
    """Returns the weights, by the integral of the polyline under the missing response, as sums of 400 steps per
    segment."""
    c = np.array(centres)
    i = min(int(np.searchsorted(c, centre, "right")) - 1, len(c) - 2)
    h = c[i + 1] - c[i]
    s2 = (width ** 2 - w ** 2) / 2.354820045 ** 2 - h ** 2 / 6
    r = np.zeros(len(c))
    if s2 <= 1e-6:
        r[i + 1] = (centre - c[i]) / h
        r[i] = 1 - r[i + 1]
        return r
    s = math.sqrt(s2)
    for k in range(len(c) - 1):
        a, b = max(c[k], centre - 4 * s), min(c[k + 1], centre + 4 * s)
        if a >= b:
            continue
        x = a + (b - a) * (np.arange(400) + 0.5) / 400
        g = np.exp(-((x - centre) / s) ** 2 / 2) * (b - a) / 400
        share = (x - c[k]) / (c[k + 1] - c[k])
        r[k] += ((1 - share) * g).sum()
        r[k + 1] += (share * g).sum()
    return r / r.sum()


@pytest.mark.quick
def test_scene_against_the_integral(files):
    succeed(resample("-bands", files / "bands.csv", files / "scene.img", files / "out.tif", "-report", files / "r.json"))
    scene, out = read(files / "scene.img"), read(files / "out.tif")
    matrix = np.array([row(*t) for t in INSIDE])
    want = np.tensordot(matrix, scene, 1)
    bad = np.isnan(scene).any(axis=0) | (scene == 0).all(axis=0)
    want[:, bad] = np.nan
    np.testing.assert_allclose(out, want, rtol=3e-6)
    assert bad.sum() == 2
    report = json.loads((files / "r.json").read_text())
    assert report["resampled"] == {"method": "response", "target": f"-bands {files / 'bands.csv'}", "source_bands": BANDS,
                                   "bands": len(INSIDE), "left_out": [1, 20], "cut": 1}
    dataset = gdal.Open(str(files / "out.tif"))
    for j, (centre, width) in enumerate(INSIDE):
        items = dataset.GetRasterBand(j + 1).GetMetadata()
        assert float(items["wavelength"]) == centre and items["wavelength_units"] == "Nanometers"
        assert float(items["fwhm"]) == width
        assert abs(float(items["HSI_NOISE_GAIN"]) - math.sqrt((matrix[j] ** 2).sum())) < 1e-5
    assert dataset.GetGeoTransform() == (500000, 20, 0, 4480000, 0, -20) and dataset.GetSpatialRef() is not None


def test_headers_of_envi_tell_the_new_bands(files):
    succeed(resample("-q", "-bands", files / "bands.csv", files / "scene.img", files / "out.img", "-of", "ENVI"))
    header = {k.strip(): v.strip() for k, _, v in (line.partition("=") for line in (files / "out.hdr").read_text().splitlines())}
    numbers = lambda key: [float(v) for v in header[key].strip("{}").split(",")]
    assert numbers("wavelength") == [t[0] for t in INSIDE] and numbers("fwhm") == [t[1] for t in INSIDE]
    assert header["wavelength units"] == "Nanometers"
    # Its own bands: all bits are unchanged.
    succeed(resample("-q", "-like", files / "out.img", files / "out.img", files / "again.img", "-of", "ENVI"))
    assert (files / "again.img").read_bytes() == (files / "out.img").read_bytes()


def test_flat_spectra_stay_flat_and_lines_lines(files):
    level = np.linspace(0.1, 1, 6)[:, None, None] * np.ones((1, 1, 1))
    flat = np.broadcast_to(level.reshape(1, 2, 3), (BANDS, 2, 3)).astype(np.float32)
    line = flat + np.array(CENTRES)[:, None, None].astype(np.float32) / 1000
    for name, data, slope in (("flat", flat, 0), ("line", line, 1e-3)):
        write_scene(files / f"{name}.img", data, wavelengths=CENTRES, fwhm=[WIDTH] * BANDS)
        succeed(resample("-q", "-bands", files / "bands.csv", files / f"{name}.img", files / f"{name}.tif"))
        out = read(files / f"{name}.tif")
        for j, (centre, _) in enumerate(INSIDE):
            if slope and not CENTRES[0] + 40 < centre < CENTRES[-1] - 40:
                continue
            np.testing.assert_allclose(out[j], flat[0] + slope * centre, rtol=1e-6)


@pytest.mark.quick
def test_tiles_threads_memory_and_interleave_change_no_byte(files):
    succeed(resample("-q", "-bands", files / "bands.csv", files / "scene.img", files / "a.img", "-of", "ENVI"))
    one = (files / "a.img").read_bytes()
    for interleave in ("BIL", "BIP"):
        write_scene(files / f"{interleave}.img", read(files / "scene.img"), options=[f"INTERLEAVE={interleave}"], wavelengths=CENTRES,
                    fwhm=[WIDTH] * BANDS)
    for k, args in enumerate((["-threads", 3, "-tile", 7, 5], ["-threads", 1, "-tile", 33, 1], ["-memory", "64MB"])):
        for scene in ("scene.img", "BIL.img", "BIP.img"):
            out = files / f"b{k}{scene}"
            succeed(resample("-q", *args, "-bands", files / "bands.csv", files / scene, out, "-of", "ENVI"))
            assert out.read_bytes() == one, (args, scene)


def test_linear_and_bad_bands(files):
    bbl = [1] * BANDS
    bbl[10:14] = [0] * 4
    scene = read(files / "scene.img")
    write_scene(files / "gap.img", np.nan_to_num(scene, nan=5.0).astype(np.float32), wavelengths=CENTRES, fwhm=[WIDTH] * BANDS, bbl=bbl)
    table(files / "three.csv", [(455.0, 12.0), (460.0, 12.0), (500.0, 12.0)])
    out = succeed(resample("-resample", "linear", "-bands", files / "three.csv", files / "gap.img", files / "l.tif"))
    data = np.nan_to_num(scene, nan=5.0)
    share = (455 - CENTRES[9]) / (CENTRES[14] - CENTRES[9])
    want = np.float32(1 - share) * data[9] + share * data[14]
    good = np.ones(data.shape[1:], bool)
    good[6, 7] = False
    np.testing.assert_allclose(read(files / "l.tif")[0][good], want[good], rtol=1e-6)
    succeed(resample("-bands", files / "three.csv", files / "gap.img", files / "r.tif", "-report", files / "r.json"))
    assert json.loads((files / "r.json").read_text())["resampled"]["left_out"] == [1, 2], out.out


def test_scales_are_carried_or_applied(files):
    data = np.round(read(files / "scene.img"))
    data[np.isnan(data)] = 7
    for name, scales in (("same", [0.01] * BANDS), ("own", [0.01 * (1 + b % 2) for b in range(BANDS)])):
        write_scene(files / f"{name}.tif", data, driver="GTiff", dtype="f4", wavelengths=CENTRES)
        dataset = gdal.Open(str(files / f"{name}.tif"), gdal.GA_Update)
        for b in range(BANDS):
            dataset.GetRasterBand(b + 1).SetScale(scales[b])
            dataset.GetRasterBand(b + 1).SetOffset(3)
            dataset.GetRasterBand(b + 1).SetUnitType("W")
        dataset = None
        out = succeed(resample("-bands", files / "bands.csv", files / f"{name}.tif", files / f"{name}_out.tif"))
        band = open_band(files / f"{name}_out.tif", 5)
        assert band.GetUnitType() == "W"
        meant = data * np.array(scales)[:, None, None] + 3
        matrix = np.array([row(*t, w=STEP) for t in INSIDE])
        got = read(files / f"{name}_out.tif")
        if name == "same":
            assert band.GetScale() == 0.01 and band.GetOffset() == 3
            got = got * 0.01 + 3
        else:
            assert band.GetScale() in (None, 1.0) and "applied first" in out.out
        good = (data != 0).any(axis=0)
        np.testing.assert_allclose(got[:, good], np.tensordot(matrix, meant, 1)[:, good], rtol=3e-6)


def test_vrt_has_the_same_values(files):
    succeed(resample("-q", "-bands", files / "bands.csv", files / "scene.img", files / "out.tif"))
    succeed(resample("-q", "-of", "VRT", "-bands", files / "bands.csv", files / "scene.img", files / "out.vrt"))
    subprocess.run(["gdal_translate", "-q", str(files / "out.vrt"), str(files / "v.tif")], check=True,
                   env={**os.environ, "GDAL_DRIVER_PATH": str(PLUGINS)})
    a, b = read(files / "out.tif"), read(files / "v.tif")
    assert np.array_equal(a, b, equal_nan=True)
    assert open_band(files / "out.vrt").GetMetadataItem("wavelength") == "%g" % INSIDE[0][0]


@pytest.mark.parametrize("dst", ["out.csv", "out.sli"])
def test_libraries(files, dst):
    random = np.random.default_rng(4)
    values = random.uniform(0.1, 0.9, (BANDS, 2))
    lines = ["wavelength_nm,fwhm,grass,soil"] + ["%g,%g,%.9g,%s" % (CENTRES[b], WIDTH, values[b, 0], "" if b == 20 else "%.9g" % values[b, 1])
                                              for b in range(BANDS)]
    (files / "l.csv").write_text("\n".join(lines) + "\n")
    succeed(resample("-q", "-bands", files / "bands.csv", files / "l.csv", files / dst))
    # gdal_hsi_info reads the result.
    found = json.loads(succeed(run("gdal_hsi_info", "-json", files / dst)).out)
    assert found["wavelengths_nm"] == pytest.approx([t[0] for t in INSIDE])
    assert found["fwhm_nm"] == pytest.approx([t[1] for t in INSIDE])
    if dst.endswith("csv"):
        got = np.genfromtxt(files / dst, delimiter=",", skip_header=1)
        head = (files / dst).read_text().splitlines()[0].split(",")
        at = {name: got[:, k] for k, name in enumerate(head)}
        np.testing.assert_allclose(at["grass"], np.array([row(*t) for t in INSIDE]) @ values[:, 0], rtol=3e-6)
        kept = [b for b in range(BANDS) if b != 20]
        left = [CENTRES[b] for b in kept]
        np.testing.assert_allclose(at["soil"], np.array([row(*t, centres=left) for t in INSIDE]) @ values[kept, 1], rtol=3e-6)


@pytest.mark.quick
@pytest.mark.parametrize("args, code, words", [
    (["scene.img", "o.tif"], 2, ["missing"]),
    (["-like", "scene.img", "-bands", "bands.csv", "scene.img", "o.tif"], 2, ["-like cannot be used with -bands"]),
    (["-bands", "absent.csv", "scene.img", "o.tif"], 1, ["absent.csv"]),
    (["-bands", "far.csv", "scene.img", "o.tif"], 1, ["no band of", "400 nm", "2200 nm"]),
    (["-bands", "plain.csv", "scene.img", "o.tif"], 1, ["plain.csv", "wavelengths"]),
    (["-bands", "bands.csv", "plain.tif", "o.tif"], 1, ["plain.tif", "no wavelengths"]),
    (["-like", "plain.tif", "scene.img", "o.tif"], 1, ["plain.tif", "no wavelengths"]),
    (["-bands", "bands.csv", "-b", "3", "scene.img", "o.tif"], 2, ["resampling"]),
    (["-bands", "bands.csv", "library.csv", "o.tif"], 2, ["o.tif"]),
    (["-bands", "bands.csv", "-srcwin", "0", "0", "2", "2", "library.csv", "o.csv"], 2, ["-srcwin", "library"]),
    (["-bands", "bands.csv", "scene.img", "there.tif"], 1, ["there.tif"]),
    (["-bands", "bands.csv", "-device", "cpu", "scene.img", "o.tif"], 2, ["-device"]),
])
def test_bad_input(files, args, code, words):
    table(files / "far.csv", [(2200.0, 10.0), (2300.0, 10.0)])
    (files / "plain.csv").write_text("a,b\n0.5,0.25\n0.1,0.25\n0.7,0.2\n")
    (files / "library.csv").write_text("wavelength_nm,a\n400,1\n450,2\n500,1\n550,2\n")
    write_scene(files / "plain.tif", cube(5, 4, 6), driver="GTiff")
    (files / "there.tif").write_text("old")
    with assert_untouched(files):
        result = resample(*[str(files / a) if "." in a and not a.startswith("-") else a for a in args])
        assert result.code == code, result.err
        for word in words:
            assert word in first_error(result), result.err


def test_dry_run_writes_nothing(files):
    with assert_untouched(files):
        assert "resampling" in succeed(resample("-dry-run", "-bands", files / "bands.csv", files / "scene.img", files / "o.tif")).out


# -resample of tools that take a library to a scene

FINE = [380 + 1.5 * b for b in range(170)]


@pytest.fixture
def finer(files):
    """Makes a scene of mixtures and the library, 1.5 nm apart, with and without widths."""
    random = np.random.default_rng(6)
    x = np.array(FINE)
    rows = [0.4 + 0.3 * np.sin(x / 17 + k) + 0.2 * np.cos(x / (5 + k)) for k in range(3)]
    matrix = np.array([row(c, WIDTH, centres=FINE, w=2.0) for c in CENTRES])
    a = random.dirichlet(np.ones(3), 12 * 9).T.reshape(3, 9, 12)
    write_scene(files / "mixed.img", np.tensordot((np.array(rows) @ matrix.T).T, a, 1).astype(np.float32), wavelengths=CENTRES,
                fwhm=[WIDTH] * BANDS)
    table(files / "fine.csv", [(c, 2.0, *(float(r[b]) for r in rows)) for b, c in enumerate(FINE)], "wavelength_nm,fwhm,a,b,c")
    table(files / "bare.csv", [(c, *(float(r[b]) for r in rows)) for b, c in enumerate(FINE)], "wavelength_nm,a,b,c")
    return files, a, np.array(rows)


def test_unmix_takes_the_response_where_widths_are_known(finer):
    files, a, rows = finer
    out = succeed(run("gdal_hsi_unmix", files / "mixed.img", files / "fine.csv", files / "a.tif", "-report", files / "r.json"))
    assert json.loads((files / "r.json").read_text())["resampled"] == "response" and "-resample response" in out.out
    np.testing.assert_allclose(read(files / "a.tif"), a, atol=2e-4)
    # The same result as with a library that was resampled before, and is then used unchanged.
    succeed(resample("-q", "-like", files / "mixed.img", files / "fine.csv", files / "there.csv"))
    succeed(run("gdal_hsi_unmix", "-q", files / "mixed.img", files / "there.csv", files / "b.tif", "-report", files / "s.json"))
    assert "resampled" not in json.loads((files / "s.json").read_text())
    np.testing.assert_allclose(read(files / "a.tif"), read(files / "b.tif"), atol=1e-5)


@pytest.mark.parametrize("args, library, method", [
    ([], "bare.csv", "linear"), (["-resample", "linear"], "fine.csv", "linear"), (["-resample", "response"], "bare.csv", "response"),
    (["-resample", "AUTO"], "fine.csv", "response")])
def test_which_way_spectra_are_taken(finer, args, library, method):
    files, _, rows = finer
    succeed(run("gdal_hsi_detect", "-q", *args, "-method", "sam", "-target", files / library, files / "mixed.img", files / "d.tif",
                "-report", files / "r.json"))
    assert json.loads((files / "r.json").read_text())["resampled"] == method
    width = 2.0 if library == "fine.csv" else 1.5
    matrix = np.array([row(c, WIDTH, centres=FINE, w=width) for c in CENTRES])
    taken = rows @ matrix.T if method == "response" else np.array([np.interp(CENTRES, FINE, r) for r in rows])
    x = read(files / "mixed.img")
    angle = [np.arccos(np.clip(np.tensordot(t, x, 1) / np.linalg.norm(t) / np.linalg.norm(x, axis=0), -1, 1)) for t in taken]
    np.testing.assert_allclose(read(files / "d.tif"), angle, atol=2e-5)


def test_references_of_atdca(finer):
    files, _, _ = finer
    for args, method in (([], "response"), (["-resample", "linear"], "linear")):
        succeed(run("gdal_hsi_atdca", "-q", *args, "-t", 3, "-reference", files / "fine.csv", files / "mixed.img",
                    files / f"{method}.gpkg", "-report", files / "r.json"))
        assert json.loads((files / "r.json").read_text())["resampled"] == method


@pytest.mark.parametrize("tool, args", [("gdal_hsi_atdca", ["-t", "2"]), ("gdal_hsi_detect", [])])
def test_resample_needs_a_library(finer, tool, args):
    files = finer[0]
    with assert_untouched(files):
        result = run(tool, *args, "-resample", "linear", files / "mixed.img", files / "o.tif")
        assert result.code == 2 and "-resample" in first_error(result)


@pytest.mark.parametrize("rows, told", [
    ("2.1,20\n2.2,20\n", "the width of band 1 is read as 20000 nm, at a wavelength of 2100 nm (and 1 more such width)"),
    ("2.1,20\n", "the width of band 1 is read as 20000 nm, at a wavelength of 2100 nm"),
    ("2100,-20\n2200,20\n", "band 1 has the width -20, which is not a number above 0: the width is unknown there"),
    ("2100,20\n2200,inf\n", "band 2 has the width inf, which is not a number above 0: the width is unknown there"),
    ("2100,1e9\n2200,20\n", "the width of band 1 is read as 1000000000 nm"),
    ("2100,20\n2200,20\n", ""), ("2100,0\n2200,20\n", ""), ("2100,\n2200,nan\n", ""), ("2.1,0.02\n2.2,0.02\n", ""),
])
def test_widths_that_cannot_be_right_are_told(tmp_path, rows, told):
    centres = np.linspace(2000, 2400, 30)
    write_scene(tmp_path / "s.img", cube(6, 5, 30).astype("f4"), wavelengths=centres, fwhm=[14.0] * 30)
    name = "wavelength_um" if rows.startswith("2.") else "wavelength_nm"
    (tmp_path / "t.csv").write_text(f"{name},fwhm\n" + rows)
    err = succeed(resample("-resample", "linear", "-bands", tmp_path / "t.csv", tmp_path / "s.img", tmp_path / "o.tif")).err
    assert (told in err) if told else ("width" not in err), err
    # As a library, and one spectrum per row.
    lines = [f"{name},fwhm,a"] + [row + ",0.5" for row in rows.split()]
    (tmp_path / "l.csv").write_text("\n".join(lines) + "\n")
    err = run("gdal_hsi_info", tmp_path / "l.csv").err
    assert (told in err) if told else ("width" not in err), err


def test_units_beside_the_names_make_widths_right(tmp_path):
    centres = np.linspace(2000, 2400, 30)
    write_scene(tmp_path / "s.img", cube(6, 5, 30).astype("f4"), wavelengths=centres, fwhm=[14.0] * 30)
    (tmp_path / "t.csv").write_text("wavelength (um),fwhm (nm)\n2.1,20\n2.2,20\n")
    result = succeed(resample("-bands", tmp_path / "t.csv", tmp_path / "s.img", tmp_path / "o.tif"))
    assert "width" not in result.err
    dataset = gdal.Open(str(tmp_path / "o.tif"))
    items = dataset.GetRasterBand(1).GetMetadata()
    assert float(items["wavelength"]) == 2100 and float(items["fwhm"]) == 20
