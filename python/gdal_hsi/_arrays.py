# SPDX-License-Identifier: MIT
"""Arrays as people have them, to the library's and back: NumPy, masked arrays, xarray, and what DLPack or the buffer protocol
reaches. No library but NumPy is imported here: objects of others are known by what they offer.
"""
import json
import math
import os
import pathlib
import sys

import numpy as np

from ._devices import DeviceArray, as_device_array, is_on_device
from ._errors import UsageError
from ._library import NUMBERS, TYPES, Cube

BAND_DIMENSIONS = ("band", "bands", "wavelength", "wavelengths", "wl", "channel", "feature", "component")
LINE_DIMENSIONS = ("y", "line", "lines", "row", "rows", "lat", "latitude", "northing")
SAMPLE_DIMENSIONS = ("x", "sample", "samples", "column", "columns", "col", "lon", "longitude", "easting")
ROLE = "an array has three axes: bands, lines, samples, as rasterio gives it; band_axis=-1 where the bands come last"


def is_path(value):
    return isinstance(value, os.PathLike) or (isinstance(value, str) and not value.lstrip().startswith(("{", "[")))


def is_data_array(value):
    return hasattr(value, "dims") and hasattr(value, "coords") and hasattr(value, "data")


def _module_of(value):
    return type(value).__module__.split(".")[0]


def as_values(value, name):
    """The values where they lie: a NumPy array, or a DeviceArray."""
    data = value.data if is_data_array(value) else value
    return as_device_array(data, name, TYPES) if is_on_device(data) else as_numpy(value, name)


def as_numpy(value, name):
    """The values in host memory, where they lie, of a type that the library takes; copied where NumPy has no other way."""
    if is_data_array(value):
        value = value.data
    if is_on_device(value):
        value = as_device_array(value, name, TYPES).on_host()
    device = getattr(value, "__dlpack_device__", None)
    if getattr(value, "requires_grad", False):
        value = value.detach()
    if isinstance(value, np.ma.MaskedArray):
        value = value.data
    try:
        only = device is not None and not (hasattr(value, "__array__") or hasattr(value, "__array_interface__"))
        array = np.from_dlpack(value) if only else np.asarray(value)
    except Exception as error:
        raise UsageError(f"{name} is no array: {error}", "Give a NumPy array, an xarray.DataArray, or a path.") from None
    if array.dtype == np.bool_:
        array = array.view(np.uint8)
    elif array.dtype == np.float16:
        array = array.astype(np.float32)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype not in NUMBERS:
        raise UsageError(f"{name} has values of type {array.dtype}, which are no real numbers of up to 8 bytes",
                         "Convert them: x.astype('float32'), or x.real of complex numbers.")
    if array.size == 0:
        raise UsageError(f"{name} has no values: its shape is {array.shape}", "Give an array with one value at least.")
    return array


class Layout:
    """Where bands, lines and samples lie in an argument, and how results are given back in the same way."""

    def __init__(self, value, name, band_axis=0, rank=3):
        self.like = value
        self.dims = None
        axes = None
        if is_data_array(value):
            self.dims = tuple(str(d) for d in value.dims)
            axes = _named_axes(self.dims, rank, name)
        self.values = as_values(value, name)
        if self.values.ndim != rank:
            raise UsageError(f"{name} has {self.values.ndim} axes, and {rank} are needed",
                             ROLE[0].upper() + ROLE[1:] + "." if rank == 3 else "Lines x samples, without bands.")
        if axes is None and rank == 3:
            try:
                axis = range(3)[band_axis]
            except (IndexError, TypeError):
                raise UsageError(f"band_axis={band_axis!r} is none of three axes", "Use 0, 1, 2 or -1.") from None
            rest = [a for a in range(3) if a != axis]
            axes = (axis, rest[0], rest[1])
        self.axes = axes if axes is not None else (0, 1)
        self.back = tuple(self.axes.index(a) for a in range(len(self.axes)))
        self.name = name

    def cube(self):
        """The values with the axes in the library's order."""
        return self.values.transpose(self.axes) if len(self.axes) == 3 else self.values[np.newaxis].transpose(
            (0, self.axes[0] + 1, self.axes[1] + 1))

    def plane(self, values):
        """A view (lines, samples) of something that has the axes of the argument without its bands."""
        rest = [a for a in self.axes[-2:]]
        return values if rest[0] < rest[1] else values.T

    def empty(self, shape, dtype):
        """A new array for a result of shape (bands, lines, samples), in memory as the argument's axes have it; seen as
        (bands, lines, samples)."""
        empty = self.values.empty if isinstance(self.values, DeviceArray) else np.empty
        shape = tuple(int(n) for n in shape)
        if len(self.axes) != 3:
            return empty(shape, dtype)
        return empty(tuple(shape[a] for a in self.back), dtype).transpose(self.axes)

    def given_back(self, array, flat):
        """A result (bands, lines, samples) in the argument's order of axes; flat: of its only band, without that axis."""
        if flat:
            rest = self.axes[-2:]
            return array[0] if rest[0] < rest[1] else array[0].T
        return array.transpose(self.back) if len(self.axes) == 3 else array


def _named_axes(dims, rank, name):
    lower = [d.lower() for d in dims]

    def find(names):
        return next((lower.index(n) for n in names if n in lower), None)

    line, sample, band = find(LINE_DIMENSIONS), find(SAMPLE_DIMENSIONS), find(BAND_DIMENSIONS)
    if rank == 2:
        rest = [a for a in range(len(dims)) if a not in (line, sample)]
        if len(dims) != 2:
            return None
        return (line if line is not None else rest.pop(), sample if sample is not None else rest.pop())
    if len(dims) != 3:
        return None
    if band is None and line is not None and sample is not None:
        band = next(a for a in range(3) if a not in (line, sample))
    if band is None:
        raise UsageError(f"{name}: none of its dimensions ({', '.join(dims)}) is one of bands",
                         "Name it band or wavelength: x.rename({'" + dims[0] + "': 'band'}).")
    rest = [a for a in range(3) if a != band]
    line = line if line is not None else next(a for a in rest if a != sample)
    sample = sample if sample is not None else next(a for a in rest if a != line)
    return band, line, sample


def _in_nm(values, units):
    values = np.asarray(values, dtype=float)
    units = str(units or "").lower()
    if units.startswith(("nano", "nm")):
        return values
    if units.startswith(("micro", "um", "µm", "μm")):
        return values * 1000
    # Without a unit: no spectrometer of light has bands at 100 nm, or at 100 micrometres.
    return values * 1000 if np.nanmax(values) < 100 else values


def _of_bands(value, dims, axes, names):
    """A coordinate of the bands by one of these names, and its units; (None, "")."""
    band = dims[axes[0]]
    for key in names:
        if key in value.coords and tuple(map(str, value.coords[key].dims)) == (band,):
            coordinate = value.coords[key]
            if np.issubdtype(np.asarray(coordinate).dtype, np.number):
                return np.asarray(coordinate, dtype=float), coordinate.attrs.get("units", "")
    return None, ""


def cube_of(layout, *, nodata=None, wavelengths=None, fwhm=None, names=None):
    """The argument for the library, with what is said of it and what it says itself."""
    value, cube = layout.like, layout.cube()
    mask = None
    if isinstance(value, np.ma.MaskedArray) and value.mask is not np.ma.nomask:
        hidden = np.ma.getmaskarray(value)
        hidden = hidden.transpose(layout.axes).any(axis=0) if len(layout.axes) == 3 else layout.plane(hidden)
        mask = np.ascontiguousarray(~hidden).view(np.uint8)
    if is_data_array(value):
        if len(layout.axes) == 3:
            if wavelengths is None:
                found, units = _of_bands(value, layout.dims, layout.axes, ("wavelength", "wavelengths", "wl"))
                wavelengths = None if found is None else _in_nm(found, units)
            if fwhm is None:
                found, units = _of_bands(value, layout.dims, layout.axes, ("fwhm", "widths"))
                fwhm = None if found is None else (found if not str(units).lower().startswith(("mic", "um", "µm"))
                                                   else found * 1000)
        for key in ("_FillValue", "nodata", "missing_value"):
            if nodata is None and isinstance(value.attrs.get(key, getattr(value, "encoding", {}).get(key)), (int, float, np.number)):
                nodata = float(value.attrs.get(key, value.encoding.get(key)))
    bands = cube.shape[0]
    for what, values in (("wavelengths", wavelengths), ("fwhm", fwhm)):
        if values is None:
            continue
        values = np.asarray(values, dtype=float)
        if values.ndim == 1 and len(values) == bands:
            continue
        advice = "Give one a band."
        if values.ndim == 1 and len(layout.axes) == 3 and len(values) in layout.values.shape:
            advice = f"band_axis={layout.values.shape.index(len(values))} has as many."
        raise UsageError(f"{layout.name} has {values.size} {what} for {bands} bands", advice)
    if nodata is not None and math.isnan(nodata):
        nodata = None
    to_list = lambda v: None if v is None else [float(x) for x in np.asarray(v, dtype=float)]  # noqa: E731
    return Cube(cube, mask=mask, nodata=nodata, wavelengths=None if wavelengths is None else to_list(_in_nm(wavelengths, "")),
                widths=to_list(fwhm), names=names)


class Spectra:
    """Spectra with names and wavelengths: a library that came out of an algorithm, or for one.

    spectra: array of shape (spectra, bands), NaN where there is no value. names: a text each. wavelengths, fwhm: nm, one a
    band, or None. band_numbers: of the scene's bands, from 1 on, or None.
    """

    def __init__(self, spectra, names=None, wavelengths=None, fwhm=None, band_numbers=None):
        self.spectra = np.atleast_2d(np.asarray(spectra))
        if self.spectra.ndim != 2:
            raise UsageError(f"spectra have two axes, and these have {self.spectra.ndim}", "Give spectra x bands.")
        self.names = [f"spectrum {k + 1}" for k in range(len(self.spectra))] if names is None else [str(n) for n in names]
        if len(self.names) != len(self.spectra):
            raise UsageError(f"{len(self.names)} names for {len(self.spectra)} spectra", "Give one a spectrum.")
        number = self.spectra.shape[1]
        for what, values in (("wavelengths", wavelengths), ("widths", fwhm), ("band numbers", band_numbers)):
            if values is not None and len(values) != number:
                raise UsageError(f"{len(values)} {what} for spectra of {number} bands", "Give one a band.")
        self.wavelengths = None if wavelengths is None else np.asarray(wavelengths, dtype=float)
        self.fwhm = None if fwhm is None else np.asarray(fwhm, dtype=float)
        self.band_numbers = None if band_numbers is None else [int(b) for b in band_numbers]

    def __len__(self):
        return len(self.spectra)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.spectra, dtype=dtype) if copy else np.asarray(self.spectra, dtype=dtype)

    def __getitem__(self, key):
        """A spectrum by its name or place."""
        return self.spectra[self.names.index(key) if isinstance(key, str) else key]

    def __repr__(self):
        return f"<Spectra: {len(self)} of {self.spectra.shape[1]} bands>"

    def wavelengths_nm(self):
        return None if self.wavelengths is None else _in_nm(self.wavelengths, "")

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
        whole = json.loads(text)

        def numbers(values):
            return None if values is None else np.array([math.nan if v is None else v for v in values])
        kind = np.float64 if whole.get("double_precision") else np.float32
        spectra = np.array([numbers(s) for s in whole["spectra"]], dtype=np.float64).astype(kind)
        return cls(spectra, whole["names"], numbers(whole.get("wavelengths_nm")), numbers(whole.get("fwhm_nm")),
                   whole.get("band_numbers"))


class Model(str):
    """A model as its JSON text, which the tools read and write as files."""

    __slots__ = ()

    def save(self, path):
        pathlib.Path(path).write_text(self, encoding="utf-8")

    @classmethod
    def load(cls, path):
        return cls(pathlib.Path(path).read_text(encoding="utf-8"))

    @property
    def document(self):
        """The JSON document."""
        return json.loads(self)


def model_text(value, name):
    """A model that was given as a Model, JSON, a document, an estimator or a path."""
    if hasattr(value, "model_"):
        value = value.model_
    if isinstance(value, dict):
        return json.dumps(value)
    if isinstance(value, str) and value.lstrip().startswith("{"):
        return str(value)
    if is_path(value):
        try:
            return pathlib.Path(value).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{name}: the model '{value}' cannot be read: {error}",
                             "Give a model, its JSON or the path of its file.") from None
    raise UsageError(f"{name} is no model", "Give what model=True has returned, its JSON, or the path of its file.")


def points_of(text):
    """Points as a structured array: a field a column."""
    whole = json.loads(text)
    kind = np.dtype([(f["name"], np.int64 if f["whole"] else np.float64) for f in whole["fields"]])
    return np.array([tuple(math.nan if v is None else v for v in row) for row in whole["points"]], dtype=kind)


def of_same_kind(array, layout, flat, info):
    """A result (bands, lines, samples) as the argument's kind of array."""
    values = layout.given_back(array, flat)
    like = layout.like
    if isinstance(values, DeviceArray):
        values = values.owner
        return _data_array(values, layout, flat, info) if is_data_array(like) else values
    if is_data_array(like):
        return _data_array(values, layout, flat, info)
    if isinstance(like, np.ma.MaskedArray):
        hidden = ~np.isfinite(values) if np.issubdtype(values.dtype, np.floating) else np.zeros(values.shape, bool)
        if "nodata" in info:
            hidden = hidden | (values == info["nodata"])
        return np.ma.MaskedArray(values, hidden)
    if isinstance(like, np.ndarray) or not hasattr(like, "__dlpack__"):
        return values
    module = sys.modules.get(_module_of(like))
    return module.from_dlpack(values) if hasattr(module, "from_dlpack") else values


def _data_array(values, layout, flat, info):
    like, dims = layout.like, list(layout.dims)
    plane = {dims[a] for a in layout.axes[-2:]}
    coords = {}
    for key, coordinate in like.coords.items():
        if set(map(str, coordinate.dims)) <= plane:
            coords[key] = coordinate
    attrs = {}
    band_dim = dims[layout.axes[0]] if len(layout.axes) == 3 else "band"
    sources = info.get("source_bands")
    if flat:
        dims = [d for d in dims if d in plane]
    elif len(layout.axes) == 3 and sources is not None:
        index = [b - 1 for b in sources]
        for key, coordinate in like.coords.items():
            if band_dim in map(str, coordinate.dims):
                coords[key] = coordinate.isel({band_dim: index})
        attrs = {k: v for k, v in like.attrs.items() if k not in ("_FillValue", "nodata", "missing_value")}
    else:
        names = [b.get("name", "") for b in info.get("bands", [])]
        bands = values.shape[layout.axes[0]] if len(layout.axes) == 3 else 1
        new = "band" if band_dim.lower() in ("wavelength", "wavelengths", "wl") else band_dim
        if len(layout.axes) == 3:
            dims[layout.axes[0]] = new
            coords[new] = names if len(names) == bands and all(names) else list(range(1, bands + 1))
    if "nodata" in info:
        attrs["_FillValue"] = info["nodata"]
    if "classes" in info:
        attrs["classes"] = info["classes"]
    return type(like)(values, dims=dims, coords=coords, attrs=attrs)
