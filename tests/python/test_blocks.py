# SPDX-License-Identifier: MIT
"""DataArrays of dask blocks: computed in pieces if each pixel is independent, otherwise as a whole with a warning;
dask's own map_blocks with two workers."""
import re
import warnings

import numpy as np
import pytest

from conftest import ROOT, cube

import gdal_hsi as hsi

xr = pytest.importorskip("xarray")
dask = pytest.importorskip("dask.array")

X = cube(40, 36, 9).astype("f4")
NM = np.arange(9) * 50.0 + 450
LIBRARY = hsi.Spectra(X[:, [3, 20, 30], [5, 17, 33]].T, ["a", "b", "c"])


def scene(lazy=True):
    whole = xr.DataArray(X, dims=("band", "y", "x"), coords={"wavelength": ("band", NM, {"units": "nm"}), "y": np.arange(36) * -30.0, "spatial_ref": 0})
    return whole.chunk({"band": -1, "y": 10, "x": 16}) if lazy else whole


def labels():
    made = np.zeros((36, 40), np.uint8)
    made[2:8, ::2], made[20:28, ::2] = 1, 2
    return made


PIXELWISE = {
    "unmix": lambda x, **k: x.hsi.unmix(LIBRARY, rmse=True, **k),
    "rx": lambda x, **k: x.hsi.detect(statistics=hsi.statistics(X, wavelengths=NM), **k),
    "sam": lambda x, **k: x.hsi.detect(target=LIBRARY, method="sam", **k),
    "pca": lambda x, **k: x.hsi.pca(apply=hsi.pca(X, nc=3, model=True, wavelengths=NM).model, **k),
    "mnf": lambda x, **k: x.hsi.mnf(apply=hsi.mnf(X, nc=3, model=True, wavelengths=NM).model, **k),
    "svm": lambda x, **k: x.hsi.svm_classify(hsi.svm_train(X, labels(), C=8, gamma=0.5, wavelengths=NM), **k),
    "index": lambda x, **k: x.hsi.index(name="NDVI", tolerance=40, **k),
}


@pytest.mark.parametrize("name", PIXELWISE)
def test_pieces_are_the_whole(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = PIXELWISE[name](scene(lazy=False))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = PIXELWISE[name](scene(), memory="64MB")
    assert not [w for w in caught if "dask" in str(w.message)]
    for one, other in zip(made if isinstance(made, hsi.Result) else [made], expected if isinstance(expected, hsi.Result) else [expected]):
        xr.testing.assert_identical(one, other)
        assert not hasattr(one.data, "dask")


def test_small_pieces(monkeypatch):
    from gdal_hsi import _blocks
    seen = []
    monkeypatch.setattr(_blocks, "PIECE", 3 * X[:, 0].nbytes)
    joined = _blocks._joined
    monkeypatch.setattr(_blocks, "_joined", lambda parts, line: (seen.append(len(parts)), joined(parts, line))[1])
    for name in PIXELWISE:
        made, expected = PIXELWISE[name](scene()), PIXELWISE[name](scene(lazy=False))
        for one, other in zip(made if isinstance(made, hsi.Result) else [made], expected if isinstance(expected, hsi.Result) else [expected]):
            xr.testing.assert_identical(one, other)
        assert max(seen) == 12, name


@pytest.mark.parametrize("call", [lambda x: x.hsi.spp(), lambda x: x.hsi.pca(nc=3), lambda x: x.hsi.detect(), lambda x: hsi.spp(x.data)],
                         ids=["spp", "pca", "rx", "dask array"])
def test_others_are_loaded_with_a_warning(call):
    with pytest.warns(hsi.Warning, match=r"dask blocks and is loaded completely: 50\.6 kB") as caught:
        made = call(scene())
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(np.asarray(made), np.asarray(call(scene(lazy=False))))


def test_a_size_of_memory():
    from gdal_hsi._blocks import bytes_of
    assert [bytes_of(m) for m in ("2G", "512MB", "1.5 k", 1000, "x", None)] == [2 * 2**30, 512 * 2**20, 1536, 1000, None, None]
    assert bytes_of("50%") > 1e8


def test_the_recipe_of_the_manual_on_two_workers():
    distributed = pytest.importorskip("distributed")
    code = re.search(r"<!-- test: two workers -->\s*```python\n(.*?)```", (ROOT / "docs" / "python.md").read_text(), re.DOTALL)[1]
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster, distributed.Client(cluster):
        names = {"da": scene(), "library": LIBRARY, "hsi": hsi, "np": np}
        exec(code, names)  # noqa: S102
    expected = hsi.unmix(X, LIBRARY)
    np.testing.assert_array_equal(names["abundances"], expected)
