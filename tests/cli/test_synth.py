# SPDX-License-Identifier: MIT
"""gdal_hsi_synth: equal values for any format, tiles and threads; the truth in its outputs matches the scene."""

import json
import math

import numpy as np
import pytest
from osgeo import gdal, ogr, osr

from conftest import PATIENCE, assert_untouched, envi_header, first_error, read, run, sizes_below, start, succeed, wait_for

SIZE = ("-size", 150, 90, 30)


def synth(*args, **kwargs):
    return run("gdal_hsi_synth", "-q", *args, **kwargs)


def made(path, *args):
    succeed(synth(*args, path))
    return gdal.Open(str(path)).ReadAsArray()


def nodata_of(path):
    dataset = gdal.Open(str(path))
    return dataset.GetRasterBand(1).GetNoDataValue()


def test_formats_tiles_and_threads_give_the_same_values(out):
    first = made(out / "a.tif", *SIZE, "-targets", 5)
    variants = {
        "bsq.dat": ("-interleave", "bsq"), "b.bil": (), "c.bip": (), "envi.img": ("-of", "ENVI", "-interleave", "bil"),
        "tiles.tif": ("-tile", 37, 11, "-threads", 3), "one.tif": ("-threads", 1),
        "pixel.tif": ("-interleave", "bip"), "small.dat": ("-memory", "24MB", "-tile", 64, 7),
        "double.tif": ("-ot", "Float64"), "deflate.tif": ("-co", "COMPRESS=DEFLATE")}
    for name, options in variants.items():
        again = made(out / name, *SIZE, "-targets", 5, *options)
        assert np.array_equal(again, first), name
    assert envi_header(out / "b.bil")["interleave"] == "bil"
    assert envi_header(out / "c.bip")["interleave"] == "bip"
    assert gdal.Open(str(out / "pixel.tif")).GetMetadataItem("INTERLEAVE", "IMAGE_STRUCTURE") == "PIXEL"


def test_raw_files_are_the_same_byte_for_byte(out):
    files = []
    for k, options in enumerate([("-threads", 1), ("-threads", 4, "-tile", 64, 5), ("-tile", 150, 1)]):
        made(out / f"{k}.dat", *SIZE, *options)
        files.append((out / f"{k}.dat").read_bytes())
    assert files[0] == files[1] == files[2]
    assert len(files[0]) == 150 * 90 * 30 * 4


def test_seeds_differ(out):
    assert not np.array_equal(made(out / "a.tif", *SIZE), made(out / "b.tif", *SIZE, "-seed", 2))


@pytest.mark.parametrize("snr", [15, 40])
def test_noise_has_the_ratio_that_was_asked_for(out, snr):
    clean = made(out / "clean.tif", "-size", 300, 200, 12, "-snr", "inf").astype(float)
    noisy = made(out / "noisy.tif", "-size", 300, 200, 12, "-snr", snr).astype(float)
    got = 10 * np.log10((clean ** 2).mean(axis=(1, 2)) / ((noisy - clean) ** 2).mean(axis=(1, 2)))
    assert np.abs(got - snr).max() < 0.5


@pytest.mark.quick
def test_truth_tells_targets_spectra_and_noise(out):
    data = made(out / "a.tif", *SIZE, "-targets", 12, "-truth", out / "truth.json", "-snr", 60)
    truth = json.loads((out / "truth.json").read_text())
    assert truth["size"] == [150, 90, 30] and truth["seed"] == 1 and truth["snr_db"] == 60
    assert len(truth["targets"]) == 12 and len(truth["endmembers"]) == 8
    sigma = np.array(truth["noise_sigma"])
    for t, target in enumerate(truth["targets"]):
        assert target["endmember"] == t % 8
        spectrum = np.array(truth["endmembers"][target["endmember"]]["spectrum"])
        off = (data[:, target["line"], target["sample"]] - spectrum) / sigma
        assert np.abs(off).max() < 4.2  # noise is bounded by 3.9 sigma; the remainder is rounding
    assert truth["wavelengths_nm"][0] == 400 and truth["wavelengths_nm"][-1] == 2500


def test_plants_have_a_trait_and_plots(out):
    """Without noise, a pixel of plants is 1 - c(b) t times its value without the trait, with c as documented."""
    size = ("-size", 150, 120, 60, "-snr", "inf", "-endmembers", 12)
    plain = made(out / "plain.tif", *size).astype(float)
    scene = made(out / "scene.tif", *size, "-values", out / "t.tif", "-plots", out / "plots.gpkg", "-labels", out / "labels.tif").astype(float)
    trait = read(out / "t.tif").astype(float).squeeze()
    covered = np.isfinite(trait)
    assert 0.05 < covered.mean() < 0.95 and trait[covered].min() >= 0.8 and trait[covered].max() <= 4.4 and np.ptp(trait[covered]) > 1
    dataset = gdal.Open(str(out / "t.tif"))
    assert dataset.GetRasterBand(1).GetDescription() == "nitrogen" and dataset.GetRasterBand(1).GetUnitType() == "%"
    nm = np.linspace(400, 2500, 60)
    width = 1.1 * (nm[1] - nm[0])
    points = nm[:, None] + width * ((np.arange(9) + 0.5) / 9 - 0.5)
    c = sum(depth * np.exp(-0.5 * ((points - at) / sigma) ** 2).mean(1)
            for at, depth, sigma in ((1510, .03, 25), (2060, .04, 30), (2180, .04, 30), (2300, .02, 25)))
    taken = 1 - scene / plain
    expected = c[:, None, None] * trait
    # A part of a pixel may be another material
    assert taken[:, covered].min() > -1e-6 and (taken - expected)[:, covered].max() < 1e-4
    pure = covered & (np.abs(taken / np.where(expected > 0.01, expected, np.inf)).max(0) > 0.999)
    assert pure.sum() > 20 and np.abs(taken - expected)[:, pure].max() < 5e-4
    assert np.abs(taken[:, np.isin(read(out / "labels.tif").squeeze(), (2, 3, 4))]).max() < 0.15
    opened = ogr.Open(str(out / "plots.gpkg"))
    plots = opened.GetLayer(0)
    assert 20 < plots.GetFeatureCount() <= 120
    seen = np.zeros(trait.shape, bool)
    for plot in plots:
        x0, x1, y0, y1 = plot.GetGeometryRef().GetEnvelope()
        j, i = round((x0 - 500000) / 30), round((5800000 - y1) / 30)
        assert (x1 - x0, y1 - y0) == (90, 90) and covered[i:i + 3, j:j + 3].all() and not seen[max(i - 1, 0):i + 4, max(j - 1, 0):j + 4].any()
        seen[i:i + 3, j:j + 3] = True
        assert plot["nitrogen"] == pytest.approx(trait[i:i + 3, j:j + 3].mean(), rel=1e-6)
    assert np.array_equal(made(out / "tiles.tif", *size, "-values", out / "t2.tif", "-tile", 37, 11), scene.astype(np.float32))
    assert np.array_equal(read(out / "t2.tif"), read(out / "t.tif"), equal_nan=True)
    assert "values" in first_error(synth(*size, "-corner", 3, 4, "-values", out / "t3.tif", out / "line.tif"))


@pytest.mark.parametrize("pattern, dimmest", [("land", 0.1), ("fields", 0.69)])
def test_labels_are_the_dominant_material(out, pattern, dimmest):
    data = made(out / "a.tif", *SIZE, "-pattern", pattern, "-targets", 8, "-labels", out / "labels.tif", "-truth", out / "t.json",
                "-snr", "inf", "-nodata-stripe", 20, 3)
    dataset = gdal.Open(str(out / "labels.tif"))
    labels = dataset.ReadAsArray()
    truth = json.loads((out / "t.json").read_text())
    names = [e["name"] for e in truth["endmembers"]]
    band = dataset.GetRasterBand(1)
    assert band.DataType == gdal.GDT_Byte
    # GDAL 3.6's Python returns None for category names, but gdalinfo shows them.
    info = gdal.Info(str(out / "labels.tif"))
    for label, name in enumerate(["Unclassified"] + names):
        assert f" {label}: {name}\n" in info
    colours = [band.GetColorTable().GetColorEntry(k) for k in range(9)]
    assert len(set(colours)) == 9
    assert dataset.GetGeoTransform() == gdal.Open(str(out / "a.tif")).GetGeoTransform()
    assert np.array_equal(labels == 0, np.broadcast_to((np.arange(150) >= 20) & (np.arange(150) < 23), (90, 150)))
    # Unmixing without noise recovers the labels.
    spectra = np.array([e["spectrum"] for e in truth["endmembers"]])
    abundances = np.linalg.lstsq(spectra.T, data.reshape(30, -1), rcond=None)[0].reshape(8, 90, 150)
    agree = (abundances.argmax(axis=0) + 1 == labels)[labels > 0]
    assert agree.mean() > 0.999
    sums = abundances.sum(axis=0)[labels > 0]
    assert sums.min() > dimmest and sums.max() < 1.001


def test_metadata_of_both_formats(out):
    made(out / "a.tif", *SIZE, "-bad-bands", 4)
    made(out / "a.dat", *SIZE, "-bad-bands", 4)
    header = envi_header(out / "a.dat")
    wavelengths = [float(w) for w in header["wavelength"]]
    assert len(wavelengths) == 30 and wavelengths[0] == 400 and wavelengths[-1] == 2500
    assert header["wavelength units"] == "Nanometers" and len(header["fwhm"]) == 30
    assert header["bbl"].count("0") == 4 and header["bbl"].count("1") == 26
    red, green, blue = (wavelengths[int(b) - 1] for b in header["default bands"])
    assert abs(red - 650) < 50 and abs(green - 550) < 50 and abs(blue - 460) < 50
    for b, good in enumerate(header["bbl"]):
        if good == "0":
            assert min(abs(wavelengths[b] - 1400), abs(wavelengths[b] - 1900)) < 150
    tif = gdal.Open(str(out / "a.tif"))
    for b in range(30):
        items = tif.GetRasterBand(b + 1).GetMetadata()
        assert float(items["wavelength"]) == wavelengths[b] and items["wavelength_units"] == "Nanometers"
        assert items["bbl"] == header["bbl"][b] and float(items["fwhm"]) == float(header["fwhm"][b])
        assert tif.GetRasterBand(b + 1).GetDescription() == f"Band {b + 1}"
    for name in ("a.tif", "a.dat"):
        dataset = gdal.Open(str(out / name))
        assert dataset.GetSpatialRef().IsSame(osr.SpatialReference(osr.SRS_WKT_WGS84_LAT_LONG)) == 0
        assert dataset.GetSpatialRef().GetAuthorityCode(None) == "32633"
        assert dataset.GetGeoTransform() == (500000, 30, 0, 5800000, 0, -30)
        assert "gdal_hsi_synth" in dataset.GetMetadataItem("HSI_HISTORY")
        assert dataset.GetRasterBand(1).GetNoDataValue() is None


@pytest.mark.parametrize("name", ["a.tif", "a.dat"])
def test_rotation_and_other_reference_systems(out, name):
    made(out / name, *SIZE, "-rotate", 30, "-epsg", 32719)
    dataset = gdal.Open(str(out / name))
    gt = dataset.GetGeoTransform()
    assert math.hypot(gt[1], gt[4]) == pytest.approx(30) and math.degrees(math.atan2(gt[4], gt[1])) == pytest.approx(30)
    assert gt[1] * gt[2] + gt[4] * gt[5] == pytest.approx(0, abs=1e-6)
    assert dataset.GetSpatialRef().GetAuthorityCode(None) == "32719"


def test_geographic_scenes_have_small_pixels(out):
    made(out / "a.tif", *SIZE, "-epsg", 4326)
    gt = gdal.Open(str(out / "a.tif")).GetGeoTransform()
    assert 0 < gt[1] < 0.001 and -90 < gt[3] < 90


@pytest.mark.parametrize("name", ["a.tif", "a.dat"])
def test_integers_hold_scaled_reflectance(out, name):
    floats = made(out / "f.tif", *SIZE)
    for kind in ("Int16", "UInt16"):
        whole = made(out / name, *SIZE, "-ot", kind, "-overwrite", "-nodata-stripe", 5, 2)
        dataset = gdal.Open(str(out / name))
        assert gdal.GetDataTypeName(dataset.GetRasterBand(1).DataType) == kind
        nodata = dataset.GetRasterBand(1).GetNoDataValue()
        assert nodata == {"Int16": -9999, "UInt16": 65535}[kind]
        assert (whole[:, :, 5:7] == nodata).all() and (whole == nodata).sum() == 30 * 90 * 2
        keep = [s for s in range(150) if s not in (5, 6)]
        want = np.maximum(floats[:, :, keep] * 10000.0, 0 if kind == "UInt16" else -32768)
        assert np.abs(whole[:, :, keep] - want).max() <= 0.51


@pytest.mark.parametrize("name", ["a.tif", "a.dat"])
def test_nan_pixels_and_nodata_live_side_by_side(out, name):
    data = made(out / name, *SIZE, "-nodata-stripe", 100, 10, "-nan-pixels", 9, "-truth", out / "t.json")
    assert nodata_of(out / name) == -9999
    assert (data[:, :, 100:110] == -9999).all() and (data == -9999).sum() == 30 * 90 * 10
    nan = np.isnan(data)
    places = {(p["line"], p["sample"]) for p in json.loads((out / "t.json").read_text())["nan_pixels"]}
    assert {tuple(p) for p in np.argwhere(nan.any(axis=0))} == places and len(places) == 9
    assert sorted(nan.sum(axis=0)[nan.any(axis=0)]) == [1] * 4 + [30] * 5


def test_another_nodata_value(out):
    data = made(out / "a.tif", *SIZE, "-nodata-stripe", 0, 4, "-dstnodata", "-1")
    assert nodata_of(out / "a.tif") == -1
    assert (data[:, :, :4] == -1).all()
    data = made(out / "b.tif", *SIZE, "-nodata-stripe", 0, 4, "-dstnodata", "nan")
    assert np.isnan(data[:, :, :4]).all() and not np.isnan(data[:, :, 4:]).any()


def test_memory_stays_bounded(out):
    size = ("-size", 2000, 3000, 40)  # 960 MB
    result = succeed(synth(*size, "-memory", "64MB", "-ot", "Int16", "-report", out / "r.json", out / "big.dat"))
    report = json.loads((out / "r.json").read_text())
    assert report["peak_resident_bytes"] < 200 << 20
    assert report["passes"][0]["buffer_bytes"] < 64 << 20
    assert report["passes"][0]["bytes_written"] == 2000 * 3000 * 40 * 2 == (out / "big.dat").stat().st_size
    assert result.err == ""


def test_dry_run_writes_nothing(out):
    with assert_untouched(out):
        result = succeed(run("gdal_hsi_synth", *SIZE, "-labels", out / "l.tif", "-truth", out / "t.json", "-dry-run",
                             out / "a.tif"))
    assert "Pass paint" in result.out


BAD = {
    "-size": (("-size", 0, 4, 4), 2),
    "-endmembers": ((*SIZE, "-endmembers", 99), 2),
    "-snr": ((*SIZE, "-snr", "loud"), 2),
    "-targets": ((*SIZE, "-targets", 150 * 90), 2),
    "-nodata-stripe": ((*SIZE, "-nodata-stripe", 149, 2), 2),
    "-nan-pixels": ((*SIZE, "-nan-pixels", 3, "-ot", "Int16"), 2),
    "-bad-bands": ((*SIZE, "-bad-bands", 30), 2),
    "-interleave": ((*SIZE, "-interleave", "bil"), 2),  # a.tif
    "-dstnodata": ((*SIZE, "-dstnodata", -1), 2),
    "EPSG:99": ((*SIZE, "-epsg", 99), 2),
    "-device": ((*SIZE, "-device", "cpu"), 2),
    "does not exist": ((*SIZE, "-labels", "/nonexistent/l.tif"), 1),
    "-truth": ((*SIZE, "-truth", "/nonexistent/t.json"), 1),
}


@pytest.mark.quick
@pytest.mark.parametrize("word", BAD)
def test_refuses(out, word):
    args, code = BAD[word]
    with assert_untouched(out):
        result = synth(*args, out / "a.tif")
    assert result.code == code, result.err
    assert word in first_error(result)


def test_existing_files_stay(out):
    for name in ("a.tif", "l.tif", "t.json"):
        (out / name).write_text("mine")
    with assert_untouched(out):
        assert synth(*SIZE, out / "a.tif").code == 1
        assert synth(*SIZE, "-labels", out / "l.tif", out / "b.tif").code == 1
        assert synth(*SIZE, "-truth", out / "t.json", out / "b.tif").code == 1
        assert synth(*SIZE, "-labels", out / "c.tif", out / "c.tif").code == 2
    succeed(synth(*SIZE, "-overwrite", "-labels", out / "l.tif", "-truth", out / "t.json", out / "a.tif"))
    assert read(out / "a.tif").shape == (30, 90, 150)


def test_an_interrupted_run_leaves_nothing(out):
    with assert_untouched(out):
        process = start("gdal_hsi_synth", "-q", "-size", 4000, 40000, 100, "-labels", out / "l.tif", "-truth",
                        out / "t.json", out / "a.dat")
        assert wait_for(lambda: any(size > 10 << 20 for size in sizes_below(out, "a.dat")))
        process.terminate()
        _, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 1 and b"interrupted" in err


def test_hills_are_those_that_the_angles_tell(out):
    """A flight line over hills, by its angles: terrain times the BRDF of plants and of others, divided by the value at
    nadir under a sun at 40 degrees. Two flight lines see the same hills."""
    line = ["-size", 60, 50, 60, "-seed", 3, "-snr", "inf"]
    seen = made(out / "a.tif", *line, "-corner", 5, 7, "-rotate", 30, "-sun", 35, 120, "-geometry", out / "obs.tif", "-flat", out / "flat.tif").astype(float)
    flat = read(out / "flat.tif").astype(float)
    _, va, vz, sa, sz, _, b, a, ci, _ = read(out / "obs.tif").astype(float)
    assert (sa == 120).all() and (sz == 35).all() and 15 < b.max() < 30 and 19 < vz.max() <= 20
    # Where rounding in single precision does not hide it: right of the line's middle, the sensor is to the left.
    assert abs(va[0, -1] - (60 + 180)) < 1e-4 and abs(va[0, 0] - 60) < 1e-4
    rad = np.radians
    cos_i = np.cos(rad(sz)) * np.cos(rad(b)) + np.sin(rad(sz)) * np.sin(rad(b)) * np.cos(rad(sa - a))
    assert np.abs(cos_i - ci).max() < 1e-5
    terrain = (0.7 * np.maximum(cos_i, 0) + 0.3) / (0.7 * np.cos(rad(b)) * np.cos(rad(sz)) + 0.3)

    def kernels(ts, tv, w):
        x = np.arccos(np.clip(np.cos(ts) * np.cos(tv) + np.sin(ts) * np.sin(tv) * np.cos(w), -1, 1))
        kv = ((np.pi / 2 - x) * np.cos(x) + np.sin(x)) / (np.cos(ts) + np.cos(tv)) - np.pi / 4
        s, v = 2.5 * np.tan(ts), 2.5 * np.tan(tv)
        S, V = np.hypot(1, s), np.hypot(1, v)
        t = np.arccos(np.clip(2 * np.sqrt(s * s + v * v - 2 * s * v * np.cos(w) + (s * v * np.sin(w)) ** 2) / (S + V), -1, 1))
        O = (t - np.sin(t) * np.cos(t)) * (S + V) / np.pi
        E = 1 + 1 / (S * V) + s * v / (S * V) * np.cos(w)
        return 0.8 * kv + 0.15 * (E * S * V / (S + V - O) - 2)

    nm = np.linspace(400, 2500, 60)
    red, nir = flat[np.argmin(abs(nm - 660))], flat[np.argmin(abs(nm - 850))]
    plants = 0.3 + 0.7 * np.clip((nir - red) / (nir + red), 0, 1)
    want = flat * terrain * (1 + plants * kernels(rad(sz), rad(vz), rad(va - sa))) / (1 + plants * kernels(rad(40.0), 0.0, 0.0))
    np.testing.assert_allclose(seen, want, rtol=2e-5)
    made(out / "b.tif", *line, "-corner", 15, 17, "-geometry", out / "obs2.tif")
    made(out / "c.tif", *line, "-corner", 15, 27, "-geometry", out / "obs3.tif")
    np.testing.assert_allclose(read(out / "obs2.tif")[6, 10:], read(out / "obs3.tif")[6, :-10], atol=1e-4)
    for args, text in [(["-geometry", out / "x.tif"], "-geometry requires -corner"), (["-corner", 0, 0, "-flat", out / "x.tif"], "-flat requires -geometry"),
                       (["-corner", 0, 0, "-geometry", out / "x.tif", "-sun", 81, 0], "-sun")]:
        result = run("gdal_hsi_synth", *line, *args, out / "y.tif")
        assert result.code == 2 and text in first_error(result)
