# SPDX-License-Identifier: MIT
"""gdal_hsi_profile: openings compared with morphology without scipy, thinnings with threshold decomposition; names,
thresholds, memory, and refused input."""

import json

import numpy as np
import pytest
from osgeo import gdal

from conftest import LOCAL, assert_untouched, cube, first_error, read, run, succeed, write_scene


def profile(*args):
    return run("gdal_hsi_profile", "-device", "cpu", *args)


def names_of(path):
    dataset = gdal.Open(str(path))
    return [dataset.GetRasterBand(b + 1).GetDescription() for b in range(dataset.RasterCount)]


def parts(mask, eight=False):
    """Returns the numbers of the connected parts of a mask, 0 outside."""
    number = np.zeros(mask.shape, int)
    count = 0
    steps = [(dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if (dy or dx) and (eight or not (dy and dx))]
    for start in zip(*np.nonzero(mask)):
        if number[start]:
            continue
        count += 1
        number[start] = count
        open_pixels = [start]
        while open_pixels:
            y, x = open_pixels.pop()
            for dy, dx in steps:
                at = (y + dy, x + dx)
                if 0 <= at[0] < mask.shape[0] and 0 <= at[1] < mask.shape[1] and mask[at] and not number[at]:
                    number[at] = count
                    open_pixels.append(at)
    return number, count


def opened_by(band, keeps, eight=False):
    """Computes threshold decomposition of an increasing attribute: a pixel gets the highest level whose part is kept;
    the part of its lowest level, a root, is always kept. NaN: no value."""
    out = np.full(band.shape, np.nan)
    levels = np.unique(band[np.isfinite(band)])
    valid, count = parts(np.isfinite(band), eight)
    for k in range(1, count + 1):
        out[valid == k] = band[valid == k].min()
    for level in levels:
        number, count = parts(np.where(np.isfinite(band), band, -np.inf) >= level, eight)
        for k in range(1, count + 1):
            if keeps(np.nonzero(number == k)):
                out[number == k] = np.maximum(out[number == k], level)
    return out


def opening(band, radius, eight=False):
    """Erodes by the disk, then dilates under the band until nothing changes."""
    h, w = band.shape

    def shifted(a, dy, dx, outside):
        moved = np.full_like(a, outside)
        moved[max(0, -dy):h - max(0, dy), max(0, -dx):w - max(0, dx)] = \
            a[max(0, dy):h - max(0, -dy), max(0, dx):w - max(0, -dx)]
        return moved
    mask = np.where(np.isfinite(band), band, -np.inf)
    marker = np.where(np.isfinite(band), band, np.inf)
    marker = np.min([shifted(marker, dy, dx, np.inf) for dy in range(-radius, radius + 1)
                     for dx in range(-radius, radius + 1) if dy * dy + dx * dx <= radius * radius], axis=0)
    marker = np.where(np.isfinite(band), marker, -np.inf)
    steps = [(dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if eight or not (dy and dx)]
    while True:
        grown = np.minimum(np.max([shifted(marker, dy, dx, -np.inf) for dy, dx in steps], axis=0), mask)
        if np.array_equal(grown, marker):
            return np.where(np.isfinite(band), marker, np.nan)
        marker = grown


@pytest.fixture
def scene(tmp_path):
    data = np.round(cube(31, 24, 6, scale=40))
    data[:, 3, 4] = 0
    data[:, 10:13, 20] = 0
    return write_scene(tmp_path / "scene.img", data, dtype="i2")


@pytest.mark.parametrize("connectivity", [4, 8])
def test_thinnings_of_whole_numbers_are_exact(connectivity, scene, tmp_path):
    succeed(profile("-q", "-no-pca", "-b", "2,5", "-kind", "emap", "-attribute", "diagonal,area", "-thresholds",
                    "area=30,6", "-thresholds", "diagonal=7.5", "-connectivity", connectivity, scene, tmp_path / "y.tif"))
    out, source = read(tmp_path / "y.tif"), read(scene, [2, 5])
    source[:, (source == 0).all(0)] = np.nan
    assert out.shape[0] == 14
    eight = connectivity == 8
    for component in range(2):
        x = source[component]
        area = [lambda at, t=t: len(at[0]) >= t for t in (30, 6)]

        def diagonal(at):
            return np.hypot(np.ptp(at[0]) + 1, np.ptp(at[1]) + 1) >= 7.5
        want = [x, opened_by(x, diagonal, eight), -opened_by(-x, diagonal, eight)]
        want += [opened_by(x, a, eight) for a in area] + [-opened_by(-x, a, eight) for a in area]
        assert np.array_equal(out[7 * component:7 * component + 7], np.stack(want), equal_nan=True)
    assert names_of(tmp_path / "y.tif")[:7] == [
        "Band 2", "Band 2 thinning diagonal=7.5", "Band 2 thickening diagonal=7.5", "Band 2 thinning area=30",
        "Band 2 thinning area=6", "Band 2 thickening area=30", "Band 2 thickening area=6"]


@pytest.mark.quick
@pytest.mark.parametrize("connectivity", [4, 8])
def test_openings_by_reconstruction(connectivity, scene, tmp_path):
    succeed(profile("-q", "-nc", 2, "-kind", "emp", "-thresholds", "3,1", "-connectivity", connectivity, scene,
                    tmp_path / "y.tif"))
    succeed(run("gdal_hsi_pca", "-q", "-device", "cpu", "-nc", 2, scene, tmp_path / "pc.tif"))
    out, components = read(tmp_path / "y.tif"), read(tmp_path / "pc.tif")
    eight = connectivity == 8
    for k in range(2):
        x = components[k]
        want = [x] + [opening(x, r, eight) for r in (3, 1)] + [-opening(-x, r, eight) for r in (3, 1)]
        assert np.array_equal(out[5 * k:5 * k + 5], np.stack(want), equal_nan=True)
    assert names_of(tmp_path / "y.tif")[5:10] == ["PC2", "PC2 opening r=3", "PC2 opening r=1", "PC2 closing r=3",
                                                  "PC2 closing r=1"]


def test_extinction_keeps_so_many_maxima(scene, tmp_path):
    """With integers, n maxima are kept, or all if there are fewer; if all are kept, nothing changes."""
    succeed(profile("-q", "-no-pca", "-b", 4, "-kind", "eep", "-attribute", "height", "-thresholds", "100000,9,3,1",
                    scene, tmp_path / "y.tif"))
    out = read(tmp_path / "y.tif")
    assert np.array_equal(out[1], out[0], equal_nan=True) and np.array_equal(out[5], out[0], equal_nan=True)

    def maxima(band):
        filled = np.where(np.isfinite(band), band, -np.inf)
        count = 0
        for level in np.unique(band[np.isfinite(band)]):
            number, n = parts(filled >= level)
            count += sum((filled[number == k] == level).all() for k in range(1, n + 1))
        return count
    for k, n in ((2, 9), (3, 3), (4, 1)):
        assert maxima(out[k]) == n and maxima(-out[k + 4]) == n
        assert (out[k] <= out[0])[np.isfinite(out[0])].all() and (out[k + 4] >= out[0])[np.isfinite(out[0])].all()
    assert names_of(tmp_path / "y.tif")[2:7:4] == ["Band 4 maxima height n=9", "Band 4 minima height n=9"]


def test_bands_of_every_kind(scene, tmp_path):
    for kind, bands in (("emp", 9), ("eap", 15), ("eep", 15), ("emap", 43), ("emep", 71)):
        succeed(profile("-q", "-kind", kind, "-nc", 2, scene, tmp_path / (kind + ".tif")))
        out = read(tmp_path / (kind + ".tif"))
        assert out.shape[0] == 2 * bands and np.array_equal(np.isnan(out).any(0), np.isnan(out).all(0))
        assert np.isnan(out[0]).sum() == 4
        # All values are in the component's range. One side is below the component, the other above it, except for
        # rounding of levels.
        x, step = out[0], (np.nanmax(out[0]) - np.nanmin(out[0])) / 65535
        inner = np.isfinite(x)
        for k, name in enumerate(names_of(tmp_path / (kind + ".tif"))[:bands]):
            side = name.split(" ")[1] if k else ""
            if side in ("opening", "thinning", "maxima"):
                assert (out[k] <= x + step)[inner].all(), name
            elif side:
                assert (out[k] >= x - step)[inner].all(), name
    metadata = gdal.Open(str(tmp_path / "emep.tif")).GetMetadata()
    assert metadata["HSI_PROFILE_KIND"] == "emep" and metadata["HSI_PROFILE_AREA"] == "729,243,81,27,9,3,1"


def test_area_goes_by_the_size_of_a_pixel(scene, tmp_path):
    data = read(scene)
    for name, size, epsg, first in (("m", 10, 32616, 100), ("feet", 20 / 0.3048, 2263, 50), ("local", 10, LOCAL, 100),
                                    ("local feet", 20 / 0.3048, 'LOCAL_CS["site",UNIT["foot",0.3048]]', 50),
                                    ("local units", 1, 'LOCAL_CS["site",UNIT["unknown",1]]', 50),
                                    ("local degrees", 1, 'LOCAL_CS["site",UNIT["degree",0.0174532925199433]]', 50), ("none", 1, None, 50)):
        write_scene(tmp_path / (name + ".img"), data, geotransform=(0, size, 0, 0, 0, -size), epsg=epsg)
        result = succeed(profile("-nc", 1, "-report", tmp_path / "r.json", tmp_path / (name + ".img"),
                                 tmp_path / (name + ".tif")))
        areas = json.loads((tmp_path / "r.json").read_text())["profile"]["thresholds"]["area"]
        # In New York, a foot of plane coordinates is the survey foot.
        assert np.allclose(areas, [first * k for k in (1, 3, 5, 7, 9, 11, 13)], rtol=1e-5)
        assert ("is unknown" in result.out) == (name in ("none", "local units", "local degrees"))


def test_memory_threads_and_tiles_change_nothing(scene, tmp_path):
    large = write_scene(tmp_path / "large.img", np.tile(read(scene), (1, 7, 8)))
    common = ("-q", "-nc", 3, "-kind", "emap")
    succeed(profile(*common, "-threads", 1, large, tmp_path / "a.tif"))
    succeed(profile(*common, "-threads", 3, "-tile", 50, 40, large, tmp_path / "b.tif"))
    succeed(profile(*common, "-memory", "12MB", "-threads", 2, "-report", tmp_path / "r.json", large, tmp_path / "c.tif"))
    a = read(tmp_path / "a.tif")
    assert np.array_equal(a, read(tmp_path / "b.tif"), equal_nan=True)
    assert np.array_equal(a, read(tmp_path / "c.tif"), equal_nan=True)
    result = profile(*common, "-memory", "2MB", large, tmp_path / "d.tif")
    assert result.code == 1 and "-memory" in result.err and not (tmp_path / "d.tif").exists()


@pytest.mark.parametrize("kind", ["emp", "emap", "emep"])
def test_bands_as_they_are_made_and_tiles_in_the_end_are_the_same(kind, scene, tmp_path):
    large = write_scene(tmp_path / "large.img", np.tile(read(scene), (1, 5, 4)), dtype="i2")
    common = ("-nc", 2, "-kind", kind, "-threads", 2)
    wanted, least = None, "5MB" if kind == "emp" else "12MB"
    for name, place, options in [("a.tif", "dst as it is made", ()),
                                 ("b.tif", "dst as it is made", ("-memory", "12MB")),
                                 ("c.dat", "dst as it is made", ()),
                                 ("d.tif", "memory", ("-co", "INTERLEAVE=PIXEL")),
                                 ("e.bip", "memory", ()),
                                 ("f.tif", "memory", ("-co", "COMPRESS=DEFLATE")),
                                 ("g.bip", "a temporary file", ("-memory", least))]:
        words = (*common, *options, large, tmp_path / name)
        assert f"profile in {place}\n" in succeed(profile("-dry-run", *words)).out, name
        succeed(profile("-q", *words))
        got = read(tmp_path / name)
        wanted = got if wanted is None else wanted
        assert np.array_equal(got, wanted, equal_nan=True), name
    assert np.isnan(wanted[:, 3, 4]).all() and np.isfinite(wanted[:, 0, 0]).all()
    # Integers and a user's nodata value are computed during the pass.
    whole = ("-q", *common, "-ot", "Int16", "-dstnodata", -9999)
    succeed(profile(*whole, large, tmp_path / "i.tif"))
    succeed(profile(*whole, "-co", "INTERLEAVE=PIXEL", large, tmp_path / "j.tif"))
    stored = [gdal.Open(str(tmp_path / n)).ReadAsArray() for n in ("i.tif", "j.tif")]
    assert np.array_equal(*stored) and np.array_equal(stored[0] == -9999, np.isnan(wanted))
    assert abs(stored[0] - wanted)[np.isfinite(wanted)].max() <= 0.5


@pytest.mark.parametrize("name", ["y.tif", "y.img"])
def test_bands_of_the_scene_keep_what_is_said_of_them(name, tmp_path):
    source = write_scene(tmp_path / "s.tif", np.round(cube(31, 24, 6, scale=400)), driver="GTiff", dtype="i2",
                         wavelengths=[450 + 50 * b for b in range(6)], nodata=-9999)
    dataset = gdal.Open(source, gdal.GA_Update)
    for b in range(1, 7):
        band = dataset.GetRasterBand(b)
        band.SetScale(1e-4 * b)
        band.SetOffset(-0.1)
        band.SetUnitType("W/m2")
        band.SetMetadataItem("fwhm", str(9 + b))
        band.SetMetadataItem("detector", "VNIR")
    dataset = band = None
    of = "GTiff" if name.endswith("tif") else "ENVI"

    def told(path):
        dataset = gdal.Open(str(path))
        bands = [dataset.GetRasterBand(b + 1) for b in range(dataset.RasterCount)]
        items = [band.GetMetadata() for band in bands]
        # An ENVI header lists the scales of all bands.
        return [(band.GetScale() or 1, band.GetOffset() or 0, band.GetUnitType()) +
                tuple(i.get(k) for k in ("wavelength", "wavelength_units", "fwhm", "detector")) for band, i in zip(bands, items)]
    succeed(profile("-q", "-no-pca", "-b", "3,5", "-thresholds", "5,9", "-of", of, source, tmp_path / name))
    found, nothing = told(tmp_path / name), (1, 0, "", None, None, None, None)
    assert len(found) == 10 and names_of(tmp_path / name)[0].startswith("Band 3")
    for place, band in ((0, 3), (5, 5)):
        assert np.isclose(found[place][0], 1e-4 * band, rtol=1e-12, atol=0)
        assert found[place][1:3] == (-0.1, "W/m2") and float(found[place][3]) == 400 + 50 * band
        assert found[place][4:] == ("Nanometers", str(9 + band), "VNIR")
    assert [f for k, f in enumerate(found) if k not in (0, 5)] == [nothing] * 8
    assert np.array_equal(read(tmp_path / name)[[0, 5]], read(source, [3, 5]))
    # A component is not a band of the scene.
    succeed(profile("-q", "-nc", 2, "-thresholds", "5,9", "-of", of, "-overwrite", source, tmp_path / name))
    assert told(tmp_path / name) == [nothing] * 10


def test_dry_run(scene, tmp_path):
    with assert_untouched(tmp_path):
        result = succeed(profile("-dry-run", scene, tmp_path / "y.tif"))
    assert "6 components, 15 bands each" in result.out


@pytest.mark.quick
def test_bad_input(scene, tmp_path):
    y = tmp_path / "y.tif"
    write_scene(tmp_path / "nan.img", np.full((2, 5, 6), np.nan))
    gdal.GetDriverByName("GTiff").Create(str(tmp_path / "complex.tif"), 5, 5, 2, gdal.GDT_CFloat32).FlushCache()
    with assert_untouched(tmp_path):
        for code, message, args in (
                (2, "is not a radius", ("-kind", "emp", "-thresholds", "2.5", scene, y)),
                (2, "is not a radius", ("-kind", "emp", "-thresholds", "0", scene, y)),
                (2, "not a number of extrema", ("-kind", "eep", "-thresholds", "9,0", scene, y)),
                (2, "not a number of extrema", ("-kind", "eep", "-thresholds", "1.5", scene, y)),
                (2, "is not a threshold", ("-thresholds", "-1", scene, y)),
                (2, "is not a threshold", ("-thresholds", "nan", scene, y)),
                (2, "is not a number", ("-thresholds", "a", scene, y)),
                (2, "is not a number", ("-thresholds", "3,", scene, y)),
                (2, "appears twice", ("-thresholds", "3,7,3", scene, y)),
                (2, "no attribute 'volume'", ("-attribute", "volume", scene, y)),
                (2, "no attribute 'inertia'", ("-kind", "eep", "-attribute", "inertia", scene, y)),
                (2, "no attribute 'area'", ("-kind", "emp", "-attribute", "area", scene, y)),
                (2, "was not chosen", ("-kind", "emap", "-attribute", "area", "-thresholds", "std=3", scene, y)),
                (2, "uses one attribute", ("-attribute", "area,std", scene, y)),
                (2, "uses one attribute", ("-kind", "eep", "-attribute", "area,std", scene, y)),
                (2, "appears twice", ("-kind", "emap", "-attribute", "area,area", scene, y)),
                (2, "the attribute is missing", ("-kind", "emap", "-thresholds", "3", scene, y)),
                (2, "has two lists", ("-thresholds", "3", "-thresholds", "4", scene, y)),
                (2, "-nc", ("-nc", 0, scene, y)),
                (2, "-nc", ("-nc", 9, scene, y)),
                (2, "no-pca", ("-nc", 2, "-no-pca", scene, y)),
                (2, "-connectivity", ("-connectivity", 6, scene, y)),
                (1, "complex", ("-no-pca", tmp_path / "complex.tif", y)),
                (1, "no pixel is valid", ("-no-pca", tmp_path / "nan.img", y)),
                (1, "no pixel is valid", (tmp_path / "nan.img", y))):
            result = profile("-q", *args)
            assert result.code == code and message in result.err, (args, result)
            assert not y.exists()
