# SPDX-License-Identifier: MIT
"""GDAL's driver for virtual scenes (.hsi) in the plugin: pixels, windows, threads and metadata in GDAL's own programs
equal those of the file that the tool would have written."""

import concurrent.futures
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from osgeo import gdal

from conftest import PLUGINS, cube, run, stored_bytes, succeed, write_utm_scene as write_scene

BANDS = 12
os.environ["GDAL_DRIVER_PATH"] = str(PLUGINS)
gdal.SetConfigOption("GDAL_DRIVER_PATH", str(PLUGINS))
gdal.AllRegister()
if gdal.GetDriverByName("HSI") is None:
    pytest.skip("no hsi_driver for this version of GDAL was built", allow_module_level=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Makes some results as files and as virtual scenes."""
    folder = tmp_path_factory.mktemp("driver")
    data = cube(samples=300, lines=170, bands=BANDS)
    data[:, 20:25, 10:18] = -99
    write_scene(folder / "scene.img", data, dtype="i2", nodata=-99, wavelengths=[400 + 10 * b for b in range(BANDS)])
    labels = np.zeros((1, 170, 300))
    labels[0, 2:160:8, 2:290:12] = (np.arange(20)[:, None] // 5) % 3 + 1  # few, or training takes minutes
    write_scene(folder / "labels.tif", labels, driver="GTiff", dtype="u1")
    for extension in (".tif", ".hsi"):
        tool = ("-q", "-device", "cpu")
        succeed(run("gdal_hsi_spp", *tool, folder / "scene.img", folder / f"spp{extension}"))
        succeed(run("gdal_hsi_pca", *tool, folder / f"spp{extension}", folder / f"pca{extension}"))
        if extension == ".tif":
            succeed(run("gdal_hsi_svm_train", "-q", "-C", 10, "-gamma", 1, folder / "pca.tif", folder / "labels.tif",
                        folder / "model.json"))
        succeed(run("gdal_hsi_svm_classify", *tool, "-apply", folder / "model.json", folder / f"pca{extension}",
                    folder / f"map{extension}"))
    return folder


NAMES = ["spp", "pca", "map"]


def same(a, b):
    return a.dtype == b.dtype and a.tobytes() == b.tobytes()


def both(folder, name):
    return gdal.Open(str(folder / f"{name}.tif")), gdal.Open(str(folder / f"{name}.hsi"))


@pytest.mark.quick
@pytest.mark.parametrize("name", NAMES)
def test_pixels(folder, name):
    file, computed = both(folder, name)
    assert computed.GetDriver().ShortName == "HSI"
    assert same(file.ReadAsArray(), computed.ReadAsArray())
    for b in range(1, file.RasterCount + 1):
        one = file.GetRasterBand(b).ReadAsArray(7, 9, 201, 150), computed.GetRasterBand(b).ReadAsArray(7, 9, 201, 150)
        assert same(*one)
    assert same(file.ReadAsArray(33, 44, 55, 66), computed.ReadAsArray(33, 44, 55, 66))
    assert same(file.ReadAsArray(0, 0, 3, 1), computed.ReadAsArray(0, 0, 3, 1))
    assert same(file.ReadAsArray(buf_type=gdal.GDT_Float64), computed.ReadAsArray(buf_type=gdal.GDT_Float64))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [(100, 50), (299, 80), (7, 3), (300, 10)])
def test_decimated(folder, name, size):
    file, computed = both(folder, name)
    read = {"buf_xsize": size[0], "buf_ysize": size[1]}
    assert same(file.ReadAsArray(**read), computed.ReadAsArray(**read))
    one = file.GetRasterBand(1), computed.GetRasterBand(1)
    assert same(*(band.ReadAsArray(5, 6, 250, 121, **read) for band in one))


@pytest.mark.parametrize("name", NAMES)
def test_what_it_says(folder, name):
    file, computed = both(folder, name)
    assert file.GetGeoTransform() == computed.GetGeoTransform()
    assert file.GetProjection() == computed.GetProjection()
    for b in range(1, file.RasterCount + 1):
        one, other = file.GetRasterBand(b), computed.GetRasterBand(b)
        assert one.DataType == other.DataType
        assert str(one.GetNoDataValue()) == str(other.GetNoDataValue())
        assert one.GetDescription() == other.GetDescription()
        assert one.GetMetadata() == other.GetMetadata()
        assert one.GetCategoryNames() == other.GetCategoryNames()
        colours, others = one.GetColorTable(), other.GetColorTable()
        assert (colours is None) == (others is None)
        if colours is not None:
            assert [colours.GetColorEntry(k) for k in range(4)] == [others.GetColorEntry(k) for k in range(4)]
        assert same(one.GetMaskBand().ReadAsArray(), other.GetMaskBand().ReadAsArray())
        np.testing.assert_allclose(one.ComputeStatistics(False), other.ComputeStatistics(False), rtol=1e-9, atol=1e-6)
    said, told = file.GetMetadata(), computed.GetMetadata()
    for items in (said, told):
        items.pop("HSI_HISTORY", None), items.pop("AREA_OR_POINT", None)
    assert said == told
    assert str(folder / "scene.img") in computed.GetFileList()


def test_programs(folder, tmp_path):
    for args in (["gdalinfo", "-checksum", "spp.hsi"], ["gdal_translate", "-q", "-of", "ENVI", "spp.hsi", tmp_path / "a.img"],
                 ["gdalwarp", "-q", "-tr", "40", "40", "pca.hsi", tmp_path / "b.tif"],
                 ["gdalwarp", "-q", "-tr", "40", "40", "pca.tif", tmp_path / "c.tif"],
                 *(["gdalwarp", "-q", "-multi", "-wo", "NUM_THREADS=4", "-r", "bilinear", "-t_srs", "EPSG:4326",
                    f"spp.{extension}", tmp_path / f"w.{extension}.tif"] for extension in ("tif", "hsi"))):
        result = subprocess.run([str(a) for a in args], cwd=folder, capture_output=True, text=True, timeout=300, check=False)
        assert result.returncode == 0 and "ERROR" not in result.stderr, result.stderr
    assert gdal.Open(str(tmp_path / "a.img")).ReadAsArray().tobytes() == stored_bytes(folder / "spp.tif")
    assert stored_bytes(tmp_path / "b.tif") == stored_bytes(tmp_path / "c.tif")
    assert stored_bytes(tmp_path / "w.tif.tif") == stored_bytes(tmp_path / "w.hsi.tif")


def test_a_small_cache_changes_nothing(folder):
    before = gdal.GetCacheMax()
    gdal.SetCacheMax(1 << 20)
    try:
        file, computed = both(folder, "spp")
        for b in (1, 5, 12):
            assert same(file.GetRasterBand(b).ReadAsArray(), computed.GetRasterBand(b).ReadAsArray())
    finally:
        gdal.SetCacheMax(before)


def test_threads(folder):
    whole = gdal.Open(str(folder / "pca.tif")).ReadAsArray()

    def look(number):
        dataset = gdal.Open(str(folder / "pca.hsi"))
        x, y = 17 * number % 200, 13 * number % 100
        return same(dataset.ReadAsArray(x, y, 80, 60), np.ascontiguousarray(whole[:, y:y + 60, x:x + 80]))
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        assert all(pool.map(look, range(60)))


@pytest.mark.parametrize("device, word", [("gpu", "'gpu' is not a device"), ("cuda:0,0", "is not a device"),
                                          ("cuda:99", "no CUDA device was found|there (is|are) only"),
                                          ("cuda:0,99", "no CUDA device was found|there (is|are) only")])
def test_a_device_that_is_not_there(folder, device, word):
    """The scene does not open; the message names the option and the missing device."""
    for name in NAMES:
        gdal.SetConfigOption("GDAL_HSI_DEVICE", device)
        try:
            with pytest.raises(RuntimeError, match=f"GDAL_HSI_DEVICE.*({word})"):
                gdal.Open(str(folder / f"{name}.hsi"))
        finally:
            gdal.SetConfigOption("GDAL_HSI_DEVICE", None)
        assert gdal.Open(str(folder / f"{name}.hsi")).ReadAsArray(0, 0, 4, 4) is not None


@pytest.mark.parametrize("interleave", ["band", "line", "pixel", "apart"])
def test_buffers_of_any_layout(folder, interleave):
    """Values are written directly into a buffer of floats, and converted for others."""
    file, computed = both(folder, "spp")
    x, y, w, h, bands = 31, 17, 200, 90, file.RasterCount
    pixel, line, band = {"band": (4, 4 * w, 4 * w * h), "line": (4, 4 * w * bands, 4 * w),
                         "pixel": (4 * bands, 4 * w * bands, 4), "apart": (4, 4 * w + 8, (4 * w + 8) * h + 12)}[interleave]
    cubes = []
    for dataset in (file, computed):
        buffer = dataset.ReadRaster(x, y, w, h, buf_type=gdal.GDT_Float32, buf_pixel_space=pixel, buf_line_space=line,
                                    buf_band_space=band)
        values = np.lib.stride_tricks.as_strided(np.frombuffer(buffer, "u1"), (bands, h, w, 4), (band, line, pixel, 1))
        cubes.append(np.ascontiguousarray(values))
    assert same(*cubes) and same(cubes[0].view("f4")[..., 0], file.ReadAsArray(x, y, w, h))


RASTERIO = """
import concurrent.futures, sys, time
import numpy as np
import rasterio
from rasterio.windows import Window
folder, seconds = sys.argv[1], float(sys.argv[2])
with rasterio.open(folder + "/spp.tif") as file:
    whole, tags, nodata = file.read(), file.descriptions, file.nodata
end = time.monotonic() + seconds
def look(number):
    looks, random = 0, np.random.default_rng(number)
    with rasterio.open(folder + "/spp.hsi") as computed:
        assert computed.driver == "HSI" and computed.nodata == nodata and computed.descriptions == tags
        while looks < 3 or time.monotonic() < end:
            x, y = int(random.integers(0, 250)), int(random.integers(0, 130))
            bands = [int(b) for b in random.permutation(len(whole))[:1 + number % len(whole)]]
            part = computed.read([b + 1 for b in bands], window=Window(x, y, 50, 40))
            assert part.tobytes() == np.ascontiguousarray(whole[bands][:, y:y + 40, x:x + 50]).tobytes()
            looks += 1
    return looks
with concurrent.futures.ThreadPoolExecutor(6) as pool:
    print(sum(pool.map(look, range(12))))
"""


def test_threads_of_rasterio(folder):
    """Six threads of one Python open the scene and read different parts for a while."""
    environment = {**os.environ, "GDAL_DRIVER_PATH": str(PLUGINS)}
    if subprocess.run([sys.executable, "-c", "import rasterio, sys; from osgeo import gdal; "
                       "sys.exit(rasterio.__gdal_version__[:4] != gdal.__version__[:4])"],
                      capture_output=True, check=False).returncode != 0:
        pytest.skip("no rasterio with the GDAL that hsi_driver was built for")
    done = subprocess.run([sys.executable, "-c", RASTERIO, str(folder), "3"], env=environment, capture_output=True, text=True,
                          timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 36


def test_what_is_wrong_is_gdals_error(folder, tmp_path):
    for name in ("scene.img", "scene.hdr"):
        shutil.copy2(folder / name, tmp_path / name)
    succeed(run("gdal_hsi_spp", "-q", tmp_path / "scene.img", tmp_path / "y.hsi"))
    gdal.UseExceptions()
    with pytest.raises(RuntimeError, match="cannot be changed"):
        gdal.Open(str(tmp_path / "y.hsi"), gdal.GA_Update)
    os.utime(tmp_path / "scene.img", ns=(0, 1))
    with pytest.raises(RuntimeError, match="was changed after"):
        gdal.Open(str(tmp_path / "y.hsi"))
    (tmp_path / "y.hsi").write_text((tmp_path / "y.hsi").read_text()[:300])
    with pytest.raises(RuntimeError, match="is damaged"):
        gdal.Open(str(tmp_path / "y.hsi"))


def test_a_driver_that_is_not_whole(tmp_path):
    """As after a full disk: GDAL's programs continue without the driver, and report it on request. The loader alone
    would end them."""
    for module in PLUGINS.glob("*.so"):
        shutil.copy(module, tmp_path)
    driver, = tmp_path.glob(f"hsi_driver.{'.'.join(gdal.VersionInfo('RELEASE_NAME').split('.')[:2])}.so")
    os.truncate(driver, driver.stat().st_size // 2)
    result = subprocess.run(["gdalinfo", "--formats"], env={**os.environ, "GDAL_DRIVER_PATH": str(tmp_path), "CPL_DEBUG": "HSI"},
                            capture_output=True, text=True)
    assert result.returncode == 0 and "GTiff" in result.stdout and "HSI -raster-" not in result.stdout
    assert f"{driver} is incomplete: it has" in result.stderr


def test_a_source_that_changes_while_it_is_open(folder, tmp_path):
    """The source is changed in place, replaced by another file, or removed: a window whose blocks are missing gives a
    GDAL error instead of a mixture of two scenes. A new mode or hard link changes no pixel."""
    def open_copy():
        for name in ("scene.img", "scene.hdr"):
            shutil.copy2(folder / name, tmp_path / name)
        succeed(run("gdal_hsi_spp", "-q", "-overwrite", tmp_path / "scene.img", tmp_path / "y.hsi"))
        succeed(run("gdal_hsi_pca", "-q", "-overwrite", "-nc", 3, tmp_path / "y.hsi", tmp_path / "p.hsi"))
        dataset = gdal.Open(str(tmp_path / "p.hsi"))
        assert dataset.GetRasterBand(1).ReadAsArray(0, 0, 20, 20) is not None
        return dataset
    gdal.UseExceptions()
    scene = tmp_path / "scene.img"

    def write_in_place():
        data = bytearray(scene.read_bytes())
        data[len(data) // 2] ^= 1
        with open(scene, "r+b") as file:
            file.write(data)

    def replace():
        os.utime(shutil.copy2(scene, tmp_path / "other"), ns=(scene.stat().st_atime_ns, scene.stat().st_mtime_ns))
        os.replace(tmp_path / "other", scene)

    def put_back():
        times = scene.stat()
        write_in_place()
        os.utime(scene, ns=(times.st_atime_ns, times.st_mtime_ns))
    right = open_copy().ReadAsArray()
    for change in (lambda: scene.chmod(0o600), lambda: os.link(scene, tmp_path / "linked")):
        dataset = open_copy()
        change()
        np.testing.assert_array_equal(dataset.ReadAsArray(), right)
    for change in (write_in_place, put_back, replace, scene.unlink, lambda: os.truncate(scene, 100),
                   lambda: os.utime(tmp_path / "y.hsi", ns=(0, 1))):
        dataset = open_copy()
        change()
        for read in (dataset.ReadAsArray, lambda d=dataset: d.GetRasterBand(1).ReadAsArray(),
                     lambda d=dataset: d.GetRasterBand(2).ReadAsArray(200, 130, 50, 30),
                     lambda d=dataset: d.GetRasterBand(1).ReadAsArray(buf_xsize=10, buf_ysize=10)):
            with pytest.raises(RuntimeError, match="was changed after|the file ends"):
                read()
