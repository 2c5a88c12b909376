#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Resampling, continuum removal, matched filtering by columns and k-means in Spectral Python (and numpy): the reference
implementations for spectroscopy_whole_process, as whole processes.

    spectroscopy_peer.py resample|product|removed|columns|kmeans FILE SAMPLES LINES BANDS TABLE

FILE: band-sequential floats (an ENVI scene without its header). TABLE: JSON with wavelengths and fwhm (nm) of the scene,
to (the same of the bands to resample to) and target (a spectrum). The result goes to FILE.peer.
"""
import json
import pathlib
import sys

import numpy as np
import spectral


def main():
    task, path, samples, lines, bands, table = sys.argv[1:]
    samples, lines, bands = int(samples), int(lines), int(bands)
    table = json.loads(pathlib.Path(table).read_text())
    scene = np.fromfile(path, np.float32).reshape(bands, lines, samples)
    image = np.ascontiguousarray(scene.transpose(1, 2, 0))  # in the memory layout of Spectral Python
    if task in ("resample", "product"):
        resampler = spectral.BandResampler(table["wavelengths"], table["to"]["wavelengths"], table["fwhm"], table["to"]["fwhm"])
        spectra = image.reshape(-1, bands)
        if task == "resample":  # its function takes one spectrum
            found = np.array([resampler(x) for x in spectra], np.float32)
        else:  # numpy's product with its matrix
            found = spectra @ resampler.matrix.T.astype(np.float32)
    elif task == "removed":
        found = spectral.remove_continuum(image.astype(np.float64), np.array(table["wavelengths"]))
    elif task == "columns":
        target = np.array(table["target"])
        found = np.empty((lines, samples), np.float32)
        for s in range(samples):
            column = image[:, s:s + 1, :].astype(np.float64)
            stats = spectral.calc_stats(column)
            own = np.diag(np.diag(stats.cov))  # a column has few pixels, so it is shrunk as ours is
            stats.cov = 0.9 * stats.cov + 0.1 * own
            found[:, s] = np.ravel(spectral.matched_filter(column, target, stats))
    else:
        labels, _ = spectral.kmeans(image, 10, 20)
        found = labels.astype(np.uint8)
    np.asarray(found, np.uint8 if found.dtype == np.uint8 else np.float32).tofile(path + ".peer")


if __name__ == "__main__":
    main()
