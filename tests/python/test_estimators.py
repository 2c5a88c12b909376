# SPDX-License-Identifier: MIT
"""Estimators: with scikit-learn, its own checks, pipelines, searches and clones; without it, the same interface. Their
models are the tools' models."""
import inspect
import os
import subprocess
import sys

import numpy as np
import pytest

from conftest import ROOT, cube, read, run, succeed, write_scene

import gdal_hsi as hsi

VALUES = cube(30, 25, 9)
PIXELS = VALUES.reshape(9, -1).T


def classes(pixels):
    return np.where(pixels[:, 2] > np.median(pixels[:, 2]), "bright", "dark")


@pytest.mark.parametrize("kind, algorithm", [(hsi.PCA, "pca"), (hsi.MNF, "mnf")])
def test_components_are_the_functions(kind, algorithm, tmp_path):
    line = VALUES.reshape(9, 1, -1)  # the pixels form a scene of one line
    estimator = kind(n_components=3, device="cpu")
    made = estimator.fit_transform(PIXELS)
    np.testing.assert_array_equal(made, getattr(hsi, algorithm)(line, nc=3, device="cpu")[:, 0].T)
    np.testing.assert_array_equal(estimator.transform(PIXELS), made)
    back = estimator.inverse_transform(made)
    assert back.shape == PIXELS.shape and np.abs(back - PIXELS).mean() < PIXELS.std()
    estimator.save(tmp_path / "m.json")
    np.testing.assert_array_equal(kind.load(tmp_path / "m.json", n_components=3).transform(PIXELS), made)
    write_scene(tmp_path / "scene.dat", VALUES, geotransform=None, epsg=None)
    succeed(run("gdal_hsi_" + algorithm, "-device", "cpu", "-nc", "3", "-apply", tmp_path / "m.json", tmp_path / "scene.dat", tmp_path / "c.tif"))
    np.testing.assert_array_equal(read(tmp_path / "c.tif").reshape(3, -1).T, made)


@pytest.mark.parametrize("estimator", [hsi.SVM(C=8, gamma=0.5, probability=True), hsi.SAHIC()], ids=["SVM", "SAHIC"])
def test_classifiers(estimator, tmp_path):
    y = classes(PIXELS)
    estimator.fit(PIXELS, y)
    assert list(estimator.classes_) == ["bright", "dark"]
    assert estimator.score(PIXELS, y) > 0.8
    shares = estimator.predict_proba(PIXELS)
    np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-5)
    estimator.save(tmp_path / "m.json")
    again = type(estimator).load(tmp_path / "m.json")
    np.testing.assert_array_equal(again.predict(PIXELS), estimator.predict(PIXELS))


def separable():
    """Returns 480 pixels of three well separated classes."""
    x = np.random.default_rng(0).random((480, 12), dtype=np.float32) * 100 + 100
    y = np.arange(480) % 3
    x[y == 1, :4] += 800
    x[y == 2, 4:8] += 800
    return x, y


def classifiers():
    return [hsi.SVM(C=8, gamma=0.5, probability=True), hsi.SAHIC()]


KINDS = pytest.mark.parametrize("estimator", classifiers(), ids=["SVM", "SAHIC"])


@KINDS
@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_class_without_values_is_refused(estimator, lost):
    x, y = separable()
    x[y == lost] = 0
    with pytest.raises(hsi.UsageError, match=f"class {lost + 10}: no pixel"):
        estimator.fit(x, y + 10)
    some = x.copy()
    some[np.flatnonzero(y == lost)[:5]] = separable()[0][np.flatnonzero(y == lost)[:5]]
    estimator.fit(some, y + 10)
    assert estimator.predict_proba(some[(y != lost)]).shape == (320, 3)
    np.testing.assert_array_equal(estimator.predict(some[y != lost]), y[y != lost] + 10)


@KINDS
def test_pixels_without_a_class_are_told(estimator):
    x, y = separable()
    estimator.fit(x, y)
    for beyond in (0.0, 1e39):
        some = x[:6].astype(np.float64)
        some[[1, 4]] = some[[1, 4]] * 0 + beyond
        for ask in (estimator.predict, estimator.predict_proba):
            with pytest.raises(hsi.UsageError, match="2 of 6 rows .*: 1, 4"):
                ask(some)
    np.testing.assert_array_equal(estimator.predict(x[:6]), y[:6])


LABELS = {"integers": np.array([-5, 0, 7]), "unsigned": np.array([3, 2**63, 2**64 - 1], np.uint64), "floats": np.array([-1.0, 0, 2]),
          "texts": np.array(["", "a", "b"]), "objects": np.array(["a", "b", "1"], object), "small": np.array([1, 2, 3], np.int8),
          "days": np.array(["2020-01-01", "2021-01-01", "2022-01-01"], "M8[D]"), "bools": np.array([False, True])}


@KINDS
@pytest.mark.parametrize("kind", LABELS)
def test_a_loaded_model_has_the_classes(estimator, kind, tmp_path):
    x, y = separable()
    labels = LABELS[kind]
    labels = labels[y % len(labels)]
    estimator.fit(x, labels)
    estimator.save(tmp_path / "m.json")
    again = type(estimator).load(tmp_path / "m.json")
    assert again.classes_.dtype == estimator.classes_.dtype
    np.testing.assert_array_equal(again.classes_, np.unique(labels))
    np.testing.assert_array_equal(again.predict(x), estimator.predict(x))
    np.testing.assert_array_equal(again.predict(x), labels)
    tool = hsi.svm_classify if isinstance(estimator, hsi.SVM) else lambda s, m: hsi.sahic(s, "none", apply=m, no_spatial=True)
    found = tool(np.ascontiguousarray(x.T[:, None]), hsi.Model.load(tmp_path / "m.json"))
    np.testing.assert_array_equal(np.unique(labels)[np.asarray(found).ravel() - 1], labels)


@pytest.mark.parametrize("estimator", [*classifiers(), hsi.PCA(2), hsi.MNF(2)], ids=lambda e: type(e).__name__)
def test_masked_pixels_and_labels(estimator):
    x, y = separable()
    hidden = np.ma.MaskedArray(x, np.zeros(x.shape, bool))
    estimator.fit(hidden, y)
    hidden[5, 3] = np.ma.masked
    ask = estimator.predict if hasattr(estimator, "predict") else estimator.transform
    for call in (lambda: estimator.fit(hidden, y), lambda: ask(hidden), lambda: estimator.fit((hidden * 10).astype(int), y)):
        with pytest.raises(ValueError, match="NaN"):
            call()
    if hasattr(estimator, "predict"):
        with pytest.raises(hsi.UsageError, match="masked labels"):
            estimator.fit(x, np.ma.MaskedArray(y, y == 1))
        np.testing.assert_array_equal(estimator.fit(x, np.ma.MaskedArray(y)).predict(x), y)


@KINDS
@pytest.mark.parametrize("labels", [np.array(["a", None], object), np.array([1, "a"], object), np.array([b"a", b"b"]), np.array([1j, 2])])
def test_labels_that_are_none(estimator, labels):
    x, y = separable()
    with pytest.raises(hsi.UsageError, match="labels of"):
        estimator.fit(x, labels[y % 2])


def test_probabilities_are_there_where_they_were_asked_for():
    with pytest.raises(AttributeError, match="probability=False"):
        hsi.SVM().predict_proba
    assert not hasattr(hsi.SVM(), "predict_proba") and hasattr(hsi.SVM(probability=True), "predict_proba")


def test_eadp_of_scenes():
    np.testing.assert_array_equal(hsi.EADP(n_components=2).fit_transform(VALUES), hsi.eadp(VALUES, nc=2))


@pytest.mark.parametrize("wrong", [0, 10, 2.5, True, np.nan, "x"])
def test_eadp_tells_its_parameter(wrong):
    with pytest.raises(hsi.UsageError, match="^n_components"):
        hsi.EADP(wrong).fit_transform(VALUES)


def test_eadp_knows_its_bands():
    with pytest.raises(ValueError, match="not fitted"):
        hsi.EADP().transform(VALUES)
    with pytest.raises(ValueError, match="8 features, but EADP is expecting 9"):
        hsi.EADP(n_components=2).fit(VALUES).transform(VALUES[:8])


def test_scalars_of_numpy_and_orders_of_bytes():
    x, y = separable()
    expected = hsi.PCA(3).fit(x)
    np.testing.assert_array_equal(hsi.PCA(np.int64(3), scale=np.False_).fit(x).transform(x.astype(">f4")), expected.transform(x))
    np.testing.assert_array_equal(hsi.PCA(np.array(3)).fit(x.astype(">f4")).eigenvalues_, expected.eigenvalues_)
    found = hsi.SVM(np.float32(8), np.float64(0.5), seed=np.int32(1)).fit(x.astype(">f8"), y.astype(">i4"))
    np.testing.assert_array_equal(found.predict(x), y)
    for wrong in (hsi.SVM(C=object()), hsi.SVM(8, 0.5, seed=np.random.RandomState(1)), hsi.SVM(C=float("nan"))):
        with pytest.raises(hsi.UsageError, match="C|seed"):
            wrong.fit(x, y)


@pytest.mark.parametrize("word, make", [
    ("C: False is not a number", lambda: hsi.SVM(C=False)), ("C: True", lambda: hsi.SVM(C=np.True_)), ("C: '-1'", lambda: hsi.SVM(C=-1)),
    ("C: inf is not a finite", lambda: hsi.SVM(C=np.inf)), ("gamma: '0'", lambda: hsi.SVM(8, 0)), ("gamma: 'wide'", lambda: hsi.SVM(8, "wide")), ("C: None", lambda: hsi.SVM(None)),
    ("class_weight: 3", lambda: hsi.SVM(class_weight=3)),
    ("seed: '1.5'", lambda: hsi.SVM(8, 0.5, seed=1.5)), ("probability: 'no' is not", lambda: hsi.SVM(8, 0.5, probability="no")),
    ("threads: '0'", lambda: hsi.SAHIC(threads=0)), ("device: False", lambda: hsi.SAHIC(device=False)),
    ("n_components: 2.5", lambda: hsi.PCA(2.5)), ("n_components: nan", lambda: hsi.MNF(np.nan)), ("n_components: True", lambda: hsi.PCA(True)),
    ("n_components: 0 is", lambda: hsi.MNF(0)), ("n_components: 13 comp", lambda: hsi.PCA(13)), ("n_components: '3'", lambda: hsi.PCA("3")),
    ("scale: 1 is not", lambda: hsi.PCA(scale=1)), ("whiten: 'no'", lambda: hsi.PCA(whiten="no")),
])
def test_parameters_that_are_none(word, make):
    with pytest.raises(hsi.UsageError) as caught:
        make().fit(*separable())
    assert caught.value.message.startswith(word)


def test_parameters_of_a_loaded_model():
    model = hsi.PCA(2).fit(separable()[0]).model_
    assert hsi.PCA.load(model, n_components=np.array(1)).transform(separable()[0]).shape == (480, 1)
    for wrong in ("x", True, 1.5):
        with pytest.raises(hsi.UsageError, match="n_components"):
            hsi.PCA.load(model, n_components=wrong)


def test_data_arrays():
    """Dimensions identify the band axis, attributes the missing values, and coordinates the pixels."""
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    scene = xr.DataArray(VALUES, dims=("band", "y", "x"), coords={"y": 100.0 - np.arange(25), "x": np.arange(30.0)})
    labels = xr.DataArray(classes(PIXELS).reshape(25, 30), dims=("y", "x"), coords={"y": scene.y, "x": scene.x})
    pixels, y = scene.stack(pixel=("y", "x")), labels.stack(pixel=("y", "x"))
    expected = hsi.SVM(8, 0.5).fit(PIXELS, classes(PIXELS))
    for given in (pixels, pixels.transpose("pixel", "band")):
        np.testing.assert_array_equal(hsi.PCA(2).fit_transform(given), hsi.PCA(2).fit_transform(PIXELS))
        found = hsi.SVM(8, 0.5).fit(given, y)
        assert found.model_ == expected.model_
        np.testing.assert_array_equal(found.predict(given), expected.predict(PIXELS))
        for one, other in ((given, y[::-1]), (given.reset_index("pixel"), y.reset_index("pixel")[::-1])):
            with pytest.raises(ValueError, match="other pixels"):
                hsi.SVM(8, 0.5).fit(one, other)
        with pytest.raises(ValueError, match="NaN"):
            hsi.PCA(2).fit(given.assign_attrs(_FillValue=float(given[0, 0])))
    with pytest.raises(ValueError, match="Expected 2D array .*stack"):
        hsi.PCA(2).fit(scene)
    with pytest.raises(ValueError, match="do not include bands"):
        hsi.PCA(2).fit(scene[0])


def test_data_frames():
    """Columns keep their names, and must have the order of fit()."""
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    x, y = separable()
    frame = pd.DataFrame(x, columns=[f"b{k}" for k in range(12)])
    for estimator in (hsi.PCA(2), hsi.MNF(2), *classifiers()):
        ask = "predict" if hasattr(estimator, "predict") else "transform"
        expected = getattr(estimator.fit(x, y), ask)(x)
        with pytest.warns(UserWarning, match="has feature names"):
            np.testing.assert_array_equal(getattr(estimator, ask)(frame), expected)
        np.testing.assert_array_equal(getattr(estimator.fit(frame, pd.Series(y)), ask)(frame), expected)
        assert list(estimator.feature_names_in_) == list(frame.columns)
        for columns, told in ((frame.columns[::-1], "same order"), (["c", *frame.columns[1:]], "unseen at fit time:\n- c\n.*missing:\n- b0\n")):
            with pytest.raises(ValueError, match="(?s)feature names should match.*" + told):
                getattr(estimator, ask)(pd.DataFrame(x, columns=columns))
        if ask == "transform":
            assert len(estimator.get_feature_names_out(frame.columns)) == 2
            for wrong, told in ((frame.columns[::-1], "is not equal"), (["b0"], "should have length equal")):
                with pytest.raises(ValueError, match=told):
                    estimator.get_feature_names_out(wrong)
        with pytest.warns(UserWarning, match="does not have valid feature names"):
            getattr(estimator, ask)(x)
    for kind in ("category", "Int64", str):
        np.testing.assert_array_equal(hsi.SVM(8, 0.5).fit(frame, pd.Series(y).astype(kind)).predict(frame).astype(int), y)
    for wrong in (y[:-1], pd.Series(y)[:-1], np.append(y, 0)):
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            hsi.SVM(8, 0.5).fit(frame, wrong)


def test_sparse_pixels_are_refused():
    sparse = pytest.importorskip("scipy.sparse", reason="SciPy is not installed")
    x, y = separable()
    for estimator in (hsi.PCA(2), hsi.MNF(2), *classifiers()):
        for kind in (sparse.csr_matrix, sparse.csc_matrix, sparse.coo_matrix):
            with pytest.raises(TypeError, match="Sparse data"):
                estimator.fit(kind(x), y)


@pytest.mark.parametrize("kind", [hsi.PCA, hsi.MNF, hsi.SVM, hsi.SAHIC])
def test_models_that_are_none(kind, tmp_path):
    """Models of another estimator, with a missing member, or with a member of another type."""
    x, y = separable()
    fitted = {k: k().set_params(**({"C": 8, "gamma": 0.5} if k is hsi.SVM else {})).fit(x, y) for k in (hsi.PCA, hsi.MNF, hsi.SVM, hsi.SAHIC)}
    for other in fitted:
        if other is not kind:
            with pytest.raises(hsi.UsageError, match=f"is not a model of {kind.__name__}"):
                kind.load(fitted[other].model_)
    for text in ("{}", "{", "{\"format\": 5}", str(tmp_path / "nowhere.json")):
        with pytest.raises(hsi.UsageError):
            kind.load(text)
    document = fitted[kind].model_.document
    for member in ["bands", "mean", "eigenvalues"] if kind in (hsi.PCA, hsi.MNF) else ["classes", "features", "labels"]:
        for wrong in (5, "text", {}, {"values": 5}, ["a"], [], [[1]]):
            with pytest.raises(hsi.UsageError):
                kind.load({**document, member: wrong})
        if member != "labels":
            with pytest.raises(hsi.UsageError):
                kind.load({k: v for k, v in document.items() if k != member})
    if kind is hsi.PCA:  # as version 0.1 marked them
        assert kind.load({**document, "format": "gdal_hsi_pca model"}).n_features_in_ == 12


def test_names_that_no_file_can_have():
    x, y = separable()
    with pytest.raises(hsi.UsageError, match="NUL"):
        hsi.SVM(8, 0.5).fit(x, np.array(["a\0x", "b", "a\0y"], object)[y])


def test_parameters():
    estimator = hsi.PCA(4, whiten=True)
    assert estimator.get_params()["n_components"] == 4 and estimator.set_params(scale=True).scale is True
    with pytest.raises(ValueError):
        estimator.set_params(window=3)
    with pytest.raises(ValueError, match="not fitted"):
        hsi.PCA().transform(PIXELS)
    ratio = hsi.PCA(9).fit(PIXELS).explained_variance_ratio_
    assert ratio.sum() == pytest.approx(1)


def traits(count=300):
    """Returns pixels whose value affects some of nine bands, in groups of three."""
    rng = np.random.default_rng(3)
    y, light = rng.uniform(1, 4, count), rng.uniform(0.5, 1.5, count)
    shape = np.exp(-((np.arange(9) - 5) / 1.5) ** 2)
    x = light[:, None] * (1 - 0.1 * y[:, None] * shape) + 0.002 * rng.standard_normal((count, 9))
    return x.astype(np.float32), y, np.arange(count) // 3


REGRESSIONS = {"PLSR": hsi.PLSR(members=5, steps="mean"), "Ridge": hsi.Ridge(members=5, steps="mean"),
               "GP": hsi.GP(steps="mean"), "SVR": hsi.SVR(C=8, gamma=0.125, steps="mean")}
REGRESSION = pytest.mark.parametrize("estimator", REGRESSIONS.values(), ids=REGRESSIONS)


@REGRESSION
def test_regressions(estimator, tmp_path):
    x, y, plots = traits()
    learned = np.arange(len(y)) < 200
    estimator.fit(x[learned], y[learned], groups=plots[learned])
    assert estimator.score(x[~learned], y[~learned]) > 0.95 and estimator.metrics_["r2"] > 0.95 and estimator.metrics_["n"] == 200
    value, deviation = estimator.predict(x[~learned], return_std=True)
    np.testing.assert_array_equal(value, estimator.predict(x[~learned]))
    assert np.isnan(deviation).all() if isinstance(estimator, hsi.SVR) else (deviation > 0).all()
    assert (estimator.outside(x[learned]) < 2).mean() > 0.9 and (estimator.outside(x[:4, ::-1]) >= 2).all()
    estimator.save(tmp_path / "m.json")
    np.testing.assert_array_equal(type(estimator).load(tmp_path / "m.json").predict(x), estimator.predict(x))
    other = hsi.Ridge if isinstance(estimator, hsi.PLSR) else hsi.PLSR
    with pytest.raises(hsi.UsageError, match="is not a model of"):
        other.load(tmp_path / "m.json")
    with pytest.raises(hsi.UsageError, match="1 of 3 rows have no valid values, so they have no estimate: 1"):
        estimator.predict(x[:3] * [[1], [0], [1]])


@REGRESSION
def test_a_regression_is_the_tools(estimator, tmp_path):
    """The same samples in a table with groups give the same model."""
    x, y, plots = traits(90)
    order = np.random.default_rng(0).permutation(90)
    x, y, plots = x[order], y[order], plots[order]
    estimator.fit(x, y, groups=plots)
    by_group = np.concatenate([np.flatnonzero(plots == g) for g in dict.fromkeys(plots.tolist())])
    table = np.column_stack([plots, y, x.astype(float)])[by_group]
    np.savetxt(tmp_path / "t.csv", table, "%.17g", ",", header="plot,y," + ",".join(str(400 + 10 * b) for b in range(9)), comments="")
    options = {"PLSR": ["-members", 5], "Ridge": ["-members", 5], "GP": [], "SVR": ["-C", 8, "-gamma", 0.125]}[type(estimator).__name__]
    succeed(run("gdal_hsi_regression_train", "-method", type(estimator).__name__.lower(), "-transform", "mean", *options, "-table", tmp_path / "t.csv",
                "-field", "y", "-group", "plot", tmp_path / "m.json"))
    tools = type(estimator).load(tmp_path / "m.json")
    np.testing.assert_array_equal(tools.predict(x), estimator.predict(x))
    assert tools.metrics_ == estimator.metrics_


@pytest.mark.parametrize("y, words", [
    (np.full(20, np.nan), "Input y contains NaN"), (np.ma.masked_less(np.arange(20.0), 3), "y has masked values"), (np.array(["a"] * 20), "y has values of type"),
    (np.zeros((20, 2)), "y should be a 1d array"), (np.ones(19), "inconsistent numbers"), (np.ones(20), "all samples have the same value"), (None, "requires y")])
def test_values_that_no_regression_takes(y, words):
    with pytest.raises(ValueError, match=words):
        hsi.PLSR().fit(traits(20)[0], y)


def test_groups_of_a_regression():
    x, y, _ = traits(20)
    with pytest.raises(ValueError, match="inconsistent numbers"):
        hsi.PLSR().fit(x, y, groups=np.arange(19))
    with pytest.raises(ValueError, match="all in one group"):
        hsi.PLSR().fit(x, y, groups=np.zeros(20))
    with pytest.raises(TypeError, match="group"):
        hsi.regression_train(x.T[:, None], y[None], group="plot")


def test_without_scikit_learn(tmp_path):
    """Without scikit-learn: a folder that hides it is first in the path."""
    (tmp_path / "sklearn").mkdir()
    (tmp_path / "sklearn" / "__init__.py").write_text("raise ImportError('hidden')\n")
    script = """
import numpy as np, gdal_hsi as hsi
x = np.random.default_rng(1).random((200, 6), dtype=np.float32) + 1
y = (x[:, 0] > 1.5).astype(int)
p = hsi.PCA(2).fit(x)
assert p.transform(x).shape == (200, 2) and p.fit_transform(x).shape == (200, 2) and p.get_params()["n_components"] == 2
assert "PCA(" in repr(p)
s = hsi.SVM(C=8, gamma=0.5).fit(x, y)
assert s.score(x, y) > 0.8 and set(s.predict(x)) <= {0, 1}
r = hsi.PLSR(members=0).fit(x, x[:, 0] - x[:, 3])
assert r.score(x, x[:, 0] - x[:, 3]) > 0.99 and "PLSR(" in repr(r)
try: hsi.MNF().transform(x)
except ValueError as e: assert "not fitted" in str(e)
"""
    done = subprocess.run([sys.executable, "-c", script], stderr=subprocess.PIPE, text=True,
                          env={**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT / 'python'}"})
    assert done.returncode == 0, done.stderr


sklearn = pytest.importorskip("sklearn", reason="scikit-learn is not installed")
from sklearn.utils.estimator_checks import check_estimator  # noqa: E402

@pytest.mark.parametrize("estimator", [hsi.PCA(), hsi.MNF(), hsi.SVM(), hsi.SAHIC(), hsi.KMeans(3), hsi.Unmixer(), hsi.Detector(),
                                       hsi.PLSR(members=3), hsi.Ridge(members=3), hsi.GP(), hsi.SVR(C=8, gamma=0.125)],
                         ids=lambda e: type(e).__name__)
@pytest.mark.filterwarnings("ignore::gdal_hsi.Warning")
def test_checks_of_scikit_learn(estimator):
    """All checks apply, except those that the estimators' tags exclude: results are Float32 for any type of input, and
    an all-zero pixel has no class."""
    of_classifiers = {"check_estimators_dtypes": "a pixel that is all zero"} if hasattr(estimator, "predict") else {}
    if "expected_failed_checks" in inspect.signature(check_estimator).parameters:
        check_estimator(estimator, expected_failed_checks=of_classifiers)
    else:
        check_estimator(estimator)
    from sklearn.utils import estimator_checks
    name = type(estimator).__name__
    # Runs only its own estimators, as the checks below
    estimator_checks.check_dataframe_column_names_consistency(name, estimator)
    if hasattr(estimator, "transform"):
        for check in ("get_feature_names_out", "get_feature_names_out_pandas"):
            getattr(estimator_checks, "check_transformer_" + check)(name, estimator)


def test_pipeline_search_and_clone():
    from sklearn.base import clone
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    y = classes(PIXELS)
    pipeline = make_pipeline(hsi.PCA(), hsi.SVM(C=8, gamma=0.5, probability=False))
    search = GridSearchCV(pipeline, {"pca__n_components": [2, 4]}, cv=2).fit(PIXELS, y)
    assert search.best_score_ > 0.7
    assert clone(pipeline).get_params()["svm__C"] == 8


def test_components_are_those_of_scikit_learn():
    """Compares all components, a share of the variance, and the contents of a model with scikit-learn in double
    precision."""
    from sklearn.decomposition import PCA
    x = PIXELS.astype(np.float32)
    known = PCA().fit(x.astype(float))
    own = hsi.PCA().fit(x)
    assert own.n_components_ == 9 and own.components_.shape == (9, 9)
    np.testing.assert_allclose(own.explained_variance_, known.explained_variance_, rtol=1e-3, atol=1e-6 * known.explained_variance_[0])
    np.testing.assert_allclose(own.mean_, known.mean_, rtol=1e-6)
    np.testing.assert_allclose(np.abs((own.components_[:3] * known.components_[:3]).sum(axis=1)), 1, atol=1e-4)
    np.testing.assert_allclose(own.transform(x), (x - own.mean_) @ own.components_.T, atol=1e-2)
    for share in (0.5, 0.9, 0.99, 0.9999):
        part = hsi.PCA(share)
        assert part.fit_transform(x).shape[1] == part.n_components_ == PCA(share, svd_solver="full").fit(x.astype(float)).n_components_
        assert part.explained_variance_ratio_.sum() >= share > part.explained_variance_ratio_[:-1].sum()
        assert hsi.PCA.load(part.model_, n_components=share).n_components_ == part.n_components_ == part.transform(x).shape[1]
    assert hsi.MNF().fit(x).components_.shape == (9, 9) and hsi.MNF(0.8).fit(x).n_components_ < 9
    assert hsi.PCA().fit(x[:4]).n_components_ == 4


def test_a_machine_is_svc():
    """C, gamma, class weights and decision values equal SVC's on bands from 0 to 1."""
    from sklearn.preprocessing import MinMaxScaler
    from sklearn.svm import SVC
    rng = np.random.default_rng(4)
    x = rng.normal(size=(300, 6)).astype(np.float32) * 50 + 500
    y = (x[:, 0] + rng.normal(0, 30, 300) > 500).astype(int) + 2 * (x[:, 1] + rng.normal(0, 30, 300) > 520)
    scaled = MinMaxScaler().fit_transform(x.astype(float)).astype(np.float32)
    for labels in (y, y > 0, np.array(["3", "1", "2", "0"])[y]):
        for options in ({}, {"C": 8, "gamma": 0.5}, {"gamma": "auto"}, {"class_weight": "balanced"},
                        {"class_weight": dict(zip(np.unique(labels).tolist(), (5.0, 0.5)))}):
            own, known = hsi.SVM(**options).fit(x, labels), SVC(**options).fit(scaled, labels)
            assert own.C_ == known.C and own.gamma_ == pytest.approx(known._gamma, rel=1e-5)
            assert (own.predict(x) == known.predict(scaled)).mean() > 0.99
            mine, theirs = own.decision_function(x), known.decision_function(scaled)
            assert mine.shape == theirs.shape
            np.testing.assert_allclose(mine, theirs, atol=2e-2)
            order = mine.argmax(axis=1) if mine.ndim == 2 else (mine > 0).astype(int)
            assert (own.classes_[order] == own.predict(x)).mean() > 0.98  # except ties of votes
    searched = hsi.SVM("search", "search").fit(x, y > 0)
    assert np.log2(searched.C_) % 2 == 1 and hsi.SVM("search", 0.5).fit(x, y > 0).gamma_ == 0.5
    with pytest.raises(ValueError, match="class_weight"):
        hsi.SVM(class_weight={7: 2}).fit(x, y)


def test_a_search_with_folds_by_group():
    from sklearn.model_selection import GridSearchCV, GroupKFold
    y, groups = classes(PIXELS), np.arange(len(PIXELS)) // 50
    search = GridSearchCV(hsi.SVM(), {"C": [1, 8], "gamma": [0.1, "scale"]}, cv=GroupKFold(3), scoring="roc_auc").fit(PIXELS, y, groups=groups)
    assert search.best_score_ > 0.8 and search.best_estimator_.predict(PIXELS).shape == y.shape


@pytest.mark.parametrize("distance", ["euclidean", "angle"])
def test_clusters_are_the_tools(distance):
    own = hsi.KMeans(4, distance=distance, seed=3).fit(PIXELS)
    map_, centres = hsi.cluster(VALUES.reshape(9, 1, -1), k=4, distance=distance, seed=3, centres=True)
    np.testing.assert_array_equal(own.labels_, map_[0].astype(int) - 1)
    np.testing.assert_array_equal(own.cluster_centers_, centres.spectra)
    assert (own.predict(PIXELS) == own.labels_).mean() > 0.99 and own.transform(PIXELS).shape == (750, 4)
    again = hsi.KMeans(distance=distance, init=own.cluster_centers_).fit(PIXELS)
    assert len(again.cluster_centers_) == 4 and again.inertia_ <= own.inertia_ * 1.001
    from sklearn.cluster import KMeans
    if distance == "euclidean":
        assert own.inertia_ == pytest.approx(KMeans(4, init=own.cluster_centers_, n_init=1).fit(PIXELS).inertia_, rel=1e-3)
    one = hsi.KMeans(1).fit(PIXELS)
    np.testing.assert_allclose(one.cluster_centers_[0], PIXELS.mean(axis=0), rtol=1e-6)


def test_abundances_are_the_functions():
    spectra = PIXELS[[5, 300, 600]]
    own = hsi.Unmixer(hsi.Spectra(spectra, ["a", "b", "c"])).fit(PIXELS)
    made = own.transform(PIXELS)
    np.testing.assert_array_equal(made, hsi.unmix(VALUES.reshape(9, 1, -1), spectra)[:, 0].T)
    np.testing.assert_allclose(made.sum(axis=1), 1, atol=1e-4)
    assert list(own.get_feature_names_out()) == ["a", "b", "c"]
    np.testing.assert_allclose(own.inverse_transform(np.eye(3, dtype=np.float32)), spectra, rtol=1e-6)
    found = hsi.Unmixer(n_endmembers=4, search="vca", seed=2).fit(PIXELS)
    assert found.endmembers_.shape == (4, 9) and found.fit_transform(PIXELS).shape == (750, 4)
    with pytest.raises(hsi.UsageError, match="endmembers have 8 bands, but X has 9"):
        hsi.Unmixer(spectra[:, :8]).fit(PIXELS)


@pytest.mark.parametrize("method", ["rx", "ace", "mf", "cem", "sam", "sid"])
def test_scores_are_the_functions(method, tmp_path):
    target = None if method == "rx" else PIXELS[40]
    line = VALUES.reshape(9, 1, -1)
    own = hsi.Detector(method, target).fit(PIXELS)
    sign = -1 if method in ("sam", "sid") else 1
    options = {} if method in ("sam", "sid") else {"statistics": hsi.statistics(line)}
    np.testing.assert_array_equal(own.decision_function(PIXELS), sign * hsi.detect(line, method=method, target=target, **options)[0, 0])
    if method == "rx":
        np.testing.assert_allclose(own.decision_function(PIXELS), hsi.detect(VALUES)[0].ravel(), rtol=1e-4)
        hsi.statistics(VALUES).save(tmp_path / "s.stat")
        known = hsi.Detector(statistics=tmp_path / "s.stat").fit(PIXELS[:3])
        np.testing.assert_array_equal(known.decision_function(PIXELS), own.decision_function(PIXELS))
    else:
        assert own.decision_function(PIXELS).argmax() == 40
        assert hsi.Detector(method, PIXELS[40:42]).fit(PIXELS).decision_function(PIXELS).shape == (750, 2)
    with pytest.raises(hsi.UsageError, match="target"):
        hsi.Detector(method, PIXELS[40] if method == "rx" else None).fit(PIXELS)


def test_eadps_tags():
    """The tags state that it takes scenes, which scikit-learn's checks do not use."""
    tags = hsi.EADP().__sklearn_tags__().input_tags.three_d_array if hasattr(hsi.EADP(), "__sklearn_tags__") and hasattr(
        sklearn.utils, "Tags") else hsi.EADP()._get_tags()["X_types"] == ["3darray"]
    assert tags
