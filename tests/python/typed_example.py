# SPDX-License-Identifier: MIT
"""A user's script that mypy --strict checks: each result has a type other than Any."""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import gdal_hsi as hsi


def components(x: NDArray[np.float32]) -> tuple[NDArray[np.float32], hsi.Model]:
    scores = hsi.pca(x, nc=3)
    print(scores.dtype, scores.mean())
    again, model = hsi.pca(x, nc=3, model=True)
    result = hsi.pca(x, nc=3, model=True)
    same: NDArray[np.float32] = result.dst
    print(np.array_equal(again, same), result.warnings)
    return again, model


def abundances(x: NDArray[np.float32], library: hsi.Spectra) -> float:
    names: list[str] = library.names
    result = hsi.unmix(x, library, rmse=True)
    print(names, result.dst.shape)
    return float(result.rmse.max())


def classes(x: NDArray[np.float32], labels: NDArray[np.uint8]) -> int:
    model = hsi.svm_train(x, labels, C=8, gamma=0.5)
    found = hsi.svm_classify(x, model)
    return int(found.max())


def estimators(pixels: NDArray[np.float32], y: NDArray[np.int64]) -> NDArray[np.float64]:
    reduced = hsi.PCA(3).fit(pixels).transform(pixels)
    machine = hsi.SVM(C=8.0, gamma=0.5, probability=True).fit(reduced, y)
    return machine.predict_proba(reduced)


def regressions(pixels: NDArray[np.float32], y: NDArray[np.float64], plots: NDArray[np.int64]) -> NDArray[np.float64]:
    plsr = hsi.PLSR(steps="snv").fit(pixels, y, groups=plots)
    value, deviation = plsr.predict(pixels, return_std=True)
    print(plsr.metrics_["r2"], deviation.mean(), int(plsr.outside(pixels).max()))
    hsi.regression_train(pixels.T[:, None], y[None], transform=["snv", "d1:7"], members=0).save("model.json")
    return hsi.SVR(C=[1.0, 8.0], steps=["snv"]).fit(pixels, y).predict(pixels) - value


def files() -> str:
    path = hsi.pca("scene.tif", nc=3, out="components.tif")
    facts = hsi.info(path)
    print(facts["bands"])
    try:
        return hsi.run("spp", "scene.tif", "out.tif", ws=7)
    except hsi.MissingFile as error:
        return error.advice
    except hsi.UsageError as error:
        return error.message


def dimension(x: NDArray[np.float32]) -> object:
    return hsi.vd(x)["virtual_dimensionality"]


def endmembers(x: NDArray[np.float32]) -> list[str]:
    points, found = hsi.endmembers(x, t=4, spectra=True)
    number: int = len(points["line"]) + len(found.to_dataframe())
    return found.names[:number]


def spectra(x: NDArray[np.float32], labels: NDArray[np.uint8]) -> hsi.Spectra:
    means = hsi.spectra(x, labels)
    means.save("means.csv")
    return hsi.Spectra({"grass": means["grass"], "soil": means[1]}, wavelengths=means.wavelengths)
