# SPDX-License-Identifier: MIT
"""Endless inputs, or inputs far too large for their purpose: refused with their name and size, before memory is full;
scenes of unusual shapes; limits on addresses. Memory in use during this is limited."""

import json
import os
import pathlib
import resource
import subprocess
import threading

import numpy as np
import pytest

from conftest import BIN, PATIENCE, assert_untouched, first_error, run, start, succeed, write_scene

MODELS = {"gdal_hsi_pca": ["-apply", "MODEL", "s.img", "o.tif"],
          "gdal_hsi_mnf": ["-apply", "MODEL", "s.img", "o.tif"],
          "gdal_hsi_svm_classify": ["-apply", "MODEL", "s.img", "o.tif"],
          "gdal_hsi_sahic": ["-apply", "MODEL", "-no-spatial", "s.img", "none", "o.tif"]}
MEGABYTE = 1 << 20


@pytest.fixture
def place(tmp_path):
    rng = np.random.default_rng(5)
    write_scene(tmp_path / "s.img", rng.uniform(0.1, 0.9, (6, 20, 30)).astype(np.float32),
                wavelengths=[450 + 40 * b for b in range(6)])
    return tmp_path


class Endless:
    """A FIFO into which a thread writes the same text repeatedly, as long as it has a reader."""

    def __init__(self, path, text):
        os.mkfifo(path)
        self.path, self.text, self.written = path, text * max(1, (1 << 16) // len(text)), 0
        self.thread = threading.Thread(target=self.write, daemon=True)

    def write(self):
        try:
            with open(self.path, "wb", buffering=0) as pipe:
                while True:
                    self.written += pipe.write(self.text)
        except BrokenPipeError:
            pass

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        os.close(os.open(self.path, os.O_RDONLY | os.O_NONBLOCK))  # if it has no reader
        self.thread.join(PATIENCE)


def peak(place, *words):
    """Runs a tool in the folder; returns its exit code, its messages, and its peak memory in megabytes."""
    process = start(*words, cwd=place)
    out, err = b"", b""
    timer = threading.Timer(PATIENCE, process.kill)
    timer.start()
    try:
        out, err = process.stdout.read(), process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
    finally:
        timer.cancel()
        process.stdout.close()
        process.stderr.close()
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, err.decode(), usage.ru_maxrss / 1024, out.decode()


def with_model(tool, name):
    return [tool, *(name if word == "MODEL" else word for word in MODELS[tool])]


@pytest.mark.parametrize("tool", MODELS)
def test_a_model_of_gigabytes_of_zeros(tool, place):
    with assert_untouched(place):
        with open(place / "m.json", "wb") as file:
            file.truncate(6 << 30)  # sparse: needs no disk space
        code, err, megabytes, _ = peak(place, *with_model(tool, "m.json"))
        (place / "m.json").unlink()
    assert code == 1 and "ERROR: 'm.json' has 6.0 GB" in err and "1.0 GB" in err, err
    assert megabytes < 250


@pytest.mark.parametrize("tool", MODELS)
def test_a_model_from_a_device_without_an_end(tool, place):
    with assert_untouched(place):
        code, err, megabytes, _ = peak(place, *with_model(tool, "/dev/zero"))
    assert code == 1 and "ERROR: '/dev/zero' is not a text" in err, err
    assert megabytes < 250


def test_a_model_from_a_pipe_without_an_end(place):
    with Endless(place / "pipe", b"{ \n") as pipe:
        code, err, _, _ = peak(place, *with_model("gdal_hsi_pca", "pipe"))
    assert code == 1 and "ERROR: 'pipe' has more than 1.0 GB" in err, err
    assert pipe.written < 1100 * MEGABYTE
    assert not (place / "o.tif").exists()


def test_a_model_through_a_pipe_is_one(place):
    succeed(run("gdal_hsi_pca", "-device", "cpu", "-q", "-nc", 2, "-model", place / "m.json", place / "s.img", place / "a.tif"))
    text = (place / "m.json").read_bytes()
    os.mkfifo(place / "pipe")
    process = start("gdal_hsi_pca", "-device", "cpu", "-q", "-apply", place / "pipe", place / "s.img", place / "b.tif")
    with open(place / "pipe", "wb") as pipe:
        pipe.write(text)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert (place / "b.tif").stat().st_size == (place / "a.tif").stat().st_size


def test_a_scene_from_a_pipe_is_refused(place):
    os.mkfifo(place / "pipe")
    for words in (["gdal_hsi_pca", "pipe", "o.tif"], ["gdal_hsi_info", "pipe"], ["gdal_hsi_svm_train", "s.img", "pipe", "m.json"]):
        code, err, _, _ = peak(place, *words)
        assert code == 1 and "'pipe' is a pipe or a device" in err, err


OPTION_FILES = {"/dev/zero": "is not a text", "/dev/urandom": "is not a text"}


@pytest.mark.parametrize("path, says", OPTION_FILES.items())
def test_options_from_a_device_without_an_end(path, says, place):
    with assert_untouched(place):
        code, err, megabytes, _ = peak(place, "gdal_hsi_spp", "--optfile", path, "s.img", "o.tif")
    assert code == 2 and f"'{path}' {says}" in err, err
    assert megabytes < 250


def test_options_from_a_pipe_without_an_end(place):
    with Endless(place / "pipe", b"-ws 3\n") as pipe:
        code, err, megabytes, _ = peak(place, "gdal_hsi_spp", "--optfile", "pipe", "s.img", "o.tif")
    assert code == 2 and "'pipe' has more than 16 MB" in err, err
    assert pipe.written < 32 * MEGABYTE and megabytes < 250


def test_a_file_of_options_that_is_too_large(place):
    (place / "o.txt").write_text("# nothing\n" * (2 << 20))
    code, err, _, _ = peak(place, "gdal_hsi_spp", "--optfile", "o.txt", "s.img", "o.tif")
    assert code == 2 and "'o.txt' has 20 MB" in err, err


@pytest.mark.parametrize("text", [b"-ws 9\r\n-of ENVI\r\n", b"\xef\xbb\xbf-ws 9 -of ENVI", b"# all\n\n  -ws 9\n-of 'ENVI'\n"
                                  .replace(b"'", b'"')])
def test_options_as_editors_leave_them(text, place):
    (place / "o.txt").write_bytes(text)
    succeed(run("gdal_hsi_spp", "-device", "cpu", "-q", "--optfile", place / "o.txt", place / "s.img", place / "a.img"))
    succeed(run("gdal_hsi_spp", "-device", "cpu", "-q", "-ws", 9, "-of", "ENVI", place / "s.img", place / "b.img"))
    assert (place / "a.img").read_bytes() == (place / "b.img").read_bytes()


@pytest.mark.parametrize("name", ["lib.csv", "lib.txt", "lib.sli"])
def test_a_library_of_gigabytes(name, place):
    with open(place / name, "wb") as file:
        file.truncate(3 << 30)
    (place / "lib.hdr").write_text("ENVI\nfile type = ENVI Spectral Library\nsamples = 6\nlines = 2\nbands = 1\n"
                                   "data type = 4\nbyte order = 0\ninterleave = bsq\n")
    if not name.endswith(".sli"):
        (place / "lib.hdr").unlink()
    code, err, megabytes, _ = peak(place, "gdal_hsi_unmix", "s.img", name, "o.tif")
    assert code == 1 and f"'{name}' has 3.0 GB" in err and "512 MB" in err, err
    assert megabytes < 250
    assert not (place / "o.tif").exists()


def test_a_library_without_an_end(place):
    code, err, megabytes, _ = peak(place, "gdal_hsi_unmix", "s.img", "/dev/zero", "o.tif")
    assert code == 1 and "'/dev/zero' has more than 512 MB" in err, err
    assert megabytes < 1300


@pytest.mark.parametrize("samples, lines", [(1000000000, 10), (10, 1000000000), (2000000000, 2)])
def test_a_scene_without_measure_is_planned_at_once(samples, lines, tmp_path):
    """info -plan computes the tiles of every tool, without more work than for a small scene."""
    bands = "".join(f'<VRTRasterBand dataType="Byte" band="{band}"/>' for band in (1, 2, 3))
    (tmp_path / "s.vrt").write_text(f'<VRTDataset rasterXSize="{samples}" rasterYSize="{lines}">{bands}</VRTDataset>')
    process = start("gdal_hsi_info", "-plan", "-memory", "4GB", tmp_path / "s.vrt")
    timer = threading.Timer(PATIENCE, process.kill)
    timer.start()
    out = process.stdout.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    timer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, process.stderr.read()
    assert "random field of 9 classes: " in out and "background: " in out
    assert usage.ru_utime + usage.ru_stime < 5  # processor seconds, which do not depend on other load; earlier 70


def addresses_of(process):
    text = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return int(text.split("VmPeak:")[1].split()[0]) << 10


def test_few_addresses_are_an_error_or_enough(place):
    """ulimit -v: the threads of OpenBLAS try endlessly to allocate their buffers, and must not be waited for."""
    clean = dict(os.environ)
    clean.pop("OPENBLAS_NUM_THREADS", None)
    codes = set()
    for megabytes in range(160, 640, 40):
        dst = place / f"{megabytes}.tif"
        result = run("gdal_hsi_pca", "-device", "cpu", "-q", "-nc", 2, place / "s.img", dst, env=clean,
                     limits={resource.RLIMIT_AS: megabytes << 20})
        codes.add(result.code)
        # 127: the program was not loaded; -2: OpenBLAS interrupts a process whose threads it cannot start.
        assert result.code in (0, 1, 127, -2), (megabytes, result)
        assert result.code == 0 or result.err, megabytes
        assert dst.exists() == (result.code == 0)
    assert 0 in codes
    truth = np.arange(600).reshape(1, 20, 30) % 3 + 1
    write_scene(place / "l.tif", truth, driver="GTiff", dtype="u1", nodata=0)
    words = ["-device", "cpu", "-q", "-threads", 2, "-iterations", 3, place / "s.img", place / "l.tif"]
    for megabytes in range(200, 900, 100):
        result = run("gdal_hsi_sahic", *words, place / f"map{megabytes}.tif", env=clean,
                     limits={resource.RLIMIT_AS: megabytes << 20})
        assert result.code in (0, 1, 127, -2), (megabytes, result)
        if result.code == 1:
            assert first_error(result)
    assert result.code == 0, result.err
