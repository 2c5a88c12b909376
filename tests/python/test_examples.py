# SPDX-License-Identifier: MIT
"""Runs the example of each function, estimator and class in help()."""
import doctest
import inspect
import warnings

import pytest

import gdal_hsi as hsi

# Errors and warnings are raised, so they need no example.
NAMES = [name for name in hsi.__all__ if not (inspect.isclass(getattr(hsi, name)) and issubclass(getattr(hsi, name), Exception))]


@pytest.mark.parametrize("name", NAMES)
def test_an_example(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    examples = doctest.DocTestParser().get_doctest(inspect.getdoc(getattr(hsi, name)), {}, name, None, None)
    assert len(examples.examples) > 1, f"help(gdal_hsi.{name}) has no example"
    told = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        doctest.DocTestRunner(verbose=False).run(examples, out=told.append)
    assert not told, "".join(told)
