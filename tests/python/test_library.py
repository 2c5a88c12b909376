# SPDX-License-Identifier: MIT
"""The shared library from outside: its exported symbols, its dependencies, and its definitions, which equal the
tools'."""
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

from conftest import ROOT, run, succeed

LIBRARY = pathlib.Path(os.environ["HSI_LIBRARY"])
FUNCTIONS = {"hsi_version", "hsi_algorithms", "hsi_run", "hsi_plan", "hsi_cancellation_new", "hsi_cancel", "hsi_cancellation_free",
             "hsi_result_code", "hsi_result_message", "hsi_result_advice", "hsi_result_text", "hsi_result_json", "hsi_result_free"}


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


@pytest.mark.quick
def test_exported_symbols():
    """Only the interface is exported: this test detects removed or added functions."""
    found = {line.split()[-1].split("@")[0] for line in output("nm", "-D", "--defined-only", LIBRARY).splitlines()}
    assert found - {"HSI_0"} == FUNCTIONS
    header = (ROOT / "plugins" / "arrays" / "hsi.h").read_text()
    assert set(re.findall(r"HSI_API [^;(]*?\b(hsi_\w+)\(", header)) == FUNCTIONS


def test_sizes_of_the_interface():
    """Structure sizes belong to the interface, since programs are compiled with them."""
    import ctypes
    import gdal_hsi._library as library
    assert ctypes.sizeof(library._Array) == 176
    assert ctypes.sizeof(library._Input) == 24 and ctypes.sizeof(library._Output) == 16 and ctypes.sizeof(library._Hooks) == 48


@pytest.mark.quick
def test_needs_no_gdal():
    needed = re.findall(r"Shared library: \[(.*?)\]", output("readelf", "-d", LIBRARY))
    assert needed and not [name for name in needed if "gdal" in name or "proj" in name or "mpi" in name]
    undefined = output("nm", "-D", "--undefined-only", LIBRARY)
    assert not re.search(r"\b(GDAL|CPL|OGR|VSI|OSR)[A-Z]\w+", undefined)


@pytest.mark.quick
def test_definitions_are_the_tools():
    """Both have one source: hsi_algorithms() equals the executables' definitions, without the options for files."""
    import gdal_hsi
    tools = {t["name"]: t for t in json.loads(succeed(run("gdal_hsi", "--json-usage")).out)["tools"]}
    own = gdal_hsi._library.algorithms()
    assert set(own) == {name for name, t in tools.items() if t["arrays"]}
    for name, definition in own.items():
        expected = dict(tools[name], arguments=[a for a in tools[name]["arguments"] if not a["about_files"]])
        assert definition == {k: v for k, v in expected.items() if k not in ("schema", "usage")}


def test_no_output_and_no_handlers(tmp_path):
    """Nothing is printed, no signal handler is set, and no variable is changed, in any case."""
    script = """
import os, signal, numpy as np, gdal_hsi as hsi
before = [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)], dict(os.environ)
x = np.random.default_rng(1).random((6, 20, 20), dtype=np.float32) + 1
hsi.spp(x); hsi.pca(x); hsi.vd(x)
try: hsi.spp(np.zeros_like(x))
except hsi.Error: pass
assert ([signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)], dict(os.environ)) == before
with open("/proc/self/status") as status:
    caught = int([l for l in status if l.startswith("SigCgt")][0].split()[1], 16)
assert not caught & (1 << (signal.SIGTERM - 1))
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert not list(tmp_path.iterdir())


def test_header_stands_alone(tmp_path):
    """Compiles in C99 and in C++, without warnings."""
    for name, command in (("a.c", ["cc", "-std=c99"]), ("a.cpp", ["c++", "-std=c++11"])):
        (tmp_path / name).write_text('#include "hsi.h"\nhsi_array array = HSI_ARRAY;\nint main(void) { return (int)(array.size == 0); }\n')
        done = subprocess.run([*command, "-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{ROOT / 'plugins' / 'arrays'}",
                               tmp_path / name], stderr=subprocess.PIPE, text=True)
        assert done.returncode == 0, done.stderr


def test_manual_example_compiles(tmp_path):
    """Compiles the C program of the page."""
    text = (ROOT / "docs" / "libhsi.md").read_text()
    code = re.search(r"```c\n(.*?)```", text, re.DOTALL)[1]
    (tmp_path / "a.c").write_text(code)
    done = subprocess.run(["cc", "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
                           f"-I{ROOT / 'plugins' / 'arrays'}", tmp_path / "a.c"], stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not pathlib.Path("/proc/self/fd").is_dir(), reason="no /proc")
def test_calls_leave_no_files_open():
    import numpy as np
    import gdal_hsi as hsi
    x = np.random.default_rng(1).random((5, 12, 12), dtype=np.float32) + 1
    hsi.spp(x)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(50):
        hsi.spp(x, ws=3)
        with pytest.raises(hsi.Error):
            hsi.spp(x, ws=4)
    assert len(os.listdir("/proc/self/fd")) == before


def test_sources_are_of_python_3_9():
    import ast
    for file in (ROOT / "python" / "gdal_hsi").glob("*.py"):
        ast.parse(file.read_text(), feature_version=(3, 9))
