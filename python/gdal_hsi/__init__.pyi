# SPDX-License-Identifier: MIT
# Made by scripts/update_docs from the definitions of the tools.
import builtins
import os
from collections.abc import Callable, Sequence
from typing import Any, Literal, Union

import numpy as np
from numpy.typing import ArrayLike

PathLike = Union[str, os.PathLike[str]]

class Error(Exception):
    message: str
    advice: str
    def __init__(self, message: str, advice: str = ...) -> None: ...

class UsageError(Error, ValueError): ...
class Cancelled(Error): ...
class Warning(UserWarning): ...

class Result:
    report: dict[str, Any]
    warnings: list[str]
    notes: list[str]
    def __getattr__(self, name: str) -> Any: ...
    def __iter__(self) -> Any: ...
    def __len__(self) -> int: ...

class Spectra:
    spectra: np.ndarray
    names: list[str]
    wavelengths: np.ndarray | None
    fwhm: np.ndarray | None
    band_numbers: list[int] | None
    def __init__(self, spectra: ArrayLike, names: Sequence[str] | None = ..., wavelengths: ArrayLike | None = ...,
                 fwhm: ArrayLike | None = ..., band_numbers: Sequence[int] | None = ...) -> None: ...
    def __len__(self) -> int: ...
    def __getitem__(self, key: str | int) -> np.ndarray: ...
    def __array__(self, dtype: Any = ..., copy: bool | None = ...) -> np.ndarray: ...

class Model(str):
    def save(self, path: PathLike) -> None: ...
    @classmethod
    def load(cls, path: PathLike) -> Model: ...
    @property
    def document(self) -> dict[str, Any]: ...

class _Estimator:
    model_: Model
    n_features_in_: int
    def get_params(self, deep: bool = ...) -> dict[str, Any]: ...
    def set_params(self, **params: Any) -> Any: ...
    def save(self, path: PathLike) -> None: ...
    @classmethod
    def load(cls, model: Model | dict[str, Any] | PathLike, **params: Any) -> Any: ...

class _Components(_Estimator):
    n_components_: int
    eigenvalues_: np.ndarray
    mean_: np.ndarray
    def fit(self, X: ArrayLike, y: Any = ...) -> Any: ...
    def fit_transform(self, X: ArrayLike, y: Any = ...) -> np.ndarray: ...
    def transform(self, X: ArrayLike) -> np.ndarray: ...
    def inverse_transform(self, X: ArrayLike) -> np.ndarray: ...
    def get_feature_names_out(self, input_features: Any = ...) -> np.ndarray: ...

class PCA(_Components):
    explained_variance_: np.ndarray
    explained_variance_ratio_: np.ndarray
    def __init__(self, n_components: int | None = ..., *, scale: bool = ..., whiten: bool = ..., threads: int | None = ...,
                 device: str | None = ...) -> None: ...

class MNF(_Components):
    def __init__(self, n_components: int | None = ..., *, threads: int | None = ..., device: str | None = ...) -> None: ...

class _Classifier(_Estimator):
    classes_: np.ndarray
    def fit(self, X: ArrayLike, y: ArrayLike) -> Any: ...
    def predict(self, X: ArrayLike) -> np.ndarray: ...
    def predict_proba(self, X: ArrayLike) -> np.ndarray: ...
    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = ...) -> float: ...

class SVM(_Classifier):
    def __init__(self, C: float | None = ..., gamma: float | None = ..., *, probability: bool = ..., seed: int | None = ...,
                 threads: int | None = ..., device: str | None = ...) -> None: ...

class SAHIC(_Classifier):
    def __init__(self, *, threads: int | None = ..., device: str | None = ...) -> None: ...

class EADP:
    n_features_in_: int
    def __init__(self, n_components: int | None = ..., *, threads: int | None = ..., device: str | None = ...) -> None: ...
    def fit(self, X: ArrayLike, y: Any = ...) -> EADP: ...
    def transform(self, X: ArrayLike) -> np.ndarray: ...
    def fit_transform(self, X: ArrayLike, y: Any = ...) -> np.ndarray: ...

__version__: str

def algorithms() -> list[str]: ...
def info(path: PathLike, **options: Any) -> dict[str, Any]: ...
def run(tool: str, *arguments: Any, progress: bool | Callable[[float], object] | None = ..., **options: Any) -> str: ...
def accuracy(
    map: ArrayLike | PathLike,
    reference: ArrayLike | PathLike,
    *,
    mask: ArrayLike | PathLike | None = ...,
    training: ArrayLike | PathLike | None = ...,
    unclassified: Literal['ignore', 'error'] | None = ...,
    zero: Literal['auto', 'class', 'none'] | None = ...,
    leave_out: str | float | Sequence[str | float] | None = ...,
    csv: bool | PathLike = ...,
    band_axis: int = ...,
    nodata: float | None = ...,
    wavelengths: ArrayLike | None = ...,
    fwhm: ArrayLike | None = ...,
    names: Sequence[str] | None = ...,
    out: Any = ...,
    full: bool = ...,
    progress: bool | Callable[[float], object] | None = ...,
) -> Any: ...
def atdca(
    src: ArrayLike | PathLike,
    *,
    mask: ArrayLike | PathLike | None = ...,
    mask_exclude: ArrayLike | PathLike | None = ...,
    original: ArrayLike | PathLike | None = ...,
    reference: Spectra | ArrayLike | PathLike | None = ...,
    b: str | float | Sequence[str | float] | None = ...,
    exclude_range: str | float | Sequence[str | float] | None = ...,
    srcwin: Sequence[str | float] | None = ...,
    srcnodata: str | float | None = ...,
    mask_output: bool | None = ...,
    device: str | float | None = ...,
    memory: str | float | None = ...,
    device_memory: str | float | None = ...,
    threads: str | float | None = ...,
    tile: Sequence[str | float] | None = ...,
    t: str | float | None = ...,
    method: Literal['osp', 'gs'] | None = ...,
    score: Literal['abs', 'signed'] | None = ...,
    vd_method: Literal['hfc', 'nwhfc'] | None = ...,
    pf: float | None = ...,
    max_angle: float | None = ...,
    score_kind: Literal['abundance', 'angle'] | None = ...,
    spectrum: str | float | Sequence[str | float] | None = ...,
    spectra: bool | PathLike = ...,
    map: bool | PathLike = ...,
    scores: bool | PathLike = ...,
    band_axis: int = ...,
    nodata: float | None = ...,
    wavelengths: ArrayLike | None = ...,
    fwhm: ArrayLike | None = ...,
    names: Sequence[str] | None = ...,
    out: Any = ...,
    full: bool = ...,
    progress: bool | Callable[[float], object] | None = ...,
) -> Any: ...
def compare(
    src: ArrayLike | PathLike,
    other: ArrayLike | PathLike,
    *,
    b: str | float | Sequence[str | float] | None = ...,
    exclude_range: str | float | Sequence[str | float] | None = ...,
    srcwin: Sequence[str | float] | None = ...,
    srcnodata: str | float | None = ...,
    metric: str | float | Sequence[str | float] | None = ...,
    band: str | float | Sequence[str | float] | None = ...,
    other_b: str | float | Sequence[str | float] | None = ...,
    any_wavelengths: bool | None = ...,
    max_nrmse: float | None = ...,
    mean_nrmse: float | None = ...,
    max_maxsde: float | None = ...,
    mean_maxsde: float | None = ...,
    max_sad: float | None = ...,
    mean_sad: float | None = ...,
    max_rmse: float | None = ...,
    mean_rmse: float | None = ...,
    max_maxabs: float | None = ...,
    mean_maxabs: float | None = ...,
    min_ssim: float | None = ...,
    max_unmatched: int | None = ...,
    memory: str | float | None = ...,
    threads: str | float | None = ...,
    tile: Sequence[str | float] | None = ...,
    map: bool | PathLike = ...,
    band_axis: int = ...,
    nodata: float | None = ...,
    wavelengths: ArrayLike | None = ...,
    fwhm: ArrayLike | None = ...,
    names: Sequence[str] | None = ...,
    out: Any = ...,
    full: bool = ...,
    progress: bool | Callable[[float], object] | None = ...,
) -> Any: ...
def detect(
    src: ArrayLike | PathLike,
    *,
    mask: ArrayLike | PathLike | None = ...,
    mask_exclude: ArrayLike | PathLike | None = ...,
    target: Spectra | ArrayLike | PathLike | None = ...,
    background: ArrayLike | PathLike | None = ...,
    b: str | float | Sequence[str | float] | None = ...,
    exclude_range: str | float | Sequence[str | float] | None = ...,
    srcwin: Sequence[str | float] | None = ...,
    srcnodata: str | float | None = ...,
    mask_output: bool | None = ...,
    ot: str | float | None = ...,
    dstnodata: str | float | None = ...,
    spectrum: str | float | Sequence[str | float] | None = ...,
    target_pixel: Sequence[int] | Sequence[Sequence[int]] | None = ...,
    method: Literal['sam', 'sid', 'mf', 'cem', 'ace', 'rx'] | None = ...,
    window: Sequence[int] | None = ...,
    threshold: str | float | None = ...,
    false_alarms: float | None = ...,
    nc: str | float | None = ...,
    shrinkage: str | float | None = ...,
    library_scale: float | None = ...,
    any_scale: bool | None = ...,
    device: str | float | None = ...,
    memory: str | float | None = ...,
    device_memory: str | float | None = ...,
    threads: str | float | None = ...,
    tile: Sequence[str | float] | None = ...,
    map: bool | PathLike = ...,
    band_axis: int = ...,
    nodata: float | None = ...,
    wavelengths: ArrayLike | None = ...,
    fwhm: ArrayLike | None = ...,
    names: Sequence[str] | None = ...,
    out: Any = ...,
    full: bool = ...,
    progress: bool | Callable[[float], object] | None = ...,
) -> Any: ...
def eadp(
    src: ArrayLike | PathLike,
    *,
    mask: ArrayLike | PathLike | None = ...,
    mask_exclude: ArrayLike | PathLike | None = ...,
    b: str | float | Sequence[str | float] | None = ...,
    exclude_range: str | float | Sequence[str | float] | None = ...,
    srcwin: Sequence[str | float] | None = ...,
    srcnodata: str | float | None = ...,
    mask_output: bool | None = ...,
    ot: str | float | None = ...,
    dstnodata: str | float | None = ...,
    device: str | float | None = ...,
    memory: str | float | None = ...,
    device_memory: str | float | None = ...,
    threads: str | float | None = ...,
    tile: Sequence[str | float] | None = ...,
    nc: int | None = ...,
    no_pca: bool | None = ...,
    c: int | None = ...,
    ts: float | None = ...,
    times: str | float | None = ...,
    sigma: float | None = ...,
    g: Literal['g1', 'g2', 'g3'] | None = ...,
    percentile: float | None = ...,
    k: float | None = ...,
    cycles: int | None = ...,
    evolution: Literal['independent', 'cascade', 'incremental'] | None = ...,
    scheme: Literal['fed', 'exact'] | None = ...,
    tolerance: float | None = ...,
    precision: Literal['single', 'double'] | None = ...,
    band_axis: int = ...,
    nodata: float | None = ...,
    wavelengths: ArrayLike | None = ...,
    fwhm: ArrayLike | None = ...,
    names: Sequence[str] | None = ...,
    out: Any = ...,
    full: bool = ...,
    progress: bool | Callable[[float], object] | None = ...,
) -> Any: ...
def endmembers(
    src: ArrayLike | PathLike,
    *,
    mask: ArrayLike | PathLike | None = ...,
    mask_exclude: ArrayLike | PathLike | None = ...,
    b: str | float | Sequence[str | float] | None = ...,
    exclude_range: str | float | Sequence[str | float] | None = ...,
    srcwin: Sequence[str | float] | None = ...,
    srcnodata: str | float | None = ...,
    memory: str | float | None = ...,
    threads: str | float | None = ...,
    tile: Sequence[str | float] | None = ...,
    t: str | float | None = ...,
    method: Literal['nfindr', 'vca', 'atdca'] | None = ...,
    seed: int | None = ...,
    residual: bool | None = ...,
    spectra: bool | PathLike = ...,
    plot: bool | PathLike = ...,
    band_axis: int = ...,
    nodata: float | None = ...,
    wavelengths: ArrayLike | None = ...,
    fwhm: ArrayLike | None = ...,
    names: Sequence[str] | None = ...,
    out: Any = ...,
    full: bool = ...,
    progress: bool | Callable[[float], object] | None = ...,
) -> Any: ...
def mnf(
    src: ArrayLike | PathLike,
    *,
    mask: ArrayLike | PathLike | None = ...,
    mask_exclude: ArrayLike | PathLike | None = ...,
    apply: Model | dict | PathLike | None = ...,
    b: str | float | Sequence[str | float] | None = ...,
    exclude_range: str | float | Sequence[str | float] | None = ...,
    srcwin: Sequence[str | float] | None = ...,
    srcnodata: str | float | None = ...,
    mask_output: bool | None = ...,
    ot: str | float | None = ...,
    dstnodata: str | float | None = ...,
    device: str | float | None = ...,
    memory: str | float | None = ...,
    device_memory: str | float | None = ...,
    threads: str | float | None = ...,
    tile: Sequence[str | float] | None = ...,
    nc: int | None = ...,
    inverse: bool | None = ...,
    any_wavelengths: bool | None = ...,
    any_scale: bool | None = ...,
    model: bool | PathLike = ...,
    band_axis: int = ...,
    nodata: float | None = ...,
    wavelengths: ArrayLike | None = ...,
    fwhm: ArrayLike | None = ...,
    names: Sequence[str] | None = ...,
    out: Any = ...,
    full: bool = ...,
    progress: bool | Callable[[float], object] | None = ...,
) -> Any: ...
def pca(
    src: ArrayLike | PathLike,
    *,
    mask: ArrayLike | PathLike | None = ...,
    mask_exclude: ArrayLike | PathLike | None = ...,
    apply: Model | dict | PathLike | None = ...,
    b: str | float | Sequence[str | float] | None = ...,
    exclude_range: str | float | Sequence[str | float] | None = ...,
    srcwin: Sequence[str | float] | None = ...,
    srcnodata: str | float | None = ...,
    mask_output: bool | None = ...,
    ot: str | float | None = ...,
    dstnodata: str | float | None = ...,
    device: str | float | None = ...,
    memory: str | float | None = ...,
    device_memory: str | float | None = ...,
    threads: str | float | None = ...,
    tile: Sequence[str | float] | None = ...,
    nc: int | None = ...,
    scale: bool | None = ...,
    whiten: bool | None = ...,
    inverse: bool | None = ...,
    any_wavelengths: bool | None = ...,
    any_scale: bool | None = ...,
    model: bool | PathLike = ...,
    band_axis: int = ...,
    nodata: float | None = ...,
    wavelengths: ArrayLike | None = ...,
    fwhm: ArrayLike | None = ...,
    names: Sequence[str] | None = ...,
    out: Any = ...,
    full: bool = ...,
    progress: bool | Callable[[float], object] | None = ...,
) -> Any: ...
def profile(
    src: ArrayLike | PathLike,
    *,
    mask: ArrayLike | PathLike | None = ...,
    mask_exclude: ArrayLike | PathLike | None = ...,
    b: str | float | Sequence[str | float] | None = ...,
    exclude_range: str | float | Sequence[str | float] | None = ...,
    srcwin: Sequence[str | float] | None = ...,
    srcnodata: str | float | None = ...,
    mask_output: bool | None = ...,
    ot: str | float | None = ...,
    dstnodata: str | float | None = ...,
    kind: Literal['emp', 'eap', 'eep', 'emap', 'emep'] | None = ...,
    nc: int | None = ...,
    no_pca: bool | None = ...,
    attribute: str | float | None = ...,
    thresholds: str | float | Sequence[str | float] | None = ...,
    connectivity: Literal['4', '8'] | None = ...,
    device: str | float | None = ...,
    memory: str | float | None = ...,
    device_memory: str | float | None = ...,
    threads: str | float | None = ...,
    tile: Sequence[str | float] | None = ...,
    band_axis: int = ...,
    nodata: float | None = ...,
    wavelengths: ArrayLike | None = ...,
    fwhm: ArrayLike | None = ...,
    names: Sequence[str] | None = ...,
    out: Any = ...,
    full: bool = ...,
    progress: bool | Callable[[float], object] | None = ...,
) -> Any: ...
def regularize(
    src: ArrayLike | PathLike,
    *,
    scene: ArrayLike | PathLike | None = ...,
    labels: ArrayLike | PathLike | None = ...,
    b: str | float | Sequence[str | float] | None = ...,
    exclude_range: str | float | Sequence[str | float] | None = ...,
    srcwin: Sequence[str | float] | None = ...,
    srcnodata: str | float | None = ...,
    ot: str | float | None = ...,
    dstnodata: str | float | None = ...,
    lambda_: float | None = ...,
    mu: float | None = ...,
    iterations: int | None = ...,
    tv: Literal['isotropic', 'anisotropic'] | None = ...,
    boundary: Literal['reflect', 'periodic'] | None = ...,
    zero: Literal['auto', 'class', 'none'] | None = ...,
    leave_out: str | float | Sequence[str | float] | None = ...,
    device: str | float | None = ...,
    memory: str | float | None = ...,
    device_memory: str | float | None = ...,
    threads: str | float | None = ...,
    tile: Sequence[str | float] | None = ...,
    map: bool | PathLike = ...,
    band_axis: int = ...,
    nodata: float | None = ...,
    wavelengths: ArrayLike | None = ...,
    fwhm: ArrayLike | None = ...,
    names: Sequence[str] | None = ...,
    out: Any = ...,
    full: bool = ...,
    progress: bool | Callable[[float], object] | None = ...,
) -> Any: ...
def sahic(
    src: ArrayLike | PathLike,
    labels: ArrayLike | PathLike,
    *,
    mask: ArrayLike | PathLike | None = ...,
    mask_exclude: ArrayLike | PathLike | None = ...,
    apply: Model | dict | PathLike | None = ...,
    b: str | float | Sequence[str | float] | None = ...,
    exclude_range: str | float | Sequence[str | float] | None = ...,
    srcwin: Sequence[str | float] | None = ...,
    srcnodata: str | float | None = ...,
    mask_output: bool | None = ...,
    ot: str | float | None = ...,
    dstnodata: str | float | None = ...,
    delta: float | None = ...,
    lambda_c: float | None = ...,
    beta: float | None = ...,
    beta_growth: float | None = ...,
    lorsal_solver: Literal['paper', 'optimum'] | None = ...,
    lambda_: float | None = ...,
    mu: float | None = ...,
    iterations: int | None = ...,
    tv: Literal['isotropic', 'anisotropic'] | None = ...,
    boundary: Literal['reflect', 'periodic'] | None = ...,
    no_spatial: bool | None = ...,
    any_wavelengths: bool | None = ...,
    any_scale: bool | None = ...,
    zero: Literal['auto', 'class', 'none'] | None = ...,
    leave_out: str | float | Sequence[str | float] | None = ...,
    device: str | float | None = ...,
    memory: str | float | None = ...,
    device_memory: str | float | None = ...,
    threads: str | float | None = ...,
    tile: Sequence[str | float] | None = ...,
    probabilities: bool | PathLike = ...,
    confidence: bool | PathLike = ...,
    model: bool | PathLike = ...,
    band_axis: int = ...,
    nodata: float | None = ...,
    wavelengths: ArrayLike | None = ...,
    fwhm: ArrayLike | None = ...,
    names: Sequence[str] | None = ...,
    out: Any = ...,
    full: bool = ...,
    progress: bool | Callable[[float], object] | None = ...,
) -> Any: ...
def sample(
    labels: ArrayLike | PathLike,
    *,
    like: ArrayLike | PathLike | None = ...,
    ot: str | float | None = ...,
    dstnodata: str | float | None = ...,
    n: str | float | Sequence[str | float] | None = ...,
    fraction: str | float | Sequence[str | float] | None = ...,
    seed: int | None = ...,
    by: Literal['pixels', 'patches'] | None = ...,
    min_distance: float | None = ...,
    patches: int | None = ...,
    zero: Literal['auto', 'class', 'none'] | None = ...,
    leave_out: str | float | Sequence[str | float] | None = ...,
    cover: bool | PathLike = ...,
    band_axis: int = ...,
    nodata: float | None = ...,
    wavelengths: ArrayLike | None = ...,
    fwhm: ArrayLike | None = ...,
    names: Sequence[str] | None = ...,
    out: Any = ...,
    full: bool = ...,
    progress: bool | Callable[[float], object] | None = ...,
) -> Any: ...
def spectra(
    src: ArrayLike | PathLike,
    labels: ArrayLike | PathLike,
    *,
    mask: ArrayLike | PathLike | None = ...,
    mask_exclude: ArrayLike | PathLike | None = ...,
    b: str | float | Sequence[str | float] | None = ...,
    exclude_range: str | float | Sequence[str | float] | None = ...,
    srcwin: Sequence[str | float] | None = ...,
    srcnodata: str | float | None = ...,
    kind: Literal['mean', 'deviation', 'every'] | None = ...,
    spectrum: str | float | Sequence[str | float] | None = ...,
    zero: Literal['auto', 'class', 'none'] | None = ...,
    leave_out: str | float | Sequence[str | float] | None = ...,
    memory: str | float | None = ...,
    threads: str | float | None = ...,
    tile: Sequence[str | float] | None = ...,
    band_axis: int = ...,
    nodata: float | None = ...,
    wavelengths: ArrayLike | None = ...,
    fwhm: ArrayLike | None = ...,
    names: Sequence[str] | None = ...,
    out: Any = ...,
    full: bool = ...,
    progress: bool | Callable[[float], object] | None = ...,
) -> Any: ...
def spp(
    src: ArrayLike | PathLike,
    *,
    mask: ArrayLike | PathLike | None = ...,
    mask_exclude: ArrayLike | PathLike | None = ...,
    b: str | float | Sequence[str | float] | None = ...,
    exclude_range: str | float | Sequence[str | float] | None = ...,
    srcwin: Sequence[str | float] | None = ...,
    srcnodata: str | float | None = ...,
    mask_output: bool | None = ...,
    ot: str | float | None = ...,
    dstnodata: str | float | None = ...,
    device: str | float | None = ...,
    memory: str | float | None = ...,
    device_memory: str | float | None = ...,
    threads: str | float | None = ...,
    tile: Sequence[str | float] | None = ...,
    ws: int | None = ...,
    alpha: bool | PathLike = ...,
    rho: bool | PathLike = ...,
    band_axis: int = ...,
    nodata: float | None = ...,
    wavelengths: ArrayLike | None = ...,
    fwhm: ArrayLike | None = ...,
    names: Sequence[str] | None = ...,
    out: Any = ...,
    full: bool = ...,
    progress: bool | Callable[[float], object] | None = ...,
) -> Any: ...
def svm_classify(
    src: ArrayLike | PathLike,
    model: Model | dict | PathLike,
    *,
    b: str | float | Sequence[str | float] | None = ...,
    exclude_range: str | float | Sequence[str | float] | None = ...,
    srcwin: Sequence[str | float] | None = ...,
    srcnodata: str | float | None = ...,
    ot: str | float | None = ...,
    dstnodata: str | float | None = ...,
    any_wavelengths: bool | None = ...,
    any_scale: bool | None = ...,
    device: str | float | None = ...,
    memory: str | float | None = ...,
    device_memory: str | float | None = ...,
    threads: str | float | None = ...,
    tile: Sequence[str | float] | None = ...,
    probabilities: bool | PathLike = ...,
    confidence: bool | PathLike = ...,
    band_axis: int = ...,
    nodata: float | None = ...,
    wavelengths: ArrayLike | None = ...,
    fwhm: ArrayLike | None = ...,
    names: Sequence[str] | None = ...,
    out: Any = ...,
    full: bool = ...,
    progress: bool | Callable[[float], object] | None = ...,
) -> Any: ...
def svm_train(
    src: ArrayLike | PathLike,
    labels: ArrayLike | PathLike,
    *,
    mask: ArrayLike | PathLike | None = ...,
    mask_exclude: ArrayLike | PathLike | None = ...,
    b: str | float | Sequence[str | float] | None = ...,
    exclude_range: str | float | Sequence[str | float] | None = ...,
    srcwin: Sequence[str | float] | None = ...,
    srcnodata: str | float | None = ...,
    C: float | Sequence[float] | None = ...,
    gamma: float | Sequence[float] | None = ...,
    cv: int | None = ...,
    seed: int | None = ...,
    probability: bool | None = ...,
    class_weights: Literal['none', 'balanced'] | None = ...,
    weight: str | float | Sequence[str | float] | None = ...,
    zero: Literal['auto', 'class', 'none'] | None = ...,
    leave_out: str | float | Sequence[str | float] | None = ...,
    memory: str | float | None = ...,
    threads: str | float | None = ...,
    tile: Sequence[str | float] | None = ...,
    libsvm: bool | PathLike = ...,
    band_axis: int = ...,
    nodata: float | None = ...,
    wavelengths: ArrayLike | None = ...,
    fwhm: ArrayLike | None = ...,
    names: Sequence[str] | None = ...,
    out: Any = ...,
    full: bool = ...,
    progress: bool | Callable[[float], object] | None = ...,
) -> Any: ...
def unmix(
    src: ArrayLike | PathLike,
    library: Spectra | ArrayLike | PathLike,
    *,
    b: str | float | Sequence[str | float] | None = ...,
    exclude_range: str | float | Sequence[str | float] | None = ...,
    srcwin: Sequence[str | float] | None = ...,
    srcnodata: str | float | None = ...,
    ot: str | float | None = ...,
    dstnodata: str | float | None = ...,
    method: Literal['ucls', 'nnls', 'scls', 'fcls'] | None = ...,
    spectrum: str | float | Sequence[str | float] | None = ...,
    library_scale: float | None = ...,
    any_scale: bool | None = ...,
    device: str | float | None = ...,
    memory: str | float | None = ...,
    device_memory: str | float | None = ...,
    threads: str | float | None = ...,
    tile: Sequence[str | float] | None = ...,
    rmse: bool | PathLike = ...,
    band_axis: int = ...,
    nodata: float | None = ...,
    wavelengths: ArrayLike | None = ...,
    fwhm: ArrayLike | None = ...,
    names: Sequence[str] | None = ...,
    out: Any = ...,
    full: bool = ...,
    progress: bool | Callable[[float], object] | None = ...,
) -> Any: ...
def vd(
    src: ArrayLike | PathLike,
    *,
    mask: ArrayLike | PathLike | None = ...,
    mask_exclude: ArrayLike | PathLike | None = ...,
    b: str | float | Sequence[str | float] | None = ...,
    exclude_range: str | float | Sequence[str | float] | None = ...,
    srcwin: Sequence[str | float] | None = ...,
    srcnodata: str | float | None = ...,
    memory: str | float | None = ...,
    threads: str | float | None = ...,
    tile: Sequence[str | float] | None = ...,
    method: Literal['hfc', 'nwhfc', 'hysime'] | None = ...,
    pf: float | None = ...,
    band_axis: int = ...,
    nodata: float | None = ...,
    wavelengths: ArrayLike | None = ...,
    fwhm: ArrayLike | None = ...,
    names: Sequence[str] | None = ...,
    out: Any = ...,
    full: bool = ...,
    progress: bool | Callable[[float], object] | None = ...,
) -> Any: ...
