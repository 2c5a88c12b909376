# SPDX-License-Identifier: MIT
"""da.hsi: the functions on an xarray.DataArray, da.hsi.spp(ws=7). Registered when gdal_hsi is imported after xarray, or by import
gdal_hsi.xarray.
"""
import functools

import xarray as _xarray

import gdal_hsi as _hsi


@_xarray.register_dataarray_accessor("hsi")
class HsiAccessor:
    """The functions of gdal_hsi whose first argument is the array."""

    def __init__(self, array):
        self._array = array

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in _hsi.algorithms():
            raise AttributeError(f"unknown algorithm '{name}': gdal_hsi has {', '.join(_hsi.algorithms())}")
        function = getattr(_hsi, name)

        @functools.wraps(function)
        def method(*args, **kwargs):
            return function(self._array, *args, **kwargs)
        return method

    def __dir__(self):
        return _hsi.algorithms()
