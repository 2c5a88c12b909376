# SPDX-License-Identifier: MIT
"""Checks the Dockerfile without a registry: its stages refer to each other, its scripts exist and accept their
arguments, and it installs packages that cpack makes."""

import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def steps():
    """Returns (instruction, arguments), with continued lines joined and without comments."""
    lines = [line for line in (ROOT / "Dockerfile").read_text().splitlines() if line.strip() and not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ").splitlines()
    return [tuple(line.split(None, 1)) for line in joined]


def test_stages(steps):
    named, arguments = [], set()
    for instruction, rest in steps:
        if instruction == "ARG" and not named:
            arguments.add(rest.split("=")[0])
        if instruction == "FROM":
            base, name = re.fullmatch(r"\$\{(\w+)\} AS (\S+)", rest).groups()
            assert base in arguments
            named.append(name)
        for other in re.findall(r"from=([\w-]+)", rest):
            assert other in named[:-1]
    assert {"cpu", "cuda"} <= set(named) and named[-1] == "cpu"


def test_scripts_take_their_arguments(steps):
    commands = [rest for instruction, rest in steps if instruction == "RUN" and rest.startswith("scripts/")]
    assert commands
    for command in commands:
        script, *arguments = command.split()
        assert (ROOT / script).stat().st_mode & 0o111
        if script == "scripts/packages":
            listed = subprocess.run([ROOT / script, "--list", *arguments], capture_output=True, text=True, check=True).stdout.split()
            assert "dpkg-dev" in listed and "g++" in listed
        else:
            assert script == "scripts/package"
            told = subprocess.run([ROOT / script, "--help"], capture_output=True, text=True, check=True).stdout
            for option in arguments:
                assert option == "/packages" or option in told


def test_packages_are_those_of_cpack(steps):
    installed = set(re.findall(r"/packages/([\w-]+)_\*\.deb", " ".join(rest for _, rest in steps)))
    made = set(re.findall(r"PACKAGE_NAME ([\w-]+)\)", (ROOT / "cmake/HsiPackages.cmake").read_text()))
    assert installed == {"gdal-hsi", "gdal-hsi-cuda"} and installed <= made


def test_what_git_ignores_stays_out():
    """Build folders of other machines have caches that name other folders."""
    ignored = (ROOT / ".dockerignore").read_text().split("\n")
    for name in "build*", ".git", "bundle*":
        assert name in ignored
