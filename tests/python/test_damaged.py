# SPDX-License-Identifier: MIT
"""Damaged texts as options, libraries and models: each gives an error or a result, and the process continues."""
import ctypes
import json
import random

import numpy as np
import pytest

from conftest import cube

import gdal_hsi as hsi
from gdal_hsi import _library

X = cube(9, 8, 6)


def call(algorithm, options, inputs):
    """Returns the code and the message; options are raw bytes."""
    lib = _library.library()
    keep, given = [], (_library._Input * (1 + len(inputs)))()
    given[0].role, given[0].array = b"src", ctypes.pointer(_library._described(_library.Cube(X), keep))
    for k, (role, text) in enumerate(inputs.items(), 1):
        given[k].role, given[k].text = role, text
    arrays = []

    def allocate(_user, _role, _info, array):
        arrays.append(np.empty(tuple(array.contents.shape), _library.DTYPES[array.contents.type]))
        array.contents.data = arrays[-1].ctypes.data
        array.contents.strides[:] = arrays[-1].strides
        return 0
    hooks = _library._Hooks(size=ctypes.sizeof(_library._Hooks), allocate=_library._Allocate(allocate))
    wanted = (_library._Output * 1)()
    wanted[0].role = b"dst"
    result = ctypes.c_void_p()
    code = lib.hsi_run(algorithm, options, given, len(given), wanted, 1, ctypes.byref(hooks), ctypes.byref(result))
    message = lib.hsi_result_message(result)
    json.loads(lib.hsi_result_json(result))
    lib.hsi_result_free(result)
    return code, message


def damaged(text, random, times):
    """Returns the text with some bytes changed, removed or doubled, but without a zero, which would end it."""
    for _ in range(times):
        data = bytearray(text)
        for _ in range(random.randint(1, 4)):
            at = random.randrange(len(data))
            kind = random.randrange(4)
            if kind == 0:
                data[at] = random.randrange(1, 256)
            elif kind == 1:
                del data[at]
            elif kind == 2:
                data[at:at] = data[at:at + random.randint(1, 9)]
            else:
                data[at:at] = random.choice([b"1e999", b"-1", b"null", b"[", b"}", b'"', b"\\u0000", b"9" * 400, b"NaN", b"\xff"])
            if not data:
                break
        yield bytes(data)


@pytest.mark.parametrize("algorithm, options", [
    (b"spp", {"ws": 3, "threads": 2, "memory": "64MB", "tile": [4, 4], "ot": "Float64", "b": [1, "2-6"]}),
    (b"detect", {"target_pixel": [[1, 2], [3, 4]], "method": "ace", "shrinkage": 0.1}),
    (b"pca", {"nc": 3, "scale": True, "whiten": False, "srcwin": [1, 1, 6, 5], "dstnodata": -1}),
])
def test_options(algorithm, options):
    numbers = random.Random(3)
    codes = [call(algorithm, text, {})[0] for text in damaged(json.dumps(options).encode(), numbers, 300)]
    assert set(codes) <= {0, 1, 2} and codes.count(2) > 100
    for text in (b"", b" ", b"[]", b"7", b"null", b"{", b"\xff\xfe", b"[" * 100000, b'{"ws":' * 5000):
        assert call(algorithm, text, {})[0] == (0 if text == b"" else 2)


def test_libraries():
    numbers = random.Random(4)
    text = hsi.Spectra(X.reshape(6, -1).T[:3], ["a", "b", "c"], range(400, 1000, 100), band_numbers=range(1, 7)).text().encode()
    codes = [call(b"unmix", b"{}", {b"library": one})[0] for one in damaged(text, numbers, 400)]
    assert set(codes) <= {0, 1, 2} and codes.count(0) < 400
    for wrong in (b"{}", b"[]", b'{"spectra": []}', b'{"spectra": [[]]}', b'{"spectra": [[1, 2], [1]]}', b'{"spectra": 3}',
                  b'{"spectra": [[1,2,3,4,5,6]], "names": ["a", "b"]}', b'{"spectra": [[1,2,3,4,5,6]], "wavelengths_nm": [1]}'):
        assert call(b"unmix", b"{}", {b"library": wrong})[0] == 1


def test_models():
    numbers = random.Random(5)
    text = hsi.pca(X, nc=3, model=True).model.encode()
    codes = [call(b"pca", b"{}", {b"apply": one})[0] for one in damaged(text, numbers, 400)]
    assert set(codes) <= {0, 1, 2} and codes.count(1) > 100
