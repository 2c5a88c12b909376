# SPDX-License-Identifier: MIT
"""System calls that fail during a run: a full disk, a quota, a device error, EINTR of a signal, a shortened write; at
writing, syncing, renaming, opening, closing, truncating, making folders, unlinking, linking.

After each run, the whole folder is compared. Either the exit code is 0 and every output is new, complete and equal to
that of an undisturbed run, or the exit code differs from 0 and every file is unchanged. There must be no other files
and no mixtures.
"""

import collections
import json
import shutil

import pytest

from workloads import (ALL, OUTPUT_JOBS, Fault, contents, copy_of, differences, execute, in_parallel, same_product,
                       sampled, shim_log, shim_works, spread)

FAULTS = [
    ("write", "ENOSPC"), ("write", "from:ENOSPC"), ("write", "EIO"), ("write", "EDQUOT"), ("write", "EINTR"),
    ("write", "short"),
    ("sync", "EIO"), ("sync", "EINTR"),
    ("rename", "EIO"), ("rename", "ENOSPC"),
    ("link", "EIO"), ("link", "EPERM"),
    ("open", "ENOSPC"), ("open", "EACCES"), ("open", "EDQUOT"),
    ("close", "EIO"), ("close", "ENOSPC"), ("close", "EINTR"),
    ("truncate", "ENOSPC"), ("truncate", "EIO"),
    ("mkdir", "ENOSPC"), ("mkdir", "EACCES"),
    ("unlink", "EIO"), ("unlink", "EACCES"),
]
OUR_OWN_TEXTS = (".json", ".svm", ".sli", "targets.csv", "new.csv")


@pytest.fixture(scope="session", autouse=True)
def shim(tmp_path_factory):
    reason = shim_works(tmp_path_factory.mktemp("shim"))
    if reason:
        pytest.skip(f"NO FAULT WAS TRIED: {reason}")


def record_of_failure(folder, name="run.json"):
    """Returns true if the report exists and is the complete record of a failed run."""
    try:
        return "error" in json.loads((folder / name).read_text())
    except (ValueError, OSError):
        return False


def judge(job, result, fault, what, before, folder, clean):
    """Returns a description of what is wrong after a run, or None."""
    after = contents(folder)
    made = {name for name in clean if name not in before or before[name] != clean[name]} | set(job.outputs.values())
    if result.code == 0:
        lost = sorted(set(before) - set(after))
        wrong = sorted(name for name in made if not (folder / name).is_file() or
                       not same_product(clean_folder(clean) / name, folder / name))
        touched = sorted(name for name in before if name not in made and before[name] != after.get(name))
        debris = sorted(set(after) - set(before) - made)
        if lost or wrong or touched or debris:
            return f"exit code 0; lost {lost}, not as undisturbed {wrong}, touched {touched}, debris {debris}"
        if fault.calls == "sync" and fault.kind == "EIO" and "the folder" not in what:
            return "exit code 0 although a file could not be brought to the disk"
        return None
    if result.code < 0:
        return f"killed by signal {-result.code}; {differences(before, after)}"
    if fault.kind == "short":
        return f"a short write was not survived: exit code {result.code}: {result.err.strip().splitlines()[:1]}"
    if fault.kind == "EINTR" and any(end in what for end in OUR_OWN_TEXTS):
        return f"EINTR was not survived: exit code {result.code}: {result.err.strip().splitlines()[:1]}"
    if "report" in job.outputs and record_of_failure(folder):
        after["run.json"] = before.get("run.json")
        if after["run.json"] is None:
            del after["run.json"]
    if fault.calls == "unlink":  # files that could not be removed stay hidden until the next run to the same outputs
        after = {name: fact for name, fact in after.items() if name in before or not is_hidden(name)}
    change = differences(before, after)
    if change:
        old = [name for name in made if name in before and before[name] == after.get(name)]
        new = [name for name in made if name in after and before.get(name) != after[name]]
        mixed = " (MIXED: some outputs are new, some old)" if old and new else ""
        return f"exit code {result.code}; {change}{mixed}"
    told = [line for line in result.err.splitlines() if not line.startswith("Warning: ")]  # warnings that the job always prints
    if not told or not told[0].startswith("ERROR: "):
        return f"exit code {result.code}, but stderr begins with {result.err[:80]!r}"
    return None


def is_hidden(name):
    return name.startswith(".") and ".hsi-" in name.split("/")[0]


_clean_folders = {}


def clean_folder(clean):
    return _clean_folders[id(clean)]


# The sample: a GeoPackage with text and rasters, a COG, a copy by a driver, a raw file.
@pytest.mark.parametrize("job", sampled(OUTPUT_JOBS, "atdca", "pca_cog", "svm_classify_png", "spp_envi"))
def test_every_call_may_fail(job, material, tmp_path):
    clean_at = copy_of(material, tmp_path / "clean")
    inputs = contents(clean_at)
    done = execute(job.command(), clean_at)
    assert done.code == 0, done.err
    clean = {name: fact for name, fact in contents(clean_at).items() if name not in inputs or fact != inputs[name]}
    _clean_folders[id(clean)] = clean_at

    # With -overwrite, the history in products has a different text. So it needs its own clean run over old outputs with
    # another command line, to distinguish old files from new ones.
    old_at = copy_of(material, tmp_path / "old")
    for name in clean:
        shutil.copy(clean_at / name, old_at / name)
        with open(old_at / name, "ab") as file:
            file.write(b"\n")
    clean_over_at = copy_of(old_at, tmp_path / "clean_over")
    done = execute(job.command(overwrite=True), clean_over_at)
    assert done.code == 0, done.err
    over = {name: fact for name, fact in contents(clean_over_at).items() if name in clean}
    assert set(over) == set(clean)
    _clean_folders[id(over)] = clean_over_at

    starts = {False: (material, clean), True: (old_at, over)}
    if not job.overwrite:
        starts = {False: (material, clean)}

    def run(case):
        number, fault, overwrite = case
        start, expected = starts[overwrite]
        folder = copy_of(start, tmp_path / f"run{number}")
        log = tmp_path / f"log{number}"
        before = contents(folder)
        result = execute(job.command(overwrite=overwrite), folder, env=fault.environment(folder, log))
        calls, hit, what = shim_log(log)
        wrong = judge(job, result, fault, what, before, folder, expected) if hit else None
        if wrong is None and hit and fault.calls == "unlink" and [n for n in contents(folder) if is_hidden(n)]:
            again = execute(job.command(overwrite=True), folder)
            left = [n for n in contents(folder) if is_hidden(n)]
            if again.code != 0 or left:
                wrong = f"the next run leaves {left}, exit code {again.code}"
        shutil.rmtree(folder)
        log.unlink()
        return calls, hit, f"{fault.kind} at {fault.calls} {what}{', -overwrite' if overwrite else ''}: {wrong}" \
            if wrong else None

    kinds = sorted({calls for calls, _ in FAULTS})
    counting = [(f"count{i}", Fault(calls), overwrite) for i, (calls, overwrite) in
                enumerate((c, o) for c in kinds for o in starts)]
    totals = {(case[1].calls, case[2]): counted for case, (counted, _, _) in zip(counting, in_parallel(run, counting))}
    assert totals[("write", False)] > 0, "the shim saw no write at all"

    cases = []
    for index, (calls, kind) in enumerate(FAULTS):
        # A sample alternates between the two states of the folder.
        states = list(starts) if ALL else [list(starts)[index % len(starts)]]
        for overwrite in states:
            total = totals[(calls, overwrite)]
            most = 4 if calls in ("write", "rename") else 2
            if (calls, kind) == ("open", "EACCES"):  # each one opens a different file, and one was missed before
                most = total
            for number in spread(total, most):
                cases.append((len(cases), Fault(calls, number, kind), overwrite))
    ends = in_parallel(run, cases)
    tried = sum(1 for _, hit, _ in ends if hit)
    print(f"{job.name}: {tried} faults")
    assert tried > 0
    wrong = [line for _, _, line in ends if line]
    by_kind = collections.Counter(line.split(" ")[2] for line in wrong)
    assert not wrong, f"{len(wrong)} of {tried} faults ({dict(by_kind)}):\n" + "\n".join(wrong)
