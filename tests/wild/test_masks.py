# SPDX-License-Identifier: MIT
"""-mask, -mask-exclude, -mask-output: tools exclude clouds and water from statistics and training. The result equals,
bit by bit, that of a copy of the scene in which the other pixels are nodata."""

import csv
import dataclasses
import json
import pathlib

import numpy as np
import pytest
from osgeo import gdal, ogr, osr

from conftest import assert_untouched, cube, first_error, read, run, succeed, write_utm_scene as write_scene

gdal.UseExceptions()

SAMPLES, LINES, BANDS = 60, 50, 8
ORIGIN = (500000, 20, 0, 4480000, 0, -20)
WAVELENGTHS = [450 + 50 * b for b in range(BANDS)]


def write_mask(path, inside, **kwargs):
    kwargs.setdefault("driver", "GTiff")
    kwargs.setdefault("dtype", "u1")
    return write_scene(path, np.asarray(inside)[None], **kwargs)


def write_box(path, left, top, right, bottom, epsg=None, driver="GPKG"):
    """Writes a polygon around the pixels [left, right) x [top, bottom) of the scene, in its SRS or another one."""
    utm, srs = osr.SpatialReference(), osr.SpatialReference()
    for one, code in ((utm, 32616), (srs, epsg or 32616)):
        one.ImportFromEPSG(code)
        one.SetAxisMappingStrategy(osr.OAMS_TRADITIONAL_GIS_ORDER)
    ring = ogr.Geometry(ogr.wkbLinearRing)
    for x, y in ((left, top), (right, top), (right, bottom), (left, bottom), (left, top)):
        ring.AddPoint_2D(500000 + 20 * x, 4480000 - 20 * y)
    polygon = ogr.Geometry(ogr.wkbPolygon)
    polygon.AddGeometry(ring)
    polygon.Transform(osr.CoordinateTransformation(utm, srs))
    source = ogr.GetDriverByName(driver).CreateDataSource(str(path))
    layer = source.CreateLayer("mask", srs, ogr.wkbPolygon)
    feature = ogr.Feature(layer.GetLayerDefn())
    feature.SetGeometry(polygon)
    layer.CreateFeature(feature)
    return path


@dataclasses.dataclass
class Files:
    folder: pathlib.Path
    clear: np.ndarray   # neither cloud nor water
    data: np.ndarray    # the scene
    labels: np.ndarray
    valid: np.ndarray   # clear, and not nodata in the scene

    def __truediv__(self, name):
        return self.folder / name


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Makes scene.img with a bright cloud and dark water; clear.tif: pixels without either; cut.img: both are
    nodata."""
    folder = tmp_path_factory.mktemp("masks")
    data = cube(SAMPLES, LINES, BANDS, seed=5)
    clear = np.ones((LINES, SAMPLES), bool)
    clear[8:21, 4:31] = False
    clear[:, 51:] = False
    clear[30:34:2, 3:40:3] = False
    data[:, 8:21, 4:31] = 9000 + 40 * data[:, 8:21, 4:31]
    data[:, :, 51:] = 1 + 0.01 * data[:, :, 51:]
    data[:, 40, 40:44] = -9999  # nodata in the scene, inside the mask
    data[:, 2, 55] = -9999      # and outside the mask
    cut = np.where(clear, data, -9999)
    field = 1 + (np.arange(LINES)[:, None] // 7 + np.arange(SAMPLES) // 5) % 3
    labels = np.where(np.random.default_rng(3).uniform(size=field.shape) < 0.05, field, 0)
    for name, pixels in (("scene", data), ("cut", cut)):
        write_scene(folder / f"{name}.img", pixels, nodata=-9999, wavelengths=WAVELENGTHS)
        write_scene(folder / f"{name}.tif", pixels, driver="GTiff", nodata=-9999, wavelengths=WAVELENGTHS,
                    options=["COMPRESS=DEFLATE", "TILED=YES", "BLOCKXSIZE=16", "BLOCKYSIZE=16"])
    write_mask(folder / "clear.tif", 3 * clear)
    write_mask(folder / "cloud.tif", ~clear)
    write_mask(folder / "labels.tif", labels)
    write_mask(folder / "everything.tif", np.ones_like(clear))
    (folder / "library.csv").write_text(
        "wavelength_nm,a,b\n" + "".join(f"{w},{data[b, 3, 3]},{data[b, 44, 20]}\n" for b, w in enumerate(WAVELENGTHS)))
    return Files(folder, clear, data, labels, clear & (data[0] != -9999))


def tool(name, *args, **kwargs):
    return run(name, "-device", "cpu", *args, **kwargs)


MASK = ["-mask", "clear.tif"]
# The tool, its options, its arguments; text outputs that contain its results.
LEARNING = {
    "pca": ("gdal_hsi_pca", ["-model", "model.json"], ["{src}", "{dst}"]),
    "pca scale": ("gdal_hsi_pca", ["-scale", "-nc", "3", "-model", "model.json"], ["{src}", "{dst}"]),
    "mnf": ("gdal_hsi_mnf", ["-model", "model.json"], ["{src}", "{dst}"]),
    "sahic": ("gdal_hsi_sahic", ["-iterations", "4", "-model", "model.json"], ["{src}", "labels.tif", "{dst}"]),
    "sahic periodic": ("gdal_hsi_sahic", ["-iterations", "4", "-boundary", "periodic", "-model", "model.json"],
                       ["{src}", "labels.tif", "{dst}"]),
    "svm": ("gdal_hsi_svm_train", ["-C", "8", "-gamma", "1", "-model", "model.json"], ["{src}", "labels.tif"]),
    "endmembers": ("gdal_hsi_endmembers", ["-t", "5"], ["{src}", "points.csv"]),
    "endmembers vca": ("gdal_hsi_endmembers", ["-t", "5", "-method", "vca"], ["{src}", "points.csv"]),
    "endmembers atdca": ("gdal_hsi_endmembers", ["-t", "5", "-method", "atdca"], ["{src}", "points.csv"]),
    "atdca": ("gdal_hsi_atdca", ["-t", "6"], ["{src}", "points.csv"]),
    "atdca gs": ("gdal_hsi_atdca", ["-t", "6", "-method", "gs"], ["{src}", "points.csv"]),
    "atdca auto": ("gdal_hsi_atdca", ["-t", "auto"], ["{src}", "points.csv"]),
    "spectra": ("gdal_hsi_spectra", ["-kind", "deviation"], ["{src}", "labels.tif", "table.csv"]),
    "spectra every": ("gdal_hsi_spectra", ["-kind", "every"], ["{src}", "labels.tif", "table.csv"]),
}


def without_origin(model):
    """Returns a model without its source."""
    model = {key: value for key, value in model.items() if key not in ("history", "source", "checksum")}
    if "training" in model:
        model["training"] = {key: value for key, value in model["training"].items() if key != "scene"}
    return model


def learned(folder):
    """Returns the results of the run, without their sources."""
    facts = {}
    for name in ("model.json", "points.csv", "table.csv"):
        if not (folder / name).exists():
            continue
        text = (folder / name).read_text()
        facts[name] = without_origin(json.loads(text)) if name.endswith("json") else text
    assert facts
    return facts


def in_folder(files, tmp_path, name):
    """Makes a separate folder for outputs, in which inputs keep their names."""
    folder = tmp_path / name
    folder.mkdir()
    for path in files.folder.iterdir():
        if path.is_file():
            (folder / path.name).symlink_to(path)
    return folder


def call(folder, job, extra, src):
    name, options, arguments = job
    on_cpu_alone = name in ("gdal_hsi_svm_train", "gdal_hsi_endmembers", "gdal_hsi_spectra")
    return (run if on_cpu_alone else tool)(name, *extra, *options, *[a.format(src=src, dst="out.tif") for a in arguments],
                                           cwd=folder)


@pytest.mark.parametrize("src", ["scene.img", "scene.tif"])
@pytest.mark.parametrize("name", LEARNING)
def test_what_is_learned_is_that_of_a_scene_without_the_other_pixels(name, src, files, tmp_path):
    """For all tiles and threads; a compressed scene is kept in memory, without the mask."""
    cut, masked, tiled = (in_folder(files, tmp_path, n) for n in ("cut", "masked", "tiled"))
    job = LEARNING[name]
    succeed(call(cut, job, ["-q"], src.replace("scene", "cut")))
    succeed(call(masked, job, [*MASK, "-report", "r.json"], src))
    succeed(call(tiled, job, ["-q", *MASK, "-tile", 17, 9, "-threads", 3, "-memory", "40MB"], src))
    assert learned(masked) == learned(cut)
    assert learned(tiled) == learned(cut)
    report = json.loads((masked / "r.json").read_text())
    assert report["mask"]["only"]["path"] == "clear.tif" and report["options"]["mask"] == "clear.tif"
    assert report["mask"]["pixels"] == files.clear.sum()
    if name.split()[0] in ("svm", "spectra"):
        assert report["mask"]["labelled_pixels"] == (files.clear & (files.labels > 0)).sum()
    else:
        assert report["mask"]["valid_pixels"] == files.valid.sum()
    assert (masked / "out.tif").exists() == ("out.tif" in str(job) or "{dst}" in job[2])


def test_components_are_those_of_the_mask_and_of_all_pixels(files, tmp_path):
    """Compared with numpy, and with the model applied to the scene."""
    for name in ("pca", "mnf"):
        model, dst = tmp_path / f"{name}.json", tmp_path / f"{name}.tif"
        succeed(tool(f"gdal_hsi_{name}", "-q", "-mask", files / "clear.tif", "-model", model, files / "scene.img", dst))
        succeed(tool(f"gdal_hsi_{name}", "-q", "-apply", model, "-nc", 7, files / "scene.img", tmp_path / "applied.tif",
                     "-overwrite"))
        assert np.array_equal(read(dst), read(tmp_path / "applied.tif"), equal_nan=True)
        assert np.array_equal(np.isnan(read(dst)[0]), files.data[0] == -9999)
    model = json.loads((tmp_path / "pca.json").read_text())
    x = files.data.astype(np.float32).astype(np.float64)[:, files.valid]
    assert np.allclose(model["mean"], x.mean(axis=1), rtol=1e-12)
    assert np.allclose(model["eigenvalues"], np.linalg.eigvalsh(np.cov(x))[::-1], rtol=1e-5)
    assert model["pixels"] == files.valid.sum()
    projected = np.array(model["loadings"])[0] @ (files.data[:, 15, 15] - model["mean"])  # of the cloud
    assert np.isclose(read(tmp_path / "pca.tif")[0, 15, 15], projected, rtol=1e-5)


@pytest.mark.parametrize("method", ["hfc", "nwhfc", "hysime"])
def test_virtual_dimensionality(method, files, tmp_path):
    told = []
    for args in (["-mask", files / "clear.tif", files / "scene.img"], [files / "cut.img"], [files / "scene.img"]):
        told.append(json.loads(succeed(run("gdal_hsi_vd", "-json", "-method", method, *args)).out))
        del told[-1]["source"]
    assert told[0] == told[1]
    assert told[0]["eigenvalues"] != told[2]["eigenvalues"]
    assert told[0]["valid_pixels"] == files.valid.sum()


OUTPUTS = {
    "pca": ("gdal_hsi_pca", [], ["out.tif"]),
    "mnf": ("gdal_hsi_mnf", [], ["out.tif"]),
    "spp": ("gdal_hsi_spp", ["-alpha", "a.tif"], ["out.tif", "a.tif"]),
    "eadp": ("gdal_hsi_eadp", ["-nc", "2", "-c", "2"], ["out.tif"]),
    "eadp bands": ("gdal_hsi_eadp", ["-no-pca", "-b", "1,5", "-c", "2"], ["out.tif"]),
    "eadp cascade": ("gdal_hsi_eadp", ["-nc", "2", "-c", "2", "-evolution", "cascade"], ["out.tif"]),
    "profile": ("gdal_hsi_profile", ["-nc", "2"], ["out.tif"]),
    "profile bands": ("gdal_hsi_profile", ["-no-pca", "-b", "2"], ["out.tif"]),
    "sahic": ("gdal_hsi_sahic", ["-iterations", "4", "-probabilities", "p.tif"], ["out.tif", "p.tif"]),
    "ace": ("gdal_hsi_detect", ["-target", "library.csv", "-map", "m.tif"], ["out.tif", "m.tif"]),
    "cem": ("gdal_hsi_detect", ["-method", "cem", "-target-pixel", "3", "3"], ["out.tif"]),
    "sam": ("gdal_hsi_detect", ["-method", "sam", "-target", "library.csv"], ["out.tif"]),
    "rx": ("gdal_hsi_detect", [], ["out.tif"]),
    "local rx": ("gdal_hsi_detect", ["-window", "3", "9"], ["out.tif"]),
    "atdca": ("gdal_hsi_atdca", ["-t", "5", "-map", "m.tif", "-scores", "out.tif"], ["m.tif", "out.tif"]),
    "atdca original": ("gdal_hsi_atdca", ["-t", "5", "-original", "{src}", "-map", "m.tif"], ["m.tif"]),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_outputs_in_the_mask_alone(name, files, tmp_path):
    """Outputs, including those of neighbourhoods, equal those of a scene without the other pixels."""
    program, options, outputs = OUTPUTS[name]
    tiles = ["-tile", "23", "7", "-threads", "3"]
    for extra in ([], tiles):
        folders = {n: in_folder(files, tmp_path, n + str(len(extra))) for n in ("cut", "masked")}
        mask = ["-mask-exclude", "cloud.tif"] if extra else MASK
        for which, src, given in (("cut", "cut.img", []), ("masked", "scene.img", [*mask, "-mask-output"])):
            succeed(tool(program, "-q", *extra, *given, *[o.format(src=src) for o in options], src,
                         *(["labels.tif"] if name == "sahic" else []),
                         "points.csv" if program.endswith("atdca") else "out.tif", cwd=folders[which]))
        for output in outputs:
            expected = read(folders["cut"] / output)
            assert np.array_equal(read(folders["masked"] / output), expected, equal_nan=True), output
    nothing = np.isnan(expected[0]) | (expected[0] == 0)
    assert nothing[~files.clear].all() and not nothing[files.valid].all()


def test_apply_gives_values_in_the_mask_alone(files, tmp_path):
    model = tmp_path / "model.json"
    succeed(tool("gdal_hsi_pca", "-q", "-model", model, files / "scene.img", tmp_path / "all.tif"))
    succeed(tool("gdal_hsi_pca", "-q", "-apply", model, "-mask", files / "clear.tif", "-mask-output", files / "scene.img",
                 tmp_path / "some.tif"))
    everything, some = read(tmp_path / "all.tif"), read(tmp_path / "some.tif")
    assert np.array_equal(some, np.where(files.clear, everything, np.nan), equal_nan=True)


def test_eadp_finds_contrasts_in_the_mask(files, tmp_path):
    """Contrasts come from the mask, in the cascade from every copy in the mask; the profile has all pixels."""
    for extra in ([], ["-evolution", "cascade"], ["-tile", "20", "20"], ["-no-pca", "-b", "1,5"]):
        options = ["-q", "-nc", "2", "-c", "2", "-overwrite", "-report", tmp_path / "r.json", *extra]
        if "-no-pca" in extra:
            options = options[:1] + options[3:]
        contrasts, first = [], []
        for args in (["-mask", files / "clear.tif", files / "scene.img"], [files / "cut.img"], [files / "scene.img"]):
            succeed(tool("gdal_hsi_eadp", *options, *args, tmp_path / "out.tif"))
            contrasts.append(json.loads((tmp_path / "r.json").read_text())["contrast"])
            first.append(read(tmp_path / "out.tif"))
        k = [[c["k"] for c in one if c["copy"] == 0] for one in contrasts]
        assert k[0] == k[1] and k[0] != k[2], extra
        assert np.array_equal(np.isnan(first[0][0]), files.data[0] == -9999)
        # The component itself, for pixels that both have.
        assert np.array_equal(first[0][0][files.valid], first[1][0][files.valid])


def test_profiles_of_all_pixels_by_components_of_the_mask(files, tmp_path):
    succeed(tool("gdal_hsi_profile", "-q", "-nc", 2, "-mask", files / "clear.tif", files / "scene.img", tmp_path / "p.tif"))
    succeed(tool("gdal_hsi_pca", "-q", "-nc", 2, "-mask", files / "clear.tif", files / "scene.img", tmp_path / "c.tif"))
    profile, components = read(tmp_path / "p.tif"), read(tmp_path / "c.tif")
    assert any(np.array_equal(band, components[0], equal_nan=True) for band in profile)


def test_the_background_of_detectors(files, tmp_path):
    """Statistics come from the mask, scores cover all pixels; with -background, statistics use pixels that are in
    both."""
    x = files.data.astype(np.float32).astype(np.float64).reshape(BANDS, -1).T
    half = np.zeros_like(files.clear)
    half[:30] = True
    write_mask(tmp_path / "half.tif", half)
    for extra, inside in (([], files.valid), (["-background", tmp_path / "half.tif"], files.valid & half)):
        succeed(tool("gdal_hsi_detect", "-q", "-mask", files / "clear.tif", *extra, files / "scene.img", tmp_path / "rx.tif",
                     "-overwrite"))
        b = x[inside.ravel()]
        d = x - b.mean(axis=0)
        expected = np.einsum("ij,jk,ik->i", d, np.linalg.inv(np.cov(b.T)), d).reshape(LINES, SAMPLES)
        got = read(tmp_path / "rx.tif")[0]
        has = files.data[0] != -9999
        assert np.array_equal(np.isnan(got), ~has)
        assert np.allclose(got[has], expected[has], rtol=1e-4)
    # Rings use only pixels of the mask: scores of the clear pixels are equal if the others are missing.
    window = ["-q", "-window", 3, 9, "-overwrite"]
    succeed(tool("gdal_hsi_detect", *window, "-mask", files / "clear.tif", files / "scene.img", tmp_path / "some.tif"))
    succeed(tool("gdal_hsi_detect", *window, files / "cut.img", tmp_path / "cut.tif"))
    some, cut = read(tmp_path / "some.tif")[0], read(tmp_path / "cut.tif")[0]
    assert np.array_equal(some[files.valid], cut[files.valid], equal_nan=True)
    assert np.isfinite(some[~files.clear]).any()


def test_spp_moves_all_pixels_towards_the_mean_of_the_mask(files, tmp_path):
    succeed(tool("gdal_hsi_spp", "-q", "-alpha", tmp_path / "a.tif", "-mask", files / "clear.tif", files / "scene.img",
                 tmp_path / "y.tif"))
    y, alpha = read(tmp_path / "y.tif"), read(tmp_path / "a.tif")[0]
    mean = files.data.astype(np.float32).astype(np.float64)[:, files.valid].mean(axis=1)
    rho = (1 + np.sqrt(alpha)) ** 2
    expected = (files.data - mean[:, None, None]) / rho + mean[:, None, None]
    has = np.isfinite(alpha)
    assert np.array_equal(has, files.data[0] != -9999)
    assert np.allclose(y[:, has], expected[:, has], rtol=1e-4, atol=0.5)
    # Also as a VRT, which contains the mean.
    succeed(tool("gdal_hsi_pca", "-q", "-nc", 2, "-of", "VRT", "-mask", files / "clear.tif", "-model", tmp_path / "m.json",
                 files / "scene.img", tmp_path / "pcs.vrt"))
    model = json.loads((tmp_path / "m.json").read_text())
    assert np.allclose(model["mean"], mean, rtol=1e-12)


def pixels_of(args, files, tmp_path):
    """Returns the mask as it was read: dry runs state the number of pixels, -mask-output the pixels."""
    dst = tmp_path / "which.tif"
    result = succeed(tool("gdal_hsi_pca", "-nc", 1, "-overwrite", "-mask-output", *args, files / "scene.img", dst))
    inside = np.isfinite(read(dst)[0])
    count = int(result.out.split("Mask: ")[1].split()[0])
    assert (inside != (files.data[0] != -9999)).sum() <= (~inside).sum()
    return inside, count


@pytest.mark.quick
def test_masks_of_every_kind(files, tmp_path):
    """Uses rasters and features, on the scene's grid, on another grid and in another SRS."""
    valid = files.data[0] != -9999
    box = np.zeros_like(files.clear)
    box[9:38, 12:47] = True
    write_mask(tmp_path / "box.tif", box)
    write_box(tmp_path / "box.gpkg", 12, 9, 47, 38)
    write_box(tmp_path / "world.geojson", 11.7, 8.7, 47.3, 38.3, epsg=4326, driver="GeoJSON")
    # Pixels of a quarter of the size, around only the box: pixels outside the file are not in the mask.
    write_mask(tmp_path / "fine.tif", np.ones((4 * 29, 4 * 35)), geotransform=(500240, 5, 0, 4479820, 0, -5))
    gdal.Warp(str(tmp_path / "turned.tif"), str(tmp_path / "box.tif"), dstSRS="EPSG:32615", xRes=2, yRes=2)
    for name in ("box.tif", "box.gpkg", "world.geojson", "fine.tif", "turned.tif"):
        inside, count = pixels_of(["-mask", tmp_path / name], files, tmp_path)
        expected = box & valid
        if name == "turned.tif":
            assert (inside != expected).sum() <= 2 * (29 + 35) and abs(count - box.sum()) <= 2 * (29 + 35)
        else:
            assert np.array_equal(inside, expected) and count == box.sum(), name
        inside, count = pixels_of(["-mask-exclude", tmp_path / name], files, tmp_path)
        if name != "turned.tif":
            assert np.array_equal(inside, ~box & valid) and count == (~box).sum(), name
    inside, count = pixels_of(["-mask", files / "clear.tif", "-mask-exclude", tmp_path / "box.gpkg"], files, tmp_path)
    assert np.array_equal(inside, files.clear & ~box & valid) and count == (files.clear & ~box).sum()


@pytest.mark.quick
def test_which_values_of_a_mask_count(files, tmp_path):
    """As in gdal_hsi_accuracy -mask: values that are not 0, not nodata and not NaN."""
    values = np.zeros((LINES, SAMPLES))
    values[:, 0:6], values[:, 6:12], values[:, 12:18], values[:, 18:24], values[:, 24:30] = 0.25, -3, np.nan, 7, 70000
    inside = np.zeros_like(files.clear)
    inside[:, 0:12] = inside[:, 24:30] = True
    write_mask(tmp_path / "values.tif", values, dtype="f4", nodata=7)
    got, count = pixels_of(["-mask", tmp_path / "values.tif"], files, tmp_path)
    assert np.array_equal(got, inside & (files.data[0] != -9999)) and count == inside.sum()
    report = json.loads(succeed(run("gdal_hsi_accuracy", "-json", "-mask", tmp_path / "values.tif", files / "everything.tif",
                                    files / "everything.tif")).out)
    assert report["pixels"] == inside.sum()
    got, count = pixels_of(["-mask-exclude", tmp_path / "values.tif"], files, tmp_path)
    assert np.array_equal(got, ~inside & (files.data[0] != -9999)) and count == (~inside).sum()


def test_a_window_and_bands_of_the_scene(files, tmp_path):
    """The mask is positioned on the scene, for any window; bands are selected as usual."""
    window = ["-srcwin", 10, 5, 40, 30, "-b", "2-6"]
    for name, args in (("a", ["-mask", files / "clear.tif", files / "scene.img"]), ("b", [files / "cut.img"])):
        succeed(tool("gdal_hsi_pca", "-q", *window, "-model", tmp_path / f"{name}.json", *args, tmp_path / f"{name}.tif"))
    a, b = (json.loads((tmp_path / f"{n}.json").read_text()) for n in "ab")
    assert without_origin(a) == without_origin(b)
    assert a["pixels"] == files.valid[5:35, 10:50].sum()


def test_a_scene_without_georeference(files, tmp_path):
    write_scene(tmp_path / "scene.img", files.data, nodata=-9999, geotransform=None, epsg=None)
    write_mask(tmp_path / "mask.tif", files.clear, geotransform=None, epsg=None)
    succeed(tool("gdal_hsi_pca", "-q", "-mask", tmp_path / "mask.tif", "-model", tmp_path / "m.json", tmp_path / "scene.img",
                 tmp_path / "o.tif"))
    assert json.loads((tmp_path / "m.json").read_text())["pixels"] == files.valid.sum()
    write_mask(tmp_path / "small.tif", files.clear[1:], geotransform=None, epsg=None)
    result = tool("gdal_hsi_pca", "-mask", tmp_path / "small.tif", tmp_path / "scene.img", tmp_path / "p.tif")
    assert result.code == 1 and "-mask: " in first_error(result) and not (tmp_path / "p.tif").exists()


def test_a_band_without_values_in_the_mask(files, tmp_path):
    """The band would make the mask's pixels invalid, so it is omitted, as in a scene without the other pixels."""
    data = files.data.copy()
    data[3][files.clear] = -9999
    cut = np.where(files.clear, data, -9999)
    for name, pixels in (("scene", data), ("cut", cut)):
        write_scene(tmp_path / f"{name}.img", pixels, nodata=-9999)
    models = []
    for args in (["-mask", files / "clear.tif", tmp_path / "scene.img"], [tmp_path / "cut.img"]):
        result = succeed(tool("gdal_hsi_pca", "-q", "-model", tmp_path / "m.json", *args, tmp_path / "o.tif", "-overwrite"))
        assert "no valid value in band 4" in result.err
        models.append(without_origin(json.loads((tmp_path / "m.json").read_text())))
    assert models[0] == models[1] and len(models[0]["mean"]) == BANDS - 1


def test_labels_outside_of_the_mask_train_nothing(files, tmp_path):
    labels = np.zeros((LINES, SAMPLES), int)
    labels[0:4, 0:8], labels[36:39, 0:8], labels[10:14, 6:12] = 1, 2, 3  # class 3 is in the cloud
    write_mask(tmp_path / "labels.tif", labels)
    for name, args in (("svm_train", ["-C", 8, "-gamma", 1]), ("sahic", ["-iterations", 3])):
        outputs = [tmp_path / "m.json"] if name == "svm_train" else ["-model", tmp_path / "m.json", tmp_path / "o.tif"]
        result = succeed(run(f"gdal_hsi_{name}", "-overwrite", *args, "-mask", files / "clear.tif", files / "scene.img",
                             tmp_path / "labels.tif", *outputs))
        assert "class 3: its 24 labelled pixels are not in the mask" in result.err
        assert "24 of 80 labelled pixels are not in the mask and left out" in result.out
        model = json.loads((tmp_path / "m.json").read_text())
        assert [c["value"] for c in model["classes"]] == [1, 2]
    mapped = read(tmp_path / "o.tif")[0]
    assert set(np.unique(mapped[files.data[0] != -9999])) <= {1, 2}  # clouds are also classified
    write_mask(tmp_path / "cloudy.tif", np.where(labels == 3, 3, 0))
    result = run("gdal_hsi_svm_train", "-mask", files / "clear.tif", files / "scene.img", tmp_path / "cloudy.tif",
                 tmp_path / "none.json")
    assert result.code == 1 and "no labelled pixel is in the mask" in first_error(result)


def test_the_map_of_a_model_of_the_mask(files, tmp_path):
    """All pixels are classified as by the same model applied to the scene, including neighbours across the border."""
    write_mask(tmp_path / "clear_labels.tif", np.where(files.clear, files.labels, 0))
    for boundary in ("reflect", "periodic"):
        options = ["-q", "-overwrite", "-iterations", 4, "-boundary", boundary, "-probabilities"]
        succeed(tool("gdal_hsi_sahic", *options, tmp_path / "p.tif", "-mask-exclude", files / "cloud.tif", "-model",
                     tmp_path / "m.json", files / "scene.img", files / "labels.tif", tmp_path / "o.tif"))
        succeed(tool("gdal_hsi_sahic", *options, tmp_path / "q.tif", "-apply", tmp_path / "m.json", files / "scene.img",
                     tmp_path / "clear_labels.tif", tmp_path / "a.tif"))
        for one, other in (("p.tif", "q.tif"), ("o.tif", "a.tif")):
            assert np.array_equal(read(tmp_path / one), read(tmp_path / other), equal_nan=True), boundary
        assert np.array_equal(np.isfinite(read(tmp_path / "p.tif")[0]), files.data[0] != -9999)


def test_targets_lie_in_the_mask(files, tmp_path):
    for name in ("atdca", "endmembers"):
        succeed(run(f"gdal_hsi_{name}", "-q", "-t", 6, "-mask-exclude", files / "cloud.tif", files / "scene.img",
                    tmp_path / f"{name}.csv"))
        with open(tmp_path / f"{name}.csv") as table:
            places = [(int(row["line"]), int(row["sample"])) for row in csv.DictReader(table)]
        assert len(places) == 6 and all(files.valid[place] for place in places)


def test_a_dry_run_looks_at_the_mask(files, tmp_path):
    result = succeed(tool("gdal_hsi_pca", "-dry-run", "-mask", files / "clear.tif", "-report", tmp_path / "r.json",
                          files / "scene.img", tmp_path / "o.tif"))
    assert f"Mask: {files.clear.sum()} of {LINES * SAMPLES} pixels are used" in result.out
    assert json.loads((tmp_path / "r.json").read_text())["mask"]["pixels"] == files.clear.sum()
    write_mask(tmp_path / "zero.tif", np.zeros((LINES, SAMPLES)))
    result = tool("gdal_hsi_pca", "-dry-run", "-mask", tmp_path / "zero.tif", files / "scene.img", tmp_path / "o.tif")
    assert result.code == 1 and "the mask contains no pixel of the scene" in first_error(result)


def test_an_exclusion_beside_the_scene_is_told(files, tmp_path):
    write_mask(tmp_path / "far.tif", np.ones((LINES, SAMPLES)), geotransform=(900000, 20, 0, 4480000, 0, -20))
    result = succeed(tool("gdal_hsi_pca", "-q", "-mask-exclude", tmp_path / "far.tif", files / "scene.img",
                          tmp_path / "o.tif"))
    assert "the mask contains no pixel of the scene, so no pixel is excluded" in result.err


def test_a_mask_takes_memory(tmp_path):
    """One bit per pixel, within -memory; if the rest would be too small, the mask is refused before it is read."""
    samples, lines = 30000, 20000
    with open(tmp_path / "large.img", "wb") as scene:
        scene.truncate(2 * samples * lines)
    (tmp_path / "large.hdr").write_text(
        f"ENVI\nsamples = {samples}\nlines = {lines}\nbands = 2\ndata type = 1\ninterleave = bsq\nbyte order = 0\n"
        "map info = {UTM, 1, 1, 500000, 4480000, 20, 20, 16, North, WGS-84}\n")
    write_mask(tmp_path / "mask.tif", np.ones((20, 20)))
    args = ["-dry-run", "-mask", tmp_path / "mask.tif", tmp_path / "large.img", tmp_path / "o.tif"]
    result = tool("gdal_hsi_pca", "-memory", "128MB", *args)
    assert result.code == 1 and "more than a quarter of -memory" in first_error(result) and "MB or more" in result.err
    plans = []
    for mask in ([], args[1:3]):
        succeed(tool("gdal_hsi_eadp", "-nc", 2, "-memory", "320MB", "-report", tmp_path / "r.json", "-dry-run", *mask,
                     *args[3:]))
        plans.append(json.loads((tmp_path / "r.json").read_text())["plan"]["diffusion"]["buffer_bytes"])
    assert plans[1] <= 320e6 - samples * lines / 8 < 320e6


BAD = {
    "missing file": (["-mask", "none.tif"], 1, "-mask: cannot open 'none.tif'"),
    "no raster and no features": (["-mask", "library.csv", "-mask-exclude", "scene.hdr"], 1, "-mask"),
    "several bands": (["-mask", "scene.img"], 1, "-mask: 'scene.img' has 8 bands"),
    "several bands to leave out": (["-mask-exclude", "scene.img"], 1, "-mask-exclude: 'scene.img' has 8 bands"),
    "beside the scene": (["-mask", "far.gpkg"], 1, "-mask far.gpkg: the mask contains no pixel of the scene"),
    "nothing but zeros": (["-mask", "zero.tif"], 1, "-mask zero.tif: the mask contains no pixel of the scene"),
    "all left out": (["-mask-exclude", "everything.tif"], 1, "leaves no pixel of the scene"),
    "both the same": (["-mask", "clear.tif", "-mask-exclude", "clear.tif"], 1, "leaves no pixel of the mask"),
    "no valid pixel in it": (["-mask", "invalid.tif"], 1, "no pixel in the mask is valid"),
    "no valid pixel in it and in outputs": (["-mask", "invalid.tif", "-mask-output"], 1, "no pixel in the mask is valid"),
    "outputs without a mask": (["-mask-output"], 2, "-mask-output requires a mask"),
    "a VRT": (["-mask", "clear.tif", "-mask-output", "-of", "VRT"], 2, "-mask-output cannot be used with a VRT"),
    "a model that is there": (["-mask", "clear.tif", "-apply", "model.json"], 2, "-mask has no effect with -apply"),
    "left out of a model that is there": (["-mask-exclude", "clear.tif", "-apply", "model.json"], 2,
                                          "-mask-exclude has no effect with -apply"),
    "no name": (["-mask", ""], 2, "-mask is empty"),
    "twice": (["-mask", "clear.tif", "-mask", "clear.tif"], 2, "-mask is given 2 times"),
    "an output": (["-mask", "clear.tif", "-model", "clear.tif", "-overwrite"], 2, "clear.tif"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_masks(what, files, tmp_path):
    folder = in_folder(files, tmp_path, "here")
    write_mask(folder / "zero.tif", np.zeros((LINES, SAMPLES)))
    write_mask(folder / "invalid.tif", files.data[0] == -9999)
    write_box(folder / "far.gpkg", 1000, 1000, 1010, 1010)
    succeed(run("gdal_hsi_pca", "-q", "-device", "cpu", "-model", "model.json", "scene.img", "p.tif", cwd=folder))
    args, code, words = BAD[what]
    with assert_untouched(folder):
        result = run("gdal_hsi_pca", "-device", "cpu", *args, "scene.img", "dst.tif", cwd=folder)
    assert result.code == code and words in first_error(result), result.err


NO_STATISTICS = {
    "angles": ("gdal_hsi_detect", ["-method", "sam", "-target", "library.csv", "scene.img", "o.tif"], "-method sam"),
    "bands themselves": ("gdal_hsi_profile", ["-no-pca", "scene.img", "o.tif"], "-no-pca"),
    "a contrast of one's own": ("gdal_hsi_eadp", ["-no-pca", "-k", "3", "scene.img", "o.tif"], "-no-pca and -k"),
    "sahic's model": ("gdal_hsi_sahic", ["-apply", "model.json", "scene.img", "none", "o.tif"], "-apply"),
    "mnf's model": ("gdal_hsi_mnf", ["-apply", "model.json", "scene.img", "o.tif"], "-apply"),
}


@pytest.mark.parametrize("what", NO_STATISTICS)
def test_a_mask_that_would_change_nothing(what, files):
    program, args, with_what = NO_STATISTICS[what]
    result = run(program, "-mask", "clear.tif", *args, cwd=files.folder)
    assert result.code == 2 and f"-mask has no effect with {with_what}" in first_error(result)


def test_outputs_that_are_not_there(files, tmp_path):
    result = run("gdal_hsi_atdca", "-mask", files / "clear.tif", "-mask-output", files / "scene.img", tmp_path / "t.csv")
    assert result.code == 2 and "-mask-output requires -map FILE or -scores FILE" in first_error(result)
    result = run("gdal_hsi_atdca", "-mask", files / "clear.tif", "-mask-output", "-map", tmp_path / "m.vrt",
                 files / "scene.img", tmp_path / "t.csv")
    assert result.code == 2 and "-mask-output cannot be used with -map" in first_error(result)
    for name in ("vd", "endmembers", "svm_train", "spectra"):
        help_text = run(f"gdal_hsi_{name}", "--help").out
        assert "-mask-exclude FILE" in help_text and "-mask-output" not in help_text


def test_without_a_mask_nothing_is_told(files, tmp_path):
    result = succeed(tool("gdal_hsi_pca", "-report", tmp_path / "r.json", files / "scene.img", tmp_path / "o.tif"))
    report = json.loads((tmp_path / "r.json").read_text())
    assert "mask" not in report and report["options"]["mask"] is None and "Mask" not in result.out


MASKED = ("pca", "mnf", "vd", "eadp", "profile", "atdca", "endmembers", "svm_train", "sahic", "detect", "spectra", "spp", "cluster", "statistics", "index",
          "identify", "destripe", "noise", "reflect", "smooth", "gas", "normalise", "regression_train", "features", "resample")


def test_who_has_a_mask():
    """It is declared as a file of labels, so forms and completion offer rasters and vectors."""
    usage = json.loads(succeed(run("gdal_hsi", "--json-usage")).out)
    for one in usage["tools"]:
        arguments = {a["name"]: a for a in one["arguments"]}
        if one["name"] not in MASKED:
            assert "mask-exclude" not in arguments
            continue
        for name in ("mask", "mask-exclude"):
            assert arguments[name]["role"] == "input" and arguments[name]["content"] == "labels"
            assert arguments[name]["shared"] and not arguments[name]["required"]
        assert arguments["mask-flags"]["repeatable"] and arguments["mask-flags-from"]["content"] == "raster"


@pytest.mark.parametrize("box", [(12, 44, 18, 45.148), (14, 44, 16, 45.148), (14.99, 45.1, 15.02, 45.148), (5, 40, 25, 45.148),
                                 (12, 45.148, 18, 47), "slanted"])
def test_edges_are_straight_in_their_own_srs(tmp_path, box):
    """A parallel is not a straight line in UTM: a pixel is inside if its centre, in degrees, is in the polygon."""
    lines, samples = 40, 50
    scene = write_scene(tmp_path / "scene.img", cube(samples, lines, 4), geotransform=(500000, 30, 0, 5000000, 0, -30), epsg=32633)
    utm, degrees = osr.SpatialReference(), osr.SpatialReference()
    utm.ImportFromEPSG(32633)
    degrees.ImportFromEPSG(4326)
    degrees.SetAxisMappingStrategy(osr.OAMS_TRADITIONAL_GIS_ORDER)
    y, x = np.mgrid[0:lines, 0:samples]
    places = np.array(osr.CoordinateTransformation(utm, degrees).TransformPoints(
        np.stack([500015 + 30. * x.ravel(), 4999985 - 30. * y.ravel()], axis=1).tolist()))
    lon, lat = places[:, 0].reshape(x.shape), places[:, 1].reshape(x.shape)
    if box == "slanted":  # crosses the central meridian, so it is curved on both sides
        ring = [(12, 43.9), (18.3, 46.5), (18, 40), (12, 40)]
        inside = lat < 43.9 + (lon - 12) * (46.5 - 43.9) / 6.3
        middle = np.interp(lat.mean(), [43.9, 46.5], [12, 18.3])
        assert 14.5 < middle < 15.5
    else:
        west, south, east, north = box
        ring = [(west, south), (east, south), (east, north), (west, north)]
        inside = (lon > west) & (lon < east) & (lat > south) & (lat < north)
    (tmp_path / "aoi.geojson").write_text(json.dumps({"type": "Feature", "properties": {}, "geometry": {
        "type": "Polygon", "coordinates": [[*ring, ring[0]]]}}))
    succeed(run("gdal_hsi_pca", "-nc", 1, "-mask", tmp_path / "aoi.geojson", "-mask-output", scene, tmp_path / "out.tif"))
    got = np.isfinite(read(tmp_path / "out.tif")[0])
    assert 0 < inside.sum() < inside.size and (got != inside).sum() <= 0.01 * inside.size
