# SPDX-License-Identifier: MIT
"""Raw scenes may begin with any bytes, also those of other formats: no format detection may refuse or misread them."""
import pathlib
import re

import numpy as np
import pytest
from conftest import gdal, run, seen_pixels, succeed

LINES, SAMPLES, BANDS = 10, 12, 4
MAGICS = {
    "TIFF": b"II*\0", "TIFF, big-endian": b"MM\0*", "BigTIFF": b"II+\0\x08\0\0\0", "HDF5": b"\x89HDF\r\n\x1a\n",
    "HDF4": b"\x0e\x03\x13\x01", "netCDF": b"CDF\x01", "netCDF, 64 bits": b"CDF\x02", "JPEG": b"\xff\xd8\xff\xe0\0\x10JFIF\0",
    "PNG": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "GIF": b"GIF89a", "BMP": b"BM", "PDF": b"%PDF-1.4\n", "PNM": b"P5 12 10 255\n",
    "GRIB": b"GRIB\0\0\0\2", "JPEG 2000": b"\0\0\0\x0cjP  \r\n\x87\n", "FITS": b"SIMPLE  =                    T", "NITF": b"NITF02.10",
    "ENVI": b"ENVI\n", "MATLAB": b"MATLAB 5.0 MAT-file".ljust(124) + b"\0\1IM", "MATLAB 7.3": b"MATLAB 7.3 MAT-file".ljust(124) + b"\0\2IM",
    "zip": b"PK\3\4", "gzip": b"\x1f\x8b\x08", "Imagine": b"EHFA_HEADER_TAG\0", "XML": b"<?xml version=\"1.0\"?>\n<a>",
    "an element": b"<level_X>\n", "VRT": b"<VRTDataset rasterXSize=\"1\" rasterYSize=\"1\">\n", "JSON": b"{\"refs\": {\".zgroup\"",
    "Surfer": b"DSAA", "Surfer 6": b"DSBB", "PCIDSK": b"PCIDSK  ", "WebP": b"RIFF\0\0\0\0WEBP", "SQLite": b"SQLite format 3\0",
    "a table": b"x,y,class\n1,2,3\n", "a mark": b"\xef\xbb\xbf<", "UTF-16": b"\xff\xfe<\0?\0x\0m\0l\0"}


def header(path, kind):
    """Writes a header next to a raw scene of 16 bits, band by band."""
    if kind == "ENVI":
        path.with_suffix(".hdr").write_text(
            f"ENVI\nsamples = {SAMPLES}\nlines = {LINES}\nbands = {BANDS}\nheader offset = 0\nfile type = ENVI Standard\n"
            "data type = 2\ninterleave = bsq\nbyte order = 0\n")
    elif kind == "EHdr":
        path.with_suffix(".hdr").write_text(
            f"NROWS {LINES}\nNCOLS {SAMPLES}\nNBANDS {BANDS}\nNBITS 16\nPIXELTYPE SIGNEDINT\nBYTEORDER I\nLAYOUT BSQ\n")
    else:
        lines = "".join(f"ChanDefinition-{b + 1}: 16S {b * LINES * SAMPLES * 2} 2 {SAMPLES * 2} Swapped\n" for b in range(BANDS))
        pathlib.Path(str(path) + ".aux" if kind == "long name" else path.with_suffix(".aux")).write_text(
            f"AuxilaryTarget: {path.name}\nRawDefinition: {SAMPLES} {LINES} {BANDS}\n{lines}")


def scene(path, begin, fill, kind):
    """Returns the values (band, line, sample) of a raw file that begins with these bytes."""
    data = np.arange(LINES * SAMPLES * BANDS, dtype="<i2") % 7 * 0x0101 + fill
    content = begin + data.tobytes()[len(begin):]
    path.write_bytes(content)
    header(path, kind)
    return np.frombuffer(content, "<i2").reshape(BANDS, LINES, SAMPLES)


@pytest.mark.parametrize("kind", ["ENVI", "EHdr", "PAux"])
@pytest.mark.parametrize("second", [0, ord("a"), ord("?")])
def test_any_first_byte(tmp_path, kind, second):
    """The next bytes are zero, as in small numbers, or not, as in a text."""
    wrong = []
    for first in range(256) if kind == "ENVI" and second == 0 else b"<{[#%\x89IMBPGCD\x00\xff\xef\xfe":
        path = tmp_path / "s.img"
        scene(path, bytes([first, second]), 0 if second == 0 else 0x3030, kind)
        result = run("gdal_hsi_info", path)
        if result.code != 0 or f"{SAMPLES} samples, {LINES} lines" not in result.out or \
                not re.search(rf"Driver: +{kind}\n", result.out):
            wrong.append((first, result.out + result.err))
    assert not wrong, wrong[:3]


@pytest.mark.parametrize("name", ["s.img", "s.mat", "s.tif", "s"])
@pytest.mark.parametrize("magic", MAGICS)
def test_the_beginning_of_another_format(tmp_path, magic, name):
    path = tmp_path / name
    data = scene(path, MAGICS[magic], 100, "ENVI")
    np.testing.assert_array_equal(seen_pixels(path, data.shape, tmp_path), data)


@pytest.mark.parametrize("magic", MAGICS)
def test_labels_that_begin_so(tmp_path, magic):
    """A class image of bytes, some of which are letters."""
    path = tmp_path / "labels.img"
    content = (MAGICS[magic] + bytes([1, 2, 3] * 200))[:LINES * SAMPLES]
    if len(MAGICS[magic]) >= LINES * SAMPLES:
        pytest.skip("longer than the image")
    path.write_bytes(content)
    path.with_suffix(".hdr").write_text(f"ENVI\nsamples = {SAMPLES}\nlines = {LINES}\nbands = 1\nheader offset = 0\n"
                                        "data type = 1\ninterleave = bsq\nbyte order = 0\n")
    scene(tmp_path / "scene.img", b"", 100, "ENVI")
    succeed(run("gdal_hsi_spectra", "-q", tmp_path / "scene.img", path, tmp_path / "out.csv"))
    classes = set(content) - {0}
    header = (tmp_path / "out.csv").read_text().splitlines()[0].split(",")
    assert len(header) == 2 + len(classes), header


def test_a_raw_scene_that_is_larger_than_a_product_s_text(tmp_path):
    """Its beginning has no zero byte, but many follow, and it is larger than any XML file."""
    path = tmp_path / "s.img"
    lines = 70 << 20
    with open(path, "wb") as f:
        f.write(b"<abc>" + b"d" * 2000)
        f.truncate(lines)
    path.with_suffix(".hdr").write_text(f"ENVI\nsamples = 1\nlines = {lines}\nbands = 1\nheader offset = 0\ndata type = 1\n"
                                        "interleave = bsq\nbyte order = 0\n")
    succeed(run("gdal_hsi_info", path))
