# SPDX-License-Identifier: MIT
"""Hyperspectral image processing on NumPy arrays, xarray and files: the tools of gdal-hsi as functions.

    import gdal_hsi as hsi
    y = hsi.spp(x, ws=7)                                # x: bands, lines, samples
    components, model = hsi.pca(x, nc=10, model=True)
    scores = hsi.detect(x, target=spectrum, method="ace")
    hsi.run("spp", "a.dat", "b.tif", ws=7, progress=True)   # files, by a child process

The functions are made from the definitions of the algorithms: help(hsi.spp) tells all parameters.
"""
from ._arrays import Model
from ._errors import Cancelled, Error, MissingFile, UsageError, Warning, WrongType  # noqa: A004
from ._files import info, run
from ._functions import Result
from ._spectra import Spectra
from ._statistics import Statistics

_ESTIMATORS = {"Detector": "_unsupervised", "EADP": "_estimators", "GP": "_estimators", "KMeans": "_unsupervised",
               "MNF": "_estimators", "PCA": "_estimators", "PLSR": "_estimators", "Ridge": "_estimators",
               "SAHIC": "_estimators", "SVM": "_estimators", "SVR": "_estimators", "Unmixer": "_unsupervised"}
_NAMES = ["Cancelled", "Error", "MissingFile", "Model", "Result", "Spectra", "Statistics", "UsageError", "WrongType",
          "algorithms", "info", "run", *_ESTIMATORS]


def algorithms():
    """The names of the functions that work on arrays.

    Examples
    --------
    >>> import gdal_hsi as hsi
    >>> "pca" in hsi.algorithms()
    True
    """
    from . import _library
    return sorted(_library.algorithms())


def __getattr__(name):
    """Functions are made when they are first used: to import this loads no library."""
    if name == "__all__":  # what import * brings: all but Warning, which would hide Python's own
        return _NAMES + [one for one in algorithms() if one not in _NAMES]
    if name.startswith("_") and name != "__version__":
        raise AttributeError(name)
    if name in _ESTIMATORS:
        import importlib
        value = getattr(importlib.import_module("." + _ESTIMATORS[name], __name__), name)
    elif name == "__version__":
        from . import _library
        return _library.version()
    else:
        from . import _functions, _library
        definition = _library.algorithms().get(name)
        if definition is None:
            raise AttributeError(f"module 'gdal_hsi' has no attribute '{name}'")
        value = _functions.make_function(definition, __name__)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*_NAMES, "Warning", *globals(), *algorithms()})


class _AfterXarray:
    """A finder of modules that makes da.hsi of an xarray.DataArray once xarray is imported after this package."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "xarray" or path is not None:
            return None
        import importlib.util
        import sys
        sys.meta_path[:] = [one for one in sys.meta_path if one is not _AfterXarray]
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def then_register(module):
            execute(module)
            from . import xarray  # noqa: F401
        spec.loader.exec_module = then_register
        return spec


def _register():
    """Makes da.hsi of an xarray.DataArray, whichever of both is imported first."""
    import sys
    if "xarray" in sys.modules:
        from . import xarray  # noqa: F401
    else:
        sys.meta_path.insert(0, _AfterXarray)


_register()
