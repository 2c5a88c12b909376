# SPDX-License-Identifier: MIT
"""General behaviour of the executables on the command line."""

import contextlib
import os
import re
import shutil
import subprocess

import pytest
from osgeo import gdal

from conftest import BIN, PATIENCE, PLUGINS, assert_untouched, first_error, read, run, spp, succeed

TOOLS = sorted(path.name for path in BIN.glob("gdal_hsi_*") if os.access(path, os.X_OK))


@pytest.mark.quick
def test_there_are_tools():
    assert "gdal_hsi_spp" in TOOLS, f"no gdal_hsi_spp in {BIN}: set HSI_BIN_DIR"


@pytest.mark.quick
@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("option", ["--help", "-h", "-help"])
def test_help(tool, option):
    result = run(tool, option)
    assert result.code == 0
    assert result.err == ""
    assert result.out.startswith(f"Usage: {tool} ")
    assert "Example" in result.out
    assert "--version" in result.out


@pytest.mark.parametrize("tool", TOOLS)
def test_version(tool):
    result = run(tool, "--version")
    assert result.code == 0
    assert result.err == ""
    words = result.out.split()
    assert words[0] == tool
    assert words[1].rstrip(",")[0].isdigit()
    assert words[2:] == ["GDAL", gdal.VersionInfo("RELEASE_NAME")]


INFORMATION = [["--help"], ["--version"], ["--json-usage"], ["--formats"], ["--help-general"], ["--complete", "-"]]
SUITE = [["--help"], ["--version"], ["--json-usage"], ["--man", "pca"], ["--man", "gdal_hsi"], ["--option-table", "pca"],
         ["--option-table", "shared"], ["--complete", "-"]]


@pytest.mark.parametrize("place", ["full", "closed"])
@pytest.mark.parametrize("command", [["gdal_hsi_pca", *args] for args in INFORMATION] + [["gdal_hsi", *args] for args in SUITE],
                         ids=" ".join)
def test_information_that_does_not_get_out(command, place):
    """If information cannot be written, the exit code must show it, so that a script does not continue with half a
    text."""
    with contextlib.ExitStack() as stack:
        full = stack.enter_context(open("/dev/full", "w")) if place == "full" else None
        result = subprocess.run([BIN / command[0], *command[1:]], stdout=full, stderr=subprocess.PIPE, text=True, timeout=PATIENCE,
                                preexec_fn=None if full else lambda: os.close(1), check=False)
    reason = "No space left on device" if full else "Bad file descriptor"
    assert result.returncode == 1
    assert result.stderr.startswith(f"ERROR: cannot write to the standard output: {reason}\n"), result.stderr


def test_version_loads_neither_drivers_nor_devices(tmp_path):
    """The start time matters in shell pipelines. So -version registers no drivers (a plugin on their path stays
    unloaded), and loads no GPU driver and no module of ours. A tool that opens a scene registers drivers."""
    shutil.copy(PLUGINS / "gdal_HSI.so", tmp_path / "gdal_PROBE.so")

    def loaded(*words):
        result = subprocess.run([str(w) for w in words], capture_output=True, text=True, check=False, cwd=tmp_path,
                                env={**os.environ, "GDAL_DRIVER_PATH": str(tmp_path), "LD_DEBUG": "files"})
        return result.stdout, re.findall(r"file=(\S+)", result.stderr)

    shown, files = loaded(BIN / "gdal_hsi_spp", "--version")
    assert shown.startswith("gdal_hsi_spp ")
    assert [f for f in files if re.search(r"PROBE|libcuda\b|hsi_cuda|hsi_mpi|libmpi\b", f)] == []
    assert [f for f in loaded(BIN / "gdal_hsi_info", "none.tif")[1] if "PROBE" in f]


@pytest.mark.parametrize("tool", TOOLS)
def test_nothing_given(tool):
    result = run(tool)
    assert result.code == 2
    assert result.out == ""
    assert "is missing" in first_error(result)
    assert f"{tool} --help" in result.err


@pytest.mark.quick
@pytest.mark.parametrize("tool", TOOLS)
def test_unknown_option(tool):
    result = run(tool, "--no-such-option")
    assert result.code == 2
    assert first_error(result) == "unknown option '--no-such-option'"


def test_formats():
    result = run("gdal_hsi_spp", "--formats")
    assert result.code == 0
    assert "ENVI -raster-" in result.out
    result = run("gdal_hsi_spp", "--format", "ENVI")
    assert result.code == 0
    assert "ENVI .hdr Labelled" in result.out
    result = run("gdal_hsi_spp", "--format", "NoSuchFormat")
    assert result.code == 2
    assert "NoSuchFormat" in first_error(result)


def test_help_general():
    result = run("gdal_hsi_spp", "--help-general")
    assert result.code == 0
    assert "--optfile" in result.out


@pytest.mark.parametrize("config", [["--config", "GTIFF_WRITE_TOWGS84", "YES"], ["--config", "GTIFF_WRITE_TOWGS84=YES"]])
@pytest.mark.parametrize("first", [True, False])
def test_config_is_taken_wherever_it_stands(tmp_path, scene, config, first):
    args = [scene, tmp_path / "out.tif"]
    succeed(spp("-q", *(config + args if first else args + config)))


def test_config_reaches_gdal(tmp_path, scene):
    """If ENVI is not among the drivers, the scene does not open: the option must be set before drivers are
    registered."""
    for config in (["--config", "GDAL_SKIP", "ENVI"], ["--config", "GDAL_SKIP=ENVI"]):
        result = spp(*config, scene, tmp_path / "out.tif")
        assert result.code == 1
        assert str(scene) in first_error(result)


def test_debug(tmp_path, scene):
    result = succeed(spp("--debug", "ON", "-q", scene, tmp_path / "out.tif"))
    assert "GDAL: " in result.err
    result = succeed(spp("--debug", "OFF", "-q", scene, tmp_path / "out2.tif"))
    assert result.err == ""


@pytest.mark.quick
def test_option_file(tmp_path, scene):
    options = tmp_path / "options.txt"
    options.write_text("# what we always use\n-ws 9 -of ENVI\n--config GTIFF_WRITE_TOWGS84 YES\n")
    succeed(spp("-q", "--optfile", options, scene, tmp_path / "a.img"))
    succeed(spp("-q", "-ws", 9, "-of", "ENVI", scene, tmp_path / "b.img"))
    assert (tmp_path / "a.img").read_bytes() == (tmp_path / "b.img").read_bytes()
    result = spp("--optfile", tmp_path / "missing.txt", scene, tmp_path / "c.img")
    assert result.code == 2
    assert "missing.txt" in first_error(result)


def test_one_dash_and_two(tmp_path, scene):
    spellings = [["-of", "ENVI", "-ws", "3", "-srcwin", "0", "0", "20", "10", "-b", "1-4", "-tile", "16", "16", "-q"],
                 ["--of", "ENVI", "--ws", "3", "--srcwin", "0", "0", "20", "10", "--b", "1-4", "--tile", "16", "16", "--q"],
                 ["--of=ENVI", "-ws=3", "--srcwin=0", "0", "20", "10", "-b=1-4", "-tile=16", "16", "-quiet"]]
    results = set()
    for number, spelling in enumerate(spellings):
        for position in (0, 1, 2):
            dst = tmp_path / f"{number}{position}.img"
            args = [scene, dst]
            result = succeed(spp(*args[:position], *spelling, *args[position:]))
            assert result.out == "" and result.err == ""
            results.add(dst.read_bytes())
    assert len(results) == 1


def test_values_that_begin_with_a_dash(tmp_path, scene):
    succeed(spp("-q", "-srcnodata", "-9999", "-dstnodata", "-1e10", scene, tmp_path / "out.tif"))
    folder = tmp_path / "-odd"
    folder.mkdir()
    succeed(run("gdal_hsi_spp", "-q", "-device", "cpu", "--", scene, "-odd/out.tif", cwd=tmp_path))
    assert read(folder / "out.tif").shape == (12, 30, 40)


def test_progress_and_quiet(tmp_path, scene):
    result = succeed(spp(scene, tmp_path / "a.tif"))
    assert "0...10...20...30...40...50...60...70...80...90...100 - done.\n" in result.out
    assert result.err == ""
    result = succeed(spp("-q", scene, tmp_path / "b.tif"))
    assert (result.out, result.err) == ("", "")


@pytest.mark.quick
def test_errors_do_not_touch_stdout(tmp_path):
    with assert_untouched(tmp_path):
        result = spp("/no/such/scene", tmp_path / "out.tif")
    assert result.code == 1
    assert result.out == ""
    assert first_error(result)


@pytest.mark.quick
def test_exit_codes(tmp_path, scene):
    assert spp("-q", scene, tmp_path / "out.tif").code == 0
    assert spp("-q", scene, tmp_path / "out.tif").code == 1  # the file exists
    assert spp("-q", "-ws", 2, scene, tmp_path / "other.tif").code == 2
