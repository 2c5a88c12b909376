# SPDX-License-Identifier: MIT
"""Common parts of the tests of the QGIS plugin: the executables, a scene with labels, and QGIS in separate processes.

HSI_BIN_DIR names the folder of the executables (default: build/bin)."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("HSI_BIN_DIR", ROOT / "build" / "bin"))
HERE = pathlib.Path(__file__).resolve().parent
PLUGINS = pathlib.Path(os.environ.get("HSI_QGIS_PLUGINS", ROOT / "qgis"))
sys.path.insert(0, str(PLUGINS))
sys.path.insert(0, str(HERE))


def have_qgis():
    return subprocess.run([sys.executable, "-c", "import qgis.core"], capture_output=True, check=False).returncode == 0


def qgis_process():
    """Returns the program. Debian's wrapper passes it an option of another program, so its own file is preferred."""
    return shutil.which("qgis_process.bin") or shutil.which("qgis_process")


def cli(tool, *words):
    """Runs a tool as on the command line; returns stdout without the progress bar."""
    done = subprocess.run([str(BIN / "gdal_hsi"), tool, *map(str, words)], capture_output=True, text=True, timeout=300,
                          check=False)
    lines = [line for line in done.stdout.splitlines() if not line.startswith("0...")]
    return done.returncode, "\n".join(lines).strip(), done.stderr


class Qgis:
    """A QGIS with its own profile, in which the plugin is enabled."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir(mode=0o700)
        path = os.pathsep.join(p for p in os.environ["PATH"].split(os.pathsep) if not shutil.which("gdal_hsi", path=p))
        self.environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "QGIS_CUSTOM_CONFIG_PATH": str(folder),
                            "XDG_RUNTIME_DIR": str(folder), "QGIS_PLUGINPATH": str(PLUGINS),
                            "PYTHONDONTWRITEBYTECODE": "1",
                            "PATH": str(BIN) + os.pathsep + path, "PATH_WITHOUT": path}

    def environment_without_tools(self):
        return {**self.environment, "PATH": self.environment["PATH_WITHOUT"]}

    def process(self, *words, environment=None):
        """Runs qgis_process; returns exit code, stdout, stderr."""
        done = subprocess.run([qgis_process(), *map(str, words)], env=environment or self.environment,
                              capture_output=True,
                              text=True, timeout=300, check=False)
        return done.returncode, done.stdout, done.stderr

    def job(self, environment=None, **job):
        """Returns the answer of tests/qgis/session.py to a job."""
        done = subprocess.run([sys.executable, str(HERE / "session.py"), str(PLUGINS), json.dumps(job, default=str)],
                              env=environment or self.environment, capture_output=True, text=True, timeout=300,
                              check=False)
        lines = [line for line in done.stdout.splitlines() if line.startswith("QGIS ")]
        assert lines, done.stdout + done.stderr
        return json.loads(lines[-1][5:])


@pytest.fixture(scope="session")
def qgis(tmp_path_factory):
    if not have_qgis():
        pytest.skip("no QGIS with Python bindings on this machine (python3-qgis)")
    made = Qgis(tmp_path_factory.mktemp("qgis") / "profile")
    if qgis_process():
        made.process("plugins", "enable", "gdal_hsi")
    return made


def write_lookup_table(path, samples, lines):
    """Writes a geographic lookup table for a scene of that size: every line is two pixels further to the right."""
    import numpy
    from osgeo import gdal, osr
    y, x = numpy.mgrid[0:lines, 0:samples + 2 * lines]
    sample = x - 2 * y + 1
    inside = (sample >= 1) & (sample <= samples)
    table = gdal.GetDriverByName("GTiff").Create(str(path), x.shape[1], lines, 2, gdal.GDT_Int32)
    table.SetGeoTransform((10, 0.001, 0, 50, 0, -0.001))
    srs = osr.SpatialReference()
    srs.ImportFromEPSG(4326)
    table.SetProjection(srs.ExportToWkt())
    table.GetRasterBand(1).WriteArray(numpy.where(inside, sample, 0))
    table.GetRasterBand(2).WriteArray(numpy.where(inside, y + 1, 0))


@pytest.fixture(scope="session")
def scene(tmp_path_factory):
    """Makes a folder with scene.tif (60 bands), labels.tif, targets.sli, model.json (SVM), p.tif, map.tif and
    glt.tif."""
    folder = tmp_path_factory.mktemp("scene")

    def made(tool, *words):
        code, _, err = cli(tool, "-q", *words)
        assert code == 0, err
    made("synth", "-size", 120, 90, 60, "-endmembers", 5, "-labels", folder / "labels.tif", folder / "scene.tif")
    made("atdca", "-device", "cpu", "-t", 5, "-spectra", folder / "targets.sli", folder / "scene.tif",
         folder / "targets.gpkg")
    made("sample", "-n", 30, folder / "labels.tif", folder / "train.tif", folder / "test.tif")
    made("svm_train", "-C", 8, "-gamma", 0.5, "-probability", folder / "scene.tif", folder / "train.tif",
         folder / "model.json")
    made("svm_classify", "-device", "cpu", "-probabilities", folder / "p.tif", folder / "scene.tif",
         folder / "model.json", folder / "map.tif")
    made("spp", "-device", "cpu", folder / "scene.tif", folder / "other.tif")
    write_lookup_table(folder / "glt.tif", 120, 90)
    return folder
