# SPDX-License-Identifier: MIT
"""Locations of outputs: over inputs, over each other, over old VRTs, on devices, FIFOs and links, in folders that
cannot be listed, with closed standard descriptors, and by two processes at once. A run must not change any file that it
reads, and must refuse before any work."""

import collections
import gzip
import json
import os
import pathlib
import shutil
import stat
import subprocess
import tarfile
import tempfile
import threading
import time
import zipfile

import pytest
from osgeo import gdal

import workloads
from workloads import (ALL, BIN, ENVIRONMENT, JOB, JOBS, contents, copy_of, differences, execute, in_parallel,
                       same_product, same_values)

REFUSED = (1, 2)


def refuse_all(cases, material, tmp_path):
    """cases: (label, job, names, overwrite, slots, make), where make(folder) prepares the case. Each case runs in its
    own folder and must leave it unchanged. Returns the failures."""

    def try_case(numbered):
        number, (label, job, names, overwrite, slots, make) = numbered
        folder = copy_of(material, tmp_path / f"case{number}")
        if make:
            make(folder)
        names = {slot: str(name).replace("{folder}", str(folder)) for slot, name in names.items()}
        before = contents(folder)
        result = execute(job.command(names, overwrite, slots), folder)
        wrong = differences(before, contents(folder))
        shutil.rmtree(folder)
        if result.code not in REFUSED:
            wrong = f"exit code {result.code}; {wrong}"
        elif not result.err.startswith("ERROR: "):
            wrong += f" stderr begins with {result.err[:60]!r}"
        return f"{label}: {wrong}" if wrong.strip("; ") else None

    return [line for line in in_parallel(try_case, list(enumerate(cases))) if line]


def told(wrong, tried):
    assert not wrong, f"{len(wrong)} of {tried} cases:\n" + "\n".join(wrong)


# --- outputs over inputs ------------------------------------------------------------------------------------------------

def hard_link(name):
    return lambda folder: os.link(folder / name, folder / ("hard_" + name))


def soft_link(name):
    return lambda folder: (folder / ("soft_" + name)).symlink_to(name)


SPELLINGS = [
    ("the same", "{}", None),
    ("./", "./{}", None),
    ("absolute", "{{folder}}/{}", None),
    ("through a linked folder", "link/{}", None),
    ("a hard link", "hard_{}", hard_link),
    ("a symbolic link", "soft_{}", soft_link),
    ("a detour", "link/../link/./{}", None),
]


def matrix_cases(job):
    number = 0
    outputs, inputs = len(job.outputs), len(job.inputs)
    for i, slot in enumerate(job.outputs):
        for j, name in enumerate(job.inputs):
            # A sample uses each output and each input once, since one list contains all of them, regardless of their
            # roles.
            if not ALL and i % inputs != j and j % outputs != i:
                continue
            # A sample alternates between the spellings; -overwrite permits the most.
            for k, (word, spelling, make) in enumerate(SPELLINGS):
                for overwrite in ((True, False) if job.overwrite else (False,)):
                    if not ALL and (k != number % len(SPELLINGS) or (not overwrite and job.overwrite and number % 4)):
                        continue
                    # A run that fails writes its report as its record, so the report is given only if it is tested.
                    slots = set(job.outputs) - ({"report"} if slot != "report" else set())
                    yield (f"{job.name} {slot} over {name}, {word}{', -overwrite' if overwrite else ''}", job,
                           {slot: spelling.format(name)}, overwrite, slots, make(name) if make else None)
            number += 1


@pytest.mark.parametrize("job", [job for job in JOBS if job.inputs], ids=lambda job: job.name)
def test_no_output_over_an_input(job, material, tmp_path):
    cases = list(matrix_cases(job))
    told(refuse_all(cases, material, tmp_path), len(cases))


HIDING = [("/vsisubfile/0,{}", "y.tif"), ("/vsisubfile/0_100000000,{}", "y.tif"), ("/vsisubfile/0,./link/{}", "y.tif"),
          ("/vsisparse/{}.xml", "y.tif"), ("/vsizip/{{{}.zip}}/y.tif", "y.tif.zip"), ("/vsizip/{}.zip/y.tif", "y.tif.zip"),
          ("/vsizip/{}.zip", "y.tif.zip"), ("/vsigzip/{}.gz", "y.tif.gz"), ("/vsitar/{}.tar/y.tif", "y.tif.tar"),
          ("/vsisubfile/0,/vsigzip/{}.gz", "y.tif.gz"), ("/vsisubfile/0,{{folder}}/{}", "y.tif")]


def pack(folder):
    """Stores y.tif in every container from which GDAL can read it."""
    with zipfile.ZipFile(folder / "y.tif.zip", "w") as archive:
        archive.write(folder / "y.tif", "y.tif")
    with tarfile.open(folder / "y.tif.tar", "w") as archive:
        archive.add(folder / "y.tif", "y.tif")
    (folder / "y.tif.gz").write_bytes(gzip.compress((folder / "y.tif").read_bytes()))
    size = (folder / "y.tif").stat().st_size
    (folder / "y.tif.xml").write_text(
        f"<VSISparseFile><Length>{size}</Length><SubfileRegion><Filename relative=\"1\">y.tif</Filename>"
        f"<DestinationOffset>0</DestinationOffset><SourceOffset>0</SourceOffset><RegionLength>{size}</RegionLength>"
        "</SubfileRegion></VSISparseFile>")


@pytest.mark.parametrize("spelling, hidden", HIDING, ids=[spelling for spelling, _ in HIDING])
def test_no_output_over_a_file_behind_a_virtual_name(spelling, hidden, material, tmp_path):
    folder = copy_of(material, tmp_path / "work")
    pack(folder)
    source = spelling.format("y.tif").replace("{folder}", str(folder))
    assert execute([BIN / "gdal_hsi_pca", "-q", "-nc", 2, source, tmp_path / "readable.tif"], folder).code == 0
    before = contents(folder)
    for slots in (["-overwrite", source, hidden], ["-overwrite", "-model", hidden, source, "o.tif"],
                  ["-overwrite", "-report", hidden, source, "o.tif"]):
        result = execute([BIN / "gdal_hsi_pca", "-nc", 2, *slots], folder)
        assert result.code == 2 and "would overwrite" in result.err, result.err
        assert differences(before, contents(folder)) == ""


def test_no_output_over_the_standard_input(material, tmp_path):
    folder = copy_of(material, tmp_path / "work")
    before = contents(folder)
    with open(folder / "y.tif", "rb") as stdin:
        result = execute([BIN / "gdal_hsi_pca", "-nc", 2, "-overwrite", "/vsistdin/", "y.tif"], folder, stdin=stdin)
    assert result.code == 2 and "would overwrite" in result.err, result.err
    assert differences(before, contents(folder)) == ""


@pytest.mark.parametrize("place", ["/vsizip/new.zip/o.tif", "/vsizip/y.tif.zip/o.tif", "/vsigzip/o.tif.gz", "/vsitar/y.tif.tar/o.tif",
                                   "/vsisubfile/0,y.tif"])
def test_results_are_files_of_their_own(place, material, tmp_path):
    """A partial write into an archive cannot be undone, and tools cannot know which file it changes."""
    folder = copy_of(material, tmp_path / "work")
    pack(folder)
    before = contents(folder)
    for args in ([BIN / "gdal_hsi_pca", "s.img", place], [BIN / "gdal_hsi_pca", "-model", place, "s.img", "o.tif"],
                 [BIN / "gdal_hsi_pca", "-report", place, "s.img", "o.tif"], [BIN / "gdal_hsi_synth", "-size", 9, 8, 6, place],
                 [BIN / "gdal_hsi_atdca", "-t", 3, "-of", "GPKG", "y.tif", place]):
        result = execute(args, folder)
        assert result.code == 2 and "results cannot be written" in result.err, (args, result.err)
        assert differences(before, contents(folder)) == ""


def test_no_output_over_what_a_table_of_labels_is_read_with(material, tmp_path):
    """A .csvt contains the types of a CSV file's columns; GDAL reads it, but does not list it."""
    folder = copy_of(material, tmp_path / "work")
    (folder / "points.csv").write_text("class,WKT\n1,POINT (500050 4479950)\n2,POINT (500110 4479890)\n")
    (folder / "points.csvt").write_text('"Integer","WKT"\n')
    (folder / "points.vrt").write_text('<OGRVRTDataSource><OGRVRTLayer name="points"><SrcDataSource relativeToVRT="1">points.csv'
                                       "</SrcDataSource></OGRVRTLayer></OGRVRTDataSource>")
    before = contents(folder)
    for labels in ("points.csv", "points.vrt"):
        result = execute([BIN / "gdal_hsi_svm_train", "-C", 8, "-gamma", 1, "-overwrite", "-field", "class", "s.img", labels,
                          "points.csvt"], folder)
        assert result.code == 2 and "would overwrite" in result.err, result.err
        assert differences(before, contents(folder)) == ""


def test_no_output_over_the_header_of_a_library_that_a_vrt_names(material, tmp_path):
    folder = copy_of(material, tmp_path / "work")
    sources = "".join(f'<SimpleSource><SourceFilename relativeToVRT="1">y.tif</SourceFilename><SourceBand>{b + 1}</SourceBand>'
                      "</SimpleSource>" for b in range(gdal.Open(str(folder / "y.tif")).RasterCount))
    y = gdal.Open(str(folder / "y.tif"))
    bands = "".join(f'<VRTRasterBand dataType="Float32" band="{k}" subClass="VRTDerivedRasterBand"><PixelFunctionType>hsi_sad'
                    f'</PixelFunctionType><PixelFunctionArguments library="library.sli" select="{k}"/>{sources}</VRTRasterBand>'
                    for k in (1, 2))
    (folder / "angles.vrt").write_text(f'<VRTDataset rasterXSize="{y.RasterXSize}" rasterYSize="{y.RasterYSize}">{bands}'
                                       "</VRTDataset>")
    before = contents(folder)
    for output in ("library.hdr", "library.sli"):
        result = execute([BIN / "gdal_hsi_pca", "-nc", 2, "-overwrite", "-model", output, "angles.vrt", "o.tif"], folder)
        assert result.code == 2 and "would overwrite" in result.err, result.err
        assert differences(before, contents(folder)) == ""


def lay_alpha(folder):
    """Copies the source to the name that spp -of VRT gives to the file that its VRT reads in addition to the scene."""
    shutil.move(folder / "s.img", folder / "y_alpha.img")
    shutil.copy(folder / "y.tif", folder / "y_alpha.tif")
    os.link(folder / "y_alpha.tif", folder / "s.img")


def side_cases():
    """Returns outputs whose side files would replace a file that is read."""
    for overwrite in (True, False):
        word = ", -overwrite" if overwrite else ""
        yield ("pca: the header of s.dat is s.img's" + word, JOB["pca"], {"dst": "s.dat"}, overwrite, {"dst"}, None,
               ["-of", "ENVI"])
        yield ("pca: the header of s.bsq is s.img's" + word, JOB["pca"], {"dst": "s.bsq"}, overwrite, {"dst"}, None,
               ["-of", "ENVI"])
        yield ("pca: the header of link/s.dat is s.img's" + word, JOB["pca"], {"dst": "link/s.dat"}, overwrite,
               {"dst"}, None, ["-of", "ENVI"])
        yield ("svm_classify: the same" + word, JOB["svm_classify"], {"dst": "s.dat", "probabilities": "p.dat",
                                                                     "confidence": "c.dat"}, overwrite,
               {"dst", "probabilities", "confidence"}, None, ["-of", "ENVI"])
        yield ("spp: the header of -alpha s.dat is the header of the VRT's source" + word, JOB["spp_envi"],
               {"alpha": "s.dat"}, overwrite, None, None, [])
        yield ("atdca: the header of -spectra s.sli is that of -original" + word, JOB["atdca"],
               {"spectra": "s.sli"}, overwrite, {"spectra"}, None, [])
        yield ("synth has no source, but two ENVI outputs share a header" + word, JOB["synth"],
               {"dst": "new.img", "labels": "new.dat"}, overwrite, {"dst", "labels"}, None,
               ["-of", "ENVI"])
        yield ("spp: o.img and o.dat share a header" + word, JOB["spp"], {"dst": "o.img", "alpha": "o.dat"},
               overwrite, {"dst", "alpha"}, None, ["-of", "ENVI"])
        yield ("spp: o.dat and -alpha o.bsq share a header" + word, JOB["spp"], {"dst": "o.dat", "alpha": "o.bsq"},
               overwrite, {"dst", "alpha"}, None, ["-of", "ENVI"])
        yield ("atdca: targets.sli and a report called targets.hdr" + word, JOB["atdca"],
               {"spectra": "targets.sli", "report": "targets.hdr"}, overwrite, {"spectra", "report"}, None, [])
        yield ("pca: o.dat and a model called o.hdr" + word, JOB["pca"], {"dst": "o.dat", "model": "o.hdr"},
               overwrite, {"dst", "model"}, None, ["-of", "ENVI"])
        yield ("spp: a VRT's own side output is the source" + word, JOB["spp"],
               {"dst": "y.vrt"}, overwrite, set(), lay_alpha, ["-of", "VRT"])
        yield ("sample: two outputs with one header" + word, JOB["sample"], {"dst": "t.dat", "dst_test": "t.img"},
               overwrite, set(), None, ["-of", "ENVI"])


def test_no_side_file_over_an_input_or_another_output(material, tmp_path):
    wrong = []
    cases = list(side_cases())

    def try_case(numbered):
        number, (label, job, names, overwrite, slots, make, extra) = numbered
        folder = copy_of(material, tmp_path / f"case{number}")
        if make:
            make(folder)
        before = contents(folder)
        result = execute(job.command(names, overwrite, slots, extra), folder)
        change = differences(before, contents(folder))
        # ".dat" and ".img" together with -of ENVI mean ENVI only if the tool says so. Two complete outputs of other
        # formats, without loss, do not collide.
        if result.code == 0 and not change.startswith(("lost", "changed")) and "changed" not in change:
            given = job.command(names, overwrite, slots, extra)
            made = [n for n in names.values() if (folder / n).exists()]
            headers = collections.Counter(str(pathlib.Path(n).with_suffix("")) for n in names.values()
                                          if (folder / n).exists() and driver_of(folder / n) == "ENVI")
            if len(made) == len(names) and (not headers or max(headers.values()) < 2) and given:
                return None
        if result.code not in REFUSED or change:
            return f"{label}: exit code {result.code}; {change}"
        return None

    wrong = [line for line in in_parallel(try_case, list(enumerate(cases))) if line]
    told(wrong, len(cases))


def driver_of(path):
    try:
        dataset = gdal.OpenEx(str(path), gdal.OF_RASTER)
    except RuntimeError:
        return None
    return dataset.GetDriver().ShortName


# --- two outputs under one name ---------------------------------------------------------------------------------------

def pair_cases(job):
    slots = list(job.outputs)
    spellings = [("x", "x"), ("x", "./x"), ("link/x", "x"), ("{folder}/x", "x")]
    number = 0
    for i, one in enumerate(slots):
        for other in slots[i + 1:]:
            for k, (a, b) in enumerate(spellings):
                for overwrite in ((True, False) if job.overwrite else (False,)):
                    if not ALL and (k != number % len(spellings) or (not overwrite and job.overwrite and number % 3)):
                        continue
                    # With the extension of either output: each output determines its own format. A report accepts any
                    # name; a run that is refused for another reason may leave it as a record.
                    for kind in sorted({pathlib.Path(job.outputs[s]).suffix for s in (one, other) if s != "report"}):
                        given = set(slots) - ({"report"} - {one, other})
                        yield (f"{job.name} {one} {a}{kind} and {other} {b}{kind}"
                               f"{', -overwrite' if overwrite else ''}", job,
                               {one: a + kind, other: b + kind}, overwrite, given, None)
            number += 1


@pytest.mark.parametrize("job", [job for job in JOBS if len(job.outputs) > 1], ids=lambda job: job.name)
def test_no_two_outputs_under_one_name(job, material, tmp_path):
    cases = list(pair_cases(job))
    told(refuse_all(cases, material, tmp_path), len(cases))


def test_two_outputs_under_one_name_that_is_there(material, tmp_path):
    def old(folder):
        (folder / "x.tif").write_bytes((folder / "y.tif").read_bytes())

    cases = [(f"{job.name} {one} and {other}, {word}", job, {one: "x.tif", other: spelling}, True,
              set(job.outputs) - {"report"}, old)
             for job, one, other in ((JOB["spp"], "dst", "alpha"), (JOB["sample"], "dst", "dst_test"),
                                     (JOB["svm_classify"], "probabilities", "confidence"),
                                     (JOB["sahic"], "dst", "model"))
             for word, spelling in (("the same", "x.tif"), ("./", "./x.tif"), ("linked", "link/x.tif"))]
    told(refuse_all(cases, material, tmp_path), len(cases))


# --- old outputs refer to files -----------------------------------------------------------------------------------------

def run_twice(folder, job, names=None, slots=None):
    """Runs the command twice with -overwrite: all inputs and the product must stay unchanged."""
    inputs = contents(folder)
    after = []
    for _ in range(2):
        result = execute(job.command(names, True, slots), folder)
        assert result.code == 0, result.err
        after.append(contents(folder))
        lost = {name for name in inputs if inputs[name] != after[-1].get(name)}
        assert not lost, f"{sorted(lost)} lost or changed"
    assert differences(*after) == ""


@pytest.mark.parametrize("name", ["pca_vrt", "svm_vrt", "sahic_vrt", "atdca_texts"])
def test_overwriting_a_vrt_keeps_its_source(name, material, tmp_path):
    folder = copy_of(material, tmp_path / "work")
    run_twice(folder, JOB[name], slots={"map"})


def test_overwriting_a_vrt_of_spp_keeps_its_source(material, tmp_path):
    folder = copy_of(material, tmp_path / "work")
    before = contents(folder)
    for _ in range(2):
        result = execute([BIN / "gdal_hsi_spp", "-ws", 3, "-of", "VRT", "-overwrite", "s.img", "s.vrt"], folder)
        assert result.code == 0, result.err
        assert differences(before, contents(folder)) == "came: s.vrt, s_alpha.tif"


def test_a_vrt_with_the_source_s_own_name(material, tmp_path):
    """s.img and s.vrt: the VRT next to the source has its name."""
    folder = copy_of(material, tmp_path / "work")
    run_twice(folder, JOB["pca_vrt"], {"dst": "s.vrt"}, slots=set())


@pytest.mark.parametrize("dst, options", [("scene.vrt", ["-of", "VRT"]), ("scene.vrt", ["-of", "GTiff"]),
                                          ("scene.vrt", ["-of", "ENVI"]), ("scene.tif", [])])
@pytest.mark.parametrize("source", ["s.img", "scene.tif"])
def test_overwriting_a_foreign_vrt_keeps_what_it_refers_to(dst, options, source, material, tmp_path):
    """scene.vrt belongs to a scene, refers to its own mask, and has the name of the output."""
    if source == dst:
        pytest.skip("the source itself: see test_no_output_over_an_input")
    folder = copy_of(material, tmp_path / "work")
    shutil.copy(folder / "y.tif", folder / "scene.tif")
    gdal.Translate(str(folder / "scene.vrt"), str(folder / "scene.tif"), format="VRT")
    before = contents(folder)
    for _ in range(2):
        result = execute([BIN / "gdal_hsi_pca", "-device", "cpu", "-nc", 2, "-overwrite", *options, source, dst],
                         folder)
        after = contents(folder)
        if source == "scene.tif" and result.code in REFUSED:
            assert differences(before, after) == ""  # scene.vrt may be mistaken for the source's VRT, but nothing is lost
            return
        assert result.code == 0, result.err
        gone = {name for name in before if name != dst and before[name] != after.get(name)}
        assert not gone, f"{sorted(gone)} lost or changed"
        assert gdal.Open(str(folder / dst)).RasterCount == 2


def test_what_stands_beside_an_old_output_and_is_not_of_it_stays(material, tmp_path):
    """GDAL lists metadata files of satellites as belonging to a GeoTIFF, but the tool has not made them."""
    folder = copy_of(material, tmp_path / "work")
    shutil.copy(folder / "y.tif", folder / "o.tif")
    (folder / "o_rpc.txt").write_text("LINE_OFF: 5\n")
    (folder / "o.IMD").write_text('satId = "QB02";\nEND;\n')
    (folder / "o.RPB").write_text('satId = "QB02";\nEND;\n')
    before = contents(folder)
    result = execute([BIN / "gdal_hsi_pca", "-nc", 2, "-overwrite", "s.img", "o.tif"], folder)
    assert result.code == 0, result.err
    assert differences(before, contents(folder)) == "changed: o.tif"


def test_side_files_of_an_old_output_go_with_it(material, tmp_path):
    """An ENVI output is replaced by an output without statistics: the old output's statistics must not be read with the
    new one."""
    folder = copy_of(material, tmp_path / "work")
    command = [BIN / "gdal_hsi_pca", "-nc", 2, "-of", "ENVI", "-overwrite", "s.img", "o.img"]
    assert execute(command, folder).code == 0
    clean = contents(folder)
    (folder / "o.img.aux.xml").write_text("<PAMDataset><Metadata><MDI key='OLD'>1</MDI></Metadata></PAMDataset>")
    assert execute(command, folder).code == 0
    assert contents(folder) == clean


# --- closed descriptors ---------------------------------------------------------------------------------------------------

def run_closed(command, folder, closed):
    """Returns the exit code of a run that starts without some of the descriptors 0, 1 and 2."""
    shell = 'exec "$0" "$@" ' + " ".join(f"{descriptor}>&-" for descriptor in closed)
    process = subprocess.Popen(["/bin/sh", "-c", shell, *map(str, command)], cwd=str(folder), env=ENVIRONMENT,
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        return process.wait(120)
    finally:
        process.kill()


CLOSED = [tuple(d for d in range(3) if number >> d & 1) for number in range(8)]


@pytest.mark.parametrize("number, job", list(enumerate(JOBS)), ids=[job.name for job in JOBS])
def test_closed_descriptors(number, job, material, tmp_path):
    normal = copy_of(material, tmp_path / "normal")
    assert execute(job.command(), normal).code == 0
    clean = contents(normal)

    def try_closed(closed):
        label = f"{job.name} without {closed}"
        folder = copy_of(material, tmp_path / ("closed" + "".join(map(str, closed))))
        before = contents(folder)
        code = run_closed(job.command(), folder, closed)
        after = contents(folder)
        if job.prints and 1 in closed:
            # The purpose of such a tool is its printed output, which is lost here. The report records the failure.
            after.pop("run.json", None)
            change = differences(before, after)
            return f"{label}: exit code {code}; {change}" if code != 1 or change else None
        if code != 0:
            return f"{label}: exit code {code}"
        if set(after) != set(clean):
            return f"{label}: {differences(clean, after)}"
        wrong = [name for name in clean if clean[name][0] == "file" and not same_product(normal / name, folder / name)]
        return f"{label}: {wrong} differ" if wrong else None

    # A sample: all of them closed, and two of the other combinations in turn.
    some = CLOSED if ALL else [CLOSED[7], CLOSED[1 + number % 6], CLOSED[1 + (number + 3) % 6]]
    wrong = [line for line in in_parallel(try_closed, some) if line]
    told(wrong, len(some))


@pytest.mark.parametrize("closed", [c for c in CLOSED if 1 in c], ids=lambda c: "".join(map(str, c)))
def test_an_image_for_the_standard_output_that_is_closed(closed, material, tmp_path):
    folder = copy_of(material, tmp_path / "work")
    before = contents(folder)
    code = run_closed([BIN / "gdal_hsi_pca", "-nc", 2, "-of", "GTiff", "s.img", "/vsistdout/"], folder, closed)
    assert code == 1
    assert differences(before, contents(folder)) == ""


# --- devices, FIFOs, links ------------------------------------------------------------------------------------------------

TEXTS = [("pca", "model"), ("pca", "report"), ("svm_train", "model"), ("svm_train", "libsvm"), ("svm_train", "report"),
         ("sahic", "model"), ("accuracy", "csv"), ("accuracy", "report"), ("synth", "truth"), ("vd", "report"),
         ("atdca_texts", "spectra"), ("spp_item", "stac")]
TEXT_IDS = [f"{name}-{slot}" for name, slot in TEXTS]
RASTERS = [("pca", "dst"), ("spp", "alpha"), ("spp_envi", "dst"), ("atdca", "dst"), ("atdca", "map"),
           ("pca_vrt", "dst"), ("synth", "labels")]
RASTER_IDS = [f"{name}-{slot}" for name, slot in RASTERS]


def named(job, slot, name):
    """-spectra selects the format by the extension, so a name needs one."""
    return name + ".csv" if slot == "spectra" else name


def device_node(path, minor):
    """Makes a separate node, since a tool that replaces devices must not damage the machine's."""
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, minor))
        with open(path, "wb"):
            pass
    except PermissionError:
        path.unlink(missing_ok=True)
        pytest.skip("device nodes cannot be made or opened here: only root may, where the file system lets it")


@pytest.mark.parametrize("overwrite", [True, False], ids=["overwrite", "plain"])
@pytest.mark.parametrize("name, slot", TEXTS, ids=TEXT_IDS)
def test_text_into_the_null_device(name, slot, overwrite, material, tmp_path):
    job = JOB[name]
    folder = copy_of(material, tmp_path / "work")
    place = named(job, slot, "null")
    device_node(folder / place, 3)
    clean = copy_of(material, tmp_path / "clean")
    assert execute(job.command(), clean).code == 0
    result = execute(job.command({slot: place}, overwrite), folder)
    assert stat.S_ISCHR((folder / place).lstat().st_mode), "the device was replaced"
    if not overwrite and result.code == 1:
        assert "overwrite" in result.err  # a device has no contents to lose, but a tool may ask anyway
        return
    assert result.code == 0, result.err
    expected = set(contents(clean)) - {job.outputs[slot]} | {place}
    assert set(contents(folder)) == expected


@pytest.mark.parametrize("name, slot", TEXTS, ids=TEXT_IDS)
def test_text_onto_a_full_device(name, slot, material, tmp_path):
    """Nothing fits: the run fails, and none of its other outputs exists."""
    job = JOB[name]
    folder = copy_of(material, tmp_path / "work")
    place = named(job, slot, "full")
    device_node(folder / place, 7)
    before = contents(folder)
    slots = set(job.outputs) - ({"report"} - {slot})
    result = execute(job.command({slot: place}, True, slots), folder)
    assert stat.S_ISCHR((folder / place).lstat().st_mode), "the device was replaced"
    assert result.code == 1, result.err
    assert differences(before, contents(folder)) == ""


@pytest.mark.parametrize("name, slot", RASTERS, ids=RASTER_IDS)
@pytest.mark.parametrize("kind", ["null", "full", "fifo", "folder"])
def test_a_raster_in_a_place_that_is_no_file(kind, name, slot, material, tmp_path):
    """The run is refused, the location is unchanged, and the run does not wait at a FIFO for a reader."""
    job = JOB[name]
    folder = copy_of(material, tmp_path / "work")
    place = folder / ("place" + pathlib.Path(job.outputs[slot]).suffix)
    if kind == "fifo":
        os.mkfifo(place)
    elif kind == "folder":
        place.mkdir()
        (place / "something").write_text("of somebody")
    else:
        device_node(place, {"null": 3, "full": 7}[kind])
    before = contents(folder)
    for overwrite in (True, False):
        result = execute(job.command({slot: place}, overwrite, set(job.outputs) - {"report"}), folder)
        assert differences(before, contents(folder)) == ""
        assert result.code in REFUSED, result.err


@pytest.mark.parametrize("name, slot", TEXTS, ids=TEXT_IDS)
def test_text_into_a_fifo(name, slot, material, tmp_path):
    job = JOB[name]
    folder = copy_of(material, tmp_path / "work")
    place = folder / named(job, slot, "fifo")
    os.mkfifo(place)
    got = []

    def read():
        with open(place, "rb") as stream:
            got.append(stream.read())

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        result = execute(job.command({slot: place.name}, True), folder)
    finally:
        if stat.S_ISFIFO(place.lstat().st_mode):  # releases a reader that still waits
            try:
                os.close(os.open(place, os.O_WRONLY | os.O_NONBLOCK))
            except OSError:
                pass
    assert stat.S_ISFIFO(place.lstat().st_mode), "the FIFO was replaced"
    assert result.code == 0, result.err
    reader.join(20)
    assert not reader.is_alive()
    clean = copy_of(material, tmp_path / "clean")
    # Under the same name, since models contain the command line.
    assert execute(job.command({slot: place.name}, True), clean).code == 0
    if slot == "report":
        assert "error" not in json.loads(got[0])
    else:
        assert got[0] == (clean / place.name).read_bytes()


LINKS = ["file", "dangling", "relative chain"]
LINKED = [(name, slot, kind) for number, (name, slot) in enumerate(TEXTS + RASTERS)
          for k, kind in enumerate(LINKS) if ALL or k == number % len(LINKS)]


@pytest.mark.parametrize("name, slot, kind", LINKED, ids=["-".join(case) for case in LINKED])
def test_output_through_a_link(name, slot, kind, material, tmp_path):
    """The link stays, and its target is written, as with > in a shell."""
    job = JOB[name]
    folder = copy_of(material, tmp_path / "work")
    other = tmp_path / "other"
    other.mkdir()
    extension = pathlib.Path(job.outputs[slot]).suffix
    target = other / ("target" + extension)
    place = folder / ("place" + extension)
    if kind == "file":  # without -overwrite, a report replaces only reports
        target.write_text('{"tool": "x", "version": "1", "passes": []}' if slot == "report" else "old")
    if kind == "relative chain":
        (folder / "second").symlink_to(pathlib.Path("..") / "other" / target.name)
        place.symlink_to("second")
    else:
        place.symlink_to(target)
    links = {path: os.readlink(path) for path in folder.iterdir() if path.is_symlink()}
    clean = copy_of(material, tmp_path / "clean")
    (clean / "other").mkdir()
    assert execute(job.command({slot: "other/" + target.name}), clean).code == 0
    result = execute(job.command({slot: place.name}, True), folder)
    assert result.code == 0, result.err
    for link, to in links.items():
        assert link.is_symlink() and os.readlink(link) == to, f"{link.name} was replaced"
    assert target.is_file() and not target.is_symlink()
    if slot == "report":
        assert "error" not in json.loads(target.read_text())
    elif slot == "stac":  # contains the command, which differs, and the path of dst from the link's target
        way = json.loads(target.read_text())["assets"]["data"]["href"]
        assert (other / way).resolve() == folder / job.outputs["dst"]
    else:
        wrong = [path.name for path in (clean / "other").iterdir()
                 if path.suffix not in (".hdr", ".xml") and not same_values(path, other / path.name)]
        assert not wrong
    assert sorted(p.name for p in other.iterdir()) == sorted(p.name for p in (clean / "other").iterdir())
    hidden = [n for n in os.listdir(folder) if n.startswith(".")]
    assert not hidden


@pytest.mark.parametrize("name, slot", TEXTS + RASTERS, ids=TEXT_IDS + RASTER_IDS)
def test_output_through_a_loop_of_links(name, slot, material, tmp_path):
    job = JOB[name]
    folder = copy_of(material, tmp_path / "work")
    extension = pathlib.Path(job.outputs[slot]).suffix
    (folder / ("a" + extension)).symlink_to("b" + extension)
    (folder / ("b" + extension)).symlink_to("a" + extension)
    before = contents(folder)
    for overwrite in (True, False):
        result = execute(job.command({slot: "a" + extension}, overwrite, set(job.outputs) - ({"report"} - {slot})),
                         folder)
        assert result.code in REFUSED
        assert differences(before, contents(folder)) == ""


@pytest.mark.parametrize("name, slot", TEXTS, ids=TEXT_IDS)
def test_temporary_names_cannot_be_aimed_at(name, slot, material, tmp_path):
    """A user who may write to the folder places links under earlier names of a text's temporary file: they are neither
    followed nor obstacles."""
    job = JOB[name]
    folder = copy_of(material, tmp_path / "work")
    victim = tmp_path / "victim"
    victim.write_text("of somebody else")

    def lay():
        for end in (f".tmp-{os.getpid()}", ".part", ".tmp", "~"):
            os.symlink(victim, folder / (job.outputs[slot] + end))

    result = execute(job.command(), folder, preexec_fn=lay)
    assert victim.read_text() == "of somebody else"
    assert result.code == 0, result.err
    assert (folder / job.outputs[slot]).is_file()
    assert len([p for p in folder.iterdir() if p.is_symlink()]) == 5  # including the material's own links


# --- folders that cannot be listed or written -----------------------------------------------------------------------------

@pytest.fixture
def common_folder():
    """Makes a folder that other users can access, since pytest's own folders are closed to them."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="hsi-faults-"))
    folder.chmod(0o755)
    yield folder
    for path in folder.rglob("*"):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)
    shutil.rmtree(folder)


def other_user():
    """Returns how to start a process without root rights."""
    if os.geteuid() != 0:
        return {}
    return {"user": 65534, "group": 65534, "extra_groups": []}


def reachable(user):
    """Returns true if that user can run the tools."""
    probe = subprocess.run([str(BIN / "gdal_hsi_spp"), "--version"], stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, cwd="/", **user) if os.access(BIN, os.X_OK) else None
    return probe is not None and probe.returncode == 0


@pytest.mark.parametrize("job", [job for job in JOBS if job.name in (
    "pca", "pca_vrt", "spp_envi", "atdca", "atdca_texts", "svm_train", "accuracy", "sample", "synth")],
    ids=lambda job: job.name)
@pytest.mark.parametrize("mode", [0o733, 0o555])
def test_folder_that_cannot_be_listed_or_written(mode, job, material, common_folder):
    """733 is a drop box: files may be made, but not listed. Either all outputs are complete, or the run fails and none
    exists."""
    user = other_user()
    try:
        usable = reachable(user)
    except OSError:
        usable = False
    if not usable:
        pytest.skip(f"the tools in {BIN} cannot be run as another user than root here")
    folder = copy_of(material, common_folder / "work")
    for path in [folder, *folder.rglob("*")]:
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() else 0o644)
    box = common_folder / "box"
    box.mkdir()
    if os.geteuid() != 0 and mode == 0o733:
        pytest.skip("a folder of one's own is listed with mode 733: only root can try this with another user")
    box.chmod(mode)
    result = execute(job.command({slot: f"{box}/{name}" for slot, name in job.outputs.items()}), folder, **user)
    box.chmod(0o755)
    made = contents(box)
    assert differences(contents(material), contents(folder)) == ""
    if mode == 0o555:
        assert result.code in REFUSED and not made
    elif result.code == 0:
        clean = copy_of(material, common_folder / "clean")
        (clean / "box").mkdir()
        assert execute(job.command({slot: f"box/{name}" for slot, name in job.outputs.items()}), clean).code == 0
        assert set(made) == set(contents(clean / "box"))
        assert not [n for n in made if not n.endswith((".xml", ".hdr")) and not same_values(clean / "box" / n, box / n)]
    else:
        assert result.code == 1 and not {n for n in made if n != "run.json"}, sorted(made)


# --- two writers ----------------------------------------------------------------------------------------------------------

def race(commands, folder):
    """Returns the exit codes of processes that start together."""
    running = [subprocess.Popen(list(map(str, c)), cwd=str(folder), env=ENVIRONMENT,
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
               for c in commands]
    return [process.wait(120) for process in running]


WRITERS = {
    "GTiff": ("gdal_hsi_pca", ["-nc"], "o.tif"),
    "ENVI": ("gdal_hsi_pca", ["-of", "ENVI", "-nc"], "o.img"),
    "VRT": ("gdal_hsi_pca", ["-nc"], "o.vrt"),
    "GPKG": ("gdal_hsi_atdca", ["-t"], "o.gpkg"),
    "GeoJSON": ("gdal_hsi_atdca", ["-t"], "o.geojson"),
    "model": ("gdal_hsi_svm_train", ["-gamma", "1", "-C"], "o.json"),
}


def writer(kind, number, overwrite, dst=None):
    tool, options, name = WRITERS[kind]
    inputs = ["s.img", "labels.tif"] if kind == "model" else ["s.img"]
    return [BIN / tool, *(["-overwrite"] if overwrite else []), *options, number, *inputs, dst or name]


@pytest.mark.parametrize("overwrite", [True, False], ids=["overwrite", "plain"])
@pytest.mark.parametrize("kind", WRITERS)
def test_two_writers(kind, overwrite, material, tmp_path):
    """Without -overwrite, one of them succeeds; with -overwrite, both may. The files must all come from one process."""
    whole = []
    for number in (2, 3):
        folder = copy_of(material, tmp_path / f"alone{number}")
        assert execute(writer(kind, number, overwrite), folder).code == 0
        whole.append({n: f for n, f in contents(folder).items() if n not in contents(material)})
    wrong = []
    folder = copy_of(material, tmp_path / "work")
    start = contents(folder)
    attempts = 20 if ALL else 3
    for attempt in range(attempts):
        codes = race([writer(kind, 2, overwrite), writer(kind, 3, overwrite)], folder)
        after = contents(folder)
        made = {n: f for n, f in after.items() if n not in start}
        if sorted(codes) != [0, 1] and not (overwrite and sorted(codes) == [0, 0]):
            wrong.append(f"{attempt}: exit codes {codes}")
        if set(made) != set(whole[0]):
            wrong.append(f"{attempt}: {sorted(made)} are there")
        elif not any(same_set(made, one, tmp_path) for one in whole):
            wrong.append(f"{attempt}: what is there is of neither alone")
        for name in made:
            (folder / name).unlink()
    told(wrong, attempts)


def same_set(a, b, tmp_path):
    for name in a:
        for k, facts in enumerate((a, b)):
            (tmp_path / f"side{k}").mkdir(exist_ok=True)
            (tmp_path / f"side{k}" / name).write_bytes(facts[name][1])
        if not same_product(tmp_path / "side0" / name, tmp_path / "side1" / name):
            return False
    return True
