# SPDX-License-Identifier: MIT
"""Runs one process from exec to exit, with the system's accounting; shared by the programs that time whole
processes."""
import os
import pathlib
import subprocess
import tempfile
import time
from typing import NamedTuple


class Finished(NamedTuple):
    wall: float       # seconds
    processor: float  # seconds of all threads, user and system
    peak: int         # resident bytes
    out: str          # standard output


def timed(command, folder=None, **environment):
    """Runs a command to its end, in a folder. If the command fails, the program ends with the command's output."""
    words = [str(w) for w in command]
    with tempfile.TemporaryFile() as error:
        begin = time.perf_counter()
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=error, cwd=folder,
                                   env={**os.environ, **environment})
        out = process.stdout.read().decode()
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begin
        if status != 0:
            error.seek(0)
            raise SystemExit(f"{' '.join(words)} failed:\n{out}{error.read().decode()}")
    return Finished(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, out)


def make_scene(tools, path, size, *words):
    """Makes a scene with gdal_hsi_synth from a folder of tools, as ENVI BSQ of floats unless the words say otherwise.
    All figures of the documentation were measured on its pattern."""
    command = [pathlib.Path(tools) / "gdal_hsi_synth", "-q", "-overwrite", "-pattern", "fields", "-of", "ENVI", "-size", *size,
               *words, path]
    subprocess.run([str(w) for w in command], check=True)
