# SPDX-License-Identifier: MIT
"""A plain x86-64 processor without AVX and SSE4, emulated by qemu-user. Tests of the kernels run there, and a chain of
tools must give the numbers that it gives on the machine itself."""

import json
import os
import platform
import shutil
import subprocess

import numpy as np
import pytest

from conftest import BIN, read, stored_bytes

QEMU = shutil.which("qemu-x86_64") or shutil.which("qemu-x86_64-static")
if platform.machine() != "x86_64":
    pytest.skip(f"programs for {platform.machine()}, not for x86-64", allow_module_level=True)
if QEMU is None:
    pytest.skip("NO PLAIN x86-64 WAS TESTED: qemu-x86_64 is missing (Debian: qemu-user)", allow_module_level=True)


def emulated(program, *args, cwd=None):
    environment = {key: value for key, value in os.environ.items() if key != "HSI_SIMD"}
    return subprocess.run([QEMU, "-cpu", "qemu64", str(BIN / program), *map(str, args)], cwd=cwd, env=environment,
                          capture_output=True, text=True, timeout=300)


def native(program, *args, cwd=None):
    return subprocess.run([str(BIN / program), *map(str, args)], cwd=cwd, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("program, filters", [
    ("math_rbf_sums_test", "*"),
    ("math_linear_algebra_test", "*"),
    ("stream_pipeline_test", "BandMeans.*"),
    ("stream_covariance_test", "*NarrowAndTiny*:*LeavesOutInvalid*:*FindsEmpty*"),
    ("pca_pca_test", "*ProjectionIsTheDefinition:*TheInverseOfAll*:*ComponentsAreUncorrelated*"),
    ("compare_compare_test", "*SmallAnglesKeepTheirDigits:*IdenticalCubes*"),
])
def test_kernels(program, filters):
    result = emulated(program, "--gtest_filter=" + filters)
    assert result.returncode == 0, result.stdout + result.stderr
    assert " PASSED " in result.stdout and "[  PASSED  ] 0 tests" not in result.stdout, result.stdout


def chain(run, folder):
    folder.mkdir()

    def tool(name, *args):
        result = run("gdal_hsi_" + name, *args, cwd=folder)
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    tool("synth", "-q", "-size", 70, 48, 24, "-seed", 7, "scene.dat")
    facts = json.loads(tool("vd", "-json", "scene.dat"))
    tool("spp", "-q", "-device", "cpu", "scene.dat", "spp.tif")
    tool("pca", "-q", "-device", "cpu", "-nc", 4, "-report", "report.json", "scene.dat", "pca.tif")
    tool("atdca", "-q", "-device", "cpu", "-t", 5, "-scores", "scores.tif", "scene.dat", "targets.geojson")
    targets = json.loads((folder / "targets.geojson").read_text())["features"]
    places = [(f["properties"]["line"], f["properties"]["sample"]) for f in targets]
    return facts, places, json.loads((folder / "report.json").read_text())["simd"]


def assert_close(a, b, scale, what):
    """Compares two JSON documents: numbers within the rounding of single-precision sums of the largest, everything else
    exactly."""
    if isinstance(a, dict):
        assert a.keys() == b.keys(), what
        for key in a:
            assert_close(a[key], b[key], scale, f"{what}: {key}")
    elif isinstance(a, list):
        assert len(a) == len(b), what
        for one, other in zip(a, b):
            assert_close(one, other, scale, what)
    elif isinstance(a, float):
        assert abs(a - b) <= 1e-6 * (abs(a) + scale), (what, a, b)
    else:
        assert a == b, what


def test_chain(tmp_path):
    facts, places, simd = chain(native, tmp_path / "native")
    emulated_facts, emulated_places, emulated_simd = chain(emulated, tmp_path / "emulated")
    assert emulated_simd in ("SCALAR", "EMU128", "SSE2")
    print(f"here {simd}, emulated {emulated_simd}")
    assert stored_bytes(tmp_path / "native/scene.dat") == stored_bytes(tmp_path / "emulated/scene.dat")
    largest = max(value["correlation"] for value in facts["eigenvalues"])
    assert_close(facts, emulated_facts, largest, "vd")
    assert places == emulated_places and len(places) == 5
    for file in "spp.tif", "pca.tif", "scores.tif":
        a, b = read(tmp_path / "native" / file), read(tmp_path / "emulated" / file)
        assert np.nanmax(np.abs(a - b)) <= 1e-4 * np.nanmax(np.abs(a)), file
