# SPDX-License-Identifier: MIT
"""Signals in every phase of a run: before each call that makes, writes, renames or removes a file, and during the
computation of a larger scene. A run that is asked to end does so at once and leaves no files. A killed run leaves only
files that the next run to the same outputs removes."""

import os
import shutil
import signal
import subprocess
import time

import numpy as np
import pytest

import test_faults
from test_faults import is_hidden, judge
from suite import PATIENCE, wait_for, work_after_signal
from workloads import (ALL, BIN, ENVIRONMENT, JOB, OUTPUT_JOBS, Fault, contents, copy_of, cube, execute,
                       in_parallel, same_product, sampled, shim_log, shim_works, spread, was_hit,
                       write_scene)

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGXCPU)
THREADS = 2
BOUND = 2.0 * THREADS  # processor seconds from the signal to the end: two seconds on a quiet machine


@pytest.fixture(scope="session")
def shim(tmp_path_factory):
    reason = shim_works(tmp_path_factory.mktemp("shim"))
    if reason:
        pytest.skip(f"NO SIGNAL WAS TRIED: {reason}")


def starts_of(job, material, tmp_path):
    """Returns {overwrite: (initial folder, {output: the result of an undisturbed run})}."""
    clean_at = copy_of(material, tmp_path / "clean")
    before = contents(clean_at)
    assert execute(job.command(), clean_at).code == 0
    clean = {name: fact for name, fact in contents(clean_at).items() if name not in before}
    test_faults._clean_folders[id(clean)] = clean_at
    starts = {False: (material, clean)}
    if job.overwrite:
        old_at = copy_of(material, tmp_path / "old")
        for name in clean:
            (old_at / name).write_bytes((clean_at / name).read_bytes() + b"\n")
        over_at = copy_of(old_at, tmp_path / "over")
        assert execute(job.command(overwrite=True), over_at).code == 0
        over = {name: fact for name, fact in contents(over_at).items() if name in clean}
        test_faults._clean_folders[id(over)] = over_at
        starts[True] = (old_at, over)
    return starts


def calls_of(job, starts, overwrite, tmp_path):
    folder = copy_of(starts[overwrite][0], tmp_path / f"count{overwrite}")
    log = tmp_path / f"count{overwrite}.log"
    result = execute(job.command(overwrite=overwrite), folder, env=Fault().environment(folder, log))
    assert result.code == 0, result.err
    return shim_log(log)[0]


@pytest.mark.parametrize("job", sampled(OUTPUT_JOBS, "atdca_shape", "pca_cog", "sahic", "spp_envi"))
def test_ending_at_every_call(shim, job, material, tmp_path):
    starts = starts_of(job, material, tmp_path)
    cases = []
    for k, overwrite in enumerate(starts):
        for number in spread(calls_of(job, starts, overwrite, tmp_path), 9):
            for which in (ENDING if ALL else [ENDING[(number + k) % len(ENDING)]]):
                cases.append((len(cases), overwrite, Fault("all", number, "raise", signal=int(which))))

    def run(case):
        number, overwrite, fault = case
        start, expected = starts[overwrite]
        folder = copy_of(start, tmp_path / f"run{number}")
        log = tmp_path / f"log{number}"
        before = contents(folder)
        result = execute(job.command(overwrite=overwrite), folder, env=fault.environment(folder, log))
        _, hit, what = shim_log(log)
        if result.code == -fault.signal:  # ended by the signal itself, which is as good as an exit code if no files are left
            result = result._replace(code=1)
        if result.code != 0 and not result.err.startswith("ERROR: "):
            result = result._replace(err="ERROR: " + result.err)
        wrong = judge(job, result, fault, what, before, folder, expected) if hit else None
        shutil.rmtree(folder)
        name = signal.Signals(fault.signal).name
        return hit, f"{name} at {what}{', -overwrite' if overwrite else ''}: {wrong}" if wrong else None

    ends = in_parallel(run, cases)
    tried = sum(1 for hit, _ in ends if hit)
    print(f"{job.name}: {tried} signals")
    wrong = [line for _, line in ends if line]
    assert tried and not wrong, f"{len(wrong)} of {tried} signals:\n" + "\n".join(wrong)


KILLED = ["pca", "spp_envi", "atdca", "atdca_texts", "svm_train", "sahic", "pca_vrt", "pca_cog", "svm_classify_png",
          "sample", "accuracy"]


@pytest.mark.parametrize("job", sampled([job for job in OUTPUT_JOBS if job.name in KILLED], "atdca", "pca_cog"))
def test_killed_and_run_again(shim, job, material, tmp_path):
    """The files of a killed run are hidden, and the next run to the same outputs removes them."""
    starts = starts_of(job, material, tmp_path)
    total = calls_of(job, starts, False, tmp_path)

    def run(number):
        folder = copy_of(material, tmp_path / f"run{number}")
        log = tmp_path / f"log{number}"
        inputs = contents(folder)
        fault = Fault("all", number, "raise", signal=int(signal.SIGKILL))
        result = execute(job.command(), folder, env=fault.environment(folder, log))
        _, hit, what = shim_log(log)
        if not hit:
            return hit, None
        after = contents(folder)
        clean = starts[False][1]
        problems = []
        if result.code != -signal.SIGKILL:
            problems.append(f"exit code {result.code}")
        if [name for name in inputs if inputs[name] != after.get(name)]:
            problems.append("an input changed")
        strange = [n for n in after if n not in inputs and n not in clean and not is_hidden(n)]
        if strange:
            problems.append(f"left {strange} in sight")
        torn = [n for n in clean if n in after and not same_product(test_faults.clean_folder(clean) / n, folder / n)]
        if torn:
            problems.append(f"left parts of {torn} under their names")
        again = execute(job.command(overwrite=True), folder)
        expected = set(inputs) | set(clean)
        if again.code != 0 or set(contents(folder)) != expected:
            problems.append(f"then exit code {again.code} and {sorted(set(contents(folder)) ^ expected)}")
        shutil.rmtree(folder)
        return hit, f"killed at {what}: {'; '.join(problems)}" if problems else None

    ends = in_parallel(run, spread(total, 8))
    tried = sum(1 for hit, _ in ends if hit)
    wrong = [line for _, line in ends if line]
    print(f"{job.name}: {tried} kills")
    assert tried and not wrong, f"{len(wrong)} of {tried} kills:\n" + "\n".join(wrong)


@pytest.mark.parametrize("name", sampled(["pca", "spp_envi", "atdca", "svm_train"], "pca"))
def test_a_run_leaves_the_files_of_a_living_one(shim, name, material, tmp_path):
    """While one run waits during its writing, another run to the same outputs begins and ends."""
    job = JOB[name]
    starts = starts_of(job, material, tmp_path)
    total = calls_of(job, starts, False, tmp_path)
    clean = starts[True][1]
    met = 0
    for number in spread(max(total - 2, 1), 3):
        folder = copy_of(material, tmp_path / f"run{number}")
        inputs = contents(folder)
        log = tmp_path / f"log{number}"
        gate = tmp_path / f"gate{number}"
        fault = Fault("all", number, "wait", gate=gate)
        first = subprocess.Popen(job.command(overwrite=True), cwd=folder, env=fault.environment(folder, log),
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE)
        try:
            assert wait_for(lambda: was_hit(log) or first.poll() is not None)
            met += was_hit(log)
            second = execute(job.command(overwrite=True), folder)
            gate.touch()
            _, err = first.communicate(timeout=PATIENCE)
        finally:
            first.kill()
        assert (first.returncode, second.code) == (0, 0), err.decode() + second.err
        after = contents(folder)
        assert set(after) == set(inputs) | set(clean)
        wrong = [n for n in clean if not same_product(test_faults.clean_folder(clean) / n, folder / n)]
        assert not wrong
    assert met


# --- a larger scene -------------------------------------------------------------------------------------------------------

@pytest.fixture(scope="session")
def large(tmp_path_factory):
    """Makes a scene with some seconds of work, its labels and models."""
    folder = tmp_path_factory.mktemp("large")
    samples, lines, bands = 480, 400, 40
    write_scene(folder / "s.img", cube(samples, lines, bands, seed=2).astype(np.float32),
                wavelengths=[400 + 10 * b for b in range(bands)])
    truth = (np.arange(lines)[:, None] // 7 + np.arange(samples)[None, :] // 5) % 5 + 1
    few = np.where(np.random.default_rng(1).random(truth.shape) < 0.004, truth, 0)
    write_scene(folder / "few.tif", few[None], driver="GTiff", dtype="u1", nodata=0)
    write_scene(folder / "all.tif", truth[None], driver="GTiff", dtype="u1", nodata=0)
    for command in (["gdal_hsi_svm_train", "-q", "-C", 8, "-gamma", 1, "-probability", "s.img", "few.tif", "svm.json"],):
        assert execute([BIN / command[0], *command[1:]], folder).code == 0
    return folder


LONG_RUNS = {
    "pca GTiff": ["gdal_hsi_pca", "-nc", 30, "-model", "new.json", "s.img", "o.tif"],
    "pca ENVI": ["gdal_hsi_pca", "-nc", 30, "-of", "ENVI", "s.img", "o.img"],
    "pca COG": ["gdal_hsi_pca", "-nc", 30, "-of", "COG", "s.img", "o.tif"],
    "spp DEFLATE": ["gdal_hsi_spp", "-ws", 9, "-co", "COMPRESS=DEFLATE", "-alpha", "alpha.tif", "s.img", "o.tif"],
    "eadp": ["gdal_hsi_eadp", "-nc", 4, "-c", 4, "s.img", "o.tif"],
    "atdca": ["gdal_hsi_atdca", "-t", 20, "-map", "near.tif", "-scores", "scores.tif", "s.img", "o.gpkg"],
    "vd": ["gdal_hsi_vd", "-report", "run.json", "s.img"],
    "sample": ["gdal_hsi_sample", "-n", 500, "-min-distance", 3, "all.tif", "o.tif", "test.tif"],
    "svm_train": ["gdal_hsi_svm_train", "s.img", "few.tif", "o.json"],
    "svm_classify": ["gdal_hsi_svm_classify", "-probabilities", "p.tif", "s.img", "svm.json", "o.tif"],
    "sahic": ["gdal_hsi_sahic", "-probabilities", "p.tif", "s.img", "few.tif", "o.tif"],
    "compare": ["gdal_hsi_compare", "-map", "o.tif", "-metric", "nrmse,ssim", "s.img", "s.img"],
    "accuracy": ["gdal_hsi_accuracy", "-csv", "o.csv", "all.tif", "all.tif"],
    "synth": ["gdal_hsi_synth", "-size", 500, 500, 60, "-labels", "l.tif", "o.tif"],
}


@pytest.mark.parametrize("name", sampled(list(LONG_RUNS), "pca COG", "spp DEFLATE", "svm_classify"))
def test_the_answer_to_a_signal_comes_in_time(name, large, tmp_path):
    threads = () if name in ("sample", "accuracy") else ("-threads", THREADS)
    command = [BIN / LONG_RUNS[name][0], *threads, *LONG_RUNS[name][1:]]
    folder = tmp_path / "work"
    folder.mkdir()
    for path in large.iterdir():
        os.link(path, folder / path.name)
    before = set(os.listdir(folder))
    begin = time.monotonic()
    assert execute(command, folder).code == 0
    whole = time.monotonic() - begin
    products = set(os.listdir(folder)) - before
    for product in products:
        (folder / product).unlink()
    wrong = []
    shares = np.linspace(0.05, 0.95, 19) if ALL else (0.1, 0.4, 0.65, 0.9)
    for k, share in enumerate(shares):
        process = subprocess.Popen(list(map(str, command)), cwd=folder, env=ENVIRONMENT,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(share * whole)
        work = work_after_signal(process, ENDING[k % len(ENDING)])
        code = process.returncode
        left = set(os.listdir(folder)) - before
        if work > BOUND:
            wrong.append(f"at {share:.0%} of {whole:.1f} s: the answer took {work:.1f} s of processors (bound {BOUND:.1f})")
        if code == 0:
            if left != products:
                wrong.append(f"at {share:.0%}: exit code 0 and {sorted(left ^ products)}")
        elif {n for n in left if n != "run.json"}:
            wrong.append(f"at {share:.0%}: exit code {code} and left {sorted(left)}")
        for product in left:
            path = folder / product
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert not wrong, "\n".join(wrong)
