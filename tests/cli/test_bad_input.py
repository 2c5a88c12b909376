# SPDX-License-Identifier: MIT
"""The response of a raster tool to bad input: the exit code, the first line, and that files are neither left, changed
nor lost. The table is that in the documentation of the command line."""

import json
import os
import pathlib
import resource
import signal
import subprocess

import numpy as np
import pytest
from osgeo import gdal

from conftest import (BIN, PATIENCE, assert_untouched, cube, first_error, open_band, read, refuse_spp, run, spp, start,
                      succeed, wait_for, write_scene)

pytestmark = pytest.mark.quick

BIG = (600, 400, 60)  # samples, lines, bands: 58 MB in single precision, a second of work


@pytest.fixture(scope="session")
def big_scene(tmp_path_factory):
    """Returns a scene that is large enough for a signal to reach the run in its middle."""
    folder = tmp_path_factory.mktemp("big")
    return write_scene(folder / "big.img", cube(*BIG).astype(np.float32))


# --- src --------------------------------------------------------------------------------------------------------------

def test_missing_source(out):
    refuse_spp(1, "/no/such/scene.img", "/no/such/scene.img", out / "out.tif", untouched=[out])


def test_source_that_is_no_raster(tmp_path, out):
    text = tmp_path / "notes.txt"
    text.write_text("not a raster\n" * 100)
    refuse_spp(1, str(text), text, out / "out.tif", untouched=[out])


def test_source_that_is_empty(tmp_path, out):
    empty = tmp_path / "empty.tif"
    empty.touch()
    refuse_spp(1, str(empty), empty, out / "out.tif", untouched=[out])


def test_hdf5_says_nothing_before_us(tmp_path, out):
    """The library prints failures to stderr itself, with one switch per thread; refuse_spp() requires our line to come
    first."""
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "scene.h5"
    with h5py.File(path, "w") as file:
        values = np.random.default_rng(1).random((60, 100, 120)).astype(np.float32)
        file.create_dataset("cube", data=values, chunks=(60, 10, 120), compression="gzip")
    name = f'HDF5:"{path}"://cube'
    refuse_spp(1, "missing", f'HDF5:"{tmp_path / "missing.h5"}"://cube', out / "out.tif", untouched=[out])
    damaged = bytearray(path.read_bytes())
    middle = len(damaged) // 2
    damaged[middle:middle + 2000] = bytes(b ^ 255 for b in damaged[middle:middle + 2000])
    path.write_bytes(damaged)
    result = refuse_spp(1, "cannot read", "-threads", "3", name, out / "out.tif", untouched=[out])
    assert "HDF5-DIAG" not in result.err


def test_source_without_read_permission(tmp_path, out, scene):
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    pathlib.Path(scene).chmod(0)
    refuse_spp(1, scene, scene, out / "out.tif", untouched=[out])


def test_source_without_bands(tmp_path, out):
    # A container of subdatasets has no bands.
    vrt = tmp_path / "none.vrt"
    vrt.write_text('<VRTDataset rasterXSize="10" rasterYSize="10"></VRTDataset>')
    refuse_spp(1, [str(vrt), "band"], vrt, out / "out.tif", untouched=[out])


def test_complex_source(tmp_path, out):
    path = str(tmp_path / "complex.tif")
    gdal.GetDriverByName("GTiff").Create(path, 10, 10, 3, gdal.GDT_CFloat32)
    refuse_spp(1, [path, "CFloat32"], path, out / "out.tif", untouched=[out])


def test_wrong_input_driver(scene, out):
    refuse_spp(1, scene, "-if", "GTiff", scene, out / "out.tif", untouched=[out])


# --- options that do not fit the scene ----------------------------------------------------------------------------------

def test_one_band_is_no_spectrum(tmp_path, out):
    path = write_scene(tmp_path / "one.img", cube(bands=1))
    refuse_spp(2, ["-b", "2"], path, out / "out.tif", untouched=[out])


def test_one_band_asked_for(scene, out):
    refuse_spp(2, ["-b", "2"], "-b", 3, scene, out / "out.tif", untouched=[out])


@pytest.mark.parametrize("path", ["/vsimem/x.tif", "/vsigzip//vsimem/x.img", "/vsizip/vsimem/a.zip/x.img"])
def test_an_output_that_ends_with_the_process(scene, out, path):
    """GDAL's memory belongs to the process, even if another file system of GDAL's wraps it."""
    refuse_spp(2, ["dst", path, "memory of this process"], scene, path, untouched=[out])
    refuse_spp(2, ["dst", path], "-dry-run", scene, path, untouched=[out])
    refuse_spp(2, ["-alpha", path], "-alpha", path, scene, out / "y.tif", untouched=[out])
    refuse_spp(2, ["-report", path], "-report", path, scene, out / "y.tif", untouched=[out])


@pytest.mark.parametrize("ws", ["4", "1", "0", "-3", "65", "3.5", "five", ""])
def test_window_size_that_is_none(scene, out, ws):
    result = refuse_spp(2, "-ws", "-ws", ws, scene, out / "out.tif", untouched=[out])
    if ws.lstrip("-").isdigit():
        assert "3 to 63" in result.err


def test_window_larger_than_the_scene(tmp_path, out):
    path = write_scene(tmp_path / "small.img", cube(10, 8, 4))
    result = refuse_spp(2, ["-ws", "10x8"], "-ws", 11, path, out / "out.tif", untouched=[out])
    assert "3 to 9" in result.err


@pytest.mark.parametrize("bands", ["13", "0", "1-13", "x", "3-2", "2,2"])
def test_bands_that_are_not_there(scene, out, bands):
    refuse_spp(2, "-b", "-b", bands, scene, out / "out.tif", untouched=[out])


def test_band_that_is_not_there_names_the_range(scene, out):
    result = refuse_spp(2, "-b", "-b", "13", scene, out / "out.tif", untouched=[out])
    assert "12" in result.err


@pytest.mark.parametrize("window", [(0, 0, 41, 10), (40, 0, 1, 1), (30, 25, 5, 6), (-1, 0, 5, 5), (0, 0, 0, 5)])
def test_window_outside_the_scene(scene, out, window):
    refuse_spp(2, "-srcwin", "-srcwin", *window, scene, out / "out.tif", untouched=[out])


def test_unknown_option(scene, out):
    result = refuse_spp(2, "-windowsize", "-windowsize", 5, scene, out / "out.tif", untouched=[out])
    assert "gdal_hsi_spp --help" in result.err


def test_tile_that_does_not_fit_into_memory(scene, out):
    refuse_spp(2, "-tile", "-tile", 40, 30, "-memory", "128kB", scene, out / "out.tif", untouched=[out])


def test_memory_that_is_too_small(tmp_path, out):
    path = write_scene(tmp_path / "wide.img", cube(30, 30, 500))
    result = refuse_spp(1, "-memory", "-memory", "100kB", "-ws", 15, path, out / "out.tif", untouched=[out])
    assert "MB" in result.err or "kB" in result.err


@pytest.mark.parametrize("tool", ["gdal_hsi_spp", "gdal_hsi_pca", "gdal_hsi_unmix"])
def test_gpu_that_is_not_there(scene, out, tmp_path, tool):
    env = dict(os.environ, CUDA_VISIBLE_DEVICES="")
    library = tmp_path / "library.csv"
    succeed(run("gdal_hsi_atdca", "-q", "-device", "cpu", "-t", 3, "-spectra", library, scene, tmp_path / "t.csv"))
    arguments = [scene, *([library] if tool == "gdal_hsi_unmix" else []), out / "out.tif"]
    with assert_untouched(out):
        result = run(tool, "-device", "cuda", *arguments, env=env)
    assert result.code == 1
    first_error(result)
    succeed(run(tool, "-device", "auto", *arguments, env=env))


# --- pixels ------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("value", [-9999, np.nan, 0, np.inf])
def test_no_valid_pixel(tmp_path, out, value):
    path = write_scene(tmp_path / "void.img", np.full((4, 10, 12), value), nodata=-9999)
    refuse_spp(1, [path, "valid"], path, out / "out.tif", untouched=[out])


def test_no_pixel_has_all_bands(tmp_path, out):
    data = cube(10, 12, 2)
    data[0, :, :5] = -9999
    data[1, :, 5:] = -9999
    path = write_scene(tmp_path / "halves.img", data, nodata=-9999)
    refuse_spp(1, [path, "valid"], path, out / "out.tif", untouched=[out])


def test_infinite_values_are_counted(tmp_path, out):
    data = cube(10, 12, 4)
    data[1, 2, 3] = np.inf
    data[2, 5, 5] = -np.inf
    data[3, 6, 6] = np.nan
    path = write_scene(tmp_path / "in.img", data)
    result = succeed(spp(path, out / "out.tif"))
    assert "3 of 120 pixels are invalid" in result.out


# --- dst ---------------------------------------------------------------------------------------------------------------

def test_existing_destination(scene, out):
    (out / "out.tif").write_text("precious")
    result = refuse_spp(1, "out.tif", scene, out / "out.tif", untouched=[out])
    assert "-overwrite" in result.err


def test_overwrite_replaces_it_when_done(scene, out):
    for name, options in {"out.tif": [], "out.img": ["-of", "ENVI"]}.items():
        succeed(spp("-q", *options, scene, out / name))
        want, files = read(out / name), set(os.listdir(out))
        (out / name).write_text("old")
        succeed(spp("-q", "-overwrite", *options, scene, out / name))
        assert (read(out / name) == want).all()
        assert set(os.listdir(out)) == files


def test_existing_side_output(scene, out):
    (out / "alpha.tif").write_text("precious")
    refuse_spp(1, "alpha.tif", "-alpha", out / "alpha.tif", scene, out / "out.tif", untouched=[out])


@pytest.mark.parametrize("name, options", [("out.dat", ["-of", "ENVI"]), ("out.tif", []), ("out.img", ["-of", "HFA"])])
def test_overwriting_again_keeps_the_side_files(tmp_path, scene, out, name, options):
    # Relative names and ./names are the same files: the new .hdr must not be treated as an old one.
    for dst in (name, name, "./" + name, f"../{out.name}/" + name, out / name, name):
        succeed(spp("-q", "-overwrite", *options, scene, dst, cwd=out))
        written = read(out / name)
        assert np.isfinite(written).any()
        assert not [f for f in os.listdir(out) if "hsi-" in f]
        if options == ["-of", "ENVI"]:
            assert {"out.dat", "out.hdr"} <= set(os.listdir(out))


def test_failing_overwrite_keeps_the_old_one(tmp_path, scene, out):
    succeed(spp("-q", scene, out / "out.tif"))
    void = write_scene(tmp_path / "void.img", np.full((4, 10, 12), np.nan))
    refuse_spp(1, "valid", "-overwrite", void, out / "out.tif", untouched=[out])


def test_destination_is_the_source(scene):
    folder = pathlib.Path(scene).parent
    with assert_untouched(folder):
        result = spp("-q", "-overwrite", "-of", "ENVI", scene, scene)
        assert result.code in (1, 2)
        first_error(result)
        link = folder.parent / "link.img"
        link.symlink_to(scene)
        assert spp("-q", "-overwrite", "-of", "ENVI", scene, link).code in (1, 2)


def test_same_file_for_two_outputs(scene, out):
    refuse_spp(2, "out.tif", "-alpha", out / "out.tif", scene, out / "out.tif", untouched=[out])
    refuse_spp(2, "-alpha", "-alpha", out / "a.tif", "-rho", out / "a.tif", scene, out / "out.tif", untouched=[out])


def test_unknown_extension_and_format(scene, out):
    result = refuse_spp(2, "nosuchext", scene, out / "out.nosuchext", untouched=[out])
    assert "-of" in result.err
    refuse_spp(2, "NoSuchDriver", "-of", "NoSuchDriver", scene, out / "out.tif", untouched=[out])


def test_format_that_cannot_hold_it(tmp_path, out):
    path = write_scene(tmp_path / "in.img", cube(bands=12))
    refuse_spp(2, "JPEG", "-of", "JPEG", "-ot", "Byte", path, out / "out.jpg", untouched=[out])  # bands
    few = write_scene(tmp_path / "few.img", cube(bands=3))
    refuse_spp(2, ["PNG", "Float32"], "-of", "PNG", few, out / "out.png", untouched=[out])  # type


def test_creation_option_that_is_wrong(scene, out):
    with assert_untouched(out):
        result = spp("-co", "COMPRESS=NOSUCH", scene, out / "out.tif")
    assert result.code in (1, 2)
    first_error(result)


def test_missing_folder(scene, out):
    refuse_spp(1, "nosuch", scene, out / "nosuch" / "out.tif", untouched=[out])


def test_folder_as_destination(scene, out):
    (out / "out.tif").mkdir()
    with assert_untouched(out):
        result = spp("-overwrite", scene, out / "out.tif")
    assert result.code in (1, 2)
    first_error(result)


def test_folder_without_permission(scene, out):
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere (test_folder_that_cannot_be_written has a folder that takes no file)")
    out.chmod(0o555)
    refuse_spp(1, "out.tif", scene, out / "out.tif", untouched=[out])


@pytest.mark.skipif(not os.access("/proc", os.R_OK), reason="no /proc")
def test_folder_that_cannot_be_written(scene):
    # /proc accepts files from no user, not even root.
    result = spp(scene, "/proc/out.tif")
    assert result.code == 1
    assert "/proc" in first_error(result)


def test_report_that_cannot_be_written(scene, out):
    refuse_spp(1, "nosuch", "-report", out / "nosuch" / "run.json", scene, out / "out.tif", untouched=[out])


# --- in the middle -----------------------------------------------------------------------------------------------------

def cut_header(scene, lines):
    """Writes the scene's header without the lines that begin with one of `lines`."""
    header = pathlib.Path(scene).with_suffix(".hdr")
    kept = [line for line in header.read_text().splitlines() if not line.startswith(tuple(lines))]
    header.write_text("\n".join(kept) + "\n")


@pytest.mark.parametrize("key", ["samples", "lines", "bands", "data type", "interleave"])
def test_envi_header_without_a_field(scene, out, key):
    # GDAL assumes Byte and BSQ if they are missing.
    cut_header(scene, [key])
    refuse_spp(1, [scene, key], scene, out / "out.tif", untouched=[out])


def test_envi_header_that_ends_early(scene, out):
    header = pathlib.Path(scene).with_suffix(".hdr")
    text = header.read_text()
    header.write_text(text[:text.index("data type")])
    refuse_spp(1, [scene, "'data type', 'interleave'"], scene, out / "out.tif", untouched=[out])
    header.write_text(text[:text.index("fwhm = {") + 20])
    refuse_spp(1, [scene, "ends within 'fwhm'"], scene, out / "out.tif", untouched=[out])


@pytest.mark.parametrize("key", ["wavelength", "fwhm", "bbl", "data gain values", "data offset values",
                                 "data reflectance gain values"])
def test_envi_list_of_a_wrong_length(scene, out, key):
    """GDAL ignores such lists. We do, too, but with one warning per file, however often the file is read."""
    header = pathlib.Path(scene).with_suffix(".hdr")
    lines = [line for line in header.read_text().splitlines() if not line.startswith(key + " ")]
    header.write_text("\n".join(lines + [f"{key} = {{{', '.join(['1'] * 11)}}}", ""]))
    for tool in ("gdal_hsi_spp", "gdal_hsi_atdca"):
        result = succeed(run(tool, "-q", scene, out / f"{tool}.gpkg", *(["-of", "GTiff"] if tool == "gdal_hsi_spp" else
                                                                       ["-t", 3])))
        assert result.err == f"Warning: '{scene}': the list '{key}' has 11 values for 12 bands and is ignored\n"
    same = run("gdal_hsi_compare", "-q", scene, scene)
    assert same.err.count(f"the list '{key}' has 11 values for 12 bands") == 1, same.err


def test_values_too_large_for_single_precision(tmp_path, out):
    """They become infinite, and their pixels invalid. The warning has their number, which must not depend on tiles or
    threads."""
    data = cube()
    data[3, 4:6, 7] = 1e39
    data[5, 4, 7] = -1e300
    data[0, 20, 30] = np.inf  # infinite in the file
    data[0, 21, 30] = 3.4e38  # nearly the largest float
    data[0, 22, 30] = -1.7e308  # nodata follows below
    said = "3 values are too large for single precision (3.4e38) and become infinite, so 2 pixels are invalid"
    for driver, options in (("ENVI", []), ("GTiff", ["COMPRESS=DEFLATE", "TILED=YES", "BLOCKXSIZE=16", "BLOCKYSIZE=16"])):
        path = write_scene(tmp_path / f"in_{driver}.img", data, driver=driver, dtype="f8", options=options, nodata=-1.7e308)
        for n, args in enumerate(([], ["-threads", 2, "-tile", 16, 16, "-ws", 5])):
            report = out / f"{driver}{n}.json"
            result = succeed(spp("-q", *args, "-report", report, path, out / f"{driver}{n}.tif"))
            assert result.err.count("Warning: ") == 2 and f"Warning: '{path}': {said}" in result.err, result.err
            assert "band 1 has a mean of" in result.err  # of the largest value
            assert json.loads(report.read_text())["invalid_pixels"] == 4
    path = write_scene(tmp_path / "all.img", np.full((3, 6, 7), 1e300), dtype="f8")
    result = spp("-q", path, out / "none.tif")
    assert result.code == 1 and "126 values are too large" in result.err and "no pixel is valid" in result.err
    path = write_scene(tmp_path / "fine.img", cube(), dtype="f8")
    assert succeed(spp("-q", path, out / "fine.tif")).err == ""


def test_envi_fields_that_may_be_missing(scene, out):
    cut_header(scene, ["header offset", "file type", "map info", "coordinate system"])
    succeed(spp(scene, out / "y.tif"))


@pytest.mark.parametrize("change", [("bands   = 12", "bands   = 2"), ("lines   = 30", "lines   = 3"),
                                    ("data type = 4", "data type = 1"), ("samples = 40", "samples = 4")])
@pytest.mark.parametrize("interleave", ["BSQ", "BIL", "BIP"])
def test_raw_file_that_is_longer_than_its_header_says(tmp_path, out, change, interleave):
    # Values that a number has if the header ends within it, or if the header belongs to another file.
    scene = write_scene(tmp_path / "s.dat", cube(), options=[f"INTERLEAVE={interleave}"])
    header = pathlib.Path(scene).with_suffix(".hdr")
    text = header.read_text()
    assert change[0] in text
    header.write_text(text.replace(*change))
    refuse_spp(1, [scene, "has 57600 bytes"], scene, out / "out.tif", untouched=[out])


def test_raw_file_with_a_little_behind_it(scene, out):
    with open(scene, "ab") as data:
        data.write(b"\0" * 100)  # less than a line: padding
    succeed(spp(scene, out / "y.tif"))


def test_truncated_raw_file(tmp_path, out, scene):
    folder = pathlib.Path(scene).parent
    size = pathlib.Path(scene).stat().st_size
    os.truncate(scene, size // 2)
    (out / "out.tif").write_text("precious")
    result = refuse_spp(1, scene, "-overwrite", "-tile", 16, 16, scene, out / "out.tif", untouched=[out, folder])
    assert "0...10...20...30...40...50...60...70...80...90...100" not in result.out


def test_truncated_geotiff(tmp_path, out):
    path = tmp_path / "cut.tif"
    write_scene(path, cube(200, 150, 6), "GTiff")
    # GDAL writes a file's directory at its beginning, so the file still opens.
    os.truncate(path, path.stat().st_size // 2)
    refuse_spp(1, [str(path), "truncated"], path, out / "out.tif", untouched=[out])


def write_compressed(path, compression="DEFLATE"):
    """Writes tiles of 64x64 with one band each. Returns the offset and the size of a tile in the middle of band 4."""
    write_scene(path, cube(200, 150, 6), "GTiff",
                options=["TILED=YES", "BLOCKXSIZE=64", "BLOCKYSIZE=64", f"COMPRESS={compression}", "INTERLEAVE=BAND"])
    band = open_band(path, 4)
    return [int(band.GetMetadataItem(f"BLOCK_{what}_1_1", "TIFF")) for what in ("OFFSET", "SIZE")]


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("compression", ["DEFLATE", "LZW", "ZSTD"])
@pytest.mark.parametrize("cut", [False, True])
def test_damaged_compressed_tile(tmp_path, out, compression, cut, old):
    if compression not in gdal.GetDriverByName("GTiff").GetMetadataItem("DMD_CREATIONOPTIONLIST"):
        pytest.skip(f"this GDAL writes no {compression}")
    path = tmp_path / "damaged.tif"
    offset, size = write_compressed(path, compression)
    if cut:
        os.truncate(path, offset + size // 2)
    else:
        with open(path, "r+b") as file:
            file.seek(offset)
            file.write(b"\xff" * size)
    if old:
        (out / "out.tif").write_text("precious")
    report = tmp_path / "run.json"
    result = refuse_spp(1, ["tile at", "line"], "-overwrite", "-tile", 64, 64, "-report", report, path, out / "out.tif",
                    untouched=[out])
    assert "100 - done" not in result.out
    assert json.loads(report.read_text())["error"]["message"] == first_error(result)


def test_source_that_vanishes_behind_a_vrt(tmp_path, out):
    write_scene(tmp_path / "part.tif", cube(bands=4), "GTiff")
    gdal.BuildVRT(str(tmp_path / "all.vrt"), [str(tmp_path / "part.tif")])
    (tmp_path / "part.tif").unlink()
    with assert_untouched(out):
        result = spp(tmp_path / "all.vrt", out / "out.tif")
    assert result.code == 1
    first_error(result)


@pytest.mark.parametrize("kind,name", [("GTiff", "out.tif"), ("ENVI", "out.img")])
@pytest.mark.parametrize("old", [False, True])
def test_file_that_may_not_grow(big_scene, out, kind, name, old):
    """A limit on file sizes simulates a full disk: a write in the middle fails."""
    if old:
        (out / name).write_text("precious")
    with assert_untouched(out):
        result = spp("-q", "-overwrite", "-of", kind, big_scene, out / name, limits={resource.RLIMIT_FSIZE: 20 << 20})
    assert result.code == 1
    first_error(result)


@pytest.mark.parametrize("kind,name", [("GTiff", "out.tif"), ("ENVI", "out.img")])
def test_full_disk(big_scene, small_disk, kind, name):
    (small_disk / "note").write_text("stays")
    with assert_untouched(small_disk):
        result = spp("-q", "-of", kind, big_scene, small_disk / name)
    assert result.code == 1
    assert "0 B" not in first_error(result)


def test_disk_that_fills_up_with_the_last_block(tmp_path, out):
    """Compressed tiles are written when the file is closed; an error then must also be reported."""
    path = write_scene(tmp_path / "in.img", cube(120, 100, 20, noise=0.5))
    with assert_untouched(out):
        result = spp("-q", "-co", "COMPRESS=DEFLATE", path, out / "out.tif", limits={resource.RLIMIT_FSIZE: 100 << 10})
    assert result.code == 1
    first_error(result)


def in_the_middle(act, scene, out, *options, window=15):
    """Runs spp on the scene, and calls `act` on its process in its second pass."""
    process = start("gdal_hsi_spp", "-device", "cpu", "-threads", 1, "-tile", 100, 20, "-ws", window, *options, scene,
                    out / "out.img", "-of", "ENVI", "-overwrite", nice=10)
    names = set(os.listdir(out))
    try:
        # A temporary file in the folder shows that the second pass has begun.
        assert wait_for(lambda: set(os.listdir(out)) - names or process.poll() is not None)
        assert process.poll() is None, process.communicate()
        act(process)
        stdout, stderr = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    return process.returncode, stdout.decode(), stderr.decode()


def interrupted_in_the_middle(number, big_scene, out, *options):
    return in_the_middle(lambda process: process.send_signal(number), big_scene, out, *options)


@pytest.mark.parametrize("how", ["in place", "put back", "replaced", "header", "mode", "link"])
def test_source_that_changes_meanwhile(tmp_path, out, how):
    """A second pass would find a different scene, and mix its pixels with the first scene's statistics. A new mode or
    hard link changes no pixel."""
    scene = pathlib.Path(write_scene(tmp_path / "s.img", cube(*BIG)))

    def change(_):
        if how in ("in place", "put back"):
            times = scene.stat()
            with open(scene, "r+b") as file:
                file.write(bytes(4000))
            if how == "put back":
                os.utime(scene, ns=(times.st_atime_ns, times.st_mtime_ns))
        elif how == "mode":
            scene.chmod(0o600)
        elif how == "link":
            os.link(scene, tmp_path / "linked.img")
        elif how == "replaced":
            (tmp_path / "new.img").write_bytes(scene.read_bytes())
            os.replace(tmp_path / "new.img", scene)
        else:
            os.utime(scene.with_suffix(".hdr"), (1, 1))

    (out / "out.img").write_text("old")
    if how in ("mode", "link"):
        code, _, err = in_the_middle(change, scene, out, window=7)
        assert code == 0 and "was changed" not in err, err
        return
    with assert_untouched(out):
        code, _, err = in_the_middle(change, scene, out, window=7)  # it runs to its end
    assert code == 1 and "was changed while this run read it" in err, err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGXCPU])
@pytest.mark.parametrize("old", [False, True])
def test_signal_in_the_middle(big_scene, tmp_path, out, number, old):
    if old:
        (out / "out.img").write_text("precious")
    report = tmp_path / "run.json"
    with assert_untouched(out):
        code, stdout, stderr = interrupted_in_the_middle(number, big_scene, out, "-report", report)
    assert code == 1
    assert stderr.splitlines()[0] == "ERROR: interrupted"
    assert "100 - done" not in stdout
    assert json.loads(report.read_text())["error"]["message"] == "interrupted"


def test_killed_run_leaves_the_old_destination(big_scene, out):
    (out / "out.img").write_text("precious")
    code, _, _ = interrupted_in_the_middle(signal.SIGKILL, big_scene, out)
    assert code == -signal.SIGKILL
    assert (out / "out.img").read_text() == "precious"


def test_reader_of_stdout_that_goes_away(scene, out):
    """head closes the pipe, but the work is completed."""
    process = subprocess.run(
        f"'{BIN / 'gdal_hsi_spp'}' -device cpu '{scene}' '{out / 'out.tif'}' | true; echo ${{PIPESTATUS[0]}}", shell=True,
        executable="/bin/bash", capture_output=True, text=True, timeout=PATIENCE)
    assert process.stdout.strip() == "0", process.stderr
    assert read(out / "out.tif").shape == (12, 30, 40)


@pytest.mark.parametrize("word", ["Band Interleaved by Line", "BSX", ""])
def test_an_interleave_that_is_none(word, scene, tmp_path, out):
    path = tmp_path / "odd.img"
    gdal.Translate(str(path), scene, format="ENVI")
    header = path.with_suffix(".hdr")
    text = header.read_text()
    assert "interleave = bsq" in text.lower()
    header.write_text(text.replace("interleave = bsq", "interleave = " + word))
    refuse_spp(1, "interleave", path, out / "out.tif", untouched=[out])
