# SPDX-License-Identifier: MIT
"""Manual pages: formatters accept them without warnings, and they contain the necessary sections."""

import re
import shutil
import subprocess

import pytest

from conftest import run

PAGES = ["gdal_hsi"] + [f"gdal_hsi_{tool}" for tool in run("gdal_hsi", "--complete", "").out.split()]


@pytest.fixture(params=PAGES)
def page(request, tmp_path):
    result = run("gdal_hsi", "--man", request.param)
    assert result.code == 0 and result.err == ""
    file = tmp_path / f"{request.param}.1"
    file.write_text(result.out)
    return file


def output(*command):
    return subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is absent")
def test_groff_has_no_complaint(page):
    result = output("groff", "-man", "-ww", "-z", "-Tutf8", page)
    assert (result.returncode, result.stdout) == (0, "")


@pytest.mark.skipif(shutil.which("mandoc") is None, reason="mandoc is absent")
def test_mandoc_has_no_complaint(page):
    complaints = [line for line in output("mandoc", "-T", "lint", "-W", "warning", page).stdout.splitlines()
                  if "missing date" not in line]  # a page belongs to a version, which it states
    assert complaints == []


@pytest.mark.skipif(shutil.which("man") is None and shutil.which("mandoc") is None, reason="neither man nor mandoc")
def test_it_reads_as_the_help_does(page):
    formatter = ["mandoc", "-T", "ascii"] if shutil.which("mandoc") else ["man", "--no-hyphenation", "-l"]
    text = re.sub(r".\x08", "", output(*formatter, page).stdout)
    words = " ".join(text.split())
    assert text.startswith(page.stem.upper())
    for heading in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "SEE ALSO"):
        assert f"\n{heading}\n" in text
    if page.stem == "gdal_hsi":
        assert all(f"{name}(1)" in words for name in PAGES[1:])
        return
    help_text = run(page.stem, "--help").out
    for option in re.findall(r"^  (-[\w-]+)", help_text, re.MULTILINE):
        assert option in words
    for command in re.findall(r"^  (gdal_hsi_\S+ .*)", help_text[help_text.index("\nExamples:"):], re.MULTILINE):
        assert " ".join(command.split()) in words
