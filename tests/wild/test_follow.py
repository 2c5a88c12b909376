# SPDX-License-Identifier: MIT
"""-follow: scenes that are still being written. The output equals that of a run over the complete scene, line by line
while the scene grows."""
import json
import os
import pathlib
import shutil
import signal
import time

import numpy as np
import pytest
from conftest import (PATIENCE, assert_untouched, cube, envi_header, first_error, refuse, run, start, succeed, wait_for,
                      write_scene)
from osgeo import gdal
SAMPLES, LINES, BANDS = 17, 16, 9
WAVELENGTHS = [450 + 50 * b for b in range(BANDS)]
FAR = 10 * PATIENCE  # seconds: the end must have another cause


class Recorder:
    """Writes a complete scene again, line by line, as an instrument does."""

    def __init__(self, scene, path, tells_lines=True):
        self.path = pathlib.Path(path)
        self.bytes = pathlib.Path(scene).read_bytes()
        self.header = pathlib.Path(scene).with_suffix(".hdr").read_text()
        fields = envi_header(scene)
        self.offset = int(fields.get("header offset", 0))
        self.lines = int(fields["lines"])
        self.line_bytes = (len(self.bytes) - self.offset) // self.lines
        self.written = 0
        shown = self.header if tells_lines else "".join(
            line for line in self.header.splitlines(True) if not line.startswith("lines"))
        self.path.with_suffix(".hdr").write_text(shown)
        self.path.write_bytes(self.bytes[:self.offset])

    def write(self, lines):
        end = self.written + lines
        with open(self.path, "ab") as file:
            file.write(self.bytes[self.offset + self.written * self.line_bytes:self.offset + end * self.line_bytes])
        self.written = end

    def tell_lines(self):
        """Completes the header at the end, as a recorder does."""
        self.tell(self.header)

    def tell(self, header):
        new = self.path.with_suffix(".new")
        new.write_text(header)
        os.replace(new, self.path.with_suffix(".hdr"))


def lines_out(paths, old=()):
    """Returns the number of whole lines that a reader of any output sees now. old: numbers of the files that existed
    before. A header appears just before its data, and until then describes the data of the earlier file, if there is
    one."""
    if not all(pathlib.Path(path).exists() and os.stat(path).st_ino not in old for path in paths):
        return 0
    return min(int(envi_header(path)["lines"]) for path in paths)


def make_line(folder, interleave, dtype):
    """Makes a flight line, with the tools' other inputs."""
    data = np.round(cube(SAMPLES, LINES, BANDS, seed=3, scale=4000.0))
    data[:, 5, 3:6] = 0  # pixels without a value
    write_scene(folder / "whole.img", data, dtype=dtype, wavelengths=WAVELENGTHS, options=[f"INTERLEAVE={interleave.upper()}"])
    write_scene(folder / "other.img", np.round(cube(30, 40, BANDS, seed=4, scale=4000.0)), dtype=dtype, wavelengths=WAVELENGTHS)
    labels = np.zeros((1, 40, 30))
    labels[0, ::5, ::3], labels[0, 2::5, 1::4] = 1, 2
    write_scene(folder / "labels.tif", labels, driver="GTiff", dtype="u1")
    succeed(run("gdal_hsi_statistics", "-q", folder / "other.img", "-o", folder / "other.stat"))
    succeed(run("gdal_hsi_spectra", "-q", folder / "other.img", folder / "labels.tif", folder / "library.csv"))
    succeed(run("gdal_hsi_svm_train", "-q", "-C", 8, "-gamma", 1, "-probability", folder / "other.img", folder / "labels.tif",
                folder / "svm.json"))
    return folder


@pytest.fixture(scope="module")
def line(tmp_path_factory):
    return make_line(tmp_path_factory.mktemp("line"), "bil", "u2")


@pytest.fixture(scope="module", params=["bil-u2", "bip-f4"])
def either(request, line, tmp_path_factory):
    return line if request.param == "bil-u2" else make_line(tmp_path_factory.mktemp("other"), *request.param.split("-"))


TOOLS = {
    "ace": ["gdal_hsi_detect", "-statistics", "other.stat", "-target", "library.csv", "{src}", "{dst}.bil"],
    "rx": ["gdal_hsi_detect", "-statistics", "other.stat", "-map", "{dst}_map.dat", "-threshold", 20, "{src}", "{dst}.dat"],
    "sam": ["gdal_hsi_detect", "-method", "sam", "-target", "library.csv", "{src}", "{dst}.bip"],
    "svm": ["gdal_hsi_svm_classify", "-apply", "svm.json", "-probabilities", "{dst}_p.bil", "{src}", "{dst}.dat"],
    "unmix": ["gdal_hsi_unmix", "-rmse", "{dst}_e.dat", "{src}", "library.csv", "{dst}.bip"],
}


def command(name, src, dst, folder):
    words = [str(word).format(src=src, dst=dst) for word in TOOLS[name]]
    words = [str(folder / word) if word in ("other.stat", "library.csv", "svm.json") else word for word in words]
    return [words[0], *(["-device", "cpu"] if words[0] != "gdal_hsi_statistics" else []), *words[1:]]


def outputs(name, dst):
    return [word.format(dst=dst) for word in map(str, TOOLS[name]) if "{dst}" in word]


def same_as_offline(name, line, dst, source):
    """Every output has the bytes, and every header the text, of a run over the complete scene."""
    offline = pathlib.Path(dst).parent / "offline"
    succeed(run(*command(name, source, offline, line)))
    for live, later in zip(outputs(name, dst), outputs(name, offline)):
        assert pathlib.Path(live).read_bytes() == pathlib.Path(later).read_bytes(), live
        texts = [pathlib.Path(path).with_suffix(".hdr").read_text().replace(pathlib.Path(path).name, "") for path in (live, later)]
        assert [t for t in texts[0].splitlines() if "description" not in t and str(dst) not in t] == [
            t for t in texts[1].splitlines() if "description" not in t and str(offline) not in t]
        for path in (live, later):
            pathlib.Path(path).unlink()


@pytest.mark.parametrize("tells_lines", [True, False])
@pytest.mark.parametrize("name", TOOLS)
def test_each_line_comes_out_before_the_next_one_is_written(either, tmp_path, name, tells_lines):
    recorder = Recorder(either / "whole.img", tmp_path / "live.img", tells_lines)
    tool, *words = command(name, recorder.path, tmp_path / "out", either)
    process = start(tool, "-follow", FAR, *words)
    made = outputs(name, tmp_path / "out")
    seconds = []
    for k in range(1, LINES + 1):
        recorder.write(1)
        begin = time.monotonic()
        assert wait_for(lambda: lines_out(made) >= k or process.poll() is not None)
        seconds.append(time.monotonic() - begin)
        if process.poll() is not None and k < LINES:
            break
        assert lines_out(made) == k
        for path in made:
            dataset = gdal.Open(path)  # a reader opens it meanwhile
            assert dataset.RasterYSize >= k - 1 and dataset.ReadAsArray() is not None
    if not tells_lines:
        recorder.tell_lines()
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err.decode()
    print(f"{name}: a line is out after {sorted(seconds)[LINES // 2] * 1000:.1f} ms (median), "
          f"{max(seconds[1:]) * 1000:.1f} ms at most")
    assert not err, err.decode()
    for path in made:
        assert ".hsi-" not in pathlib.Path(path).with_suffix(".hdr").read_text() # the folder in which it was made
    same_as_offline(name, either, tmp_path / "out", recorder.path)


def test_a_file_that_has_its_size_beforehand(line, tmp_path):
    """A warning reports zeros in place of lines that have not been written."""
    recorder = Recorder(line / "whole.img", tmp_path / "live.img")
    recorder.write(5)
    os.truncate(recorder.path, len(recorder.bytes))
    tool, *words = command("unmix", recorder.path, tmp_path / "out", line)
    result = succeed(run(tool, "-follow", 0.2, *words))
    assert "ends with lines of zeros" in result.err


def test_statistics_of_a_line_that_grows(either, tmp_path):
    recorder = Recorder(either / "whole.img", tmp_path / "live.img", False)
    process = start("gdal_hsi_statistics", "-follow", FAR, "-report", tmp_path / "r.json", recorder.path, "-o", tmp_path / "live.stat")
    for count in (1, 7, 0, LINES - 8):
        recorder.write(count)
        time.sleep(0.02)
    recorder.tell_lines()
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    succeed(run("gdal_hsi_statistics", recorder.path, "-o", tmp_path / "later.stat"))
    assert (tmp_path / "live.stat").read_bytes() == (tmp_path / "later.stat").read_bytes()
    assert json.loads((tmp_path / "r.json").read_text())["followed"] == {"lines": LINES}


@pytest.mark.parametrize("name", ["ace", "svm", "unmix"])
def test_the_end_is_where_nothing_comes(either, tmp_path, name):
    recorder = Recorder(either / "whole.img", tmp_path / "live.img", False)
    recorder.write(LINES)
    tool, *words = command(name, recorder.path, tmp_path / "out", either)
    result = succeed(run(tool, "-follow", 0.05, *words))
    assert f"{LINES} lines of" in result.out
    recorder.tell_lines()
    same_as_offline(name, either, tmp_path / "out", recorder.path)


def test_a_scene_that_ends_before_its_header_says(line, tmp_path):
    recorder = Recorder(line / "whole.img", tmp_path / "live.img")
    recorder.write(10)
    tool, *words = command("ace", recorder.path, tmp_path / "out", line)
    result = succeed(run(tool, "-follow", 0.05, *words))
    assert f"ended after 10 of the {LINES} lines that its header states" in result.err
    header = recorder.path.with_suffix(".hdr")
    header.write_text(header.read_text().replace(f"lines   = {LINES}", "lines   = 10"))
    same_as_offline("ace", line, tmp_path / "out", recorder.path)


def test_several_pieces_and_threads(line, tmp_path):
    """Pieces of some megabytes, divided into tiles for several threads."""
    big = np.tile(np.round(cube(300, 20, BANDS, seed=5, scale=4000.0)), (1, 200, 1))
    scene = write_scene(tmp_path / "big.img", big, dtype="f4", wavelengths=WAVELENGTHS, options=["INTERLEAVE=BIL"])
    recorder = Recorder(scene, tmp_path / "live.img", False)
    recorder.write(recorder.lines)
    tool, *words = command("ace", recorder.path, tmp_path / "out", line)
    report = tmp_path / "r.json"
    succeed(run(tool, "-follow", 0.05, "-threads", 3, "-report", report, *words))
    passes = json.loads(report.read_text())["passes"]
    assert [p["name"] for p in passes] == ["detection"] and passes[0]["bytes_read"] == big.size * 4
    assert json.loads(report.read_text())["source"]["lines"] == recorder.lines
    recorder.tell_lines()
    same_as_offline("ace", line, tmp_path / "out", recorder.path)


# Growing files that go wrong
# ---------------------------------------------------------------------------------------------------------------------


def begun(line, tmp_path, name="unmix", tells_lines=True, extra=(), fields="", without=("none",)):
    """Starts a run, and returns it after its first five lines. fields: additional fields of the header; without: fields
    that it lacks so far."""
    recorder = Recorder(line / "whole.img", tmp_path / "live.img", tells_lines)
    recorder.header += fields
    shown = (recorder.path.with_suffix(".hdr").read_text() + fields).splitlines(True)
    recorder.tell("".join(field for field in shown if not field.startswith(without)))
    tool, *words = command(name, recorder.path, tmp_path / "out", line)
    old = {os.stat(path).st_ino for path in tmp_path.iterdir()}
    process = start(tool, "-follow", FAR, *extra, *words)
    recorder.write(5)
    made = outputs(name, tmp_path / "out")
    assert wait_for(lambda: lines_out(made, old) == 5 or process.poll() is not None) and process.poll() is None
    return recorder, process


def ended(process):
    _, err = process.communicate(timeout=PATIENCE)
    return process.returncode, err.decode()


def shrink(recorder):
    os.truncate(recorder.path, recorder.line_bytes * 4)


def replace(recorder):
    copy = recorder.path.with_suffix(".copy")
    shutil.copy(recorder.path, copy)
    os.replace(copy, recorder.path)


def remove(recorder):
    recorder.path.unlink()


def other_header(recorder):
    recorder.path.with_suffix(".hdr").write_text(recorder.header.replace(f"samples = {SAMPLES}", "samples = 3"))


def write_again(recorder):
    """Starts again with other lines, faster than any reader."""
    recorder.path.write_bytes(recorder.bytes[::-1])


def overwrite_a_line(recorder):
    with open(recorder.path, "r+b") as file:
        file.seek(recorder.offset + 4 * recorder.line_bytes)
        file.write(b"\1" * recorder.line_bytes)
    recorder.write(LINES - recorder.written)


@pytest.mark.parametrize("what, message", [
    (shrink, "shrank from"), (write_again, "was overwritten"), (overwrite_a_line, "was overwritten"), (replace, "was replaced by another file"), (remove, "was removed or renamed"),
    (other_header, "the ENVI header of .* was changed")])
def test_a_file_that_does_something_else_than_grow(line, tmp_path, what, message):
    recorder, process = begun(line, tmp_path)
    before = {path.name for path in tmp_path.iterdir() if path.name.startswith("live")}
    what(recorder)
    code, err = ended(process)
    assert code == 1 and pytest.importorskip("re").search(message, err.splitlines()[0]), err
    assert {path.name for path in tmp_path.iterdir()} <= before


PLACE = "map info = {UTM, 1, 1, 500000, 4000000, 2, 2, 33, North}\n"
SYSTEM = 'coordinate system string = {PROJCS["UTM_Zone_33N",GEOGCS["WGS_1984"]]}\n'
LIST = "{" + ", ".join(str(number) for number in WAVELENGTHS) + "}"


@pytest.mark.parametrize("fields, now, message", [
    (f"wavelength = {LIST}\n", f"wavelength = {LIST.replace('550', '690')}\n", "'wavelength' value 3 was 550 and is now 690"),
    (f"wavelength = {LIST}\n", "wavelength = {450, 500}\n", "'wavelength' had 9 values and now has 2"),
    (f"wavelength = {LIST}\n", "wavelength = \n", "'wavelength' is missing now"),
    ("wavelength units = Nanometers\n", "wavelength units = Micrometers\n", "'wavelength units' was Nanometers and is now Micrometers"),
    ("bbl = {1,1,1,1,1,1,1,1,1}\n", "bbl = {1,1,1,1,1,1,1,1,0}\n", "'bbl' value 9 was 1 and is now 0"),
    (PLACE, PLACE.replace("500000", "600000"), "'map info' value 4 was 500000 and is now 600000"),
    (SYSTEM, SYSTEM.replace("33N", "34N"), "'coordinate system string' value 1 was "),
    ("data ignore value = 9999\n", "data ignore value = 0\n", "'data ignore value' was 9999 and is now 0"),
    ("reflectance scale factor = 10000\n", "reflectance scale factor = 1000\n", "'reflectance scale factor' was 10000 and is now 1000"),
    ("data units = radiance\n", "data units = reflectance\n", "'data units' was radiance and is now reflectance"),
    ("", "header offset = 128\n", "'header offset' was 0 and is now 128"),
])
def test_a_header_that_tells_of_another_scene(line, tmp_path, fields, now, message):
    recorder, process = begun(line, tmp_path, fields=fields)
    recorder.tell(recorder.header.replace(fields, "") + now)
    code, err = ended(process)
    assert code == 1 and message in err.splitlines()[0], err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["live.hdr", "live.img"]


def test_another_spelling_and_what_is_free_to_change_are_the_same_scene(line, tmp_path):
    fields = f"wavelength = {LIST}\nwavelength units = Nanometers\n{PLACE}data ignore value = 0\ndescription = {{begun}}\n"
    spelled = (f"description = {{complete}}\nacquisition time = 2026-01-01\ngain = 7\nbyte order = 0\nfile compression = 0\n"
               f"Wavelength = {LIST.replace(', ', '.0 ,').replace('600.0 ,', '6e2,' + chr(10))}\nwavelength_units = nanometers\n"
               f"{PLACE.replace('500000', '500000.00').replace(', ', ',')}data ignore value = 0.0\n")
    recorder, process = begun(line, tmp_path, fields=fields)
    recorder.tell(recorder.header.replace(fields, "") + spelled)
    recorder.write(LINES - 5)
    code, err = ended(process)
    assert code == 0 and not err, err
    recorder.tell_lines()
    same_as_offline("unmix", line, tmp_path / "out", recorder.path)


@pytest.mark.parametrize("name", ["unmix", "svm"])
def test_what_the_header_tells_too_late(line, tmp_path, name):
    recorder, process = begun(line, tmp_path, name, tells_lines=False, without=("map info", "coordinate system string"))
    told = recorder.path.with_suffix(".hdr").read_text()
    recorder.write(LINES - 5)
    recorder.tell(recorder.header + "data units = radiance\nsensor type = none\n")
    code, err = ended(process)
    assert code == 0 and "did not state 'map info', 'coordinate system string', 'data units' when the run began" in err, err
    assert "run it again without -follow" in err
    recorder.tell(told + f"lines = {LINES}\n")
    same_as_offline(name, line, tmp_path / "out", recorder.path)


def remove_header(recorder):
    recorder.path.with_suffix(".hdr").unlink()


def spoil_header(recorder):
    recorder.path.with_suffix(".hdr").write_bytes(bytes(range(256)))


@pytest.mark.parametrize("what, message", [(remove_header, "was removed or renamed"), (spoil_header, "is no longer an ENVI header")])
@pytest.mark.parametrize("name", ["unmix", "svm"])
def test_a_header_that_goes(line, tmp_path, name, what, message):
    """The lines exist as described by the header: the result is theirs, and a warning names the lost file. A header
    that is missing for a moment does not count."""
    for comes_back in False, True:
        recorder = Recorder(line / "whole.img", tmp_path / "live.img", True)
        tool, *words = command(name, recorder.path, tmp_path / "out", line)
        process = start(tool, "-follow", FAR, "-overwrite", *words)
        recorder.write(5)
        made = outputs(name, tmp_path / "out")
        assert wait_for(lambda: lines_out(made) == 5 or process.poll() is not None) and process.poll() is None
        what(recorder)
        recorder.write(LINES - 6)
        assert wait_for(lambda: lines_out(made) == LINES - 1 or process.poll() is not None) and process.poll() is None
        if comes_back:
            recorder.tell_lines()
        recorder.write(1)
        code, err = ended(process)
        assert code == 0 and (f"live.hdr' {message}" in err) != comes_back, err
        recorder.tell_lines()
        same_as_offline(name, line, tmp_path / "out", recorder.path)
        for left in tmp_path.glob("o*"):
            left.unlink()


def test_what_was_there_comes_back(line, tmp_path):
    old = tmp_path / "out.bip"
    write_scene(old, np.ones((2, 3, 4)), options=["INTERLEAVE=BIP"])
    texts = [(tmp_path / name).read_bytes() for name in ("out.bip", "out.hdr")]
    recorder, process = begun(line, tmp_path, extra=["-overwrite"])
    remove(recorder)
    assert ended(process)[0] == 1
    assert [(tmp_path / name).read_bytes() for name in ("out.bip", "out.hdr")] == texts


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("at_the_end", [False, True])
@pytest.mark.parametrize("which", ["out.bip", "out.hdr", "out_e.dat"])
@pytest.mark.parametrize("what", ["replaced", "removed", "renamed"])
def test_an_output_that_others_take(line, tmp_path, what, which, at_the_end, old):
    """The run ends without leaving files, and files of other programs stay."""
    before = {}
    if old:
        for name, interleave in (("out.bip", "BIP"), ("out_e.dat", "BSQ")):
            write_scene(tmp_path / name, np.ones((2, 3, 4)), options=[f"INTERLEAVE={interleave}"])
        before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    recorder, process = begun(line, tmp_path, tells_lines=False, extra=["-overwrite"])
    wanted = {**before, **{name: (tmp_path / name).read_bytes() for name in ("live.hdr", "live.img")}}
    if what == "replaced":
        (tmp_path / "other").write_bytes(b"other\n")
        os.replace(tmp_path / "other", tmp_path / which)
        wanted[which] = b"other\n"
    elif what == "removed":
        (tmp_path / which).unlink()
    else:
        wanted["mine"] = (tmp_path / which).read_bytes()
        (tmp_path / which).rename(tmp_path / "mine")
    if at_the_end:
        recorder.tell(recorder.header.replace(f"lines   = {LINES}", "lines   = 5"))
    else:
        recorder.write(1)
    code, err = ended(process)
    message = "replaced by another file" if what == "replaced" else "removed or renamed"
    assert code == 1 and f"{which}' has been {message} during this run" in err.splitlines()[0], err
    left = {path.name: path.read_bytes() if path.is_file() else None for path in tmp_path.iterdir()}
    assert left.keys() == wanted.keys()
    if which != "out.hdr":  # a line may have come meanwhile
        left.pop("mine", None)
    for name in left.keys() - {"live.hdr", "live.img"}:
        assert left[name] == wanted[name], name


def truncated(path):
    os.truncate(path, 10)


def written_into(path):
    with open(path, "r+b") as file:
        file.seek(path.stat().st_size // 2)
        file.write(b"\x55\xaa")


def appended_to(path):
    with open(path, "ab") as file:
        file.write(b"more")


def emptied(path):
    path.write_bytes(b"")


@pytest.mark.parametrize("at_the_end", [False, True])
@pytest.mark.parametrize("which", ["out.bip", "out_e.dat"])
@pytest.mark.parametrize("change", [truncated, written_into, appended_to, emptied])
def test_an_output_that_others_write(line, tmp_path, change, which, at_the_end):
    """Appending to a file that was truncated would leave zeros before the new data."""
    recorder, process = begun(line, tmp_path, tells_lines=False)
    change(tmp_path / which)
    if not at_the_end and change is not appended_to:  # a new line overwrites the appended data
        recorder.write(1)
    recorder.tell(recorder.header.replace(f"lines   = {LINES}", f"lines   = {recorder.written}"))
    code, err = ended(process)
    first = err.splitlines()[0]
    assert code == 1 and which in first and ("truncated" in first or "another process " in first), err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["live.hdr", "live.img"]


def test_a_header_that_others_write(line, tmp_path):
    recorder, process = begun(line, tmp_path, tells_lines=False)
    with open(tmp_path / "out.hdr", "a") as file:
        file.write("mine = 1\n")
    recorder.tell(recorder.header.replace(f"lines   = {LINES}", "lines   = 5"))
    code, err = ended(process)
    assert code == 1 and "another process changed" in err and "out.hdr" in err.splitlines()[0], err


def test_a_signal_ends_it_without_a_result(line, tmp_path):
    recorder, process = begun(line, tmp_path)
    process.send_signal(signal.SIGTERM)
    assert ended(process)[0] != 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["live.hdr", "live.img"]


@pytest.mark.parametrize("tells_lines", [True, False])
def test_whole_lines_stay_where_the_last_one_is_none(line, tmp_path, tells_lines):
    recorder = Recorder(line / "whole.img", tmp_path / "live.img", tells_lines)
    recorder.write(7)
    with open(recorder.path, "ab") as file:
        file.write(b"12345")
    tool, *words = command("ace", recorder.path, tmp_path / "out", line)
    result = run(tool, "-follow", 0.05, *words)
    assert result.code == 1
    assert "ended within line 7 (counted from 0), after 5 of its" in result.err
    assert "the 7 whole lines before it, and is kept" in result.err
    os.truncate(recorder.path, 7 * recorder.line_bytes)
    header = recorder.path.with_suffix(".hdr")
    header.write_text(recorder.header.replace(f"lines   = {LINES}", "lines   = 7"))
    same_as_offline("ace", line, tmp_path / "out", recorder.path)
    # The same for statistics.
    with open(recorder.path, "ab") as file:
        file.write(b"1")
    header.write_text("".join(t for t in recorder.header.splitlines(True) if not t.startswith("lines")))
    assert run("gdal_hsi_statistics", "-follow", 0.05, recorder.path, "-o", tmp_path / "live.stat").code == 1
    scenes = json.loads((tmp_path / "live.stat").read_text())["scenes"]
    assert [s["lines"] for s in scenes] == [7]


def test_no_line_at_all(line, tmp_path):
    recorder = Recorder(line / "whole.img", tmp_path / "live.img")
    tool, *words = command("ace", recorder.path, tmp_path / "out", line)
    with assert_untouched(tmp_path):
        result = run(tool, "-follow", 0.05, *words)
    assert result.code == 1 and "no line of" in first_error(result) and "has arrived" in first_error(result)


def test_scenes_that_cannot_grow(line, tmp_path):
    data = np.round(cube(SAMPLES, LINES, BANDS, seed=3, scale=4000.0))
    write_scene(tmp_path / "bsq.img", data, dtype="u2", wavelengths=WAVELENGTHS)
    write_scene(tmp_path / "scene.tif", data, driver="GTiff", dtype="u2", wavelengths=WAVELENGTHS)
    for src, message in (("bsq.img", "interleave = bsq, but a bsq file does not grow"), ("scene.tif", "has no ENVI header"),
                         ("none.img", "has no ENVI header")):
        tool, *words = command("ace", tmp_path / src, tmp_path / "out", line)
        refuse(1, message, tool, "-follow", 1, *words, untouched=[tmp_path])


def test_what_is_no_regular_file_is_not_waited_for(line, tmp_path):
    header = (line / "whole.hdr").read_text()
    os.mkfifo(tmp_path / "fifo.img")
    (tmp_path / "device.img").symlink_to("/dev/null")
    (tmp_path / "folder.img").mkdir()
    for src in ("fifo.img", "device.img", "folder.img"):
        (tmp_path / src).with_suffix(".hdr").write_text(header)
        tool, *words = command("ace", tmp_path / src, tmp_path / "out", line)
        refuse(1, f"{src}' is not a regular file", tool, "-follow", FAR, *words, untouched=[tmp_path])


@pytest.mark.parametrize("dst, of_either, offline", [
    ("o.dat", [], ["-co", "INTERLEAVE=BIL"]), ("o.bsq", ["-co", "INTERLEAVE=BIL"], []), ("o.dat", ["-co", "INTERLEAVE=BIP"], [])])
def test_the_interleave_of_an_output(line, tmp_path, dst, of_either, offline):
    scene = line / "whole.img"
    for folder, words in (("live", ["-follow", 1]), ("offline", offline)):
        (tmp_path / folder).mkdir()
        succeed(run("gdal_hsi_unmix", "-device", "cpu", *words, *of_either, scene, line / "library.csv", tmp_path / folder / dst))
    assert (tmp_path / "live" / dst).read_bytes() == (tmp_path / "offline" / dst).read_bytes()
    told = [envi_header(tmp_path / folder / dst)["interleave"] for folder in ("live", "offline")]
    assert told[0] == told[1] != "bsq"


@pytest.mark.parametrize("words, message", [
    (["gdal_hsi_detect", "-target", "library.csv", "live.img", "o.bil"], "requires -statistics FILE"),
    (["gdal_hsi_detect", "-target", "library.csv", "-background-by", "columns", "live.img", "o.bil"],
     "-follow cannot be used with -background-by"),
    (["gdal_hsi_detect", "-target", "library.csv", "-background-by", "columns", "-statistics", "s.stat", "live.img", "o.bil"],
     "-follow cannot be used with -background-by"),
    (["gdal_hsi_detect", "-target", "library.csv", "-background", "m.img", "live.img", "o.bil"], "-follow cannot be used with -background"),
    (["gdal_hsi_detect", "-target", "library.csv", "-exclude-share", 0.1, "live.img", "o.bil"],
     "-follow cannot be used with -exclude-share"),
    (["gdal_hsi_detect", "-method", "rx", "-window", 1, 5, "live.img", "o.bil"], "-follow cannot be used with -window"),
    (["gdal_hsi_detect", "-method", "sam", "-target-pixel", 0, 0, "live.img", "o.bil"], "cannot be used with -target-pixel"),
    (["gdal_hsi_detect", "-method", "sam", "-target", "library.csv", "-map", "m.dat", "-threshold", "90%", "live.img", "o.bil"],
     "a threshold that depends on all scores"),
    (["gdal_hsi_detect", "-statistics", "other.stat", "-target", "library.csv", "live.img", "o.tif"],
     "dst 'o.tif' cannot be read while it grows: its format is GTiff"),
    (["gdal_hsi_detect", "-statistics", "other.stat", "-target", "library.csv", "-co", "INTERLEAVE=BSQ", "live.img", "o.dat"],
     "cannot grow by lines with -co INTERLEAVE=BSQ"),
    (["gdal_hsi_detect", "-statistics", "other.stat", "-target", "library.csv", "live.img", "o.bsq"],
     "dst 'o.bsq' cannot grow by lines, since its extension means BSQ"),
    (["gdal_hsi_svm_classify", "-apply", "svm.json", "-probabilities", "p.bsq", "live.img", "o.bil"],
     "-probabilities 'p.bsq' cannot grow by lines"),
    (["gdal_hsi_detect", "-statistics", "other.stat", "-target", "library.csv", "-srcwin", 0, 0, 5, 5, "live.img", "o.bil"],
     "-follow cannot be used with -srcwin"),
    (["gdal_hsi_svm_classify", "-if-needed", "-apply", "svm.json", "live.img", "o.bil"], "-follow cannot be used with -if-needed"),
    (["gdal_hsi_svm_classify", "-apply", "svm.json", "live.img", "o.vrt"], "-follow cannot be used with a VRT"),
    (["gdal_hsi_svm_classify", "-apply", "svm.json", "-probabilities", "p.tif", "live.img", "o.bil"],
     "-probabilities 'p.tif' cannot be read while it grows"),
    (["gdal_hsi_unmix", "-draws", 3, "live.img", "library.csv", "o.bil"], "-draws cannot be used with -follow"),
    (["gdal_hsi_statistics", "live.img", "other.img", "-o", "s.stat"], "-follow is for one scene"),
    (["gdal_hsi_unmix", "-follow", 0, "live.img", "library.csv", "o.bil"], "-follow"),
])
def test_what_does_not_go_together(line, tmp_path, words, message):
    recorder = Recorder(line / "whole.img", tmp_path / "live.img")
    recorder.write(LINES)
    for name in ("library.csv", "other.stat", "other.img", "other.hdr", "svm.json"):
        shutil.copy(line / name, tmp_path)
    extra = [] if "-follow" in words else ["-follow", 1]
    refuse(2, message, words[0], *extra, *words[1:], cwd=tmp_path, untouched=[tmp_path])


def test_it_goes_with_no_pipeline(line, tmp_path):
    recorder = Recorder(line / "whole.img", tmp_path / "live.img")
    recorder.write(LINES)
    result = run("gdal_hsi_pipeline", "read", recorder.path, "!", "unmix", "-follow", 1, line / "library.csv", "!", "write",
                 tmp_path / "o.bil")
    assert result.code == 2 and "-follow cannot be used in a pipeline" in first_error(result)
