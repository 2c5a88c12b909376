# SPDX-License-Identifier: MIT
# mypy: ignore-errors
"""Estimators with scikit-learn's interface, without scikit-learn: pixels x bands in, pixels x results out. A set of pixels is a
scene of one line to the algorithms. Models are the tools' own: model_ is their JSON, which save() writes and load() reads.
"""
import collections.abc
import inspect
import json
import re

import numpy as np

from . import _library
from ._arrays import BAND_DIMENSIONS, LINE_DIMENSIONS, SAMPLE_DIMENSIONS, Layout, Model, bands_told, is_data_array, model_text, nodata_of, same_labels, scale_told, unmasked
from ._errors import Error, UsageError, warn
from ._options import options_for
from ._signatures import in_words_of_python
from ._spectra import wavelengths_of_columns

try:  # with scikit-learn its tools know these classes; without it they work alike
    from sklearn.base import BaseEstimator as _Base
    from sklearn.base import ClassifierMixin as _Classifier
    from sklearn.base import RegressorMixin as _Regressor
    from sklearn.base import TransformerMixin as _Transformer
    from sklearn.exceptions import NotFittedError as _NotFitted
except ImportError:
    class _NotFitted(ValueError, AttributeError):
        """The estimator has not been fitted."""

    class _Base:
        @classmethod
        def _get_param_names(cls):
            return sorted(p for p in inspect.signature(cls.__init__).parameters if p != "self")

        def get_params(self, deep=True):
            """The parameters by name."""
            return {name: getattr(self, name) for name in self._get_param_names()}

        def set_params(self, **params):
            """Sets parameters by name."""
            for name, value in params.items():
                if name not in self._get_param_names():
                    raise ValueError(f"Invalid parameter {name!r} for estimator {type(self).__name__}")
                setattr(self, name, value)
            return self

        def __repr__(self):
            return "%s(%s)" % (type(self).__name__, ", ".join(f"{k}={v!r}" for k, v in self.get_params().items()))

    class _Classifier:
        _estimator_type = "classifier"

        def score(self, X, y, sample_weight=None):
            """The share of pixels whose class is right."""
            return float(np.average(np.asarray(y) == self.predict(X), weights=sample_weight))

    class _Regressor:
        _estimator_type = "regressor"

        def score(self, X, y, sample_weight=None):
            """The coefficient of determination R2 of the estimates."""
            y = np.asarray(y, dtype=float)
            total = np.average((y - np.average(y, weights=sample_weight)) ** 2, weights=sample_weight)
            return float(1 - np.average((y - self.predict(X)) ** 2, weights=sample_weight) / total)

    class _Transformer:
        def fit_transform(self, X, y=None, **params):
            """fit() and transform()."""
            return self.fit(X, y, **params).transform(X)


def _values_of(X):
    """The values of a DataArray, pixels x bands by the names of its dimensions, NaN where it says that there is none."""
    dims = [str(d) for d in X.dims]
    bands = [k for k, d in enumerate(dims) if d.lower() in BAND_DIMENSIONS]
    of_scene = [d for d in dims if d.lower() in LINE_DIMENSIONS + SAMPLE_DIMENSIONS]
    if len(of_scene) > 1 and not bands:
        raise ValueError(f"Expected 2D array of pixels x bands, got a DataArray whose dimensions ({', '.join(dims)}) do not "
                         "include bands.")
    if len(dims) > 2 or len(of_scene) > 1:
        told = ", ".join(repr(d) for k, d in enumerate(dims) if k not in bands)
        band = repr(dims[bands[0]]) if bands else repr(dims[0])
        raise ValueError(f"Expected 2D array of pixels x bands, got a DataArray with the dimensions ({', '.join(dims)}) instead: use "
                         f"X.stack(pixel=({told})).transpose('pixel', {band}).")
    values, nodata = np.asarray(X.data), nodata_of(X)
    if nodata is not None:
        values = np.where(values == nodata, np.nan, values)
    return values.T if bands == [0] and len(dims) == 2 else values


def _check_same_pixels(X, y):
    """Raises where two DataArrays tell by a coordinate of their common dimension that they are of other pixels."""
    for dim in set(X.dims) & set(y.dims):
        for key in set(X.coords) & set(y.coords):
            one, other = X.coords[key], y.coords[key]
            if one.dims == other.dims == (dim,) and one.shape == other.shape and not one.equals(other):
                raise ValueError(f"y has other pixels than X: its coordinate '{key}' has other values. Reorder it with "
                                 "y.reindex_like(X), or give y.values.")


def _check_names(estimator, names):
    """Raises where the bands have other names, or another order of them, than those of fit(); in scikit-learn's words."""
    known, kind = getattr(estimator, "feature_names_in_", None), type(estimator).__name__
    if known is not None and names is not None:
        if list(known) == list(names):
            return
        unseen, missing = sorted(set(names) - set(known)), sorted(set(known) - set(names))
        told = "".join(f"{what}:\n" + "".join(f"- {one}\n" for one in [*these[:5], *["..."] * (len(these) > 5)])
                       for what, these in (("Feature names unseen at fit time", unseen),
                                           ("Feature names seen at fit time, yet now missing", missing)) if these)
        raise ValueError("The feature names should match those that were passed during fit.\n" +
                         (told or "Feature names must be in the same order as they were in fit.\n"))
    elif known is not None or names is not None:
        warn(f"X does not have valid feature names, but {kind} was fitted with feature names" if names is None else
                      f"X has feature names, but {kind} was fitted without feature names", UserWarning)


def _check_input_features(estimator, names):
    """Raises, in scikit-learn's words, where names of input features are not those of fit()."""
    if names is not None and len(names) != estimator.n_features_in_:
        raise ValueError(f"input_features should have length equal to number of features ({estimator.n_features_in_}), got {len(names)}")
    known = getattr(estimator, "feature_names_in_", None)
    if names is not None and known is not None and list(known) != list(names):
        raise ValueError("input_features is not equal to feature_names_in_")


class _Bands:
    """What a DataArray tells of its bands: their labels, and wavelengths in nm; None each where it tells nothing. And of its numbers:
    scale_factor and add_offset, 1 and 0 where it has none; None of what is no DataArray."""

    def __init__(self, X=None, wavelengths=None):
        self.labels, self.wavelengths, self.scale = None, wavelengths, None
        if X is not None and is_data_array(X):
            self.wavelengths, self.labels = bands_told(X)
            self.scale = scale_told(X)
        elif hasattr(X, "columns"):
            self.wavelengths = wavelengths_of_columns(X)

    def check(self, fitted):
        """Raises where these are other bands than those of fit(), or in another order, or numbers of another scale."""
        if self.scale is not None and fitted.scale is not None and self.scale != fitted.scale:
            raise ValueError("X has scale_factor {:g} and add_offset {:g}, but X of fit() had {:g} and {:g}: decode both, as "
                             "xarray.decode_cf does, or neither.".format(*self.scale, *fitted.scale))
        if self.wavelengths is not None and fitted.wavelengths is not None:
            same = len(self.wavelengths) == len(fitted.wavelengths) and np.allclose(
                self.wavelengths, fitted.wavelengths, rtol=1e-5, atol=0.01, equal_nan=True)
            what = "wavelengths"
        elif self.labels is not None and fitted.labels is not None:
            same, what = same_labels(self.labels, fitted.labels), "labels"
        else:
            return
        if not same:
            raise ValueError(f"The bands of X have other {what} than the bands of fit(), or another order: choose the same bands in the same order with "
                             "X.sel() or X.isel(); or give X.values.")


def _pixels(X, estimator=None, fitting=False):
    """X as pixels x bands, of a type that the library takes."""
    if hasattr(X, "toarray") and hasattr(X, "nnz"):
        raise TypeError("Sparse data was passed, but dense data is required: use X.toarray().")
    names = np.asarray(X.columns, dtype=object) if hasattr(X, "columns") else None
    names = names if names is not None and len(names) and all(isinstance(n, str) for n in names) else None
    if estimator is not None and not fitting:
        _check_names(estimator, names)
    told = _Bands(X if estimator is not None else None)
    X = _values_of(X) if is_data_array(X) else np.asarray(unmasked(X))
    if X.dtype == object:
        try:
            X = X.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise type(error)(f"argument must be numbers, not texts or objects: {error}") from None
    if np.iscomplexobj(X):
        raise ValueError("Complex data not supported: take the real part.")
    if X.dtype.kind in "US":
        raise ValueError("X has texts, but numbers are needed: convert them with X.astype(float).")
    if not X.dtype.isnative:
        X = X.astype(X.dtype.newbyteorder("="))
    if X.dtype.name not in _library.TYPES:
        X = X.astype(np.float32 if X.dtype.itemsize < 4 else np.float64)
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got {X.ndim}D array instead: pixels x bands. Reshape your data " +
                         ("(X.reshape(len(X), -1).T of bands x lines x samples)." if X.ndim == 3 else "(X.reshape(1, -1) of one pixel)."))
    if X.shape[0] == 0:
        raise ValueError(f"Found array with 0 sample(s) (shape={X.shape}) while a minimum of 1 is required.")
    if X.shape[1] == 0:
        raise ValueError(f"0 feature(s) (shape={X.shape}) while a minimum of 1 is required.")
    if estimator is not None and not getattr(estimator, "_may_have_nan", False) and not np.isfinite(X).all():
        raise ValueError("Input X contains NaN or infinity: leave such pixels out.")
    if estimator is None:
        return X
    if fitting:
        estimator.n_features_in_, estimator._bands = X.shape[1], told
        if names is not None:
            estimator.feature_names_in_ = names
        elif hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
        return X
    if X.shape[1] != estimator.n_features_in_:
        raise ValueError(f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting "
                         f"{estimator.n_features_in_} features as input.")
    told.check(getattr(estimator, "_bands", _Bands()))
    return X


def _scene(X, fitted=None):
    """Pixels x bands as the library's bands x 1 x pixels, where they lie. fitted: an estimator whose model gets the bands' wavelengths."""
    nm = None if fitted is None else fitted._bands.wavelengths
    return _library.Cube(X.T[:, np.newaxis, :], wavelengths=None if nm is None else [float(v) for v in nm])


def _rows(array):
    """The library's bands x 1 x pixels as pixels x bands."""
    return array[:, 0, :].T


PARAMETERS = {"nc": "n_components", "components": "n_components", "transform": "steps", "k": "n_clusters", "iterations": "max_iter"}  # what estimators call an option of the tools


def _in_words_of_estimators(text, names):
    """The message with the parameters' names in the place of the options'."""
    for option, name in PARAMETERS.items():
        text = re.sub(rf"(?<![\w-])-{option}\b", name, text)
    text = in_words_of_python(text, names=names)
    return text.replace("Give wavelengths=, in nm, one per band, or leave these bands out (b)",
                        "Give a DataFrame whose columns are wavelengths, or a DataArray with them as a coordinate")


def _options_for(algorithm, options):
    return options_for(_library.algorithms()[algorithm], options, PARAMETERS)


def _call(algorithm, options, inputs, outputs, classes=()):
    """classes: names of the classes that the tool counts from 1, and messages list by number and name."""
    def allocate(role, info, shape, dtype):
        # pixels x bands in memory
        return np.empty((shape[1], shape[2], shape[0]), dtype).transpose(2, 0, 1)
    def in_our_words(text):
        return _in_words_of_estimators(text, {one["name"] for one in _library.algorithms()[algorithm]["arguments"]})
    try:
        outcome = _library.call(algorithm, _options_for(algorithm, options), inputs, {role: None for role in outputs},
                                allocate=allocate)
    except Error as error:
        raise UsageError(in_our_words(error.message), in_our_words(error.advice)) from None
    for text in outcome.facts.get("warnings", []):
        for number, name in enumerate(classes, 1):
            text = text.replace(f" {number} {name} (", f" {name} (")
        warn(in_our_words(text))
    return outcome


def _numbers(document, name):
    """A list of numbers in a model."""
    values = document[name]
    if not isinstance(values, list) or not values or not all(v is None or type(v) in (int, float) for v in values):
        raise ValueError(f"{name} are not a list of numbers")
    return np.array(values, dtype=float)


class _Fitted(_Base):
    """What all estimators have: an attribute that is there once fit() has been called."""
    _fitted = "n_features_in_"

    def __sklearn_is_fitted__(self):
        return hasattr(self, self._fitted)

    def _check_fitted(self):
        if not self.__sklearn_is_fitted__():
            raise _NotFitted(f"This {type(self).__name__} instance is not fitted yet. Call 'fit' with appropriate arguments before "
                             "using this estimator.")


class _Estimator(_Fitted):
    """An estimator with a model that is saved as and loaded from the tools' JSON."""
    _fitted = "model_"

    def _compute(self):
        return {"threads": self.threads, "device": self.device}

    def save(self, path):
        """Writes the model as the tools read it."""
        self._check_fitted()
        self.model_.save(path)

    @classmethod
    def load(cls, model, **params):
        """An estimator with a model of the tools': a path, a Model or its JSON."""
        one = cls(**params)
        one._check_parameters()
        text = Model(model_text(model, "model"))
        try:
            document = text.document
            if document["format"].split()[0] != "gdal_hsi_" + cls._format:  # a former version had a word after it
                raise ValueError(f"its format is {document['format']!r}")
            one._take(document)
            nm = document.get("features", document).get("wavelengths_nm")
            one._bands = _Bands(wavelengths=_numbers({"wavelengths": nm}, "wavelengths") if nm else None)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise UsageError(f"model is not a model of {cls.__name__}: {type(error).__name__}: {error}",
                             f"Give a file written by {cls.__name__}.save() or gdal_hsi_{cls._maker}.") from None
        one.model_ = text
        return one

    def _check_parameters(self):
        """Raises where a parameter is nothing that an option may be."""
        _options_for(self._maker, {**self._options(), "threads": self.threads})


class _Components(_Transformer, _Estimator):
    _prefix = ""

    def _more_tags(self):
        return {"preserves_dtype": ["float32"]}  # results are Float32, as the tools write them

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def fit(self, X, y=None):
        """Learns the components of the pixels."""
        self._learn(_pixels(X, self, fitting=True))
        return self

    def fit_transform(self, X, y=None):
        """The components of the pixels that they are learned from."""
        return self._learn(_pixels(X, self, fitting=True))

    def _share(self):
        """The share of the variance that the parameter asks for; None where it gives a number, or nothing."""
        share = self.n_components
        return float(share) if isinstance(share, (float, np.floating)) and 0 < share < 1 else None

    def _wanted(self):
        """The number of components that the parameter gives; None where it gives none."""
        if self._share() is not None:
            return None
        wanted = _options_for(self._maker, {"nc": self.n_components}).get("nc")
        if isinstance(wanted, (str, list)) or wanted is not None and wanted != int(wanted):
            raise UsageError(f"n_components: {self.n_components!r} is not a whole number", "Give a whole number, a share of the variance above 0 and below 1, or "
                             "None for all.")
        return None if wanted is None else int(wanted)

    def _options(self):
        return {"nc": self._wanted()}

    def _learn(self, X):
        if X.shape[0] < 2:
            raise ValueError(f"n_samples={X.shape[0]}: components need at least two pixels.")
        if X.shape[1] < 2:
            raise ValueError(f"n_features={X.shape[1]}: components need at least two bands (1 feature(s)).")
        options = {**self._options(), **self._compute()}
        if options["nc"] is None:
            options["nc"] = min(X.shape)
        outcome = _call(self._algorithm, options, {"src": _scene(X, self)}, ["dst", "model"])
        self.model_ = Model(outcome.texts["model"])
        self._take(self.model_.document)
        return _rows(outcome.arrays["dst"])[:, :self.n_components_]

    def _take(self, document):
        self.n_features_in_ = len(_numbers(document, "bands"))
        self.eigenvalues_ = _numbers(document, "eigenvalues")
        known = document.get("components", len(self.eigenvalues_))
        wanted, share = self._wanted(), self._share()
        if share is not None:  # as few as have it, rounding of the last digits aside
            shares = np.cumsum(self._shares(document))
            wanted = int(np.searchsorted(shares, share * (1 - 1e-12))) + 1
        self.n_components_ = min(known if wanted is None else wanted, known)
        self.explained_variance_ = self.eigenvalues_[:self.n_components_]
        self.explained_variance_ratio_ = self._shares(document)[:self.n_components_]
        rows = document["loadings"][:self.n_components_]
        self.components_ = np.array([_numbers({"loadings": row}, "loadings") for row in rows])
        self.mean_ = _numbers(document, "mean")

    def _shares(self, document):
        """The share of all variance of each component."""
        total = document.get("total_variance") or self.eigenvalues_.sum()
        return self.eigenvalues_ / total if total > 0 else self.eigenvalues_

    def transform(self, X):
        """The components of pixels."""
        self._check_fitted()
        X = _pixels(X, self)
        outcome = _call(self._algorithm, {"nc": self.n_components_, "any-wavelengths": True, "any-scale": True, **self._compute()},
                        {"src": _scene(X), "apply": self.model_}, ["dst"])
        return _rows(outcome.arrays["dst"])

    def inverse_transform(self, X):
        """Pixels of components, the first ones in their order: names that tell of others are refused."""
        self._check_fitted()
        told = _Bands(X).labels if is_data_array(X) else list(getattr(X, "columns", ()))
        if told and all(str(one).startswith(self._prefix) for one in told):
            expected = [f"{self._prefix}{k + 1}" for k in range(len(told))]
            if list(map(str, told)) != expected:
                raise ValueError(f"X has the components {', '.join(map(str, told))}, but {', '.join(expected)} are needed, in this order.")
        X = _pixels(X)
        if X.shape[1] > self.n_components_:
            raise ValueError(f"X has {X.shape[1]} features, but {type(self).__name__} has {self.n_components_} components.")
        outcome = _call(self._algorithm, {"inverse": True, "nc": X.shape[1], **self._compute()},
                        {"src": _scene(X), "apply": self.model_}, ["dst"])
        return _rows(outcome.arrays["dst"])

    @property
    def _n_features_out(self):
        return self.n_components_

    def get_feature_names_out(self, input_features=None):
        """PC1, PC2 ..."""
        self._check_fitted()
        _check_input_features(self, input_features)
        return np.array([f"{self._prefix}{k + 1}" for k in range(self.n_components_)], dtype=object)


class PCA(_Components):
    """Principal components, as gdal_hsi_pca computes them.

    Parameters
    ----------
    n_components : int, float or None
        A number of components, a share of the variance such as 0.99, or None for all that pixels and bands allow.
    scale : bool
        Divide each band by its standard deviation first.
    whiten : bool
        Divide each component by its standard deviation.
    threads : int or "auto"
        Number of threads; default: all.
    device : "cpu", "cuda" or "auto"
        Where it is computed.

    Attributes
    ----------
    components_ : array of shape (n_components_, bands)
        Eigenvectors; with scale=True those of the scaled bands.
    explained_variance_, explained_variance_ratio_ : arrays of shape (n_components_,)
        Variance of each component, and its share of the total variance.
    mean_, scale_ : arrays of shape (bands,)
        Mean and standard deviation of each band; scale_ is None without scale.
    eigenvalues_ : array
        All eigenvalues that were found.
    n_components_ : int
        Number of components.
    model_ : Model
        The model of gdal_hsi_pca.

    Notes
    -----
    Results are Float32. Products of the statistics are in single precision, their sums in double precision.

    Examples
    --------
    >>> import numpy as np
    >>> import gdal_hsi as hsi
    >>> rng = np.random.default_rng(0)
    >>> pixels = rng.random((500, 3)) @ rng.random((3, 20)) + rng.normal(0, 0.001, (500, 20))
    >>> pca = hsi.PCA(0.99).fit(pixels)
    >>> pca.transform(pixels).shape, pca.components_.shape
    ((500, 3), (3, 20))
    """
    _algorithm = _format = _maker = "pca"
    _prefix = "PC"

    def __init__(self, n_components=None, *, scale=False, whiten=False, threads=None, device=None):
        self.n_components, self.scale, self.whiten, self.threads, self.device = n_components, scale, whiten, threads, device

    def _options(self):
        return {"nc": self._wanted(), "scale": self.scale, "whiten": self.whiten}

    def _take(self, document):
        super()._take(document)
        self.scale_ = _numbers(document, "scale") if document.get("scale") else None


class MNF(_Components):
    """Minimum noise fraction, as gdal_hsi_mnf computes it.

    The noise is estimated from the differences of neighbours: give the pixels in the order of the lines of a scene.

    Parameters
    ----------
    n_components : int, float or None
        A number of components, a share of the sum of the eigenvalues, or None for all that pixels and bands allow.
    threads : int or "auto"
        Number of threads; default: all.
    device : "cpu", "cuda" or "auto"
        Where it is computed.

    Attributes
    ----------
    components_ : array of shape (n_components_, bands)
        Loadings, in units of the noise.
    explained_variance_ : array of shape (n_components_,)
        Variance of signal and noise of each component; the variance of the noise is 1.
    explained_variance_ratio_ : array of shape (n_components_,)
        Its share of the sum of all eigenvalues.
    mean_ : array of shape (bands,)
        Mean of each band.
    eigenvalues_ : array
        All eigenvalues that were found.
    n_components_ : int
        Number of components.
    model_ : Model
        The model of gdal_hsi_mnf.

    Examples
    --------
    >>> import numpy as np
    >>> import gdal_hsi as hsi
    >>> rng = np.random.default_rng(0)
    >>> signal = np.cumsum(rng.normal(size=(500, 3)), axis=0)           # neighbours are alike
    >>> pixels = signal @ rng.random((3, 20)) + rng.normal(0, 0.1, (500, 20))
    >>> mnf = hsi.MNF(3)
    >>> components = mnf.fit_transform(pixels)
    >>> components.shape, mnf.inverse_transform(components).shape
    ((500, 3), (500, 20))
    """
    _algorithm = _format = _maker = "mnf"
    _prefix = "MNF"

    def __init__(self, n_components=None, *, threads=None, device=None):
        self.n_components, self.threads, self.device = n_components, threads, device


def _one_each(estimator, X, y, what):
    """y as one value a pixel, in scikit-learn's words where it is something else."""
    if y is None:
        raise ValueError(f"This {type(estimator).__name__} estimator requires y to be passed, but the target y is None.")
    if np.ma.is_masked(y):
        raise UsageError(f"y has masked {what}", "Leave these pixels out: X[~y.mask], y.compressed().")
    y = np.asarray(y)
    if y.ndim == 2 and y.shape[1] == 1:
        warn("A column-vector y was passed when a 1d array was expected.", _conversion_warning())
        y = y.ravel()
    if y.ndim != 1:
        raise ValueError(f"y should be a 1d array, got an array of shape {y.shape} instead.")
    if len(y) != len(X):
        raise ValueError(f"Found input variables with inconsistent numbers of samples: [{len(X)}, {len(y)}]")
    return y


def _check_values(found, what):
    """Raises where pixels have no class or estimate."""
    if found.all():
        return
    rows = np.flatnonzero(~found)
    told = ", ".join(map(str, rows[:8])) + (" ..." if len(rows) > 8 else "")
    raise UsageError(f"X: {len(rows)} of {len(found)} rows have no valid values, so they have no {what}: {told}", "Leave out pixels that are all zero, or have values outside the range of Float32.")


class _Predicting(_Estimator):
    def _more_tags(self):
        return {"_xfail_checks": {"check_estimators_dtypes": "asks for the result of a pixel that is all zero"}}

    def __sklearn_tags__(self):
        return super().__sklearn_tags__()


class _ClassifierOfPixels(_Classifier, _Predicting):
    def _labels(self, X, y):
        y = _one_each(self, X, y, "labels")
        if y.dtype.kind == "f":
            if not np.isfinite(y).all():
                raise ValueError("Input y contains NaN or infinity.")
            if (y != np.round(y)).any():
                raise ValueError("Unknown label type: continuous. Classes are whole numbers or names.")
        if y.dtype.kind not in "biufUOM":
            raise UsageError(f"y has labels of type {y.dtype}", "Give whole numbers or names: y.astype(str).")
        try:
            classes, numbers = np.unique(y, return_inverse=True)
        except TypeError as error:
            raise UsageError(f"y has labels of several types: {error}",
                             "Give only whole numbers or only names.") from None
        if len(classes) < 2:
            raise ValueError("Classifier can't train when only one class is present.")
        if len(classes) > 65535:
            raise ValueError(f"Unknown label type: {len(classes)} classes, but at most 65535 are possible.")
        return classes, (numbers + 1).astype(np.uint16)

    def _fit(self, algorithm, options, X, y, outputs, further=lambda X, classes: {}):
        if is_data_array(X) and is_data_array(y):
            _check_same_pixels(X, y)
        X = _pixels(X, self, fitting=True)
        classes, labels = self._labels(X, y)
        options = {**options, **further(X, classes)}
        names = [str(c) for c in classes]
        if "weight" in options and set(names) & {str(k + 1) for k, name in enumerate(names) if name != str(k + 1)}:
            names = []  # weights go by the classes' numbers, which such names would be taken for
        cube = _library.Cube(labels[np.newaxis, np.newaxis, :], names=[None] + names)
        outcome = _call(algorithm, {**options, **self._compute()}, {"src": _scene(X, self), "labels": cube}, outputs, names)
        model = Model(outcome.texts["model"])
        learned = {c["value"] for c in model.document["classes"]}
        missing = [str(c) for k, c in enumerate(classes) if k + 1 not in learned]
        if missing:
            raise UsageError(f"class {', '.join(missing)}: no pixel has valid values", "Leave the class out, or give pixels that are not all zero and within the range of Float32.")
        self.classes_, self.model_ = classes, _with_labels(model, classes)
        return self

    def _take(self, document):
        features = document.get("features", document)
        self.n_features_in_ = len(_numbers(features, "bands"))
        self.classes_ = _labels_of(document)

    def predict(self, X):
        """The class of every pixel."""
        labels = self._classify(X, ["dst"]).arrays["dst"][0, 0]
        numbers = np.array([c["value"] for c in self.model_.document["classes"]])
        order = np.argsort(numbers)
        places = order[np.searchsorted(numbers, labels, sorter=order).clip(max=len(numbers) - 1)]
        _check_values(numbers[places] == labels, "class")
        return self.classes_[places]

    def predict_proba(self, X):
        """The probability of every class, pixels x classes."""
        shares = _rows(self._classify(X, ["dst", "probabilities"]).arrays["probabilities"]).astype(np.float64)
        _check_values(np.isfinite(shares).all(axis=1), "class")
        return shares


def _with_labels(model, classes):
    """The model with the classes as they were given, beside their names, which are texts. The tools pass over that member."""
    values = classes.astype(str) if classes.dtype.kind == "M" else classes
    if classes.dtype.kind == "O" and not all(isinstance(c, (str, int, float, bool)) for c in classes):
        return model
    told = json.dumps({"type": classes.dtype.str.lstrip("<>|="), "values": values.tolist()})
    return Model(model.rstrip()[:-1].rstrip() + ', "labels": ' + told + "}\n")


def _labels_of(document):
    """The classes of a model: as an estimator was given them, else their names, or else their numbers."""
    classes, told = document["classes"], document.get("labels")
    _numbers({"classes": [c["value"] for c in classes]}, "classes")
    if told is not None:
        if len(told["values"]) != len(classes) or np.dtype(told["type"]).kind not in "biufUOM":
            raise ValueError("labels")
        return np.array(told["values"], dtype=told["type"])
    if all(c.get("name") for c in classes):
        return np.array([c["name"] for c in classes])
    return np.array([c.get("name") or c["value"] for c in classes])


def _scaled(X, low, high):
    """Pixels as the machine's features: 0 to 1 between the training pixels' extremes, rounded to single precision."""
    low, span = np.asarray(low, dtype=float), np.asarray(high, dtype=float) - low
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(span > 0, (X - low) * (1 / span), 0).astype(np.float32).astype(float)


def _conversion_warning():
    try:
        from sklearn.exceptions import DataConversionWarning
        return DataConversionWarning
    except ImportError:
        return UserWarning


class SVM(_ClassifierOfPixels):
    """A support vector machine with a radial kernel, as gdal_hsi_svm_train and gdal_hsi_svm_classify compute it.

    Parameters
    ----------
    C : float or "search"
        Penalty of errors, as in scikit-learn's SVC, for bands that are scaled to 0 to 1 by the training pixels' minimum and maximum.
        "search": a search by cross-validation on the grid of the tool.
    gamma : float, "scale", "auto" or "search"
        Gamma of the kernel. "scale": 1 / (bands x variance of the scaled values); "auto": 1 / bands.
    class_weight : None, "balanced" or dict
        Factors of C by class.
    probability : bool
        Whether predict_proba() is available; training takes several times longer.
    seed : int
        Seed of the folds.
    threads : int or "auto"
        Number of threads; default: all.
    device : "cpu", "cuda" or "auto"
        Where it is computed.

    Attributes
    ----------
    classes_ : array of shape (classes,)
        The classes.
    C_, gamma_ : float
        Parameters of the model.
    model_ : Model
        The model of gdal_hsi_svm_train.

    Examples
    --------
    >>> import numpy as np
    >>> import gdal_hsi as hsi
    >>> pixels = np.random.default_rng(0).random((300, 10))
    >>> y = np.where(pixels[:, 0] > 0.5, "soil", "water")
    >>> svm = hsi.SVM(C=8, gamma=0.5).fit(pixels, y)
    >>> svm.score(pixels, y) > 0.9
    True
    """
    _format, _maker = "svm", "svm_train"

    def __init__(self, C=1.0, gamma="scale", *, class_weight=None, probability=False, seed=None, threads=None, device=None):
        self.C, self.gamma, self.class_weight, self.probability, self.seed = C, gamma, class_weight, probability, seed
        self.threads, self.device = threads, device

    def fit(self, X, y):
        """Trains with pixels and their classes."""
        return self._fit("svm_train", self._options(), X, y, ["model"], self._by_pixels)

    def _options(self):
        for name, value, words in (("C", self.C, ("search",)), ("gamma", self.gamma, ("search", "scale", "auto"))):
            if value is None or isinstance(value, str) and value not in words:
                raise UsageError(f"{name}: {value!r} is not a positive number or " + " or ".join(map(repr, words)), "Give one of these.")
        number = lambda value: None if isinstance(value, str) else value  # noqa: E731
        return {"C": number(self.C), "gamma": number(self.gamma), "probability": self.probability, "seed": self.seed}

    def _by_pixels(self, X, classes):
        """Options that depend on the training pixels and their classes."""
        made = {}
        if isinstance(self.gamma, str) and self.gamma != "search":
            variance = 1.0 if self.gamma == "auto" else float(_scaled(X, X.min(axis=0), X.max(axis=0)).var())
            made["gamma"] = 1 / (X.shape[1] * variance) if variance > 0 else 1.0
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            made["class-weights"] = "balanced"
        elif isinstance(self.class_weight, collections.abc.Mapping):
            unknown = [one for one in self.class_weight if one not in list(classes)]
            if unknown:
                raise ValueError(f"The classes, {unknown}, are not in class_weight: y has {', '.join(map(str, classes))}.")
            made["weight"] = [f"{k + 1}={float(self.class_weight[one])!r}" for k, one in enumerate(classes.tolist()) if one in self.class_weight]
        elif self.class_weight is not None:
            raise UsageError(f"class_weight: {self.class_weight!r} is not None, 'balanced' or a dict", "Give a factor of C per class: {3: 2.5}.")
        return made

    def _fit(self, *args):
        super()._fit(*args)
        self._take_machine(self.model_.document)
        return self

    def _take(self, document):
        super()._take(document)
        self._take_machine(document)

    def _take_machine(self, document):
        self.C_, self.gamma_ = float(document["svm"]["C"]), float(document["svm"]["gamma"])

    def decision_function(self, X):
        """Of two classes the distance to the boundary in units of the margin, above 0 for the second one: one number per pixel. Of more
        classes pixels x classes, as SVC with decision_function_shape="ovr": votes of the pairs of classes and, between equal votes,
        their distances. Computed in NumPy in double precision."""
        self._check_fitted()
        X = _pixels(X, self)
        document = self.model_.document
        features, machine = document["features"], document["svm"]
        low, high = (_numbers(features, name) for name in ("minimum", "maximum"))
        vectors, coefficients, rho = (np.array(machine[name], dtype=float) for name in ("support_vectors", "coefficients", "rho"))
        starts = np.concatenate([[0], np.cumsum(machine["support_count"])])
        pairs = [(i, j) for i in range(len(starts) - 1) for j in range(i + 1, len(starts) - 1)]
        squares, values = (vectors ** 2).sum(axis=1), np.empty((len(X), len(pairs)))
        step = max(1, (1 << 22) // len(vectors))
        for first in range(0, len(X), step):
            x = _scaled(X[first:first + step], low, high)
            kernel = np.exp(-machine["gamma"] * np.maximum((x ** 2).sum(axis=1)[:, None] + squares - 2 * x @ vectors.T, 0))
            for p, (i, j) in enumerate(pairs):
                own, other = slice(starts[i], starts[i + 1]), slice(starts[j], starts[j + 1])
                values[first:first + step, p] = kernel[:, own] @ coefficients[j - 1, own] + kernel[:, other] @ coefficients[i, other] - rho[p]
        if len(pairs) == 1:
            return -values[:, 0]  # LIBSVM's is above 0 for the first class
        votes, sums = np.zeros((len(X), len(self.classes_))), np.zeros((len(X), len(self.classes_)))
        for p, (i, j) in enumerate(pairs):
            first = values[:, p] > 0
            votes[:, i] += first
            votes[:, j] += ~first
            sums[:, i] += values[:, p]
            sums[:, j] -= values[:, p]
        return votes + sums / (3 * (np.abs(sums) + 1))

    @property
    def predict_proba(self):
        """The probability of every class, pixels x classes: a function, where probability=True."""
        if not self.probability and not (hasattr(self, "model_") and "probability_a" in self.model_):
            raise AttributeError("predict_proba is not available: the estimator was made with probability=False")
        return super().predict_proba

    def _compute(self):
        return {"threads": self.threads}

    def _classify(self, X, outputs):
        self._check_fitted()
        X = _pixels(X, self)
        return _call("svm_classify", {"any-wavelengths": True, "any-scale": True, "threads": self.threads, "device": self.device},
                     {"src": _scene(X), "model": self.model_}, outputs)


class SAHIC(_ClassifierOfPixels):
    """The classifier of SAHIC, a sparse multinomial logistic regression, as gdal_hsi_sahic computes it.

    It has no Markov random field, which needs a scene: gdal_hsi.sahic() applies both.

    Parameters
    ----------
    threads : int or "auto"
        Number of threads; default: all.
    device : "cpu", "cuda" or "auto"
        Where it is computed.

    Attributes
    ----------
    classes_ : array of shape (classes,)
        The classes.
    model_ : Model
        The model of gdal_hsi_sahic.

    Examples
    --------
    >>> import numpy as np
    >>> import gdal_hsi as hsi
    >>> pixels = np.random.default_rng(0).random((300, 10))
    >>> y = np.where(pixels[:, 0] > 0.5, "soil", "water")
    >>> hsi.SAHIC().fit(pixels, y).predict_proba(pixels).shape
    (300, 2)
    """
    _format, _maker = "mlr", "sahic"

    def __init__(self, *, threads=None, device=None):
        self.threads, self.device = threads, device

    def fit(self, X, y):
        """Trains with pixels and their classes."""
        return self._fit("sahic", self._options(), X, y, ["dst", "model"])

    def _options(self):
        return {"no-spatial": True}

    def _classify(self, X, outputs):
        self._check_fitted()
        X = _pixels(X, self)
        options = {"no-spatial": True, "any-wavelengths": True, "any-scale": True, **self._compute()}
        return _call("sahic", options, {"src": _scene(X), "labels": "none", "apply": self.model_}, outputs)


class _RegressorOfPixels(_Regressor, _Predicting):
    """gdal_hsi_regression_train and gdal_hsi_regression_predict. steps: the transforms of the spectra, such as "snv,d1:7". model_ holds
    the tool's model, metrics_ the metrics of held-out samples."""
    _format, _maker = "regression", "regression_train"
    _parameters = ("steps", "cv", "seed")

    def _options(self):
        named = {"n_components": "components", "lambda_": "lambda", "steps": "transform"}
        return {"method": self._method, **{named.get(p, p).replace("_", "-"): getattr(self, p) for p in self._parameters}}

    def _targets(self, X, y):
        y = _one_each(self, X, y, "values")
        if y.dtype.kind not in "biufO":
            raise UsageError(f"y has values of type {y.dtype}", "Give numbers.")
        try:
            y = y.astype(np.float64)
        except (TypeError, ValueError):
            raise UsageError("y has values that are not numbers", "Give numbers.") from None
        if not np.isfinite(y).all():
            raise ValueError("Input y contains NaN or infinity.")
        return y

    def fit(self, X, y, groups=None):
        """Trains with pixels and their values. groups: one label each; pixels of a group stay together in the folds of the
        cross-validation. None: each pixel is a group."""
        if is_data_array(X) and is_data_array(y):
            _check_same_pixels(X, y)
        X = _pixels(X, self, fitting=True)
        y = self._targets(X, y)
        groups = np.arange(len(y)) if groups is None else np.asarray(groups)
        if groups.shape != y.shape:
            raise ValueError(f"Found input variables with inconsistent numbers of samples: [{len(X)}, {len(groups) if groups.ndim else 1}]")
        _, first, group = np.unique(groups, return_index=True, return_inverse=True)
        if len(first) < 2:
            raise ValueError(f"n_samples={len(X)}, all in one group: the cross-validation of a regression needs at least two groups.")
        # Pixels that touch are one group to the tool: groups lie apart by a pixel without values.
        rank = np.argsort(np.argsort(first))[group.ravel()]
        order = np.argsort(rank, kind="stable")
        places = np.arange(len(y)) + rank[order]
        spectra = np.full((places[-1] + 1, X.shape[1]), np.nan, X.dtype if X.dtype.kind == "f" else np.float64)
        values = np.full((1, 1, len(spectra)), np.nan)
        spectra[places], values[0, 0, places] = X[order], y[order]
        outcome = _call(self._maker, {**self._options(), "threads": self.threads},
                        {"src": _scene(spectra, self), "labels": _library.Cube(values)}, ["model"])
        self.model_ = Model(outcome.texts["model"])
        self._take(self.model_.document)
        return self

    def _take(self, document):
        self.n_features_in_ = len(_numbers(document["features"], "bands"))
        self.metrics_ = dict(document["metrics"] or {})
        if document["method"] != self._method:
            raise ValueError(f"its method is {document['method']!r}")

    def _map(self, X):
        self._check_fitted()
        X = _pixels(X, self)
        bands = _call("regression_predict", {"any-wavelengths": True, **self._compute()},
                      {"src": _scene(X), "model": self.model_}, ["dst"]).arrays["dst"][:, 0]
        _check_values(np.isfinite(bands[0]), "estimate")
        return bands.astype(np.float64)

    def predict(self, X, return_std=False):
        """The estimate of every pixel; with return_std also its standard deviation (NaN of one member, and of SVR)."""
        bands = self._map(X)
        return (bands[0], bands[1]) if return_std else bands[0]

    def outside(self, X):
        """0 where a pixel is like those of the training; 1: the estimate is beyond their values, 2: the spectrum is unlike theirs,
        3: both."""
        return self._map(X)[2].astype(np.uint8)


class PLSR(_RegressorOfPixels):
    """Partial least squares regression, as gdal_hsi_regression_train computes it.

    Parameters
    ----------
    n_components : int or None
        Number of components; None: chosen by cross-validation.
    max_components : int
        Largest number that is tried; default: 20.
    scale : bool
        Divide each band by its standard deviation.
    members : int
        Number of models, each of a share of the groups; the estimate is their mean. Default: 100.
    share : float
        Share of the groups that a member is trained with; default: 0.8.
    steps : str or list of str
        Transforms of the spectra in their order, such as "snv,d1:7": snv, vector, mean, log, d1:W, d2:W (derivatives over W bands).
    cv : int
        Folds of the cross-validation; default: 10.
    seed : int
        Seed of the folds and members; default: 1.
    threads : int or "auto"
        Number of threads; default: all.
    device : "cpu", "cuda" or "auto"
        Where it is computed.

    Attributes
    ----------
    metrics_ : dict
        Metrics of the held-out samples: r2, rmse and others.
    model_ : Model
        The model of gdal_hsi_regression_train.

    Examples
    --------
    >>> import numpy as np
    >>> import gdal_hsi as hsi
    >>> rng = np.random.default_rng(0)
    >>> nitrogen = rng.uniform(1, 4, 200)
    >>> pixels = rng.normal(0.5, 0.01, (200, 20)) - np.outer(nitrogen, np.linspace(0, 0.05, 20))
    >>> plsr = hsi.PLSR(members=5).fit(pixels[:150], nitrogen[:150])
    >>> estimate, deviation = plsr.predict(pixels[150:], return_std=True)
    >>> bool(np.abs(estimate - nitrogen[150:]).mean() < 0.3)
    True
    """
    _method, _parameters = "plsr", ("n_components", "max_components", "scale", "members", "share", *_RegressorOfPixels._parameters)

    def __init__(self, n_components=None, *, max_components=None, scale=False, members=None, share=None, steps=None, cv=None,
                 seed=None, threads=None, device=None):
        self.n_components, self.max_components, self.scale, self.members, self.share = n_components, max_components, scale, members, share
        self.steps, self.cv, self.seed, self.threads, self.device = steps, cv, seed, threads, device


class Ridge(_RegressorOfPixels):
    """Ridge regression, as gdal_hsi_regression_train computes it.

    Parameters
    ----------
    lambda_ : float, list or None
        Penalty in mean variances of a band, or candidates to choose from; None: the grid of the tool.
    scale : bool
        Divide each band by its standard deviation.
    members : int
        Number of models, each of a share of the groups; the estimate is their mean. Default: 100.
    share : float
        Share of the groups that a member is trained with; default: 0.8.
    steps : str or list of str
        Transforms of the spectra in their order, such as "snv,d1:7": snv, vector, mean, log, d1:W, d2:W (derivatives over W bands).
    cv : int
        Folds of the cross-validation; default: 10.
    seed : int
        Seed of the folds and members; default: 1.
    threads : int or "auto"
        Number of threads; default: all.
    device : "cpu", "cuda" or "auto"
        Where it is computed.

    Attributes
    ----------
    metrics_ : dict
        Metrics of the held-out samples: r2, rmse and others.
    model_ : Model
        The model of gdal_hsi_regression_train.

    Examples
    --------
    >>> import numpy as np
    >>> import gdal_hsi as hsi
    >>> rng = np.random.default_rng(0)
    >>> nitrogen = rng.uniform(1, 4, 200)
    >>> pixels = rng.normal(0.5, 0.01, (200, 20)) - np.outer(nitrogen, np.linspace(0, 0.05, 20))
    >>> hsi.Ridge(members=5).fit(pixels, nitrogen).metrics_["r2"] > 0.8
    True
    """
    _method, _parameters = "ridge", ("lambda_", "scale", "members", "share", *_RegressorOfPixels._parameters)

    def __init__(self, lambda_=None, *, scale=False, members=None, share=None, steps=None, cv=None, seed=None, threads=None, device=None):
        self.lambda_, self.scale, self.members, self.share = lambda_, scale, members, share
        self.steps, self.cv, self.seed, self.threads, self.device = steps, cv, seed, threads, device


class GP(_RegressorOfPixels):
    """Regression by a Gaussian process, as gdal_hsi_regression_train computes it.

    Parameters
    ----------
    select : "likelihood" or "cv"
        Choose length and noise by the greatest likelihood, or by the least error of held-out samples.
    max_samples : int
        Largest number of pixels for training; default: 1000.
    steps : str or list of str
        Transforms of the spectra in their order, such as "snv,d1:7": snv, vector, mean, log, d1:W, d2:W (derivatives over W bands).
    cv : int
        Folds of the cross-validation; default: 10.
    seed : int
        Seed of the folds and members; default: 1.
    threads : int or "auto"
        Number of threads; default: all.
    device : "cpu", "cuda" or "auto"
        Where it is computed.

    Attributes
    ----------
    metrics_ : dict
        Metrics of the held-out samples: r2, rmse and others.
    model_ : Model
        The model of gdal_hsi_regression_train.

    Examples
    --------
    >>> import numpy as np
    >>> import gdal_hsi as hsi
    >>> rng = np.random.default_rng(0)
    >>> nitrogen = rng.uniform(1, 4, 200)
    >>> pixels = rng.normal(0.5, 0.01, (200, 20)) - np.outer(nitrogen, np.linspace(0, 0.05, 20))
    >>> hsi.GP().fit(pixels, nitrogen).metrics_["r2"] > 0.8
    True
    """
    _method, _parameters = "gp", ("select", "max_samples", *_RegressorOfPixels._parameters)

    def __init__(self, *, select=None, max_samples=None, steps=None, cv=None, seed=None, threads=None, device=None):
        self.select, self.max_samples = select, max_samples
        self.steps, self.cv, self.seed, self.threads, self.device = steps, cv, seed, threads, device


class SVR(_RegressorOfPixels):
    """Support vector regression, as gdal_hsi_regression_train computes it.

    Parameters
    ----------
    C, gamma : float, list or None
        Penalty of errors and gamma of the kernel, or candidates to choose from; None: the grid of the tool.
    epsilon : float
        Errors below this, in standard deviations, are free; default: 0.1.
    max_samples : int
        Largest number of pixels for training; default: 1000.
    steps : str or list of str
        Transforms of the spectra in their order, such as "snv,d1:7": snv, vector, mean, log, d1:W, d2:W (derivatives over W bands).
    cv : int
        Folds of the cross-validation; default: 10.
    seed : int
        Seed of the folds and members; default: 1.
    threads : int or "auto"
        Number of threads; default: all.
    device : "cpu", "cuda" or "auto"
        Where it is computed.

    Attributes
    ----------
    metrics_ : dict
        Metrics of the held-out samples: r2, rmse and others.
    model_ : Model
        The model of gdal_hsi_regression_train.

    Examples
    --------
    >>> import numpy as np
    >>> import gdal_hsi as hsi
    >>> rng = np.random.default_rng(0)
    >>> nitrogen = rng.uniform(1, 4, 200)
    >>> pixels = rng.normal(0.5, 0.01, (200, 20)) - np.outer(nitrogen, np.linspace(0, 0.05, 20))
    >>> hsi.SVR(C=8, gamma=0.1).fit(pixels, nitrogen).metrics_["r2"] > 0.8
    True
    """
    _method, _parameters = "svr", ("C", "gamma", "epsilon", "max_samples", *_RegressorOfPixels._parameters)

    def __init__(self, C=None, gamma=None, *, epsilon=None, max_samples=None, steps=None, cv=None, seed=None, threads=None, device=None):
        self.C, self.gamma, self.epsilon, self.max_samples = C, gamma, epsilon, max_samples
        self.steps, self.cv, self.seed, self.threads, self.device = steps, cv, seed, threads, device


class EADP(_Transformer, _Base):
    """Extended anisotropic diffusion profiles of whole scenes, as gdal_hsi_eadp computes them.

    X has the shape (bands, lines, samples), and so has the result. fit() only remembers the number of bands. Its tags tell
    scikit-learn that it takes three-dimensional arrays.

    Parameters
    ----------
    n_components : int or None
        Number of principal components that are diffused; default: 7.
    threads : int or "auto"
        Number of threads; default: all.
    device : "cpu", "cuda" or "auto"
        Where it is computed.

    Examples
    --------
    >>> import numpy as np
    >>> import gdal_hsi as hsi
    >>> scene = np.random.default_rng(0).random((10, 30, 40))
    >>> hsi.EADP(n_components=2).fit_transform(scene).shape             # eight diffused copies of each component
    (18, 30, 40)
    """

    def _more_tags(self):
        return {"X_types": ["3darray"], "stateless": False, "preserves_dtype": ["float32"], "no_validation": True}

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.three_d_array = False, True
        tags.transformer_tags.preserves_dtype = ["float32"]
        tags.no_validation = True
        return tags

    def __init__(self, n_components=None, *, threads=None, device=None):
        self.n_components, self.threads, self.device = n_components, threads, device

    def fit(self, X, y=None):
        """Remembers the number of bands."""
        self.n_features_in_, self._bands = self._number(X), _Bands(X)
        return self

    @staticmethod
    def _number(X):
        return Layout(X, "X").cube().shape[0]

    def transform(self, X):
        """The profile of a scene."""
        import gdal_hsi
        if not hasattr(self, "n_features_in_"):
            raise _NotFitted("This EADP instance is not fitted yet. Call 'fit' with appropriate arguments before using this "
                             "estimator.")
        if self._number(X) != self.n_features_in_:
            raise ValueError(f"X has {self._number(X)} features, but EADP is expecting {self.n_features_in_} features as input.")
        _Bands(X).check(self._bands)
        try:
            return gdal_hsi.eadp(X, nc=self.n_components, threads=self.threads, device=self.device)
        except Error as error:
            raise type(error)(re.sub(r"^nc\b", PARAMETERS["nc"], error.message), error.advice) from None
