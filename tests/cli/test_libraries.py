# SPDX-License-Identifier: MIT
"""Spectral libraries in their usual forms, read by gdal_hsi_unmix. For all forms, the abundances equal those of the
same spectra in an ENVI library, which the tests of unmixing compare with a reference."""

import json
import pathlib

import numpy as np
import pytest
from osgeo import gdal, ogr

from conftest import first_error, read, run, succeed, write_scene

BANDS = 12
NM = np.linspace(450, 2400, BANDS).round(1)
NAMES = ["meadow", "roof; red", "water, deep"]


@pytest.fixture(scope="module")
def spectra():
    random = np.random.default_rng(4)
    return (np.abs(np.cumsum(random.normal(0, 0.2, (3, BANDS)), axis=1)) + 0.2).round(6)


@pytest.fixture
def scene(tmp_path, spectra):
    random = np.random.default_rng(5)
    parts = random.dirichlet([1, 1, 1], 30 * 20)
    return write_scene(tmp_path / "scene.img", (parts @ spectra).T.reshape(BANDS, 30, 20), wavelengths=list(NM))


def write_sli(path, spectra, wavelengths=NM, names=NAMES):
    spectra.astype("f4").tofile(path)
    path.with_suffix(".hdr").write_text(
        f"ENVI\nsamples = {spectra.shape[1]}\nlines = {len(spectra)}\nbands = 1\nheader offset = 0\n"
        "file type = ENVI Spectral Library\ndata type = 4\ninterleave = bsq\nbyte order = 0\n"
        f"wavelength units = Nanometers\nwavelength = {{{', '.join(map(str, wavelengths))}}}\n"
        f"spectra names = {{{', '.join(n.replace(',', ' ') for n in names)}}}\n")
    return path


def table(spectra, separator, head=True, wavelengths=True, decimal=".", unit="nm"):
    quoted = [f'"{n}"' for n in NAMES]
    scale = {"nm": 1, "um": 1000}[unit]
    lines = [separator.join(([f"Wavelength ({unit})"] if wavelengths else []) + quoted)] if head else []
    for b in range(BANDS):
        cells = ([repr(float(NM[b] / scale))] if wavelengths else []) + [repr(float(v)) for v in spectra[:, b]]
        lines.append(separator.join(cell.replace(".", decimal) for cell in cells))
    return "\n".join(lines) + "\n"


def profiles(path, spectra, driver, unit="nm"):
    scale = {"nm": 1, "um": 1000, "Micrometers": 1000}[unit]
    source = ogr.GetDriverByName(driver).CreateDataSource(str(path))
    layer = source.CreateLayer("profiles", geom_type=ogr.wkbNone if driver == "GPKG" else ogr.wkbPoint)
    layer.CreateField(ogr.FieldDefn("name", ogr.OFTString))
    field = ogr.FieldDefn("profiles", ogr.OFTString)
    if driver == "GeoJSON":
        field.SetSubType(ogr.OFSTJSON)
    layer.CreateField(field)
    for name, spectrum in zip(NAMES, spectra):
        feature = ogr.Feature(layer.GetLayerDefn())
        feature["name"] = name
        feature["profiles"] = json.dumps({"x": list(NM / scale), "y": list(spectrum), "xUnit": unit})
        layer.CreateFeature(feature)
    del layer, source
    return path


def unmixed(scene, library, out, code=0):
    result = run("gdal_hsi_unmix", "-q", "-overwrite", scene, library, out)
    assert result.code == code, result.err
    return result


FORMS = {
    "comma.csv": lambda p, s: p.write_text(table(s, ",")),
    "semicolon.csv": lambda p, s: p.write_text(table(s, ";")),
    "decimal comma.csv": lambda p, s: p.write_text(table(s, ";", decimal=",")),
    "tab.csv": lambda p, s: p.write_text(table(s, "\t")),
    "tab.txt": lambda p, s: p.write_text(table(s, "\t", decimal=",")),
    "micrometres.csv": lambda p, s: p.write_text(table(s, ",", unit="um")),
    "byte order mark.csv": lambda p, s: p.write_text("\ufeff" + table(s, ",")),
    "windows.csv": lambda p, s: p.write_bytes(table(s, ",").replace("\n", "\r\n").encode()),
    "headless.csv": lambda p, s: p.write_text(table(s, ",", head=False)),
    "bare.csv": lambda p, s: p.write_text(table(s, ";", head=False, wavelengths=False)),
    "names alone.csv": lambda p, s: p.write_text(table(s, ",", wavelengths=False)),
    "profiles.geojson": lambda p, s: profiles(p, s, "GeoJSON"),
    "profiles um.geojson": lambda p, s: profiles(p, s, "GeoJSON", "um"),
    "profiles.gpkg": lambda p, s: profiles(p, s, "GPKG", "Micrometers"),
}


@pytest.mark.quick
@pytest.mark.parametrize("form", FORMS)
def test_forms(form, scene, spectra, tmp_path):
    unmixed(scene, write_sli(tmp_path / "truth.sli", spectra), tmp_path / "truth.tif")
    library = tmp_path / form
    FORMS[form](library, spectra)
    unmixed(scene, library, tmp_path / "o.tif")
    assert np.allclose(read(tmp_path / "o.tif"), read(tmp_path / "truth.tif"), atol=2e-6)
    dataset = gdal.Open(str(tmp_path / "o.tif"))
    names = [dataset.GetRasterBand(k + 1).GetDescription() for k in range(3)]
    if form not in ("headless.csv", "bare.csv"):
        assert all(n.split(";")[0].split(",")[0] in got for n, got in zip(NAMES, names)), names


def usgs(folder, spectra, wavelengths=True):
    """USGS splib07 (Kokaly et al. 2017, Data Series 1035): a title, then one channel per line; -1.23e34 marks a deleted
    channel."""
    inner = folder / "ASCIIdata" / "ChapterV"
    inner.mkdir(parents=True)
    files = []
    for k, spectrum in enumerate(spectra):
        values = "\n".join(f" {v:.7e}" for v in spectrum)
        files.append(inner / f"splib07a_Thing{k}_ASDFRa_AREF.txt")
        files[-1].write_text(f" splib07a Record={k + 9}: Thing {k}      ASDFRa AREF\n{values}\n")
    if wavelengths:
        text = "\n".join(f" {v / 1000:.7e}" for v in NM)
        (folder / "ASCIIdata" / "splib07a_Wavelengths_ASD.txt").write_text(
            f" splib07a Record=1: Wavelengths ASD 0.35-2.5 microns 12 ch\n{text}\n")
        (folder / "ASCIIdata" / "splib07a_Wavelengths_BECK.txt").write_text(
            " splib07a Record=2: Wavelengths BECK 0.2-3.0 microns\n" + "\n".join(" 1.0" for _ in NM) + "\n")
    return files


def angles(scene, library, out):
    succeed(run("gdal_hsi_detect", "-q", "-overwrite", "-method", "sam", "-target", library, scene, out))
    return read(out)


@pytest.mark.quick
def test_usgs(scene, spectra, tmp_path):
    files = usgs(tmp_path, spectra)
    want = angles(scene, write_sli(tmp_path / "one.sli", spectra[:1], names=NAMES[:1]), tmp_path / "a.tif")
    assert np.allclose(angles(scene, files[0], tmp_path / "b.tif"), want, atol=1e-4, equal_nan=True)
    # A deleted channel excludes its band.
    lines = files[0].read_text().splitlines()
    lines[5] = " -1.23e+034"
    files[0].write_text("\n".join(lines) + "\n")
    kept = [b for b in range(1, BANDS + 1) if b != 5]
    fewer = write_scene(tmp_path / "fewer.img", read(scene, kept), wavelengths=[float(NM[b - 1]) for b in kept])
    want = angles(fewer, tmp_path / "one.sli", tmp_path / "a.tif")
    assert np.allclose(angles(scene, files[0], tmp_path / "b.tif"), want, atol=1e-4, equal_nan=True)


def test_usgs_without_wavelengths_is_told(scene, spectra, tmp_path):
    files = usgs(tmp_path, spectra, wavelengths=False)
    result = succeed(run("gdal_hsi_detect", "-method", "sam", "-target", files[0], scene, tmp_path / "o.tif"))
    assert "no wavelength file with 12 channels" in result.err


def ecostress(path, spectrum, count=BANDS, falling=True):
    """ECOSTRESS Spectral Library 1.0 (Meerdink et al. 2019): a header of names, then micrometres and percent, often
    from long to short wavelengths."""
    pairs = [f"{w / 1000:.6f}\t{v * 100:.6f}" for w, v in zip(NM, spectrum)]
    path.write_text("Name: Oak leaf\nType: vegetation\nClass: tree\nY Units: Reflectance (percent)\n"
                    "X Units: Wavelength (micrometers)\nFirst X Value: 0.45\nLast X Value: 2.4\n"
                    f"Number of X Values: {count}\nAdditional Information: none\n\n" +
                    "\n".join(pairs[::-1] if falling else pairs) + "\n")
    return path


@pytest.mark.quick
@pytest.mark.parametrize("falling", [True, False])
def test_ecostress(scene, spectra, tmp_path, falling):
    want = angles(scene, write_sli(tmp_path / "one.sli", spectra[:1], names=NAMES[:1]), tmp_path / "a.tif")
    library = ecostress(tmp_path / "vegetation.spectrum.txt", spectra[0], falling=falling)
    assert np.allclose(angles(scene, library, tmp_path / "b.tif"), want, atol=1e-4, equal_nan=True)


def test_header_of_another_file_of_the_same_stem(scene, spectra, tmp_path):
    """crops.hdr belongs to crops.sli: a crops.geojson next to it does not contain its floats."""
    want = angles(scene, write_sli(tmp_path / "one.sli", spectra[:1], names=NAMES[:1]), tmp_path / "a.tif")
    write_sli(tmp_path / "crops.sli", spectra[1:2], names=NAMES[1:2])
    profiles(tmp_path / "crops.geojson", spectra[:1], "GeoJSON")
    rows = [f"{w}\t{v}" for w, v in zip(NM, spectra[0])]
    (tmp_path / "crops.txt").write_text("Wavelength (nm)\tmeadow\n" + "\n".join(rows) + "\n")
    for name in ("crops.geojson", "crops.txt"):
        assert np.allclose(angles(scene, tmp_path / name, tmp_path / f"{name}.tif"), want, atol=1e-4, equal_nan=True)


def test_wrong_lengths_in_a_header_are_told(scene, spectra, tmp_path):
    library = write_sli(tmp_path / "wrong.sli", spectra, wavelengths=NM[:-1], names=NAMES[:2])
    result = succeed(run("gdal_hsi_unmix", scene, library, tmp_path / "o.tif"))
    assert "the list 'wavelength' has 11 values for 12 bands and is ignored" in result.err
    assert "the list 'spectra names' has 2 names for 3 spectra" in result.err


@pytest.mark.quick
@pytest.mark.parametrize("name, content, message", [
    ("a.csv", "", "has no table"),
    ("a.csv", "wavelength,x\n400,0.1\n500\n", "line 3 has 1 column instead of 2"),
    ("a.csv", "wavelength,x\n400,0.1\n500,much\n", "the column x has a value that is not a number"),
    ("a.csv", "band,x\n2,0.1\n1,0.2\n", "its lines are not in ascending order of the column band"),
    ("a.txt", " splib07a Record=1: Thing ASDFRa\n 0.1\n none\n", "line 3 is not a number"),
    ("a.txt", "Name: x\nX Units: Wavelength (micrometers)\nY Units: percent\nNumber of X Values: 3\n\n0.4 1\n0.5 2\n",
     "has 2 values, but its header states 3"),
    ("a.geojson", '{"type": "FeatureCollection", "features": []}', "has no profiles"),
    ("a.geojson", '{"type": "FeatureCollection", "features": [{"type": "Feature", "geometry": null, "properties": '
     '{"name": "x", "profiles": {"x": [1, 2], "y": [3]}}}]}', "a profile has 2 wavelengths for 1 value"),
    ("a.geojson", '{"type": "Feature', "is not a vector layer"),
    ("a.bin", "\0\1\2", "is not a spectral library"),
    ("a.sli", "", "has no header"),
])
def test_damaged_libraries(scene, tmp_path, name, content, message):
    library = tmp_path / name
    library.write_text(content)
    result = unmixed(scene, library, tmp_path / "o.tif", code=1)
    assert message in first_error(result)
    assert not pathlib.Path(tmp_path / "o.tif").exists()


def test_pickled_profiles_are_not_read(scene, tmp_path):
    source = ogr.GetDriverByName("GPKG").CreateDataSource(str(tmp_path / "old.gpkg"))
    layer = source.CreateLayer("profiles", geom_type=ogr.wkbNone)
    layer.CreateField(ogr.FieldDefn("profiles", ogr.OFTBinary))
    feature = ogr.Feature(layer.GetLayerDefn())
    feature.SetFieldBinaryFromHexString("profiles", "80049500")
    layer.CreateFeature(feature)
    del layer, source
    assert "pickle" in first_error(unmixed(scene, tmp_path / "old.gpkg", tmp_path / "o.tif", code=1))


def deleted_in(form, path, spectra):
    """Returns the library with a deleted fifth channel of the second spectrum, as each form marks it."""
    marked = spectra.copy()
    marked[1, 4] = -1.23e34
    if form == "sli":
        return write_sli(path / "d.sli", marked)
    if form == "ignored":
        marked[1, 4] = -999.9  # another number in single precision than in the header
        write_sli(path / "d.sli", marked)
        with open(path / "d.hdr", "a") as header:
            header.write("data ignore value = -999.9\n")
        return path / "d.sli"
    if form == "bad band":
        marked[:, 4] = 0.001
        write_sli(path / "d.sli", marked)
        with open(path / "d.hdr", "a") as header:
            header.write(f"bbl = {{{', '.join('0' if b == 4 else '1' for b in range(BANDS))}}}\n")
        return path / "d.sli"
    if form == "table":
        (path / "d.csv").write_text(table(marked, ","))
        return path / "d.csv"
    profiles = [{"x": list(NM), "y": list(row), "xUnit": "nm"} for row in (spectra if form == "profile's bad band" else marked)]
    if form == "profile's bad band":
        profiles[1]["y"][4] = 77
        profiles[1]["bbl"] = [0 if b == 4 else 1 for b in range(BANDS)]
    (path / "d.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": [
        {"type": "Feature", "geometry": None, "properties": {"name": name, "profiles": json.dumps(profile)}}
        for name, profile in zip(NAMES, profiles)]}))
    return path / "d.geojson"


@pytest.mark.parametrize("form", ["sli", "ignored", "bad band", "table", "profile", "profile's bad band"])
def test_deleted_channels_are_no_reflectance(form, scene, spectra, tmp_path):
    others = [w for b in range(1, BANDS + 1) if b != 5 for w in ("-b", b)]
    succeed(run("gdal_hsi_unmix", "-q", *others, scene, write_sli(tmp_path / "whole.sli", spectra), tmp_path / "want.tif"))
    result = succeed(run("gdal_hsi_unmix", scene, deleted_in(form, tmp_path, spectra), tmp_path / "got.tif"))
    assert "11 of 12" in result.out + result.err, result.out + result.err
    assert np.allclose(read(tmp_path / "got.tif"), read(tmp_path / "want.tif"), rtol=0, atol=2e-6)


def test_a_spectrum_without_a_value(scene, spectra, tmp_path):
    spectra = spectra.copy()
    spectra[2] = -1.23e34
    result = succeed(run("gdal_hsi_unmix", scene, write_sli(tmp_path / "d.sli", spectra), tmp_path / "y.tif"))
    assert "1 of 3 spectra lacks values" in result.err and "'water  deep'" in result.err
    assert read(tmp_path / "y.tif").shape[0] == 2
    result = run("gdal_hsi_detect", "-target", write_sli(tmp_path / "e.sli", spectra[2:], names=NAMES[2:]), scene,
                 tmp_path / "z.tif")
    assert result.code == 1 and "water  deep" in first_error(result) and "no value" in first_error(result)
    assert not (tmp_path / "z.tif").exists()


@pytest.mark.parametrize("first", [0, 1])
def test_numbers_of_lines_are_no_spectrum(first, scene, spectra, tmp_path):
    lines = table(spectra, ",").splitlines()
    numbered = ["," + lines[0]] + [f"{k + first},{line}" for k, line in enumerate(lines[1:])]
    (tmp_path / "p.csv").write_text("\n".join(numbered) + "\n")
    (tmp_path / "q.csv").write_text("\n".join(lines) + "\n")
    result = succeed(run("gdal_hsi_unmix", scene, tmp_path / "p.csv", tmp_path / "p.tif"))
    assert "counts the lines" in result.err, result.err
    succeed(run("gdal_hsi_unmix", "-q", scene, tmp_path / "q.csv", tmp_path / "q.tif"))
    assert np.array_equal(read(tmp_path / "p.tif"), read(tmp_path / "q.tif"))


@pytest.mark.parametrize("unit", ["nm", "um"])
@pytest.mark.parametrize("falling", [False, True])
def test_an_index_of_wavelengths_is_no_spectrum(unit, falling, scene, spectra, tmp_path):
    """pandas writes a table with wavelengths as its index like this: the first column has no name."""
    head, *lines = table(spectra, ",", unit=unit).splitlines()
    (tmp_path / "q.csv").write_text("\n".join([head, *lines]) + "\n")
    if falling:
        lines.reverse()
    (tmp_path / "p.csv").write_text("\n".join([head[head.index(","):], *lines]) + "\n")
    for name in "pq":
        succeed(run("gdal_hsi_unmix", "-q", scene, tmp_path / f"{name}.csv", tmp_path / f"{name}.tif"))
    assert np.array_equal(read(tmp_path / "p.tif"), read(tmp_path / "q.tif"))


def test_wavelengths_place_the_lines_of_a_table_whatever_their_order(scene, spectra, tmp_path):
    head, *lines = table(spectra, ",").splitlines()
    numbered = [f"{k + 1},{line}" for k, line in enumerate(lines)]
    (tmp_path / "q.csv").write_text("\n".join([head, *lines]) + "\n")
    (tmp_path / "p.csv").write_text("\n".join(["band," + head, *numbered[::-1]]) + "\n")
    for name in "pq":
        succeed(run("gdal_hsi_unmix", "-q", scene, tmp_path / f"{name}.csv", tmp_path / f"{name}.tif"))
    assert np.array_equal(read(tmp_path / "p.tif"), read(tmp_path / "q.tif"))
