# SPDX-License-Identifier: MIT
"""The instruction sets of the kernels: the option HSI_SIMD. All instruction sets with fused multiplication and addition
must give equal bits, all others equal numbers."""

import json
import os
import re

import numpy as np
import pytest

from conftest import first_error, read, run, stored_bytes, succeed

FUSED = ("avx512", "avx2", "neon")


def possible():
    """Returns the names that this machine and build support, best first, from the error message."""
    result = run("gdal_hsi_vd", "--config", "HSI_SIMD", "?", "scene")
    assert result.code == 2
    return re.search(r"Possible: ([a-z0-9, ]+)\.", result.err).group(1).split(", ")


TARGETS = possible()


def chain(folder, simd):
    """Runs every tool with kernels in a folder, with relative names, so that commands are equal everywhere."""
    folder.mkdir()
    environment = {**os.environ, "HSI_SIMD": simd}

    def tool(name, *args):
        return succeed(run("gdal_hsi_" + name, *args, cwd=folder, env=environment)).out

    tool("synth", "-q", "-size", 157, 121, 45, "-seed", 5, "-labels", "truth.tif", "scene.dat")
    # A pixel without a value in some blocks: other code sums these blocks.
    values = np.memmap(folder / "scene.dat", "<f4", "r+", shape=(45, 121, 157))
    values[:, 40, 3] = 0
    values[7, 90, 140] = np.nan
    values.flush()
    printed = [tool("vd", "-q", "-json", "scene.dat"), tool("vd", "-q", "-json", "-method", "nwhfc", "scene.dat"),
               tool("vd", "-q", "-json", "-method", "hysime", "scene.dat")]
    tool("spp", "-q", "-device", "cpu", "-alpha", "alpha.tif", "scene.dat", "spp.tif")
    tool("pca", "-q", "-device", "cpu", "-nc", 9, "-model", "pca.json", "scene.dat", "pca.tif")
    tool("mnf", "-q", "-device", "cpu", "-nc", 9, "-model", "mnf.json", "scene.dat", "mnf.tif")
    tool("eadp", "-q", "-device", "cpu", "-nc", 3, "-c", 2, "scene.dat", "eadp.tif")
    tool("eadp", "-q", "-device", "cpu", "-nc", 2, "-c", 2, "-scheme", "exact", "-precision", "double", "scene.dat",
         "exact.tif")
    for method in "osp", "gs":
        tool("atdca", "-q", "-device", "cpu", "-t", 8, "-method", method, "-spectra", method + ".csv", "-map",
             method + ".tif", "-scores", method + "_scores.tif", "scene.dat", method + ".geojson")
    for method in "sam", "sid", "mf", "cem", "ace", "rx":
        target = () if method == "rx" else ("-target-pixel", 7, 9, "-target-pixel", 60, 80)
        tool("detect", "-q", "-device", "cpu", "-method", method, *target, "scene.dat", method + ".tif")
    tool("detect", "-q", "-device", "cpu", "-method", "mf", "-target-pixel", 7, 9, "-background-by", "columns", "scene.dat",
         "columns.tif")
    tool("detect", "-q", "-device", "cpu", "-method", "mtmf", "-target-pixel", 7, 9, "-nc", 9, "scene.dat", "mtmf.tif")
    tool("detect", "-q", "-device", "cpu", "-method", "sff", "-target", "osp.csv", "-range", "450-1300nm", "-range", "1.5-2.4um",
         "scene.dat", "sff.tif")
    for window, name in ((3, 11), "local.tif"), ((1, 5), "local_pixels.tif"):
        tool("detect", "-q", "-device", "cpu", "-window", *window, "-srcwin", 20, 30, 70, 21, "scene.dat", name)
    for method in "nfindr", "vca":
        tool("endmembers", "-q", "-t", 6, "-method", method, "scene.dat", method + ".csv")
    for distance in "euclidean", "angle":
        tool("cluster", "-q", "-k", 6, "-distance", distance, "scene.dat", distance + ".tif")
    printed.append(tool("compare", "-json", "-metric", "nrmse,maxsde,sad,rmse,maxabs,ssim", "-map", "apart.tif",
                        "scene.dat", "spp.tif"))
    tool("sample", "-q", "-n", 12, "-seed", 1, "truth.tif", "train.tif", "test.tif")
    tool("svm_train", "-q", "-C", 32, "-gamma", 0.5, "-probability", "scene.dat", "train.tif", "svm.json")
    tool("svm_classify", "-q", "-device", "cpu", "-probabilities", "svm_p.tif", "scene.dat", "svm.json", "svm.tif")
    for tv, solver in ("isotropic", "paper"), ("anisotropic", "optimum"):
        tool("sahic", "-q", "-device", "cpu", "-iterations", 30, "-tv", tv, "-lorsal-solver", solver, "-model",
             tv + ".json", "-probabilities", tv + "_p.tif", "scene.dat", "train.tif", tv + ".tif")
    tool("regularize", "-q", "-device", "cpu", "-iterations", 30, "-scene", "scene.dat", "-map",
         "smooth_map.tif", "svm_p.tif", "smooth.tif")
    for kind in "emp", "emap", "emep":
        tool("profile", "-q", "-device", "cpu", "-nc", 2, "-kind", kind, "scene.dat", kind + ".tif")
    printed.append(tool("noise", "-q", "-json", "scene.dat"))
    for method in "difference", "ratio":
        tool("destripe", "-q", "-method", method, "scene.dat", method + ".tif")
    (folder / "printed.txt").write_text("".join(printed))
    return folder


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Makes a folder of results for every instruction set."""
    base = tmp_path_factory.mktemp("simd")
    return {simd: chain(base / simd, simd) for simd in TARGETS}


def files(folder):
    return {path.name: stored_bytes(path) if path.suffix in (".tif", ".dat") else path.read_bytes()
            for path in folder.iterdir() if path.suffix not in (".xml", ".hdr")}


def assert_same(results, names):
    first = files(results[names[0]])
    assert len(first) > 25
    for name in names[1:]:
        other = files(results[name])
        assert other.keys() == first.keys()
        assert [file for file in first if other[file] != first[file]] == [], f"{names[0]} and {name} differ"


def test_same_bits_with_fused_arithmetic(results):
    names = [name for name in TARGETS if name in FUSED]
    if len(names) < 2:
        pytest.skip(f"this machine has {', '.join(names) or 'no'} of {', '.join(FUSED)}: nothing to compare with")
    assert_same(results, names)


def test_same_bits_without_fused_arithmetic(results):
    names = [name for name in TARGETS if name not in FUSED]
    if len(names) < 2:
        pytest.skip(f"this build has {', '.join(names)} alone: nothing to compare with")
    assert_same(results, names)


def test_same_numbers_for_all(results):
    """Compares numbers to the digits that single precision leaves, and discrete results exactly."""
    if len(TARGETS) < 2:
        pytest.skip(f"this machine has {TARGETS[0]} alone: nothing to compare with")
    best, least = results[TARGETS[0]], results[TARGETS[-1]]
    for file in "scene.dat", "truth.tif", "train.tif":
        assert stored_bytes(best / file) == stored_bytes(least / file)
    for file in "osp.geojson", "gs.geojson":
        places = [[(f["properties"]["line"], f["properties"]["sample"])
                   for f in json.loads((folder / file).read_text())["features"]] for folder in (best, least)]
        assert len(places[0]) == 8 and places[0] == places[1]
    first = [re.findall(r'"virtual_dimensionality":\s*(\d+)', (folder / "printed.txt").read_text())
             for folder in (best, least)]
    assert len(first[0]) == 3 and first[0] == first[1]
    for file in "spp.tif", "alpha.tif", "pca.tif", "eadp.tif", "exact.tif", "apart.tif", "osp_scores.tif", "svm_p.tif", \
            "sam.tif", "sid.tif", "mf.tif", "cem.tif", "ace.tif", "rx.tif", "local.tif", "local_pixels.tif", "columns.tif", \
            "mtmf.tif", "sff.tif":
        a, b = read(best / file), read(least / file)
        assert np.array_equal(np.isnan(a), np.isnan(b)), file
        assert np.nanmax(np.abs(a - b)) <= 1e-4 * np.nanmax(np.abs(a)), file
    for file in "svm.tif", "isotropic.tif", "anisotropic.tif", "osp.tif":
        assert np.mean(read(best / file) != read(least / file)) < 0.001, file


def test_training_with_the_same_bits_whatever_blas_picks(results, out):
    """SAHIC's training uses a BLAS, whose kernels differ between AVX2 and AVX-512."""
    if TARGETS[0] not in FUSED:
        pytest.skip("this machine has no fused multiplication and addition")
    folder = results[TARGETS[0]]
    environment = {**os.environ, "OPENBLAS_CORETYPE": "Haswell"}
    for tv, solver in ("isotropic", "paper"), ("anisotropic", "optimum"):
        succeed(run("gdal_hsi_sahic", "-q", "-device", "cpu", "-iterations", 30, "-tv", tv, "-lorsal-solver", solver,
                    "-model", out / "again.json", "-overwrite", "scene.dat", "train.tif", out / "again.tif", cwd=folder,
                    env=environment))
        again, first = (json.loads(path.read_text()) for path in (out / "again.json", folder / (tv + ".json")))
        assert again["mlr"] == first["mlr"]
        assert stored_bytes(out / "again.tif") == stored_bytes(folder / (tv + ".tif"))
        (out / "again.json").unlink()


@pytest.mark.parametrize("tool", [("pca", "-device", "cpu"), ("detect", "-device", "cpu", "-window", 3, 11),
                                  ("endmembers", "-t", 4, "-method", "vca")], ids=lambda tool: tool[0])
@pytest.mark.parametrize("simd", TARGETS)
def test_report_names_what_ran(tool, simd, scene, out):
    """Tests --config in upper and lower case. portable is Highway's SCALAR, EMU128 or its baseline."""
    report = out / "report.json"
    dst = out / ("dst.csv" if tool[0] == "endmembers" else "dst.tif")
    succeed(run("gdal_hsi_" + tool[0], *tool[1:], "-q", "--config", "HSI_SIMD", simd.upper(), "-report", report, scene, dst))
    facts = json.loads(report.read_text())
    expected = {"avx512": ("AVX3", "AVX10"), "portable": ("SCALAR", "EMU128", "SSE2", "NEON")}.get(simd, (simd.upper(),))
    assert facts["simd"].startswith(expected)
    assert facts["device"].endswith(facts["simd"])


def test_environment_and_command_line(scene, out):
    """The option of the command line overrides the environment."""
    report = out / "report.json"
    environment = {**os.environ, "HSI_SIMD": "portable"}
    succeed(run("gdal_hsi_vd", "-q", "-report", report, scene, env=environment))
    assert json.loads(report.read_text())["simd"] in ("SCALAR", "EMU128", "SSE2", "NEON_WITHOUT_AES")
    succeed(run("gdal_hsi_vd", "-q", "--config", "HSI_SIMD=" + TARGETS[0], "-report", out / "2.json", scene,
                env=environment))
    assert json.loads((out / "2.json").read_text())["simd"].lower().replace("avx3", "avx512").startswith(TARGETS[0])


@pytest.mark.parametrize("tool", ["pca", "synth", "accuracy"])
@pytest.mark.parametrize("name", ["avx3000", "neon9", " avx2"])
def test_unknown_name(tool, name, out):
    result = run("gdal_hsi_" + tool, "--config", "HSI_SIMD", name, "a", "b", cwd=out)
    assert result.code == 2
    assert first_error(result) == f"HSI_SIMD: '{name}' is not an instruction set"
    assert "Possible: " + ", ".join(TARGETS) in result.err
    assert list(out.iterdir()) == []


def test_name_that_cannot_run(scene, out):
    """At least one of these is always unavailable: a build contains sse2 or a target without SIMD, not both."""
    missing = [name for name in ("avx512", "avx2", "sse4", "ssse3", "sse2", "neon", "sve") if name not in TARGETS]
    if not missing:
        pytest.skip("this machine and build have every instruction set")
    for name in missing:
        result = run("gdal_hsi_pca", "--config", "HSI_SIMD", name, scene, out / "pca.tif")
        assert result.code == 2
        assert first_error(result) in (f"HSI_SIMD: this build does not include {name}",
                                       f"HSI_SIMD: this processor does not have {name}")
        assert "Possible: " + ", ".join(TARGETS) in result.err
    assert list(out.iterdir()) == []
