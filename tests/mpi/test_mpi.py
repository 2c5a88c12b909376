# SPDX-License-Identifier: MIT
"""Tools as several processes of one job: their files equal those of one process byte by byte; and the results if a rank
fails.

The jobs are those of tests/faults/workloads.py. HSI_MPI_ALL=1 runs every job with 1, 2, 3 and 5 ranks on every scene.
"""

import importlib.util
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from osgeo import gdal, ogr

_path = pathlib.Path(__file__).resolve().parents[1] / "faults" / "workloads.py"
_spec = importlib.util.spec_from_file_location("workloads", _path)
workloads = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(workloads)
BIN, ENVIRONMENT, JOB, PATIENCE = workloads.BIN, workloads.ENVIRONMENT, workloads.JOB, workloads.PATIENCE
wait_for = workloads.wait_for
Fault, contents, differences, other_format = (workloads.Fault, workloads.contents, workloads.differences,
                                              workloads.other_format)

pytestmark = pytest.mark.skipif(shutil.which("mpirun") is None or not (BIN.parent / "lib/hsi/hsi_mpi.so").exists(),
                                reason="no mpirun, or no module hsi_mpi.so")
ALL = os.environ.get("HSI_MPI_ALL", "") not in ("", "0")
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
MPI_ENVIRONMENT = dict(ENVIRONMENT, OMPI_MCA_btl_vader_single_copy_mechanism="none", OMPI_MCA_btl="self,vader",
                       OMPI_MCA_orte_abort_on_non_zero_status="1")
TILES = ("-tile", "70", "16")


def mpirun(ranks, command, folder, env=None, **kwargs):
    return workloads.execute(MPIRUN + ["-n", str(ranks), *command], folder, env=env or MPI_ENVIRONMENT, **kwargs)


def started(ranks, command, folder):
    return subprocess.Popen(list(map(str, MPIRUN + ["-n", str(ranks), *command])), cwd=folder, env=MPI_ENVIRONMENT,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def end_of(process):
    out, err = process.communicate(timeout=PATIENCE)
    return workloads.Result(process.returncode, out.decode(errors="replace"), err.decode(errors="replace"))


def extra_of(job):
    return () if job.tool in ("gdal_hsi_sample", "gdal_hsi_accuracy", "gdal_hsi_info") else TILES


def with_extra(job):
    command = job.command()
    return command[:1] + list(extra_of(job)) + command[1:]


def spoil(data):
    """Adds nodata, one invalid value, and a zero pixel."""
    data[:, 3:9, 100:120] = np.nan
    data[2, 20, 7] = np.inf
    data[:, 30, 5] = 0


@pytest.fixture(scope="session", params=["small", "large"])
def material(request, tmp_path_factory):
    """small: fewer blocks and tiles than ranks. large: odd sizes, holes, several blocks of every statistic."""
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "small":
        return workloads.make_material(folder)
    return workloads.make_material(folder, 37, 2101 if ALL else 1101, spoil)


@pytest.fixture(scope="session")
def large(tmp_path_factory):
    """Makes only the large scene."""
    folder = tmp_path_factory.mktemp("scene")
    data = workloads.cube(1101, 37, 6, seed=3)
    spoil(data)
    workloads.write_scene(folder / "s.img", data, wavelengths=[450 + 40 * b for b in range(6)])
    return folder


def features(path):
    dataset = ogr.Open(str(path))
    return [[(f.GetGeometryRef().ExportToWkt() if f.GetGeometryRef() else None, f.items()) for f in dataset.GetLayer(i)]
            for i in range(dataset.GetLayerCount())]


def comparable(folder):
    """Returns contents() without reports, with GeoPackages (which contain times) as their features."""
    facts = contents(folder)
    for name in list(facts):
        if name == "run.json":
            report = json.loads(facts.pop(name)[1])
            facts[name] = {key: report[key] for key in ("tool", "command", "valid_pixels", "explained_variance",
                                                       "threshold", "detection", "residual")
                           if key in report}
        elif name.endswith(".gpkg"):
            facts[name] = features(folder / name)
    return facts


# A library has no tiles to divide.
JOBS = [job for job in workloads.OUTPUT_JOBS if job.name != "detect_library"] + [
    other_format(JOB["spp"], "spp_bil", ("-of", "ENVI", "-co", "INTERLEAVE=BIL"), dst="o.dat", alpha="a.dat",
                 rho="r.dat"),
    other_format(JOB["svm_classify"], "svm_classify_envi", ("-of", "ENVI"), dst="o.dat", probabilities="p.dat",
                 confidence="c.dat"),
    other_format(JOB["detect"], "detect_envi", ("-of", "ENVI"), dst="o.dat", map="m.dat"),
    other_format(JOB["synth"], "synth_envi", ("-of", "ENVI"), dst="o.dat", labels="l.dat"),
    workloads.Job("unmix", "gdal_hsi_unmix", ("-of", "ENVI", ("-rmse", "{rmse}"), ("-report", "{report}"), "s.img",
                                              "library.sli", "{dst}"),
                  {"dst": "o.dat", "rmse": "e.dat", "report": "run.json"}, devices=False),
    workloads.Job("svm_grid", "gdal_hsi_svm_train",
                  ("-C", "1", "-C", "8", "-C", "64", "-gamma", "0.25", "-gamma", "2", "-cv", "3", ("-report", "{report}"),
                   "-field", "class", "s.img", "fields.shp", "{model}"),
                  {"model": "new.json", "report": "run.json"}, devices=False),
    other_format(JOB["pca"], "pca_mask", ("-mask", "fields.shp")),
    other_format(JOB["mnf"], "mnf_mask", ("-mask-exclude", "fields.shp", "-mask-output")),
    other_format(JOB["eadp"], "eadp_mask", ("-mask", "fields.shp")),
    workloads.Job("info", "gdal_hsi_info", ("-count", "s.img"), {}, overwrite=False, devices=False, prints=True),
]
COUNTS = (1, 2, 3, 5)


def cases():
    for number, job in enumerate(JOBS):
        for ranks in COUNTS:
            # A sample: every job with two or three ranks, and these two jobs with all numbers of ranks.
            if ALL or ranks == (2, 3)[number % 2] or job.name in ("pca", "spp_envi"):
                yield pytest.param(job, ranks, id=f"{job.name}-{ranks}")


_alone = {}


@pytest.mark.parametrize("job, ranks", cases())
def test_many_write_what_one_writes(job, ranks, material, tmp_path):
    if "small" in str(material) and not ALL and job.name not in ("pca", "spp_envi"):
        pytest.skip("left to HSI_MPI_ALL=1")
    key = (job.name, str(material))
    if key not in _alone:
        folder = workloads.copy_of(material, tmp_path / "one")
        result = workloads.execute(with_extra(job), folder)
        assert result.code == 0, result.err
        _alone[key] = (comparable(folder), result)
        shutil.rmtree(folder)
    expected, alone = _alone[key]
    folder = workloads.copy_of(material, tmp_path / "many")
    result = mpirun(ranks, with_extra(job), folder)
    assert result.code == 0, result.out + result.err
    assert differences(expected, comparable(folder)) == ""
    if job.prints and job.tool != "gdal_hsi_sample":
        words = [line for line in alone.out.splitlines() if not line.startswith("0...")]
        assert [w for w in words if w not in result.out] == []
        assert result.out.count(words[-1]) == alone.out.count(words[-1])  # only one rank prints
    report = folder / "run.json"
    if report.exists() and ranks > 1:
        facts = json.loads(report.read_text())
        assert facts["ranks"] == ranks
        for one in facts["passes"]:
            if "ranks" in one:
                assert len(one["ranks"]) == ranks
                assert sum(r["tiles"] for r in one["ranks"]) == one["tiles"]


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_a_chain_of_several_ranks(ranks, large, tmp_path):
    """As one pipeline, and from a virtual scene: the bits of one process with files."""
    cpu = ["-q", "-device", "cpu", *TILES]
    scene = large / "s.img"
    one, many = tmp_path / "one", tmp_path / "many"
    for place, count in ((one, 0), (many, ranks)):
        place.mkdir()

        def work(*command, count=count, place=place):
            command = [BIN / f"gdal_hsi_{command[0]}", *cpu, *map(str, command[1:])]
            done = mpirun(count, command, place) if count else workloads.execute(command, place)
            assert done.code == 0, done.err
        if count:
            work("pipeline", "read", scene, "!", "spp", "-ws", 5, "!", "tee", "atdca", "-t", 4, "t.csv", "!", "tee", "write",
                 "y.dat", "!", "pca", "-nc", 3, "!", "tee", "mnf", "-nc", 2, "m.dat", "!", "write", "c.dat")
            work("pipeline", "read", scene, "!", "eadp", "-nc", 2, "!", "pca", "-nc", 2, "!", "write", "e.dat")
            work("pipeline", "read", "y.dat", "!", "compare", "-max-rmse", 0, "[", "read", scene, "!", "spp", "-ws", 5, "]")
            work("spp", "-ws", 5, scene, "y.hsi")
            work("pca", "-nc", 3, "y.hsi", "of_hsi.dat")
            work("mnf", "-nc", 2, "y.hsi", "m.hsi")
            work("pca", "-nc", 2, "m.hsi", "of_two.dat")
        else:
            work("spp", "-ws", 5, scene, "y.dat")
            work("atdca", "-t", 4, "y.dat", "t.csv")
            work("pca", "-nc", 3, "y.dat", "c.dat")
            work("mnf", "-nc", 2, "c.dat", "m.dat")
            work("mnf", "-nc", 2, "y.dat", "m_of_y.dat")
            work("pca", "-nc", 2, "m_of_y.dat", "of_two.dat")
            shutil.copy(place / "c.dat", place / "of_hsi.dat")
            work("eadp", "-nc", 2, scene, "eadp.dat")
            work("pca", "-nc", 2, "eadp.dat", "e.dat")
    for name in ("y.dat", "c.dat", "m.dat", "e.dat", "of_hsi.dat", "of_two.dat"):
        assert (many / name).read_bytes() == (one / name).read_bytes(), name
    assert (many / "t.csv").read_text() == (one / "t.csv").read_text()


def test_tiles_are_shared(large, tmp_path):
    folder = workloads.copy_of(large, tmp_path / "f")
    result = mpirun(2, spp() + ["-report", "run.json"], folder)
    assert result.code == 0, result.err
    passes = json.loads((folder / "run.json").read_text())["passes"]
    assert [len(p["ranks"]) for p in passes] == [2, 2]
    assert all(sum(r["tiles"] for r in p["ranks"]) == p["tiles"] for p in passes)
    assert passes[-1]["tiles"] == 69 * 3


SEARCHES = {
    "osp": ["gdal_hsi_atdca", "-device", "cpu", "-t", "6"],
    "gs": ["gdal_hsi_atdca", "-device", "cpu", "-t", "6", "-method", "gs"],
    "nfindr": ["gdal_hsi_endmembers", "-t", "6", "-method", "nfindr"],
    "vca": ["gdal_hsi_endmembers", "-t", "6", "-method", "vca"],
}
# The scene has 1 MB. It is kept by each rank, by all ranks together, or read again for every proof.
MEMORIES = ("64MB", "1.5MB", "1MB")


@pytest.mark.parametrize("search", SEARCHES)
def test_a_search_is_shared(search, large, tmp_path):
    folder = workloads.copy_of(large, tmp_path / "f")
    command = [BIN / SEARCHES[search][0], "-threads", "2", *SEARCHES[search][1:]]
    assert workloads.execute(command + ["s.img", "one.csv"], folder).code == 0
    expected = (folder / "one.csv").read_bytes()
    assert expected.count(b"\n") == 7
    ways = set()
    for ranks in COUNTS:
        for number, memory in enumerate(MEMORIES):
            if ranks != 2 and number != ranks % len(MEMORIES):
                continue  # two ranks use every memory size, other numbers of ranks one size
            dst = f"{ranks}_{number}.csv"
            result = mpirun(ranks, command + ["-memory", memory, "-report", "run.json", "-overwrite", "s.img", dst],
                            folder)
            assert result.code == 0, result.err
            assert (folder / dst).read_bytes() == expected, (ranks, memory)
            report = json.loads((folder / "run.json").read_text())
            ways.add(report.get("search", {}).get("in_memory"))
            for one in report["passes"]:
                assert len(one.get("ranks", [])) == (ranks if ranks > 1 else 0)
                assert sum(r["tiles"] for r in one.get("ranks", [])) in (one["tiles"], 0)
    assert search != "gs" or ways == {True, False}  # osp reads pixels again that the system holds


@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_that_cannot_read_its_share(rank, large, tmp_path):
    """On one rank, the end of the scene is missing, which the other ranks cannot see."""
    places = [tmp_path / "first", tmp_path / "second"]
    for place in places:
        workloads.copy_of(large, place)
    spoilt = places[rank] / "s.img"
    os.truncate(spoilt, spoilt.stat().st_size // 2)
    dst = tmp_path / "o.csv"
    command = [BIN / "gdal_hsi_atdca", "-device", "cpu", "-threads", "1", "-t", "6", "-method", "gs", "-tile", "37", "8",
               "s.img", dst]
    result = mpirun(2, each_its_own([command, command], places), tmp_path)
    fails(result, "s.img")
    assert not dst.exists()


def test_a_dry_run_plans_for_all_ranks(large, tmp_path):
    folder = workloads.copy_of(large, tmp_path / "f")
    before = contents(folder)
    result = mpirun(3, [BIN / "gdal_hsi_spp", "-dry-run", "-device", "cpu", "-threads", "1", "s.img", "o.dat"], folder)
    assert result.code == 0, result.err
    assert result.out.count("Pass centroid") == 1
    assert contents(folder) == before
    # The same plan, without starting the ranks; the processors are divided among them.
    alone = workloads.execute([BIN / "gdal_hsi_spp", "-dry-run", "-device", "cpu", "-threads", "1", "-ranks", "3", "s.img", "o.dat"], folder)
    tiles = re.compile(r"Pass .* of buffers")
    assert tiles.findall(alone.out) == tiles.findall(result.out) != []
    assert "writes about" in alone.out
    one = workloads.execute([BIN / "gdal_hsi_spp", "-dry-run", "-device", "cpu", "-threads", "1", "s.img", "o.dat"], folder)
    assert tiles.findall(one.out) != tiles.findall(alone.out)
    assert contents(folder) == before


def test_ranks_are_planned_only(large, tmp_path):
    folder = workloads.copy_of(large, tmp_path / "f")
    before = contents(folder)
    result = workloads.execute([BIN / "gdal_hsi_spp", "-ranks", "3", "s.img", "o.dat"], folder)
    assert result.code == 2 and "mpirun -n 3" in result.err
    result = workloads.execute([BIN / "gdal_hsi_spp", "-ranks", "0", "-dry-run", "s.img", "o.dat"], folder)
    assert result.code == 2
    assert contents(folder) == before


# --- failures
# -------------------------------------------------------------------------------------------------------------


def fails(result, *words, code=None):
    """Checks that our tool prints one message, regardless of mpirun's messages."""
    assert result.code != 0
    # Some mpiruns write rank 0's progress to their own standard error, so the message may begin within a line.
    errors = re.findall(r"ERROR: .*", result.err)
    assert len(errors) == 1, result.err
    for word in words:
        assert word in errors[0], result.err
    if code is not None:
        assert result.code == code, result.err


WRITERS = {"raw": ("ENVI", "o.dat"), "in_order": ("GTiff", "o.tif")}


def spp(format="ENVI", dst="o.dat"):
    return [BIN / "gdal_hsi_spp", "-device", "cpu", "-threads", "1", "-ws", "3", "-tile", "16", "16", "-of", format,
            "s.img", dst]


def with_faults(faults, folder, command, log_of):
    """Returns the command with faults[rank] on some ranks, each with its own log."""
    names = ("LD_PRELOAD", "HSI_FAULT_FOLDER", "HSI_FAULT_LOG", "HSI_FAULT_CALLS", "HSI_FAULT_NUMBER",
             "HSI_FAULT_KIND", "HSI_FAULT_GATE", "HSI_FAULT_SIGNAL")
    lines = []
    for rank, fault in faults.items():
        given = fault.environment(folder, log_of(rank))
        settings = " ".join(f"{name}={shlex.quote(str(given[name]))}" for name in names)
        lines.append(f'{rank}) exec env {settings} "$@" ;;')
    return ["/bin/sh", "-c", 'case "$OMPI_COMM_WORLD_RANK" in ' + " ".join(lines) + ' esac; exec "$@"', "sh", *command]


def only_on(rank, folder, fault, command, log):
    """Returns the command with a fault on one rank."""
    return with_faults({rank: fault}, folder, command, lambda _: log)


def each_its_own(commands, folders=()):
    """Rank r runs commands[r] in folders[r]. (mpirun's ":" is for this, but Open MPI 5.0.7 crashes on it.)"""
    lines = []
    for rank, command in enumerate(commands):
        words = " ".join(shlex.quote(str(word)) for word in command)
        place = f"cd {shlex.quote(str(folders[rank]))} && " if folders else ""
        lines.append(f"{rank}) {place}exec {words} ;;")
    return ["/bin/sh", "-c", 'case "$OMPI_COMM_WORLD_RANK" in ' + " ".join(lines) + " esac"]


@pytest.fixture
def place(large, tmp_path):
    why = workloads.shim_works(tmp_path)
    if why:
        pytest.skip(why)
    return workloads.copy_of(large, tmp_path / "f")


@pytest.mark.parametrize("way", WRITERS)
def test_a_full_disk_at_one_rank(way, place, tmp_path):
    before = contents(place)
    # When tiles are written in order, only the root has the file.
    rank = 2 if way == "raw" else 0
    fault = Fault(calls="write", number=3, kind="from:ENOSPC")
    result = mpirun(3, only_on(rank, place, fault, spp(*WRITERS[way]), tmp_path / "log"), place)
    fails(result, "No space left on device", f"(rank {rank} on ", code=1)
    assert differences(before, contents(place)) == ""


@pytest.mark.parametrize("way", WRITERS)
@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_that_is_killed(rank, way, place, tmp_path):
    before = contents(place)
    command = spp(*WRITERS[way])
    if way == "in_order" and rank == 1:  # this rank writes nothing: it dies while the root writes
        dies = f'if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then (while [ ! -e {tmp_path}/die ]; do sleep 0.1; done; kill -9 $$) & fi; '
        waits = Fault(calls="write", number=3, kind="wait", gate=tmp_path / "never")
        command = only_on(0, place, waits, command, tmp_path / "log")
        command = ["/bin/sh", "-c", dies + 'exec "$@"', "sh", *command]
        process = started(3, command, place)
        try:
            assert wait_for(lambda: workloads.was_hit(tmp_path / "log") or process.poll() is not None)
            (tmp_path / "die").touch()
            result = end_of(process)
        finally:
            process.kill()
    else:
        fault = Fault(calls="write", number=3, kind="raise", signal=int(signal.SIGKILL))
        result = mpirun(3, only_on(rank, place, fault, command, tmp_path / "log"), place)
    assert result.code != 0
    assert "signal 9" in result.err and f"rank {rank}" in result.err
    after = contents(place)
    assert WRITERS[way][1] not in after
    if rank != 0 and way == "raw":
        assert differences(before, after) == ""
        return
    # If the root has also died (mpirun gives it a second, and it waits), the next run removes its folder.
    assert workloads.execute(spp(*WRITERS[way]), place).code == 0
    assert not [name for name in contents(place) if name.startswith(".")]


def waiting(rank, gate):
    """Stops ranks in the middle of their tiles; rank 0 has written headers before."""
    return Fault(calls="write", number=1 if rank else 16, kind="wait", gate=gate)


def test_the_end_of_the_time_of_a_job(place, tmp_path):
    before = contents(place)
    # Rank 1 never completes its first write, and the others do not finish before it starts this write. So all of them
    # are in the middle, on any machine.
    never = Fault(calls="write", number=1, kind="wait", gate=tmp_path / "never")
    faults = {0: waiting(0, tmp_path / "go"), 1: never, 2: waiting(2, tmp_path / "go")}
    process = started(3, with_faults(faults, place, spp(), lambda rank: tmp_path / f"log{rank}"), place)
    try:
        assert wait_for(lambda: workloads.was_hit(tmp_path / "log1") or process.poll() is not None)
        assert process.poll() is None, process.communicate()
        (tmp_path / "go").touch()
        process.send_signal(signal.SIGTERM)
        result = end_of(process)
    finally:
        process.kill()
    assert result.code != 0
    # If an Open MPI with a short timeout kills the run, the next run removes its files.
    left = {name: fact for name, fact in contents(place).items() if not name.startswith(".o.dat.hsi-")}
    assert differences(before, left) == ""
    result = mpirun(1, spp(), place)
    assert result.code == 0, result.err
    assert not list(place.glob(".o.dat.hsi-*"))


@pytest.mark.parametrize("rank", [0, 2])
def test_a_signal_to_one_rank(rank, place, tmp_path):
    """The other ranks end with it, report this once, and leave no files."""
    before = contents(place)
    faults = {one: waiting(one, tmp_path / "go") for one in range(3)}
    process = started(3, with_faults(faults, place, spp(), lambda one: tmp_path / f"log{one}"), place)
    try:
        assert wait_for(lambda: all(workloads.was_hit(tmp_path / f"log{one}") for one in range(3))
                        or process.poll() is not None)
        assert process.poll() is None, process.communicate()
        os.kill(workloads.shim_pid(tmp_path / f"log{rank}"), signal.SIGTERM)
        (tmp_path / "go").touch()
        result = end_of(process)
    finally:
        process.kill()
    assert result.code != 0
    # On a busy machine the root may answer too late, and mpirun kills it.
    told = re.findall(r"ERROR: .*", result.err)
    assert told in ([], ["ERROR: interrupted"]), result.err
    left = {name: fact for name, fact in contents(place).items() if not name.startswith(".o.dat.hsi-")}
    assert differences(before, left) == ""


def test_an_old_dst_stays(place, tmp_path):
    (place / "o.dat").write_bytes(b"old")
    before = contents(place)
    result = mpirun(3, spp(), place)
    fails(result, "already exists", code=1)
    fault = Fault(calls="write", number=3, kind="EIO")
    command = spp()
    result = mpirun(3, only_on(1, place, fault, command[:1] + ["-overwrite"] + command[1:], tmp_path / "log"), place)
    fails(result, "(rank 1 on ", code=1)
    assert differences(before, contents(place)) == ""


def test_wrong_arguments_are_told_once(large, tmp_path):
    folder = workloads.copy_of(large, tmp_path / "f")
    before = contents(folder)
    fails(mpirun(3, [BIN / "gdal_hsi_spp", "-ws", "4", "s.img", "o.dat"], folder), "-ws", code=2)
    fails(mpirun(3, [BIN / "gdal_hsi_spp", "none.img", "o.dat"], folder), "none.img", code=1)
    assert contents(folder) == before


def test_other_arguments(large, tmp_path):
    folder = workloads.copy_of(large, tmp_path / "f")
    before = contents(folder)
    fails(mpirun(2, each_its_own([spp(), spp(dst="other.dat")]), folder), "rank 1 on ", "other arguments")
    assert contents(folder) == before


@pytest.mark.parametrize("what", ["size", "pixels", "header", "mask", "side file"])
def test_another_scene(large, tmp_path, what):
    """The name is equal, but the file differs on one rank."""
    here, there = workloads.copy_of(large, tmp_path / "here"), workloads.copy_of(large, tmp_path / "there")
    image, header, mask = there / "s.img", there / "s.hdr", there / "mask.tif"
    for folder in here, there:
        shutil.copy(folder / "s.img", folder / "mask.tif")
        shutil.copy(folder / "s.hdr", folder / "mask.hdr")
    if what == "size":
        workloads.write_scene(image, workloads.cube(20, 10, 6))
    elif what in ("pixels", "mask"):
        path = image if what == "pixels" else mask
        data = bytearray(path.read_bytes())
        data[len(data) // 3 & ~3] ^= 1
        path.write_bytes(data)
    elif what == "header":
        header.write_text(header.read_text() + "\ndata ignore value = 400\n")
    else:
        (there / "s.img.aux.xml").write_text("<PAMDataset><PAMRasterBand band='1'><NoDataValue>4</NoDataValue></PAMRasterBand></PAMDataset>")
    before, dst = contents(here), tmp_path / "o.dat"
    command = [BIN / "gdal_hsi_pca", "-device", "cpu", "-nc", "2", "-mask", "mask.tif", "s.img", dst]
    name = {"header": "s.hdr", "mask": "mask.tif", "side file": "s.img.aux.xml"}.get(what, "s.img")
    fails(mpirun(2, each_its_own([command] * 2, [here, there]), here), "rank 1 on ", "sees another file", name)
    assert contents(here) == before
    assert not dst.exists()


def test_another_model(large, tmp_path):
    here, there = workloads.copy_of(large, tmp_path / "here"), workloads.copy_of(large, tmp_path / "there")
    for folder, components in (here, "2"), (there, "3"):
        assert workloads.execute([BIN / "gdal_hsi_pca", "-nc", components, "-model", "model.json", "s.img", "x.tif"], folder).code == 0
    command = [BIN / "gdal_hsi_pca", "-device", "cpu", "-apply", "model.json", "s.img", tmp_path / "o.dat"]
    fails(mpirun(2, each_its_own([command] * 2, [here, there]), here), "rank 1 on ", "model.json")
    assert not (tmp_path / "o.dat").exists()
    pipeline = [BIN / "gdal_hsi_pipeline", "read", "s.img", "!", "pca", "-apply", "model.json", "!", "write", tmp_path / "o.dat"]
    fails(mpirun(2, each_its_own([pipeline] * 2, [here, there]), here), "rank 1 on ", "model.json")
    assert not (tmp_path / "o.dat").exists()


def test_other_settings_of_gdal(large, tmp_path):
    folder = workloads.copy_of(large, tmp_path / "f")
    before = contents(folder)
    command = spp()
    result = mpirun(2, each_its_own([command, ["env", "GDAL_PAM_ENABLED=NO", *command]]), folder)
    fails(result, "rank 1 on ", "other settings", "GDAL_PAM_ENABLED=NO and nothing", code=1)
    assert contents(folder) == before
    # Options that change no result, and equivalent forms.
    assert mpirun(2, each_its_own([command, ["env", "GDAL_CACHEMAX=200", "CPL_DEBUG=OFF", *command]]), folder).code == 0


def test_a_dst_that_ranks_do_not_share(large, tmp_path):
    if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], stderr=subprocess.DEVNULL).returncode != 0:
        pytest.skip("a mount of one rank's own needs root")
    folder = workloads.copy_of(large, tmp_path / "f")
    target = tmp_path / "target"
    target.mkdir()
    hide = (f'[ "$OMPI_COMM_WORLD_RANK" = 1 ] || exec "$@"; '
            f'exec unshare -m sh -c \'mount -t tmpfs none {target} && exec "$@"\' sh "$@"')
    before = contents(folder)
    result = mpirun(2, ["/bin/sh", "-c", hide, "sh", *spp(dst=target / "o.dat")], folder)
    fails(result, "(rank 1 on ", "of rank 0 cannot be opened here", code=1)
    assert "share" in result.err
    assert contents(folder) == before and list(target.iterdir()) == []


def test_without_the_module(tmp_path, large):
    folder = workloads.copy_of(large, tmp_path / "f")
    (tmp_path / "bin").mkdir()
    shutil.copy(BIN / "gdal_hsi_spp", tmp_path / "bin" / "gdal_hsi_spp", follow_symlinks=True)
    before = contents(folder)
    command = spp()
    command[0] = tmp_path / "bin" / "gdal_hsi_spp"
    for sign in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE"):
        result = workloads.execute(command, folder, env=dict(ENVIRONMENT, **{sign: "2"}))
        fails(result, "one of several", "hsi_mpi.so", code=1)
        assert contents(folder) == before
    assert workloads.execute(command, folder, env=dict(ENVIRONMENT, OMPI_COMM_WORLD_SIZE="2", HSI_MPI="NO")).code == 0


def test_another_version(large, tmp_path):
    """The same program, except for the digits of its version."""
    folder = workloads.copy_of(large, tmp_path / "f")
    version = workloads.execute([BIN / "gdal_hsi_spp", "--version"], folder).out.split()[1].rstrip(",").encode()
    program = (BIN / "gdal_hsi_spp").resolve().read_bytes()
    other = bytes(ord("9") if c != ord(".") else c for c in version)
    assert version in program and version != other
    newer = tmp_path / "gdal_hsi_spp"
    newer.write_bytes(program.replace(version, other))
    newer.chmod(0o755)
    before = contents(folder)
    command = spp()
    result = mpirun(2, each_its_own([command, [newer, *command[1:]]]), folder, env=dict(MPI_ENVIRONMENT, HSI_MODULE_PATH=str(BIN.parent / "lib/hsi")))
    fails(result, "rank 1 on ", "another version", code=1)
    assert contents(folder) == before


def test_strips_that_swap_their_borders(tmp_path):
    """EADP's diffusion, in as many strips as ranks; a strip has at least the sixteen lines that are exchanged."""
    folder = tmp_path / "f"
    folder.mkdir()
    values = workloads.cube(140, 57, 6).astype(np.float32)
    spoil(values)
    workloads.write_scene(folder / "s.img", values)
    for evolution in ("independent", "cascade"):
        command = [BIN / "gdal_hsi_eadp", "-device", "cpu", "-threads", "2", "-nc", "2", "-times", "5,30", "-evolution",
                   evolution, "-report", "run.json", "-overwrite"]
        assert workloads.execute([*command, "-of", "ENVI", "s.img", "one.dat"], folder).code == 0
        assert workloads.execute([*command, "s.img", "one.tif"], folder).code == 0
        for ranks in (2, 3):
            for name in ("dat", "tif"):
                extra = ("-of", "ENVI") if name == "dat" else ()
                result = mpirun(ranks, [*command, *extra, "s.img", f"many.{name}"], folder)
                assert result.code == 0, result.err
                passes = {p["name"]: p for p in json.loads((folder / "run.json").read_text())["passes"]}
                strips = passes["diffusion" if evolution == "independent" else "diffusion 2"]
                assert [r["tiles"] for r in strips["ranks"]] == [1] * ranks
                one, many = (gdal.Open(str(folder / f"{who}.{name}")).ReadAsArray() for who in ("one", "many"))
                assert one.tobytes() == many.tobytes(), (evolution, ranks, name)


# Runs the rest of the command line, and writes its peak memory in megabytes to a file of the rank.
HELD = """
import os, resource, subprocess, sys
code = subprocess.run(sys.argv[2:]).returncode
with open(os.path.join(sys.argv[1], os.environ["OMPI_COMM_WORLD_RANK"]), "w") as file:
    file.write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024))
sys.exit(code)
"""
MEMORY, BESIDE = 48, 150  # MB: -memory, and the additional memory of a rank, for any number of ranks


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """168 MB: a rank that held all of it, or all messages of the others, would be detected."""
    folder = tmp_path_factory.mktemp("wide")
    for args in (["gdal_hsi_synth", "-q", "-size", "640", "512", "128", "-of", "ENVI", "-labels", "labels.tif", "s.img"],
                 ["gdal_hsi_sample", "-q", "-n", "5", "labels.tif", "train.tif", "test.tif"]):
        assert workloads.execute([BIN / args[0], *args[1:]], folder).code == 0
    return folder


@pytest.mark.parametrize("ranks", [2, 5])
@pytest.mark.parametrize("job", ["spp_raw", "spp_in_order", "profile", "eadp", "mnf", "atdca", "sahic"])
def test_a_rank_keeps_to_its_memory(job, ranks, wide, tmp_path):
    cpu = ["-device", "cpu"]
    words = {"spp_raw": ["spp", *cpu, "-of", "ENVI", "s.img", "DST"],
             "spp_in_order": ["spp", *cpu, "-of", "GTiff", "s.img", "DST.tif"],
             "profile": ["profile", "-of", "ENVI", "s.img", "DST"],
             "eadp": ["eadp", *cpu, "-nc", "3", "-times", "5,10", "-of", "ENVI", "s.img", "DST"],
             "mnf": ["mnf", "-of", "ENVI", "s.img", "DST"],
             "atdca": ["atdca", *cpu, "-t", "8", "-method", "gs", "s.img", "DST.csv"],
             "sahic": ["sahic", *cpu, "-no-spatial", "s.img", "train.tif", "DST.tif"]}[job]
    command = [BIN / f"gdal_hsi_{words[0]}", "-q", "-threads", "2", "-memory", f"{MEMORY}MB"]
    command += [word.replace("DST", str(tmp_path / "dst")) for word in words[1:]]
    result = mpirun(ranks, [sys.executable, "-c", HELD, tmp_path, *command], wide)
    assert result.code == 0, result.err
    held = [float((tmp_path / str(rank)).read_text()) for rank in range(ranks)]
    assert max(held) <= MEMORY + BESIDE, held


def test_tiles_of_a_field_are_shared(wide, tmp_path):
    """Each rank solves some tiles. Sums over tiles in their order also have the bits of one process."""
    command = [BIN / "gdal_hsi_sahic", "-q", "-device", "cpu", "-threads", "1", "-b", "1-8", "-srcwin", "0", "0", "300", "200",
               "-tile", "160", "70", "-iterations", "20", "-overwrite", "-report", tmp_path / "run.json", "-probabilities",
               tmp_path / "p.tif", "s.img", "train.tif", tmp_path / "map.tif"]
    facts = []
    for ranks in (1, 2, 3):
        result = workloads.execute(command, wide) if ranks == 1 else mpirun(ranks, command, wide)
        assert result.code == 0, result.err
        report = json.loads((tmp_path / "run.json").read_text())
        shared = [p for p in report["passes"] if p["name"] == "mrf"]
        assert len(shared) == 1, report["passes"]
        if ranks > 1:
            assert [r["tiles"] for r in shared[0]["ranks"]] == [6 // ranks] * ranks
        facts.append((report["mrf"], [gdal.Open(str(tmp_path / name)).ReadAsArray().tobytes()
                                      for name in ("map.tif", "p.tif")]))
    assert facts[0] == facts[1] == facts[2]


FIELD = [BIN / "gdal_hsi_regularize", "-q", "-device", "cpu", "-threads", "2", "-of", "ENVI"]


@pytest.fixture(scope="module")
def probabilities(wide):
    command = [BIN / "gdal_hsi_sahic", "-q", "-device", "cpu", "-b", "1-8", "-srcwin", "0", "0", "300", "200", "-no-spatial",
               "-of", "ENVI", "-probabilities", "p.dat", "s.img", "train.tif", "map.dat"]
    assert workloads.execute(command, wide).code == 0
    return wide


def test_a_field_of_the_whole_scene_is_solved_together(probabilities, tmp_path):
    results = set()
    for ranks in (1, 2, 3):
        command = [*FIELD, "-overwrite", "-report", tmp_path / "run.json", "p.dat", tmp_path / "q.dat"]
        result = workloads.execute(command, probabilities) if ranks == 1 else mpirun(ranks, command, probabilities)
        assert result.code == 0, result.err
        report = json.loads((tmp_path / "run.json").read_text())
        solved = next(p for p in report["passes"] if p["name"] == "mrf")
        if ranks > 1:  # the tile belongs to rank 0, but all ranks work on it
            assert [r["tiles"] for r in solved["ranks"]] == [1] + [0] * (ranks - 1)
            assert min(r["compute_seconds"] for r in solved["ranks"]) > 0
        results.add((json.dumps(report["mrf"]), (tmp_path / "q.dat").read_bytes()))
    assert len(results) == 1


def solvers(folder):
    """Returns the ids of the processes that share the field's memory."""
    found = []
    for maps in pathlib.Path("/proc").glob("[0-9]*/maps"):
        try:
            if os.readlink(maps.parent / "cwd") == str(folder) and "memfd:hsi_joint" in maps.read_text():
                found.append(int(maps.parent.name))
        except OSError:  # the process has ended, or belongs to another user
            pass
    return found


@pytest.mark.parametrize("end", ["the job's", "a rank's"])
def test_the_end_in_the_middle_of_a_field(end, probabilities, tmp_path):
    folder = workloads.copy_of(probabilities, (tmp_path / "f").resolve())
    before = contents(folder)
    process = started(2, [*FIELD, "-iterations", "1000000", "p.dat", "q.dat"], folder)
    try:
        assert wait_for(lambda: len(solvers(folder)) == 2 or process.poll() is not None)
        assert process.poll() is None, process.communicate()
        time.sleep(0.5)  # during the iterations, or shortly before
        if end == "the job's":
            process.send_signal(signal.SIGTERM)
        else:
            os.kill(max(solvers(folder)), signal.SIGKILL)
        end_of(process)
    finally:
        process.kill()
    assert process.returncode != 0
    assert wait_for(lambda: not solvers(folder))
    left = {name: fact for name, fact in contents(folder).items() if not name.startswith(".q.dat.hsi-")}
    assert differences(before, left) == ""
