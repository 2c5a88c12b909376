# SPDX-License-Identifier: MIT
"""Values that a float cannot represent: integers above 2^24, and doubles with more than seven digits. Copies are exact,
and differences are those of the stored values. If everything is computed in single precision, a warning names the
bands."""
import json
import re

import numpy as np
import pytest
from conftest import cube, first_error, gdal, open_band, read, run, succeed

BIG = 16777216  # 2^24, above which floats skip integers
TYPES = {"i4": gdal.GDT_Int32, "u4": gdal.GDT_UInt32, "i8": gdal.GDT_Int64, "u8": gdal.GDT_UInt64,
         "f4": gdal.GDT_Float32, "f8": gdal.GDT_Float64, "i2": gdal.GDT_Int16}


def write(path, data, dtype, driver="GTiff", nodata=None, options=()):
    """Writes (bands, lines, samples) in the type itself, with nodata in this type."""
    data = np.asarray(data, dtype)
    bands, lines, samples = data.shape
    dataset = gdal.GetDriverByName(driver).Create(str(path), samples, lines, bands, TYPES[dtype], list(options))
    dataset.SetGeoTransform((0, 1, 0, 0, 0, -1))
    for b in range(bands):
        if nodata is not None:
            dataset.GetRasterBand(b + 1).SetNoDataValue(nodata)
        dataset.GetRasterBand(b + 1).WriteArray(data[b])
    return path


def stored(path):
    data = gdal.Open(str(path)).ReadAsArray()
    return data if data.ndim == 3 else data[None]


def hard_values(dtype, bands=3, lines=7, samples=9):
    """Returns numbers of the type that single precision changes, with a few exceptions."""
    random = np.random.default_rng(3)
    if dtype == "f8":
        data = 100 + 7 * random.random((bands, lines, samples))
        data[0, 0, :3] = (1e300, -1e-300, 0.1)
        return data
    info = np.iinfo(dtype)
    data = random.integers(info.max // 2, info.max, (bands, lines, samples), dtype)
    data[0, 0, :4] = (info.max, info.min + 1, BIG + 1, 1)
    return data


def lookup(folder, lines, samples):
    """Makes a table that rotates the scene by half a turn and omits its first line."""
    line, sample = np.meshgrid(np.arange(lines, 0, -1), np.arange(samples, 0, -1), indexing="ij")
    line[-1] = sample[-1] = 0
    return write(folder / "glt.tif", np.stack((sample, line)), "i4")


LAYOUTS = {"bsq.dat": ("ENVI", ["INTERLEAVE=BSQ"]), "bil.dat": ("ENVI", ["INTERLEAVE=BIL"]),
           "bip.dat": ("ENVI", ["INTERLEAVE=BIP"]), "plain.tif": ("GTiff", []),
           "pixel.tif": ("GTiff", ["INTERLEAVE=PIXEL"]),
           "tiled.tif": ("GTiff", ["TILED=YES", "BLOCKXSIZE=16", "BLOCKYSIZE=16", "COMPRESS=DEFLATE"])}


@pytest.mark.parametrize("dtype", ["i4", "u4", "i8", "u8", "f8"])
def test_a_copy_is_in_the_type_of_its_source_to_the_bit(tmp_path, dtype):
    data = hard_values(dtype)
    glt = lookup(tmp_path, *data.shape[1:])
    wanted = data[:, ::-1, ::-1]
    done = 0
    for name, (driver, options) in LAYOUTS.items():
        if driver == "ENVI" and dtype in ("i8", "u8"):
            continue  # some GDALs cannot write them
        source = write(tmp_path / name, data, dtype, driver, options=options)
        for out in ("o.tif", "o.dat", "p.tif"):
            target = tmp_path / f"{name}_{out}"
            extra = ("-co", "INTERLEAVE=PIXEL", "-co", "COMPRESS=LZW") if out == "p.tif" else ("-co", "INTERLEAVE=BIP") if out == "o.dat" else ()
            if out == "o.dat" and dtype in ("i8", "u8"):
                continue
            succeed(run("gdal_hsi_orthorectify", "-q", "-glt", glt, *extra, source, target))
            band = open_band(target)
            assert band.DataType == TYPES[dtype], (name, out)
            got = stored(target)
            np.testing.assert_array_equal(got[:, :-1], wanted[:, :-1], err_msg=f"{name} {out}")
            hole = band.GetNoDataValueAsInt64() if dtype == "i8" else band.GetNoDataValueAsUInt64() if dtype == "u8" else band.GetNoDataValue()
            assert hole is not None
            assert np.all(np.isnan(got[:, -1]) if np.isnan(hole) else got[:, -1] == hole)
            done += 1
    assert done >= 6


def test_nodata_of_a_copy_is_compared_and_written_in_the_type(tmp_path):
    data = np.full((2, 3, 4), BIG + 2, "i4")
    data[:, 1, 1] = BIG + 1  # nodata, which is the neighbour of values as a float
    data[:, 1, 2] = BIG
    source = write(tmp_path / "a.tif", data, "i4", nodata=BIG + 1)
    glt = lookup(tmp_path, 3, 4)
    succeed(run("gdal_hsi_orthorectify", "-q", "-glt", glt, source, tmp_path / "o.tif"))
    assert open_band(tmp_path / "o.tif").GetNoDataValue() == BIG + 1
    np.testing.assert_array_equal(stored(tmp_path / "o.tif")[:, :-1], data[:, ::-1, ::-1][:, :-1])
    # Another nodata value that some pixel has by chance: this pixel's value moves by one, and is counted.
    result = succeed(run("gdal_hsi_orthorectify", "-q", "-glt", glt, "-dstnodata", BIG + 2, source, tmp_path / "p.tif"))
    assert re.search(r"\d+ values are stored as 16777217 instead of 16777218", result.err)
    wanted = np.where(data == BIG + 2, BIG + 1, data)
    wanted[data == BIG + 1] = BIG + 2
    np.testing.assert_array_equal(stored(tmp_path / "p.tif")[:, :-1], wanted[:, ::-1, ::-1][:, :-1])
    # Converted to another type as gdal_translate does.
    succeed(run("gdal_hsi_orthorectify", "-q", "-glt", glt, "-ot", "Int16", source, tmp_path / "q.tif"))
    assert stored(tmp_path / "q.tif")[0, 0, 0] == 32767
    succeed(run("gdal_hsi_orthorectify", "-q", "-glt", glt, "-ot", "Float64", source, tmp_path / "r.tif"))
    assert stored(tmp_path / "r.tif")[0, 0, 0] == BIG + 2
    # A value that is not a float.
    succeed(run("gdal_hsi_orthorectify", "-q", "-glt", glt, "-ot", "Float64", "-dstnodata", 0.1, source, tmp_path / "s.tif"))
    assert np.all(stored(tmp_path / "s.tif")[:, -1] == 0.1)


def test_masked_pixels_of_a_copy_become_nodata(tmp_path):
    gdal.SetConfigOption("GDAL_TIFF_INTERNAL_MASK", "YES")
    source = write(tmp_path / "a.tif", hard_values("f8"), "f8")
    dataset = gdal.Open(str(source), gdal.GA_Update)
    dataset.CreateMaskBand(gdal.GMF_PER_DATASET)
    mask = np.full((7, 9), 255, "u1")
    mask[2, 3] = 0
    dataset.GetRasterBand(1).GetMaskBand().WriteArray(mask)
    dataset = None
    succeed(run("gdal_hsi_orthorectify", "-q", "-glt", lookup(tmp_path, 7, 9), source, tmp_path / "o.tif"))
    got = stored(tmp_path / "o.tif")
    assert np.all(np.isnan(got[:, 4, 5])) and np.isnan(got[:, :-1]).sum() == 3


def test_types_without_a_common_one_are_refused(tmp_path):
    write(tmp_path / "i.tif", hard_values("i8", bands=1), "i8")
    write(tmp_path / "f.tif", hard_values("f8", bands=1), "f8")
    gdal.BuildVRT(str(tmp_path / "both.vrt"), [str(tmp_path / "i.tif"), str(tmp_path / "f.tif")], separate=True)
    glt = lookup(tmp_path, 7, 9)
    result = run("gdal_hsi_orthorectify", "-q", "-glt", glt, tmp_path / "both.vrt", tmp_path / "o.tif")
    assert result.code == 1 and "no type can store the values of all" in first_error(result)
    assert not (tmp_path / "o.tif").exists()
    succeed(run("gdal_hsi_orthorectify", "-q", "-b", 1, "-glt", glt, tmp_path / "both.vrt", tmp_path / "o.tif"))


def compared(*args):
    return json.loads(succeed(run("gdal_hsi_compare", "-json", *args)).out)


def reference(s, t):
    """Returns the spectral metrics' means and maxima, in long double."""
    s, t = s.astype(np.longdouble), t.astype(np.longdouble)
    n = len(s)
    gap = t - s
    norm = lambda x: np.sqrt((x * x).sum(0))
    u, v = s / norm(s), t / norm(t)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = {"nrmse": np.sqrt((gap * gap).sum(0) / ((s - s.mean(0)) ** 2).sum(0)),
                  "maxsde": n * abs(gap).max(0) / abs(s).sum(0), "rmse": np.sqrt((gap * gap).mean(0)), "maxabs": abs(gap).max(0),
                  "sad": np.degrees(2 * np.arctan2(norm(u - v), norm(u + v)))}
    return {k: (v.mean(), v.max()) for k, v in values.items()}


@pytest.mark.parametrize("kind", ["f8", "i4", "i8", "u8", "mixed"])
def test_a_comparison_subtracts_the_numbers(tmp_path, kind):
    random = np.random.default_rng(0)
    shape = (4, 20, 21)
    if kind == "f8":
        s, t = (1e6 + 1e-3 * random.standard_normal(shape) for _ in range(2))
    elif kind == "mixed":
        s, t = np.round(1e6 + 10 * random.standard_normal(shape)).astype("f4"), 1e6 + 10 * random.standard_normal(shape)
    else:
        middle = {"i4": 2**25, "i8": 2**60, "u8": 2**63}[kind]
        s, t = (np.array(middle, kind) + random.integers(0, 20, shape).astype(kind) for _ in range(2))
    write(tmp_path / "a.tif", s, "f4" if kind == "mixed" else kind)
    write(tmp_path / "b.tif", t, "f8" if kind == "mixed" else kind, options=["INTERLEAVE=PIXEL", "COMPRESS=DEFLATE"])
    found = compared(tmp_path / "a.tif", tmp_path / "b.tif", "-map", tmp_path / "map.tif")["metrics"]
    for name, (mean, largest) in reference(s, t).items():
        # Angles and norms of 64-bit integers are those of doubles: 1e-16 of each value.
        slack = 1e-4 if name == "sad" or (name == "nrmse" and kind in ("i8", "u8")) else 1e-7
        if name in ("sad", "nrmse") and kind in ("i8", "u8"):
            continue
        assert found[name]["mean"] == pytest.approx(float(mean), rel=slack), name
        assert found[name]["maximum"] == pytest.approx(float(largest), rel=slack), name
    wanted = np.abs(t.astype(np.longdouble) - s.astype(np.longdouble)).max(0).astype("f4")
    np.testing.assert_allclose(stored(tmp_path / "map.tif")[4], wanted, rtol=1e-6)
    # One value that differs by the least step is found by the thresholds.
    other = s.copy()
    other[2, 5, 6] = np.nextafter(other[2, 5, 6], np.inf) if kind in ("f8", "mixed") else other[2, 5, 6] + other.dtype.type(1)
    write(tmp_path / "c.tif", other, "f4" if kind == "mixed" else kind)
    if kind != "mixed":
        result = run("gdal_hsi_compare", "-q", "-max-maxabs", 0, tmp_path / "a.tif", tmp_path / "c.tif")
        assert result.code == 1 and "more than -max-maxabs 0" in first_error(result)
    assert compared(tmp_path / "a.tif", tmp_path / "a.tif")["metrics"]["maxabs"]["maximum"] == 0


def test_structure_and_zones_of_numbers_that_floats_do_not_tell_apart(tmp_path):
    """The same image at another level: ssim and sr equal those of the image."""
    random = np.random.default_rng(1)
    s = 1 + np.round(40 * random.random((2, 40, 50)))
    t = np.where(random.random(s.shape) < 0.1, s + 9, s)
    for name, level, dtype in (("low", 0, "f4"), ("high", 2**30, "f8")):
        write(tmp_path / f"{name}_s.tif", s + level, dtype)
        write(tmp_path / f"{name}_t.tif", t + level, dtype)
    metrics = [compared("-metric", "ssim,sr", tmp_path / f"{n}_s.tif", tmp_path / f"{n}_t.tif")["metrics"] for n in ("low", "high")]
    assert metrics[0]["sr"]["zones_b"] == metrics[1]["sr"]["zones_b"]
    # Only structure is equal: the levels' term of ssim is nearer to 1 at the higher level.
    assert all(0 < a < 1 and 0 < b < 1 for a, b in zip(metrics[0]["ssim"]["bands"], metrics[1]["ssim"]["bands"]))
    band = compared("-metric", "maxabs", "-band", "1:2,2:1", tmp_path / "high_s.tif", tmp_path / "high_s.tif")
    assert band["metrics"]["maxabs"]["maximum"] == np.abs(s[0] - s[1]).max()


def test_nan_nodata_and_infinity_beside_doubles(tmp_path):
    s = 1e6 + 1e-3 * np.random.default_rng(2).standard_normal((3, 4, 5))
    t = s + 1e-4
    s[1, 0, 0], s[1, 0, 1], t[0, 0, 2], s[2, 0, 3] = np.nan, np.inf, -5, 1e200
    write(tmp_path / "a.tif", s, "f8")
    write(tmp_path / "b.tif", t, "f8", nodata=-5)
    result = succeed(run("gdal_hsi_compare", "-json", tmp_path / "a.tif", tmp_path / "b.tif"))
    found = json.loads(result.out)
    assert found["pixels"] == {"compared": 16, "valid_only_in_a": 1, "valid_only_in_b": 3, "valid_in_neither": 0}
    assert "1 value is too large for single precision" in result.err
    assert found["metrics"]["maxabs"]["mean"] == pytest.approx(1e-4, rel=1e-5)


COARSE = "too close together for single precision"
TOOLS = {"vd": (), "spp": ("o.tif",), "pca": ("o.tif",), "mnf": ("o.tif",), "detect": ("o.tif",), "eadp": ("o.tif",),
         "profile": ("o.tif",), "atdca": ("-t", "2", "o.gpkg"), "endmembers": ("-t", "3", "o.gpkg")}


@pytest.mark.parametrize("tool", TOOLS)
def test_bands_that_single_precision_hardly_tells_apart_are_named(tmp_path, tool):
    data = cube(samples=25, lines=24, bands=6, seed=8).astype("f8")
    data[2:4] = 1e6 + 1e-3 * np.random.default_rng(1).standard_normal((2, 24, 25))
    data[5] = 7.3  # constant: no values to distinguish
    source = write(tmp_path / "f.tif", data, "f8")
    arguments = [tmp_path / a if "." in a else a for a in TOOLS[tool]]
    options, outputs = arguments[:-1], arguments[-1:]
    result = run(f"gdal_hsi_{tool}", "-q", *options, source, *outputs)
    assert result.err.count(COARSE) == 1 and "the values of bands 3-4 are" in result.err
    assert re.search(r"those of band 3 are about 1e\+06 and vary by 0\.00\d+, but single precision has steps of 0\.062 there", result.err)
    assert "--calc 'A-(1e+06)'" in result.err


def test_what_single_precision_holds_is_no_matter_for_a_warning(tmp_path):
    data = cube(samples=25, lines=24, bands=4, seed=8)
    quiet = {"degrees.tif": (9 + data / 1e4, "f8"), "whole.tif": (np.round(data) + 1e6, "i4"), "constant.tif": (0 * data + 1e6 + 0.1, "f8"),
             "floats.tif": (1e6 + 1e-3 * data, "f4"), "wide.tif": (data * 1e5, "i4")}
    for name, (values, dtype) in quiet.items():
        result = run("gdal_hsi_spp", "-q", write(tmp_path / name, values, dtype), tmp_path / f"o_{name}")
        assert COARSE not in result.err, name
    # Values that are too small instead of too close, down to zero: a factor helps.
    for scale in (1e-47, 1e-60):
        result = run("gdal_hsi_spp", "-q", write(tmp_path / "small.tif", data * scale, "f8"), tmp_path / "o.tif")
        assert COARSE in result.err and re.search(r"Multiply them first: .*--calc 'A\*1e\+\d\d'", result.err)
    # A few unusual pixels and holes must not hide it.
    hidden = 1e6 + 1e-3 * np.random.default_rng(1).standard_normal((3, 200, 210))
    hidden[:, :90], hidden[:, 150, ::7] = -1, 3
    result = run("gdal_hsi_spp", "-q", write(tmp_path / "h.tif", hidden, "f8", nodata=-1), tmp_path / "oh.tif")
    assert "bands 1-3" in result.err and COARSE in result.err


def test_a_profile_of_whole_numbers_is_exact_or_refused(tmp_path):
    values = np.random.default_rng(0).integers(1, 20, (1, 20, 20))
    below, beyond = write(tmp_path / "a.tif", values + BIG - 30, "i4"), write(tmp_path / "b.tif", values + 2 * BIG, "i4")
    zero = write(tmp_path / "c.tif", values, "i4")
    for kind in ("eap", "emp", "eep"):
        common = ("gdal_hsi_profile", "-q", "-overwrite", "-no-pca", "-kind", kind, "-ot", "Float64")
        succeed(run(*common, below, tmp_path / "oa.tif"))
        succeed(run(*common, zero, tmp_path / "oc.tif"))
        np.testing.assert_array_equal(read(tmp_path / "oa.tif") - (BIG - 30), read(tmp_path / "oc.tif"))
        result = run(*common, beyond, tmp_path / "ob.tif")
        assert result.code == 1 and "16777216 (2^24) or more" in result.err and "Subtract a constant" in result.err
        assert not (tmp_path / "ob.tif").exists()


@pytest.mark.parametrize("dtype", ["f8", "i8"])
@pytest.mark.parametrize("form", ["csv", "sli", "geojson"])
def test_spectra_are_written_as_the_numbers_that_they_are(tmp_path, dtype, form):
    random = np.random.default_rng(4)
    data = 1e6 + 1e-3 * random.standard_normal((3, 8, 9)) if dtype == "f8" else 2**40 + random.integers(0, 9, (3, 8, 9))
    source = write(tmp_path / "a.tif", data, dtype)
    labels = np.ones((1, 8, 9), "i2")
    labels[0, 4:] = 2
    write(tmp_path / "l.tif", labels, "i2")
    for kind in ("every", "deviation"):
        result = succeed(run("gdal_hsi_spectra", "-q", "-overwrite", "-kind", kind, source, tmp_path / "l.tif", tmp_path / f"o.{form}"))
        assert COARSE not in result.err
        if form == "csv":
            table = np.genfromtxt(tmp_path / "o.csv", delimiter=",", skip_header=1)[:, 2:]
        elif form == "sli":
            table = np.fromfile(tmp_path / "o.sli").reshape(-1, 3).T
            assert "data type = 5" in (tmp_path / "o.hdr").read_text()
        else:
            features = json.loads((tmp_path / "o.geojson").read_text())["features"]
            table = np.array([p["y"] for f in features for p in (f["properties"][k] for k in ("profiles", "deviation") if k in f["properties"])]).T
        if kind == "every":
            np.testing.assert_array_equal(table, data.reshape(3, -1))
            continue
        for k, part in enumerate((data[:, :4], data[:, 4:])):
            exact = part.reshape(3, -1).astype(np.longdouble)
            np.testing.assert_allclose(table[:, 2 * k], exact.mean(1).astype("f8"), rtol=3e-16)
            np.testing.assert_allclose(table[:, 2 * k + 1], exact.std(1, ddof=1).astype("f8"), rtol=1e-9)


@pytest.mark.parametrize("tool", ["atdca", "endmembers"])
def test_spectra_of_targets_are_those_of_the_file(tmp_path, tool):
    data = cube(samples=25, lines=24, bands=6, seed=8).astype("f8")
    source = write(tmp_path / "a.tif", data, "f8")
    succeed(run(f"gdal_hsi_{tool}", "-q", "-t", 3, "-spectra", tmp_path / "o.csv", source, tmp_path / "o.geojson"))
    table = np.genfromtxt(tmp_path / "o.csv", delimiter=",", skip_header=1)[:, 2:]
    places = [f["properties"] for f in json.loads((tmp_path / "o.geojson").read_text())["features"]]
    np.testing.assert_array_equal(table, np.stack([data[:, p["line"], p["sample"]] for p in places], 1))
