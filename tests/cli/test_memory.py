# SPDX-License-Identifier: MIT
"""-memory is an upper limit. This test measures the peak resident memory of every tool that works through a scene, for
every storage layout of files. It also measures the constant memory of a process, with the same tool on a scene of few
pixels, so that the result does not depend on the machine. The small scene is raw, since even with few pixels a block of
256 x 256 in 128 bands has 33 MB."""

import json
import os
import signal

import pytest
from osgeo import gdal

from conftest import first_error, run, sizes_below, start, succeed, wait_for, work_after_signal

SAMPLES, LINES, BANDS = 640, 512, 128  # 160 MB of floats
MEMORY = 72  # MB
SLACK = 16  # MB: heap pages, thread stacks, code that only a large scene uses
THREADS = 4

STORED = {
    "raw": ("ENVI", []),
    "tiled": ("GTiff", ["TILED=YES", "BLOCKXSIZE=256", "BLOCKYSIZE=256", "INTERLEAVE=BAND"]),
    "pixel": ("GTiff", ["TILED=YES", "BLOCKXSIZE=256", "BLOCKYSIZE=256", "INTERLEAVE=PIXEL"]),
    "deflate": ("GTiff", ["TILED=YES", "BLOCKXSIZE=128", "BLOCKYSIZE=128", "INTERLEAVE=BAND", "COMPRESS=DEFLATE", "ZLEVEL=1"]),
    "cog": ("COG", ["BLOCKSIZE=128", "COMPRESS=DEFLATE", "LEVEL=1", "OVERVIEWS=NONE"]),
}
EXTENSION = {"ENVI": "img", "GTiff": "tif", "COG": "tif"}


def make(folder, name, lines, samples):
    """Makes the scene, its labels and models in all forms, in pieces, from the output of gdal_hsi_synth."""
    folder = folder / name
    folder.mkdir()
    succeed(run("gdal_hsi_synth", "-q", "-size", samples, lines, BANDS, "-seed", 3, "-memory", "64MB", "-of", "ENVI",
                "-labels", folder / "labels.tif", folder / "raw.img"))
    gdal.SetCacheMax(256 << 20)
    for kind, (driver, options) in STORED.items():
        if kind != "raw":
            gdal.Translate(str(folder / f"{kind}.tif"), str(folder / "raw.img"), format=driver, creationOptions=options)
    return folder


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("memory")
    large, tiny = make(folder, "large", LINES, SAMPLES), make(folder, "tiny", 48, 64)
    for where in (large, tiny):
        succeed(run("gdal_hsi_sample", "-q", "-n", 5, where / "labels.tif", where / "train.tif", where / "test.tif"))
    train = large / "train.tif"
    succeed(run("gdal_hsi_svm_train", "-q", "-C", 8, "-gamma", 1, large / "raw.img", train, folder / "svm.json"))
    succeed(run("gdal_hsi_sahic", "-q", "-device", "cpu", "-no-spatial", "-model", folder / "mlr.json", large / "raw.img", train,
                folder / "map.tif"))
    return large, tiny


def command(tool, folder, scene, dst):
    """Returns a run over the whole scene."""
    models = folder.parent
    device = ["-device", "cpu"]
    return {
        "spp": ["gdal_hsi_spp", *device, scene, dst],
        "pca": ["gdal_hsi_pca", *device, "-nc", 3, scene, dst],
        "eadp": ["gdal_hsi_eadp", *device, "-nc", 2, "-times", "1", scene, dst],
        "atdca": ["gdal_hsi_atdca", *device, "-t", 3, scene, dst],
        "vd": ["gdal_hsi_vd", scene],
        "svm_classify": ["gdal_hsi_svm_classify", *device, scene, models / "svm.json", dst],
        "svm_train": ["gdal_hsi_svm_train", "-C", 8, "-gamma", 1, scene, folder / "train.tif", dst],
        "sahic": ["gdal_hsi_sahic", *device, "-no-spatial", "-apply", models / "mlr.json", scene, "none", dst],
        "compare": ["gdal_hsi_compare", scene, folder / "raw.img"],
    }[tool]


def peak(command, report, *options, memory=MEMORY):
    """Returns the peak memory in megabytes."""
    succeed(run(*command, "-q", "-memory", f"{memory}MB", "-threads", THREADS, "-report", report, *options))
    return json.loads(report.read_text())["peak_resident_bytes"] / 2**20


def destination(tool, folder):
    return folder / {"atdca": "out.gpkg", "svm_train": "out.json"}.get(tool, "out.tif")


def remove(path):
    for file in (path, path.with_suffix(".hdr"), path.with_name(path.name + ".aux.xml")):
        file.unlink(missing_ok=True)


@pytest.mark.parametrize("kind", STORED)
@pytest.mark.parametrize("tool", ["spp", "pca", "eadp", "atdca", "vd", "svm_classify", "svm_train", "sahic", "compare"])
def test_sources(scenes, tmp_path, tool, kind):
    peaks = []
    for folder, stored in zip(scenes, (kind, "raw")):
        dst = destination(tool, tmp_path)
        scene = folder / f"{stored}.{EXTENSION[STORED[stored][0]]}"
        peaks.append(peak(command(tool, folder, scene, dst), tmp_path / "run.json"))
        remove(dst)
    large, tiny = peaks
    assert large <= tiny + MEMORY + SLACK, f"{large:.0f} MB, {tiny:.0f} MB for a scene of a few pixels"


CHAINS = [["spp"], ["spp", "pca"], ["spp", "spp -ws 3", "mnf -nc 40", "pca -nc 5"],
          ["spp -ws 3", "mnf -nc 30", "tee [ spp ! pca -nc 2 ! write TEE ]", "pca -nc 20", "spp -ws 3", "pca -nc 4"]]


@pytest.mark.parametrize("steps", CHAINS, ids=len)
def test_chains(scenes, tmp_path, steps):
    """The limit holds for chains of any length, including the data that steps keep for each other."""
    peaks = []
    for folder in scenes:
        words = ["read", folder / "raw.img"]
        for step in [*steps, f"write {tmp_path / 'out.img'} -of ENVI"]:
            words += ["!", *(str(tmp_path / "tee.tif") if word == "TEE" else word for word in step.split())]
        report = tmp_path / "run.json"
        succeed(run("gdal_hsi_pipeline", "-device", "cpu", "-overwrite", "-q", "-memory", f"{MEMORY}MB", "-threads", THREADS,
                    "-report", report, *words))
        peaks.append(json.loads(report.read_text())["peak_resident_bytes"] / 2**20)
    large, tiny = peaks
    assert large <= tiny + MEMORY + SLACK, f"{large:.0f} MB, {tiny:.0f} MB for a scene of a few pixels"


@pytest.mark.parametrize("tool, memory", [("eadp", 128), ("vd", 192), ("spp", 256)])
def test_more_memory_for_blocks_of_all_bands(scenes, tmp_path, tool, memory):
    """The memory is enough for one, two or three lanes with a block of 33 MB per lane."""
    large, tiny = (peak(command(tool, folder, folder / scene, tmp_path / f"{scene}.tif"), tmp_path / "run.json", memory=memory)
                   for folder, scene in zip(scenes, ("pixel.tif", "raw.img")))
    assert large <= tiny + memory + SLACK, f"{large:.0f} MB, {tiny:.0f} MB for a scene of a few pixels"


@pytest.mark.parametrize("kind", STORED)
@pytest.mark.parametrize("tool", ["spp", "synth"])
def test_outputs(scenes, tmp_path, tool, kind):
    peaks = []
    for folder, (samples, lines), stored in zip(scenes, ((SAMPLES, LINES), (64, 48)), (kind, "raw")):
        driver, options = STORED[stored]
        if stored == "cog":
            options = []  # the default for users
        elif stored == "pixel":  # larger blocks are refused
            options = ["TILED=YES", "BLOCKXSIZE=128", "BLOCKYSIZE=128", "INTERLEAVE=PIXEL"]
        dst = tmp_path / f"out.{EXTENSION[driver]}"
        work = (["gdal_hsi_spp", "-device", "cpu", folder / "raw.img", dst] if tool == "spp" else
                ["gdal_hsi_synth", "-size", samples, lines, BANDS, dst])
        peaks.append(peak(work, tmp_path / "run.json", "-of", driver, *sum((["-co", o] for o in options), [])))
        assert gdal.Open(str(dst)).RasterCount == BANDS
        remove(dst)
    large, tiny = peaks
    assert large <= tiny + MEMORY + SLACK, f"{large:.0f} MB, {tiny:.0f} MB for a scene of a few pixels"


def test_what_cannot_fit_is_refused(scenes, tmp_path):
    """One block of all bands has 33 MB, and a lane needs one block."""
    large, _ = scenes
    with_names = run("gdal_hsi_pca", "-device", "cpu", "-memory", "48MB", large / "pixel.tif", tmp_path / "o.tif")
    assert with_names.code == 1 and "decoded blocks" in first_error(with_names) and "-memory" in first_error(with_names)
    assert "INTERLEAVE=BAND" in with_names.err
    result = run("gdal_hsi_spp", "-device", "cpu", "-memory", f"{MEMORY}MB", "-of", "COG", "-co", "BLOCKSIZE=512", large / "raw.img",
                 tmp_path / "o.tif")
    assert result.code == 1 and "512x512" in first_error(result) and "-memory" in first_error(result)
    assert "BLOCKSIZE=128" in result.err
    for tool in (["gdal_hsi_spp", "-device", "cpu", large / "raw.img"], ["gdal_hsi_synth", "-size", SAMPLES, LINES, BANDS]):
        blocks = ["-co", "BLOCKXSIZE=256", "-co", "BLOCKYSIZE=256", "-co", "INTERLEAVE=PIXEL"]
        result = run(*tool, tmp_path / "o.tif", "-memory", f"{MEMORY}MB", "-co", "COMPRESS=DEFLATE", *blocks)
        assert result.code == 1 and "256x256" in first_error(result) and "-memory 128 MB" in first_error(result)
        assert "INTERLEAVE=BAND" in result.err
        assert not os.listdir(tmp_path)
        succeed(run(*tool, tmp_path / "o.tif", "-memory", f"{MEMORY}MB", *blocks))  # without a block
        remove(tmp_path / "o.tif")


def test_a_cog_is_interrupted_while_it_is_made(scenes, tmp_path):
    """After the pixels are computed, GDAL copies them all; a signal ends this, too."""
    large, _ = scenes
    process = start("gdal_hsi_spp", "-device", "cpu", "-q", "-memory", f"{MEMORY}MB", "-of", "COG", "-co", "COMPRESS=DEFLATE",
                    "-co", "LEVEL=9", large / "raw.img", tmp_path / "o.tif", nice=10)
    try:
        # Two files: the finished intermediate file and the unfinished COG.
        assert wait_for(lambda: sum(size > 1 << 20 for size in sizes_below(tmp_path)) > 1 or process.poll() is not None)
        assert process.poll() is None
        seconds = work_after_signal(process, signal.SIGTERM)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 1
    assert seconds < 5, f"{seconds:.1f} s"
    assert not os.listdir(tmp_path)
