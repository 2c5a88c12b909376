# SPDX-License-Identifier: MIT
"""Spectral indices of arrays: NumPy's values, several at once, and mistakes in Python terms."""
import numpy as np
import pytest

import gdal_hsi as hsi

pytestmark = pytest.mark.quick

NM = [550, 670, 800, 900]
VALUES = np.random.default_rng(1).uniform(0.1, 0.5, (4, 20, 30)).astype(np.float32)


def test_values_are_those_of_numpy():
    got = hsi.index(VALUES, name="NDVI", expr=["ratio=b1/b2", "mean(r[600:850])"], wavelengths=NM)
    green, red, infrared = VALUES[:3].astype(np.float64)
    for band, expected in zip(got, ((infrared - red) / (infrared + red), green / red, (red + infrared) / 2)):
        assert np.allclose(band, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("options, words", [({"expr": "r670+"}, "column 6"), ({"name": "NDWI"}, "NDWI_Gao"), ({}, "missing")])
def test_mistakes(options, words):
    with pytest.raises(hsi.UsageError, match="(?s).*" + words):
        hsi.index(VALUES, wavelengths=NM, **options)


def test_what_is_for_the_terminal_is_not_there():
    with pytest.raises(TypeError, match="list"):
        hsi.index(VALUES, list=True)
