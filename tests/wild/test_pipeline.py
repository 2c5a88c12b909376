# SPDX-License-Identifier: MIT
"""gdal_hsi_pipeline: one run gives the outputs of the same tools one after another through files; and faults in a
pipeline are reported before anything is read."""

import json
import os
import pathlib
import signal

import numpy as np
import pytest

from conftest import (assert_untouched, cube, first_error, read, run, start, stored_bytes, succeed, wait_for,
                      write_utm_scene as write_scene)

BANDS = 12


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Makes a scene, and the tools' results for it one by one."""
    folder = tmp_path_factory.mktemp("pipeline")
    data = cube(samples=60, lines=50, bands=BANDS)
    data[:, 20:25, 10:18] = -99
    write_scene(folder / "scene.img", data, dtype="i2", nodata=-99, wavelengths=[400 + 10 * b for b in range(BANDS)])
    labels = np.zeros((1, 50, 60))
    labels[0, 2:48, 2:58] = (np.arange(46)[:, None] // 12) % 3 + 1
    write_scene(folder / "labels.tif", labels, driver="GTiff", dtype="u1")
    tool = ("-q", "-device", "cpu")
    succeed(run("gdal_hsi_spp", *tool, "-ws", 7, folder / "scene.img", folder / "spp.tif"))
    succeed(run("gdal_hsi_pca", *tool, "-nc", 4, folder / "spp.tif", folder / "pca.tif"))
    succeed(run("gdal_hsi_mnf", *tool, folder / "pca.tif", folder / "mnf.tif", "-nc", 3))
    succeed(run("gdal_hsi_atdca", *tool, "-t", 5, folder / "spp.tif", folder / "targets.geojson"))
    succeed(run("gdal_hsi_eadp", *tool, "-nc", 3, folder / "spp.tif", folder / "eadp.tif"))
    for features in ("pca", "eadp"):
        succeed(run("gdal_hsi_svm_train", "-q", "-C", 10, "-gamma", 1, folder / f"{features}.tif", folder / "labels.tif",
                    folder / f"{features}.json"))
        succeed(run("gdal_hsi_svm_classify", *tool, "-apply", folder / f"{features}.json", folder / f"{features}.tif",
                    folder / f"{features}_map.tif"))
    return folder


def pipeline(*words, **kwargs):
    return run("gdal_hsi_pipeline", "-device", "cpu", *words, **kwargs)


@pytest.mark.quick
@pytest.mark.parametrize("way", [(), ("-tile", 13, 11, "-threads", 3), ("-memory", "16MB", "-threads", 1)])
def test_three_tools(folder, out, way):
    succeed(pipeline("-q", *way, "read", folder / "scene.img", "!", "spp", "-ws", 7, "!", "pca", "-nc", 4, "!", "mnf", "-nc", 3,
                     "!", "write", out / "mnf.tif"))
    assert stored_bytes(out / "mnf.tif") == stored_bytes(folder / "mnf.tif")
    assert [path.name for path in out.iterdir()] == ["mnf.tif"]


def points(path):
    return [feature["geometry"] for feature in json.loads(path.read_text())["features"]]


@pytest.mark.quick
def test_tee(folder, out):
    succeed(pipeline("-q", "-report", out / "r.json", "read", folder / "scene.img", "!", "spp", "-ws", 7,
                     "!", "tee", "atdca", "-t", 5, out / "targets.geojson",
                     "!", "tee", "write", out / "spp.tif",
                     "!", "tee", "[", "pca", "-nc", 4, "!", "mnf", "-nc", 3, "!", "write", out / "mnf.tif", "]",
                     "!", "tee", "pca", "-nc", 4, out / "pca.tif",
                     "!", "pca", "-nc", 4, "!", "svm-classify", "-apply", folder / "pca.json", "!", "write", out / "map.tif"))
    assert points(out / "targets.geojson") == points(folder / "targets.geojson")
    for name, of in (("spp", "spp"), ("mnf", "mnf"), ("pca", "pca"), ("map", "pca_map")):
        assert stored_bytes(out / f"{name}.tif") == stored_bytes(folder / f"{of}.tif"), name
    report = json.loads((out / "r.json").read_text())
    assert [step["tool"].replace("gdal_hsi_", "") for step in report["steps"]] == [
        "spp", "atdca", "pca", "mnf", "pca", "pca", "svm_classify"]


def test_what_hangs_on_the_whole_scene(folder, out, tmp_path):
    (tmp_path / "temporary").mkdir()
    result = succeed(pipeline("read", folder / "scene.img", "!", "spp", "-ws", 7, "!", "eadp", "-nc", 3, "!",
                              "svm_classify", "-apply", folder / "eadp.json", "!", "write", out / "map.tif",
                              env={**os.environ, "TMPDIR": str(tmp_path / "temporary")}))
    assert "kept in a temporary file" in result.out
    assert stored_bytes(out / "map.tif") == stored_bytes(folder / "eadp_map.tif")
    assert list((tmp_path / "temporary").iterdir()) == []


def test_options_of_read_and_write(folder, out):
    succeed(pipeline("-q", f"read {folder / 'scene.img'} -b 2-7 -srcwin 3 4 40 30 ! pca -nc 2 ! "
                           f"write -of ENVI -ot Int16 '{out / 'a b.img'}'"))
    succeed(run("gdal_hsi_pca", "-q", "-device", "cpu", "-nc", 2, "-b", "2-7", "-srcwin", 3, 4, 40, 30, "-of", "ENVI", "-ot",
                "Int16", folder / "scene.img", out / "alone.img"))
    assert stored_bytes(out / "a b.img") == stored_bytes(out / "alone.img")
    assert read(out / "alone.img").shape == (2, 30, 40)


def test_the_result_may_compute(folder, out):
    succeed(pipeline("-q", "read", folder / "scene.img", "!", "spp", "-ws", 7, "!", "pca", "-nc", 4, "!", "write", out / "y.hsi"))
    succeed(run("gdal_hsi_mnf", "-q", "-device", "cpu", "-nc", 3, out / "y.hsi", out / "mnf.tif"))
    assert stored_bytes(out / "mnf.tif") == stored_bytes(folder / "mnf.tif")


def test_the_plan(folder, out):
    with assert_untouched(out):
        text = succeed(pipeline("-dry-run", "read", folder / "scene.img", "!", "spp", "-ws", 7, "!", "pca", "-nc", 4, "!",
                                "write", out / "pca.tif")).out
    assert "scene.img ! spp (halo 3; " in text and "Pass covariance" in text and "Pass projection" in text


SPP = ("[", "read", "{scene}", "!", "spp", "-ws", 7, "]")


def in_place(words, **names):
    return [word.format(**names) if isinstance(word, str) else word for word in words]


def largest_difference(report):
    """Returns the result of the last step, compare."""
    return json.loads(report.read_text())["steps"][-1]["result"]["metrics"]["maxabs"]["maximum"]


def test_a_scene_in_brackets(folder, out, tmp_path):
    """The scene is computed; kept as a file if it depends on the whole scene; nested; or the file itself if read is the
    only step. The result equals the tool's for the file of such a scene."""
    temporary = {**os.environ, "TMPDIR": str(tmp_path / "temporary")}
    (tmp_path / "temporary").mkdir()
    scene, eadp = folder / "scene.img", folder / "eadp.tif"
    for first, words in ((folder / "spp.tif", SPP),
                         (folder / "mnf.tif", (*SPP[:-1], "!", "pca", "-nc", 4, "!", "mnf", "-nc", 3, "]")),
                         (eadp, (*SPP[:-1], "!", "eadp", "-nc", 3, "]")),
                         (eadp, ("[", "read", eadp, "]"))):
        succeed(pipeline("-q", "-overwrite", "-report", out / "r.json", "read", first, "!", "compare", "-metric", "maxabs",
                         *in_place(words, scene=scene), env=temporary))
        assert largest_difference(out / "r.json") == 0, words
        assert list((tmp_path / "temporary").iterdir()) == []
    mask = (*SPP[:-1], "!", "pca", "-nc", 4, "!", "svm_classify", "-apply", folder / "pca.json", "]")
    for text in (("-mask", folder / "pca_map.tif"), ("-mask", *in_place(mask, scene=scene))):
        succeed(pipeline("-q", "-overwrite", "read", scene, "!", "spp", "-ws", 5, *text, "!", "pca", "-nc", 2, *text, "!",
                         "write", out / f"{len(text)}.tif", env=temporary))
    assert stored_bytes(out / "2.tif") == stored_bytes(out / f"{1 + len(mask)}.tif")
    assert list((tmp_path / "temporary").iterdir()) == []


def test_what_read_chooses_in_brackets(folder, out):
    """Bands and a window of the scene in brackets, which a name alone cannot state; several such scenes, also
    nested."""
    scene = folder / "scene.img"
    chosen = ("read", scene, "-b", "2-7", "-srcwin", 3, 4, 40, 30)
    succeed(pipeline("-q", *chosen, "!", "write", out / "chosen.img"))
    result = succeed(pipeline("-report", out / "r.json", "read", out / "chosen.img", "!", "compare", "-metric", "maxabs", "[",
                              *chosen, "]"))
    assert largest_difference(out / "r.json") == 0 and "copied to a temporary file" in result.out
    inner = ("[", "read", folder / "pca_map.tif", "-b", 1, "]")
    succeed(pipeline("-q", "read", scene, "!", "pca", "-nc", 2, "-mask", *inner, "!", "tee", "compare", "[", "read", scene, "!",
                     "pca", "-nc", 2, "-mask", *inner, "]", "!", "write", out / "a.tif"))
    succeed(run("gdal_hsi_pca", "-q", "-device", "cpu", "-nc", 2, "-mask", folder / "pca_map.tif", scene, out / "b.tif"))
    assert stored_bytes(out / "a.tif") == stored_bytes(out / "b.tif")


def test_the_plan_with_brackets(folder, out, tmp_path):
    """Virtual scenes are made, so the plan continues; where a file would be needed, the plan ends."""
    (tmp_path / "temporary").mkdir()
    temporary = {**os.environ, "TMPDIR": str(tmp_path / "temporary")}
    steps = ("-dry-run", "read", folder / "spp.tif", "!", "tee", "compare", "-metric", "maxabs")
    end = ("!", "pca", "-nc", 2, "!", "write", out / "a.tif")
    with assert_untouched(out):
        told = succeed(pipeline(*steps, *in_place(SPP, scene=folder / "scene.img"), *end, env=temporary)).out
        assert "Pass covariance" in told and "Pass projection" in told
        told = succeed(pipeline(*steps, "[", "read", folder / "scene.img", "!", "eadp", "-nc", 3, "]", *end, env=temporary)).out
        assert "step 2.2 (eadp) makes a temporary file" in told and "covariance" not in told.split("temporary file")[1]
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_pipeline_may_begin_as_gdals_do(folder, out):
    succeed(pipeline("-q", "!", "read", folder / "scene.img", "!", "spp", "-ws", 7, "!", "write", out / "a.tif"))
    assert stored_bytes(out / "a.tif") == stored_bytes(folder / "spp.tif")


WRONG = [
    (["spp", "!", "write", "{out}/a.tif"], "must begin with read"),
    (["read", "{scene}", "!", "spp"], "is not written"),
    (["read", "{scene}"], "is not written"),
    (["read", "{scene}", "!", "!", "write", "{out}/a.tif"], "empty"),
    (["read", "{scene}", "!", "sqq", "!", "write", "{out}/a.tif"], "unknown step 'sqq'"),
    (["read", "{scene}", "!", "spp", "-wz", "3", "!", "write", "{out}/a.tif"], "unknown option '-wz'"),
    (["read", "{scene}", "!", "spp", "-ws", "4", "!", "write", "{out}/a.tif"], "not a window size"),
    (["read", "{scene}", "!", "spp", "extra", "!", "write", "{out}/a.tif"], "unexpected argument"),
    (["read", "{scene}", "!", "spp", "-report", "r.json", "!", "write", "{out}/a.tif"], "applies to the whole pipeline"),
    (["read", "{scene}", "!", "atdca", "{out}/t.gpkg", "!", "write", "{out}/a.tif"], "no scene for the next step"),
    (["read", "{scene}", "!", "synth", "!", "write", "{out}/a.tif"], "cannot read a scene"),
    (["read", "{scene}", "!", "tee", "!", "write", "{out}/a.tif"], "has no step"),
    (["read", "{scene}", "!", "tee", "[", "pca", "!", "write", "{out}/a.tif"], "not closed"),
    (["read", "{scene}", "!", "spp", "]", "!", "write", "{out}/a.tif"], "has no '['"),
    (["read", "{scene}", "!", "tee", "pca", "{out}/a.tif", "!", "spp", "!", "write", "{out}/a.tif"], "the same file"),
    (["read", "{scene}", "!", "tee", "svm_train", "{labels}", "{out}/m.json", "!", "svm_classify", "-apply", "{out}/m.json", "!",
      "write", "{out}/a.tif"], "which step 2"),
    (["read", "{scene}", "-b", "1-5", "!", "spp", "-b", "1-3", "!", "write", "{out}/a.tif"], "read also has options"),
    (["read", "{scene}", "!", "spp", "!", "write", "{scene}"], "overwrite"),
    (["read 'x"], "a quote in the pipeline is not closed"),
    (["read", "{scene}", "!", "compare", "[", "spp", "]"], "must begin with read"),
    (["read", "{scene}", "!", "compare", "[", "]"], "empty"),
    (["read", "{scene}", "!", "compare", "[", "read", "{scene}", "!", "spp"], "not closed"),
    (["read", "{scene}", "!", "compare", "[", "read", "{scene}", "!", "write", "{out}/a.tif", "]"], "write cannot be its last step"),
    (["read", "{scene}", "!", "compare", "[", "read", "{scene}", "!", "atdca", "{out}/t.gpkg", "]"], "makes no scene"),
    (["read", "{scene}", "!", "compare", "[", "read", "{scene}", "!", "tee", "spp", "{out}/s.tif", "]"], "no step follows"),
    (["read", "{scene}", "!", "compare", "[", "read", "{scene}", "!", "read", "{scene}", "]"], "read must be the first step"),
    (["read", "{scene}", "!", "spp", "-ws", "[", "read", "{scene}", "]", "!", "write", "{out}/a.tif"], "brackets replace -ws"),
    (["read", "{scene}", "!", "spp", "-alpha", "[", "read", "{scene}", "]", "!", "write", "{out}/a.tif"], "brackets replace -alpha"),
    (["read", "{scene}", "!", "svm_classify", "-apply", "[", "read", "{scene}", "]", "!", "write", "{out}/a.tif"],
     "brackets replace model"),
    (["read", "[", "read", "{scene}", "]", "!", "spp", "!", "write", "{out}/a.tif"], "brackets replace src"),
    (["read", "{scene}", "!", "spp", "[", "read", "{scene}", "]", "!", "write", "{out}/a.tif"], "unexpected argument"),
    (["read", "{scene}", "!", "tee", "[", "pca", "!", "write", "{out}/a.tif", "]", "more", "!", "spp", "!", "write",
      "{out}/b.tif"], "a word follows ']'"),
    (["read", "{scene}", "!", "tee", "write", "{out}/a.tif", "!", "compare", "[", "read", "{out}/a.tif", "!", "spp", "]"],
     "which step 2"),
    (["read", "{scene}", "!", "tee", "tee", "pca", "{out}/a.tif", "!", "spp", "!", "write", "{out}/b.tif"], "tee is given twice"),
    *((["read", "{scene}", "!", "spp", *option, "!", *more, "write", "{out}/a.tif"], f"{option[0]} applies to files")
      for option in (["-of", "ENVI"], ["-co", "COMPRESS=ZSTD"], ["-ot", "Int16"], ["-dstnodata", "0"], ["-stac", "{out}/a.json"])
      for more in ([], ["pca", "!"])),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_wrong_words(folder, out, number):
    words, told = WRONG[number]
    words = [word.format(scene=folder / "scene.img", labels=folder / "labels.tif", out=out) for word in words]
    with assert_untouched(folder, out):
        result = pipeline(*words)
    assert result.code == 2 and told in first_error(result), result.err


@pytest.mark.parametrize("words, told, advice", [
    (["read", "{scene}", "!", "tee", "[", "pca", "!", "quicklook", "{out}/a.png", "]", "!", "pca", "!", "write", "{out}/b.tif"],
     "unexpected argument", "! quicklook ! write {out}/a.png"),
    (["read", "{scene}", "!", "spp", "!", "atdca", "-t", "3", "!", "write", "{out}/t.gpkg"], "step 3 (atdca): dst is missing",
     "needs its own output: ! atdca [options] FILE"),
])
def test_advice_where_an_output_is_at_the_wrong_place(folder, out, words, told, advice):
    result = pipeline(*(word.format(scene=folder / "scene.img", out=out) for word in words))
    assert result.code == 2 and told in first_error(result) and advice.format(out=out) in result.err, result.err


@pytest.mark.parametrize("dry", [[], ["-dry-run"]])
@pytest.mark.parametrize("words, title", [
    (["!", "svm_classify", "-apply", "{out}/none.json"], "step 3 (svm_classify)"),
    (["!", "tee", "compare", "{out}/none.tif", "!", "pca"], "step 3 (tee compare)"),
    (["!", "tee", "compare", "[", "read", "{out}/none.img", "!", "spp", "]", "!", "pca"], "step 3.1 (read)"),
    (["!", "tee", "compare", "{labels}x", "!", "pca"], "step 3 (tee compare)"),
])
def test_inputs_of_all_steps_are_there_before_the_first_pass(folder, out, dry, words, title):
    words = [word.format(labels=folder / "labels.tif", out=out) for word in words]
    with assert_untouched(folder, out):
        result = pipeline(*dry, "read", folder / "scene.img", "!", "spp", "-ws", 7, *words, "!", "write", out / "a.tif")
    assert result.code == 1 and f"{title}: cannot read '" in first_error(result) and "Pass" not in result.out, result.err


@pytest.mark.quick
def test_a_step_that_fails_leaves_nothing(folder, out):
    with assert_untouched(folder, out):
        result = pipeline("read", folder / "scene.img", "!", "tee", "pca", out / "pca.tif", "!", "pca", "-nc", 2, "!",
                          "svm_classify", "-apply", folder / "eadp.json", "!", "write", out / "map.tif")
    assert result.code == 1 and "step 4 (svm_classify)" in first_error(result), result.err


@pytest.mark.parametrize("words, among", [
    (["read", "x.img", "!", "s"], {"spp", "sample", "svm_train"}),
    (["read", "x.img", "!", "tee", "at"], {"atdca"}),
    (["read", "x.img", "!", "spp", "-w"], {"-ws"}),
    (["-dry"], {"-dry-run"}),
    (["read", "x.img", "!", "compare", "[", "r"], {"read", "resample", "regularize"}),
    (["read", "x.img", "!", "compare", "[", "read", "y.img", "!", "spp", "-w"], {"-ws"}),
    (["read", "x.img", "!", "compare", "[", "read", "y.img", "]", "-max-n"], {"-max-nrmse"}),
])
def test_completion(words, among):
    for called in (["gdal_hsi_pipeline", "--complete"], ["gdal_hsi", "--complete", "pipeline"]):
        assert among <= set(succeed(run(*called, *words)).out.split())
    assert "svm_train\n" in succeed(run("gdal_hsi_pipeline", "--complete", "read", "x.img", "!", "svm_t")).out


@pytest.mark.parametrize("called", [("gdal_hsi_pipeline",), ("gdal_hsi", "pipeline")])
@pytest.mark.parametrize("words, tool", [
    (("read", "x.img", "!", "spp", "--help"), "spp"),
    (("read", "x.img", "!", "tee", "svm-classify", "-apply", "m", "-h"), "svm_classify"),
    (("read", "x.img", "!", "tee", "[", "pca", "--help"), "pca"),
    (("--help",), "pipeline"),
    (("!", "read", "x.img", "!", "compare", "[", "read", "y.img", "!", "pca", "--help"), "pca"),
    (("read", "x.img", "!", "compare", "[", "read", "y.img", "!", "pca", "]", "--help"), "compare"),
    (("read", "--help"), "pipeline"),
])
def test_help_of_a_step(called, words, tool):
    assert succeed(run(*called, *words)).out == succeed(run(f"gdal_hsi_{tool}", "--help")).out


def kept_by(report):
    """Returns the data that each link in the chain of the last step's source keeps."""
    return [link["kept"] for link in json.loads(report.read_text())["steps"][-1]["source"]["chain"]["links"]]


def test_what_is_read_twice_is_kept_in_memory(folder, out):
    """Two steps read the components, and all read SPP's results. If one step reads them, only SPP's results around a
    pixel are kept."""
    steps = ("read", folder / "scene.img", "!", "spp", "-ws", 7, "!", "pca", "-nc", 4, "!")
    last = ("mnf", "-nc", 3, "!", "write", out / "mnf.tif")
    succeed(pipeline("-q", "-report", out / "r.json", *steps, "tee", "write", out / "pca.tif", "!", *last))
    assert kept_by(out / "r.json") == ["numbers", "memory"]
    assert stored_bytes(out / "mnf.tif") == stored_bytes(folder / "mnf.tif")
    assert stored_bytes(out / "pca.tif") == stored_bytes(folder / "pca.tif")
    succeed(pipeline("-q", "-overwrite", "-report", out / "r.json", *steps, *last))
    assert kept_by(out / "r.json") == ["numbers", None]
    assert stored_bytes(out / "mnf.tif") == stored_bytes(folder / "mnf.tif")
    told = succeed(pipeline("-dry-run", *steps, "tee", "write", out / "other.tif", "!", "mnf", "!", "write", out / "o.tif")).out
    assert "! spp (halo 3; results from the neighbourhood of each pixel are kept) ! transform (values are kept in memory)" in told


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Makes abundances that exceed a quarter of 16 MB."""
    folder = tmp_path_factory.mktemp("large")
    write_scene(folder / "scene.img", cube(samples=600, lines=520, bands=6), wavelengths=[400 + 10 * b for b in range(6)])
    succeed(run("gdal_hsi_atdca", "-q", "-t", 4, folder / "scene.img", folder / "t.gpkg", "-spectra", folder / "ends.sli"))
    return folder


def unmixed_twice(large, out):
    return ("read", large / "scene.img", "!", "unmix", large / "ends.sli", "-method", "ucls", "!", "tee", "pca", "-nc", 2,
            out / "pca.tif", "!", "mnf", "-nc", 2, "!", "write", out / "mnf.tif")


@pytest.mark.parametrize("place", ["room", "nowhere"])
def test_dear_values_are_kept_in_a_file(large, out, tmp_path, place):
    """If memory is too small, they are kept in a file; without a folder that accepts files, they are computed again."""
    (tmp_path / "room").mkdir()
    env = {**os.environ, "TMPDIR": str(tmp_path / place)}
    succeed(pipeline("-q", "-memory", "16MB", "-report", out / "r.json", *unmixed_twice(large, out), env=env))
    assert kept_by(out / "r.json") == (["file"] if place == "room" else [None])
    assert list((tmp_path / "room").iterdir()) == []
    succeed(run("gdal_hsi_unmix", "-q", "-device", "cpu", large / "scene.img", large / "ends.sli", out / "a.img",
                "-method", "ucls"))
    for name in ("pca", "mnf"):
        succeed(run(f"gdal_hsi_{name}", "-q", "-device", "cpu", "-nc", 2, out / "a.img", out / f"{name}_of_file.tif"))
        assert stored_bytes(out / f"{name}.tif") == stored_bytes(out / f"{name}_of_file.tif")


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_a_kept_file_is_gone_at_any_end(large, tmp_path, end):
    """The file never has a name."""
    for name in ("room", "out"):
        (tmp_path / name).mkdir()
    process = start("gdal_hsi_pipeline", "-device", "cpu", "-q", "-memory", "16MB", "-threads", 1, *unmixed_twice(
        large, tmp_path / "out"), env={**os.environ, "TMPDIR": str(tmp_path / "room")})
    files = pathlib.Path(f"/proc/{process.pid}/fd")

    def holds_it():
        try:
            return process.poll() is not None or any(os.readlink(f).startswith(str(tmp_path / "room")) for f in files.iterdir())
        except OSError:
            return False
    wait_for(holds_it)
    assert process.poll() is None
    process.send_signal(end)
    process.communicate(timeout=60)
    assert list((tmp_path / "room").iterdir()) == []
    if end == signal.SIGTERM:
        assert list((tmp_path / "out").iterdir()) == []
