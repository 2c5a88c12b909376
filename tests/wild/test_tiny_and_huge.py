# SPDX-License-Identifier: MIT
"""Values near both ends of single precision, and scenes of a single pixel: scores equal those of the same scene in the
middle of the range, or an error gives advice; a pixel never loses its value."""
import json

import numpy as np
import pytest
from conftest import first_error, gdal, read, run, succeed, write_scene

# Subnormal numbers, the smallest normal numbers, and numbers whose squares underflow
EXPONENTS = [-141, -133, -126, -60, 60, 124]
SCORES = {"rx": ("-method", "rx"), "local": ("-method", "rx", "-window", 3, 9), "ace": ("-method", "ace", "-target-pixel", 7, 9),
          "mf": ("-method", "mf", "-target-pixel", 7, 9), "cem": ("-method", "cem", "-target-pixel", 7, 9),
          "sam": ("-method", "sam", "-target-pixel", 7, 9), "sid": ("-method", "sid", "-target-pixel", 7, 9)}


def scene():
    data = 1 + 0.3 * np.random.default_rng(3).standard_normal((5, 30, 31))
    data[:, 7, 9] *= 3
    return np.abs(data) + 0.01


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    """Returns by exponent: the scene times 2^exponent as floats, and the same floats times 2^-exponent."""
    folder = tmp_path_factory.mktemp("scenes")
    made = {}
    for e in EXPONENTS:
        stored = np.ldexp(scene(), e).astype("f4")
        made[e] = (write_scene(folder / f"{e}.tif", stored, driver="GTiff"),
                   write_scene(folder / f"{e}_middle.tif", np.ldexp(stored.astype("f8"), -e), driver="GTiff"))
    return made


@pytest.mark.parametrize("method", SCORES)
def test_scores_do_not_depend_on_the_scale(tmp_path, scenes, method):
    for e, pair in scenes.items():
        got, wanted = tmp_path / f"{e}.tif", tmp_path / f"{e}_wanted.tif"
        for source, target in zip(pair, (got, wanted)):
            succeed(run("gdal_hsi_detect", "-q", "-device", "cpu", *SCORES[method], source, target))
        np.testing.assert_allclose(read(got), read(wanted), rtol=2e-5, atol=1e-6, err_msg=f"2^{e}")


@pytest.mark.parametrize("tool", ["pca", "mnf"])
def test_components_do_not_depend_on_the_scale_or_are_refused(tmp_path, scenes, tool):
    for e, pair in scenes.items():
        results = [run(f"gdal_hsi_{tool}", "-q", "-overwrite", "-device", "cpu", "-nc", 2, *(("-whiten",) if tool == "pca" else ()), s, tmp_path / f"{k}.tif")
                   for k, s in enumerate(pair)]
        succeed(results[1])
        if results[0].code == 1:
            assert tool == "pca" and abs(e) >= 60
            assert "vary by less than 1e-14" in first_error(results[0]) or "extreme values" in results[0].err
            continue
        got, wanted = (read(tmp_path / f"{k}.tif") for k in range(2))
        np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-4 * np.abs(wanted).max(), err_msg=f"2^{e}")


def test_one_pixel_has_no_covariance(tmp_path):
    """Every device gives the same error, since the CPU makes the model from any device's sums."""
    one = write_scene(tmp_path / "one.tif", np.arange(1, 6.0).reshape(5, 1, 1), driver="GTiff")
    alone = np.full((5, 3, 4), np.nan)
    alone[:, 1, 2] = np.arange(1, 6)
    among = write_scene(tmp_path / "among.tif", alone, driver="GTiff")
    for source in (one, among):
        for tool, words in {"pca -nc 2": "need at least 2 valid pixels, but the scene has 1", "profile -nc 2": "need at least 2 valid pixels, but the scene has 1",
                            "vd": "needs at least 2 valid pixels, but the scene has 1", "mnf": "0 pairs of valid neighbours",
                            "detect": "the background has 1 valid pixel: its statistics need at least 2"}.items():
            name, *options = tool.split()
            output = () if name == "vd" else (tmp_path / "o.tif",)
            result = run(f"gdal_hsi_{name}", "-q", *options, source, *output)
            assert result.code == 1 and words in first_error(result), (tool, result.err)
            assert not (tmp_path / "o.tif").exists()


@pytest.mark.parametrize("pixels", [2, 3, 4])
@pytest.mark.parametrize("scale", [(), ("-scale",)])
def test_models_of_a_few_pixels_have_no_negative_variances(tmp_path, pixels, scale):
    """The solver gives zero variances an error of either sign; a model stores no negative variance, and can be read."""
    data = np.random.default_rng(pixels).random((30, 1, pixels)) * 1000 + 1
    scene = write_scene(tmp_path / "s.tif", data, driver="GTiff")
    model = tmp_path / "m.json"
    succeed(run("gdal_hsi_pca", "-q", "-nc", 1, *scale, "-model", model, scene, tmp_path / "p.tif"))
    values = json.loads(model.read_text())["eigenvalues"]
    assert len(values) == 30 and min(values) >= 0, values
    succeed(run("gdal_hsi_pca", "-q", "-apply", model, scene, tmp_path / "q.tif"))
    np.testing.assert_allclose(read(tmp_path / "p.tif"), read(tmp_path / "q.tif"), rtol=1e-5)
