# SPDX-License-Identifier: MIT
"""The helpers and fixtures of tests/support/suite.py, with the package of this tree."""
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "support"), str(ROOT / "python")]
# The executable selects its BLAS's kernels for AVX2 (SAHIC's training); a library does not change its process's BLAS.
os.environ.setdefault("OPENBLAS_CORETYPE", "Haswell")
from suite import *  # noqa: E402,F401,F403

os.environ.setdefault("HSI_BIN_DIR", str(BIN))  # noqa: F405
os.environ.setdefault("HSI_LIBRARY", str(BIN.parent / "lib" / "libhsi.so.0"))  # noqa: F405
