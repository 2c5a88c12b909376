# SPDX-License-Identifier: MIT
# Made by scripts/update_docs from the definitions of the tools.
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, Literal, Protocol, TypedDict, TypeVar, Union, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from typing_extensions import Unpack

from ._arrays import Model as Model
from ._errors import Cancelled as Cancelled
from ._errors import Error as Error
from ._errors import MissingFile as MissingFile
from ._errors import UsageError as UsageError
from ._errors import Warning as Warning
from ._errors import WrongType as WrongType
from ._estimators import EADP as EADP
from ._estimators import GP as GP
from ._estimators import MNF as MNF
from ._estimators import PCA as PCA
from ._estimators import PLSR as PLSR
from ._estimators import SAHIC as SAHIC
from ._estimators import SVM as SVM
from ._estimators import SVR as SVR
from ._estimators import Ridge as Ridge
from ._files import info as info
from ._files import run as run
from ._functions import Result as Result
from ._spectra import Spectra as Spectra
from ._statistics import Statistics as Statistics
from ._unsupervised import Detector as Detector
from ._unsupervised import KMeans as KMeans
from ._unsupervised import Unmixer as Unmixer

PathLike = Union[str, os.PathLike[str]]
Values = NDArray[np.float32]
Classes = NDArray[Union[np.uint8, np.uint16]]
Points = NDArray[np.void]

class _Labelled(Protocol):
    # xarray.DataArray: results are DataArrays
    @property
    def dims(self) -> tuple[object, ...]: ...
    @property
    def coords(self) -> object: ...

class _Tensor(Protocol):
    # torch.Tensor, cupy.ndarray: results are of the same kind, on the same device
    def __dlpack_device__(self) -> tuple[object, int]: ...
    @property
    def device(self) -> object: ...

_A = TypeVar("_A", bound=Union[_Labelled, _Tensor])
_V = TypeVar("_V")
_C = TypeVar("_C")

__version__: str

def algorithms() -> list[str]: ...
class _AccuracyOptions(TypedDict, total=False):
    mask: ArrayLike | PathLike | None
    training: ArrayLike | PathLike | None
    unclassified: Literal['ignore', 'error'] | None
    scores: bool | None
    better: Literal['auto', 'larger', 'smaller'] | None
    guard: int | None
    zero: Literal['auto', 'class', 'none'] | None
    leave_out: str | float | Sequence[str | float] | None
    band_axis: int
    nodata: float | None
    wavelengths: ArrayLike | None
    fwhm: ArrayLike | None
    names: Sequence[str] | None
    out: NDArray[np.generic] | PathLike | Sequence[PathLike] | None
    progress: bool | Callable[[float], object] | None
class AccuracyResult(Result, Generic[_V, _C]):
    csv: str
    curves: str
    roc: str
    recall: str
@overload
def accuracy(map: PathLike, reference: ArrayLike | PathLike, *, csv: Literal[False] = ..., curves: Literal[False] = ..., roc: Literal[False] = ..., recall: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_AccuracyOptions]) -> dict[str, object]: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def accuracy(map: PathLike, reference: ArrayLike | PathLike, *, csv: Literal[False] | PathLike = ..., curves: Literal[False] | PathLike = ..., roc: Literal[False] | PathLike = ..., recall: Literal[False] | PathLike = ..., full: bool = ..., **options: Unpack[_AccuracyOptions]) -> AccuracyResult[PathLike, PathLike]: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def accuracy(map: _A, reference: ArrayLike | PathLike, *, csv: Literal[False] = ..., curves: Literal[False] = ..., roc: Literal[False] = ..., recall: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_AccuracyOptions]) -> dict[str, object]: ...
@overload
def accuracy(map: _A, reference: ArrayLike | PathLike, *, csv: bool = ..., curves: bool = ..., roc: bool = ..., recall: bool = ..., full: bool = ..., **options: Unpack[_AccuracyOptions]) -> AccuracyResult[_A, _A]: ...
@overload
def accuracy(map: ArrayLike, reference: ArrayLike | PathLike, *, csv: Literal[False] = ..., curves: Literal[False] = ..., roc: Literal[False] = ..., recall: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_AccuracyOptions]) -> dict[str, object]: ...
@overload
def accuracy(map: ArrayLike, reference: ArrayLike | PathLike, *, csv: bool = ..., curves: bool = ..., roc: bool = ..., recall: bool = ..., full: bool = ..., **options: Unpack[_AccuracyOptions]) -> AccuracyResult[Values, Classes]: ...
class _AtdcaOptions(TypedDict, total=False):
    mask: ArrayLike | PathLike | None
    mask_exclude: ArrayLike | PathLike | None
    mask_flags_from: ArrayLike | PathLike | None
    original: ArrayLike | PathLike | None
    reference: Spectra | ArrayLike | Mapping[str, ArrayLike] | PathLike | None
    b: str | float | Sequence[str | float] | None
    exclude_range: str | float | Sequence[str | float] | None
    srcwin: Sequence[str | float] | None
    srcnodata: str | float | None
    mask_flags: str | float | Sequence[str | float] | None
    mask_output: bool | None
    device: str | float | None
    memory: str | float | None
    device_memory: str | float | None
    threads: str | float | None
    tile: Sequence[str | float] | None
    t: str | float | None
    method: Literal['osp', 'gs'] | None
    score: Literal['abs', 'signed'] | None
    vd_method: Literal['hfc', 'nwhfc'] | None
    pf: float | None
    max_angle: float | None
    score_kind: Literal['abundance', 'angle'] | None
    spectrum: str | float | Sequence[str | float] | None
    resample: Literal['auto', 'response', 'linear'] | None
    reference_names: bool | None
    band_axis: int
    nodata: float | None
    wavelengths: ArrayLike | None
    fwhm: ArrayLike | None
    names: Sequence[str] | None
    out: NDArray[np.generic] | PathLike | Sequence[PathLike] | None
    progress: bool | Callable[[float], object] | None
class AtdcaResult(Result, Generic[_V, _C]):
    dst: Points
    spectra: Spectra
    map: _C
    scores: _V
class _AtdcaLabelledSpectraPair(AtdcaResult[_A, _A], tuple[Points, Spectra], Generic[_A]):  # type: ignore[misc, unused-ignore]
    ...
class _AtdcaLabelledMapPair(AtdcaResult[_A, _A], tuple[Points, _A], Generic[_A]):  # type: ignore[misc, unused-ignore]
    ...
class _AtdcaLabelledScoresPair(AtdcaResult[_A, _A], tuple[Points, _A], Generic[_A]):  # type: ignore[misc, unused-ignore]
    ...
class _AtdcaSpectraPair(AtdcaResult[Values, Classes], tuple[Points, Spectra]):  # type: ignore[misc, unused-ignore]
    ...
class _AtdcaMapPair(AtdcaResult[Values, Classes], tuple[Points, Classes]):  # type: ignore[misc, unused-ignore]
    ...
class _AtdcaScoresPair(AtdcaResult[Values, Classes], tuple[Points, Values]):  # type: ignore[misc, unused-ignore]
    ...
@overload
def atdca(src: PathLike, *, spectra: Literal[False] = ..., map: Literal[False] = ..., scores: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_AtdcaOptions]) -> PathLike: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def atdca(src: PathLike, *, spectra: Literal[False] | PathLike = ..., map: Literal[False] | PathLike = ..., scores: Literal[False] | PathLike = ..., full: bool = ..., **options: Unpack[_AtdcaOptions]) -> AtdcaResult[PathLike, PathLike]: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def atdca(src: _A, *, spectra: Literal[False] = ..., map: Literal[False] = ..., scores: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_AtdcaOptions]) -> Points: ...
@overload
def atdca(src: _A, *, spectra: Literal[True], map: Literal[False] = ..., scores: Literal[False] = ..., full: bool = ..., **options: Unpack[_AtdcaOptions]) -> _AtdcaLabelledSpectraPair[_A]: ...
@overload
def atdca(src: _A, *, spectra: Literal[False] = ..., map: Literal[True], scores: Literal[False] = ..., full: bool = ..., **options: Unpack[_AtdcaOptions]) -> _AtdcaLabelledMapPair[_A]: ...
@overload
def atdca(src: _A, *, spectra: Literal[False] = ..., map: Literal[False] = ..., scores: Literal[True], full: bool = ..., **options: Unpack[_AtdcaOptions]) -> _AtdcaLabelledScoresPair[_A]: ...
@overload
def atdca(src: _A, *, spectra: bool = ..., map: bool = ..., scores: bool = ..., full: bool = ..., **options: Unpack[_AtdcaOptions]) -> AtdcaResult[_A, _A]: ...
@overload
def atdca(src: ArrayLike, *, spectra: Literal[False] = ..., map: Literal[False] = ..., scores: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_AtdcaOptions]) -> Points: ...
@overload
def atdca(src: ArrayLike, *, spectra: Literal[True], map: Literal[False] = ..., scores: Literal[False] = ..., full: bool = ..., **options: Unpack[_AtdcaOptions]) -> _AtdcaSpectraPair: ...
@overload
def atdca(src: ArrayLike, *, spectra: Literal[False] = ..., map: Literal[True], scores: Literal[False] = ..., full: bool = ..., **options: Unpack[_AtdcaOptions]) -> _AtdcaMapPair: ...
@overload
def atdca(src: ArrayLike, *, spectra: Literal[False] = ..., map: Literal[False] = ..., scores: Literal[True], full: bool = ..., **options: Unpack[_AtdcaOptions]) -> _AtdcaScoresPair: ...
@overload
def atdca(src: ArrayLike, *, spectra: bool = ..., map: bool = ..., scores: bool = ..., full: bool = ..., **options: Unpack[_AtdcaOptions]) -> AtdcaResult[Values, Classes]: ...
class _ClusterOptions(TypedDict, total=False):
    mask: ArrayLike | PathLike | None
    mask_exclude: ArrayLike | PathLike | None
    mask_flags_from: ArrayLike | PathLike | None
    start: Spectra | ArrayLike | Mapping[str, ArrayLike] | PathLike | None
    b: str | float | Sequence[str | float] | None
    exclude_range: str | float | Sequence[str | float] | None
    srcwin: Sequence[str | float] | None
    srcnodata: str | float | None
    mask_flags: str | float | Sequence[str | float] | None
    mask_output: bool | None
    ot: str | float | None
    dstnodata: str | float | None
    k: int | None
    iterations: int | None
    distance: Literal['euclidean', 'angle'] | None
    spectrum: str | float | Sequence[str | float] | None
    library_scale: float | None
    any_scale: bool | None
    resample: Literal['auto', 'response', 'linear'] | None
    seed: int | None
    device: str | float | None
    memory: str | float | None
    device_memory: str | float | None
    threads: str | float | None
    tile: Sequence[str | float] | None
    band_axis: int
    nodata: float | None
    wavelengths: ArrayLike | None
    fwhm: ArrayLike | None
    names: Sequence[str] | None
    out: NDArray[np.generic] | PathLike | Sequence[PathLike] | None
    progress: bool | Callable[[float], object] | None
class ClusterResult(Result, Generic[_V, _C]):
    dst: _C
    centres: Spectra
class _ClusterLabelledPair(ClusterResult[_A, _A], tuple[_A, Spectra], Generic[_A]):  # type: ignore[misc, unused-ignore]
    ...
class _ClusterPair(ClusterResult[Values, Classes], tuple[Classes, Spectra]):  # type: ignore[misc, unused-ignore]
    ...
@overload
def cluster(src: PathLike, *, centres: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_ClusterOptions]) -> PathLike: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def cluster(src: PathLike, *, centres: Literal[False] | PathLike = ..., full: bool = ..., **options: Unpack[_ClusterOptions]) -> ClusterResult[PathLike, PathLike]: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def cluster(src: _A, *, centres: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_ClusterOptions]) -> _A: ...
@overload
def cluster(src: _A, *, centres: Literal[True], full: bool = ..., **options: Unpack[_ClusterOptions]) -> _ClusterLabelledPair[_A]: ...
@overload
def cluster(src: _A, *, centres: bool = ..., full: bool = ..., **options: Unpack[_ClusterOptions]) -> ClusterResult[_A, _A]: ...
@overload
def cluster(src: ArrayLike, *, centres: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_ClusterOptions]) -> Classes: ...
@overload
def cluster(src: ArrayLike, *, centres: Literal[True], full: bool = ..., **options: Unpack[_ClusterOptions]) -> _ClusterPair: ...
@overload
def cluster(src: ArrayLike, *, centres: bool = ..., full: bool = ..., **options: Unpack[_ClusterOptions]) -> ClusterResult[Values, Classes]: ...
class _CompareOptions(TypedDict, total=False):
    b: str | float | Sequence[str | float] | None
    exclude_range: str | float | Sequence[str | float] | None
    srcwin: Sequence[str | float] | None
    srcnodata: str | float | None
    metric: str | float | Sequence[str | float] | None
    band: str | float | Sequence[str | float] | None
    other_b: str | float | Sequence[str | float] | None
    any_wavelengths: bool | None
    mosaic: bool | None
    max_nrmse: float | None
    mean_nrmse: float | None
    max_maxsde: float | None
    mean_maxsde: float | None
    max_sad: float | None
    mean_sad: float | None
    max_rmse: float | None
    mean_rmse: float | None
    max_maxabs: float | None
    mean_maxabs: float | None
    min_ssim: float | None
    max_unmatched: int | None
    memory: str | float | None
    threads: str | float | None
    tile: Sequence[str | float] | None
    band_axis: int
    nodata: float | None
    wavelengths: ArrayLike | None
    fwhm: ArrayLike | None
    names: Sequence[str] | None
    out: NDArray[np.generic] | PathLike | Sequence[PathLike] | None
    progress: bool | Callable[[float], object] | None
class CompareResult(Result, Generic[_V, _C]):
    map: _V
@overload
def compare(src: PathLike, other: ArrayLike | PathLike, *, map: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_CompareOptions]) -> dict[str, object]: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def compare(src: PathLike, other: ArrayLike | PathLike, *, map: Literal[False] | PathLike = ..., full: bool = ..., **options: Unpack[_CompareOptions]) -> CompareResult[PathLike, PathLike]: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def compare(src: _A, other: ArrayLike | PathLike, *, map: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_CompareOptions]) -> dict[str, object]: ...
@overload
def compare(src: _A, other: ArrayLike | PathLike, *, map: bool = ..., full: bool = ..., **options: Unpack[_CompareOptions]) -> CompareResult[_A, _A]: ...
@overload
def compare(src: ArrayLike, other: ArrayLike | PathLike, *, map: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_CompareOptions]) -> dict[str, object]: ...
@overload
def compare(src: ArrayLike, other: ArrayLike | PathLike, *, map: bool = ..., full: bool = ..., **options: Unpack[_CompareOptions]) -> CompareResult[Values, Classes]: ...
class _DestripeOptions(TypedDict, total=False):
    mask: ArrayLike | PathLike | None
    mask_exclude: ArrayLike | PathLike | None
    mask_flags_from: ArrayLike | PathLike | None
    b: str | float | Sequence[str | float] | None
    exclude_range: str | float | Sequence[str | float] | None
    srcwin: Sequence[str | float] | None
    srcnodata: str | float | None
    ot: str | float | None
    dstnodata: str | float | None
    mask_flags: str | float | Sequence[str | float] | None
    mask_output: bool | None
    memory: str | float | None
    threads: str | float | None
    tile: Sequence[str | float] | None
    method: Literal['difference', 'ratio', 'moment', 'median'] | None
    window: int | None
    band_axis: int
    nodata: float | None
    wavelengths: ArrayLike | None
    fwhm: ArrayLike | None
    names: Sequence[str] | None
    out: NDArray[np.generic] | PathLike | Sequence[PathLike] | None
    progress: bool | Callable[[float], object] | None
class DestripeResult(Result, Generic[_V, _C]):
    dst: _V
@overload
def destripe(src: PathLike, *, full: Literal[False] = ..., **options: Unpack[_DestripeOptions]) -> PathLike: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def destripe(src: PathLike, *, full: bool = ..., **options: Unpack[_DestripeOptions]) -> DestripeResult[PathLike, PathLike]: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def destripe(src: _A, *, full: Literal[False] = ..., **options: Unpack[_DestripeOptions]) -> _A: ...
@overload
def destripe(src: _A, *, full: bool = ..., **options: Unpack[_DestripeOptions]) -> DestripeResult[_A, _A]: ...
@overload
def destripe(src: ArrayLike, *, full: Literal[False] = ..., **options: Unpack[_DestripeOptions]) -> Values: ...
@overload
def destripe(src: ArrayLike, *, full: bool = ..., **options: Unpack[_DestripeOptions]) -> DestripeResult[Values, Classes]: ...
class _DetectOptions(TypedDict, total=False):
    mask: ArrayLike | PathLike | None
    mask_exclude: ArrayLike | PathLike | None
    mask_flags_from: ArrayLike | PathLike | None
    target: Spectra | ArrayLike | Mapping[str, ArrayLike] | PathLike | None
    background: ArrayLike | PathLike | None
    background_by: ArrayLike | PathLike | None
    statistics: Model | Mapping[str, object] | PathLike | None
    features: Mapping[str, Sequence[object]] | PathLike | None
    mnf_model: Model | Mapping[str, object] | PathLike | None
    b: str | float | Sequence[str | float] | None
    exclude_range: str | float | Sequence[str | float] | None
    srcwin: Sequence[str | float] | None
    srcnodata: str | float | None
    mask_flags: str | float | Sequence[str | float] | None
    mask_output: bool | None
    ot: str | float | None
    dstnodata: str | float | None
    spectrum: str | float | Sequence[str | float] | None
    target_pixel: Sequence[int] | Sequence[Sequence[int]] | None
    method: Literal['sam', 'sid', 'mf', 'cem', 'ace', 'rx', 'sff', 'mtmf'] | None
    columns_per_group: int | None
    exclude_share: float | None
    exclude_iterations: int | None
    target_is_absorption: bool | None
    window: Sequence[int] | None
    threshold: str | float | None
    false_alarms: float | None
    nc: str | float | None
    shrinkage: str | float | None
    range: str | float | Sequence[str | float] | None
    score: Literal['fit', 'depth', 'fd'] | None
    any_wavelengths: bool | None
    max_infeasibility: float | None
    library_scale: float | None
    any_scale: bool | None
    resample: Literal['auto', 'response', 'linear'] | None
    device: str | float | None
    memory: str | float | None
    device_memory: str | float | None
    threads: str | float | None
    tile: Sequence[str | float] | None
    band_axis: int
    nodata: float | None
    wavelengths: ArrayLike | None
    fwhm: ArrayLike | None
    names: Sequence[str] | None
    out: NDArray[np.generic] | PathLike | Sequence[PathLike] | None
    progress: bool | Callable[[float], object] | None
class DetectResult(Result, Generic[_V, _C]):
    dst: _V
    map: _C
    depth: _V
class _DetectLabelledMapPair(DetectResult[_A, _A], tuple[_A, _A], Generic[_A]):  # type: ignore[misc, unused-ignore]
    ...
class _DetectLabelledDepthPair(DetectResult[_A, _A], tuple[_A, _A], Generic[_A]):  # type: ignore[misc, unused-ignore]
    ...
class _DetectMapPair(DetectResult[Values, Classes], tuple[Values, Classes]):  # type: ignore[misc, unused-ignore]
    ...
class _DetectDepthPair(DetectResult[Values, Classes], tuple[Values, Values]):  # type: ignore[misc, unused-ignore]
    ...
@overload
def detect(src: PathLike, *, map: Literal[False] = ..., depth: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_DetectOptions]) -> PathLike: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def detect(src: PathLike, *, map: Literal[False] | PathLike = ..., depth: Literal[False] | PathLike = ..., full: bool = ..., **options: Unpack[_DetectOptions]) -> DetectResult[PathLike, PathLike]: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def detect(src: _A, *, map: Literal[False] = ..., depth: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_DetectOptions]) -> _A: ...
@overload
def detect(src: _A, *, map: Literal[True], depth: Literal[False] = ..., full: bool = ..., **options: Unpack[_DetectOptions]) -> _DetectLabelledMapPair[_A]: ...
@overload
def detect(src: _A, *, map: Literal[False] = ..., depth: Literal[True], full: bool = ..., **options: Unpack[_DetectOptions]) -> _DetectLabelledDepthPair[_A]: ...
@overload
def detect(src: _A, *, map: bool = ..., depth: bool = ..., full: bool = ..., **options: Unpack[_DetectOptions]) -> DetectResult[_A, _A]: ...
@overload
def detect(src: ArrayLike, *, map: Literal[False] = ..., depth: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_DetectOptions]) -> Values: ...
@overload
def detect(src: ArrayLike, *, map: Literal[True], depth: Literal[False] = ..., full: bool = ..., **options: Unpack[_DetectOptions]) -> _DetectMapPair: ...
@overload
def detect(src: ArrayLike, *, map: Literal[False] = ..., depth: Literal[True], full: bool = ..., **options: Unpack[_DetectOptions]) -> _DetectDepthPair: ...
@overload
def detect(src: ArrayLike, *, map: bool = ..., depth: bool = ..., full: bool = ..., **options: Unpack[_DetectOptions]) -> DetectResult[Values, Classes]: ...
class _EadpOptions(TypedDict, total=False):
    mask: ArrayLike | PathLike | None
    mask_exclude: ArrayLike | PathLike | None
    mask_flags_from: ArrayLike | PathLike | None
    statistics: Model | Mapping[str, object] | PathLike | None
    b: str | float | Sequence[str | float] | None
    exclude_range: str | float | Sequence[str | float] | None
    srcwin: Sequence[str | float] | None
    srcnodata: str | float | None
    mask_flags: str | float | Sequence[str | float] | None
    mask_output: bool | None
    ot: str | float | None
    dstnodata: str | float | None
    device: str | float | None
    memory: str | float | None
    device_memory: str | float | None
    threads: str | float | None
    tile: Sequence[str | float] | None
    nc: int | None
    no_pca: bool | None
    c: int | None
    ts: float | None
    times: str | float | Sequence[str | float] | None
    sigma: float | None
    g: Literal['g1', 'g2', 'g3'] | None
    percentile: float | None
    k: float | None
    cycles: int | None
    evolution: Literal['independent', 'cascade', 'incremental'] | None
    scheme: Literal['fed', 'exact'] | None
    tolerance: float | None
    precision: Literal['single', 'double'] | None
    band_axis: int
    nodata: float | None
    wavelengths: ArrayLike | None
    fwhm: ArrayLike | None
    names: Sequence[str] | None
    out: NDArray[np.generic] | PathLike | Sequence[PathLike] | None
    progress: bool | Callable[[float], object] | None
class EadpResult(Result, Generic[_V, _C]):
    dst: _V
@overload
def eadp(src: PathLike, *, full: Literal[False] = ..., **options: Unpack[_EadpOptions]) -> PathLike: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def eadp(src: PathLike, *, full: bool = ..., **options: Unpack[_EadpOptions]) -> EadpResult[PathLike, PathLike]: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def eadp(src: _A, *, full: Literal[False] = ..., **options: Unpack[_EadpOptions]) -> _A: ...
@overload
def eadp(src: _A, *, full: bool = ..., **options: Unpack[_EadpOptions]) -> EadpResult[_A, _A]: ...
@overload
def eadp(src: ArrayLike, *, full: Literal[False] = ..., **options: Unpack[_EadpOptions]) -> Values: ...
@overload
def eadp(src: ArrayLike, *, full: bool = ..., **options: Unpack[_EadpOptions]) -> EadpResult[Values, Classes]: ...
class _EndmembersOptions(TypedDict, total=False):
    mask: ArrayLike | PathLike | None
    mask_exclude: ArrayLike | PathLike | None
    mask_flags_from: ArrayLike | PathLike | None
    original: ArrayLike | PathLike | None
    reference: Spectra | ArrayLike | Mapping[str, ArrayLike] | PathLike | None
    b: str | float | Sequence[str | float] | None
    exclude_range: str | float | Sequence[str | float] | None
    srcwin: Sequence[str | float] | None
    srcnodata: str | float | None
    mask_flags: str | float | Sequence[str | float] | None
    memory: str | float | None
    threads: str | float | None
    tile: Sequence[str | float] | None
    t: str | float | None
    method: Literal['nfindr', 'vca', 'atdca'] | None
    seed: int | None
    residual: bool | None
    spectrum: str | float | Sequence[str | float] | None
    resample: Literal['auto', 'response', 'linear'] | None
    reference_names: bool | None
    band_axis: int
    nodata: float | None
    wavelengths: ArrayLike | None
    fwhm: ArrayLike | None
    names: Sequence[str] | None
    out: NDArray[np.generic] | PathLike | Sequence[PathLike] | None
    progress: bool | Callable[[float], object] | None
class EndmembersResult(Result, Generic[_V, _C]):
    dst: Points
    spectra: Spectra
    plot: str
class _EndmembersLabelledSpectraPair(EndmembersResult[_A, _A], tuple[Points, Spectra], Generic[_A]):  # type: ignore[misc, unused-ignore]
    ...
class _EndmembersLabelledPlotPair(EndmembersResult[_A, _A], tuple[Points, str], Generic[_A]):  # type: ignore[misc, unused-ignore]
    ...
class _EndmembersSpectraPair(EndmembersResult[Values, Classes], tuple[Points, Spectra]):  # type: ignore[misc, unused-ignore]
    ...
class _EndmembersPlotPair(EndmembersResult[Values, Classes], tuple[Points, str]):  # type: ignore[misc, unused-ignore]
    ...
@overload
def endmembers(src: PathLike, *, spectra: Literal[False] = ..., plot: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_EndmembersOptions]) -> PathLike: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def endmembers(src: PathLike, *, spectra: Literal[False] | PathLike = ..., plot: Literal[False] | PathLike = ..., full: bool = ..., **options: Unpack[_EndmembersOptions]) -> EndmembersResult[PathLike, PathLike]: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def endmembers(src: _A, *, spectra: Literal[False] = ..., plot: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_EndmembersOptions]) -> Points: ...
@overload
def endmembers(src: _A, *, spectra: Literal[True], plot: Literal[False] = ..., full: bool = ..., **options: Unpack[_EndmembersOptions]) -> _EndmembersLabelledSpectraPair[_A]: ...
@overload
def endmembers(src: _A, *, spectra: Literal[False] = ..., plot: Literal[True], full: bool = ..., **options: Unpack[_EndmembersOptions]) -> _EndmembersLabelledPlotPair[_A]: ...
@overload
def endmembers(src: _A, *, spectra: bool = ..., plot: bool = ..., full: bool = ..., **options: Unpack[_EndmembersOptions]) -> EndmembersResult[_A, _A]: ...
@overload
def endmembers(src: ArrayLike, *, spectra: Literal[False] = ..., plot: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_EndmembersOptions]) -> Points: ...
@overload
def endmembers(src: ArrayLike, *, spectra: Literal[True], plot: Literal[False] = ..., full: bool = ..., **options: Unpack[_EndmembersOptions]) -> _EndmembersSpectraPair: ...
@overload
def endmembers(src: ArrayLike, *, spectra: Literal[False] = ..., plot: Literal[True], full: bool = ..., **options: Unpack[_EndmembersOptions]) -> _EndmembersPlotPair: ...
@overload
def endmembers(src: ArrayLike, *, spectra: bool = ..., plot: bool = ..., full: bool = ..., **options: Unpack[_EndmembersOptions]) -> EndmembersResult[Values, Classes]: ...
class _FeaturesOptions(TypedDict, total=False):
    mask: ArrayLike | PathLike | None
    mask_exclude: ArrayLike | PathLike | None
    mask_flags_from: ArrayLike | PathLike | None
    b: str | float | Sequence[str | float] | None
    exclude_range: str | float | Sequence[str | float] | None
    srcwin: Sequence[str | float] | None
    srcnodata: str | float | None
    ot: str | float | None
    dstnodata: str | float | None
    mask_flags: str | float | Sequence[str | float] | None
    mask_output: bool | None
    device: str | float | None
    memory: str | float | None
    device_memory: str | float | None
    threads: str | float | None
    tile: Sequence[str | float] | None
    range: str | float | Sequence[str | float] | None
    output: Literal['features', 'removed'] | None
    band_axis: int
    nodata: float | None
    wavelengths: ArrayLike | None
    fwhm: ArrayLike | None
    names: Sequence[str] | None
    out: NDArray[np.generic] | PathLike | Sequence[PathLike] | None
    progress: bool | Callable[[float], object] | None
class FeaturesResult(Result, Generic[_V, _C]):
    dst: _V
@overload
def features(src: PathLike, *, full: Literal[False] = ..., **options: Unpack[_FeaturesOptions]) -> PathLike: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def features(src: PathLike, *, full: bool = ..., **options: Unpack[_FeaturesOptions]) -> FeaturesResult[PathLike, PathLike]: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def features(src: _A, *, full: Literal[False] = ..., **options: Unpack[_FeaturesOptions]) -> _A: ...
@overload
def features(src: _A, *, full: bool = ..., **options: Unpack[_FeaturesOptions]) -> FeaturesResult[_A, _A]: ...
@overload
def features(src: ArrayLike, *, full: Literal[False] = ..., **options: Unpack[_FeaturesOptions]) -> Values: ...
@overload
def features(src: ArrayLike, *, full: bool = ..., **options: Unpack[_FeaturesOptions]) -> FeaturesResult[Values, Classes]: ...
class _GasOptions(TypedDict, total=False):
    mask: ArrayLike | PathLike | None
    mask_exclude: ArrayLike | PathLike | None
    mask_flags_from: ArrayLike | PathLike | None
    absorption: Spectra | ArrayLike | Mapping[str, ArrayLike] | PathLike | None
    lut: Mapping[str, Sequence[object]] | PathLike | None
    noise: Mapping[str, Sequence[object]] | PathLike | None
    b: str | float | Sequence[str | float] | None
    exclude_range: str | float | Sequence[str | float] | None
    srcwin: Sequence[str | float] | None
    srcnodata: str | float | None
    mask_flags: str | float | Sequence[str | float] | None
    mask_output: bool | None
    ot: str | float | None
    dstnodata: str | float | None
    method: Literal['mag1c', 'mf', 'lognormal', 'none'] | None
    gas: Literal['ch4', 'co2'] | None
    range: str | float | Sequence[str | float] | None
    spectrum: str | float | Sequence[str | float] | None
    library_scale: float | None
    resample: Literal['auto', 'response', 'linear'] | None
    concentrations: float | Sequence[float] | None
    sza: float | None
    elevation: float | None
    sensor_altitude: float | None
    water_vapour: float | None
    columns_per_group: str | float | None
    shrinkage: str | float | None
    iterations: int | None
    no_albedo: bool | None
    no_sparsity: bool | None
    output: str | float | Sequence[str | float] | None
    radiance_scale: float | None
    flare_threshold: float | None
    plume_threshold: str | float | None
    plume_extent: str | float | None
    min_pixels: int | None
    connectivity: Literal['8', '4'] | None
    plume_smooth: float | None
    wind: float | None
    ueff: str | float | None
    length: Literal['area', 'fetch'] | None
    pixel_size: Sequence[float] | None
    device: str | float | None
    memory: str | float | None
    device_memory: str | float | None
    threads: str | float | None
    tile: Sequence[str | float] | None
    band_axis: int
    nodata: float | None
    wavelengths: ArrayLike | None
    fwhm: ArrayLike | None
    names: Sequence[str] | None
    out: NDArray[np.generic] | PathLike | Sequence[PathLike] | None
    progress: bool | Callable[[float], object] | None
class GasResult(Result, Generic[_V, _C]):
    dst: _V
    save_absorption: Spectra
    plumes: Points
    plume_map: _V
class _GasLabelledSave_absorptionPair(GasResult[_A, _A], tuple[_A, Spectra], Generic[_A]):  # type: ignore[misc, unused-ignore]
    ...
class _GasLabelledPlumesPair(GasResult[_A, _A], tuple[_A, Points], Generic[_A]):  # type: ignore[misc, unused-ignore]
    ...
class _GasLabelledPlume_mapPair(GasResult[_A, _A], tuple[_A, _A], Generic[_A]):  # type: ignore[misc, unused-ignore]
    ...
class _GasSave_absorptionPair(GasResult[Values, Classes], tuple[Values, Spectra]):  # type: ignore[misc, unused-ignore]
    ...
class _GasPlumesPair(GasResult[Values, Classes], tuple[Values, Points]):  # type: ignore[misc, unused-ignore]
    ...
class _GasPlume_mapPair(GasResult[Values, Classes], tuple[Values, Values]):  # type: ignore[misc, unused-ignore]
    ...
@overload
def gas(src: PathLike, *, save_absorption: Literal[False] = ..., plumes: Literal[False] = ..., plume_map: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_GasOptions]) -> PathLike: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def gas(src: PathLike, *, save_absorption: Literal[False] | PathLike = ..., plumes: Literal[False] | PathLike = ..., plume_map: Literal[False] | PathLike = ..., full: bool = ..., **options: Unpack[_GasOptions]) -> GasResult[PathLike, PathLike]: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def gas(src: _A, *, save_absorption: Literal[False] = ..., plumes: Literal[False] = ..., plume_map: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_GasOptions]) -> _A: ...
@overload
def gas(src: _A, *, save_absorption: Literal[True], plumes: Literal[False] = ..., plume_map: Literal[False] = ..., full: bool = ..., **options: Unpack[_GasOptions]) -> _GasLabelledSave_absorptionPair[_A]: ...
@overload
def gas(src: _A, *, save_absorption: Literal[False] = ..., plumes: Literal[True], plume_map: Literal[False] = ..., full: bool = ..., **options: Unpack[_GasOptions]) -> _GasLabelledPlumesPair[_A]: ...
@overload
def gas(src: _A, *, save_absorption: Literal[False] = ..., plumes: Literal[False] = ..., plume_map: Literal[True], full: bool = ..., **options: Unpack[_GasOptions]) -> _GasLabelledPlume_mapPair[_A]: ...
@overload
def gas(src: _A, *, save_absorption: bool = ..., plumes: bool = ..., plume_map: bool = ..., full: bool = ..., **options: Unpack[_GasOptions]) -> GasResult[_A, _A]: ...
@overload
def gas(src: ArrayLike, *, save_absorption: Literal[False] = ..., plumes: Literal[False] = ..., plume_map: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_GasOptions]) -> Values: ...
@overload
def gas(src: ArrayLike, *, save_absorption: Literal[True], plumes: Literal[False] = ..., plume_map: Literal[False] = ..., full: bool = ..., **options: Unpack[_GasOptions]) -> _GasSave_absorptionPair: ...
@overload
def gas(src: ArrayLike, *, save_absorption: Literal[False] = ..., plumes: Literal[True], plume_map: Literal[False] = ..., full: bool = ..., **options: Unpack[_GasOptions]) -> _GasPlumesPair: ...
@overload
def gas(src: ArrayLike, *, save_absorption: Literal[False] = ..., plumes: Literal[False] = ..., plume_map: Literal[True], full: bool = ..., **options: Unpack[_GasOptions]) -> _GasPlume_mapPair: ...
@overload
def gas(src: ArrayLike, *, save_absorption: bool = ..., plumes: bool = ..., plume_map: bool = ..., full: bool = ..., **options: Unpack[_GasOptions]) -> GasResult[Values, Classes]: ...
class _IdentifyOptions(TypedDict, total=False):
    mask: ArrayLike | PathLike | None
    mask_exclude: ArrayLike | PathLike | None
    mask_flags_from: ArrayLike | PathLike | None
    library: Spectra | ArrayLike | Mapping[str, ArrayLike] | PathLike | None
    colours: Mapping[str, Sequence[object]] | PathLike | None
    b: str | float | Sequence[str | float] | None
    exclude_range: str | float | Sequence[str | float] | None
    srcwin: Sequence[str | float] | None
    srcnodata: str | float | None
    mask_flags: str | float | Sequence[str | float] | None
    mask_output: bool | None
    ot: str | float | None
    dstnodata: str | float | None
    memory: str | float | None
    threads: str | float | None
    tile: Sequence[str | float] | None
    resample: Literal['auto', 'response', 'linear'] | None
    library_scale: float | None
    best: Literal['fit', 'depth', 'fd'] | None
    group: str | float | Sequence[str | float] | None
    rule: str | float | Sequence[str | float] | None
    materials_value: Literal['fit', 'depth', 'fd'] | None
    materials_where: Literal['won', 'accepted'] | None
    explain: Sequence[int] | Sequence[Sequence[int]] | None
    band_axis: int
    nodata: float | None
    wavelengths: ArrayLike | None
    fwhm: ArrayLike | None
    names: Sequence[str] | None
    out: NDArray[np.generic] | PathLike | Sequence[PathLike] | None
    progress: bool | Callable[[float], object] | None
class IdentifyResult(Result, Generic[_V, _C]):
    dst: _V
    scores: _V
    centre: _V
    areas: str
    materials: _V
class _IdentifyLabelledScoresPair(IdentifyResult[_A, _A], tuple[_A, _A], Generic[_A]):  # type: ignore[misc, unused-ignore]
    ...
class _IdentifyLabelledCentrePair(IdentifyResult[_A, _A], tuple[_A, _A], Generic[_A]):  # type: ignore[misc, unused-ignore]
    ...
class _IdentifyLabelledAreasPair(IdentifyResult[_A, _A], tuple[_A, str], Generic[_A]):  # type: ignore[misc, unused-ignore]
    ...
class _IdentifyLabelledMaterialsPair(IdentifyResult[_A, _A], tuple[_A, _A], Generic[_A]):  # type: ignore[misc, unused-ignore]
    ...
class _IdentifyScoresPair(IdentifyResult[Values, Classes], tuple[Values, Values]):  # type: ignore[misc, unused-ignore]
    ...
class _IdentifyCentrePair(IdentifyResult[Values, Classes], tuple[Values, Values]):  # type: ignore[misc, unused-ignore]
    ...
class _IdentifyAreasPair(IdentifyResult[Values, Classes], tuple[Values, str]):  # type: ignore[misc, unused-ignore]
    ...
class _IdentifyMaterialsPair(IdentifyResult[Values, Classes], tuple[Values, Values]):  # type: ignore[misc, unused-ignore]
    ...
@overload
def identify(src: PathLike, rules: Model | Mapping[str, object] | PathLike, *, scores: Literal[False] = ..., centre: Literal[False] = ..., areas: Literal[False] = ..., materials: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_IdentifyOptions]) -> PathLike: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def identify(src: PathLike, rules: Model | Mapping[str, object] | PathLike, *, scores: Literal[False] | PathLike = ..., centre: Literal[False] | PathLike = ..., areas: Literal[False] | PathLike = ..., materials: Literal[False] | PathLike = ..., full: bool = ..., **options: Unpack[_IdentifyOptions]) -> IdentifyResult[PathLike, PathLike]: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def identify(src: _A, rules: Model | Mapping[str, object] | PathLike, *, scores: Literal[False] = ..., centre: Literal[False] = ..., areas: Literal[False] = ..., materials: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_IdentifyOptions]) -> _A: ...
@overload
def identify(src: _A, rules: Model | Mapping[str, object] | PathLike, *, scores: Literal[True], centre: Literal[False] = ..., areas: Literal[False] = ..., materials: Literal[False] = ..., full: bool = ..., **options: Unpack[_IdentifyOptions]) -> _IdentifyLabelledScoresPair[_A]: ...
@overload
def identify(src: _A, rules: Model | Mapping[str, object] | PathLike, *, scores: Literal[False] = ..., centre: Literal[True], areas: Literal[False] = ..., materials: Literal[False] = ..., full: bool = ..., **options: Unpack[_IdentifyOptions]) -> _IdentifyLabelledCentrePair[_A]: ...
@overload
def identify(src: _A, rules: Model | Mapping[str, object] | PathLike, *, scores: Literal[False] = ..., centre: Literal[False] = ..., areas: Literal[True], materials: Literal[False] = ..., full: bool = ..., **options: Unpack[_IdentifyOptions]) -> _IdentifyLabelledAreasPair[_A]: ...
@overload
def identify(src: _A, rules: Model | Mapping[str, object] | PathLike, *, scores: Literal[False] = ..., centre: Literal[False] = ..., areas: Literal[False] = ..., materials: Literal[True], full: bool = ..., **options: Unpack[_IdentifyOptions]) -> _IdentifyLabelledMaterialsPair[_A]: ...
@overload
def identify(src: _A, rules: Model | Mapping[str, object] | PathLike, *, scores: bool = ..., centre: bool = ..., areas: bool = ..., materials: bool = ..., full: bool = ..., **options: Unpack[_IdentifyOptions]) -> IdentifyResult[_A, _A]: ...
@overload
def identify(src: ArrayLike, rules: Model | Mapping[str, object] | PathLike, *, scores: Literal[False] = ..., centre: Literal[False] = ..., areas: Literal[False] = ..., materials: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_IdentifyOptions]) -> Values: ...
@overload
def identify(src: ArrayLike, rules: Model | Mapping[str, object] | PathLike, *, scores: Literal[True], centre: Literal[False] = ..., areas: Literal[False] = ..., materials: Literal[False] = ..., full: bool = ..., **options: Unpack[_IdentifyOptions]) -> _IdentifyScoresPair: ...
@overload
def identify(src: ArrayLike, rules: Model | Mapping[str, object] | PathLike, *, scores: Literal[False] = ..., centre: Literal[True], areas: Literal[False] = ..., materials: Literal[False] = ..., full: bool = ..., **options: Unpack[_IdentifyOptions]) -> _IdentifyCentrePair: ...
@overload
def identify(src: ArrayLike, rules: Model | Mapping[str, object] | PathLike, *, scores: Literal[False] = ..., centre: Literal[False] = ..., areas: Literal[True], materials: Literal[False] = ..., full: bool = ..., **options: Unpack[_IdentifyOptions]) -> _IdentifyAreasPair: ...
@overload
def identify(src: ArrayLike, rules: Model | Mapping[str, object] | PathLike, *, scores: Literal[False] = ..., centre: Literal[False] = ..., areas: Literal[False] = ..., materials: Literal[True], full: bool = ..., **options: Unpack[_IdentifyOptions]) -> _IdentifyMaterialsPair: ...
@overload
def identify(src: ArrayLike, rules: Model | Mapping[str, object] | PathLike, *, scores: bool = ..., centre: bool = ..., areas: bool = ..., materials: bool = ..., full: bool = ..., **options: Unpack[_IdentifyOptions]) -> IdentifyResult[Values, Classes]: ...
class _IndexOptions(TypedDict, total=False):
    mask: ArrayLike | PathLike | None
    mask_exclude: ArrayLike | PathLike | None
    mask_flags_from: ArrayLike | PathLike | None
    b: str | float | Sequence[str | float] | None
    exclude_range: str | float | Sequence[str | float] | None
    srcwin: Sequence[str | float] | None
    srcnodata: str | float | None
    ot: str | float | None
    dstnodata: str | float | None
    mask_flags: str | float | Sequence[str | float] | None
    mask_output: bool | None
    memory: str | float | None
    threads: str | float | None
    tile: Sequence[str | float] | None
    name: str | float | Sequence[str | float] | None
    expr: str | float | Sequence[str | float] | None
    choice: Literal['nearest', 'linear', 'average', 'response'] | None
    tolerance: float | None
    width: float | None
    scale: float | None
    band_axis: int
    nodata: float | None
    wavelengths: ArrayLike | None
    fwhm: ArrayLike | None
    names: Sequence[str] | None
    out: NDArray[np.generic] | PathLike | Sequence[PathLike] | None
    progress: bool | Callable[[float], object] | None
class IndexResult(Result, Generic[_V, _C]):
    dst: _V
@overload
def index(src: PathLike | None = ..., *, full: Literal[False] = ..., **options: Unpack[_IndexOptions]) -> PathLike: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def index(src: PathLike | None = ..., *, full: bool = ..., **options: Unpack[_IndexOptions]) -> IndexResult[PathLike, PathLike]: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def index(src: _A | None = ..., *, full: Literal[False] = ..., **options: Unpack[_IndexOptions]) -> _A: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def index(src: _A | None = ..., *, full: bool = ..., **options: Unpack[_IndexOptions]) -> IndexResult[_A, _A]: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def index(src: ArrayLike | None = ..., *, full: Literal[False] = ..., **options: Unpack[_IndexOptions]) -> Values: ...
@overload
def index(src: ArrayLike | None = ..., *, full: bool = ..., **options: Unpack[_IndexOptions]) -> IndexResult[Values, Classes]: ...
class _MnfOptions(TypedDict, total=False):
    mask: ArrayLike | PathLike | None
    mask_exclude: ArrayLike | PathLike | None
    mask_flags_from: ArrayLike | PathLike | None
    apply: Model | Mapping[str, object] | PathLike | None
    statistics: Model | Mapping[str, object] | PathLike | None
    b: str | float | Sequence[str | float] | None
    exclude_range: str | float | Sequence[str | float] | None
    srcwin: Sequence[str | float] | None
    srcnodata: str | float | None
    mask_flags: str | float | Sequence[str | float] | None
    mask_output: bool | None
    ot: str | float | None
    dstnodata: str | float | None
    device: str | float | None
    memory: str | float | None
    device_memory: str | float | None
    threads: str | float | None
    tile: Sequence[str | float] | None
    nc: int | None
    inverse: bool | None
    any_wavelengths: bool | None
    any_scale: bool | None
    band_axis: int
    nodata: float | None
    wavelengths: ArrayLike | None
    fwhm: ArrayLike | None
    names: Sequence[str] | None
    out: NDArray[np.generic] | PathLike | Sequence[PathLike] | None
    progress: bool | Callable[[float], object] | None
class MnfResult(Result, Generic[_V, _C]):
    dst: _V
    model: Model
class _MnfLabelledPair(MnfResult[_A, _A], tuple[_A, Model], Generic[_A]):  # type: ignore[misc, unused-ignore]
    ...
class _MnfPair(MnfResult[Values, Classes], tuple[Values, Model]):  # type: ignore[misc, unused-ignore]
    ...
@overload
def mnf(src: PathLike, *, model: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_MnfOptions]) -> PathLike: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def mnf(src: PathLike, *, model: Literal[False] | PathLike = ..., full: bool = ..., **options: Unpack[_MnfOptions]) -> MnfResult[PathLike, PathLike]: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def mnf(src: _A, *, model: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_MnfOptions]) -> _A: ...
@overload
def mnf(src: _A, *, model: Literal[True], full: bool = ..., **options: Unpack[_MnfOptions]) -> _MnfLabelledPair[_A]: ...
@overload
def mnf(src: _A, *, model: bool = ..., full: bool = ..., **options: Unpack[_MnfOptions]) -> MnfResult[_A, _A]: ...
@overload
def mnf(src: ArrayLike, *, model: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_MnfOptions]) -> Values: ...
@overload
def mnf(src: ArrayLike, *, model: Literal[True], full: bool = ..., **options: Unpack[_MnfOptions]) -> _MnfPair: ...
@overload
def mnf(src: ArrayLike, *, model: bool = ..., full: bool = ..., **options: Unpack[_MnfOptions]) -> MnfResult[Values, Classes]: ...
class _NoiseOptions(TypedDict, total=False):
    mask: ArrayLike | PathLike | None
    mask_exclude: ArrayLike | PathLike | None
    mask_flags_from: ArrayLike | PathLike | None
    b: str | float | Sequence[str | float] | None
    exclude_range: str | float | Sequence[str | float] | None
    srcwin: Sequence[str | float] | None
    srcnodata: str | float | None
    mask_flags: str | float | Sequence[str | float] | None
    memory: str | float | None
    threads: str | float | None
    tile: Sequence[str | float] | None
    method: Literal['regression', 'residual', 'ssdc', 'lsd', 'difference', 'area'] | None
    block: int | None
    max_gap: float | None
    min_snr: float | None
    max_noise_share: float | None
    smile: str | float | Sequence[str | float] | None
    band_axis: int
    nodata: float | None
    wavelengths: ArrayLike | None
    fwhm: ArrayLike | None
    names: Sequence[str] | None
    out: NDArray[np.generic] | PathLike | Sequence[PathLike] | None
    progress: bool | Callable[[float], object] | None
class NoiseResult(Result, Generic[_V, _C]):
    csv: str
    bad_bands: str
    plot: str
    columns: str
@overload
def noise(src: PathLike, *, csv: Literal[False] = ..., bad_bands: Literal[False] = ..., plot: Literal[False] = ..., columns: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_NoiseOptions]) -> dict[str, object]: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def noise(src: PathLike, *, csv: Literal[False] | PathLike = ..., bad_bands: Literal[False] | PathLike = ..., plot: Literal[False] | PathLike = ..., columns: Literal[False] | PathLike = ..., full: bool = ..., **options: Unpack[_NoiseOptions]) -> NoiseResult[PathLike, PathLike]: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def noise(src: _A, *, csv: Literal[False] = ..., bad_bands: Literal[False] = ..., plot: Literal[False] = ..., columns: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_NoiseOptions]) -> dict[str, object]: ...
@overload
def noise(src: _A, *, csv: bool = ..., bad_bands: bool = ..., plot: bool = ..., columns: bool = ..., full: bool = ..., **options: Unpack[_NoiseOptions]) -> NoiseResult[_A, _A]: ...
@overload
def noise(src: ArrayLike, *, csv: Literal[False] = ..., bad_bands: Literal[False] = ..., plot: Literal[False] = ..., columns: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_NoiseOptions]) -> dict[str, object]: ...
@overload
def noise(src: ArrayLike, *, csv: bool = ..., bad_bands: bool = ..., plot: bool = ..., columns: bool = ..., full: bool = ..., **options: Unpack[_NoiseOptions]) -> NoiseResult[Values, Classes]: ...
class _NormaliseOptions(TypedDict, total=False):
    mask: ArrayLike | PathLike | None
    mask_exclude: ArrayLike | PathLike | None
    mask_flags_from: ArrayLike | PathLike | None
    geometry: ArrayLike | PathLike | None
    dem: ArrayLike | PathLike | None
    apply: Model | Mapping[str, object] | PathLike | None
    merge: Model | Mapping[str, object] | PathLike | None
    remove: Model | Mapping[str, object] | PathLike | None
    b: str | float | Sequence[str | float] | None
    exclude_range: str | float | Sequence[str | float] | None
    srcwin: Sequence[str | float] | None
    srcnodata: str | float | None
    mask_flags: str | float | Sequence[str | float] | None
    mask_output: bool | None
    ot: str | float | None
    dstnodata: str | float | None
    angle: str | float | Sequence[str | float] | None
    time: str | float | None
    topography: Literal['none', 'cosine', 'c', 'scs', 'scs+c', 'minnaert', 'minnaert-g'] | None
    brdf: Literal['none', 'universal', 'flex'] | None
    volume: Literal['ross-thick', 'ross-thin'] | None
    geometric: Literal['li-sparse', 'li-sparse-r', 'li-dense', 'li-dense-r'] | None
    b_r: float | None
    h_b: float | None
    ndvi: Sequence[float] | None
    bins: str | float | None
    min_pixels: int | None
    min_slope: float | None
    min_cos_i: float | None
    solar_zenith: str | float | None
    memory: str | float | None
    threads: str | float | None
    tile: Sequence[str | float] | None
    band_axis: int
    nodata: float | None
    wavelengths: ArrayLike | None
    fwhm: ArrayLike | None
    names: Sequence[str] | None
    out: NDArray[np.generic] | PathLike | Sequence[PathLike] | None
    progress: bool | Callable[[float], object] | None
class NormaliseResult(Result, Generic[_V, _C]):
    dst: _V
    angles: _V
    model: Model
class _NormaliseLabelledAnglesPair(NormaliseResult[_A, _A], tuple[_A, _A], Generic[_A]):  # type: ignore[misc, unused-ignore]
    ...
class _NormaliseLabelledModelPair(NormaliseResult[_A, _A], tuple[_A, Model], Generic[_A]):  # type: ignore[misc, unused-ignore]
    ...
class _NormaliseAnglesPair(NormaliseResult[Values, Classes], tuple[Values, Values]):  # type: ignore[misc, unused-ignore]
    ...
class _NormaliseModelPair(NormaliseResult[Values, Classes], tuple[Values, Model]):  # type: ignore[misc, unused-ignore]
    ...
@overload
def normalise(src: PathLike | None = ..., *, angles: Literal[False] = ..., model: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_NormaliseOptions]) -> PathLike: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def normalise(src: PathLike | None = ..., *, angles: Literal[False] | PathLike = ..., model: Literal[False] | PathLike = ..., full: bool = ..., **options: Unpack[_NormaliseOptions]) -> NormaliseResult[PathLike, PathLike]: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def normalise(src: _A | None = ..., *, angles: Literal[False] = ..., model: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_NormaliseOptions]) -> _A: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def normalise(src: _A | None = ..., *, angles: Literal[True], model: Literal[False] = ..., full: bool = ..., **options: Unpack[_NormaliseOptions]) -> _NormaliseLabelledAnglesPair[_A]: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def normalise(src: _A | None = ..., *, angles: Literal[False] = ..., model: Literal[True], full: bool = ..., **options: Unpack[_NormaliseOptions]) -> _NormaliseLabelledModelPair[_A]: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def normalise(src: _A | None = ..., *, angles: bool = ..., model: bool = ..., full: bool = ..., **options: Unpack[_NormaliseOptions]) -> NormaliseResult[_A, _A]: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def normalise(src: ArrayLike | None = ..., *, angles: Literal[False] = ..., model: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_NormaliseOptions]) -> Values: ...
@overload
def normalise(src: ArrayLike | None = ..., *, angles: Literal[True], model: Literal[False] = ..., full: bool = ..., **options: Unpack[_NormaliseOptions]) -> _NormaliseAnglesPair: ...
@overload
def normalise(src: ArrayLike | None = ..., *, angles: Literal[False] = ..., model: Literal[True], full: bool = ..., **options: Unpack[_NormaliseOptions]) -> _NormaliseModelPair: ...
@overload
def normalise(src: ArrayLike | None = ..., *, angles: bool = ..., model: bool = ..., full: bool = ..., **options: Unpack[_NormaliseOptions]) -> NormaliseResult[Values, Classes]: ...
class _PcaOptions(TypedDict, total=False):
    mask: ArrayLike | PathLike | None
    mask_exclude: ArrayLike | PathLike | None
    mask_flags_from: ArrayLike | PathLike | None
    apply: Model | Mapping[str, object] | PathLike | None
    statistics: Model | Mapping[str, object] | PathLike | None
    b: str | float | Sequence[str | float] | None
    exclude_range: str | float | Sequence[str | float] | None
    srcwin: Sequence[str | float] | None
    srcnodata: str | float | None
    mask_flags: str | float | Sequence[str | float] | None
    mask_output: bool | None
    ot: str | float | None
    dstnodata: str | float | None
    device: str | float | None
    memory: str | float | None
    device_memory: str | float | None
    threads: str | float | None
    tile: Sequence[str | float] | None
    nc: int | None
    scale: bool | None
    whiten: bool | None
    inverse: bool | None
    any_wavelengths: bool | None
    any_scale: bool | None
    band_axis: int
    nodata: float | None
    wavelengths: ArrayLike | None
    fwhm: ArrayLike | None
    names: Sequence[str] | None
    out: NDArray[np.generic] | PathLike | Sequence[PathLike] | None
    progress: bool | Callable[[float], object] | None
class PcaResult(Result, Generic[_V, _C]):
    dst: _V
    model: Model
class _PcaLabelledPair(PcaResult[_A, _A], tuple[_A, Model], Generic[_A]):  # type: ignore[misc, unused-ignore]
    ...
class _PcaPair(PcaResult[Values, Classes], tuple[Values, Model]):  # type: ignore[misc, unused-ignore]
    ...
@overload
def pca(src: PathLike, *, model: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_PcaOptions]) -> PathLike: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def pca(src: PathLike, *, model: Literal[False] | PathLike = ..., full: bool = ..., **options: Unpack[_PcaOptions]) -> PcaResult[PathLike, PathLike]: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def pca(src: _A, *, model: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_PcaOptions]) -> _A: ...
@overload
def pca(src: _A, *, model: Literal[True], full: bool = ..., **options: Unpack[_PcaOptions]) -> _PcaLabelledPair[_A]: ...
@overload
def pca(src: _A, *, model: bool = ..., full: bool = ..., **options: Unpack[_PcaOptions]) -> PcaResult[_A, _A]: ...
@overload
def pca(src: ArrayLike, *, model: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_PcaOptions]) -> Values: ...
@overload
def pca(src: ArrayLike, *, model: Literal[True], full: bool = ..., **options: Unpack[_PcaOptions]) -> _PcaPair: ...
@overload
def pca(src: ArrayLike, *, model: bool = ..., full: bool = ..., **options: Unpack[_PcaOptions]) -> PcaResult[Values, Classes]: ...
class _ProfileOptions(TypedDict, total=False):
    mask: ArrayLike | PathLike | None
    mask_exclude: ArrayLike | PathLike | None
    mask_flags_from: ArrayLike | PathLike | None
    b: str | float | Sequence[str | float] | None
    exclude_range: str | float | Sequence[str | float] | None
    srcwin: Sequence[str | float] | None
    srcnodata: str | float | None
    mask_flags: str | float | Sequence[str | float] | None
    mask_output: bool | None
    ot: str | float | None
    dstnodata: str | float | None
    kind: Literal['emp', 'eap', 'eep', 'emap', 'emep'] | None
    nc: int | None
    no_pca: bool | None
    attribute: str | float | Sequence[str | float] | None
    thresholds: str | float | Sequence[str | float] | None
    connectivity: Literal['4', '8'] | None
    device: str | float | None
    memory: str | float | None
    device_memory: str | float | None
    threads: str | float | None
    tile: Sequence[str | float] | None
    band_axis: int
    nodata: float | None
    wavelengths: ArrayLike | None
    fwhm: ArrayLike | None
    names: Sequence[str] | None
    out: NDArray[np.generic] | PathLike | Sequence[PathLike] | None
    progress: bool | Callable[[float], object] | None
class ProfileResult(Result, Generic[_V, _C]):
    dst: _V
@overload
def profile(src: PathLike, *, full: Literal[False] = ..., **options: Unpack[_ProfileOptions]) -> PathLike: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def profile(src: PathLike, *, full: bool = ..., **options: Unpack[_ProfileOptions]) -> ProfileResult[PathLike, PathLike]: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def profile(src: _A, *, full: Literal[False] = ..., **options: Unpack[_ProfileOptions]) -> _A: ...
@overload
def profile(src: _A, *, full: bool = ..., **options: Unpack[_ProfileOptions]) -> ProfileResult[_A, _A]: ...
@overload
def profile(src: ArrayLike, *, full: Literal[False] = ..., **options: Unpack[_ProfileOptions]) -> Values: ...
@overload
def profile(src: ArrayLike, *, full: bool = ..., **options: Unpack[_ProfileOptions]) -> ProfileResult[Values, Classes]: ...
class _QuicklookOptions(TypedDict, total=False):
    beside: ArrayLike | PathLike | None
    like: ArrayLike | PathLike | None
    points: ArrayLike | PathLike | None
    b: str | float | Sequence[str | float] | None
    exclude_range: str | float | Sequence[str | float] | None
    srcwin: Sequence[str | float] | None
    srcnodata: str | float | None
    ot: str | float | None
    dstnodata: str | float | None
    memory: str | float | None
    threads: str | float | None
    tile: Sequence[str | float] | None
    point_names: str | float | None
    size: int | None
    stretch: Sequence[float] | None
    gamma: float | None
    each: bool | None
    title: str | float | None
    frame: bool | None
    no_legend: bool | None
    band_axis: int
    nodata: float | None
    wavelengths: ArrayLike | None
    fwhm: ArrayLike | None
    names: Sequence[str] | None
    out: NDArray[np.generic] | PathLike | Sequence[PathLike] | None
    progress: bool | Callable[[float], object] | None
class QuicklookResult(Result, Generic[_V, _C]):
    dst: NDArray[np.uint8]
@overload
def quicklook(src: PathLike, *, full: Literal[False] = ..., **options: Unpack[_QuicklookOptions]) -> PathLike: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def quicklook(src: PathLike, *, full: bool = ..., **options: Unpack[_QuicklookOptions]) -> QuicklookResult[PathLike, PathLike]: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def quicklook(src: _A, *, full: Literal[False] = ..., **options: Unpack[_QuicklookOptions]) -> NDArray[np.uint8]: ...
@overload
def quicklook(src: _A, *, full: bool = ..., **options: Unpack[_QuicklookOptions]) -> QuicklookResult[_A, _A]: ...
@overload
def quicklook(src: ArrayLike, *, full: Literal[False] = ..., **options: Unpack[_QuicklookOptions]) -> NDArray[np.uint8]: ...
@overload
def quicklook(src: ArrayLike, *, full: bool = ..., **options: Unpack[_QuicklookOptions]) -> QuicklookResult[Values, Classes]: ...
class _ReflectOptions(TypedDict, total=False):
    mask: ArrayLike | PathLike | None
    mask_exclude: ArrayLike | PathLike | None
    mask_flags_from: ArrayLike | PathLike | None
    area: ArrayLike | PathLike | None
    reference: Spectra | ArrayLike | Mapping[str, ArrayLike] | PathLike | None
    targets: ArrayLike | PathLike | None
    library: Spectra | ArrayLike | Mapping[str, ArrayLike] | PathLike | None
    apply: Mapping[str, Sequence[object]] | PathLike | None
    b: str | float | Sequence[str | float] | None
    exclude_range: str | float | Sequence[str | float] | None
    srcwin: Sequence[str | float] | None
    srcnodata: str | float | None
    ot: str | float | None
    dstnodata: str | float | None
    mask_flags: str | float | Sequence[str | float] | None
    mask_output: bool | None
    memory: str | float | None
    threads: str | float | None
    tile: Sequence[str | float] | None
    method: Literal['flat', 'iarr', 'log-residual', 'empirical-line'] | None
    through_origin: bool | None
    band_axis: int
    nodata: float | None
    wavelengths: ArrayLike | None
    fwhm: ArrayLike | None
    names: Sequence[str] | None
    out: NDArray[np.generic] | PathLike | Sequence[PathLike] | None
    progress: bool | Callable[[float], object] | None
class ReflectResult(Result, Generic[_V, _C]):
    dst: _V
    coefficients: str
class _ReflectLabelledPair(ReflectResult[_A, _A], tuple[_A, str], Generic[_A]):  # type: ignore[misc, unused-ignore]
    ...
class _ReflectPair(ReflectResult[Values, Classes], tuple[Values, str]):  # type: ignore[misc, unused-ignore]
    ...
@overload
def reflect(src: PathLike, *, coefficients: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_ReflectOptions]) -> PathLike: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def reflect(src: PathLike, *, coefficients: Literal[False] | PathLike = ..., full: bool = ..., **options: Unpack[_ReflectOptions]) -> ReflectResult[PathLike, PathLike]: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def reflect(src: _A, *, coefficients: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_ReflectOptions]) -> _A: ...
@overload
def reflect(src: _A, *, coefficients: Literal[True], full: bool = ..., **options: Unpack[_ReflectOptions]) -> _ReflectLabelledPair[_A]: ...
@overload
def reflect(src: _A, *, coefficients: bool = ..., full: bool = ..., **options: Unpack[_ReflectOptions]) -> ReflectResult[_A, _A]: ...
@overload
def reflect(src: ArrayLike, *, coefficients: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_ReflectOptions]) -> Values: ...
@overload
def reflect(src: ArrayLike, *, coefficients: Literal[True], full: bool = ..., **options: Unpack[_ReflectOptions]) -> _ReflectPair: ...
@overload
def reflect(src: ArrayLike, *, coefficients: bool = ..., full: bool = ..., **options: Unpack[_ReflectOptions]) -> ReflectResult[Values, Classes]: ...
class _RegressionPredictOptions(TypedDict, total=False):
    reference: ArrayLike | PathLike | None
    b: str | float | Sequence[str | float] | None
    exclude_range: str | float | Sequence[str | float] | None
    srcwin: Sequence[str | float] | None
    srcnodata: str | float | None
    ot: str | float | None
    dstnodata: str | float | None
    apply: str | float | Sequence[str | float] | None
    resample: Literal['auto', 'response', 'linear'] | None
    any_wavelengths: bool | None
    per: Literal['feature', 'pixel'] | None
    device: str | float | None
    memory: str | float | None
    device_memory: str | float | None
    threads: str | float | None
    tile: Sequence[str | float] | None
    band_axis: int
    nodata: float | None
    wavelengths: ArrayLike | None
    fwhm: ArrayLike | None
    names: Sequence[str] | None
    out: NDArray[np.generic] | PathLike | Sequence[PathLike] | None
    progress: bool | Callable[[float], object] | None
class RegressionPredictResult(Result, Generic[_V, _C]):
    dst: _V
    predictions: str
    scatter: str
class _RegressionPredictLabelledPredictionsPair(RegressionPredictResult[_A, _A], tuple[_A, str], Generic[_A]):  # type: ignore[misc, unused-ignore]
    ...
class _RegressionPredictLabelledScatterPair(RegressionPredictResult[_A, _A], tuple[_A, str], Generic[_A]):  # type: ignore[misc, unused-ignore]
    ...
class _RegressionPredictPredictionsPair(RegressionPredictResult[Values, Classes], tuple[Values, str]):  # type: ignore[misc, unused-ignore]
    ...
class _RegressionPredictScatterPair(RegressionPredictResult[Values, Classes], tuple[Values, str]):  # type: ignore[misc, unused-ignore]
    ...
@overload
def regression_predict(src: PathLike, model: Model | Mapping[str, object] | PathLike | None = ..., *, predictions: Literal[False] = ..., scatter: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_RegressionPredictOptions]) -> PathLike: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def regression_predict(src: PathLike, model: Model | Mapping[str, object] | PathLike | None = ..., *, predictions: Literal[False] | PathLike = ..., scatter: Literal[False] | PathLike = ..., full: bool = ..., **options: Unpack[_RegressionPredictOptions]) -> RegressionPredictResult[PathLike, PathLike]: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def regression_predict(src: _A, model: Model | Mapping[str, object] | PathLike | None = ..., *, predictions: Literal[False] = ..., scatter: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_RegressionPredictOptions]) -> _A: ...
@overload
def regression_predict(src: _A, model: Model | Mapping[str, object] | PathLike | None = ..., *, predictions: Literal[True], scatter: Literal[False] = ..., full: bool = ..., **options: Unpack[_RegressionPredictOptions]) -> _RegressionPredictLabelledPredictionsPair[_A]: ...
@overload
def regression_predict(src: _A, model: Model | Mapping[str, object] | PathLike | None = ..., *, predictions: Literal[False] = ..., scatter: Literal[True], full: bool = ..., **options: Unpack[_RegressionPredictOptions]) -> _RegressionPredictLabelledScatterPair[_A]: ...
@overload
def regression_predict(src: _A, model: Model | Mapping[str, object] | PathLike | None = ..., *, predictions: bool = ..., scatter: bool = ..., full: bool = ..., **options: Unpack[_RegressionPredictOptions]) -> RegressionPredictResult[_A, _A]: ...
@overload
def regression_predict(src: ArrayLike, model: Model | Mapping[str, object] | PathLike | None = ..., *, predictions: Literal[False] = ..., scatter: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_RegressionPredictOptions]) -> Values: ...
@overload
def regression_predict(src: ArrayLike, model: Model | Mapping[str, object] | PathLike | None = ..., *, predictions: Literal[True], scatter: Literal[False] = ..., full: bool = ..., **options: Unpack[_RegressionPredictOptions]) -> _RegressionPredictPredictionsPair: ...
@overload
def regression_predict(src: ArrayLike, model: Model | Mapping[str, object] | PathLike | None = ..., *, predictions: Literal[False] = ..., scatter: Literal[True], full: bool = ..., **options: Unpack[_RegressionPredictOptions]) -> _RegressionPredictScatterPair: ...
@overload
def regression_predict(src: ArrayLike, model: Model | Mapping[str, object] | PathLike | None = ..., *, predictions: bool = ..., scatter: bool = ..., full: bool = ..., **options: Unpack[_RegressionPredictOptions]) -> RegressionPredictResult[Values, Classes]: ...
class _RegressionTrainOptions(TypedDict, total=False):
    mask: ArrayLike | PathLike | None
    mask_exclude: ArrayLike | PathLike | None
    mask_flags_from: ArrayLike | PathLike | None
    b: str | float | Sequence[str | float] | None
    exclude_range: str | float | Sequence[str | float] | None
    srcwin: Sequence[str | float] | None
    srcnodata: str | float | None
    mask_flags: str | float | Sequence[str | float] | None
    per: Literal['feature', 'pixel'] | None
    block: int | None
    method: Literal['plsr', 'ridge', 'gp', 'svr'] | None
    transform: str | float | Sequence[str | float] | None
    scale: bool | None
    cv: int | None
    seed: int | None
    components: int | None
    max_components: int | None
    lambda_: float | Sequence[float] | None
    members: int | None
    share: float | None
    select: Literal['likelihood', 'cv'] | None
    C: float | Sequence[float] | None
    gamma: float | Sequence[float] | None
    epsilon: float | None
    max_samples: int | None
    memory: str | float | None
    threads: str | float | None
    tile: Sequence[str | float] | None
    band_axis: int
    nodata: float | None
    wavelengths: ArrayLike | None
    fwhm: ArrayLike | None
    names: Sequence[str] | None
    out: NDArray[np.generic] | PathLike | Sequence[PathLike] | None
    progress: bool | Callable[[float], object] | None
class RegressionTrainResult(Result, Generic[_V, _C]):
    model: Model
    predictions: str
    scatter: str
    hytools: str
class _RegressionTrainLabelledPredictionsPair(RegressionTrainResult[_A, _A], tuple[Model, str], Generic[_A]):  # type: ignore[misc, unused-ignore]
    ...
class _RegressionTrainLabelledScatterPair(RegressionTrainResult[_A, _A], tuple[Model, str], Generic[_A]):  # type: ignore[misc, unused-ignore]
    ...
class _RegressionTrainLabelledHytoolsPair(RegressionTrainResult[_A, _A], tuple[Model, str], Generic[_A]):  # type: ignore[misc, unused-ignore]
    ...
class _RegressionTrainPredictionsPair(RegressionTrainResult[Values, Classes], tuple[Model, str]):  # type: ignore[misc, unused-ignore]
    ...
class _RegressionTrainScatterPair(RegressionTrainResult[Values, Classes], tuple[Model, str]):  # type: ignore[misc, unused-ignore]
    ...
class _RegressionTrainHytoolsPair(RegressionTrainResult[Values, Classes], tuple[Model, str]):  # type: ignore[misc, unused-ignore]
    ...
@overload
def regression_train(src: PathLike | None = ..., labels: ArrayLike | PathLike | None = ..., *, predictions: Literal[False] = ..., scatter: Literal[False] = ..., hytools: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_RegressionTrainOptions]) -> PathLike: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def regression_train(src: PathLike | None = ..., labels: ArrayLike | PathLike | None = ..., *, predictions: Literal[False] | PathLike = ..., scatter: Literal[False] | PathLike = ..., hytools: Literal[False] | PathLike = ..., full: bool = ..., **options: Unpack[_RegressionTrainOptions]) -> RegressionTrainResult[PathLike, PathLike]: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def regression_train(src: _A | None = ..., labels: ArrayLike | PathLike | None = ..., *, predictions: Literal[False] = ..., scatter: Literal[False] = ..., hytools: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_RegressionTrainOptions]) -> Model: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def regression_train(src: _A | None = ..., labels: ArrayLike | PathLike | None = ..., *, predictions: Literal[True], scatter: Literal[False] = ..., hytools: Literal[False] = ..., full: bool = ..., **options: Unpack[_RegressionTrainOptions]) -> _RegressionTrainLabelledPredictionsPair[_A]: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def regression_train(src: _A | None = ..., labels: ArrayLike | PathLike | None = ..., *, predictions: Literal[False] = ..., scatter: Literal[True], hytools: Literal[False] = ..., full: bool = ..., **options: Unpack[_RegressionTrainOptions]) -> _RegressionTrainLabelledScatterPair[_A]: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def regression_train(src: _A | None = ..., labels: ArrayLike | PathLike | None = ..., *, predictions: Literal[False] = ..., scatter: Literal[False] = ..., hytools: Literal[True], full: bool = ..., **options: Unpack[_RegressionTrainOptions]) -> _RegressionTrainLabelledHytoolsPair[_A]: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def regression_train(src: _A | None = ..., labels: ArrayLike | PathLike | None = ..., *, predictions: bool = ..., scatter: bool = ..., hytools: bool = ..., full: bool = ..., **options: Unpack[_RegressionTrainOptions]) -> RegressionTrainResult[_A, _A]: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def regression_train(src: ArrayLike | None = ..., labels: ArrayLike | PathLike | None = ..., *, predictions: Literal[False] = ..., scatter: Literal[False] = ..., hytools: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_RegressionTrainOptions]) -> Model: ...
@overload
def regression_train(src: ArrayLike | None = ..., labels: ArrayLike | PathLike | None = ..., *, predictions: Literal[True], scatter: Literal[False] = ..., hytools: Literal[False] = ..., full: bool = ..., **options: Unpack[_RegressionTrainOptions]) -> _RegressionTrainPredictionsPair: ...
@overload
def regression_train(src: ArrayLike | None = ..., labels: ArrayLike | PathLike | None = ..., *, predictions: Literal[False] = ..., scatter: Literal[True], hytools: Literal[False] = ..., full: bool = ..., **options: Unpack[_RegressionTrainOptions]) -> _RegressionTrainScatterPair: ...
@overload
def regression_train(src: ArrayLike | None = ..., labels: ArrayLike | PathLike | None = ..., *, predictions: Literal[False] = ..., scatter: Literal[False] = ..., hytools: Literal[True], full: bool = ..., **options: Unpack[_RegressionTrainOptions]) -> _RegressionTrainHytoolsPair: ...
@overload
def regression_train(src: ArrayLike | None = ..., labels: ArrayLike | PathLike | None = ..., *, predictions: bool = ..., scatter: bool = ..., hytools: bool = ..., full: bool = ..., **options: Unpack[_RegressionTrainOptions]) -> RegressionTrainResult[Values, Classes]: ...
class _RegularizeOptions(TypedDict, total=False):
    scene: ArrayLike | PathLike | None
    labels: ArrayLike | PathLike | None
    b: str | float | Sequence[str | float] | None
    exclude_range: str | float | Sequence[str | float] | None
    srcwin: Sequence[str | float] | None
    srcnodata: str | float | None
    ot: str | float | None
    dstnodata: str | float | None
    lambda_: float | None
    mu: float | None
    iterations: int | None
    tv: Literal['isotropic', 'anisotropic'] | None
    boundary: Literal['reflect', 'periodic'] | None
    zero: Literal['auto', 'class', 'none'] | None
    leave_out: str | float | Sequence[str | float] | None
    device: str | float | None
    memory: str | float | None
    device_memory: str | float | None
    threads: str | float | None
    tile: Sequence[str | float] | None
    band_axis: int
    nodata: float | None
    wavelengths: ArrayLike | None
    fwhm: ArrayLike | None
    names: Sequence[str] | None
    out: NDArray[np.generic] | PathLike | Sequence[PathLike] | None
    progress: bool | Callable[[float], object] | None
class RegularizeResult(Result, Generic[_V, _C]):
    dst: _V
    map: _C
class _RegularizeLabelledPair(RegularizeResult[_A, _A], tuple[_A, _A], Generic[_A]):  # type: ignore[misc, unused-ignore]
    ...
class _RegularizePair(RegularizeResult[Values, Classes], tuple[Values, Classes]):  # type: ignore[misc, unused-ignore]
    ...
@overload
def regularize(src: PathLike, *, map: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_RegularizeOptions]) -> PathLike: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def regularize(src: PathLike, *, map: Literal[False] | PathLike = ..., full: bool = ..., **options: Unpack[_RegularizeOptions]) -> RegularizeResult[PathLike, PathLike]: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def regularize(src: _A, *, map: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_RegularizeOptions]) -> _A: ...
@overload
def regularize(src: _A, *, map: Literal[True], full: bool = ..., **options: Unpack[_RegularizeOptions]) -> _RegularizeLabelledPair[_A]: ...
@overload
def regularize(src: _A, *, map: bool = ..., full: bool = ..., **options: Unpack[_RegularizeOptions]) -> RegularizeResult[_A, _A]: ...
@overload
def regularize(src: ArrayLike, *, map: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_RegularizeOptions]) -> Values: ...
@overload
def regularize(src: ArrayLike, *, map: Literal[True], full: bool = ..., **options: Unpack[_RegularizeOptions]) -> _RegularizePair: ...
@overload
def regularize(src: ArrayLike, *, map: bool = ..., full: bool = ..., **options: Unpack[_RegularizeOptions]) -> RegularizeResult[Values, Classes]: ...
class _ResampleOptions(TypedDict, total=False):
    like: ArrayLike | PathLike | None
    bands: Spectra | ArrayLike | Mapping[str, ArrayLike] | PathLike | None
    mask: ArrayLike | PathLike | None
    mask_exclude: ArrayLike | PathLike | None
    mask_flags_from: ArrayLike | PathLike | None
    b: str | float | Sequence[str | float] | None
    exclude_range: str | float | Sequence[str | float] | None
    srcwin: Sequence[str | float] | None
    srcnodata: str | float | None
    ot: str | float | None
    dstnodata: str | float | None
    resample: Literal['response', 'linear'] | None
    mask_flags: str | float | Sequence[str | float] | None
    mask_output: bool | None
    memory: str | float | None
    threads: str | float | None
    tile: Sequence[str | float] | None
    band_axis: int
    nodata: float | None
    wavelengths: ArrayLike | None
    fwhm: ArrayLike | None
    names: Sequence[str] | None
    out: NDArray[np.generic] | PathLike | Sequence[PathLike] | None
    progress: bool | Callable[[float], object] | None
class ResampleResult(Result, Generic[_V, _C]):
    dst: _V
@overload
def resample(src: PathLike, *, full: Literal[False] = ..., **options: Unpack[_ResampleOptions]) -> PathLike: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def resample(src: PathLike, *, full: bool = ..., **options: Unpack[_ResampleOptions]) -> ResampleResult[PathLike, PathLike]: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def resample(src: _A, *, full: Literal[False] = ..., **options: Unpack[_ResampleOptions]) -> _A: ...
@overload
def resample(src: _A, *, full: bool = ..., **options: Unpack[_ResampleOptions]) -> ResampleResult[_A, _A]: ...
@overload
def resample(src: ArrayLike, *, full: Literal[False] = ..., **options: Unpack[_ResampleOptions]) -> Values: ...
@overload
def resample(src: ArrayLike, *, full: bool = ..., **options: Unpack[_ResampleOptions]) -> ResampleResult[Values, Classes]: ...
class _SahicOptions(TypedDict, total=False):
    mask: ArrayLike | PathLike | None
    mask_exclude: ArrayLike | PathLike | None
    mask_flags_from: ArrayLike | PathLike | None
    apply: Model | Mapping[str, object] | PathLike | None
    b: str | float | Sequence[str | float] | None
    exclude_range: str | float | Sequence[str | float] | None
    srcwin: Sequence[str | float] | None
    srcnodata: str | float | None
    mask_flags: str | float | Sequence[str | float] | None
    mask_output: bool | None
    ot: str | float | None
    dstnodata: str | float | None
    delta: float | None
    lambda_c: float | None
    beta: float | None
    beta_growth: float | None
    lorsal_solver: Literal['paper', 'optimum'] | None
    lambda_: float | None
    mu: float | None
    iterations: int | None
    tv: Literal['isotropic', 'anisotropic'] | None
    boundary: Literal['reflect', 'periodic'] | None
    no_spatial: bool | None
    any_wavelengths: bool | None
    any_scale: bool | None
    zero: Literal['auto', 'class', 'none'] | None
    leave_out: str | float | Sequence[str | float] | None
    device: str | float | None
    memory: str | float | None
    device_memory: str | float | None
    threads: str | float | None
    tile: Sequence[str | float] | None
    band_axis: int
    nodata: float | None
    wavelengths: ArrayLike | None
    fwhm: ArrayLike | None
    names: Sequence[str] | None
    out: NDArray[np.generic] | PathLike | Sequence[PathLike] | None
    progress: bool | Callable[[float], object] | None
class SahicResult(Result, Generic[_V, _C]):
    dst: _C
    probabilities: _V
    confidence: _V
    model: Model
class _SahicLabelledProbabilitiesPair(SahicResult[_A, _A], tuple[_A, _A], Generic[_A]):  # type: ignore[misc, unused-ignore]
    ...
class _SahicLabelledConfidencePair(SahicResult[_A, _A], tuple[_A, _A], Generic[_A]):  # type: ignore[misc, unused-ignore]
    ...
class _SahicLabelledModelPair(SahicResult[_A, _A], tuple[_A, Model], Generic[_A]):  # type: ignore[misc, unused-ignore]
    ...
class _SahicProbabilitiesPair(SahicResult[Values, Classes], tuple[Classes, Values]):  # type: ignore[misc, unused-ignore]
    ...
class _SahicConfidencePair(SahicResult[Values, Classes], tuple[Classes, Values]):  # type: ignore[misc, unused-ignore]
    ...
class _SahicModelPair(SahicResult[Values, Classes], tuple[Classes, Model]):  # type: ignore[misc, unused-ignore]
    ...
@overload
def sahic(src: PathLike, labels: ArrayLike | PathLike, *, probabilities: Literal[False] = ..., confidence: Literal[False] = ..., model: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_SahicOptions]) -> PathLike: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def sahic(src: PathLike, labels: ArrayLike | PathLike, *, probabilities: Literal[False] | PathLike = ..., confidence: Literal[False] | PathLike = ..., model: Literal[False] | PathLike = ..., full: bool = ..., **options: Unpack[_SahicOptions]) -> SahicResult[PathLike, PathLike]: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def sahic(src: _A, labels: ArrayLike | PathLike, *, probabilities: Literal[False] = ..., confidence: Literal[False] = ..., model: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_SahicOptions]) -> _A: ...
@overload
def sahic(src: _A, labels: ArrayLike | PathLike, *, probabilities: Literal[True], confidence: Literal[False] = ..., model: Literal[False] = ..., full: bool = ..., **options: Unpack[_SahicOptions]) -> _SahicLabelledProbabilitiesPair[_A]: ...
@overload
def sahic(src: _A, labels: ArrayLike | PathLike, *, probabilities: Literal[False] = ..., confidence: Literal[True], model: Literal[False] = ..., full: bool = ..., **options: Unpack[_SahicOptions]) -> _SahicLabelledConfidencePair[_A]: ...
@overload
def sahic(src: _A, labels: ArrayLike | PathLike, *, probabilities: Literal[False] = ..., confidence: Literal[False] = ..., model: Literal[True], full: bool = ..., **options: Unpack[_SahicOptions]) -> _SahicLabelledModelPair[_A]: ...
@overload
def sahic(src: _A, labels: ArrayLike | PathLike, *, probabilities: bool = ..., confidence: bool = ..., model: bool = ..., full: bool = ..., **options: Unpack[_SahicOptions]) -> SahicResult[_A, _A]: ...
@overload
def sahic(src: ArrayLike, labels: ArrayLike | PathLike, *, probabilities: Literal[False] = ..., confidence: Literal[False] = ..., model: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_SahicOptions]) -> Classes: ...
@overload
def sahic(src: ArrayLike, labels: ArrayLike | PathLike, *, probabilities: Literal[True], confidence: Literal[False] = ..., model: Literal[False] = ..., full: bool = ..., **options: Unpack[_SahicOptions]) -> _SahicProbabilitiesPair: ...
@overload
def sahic(src: ArrayLike, labels: ArrayLike | PathLike, *, probabilities: Literal[False] = ..., confidence: Literal[True], model: Literal[False] = ..., full: bool = ..., **options: Unpack[_SahicOptions]) -> _SahicConfidencePair: ...
@overload
def sahic(src: ArrayLike, labels: ArrayLike | PathLike, *, probabilities: Literal[False] = ..., confidence: Literal[False] = ..., model: Literal[True], full: bool = ..., **options: Unpack[_SahicOptions]) -> _SahicModelPair: ...
@overload
def sahic(src: ArrayLike, labels: ArrayLike | PathLike, *, probabilities: bool = ..., confidence: bool = ..., model: bool = ..., full: bool = ..., **options: Unpack[_SahicOptions]) -> SahicResult[Values, Classes]: ...
class _SampleOptions(TypedDict, total=False):
    like: ArrayLike | PathLike | None
    ot: str | float | None
    dstnodata: str | float | None
    n: str | float | Sequence[str | float] | None
    fraction: str | float | Sequence[str | float] | None
    seed: int | None
    by: Literal['pixels', 'patches'] | None
    patch_pixels: int | None
    min_distance: float | None
    patches: int | None
    zero: Literal['auto', 'class', 'none'] | None
    leave_out: str | float | Sequence[str | float] | None
    band_axis: int
    nodata: float | None
    wavelengths: ArrayLike | None
    fwhm: ArrayLike | None
    names: Sequence[str] | None
    out: NDArray[np.generic] | PathLike | Sequence[PathLike] | None
    progress: bool | Callable[[float], object] | None
class SampleResult(Result, Generic[_V, _C]):
    dst: _C
    dst_test: _C
    cover: _V
    groups: _V
@overload
def sample(labels: PathLike, *, cover: Literal[False] = ..., groups: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_SampleOptions]) -> SampleResult[PathLike, PathLike]: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def sample(labels: PathLike, *, cover: Literal[False] | PathLike = ..., groups: Literal[False] | PathLike = ..., full: bool = ..., **options: Unpack[_SampleOptions]) -> SampleResult[PathLike, PathLike]: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def sample(labels: _A, *, cover: bool = ..., groups: bool = ..., full: bool = ..., **options: Unpack[_SampleOptions]) -> SampleResult[_A, _A]: ...
@overload
def sample(labels: ArrayLike, *, cover: bool = ..., groups: bool = ..., full: bool = ..., **options: Unpack[_SampleOptions]) -> SampleResult[Values, Classes]: ...
class _SmoothOptions(TypedDict, total=False):
    mask: ArrayLike | PathLike | None
    mask_exclude: ArrayLike | PathLike | None
    mask_flags_from: ArrayLike | PathLike | None
    reference: Spectra | ArrayLike | Mapping[str, ArrayLike] | PathLike | None
    b: str | float | Sequence[str | float] | None
    exclude_range: str | float | Sequence[str | float] | None
    srcwin: Sequence[str | float] | None
    srcnodata: str | float | None
    ot: str | float | None
    dstnodata: str | float | None
    mask_flags: str | float | Sequence[str | float] | None
    mask_output: bool | None
    memory: str | float | None
    threads: str | float | None
    tile: Sequence[str | float] | None
    method: Literal['savgol', 'mean', 'whittaker', 'absorbance', 'snv', 'msc', 'detrend', 'normalise'] | None
    window: int | None
    degree: int | None
    deriv: int | None
    lambda_: float | None
    order: int | None
    max_gap: float | None
    norm: Literal['area', 'max', 'l2', 'mean'] | None
    scale: float | None
    band_axis: int
    nodata: float | None
    wavelengths: ArrayLike | None
    fwhm: ArrayLike | None
    names: Sequence[str] | None
    out: NDArray[np.generic] | PathLike | Sequence[PathLike] | None
    progress: bool | Callable[[float], object] | None
class SmoothResult(Result, Generic[_V, _C]):
    dst: _V
@overload
def smooth(src: PathLike, *, full: Literal[False] = ..., **options: Unpack[_SmoothOptions]) -> PathLike: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def smooth(src: PathLike, *, full: bool = ..., **options: Unpack[_SmoothOptions]) -> SmoothResult[PathLike, PathLike]: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def smooth(src: _A, *, full: Literal[False] = ..., **options: Unpack[_SmoothOptions]) -> _A: ...
@overload
def smooth(src: _A, *, full: bool = ..., **options: Unpack[_SmoothOptions]) -> SmoothResult[_A, _A]: ...
@overload
def smooth(src: ArrayLike, *, full: Literal[False] = ..., **options: Unpack[_SmoothOptions]) -> Values: ...
@overload
def smooth(src: ArrayLike, *, full: bool = ..., **options: Unpack[_SmoothOptions]) -> SmoothResult[Values, Classes]: ...
class _SpectraOptions(TypedDict, total=False):
    mask: ArrayLike | PathLike | None
    mask_exclude: ArrayLike | PathLike | None
    mask_flags_from: ArrayLike | PathLike | None
    b: str | float | Sequence[str | float] | None
    exclude_range: str | float | Sequence[str | float] | None
    srcwin: Sequence[str | float] | None
    srcnodata: str | float | None
    mask_flags: str | float | Sequence[str | float] | None
    kind: Literal['mean', 'deviation', 'every'] | None
    spectrum: str | float | Sequence[str | float] | None
    range: str | float | Sequence[str | float] | None
    title: str | float | None
    zero: Literal['auto', 'class', 'none'] | None
    leave_out: str | float | Sequence[str | float] | None
    memory: str | float | None
    threads: str | float | None
    tile: Sequence[str | float] | None
    band_axis: int
    nodata: float | None
    wavelengths: ArrayLike | None
    fwhm: ArrayLike | None
    names: Sequence[str] | None
    out: NDArray[np.generic] | PathLike | Sequence[PathLike] | None
    progress: bool | Callable[[float], object] | None
class SpectraResult(Result, Generic[_V, _C]):
    out: Spectra
    plot: str
class _SpectraLabelledPair(SpectraResult[_A, _A], tuple[Spectra, str], Generic[_A]):  # type: ignore[misc, unused-ignore]
    ...
class _SpectraPair(SpectraResult[Values, Classes], tuple[Spectra, str]):  # type: ignore[misc, unused-ignore]
    ...
@overload
def spectra(src: PathLike, labels: ArrayLike | PathLike | None = ..., *, plot: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_SpectraOptions]) -> PathLike: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def spectra(src: PathLike, labels: ArrayLike | PathLike | None = ..., *, plot: Literal[False] | PathLike = ..., full: bool = ..., **options: Unpack[_SpectraOptions]) -> SpectraResult[PathLike, PathLike]: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def spectra(src: _A, labels: ArrayLike | PathLike | None = ..., *, plot: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_SpectraOptions]) -> Spectra: ...
@overload
def spectra(src: _A, labels: ArrayLike | PathLike | None = ..., *, plot: Literal[True], full: bool = ..., **options: Unpack[_SpectraOptions]) -> _SpectraLabelledPair[_A]: ...
@overload
def spectra(src: _A, labels: ArrayLike | PathLike | None = ..., *, plot: bool = ..., full: bool = ..., **options: Unpack[_SpectraOptions]) -> SpectraResult[_A, _A]: ...
@overload
def spectra(src: ArrayLike, labels: ArrayLike | PathLike | None = ..., *, plot: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_SpectraOptions]) -> Spectra: ...
@overload
def spectra(src: ArrayLike, labels: ArrayLike | PathLike | None = ..., *, plot: Literal[True], full: bool = ..., **options: Unpack[_SpectraOptions]) -> _SpectraPair: ...
@overload
def spectra(src: ArrayLike, labels: ArrayLike | PathLike | None = ..., *, plot: bool = ..., full: bool = ..., **options: Unpack[_SpectraOptions]) -> SpectraResult[Values, Classes]: ...
class _SppOptions(TypedDict, total=False):
    mask: ArrayLike | PathLike | None
    mask_exclude: ArrayLike | PathLike | None
    mask_flags_from: ArrayLike | PathLike | None
    b: str | float | Sequence[str | float] | None
    exclude_range: str | float | Sequence[str | float] | None
    srcwin: Sequence[str | float] | None
    srcnodata: str | float | None
    mask_flags: str | float | Sequence[str | float] | None
    mask_output: bool | None
    ot: str | float | None
    dstnodata: str | float | None
    device: str | float | None
    memory: str | float | None
    device_memory: str | float | None
    threads: str | float | None
    tile: Sequence[str | float] | None
    ws: int | None
    band_axis: int
    nodata: float | None
    wavelengths: ArrayLike | None
    fwhm: ArrayLike | None
    names: Sequence[str] | None
    out: NDArray[np.generic] | PathLike | Sequence[PathLike] | None
    progress: bool | Callable[[float], object] | None
class SppResult(Result, Generic[_V, _C]):
    dst: _V
    alpha: _V
    rho: _V
class _SppLabelledAlphaPair(SppResult[_A, _A], tuple[_A, _A], Generic[_A]):  # type: ignore[misc, unused-ignore]
    ...
class _SppLabelledRhoPair(SppResult[_A, _A], tuple[_A, _A], Generic[_A]):  # type: ignore[misc, unused-ignore]
    ...
class _SppAlphaPair(SppResult[Values, Classes], tuple[Values, Values]):  # type: ignore[misc, unused-ignore]
    ...
class _SppRhoPair(SppResult[Values, Classes], tuple[Values, Values]):  # type: ignore[misc, unused-ignore]
    ...
@overload
def spp(src: PathLike, *, alpha: Literal[False] = ..., rho: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_SppOptions]) -> PathLike: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def spp(src: PathLike, *, alpha: Literal[False] | PathLike = ..., rho: Literal[False] | PathLike = ..., full: bool = ..., **options: Unpack[_SppOptions]) -> SppResult[PathLike, PathLike]: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def spp(src: _A, *, alpha: Literal[False] = ..., rho: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_SppOptions]) -> _A: ...
@overload
def spp(src: _A, *, alpha: Literal[True], rho: Literal[False] = ..., full: bool = ..., **options: Unpack[_SppOptions]) -> _SppLabelledAlphaPair[_A]: ...
@overload
def spp(src: _A, *, alpha: Literal[False] = ..., rho: Literal[True], full: bool = ..., **options: Unpack[_SppOptions]) -> _SppLabelledRhoPair[_A]: ...
@overload
def spp(src: _A, *, alpha: bool = ..., rho: bool = ..., full: bool = ..., **options: Unpack[_SppOptions]) -> SppResult[_A, _A]: ...
@overload
def spp(src: ArrayLike, *, alpha: Literal[False] = ..., rho: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_SppOptions]) -> Values: ...
@overload
def spp(src: ArrayLike, *, alpha: Literal[True], rho: Literal[False] = ..., full: bool = ..., **options: Unpack[_SppOptions]) -> _SppAlphaPair: ...
@overload
def spp(src: ArrayLike, *, alpha: Literal[False] = ..., rho: Literal[True], full: bool = ..., **options: Unpack[_SppOptions]) -> _SppRhoPair: ...
@overload
def spp(src: ArrayLike, *, alpha: bool = ..., rho: bool = ..., full: bool = ..., **options: Unpack[_SppOptions]) -> SppResult[Values, Classes]: ...
class _StatisticsOptions(TypedDict, total=False):
    mask: ArrayLike | PathLike | None
    mask_exclude: ArrayLike | PathLike | None
    mask_flags_from: ArrayLike | PathLike | None
    merge: Model | Mapping[str, object] | PathLike | None
    remove: Model | Mapping[str, object] | PathLike | None
    b: str | float | Sequence[str | float] | None
    exclude_range: str | float | Sequence[str | float] | None
    srcwin: Sequence[str | float] | None
    srcnodata: str | float | None
    mask_flags: str | float | Sequence[str | float] | None
    memory: str | float | None
    threads: str | float | None
    tile: Sequence[str | float] | None
    band_axis: int
    nodata: float | None
    wavelengths: ArrayLike | None
    fwhm: ArrayLike | None
    names: Sequence[str] | None
    out: NDArray[np.generic] | PathLike | Sequence[PathLike] | None
    progress: bool | Callable[[float], object] | None
class StatisticsResult(Result, Generic[_V, _C]):
    model: Statistics
@overload
def statistics(scene: PathLike | None = ..., *, full: Literal[False] = ..., **options: Unpack[_StatisticsOptions]) -> PathLike: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def statistics(scene: PathLike | None = ..., *, full: bool = ..., **options: Unpack[_StatisticsOptions]) -> StatisticsResult[PathLike, PathLike]: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def statistics(scene: _A | None = ..., *, full: Literal[False] = ..., **options: Unpack[_StatisticsOptions]) -> Statistics: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def statistics(scene: _A | None = ..., *, full: bool = ..., **options: Unpack[_StatisticsOptions]) -> StatisticsResult[_A, _A]: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def statistics(scene: ArrayLike | None = ..., *, full: Literal[False] = ..., **options: Unpack[_StatisticsOptions]) -> Statistics: ...
@overload
def statistics(scene: ArrayLike | None = ..., *, full: bool = ..., **options: Unpack[_StatisticsOptions]) -> StatisticsResult[Values, Classes]: ...
class _SvmClassifyOptions(TypedDict, total=False):
    b: str | float | Sequence[str | float] | None
    exclude_range: str | float | Sequence[str | float] | None
    srcwin: Sequence[str | float] | None
    srcnodata: str | float | None
    ot: str | float | None
    dstnodata: str | float | None
    any_wavelengths: bool | None
    any_scale: bool | None
    device: str | float | None
    memory: str | float | None
    device_memory: str | float | None
    threads: str | float | None
    tile: Sequence[str | float] | None
    band_axis: int
    nodata: float | None
    wavelengths: ArrayLike | None
    fwhm: ArrayLike | None
    names: Sequence[str] | None
    out: NDArray[np.generic] | PathLike | Sequence[PathLike] | None
    progress: bool | Callable[[float], object] | None
class SvmClassifyResult(Result, Generic[_V, _C]):
    dst: _C
    probabilities: _V
    confidence: _V
class _SvmClassifyLabelledProbabilitiesPair(SvmClassifyResult[_A, _A], tuple[_A, _A], Generic[_A]):  # type: ignore[misc, unused-ignore]
    ...
class _SvmClassifyLabelledConfidencePair(SvmClassifyResult[_A, _A], tuple[_A, _A], Generic[_A]):  # type: ignore[misc, unused-ignore]
    ...
class _SvmClassifyProbabilitiesPair(SvmClassifyResult[Values, Classes], tuple[Classes, Values]):  # type: ignore[misc, unused-ignore]
    ...
class _SvmClassifyConfidencePair(SvmClassifyResult[Values, Classes], tuple[Classes, Values]):  # type: ignore[misc, unused-ignore]
    ...
@overload
def svm_classify(src: PathLike, model: Model | Mapping[str, object] | PathLike, *, probabilities: Literal[False] = ..., confidence: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_SvmClassifyOptions]) -> PathLike: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def svm_classify(src: PathLike, model: Model | Mapping[str, object] | PathLike, *, probabilities: Literal[False] | PathLike = ..., confidence: Literal[False] | PathLike = ..., full: bool = ..., **options: Unpack[_SvmClassifyOptions]) -> SvmClassifyResult[PathLike, PathLike]: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def svm_classify(src: _A, model: Model | Mapping[str, object] | PathLike, *, probabilities: Literal[False] = ..., confidence: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_SvmClassifyOptions]) -> _A: ...
@overload
def svm_classify(src: _A, model: Model | Mapping[str, object] | PathLike, *, probabilities: Literal[True], confidence: Literal[False] = ..., full: bool = ..., **options: Unpack[_SvmClassifyOptions]) -> _SvmClassifyLabelledProbabilitiesPair[_A]: ...
@overload
def svm_classify(src: _A, model: Model | Mapping[str, object] | PathLike, *, probabilities: Literal[False] = ..., confidence: Literal[True], full: bool = ..., **options: Unpack[_SvmClassifyOptions]) -> _SvmClassifyLabelledConfidencePair[_A]: ...
@overload
def svm_classify(src: _A, model: Model | Mapping[str, object] | PathLike, *, probabilities: bool = ..., confidence: bool = ..., full: bool = ..., **options: Unpack[_SvmClassifyOptions]) -> SvmClassifyResult[_A, _A]: ...
@overload
def svm_classify(src: ArrayLike, model: Model | Mapping[str, object] | PathLike, *, probabilities: Literal[False] = ..., confidence: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_SvmClassifyOptions]) -> Classes: ...
@overload
def svm_classify(src: ArrayLike, model: Model | Mapping[str, object] | PathLike, *, probabilities: Literal[True], confidence: Literal[False] = ..., full: bool = ..., **options: Unpack[_SvmClassifyOptions]) -> _SvmClassifyProbabilitiesPair: ...
@overload
def svm_classify(src: ArrayLike, model: Model | Mapping[str, object] | PathLike, *, probabilities: Literal[False] = ..., confidence: Literal[True], full: bool = ..., **options: Unpack[_SvmClassifyOptions]) -> _SvmClassifyConfidencePair: ...
@overload
def svm_classify(src: ArrayLike, model: Model | Mapping[str, object] | PathLike, *, probabilities: bool = ..., confidence: bool = ..., full: bool = ..., **options: Unpack[_SvmClassifyOptions]) -> SvmClassifyResult[Values, Classes]: ...
class _SvmTrainOptions(TypedDict, total=False):
    mask: ArrayLike | PathLike | None
    mask_exclude: ArrayLike | PathLike | None
    mask_flags_from: ArrayLike | PathLike | None
    b: str | float | Sequence[str | float] | None
    exclude_range: str | float | Sequence[str | float] | None
    srcwin: Sequence[str | float] | None
    srcnodata: str | float | None
    mask_flags: str | float | Sequence[str | float] | None
    C: float | Sequence[float] | None
    gamma: float | Sequence[float] | None
    cv: int | None
    cv_by: str | float | None
    cv_field: str | float | None
    seed: int | None
    probability: bool | None
    class_weights: Literal['none', 'balanced'] | None
    weight: str | float | Sequence[str | float] | None
    zero: Literal['auto', 'class', 'none'] | None
    leave_out: str | float | Sequence[str | float] | None
    memory: str | float | None
    threads: str | float | None
    tile: Sequence[str | float] | None
    band_axis: int
    nodata: float | None
    wavelengths: ArrayLike | None
    fwhm: ArrayLike | None
    names: Sequence[str] | None
    out: NDArray[np.generic] | PathLike | Sequence[PathLike] | None
    progress: bool | Callable[[float], object] | None
class SvmTrainResult(Result, Generic[_V, _C]):
    model: Model
    libsvm: str
class _SvmTrainLabelledPair(SvmTrainResult[_A, _A], tuple[Model, str], Generic[_A]):  # type: ignore[misc, unused-ignore]
    ...
class _SvmTrainPair(SvmTrainResult[Values, Classes], tuple[Model, str]):  # type: ignore[misc, unused-ignore]
    ...
@overload
def svm_train(src: PathLike, labels: ArrayLike | PathLike, *, libsvm: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_SvmTrainOptions]) -> PathLike: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def svm_train(src: PathLike, labels: ArrayLike | PathLike, *, libsvm: Literal[False] | PathLike = ..., full: bool = ..., **options: Unpack[_SvmTrainOptions]) -> SvmTrainResult[PathLike, PathLike]: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def svm_train(src: _A, labels: ArrayLike | PathLike, *, libsvm: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_SvmTrainOptions]) -> Model: ...
@overload
def svm_train(src: _A, labels: ArrayLike | PathLike, *, libsvm: Literal[True], full: bool = ..., **options: Unpack[_SvmTrainOptions]) -> _SvmTrainLabelledPair[_A]: ...
@overload
def svm_train(src: _A, labels: ArrayLike | PathLike, *, libsvm: bool = ..., full: bool = ..., **options: Unpack[_SvmTrainOptions]) -> SvmTrainResult[_A, _A]: ...
@overload
def svm_train(src: ArrayLike, labels: ArrayLike | PathLike, *, libsvm: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_SvmTrainOptions]) -> Model: ...
@overload
def svm_train(src: ArrayLike, labels: ArrayLike | PathLike, *, libsvm: Literal[True], full: bool = ..., **options: Unpack[_SvmTrainOptions]) -> _SvmTrainPair: ...
@overload
def svm_train(src: ArrayLike, labels: ArrayLike | PathLike, *, libsvm: bool = ..., full: bool = ..., **options: Unpack[_SvmTrainOptions]) -> SvmTrainResult[Values, Classes]: ...
class _UnmixOptions(TypedDict, total=False):
    classes: Mapping[str, Sequence[object]] | PathLike | None
    uncertainty: ArrayLike | PathLike | None
    b: str | float | Sequence[str | float] | None
    exclude_range: str | float | Sequence[str | float] | None
    srcwin: Sequence[str | float] | None
    srcnodata: str | float | None
    ot: str | float | None
    dstnodata: str | float | None
    method: Literal['ucls', 'nnls', 'scls', 'fcls'] | None
    spectrum: str | float | Sequence[str | float] | None
    library_scale: float | None
    any_scale: bool | None
    resample: Literal['auto', 'response', 'linear'] | None
    draws: int | None
    per_class: int | None
    seed: int | None
    normalise: Literal['none', 'unit', 'brightness'] | None
    device: str | float | None
    memory: str | float | None
    device_memory: str | float | None
    threads: str | float | None
    tile: Sequence[str | float] | None
    band_axis: int
    nodata: float | None
    wavelengths: ArrayLike | None
    fwhm: ArrayLike | None
    names: Sequence[str] | None
    out: NDArray[np.generic] | PathLike | Sequence[PathLike] | None
    progress: bool | Callable[[float], object] | None
class UnmixResult(Result, Generic[_V, _C]):
    dst: _V
    rmse: _V
    deviation: _V
class _UnmixLabelledRmsePair(UnmixResult[_A, _A], tuple[_A, _A], Generic[_A]):  # type: ignore[misc, unused-ignore]
    ...
class _UnmixLabelledDeviationPair(UnmixResult[_A, _A], tuple[_A, _A], Generic[_A]):  # type: ignore[misc, unused-ignore]
    ...
class _UnmixRmsePair(UnmixResult[Values, Classes], tuple[Values, Values]):  # type: ignore[misc, unused-ignore]
    ...
class _UnmixDeviationPair(UnmixResult[Values, Classes], tuple[Values, Values]):  # type: ignore[misc, unused-ignore]
    ...
@overload
def unmix(src: PathLike, library: Spectra | ArrayLike | Mapping[str, ArrayLike] | PathLike, *, rmse: Literal[False] = ..., deviation: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_UnmixOptions]) -> PathLike: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def unmix(src: PathLike, library: Spectra | ArrayLike | Mapping[str, ArrayLike] | PathLike, *, rmse: Literal[False] | PathLike = ..., deviation: Literal[False] | PathLike = ..., full: bool = ..., **options: Unpack[_UnmixOptions]) -> UnmixResult[PathLike, PathLike]: ...  # type: ignore[overload-overlap, unused-ignore]
@overload
def unmix(src: _A, library: Spectra | ArrayLike | Mapping[str, ArrayLike] | PathLike, *, rmse: Literal[False] = ..., deviation: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_UnmixOptions]) -> _A: ...
@overload
def unmix(src: _A, library: Spectra | ArrayLike | Mapping[str, ArrayLike] | PathLike, *, rmse: Literal[True], deviation: Literal[False] = ..., full: bool = ..., **options: Unpack[_UnmixOptions]) -> _UnmixLabelledRmsePair[_A]: ...
@overload
def unmix(src: _A, library: Spectra | ArrayLike | Mapping[str, ArrayLike] | PathLike, *, rmse: Literal[False] = ..., deviation: Literal[True], full: bool = ..., **options: Unpack[_UnmixOptions]) -> _UnmixLabelledDeviationPair[_A]: ...
@overload
def unmix(src: _A, library: Spectra | ArrayLike | Mapping[str, ArrayLike] | PathLike, *, rmse: bool = ..., deviation: bool = ..., full: bool = ..., **options: Unpack[_UnmixOptions]) -> UnmixResult[_A, _A]: ...
@overload
def unmix(src: ArrayLike, library: Spectra | ArrayLike | Mapping[str, ArrayLike] | PathLike, *, rmse: Literal[False] = ..., deviation: Literal[False] = ..., full: Literal[False] = ..., **options: Unpack[_UnmixOptions]) -> Values: ...
@overload
def unmix(src: ArrayLike, library: Spectra | ArrayLike | Mapping[str, ArrayLike] | PathLike, *, rmse: Literal[True], deviation: Literal[False] = ..., full: bool = ..., **options: Unpack[_UnmixOptions]) -> _UnmixRmsePair: ...
@overload
def unmix(src: ArrayLike, library: Spectra | ArrayLike | Mapping[str, ArrayLike] | PathLike, *, rmse: Literal[False] = ..., deviation: Literal[True], full: bool = ..., **options: Unpack[_UnmixOptions]) -> _UnmixDeviationPair: ...
@overload
def unmix(src: ArrayLike, library: Spectra | ArrayLike | Mapping[str, ArrayLike] | PathLike, *, rmse: bool = ..., deviation: bool = ..., full: bool = ..., **options: Unpack[_UnmixOptions]) -> UnmixResult[Values, Classes]: ...
class _VdOptions(TypedDict, total=False):
    mask: ArrayLike | PathLike | None
    mask_exclude: ArrayLike | PathLike | None
    mask_flags_from: ArrayLike | PathLike | None
    statistics: Model | Mapping[str, object] | PathLike | None
    b: str | float | Sequence[str | float] | None
    exclude_range: str | float | Sequence[str | float] | None
    srcwin: Sequence[str | float] | None
    srcnodata: str | float | None
    mask_flags: str | float | Sequence[str | float] | None
    memory: str | float | None
    threads: str | float | None
    tile: Sequence[str | float] | None
    method: Literal['hfc', 'nwhfc', 'hysime'] | None
    pf: float | None
    band_axis: int
    nodata: float | None
    wavelengths: ArrayLike | None
    fwhm: ArrayLike | None
    names: Sequence[str] | None
    out: NDArray[np.generic] | PathLike | Sequence[PathLike] | None
    progress: bool | Callable[[float], object] | None
def vd(src: ArrayLike | PathLike, *, full: bool = ..., **options: Unpack[_VdOptions]) -> dict[str, object]: ...
