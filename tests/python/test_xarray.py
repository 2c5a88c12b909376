# SPDX-License-Identifier: MIT
"""DataArrays: axes by name, and the coordinates and attributes that are kept."""
import numpy as np
import pytest

xr = pytest.importorskip("xarray", reason="xarray is not installed")

from conftest import cube  # noqa: E402

import gdal_hsi as hsi  # noqa: E402
import gdal_hsi.xarray  # noqa: E402,F401

VALUES = cube(20, 15, 6)
NM = np.array([450.0, 520, 610, 700, 850, 2100])


def scene(dims=("band", "y", "x"), bands="band", units="nm", factor=1.0):
    order = {"y": 1, "x": 2, "lat": 1, "lon": 2, "line": 1, "sample": 2}
    array = xr.DataArray(VALUES.transpose([order.get(d, 0) for d in dims]), dims=dims, attrs={"long_name": "radiance"})
    line, sample = [d for d in dims if order.get(d) == 1][0], [d for d in dims if order.get(d) == 2][0]
    array = array.assign_coords({line: 4480000.0 - 20 * np.arange(15), sample: 500000.0 + 20 * np.arange(20), "spatial_ref": 0})
    array = array.assign_coords(wavelength=(bands, NM * factor, {"units": units}), fwhm=(bands, np.full(6, 10.0)))
    array.coords["spatial_ref"].attrs["crs_wkt"] = "LOCAL_CS[\"somewhere\"]"
    return array


@pytest.mark.parametrize("dims", [("band", "y", "x"), ("y", "x", "band"), ("y", "band", "x"), ("wavelength", "lat", "lon"),
                                  ("lat", "lon", "wavelength"), ("line", "sample", "band")])
def test_axes_by_names(dims):
    bands = next(d for d in dims if d in ("band", "wavelength"))
    array = scene(dims, bands)
    y = hsi.spp(array, ws=3)
    assert y.dims == dims and isinstance(y, xr.DataArray)
    expected = hsi.spp(VALUES, ws=3)
    order = [0 if d == bands else 1 if d in ("y", "lat", "line") else 2 for d in dims]
    np.testing.assert_array_equal(y.values, expected.transpose(order))
    for key in array.coords:
        xr.testing.assert_identical(y.coords[key], array.coords[key])
    assert y.attrs["long_name"] == "radiance" and y.coords["spatial_ref"].attrs["crs_wkt"].startswith("LOCAL_CS")


def test_new_bands_have_names():
    components, model = scene().hsi.pca(nc=3, model=True)
    assert components.dims == ("band", "y", "x") and list(components.band.values) == ["PC1", "PC2", "PC3"]
    assert "wavelength" not in components.coords and "spatial_ref" in components.coords
    np.testing.assert_array_equal(components.x, scene().x)
    assert model.document["wavelengths_nm"] == list(NM)
    back = components.hsi.pca(apply=model, inverse=True)
    assert back.shape == VALUES.shape


def test_planes():
    y, alpha = scene().hsi.spp(ws=3, alpha=True)
    assert alpha.dims == ("y", "x") and set(alpha.coords) == {"y", "x", "spatial_ref"}
    turned = hsi.spp(scene(("x", "y", "band")), ws=3, alpha=True).alpha
    np.testing.assert_array_equal(turned.transpose("y", "x").values, hsi.spp(VALUES.transpose(0, 1, 2), ws=3, alpha=True).alpha)


@pytest.mark.parametrize("units, factor", [
    ("nm", 1.0), ("nanometers", 1.0), ("Nanometre", 1.0), ("um", 1e-3), ("\u00b5m", 1e-3), ("Micrometer", 1e-3), ("micrometers", 1e-3),
    ("microns", 1e-3), ("mm", 1e-6), ("m", 1e-9), ("Meters", 1e-9), ("angstrom", 10), ("Angstroms", 10), ("A", 10), ("", 1e-3), ("", 1.0),
    ("unknown", 1.0)])
def test_units_of_wavelengths(units, factor):
    model = hsi.pca(scene(units=units, factor=factor), nc=2, model=True).model
    np.testing.assert_allclose(model.document["wavelengths_nm"], NM)
    spectrum = scene(units=units, factor=factor)[:, 3, 4]
    np.testing.assert_allclose(hsi.Spectra(spectrum).wavelengths_nm(), NM)


@pytest.mark.parametrize("units", ["cm-1", "GHz", "1", 5, "index"])
def test_units_that_are_no_lengths(units):
    for call in (lambda a: hsi.pca(a, nc=2), lambda a: hsi.detect(VALUES, target=a[:, 3, 4], method="sam"), lambda a: hsi.Spectra(a[:, 3])):
        with pytest.raises(hsi.UsageError, match=f"'{units}'"):
            call(scene(units=units))
    hsi.pca(scene(units=units), nc=2, wavelengths=NM)


def test_spectra_by_their_names():
    """A library is the same in any order of its axes and bands."""
    array = scene()
    pixels = [(3, 4), (7, 9), (11, 2)]
    rows = np.stack([VALUES[:, y, x] for y, x in pixels])
    library = xr.DataArray(rows, dims=("mineral", "wavelength"), coords={"mineral": ["a", "b", "c"], "wavelength": NM})
    expected = hsi.unmix(array, hsi.Spectra(rows, ["a", "b", "c"], NM))
    assert list(expected.band.values) == ["a", "b", "c"]
    for one in (library, library.T, library[:, ::-1], library[:, ::-1].T, library.rename(wavelength="bands").assign_coords(bands=range(6))):
        xr.testing.assert_identical(hsi.unmix(array, one), expected)
    scores = hsi.detect(array, target=rows[0], method="sam")
    for one in (array[:, 3, 4], array[::-1, 3, 4], library[0], library[0, ::-1]):
        np.testing.assert_array_equal(hsi.detect(array, target=one, method="sam").values, scores.values)
    square = xr.DataArray(VALUES[:, 0, :6], dims=("wavelength", "what"), coords={"wavelength": NM})
    np.testing.assert_array_equal(hsi.Spectra(square).spectra, VALUES[:, 0, :6].T)
    marked = array[:, 3, 4].copy()
    marked[2] = -1
    marked.attrs["_FillValue"] = -1
    assert np.isnan(hsi.Spectra(marked).spectra).tolist() == [[False, False, True, False, False, False]]
    for strange in (xr.DataArray(rows, dims=("a", "b")), array):
        with pytest.raises(hsi.UsageError, match=r"dimensions|axes"):
            hsi.detect(array, target=strange if strange.ndim == 2 else strange.expand_dims("t"), method="sam")


def test_a_decoded_array_has_nan_alone():
    """xarray's `encoding` of the file's values has no effect on decoded values; attributes apply to values that are not
    decoded."""
    raw = np.random.default_rng(3).integers(10, 40, (6, 15, 20)).astype(np.int16)
    raw[:, 2, 3], raw[:, 5, 6] = 7, 21
    file = xr.Dataset({"v": (("band", "y", "x"), raw, {"_FillValue": np.int16(7), "scale_factor": 0.5, "add_offset": -3.5})})
    decoded, kept = xr.decode_cf(file)["v"], xr.decode_cf(file, mask_and_scale=False)["v"]
    assert decoded.encoding["_FillValue"] == 7 and (decoded.values[:, 5, 6] == 7).all() and kept.attrs["_FillValue"] == 7
    y = decoded.hsi.spp(ws=3)
    np.testing.assert_array_equal(y.values, hsi.spp(decoded.values, ws=3))
    assert np.isnan(y.values).sum() == 6 and "_FillValue" not in y.attrs and np.isnan(y.encoding["_FillValue"])
    y = kept.hsi.spp(ws=3)
    np.testing.assert_array_equal(y.values, hsi.spp(raw, ws=3, nodata=7))
    assert y.attrs["_FillValue"] == 7 and (y.values == 7).sum() == 6


@pytest.mark.parametrize("masked", [False, True])
def test_nodata_of_rioxarray(masked, tmp_path):
    """A file that rioxarray writes from a result has nodata, whether rioxarray has masked the input or not."""
    rasterio, rioxarray = pytest.importorskip("rasterio"), pytest.importorskip("rioxarray")
    values = np.random.default_rng(0).integers(1, 900, (5, 20, 20)).astype(np.int16)
    values[:, 0, :5] = -9999
    profile = {"driver": "GTiff", "width": 20, "height": 20, "count": 5, "dtype": "int16", "crs": "EPSG:32632", "nodata": -9999,
               "transform": rasterio.transform.from_origin(5e5, 5e6, 30, 30)}
    with rasterio.open(tmp_path / "in.tif", "w", **profile) as file:
        file.write(values)
    rioxarray.open_rasterio(tmp_path / "in.tif", masked=masked).hsi.pca(nc=3).rio.to_raster(tmp_path / "out.tif")
    with rasterio.open(tmp_path / "out.tif") as file:
        assert np.isnan(file.nodata) if masked else file.nodata == -9999
        assert file.read(masked=True).mask.sum() == 15 and file.crs == "EPSG:32632" and file.transform == profile["transform"]


def test_nodata_survives():
    array = scene()
    array.values[:, 3, 4] = -9999
    array.attrs["_FillValue"] = -9999.0
    y = array.hsi.spp(ws=3)
    assert y.attrs["_FillValue"] == -9999.0 and (y.values[:, 3, 4] == -9999).all()
    with_nan = scene().where(array != -9999)
    np.testing.assert_array_equal(np.isnan(with_nan.hsi.spp(ws=3).values), y.values == -9999)


def test_class_maps():
    labels = np.zeros((15, 20), np.uint8)
    labels[2:6, ::2], labels[8:12, ::2] = 1, 2
    truth = xr.DataArray(labels, dims=("y", "x"), attrs={"classes": ["", "water", "soil"]})
    model = hsi.svm_train(scene(), truth, C=8, gamma=0.5)
    assert [c["name"] for c in model.document["classes"]] == ["water", "soil"]
    classes = scene().hsi.svm_classify(model)
    assert classes.dims == ("y", "x") and classes.attrs["classes"][1:] == ["water", "soil"]


def test_a_plane_in_an_array_of_ones_own():
    """It has the result's axes, even if all sides are equally long."""
    labels = np.zeros((15, 15), np.uint8)
    labels[2:6, ::2], labels[8:12, ::2] = 1, 2
    array = scene()[:, :, :15].drop_vars("wavelength")
    model = hsi.svm_train(array, labels, C=8, gamma=0.5)
    for dims in (("band", "y", "x"), ("x", "y", "band"), ("x", "band", "y")):
        turned, out = array.transpose(*dims), np.zeros((15, 15), np.uint8)
        classes = hsi.svm_classify(turned, model)
        hsi.svm_classify(turned, model, out=out)
        np.testing.assert_array_equal(out, classes.values)
    assert (out != out.T).any()


def test_what_is_refused():
    with pytest.raises(hsi.UsageError, match="do not include bands"):
        hsi.spp(xr.DataArray(VALUES, dims=("a", "b", "c")))
    with pytest.raises(hsi.UsageError, match="but 3 axes are needed"):
        hsi.spp(xr.DataArray(VALUES[0], dims=("y", "x")))
    with pytest.raises(AttributeError, match="unknown algorithm"):
        scene().hsi.spq
    assert "spp" in dir(scene().hsi)


@pytest.mark.parametrize("role", ["labels", "mask", "other"])
def test_arrays_of_other_places(role):
    """An array at another position is not used pixel by pixel."""
    array = scene()
    plane = (array[0] > array[0].median()).astype(int).drop_vars(["wavelength", "fwhm"]) + (role == "labels")
    calls = {"labels": lambda scene, other: hsi.svm_train(scene, other, C=8, gamma=0.5),
             "mask": lambda scene, other: hsi.pca(scene, nc=2, mask=other), "other": lambda scene, other: hsi.compare(scene, other)}
    call, given = calls[role], array if role == "other" else plane

    def same(one, other):
        return np.array_equal(one, other) if isinstance(one, np.ndarray) or hasattr(one, "dims") else one == other
    expected = call(array, given)
    for alike in (given.assign_coords(x=given.x + 0.01), given.transpose(*given.dims[::-1]), given.drop_vars("x"), given.drop_vars(["x", "y"])):
        assert same(call(array, alike), expected)
    assert same(call(array.drop_vars(["x", "y"]), given), expected)
    for axis, elsewhere in (("x", given.assign_coords(x=given.x + 20)), ("y", given.isel(y=slice(None, None, -1))),
                            ("x", given.assign_coords(x=given.x * 2)), ("y", given.assign_coords(y=list("abcdefghijklmno")))):
        with pytest.raises(hsi.UsageError, match=f"{role} has other coordinates than src.*'{axis}'"):
            call(array, elsewhere)


@pytest.mark.parametrize("dims", [("band", "y", "x"), ("x", "band", "y")])
def test_windows(dims):
    """Results have the window's position; labels and masks cover the whole scene or the window."""
    array = scene(dims)
    y, alpha = array.hsi.spp(ws=3, srcwin=np.array([4, 2, 9, 7]), alpha=True)
    whole = array.isel(x=slice(4, 13), y=slice(2, 9))
    for made in (y, alpha):
        for key in ("x", "y", "spatial_ref"):
            xr.testing.assert_identical(made.coords[key], whole.coords[key])
    np.testing.assert_array_equal(y.transpose("band", "y", "x"), hsi.spp(VALUES, ws=3, srcwin=(4, 2, 9, 7)))
    plane = (array.isel(band=0) > array.isel(band=0).median()).astype(int).drop_vars(["wavelength", "fwhm"]) + 1
    cut = plane.isel(x=slice(4, 13), y=slice(2, 9))
    options = {"srcwin": (4, 2, 9, 7), "C": 8, "gamma": 0.5}
    expected = hsi.svm_train(VALUES, cut.transpose("y", "x").values, wavelengths=NM, **options)
    for labels in (plane, plane.T, cut, cut.T, cut.transpose("y", "x").values):
        found = hsi.svm_train(array, labels, **options).document
        assert [found[k] for k in ("classes", "features", "svm")] == [expected.document[k] for k in ("classes", "features", "svm")]
    for elsewhere in (plane.isel(y=slice(None, None, -1)), plane.isel(x=slice(4, 13), y=slice(3, 10))):
        with pytest.raises(hsi.UsageError, match="labels has other coordinates than src.*'y'"):
            hsi.svm_train(array, elsewhere, **options)
    for wrong in ((-1, 2, 3, 3), (1, 2, 3), "abcd", (1.5, 2, 3, 3), (18, 2, 3, 3)):
        with pytest.raises(hsi.UsageError, match="srcwin"):
            array.hsi.spp(srcwin=wrong)
