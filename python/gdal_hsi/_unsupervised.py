# SPDX-License-Identifier: MIT
# mypy: ignore-errors
"""Estimators without classes to learn from: clusters, abundances of endmembers, scores of targets and anomalies. Pixels x bands in, as
those of _estimators.py.
"""
import numpy as np

from . import _estimators, _library
from ._arrays import Model, is_data_array
from ._errors import UsageError
from ._estimators import _call, _Fitted, _options_for, _pixels, _rows, _scene, _Transformer
from ._spectra import Spectra
from ._statistics import Statistics

try:
    from sklearn.base import ClusterMixin as _Cluster
except ImportError:
    class _Cluster:
        _estimator_type = "clusterer"

        def fit_predict(self, X, y=None, **params):
            """fit(), and the cluster of each pixel."""
            return self.fit(X, y, **params).labels_

BLOCK = 1 << 22  # values of a block of distances


def _cube_of(spectra, names=None):
    """Spectra, one per row, as the library that the tools take."""
    return _library.Cube(np.asarray(spectra, dtype=float).T[:, np.newaxis, :], names=names)


class _OfPixels(_Fitted):
    """Estimators without a model of the tools."""

    def _refit(self):
        """Forgets the last fit, so that one that fails leaves nothing."""
        if hasattr(self, self._fitted) and self._fitted != "n_features_in_":
            delattr(self, self._fitted)


class KMeans(_Cluster, _Transformer, _OfPixels):
    """k-means clustering, as gdal_hsi_cluster computes it.

    Parameters
    ----------
    n_clusters : int
        Number of clusters.
    distance : "euclidean" or "angle"
        Distance of a pixel from a centre.
    max_iter : int
        Largest number of iterations.
    init : Spectra or array of shape (n_clusters, bands)
        Centres to start from, instead of those of k-means++.
    seed : int
        Seed of k-means++. The same seed gives the same clusters with any number of threads.
    threads : int or "auto"
        Number of threads; default: all.
    device : "cpu", "cuda" or "auto"
        Where it is computed.

    Attributes
    ----------
    cluster_centers_ : array of shape (n_clusters, bands)
        The centres.
    labels_ : array of shape (pixels,)
        Cluster of each pixel of fit(), from 0; -1 where all values are zero.
    inertia_ : float
        Sum of squared distances from the centres.
    n_iter_ : int
        Number of iterations.

    Examples
    --------
    >>> import numpy as np
    >>> import gdal_hsi as hsi
    >>> rng = np.random.default_rng(0)
    >>> pixels = np.repeat(rng.random((3, 10)), 100, axis=0) + rng.normal(0, 0.01, (300, 10))
    >>> kmeans = hsi.KMeans(3, seed=1).fit(pixels)
    >>> sorted(np.bincount(kmeans.labels_).tolist())
    [100, 100, 100]
    """
    _fitted = "cluster_centers_"

    def __init__(self, n_clusters=8, *, distance="euclidean", max_iter=100, init=None, seed=None, threads=None, device=None):
        self.n_clusters, self.distance, self.max_iter, self.init, self.seed = n_clusters, distance, max_iter, init, seed
        self.threads, self.device = threads, device

    def fit(self, X, y=None):
        """Finds the clusters of the pixels."""
        self._refit()
        X = _pixels(X, self, fitting=True)
        options = {"k": self.n_clusters, "distance": self.distance, "iterations": self.max_iter, "seed": self.seed, "threads": self.threads,
                   "device": self.device}
        inputs = {"src": _scene(X, self)}
        if self.init is not None:
            options["k"] = options["seed"] = None
            inputs["start"] = _cube_of(Spectra(self.init).spectra)
        elif _options_for("cluster", {"k": self.n_clusters})["k"] > X.shape[0]:
            raise ValueError(f"n_samples={X.shape[0]} should be >= n_clusters={self.n_clusters}.")
        elif self.n_clusters == 1:
            return self._fit_one(X)
        outcome = _call("cluster", options, inputs, ["dst", "centres"])
        found = outcome.facts["report"]["clusters"]
        self.cluster_centers_ = np.asarray(Spectra.from_text(outcome.texts["centres"]).spectra)
        self.labels_ = outcome.arrays["dst"][0, 0].astype(np.intp) - 1
        self.inertia_, self.n_iter_ = float(found["inertia"]), int(found["iterations"])
        return self

    def _fit_one(self, X):
        """The tool makes two clusters at least; one is the mean."""
        there = np.asarray(X).any(axis=1)
        values = np.asarray(X, dtype=float)[there if there.any() else slice(None)]
        if self.distance == "angle":
            values = values / np.linalg.norm(values, axis=1, keepdims=True)
        self.cluster_centers_ = values.mean(axis=0, keepdims=True).astype(np.float32)
        self.labels_, self.n_iter_ = np.where(there, 0, -1).astype(np.intp), 1
        self.inertia_ = float((self.transform(X)[there] ** 2).sum())
        return self

    def transform(self, X):
        """The distance of each pixel from each centre, pixels x clusters: Euclidean, or the angle in radians."""
        self._check_fitted()
        X = _pixels(X, self)
        centres, angle = np.asarray(self.cluster_centers_, dtype=float), self.distance == "angle"
        origin = np.zeros(X.shape[1]) if angle else centres.mean(axis=0)  # near the centres few digits are lost
        made, step = np.empty((len(X), len(centres))), max(1, BLOCK // max(centres.shape))
        for first in range(0, len(X), step):
            x = np.asarray(X[first:first + step], dtype=float) - origin
            if angle:
                lengths = np.linalg.norm(x, axis=1)[:, None] * np.linalg.norm(centres, axis=1)
                with np.errstate(divide="ignore", invalid="ignore"):
                    made[first:first + step] = np.arccos(np.clip(np.nan_to_num(x @ centres.T / lengths), -1, 1))
            else:
                c = centres - origin
                made[first:first + step] = np.sqrt(np.maximum((x ** 2).sum(axis=1)[:, None] + (c ** 2).sum(axis=1) - 2 * x @ c.T, 0))
        return made

    def predict(self, X):
        """The nearest centre of each pixel, from 0 on."""
        return self.transform(X).argmin(axis=1)

    @property
    def _n_features_out(self):
        return len(self.cluster_centers_)

    def get_feature_names_out(self, input_features=None):
        """kmeans0, kmeans1 ..."""
        self._check_fitted()
        _estimators._check_input_features(self, input_features)
        return np.array([f"kmeans{k}" for k in range(self._n_features_out)], dtype=object)


class Unmixer(_Transformer, _OfPixels):
    """Abundances of endmembers in each pixel, as gdal_hsi_unmix computes them.

    transform() returns pixels x endmembers, NaN for a pixel whose values are all zero; inverse_transform() mixes the endmembers.

    Parameters
    ----------
    endmembers : Spectra, array of shape (endmembers, bands), dict, path or None
        The endmembers; None: n_endmembers of them are searched in the pixels of fit().
    n_endmembers : int
        Number of endmembers that are searched.
    method : "fcls", "scls", "nnls" or "ucls"
        Abundances that are not negative and sum to 1 (fcls), sum to 1 (scls), are not negative (nnls), or are free (ucls).
    search : "nfindr", "vca" or "atdca"
        Method of the search.
    seed : int
        Seed of vca.
    threads : int or "auto"
        Number of threads; default: all.
    device : "cpu", "cuda" or "auto"
        Where it is computed.

    Attributes
    ----------
    endmembers_ : array of shape (endmembers, bands)
        The endmembers.
    names_ : list of str
        Their names.

    Examples
    --------
    >>> import numpy as np
    >>> import gdal_hsi as hsi
    >>> rng = np.random.default_rng(0)
    >>> materials, shares = rng.random((3, 20)), rng.dirichlet([1, 1, 1], 200)
    >>> abundances = hsi.Unmixer(materials).fit_transform(shares @ materials)
    >>> np.allclose(abundances, shares, atol=1e-3)
    True
    """
    _fitted = "endmembers_"

    def __init__(self, endmembers=None, *, n_endmembers=3, method="fcls", search="nfindr", seed=None, threads=None, device=None):
        self.endmembers, self.n_endmembers, self.method, self.search, self.seed = endmembers, n_endmembers, method, search, seed
        self.threads, self.device = threads, device

    def _more_tags(self):
        return {"preserves_dtype": ["float32"]}

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def fit(self, X, y=None):
        """Takes the endmembers, or finds them in the pixels."""
        self._refit()
        X = _pixels(X, self, fitting=True)
        if self.endmembers is not None:
            library = Spectra(self.endmembers)
            if library.spectra.shape[1] != X.shape[1]:
                raise UsageError(f"endmembers have {library.spectra.shape[1]} bands, but X has {X.shape[1]}", "Use resample() to give both the same bands.")
        else:
            if X.shape[0] < 2 or X.shape[1] < 2:
                raise ValueError(f"n_samples={X.shape[0]}, {X.shape[1]} feature(s): endmembers need at least two pixels and two bands.")
            options = {"t": self.n_endmembers, "method": self.search, "seed": self.seed if self.search == "vca" else None, "threads": self.threads}
            library = Spectra.from_text(_call("endmembers", options, {"src": _scene(X, self)}, ["dst", "spectra"]).texts["spectra"])
        self.endmembers_, self.names_ = np.asarray(library.spectra), list(library.names)
        return self

    def transform(self, X):
        """The abundances of the endmembers, pixels x endmembers."""
        self._check_fitted()
        X = _pixels(X, self)
        library = _cube_of(self.endmembers_, self.names_)
        options = {"method": self.method, "any-scale": True, "threads": self.threads, "device": self.device}
        return _rows(_call("unmix", options, {"src": _scene(X), "library": library}, ["dst"]).arrays["dst"])

    def inverse_transform(self, X):
        """Pixels that have these abundances, pixels x bands."""
        self._check_fitted()
        X = _pixels(X)
        if X.shape[1] != len(self.endmembers_):
            raise ValueError(f"X has {X.shape[1]} features, but Unmixer has {len(self.endmembers_)} endmembers.")
        return (np.asarray(X, dtype=float) @ self.endmembers_).astype(np.float32)

    @property
    def _n_features_out(self):
        return len(self.endmembers_)

    def get_feature_names_out(self, input_features=None):
        """The endmembers' names."""
        self._check_fitted()
        _estimators._check_input_features(self, input_features)
        return np.array(self.names_, dtype=object)


class Detector(_OfPixels):
    """Scores of targets or anomalies against the background of fit(), as gdal_hsi_detect computes them.

    decision_function() returns one score per pixel, with several targets pixels x targets. Scores are large at targets and anomalies:
    with sam and sid they are the negative angle or divergence.

    Parameters
    ----------
    method : "rx", "ace", "mf", "cem", "sam" or "sid"
        Anomalies (rx), targets against the background (ace, mf, cem), or targets without a background (sam, sid).
    target : Spectra or array of shape (bands,) or (targets, bands)
        One spectrum or several, as for gdal_hsi.detect(); not with rx.
    shrinkage : float
        Shrinkage of the covariance, as for gdal_hsi.detect().
    statistics : Statistics or path
        Statistics of the background, instead of those of the pixels of fit().
    threads : int or "auto"
        Number of threads; default: all.
    device : "cpu", "cuda" or "auto"
        Where it is computed.

    Attributes
    ----------
    statistics_ : Statistics
        Statistics of the background; not with sam and sid.

    Examples
    --------
    >>> import numpy as np
    >>> import gdal_hsi as hsi
    >>> rng = np.random.default_rng(0)
    >>> background, target = rng.normal(1, 0.1, (500, 10)), np.linspace(1, 2, 10)
    >>> detector = hsi.Detector("ace", target).fit(background)
    >>> scores = detector.decision_function(np.vstack([background[:99], target]))
    >>> int(scores.argmax())
    99
    """

    def __init__(self, method="rx", target=None, *, shrinkage=None, statistics=None, threads=None, device=None):
        self.method, self.target, self.shrinkage, self.statistics = method, target, shrinkage, statistics
        self.threads, self.device = threads, device

    def fit(self, X, y=None):
        """Learns the statistics of the background."""
        X = _pixels(X, self, fitting=True)
        _options_for("detect", {"method": self.method, "shrinkage": self.shrinkage, "threads": self.threads, "device": self.device})
        if (self.method == "rx") != (self.target is None):
            raise UsageError("target is missing" if self.target is None else "target cannot be used with method='rx'",
                             "Give a spectrum for all methods except rx.")
        if hasattr(self, "statistics_"):
            del self.statistics_
        if self.statistics is not None:
            self.statistics_ = self.statistics if isinstance(self.statistics, Model) else Statistics.load(self.statistics)
        elif self.method not in ("sam", "sid"):
            if X.shape[0] < 2:
                raise ValueError(f"n_samples={X.shape[0]}: a background needs at least two pixels.")
            self.statistics_ = Statistics(_call("statistics", {"threads": self.threads}, {"scene": _scene(X, self)}, ["o"]).texts["o"])
        return self

    def decision_function(self, X):
        """The scores of pixels."""
        self._check_fitted()
        X = _pixels(X, self)
        inputs = {"src": _scene(X)}
        if self.target is not None:
            target = self.target if isinstance(self.target, Spectra) or is_data_array(self.target) else np.atleast_2d(self.target) if isinstance(
                self.target, (list, tuple, np.ndarray)) else self.target
            spectra = Spectra(target)
            if spectra.spectra.shape[1] != X.shape[1]:
                raise UsageError(f"target has {spectra.spectra.shape[1]} bands, but X has {X.shape[1]}", "Use resample() to give both the same bands.")
            inputs["target"] = _cube_of(spectra.spectra, spectra.names)
        if hasattr(self, "statistics_"):
            inputs["statistics"] = self.statistics_
        options = {"method": self.method, "shrinkage": self.shrinkage, "any-scale": True if self.target is not None else None, "threads": self.threads,
                   "device": self.device}
        scores = _rows(_call("detect", options, inputs, ["dst"]).arrays["dst"])
        scores = -scores if self.method in ("sam", "sid") else scores
        return scores[:, 0] if scores.shape[1] == 1 else scores
