# SPDX-License-Identifier: MIT
"""Statistics in memory and pictures as arrays, compared with the tools and with NumPy."""
import json

import numpy as np
import pytest

from conftest import cube, read, run, succeed, write_scene

import gdal_hsi as hsi

X = cube(30, 25, 9).astype("f4")
OTHER = cube(20, 25, 9, seed=5).astype("f4")
NM = np.arange(9) * 50.0 + 450


def pixels(x):
    return x.reshape(len(x), -1).T.astype(float)


@pytest.mark.quick
def test_moments_are_those_of_numpy():
    made = hsi.statistics(X)
    assert isinstance(made, hsi.Statistics) and made.valid_pixels == 750 and len(made.scenes) == 1
    np.testing.assert_allclose(made.mean, pixels(X).mean(axis=0), rtol=1e-14)
    np.testing.assert_allclose(made.covariance, np.cov(pixels(X).T), rtol=1e-11)
    assert repr(made) == "<Statistics: 750 pixels, 1 scene, 9 bands>"
    assert np.isnan(hsi.statistics(X[:, :1, :1]).covariance).all()


def test_they_merge_and_are_taken_away():
    one, two = hsi.statistics(X), hsi.statistics(OTHER)
    both = one + two
    assert both.valid_pixels == 1250
    np.testing.assert_allclose(both.covariance, np.cov(np.vstack([pixels(X), pixels(OTHER)]).T), rtol=1e-11)
    strip = lambda text: {k: v for k, v in json.loads(text).items() if k in ("sums", "products", "differences", "valid_pixels", "pairs")}  # noqa: E731
    assert strip(both - two) == strip(one) and strip(both - one) == strip(two) and strip(two + one) == strip(both)
    # A scene that is cut between two lines has the sums of the whole.
    assert strip(hsi.statistics(X[:, :7]) + hsi.statistics(X[:, 7:])) == strip(one)
    for wrong, word in ((lambda: one + one, "same pixels|twice|there already"), (lambda: one - two, "not|never"), (lambda: one.merge("{}"), "without statistics"),
                        (lambda: one + hsi.statistics(X[:5]), "bands"), (lambda: hsi.Statistics("{}"), "not a statistics file")):
        with pytest.raises(ValueError, match=word):
            wrong()
    with pytest.raises(TypeError):
        one + 3


def test_files_are_the_tools(tmp_path):
    write_scene(tmp_path / "scene.dat", X, geotransform=None, epsg=None)
    succeed(run("gdal_hsi_statistics", tmp_path / "scene.dat", "-o", tmp_path / "tool.stat"))
    made, tool = hsi.statistics(X), hsi.Statistics.load(tmp_path / "tool.stat")
    assert made.document["products"] == tool.document["products"] and made.scenes[0]["digest"] == tool.scenes[0]["digest"]
    made.save(tmp_path / "own.stat")
    succeed(run("gdal_hsi_pca", "-nc", "3", "-device", "cpu", "-statistics", tmp_path / "own.stat", tmp_path / "scene.dat", tmp_path / "c.tif"))
    np.testing.assert_array_equal(read(tmp_path / "c.tif"), hsi.pca(X, nc=3, statistics=made, device="cpu"))
    assert hsi.statistics(str(tmp_path / "scene.dat"), out=tmp_path / "path.stat") == tmp_path / "path.stat"
    assert hsi.Statistics.load(tmp_path / "path.stat").document["products"] == made.document["products"]


@pytest.mark.parametrize("call", [
    lambda s: hsi.pca(X, nc=3, statistics=s), lambda s: hsi.mnf(X, nc=3, statistics=s), lambda s: hsi.detect(X, statistics=s),
    lambda s: hsi.detect(X, target=X[:, 3, 4], method="ace", statistics=s), lambda s: hsi.vd(X, statistics=s), lambda s: hsi.eadp(X, nc=2, statistics=s),
], ids=["pca", "mnf", "rx", "ace", "vd", "eadp"])
def test_taken_wherever_statistics_are(call, tmp_path):
    whole = hsi.statistics(X)
    whole.save(tmp_path / "s.stat")
    one, two = call(whole), call(tmp_path / "s.stat")
    assert one == two if isinstance(one, dict) else np.array_equal(one, two)


def test_masks_and_bands():
    mask = np.zeros((25, 30), np.uint8)
    mask[3:9] = 1
    np.testing.assert_allclose(hsi.statistics(X, mask=mask).mean, pixels(X[:, 3:9]).mean(axis=0), rtol=1e-14)
    some = hsi.statistics(X, b="2-4", wavelengths=NM)
    np.testing.assert_allclose(some.mean, pixels(X[1:4]).mean(axis=0), rtol=1e-14)
    np.testing.assert_allclose(hsi.statistics(X.transpose(1, 2, 0), band_axis=-1).mean, hsi.statistics(X).mean)
    assert hsi.statistics(X, full=True).model.valid_pixels == 750
    with pytest.raises(hsi.UsageError, match="no scene"):
        hsi.statistics()


@pytest.mark.quick
def test_a_picture_is_the_tools(tmp_path):
    write_scene(tmp_path / "scene.dat", X, geotransform=None, epsg=None, wavelengths=NM)
    succeed(run("gdal_hsi_quicklook", "-size", "64", tmp_path / "scene.dat", tmp_path / "p.tif"))
    made = hsi.quicklook(X, size=64, wavelengths=NM)
    assert made.dtype == np.uint8 and made.shape == (50, 60, 3)
    np.testing.assert_array_equal(made, read(tmp_path / "p.tif").transpose(1, 2, 0))
    np.testing.assert_array_equal(hsi.quicklook(X.transpose(1, 2, 0), band_axis=-1, size=64, wavelengths=NM), made)


def test_pictures_of_maps_and_points():
    classes = np.zeros((25, 30), np.uint8)
    classes[:10], classes[15:] = 1, 2
    shown = hsi.quicklook(classes, size=30, no_legend=True)
    assert shown.shape == (25, 30, 3) and len(np.unique(shown.reshape(-1, 3), axis=0)) == 3 and not shown[12].any()
    with_legend = hsi.quicklook(classes, size=30, names=["none", "grass", "soil"])
    assert with_legend.shape[1] > 38  # next to the map
    both = hsi.quicklook(X, beside=classes, size=30, no_legend=True)
    assert both.shape == (25, 68, 3)
    np.testing.assert_array_equal(both[:, 38:], shown)
    points = hsi.endmembers(X, t=3)
    ringed = hsi.quicklook(X, points=points, size=300)
    yellow = (ringed == [255, 230, 26]).all(axis=2)
    assert yellow.any() and not (hsi.quicklook(X, size=300) == [255, 230, 26]).all(axis=2).any()
    line, sample = int(points["line"][0]), int(points["sample"][0])
    assert yellow[max(0, line * 10 - 2):line * 10 + 12, max(0, sample * 10 - 2):sample * 10 + 12].any()
    with pytest.raises(hsi.UsageError, match="line and sample"):
        hsi.quicklook(X, points=np.zeros(3, [("x", int)]))
    with pytest.raises(hsi.UsageError, match="out"):
        hsi.quicklook(X, out=np.zeros((25, 30, 3), np.uint8))


def test_pictures_of_data_arrays():
    xr = pytest.importorskip("xarray")
    scene = xr.DataArray(X, dims=("band", "y", "x"), coords={"wavelength": ("band", NM)})
    made = scene.hsi.quicklook(size=64)
    assert isinstance(made, np.ndarray)
    np.testing.assert_array_equal(made, hsi.quicklook(X, size=64, wavelengths=NM))
