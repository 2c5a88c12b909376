# SPDX-License-Identifier: MIT
"""The steps that gdal_HSI gives to VRTProcessedDataset (GDAL 3.9 and newer), compared with the tools' rasters. Skipped
with an older GDAL, unless HSI_EXPECT_STEPS is set (scripts/test_distribution sets it where GDAL has the steps)."""

import concurrent.futures
import os
import re

import numpy as np
import pytest
from osgeo import gdal

from conftest import PLUGINS, ROOT, cube, open_band, real_scene, run, succeed, write_scene

os.environ["GDAL_DRIVER_PATH"] = str(PLUGINS)
gdal.SetConfigOption("GDAL_DRIVER_PATH", str(PLUGINS))
gdal.AllRegister()

HAS_STEPS = int(gdal.VersionInfo("VERSION_NUM")) >= 3090000
if not HAS_STEPS and not os.environ.get("HSI_EXPECT_STEPS"):
    pytest.skip(f"GDAL {gdal.VersionInfo('RELEASE_NAME')} has no VRTProcessedDataset (3.9 and newer): "
                "scripts/test_distribution trixie tests these steps", allow_module_level=True)


def values(path, *args, **kwargs):
    data = gdal.Open(str(path)).ReadAsArray(*args, **kwargs).astype(np.float64)
    return data if data.ndim == 3 else data[None]


def processed(path, scene, *steps, bands, kind="Float32", nodata="nan"):
    """Makes a VRT. steps: (name, {argument: value}); bands: of the result, which a VRT must list."""
    listed = "".join(f"<VRTRasterBand dataType='{kind}' band='{b + 1}' subClass='VRTProcessedRasterBand'>"
                     f"<NoDataValue>{nodata}</NoDataValue></VRTRasterBand>" for b in range(bands))
    chain = "".join(f"<Step><Algorithm>{name}</Algorithm>" + "".join(
        f"<Argument name='{key}'>{value}</Argument>" for key, value in arguments.items()) + "</Step>"
        for name, arguments in steps)
    path.write_text(f"<VRTDataset subClass='VRTProcessedDataset'>{listed}<Input><SourceFilename relativeToVRT='1'>{scene}"
                    f"</SourceFilename></Input><ProcessingSteps>{chain}</ProcessingSteps></VRTDataset>")
    return path


BANDS = 12


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Makes a scene with holes, its models, and the tools' results."""
    place = tmp_path_factory.mktemp("steps")
    data = cube(samples=70, lines=60, bands=BANDS)
    data[:, 20:30, 10:25] = -99
    data[3, 5, 5] = -99  # one band is enough
    data[:, 40, 40] = 0
    scene = write_scene(place / "scene.img", data, dtype="f4", nodata=-99)
    field = (np.arange(60)[:, None] // 7 + np.arange(70)[None, :] // 5) % 5 % 3 + 1
    field[np.indices(field.shape).sum(axis=0) % 11 != 0] = 0
    labels = write_scene(place / "labels.tif", field[None], driver="GTiff", dtype="u1", nodata=0)
    succeed(run("gdal_hsi_pca", "-q", "-nc", "5", "-model", place / "pca.json", scene, place / "pcs.tif"))
    succeed(run("gdal_hsi_svm_train", "-q", "-C", "8", "-gamma", "0.5", "-probability", scene, labels, place / "svm.json"))
    succeed(run("gdal_hsi_svm_classify", "-q", "-device", "cpu", "-probabilities", place / "svm_p.tif", "-confidence",
                place / "svm_c.tif", scene, place / "svm.json", place / "svm.tif"))
    succeed(run("gdal_hsi_sahic", "-q", "-device", "cpu", "-no-spatial", "-model", place / "mlr.json", "-probabilities",
                place / "mlr_p.tif", "-confidence", place / "mlr_c.tif", scene, labels, place / "mlr.tif"))
    succeed(run("gdal_hsi_atdca", "-q", "-device", "cpu", "-t", "3", "-spectra", place / "targets.sli", "-map", place / "map.tif",
                "-max-angle", "15", "-score-kind", "angle", "-scores", place / "scores.tif", scene, place / "targets.gpkg"))
    return place


def raster(path):
    """Returns values, with NaN if missing: a tool's nodata is -99 here, a step's nodata is NaN."""
    data = values(path)
    nodata = open_band(path).GetNoDataValue()
    if nodata is not None and nodata != 0:
        data[data == nodata] = np.nan
    return data


@pytest.mark.parametrize("step, arguments, wanted", [
    ("HSI_PCA", {"model": "pca.json"}, "pcs.tif"),
    ("HSI_SVM", {"model": "svm.json"}, "svm.tif"),
    ("HSI_SVM", {"model": "svm.json", "output": "probabilities"}, "svm_p.tif"),
    ("HSI_SVM", {"model": "svm.json", "output": "confidence"}, "svm_c.tif"),
    ("HSI_MLR", {"model": "mlr.json"}, "mlr.tif"),
    ("HSI_MLR", {"model": "mlr.json", "output": "probabilities"}, "mlr_p.tif"),
    ("HSI_MLR", {"model": "mlr.json", "output": "confidence"}, "mlr_c.tif"),
    ("HSI_SAD", {"library": "targets.sli"}, "scores.tif"),
    ("HSI_SAD", {"library": "targets.sli", "output": "class", "max_angle": "15"}, "map.tif"),
], ids=lambda v: v if isinstance(v, str) else v.get("output", "") if isinstance(v, dict) else None)
def test_step_equals_the_tool(step, arguments, wanted, folder):
    expected = raster(folder / wanted)
    classes = arguments.get("output", "class" if step in ("HSI_SVM", "HSI_MLR") else "") == "class"
    vrt = processed(folder / "step.vrt", "scene.img", (step, arguments), bands=len(expected),
                    **({"kind": "Byte", "nodata": 0} if classes else {}))
    result = values(vrt)
    assert result.shape == expected.shape
    np.testing.assert_array_equal(np.isnan(result), np.isnan(expected))
    np.testing.assert_allclose(result, expected, rtol=2e-6, atol=2e-6 * np.nanmax(np.abs(expected)))
    np.testing.assert_array_equal(values(vrt, 13, 7, 40, 31), result[:, 7:38, 13:53])
    with concurrent.futures.ThreadPoolExecutor(4) as pool:  # one handle per thread
        for x in pool.map(lambda _: values(vrt), range(8)):
            np.testing.assert_array_equal(x, result)


EXAMPLES = re.findall(r"<!-- step: (\S+) -->\n```xml\n(.*?)```", (ROOT / "docs" / "pixel_functions.md").read_text(), re.S)


@pytest.mark.parametrize("name, xml", EXAMPLES, ids=[name for name, _ in EXAMPLES])
def test_example(name, xml, folder):
    path = folder / f"example_{name}.vrt"
    path.write_text(xml)
    wanted = {"HSI_PCA": "pcs.tif", "HSI_MLR": "mlr.tif", "HSI_SAD": "scores.tif"}[name]
    result = values(path)
    expected = raster(folder / wanted)[:len(result)]
    np.testing.assert_allclose(result, expected, rtol=2e-6, atol=2e-6 * np.nanmax(np.abs(expected)))


def test_examples_are_there():
    assert [name for name, _ in EXAMPLES] == ["HSI_PCA", "HSI_MLR", "HSI_SAD"]


def test_first_components(folder):
    few, all_of_them = ("HSI_PCA", {"model": "pca.json", "components": 2}), ("HSI_PCA", {"model": "pca.json"})
    np.testing.assert_array_equal(values(processed(folder / "two.vrt", "scene.img", few, bands=2)),
                                  values(processed(folder / "all.vrt", "scene.img", all_of_them, bands=5))[:2])
    with pytest.raises(RuntimeError, match="gives 2 bands, but the VRT has 3"):
        values(processed(folder / "three.vrt", "scene.img", few, bands=3))


def test_nodata_of_the_result(folder):
    step = ("HSI_SAD", {"library": "targets.sli"})
    expected = raster(folder / "scores.tif")
    expected[np.isnan(expected)] = -5
    result = values(processed(folder / "five.vrt", "scene.img", step, bands=3, nodata=-5))
    np.testing.assert_array_equal(result == -5, expected == -5)
    assert (expected == -5).any()


def test_steps_after_one_another(folder):
    """The second step gets the result of the first; the angle of the components to a vector."""
    vrt = processed(folder / "chain.vrt", "scene.img", ("HSI_PCA", {"model": "pca.json"}),
                    ("HSI_SAD", {"spectra": "1 2 3 4 5"}), bands=1)
    x = raster(folder / "pcs.tif")
    reference = np.array([1, 2, 3, 4, 5.0])
    cosine = np.tensordot(reference, x, 1) / np.sqrt((x ** 2).sum(axis=0)) / np.linalg.norm(reference)
    np.testing.assert_allclose(values(vrt)[0], np.degrees(np.arccos(cosine)), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("step, arguments, words", [
    ("HSI_PCA", {}, ["'model'", "missing"]),
    ("HSI_PCA", {"model": "pca.json", "components": "99"}, ["'components'", "99"]),
    ("HSI_PCA", {"model": "pca.json", "colour": "red"}, ["colour"]),
    ("HSI_SVM", {"model": "pca.json"}, ["pca.json"]),
    ("HSI_MLR", {"model": "absent.json"}, ["absent.json"]),
    ("HSI_MLR", {"model": "mlr.json", "output": "x"}, ["'output'"]),
    ("HSI_SAD", {"spectra": "1 2 3"}, ["3 values", "12 sources"]),
])
def test_wrong_arguments_are_named(step, arguments, words, folder):
    with pytest.raises(RuntimeError) as caught:
        values(processed(folder / "wrong.vrt", "scene.img", (step, arguments), bands=1))
    for word in words:
        assert word in str(caught.value), str(caught.value)


def test_real_scene(tmp_path):
    scene = real_scene("indian_pines/indian_pines.img")
    succeed(run("gdal_hsi_pca", "-q", "-nc", "6", "-model", tmp_path / "pca.json", scene, tmp_path / "pcs.tif"))
    result = values(processed(tmp_path / "a.vrt", scene, ("HSI_PCA", {"model": "pca.json"}), bands=6))
    expected = values(tmp_path / "pcs.tif")
    np.testing.assert_allclose(result, expected, rtol=2e-6, atol=2e-6 * np.abs(expected).max())
