# SPDX-License-Identifier: MIT
"""-mask-flags: quality layers as providers deliver them, in synthetic files of each layout. The excluded pixels are
those that numpy finds in the layers, and results equal, bit by bit, those of -mask-exclude with the same pixels."""

import json
import pathlib
import shutil
import sys
import xml.sax.saxutils

import numpy as np
import pytest
from conftest import ROOT, cube, first_error, read, run, succeed, write_scene
from osgeo import gdal, osr

sys.path.insert(0, str(ROOT / "tests" / "cli"))
import product_files as files  # noqa: E402

h5py = pytest.importorskip("h5py")
netCDF4 = pytest.importorskip("netCDF4")
gdal.UseExceptions()

BANDS, LINES, SAMPLES = 9, 43, 17
VALUES = np.round(cube(samples=SAMPLES, lines=LINES, bands=BANDS))
RANDOM = np.random.default_rng(8)
FLAG = (RANDOM.uniform(size=(8, LINES, SAMPLES)) < 0.2).astype("u1")
AMOUNT = RANDOM.uniform(0, 1, (LINES, SAMPLES)).astype("f4")
FILL = np.zeros((LINES, SAMPLES), bool)
FILL[3, 4:9] = FILL[30, 2] = True
GRID = (600000, 30, 0, 5300000, 0, -30)


def tiff(path, bands, names=(), nodata=None, geotransform=GRID, epsg=32632):
    bands = np.asarray(bands)
    kind = {"u1": gdal.GDT_Byte, "u2": gdal.GDT_UInt16, "f4": gdal.GDT_Float32}[bands.dtype.str[1:]]
    d = gdal.GetDriverByName("GTiff").Create(str(path), bands.shape[2], bands.shape[1], len(bands), kind)
    if geotransform:
        d.SetGeoTransform(geotransform)
        srs = osr.SpatialReference()
        srs.ImportFromEPSG(epsg)
        d.SetProjection(srs.ExportToWkt())
    d.WriteArray(bands)
    for b, name in enumerate(names):
        d.GetRasterBand(b + 1).SetDescription(name)
    if nodata is not None:
        for b in range(len(bands)):
            d.GetRasterBand(b + 1).SetNoDataValue(nodata)
    d = None
    return path


# --- one writer per layout: the scene, and the meaning of its items


EMIT = "EMIT_L2A_{}_001_20220903T163129_2224611_012.nc"


def emit_mask(path, labels, planes):
    with netCDF4.Dataset(path, "w") as d:
        for name, size in (("downtrack", LINES), ("crosstrack", SAMPLES), ("bands", len(labels)), ("ortho_x", 3)):
            d.createDimension(name, size)
        mask = d.createVariable("mask", "f4", ("downtrack", "crosstrack", "bands"), fill_value=-9999., zlib=True)
        mask[:] = np.moveaxis(np.array([np.where(FILL, -9999, p) for p in planes], "f4"), 0, 2)
        d.createVariable("band_mask", "u1", ("downtrack", "crosstrack", "bands"))[:] = 0
        d.createGroup("sensor_band_parameters").createVariable("mask_bands", str, ("bands",))[:] = np.array(labels, object)
    return path


def emit(folder):
    """As in version 1."""
    scene = files.emit(folder, VALUES).rename(folder / EMIT.format("RFL"))
    emit_mask(folder / EMIT.format("MASK"), ["Cloud flag", "Cirrus flag", "Water flag", "Spacecraft Flag", "Dilated Cloud Flag",
                                             "AOD550", "H2O (g cm-2)", "Aggregate Flag"],
              [*FLAG[:5], AMOUNT, 5 * AMOUNT, FLAG[5]])
    (folder / EMIT.format("MASK").replace("012.nc", "013.nc")).write_text("of another scene")
    return scene, {
        "cloud": FLAG[0] | FILL, "CLOUD_flag": FLAG[0] | FILL, "cirrus,water": FLAG[1] | FLAG[2] | FILL,
        "dilated-cloud": FLAG[4] | FILL, "Dilated Cloud Flag": FLAG[4] | FILL, "not-water": (1 - FLAG[2]) | FILL,
        "AOD550>0.3": (AMOUNT > np.float32(0.3)) | FILL, "aod550 <= 0.25": (AMOUNT <= 0.25) | FILL,
        "H2O (g cm-2)>=4": (5 * AMOUNT >= 4) | FILL, "aod550": (AMOUNT >= 0.5) | FILL, "not-aod550": (AMOUNT < 0.5) | FILL}


def emit_later(folder):
    """Other labels at other positions, another version in the name, and radiances."""
    scene = files.emit(folder, VALUES, "radiance").rename(folder / EMIT.format("x").replace("L2A_x_001", "L1B_RAD_002"))
    emit_mask(folder / EMIT.format("MASK").replace("_001_", "_003_"),
              ["SpecTf-Buffer distance", "SpecTf-Cloud probability", "SpecTf-Cloud flag"], [40 * AMOUNT, AMOUNT, FLAG[0]])
    return scene, {"spectf-cloud": FLAG[0] | FILL, "SpecTf-Cloud probability>0.7": (AMOUNT > np.float32(0.7)) | FILL,
                   "spectf_buffer_distance<8": (40 * AMOUNT < 8) | FILL}


def enmap(folder):
    scene = files.enmap(folder, VALUES)
    cirrus, kind = (FLAG[:4] * np.array([1, 1, 2, 3], "u1")[:, None, None]).max(axis=0), 1 + FLAG[6] + 0 * FLAG[7]
    for name, plane in (("CLOUD", FLAG[0]), ("CLOUDSHADOW", FLAG[1]), ("HAZE", FLAG[2]), ("SNOW", FLAG[3]), ("CIRRUS", cirrus),
                        ("CLASSES", np.where(FLAG[7] > 0, 3, kind).astype("u1")), ("TESTFLAGS", FLAG[4])):
        tiff(folder / f"ENMAP01-QL_QUALITY_{name}.TIF", [np.where(FILL, 255, plane).astype("u1")], nodata=255)
    tiff(folder / "ENMAP02-QL_QUALITY_SMOKE.TIF", [FLAG[5]])
    classes = np.where(FLAG[7] > 0, 3, kind)
    return scene, {
        "cloud": FLAG[0] | FILL, "shadow": FLAG[1] | FILL, "cloud_shadow": FLAG[1] | FILL, "haze,snow": FLAG[2] | FLAG[3] | FILL,
        "cirrus": (cirrus > 0) | FILL, "cirrus>=2": (cirrus >= 2) | FILL, "cirrus>2": (cirrus > 2) | FILL,
        "land": (classes == 1) | FILL, "water": (classes == 2) | FILL, "classes=3": (classes == 3) | FILL,
        "not-land": (classes != 1) | FILL, "testflags": FLAG[4] | FILL}


def desis(folder):
    scene = files.desis(folder, VALUES)
    planes = np.array([*FLAG[:8], 1000 * AMOUNT, 300 * AMOUNT], "u2")
    tiff(folder / "DESIS-QL_QUALITY-2.tif", planes)
    return scene, {"shadow": FLAG[0], "land": FLAG[1], "snow": FLAG[2], "haze": FLAG[3] | FLAG[4], "cloud": FLAG[5] | FLAG[6],
                   "water": FLAG[7], "not-cloud": 1 - (FLAG[5] | FLAG[6]), "aot550>500": planes[8] > 500, "wv<100": planes[9] < 100}


def prisma(folder):
    scene = files.prisma(folder, VALUES, "L1")
    other = np.where(FILL, 255, 0) + np.where(np.roll(FILL, 2, axis=0), 10, 0)
    cover = np.arange(LINES * SAMPLES).reshape(LINES, SAMPLES) % 7
    with h5py.File(scene, "a") as h:
        for name, plane in (("Cloud", FLAG[0]), ("SunGlint", FLAG[1]), ("LandCover", cover)):
            h[f"/HDFEOS/SWATHS/PRS_L1_HCO/Data Fields/{name}_Mask"] = np.where(other > 0, other, plane).astype("u1")
    fill = other > 0
    return scene, {"cloud": FLAG[0] | fill, "glint": FLAG[1] | fill, "sun-glint": FLAG[1] | fill, "landcover=4": (cover == 4) | fill,
                   "not-landcover": (cover == 0) | fill, "not-cloud": (1 - FLAG[0]) | fill}


def pace(folder):
    scene = files.pace(folder, VALUES)
    meanings, bits = ["ATMFAIL", "LAND", "HIGLINT", "CLDICE", "SPARE", "PRODFAIL"], [1, 2, 8, 512, 1 << 20, -(1 << 31)]
    flags = sum(FLAG[k].astype("i8") * bit for k, bit in enumerate(bits)).astype("i4")
    with netCDF4.Dataset(scene, "a") as d:
        variable = d["geophysical_data"].createVariable("l2_flags", "i4", ("number_of_lines", "pixels_per_line"), zlib=True)
        variable.flag_meanings, variable.flag_masks = " ".join(meanings), np.array(bits, "i4")
        variable[:] = flags
    return scene, {"cloud": FLAG[3], "CLDICE": FLAG[3], "glint": FLAG[2], "land,atmfail": FLAG[0] | FLAG[1],
                   "prodfail": FLAG[5], "not-land": 1 - FLAG[1], "hi-glint": FLAG[2]}


def tanager(folder, ortho=False):
    scene = files.tanager(folder, VALUES, ortho)
    with h5py.File(scene, "a") as h:
        for name, plane in (("beta_cloud_mask", FLAG[0]), ("beta_cirrus_mask", FLAG[1]), ("nodata_pixels", FLAG[2])):
            layer = h.create_dataset(f"/HDFEOS/{'GRIDS' if ortho else 'SWATHS'}/HYP/Data Fields/{name}",
                                     data=np.where(FILL, 255, plane).astype("u1"))
            layer.attrs["_FillValue"] = np.uint8(255)
    return scene, {"cloud": FLAG[0] | FILL, "beta_cirrus_mask": FLAG[1] | FILL, "cirrus": FLAG[1] | FILL,
                   "nodata-pixels": FLAG[2] | FILL}


def tanager_ortho(folder):
    return tanager(folder, ortho=True)


LAYOUTS = (emit, emit_later, enmap, desis, prisma, pace, tanager, tanager_ortho)


@pytest.fixture(scope="module", params=LAYOUTS, ids=[layout.__name__ for layout in LAYOUTS])
def product(request, tmp_path_factory):
    return request.param(tmp_path_factory.mktemp(request.param.__name__))


def left_out(scene, out, *options):
    """Returns the pixels without a value in the result, if the mask also applies to results."""
    result = succeed(run("gdal_hsi_pca", "-q", "-nc", "2", "-device", "cpu", "-overwrite", *options, "-mask-output", scene, out))
    return np.isnan(read(out)[0]), result


@pytest.mark.quick
def test_each_item_of_each_layout(product, tmp_path):
    scene, items = product
    for item, expected in items.items():
        got, _ = left_out(scene, tmp_path / "out.tif", "-mask-flags", item)
        np.testing.assert_array_equal(got, np.asarray(expected, bool), item)


def test_the_same_bits_as_an_excluding_mask(product, tmp_path):
    scene, items = product
    item, expected = next(iter(items.items()))
    tiff(tmp_path / "left_out.tif", [np.asarray(expected, "u1")], geotransform=None)
    for name, options in (("flags", ["-mask-flags", item]), ("mask", ["-mask-exclude", tmp_path / "left_out.tif"])):
        succeed(run("gdal_hsi_pca", "-q", "-device", "cpu", *options, scene, tmp_path / f"{name}.tif"))
    assert not np.isnan(read(tmp_path / "flags.tif")).any()
    np.testing.assert_array_equal(read(tmp_path / "flags.tif"), read(tmp_path / "mask.tif"))


def test_info_lists_what_can_be_named(product, tmp_path):
    scene, items = product
    flags = json.loads(succeed(run("gdal_hsi_info", "-flags", "-json", scene)).out)["flags"]
    assert flags and "flags" not in json.loads(succeed(run("gdal_hsi_info", "-json", scene)).out)
    text = succeed(run("gdal_hsi_info", "-flags", scene)).out
    for flag in flags:
        assert pathlib.Path(flag["file"]).exists() and flag["name"] in text
        for name in {flag["name"], flag.get("also", flag["name"])}:
            left_out(scene, tmp_path / "out.tif", "-mask-flags", name + "<-1e9")


def test_an_unknown_name(product, tmp_path):
    scene, _ = product
    result = run("gdal_hsi_pca", "-mask-flags", "clowd", scene, tmp_path / "out.tif")
    assert result.code == 1 and "has no flag 'clowd'" in first_error(result) and "cloud" in result.err.lower()
    assert not (tmp_path / "out.tif").exists()


@pytest.mark.quick
def test_a_window(product, tmp_path):
    scene, items = product
    item, expected = next(iter(items.items()))
    got, _ = left_out(scene, tmp_path / "out.tif", "-mask-flags", item, "-srcwin", 2, 1, 12, 11)
    np.testing.assert_array_equal(got, np.asarray(expected, bool)[1:12, 2:14])


def test_the_layers_of_another_folder(tmp_path):
    for layout in (emit, enmap, desis):
        here, there = tmp_path / layout.__name__ / "a", tmp_path / layout.__name__ / "b"
        for folder in (here, there):
            folder.mkdir(parents=True)
        scene, items = layout(here)
        item, expected = next(iter(items.items()))
        for path in list(here.iterdir()):
            if "MASK" in path.name or "QL_" in path.name:
                path.rename(there / path.name)
        result = run("gdal_hsi_pca", "-mask-flags", item, scene, tmp_path / "out.tif")
        assert result.code == 1 and "has no known quality layers" in first_error(result), result.err
        assert "-mask-flags-from" in result.err
        quality = next(path for path in sorted(there.iterdir()) if "012" in path.name or "QL_" in path.name)
        got, _ = left_out(scene, tmp_path / "out.tif", "-mask-flags", item, "-mask-flags-from", quality)
        np.testing.assert_array_equal(got, np.asarray(expected, bool))
        shutil.rmtree(here)


# --- any raster whose bands have names


@pytest.fixture
def plain(tmp_path):
    return write_scene(tmp_path / "scene.img", VALUES, geotransform=GRID, epsg=32632,
                       wavelengths=[450 + 50 * b for b in range(BANDS)])


def test_band_descriptions(plain, tmp_path):
    quality = tiff(tmp_path / "quality.tif", np.array([FLAG[0], AMOUNT, FLAG[1], FLAG[2]], "f4"),
                   ["Cloud mask", "Haze index", "", "in_shadow"])
    from_file = ["-mask-flags-from", quality]
    for item, expected in (("cloud", FLAG[0]), ("CLOUD-MASK", FLAG[0]), ("hazeindex>0.6", AMOUNT > np.float32(0.6)),
                           ("cloud,in-shadow", FLAG[0] | FLAG[2]), ("not-cloud", 1 - FLAG[0]),
                           ("haze index=0.5", AMOUNT == 0.5)):
        if np.asarray(expected, bool).any():
            got, _ = left_out(plain, tmp_path / "out.tif", "-mask-flags", item, *from_file)
            np.testing.assert_array_equal(got, np.asarray(expected, bool), item)
    got, _ = left_out(plain, tmp_path / "out.tif", "-mask-flags", "cloud", "-mask-flags", "in_shadow", *from_file)
    np.testing.assert_array_equal(got, (FLAG[0] | FLAG[2]) > 0)
    listed = json.loads(succeed(run("gdal_hsi_info", "-flags", "-json", quality)).out)["flags"]
    assert [flag["name"] for flag in listed] == ["Cloud mask", "Haze index", "in_shadow"]
    assert json.loads(succeed(run("gdal_hsi_info", "-flags", "-json", plain)).out)["flags"] == []
    assert "none that are known" in succeed(run("gdal_hsi_info", "-flags", plain)).out


def test_with_the_other_masks(plain, tmp_path):
    """The pixels of -mask without those of -mask-exclude and without the flagged pixels; and the report."""
    quality = tiff(tmp_path / "q.tif", FLAG[:2], ["cloud", "shadow"])
    tiff(tmp_path / "only.tif", [1 - FLAG[2]])
    tiff(tmp_path / "without.tif", [FLAG[3]])
    got, _ = left_out(plain, tmp_path / "out.tif", "-mask", tmp_path / "only.tif", "-mask-exclude", tmp_path / "without.tif",
                      "-mask-flags", "cloud", "-mask-flags-from", quality, "-report", tmp_path / "r.json")
    np.testing.assert_array_equal(got, (FLAG[2] | FLAG[3] | FLAG[0]) > 0)
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["mask"]["flags"]["items"] == "cloud" and report["mask"]["flags"]["pixels"] == FLAG[0].sum()
    assert report["mask"]["flags"]["files"] == [str(quality)] and report["mask"]["pixels"] == (~got).sum()
    assert report["options"]["mask_flags"] == ["cloud"] and report["options"]["mask_flags_from"] == str(quality)


def test_bad_items(plain, tmp_path):
    quality = tiff(tmp_path / "q.tif", [FLAG[0]], ["cloud"])
    for item in ("", "cloud,", ",cloud", ">3", "cloud>", "cloud>x", "not-cloud>1", "cloud==1", "not-"):
        result = run("gdal_hsi_pca", "-mask-flags", item, "-mask-flags-from", quality, plain, tmp_path / "out.tif")
        assert result.code == 2 and "-mask-flags: '" in first_error(result), (item, result.err)
    for options, code, text in (
            (["-mask-flags-from", quality], 2, "-mask-flags-from requires -mask-flags"),
            (["-mask-flags", "cloud"], 1, "has no known quality layers"),
            (["-mask-flags", "cloud", "-mask-flags-from", tmp_path / "none.tif"], 1, "cannot open"),
            (["-mask-flags", "cloud", "-mask-flags-from", plain], 1, "has no flag 'cloud'"),
            (["-mask-flags", "cloud>=0", "-mask-flags-from", quality], 1, "leaves no pixel of the scene"),
            (["-mask-output"], 2, "-mask-output")):
        result = run("gdal_hsi_pca", *options, plain, tmp_path / "out.tif")
        assert result.code == code and text in first_error(result), (options, result.err)
        assert not (tmp_path / "out.tif").exists()
    result = succeed(run("gdal_hsi_pca", "-mask-flags", "cloud>7", "-mask-flags-from", quality, plain, tmp_path / "o.tif"))
    assert "the mask contains no pixel of the scene" in result.err


def test_another_grid(plain, tmp_path):
    """A layer with another size or position. A layer of the window's size has the window's position."""
    for name, planes, options, text in (
            ("size", FLAG[:1, 1:], {}, f"has {SAMPLES} x {LINES - 1} pixels"),
            ("place", FLAG[:1], {"geotransform": (600030, 30, 0, 5300000, 0, -30)}, "different georeferences"),
            ("srs", FLAG[:1], {"epsg": 32633}, "different georeferences")):
        quality = tiff(tmp_path / f"{name}.tif", planes, ["cloud"], **options)
        result = run("gdal_hsi_pca", "-mask-flags", "cloud", "-mask-flags-from", quality, plain, tmp_path / "out.tif")
        assert result.code == 1 and text in first_error(result), result.err
        assert "Flags: cloud." in result.err
    window = tiff(tmp_path / "w.tif", FLAG[:1, 2:9, 3:13], ["cloud"], geotransform=(600090, 30, 0, 5299940, 0, -30))
    got, _ = left_out(plain, tmp_path / "out.tif", "-mask-flags", "cloud", "-mask-flags-from", window, "-srcwin", 3, 2, 10, 7)
    np.testing.assert_array_equal(got, FLAG[0, 2:9, 3:13] > 0)


def test_layers_are_inputs(plain, tmp_path):
    """Outputs cannot replace them, and -if-needed checks them."""
    quality = tiff(tmp_path / "q.tif", [FLAG[0]], ["cloud"])
    options = ["-mask-flags", "cloud", "-mask-flags-from", quality]
    result = run("gdal_hsi_pca", "-overwrite", *options, plain, quality)
    assert result.code == 2 and read(quality).shape[0] == 1
    command = ["gdal_hsi_pca", "-if-needed", *options, plain, tmp_path / "out.tif"]
    succeed(run(*command))
    first = read(tmp_path / "out.tif")
    assert "nothing" in succeed(run(*command)).out.lower() or np.array_equal(read(tmp_path / "out.tif"), first)
    tiff(quality, [FLAG[1]], ["cloud"])
    succeed(run(*command))
    assert not np.array_equal(read(tmp_path / "out.tif"), first)


TOOLS = {  # a tool, and its arguments in addition to src and dst
    "index": ["-expr", "r500/r650"], "smooth": ["-window", "3"], "features": ["-range", "450-850nm"], "destripe": [],
    "resample": ["-bands", "{bands}"], "spp": [], "mnf": [], "reflect": ["-method", "iarr"], "profile": ["-nc", "1"]}


def test_tools_that_write_rasters(product, tmp_path):
    """All of them accept flags; resample and features apply masks only to their results."""
    scene, items = product
    item, expected = next(iter(items.items()))
    expected = np.asarray(expected, bool)
    (tmp_path / "bands.csv").write_text("wavelength_nm,fwhm_nm\n1000,900\n1700,900\n" if "DESIS" not in scene.name
                                        else "wavelength_nm,fwhm_nm\n600,200\n800,200\n")
    for name, options in TOOLS.items():
        options = [o.format(bands=tmp_path / "bands.csv") for o in options]
        if name == "features":
            options = []
        if name == "index":
            options = ["-bbl", "ignore", "-expr", "b2/b1"]
        result = run(f"gdal_hsi_{name}", "-q", "-overwrite", *options, "-mask-flags", item, "-mask-output", scene,
                     tmp_path / "out.tif")
        if name == "resample" and result.code != 0:
            continue  # of bands that these do not reach
        succeed(result)
        assert np.isnan(read(tmp_path / "out.tif")[:, expected]).all(), name
        assert not np.isnan(read(tmp_path / "out.tif")[0]).all(), name
    for name in ("resample", "features"):
        options = [o.format(bands=tmp_path / "bands.csv") for o in TOOLS[name] if name == "resample"]
        result = run(f"gdal_hsi_{name}", *options, "-mask-flags", item, scene, tmp_path / "none.tif")
        assert result.code == 2 and f"-mask-flags has no effect with gdal_hsi_{name}" in first_error(result)


def test_in_a_pipeline(product, tmp_path):
    """The layers belong to the scene that the first step reads."""
    scene, items = product
    item, expected = next(iter(items.items()))
    succeed(run("gdal_hsi_pipeline", "read", scene, "!", "pca", "-nc", "2", "-mask-flags", item, "!", "write", tmp_path / "a.tif"))
    succeed(run("gdal_hsi_pca", "-nc", "2", "-mask-flags", item, scene, tmp_path / "b.tif"))
    np.testing.assert_array_equal(read(tmp_path / "a.tif"), read(tmp_path / "b.tif"))
    succeed(run("gdal_hsi_smooth", "-method", "snv", scene, tmp_path / "virtual.hsi"))
    got, _ = left_out(tmp_path / "virtual.hsi", tmp_path / "c.tif", "-mask-flags", item)
    assert got[np.asarray(expected, bool)].all() and not got.all()


@pytest.mark.parametrize("damage", ["cut", "short list", "no labels", "text"])
def test_damaged_layers(tmp_path, damage):
    scene, _ = emit(tmp_path)
    mask = tmp_path / EMIT.format("MASK")
    if damage == "cut":
        mask.write_bytes(mask.read_bytes()[:3000])
    elif damage == "text":
        mask.write_text("<html>" + xml.sax.saxutils.escape("not found") + "</html>")
    else:
        labels = ["Cloud flag"] if damage == "short list" else []
        emit_mask(mask, ["Cloud flag", "b", "c"], FLAG[:3])
        with h5py.File(mask, "a") as h:
            del h["sensor_band_parameters/mask_bands"]
            if labels:
                h["sensor_band_parameters"].create_dataset("mask_bands", data=labels, dtype=h5py.string_dtype())
    result = run("gdal_hsi_pca", "-mask-flags", "cloud", scene, tmp_path / "out.tif")
    assert result.code == 1 and not (tmp_path / "out.tif").exists(), result.err
    assert "MASK" in first_error(result) or "quality layers" in first_error(result), result.err
