# SPDX-License-Identifier: MIT
"""Tables of spectra as people and programs write them. The scene is a mixture of known spectra by known shares, so that
unconstrained unmixing must give the shares back: a column that is taken for the wrong thing gives another number of bands,
other shares or an error."""

import numpy as np
import pytest
from osgeo import gdal

from conftest import first_error, read, run, succeed, write_scene

BANDS = 24
NM = np.linspace(450, 2400, BANDS).round(1)
RANDOM = np.random.default_rng(7)
SPECTRA = (np.abs(np.cumsum(RANDOM.normal(0, 0.2, (3, BANDS)), axis=1)) + 0.2).round(5)
NAMES = ["meadow", "soil", "tar"]
SHARES = RANDOM.dirichlet([1, 1, 1], 12 * 10)


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    data = (SHARES @ SPECTRA).T.reshape(BANDS, 12, 10)
    return write_scene(tmp_path_factory.mktemp("scene") / "scene.img", data, wavelengths=list(NM))


def columns(head, first, separator=",", decimal=".", names=NAMES, spectra=SPECTRA):
    """A column a spectrum, behind columns of other things: head and first are lists of as many."""
    lines = [separator.join([*head, *names])]
    for b in range(BANDS):
        cells = [*(f[b] for f in first), *spectra[:, b]]
        lines.append(separator.join(c if isinstance(c, str) else repr(float(c)).replace(".", decimal) for c in cells))
    return "\n".join(lines) + "\n"


def rows(head, cells, keys, separator=",", decimal=".", spectra=SPECTRA):
    """A line a spectrum, behind cells of other things."""
    lines = [separator.join([*head, *map(str, keys)])]
    for k in range(3):
        lines.append(separator.join([*(c[k] for c in cells), *(repr(float(v)).replace(".", decimal) for v in spectra[k])]))
    return "\n".join(lines) + "\n"


def unmixed(scene, path, *args, code=0):
    result = run("gdal_hsi_unmix", "-q", "-overwrite", "-method", "ucls", *args, scene, path, path.parent / "o.tif")
    assert result.code == code, result.err
    return result


def assert_shares(scene, path, names=NAMES):
    result = unmixed(scene, path)
    out = path.parent / "o.tif"
    shares = read(out)
    assert shares.shape == (3, 12, 10), shares.shape
    assert np.allclose(shares.reshape(3, -1).T, SHARES, atol=2e-4)
    dataset = gdal.Open(str(out))
    assert [dataset.GetRasterBand(k + 1).GetDescription() for k in range(3)] == names
    return result


MICROMETRES = NM / 1000


@pytest.mark.parametrize("head, values", [
    ("WL (nm)", NM), ("wl_um", MICROMETRES), ("Wavelength [um]", MICROMETRES), ("Wavelength (µm)", MICROMETRES),
    ("Wavelength", MICROMETRES), ("wvl", NM), ("Wvl", NM), ("lambda", NM), ("λ (nm)", NM), ("nm", NM), ("um", MICROMETRES),
    ("Band center", NM), ("band_center_um", MICROMETRES), ("Center wavelength (nm)", NM), ("centre", NM),
    ("Wavenumber", 1e7 / NM), ("wavenumber (cm-1)", 1e7 / NM), ("cm^-1", 1e7 / NM), ("Wellenlänge (nm)", NM), ("CWL", NM),
    ("wavelength (angstrom)", NM * 10),
])
def test_names_of_wavelengths(head, values, scene, tmp_path):
    (tmp_path / "l.csv").write_text(columns([head], [values]), encoding="utf-8")
    assert "Warning" not in assert_shares(scene, tmp_path / "l.csv").err
    # They place the bands: in another order of lines they are the same ones.
    lines = columns([head], [values]).splitlines()
    (tmp_path / "l.csv").write_text("\n".join([lines[0], *lines[:0:-1]]) + "\n", encoding="utf-8")
    assert_shares(scene, tmp_path / "l.csv")


@pytest.mark.parametrize("head", ["x", "longitud de onda", "index", "Channel", "Band", "id"])
@pytest.mark.parametrize("values", [NM, MICROMETRES], ids=["nm", "um"])
def test_wavelengths_under_another_name_are_taken_and_told(head, values, scene, tmp_path):
    (tmp_path / "l.csv").write_text(columns([head], [values]))
    assert f"'{head}', rises as wavelengths do and is taken for them" in assert_shares(scene, tmp_path / "l.csv").err


@pytest.mark.parametrize("head", ["index", "Channel", "Band", "band number", "Unnamed: 0", "id", "#"])
@pytest.mark.parametrize("begin", [0, 1])
def test_numbers_of_bands_are_neither_spectra_nor_wavelengths(head, begin, scene, tmp_path):
    numbers = [str(b + begin) for b in range(BANDS)]
    (tmp_path / "l.csv").write_text(columns([head], [numbers]))
    result = assert_shares(scene, tmp_path / "l.csv")
    assert head == "Band" or "it is left out" in result.err
    (tmp_path / "l.csv").write_text(columns([head, "wavelength"], [numbers, NM]))
    assert_shares(scene, tmp_path / "l.csv")
    part = [str(5 * b + 8) for b in range(BANDS)]
    (tmp_path / "l.csv").write_text(columns([head], [part]))
    assert_shares(scene, tmp_path / "l.csv")


@pytest.mark.parametrize("head", ["fwhm", "FWHM (nm)", "bandwidth", "Width [nm]", "Full width at half maximum"])
def test_widths_are_no_spectrum(head, scene, tmp_path):
    (tmp_path / "l.csv").write_text(columns(["wavelength", head], [NM, np.full(BANDS, 10.0)]))
    assert_shares(scene, tmp_path / "l.csv")
    behind = "\n".join(line + ("," + head if i == 0 else ",10") for i, line in
                       enumerate(columns(["wavelength"], [NM]).splitlines()))
    (tmp_path / "l.csv").write_text(behind + "\n")
    assert_shares(scene, tmp_path / "l.csv")


def test_bad_bands_of_a_table_have_no_value(scene, tmp_path):
    spoilt = SPECTRA.copy()
    spoilt[:, [3, 9]] = 7
    good = ["0" if b in (3, 9) else "1" for b in range(BANDS)]
    (tmp_path / "l.csv").write_text(columns(["wavelength", "bbl"], [NM, good], spectra=spoilt))
    assert_shares(scene, tmp_path / "l.csv")


def test_a_rising_spectrum_is_told_and_stays_one(tmp_path):
    """Reflectance that happens to rise, in few bands beside others of its size: a spectrum, with a word about it."""
    spectra = np.array([[0.21, 0.22, 0.35, 0.5, 0.52, 0.7], [0.4, 0.3, 0.5, 0.2, 0.6, 0.1]])
    scene = write_scene(tmp_path / "s.img", spectra.T.reshape(6, 1, 2))
    (tmp_path / "l.csv").write_text("sand,tar\n" + "".join(f"{a},{b}\n" for a, b in spectra.T))
    result = succeed(run("gdal_hsi_unmix", "-method", "ucls", scene, tmp_path / "l.csv", tmp_path / "o.tif"))
    assert "'sand', rises or falls from line to line and is taken for a spectrum" in result.err
    assert np.allclose(read(tmp_path / "o.tif").reshape(2, 2), np.eye(2), atol=1e-5)


SEPARATED = {
    "decimal commas": columns(["wavelength"], [NM], ";", ","),
    "tabs": columns(["wavelength"], [NM], "\t"),
    "tabs, decimal commas": columns(["wavelength"], [NM], "\t", ","),
    "blanks": columns(["wavelength"], [NM], " "),
    "blanks, decimal commas": columns(["wavelength"], [NM], "   ", ","),
    "commas and blanks": columns(["wavelength"], [NM], ", "),
    "CR": columns(["wavelength"], [NM]).replace("\n", "\r"),
    "CR LF": columns(["wavelength"], [NM]).replace("\n", "\r\n"),
    "comments": "# a campaign, 2019\n; by hand\n// twice\n" + columns(["wavelength"], [NM]) + "# end\n",
    "comments, semicolons": "# a campaign; 2019\n" + columns(["wavelength"], [NM], ";", ","),
    "a head in a comment": "# " + columns(["wavelength"], [NM]),
    "a head in a comment, blanks": "# " + columns(["wavelength"], [NM], " "),
    "empty lines and columns": columns(["wavelength"], [NM]).replace("\n", ",,\n\n") + ",,,,,\n",
    "a head of two lines": columns(['"wavelength\nin nm"'], [NM]),
    "quoted numbers": columns(["wavelength"], [[f'"{v}"'.replace(".", ",") for v in NM]]),
    "R": '"wl" ' + " ".join(f'"{n}"' for n in NAMES) + "\n" +
         "".join(f'"{b + 1}" {NM[b]} {" ".join(map(str, SPECTRA[:, b]))}\n' for b in range(BANDS)),
}


@pytest.mark.parametrize("form", SEPARATED)
def test_signs_between_cells_and_lines(form, scene, tmp_path):
    for name in ("l.csv", "l.txt"):
        (tmp_path / name).write_bytes(SEPARATED[form].encode())
        assert_shares(scene, tmp_path / name)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "latin-1", "utf-16"])
def test_encodings(encoding, scene, tmp_path):
    names = ["prairie sèche", "sol", "goudron"]
    (tmp_path / "l.csv").write_bytes(columns(["Wavelength (µm)"], [MICROMETRES], names=names).encode(encoding))
    assert_shares(scene, tmp_path / "l.csv", names)


ROWS = {
    "EMIT": rows(["Class"], [NAMES], NM),
    "EcoSIS": rows(["site", "spectrum name", "LMA"], [["1", "1", "2"], NAMES, ["3.1", "NA", "2.2"]], NM),
    "R": rows(["name"], [NAMES], [f"X{v}" for v in NM]),
    "units": rows(["name"], [NAMES], [f"{v} nm" for v in NM]),
    "micrometres": rows(["name"], [NAMES], [f"wl_{v}um" for v in MICROMETRES]),
    "hylite": rows(["name"], [NAMES], NM, ", "),
    "TSG": rows(["Wavelength"], [NAMES], NM),
    "semicolons": rows(["name"], [NAMES], [str(v).replace(".", ",") for v in NM], ";", ","),
    "tabs": rows(["name"], [NAMES], NM, "\t"),
    "numbers of bands": rows(["name"], [NAMES], [f"b{b + 1}" for b in range(BANDS)]),
    "falling": "\n".join(",".join([cells[0], *cells[:0:-1]]) for cells in
                         (line.split(",") for line in rows(["name"], [NAMES], NM).splitlines())) + "\n",
}


@pytest.mark.parametrize("form", ROWS)
def test_a_line_a_spectrum(form, scene, tmp_path):
    (tmp_path / "l.csv").write_text("\ufeff" + ROWS[form], encoding="utf-8")
    assert_shares(scene, tmp_path / "l.csv")


def test_a_line_a_spectrum_without_names(scene, tmp_path):
    unnamed = ["Spectrum 1", "Spectrum 2", "Spectrum 3"]
    (tmp_path / "l.csv").write_text(rows([], [], NM))
    assert_shares(scene, tmp_path / "l.csv", unnamed)
    (tmp_path / "l.csv").write_text(rows([""], [["0", "1", "2"]], NM))  # pandas
    assert_shares(scene, tmp_path / "l.csv", ["0", "1", "2"])


def test_spectra_called_by_numbers_stand_in_columns(scene, tmp_path):
    names = ["401", "402", "403"]
    for head, first in ((["wavelength"], [NM]), (["Channel"], [[str(b + 1) for b in range(BANDS)]])):
        (tmp_path / "l.csv").write_text(columns(head, first, names=names))
        assert_shares(scene, tmp_path / "l.csv", names)


@pytest.mark.parametrize("hole", ["", "NA", "N/A", "nan", "NaN", "null", "-", "-9999", "-9999.0", "-1.23e34", "-4.6e32", "-8e29",
                                  "9.96921e36", "-32768", "#N/A"])
@pytest.mark.parametrize("side", ["columns", "rows"])
def test_what_is_no_value_takes_its_band_out_and_is_counted(hole, side, scene, tmp_path):
    text = columns(["wavelength"], [NM]) if side == "columns" else rows(["name"], [NAMES], NM)
    cell = repr(float(SPECTRA[1, 5]))
    assert text.count(cell) == 1
    (tmp_path / "l.csv").write_text(text.replace(cell, hole))
    result = assert_shares(scene, tmp_path / "l.csv")
    assert f"1 value of {3 * BANDS} is missing" in result.err


def test_negative_numbers_of_the_size_of_a_fill_are_numbers(tmp_path):
    """-999 among derivatives of that size is one of them."""
    spectra = np.array([[-999, 1500, -2000, 700, 30, -400], [400, 300, 1500, -200, 600, 100.]])
    scene = write_scene(tmp_path / "s.img", spectra.T.reshape(6, 1, 2))
    (tmp_path / "l.csv").write_text("a,b\n" + "".join(f"{a},{b}\n" for a, b in spectra.T))
    result = succeed(run("gdal_hsi_unmix", "-method", "ucls", scene, tmp_path / "l.csv", tmp_path / "o.tif"))
    assert "missing" not in result.err
    assert np.allclose(read(tmp_path / "o.tif").reshape(2, 2), np.eye(2), atol=1e-4)


@pytest.mark.parametrize("text, message", [
    ("name,class,quality\nmeadow,1,good\nsoil,2,bad\n", "a table with a line a spectrum needs wavelengths for the names"),
    ("wavelength,a\n400,0.1\n500,much\n", "the column a holds something that is no number ('much')"),
    ("wavelength,a\n400,0.1\n500,0.2,0.3\n", "line 3 has 3 columns instead of 2"),
    ("# nothing but a comment\n", "holds no table"),
    ("wavelength,fwhm\n400,10\n500,10\n", "holds no spectrum"),
    ("wavelength,a\n400,NA\n500,-9999\n", "the spectrum 'a' has no value"),
])
def test_what_is_refused(text, message, scene, tmp_path):
    (tmp_path / "l.csv").write_text(text)
    result = unmixed(scene, tmp_path / "l.csv", code=1)
    assert message in first_error(result), result.err
    assert not (tmp_path / "o.tif").exists()


def test_a_table_of_metadata_leads_to_its_library(scene, tmp_path):
    (tmp_path / "l.csv").write_text("spectra names,site\nmeadow,north\n")
    (tmp_path / "l.sli").write_bytes(b"\0" * 8)
    assert f"the spectra are in {tmp_path / 'l.sli'}" in first_error(unmixed(scene, tmp_path / "l.csv", code=1))
