#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The reference implementations for regression_whole_process, as whole processes.

    regression_peer.py train TABLE        scikit-learn's PLSR: 10 folds of 1 to 20 components (one fit per fold), then 100 models
                                          of 80 % of the rows; prints its time without imports
    regression_peer.py predict FILE BANDS LINES SAMPLES MODEL
                                          evaluates all members of a model by NumPy, mean and standard deviation, line by line

TABLE: CSV of a value and a spectrum per row. FILE: band-sequential floats; the result goes to FILE.peer.
"""
import json
import sys
import time

import numpy as np


def train(path):
    from sklearn.cross_decomposition import PLSRegression
    from sklearn.model_selection import KFold
    begin = time.perf_counter()
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    y, x = table[:, 0], table[:, 1:]
    errors = np.zeros(20)
    for learned, held_out in KFold(10, shuffle=True, random_state=1).split(x):
        pls = PLSRegression(20, scale=False).fit(x[learned], y[learned])
        scores = (x[held_out] - x[learned].mean(0)) @ pls.x_rotations_
        estimates = np.cumsum(scores * pls.y_loadings_[0], axis=1) + y[learned].mean()
        errors += ((estimates - y[held_out, None]) ** 2).sum(0)
    components = int(errors.argmin()) + 1
    rng = np.random.default_rng(1)
    members = []
    for _ in range(100):
        rows = rng.permutation(len(y))[:int(0.8 * len(y))]
        pls = PLSRegression(components, scale=False).fit(x[rows], y[rows])
        members.append(pls.coef_.ravel())
    print(f"{components} components, {time.perf_counter() - begin:.3f} s")
    return np.array(members)


def predict(path, bands, lines, samples, model):
    linear = json.load(open(model))["linear"]
    coefficients, intercepts = np.array(linear["coefficients"]).T, np.array(linear["intercepts"])
    scene = np.memmap(path, np.float32, "r", shape=(bands, lines, samples))
    out = np.memmap(path + ".peer", np.float32, "w+", shape=(2, lines, samples))
    for line in range(0, lines, 16):
        x = scene[:, line:line + 16].reshape(bands, -1).T
        each = x @ coefficients + intercepts
        out[0, line:line + 16] = each.mean(1).reshape(-1, samples)
        out[1, line:line + 16] = each.std(1, ddof=1).reshape(-1, samples)


if __name__ == "__main__":
    if sys.argv[1] == "train":
        train(sys.argv[2])
    else:
        predict(sys.argv[2], *map(int, sys.argv[3:6]), sys.argv[6])
