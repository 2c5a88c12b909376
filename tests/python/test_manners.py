# SPDX-License-Identifier: MIT
"""Conventions of Python packages: locations of warnings, types of errors, texts of objects, accepted types of
spectra."""
import pathlib
import shutil
import subprocess
import sys
import warnings

import numpy as np
import pytest

import gdal_hsi as hsi

RNG = np.random.default_rng(11)
X = RNG.random((12, 8, 9)).astype(np.float32)
NM = np.linspace(450, 1550, 12)
ONE = np.ones((8, 9), int)


def line_of(call):
    """Returns the file and the line that the first warning of a call names."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return caught[0].filename, caught[0].lineno, caught


def here():
    return sys._getframe(1).f_lineno


def test_warnings_name_the_line_of_the_call():
    few = RNG.random((20, 5, 5)).astype(np.float32)
    target = RNG.random(20)
    lines = {}

    def function():
        lines["function"] = here() + 1
        return hsi.detect(few, target=target, method="ace")

    def estimator():
        lines["estimator"] = here() + 1
        hsi.PCA(2).fit(RNG.normal(1e9, 1, (50, 4)))

    def transforms():
        lines["transforms"] = here() + 1
        hsi.PCA(2).fit_transform(RNG.normal(1e9, 1, (50, 4)))
    for name, call in (("function", function), ("estimator", estimator), ("transforms", transforms)):
        file, line, _ = line_of(call)
        assert (file, line) == (__file__, lines[name]), name


def test_an_accessor_warns_at_the_line_of_the_call():
    xr = pytest.importorskip("xarray")
    few = xr.DataArray(RNG.random((20, 5, 5)).astype(np.float32), dims=("band", "y", "x"))
    assert line_of(lambda: few.hsi.detect(target=np.ones(20), method="ace"))[:2] == (__file__, here())


@pytest.mark.parametrize("estimator", [hsi.PCA(2), hsi.SVM(C=1, gamma=1)], ids=lambda one: type(one).__name__)
def test_estimators_pass_on_the_warnings_of_fit(estimator):
    values = RNG.normal(1e9, 1, (400, 6))
    y = np.arange(400) % 2
    assert any("single precision" in str(one.message) for one in line_of(lambda: estimator.fit(values, y))[2])


def model():
    return hsi.pca(X, nc=2, model=True).model


@pytest.mark.parametrize("call", [
    lambda: hsi.unmix(X, np.random.rand(3, 11)), lambda: hsi.detect(X, target=np.ones(11)), lambda: hsi.unmix(X, np.ones((2, 12))),
    lambda: hsi.pca(X, nc=2, mask=np.ones((8, 8))), lambda: hsi.svm_train(X, ONE[:, :8], C=1, gamma=1),
    lambda: hsi.svm_train(X, ONE, C=1, gamma=1), lambda: hsi.pca(X[:6], apply=model()), lambda: hsi.mnf(X, apply=model()),
    lambda: hsi.Spectra({"a": [1, 2], "b": [1]}), lambda: hsi.spp(X[0]), lambda: hsi.spp(X, ws=4)])
def test_what_does_not_fit_is_a_value_error(call):
    with pytest.raises(ValueError) as caught:
        call()
    assert isinstance(caught.value, hsi.Error) and caught.value.message and " -" not in str(caught.value)


@pytest.mark.parametrize("value", [None, {"a": 1}, {1, 2}, len], ids=["None", "dict", "set", "function"])
def test_what_is_no_array_is_a_type_error(value):
    with pytest.raises(TypeError) as caught:
        hsi.spp(value)
    assert isinstance(caught.value, hsi.UsageError) and "src" in caught.value.message and "Give" in caught.value.advice


def test_readers_are_told_what_to_pass(tmp_path):
    """Datasets of other packages that read from disk are not arrays: the message names the attribute that is an
    array."""
    class Dataset:
        name = "a.tif"

        def read(self):
            """Reads the values."""
    Dataset.__module__ = "rasterio.io"

    class BsqFile:
        def open_memmap(self):
            """Opens the values."""
    BsqFile.__module__ = "spectral.io.bsqfile"
    for value, word in ((Dataset(), "read(masked=True)"), (BsqFile(), "img.load()")):
        with pytest.raises(TypeError) as caught:
            hsi.spp(value)
        assert word in caught.value.advice
    with pytest.raises(TypeError, match="info"):
        hsi.info(X)


@pytest.mark.parametrize("call", [lambda out: hsi.pca("/nowhere/no.tif", out=out), lambda out: hsi.info("/nowhere/no.tif"),
                                  lambda out: hsi.run("pca", "/nowhere/no.tif", out), lambda out: hsi.Spectra("/nowhere/no.sli")])
def test_a_file_that_is_missing(tmp_path, call):
    with pytest.raises(FileNotFoundError, match=r"/nowhere/no\.") as caught:
        call(tmp_path / "out.tif")
    assert isinstance(caught.value, hsi.Error)


def test_a_folder_that_is_missing_is_not_the_scene(tmp_path):
    """A file that exists but is not a scene gives a different error."""
    (tmp_path / "a.tif").write_text("no raster")
    with pytest.raises(hsi.Error) as caught:
        hsi.info(tmp_path / "a.tif")
    assert not isinstance(caught.value, FileNotFoundError)


def test_words_of_python():
    for call, words in ((lambda: hsi.pca(X[:6], apply=model()), ["with b."]), (lambda: hsi.spp(X[:1]), ["more bands with b."]),
                        (lambda: hsi.detect(X, method="mf"), ["target_pixel=(line, sample)"])):
        with pytest.raises(hsi.UsageError) as caught:
            call()
        assert all(word in caught.value.advice for word in words), caught.value.advice
    with pytest.raises(hsi.UsageError) as caught:
        hsi.unmix(X, np.random.rand(12, 3))
    assert "library has the shape (12, 3)" in caught.value.message and "library.T" in caught.value.advice


ONE_SCENE = hsi.statistics(X)
VALUES = np.where(ONE, np.nan, 1.0)


@pytest.mark.parametrize("call, words", [
    (lambda: hsi.index(X, name="NDVI"), "Give wavelengths=, in nm"), (lambda: hsi.resample(X, bands=[500.0]), "Give wavelengths=, in nm"),
    (lambda: hsi.features(X), "Give wavelengths=, in nm"), (lambda: hsi.pca(X, b="450-650nm"), "Or give numbers of bands: b 1-30."),
    (lambda: hsi.regression_train(X, np.arange(72.0).reshape(8, 9), transform="d1:5"), "Give wavelengths=, in nm"),
    (lambda: hsi.regression_train(X, VALUES), "choose another field."),
    (lambda: hsi.regression_train(X, np.arange(72.0).reshape(8, 9)), "choose other groups (block)."),
    (lambda: hsi.resample(X), "with like or bands."), (lambda: hsi.reflect(X), "or apply."),
    (lambda: hsi.compare(X, X[:5]), "or pairs with band."), (lambda: hsi.pca(X[0]), "for the estimators"),
    (lambda: ONE_SCENE + ONE_SCENE, "Subtract that scene first"), (lambda: ONE_SCENE - hsi.statistics(X[:, 1:]), "this does not have the pixels of other"),
    (lambda: ONE_SCENE + hsi.statistics(X[1:]), "this has 12 bands, but other has 11"), (lambda: hsi.KMeans(0).fit(X[0]), "n_clusters"),
    (lambda: hsi.PLSR(steps="d1:5").fit(X[0], X[0, :, 0]), "Give a DataFrame whose columns are wavelengths, or a DataArray with them as a coordinate"),
    (lambda: hsi.PCA(2).fit(X), "X.reshape(len(X), -1).T")])
def test_messages_name_what_a_function_has(call, words):
    with pytest.raises(ValueError) as caught:
        call()
    said = str(caught.value)
    assert words in said and " -" not in said.replace("(len(X), -1)", "") and "(-" not in said and "header" not in said, said


def test_star_import():
    names = {}
    exec("from gdal_hsi import *", names)
    assert set(hsi.algorithms()) <= set(names) and "Warning" not in names and names["PCA"] is hsi.PCA
    assert "Warning" in dir(hsi) and "pca" in dir(hsi)


@pytest.mark.parametrize("order", ["import gdal_hsi, xarray", "import xarray, gdal_hsi", "import gdal_hsi; import xarray as xr; import xarray"])
def test_the_accessor_is_there_in_any_order(order):
    pytest.importorskip("xarray")
    code = order + "; import xarray, numpy; print(xarray.DataArray(numpy.ones((3, 4, 4)), dims=('spectral', 'rows', 'cols')).hsi.spp(ws=3).shape)"
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True,
                          env={**__import__("os").environ, "PYTHONPATH": ":".join(sys.path)})
    assert done.stdout.strip() == "(3, 4, 4)"


def test_spectra_of_tables(tmp_path):
    values = RNG.random((2, 12))
    s = hsi.Spectra({"grass": values[0], "soil": values[1]}, wavelengths=NM)
    assert s.names == ["grass", "soil"]
    for path in (tmp_path / "a.csv", tmp_path / "a.sli"):
        s.save(path)
        read = hsi.Spectra(path)
        assert read.names == s.names and read.fwhm is None
        np.testing.assert_allclose(read.wavelengths, NM, rtol=1e-8)
        np.testing.assert_allclose(read.spectra, values, rtol=1e-8)
        np.testing.assert_array_equal(hsi.unmix(X, path, wavelengths=NM), hsi.unmix(X, read, wavelengths=NM))
    pd = pytest.importorskip("pandas")
    frame = s.to_dataframe()
    assert list(frame.index) == s.names
    again = hsi.Spectra(frame)
    assert again.names == s.names
    np.testing.assert_array_equal(again.wavelengths, NM)
    counted = hsi.Spectra(pd.DataFrame(values))
    assert counted.names == ["spectrum 1", "spectrum 2"] and counted.wavelengths is None
    for unit, factor in (("nm", 1), (" nm", 1), ("um", 1e-3), ("\u00b5m", 1e-3)):
        np.testing.assert_allclose(hsi.Spectra(pd.DataFrame(values, columns=[f"{v * factor:.6f}{unit}" for v in NM])).wavelengths, NM, rtol=1e-6)
    with pytest.raises(hsi.UsageError, match="column name of the table is not numeric.*\n.*set_index"):
        hsi.Spectra(pd.DataFrame({"name": s.names, "450": values[:, 0]}))
    with pytest.raises(KeyError, match="the names are grass, soil"):
        s["water"]


def test_estimators_know_the_wavelengths_of_a_table():
    """Derivatives need them; columns that are only counted are no wavelengths."""
    pd = pytest.importorskip("pandas")
    pixels = X.reshape(12, -1).T.astype(float)
    y = pixels[:, 3] - pixels[:, 5]
    expected = hsi.PLSR(steps="snv,d1:5", members=0).fit(pd.DataFrame(pixels, columns=NM), y)
    for columns in ([f"{v:.6f}" for v in NM], [f"{v:.6f}nm" for v in NM], NM / 1000):
        frame = pd.DataFrame(pixels, columns=columns)
        one = hsi.PLSR(steps=["snv", "d1:5"], members=0).fit(frame, y)
        np.testing.assert_allclose(one.predict(frame), expected.predict(pixels), rtol=1e-4, atol=1e-6)
    with pytest.raises(ValueError, match="other wavelengths"):
        expected.predict(pd.DataFrame(pixels, columns=NM + 5))
    with pytest.raises(hsi.UsageError, match="some bands have no wavelength"):
        hsi.PLSR(steps="d1:5").fit(pd.DataFrame(pixels), y)


def test_options_of_one_text_take_lists():
    values = np.where(RNG.random((8, 9)) < 0.7, X[3], np.nan)
    for options in ({"transform": ["snv", "mean"]}, {"transform": ("snv,mean",)}):
        assert (hsi.regression_train(X, values, block=1, members=0, **options).document["transform"] ==
                hsi.regression_train(X, values, block=1, members=0, transform="snv,mean").document["transform"])
    np.testing.assert_array_equal(hsi.eadp(X, times=[1, 2.5]), hsi.eadp(X, times="1,2.5"))


def test_a_classifier_warns_of_classes_as_they_were_given():
    y = np.repeat([3, 7, 12], [4, 6, 62])
    for labels in (y, np.array(["", "b c"])[(y == 3).astype(int)]):
        said = str(line_of(lambda: hsi.SVM().fit(X.reshape(12, -1).T, labels))[2][0].message)
        assert ("in class 3 (4), 7 (6): " if labels is y else "in class b c (4): ") in said, said


def test_spectra_with_gaps_survive_a_table(tmp_path):
    values = RNG.random((2, 5))
    values[1, 2] = np.nan
    hsi.Spectra(values, ["a, b", 'c "d"'], [400.5, 500, 600, 700, 800], [9, 9, 9, 9, 9.5]).save(tmp_path / "a.csv")
    read = hsi.Spectra.load(tmp_path / "a.csv")
    assert read.names == ["a, b", 'c "d"'] and list(read.fwhm) == [9, 9, 9, 9, 9.5]
    np.testing.assert_allclose(read.spectra, values, rtol=1e-8)


def test_bands_of_a_spectrometer():
    table = {"wavelength": [500.0, 800.0, 1200.0], "fwhm": [60.0, 40.0, 90.0]}
    expected = hsi.resample(X, bands=hsi.Spectra(np.zeros((1, 3)), ["x"], *table.values()), wavelengths=NM)
    np.testing.assert_array_equal(hsi.resample(X, bands=table, wavelengths=NM), expected)
    pd = pytest.importorskip("pandas")
    np.testing.assert_array_equal(hsi.resample(X, bands=pd.DataFrame(table), wavelengths=NM), expected)
    assert hsi.resample(X, bands=table["wavelength"], wavelengths=NM).shape == (3, 8, 9)


def test_spectra_beside_a_path(tmp_path):
    """A library may be an array if the scene is a file."""
    gdal = pytest.importorskip("osgeo.gdal")
    data = gdal.GetDriverByName("GTiff").Create(str(tmp_path / "x.tif"), 9, 8, 12, gdal.GDT_Float32)
    data.WriteArray(X)
    del data
    library = RNG.random((3, 12)).astype(np.float32)
    hsi.unmix(tmp_path / "x.tif", library, out=tmp_path / "u.tif")
    np.testing.assert_array_equal(gdal.Open(str(tmp_path / "u.tif")).ReadAsArray(), hsi.unmix(X, library))


def test_what_objects_print():
    for one in (model(), hsi.Spectra(RNG.random((500, 12)), wavelengths=NM), hsi.pca(X, nc=2, model=True)):
        assert len(repr(one).splitlines()) <= 10 and max(map(len, repr(one).splitlines())) <= 120
        assert "<" in one._repr_html_()
    assert repr(model()) == str(model()) == f"{model()}" == "<Model: gdal_hsi_pca, 12 bands, 2 components>"
    np.testing.assert_array_equal(hsi.pca(X, apply=model()), hsi.pca(X, nc=2))
    assert str(hsi.statistics(X)) == "<Statistics: 72 pixels, 1 scene, 12 bands>"
    assert "450 to 1550 nm" in repr(hsi.Spectra(RNG.random((2, 12)), wavelengths=NM))


def test_results_as_a_dataset():
    xr = pytest.importorskip("xarray")
    assert isinstance(hsi.spp(X, alpha=True).to_xarray(), xr.Dataset)
    scene = xr.DataArray(X, dims=("band", "y", "x"), coords={"y": np.arange(8) * 30.0})
    dataset = scene.hsi.unmix(RNG.random((2, 12)), rmse=True).to_xarray()
    assert set(dataset) == {"dst", "rmse"} and dataset["rmse"].dims[-2:] == ("y", "x")


def test_the_types_of_a_users_script(tmp_path):
    """Runs mypy --strict on a script that uses each type of result. It finds a wrong option name and a wrong use of a
    result."""
    api = pytest.importorskip("mypy.api")
    if tuple(map(int, __import__("mypy.version").version.__version__.split(".")[:2])) < (1, 10):
        pytest.skip("mypy before 1.10 does not know keywords by TypedDict")
    example = pathlib.Path(__file__).with_name("typed_example.py")
    wrong = tmp_path / "wrong.py"
    wrong.write_text("import numpy as np\nimport gdal_hsi as hsi\nx = np.zeros((3, 4, 5), np.float32)\nhsi.spp(x, wsx=3)\nhsi.pca(x).model\n")
    package = tmp_path / "site" / "gdal_hsi"
    shutil.copytree(pathlib.Path(hsi.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MYPYPATH", str(package.parent))
        said = api.run(["--strict", "--cache-dir", str(tmp_path / "cache"), str(example)])[0]
        assert "error" not in said, said  # also without errors in the package's own stubs
        said = api.run(["--strict", "--cache-dir", str(tmp_path / "cache"), str(wrong)])[0]
    assert "wrong.py:4: error" in said and "wrong.py:5: error" in said, said
