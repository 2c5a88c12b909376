# SPDX-License-Identifier: MIT
"""gdal_hsi_gas, compared with a NumPy reference in double precision, which computes z and its covariance in every
iteration."""

import itertools
import json

import gas_witness
import numpy as np
import pytest
from osgeo import gdal

from conftest import UTM, first_error, read, run, succeed, write_scene

BANDS = 24
NM = np.linspace(2100, 2500, BANDS)
USED = [b for b in range(BANDS) if 2122 <= NM[b] <= 2485]
LINES, SAMPLES = 90, 11


def gas(*args):
    return run("gdal_hsi_gas", *args)


def absorption():
    """Returns the absorption in 1/ppm m at all bands; it is not smooth, as methane's lines are not."""
    rng = np.random.default_rng(3)
    return -1e-5 * (0.2 + rng.random(BANDS) * np.exp(-((NM - 2350) / 60) ** 2))


def radiance(seed=5, lines=LINES, samples=SAMPLES):
    """Returns bands x lines x samples: three surfaces, gains by column, noise, and a plume."""
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
    """x: pixels x bands of valid pixels. Returns enhancement, uncertainty, sensitivity and albedo."""
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
    """Returns the four output bands of a scene, which must consist of the used bands."""
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
    """Makes a scene with holes, a mask, a unit absorption and a sensor's noise."""
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


@pytest.mark.quick
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


# Plumes: a flood fill, and the areas of pixels as squares.


def components(shape, e, threshold, extent, least, eight):
    """Returns lists of (line, sample) from a flood fill, in the order of plumes."""
    left, found = {(int(y), int(x)) for y, x in zip(*np.nonzero(shape >= extent))}, []
    steps = [(dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if (dy, dx) != (0, 0) and (eight or dy == 0 or dx == 0)]
    while left:
        seeds = [left.pop()]
        part = list(seeds)
        while seeds:
            y, x = seeds.pop()
            for one in [(y + dy, x + dx) for dy, dx in steps]:
                if one in left:
                    left.remove(one)
                    seeds.append(one)
                    part.append(one)
        if len(part) >= least and max(shape[p] for p in part) >= threshold:
            found.append(sorted(part))
    return found


def smoothed(e, deviation):
    reach = int(4 * deviation + 0.5)
    known = np.isfinite(e)
    total, share = np.zeros(e.shape), np.zeros(e.shape)
    for dy, dx in itertools.product(range(-reach, reach + 1), repeat=2):
        weight = np.exp(-(dy * dy + dx * dx) / (2 * deviation**2))
        ys, xs = np.arange(e.shape[0])[:, None] + dy, np.arange(e.shape[1])[None] + dx
        inside = (ys >= 0) & (ys < e.shape[0]) & (xs >= 0) & (xs < e.shape[1])
        values = e[np.clip(ys, 0, e.shape[0] - 1), np.clip(xs, 0, e.shape[1] - 1)]
        good = inside & np.isfinite(values)
        total += weight * np.where(good, values, 0)
        share += weight * good
    return np.where(known, total / np.where(share > 0, share, 1), np.nan)


def enhancement(seed=4, lines=70, samples=60):
    rng = np.random.default_rng(seed)
    e = rng.normal(0, 200, (lines, samples))
    for _ in range(12):  # rings, blobs and diagonals
        y, x, r = rng.integers(5, lines - 5), rng.integers(5, samples - 5), rng.uniform(2, 8)
        d = np.hypot(np.arange(lines)[:, None] - y, np.arange(samples)[None] - x)
        e += 900 * ((d < r) & (d > r / 2))
    e[rng.random(e.shape) < 0.03] = np.nan
    e[10, :] = np.nan
    return e.astype(np.float32)


def layer_of(path, name):
    dataset = gdal.OpenEx(str(path), gdal.OF_VECTOR)
    layer = dataset.GetLayerByName(name)
    return [(f.items(), f.GetGeometryRef().Clone()) for f in layer]


@pytest.mark.parametrize("words,threshold,extent,least,eight,deviation", [
    pytest.param([], 500, 500, 5, True, 0, marks=pytest.mark.quick),
    (["-connectivity", 4, "-min-pixels", 1, "-plume-extent", 300], 500, 300, 1, False, 0),
    (["-plume-threshold", 900, "-plume-extent", 350, "-min-pixels", 3, "-length", "fetch"], 900, 350, 3, True, 0),
    (["-plume-threshold", "3s", "-plume-extent", "1s"], None, None, 5, True, 0),
    (["-plume-smooth", 1.2, "-plume-threshold", 400, "-plume-extent", 250], 400, 250, 5, True, 1.2),
])
def test_plumes(tmp_path, words, threshold, extent, least, eight, deviation):
    e = enhancement()
    u = np.abs(np.random.default_rng(8).normal(100, 10, e.shape)).astype(np.float32)
    scene = write_scene(tmp_path / "e.tif", np.stack([e, u]), driver="GTiff", names=["CH4 enhancement", "CH4 uncertainty"],
                        geotransform=(500000, 40, 0, 4480000, 0, -30), epsg=UTM)
    words = [*words, "-wind", 4] + (["-ueff", "log:0.9,0.6"] if not words else [])
    succeed(gas("-method", "none", *words, "-plumes", tmp_path / "p.gpkg", "-plume-map", tmp_path / "m.tif", scene))
    x = e.astype(float)
    if threshold is None:
        middle = np.sort(x[np.isfinite(x)])[(np.isfinite(x).sum() - 1) // 2]
        apart = np.sort(np.abs(x[np.isfinite(x)] - middle).astype(np.float32))
        spread = 1.4826 * float(apart[(len(apart) - 1) // 2])
        threshold, extent = middle + 3 * spread, middle + spread
    parts = components(smoothed(x, deviation) if deviation else x, x, threshold, extent, least, eight)
    area, factor = 1200.0, 1e-3 * 0.01604 / 22.4
    parts.sort(key=lambda p: (-sum(x[q] for q in p) * area, p[0]))
    plumes, origins = layer_of(tmp_path / "p.gpkg", "plumes"), layer_of(tmp_path / "p.gpkg", "origins")
    assert len(plumes) == len(origins) == len(parts) > 1
    numbers = np.zeros(e.shape)
    for k, part in enumerate(parts):
        values = np.array([x[p] for p in part])
        line, sample = part[int(np.argmax(values))]
        fetch = max(np.hypot(40 * (b - sample), 30 * (a - line)) for a, b in part)
        length = fetch if "fetch" in words else np.sqrt(len(part) * area)
        ueff = 0.9 * np.log(4) + 0.6 if "-ueff" in words else 0.34 * 4 + 0.44
        ime = factor * values.sum() * area
        wanted = {"plume": k + 1, "pixels": len(part), "area_m2": len(part) * area, "max_ppm_m": values.max(), "mean_ppm_m": values.mean(),
                  "line": line, "sample": sample, "ime_kg": ime,
                  "ime_sd_kg": factor * area * np.sqrt(sum(float(u[p]) ** 2 for p in part)), "length_m": np.sqrt(len(part) * area),
                  "fetch_m": fetch, "ueff_m_s": ueff, "flux_kg_h": 3600 * ueff * ime / length if length > 0 else None}
        fields, outline = plumes[k]
        assert fields == pytest.approx(wanted, rel=1e-6) and origins[k][0] == fields
        assert outline.IsValid() and outline.GetArea() == pytest.approx(len(part) * area)
        assert (origins[k][1].GetX(), origins[k][1].GetY()) == (500000 + 40 * (sample + 0.5), 4480000 - 30 * (line + 0.5))
        for y, s in part:
            numbers[y, s] = k + 1
    assert np.array_equal(read(tmp_path / "m.tif")[0], numbers)
    burnt = gdal.GetDriverByName("MEM").CreateCopy("", gdal.Open(str(tmp_path / "m.tif")))
    burnt.GetRasterBand(1).Fill(0)
    vectors = gdal.OpenEx(str(tmp_path / "p.gpkg"), gdal.OF_VECTOR)
    gdal.RasterizeLayer(burnt, [1], vectors.GetLayerByName("plumes"), options=["ATTRIBUTE=plume"])
    assert np.array_equal(burnt.ReadAsArray(), numbers)


# Files that contain a unit absorption.


def simulated(concentrations, nm):
    """Returns radiances with lines, and the unit absorption of the scene's bands by definition."""
    rng = np.random.default_rng(7)
    k = -1e-5 * rng.random(nm.size) * (0.2 + np.exp(-((nm - 2350) / 60) ** 2))
    level = 5 + np.sin(nm / 40)
    return np.stack([level * np.exp(k * c) * (1 - 2e-13 * c * c) for c in concentrations])


def slopes(spectra, concentrations, nm, width):
    result = []
    for centre in NM[USED]:
        g = np.exp(-((nm - centre) ** 2) / (2 * (width / (2 * np.sqrt(2 * np.log(2)))) ** 2))
        result.append(np.polyfit(concentrations, np.log(spectra @ g / g.sum()), 1)[0])
    return np.array(result)


def write_table(path, form, spectra, concentrations, nm):
    if form == "csv":
        rows = ["wavelength," + ",".join(str(c) for c in concentrations)]
        rows += [f"{x!r}," + ",".join(repr(float(v)) for v in spectra[:, i]) for i, x in enumerate(nm.tolist())]
        path.write_text("\n".join(rows) + "\n")
    else:
        write_scene(path, spectra.T[:, None, :], dtype="f8", geotransform=None, epsg=None, wavelengths=nm.tolist())
    return path


@pytest.mark.parametrize("form", ["csv", "img"])
@pytest.mark.parametrize("concentrations", [[0, 500, 1000, 2000, 4000, 8000, 16000], [0, 1000, 5000]])
def test_table(files, form, concentrations):
    folder, data, _ = files
    nm = np.arange(2080, 2520, 0.7)
    spectra = simulated(concentrations, nm)
    table = write_table(folder / f"lut.{form}", form, spectra, concentrations, nm)
    words = ["-concentrations", ",".join(map(str, concentrations))] if form == "img" and len(concentrations) == 3 else []
    succeed(gas("-lut", table, *words, "-save-absorption", folder / "used.csv", folder / "x.img", folder / "y.tif"))
    saved = np.genfromtxt(folder / "used.csv", delimiter=",", names=True)
    wanted = slopes(spectra, concentrations, nm, NM[1] - NM[0])
    found = np.array([row[-1] for row in saved])
    assert np.abs(found - wanted).max() <= 1e-9 * np.abs(wanted).max()  # also for small concentrations, in double precision


def test_hdf5_table(files):
    h5py = pytest.importorskip("h5py")
    folder, _, _ = files
    nm = np.arange(2080, 2520, 2.0)
    concentrations = np.array([0] + [1000 * 2**k for k in range(7)])
    base = simulated(concentrations, nm)
    axes = [np.arange(17) * 5.0, np.array([1, 2, 4, 10, 20, 120.0]), np.array([0, 0.5, 1, 2, 3]), np.arange(7.0)]
    rng = np.random.default_rng(2)
    cube = np.einsum("a,b,c,d,ew->abcdew", *[rng.uniform(0.5, 1.5, a.size) for a in axes], base).astype("f4")
    cube *= 1 + 0.2 * rng.random(cube.shape).astype("f4")
    with h5py.File(folder / "lut.h5", "w") as file:
        file["modtran_data"], file["wave"] = cube, nm
    at, mixed = [33.0, 120 - 50.0, 0.7, 1.3], 0
    places = []
    for axis, v in zip(axes, at):
        i = min(int(np.searchsorted(axis, v, side="right")) - 1, axis.size - 2)
        places.append((i, (v - axis[i]) / (axis[i + 1] - axis[i])))
    for bits in itertools.product((0, 1), repeat=4):
        weight = np.prod([p if b else 1 - p for b, (_, p) in zip(bits, places)])
        mixed = mixed + weight * cube[tuple(i + b for b, (i, _) in zip(bits, places))].astype(float)
    words = ["-sza", 33, "-elevation", 0.7, "-sensor-altitude", 70.7]
    succeed(gas("-lut", folder / "lut.h5", *words, "-save-absorption", folder / "used.csv", folder / "x.img", folder / "y.tif"))
    found = np.array([row[-1] for row in np.genfromtxt(folder / "used.csv", delimiter=",", names=True)])
    wanted = slopes(mixed, concentrations, nm, NM[1] - NM[0])
    assert np.abs(found - wanted).max() <= 1e-5 * np.abs(wanted).max()
    result = gas("-lut", folder / "lut.h5", folder / "x.img", folder / "z.tif")
    assert result.code == 1 and "requires -sza" in first_error(result)


def test_numbered_text(files):
    folder, data, _ = files
    (folder / "k.txt").write_text("".join(f"{i + 1} {a!r} {b * 1e5!r}\n" for i, (a, b) in enumerate(zip(NM.tolist(), absorption().tolist()))))
    succeed(gas("-absorption", folder / "k.txt", folder / "x.img", folder / "y.tif"))
    close(read(folder / "y.tif")[0], reference(data[USED])[0], 1e-4, 0.01)


# Results of public implementations.


@pytest.mark.parametrize("name,words", [
    ("mag1c", []),
    ("mag1c_shrunk", ["-iterations", 5, "-shrinkage", gas_witness.SHRINKAGE]),
    ("mag1c_no_albedo", ["-no-albedo"]),
    ("mag1c_no_sparsity", ["-no-sparsity"]),
    ("fastmag1c", ["-shrinkage", gas_witness.SHRINKAGE]),
])
def test_frozen_numbers(tmp_path, name, words):
    write_scene(tmp_path / "x.img", gas_witness.scene(), geotransform=None, epsg=None, wavelengths=list(gas_witness.NM))
    write_absorption(tmp_path / "k.csv", gas_witness.absorption(), gas_witness.NM)
    albedo = ["-output", "enhancement,albedo"] if name == "mag1c" else []
    succeed(gas(*words, *albedo, "-absorption", tmp_path / "k.csv", tmp_path / "x.img", tmp_path / "y.tif"))
    frozen = {key: np.array(value) for key, value in json.loads(gas_witness.NUMBERS.read_text()).items()}
    found = read(tmp_path / "y.tif")
    close(found[0], frozen[name], 1e-4, 0.01)
    assert found[0].max() > 1000
    if albedo:
        close(found[1], frozen["albedo"], 1e-6, 0)


def test_frozen_absorption(tmp_path):
    nm, spectra = gas_witness.table()
    write_table(tmp_path / "lut.img", "img", spectra, gas_witness.CONCENTRATIONS, nm)
    write_scene(tmp_path / "x.img", gas_witness.scene(), geotransform=None, epsg=None, wavelengths=list(gas_witness.NM),
                fwhm=list(gas_witness.FWHM))
    succeed(gas("-lut", tmp_path / "lut.img", "-save-absorption", tmp_path / "used.csv", tmp_path / "x.img", tmp_path / "y.tif"))
    found = np.array([row[-1] for row in np.genfromtxt(tmp_path / "used.csv", delimiter=",", names=True)])
    wanted = np.array(json.loads(gas_witness.NUMBERS.read_text())["absorption"])
    assert np.abs(found - wanted).max() <= 1e-5 * np.abs(wanted).max()


# Statistical properties.


def test_noise_has_deviation_1(tmp_path):
    """Checks enhancement, sensitivity and uncertainty on a scene of one spectrum and noise."""
    k, nm = absorption()[USED], NM[USED]
    rng = np.random.default_rng(11)
    level = 2 + np.sin(nm / 50)[:, None, None]
    noise = np.abs(0.004 * np.sqrt(level + 0.01) + 0.0001)
    write_scene(tmp_path / "x.img", level + noise * rng.normal(size=(nm.size, 4000, 3)), geotransform=None, epsg=None, wavelengths=list(nm))
    write_absorption(tmp_path / "k.csv", k, nm)
    (tmp_path / "noise.txt").write_text("2000 0.004 0.01 0.0001\n2600 0.004 0.01 0.0001\n")
    for method in ("mf", "lognormal"):
        succeed(gas("-method", method, "-output", "enhancement,uncertainty,sensitivity", "-noise", tmp_path / "noise.txt", "-absorption",
                    tmp_path / "k.csv", tmp_path / "x.img", tmp_path / f"{method}.tif"))
        e, u, s = read(tmp_path / f"{method}.tif").astype(float)
        assert np.std(e / s / u, axis=0) == pytest.approx(1, abs=0.03) and u.max() < 1.2 * u.min()


@pytest.mark.parametrize("columns", [1, 4])
def test_mf_is_the_matched_filter_of_detect(files, columns):
    folder, _, _ = files
    words = ["-method", "mf", "-columns-per-group", columns]
    succeed(gas(*words, "-absorption", folder / "k.csv", "-mask", folder / "mask.img", folder / "x.img", folder / "a.tif"))
    succeed(gas("-iterations", 0, "-no-albedo", "-columns-per-group", columns, "-absorption", folder / "k.csv", "-mask", folder / "mask.img",
                folder / "x.img", folder / "cut.tif"))
    succeed(run("gdal_hsi_detect", *words, "-shrinkage", 0, "-b", f"{USED[0] + 1}-{USED[-1] + 1}", "-background-by", "columns", "-target-is-absorption",
                "-target", folder / "k.csv", "-mask", folder / "mask.img", folder / "x.img", folder / "b.tif"))
    a, b = read(folder / "a.tif")[0].astype(float), read(folder / "b.tif")[0].astype(float)
    close(a, b, 1e-4, 0.01)
    close(read(folder / "cut.tif")[0], np.maximum(a, 0), 1e-5, 0.01)


# Equal bits for any division of the scene; flares; plumes of the same run.


def test_tiles(files):
    folder, data, mask = files
    words = ["-absorption", folder / "k.csv", "-columns-per-group", 2, "-mask", folder / "mask.img"]
    bits = []
    for k, more in enumerate([["-threads", 1], ["-threads", 3, "-tile", 4, LINES], ["-memory", "20M"]]):
        succeed(gas(*words, *more, folder / "x.img", folder / f"y{k}.tif"))
        bits.append(read(folder / f"y{k}.tif").tobytes())
    write_scene(folder / "bsq.img", data, geotransform=None, epsg=None, options=["INTERLEAVE=BSQ"], wavelengths=list(NM))
    succeed(gas(*words, folder / "bsq.img", folder / "y3.tif"))
    assert set(bits) == {read(folder / "y3.tif").tobytes()}
    succeed(gas(*words[:-2], "-srcwin", 3, 0, 7, LINES, folder / "x.img", folder / "w.tif"))
    close(read(folder / "w.tif")[0], reference(data[USED][:, :, 3:10], columns=2, first=3)[0], 1e-4, 0.01)


def test_flares(files):
    folder, data, mask = files
    band = int(np.argmin(np.abs(NM - 2389.5)))
    data[:, 40, 8] *= 4
    write_scene(folder / "x.img", data, geotransform=None, epsg=None, options=["INTERLEAVE=BIL"], wavelengths=list(NM))
    limit = float(np.sort(data[band][np.isfinite(data[band])])[-4])
    counts = np.ones((LINES, SAMPLES), bool)
    for y, x in zip(*np.nonzero(np.nan_to_num(data[band]) > limit * 0.999)):
        counts[max(0, y - 2):y + 3, max(0, x - 2):x + 3] = False
    succeed(gas("-absorption", folder / "k.csv", "-flare-threshold", limit * 0.999 * 0.1, "-radiance-scale", 0.1, "-plume-map", folder / "m.tif",
                "-pixel-size", 10, 20, folder / "x.img", folder / "y.tif"))
    found, plumes = read(folder / "y.tif")[0], read(folder / "m.tif")[0]
    close(found, reference(data[USED], mask=counts)[0], 1e-4, 0.01)
    parts = components(np.where(counts, found, np.nan), found, 500, 500, 5, True)
    assert len(parts) and np.array_equal(plumes > 0, np.isin(np.arange(plumes.size).reshape(plumes.shape),
                                                           [y * SAMPLES + x for part in parts for y, x in part]))


def test_plumes_again(files):
    """-method none on dst finds the plumes that the filter's run found."""
    folder, _, _ = files
    words = ["-wind", 3, "-pixel-size", 60, 60]
    succeed(gas("-absorption", folder / "k.csv", "-output", "enhancement,uncertainty", "-noise", folder / "noise.txt", *words,
                "-plumes", folder / "a.gpkg", folder / "x.img", folder / "y.tif"))
    succeed(gas("-method", "none", *words, "-plumes", folder / "b.gpkg", folder / "y.tif"))
    a, b = ([f for f, _ in layer_of(folder / name, "plumes")] for name in ("a.gpkg", "b.gpkg"))
    assert a == b and len(a) > 0 and a[0]["ime_sd_kg"] > 0
    result = succeed(gas("-method", "none", *words, "-plumes", folder / "c.csv", folder / "y.tif"))
    head, first = (folder / "c.csv").read_text().splitlines()[:2]
    assert head.startswith("WKT,plume,") and first.startswith('"MULTIPOLYGON (((') and "origins of the plumes are not written" in result.err


def test_geographic_areas(tmp_path):
    e = np.zeros((1, 40, 30), np.float32)
    e[0, 10:14, 5:9] = 1000
    scene = write_scene(tmp_path / "e.tif", e, driver="GTiff", geotransform=(10, 0.001, 0, 48, 0, -0.0005), epsg=4326)
    succeed(gas("-method", "none", "-plumes", tmp_path / "p.gpkg", scene))
    fields, _ = layer_of(tmp_path / "p.gpkg", "plumes")[0]
    a, f = 6378137.0, 1 / 298.257223563
    area = 0
    for line in range(10, 14):
        latitude = np.radians(48 - 0.0005 * (line + 0.5))
        w = 1 - f * (2 - f) * np.sin(latitude) ** 2
        area += 4 * 0.001 * 0.0005 * (a / np.sqrt(w)) * (a * (1 - f) ** 2 / w**1.5) * np.cos(latitude) * (np.pi / 180) ** 2
    assert fields["area_m2"] == pytest.approx(area, rel=1e-9) and fields["ime_sd_kg"] is None and fields["flux_kg_h"] is None


# Bad input, and unusual input that is valid.


@pytest.mark.parametrize("name,unit,warns", [("x_rfl.img", "", True), ("Reflectance.img", "", True), ("x.img", "Reflectance", True),
                                             ("L2A.img", "", True), ("rdn.img", "uW/cm2/sr/nm", False)])
def test_reflectance(files, name, unit, warns):
    folder, data, _ = files
    write_scene(folder / name, data, geotransform=None, epsg=None, wavelengths=list(NM))
    if unit:
        with open((folder / name).with_suffix(".hdr"), "a") as header:
            header.write(f"data units = {unit}\n")
    result = succeed(gas("-absorption", folder / "k.csv", folder / name, folder / "y.tif"))
    assert ("looks like reflectance" in result.err) == warns


@pytest.mark.parametrize("code,words,message", [
    (2, ["x.img", "y.tif"], "the unit absorption is missing"),
    (2, ["-absorption", "k.csv", "-lut", "k.csv", "x.img", "y.tif"], "-lut"),
    (2, ["-absorption", "k.csv", "x.img"], "dst is missing"),
    (2, ["-absorption", "k.csv", "-output", "uncertainty", "x.img", "y.tif"], "-output uncertainty requires -noise"),
    (2, ["-absorption", "k.csv", "-noise", "noise.txt", "x.img", "y.tif"], "-noise requires -output uncertainty"),
    (2, ["-absorption", "k.csv", "-output", "enhancement,x", "x.img", "y.tif"], "is not a list of"),
    (2, ["-absorption", "k.csv", "-output", "enhancement,enhancement", "x.img", "y.tif"], "is not a list of"),
    (2, ["-absorption", "k.csv", "-shrinkage", "0,5", "x.img", "y.tif"], "-shrinkage: '0,5' is not"),
    (2, ["-absorption", "k.csv", "-plumes", "p.gpkg", "-wind", 3, "-ueff", "log:1,2,3", "x.img", "y.tif"], "-ueff: 'log:1,2,3' is not"),
    (2, ["-method", "none", "-plumes", "p.gpkg", "-device", "cpu", "x.img"], "-device cannot be used with -method none"),
    (2, ["-absorption", "k.csv", "-method", "mf", "-iterations", 3, "x.img", "y.tif"], "-iterations requires -method mag1c"),
    (2, ["-absorption", "k.csv", "-shrinkage", "ledoit-wolf", "x.img", "y.tif"], "cannot be used with -method mag1c"),
    (2, ["-absorption", "k.csv", "-shrinkage", 1.5, "x.img", "y.tif"], "-shrinkage: 1.5 is out of range (0 to 1)"),
    (2, ["-absorption", "k.csv", "-columns-per-group", 0, "x.img", "y.tif"], "-columns-per-group: 0 is out of range"),
    (2, ["-absorption", "k.csv", "-columns-per-group", "two", "x.img", "y.tif"], "'two' is not a whole number"),
    (2, ["-absorption", "k.csv", "-sza", 30, "x.img", "y.tif"], "-sza requires -lut"),
    (2, ["-absorption", "k.csv", "-wind", 3, "x.img", "y.tif"], "-wind requires -plumes or -plume-map"),
    (2, ["-absorption", "k.csv", "-gas", "co2", "-plumes", "p.gpkg", "x.img", "y.tif"], "require -plume-threshold"),
    (2, ["-absorption", "k.csv", "-plumes", "p.gpkg", "-plume-extent", 600, "x.img", "y.tif"], "-plume-extent: 600 is above"),
    (2, ["-absorption", "k.csv", "-plumes", "p.gpkg", "-wind", 3, "-ueff", "cubic:1,2", "x.img", "y.tif"], "-ueff: 'cubic:1,2' is not"),
    (2, ["-method", "none", "x.img"], "-method none requires -plumes or -plume-map"),
    (2, ["-method", "none", "-plumes", "p.gpkg", "x.img", "y.tif"], "dst cannot be used with -method none"),
    (2, ["-method", "none", "-plumes", "p.gpkg", "-iterations", 3, "x.img"], "-iterations "),
    (1, ["-method", "none", "-plumes", "p.gpkg", "x.img"], "the area of its pixels is unknown"),
    (1, ["-absorption", "k.csv", "-plumes", "p.gpkg", "x.img", "y.tif"], "the area of its pixels is unknown"),
    (1, ["-absorption", "k.csv", "-range", "400-900nm", "x.img", "y.tif"], "in the window of CH4"),
    (1, ["-absorption", "k.csv", "-range", "2122-2485nm", "-srcwin", 0, 0, SAMPLES, 15, "x.img", "y.tif"], "no group has values"),
    (1, ["-absorption", "other.csv", "x.img", "y.tif"], "other.csv"),
    (1, ["-absorption", "k.csv", "-library-scale", -1, "x.img", "y.tif"], "no negative value"),
    (1, ["-absorption", "two.csv", "x.img", "y.tif"], "has 2 spectra"),
    (1, ["-lut", "short.csv", "x.img", "y.tif"], "of the scene in"),
    (1, ["-lut", "minus.csv", "x.img", "y.tif"], "has a negative concentration, -100"),
    (2, ["-lut", "short.csv", "-sza", 30, "x.img", "y.tif"], "-sza cannot be used with -lut"),
    (2, ["-lut", "short.csv", "-concentrations", "0,1", "x.img", "y.tif"], "-concentrations cannot be used with -lut"),
    (2, ["-absorption", "k.csv", "-save-absorption", "k.txt", "x.img", "y.tif"], "spectra are written as .sli"),
    (1, ["-lut", "noise.txt", "x.img", "y.tif"], "noise.txt"),
    (1, ["-absorption", "k.csv", "plain.img", "y.tif"], "has no wavelengths"),
    (1, ["-absorption", "k.csv", "empty.img", "y.tif"], "no pixel is valid"),
    (1, ["-absorption", "k.csv", "-mask", "nothing.img", "x.img", "y.tif"], "nothing.img"),
    (1, ["-absorption", "k.csv", "-output", "uncertainty", "-noise", "k.csv", "x.img", "y.tif"], "k.csv, line 1"),
    (2, ["-absorption", "k.csv", "-of", "VRT", "x.img", "y.vrt"], "-of VRT"),
])
def test_bad_input(files, code, words, message):
    folder, data, _ = files
    write_absorption(folder / "other.csv", nm=NM - 1500)
    (folder / "two.csv").write_text("wavelength,a,b\n" + "".join(f"{x},-1e-6,-1e-6\n" for x in NM))
    write_table(folder / "short.csv", "csv", np.ones((2, 3)), [0, 1000], np.array([400.0, 500, 600]))
    write_table(folder / "minus.csv", "csv", np.ones((2, 3)), [-100, 1000], np.array([2200.0, 2300, 2400]))
    write_scene(folder / "plain.img", data, geotransform=None, epsg=None)
    write_scene(folder / "empty.img", data * np.nan, geotransform=None, epsg=None, wavelengths=list(NM))
    write_scene(folder / "nothing.img", np.zeros((1, LINES, SAMPLES)), dtype="u1", geotransform=None, epsg=None)
    files_before = sorted(p.name for p in folder.iterdir())
    result = gas(*[folder / w if "." in str(w) and not str(w)[0].isdigit() and ":" not in str(w) else w for w in words])
    error = next(line for line in result.err.splitlines() if line.startswith("ERROR: "))
    assert result.code == code and message in error, result.err
    assert sorted(p.name for p in folder.iterdir()) == files_before
