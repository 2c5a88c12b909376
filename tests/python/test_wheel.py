# SPDX-License-Identifier: MIT
"""scripts/wheel without its libraries: the archive, the bundled files and their names, the commands, and an executable
with its own data, which must ignore the environment of another GDAL. scripts/test_wheel tests a complete wheel."""
import base64
import hashlib
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import zipfile

import pytest

from conftest import BIN, ROOT


@pytest.fixture(scope="module")
def script():
    loader = importlib.machinery.SourceFileLoader("wheel_script", str(ROOT / "scripts" / "wheel"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("wheel_script", loader))
    loader.exec_module(module)
    return module


def test_archive(script, tmp_path, monkeypatch):
    """Checks what pip reads: names, contents, modes and the record. The bytes are equal whenever it is made."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")

    def make(folder):
        stage = tmp_path / folder / "stage"
        (stage / "gdal_hsi" / "bin").mkdir(parents=True)
        (stage / "gdal_hsi" / "bin" / "gdal_hsi").write_bytes(bytes(range(256)) * 400)
        (stage / "gdal_hsi" / "bin" / "gdal_hsi").chmod(0o755)
        (stage / "gdal_hsi" / "empty.py").write_text("")
        (stage / "gdal_hsi" / "größe.txt").write_bytes(os.urandom(0) + b"\xff")
        wheel = script.Wheel(stage, "gdal_hsi", "1.2.3", "py3-none-any", ["numpy"], "summary", "text", tmp_path / folder)
        wheel.write()
        return wheel.file

    file = make("one")
    assert file.name == "gdal_hsi-1.2.3-py3-none-any.whl" and file.read_bytes() == make("two").read_bytes()
    with zipfile.ZipFile(file) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        records = archive.read("gdal_hsi-1.2.3.dist-info/RECORD").decode().splitlines()
        for line in records[:-1]:
            name, digest, size = line.rsplit(",", 2)
            data = archive.read(name)
            assert int(size) == len(data)
            assert digest == "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        assert [line.rsplit(",", 2)[0] for line in records] == names
        modes = {i.filename: stat.S_IMODE(i.external_attr >> 16) for i in archive.infolist()}
        metadata = archive.read("gdal_hsi-1.2.3.dist-info/METADATA").decode()
    assert modes["gdal_hsi/bin/gdal_hsi"] == 0o755 and modes["gdal_hsi/empty.py"] == 0o644 and "gdal_hsi/größe.txt" in modes
    assert "Requires-Dist: numpy\n" in metadata and metadata.count("Requires-Dist") == 1


def test_which_libraries_come_along(script):
    def kind(name):
        return [label for label in ("GLIBC", "CXX", "DRIVERS", "TOOLKIT") if getattr(script, label).fullmatch(name)]

    assert [kind(n) for n in ("libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "libpthread.so.0")] == [["GLIBC"]] * 4
    assert [kind(n) for n in ("libstdc++.so.6", "libgcc_s.so.1")] == [["CXX"]] * 2
    assert [kind(n) for n in ("libcublas.so.13", "libcublasLt.so.13", "libcusolver.so.12", "libcufft.so.12")] == [["TOOLKIT"]] * 4
    assert kind("libcuda.so.1") == ["DRIVERS"]
    for name in ("libcurl.so.4", "libcurl-gnutls.so.4", "libcares.so.2", "libnuma.so.1", "libgdal.so.32", "libmariadb.so.3", "libcrypto.so.3"):
        assert kind(name) == [], name


@pytest.mark.skipif(not shutil.which("patchelf") or not shutil.which("cc"), reason="needs patchelf and a compiler")
def test_libraries_get_names_of_their_own(script, tmp_path):
    """A program finds its own copy, even if LD_LIBRARY_PATH has a library with the old name."""
    made = tmp_path / "made"
    made.mkdir()

    def library(name, code, *needs):
        subprocess.run(["cc", "-shared", "-fPIC", f"-Wl,-soname,{name}", "-x", "c", "-", "-x", "none", "-o", made / name, *needs], input=code,
                       text=True, check=True)

    library("libdeep.so.3", "int deep(void) { return 40; }")
    library("libshallow.so.1", "int deep(void); int shallow(void) { return deep() + 2; }", made / "libdeep.so.3")
    subprocess.run(["cc", "-x", "c", "-", "-x", "none", "-o", made / "program", made / "libshallow.so.1", f"-Wl,-rpath,{made}",
                    f"-Wl,-rpath-link,{made}"], input="int shallow(void); int main(void) { return shallow(); }", text=True, check=True)
    stage = tmp_path / "stage"
    found = {name: made / name for name in ("libdeep.so.3", "libshallow.so.1")}
    libraries = script.Libraries(stage, stage / "lib" / "needed", {**found, "libc.so.6": pathlib.Path("/nowhere/libc.so.6")})
    libraries.own(made / "program", stage / "bin" / "program", "$ORIGIN/../lib/needed")
    shutil.rmtree(made)
    names = sorted(p.name for p in (stage / "lib" / "needed").iterdir())
    assert [n.split("-")[0] for n in names] == ["libdeep", "libshallow"] and all(n.endswith((".so.3", ".so.1")) for n in names)
    other = tmp_path / "other"
    other.mkdir()
    for name in [*found, *names]:
        (other / name).write_bytes(b"no library")
    assert subprocess.run([stage / "bin" / "program"], env={"LD_LIBRARY_PATH": str(other)}).returncode == 42


def test_icu_without_data_is_icus_own(script, tmp_path):
    """Checks the header of an archive without entries, as ICU's readers do: sizes, magic, byte order, format."""
    if not shutil.which("cc"):
        pytest.skip("needs a compiler")
    (tmp_path / "show.c").write_text(script.NO_ICU_DATA.format(72) + """
#include <stdio.h>
int main(void) { return fwrite(&icudt72_dat, 1, 36, stdout) != 36; }
""")
    subprocess.run(["cc", tmp_path / "show.c", "-o", tmp_path / "show"], check=True)
    data = subprocess.run([tmp_path / "show"], stdout=subprocess.PIPE, check=True).stdout
    assert data[:4] == b"\x20\x00\xda\x27" and data[4:12] == b"\x14\x00\x00\x00\x00\x00\x02\x00"
    assert data[12:16] == b"ToCP" and data[16:20] == b"\x01\x00\x00\x00" and data[32:36] == b"\x00" * 4


def test_commands_start_the_executable_of_the_package(script, tmp_path):
    """Commands run under the name that was called, with all words, and without importing the package or NumPy."""
    package = tmp_path / "site" / "gdal_hsi"
    (package / "bin").mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit('the package was imported')\n")
    (package / "bin" / "gdal_hsi").write_text('#!/bin/bash\nexec -a "$0" printf "%s|" "$@"\n')
    (package / "bin" / "gdal_hsi").chmod(0o755)
    command = tmp_path / "gdal_hsi_spp"
    command.write_text(script.COMMAND)
    done = subprocess.run([sys.executable, command, "-ws", "7", "a b"], env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "-ws|7|a b|", "")
    shutil.rmtree(package)
    done = subprocess.run([sys.executable, "-S", command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and done.stderr.startswith("ERROR: the package gdal_hsi")


def own_data(tmp_path):
    """Makes an executable with GDAL's and PROJ's data in share/hsi, as in a wheel."""
    (tmp_path / "bin").mkdir()
    shutil.copy(BIN / "gdal_hsi", tmp_path / "bin" / "gdal_hsi", follow_symlinks=True)
    share = tmp_path / "share" / "hsi"
    gdal = subprocess.run(["gdal-config", "--datadir"], stdout=subprocess.PIPE, text=True).stdout.strip()
    proj = next((p for p in ("/usr/share/proj", "/usr/local/share/proj") if os.path.exists(p + "/proj.db")), None)
    if not gdal or proj is None:
        pytest.skip("GDAL's or PROJ's data are not in their usual places")
    share.mkdir(parents=True)
    (share / "gdal").symlink_to(gdal)
    (share / "proj").symlink_to(proj)
    return tmp_path / "bin" / "gdal_hsi"


@pytest.mark.skipif(not shutil.which("gdal-config"), reason="no gdal-config")
def test_an_executable_with_data_of_its_own_keeps_to_them(tmp_path):
    """GDAL_DATA, PROJ_DATA, PROJ_LIB and GDAL_DRIVER_PATH of another GDAL are ignored; without its own data, the
    executable uses them."""
    program = own_data(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    (other / "proj.db").write_bytes(b"no database")
    (other / "gdal_Broken.so").write_bytes(b"no plugin")
    hostile = {**os.environ, "GDAL_DATA": str(other), "PROJ_DATA": str(other), "PROJ_LIB": str(other), "GDAL_DRIVER_PATH": str(other)}

    def make(name):
        scene = tmp_path / name
        done = subprocess.run([program, "synth", "-q", "-size", "20", "10", "30", "-epsg", "32633", scene], env=hostile,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return done, scene

    done, scene = make("own.tif")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    told = subprocess.run([program, "info", "-json", scene], env=hostile, stdout=subprocess.PIPE, check=True)
    assert "32633" in json.dumps(json.loads(told.stdout))
    shutil.rmtree(tmp_path / "share")
    done, _ = make("theirs.tif")
    assert done.returncode != 0 or "proj" in done.stderr.lower() or "plugin" in done.stderr.lower() or "Broken" in done.stderr
