# SPDX-License-Identifier: MIT
"""The environment of other programs, such as a conda environment or another GDAL, does no harm to the functions or the
executable in the wheel of this Python. Run by scripts/test_wheel."""
import os
import pathlib
import subprocess
import sys
import tempfile

# Invalid libraries with the names of those in the wheel, except libraries that Python itself needs.
LIBRARIES = ["libgdal.so.32", "libproj.so.25", "libopenblas.so.0", "libsvm.so.3", "libhwy.so.1", "libhdf5_serial.so.103",
             "libnetcdf.so.19", "libcurl.so.4", "libcurl-gnutls.so.4", "libtiff.so.6", "libgeos_c.so.1", "libsqlite3.so.0"]
# Variables from which only the executable is protected.
MORE = ["libz.so.1", "libstdc++.so.6", "libgcc_s.so.1", "libexpat.so.1", "libcrypto.so.3"]


def main():
    here = pathlib.Path(tempfile.mkdtemp())
    for folder, names in (("lib", LIBRARIES), ("more", LIBRARIES + MORE)):
        (here / folder).mkdir()
        for name in names:
            (here / folder / name).write_bytes(b"no library")
    (here / "gdalplugins").mkdir()
    (here / "gdalplugins" / "gdal_Broken.so").write_bytes(b"no plugin")
    (here / "share").mkdir()
    (here / "share" / "proj.db").write_bytes(b"no database")
    (here / "share" / "gdalvrt.xsd").write_bytes(b"")
    hostile = {"GDAL_DRIVER_PATH": str(here / "gdalplugins"), "GDAL_DATA": str(here / "share"), "PROJ_DATA": str(here / "share"),
               "PROJ_LIB": str(here / "share"), "LD_LIBRARY_PATH": str(here / "lib"), "CONDA_PREFIX": str(here)}
    if os.environ.get("CONDA_PREFIX") != str(here) and len(sys.argv) == 1:
        # The loader reads LD_LIBRARY_PATH when a process starts.
        return subprocess.run([sys.executable, __file__, "inside"], env={**os.environ, **hostile}).returncode
    import numpy as np
    import gdal_hsi as hsi
    from gdal_hsi._files import executable
    program = executable()
    assert pathlib.Path(program).parent.parent == pathlib.Path(hsi.__file__).parent, program
    assert not os.access(pathlib.Path(hsi.__file__).parent, os.W_OK), "site-packages are to be read-only here"
    scene, smooth = str(here / "scene.dat"), str(here / "smooth.dat")
    hsi.run("synth", scene, size=(60, 50, 40), seed=2)
    assert hsi.run("spp", scene, smooth, ws=5) == "", "the executable has something to say"
    facts = hsi.info(scene)
    assert "EPSG" in str(facts) and "32633" in str(facts), facts
    x = np.fromfile(scene, np.float32).reshape(40, 50, 60)
    assert (hsi.spp(x, ws=5) == np.fromfile(smooth, np.float32).reshape(x.shape)).all()
    components, model = hsi.pca(x, nc=5, model=True)
    assert components.shape == (5, 50, 60) and len(model.document) > 1
    done = subprocess.run([program, "spp", scene, str(here / "again.tif")], env={**hostile, "LD_LIBRARY_PATH": str(here / "more")},
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done
    loaded = [line.split()[-1] for line in open("/proc/self/maps") if "/" in line]
    assert not [path for path in loaded if "gdal-" in path or "libgdal" in path], "libgdal is in this process"
    print("gdal_hsi", hsi.__version__, "in", pathlib.Path(hsi.__file__).parent)
    return 0


if __name__ == "__main__":
    sys.exit(main())
