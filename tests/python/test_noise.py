# SPDX-License-Identifier: MIT
"""Noise of an array: a dictionary of lists, named as the columns."""
import numpy as np
import pytest

import gdal_hsi as hsi

RNG = np.random.default_rng(3)
FIELD = RNG.normal(size=(3, 60, 70))
VALUES = (500 + 40 * np.tensordot(RNG.uniform(size=(12, 3)), FIELD, 1) + 2 * RNG.normal(size=(12, 60, 70))).astype(np.float32)


def test_noise_is_found_again():
    found = hsi.noise(VALUES)
    assert len(found["noise"]) == 12 and np.allclose(found["noise"], 2, rtol=0.1) and all(found["good"])
    assert np.allclose(found["mean"], VALUES.astype(float).mean((1, 2)), rtol=1e-9)


def test_mistakes():
    with pytest.raises(hsi.UsageError, match="area requires"):
        hsi.noise(VALUES, method="area")
