# SPDX-License-Identifier: MIT
"""Runs every tool on one synthetic scene, and computes the SHA-256 of its outputs: the table of docs/same_bits.md.

    same_bits.py BIN            prints the table for the tools of that folder
    same_bits.py BIN --write    puts it into docs/same_bits.md

Rasters are raw ENVI files. Only their samples are hashed, so a header with another layout makes no difference. Of JSON
files, numbers and texts are hashed, without those that name the version and the command.
"""

import hashlib
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "same_bits.md"
APART = {"svm_train"}  # differs for the reason on the page
BEGIN, END = "<!-- table -->", "<!-- end of table -->"
# (tool, arguments, files that are hashed). "-" is the standard output, "~" a model whose numbers are rounded to six
# digits, also in the file. The order matters: later tools read outputs of earlier ones.
RUNS = [
    ("synth", "-size 157 61 45 -seed 5 -labels truth.dat scene.dat", "scene.dat truth.dat"),
    ("info", "-json scene.dat", "-"),
    ("vd", "-json scene.dat", "-"),
    ("vd", "-json -method nwhfc scene.dat", "-"),
    ("vd", "-json -method hysime scene.dat", "-"),
    ("statistics", "scene.dat -o all.json", "all.json"),
    ("spp", "-alpha alpha.dat -rho rho.dat scene.dat spp.dat", "spp.dat alpha.dat rho.dat"),
    ("pca", "-nc 9 -model pca.json scene.dat pca.dat", "pca.dat pca.json"),
    ("mnf", "-nc 9 -model mnf.json scene.dat mnf.dat", "mnf.dat mnf.json"),
    ("eadp", "-nc 3 -c 2 scene.dat eadp.dat", "eadp.dat"),
    ("eadp", "-nc 2 -c 2 -scheme exact -precision double scene.dat exact.dat", "exact.dat"),
    ("atdca", "-t 6 -spectra osp.csv -map osp.dat -scores osp_scores.dat scene.dat osp.geojson",
     "osp.csv osp.dat osp_scores.dat"),
    ("atdca", "-t 6 -method gs -spectra gs.csv -map gs.dat scene.dat gs.geojson", "gs.csv gs.dat"),
    *((("detect"), f"-method {method} -target-pixel 7 9 -target-pixel 60 50 scene.dat {method}.dat", f"{method}.dat")
      for method in ("sam", "sid", "mf", "cem", "ace")),
    ("detect", "-method rx scene.dat rx.dat", "rx.dat"),
    ("detect", "-method mf -target-pixel 7 9 -background-by columns scene.dat columns.dat", "columns.dat"),
    ("detect", "-method mtmf -target-pixel 7 9 -nc 9 scene.dat mtmf.dat", "mtmf.dat"),
    ("detect", "-method sff -target osp.csv -range 450-1300nm -range 1.5-2.4um scene.dat sff.dat", "sff.dat"),
    ("detect", "-window 3 11 -srcwin 20 30 60 21 scene.dat local.dat", "local.dat"),
    ("endmembers", "-t 5 -method nfindr -spectra nfindr.csv scene.dat nfindr.geojson", "nfindr.csv"),
    ("endmembers", "-t 5 -method vca -spectra vca.csv scene.dat vca.geojson", "vca.csv"),
    ("detect", "-method sam -target osp.csv nfindr.csv angles.csv", "angles.csv"),
    ("unmix", "-method fcls scene.dat osp.csv fcls.dat", "fcls.dat"),
    ("unmix", "-method nnls scene.dat osp.csv nnls.dat", "nnls.dat"),
    ("cluster", "-k 5 -centres centres.csv scene.dat euclidean.dat", "euclidean.dat centres.csv"),
    ("cluster", "-k 5 -distance angle scene.dat angle.dat", "angle.dat"),
    ("compare", "-json -metric nrmse,maxsde,sad,rmse,maxabs,ssim -map apart.dat scene.dat spp.dat", "apart.dat -"),
    ("features", "-range 450-1300nm scene.dat features.dat", "features.dat"),
    ("identify", "-scores identify_scores.dat -areas identify.csv scene.dat rules.json identify.dat",
     "identify.dat identify_scores.dat identify.csv"),
    ("index", "-tolerance 30 -expr (r500-r900)/sqrt(r1000) -expr edge(r[500:1200]) -expr ln(r700)+tanh(b5)^1.5 scene.dat index.dat",
     "index.dat"),
    ("regression_train", "-block 20 -members 3 -cv 4 -max-components 6 -transform snv -srcwin 0 0 60 40 scene.dat alpha.dat traits.json",
     "~traits.json"),
    ("regression_predict", "scene.dat traits.json traits.dat", "traits.dat"),
    ("resample", "-bands bands.csv scene.dat resampled.dat", "resampled.dat"),
    ("destripe", "-method ratio scene.dat destriped.dat", "destriped.dat"),
    ("noise", "-json -method ssdc -block 4 scene.dat", "-"),
    ("synth", "-size 40 30 60 -seed 6 hills.dat", "hills.dat"),
    ("normalise", "-topography cosine -brdf none -angle solar_zenith=40 -angle solar_azimuth=150 -angle slope=10 -angle aspect=170 "
     "hills.dat normal.dat", "normal.dat"),
    ("reflect", "-method log-residual scene.dat residual.dat", "residual.dat"),
    ("reflect", "-method iarr scene.dat iarr.dat", "iarr.dat"),
    ("smooth", "-deriv 1 scene.dat slope.dat", "slope.dat"),
    ("smooth", "-method whittaker scene.dat whittaker.dat", "whittaker.dat"),
    ("smooth", "-method msc scene.dat msc.dat", "msc.dat"),
    ("smooth", "-method absorbance -scale 0.001 scene.dat absorbance.dat", "absorbance.dat"),
    ("spectra", "scene.dat truth.dat spectra.csv", "spectra.csv"),
    ("sample", "-n 12 -seed 1 truth.dat train.dat test.dat", "train.dat test.dat"),
    ("svm_classify", "-probabilities svm_p.dat scene.dat svm.json svm.dat", "svm.dat svm_p.dat"),
    ("accuracy", "-csv accuracy.csv svm.dat test.dat", "accuracy.csv"),
    ("sahic", "-iterations 20 -model paper.json scene.dat train.dat paper.dat", "paper.dat ~paper.json"),
    ("sahic", "-iterations 20 -tv anisotropic -lorsal-solver optimum -model optimum.json scene.dat train.dat best.dat",
     "best.dat ~optimum.json"),
    ("sahic", "-iterations 20 -apply paper.json -probabilities again_p.dat scene.dat train.dat again.dat", "again.dat again_p.dat"),
    ("regularize", "-iterations 20 -scene scene.dat -map smooth_map.dat svm_p.dat smooth.dat", "smooth.dat smooth_map.dat"),
    *((("profile"), f"-nc 2 -kind {kind} scene.dat {kind}.dat", f"{kind}.dat") for kind in ("emp", "emap", "emep")),
    ("gas", "-columns-per-group 4 -output enhancement,sensitivity,albedo -absorption gas.csv scene.dat gas.dat", "gas.dat"),
    ("quicklook", "-of PNM scene.dat look.ppm", "look.ppm"),
    ("orthorectify", "-glt glt.dat scene.dat ortho.dat", "ortho.dat"),
    ("pipeline", "read scene.dat ! pca -nc 4 ! spp ! write chain.dat", "chain.dat"),
]
DEVICES = {"spp", "pca", "mnf", "eadp", "atdca", "detect", "svm_classify", "sahic", "regularize", "profile"}
UNCOUNTED = {"version", "command", "created", "software", "created_by", "history", "modified", "checksum", "gdal", "date", "seconds", "libsvm", "file", "path"}


def plain(value):
    """Returns a JSON document without the members that describe the run."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items() if key not in UNCOUNTED}
    if isinstance(value, list):
        return [plain(one) for one in value]
    return value


def rounded(value):
    """Returns a JSON document whose numbers have six digits, without its checksum, which covers all digits."""
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items() if key != "checksum"}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return float(f"{value:.5e}") if isinstance(value, float) else value


def digest(data):
    try:
        data = json.dumps(plain(json.loads(data)), sort_keys=True).encode()
    except ValueError:
        pass  # samples, tables
    return hashlib.sha256(data).hexdigest()


def prepare(folder):
    """Makes the inputs that no tool writes."""
    # Written by gdal_hsi_svm_train on this scene with -b 5 -b 15 -b 25 -b 35 -C 32 -gamma 0.5 -probability.
    shutil.copy(pathlib.Path(__file__).with_name("same_bits_svm.json"), folder / "svm.json")
    (folder / "bands.csv").write_text("name,wavelength,fwhm\n" + "".join(
        f"b{k},{500 + 90 * k},{40 + k}\n" for k in range(20)))
    (folder / "gas.csv").write_text("wavelength (nm),CH4\n" + "".join(
        f"{2000 + 10 * k},{-1e-6 * (1 + k * k % 17)}\n" for k in range(56)))
    lab = range(400, 2501, 10)
    (folder / "lab.csv").write_text("wavelength,one,two,three\n" + "".join(
        f"{w}," + ",".join(str(1 - 40000 / (80000 + (w - centre) ** 2)) for centre in (700, 1250, 1900)) + "\n" for w in lab))
    windows = [[450, 520, 900, 1000], [900, 1000, 1500, 1600], [1500, 1600, 2200, 2400]]
    (folder / "rules.json").write_text(json.dumps({"format": "gdal_hsi_rules", "version": 1, "library": "lab.csv", "rules": [
        {"name": name, "features": [{"windows": w, "role": "optional"} for w in windows]} for name in ("one", "two", "three")]}))
    # A lookup table: the source of each pixel of a rotated grid.
    samples = [1 + (x * 3 + y) % 157 for y in range(70) for x in range(100)]
    lines = [1 + (y * 2 + x) % 61 for y in range(70) for x in range(100)]
    for y in range(5, 9):
        samples[100 * y + 7] = lines[100 * y + 7] = 0
    (folder / "glt.dat").write_bytes(struct.pack("<14000i", *samples, *lines))
    (folder / "glt.hdr").write_text(
        "ENVI\nsamples = 100\nlines = 70\nbands = 2\nheader offset = 0\nfile type = ENVI Standard\ndata type = 3\n"
        "interleave = bsq\nbyte order = 0\nmap info = {UTM, 1, 1, 500000, 4480000, 20, 20, 33, North, WGS-84, units=Meters}\n")


def hashes(bin_folder, folder, environment=None):
    """Returns [(tool, command, file, SHA-256)] of all runs in an empty folder."""
    prepare(folder)
    bin_folder = pathlib.Path(bin_folder).resolve()
    rows = []
    for tool, arguments, files in RUNS:
        words = arguments.split()
        command = [str(bin_folder / ("gdal_hsi_" + tool)), *words]
        if tool in DEVICES:
            command[1:1] = ["-device", "cpu"]
        result = subprocess.run(command, cwd=folder, env=environment, capture_output=True)
        if result.returncode != 0:
            raise AssertionError(f"gdal_hsi_{tool} {arguments}: exit code {result.returncode}\n{result.stderr.decode()}")
        for file in files.split():
            if file.startswith("~"):
                file = file[1:]
                (folder / file).write_text(json.dumps(rounded(json.loads((folder / file).read_text()))))
            data = result.stdout if file == "-" else (folder / file).read_bytes()
            rows.append((tool, arguments, "(printed)" if file == "-" else file, digest(data)))
    return rows


def table(rows):
    text = "| tool | file | SHA-256 |\n| --- | --- | --- |\n"
    return text + "".join(f"| {tool} | {file} | `{value}` |\n" for tool, _, file, value in rows)


def recorded(text=None):
    """Returns [(tool, file, SHA-256)] from the page."""
    text = PAGE.read_text(encoding="utf-8") if text is None else text
    rows = text[text.index(BEGIN) + len(BEGIN):text.index(END)].strip().splitlines()[2:]
    return [tuple(cell.strip().strip("`") for cell in row.strip("|").split("|")) for row in rows]


def main(bin_folder, write):
    with tempfile.TemporaryDirectory() as folder:
        text = table(hashes(pathlib.Path(bin_folder).resolve(), pathlib.Path(folder), os.environ))
    if write:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(page[:page.index(BEGIN) + len(BEGIN)] + "\n" + text + page[page.index(END):], encoding="utf-8")
    else:
        print(text, end="")


if __name__ == "__main__":
    main(sys.argv[1], "--write" in sys.argv)
