# SPDX-License-Identifier: MIT
"""Runs the shell blocks in the README and in every page of docs/ as a reader would: in order, each page in one folder
that looks like a fresh build. Scenes and tables that a page reads but does not make are small synthetic files with its
names (page_files.py). The messages in docs/troubleshooting.md are those that its commands print.

A block is omitted if the line above it says so: `<!-- test: skip, WHY -->`, or `<!-- test: needs FOLDER -->` if the
folder of real scenes (HSI_TEST_DATA) lacks this scene. Without a GPU, `-device cuda` runs as `-device auto`.
"""

import os
import pathlib
import re
import shlex
import subprocess

import pytest

from conftest import BIN, DATA, PLUGINS, ROOT
from page_files import provide_all

TROUBLE = ROOT / "docs" / "troubleshooting.md"
# Each of these pages is one run
GUIDED = {"README", "how_do_i", *(page.stem for page in (ROOT / "docs" / "tutorials").glob("*.md"))}
PAGES = [ROOT / "README.md", *(page for page in sorted((ROOT / "docs").rglob("*.md"))
                               if "\n```sh\n" in (text := page.read_text(encoding="utf-8")) and
                               # Tests/python runs the other tutorials
                               not (page.parent.name == "tutorials" and "```python" in text))]
GPU = pathlib.Path("/dev/nvidiactl").exists()
BLOCK = re.compile(r"(?:^<!-- test: (\w+),? ?(.*?) -->\n)?^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks_of(page):
    text = page.read_text(encoding="utf-8")
    return [{"page": page, "mark": mark, "what": what, "code": code} for mark, what, code in BLOCK.findall(text)]


BLOCKS = [block for page in PAGES for block in blocks_of(page)]


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    """Runs blocks one after another. The next block begins in the state in which the previous block of its page ended:
    folder, PATH and functions."""

    def folder(page):
        root = tmp_path_factory.getbasetemp() / page.stem / "gdal-hsi"
        if not root.exists():
            (root / "build" / "release").mkdir(parents=True)
            (root / "build" / "release" / "bin").symlink_to(BIN)
            (root / "scripts").symlink_to(ROOT / "scripts")
            if page.parent.name != "tutorials":
                provide_all(root, page.stem)
        return root

    def run(page, code):
        root = folder(page)
        state = root / "state"
        code = code.replace("/path/to/lib/gdalplugins", shlex.quote(str(PLUGINS)))
        code = code if GPU else re.sub(r"-device cuda\S*", "-device auto", code)
        script = f"set -euo pipefail\n[ ! -e '{state}' ] || . '{state}'\n{code}\n" \
                 f"{{ declare -p PATH; declare -f; printf 'cd %q\\n' \"$PWD\"; }} > '{state}'\n"
        result = subprocess.run(["bash", "-c", script], cwd=root, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, timeout=900,
                                env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "HSI_TEST_DATA": str(DATA), "GDAL_DRIVER_PATH": str(PLUGINS),
                                     "SLURM_ARRAY_TASK_ID": "0", "SLURM_ARRAY_TASK_COUNT": "1"})
        assert result.returncode == 0, f"{code}\n{result.stdout}"
        return result.stdout

    return run


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_every_block_is_seen(page):
    blocks = blocks_of(page)
    assert len(blocks) == page.read_text(encoding="utf-8").count("\n```sh\n")
    assert all(block["mark"] in ("", "skip", "needs") for block in blocks)
    assert all(block["what"] for block in blocks if block["mark"])  # states why, or which folder
    assert sum(not block["mark"] for block in blocks) >= (3 if page.stem in GUIDED else 0)


@pytest.mark.parametrize("block", [
    pytest.param(b, id=f"{b['page'].stem}-{i}-{b['code'].split()[0]}", marks=[pytest.mark.quick] if b["page"] == PAGES[0] else [])
    for i, b in enumerate(BLOCKS)])
def test_block(block, reader):
    code = block["code"]
    if block["mark"] == "skip":
        pytest.skip(block["what"])
    if block["mark"] == "needs":
        if not (DATA / block["what"]).exists():
            pytest.skip(f"the real scene {block['what']} is absent (HSI_TEST_DATA is {DATA})")
        assert "$HSI_TEST_DATA/" + block["what"] in code
    shown = reader(block["page"], code)
    for figure in re.findall(r"# (OA .*)", code):  # output that the page states
        for name, value in re.findall(r"(OA|AA|kappa) ([0-9.]+)", figure):
            label = {"OA": r"\(OA\)", "AA": r"\(AA\)", "kappa": "Kappa"}[name]
            assert re.search(rf"{label}: {re.escape(value)}\b", shown), f"{name} {value} is not in\n{shown}"
    for figure in re.findall(r"# rmse ([0-9.]+)", code):
        assert re.search(rf"^rmse +{re.escape(figure)}", shown, re.MULTILINE), f"rmse {figure} is not in\n{shown}"
    for line in re.findall(r"# (Virtual dimensionality: .*)", code):
        assert line in shown.splitlines(), f"{line} is not in\n{shown}"


@pytest.mark.parametrize("command, message", re.findall(r"^```console\n\$ (.*?)\n(.*?)^```$", TROUBLE.read_text(encoding="utf-8"),
                                                       re.MULTILINE | re.DOTALL))
def test_messages_are_those_of_the_tools(command, message, reader):
    shown = reader(TROUBLE, f"{{ {command}; }} 2>&1 || true")
    assert re.fullmatch("(?:.*\n)*" + re.escape(message).replace(re.escape("..."), ".*"), shown), shown
