# SPDX-License-Identifier: MIT
"""Every tool with every type of output on a tiny scene, and functions that compare whole folders.

A Job is one command line with named outputs ("slots") and the list of all files that it reads. The tests of this folder
run jobs in a copy of one folder of files, with special output locations, faults or signals.

HSI_FAULTS_ALL=1 runs every case instead of a sample.
"""

import atexit
import concurrent.futures
import csv
import dataclasses
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

import numpy as np
import pytest
from osgeo import gdal, ogr, osr

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from suite import BIN, PATIENCE, Result, cube, run_words, snapshot, wait_for, write_utm_scene as write_scene  # noqa: E402

ogr.UseExceptions()
ALL = os.environ.get("HSI_FAULTS_ALL", "") not in ("", "0")
WORKERS = 2

# The VRTs of the material contain pixel functions. Two threads make runs similar on every machine.
ENVIRONMENT = dict(os.environ, GDAL_DRIVER_PATH=str(BIN.parent / "lib" / "gdalplugins"), OMP_NUM_THREADS="1",
                   OPENBLAS_NUM_THREADS="1")
ENVIRONMENT.pop("GDAL_PAM_PROXY_DIR", None)


@dataclasses.dataclass(frozen=True)
class Job:
    name: str
    tool: str
    args: tuple  # texts; "{slot}" is replaced by an output; ("-option", "{slot}") stays together
    outputs: dict  # slot: the file that it names
    inputs: tuple = ()
    overwrite: bool = True  # true if the tool has -overwrite
    devices: bool = True  # true if the tool has -device
    prints: bool = False  # true if it prints its product
    threads: bool = True

    def command(self, names=None, overwrite=False, slots=None, extra=()):
        """Returns the arguments, with other names for some slots. slots: those that are given (default: all). An output
        that is an argument instead of an option is always given."""
        given = dict(self.outputs)
        given.update(names or {})
        args = [str(BIN / self.tool), *extra]
        if self.devices:
            args += ["-device", "cpu"]
        if self.threads:
            args += ["-threads", "2"]
        if overwrite and self.overwrite:
            args.append("-overwrite")
        for part in self.args:
            if isinstance(part, tuple):
                slot = part[1][1:-1]
                if slots is None or slot in slots:
                    args += [part[0], str(given[slot])]
            elif part.startswith("{"):
                args.append(str(given[part[1:-1]]))
            else:
                args.append(part)
        return args

    def optional(self, slot):
        return any(isinstance(part, tuple) and part[1] == "{" + slot + "}" for part in self.args)


SCENE = ("s.img", "s.hdr", "s.img.aux.xml")
LABELS = ("labels.tif", "labels.tif.aux.xml")
SHAPES = ("fields.shp", "fields.shx", "fields.dbf", "fields.prj")
REPORT = ("-report", "{report}")

JOBS = [
    Job("pca", "gdal_hsi_pca", ("-nc", "2", ("-model", "{model}"), REPORT, "s.img", "{dst}"),
        {"model": "new.json", "dst": "o.tif", "report": "run.json"}, SCENE),
    Job("mnf", "gdal_hsi_mnf", ("-nc", "2", ("-model", "{model}"), REPORT, "s.img", "{dst}"),
        {"model": "new.json", "dst": "o.tif", "report": "run.json"}, SCENE, devices=False),
    Job("pca_apply", "gdal_hsi_pca", ("--optfile", "options.txt", REPORT, "s.img", "{dst}"),
        {"dst": "o.tif", "report": "run.json"}, SCENE + ("pca.json", "options.txt")),
    Job("pca_vrt", "gdal_hsi_pca", ("-nc", "2", "-of", "VRT", ("-model", "{model}"), REPORT, "s.img", "{dst}"),
        {"model": "new.json", "dst": "o.vrt", "report": "run.json"}, SCENE),
    Job("spp", "gdal_hsi_spp", ("-ws", "3", ("-alpha", "{alpha}"), ("-rho", "{rho}"), REPORT, "s.img", "{dst}"),
        {"alpha": "alpha.tif", "rho": "rho.tif", "dst": "o.tif", "report": "run.json"}, SCENE),
    Job("spp_item", "gdal_hsi_spp",
        ("-ws", "3", ("-stac", "{stac}"), "-stac-datetime", "2022-08-28", REPORT, "s.img", "{dst}"),
        {"stac": "item.json", "dst": "o.tif", "report": "run.json"}, SCENE),
    Job("spp_envi", "gdal_hsi_spp", ("-ws", "3", "-of", "ENVI", ("-alpha", "{alpha}"), "layers.vrt", "{dst}"),
        {"alpha": "alpha.dat", "dst": "o.dat"}, SCENE + ("layers.vrt",)),
    Job("eadp", "gdal_hsi_eadp", ("-nc", "2", "-c", "2", REPORT, "layers.vrt", "{dst}"),
        {"dst": "o.tif", "report": "run.json"}, SCENE + ("layers.vrt",)),
    Job("profile", "gdal_hsi_profile", ("-nc", "2", REPORT, "layers.vrt", "{dst}"),
        {"dst": "o.tif", "report": "run.json"}, SCENE + ("layers.vrt",)),
    Job("regularize", "gdal_hsi_regularize",
        ("-iterations", "3", "-scene", "s.img", "-labels", "labels.tif", ("-map", "{map}"), REPORT, "shares.tif",
         "{dst}"),
        {"map": "map_of.tif", "dst": "o.tif", "report": "run.json"}, SCENE + LABELS + ("shares.tif",)),
    Job("orthorectify", "gdal_hsi_orthorectify", ("-glt", "glt.tif", REPORT, "layers.vrt", "{dst}"),
        {"dst": "o.tif", "report": "run.json"}, SCENE + ("layers.vrt", "glt.tif"), devices=False),
    Job("quicklook", "gdal_hsi_quicklook", ("-beside", "layers.vrt", REPORT, "s.img", "{dst}"),
        {"dst": "o.png", "report": "run.json"}, SCENE + ("layers.vrt",), devices=False),
    Job("quicklook_page", "gdal_hsi_quicklook", ("-frame", "-points", "labels.tif", REPORT, "s.img", "{dst}"),
        {"dst": "o.pdf", "report": "run.json"}, SCENE + LABELS, devices=False),
    Job("atdca", "gdal_hsi_atdca",
        ("-t", "3", "-original", "s.img", ("-spectra", "{spectra}"), ("-map", "{map}"), ("-scores", "{scores}"),
         "-reference", "library.sli", REPORT, "y.tif", "{dst}"),
        {"spectra": "targets.sli", "map": "near.tif", "scores": "scores.tif", "dst": "o.gpkg", "report": "run.json"},
        SCENE + ("y.tif", "library.sli", "library.hdr"), prints=True),
    Job("atdca_texts", "gdal_hsi_atdca",
        ("-t", "3", ("-spectra", "{spectra}"), ("-map", "{map}"), "-reference", "library.csv", "y.tif", "{dst}"),
        {"spectra": "targets.csv", "map": "near.vrt", "dst": "o.geojson"}, ("y.tif", "library.csv"), prints=True),
    Job("endmembers", "gdal_hsi_endmembers",
        ("-t", "3", "-residual", ("-spectra", "{spectra}"), REPORT, "s.img", "{dst}"),
        {"spectra": "targets.sli", "dst": "o.gpkg", "report": "run.json"}, SCENE, devices=False, prints=True),
    Job("cluster", "gdal_hsi_cluster", ("-k", "3", "-iterations", "5", ("-centres", "{centres}"), REPORT, "s.img", "{dst}"),
        {"centres": "centres.csv", "dst": "o.tif", "report": "run.json"}, SCENE, prints=True),
    Job("statistics", "gdal_hsi_statistics", (REPORT, "s.img", "-o", "{dst}"), {"dst": "o.stat", "report": "run.json"}, SCENE,
        devices=False),
    # Outputs that have their final names, and grow, during the run.
    Job("follow", "gdal_hsi_detect",
        ("-follow", "1", "-statistics", "s.stat", "-target", "library.sli", "-threshold", "0.5", ("-map", "{map}"), REPORT, "line.bil",
         "{dst}"),
        {"map": "best.dat", "dst": "o.bil", "report": "run.json"}, ("line.bil", "line.hdr", "s.stat", "library.sli", "library.hdr")),
    Job("follow_statistics", "gdal_hsi_statistics", ("-follow", "1", REPORT, "line.bil", "-o", "{dst}"),
        {"dst": "o.stat", "report": "run.json"}, ("line.bil", "line.hdr"), devices=False),
    Job("draws", "gdal_hsi_unmix",
        ("-draws", "3", "-uncertainty", "s.img", "-classes", "classes.csv", ("-deviation", "{deviation}"), REPORT, "s.img",
         "library.sli", "{dst}"),
        {"deviation": "deviation.tif", "dst": "o.tif", "report": "run.json"}, SCENE + ("library.sli", "library.hdr", "classes.csv")),
    Job("resample", "gdal_hsi_resample", ("-bands", "bands.csv", REPORT, "s.img", "{dst}"),
        {"dst": "o.tif", "report": "run.json"}, SCENE + ("bands.csv",), devices=False),
    Job("index", "gdal_hsi_index", ("-expr", "r530/r600", REPORT, "s.img", "{dst}"),
        {"dst": "o.tif", "report": "run.json"}, SCENE, devices=False),
    Job("gas", "gdal_hsi_gas",
        ("-range", "440-660nm", "-absorption", "absorption.csv", "-columns-per-group", "4", "-plume-threshold", "1", "-min-pixels", "1",
         ("-save-absorption", "{used}"), ("-plumes", "{plumes}"), ("-plume-map", "{map}"), REPORT, "s.img", "{dst}"),
        {"used": "used.csv", "plumes": "plumes.gpkg", "map": "plumes.tif", "dst": "o.tif", "report": "run.json"},
        SCENE + ("absorption.csv",)),
    Job("noise", "gdal_hsi_noise", ("-method", "residual", "-block", "4", ("-csv", "{csv}"), REPORT, "s.img"),
        {"csv": "noise.csv", "report": "run.json"}, SCENE, devices=False, prints=True),
    Job("reflect", "gdal_hsi_reflect", ("-method", "iarr", ("-coefficients", "{csv}"), REPORT, "s.img", "{dst}"),
        {"csv": "line.csv", "dst": "o.tif", "report": "run.json"}, SCENE, devices=False),
    Job("normalise", "gdal_hsi_normalise",
        ("-geometry", "angles.tif", "-ndvi", "-1", "1", "-bins", "2", "-min-pixels", "10", ("-model", "{model}"), ("-angles", "{angles}"),
         REPORT, "plants.img", "{dst}"),
        {"model": "lines.json", "angles": "used.tif", "dst": "o.tif", "report": "run.json"}, ("plants.img", "plants.hdr", "angles.tif"),
        devices=False),
    Job("smooth", "gdal_hsi_smooth", ("-method", "msc", REPORT, "s.img", "{dst}"),
        {"dst": "o.tif", "report": "run.json"}, SCENE, devices=False),
    Job("identify", "gdal_hsi_identify", (("-scores", "{scores}"), ("-areas", "{areas}"), "-library", "library.sli", REPORT, "s.img", "rules.json", "{dst}"),
        {"scores": "scores.tif", "areas": "areas.csv", "dst": "o.tif", "report": "run.json"},
        SCENE + ("library.sli", "library.hdr", "rules.json"), devices=False),
    Job("features", "gdal_hsi_features", ("-range", "440-660nm", REPORT, "s.img", "{dst}"),
        {"dst": "o.tif", "report": "run.json"}, SCENE),
    Job("detect_columns", "gdal_hsi_detect",
        ("-method", "mf", "-target", "library.sli", "-background-by", "columns", "-columns-per-group", "3", "-exclude-share", "0.1",
         "-threshold", "90%", ("-map", "{map}"), REPORT, "s.img", "{dst}"),
        {"map": "best.tif", "dst": "o.tif", "report": "run.json"}, SCENE + ("library.sli", "library.hdr")),
    Job("detect_features", "gdal_hsi_detect",
        ("-method", "sff", "-target", "library.sli", "-features", "features.csv", "-threshold", "50%", ("-map", "{map}"),
         ("-depth", "{depth}"), REPORT, "s.img", "{dst}"),
        {"map": "best.tif", "depth": "depth.tif", "dst": "o.tif", "report": "run.json"},
        SCENE + ("library.sli", "library.hdr", "features.csv")),
    Job("detect_tuned", "gdal_hsi_detect",
        ("-method", "mtmf", "-target", "library.sli", "-nc", "3", "-threshold", "0.1", "-max-infeasibility", "2", ("-map", "{map}"),
         REPORT, "s.img", "{dst}"),
        {"map": "best.tif", "dst": "o.tif", "report": "run.json"}, SCENE + ("library.sli", "library.hdr")),
    Job("detect_tuned_model", "gdal_hsi_detect",
        ("-method", "mtmf", "-target", "library.sli", "-mnf-model", "mnf.json", REPORT, "s.img", "{dst}"),
        {"dst": "o.tif", "report": "run.json"}, SCENE + ("library.sli", "library.hdr", "mnf.json")),
    Job("detect_library", "gdal_hsi_detect", ("-method", "sam", "-target", "library.sli", REPORT, "library.csv", "{dst}"),
        {"dst": "o.csv", "report": "run.json"}, ("library.csv", "library.sli", "library.hdr")),
    Job("endmembers_original", "gdal_hsi_endmembers",
        ("-t", "3", "-original", "s.img", ("-spectra", "{spectra}"), REPORT, "y.tif", "{dst}"),
        {"spectra": "targets.sli", "dst": "o.gpkg", "report": "run.json"}, SCENE + ("y.tif",), devices=False),
    Job("endmembers_range", "gdal_hsi_endmembers", ("-t", "2-4", ("-plot", "{plot}"), REPORT, "s.img", "{dst}"),
        {"plot": "number.svg", "dst": "o.gpkg", "report": "run.json"}, SCENE, devices=False, prints=True),
    Job("detect", "gdal_hsi_detect",
        ("-target", "library.sli", "-background", "labels.tif", "-shrinkage", "auto", "-false-alarms", "0.2",
         ("-map", "{map}"), REPORT, "s.img", "{dst}"),
        {"map": "best.tif", "dst": "o.tif", "report": "run.json"}, SCENE + LABELS + ("library.sli", "library.hdr"),
        devices=False),
    Job("spectra", "gdal_hsi_spectra", (REPORT, "s.img", "labels.tif", "{dst}"),
        {"dst": "o.sli", "report": "run.json"}, SCENE + LABELS, devices=False),
    Job("vd", "gdal_hsi_vd", (REPORT, "components.vrt"), {"report": "run.json"}, SCENE + ("components.vrt",),
        overwrite=False, devices=False, prints=True),
    Job("sample", "gdal_hsi_sample", ("-n", "5", "-like", "s.img", REPORT, "labels.tif", "{dst}", "{dst_test}"),
        {"dst": "o.tif", "dst_test": "test.tif", "report": "run.json"}, SCENE + LABELS, devices=False, threads=False),
    Job("sample_cover", "gdal_hsi_sample",
        ("-n", "5", "-min-cover", "0.5", "-like", "s.img", "-field", "class", ("-cover", "{cover}"), ("-groups", "{groups}"), REPORT,
         "fields.shp", "{dst}", "{dst_test}"),
        {"cover": "cover.tif", "groups": "groups.tif", "dst": "o.tif", "dst_test": "test.tif", "report": "run.json"}, SCENE + SHAPES,
        devices=False, threads=False),
    Job("svm_train", "gdal_hsi_svm_train",
        ("-C", "8", "-gamma", "1", ("-libsvm", "{libsvm}"), REPORT, "-field", "class", "s.img", "fields.shp",
         "{model}"),
        {"libsvm": "new.svm", "model": "new.json", "report": "run.json"}, SCENE + SHAPES, devices=False),
    Job("svm_classify", "gdal_hsi_svm_classify",
        (("-probabilities", "{probabilities}"), ("-confidence", "{confidence}"), REPORT, "s.img", "svm.json",
         "{dst}"),
        {"probabilities": "p.tif", "confidence": "c.tif", "dst": "o.tif", "report": "run.json"},
        SCENE + ("svm.json",)),
    Job("svm_vrt", "gdal_hsi_svm_classify", (REPORT, "s.img", "svm.json", "{dst}"),
        {"dst": "o.vrt", "report": "run.json"}, SCENE + ("svm.json",)),
    Job("sahic", "gdal_hsi_sahic",
        ("-iterations", "3", ("-probabilities", "{probabilities}"), ("-confidence", "{confidence}"),
         ("-model", "{model}"), REPORT, "s.img", "labels.tif", "{dst}"),
        {"probabilities": "p.tif", "confidence": "c.tif", "model": "new.json", "dst": "o.tif", "report": "run.json"},
        SCENE + LABELS),
    Job("sahic_apply", "gdal_hsi_sahic", ("-iterations", "3", "-apply", "mlr.json", REPORT, "s.img", "labels.tif",
                                          "{dst}"),
        {"dst": "o.tif", "report": "run.json"}, SCENE + LABELS + ("mlr.json",)),
    Job("sahic_vrt", "gdal_hsi_sahic", ("-apply", "mlr.json", "-no-spatial", "s.img", "none", "{dst}"),
        {"dst": "o.vrt"}, SCENE + ("mlr.json",)),
    Job("regression_train", "gdal_hsi_regression_train",
        ("-block", "4", "-members", "3", "-cv", "3", "-max-components", "3", ("-predictions", "{predictions}"), ("-scatter", "{scatter}"),
         ("-hytools", "{hytools}"), REPORT, "s.img", "labels.tif", "{model}"),
        {"predictions": "held.csv", "scatter": "held.png", "hytools": "trait.json", "model": "new.json", "report": "run.json"},
        SCENE + LABELS, devices=False),
    Job("regression_predict", "gdal_hsi_regression_predict",
        ("-reference", "labels.tif", ("-predictions", "{predictions}"), ("-scatter", "{scatter}"), REPORT, "s.img", "traits.json", "{dst}"),
        {"predictions": "seen.csv", "scatter": "seen.svg", "dst": "o.tif", "report": "run.json"},
        SCENE + LABELS + ("traits.json",), devices=False),
    Job("accuracy", "gdal_hsi_accuracy", (("-csv", "{csv}"), "-mask", "mask.tif", REPORT, "map.tif", "labels.tif"),
        {"csv": "new.csv", "report": "run.json"}, ("map.tif", "mask.tif") + LABELS, devices=False, prints=True,
        threads=False),
    Job("scores", "gdal_hsi_accuracy", ("-scores", ("-curves", "{curves}"), ("-roc", "{roc}"), REPORT, "s.img", "mask.tif"),
        {"curves": "curves.csv", "roc": "roc.svg", "report": "run.json"}, SCENE + ("mask.tif",), devices=False, prints=True, threads=False),
    Job("compare", "gdal_hsi_compare", (("-map", "{map}"), ("-o", "{text}"), REPORT, "map.vrt", "map.tif"),
        {"map": "o.tif", "text": "new.txt", "report": "run.json"}, SCENE + ("map.vrt", "map.tif", "svm.json"), devices=False,
        prints=True),
    Job("synth", "gdal_hsi_synth", ("-size", "9", "8", "6", ("-labels", "{labels}"), ("-truth", "{truth}"), ("-values", "{values}"),
                                    ("-plots", "{plots}"), REPORT, "{dst}"),
        {"labels": "l.tif", "truth": "truth.json", "values": "values.tif", "plots": "plots.gpkg", "dst": "o.tif", "report": "run.json"},
        devices=False),
]
JOB = {job.name: job for job in JOBS}


def other_format(job, name, extra=(), **outputs):
    """Returns the job with other outputs, whose extensions select the formats."""
    return dataclasses.replace(job, name=name, args=tuple(extra) + job.args, outputs={**job.outputs, **outputs})


# Every type of output: made by a driver's Create, by its CreateCopy, or by our own writers.
OUTPUT_JOBS = JOBS + [
    other_format(JOB["pca"], "pca_envi", ("-of", "ENVI"), dst="o.img"),
    other_format(JOB["pca"], "pca_cog", ("-of", "COG")),
    other_format(JOB["pca"], "pca_deflate", ("-co", "COMPRESS=DEFLATE", "-co", "TILED=YES")),
    other_format(JOB["spp"], "spp_zstd", ("-co", "COMPRESS=ZSTD", "-co", "PREDICTOR=3", "-co", "BLOCKXSIZE=16", "-co", "BLOCKYSIZE=16")),
    other_format(JOB["pca"], "pca_lzma", ("-co", "COMPRESS=LZMA", "-co", "TILED=YES")),
    other_format(JOB["svm_classify"], "svm_classify_png", dst="o.png"),
    other_format(JOB["atdca_texts"], "atdca_csv", dst="o.csv"),
    other_format(JOB["atdca_texts"], "atdca_shape", dst="o.shp", map="near.tif"),
]


def sampled(cases, *names):
    """Returns the cases as parameters of a test; cases with these names get the mark `sample`."""
    named = {getattr(case, "name", case): case for case in cases}
    assert set(names) <= set(named)
    return [pytest.param(case, id=name, marks=[pytest.mark.sample] if name in names else [])
            for name, case in named.items()]


def execute(command, folder, timeout=PATIENCE, env=None, **kwargs):
    """Runs one command line in the folder, without a shell, which would insert its own files. Without a preexec_fn,
    several threads may call it. With a preexec_fn the process is forked, and a fork while another thread is inside GDAL
    may wait for ever for a lock of PROJ."""
    if not kwargs and pathlib.Path(command[0]).parent == BIN:
        return run_words(command, timeout, env or ENVIRONMENT, folder)
    kwargs.setdefault("stdin", subprocess.DEVNULL)
    kwargs.setdefault("stdout", subprocess.PIPE)
    kwargs.setdefault("stderr", subprocess.PIPE)
    process = subprocess.Popen(list(map(str, command)), cwd=str(folder), env=env or ENVIRONMENT, **kwargs)
    try:
        out, err = process.communicate(timeout=timeout)
    finally:
        process.kill()
        process.wait()
    return Result(process.returncode, (out or b"").decode(errors="replace"), (err or b"").decode(errors="replace"))


def in_parallel(function, cases):
    """Returns [function(case)], computed by two threads; every function runs executables in its own folders."""
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        return list(pool.map(function, cases))


def _tool(folder, tool, *args):
    result = execute([BIN / tool, "-q", *args], folder)
    assert result.code == 0, f"{tool} {args}: exit code {result.code}\n{result.out}{result.err}"


def make_material(folder, lines=10, samples=12, spoil=None):
    """Makes the files that the jobs read. spoil(data) changes the scene before it is written."""
    folder = pathlib.Path(folder)
    bands = 6
    data = cube(samples, lines, bands, seed=3)
    if spoil:
        spoil(data)
    nanometres = [450 + 40 * b for b in range(bands)]
    write_scene(folder / "s.img", data, wavelengths=nanometres)
    (folder / "s.img.aux.xml").write_text('<PAMDataset>\n  <Metadata>\n    <MDI key="PLACE">somewhere</MDI>\n'
                                          '  </Metadata>\n</PAMDataset>\n')
    write_scene(folder / "line.bil", data, wavelengths=nanometres, options=["INTERLEAVE=BIL"])
    write_scene(folder / "plants.img", data, wavelengths=[560, 660, 700, 720, 850, 900])
    line, sample = np.indices((lines, samples)).astype(float)
    write_scene(folder / "angles.tif", np.stack([
        40 + 0 * line, 150 + 0 * line, np.abs(sample - samples / 2) + 0.1, np.where(sample < samples / 2, 90.0, 270), 6 + line % 5, 40 * sample % 360]),
        driver="GTiff", names=["solar zenith", "solar azimuth", "sensor zenith", "sensor azimuth", "slope", "aspect"])
    write_scene(folder / "y.tif", data[:, ::-1], driver="GTiff", wavelengths=nanometres)
    number = (np.arange(lines)[:, None] // 4 + np.arange(samples)[None, :] // 5) % 3 + 1
    line, sample = np.indices(number.shape)
    write_scene(folder / "glt.tif", np.stack([samples - sample, line + 1]), driver="GTiff", dtype="i4")
    number[np.indices(number.shape)[0] // 10 + np.indices(number.shape)[1] // 12 > 0] = 0  # keeps training short
    for name in ("labels.tif", "map.tif", "mask.tif"):
        write_scene(folder / name, number[None], driver="GTiff", dtype="u1", nodata=0)
    dataset = gdal.Open(str(folder / "labels.tif"), gdal.GA_Update)
    dataset.GetRasterBand(1).SetCategoryNames(["", "meadow", "wood", "water"])
    dataset = None
    assert (folder / "labels.tif.aux.xml").exists()
    srs = osr.SpatialReference()
    srs.ImportFromEPSG(32616)
    shapes = ogr.GetDriverByName("ESRI Shapefile").CreateDataSource(str(folder / "fields.shp"))
    layer = shapes.CreateLayer("fields", srs, ogr.wkbPolygon)
    layer.CreateField(ogr.FieldDefn("class", ogr.OFTInteger))
    for k in range(3):
        x0, x1 = 500000 + 80 * k, 500000 + 80 * k + 80
        feature = ogr.Feature(layer.GetLayerDefn())
        feature["class"] = k + 1
        feature.SetGeometry(ogr.CreateGeometryFromWkt(
            f"POLYGON(({x0} 4480000,{x1} 4480000,{x1} 4479800,{x0} 4479800,{x0} 4480000))"))
        layer.CreateFeature(feature)
    layer = shapes = None
    gdal.Translate(str(folder / "layers.vrt"), str(folder / "s.img"), format="VRT")
    _tool(folder, "gdal_hsi_pca", "-device", "cpu", "-nc", 2, "-model", "pca.json", "s.img", "scrap.tif")
    _tool(folder, "gdal_hsi_svm_train", "-C", 8, "-gamma", 1, "-probability", "s.img", "labels.tif", "svm.json")
    _tool(folder, "gdal_hsi_sahic", "-device", "cpu", "-iterations", 3, "-model", "mlr.json", "s.img", "labels.tif",
          "scrap2.tif")
    _tool(folder, "gdal_hsi_svm_classify", "-device", "cpu", "s.img", "svm.json", "map.vrt")
    _tool(folder, "gdal_hsi_pca", "-device", "cpu", "-nc", 4, "-of", "VRT", "s.img", "components.vrt")
    _tool(folder, "gdal_hsi_svm_classify", "-device", "cpu", "-probabilities", "shares.tif", "s.img", "svm.json",
          "scrap3.tif")
    for name in ("library.sli", "library.csv"):
        _tool(folder, "gdal_hsi_atdca", "-device", "cpu", "-t", 2, "-spectra", name, "s.img", name + ".gpkg")
        (folder / (name + ".gpkg")).unlink()
    with open(folder / "library.csv", newline="") as file:
        names = next(csv.reader(file))[2:]  # after band and wavelength
    for name, columns, cells in (("classes.csv", "name,class", lambda k: [f"kind {k}"]),
                                 ("features.csv", "name,from_nm,to_nm", lambda k: [440, 660])):
        with open(folder / name, "w", newline="") as file:
            file.write(columns + "\n")
            csv.writer(file).writerows([n, *cells(k)] for k, n in enumerate(names))
    (folder / "bands.csv").write_text("wavelength,fwhm\n" + "".join(f"{w},60\n" for w in (480, 530, 600)))
    (folder / "absorption.csv").write_text("wavelength,k\n" + "".join(f"{w},{-1e-5 * (1 + k % 3)}\n" for k, w in enumerate(nanometres)))
    (folder / "rules.json").write_text(json.dumps({"format": "gdal_hsi_rules", "version": 1, "rules": [
        {"name": name, "features": [{"windows": [440, 460, 640, 660]}]} for name in names]}))
    _tool(folder, "gdal_hsi_mnf", "-model", "mnf.json", "s.img", "scrap4.tif")
    _tool(folder, "gdal_hsi_regression_train", "-block", 4, "-members", 3, "-cv", 3, "-max-components", 3, "s.img", "labels.tif", "traits.json")
    _tool(folder, "gdal_hsi_statistics", "s.img", "-o", "s.stat")
    (folder / "options.txt").write_text("-apply pca.json\n")
    for path in folder.glob("scrap*"):
        path.unlink()
    (folder / "link").symlink_to(".", target_is_directory=True)
    wanted = {name for job in JOBS for name in job.inputs}
    assert not [name for name in wanted if not (folder / name).exists()]
    return folder


def copy_of(material, folder):
    shutil.copytree(material, folder, symlinks=True)
    return pathlib.Path(folder)


# --- the shim -----------------------------------------------------------------------------------------------------------

SHIM = os.environ.get("HSI_FAULT_SHIM", str(BIN.parent / "tests" / "faults" / "hsi_fault_shim.so"))


def preloadable(path):
    """Returns a path for LD_PRELOAD, whose entries are separated by blanks and colons: a link if the path contains
    one."""
    if not {" ", ":"} & set(path):
        return path
    folder = tempfile.mkdtemp(prefix="hsi_shim_")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    link = os.path.join(folder, "shim.so")
    os.symlink(path, link)
    return link


PRELOADED = preloadable(SHIM)


@dataclasses.dataclass
class Fault:
    """The instructions for fault_shim.cpp, and its results."""
    calls: str = "all"
    number: int = 0
    kind: str = "EIO"
    signal: int = 0
    gate: str = ""

    def environment(self, folder, log):
        return dict(ENVIRONMENT, LD_PRELOAD=PRELOADED, HSI_FAULT_FOLDER=os.path.realpath(folder), HSI_FAULT_LOG=str(log),
                    HSI_FAULT_CALLS=self.calls, HSI_FAULT_NUMBER=str(self.number), HSI_FAULT_KIND=self.kind,
                    HSI_FAULT_SIGNAL=str(self.signal), HSI_FAULT_GATE=str(self.gate))


def shim_log(log):
    """Returns (counted calls, affected calls, description of the first one)."""
    raw = pathlib.Path(log).read_bytes()
    _, calls, hit, _ = struct.unpack_from("=4Q", raw)
    return calls, hit, raw[32:].split(b"\0")[0].decode(errors="replace")


def shim_pid(log):
    """Returns the process that contains the shim."""
    return struct.unpack_from("=4Q", pathlib.Path(log).read_bytes())[3]


def was_hit(log):
    """Returns true if the call for which the shim waits has occurred."""
    return log.exists() and log.stat().st_size > 0 and shim_log(log)[1] > 0


def shim_works(folder):
    """Returns None, or the reason why faults cannot be injected here."""
    if not os.path.exists(SHIM):
        return f"the fault shim {SHIM} is not built"
    log = pathlib.Path(folder) / "probe.log"
    result = execute(["/bin/true"], folder, env=Fault().environment(folder, log))
    return None if result.code == 0 else result.err.strip()


def spread(total, most=5):
    """Returns some of 1 .. total: all if there are few, otherwise the ends and some in between."""
    if ALL or total <= most:
        return list(range(1, total + 1))
    return sorted({1 + round(k * (total - 1) / (most - 1)) for k in range(most)})


# --- the contents of a folder
# ---------------------------------------------------------------------------------------------

def contents(folder):
    """Returns {name: type and contents}, without times, of every file, folder and link below the folder."""
    facts = {}
    for path in sorted(pathlib.Path(folder).rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            facts[name] = ("link", os.readlink(path))
        elif path.is_file():
            facts[name] = ("file", path.read_bytes())
        else:
            facts[name] = ("other", path.stat().st_mode)
    return facts


def differences(old, new):
    """Describes new, missing and changed files; returns "" if there are none."""
    parts = []
    for word, names in (("lost", sorted(set(old) - set(new))), ("came", sorted(set(new) - set(old))),
                        ("changed", sorted(n for n in set(old) & set(new) if old[n] != new[n]))):
        if names:
            parts.append(f"{word}: {', '.join(names)}")
    return "; ".join(parts)


def vector_facts(path):
    """Returns the features of a vector file as texts, since GeoPackages contain the time of their creation."""
    dataset = ogr.Open(str(path))
    return [(layer.GetName(), [feature.ExportToJson() for feature in layer]) for layer in dataset]


def same_product(a, b):
    """Returns true if both files are equal: in bytes; GeoPackages in features; reports if both are complete."""
    a, b = pathlib.Path(a), pathlib.Path(b)
    if a.name.endswith(".gpkg"):
        try:
            return vector_facts(a) == vector_facts(b)
        except RuntimeError:
            return False
    if a.name == "run.json":
        try:
            one, two = json.loads(a.read_text()), json.loads(b.read_text())
        except ValueError:
            return False
        return set(one) == set(two) and "error" not in one
    return a.read_bytes() == b.read_bytes()


def same_values(a, b):
    """Compares as same_product(), for files with different names, which a product's history contains."""
    a, b = pathlib.Path(a), pathlib.Path(b)
    if a.suffix in (".tif", ".dat", ".img"):
        try:
            one, two = gdal.Open(str(a)), gdal.Open(str(b))
        except RuntimeError:
            return False
        return one.ReadAsArray().tobytes() == two.ReadAsArray().tobytes()
    if a.suffix == ".json" and a.name != "run.json":
        try:
            one, two = json.loads(a.read_text()), json.loads(b.read_text())
        except ValueError:
            return False
        named = {"command": 0, "history": 0, "checksum": 0}
        return {**one, **named} == {**two, **named}
    if a.suffix == ".gpkg":  # its layer has the file's name
        rows = []
        for path in (a, b):
            dataset = gdal.OpenEx(str(path), gdal.OF_VECTOR)
            rows.append(dataset and [f.ExportToJson() for f in dataset.GetLayer(0)])
        return rows[0] is not None and rows[0] == rows[1]
    return a.suffix == ".vrt" or same_product(a, b)
