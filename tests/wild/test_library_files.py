# SPDX-License-Identifier: MIT
"""Spectral libraries as instruments, archives and other programs write them: ENVI libraries with headers of all kinds,
USGS libraries with holes, files of field spectrometers, and our own. The scene's pixels are known spectra, so the
spectral angle to the right spectrum is 0, and shares of a mixture are known."""

import json
import os
import signal
import struct
import subprocess

import numpy as np
import pytest
from osgeo import gdal

from conftest import BIN, PATIENCE, assert_untouched, first_error, read, run, start, succeed, write_scene

BANDS = 30
NM = np.linspace(450, 2400, BANDS).round(2)
SPECTRA = np.random.default_rng(3).uniform(0.05, 0.6, (4, BANDS)).astype("f4").astype(float)
NAMES = ["Kaolinite CM9", "Kaolinite KGa-1", "Alunite GDS84", "Grass"]


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    """Makes a scene whose pixel k is spectrum k."""
    return write_scene(tmp_path_factory.mktemp("scene") / "scene.img", SPECTRA.T.reshape(BANDS, 1, 4), wavelengths=list(NM))


def write_library(path, spectra=SPECTRA, names=NAMES, wavelengths=NM, units="wavelength units = Nanometers\n", header=None,
                  more="", dtype="f4"):
    """Writes an ENVI library, with the header under another name if given."""
    types = {"f4": 4, "f8": 5, "i2": 2}
    path.write_bytes(np.asarray(spectra).astype("<" + dtype).tobytes())
    text = (f"ENVI\nsamples = {np.shape(spectra)[1]}\nlines = {len(spectra)}\nbands = 1\nheader offset = 0\n"
            f"file type = ENVI Spectral Library\ndata type = {types[dtype]}\ninterleave = bsq\nbyte order = 0\n"
            f"{units}spectra names = {{\n {', '.join(names)}}}\n{more}")
    if wavelengths is not None:
        text += f"wavelength = {{\n {', '.join(map(str, wavelengths))}}}\n"
    (header or path.with_suffix(".hdr")).write_text(text)
    return path


def angles(scene, library, *args):
    """Returns (spectra, pixels) in radians, and the messages."""
    out = library.parent / "angles.tif"
    result = succeed(run("gdal_hsi_detect", "-overwrite", "-method", "sam", *args, "-target", library, scene, out))
    return read(out).reshape(-1, 4), result


def names_of(path):
    dataset = gdal.Open(str(path))
    return [dataset.GetRasterBand(k + 1).GetDescription() for k in range(dataset.RasterCount)]


def angle(a, b):
    return np.arccos(np.clip(a @ b / np.linalg.norm(a) / np.linalg.norm(b), -1, 1))


ANGLES = np.array([[angle(a, b) for b in SPECTRA] for a in SPECTRA])


def assert_angles(scene, library, want=ANGLES, tolerance=2e-4):
    got, result = angles(scene, library)
    assert got.shape == want.shape and np.allclose(got, want, atol=tolerance), got
    return result


# --- ENVI


@pytest.mark.parametrize("name", ["l.hdr", "l.HDR", "l.Hdr", "l.sli.hdr", "l.sli.HDR"])
def test_names_of_headers(name, scene, tmp_path):
    library = write_library(tmp_path / "l.sli", header=tmp_path / name)
    assert_angles(scene, library)
    if name != "l.Hdr":
        assert_angles(scene, tmp_path / name)  # the header itself as the library


def test_headers_and_data_are_never_overwritten(scene, tmp_path):
    write_library(tmp_path / "l.sli", header=tmp_path / "l.HDR")
    for library, out in (("l.sli", "l.HDR"), ("l.HDR", "l.sli")):
        with assert_untouched(tmp_path):
            result = run("gdal_hsi_detect", "-overwrite", "-method", "sam", "-of", "GTiff", "-target", tmp_path / library, scene,
                         tmp_path / out)
        assert result.code == 2, result.err


@pytest.mark.parametrize("units", ["", "wavelength units = Unknown\n", "wavelength units = unknown\n", "wavelength units = um\n"])
def test_units_are_guessed_by_size(units, scene, tmp_path):
    assert_angles(scene, write_library(tmp_path / "l.sli", wavelengths=NM / 1000, units=units))


def test_a_unit_that_is_none_is_told(scene, tmp_path):
    result = assert_angles(scene, write_library(tmp_path / "l.sli", units="wavelength units = Index\n"))
    assert "'Index' is not a unit of wavelengths: the wavelengths are unknown" in result.err


@pytest.mark.parametrize("numbers, names", [(" ", ", "), ("; ", "; "), (";", ";"), ("\t", ",")])
def test_signs_between_elements_of_lists(numbers, names, scene, tmp_path):
    library = write_library(tmp_path / "l.sli", SPECTRA[:, ::-1], wavelengths=None)
    header = tmp_path / "l.hdr"
    text = header.read_text().replace(", ".join(NAMES), names.join(NAMES))
    header.write_text(text + "wavelength = {" + numbers.join(map(str, NM[::-1])) + "}\n")
    assert "Warning" not in assert_angles(scene, library).err  # falling wavelengths show whether they are read
    assert names_of(tmp_path / "angles.tif") == NAMES


def test_profiles_of_other_wavelengths_are_refused(scene, tmp_path):
    profile = [{"type": "Feature", "geometry": None, "properties": {"name": f"p{k}", "profiles": {
        "x": list(NM[k:]), "y": list(SPECTRA[k][k:]), "xUnit": "Nanometers"}}} for k in range(2)]
    (tmp_path / "l.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": profile}))
    result = run("gdal_hsi_detect", "-target", tmp_path / "l.geojson", scene, tmp_path / "o.tif")
    assert result.code == 1 and "('p0' has 30 bands, 'p1' 29)" in first_error(result) and "Interpolate all spectra" in result.err


@pytest.mark.parametrize("end", ["\r", "\r\n"])
def test_ends_of_lines(end, scene, tmp_path):
    library = write_library(tmp_path / "l.sli")
    header = tmp_path / "l.hdr"
    header.write_bytes(header.read_text().replace("\n", end).encode())
    assert_angles(scene, library)


def test_latin_names(scene, tmp_path):
    library = write_library(tmp_path / "l.sli", names=["Gr\u00e4ser", "b", "c", "d"])
    header = tmp_path / "l.hdr"
    header.write_bytes(header.read_text(encoding="utf-8").encode("latin-1"))
    angles(scene, library)
    assert names_of(tmp_path / "angles.tif")[0] == "Gr\u00e4ser"


def test_a_header_without_data_and_one_of_a_scene(scene, tmp_path):
    write_library(tmp_path / "l.sli").unlink()
    result = run("gdal_hsi_detect", "-target", tmp_path / "l.hdr", scene, tmp_path / "o.tif")
    assert result.code == 1 and "without its data (l.sli)" in first_error(result)
    result = run("gdal_hsi_detect", "-target", scene[:-3] + "hdr", scene, tmp_path / "o.tif")
    assert result.code == 1 and "does not describe a spectral library" in first_error(result)


# --- holes, and spectra by name


def with_holes():
    spectra = SPECTRA.copy()
    spectra[0, :20] = -1.23e34
    spectra[1, 14:] = -1.23e34
    return spectra


def test_spectra_that_lack_the_bands_are_left_out_and_told(scene, tmp_path):
    result = assert_angles(scene, write_library(tmp_path / "l.sli", with_holes(), more="data ignore value = -1.23e34\n"), ANGLES[2:])
    assert "2 of 4 spectra lack values in the scene's bands and are left out: 'Kaolinite CM9', 'Kaolinite KGa-1'" in result.err
    assert names_of(tmp_path / "angles.tif") == NAMES[2:]


def test_most_values_are_kept(scene, tmp_path):
    """A few holes exclude bands instead of spectra: 4 spectra in 28 bands have more values than 3 in 30."""
    spectra = SPECTRA.copy()
    spectra[0, [3, 4]] = np.nan
    kept = [b for b in range(BANDS) if b not in (3, 4)]
    want = np.array([[angle(a[kept], b[kept]) for b in SPECTRA] for a in SPECTRA])
    result = assert_angles(scene, write_library(tmp_path / "l.sli", spectra), want)
    assert "2 values of 120 are missing" in result.err and "28 of 30 bands" in result.out


def test_spectra_that_are_named_stay(scene, tmp_path):
    library = write_library(tmp_path / "l.sli", with_holes())
    kept = range(20, BANDS)
    got, result = angles(scene, library, "-spectrum", "Kaolinite CM9", "-spectrum", "grass")
    assert "10 of 30 bands" in result.out
    want = [[angle(SPECTRA[a][kept], b[kept]) for b in SPECTRA] for a in (0, 3)]
    assert np.allclose(got, want, atol=2e-4)
    result = run("gdal_hsi_detect", "-spectrum", "#1", "-spectrum", "#2", "-target", library, scene, tmp_path / "o.tif")
    assert result.code == 1 and "fewer than 2 bands of the scene have values in all" in result.err
    assert not (tmp_path / "o.tif").exists()


def test_remains_of_deleted_channels(scene, tmp_path):
    """Resampling spreads -1.23e34: values below the range of spectra are also missing values."""
    spectra = SPECTRA.copy()
    spectra[2, 5:9] = [-1.23e34, -8.1426526e29, -4.6e32, -3.5]
    kept = [b for b in range(BANDS) if b not in range(5, 9)]
    want = np.array([[angle(a[kept], b[kept]) for b in SPECTRA] for a in SPECTRA])
    assert "4 values of 120 are missing" in assert_angles(scene, write_library(tmp_path / "l.sli", spectra), want).err


@pytest.mark.parametrize("wanted, chosen", [
    (["Grass"], [3]), (["grass", "KAOLINITE cm9"], [3, 0]), (["*kaolin*"], [0, 1]), (["#3"], [2]), (["*84", "#1", "Kao*"], [2, 0, 1]),
    (["?rass"], [3]),
])
def test_spectra_by_name(wanted, chosen, scene, tmp_path):
    library = write_library(tmp_path / "l.sli")
    args = [w for one in wanted for w in ("-spectrum", one)]
    got, _ = angles(scene, library, *args)
    assert np.allclose(got, ANGLES[chosen], atol=2e-4) and names_of(tmp_path / "angles.tif") == [NAMES[k] for k in chosen]
    # All bands are used for pixels that equal these spectra.
    succeed(run("gdal_hsi_unmix", "-q", "-method", "ucls", *args, scene, library, tmp_path / "shares.tif"))
    shares = read(tmp_path / "shares.tif").reshape(-1, 4)
    assert np.allclose(shares[:, chosen], np.eye(len(chosen)), atol=1e-4)
    succeed(run("gdal_hsi_atdca", "-q", "-t", 2, *args, "-reference", library, "-report", tmp_path / "r.json", scene,
                tmp_path / "t.gpkg"))
    report = json.loads((tmp_path / "r.json").read_text())
    assert [row["reference"] for row in report["reference"]["best"]] == [NAMES[k] for k in chosen]


@pytest.mark.parametrize("wanted, message, advice", [
    ("Kaolinite", "no spectrum is called 'Kaolinite'", "Similar spectra: 'Kaolinite CM9', 'Kaolinite KGa-1'"),
    ("Gras", "no spectrum is called 'Gras'", "'Grass'"),
    ("Alumite GDS84", "no spectrum is called", "Did you mean 'Alunite GDS84'?"),
    ("*quartz*", "no spectrum matches '*quartz*'", "Its 4 spectra are"),
    ("#5", "no spectrum is called '#5'", "Its 4 spectra are"),
    ("#0", "no spectrum is called '#0'", "Its 4 spectra are"),
])
def test_names_that_find_nothing(wanted, message, advice, scene, tmp_path):
    library = write_library(tmp_path / "l.sli")
    for tool, args in (("detect", ["-target", library, scene, tmp_path / "o.tif"]), ("unmix", [scene, library, tmp_path / "o.tif"]),
                       ("atdca", ["-reference", library, scene, tmp_path / "o.gpkg"])):
        with assert_untouched(tmp_path):
            result = run("gdal_hsi_" + tool, "-spectrum", wanted, *args)
        assert result.code == 1 and message in first_error(result) and advice in result.err, result.err


@pytest.mark.parametrize("tool, args", [("detect", ["-target-pixel", 0, 0]), ("atdca", [])])
def test_a_name_without_a_library(tool, args, scene, tmp_path):
    assert run("gdal_hsi_" + tool, "-spectrum", "x", *args, scene, tmp_path / "o.gpkg").code == 2


# --- USGS's convolved libraries


@pytest.mark.parametrize("prefix, wavelengths, title", [
    ("s07_AV14", "s07_AV14_Wavelengths_in_microns_224_ch_AVIRIS14a.txt", "s07_AV14 Record=19: Wavelengths in microns"),
    ("s07_ASD", "s07_ASD_Wavelengths_ASD_0.35-2.5_microns_2151_ch.txt", "s07_ASD Record=1: Wavelengths ASD 0.35-2.5 microns"),
    ("s07_AV97", "s07_AV97_AVIRIS_1997_Wavelengths_(microns)_224ch.txt", "AV97 Record=7: AVIRIS 1997 Wavelengths (microns)"),
])
@pytest.mark.parametrize("spectrometer", ["ASDFRa", "BECKb", "NIC4aa"])
def test_wavelengths_of_a_convolved_library(prefix, wavelengths, title, spectrometer, scene, tmp_path):
    inner = tmp_path / "lib" / "ChapterM_Minerals"
    inner.mkdir(parents=True)
    (tmp_path / "lib" / wavelengths).write_text(f" {title}\n" + "".join(f" {v / 1000:.7e}\n" for v in NM[::-1]))
    path = inner / f"{prefix}_Thing_{spectrometer}_AREF.txt"
    path.write_text(f" {prefix} Record=5448: Thing  {spectrometer} AREF\n" + "".join(f" {v:.7e}\n" for v in SPECTRA[1][::-1]))
    assert_angles(scene, path, ANGLES[1:2])  # the order of the channels shows whether they have their wavelengths
    with assert_untouched(tmp_path):
        result = run("gdal_hsi_detect", "-overwrite", "-of", "GTiff", "-method", "sam", "-target", path, scene,
                     tmp_path / "lib" / wavelengths)
    assert result.code == 2, "the file of wavelengths is read, and must not be replaced"


# --- field spectrometers


def asd(path, spectrum, reference=None, version=b"as7", kind=1, form=2, description=b"white"):
    """ASD File Format, version 8, revision B (2017): byte offsets and types of its table."""
    code = {0: "<f4", 1: "<i4", 2: "<f8"}[form]
    head = bytearray(484)
    head[0:3] = version
    head[3:10] = b"comment"
    head[186] = kind
    struct.pack_into("<f", head, 191, NM[0])
    struct.pack_into("<f", head, 195, NM[1] - NM[0])
    head[199] = form
    struct.pack_into("<H", head, 204, BANDS)
    data = bytes(head) + np.asarray(spectrum).astype(code).tobytes()
    if reference is not None:
        data += struct.pack("<hddH", 1, 4e4, 4e4, len(description)) + description + np.asarray(reference).astype(code).tobytes()
        data += b"\0" * 50
    path.write_bytes(data)
    return path


REFERENCE = np.random.default_rng(9).uniform(2e4, 6e4, BANDS)


@pytest.mark.parametrize("version", [b"as2", b"as6", b"as7", b"as8"])
@pytest.mark.parametrize("kind", [0, 1, 2])
@pytest.mark.parametrize("form", [0, 1, 2])
def test_asd_divides_by_its_white_reference(version, kind, form, scene, tmp_path):
    library = asd(tmp_path / "a.asd", SPECTRA[2] * REFERENCE, REFERENCE, version, kind, form)
    result = assert_angles(scene, library, ANGLES[2:3], 3e-3 if form == 1 else 2e-4)
    assert "Warning" not in result.err and names_of(tmp_path / "angles.tif") == ["a"]


def test_asd_of_reflectance_alone(scene, tmp_path):
    assert "Warning" not in assert_angles(scene, asd(tmp_path / "a.asd", SPECTRA[2], version=b"ASD"), ANGLES[2:3]).err
    # A reference in counts, with values that were divided by it.
    assert_angles(scene, asd(tmp_path / "a.asd", SPECTRA[2], REFERENCE), ANGLES[2:3])
    # Fractions, as in the scene: no message about units.
    result = succeed(run("gdal_hsi_unmix", "-overwrite", scene, tmp_path / "a.asd", tmp_path / "o.tif"))
    assert "check the units" not in result.err


def test_asd_without_a_reference_is_told(scene, tmp_path):
    result = assert_angles(scene, asd(tmp_path / "a.asd", SPECTRA[2] * 5000, kind=0), ANGLES[2:3])
    assert "has raw numbers without a white reference" in result.err


@pytest.mark.parametrize("length, message", [(600, "is shorter than its ASD header states"), (484 + 8 * BANDS, None)])
def test_damaged_asd(length, message, scene, tmp_path):
    library = asd(tmp_path / "a.asd", SPECTRA[2], REFERENCE)
    library.write_bytes(library.read_bytes()[:length])
    result = run("gdal_hsi_detect", "-method", "sam", "-target", library, scene, tmp_path / "o.tif")
    assert result.code == (1 if message else 0) and (not message or message in first_error(result))


def sig(path, spectrum):
    rows = "".join(f"{w:.2f} 100.00 50.00 {100 * v:.5f}\n" for w, v in zip(NM, spectrum))
    path.write_text("/*** Spectra Vista SIG Data ***/\nname= C:\\data\\leaf 7.sig\ninstrument= HI: 1 (HR-1024i)\n"
                    "units= Radiance, Radiance\ntime= 01/02/2019 10:00:00AM, 01/02/2019 10:01:00AM\ncomm= \ndata= \n" + rows)
    return path


def sed(path, spectrum, head="Wvl\tRad. (Ref.)\tRad. (Target)\tTgt./Ref. %"):
    values = {"Wvl": NM, "Wvl (um)": NM / 1000, "Wavelength": NM, "nm": NM, "Chan.#": np.arange(BANDS), "Wave": NM, "Rad. (Ref.)": np.full(BANDS, 0.02), "Rad. (Target)": 0.02 * spectrum, "Tgt./Ref. %": 100 * spectrum,
              "Reflect. %": 100 * spectrum, "Reflect. [1.0]": spectrum,
              "Norm. DN (Ref.)": np.full(BANDS, 2.0), "Norm. DN (Target)": 2 * spectrum}
    columns = head.split("\t")
    rows = "".join("\t".join(f"{values[c][b]:.7g}" for c in columns) + "\n" for b in range(BANDS))
    path.write_text(f"Comment: \nVersion: 2.3 [1.2.6250C]\nChannels: {BANDS}\nColumns [{len(columns)}]:\nData:\n{head}\n{rows}")
    return path


def test_svc(scene, tmp_path):
    library = sig(tmp_path / "a.sig", SPECTRA[1])
    assert_angles(scene, library, ANGLES[1:2])
    assert names_of(tmp_path / "angles.tif") == ["leaf 7"]
    assert "check the units" not in succeed(run("gdal_hsi_unmix", scene, library, tmp_path / "o.tif")).err


@pytest.mark.parametrize("head", ["Wvl\tRad. (Ref.)\tRad. (Target)\tTgt./Ref. %", "Wvl\tReflect. %", "Wvl\tReflect. [1.0]",
                                  "Wvl\tRad. (Ref.)\tRad. (Target)"])
def test_spectral_evolution(head, scene, tmp_path):
    library = sed(tmp_path / "a.sed", SPECTRA[1], head)
    assert "Warning" not in assert_angles(scene, library, ANGLES[1:2]).err
    assert "check the units" not in succeed(run("gdal_hsi_unmix", scene, library, tmp_path / "o.tif")).err
    sed(library, SPECTRA[1], "Wvl\tRad. (Target)")
    assert "'Rad. (Target)' is used unchanged" in assert_angles(scene, library, ANGLES[1:2]).err


@pytest.mark.parametrize("between", ["\t", "    "])
@pytest.mark.parametrize("wavelengths", ["Wvl", "Wave", "Wavelength", "nm", "Wvl (um)"])
@pytest.mark.parametrize("head", [
    "Chan.#\t%s\tNorm. DN (Ref.)\tNorm. DN (Target)\tReflect. %%", "Chan.#\t%s\tNorm. DN (Ref.)\tNorm. DN (Target)",
    "Reflect. [1.0]\tChan.#\t%s"])
def test_columns_of_spectral_evolution_are_found_by_their_names(head, wavelengths, between, scene, tmp_path):
    """The scene's pixel 1 is this spectrum: its share is 1 and all bands fit, which is only true at the right
    wavelengths."""
    library = sed(tmp_path / "a.sed", SPECTRA[1], head % wavelengths)
    library.write_text(library.read_text().replace(head % wavelengths, (head % wavelengths).replace("\t", between)))
    succeed(run("gdal_hsi_unmix", "-q", "-method", "ucls", "-rmse", tmp_path / "r.tif", scene, library, tmp_path / "o.tif"))
    share = SPECTRA @ SPECTRA[1] / (SPECTRA[1] @ SPECTRA[1])
    error = np.sqrt(np.mean((SPECTRA - share[:, None] * SPECTRA[1]) ** 2, axis=1))
    assert np.allclose(read(tmp_path / "o.tif").ravel(), share, atol=2e-4)
    assert np.allclose(read(tmp_path / "r.tif").ravel(), error, atol=2e-4)


@pytest.mark.parametrize("name, text, message", [
    ("a.sed", "Columns [2]:\nData:\nChan.#\tReflect. %\n1\t3\n2\t4\n3\t5\n", "has no column called wavelength: Chan.#, Reflect. %"),
    ("a.sed", "Columns [2]:\nData:\nChan.#\tReflect. %\n350\t3\n351\t4\n352\t5\n", "has no column called wavelength"),
    ("a.sig", "/*** Spectra Vista SIG Data ***/\ndata= \n1 400 1 2\n2 500 1 2\n", "has no wavelengths in the first column"),
    ("a.sig", "/*** Spectra Vista SIG Data ***/\nname= a\n", "has no line 'data='"),
    ("a.sig", "/*** Spectra Vista SIG Data ***/\ndata= \n400 1 2\n", "has 3 columns of data instead of 4"),
    ("a.sig", "/*** Spectra Vista SIG Data ***/\ndata= \n400 1 2 x\n", "an invalid line of data: '400 1 2 x'"),
    ("a.sed", "Columns [2]:\nData:\n", "has no data"),
    ("a.sed", "Columns [2]:\nData:\nWvl\tReflect. %\n400\t3\t4\n", "has 3 columns of data under 2 names"),
])
def test_damaged_field_spectra(name, text, message, scene, tmp_path):
    (tmp_path / name).write_text(text)
    result = run("gdal_hsi_detect", "-method", "sam", "-target", tmp_path / name, scene, tmp_path / "o.tif")
    assert result.code == 1 and message in first_error(result), result.err


# --- through pipes


def fed(path, data):
    """Makes a FIFO into which `data` is written once; a second read would wait."""
    os.mkfifo(path)
    return subprocess.Popen(["sh", "-c", 'cat "$0" > "$1"', str(data), str(path)])


def forms(folder):
    """Returns files of all types that are read from end to end, each with spectrum 1."""
    rows = "".join(f"{w},{v}\n" for w, v in zip(NM, SPECTRA[1]))
    (folder / "table").write_text("wavelength,a\n" + rows)
    (folder / "utf16").write_bytes(("wavelength,a\n" + rows).encode("utf-16"))
    sig(folder / "sig", SPECTRA[1])
    sed(folder / "sed", SPECTRA[1])
    (folder / "envi").write_text("ENVI ASCII Plot File [x]\nColumn 1: Wavelength\nColumn 2: a\n" + rows.replace(",", "  "))
    (folder / "json").write_text(json.dumps({"type": "FeatureCollection", "features": [
        {"type": "Feature", "geometry": None, "properties": {"name": "a", "profiles": {
            "x": list(NM), "y": list(SPECTRA[1]), "xUnit": "Nanometers"}}}]}))
    (folder / "ecostress").write_text("Name: a\nX Units: Wavelength (micrometers)\nY Units: Reflectance (percent)\n\n" +
                                      "".join(f"{w / 1000} {100 * v}\n" for w, v in zip(NM, SPECTRA[1])))
    return ["table", "utf16", "sig", "sed", "envi", "json", "ecostress"]


def test_libraries_through_pipes(scene, tmp_path):
    for form in forms(tmp_path):
        writer = fed(tmp_path / (form + ".pipe"), tmp_path / form)
        assert_angles(scene, tmp_path / (form + ".pipe"), ANGLES[1:2])
        assert writer.wait(PATIENCE) == 0
        with open(tmp_path / form, "rb") as file:
            result = subprocess.run([BIN / "gdal_hsi_detect", "-q", "-overwrite", "-method", "sam", "-target", "/dev/stdin", scene,
                                     tmp_path / "stdin.tif"], stdin=subprocess.Popen(["cat"], stdin=file, stdout=subprocess.PIPE).stdout)
        assert result.returncode == 0 and np.allclose(read(tmp_path / "stdin.tif").reshape(1, 4), ANGLES[1:2], atol=2e-4), form


@pytest.mark.parametrize("name", ["l.sli", "l.hdr", "l.mat", "l.gpkg"])
def test_libraries_that_no_pipe_can_give_are_refused_at_once(name, scene, tmp_path):
    os.mkfifo(tmp_path / name)  # without a writer, so a reader waits
    result = run("gdal_hsi_detect", "-target", tmp_path / name, scene, tmp_path / "o.tif")
    assert result.code == 1 and f"{name}' is a pipe or a device" in first_error(result) and "Write it to a file" in result.err


@pytest.mark.parametrize("begin", [b"SQLite format 3\0" + bytes(200), b"MATLAB 5.0 MAT-file" + bytes(200), b"\x89HDF\r\n\x1a\n" + bytes(99)])
def test_contents_that_need_a_file_are_refused(begin, scene, tmp_path):
    (tmp_path / "data").write_bytes(begin)
    writer = fed(tmp_path / "pipe", tmp_path / "data")
    result = run("gdal_hsi_detect", "-target", tmp_path / "pipe", scene, tmp_path / "o.tif")
    assert writer.wait(PATIENCE) == 0 and result.code == 1 and "is a pipe or a device" in first_error(result), result.err


@pytest.mark.parametrize("tool, args", [
    ("spectra", lambda scene, pipe, out: [scene, pipe, out]), ("svm_train", lambda scene, pipe, out: [scene, pipe, out]),
    ("pca", lambda scene, pipe, out: ["-mask", pipe, scene, out])])
def test_labels_and_masks_through_pipes_are_refused_at_once(tool, args, scene, tmp_path):
    for name in ("pipe", "pipe.csv", "pipe.geojson", "pipe.mat"):
        os.mkfifo(tmp_path / name)
        result = run("gdal_hsi_" + tool, *args(scene, tmp_path / name, tmp_path / "o.csv"))
        assert result.code == 1 and f"{name}' is a pipe or a device" in first_error(result), result.err


@pytest.mark.parametrize("tool, args", [
    ("detect", lambda scene, pipe, out: ["-target", pipe, scene, out]), ("pca", lambda scene, pipe, out: ["-apply", pipe, scene, out]),
    ("svm_classify", lambda scene, pipe, out: [scene, pipe, out])])
def test_one_signal_ends_the_wait_for_a_pipe(tool, args, scene, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    process = start("gdal_hsi_" + tool, *args(scene, tmp_path / "pipe", tmp_path / "o.tif"))
    writer = os.open(tmp_path / "pipe", os.O_WRONLY)  # returns when the tool reads; it writes nothing
    try:
        process.send_signal(signal.SIGTERM)
        error = process.communicate(timeout=PATIENCE)[1]
    finally:
        os.close(writer)
        process.kill()
    assert process.returncode == 1 and b"interrupted" in error and not (tmp_path / "o.tif").exists()


# --- our own libraries


@pytest.fixture
def unknown(tmp_path):
    """Makes a scene whose last two bands have no wavelength, with a label for each of its four pixels."""
    data = np.repeat(SPECTRA.T.reshape(BANDS, 1, 4), 2, axis=1)
    wavelengths = [*map(str, NM[:-2]), "nan", "nan"]
    path = write_scene(tmp_path / "u.img", data, wavelengths=wavelengths)
    labels = np.tile(np.arange(1, 5, dtype="u1"), (1, 2, 1))
    return path, write_scene(tmp_path / "labels.tif", labels, driver="GTiff", dtype="u1")


@pytest.mark.parametrize("extension", ["sli", "csv", "geojson"])
def test_unknown_wavelengths_come_back(extension, unknown, tmp_path):
    path, labels = unknown
    library = tmp_path / f"l.{extension}"
    succeed(run("gdal_hsi_spectra", "-q", path, labels, library))
    # The scene's own bands, and another scene's by the known wavelengths.
    succeed(run("gdal_hsi_unmix", "-q", "-method", "ucls", path, library, tmp_path / "a.tif"))
    assert np.allclose(read(tmp_path / "a.tif")[:, 0], np.eye(4), atol=1e-4)
    order = np.r_[10:BANDS - 2, 0:10]
    other = write_scene(tmp_path / "other.img", SPECTRA.T[order].reshape(-1, 1, 4), wavelengths=list(NM[order]))
    result = succeed(run("gdal_hsi_unmix", "-method", "ucls", other, library, tmp_path / "b.tif"))
    assert np.allclose(read(tmp_path / "b.tif")[:, 0], np.eye(4), atol=1e-4) and "Warning" not in result.err
    if extension == "sli":
        header = (tmp_path / "l.hdr").read_text()
        assert header.count("nan") == 2 and "0, 0" not in header


def test_profiles_with_null_values(scene, tmp_path):
    profile = {"x": list(NM), "y": [None if b == 4 else v for b, v in enumerate(SPECTRA[0])], "xUnit": "nm"}
    (tmp_path / "p.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": [
        {"type": "Feature", "geometry": None, "properties": {"name": "a", "profiles": json.dumps(profile)}}]}))
    kept = [b for b in range(BANDS) if b != 4]
    want = np.array([[angle(SPECTRA[0][kept], b[kept]) for b in SPECTRA]])
    assert "1 value of 30 is missing" in assert_angles(scene, tmp_path / "p.geojson", want).err


def test_spectra_are_written_by_name(unknown, tmp_path):
    path, labels = unknown
    succeed(run("gdal_hsi_spectra", "-q", "-spectrum", "class 3", "-spectrum", "#1", path, labels, tmp_path / "l.csv"))
    lines = (tmp_path / "l.csv").read_text().splitlines()
    assert lines[0] == "band,wavelength,Class 3,Class 1"
    assert np.allclose([float(v) for v in lines[5].split(",")[2:]], SPECTRA[[2, 0], 4], atol=1e-6)
    result = run("gdal_hsi_spectra", "-spectrum", "corn*", path, labels, tmp_path / "m.csv")
    assert result.code == 1 and "ERROR: -spectrum: no spectrum matches 'corn*'" in result.err and not (tmp_path / "m.csv").exists()


def test_spectra_called_as_columns_of_other_things(unknown, tmp_path):
    """fwhm, bbl and Wavelength may be names of classes."""
    path, labels = unknown
    dataset = gdal.Open(str(labels), gdal.GA_Update)
    dataset.GetRasterBand(1).SetCategoryNames(["", "fwhm", "bbl", "Wavelength", "band"])
    dataset = None
    succeed(run("gdal_hsi_spectra", "-q", path, labels, tmp_path / "l.csv"))
    succeed(run("gdal_hsi_unmix", "-q", "-method", "ucls", path, tmp_path / "l.csv", tmp_path / "a.tif"))
    assert names_of(tmp_path / "a.tif") == ["fwhm", "bbl", "Wavelength", "band"]
    assert np.allclose(read(tmp_path / "a.tif")[:, 0], np.eye(4), atol=1e-4)


def test_a_library_of_a_scene_without_wavelengths_and_with_empty_bands_fits_it(tmp_path):
    data = np.repeat(SPECTRA.T.reshape(BANDS, 1, 4), 5, axis=1)
    data[10:13] = -32768
    path = write_scene(tmp_path / "s.tif", data, driver="GTiff", nodata=-32768)
    succeed(run("gdal_hsi_endmembers", "-q", "-t", 4, "-spectra", tmp_path / "e.sli", path, tmp_path / "e.gpkg"))
    result = succeed(run("gdal_hsi_unmix", "-method", "ucls", path, tmp_path / "e.sli", tmp_path / "a.tif"))
    assert "27 of 30 bands" in result.out  # they are identified by number
    shares = read(tmp_path / "a.tif")
    assert np.allclose(np.sort(shares[:, 0], axis=0), np.sort(np.eye(4), axis=0), atol=1e-4)


@pytest.mark.parametrize("extension", ["sli", "csv", "geojson"])
def test_deviations_are_no_materials(tmp_path, extension):
    """A library of means and standard deviations is read as the means; -spectrum may name other spectra."""
    random = np.random.default_rng(11)
    classes = np.repeat([1, 2, 3], 40).reshape(12, 10)
    data = np.moveaxis(SPECTRA[classes - 1] + random.normal(0, 0.01, (12, 10, BANDS)), 2, 0)
    write_scene(tmp_path / "s.img", data, wavelengths=NM)
    write_scene(tmp_path / "l.tif", classes[None], driver="GTiff", dtype="u1")
    library, plain = tmp_path / f"dev.{extension}", tmp_path / "plain.sli"
    succeed(run("gdal_hsi_spectra", "-q", "-kind", "deviation", tmp_path / "s.img", tmp_path / "l.tif", library))
    succeed(run("gdal_hsi_spectra", "-q", tmp_path / "s.img", tmp_path / "l.tif", plain))
    outputs = []
    for path in library, plain:
        for words in (["unmix", tmp_path / "s.img", path], ["unmix", "-spectrum", "*lass*", tmp_path / "s.img", path],
                      ["detect", "-method", "sam", "-target", path, tmp_path / "s.img"]):
            result = succeed(run("gdal_hsi_" + words[0], "-overwrite", *words[1:], tmp_path / "o.tif"))
            noted = "3 of 6 spectra are standard deviations ('Class 1 deviation' ...) and left out" in result.out
            assert noted == (path == library), result.out
            outputs.append(read(tmp_path / "o.tif"))
    for one, other in zip(outputs[:3], outputs[3:]):
        assert one.shape == other.shape == (3, 12, 10) and np.allclose(one, other, atol=1e-5)
    result = succeed(run("gdal_hsi_detect", "-overwrite", "-method", "sam", "-target", library, "-spectrum", "Class 2 deviation",
                         tmp_path / "s.img", tmp_path / "o.tif"))
    assert "1 of 1 spectrum is a standard deviation ('Class 2 deviation') and not a material, but used since -spectrum names it" in result.err
    result = run("gdal_hsi_unmix", "-overwrite", "-spectrum", "*deviation", tmp_path / "s.img", library, tmp_path / "x.tif")
    assert result.code == 1 and "and not a material" in first_error(result) and not (tmp_path / "x.tif").exists()
