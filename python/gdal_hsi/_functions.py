# SPDX-License-Identifier: MIT
"""Functions from the definitions of the algorithms: what they say of files becomes arrays. Nothing of an algorithm is written
here, and what parameters there are and mean says _signatures.py.
"""
import collections.abc
import html
import json
import os

import numpy as np

from . import _blocks, _files
from ._arrays import Layout, Model, check_same_places, cube_of, in_order_of_scene, in_window, is_data_array, is_path, model_text, of_same_kind, points_of, refuse_no_array, with_mask
from ._devices import DeviceArray, as_device_array, is_on_device
from ._errors import Error, UsageError, warn
from ._examples import example_of
from ._library import NUMBERS, TYPES, Cube, call
from ._options import option_value, plain
from ._signatures import FURTHER, Signature, documentation, in_words_of_python, python_name
from ._spectra import Spectra, bands_of_spectrometer
from ._statistics import model_of

OF_THE_SAME_BANDS = {"other": True, "uncertainty": False}  # scenes with a band for each of the first one's; whether the library goes by wavelength

class Result:
    """The results of a call that has several: attributes with their names, which can also be unpacked.

    Attributes
    ----------
    report : dict
        The report of the tool.
    warnings, notes : lists of str
        Texts of the run.

    Examples
    --------
    >>> import numpy as np
    >>> import gdal_hsi as hsi
    >>> result = hsi.pca(np.random.default_rng(0).random((5, 30, 40)), nc=2, model=True)
    >>> result.dst.shape, result["model"]
    ((2, 30, 40), <Model: gdal_hsi_pca, 5 bands, 2 components>)
    >>> components, model = result
    """

    def __init__(self, outputs, facts, warned):
        self._names = list(outputs)
        self.report = facts.get("report", {})
        self.warnings, self.notes = warned, facts.get("notes", [])
        for name, value in outputs.items():
            setattr(self, name, value)

    def __getitem__(self, key):
        """A result by its name, or by its place in their order."""
        if isinstance(key, str):
            if key not in self._names:
                raise KeyError(f"{key!r}: the results are {', '.join(self._names)}")
            return getattr(self, key)
        return list(self)[key]

    def keys(self):
        return list(self._names)

    def to_xarray(self):
        """An xarray.Dataset of the results that are arrays; DataArrays keep their dimensions, others get names by their axes."""
        import xarray
        made = {}
        for name in self._names:
            value = getattr(self, name)
            if not (hasattr(value, "shape") and hasattr(value, "dtype")) or getattr(value.dtype, "names", None):
                continue
            dims = getattr(value, "dims", None) or {2: ("y", "x"), 3: (f"band_{name}", "y", "x")}.get(len(value.shape))
            if dims is not None:
                made[name] = value if hasattr(value, "dims") else xarray.DataArray(np.ma.filled(value, np.nan) if np.ma.isMA(value) and value.dtype.kind == "f"
                                                                                   else np.asarray(value), dims=dims)
        # Results of different bands have dimensions of their own.
        made = {name: value.rename({d: f"{d}_{name}" for d in value.dims if any(d in o.dims and o.sizes[d] != value.sizes[d] for o in made.values())})
                for name, value in made.items()}
        return xarray.Dataset({name: value.reset_coords(drop=True) if len(made) > 1 else value for name, value in made.items()})

    def __iter__(self):
        return iter([getattr(self, name) for name in self._names])

    def __len__(self):
        return len(self._names)

    def __repr__(self):
        lines = ["<Result>"] + [f"  {name}: {_short(getattr(self, name))}" for name in self._names]
        lines += [f"  {len(self.warnings)} warning{'s' if len(self.warnings) > 1 else ''}: .warnings"] if self.warnings else []
        return "\n".join(lines)

    def _repr_html_(self):
        rows = "".join(f"<tr><td style='text-align:left'>{html.escape(name)}</td><td style='text-align:left'>{html.escape(_short(getattr(self, name)))}</td></tr>"
                       for name in self._names)
        return f"<table>{rows}</table>"


def _short(value):
    """One line for a result: kind, shape and type of an array, the first line of anything else."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        kind = "masked array" if np.ma.isMA(value) else "array" if isinstance(value, np.ndarray) else type(value).__name__
        fields = getattr(value.dtype, "names", None)
        return f"{kind} {tuple(value.shape)}, " + ("fields " + ", ".join(fields) if fields else str(value.dtype))
    text = str(value) if isinstance(value, (str, os.PathLike)) and not isinstance(value, Model) else repr(value)
    return text.split("\n", 1)[0][:100]


def _bar(progress, name):
    """What is called with the share done, and what ends it."""
    if progress is None or progress is False:
        return None, lambda: None
    if callable(progress):
        return progress, lambda: None
    if isinstance(progress, (np.generic, np.ndarray)):
        progress = plain(progress, "progress")
    if not isinstance(progress, int) or progress not in (True, False):
        raise UsageError(f"progress={progress!r} is not True or a function", "Give a function of the completed share.")
    if not progress:
        return None, lambda: None
    try:
        from tqdm.auto import tqdm  # type: ignore[import-untyped]
    except ImportError:
        return None, lambda: None
    bar = tqdm(total=100, desc=name, unit="%", leave=False)

    def show(done):
        bar.update(round(100 * done) - bar.n)
    return show, bar.close


def _input(signature, argument, value, further, layout, scene):
    """An input for the library: a Cube or a text, and its layout where it is a cube. layout, scene: those of the first one."""
    name, content = python_name(argument["name"]), argument.get("content")
    if isinstance(value, str) and value == "none" and content != "raster" or value is None and content == "labels":
        return "none", None  # where the tool takes that word for a file's name
    if value is None:
        refuse_no_array(value, name)
    if content == "model":
        return model_text(value, name), None
    if content == "spectra":
        spectra = value if isinstance(value, Spectra) else bands_of_spectrometer(value) if name == "bands" else Spectra(value)
        spectra.check()
        if layout is not None and isinstance(scene, Cube):
            _check_not_turned(spectra, scene.values.shape[0], name, further["some_bands"])
            spectra = spectra.for_scene(layout.labels(), scene.wavelengths is not None, name, further["some_bands"])
        values = spectra.values()
        if values is None:
            return spectra.text(), None
        return Cube(values, names=spectra.names, wavelengths=spectra.wavelengths_nm(), widths=spectra.fwhm), None
    if content == "text":
        return _table_text(value, name), None
    if is_path(value):
        raise UsageError(f"{name} is a path, but src is an array", "Give only paths or only arrays.")
    if content == "vector" and layout is not None and getattr(getattr(value, "dtype", None), "names", None):
        value = _plane_of_points(value, name, layout)
    first = argument is signature.required[0] if signature.required else False
    shows_classes = signature.is_picture and _axes(value) == 2  # as the functions return a map
    if content == "labels" or _axes(value) == 2 and (argument["role"] == "input" or shows_classes):
        plane = value
        if _axes(value) == 3 and 1 in np.shape(value):
            if is_data_array(value):
                plane = Layout(value, name).without_bands()
            else:
                plane = np.squeeze(value, axis=np.shape(value).index(1))
        own = Layout(plane, name, rank=2)
        if further["window"] is not None and layout is not None and layout.dims is not None and own.dims is not None:
            dims = own.plane_dims()
            if [plane.sizes[d] for d in dims] == [layout.like.sizes[d] for d in layout.plane_dims()]:
                check_same_places(own, layout)  # of all of the scene
                own = Layout(in_window(plane, dims, further["window"]), name, rank=2)
        check_same_places(own, layout, further["window"])
        names = further.get("class_names")
        if is_data_array(value) and "classes" in value.attrs:
            names = list(value.attrs["classes"])
        elif shows_classes:
            names = further["names"] if first and further["names"] is not None else _numbers_of_classes(own.values)
        return cube_of(own, names=names, nodata=further["nodata"] if first else None), own
    own = Layout(value, name, further["band_axis"])
    check_same_places(own, layout)
    said = {k: further[k] for k in ("nodata", "wavelengths", "fwhm", "names")} if first else {}
    cube = cube_of(own, **said, some_bands=first and further["some_bands"])
    if name in OF_THE_SAME_BANDS and isinstance(scene, Cube) and not further["pairs_of_bands"]:
        cube = in_order_of_scene(cube, own, scene, layout, by_wavelength=OF_THE_SAME_BANDS[name])
    return cube, own


def _check_not_turned(spectra, bands, name, some_bands):
    """Raises where the spectra are the columns of an array, not its rows."""
    number, own = spectra.spectra.shape
    if own != bands and number == bands and spectra.wavelengths is None and not some_bands:
        raise UsageError(f"{name} has the shape ({number}, {own}), but the scene has {bands} bands", f"Give spectra x bands, such as {name}.T.")


def _plane_of_points(points, name, layout):
    """Where a scene has the points of a structured array with fields line and sample: an array of lines x samples."""
    if not {"line", "sample"} <= set(points.dtype.names):
        raise UsageError(f"{name} has the fields {', '.join(points.dtype.names)}, but line and sample are needed", "Give the result of endmembers().")
    plane = np.zeros(layout.cube().shape[1:], np.uint8)
    lines, samples = (points[field].astype(np.int64) for field in ("line", "sample"))
    inside = (lines >= 0) & (lines < plane.shape[0]) & (samples >= 0) & (samples < plane.shape[1])
    plane[lines[inside], samples[inside]] = 1
    return plane


def _numbers_of_classes(values):
    """Names of the classes of a map, which are their numbers; None of an array that is not of the type of maps."""
    if values.dtype not in (np.uint8, np.uint16):
        return None
    values = values.on_host() if isinstance(values, DeviceArray) else values
    return [None] + [str(k) for k in range(1, int(values.max()) + 1)]


def _window(options):
    """The window of the scene: first sample and line, number of samples and lines. None: all of it, or what the library refuses."""
    try:
        first_sample, first_line, samples, lines = (int(number) for number in np.ravel(options["srcwin"]))
    except (KeyError, ValueError):
        return None
    return (first_sample, first_line, samples, lines) if min(first_sample, first_line) >= 0 else None


def _table_text(value, name):
    """A table for the library: a mapping or a DataFrame of columns."""
    if hasattr(value, "to_dict"):
        value = value.to_dict("list")
    if not isinstance(value, collections.abc.Mapping):
        raise UsageError(f"{name} is not a table", "Give a dict with one list per column, or a DataFrame.")
    cells = {str(key): [None if cell is None or cell is np.ma.masked or cell != cell else cell for cell in column] for key, column in value.items()}
    return json.dumps({key: [cell.item() if hasattr(cell, "item") else cell for cell in column] for key, column in cells.items()})


def _axes(value):
    """How many axes an array has; of what is none, 0."""
    return getattr(value, "ndim", 0)


def _spectra_result(text, layout):
    """Spectra with the labels of the scene's bands that they are of."""
    spectra = Spectra.from_text(text)
    labels = layout.labels() if layout is not None else None
    if labels is not None and spectra.band_numbers is not None and 1 <= min(spectra.band_numbers) and max(spectra.band_numbers) <= len(labels):
        spectra.band_labels = [labels[number - 1] for number in spectra.band_numbers]
    return spectra


def _finish(signature, outcome, layout, given, full, options, cubes, told=None):
    """What the function returns. told: texts of warnings that the user has seen in this call."""
    window = _window(options)
    further = {"cubes": [cube for cube, _ in cubes.values()],
               "target": cubes["like"][1] if "like" in cubes and is_data_array(getattr(cubes["like"][1], "like", None)) else None,
               "same_values": "like" in cubes or "bands" in cubes}
    warned = [in_words_of_python(text, names=signature.names) for text in outcome.facts.get("warnings", [])]
    for text in warned:
        if told is None or text not in told:
            warn(text)
    if told is not None:
        told.update(warned)
    results = {}
    for argument in signature.outputs:
        role = argument["name"]
        info = outcome.info(role)
        if role in outcome.arrays:
            array = outcome.arrays[role]
            flat = array.shape[0] == 1 and ("classes" in info or argument not in signature.made)
            results[python_name(role)] = (with_mask(given[role], info) if role in given else
                                          array.transpose(1, 2, 0) if signature.is_picture else
                                          of_same_kind(array, layout, flat, info, window, further) if layout is not None else
                                          array[0] if flat else array)
        elif role in outcome.texts:
            text, kind = outcome.texts[role], info.get("kind")
            results[python_name(role)] = (points_of(text) if kind == "points" else _spectra_result(text, layout) if kind == "spectra"
                                          else model_of(text) if argument.get("content") == "model" else text)
    report = outcome.facts.get("report", {})
    if not results and not full:
        return report.get("result", report)
    if len(results) == 1 and not full:
        return next(iter(results.values()))
    return Result(results, outcome.facts, warned)


def _arguments(signature, values):
    """Inputs, options and wanted outputs of a call, by the parameters' values."""
    of = signature.of_parameters
    given = {argument["name"]: option_value(argument, values[name], name) for name, argument in of["options"].items()
             if values[name] is not None}
    options = {name: value for name, value in given.items() if value is not False}
    wanted = {argument["name"]: plain(values[name]) if isinstance(values[name], (np.generic, np.ndarray)) else values[name]
              for name, argument in of["wanted"].items() if values[name] is not None}
    wanted = {name: value for name, value in wanted.items() if value is not False}
    inputs = [(argument, values[name]) for name, argument in of["inputs"].items()
              if values[name] is not None or argument["required"]]
    return options, inputs, wanted, {name: values.get(name) for name in FURTHER}


def on_arrays(signature, options, inputs, wanted, further, class_names=None):
    """Runs the algorithm in this process. Returns (Outcome, Layout of the scene, outputs that were given, inputs with their layouts)."""
    further = dict(further, class_names=class_names, window=_window(options), some_bands=not options.keys().isdisjoint(("b", "exclude-range")),
                   pairs_of_bands=not options.keys().isdisjoint(("band", "other-b", "any-wavelengths")))
    layout, scene, laid = None, None, {}
    for argument, value in inputs:
        laid[argument["name"]] = cube, own = _input(signature, argument, value, further, layout, scene)
        if layout is None and own is not None and argument["positional"]:
            layout, scene = own, cube
    cubes = {name: cube for name, (cube, _) in laid.items()}
    for role, value in wanted.items():
        if value is not True:
            raise UsageError(f"{python_name(role)}={value!r}: if src is an array, this must be True or False", "Give only paths or only arrays.")
    roles = [a["name"] for a in signature.made] + list(wanted)
    given = {}
    if further["out"] is not None:
        if signature.is_picture or not signature.made or signature.made[0].get("content") not in ("raster", "labels"):
            raise UsageError(f"out={type(further['out']).__name__}: {signature.name} has no result that can be an array", "Leave it out.")
        given[roles[0]] = further["out"]
    outputs = {role: _target(given[role], layout, role) if role in given else None for role in roles}

    current = layout.values.stream()[1] if layout is not None and isinstance(layout.values, DeviceArray) else None

    def allocate(role, info, shape, dtype):
        if layout is None or signature.is_picture:
            return np.empty(shape, dtype)
        if current is None:
            return layout.empty(shape, dtype)
        with current():  # whose memory it is: this may be another thread
            return layout.empty(shape, dtype)

    show, end = _bar(further["progress"], signature.name)
    last = []

    def progress(share):
        last[:] = [share]
        show(share)
    try:
        outcome = call(signature.name, options, cubes, outputs, allocate=allocate, progress=progress if show else None)
        if show and last != [1.0]:  # of what has no passes
            show(1.0)
    finally:
        end()
    return outcome, layout, given, laid


def _target(out, layout, role):
    if is_on_device(out):
        out = as_device_array(out, "out", TYPES)
        if out.ndim == 2:
            return (out if layout is None else layout.plane(out))[None]
        return out.transpose(layout.axes) if out.ndim == 3 and layout is not None and len(layout.axes) == 3 else out
    if not isinstance(out, np.ndarray):
        raise UsageError("out is not a NumPy array", "Leave it out: the result is then a new array.")
    if not out.flags.writeable:
        raise UsageError("out is not writable", "Give a writable array.")
    if out.dtype not in NUMBERS:
        raise UsageError(f"out has values of type {out.dtype}",
                         "Use a type of real numbers of up to 8 bytes, in the byte order of this machine.")
    out = out.data if isinstance(out, np.ma.MaskedArray) else out
    if out.ndim == 2:
        return (out if layout is None else layout.plane(out))[np.newaxis]
    if out.ndim != 3:
        raise UsageError(f"out has the shape {out.shape}, but 3 axes are needed", "Give the shape of the result, or leave it out.")
    return out.transpose(layout.axes) if layout is not None and len(layout.axes) == 3 else out


def make_function(definition, module):
    """The function of an algorithm."""
    signature = Signature(definition)

    def function(*args, **kwargs):
        options, inputs, wanted, further = _arguments(signature, signature.bound(args, kwargs))
        return run(options, inputs, wanted, further)

    def run(options, inputs, wanted, further, told=None):
        if inputs and _blocks.is_lazy(inputs[0][1]):
            (argument, value), rest = inputs[0], inputs[1:]
            if not is_data_array(value) or not _blocks.is_pixelwise(signature, options, inputs, wanted, further):
                return run(options, [(argument, _blocks.loaded(value, python_name(argument["name"]))), *rest], wanted, further)
            told = set()  # a warning of several pieces is one
            return _blocks.in_pieces(value, python_name(argument["name"]), options.get("memory"),
                                     lambda piece: run(options, [(argument, piece), *rest], wanted, further, told))
        try:
            if any(is_path(value) and argument.get("content") != "model" for argument, value in inputs[:1]):
                return _files.run_function(signature, options, inputs, wanted, further)
            outcome, layout, given, cubes = on_arrays(signature, options, inputs, wanted, further)
        except Error as error:
            raise type(error)(*(in_words_of_python(text, names=signature.names) for text in (error.message, error.advice))) from None
        return _finish(signature, outcome, layout, given, further["full"], options, cubes, told)

    function.__name__ = function.__qualname__ = definition["name"]
    function.__module__ = module
    function.__signature__ = signature.shape
    function.__doc__ = documentation(signature, example_of(signature.name))
    return function
