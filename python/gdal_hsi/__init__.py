# SPDX-License-Identifier: MIT
"""Hyperspectral image processing on NumPy arrays, xarray and files: the tools of gdal-hsi as functions.

    import gdal_hsi as hsi
    y = hsi.spp(x, ws=7)                                # x: bands, lines, samples
    components, model = hsi.pca(x, nc=10, model=True)
    scores = hsi.detect(x, target=spectrum, method="ace")
    hsi.run("spp", "a.dat", "b.tif", ws=7, progress=True)   # files, by a child process

The functions are made from the definitions of the algorithms: help(hsi.spp) tells all parameters.
"""
from ._arrays import Model, Spectra
from ._errors import Cancelled, Error, UsageError, Warning  # noqa: A004
from ._files import info, run
from ._functions import Result

__all__ = ["Cancelled", "EADP", "Error", "MNF", "Model", "PCA", "Result", "SAHIC", "SVM", "Spectra", "UsageError", "Warning",
           "algorithms", "info", "run"]


def algorithms():
    """The names of the functions that work on arrays."""
    from . import _library
    return sorted(_library.algorithms())


def __getattr__(name):
    """Functions are made when they are first used: to import this loads no library."""
    if name.startswith("_") and name != "__version__":
        raise AttributeError(name)
    if name in ("PCA", "MNF", "EADP", "SVM", "SAHIC"):
        from . import _estimators
        value = getattr(_estimators, name)
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
    return sorted(set(__all__) | set(globals()) | set(algorithms()))


def _register():
    """Makes da.hsi of an xarray.DataArray where xarray is there already; else gdal_hsi.xarray does."""
    import sys
    if "xarray" in sys.modules:
        from . import xarray  # noqa: F401


_register()
