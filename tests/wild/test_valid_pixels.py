# SPDX-License-Identifier: MIT
"""A scene of unusual pixels in every tool: all tools agree on the valid pixels, whose values are finite and not all
zero, down to the smallest float, whose square underflows."""
import json

import numpy as np
import pytest
from conftest import cube, gdal, read, run, succeed, write_scene

BANDS, LINES, SAMPLES = 6, 20, 24
SMALLEST = np.float32(1.4e-45)  # the smallest float
# The value of all bands of a pixel, and a different value of its first band.
ODD = {(2, 3): (0, None), (2, 9): (-0.0, None), (2, 15): (0, -0.0), (2, 21): (None, np.nan), (7, 3): (None, np.inf),
       (7, 9): (0, -np.inf), (7, 15): (0, np.nan), (7, 21): (0, SMALLEST), (12, 3): (1e-23, None), (12, 9): (1e-40, None),
       (12, 15): (SMALLEST, None), (12, 21): (0, 1e-40), (17, 3): (0, 1e-30)}


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    """Makes the folder with scene.tif and all other inputs of the tools, and returns which pixels are valid by the
    rule's text."""
    folder = tmp_path_factory.mktemp("valid")
    data = cube(SAMPLES, LINES, BANDS).astype("f4")
    for (line, sample), (all_bands, first) in ODD.items():
        if all_bands is not None:
            data[:, line, sample] = all_bands
        if first is not None:
            data[0, line, sample] = first
    valid = np.isfinite(data).all(axis=0) & (data != 0).any(axis=0)
    assert 0 < (~valid).sum() < len(ODD), "odd pixels of either kind"
    write_scene(folder / "scene.tif", data, "GTiff")
    labels = 1 + (np.arange(SAMPLES) // 6 % 2) + 0 * np.arange(LINES)[:, None]
    write_scene(folder / "labels.tif", labels[None], "GTiff", "u1")
    one = np.zeros((LINES, SAMPLES))
    for line, sample in ODD:
        one[line, sample] = 1
    write_scene(folder / "odd.tif", one[None], "GTiff", "u1")
    spectra = [data[:, 4, 4], data[:, 14, 12]]
    rows = [[f"{b}", *(f"{s[b]:.9g}" for s in spectra)] for b in range(BANDS)]
    (folder / "library.csv").write_text("band,one,two\n" + "".join(",".join(row) + "\n" for row in rows))
    return folder, valid


OUTPUTS = {  # the command line between the tool's name and `src dst`, and the words between these
    "pca": (["pca"], []),
    "mnf": (["mnf"], []),
    "spp": (["spp"], []),
    "eadp": (["eadp", "-no-pca", "-c", "2"], []),
    "profile": (["profile", "-no-pca", "-kind", "emp", "-thresholds", "1"], []),
    "unmix": (["unmix"], ["library.csv"]),
    "rx": (["detect", "-method", "rx"], []),
    "local rx": (["detect", "-method", "rx", "-window", "1", "7"], []),
    **{method: (["detect", "-method", method, "-target-pixel", "4", "4"], []) for method in ("sam", "sid", "mf", "cem", "ace")},
}


@pytest.mark.parametrize("what", OUTPUTS)
def test_results_have_values_where_pixels_are_valid(scene, tmp_path, what):
    folder, valid = scene
    (tool, *options), between = OUTPUTS[what]
    succeed(run(f"gdal_hsi_{tool}", "-q", "-device", "cpu", *options, folder / "scene.tif", *(folder / b for b in between),
                tmp_path / "dst.tif"))
    found = np.isfinite(read(tmp_path / "dst.tif"))
    assert (found == valid).all(), np.argwhere(found.any(axis=0) != valid).tolist()


def test_classifiers_have_a_class_where_pixels_are_valid(scene, tmp_path):
    folder, valid = scene
    source, labels = folder / "scene.tif", folder / "labels.tif"
    succeed(run("gdal_hsi_svm_train", "-q", "-cost", "1", "-gamma", "1", source, labels, tmp_path / "model.json"))
    succeed(run("gdal_hsi_svm_classify", "-q", "-device", "cpu", source, tmp_path / "model.json", tmp_path / "svm.tif"))
    succeed(run("gdal_hsi_sahic", "-q", "-device", "cpu", source, labels, tmp_path / "sahic.tif"))
    succeed(run("gdal_hsi_atdca", "-q", "-device", "cpu", "-t", "3", "-map", tmp_path / "atdca.tif", "-scores", tmp_path / "angle.tif",
                "-score-kind", "angle", source, tmp_path / "targets.csv"))
    assert ((np.nan_to_num(read(tmp_path / "svm.tif")[0]) > 0) == valid).all()
    assert ((np.nan_to_num(read(tmp_path / "sahic.tif")[0]) > 0) == valid).all()
    assert ((np.nan_to_num(read(tmp_path / "atdca.tif")[0]) > 0) == valid).all()
    assert (np.isfinite(read(tmp_path / "angle.tif")) == valid).all()


def test_reports_count_the_valid_pixels(scene, tmp_path):
    folder, valid = scene
    source = folder / "scene.tif"
    invalid = int((~valid).sum())
    assert json.loads(succeed(run("gdal_hsi_info", "-json", "-count", source)).out)["valid_pixels"] == valid.sum()
    assert json.loads(succeed(run("gdal_hsi_vd", "-json", source)).out)["invalid_pixels"] == invalid
    for tool in ("endmembers", "atdca"):
        report = tmp_path / f"{tool}.json"
        succeed(run(f"gdal_hsi_{tool}", "-q", "-t", "3", "-report", report, source, tmp_path / f"{tool}.csv"))
        assert json.loads(report.read_text())["invalid_pixels"] == invalid, tool
    succeed(run("gdal_hsi_spectra", "-q", "-kind", "every", source, folder / "odd.tif", tmp_path / "every.csv"))
    lines = (tmp_path / "every.csv").read_text().splitlines()
    assert len(lines) - 1 == len(ODD) - invalid


def test_scenes_are_compared_where_pixels_are_valid(scene, tmp_path):
    folder, valid = scene
    other = write_scene(tmp_path / "other.tif", cube(SAMPLES, LINES, BANDS), "GTiff", "f8")  # read in parts
    for second in (folder / "scene.tif", other):
        found = json.loads(succeed(run("gdal_hsi_compare", "-json", folder / "scene.tif", second)).out)
        assert found["pixels"]["compared"] == valid.sum()


LOWEST = float(np.finfo("f4").min)


@pytest.mark.parametrize("dtype, told, stored", [
    ("f4", "-3.402823e+38", LOWEST), ("f4", "-3.40282e+38", LOWEST), ("f4", "-3.4028235e+38", LOWEST), ("f4", "1e20", 1e20),
    ("f4", "-9999.0", -9999), ("f4", "-1.0e-5", -1e-5), ("f8", "-1.797693e+308", np.finfo("f8").min), ("f8", "1e20", float(np.float32(1e20))),
    ("f8", "-3.402823e+38", LOWEST), ("i2", "-9999.0", -9999), ("i4", "-2147483648.0", -2**31)])
def test_nodata_values_with_few_digits(tmp_path, dtype, told, stored):
    """Values as ArcGIS and %g write them. GDAL's mask is the reference (tests/raster/convert_test.cpp has more values),
    for our own readers and GDAL's, and for -srcnodata."""
    data = np.floor(cube(8, 7, 3)).astype(dtype)
    data[:, 2, 3] = data[:, 0, 0] = stored
    plain, raw = tmp_path / "plain.tif", tmp_path / "raw.dat"
    write_scene(plain, data, "GTiff", dtype)
    data.tofile(raw)
    layout = {"f4": 4, "f8": 5, "i2": 2, "i4": 3}[dtype]
    (tmp_path / "raw.hdr").write_text(f"ENVI\nsamples = 8\nlines = 7\nbands = 3\nheader offset = 0\ndata type = {layout}\n"
                                      f"interleave = bsq\nbyte order = 0\ndata ignore value = {told}\n")
    for name, options in {"tiled.tif": ["-of", "GTiff", "-co", "TILED=YES", "-co", "COMPRESS=DEFLATE"], "pixels.tif": ["-co", "INTERLEAVE=PIXEL"],
                          "scene.vrt": ["-of", "VRT"]}.items():
        gdal.Translate(str(tmp_path / name), str(plain), options=[*options, "-a_nodata", told])
    for name, options in {"raw.dat": [], "tiled.tif": [], "pixels.tif": [], "scene.vrt": [], "plain.tif": ["-srcnodata", told]}.items():
        seen = json.loads(succeed(run("gdal_hsi_info", "-json", "-count", *options, tmp_path / name)).out)
        assert seen["valid_pixels"] == 54, name


def test_labels_with_nodata_of_few_digits(tmp_path):
    labels = np.ones((1, 7, 8), "f4")
    labels[0, :, 4:] = 2
    labels[0, 2, 3] = np.finfo("f4").max
    write_scene(tmp_path / "plain.tif", labels, "GTiff")
    gdal.Translate(str(tmp_path / "labels.tif"), str(tmp_path / "plain.tif"), noData=3.40282e38)
    told = json.loads(succeed(run("gdal_hsi_accuracy", "-json", tmp_path / "labels.tif", tmp_path / "labels.tif")).out)
    assert told["pixels"] == 55, told


@pytest.mark.parametrize("dtype, told", [("u1", "-9999"), ("u2", "70000"), ("i2", "0.5"), ("f4", "1e39")])
def test_nodata_that_the_type_cannot_hold_is_told(tmp_path, dtype, told):
    write_scene(tmp_path / "s.tif", np.floor(cube(8, 7, 3, scale=50)).clip(1, 250), "GTiff", dtype)
    result = succeed(run("gdal_hsi_info", "-srcnodata", told, tmp_path / "s.tif"))
    name = {"u1": "Byte", "u2": "UInt16", "i2": "Int16", "f4": "Float32"}[dtype]
    assert "is ignored: " + name + " cannot store it" in result.err, result.err
