# SPDX-License-Identifier: MIT
"""A library in other units than the scene: the warning proposes the factor between them, with which the shares are
right; unmixing prints how close the factor is; methods that ignore units print nothing."""

import json

import numpy as np
import pytest

from conftest import first_error, read, run, succeed, write_scene

RANDOM = np.random.default_rng(7)
SPECTRA = RANDOM.uniform(0.05, 0.6, (3, 16))
SHARES = RANDOM.dirichlet(np.ones(3) * 0.5, 20 * 15)
CUBE = (SHARES @ SPECTRA).T.reshape(16, 20, 15)


def unmixed(folder, factor, dtype, *args, library=SPECTRA, command="gdal_hsi_unmix", method="ace"):
    scene = write_scene(folder / "s.tif", CUBE * factor, driver="GTiff", dtype=dtype)
    np.savetxt(folder / "lib.txt", library.T)
    report = folder / "r.json"
    files = [scene, folder / "lib.txt"] if command == "gdal_hsi_unmix" else ["-method", method, "-target", folder / "lib.txt", scene]
    result = succeed(run(command, "-overwrite", "-report", report, *args, *files, folder / "a.tif"))
    return result, json.loads(report.read_text())["library"]


@pytest.mark.parametrize("factor, dtype, proposed", [
    (10000, "f4", "10000"), (10000, "i2", "10000"), (9000, "f4", "10000"), (100, "f4", "100"), (1000, "i4", "1000"),
    (65535, "u2", "65535"), (255, "u1", "255"), (1e-4, "f4", "0.0001"), (0.01, "f8", "0.01")])
def test_the_factor_is_proposed(tmp_path, factor, dtype, proposed):
    result, library = unmixed(tmp_path, factor, dtype)
    assert f"use -library-scale {proposed}" in result.err, result.err
    assert library["proposed_scale"] == float(proposed) and library["scale"] == 1
    again, library = unmixed(tmp_path, factor, dtype, "-library-scale", proposed)
    assert "-library-scale" not in again.err and "proposed_scale" not in library
    if factor == float(proposed) and dtype != "u1":
        assert np.allclose(read(tmp_path / "a.tif").reshape(3, -1).T, SHARES, atol=2e-2)


@pytest.mark.parametrize("factor, dtype, times, proposed", [(100, "u1", 10000, "0.01"), (100, "u1", 25000, "0.01"),
                                                            (6000, "u2", 3e8, "1e-05")])
def test_whole_numbers_are_no_share_of_their_type(tmp_path, factor, dtype, times, proposed):
    """1/255 would convert a scene of bytes to numbers from 0 to 1."""
    result, _ = unmixed(tmp_path, factor, dtype, library=SPECTRA * times)
    assert f"use -library-scale {proposed}" in result.err, result.err


def test_zeros_have_no_units(tmp_path):
    shade = np.vstack([SPECTRA[:1], 0 * SPECTRA[:2]])
    for factor, told in ((1, False), (10000, True)):
        result, _ = unmixed(tmp_path, factor, "f4", "-method", "ucls", "-spectrum", "#1", library=shade)
        assert ("times as large" in result.err) == told and " 0 times" not in result.err, result.err


def test_a_wrong_scale_is_put_right(tmp_path):
    result, library = unmixed(tmp_path, 10000, "f4", "-library-scale", "100")
    assert "use -library-scale 10000" in result.err and library["scale"] == 100
    result, _ = unmixed(tmp_path, 1, "f4", "-library-scale", "100")
    assert "use -library-scale 1" in result.err


def test_spectra_of_one_size_earn_no_warning(tmp_path):
    for factor in (1, 3, 0.3):
        result, library = unmixed(tmp_path, factor, "f4")
        assert "-library-scale" not in result.err and "proposed_scale" not in library


def test_bright_pixels_and_dark_spectra_do_not_mislead(tmp_path):
    """Most spectra of the library are dark; the maxima of the bands decide instead of the lengths."""
    dark = np.vstack([SPECTRA[:1], RANDOM.uniform(0.01, 0.03, (4, 16))])
    result, _ = unmixed(tmp_path, 10000, "f4", library=dark)
    assert "use -library-scale 10000" in result.err, result.err


@pytest.mark.parametrize("method", ["mf", "cem", "ace"])
def test_detection_proposes_it_too(tmp_path, method):
    result, library = unmixed(tmp_path, 10000, "i2", command="gdal_hsi_detect", method=method)
    assert "use -library-scale 10000" in result.err and library["proposed_scale"] == 10000
    assert "only the nearest power of ten" in result.err and "-method sam" in result.err


@pytest.mark.parametrize("method", ["sam", "sid"])
def test_methods_without_units_say_nothing_of_them(tmp_path, method):
    """The scores are equal to rounding, so no message is needed."""
    scores = []
    for scale in 1, 10000:
        result, library = unmixed(tmp_path, 10000, "f4", "-library-scale", scale, command="gdal_hsi_detect", method=method)
        assert "-library-scale" not in result.err and "proposed_scale" not in library
        scores.append(read(tmp_path / "a.tif"))
    assert np.allclose(scores[0], scores[1], rtol=1e-5, atol=1e-7) and np.ptp(scores[0]) > 0.01


def test_a_proposal_is_not_taken_for_exact(tmp_path):
    for dtype, factor, words in ("f4", 9000, "only the nearest power of ten"), ("u2", 65535, "only the nearest value of the scene's type"):
        for method, advice in (("fcls", "fcls and scls depend on the exact factor"), ("scls", "fcls and scls depend"),
                               ("nnls", "the mean sum of abundances shows"), ("ucls", "the mean sum of abundances shows")):
            result, _ = unmixed(tmp_path, factor, dtype, "-method", method)
            assert words in result.err and advice in result.err, result.err
    result, _ = unmixed(tmp_path, 1, "f4", "-library-scale", "100")
    assert "use -library-scale 1" in result.err and "only" not in result.err


def report_of(folder):
    return json.loads((folder / "r.json").read_text())


@pytest.mark.parametrize("method", ["ucls", "nnls", "scls", "fcls"])
def test_the_mean_residual(tmp_path, method):
    """The residual of the scene, from the written abundances; equal for all tiles, with and without -rmse."""
    noisy = CUBE + np.random.default_rng(1).normal(0, 0.02, CUBE.shape)
    noisy[:, 3, 4] = np.nan
    scene = write_scene(tmp_path / "s.tif", noisy, driver="GTiff", dtype="f4")
    np.savetxt(tmp_path / "lib.txt", SPECTRA.T)
    seen = set()
    for options in (["-rmse", tmp_path / "e.tif"], [], ["-tile", 7, 3, "-threads", 1], ["-tile", 15, 1, "-threads", 3], ["-threads", 4]):
        result = succeed(run("gdal_hsi_unmix", "-overwrite", "-device", "cpu", "-method", method, "-report", tmp_path / "r.json",
                             *options, scene, tmp_path / "lib.txt", tmp_path / "a.tif"))
        residual = report_of(tmp_path)["residual"]
        assert (residual["pixels"], residual["bands"]) == (299, 16)
        assert f"Mean residual: {residual['rmse']:.6g} (root mean square over 299 pixels and 16 bands)" in result.out
        seen.add((residual["rmse"], report_of(tmp_path).get("mean_abundance_sum")))
    assert len(seen) == 1
    rmse, mean_sum = seen.pop()
    errors = read(tmp_path / "e.tif")[0].astype(float)
    assert rmse == pytest.approx(np.sqrt(np.nanmean(errors ** 2)), rel=1e-12)
    shares = read(tmp_path / "a.tif").astype(float)
    left = noisy - np.tensordot(SPECTRA.T, shares, 1)
    assert rmse == pytest.approx(np.sqrt(np.nanmean(left ** 2)), rel=1e-5)
    if method in ("ucls", "nnls"):
        assert mean_sum == pytest.approx(np.nanmean(shares.sum(axis=0)), rel=1e-12)
        assert f"Mean sum of abundances: {mean_sum:.6g}\n" in result.out
    else:
        assert mean_sum is None and "Mean sum" not in result.out
    quiet = succeed(run("gdal_hsi_unmix", "-q", "-overwrite", "-method", method, scene, tmp_path / "lib.txt", tmp_path / "a.tif"))
    assert quiet.out == ""


def test_the_factor_that_was_looked_for(tmp_path):
    """Between powers of ten: the sum of nnls gives the factor, and with it the residual is least."""
    result, library = unmixed(tmp_path, 5300, "f4", "-method", "nnls", "-library-scale", 10000)
    factor = 10000 * report_of(tmp_path)["mean_abundance_sum"]
    assert factor == pytest.approx(5300, rel=1e-4)
    residuals = {}
    for scale in 4000, factor, 7000, 10000:
        unmixed(tmp_path, 5300, "f4", "-library-scale", scale)
        residuals[scale] = report_of(tmp_path)["residual"]["rmse"]
    assert min(residuals, key=residuals.get) == factor


def test_a_vrt_has_no_residual_yet(tmp_path):
    result, _ = unmixed(tmp_path, 1, "f4")
    assert "Mean residual" in result.out
    result = succeed(run("gdal_hsi_unmix", "-report", tmp_path / "v.json", tmp_path / "s.tif", tmp_path / "lib.txt", tmp_path / "a.vrt"))
    assert "Mean residual" not in result.out and "residual" not in json.loads((tmp_path / "v.json").read_text())


SIGNS = "below zero in over a quarter of the bands"
COMPARED = [("gdal_hsi_unmix", "fcls"), ("gdal_hsi_unmix", "nnls"), ("gdal_hsi_cluster", "-"),
            *(("gdal_hsi_detect", method) for method in ("sam", "mf", "cem", "ace", "sff", "mtmf"))]


def compared(folder, command, method, library, cube, *args):
    nm = [2000 + 10 * b for b in range(16)]
    scene = write_scene(folder / "s.tif", cube, driver="GTiff", dtype="f4", wavelengths=nm)
    np.savetxt(folder / "lib.csv", np.vstack([nm, library]).T, delimiter=",", header="wavelength,a,b,c", comments="")
    words = {"gdal_hsi_unmix": ["-method", method, scene, folder / "lib.csv"],
             "gdal_hsi_cluster": ["-start", folder / "lib.csv", scene]}.get(
                 command, ["-method", method, "-target", folder / "lib.csv", *(["-range", "2000-2200nm"] if method == "sff" else []), scene])
    return succeed(run(command, "-overwrite", *args, *words, folder / "a.tif"))


@pytest.mark.parametrize("command, method", COMPARED)
def test_other_signs_are_told(tmp_path, command, method):
    """Logarithms or derivatives together with their originals give a warning; equal types, or a few dark bands, do
    not."""
    few = SPECTRA.copy()
    few[:, :3] *= -1
    if method != "sff":  # they have no continuum
        said = compared(tmp_path, command, method, np.log(SPECTRA), CUBE)
        assert "3 spectra of the library ('a' ...) are " + SIGNS in said.err, said.err
        assert ("-target-is-absorption" in said.err) == (method in ("mf", "ace"))
        assert SIGNS not in compared(tmp_path, command, method, np.log(SPECTRA), np.log(CUBE)).err
        assert SIGNS not in compared(tmp_path, command, method, few, CUBE).err
    one = SPECTRA.copy()
    one[1, 2:-2] = 0.5 - one[1, 2:-2]
    one[1, 4:12] *= -1
    said = compared(tmp_path, command, method, one, CUBE)
    assert "1 spectrum of the library ('b') is " + SIGNS in said.err, said.err
    assert SIGNS not in compared(tmp_path, command, method, SPECTRA, CUBE).err


@pytest.mark.parametrize("method", ["mf", "ace"])
def test_a_gas_that_absorbs_nothing(tmp_path, method):
    k = -0.01 * SPECTRA
    assert "any negative values" not in compared(tmp_path, "gdal_hsi_detect", method, k, CUBE, "-target-is-absorption").err
    k[2] *= -1
    said = compared(tmp_path, "gdal_hsi_detect", method, k, CUBE, "-target-is-absorption").err
    assert "'c' has hardly any negative values" in said and "'a'" not in said
    k[2, ::5] = -1e-6  # noise
    assert "'c' has hardly" in compared(tmp_path, "gdal_hsi_detect", method, k, CUBE, "-target-is-absorption").err


@pytest.mark.parametrize("tool", ["gdal_hsi_unmix", "gdal_hsi_detect"])
def test_bright_spectra_of_a_dark_scene_are_in_its_units(tmp_path, tool):
    """As spectra from a scene with much water."""
    dark = 0.02 * CUBE
    dark[:, 0, :3] = SPECTRA.T
    assert "times as large" not in compared(tmp_path, tool, "nnls" if tool == "gdal_hsi_unmix" else "ace", SPECTRA, dark).err
    assert "use -library-scale 0.01" in compared(tmp_path, tool, "nnls" if tool == "gdal_hsi_unmix" else "ace", 100 * SPECTRA, dark).err


@pytest.mark.parametrize("sigma, told", [(0.004, False), (40, True), (1e-9, True), ("scene", True)])
def test_deviations_in_other_units_are_told(tmp_path, sigma, told):
    write_scene(tmp_path / "sigma.tif", CUBE if sigma == "scene" else np.full(CUBE.shape, sigma), driver="GTiff", dtype="f4")
    said = compared(tmp_path, "gdal_hsi_unmix", "fcls", SPECTRA, CUBE, "-draws", 3, "-uncertainty", tmp_path / "sigma.tif").err
    assert ("check that they are standard deviations" in said) == told, said
    assert "all draws are equal" not in said


def test_deviations_of_other_bands_are_refused(tmp_path):
    nm = [2000 + 10 * b for b in range(16)]
    for names, fault in ((nm[::-1], "2150 nm instead of 2000 nm"), ([v + 5 for v in nm], "2005 nm instead of 2000 nm"), (nm, None), (None, None)):
        sigma = write_scene(tmp_path / "sigma.tif", 0.01 * CUBE, driver="GTiff", dtype="f4", wavelengths=names)
        scene = write_scene(tmp_path / "s.tif", CUBE, driver="GTiff", dtype="f4", wavelengths=nm)
        np.savetxt(tmp_path / "lib.csv", np.vstack([nm, SPECTRA]).T, delimiter=",", header="wavelength_nm,a,b,c", comments="")
        result = run("gdal_hsi_unmix", "-overwrite", "-draws", 2, "-uncertainty", sigma, scene, tmp_path / "lib.csv", tmp_path / "a.tif")
        assert result.code == (1 if fault else 0), result.err
        assert fault is None or fault in first_error(result)


def test_draws_that_are_all_alike_are_told(tmp_path):
    said = compared(tmp_path, "gdal_hsi_unmix", "fcls", SPECTRA, CUBE, "-draws", 3, "-deviation", tmp_path / "d.tif").err
    assert "all draws are equal" in said
    (tmp_path / "classes.csv").write_text("name,class\na,one\nb,one\nc,two\n")
    said = compared(tmp_path, "gdal_hsi_unmix", "fcls", SPECTRA, CUBE, "-draws", 3, "-classes", tmp_path / "classes.csv").err
    assert "all draws are equal" not in said


@pytest.mark.parametrize("shared, told", [(2, True), (3, False), (16, False)])
def test_a_library_that_shares_few_bands_is_told(tmp_path, shared, told):
    library = SPECTRA.copy()
    library[:, shared:] = np.nan
    said = compared(tmp_path, "gdal_hsi_detect", "sam", library, CUBE)
    assert ("Check that the library is for this sensor" in said.err) == told, said.err
