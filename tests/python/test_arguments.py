# SPDX-License-Identifier: MIT
"""Arguments that functions refuse, with message and advice, in a process that continues; the form of results; progress
and the end of a call."""
import inspect
import json
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

from conftest import ROOT, cube

import gdal_hsi as hsi
from gdal_hsi import _spectra

X = cube(24, 20, 8)
LABELS = np.repeat(np.array([1, 0, 2, 0], np.uint8), 5)[:, None] * np.ones(24, np.uint8)


def refused(word, call, kind=hsi.UsageError):
    with pytest.raises(kind) as caught:
        call()
    error = caught.value
    assert word in error.message, error.message
    assert isinstance(error.advice, str) and "\x00" not in str(error)
    return error


@pytest.mark.quick
@pytest.mark.parametrize("word, call", [
    ("has the shape (20, 24), but 3 axes", lambda: hsi.spp(X[0])),
    ("has the shape (1, 8, 20, 24)", lambda: hsi.spp(X[None])),
    ("has the shape (24,), but 3 axes", lambda: hsi.spp(X[0, 0])),
    ("band_axis=3", lambda: hsi.spp(X, band_axis=3)),
    ("band_axis='bands'", lambda: hsi.spp(X, band_axis="bands")),
    ("no values", lambda: hsi.spp(X[:, :, :0])),
    ("no values", lambda: hsi.spp(X[:0])),
    ("complex64", lambda: hsi.spp(X.astype(np.complex64))),
    ("object", lambda: hsi.spp(X.astype(object))),
    ("<U", lambda: hsi.spp(X.astype(str))),
    ("datetime64", lambda: hsi.spp(X.astype("datetime64[s]"))),
    ("float128", lambda: hsi.spp(X.astype(np.longdouble))),
    ("is not an array", lambda: hsi.spp([[1, [2]], [3]])),
    ("7 wavelengths for 8 bands", lambda: hsi.spp(X, wavelengths=range(400, 407))),
    ("3 fwhm for 8 bands", lambda: hsi.spp(X, fwhm=[1, 2, 3])),
    ("ws: 6 is not", lambda: hsi.spp(X, ws=6)),
    ("ws: '99' is", lambda: hsi.spp(X, ws=99)),
    ("ws", lambda: hsi.spp(X, ws="wide")),
    ("larger than the scene", lambda: hsi.spp(X, ws=25)),
    ("nc: 9 components", lambda: hsi.pca(X, nc=9)),
    ("not a spectrum", lambda: hsi.pca(X[:1])),
    ("device", lambda: hsi.spp(X, device="gpu")),
    ("threads", lambda: hsi.spp(X, threads=0)),
    ("memory", lambda: hsi.spp(X, memory="much")),
    ("method", lambda: hsi.vd(X, method="hfk")),
    ("requires a target", lambda: hsi.detect(X, method="ace")),
    ("inverse requires the model", lambda: hsi.pca(X, inverse=True)),
    ("ot", lambda: hsi.spp(X, ot="Complex64")),
    ("does not end in", lambda: hsi.Spectra(np.ones((1, 5))).save("spectra.txt")),
    ("no column wavelength", lambda: hsi.resample(X, bands={"centre": [500.0]})),
    ("apply", lambda: hsi.pca(X, apply=7)),
    ("cannot be read", lambda: hsi.pca(X, apply="/nowhere/model.json")),
    ("has the shape (2, 20, 24), but 2 axes", lambda: hsi.svm_train(X, np.zeros((2, 20, 24), int))),
    ("src is None", lambda: hsi.spp(None)),
    ("library is None", lambda: hsi.unmix(X, None)),
    ("vd has no result that can be an array", lambda: hsi.vd(X, out=np.empty(3))),
    ("svm_train has no result that can be an array", lambda: hsi.svm_train(X, LABELS, out=np.empty((3, 3)))),
    ("out is not a NumPy array", lambda: hsi.spp(X, out=[1])),
    ("the result is", lambda: hsi.spp(X, out=np.empty((8, 20, 23), np.float32))),
    ("the result is", lambda: hsi.spp(X, out=np.empty(X.shape, np.float64))),
    ("type >f4", lambda: hsi.spp(X, out=np.empty(X.shape, ">f4"))),
    ("shares memory with src", lambda: in_place()),
    ("ws", lambda: hsi.spp(X, ws=object())),
    ("ws", lambda: hsi.spp(X, ws=float("nan"))),
    ("ws", lambda: hsi.spp(X, ws=1j)),
    ("masked", lambda: hsi.spp(X, ws=np.ma.masked)),
    ("tile", lambda: hsi.spp(X, tile=[8, object()])),
    ("the document", lambda: hsi.pca(X, apply={"a": np.zeros(3)})),
    ("progress='bar'", lambda: hsi.spp(X, progress="bar")),
    ("nodata='none'", lambda: hsi.spp(X, nodata="none")),
    ("9007199254740993", lambda: hsi.spp(X.astype(np.int64), nodata=2**53 + 1)),
    ("9007199254740993", lambda: hsi.spp(X.astype(np.uint64), nodata=np.uint64(2**53 + 1))),
    ("7 names for 8 bands", lambda: hsi.spp(X, names=list("abcdefg"))),
    ("9 names for 8 bands", lambda: hsi.spp(X, names=list("abcdefghi"))),
    ("not a list of names", lambda: hsi.spp(X, names="abcdefgh")),
    ("NUL", lambda: hsi.spp(X, names=list("abcdefg") + ["h\0i"])),
    ("NUL", lambda: hsi.spp(X, names=list("abcdefg") + ["\udc00"])),
    ("NUL", lambda: hsi.Spectra(X[:, 0, :2].T, ["a", "b\0c"])),
    ("NUL", lambda: hsi.pca(X, apply='{"format": "\0"}')),
    ("complex", lambda: hsi.Spectra(X[:, 0, :2].T + 1j)),
    ("wavelengths are not one real number per band", lambda: hsi.Spectra(X[:, 0, :2].T, wavelengths=np.arange(8) + 1j)),
    ("wavelengths are not one real number per band", lambda: hsi.spp(X, wavelengths=np.arange(8) + 1j)),
    ("wavelengths are not one real number per band", lambda: hsi.spp(X, wavelengths="nm")),
    ("overlap", lambda: hsi.spp(X, out=np.lib.stride_tricks.as_strided(np.empty(X.shape, np.float32), X.shape, (0, 96, 4))))
])
def test_refusals(word, call):
    if word == "overlap":
        word = "share memory"
    refused(word, call)


def in_place():
    x = X.copy()
    return hsi.spp(x, out=x)


@pytest.mark.parametrize("word, call", [
    ("no pixel is valid", lambda: hsi.spp(np.full_like(X, np.nan))),
    ("no pixel is valid", lambda: hsi.pca(np.zeros_like(X))),
    ("not a usable PCA model", lambda: hsi.pca(X, apply="{\"format\": \"other\"}")),
    ("has 19x24", lambda: hsi.svm_train(X, np.ones((24, 19), int))),
    ("not a class number", lambda: hsi.svm_train(X, np.full((20, 24), 1.5))),
    ("only one class", lambda: hsi.svm_train(X, np.ones((20, 24), int))),
    ("no labelled pixel", lambda: hsi.svm_train(X, np.zeros((20, 24), int))),
    ("a required array is none", lambda: hsi.svm_train(X, None)),
    ("the reference has more than 4096 classes", lambda: hsi.accuracy(np.ones((64, 65), int), np.arange(1, 4161).reshape(64, 65))),
    ("the map has more than 4096 classes", lambda: hsi.accuracy(np.arange(1, 4161).reshape(64, 65), np.ones((64, 65), int))),
])
def test_work_that_fails(word, call):
    refused(word, call, hsi.Error)


def test_a_model_of_other_bands():
    model = hsi.pca(X, nc=2, model=True, wavelengths=range(400, 480, 10)).model
    refused("bands", lambda: hsi.pca(X[:5], apply=model, wavelengths=range(900, 950, 10)), hsi.Error)


def test_wrong_axis_is_told_by_wavelengths():
    error = refused("20 wavelengths for 8 bands", lambda: hsi.spp(X, wavelengths=range(400, 420)))
    assert error.advice == "band_axis=1 has as many."


@pytest.mark.parametrize("told, call", [
    ("pca() got an unexpected keyword argument 'components'. Did you mean 'nc'", lambda: hsi.pca(X, components=3)),
    ("spp() got an unexpected keyword argument 'window'. Did you mean 'ws'", lambda: hsi.spp(X, window=5)),
    ("svm_train() got an unexpected keyword argument 'c'. Did you mean 'C'?", lambda: hsi.svm_train(X, X[0], c=8)),
    ("pca() got an unexpected keyword argument 'wavelength'. Did you mean 'wavelengths'?", lambda: hsi.pca(X, wavelength=[1])),
    ("spp() got an unexpected keyword argument 'xyz'. Its own are ws, alpha, rho; help(gdal_hsi.spp) tells all", lambda: hsi.spp(X, xyz=5)),
    ("spp() missing 1 required argument: 'src'", lambda: hsi.spp()),
    ("spp() missing 1 required argument: 'src'", lambda: hsi.spp(ws=3)),
    ("unmix() missing 2 required arguments: 'src' and 'library'", lambda: hsi.unmix()),
    ("spp() takes 1 positional argument (src) but 2 were given", lambda: hsi.spp(X, 7)),
    ("spp() got multiple values for argument 'src'", lambda: hsi.spp(X, src=X)),
])
def test_wrong_arguments_are_told_as_python_tells_them(told, call):
    with pytest.raises(TypeError) as caught:
        call()
    assert str(caught.value).startswith(told)


def test_a_name_that_is_none():
    with pytest.raises(AttributeError, match="no attribute 'spq'"):
        hsi.spq


FIRST = {"accuracy": [LABELS, LABELS], "compare": [X, X + 1], "sahic": [X, LABELS], "sample": [LABELS], "spectra": [X, LABELS],
         "svm_train": [X, LABELS], "unmix": [X, X[:, 0, :2].T], "regularize": [X[:3] / X[:3].sum(axis=0)],
         "identify": [X, "{}"], "svm_classify": [X, "{}"]}


def options_of_all():
    from gdal_hsi import _library
    from gdal_hsi._signatures import python_name
    return [(name, argument, python_name(argument["name"])) for name in hsi.algorithms()
            for argument in _library.algorithms()[name]["arguments"] if argument["role"] == "option" and not argument["about_files"]]


def outcome_of(name, **option):
    """Returns the result of a call with an option: its bits, or its message."""
    import warnings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hsi.Warning)
        try:
            result = getattr(hsi, name)(*FIRST.get(name, [X]), **{**({"C": 8} if name == "svm_train" and "gamma" in option else {}), **option})
        except hsi.Error as error:
            return error.message
    return result.tobytes() if isinstance(result, np.ndarray) else repr(result)


def test_values_that_no_option_has():
    """Every option of every function refuses these values, and the message names the option."""
    for name, argument, parameter in options_of_all():
        wrong = [object(), 1j, b"7", {}, {1}, iter([1]), np.ma.masked, np.datetime64("2020-01-01"), np.array(1j), [np.ma.masked], [[]],
                 10**400, "a\0b", "\ud800"]
        wrong += [0, 1, 2.5, "yes"] if argument["type"] == "flag" else [True, False, np.True_, np.array(False), [True], [], "", np.zeros(0)]
        for value in wrong:
            refused(parameter, lambda: getattr(hsi, name)(*FIRST.get(name, [X]), **{parameter: value}))
        for value in (float("nan"), np.float32("inf"), -np.inf, [np.nan], np.array(np.inf)):
            if argument["type"] in ("integer", "number"):
                error = refused(parameter, lambda: getattr(hsi, name)(*FIRST.get(name, [X]), **{parameter: value}))
                assert error.message == f"{parameter}: {float(np.ravel(value)[0])!r} is not a finite number"
            elif argument["type"] == "text" and argument["name"] not in ("srcnodata", "dstnodata", "title"):
                refused("", lambda: getattr(hsi, name)(*FIRST.get(name, [X]), **{parameter: value}), hsi.Error)


def test_numbers_however_they_are_held():
    """NumPy scalars, arrays with no axis or one axis, lists, fractions and other types with a numeric value are accepted as
    numbers."""
    import decimal
    import fractions
    for name, argument, parameter in options_of_all():
        if argument["type"] not in ("integer", "number") or name in ("atdca", "svm_classify") or parameter in ("cv", "seed"):
            continue
        low, high = argument.get("minimum", 1), argument.get("maximum", 3)
        for value in {max(low, min(3, high)), low - 1}:
            value = int(value) if value == int(value) else value
            several = argument["values"]
            expected = outcome_of(name, **{parameter: [value] * several if several > 1 else value})
            for kind in (np.int64, np.float64, np.array, decimal.Decimal, fractions.Fraction, np.longdouble):
                if kind is np.int64 and value != int(value):
                    continue
                one = kind(value)
                assert outcome_of(name, **{parameter: [one] * several if several > 1 else one}) == expected, (name, parameter, kind)
            for kind in (list, tuple, np.array):
                assert outcome_of(name, **{parameter: kind([value] * several)}) == expected, (name, parameter, kind)


def test_options_of_several_values():
    expected = hsi.spp(X[2:5], ws=3, tile=(8, 5))
    for kind in (list, tuple, np.array):
        np.testing.assert_array_equal(hsi.spp(X, ws=3, b=kind([3, 4, 5]), tile=kind([8, 5])), expected)
    np.testing.assert_array_equal(hsi.spp(X, ws=3, b=range(3, 6), srcwin=np.array([0, 0, 24, 20], np.int8)), expected)
    import enum

    class Method(str, enum.Enum):
        HYSIME = "hysime"
    assert hsi.vd(X, method=Method.HYSIME) == hsi.vd(X, method=np.str_("hysime")) == hsi.vd(X, method="hysime")
    assert hsi.vd(X, method=pathlib.Path("hysime")) == hsi.vd(X, method="hysime")
    hidden = X.copy()
    hidden[:, 2, 3] = 7
    for nan in (np.nan, np.float32("nan"), "nan"):
        assert np.isnan(hsi.spp(hidden, ws=3, nodata=7, dstnodata=nan)[:, 2, 3]).all()
    for wrong in (True, False, np.True_, "7"):
        refused("nodata", lambda: hsi.spp(X, nodata=wrong))
    refused("band_axis=True", lambda: hsi.spp(X, band_axis=True))
    refused("9007199254740993", lambda: hsi.spp(X, nodata=np.array(2**53 + 1)))


def test_advice_speaks_python():
    assert refused("ws:", lambda: hsi.spp(X, ws=25)).advice == "Use an odd number from 3 to 23."
    assert "-" not in refused("nc", lambda: hsi.detect(X, window=(3, 5), nc=2)).message.split()[0]


def test_errors_travel():
    error = refused("ws", lambda: hsi.spp(X, ws=6))
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.message, again.advice) == (hsi.UsageError, error.message, error.advice)
    assert isinstance(error, ValueError) and str(error).splitlines() == [error.message, error.advice]


def test_inputs_are_never_written():
    for array in (X.copy(), np.asfortranarray(X), X.astype(np.int16), np.ascontiguousarray(X.transpose(1, 2, 0)).transpose(2, 0, 1)):
        before = array.copy()
        array.flags.writeable = False
        hsi.spp(array), hsi.pca(array, nc=2), hsi.detect(array), hsi.vd(array)
        np.testing.assert_array_equal(array, before)


def test_band_axis_and_memory_of_results():
    expected = hsi.spp(X)
    assert expected.flags.c_contiguous and expected.shape == X.shape
    last = hsi.spp(np.ascontiguousarray(np.moveaxis(X, 0, -1)), band_axis=-1)
    assert last.flags.c_contiguous
    np.testing.assert_array_equal(np.moveaxis(last, -1, 0), expected)
    y = np.empty((20, 24, 8), np.float32)
    assert hsi.spp(np.moveaxis(X, 0, -1), band_axis=-1, out=y) is y
    np.testing.assert_array_equal(y, last)
    other = np.full((8, 40, 24), 7, np.float32)
    hsi.spp(X, out=other[:, ::-2])
    np.testing.assert_array_equal(other[:, ::-2], expected)
    assert (other[:, ::2] == 7).all()


def test_other_kinds_of_values():
    integers = (X * 10).astype(np.int32)
    np.testing.assert_array_equal(hsi.spp(integers.astype(">i4")), hsi.spp(integers))
    np.testing.assert_array_equal(hsi.spp(X.astype(np.float16)), hsi.spp(X.astype(np.float16).astype(np.float32)))
    for kind in (">f2", "<f2"):
        np.testing.assert_array_equal(hsi.spp(X.astype(kind)), hsi.spp(X.astype(np.float16).astype(np.float32)))
    mask = np.zeros((20, 24), bool)
    mask[:, 5:] = True
    np.testing.assert_array_equal(hsi.pca(X, nc=2, mask=mask), hsi.pca(X, nc=2, mask=mask.astype(np.uint8)))
    hidden = np.ma.MaskedArray(X, np.broadcast_to(~mask, X.shape))
    y = hsi.spp(hidden)
    assert isinstance(y, np.ma.MaskedArray)
    np.testing.assert_array_equal(y.mask, hidden.mask)


def test_masked_spectra_and_labels():
    """Masked values become NaN in spectra and unlabelled in labels, are ignored in tables, and are an error where every
    band needs a number."""
    nm = np.linspace(400, 1100, 8)
    for kind in (np.float32, np.int32):
        target = np.ma.MaskedArray((X[:, 3, 4] * 10).astype(kind), np.arange(8) > 5)
        nan = np.where(target.mask, np.nan, target.data)
        for given in (target, hsi.Spectra(target), hsi.Spectra(target, wavelengths=nm)):
            found = hsi.detect(X, target=given, method="sam", wavelengths=nm)
            np.testing.assert_array_equal(found, hsi.detect(X, target=nan, method="sam", wavelengths=nm))
        assert (found != hsi.detect(X, target=target.data, method="sam", wavelengths=nm)).any()
    labels = np.zeros((20, 24), int)
    labels[2:6], labels[8:12], labels[14:18] = 1, 2, 3
    model = hsi.svm_train(X, np.ma.MaskedArray(labels, labels == 2), C=8, gamma=0.5)
    assert [c["value"] for c in model.document["classes"]] == [1, 3]
    for what in ("wavelengths", "fwhm"):
        refused("masked", lambda: hsi.pca(X, **{what: np.ma.MaskedArray(nm, nm > 900)}))
        refused("masked", lambda: hsi.Spectra(X[:, 0, 0], **{what: np.ma.MaskedArray(nm, nm > 900)}))
    np.testing.assert_array_equal(hsi.pca(X, wavelengths=np.ma.MaskedArray(nm), nc=2), hsi.pca(X, wavelengths=nm, nc=2))


def test_scalars_of_numpy_are_numbers():
    np.testing.assert_array_equal(hsi.spp(X, ws=np.int8(3), tile=np.array([8, 8])), hsi.spp(X, ws=3))
    np.testing.assert_array_equal(hsi.spp(X, ws=np.array(3)), hsi.spp(X, ws=3))
    y, alpha = hsi.spp(X, ws=3, alpha=np.True_)
    assert isinstance(hsi.spp(X, ws=3, alpha=np.False_), np.ndarray) and alpha.shape == y.shape[1:]
    whole = (X * 10).astype(np.int64)
    whole[:, 2, 3] = 2**53
    assert (hsi.spp(whole, ws=3, nodata=2**53)[:, 2, 3] == np.float32(2**53)).all()


def test_out_is_as_the_result_would_be():
    """A masked array gets the result's mask, regardless of its earlier mask; the mask's planes have the layout of the
    array's planes."""
    hidden = np.ma.MaskedArray(X.copy(), np.zeros(X.shape, bool))
    hidden[:, 4, 5] = np.ma.masked
    expected = hsi.spp(hidden, ws=3)
    for hard in (False, True):
        out = np.ma.MaskedArray(np.zeros(X.shape, np.float32), np.zeros(X.shape, bool), hard_mask=hard)
        out[1, 1, 1] = np.ma.masked
        assert hsi.spp(hidden, ws=3, out=out) is out
        np.testing.assert_array_equal(out.mask, expected.mask)
        np.testing.assert_array_equal(out.filled(0), expected.filled(0))


def test_what_others_export():
    class Exports:
        def __array__(self, dtype=None, copy=None):
            return X
    np.testing.assert_array_equal(hsi.spp(Exports()), hsi.spp(X))

    class OnDevice:
        __cuda_array_interface__ = {"shape": X.shape, "typestr": "<f4", "data": (X.ctypes.data, True), "version": 3}

        def transpose(self, axes):
            return self
    refused("in the memory of CUDA device 0", lambda: hsi.spp(OnDevice()))


class Tensor:
    """An array of another library, recognised by its interface: DLPack on the CPU, otherwise on a device."""
    def __init__(self, values, device=(1, 0)):
        self.values, self.device = values, device

    def __dlpack__(self, **options):
        return self.values.__dlpack__()

    def __dlpack_device__(self):
        return self.device


def test_arrays_by_dlpack(monkeypatch):
    """Results have the type of the input, through its library's from_dlpack()."""
    import types
    library = types.ModuleType("tensors")
    library.from_dlpack = lambda array: Tensor(np.from_dlpack(array))
    monkeypatch.setitem(sys.modules, "tensors", library)
    monkeypatch.setattr(Tensor, "__module__", "tensors")
    y = hsi.spp(Tensor(X))
    assert isinstance(y, Tensor)
    np.testing.assert_array_equal(y.values, hsi.spp(X))
    refused("on a device", lambda: hsi.spp(Tensor(X, (2, 0))))


def test_stubs_are_the_functions():
    import ast
    text = (ROOT / "python" / "gdal_hsi" / "__init__.pyi").read_text()
    body = ast.parse(text).body
    options = {node.name: [one.target.id for one in node.body] for node in body if isinstance(node, ast.ClassDef) and node.name.endswith("Options")}
    for name in hsi.algorithms():
        overloads = [node.args for node in body if isinstance(node, ast.FunctionDef) and node.name == name]
        assert overloads
        for arguments in overloads:
            told = options[arguments.kwarg.annotation.slice.id]
            assert {a.arg for a in arguments.args + arguments.kwonlyargs} | set(told) == set(inspect.signature(getattr(hsi, name)).parameters)


def test_class_numbers_that_a_type_does_not_hold():
    labels = np.zeros((20, 24), np.uint16)
    labels[2:6], labels[10:14] = 1, 300
    model = hsi.svm_train(X, labels, C=8, gamma=0.5)
    assert hsi.svm_classify(X, model).dtype == np.uint16
    refused("300", lambda: hsi.svm_classify(X, model, ot="Byte"))
    refused("the result is", lambda: hsi.svm_classify(X, model, out=np.empty((20, 24), np.uint8)))


def test_results():
    y, alpha = hsi.spp(X, alpha=True)
    result = hsi.spp(X, alpha=True)
    assert len(result) == 2 and alpha.shape == (20, 24) and result["alpha"] is result.alpha and result[0] is result.dst
    assert repr(result).splitlines() == ["<Result>", f"  dst: array {X.shape}, float32", "  alpha: array (20, 24), float32"]
    with pytest.raises(KeyError, match="dst, alpha"):
        result["rho"]
    assert result.report["valid_pixels"] == 20 * 24
    full = hsi.spp(X, full=True)
    np.testing.assert_array_equal(full.dst, y)
    assert hsi.vd(X)["virtual_dimensionality"] >= 0
    points = hsi.atdca(X, t=3)
    assert points.dtype.names[:3] == ("rank", "line", "sample") and len(points) == 3


def test_masks_of_bands_that_are_not_selected():
    """Values that are masked in other bands are not missing; a band that is masked everywhere is named."""
    hidden = np.ma.MaskedArray(X, np.zeros(X.shape, bool))
    hidden[2], hidden[4, 3:6] = np.ma.masked, np.ma.masked
    kept = [1, 2, 4]
    np.testing.assert_array_equal(hsi.spp(hidden, ws=3, b=kept), hsi.spp(X, ws=3, b=kept))
    np.testing.assert_array_equal(hsi.spp((100 * hidden).astype(np.int16), ws=3, b=kept), hsi.spp((100 * X).astype(np.int16), ws=3, b=kept))
    assert hsi.spp(hidden, ws=3, b=[1, 5]).mask[:, 3:6].all() and not hsi.spp(hidden, ws=3, b=[1, 5]).mask[:, :3].any()
    with pytest.raises(hsi.UsageError, match=r"no values in band 3 \(counted from 1\)"):
        hsi.spp(hidden, ws=3)
    with pytest.raises(hsi.UsageError, match="no pixel is valid"):
        hsi.spp(np.ma.MaskedArray(X, True), ws=3)


def test_no_wavelengths_are_none():
    """info() returns an empty list for a file without wavelengths."""
    np.testing.assert_array_equal(hsi.spp(X, ws=3, wavelengths=[], fwhm=np.array([])), hsi.spp(X, ws=3))


def test_warnings():
    few = cube(3, 3, 8, seed=2)
    with pytest.warns(hsi.Warning, match="background"):
        hsi.detect(few)
    assert hsi.detect.__module__ == "gdal_hsi"


def test_signatures_and_docstrings():
    for name in hsi.algorithms():
        function = getattr(hsi, name)
        parameters = inspect.signature(function).parameters
        text = function.__doc__
        assert text.splitlines()[0] and "Parameters" in text and "FILE" not in text
        assert set(parameters) >= {"progress", "full"}
        for parameter in parameters:
            assert f"\n{parameter}" in text, (name, parameter)
    assert list(inspect.signature(hsi.spp).parameters)[:3] == ["src", "mask", "mask_exclude"]
    assert "3 to 63" in hsi.spp.__doc__


def test_progress():
    shares = []
    hsi.spp(X, progress=shares.append)
    assert shares[-1] == 1.0 and shares == sorted(shares)

    class Enough(Exception):
        pass

    def stop(done):
        raise Enough("at %g" % done)
    with pytest.raises(Enough):
        hsi.spp(X, tile=(8, 8), progress=stop)
    hsi.spp(X, progress=True)
    hsi.spp(X, progress=np.False_)
    for call in (lambda progress: hsi.sample(LABELS, n=3, progress=progress), lambda progress: hsi.accuracy(LABELS, LABELS, progress=progress)):
        shares = []
        call(shares.append)
        assert shares == [1.0]
        with pytest.raises(Enough):
            call(stop)


def test_ctrl_c_ends_a_call():
    """A call takes minutes. A signal after a moment ends it with KeyboardInterrupt, and the next call works."""
    script = """
import os, signal, sys, threading, time
import numpy as np, gdal_hsi as hsi
x = np.random.default_rng(1).random((64, 1500, 1500), dtype=np.float32) + 1
begun = threading.Event()
def watch(done):
    begun.set()
def interrupt():
    begun.wait()
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt, daemon=True).start()
try:
    hsi.detect(x, window=(15, 31), tile=(64, 64), progress=watch)
    sys.exit("it came to its end")
except KeyboardInterrupt:
    pass
assert hsi.spp(x[:4, :20, :20]).shape == (4, 20, 20)
"""
    done = subprocess.run([sys.executable, "-c", script], stderr=subprocess.PIPE, text=True, timeout=600,
                          env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
                          preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
    assert done.returncode == 0, done.stderr


def test_what_ends_a_call_keeps_no_array():
    """Errors of a progress function, of options and of an interruption leave no objects that only the garbage collector
    would free."""
    import gc
    import weakref

    class Array(np.ndarray):
        pass

    def stop(done):
        raise RuntimeError("enough")

    def strike(done):
        signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)

    def handler(*_):
        raise KeyboardInterrupt
    before = signal.signal(signal.SIGUSR1, handler)
    gc.disable()
    try:
        for further in ({"progress": stop}, {"ws": 4}, {"progress": strike, "tile": (8, 8)}, {"nodata": "none"}):
            array = X.copy().view(Array)
            lives = weakref.ref(array)
            with pytest.raises((RuntimeError, hsi.Error, KeyboardInterrupt)) as caught:
                hsi.spp(array, **further)
            del array, caught
            hsi.spp(X)  # the thread that has worked releases its job before the next one
            assert lives() is None, further
    finally:
        gc.enable()
        signal.signal(signal.SIGUSR1, before)


def test_handlers_of_signals_that_raise():
    """At any moment, the handler's own error is raised, later calls work, and threads do not accumulate."""
    script = """
import os, random, signal, sys
import numpy as np, gdal_hsi as hsi
from gdal_hsi import _library
class Boom(Exception): pass
def handler(*_): raise Boom
x = np.random.default_rng(1).random((8, 10, 12), dtype=np.float32) + 1
expected = hsi.spp(x, ws=3, threads=1).tobytes()
signal.signal(signal.SIGALRM, handler)
random.seed(2)
struck = 0
for _ in range(600):
    try:
        signal.setitimer(signal.ITIMER_REAL, random.random() * 0.002 + 1e-5)
        while True:
            assert hsi.spp(x, ws=3, threads=1).tobytes() == expected
    except Boom:
        struck += 1
assert struck == 600
for _ in range(50):
    assert hsi.spp(x, ws=3, threads=1).tobytes() == expected
assert len(_library._workers._idle) <= 3, _library._workers._idle
found = sum(1 for _ in os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 0
assert found < 64, found
"""
    done = subprocess.run([sys.executable, "-c", script], stderr=subprocess.PIPE, text=True, timeout=600,
                          env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
    assert done.returncode == 0, done.stderr


def test_a_library_of_another_kind(tmp_path):
    import ctypes.util
    other = ctypes.util.find_library("m")
    script = "import gdal_hsi as hsi\ntry: hsi.algorithms()\nexcept hsi.Error as error: print(error.message)\n"
    done = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env={**os.environ, "PYTHONPATH": str(ROOT / "python"), "HSI_LIBRARY": other})
    assert f"{other} is a libhsi" in done.stdout and done.returncode == 0, done.stderr


def test_threads_of_python():
    """Several calls run at once, in threads other than the main thread."""
    expected, found = hsi.spp(X), {}

    def work(k):
        found[k] = hsi.spp(X, threads=1 + k % 3)
    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    for y in found.values():
        np.testing.assert_array_equal(y, expected)


def test_memory_does_not_grow():
    import resource
    small = X[:, :8, :8]

    def calls(count):
        for _ in range(count):
            hsi.spp(small, ws=3, threads=1)
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    before = calls(300)
    assert calls(1500) - before < 8 * 1024


def test_calls_leave_nothing_to_the_garbage_collector():
    import gc
    nm = list(range(400, 480, 10))
    target = hsi.Spectra(X[:, 0, :2].T, ["a", "b"], nm, fwhm=[9] * 8)

    def call():
        hsi.detect(X, target=target, method="sam", wavelengths=nm, fwhm=[9] * 8, names=list("abcdefgh"), progress=lambda done: None)
    call()
    gc.collect()
    gc.disable()
    try:
        for _ in range(100):
            call()
        assert gc.collect() < 50
    finally:
        gc.enable()


def test_a_process_that_forks():
    """Calls run in workers of multiprocessing, for every start method."""
    import multiprocessing
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        sums = pool.map(_sum_of, [X, X + 1])
    assert sums == [float(hsi.spp(X).sum()), float(hsi.spp(X + 1).sum())]


def _sum_of(values):
    return float(hsi.spp(values).sum())




def test_spectra_from_their_text():
    """Spectra are read one by one, and equal the JSON parser's result for any names and spaces."""
    rng = np.random.default_rng(4)
    for number, bands in ((0, 0), (1, 1), (7, 5), (300, 40)):
        rows = rng.normal(0, 1e3, (number, bands)).tolist()
        if number > 1:
            rows[1][2] = None
        whole = {"names": [f'"spectra": [[{k}]], \\ \u00e9' for k in range(number)], "spectra": rows, "wavelengths_nm": [1.5 * b for b in range(bands)],
                 "double_precision": True}
        for text in (json.dumps(whole), json.dumps(whole, indent=2), json.dumps(whole, separators=(",", ":"), ensure_ascii=False),
                     " " + json.dumps(dict(reversed(list(whole.items())))) + "\n"):
            if number == 0:
                assert _spectra._members(text, "spectra") == whole
                continue
            made = hsi.Spectra.from_text(text)
            expected = np.array([[np.nan if v is None else v for v in row] for row in json.loads(text)["spectra"]])
            np.testing.assert_array_equal(made.spectra, expected)
            assert made.names == whole["names"] and made.wavelengths.tolist() == whole["wavelengths_nm"]


def test_the_end_among_spectra(monkeypatch):
    """Ctrl-C ends the reading of many spectra after the current one."""
    read = []

    class Interrupted(json.JSONDecoder):
        def raw_decode(self, text, place=0):
            read.append(place)
            if len(read) == 20:
                signal.raise_signal(signal.SIGINT)
            return super().raw_decode(text, place)
    monkeypatch.setattr(json, "JSONDecoder", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        hsi.spectra(X, LABELS, kind="every")
    assert len(read) == 20 < np.count_nonzero(LABELS)
