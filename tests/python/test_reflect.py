# SPDX-License-Identifier: MIT
"""Reflectance of arrays: NumPy's values, with arrays as areas and masks."""
import numpy as np
import pytest

import gdal_hsi as hsi

VALUES = np.random.default_rng(4).uniform(100, 500, (6, 20, 30)).astype(np.float32)
NM = [500, 510, 520, 530, 540, 550]


def test_values_are_those_of_numpy():
    x = VALUES.astype(np.float64)
    assert np.allclose(hsi.reflect(VALUES, method="iarr", wavelengths=NM), x / x.mean((1, 2))[:, None, None], rtol=1e-6)
    area = np.zeros((20, 30), np.uint8)
    area[3:8, 4:20] = 1
    flat = hsi.reflect(VALUES, method="flat", area=area, wavelengths=NM)
    assert np.allclose(flat, x / x[:, 3:8, 4:20].mean((1, 2))[:, None, None], rtol=1e-6)


def test_mistakes():
    with pytest.raises(hsi.UsageError, match="flat requires"):
        hsi.reflect(VALUES, method="flat")
