# SPDX-License-Identifier: MIT
"""gdal_hsi_gas against a NumPy reference in double precision, which forms z and its covariance anew in every iteration."""

import itertools
import json

import numpy as np
import pytest
from osgeo import gdal

from conftest import assert_untouched, first_error, read, run, succeed, write_scene

BANDS = 24
NM = np.linspace(2100, 2500, BANDS)
USED = [b for b in range(BANDS) if 2122 <= NM[b] <= 2485]
LINES, SAMPLES = 90, 11


def gas(*args):
    return run("gdal_hsi_gas", *args)


def absorption():
    """1/ppm m at all bands; not smooth, as methane's lines are not."""
    rng = np.random.default_rng(3)
    return -1e-5 * (0.2 + rng.random(BANDS) * np.exp(-((NM - 2350) / 60) ** 2))


def radiance(seed=5, lines=LINES, samples=SAMPLES):
    """Bands x lines x samples: three surfaces, gains by column, noise, a plume."""
    rng = np.random.default_rng(seed)
    shapes = 1.2 + 0.2 * np.cumsum(rng.normal(size=(3, BANDS)), axis=1) / np.sqrt(BANDS)
    parts = rng.dirichlet([1, 1, 1], (lines, samples))
    x = np.moveaxis(parts @ shapes, 2, 0) * rng.uniform(0.5, 1.5, (1, lines, samples)) * rng.uniform(0.97, 1.03, (BANDS, 1, samples))
    amount = np.zeros((lines, samples))
    amount[20:34, 2:7] = rng.uniform(500, 3000, (14, 5))
    x *= np.exp(absorption()[:, None, None] * amount)
    return (x * (1 + 0.003 * rng.normal(size=x.shape))).astype(np.float32)


def write_absorption(path, k=None, nm=NM):
    k = absorption() if k is None else k
    path.write_text("wavelength,CH4\n" + "".join(f"{a:.17g},{b:.17g}\n" for a, b in zip(nm, k)))
    return path


def solve(matrix, t):
    pivots = np.diag(np.linalg.cholesky(matrix)) ** 2
    assert np.all(pivots > 1e-12 * np.diag(matrix))
    return np.linalg.solve(matrix, t)


def shrunk(matrix, z, v):
    if v == "ledoit-wolf":
        n, bands = z.shape
        u = z / np.sqrt(np.mean(z * z, axis=0))
        p = u.T @ u / n
        delta = np.sum((p - np.eye(bands)) ** 2) / bands
        beta = (np.sum(np.sum(u * u, axis=1) ** 2) / n - np.sum(p * p)) / (bands * n)
        v = min(max(beta, 0), delta) / delta
    return (1 - v) * matrix + v * np.diag(np.diag(matrix))


def noise_of(x, rows, scale):
    a, b, d = rows
    level = x * scale + b
    return np.abs(a * np.sqrt(np.where(level > 0, level, 1e-5)) + d) / scale


def filter_group(x, counts, k, method="mag1c", shrinkage=0, iterations=30, albedo=True, sparsity=True, noise=None, scale=1):
    """x: pixels x bands of valid pixels. Enhancement, uncertainty, sensitivity, albedo."""
    x, log = x.astype(float), method == "lognormal"
    y = np.log(x) if log else x
    varies = np.ptp(y[counts], axis=0) > 0
    x, y, k = x[:, varies], y[:, varies], k[varies]
    nothing = np.full((4, len(x)), np.nan)
    n = counts.sum()
    if n < 2 or (shrinkage == 0 and n <= varies.sum()):
        return nothing
    unit = 1e5 if method == "mag1c" else 1

    def background(z):
        m = z[counts].mean(axis=0)
        c = (z[counts] - m).T @ (z[counts] - m) / n
        t = k if log else unit * k * m
        w = solve(shrunk(c, z[counts] - m, shrinkage), t)
        return m, t, w, t @ w

    m, t, w, q = background(y)
    r = np.ones(len(x))
    if method == "mag1c":
        r = x @ m / (m @ m) if albedo else r
        good = r > 0
        over = np.where(good, 1 / np.where(good, r, 1), 0)
        a = np.maximum(0, (x - m) @ w * over / q)
        for _ in range(iterations):
            p = over / (a + 1e-9) if sparsity else 0
            m, t, w, q = background(x - (np.where(good, r, 0) * a)[:, None] * t)
            a = np.maximum(0, ((x - m) @ w - p) * over / max(q, 1))
        enhancement = np.where(good, 1e5 * a, np.nan)
    else:
        enhancement = (y - m) @ w / q
    response = np.abs((np.ones_like(x) if log else x) * k @ w)
    sensitivity = np.ones(len(x)) if log else unit * response / (r * abs(q))
    uncertainty = np.full(len(x), np.nan)
    if noise is not None:
        s = noise_of(x, noise[:, varies], scale) / (x if log else 1)
        uncertainty = np.sqrt(np.sum((w * s) ** 2, axis=1)) / response
    result = np.stack([enhancement, uncertainty, sensitivity, r])
    return np.where(np.isnan(enhancement), np.nan, result)


def reference(cube, columns=1, first=0, mask=None, **options):
    """The four bands for the scene, whose bands are those used."""
    bands, lines, samples = cube.shape
    result = np.full((4, lines, samples), np.nan)
    groups = (np.arange(samples) + first) // columns
    for g in np.unique(groups):
        inside = np.broadcast_to(groups == g, (lines, samples))
        valid = inside & np.all(np.isfinite(cube), axis=0) & np.any(cube != 0, axis=0)
        if options.get("method") == "lognormal":
            valid &= np.all(np.nan_to_num(cube) > 0, axis=0)
        if valid.any():
            counts = (np.ones((lines, samples), bool) if mask is None else mask)[valid]
            result[:, valid] = filter_group(cube[:, valid].T, counts, absorption()[USED], **options)
    return result


def close(found, wanted, relative, absolute):
    assert found.shape == wanted.shape
    assert np.array_equal(np.isnan(found), np.isnan(wanted))
    known = ~np.isnan(wanted)
    good = np.abs(found - wanted)[known] <= absolute + relative * np.abs(wanted[known])
    assert known.any() and good.mean() >= 0.9999, np.nanmax(np.abs(found - wanted))


@pytest.fixture
def files(tmp_path):
    """A scene with holes, a mask, a unit absorption and a sensor's noise."""
    data = radiance()
    data[:, 3, 4] = np.nan
    data[:, 50, :] = 0
    data[5, 60, 2] = np.nan
    mask = np.random.default_rng(1).random((LINES, SAMPLES)) > 0.2
    write_scene(tmp_path / "x.img", data, geotransform=None, epsg=None, options=["INTERLEAVE=BIL"], wavelengths=list(NM))
    write_scene(tmp_path / "mask.img", mask[None].astype("u1"), geotransform=None, epsg=None, dtype="u1")
    write_absorption(tmp_path / "k.csv")
    (tmp_path / "noise.txt").write_text("# wvl a b c rmse\n2000 0.004 0.01 0.0001 0\n2600 0.008 0.02 0.0002 0\n")
    return tmp_path, data, mask


NOISE = np.stack([np.interp(NM[USED], [2000, 2600], ends) for ends in ([0.004, 0.008], [0.01, 0.02], [0.0001, 0.0002])])


@pytest.mark.parametrize("method,words,options", [
    ("mag1c", [], {}),
    ("mag1c", ["-iterations", 0], {"iterations": 0}),
    ("mag1c", ["-iterations", 3, "-no-albedo"], {"iterations": 3, "albedo": False}),
    ("mag1c", ["-no-sparsity", "-shrinkage", 0.001], {"sparsity": False, "shrinkage": 0.001}),
    ("mf", [], {}),
    ("mf", ["-shrinkage", "ledoit-wolf"], {"shrinkage": "ledoit-wolf"}),
    ("lognormal", [], {}),
    ("lognormal", ["-shrinkage", "ledoit-wolf", "-columns-per-group", 3], {"shrinkage": "ledoit-wolf", "columns": 3}),
    ("mag1c", ["-columns-per-group", 4], {"columns": 4}),
    ("mf", ["-columns-per-group", "all"], {"columns": SAMPLES}),
    ("mag1c", ["-mask", "mask.img"], {"mask": True}),
    ("mf", ["-mask", "mask.img", "-columns-per-group", 2], {"mask": True, "columns": 2}),
])
def test_reference(files, method, words, options):
    folder, data, mask = files
    options = dict(options, method=method, mask=mask if "mask" in options else None)
    outputs = "enhancement,uncertainty,sensitivity" + (",albedo" if method == "mag1c" and "-no-albedo" not in words else "")
    words = [folder / w if w == "mask.img" else w for w in words]
    succeed(gas("-method", method, *words, "-output", outputs, "-noise", folder / "noise.txt", "-radiance-scale", 0.5, "-absorption",
                folder / "k.csv", folder / "x.img", folder / "y.tif"))
    wanted = reference(data[USED], noise=NOISE, scale=0.5, **options)
    found = read(folder / "y.tif")
    for band, (relative, absolute) in enumerate([(1e-4, 0.01), (1e-4, 1e-6), (1e-4, 1e-6), (1e-6, 0)][:len(found)]):
        close(found[band], wanted[band], relative, absolute)
