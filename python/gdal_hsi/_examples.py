# SPDX-License-Identifier: MIT
"""The examples that help() and the manual show. A test runs each of them as a doctest."""

SCENE = '''\
>>> import numpy as np
>>> import gdal_hsi as hsi
>>> rng = np.random.default_rng(0)
>>> materials = rng.random((3, 30))                       # three spectra of 30 bands
>>> shares = rng.dirichlet([1, 1, 1], (40, 50))           # their shares in 40 lines x 50 samples
>>> x = np.moveaxis(shares @ materials, -1, 0) + rng.normal(0, 0.01, (30, 40, 50))
>>> labels = shares.argmax(axis=2) + 1                    # the most frequent material
>>> nm = np.linspace(450, 2350, 30)                       # wavelengths
'''

EXAMPLES = {
    "accuracy": '''\
>>> train, test = hsi.sample(labels, n=50, seed=1, min_distance=2)
>>> classes = hsi.svm_classify(x, hsi.svm_train(x, train, C=8, gamma=0.5))
>>> report = hsi.accuracy(classes, test)
>>> report["accuracy"]["overall_accuracy"]["value"] > 0.9
True
''',
    "atdca": '''\
>>> points, spectra = hsi.atdca(x, t=3, spectra=True)
>>> points.dtype.names[:3], spectra.spectra.shape
(('rank', 'line', 'sample'), (3, 30))
''',
    "cluster": '''\
>>> classes, centres = hsi.cluster(x, k=3, centres=True)
>>> classes.shape, int(classes.max()), centres.spectra.shape
((40, 50), 3, (3, 30))
''',
    "compare": '''\
>>> report = hsi.compare(x, hsi.spp(x, ws=3))
>>> 0 < report["metrics"]["rmse"]["mean"] < 0.2
True
''',
    "destripe": '''\
>>> stripes = rng.normal(0, 0.1, (30, 1, 50))
>>> y = hsi.destripe(x + stripes)
>>> bool(np.abs(y - x).mean() < 0.5 * np.abs(stripes).mean())
True
''',
    "detect": '''\
>>> scores = hsi.detect(x, target=materials[0], method="mf")
>>> line, sample = np.unravel_index(scores[0].argmax(), (40, 50))
>>> bool(shares[line, sample, 0] > 0.9)
True
>>> hsi.detect(x).shape                                   # without a target: anomalies by RX
(1, 40, 50)
''',
    "eadp": '''\
>>> hsi.eadp(x, nc=2, c=4).shape                          # two components, each with four diffused copies
(10, 40, 50)
''',
    "endmembers": '''\
>>> points, spectra = hsi.endmembers(x, t=3, spectra=True)
>>> bool(shares[points["line"], points["sample"]].max(axis=1).min() > 0.8)
True
''',
    "features": '''\
>>> nm = np.linspace(2000, 2400, 41)
>>> clay = 0.5 - 0.15 * np.exp(-((nm - 2206) / 35) ** 2)
>>> depth, position = hsi.features(clay[:, None, None], range="2080-2310nm", wavelengths=nm)[:2, 0, 0]
>>> round(float(depth), 2), round(float(position))
(0.3, 2206)
''',
    "gas": '''\
>>> absorption = -1e-5 * rng.random(30)                   # change of ln(radiance) per ppm m
>>> plume = np.zeros((40, 50))
>>> plume[10:14] = 5000                                   # ppm m
>>> radiance = (5 + x) * np.exp(np.multiply.outer(absorption, plume))
>>> enhancement = hsi.gas(radiance, method="mf", absorption=absorption, range="450-2350nm", wavelengths=nm,
...                       columns_per_group="all")
>>> bool(enhancement[0, 10:14].mean() > enhancement[0, 14:].max())
True
''',
    "identify": '''\
>>> nm = np.linspace(2000, 2400, 41)
>>> clay = 0.5 - 0.15 * np.exp(-((nm - 2206) / 35) ** 2)
>>> rules = {"format": "gdal_hsi_rules", "version": 1, "rules": [
...     {"name": "clay", "features": [{"windows": [2080, 2120, 2280, 2310]}], "limits": {"fit": [0.9, None]}}]}
>>> scene = np.stack([clay, np.full(41, 0.5)], axis=1)[:, None]     # one line of two samples
>>> hsi.identify(scene, rules, library=hsi.Spectra(clay, ["clay"], nm), wavelengths=nm).tolist()
[[1, 0]]
''',
    "index": '''\
>>> indices = hsi.index(x, name="NDVI", expr="ratio=r550/r670", tolerance=40, wavelengths=nm)
>>> indices.shape
(2, 40, 50)
''',
    "mnf": '''\
>>> components, model = hsi.mnf(x, nc=3, model=True)
>>> smooth = hsi.mnf(components, apply=model, inverse=True)         # the scene without noise
>>> components.shape, smooth.shape
((3, 40, 50), (30, 40, 50))
''',
    "noise": '''\
>>> found = hsi.noise(x)
>>> round(float(np.median(found["noise"])), 2)
0.01
''',
    "normalise": '''\
>>> geometry = np.zeros((10, 40, 50))                     # the bands of an OBS file
>>> geometry[1], geometry[2] = 90, np.linspace(0, 20, 50) # azimuth and zenith of the sensor, in degrees
>>> geometry[3], geometry[4] = 150, 35                    # of the sun
>>> y, model = hsi.normalise(x, geometry=geometry, topography="none", brdf="universal", wavelengths=nm, model=True)
>>> y.shape
(30, 40, 50)
''',
    "pca": '''\
>>> components, model = hsi.pca(x, nc=3, model=True)
>>> again = hsi.pca(x, apply=model)                       # the components of another scene by the same model
>>> components.shape, np.array_equal(components, again)
((3, 40, 50), True)
''',
    "profile": '''\
>>> hsi.profile(x, nc=2, attribute="area", thresholds="5,20").shape
(10, 40, 50)
''',
    "quicklook": '''\
>>> picture = hsi.quicklook(x, wavelengths=nm)            # for matplotlib's imshow()
>>> picture.shape, picture.dtype.name
((960, 1200, 3), 'uint8')
''',
    "reflect": '''\
>>> relative = hsi.reflect(x, method="iarr", wavelengths=nm)        # relative to the mean of the scene
>>> np.allclose(relative.mean(axis=(1, 2)), 1)
True
''',
    "regression_predict": '''\
>>> samples = np.where(rng.random((40, 50)) < 0.1, 1 + 3 * shares[..., 0], np.nan)
>>> model = hsi.regression_train(x, samples, members=5)
>>> estimate, deviation, outside = hsi.regression_predict(x, model)
>>> bool(np.abs(estimate - 1 - 3 * shares[..., 0]).mean() < 0.1)
True
''',
    "regression_train": '''\
>>> samples = np.where(rng.random((40, 50)) < 0.1, 1 + 3 * shares[..., 0], np.nan)
>>> model = hsi.regression_train(x, samples, members=5)
>>> model.document["metrics"]["r2"] > 0.9                 # of the held-out samples
True
''',
    "regularize": '''\
>>> probabilities = np.moveaxis(shares, -1, 0)
>>> smooth, classes = hsi.regularize(probabilities, map=True)
>>> smooth.shape, classes.shape
((3, 40, 50), (40, 50))
''',
    "resample": '''\
>>> camera = {"wavelength": [480, 560, 660, 830], "fwhm": [60, 40, 40, 100]}
>>> hsi.resample(x, bands=camera, wavelengths=nm).shape
(4, 40, 50)
''',
    "sahic": '''\
>>> train = np.where(rng.random((40, 50)) < 0.1, labels, 0)
>>> classes, probabilities = hsi.sahic(x, train, probabilities=True)
>>> classes.shape, probabilities.shape
((40, 50), (3, 40, 50))
''',
    "sample": '''\
>>> train, test = hsi.sample(labels, n=50, seed=1, min_distance=2)
>>> np.bincount(train.ravel())[1:].tolist()               # pixels per class
[50, 50, 50]
''',
    "smooth": '''\
>>> derivative = hsi.smooth(x, window=7, deriv=1, wavelengths=nm)
>>> normal = hsi.smooth(x, method="snv")
>>> derivative.shape, normal.shape
((30, 40, 50), (30, 40, 50))
''',
    "spectra": '''\
>>> means = hsi.spectra(x, labels, wavelengths=nm)
>>> np.allclose(means.spectra[0], x[:, labels == 1].mean(axis=1), atol=1e-5)
True
''',
    "spp": '''\
>>> smooth, alpha = hsi.spp(x, ws=5, alpha=True)
>>> smooth.shape, alpha.shape
((30, 40, 50), (40, 50))
''',
    "statistics": '''\
>>> both = hsi.statistics(x[:, :20]) + hsi.statistics(x[:, 20:])    # two scenes
>>> np.allclose(both.mean, x.mean(axis=(1, 2)), atol=1e-6)
True
>>> hsi.pca(x, nc=3, statistics=both).shape
(3, 40, 50)
''',
    "svm_classify": '''\
>>> train = np.where(rng.random((40, 50)) < 0.1, labels, 0)
>>> model = hsi.svm_train(x, train, C=8, gamma=0.5)
>>> classes = hsi.svm_classify(x, model)
>>> bool((classes == labels).mean() > 0.9)
True
''',
    "svm_train": '''\
>>> train = np.where(rng.random((40, 50)) < 0.1, labels, 0)         # 0: no label
>>> model = hsi.svm_train(x, train, C=8, gamma=0.5)
>>> model
<Model: gdal_hsi_svm, 30 bands, 3 classes>
''',
    "unmix": '''\
>>> abundances, rmse = hsi.unmix(x, materials, rmse=True)
>>> bool(np.abs(np.moveaxis(abundances, 0, -1) - shares).mean() < 0.01)
True
''',
    "vd": '''\
>>> hsi.vd(x, method="hysime")["virtual_dimensionality"]
3
''',
}


def example_of(name):
    """The example of a function with its scene; nothing for a function that has no example."""
    return SCENE + EXAMPLES[name] if name in EXAMPLES else ""
