# SPDX-License-Identifier: MIT
"""Writes ENVI scenes with headers field by field, and reads them through the tools."""
import json

from conftest import cube, run, succeed

TYPES = {"u1": 1, "<i2": 2, "<f4": 4, "<f8": 5, "<u2": 12, ">u2": 12, ">i2": 2, ">f4": 4}
INTERLEAVE = {"bsq": (0, 1, 2), "bil": (1, 0, 2), "bip": (1, 2, 0)}
NM = [450, 666.25, 883.5, 1100]


def fields(shape, dtype="<f4", interleave="bsq", **more):
    bands, lines, samples = shape
    out = {"samples": samples, "lines": lines, "bands": bands, "header offset": 0, "data type": TYPES[dtype],
           "interleave": interleave, "byte order": int(dtype[0] == ">")}
    return {**out, **{key.replace("_", " "): value for key, value in more.items()}}


def text_of(header):
    return "ENVI\n" + "".join(f"{key} = {value}\n" for key, value in header.items() if value is not None)


def write(folder, data, header=None, name="s", dtype="<f4", interleave="bsq", encoding="utf-8", data_name=None, **more):
    """Writes a scene of (bands, lines, samples); `header` is its whole text, or fields in addition to the required
    ones."""
    path = folder / (data_name or f"{name}.dat")
    data.astype(dtype).transpose(INTERLEAVE[interleave]).tofile(path)
    text = header if isinstance(header, (str, bytes)) else text_of({**fields(data.shape, dtype, interleave, **more), **(header or {})})
    (folder / f"{name}.hdr").write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
    return path


def facts(path, *options):
    return json.loads(succeed(run("gdal_hsi_info", "-json", *options, path)).out)


def warnings(path):
    return succeed(run("gdal_hsi_info", path)).err


def braces(values):
    return "{" + ", ".join(map(str, values)) + "}"


def small(dtype="<f4"):
    return cube(6, 5, 4).astype(dtype)
