# SPDX-License-Identifier: MIT
"""Reports that several runs write at once, and invalid files in place of a report."""
import fcntl
import json
import os
import signal

import pytest
from conftest import assert_untouched, cube, first_error, run, start, succeed, write_scene

TOOLS = ["vd", "info", "compare", "pca"]


@pytest.fixture
def scene(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    return write_scene(folder / "s.tif", cube(20, 15, 6), driver="GTiff")


def call(tool, scene, folder, number=0):
    """Returns the words of a run whose only output is its report, or for pca also its own output."""
    return {"vd": ["gdal_hsi_vd", scene], "info": ["gdal_hsi_info", scene], "compare": ["gdal_hsi_compare", scene, scene],
            "pca": ["gdal_hsi_pca", "-nc", 2, scene, folder / f"p{number}.tif"]}[tool]


def chain(path):
    return json.loads(path.read_text())["chain"]


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("there", [False, True])
def test_runs_at_once_lose_no_record(tmp_path, scene, there, beside):
    """Also if their outputs are in the folder of the report, which is locked for them, too."""
    out = tmp_path / "out"
    out.mkdir()
    report = (out if beside else tmp_path) / "r.json"
    if there:
        succeed(run(*call("vd", scene, out), "-q", "-report", report))
    calls = [call(TOOLS[k % 4], scene, out, k) for k in range(12)]
    runs = [start(*words, "-q", "-report", report, "-report-append") for words in calls]
    ends = [(r.communicate(timeout=600), r.returncode) for r in runs]
    assert [code for _, code in ends] == [0] * 12, ends
    tools = sorted(record["tool"] for record in chain(report))
    assert tools == sorted([words[0] for words in calls] + ["gdal_hsi_vd"] * there)
    assert sorted(p.name for p in out.iterdir()) == sorted([f"p{k}.tif" for k in (3, 7, 11)] + ["r.json"] * beside)


def test_failures_at_once_lose_no_record(tmp_path, scene):
    report = tmp_path / "r.json"
    runs = [start("gdal_hsi_pca", "-q", "-b", 99, "-report", report, "-report-append", scene, tmp_path / "x.tif") for _ in range(8)]
    assert [(r.communicate(timeout=600), r.returncode)[1] for r in runs] == [2] * 8
    assert ["error" in record for record in chain(report)] == [True] * 8


@pytest.mark.parametrize("held", ["folder", "file"])
def test_a_run_waits_for_a_lock_until_it_is_gone_or_interrupted(tmp_path, scene, held):
    """Locks of the folder, as another run holds it, and of the file, as a run on another host holds it over NFS."""
    report = tmp_path / "r.json"
    words = *call("vd", scene, tmp_path), "-report", report, "-report-append"
    succeed(run(*words))
    lock = os.open(tmp_path if held == "folder" else report, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        with assert_untouched(tmp_path):
            waiting = start(*words)
            for line in iter(waiting.stdout.readline, b""):
                if b"Waiting for another program" in line:
                    break
            waiting.send_signal(signal.SIGINT)
            _, err = waiting.communicate(timeout=600)
            assert waiting.returncode == 1 and b"cannot append" in err, err
        waiting = start(*words)
        for line in iter(waiting.stdout.readline, b""):
            if b"Waiting for another program" in line:
                break
    finally:
        os.close(lock)
    assert waiting.communicate(timeout=600) and waiting.returncode == 0
    assert len(chain(report)) == 2


@pytest.mark.parametrize("append", [(), ("-report-append",)])
@pytest.mark.parametrize("tool", TOOLS)
def test_what_is_no_report_stays(tmp_path, scene, tool, append):
    report = tmp_path / "o.json"
    words = *call(tool, scene, tmp_path), "-q", "-report", report, *append
    succeed(run(*words))
    whole = report.read_text()
    for text in '{"a": 1}', "[1, 2]", "words", '{"chain": [1]}', whole[:len(whole) // 2]:
        report.write_text(text)
        with assert_untouched(tmp_path):
            result = run(*call(tool, scene, tmp_path, 1), "-q", "-report", report, *append)
        assert result.code == 1 and "(-report) exists and is not a report of these tools" in first_error(result)
        # Not every tool has this option, and where it exists it refers to outputs.
        assert "-overwrite" not in result.err
