# SPDX-License-Identifier: MIT
"""Without the functions that Linux has in addition to POSIX (HSI_PORTABLE=1, common/core/system.h), and with pages of
16 and 64 KB (HSI_PAGE_SIZE): equal files and messages, and no files left behind."""

import os

import numpy as np
import pytest

from conftest import cube, first_error, run, stored_bytes, succeed, write_scene

WAYS = [{"HSI_PORTABLE": "1"}, {"HSI_PAGE_SIZE": "16384"}, {"HSI_PAGE_SIZE": "65536", "HSI_PORTABLE": "1"}]


@pytest.fixture(scope="module")
def material(tmp_path_factory):
    folder = tmp_path_factory.mktemp("portable")
    write_scene(folder / "scene.dat", cube(samples=90, lines=70, bands=20))
    labels = np.zeros((1, 70, 90))
    labels[0, 5:20, 5:20], labels[0, 40:60, 50:80] = 1, 2
    write_scene(folder / "labels.tif", labels, driver="GTiff", dtype="u1")
    return folder


def chain(material, folder, way):
    """Runs raw files, compressed blocks, lines that are kept in files, little memory, and a training."""
    folder.mkdir()
    environment = {**os.environ, **way, "TMPDIR": str(folder)}

    def tool(name, *args):
        return succeed(run("gdal_hsi_" + name, "-q", *args, env=environment, cwd=folder))

    scene, labels = material / "scene.dat", material / "labels.tif"
    tool("spp", "-device", "cpu", scene, "spp.dat")
    tool("spp", "-device", "cpu", "-co", "COMPRESS=DEFLATE", "-co", "TILED=YES", "-tile", 64, 16, scene, "spp.tif")
    tool("spp", "-device", "cpu", "-overwrite", "-ws", 3, scene, "spp.tif")  # exchanges names
    tool("pca", "-device", "cpu", "-nc", 3, "-memory", "40MB", "spp.dat", "pca.dat")
    tool("eadp", "-device", "cpu", "-nc", 2, "-c", 2, scene, "eadp.dat")
    tool("sahic", "-device", "cpu", "-iterations", 5, scene, labels, "sahic.tif")
    tool("vd", "-report", "run.json", scene)
    return folder


@pytest.fixture(scope="module")
def usual(material, tmp_path_factory):
    return chain(material, tmp_path_factory.mktemp("usual") / "out", {})


@pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join(way.values()))
def test_the_same_files(way, material, usual, tmp_path):
    made = chain(material, tmp_path / "out", way)
    assert sorted(p.name for p in made.iterdir()) == sorted(p.name for p in usual.iterdir())
    for name in "spp.dat", "spp.tif", "pca.dat", "eadp.dat", "sahic.tif":
        assert stored_bytes(made / name) == stored_bytes(usual / name), name


@pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join(way.values()))
def test_what_is_there_stays(way, material, tmp_path):
    (tmp_path / "dst.tif").write_text("mine")
    result = run("gdal_hsi_spp", "-q", "-device", "cpu", material / "scene.dat", tmp_path / "dst.tif", env={**os.environ, **way})
    assert result.code == 1 and "already exists" in first_error(result)
    assert (tmp_path / "dst.tif").read_text() == "mine" and len(list(tmp_path.iterdir())) == 1


def test_a_program_on_path_finds_itself(tmp_path):
    """The portable method finds the program by the name that the shell passed."""
    environment = {**os.environ, "HSI_PORTABLE": "1", "PATH": f"{os.environ.get('HSI_BIN_DIR', 'build/bin')}:{os.environ['PATH']}"}
    import subprocess
    here = subprocess.run(["gdal_hsi_spp", "--version"], env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert here.returncode == 0 and here.stdout.startswith("gdal_hsi_spp "), here.stdout + here.stderr
