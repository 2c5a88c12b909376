# SPDX-License-Identifier: MIT
"""Runs PyPI's fastmag1c and mag1c on the scene of gas_whole_process, in memory and in double precision. Prints as JSON
the seconds without reading, and the greatest difference from ours.dat in 99.99 % of the results."""
import json
import sys
import time

import numpy as np
import torch
from fastmag1c import filters, retrieve

lines, samples = map(int, sys.argv[1:])
scene = np.memmap("scene.img", "<f4", "r").reshape(lines, -1, samples)
table = np.genfromtxt("ch4.csv", delimiter=",", skip_header=1)
used = (table[:, 0] >= 2122) & (table[:, 0] <= 2485) & (table[:, 1] < 0)
cube = torch.as_tensor(np.ascontiguousarray(scene[:, used].transpose(0, 2, 1))).double()
ours = np.fromfile("ours.dat", "<f4").reshape(lines, samples)
found = {}
for name in ("fastmag1c", "mag1c"):
    words = {"template": table[used, 1] * 1e5, "method": name, "device": "cpu", "dtype": torch.float64, "alpha": 0.0}
    retrieve(cube[:, :8], **words)  # starts the libraries
    begin, processor = time.perf_counter(), time.process_time()
    result = retrieve(cube, **words)
    found[name] = {"seconds": time.perf_counter() - begin, "processor": time.process_time() - processor,
                   "apart": float(np.quantile(np.abs(result - ours), 0.9999))}
assert filters.EPS == 1e-9
print(json.dumps(found))
