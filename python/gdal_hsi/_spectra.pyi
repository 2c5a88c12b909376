# SPDX-License-Identifier: MIT
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Optional, Protocol, Union

import numpy as np
import pandas  # type: ignore[import-untyped, import-not-found, unused-ignore]
from numpy.typing import ArrayLike, NDArray

class _Labelled(Protocol):
    @property
    def dims(self) -> tuple[object, ...]: ...
    @property
    def coords(self) -> object: ...

class _Frame(Protocol):
    @property
    def columns(self) -> Iterable[object]: ...
    @property
    def index(self) -> object: ...
    @property
    def shape(self) -> tuple[int, int]: ...

class Spectra:
    spectra: NDArray[Union[np.float32, np.float64]]
    names: list[str]
    wavelengths: Optional[NDArray[np.float64]]
    fwhm: Optional[NDArray[np.float64]]
    band_numbers: Optional[list[int]]
    band_labels: Optional[list[object]]
    def __init__(
        self,
        spectra: Union[ArrayLike, Mapping[str, ArrayLike], _Labelled, _Frame, Spectra, str, os.PathLike[str]],
        names: Optional[Sequence[str]] = ...,
        wavelengths: Optional[ArrayLike] = ...,
        fwhm: Optional[ArrayLike] = ...,
        band_numbers: Optional[ArrayLike] = ...,
        band_labels: Optional[Sequence[object]] = ...,
    ) -> None: ...
    def __len__(self) -> int: ...
    def __array__(self, dtype: object = ..., copy: Optional[bool] = ...) -> NDArray[Union[np.float32, np.float64]]: ...
    def __getitem__(self, key: Union[str, int]) -> NDArray[Union[np.float32, np.float64]]: ...
    def check(self) -> None: ...
    def wavelengths_nm(self) -> Optional[NDArray[np.float64]]: ...
    @classmethod
    def load(cls, path: Union[str, os.PathLike[str]]) -> Spectra: ...
    def save(self, path: Union[str, os.PathLike[str]]) -> None: ...
    def to_dataframe(self) -> pandas.DataFrame: ...
