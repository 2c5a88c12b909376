# SPDX-License-Identifier: MIT
import os
from typing import Union

class Model(str):
    def save(self, path: Union[str, os.PathLike[str]]) -> None: ...
    @classmethod
    def load(cls, path: Union[str, os.PathLike[str]]) -> Model: ...
    @property
    def document(self) -> dict[str, object]: ...
