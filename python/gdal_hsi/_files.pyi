# SPDX-License-Identifier: MIT
import os
from collections.abc import Callable
from typing import Optional, Union

def run(tool: str, *arguments: object, progress: Optional[Union[bool, Callable[[float], object]]] = ..., **options: object) -> str: ...
def info(path: Union[str, os.PathLike[str]], **options: object) -> dict[str, object]: ...
