# SPDX-License-Identifier: MIT
"""Tables of spectra as people and programs write them. The scene is a mixture of known spectra with known shares, so
unconstrained unmixing must recover the shares: a misread column gives another number of bands, other shares or an
error."""

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
    """Writes one spectrum per column, after columns of other data; head and first are lists of equal length."""
    lines = [separator.join([*head, *names])]
    for b in range(BANDS):
        cells = [*(f[b] for f in first), *spectra[:, b]]
        lines.append(separator.join(c if isinstance(c, str) else repr(float(c)).replace(".", decimal) for c in cells))
    return "\n".join(lines) + "\n"


def rows(head, cells, keys, separator=",", decimal=".", spectra=SPECTRA):
    """Writes one spectrum per row, after cells of other data."""
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
    ("wavelength (angstrom)", NM * 10), ("Wavelength (A)", NM * 10), ("wl [A]", NM * 10), ("Wavelength (mm)", NM / 1e6),
    ("wavelength_mm", NM / 1e6), ("Wavelength (m)", NM / 1e9), ("Wavelength in metres", NM / 1e9),
    ("wavelength_m", NM / 1e9), ("Frequency (THz)", 299792.458 / NM), ("GHz", 299792458 / NM), ("Energy (eV)", 1239.841984332 / NM),
    ("Photon energy [keV]", 1.239841984332 / NM), ("wn", 1e7 / NM), ("Wave number (1/m)", 1e9 / NM),
])
def test_names_of_wavelengths(head, values, scene, tmp_path):
    (tmp_path / "l.csv").write_text(columns([head], [values]), encoding="utf-8")
    said = assert_shares(scene, tmp_path / "l.csv").err
    unit = head in ("Wavelength", "wvl", "Wvl", "lambda", "Band center", "centre", "CWL")
    assert ("the unit of the wavelengths is not stated" in said) == unit and said.count("Warning") == unit
    # They identify the bands: in another order of rows, the bands are the same.
    lines = columns([head], [values]).splitlines()
    (tmp_path / "l.csv").write_text("\n".join([lines[0], *lines[:0:-1]]) + "\n", encoding="utf-8")
    assert_shares(scene, tmp_path / "l.csv")


@pytest.mark.parametrize("head", ["x", "longitud de onda", "index", "Channel", "Band", "id"])
@pytest.mark.parametrize("values", [NM, MICROMETRES], ids=["nm", "um"])
def test_wavelengths_under_another_name_are_taken_and_told(head, values, scene, tmp_path):
    (tmp_path / "l.csv").write_text(columns([head], [values]))
    assert f"'{head}', rises as wavelengths do and is read as the wavelengths" in assert_shares(scene, tmp_path / "l.csv").err


@pytest.mark.parametrize("head", ["index", "Channel", "Band", "band number", "Unnamed: 0", "id", "#"])
@pytest.mark.parametrize("begin", [0, 1])
def test_numbers_of_bands_are_neither_spectra_nor_wavelengths(head, begin, scene, tmp_path):
    numbers = [str(b + begin) for b in range(BANDS)]
    (tmp_path / "l.csv").write_text(columns([head], [numbers]))
    result = assert_shares(scene, tmp_path / "l.csv")
    assert head == "Band" or "it is ignored" in result.err
    (tmp_path / "l.csv").write_text(columns([head, "wavelength"], [numbers, NM]))
    assert_shares(scene, tmp_path / "l.csv")
    part = [str(5 * b + 8) for b in range(BANDS)]
    (tmp_path / "l.csv").write_text(columns([head], [part]))
    assert_shares(scene, tmp_path / "l.csv")


@pytest.mark.quick
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
    """Reflectance that happens to rise, in a few bands next to others of its magnitude: a spectrum, with a message."""
    spectra = np.array([[0.21, 0.22, 0.35, 0.5, 0.52, 0.7], [0.4, 0.3, 0.5, 0.2, 0.6, 0.1]])
    scene = write_scene(tmp_path / "s.img", spectra.T.reshape(6, 1, 2))
    (tmp_path / "l.csv").write_text("sand,tar\n" + "".join(f"{a},{b}\n" for a, b in spectra.T))
    result = succeed(run("gdal_hsi_unmix", "-method", "ucls", scene, tmp_path / "l.csv", tmp_path / "o.tif"))
    assert "'sand', rises or falls from line to line and is read as a spectrum" in result.err
    assert np.allclose(read(tmp_path / "o.tif").reshape(2, 2), np.eye(2), atol=1e-5)


# --- repeated wavelengths


@pytest.mark.parametrize("head, values", [
    ("wavelength_um", MICROMETRES), ("wavenumber_cm-1", 1e7 / NM), ("um", MICROMETRES), ("wavelength (A)", NM * 10),
    ("Wavelength", NM), ("wl air", NM * 0.9999),
])
@pytest.mark.parametrize("place", [0, 1, 3])
def test_wavelengths_in_two_units_are_no_spectrum(head, values, place, scene, tmp_path):
    lines = columns(["wavelength_nm"], [NM]).splitlines()
    cells = [head, *(repr(float(v)) for v in values)]
    lines = [",".join([*line.split(",")[:place], cell, *line.split(",")[place:]]) for line, cell in zip(lines, cells)]
    (tmp_path / "l.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert "has the wavelengths several times; ignored: column " in assert_shares(scene, tmp_path / "l.csv").err


def pairs(heads, wavelengths):
    """Writes each spectrum after its wavelengths."""
    lines = [",".join(w + "," + n for w, n in zip(heads, NAMES))] if heads else []
    for b in range(BANDS):
        lines.append(",".join(f"{wavelengths[k][b]!r},{SPECTRA[k, b]!r}".replace("np.float64(", "").replace(")", "")
                              for k in range(3)))
    return "\n".join(lines) + "\n"


PAIRED = [["wl_a", "wl_b", "wl_c"], ["wl"] * 3, ["x"] * 3, ["Wavelength meadow", "Wavelength soil", "Wavelength tar"], ["nm"] * 3,
          ["first x", "second x", "third x"], [""] * 3, None]


@pytest.mark.parametrize("heads", PAIRED)
def test_spectra_that_each_have_the_same_wavelengths(heads, scene, tmp_path):
    (tmp_path / "l.csv").write_text(pairs(heads, [NM] * 3))
    assert_shares(scene, tmp_path / "l.csv", NAMES if heads else ["Spectrum 1", "Spectrum 2", "Spectrum 3"])


UNEVEN = np.sort(np.random.default_rng(2).uniform(450, 2400, BANDS)).round(1)


@pytest.mark.parametrize("heads, other", [
    *((heads, NM + 7) for heads in PAIRED),
    # These could be spectra, except for their even steps
    *((heads, UNEVEN) for heads in PAIRED if not heads or heads[0] != "first x"),
])
def test_spectra_that_each_have_other_wavelengths_are_refused(heads, other, scene, tmp_path):
    (tmp_path / "l.csv").write_text(pairs(heads, [NM, other, NM]))
    result = unmixed(scene, tmp_path / "l.csv", code=1)
    assert "have different wavelengths" in first_error(result) and "Interpolate all spectra" in result.err
    assert not (tmp_path / "o.tif").exists()


@pytest.mark.parametrize("head, values", [("wavelength_um", MICROMETRES + 0.02), ("wavenumber", 1e7 / (NM + 20)),
                                          ("wavelength_um", np.where(np.arange(BANDS) == 5, 9, MICROMETRES))])
def test_wavelengths_that_contradict_each_other_are_refused(head, values, scene, tmp_path):
    (tmp_path / "l.csv").write_text(columns(["wavelength_nm", head], [NM, values]))
    result = unmixed(scene, tmp_path / "l.csv", code=1)
    assert f"the columns 1 ('wavelength_nm') and 2 ('{head}') have different wavelengths" in first_error(result)


def test_numbers_of_bands_behind_the_wavelengths_are_no_spectrum(scene, tmp_path):
    for head in ("channel", "Band", "", "#"):
        (tmp_path / "l.csv").write_text(columns(["wavelength", head], [NM, [str(b + 1) for b in range(BANDS)]]))
        assert_shares(scene, tmp_path / "l.csv")


@pytest.mark.parametrize("more, message", [
    (["wavelength_um", *MICROMETRES], "repeats the wavelengths; it is ignored"), (["fwhm", *np.full(BANDS, 10.)], ""),
    (["bbl", *np.ones(BANDS)], ""),
])
def test_lines_of_other_things_among_lines_of_spectra(more, message, scene, tmp_path):
    (tmp_path / "l.csv").write_text(rows(["wavelength_nm"], [NAMES], NM) + ",".join(map(str, more)) + "\n")
    assert message in assert_shares(scene, tmp_path / "l.csv").err
    if message:
        (tmp_path / "l.csv").write_text(rows(["wavelength_nm"], [NAMES], NM + 30) + ",".join(map(str, more)) + "\n")
        assert "contradicts the wavelengths" in first_error(unmixed(scene, tmp_path / "l.csv", code=1))


# --- tables without names


def smooth(nm):
    return 0.3 + 0.2 * np.sin(np.asarray(nm, float) / 150)


@pytest.fixture(scope="module")
def half(tmp_path_factory):
    """Returns half the spectrum of smooth(), at as many wavelengths as whole nanometres from 400 to 700."""
    nm = 400 + 7.0 * np.arange(301)
    data = np.broadcast_to(smooth(nm)[:, None, None] / 2, (301, 2, 3)).astype("f4")
    return write_scene(tmp_path_factory.mktemp("half") / "half.img", data, wavelengths=list(nm))


FORMS = {"blanks": ("", " "), "tabs": ("", "\t"), "commas": ("", ","), "pandas": (",leaf\n", ","), "unnamed": ("Unnamed: 0,leaf\n", ","),
         "index": ("index;leaf\n", ";"), "id": ("id,leaf\n", ",")}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("nm", [np.arange(400, 701), np.arange(350, 2501), np.arange(2500, 349, -1), np.arange(350, 2501, 2),
                                np.arange(250, 2501), np.r_[350:1001, 990:2501]], ids=str)
def test_whole_nanometres_are_wavelengths_and_no_numbers_of_bands(form, nm, half, tmp_path):
    head, separator = FORMS[form]
    path = tmp_path / "l.txt"
    path.write_text(head + "".join(f"{w}{separator}{v:.6f}\n" for w, v in zip(nm, smooth(nm))))
    succeed(run("gdal_hsi_unmix", "-q", "-method", "ucls", "-rmse", tmp_path / "r.tif", half, path, tmp_path / "o.tif"))
    assert np.allclose(read(tmp_path / "o.tif"), 0.5, atol=1e-4) and np.all(read(tmp_path / "r.tif") < 1e-4)


@pytest.mark.parametrize("head, numbers, message", [
    ("Channel,leaf\n", np.arange(400, 701), "which may be band numbers or wavelengths"),
    ("band,leaf\n", np.arange(400, 701), "which may be band numbers or wavelengths"),
    (",leaf\n", np.arange(8, 15), "which may be band numbers or wavelengths"),  # whole micrometres
    ("", np.arange(8, 15), "which may be band numbers or wavelengths"),
    ("Channel,leaf\n", np.arange(301, 0, -1), "its lines are not in ascending order of the column Channel"),
    ("", np.arange(301, 0, -1), "its lines are not in ascending order of the column 1"),
])
def test_whole_numbers_that_may_be_either_are_refused(head, numbers, message, half, tmp_path):
    path = tmp_path / "l.csv"
    path.write_text(head + "".join(f"{n},{v:.6f}\n" for n, v in zip(numbers, smooth(numbers))))
    result = run("gdal_hsi_unmix", "-q", "-method", "ucls", half, path, tmp_path / "o.tif")
    assert result.code == 1 and message in first_error(result), result.err


# --- text above the numbers


USGS = ("USGS Digital Spectral Library splib06a\nClark and others 2007, USGS, Data Series 231.\n\nFor further information see: "
        "http://speclab.cr.usgs.gov\n\nASCII Spectral Data file contents:\nline 15 title\nline 16 history\n"
        "line 17 to end: 3-columns of data:\n     wavelength    reflectance    standard deviation\n\n(standard deviation of "
        "0.000000 means not measured)\n(      -1.23e34  indicates a deleted number)\n" + "-" * 52 + "\nmeadow\ncopy of splib05a r 4713\n")


def one_column(separator=",", x=NM, y=SPECTRA[0]):
    return "".join(f"{float(a):.6f}{separator}{float(b):.6f}\n" for a, b in zip(x, y))


ABOVE = {
    "a title": "My library\n" + "Wavelength,meadow\n" + one_column(),
    "titles": "My library\nof 2019\nWavelength (nm),meadow\n" + one_column(),
    "a title with cells": "My library,\nWavelength,meadow\n" + one_column(),
    "a title of as many cells": "My library,of 2019\nWavelength,meadow\n" + one_column(),
    "a title, blanks": "My library of 2019\nWavelength  meadow\n" + one_column("  "),
    "sep=,": "sep=,\nWavelength,meadow\n" + one_column(),
    "sep=;": "sep=;\r\nWavelength;meadow\r\n" + one_column(";").replace(".", ","),
    "units": "Wavelength,meadow\nnm,-\n" + one_column(),
    "units in brackets": "Wavelength;meadow\n[um];[1]\n" + one_column(";", MICROMETRES),
    "units, angstrom": "Wavelength,meadow\nA,reflectance\n" + one_column(x=NM * 10),
    "title and units": "My library\nWavelength,meadow\n(um),\n" + one_column(x=MICROMETRES),
    "percent": "Wavelength,meadow\nnm,%\n" + one_column(y=100 * SPECTRA[0]),
    "percent in the name": "Wavelength (nm),meadow (%)\n" + one_column(y=100 * SPECTRA[0]),
    "percent in the name, brackets": "nm,meadow [%],\n" + one_column(y=100 * SPECTRA[0]).replace("\n", ",\n"),
    "cells in percent": "Wavelength,meadow\n" + "".join(f"{w},{100 * v:.5f} %\n" for w, v in zip(NM, SPECTRA[0])),
    "Fortran": "Wavelength,meadow\n" + one_column(x=[1] * BANDS).replace("1.000000", "%s") % tuple(f"{w:.8E}".replace("E", "D") for w in NM),
    "ENVI's plots": "ENVI ASCII Plot File [Mon Jan 1 10:00:00 2018]\nColumn 1: Wavelength\nColumn 2: meadow~~2##255,0,0\n" +
                    one_column("  "),
    "splib06": USGS + "".join(f"      {w:.6f}       {v:.6f}       0.000000\n" for w, v in zip(MICROMETRES, SPECTRA[0])),
}


@pytest.mark.parametrize("form", ABOVE)
@pytest.mark.parametrize("name", ["l.csv", "l.txt"])
def test_what_stands_above_the_numbers(form, name, tmp_path):
    scene = write_scene(tmp_path / "s.img", (SPECTRA[0] / 2).reshape(BANDS, 1, 1), wavelengths=list(NM))
    (tmp_path / name).write_bytes(ABOVE[form].encode())
    succeed(run("gdal_hsi_unmix", "-q", "-method", "ucls", "-rmse", tmp_path / "r.tif", scene, tmp_path / name, tmp_path / "o.tif"))
    assert np.allclose(read(tmp_path / "o.tif"), 0.5, atol=1e-4) and np.all(read(tmp_path / "r.tif") < 1e-4)
    dataset = gdal.Open(str(tmp_path / "o.tif"))
    assert dataset.RasterCount == 1 and dataset.GetRasterBand(1).GetDescription() == "meadow"


def test_plots_with_fewer_numbers_than_columns_are_refused(scene, tmp_path):
    begin = "ENVI ASCII Plot File [x]\nColumn 1: Wavelength\n"
    for name, text in [("behind", begin + "Column 2: a\n" + one_column("  ") + "Column 3: b\n"),
                       ("short", begin + "Column 2: a\n450  0.1\n550\n650 0.3\n")]:
        (tmp_path / name).write_text(text)
        error = first_error(unmixed(scene, tmp_path / name, code=1))
        assert error.endswith({"behind": "has 2 columns of data under 3 names", "short": "has 1 column of data under 2 names"}[name])


def test_numbers_with_and_without_percent_are_refused(scene, tmp_path):
    (tmp_path / "l.csv").write_text("wavelength,a\n400,10 %\n500,0.2\n")
    assert "column 2 has numbers with and without % (1 and 1)" in first_error(unmixed(scene, tmp_path / "l.csv", code=1))
    (tmp_path / "l.csv").write_text("name,450,550,650\nmeadow,10 %,20 %,0.3\n")
    assert "spectrum 1 has numbers with and without %" in first_error(unmixed(scene, tmp_path / "l.csv", code=1))


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


SHUFFLED = np.random.default_rng(4).permutation(BANDS)
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
    "wavenumbers": rows(["name"], [NAMES], [f"{float(v)!r} cm-1" for v in 1e7 / NM]),
    "wavenumbers, marked": rows(["name"], [NAMES], [f"wn_{float(v)!r}" for v in 1e7 / NM]),
    "wavenumbers, told in front": rows(["wavenumber (cm-1)"], [NAMES], 1e7 / NM),
    "in any order": rows(["name"], [NAMES], NM[SHUFFLED], spectra=SPECTRA[:, SHUFFLED]),
    "in any order, marked": rows(["name"], [["1", "2", "3"]], [f"{v} nm" for v in NM[SHUFFLED]], spectra=SPECTRA[:, SHUFFLED]),
    "falling": "\n".join(",".join([cells[0], *cells[:0:-1]]) for cells in
                         (line.split(",") for line in rows(["name"], [NAMES], NM).splitlines())) + "\n",
}


@pytest.mark.parametrize("form", ROWS)
def test_a_line_a_spectrum(form, scene, tmp_path):
    (tmp_path / "l.csv").write_text("\ufeff" + ROWS[form], encoding="utf-8")
    assert_shares(scene, tmp_path / "l.csv", ["1", "2", "3"] if form == "in any order, marked" else NAMES)


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
    """-999 among derivatives of this magnitude is a value."""
    spectra = np.array([[-999, 1500, -2000, 700, 30, -400], [400, 300, 1500, -200, 600, 100.]])
    scene = write_scene(tmp_path / "s.img", spectra.T.reshape(6, 1, 2))
    (tmp_path / "l.csv").write_text("a,b\n" + "".join(f"{a},{b}\n" for a, b in spectra.T))
    result = succeed(run("gdal_hsi_unmix", "-method", "ucls", scene, tmp_path / "l.csv", tmp_path / "o.tif"))
    assert "missing" not in result.err
    assert np.allclose(read(tmp_path / "o.tif").reshape(2, 2), np.eye(2), atol=1e-4)


@pytest.mark.quick
@pytest.mark.parametrize("text, message", [
    ("name,class,quality\nmeadow,1,good\nsoil,2,bad\n", "a table with one spectrum per line needs wavelengths as column names"),
    ("wavelength,a\n400,0.1\n500,much\n", "the column a has a value that is not a number ('much')"),
    ("wavelength,a\n400,0.1\n500,0.2,0.3\n", "line 3 has 3 columns instead of 2"),
    ("# nothing but a comment\n", "has no table"),
    ("wavelength,fwhm\n400,10\n500,10\n", "has no spectra"),
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
