# SPDX-License-Identifier: MIT
"""Servers that give wrong answers: another part, another version of the file, an encoding. The run fails and names the
server, whether our readers of pixels or GDAL's drivers requested the bytes. Valid but unusual HTTP answers give the
same result, with as few requests."""
import gzip
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from conftest import PLUGINS, assert_untouched, first_error, read, run, start, succeed, write_scene
from http_server import Server
from test_far_away import environment, make, spp, there, values  # noqa: F401

# By raw bytes, by blocks, by chunks; by GDAL's codec; by a driver that only GDAL has.
KINDS = ["BSQ", "tiles", "plain pixels", "hdf5", "packbits", "PCIDSK"]


def scene_of(folder, kind):
    if kind == "packbits":
        return write_scene(folder / "scene.tif", values(), driver="GTiff", dtype="i2",
                           options=["COMPRESS=PACKBITS", "TILED=YES", "BLOCKXSIZE=64", "BLOCKYSIZE=64", "INTERLEAVE=BAND"])
    return make(folder, kind)


def shifted(answer):
    size = answer.file.stat().st_size
    answer.body = answer.file.read_bytes()[answer.first - 4:answer.last - 3]
    answer.headers["Content-Range"] = f"bytes {answer.first - 4}-{answer.last - 4}/{size}"


def other_pixels(answer):
    answer.body = bytes(255 - byte for byte in answer.body)


def tagged(answer):
    other_pixels(answer)
    answer.headers["ETag"] = '"another"'


def dated(answer):
    other_pixels(answer)
    answer.headers["Last-Modified"] = "Sun, 02 Jan 2022 00:00:00 GMT"


def longer(answer):
    other_pixels(answer)
    answer.headers["Content-Range"] = f"bytes {answer.first}-{answer.last}/{answer.file.stat().st_size + 4096}"


def several(answer):
    head = f"--X\r\nContent-Range: {answer.headers.pop('Content-Range')}\r\n\r\n"
    answer.body = head.encode() + answer.body + b"\r\n--X--\r\n"
    answer.headers["Content-Type"] = "multipart/byteranges; boundary=X"


def unnamed(answer):
    del answer.headers["Content-Range"]


def other_unit(answer):
    answer.headers["Content-Range"] = answer.headers["Content-Range"].replace("bytes", "lines")


def too_long(answer):
    answer.body += b"and more"


def packed(answer):
    answer.body = gzip.compress(answer.body)
    answer.headers["Content-Encoding"] = "gzip"
    answer.headers["Content-Length"] = str(len(answer.body))


def marked_as_packed(answer):
    answer.headers["Content-Encoding"] = "gzip"


WRONG = {
    shifted: "is another part of the file", tagged: "another version of the file (ETag was ",
    dated: "another version of the file (Last-Modified was ", longer: "another version of the file (Content-Length was ",
    several: "consists of several parts", unnamed: "does not state its position in the file",
    other_unit: "does not state its position in the file", too_long: "bytes (Content-Length) for Content-Range",
    packed: "(Content-", marked_as_packed: "another version of the file (Content-Encoding was identity, is now gzip)"}


def far(request):
    """Returns a position after the data that are requested when a file is opened."""
    return request.method == "GET" and request.first is not None and request.first >= 256 << 10


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("kind", KINDS)
def test_wrong_answers(tmp_path, there, kind, wrong):  # noqa: F811
    scene = scene_of(there, kind)
    out = tmp_path / "out"
    out.mkdir()
    assert os.path.getsize(scene) > 300 << 10
    hit = []

    def fault(request):
        if not far(request) or request.path != os.path.basename(scene):
            return None
        hit.append(request)
        return wrong
    with Server(there, fault=fault) as server, assert_untouched(out):
        result = spp(server.vsicurl(os.path.basename(scene)), out / "out.img", env=environment(GDAL_HTTP_MAX_RETRY="1"))
    assert hit and result.code == 1
    assert "server error: its answer " in first_error(result) and WRONG[wrong] in first_error(result), result.err
    assert "CURL" not in result.err


@pytest.mark.parametrize("name, wrong", [("scene.img", shifted), ("scene.img", tagged), ("scene.img", longer), ("scene.img", unnamed),
                                         ("scene.hdr", shifted), ("scene.hdr", unnamed), ("scene.img.aux.xml", unnamed)])
def test_wrong_answers_in_opening(tmp_path, there, name, wrong):  # noqa: F811
    """A file next to the scene is requested once, so another version cannot be detected."""
    make(there, "BSQ")
    (there / "scene.img.aux.xml").write_text("<PAMDataset>\n</PAMDataset>\n")
    out = tmp_path / "out"
    out.mkdir()

    def fault(request):
        return wrong if request.method == "GET" and request.path == name and request.first is not None else None
    with Server(there, fault=fault) as server, assert_untouched(out):
        result = spp(server.vsicurl("scene.img"), out / "out.img", env=environment(GDAL_HTTP_MAX_RETRY="1"))
    assert result.code == 1 and name in first_error(result) and "server error" in result.err, result.err


def weak(answer):
    answer.headers["ETag"] = "W/" + answer.headers["ETag"]


def of_any_length(answer):
    answer.headers["Content-Range"] = answer.headers["Content-Range"].split("/")[0] + "/*"


def less(answer):
    """Sends a part of the requested range, with the right header."""
    if len(answer.body) < 100e3:
        return
    half = max(1, len(answer.body) // 2)
    answer.body = answer.body[:half]
    answer.headers["Content-Range"] = f"bytes {answer.first}-{answer.first + half - 1}/{answer.file.stat().st_size}"


def in_chunks(answer):
    del answer.headers["Content-Length"]
    answer.headers["Transfer-Encoding"] = "chunked"
    answer.body = f"{len(answer.body):x}\r\n".encode() + answer.body + b"\r\n0\r\n\r\n"


def in_small_letters(answer):
    answer.headers = {name.lower() if name != "Content-Length" else name: value for name, value in answer.headers.items()}


def without_state(answer):
    answer.headers.pop("ETag", None)
    answer.headers.pop("Last-Modified", None)


@pytest.mark.parametrize("right", [weak, of_any_length, less, in_chunks, in_small_letters, without_state])
@pytest.mark.parametrize("kind", ["BSQ", "tiles", "hdf5"])
def test_unusual_answers(tmp_path, there, kind, right):  # noqa: F811
    scene = scene_of(there, kind)
    succeed(spp(scene, tmp_path / "a.img"))
    with Server(there, fault=lambda request: right if far(request) else None) as server:
        succeed(spp(server.vsicurl(os.path.basename(scene)), tmp_path / "b.img"))
    assert (tmp_path / "a.img").read_bytes() == (tmp_path / "b.img").read_bytes()


@pytest.mark.parametrize("kind", ["BSQ", "tiles", "hdf5"])
def test_answers_behind_a_redirect(tmp_path, there, kind):  # noqa: F811
    """From one address to another, which has the file, or another file of the same name and size."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    scene = scene_of(there, kind)
    name = os.path.basename(scene)
    succeed(spp(scene, tmp_path / "a.img"))
    for file in there.iterdir():
        (elsewhere / file.name).write_bytes(file.read_bytes())
    with Server(elsewhere) as holder:
        def away(answer):
            answer.status, answer.body = 302, b""
            answer.headers = {"Location": holder.url(answer.file.name), "Content-Length": "0"}
        with Server(there, fault=lambda request: away if (there / request.path).is_file() else None) as server:
            succeed(spp(server.vsicurl(name), tmp_path / "b.img"))
            assert (tmp_path / "a.img").read_bytes() == (tmp_path / "b.img").read_bytes()
            holder.fault = lambda request: tagged if far(request) else None
            result = spp(server.vsicurl(name), tmp_path / "c.img", env=environment(GDAL_HTTP_MAX_RETRY="1"))
    assert result.code == 1 and "server error" in first_error(result)


def test_objects(tmp_path, there):  # noqa: F811
    """/vsis3/ works like /vsicurl/ if keys are given."""
    (there / "bucket").mkdir()
    scene_of(there / "bucket", "tiles")
    with Server(there, fault=lambda request: shifted if far(request) else None) as server:
        env = environment(AWS_S3_ENDPOINT=server.url("").split("//")[1].strip("/"), AWS_HTTPS="NO", AWS_VIRTUAL_HOSTING="FALSE",
                          AWS_NO_SIGN_REQUEST="YES", AWS_REGION="us-east-1", GDAL_HTTP_MAX_RETRY="1")
        result = spp("/vsis3/bucket/scene.tif", tmp_path / "b.img", env=env)
    assert result.code == 1 and "server error" in first_error(result)


@pytest.mark.parametrize("debug", ["", "ON", "HSI"])
def test_debug_messages(there, debug):  # noqa: F811
    """Headers are read from GDAL's debug messages, which are printed only on request."""
    scene_of(there, "tiles")
    env = environment(**({"CPL_DEBUG": debug} if debug else {}))
    with Server(there) as server:
        quiet = succeed(run("gdal_hsi_vd", "-q", server.vsicurl("scene.tif"), env=env)).err
        loud = succeed(run("gdal_hsi_vd", "-q", server.vsicurl("scene.tif"), env={**env, "CPL_DEBUG": "ON", "CPL_CURL_VERBOSE": "YES"})).err
    assert "CURL_INFO" not in quiet
    assert ("GDAL: " in quiet) == (debug == "ON")
    assert "CURL_INFO_HEADER_IN: Content-Range: bytes " in loud


def test_custom_headers_follow_redirects(there):  # noqa: F811
    """As in GDAL's own programs, and as documented in files.md: the contents of a custom header also go to the other
    host."""
    scene_of(there, "tiles")
    got = []

    class Asked(Server):
        def __init__(self, *args, **more):
            super().__init__(*args, **more)
            handler, answer_of = self.http.RequestHandlerClass, self.http.RequestHandlerClass.answer_of

            def note(this, files, with_body):
                got.append((files, this.headers.get("X-Mine"), this.headers.get("Authorization")))
                answer_of(this, files, with_body)
            handler.answer_of = note

    with Asked(there) as holder:
        def away(answer):
            answer.status, answer.body = 302, b""
            answer.headers = {"Location": holder.url(answer.file.name).replace("127.0.0.1", "localhost"), "Content-Length": "0"}
        with Asked(there, fault=lambda request: away if (there / request.path).is_file() else None) as server:
            env = environment(no_proxy="127.0.0.1,localhost", GDAL_HTTP_HEADERS="X-Mine: 1,Authorization: Bearer 2")
            told = []
            for words in (["gdalinfo", server.vsicurl("scene.tif")], None):
                got.clear()
                if words:
                    assert subprocess.run(words, env=env, stdout=subprocess.DEVNULL).returncode == 0
                else:
                    succeed(run("gdal_hsi_vd", "-q", server.vsicurl("scene.tif"), env=env))
                told.append({(files is holder, *words) for files, *words in got})
    assert told[0] == told[1] == {(False, "1", "Bearer 2"), (True, "1", None)}


BLOCK = bytes(64 << 10)


def by_length(answer):
    answer.headers["Content-Length"] = str(10**13)
    answer.endless = BLOCK


def by_chunks(answer):
    del answer.headers["Content-Length"]
    answer.headers["Transfer-Encoding"] = "chunked"
    answer.body = f"{len(answer.body):x}\r\n".encode() + answer.body + b"\r\n"
    answer.endless = f"{len(BLOCK):x}\r\n".encode() + BLOCK + b"\r\n"


def until_closed(answer):
    del answer.headers["Content-Length"]
    answer.headers["Connection"] = "close"
    answer.endless = BLOCK


def page_of_an_error(answer):
    answer.status = 404
    answer.headers.pop("Content-Range", None)
    until_closed(answer)


def coefficients(folder):
    rows = "".join(f"{b + 1},,2,1,,,\n" for b in range(40))
    (folder / "line.csv").write_text("band,wavelength,gain,offset,rmse,r2,targets\n" + rows)
    return "line.csv"


@pytest.mark.parametrize("endless", [by_length, by_chunks, until_closed, page_of_an_error])
@pytest.mark.parametrize("what", ["pixels", "opening", "table"])
def test_answers_without_an_end(tmp_path, there, what, endless):  # noqa: F811
    """An answer is cut off if it exceeds a fixed multiple of the request, so memory is limited."""
    scene = make(there, "BSQ")
    table = coefficients(there)
    out = tmp_path / "out"
    out.mkdir()
    name = table if what == "table" else os.path.basename(scene)

    def fault(request):
        body = request.method == "GET" and request.path == name and (what != "pixels" or far(request))
        return endless if body else None
    with Server(there, fault=fault) as server:
        if what == "table":
            result = run("gdal_hsi_reflect", "-q", "-apply", server.vsicurl(table), scene, out / "out.img",
                         env=environment(GDAL_HTTP_MAX_RETRY="0"), timeout=300)
        else:
            result = spp(server.vsicurl(name), out / "out.img", env=environment(GDAL_HTTP_MAX_RETRY="0"))
        requests = server.take()
    if result.code == 0:  # the requested part came first, and equals the file
        assert what == "table" and endless is not page_of_an_error
        succeed(run("gdal_hsi_reflect", "-q", "-apply", there / table, scene, tmp_path / "near.img"))
        assert np.array_equal(read(out / "out.img"), read(tmp_path / "near.img"))
    else:
        assert result.code == 1 and "CURL" not in result.err and not list(out.iterdir()), result.err
        if endless is not page_of_an_error:
            assert "server error: its answer has " in result.err, result.err
    assert max(r.sent for r in requests) < 200e6
    assert sum(r.sent for r in requests) < 1e9


def test_a_size_that_is_not_the_tables(tmp_path, there):  # noqa: F811
    """The server states half of the size when it is asked for the size alone; the table ends there at the end of a row."""
    scene = make(there, "BSQ")
    rows = "".join(f"{400 + b:04},{b % 7 + 1}\n" for b in range(40))
    (there / "library.csv").write_text("wavelength,a\n" + rows)
    half = len("wavelength,a\n") + len(rows) // 2

    def shorter_in_head(answer):
        answer.headers["Content-Length"] = str(half)
    with Server(there, fault=lambda r: shorter_in_head if r.method == "HEAD" and r.path == "library.csv" else None) as server:
        result = run("gdal_hsi_detect", "-q", "-method", "sam", "-target", server.vsicurl("library.csv"), scene, tmp_path / "out.img",
                     "-of", "ENVI", env=environment(GDAL_HTTP_MAX_RETRY="0"))
    assert result.code == 1 and "server error" in first_error(result) and f"Content-Length was {half}" in first_error(result)
    assert not (tmp_path / "out.img").exists()


READ_ONE_AFTER_ANOTHER = """
import sys
from osgeo import gdal
gdal.UseExceptions()
for name in sys.argv[1:]:
    try:
        gdal.Open(name).ReadAsArray()
        print("read")
    except RuntimeError as error:
        print(str(error).replace(chr(10), " "))
"""


def test_failures_one_after_another(tmp_path, there):  # noqa: F811
    """In one process: an endless answer, a failure of another file on that server, then another failure of the first
    file."""
    make(there, "BSQ")
    for suffix in (".img", ".hdr"):
        (there / ("other" + suffix)).write_bytes((there / ("scene" + suffix)).read_bytes())
    other, failing = [], []

    def fault(request):
        if request.path == "other.img":
            other.append(request)
        return (503 if other else by_length) if failing and far(request) else None
    env = environment(GDAL_HTTP_MAX_RETRY="0", GDAL_DRIVER_PATH=str(PLUGINS), GDAL_HSI_SERVERS="YES")
    names = [tmp_path / "scene.hsi", tmp_path / "other.hsi", tmp_path / "scene.hsi"]
    with Server(there, fault=fault) as server:
        for name in names[:2]:
            succeed(run("gdal_hsi_spp", "-q", server.vsicurl(name.stem + ".img"), name, env=environment()))
        other.clear()
        failing.append(True)
        done = subprocess.run([sys.executable, "-c", READ_ONE_AFTER_ANOTHER, *map(str, names)], env=env, capture_output=True,
                              text=True, timeout=300, check=True)
    cut, *failed = done.stdout.splitlines()
    assert "scene.img" in cut and "its answer has 10000000000000 bytes" in cut
    for name, line in zip(("other.img", "scene.img"), failed, strict=True):
        assert name in line and "the server did not answer, or answered with an error (1 try)" in line, line


@pytest.mark.parametrize("what", ["table", "library", "scene"])
def test_a_signal_ends_a_wait_for_a_server(tmp_path, there, what):  # noqa: F811
    """For any read: the server sends half of the answer, and then nothing."""
    scene = make(there, "BSQ")
    coefficients(there)
    out = tmp_path / "out"
    out.mkdir()
    hit = []

    def fault(request):
        if request.method == "GET" and not request.path.endswith((".hdr", ".xml")):
            hit.append(request)
            return "stall"
        return None
    with Server(there, fault=fault) as server, assert_untouched(out):
        words = {"table": ["reflect", "-apply", server.vsicurl("line.csv"), scene],
                 "library": ["reflect", "-method", "flat", "-area", scene, "-reference", server.vsicurl("line.csv"), scene],
                 "scene": ["spp", server.vsicurl(os.path.basename(scene))]}[what]
        process = start("gdal_hsi_" + words[0], "-q", *words[1:], out / "out.img", env=environment(GDAL_HTTP_LOW_SPEED_TIME="1000"))
        while not hit:
            time.sleep(0.05)
            assert process.poll() is None
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 1 and b"interrupted" in err, err

