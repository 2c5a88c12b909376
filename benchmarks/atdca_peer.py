#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""ATGP/ATDCA-OSP as it is usually written with numpy, and with PyTorch if it and a GPU are available: the reference
implementations for gdal_hsi_atdca and atdca_cuda_bench.

    atdca_peer.py FILE SAMPLES LINES BANDS TARGETS [numpy|torch ...]

FILE: band-sequential floats (an ENVI scene without its header). Prints seconds (for torch without reading) and the
targets as line,sample.
"""
import sys
import time

import numpy as np


def explicit_projector(x, targets):
    """x: bands x pixels. Applies P = I - U U^+ to every pixel."""
    bands = x.shape[0]
    found = [int((x * x).sum(0).argmax())]
    while len(found) < targets:
        u = x[:, found].astype(np.float64)
        projector = (np.eye(bands) - u @ np.linalg.pinv(u)).astype(x.dtype)
        v = projector @ x
        found.append(int((v * v).sum(0).argmax()))
    return found


def recursive(x, targets):
    """Updates ||x||^2 - sum (q.x)^2 with one product with a vector per target."""
    import torch

    score = (x * x).sum(0)
    basis = []
    found = []
    while True:
        at = score.argmax()
        found.append(at)
        if len(found) == targets:
            return [int(i) for i in found]
        r = x[:, at].double()
        for _ in range(2):
            for q in basis:
                r = r - (q @ r) * q
        q = r / torch.linalg.norm(r)
        basis.append(q)
        score = score - (q.to(x.dtype) @ x) ** 2


def main():
    path, samples, lines, bands, targets = sys.argv[1], *map(int, sys.argv[2:6])
    which = sys.argv[6:] or ["numpy", "torch"]

    def show(name, seconds, found):
        print(f"{name}: {1e3 * seconds:.3f} ms, targets", " ".join(f"{i // samples},{i % samples}" for i in found))

    if "numpy" in which:
        begin = time.perf_counter()
        x = np.fromfile(path, np.float32).reshape(bands, lines * samples)
        found = explicit_projector(x, targets)
        show("numpy, explicit projector, with reading", time.perf_counter() - begin, found)
    if "torch" in which:
        try:
            import torch
        except ImportError:
            print("torch: not installed")
            return
        if not torch.cuda.is_available():
            print("torch: no GPU")
            return
        x = torch.from_numpy(np.fromfile(path, np.float32).reshape(bands, lines * samples)).cuda()
        times = []
        for _ in range(8):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            found = recursive(x, targets)
            torch.cuda.synchronize()
            times.append(time.perf_counter() - begin)
        show("torch, cube on the GPU", sorted(times)[len(times) // 2], found)


main()
