# SPDX-License-Identifier: MIT
"""gdal_hsi_info: its report of positions, wavelengths and values, and the commands that it proposes, which must run."""

import json
import shlex

import numpy as np
import pytest
from osgeo import osr

from conftest import cube, first_error, run, succeed, write_scene


def info(*args):
    return json.loads(succeed(run("gdal_hsi_info", "-json", *args)).out)


def text_of(*args):
    return succeed(run("gdal_hsi_info", *args)).out


def test_epsg_and_extent(tmp_path):
    scene = write_scene(tmp_path / "s.tif", cube(9, 7, 3), driver="GTiff", epsg=32633,
                        geotransform=(300000, 30, 0, 5800000, 0, -30))
    facts = info(scene)
    assert facts["epsg"] == 32633 and facts["extent"] == [300000, 5800000 - 7 * 30, 300000 + 9 * 30, 5800000]
    assert "WGS 84 / UTM zone 33N (EPSG:32633)" in text_of(scene)
    assert "300000 to 300270, 5799790 to 5800000 (x, y)" in text_of(scene)
    # For the window.
    assert info("-srcwin", 2, 3, 4, 2, scene)["extent"] == [300060, 5800000 - 150, 300180, 5800000 - 90]
    # Rotated: the corners by hand.
    gt = (100, 3, 2, 50, 1, -4)
    rotated = write_scene(tmp_path / "r.tif", cube(9, 7, 3), driver="GTiff", geotransform=gt)
    corners = [(gt[0] + x * gt[1] + y * gt[2], gt[3] + x * gt[4] + y * gt[5]) for x in (0, 9) for y in (0, 7)]
    low, high = np.min(corners, axis=0), np.max(corners, axis=0)
    assert info(rotated)["extent"] == [*low, *high]


def test_an_srs_that_does_not_say_its_code(tmp_path):
    """ENVI headers have ESRI's WKT, without codes."""
    scene = write_scene(tmp_path / "s.img", cube(9, 7, 3), epsg=32616)
    assert info(scene)["epsg"] == 32616
    own = write_scene(tmp_path / "own.tif", cube(9, 7, 3), driver="GTiff", epsg=None)
    srs = osr.SpatialReference()
    srs.SetFromUserInput("+proj=laea +lat_0=11 +lon_0=22 +x_0=33 +y_0=44 +ellps=bessel")
    from osgeo import gdal
    dataset = gdal.Open(str(own), gdal.GA_Update)
    dataset.SetSpatialRef(srs)
    del dataset
    assert info(own)["epsg"] is None and "EPSG" not in text_of(own).split("Next:")[0]
    bare = write_scene(tmp_path / "bare.tif", cube(9, 7, 3), driver="GTiff", epsg=None, geotransform=None)
    assert info(bare)["epsg"] is None and info(bare)["extent"] is None and "no SRS" in text_of(bare)


def test_wavelengths_out_of_order(tmp_path):
    nm = [450, 500, 550, 545, 550, 600]
    scene = write_scene(tmp_path / "s.img", cube(9, 7, 6), wavelengths=nm)
    assert info(scene)["wavelengths_out_of_order"] == [4, 5]
    assert "450 to 600 nm; not ascending: bands 4, 5; detectors overlap" in text_of(scene)
    assert info("-b", "1-3,6", scene)["wavelengths_out_of_order"] == []
    falling = write_scene(tmp_path / "f.img", cube(9, 7, 6), wavelengths=[600, 550, 540, 530, 500, 450])
    assert "450 to 600 nm; descending" in text_of(falling) and "overlap" not in text_of(falling)


@pytest.mark.parametrize("interleave", ["BSQ", "BIP"])
def test_empty_bands_and_extremes(tmp_path, interleave):
    data = np.random.default_rng(3).normal(100, 900, (7, 31, 37)).astype(np.float32)
    data[[2, 5]] = -9999
    data[:, 4, 9] = -9999
    data[1, 5, 6] = np.nan  # makes the pixel invalid
    data[0, 5, 6] = 1e9
    data[[0, 1, 3, 4, 6], 8, 8] = 0
    scene = write_scene(tmp_path / "s.img", data, nodata=-9999, options=[f"INTERLEAVE={interleave}"])
    kept = [0, 1, 3, 4, 6]
    valid = np.isfinite(data[kept]).all(axis=0) & (data[kept] != -9999).all(axis=0) & (data[kept] != 0).any(axis=0)
    pixels = data[kept][:, valid]
    for args in (("-extremes",), ("-extremes", "-tile", 8, 5, "-threads", 3), ("-extremes", "-count")):
        facts = info(*args, scene)
        assert facts["empty_bands"] == [3, 6] and facts["counted_bands"] == [1, 2, 4, 5, 7]
        assert facts["valid_pixels"] == valid.sum() == 31 * 37 - 3
        assert facts["minimum"] == pixels.min(axis=1).tolist() and facts["maximum"] == pixels.max(axis=1).tolist()
        assert np.allclose(facts["mean"], pixels.mean(axis=1, dtype=np.float64), rtol=1e-6)
    facts = info("-count", scene)
    assert facts["empty_bands"] == [3, 6] and "minimum" not in facts
    assert "empty_bands" not in info(scene), "not without a pass"
    text = text_of("-extremes", scene)
    assert "Empty bands:    3,6 (" in text and f"Band 4:         {pixels[2].min():.6g} to {pixels[2].max():.6g}, mean" in text
    whole = write_scene(tmp_path / "whole.img", data[kept])
    assert info("-count", whole)["empty_bands"] == [] and "Empty bands:    none" in text_of("-count", whole)


def commands(*args, cwd):
    facts = json.loads(succeed(run("gdal_hsi_info", "-json", *args, cwd=cwd)).out)
    return facts.get("next", [])


@pytest.mark.parametrize("name", ["s.img", "it's a scene.img", "s;x $HOME.img"])
def test_the_next_commands_run(tmp_path, name):
    write_scene(tmp_path / name, cube(20, 15, 12))
    (tmp_path / f"{name[:-4]}_pca.tif").write_text("is there")
    proposed = commands(name, cwd=tmp_path)
    assert [shlex.split(c)[0] for c in proposed] == ["gdal_hsi_info", "gdal_hsi_vd", "gdal_hsi_pca"]
    for command in proposed:
        tool, *args = shlex.split(command)
        succeed(run(tool, *args, cwd=tmp_path))
    assert (tmp_path / f"{name[:-4]}_pca_2.tif").exists()
    assert (tmp_path / f"{name[:-4]}_pca.tif").read_text() == "is there"
    shown = succeed(run("gdal_hsi_info", name, cwd=tmp_path)).out.split("Next:")[1].split("\n")
    assert "gdal_hsi_info -count" in shown[0] and "gdal_hsi_vd" in shown[1]


def test_what_was_seen_decides(tmp_path):
    single = write_scene(tmp_path / "one.tif", cube(20, 15, 1), driver="GTiff")
    assert [shlex.split(c)[0] for c in commands(single, cwd=tmp_path)] == ["gdal_hsi_info"]
    assert commands("-count", single, cwd=tmp_path) == []
    few = write_scene(tmp_path / "few.tif", cube(20, 15, 4), driver="GTiff")
    assert "-nc 4 " in commands("-count", few, cwd=tmp_path)[-1]
    assert " -if GTiff " in commands("-if", "GTiff", few, cwd=tmp_path)[0]


# --- libraries, and files that are neither libraries nor scenes


def write_sli(path, spectra, wavelengths=(400, 500, 600, 700)):
    np.asarray(spectra, "<f4").tofile(path)
    path.with_suffix(".hdr").write_text(
        f"ENVI\nsamples = {np.shape(spectra)[1]}\nlines = {len(spectra)}\nbands = 1\nheader offset = 0\n"
        "file type = ENVI Spectral Library\ndata type = 4\ninterleave = bsq\nbyte order = 0\n"
        f"wavelength units = nm\nwavelength = {{{', '.join(map(str, wavelengths))}}}\n")
    return path


@pytest.mark.parametrize("option", [("-b", "1-3"), ("-b", "400-500nm"), ("-exclude-range", "400-500nm"), ("-bbl", "ignore"),
                                    ("-srcwin", 0, 0, 1, 1), ("-srcnodata", 0), ("-oo", "A=B"), ("-plan",)])
def test_options_of_rasters_are_refused_by_name_for_libraries(tmp_path, option):
    result = run("gdal_hsi_info", *option, write_sli(tmp_path / "lib.sli", [[1, 2, 3, 4]]))
    assert result.code == 2 and f"{option[0]} cannot be used with the spectral library" in first_error(result)
    assert "is a spectral library" not in first_error(result)


def test_counts_of_libraries(tmp_path):
    library = write_sli(tmp_path / "lib.sli", [[1, np.nan, 3, np.nan], [5, 6, 7, np.nan]])
    for option in ("-count", "-extremes"):
        facts = info(option, library)
        assert (facts["missing_values"], facts["complete_bands"], facts["empty_bands"]) == (3, 2, [4])
        assert facts["spectra"][0]["minimum"] == 1 and facts["spectra"][1]["maximum"] == 7
    assert "missing_values" not in info(library)


REFUSED = {
    "lib.csv": ("wavelength_nm,oak\n400,0.1\n500,0.2,7\n", "line 3 has 3 columns instead of 2"),
    "lib.txt": ("wavelength_nm oak\n400 0.1\n500 much\n600 0.2\n", "has a value that is not a number ('much')"),
    "long.csv": ("id,wavelength_nm,value\na,400,0.1\na,500,0.2\nb,400,0.3\nb,500,0.4\n", "is in long format"),
    "x.jdx": ("##TITLE=x\n##XYDATA=(X++(Y..Y))\n4000 1 2\n", "is a JCAMP-DX file"),
    "grid.txt": ("450.000\t0.1\n460.000\t0.2\n460.500\t0.3 0.4\n", "columns instead of"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_why_a_library_is_refused(tmp_path, name):
    text, reason = REFUSED[name]
    (tmp_path / name).write_text(text)
    result = run("gdal_hsi_info", tmp_path / name)
    assert result.code == 1 and "cannot open" in first_error(result)
    assert "It also cannot be read as a spectral library: " in result.err and reason in result.err


@pytest.mark.parametrize("content", [b"\x00\x01\x02nothing", b"<VRTDataset rasterXSize='1'>"])
def test_what_cannot_be_a_library_has_one_reason(tmp_path, content):
    (tmp_path / "f.dat").write_bytes(content)
    result = run("gdal_hsi_info", tmp_path / "f.dat")
    assert result.code == 1 and "spectral library" not in result.err


def test_a_table_without_wavelengths_is_told_as_what_it_would_be(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,4\n")
    result = run("gdal_hsi_info", tmp_path / "t.csv")
    assert result.code == 1 and "Read as a spectral library, it has 2 spectra of 2 bands without wavelengths." in result.err


def test_a_file_of_matlab_may_hold_a_scene_beside_the_library(tmp_path):
    scipy_io = pytest.importorskip("scipy.io")
    scipy_io.savemat(tmp_path / "toy.mat", {"I": np.ones((6, 5, 12)), "J": np.ones((6, 5, 12)), "wl": 400 + 50. * np.arange(12),
                                            "R": np.arange(36.).reshape(12, 3)})
    result = run("gdal_hsi_info", tmp_path / "toy.mat")
    assert result.code == 0 and "spectral library\n" in result.out and "no raster" not in result.out
    assert "As a scene:     " in result.out and "has several arrays that may be the scene" in result.out
    assert "Use one of them" in json.loads(run("gdal_hsi_info", "-json", tmp_path / "toy.mat").out)["not_a_scene"]


# --- no pixel is valid in all bands


@pytest.mark.parametrize("interleave", ["BSQ", "BIP"])
def test_figures_of_bands_that_no_pixel_shares(tmp_path, interleave):
    data = np.zeros((3, 20, 31), np.int16)
    data[0, :, ::2] = np.arange(20)[:, None] + 5
    data[1, :, 1::2] = 7
    scene = write_scene(tmp_path / "s.img", data, nodata=0, dtype="i2", options=[f"INTERLEAVE={interleave}"])
    for more in ((), ("-tile", 7, 3, "-threads", 3)):
        result = run("gdal_hsi_info", "-json", "-extremes", *more, scene)
        facts = json.loads(succeed(result).out)
        assert facts["valid_pixels"] == 0 and facts["empty_bands"] == [3] and facts["counted_bands"] == [1, 2]
        assert facts["minimum"] == [5, 7] and facts["maximum"] == [24, 7] and facts["mean"] == [14.5, 7]
        assert facts["values"] == [320, 300]
        assert "no pixel is valid in all 2 bands" in result.err
    text = text_of("-extremes", scene)
    assert "Band 1:         5 to 24, mean 14.5, 320 of 620 values" in text
    assert "Band 2:         300 of 620 values" in text_of("-count", scene)


def test_figures_of_a_scene_without_any_value(tmp_path):
    scene = write_scene(tmp_path / "s.img", np.full((2, 4, 5), -1.), nodata=-1)
    facts = info("-extremes", scene)
    assert facts["valid_pixels"] == 0 and facts["empty_bands"] == [1, 2] and facts["minimum"] == [None, None]
    assert "Band 2:         no value, 0 of 20 values" in text_of("-extremes", scene)
    zeros = write_scene(tmp_path / "map.tif", np.zeros((1, 4, 5)), driver="GTiff")
    assert "Band 1:         0 to 0, mean 0, 20 of 20 values" in text_of("-extremes", zeros)


# --- units


@pytest.mark.parametrize("fields, first, told", [
    ("z plot titles = {Wavenumbers (cm-1), %Transmittance}\n", 2500, ""),
    ("wavelength units = THz\n", 299792.458 / 4, ""),
    ("", 4000, "the unit of the wavelengths is not stated: nanometres are assumed (4000 to 5000)"),
    ("wavelength units = Unknown\n", 4000, "nanometres are assumed"),
    ("wavelength units = m\n", 4e12, "the wavelength of band 1 is read as 4e+12 nm (and 1 more such wavelength)"),
    ("z plot titles = {Raman shift (cm-1), Counts}\n", None, "'Raman shift (cm-1)' is not a unit of wavelengths"),
    ("wavelength units = Index\n", None, "'Index' is not a unit of wavelengths"),
])
@pytest.mark.parametrize("kind", ["scene", "library"])
def test_units_of_wavelengths(tmp_path, fields, first, told, kind):
    """Scenes and libraries follow one rule; 4000 and 5000 in the unit of the header."""
    nm = [4, 5] if "THz" in fields else [4000, 5000]
    path = write_sli(tmp_path / "f.sli", [[.1, .2]], nm)
    header = path.with_suffix(".hdr")
    text = header.read_text().replace("wavelength units = nm\n", fields)
    if kind == "scene":
        text = text.replace("ENVI Spectral Library", "ENVI Standard").replace("samples = 2", "samples = 1").replace("bands = 1", "bands = 2")
    header.write_text(text)
    result = run("gdal_hsi_info", "-json", path)
    found = json.loads(succeed(result).out)["wavelengths_nm"]
    assert (found[:1] == [pytest.approx(first)]) if first else not found or found == [None, None]
    assert (told in result.err) if told else "Warning" not in result.err, result.err


@pytest.mark.parametrize("attributes, numbers, first, told", [
    ({"units": "nm"}, [400, 500, 600], 400, ""),
    ({}, [400, 500, 600], 400, "the unit of the wavelengths is not stated: nanometres are assumed (400 to 600)"),
    ({}, [.4, .5, .6], 400, "micrometres are assumed (0.4 to 0.6)"),
    ({"units": "THz"}, [700, 600, 500], 299792.458 / 700, ""),
    ({"units": "eV"}, [3, 2.5, 2], 1239.841984332 / 3, ""),
    ({"units": "counts"}, [400, 500, 600], None, "'counts' is not a unit of wavelengths: the wavelengths are unknown"),
])
def test_units_of_arrays(tmp_path, attributes, numbers, first, told):
    netCDF4 = pytest.importorskip("netCDF4")
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as f:
        for name, size in (("wavelength", 3), ("y", 4), ("x", 5)):
            f.createDimension(name, size)
        f.createVariable("wavelength", "f8", ("wavelength",))[:] = numbers
        f["wavelength"].setncatts(attributes)
        f.createVariable("cube", "f4", ("wavelength", "y", "x"))[:] = np.arange(60.).reshape(3, 4, 5)
    result = run("gdal_hsi_info", "-json", tmp_path / "a.nc")
    found = json.loads(succeed(result).out)["wavelengths_nm"]
    assert found[0] == pytest.approx(first) if first else not found or found[0] is None
    assert (told in result.err) if told else "Warning" not in result.err, result.err


def test_infinite_values_of_a_library_are_told(tmp_path):
    """The tools refuse such spectra."""
    for values, code in ((("0.1", "inf"), 0), (("inf", "-inf"), 1)):
        path = tmp_path / f"{code}.csv"
        path.write_text("wavelength_nm,a,b\n400," + ",".join(values) + "\n500,0.2,0.3\n")
        result = run("gdal_hsi_info", path)
        assert result.code == code and "infinite values" in result.err, result
        assert code == 1 or "the spectrum 'b' has" in result.err
