# SPDX-License-Identifier: MIT
"""HyTools for normalise_whole_process, in a separate process without Ray: one scene with all its pixels.

  normalise_peer.py SCENE OBS OUT ZENITH EDGE...     OUT: Float32, band by band; ZENITH: solar, degrees; edges of bins of NDVI
Prints seconds, without the start, and writes its coefficients, OUT.topo.json and OUT.brdf.json.
"""
import json
import sys
import time

import numpy as np
import hytools
from hytools.brdf.flex import calc_flex_single
from hytools.masks import mask_create
from hytools.topo import calc_topo_coeffs_single

scene, obs, out = sys.argv[1:4]
zenith, *edges = map(float, sys.argv[4:])
begin = time.perf_counter()
image = hytools.HyTools()
names = ("path_length", "sensor_az", "sensor_zn", "solar_az", "solar_zn", "phase", "slope", "aspect", "cosine_i", "utc_time")
image.read_file(scene, "envi", anc_path={name: [obs, k] for k, name in enumerate(names)})
image.load_data()
ndvi = ["ndi", {"band_1": 850, "band_2": 660, "min": np.nextafter(edges[0], 1), "max": edges[-1]}]
lit = ["ancillary", {"name": "cosine_i", "min": 0.12, "max": 1}]
steep = ["ancillary", {"name": "slope", "min": np.radians(5), "max": np.pi / 2}]
topo = {"type": "scs+c", "c_fit_type": "nnls", "calc_mask": [ndvi, lit, steep], "apply_mask": [ndvi, lit]}
image.topo = topo
calc_topo_coeffs_single(image, topo)
image.brdf = {"type": "flex", "geometric": "li_dense_r", "volume": "ross_thick", "b/r": 2.5, "h/b": 2, "sample_perc": 1.0, "bin_type": "user",
              "bins": list(map(list, zip(edges, edges[1:]))), "interp_kind": "linear", "apply_mask": [ndvi],
              "solar_zn_norm_radians": float(np.radians(zenith))}
image.gen_mask(mask_create, "calc_brdf", [ndvi, lit])
calc_flex_single(image, image.brdf)
image.corrections.append("brdf")
# HyTools corrects lines; its own writer processes them one by one.
result = np.empty((image.bands, image.lines, image.columns), np.float32)
for y in range(image.lines):
    result[:, y] = image.get_line(y, corrections=image.corrections).T
result.tofile(out)
print(f"{time.perf_counter() - begin:.2f}")
for name, coefficients in (("topo", image.topo), ("brdf", image.brdf)):
    with open(f"{out}.{name}.json", "w") as file:
        json.dump(coefficients, file)
