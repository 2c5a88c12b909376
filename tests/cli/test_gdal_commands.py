# SPDX-License-Identifier: MIT
"""The suite inside GDAL's own command line and Python (GDAL 3.11 and newer): "gdal hsi spp in.img out.tif --ws 7". With
older GDALs: the plugin loads as if there were no commands."""

import json
import keyword
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from osgeo import gdal

from conftest import BIN, PLUGINS, ROOT, assert_untouched, cube, first_error, run, snapshot, succeed, write_scene

VERSION = tuple(int(part) for part in gdal.__version__.split(".")[:2])
MODULE = PLUGINS / f"hsi_commands.{VERSION[0]}.{VERSION[1]}.so"
CPU = ("--device", "cpu")

# GDAL's names for options that have other names in the executables
OWN = {"src": "input", "dst": "output", "o": "output", "dst_test": "output-test", "of": "output-format", "ot": "output-data-type",
       "if": "input-format", "lco": "layer-creation-option", "srcnodata": "src-nodata", "dstnodata": "dst-nodata",
       "threads": "num-threads", "b": "bands", "co": "creation-option", "oo": "open-option", "q": "quiet",
       "output": "output-kind", "bands": "target-bands", "with": "along-with"}

commands = pytest.mark.skipif(VERSION < (3, 11), reason=f"GDAL {gdal.__version__} has no commands (3.11 and newer do)")
newer = pytest.mark.skipif(VERSION < (3, 13), reason=f"GDAL {gdal.__version__} has no step 'external' (3.13 and newer do)")


def environment(plugins=PLUGINS, **more):
    return {**os.environ, "GDAL_DRIVER_PATH": str(plugins), "PATH": f"{BIN}:{os.environ['PATH']}", **more}


def program(*words, plugins=PLUGINS, cwd=None, **more):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=300, check=False, cwd=cwd,
                          stdin=subprocess.DEVNULL, env=environment(plugins, **more))


def command(*words, **more):
    return program("gdal", "hsi", *words, **more)


def done(result):
    assert result.returncode == 0 and "ERROR" not in result.stderr, result.stdout + result.stderr
    return result.stdout


def python(code, *words, plugins=PLUGINS, **more):
    """Runs Python with the plugin in a separate process, and returns its output."""
    return done(program(sys.executable, "-c", "import sys\nfrom osgeo import gdal\ngdal.UseExceptions()\n" + code, *words,
                        plugins=plugins, **more))


def definitions():
    return json.loads(succeed(run("gdal_hsi", "--json-usage")).out)["tools"]


def usage(name):
    """Returns GDAL's own description of a command: its arguments by name."""
    described = json.loads(done(command(name, "--json-usage")))
    return described, {one["name"]: one for one in described["input_arguments"]}


# --- The commands that exist


@commands
def test_the_module_is_built():
    assert MODULE.exists()


@commands
def test_help_lists_the_suite():
    assert re.search(r"^  - hsi: +Hyperspectral image processing$", done(program("gdal", "--help")), re.M)
    text = done(command("--help"))
    for tool in definitions():
        assert f"  - {tool['name'].replace('_', '-')}: " in text and tool["title"] in text


def test_the_documentation_lists_the_suite():
    text = (ROOT / "docs" / "gdal_commands.md").read_text()
    listed = dict(re.findall(r"^  - ([a-z-]+): +(.+)$", text, re.M))
    assert listed == {tool["name"].replace("_", "-"): tool["title"] for tool in definitions()}


@pytest.mark.parametrize("tool", definitions(), ids=lambda tool: tool["name"])
def test_no_two_arguments_have_one_name(tool):
    """GDAL would refuse the second argument, and with it the command."""
    names = [OWN.get(argument["name"], argument["name"].replace("_", "-")) for argument in tool["arguments"]]
    assert len(names) == len(set(names))


@commands
@pytest.mark.parametrize("tool", [tool["name"] for tool in definitions()])
def test_usage_tells_the_definition(tool):
    definition = next(one for one in definitions() if one["name"] == tool)
    name = tool.replace("_", "-")
    described, arguments = usage(name)
    assert described["name"] == name and described["description"] == definition["title"]
    positional = []
    for argument in definition["arguments"]:
        names = [argument["name"].replace("_", "-"), *argument["aliases"]]
        expected = OWN.get(argument["name"]) or next(n for n in names if len(n) > 1 and not keyword.iskeyword(n))
        if argument["name"] == "q":
            continue  # belongs to GDAL, which omits it here in some versions
        there = arguments[expected]
        assert there.get("required", False) == argument["required"], expected
        if argument["positional"]:
            positional.append(expected)
        if argument["type"] == "flag":
            assert there["type"] == "boolean"
        for limit in ("minimum", "maximum"):
            if limit in argument:
                assert there[limit[:3] + "_value"] == argument[limit], expected
        if "choices" in argument:
            assert there["choices"] == [choice["name"] for choice in argument["choices"]]
        if "default" in argument and not argument["repeatable"]:
            assert str(there["default"]) in (argument["default"], f"{argument['default']}.0") or \
                float(there["default"]) == float(argument["default"])
        if argument["values"] > 1:
            most = 2**31 - 1 if argument["repeatable"] else argument["values"]
            least = 1 if argument.get("lists") else argument["values"]  # @FILE counts as one value
            assert (there["min_count"], there["max_count"]) == (least, most)
    assert positional == [n for n in positional if n in done(command(name, "--help")).splitlines()[0].lower().replace("<", "").replace(">", "")]
    assert not [n for n in arguments if n.startswith("option-")], "a name of one letter needs an alias"
    assert "output-string" in {one["name"] for one in described["output_arguments"]}


@commands
def test_help_speaks_as_gdal_does():
    text = done(command("spp", "--help"))
    assert text.startswith("Usage: gdal hsi spp [OPTIONS] <INPUT> <OUTPUT>")
    assert re.search(r"-f, --of, --format, --output-format <OUTPUT-FORMAT>|--output-format <FORMAT>", text)
    assert re.search(r"--ws <N> +Window size, an odd number.*, in pixels, 3 to 63 \(default: 5\)", text)
    assert not re.search(r"(?<![-,])\b(src|dst)\b(?!-)", text)  # also in metavars; sentences use input and output


@commands
def test_names_are_corrected():
    result = command("sp", "--help")
    assert result.returncode == 1 and "spp" in result.stderr
    assert "Do you mean 'svm-classify'?" in command("svm_classify", "--help").stderr
    result = command("spp", "a.img", "b.tif", "--alpa", "c.tif")
    assert result.returncode == 1 and "Do you mean '--alpha'?" in result.stderr
    result = command("sahic", "a.img", "l.tif", "b.tif", "--tv", "isotropi")
    assert result.returncode == 1
    assert "Should be one among 'isotropic', 'anisotropic'" in result.stderr


@commands
def test_completion(tmp_path):
    def complete(*words):
        return done(program("gdal", "completion", "gdal", *words, cwd=tmp_path)).split()

    names = [tool["name"].replace("_", "-") for tool in definitions()]
    assert complete("hsi", "last_word_is_complete=true") == sorted(names)
    assert {"--ws", "--alpha", "--output-format", "--device"} <= set(complete("hsi", "spp", "--"))
    assert complete("hsi", "sahic", "--tv", "last_word_is_complete=true") == ["anisotropic", "isotropic"]
    assert "GTiff" in complete("hsi", "spp", "--of", "last_word_is_complete=true")
    assert "GPKG" in complete("hsi", "atdca", "--of", "last_word_is_complete=true")
    (tmp_path / "scene.tif").write_bytes(b"")
    assert complete("hsi", "spp", "sce") == ["scene.tif"]


# --- Runs


@pytest.mark.quick
@commands
def test_output_is_that_of_the_executable(scene, out):
    target, kept = out / "y.tif", out / "kept.tif"
    succeed(run("gdal_hsi_spp", "-ws", "7", "-device", "cpu", scene, target))
    target.rename(kept)
    result = command("spp", scene, target, "--ws", "7", *CPU)
    assert re.fullmatch(r"0\.\.\.10.*100 - done\.\n", done(result))
    assert target.read_bytes() == kept.read_bytes()  # including the record of the command
    target.unlink()
    assert done(command("spp", "-q", "--device=cpu", "--ws=7", "-i", scene, "-o", target)) == ""
    assert re.search(r"^gdal_hsi_spp -ws 7 -device cpu /", gdal.Open(str(target)).GetMetadataItem("HSI_HISTORY"))


# Every tool, one after another in one folder: its own options in the order of its help, common options, arguments.
CHAIN = [
    ("synth", ["-size", "50", "40", "20", "-seed", "7", "-labels", "truth.tif"], ["scene.dat"]),
    ("spp", ["-ws", "3", "-alpha", "alpha.tif", "-ot", "Float64", "-device", "cpu"], ["scene.dat", "y.tif"]),
    ("pca", ["-nc", "4", "-model", "pca.json", "-device", "cpu"], ["scene.dat", "pcs.tif"]),
    ("eadp", ["-nc", "2", "-c", "2", "-k", "0.25", "-device", "cpu"], ["scene.dat", "profile.tif"]),
    ("atdca", ["-t", "4", "-original", "scene.dat", "-spectra", "targets.sli", "-of", "GeoJSON", "-device", "cpu"],
     ["y.tif", "targets.geojson"]),
    ("sample", ["-n", "8", "-seed", "3"], ["truth.tif", "train.tif", "test.tif"]),
    ("svm_train", ["-C", "8", "-gamma", "0.5", "-probability"], ["scene.dat", "train.tif", "svm.json"]),
    ("svm_classify", ["-confidence", "sure.tif", "-device", "cpu"], ["scene.dat", "svm.json", "svm.tif"]),
    ("sahic", ["-lambda", "1.5", "-iterations", "30", "-model", "mlr.json", "-device", "cpu"], ["scene.dat", "train.tif", "mlr.tif"]),
    ("accuracy", ["-json", "-csv", "matrix.csv"], ["svm.tif", "test.tif"]),
    ("compare", ["-metric", "nrmse,sad", "-json"], ["scene.dat", "y.tif"]),
    ("vd", ["-pf", "0.0001", "-method", "nwhfc", "-json"], ["scene.dat"]),
]


@commands
def test_every_tool_as_its_executable(tmp_path):
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for folder in (ours, theirs):
        folder.mkdir()
    # One BLAS for both, since a foreign program keeps its own.
    haswell = {"OPENBLAS_CORETYPE": "Haswell", "OPENBLAS_L2_SIZE": "256"}
    more = haswell if "avx2" in pathlib.Path("/proc/cpuinfo").read_text() else {}
    for tool, options, arguments in CHAIN:
        executable = program(BIN / f"gdal_hsi_{tool}", *options, *arguments, cwd=ours, **more)
        words = []
        for word in options:  # numbers are joined by commas; long names have two dashes
            if words and not words[-1].startswith("-") and word[0].isdigit():
                words[-1] += "," + word
            else:
                words.append("-" + word if re.fullmatch("-[a-z-]{2,}", word) else word)
        answer = command(tool.replace("_", "-"), *words, *arguments, cwd=theirs, **more)
        assert executable.returncode == answer.returncode == 0, f"{tool}\n{executable.stderr}\n{answer.stderr}"
        if "-json" in options:
            assert json.loads(answer.stdout[answer.stdout.index("{"):]) == json.loads(executable.stdout)
    assert {path.name for path in ours.iterdir()} == {path.name for path in theirs.iterdir()}
    for path in ours.iterdir():
        assert (theirs / path.name).read_bytes() == path.read_bytes(), path.name


@commands
def test_lists_and_names_of_gdal(scene, out):
    theirs, ours = out / "theirs.tif", out / "ours.tif"
    done(command("spp", scene, theirs, "-q", "--srcwin", "2,3,20,10", "-b", "1-4,6", "-b", "8", "--co", "COMPRESS=DEFLATE",
                 "--co", "PREDICTOR=3", "--of", "GTiff", "--src-nodata", "-9999", "--ot", "Float64", "--alpha", out / "a.tif", *CPU))
    succeed(run("gdal_hsi_spp", scene, ours, "-q", "-srcwin", 2, 3, 20, 10, "-b", "1-4,6", "-b", "8", "-co", "COMPRESS=DEFLATE",
                "-co", "PREDICTOR=3", "-of", "GTiff", "-srcnodata", "-9999", "-ot", "Float64", "-alpha", out / "b.tif", "-device", "cpu"))
    a, b = gdal.Open(str(theirs)), gdal.Open(str(ours))
    assert (a.RasterXSize, a.RasterYSize, a.RasterCount) == (20, 10, 6)
    assert a.ReadAsArray().tobytes() == b.ReadAsArray().tobytes()
    assert a.GetMetadataItem("COMPRESSION", "IMAGE_STRUCTURE") == "DEFLATE"
    assert gdal.Open(str(out / "a.tif")).ReadAsArray().tobytes() == gdal.Open(str(out / "b.tif")).ReadAsArray().tobytes()


@commands
def test_numbers_keep_their_digits(scene, out):
    report = out / "run.json"
    done(command("eadp", scene, out / "p.tif", "-q", "-c", "2", "--ts", "0.1", "--nc", "2", "--report", report, *CPU))
    assert json.loads(report.read_text())["options"]["ts"] == "0.1"


@commands
def test_printed_results(scene):
    ours = succeed(run("gdal_hsi_vd", "-q", "-json", scene)).out
    theirs = done(command("vd", "-q", "--json", scene))
    assert theirs == ours and json.loads(theirs)
    assert python("with gdal.Run('hsi', 'vd', input=sys.argv[1], json=True) as alg:\n"
                  "    print(alg.GetArg('output-string').Get(), end='')", scene) == ours


@commands
def test_a_result_that_fails_is_printed_all_the_same(scene, out):
    other = write_scene(out / "other.img", cube(seed=2))
    result = command("compare", "-q", scene, other, "--max-nrmse", "0.001")
    assert result.returncode == 1 and "NRMSE" in result.stdout.upper() and "ERROR 1: " in result.stderr


@commands
def test_errors(scene, out):
    target = out / "y.tif"
    target.write_bytes(b"mine")
    with assert_untouched(out):
        result = command("spp", scene, target)
        assert result.returncode == 1 and result.stdout == ""
        # The message and the advice of the executable in one text, with the names that can be typed here.
        told = first_error(run("gdal_hsi_spp", scene, target))
        assert result.stderr.startswith(f"ERROR 1: {told}")
        assert "--overwrite" in result.stderr
        result = command("spp", scene, out / "z.tif", "--ws", "6")
        assert result.returncode == 1 and "--ws" in result.stderr and "odd" in result.stderr
        result = command("spp", out / "none.img", out / "z.tif")
        assert result.returncode == 1 and "none.img" in result.stderr
        result = command("spp", scene, out / "z.tif", "-ws", "5")
        assert result.returncode == 1
        result = command("spp", scene, out / "z.tif", "--ws", "65")
        assert result.returncode == 1 and "should be <= 63" in result.stderr
        result = command("eadp", scene, out / "z.tif", "--nc", "3", "--no-pca")
        assert result.returncode == 1 and "cannot be used with" in result.stderr
    done(command("spp", scene, target, "-q", "--overwrite", *CPU))
    assert gdal.Open(str(target)).RasterCount == 12
    assert os.listdir(out) == ["y.tif"]


@commands
def test_warnings_are_gdals(scene, out):
    """A band without values is omitted with a warning; with --quiet there is no warning."""
    data = cube()
    data[3] = float("nan")
    holed = write_scene(out / "holed.img", data)
    assert "Warning 1: no valid value in band 4: left out" in command("spp", holed, out / "a.tif", *CPU).stderr
    assert command("spp", "-q", holed, out / "b.tif", *CPU).stderr == ""


@commands
def test_a_command_in_a_file_that_is_opened_writes_nothing(scene, out):
    """GDAL runs the command of a .gdalg.json file when the file is opened."""
    for words in (f"spp {scene} {out}/y.tif", f"vd {scene} --report {out}/run.json"):
        file = out / "trap.gdalg.json"
        file.write_text(json.dumps({"type": "gdal_streamed_alg", "command_line": f"gdal hsi {words}"}))
        with assert_untouched(out):
            assert program("gdal", "raster", "info", file).returncode == 1


# --- Python


@commands
def test_python_session(scene, out):
    text = python("""
from osgeo import gdal
scene, out = sys.argv[1:3]
with gdal.Run("hsi", "spp", input=scene, output=out + "/run.tif", ws=7, device="cpu", srcwin=[0, 0, 20, 10]) as alg:
    print(alg.GetArg("output").Get() == out + "/run.tif")
if hasattr(gdal, "alg"):
    print("ws" in gdal.alg.hsi.spp.__doc__)
    for name in sys.argv[3:]:
        print(callable(getattr(gdal.alg.hsi, name)))
    print(callable(gdal.alg.raster.info))  # one function that Python cannot make, and there are none
    gdal.alg.hsi.spp(input=scene, output=out + "/alg.tif", ws=7, device="cpu", srcwin=[0, 0, 20, 10], bands=["1-3", "5"])
done = []
gdal.Run("hsi", "spp", {"input": scene, "output": out + "/told.tif"}, progress=lambda p, text, data: done.append(p) or 1)
print(done == sorted(done) and done[-1] == 1.0)
""", scene, out, *(tool["name"] for tool in definitions()))
    assert set(text.split()) == {"True"}
    assert gdal.Open(str(out / "run.tif")).RasterXSize == 20
    if VERSION >= (3, 12):
        assert gdal.Open(str(out / "alg.tif")).RasterCount == 4


@commands
def test_cancelled_by_the_progress_function(tmp_path, out):
    scene = write_scene(tmp_path / "large.img", cube(samples=400, lines=400, bands=12))
    with assert_untouched(out):
        text = python("""
import threading
here = threading.get_ident()
def stop(done, text, data):
    assert threading.get_ident() == here
    return 0 if done > 0.1 else 1
try:
    gdal.Run("hsi", "spp", input=sys.argv[1], output=sys.argv[2] + "/y.tif", tile=[64, 64], device="cpu", progress=stop)
except RuntimeError as e:
    print(type(e).__name__, e)
""", tmp_path / "large.img", out)
    assert text == "RuntimeError interrupted. No output was written.\n"


@commands
def test_python_errors(scene, out):
    with assert_untouched(out):
        text = python("""
for arguments in (dict(input="none.img"), dict(ws=6), dict(ws=99), dict(device="gpu"), dict(output=sys.argv[1])):
    try:
        gdal.Run("hsi", "spp", **{"input": sys.argv[1], "output": sys.argv[2] + "/y.tif", **arguments})
        print("no error")
    except RuntimeError as e:
        print(e)
try:
    gdal.Run("hsi", "spp", input=sys.argv[1], wz=3)
except Exception as e:
    print(e)
""", scene, out)
    lines = text.splitlines()
    assert "none.img" in lines[0] and "odd" in lines[1] and "63" in lines[2] and "gpu" in lines[3], text
    assert "no error" not in text and "wz" in text


@commands
def test_two_threads(scene, out):
    text = python("""
import threading
scene, out = sys.argv[1:]
def work(k):
    for i in range(3):
        seen = []
        gdal.Run("hsi", "spp", input=scene, output=f"{out}/{k}_{i}.tif", ws=3 + 2 * k, device="cpu", tile=[16, 8],
                 progress=lambda p, t, d: seen.append(threading.get_ident()) or 1)
        if set(seen) != {threading.get_ident()}:
            print("progress of another thread")
threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
[t.start() for t in threads]
[t.join() for t in threads]
""", scene, out)
    assert text == ""
    for k in range(2):
        kept = out / f"{k}_0.kept"
        (out / f"{k}_0.tif").rename(kept)
        succeed(run("gdal_hsi_spp", "-ws", 3 + 2 * k, "-device", "cpu", "-tile", 16, 8, scene, out / f"{k}_0.tif"))
        assert (out / f"{k}_0.tif").read_bytes() == kept.read_bytes()
        assert len({gdal.Open(f"{out}/{k}_{i}.tif").ReadAsArray().tobytes() for i in range(3)}) == 1


@commands
def test_leaves_the_process_as_it_was(scene, out):
    """Checks signals, environment, block cache, configuration, locale and drivers, and the BLAS, whose threads training
    sets to one."""
    labels = cube(bands=1)
    labels[0] = 0
    labels[0, ::5, ::4] = 1
    labels[0, 2::5, 2::4] = 2
    write_scene(out / "labels.tif", labels, driver="GTiff", dtype="u1", nodata=0)
    text = python("""
import ctypes, locale, os, signal, threading
scene, out = sys.argv[1:]
def blas():
    names = {line.split()[-1] for line in open("/proc/self/maps") if "libopenblas" in line}
    library = ctypes.CDLL(names.pop())
    library.openblas_get_corename.restype = ctypes.c_char_p
    return library.openblas_get_num_threads(), library.openblas_get_corename()
def train(k, iterations):
    gdal.Run("hsi", "sahic", input=scene, labels=out + "/labels.tif", output=f"{out}/map{k}.tif", memory="200MB", iterations=iterations)
def state():
    return (blas(), dict(os.environ), gdal.GetCacheMax(), sorted((gdal.GetConfigOptions() or {}).items()),
            [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)], locale.setlocale(locale.LC_ALL),
            open("/proc/self/status").read().split("SigCgt:")[1].split()[0],
            open("/proc/self/status").read().split("SigIgn:")[1].split()[0], os.getcwd(), os.umask(0o022),
            gdal.GetDriverCount())
gdal.GetDriverByName("PNG").Deregister()
before = state()
gdal.Run("hsi", "vd", input=scene, memory="64MB")
threads = [threading.Thread(target=train, args=(k, 10 + 90 * k)) for k in range(2)]
[t.start() for t in threads]
[t.join() for t in threads]
try:
    gdal.Run("hsi", "sahic", input=scene, labels="none", output=out + "/map.tif")
except RuntimeError:
    pass
after = state()
for a, b in zip(before, after):
    if a != b:
        print(a, b)
""", scene, out)
    assert text == ""


@commands
def test_plain_numbers_in_a_program_with_a_locale_of_its_own(scene, out, tmp_path):
    (tmp_path / "locales").mkdir()
    name = tmp_path / "locales" / "de_DE.UTF-8"  # Debian's package locales has its sources
    made = shutil.which("localedef") and program("localedef", "-i", "de_DE", "-f", "UTF-8", name)
    # Without its sources, localedef makes an incomplete locale
    if not all((name / part).exists() for part in ("LC_CTYPE", "LC_NUMERIC")):
        pytest.skip(f"no locale with a comma in numbers can be made: {made.stderr.splitlines()[:1] if made else 'no localedef'}")
    text = python("""
import locale
locale.setlocale(locale.LC_ALL, "de_DE.UTF-8")
assert locale.localeconv()["decimal_point"] == ","
scene, out = sys.argv[1:]
with gdal.Run("hsi", "vd", input=scene, json=True, pf=0.01) as alg:
    print(alg.GetArg("output-string").Get(), end="")
gdal.Run("hsi", "pca", input=scene, output=out + "/p.tif", model=out + "/p.json", device="cpu", memory="0.5GB")
""", scene, out, LOCPATH=str(name.parent))
    assert text == succeed(run("gdal_hsi_vd", "-q", "-json", "-pf", 0.01, scene)).out
    succeed(run("gdal_hsi_pca", "-model", out / "q.json", "-device", "cpu", "-memory", "0.5GB", scene, out / "q.tif"))
    assert (out / "p.json").read_text().replace("p.json", "q.json").replace("p.tif", "q.tif") == (out / "q.json").read_text()


# --- With the rest of GDAL


@commands
def test_pixel_functions_are_there(scene, out):
    succeed(run("gdal_hsi_spp", "-q", "-of", "VRT", "-device", "cpu", scene, out / "y.vrt"))
    succeed(run("gdal_hsi_spp", "-q", "-device", "cpu", scene, out / "y.tif"))
    done(program("gdal", "raster", "convert", "-q", out / "y.vrt", out / "copy.tif"))
    a, b = (gdal.Open(str(out / name)).ReadAsArray() for name in ("copy.tif", "y.tif"))
    assert abs(a - b).max() <= 1e-5 * abs(b).max()


@commands
def test_virtual_outputs_in_a_pipeline(scene, out):
    done(command("pca", scene, out / "pcs.vrt", "-q", "--nc", "3", "--of", "VRT", *CPU))
    done(program("gdal", "raster", "pipeline", "-q", "!", "read", out / "pcs.vrt", "!", "clip", "--window", "0,0,10,10", "!",
                 "write", out / "pcs.tif"))
    dataset = gdal.Open(str(out / "pcs.tif"))
    assert (dataset.RasterXSize, dataset.RasterCount) == (10, 3)


@commands
@newer
def test_executable_as_a_step_of_a_pipeline(scene, out):
    words = ("gdal", "raster", "pipeline", "-q", "!", "read", scene, "!", "external", "--command",
             "gdal_hsi_spp <INPUT> <OUTPUT> -ws 7 -q -device cpu", "!", "write", out / "y.tif")
    assert program(*words).returncode == 1
    done(program(*words, GDAL_ENABLE_EXTERNAL="YES"))
    succeed(run("gdal_hsi_spp", "-ws", 7, "-q", "-device", "cpu", scene, out / "ours.tif"))
    assert gdal.Open(str(out / "y.tif")).ReadAsArray().tobytes() == gdal.Open(str(out / "ours.tif")).ReadAsArray().tobytes()


@commands
def test_pipeline(scene, out):
    """Runs steps with the options of their tools in the grammar of GDAL's own pipelines, from the shell and as one
    text."""
    (out / "a b").mkdir()
    steps = ("read", scene, "!", "spp", "-ws", 7, "!", "tee", "compare", "-metric", "maxabs", "[", "read", scene, "!", "spp", "-ws",
             "7", "]", "!", "pca", "--nc", 3, "!", "write")
    for number, first in enumerate(((), ("!",))):
        done(command("pipeline", "-q", *CPU, "--report", out / "r.json", *first, *steps, out / "a b" / f"{number}.tif",
                     "-overwrite"))
        compared, = (step for step in json.loads((out / "r.json").read_text())["steps"] if step["tool"] == "gdal_hsi_compare")
        assert compared["result"]["metrics"]["maxabs"]["maximum"] == 0
    text = " ".join(map(str, steps[:-1]))
    done(command("pipeline", "-q", *CPU, f"{text} write {out / 'one.tif'}"))
    succeed(run("gdal_hsi_spp", "-q", "-device", "cpu", "-ws", 7, scene, out / "y.tif"))
    succeed(run("gdal_hsi_pca", "-q", "-device", "cpu", "-nc", 3, out / "y.tif", out / "c.tif"))
    expected = gdal.Open(str(out / "c.tif")).ReadAsArray().tobytes()
    for name in ("a b/0.tif", "a b/1.tif", "one.tif"):
        assert gdal.Open(str(out / name)).ReadAsArray().tobytes() == expected, name
    for words, told in (((*steps[:-2], "!", "sqq"), "no step 'sqq'"), (("read", scene), "is not written"),
                        (("read", scene, "!", "compare", "[", "read", scene), "not closed")):
        failed = command("pipeline", "-q", *words)
        assert failed.returncode == 1 and told in failed.stderr, failed.stderr


# --- With other versions of GDAL, where no commands are needed


LOADED = """
names = [line.split("/")[-1].strip() for line in open("/proc/self/maps") if "/" in line]
print(any(n.startswith("gdal_HSI") for n in names), any(n.startswith("hsi_commands") for n in names))
"""


def plugin_folder(folder, *modules):
    """Makes a folder with the plugin and, under these names, files that are not modules for this GDAL."""
    folder.mkdir()
    shutil.copy(PLUGINS / "gdal_HSI.so", folder)
    source = MODULE if MODULE.exists() else PLUGINS / "gdal_HSI.so"
    for name in modules:
        shutil.copy(source, folder / name)
    return folder


def others():
    """Returns names of modules for the previous and the next version, and a misleading name."""
    return [f"hsi_commands.{VERSION[0]}.{minor}.so" for minor in (6, 11, 12, 13, 14, 15) if minor != VERSION[1]] + ["hsi_commands.so"]


def test_the_plugin_binds_gdal_when_it_calls_it():
    """A pointer to a function of GDAL, or a class's table of functions, would be bound when the plugin is loaded, by a
    process that may hide GDAL's symbols (Python does). C++ names are checked unless they are the plugin's own."""
    listed = program("readelf", "-rW", PLUGINS / "gdal_HSI.so").stdout.splitlines()
    names = re.compile(r"\b(CPL|CSL|GDAL|OCT|OGR|OSR|VRT|VSI)\w+|\b0{16} _Z\w*\d(CPL|GDAL|OGR|VRT|VSI)\w+")
    assert [line for line in listed if "JUMP_SLO" in line and names.search(line)]
    assert [line for line in listed if "JUMP_SLO" not in line and names.search(line)] == []


@pytest.mark.parametrize("beside", [False, True])
def test_without_a_module_for_this_gdal(beside, scene, out, tmp_path):
    folder = plugin_folder(tmp_path / "plugins", *(others() if beside else []))
    assert python(LOADED, plugins=folder) == "True False\n"
    result = program("gdalinfo", "--version", plugins=folder)
    assert result.returncode == 0 and result.stderr == ""
    succeed(run("gdal_hsi_spp", "-q", "-of", "VRT", "-device", "cpu", scene, out / "y.vrt"))
    done(program("gdal_translate", "-q", out / "y.vrt", out / "y.tif", plugins=folder))
    if VERSION >= (3, 11):
        assert "hsi" not in done(program("gdal", "--help", plugins=folder))


def test_a_module_that_is_none(tmp_path):
    folder = plugin_folder(tmp_path / "plugins")
    (folder / MODULE.name).write_text("not a library\n")
    assert python(LOADED, plugins=folder) == "True False\n"
    result = program("gdalinfo", "--formats", plugins=folder)
    assert result.returncode == 0 and result.stderr == ""


@commands
def test_with_its_module():
    assert python(LOADED) == "True True\n"


@commands
def test_commands_of_an_installed_folder(scene, tmp_path):
    """Uses another working folder, a relative path of plugins, and a second registration of GDAL's drivers."""
    shutil.copytree(PLUGINS, tmp_path / "plugins")
    text = python("gdal.AllRegister()\ngdal.AllRegister()\n"
                  "with gdal.Run('hsi', 'vd', input=sys.argv[1]) as alg: print(bool(alg.GetArg('output-string').Get()))",
                  scene, plugins="plugins", cwd=tmp_path)
    assert text == "True\n"
