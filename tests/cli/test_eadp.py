# SPDX-License-Identifier: MIT
"""gdal_hsi_eadp: from scene to profile, names and metadata, tiles and threads, memory, and bad input."""

import json

import numpy as np
import pytest
from osgeo import gdal

from conftest import assert_untouched, cube, first_error, open_band, real_scene, run, succeed, write_scene
from test_compare import ssim_map, zones
from test_pca import values


def eadp(*args, **kwargs):
    return run("gdal_hsi_eadp", "-device", "cpu", *args, **kwargs)


@pytest.fixture
def scene(tmp_path):
    return write_scene(tmp_path / "scene.img", cube(70, 60, 12), wavelengths=[400 + 10 * b for b in range(12)])


def gradient(x, sigma=1.0):
    """Returns the squared Scharr gradient of the smoothed plane."""
    radius = int(np.ceil(3 * sigma))
    taps = np.exp(-np.arange(-radius, radius + 1) ** 2 / (2 * sigma ** 2))
    taps /= taps.sum()
    p = np.pad(x, radius, mode="symmetric")
    p = sum(t * p[:, k:k + x.shape[1]] for k, t in enumerate(taps))
    p = sum(t * p[k:k + x.shape[0]] for k, t in enumerate(taps))
    p = np.pad(p, 1, mode="symmetric")
    at = lambda a, b: p[1 + a:1 + a + x.shape[0], 1 + b:1 + b + x.shape[1]]
    gx = (3 * (at(-1, 1) - at(-1, -1)) + 10 * (at(0, 1) - at(0, -1)) + 3 * (at(1, 1) - at(1, -1))) / 32
    gy = (3 * (at(1, -1) - at(-1, -1)) + 10 * (at(1, 0) - at(-1, 0)) + 3 * (at(1, 1) - at(-1, 1))) / 32
    return gx ** 2 + gy ** 2


def contrast(m, percentile=0.7):
    top = m.max()
    bins = np.minimum(299, np.floor(300 * m[m > 0] / top).astype(int))
    running = np.cumsum(np.bincount(bins, minlength=300))
    return top * (np.argmax(10 * running >= 10 * percentile * running[-1] - 1e-9) + 1) / 300


def diffuse(x, time, k):
    """Computes fast explicit diffusion in double precision, with small and large steps in an order that keeps halves
    stable."""
    g = 1 / (1 + gradient(x) / k ** 2)
    n = int(np.ceil(-0.5 + 0.5 * np.sqrt(1 + 12 * time / 0.25)))
    taus = 0.25 / (2 * np.cos(np.pi * (2 * np.arange(n) + 1) / (4 * n + 2)) ** 2)
    taus *= time / taus.sum()
    z, order, left = 1 / taus, [], list(range(n))
    while left:  # Leja
        scores = [z[i] if not order else np.log(np.abs(z[i] - z[order])).sum() for i in left]
        order.append(left.pop(int(np.argmax(scores))))
    u = x.copy()
    cx, cy = (g[:, 1:] + g[:, :-1]) / 2, (g[1:] + g[:-1]) / 2
    for tau in taus[order]:
        fx, fy = cx * np.diff(u, axis=1), cy * np.diff(u, axis=0)
        d = np.zeros_like(u)
        d[:, :-1] += fx
        d[:, 1:] -= fx
        d[:-1] += fy
        d[1:] -= fy
        u = u + tau * d
    return u


def test_step_counts_of_the_dry_run(scene, tmp_path):
    with assert_untouched(tmp_path):
        result = succeed(eadp(scene, tmp_path / "p.tif", "-dry-run"))
    for time, steps in zip(range(65, 521, 65), (28, 39, 48, 56, 62, 68, 74, 79)):
        assert f"T={time}: {steps} FED steps" in result.out
    assert "454 FED steps per component, 3178 for 7 components" in result.out
    assert "79 sweeps" in result.out and "halo 83" in result.out


@pytest.mark.quick
def test_profile_equals_numpy(scene, tmp_path):
    succeed(run("gdal_hsi_pca", scene, tmp_path / "pc.tif", "-nc", 2))
    succeed(eadp(scene, tmp_path / "p.tif", "-nc", 2, "-c", 3, "-ts", 40, "-report", tmp_path / "r.json"))
    components, profile = values(tmp_path / "pc.tif"), values(tmp_path / "p.tif")
    facts = json.loads((tmp_path / "r.json").read_text())["contrast"]
    assert len(profile) == 8
    for i in range(2):
        x = components[i]
        assert np.array_equal(profile[4 * i], x)
        k = contrast(np.sqrt(gradient(x)))
        assert facts[i]["k"] == pytest.approx(k, rel=1e-9)
        for c in (1, 2, 3):
            assert np.abs(profile[4 * i + c] - diffuse(x, 40.0 * c, k)).max() <= 5e-6 * (x.max() - x.min())
            assert profile[4 * i + c].mean() == pytest.approx(x.mean(), abs=1e-5 * (x.max() - x.min()))


@pytest.mark.parametrize("options", [[], ["-evolution", "cascade"], ["-evolution", "incremental", "-ts", 8],
                                     ["-scheme", "exact"], ["-precision", "double"], ["-no-pca", "-b", "2,5"]])
def test_tiles_threads_and_memory_do_not_change_a_bit(options, scene, tmp_path):
    common = ["-c", 3, "-ts", 20] if "-ts" not in options else ["-c", 3]
    succeed(eadp(scene, tmp_path / "p.tif", *common, *options))
    whole = values(tmp_path / "p.tif")
    for i, more in enumerate((["-threads", 1], ["-tile", 33, 17], ["-tile", 70, 5, "-threads", 2], ["-memory", "24MB"])):
        succeed(eadp(scene, tmp_path / f"{i}.tif", *common, *options, *more))
        assert np.array_equal(values(tmp_path / f"{i}.tif"), whole), more


def test_single_and_double_precision_agree(scene, tmp_path):
    succeed(eadp(scene, tmp_path / "s.tif"))
    succeed(eadp(scene, tmp_path / "d.tif", "-precision", "double"))
    s, d = values(tmp_path / "s.tif"), values(tmp_path / "d.tif")
    for i in range(7):
        assert np.abs(s[9 * i:9 * i + 9] - d[9 * i:9 * i + 9]).max() <= 1e-4 * (s[9 * i].max() - s[9 * i].min())


def test_bands_are_named_and_the_parameters_can_be_rebuilt(scene, tmp_path):
    succeed(eadp(scene, tmp_path / "p.tif", "-nc", 2, "-times", "10,32.5", "-g", "g1", "-percentile", 0.6, "-sigma", 1.5))
    dataset = gdal.Open(str(tmp_path / "p.tif"))
    names = [dataset.GetRasterBand(b).GetDescription() for b in range(1, 7)]
    assert names == ["PC1", "PC1 T=10", "PC1 T=32.5", "PC2", "PC2 T=10", "PC2 T=32.5"]
    items = dataset.GetMetadata()
    assert items["HSI_EADP_TIMES"] == "10,32.5" and items["HSI_EADP_COMPONENTS"] == "2"
    assert items["HSI_EADP_DIFFUSIVITY"] == "g1" and items["HSI_EADP_PERCENTILE"] == "0.6"
    assert items["HSI_EADP_SIGMA"] == "1.5" and items["HSI_EADP_EVOLUTION"] == "independent"
    assert items["HSI_EADP_SCHEME"] == "fed" and items["HSI_EADP_CYCLES"] == "1"
    assert "-percentile 0.6" in items["HSI_HISTORY"]
    band = dataset.GetRasterBand(6).GetMetadata()
    assert (band["component"], band["copy"], band["process_time"]) == ("2", "2", "32.5")
    # The contrast in the metadata reproduces the profile.
    succeed(eadp(scene, tmp_path / "q.tif", "-nc", 1, "-times", "10,32.5", "-g", "g1", "-sigma", 1.5,
                 "-k", dataset.GetRasterBand(2).GetMetadataItem("contrast")))
    p, q = values(tmp_path / "p.tif")[:3], values(tmp_path / "q.tif")
    assert np.allclose(p, q, rtol=0, atol=1e-6 * (p[0].max() - p[0].min()))


def test_invalid_pixels_let_no_flux_in_and_are_tagged(tmp_path):
    data = cube(60, 50, 8)
    data[:, :, 30:33] = -9999  # a wall
    data[:, :, 33:] += 5000
    source = write_scene(tmp_path / "s.img", data, nodata=-9999)
    succeed(eadp(source, tmp_path / "p.tif", "-nc", 1, "-c", 2))
    p = values(tmp_path / "p.tif")
    assert np.isnan(p[:, :, 30:33]).all() and np.isfinite(np.delete(p, [30, 31, 32], 2)).all()
    span = np.nanmax(p[0]) - np.nanmin(p[0])
    for side in (slice(0, 30), slice(33, 60)):  # each side keeps its own mean
        for c in (1, 2):
            assert p[c][:, side].mean() == pytest.approx(p[0][:, side].mean(), abs=1e-5 * span)
    assert open_band(tmp_path / "p.tif").GetNoDataValue() == -9999


def test_a_constant_band_is_its_own_profile_with_a_warning(tmp_path):
    data = cube(30, 30, 3)
    data[1] = 77
    source = write_scene(tmp_path / "s.img", data)
    result = succeed(eadp(source, tmp_path / "p.tif", "-no-pca", "-c", 2))
    assert "component 2 is constant" in result.err
    assert (values(tmp_path / "p.tif")[3:6] == 77).all()


def test_real_scene_smooths_more_and_more(tmp_path):
    source = real_scene("indian_pines/indian_pines.img")
    succeed(eadp(source, tmp_path / "p.tif", "-nc", 3, "-scheme", "exact"))
    p = values(tmp_path / "p.tif")
    for i in range(3):
        spread = p[9 * i:9 * i + 9].reshape(9, -1).std(1)
        assert (np.diff(spread) < 0).all()
        span = p[9 * i].max() - p[9 * i].min()
        assert p[9 * i:9 * i + 9].max() <= p[9 * i].max() + 1e-4 * span
        assert p[9 * i:9 * i + 9].min() >= p[9 * i].min() - 1e-4 * span


@pytest.mark.parametrize("kind", ["made", "real"])
def test_ssim_and_simplification_ratio_of_profile_bands_equal_numpy(kind, scene, tmp_path):
    """Figure 8 of paper 001: the structure and the flat zones of a component that each copy keeps."""
    source = scene if kind == "made" else real_scene("indian_pines/indian_pines.img")
    succeed(eadp(source, tmp_path / "p.tif", "-nc", 2, "-c", 4))
    pairs = [(first, first + c) for first in (1, 6) for c in (1, 2, 3, 4)]
    result = succeed(run("gdal_hsi_compare", "-json", "-metric", "ssim,sr", "-band", ",".join("%d:%d" % p for p in pairs),
                         tmp_path / "p.tif", tmp_path / "p.tif"))
    got = json.loads(result.out)["metrics"]
    p = values(tmp_path / "p.tif").astype(np.float64)
    valid = np.ones(p[0].shape, bool)
    ssim = [ssim_map(p[a - 1], p[b - 1], valid).mean() for a, b in pairs]
    counts = [[zones(p[n - 1], valid) for n in pair] for pair in pairs]
    np.testing.assert_allclose(got["ssim"]["bands"], ssim, rtol=1e-9)
    assert [list(z) for z in zip(got["sr"]["zones_a"], got["sr"]["zones_b"])] == counts
    np.testing.assert_allclose(got["sr"]["bands"], [b / a for a, b in counts])
    if kind == "real":  # each copy resembles its component less than the previous copy, and has fewer flat zones
        for i in (0, 4):
            assert (np.diff(ssim[i:i + 4]) < 0).all() and 0 < ssim[i + 3] and ssim[i] < 1
        assert max(b / a for a, b in counts) < 1


def test_memory_stays_under_its_ceiling(tmp_path):
    source = write_scene(tmp_path / "big.img", cube(700, 600, 30))
    succeed(eadp(source, tmp_path / "p.tif", "-memory", "60MB", "-threads", 1, "-report", tmp_path / "r.json"))
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["component_planes"] == "memory"
    assert sum(p["tiles"] for p in report["passes"] if p["name"] == "diffusion") > 1
    assert max(p["buffer_bytes"] for p in report["passes"]) <= 60e6
    succeed(eadp(source, tmp_path / "q.tif", "-memory", "14MB", "-threads", 1, "-c", 1, "-ts", 2,
                 "-report", tmp_path / "s.json"))
    assert json.loads((tmp_path / "s.json").read_text())["component_planes"] == "temporary file"
    assert sorted(f.name for f in tmp_path.iterdir()) == sorted(
        ["big.img", "big.hdr", "p.tif", "q.tif", "r.json", "s.json"])


@pytest.mark.quick
@pytest.mark.parametrize("options,text", [
    (["-nc", 0], "-nc"), (["-nc", 13], "-nc: 13"), (["-c", 0], "-c"), (["-ts", 0], "-ts"), (["-ts", -5], "-ts"),
    (["-times", "65,0"], "-times"), (["-times", "65,x"], "-times"), (["-times", "-1"], "-times"),
    (["-times", "65,65", "-evolution", "incremental"], "-times"), (["-times", "65", "-c", 2], "-c cannot be used with -times"),
    (["-sigma", -1], "-sigma"), (["-percentile", 0], "-percentile"), (["-percentile", 1.5], "-percentile"),
    (["-k", 0], "-k"), (["-k", -2], "-k"), (["-k", 2, "-percentile", 0.5], "-percentile cannot be used with -k"), (["-cycles", 0], "-cycles"),
    (["-tolerance", 0, "-scheme", "exact"], "-tolerance"), (["-tolerance", 1e-3], "-tolerance"),
    (["-cycles", 2, "-scheme", "exact"], "-cycles"), (["-g", "g4"], "g"), (["-evolution", "slow"], "evolution"),
    (["-no-pca", "-nc", 3], "-nc cannot be used with -no-pca"), (["-b", 4], "-b")])
def test_bad_options_are_refused_before_any_work(options, text, scene, tmp_path):
    with assert_untouched(tmp_path):
        result = eadp(scene, tmp_path / "p.tif", *options)
    assert result.code == 2, result.err
    assert text in first_error(result)


def test_sigma_zero_and_several_cycles_are_allowed(scene, tmp_path):
    succeed(eadp(scene, tmp_path / "a.tif", "-nc", 2, "-c", 2, "-sigma", 0, "-cycles", 3))
    assert gdal.Open(str(tmp_path / "a.tif")).GetMetadataItem("HSI_EADP_CYCLES") == "3"


def test_too_little_memory_is_an_error(scene, tmp_path):
    with assert_untouched(tmp_path):
        result = eadp(scene, tmp_path / "p.tif", "-memory", "100kB")
    assert result.code == 1
    assert "-memory" in first_error(result) + result.err
