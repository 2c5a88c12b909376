# SPDX-License-Identifier: MIT
"""The input of cpack, and scripts/package and scripts/distribution.sh with substitutes for the programs that they call.
The substitutes record their arguments: the options of cmake, the bootstrap of Debian and Ubuntu; Ubuntu must not be
made without the keys of its archive."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMES = ["bookworm", "trixie", "forky", "noble"]


@pytest.fixture
def tree(tmp_path):
    """Makes a tree of the scripts, and runs a shell in it with the substitutes first on its PATH."""
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    programs = tmp_path / "programs"
    programs.mkdir()

    def stand_in(name, body=""):
        (programs / name).write_text(f'#!/bin/sh\necho "{name} $*" >>"{tmp_path}/calls"\n{body}\n')
        (programs / name).chmod(0o755)

    def run(command, **environment):
        clean = {name: value for name, value in os.environ.items() if not name.startswith("HSI_")}
        done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True,
                              env={**clean, "PATH": f"{programs}:{os.environ['PATH']}", **environment})
        calls = (tmp_path / "calls").read_text().splitlines() if (tmp_path / "calls").exists() else []
        (tmp_path / "calls").unlink(missing_ok=True)
        return done, calls

    return stand_in, run


def test_a_package_after_one_without_cuda_has_cuda(tree):
    """The cache of a build folder must not determine the result."""
    stand_in, run = tree
    stand_in("dpkg-query", "echo installed")
    stand_in("cmake", "mkdir -p build/package")
    stand_in("cpack", 'mkdir -p "$2" && touch "$2/gdal-hsi_1_all.deb"')
    stand_in("lintian")

    def cuda(words):
        done, calls = run(f"scripts/package {words}")
        assert done.returncode == 0, done.stderr
        configured = [call for call in calls if call.startswith("cmake --preset package")]
        assert len(configured) == 1
        return re.findall(r"-DHSI_CUDA=(\w+)", configured[0])

    assert cuda("--cpu-only") == ["OFF"]
    assert cuda("") == ["ON"]


@pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="no dpkg-deb")
def test_a_link_takes_no_file(tmp_path):
    """A package states the size of its files, each counted once, and is otherwise unchanged."""
    folder = tmp_path / "1~odd+name"
    (folder / "made/DEBIAN").mkdir(parents=True)
    (folder / "made/usr/bin").mkdir(parents=True)
    control = "Package: made\nVersion: 1\nArchitecture: all\nMaintainer: None <none@made.invalid>\nInstalled-Size: {}\nDescription: made\n"
    (folder / "made/DEBIAN/control").write_text(control.format(123456))
    (folder / "made/DEBIAN/prerm").write_text("#!/bin/sh\n")
    (folder / "made/DEBIAN/prerm").chmod(0o755)
    (folder / "made/usr/bin/tool").write_bytes(b"x" * 100001)
    for number in range(20):
        (folder / f"made/usr/bin/link{number}").symlink_to("tool")
    package = folder / "made.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "--build", folder / "made", package], check=True, capture_output=True)
    listed = ["dpkg-deb", "--contents", package]
    before = subprocess.run(listed, capture_output=True, text=True, check=True).stdout
    subprocess.run(["cmake", f"-DCPACK_PACKAGE_FILES={package}", "-P", ROOT / "cmake/packages/size.cmake"], check=True)
    assert subprocess.run(listed, capture_output=True, text=True, check=True).stdout == before
    subprocess.run(["dpkg-deb", "--control", package, folder / "control"], check=True)
    # The folder bin, 98 KiB of the file, and the links.
    assert (folder / "control/control").read_text() == control.format(1 + 98 + 20)
    assert (folder / "control/prerm").stat().st_mode & 0o777 == 0o755
    assert sorted(path.name for path in folder.iterdir()) == ["control", "made", "made.deb"]


def test_ubuntu_is_made_with_its_keys_and_updates(tree, tmp_path):
    stand_in, run = tree
    stand_in("debootstrap", 'mkdir -p "$5/etc/apt"')
    make = f". scripts/common.sh; . scripts/distribution.sh; target={tmp_path}/made; mkdir $target; set -eu; bootstrap_ubuntu noble"
    (tmp_path / "keys.gpg").touch()
    done, calls = run(make, HSI_UBUNTU_KEYRING=str(tmp_path / "keys.gpg"), HSI_UBUNTU_MIRROR="http://mirror.invalid/ubuntu")
    assert done.returncode == 0, done.stderr
    call, = calls
    assert f"--components=main,universe --keyring={tmp_path}/keys.gpg noble {tmp_path}/made http://mirror.invalid/ubuntu" in call
    assert (tmp_path / "made/etc/apt/sources.list").read_text().splitlines() == [
        f"deb http://mirror.invalid/ubuntu {suite} main universe" for suite in ("noble", "noble-updates", "noble-security")]


def test_ubuntu_is_not_made_without_its_keys(tree, tmp_path):
    stand_in, run = tree
    stand_in("debootstrap")
    done, calls = run(f". scripts/common.sh; . scripts/distribution.sh; target={tmp_path}; set -eu; bootstrap_ubuntu noble",
                      HSI_UBUNTU_KEYRING=str(tmp_path / "none.gpg"))
    assert done.returncode == 1 and not calls
    assert "keys of Ubuntu's archive" in done.stderr and "HSI_UBUNTU_KEYRING" in done.stderr


def test_debian_is_made_from_the_named_mirror(tree, tmp_path):
    stand_in, run = tree
    stand_in("debootstrap")
    done, calls = run(f". scripts/common.sh; . scripts/distribution.sh; target={tmp_path}; set -eu; bootstrap_debian trixie",
                      HSI_DEBIAN_MIRROR="http://mirror.invalid/debian")
    assert done.returncode == 0, done.stderr
    call, = calls
    assert f"--variant=minbase trixie {tmp_path} http://mirror.invalid/debian" in call


@pytest.mark.parametrize("script", ["test_package", "test_distribution"])
def test_scripts_know_the_distributions(tree, script):
    """The accepted values equal those in --help and in the message; a missing package or folder name is reported before
    missing root rights."""
    _, run = tree
    told = run(f"scripts/{script} --help")[0].stdout
    message = run(f"scripts/{script}")[0].stderr
    for name in NAMES:
        assert name in told and name in message
        refused = run(f"scripts/{script} {name} --unknown")[0]
        assert refused.returncode == 1 and "unknown argument '--unknown'" in refused.stderr
    assert "unknown argument 'sarge'" in run(f"scripts/{script} sarge")[0].stderr
