# SPDX-License-Identifier: MIT
"""Requirements that Spectral Python 0.25 and pysptools 0.15 test for their functions, applied to ours on our own
scenes; and comparison of results if both packages are installed.

Six requirements of Spectral Python do not apply to ours as written, for these reasons:

1. and 2. Its continuum of arrays of two and three axes has the array's type: integers are rounded (1422 instead of
   1421.7). Ours is Float32. test_a_continuum_is_the_hull compares with the hull before rounding.
3. `out` of its continuum accepts integers, and so rounds, too.
4. Integers are divided by the rounded continuum: its 0.8372 differs from the hull's value in the fourth digit.
5. Its rx and mf with a window use the mean of the ring and, if given, the covariance of the scene. Ours use both of the
   ring, and add the share `shrinkage` to the diagonal.
6. Its ace of a subspace of targets is one score. Ours has a score per target, with its sign; its square for a single
   target equals Spectral Python's score.
"""
import numpy as np
import pytest

from conftest import cube

import gdal_hsi as hsi

X = cube(40, 36, 12, seed=7).astype("f4")
NM = np.linspace(400, 950, 12)
PIXELS = X.reshape(12, -1).T.astype(float)
MEAN, COVARIANCE = PIXELS.mean(axis=0), np.cov(PIXELS.T)


def at_mean():
    """Returns a scene whose mean fits into a Float32, with the mean as the first pixel of an additional line, and the
    statistics without that line."""
    apart = np.round(X - MEAN[:, None, None]).astype("f4")
    centre = np.round(MEAN).astype("f4")[:, None, None]
    scene = np.concatenate([centre + apart, centre - apart], axis=1)
    line = scene[:, :1].copy()
    line[:, :, :1] = centre
    return np.concatenate([scene, line], axis=1), hsi.statistics(scene)


@pytest.mark.parametrize("method", ["mf", "ace", "rx"])
def test_scores_of_the_mean_are_zero(method):
    whole, statistics = at_mean()
    target = {} if method == "rx" else {"target": X[:, 3, 7]}
    assert hsi.detect(whole, method=method, statistics=statistics, **target)[0, -1, 0] == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("method", ["mf", "ace", "cem"])
@pytest.mark.parametrize("given", [True, False])
def test_scores_of_the_target_are_one(method, given):
    options = {"statistics": hsi.statistics(X)} if given else {}
    scores = hsi.detect(X, target=np.stack([X[:, 3, 7], X[:, 20, 31]]), method=method, **options)
    assert scores[0, 3, 7] == pytest.approx(1, abs=1e-5) and scores[1, 20, 31] == pytest.approx(1, abs=1e-5)
    by_place = hsi.detect(X, target_pixel=(3, 7), method=method, **options)
    np.testing.assert_allclose(by_place[0], scores[0], atol=1e-5)


@pytest.mark.parametrize("method", ["mf", "ace", "cem", "rx", "sam", "sid"])
def test_scores_are_their_formulas(method):
    """Computes the definitions of pysptools and Spectral Python in NumPy."""
    t, inverse = PIXELS[7 + 3 * 40], np.linalg.inv(COVARIANCE)
    d, e = PIXELS - MEAN, t - MEAN
    r = np.linalg.inv(PIXELS.T @ PIXELS / len(PIXELS))
    p, q = PIXELS / PIXELS.sum(axis=1, keepdims=True), t / t.sum()
    expected = {
        "mf": d @ inverse @ e / (e @ inverse @ e), "cem": PIXELS @ r @ t / (t @ r @ t), "rx": np.einsum("ij,jk,ik->i", d, inverse, d),
        "ace": np.sign(d @ inverse @ e) * (d @ inverse @ e) ** 2 / ((e @ inverse @ e) * np.einsum("ij,jk,ik->i", d, inverse, d)),
        "sam": np.arccos(np.clip(PIXELS @ t / np.linalg.norm(PIXELS, axis=1) / np.linalg.norm(t), -1, 1)),
        "sid": ((p - q) * np.log(p / q)).sum(axis=1)}[method]
    got = hsi.detect(X, method=method, **({} if method == "rx" else {"target": t}))[0].ravel()
    np.testing.assert_allclose(got, expected, rtol=2e-4, atol=2e-6)


def hull(bands, values):
    """Returns the upper convex hull at the bands, by the lines between all pairs of points."""
    return np.array([max([values[k]] + [values[i] + (values[j] - values[i]) * (bands[k] - bands[i]) / (bands[j] - bands[i])
                                        for i in range(k) for j in range(k + 1, len(bands))]) for k in range(len(bands))])


@pytest.mark.parametrize("seed, bands", [(0, 3), (1, 9), (2, 16), (3, 41)])
def test_a_continuum_is_the_hull(seed, bands):
    rng = np.random.default_rng(seed)
    nm, x = np.sort(rng.uniform(400, 2400, bands)), rng.uniform(0.5, 4, (bands, 2, 3)).astype("f4")
    removed = hsi.features(x, output="removed", wavelengths=nm)
    for line in range(2):
        for sample in range(3):
            one = x[:, line, sample].astype(float)
            np.testing.assert_allclose(removed[:, line, sample], one / hull(nm, one), rtol=2e-6)
    whole = (x * 1000).astype(np.int16)  # differences 1 to 4 above
    np.testing.assert_allclose(hsi.features(whole, output="removed", wavelengths=nm)[:, 0, 0], whole[:, 0, 0] / hull(nm, whole[:, 0, 0].astype(float)),
                               rtol=2e-6)


def test_all_components_give_the_scene_again():
    for function in (hsi.pca, hsi.mnf):
        components, model = function(X, nc=12, model=True)
        np.testing.assert_allclose(function(components, apply=model, inverse=True), X, rtol=2e-4)
    values, vectors = hsi.PCA().fit(PIXELS).eigenvalues_, hsi.PCA().fit(PIXELS).components_
    assert (np.diff(values) <= 0).all()
    np.testing.assert_allclose(vectors @ vectors.T, np.eye(12), atol=1e-6)
    white = hsi.pca(X, nc=3, whiten=True).reshape(3, -1)
    np.testing.assert_allclose(np.cov(white), np.eye(3), atol=1e-3)


def test_components_from_statistics():
    np.testing.assert_allclose(np.abs(hsi.pca(X, nc=2, statistics=hsi.statistics(X))), np.abs(hsi.pca(X, nc=2)), rtol=1e-2, atol=1e-1)


@pytest.mark.parametrize("method", ["fcls", "nnls", "ucls", "scls"])
def test_mixtures_are_unmixed(method):
    """From pysptools' tests of amap: known abundances are recovered."""
    rng = np.random.default_rng(3)
    members, shares = rng.random((4, 12)), rng.dirichlet(np.ones(4), (10, 10))
    scene = (shares @ members).transpose(2, 0, 1)
    np.testing.assert_allclose(hsi.unmix(scene, members, method=method), shares.transpose(2, 0, 1), atol=2e-4)


@pytest.mark.parametrize("method", ["nfindr", "vca", "atdca"])
def test_pure_pixels_are_found(method):
    """From pysptools' tests of eea: finds the endmembers of a scene with pure pixels."""
    rng = np.random.default_rng(5)
    members, shares = rng.random((4, 30)) + 0.2, rng.dirichlet(np.ones(4), 400)
    shares[[17, 101, 250, 333]] = np.eye(4)
    points = hsi.endmembers((shares @ members).T.reshape(30, 20, 20), t=4, method=method)
    assert {int(p["line"]) * 20 + int(p["sample"]) for p in points} == {17, 101, 250, 333}


@pytest.mark.parametrize("method", ["hfc", "nwhfc", "hysime"])
def test_dimensions_are_counted(method):
    """From pysptools' tests of material_count: a mixture of 5 with a little noise."""
    rng = np.random.default_rng(8)
    scene = rng.dirichlet(np.ones(5), 4000) @ (rng.random((5, 30)) + 0.1) + rng.normal(0, 1e-3, (4000, 30))
    number = hsi.vd(scene.T.reshape(30, 40, 100), method=method)["virtual_dimensionality"]
    assert 1 <= number <= 6 and (method != "hysime" or number == 5)


def test_against_spectral_python_itself():
    spectral = pytest.importorskip("spectral")
    image = X.transpose(1, 2, 0).astype(float)
    np.testing.assert_allclose(hsi.detect(X)[0], spectral.rx(image), rtol=1e-4)
    target = image[3, 7]
    np.testing.assert_allclose(hsi.detect(X, target=target, method="mf")[0], spectral.matched_filter(image, target), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(hsi.detect(X, target=target, method="ace")[0] ** 2, spectral.ace(image, target) ** 2, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(hsi.detect(X, target=target, method="sam")[0], spectral.spectral_angles(image, target[None])[..., 0], atol=1e-6)
    found = spectral.principal_components(image)
    np.testing.assert_allclose(hsi.PCA().fit(PIXELS).eigenvalues_[:4], found.eigenvalues[:4], rtol=1e-4)
    removed = spectral.remove_continuum(image, NM)
    np.testing.assert_allclose(hsi.features(X, output="removed", wavelengths=NM), removed.transpose(2, 0, 1), rtol=1e-5)
