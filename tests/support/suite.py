# SPDX-License-Identifier: MIT
"""Common parts of the command-line tests: the executables, scenes made with GDAL's Python, and snapshots of folders.

HSI_BIN_DIR names the folder of the executables (default: build/bin); HSI_TEST_DATA the folder of the real scenes
(default: ../shared/data beside the repository; tests that need them are skipped when it is absent).
"""

import atexit
import collections
import contextlib
import fnmatch
import functools
import hashlib
import os
import pathlib
import resource
import selectors
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time

import numpy as np
import pytest
from osgeo import gdal, osr

gdal.UseExceptions()
# A background shell ignores SIGINT and SIGQUIT, and nohup ignores SIGHUP; the tools that tests start inherit this.
for ignored, ours in ((signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, signal.SIG_DFL), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(ignored) == signal.SIG_IGN:
        signal.signal(ignored, ours)

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("HSI_BIN_DIR", ROOT / "build" / "bin"))
PLUGINS = pathlib.Path(os.environ.get("HSI_PLUGIN_DIR", BIN.parent / "lib" / "gdalplugins"))
DATA = pathlib.Path(os.environ.get("HSI_TEST_DATA", ROOT.parent / "shared" / "data"))

Result = collections.namedtuple("Result", "code out err")
PATIENCE = 900  # seconds: not a bound, but the end of a test that hangs; every normal run takes less on the busiest machine


quick_set = False


def pytest_addoption(parser):
    parser.addoption("--quick", action="store_true", help="run the tests with the mark quick, and the first one of a tool's file without marks")


def pytest_configure(config):
    global quick_set
    quick_set = config.getoption("--quick")
    config.addinivalue_line("markers", "quick: a part of what scripts/test runs without --all")


def pytest_collection_modifyitems(config, items):
    """Selects the quick set if requested. A file test_NAME.py of the tools gdal_hsi_NAME or gdal_hsi_NAME_... without
    marked tests contributes its first test."""
    if not config.getoption("--quick"):
        return
    files = collections.defaultdict(list)
    for item in items:
        files[item.path].append(item)
    kept, others = [], []
    for path, tests in files.items():
        chosen = {test for test in tests if test.get_closest_marker("quick")}
        tool = "gdal_hsi_" + path.stem.removeprefix("test_")
        if not chosen and any(list((ROOT / "gdal_tools").glob(name)) for name in (f"{tool}.cpp", f"{tool}_*.cpp")):
            chosen = {test for test in tests if test.originalname == tests[0].originalname}
        for test in tests:
            (kept if test in chosen else others).append(test)
    config.hook.pytest_deselected(items=others)
    items[:] = kept


def quick_only(chosen, values):
    """Returns the values for parametrize(); the quick set has only the chosen one."""
    return [pytest.param(value, marks=[pytest.mark.quick] if value == chosen else []) for value in values]


def start(tool, *args, limits=None, nice=0, **kwargs):
    """Starts a tool and returns the process. limits: {resource.RLIMIT_X: value}. nice: lowers its priority, so that a
    test which must observe it at work gets a processor first, even on a busy machine."""
    def prepare():
        for what, value in (limits or {}).items():
            resource.setrlimit(what, (value, value))
        os.nice(nice)
    return subprocess.Popen(
        [str(BIN / tool), *map(str, args)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        preexec_fn=prepare if limits or nice else None, **kwargs)


def processor_seconds(process):
    """Returns the processor seconds of the process so far, with all its threads; also of a process that has ended but
    was not waited for."""
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def work_after_signal(process, number):
    """Sends the signal, waits for the end (process.returncode), and returns the processor seconds in between. Unlike
    the elapsed time, they do not depend on the load of the machine."""
    before = processor_seconds(process)
    os.kill(process.pid, number)
    timer = threading.Timer(PATIENCE, process.kill)
    timer.start()
    try:
        _, status, usage = os.wait4(process.pid, 0)
    finally:
        timer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime - before


class ForkServer:
    """Runs tools in forks of one process that has loaded the libraries (tests/support/fork_server.cpp): a run on a small
    scene takes a third of its time."""

    def __init__(self, environment):
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen([str(BIN / "hsi_fork_server"), str(theirs.fileno())], env=environment,
                                             stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])
        self._socket = ours
        self.environment = environment

    def end(self):
        self._socket.close()
        self._process.wait()

    def run(self, words, folder, timeout):
        """Returns the exit code as Popen does, and both outputs."""
        text = b"".join(os.fsencode(word) + b"\0" for word in (folder, *words))
        pipes = [os.pipe() for _ in range(2)]
        socket.send_fds(self._socket, [struct.pack("=I", len(text))], [pipe[1] for pipe in pipes])
        self._socket.sendall(text)
        for pipe in pipes:
            os.close(pipe[1])
        number = self._answer()
        timer = threading.Timer(timeout, os.kill, (number, signal.SIGKILL))
        timer.start()
        outputs = [bytearray(), bytearray()]
        with selectors.DefaultSelector() as streams:
            for output, pipe in zip(outputs, pipes):
                streams.register(pipe[0], selectors.EVENT_READ, output)
            while streams.get_map():
                for key, _ in streams.select():
                    read = os.read(key.fd, 1 << 16)
                    key.data.extend(read)
                    if not read:
                        streams.unregister(key.fd)
                        os.close(key.fd)
        code = os.waitstatus_to_exitcode(self._answer())
        if timer.finished.is_set():
            raise subprocess.TimeoutExpired(words, timeout)
        timer.cancel()
        return code, bytes(outputs[0]), bytes(outputs[1])

    def _answer(self):
        return struct.unpack("=i", self._socket.recv(4, socket.MSG_WAITALL))[0]


class ForkServers:
    """One server for each environment that comes more than once, and for each thread that needs it at the same time."""
    MOST = 6

    def __init__(self):
        self._free = []
        self._begun = collections.Counter()
        self._lock = threading.Lock()
        atexit.register(self.end)

    def end(self):
        for server in self._free:
            server.end()
        self._free = []

    @staticmethod
    def current():
        """Returns true if the executable was linked with the tools of today, or after them."""
        program = BIN / "hsi_fork_server"
        return program.exists() and program.stat().st_mtime_ns >= (BIN / "gdal_hsi").stat().st_mtime_ns

    @contextlib.contextmanager
    def server(self, environment):
        """Gives a server, or None if the run should begin with exec()."""
        if "HSI_TEST_EXEC" in os.environ or "LD_PRELOAD" in environment or not self.current():
            yield None
            return
        environment = {name: str(value) for name, value in environment.items() if name != "PYTEST_CURRENT_TEST"}
        with self._lock:
            self._begun[key := frozenset(environment.items())] += 1
            server = next((one for one in reversed(self._free) if one.environment == environment), None)
            if server:
                self._free.remove(server)
        if not server and self._begun[key] > 1:
            server = ForkServer(environment)
        yield server  # one that fails is left to the end of this process
        if server:
            with self._lock:
                self._free.append(server)
                old = self._free.pop(0) if len(self._free) > self.MOST else None
            if old:
                old.end()


forks = ForkServers()


def run(tool, *args, timeout=PATIENCE, **kwargs):
    """Runs a tool to its end."""
    return run_words([BIN / tool, *args], timeout, **kwargs)


def run_words(words, timeout=PATIENCE, env=None, cwd=None, **kwargs):
    """Runs a tool to its end: its path and its arguments. With limits and the like it begins with exec(), as it does if
    HSI_TEST_EXEC is set; otherwise with fork()."""
    words = list(map(str, words))
    with contextlib.nullcontext() if kwargs else forks.server(env or os.environ) as server:
        if server:
            code, out, err = server.run(words, str(cwd or os.getcwd()), timeout)
            return Result(code, out.decode(errors="replace"), err.decode(errors="replace"))
    process = start(*words, env=env, cwd=cwd, **kwargs)
    try:
        out, err = process.communicate(timeout=timeout)
    finally:
        process.kill()
    return Result(process.returncode, out.decode(errors="replace"), err.decode(errors="replace"))


def spp(*args, **kwargs):
    """Runs gdal_hsi_spp on the CPU, with which these tests compare."""
    return run("gdal_hsi_spp", "-device", "cpu", *args, **kwargs)


def succeed(result):
    assert result.code == 0, f"exit code {result.code}\n{result.out}\n{result.err}"
    return result


def first_error(result):
    """Returns the first line of stderr, which must be the error."""
    line = result.err.splitlines()[0] if result.err else ""
    assert line.startswith("ERROR: "), result.err
    return line[len("ERROR: "):]


def refuse(code, says, *words, untouched=(), by=run, **kwargs):
    """Checks that a tool refuses with this exit code, that the first line of stderr is an error which contains says (a
    text or several), and that the folders stay unchanged. by() runs the words. Returns the result."""
    with assert_untouched(*untouched):
        result = by(*words, **kwargs)
    message = first_error(result)
    assert result.code == code, f"exit code {result.code}: {result.err}"
    for part in [says] if isinstance(says, str) else says:
        assert part in message, message
    return result


refuse_spp = functools.partial(refuse, by=spp)


def snapshot(folder):
    """Returns every file below the folder with its contents and its time of change."""
    facts = {}
    for path in sorted(pathlib.Path(folder).rglob("*")):
        stat = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() and not path.is_symlink() else None
        facts[str(path.relative_to(folder))] = (stat.st_mode, stat.st_size, stat.st_mtime_ns, content)
    return facts


@contextlib.contextmanager
def assert_untouched(*folders):
    """Checks that the code inside leaves the folders unchanged: no new, missing or changed files."""
    before = [snapshot(folder) for folder in folders]
    yield
    for folder, old in zip(folders, before):
        new = snapshot(folder)
        assert set(new) == set(old), f"{folder}: {sorted(set(new) ^ set(old))} came or went"
        assert new == old, f"{folder}: {[name for name in old if old[name] != new[name]]} changed"


def cube(samples=40, lines=30, bands=12, seed=1, scale=1000.0, noise=0.02):
    """Returns positive (bands, lines, samples): fields of a few materials, mixed, unevenly lit, with noise."""
    random = np.random.default_rng(seed)
    spectra = 0.3 + np.abs(np.cumsum(random.normal(0, 0.15, (5, bands)), axis=1))
    field = (np.arange(lines)[:, None] // 7 + np.arange(samples)[None, :] // 5) % 5
    light = random.uniform(0.5, 1.5, (lines, samples))
    data = np.moveaxis(spectra[field], 2, 0) * light + random.normal(0, noise, (bands, lines, samples))
    return np.maximum(data, 0.01) * scale


GDAL_TYPES = {"u1": gdal.GDT_Byte, "u2": gdal.GDT_UInt16, "i2": gdal.GDT_Int16, "i4": gdal.GDT_Int32,
              "f4": gdal.GDT_Float32, "f8": gdal.GDT_Float64}


# The SRS of scenes whose tests do not look at it. For any other SRS, GDAL searches PROJ's database, which takes a third of the
# processor time of a run on a small scene.
LOCAL = 'LOCAL_CS["local",UNIT["metre",1]]'
UTM = 32616  # zone 16 North


def write_scene(path, data, driver="ENVI", dtype="f4", options=(), nodata=None,
                geotransform=(500000, 20, 0, 4480000, 0, -20), epsg=LOCAL, wavelengths=None, fwhm=None, bbl=None, names=None, metadata=None):
    """Writes (bands, lines, samples) as a scene. ENVI headers get the spectral fields directly, GTiff in the forms in
    which GDAL stores them."""
    path = str(path)
    bands, lines, samples = data.shape
    dataset = gdal.GetDriverByName(driver).Create(path, samples, lines, bands, GDAL_TYPES[dtype], list(options))
    if geotransform:
        dataset.SetGeoTransform(geotransform)
    if epsg:
        srs = osr.SpatialReference()
        srs.SetFromUserInput(epsg if isinstance(epsg, str) else f"EPSG:{epsg}")
        dataset.SetProjection(srs.ExportToWkt())
    if metadata:
        dataset.SetMetadata(metadata)
    for b in range(bands):
        band = dataset.GetRasterBand(b + 1)
        if nodata is not None:
            band.SetNoDataValue(nodata)
        if names:
            band.SetDescription(names[b])
        if driver == "GTiff" and wavelengths:
            band.SetMetadataItem("wavelength", str(wavelengths[b]))
            band.SetMetadataItem("wavelength_units", "Nanometers")
        band.WriteArray(data[b].astype(dtype))
    dataset = None
    if driver == "ENVI":
        header = pathlib.Path(path).with_suffix(".hdr")
        text = header.read_text()
        for key, values in (("wavelength", wavelengths), ("fwhm", fwhm), ("bbl", bbl)):
            if values is not None:
                text += f"{key} = {{{', '.join(map(str, values))}}}\n"
        if wavelengths is not None:
            text += "wavelength units = Nanometers\n"
        if isinstance(epsg, str):
            text += f"coordinate system string = {{{epsg}}}\n"  # GDAL's driver writes "Arbitrary", which means no SRS.
        header.write_text(text)
        sidecar = pathlib.Path(path + ".aux.xml")
        if sidecar.exists() and not metadata:
            sidecar.unlink()
    return path


write_utm_scene = functools.partial(write_scene, epsg=UTM)


def open_band(path, number=1):
    """A band that keeps its dataset alive."""
    dataset = gdal.Open(str(path))
    band = dataset.GetRasterBand(number)
    band.dataset = dataset
    return band


def read(path, bands=None):
    """Returns (bands, lines, samples) in double precision; nodata is NaN."""
    dataset = gdal.Open(str(path))
    planes = []
    for b in bands or range(1, dataset.RasterCount + 1):
        band = dataset.GetRasterBand(b)
        plane = band.ReadAsArray().astype(np.float64)
        nodata = band.GetNoDataValue()
        if nodata is not None:
            plane[plane == nodata] = np.nan
        planes.append(plane)
    return np.stack(planes)


def seen_pixels(path, shape, folder, *options):
    """Returns (bands, lines, samples) as the tools read them, in single precision: the spectra of all pixels, line by
    line. For scenes without a georeference whose pixels are all valid."""
    bands, lines, samples = shape
    folder = pathlib.Path(folder)
    labels = write_scene(folder / "all_pixels.tif", np.ones((1, lines, samples)), driver="GTiff", dtype="u1",
                         geotransform=None, epsg=None)
    library = folder / "seen_pixels.sli"
    succeed(run("gdal_hsi_spectra", "-q", "-overwrite", "-kind", "every", *options, path, labels, library))
    double = envi_header(library)["data type"] == "5"  # for scenes that exceed single precision
    return np.fromfile(library, "<f8" if double else "<f4").reshape(lines, samples, bands).transpose(2, 0, 1)


def stored_bytes(path):
    """Returns the pixels as stored, for any format."""
    dataset = gdal.Open(str(path))
    return dataset.ReadAsArray().tobytes()


def envi_header(path):
    """Returns the fields of an ENVI header, names in lower case, lists as lists of texts."""
    text = pathlib.Path(path).with_suffix(".hdr").read_text()
    fields = {}
    key = None
    collected = ""
    for line in text.splitlines()[1:]:
        if key is None:
            if "=" not in line:
                continue
            key, collected = (part.strip() for part in line.split("=", 1))
        else:
            collected += " " + line.strip()
        if collected.startswith("{") and "}" not in collected:
            continue
        value = collected.strip()
        if value.startswith("{"):
            value = [item.strip() for item in value[1:value.index("}")].split(",")]
        fields[key.lower()] = value
        key = None
    return fields


def wait_for(condition, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.002)
    return False


def sizes_below(folder, name="*"):
    """Returns the sizes of a folder's files with matching names, at any depth; ignores files that a running tool
    removes meanwhile."""
    for parent, _, names in os.walk(folder):
        for one in fnmatch.filter(names, name):
            with contextlib.suppress(FileNotFoundError):
                yield os.stat(os.path.join(parent, one)).st_size


def real_scene(name):
    """Returns the path of a real scene, or skips the test and states what is missing. The quick set makes all its
    scenes."""
    if quick_set:
        pytest.skip("real scenes are in scripts/test --all")
    path = DATA / name
    if not path.exists():
        pytest.skip(f"the real scene {name} is absent (HSI_TEST_DATA is {DATA})")
    return path


def write_small_scene(folder, epsg=LOCAL):
    folder.mkdir()
    return write_scene(folder / "scene.img", cube(), wavelengths=[400 + 10 * b for b in range(12)],
                       fwhm=[9.5 + b / 10 for b in range(12)], epsg=epsg)


@pytest.fixture
def scene(tmp_path):
    """Makes a small ENVI BSQ scene in its own folder."""
    return write_small_scene(tmp_path / "in")


@pytest.fixture
def utm_scene(tmp_path):
    """Makes the same scene in UTM."""
    return write_small_scene(tmp_path / "in", UTM)


@pytest.fixture
def out(tmp_path):
    """Returns an empty folder for outputs."""
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


@pytest.fixture
def small_disk(tmp_path):
    """Mounts a file system of 4 MB, if permitted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)], capture_output=True).returncode == 0
    if not mounted:
        pytest.skip("mounting a tmpfs is not allowed here (test_bad_input.test_file_that_may_not_grow has the same failure)")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)
