# SPDX-License-Identifier: MIT
"""The steps that gdal_HSI gives to VRTProcessedDataset, which GDAL has from 3.9 on: against the tools' own rasters.
Skipped with an older GDAL, unless HSI_EXPECT_STEPS is set (scripts/test_gdal310 does)."""

import concurrent.futures
import os
import pathlib

import numpy as np
import pytest
from osgeo import gdal

from conftest import BIN, cube, real_scene, run, succeed, write_scene

PLUGINS = pathlib.Path(os.environ.get("HSI_PLUGIN_DIR", BIN.parent / "lib" / "gdalplugins"))
os.environ["GDAL_DRIVER_PATH"] = str(PLUGINS)
gdal.SetConfigOption("GDAL_DRIVER_PATH", str(PLUGINS))
gdal.AllRegister()

HAS_STEPS = int(gdal.VersionInfo("VERSION_NUM")) >= 3090000
if not HAS_STEPS and not os.environ.get("HSI_EXPECT_STEPS"):
    pytest.skip(f"GDAL {gdal.VersionInfo('RELEASE_NAME')} has no VRTProcessedDataset (3.9 and newer): "
                "scripts/test_gdal310 tests these steps", allow_module_level=True)


def values(path, *args, **kwargs):
    data = gdal.Open(str(path)).ReadAsArray(*args, **kwargs).astype(np.float64)
    return data if data.ndim == 3 else data[None]


def processed(path, scene, step, **arguments):
    given = "".join(f"<Argument name='{key}'>{value}</Argument>" for key, value in arguments.items())
    path.write_text(f"<VRTDataset subClass='VRTProcessedDataset'><Input><SourceFilename relativeToVRT='1'>{scene}"
                    f"</SourceFilename></Input><ProcessingSteps><Step><Algorithm>{step}</Algorithm>{given}</Step>"
                    "</ProcessingSteps></VRTDataset>")
    return path


BANDS = 12


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A scene with holes, its models, and what the tools make of it."""
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
    """Values with NaN where there is none: a tool's nodata is -99 here, a step's NaN."""
    data = values(path)
    nodata = gdal.Open(str(path)).GetRasterBand(1).GetNoDataValue()
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
    vrt = processed(folder / "step.vrt", "scene.img", step, **arguments)
    expected = raster(folder / wanted)
    result = values(vrt)
    assert result.shape == expected.shape
    np.testing.assert_array_equal(np.isnan(result), np.isnan(expected))
    np.testing.assert_allclose(result, expected, rtol=2e-6, atol=2e-6 * np.nanmax(np.abs(expected)))
    np.testing.assert_array_equal(values(vrt, 13, 7, 40, 31), result[:, 7:38, 13:53])
    assert gdal.Open(str(vrt)).GetRasterBand(1).DataType == gdal.GDT_Float32
    with concurrent.futures.ThreadPoolExecutor(4) as pool:  # a handle each
        for x in pool.map(lambda _: values(vrt), range(8)):
            np.testing.assert_array_equal(x, result)


def test_first_components(folder):
    vrt = processed(folder / "two.vrt", "scene.img", "HSI_PCA", model="pca.json", components=2)
    np.testing.assert_array_equal(values(vrt), values(processed(folder / "all.vrt", "scene.img", "HSI_PCA",
                                                                model="pca.json"))[:2])


def test_steps_after_one_another(folder):
    """The second step gets what the first one gives; the components' angle to a vector."""
    vrt = folder / "chain.vrt"
    vrt.write_text("<VRTDataset subClass='VRTProcessedDataset'><Input><SourceFilename relativeToVRT='1'>scene.img"
                   "</SourceFilename></Input><ProcessingSteps>"
                   "<Step><Algorithm>HSI_PCA</Algorithm><Argument name='model'>pca.json</Argument></Step>"
                   "<Step><Algorithm>HSI_SAD</Algorithm><Argument name='spectra'>1 2 3 4 5</Argument></Step>"
                   "</ProcessingSteps></VRTDataset>")
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
        values(processed(folder / "wrong.vrt", "scene.img", step, **arguments))
    for word in words:
        assert word in str(caught.value), str(caught.value)


def test_real_scene(tmp_path):
    scene = real_scene("indian_pines/indian_pines.img")
    succeed(run("gdal_hsi_pca", "-q", "-nc", "6", "-model", tmp_path / "pca.json", scene, tmp_path / "pcs.tif"))
    result = values(processed(tmp_path / "a.vrt", scene, "HSI_PCA", model="pca.json"))
    expected = values(tmp_path / "pcs.tif")
    np.testing.assert_allclose(result, expected, rtol=2e-6, atol=2e-6 * np.abs(expected).max())
