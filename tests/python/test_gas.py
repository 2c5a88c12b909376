# SPDX-License-Identifier: MIT
"""Gas enhancements of arrays: a matched filter by columns in NumPy, additional bands, and mistakes in Python terms."""
import numpy as np
import pytest

import gdal_hsi as hsi

NM = [2130.0, 2200.0, 2280.0, 2350.0, 2430.0]
K = np.array([-1e-6, -4e-6, -2e-6, -2e-5, -9e-6])
RANDOM = np.random.default_rng(1)
VALUES = (np.array([1, 0.9, 0.8, 0.7, 0.6])[:, None, None] * RANDOM.uniform(0.5, 1, (1, 60, 4)) * RANDOM.normal(1, 0.01, (5, 60, 4))).astype(np.float32)


def test_values_are_those_of_numpy():
    got = np.asarray(hsi.gas(VALUES, method="mf", absorption=K[None], wavelengths=NM))
    x = VALUES.astype(float)
    for s in range(4):
        z = x[:, :, s] - x[:, :, s].mean(axis=1, keepdims=True)
        t = K * x[:, :, s].mean(axis=1)
        w = np.linalg.solve(z @ z.T / 60, t)
        assert np.allclose(np.squeeze(got)[:, s], w @ z / (w @ t), rtol=1e-4, atol=0.01)


def test_mistakes():
    with pytest.raises(ValueError, match="unit absorption"):
        hsi.gas(VALUES, wavelengths=NM)
