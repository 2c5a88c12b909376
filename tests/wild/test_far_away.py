# SPDX-License-Identifier: MIT
"""Scenes on a server: results equal those of local files bit by bit; each byte is fetched once, over several
connections; temporary failures are retried; permanent failures are errors without an output."""
import json
import os
import signal
import time

import numpy as np
import pytest
from conftest import UTM, assert_untouched, cube, first_error, gdal, run, start, succeed, write_scene
from http_server import Server

SAMPLES, LINES, BANDS = 150, 120, 40
PAGE = 16 << 10  # of GDAL's own cache, through which it reads data other than pixels
TIFF = {
    "tiles": ["COMPRESS=DEFLATE", "PREDICTOR=2", "TILED=YES", "BLOCKXSIZE=64", "BLOCKYSIZE=48", "INTERLEAVE=BAND"],
    "pixel tiles": ["COMPRESS=ZSTD", "TILED=YES", "BLOCKXSIZE=64", "BLOCKYSIZE=48", "INTERLEAVE=PIXEL"],
    "strips": ["COMPRESS=LZW", "BLOCKYSIZE=7", "INTERLEAVE=BAND"],
    "plain": ["INTERLEAVE=BAND"],
    "plain pixels": ["INTERLEAVE=PIXEL", "TILED=YES"],
}
ENVI = ["BSQ", "BIL", "BIP"]
KINDS = [*TIFF, "cog", *ENVI, "hdf5"]


def values(samples=SAMPLES, lines=LINES, bands=BANDS):
    data = cube(samples, lines, bands, seed=5, noise=0.2)
    return data.astype("i2")


def make(folder, kind, data=None):
    data = values() if data is None else data
    if kind in TIFF:
        return write_scene(folder / "scene.tif", data, driver="GTiff", dtype="i2", options=TIFF[kind])
    if kind in ENVI:
        return write_scene(folder / "scene.img", data, dtype="i2", options=[f"INTERLEAVE={kind}"])
    if kind == "PCIDSK":
        return write_scene(folder / "scene.pix", data, driver="PCIDSK", dtype="i2", epsg=UTM)
    if kind == "cog":
        write_scene(folder / "stage.tif", data, driver="GTiff", dtype="i2")
        gdal.Translate(str(folder / "scene.tif"), str(folder / "stage.tif"), format="COG",
                       creationOptions=["COMPRESS=DEFLATE", "PREDICTOR=YES", "BLOCKSIZE=128"])
        (folder / "stage.tif").unlink()
        return str(folder / "scene.tif")
    h5py = pytest.importorskip("h5py")
    if gdal.GetDriverByName("HDF5") is None:
        pytest.skip("this GDAL has no HDF5")
    path = folder / "scene.h5"
    with h5py.File(path, "w") as h:
        group = h.create_group("SITE/Reflectance")
        group.create_dataset("Reflectance_Data", data=np.moveaxis(data, 0, 2), chunks=(16, 25, 10), compression="gzip", shuffle=True)
        spectral = group.create_group("Metadata/Spectral_Data")
        spectral["Wavelength"] = np.linspace(400, 2400, len(data))
        spectral["FWHM"] = np.full(len(data), 10.)
        place = group.create_group("Metadata/Coordinate_System")
        place["Map_Info"] = np.bytes_("UTM, 1.000, 1.000, 300000.000, 4000000.000, 1.0, 1.0, 11, North, WGS-84, units=Meters, 0")
        place["EPSG Code"] = np.bytes_("32611")
    return str(path)


@pytest.fixture
def there(tmp_path):
    """Returns the server's folder."""
    folder = tmp_path / "there"
    folder.mkdir()
    return folder


def environment(**more):
    return {**os.environ, "no_proxy": "127.0.0.1", "GDAL_HTTP_RETRY_DELAY": "0.1", **more}


def spp(*args, **kwargs):
    kwargs.setdefault("env", environment())
    kwargs.setdefault("timeout", 300)
    return run("gdal_hsi_spp", "-device", "cpu", "-q", "-overwrite", "-of", "ENVI", *args, **kwargs)


def twice(requests, name):
    """Returns the bytes of the file that were sent repeatedly, and the bytes that were sent in total."""
    sent = sorted((r.first, r.first + r.sent) for r in requests if r.method == "GET" and r.path == name and r.first is not None)
    end = again = every = 0
    for first, last in sent:
        every += max(0, last - max(first, end))
        again += max(0, min(last, end) - first)
        end = max(end, last)
    return again, every


@pytest.mark.parametrize("kind", KINDS)
def test_values_and_bytes(tmp_path, there, kind):
    scene = make(there, kind)
    name = os.path.basename(scene)
    with Server(there, latency=0.01) as server:
        succeed(spp("-ws", 5, scene, tmp_path / "out.img"))
        expected = (tmp_path / "out.img").read_bytes()
        for words in (["-threads", 1], ["-threads", 3], ["-threads", 2, "-tile", 50, 30]):
            succeed(spp("-ws", 5, *words, server.vsicurl(name), tmp_path / "out.img"))
            assert (tmp_path / "out.img").read_bytes() == expected, words
            again, every = twice(server.take(), name)
            assert again <= 4 * PAGE, (words, again, every)
            assert every >= os.path.getsize(scene) * 0.6 and not kind == "cog" or every > 0  # a COG has overviews


@pytest.mark.parametrize("kind", KINDS)
def test_passes(tmp_path, there, kind):
    """Several passes: bytes fetched for the first are kept for the others."""
    scene = make(there, kind)
    name = os.path.basename(scene)
    outputs = []
    with Server(there) as server:
        for src in (scene, server.vsicurl(name)):
            succeed(run("gdal_hsi_pca", "-q", "-overwrite", "-device", "cpu", "-of", "ENVI", "-nc", 3, src, tmp_path / "out.img", env=environment()))
            outputs.append((tmp_path / "out.img").read_bytes())
        assert outputs[0] == outputs[1]
        again, every = twice(server.take(), name)
        assert again <= 4 * PAGE, (again, every)


@pytest.mark.parametrize("kind", ["BSQ", "BIP", "tiles"])
def test_several_connections(tmp_path, there, kind):
    scene = make(there, kind, values(400, 300, 40))
    with Server(there, latency=0.1) as server:
        succeed(spp("-threads", 1, server.vsicurl(os.path.basename(scene)), tmp_path / "out.img"))
        assert 3 <= server.most_at_once <= 9


@pytest.mark.parametrize("kind", ["BSQ", "BIL", "tiles", "strips", "hdf5"])
def test_little_memory(tmp_path, there, kind):
    """The file exceeds memory: each pass fetches it once, including the lines that two tiles need. Blocks that are
    decoded while others are being fetched also count against the memory."""
    scene = make(there, kind, values(400, 700, 64))  # 36 MB, of which 16 may be in memory
    name = os.path.basename(scene)
    outputs = []
    with Server(there) as server:
        for src, threads in ((scene, 2), (server.vsicurl(name), 2), (server.vsicurl(name), 1), (server.vsicurl(name), 5)):
            succeed(spp("-ws", 7, "-memory", "64MB", "-threads", threads, "-report", tmp_path / "r.json", src,
                        tmp_path / "out.img"))
            outputs.append((tmp_path / "out.img").read_bytes())
            assert outputs[0] == outputs[-1], threads
            report = json.loads((tmp_path / "r.json").read_text())
            assert report["peak_resident_bytes"] <= 130e6, threads  # including the libraries' own
            again, every = twice(server.take(), name)
            if src != scene:
                assert len(report["passes"]) == 2
                # A block that a neighbour used may be gone when it is needed again.
                assert again <= (every if kind in ENVI else 1.2 * every) + 4 * PAGE
                assert every == os.path.getsize(scene) or kind not in ENVI


@pytest.mark.quick
def test_some_bands_and_a_window(tmp_path, there):
    scene = make(there, "BSQ", values(400, 300, 40))
    words = ["-b", "3,17,18", "-srcwin", 40, 60, 300, 100]
    outputs = []
    with Server(there) as server:
        for src in (scene, server.vsicurl("scene.img")):
            succeed(spp(*words, src, tmp_path / "out.img"))
            outputs.append((tmp_path / "out.img").read_bytes())
        assert outputs[0] == outputs[1]
        _, every = twice(server.take(), "scene.img")
        assert every < 0.2 * os.path.getsize(scene)


def test_s3(tmp_path, there):
    (there / "bucket").mkdir()
    scene = make(there / "bucket", "cog")
    succeed(spp(scene, tmp_path / "a.img"))
    with Server(there) as server:
        env = environment(AWS_S3_ENDPOINT=server.url("").split("//")[1].strip("/"), AWS_HTTPS="NO", AWS_VIRTUAL_HOSTING="FALSE",
                          AWS_NO_SIGN_REQUEST="YES", AWS_REGION="us-east-1")
        succeed(spp("/vsis3/bucket/scene.tif", tmp_path / "b.img", env=env))
        again, _ = twice(server.take(), "bucket/scene.tif")
    assert (tmp_path / "a.img").read_bytes() == (tmp_path / "b.img").read_bytes()
    assert again <= 20 * PAGE  # for headers, GDAL requests the beginning of the file


TEXTS = {
    "pca -apply": ("pca", "-apply", "pca.json"),
    "mnf -apply": ("mnf", "-apply", "mnf.json"),
    "detect -statistics": ("detect", "-method", "rx", "-statistics", "s.stat"),
    "detect -target": ("detect", "-method", "sam", "-target", "library.csv"),
    "svm_classify model": ("svm_classify", "svm.json"),
    "list of scenes": ("statistics", "@scenes.txt"),
}


@pytest.mark.parametrize("what", TEXTS)
def test_texts(tmp_path, there, what):
    """Models, statistics, libraries and lists have the names that scenes may have."""
    scene = make(there, "BSQ")
    write_scene(there / "labels.tif", (np.arange(LINES * SAMPLES).reshape(1, LINES, SAMPLES) % 3).astype("u1"), "GTiff", dtype="u1")
    (there / "library.csv").write_text("wavelength,a\n" + "".join(f"{400 + b},{b % 7 + 1}\n" for b in range(BANDS)))
    (there / "scenes.txt").write_text(f"{scene}\n")
    scrap = tmp_path / "scrap.tif"
    makes = {"pca.json": ("pca", "-nc", 2, "-model", there / "pca.json", scene, scrap),
             "mnf.json": ("mnf", "-nc", 2, "-model", there / "mnf.json", scene, scrap),
             "s.stat": ("statistics", scene, "-o", there / "s.stat"),
             "svm.json": ("svm_train", "-C", 1, "-gamma", 0.1, scene, there / "labels.tif", there / "svm.json")}
    tool, *words, name = TEXTS[what]
    if name in makes:
        made, *options = makes[name]
        succeed(run("gdal_hsi_" + made, "-q", *options))
    mark, name = ("@", name[1:]) if name.startswith("@") else ("", name)

    def result(file, out):
        raster = out.suffix != ".stat"
        first, last = ([scene], []) if what == "svm_classify model" else ([], [scene] if raster else [])
        return run("gdal_hsi_" + tool, "-q", *(["-of", "ENVI", "-overwrite"] if raster else []), *first, *words, mark + str(file), *last,
                   *([] if raster else ["-o"]), out, env=environment(GDAL_HTTP_MAX_RETRY="0"))
    suffix = ".stat" if tool == "statistics" else ".img"
    succeed(result(there / name, tmp_path / ("near" + suffix)))
    with Server(there) as server:
        succeed(result(server.vsicurl(name), tmp_path / ("far" + suffix)))
        assert any(r.path == name for r in server.take())
        missing = result(server.vsicurl("none" + name), tmp_path / ("none" + suffix))
        gone = server.vsicurl(name)
    if suffix == ".img":
        assert (tmp_path / "far.img").read_bytes() == (tmp_path / "near.img").read_bytes()
    for failed in (missing, result(gone, tmp_path / ("none" + suffix))):
        assert failed.code == 1 and "the server has no such file, or does not answer" in first_error(failed)
        assert not (tmp_path / ("none" + suffix)).exists()


def test_a_published_folder(tmp_path, there):
    """A virtual scene and its source, made here and opened on the server, which states whole seconds of their times."""
    make(there, "BSQ")
    os.utime(there / "scene.img", ns=(1_700_000_000_500_000_000,) * 2)
    succeed(run("gdal_hsi_spp", "-q", there / "scene.img", there / "y.hsi"))

    def components(source, out):
        return run("gdal_hsi_pca", "-q", "-nc", 2, "-of", "ENVI", source, out, env=environment(GDAL_HSI_SERVERS="YES"))
    succeed(components(there / "y.hsi", tmp_path / "near.img"))
    with Server(there) as server:
        succeed(components(server.vsicurl("y.hsi"), tmp_path / "far.img"))
        os.utime(there / "scene.img", ns=(1_700_000_009_500_000_000,) * 2)
        changed = components(server.vsicurl("y.hsi"), tmp_path / "changed.img")
    assert (tmp_path / "far.img").read_bytes() == (tmp_path / "near.img").read_bytes()
    assert changed.code == 1 and "was changed after" in first_error(changed)


def is_of_pixels(request):
    """Returns true for requests of pixels; GDAL's own requests come in pages, and are few."""
    if request.first is None or request.first == 0:
        return False
    return request.first % PAGE != 0 or request.last + 1 - request.first > 8 * PAGE


class Faults:
    """Makes the first `count` answers with pixels fail."""

    def __init__(self, what, count):
        self.what, self.left, self.hit = what, count, 0

    def __call__(self, request):
        if self.left == 0 or not is_of_pixels(request):
            return None
        self.left -= 1
        self.hit += 1
        return self.what


@pytest.mark.parametrize("what", [404, 429, 500, 503, "cut", "stall"])
@pytest.mark.parametrize("kind", ["BSQ", "tiles", "hdf5"])
def test_failures_that_pass(tmp_path, there, kind, what):
    scene = make(there, kind)
    succeed(spp(scene, tmp_path / "a.img"))
    faults = Faults(what, 3)
    with Server(there, fault=faults) as server:
        succeed(spp(server.vsicurl(os.path.basename(scene)), tmp_path / "b.img", env=environment(GDAL_HTTP_LOW_SPEED_TIME="1")))
    assert faults.left == 0
    assert (tmp_path / "a.img").read_bytes() == (tmp_path / "b.img").read_bytes()


def told_of(header):
    """Returns the lines of an ENVI header about position and bands."""
    lines = header.read_text().splitlines()
    return [line for line in lines if not any(word in line for word in ("hsi", "GDAL", "127.0.0.1", ".img}"))]


@pytest.mark.parametrize("what", [503, "cut"])
@pytest.mark.parametrize("kind, part", [("BSQ", ""), ("tiles", ""), ("PCIDSK", ""), ("hdf5", ""), ("hdf5", "//cube")])
def test_failures_in_opening(tmp_path, there, kind, part, what):
    """Some requests for the beginning of the scene fail: either the scene opens, or the message blames the server."""
    scene = make(there, kind)
    name = os.path.basename(scene)
    if part:
        import h5py
        with h5py.File(scene, "w") as h:
            h.create_dataset("cube", data=values(), chunks=(10, 16, 25), compression="gzip")
    succeed(spp(f'HDF5:"{scene}":{part}' if part else scene, tmp_path / "a.img"))
    for stays in (False, True):
        for number in range(4):
            asked = []

            def fault(request, asked=asked, number=number, stays=stays):
                if request.method != "GET" or request.path != name:
                    return None
                asked.append(request)
                now = len(asked) - 1
                return what if now == number or (stays and now > number) else None

            with Server(there, fault=fault) as server:
                src = f'HDF5:"{server.vsicurl(name)}":{part}' if part else server.vsicurl(name)
                result = spp(src, tmp_path / "b.img", "-overwrite", env=environment(
                    GDAL_HTTP_MAX_RETRY="1" if stays else "3"))
            if stays and len(asked) > number:
                assert result.code == 1
                error = result.err[result.err.index("ERROR: "):]
                assert any(word in error for word in ("broke", "503", "cannot fetch")), error
            else:
                succeed(result)
                assert (tmp_path / "a.img").read_bytes() == (tmp_path / "b.img").read_bytes()
                assert told_of(tmp_path / "a.hdr") == told_of(tmp_path / "b.hdr")


@pytest.mark.parametrize("what", [404, 500, "whole", "stall"])
@pytest.mark.parametrize("kind", ["BIL", "cog", "hdf5"])
def test_failures_that_stay(tmp_path, there, kind, what):
    scene = make(there, kind)
    out = tmp_path / "out"
    out.mkdir()
    with Server(there, fault=Faults(what, -1)) as server, assert_untouched(out):
        result = spp(server.vsicurl(os.path.basename(scene)), out / "out.img",
                     env=environment(GDAL_HTTP_MAX_RETRY="1", GDAL_HTTP_LOW_SPEED_TIME="1"))
        asked = len(server.take())
    assert result.code == 1
    error = first_error(result)
    assert "cannot fetch" in error and os.path.basename(scene) in error
    if what == "whole":
        assert "sends the whole file" in error
    else:
        assert "(2 tries)" in error
    assert asked < 80


def make_with_side_file(folder, kind):
    """Makes a scene whose nodata, bad bands or mask are in a file next to it, and returns that file's name."""
    data = values()
    if kind == "hdr":
        scene = make(folder, "BSQ")
        header = folder / "scene.hdr"
        header.write_text(header.read_text() + "bbl = {" + ", ".join(["1"] * (len(data) - 3) + ["0"] * 3) + "}\n")
        return scene, header
    scene = write_scene(folder / "scene.tif", data, driver="GTiff", dtype="i2", options=TIFF["tiles"])
    if kind == "msk":
        dataset = gdal.Open(scene)
        dataset.CreateMaskBand(gdal.GMF_PER_DATASET)  # a separate file, since the dataset is open for reading
        mask = np.full(data.shape[1:], 255, "u1")
        mask[::2, 10:] = 0
        dataset.GetRasterBand(1).GetMaskBand().WriteArray(mask)
        del dataset
        return scene, folder / "scene.tif.msk"
    side = folder / "scene.tif.aux.xml"
    assert not side.exists()
    value = int(data[0, 3, 3])
    side.write_text("<PAMDataset>\n" + "".join(
        f'<PAMRasterBand band="{b + 1}">\n<NoDataValue>{value}</NoDataValue>\n</PAMRasterBand>\n' for b in range(len(data))) + "</PAMDataset>\n")
    return scene, side


@pytest.mark.parametrize("what", [500, 503, "cut"])
@pytest.mark.parametrize("kind", ["hdr", "msk", "aux"])
def test_side_files(tmp_path, there, kind, what):
    """Information about values arrives completely, or there is an error: GDAL would continue without it."""
    scene, side = make_with_side_file(there, kind)
    name = os.path.basename(scene)
    succeed(spp(scene, tmp_path / "a.img"))
    hidden = side.with_name("hidden")
    side.rename(hidden)
    without = spp(scene, tmp_path / "b.img")
    assert without.code != 0 or (tmp_path / "a.img").read_bytes() != (tmp_path / "b.img").read_bytes()
    hidden.rename(side)
    for count in (1, -1):
        left = [count]

        def fault(request):
            if request.path != side.name or left[0] == 0 or (what == "cut" and request.method != "GET"):
                return None
            left[0] -= 1
            return what
        out = tmp_path / f"out{count}"
        out.mkdir()
        with Server(there, fault=fault) as server:
            result = spp(server.vsicurl(name), out / "out.img", env=environment(GDAL_HTTP_MAX_RETRY="1"))
        if count > 0:
            succeed(result)
            assert (out / "out.img").read_bytes() == (tmp_path / "a.img").read_bytes()
        else:
            assert result.code == 1 and os.listdir(out) == []
            assert side.name in first_error(result)


def wavelength_of(path, band):
    dataset = gdal.Open(str(path))
    return dataset.GetRasterBand(band).GetMetadataItem("wavelength")


def test_a_directory_at_the_end(tmp_path, there):
    """The metadata of a GeoTIFF that was changed in place are after its pixels. Each request during opening is
    truncated once, and the result must be the same."""
    scene = make(there, "tiles")
    dataset = gdal.Open(scene, gdal.GA_Update)
    for b in range(1, dataset.RasterCount + 1):
        dataset.GetRasterBand(b).SetMetadataItem("wavelength", str(500 + 10 * b))
        dataset.GetRasterBand(b).SetMetadataItem("wavelength_units", "Nanometers")
        dataset.GetRasterBand(b).SetMetadataItem("note", "n" * 2000)
    del dataset
    succeed(spp(scene, tmp_path / "a.img"))
    assert wavelength_of(tmp_path / "a.img", 2) == "520"
    for k in range(1, 6):
        seen = []

        def fault(request):
            if request.method == "GET" and request.path == "scene.tif":
                seen.append(request)
                return "cut" if len(seen) == k else None
            return None
        with Server(there, fault=fault) as server:
            succeed(spp(server.vsicurl("scene.tif"), tmp_path / "b.img", env=environment(GDAL_HTTP_MAX_RETRY="2")))
        assert (tmp_path / "a.img").read_bytes() == (tmp_path / "b.img").read_bytes(), k
        assert wavelength_of(tmp_path / "b.img", 2) == "520", k


def change_after(folder, name, count, change):
    """A fault that never fails, but changes the file after this number of ranges."""
    left = [count]

    def fault(request):
        if is_of_pixels(request):
            left[0] -= 1
            if left[0] == 0:
                change(folder / name)
        return None
    return fault


def other_values(path):
    bytes = path.read_bytes()
    new = path.with_name("new")
    new.write_bytes(bytes[:len(bytes) // 2] + bytes[:len(bytes) - len(bytes) // 2])
    os.utime(new, (1e9, 1e9))
    os.replace(new, path)


def shorter(path):
    os.truncate(path, path.stat().st_size // 2)


@pytest.mark.parametrize("change", [other_values, shorter])
@pytest.mark.parametrize("kind", ["BSQ", "tiles", "hdf5"])
def test_file_that_changes(tmp_path, there, kind, change):
    scene = make(there, kind)
    name, out = os.path.basename(scene), tmp_path / "out"
    out.mkdir()
    for tags, dated in ((True, True), (False, True), (True, False)):
        before = open(scene, "rb").read()
        with Server(there, fault=change_after(there, name, 1, change), tags=tags, dated=dated) as server, assert_untouched(out):
            result = spp("-threads", 2, server.vsicurl(name), out / "out.img", env=environment(GDAL_HTTP_MAX_RETRY="1"))
        assert result.code == 1
        assert "has changed while it was read" in first_error(result)
        open(scene, "wb").write(before)


def test_file_that_changes_while_gdal_reads_it(tmp_path, there):
    """With a codec that only GDAL has."""
    scene = write_scene(there / "scene.tif", values(300, 200, 30), driver="GTiff", dtype="i2",
                        options=["COMPRESS=PACKBITS", "TILED=YES", "BLOCKXSIZE=64", "BLOCKYSIZE=64", "INTERLEAVE=BAND"])
    out = tmp_path / "out"
    out.mkdir()
    pages = []

    def fault(request):
        if request.method == "GET" and request.path == "scene.tif":
            pages.append(request)
        if len(pages) == 20:  # long after it was opened
            os.utime(scene, (1e9, 1e9))
        return None
    with Server(there, fault=fault, tags=False) as server, assert_untouched(out):
        result = spp(server.vsicurl(os.path.basename(scene)), out / "out.img")
    assert result.code == 1 and "has changed while it was read" in first_error(result)


def rounds(requests):
    """Returns the least number of sequential rounds: requests of one round begin only after those of the previous round
    have ended."""
    count, end = 0, 0.0
    for r in sorted(requests, key=lambda r: r.ended):
        if r.begun >= end:
            count, end = count + 1, r.ended
    return count


def before_pixels(requests, name):
    """Returns the requests that ended before the first request of pixels began."""
    first = min(r.begun for r in requests if r.path == name and is_of_pixels(r))
    return [r for r in requests if r.ended <= first]


@pytest.mark.parametrize("kind", KINDS)
def test_few_rounds(there, kind):
    """Everything before the pixels is requested at once, and nothing twice."""
    scene = make(there, kind, values(400, 300, 40))
    name = os.path.basename(scene)
    with Server(there, latency=0.25) as server:
        succeed(run("gdal_hsi_vd", "-q", server.vsicurl(name), env=environment()))
        asked = server.take()
    opening = before_pixels(asked, name)
    questions = [(r.method, r.path, r.first) for r in opening]
    assert len(questions) == len(set(questions))
    assert rounds(opening) <= (10 if kind == "hdf5" else 5 if name.endswith(".tif") else 4)
    assert len(opening) <= (20 if kind in ENVI else 60)
    assert [r.method for r in asked if r.path == name].count("HEAD") == 2  # at the beginning and at the end


@pytest.mark.parametrize("kind", ["BSQ", "tiles", "strips"])
def test_no_small_requests(there, kind):
    """Tiles are a few lines high, and each band has some kilobytes of them: bands are not requested one by one."""
    scene = make(there, kind, values(614, 256, 100))
    name = os.path.basename(scene)
    with Server(there, latency=0.05) as server:
        succeed(run("gdal_hsi_vd", "-q", server.vsicurl(name), env=environment()))
        asked = [r for r in server.take() if r.path == name and is_of_pixels(r)]
    assert sum(r.sent < 100e3 for r in asked) <= 4


def facts_of(path, env=None):
    facts = json.loads(succeed(run("gdal_hsi_info", "-json", path, **({"env": env} if env else {}))).out)
    for key in ("path", "next"):
        facts.pop(key, None)
    return facts


@pytest.mark.parametrize("lists", [False, True])
@pytest.mark.parametrize("kind", ["BSQ", "tiles", "cog"])
def test_files_beside_it(there, kind, lists):
    """Names of bands and their wavelengths are in a separate file. Files that a server's list lacks are rarely
    requested."""
    scene = make(there, kind)
    name = os.path.basename(scene)
    (there / "other.tif").write_bytes(b"")
    dataset = gdal.Open(scene)
    for k in range(BANDS):
        band = dataset.GetRasterBand(k + 1)
        band.SetMetadataItem("wavelength", str(500 + 3 * k))
        band.SetMetadataItem("wavelength_units", "Nanometers")
        band.SetDescription(f"beside {k}")
    band = dataset = None
    assert (there / (name + ".aux.xml")).exists()
    with Server(there, lists=lists) as server:
        far = facts_of(server.vsicurl(name), environment())
        asked = {r.path for r in server.take()}
    here = facts_of(scene)
    assert far == here
    assert "beside 7" in json.dumps(far)
    if lists:
        assert len(asked - {"", *os.listdir(there)}) <= 6


@pytest.mark.parametrize("kind", ["BSQ", "tiles", "hdf5"])
@pytest.mark.parametrize("server_is", ["without HEAD", "closing", "listing"])
def test_other_servers(tmp_path, there, kind, server_is):
    """405 for HEAD; connections that end after each answer; folders with listings."""
    scene = make(there, kind)
    succeed(spp(scene, tmp_path / "a.img"))
    fault = (lambda request: 405 if request.method == "HEAD" else None) if server_is == "without HEAD" else None
    with Server(there, fault=fault, closes=server_is == "closing", lists=server_is == "listing") as server:
        succeed(spp(server.vsicurl(os.path.basename(scene)), tmp_path / "b.img"))
        again, _ = twice(server.take(), os.path.basename(scene))
    assert (tmp_path / "a.img").read_bytes() == (tmp_path / "b.img").read_bytes()
    assert again <= 4 * PAGE


@pytest.mark.parametrize("kind", ["BSQ", "cog"])
def test_server_without_ranges(tmp_path, there, kind):
    """200 and the whole file for every request, from the first on."""
    scene = make(there, kind)
    out = tmp_path / "out"
    out.mkdir()
    with Server(there, fault=lambda request: "whole") as server, assert_untouched(out):
        result = spp(server.vsicurl(os.path.basename(scene)), out / "out.img", env=environment())
        asked = server.take()
    assert result.code == 1 and os.path.basename(scene) in first_error(result)
    assert "server error: it sends the whole file" in first_error(result)
    parts = [(r.path, r.first) for r in asked if r.method == "GET" and r.first]
    assert len(parts) == len(set(parts)), parts  # no part is requested again


def test_slow_drip(tmp_path, there):
    """Bytes arrive too slowly: a connection must deliver a thousand per second, or the number that the user sets."""
    scene = make(there, "BIL")
    out = tmp_path / "out"
    out.mkdir()
    with Server(there, fault=Faults("drip", -1)) as server, assert_untouched(out):
        result = spp(server.vsicurl(os.path.basename(scene)), out / "out.img",
                     env=environment(GDAL_HTTP_MAX_RETRY="1", GDAL_HTTP_LOW_SPEED_TIME="1"))
    assert result.code == 1 and "cannot fetch" in first_error(result) and "(2 tries)" in first_error(result)


def test_interrupt(tmp_path, there):
    """A signal arrives while the server is silent."""
    scene = make(there, "BIL")
    out = tmp_path / "out"
    out.mkdir()
    faults = Faults("stall", -1)
    with Server(there, fault=faults) as server, assert_untouched(out):
        process = start("gdal_hsi_spp", "-device", "cpu", "-q", server.vsicurl(os.path.basename(scene)), out / "out.img",
                        env=environment(GDAL_HTTP_LOW_SPEED_TIME="3"))
        while not faults.hit:
            time.sleep(0.05)
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=300)
    assert process.returncode == 1


@pytest.mark.parametrize("kind", ["tiles", "hdf5", "BSQ"])
def test_report(tmp_path, there, kind):
    """Decoding time is reported as for a local file, without waiting for the server."""
    scene = make(there, kind)
    with Server(there, latency=0.2) as server:
        far = server.vsicurl(os.path.basename(scene))
        succeed(run("gdal_hsi_vd", "-q", "-report", tmp_path / "r.json", far, env=environment()))
        taken = json.loads((tmp_path / "r.json").read_text())["passes"][0]
        plans = [succeed(run("gdal_hsi_spp", "-device", "cpu", "-dry-run", "-ws", 3, src, tmp_path / "o.tif", env=environment())).out
                 for src in (far, scene)]
    assert (taken["decode_seconds"] > 0) == (kind != "BSQ")
    assert taken["decode_seconds"] < taken["read_seconds"]
    times = [[line for line in plan.splitlines() if line.startswith("CPU, about ")] for plan in plans]
    assert len(times[0]) == 1 and times[0] == times[1]


def test_info(there):
    scene = make(there, "tiles")
    with Server(there) as server:
        facts = json.loads(succeed(run("gdal_hsi_info", "-json", server.vsicurl(os.path.basename(scene)), env=environment())).out)
    assert facts["size"] == [SAMPLES, LINES, BANDS]
