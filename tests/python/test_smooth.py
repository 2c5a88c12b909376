# SPDX-License-Identifier: MIT
"""Transforms of arrays: NumPy's values, the mean of MSC, and mistakes in Python terms."""
import numpy as np
import pytest

import gdal_hsi as hsi

NM = list(np.arange(500, 700, 10.0))
VALUES = np.random.default_rng(1).uniform(0.1, 0.5, (20, 12, 30)).astype(np.float32) + np.linspace(0, 1, 20, dtype=np.float32)[:, None, None]


def test_values_are_those_of_numpy():
    x = VALUES.astype(np.float64)
    assert np.allclose(hsi.smooth(VALUES, method="snv"), (x - x.mean(0)) / x.std(0, ddof=1), rtol=1e-6, atol=1e-6)
    assert np.allclose(hsi.smooth(VALUES, method="absorbance"), -np.log10(x), rtol=1e-6, atol=1e-6)
    mean = hsi.smooth(VALUES, method="mean", wavelengths=NM)
    assert np.allclose(mean[10], x[8:13].mean(0), rtol=1e-6)
    r = x.mean((1, 2)) - x.mean()
    b = np.tensordot(r, x - x.mean(0), 1) / (r ** 2).sum()
    assert np.allclose(hsi.smooth(VALUES, method="msc"), (x - x.mean(0)) / b + x.mean(), rtol=1e-5)


@pytest.mark.parametrize("options, words", [({"window": 4}, "even"), ({"method": "snv", "deriv": 1}, "savgol"), ({}, "wavelengths")])
def test_mistakes(options, words):
    with pytest.raises(hsi.Error, match="(?s).*" + words):
        hsi.smooth(VALUES, **options)
