# SPDX-License-Identifier: MIT
"""Properties of the bands of DataArrays: wavelengths, widths, labels and names belong to the right bands, in results
and between inputs."""
import numpy as np
import pytest

xr = pytest.importorskip("xarray", reason="xarray is not installed")

from conftest import cube, read, write_scene  # noqa: E402

import gdal_hsi as hsi  # noqa: E402
import gdal_hsi.xarray  # noqa: E402,F401

NUMBER = 9
VALUES = cube(12, 10, NUMBER)
NM = np.linspace(450.0, 1250.0, NUMBER)
DIMENSIONS = [("band", "y", "x"), ("y", "x", "band"), ("x", "band", "y")]
MIXED = [4, 0, 8, 2, 6, 1, 7, 3, 5]
LIBRARY = np.stack([VALUES[:, y, x] for y, x in ((3, 4), (7, 9), (9, 2))])


def scene(dims=("band", "y", "x"), labels=None, wavelengths=True, unit="nm", factor=1.0):
    """labels: as rioxarray makes them; by default 1 to the number of bands."""
    array = xr.DataArray(VALUES, dims=("band", "y", "x"), name="at_sensor", attrs={"long_name": "radiance", "units": "W"})
    labels = np.arange(1, NUMBER + 1) if labels is None else labels
    array = array.assign_coords(band=labels, y=900.0 - 10 * np.arange(10), x=100.0 + 10 * np.arange(12), spatial_ref=0, time=7)
    if wavelengths:
        array = array.assign_coords(wavelength=("band", NM * factor, {"units": unit}), fwhm=("band", np.full(NUMBER, 100.0) * factor, {"units": unit}))
    return array.assign_coords(detector=("band", list("aaabbbccc"))).transpose(*dims)


def library(labels=None, **further):
    labels = np.arange(1, NUMBER + 1) if labels is None else labels
    return xr.DataArray(LIBRARY, dims=("mineral", "band"), coords={"mineral": ["a", "b", "c"], "band": labels}, **further)


def least_squares(values, spectra):
    """Returns the abundances of UCLS in double precision, from bands x lines x samples to materials x lines x
    samples."""
    rows = values.reshape(len(values), -1).astype(float)
    return np.linalg.lstsq(spectra.T.astype(float), rows, rcond=None)[0].reshape(len(spectra), *values.shape[1:])


def is_least_squares(result, spectra=LIBRARY):
    np.testing.assert_allclose(result.transpose("band", "y", "x").values, least_squares(VALUES, spectra), atol=2e-4)


def target(kept=(0, 1, 2), unit="nm", factor=1.0, labels=("blue", "red", "edge", "far")):
    """Returns the bands of another spectrometer; the last one is outside the scene."""
    nm, width = np.array([505.25, 702.0, 1003.125, 3000]), np.array([120.0, 130, 140, 150])
    made = xr.DataArray(np.ones((4, 1, 1), np.float32), dims=("band", "y", "x"), coords={"band": list(labels)}).assign_coords(
        wavelength=("band", nm * factor, {"units": unit, "long_name": "centre"}), fwhm=("band", width * factor, {"units": unit}),
        kind=("band", list("vvnn")))
    return made if kept is None else made.isel(band=list(kept))


@pytest.mark.parametrize("dims", DIMENSIONS)
@pytest.mark.parametrize("unit, factor", [("nm", 1.0), ("um", 1e-3), ("angstrom", 10.0)])
def test_resampled_bands_are_the_targets(dims, unit, factor):
    made = hsi.resample(scene(dims), like=target(None, unit, factor))
    expected = target(unit=unit, factor=factor)
    assert made.dims == dims and made.sizes["band"] == 3 and made.attrs == {"long_name": "radiance", "units": "W"}
    for key in ("band", "wavelength", "fwhm", "kind"):
        xr.testing.assert_identical(made.coords[key].drop_vars(["spatial_ref", "time"]), expected.coords[key])
    for key in ("x", "y", "spatial_ref", "time"):
        xr.testing.assert_identical(made.coords[key], scene(dims).coords[key])
    assert "detector" not in made.coords
    turned = hsi.resample(VALUES, bands=hsi.Spectra(np.ones((1, 3)), None, [505.25, 702.0, 1003.125], [120.0, 130, 140]), wavelengths=NM,
                          fwhm=np.full(NUMBER, 100.0))
    np.testing.assert_array_equal(made.transpose("band", "y", "x"), turned)


def test_resampled_values_follow_a_line():
    """A linear spectrum remains linear at the wavelengths of the result."""
    line = scene().copy(data=np.broadcast_to((0.5 * NM + 3)[:, np.newaxis, np.newaxis], VALUES.shape).astype(np.float32))
    for like in (target(), target(unit="um", factor=1e-3), target([2, 0, 1])):
        made = line.hsi.resample(like=like)
        nm = made.wavelength * (1000 if made.wavelength.units == "um" else 1)
        np.testing.assert_allclose(made, (0.5 * nm + 3).broadcast_like(made), rtol=1e-5)


def test_resampled_to_spectra_and_arrays():
    """Without coordinates to copy, the result has wavelength and fwhm, in the scene's unit or in nm."""
    bands = hsi.Spectra(np.ones((1, 3)), None, [505.123456789012, 702, 1003], [120, 130, 140])
    made = hsi.resample(scene(), bands=bands)
    assert made.wavelength.values.tolist() == [505.123456789012, 702, 1003] and made.fwhm.values.tolist() == [120, 130, 140]
    assert made.wavelength.units == made.fwhm.units == "nm"
    made = hsi.resample(scene(unit="um", factor=1e-3), bands=bands)
    np.testing.assert_allclose(made.wavelength, [0.505123456789012, 0.702, 1.003], rtol=1e-15)
    assert made.wavelength.units == made.fwhm.units == "um"
    by_wavelength = scene().drop_vars(["band", "wavelength"]).rename(band="wavelength").assign_coords(wavelength=("wavelength", NM, {"units": "nm"}))
    of_wavelengths = target().drop_vars(["band", "wavelength"]).rename(band="wavelength").assign_coords(wavelength=target().wavelength.values)
    made = hsi.resample(scene(), like=of_wavelengths)
    assert made.dims == ("band", "y", "x") and made.band.values.tolist() == [1, 2, 3]
    assert made.wavelength.values.tolist() == target().wavelength.values.tolist() and made.kind.values.tolist() == list("vvn")
    for like in (target(), of_wavelengths):
        made = hsi.resample(by_wavelength, like=like)
        assert made.dims == ("wavelength", "y", "x") and made.wavelength.values.tolist() == target().wavelength.values.tolist()
    bare = hsi.resample(scene().drop_vars("wavelength"), like=target(), wavelengths=NM)
    xr.testing.assert_identical(bare.wavelength, hsi.resample(scene(), like=target()).wavelength)


def test_what_is_resampled_meets_a_library_by_wavelength():
    made = hsi.resample(scene(), like=target([2, 0, 1]))
    spectra = made.isel(y=[3, 7, 9], x=[4, 9, 2]).values[:, [0, 1, 2], [0, 1, 2]].T
    nm = made.wavelength.values
    expected = least_squares(made.values, spectra[:2])
    order = np.argsort(nm)
    sorted_library = hsi.Spectra(spectra[:2, order], ["a", "b"], nm[order])
    np.testing.assert_allclose(hsi.unmix(made, sorted_library, method="ucls"), expected, atol=2e-4)


def test_a_chain_is_that_of_the_tools(tmp_path):
    """resample, mnf and its inverse, unmix: arrays with band coordinates give the bits of files with them."""
    write_scene(tmp_path / "s.dat", VALUES, wavelengths=NM.tolist(), fwhm=[100.0] * NUMBER)
    like = target([0, 1, 2])
    write_scene(tmp_path / "l.dat", like.values, wavelengths=like.wavelength.values.tolist(), fwhm=like.fwhm.values.tolist())
    hsi.run("resample", tmp_path / "s.dat", tmp_path / "r.dat", like=tmp_path / "l.dat", of="ENVI")
    hsi.run("mnf", tmp_path / "r.dat", tmp_path / "m.dat", nc=2, model=tmp_path / "m.json", of="ENVI")
    hsi.run("mnf", tmp_path / "m.dat", tmp_path / "i.dat", apply=tmp_path / "m.json", inverse=True, of="ENVI")
    nm = [1003.125, 505.25, 702.0]
    (tmp_path / "lib.csv").write_text("wavelength,a,b\n" + "".join(f"{w},{a},{b}\n" for w, a, b in zip(nm, (3000, 1000, 2000), (700, 900, 100))))
    hsi.run("unmix", tmp_path / "i.dat", tmp_path / "lib.csv", tmp_path / "u.dat", of="ENVI")
    resampled = scene().hsi.resample(like=like)
    components, model = resampled.hsi.mnf(nc=2, model=True)
    back = components.hsi.mnf(apply=model, inverse=True)
    abundances = back.hsi.unmix(hsi.Spectra([[3000, 1000, 2000], [700, 900, 100]], ["a", "b"], nm))
    for name, made in (("r", resampled), ("m", components), ("i", back), ("u", abundances)):
        np.testing.assert_array_equal(read(tmp_path / f"{name}.dat"), made.values, err_msg=name)
    assert back.wavelength.values.tolist() == like.wavelength.values.tolist()


@pytest.mark.parametrize("algorithm", ["pca", "mnf"])
def test_back_from_components(algorithm):
    """The scene's wavelengths are restored, but labels that would differ from the scene's are not; text labels do no
    harm."""
    function = getattr(hsi, algorithm)
    for array in (scene(), scene(labels=[f"b{k}" for k in range(NUMBER)]), scene().isel(band=MIXED)):
        components, model = function(array, nc=NUMBER, model=True)
        back = function(components, apply=model, inverse=True)
        np.testing.assert_allclose(back.values, array.values, rtol=1e-3, atol=1e-2 * np.abs(VALUES).max())
        assert back.wavelength.values.tolist() == array.wavelength.values.tolist() and back.wavelength.units == "nm"
        assert "band" not in back.coords


@pytest.mark.parametrize("dims", DIMENSIONS)
@pytest.mark.parametrize("labels", [None, np.arange(1, NUMBER + 1) / 8, [f"b{k}" for k in range(NUMBER)]])
def test_spectra_by_labels_of_bands(dims, labels):
    array, spectra = scene(dims, labels, wavelengths=False), library(labels)
    expected = hsi.unmix(array, spectra, method="ucls")
    is_least_squares(expected)
    for one in (spectra.isel(band=MIXED), spectra.isel(band=MIXED).T, spectra[:, ::-1], spectra.astype(np.float64)):
        xr.testing.assert_identical(hsi.unmix(array, one, method="ucls"), expected)
    mixed = hsi.unmix(array.isel(band=MIXED), spectra, method="ucls")
    is_least_squares(mixed)
    scores = hsi.detect(array, target=LIBRARY[0], method="sam")
    for one in (spectra[0], spectra[0, ::-1], spectra[0].isel(band=MIXED), hsi.Spectra(spectra[0].isel(band=MIXED))):
        np.testing.assert_array_equal(hsi.detect(array, target=one, method="sam").values, scores.values)


def test_labels_beside_wavelengths():
    """If both inputs have wavelengths, these are used. If one lacks them, labels of both are compared."""
    wrong = library(np.arange(NUMBER, 0, -1)).assign_coords(wavelength=("band", NM, {"units": "nm"}))
    is_least_squares(hsi.unmix(scene(), wrong, method="ucls"))
    is_least_squares(hsi.unmix(scene(), wrong[:, ::-1], method="ucls"))
    is_least_squares(hsi.unmix(scene(), library()[:, ::-1], method="ucls"))
    right = library().assign_coords(wavelength=("band", NM, {"units": "nm"}))
    is_least_squares(hsi.unmix(scene(wavelengths=False), right[:, ::-1], method="ucls"))


@pytest.mark.parametrize("labels", [range(2, NUMBER + 2), [f"b{k}" for k in range(NUMBER)], [1, 2, 3, 4, 5, 6, 7, 8, 8]])
def test_other_labels_are_refused(labels):
    array, spectra = scene(wavelengths=False), library(list(labels))
    for call in (lambda: hsi.unmix(array, spectra), lambda: hsi.detect(array, target=spectra, method="ace"),
                 lambda: hsi.atdca(array, t=2, reference=spectra), lambda: hsi.unmix(array, hsi.Spectra(spectra)),
                 lambda: hsi.compare(array, array.assign_coords(band=list(labels))),
                 lambda: hsi.unmix(array, LIBRARY, uncertainty=array.assign_coords(band=list(labels)), draws=2, deviation=True)):
        with pytest.raises(hsi.UsageError, match="other band labels than the scene") as caught:
            call()
        assert ".values" in caught.value.advice
    is_least_squares(hsi.unmix(array, spectra.values, method="ucls"))
    is_least_squares(hsi.unmix(array, spectra.drop_vars("band"), method="ucls"))
    is_least_squares(hsi.unmix(array.drop_vars("band"), spectra, method="ucls"))


def test_parts_of_the_bands():
    """A part has the labels that b selects. A whole library with a part of the scene is refused, and so is the
    reverse."""
    array, part = scene(wavelengths=False), [2, 3, 4, 5]
    expected = least_squares(VALUES[part], LIBRARY[:, part])
    for one in (library(), library().isel(band=MIXED), library().isel(band=part), library().isel(band=part[::-1])):
        np.testing.assert_allclose(hsi.unmix(array, one, method="ucls", b="3-6"), expected, atol=2e-4)
    for some, spectra in ((array.isel(band=part), library()), (array, library().isel(band=part))):
        with pytest.raises(hsi.UsageError, match="other band labels"):
            hsi.unmix(some, spectra, method="ucls")
    np.testing.assert_allclose(hsi.unmix(array.isel(band=part[::-1]), library().isel(band=part), method="ucls"), expected, atol=2e-4)


def test_spectra_of_a_scene_know_its_labels():
    array = scene(wavelengths=False).isel(band=MIXED)
    labels = np.zeros((10, 12), np.uint8)
    labels[3, 4], labels[7, 9], labels[9, 2] = 1, 2, 3
    for some in (None, "2-6"):
        found = array.hsi.spectra(labels, b=some)
        taken = [m + 1 for m in (MIXED if some is None else MIXED[1:6])]
        assert found.band_labels == taken
        np.testing.assert_array_equal(found.spectra, LIBRARY[:, [m - 1 for m in taken]])
        rest = sorted(taken)
        part = scene(wavelengths=False).sel(band=rest)
        expected = least_squares(part.values, LIBRARY[:, [m - 1 for m in rest]])
        np.testing.assert_allclose(hsi.unmix(part, found, method="ucls"), expected, atol=2e-4)
        np.testing.assert_allclose(hsi.unmix(scene(wavelengths=False), found, method="ucls"), expected, atol=2e-4)
    with pytest.raises(hsi.UsageError, match="other band labels"):
        hsi.unmix(scene(labels=range(100, 100 + NUMBER), wavelengths=False), found, method="ucls")


@pytest.mark.parametrize("wavelengths", [False, True])
@pytest.mark.parametrize("dims", DIMENSIONS)
def test_second_scenes_by_bands(wavelengths, dims):
    array = scene(wavelengths=wavelengths)
    other = (array + 1).assign_coords(array.coords).isel(band=MIXED).transpose(*dims)
    assert hsi.compare(array, other)["metrics"]["maxabs"]["maximum"] == pytest.approx(1, abs=1e-3)
    sigma = array.copy(data=np.broadcast_to(np.arange(1.0, NUMBER + 1)[:, np.newaxis, np.newaxis], VALUES.shape))
    options = {"draws": 4, "deviation": True, "method": "nnls"}
    expected = hsi.unmix(array, LIBRARY, uncertainty=sigma.values, **options).deviation
    for one in (sigma, sigma.isel(band=MIXED), sigma.isel(band=MIXED).transpose(*dims)):
        xr.testing.assert_identical(hsi.unmix(array, LIBRARY, uncertainty=one, **options).deviation, expected)
    if wavelengths:
        with pytest.raises(hsi.UsageError, match="uncertainty has other wavelengths"):
            hsi.unmix(array, LIBRARY, uncertainty=sigma.assign_coords(wavelength=("band", NM + 30)), **options)


def test_names_of_bands():
    """Labels that are texts become the bands' names, as the descriptions of a file's bands do."""
    shares = np.random.default_rng(5).dirichlet(np.ones(3), (10, 12)).transpose(2, 0, 1).astype(np.float32)
    array = xr.DataArray(shares, dims=("band", "y", "x"), coords={"band": ["water", "soil", "leaf"]})
    smooth, classes = array.hsi.regularize(map=True)
    assert classes.attrs["classes"][1:] == ["water", "soil", "leaf"] and smooth.band.values.tolist() == ["water", "soil", "leaf"]
    profile = array.hsi.profile(no_pca=True, thresholds=[5])
    assert profile.band.values[0] == "water" and len(set(profile.band.values.tolist())) == profile.sizes["band"]
    assert array.hsi.regularize(map=True, names=["a", "b", "c"]).map.attrs["classes"][1:] == ["a", "b", "c"]
    numbered = hsi.unmix(scene(), library().assign_coords(mineral=[7, 3, 11]))
    assert numbered.band.values.tolist() == ["7", "3", "11"]
    assert hsi.detect(scene(), target=library().sel(mineral="b"), method="sam").band.values.tolist() == ["b"]


@pytest.mark.parametrize("name", ["wavelength", "Wavelength", "wavelengths", "wl", "center_wavelength", "Center_Wavelengths", "centre_wavelength",
                                  "central_wavelength", "wavelength_nm"])
def test_names_of_the_coordinate(name):
    array = scene(wavelengths=False).assign_coords({name: ("band", NM)})
    model = hsi.pca(array, nc=2, model=True).model
    assert model.document["wavelengths_nm"] == NM.tolist()
    np.testing.assert_array_equal(hsi.Spectra(array[:, 2, 3]).wavelengths, NM)
    made = hsi.resample(array, bands=hsi.Spectra(np.ones((1, 2)), None, [500.0, 700], [120.0, 130]))
    assert made.coords[name].values.tolist() == [500, 700]


def test_units_beside_the_coordinate():
    """The unit of an ENVI header is used; widths without a unit have the wavelengths' unit."""
    micro = scene(wavelengths=False).assign_coords(wavelength=("band", NM / 1000), fwhm=("band", np.full(NUMBER, 0.1)))
    expected = hsi.resample(scene(), like=target())
    for array in (micro, micro.assign_attrs(wavelength_units="Micrometers"),
                  micro.assign_coords(wavelength=("band", NM / 1000, {"units": "um"})),
                  scene(wavelengths=False).assign_coords(wavelength=("band", NM * 10), fwhm=("band", np.full(NUMBER, 1000.0))).assign_attrs(
                      wavelength_units="Angstroms")):
        np.testing.assert_array_equal(hsi.resample(array, like=target()).values, expected.values)
    with pytest.raises(hsi.UsageError, match="'Index'"):
        hsi.pca(micro.assign_attrs(wavelength_units="Index"), nc=2)


@pytest.mark.parametrize("dims", DIMENSIONS)
def test_bands_that_are_chosen(dims):
    """Every coordinate along the bands stays with its band."""
    array = scene(dims)
    made = array.hsi.spp(ws=3, b="3-5")
    expected = array.isel(band=slice(2, 5))
    assert made.name == "at_sensor" and made.attrs == array.attrs and set(made.coords) == set(expected.coords)
    for key in array.coords:
        xr.testing.assert_identical(made.coords[key], expected.coords[key])
    cut = array.hsi.spp(ws=3, exclude_range="640-960nm")
    assert cut.wavelength.values.tolist() == [w for w in NM if not 640 <= w <= 960]
    removed = array.hsi.features(output="removed")
    assert removed.attrs == {} and removed.wavelength.values.tolist() == NM.tolist()
    assert array.hsi.features().band.dtype.kind == "U" and "wavelength" not in array.hsi.features().coords


def test_an_index_of_several_levels():
    array = scene(wavelengths=False).drop_vars("band").assign_coords(
        sensor=("band", list("vvvvvssss")), number=("band", [1, 2, 3, 4, 5, 1, 2, 3, 4])).set_index(band=["sensor", "number"])
    made = array.hsi.spp(ws=3, b="3-6")
    assert made.indexes["band"].equals(array.indexes["band"][2:6])
    spectra = array.isel(y=3, x=4)
    expected = hsi.detect(array, target=LIBRARY[0], method="sam").values
    np.testing.assert_array_equal(hsi.detect(array, target=spectra.isel(band=MIXED), method="sam").values, expected)
    assert array.hsi.pca(nc=2).band.values.tolist() == ["PC1", "PC2"]


def test_scale_and_offset_that_attributes_tell():
    """An array that xarray has not decoded is interpreted as the tools interpret its file: with a library, scale and
    offset are applied."""
    raw = np.round(VALUES * (3000 / np.abs(VALUES).max())).astype(np.int16)
    array = scene().copy(data=raw).assign_attrs(scale_factor=1e-3, add_offset=0.25)
    array.attrs.pop("units")
    meant = raw * 1e-3 + 0.25
    spectra = np.stack([meant[:, y, x] for y, x in ((3, 4), (7, 9), (9, 2))])
    np.testing.assert_allclose(hsi.unmix(array, spectra, method="ucls"), least_squares(meant, spectra), atol=2e-3)
    made = array.hsi.spp(ws=3)
    assert made.attrs["scale_factor"] == 1e-3 and made.attrs["add_offset"] == 0.25
    components, model = array.hsi.pca(nc=3, model=True)
    back = components.hsi.pca(apply=model, inverse=True)
    assert back.attrs == {"scale_factor": 1e-3, "add_offset": 0.25} and "scale_factor" not in components.attrs
    assert array.hsi.resample(like=target()).attrs["add_offset"] == 0.25


def test_planes_as_rioxarray_has_them():
    """A mask and labels with one band, and its axis."""
    plane = (scene().isel(band=0, drop=True) > np.median(VALUES[0])).astype(np.uint8)
    expected = hsi.pca(scene(), nc=2, mask=plane)
    for one in (plane.expand_dims(band=[1]), plane.expand_dims(band=[1]).transpose("x", "y", "band")):
        xr.testing.assert_identical(hsi.pca(scene(), nc=2, mask=one), expected)
        with pytest.raises(hsi.UsageError, match="mask has other coordinates"):
            hsi.pca(scene(), nc=2, mask=one.isel(y=slice(None, None, -1)))


def test_a_model_of_few_components_is_loaded(tmp_path):
    made = hsi.PCA(2).fit(pixels(scene()))
    made.save(tmp_path / "model.json")
    loaded = hsi.PCA.load(tmp_path / "model.json")
    assert loaded.n_components_ == 2
    np.testing.assert_array_equal(loaded.transform(pixels(scene())), made.transform(pixels(scene())))


def pixels(array):
    return array.stack(pixel=("y", "x")).transpose("pixel", "band")


@pytest.mark.parametrize("kind", ["PCA", "MNF", "SVM", "SAHIC", "EADP", "PLSR"])
@pytest.mark.parametrize("wavelengths", [False, True])
def test_estimators_look_at_bands(kind, wavelengths, tmp_path):
    made = getattr(hsi, kind)(**({"C": 8, "gamma": 0.5} if kind == "SVM" else {"n_components": 2} if kind != "SAHIC" else {}))
    given = (lambda a: a) if kind == "EADP" else pixels
    use = made.__class__.predict if hasattr(made, "predict") else made.__class__.transform
    truth = (np.arange(VALUES[0].size) % 2) + 1
    array = scene(wavelengths=wavelengths)
    made.fit(given(array), truth)
    expected = np.asarray(use(made, given(array)))
    np.testing.assert_array_equal(use(made, given(array).copy().values), expected)
    np.testing.assert_array_equal(use(made, given(array).drop_vars("band")), expected)
    others = [array.isel(band=MIXED), array.isel(band=slice(None, None, -1))]
    if wavelengths:
        others.append(array.assign_coords(wavelength=("band", NM + 30, {"units": "nm"})))
        np.testing.assert_array_equal(use(made, given(array.assign_coords(band=list("ihgfedcba")))), expected)
    else:
        others.append(array.assign_coords(band=list("abcdefghi")))
    for other in others:
        with pytest.raises(ValueError, match="other %s than the bands of fit" % ("wavelengths" if wavelengths else "labels")):
            use(made, given(other))
    if wavelengths and kind != "EADP":
        made.save(tmp_path / "model.json")
        loaded = type(made).load(tmp_path / "model.json", **({"n_components": 2} if kind == "MNF" else {}))
        np.testing.assert_array_equal(use(loaded, given(array)), expected)
        with pytest.raises(ValueError, match="other wavelengths"):
            use(loaded, given(others[-1]))


@pytest.mark.parametrize("kind", ["PCA", "MNF", "SVM", "SAHIC", "EADP", "PLSR"])
def test_estimators_look_at_scales(kind):
    """Values with another scale are different values, whatever they represent."""
    pixels = scene().stack(pixel=("y", "x")).transpose("pixel", "band")
    y = (np.arange(pixels.shape[0]) % 3) + 1
    one = getattr(hsi, kind)()
    X = scene() if kind == "EADP" else pixels
    one.fit(X, y) if kind in ("SVM", "SAHIC", "PLSR") else one.fit(X)
    use = one.predict if kind in ("SVM", "SAHIC", "PLSR") else one.transform
    use(X)
    use(X.assign_attrs(scale_factor=1.0))
    with pytest.raises(ValueError, match="X has scale_factor 0.0001 and add_offset 0, but X of fit.. had 1 and 0"):
        use(X.assign_attrs(scale_factor=1e-4))


def test_estimators_warn_of_numbers_out_of_range():
    pixels = VALUES.reshape(NUMBER, -1).T
    svm = hsi.SVM().fit(pixels, (np.arange(len(pixels)) % 2) + 1)
    with pytest.warns(hsi.Warning, match="far outside the range that the model was made from"):
        svm.predict(1e4 * pixels)


@pytest.mark.parametrize("kind", ["PCA", "MNF"])
def test_components_by_their_names(kind):
    pixels = VALUES.reshape(NUMBER, -1).T
    one = getattr(hsi, kind)(n_components=4).fit(pixels)
    made = one.transform(pixels)
    named = xr.DataArray(made, dims=("pixel", "band"), coords={"band": list(one.get_feature_names_out())})
    np.testing.assert_array_equal(one.inverse_transform(named), one.inverse_transform(made))
    np.testing.assert_array_equal(one.inverse_transform(named[:, :2]), one.inverse_transform(made[:, :2]))
    for order in ([1, 0, 2, 3], [1, 2]):
        with pytest.raises(ValueError, match="X has the components"):
            one.inverse_transform(named.isel(band=order))
