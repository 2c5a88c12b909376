# SPDX-License-Identifier: MIT
"""Completion in bash: the installed script, called as bash calls it, and in an interactive shell."""

import os
import pty
import select
import shutil
import subprocess
import time

import pytest

from conftest import BIN, PATIENCE, run

SCRIPT = BIN.parent / "share" / "bash-completion" / "completions" / "gdal_hsi"

pytestmark = pytest.mark.skipif(shutil.which("bash") is None or not SCRIPT.exists(), reason="no bash, or no completion script")


def environment():
    return {"PATH": f"{BIN}:{os.environ['PATH']}", "HOME": "/nonexistent", "PS1": "> ", "TERM": "dumb", "LC_ALL": "C.UTF-8"}


def ask(line, folder):
    """Returns (candidates, options for compopt) for the line, with the cursor at its end."""
    code = """
        source "$1"
        compopt() { echo "compopt $*"; }
        COMP_LINE=$2 COMP_POINT=${#2}
        _gdal_hsi "${2%% *}"
        printf '%s\\n' "${COMPREPLY[@]}"
    """
    result = subprocess.run(["bash", "--norc", "-c", code, "bash", SCRIPT, line], cwd=folder, env=environment(), check=True,
                            stdout=subprocess.PIPE, text=True)
    lines = [text for text in result.stdout.splitlines() if text]
    return ([text for text in lines if not text.startswith("compopt ")],
            " ".join(text[len("compopt "):] for text in lines if text.startswith("compopt ")))


def test_every_tool_is_registered():
    tools = run("gdal_hsi", "--complete", "").out.split()
    assert {"spp", "info", "svm_classify"} < set(tools)
    result = subprocess.run(["bash", "--norc", "-c", 'source "$1"; complete -p', "bash", SCRIPT], check=True, env=environment(),
                            stdout=subprocess.PIPE, text=True)
    registered = {line.split()[-1] for line in result.stdout.splitlines() if "_gdal_hsi" in line}
    assert registered == {"gdal_hsi"} | {f"gdal_hsi_{tool}" for tool in tools}
    for name in registered:  # bash-completion loads them by these names
        assert (SCRIPT.parent / name).resolve() == SCRIPT.resolve()


@pytest.mark.quick
@pytest.mark.parametrize("line, candidates", [
    ("gdal_hsi_spp -w", ["-ws"]),
    ("gdal_hsi_spp -q --alp", ["--alpha"]),
    ("gdal_hsi_eadp -evolution c", ["cascade"]),
    ("gdal_hsi_spp -of GTi", ["GTiff"]),
    ("gdal_hsi_spp 'a scene.img' -bbl i", ["ignore"]),
    ("gdal_hsi_spp a\\ scene.img \"b c.tif\" -bbl i", ["ignore"]),
    ("gdal_hsi sp", ["spectra", "spp"]),
    ("gdal_hsi --vers", ["--version"]),
    ("gdal_hsi --man eadp", ["eadp"]),
    ("gdal_hsi spp -w", ["-ws"]),
])
def test_candidates(line, candidates, tmp_path):
    assert ask(line, tmp_path)[0] == candidates


def test_the_shell_completes_files_itself(tmp_path):
    assert ask("gdal_hsi_spp ", tmp_path) == ([], "-o default")
    assert ask("gdal_hsi_spp -alpha ", tmp_path) == ([], "-o default")
    assert ask("gdal_hsi_spp -ws ", tmp_path) == ([], "")


def test_files_whose_names_hold_word_breaks(tmp_path):
    (tmp_path / "run=1 of 2.img").touch()
    assert ask("gdal_hsi_spp run=1", tmp_path)[0] == ["1\\ of\\ 2.img"]
    (tmp_path / "folder=x").mkdir()
    assert ask("gdal_hsi_spp folder=", tmp_path) == (["x/"], "-o nospace")


def test_creation_options(tmp_path):
    candidates, options = ask("gdal_hsi_spp a.img b.tif -co TILE", tmp_path)
    assert candidates == ["TILED="] and "nospace" in options
    # the shell replaces the text after the =
    assert ask("gdal_hsi_spp a.img b.tif -co TILED=Y", tmp_path)[0] == ["YES"]
    assert ask("gdal_hsi_spp a.img b.dat -co INTERLEAVE=BI", tmp_path)[0] == ["BIL", "BIP"]
    # within quotes it replaces the whole word
    assert ask("gdal_hsi_spp a.img b.tif -co \"TILED=Y", tmp_path)[0] == ["TILED=YES"]
    assert ask("gdal_hsi_spp -device cuda:", tmp_path)[0] == ["0"]
    assert ask("gdal_hsi_atdca a.img b.gpkg -lco GEOMETRY_NA", tmp_path)[0] == ["GEOMETRY_NAME="]


def shows(keys, expected, folder, seconds=PATIENCE):
    """Returns the output of an interactive bash after these keys, read until the expected text appears."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], environment())
    shown = b""

    def wait_for(text):
        nonlocal shown
        end = time.monotonic() + seconds
        while text not in shown and time.monotonic() < end:
            if select.select([terminal], [], [], 0.1)[0]:
                shown += os.read(terminal, 4096)

    try:
        os.write(terminal, f"source '{SCRIPT}'; echo re''ady\n".encode())
        wait_for(b"ready\r\n")
        shown = b""
        os.write(terminal, keys.encode())
        wait_for(expected.encode())
        return shown.decode(errors="replace")
    finally:
        os.close(terminal)  # the shell hangs up
        os.waitpid(child, 0)


@pytest.mark.parametrize("keys, expected", [
    ("gdal_hsi_spp my\t", "gdal_hsi_spp my\\ scene.img "),
    ("gdal_hsi_spp -alpha \"my\t", '"my scene.img" '),
    ("gdal_hsi_spp sub\t", "gdal_hsi_spp subfolder/"),
    ("gdal_hsi_spp -co TILE\tY\t", "-co TILED=YES "),
    ("gdal_hsi_eadp -evo\tcas\t", "-evolution cascade "),
    ("gdal_hsi_atdca -of ESRI\t", "-of ESRI\\ Shapefile "),
    ("gdal_hsi_spp x=1\t", "gdal_hsi_spp x=1\\ 2.img "),
])
def test_in_a_shell(keys, expected, tmp_path):
    (tmp_path / "my scene.img").touch()
    (tmp_path / "x=1 2.img").touch()
    (tmp_path / "subfolder").mkdir()
    assert expected in shows(keys, expected, tmp_path)
