# SPDX-License-Identifier: MIT
"""The files in docs/campaigns.md work as described: a campaign of small scenes that is killed at random and restarted
gives the bytes of an undisturbed one, and completed work is not repeated."""
import collections
import os
import random
import re
import shutil
import signal
import subprocess
import time
import types

import numpy as np
import pytest
from conftest import BIN, PATIENCE, ROOT, cube, write_scene

SCENES = int(os.environ.get("HSI_TEST_SCENES", 12))  # 200 runs the shares of a campaign
KILLS, JOBS = 4, 2
PAGE = ROOT / "docs" / "campaigns.md"
OUTPUTS = [f"line{k}.stat" for k in range(SCENES)] + ["campaign.stat"] + [f"line{k}.pcs.tif" for k in range(SCENES)]


def file_of_page(name):
    """Returns a file of the page, without -q, so that a tool reports when it has nothing to do."""
    text = re.search(r"<!-- file: %s -->\n```\w*\n(.*?)^```" % re.escape(name), PAGE.read_text(), re.DOTALL | re.MULTILINE).group(1)
    return text.replace(" -q ", " ")


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scenes")
    for k in range(SCENES):
        write_scene(folder / f"line{k}.img", np.round(cube(40, 30 + k % 5, 12, seed=k)), dtype="u2", wavelengths=[500 + 10 * b for b in range(12)])
    return folder


@pytest.fixture(scope="module")
def undisturbed(scenes, tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed") / "campaign"
    shutil.copytree(scenes, folder)
    lines = [f"line{k}" for k in range(SCENES)]

    def tool(name, *args):
        subprocess.run([BIN / name, "-if-needed", *args], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    for line in lines:
        tool("gdal_hsi_statistics", f"{line}.img", "-o", f"{line}.stat")
    tool("gdal_hsi_statistics", *(f"{line}.stat" for line in sorted(lines)), "-o", "campaign.stat")
    for line in lines:
        tool("gdal_hsi_pca", "-nc", "3", "-statistics", "campaign.stat", f"{line}.img", f"{line}.pcs.tif")
    return {name: (folder / name).read_bytes() for name in OUTPUTS}


@pytest.fixture
def campaign(tmp_path, scenes):
    """Makes a folder with the scenes, and tools that record which outputs they made or found."""
    folder = tmp_path / "campaign"
    shutil.copytree(scenes, folder)
    tools = tmp_path / "tools"
    tools.mkdir()
    log = tmp_path / "log"
    log.touch()
    for name, last in (("gdal_hsi_statistics", "*.stat) out=$word"), ("gdal_hsi_pca", "*.pcs.tif) out=$word")):
        (tools / name).write_text(f"""#!/bin/sh
for word; do case $word in {last} ;; esac; done
said=$('{BIN}/{name}' "$@") || exit
case $said in *"Nothing to do"*) what=found ;; *) what=made ;; esac
echo $what $out >> '{log}'
""")
        (tools / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}

    def counts():
        found = collections.Counter(tuple(line.split()) for line in log.read_text().splitlines())
        return {name: found[("made", name)] for name in OUTPUTS}, sum(n for (what, _), n in found.items() if what == "found")
    return types.SimpleNamespace(folder=folder, environment=environment, counts=counts, log=log)


def ends(campaign, command, wait=None):
    """Returns true if the command, a list or a text for the shell, succeeds. Kills it with all its children after
    `wait` seconds."""
    process = subprocess.Popen(command, cwd=campaign.folder, env=campaign.environment, shell=isinstance(command, str), start_new_session=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        out, _ = process.communicate(timeout=PATIENCE if wait is None else wait)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return False
    if wait is None:
        assert process.returncode == 0, out.decode(errors="replace")
    return process.returncode == 0


def disturb(campaign, command, seed, before=lambda: None):
    """Kills the command a few times, each time after a share of the current time of an undisturbed run; then lets it
    end."""
    random_numbers = random.Random(seed)
    whole = time.monotonic()
    copy = campaign.folder.with_name("timed")
    shutil.copytree(campaign.folder, copy)
    assert ends(types.SimpleNamespace(**{**vars(campaign), "folder": copy}), command)
    whole = time.monotonic() - whole
    campaign.log.write_text("")
    killed = 0
    for _ in range(KILLS):
        killed += not ends(campaign, command, random_numbers.uniform(0.1, 0.6) * whole)
        before()
    assert ends(campaign, command)
    return killed


def check(campaign, undisturbed, command, killed):
    for name, want in undisturbed.items():
        assert (campaign.folder / name).read_bytes() == want, name
    made, _ = campaign.counts()
    # A kill stops all running commands; one may have ended at that moment, before it wrote its record.
    again = sum(made.values()) - len(OUTPUTS)
    print(f"{len(OUTPUTS)} outputs of {SCENES} scenes, killed {killed} times: {again} made twice ({100 * again / len(OUTPUTS):.2f} %)")
    assert again <= killed * JOBS
    assert SCENES < 200 or again < 0.02 * len(OUTPUTS)
    before = {name: (campaign.folder / name).stat().st_mtime_ns for name in OUTPUTS}
    campaign.log.write_text("")
    assert ends(campaign, command)
    assert sum(campaign.counts()[0].values()) == 0
    assert {name: (campaign.folder / name).stat().st_mtime_ns for name in OUTPUTS} == before


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make(campaign, undisturbed):
    (campaign.folder / "Makefile").write_text(file_of_page("Makefile"))
    command = ["make", f"-j{JOBS}"]
    killed = disturb(campaign, command, 1)
    check(campaign, undisturbed, command, killed)
    # One flight line changes: only it, the statistics and all components are computed again.
    data = bytearray((campaign.folder / "line3.img").read_bytes())
    data[0] ^= 1
    (campaign.folder / "line3.img").write_bytes(data)
    campaign.log.write_text("")
    assert ends(campaign, command)
    made, _ = campaign.counts()
    assert {name for name, n in made.items() if n} == {"line3.stat", "campaign.stat"} | {f"line{k}.pcs.tif" for k in range(SCENES)}


@pytest.mark.skipif(shutil.which("snakemake") is None, reason="snakemake is not installed")
def test_snakemake(campaign, undisturbed):
    (campaign.folder / "Snakefile").write_text(file_of_page("Snakefile"))
    command = ["snakemake", "--cores", str(JOBS), "--rerun-incomplete", "--quiet"]

    def unlock():
        subprocess.run(["snakemake", "--unlock", "--cores", "1"], cwd=campaign.folder, env=campaign.environment, capture_output=True)
    killed = disturb(campaign, command, 2, unlock)
    check(campaign, undisturbed, command, killed)


def test_slurm_arrays(campaign, undisturbed):
    """Runs two jobs of each array at a time, as in JOBS, each with the number that Slurm gives it."""
    for name in "lines.sbatch", "components.sbatch":
        (campaign.folder / name).write_text(file_of_page(name))
    between = re.search(r"`(gdal_hsi_statistics [^`]*)` between", PAGE.read_text()).group(1).replace(" -q ", " ")

    def array(script):
        jobs = [f"SLURM_ARRAY_TASK_COUNT={JOBS} SLURM_ARRAY_TASK_ID={k} sh {script} & p{k}=$!" for k in range(JOBS)]
        return "\n".join(jobs + [f"wait $p{k} || exit 1" for k in range(JOBS)])
    command = "\n".join([array("lines.sbatch"), between + " || exit 1", array("components.sbatch")])
    killed = disturb(campaign, command, 3)
    check(campaign, undisturbed, command, killed)
