# SPDX-License-Identifier: MIT
"""Arrays as people have them, to the library's and back: NumPy, masked arrays, xarray, and what DLPack or the buffer protocol
reaches. No library but NumPy is imported here: objects of others are known by what they offer.
"""
import collections.abc
import html
import json
import math
import os
import pathlib
import re
import sys

import numpy as np

from ._devices import DeviceArray, as_device_array, is_on_device
from ._errors import UsageError, WrongType
from ._library import NUMBERS, TYPES, Cube

BAND_DIMENSIONS = ("band", "bands", "wavelength", "wavelengths", "wl", "channel", "feature", "component", "spectral")
LINE_DIMENSIONS = ("y", "line", "lines", "row", "rows", "lat", "latitude", "northing", "downtrack")
SAMPLE_DIMENSIONS = ("x", "sample", "samples", "column", "columns", "col", "cols", "lon", "longitude", "easting", "crosstrack")
NODATA_ATTRIBUTES = ("_FillValue", "nodata", "missing_value")
OF_VALUES = ("units", "long_name", "standard_name", "scale_factor", "add_offset")  # what an attribute says of values
ROLE = "an array needs three axes: bands, lines, samples, as in rasterio; use band_axis=-1 if the bands are the last axis"


def is_path(value):
    return isinstance(value, os.PathLike) or (isinstance(value, str) and not value.lstrip().startswith(("{", "[")))


def is_data_array(value):
    return hasattr(value, "dims") and hasattr(value, "coords") and hasattr(value, "data")


def _module_of(value):
    return type(value).__module__.split(".")[0]


def refuse_no_array(value, name):
    """Raises what tells how to make an array of something known that is none."""
    if value is None:
        raise WrongType(f"{name} is None", "Give an array, or a path.")
    module, kind = type(value).__module__.split(".")[0], type(value).__name__
    if module == "rasterio" and hasattr(value, "read"):
        raise WrongType(f"{name} is an open rasterio dataset ({kind})", "Give its values, x.read(masked=True), or its path, x.name.")
    if module == "spectral" and hasattr(value, "open_memmap"):
        raise WrongType(f"{name} is a SpyFile ({kind}), which reads from disk", "Give its values, img.load() with band_axis=-1, or its path, img.filename.")
    if module == "osgeo" and hasattr(value, "ReadAsArray"):
        raise WrongType(f"{name} is a GDAL dataset", "Give its values, x.ReadAsArray(), or its path.")
    if hasattr(value, "data_vars"):
        raise WrongType(f"{name} is an xarray.Dataset", "Give one of its variables: " + ", ".join(f"x[{str(k)!r}]" for k in list(value.data_vars)[:3]) + ".")
    if isinstance(value, (collections.abc.Mapping, collections.abc.Set)) or callable(value):
        raise WrongType(f"{name} is a {kind}, not an array", "Give a NumPy array, an xarray.DataArray, or a path.")


def as_values(value, name):
    """The values where they lie: a NumPy array, or a DeviceArray."""
    data = value.data if is_data_array(value) else value
    return as_device_array(data, name, TYPES) if is_on_device(data) else as_numpy(value, name)


def as_numpy(value, name):
    """The values in host memory, where they lie, of a type that the library takes; copied where NumPy has no other way."""
    if is_data_array(value):
        value = value.data
    refuse_no_array(value, name)
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
    except (ArithmeticError, AttributeError, BufferError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise UsageError(f"{name} is not an array: {error}", "Give a NumPy array, an xarray.DataArray, or a path.") from None
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype == np.bool_:
        array = array.view(np.uint8)
    elif array.dtype == np.float16:
        array = array.astype(np.float32)
    if array.ndim == 0 and array.dtype.kind in "SU":
        raise UsageError(f"{name} is {value!r}, not an array", "A path is a str that does not begin with a bracket, or a pathlib.Path.")
    if array.dtype not in NUMBERS:
        raise UsageError(f"{name} has values of type {array.dtype}, not real numbers of up to 8 bytes",
                         "Convert them: x.astype('float32'), or x.real of complex numbers.")
    if array.size == 0:
        raise UsageError(f"{name} has no values: its shape is {array.shape}", "Give an array with at least one value.")
    return array


def unmasked(value):
    """A masked array as an array with NaN for what is masked; another value as it is."""
    if not isinstance(value, np.ma.MaskedArray):
        return value
    if not np.ma.is_masked(value):
        return value.data
    kind = value.dtype if value.dtype.kind in "fc" else np.result_type(value.dtype, np.float32)
    return value.astype(kind).filled(np.nan)


def real_numbers(value, what):
    """One-dimensional numbers that say something of bands."""
    if np.ma.is_masked(value):
        raise UsageError(f"{what} have masked values", "Give a number for each band.")
    try:
        values = np.asarray(value)
        if values.dtype.kind not in "biuf":
            values = values.astype(float) if values.dtype.kind == "O" else None
    except (TypeError, ValueError):
        values = None
    if values is None or values.ndim != 1:
        raise UsageError(f"{what} are not one real number per band", "Give a list or an array of numbers.")
    return values.astype(float)


class Layout:
    """Where bands, lines and samples lie in an argument, and how results are given back in the same way."""

    def __init__(self, value, name, band_axis=0, rank=3):
        self.like = value
        self.dims = None
        axes = None
        if is_data_array(value):
            self.dims = tuple(str(d) for d in value.dims)
            axes = named_axes(self.dims, rank, name)
        self.values = as_values(value, name)
        if self.values.ndim != rank:
            advice = ROLE[0].upper() + ROLE[1:] + "." if rank == 3 else "Give lines x samples, without bands."
            advice += " A table of pixels x bands is for the estimators, such as hsi.PCA." if (rank, self.values.ndim) == (3, 2) else ""
            raise UsageError(f"{name} has the shape {tuple(self.values.shape)}, but {rank} axes are needed", advice)
        if axes is None and rank == 3:
            try:
                if isinstance(band_axis, bool):
                    raise TypeError
                axis = range(3)[band_axis]
            except (IndexError, TypeError):
                raise UsageError(f"band_axis={band_axis!r} is not one of three axes", "Use 0, 1, 2 or -1.") from None
            rest = [a for a in range(3) if a != axis]
            axes = (axis, rest[0], rest[1])
        self.axes = axes if axes is not None else (0, 1)
        self.back = tuple(self.axes.index(a) for a in range(len(self.axes)))
        self.name = name

    def band(self):
        """The name of the dimension of bands, or None."""
        return self.dims[self.axes[0]] if self.dims is not None and len(self.axes) == 3 else None

    def labels(self):
        """The labels of the bands, or None."""
        return band_labels(self.like, self.band()) if self.band() is not None else None

    def without_bands(self):
        """The DataArray of one band, without that axis."""
        if self.values.shape[self.axes[0]] != 1:
            raise UsageError(f"{self.name} has {self.values.shape[self.axes[0]]} bands, but one is needed", "Give lines x samples, without bands.")
        return self.like.isel({self.band(): 0})

    def plane_dims(self):
        """The names of the dimensions of lines and samples."""
        return [self.like.dims[axis] for axis in self.axes[-2:]]

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


def named_axes(dims, rank, name):
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
        raise UsageError(f"{name}: its dimensions ({', '.join(dims)}) do not include bands",
                         "Name it band or wavelength: x.rename({'" + dims[0] + "': 'band'}).")
    rest = [a for a in range(3) if a != band]
    line = line if line is not None else next(a for a in rest if a != sample)
    sample = sample if sample is not None else next(a for a in rest if a != line)
    return band, line, sample


def same_places(one, other, of_one, of_other):
    """Whether what two DataArrays tell of the places along a dimension agrees, to a thousandth of a step as the tools have it;
    True where one of them tells nothing."""
    if of_one not in one.coords or of_other not in other.coords:
        return True
    a, b = np.asarray(one.coords[of_one]), np.asarray(other.coords[of_other])
    if a.dtype.kind in "iuf" and b.dtype.kind in "iuf" and a.shape == b.shape:
        a, b = a.astype(float), b.astype(float)
        step = np.abs(np.diff(a)).max() if a.size > 1 else np.abs(a).max(initial=0) * 1e-6
        return bool((np.abs(a - b) <= 1e-3 * step).all())
    return a.tolist() == b.tolist()


def in_window(value, dims, window):
    """The part of a DataArray with these dimensions of lines and samples that a window of the scene is: first sample and line,
    number of samples and lines; all of it without one."""
    if window is None:
        return value
    return value.isel({dim: slice(first, first + count) for dim, first, count in zip(dims[::-1], window[:2], window[2:])})


def check_same_places(layout, first, window=None):
    """Raises where an argument lies at other coordinates than the first one, or its window: by place in the array each pixel would
    meet another one. Dimensions that are called otherwise tell nothing of each other, and other sizes are told of by the library."""
    if first is None or first.dims is None or layout.dims is None:
        return
    scene = in_window(first.like, first.plane_dims(), window)
    for name, of_first in zip(layout.plane_dims(), first.plane_dims()):
        if name == of_first and layout.like.sizes[name] == scene.sizes[name] and not same_places(scene, layout.like, name, name):
            raise UsageError(f"{layout.name} has other coordinates than {first.name} along '{name}'",
                             f"Use the same coordinates: {layout.name}.reindex_like(..., method='nearest'), or .sel(); or give .values if "
                             "pixels match by position.")


NANOMETRES = {  # in one of the unit, as people write it
    1.0: ("nm", "nanometer", "nanometre"), 1e3: ("um", "\u00b5m", "\u03bcm", "micrometer", "micrometre", "micron"),
    1e6: ("mm", "millimeter", "millimetre"), 1e7: ("cm", "centimeter", "centimetre"), 1e9: ("m", "meter", "metre"),
    0.1: ("angstrom", "\u00e5ngstr\u00f6m", "\u00e5", "\u212b"),
}


def _factor(units, name):
    """Nanometres in one of the unit; None where there is no unit."""
    text = "" if units is None else str(units).strip()
    if text.lower() in ("", "unknown"):
        return None
    spelled = "\u00e5" if text == "A" else text if text == "Mm" else text.lower()
    spelled = spelled[:-1] if len(spelled) > 3 and spelled.endswith("s") else spelled
    for factor, names in NANOMETRES.items():
        if spelled in names:
            return factor
    raise UsageError(f"{name} has wavelengths in '{text}', which is not a known unit of length",
                     "Convert them to nm, and state nm in the coordinate's attribute units; or give wavelengths=.")


def in_nm(values, units="", name=""):
    values, factor = np.asarray(values, dtype=float), _factor(units, name)
    if factor is not None:
        return values * factor if factor >= 1 else values / (1 / factor)
    # Without a unit: no spectrometer of light has bands at 100 nm, or at 100 micrometres.
    return values * 1000 if np.fmax.reduce(values, initial=-np.inf) < 100 else values


WAVELENGTHS = ("wavelength", "wavelengths", "wl", "center_wavelength", "center_wavelengths", "centre_wavelength", "centre_wavelengths",
               "central_wavelength", "central_wavelengths", "wavelength_nm", "wavelengths_nm")
WIDTHS = ("fwhm", "widths", "fwhm_nm")


def _of_bands(value, band, names):
    """The coordinate of the dimension of bands that has one of these names, in capitals or not, or None."""
    for name in names:
        for key, coordinate in value.coords.items():
            if str(key).lower() == name and tuple(map(str, coordinate.dims)) == (band,) and np.asarray(coordinate).dtype.kind in "biuf":
                return coordinate
    return None


def _units_of(value, coordinate):
    """What a coordinate's values are in: its own word, that of its name, or that of an ENVI header, which is the array's."""
    told = str(coordinate.attrs.get("units", "")).strip()
    return told or ("nm" if str(coordinate.name).lower().endswith("_nm") else value.attrs.get("wavelength_units", ""))


def wavelengths_of(value, band, name):
    """What a DataArray says of its bands' wavelengths, in nm, or None."""
    found = _of_bands(value, band, WAVELENGTHS)
    return None if found is None else in_nm(np.asarray(found, dtype=float), _units_of(value, found), name)


def widths_of(value, band, name, beside_wavelengths=True):
    """The same of widths; those that tell no unit have that of the wavelengths beside them."""
    found = _of_bands(value, band, WIDTHS)
    if found is None:
        return None
    values, factor = np.asarray(found, dtype=float), _factor(_units_of(value, found), name)
    centres = _of_bands(value, band, WAVELENGTHS) if factor is None and beside_wavelengths else None
    if centres is not None:
        centres, factor = np.asarray(centres, dtype=float), _factor(_units_of(value, centres), name)
        factor = 1e3 if factor is None and np.nanmax(centres) < 100 else factor
    return values * (factor or 1)


def band_labels(value, band):
    """The labels of a DataArray's bands: the coordinate of their dimension, where it is none of wavelengths; else None."""
    if band is None or band not in value.coords or band.lower() in WAVELENGTHS or value.coords[band].ndim != 1:
        return None
    return np.asarray(value.coords[band]).tolist()


def _label(one):
    """A label as it is compared: 3 and 3.0 are the same, and so is a number of Float32."""
    if isinstance(one, float):
        return int(one) if one.is_integer() else float(f"{one:.6g}")
    return one


def order_of_labels(own, scene):
    """Of each label the place in the scene, from 0 on; None where it is not there, and for all of them where one stands twice."""
    own, scene = [_label(one) for one in own], [_label(one) for one in scene]
    if own == scene:
        return list(range(len(own)))
    places = {one: k for k, one in enumerate(scene)}
    unique = len(places) == len(scene) and len(set(own)) == len(own)
    return [places.get(one) if unique else None for one in own]


def refused_labels(name, own, scene):
    told = lambda labels: ", ".join(map(str, labels[:4])) + (f" ... {labels[-1]}" if len(labels) > 4 else "")  # noqa: E731
    return UsageError(f"{name} has other band labels than the scene: {told(own)}, but the scene has {told(scene)}",
                      "Choose the same bands, as spectra.sel(band=scene.band) does, give the wavelengths of the spectra and of the "
                      "scene, or give .values if bands match by position.")


def in_order_of_scene(cube, own, scene_cube, scene, by_wavelength):
    """The cube of a second scene with its bands in the order of the first: by wavelengths, where both have them and the library does not
    match these itself, else by the labels of the bands. Raises where they are others; what tells nothing is taken as it stands."""
    number = cube.values.shape[0]
    if number != scene_cube.values.shape[0]:
        return cube
    if cube.wavelengths is not None and scene_cube.wavelengths is not None:
        if by_wavelength:
            return cube
        one, other = np.asarray(cube.wavelengths), np.asarray(scene_cube.wavelengths)
        order = np.empty(number, dtype=int)
        order[np.argsort(other, kind="stable")] = np.argsort(one, kind="stable")
        if not np.allclose(one[order], other, rtol=1e-5, atol=0.01, equal_nan=True):
            raise UsageError(f"{own.name} has other wavelengths than {scene.name}",
                             f"Use the same bands, or give {own.name}.values if bands match by position.")
    else:
        labels, of_scene = own.labels(), scene.labels()
        if labels is None or of_scene is None:
            return cube
        places = order_of_labels(labels, of_scene)
        if None in places:
            raise refused_labels(own.name, labels, of_scene)
        order = np.argsort(places)
    if (order == np.arange(number)).all():
        return cube
    choose = lambda values: None if values is None else [values[k] for k in order]  # noqa: E731
    return Cube(cube.values[order.tolist()], mask=cube.mask, nodata=cube.nodata, wavelengths=choose(cube.wavelengths), widths=choose(cube.widths),
                names=choose(cube.names), scales=choose(cube.scales), offsets=choose(cube.offsets), unit=cube.unit)


def _number_of(value, key, default):
    """A number that an attribute tells of all values, or the default."""
    told = np.asarray(value.attrs.get(key, default))
    return float(told.reshape(())) if told.size == 1 and told.dtype.kind in "iuf" and np.isfinite(told).all() else default


def scale_told(value):
    """scale_factor and add_offset of a DataArray; 1 and 0 where it tells none."""
    return _number_of(value, "scale_factor", 1.0), _number_of(value, "add_offset", 0.0)


def nodata_of(value):
    """The value that means none in a DataArray whose values are as a file has them. One that xarray has decoded has NaN there:
    what its `encoding` says is of the file."""
    for key in NODATA_ATTRIBUTES:
        told = value.attrs.get(key)
        if told is not None and np.size(told) == 1 and np.asarray(told).dtype.kind in "iuf":
            return np.asarray(told).reshape(())[()]
    return None


def exact_number(value, name):
    """The value as a double, which is what the library compares with."""
    try:
        given = np.asarray(value).tolist() if hasattr(value, "__array__") else value
        number = None if isinstance(given, (bool, str, bytes)) else float(given)
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is None or np.ma.is_masked(value):
        raise UsageError(f"{name}={value!r} is not a number", "Give the number that marks missing values.")
    if isinstance(given, int) and int(number) != given:
        raise UsageError(f"{name}={value} is not exact in double precision", "Give a number up to 2**53, or a masked array.")
    return number


def _check_masked_bands(hidden, name):
    """Raises where a band is masked everywhere: every pixel would be missing."""
    empty = np.flatnonzero(hidden.all(axis=(1, 2))) + 1
    if 0 < len(empty) < len(hidden):
        told = ", ".join(map(str, empty[:8])) + (" ..." if len(empty) > 8 else "")
        raise UsageError(f"{name} has no values in band{'s' if len(empty) > 1 else ''} {told} (counted from 1): all are masked",
                         f"Choose the other bands with b, or by {name}[~{name}.mask.all(axis=(1, 2))] where the bands come first.")


def cube_of(layout, *, nodata=None, wavelengths=None, fwhm=None, names=None, some_bands=False):
    """The argument for the library, with what is said of it and what it says itself. some_bands: the call selects bands."""
    value, cube = layout.like, layout.cube()
    mask, scales, offsets = None, None, None
    if isinstance(value, np.ma.MaskedArray) and value.mask is not np.ma.nomask:
        hidden = np.ma.getmaskarray(value)
        if len(layout.axes) == 3 and some_bands:  # what is masked in other bands does not count
            cube = unmasked(value).transpose(layout.axes)
        else:
            if len(layout.axes) == 3:
                hidden = hidden.transpose(layout.axes)
                _check_masked_bands(hidden, layout.name)
                hidden = hidden.any(axis=0)
            else:
                hidden = layout.plane(hidden)
            mask = np.ascontiguousarray(~hidden).view(np.uint8)
    wavelengths, fwhm = (None if values is not None and np.size(values) == 0 else values for values in (wavelengths, fwhm))
    if is_data_array(value):
        if len(layout.axes) == 3:
            band = layout.dims[layout.axes[0]]
            fwhm = widths_of(value, band, layout.name, wavelengths is None) if fwhm is None else fwhm
            wavelengths = wavelengths_of(value, band, layout.name) if wavelengths is None else wavelengths
            labels = band_labels(value, band) if names is None else None
            if labels is not None and all(isinstance(one, str) for one in labels):
                names = labels
        nodata = nodata_of(value) if nodata is None else nodata
        scale, offset = scale_told(value)
        if (scale, offset) != (1.0, 0.0):
            scales, offsets = [scale] * cube.shape[0], [offset] * cube.shape[0]
    bands = cube.shape[0]
    for what, values in (("wavelengths", wavelengths), ("fwhm", fwhm)):
        if values is None:
            continue
        values = real_numbers(values, what)
        if len(values) == bands:
            continue
        advice = "Give one per band."
        if len(layout.axes) == 3 and len(values) in layout.values.shape:
            advice = f"band_axis={layout.values.shape.index(len(values))} has as many."
        raise UsageError(f"{layout.name} has {values.size} {what} for {bands} bands", advice)
    if names is not None and (isinstance(names, str) or not np.iterable(names)):
        raise UsageError(f"names={names!r} is not a list of names", "Give one per band.")
    names = None if names is None else list(names)
    if names is not None and len(layout.axes) == 3 and len(names) != bands:
        raise UsageError(f"{layout.name} has {len(names)} names for {bands} bands", "Give one per band.")
    nodata = None if nodata is None else exact_number(nodata, "nodata")
    if nodata is not None and math.isnan(nodata):
        nodata = None
    to_list = lambda v: None if v is None else [float(x) for x in np.asarray(v, dtype=float)]  # noqa: E731
    return Cube(cube, mask=mask, nodata=nodata, wavelengths=None if wavelengths is None else to_list(in_nm(wavelengths)),
                widths=to_list(fwhm), names=names, scales=scales, offsets=offsets)


def band_dimension(value):
    """The dimension of a DataArray's bands: the one that has wavelengths, or is named as bands are; or None."""
    dims = tuple(map(str, value.dims))
    band = next((d for d in dims if _of_bands(value, d, WAVELENGTHS) is not None), None)
    return band or next((d for d in dims if d.lower() in BAND_DIMENSIONS), None)


def bands_told(value):
    """What a DataArray tells of its bands, whatever its other dimensions: wavelengths in nm, and labels; None each where it tells nothing."""
    band = band_dimension(value)
    return (None, None) if band is None else (wavelengths_of(value, band, "X"), band_labels(value, band))


def same_labels(one, other):
    return list(map(_label, one)) == list(map(_label, other))


class Model(str):
    """A model of a tool, as the text of its JSON file, which the tools read.

    Examples
    --------
    >>> import numpy as np
    >>> import gdal_hsi as hsi
    >>> x = np.random.default_rng(0).random((5, 30, 40))
    >>> components, model = hsi.pca(x, nc=2, model=True)
    >>> model
    <Model: gdal_hsi_pca, 5 bands, 2 components>
    >>> model.save("model.json")
    >>> np.array_equal(hsi.pca(x, apply="model.json"), components)
    True
    """

    __slots__ = ()

    def __repr__(self):
        return f"<{type(self).__name__}: {', '.join(self._facts())}>"

    __str__ = __repr__  # print() of a text of a million characters tells nothing

    def _repr_html_(self):
        return f"<div>{type(self).__name__}: " + html.escape(", ".join(self._facts())) + "</div>"

    def _facts(self):
        """Its format, and how many bands, components and classes it has."""
        try:
            document = self.document
            kind, features = str(document["format"]).split()[0], document.get("features", document)
        except (ValueError, LookupError, AttributeError, TypeError):
            return [f"a text of {len(self)} characters that is not a model"]
        told = [kind]
        for what, values in (("bands", features.get("bands")), ("components", document.get("components")), ("classes", document.get("classes"))):
            number = len(values) if isinstance(values, list) else values
            if isinstance(number, int):
                told.append(f"{number} {what}")
        return told

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
        try:
            return json.dumps(value)
        except (TypeError, ValueError) as error:
            raise UsageError(f"{name} is not the document of a model: {error}", "Give the result of model=True.") from None
    if isinstance(value, str) and value.lstrip().startswith("{"):
        return str.__str__(value)  # of a Model, too
    if is_path(value):
        try:
            return pathlib.Path(value).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{name}: the model '{value}' cannot be read: {error}",
                             "Give a model, its JSON or the path of its file.") from None
    raise UsageError(f"{name} is not a model", "Give the result of model=True, its JSON, or the path of its file.")


def points_of(text):
    """Points as a structured array: a field a column."""
    whole = json.loads(text)
    kind = np.dtype([(f["name"], np.int64 if f["whole"] else np.float64) for f in whole["fields"]])
    return np.array([tuple(math.nan if v is None else v for v in row) for row in whole["points"]], dtype=kind)


def _hidden(values, info):
    """Where a result has no value."""
    hidden = ~np.isfinite(values) if np.issubdtype(values.dtype, np.floating) else np.zeros(values.shape, bool)
    return hidden | (values == info["nodata"]) if "nodata" in info else hidden


def with_mask(out, info):
    """An array that has taken a result; a masked one gets the mask of it."""
    if isinstance(out, np.ma.MaskedArray):
        hard = out.hardmask
        out.soften_mask()
        out.mask = _hidden(out.data, info)
        if hard:
            out.harden_mask()
    return out


def of_same_kind(array, layout, flat, info, window=None, further=None):
    """A result (bands, lines, samples) as the argument's kind of array. window: of the scene, which it is of: first sample and
    line, number of samples and lines. further: what names bands that are new."""
    values = layout.given_back(array, flat)
    like = layout.like
    if isinstance(values, DeviceArray):
        values = values.owner
        return _data_array(values, layout, flat, info, window, further) if is_data_array(like) else values
    if is_data_array(like):
        return _data_array(values, layout, flat, info, window, further)
    if isinstance(like, np.ma.MaskedArray):
        return np.ma.MaskedArray(values, _hidden(values, info))
    if isinstance(like, np.ndarray) or not hasattr(like, "__dlpack__"):
        return values
    module = sys.modules.get(_module_of(like))
    return module.from_dlpack(values) if hasattr(module, "from_dlpack") else values


def _numbers_of_bands(cubes):
    """All wavelengths and widths, in nm, of inputs: cubes, spectra and models."""
    for one in cubes:
        told = one if isinstance(one, str) else [one.wavelengths, one.widths]
        if isinstance(told, str):
            document = json.loads(told) if told.lstrip().startswith("{") else {}
            told = [document.get(key) for key in ("wavelengths_nm", "fwhm_nm")]
        for values in told:
            if isinstance(values, (list, np.ndarray)):
                yield from (float(value) for value in values if value is not None)


def _told_of_bands(info, cubes):
    """What a result tells of its new bands, in nm: wavelengths and widths, to the last digit where an input or a model has them so; None
    where it tells no wavelengths."""
    items = [band.get("items", {}) for band in info.get("bands", [])]
    if not items or not all("wavelength" in one for one in items):
        return None, None
    known = {f"{value:.9g}": value for value in _numbers_of_bands(cubes)}
    units = items[0].get("wavelength_units", "nm")
    exact = lambda text: known.get(f"{float(text):.9g}", float(text))  # noqa: E731
    widths = [exact(one["fwhm"]) for one in items] if all("fwhm" in one for one in items) else None
    return in_nm([exact(one["wavelength"]) for one in items], units), None if widths is None else np.array(widths) * (_factor(units, "") or 1)


def _coordinates_of_target(target, nm, new):
    """The coordinates of the target's bands that have these wavelengths, along the dimension `new`; None where they are others."""
    own = target.band()
    told = None if own is None else wavelengths_of(target.like, own, target.name)
    if told is None:
        return None
    index, start = [], 0
    for value in nm:
        start = next((k for k in range(start, len(told)) if abs(told[k] - value) <= 1e-8 * abs(value)), len(told)) + 1
        index.append(start - 1)
    if index[-1] == len(told):
        return None
    coords, spectral = {}, new.lower() in WAVELENGTHS
    centres = _of_bands(target.like, own, WAVELENGTHS).name
    for key, c in target.like.isel({own: index}).coords.items():
        if tuple(map(str, c.dims)) != (own,):
            continue
        name = (new if spectral else key) if key == centres else (None if spectral else new) if key == own else None if key == new else key
        if name is not None and not (c.dtype == object and key == own):  # of an index of several levels the levels
            coords[name] = (new, np.asarray(c), c.attrs)
    return coords


def _new_wavelengths(like, band, new, nm, widths):
    """Coordinates of wavelengths and widths as the argument has them: by its names, in its units; wavelength and fwhm in nm else."""
    coords = {}
    for values, names in ((nm, WAVELENGTHS), (widths, WIDTHS)):
        if values is None:
            continue
        found = None if band is None else _of_bands(like, band, names)
        units = "" if found is None else _units_of(like, found)
        factor = _factor(units, "") if found is not None else None
        if factor is None:
            coords[names[0] if found is None else str(found.name)] = (new, values, {"units": "nm"})
        else:
            coords[str(found.name)] = (new, values / factor if factor >= 1 else values * (1 / factor), dict(found.attrs, units=units))
    return coords


def _data_array(values, layout, flat, info, window, further):
    like, dims = layout.like, list(layout.dims)
    like = in_window(like, layout.plane_dims(), window)
    plane = {dims[a] for a in layout.axes[-2:]}
    attrs = {}
    band_dim = layout.band()
    sources = info.get("source_bands")
    kept = [key for key in NODATA_ATTRIBUTES if key in like.attrs]
    if not flat and band_dim is not None and sources is not None:
        template = like.isel({band_dim: [b - 1 for b in sources]})
        attrs = {k: v for k, v in like.attrs.items() if k not in kept}
        if "bands" in info:  # other values than the source's
            attrs = {k: v for k, v in attrs.items() if k not in OF_VALUES}
        coords, name = template.coords, None if "bands" in info else like.name
    else:
        coords = {key: c for key, c in like.coords.items() if set(map(str, c.dims)) <= plane}
        name = None
        if flat:
            dims = [d for d in dims if d in plane]
        elif band_dim is not None:
            names = [b.get("name", "") for b in info.get("bands", [])]
            bands = values.shape[layout.axes[0]]
            nm, widths = _told_of_bands(info, further["cubes"])
            spectral = band_dim.lower() in WAVELENGTHS
            new = "band" if spectral and nm is None else band_dim
            dims[layout.axes[0]] = new
            told = len(names) == bands and all(names)
            counted = told and all(re.fullmatch(r"Band \d+", name) for name in names)  # of the scene of a model, whose labels are not known
            if not counted and not (spectral and nm is not None):
                coords[new] = names if told else list(range(1, bands + 1))
            if nm is not None:
                target = further["target"]
                told = _coordinates_of_target(target, nm, new) if target is not None else None
                if told is None:
                    told = _new_wavelengths(like, band_dim, new, nm, widths)
                coords.update(told)
                if further["same_values"]:
                    attrs = {k: v for k, v in like.attrs.items() if k not in kept}
            for key, told in (("scale", "scale_factor"), ("offset", "add_offset"), ("unit", "units")):
                shared = {band.get(key) for band in info.get("bands", [])}
                if len(shared) == 1 and None not in shared:
                    attrs[told] = shared.pop()
    if "nodata" in info:
        attrs["_FillValue"] = info["nodata"]
    if "classes" in info:
        attrs["classes"] = info["classes"]
    result = type(like)(values, dims=dims, coords=coords, attrs=attrs, name=name)
    fill = like.encoding.get("_FillValue") if hasattr(like, "encoding") else None
    if fill is not None and "_FillValue" not in attrs and result.dtype.kind == "f":
        result.encoding["_FillValue"] = result.dtype.type(np.nan)  # the input's number may be a value of the result
    return result
