# SPDX-License-Identifier: MIT
"""The plugin gdal_HSI in GDAL programs: VRTs of the tools compared with the tools' rasters, messages for wrong
arguments, threads and forks, and every example of docs/pixel_functions.md."""

import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest
from osgeo import gdal

from conftest import PLUGINS, ROOT, cube, first_error, open_band, real_scene, run, succeed, write_utm_scene as write_scene

os.environ["GDAL_DRIVER_PATH"] = str(PLUGINS)
gdal.SetConfigOption("GDAL_DRIVER_PATH", str(PLUGINS))
gdal.AllRegister()

BANDS = 12
WAVELENGTHS = [400 + 10 * b for b in range(BANDS)]


def values(path, *args, **kwargs):
    data = gdal.Open(str(path)).ReadAsArray(*args, **kwargs).astype(np.float64)
    return data if data.ndim == 3 else data[None]


def program(*args, env=None):
    result = subprocess.run([str(a) for a in args], capture_output=True, text=True, timeout=300, check=False,
                            env={**os.environ, **(env or {})})
    assert result.returncode == 0 and "ERROR" not in result.stderr, result.stdout + result.stderr
    return result.stdout


def assert_same(a, b):
    assert a.shape == b.shape
    np.testing.assert_allclose(a, b, rtol=2e-6, atol=2e-6 * np.nanmax(np.abs(a)))


@pytest.mark.quick
@pytest.mark.skipif(shutil.which("nm") is None, reason="no nm (Debian: binutils)")
def test_names_no_class_of_gdal():
    """The plugin is not linked to libgdal. Functions are bound when they are called. Tables of classes must be bound at
    once, which fails if a program hides GDAL's symbols, as Python does."""
    listed = subprocess.run(["nm", "-D", "--undefined-only", PLUGINS / "gdal_HSI.so"], capture_output=True, text=True, check=True)
    names = [line.split()[-1] for line in listed.stdout.splitlines()]
    assert "GDALOpenEx" in names
    assert [name for name in names if re.match("_ZT[VISTC]", name) and "@" not in name] == []


@pytest.mark.skipif(shutil.which("nm") is None, reason="no nm (Debian: binutils)")
def test_modules_bring_all_of_our_own():
    """A symbol of ours that a module lacks is not provided by any other library: GDAL would not recognise the format,
    or would end during a run."""
    modules = sorted(PLUGINS.glob("*.so"))
    assert {path.name.split(".")[0] for path in modules} >= {"gdal_HSI", "hsi_driver"}
    for path in modules:
        listed = subprocess.run(["nm", "-D", "--undefined-only", path], capture_output=True, text=True, check=True)
        assert [line for line in listed.stdout.splitlines() if "hsi" in line] == [], path.name


def holed_scene(folder):
    data = cube(samples=70, lines=60, bands=BANDS)
    data[:, 20:30, 10:25] = -99
    data[3, 5, 5] = -99  # one band is enough
    data[:, 40, 40] = 0
    return write_scene(folder / "scene.img", data, dtype="i2", nodata=-99, wavelengths=WAVELENGTHS)


def labels_for(folder, samples=70, lines=60):
    field = (np.arange(lines)[:, None] // 7 + np.arange(samples)[None, :] // 5) % 5
    field = field % 3 + 1
    field[np.indices(field.shape).sum(axis=0) % 11 != 0] = 0  # few training pixels keep the training short
    return write_scene(folder / "labels.tif", field[None], driver="GTiff", dtype="u1", nodata=0)


def train(scene, labels, model, *options):
    succeed(run("gdal_hsi_svm_train", "-q", "-C", "8", "-gamma", "0.5", *options, scene, labels, model))


@pytest.fixture(params=["made", "indian_pines/indian_pines.img", "enmap_potsdam/enmap_potsdam.vrt"])
def source(request, tmp_path):
    return holed_scene(tmp_path) if request.param == "made" else str(real_scene(request.param))


def make(tool, source, out, options=(), names=("dst.tif", "dst.vrt")):
    device = [] if tool == "gdal_hsi_mnf" else ["-device", "cpu"]  # it has no such option
    for name in names:
        succeed(run(tool, "-q", *device, *options, source, out / name))
    return out / names[0], out / names[1]


def both_ways(tool, source, out):
    if tool == "gdal_hsi_atdca":
        for extension in ("tif", "vrt"):
            succeed(run(tool, "-q", "-device", "cpu", "-t", "6", "-max-angle", "20", "-map", out / f"dst.{extension}", source,
                        out / f"{extension}.gpkg"))
        return out / "dst.tif", out / "dst.vrt"
    return make(tool, source, out, ["-nc", "4"] if tool in ("gdal_hsi_pca", "gdal_hsi_mnf") else [])


@pytest.mark.quick
@pytest.mark.parametrize("tool", ["gdal_hsi_spp", "gdal_hsi_pca", "gdal_hsi_mnf", "gdal_hsi_atdca"])
def test_vrt_equals_raster(tool, source, out):
    raster, vrt = both_ways(tool, source, out)
    a, b = gdal.Open(str(raster)), gdal.Open(str(vrt))
    scene = gdal.Open(source)  # a GTiff writes the SRS in its own way
    assert scene.GetProjection() == b.GetProjection()
    assert a.GetGeoTransform(can_return_null=True) == b.GetGeoTransform(can_return_null=True)
    assert [a.GetRasterBand(k + 1).GetDescription() for k in range(a.RasterCount)] == \
           [b.GetRasterBand(k + 1).GetDescription() for k in range(b.RasterCount)]
    x, y = a.GetRasterBand(1).GetNoDataValue(), b.GetRasterBand(1).GetNoDataValue()
    assert x == y or np.isnan(x) and np.isnan(y)
    if tool == "gdal_hsi_atdca":
        assert b.GetRasterBand(1).GetCategoryNames() == ["Unclassified"] + [f"Target {k + 1}" for k in range(6)]
        assert a.GetRasterBand(1).GetColorTable().GetColorEntry(3) == b.GetRasterBand(1).GetColorTable().GetColorEntry(3)
        same = np.testing.assert_array_equal
    else:
        same = assert_same
    same(values(raster), values(vrt))
    same(values(raster, 13, 7, 40, 31), values(vrt, 13, 7, 40, 31))
    w, h = a.RasterXSize // 3, a.RasterYSize // 3
    if not source.endswith(".vrt"):  # a mosaic selects pixels tile by tile
        same(values(raster, buf_xsize=w, buf_ysize=h), values(vrt, buf_xsize=w, buf_ysize=h))
    copy = out / "copy.tif"
    program("gdal_translate", "-q", "--config", "GDAL_NUM_THREADS", "3", vrt, copy)
    same(values(raster), values(copy))
    if source.endswith(".vrt"):
        return  # each read of a mosaic of many files takes seconds
    with concurrent.futures.ThreadPoolExecutor(4) as pool:  # one handle per thread
        for x in pool.map(lambda _: values(vrt), range(8)):
            same(values(raster), x)


@pytest.fixture
def shares(tmp_path):
    """Makes a scene whose nodata is 0, with pixels of a single material, and the materials."""
    material = np.random.default_rng(4).integers(200, 4000, (3, BANDS))
    part = np.random.default_rng(5).dirichlet(np.full(3, 0.3), (30, 40))
    part[part < 0.05] = 0
    part /= part.sum(axis=2, keepdims=True)
    data = np.rint(np.moveaxis(part @ material, 2, 0))
    data[:, 4:9, 7:20] = 0
    write_scene(tmp_path / "shares.img", data, dtype="i2", nodata=0, wavelengths=WAVELENGTHS)
    rows = "".join(f"{w},{','.join(map(str, m))}\n" for w, m in zip(WAVELENGTHS, material.T))
    (tmp_path / "three.csv").write_text("wavelength_nm,a,b,c\n" + rows)
    return tmp_path


MEETING_NODATA = {
    "fcls": ["gdal_hsi_unmix", "shares.img", "three.csv"],
    "a type without fractions": ["gdal_hsi_unmix", "-ot", "Byte", "shares.img", "three.csv"],
    "an angle of 0": ["gdal_hsi_detect", "-method", "sam", "-target", "three.csv", "shares.img"],
    "components as integers": ["gdal_hsi_pca", "-nc", 4, "-ot", "Int16", "shares.img"],
    "another nodata": ["gdal_hsi_unmix", "-dstnodata", 1, "-ot", "Float64", "shares.img", "three.csv"],
}


@pytest.mark.parametrize("name", MEETING_NODATA)
def test_a_value_that_meets_nodata_is_no_hole(name, shares, out, monkeypatch):
    monkeypatch.chdir(shares)
    for kind in "tif", "vrt":
        succeed(run(*MEETING_NODATA[name], "-q", out / ("o." + kind)))
    files = [gdal.Open(str(out / ("o." + kind))) for kind in ("tif", "vrt")]
    for number in range(1, files[0].RasterCount + 1):
        tif, vrt = (file.GetRasterBand(number) for file in files)
        assert tif.GetNoDataValue() == vrt.GetNoDataValue() and tif.DataType == vrt.DataType
        a, b = tif.ReadAsArray().astype(float), vrt.ReadAsArray().astype(float)
        holes = a == tif.GetNoDataValue()
        assert holes.sum() == 65 and np.array_equal(holes, b == vrt.GetNoDataValue())
        # A value may be rounded differently if the tool and the function compute in another order.
        assert np.abs(a - b).max() <= (1 if "Int16" in MEETING_NODATA[name] else 1e-5)


@pytest.mark.parametrize("command", [["gdal_hsi_unmix", "s.img", "three.csv"],
                                     ["gdal_hsi_detect", "-method", "sid", "-target", "three.csv", "s.img"]])
def test_a_vrt_leaves_out_bands_without_a_value(command, shares, out, monkeypatch):
    monkeypatch.chdir(shares)
    data = values("shares.img")
    data[data == 0] = np.nan
    data[5] = np.nan
    write_scene("s.img", data, wavelengths=WAVELENGTHS)
    for kind in "tif", "vrt":
        result = succeed(run(*command, out / ("o." + kind)))
        assert "band 6" in result.err, "what is left out is told"
    a, b = values(out / "o.tif"), values(out / "o.vrt")
    assert np.isfinite(a).any() and np.allclose(a, b, rtol=0, atol=1e-5, equal_nan=True)


def spectra_of(source, folder):
    succeed(run("gdal_hsi_atdca", "-q", "-device", "cpu", "-t", 3, "-spectra", folder / "e.sli", source,
                folder / "e.gpkg"))
    return folder / "e.sli"


@pytest.mark.parametrize("place", ["made", "indian_pines"])
@pytest.mark.parametrize("method", ["ucls", "nnls", "scls", "fcls"])
def test_abundances(method, place, tmp_path, out):
    source = scene_and_labels(place, tmp_path, 50)[0]
    library = spectra_of(source, tmp_path)
    for kind in "tif", "vrt":
        succeed(run("gdal_hsi_unmix", "-q", "-method", method, "-rmse", out / ("r." + kind), source, library,
                    out / ("a." + kind)))
    for name in "a", "r":
        assert_same(values(out / (name + ".tif"), 3, 5, 40, 31), values(out / (name + ".vrt"), 3, 5, 40, 31))
        assert open_band(out / (name + ".vrt")).GetDescription() == open_band(out / (name + ".tif")).GetDescription()
    program("gdal_translate", "-q", "-srcwin", 0, 0, 50, 40, out / "a.vrt", out / "copy.tif")
    assert_same(values(out / "copy.tif"), values(out / "a.tif", 0, 0, 50, 40))
    result = run("gdal_hsi_unmix", "-q", "-rmse", out / "x.tif", source, library, out / "x.vrt")
    assert result.code == 2 and "-rmse" in first_error(result) and not (out / "x.vrt").exists()


@pytest.mark.parametrize("place", ["made", "indian_pines"])
@pytest.mark.parametrize("method", ["sam", "sid", "mf", "cem", "ace"])
def test_scores(method, place, tmp_path, out):
    source = scene_and_labels(place, tmp_path, 50)[0]
    library = spectra_of(source, tmp_path)
    for kind in "tif", "vrt":
        succeed(run("gdal_hsi_detect", "-q", "-method", method, "-target", library, source, out / ("s." + kind)))
    assert_same(values(out / "s.tif", 3, 5, 40, 31), values(out / "s.vrt", 3, 5, 40, 31))
    assert gdal.Open(str(out / "s.vrt")).RasterCount == 3
    assert open_band(out / "s.vrt", 2).GetDescription() == open_band(out / "s.tif", 2).GetDescription()
    program("gdal_translate", "-q", "-srcwin", 0, 0, 50, 40, out / "s.vrt", out / "copy.tif")
    assert_same(values(out / "copy.tif"), values(out / "s.tif", 0, 0, 50, 40))


def test_scores_without_a_constant_band(tmp_path, out):
    """The band has no effect on scores, but decides whether a pixel is valid."""
    data = cube(samples=70, lines=60, bands=BANDS)
    data[4] = 77
    data[4, 10, 11] = np.nan
    scene = write_scene(tmp_path / "scene.img", data)
    for method in "mf", "ace":
        for kind in "tif", "vrt":
            succeed(run("gdal_hsi_detect", "-q", "-overwrite", "-method", method, "-target-pixel", 7, 9, scene,
                        out / ("s." + kind)))
        assert_same(values(out / "s.tif"), values(out / "s.vrt"))
        assert np.isnan(values(out / "s.vrt")[0, 10, 11])


@pytest.mark.parametrize("options, word", [(("-method", "rx"), "rx"), (("-window", 3, 7), "rx"),
                                           (("-target-pixel", 3, 4, "-map", "map.tif"), "-map")])
def test_detections_that_a_vrt_cannot_hold(options, word, scene, out):
    result = run("gdal_hsi_detect", *options, scene, out / "s.vrt", cwd=out)
    assert result.code == 2 and word in first_error(result) and not list(out.iterdir())


def test_warp_with_threads(tmp_path, out):
    raster, vrt = both_ways("gdal_hsi_pca", holed_scene(tmp_path), out)
    for path in (raster, vrt):
        program("gdalwarp", "-q", "-multi", "-wo", "NUM_THREADS=3", "-t_srs", "EPSG:4326", path, f"{path}.warped.tif")
    assert_same(values(f"{raster}.warped.tif"), values(f"{vrt}.warped.tif"))


def scene_and_labels(place, tmp_path, one_in):
    """Makes a synthetic scene with holes, or Indian Pines with every n-th pixel labelled."""
    if place == "made":
        return holed_scene(tmp_path), labels_for(tmp_path)
    scene = str(real_scene("indian_pines/indian_pines.img"))
    labels = tmp_path / "labels.tif"
    whole = values(real_scene("indian_pines/indian_pines_gt_10366.tif"))
    whole[0][np.indices(whole[0].shape).sum(axis=0) % one_in != 0] = 0
    write_scene(labels, whole, driver="GTiff", dtype="u1", nodata=0,
                geotransform=gdal.Open(scene).GetGeoTransform())
    return scene, labels


@pytest.mark.parametrize("place", ["made", "indian_pines"])
def test_svm_map(place, tmp_path, out):
    scene, labels = scene_and_labels(place, tmp_path, 7)
    model = tmp_path / "model.json"
    train(scene, labels, model, *(["-probability"] if place == "made" else []))
    for name in ("map.tif", "map.vrt"):
        succeed(run("gdal_hsi_svm_classify", "-q", "-device", "cpu", scene, model, out / name))
    np.testing.assert_array_equal(values(out / "map.tif"), values(out / "map.vrt"))
    names = open_band(out / "map.vrt").GetCategoryNames()
    assert names[0] == "Unclassified" and len(names) == (4 if place == "made" else 17) and all(names)
    copy = out / "copy.tif"
    program("gdal_translate", "-q", "--config", "GDAL_NUM_THREADS", "2", out / "map.vrt", copy)
    np.testing.assert_array_equal(values(out / "map.tif"), values(copy))
    if place != "made":
        return
    refused = run("gdal_hsi_svm_classify", "-q", "-confidence", out / "c.tif", scene, model, out / "second.vrt")
    assert refused.code == 2 and "-confidence" in first_error(refused) and not (out / "second.vrt").exists()


@pytest.mark.parametrize("place", ["made", "indian_pines"])
def test_mlr_map(place, tmp_path, out):
    scene, labels = scene_and_labels(place, tmp_path, 29)
    model = tmp_path / "model.json"
    succeed(run("gdal_hsi_sahic", "-q", "-device", "cpu", "-no-spatial", "-model", model, scene, labels, tmp_path / "train.tif"))
    for name in ("map.tif", "map.vrt"):
        succeed(run("gdal_hsi_sahic", "-q", "-device", "cpu", "-apply", model, "-no-spatial", scene, "none", out / name))
    np.testing.assert_array_equal(values(out / "map.tif"), values(out / "map.vrt"))
    np.testing.assert_array_equal(values(out / "map.tif", 13, 7, 40, 31), values(out / "map.vrt", 13, 7, 40, 31))
    names = open_band(out / "map.vrt").GetCategoryNames()
    trained = [c["value"] for c in json.loads(model.read_text())["classes"]]
    assert names[0] == "Unclassified" and len(names) == trained[-1] + 1 and all(names[c] for c in trained)
    assert {int(v) for v in np.unique(values(out / "map.vrt"))} - {0} <= set(trained)
    copy = out / "copy.tif"
    program("gdal_translate", "-q", "--config", "GDAL_NUM_THREADS", "2", out / "map.vrt", copy)
    np.testing.assert_array_equal(values(out / "map.tif"), values(copy))


@pytest.mark.parametrize("options", [[], ["-no-spatial"], ["-apply", "model.json"],
                                     ["-apply", "model.json", "-no-spatial", "-confidence", "c.tif"]])
def test_mlr_map_that_a_vrt_cannot_hold(options, tmp_path, out):
    scene, labels = holed_scene(tmp_path), labels_for(tmp_path)
    model, applies = tmp_path / "model.json", "-apply" in options
    if applies:
        succeed(run("gdal_hsi_sahic", "-q", "-no-spatial", "-model", model, scene, labels, tmp_path / "train.tif"))
    options = [model if o == "model.json" else out / o if o == "c.tif" else o for o in options]
    refused = run("gdal_hsi_sahic", "-q", *options, scene, "none" if applies else labels, out / "map.vrt")
    assert refused.code == 2 and "dst is a VRT" in first_error(refused) and not list(out.iterdir())


@pytest.mark.parametrize("tool", ["gdal_hsi_pca", "gdal_hsi_mnf"])
def test_inverse_of_components(tool, tmp_path, out):
    scene, model = holed_scene(tmp_path), tmp_path / "model.json"
    succeed(run(tool, "-q", "-nc", "5", "-model", model, scene, out / "components.tif"))
    raster, vrt = make(tool, out / "components.tif", out, ["-apply", model, "-inverse"])
    assert_same(values(raster), values(vrt))


def test_window_and_bands(tmp_path, out):
    raster, vrt = make("gdal_hsi_spp", holed_scene(tmp_path), out, ["-srcwin", "7", "9", "40", "33", "-b", "2-7", "-b", "11"])
    assert_same(values(raster), values(vrt))


def test_masked_source(tmp_path, out):
    scene = write_scene(tmp_path / "scene.tif", cube(bands=6), driver="GTiff", options=["INTERLEAVE=BAND"])
    dataset = gdal.Open(scene, gdal.GA_Update)
    dataset.CreateMaskBand(gdal.GMF_PER_DATASET)
    mask = np.full((30, 40), 255, np.uint8)
    mask[4:9, 11:20] = 0
    dataset.GetRasterBand(1).GetMaskBand().WriteArray(mask)
    dataset = None
    for tool, options in (("gdal_hsi_pca", ["-nc", "2"]), ("gdal_hsi_spp", [])):
        folder = out / tool
        folder.mkdir()
        raster, vrt = make(tool, scene, folder, options)
        assert_same(values(raster), values(vrt))
        assert np.isnan(values(vrt)[:, 4:9, 11:20]).all()


def test_folder_can_be_moved(tmp_path, out):
    raster, vrt = make("gdal_hsi_spp", holed_scene(tmp_path), out)
    train(tmp_path / "scene.img", labels_for(tmp_path), tmp_path / "model.json")
    succeed(run("gdal_hsi_svm_classify", "-q", tmp_path / "scene.img", tmp_path / "model.json", out / "map.vrt"))
    before, classes = values(vrt), values(out / "map.vrt")
    names = set(re.findall(r'<SourceFilename relativeToVRT="(\d)"[^>]*>([^<]*)<', vrt.read_text()))
    assert names == {("1", "../scene.img"), ("1", "dst_alpha.tif")}
    moved = tmp_path.parent / (tmp_path.name + "_moved")
    shutil.move(str(tmp_path), moved)
    np.testing.assert_array_equal(before, values(moved / "out" / "dst.vrt"))
    np.testing.assert_array_equal(classes, values(moved / "out" / "map.vrt"))
    shutil.move(str(moved), tmp_path)


def test_a_note_where_gdal_does_not_find_the_plugin(scene, out):
    """If a user writes a VRT that the user's own GDAL cannot read, a note names the requirements; otherwise there is no
    note."""
    for args in (["gdal_hsi_pca"], ["gdal_hsi_atdca", "-map", out / "map.vrt", "-t", 3]):
        for env, count in (({**os.environ, "GDAL_DRIVER_PATH": "disable"}, 1), (dict(os.environ), 0)):
            name = out / ("t.gpkg" if args[0] == "gdal_hsi_atdca" else "y.vrt")
            result = succeed(run(args[0], *args[1:], "-overwrite", scene, name, env=env))
            assert result.out.count("GDAL_DRIVER_PATH") == count and "GDAL_DRIVER_PATH" not in result.err, result.out
    assert "GDAL_DRIVER_PATH" not in succeed(run("gdal_hsi_pca", "-q", scene, out / "q.vrt",
                                                 env={**os.environ, "GDAL_DRIVER_PATH": "disable"})).out


@pytest.mark.parametrize("options, word", [(["-co", "TILED=YES"], "-co"), (["-if", "ENVI"], "-if")])
def test_refused_options(options, word, scene, out):
    result = run("gdal_hsi_spp", *options, scene, out / "y.vrt")
    assert result.code == 2 and word in first_error(result) and not list(out.iterdir())


def test_tools_without_a_virtual_form_refuse(scene, out):
    result = run("gdal_hsi_eadp", scene, out / "profile.vrt")
    assert result.code == 2 and "VRT" in first_error(result) and not list(out.iterdir())


def derived(path, function, scene="scene.img", bands=range(1, BANDS + 1), sources="", **arguments):
    listed = "".join(f"<SimpleSource><SourceFilename relativeToVRT='1'>{scene}</SourceFilename>"
                     f"<SourceBand>{b}</SourceBand></SimpleSource>" for b in bands)
    given = " ".join(f'{key}="{value}"' for key, value in arguments.items())
    path.write_text(f"<VRTDataset rasterXSize='70' rasterYSize='60'><VRTRasterBand dataType='Float32' band='1' "
                    f"subClass='VRTDerivedRasterBand'><PixelFunctionType>{function}</PixelFunctionType>"
                    f"<PixelFunctionArguments {given}/><SourceTransferType>Float32</SourceTransferType>{listed}{sources}"
                    f"</VRTRasterBand></VRTDataset>")
    return path


ONE = " ".join(str(b + 1) for b in range(BANDS))


@pytest.mark.parametrize("function, arguments, words", [
    ("hsi_sad", {}, ["hsi_sad", "'spectra'", "missing"]),
    ("hsi_sad", {"spectra": "1 2 3"}, ["3 values", "12 sources"]),
    ("hsi_sad", {"spectra": ONE.replace("4", "x")}, ["'spectra'", "not a number"]),
    ("hsi_sad", {"spectra": ONE, "library": "a.sli"}, ["cannot be used with"]),
    ("hsi_sad", {"library": "absent.sli"}, ["absent.sli"]),
    ("hsi_sad", {"spectra": ONE, "output": "colour"}, ["'output'", "angle, class"]),
    ("hsi_sad", {"spectra": ONE, "refrence": "1"}, ["unknown argument 'refrence'"]),
    ("hsi_sad", {"spectra": " ".join(["0"] * BANDS)}, ["all zero"]),
    ("hsi_osp", {"spectra": ONE + ";" + ONE}, ["target 2"]),
    ("hsi_project", {}, ["'weights'", "missing"]),
    ("hsi_project", {"weights": "1 2"}, ["2 values"]),
    ("hsi_project", {"weights": ONE, "offset": "nan"}, ["'offset'", "finite"]),
    ("hsi_spp", {"centroid": "1"}, ["12 sources", "not 2"]),
    ("hsi_svm", {}, ["'model'", "missing"]),
    ("hsi_svm", {"model": "absent.json"}, ["absent.json"]),
    ("hsi_svm", {"model_data": "nonsense!"}, ["model_data"]),
    ("hsi_mlr", {}, ["'model'", "missing"]),
    ("hsi_mlr", {"model": "absent.json"}, ["absent.json"]),
    ("hsi_mlr", {"model_data": "{}"}, ["model_data", "MLR"]),
    ("hsi_resample", {}, ["'weights'", "missing"]),
    ("hsi_resample", {"weights": "1 2"}, ["2 values", "12 sources"]),
    ("hsi_continuum", {}, ["'wavelengths'", "missing"]),
    ("hsi_continuum", {"wavelengths": "1 2"}, ["2 values", "12 sources"]),
    ("hsi_continuum", {"wavelengths": ONE, "ranges": "1 2"}, ["range 1", "2 sources", "needs 3"]),
    ("hsi_continuum", {"wavelengths": ONE, "ranges": "1 8"}, ["in exactly one range"]),
    ("hsi_continuum", {"wavelengths": ONE, "output": "slope"}, ["'output'", "asymmetry"]),
    ("hsi_index", {}, ["'expr'", "missing"]),
    ("hsi_index", {"expr": "b1+*2"}, ["'expr'", "column 4"]),
    ("hsi_index", {"expr": "b13"}, ["'b13' has not enough bands"]),
    ("hsi_index", {"expr": "r800"}, ["'r800' has not enough bands"]),
    ("hsi_index", {"expr": "b1", "scale": "1 2"}, ["'scale'", "2 values", "12 sources"]),
    ("hsi_transform", {"band": "1"}, ["'method'", "missing"]),
    ("hsi_transform", {"method": "snv"}, ["'band'", "missing"]),
    ("hsi_transform", {"method": "savgol", "band": "1"}, ["'method'", "sum", "hsi_resample"]),
    ("hsi_transform", {"method": "snv", "band": "1", "lambda": "1"}, ["'lambda'"]),
    ("hsi_transform", {"method": "msc", "band": "1", "reference": "1 2"}, ["'reference'", "2 values", "12 sources"]),
    ("hsi_transform", {"method": "absorbance", "band": "1", "factor": "-1"}, ["'factor'", "out of range"]),
    ("hsi_unmix", {}, ["'endmembers'", "missing"]),
    ("hsi_unmix", {"endmembers": ONE}, ["'band'", "missing"]),
    ("hsi_unmix", {"endmembers": ONE, "band": "3"}, ["'band'", "2"]),
    ("hsi_unmix", {"endmembers": ONE + ";" + ONE, "band": "1", "method": "nnls"}, ["hsi_unmix"]),
    ("hsi_unmix", {"endmembers": ONE, "band": "1", "method": "best"}, ["'method'", "fcls"]),
    ("hsi_sam", {"targets": "1 2"}, ["2 values", "12 sources"]),
    ("hsi_sam", {"targets": " ".join(["0"] * BANDS)}, ["all zero"]),
    ("hsi_match", {}, ["'mean'", "missing"]),
    ("hsi_match", {"mean": ONE, "weights": "1 2"}, ["'weights'", "2 values"]),
    ("hsi_match", {"mean": ONE, "weights": ONE, "band": "2"}, ["'band'"]),
    ("hsi_match", {"mean": ONE, "weights": ONE, "method": "ace"}, ["'contrast'", "missing"]),
    ("hsi_match", {"mean": "1", "weights": "1", "used": "0"}, ["'used'"]),
    ("hsi_norm", {"nodata": "1 2"}, ["'nodata'", "2 values"]),
    ("hsi_norm", {"masks": "99"}, ["'masks'"]),
])
def test_wrong_arguments_are_named(function, arguments, words, tmp_path):
    holed_scene(tmp_path)
    with pytest.raises(RuntimeError) as caught:
        values(derived(tmp_path / "a.vrt", function, **arguments))
    for word in words:
        assert word in str(caught.value), str(caught.value)


@pytest.mark.parametrize("function, argument", [("hsi_svm", "model"), ("hsi_mlr", "model"), ("hsi_sad", "library")])
def test_pipes_are_not_waited_for(function, argument, tmp_path):
    """VRTs may also come from strangers: a program that displays one must not block."""
    holed_scene(tmp_path)
    os.mkfifo(tmp_path / "p")
    for name in (tmp_path / "p", "/dev/zero"):
        with pytest.raises(RuntimeError, match="is a pipe or a device"):
            values(derived(tmp_path / "a.vrt", function, **{argument: name}))


def test_nodata_of_every_function(tmp_path):
    scene = values(holed_scene(tmp_path))
    holes = (scene == -99).any(axis=0) | (scene == 0).all(axis=0)
    for function, arguments in (("hsi_norm", {}), ("hsi_sad", {"spectra": ONE}), ("hsi_osp", {"spectra": ONE}),
                                ("hsi_project", {"weights": ONE})):
        result = values(derived(tmp_path / f"{function}.vrt", function, nodata="-99", dst_nodata="-5", **arguments))[0]
        np.testing.assert_array_equal(result == -5, holes)
        result = values(derived(tmp_path / f"{function}2.vrt", function, nodata="-99", **arguments))[0]
        np.testing.assert_array_equal(np.isnan(result), holes)


def test_changed_file_is_read_again(tmp_path):
    holed_scene(tmp_path)
    library = tmp_path / "one.csv"
    vrt = derived(tmp_path / "a.vrt", "hsi_sad", nodata="-99", library=library)
    library.write_text("band,a\n" + "\n".join(f"{b + 1},{b + 1}" for b in range(BANDS)))
    first = values(vrt)
    library.write_text("band,a\n" + "\n".join(f"{b + 1},{(b % 3) + 10}" for b in range(BANDS)))
    assert np.nanmax(np.abs(values(vrt) - first)) > 1


@pytest.mark.parametrize("how", ["in place", "another file", "its header"])
def test_a_file_that_was_replaced_by_one_of_its_size_and_time(how, tmp_path):
    """cp -p, tar and rsync produce such files: programs can set the time of modification."""
    holed_scene(tmp_path)
    library = tmp_path / "one.sli"
    header = ("ENVI\nfile type = ENVI Spectral Library\nsamples = %d\nlines = 1\nbands = 1\ndata type = 4\n"
              "interleave = bsq\nbyte order = 0\nheader offset = %%02d\n" % BANDS)
    one, other = (np.array([f(b) for b in range(BANDS)], "<f4").tobytes()
                  for f in (lambda b: b + 1, lambda b: b % 3 + 10))
    library.write_bytes(one + other)
    library.with_suffix(".hdr").write_text(header % 0)
    vrt = derived(tmp_path / "a.vrt", "hsi_sad", nodata="-99", library=library)
    first = values(vrt)
    time.sleep(0.1)  # from here on, changes are visible in the file system's times
    np.testing.assert_array_equal(values(vrt), first)
    changed = library.with_suffix(".hdr") if how == "its header" else library
    status = changed.stat()
    text = (header % len(one)).encode() if how == "its header" else other + one
    if how == "another file":
        (tmp_path / "new").write_bytes(text)
        os.replace(tmp_path / "new", changed)
    else:
        changed.write_bytes(text)
    os.utime(changed, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert (changed.stat().st_size, changed.stat().st_mtime_ns) == (status.st_size, status.st_mtime_ns)
    second = values(vrt)
    (tmp_path / "other.csv").write_text("band,a\n" + "\n".join(f"{b + 1},{b % 3 + 10}" for b in range(BANDS)))
    expected = values(derived(tmp_path / "b.vrt", "hsi_sad", nodata="-99", library=tmp_path / "other.csv"))
    np.testing.assert_array_equal(second, expected)
    assert np.nanmax(np.abs(second - first)) > 1


def test_fork_after_use(tmp_path):
    holed_scene(tmp_path)
    vrt = derived(tmp_path / "a.vrt", "hsi_sad", nodata="-99", spectra=ONE)
    code = f"""
import os, threading
import numpy as np
from osgeo import gdal
read = lambda: gdal.Open({str(vrt)!r}).ReadAsArray()
expected = read()
threads = [threading.Thread(target=read) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()  # GDAL itself does not survive a fork while other threads are inside it
for _ in range(20):
    pid = os.fork()
    if pid == 0:
        os._exit(0 if np.array_equal(read(), expected, equal_nan=True) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
print('forked')
"""
    assert "forked" in program(sys.executable, "-c", code)


def test_device_option(tmp_path):
    holed_scene(tmp_path)
    train(tmp_path / "scene.img", labels_for(tmp_path), tmp_path / "model.json")
    vrt = derived(tmp_path / "a.vrt", "hsi_svm", nodata="-99", model=tmp_path / "model.json")
    for device, word in (("gpu", "GDAL_HSI_DEVICE: 'gpu' is not a device"),
                         ("cuda:99", "GDAL_HSI_DEVICE=cuda:99: (no CUDA device was found|there (is|are) only)")):
        gdal.SetConfigOption("GDAL_HSI_DEVICE", device)
        try:
            with pytest.raises(RuntimeError, match=word):
                values(vrt)
        finally:
            gdal.SetConfigOption("GDAL_HSI_DEVICE", None)


def test_other_programs(tmp_path, out):
    raster, vrt = both_ways("gdal_hsi_pca", holed_scene(tmp_path), out)
    text = program("gdalinfo", "-stats", vrt)
    assert "PC1" in text and "STATISTICS_MEAN" in text and text.count("NoData Value=-99") == 4
    if shutil.which("otbcli_BandMath") is None:
        pytest.skip("otbcli_BandMath is absent (otb-bin): gdalinfo alone was tried")
    program("otbcli_BandMath", "-il", vrt, "-exp", "im1b1 + im1b2", "-out", out / "sum.tif", "float")
    a = values(raster)
    assert_same(a[0] + a[1], values(out / "sum.tif")[0])


@pytest.mark.parametrize("tool", ["gdal_hsi_atdca", "gdal_hsi_sahic"])
def test_qgis_shows_map_with_legend(tool, tmp_path, out):
    if subprocess.run([sys.executable, "-c", "import qgis.core"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no QGIS with Python bindings on this machine (python3-qgis)")
    scene = holed_scene(tmp_path)
    if tool == "gdal_hsi_atdca":
        _, vrt = both_ways(tool, scene, out)
        last, colours = "Target 6", 4
    else:
        vrt, model = out / "map.vrt", tmp_path / "model.json"
        succeed(run(tool, "-q", "-no-spatial", "-model", model, scene, labels_for(tmp_path), tmp_path / "train.tif"))
        succeed(run(tool, "-q", "-apply", model, "-no-spatial", scene, "none", vrt))
        last, colours = open_band(vrt).GetCategoryNames()[-1], 3
    text = program(sys.executable, ROOT / "tests" / "qgis" / "open_in_qgis.py", vrt, out / "map.png")
    facts = json.loads(next(line for line in text.splitlines() if line.startswith("QGIS "))[5:])
    assert facts["valid"] and facts["renderer"] == "paletted" and facts["crs"] == "EPSG:32616"
    assert facts["extent"] == [500000, 4480000 - 20 * 60, 500000 + 20 * 70, 4480000]
    assert last and any(last in item for item in facts["legend"]) and facts["colours_seen"] >= colours


EXAMPLES = re.findall(r"<!-- example: (\S+) -->\n```xml\n(.*?)```", (ROOT / "docs" / "pixel_functions.md").read_text(), re.S)


@pytest.fixture(scope="module")
def example_folder(tmp_path_factory):
    """Makes the files of the examples: a scene of four bands, its alpha, targets and models."""
    folder = tmp_path_factory.mktemp("examples")
    scene = write_scene(folder / "scene.img", cube(samples=60, lines=50, bands=4), nodata=-9999)
    succeed(run("gdal_hsi_spp", "-q", "-alpha", folder / "alpha.tif", scene, folder / "y.tif"))
    succeed(run("gdal_hsi_atdca", "-q", "-t", "2", "-spectra", folder / "targets.sli", scene, folder / "t.gpkg"))
    succeed(run("gdal_hsi_pca", "-q", "-nc", "2", "-model", folder / "pca.json", scene, folder / "pcs.tif"))
    succeed(run("gdal_hsi_unmix", "-q", "-method", "nnls", scene, folder / "targets.sli", folder / "nnls.tif"))
    train(scene, labels_for(folder, 60, 50), folder / "svm.json", "-probability")
    succeed(run("gdal_hsi_svm_classify", "-q", "-device", "cpu", "-probabilities", folder / "p.tif", scene,
                folder / "svm.json", folder / "map.tif"))
    succeed(run("gdal_hsi_sahic", "-q", "-device", "cpu", "-no-spatial", "-model", folder / "mlr.json", "-confidence",
                folder / "mlr_confidence.tif", "-probabilities", folder / "mlr_p.tif", scene, labels_for(folder, 60, 50),
                folder / "mlr_map.tif"))
    return folder


def expected(name, folder):
    x = values(folder / "scene.img")
    norm = np.sqrt((x ** 2).sum(axis=0))
    targets = np.fromfile(folder / "targets.sli", np.float32).reshape(-1, len(x)).astype(np.float64)
    angle = lambda t: np.degrees(np.arccos(np.clip(np.tensordot(t, x, 1) / norm / np.linalg.norm(t), -1, 1)))
    if name == "hsi_norm":
        return norm
    if name == "hsi_sad":
        return angle(np.array([650, 640, 700, 720.0]))
    if name == "hsi_sad-class":
        nearest = np.argmin([angle(t) for t in targets], axis=0)
        return np.where(np.min([angle(t) for t in targets], axis=0) <= 10, nearest + 1, 0)
    if name == "hsi_osp":
        q = np.linalg.qr(targets.T)[0]
        return np.sqrt((((x - np.tensordot(q @ q.T, x, 1))) ** 2).sum(axis=0))
    if name == "hsi_project":
        return np.tensordot(np.array([0.25, 0.25, 0.25, 0.25]), x, 1) - 100
    if name == "hsi_project-component":
        return values(folder / "pcs.tif")[1]
    if name == "hsi_continuum":
        hull = np.maximum(x[0] + (x[3] - x[0]) / 3, np.maximum(x[1], x[0] + (x[2] - x[0]) / 2))
        return x[1] / hull
    if name == "hsi_index":
        return (x[3] - x[0]) / (x[3] + x[:3].mean(0))
    if name == "hsi_transform":
        r = np.array([5, 3, 4, 6]) - 4.5
        b = np.tensordot(r, x - x.mean(0), 1) / (r ** 2).sum()
        return np.where(b > 0, (x[1] - x.mean(0)) / np.where(b > 0, b, 1) + 4.5, np.nan)
    if name == "hsi_resample":
        return np.tensordot([0, 0.25, 0.75, 0], x, 1)
    if name == "hsi_unmix":
        return values(folder / "nnls.tif")[1]
    if name == "hsi_sam":
        return np.radians(angle(np.array([650, 640, 700, 720.0])))
    if name == "hsi_match":
        return np.tensordot([0.01, -0.02, 0.03, 0.01], x - np.array([700, 710, 690, 650.0])[:, None, None], 1)
    if name == "hsi_spp":
        alpha = values(folder / "alpha.tif")[0]
        return (x[0] - 750.5) / (1 + np.sqrt(alpha)) ** 2 + 750.5
    if name == "hsi_svm":
        return values(folder / "map.tif")[0]
    if name == "hsi_svm-probability":
        return values(folder / "p.tif")[1]
    if name == "hsi_mlr":
        return values(folder / "mlr_map.tif")[0]
    if name == "hsi_mlr-probability":
        return values(folder / "mlr_p.tif")[1]
    raise AssertionError(f"no expectation for the example {name}")


def test_every_function_has_an_example():
    names = {name.split("-")[0] for name, _ in EXAMPLES}
    assert names == {"hsi_norm", "hsi_sad", "hsi_osp", "hsi_project", "hsi_spp", "hsi_svm", "hsi_mlr",
                     "hsi_unmix", "hsi_sam", "hsi_match", "hsi_resample", "hsi_continuum", "hsi_index", "hsi_transform"}


@pytest.mark.parametrize("name, xml", EXAMPLES, ids=[name for name, _ in EXAMPLES])
def test_example(name, xml, example_folder):
    path = example_folder / f"{name}.vrt"
    path.write_text(xml)
    program("gdal_translate", "-q", path, example_folder / f"{name}.tif", env={"GDAL_HSI_PATH": str(example_folder)})
    result, wanted = values(example_folder / f"{name}.tif")[0], expected(name, example_folder)
    np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-4 * max(1, np.abs(wanted).max() / 100))
