# SPDX-License-Identifier: MIT
"""DataArrays whose values are dask blocks: a function that takes each pixel by itself goes through the lines in pieces that are loaded one
after another; for another function the array is loaded whole, with a warning. dask itself is not imported.
"""
import os
import re

from ._arrays import is_data_array, named_axes
from ._errors import warn

PIECE = 1 << 28  # bytes of a piece where memory= does not say
APPLIED = {"mnf": {"apply"}, "pca": {"apply"}, "regression_predict": {"model"}, "svm_classify": {"model"}}  # inputs that make them pixelwise


def is_lazy(value):
    return hasattr(value, "__dask_graph__") and (not is_data_array(value) or hasattr(value.data, "__dask_graph__"))


def is_pixelwise(signature, options, inputs, wanted, further):
    """Whether the result of each pixel depends on that pixel alone."""
    name, given = signature.name, {argument["name"] for argument, _ in inputs[1:]}
    if further["full"] or further["out"] is not None or "srcwin" in options:
        return False
    if name in APPLIED:
        return given == APPLIED[name]
    if name == "unmix":
        return given == {"library"} and "draws" not in options and not wanted.get("deviation")
    if name == "detect":
        known = options.get("method") in ("sam", "sid") or "statistics" in given
        return known and given <= {"target", "statistics"} and not wanted and "target-pixel" not in options
    return name == "index" and not given


def bytes_of(memory):
    """What memory= allows, in bytes; None where it says nothing that can be told here."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?\s*|\s*(\d+(?:\.\d+)?)\s*%\s*", str(memory), re.IGNORECASE)
    if match is None:
        return None
    if match[3] is not None:
        return float(match[3]) / 100 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return float(match[1]) * 1024 ** " KMGT".index((match[2] or " ").upper())


def size_text(count):
    for factor, unit in ((1 << 30, "GB"), (1 << 20, "MB")):
        if count >= factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count / 1024:.3g} kB"


def loaded(value, name):
    """The array with its values in memory, and a warning that names its size."""
    warn(f"{name} is an array of dask blocks and is loaded completely: {size_text(value.nbytes)}. Functions that process each pixel separately work in "
         "pieces: unmix, index, svm_classify, detect with statistics=, pca and mnf with apply=")
    return value.compute()


def in_pieces(value, name, memory, compute):
    """The results of compute(piece) for pieces of the lines, joined."""
    line = value.dims[named_axes(tuple(map(str, value.dims)), 3, name)[1]]
    count, chunks = value.sizes[line], value.chunksizes[line]
    most = (bytes_of(memory) or 4 * PIECE) / 4  # of what is allowed: the function has buffers, and the result is there, too
    step = max(1, int(most * count // max(1, value.nbytes)))
    step -= step % chunks[0] if step > chunks[0] else 0
    return _joined([compute(value.isel({line: slice(first, first + step)}).compute()) for first in range(0, count, step)], line)


def _joined(parts, line):
    if len(parts) == 1:
        return parts[0]
    if not is_data_array(parts[0]):
        whole = parts[0]  # a Result
        for name in whole.keys():
            setattr(whole, name, _joined([part[name] for part in parts], line))
        return whole
    import xarray
    whole = xarray.concat(parts, dim=line, coords="minimal", compat="override", combine_attrs="override")
    whole = whole.transpose(*parts[0].dims)
    whole.encoding.update(parts[0].encoding)
    return whole
