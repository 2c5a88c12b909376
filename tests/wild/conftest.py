# SPDX-License-Identifier: MIT
"""Helpers and fixtures are those of tests/support/suite.py; tests import them from here."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from suite import *  # noqa: E402,F401,F403
