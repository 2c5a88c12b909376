# SPDX-License-Identifier: MIT
"""The QGIS plugin's forms, command lines, progress and executables from the tools' definitions, without QGIS."""

import json
import os
import stat
import subprocess
import sys
import threading
import time

import pytest

from conftest import BIN, cli
from gdal_hsi import command, executables, process, schema


def argument(name, **more):
    """Returns an argument as docs/json_usage.md describes it: an option with a text."""
    made = {"name": name, "aliases": [], "summary": "What it is", "group": "Options", "type": "text", "role": "option",
            "positional": False, "required": False, "repeatable": False, "values": 1, "value_name": "V",
            "shared": False}
    made.update(more)
    return made


def positional(name, role, content, **more):
    return argument(name, role=role, content=content, positional=True, required=True, group="Arguments", **more)


def tool_of(*arguments):
    usage = {"schema": 1, "tools": [{"name": "x", "title": "Something (XYZ)", "description": "Does it.",
                                     "arguments": list(arguments), "examples": []}]}
    return schema.tools_of(usage)["x"]


SRC, DST = positional("src", "source", "raster"), positional("dst", "destination", "raster")


@pytest.mark.parametrize("one, kind", [
    (SRC, "raster"), (DST, "raster_out"), (positional("a", "source", None), "raster"),
    (argument("a", role="input", content="raster"), "raster"), (argument("a", role="input", content="labels"),
                                                                "labels"),
    (argument("a", role="input", content="vector"), "vector"), (argument("a", role="input", content="model"), "file"),
    (argument("a", role="input", content="something new"), "file"), (argument("a", role="output", content="raster"),
                                                                     "raster_out"),
    (argument("a", role="output", content="vector"), "vector_out"), (argument("a", role="output", content="spectra"),
                                                                     "file_out"),
    (argument("a", role="output"), "file_out"), (argument("report", content="text"), "file_out"),
    (argument("a", type="flag", values=0), "flag"), (argument("a", type="integer"), "integer"),
    (argument("a", type="number"), "number"), (argument("a", type="something new"), "text"),
    (argument("a", choices=[{"name": "p", "summary": "P"}]), "choice"), (argument("a", repeatable=True), "list"),
    (argument("a", type="number", repeatable=True), "list"), (argument("a", type="integer", values=3), "text"),
    (argument("a", vocabulary="pixel_types"), "type"), (argument("a", vocabulary="raster_drivers"), "text"),
    (argument("field"), "text")])
def test_kinds(one, kind):
    assert tool_of(one).parameters[0].kind == kind


def test_fields_of_labels_know_their_layer():
    tool = tool_of(argument("field"), argument("name-field"), argument("fielder"), positional("the labels", "input",
                                                                                              "labels"))
    assert [(p.name, p.kind, p.labels) for p in tool.parameters] == [
        ("the_labels", "labels", ""), ("field", "field", "the_labels"), ("name_field", "field", "the_labels"),
        ("fielder", "text", "")]


def test_a_mask_is_a_layer_without_fields():
    masks = [argument(name, role="input", content="labels", group="Input", shared=True)
             for name in ("mask", "mask-exclude")]
    tool = tool_of(SRC, *masks, argument("field"), positional("known", "input", "labels"), DST)
    assert [(p.name, p.kind, p.labels, p.optional, p.advanced) for p in tool.parameters if p.name not in ("src", "dst")] == [
        ("known", "labels", "", False, False), ("mask", "labels", "", True, False),
        ("mask_exclude", "labels", "", True, False), ("field", "field", "known", True, False)]
    assert tool_of(SRC, *masks, argument("field"), DST).parameter("field").kind == "text"


def test_masks_of_the_tools():
    tools = schema.tools_of(json.loads(cli("--json-usage")[1]))
    for name in ("pca", "eadp", "detect", "svm_train", "vd"):
        mask, exclude = (tools[name].parameter(p) for p in ("mask", "mask_exclude"))
        assert mask.kind == exclude.kind == "labels" and mask.optional and not mask.advanced
        assert mask.label.startswith("Use only these pixels for ") and exclude.label.startswith("Exclude these pixels from ")
    assert tools["svm_train"].parameter("field").labels == "labels"
    assert tools["pca"].parameter("mask_output").kind == "flag" and tools["vd"].parameter("mask_output") is None


def test_a_form_needs_src_and_dst_where_the_terminal_does_not():
    src, dst = ({**one, "required": False} for one in (SRC, DST))
    tool = tool_of(src, dst, argument("list", type="flag", values=0), argument("json", type="flag", values=0), argument("name"))
    assert [(p.name, p.optional) for p in tool.parameters] == [("src", False), ("name", True), ("dst", False)]


def test_names_differ_for_qgis_too():
    names = [p.name for p in tool_of(argument("c"), argument("C"), argument("a-b"), argument("a_b")).parameters]
    assert names == ["c", "C_", "a_b", "a_b_"]


@pytest.mark.parametrize("summary, label", [
    ("Window size, an odd number not larger than the scene", "Window size, an odd number not larger than the scene"),
    ("Output format", "Output format"), ("Seed: another number, another scene", "Seed"),
    ("With -method gs: the number that is compared", "The number that is compared (with -method gs)"),
    ("With -apply: src holds components, dst gets the model's bands, made from any number of them that there is",
     "Src holds components, dst gets the model's bands (with -apply)"),
    ("Also write alpha, the angle, to FILE", "Alpha, the angle"), ("Also save the model to FILE (JSON)",
                                                                   "The model (JSON)"),
    ("The endmembers' spectra: an ENVI spectral library (.sli) or a table (.csv)", "The endmembers' spectra"),
    ("Print the angle of the best target to every spectrum of the library FILE (.sli, .csv)",
     "Print the angle of the best target to every spectrum of the library"),
    ("Where to compute; auto: on a GPU", "Where to compute")])
def test_labels(summary, label):
    assert schema.label_of(summary) == label


def test_labels_of_the_tools_fit_into_a_form():
    for tool in json.loads(cli("--json-usage")[1])["tools"]:
        for one in tool["arguments"]:
            assert len(one["summary"]) <= 110, (tool["name"], one["name"], one["summary"])


def test_units_choices_defaults_and_options_are_told():
    p = tool_of(argument("max-angle", summary="The limit", type="number", unit="degrees", default="1.5")).parameters[0]
    assert (p.label, p.default, p.help) == ("The limit [degrees]", 1.5, "The limit.\nUnit: degrees. Option -max-angle.")
    p = tool_of(argument("m", choices=[{"name": "a", "summary": "first"}, {"name": "b", "summary": "second"}],
                         default="b")).parameters[0]
    assert p.default == 1 and "a: first\nb: second" in p.help
    p = tool_of(argument("z", default_note="the whole scene", repeatable=True)).parameters[0]
    assert "Default: the whole scene." in p.help and "Several: with | between them." in p.help


def test_files_get_their_filters():
    def filter_of(**more):
        return tool_of(argument("a", **more)).parameters[0].filter
    assert filter_of(role="input", content="spectra") == \
        "ENVI spectral libraries (*.sli);;Tables (*.csv);;MATLAB files (*.mat);;All files (*)"
    assert filter_of(role="output", content="spectra") == "ENVI spectral libraries (*.sli);;Tables (*.csv)"
    assert filter_of(role="output", content="text", value_name="FILE.json") == "JSON files (*.json)"
    assert tool_of(argument("csv", role="output", content="text")).parameters[0].filter == "CSV files (*.csv)"
    assert filter_of(role="input") == "All files (*)"


def test_order_and_what_is_advanced():
    tool = tool_of(argument("of", group="Output", shared=True), DST, argument("more", role="output", content="raster",
                                                                              group="Map"),
                   argument("q", shared=True, type="flag", values=0), argument("t"), SRC)
    assert [(p.name, p.advanced) for p in tool.parameters] == [
        ("src", False), ("of", True), ("t", False), ("dst", False), ("more", False)]
    assert tool.order == ["dst", "src"]


@pytest.mark.parametrize("arguments, group", [
    ([SRC, DST], "Transformation"), ([SRC], "Information"), ([DST], "Synthetic scenes"), ([], "Other"),
    ([SRC, positional("l", "input", "labels"), DST], "Classification"),
    ([SRC, positional("m", "input", "model"), DST], "Classification"),
    ([SRC, argument("model", role="output", content="model"), DST], "Transformation"),
    ([SRC, positional("l", "input", "spectra"), DST], "Targets and unmixing"),
    ([SRC, positional("p", "output", "vector")], "Targets and unmixing")])
def test_groups(arguments, group):
    assert tool_of(*arguments).group == group


def test_short_name():
    assert tool_of().short_name == "XYZ"
    assert schema.Tool("a", "Unmixing (UCLS, NNLS)", "", "").short_name == "Unmixing (UCLS, NNLS)"


def words(tool, **values):
    return command.arguments_of(tool, values)


def test_options_come_first_and_arguments_in_their_order():
    tool = tool_of(SRC, argument("ws", type="integer", default="5"), positional("l", "input", "labels"), DST)
    assert words(tool, src="a b.tif", l="l.tif", dst="c", ws=7) == ["-ws", "7", "a b.tif", "l.tif", "c"]
    with pytest.raises(command.WrongValue, match="value is needed"):
        words(tool, src="a", dst="c")


def test_what_is_as_without_the_option_is_left_out():
    tool = tool_of(argument("n", type="integer", default="5"), argument("v", type="number", default="1e-4"),
                   argument("m", choices=[{"name": "a", "summary": ""}, {"name": "b", "summary": ""}], default="b"),
                   argument("t", default="auto"), argument("f", type="flag", values=0))
    assert words(tool, n=5, v=0.0001, m="b", t="auto", f=False) == []
    assert words(tool, n=None, v=None, m=None, t="") == []
    assert words(tool, n=6, v=0.5, m="a", t="7", f=True) == ["-n", "6", "-v", "0.5", "-m", "a", "-t", "7", "-f"]


def test_overwrite_goes_with_an_output():
    overwrite, report = argument("overwrite", type="flag", values=0), argument("report", content="text", shared=True)
    tool = tool_of(SRC, overwrite, report, argument("map", role="output", content="raster"))
    assert tool.parameter("overwrite").default is True
    assert words(tool, src="a", overwrite=True, report="r") == ["-report", "r", "a"]
    assert words(tool, src="a", overwrite=True, map="m") == ["-overwrite", "-map", "m", "a"]
    assert words(tool, src="a", overwrite=False, map="m") == ["-map", "m", "a"]
    assert words(tool_of(SRC, overwrite, DST), src="a", overwrite=True, dst="d") == ["-overwrite", "a", "d"]


@pytest.mark.parametrize("value, text", [(1e-12, "1e-12"), (2.0, "2"), (-3.25, "-3.25"), (0.1, "0.1"), (1e22, "1e+22")])
def test_numbers_keep_all_digits(value, text):
    assert words(tool_of(argument("v", type="number")), v=value) == ["-v", text]


@pytest.mark.parametrize("more, value, items", [
    ({"value_name": "NAME=VALUE"}, "A=1|B=two words", ["A=1", "B=two words"]), ({}, "1-30,45", ["1-30,45"]),
    ({}, "50|15:1,7\n", ["50", "15:1,7"]), ({}, ["a b", "c"], ["a b", "c"]), ({}, [1, 2, 7], ["1,2,7"]),
    ({"type": "number"}, "0.5, 1 2;4", ["0.5", "1", "2", "4"]), ({"type": "number"}, [0.5, 1], ["0.5", "1"]), ({},
                                                                                                               " | ",
                                                                                                               [])])
def test_repeated_options(more, value, items):
    tool = tool_of(argument("x", repeatable=True, **more))
    assert words(tool, x=value) == [word for item in items for word in ("-x", item)]


def test_options_of_several_words():
    tool = tool_of(argument("srcwin", values=4, value_name="XOFF YOFF XSIZE YSIZE"))
    for value in ("1 2 30 40", "1,2,30,40", [1, 2, 30, 40]):
        assert words(tool, srcwin=value) == ["-srcwin", "1", "2", "30", "40"]
    with pytest.raises(command.WrongValue, match="4 values are needed .XOFF"):
        words(tool, srcwin="1 2 30")


def test_repeated_options_of_several_words():
    pairs = tool_of(argument("with", repeatable=True, values=2, lists=True, value_name="SCENE LABELS"))
    assert words(pairs, **{"with": 'b.img b.gpkg | "c d.img" e.tif\n@rest.txt'}) == [
        "-with", "b.img", "b.gpkg", "-with", "c d.img", "e.tif", "-with", "@rest.txt"]
    for wrong in ("b.img", "a b c", "@a.txt b.img c.img"):
        with pytest.raises(command.WrongValue, match="2 values are needed .SCENE LABELS"):
            words(pairs, **{"with": wrong})
    pixels = tool_of(argument("target-pixel", repeatable=True, values=2, type="integer"))
    assert words(pixels, **{"target_pixel": "3 4|5,6"}) == ["-target-pixel", "3", "4", "-target-pixel", "5", "6"]


def test_none_stands_for_labels_where_the_tool_says_so():
    tool = tool_of(positional("l", "input", "labels", summary="Labels; with -apply, none for no labels"), DST)
    assert tool.parameter("l").optional
    assert words(tool, dst="d") == ["none", "d"]


@pytest.mark.parametrize("line, percent", [
    ("0", 0), ("0..", 5), ("0...1", 7.5), ("0...10", 10), ("0...10...20.", 22.5),
    ("0...10...20...30...40...50...60...70...80...90...100", 100),
    ("0...10...20...30...40...50...60...70...80...90...100 - done.", 100),
    ("0...10...20...30...40...50...60...70...80...90...100 - done in 00:00:02.", 100),
    ("", None), ("0.5 m", None), ("10...20", None), ("Device: CPU", None), ("   0", None)])
def test_bar(line, percent):
    assert process.bar_percent(line) == percent


class Feedback:
    def __init__(self, cancel=lambda feedback: False):
        self.console, self.warnings, self.percents, self.cancel = [], [], [], cancel

    def isCanceled(self):
        return self.cancel(self)

    def setProgress(self, percent):
        self.percents.append(percent)

    def pushConsoleInfo(self, text):
        self.console.append(text)

    def pushWarning(self, text):
        self.warnings.append(text)


def python(code):
    return [sys.executable, "-u", "-c", code]


def test_messages_progress_and_errors_go_their_ways():
    feedback = Feedback()
    finished = process.run(python(
        "import sys, time\nprint('Device: CPU \\u00e9')\n"
        "for t in ('0', '...', '10', '...20..'):\n sys.stdout.write(t); sys.stdout.flush(); time.sleep(0.05)\n"
        "print()\nprint('result 1'); print(); print('last', end='')\n"
        "print('Warning: odd', file=sys.stderr)\n"
        "print('ERROR: no\\nDo this. Run \\'x --help\\' for all options.', file=sys.stderr)\n"
        "sys.exit(1)"), feedback)
    assert finished.code == 1 and not finished.canceled
    assert finished.printed == "Device: CPU é\nresult 1\n\nlast"
    assert feedback.console == ["Device: CPU é", "result 1", "", "last"]
    assert feedback.warnings == ["Warning: odd"]
    assert feedback.percents == sorted(feedback.percents) and feedback.percents[-1] == 25
    assert process.failure_text(finished, "x") == "gdal_hsi_x: no\nDo this."


def test_much_output_on_both_streams_does_not_block():
    finished = process.run(python(
        "import sys\nfor i in range(20000): print('o' * 50); print('e' * 50, file=sys.stderr)"), Feedback())
    assert finished.code == 0 and finished.printed.count("\n") == 19999 and len(finished.errors) == 20000


def test_signals_are_told():
    finished = process.run(python("import os, signal; os.kill(os.getpid(), signal.SIGKILL)"), Feedback())
    assert "ended by signal 9" in process.failure_text(finished, "x")
    assert process.failure_text(process.Finished(3, "", [], False), "x") == "gdal_hsi_x: exit code 3 without a message"


def test_cancel_asks_and_waits():
    feedback = Feedback(cancel=lambda f: "ready" in f.console)
    finished = process.run(python(
        "import signal, sys, time\n"
        "def end(*_):\n time.sleep(0.5); print('cleaned up'); sys.exit(1)\n"
        "signal.signal(signal.SIGTERM, end)\nprint('ready')\ntime.sleep(60)"), feedback)
    assert finished.canceled and finished.code == 1 and "cleaned up" in finished.printed


def test_who_does_not_listen_is_ended(monkeypatch):
    monkeypatch.setattr(process, "PATIENCE", 0.3)
    feedback = Feedback(cancel=lambda f: "ready" in f.console)
    finished = process.run(python(
        "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('ready')\ntime.sleep(60)"), feedback)
    assert finished.canceled and finished.code == -9


def test_threads_end():
    before = threading.active_count()
    process.run(python("print(1)"), Feedback())
    assert threading.active_count() == before


def make_program(folder, text, name="gdal_hsi"):
    path = folder / name
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


GOOD = '{"schema": 1, "version": "9", "tools": []}'


def test_finds_the_folder_the_file_and_path(tmp_path, monkeypatch):
    program = make_program(tmp_path, "true\n")
    monkeypatch.setenv("PATH", "/nowhere")
    assert executables.find(str(tmp_path)) == str(program) == executables.find(str(program))
    with pytest.raises(executables.NotUsable, match="not on PATH.*Settings > Options > Processing"):
        executables.find("")
    (tmp_path / "empty").mkdir()
    with pytest.raises(executables.NotUsable, match="empty' holds no executable gdal_hsi"):
        executables.find(str(tmp_path / "empty"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert executables.find("") == str(program)
    program.chmod(0o644)
    with pytest.raises(executables.NotUsable):
        executables.find("")
    with pytest.raises(executables.NotUsable):
        executables.find(str(program))


def test_finds_what_pip_has_installed(tmp_path, monkeypatch):
    """Found through the metadata of the wheel in the path of QGIS's Python; PATH has priority."""
    (tmp_path / "site" / "gdal_hsi" / "bin").mkdir(parents=True)
    program = make_program(tmp_path / "site" / "gdal_hsi" / "bin", "true\n")
    (tmp_path / "site" / "gdal_hsi-9.dist-info").mkdir()
    (tmp_path / "site" / "gdal_hsi-9.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: gdal-hsi\nVersion: 9\n")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(executables.NotUsable):
        executables.find("")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    assert executables.find("") == str(program)
    first = make_program(tmp_path, "true\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert executables.find("") == str(first)
    first.unlink()
    program.chmod(0o644)
    with pytest.raises(executables.NotUsable):
        executables.find("")


@pytest.mark.parametrize("text, message", [
    ("echo \"ERROR: unknown option '--json-usage'\" >&2; exit 2",
     "does not tell its tools .ERROR: unknown option.*older than this plugin"),
    ("echo nonsense", "does not tell its tools"), ("echo '[]'", "not that of the gdal-hsi suite"),
    ("echo '{}'", "not that of the gdal-hsi suite"), ("echo '{\"schema\": 1}'", "not that of the gdal-hsi suite"),
    ("echo '{\"schema\": 2, \"tools\": []}'", "newer way .schema 2.*Update the plugin"),
    ("kill -9 $$", "does not tell its tools")])
def test_what_is_no_suite_is_told(tmp_path, text, message):
    program = make_program(tmp_path, text + "\n")
    with pytest.raises(executables.NotUsable, match=message):
        executables.usage_of(str(program), str(tmp_path / "cache.json"))
    assert not (tmp_path / "cache.json").exists()


def test_a_program_of_another_machine_is_told(tmp_path):
    (tmp_path / "gdal_hsi").write_bytes(b"\x7fELF nonsense")
    (tmp_path / "gdal_hsi").chmod(0o755)
    with pytest.raises(executables.NotUsable, match="does not start"):
        executables.ask(str(tmp_path / "gdal_hsi"))


def test_a_program_that_hangs_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(executables, "SECONDS", 0.3)
    with pytest.raises(executables.NotUsable, match="no answer"):
        executables.ask(str(make_program(tmp_path, "exec sleep 30\n")))


def test_usage_is_asked_once_for_each_program(tmp_path):
    count = tmp_path / "count"
    program = make_program(tmp_path, "echo x >> '%s'\necho '%s'\n" % (count, GOOD))
    cache = str(tmp_path / "profile" / "usage.json")
    for _ in range(3):
        assert executables.usage_of(str(program), cache)["version"] == "9"
    assert count.read_text().count("x") == 1
    time.sleep(0.01)
    program.write_text(program.read_text().replace('"9"', '"8"'))  # as long as before, with another time
    assert executables.usage_of(str(program), cache)["version"] == "8"
    assert count.read_text().count("x") == 2
    link = tmp_path / "link"
    link.symlink_to(program)
    executables.usage_of(str(link), cache)
    assert count.read_text().count("x") == 2


@pytest.mark.parametrize("content", ["", "{", "[]", '{"stamp": 1}', '{"stamp": null, "usage": {}}'])
def test_a_damaged_cache_is_made_anew(tmp_path, content):
    program = make_program(tmp_path, "echo '%s'\n" % GOOD)
    cache = tmp_path / "usage.json"
    cache.write_text(content)
    assert executables.usage_of(str(program), str(cache))["version"] == "9"
    assert json.loads(cache.read_text())["usage"]["version"] == "9"


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path):
    program = make_program(tmp_path, "echo '%s'\n" % GOOD)
    (tmp_path / "file").write_text("")
    assert executables.usage_of(str(program), str(tmp_path / "file" / "usage.json"))["version"] == "9"
    assert os.listdir(tmp_path) == ["gdal_hsi", "file"] or sorted(os.listdir(tmp_path)) == ["file", "gdal_hsi"]


@pytest.fixture(scope="module")
def suite():
    if not (BIN / "gdal_hsi").exists():
        pytest.skip("no executables in %s" % BIN)
    return schema.tools_of(executables.ask(str(BIN / "gdal_hsi")))


def test_every_argument_of_every_tool_is_in_its_form(suite):
    for tool in json.loads(subprocess.run([str(BIN / "gdal_hsi"), "--json-usage"], capture_output=True,
                                          check=True).stdout)["tools"]:
        made = suite[tool["name"]]
        # "Compute when looked at" is the form's own option: -of HSI as a checkbox.
        names = [p.argument["name"] for p in made.parameters if p.argument["name"] != "computed"]
        hidden = ("q", "ranks", "list", "json") if tool["name"] == "index" else ("q", "ranks")  # -list has no dst
        assert sorted(names) == sorted(a["name"] for a in tool["arguments"] if a["name"] not in hidden)
        assert len({p.name.lower() for p in made.parameters}) == len(made.parameters)
        for p in made.parameters:
            assert 3 <= len(p.label) <= 110 and p.label.count("(") == p.label.count(")"), p.label
            assert "FILE" not in p.label and not p.label.endswith((",", ";", ":", " ")), p.label
            assert p.argument["summary"] in p.help
            if p.argument["required"] and not p.stands_for_none:
                assert not p.optional
        assert made.group != "Other"


def test_an_untouched_form_is_an_empty_command_line(suite):
    """Defaults of the form are the tool's defaults, so none is written, except that outputs may be replaced."""
    for tool in suite.values():
        values = {}
        for p in tool.parameters:
            value = p.default
            if p.kind == "choice" and value is not None:
                value = p.argument["choices"][value]["name"]
            values[p.name] = "x" if p.argument["positional"] else value
        words_left = command.arguments_of(tool, values)
        assert [w for w in words_left if w not in ("x", "-overwrite")] == [], tool.name


def test_the_tools_take_what_the_form_writes(suite, tmp_path):
    """Uses every option of two tools with a value: one tool complains only about the scene, the other makes a scene."""
    for name in ("spp", "synth"):
        values = {}
        for p in suite[name].parameters:
            values[p.name] = {
                "raster": str(tmp_path / "none.tif"), "raster_out": str(tmp_path / (p.name + ".tif")), "flag": True,
                "integer": 7, "labels": str(tmp_path / "none.tif"),
                "file_out": str(tmp_path / (p.name + ".json")), "number": 0.5, "type": "Float32", "list": "1",
                "text": "1 " * p.words}.get(p.kind)
            if p.kind == "choice":
                values[p.name] = p.argument["choices"][0]["name"]
            values[p.name] = {"memory": "500MB", "device": "cpu", "device_memory": "1GB", "of": "GTiff", "if": "GTiff",
                              "co": "COMPRESS=LZW",
                              "oo": "NUM_THREADS=2", "size": "20 20 30", "epsg": 32633, "interleave": "bsq",
                              "nan_pixels": 0, "bad_bands": 0, "computed": False, "bbl": "ignore", "exclude_range": "1340-1460nm",
                              "srcwin": "0 0 10 10", "tile": "8 8", "nodata_stripe": "3 2",
                              "stac_datetime": "2022-08-28", "corner": "", "light": "",
                              "geometry": "", "flat": "", "sun": ""}.get(p.name, values[p.name])
        code, _, err = cli(name, *command.arguments_of(suite[name], values))
        assert (code, err.count("none.tif") > 0) == ((0, False) if name == "synth" else (1, True)), err


@pytest.mark.parametrize("computes", [False, True])
def test_a_result_that_is_computed_when_it_is_looked_at(computes):
    usage = {"schema": 1, "tools": [{"name": "x", "title": "X", "description": "Does it.", "arguments": [SRC, DST],
                                     "examples": [], "computes": computes}]}
    tool = schema.tools_of(usage)["x"]
    assert [p.name for p in tool.parameters] == ["src", *(["computed"] if computes else []), "dst"]
    for chosen in (False, True):
        words = command.arguments_of(tool, {"src": "a.img", "dst": "b.tif", "computed": chosen})
        assert words == [*(["-of", "HSI"] if computes and chosen else []), "a.img", "b.tif"]


def test_which_tools_compute():
    tools = schema.tools_of(json.loads(cli("--json-usage")[1]))
    having = {name for name, tool in tools.items() if tool.parameter("computed")}
    assert having >= {"spp", "pca", "mnf", "unmix", "detect", "svm_classify", "resample", "features", "orthorectify"}
    assert not having & {"eadp", "profile", "atdca", "pipeline"}
