# SPDX-License-Identifier: MIT
"""Destriping an array removes offsets that were added to its columns."""
import numpy as np
import pytest

import gdal_hsi as hsi

RNG = np.random.default_rng(5)
CLEAN = (300 + RNG.normal(size=(3, 60, 50)) + np.arange(50)).astype(np.float32)


@pytest.mark.parametrize("method", ["difference", "moment", "median"])
def test_stripes_go(method):
    striped = CLEAN + 9 * RNG.normal(size=(3, 1, 50)).astype(np.float32)
    got = hsi.destripe(striped, method=method)
    assert np.std(got - CLEAN) < 0.5 * np.std(striped - CLEAN)


def test_mistakes():
    with pytest.raises(hsi.UsageError, match="even"):
        hsi.destripe(CLEAN, window=8)
