# SPDX-License-Identifier: MIT
"""Arrays give the same bits as the tools on files. Arrays have all layouts that strides can describe, and all real
types, and are computed with several numbers of threads."""
import json

import numpy as np
import pytest

from conftest import cube, run, succeed, write_scene

import gdal_hsi as hsi

pytestmark = pytest.mark.quick

BANDS, LINES, SAMPLES = 16, 37, 45
NM = [420.0 + 40 * b for b in range(BANDS)]


def scene_values(dtype="f4", bands=BANDS, seed=1, holes=True):
    values = cube(SAMPLES, LINES, bands, seed=seed).astype(dtype)
    if holes:
        values[:, 3, 5] = 0
        if np.dtype(dtype).kind == "f":
            values[2, 9, 9] = np.nan
    return values


def labels():
    values = np.zeros((LINES, SAMPLES), np.uint8)
    for c in range(3):
        values[4 + 10 * c:10 + 10 * c, 6:34:2] = c + 1
    return values


def library(values, k=4):
    spectra = values.reshape(values.shape[0], -1).T
    return np.ascontiguousarray(spectra[[100 + 251 * i for i in range(k)]].astype(np.float64))


def layouts(values):
    """Returns the same values in different layouts: the array, and its band axis."""
    yield "rows", np.ascontiguousarray(values), 0
    yield "pixels", np.ascontiguousarray(values.transpose(1, 2, 0)), -1
    yield "lines", np.ascontiguousarray(values.transpose(1, 0, 2)), 1
    yield "turned", np.asfortranarray(values), 0
    wide = np.zeros((values.shape[0] * 2, values.shape[1], values.shape[2] * 3), values.dtype)
    wide[::2, ::-1, 1::3] = values
    yield "strided", wide[::2, ::-1, 1::3], 0
    fixed = np.ascontiguousarray(values)
    fixed.flags.writeable = False
    yield "read-only", fixed, 0
    odd = np.zeros(values.nbytes + 1, np.uint8)[1:].view(values.dtype).reshape(values.shape)
    odd[...] = values
    yield "unaligned", odd, 0


def same(a, b, axis=0):
    a = np.moveaxis(np.asarray(a), axis, 0) if np.ndim(a) == 3 else np.asarray(a)[np.newaxis]
    assert a.shape == b.shape and a.dtype == b.dtype, (a.shape, a.dtype, b.shape, b.dtype)
    np.testing.assert_array_equal(np.ascontiguousarray(a).view(np.uint8), np.ascontiguousarray(b).view(np.uint8))


def stored(path):
    """Returns all bands as stored, without a mask."""
    from osgeo import gdal
    dataset = gdal.Open(str(path))
    values = dataset.ReadAsArray()
    return values if values.ndim == 3 else values[np.newaxis]


def tool(name, *words):
    return succeed(run("gdal_hsi_" + name, "-q", *words))


@pytest.fixture
def files(tmp_path):
    values = scene_values()
    write_scene(tmp_path / "scene.dat", values, geotransform=None, epsg=None, wavelengths=NM)
    write_scene(tmp_path / "labels.tif", labels()[np.newaxis], driver="GTiff", dtype="u1", geotransform=None, epsg=None)
    spectra = library(values)
    with open(tmp_path / "library.csv", "w") as file:
        file.write("wavelength,a,b,c,d\n")
        for b in range(BANDS):
            file.write(",".join("%.17g" % v for v in [NM[b], *spectra[:, b]]) + "\n")
    return tmp_path, values, hsi.Spectra(spectra, ["a", "b", "c", "d"], NM)


def files_named(folder, *names):
    return [str(folder / n) for n in names]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name, words, options", [
    ("spp", ["-ws", "5"], {"ws": 5}),
    ("spp", ["-ws", "7", "-tile", "16", "8"], {"ws": 7, "tile": (16, 8)}),
    ("pca", ["-nc", "5"], {"nc": 5}),
    ("pca", ["-nc", "16", "-scale", "-whiten"], {"nc": 16, "scale": True, "whiten": True}),
    ("mnf", ["-nc", "6"], {"nc": 6}),
    ("eadp", ["-nc", "3"], {"nc": 3}),
    ("profile", ["-nc", "2"], {"nc": 2}),
    ("profile", ["-nc", "2", "-kind", "eap"], {"nc": 2, "kind": "eap"}),
    ("detect", [], {}),
    ("detect", ["-window", "3", "9"], {"window": (3, 9)}),
    ("detect", ["-target-pixel", "10", "11", "-target-pixel", "20", "30", "-method", "ace"],
     {"target_pixel": [(10, 11), (20, 30)], "method": "ace"}),
    ("detect", ["-target-pixel", "10", "11", "-method", "sam"], {"target_pixel": (10, 11), "method": "sam"}),
    ("detect", ["-target-pixel", "10", "11", "-method", "cem", "-shrinkage", "auto"],
     {"target_pixel": [(10, 11)], "method": "cem", "shrinkage": "auto"}),
])
def test_cubes(files, name, words, options, threads):
    folder, values, _ = files
    tool(name, "-device", "cpu", "-threads", threads, *words, folder / "scene.dat", folder / "out.tif")
    expected = stored(folder / "out.tif")
    for _, array, axis in layouts(values):
        made = getattr(hsi, name)(array, band_axis=axis, wavelengths=NM, device="cpu", threads=threads, **options)
        same(made, expected, axis)


@pytest.mark.parametrize("dtype", ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8"])
@pytest.mark.parametrize("name, options", [("spp", {"ws": 5}), ("pca", {"nc": 4}), ("mnf", {"nc": 4}), ("detect", {})])
def test_types(tmp_path, name, options, dtype):
    values = (cube(SAMPLES, LINES, BANDS, scale=100.0).clip(-120, 120) if dtype in ("u1", "i1") else scene_values("f8"))
    values = np.nan_to_num(values)
    values = (np.abs(values) if dtype.startswith("u") else values).astype(dtype)
    write_typed(tmp_path / "scene.tif", values)
    tool(name, "-device", "cpu", *[w for k, v in options.items() for w in ("-" + k, v)], tmp_path / "scene.tif", tmp_path / "out.tif")
    expected = stored(tmp_path / "out.tif")
    for _, array, axis in layouts(values):
        same(getattr(hsi, name)(array, band_axis=axis, device="cpu", **options), expected, axis)


def write_typed(path, values):
    """GDAL before 3.7 has no signed bytes, so they are written as the next wider type, with equal values."""
    from osgeo import gdal
    wider = {"int8": np.int16}.get(values.dtype.name)
    if wider is not None:
        values = values.astype(wider)
    types = {"uint8": gdal.GDT_Byte, "uint16": gdal.GDT_UInt16, "int16": gdal.GDT_Int16, "uint32": gdal.GDT_UInt32,
             "int32": gdal.GDT_Int32, "uint64": 12, "int64": 13, "float32": gdal.GDT_Float32, "float64": gdal.GDT_Float64}
    bands, lines, samples = values.shape
    dataset = gdal.GetDriverByName("GTiff").Create(str(path), samples, lines, bands, types[values.dtype.name])
    for b in range(bands):
        dataset.GetRasterBand(b + 1).WriteArray(values[b])
    dataset.FlushCache()


@pytest.mark.parametrize("ot", ["Byte", "UInt16", "Int16", "UInt32", "Int32", "Float64"])
def test_types_of_results(files, ot):
    """Values are rounded and clamped as GDAL does, and missing values get the nodata value of files."""
    folder, values, _ = files
    values = values - 600  # negative values, and some that exceed a byte
    values[:, 20, 20] = np.nan
    write_scene(folder / "shifted.dat", values, geotransform=None, epsg=None)
    tool("spp", "-device", "cpu", "-ot", ot, folder / "shifted.dat", folder / "typed.tif")
    result = hsi.spp(values, ot=ot, device="cpu", full=True)
    same(result.dst, stored(folder / "typed.tif"))


@pytest.mark.parametrize("nodata", [-9999.0, 0.0, 1e30])
def test_nodata_and_masks(files, nodata):
    folder, values, _ = files
    values[:, 12, 20:30] = nodata
    values[4, 13, 20] = nodata
    write_scene(folder / "nodata.tif", values, driver="GTiff", nodata=nodata, geotransform=None, epsg=None)
    mask = np.ones((LINES, SAMPLES), bool)
    mask[:, :9] = False
    write_scene(folder / "mask.tif", mask[np.newaxis], driver="GTiff", dtype="u1", geotransform=None, epsg=None)
    for words, options in (([], {}), (["-mask", folder / "mask.tif"], {"mask": mask}),
                           (["-mask-exclude", folder / "mask.tif", "-mask-output"], {"mask_exclude": mask, "mask_output": True})):
        tool("pca", "-device", "cpu", "-nc", "4", *words, "-overwrite", folder / "nodata.tif", folder / "out.tif")
        for _, array, axis in layouts(values):
            same(hsi.pca(array, nc=4, nodata=nodata, band_axis=axis, device="cpu", **options), stored(folder / "out.tif"), axis)
    hidden = np.ma.MaskedArray(values, np.broadcast_to(values == nodata, values.shape))
    tool("spp", "-device", "cpu", folder / "nodata.tif", folder / "spp.tif")
    valid = ~np.any(hidden.mask, axis=0) & np.isfinite(values).all(axis=0) & (values != 0).any(axis=0)
    same(np.asarray(hsi.spp(hidden, device="cpu").data)[:, valid][:, :, np.newaxis],
         stored(folder / "spp.tif")[:, valid][:, :, np.newaxis])


def test_side_outputs(files):
    folder, values, _ = files
    tool("spp", "-device", "cpu", "-alpha", folder / "alpha.tif", "-rho", folder / "rho.tif", folder / "scene.dat", folder / "out.tif")
    y, alpha, rho = hsi.spp(values, alpha=True, rho=True, device="cpu")
    same(y, stored(folder / "out.tif"))
    same(alpha, stored(folder / "alpha.tif"))
    same(rho, stored(folder / "rho.tif"))


@pytest.mark.parametrize("name", ["pca", "mnf"])
def test_models(files, name):
    """Both the tool and the function apply a model of either, forward and back."""
    folder, values, _ = files
    tool(name, "-device", "cpu", "-nc", "4", "-model", folder / "m.json", folder / "scene.dat", folder / "c.tif")
    components, model = getattr(hsi, name)(values, nc=4, model=True, wavelengths=NM, device="cpu")
    same(components, stored(folder / "c.tif"))
    theirs, ours = json.loads((folder / "m.json").read_text()), model.document
    for key in set(theirs) - {"history", "source", "checksum"}:
        assert theirs[key] == ours[key], key
    model.save(folder / "ours.json")
    tool(name, "-device", "cpu", "-apply", folder / "ours.json", "-nc", "4", folder / "scene.dat", folder / "again.tif")
    same(components, stored(folder / "again.tif"))
    other = scene_values(seed=4)
    write_scene(folder / "other.dat", other, geotransform=None, epsg=None, wavelengths=NM)
    tool(name, "-device", "cpu", "-apply", folder / "m.json", "-nc", "3", folder / "other.dat", folder / "o.tif")
    applied = getattr(hsi, name)(other, apply=folder / "m.json", nc=3, wavelengths=NM, device="cpu")
    same(applied, stored(folder / "o.tif"))
    tool(name, "-device", "cpu", "-apply", folder / "m.json", "-inverse", folder / "o.tif", folder / "back.tif")
    same(getattr(hsi, name)(applied, apply=model, inverse=True, device="cpu"), stored(folder / "back.tif"))


@pytest.mark.parametrize("method", ["hfc", "nwhfc", "hysime"])
def test_vd(files, method):
    folder, values, _ = files
    told = json.loads(succeed(run("gdal_hsi_vd", "-json", "-method", method, folder / "scene.dat")).out)
    for _, array, axis in layouts(values):
        found = hsi.vd(array, method=method, band_axis=axis)
        assert {k: v for k, v in found.items() if k != "source"} == {k: v for k, v in told.items() if k != "source"}


def test_detection_of_a_library(files):
    folder, values, spectra = files
    tool("detect", "-device", "cpu", "-target", folder / "library.csv", "-map", folder / "map.tif", "-threshold", "0.2",
         "-background", folder / "labels.tif", folder / "scene.dat", folder / "out.tif")
    scores, best = hsi.detect(values, target=spectra, map=True, threshold=0.2, background=labels(), wavelengths=NM, device="cpu")
    same(scores, stored(folder / "out.tif"))
    same(best, stored(folder / "map.tif"))


def test_features_of_a_library(files):
    folder, values, spectra = files
    names = [str(n) for n in spectra.names[:2]]
    (folder / "features.csv").write_text("name,from_nm,to_nm,weight\n" + f"{names[0]},{NM[1]},{NM[-2]},\n{names[1]},{NM[0]},{NM[-1]},2\n")
    tool("detect", "-method", "sff", "-target", folder / "library.csv", "-spectrum", names[0], "-spectrum", names[1],
         "-features", folder / "features.csv", "-depth", folder / "depth.tif", folder / "scene.dat", folder / "out.tif")
    table = {"name": names, "from_nm": [NM[1], NM[0]], "to_nm": np.array([NM[-2], NM[-1]]), "weight": [None, 2]}
    scores, depth = hsi.detect(values, target=spectra, spectrum=names, method="sff", features=table, depth=True, wavelengths=NM)
    same(scores, stored(folder / "out.tif"))
    same(depth, stored(folder / "depth.tif"))
    with pytest.raises(hsi.Error, match="no column 'to_nm'"):
        hsi.detect(values, target=spectra, method="sff", features={"name": ["a"], "from_nm": [3]}, wavelengths=NM)
    with pytest.raises(hsi.UsageError, match="not a table"):
        hsi.detect(values, target=spectra, method="sff", features="features.csv", wavelengths=NM)


@pytest.mark.parametrize("method", ["fcls", "nnls", "ucls"])
def test_unmix(files, method):
    folder, values, spectra = files
    definition = hsi._library.algorithms()["unmix"]
    choices = [c["name"] for a in definition["arguments"] if a["name"] == "method" for c in a["choices"]]
    if method not in choices:
        method = choices[0]
    tool("unmix", "-device", "cpu", "-method", method, "-rmse", folder / "rmse.tif", folder / "scene.dat", folder / "library.csv",
         folder / "out.tif")
    abundances, rmse = hsi.unmix(values, spectra, method=method, rmse=True, wavelengths=NM, device="cpu")
    same(abundances, stored(folder / "out.tif"))
    same(rmse, stored(folder / "rmse.tif"))


def points(path):
    from osgeo import ogr
    source = ogr.Open(str(path))
    return [(f.GetField("line"), f.GetField("sample"), f.GetField("score")) for f in source.GetLayer(0)]


def test_atdca(files):
    folder, values, spectra = files
    tool("atdca", "-device", "cpu", "-t", "6", "-map", folder / "map.tif", "-spectra", folder / "s.csv", folder / "scene.dat", folder / "t.gpkg")
    targets, found, classes = hsi.atdca(values, t=6, spectra=True, map=True, wavelengths=NM, device="cpu")
    assert [(p["line"], p["sample"], p["score"]) for p in targets] == points(folder / "t.gpkg")
    same(classes, stored(folder / "map.tif"))
    for k, p in enumerate(targets):
        np.testing.assert_array_equal(found.spectra[k], values[:, p["line"], p["sample"]])


@pytest.mark.parametrize("method", ["nfindr", "vca"])
def test_endmembers(files, method):
    folder, values, _ = files
    tool("endmembers", "-method", method, "-t", "4", folder / "scene.dat", folder / "e.gpkg")
    found = hsi.endmembers(values, method=method, t=4)
    assert [(p["line"], p["sample"]) for p in found] == [p[:2] for p in points(folder / "e.gpkg")]


def test_svm(files):
    folder, values, _ = files
    tool("svm_train", "-C", "8", "-gamma", "0.5", "-probability", folder / "scene.dat", folder / "labels.tif", folder / "m.json")
    model = hsi.svm_train(values, labels(), C=8, gamma=0.5, probability=True, wavelengths=NM)
    theirs, ours = json.loads((folder / "m.json").read_text()), model.document
    for document in (theirs, ours):
        for key in ("labels", "scene"):
            document["training"].pop(key)
        document["features"].pop("names")  # GDAL names the bands of an ENVI file by their wavelengths
    for key in set(theirs) - {"history", "source", "checksum"}:
        assert theirs[key] == ours[key], key
    tool("svm_classify", "-device", "cpu", "-probabilities", folder / "p.tif", "-confidence", folder / "c.tif",
         folder / "scene.dat", folder / "m.json", folder / "map.tif")
    classes, probabilities, confidence = hsi.svm_classify(values, model, probabilities=True, confidence=True, wavelengths=NM,
                                                          device="cpu")
    same(classes, stored(folder / "map.tif"))
    same(probabilities, stored(folder / "p.tif"))
    same(confidence, stored(folder / "c.tif"))


def test_sahic(files):
    folder, values, _ = files
    tool("sahic", "-device", "cpu", "-model", folder / "m.json", "-probabilities", folder / "p.tif", folder / "scene.dat",
         folder / "labels.tif", folder / "map.tif")
    classes, probabilities, model = hsi.sahic(values, labels(), probabilities=True, model=True, wavelengths=NM, device="cpu")
    same(classes, stored(folder / "map.tif"))
    same(probabilities, stored(folder / "p.tif"))
    tool("sahic", "-device", "cpu", "-apply", folder / "m.json", folder / "scene.dat", "none", folder / "again.tif")
    same(hsi.sahic(values, None, apply=model, wavelengths=NM, device="cpu"), stored(folder / "again.tif"))


def test_regularize(files):
    folder, values, _ = files
    probabilities = np.abs(values[:3]) + 1
    probabilities /= probabilities.sum(axis=0)
    probabilities = probabilities.astype(np.float32)
    write_scene(folder / "p.dat", probabilities, geotransform=None, epsg=None)
    tool("regularize", "-device", "cpu", "-map", folder / "map.tif", "-scene", folder / "scene.dat", folder / "p.dat", folder / "out.tif")
    smooth, classes = hsi.regularize(probabilities, map=True, scene=values, device="cpu")
    same(smooth, stored(folder / "out.tif"))
    same(classes, stored(folder / "map.tif"))


def test_compare(files):
    folder, values, _ = files
    other = values + np.float32(0.5)
    write_scene(folder / "other.dat", other, geotransform=None, epsg=None, wavelengths=NM)
    told = json.loads(succeed(run("gdal_hsi_compare", "-json", folder / "scene.dat", folder / "other.dat")).out)
    found = hsi.compare(values, other)
    assert found["metrics"] == told["metrics"] if "metrics" in told else set(found) == set(told)
    strip = lambda d: json.loads(json.dumps(d).replace(str(folder / "scene.dat"), "src").replace(str(folder / "other.dat"), "other"))  # noqa: E731
    drop = lambda d: {k: v for k, v in strip(d).items() if k not in ("source", "first", "second", "src", "other", "files")}  # noqa: E731
    assert drop(found) == drop(told)


def test_accuracy(files):
    folder, values, _ = files
    truth = labels()
    guess = truth.copy()
    guess[5, 6:20] = 3
    write_scene(folder / "guess.tif", guess[np.newaxis], driver="GTiff", dtype="u1", geotransform=None, epsg=None)
    told = json.loads(succeed(run("gdal_hsi_accuracy", "-json", folder / "guess.tif", folder / "labels.tif")).out)
    found = hsi.accuracy(guess, truth)["accuracy"]
    for paths in (found, told):
        paths.pop("map", None), paths.pop("reference", None)
    assert found == told and found["overall_accuracy"]
    scores = values[:2].astype(np.float64)
    write_scene(folder / "scores.tif", scores, driver="GTiff", dtype="f8", geotransform=None, epsg=None)
    two = np.where(truth > 2, 0, truth)
    write_scene(folder / "two.tif", two[np.newaxis], driver="GTiff", dtype="u1", geotransform=None, epsg=None)
    told = json.loads(succeed(run("gdal_hsi_accuracy", "-scores", "-guard", "1", "-json", folder / "scores.tif", folder / "two.tif")).out)
    found = hsi.accuracy(scores, two, scores=True, guard=1)["accuracy"]
    for one in found["targets"] + told["targets"]:
        one.pop("name")
    assert found == told and 0 < found["pooled"]["auc"] < 1 and len(found["targets"]) == 2


def test_spectra(files):
    folder, values, _ = files
    tool("spectra", folder / "scene.dat", folder / "labels.tif", folder / "s.sli")
    found = hsi.spectra(values, labels(), wavelengths=NM)
    np.testing.assert_array_equal(found.spectra.ravel(), np.fromfile(folder / "s.sli", np.float32))
    np.testing.assert_allclose(found.wavelengths, NM)


def test_sample(files):
    folder, values, _ = files
    tool("sample", "-n", "9", "-seed", "5", folder / "labels.tif", folder / "train.tif", folder / "test.tif")
    train, test = hsi.sample(labels(), n=9, seed=5)
    same(train, stored(folder / "train.tif"))
    same(test, stored(folder / "test.tif"))
