# SPDX-License-Identifier: MIT
"""gdal_hsi_regression_train and gdal_hsi_regression_predict, compared with NumPy in double precision and scikit-learn:
coefficients, folds, nested estimates, maps, the domain; features, rasters and tables; trait models of HyTools; refused
input."""
import csv
import json
import pathlib
import xml.etree.ElementTree

import numpy as np
import pytest

from conftest import first_error, read, run, succeed, write_scene

BANDS, LINES, SAMPLES = 24, 30, 40
NM = [450.0 + 20 * b for b in range(BANDS)]
RNG = np.random.default_rng(5)
VALUE = 1 + 3 * RNG.random((LINES, SAMPLES))
# Two absorptions, one of the value and one of another quantity, under varying brightness.
SHAPE = np.array([np.exp(-((nm - 650) / 60) ** 2) for nm in NM]), np.array([np.exp(-((nm - 800) / 40) ** 2) for nm in NM])
BRIGHT = 0.3 + 0.4 * RNG.random((LINES, SAMPLES))
OTHER = RNG.random((LINES, SAMPLES))
SCENE = (BRIGHT * np.exp(-0.2 * VALUE * SHAPE[0][:, None, None] - 0.5 * OTHER * SHAPE[1][:, None, None]) +
         0.002 * RNG.standard_normal((BANDS, LINES, SAMPLES))).astype(np.float32)


def train(*args):
    return run("gdal_hsi_regression_train", *args)


def predict(*args):
    return run("gdal_hsi_regression_predict", *args)


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_scene("scene.img", SCENE, wavelengths=NM)
    rows = [(y, x) for y in range(0, LINES, 3) for x in range(0, SAMPLES, 5)]
    with open("table.csv", "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["plot", "trait", *NM])
        for n, (y, x) in enumerate(rows):
            out.writerow([f"p{n // 2}", repr(float(VALUE[y, x])), *(repr(float(v)) for v in SCENE[:, y, x])])
    with open("points.csv", "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["sample", "line", "trait", "plot"])
        for n, (y, x) in enumerate(rows):
            out.writerow([x, y, repr(float(VALUE[y, x])), n // 2])
    return rows


def samples(rows):
    return np.array([SCENE[:, y, x] for y, x in rows], float), np.array([VALUE[y, x] for y, x in rows])


# The reference
# ---------------------------------------------------------------------------------------------------------


def philox(counter, key):
    c, k = list(counter), [key & 0xFFFFFFFF, key >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & 0xFFFFFFFF, (a >> 32) ^ c[3] ^ k[1], a & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c[0]


def folds_of(group, folds, seed=1):
    group = np.asarray(group)
    count = group.max() + 1
    filled, fold = [0] * min(folds, count), {}
    for g in sorted(range(count), key=lambda g: (philox((g, 4 << 24, 0, 0), seed), g)):
        least = filled.index(min(filled))
        filled[least] += int((group == g).sum())
        fold[g] = least
    return np.array([fold[g] for g in group])


def plsr(x, y, components):
    """Computes the least squares over the Krylov space, from an orthonormal basis."""
    mx, my = x.mean(0), y.mean()
    xc, yc = x - mx, y - my
    basis = []
    v = xc.T @ yc
    for _ in range(components):
        for _ in range(2):
            for w in basis:
                v = v - (w @ v) * w
        basis.append(v / np.linalg.norm(v))
        v = xc.T @ (xc @ basis[-1])
    w = np.array(basis).T
    b = w @ np.linalg.lstsq(xc @ w, yc, rcond=None)[0]
    return b, my - mx @ b


def ridge(x, y, t):
    mx, my = x.mean(0), y.mean()
    xc, yc = x - mx, y - my
    gram = xc.T @ xc
    b = np.linalg.solve(gram + t * np.trace(gram) / x.shape[1] * np.eye(x.shape[1]), xc.T @ yc)
    return b, my - mx @ b


def choice_of(errors):
    """[sample][candidate], simplest first."""
    mean = errors.mean(0)
    best = mean.argmin()
    return int(np.flatnonzero(mean <= mean[best] + errors[:, best].std(ddof=1) / np.sqrt(len(errors)))[0])


def nested(x, y, fold, candidates, fit):
    """Returns held-out estimates, and the choice over all folds."""
    def estimates(out, test):
        keep = ~np.isin(fold, out)
        return np.array([x[test] @ b + a for b, a in (fit(x[keep], y[keep], c) for c in candidates)]).T
    k_all = range(fold.max() + 1)
    single = {k: estimates([k], fold == k) for k in k_all}
    held_out = np.empty(len(y))
    for k in k_all:
        errors = np.concatenate([(estimates([k, l], fold == l) - y[fold == l, None]) ** 2 for l in k_all if l != k])
        held_out[fold == k] = single[k][:, choice_of(errors)]
    return held_out, choice_of(np.concatenate([(single[k] - y[fold == k, None]) ** 2 for k in k_all]))


def metrics(y, e):
    rmse = np.sqrt(np.mean((e - y) ** 2))
    return {"r2": 1 - ((e - y) ** 2).sum() / ((y - y.mean()) ** 2).sum(), "rmse": rmse, "nrmse_percent": 100 * rmse / np.ptp(y),
            "bias": np.mean(e - y), "rpd": y.std(ddof=1) / rmse}


def columns(path):
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: np.array([float(r[name]) if r[name] else np.nan for r in rows]) for name in rows[0]}


def model_of(path="model.json"):
    with open(path) as file:
        return json.load(file)


def snv(x):
    return (x - x.mean(-1, keepdims=True)) / x.std(-1, ddof=1, keepdims=True)


# Linear models
# ---------------------------------------------------------------------------------------------------------


@pytest.mark.quick
@pytest.mark.parametrize("method", ["plsr", "ridge"])
def test_choice_nested_estimates_and_members_are_the_references(files, method):
    x, y = samples(files)
    group = np.arange(len(y)) // 2
    few = ("-max-components", "8") if method == "plsr" else ()
    succeed(train("-table", "table.csv", "-field", "trait", "-group", "plot", "-method", method, "-cv", "5", "-members", "3", *few,
                  "-transform", "snv", "-predictions", "held.csv", "model.json"))
    m, held = model_of(), columns("held.csv")
    fold = folds_of(group, 5)
    assert (held["fold"] == fold + 1).all() and (held["group"] == group + 1).all()
    candidates = list(range(1, 9)) if method == "plsr" else [10.0 ** (k / 2) for k in range(4, -21, -1)]
    fit = plsr if method == "plsr" else ridge
    estimate, choice = nested(snv(x), y, fold, candidates, fit)
    assert np.abs(held["estimate"] - estimate).max() < 1e-6 * np.ptp(y)
    assert m["linear"]["components" if method == "plsr" else "lambda"] == pytest.approx(candidates[choice])
    for name, value in metrics(y, estimate).items():
        assert m["metrics"][name] == pytest.approx(value, rel=1e-5, abs=1e-7), name
    for d in range(3):
        words = sorted(range(group.max() + 1), key=lambda g: (philox((g, 5 << 24, d, 0), 1), g))
        kept = np.isin(group, words[:int(np.ceil(0.8 * len(words)))])
        b, a = fit(snv(x)[kept], y[kept], candidates[choice])
        assert np.abs(np.array(m["linear"]["coefficients"][d]) - b).max() < 1e-7 * np.abs(b).max()
        assert m["linear"]["intercepts"][d] == pytest.approx(a, rel=1e-7)


def test_folds_and_members_are_those_of_the_page():
    assert (folds_of(range(10), 3) + 1).tolist() == [1, 2, 3, 3, 3, 1, 2, 2, 1, 1]
    for d, out in ((0, [2, 5]), (1, [1, 3])):
        words = sorted(range(10), key=lambda g: (philox((g, 5 << 24, d, 0), 1), g))
        assert sorted(words[8:]) == out


def domain_of(pixels, spread=None):
    spread = np.ones(pixels.shape[1]) if spread is None else spread
    z = (pixels - pixels.mean(0)) / spread
    values, vectors = np.linalg.eigh(np.cov(z.T))
    values, vectors = values[::-1], vectors[:, ::-1]
    count = min(20, int(np.searchsorted(np.cumsum(values) / values.sum(), 0.999) + 1))
    def distances(p):
        d = (p - pixels.mean(0)) / spread
        t = d @ vectors[:, :count]
        return (t ** 2 / values[:count]).sum(1), (d ** 2).sum(1) - (t ** 2).sum(1)
    limits = [v.max() for v in distances(pixels)]
    return lambda p: np.any([v > limit * (1 + 1e-6) for v, limit in zip(distances(p), limits)], axis=0)


@pytest.mark.quick
def test_map_has_estimates_deviations_and_the_domain(files):
    scene = SCENE.copy()
    scene[:, 0, 0] = 0
    scene[3, 1, 1] = np.nan
    scene[:, 5, 5] = 0.5
    write_scene("other.img", scene, wavelengths=NM)
    succeed(train("-members", "7", "-components", "4", "scene.img", "points.csv", "model.json", "-field", "trait"))
    succeed(predict("-report", "report.json", "other.img", "model.json", "map.tif"))
    m, got = model_of(), read("map.tif").astype(float)
    p = scene.reshape(BANDS, -1).T.astype(float)
    each = p @ np.array(m["linear"]["coefficients"]).T + m["linear"]["intercepts"]
    x, y = samples(files)
    valid = np.isfinite(p).all(1) & (p != 0).any(1)
    outside = 2 * domain_of(x)(np.nan_to_num(p)) + ((each.mean(1) < y.min()) | (each.mean(1) > y.max()))
    for band, expected in zip(got.reshape(3, -1), (each.mean(1), each.std(1, ddof=1), outside)):
        assert np.abs(band - expected)[valid].max() < 1e-5 * np.ptp(y)
        assert not np.isfinite(band[~valid]).any() or (band[~valid] == band[0]).all()
    assert outside[5 * SAMPLES + 5] >= 2
    assert json.loads(pathlib.Path("report.json").read_text())["outside"][0]["outside"] == (outside > 0)[valid].sum()
    for options in (("-tile", "7", "5", "-threads", "1"), ("-threads", "2")):
        succeed(predict(*options, "-overwrite", "other.img", "model.json", "again.tif"))
        assert np.array_equal(read("again.tif"), read("map.tif"), equal_nan=True)


@pytest.mark.parametrize("method", ["plsr", "ridge", "gp", "svr"])
def test_scikit_learn_estimates_the_same(files, method):
    pytest.importorskip("sklearn")
    from sklearn.cross_decomposition import PLSRegression
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    from sklearn.linear_model import Ridge
    from sklearn.svm import SVR
    x, y = samples(files)
    options = {"plsr": ("-components", "5", "-members", "0", "-scale"), "ridge": ("-lambda", "0.001", "-members", "0"),
               "gp": (), "svr": ("-C", "8", "-gamma", "0.125")}[method]
    succeed(train("-table", "table.csv", "-field", "trait", "-group", "plot", "-method", method, *options, "model.json"))
    succeed(predict("scene.img", "model.json", "map.tif"))
    p, m = SCENE.reshape(BANDS, -1).T.astype(float), model_of()
    tolerance, deviation = 1e-5 * np.ptp(y), None
    if method == "plsr":
        expected = PLSRegression(5).fit(x, y).predict(p).ravel()
    elif method == "ridge":
        expected = Ridge(0.001 * ((x - x.mean(0)) ** 2).sum() / BANDS).fit(x, y).predict(p)
    elif method == "gp":
        z, s = (x - x.mean(0)) / x.std(0, ddof=1), (y - y.mean()) / y.std(ddof=1)
        gp = m["gp"]
        kernel = RBF(gp["length"], "fixed") + WhiteKernel(gp["noise"], "fixed")
        fitted = GaussianProcessRegressor(kernel, alpha=0, optimizer=None).fit(z, s)
        expected, deviation = fitted.predict((p - x.mean(0)) / x.std(0, ddof=1), return_std=True)
        expected = expected * y.std(ddof=1) + y.mean()
        deviation = deviation * y.std(ddof=1) * np.sqrt(gp["variance"])
    else:
        low, span = x.min(0), np.ptp(x, axis=0)
        fitted = SVR(C=8, gamma=0.125, epsilon=0.1).fit((x - low) / span, (y - y.mean()) / y.std(ddof=1))
        expected = fitted.predict((p - low) / span) * y.std(ddof=1) + y.mean()
        tolerance = 4e-3 * np.ptp(y)
    got = read("map.tif").reshape(3, -1)
    assert np.abs(got[0] - expected).max() < tolerance
    if deviation is not None:
        assert np.abs(got[1] - deviation).max() < tolerance


@pytest.mark.parametrize("components", [1, 4, 9])
def test_ikpls_has_the_same_coefficients(files, components):
    ikpls = pytest.importorskip("ikpls.numpy")
    x, y = samples(files)
    succeed(train("-table", "table.csv", "-field", "trait", "-components", components, "-members", "0", "model.json"))
    b = ikpls.PLS(algorithm=1, center_X=True, center_Y=True, scale_X=False, scale_Y=False).fit(x, y[:, None], components).B[components - 1].ravel()
    assert np.abs(np.array(model_of()["linear"]["coefficients"][0]) - b).max() < 1e-8 * np.abs(b).max()


def test_gaussian_process_has_the_greatest_likelihood_of_its_grid(files):
    succeed(train("-table", "table.csv", "-field", "trait", "-method", "gp", "-predictions", "held.csv", "model.json"))
    x, y = samples(files)
    z, s, n = (x - x.mean(0)) / x.std(0, ddof=1), (y - y.mean()) / y.std(ddof=1), len(y)
    d2 = ((z[:, None] - z[None]) ** 2).sum(-1)
    median = np.median(np.sqrt(d2[np.triu_indices(n, 1)]))
    best = None
    for k in range(-4, 9):
        for q in range(-12, 3):
            kernel = np.exp(-d2 / (2 * (2 ** (k / 2) * median) ** 2)) + 10.0 ** (q / 2) * np.eye(n)
            s2 = s @ np.linalg.solve(kernel, s) / n
            likelihood = -(n * np.log(s2) + np.linalg.slogdet(kernel)[1]) / 2
            if best is None or likelihood > best[0]:
                best = likelihood, 2 ** (k / 2) * median, 10.0 ** (q / 2), s2
    got = model_of()["gp"]
    assert (got["length"], got["noise"], got["variance"]) == pytest.approx(best[1:], rel=1e-8)
    assert np.isfinite(columns("held.csv")["deviation"]).all()


@pytest.mark.parametrize("window, derivative", [(3, 1), (7, 1), (5, 2), (7, 2)])
def test_derivatives_are_those_of_scipy(files, window, derivative):
    signal = pytest.importorskip("scipy.signal")
    succeed(train("-table", "table.csv", "-field", "trait", "-components", "3", "-members", "0", "-transform", f"d{derivative}:{window}",
                  "model.json"))
    x, y = samples(files)
    d = signal.savgol_filter(x, window, 2, deriv=derivative, delta=20.0)
    b, a = plsr(d, y, 3)
    m = model_of()["linear"]
    assert np.abs(np.array(m["coefficients"][0]) - b).max() < 1e-7 * np.abs(b).max()


# Sources of samples
# ---------------------------------------------------------------------------------------------------------


def test_table_points_and_raster_give_one_model(files):
    values = np.full((1, LINES, SAMPLES), -9999, np.float32)
    for y, x in files:
        values[0, y, x] = VALUE[y, x]
    write_scene("values.img", values, nodata=-9999)
    succeed(train("-table", "table.csv", "-field", "trait", "-members", "0", "table.json"))
    succeed(train("-field", "trait", "-members", "0", "scene.img", "points.csv", "points.json"))
    succeed(train("-members", "0", "scene.img", "values.img", "raster.json"))
    table, points, raster = (model_of(n)["linear"] for n in ("table.json", "points.json", "raster.json"))
    assert np.allclose(table["coefficients"], points["coefficients"], rtol=1e-9)
    assert raster["components"] == points["components"]
    assert np.allclose(raster["coefficients"], points["coefficients"], rtol=1e-5, atol=1e-5)


def test_features_are_means_of_their_pixels_and_overlap():
    features = []
    for k, (x0, y0) in enumerate([(0, 0), (1, 1), (10, 0), (20, 0), (30, 0), (0, 10), (10, 10), (20, 10), (30, 10), (0, 20), (10, 20)]):
        ring = [[x0, y0], [x0 + 3, y0], [x0 + 3, y0 + 3], [x0, y0 + 3], [x0, y0]]
        features.append({"type": "Feature", "properties": {"trait": k * 1.5 - 3}, "geometry": {"type": "Polygon", "coordinates": [ring]}})
    with open("plots.geojson", "w") as file:
        json.dump({"type": "FeatureCollection", "features": features}, file)
    succeed(train("-components", "2", "-members", "0", "-cv", "4", "-predictions", "held.csv", "-pixel-coordinates", "scene.img", "plots.geojson",
                  "model.json"))
    boxes = [f["geometry"]["coordinates"][0][0] for f in features]
    x = np.array([SCENE[:, y:y + 3, x:x + 3].reshape(BANDS, -1).mean(1, dtype=float) for x, y in boxes])
    b, a = plsr(x, np.arange(11) * 1.5 - 3, 2)
    m = model_of()
    assert np.allclose(m["linear"]["coefficients"][0], b, rtol=1e-6)
    assert columns("held.csv")["group"].tolist() == [1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]  # the first two share pixels
    assert (m["values"]["lowest"], m["values"]["highest"]) == (-3, 12)
    succeed(predict("-reference", "plots.geojson", "-pixel-coordinates", "-predictions", "seen.csv", "scene.img", "model.json"))
    assert np.abs(columns("seen.csv")["estimate"] - (x @ b + a)).max() < 1e-5


def test_spectra_of_values_are_the_table_that_training_reads(files):
    succeed(run("gdal_hsi_spectra", "-kind", "every", "-field", "trait", "scene.img", "points.csv", "spectra.csv"))
    succeed(train("-table", "spectra.csv", "-field", "trait", "-group", "group", "-members", "0", "a.json"))
    succeed(train("-field", "trait", "-members", "0", "scene.img", "points.csv", "b.json"))
    assert np.allclose(model_of("a.json")["linear"]["coefficients"], model_of("b.json")["linear"]["coefficients"], rtol=1e-9)
    succeed(run("gdal_hsi_spectra", "-kind", "every", "-field", "plot", "scene.img", "points.csv", "classes.csv"))
    assert open("classes.csv").readline().startswith("band,")


def test_a_field_that_is_named_like_a_wavelength_is_no_band():
    written = open("table.csv").read().replace("trait", "2019", 1)
    open("table.csv", "w").write(written)
    succeed(train("-table", "table.csv", "-field", "2019", "-components", "3", "-members", "0", "model.json"))
    assert model_of()["features"]["wavelengths_nm"] == NM


def test_several_models_one_read_and_a_virtual_scene(files):
    succeed(train("-field", "trait", "-members", "4", "scene.img", "points.csv", "a.json"))
    succeed(train("-field", "trait", "-method", "gp", "-transform", "snv", "scene.img", "points.csv", "b.json"))
    succeed(predict("-apply", "a.json", "-apply", "b.json", "scene.img", "both.tif"))
    succeed(predict("scene.img", "b.json", "b.tif"))
    assert np.array_equal(read("both.tif")[3:], read("b.tif"), equal_nan=True)
    succeed(predict("scene.img", "b.json", "b.hsi"))
    assert first_error(predict("scene.img", "b.json", "b.vrt")).startswith("dst: a VRT has no pixel function")


def test_trait_model_of_hytools(files):
    succeed(train("-field", "trait", "-members", "5", "-transform", "vector,log", "-hytools", "trait.json", "scene.img", "points.csv",
                  "model.json"))
    trait = model_of("trait.json")
    p = SCENE.reshape(BANDS, -1).T.astype(float)
    p = np.log(1 / (p / np.linalg.norm(p, axis=1, keepdims=True)))
    each = p @ np.array(trait["model"]["coefficients"]).T + trait["model"]["intercepts"]
    succeed(predict("scene.img", "trait.json", "map.tif"))
    got = read("map.tif").reshape(3, -1)
    assert np.abs(got[0] - each.mean(1)).max() < 1e-5 and np.abs(got[1] - each.std(1, ddof=1)).max() < 1e-5
    inside = (each.mean(1) >= trait["model_diagnostics"]["min"]) & (each.mean(1) <= trait["model_diagnostics"]["max"])
    assert np.mean((got[2] == 0) == inside) > 0.998 and set(np.unique(got[2])) <= {0, 1}


# Plots
# ---------------------------------------------------------------------------------------------------------


def place(values, held):
    """Returns the position of values on the axes of the plot, in pixels from the corner of the axes."""
    both = np.concatenate([held["value"], held["estimate"]])
    margin = 0.05 * np.ptp(both)
    return 720 * (values - both.min() + margin) / (np.ptp(both) + 2 * margin)


@pytest.mark.parametrize("tool", [train, predict])
def test_scatter_plot_shows_the_estimates(files, tool):
    written = open("table.csv").read().replace("trait", "LMA <g/m2> (g/m2)", 1)
    open("table.csv", "w").write(written)
    succeed(train("-table", "table.csv", "-field", "LMA <g/m2> (g/m2)", "-members", "0", "-predictions", "held.csv", "-scatter", "held.svg", "model.json"))
    if tool is predict:
        for name in ("held.svg", "held.png"):
            succeed(predict("-reference", "points.csv", "-field", "trait", "-overwrite", "-predictions", "held.csv", "-scatter", name, "scene.img", "model.json"))
    else:
        succeed(train("-table", "table.csv", "-field", "LMA <g/m2> (g/m2)", "-members", "0", "-overwrite", "-scatter", "held.png", "model.json"))
    held = columns("held.csv")
    x, y = 120 + place(held["value"], held), 780 - place(held["estimate"], held)
    root = xml.etree.ElementTree.parse("held.svg").getroot()
    name = "{http://www.w3.org/2000/svg}"
    discs = np.array([[float(c.get("cx")), float(c.get("cy"))] for c in root.findall(name + "circle")])
    assert np.abs(discs - np.array([x, y]).T).max() < 0.011
    texts = [t.text for t in root.findall(name + "text")]
    assert f"measured LMA <g/m2> (g/m2)" in texts and f"estimated LMA <g/m2> (g/m2)" in texts
    expected = metrics(held["value"], held["estimate"])
    assert f"n = {len(x)}" in texts and f"R2 = {expected['r2']:.3f}" in texts and f"RMSE = {expected['rmse']:.4g}" in texts
    picture = read("held.png")
    assert picture.shape == (3, 900, 900) and model_of()["values"]["unit"] == "g/m2"
    blue = (picture == np.array([0, 85, 170])[:, None, None]).all(0)
    inside = np.zeros((900, 900), bool)
    for line in range(900):
        inside[line] = (np.hypot(np.arange(900) - x[:, None], line - y[:, None]) <= 3).any(0)
    assert (blue == inside).mean() > 0.9999 and blue.sum() > 1000


@pytest.mark.parametrize("factor", [10000, 100, 0.01])
@pytest.mark.parametrize("steps, code", [((), 1), (("-transform", "snv"), 0)])
def test_values_of_another_scale(factor, steps, code):
    succeed(train("-field", "trait", "-members", "0", *steps, "scene.img", "points.csv", "model.json"))
    succeed(predict("scene.img", "model.json", "map.tif"))
    write_scene("other.img", (SCENE * factor).astype(np.float32), wavelengths=NM)
    result = predict("other.img", "model.json", "other.tif")
    assert result.code == code
    if code == 0:  # snv accepts any scale
        assert np.abs(read("other.tif") - read("map.tif"))[0].max() < 1e-4
    else:
        assert "are outside the training range of 'model.json'" in first_error(result) and "gdal_edit.py -scale" in result.err
    result = predict("-reference", "points.csv", "-field", "trait", "other.img", "model.json")
    assert result.code == code and (code == 0 or "outside the training range" in first_error(result)), result.err


# Refused input
# ---------------------------------------------------------------------------------------------------------

POINTS = ("scene.img", "points.csv", "model.json")


@pytest.mark.parametrize("args, code, words", [
    (("-field", "nothing", *POINTS), 1, "has no field 'nothing'"),
    (POINTS, 1, "several numeric fields"),
    (("-table", "table.csv", "-field", "plot", "model.json"), 1, "has a value that is not a number"),
    (("-table", "table.csv", "-field", "nothing", "model.json"), 1, "no column 'nothing'"),
    (("-field", "trait", "-components", "90", *POINTS), 1, "-components: 90 is more than"),
    (("-field", "trait", "-block", "100", *POINTS), 1, "all samples are in one group"),
    (("-field", "trait", "-transform", "d1:4", *POINTS), 2, "needs an odd window"),
    (("-field", "trait", "-transform", "d1:1", *POINTS), 2, "needs an odd window"),
    (("-field", "trait", "-transform", "sqrt", *POINTS), 2, "is not a transform"),
    (("-field", "trait", "-share", "0", *POINTS), 2, "-share"),
    (("-field", "trait", "-C", "2", *POINTS), 2, "-C requires -method svr"),
    (("-field", "trait", "-method", "gp", "-members", "2", *POINTS), 2, "-members requires"),
    (("-field", "trait", "-method", "gp", "-hytools", "t.json", *POINTS), 2, "-hytools requires"),
    (("-field", "trait", "-transform", "snv", "-hytools", "t.json", *POINTS), 2, "-hytools cannot be used with"),
    (("-field", "trait", "-group", "plot", "-block", "3", *POINTS), 2, "-group cannot be used with -block"),
    (("-table", "table.csv", *POINTS), 2, "unexpected argument"),
    (("-table", "table.csv", "-per", "pixel", "model.json"), 2, "-per cannot be used with -table"),
    (("-field", "trait", "-scatter", "plot.jpg", *POINTS), 2, "-scatter: 'plot.jpg' does not end in .svg or .png"),
    (("-field", "trait", "-scatter", "none/plot.png", *POINTS), 1, "none/plot.png"),
    (("scene.img", "holes.img", "model.json"), 1, "'holes.img' has no value inside the scene"),
    (("-mask-exclude", "one.img", "scene.img", "one.img", "model.json"), 1, "no labelled pixel is in the mask"),
    (("-table", "/dev/null", "model.json"), 1, "is a pipe, but the table is read several times"),
    (("-table", "huge.csv", "model.json"), 1, "beyond the range of single precision"),
])
def test_mistakes_of_training(args, code, words):
    ones = np.zeros((1, LINES, SAMPLES), np.float32)
    write_scene("holes.img", ones - 9999, nodata=-9999)
    ones[0, 3:6, 4:30] = 1
    write_scene("one.img", ones, nodata=0)
    with open("huge.csv", "w") as file:
        file.write("trait,450,470\n" + "".join(f"{n}e200,{n * n}e200,1e200\n" for n in range(1, 9)))
    result = train(*args)
    assert result.code == code and words in result.err, result.err


def test_bands_that_the_scene_lacks():
    """The advice fits the cause: a scene that ends too early, a gap, or bands that are too wide. Bands interpolated over a
    long distance are counted."""
    widths = [20.0] * BANDS
    write_scene("whole.img", SCENE, wavelengths=NM, fwhm=widths)
    succeed(train("-field", "trait", "-members", "0", "whole.img", "points.csv", "model.json"))
    keep = [b for b in range(BANDS) if not 8 <= b < 14]
    write_scene("gap.img", SCENE[keep], wavelengths=[NM[b] for b in keep], fwhm=[20.0] * len(keep))
    write_scene("bare.img", SCENE[keep], wavelengths=[NM[b] for b in keep])
    write_scene("wide.img", SCENE[[0, 12, 23]], wavelengths=[NM[0], NM[12], NM[23]])
    write_scene("short.img", SCENE[4:12], wavelengths=NM[4:12], fwhm=widths[4:12])
    write_scene("elsewhere.img", SCENE[:3], wavelengths=[1500.0, 1520, 1540])
    for scene, options, message, advice in (
            ("short.img", (), "cannot be resampled to 16 bands", "-b 530-670nm"), ("short.img", ("-resample", "linear"), "cannot be resampled to 16 bands", "-b 530-670nm"),
            ("elsewhere.img", (), "cannot be resampled to 24 bands", "Choose a model whose wavelengths the scene has."),
            ("gap.img", (), "cannot be resampled to", "Use -resample linear")):
        result = predict(*options, scene, "model.json", "map.tif")
        assert result.code == 1 and message in first_error(result) and advice in result.err, result.err
    for scene, options, count in (("gap.img", ("-resample", "linear"), 6), ("bare.img", (), 6), ("wide.img", (), 21)):
        result = succeed(predict("-overwrite", *options, scene, "model.json", "map.tif"))
        assert f"{count} bands of the model 'model.json' are interpolated between bands of the scene that are more than 60 nm apart" in result.err
    keep = [b for b in range(BANDS) if b not in (9, 16)]
    write_scene("lost.img", SCENE[keep], wavelengths=[NM[b] for b in keep])
    assert "apart" not in succeed(predict("-overwrite", "lost.img", "model.json", "map.tif")).err


def test_features_without_a_value_are_counted():
    with open("points.csv", "a", newline="") as file:
        file.write("3,4,,1\r\n5,6,,1\r\n")
    assert "2 features have no value and are left out" in succeed(train("-field", "trait", "-members", "0", *POINTS)).err


def test_values_that_may_be_fills(files):
    rows = open("table.csv").read().splitlines()
    for k in (3, 9):
        plot, _, rest = rows[k].split(",", 2)
        rows[k] = f"{plot},-9999,{rest}"
    with open("fills.csv", "w") as file:
        file.write("\n".join(rows) + "\n")
    assert "2 samples have the value -9999" in succeed(train("-table", "fills.csv", "-field", "trait", "-members", "0", "model.json")).err
    assert "-9999" not in succeed(train("-overwrite", "-table", "table.csv", "-field", "trait", "-members", "0", "model.json")).err


@pytest.mark.quick
def test_mistakes_of_prediction():
    succeed(train("-field", "trait", "-members", "0", *POINTS))
    write_scene("short.img", SCENE[:12], wavelengths=NM[:12])
    for args, code, words in (
            (("short.img", "model.json", "map.tif"), 1, "cannot be resampled to"),
            (("scene.img", "table.csv", "map.tif"), 1, "table.csv"),
            (("scene.img", "model.json"), 2, "dst is missing"),
            (("-device", "cpu", "-reference", "points.csv", "-field", "trait", "scene.img", "model.json"), 2, "-device requires dst"),
            (("scene.img", "-scatter", "plot.svg", "model.json", "map.tif"), 2, "-scatter requires -reference"),
            (("scene.img", "-field", "trait", "model.json", "map.tif"), 2, "-field requires -reference")):
        result = predict(*args)
        assert result.code == code and words in result.err, result.err
