# SPDX-License-Identifier: MIT
"""Numbers near the limits of single precision, compared with NumPy in double precision."""
import warnings

import numpy as np
import pytest

from conftest import cube

import gdal_hsi as hsi


@pytest.mark.quick
@pytest.mark.parametrize("shrinkage", [None, 0, "none", 0.3])
def test_local_rx_is_its_definition(shrinkage):
    """Uses rings of 72 pixels in 10 bands. The share added to the diagonal is given; with 0, nothing is added."""
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


@pytest.mark.parametrize("method, number", [("hfc", 2), ("nwhfc", 2), ("hysime", 6)])
@pytest.mark.parametrize("noise", [1e-2, 1e-4, 1e-6])
def test_the_number_of_signals_in_little_noise(method, number, noise):
    """A mean and five components: equal to NumPy while double precision can represent the noise, and unchanged below,
    where it counts rounding errors. hysime then reports that the noise is an upper bound."""
    from statistics import NormalDist
    rng = np.random.default_rng(0)
    x = (np.abs(rng.normal(size=(4000, 5))) @ np.abs(rng.normal(size=(5, 60))) + 5 + noise * rng.normal(size=(4000, 60))).astype("f4").astype(float)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = hsi.vd(x.T.reshape(60, 40, 100), method=method)
    assert found["virtual_dimensionality"] == number
    assert any("upper bound" in str(w.message) for w in caught) == (method == "hysime" and noise == 1e-6)
    if noise == 1e-6 or method == "hysime":
        return
    r, c = x.T @ x / 4000, np.cov(x.T)
    if method == "nwhfc":
        scale = np.sqrt(np.diag(np.linalg.inv(c)))
        r, c = r * np.outer(scale, scale), c * np.outer(scale, scale)
    a, b = np.linalg.eigvalsh(r)[::-1], np.linalg.eigvalsh(c)[::-1]
    assert number == (a - b > NormalDist().inv_cdf(0.999) * np.sqrt(2 * (a * a + b * b) / 4000)).sum()


@pytest.mark.parametrize("noise", [0, 1e-4, 1e-2])
def test_components_of_rounding_are_not_whitened(noise):
    """In a scene of rank 5, components below the rounding of its values are reported and set to 0; the others have a
    standard deviation of 1."""
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(4000, 5)) @ rng.normal(size=(5, 100)) + noise * rng.normal(size=(4000, 100))).astype("f4").T.reshape(100, 40, 100)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        deviations = hsi.pca(x, nc=20, whiten=True).std(axis=(1, 2))
    np.testing.assert_allclose(deviations[:5], 1, atol=1e-3)
    np.testing.assert_allclose(deviations[5:], 1 if noise == 1e-2 else 0, atol=0.02)
    assert len(caught) == (noise < 1e-2)


@pytest.mark.parametrize("kind", ["u2", "f4", "f8"])
def test_the_angle_of_a_target_with_itself_is_0(kind):
    x = np.random.default_rng(5).integers(900, 6000, (200, 12, 15)).astype(kind) * (1 if kind == "u2" else 0.37)
    for line, sample in ((0, 0), (7, 3), (11, 14)):
        assert hsi.detect(x, target_pixel=(line, sample), method="sam")[0, line, sample] == 0
        assert hsi.detect(x, target=x[:, line, sample], method="sam")[0, line, sample] < 1e-6


def test_help_tells_of_single_precision():
    text = {name: " ".join(getattr(hsi, name).__doc__.split()) for name in ("pca", "detect", "compare")}
    assert "Float64" in text["pca"] and "rounded to 24 bits" in text["detect"] and "24 bits" not in text["compare"]
    assert "shape (bands, lines, samples)" in text["pca"] and "dst : float32 array of shape (bands, lines, samples)" in text["pca"]
