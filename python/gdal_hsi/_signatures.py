# SPDX-License-Identifier: MIT
"""What the definitions of the algorithms mean for functions: parameters, their types, docstrings, stubs and the table of the manual. Needs
nothing but the definitions, so that scripts/update_docs uses it without the library.
"""
import difflib
import inspect
import keyword
import re
import textwrap

# What each function takes beside the tool's own arguments: name and meaning.
FURTHER = {
    "band_axis": "axis of the bands in arrays without named axes: 0 as in rasterio, -1 as in Spectral Python",
    "nodata": "value that marks missing pixels, in addition to NaN; default: the attribute of a DataArray",
    "wavelengths": "wavelength of each band in nm (in micrometres if all are below 100); default: the coordinate of a DataArray",
    "fwhm": "full width at half maximum of each band, in nm",
    "names": "name of each band",
    "out": "array for the result, with its shape and type; for a path, the file to write",
    "full": "return a Result with the report of the run, also if there is one result",
    "progress": "True for a progress bar (tqdm), or a function of the completed share, 0 to 1",
}


def python_name(name):
    """An argument's name as a parameter: all_touched for all-touched, lambda_ for lambda."""
    name = "model" if name == "o" else name.replace("-", "_")  # -o FILE of a tool whose result is a model
    return name + "_" if keyword.iskeyword(name) else name


class Signature:
    """What a definition means for a function: which arguments are what."""

    def __init__(self, definition):
        self.definition = definition
        self.name = definition["name"]
        arguments = [a for a in definition["arguments"] if not a["about_files"]]
        self.options = [a for a in arguments if a["role"] == "option"]
        self.inputs = [a for a in arguments if a["role"] in ("source", "input")]
        self.outputs = [a for a in arguments if a["role"] in ("destination", "output")]
        self.required = [a for a in self.inputs if a["positional"]]
        self.optional = [a for a in self.inputs if not a["positional"]]
        self.made = [a for a in self.outputs if a["positional"] or a["name"] == "o"]
        self.wanted = [a for a in self.outputs if a not in self.made]
        self.is_picture = self.name == "quicklook"  # whose result is height x width x colours, of a size of its own
        self.has_scene = bool(self.required) and self.required[0].get("content") in ("raster", "labels")
        self.names = {a["name"] for a in definition["arguments"]}
        self.shape = self.signature()
        self._positional = [name for name, p in self.shape.parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
        self._needed = {name for name, p in self.shape.parameters.items() if p.default is p.empty}
        self._defaults = {name: None if p.default is p.empty else p.default for name, p in self.shape.parameters.items()}
        by_name = {name: argument for name, argument, _ in self.parameters() if argument is not None}
        self.of_parameters = {role: {n: a for n, a in by_name.items() if any(a is one for one in among)} for role, among in
                              (("inputs", self.inputs), ("options", self.options), ("wanted", self.wanted))}

    def bound(self, args, kwargs):
        """The value of each parameter. As inspect's bind(), which takes longer than a call on a small array."""
        given = dict(zip(self._positional, args))
        if (len(args) > len(given) or not kwargs.keys() <= self._defaults.keys() or not given.keys().isdisjoint(kwargs) or
                not self._needed <= given.keys() | kwargs.keys()):
            raise TypeError(self._mistake(args, given, kwargs))
        return {**self._defaults, **given, **kwargs}

    def _mistake(self, args, given, kwargs):
        """What is wrong with arguments that do not fit, in Python's own words."""
        unknown = next((name for name in kwargs if name not in self._defaults), None)
        if unknown is not None:
            return f"{self.name}() got an unexpected keyword argument '{unknown}'. {self._meant(unknown)}"
        if len(args) > len(given):
            most = len(self._positional)
            return (f"{self.name}() takes {most} positional argument{'s' if most != 1 else ''} ({', '.join(self._positional)}) but "
                    f"{len(args)} were given: options go by their names")
        twice = next((name for name in given if name in kwargs), None)
        if twice is not None:
            return f"{self.name}() got multiple values for argument '{twice}'"
        missing = [name for name in self._positional if name in self._needed and name not in given and name not in kwargs]
        return f"{self.name}() missing {len(missing)} required argument{'s' if len(missing) != 1 else ''}: " + " and ".join(map(repr, missing))

    def _meant(self, name):
        """Which parameters a wrong name may stand for: one that is spelled alike, or whose meaning has the word."""
        lower = {one.lower(): one for one in self._defaults}
        for one in difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.85):
            return f"Did you mean '{lower[one]}'?"
        near = [lower[one] for one in difflib.get_close_matches(name.lower(), lower, n=2)]
        word = re.compile(r"\b%ss?\b" % re.escape(name.lower().rstrip("s").replace("_", " ")))
        arguments = sorted((row for row in self.parameters() if row[1] is not None), key=lambda row: row[1]["shared"])
        near += [one for one, argument, _ in arguments if one not in near and word.search(argument["summary"].lower())]
        own = {one for one, argument, _ in arguments if not argument["shared"]}
        near.sort(key=lambda one: one not in own)  # what the other tools do not have
        if near:
            return "Did you mean " + " or ".join(map(repr, near[:2])) + "?"
        told = [one for one, _, _ in self.parameters() if one in own] or list(self._positional)
        return f"Its own are {', '.join(told)}; help(gdal_hsi.{self.name}) tells all"

    def parameters(self):
        """(name, argument or None, is required), in the order of the signature."""
        rows = [(python_name(a["name"]), a, a["required"]) for a in self.required]
        rows += [(python_name(a["name"]), a, False) for a in self.optional + self.options + self.wanted]
        taken = {r[0] for r in rows}
        rows += [(name, None, False) for name in FURTHER if name not in taken]
        return rows

    def signature(self):
        kinds = inspect.Parameter
        parameters = []
        for name, argument, required in self.parameters():
            first = argument is not None and argument["positional"]
            default = kinds.empty if required else {"band_axis": 0, "full": False}.get(name)
            if argument is not None and argument in self.wanted:
                default = False
            parameters.append(kinds(name, kinds.POSITIONAL_OR_KEYWORD if first else kinds.KEYWORD_ONLY, default=default))
        return inspect.Signature(parameters)


def type_text(argument, of_output=False):
    """The type of a parameter, for docstrings and stubs."""
    content = argument.get("content")
    if of_output:
        return "bool | PathLike"
    if argument["role"] in ("source", "input"):
        return {"model": "Model | Mapping[str, object] | PathLike", "spectra": "Spectra | ArrayLike | Mapping[str, ArrayLike] | PathLike", "text": "Mapping[str, Sequence[object]] | PathLike"}.get(content, "ArrayLike | PathLike")
    base = {"flag": "bool", "integer": "int", "number": "float", "text": "str"}[argument["type"]]
    if argument.get("choices"):
        base = "Literal[%s]" % ", ".join(repr(c["name"]) for c in argument["choices"])
    elif argument["type"] == "text":
        base = "str | float"
    if argument["values"] > 1:
        return f"Sequence[{base}]" + (f" | Sequence[Sequence[{base}]]" if argument["repeatable"] else "")
    return f"{base} | Sequence[{base}]" if argument["repeatable"] or is_list(argument) else base


def is_list(argument):
    """Whether an option has one text with commas between its parts, which is a list here."""
    return argument["values"] == 1 and argument.get("value_name") == "LIST" and not argument["repeatable"]


def limits(argument):
    """" 3 to 63", " from 0 on", " above 0": what an option's numbers are bound by; empty where they are not."""
    low, high = argument.get("minimum"), argument.get("maximum")
    number = lambda v: f"{v:g}"  # noqa: E731
    if low is None:
        return "" if high is None else f" up to {number(high)}"
    if high is not None:
        return f" {'above ' if not argument['minimum_is_allowed'] else ''}{number(low)} to {number(high)}"
    return f" from {number(low)} on" if argument["minimum_is_allowed"] else f" above {number(low)}"


def meaning(argument):
    """What a docstring says of an argument."""
    text = argument["summary"]
    if argument.get("unit"):
        text += ", in " + argument["unit"]
    bounds = limits(argument)
    text += "," + bounds if bounds else ""
    told = [f"{c['name']}: {c['summary']}" for c in argument.get("choices", []) if c["summary"]]
    if told:
        text += " (" + "; ".join(told) + ")"
    default = argument.get("default_note") or argument.get("default")
    if default:
        text += f"; default: {default}"
    return in_words_of_python(text, argument)


WAVELENGTHS_MISSING = "Give wavelengths=, in nm, one per band; a DataArray has them as a coordinate."


def in_words_of_python(text, argument=None, names=None):
    """-all-touched of a message is all_touched here."""
    def replace(match):
        name = match.group(1)
        return python_name(name) if names is None or name in names else match.group(0)
    if argument is None:
        # Advice by options that functions do not have, and by files: what array to make instead.
        text = re.sub(r"gdal_calc\.py -A FILE --allBands A --calc 'A-\(([^)]*)\)' --type Float64 --outfile NEW", r"src - \1", text)
        text = re.sub(r",? or keep bad bands with -bbl ignore|; -bbl ignore keeps bands marked bad", "", text)
        text = re.sub(r"Write the wavelengths into (?:its|the scene's) header", "Give wavelengths=, in nm, one per band", text)
        text = re.sub(r"Write them into its header: .* A VRT mosaic uses the wavelengths of its sources\.", WAVELENGTHS_MISSING, text)
        text = re.sub(r"Leave the index out, or (choose bands with .*)", WAVELENGTHS_MISSING + r" Or \1", text)
        text = re.sub(r"Choose bands by number, such as (.*); gdal_hsi_info lists the bands\.", WAVELENGTHS_MISSING + r" Or give numbers of bands: \1.", text)
        if names is not None:
            text = re.sub(r" \((-[a-z-]+(?:, -[a-z-]+)*)\)", lambda m: _known(m[1].split(", "), names), text)
        text = re.sub(r"\b(\w+) \1 (?=has |gives |is )", r"\1 ", text)  # the role, and the file in its place
    text = re.sub(r"(?<![\w-])-([A-Za-z][a-z0-9]*(?:[-_][a-z0-9]+)*)\b(?!\w|\.\w)", replace, text)
    if argument is None:
        text = re.sub(r"\b([a-z_]+) ([A-Z]{3,})((?: [A-Z]{3,})+)\b",
                      lambda m: f"{m[1]}=({', '.join((m[2] + m[3]).lower().split())})" if names is not None and m[1].replace("_", "-") in names else m[0], text)
        text = re.sub(r"\b([a-z_]+) (?:FILE(?:\.[a-z]+)?|LIBRARY|NAME|LIST|SCENE|N|V)\b",
                      lambda m: m[1] if names is not None and m[1].replace("_", "-") in names else m[0], text)
    return text.replace("to FILE", "").replace("FILE", "").replace("  ", " ").replace(" ,", ",").strip() if argument else text


def _known(options, names):
    """Those of the options in parentheses that the function has; nothing if it has none."""
    known = [one for one in options if one[1:] in names]
    return f" ({', '.join(known)})" if known else ""


SHAPES = {"raster": "bands, lines, samples", "labels": "lines, samples", "spectra": "spectra, bands"}
EXACT = {"compare", "quicklook", "spectra"}  # functions that take every value of Float64 as it is

IN_SINGLE_PRECISION = """Values are read as Float32. Float64 values, and integers beyond 2**24, are rounded to 24 bits; a warning
lists bands that lose most of their differences by this. Results are Float32, except class maps and where ot sets another type. Sums
over the scene are in double precision. If an offset is large compared with the differences, subtract it before the call."""

ERRORS = (("UsageError", "ValueError", "an option, a shape, a band, a label or a model is wrong"),
          ("WrongType", "TypeError", "an argument is not an array"),
          ("MissingFile", "FileNotFoundError", "a file does not exist"))


SEVERAL = "If there are several results, the call returns a `Result`, which contains all of them by name and in this order."


def text_result(argument):
    """What a result of type str contains."""
    if ".svg" in argument["summary"]:
        return "the text of an SVG file"
    return {"hytools": "the text of the JSON file", "libsvm": "the text of the LIBSVM file"}.get(argument["name"], "the text of the CSV file")


def documentation(signature, example):
    """The docstring of a function. example: a doctest, or nothing."""
    definition = signature.definition
    lines = [definition["title"], "", *textwrap.wrap(definition["description"], 100), "", "Parameters", "----------"]
    for name, argument, _ in signature.parameters():
        if argument is None:
            lines += [f"{name} : {FURTHER_TYPES[name]}", *textwrap.wrap(FURTHER[name], 96, initial_indent="    ", subsequent_indent="    ")]
            continue
        lines.append(f"{name} : {type_text(argument, argument in signature.wanted)}")
        text = meaning(argument) + shape_of_input(argument)
        lines += textwrap.wrap(text, 96, initial_indent="    ", subsequent_indent="    ")
    lines += ["", "Returns", "-------"]
    for argument in signature.made + signature.wanted:
        name, kind = python_name(argument["name"]), result_type(signature, argument, "float32 array", "uint8 or uint16 array")
        kind = {"Points": "structured array with the fields line and sample", "NDArray[np.uint8]": "uint8 array"}.get(kind, kind)
        shape = f" of shape ({shape_of(signature, argument)})" if argument.get("content") == "raster" else ""
        text = f", {text_result(argument)}" if kind == "str" else ""
        lines.append(f"{name} : {kind}{shape}{text}" + (f", with {name}=True" if argument in signature.wanted else ""))
    lines += ["Result", *textwrap.wrap(SEVERAL, 96, initial_indent="    ", subsequent_indent="    ")] if len(signature.outputs) > 1 else []
    lines += [] if signature.made else ["dict", "    The report of the tool."]
    if signature.has_scene and signature.name not in EXACT and signature.required[0]["content"] == "raster":
        lines += ["", "Notes", "-----", *textwrap.wrap(IN_SINGLE_PRECISION, 100)]
    lines += ["", "Raises", "------"]
    for kind, base, reason in ERRORS:
        lines += [f"{kind} ({base})", f"    {reason}"]
    lines += ["", "Examples", "--------", *example.splitlines()] if example else []
    return "\n".join(lines)


def shape_of_input(argument):
    """The end of an input's description: its shape, if it is an array."""
    shape = SHAPES.get(argument.get("content")) if argument["role"] in ("source", "input") else None
    return f"; shape ({shape})" if shape else ""


def shape_of(signature, argument):
    """The shape of a raster among the results, of an array with the bands first."""
    if signature.is_picture:
        return "height, width, 3"
    return "lines, samples" if (signature.name, argument["name"]) in CLASS_MAPS or not argument["positional"] and argument["name"] not in (
        "scores", "probabilities", "deviation", "depth") else "bands, lines, samples"


STUB_HEAD = '''# SPDX-License-Identifier: MIT
# Made by scripts/update_docs from the definitions of the tools.
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, Literal, Protocol, TypedDict, TypeVar, Union, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from typing_extensions import Unpack

from ._arrays import Model as Model
from ._errors import Cancelled as Cancelled
from ._errors import Error as Error
from ._errors import MissingFile as MissingFile
from ._errors import UsageError as UsageError
from ._errors import Warning as Warning
from ._errors import WrongType as WrongType
from ._estimators import EADP as EADP
from ._estimators import GP as GP
from ._estimators import MNF as MNF
from ._estimators import PCA as PCA
from ._estimators import PLSR as PLSR
from ._estimators import SAHIC as SAHIC
from ._estimators import SVM as SVM
from ._estimators import SVR as SVR
from ._estimators import Ridge as Ridge
from ._files import info as info
from ._files import run as run
from ._functions import Result as Result
from ._spectra import Spectra as Spectra
from ._statistics import Statistics as Statistics
from ._unsupervised import Detector as Detector
from ._unsupervised import KMeans as KMeans
from ._unsupervised import Unmixer as Unmixer

PathLike = Union[str, os.PathLike[str]]
Values = NDArray[np.float32]
Classes = NDArray[Union[np.uint8, np.uint16]]
Points = NDArray[np.void]

class _Labelled(Protocol):
    # xarray.DataArray: results are DataArrays
    @property
    def dims(self) -> tuple[object, ...]: ...
    @property
    def coords(self) -> object: ...

class _Tensor(Protocol):
    # torch.Tensor, cupy.ndarray: results are of the same kind, on the same device
    def __dlpack_device__(self) -> tuple[object, int]: ...
    @property
    def device(self) -> object: ...

_A = TypeVar("_A", bound=Union[_Labelled, _Tensor])
_V = TypeVar("_V")
_C = TypeVar("_C")

__version__: str

def algorithms() -> list[str]: ...
'''

FURTHER_TYPES = {"band_axis": "int", "nodata": "float | None", "wavelengths": "ArrayLike | None", "fwhm": "ArrayLike | None",
                 "names": "Sequence[str] | None", "out": "NDArray[np.generic] | PathLike | Sequence[PathLike] | None", "full": "bool",
                 "progress": "bool | Callable[[float], object] | None"}

# Outputs that are numbers of classes; the other rasters are Float32, unless -ot says otherwise.
CLASS_MAPS = {("atdca", "map"), ("cluster", "dst"), ("detect", "map"), ("regularize", "map"), ("sahic", "dst"), ("sample", "dst"),
              ("sample", "dst_test"), ("svm_classify", "dst")}


def result_type(signature, argument, values, classes):
    """The type of a result of a call on arrays; values and classes: what rasters are."""
    content = argument.get("content")
    if signature.is_picture:
        return "NDArray[np.uint8]"
    if signature.name == "statistics":
        return "Statistics"
    if content == "raster":
        return classes if (signature.name, argument["name"]) in CLASS_MAPS else values
    return {"vector": "Points", "spectra": "Spectra", "model": "Model"}.get(content, "str")


def _parameter(name, argument):
    """The type of a keyword."""
    if argument is None:
        return FURTHER_TYPES[name]
    return type_text(argument) + " | None"


def stub(signature):
    """The function in a stub file: its keywords, its results, and an overload for each set of results."""
    name, title = signature.name, "".join(part.capitalize() for part in signature.name.split("_"))
    rows = signature.parameters()
    wanted = [python_name(a["name"]) for a in signature.wanted]
    positional = [(n, a, needed) for n, a, needed in rows if a is not None and a["positional"]]
    lines = [f"class _{title}Options(TypedDict, total=False):"]
    lines += [f"    {n}: {_parameter(n, a)}" for n, a, _ in rows
              if n not in wanted and n != "full" and not (a is not None and a["positional"])]
    outputs = [(python_name(a["name"]), a) for a in signature.made + signature.wanted]
    if outputs:
        told = [(n, result_type(signature, a, "_V", "_C")) for n, a in outputs]
        lines += [f"class {title}Result(Result, Generic[_V, _C]):"] + [f"    {n}: {kind}" for n, kind in told]

    def first(values):
        """The positional parameters; values: the type of the scene."""
        words = []
        for k, (n, a, needed) in enumerate(positional):
            kind = values if k == 0 and a.get("content") in ("raster", "labels") else type_text(a)
            words.append(f"{n}: {kind}" + ("" if needed else " | None = ..."))
        return words

    def overload(scene, chosen, result, full="bool = ..."):
        words = first(scene) + ["*"] + [f"{one}: {kind}" for one, kind in chosen] + [f"full: {full}", f"**options: Unpack[_{title}Options]"]
        # A str is an ArrayLike, too, and None is any scene.
        over = "  # type: ignore[overload-overlap, unused-ignore]" if scene == "PathLike" or scene == "_A" and not positional[0][2] else ""
        return [f"def {name}({', '.join(words)}) -> {result}: ...{over}"]

    none, false = [(one, "Literal[False] = ...") for one in wanted], "Literal[False] = ..."
    any_of = [(one, "bool = ...") for one in wanted]
    all_rows = []
    if not outputs:
        all_rows += overload("ArrayLike | PathLike", [], "dict[str, object]", "bool = ...")
    else:
        kinds = [("PathLike", "PathLike", "PathLike"), ("_A", "_A", "_A"), ("ArrayLike", "Values", "Classes")]
        if not (positional and positional[0][1].get("content") in ("raster", "labels")):
            kinds = kinds[2:]
        for scene, values, classes in kinds:
            path = scene == "PathLike"
            given = [result_type(signature, a, values, classes) for a in signature.made]
            whole = f"{title}Result[{values}, {classes}]"
            if path:
                given = ["PathLike"] * len(given)
                all_rows += overload(scene, none, given[0] if len(given) == 1 else "dict[str, object]" if not given else whole, false)
                all_rows += overload(scene, [(one, "Literal[False] | PathLike = ...") for one in wanted], whole)
                continue
            if len(given) <= 1:
                all_rows += overload(scene, none, given[0] if given else "dict[str, object]", false)
            for k, one in enumerate(wanted if len(given) == 1 else []):
                further = result_type(signature, signature.wanted[k], values, classes)
                labelled = scene == "_A"
                name_of_pair = f"_{title}{'Labelled' if labelled else ''}{one.capitalize() if len(wanted) > 1 else ''}Pair"
                bases = f"{whole}, tuple[{given[0]}, {further}]" + (", Generic[_A]" if labelled else "")
                lines.append(f"class {name_of_pair}({bases}):  # type: ignore[misc, unused-ignore]\n    ...")
                pair = name_of_pair + ("[_A]" if labelled else "")
                all_rows += overload(scene, [(o, "Literal[True]" if o == one else "Literal[False] = ...") for o in wanted], pair)
            all_rows += overload(scene, any_of, whole)
    if len(all_rows) > 1:
        all_rows = [line for row in all_rows for line in ("@overload", row)]
    return "\n".join(lines + all_rows) + "\n"


def stubs(definitions):
    """The stub file of the package."""
    return STUB_HEAD + "".join(stub(Signature(d)) for d in definitions)


def table(definitions):
    """The functions as a table of a page."""
    rows = ["| function | what it does | gives |", "| --- | --- | --- |"]
    for definition in definitions:
        signature = Signature(definition)
        required = "".join(name + ", " for name, argument, needed in signature.parameters() if needed)
        made = [python_name(a["name"]) for a in signature.made] or ["a dictionary"]
        gives = ", ".join(made + [f"*{python_name(a['name'])}*" for a in signature.wanted])
        rows.append(f"| `{signature.name}({required}...)` | [{definition['title']}](gdal_hsi_{signature.name}.md) | {gives} |")
    return "\n".join(rows) + "\n"
