# SPDX-License-Identifier: MIT
"""Another GDAL in the same process: beside.py rasterio|osgeo ours|theirs, where the last word is loaded first. Run by
scripts/test_wheel."""
import sys
import tempfile

import numpy as np


def ours(scene):
    import gdal_hsi as hsi
    values = np.random.default_rng(1).random((6, 40, 30), dtype=np.float32) + 1
    assert hsi.pca(values, nc=3).shape == (3, 40, 30)
    hsi.run("synth", scene, size=(60, 50, 40), seed=2, epsg=32633, overwrite=True)
    return hsi


def read_by(name, path):
    if name == "rasterio":
        import rasterio
        with rasterio.open(path) as file:
            assert file.crs.to_epsg() == 32633, file.crs
            return rasterio.__gdal_version__, file.read()
    from osgeo import gdal, osr
    gdal.UseExceptions()
    osr.UseExceptions()
    file = gdal.Open(path)
    reference = osr.SpatialReference()
    reference.ImportFromEPSG(32633)
    assert reference.IsSame(file.GetSpatialRef())
    return gdal.__version__, file.ReadAsArray()


def main():
    name, first = sys.argv[1:]
    folder = tempfile.mkdtemp()
    scene, smooth = folder + "/scene.tif", folder + "/smooth.tif"
    if first == "theirs":
        __import__(name)
        if name == "osgeo":
            from osgeo import gdal
            gdal.AllRegister()
    hsi = ours(scene)
    version, x = read_by(name, scene)
    hsi.run("spp", scene, smooth, ws=5)
    assert (hsi.spp(x, ws=5) == read_by(name, smooth)[1]).all()
    # SAHIC's training calls a BLAS.
    labels = np.zeros(x.shape[1:], np.uint8)
    labels[::7, ::5], labels[3::7, ::5] = 1, 2
    assert hsi.sahic(x[:8], labels).shape == x.shape[1:]
    assert read_by(name, scene)[1].shape == x.shape
    print(f"{name} with GDAL {version}, {first} first: one process, the same bits")


if __name__ == "__main__":
    main()
