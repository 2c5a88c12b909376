# SPDX-License-Identifier: MIT
"""Unusual files. GDAL's interpretation sometimes differs from the file's contents. A tool must then either follow the
file, with a message, or refuse it; it must never output a wrong number without a message."""

import json
import os
import pathlib
import subprocess

import numpy as np
import pytest
from osgeo import gdal, ogr, osr

from conftest import (PLUGINS, assert_untouched, cube, envi_header, first_error, open_band, read, refuse, run, succeed,
                      write_scene)

def read_virtual(path):
    """Returns the values that another process reads from a VRT through the plugin."""
    plain = path.with_suffix(".read.tif")
    subprocess.run(["gdal_translate", "-q", str(path), str(plain)], check=True,
                   env={**os.environ, "GDAL_DRIVER_PATH": str(PLUGINS)})
    return read(plain)


NOWHERE = {"geotransform": None, "epsg": None}
NM = [400.0 + 50 * k for k in range(12)]


def rewrite(scene, **fields):
    """Sets fields of the ENVI header; underscores in names become blanks."""
    header = pathlib.Path(scene).with_suffix(".hdr")
    names = {key.replace("_", " "): value for key, value in fields.items()}
    lines = [line for line in header.read_text().splitlines() if line.split("=")[0].strip() not in names]
    header.write_text("\n".join(lines + [f"{key} = {value}" for key, value in names.items()]) + "\n")


def test_wavelengths_of_a_wrong_list_are_nowhere(tmp_path, out):
    """GDAL's ENVI driver distributes a list that is too short or too long among the bands."""
    scene = write_scene(tmp_path / "s.img", cube(), wavelengths=NM)
    rewrite(scene, wavelength="{" + ", ".join(str(w) for w in NM[:11]) + "}")
    refuse(1, "has no wavelengths", "gdal_hsi_spp", "-b", "400-700nm", scene, out / "o.tif", untouched=[out])
    for name, options in (("o.tif", []), ("o.img", ["-of", "ENVI"]), ("eleven.img", ["-of", "ENVI", "-b", "1-11"])):
        succeed(run("gdal_hsi_spp", "-q", scene, out / name, *options))
        dataset = gdal.Open(str(out / name))
        for b in range(dataset.RasterCount):
            band = dataset.GetRasterBand(b + 1)
            assert band.GetMetadataItem("wavelength") is None
            assert band.GetMetadataItem("CENTRAL_WAVELENGTH_UM", "IMAGERY") is None
            assert "400" not in band.GetDescription() and "nm" not in band.GetDescription().lower()
    assert "wavelength" not in envi_header(out / "eleven.img")


@pytest.mark.parametrize("value", ["none", "", "0 or 1"])
def test_nodata_that_is_no_number(tmp_path, out, value):
    """It would be read as 0, and every pixel with a 0 would have no data."""
    data = cube()
    data[:, 3, 4] = 0
    plain = write_scene(tmp_path / "plain.img", data)
    odd = write_scene(tmp_path / "odd.img", data)
    rewrite(odd, data_ignore_value=value)
    succeed(run("gdal_hsi_spp", plain, out / "plain.tif"))
    result = succeed(run("gdal_hsi_spp", odd, out / "odd.tif"))
    assert f"data ignore value = {value} is not a number and is ignored" in result.err
    assert np.array_equal(read(out / "plain.tif"), read(out / "odd.tif"), equal_nan=True)


@pytest.mark.parametrize("order", ["2", "-1", "little"])
def test_byte_order_that_is_none(tmp_path, out, order):
    scene = write_scene(tmp_path / "s.img", cube())
    rewrite(scene, byte_order=order)
    refuse(1, f"byte order = {order}, which is invalid", "gdal_hsi_spp", scene, out / "o.tif", untouched=[out])


@pytest.mark.skipif(int(gdal.VersionInfo()) >= 3070000, reason="this GDAL has a type for signed bytes")
def test_signed_bytes(tmp_path, out):
    scene = tmp_path / "signed.tif"
    dataset = gdal.GetDriverByName("GTiff").Create(str(scene), 9, 8, 5, gdal.GDT_Byte, ["PIXELTYPE=SIGNEDBYTE"])
    dataset.WriteRaster(0, 0, 9, 8, np.random.default_rng(1).integers(-100, 100, (5, 8, 9)).astype("i1").tobytes())
    dataset = None
    refuse(1, "has signed bytes", "gdal_hsi_spp", scene, out / "o.tif", untouched=[out])


def four_bytes(path, seed=2):
    """GDAL treats four bands of bytes as red, green, blue and alpha, unless the file states otherwise."""
    data = np.random.default_rng(seed).integers(1, 255, (4, 8, 9)).astype("u1")
    data[3, 2, 3] = 0
    dataset = gdal.GetDriverByName("GTiff").Create(str(path), 9, 8, 4, gdal.GDT_Byte)
    dataset.WriteRaster(0, 0, 9, 8, data.tobytes())
    dataset = None
    return data


def test_four_bands_of_bytes(tmp_path, out):
    four_bytes(tmp_path / "s.tif")
    result = succeed(run("gdal_hsi_spp", tmp_path / "s.tif", out / "three.tif"))
    assert "band 4" in result.err and "is called alpha" in result.err and "-b 1-4" in result.err
    three = read(out / "three.tif")
    assert len(three) == 3 and np.isnan(three[:, 2, 3]).all()
    result = succeed(run("gdal_hsi_spp", "-b", "1-4", tmp_path / "s.tif", out / "four.tif"))
    assert "alpha" not in result.err
    gdal.Translate(str(tmp_path / "plain.img"), str(tmp_path / "s.tif"), format="ENVI", outputType=gdal.GDT_Float32)
    succeed(run("gdal_hsi_spp", tmp_path / "plain.img", out / "want.tif"))
    four = read(out / "four.tif")
    assert len(four) == 4 and not np.isnan(four).any()
    assert np.array_equal(four, read(out / "want.tif"))


@pytest.mark.parametrize("kind", ["u1", "i2", "f4"])
def test_alpha_of_many_bands_is_a_mask(tmp_path, out, kind):
    """GDAL uses an alpha band as a mask only in files of two or four bands."""
    data = np.minimum(cube(bands=9)[:, :12, :14].round() / (10 if kind == "u1" else 1), 255 if kind == "u1" else 1e6)
    alpha = np.full((1, 12, 14), 255)
    alpha[0, 3:6, 4:8] = 0
    masked = write_scene(tmp_path / "masked.tif", np.concatenate([data, alpha]), driver="GTiff", dtype=kind)
    dataset = gdal.Open(masked, gdal.GA_Update)
    dataset.GetRasterBand(10).SetColorInterpretation(gdal.GCI_AlphaBand)
    dataset = None
    holes = np.where(alpha == 0, np.nan, data.astype(kind))
    plain = write_scene(tmp_path / "plain.img", holes)
    succeed(run("gdal_hsi_spp", "-q", plain, out / "want.tif"))
    succeed(run("gdal_hsi_spp", "-q", masked, out / "got.tif"))
    got, want = read(out / "got.tif"), read(out / "want.tif")
    assert np.isnan(got[:, 3:6, 4:8]).all() and not np.isnan(got[:, :3]).any()
    assert np.array_equal(got, want, equal_nan=True)
    succeed(run("gdal_hsi_pca", "-q", "-nc", 2, masked, out / "got.vrt"))
    succeed(run("gdal_hsi_pca", "-q", "-nc", 2, plain, out / "want.vrt"))
    assert np.array_equal(read_virtual(out / "got.vrt"), read_virtual(out / "want.vrt"), equal_nan=True)


def test_world_file_beside_a_new_output(tmp_path, out):
    """The file belonged to an image that no longer exists, but GDAL would apply it to our output."""
    scene = write_scene(tmp_path / "s.img", cube(), **NOWHERE)
    (out / "o.tfw").write_text("1\n0\n0\n-1\n500000\n5800000\n")
    result = succeed(run("gdal_hsi_spp", scene, out / "o.tif"))
    assert f"'{out / 'o.tfw'}' does not belong to '{out / 'o.tif'}'" in result.err, result.err
    assert (out / "o.tfw").exists()
    # Its own files belong to no other output.
    placed = write_scene(tmp_path / "placed.tif", cube(), driver="GTiff", geotransform=(500000, 30, 0, 5800000, 0, -30))
    result = succeed(run("gdal_hsi_spp", "-co", "TFW=YES", placed, out / "own.tif"))
    assert (out / "own.tfw").exists() and "does not belong to" not in result.err, result.err


@pytest.mark.parametrize("made", ["t.tab", "t.ers", "t.shp"])
def test_data_of_others_under_the_name_of_a_companion(tmp_path, out, made):
    """A format that writes t.dat next to t.tab must not replace the scene t.dat, even with -overwrite."""
    scene = write_scene(tmp_path / "s.img", cube())
    other = {"t.tab": "t.dat", "t.ers": "t", "t.shp": "t.dbf"}[made]
    if other == "t.dbf":
        table = ogr.GetDriverByName("ESRI Shapefile").CreateDataSource(str(out / "t.dbf"))
        table.CreateLayer("t", geom_type=ogr.wkbNone).CreateField(ogr.FieldDefn("a", ogr.OFTInteger))
        table = None
    else:
        write_scene(out / other, cube(), options=["SUFFIX=ADD"] if other == "t" else [])
    tool = ["gdal_hsi_pca", "-nc", 2] if made == "t.ers" else ["gdal_hsi_atdca", "-t", 3]
    for options in ([], ["-overwrite"]):
        refuse(1, str(out / other), *tool, "-q", *options, scene, out / made, untouched=[out])
    for file in out.iterdir():
        file.unlink()
    succeed(run(*tool, "-q", scene, out / made))
    succeed(run(*tool, "-q", "-overwrite", scene, out / made))  # its own files are replaced


def test_alpha_of_a_virtual_output_is_nobody_elses(tmp_path, out):
    """It is kept next to dst, in a file that the command line does not name."""
    scene = write_scene(tmp_path / "s.tif", cube(), driver="GTiff")
    (out / "y_alpha.tif").write_text("precious")
    with assert_untouched(out):
        result = run("gdal_hsi_spp", "-overwrite", scene, out / "y.vrt")
    assert result.code == 1 and "y_alpha.tif" in first_error(result) and "-alpha" in result.err, result.err
    succeed(run("gdal_hsi_spp", "-alpha", out / "other.tif", scene, out / "y.vrt"))
    (out / "y_alpha.tif").unlink()
    succeed(run("gdal_hsi_spp", "-overwrite", scene, out / "y.vrt"))
    succeed(run("gdal_hsi_spp", "-overwrite", scene, out / "y.vrt"))  # it now belongs to the old dst


@pytest.mark.parametrize("words", [["-report", ""], ["-alpha", ""]])
def test_empty_names_of_files(tmp_path, out, words):
    """For example, an unset variable in a script."""
    scene = write_scene(tmp_path / "s.img", cube())
    refuse(2, f"{words[0]} is empty", "gdal_hsi_spp", *words, scene, out / "o.tif", untouched=[out])


@pytest.mark.parametrize("end", ["qix", "sbn", "sbx", "qpj"])
def test_index_of_a_shapefile_that_is_gone(tmp_path, out, end):
    """It would be used for the new points."""
    scene = write_scene(tmp_path / "s.img", cube())
    (out / f"t.{end}").write_text("of other points")
    refuse(1, f"t.{end}'", "gdal_hsi_atdca", "-t", 3, scene, out / "t.shp", untouched=[out])
    succeed(run("gdal_hsi_atdca", "-t", 3, "-overwrite", scene, out / "t.shp"))
    assert (out / "t.shp").exists() and not (out / f"t.{end}").exists()


def test_class_names_with_the_separators_of_envi(tmp_path, out):
    scene = write_scene(tmp_path / "s.img", cube())
    labels = tmp_path / "labels.tif"
    dataset = gdal.GetDriverByName("GTiff").Create(str(labels), 40, 30, 1, gdal.GDT_Byte)
    values = np.zeros((30, 40), "u1")
    values[:10], values[12:20], values[22:] = 1, 2, 3
    dataset.GetRasterBand(1).WriteArray(values)
    dataset.GetRasterBand(1).SetCategoryNames(["none", "grass, dry", "roof {tiles}", "water"])
    dataset = None
    succeed(run("gdal_hsi_sahic", "-q", scene, labels, out / "map.img", "-of", "ENVI"))
    names = open_band(out / "map.img").GetCategoryNames()
    assert [" ".join(n.split()) for n in names] == ["Unclassified", "grass dry", "roof tiles", "water"]


@pytest.mark.parametrize("threshold", ["nan", "inf", "-inf", "inf%", "1e999"])
def test_thresholds_that_decide_nothing(tmp_path, out, threshold):
    """A comparison with nan is never true; infinity would select nothing or everything."""
    scene = write_scene(tmp_path / "s.img", cube())
    refuse(2, f"-threshold: '{threshold}' is not a ", "gdal_hsi_detect", "-method", "rx", scene, out / "o.tif", "-map", out / "m.tif", "-threshold", threshold,
           untouched=[out])


def test_points_of_a_scene_that_others_place(tmp_path, out):
    """Positions from arrays or ground control points are left to gdalwarp; the points report this."""
    scene = write_scene(tmp_path / "s.tif", cube(), driver="GTiff", **NOWHERE)
    dataset = gdal.Open(str(scene), gdal.GA_Update)
    dataset.SetMetadata({"X_DATASET": "lon.tif", "X_BAND": "1", "Y_DATASET": "lat.tif", "Y_BAND": "1",
                         "PIXEL_OFFSET": "0", "LINE_OFFSET": "0", "PIXEL_STEP": "1", "LINE_STEP": "1"}, "GEOLOCATION")
    dataset = None
    result = succeed(run("gdal_hsi_atdca", "-t", 3, scene, out / "a.gpkg"))
    assert "is georeferenced by arrays (GEOLOCATION), which points cannot use" in result.err, result.err
    controlled = write_scene(tmp_path / "g.tif", cube(), driver="GTiff", **NOWHERE)
    dataset = gdal.Open(str(controlled), gdal.GA_Update)
    degrees = osr.SpatialReference()
    degrees.ImportFromEPSG(4326)
    dataset.SetGCPs([gdal.GCP(10 + x / 100, 50 - y / 100, 0, x, y) for x, y in ((0, 0), (40, 0), (0, 30), (40, 30))],
                    degrees.ExportToWkt())
    dataset = None
    result = succeed(run("gdal_hsi_endmembers", "-t", 3, controlled, out / "e.gpkg"))
    assert "is georeferenced by ground control points, which points cannot use" in result.err, result.err
    plain = write_scene(tmp_path / "p.tif", cube(), driver="GTiff", **NOWHERE)
    assert "is georeferenced by" not in succeed(run("gdal_hsi_atdca", "-t", 3, plain, out / "p.gpkg")).err


def test_virtual_output_of_a_directory_of_a_tiff(tmp_path, out, monkeypatch):
    """The name of such a source contains a file name, which is relative to the reader's folder."""
    write_scene(tmp_path / "s.tif", cube(), driver="GTiff")
    monkeypatch.chdir(tmp_path)
    succeed(run("gdal_hsi_pca", "-q", "-nc", 2, "GTIFF_DIR:1:./s.tif", out / "o.vrt", "-of", "VRT"))
    assert f"GTIFF_DIR:1:{tmp_path / 's.tif'}</SourceFilename>" in (out / "o.vrt").read_text()


@pytest.fixture
def models(tmp_path):
    """Makes a scene and a model of it by each tool that has models."""
    scene = write_scene(tmp_path / "scene.img", cube(), wavelengths=NM)
    labels = np.zeros((1, 30, 40))
    labels[0, :10], labels[0, 12:20], labels[0, 22:] = 1, 2, 3
    labels = write_scene(tmp_path / "labels.tif", labels, driver="GTiff", dtype="u1")
    made = {"pca": ["-nc", 2, "-model", tmp_path / "pca.json", scene, tmp_path / "p.tif"],
            "mnf": ["-nc", 2, "-model", tmp_path / "mnf.json", scene, tmp_path / "m.tif"],
            "sahic": ["-no-spatial", "-model", tmp_path / "sahic.json", scene, labels, tmp_path / "s.tif"],
            "svm_train": ["-C", 8, "-gamma", 0.5, scene, labels, tmp_path / "svm_classify.json"]}
    for tool, words in made.items():
        succeed(run(f"gdal_hsi_{tool}", "-q", *words))
    return tmp_path


@pytest.mark.parametrize("tool", ["pca", "mnf", "svm_classify", "sahic"])
def test_models_count_pixels_without_a_value(models, out, tool):
    words = ["-no-spatial"] if tool == "sahic" else []
    none = ["none"] if tool == "sahic" else []
    data = cube()
    data[:, 4, :7] = np.nan
    holes = write_scene(models / "holes.img", data, wavelengths=NM)
    result = succeed(run(f"gdal_hsi_{tool}", "-apply", models / f"{tool}.json", *words, "-report", out / "r.json", holes,
                         *none, out / "o.tif"))
    assert "7 of 1200 pixels are invalid" in result.out + result.err
    assert json.loads((out / "r.json").read_text())["invalid_pixels"] == 7
    data[5] = np.nan
    empty = write_scene(models / "empty.img", data, wavelengths=NM)
    refuse(1, "no pixel is valid", f"gdal_hsi_{tool}", "-q", "-apply", models / f"{tool}.json", *words, empty, *none, out / "e.tif", untouched=[out])
