# SPDX-License-Identifier: MIT
import os
from collections.abc import Mapping
from typing import Optional, TypeVar, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._arrays import Model

_Self = TypeVar("_Self", bound="_Estimator")
_Model = Union[Model, Mapping[str, object], str, os.PathLike[str]]
_Threads = Optional[Union[int, str]]
_Number = Optional[float]

class _Base:
    n_features_in_: int
    threads: _Threads
    device: Optional[str]
    def get_params(self, deep: bool = ...) -> dict[str, object]: ...
    def set_params(self: _AnyBase, **params: object) -> _AnyBase: ...

_AnyBase = TypeVar("_AnyBase", bound=_Base)

class _Estimator(_Base):
    model_: Model
    def save(self, path: Union[str, os.PathLike[str]]) -> None: ...
    @classmethod
    def load(cls: type[_Self], model: _Model, **params: object) -> _Self: ...

class _Components(_Estimator):
    n_components: Optional[int]
    n_components_: int
    eigenvalues_: NDArray[np.float64]
    mean_: NDArray[np.float64]
    def fit(self: _Self, X: ArrayLike, y: object = ...) -> _Self: ...
    def fit_transform(self, X: ArrayLike, y: object = ...) -> NDArray[np.float32]: ...
    def transform(self, X: ArrayLike) -> NDArray[np.float32]: ...
    def inverse_transform(self, X: ArrayLike) -> NDArray[np.float32]: ...
    def get_feature_names_out(self, input_features: Optional[ArrayLike] = ...) -> NDArray[np.object_]: ...

class PCA(_Components):
    explained_variance_: NDArray[np.float64]
    explained_variance_ratio_: NDArray[np.float64]
    scale: bool
    whiten: bool
    def __init__(self, n_components: Optional[int] = ..., *, scale: bool = ..., whiten: bool = ..., threads: _Threads = ...,
                 device: Optional[str] = ...) -> None: ...

class MNF(_Components):
    def __init__(self, n_components: Optional[int] = ..., *, threads: _Threads = ..., device: Optional[str] = ...) -> None: ...

class _ClassifierOfPixels(_Estimator):
    classes_: NDArray[np.generic]
    def fit(self: _Self, X: ArrayLike, y: ArrayLike) -> _Self: ...
    def predict(self, X: ArrayLike) -> NDArray[np.generic]: ...
    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]: ...
    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: Optional[ArrayLike] = ...) -> float: ...

class SVM(_ClassifierOfPixels):
    C: _Number
    gamma: _Number
    probability: bool
    seed: Optional[int]
    def __init__(self, C: _Number = ..., gamma: _Number = ..., *, probability: bool = ..., seed: Optional[int] = ...,
                 threads: _Threads = ..., device: Optional[str] = ...) -> None: ...

class SAHIC(_ClassifierOfPixels):
    def __init__(self, *, threads: _Threads = ..., device: Optional[str] = ...) -> None: ...

class EADP(_Base):
    n_components: Optional[int]
    def __init__(self, n_components: Optional[int] = ..., *, threads: _Threads = ..., device: Optional[str] = ...) -> None: ...
    def fit(self, X: ArrayLike, y: object = ...) -> EADP: ...
    def transform(self, X: ArrayLike) -> NDArray[np.float32]: ...
    def fit_transform(self, X: ArrayLike, y: object = ...) -> NDArray[np.float32]: ...
