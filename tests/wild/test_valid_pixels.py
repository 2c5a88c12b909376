# SPDX-License-Identifier: MIT
"""One scene with the oddest of pixels, through every tool: all of them take the same pixels for valid, those whose values
are finite and not all zero, down to the smallest float, whose square is none."""
import json

import numpy as np
import pytest
from conftest import cube, read, run, succeed, write_scene

BANDS, LINES, SAMPLES = 6, 20, 24
SMALLEST = np.float32(1.4e-45)  # the smallest float
# What all values of a pixel are, and what its first band is besides.
ODD = {(2, 3): (0, None), (2, 9): (-0.0, None), (2, 15): (0, -0.0), (2, 21): (None, np.nan), (7, 3): (None, np.inf),
       (7, 9): (0, -np.inf), (7, 15): (0, np.nan), (7, 21): (0, SMALLEST), (12, 3): (1e-23, None), (12, 9): (1e-40, None),
       (12, 15): (SMALLEST, None), (12, 21): (0, 1e-40), (17, 3): (0, 1e-30)}


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    """The folder with scene.tif and all that the tools want besides, and which pixels are valid: by the rule's text."""
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


OUTPUTS = {  # the command line between the tool's name and `src dst`, what stands between these
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
