# SPDX-License-Identifier: MIT
"""Spectra with names and wavelengths, from what people have them in: arrays, dicts, DataFrames, DataArrays and libraries in files."""
import collections.abc
import csv
import html
import json
import math
import pathlib
import re

import numpy as np

from ._arrays import WAVELENGTHS, WIDTHS, as_numpy, band_dimension, band_labels, in_nm, is_data_array, is_path, nodata_of, order_of_labels, real_numbers, refused_labels, unmasked, wavelengths_of, widths_of
from ._errors import UsageError
from ._library import text

def _spectra_of(value):
    """Of a DataArray of spectra: values (spectra, bands), names, wavelengths in nm, widths and labels of bands, by its dimensions' names."""
    dims, band = tuple(map(str, value.dims)), band_dimension(value)
    if band is None and len(dims) == 1:
        band = dims[0]
    if band is None or len(dims) > 2:
        raise UsageError(f"spectra with the dimensions ({', '.join(dims)}): " +
                         ("one or two are needed" if len(dims) != 2 else "they do not include bands"),
                         "Name them spectrum and band: x.rename(...), or give x.values, spectra x bands.")
    values = as_numpy(value, "spectra")
    nodata = nodata_of(value)
    if nodata is not None:
        values = np.where(values == nodata, np.nan, values)
    other = next((d for d in dims if d != band), None)
    names = None
    if other is not None:
        values = values if dims[1] == band else values.T
        named = (value.coords[k] for k in (other, "name", "names", "class") if k in value.coords)
        names = next((list(map(str, np.asarray(c))) for c in named
                      if tuple(map(str, c.dims)) == (other,) and np.asarray(c).dtype.kind in "iuUO"), None)
    else:
        named = [str(np.asarray(c)) for c in value.coords.values() if c.ndim == 0 and np.asarray(c).dtype.kind == "U"]
        names = named if len(named) == 1 else None
    return (values, names, wavelengths_of(value, band, "spectra"), widths_of(value, band, "spectra"), band_labels(value, band))


_SPACE = re.compile(r"\s*")


def _members(text, name):
    """The members of a JSON object, the lists of numbers in the list of this name as arrays. They are read one after the other, so that
    Ctrl-C comes between two of them, and a text of hundreds of megabytes never stands in memory as objects."""
    read = json.JSONDecoder().raw_decode
    after = lambda place: _SPACE.match(text, place).end()  # noqa: E731
    whole, place = {}, after(0)
    while text[place] != "}":
        key, place = read(text, after(place + 1))
        place = after(after(place) + 1)  # the colon
        if key == name:
            whole[key], place = [], after(place + 1)
            while text[place] != "]":
                row, place = read(text, place)
                whole[key].append(np.array(row, dtype=np.float64))
                place = after(place)
                place = after(place + 1) if text[place] == "," else place
            place += 1
        else:
            whole[key], place = read(text, place)
        place = after(place)
    return whole


def _names_of_rows(frame):
    """The names of a DataFrame's rows; None where these are only counted."""
    index = frame.index
    return None if type(index).__name__ == "RangeIndex" or index.dtype.kind in "iu" else [str(one) for one in index]


def _numbers_of_columns(frame):
    """The numbers that a DataFrame's columns have as names, which are wavelengths; None where they are texts or only counted."""
    columns = frame.columns
    if type(columns).__name__ == "RangeIndex":
        return None
    try:
        return np.array([float(one) for one in columns])
    except (TypeError, ValueError):
        pass
    told = [re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*(nm|um|\u00b5m|\u03bcm)\s*", str(one)) for one in columns]  # 452.5nm
    return np.array([float(one[1]) * (1 if one[2] == "nm" else 1000) for one in told]) if all(told) else None


def wavelengths_of_columns(frame):
    """Wavelengths in nm that a DataFrame of pixels has as columns; None where the numbers of its columns may mean something else."""
    values = _numbers_of_columns(frame)
    if values is None or not len(values) or not (values > 0).all():
        return None
    return in_nm(values) if values.min() >= 200 or values.max() < 100 and (values != np.round(values)).any() else None


def _column(table, names):
    """The column of a table that has one of these names, in capitals or not; None where there is none."""
    return next((np.asarray(table[key], dtype=float) for name in names for key in table if str(key).lower() == name), None)


def bands_of_spectrometer(value):
    """What `bands` of resample() means: Spectra, a path, a table (DataFrame or dict) with the columns wavelength and fwhm, or a list of centres."""
    if isinstance(value, Spectra) or is_path(value) or is_data_array(value):
        return value if isinstance(value, Spectra) else Spectra(value)
    if hasattr(value, "columns") or isinstance(value, collections.abc.Mapping):
        centres, widths = _column(value, WAVELENGTHS), _column(value, WIDTHS)
        if centres is None:
            raise UsageError("bands: the table has no column wavelength", "Call the column of centres wavelength, and the column of widths fwhm.")
    else:
        centres, widths = real_numbers(value, "bands"), None
    return Spectra(np.zeros((1, len(centres))), ["bands"], centres, widths)


def _sparkline(values):
    """A spectrum as a small SVG, with gaps where it has no values."""
    values = np.asarray(values, dtype=float)
    good = np.isfinite(values)
    if not good.any():
        return ""
    low, high = values[good].min(), values[good].max()
    step, span = max(1, len(values) // 200), high - low or 1.0
    pieces, line = [], []
    for k in range(0, len(values), step):
        if good[k]:
            line.append(f"{160 * k / max(1, len(values) - 1):.1f},{29 - 28 * (values[k] - low) / span:.1f}")
        elif line:
            pieces, line = pieces + [line], []
    return "<svg width='160' height='30'>" + "".join(
        f"<polyline fill='none' stroke='currentColor' points='{' '.join(one)}'/>" for one in [*pieces, line] if one) + "</svg>"


def _write_table(spectra, path):
    """A line per band: number, wavelength and width where they are known, then the spectra."""
    known = [("band", spectra.band_numbers or range(1, spectra.spectra.shape[1] + 1)), ("wavelength", spectra.wavelengths_nm()), ("fwhm", spectra.fwhm)]
    columns = [(name, values) for name, values in known if values is not None]
    number = lambda v: f"{float(v):.17g}" if np.isfinite(v) else ""  # noqa: E731
    with open(path, "w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow([name for name, _ in columns] + spectra.names)
        for k, row in enumerate(np.asarray(spectra.spectra, dtype=float).T):
            out.writerow([number(values[k]) for _, values in columns] + [number(v) for v in row])


def _write_envi(spectra, path):
    """An ENVI spectral library: Float32 or Float64 as the spectra are, little-endian."""
    values = np.asarray(spectra.spectra)
    kind = 5 if values.dtype == np.float64 else 4
    values.astype("<f8" if kind == 5 else "<f4").tofile(path)
    listed = lambda items: "{" + ", ".join(items) + "}"  # noqa: E731
    names = [re.sub(r"[{},\r\n]", " ", name) for name in spectra.names]
    lines = ["ENVI", f"samples = {values.shape[1]}", f"lines = {values.shape[0]}", "bands = 1", "header offset = 0",
             "file type = ENVI Spectral Library", f"data type = {kind}", "interleave = bsq", "byte order = 0", f"spectra names = {listed(names)}"]
    nm = spectra.wavelengths_nm()
    if nm is not None:
        lines += ["wavelength units = Nanometers", "wavelength = " + listed(f"{v:.12g}" for v in nm)]
    if spectra.fwhm is not None:
        lines.append("fwhm = " + listed(f"{v:.9g}" for v in spectra.fwhm))
    path.with_suffix(".hdr").write_text("\n".join(lines) + "\n", encoding="utf-8")


class Spectra:
    """Spectra with names and wavelengths: the result of an algorithm, or a library for one.

    Parameters
    ----------
    spectra : array of shape (spectra, bands), dict, DataFrame, DataArray, Spectra or path
        The values, NaN where one is missing. A dict has names and spectra, a DataFrame one spectrum per row. A path is that of a
        library in a format that the tools read.
    names : list of str
        A name per spectrum.
    wavelengths, fwhm : arrays of shape (bands,)
        Wavelength and full width at half maximum of each band, in nm.
    band_numbers : list of int
        Numbers of the bands of the scene, counted from 1.
    band_labels : list
        Labels of the bands in the coordinate of a DataArray. They match the bands of a scene with labels if one of both has no
        wavelengths.

    Examples
    --------
    >>> import gdal_hsi as hsi
    >>> library = hsi.Spectra({"grass": [0.05, 0.04, 0.45], "soil": [0.12, 0.2, 0.3]}, wavelengths=[550, 670, 800])
    >>> library
    <Spectra: 2 of 3 bands, 550 to 800 nm>
      grass
      soil
    >>> float(library["soil"][1])
    0.2
    >>> library.save("library.csv")                           # the tools read it, as does hsi.Spectra("library.csv")
    """

    def __init__(self, spectra, names=None, wavelengths=None, fwhm=None, band_numbers=None, band_labels=None):
        if is_path(spectra) or isinstance(spectra, Spectra):
            told = Spectra.load(spectra) if is_path(spectra) else spectra
            spectra = told.spectra
            names, wavelengths = told.names if names is None else names, told.wavelengths if wavelengths is None else wavelengths
            fwhm, band_numbers = told.fwhm if fwhm is None else fwhm, told.band_numbers if band_numbers is None else band_numbers
        elif hasattr(spectra, "columns") and hasattr(spectra, "to_numpy"):
            names, wavelengths = _names_of_rows(spectra) if names is None else names, _numbers_of_columns(spectra) if wavelengths is None else wavelengths
            texts = [str(name) for name, kind in spectra.dtypes.items() if kind.kind not in "biuf"]
            if texts and len(texts) < spectra.shape[1]:
                raise UsageError(f"spectra: the column{'s' if len(texts) > 1 else ''} {', '.join(texts[:5])} of the table {'are' if len(texts) > 1 else 'is'} not numeric",
                                 f"Names of spectra are the index: table.set_index({texts[0]!r}); leave out other columns.")
            spectra = spectra.to_numpy()
        elif isinstance(spectra, collections.abc.Mapping):
            names = list(spectra) if names is None else names
            try:
                spectra = np.array([np.ravel(as_numpy(one, str(key))) for key, one in spectra.items()], dtype=float)
            except ValueError as error:
                if isinstance(error, UsageError):
                    raise
                raise UsageError("the spectra of a dict have different numbers of bands", "Give one value per band for each name.") from None
        if is_data_array(spectra):
            spectra, told, nm, widths, labels = _spectra_of(spectra)
            band_labels = labels if band_labels is None else band_labels
            names, wavelengths = told if names is None else names, nm if wavelengths is None else wavelengths
            fwhm = widths if fwhm is None else fwhm
        self.spectra = np.atleast_2d(as_numpy(unmasked(spectra), "spectra"))
        if self.spectra.ndim != 2:
            raise UsageError(f"spectra need two axes, but these have {self.spectra.ndim}", "Give spectra x bands.")
        if isinstance(names, str) or names is not None and not np.iterable(names):
            raise UsageError(f"names={names!r} is not a list of names", "Give one per spectrum.")
        self.names = [f"spectrum {k + 1}" for k in range(len(self.spectra))] if names is None else [str(n) for n in names]
        self.wavelengths = None if wavelengths is None else real_numbers(wavelengths, "wavelengths")
        self.fwhm = None if fwhm is None else real_numbers(fwhm, "widths")
        self.band_numbers = None if band_numbers is None else [int(b) for b in real_numbers(band_numbers, "band numbers")]
        self.band_labels = None if band_labels is None else np.asarray(band_labels).tolist() if hasattr(band_labels, "dtype") else list(band_labels)
        self.check()

    def for_scene(self, labels, has_wavelengths, name, some):
        """These spectra with their bands in the order of a scene's labels. some: those of a part of its bands are wanted."""
        if labels is None or self.band_labels is None or self.wavelengths is not None and has_wavelengths:
            return self
        places = order_of_labels(self.band_labels, labels)
        found = [k for k, place in enumerate(places) if place is not None]
        of_all = len(found) == len(labels)
        if not (of_all if len(found) == len(places) else of_all and self.band_numbers is not None) and not (
                found and len(found) == len(places) and (some or self.band_numbers is not None)):
            raise refused_labels(name, self.band_labels, labels)
        order = sorted(found, key=lambda k: places[k])
        choose = lambda values: None if values is None else np.asarray(values)[order]  # noqa: E731
        return Spectra(self.spectra[:, order], self.names, choose(self.wavelengths), choose(self.fwhm),
                       None if of_all else [places[k] + 1 for k in order])

    def check(self):
        """Raises where names or what is said of bands are not as many as the spectra, or their bands."""
        if len(self.names) != len(self.spectra):
            raise UsageError(f"{len(self.names)} names for {len(self.spectra)} spectra", "Give one per spectrum.")
        number = self.spectra.shape[1]
        for name in self.names:
            text(name, "names")
        for what, values in (("wavelengths", self.wavelengths), ("widths", self.fwhm), ("band numbers", self.band_numbers),
                             ("labels of bands", self.band_labels)):
            if values is not None and len(values) != number:
                raise UsageError(f"{len(values)} {what} for spectra of {number} bands", "Give one per band.")

    def __len__(self):
        return len(self.spectra)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.spectra, dtype=dtype) if copy else np.asarray(self.spectra, dtype=dtype)

    def __getitem__(self, key):
        """A spectrum by its name or place."""
        if isinstance(key, str) and key not in self.names:
            raise KeyError(f"{key!r}: the names are {', '.join(self.names[:8])}" + (", ..." if len(self) > 8 else ""))
        return self.spectra[self.names.index(key) if isinstance(key, str) else key]

    def __repr__(self):
        told = [f"<Spectra: {len(self)} of {self.spectra.shape[1]} bands{self._range()}>"]
        shown = self.names if len(self) <= 8 else self.names[:7]
        return "\n".join(told + ["  " + name[:70] for name in shown] + ([f"  ... and {len(self) - 7} more"] if len(self) > 8 else []))

    def _range(self):
        nm = None if self.wavelengths is None else self.wavelengths_nm()
        return "" if nm is None or not np.isfinite(nm).any() else f", {np.nanmin(nm):g} to {np.nanmax(nm):g} nm"

    def _repr_html_(self):
        """A table of the names with a small plot of each of the first spectra."""
        rows = "".join(f"<tr><td style='text-align:left'>{html.escape(name)}</td><td>{_sparkline(one)}</td></tr>"
                       for name, one in zip(self.names[:10], self.spectra[:10]))
        more = f"<caption>... and {len(self) - 10} more</caption>" if len(self) > 10 else ""
        return f"<div>{len(self)} spectra of {self.spectra.shape[1]} bands{self._range()}</div><table>{more}{rows}</table>"

    @classmethod
    def load(cls, path):
        """The spectra of a file that the tools read as a library: .sli, .csv, field spectrometers, USGS and others."""
        from ._files import library
        return cls(**library(path))

    def save(self, path):
        """Writes a library that the tools read: .csv (a line per band) or .sli (ENVI, with its .hdr).

        Raises UsageError for another ending.
        """
        path = pathlib.Path(path)
        if path.suffix.lower() not in (".csv", ".sli"):
            raise UsageError(f"path: '{path}' does not end in .csv or .sli", "Use one of these extensions.")
        (_write_table if path.suffix.lower() == ".csv" else _write_envi)(self, path)

    def to_dataframe(self):
        """A pandas.DataFrame: a row per spectrum, its name as index; wavelengths in nm as columns, or band numbers from 1 on."""
        import pandas
        nm = self.wavelengths_nm()
        columns = pandas.Index(nm, name="wavelength") if nm is not None else pandas.Index(
            self.band_numbers or range(1, self.spectra.shape[1] + 1), name="band")
        return pandas.DataFrame(self.spectra, index=pandas.Index(self.names, name="spectrum"), columns=columns)

    def wavelengths_nm(self):
        return None if self.wavelengths is None else in_nm(self.wavelengths)

    def values(self):
        """As the library takes it without a text: bands x 1 x spectra; None where a text says more."""
        told = [v for v in (self.wavelengths_nm(), self.fwhm) if v is not None]
        if self.band_numbers is not None or not self.spectra.size or not all(np.isfinite(v).all() for v in told):
            return None
        values = np.asarray(self.spectra, dtype=float)
        return np.where(np.isfinite(values), values, np.nan).T[:, np.newaxis, :]

    def text(self):
        """As the library takes it."""
        def numbers(values):
            return [float(v) if math.isfinite(v) else None for v in np.asarray(values, dtype=float)]
        whole = {"names": self.names, "spectra": [numbers(s) for s in self.spectra]}
        if self.wavelengths is not None:
            whole["wavelengths_nm"] = numbers(self.wavelengths_nm())
        if self.fwhm is not None:
            whole["fwhm_nm"] = numbers(self.fwhm)
        if self.band_numbers is not None:
            whole["band_numbers"] = self.band_numbers
        return json.dumps(whole)

    @classmethod
    def from_text(cls, text):
        whole = _members(text, "spectra")

        def numbers(values):
            return None if values is None else np.array([math.nan if v is None else v for v in values])
        kind = np.float64 if whole.get("double_precision") else np.float32
        return cls(np.array(whole["spectra"], dtype=np.float64).astype(kind), whole["names"], numbers(whole.get("wavelengths_nm")), numbers(whole.get("fwhm_nm")),
                   whole.get("band_numbers"))
