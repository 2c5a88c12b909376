# SPDX-License-Identifier: MIT
import os
from collections.abc import Mapping
from typing import Literal, Optional, TypeVar, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._estimators import _Base, _Threads
from ._spectra import Spectra
from ._statistics import Statistics

_Fitted = TypeVar("_Fitted", bound=_OfPixels)
_Library = Union[Spectra, ArrayLike, Mapping[str, ArrayLike], str, os.PathLike[str]]

class _OfPixels(_Base):
    def fit(self: _Fitted, X: ArrayLike, y: object = ...) -> _Fitted: ...

class KMeans(_OfPixels):
    cluster_centers_: NDArray[np.float32]
    labels_: NDArray[np.intp]
    inertia_: float
    n_iter_: int
    def __init__(self, n_clusters: int = ..., *, distance: Literal["euclidean", "angle"] = ..., max_iter: int = ..., init: Optional[_Library] = ...,
                 seed: Optional[int] = ..., threads: _Threads = ..., device: Optional[str] = ...) -> None: ...
    def fit_predict(self, X: ArrayLike, y: object = ...) -> NDArray[np.intp]: ...
    def predict(self, X: ArrayLike) -> NDArray[np.intp]: ...
    def transform(self, X: ArrayLike) -> NDArray[np.float64]: ...
    def fit_transform(self, X: ArrayLike, y: object = ...) -> NDArray[np.float64]: ...

class Unmixer(_OfPixels):
    endmembers_: NDArray[Union[np.float32, np.float64]]
    names_: list[str]
    def __init__(self, endmembers: Optional[_Library] = ..., *, n_endmembers: int = ..., method: Literal["fcls", "scls", "nnls", "ucls"] = ...,
                 search: Literal["nfindr", "vca", "atdca"] = ..., seed: Optional[int] = ..., threads: _Threads = ...,
                 device: Optional[str] = ...) -> None: ...
    def transform(self, X: ArrayLike) -> NDArray[np.float32]: ...
    def fit_transform(self, X: ArrayLike, y: object = ...) -> NDArray[np.float32]: ...
    def inverse_transform(self, X: ArrayLike) -> NDArray[np.float32]: ...

class Detector(_OfPixels):
    statistics_: Statistics
    def __init__(self, method: Literal["rx", "ace", "mf", "cem", "sam", "sid"] = ..., target: Optional[_Library] = ..., *,
                 shrinkage: Optional[float] = ..., statistics: Union[None, Statistics, str, os.PathLike[str]] = ..., threads: _Threads = ...,
                 device: Optional[str] = ...) -> None: ...
    def decision_function(self, X: ArrayLike) -> NDArray[np.float32]: ...
