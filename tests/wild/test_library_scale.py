# SPDX-License-Identifier: MIT
"""A library in other units than the scene: the warning proposes the factor that leads from one to the other, and with
that the shares come out."""

import json

import numpy as np
import pytest

from conftest import read, run, succeed, write_scene

RANDOM = np.random.default_rng(7)
SPECTRA = RANDOM.uniform(0.05, 0.6, (3, 16))
SHARES = RANDOM.dirichlet(np.ones(3) * 0.5, 20 * 15)
CUBE = (SHARES @ SPECTRA).T.reshape(16, 20, 15)


def unmixed(folder, factor, dtype, *args, library=SPECTRA, command="gdal_hsi_unmix"):
    scene = write_scene(folder / "s.tif", CUBE * factor, driver="GTiff", dtype=dtype)
    np.savetxt(folder / "lib.txt", library.T)
    report = folder / "r.json"
    files = [scene, folder / "lib.txt"] if command == "gdal_hsi_unmix" else ["-method", "sam", "-target", folder / "lib.txt", scene]
    result = succeed(run(command, "-overwrite", "-report", report, *args, *files, folder / "a.tif"))
    return result, json.loads(report.read_text())["library"]


@pytest.mark.parametrize("factor, dtype, proposed", [
    (10000, "f4", "10000"), (10000, "i2", "10000"), (9000, "f4", "10000"), (100, "f4", "100"), (1000, "i4", "1000"),
    (65535, "u2", "65535"), (255, "u1", "255"), (1e-4, "f4", "0.0001"), (0.01, "f8", "0.01")])
def test_the_factor_is_proposed(tmp_path, factor, dtype, proposed):
    result, library = unmixed(tmp_path, factor, dtype)
    assert f"-library-scale {proposed} would make them so" in result.err, result.err
    assert library["proposed_scale"] == float(proposed) and library["scale"] == 1
    again, library = unmixed(tmp_path, factor, dtype, "-library-scale", proposed)
    assert "-library-scale" not in again.err and "proposed_scale" not in library
    if factor == float(proposed) and dtype != "u1":
        assert np.allclose(read(tmp_path / "a.tif").reshape(3, -1).T, SHARES, atol=2e-2)


def test_a_wrong_scale_is_put_right(tmp_path):
    result, library = unmixed(tmp_path, 10000, "f4", "-library-scale", "100")
    assert "-library-scale 10000 would" in result.err and library["scale"] == 100
    result, _ = unmixed(tmp_path, 1, "f4", "-library-scale", "100")
    assert "-library-scale 1 would" in result.err


def test_spectra_of_one_size_earn_no_warning(tmp_path):
    for factor in (1, 3, 0.3):
        result, library = unmixed(tmp_path, factor, "f4")
        assert "-library-scale" not in result.err and "proposed_scale" not in library


def test_bright_pixels_and_dark_spectra_do_not_mislead(tmp_path):
    """Most spectra of the library are dark; the maxima of the bands decide, not the lengths."""
    dark = np.vstack([SPECTRA[:1], RANDOM.uniform(0.01, 0.03, (4, 16))])
    result, _ = unmixed(tmp_path, 10000, "f4", library=dark)
    assert "-library-scale 10000 would" in result.err, result.err


def test_detection_proposes_it_too(tmp_path):
    result, library = unmixed(tmp_path, 10000, "i2", command="gdal_hsi_detect")
    assert "-library-scale 10000 would" in result.err and library["proposed_scale"] == 10000
