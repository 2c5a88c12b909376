# SPDX-License-Identifier: MIT
"""Numbers at the edge of what single precision holds, against NumPy in double precision."""
import numpy as np
import pytest

from conftest import cube

import gdal_hsi as hsi


@pytest.mark.quick
@pytest.mark.parametrize("shrinkage", [None, 0, "none", 0.3])
def test_local_rx_is_its_definition(shrinkage):
    """Rings of 72 pixels in 10 bands; the share that is added to the diagonal is stated, and with 0 nothing is."""
    x = cube(20, 16, 10).astype("f4")
    added = {None: 0.01, "none": 0}.get(shrinkage, shrinkage)
    result = hsi.detect(x, method="rx", window=(3, 9), shrinkage=shrinkage, full=True)
    keep = np.ones((9, 9), bool)
    keep[3:6, 3:6] = False
    for line, sample in ((4, 4), (8, 10), (11, 15)):
        ring = x[:, line - 4:line + 5, sample - 4:sample + 5][:, keep].T.astype(float)
        c, d = np.cov(ring.T), x[:, line, sample] - ring.mean(axis=0)
        expected = d @ np.linalg.solve(c + added * np.trace(c) / 10 * np.eye(10), d)
        assert result.dst[0, line, sample] == pytest.approx(expected, rel=1e-5)
    assert result.report["background"]["added_share_of_mean_variance"] == added
    assert any("mean variance is added" in note for note in result.notes) == (added > 0)
    assert "0.01 with window" in hsi.detect.__doc__
    with pytest.raises(hsi.UsageError, match="do not span"):
        hsi.detect(x, window=(1, 3), shrinkage=0)
