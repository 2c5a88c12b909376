# SPDX-License-Identifier: MIT
import os
from collections.abc import Mapping, Sequence
from typing import Literal, Optional, TypeVar, Union, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._arrays import Model

_Self = TypeVar("_Self", bound="_Estimator")
_Model = Union[Model, Mapping[str, object], str, os.PathLike[str]]
_Threads = Optional[Union[int, str]]

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
    n_components: Optional[float]
    n_components_: int
    components_: NDArray[np.float64]
    explained_variance_: NDArray[np.float64]
    explained_variance_ratio_: NDArray[np.float64]
    eigenvalues_: NDArray[np.float64]
    mean_: NDArray[np.float64]
    def fit(self: _Self, X: ArrayLike, y: object = ...) -> _Self: ...
    def fit_transform(self, X: ArrayLike, y: object = ...) -> NDArray[np.float32]: ...
    def transform(self, X: ArrayLike) -> NDArray[np.float32]: ...
    def inverse_transform(self, X: ArrayLike) -> NDArray[np.float32]: ...
    def get_feature_names_out(self, input_features: Optional[ArrayLike] = ...) -> NDArray[np.object_]: ...

class PCA(_Components):
    scale: bool
    whiten: bool
    scale_: Optional[NDArray[np.float64]]
    def __init__(self, n_components: Optional[float] = ..., *, scale: bool = ..., whiten: bool = ..., threads: _Threads = ...,
                 device: Optional[str] = ...) -> None: ...

class MNF(_Components):
    def __init__(self, n_components: Optional[float] = ..., *, threads: _Threads = ..., device: Optional[str] = ...) -> None: ...

class _ClassifierOfPixels(_Estimator):
    classes_: NDArray[np.generic]
    def fit(self: _Self, X: ArrayLike, y: ArrayLike) -> _Self: ...
    def predict(self, X: ArrayLike) -> NDArray[np.generic]: ...
    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]: ...
    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: Optional[ArrayLike] = ...) -> float: ...

class SVM(_ClassifierOfPixels):
    C: Union[float, Literal["search"]]
    gamma: Union[float, Literal["scale", "auto", "search"]]
    C_: float
    gamma_: float
    class_weight: Union[None, Literal["balanced"], Mapping[object, float]]
    probability: bool
    seed: Optional[int]
    def __init__(self, C: Union[float, Literal["search"]] = ..., gamma: Union[float, Literal["scale", "auto", "search"]] = ..., *,
                 class_weight: Union[None, Literal["balanced"], Mapping[object, float]] = ..., probability: bool = ...,
                 seed: Optional[int] = ..., threads: _Threads = ..., device: Optional[str] = ...) -> None: ...
    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]: ...

class SAHIC(_ClassifierOfPixels):
    def __init__(self, *, threads: _Threads = ..., device: Optional[str] = ...) -> None: ...

_Text = Optional[str]
_Number = Optional[float]
_Steps = Optional[Union[str, Sequence[str]]]
_Numbers = Optional[Union[float, Sequence[float]]]

class _RegressorOfPixels(_Estimator):
    metrics_: dict[str, Optional[float]]
    steps: _Steps
    cv: Optional[int]
    seed: Optional[int]
    def fit(self: _Self, X: ArrayLike, y: ArrayLike, groups: Optional[ArrayLike] = ...) -> _Self: ...
    @overload
    def predict(self, X: ArrayLike, return_std: Literal[False] = ...) -> NDArray[np.float64]: ...
    @overload
    def predict(self, X: ArrayLike, return_std: Literal[True]) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
    def outside(self, X: ArrayLike) -> NDArray[np.uint8]: ...
    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: Optional[ArrayLike] = ...) -> float: ...

class PLSR(_RegressorOfPixels):
    n_components: Optional[int]
    max_components: Optional[int]
    scale: bool
    members: Optional[int]
    share: _Number
    def __init__(self, n_components: Optional[int] = ..., *, max_components: Optional[int] = ..., scale: bool = ...,
                 members: Optional[int] = ..., share: _Number = ..., steps: _Steps = ..., cv: Optional[int] = ...,
                 seed: Optional[int] = ..., threads: _Threads = ..., device: Optional[str] = ...) -> None: ...

class Ridge(_RegressorOfPixels):
    lambda_: _Numbers
    scale: bool
    members: Optional[int]
    share: _Number
    def __init__(self, lambda_: _Numbers = ..., *, scale: bool = ..., members: Optional[int] = ..., share: _Number = ...,
                 steps: _Steps = ..., cv: Optional[int] = ..., seed: Optional[int] = ..., threads: _Threads = ..., device: Optional[str] = ...) -> None: ...

class GP(_RegressorOfPixels):
    select: _Text
    max_samples: Optional[int]
    def __init__(self, *, select: _Text = ..., max_samples: Optional[int] = ..., steps: _Steps = ..., cv: Optional[int] = ...,
                 seed: Optional[int] = ..., threads: _Threads = ..., device: Optional[str] = ...) -> None: ...

class SVR(_RegressorOfPixels):
    C: _Numbers
    gamma: _Numbers
    epsilon: _Number
    max_samples: Optional[int]
    def __init__(self, C: _Numbers = ..., gamma: _Numbers = ..., *, epsilon: _Number = ..., max_samples: Optional[int] = ...,
                 steps: _Steps = ..., cv: Optional[int] = ..., seed: Optional[int] = ..., threads: _Threads = ..., device: Optional[str] = ...) -> None: ...

class EADP(_Base):
    n_components: Optional[int]
    def __init__(self, n_components: Optional[int] = ..., *, threads: _Threads = ..., device: Optional[str] = ...) -> None: ...
    def fit(self, X: ArrayLike, y: object = ...) -> EADP: ...
    def transform(self, X: ArrayLike) -> NDArray[np.float32]: ...
    def fit_transform(self, X: ArrayLike, y: object = ...) -> NDArray[np.float32]: ...
