# SPDX-License-Identifier: MIT
"""The scene and the table of simulated radiances on which gdal_hsi_gas is compared with PyPI's mag1c 1.2.0 and
fastmag1c 0.1.0. Their results are in gas_witness.json next to this file. Both need torch (5 GB), so the tests only read
the results.

    gas_witness.py --write    computes the numbers anew; needs: pip install mag1c fastmag1c torch spectral numba
"""

import json
import pathlib
import sys
import tempfile

import numpy as np

NUMBERS = pathlib.Path(__file__).with_suffix(".json")
NM = np.linspace(2125, 2480, 14)
FWHM = np.full(14, 28.0)
CONCENTRATIONS = [0, 500, 1000, 2000, 4000, 8000, 16000]  # from mag1c
SHRINKAGE = 1e-4


def table():
    """Returns wavelengths, and spectra by concentration, in closed form, so they do not depend on a random number
    generator."""
    nm = np.arange(2080, 2530, 0.5)
    k = -1e-5 * (0.15 + np.exp(-((nm - 2310) / 35) ** 2) + 1.4 * np.exp(-((nm - 2370) / 22) ** 2)) * (1 + 0.8 * np.cos(nm * 0.9))
    return nm, np.stack([(4 + np.sin(nm / 37)) * np.exp(k * c) for c in CONCENTRATIONS])


def absorption():
    """Returns the absorption per ppm m at NM."""
    return -1e-5 * (0.2 + np.exp(-((NM - 2310) / 35) ** 2) + 1.4 * np.exp(-((NM - 2370) / 22) ** 2))


def noise(seed, shape):
    """Returns noise with a standard deviation of 1, approximately normal."""
    i = np.arange(int(np.prod(shape)), dtype=np.uint64).reshape(shape)
    parts = []
    for k in range(1, 5):
        v = (i + np.uint64(seed * 1000003 + 1)) * np.uint64(6364136223846793005 + 2 * k) + np.uint64(k)
        v ^= v >> np.uint64(29)
        v *= np.uint64(0xBF58476D1CE4E5B9)
        v ^= v >> np.uint64(32)
        parts.append((v >> np.uint64(11)).astype(float) / 2.0**53)
    return (sum(parts) - 2) * np.sqrt(3)


def scene():
    """Returns bands x lines x samples, Float32: surfaces, gains by column, a plume."""
    lines, samples = 70, 4
    y, x = np.arange(lines)[None, :, None], np.arange(samples)[None, None]
    shape = 1 + 0.2 * np.sin(NM / 45)[:, None, None] * np.cos(y / 5 + x) + 0.1 * np.cos(NM / 70)[:, None, None] * np.sin(y / 3)
    light = (1 + 0.3 * np.sin(y / 7 + x / 2)) * (1 + 0.02 * noise(1, (NM.size, 1, samples)))
    amount = np.where((y >= 30) & (y < 42) & (x < 3), 2500 * np.exp(-((y - 36) / 4.0) ** 2), 0)
    cube = shape * light * np.exp(absorption()[:, None, None] * amount)
    return (cube * (1 + 0.003 * noise(2, cube.shape))).astype(np.float32)


def compute():
    import fastmag1c.filters
    import mag1c.mag1c as program
    import spectral.io.envi
    import torch

    torch.cholesky = torch.linalg.cholesky  # mag1c calls a function that no longer exists
    kept = program.torch.cholesky
    program.torch.cholesky = lambda c, upper=False: kept(c)
    x = torch.as_tensor(scene().transpose(2, 1, 0).astype(float))  # columns x pixels x bands
    template = torch.as_tensor(absorption() * 1e5)
    all_count = torch.ones((1, x.shape[1]), dtype=torch.bool)
    result = {}
    for name, albedo, sparse, iterations, alpha in (("mag1c", False, False, 30, 0.0), ("mag1c_shrunk", False, False, 5, SHRINKAGE),
                                                    ("mag1c_no_albedo", True, False, 30, 0.0), ("mag1c_no_sparsity", False, True, 30, 0.0)):
        columns = [program.acrwl1mf(x[c:c + 1], template, iterations, albedo, False, sparse, 1.0, alpha, all_count) for c in range(x.shape[0])]
        result[name] = torch.cat([mf for mf, _ in columns])[..., 0].T
        if name == "mag1c":
            result["albedo"] = torch.cat([r for _, r in columns])[..., 0].T
    result["fastmag1c"] = fastmag1c.filters.fastmag1c(x, template, alpha=SHRINKAGE)[0][..., 0].T
    result = {name: [[float(f"{v:.9g}") for v in line] for line in values.tolist()] for name, values in result.items()}
    nm, spectra = table()
    with tempfile.TemporaryDirectory() as folder:
        spectral.io.envi.save_image(folder + "/ch4.hdr", spectra.T[None].transpose(0, 2, 1), ext=".lut", interleave="bsq", dtype=np.float64,
                                    metadata={"wavelength": [repr(v) for v in nm.tolist()]})
        program.__file__ = folder + "/mag1c.py"
        result["absorption"] = [float(f"{v:.9g}") for v in program.generate_template_from_bands(NM, FWHM)[:, 1] / 1e5]
    return result


if __name__ == "__main__":
    assert sys.argv[1:] == ["--write"], __doc__
    NUMBERS.write_text("{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(values)}" for name, values in compute().items()) + "\n}\n")
