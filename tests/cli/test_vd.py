# SPDX-License-Identifier: MIT
"""gdal_hsi_vd, compared with numpy, on synthetic and real scenes."""

import json
from statistics import NormalDist

import numpy as np
import pytest

from conftest import cube, first_error, read, real_scene, run, succeed, write_scene


def vd(*args):
    return run("gdal_hsi_vd", *args)


def reference(x, method, p):
    """x: bands x pixels."""
    n = x.shape[1]
    mean = x.mean(1)
    covariance = (x - mean[:, None]) @ (x - mean[:, None]).T / n
    correlation = covariance + np.outer(mean, mean)
    if method == "nwhfc":
        noise = 1 / np.sqrt(np.diag(np.linalg.inv(covariance)))
        covariance, correlation = covariance / np.outer(noise, noise), correlation / np.outer(noise, noise)
    r = np.sort(np.linalg.eigvalsh(correlation))[::-1]
    k = np.sort(np.linalg.eigvalsh(covariance))[::-1]
    threshold = NormalDist().inv_cdf(1 - p) * np.sqrt(2 * (r ** 2 + k ** 2) / n)
    return r, k, threshold, int((r - k > threshold).sum())


@pytest.mark.quick
@pytest.mark.parametrize("method", ["hfc", "nwhfc"])
@pytest.mark.parametrize("p", [1e-3, 1e-5])
def test_eigenvalues_and_number_are_numpys(scene, method, p):
    result = json.loads(succeed(vd("-json", "-method", method, "-pf", p, scene)).out)
    x = read(scene).reshape(12, -1)
    r, k, threshold, number = reference(x, method, p)
    assert result["virtual_dimensionality"] == number
    assert result["valid_pixels"] == x.shape[1] and result["invalid_pixels"] == 0
    found = result["eigenvalues"]
    # Products are computed in single precision.
    for name, want in (("correlation", r), ("covariance", k), ("threshold", threshold)):
        assert np.allclose([e[name] for e in found], want, rtol=2e-5)
    assert [e["signal"] for e in found] == list(r - k > threshold)
    assert ("noise_standard_deviation" in result) == (method == "nwhfc")


@pytest.mark.parametrize("method, numbers", [("hfc", [46, 43, 37]), ("nwhfc", [25, 19, 16])])
def test_indian_pines_has_its_known_numbers(method, numbers):
    path = real_scene("indian_pines/indian_pines.img")
    for p, number in zip((1e-3, 1e-4, 1e-5), numbers):
        assert succeed(vd("-q", "-method", method, "-pf", p, path)).out == f"Virtual dimensionality: {number}\n"


@pytest.mark.parametrize("name", ["jasper_ridge/jasper_ridge.img", "pavia_centre/pavia_centre.img"])
@pytest.mark.parametrize("method", ["hfc", "nwhfc"])
def test_real_scenes_agree_with_numpy(name, method):
    path = real_scene(name)
    x = read(path)
    x = x.reshape(len(x), -1)
    x = x[:, (x != 0).any(0)]
    for p in (1e-3, 1e-4, 1e-5):
        assert succeed(vd("-q", "-method", method, "-pf", p, path)).out.split()[-1] == str(reference(x, method, p)[3])


def hysime_reference(x):
    """Computes the definition with explicit residuals: Rs is the correlation of x minus its noise, and is not derived
    from R."""
    n = x.shape[1]
    r = x @ x.T / n
    p = np.linalg.inv(r)
    residual = (p / np.diag(p)[:, None]) @ x
    signal = x - residual
    noise = np.diag(np.diag(residual @ residual.T / n))
    rs = signal @ signal.T / n
    noise += 1e-5 * np.trace(rs) / len(x) * np.eye(len(x))
    values, e = np.linalg.eigh(rs)
    power, noise_power = np.diag(e.T @ r @ e)[::-1], np.diag(e.T @ noise @ e)[::-1]
    delta = 2 * noise_power - power
    return values[::-1], power, noise_power, delta, np.sqrt(np.diag(residual @ residual.T / n))


def test_hysime_is_the_definition(scene):
    result = json.loads(succeed(vd("-json", "-method", "hysime", scene)).out)
    values, power, noise_power, delta, noise = hysime_reference(read(scene).reshape(12, -1))
    assert result["virtual_dimensionality"] == (delta < 0).sum()
    found = result["eigenvalues"]
    for name, want in (("eigenvalue", values), ("power", power), ("noise_power", noise_power)):
        assert np.allclose([e[name] for e in found], want, rtol=1e-6)
    assert np.allclose(result["noise_standard_deviation"], noise, rtol=1e-6)
    assert [e["signal"] for e in found] == list(delta < 0)
    assert "false_alarm_probability" not in result


@pytest.mark.parametrize("name, number", [("jasper_ridge/jasper_ridge.img", 17), ("indian_pines/indian_pines.img", 18),
                                          ("pavia_centre/pavia_centre.img", 64)])
def test_hysime_finds_the_known_dimensions(name, number):
    path = real_scene(name)
    result = json.loads(succeed(vd("-json", "-method", "hysime", path)).out)
    assert result["virtual_dimensionality"] == number
    x = read(path)
    x = x.reshape(len(x), -1)
    x = x[:, (x != 0).any(0)]
    assert np.allclose(result["noise_standard_deviation"], hysime_reference(x)[4], rtol=1e-6)
    assert succeed(vd("-q", "-method", "hysime", path)).out == f"Virtual dimensionality: {number}\n"


def test_hysime_does_not_depend_on_threads_tiles_and_memory(scene):
    texts = {succeed(vd("-json", "-method", "hysime", *options, scene)).out for options in
             ([], ["-threads", 1], ["-threads", 3, "-tile", 16, 8], ["-memory", "64MB"])}
    assert len(texts) == 1


def test_hysime_says_why_it_cannot_estimate_the_noise(scene, tmp_path):
    twin = cube(bands=4)
    twin[2] = 3 * twin[1]
    result = succeed(vd("-json", "-method", "hysime", write_scene(tmp_path / "t.img", twin)))
    assert json.loads(result.out)["virtual_dimensionality"] <= 3 and "upper bound" in result.err
    result = vd("-method", "hysime", "-srcwin", 0, 0, 4, 3, scene)
    assert result.code == 1 and "12 valid pixels" in first_error(result)
    result = vd("-method", "hysime", "-pf", 1e-3, scene)
    assert result.code == 2 and "-pf" in first_error(result)


def test_invalid_pixels_and_empty_bands_are_left_out(tmp_path):
    data = cube()
    data[3, 5:9, 7:20] = -9999
    data[6] = -9999
    path = write_scene(tmp_path / "s.img", data, nodata=-9999)
    result = succeed(vd("-json", path))
    assert "band 7" in result.err
    document = json.loads(result.out)
    assert document["invalid_pixels"] == 4 * 13
    assert 7 not in document["bands"]
    x = np.delete(data, 6, 0).reshape(11, -1)
    x = x[:, (x != -9999).all(0)]
    assert document["virtual_dimensionality"] == reference(x.astype("f4").astype(float), "hfc", 1e-3)[3]


def test_results_do_not_depend_on_threads_tiles_and_memory(scene):
    texts = {succeed(vd("-json", *options, scene)).out for options in
             ([], ["-threads", 1], ["-threads", 3, "-tile", 128, 64], ["-memory", "64MB"])}
    assert len(texts) == 1


def test_report_and_dry_run(scene, tmp_path):
    succeed(vd("-q", "-report", tmp_path / "r.json", scene))
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["result"]["virtual_dimensionality"] >= 1
    assert "Pass covariance" in succeed(vd("-dry-run", scene)).out


@pytest.mark.quick
@pytest.mark.parametrize("options, words", [(["-pf", 0], "-pf"), (["-pf", 1], "-pf"), (["-method", "abc"], "-method"),
                                            (["-b", 1], "-b")])
def test_wrong_options_are_refused(scene, options, words):
    result = vd(*options, scene)
    assert result.code == 2 and words in first_error(result)


def test_no_valid_pixel_and_dependent_bands_are_errors(tmp_path):
    nothing = write_scene(tmp_path / "n.img", np.zeros((4, 6, 5)))
    result = vd(nothing)
    assert result.code == 1 and "no pixel is valid" in first_error(result)
    twin = cube(bands=4)
    twin[2] = twin[1]
    result = vd("-method", "nwhfc", write_scene(tmp_path / "t.img", twin))
    assert result.code == 1 and "NWHFC" in first_error(result)


def test_what_rounding_leaves_is_told(tmp_path):
    """Components transformed back to bands have as many dimensions as components plus the mean; the rest is
    rounding."""
    scene = write_scene(tmp_path / "scene.img", cube(60, 50, 40))
    succeed(run("gdal_hsi_pca", "-q", "-nc", 3, "-model", tmp_path / "m.json", scene, tmp_path / "y.tif"))
    succeed(run("gdal_hsi_pca", "-q", "-apply", tmp_path / "m.json", "-inverse", tmp_path / "y.tif", tmp_path / "back.img", "-of",
                "ENVI"))
    result = succeed(vd("-json", tmp_path / "back.img"))
    found = json.loads(result.out)
    assert 1 <= found["virtual_dimensionality"] - found["doubtful"] <= 4
    assert ("1e-15" in result.err) == (found["doubtful"] > 0)
    copies = write_scene(tmp_path / "copies.img", np.repeat(cube(60, 50, 1), 12, axis=0))
    assert json.loads(succeed(vd("-json", copies)).out)["virtual_dimensionality"] == 1
