# SPDX-License-Identifier: MIT
"""gdal_hsi_normalise, compared with a NumPy reference in double precision with fits by QR (numpy.linalg.lstsq), and
with synthetic scenes whose coefficients and corrected values have closed forms."""

import itertools
import json
import os

import numpy as np
import pytest
from osgeo import gdal

from conftest import LOCAL, UTM, first_error, read, run, succeed, write_scene

NM = np.array([480, 560, 660, 700, 850, 1240, 1650, 2200.0])
BANDS = len(NM)
LINES, SAMPLES = 90, 110
NAMES = ["Path length (m)", "To-sensor azimuth (0 to 360 degrees cw from N)", "To-sensor zenith (0 to 90 degrees from zenith)",
         "To-sun azimuth (0 to 360 degrees cw from N)", "To-sun zenith (0 to 90 degrees from zenith)", "Solar phase",
         "Slope (degrees)", "Aspect (degrees)", "Cosine(i)", "UTC Time"]
ORDER = ["path", "sensor_azimuth", "sensor_zenith", "solar_azimuth", "solar_zenith", "phase", "slope", "aspect", "cosine", "utc"]


def normalise(*args):
    return run("gdal_hsi_normalise", *args)


def angles(seed=1, lines=LINES, samples=SAMPLES, sun=(38.0, 150.0), heading=20.0):
    """Makes hills, and a scanner that looks to both sides."""
    y, x = np.mgrid[0:lines, 0:samples].astype(float)
    p = 0.5 * np.cos(x / 9 + seed) * np.cos(y / 13)
    q = 0.4 * np.sin(y / 11 + 2 * seed) * np.cos(x / 17)
    across = (x - (samples - 1) / 2) / samples * 44
    a = {"solar_zenith": sun[0] + 0.4 * y / lines, "solar_azimuth": sun[1] + 0 * y, "sensor_zenith": np.abs(across) + 0.01,
         "sensor_azimuth": np.where(across > 0, heading + 270, heading + 90) % 360,
         "slope": np.degrees(np.arctan(np.hypot(p, q))), "aspect": np.degrees(np.arctan2(-p, -q)) % 360,
         "path": 3000 + 0 * y, "phase": 0 * y, "cosine": 0 * y, "utc": 0 * y}
    return {k: v.astype(np.float32) for k, v in a.items()}


def reflectance(a, seed=1):
    """Returns bands x lines x samples: vegetation to soil, light on terrain, view, noise, water."""
    rng = np.random.default_rng(seed)
    shape = a["slope"].shape
    cover = np.clip(np.repeat(np.repeat(rng.random((shape[0] // 6 + 1, shape[1] // 6 + 1)), 6, 0), 6, 1)[:shape[0], :shape[1]]
                    + 0.05 * rng.normal(size=shape), 0, 1)
    green = np.array([0.03, 0.06, 0.04, 0.12, 0.45, 0.40, 0.22, 0.10])[:, None, None]
    soil = np.array([0.10, 0.15, 0.20, 0.22, 0.28, 0.35, 0.40, 0.36])[:, None, None]
    r = cover * green + (1 - cover) * soil
    ci, _, _ = light(a)
    kv, kg = kernels(a)
    r = r * (0.3 + 0.7 * np.maximum(ci, 0)) * (1 + 0.5 * kv + 0.12 * kg)
    r = r * (1 + 0.01 * rng.normal(size=r.shape))
    r[:, :6, :9] = np.array([0.06, 0.05, 0.03, 0.02, 0.01, 0.005, 0.003, 0.002])[:, None, None]
    return r.astype(np.float32)


def light(a):
    ts, ps, b, A = (np.radians(a[k].astype(float)) for k in ("solar_zenith", "solar_azimuth", "slope", "aspect"))
    return np.cos(ts) * np.cos(b) + np.sin(ts) * np.sin(b) * np.cos(ps - A), np.cos(ts), np.cos(b) * np.cos(ts)


def kernels_of(ts, tv, w, volume="ross-thick", geometric="li-dense-r", br=2.5, hb=2.0):
    x = np.arccos(np.clip(np.cos(ts) * np.cos(tv) + np.sin(ts) * np.sin(tv) * np.cos(w), -1, 1))
    f = (np.pi / 2 - x) * np.cos(x) + np.sin(x)
    kv = f / (np.cos(ts) + np.cos(tv)) - np.pi / 4 if volume == "ross-thick" else f / (np.cos(ts) * np.cos(tv)) - np.pi / 2
    s, v = np.arctan(br * np.tan(ts)), np.arctan(br * np.tan(tv))
    S, V = 1 / np.cos(s), 1 / np.cos(v)
    d2 = np.tan(s) ** 2 + np.tan(v) ** 2 - 2 * np.tan(s) * np.tan(v) * np.cos(w)
    t = np.arccos(np.clip(hb * np.sqrt(np.maximum(d2, 0) + (np.tan(s) * np.tan(v) * np.sin(w)) ** 2) / (S + V), -1, 1))
    O = (t - np.sin(t) * np.cos(t)) * (S + V) / np.pi
    E = 1 + np.cos(s) * np.cos(v) + np.sin(s) * np.sin(v) * np.cos(w)
    kg = {"li-sparse": O - S - V + E * V / 2, "li-sparse-r": O - S - V + E * S * V / 2, "li-dense": E * V / (S + V - O) - 2,
          "li-dense-r": E * S * V / (S + V - O) - 2}[geometric]
    return kv, kg


def kernels(a, **options):
    ts, tv = np.radians(a["solar_zenith"].astype(float)), np.radians(a["sensor_zenith"].astype(float))
    return kernels_of(ts, tv, np.radians(a["sensor_azimuth"].astype(float) - a["solar_azimuth"].astype(float)), **options)


class Reference:
    """Implements the specification for one scene or several."""

    def __init__(self, topography="scs+c", brdf="flex", ndvi=(5, 100), bins=18, edges=None, min_pixels=100, min_slope=5, min_cos_i=0.12,
                 zenith=None, **kernel_options):
        self.__dict__.update({k: v for k, v in locals().items() if k != "self"})
        self.rows, self.zeniths, self.terrain = [], [], []

    def prepare(self, r, a):
        r64 = r.astype(float)
        n, s = r64[4], r64[2]
        valid = np.isfinite(r64).all(0) & (r64 != 0).any(0)
        with np.errstate(all="ignore"):
            ndvi = np.where(n + s > 0, (n - s) / (n + s), -9)
        cell = np.ceil(100 * ndvi)
        known = np.ones(r.shape[1:], bool)
        names = (["solar_zenith", "solar_azimuth"] + (["slope", "aspect"] if self.topography != "none" else [])
                 + (["sensor_zenith", "sensor_azimuth"] if self.brdf != "none" else []))
        for k in names:
            v = a[k].astype(float)
            known &= np.isfinite(v) & (v != -9999)
            if k in ("solar_zenith", "sensor_zenith", "slope"):
                known &= (v >= 0) & (v < 90)
        in_range = valid & known & (cell > self.ndvi[0]) & (cell <= self.ndvi[1])
        ci, level, plane = light(a)
        lit = (ci >= self.min_cos_i) | (self.topography == "none")
        return r64, valid, known, ndvi, cell, in_range, lit, ci, {"c": level, "scs+c": plane}.get(self.topography, level), plane

    def factor(self, a, ndvi, ci, level, plane, band):
        ts = a["solar_zenith"].astype(float)
        if self.topography == "cosine":
            return level / ci
        if self.topography == "scs":
            return plane / ci
        T = ts + np.where(ts < 45, 20, np.where(ts <= 55, 15, 10))
        e = np.where(ndvi > 0.2, 0.75 if NM[band] < 720 else 1 / 3, 0.5)
        cosT = np.cos(np.radians(T))
        G = np.where((ci < cosT) & (T < 90), np.clip((np.maximum(ci, 0) / np.where(T < 90, cosT, 1)) ** e, 0.25, 1), 1)
        return G * (level / ci if self.topography == "minnaert" else 1)

    def flatten(self, r, a, terrain):
        r64, valid, known, ndvi, cell, in_range, lit, ci, a_, plane = self.prepare(r, a)
        out, use = r64.copy(), in_range & lit
        if self.topography == "none":
            return out
        for b in range(BANDS):
            if self.topography in ("c", "scs+c"):
                if terrain is None:
                    continue
                m, q = terrain[b]
                f = np.ones(ci.shape) if m == 0 else (m * a_ + q) / (m * ci + q)
            else:
                f = self.factor(a, ndvi, ci, np.cos(np.radians(a["solar_zenith"].astype(float))), plane, b)
            out[b][use] = (r64[b] * f)[use].astype(np.float32)
        return out

    def fit_terrain(self, r, a, mask):
        r64, valid, known, ndvi, cell, in_range, lit, ci, a_, plane = self.prepare(r, a)
        use = in_range & lit & mask & (a["slope"] >= self.min_slope)
        if self.topography not in ("c", "scs+c"):
            return None
        c = ci[use].astype(np.float32).astype(float)
        if len(c) < 100 or c.std() < 0.01:
            return None
        fits = []
        for b in range(BANDS):
            y = r64[b][use]
            m, q = np.linalg.lstsq(np.stack([c, np.ones(len(c))], 1), y, rcond=None)[0]
            if q < 0:
                q, m = 0, (y @ c) / (c @ c)
            if not m > 0:
                m, q = 0, max(y.mean(), 0)
            fits.append((m, q))
        return fits

    def add(self, r, a, mask=None):
        mask = np.ones(r.shape[1:], bool) if mask is None else mask
        terrain = self.fit_terrain(r, a, mask)
        self.terrain.append(terrain)
        _, valid, known, ndvi, cell, in_range, lit, *_ = self.prepare(r, a)
        use = in_range & lit & mask
        flat = self.flatten(r, a, terrain)
        kv, kg = (k.astype(np.float32).astype(float) for k in kernels(a, **self.kernel_options))
        self.rows.append((cell[use], kv[use], kg[use], flat[:, use]))
        self.zeniths.append(a["solar_zenith"][use].astype(float))
        return terrain

    def fit(self):
        cell, kv, kg = (np.concatenate([row[k] for row in self.rows]) for k in range(3))
        r = np.concatenate([row[3] for row in self.rows], 1)
        self.common = np.concatenate(self.zeniths).mean() if self.zenith is None else self.zenith
        lo, hi = self.ndvi
        if self.edges is not None:
            edges = self.edges
        elif self.brdf == "universal":
            edges = [lo, hi]
        else:
            count = np.array([np.sum(cell == k) for k in range(lo + 1, hi + 1)])
            total = np.cumsum(count)
            rough = [lo] + [lo + 1 + int(np.argmax(total * self.bins >= j * total[-1])) for j in range(1, self.bins)] + [hi]
            rough = sorted(set(rough))
            edges = [lo]
            for left, right in zip(rough, rough[1:]):
                parts = -(-(right - left) // 20)
                edges += [left + (right - left) * i // parts for i in range(1, parts + 1)]
        self.fits = []
        for left, right in zip(edges, edges[1:]):
            use = (cell > left) & (cell <= right)
            n = int(use.sum())
            fit = None
            if n >= self.min_pixels and kv[use].std() > 0 and kg[use].std() > 0 and 1 - np.corrcoef(kv[use], kg[use])[0, 1] ** 2 >= 1e-6:
                design = np.stack([kv[use], kg[use], np.ones(n)], 1)
                q, R = np.linalg.qr(design)
                fit = np.linalg.solve(R, q.T @ r[:, use].T)
            self.fits.append((left, right, n, fit))
        return self

    def correct(self, r, a, terrain):
        r64, valid, known, ndvi, cell, in_range, lit, *_ = self.prepare(r, a)
        out = self.flatten(r, a, terrain)
        out[:, ~(valid & known)] = np.nan
        if self.brdf == "none":
            return out
        used = [(0.005 * (left + right), fit) for left, right, n, fit in self.fits if fit is not None]
        centres = np.array([c for c, _ in used])
        table = np.array([fit for _, fit in used])
        if len(used) == 1:
            f = np.broadcast_to(table[0][:, :, None], (3, BANDS, int(in_range.sum())))
        else:
            v = ndvi[in_range]
            k = np.clip(np.searchsorted(centres, v, side="right") - 1, 0, len(used) - 2)
            t = (v - centres[k]) / (centres[k + 1] - centres[k])
            f = np.moveaxis(table[k] + t[:, None, None] * (table[k + 1] - table[k]), 0, 2)
        kv, kg = (k[in_range] for k in kernels(a, **self.kernel_options))
        nv, ng = kernels_of(np.radians(self.common), 0.0, 0.0, **self.kernel_options)
        there, nadir = f[0] * kv + f[1] * kg + f[2], f[0] * nv + f[1] * ng + f[2]
        out[:, in_range] *= np.where((there > 0) & (nadir > 0), nadir / np.where(there > 0, there, 1), 1)
        return out


def write_obs(path, a, names=NAMES, **options):
    return write_scene(path, np.stack([a[k] for k in ORDER]), names=names, **options)


def write_pair(folder, name="line1", seed=1, epsg=LOCAL, **options):
    a = angles(seed, **options)
    r = reflectance(a, seed)
    write_scene(folder / f"{name}.img", r, wavelengths=list(NM), epsg=epsg)
    write_obs(folder / f"{name}_obs", a, epsg=epsg)
    return r, a


def assert_same(path, want, rtol=1e-5):
    got = read(path).astype(float)
    assert got.shape == want.shape
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_allclose(got, want, rtol=rtol, atol=1e-7)


def bins_of(model):
    return json.loads(model.read_text())["brdf"]["bins"]


def assert_bins(model, reference):
    got = bins_of(model)
    assert [(round(100 * b["from"]), round(100 * b["to"]), b["pixels"], b["used"]) for b in got] == [
        (left, right, n, fit is not None) for left, right, n, fit in reference.fits]
    for bin_, (_, _, _, fit) in zip(got, reference.fits):
        if fit is not None:
            c = bin_["coefficients"]
            np.testing.assert_allclose([c["volume"], c["geometric"], c["isotropic"]], fit, rtol=1e-6, atol=1e-9)


@pytest.mark.quick
@pytest.mark.parametrize("topography,brdf", [("scs+c", "flex"), ("c", "none"), ("none", "universal"), ("cosine", "flex"),
                                             ("scs", "none"), ("minnaert", "flex"), ("minnaert-g", "universal")])
def test_reference(tmp_path, topography, brdf):
    r, a = write_pair(tmp_path)
    out, model = tmp_path / "out.img", tmp_path / "model.json"
    succeed(normalise("-topography", topography, "-brdf", brdf, "-geometry", tmp_path / "line1_obs", "-model", model,
                      tmp_path / "line1.img", out, "-of", "ENVI"))
    reference = Reference(topography, brdf)
    terrain = reference.add(r, a)
    if brdf != "none":
        reference.fit()
        assert_bins(model, reference)
    scene = json.loads(model.read_text())["scenes"][0]
    assert scene["name"] == "line1.img"
    if terrain:
        np.testing.assert_allclose(np.stack([scene["topography"]["slope"], scene["topography"]["intercept"]], 1), terrain, rtol=1e-6, atol=1e-9)
    assert_same(out, reference.correct(r, a, terrain), 5e-6 if brdf == "none" else 1e-5)
    info = gdal.Open(str(out)).GetMetadata()
    assert info["HSI_NORMALISE_TOPOGRAPHY"] == topography and info["HSI_NORMALISE_BRDF"] == brdf
    assert ("HSI_NORMALISE_SOLAR_ZENITH" in info) == (brdf != "none")
    # Applying the model gives the same bytes.
    succeed(normalise("-apply", model, "-geometry", tmp_path / "line1_obs", tmp_path / "line1.img", tmp_path / "again.img", "-of", "ENVI"))
    assert (tmp_path / "again.img").read_bytes() == out.read_bytes()


@pytest.mark.parametrize("volume,geometric", itertools.product(["ross-thick", "ross-thin"], ["li-sparse", "li-sparse-r", "li-dense", "li-dense-r"]))
def test_kernels(tmp_path, volume, geometric):
    r, a = write_pair(tmp_path)
    model = tmp_path / "model.json"
    succeed(normalise("-topography", "none", "-volume", volume, "-geometric", geometric, "-bins", "5", "-solar-zenith", "30",
                      "-geometry", tmp_path / "line1_obs", "-model", model, tmp_path / "line1.img", tmp_path / "out.tif"))
    reference = Reference("none", bins=5, zenith=30, volume=volume, geometric=geometric, br=2.5 if "dense" in geometric else 1)
    reference.add(r, a)
    assert_bins(model, reference.fit())
    assert_same(tmp_path / "out.tif", reference.correct(r, a, None))


@pytest.mark.parametrize("options,settings", [
    (["-bins", "0.05,0.3,0.6,0.9"], {"edges": [5, 30, 60, 90]}), (["-bins", "1"], {"bins": 1}), (["-bins", "95"], {"bins": 95}),
    (["-ndvi", "0.2", "0.8"], {"ndvi": (20, 80)}), (["-min-pixels", "550"], {"min_pixels": 550}),
    (["-min-slope", "12", "-min-cos-i", "0.6"], {"min_slope": 12, "min_cos_i": 0.6}), (["-b-r", "1.5", "-h-b", "3"], {"br": 1.5, "hb": 3.0})])
def test_options(tmp_path, options, settings):
    r, a = write_pair(tmp_path)
    succeed(normalise(*options, "-geometry", tmp_path / "line1_obs", "-model", tmp_path / "m.json", tmp_path / "line1.img", tmp_path / "out.tif"))
    reference = Reference(**settings)
    terrain = reference.add(r, a)
    assert_bins(tmp_path / "m.json", reference.fit())
    assert_same(tmp_path / "out.tif", reference.correct(r, a, terrain))


def test_holes_masks_scale(tmp_path):
    a = angles()
    r = reflectance(a)
    stored = np.round(r * 10000).astype(np.float32)
    stored[:, 40, :20] = -9999
    a["sensor_zenith"][50, 10:30] = -9999
    a["solar_zenith"][51, 10:30] = np.nan
    a["aspect"][52, :] = -9999
    a["slope"][52, 20:40] = 0
    path = write_scene(tmp_path / "scene.tif", stored, driver="GTiff", dtype="f4", nodata=-9999, wavelengths=list(NM))
    ds = gdal.Open(str(path), gdal.GA_Update)
    for b in range(BANDS):
        ds.GetRasterBand(b + 1).SetScale(0.0001)
    ds = None
    write_obs(tmp_path / "obs", a)
    mask = np.zeros((1, LINES, SAMPLES), np.uint8)
    mask[0, 10:80, 5:100] = 1
    write_scene(tmp_path / "mask.tif", mask, driver="GTiff", dtype="u1")
    result = normalise("-geometry", tmp_path / "obs", "-mask", tmp_path / "mask.tif", "-model", tmp_path / "m.json", path, tmp_path / "out.tif")
    succeed(result)
    values = (stored.astype(float) * 0.0001).astype(np.float32)
    values[:, 40, :20] = np.nan
    a["aspect"][52, 20:40] = 0
    reference = Reference()
    terrain = reference.add(values, a, mask[0] == 1)
    assert_bins(tmp_path / "m.json", reference.fit())
    want = reference.correct(values, a, terrain) / 0.0001
    got = read(tmp_path / "out.tif").astype(float)
    got[got == -9999] = np.nan
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-3)
    ds = gdal.Open(str(tmp_path / "out.tif"))
    assert ds.GetRasterBand(1).GetScale() == 0.0001 and ds.GetRasterBand(1).DataType == gdal.GDT_Float32
    lost = int((np.isnan(want).all(0) & np.isfinite(values).all(0)).sum())
    assert f"{lost} valid pixels have unknown angles" in result.err
    # Water keeps its values.
    np.testing.assert_array_equal(got[:, :6, :9], stored[:, :6, :9])


def test_same_bits_by_tiles_and_threads(tmp_path):
    write_pair(tmp_path)
    gdal.Translate(str(tmp_path / "tiles.tif"), str(tmp_path / "line1_obs"), creationOptions=["COMPRESS=DEFLATE", "TILED=YES", "BLOCKXSIZE=16", "BLOCKYSIZE=64"])
    outputs = []
    for k, (obs, *extra) in enumerate([["line1_obs", "-threads", "1"], ["line1_obs", "-threads", "2"], ["line1_obs", "-tile", "128", "16"],
                                       ["line1_obs", "-memory", "64MB"], ["tiles.tif"], ["tiles.tif", "-memory", "64MB"]]):
        succeed(normalise(*extra, "-geometry", tmp_path / obs, "-model", tmp_path / f"m{k}.json", tmp_path / "line1.img",
                          tmp_path / f"o{k}.img", "-of", "ENVI"))
        outputs.append(((tmp_path / f"m{k}.json").read_text(), (tmp_path / f"o{k}.img").read_bytes()))
    assert all(one == outputs[0] for one in outputs)


def hytools_files(folder, brdf="flex", **changes):
    """Writes coefficients as HyTools does, except those of band 3. changes: members of the BRDF file, None without the
    file."""
    rng = np.random.default_rng(4)
    bins = [[0.05, 0.231], [0.231, 0.52], [0.52, 1.0]]
    topo = {"type": "scs+c", "c_fit_type": "nnls", "coeffs": {str(b): 0.2 + 0.1 * b for b in range(BANDS) if b != 3},
            "apply_mask": [["ndi", {"band_1": 850, "band_2": 660, "min": 0.1, "max": 0.9}],
                           ["ancillary", {"name": "slope", "min": np.radians(4), "max": np.radians(30)}],
                           ["ancillary", {"name": "cosine_i", "min": 0.3, "max": 1}]]}
    sets = len(bins) if brdf == "flex" else 1
    coefficients = {str(b): [[0.1 * f, 0.02 * f, f] for f in rng.uniform(0.1, 0.6, sets)] for b in range(BANDS) if b != 3}
    angular = {"type": brdf, "geometric": "li_sparse_r", "volume": "ross_thin", "b/r": 1.2, "h/b": 1.8, "interp_kind": "linear",
               "bins": {str(k + 1): one for k, one in enumerate(bins)}, "solar_zn_norm_radians": 0.7,
               "coeffs": coefficients if brdf == "flex" else {b: one[0] for b, one in coefficients.items()},
               "apply_mask": [["ndi", {"band_1": 850, "band_2": 660, "min": 0.2, "max": 1.0}], ["kernel_finite", {}]], **changes}
    angular = {k: v for k, v in angular.items() if v is not None}
    (folder / "topo.json").write_text(json.dumps(topo))
    (folder / "brdf.json").write_text(json.dumps(angular))
    return topo, angular


@pytest.mark.parametrize("brdf", ["flex", "universal"])
@pytest.mark.parametrize("files", [["topo"], ["brdf"], ["brdf", "topo"]])
def test_coefficients_of_hytools(tmp_path, brdf, files):
    """Uses C and linear interpolation between the centres of bins, for the pixels of each mask."""
    r, a = write_pair(tmp_path)
    topo, angular = hytools_files(tmp_path, brdf)
    want = r.astype(float)
    ndvi = (want[4] - want[2]) / (want[4] + want[2])
    cos_i, _, plane = light(a)
    if "topo" in files:
        use = (ndvi >= 0.1) & (ndvi <= 0.9) & (a["slope"] >= 4) & (a["slope"] <= 30) & (cos_i >= 0.3)
        for b, c in topo["coeffs"].items():
            want[int(b)][use] *= ((plane + c) / (cos_i + c))[use]
    if "brdf" in files:
        use = (ndvi >= 0.2) & (ndvi <= 1)
        shape = {"volume": "ross-thin", "geometric": "li-sparse-r", "br": 1.2, "hb": 1.8}
        kv, kg = kernels(a, **shape)
        nv, ng = kernels_of(0.7, 0.0, 0.0, **shape)
        centres = np.mean(list(angular["bins"].values()), 1)
        for b, f in angular["coeffs"].items():
            if brdf == "flex":
                k = np.clip(np.searchsorted(centres, ndvi) - 1, 0, len(centres) - 2)
                t = ((ndvi - centres[k]) / (centres[k + 1] - centres[k]))[..., None]
                f = np.moveaxis((1 - t) * np.array(f)[k] + t * np.array(f)[k + 1], 2, 0)
            want[int(b)][use] *= ((f[0] * nv + f[1] * ng + f[2]) / (f[0] * kv + f[1] * kg + f[2]))[use]
    succeed(normalise("-geometry", tmp_path / "line1_obs", *[x for name in files for x in ("-apply", tmp_path / f"{name}.json")], tmp_path / "line1.img",
                      tmp_path / "out.tif"))
    assert_same(tmp_path / "out.tif", want)
    assert not np.array_equal(read(tmp_path / "out.tif")[0], r[0]) and np.array_equal(read(tmp_path / "out.tif")[3], r[3])


@pytest.mark.parametrize("chosen", [["-b", "2-8"], ["-b", "8", "-b", "1-7"], "bbl"])
def test_coefficients_of_hytools_are_of_the_bands_of_the_file(tmp_path, chosen):
    r, _ = write_pair(tmp_path)
    hytools_files(tmp_path)
    base = ["-overwrite", "-geometry", tmp_path / "line1_obs", "-apply", tmp_path / "topo.json", "-apply", tmp_path / "brdf.json"]
    succeed(normalise(*base, tmp_path / "line1.img", tmp_path / "all.tif"))
    bands = [8, *range(1, 8)] if "8" in chosen else range(2, 9)
    if chosen == "bbl":
        chosen = []
        write_scene(tmp_path / "line1.img", r, wavelengths=list(NM), bbl=[0] + [1] * 7)
    succeed(normalise(*base, *chosen, tmp_path / "line1.img", tmp_path / "some.tif"))
    np.testing.assert_array_equal(read(tmp_path / "some.tif"), read(tmp_path / "all.tif", bands))


@pytest.mark.parametrize("least,most", [(0.1, "+inf"), (0.1, "inf"), (0.1, float("inf")), ("-inf", 0.6), (float("-inf"), "Infinity")])
def test_masks_of_hytools_without_an_end(tmp_path, least, most):
    write_pair(tmp_path)
    base = ["-overwrite", "-geometry", tmp_path / "line1_obs"]
    for name, ends in (("given", (least, most)), ("wide", (max(float(least), -1e6), min(float(most), 1e6)))):
        hytools_files(tmp_path, apply_mask=[["ndi", {"band_1": 850, "band_2": 660, "min": ends[0], "max": ends[1]}]])
        succeed(normalise(*base, "-apply", tmp_path / "brdf.json", tmp_path / "line1.img", tmp_path / f"{name}.tif"))
    np.testing.assert_array_equal(read(tmp_path / "given.tif"), read(tmp_path / "wide.tif"))


def test_hytools_without_a_fit(tmp_path):
    """{"type": "cosine"} without other members corrects all pixels."""
    r, a = write_pair(tmp_path)
    (tmp_path / "t.json").write_text('{"type": "cosine"}')
    succeed(normalise("-geometry", tmp_path / "line1_obs", "-apply", tmp_path / "t.json", tmp_path / "line1.img", tmp_path / "o.tif"))
    cos_i, level, _ = light(a)
    assert_same(tmp_path / "o.tif", r * (level / cos_i))


@pytest.mark.parametrize("changes,text", [
    ({"interp_kind": "cubic"}, "'interp_kind' is 'cubic'"),
    ({"geometric": "roujean"}, "'geometric' is 'roujean'"),
    ({"apply_mask": [["water", {}]]}, "the mask \"water\" is unknown"),
    ({"apply_mask": [["ndi", {"band_1": 850, "band_2": 700, "min": 0, "max": 1}]]}, "bands other than 850 and 660 nm"),
    ({"apply_mask": [["ancillary", {"name": "cosine_i", "min": 0, "max": 1}]]}, "chooses pixels by slope or cos i"),
    ({"coeffs": {"8": [[0, 0, 1]] * 3}}, "but the scene's file has the bands 0 to 7"),
    ({"coeffs": {"-1": [[0, 0, 1]] * 3}}, "but the scene's file has the bands 0 to 7"),
    ({"apply_mask": [["ndi", {"band_1": 850, "band_2": 660, "min": 0, "max": "much"}]]}, "'max' of a mask is 'much', which is not a number"),
    ({"apply_mask": None}, "'apply_mask' is missing"), ({"solar_zn_norm_radians": None}, "'solar_zn_norm_radians' is missing"),
    ({"coeffs": {"1": [[0, 0, 1]] * 2}}, "'coeffs' has 2 entries instead of 3"),
    ({"bins": {"1": [0.5, 0.6], "2": [0.1, 0.2], "3": [0.7, 1]}}, "'bins' are not in ascending order"),
    ({"solar_zn_norm_radians": 40}, "out of range"),
    ({"b/r": 0}, "b/r")])
def test_files_of_hytools_that_are_refused(tmp_path, changes, text):
    write_pair(tmp_path)
    hytools_files(tmp_path, **changes)
    base = ["-geometry", tmp_path / "line1_obs", tmp_path / "line1.img", tmp_path / "out.tif"]
    result = normalise("-apply", tmp_path / "brdf.json", *base)
    assert result.code == 1 and text in first_error(result) and "brdf.json" in first_error(result), result.err
    hytools_files(tmp_path)
    for files, what in ((["brdf", "brdf"], "a second file of BRDF"), (["topo", "own"], "is not a HyTools file")):
        succeed(normalise("-overwrite", "-geometry", tmp_path / "line1_obs", "-model", tmp_path / "own.json", tmp_path / "line1.img"))
        result = normalise(*[x for name in files for x in ("-apply", tmp_path / f"{name}.json")], *base)
        assert result.code == 1 and what in first_error(result), result.err
    assert not (tmp_path / "out.tif").exists()


@pytest.mark.parametrize("brdf", ["none", "flex"])
def test_scene_that_is_kept(tmp_path, brdf):
    """A compressed scene is decoded once and kept for the other passes; its pixels equal those of the uncompressed
    scene."""
    write_pair(tmp_path)
    gdal.Translate(str(tmp_path / "line1.tif"), str(tmp_path / "line1.img"), creationOptions=["COMPRESS=DEFLATE", "TILED=YES"])
    got = {}
    for name in ("line1.img", "line1.tif"):
        common = ["-geometry", tmp_path / "line1_obs", "-overwrite"]
        succeed(normalise(*common, "-brdf", brdf, "-model", tmp_path / "m.json", tmp_path / name))
        succeed(normalise(*common, "-brdf", brdf, tmp_path / name, tmp_path / "all.tif"))
        succeed(normalise(*common, "-apply", tmp_path / "m.json", tmp_path / name, tmp_path / "applied.tif"))
        model = json.loads((tmp_path / "m.json").read_text())
        model["scenes"][0]["name"] = "another"
        del model["checksum"]
        (tmp_path / "m.json").write_text(json.dumps(model))
        succeed(normalise(*common, "-apply", tmp_path / "m.json", tmp_path / name, tmp_path / "fitted.tif"))
        got[name] = [read(tmp_path / f"{k}.tif") for k in ("all", "applied", "fitted")]
    for one, other in zip(*got.values()):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(one, got["line1.img"][0])


def test_campaign_in_any_order(tmp_path):
    """Scenes fitted together, merged, appended in another order or removed give the same bytes, with the reference's
    coefficients."""
    reference = Reference()
    pairs = []
    for k in range(3):
        r, a = write_pair(tmp_path, f"line{k}", seed=k + 1, sun=(34.0 + 4 * k, 140.0 + 15 * k), heading=20.0 + 160 * k)
        pairs.append((r, a, reference.add(r, a)))
        succeed(normalise("-geometry", tmp_path / f"line{k}_obs", "-model", tmp_path / f"m{k}.json", tmp_path / f"line{k}.img"))
    reference.fit()
    m = [tmp_path / f"m{k}.json" for k in range(3)]
    (tmp_path / "list.txt").write_text(f"{tmp_path}/line1.img\t{tmp_path}/line1_obs\n{tmp_path}/line2.img\t{tmp_path}/line2_obs\n")
    succeed(normalise("-geometry", tmp_path / "line0_obs", "-with", f"@{tmp_path / 'list.txt'}", "-model", tmp_path / "together.json",
                      tmp_path / "line0.img", tmp_path / "out0.tif"))
    succeed(normalise("-merge", m[2], "-merge", m[0], "-merge", m[1], "-model", tmp_path / "merged.json"))
    for k in (1, 2, 0):
        succeed(normalise("-geometry", tmp_path / f"line{k}_obs", "-append", "-model", tmp_path / "appended.json", tmp_path / f"line{k}.img"))
    together = (tmp_path / "together.json").read_text()
    assert together == (tmp_path / "merged.json").read_text() == (tmp_path / "appended.json").read_text()
    assert_bins(tmp_path / "together.json", reference)
    assert_same(tmp_path / "out0.tif", reference.correct(*pairs[0]))
    succeed(normalise("-merge", tmp_path / "merged.json", "-remove", m[1], "-model", tmp_path / "less.json"))
    succeed(normalise("-merge", m[0], "-merge", m[2], "-model", tmp_path / "two.json"))
    assert (tmp_path / "less.json").read_text() == (tmp_path / "two.json").read_text()
    # A scene that the model does not include gets its own terrain correction.
    succeed(normalise("-apply", tmp_path / "two.json", "-geometry", tmp_path / "line1_obs", tmp_path / "line1.img", tmp_path / "out1.tif"))
    two = Reference()
    for k in (0, 2):
        two.add(pairs[k][0], pairs[k][1])
    assert_same(tmp_path / "out1.tif", two.fit().correct(*pairs[1]))
    for args, text in [(["-merge", m[0], "-merge", m[0]], "already includes 'line0.img'"), (["-merge", m[0], "-remove", m[1]], "does not include its scene")]:
        result = normalise(*args, "-model", tmp_path / "x.json")
        assert result.code == 1 and text in first_error(result)
        assert not (tmp_path / "x.json").exists()


@pytest.mark.parametrize("order", [[7, 0, 1, 2, 3, 4, 5, 6], [3, 0, 7, 5, 4, 6, 2, 1]])
def test_bands_in_another_order(tmp_path, order):
    """Values are equal if the scene or the model has its bands in another order."""
    r, _ = write_pair(tmp_path)
    (tmp_path / "other").mkdir()
    write_scene(tmp_path / "other" / "line1.img", r[order], wavelengths=list(NM[order]))
    names = {"here": tmp_path / "line1.img", "there": tmp_path / "other" / "line1.img"}
    base = ["-geometry", tmp_path / "line1_obs"]
    for name, scene in names.items():
        succeed(normalise(*base, "-model", tmp_path / f"{name}.json", scene, tmp_path / f"{name}.tif"))
    want = read(tmp_path / "here.tif")
    np.testing.assert_array_equal(read(tmp_path / "there.tif"), want[order])
    numbers = [x for b in order for x in ("-b", str(b + 1))]
    for model, scene, options, bands in (("here", "there", [], order), ("there", "here", [], slice(None)), ("here", "here", numbers, order)):
        succeed(normalise(*base, *options, "-overwrite", "-apply", tmp_path / f"{model}.json", names[scene], tmp_path / "o.tif"))
        np.testing.assert_array_equal(read(tmp_path / "o.tif"), want[bands])
    # -apply fits the terrain itself.
    (tmp_path / "other" / "line1.img").rename(tmp_path / "other" / "line2.img")
    (tmp_path / "other" / "line1.hdr").rename(tmp_path / "other" / "line2.hdr")
    succeed(normalise(*base, "-overwrite", "-apply", tmp_path / "here.json", tmp_path / "other" / "line2.img", tmp_path / "o.tif"))
    np.testing.assert_array_equal(read(tmp_path / "o.tif"), want[order])


@pytest.mark.parametrize("first,second,names", [
    (["-bins", "5"], [], "-bins"), (["-bins", "0.05,0.5,1"], ["-bins", "0.05,0.4,1"], "-bins"), (["-solar-zenith", "30"], [], "-solar-zenith"),
    (["-min-pixels", "50", "-bins", "5"], [], "-bins, -min-pixels"), (["-topography", "c", "-h-b", "3"], [], "-topography, -h-b"),
    (["-brdf", "universal"], [], "-brdf"), (["-min-slope", "6", "-min-cos-i", "0.2"], [], "-min-slope, -min-cos-i"),
    (["-ndvi", "0.1", "1"], [], "-ndvi"), (["-volume", "ross-thin", "-geometric", "li-sparse"], [], "-volume, -geometric, -b-r")])
def test_models_with_other_options(tmp_path, first, second, names):
    for k, options in enumerate((first, second)):
        write_pair(tmp_path, f"line{k}", seed=k + 1)
        succeed(normalise("-q", *options, "-geometry", tmp_path / f"line{k}_obs", "-model", tmp_path / f"m{k}.json", tmp_path / f"line{k}.img"))
    for a, b in ((0, 1), (1, 0)):
        result = normalise("-merge", tmp_path / f"m{a}.json", "-merge", tmp_path / f"m{b}.json", "-model", tmp_path / "all.json")
        assert result.code == 1 and first_error(result) == f"'{tmp_path}/m{b}.json' was made with different values of {names}", result
    if not set(names.split(", ")) <= {"-bins", "-min-pixels", "-solar-zenith"}:
        return
    texts = []
    for a, b in ((0, 1), (1, 0)):
        succeed(normalise("-q", "-merge", tmp_path / f"m{a}.json", "-merge", tmp_path / f"m{b}.json", "-bins", "4", "-min-pixels", "40",
                          "-solar-zenith", "35", "-overwrite", "-model", tmp_path / "all.json"))
        texts.append((tmp_path / "all.json").read_text())
    assert texts[0] == texts[1]


def test_scenes_of_other_scales(tmp_path):
    """A warning states the medians of both scales."""
    for k, factor in ((0, 1), (1, 10000)):
        r, _ = write_pair(tmp_path, f"line{k}", seed=k + 1)
        write_scene(tmp_path / f"line{k}.img", r * factor, wavelengths=list(NM))
    base = ["-model", tmp_path / "m.json", "-append"]
    assert "scale" not in succeed(normalise(*base, "-geometry", tmp_path / "line0_obs", tmp_path / "line0.img")).err
    for args in ([*base, "-geometry", tmp_path / "line1_obs", tmp_path / "line1.img"],
                 ["-with", tmp_path / "line0.img", tmp_path / "line0_obs", "-geometry", tmp_path / "line1_obs", tmp_path / "line1.img", tmp_path / "o.tif"]):
        err = " ".join(succeed(normalise(*args)).err.split())
        assert "different scales" in err and "in line0.img and" in err and "in line1.img" in err


def test_scene_of_the_same_name(tmp_path):
    """Another scene with the name of a scene in the model gets its own terrain correction; older models store only
    names."""
    write_pair(tmp_path)
    out = tmp_path / "o.tif"
    succeed(normalise("-geometry", tmp_path / "line1_obs", "-model", tmp_path / "m.json", tmp_path / "line1.img"))
    old = json.loads((tmp_path / "m.json").read_text())
    assert old["scenes"][0].pop("size") == [SAMPLES, LINES] and old["scenes"][0].pop("geotransform") == [500000, 20, 0, 4480000, 0, -20]
    del old["checksum"]
    (tmp_path / "old.json").write_text(json.dumps(old))
    a = angles(7)
    r = reflectance(a, 7)
    for case, grid, cut in (("place", (500011, 20, 0, 4480000, 0, -20), 0), ("size", (500000, 20, 0, 4480000, 0, -20), 3)):
        folder = tmp_path / case
        folder.mkdir()
        for name in ("line1.img", "line2.img"):
            write_scene(folder / name, r[:, cut:], wavelengths=list(NM), geotransform=grid)
        write_obs(folder / "obs", {k: v[cut:] for k, v in a.items()}, geotransform=grid)
        base = ["-geometry", folder / "obs", "-overwrite"]
        succeed(normalise(*base, "-apply", tmp_path / "m.json", folder / "line2.img", tmp_path / "want.tif"))
        result = succeed(normalise(*base, "-apply", tmp_path / "m.json", folder / "line1.img", out))
        assert "another scene with the name line1.img" in " ".join(result.err.split())
        np.testing.assert_array_equal(read(out), read(tmp_path / "want.tif"))
        result = normalise("-append", "-geometry", folder / "obs", "-model", tmp_path / "m.json", folder / "line1.img")
        assert result.code == 1 and "another scene with the name 'line1.img'" in first_error(result)
        assert "another scene" not in succeed(normalise(*base, "-apply", tmp_path / "old.json", folder / "line1.img", out)).err
        assert not np.array_equal(read(out), read(tmp_path / "want.tif"))
    # A window belongs to the same scene.
    result = succeed(normalise("-overwrite", "-srcwin", "7", "5", "60", "70", "-apply", tmp_path / "m.json", "-geometry", tmp_path / "line1_obs",
                               tmp_path / "line1.img", out))
    assert "another scene" not in result.err and "does not include" not in result.out + result.err


def test_append_that_goes_on(tmp_path):
    """-append -if-needed: included scenes are not read again, unless they are newer than the model."""
    model = tmp_path / "m.json"
    for k in range(2):
        write_pair(tmp_path, f"line{k}", seed=k + 1)

    def add(k, *options):
        return normalise("-append", *options, "-geometry", tmp_path / f"line{k}_obs", "-model", model, tmp_path / f"line{k}.img")
    succeed(add(0, "-if-needed"))
    first = model.read_text()
    assert "Nothing to do" in succeed(add(0, "-if-needed")).out and model.read_text() == first
    succeed(add(1, "-if-needed"))
    both = model.read_text()
    for k in (0, 1):
        assert "Nothing to do" in succeed(add(k, "-if-needed")).out and model.read_text() == both
    model.unlink()
    succeed(add(0, "-if-needed"))
    assert model.read_text() == first
    write_pair(tmp_path, "line0", seed=9)
    os.utime(tmp_path / "line0.img", (2e9, 2e9))
    result = add(0, "-if-needed")
    assert result.code == 1 and "already includes 'line0.img'" in first_error(result)
    result = add(1, "-if-needed", "-apply", model)
    assert result.code == 2
    result = normalise("-append", "-if-needed", "-geometry", tmp_path / "line1_obs", "-model", model, tmp_path / "line1.img", tmp_path / "o.tif")
    assert result.code == 2 and "-append -if-needed cannot be used with dst" in first_error(result)


def test_known_coefficients(tmp_path):
    """r = S (1 + 0.6 Kv + 0.15 Kg): the fit finds these coefficients, and the result is S at the common sun times the
    model at nadir."""
    a = angles()
    kv, kg = kernels(a)
    s = np.linspace(0.1, 0.4, BANDS)
    r = (s[:, None, None] * (1 + 0.6 * kv + 0.15 * kg)).astype(np.float32)
    write_scene(tmp_path / "s.img", r, wavelengths=list(NM))
    write_obs(tmp_path / "obs", a)
    succeed(normalise("-topography", "none", "-brdf", "universal", "-geometry", tmp_path / "obs", "-model", tmp_path / "m.json", tmp_path / "s.img", tmp_path / "o.tif"))
    (bin_,) = bins_of(tmp_path / "m.json")
    for name, want in (("volume", 0.6 * s), ("geometric", 0.15 * s), ("isotropic", s)):
        np.testing.assert_allclose(bin_["coefficients"][name], want, rtol=2e-5)
    zenith = json.loads((tmp_path / "m.json").read_text())["brdf"]["solar_zenith"]
    nv, ng = kernels_of(np.radians(zenith), 0, 0)
    np.testing.assert_allclose(read(tmp_path / "o.tif"), np.broadcast_to((s * (1 + 0.6 * nv + 0.15 * ng))[:, None, None], r.shape), rtol=2e-5)


@pytest.mark.parametrize("method", ["c", "scs+c"])
def test_known_terrain(tmp_path, method):
    """r = S (0.7 cos i + 0.3)/(0.7 a + 0.3) under a fixed sun becomes S."""
    a = angles()
    a["solar_zenith"][:] = 40
    if method == "scs+c":
        a["slope"][:] = 20
    ci, level, plane = light(a)
    s = np.linspace(0.1, 0.4, BANDS)[:, None, None]
    r = (s * (0.7 * ci + 0.3) / (0.7 * (level if method == "c" else plane) + 0.3)).astype(np.float32)
    write_scene(tmp_path / "s.img", r, wavelengths=list(NM))
    write_obs(tmp_path / "obs", a)
    succeed(normalise("-topography", method, "-brdf", "none", "-geometry", tmp_path / "obs", tmp_path / "s.img", tmp_path / "o.tif"))
    got = read(tmp_path / "o.tif")
    np.testing.assert_allclose(got[:, ci >= 0.12], np.broadcast_to(s, r.shape)[:, ci >= 0.12], rtol=1e-5)


# Angles
# -----------------------------------------------------------------------------------------------------------------------

SIX = ["solar_zenith", "solar_azimuth", "sensor_zenith", "sensor_azimuth", "slope", "aspect"]


def angles_used(tmp_path, scene, *args):
    """Returns the output of -angles as a dictionary."""
    out = tmp_path / "used.tif"
    out.unlink(missing_ok=True)
    succeed(normalise(*args, "-angles", out, "-overwrite", "-model", tmp_path / "used.json", scene))
    ds = gdal.Open(str(out))
    return {ds.GetRasterBand(b + 1).GetDescription(): ds.GetRasterBand(b + 1).ReadAsArray() for b in range(ds.RasterCount)}


def assert_angles(got, want, names=SIX, atol=1e-4):
    for name in names:
        d = got[name].astype(float) - want[name]
        if name.endswith("azimuth") or name == "aspect":
            d = (d + 180) % 360 - 180
        assert np.abs(d).max() < atol, name


@pytest.mark.parametrize("case", ["names", "unnamed 10", "unnamed 11", "radians", "own names"])
def test_obs_rasters(tmp_path, case):
    r, a = write_pair(tmp_path)
    order, names, planes, options = list(ORDER), list(NAMES), dict(a), {}
    if case.startswith("unnamed"):
        names = None
        if case.endswith("11"):
            order.append("utc")
    if case == "radians":
        planes = {k: (np.radians(v) if k in SIX else v).astype(np.float32) for k, v in a.items()}
    if case == "own names":
        order, names = SIX[::-1], ["ASPECT", "slope [deg]", "view_azimuth", "Observation-Zenith", "Sun Azimuth", "SolarZenith"]
    path = write_scene(tmp_path / "obs.tif", np.stack([planes[k] for k in order]), driver="GTiff", names=names, **options)
    if case == "radians":
        ds = gdal.Open(str(path), gdal.GA_Update)
        for b in range(ds.RasterCount):
            ds.GetRasterBand(b + 1).SetUnitType("radians" if order[b] in SIX else "m")
        ds = None
    assert_angles(angles_used(tmp_path, tmp_path / "line1.img", "-geometry", path), a, atol=2e-5 if case != "radians" else 1e-4)


def test_aviris3_and_emit(tmp_path):
    import netCDF4
    r, a = write_pair(tmp_path)
    with netCDF4.Dataset(tmp_path / "av3.nc", "w") as d:
        d.createDimension("lines", LINES)
        d.createDimension("samples", SAMPLES)
        group = d.createGroup("observation_parameters")
        for name, k in zip(["path_length", "to_sensor_azimuth", "to_sensor_zenith", "to_sun_azimuth", "to_sun_zenith", "solar_phase", "slope", "aspect"], ORDER):
            group.createVariable(name, "f4", ("lines", "samples"), fill_value=-9999.)[:] = a[k]
    assert_angles(angles_used(tmp_path, tmp_path / "line1.img", "-geometry", tmp_path / "av3.nc"), a)
    with netCDF4.Dataset(tmp_path / "emit.nc", "w") as d:
        d.createDimension("downtrack", LINES)
        d.createDimension("crosstrack", SAMPLES)
        d.createDimension("bands", len(ORDER))
        d.createVariable("obs", "f4", ("downtrack", "crosstrack", "bands"), fill_value=-9999.)[:] = np.stack([a[k] for k in ORDER], 2)
        group = d.createGroup("sensor_band_parameters")
        names = group.createVariable("observation_bands", str, ("bands",))
        for k, name in enumerate(NAMES):
            names[k] = name
    assert_angles(angles_used(tmp_path, tmp_path / "line1.img", "-geometry", tmp_path / "emit.nc"), a)


def write_neon(path, a, tile=False, files=True):
    import h5py
    with h5py.File(path, "w") as d:
        m = d.create_group("SITE/Reflectance/Metadata")
        m["to-sensor_Azimuth_Angle"], m["to-sensor_zenith_angle"] = a["sensor_azimuth"], a["sensor_zenith"]
        m["Ancillary_Imagery/Slope"], m["Ancillary_Imagery/Aspect"] = a["slope"], a["aspect"]
        if not tile:
            m["Logs/Solar_Zenith_Angle"], m["Logs/Solar_Azimuth_Angle"] = np.float32(a["solar_zenith"][0, 0]), np.float32(a["solar_azimuth"][0, 0])
            return path
        index = m.create_dataset("Ancillary_Imagery/Data_Selection_Index", data=(np.arange(LINES * SAMPLES).reshape(LINES, SAMPLES) % 3).astype("i4"))
        if files:
            index.attrs["Data_Files"] = "NEON_L003-1_20220517,NEON_L001-1_20220517,NEON_L002-1_20220517"
        for k in range(3):
            m[f"Logs/L00{k + 1}/Solar_Zenith_Angle"], m[f"Logs/L00{k + 1}/Solar_Azimuth_Angle"] = np.float32(30 + k), np.float32(100 + k)
    return path


def test_neon(tmp_path):
    import h5py
    r, a = write_pair(tmp_path)
    a["solar_zenith"][:], a["solar_azimuth"][:] = 33, 144
    assert_angles(angles_used(tmp_path, tmp_path / "line1.img", "-geometry", write_neon(tmp_path / "n.h5", a)), a)
    index = np.arange(LINES * SAMPLES).reshape(LINES, SAMPLES) % 3
    for files, line in ((True, np.array([2, 0, 1])), (False, np.array([0, 1, 2]))):
        a["solar_zenith"], a["solar_azimuth"] = 30.0 + line[index], 100.0 + line[index]
        used = angles_used(tmp_path, tmp_path / "line1.img", "-geometry", write_neon(tmp_path / f"tile{files}.h5", a, True, files))
        assert_angles(used, a)
    write_neon(tmp_path / "less.h5", a, True)
    with h5py.File(tmp_path / "less.h5", "a") as d:
        del d["SITE/Reflectance/Metadata/Logs/L001"]
    result = succeed(normalise("-geometry", tmp_path / "less.h5", tmp_path / "line1.img", tmp_path / "o.tif"))
    assert "its Logs lack 'NEON_L001-1_20220517' of Data_Files, so these pixels have no solar_zenith" in " ".join(result.err.split())


def test_prisma_and_enmap(tmp_path):
    import h5py
    r, a = write_pair(tmp_path)
    with h5py.File(tmp_path / "p.he5", "w") as d:
        d.attrs["Sun_azimuth_angle"] = np.float32(150)
        g = d.create_group("HDFEOS/SWATHS/PRS_L2D_HCO/Geometric Fields")
        g["Solar_Zenith_Angle"], g["Observing_Angle"] = a["solar_zenith"], a["sensor_zenith"]
        g["Rel_Azimuth_Angle"] = a["sensor_azimuth"] - np.float32(150)
    a["solar_azimuth"][:] = 150
    terrain = ["-angle", f"slope={tmp_path / 'slope.tif'}", "-angle", f"aspect={tmp_path / 'aspect.tif'}"]
    for k in ("slope", "aspect"):
        write_scene(tmp_path / f"{k}.tif", a[k][None], driver="GTiff")
    assert_angles(angles_used(tmp_path, tmp_path / "line1.img", "-geometry", tmp_path / "p.he5", *terrain), a)
    corners = "".join(f"<{c}>0</{c}>" for c in ("upper_left", "upper_right", "lower_left", "lower_right"))
    (tmp_path / "e.XML").write_text("<level_X><specific>" + "".join(
        f"<{k} unit='degree'>{corners}<center>{v}</center></{k}>" for k, v in
        (("sunElevationAngle", 51.5), ("sunAzimuthAngle", 151.25), ("viewingZenithAngle", 7.5), ("viewingAzimuthAngle", 281))) + "</specific></level_X>")
    for k, v in (("solar_zenith", 38.5), ("solar_azimuth", 151.25), ("sensor_zenith", 7.5), ("sensor_azimuth", 281)):
        a[k][:] = v
    bands = "".join(f"<bandID number='{k + 1}'><wavelengthCenterOfBand>{w}</wavelengthCenterOfBand><FWHMOfBand>8</FWHMOfBand>"
                    "<GainOfBand>0.0001</GainOfBand><OffsetOfBand>0</OffsetOfBand></bandID>" for k, w in enumerate(NM))
    text = (tmp_path / "e.XML").read_text().replace("<level_X>", "<level_X><base><format>GeoTIFF</format><level>L2A</level></base>")
    (tmp_path / "ENMAP01-METADATA.XML").write_text(text.replace("</specific>", f"<bandCharacterisation>{bands}</bandCharacterisation></specific>"))
    write_scene(tmp_path / "ENMAP01-SPECTRAL_IMAGE.TIF", np.round(r * 10000), driver="GTiff", dtype="i2")
    used = tmp_path / "enmap.tif"
    for args in (["-geometry", tmp_path / "e.XML", tmp_path / "line1.img"], [tmp_path / "ENMAP01-METADATA.XML"], [tmp_path / "ENMAP01-SPECTRAL_IMAGE.TIF"]):
        succeed(normalise("-overwrite", "-brdf", "none", *terrain, "-angles", used, *args, tmp_path / "o.tif"))
        assert_angles(dict(zip(["solar_zenith", "solar_azimuth", "slope", "aspect"], read(used))), a, ["solar_zenith", "solar_azimuth", "slope", "aspect"])


def test_windows_and_other_grids(tmp_path):
    """A window of src is also a window of its angles. Rasters of another size are read at the nearest pixel on the
    ground."""
    r, a = write_pair(tmp_path)
    window = ["-srcwin", "7", "5", "60", "70"]
    cut = {k: v[5:75, 7:67] for k, v in a.items()}
    assert_angles(angles_used(tmp_path, tmp_path / "line1.img", *window, "-geometry", tmp_path / "line1_obs"), cut)
    # Pixels of a third of the size, and a larger file with another first pixel.
    fine = np.repeat(np.repeat(np.stack([a[k] for k in ORDER]), 3, 1), 3, 2)
    write_scene(tmp_path / "fine", fine, names=NAMES, geotransform=(500000, 20 / 3, 0, 4480000, 0, -20 / 3))
    assert_angles(angles_used(tmp_path, tmp_path / "line1.img", "-geometry", tmp_path / "fine"), a)
    assert_angles(angles_used(tmp_path, tmp_path / "line1.img", *window, "-geometry", tmp_path / "fine"), cut)
    wide = np.pad(np.stack([a[k] for k in ORDER]), ((0, 0), (2, 3), (4, 5)), mode="edge")
    write_scene(tmp_path / "wide", wide, names=NAMES, geotransform=(500000 - 80, 20, 0, 4480000 + 40, 0, -20))
    assert_angles(angles_used(tmp_path, tmp_path / "line1.img", "-geometry", tmp_path / "wide"), a)
    write_scene(tmp_path / "nowhere", wide, names=NAMES, geotransform=None, epsg=None)
    result = normalise("-geometry", tmp_path / "nowhere", tmp_path / "line1.img", tmp_path / "o.tif")
    assert result.code == 1 and "has no georeference" in first_error(result)


@pytest.mark.parametrize("epsg", [32616, 4326])
def test_dem(tmp_path, epsg):
    """On the scene's grid, slopes equal gdaldem's, and aspects include the convergence of the grid; a plane in degrees
    agrees."""
    _, a = write_pair(tmp_path, epsg=UTM)
    y, x = np.mgrid[-2:LINES + 2, -2:SAMPLES + 2].astype(float)
    z = 900 + 60 * np.sin(x / 9) * np.cos(y / 13) + 2 * x
    dem = write_scene(tmp_path / "dem.tif", z[None].astype(np.float32), driver="GTiff", geotransform=(500000 - 40, 20, 0, 4480000 + 40, 0, -20), epsg=UTM)
    sun = ["-angle", "solar_zenith=40", "-angle", "solar_azimuth=150", "-angle", f"sensor_zenith={tmp_path / 'z.tif'}", "-angle", "sensor_azimuth=90"]
    write_scene(tmp_path / "z.tif", a["sensor_zenith"][None], driver="GTiff")
    if epsg == 4326:
        gdal.Warp(str(tmp_path / "degrees.tif"), str(dem), dstSRS="EPSG:4326", resampleAlg="cubic", dstNodata=-9999)
        dem = tmp_path / "degrees.tif"
    succeed(normalise("-topography", "cosine", "-brdf", "none", *sun, "-dem", dem, "-angles", tmp_path / "u.tif", tmp_path / "line1.img", tmp_path / "o.tif"))
    ds = gdal.Open(str(tmp_path / "u.tif"))
    got = {ds.GetRasterBand(b + 1).GetDescription(): ds.GetRasterBand(b + 1).ReadAsArray() for b in range(ds.RasterCount)}
    gdal.DEMProcessing(str(tmp_path / "s.tif"), str(tmp_path / "dem.tif"), "slope", computeEdges=False)
    gdal.DEMProcessing(str(tmp_path / "a.tif"), str(tmp_path / "dem.tif"), "aspect", computeEdges=False)
    want = {"slope": read(tmp_path / "s.tif")[0][2:-2, 2:-2], "aspect": read(tmp_path / "a.tif")[0][2:-2, 2:-2]}
    inner = (slice(4, -4), slice(4, -4))
    # UTM zone 16 at 40.5 N: the meridian at 500000 is the central meridian.
    centre = 500000 + 20 * SAMPLES / 2
    longitude = np.degrees((centre - 500000) / 6.37e6 / np.cos(np.radians(40.46)))
    convergence = longitude * np.sin(np.radians(40.46))
    if epsg == 32616:
        assert np.abs(got["slope"] - want["slope"]).max() < 1e-3
        d = (got["aspect"] - want["aspect"] - convergence + 180) % 360 - 180
        assert np.abs(d[want["slope"] > 1]).max() < 0.01
    else:
        assert np.abs(got["slope"] - want["slope"])[inner].mean() < 0.2


@pytest.mark.parametrize("epsg,ground,unit,height", [
    (2225, 1200 / 3937, "", 1), (32616, 1, "ft", 0.3048), (32616, 1, "US survey foot", 1200 / 3937), (2225, 1200 / 3937, "Feet", 0.3048),
    (32616, 1, "m", 1)])
def test_dem_in_feet(tmp_path, epsg, ground, unit, height):
    """Slopes equal gdaldem's slopes of the same DEM in metres."""
    r, a = write_pair(tmp_path)
    y, x = np.mgrid[-2:LINES + 2, -2:SAMPLES + 2].astype(float)
    z = 900 + 60 * np.sin(x / 9) * np.cos(y / 13) + 2 * x
    write_scene(tmp_path / "metres.tif", z[None], driver="GTiff", dtype="f8", geotransform=(500000, 20, 0, 4480000, 0, -20))
    gdal.DEMProcessing(str(tmp_path / "s.tif"), str(tmp_path / "metres.tif"), "slope", computeEdges=False)
    step = 20 / ground
    write_scene(tmp_path / "dem.tif", (z / height)[None], driver="GTiff", dtype="f8", epsg=epsg,
                geotransform=(6000000 - 2 * step, step, 0, 2000000 + 2 * step, 0, -step))
    ds = gdal.Open(str(tmp_path / "dem.tif"), gdal.GA_Update)
    ds.GetRasterBand(1).SetUnitType(unit)
    ds = None
    write_scene(tmp_path / "scene.tif", r, driver="GTiff", wavelengths=list(NM), epsg=epsg, geotransform=(6000000, step, 0, 2000000, 0, -step))
    succeed(normalise("-topography", "cosine", "-brdf", "none", "-angle", "solar_zenith=40", "-angle", "solar_azimuth=150", "-dem", tmp_path / "dem.tif",
                      "-angles", tmp_path / "u.tif", tmp_path / "scene.tif", tmp_path / "o.tif"))
    assert np.abs(read(tmp_path / "u.tif")[2] - read(tmp_path / "s.tif")[0][2:-2, 2:-2]).max() < 1e-3


def test_angles_of_another_line(tmp_path):
    """Files of the scene's size are read pixel by pixel; a warning appears if georeferences differ by more than half a
    pixel."""
    r, a = write_pair(tmp_path)
    for east, warned in ((9, False), (-9, False), (11, True), (4000, True), (None, False)):
        grid = None if east is None else (500000 + east, 20, 0, 4480000, 0, -20)
        write_obs(tmp_path / "obs", a, geotransform=grid, **({"epsg": None} if grid is None else {}))
        result = succeed(normalise("-overwrite", "-geometry", tmp_path / "obs", tmp_path / "line1.img", tmp_path / "o.tif"))
        assert ("check that it belongs to this flight line" in " ".join(result.err.split())) == warned, (east, result)
    write_obs(tmp_path / "moved", a, geotransform=(500400, 20, 0, 4480000, 0, -20))
    result = succeed(normalise("-overwrite", "-srcwin", "7", "5", "60", "70", "-geometry", tmp_path / "moved", tmp_path / "line1.img", tmp_path / "o.tif"))
    assert "its position differs by up to 20 pixels" in " ".join(result.err.split())
    names = [*NAMES[:8], "Slope (other)", "UTC Time"]
    write_obs(tmp_path / "obs", a, names=names)
    result = succeed(normalise("-overwrite", "-geometry", tmp_path / "obs", tmp_path / "line1.img", tmp_path / "o.tif"))
    assert "2 bands of slope: the first is used" in " ".join(result.err.split())


def test_sun(tmp_path):
    """46.5 N, 8 E, 2022-08-28T10:19:16Z: 39.7640, 152.3935. With two times, they apply to the first and the last
    line."""
    r, a = write_pair(tmp_path)
    step = 1e-6
    write_scene(tmp_path / "s.img", r, wavelengths=list(NM), epsg=4326, geotransform=(8 - step * SAMPLES / 2, step, 0, 46.5 + step * LINES / 2, 0, -step))
    rest = [x for k in ("sensor_azimuth", "slope", "aspect") for x in ("-angle", f"{k}={tmp_path / k}.tif")]
    for k in ("sensor_azimuth", "slope", "aspect", "sensor_zenith"):
        write_scene(tmp_path / f"{k}.tif", a[k][None], driver="GTiff")
    rest += ["-angle", f"sensor_zenith={tmp_path / 'sensor_zenith.tif'}"]
    got = angles_used(tmp_path, tmp_path / "s.img", *rest, "-time", "2022-08-28T10:19:16Z")
    assert np.abs(got["solar_zenith"] - 39.7640).max() < 0.001 and np.abs(got["solar_azimuth"] - 152.3935).max() < 0.001
    first = angles_used(tmp_path, tmp_path / "s.img", *rest, "-time", "2022-08-28T10:00:00Z")
    last = angles_used(tmp_path, tmp_path / "s.img", *rest, "-time", "2022-08-28T10:40:00Z")
    both = angles_used(tmp_path, tmp_path / "s.img", *rest, "-time", "2022-08-28T10:00:00Z/2022-08-28T10:40:00Z")
    for k in ("solar_zenith", "solar_azimuth"):
        assert np.abs(both[k][0] - first[k][0]).max() < 1e-4 and np.abs(both[k][-1] - last[k][-1]).max() < 1e-4
    # Tiles and windows give the same result.
    cut = angles_used(tmp_path, tmp_path / "s.img", "-srcwin", "3", "40", "90", "45", *rest, "-time", "2022-08-28T10:00:00Z/2022-08-28T10:40:00Z")
    assert np.abs(cut["solar_azimuth"] - both["solar_azimuth"][40:85, 3:93]).max() < 1e-4


# Bad input
# -----------------------------------------------------------------------------------------------------------------------

@pytest.mark.quick
def test_bad_input(tmp_path):
    r, a = write_pair(tmp_path)
    scene, obs, model, out = tmp_path / "line1.img", tmp_path / "line1_obs", tmp_path / "m.json", tmp_path / "out.tif"
    narrow = tmp_path / "narrow.json"
    succeed(normalise("-geometry", obs, "-model", model, scene))
    succeed(normalise("-geometry", obs, "-model", narrow, "-ndvi", "0.2", "0.9", scene))
    write_obs(tmp_path / "flat", {**a, "slope": 0 * a["slope"]})
    write_obs(tmp_path / "steep", {**a, "slope": 90 - a["slope"]})
    write_obs(tmp_path / "rad", {k: np.radians(v).astype(np.float32) for k, v in a.items()})
    write_scene(tmp_path / "five", np.stack([a[k] for k in ORDER[:6]]), names=NAMES[:6])
    write_scene(tmp_path / "none.img", r)
    write_scene(tmp_path / "far.img", r, wavelengths=list(NM + 700))
    (tmp_path / "other.json").write_text("{}")
    damaged = tmp_path / "damaged.json"
    damaged.write_text(model.read_text().replace('"minimum_slope": 5', '"minimum_slope": 6'))
    base = ["-geometry", obs]
    write_obs(tmp_path / "lost", {k: np.full_like(v, -9999) for k, v in a.items()})
    write_scene(tmp_path / "dem.tif", a["slope"][None], driver="GTiff", geotransform=(900000, 20, 0, 4480000, 0, -20))
    (tmp_path / "there.tif").write_text("kept")
    for code, text, args in [
            (1, "slope, aspect of ", ["-geometry", tmp_path / "five", scene, out]),
            (1, "solar_zenith", [scene, out]),
            (1, "no band within 20 nm of 850", [*base, tmp_path / "none.img", out]),
            (1, "no band within 20 nm of 850", [*base, tmp_path / "far.img", out]),
            (1, "no bin of NDVI can be used", [*base, "-min-pixels", "90000", scene, out]),
            (1, "no bin of NDVI can be used", ["-topography", "none", "-angle", "sensor_zenith=3", *base, "-angle", "sensor_azimuth=90",
                                               "-angle", "solar_zenith=40", "-angle", "solar_azimuth=100", scene, out]),
            (1, "other.json", ["-apply", tmp_path / "other.json", *base, scene, out]),
            (1, "damaged", ["-apply", damaged, *base, scene, out]),
            (1, "was made with a different value", [*base, "-append", "-model", model, "-min-slope", "8", scene]),
            (1, "already includes", [*base, "-append", "-model", model, scene]),
            # Refused before a pass that would fail later.
            (1, "already includes", ["-geometry", tmp_path / "lost", "-append", "-model", model, scene]),
            (1, "already exists", ["-geometry", tmp_path / "lost", scene, tmp_path / "there.tif"]),
            (1, "all 9900 valid pixels have unknown angles", ["-geometry", tmp_path / "lost", scene, out]),
            (1, "all 9900 valid pixels have unknown angles", [*base, "-dem", tmp_path / "dem.tif", "-topography", "cosine", "-brdf", "none", scene, out]),
            (1, "all 9900 valid pixels have unknown angles", [*base, "-dem", tmp_path / "dem.tif", "-brdf", "none", scene, out]),
            (1, "the edge 0.05 is outside the range of NDVI of", ["-merge", narrow, "-bins", "0.05,0.5", "-model", tmp_path / "x.json"]),
            (1, "can be used: the largest of 18 bins has", [*base, "-min-pixels", "90000", scene, out]),
            (2, "-angle: slope 'nan' is not a number", ["-angle", "slope=nan", *base, scene, out]),
            (2, "-angle: slope '-inf' is not a number", ["-angle", "slope=-inf", *base, scene, out]),
            (1, "does not exist", ["-append", "-model", tmp_path / "new.json"]),
            (2, "-topography cannot be used with -apply", ["-apply", model, "-topography", "c", *base, scene, out]),
            (2, "-model cannot be used with -apply", ["-apply", model, "-model", "x.json", *base, scene, out]),
            (2, "-topography none cannot be used with -brdf none", ["-topography", "none", "-brdf", "none", *base, scene, out]),
            (2, "dst is missing", [*base, scene]),
            (2, "src is missing", ["-model", tmp_path / "x.json"]),
            (2, "-merge requires -model", [*base, "-merge", model, scene, out]),
            (2, "is not below", ["-ndvi", "0.5", "0.5", *base, scene, out]),
            (2, "not a multiple of 0.01", ["-ndvi", "0.055", "0.5", *base, scene, out]),
            (2, "out of the range of -ndvi", ["-bins", "0.01,0.5", *base, scene, out]),
            (2, "are not in ascending order", ["-bins", "0.5,0.2", *base, scene, out]),
            (2, "out of range (1 to 95)", ["-bins", "96", *base, scene, out]),
            (2, "-bins: 'many' is not a number", ["-bins", "many", *base, scene, out]),
            (2, "-min-pixels", ["-min-pixels", "9", *base, scene, out]),
            *((2, f"{option} requires {needed}", [option, "2", *method, *base, scene, out]) for option, needed, *method in (
                ("-bins", "-brdf flex", "-brdf", "universal"), ("-b-r", "-brdf flex or universal", "-brdf", "none"),
                ("-solar-zenith", "-brdf flex or universal", "-brdf", "none"), ("-min-slope", "-topography c or scs+c", "-topography", "cosine"),
                ("-min-slope", "-topography c or scs+c", "-topography", "none"))),
            (2, "-min-slope", ["-min-slope", "46", *base, scene, out]),
            (2, "-min-cos-i", ["-min-cos-i", "0", *base, scene, out]),
            (2, "-b-r", ["-b-r", "11", *base, scene, out]),
            (2, "-solar-zenith: 81 is out of range", ["-solar-zenith", "81", *base, scene, out]),
            (2, "-angle: 'sun=3' is not NAME=DEGREES", ["-angle", "sun=3", *base, scene, out]),
            (2, "out of range (0 to below 90)", ["-angle", "slope=90", *base, scene, out]),
            (2, "slope is given twice", ["-angle", "slope=9", "-angle", "slope=8", *base, scene, out]),
            (2, "is not a time", ["-time", "yesterday", *base, scene, out]),
            (2, "is not a time", ["-time", "2022-02-30T10:00:00Z", *base, scene, out])]:
        result = normalise(*args)
        assert result.code == code and text in first_error(result), (args, result)
        assert not out.exists()
    for file, text in [("flat", "terrain is not corrected"), ("steep", "the median slope is"), ("rad", "If the angles are in radians")]:
        result = normalise("-geometry", tmp_path / file, "-overwrite", scene, out)
        assert text in result.err, (file, result)
    result = succeed(normalise(*base, "-min-pixels", "550", "-overwrite", scene, out))
    assert "not used" in result.err
    plan = succeed(normalise(*base, "-dry-run", scene, tmp_path / "never.tif")).out
    assert all(word in plan for word in ("topography", "brdf", "correction")) and not (tmp_path / "never.tif").exists()
