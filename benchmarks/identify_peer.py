# SPDX-License-Identifier: MIT
"""CRAMM for identify_whole_process, in a separate process, in double precision: in single precision, equal fits are
decided at random.

  identify_peer.py make FOLDER XSIZE YSIZE     scene.dat: mixtures of three spectra, of any brightness, with noise; references.sli
  identify_peer.py classify FOLDER THREADS     labels.npy: the number of the rule, 0 without a rule; unused.txt: rules that CRAMM
                                               does not use, since a window of one of their features has no band; prints seconds
"""
import pathlib
import sys
import time

import numpy as np
from cramm.classifier import MicaClassifier

# EMIT's bands without the bands that its products mark (water vapour), um.
BANDS = np.linspace(0.381, 2.4936, 285)
GOOD = np.flatnonzero(~((BANDS > 1.325) & (BANDS < 1.435)) & ~((BANDS > 1.77) & (BANDS < 1.965)))
WL, FWHM = BANDS[GOOD], np.full(len(GOOD), 0.0088)


def header(path, samples, lines, bands, more):
    nm = ", ".join(f"{1000 * w:.6f}" for w in WL)
    path.with_suffix(".hdr").write_text(
        f"ENVI\nsamples = {samples}\nlines = {lines}\nbands = {bands}\ndata type = {more}\nbyte order = 0\nwavelength units = Nanometers\n"
        f"wavelength = {{{nm}}}\nfwhm = {{{', '.join(['8.8'] * len(WL))}}}\n")


def make(folder, samples, lines):
    spectra = MicaClassifier.from_paths().get_resample(WL, FWHM)
    table = np.array(list(spectra.values()))
    table.astype("<f8").tofile(folder / "references.sli")
    header(folder / "references.sli", len(WL), len(table), 1,
           "5\nfile type = ENVI Spectral Library\ninterleave = bsq\nspectra names = {" + ", ".join(spectra) + "}")
    for row in table:  # this value precedes the values of a spectrum
        there = np.flatnonzero(np.isfinite(row))
        row[:] = np.interp(np.arange(len(row)), there, row[there])
    rng = np.random.default_rng(1)
    with open(folder / "scene.dat", "wb") as file:
        for _ in range(lines):
            share = rng.dirichlet([0.6] * 3, samples)
            line = np.einsum("pk,pkb->pb", share, table[rng.integers(0, len(table), (samples, 3))])
            line *= rng.uniform(0.5, 1.2, (samples, 1))
            line += rng.normal(0, 1, line.shape) * 10 ** rng.uniform(-4, -2, (samples, 1))
            line.T.astype("<f4").tofile(file)
    header(folder / "scene.dat", samples, lines, len(WL), "4\ninterleave = bil")


def classify(folder, threads):
    text = (folder / "scene.hdr").read_text()
    samples, lines = (int(text.split(f"\n{key} = ")[1].split("\n")[0]) for key in ("samples", "lines"))
    cube = np.fromfile(folder / "scene.dat", "<f4").reshape(lines, len(WL), samples).transpose(0, 2, 1).astype(float, order="C")
    begin = time.perf_counter()
    notes = []
    result = MicaClassifier.from_paths().classify(cube, WL, WL, FWHM, np.arange(len(WL)), n_workers=threads, log_callback=notes.append)
    print(f"{time.perf_counter() - begin:.2f}")
    (folder / "unused.txt").write_text("".join(name + "\n" for name in sorted({note.split(":")[0] for note in notes})))
    np.save(folder / "labels.npy", np.where(result.fit.reshape(lines, samples) > 0, result.num.reshape(lines, samples).astype(int) + 1, 0))


if __name__ == "__main__":
    sizes = [int(word) for word in sys.argv[3:]]
    {"make": make, "classify": classify}[sys.argv[1]](pathlib.Path(sys.argv[2]), *sizes)
