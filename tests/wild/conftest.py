# SPDX-License-Identifier: MIT
"""Tests import the helpers and fixtures of tests/support/suite.py from here."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from suite import *  # noqa: E402,F401,F403
