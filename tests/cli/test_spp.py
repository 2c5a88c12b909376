# SPDX-License-Identifier: MIT
"""gdal_hsi_spp, compared with a naive double-precision reference; and its metadata, windows, memory and outputs."""

import json
import math
import pathlib

import numpy as np
import pytest
from osgeo import gdal

from conftest import (PATIENCE, assert_untouched, cube, envi_header, first_error, open_band, read, real_scene, run, spp, start,
                      stored_bytes, succeed, write_utm_scene as write_scene)

WINDOWS = (3, 5, 7, 9, 11, 13, 15)
WAVELENGTHS = [round(400.5 + 10.25 * b, 3) for b in range(12)]
FWHM = [round(9.5 + 0.125 * b, 3) for b in range(12)]


# --- the reference ---------------------------------------------------------------------------------------------------

def valid_pixels(data):
    return np.isfinite(data).all(axis=0) & (data != 0).any(axis=0)


def reference(data, windows):
    """Returns {ws: (cube, alpha, rho)} by equations 1 to 5 of the paper, pixel by pixel and neighbour by neighbour, in
    double precision. data is (bands, lines, samples); invalid pixels become NaN."""
    valid = valid_pixels(data)
    bands, lines, samples = data.shape
    centroid = np.array([math.fsum(data[b][valid]) for b in range(bands)]) / valid.sum()
    unit = np.where(valid, data, 0)
    norm = np.sqrt((unit ** 2).sum(axis=0))
    unit = np.moveaxis(unit / np.where(valid, norm, 1), 0, 2).copy()
    largest = max(windows) // 2
    top = {ws: np.zeros((lines, samples)) for ws in windows}
    bottom = {ws: np.zeros((lines, samples)) for ws in windows}
    for dy in range(0, largest + 1):
        for dx in range(-largest, largest + 1):
            if dy == 0 and dx <= 0 or dy >= lines or abs(dx) >= samples:
                continue
            here = (slice(0, lines - dy), slice(max(0, -dx), samples - max(0, dx)))
            there = (slice(dy, lines), slice(max(0, dx), samples - max(0, -dx)))
            both = valid[here] & valid[there]
            difference = unit[here] - unit[there]
            chord = np.sqrt(np.einsum("yxb,yxb->yx", difference, difference))
            angle = np.where(both, 2 * np.arcsin(np.minimum(1, chord / 2)), 0)
            beta = 1 / (dx * dx + dy * dy)
            for ws in windows:
                if max(abs(dx), dy) <= ws // 2:
                    for where in (here, there):
                        top[ws][where] += beta * angle
                        bottom[ws][where] += beta * both
    result = {}
    for ws in windows:
        alpha = np.where(bottom[ws] > 0, top[ws] / np.where(bottom[ws] > 0, bottom[ws], 1), 0)
        rho = (1 + np.sqrt(alpha)) ** 2
        moved = (data - centroid[:, None, None]) / rho + centroid[:, None, None]
        result[ws] = tuple(np.where(valid, plane, np.nan) for plane in (moved, alpha, rho))
    return result


def errors(want, got):
    """Returns the mean NRMSE and the greatest MaxSDE (paper 004, equations 6 to 8) over the valid pixels, which must be
    the same pixels."""
    valid = np.isfinite(want).all(axis=0)
    assert (np.isfinite(got).all(axis=0) == valid).all(), "other pixels are valid"
    assert np.isnan(got[:, ~valid]).all(), "an invalid pixel has a value in some band"
    s, t = want[:, valid], got[:, valid]
    spread = ((s - s.mean(axis=0)) ** 2).sum(axis=0)
    nrmse = np.sqrt(((t - s) ** 2).sum(axis=0) / spread).mean()
    maxsde = (len(s) * np.abs(t - s) / np.abs(s).sum(axis=0)).max()
    return nrmse, maxsde


def check_accuracy(want, got):
    nrmse, maxsde = errors(want, got)
    # Rounding the exact result to single precision has an error, and the NRMSE divides it by the spread of a spectrum
    # over its bands. If the spread is small compared with the level, even a perfect program cannot reach 1e-6.
    floor = errors(want, want.astype(np.float32).astype(np.float64))[0]
    assert nrmse <= max(1e-6, 3 * floor), f"NRMSE {nrmse}, rounding alone {floor}"
    assert maxsde <= 5e-6, f"MaxSDE {maxsde}"
    return nrmse, maxsde


@pytest.mark.quick
def test_reference_on_a_scene_solved_by_hand():
    # Three pixels in a row with angles of 90 degrees: 1|2 and 2|3; 1 and 3 are equal. ws 5 covers all, ws 3 only the
    # next one.
    data = np.array([[[1.0, 0.0, 1.0]], [[0.0, 2.0, 0.0]]])
    want = reference(data, (3, 5))
    right = math.pi / 2
    np.testing.assert_allclose(want[3][1], [[right, right, right]], rtol=1e-15)
    np.testing.assert_allclose(want[5][1], [[right / 1.25, right, right / 1.25]], rtol=1e-15)
    np.testing.assert_allclose(want[3][2], np.full((1, 3), (1 + math.sqrt(right)) ** 2), rtol=1e-15)
    centre = np.array([2 / 3, 2 / 3])
    np.testing.assert_allclose(want[3][0][:, 0, 0], (np.array([1, 0]) - centre) / want[3][2][0, 0] + centre, rtol=1e-14)


# --- numbers ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("bands", [2, 12, 67])
def test_synthetic_scene_for_every_window(tmp_path, bands):
    data = cube(41, 29, bands, seed=bands).astype(np.float32).astype(np.float64)
    source = write_scene(tmp_path / "in.img", data)
    want = reference(data, WINDOWS)
    for ws in WINDOWS:
        dst, alpha, rho = (tmp_path / f"{name}{ws}.tif" for name in ("out", "alpha", "rho"))
        succeed(spp("-q", "-ws", ws, "-alpha", alpha, "-rho", rho, source, dst))
        check_accuracy(want[ws][0], read(dst))
        np.testing.assert_allclose(read(alpha)[0], want[ws][1], rtol=2e-6, atol=1e-7)
        np.testing.assert_allclose(read(rho)[0], want[ws][2], rtol=2e-6)


def test_large_window_and_default_window(tmp_path):
    data = cube(70, 66, 5).astype(np.float32).astype(np.float64)
    source = write_scene(tmp_path / "in.img", data)
    want = reference(data, (5, 63))
    succeed(spp("-q", "-ws", 63, source, tmp_path / "63.tif"))
    check_accuracy(want[63][0], read(tmp_path / "63.tif"))
    succeed(spp("-q", source, tmp_path / "default.tif"))
    check_accuracy(want[5][0], read(tmp_path / "default.tif"))


@pytest.mark.quick
def test_invalid_pixels_take_no_part(tmp_path):
    data = cube(40, 30, 6).astype(np.float32).astype(np.float64)
    data[2, 3, 4] = -9999  # one band is enough
    data[:, 10, 10] = -9999
    data[:, 11, 20] = 0
    data[1, 12, 20] = np.nan
    data[3, 13, 21] = np.inf
    data[:, 20:25, 30:36] = -9999
    data[:, 22, 33] = data[:, 0, 0]  # isolated by holes for ws 3
    source = write_scene(tmp_path / "in.img", data, nodata=-9999)
    data[data == -9999] = np.nan
    want = reference(data, (3, 7))
    assert want[3][1][22, 33] == 0
    for ws in (3, 7):
        dst, alpha = tmp_path / f"out{ws}.tif", tmp_path / f"alpha{ws}.tif"
        result = succeed(spp("-ws", ws, "-alpha", alpha, source, dst))
        assert "34 of 1200 pixels are invalid" in result.out
        check_accuracy(want[ws][0], read(dst))
        np.testing.assert_allclose(read(alpha)[0], want[ws][1], rtol=2e-6, atol=1e-7)
        assert open_band(dst, 1).GetNoDataValue() == -9999


def test_holes_without_a_nodata_value_get_one(tmp_path):
    data = cube(20, 20, 4)
    data[1, 5, 5] = np.nan
    source = write_scene(tmp_path / "in.img", data)
    succeed(spp("-q", source, tmp_path / "out.tif"))
    assert open_band(tmp_path / "out.tif", 1).GetNoDataValue() is not None
    got = read(tmp_path / "out.tif")
    assert np.isnan(got[:, 5, 5]).all()
    assert np.isnan(got).sum() == 4


def test_srcnodata_and_dstnodata(tmp_path):
    data = cube(20, 20, 4).round()
    data[:, 5, 5] = 7
    source = write_scene(tmp_path / "in.img", data)
    succeed(spp("-q", "-srcnodata", 7, "-dstnodata", -1, source, tmp_path / "out.tif"))
    band = open_band(tmp_path / "out.tif", 3)
    assert band.GetNoDataValue() == -1
    assert band.ReadAsArray()[5, 5] == -1
    data[:, 5, 5] = np.nan
    check_accuracy(reference(data, (5,))[5][0], read(tmp_path / "out.tif"))


@pytest.mark.quick
@pytest.mark.parametrize("dtype", ["u1", "u2", "i2", "i4", "f8"])
def test_every_pixel_type(tmp_path, dtype):
    data = np.clip(cube(30, 20, 5, scale=60).round(), 1, 250)
    if dtype in ("i2", "i4"):
        data -= 40
    source = write_scene(tmp_path / "in.img", data, dtype=dtype)
    succeed(spp("-q", source, tmp_path / "out.tif"))
    check_accuracy(reference(data, (5,))[5][0], read(tmp_path / "out.tif"))
    assert open_band(tmp_path / "out.tif", 1).DataType == gdal.GDT_Float32


REAL = {
    "indian_pines/indian_pines.img": WINDOWS,
    "jasper_ridge/jasper_ridge.img": WINDOWS,
    "pavia_centre/pavia_centre.img": WINDOWS,
    "enmap_berlin/EnMAP_BerlinUrbanGradient.bsq": WINDOWS,
    "enmap_potsdam/enmap_potsdam.vrt": WINDOWS,
    "emit/emit20250324t221005_jpl_unmix_ex": WINDOWS[:4],  # 10x10 pixels
    "avirisng/ang20170323t202244_rdn_7000-7010": WINDOWS[:4],
}


def good_bands(source):
    """Returns the bands that the tool should use: the list of bad bands does not mark them, and some pixel has a
    value."""
    dataset = gdal.Open(str(source))
    domain = dataset.GetMetadata("ENVI") or {}
    marks = domain.get("bbl", "").strip("{} \n").split(",") if domain.get("bbl") else []
    header = pathlib.Path(source).with_suffix(".hdr")
    if not marks and header.exists():
        marks = envi_header(source).get("bbl", [])
    used = np.isfinite(read(source)).any(axis=(1, 2))
    return [b for b in range(1, dataset.RasterCount + 1) if (not marks or float(marks[b - 1]) > 0) and used[b - 1]]


@pytest.mark.parametrize("name", REAL)
def test_real_scene(tmp_path, name):
    source = real_scene(name)
    bands = good_bands(source)
    data = read(source, bands)
    want = reference(data, REAL[name])
    for ws in REAL[name]:
        dst = tmp_path / "out.img"
        report = tmp_path / "run.json"
        succeed(spp("-q", "-ws", ws, "-of", "ENVI", "-overwrite", "-report", report, source, dst))
        got = read(dst)
        assert len(got) == len(bands)
        nrmse, maxsde = check_accuracy(want[ws][0], got)
        facts = json.loads(report.read_text())
        assert facts["valid_pixels"] == np.isfinite(want[ws][1]).sum()
        print(f"{name} ws {ws}: NRMSE {nrmse:.2e}, MaxSDE {maxsde:.2e}")


# --- equal results for any division and storage
# --------------------------------------------------------------------------

def test_result_does_not_depend_on_tiles_threads_memory_or_interleave(tmp_path):
    data = cube(75, 53, 9).astype(np.float32)
    data[2, 10, 11] = np.nan
    sources = {}
    for interleave in ("BSQ", "BIL", "BIP"):
        sources[interleave] = write_scene(tmp_path / f"{interleave}.img", data, options=[f"INTERLEAVE={interleave}"])
    sources["tiled"] = write_scene(tmp_path / "tiled.tif", data, "GTiff",
                                   options=["TILED=YES", "BLOCKXSIZE=16", "BLOCKYSIZE=32", "COMPRESS=DEFLATE"])
    sources["pixel"] = write_scene(tmp_path / "pixel.tif", data, "GTiff", options=["INTERLEAVE=PIXEL"])
    dst = tmp_path / "out.img"
    results = {}
    for name, source in sources.items():
        for options in (["-threads", 1], ["-threads", 2], ["-tile", 16, 16], ["-tile", 1, 1], ["-tile", 75, 2],
                        ["-tile", 33, 17, "-threads", 3], ["-memory", "1MB"]):
            succeed(spp("-q", "-of", "ENVI", "-overwrite", "-ws", 7, *options, source, dst))
            results[name, str(options)] = stored_bytes(dst)
    first = next(iter(results.values()))
    different = [key for key, value in results.items() if value != first]
    assert not different
    check_accuracy(reference(data.astype(np.float64), (7,))[7][0], read(dst))


@pytest.mark.quick
def test_output_formats_hold_the_same_values(tmp_path, scene):
    want = None
    for name, options in {"a.tif": [], "b.img": ["-of", "ENVI"], "c.img": ["-of", "ENVI", "-co", "INTERLEAVE=BIL"],
                          "d.img": ["-of", "ENVI", "-co", "INTERLEAVE=BIP"],
                          "e.tif": ["-co", "INTERLEAVE=PIXEL", "-co", "COMPRESS=DEFLATE"]}.items():
        for threads in (1, 2):
            succeed(spp("-q", "-overwrite", "-tile", 16, 16, "-threads", threads, *options, scene, tmp_path / name))
            got = read(tmp_path / name)
            want = got if want is None else want
            assert (got == want).all(), (name, threads)


def test_output_type_rounds_and_clamps_as_gdal_translate(tmp_path):
    data = cube(30, 20, 4, scale=200)
    data[:, 3, 3] *= 10
    source = write_scene(tmp_path / "in.img", data)
    succeed(spp("-q", source, tmp_path / "float.tif"))
    for kind in ("Byte", "Int16", "UInt16", "Float64"):
        succeed(spp("-q", "-ot", kind, source, tmp_path / f"{kind}.tif"))
        gdal.Translate(str(tmp_path / "want.tif"), str(tmp_path / "float.tif"),
                       outputType=gdal.GetDataTypeByName(kind))
        got = gdal.Open(str(tmp_path / f"{kind}.tif"))
        assert gdal.GetDataTypeName(got.GetRasterBand(1).DataType) == kind
        assert (got.ReadAsArray() == gdal.Open(str(tmp_path / "want.tif")).ReadAsArray()).all(), kind


# --- bands and windows -----------------------------------------------------------------------------------------------

def test_bands(tmp_path):
    data = cube(30, 20, 8).astype(np.float32).astype(np.float64)
    source = write_scene(tmp_path / "in.img", data)
    succeed(spp("-q", "-b", "2-4,8", "-b", 1, source, tmp_path / "out.tif"))
    check_accuracy(reference(data[[1, 2, 3, 7, 0]], (5,))[5][0], read(tmp_path / "out.tif"))


def test_window_of_the_scene(tmp_path):
    data = cube(30, 20, 4).astype(np.float32).astype(np.float64)
    source = write_scene(tmp_path / "in.tif", data, "GTiff", geotransform=(1000, 3, 0.5, 2000, -0.25, -2))
    succeed(spp("-q", "-srcwin", 5, 3, 20, 12, source, tmp_path / "out.tif"))
    check_accuracy(reference(data[:, 3:15, 5:25], (5,))[5][0], read(tmp_path / "out.tif"))
    got = gdal.Open(str(tmp_path / "out.tif")).GetGeoTransform()
    assert got == pytest.approx((1000 + 5 * 3 + 3 * 0.5, 3, 0.5, 2000 - 5 * 0.25 - 3 * 2, -0.25, -2))


def test_bad_bands(tmp_path):
    data = cube(30, 20, 6).astype(np.float32).astype(np.float64)
    source = write_scene(tmp_path / "in.img", data, wavelengths=WAVELENGTHS[:6], fwhm=FWHM[:6], bbl=[1, 0, 1, 1, 0, 1])
    good = [0, 2, 3, 5]
    succeed(spp("-q", "-of", "ENVI", source, tmp_path / "good.img"))
    check_accuracy(reference(data[good], (5,))[5][0], read(tmp_path / "good.img"))
    assert [float(v) for v in envi_header(tmp_path / "good.img")["wavelength"]] == [WAVELENGTHS[b] for b in good]
    succeed(spp("-q", "-of", "ENVI", "-bbl", "ignore", source, tmp_path / "all.img"))
    check_accuracy(reference(data, (5,))[5][0], read(tmp_path / "all.img"))
    assert [float(v) for v in envi_header(tmp_path / "all.img")["bbl"]] == [1, 0, 1, 1, 0, 1]
    succeed(spp("-q", "-of", "ENVI", "-b", "1-3", source, tmp_path / "asked.img"))
    check_accuracy(reference(data[:3], (5,))[5][0], read(tmp_path / "asked.img"))


def test_band_without_values_is_left_out_with_a_warning(tmp_path):
    data = cube(30, 20, 6).astype(np.float32).astype(np.float64)
    data[[1, 4]] = -1
    source = write_scene(tmp_path / "in.img", data, nodata=-1, wavelengths=WAVELENGTHS[:6])
    result = succeed(spp("-q", "-of", "ENVI", "-report", tmp_path / "run.json", source, tmp_path / "out.img"))
    assert "Warning: " in result.err and "2,5" in result.err
    check_accuracy(reference(data[[0, 2, 3, 5]], (5,))[5][0], read(tmp_path / "out.img"))
    assert [float(v) for v in envi_header(tmp_path / "out.img")["wavelength"]] == [WAVELENGTHS[b] for b in (0, 2, 3, 5)]
    report = json.loads((tmp_path / "run.json").read_text())
    assert report["bands_without_values"] == [2, 5]
    assert len(report["warnings"]) == 1


# --- metadata ---------------------------------------------------------------------------------------------------------

def full_scene(folder):
    return write_scene(folder / "in.img", cube(), nodata=-9999, wavelengths=WAVELENGTHS, fwhm=FWHM, bbl=[1] * 12,
                       names=[f"channel {b}" for b in range(12)])


def test_metadata_envi_to_envi(tmp_path):
    source = full_scene(tmp_path)
    succeed(spp("-q", "-of", "ENVI", "-ws", 7, source, tmp_path / "out.img"))
    before, after = envi_header(source), envi_header(tmp_path / "out.img")
    for key in ("wavelength", "fwhm", "bbl"):
        assert [float(v) for v in after[key]] == [float(v) for v in before[key]], key
    assert after["wavelength units"].lower() == "nanometers"
    assert float(after["data ignore value"]) == -9999
    a, b = gdal.Open(source), gdal.Open(str(tmp_path / "out.img"))
    assert b.GetGeoTransform() == a.GetGeoTransform()
    assert b.GetSpatialRef().IsSame(a.GetSpatialRef())
    assert [b.GetRasterBand(k).GetDescription() for k in range(1, 13)] == \
        [a.GetRasterBand(k).GetDescription() for k in range(1, 13)]
    history = b.GetMetadataItem("HSI_HISTORY")
    assert history == f"gdal_hsi_spp -device cpu -q -of ENVI -ws 7 {source} {tmp_path}/out.img"


def test_metadata_envi_to_gtiff(tmp_path):
    source = full_scene(tmp_path)
    succeed(spp("-q", source, tmp_path / "out.tif"))
    a, b = gdal.Open(source), gdal.Open(str(tmp_path / "out.tif"))
    assert b.GetGeoTransform() == a.GetGeoTransform()
    assert b.GetSpatialRef().IsSame(a.GetSpatialRef())
    assert b.GetMetadataItem("HSI_HISTORY").startswith("gdal_hsi_spp ")
    envi = b.GetMetadata("ENVI")
    for key, want in (("wavelength", WAVELENGTHS), ("fwhm", FWHM), ("bbl", [1] * 12)):
        assert [float(v) for v in envi[key].strip("{} ").split(",")] == want, key
    for k in range(12):
        band = b.GetRasterBand(k + 1)
        assert float(band.GetMetadataItem("wavelength")) == WAVELENGTHS[k]
        assert band.GetMetadataItem("wavelength_units").lower() == "nanometers"
        imagery = band.GetMetadata("IMAGERY")
        assert float(imagery["CENTRAL_WAVELENGTH_UM"]) == pytest.approx(WAVELENGTHS[k] / 1000, rel=1e-9)
        assert float(imagery["FWHM_UM"]) == pytest.approx(FWHM[k] / 1000, rel=1e-9)
        assert band.GetNoDataValue() == -9999


def test_metadata_survives_gtiff_to_envi(tmp_path):
    source = full_scene(tmp_path)
    succeed(spp("-q", source, tmp_path / "one.tif"))
    succeed(spp("-q", "-of", "ENVI", tmp_path / "one.tif", tmp_path / "two.img"))
    after = envi_header(tmp_path / "two.img")
    assert [float(v) for v in after["wavelength"]] == WAVELENGTHS
    assert [float(v) for v in after["fwhm"]] == FWHM


def test_scale_offset_and_band_metadata_travel(tmp_path):
    source = write_scene(tmp_path / "in.tif", cube(bands=3), "GTiff", metadata={"ACQUISITIONDATETIME": "2024-05-06"})
    dataset = gdal.Open(source, gdal.GA_Update)
    for b in (1, 2, 3):
        dataset.GetRasterBand(b).SetScale(0.0001 * b)
        dataset.GetRasterBand(b).SetOffset(0.5 * b)
        dataset.GetRasterBand(b).SetMetadataItem("sensor", f"s{b}")
        dataset.GetRasterBand(b).SetDescription(f"name {b}")
    dataset = None
    succeed(spp("-q", "-b", "1,3", source, tmp_path / "out.tif"))
    got = gdal.Open(str(tmp_path / "out.tif"))
    assert got.GetMetadataItem("ACQUISITIONDATETIME") == "2024-05-06"
    for k, b in ((1, 1), (2, 3)):
        band = got.GetRasterBand(k)
        assert (band.GetScale(), band.GetOffset()) == (0.0001 * b, 0.5 * b)
        assert band.GetMetadataItem("sensor") == f"s{b}"
        assert band.GetDescription() == f"name {b}"


def test_rotated_geotransform_and_gcps_travel(tmp_path):
    gt = (500000.5, 12.5, 3.25, 4480000.25, 3.5, -11.75)
    source = write_scene(tmp_path / "rotated.tif", cube(bands=3), "GTiff", geotransform=gt)
    succeed(spp("-q", source, tmp_path / "out.tif"))
    assert gdal.Open(str(tmp_path / "out.tif")).GetGeoTransform() == gt
    source = write_scene(tmp_path / "gcps.tif", cube(bands=3), "GTiff", geotransform=None, epsg=None)
    dataset = gdal.Open(source, gdal.GA_Update)
    wkt = gdal.osr.SpatialReference()
    wkt.ImportFromEPSG(4326)
    dataset.SetGCPs([gdal.GCP(10 + i, 50 + i, 100, 3.0 * i, 2.0 * i * i) for i in range(5)], wkt.ExportToWkt())
    dataset = None
    succeed(spp("-q", "-srcwin", 2, 1, 30, 20, source, tmp_path / "out2.tif"))
    got = gdal.Open(str(tmp_path / "out2.tif")).GetGCPs()
    assert [(g.GCPX, g.GCPY, g.GCPPixel, g.GCPLine) for g in got] == \
        [(10 + i, 50 + i, 3.0 * i - 2, 2.0 * i * i - 1) for i in range(5)]


def test_side_outputs_are_georeferenced_and_named(tmp_path, utm_scene):
    scene = utm_scene
    succeed(spp("-q", "-alpha", tmp_path / "alpha.tif", "-rho", tmp_path / "rho.tif", scene, tmp_path / "out.tif"))
    for name in ("alpha", "rho"):
        dataset = gdal.Open(str(tmp_path / f"{name}.tif"))
        assert dataset.RasterCount == 1
        assert dataset.GetGeoTransform() == gdal.Open(scene).GetGeoTransform()
        assert dataset.GetSpatialRef().IsSame(gdal.Open(scene).GetSpatialRef())
        assert name in dataset.GetRasterBand(1).GetDescription()
        assert dataset.GetMetadataItem("HSI_HISTORY").startswith("gdal_hsi_spp ")


# --- dry run, report, memory -----------------------------------------------------------------------------------------

def test_dry_run_writes_nothing_and_prints_the_plan(tmp_path, scene, out):
    with assert_untouched(tmp_path):
        result = succeed(spp("-dry-run", "-q", "-ws", 7, "-tile", 16, 8, scene, out / "out.tif", "-alpha", out / "a.tif"))
    assert result.err == ""
    assert "centroid" in result.out
    line = next(line for line in result.out.splitlines() if "displacement" in line)
    assert "16x8" in line and "halo 3" in line


def test_dry_run_checks_everything(tmp_path, scene, out):
    with assert_untouched(tmp_path):
        assert spp("-dry-run", scene, out / "out.nosuchformat").code != 0
        assert spp("-dry-run", "-ws", 4, scene, out / "out.tif").code == 2
        assert spp("-dry-run", tmp_path / "missing.img", out / "out.tif").code == 1


@pytest.mark.quick
def test_report(tmp_path, scene):
    report = tmp_path / "run.json"
    succeed(spp("-q", "-tile", 16, 16, "-threads", 2, "-report", report, scene, tmp_path / "out.tif"))
    facts = json.loads(report.read_text())
    assert facts["tool"] == "gdal_hsi_spp"
    assert facts["gdal"] == gdal.VersionInfo("RELEASE_NAME")
    assert facts["device"].startswith("CPU")
    assert facts["source"]["driver"] == "ENVI"
    assert facts["source"]["access"] == "raw"
    assert facts["source"]["type"] == "Float32"
    assert (facts["source"]["samples"], facts["source"]["lines"], facts["source"]["bands"]) == (40, 30, 12)
    assert facts["options"]["ws"] == "5"
    assert facts["options"]["tile"] == [16, 16]
    assert facts["options"]["threads"] == 2
    centroid, displacement = facts["passes"]
    assert centroid["name"] == "centroid" and centroid["halo"] == 0 and centroid["bytes_written"] == 0
    assert centroid["bytes_read"] == 40 * 30 * 12 * 4
    assert displacement["name"] == "displacement" and displacement["halo"] == 2
    assert displacement["tiles"] == 6 and displacement["lanes"] == 2
    assert displacement["bytes_read"] > 40 * 30 * 12 * 4
    assert displacement["bytes_written"] == 40 * 30 * 12 * 4
    assert facts["totals"]["bytes_read"] == centroid["bytes_read"] + displacement["bytes_read"]
    assert facts["seconds"] >= facts["totals"]["pass_seconds"] > 0
    assert facts["peak_resident_bytes"] > 1e6
    assert "error" not in facts
    compressed = write_scene(tmp_path / "c.tif", cube(), "GTiff", options=["COMPRESS=DEFLATE"])
    succeed(spp("-q", "-report", report, compressed, tmp_path / "out2.tif"))
    assert json.loads(report.read_text())["source"]["access"] == "gdal"


def test_report_of_a_failure(tmp_path, scene, out):
    report = tmp_path / "run.json"
    with assert_untouched(out):
        result = spp("-q", "-b", "99", "-report", report, scene, out / "out.tif")
    assert result.code == 2
    facts = json.loads(report.read_text())
    assert facts["error"]["exit_code"] == 2
    assert facts["error"]["message"] == first_error(result)


def test_one_report_for_a_chain(tmp_path, scene, out):
    report = tmp_path / "chain.json"
    append = ("-report", report, "-report-append")
    succeed(spp("-q", *append, scene, out / "y.tif"))
    assert [run["tool"] for run in json.loads(report.read_text())["chain"]] == ["gdal_hsi_spp"]
    succeed(run("gdal_hsi_compare", "-q", *append, scene, out / "y.tif"))
    assert spp("-q", "-b", "99", *append, scene, out / "z.tif").code == 2
    chain = json.loads(report.read_text())["chain"]
    assert [run["tool"] for run in chain] == ["gdal_hsi_spp", "gdal_hsi_compare", "gdal_hsi_spp"]
    assert ["error" in run for run in chain] == [False, False, True] and chain[0]["started"] <= chain[2]["started"]
    # A report of a single run becomes the first report of a chain. Without the option, a chain is replaced as any
    # report.
    succeed(spp("-q", "-report", report, scene, out / "a.tif"))
    succeed(spp("-q", *append, scene, out / "b.tif"))
    assert [run["destination"] for run in json.loads(report.read_text())["chain"]] == [str(out / "a.tif"), str(out / "b.tif")]


def test_reports_that_cannot_be_added_to(tmp_path, scene, out):
    (tmp_path / "other.json").write_text('{"chain": [1]}')
    with assert_untouched(tmp_path):
        assert "-report-append requires -report" in first_error(spp("-report-append", scene, out / "y.tif"))
        assert "-report-append: /dev/null is not a regular file" in first_error(
            spp("-report", "/dev/null", "-report-append", scene, out / "y.tif"))
        assert spp("-report", tmp_path / "other.json", "-report-append", scene, out / "y.tif").code != 0
    succeed(spp("-q", "-overwrite", "-report", tmp_path / "other.json", "-report-append", scene, out / "y.tif"))
    assert len(json.loads((tmp_path / "other.json").read_text())["chain"]) == 1


@pytest.mark.parametrize("kind", ["ENVI", "GTiff"])
def test_memory_is_a_promise(tmp_path, kind):
    """A scene of 157 MB with a limit of 24 MB: the process must stay below the limit plus 150 MB for the program
    itself."""
    samples, lines, bands = 512, 640, 120
    plane = cube(samples, lines, 1)[0].astype(np.float32)
    options = ["INTERLEAVE=BIL"] if kind == "ENVI" else [
        "TILED=YES", "BLOCKXSIZE=128", "BLOCKYSIZE=32", "COMPRESS=DEFLATE", "ZLEVEL=1", "INTERLEAVE=BAND"]
    source = tmp_path / ("in.img" if kind == "ENVI" else "in.tif")
    dataset = gdal.GetDriverByName(kind).Create(str(source), samples, lines, bands, gdal.GDT_Float32, options)
    for b in range(bands):
        dataset.GetRasterBand(b + 1).WriteArray(plane * np.float32(1 + 0.3 * math.sin(b)))
    dataset = None
    report = tmp_path / "run.json"
    succeed(spp("-q", "-memory", "24MB", "-of", kind, "-threads", 2, "-report", report, source, tmp_path / "out.bin"))
    facts = json.loads(report.read_text())
    assert facts["totals"]["buffer_bytes"] + facts["block_cache_bytes"] <= 24 << 20
    assert facts["peak_resident_bytes"] <= (24 + 150) << 20


def test_stdout_as_destination(tmp_path, scene):
    """The standard output must contain only the raster."""
    succeed(spp("-q", scene, tmp_path / "out.tif"))
    process = start("gdal_hsi_spp", "-device", "cpu", scene, "/vsistdout/", "-of", "GTiff")
    pixels, messages = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, messages
    (tmp_path / "piped.tif").write_bytes(pixels)
    assert (read(tmp_path / "piped.tif") == read(tmp_path / "out.tif")).all()
    for text in ("x", "xx"):  # in the history: GDAL 3.10 loses the pixels if the directory's texts end at an odd byte
        process = start("gdal_hsi_spp", "-device", "cpu", "--config", "HSI_NOTHING", text, scene, "/vsistdout/")
        pixels, messages = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, messages
        (tmp_path / "piped.tif").write_bytes(pixels)
        assert (read(tmp_path / "piped.tif") == read(tmp_path / "out.tif")).all(), text
    result = spp(scene, "/vsistdout/", "-of", "ENVI")  # two files do not fit into one stream
    assert result.code == 2
    assert "ENVI" in first_error(result)
    assert result.out == ""
