#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Shows windows of a raster in QGIS without a screen, one after another on one layer, one picture pixel per raster
pixel, as a user who pans. Prints a list as JSON: for each window the seconds until its picture, the processor seconds,
and for an .hsi the number of pixels that were computed for it.

  look_in_qgis.py RASTER X,Y,WIDTH,HEIGHT ... [--picture LAST.png]
"""
import argparse
import json
import os
import pathlib
import re
import tempfile
import time

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
LOG = pathlib.Path(tempfile.mkdtemp()) / "log"  # of GDAL's messages, in which the driver reports what it computes
os.environ.update(CPL_DEBUG="HSI", CPL_LOG=str(LOG))

from qgis.core import (  # noqa: E402
    QgsApplication, QgsContrastEnhancement, QgsMapRendererParallelJob, QgsMapSettings, QgsRasterLayer, QgsRectangle,
    QgsSingleBandGrayRenderer)
from qgis.PyQt.QtCore import QSize  # noqa: E402


def computed():
    """Returns the number of pixels since the last call."""
    text = LOG.read_text() if LOG.exists() else ""
    new = text[computed.told:]
    computed.told = len(text)
    return sum(int(w) * int(h) for w, h in re.findall(r"computes (\d+)x(\d+) pixels", new))


computed.told = 0


def gray(layer):
    """Sets a stretch that does not depend on the scene."""
    renderer = QgsSingleBandGrayRenderer(layer.dataProvider(), 1)
    stretch = QgsContrastEnhancement(layer.dataProvider().dataType(1))
    stretch.setMinimumValue(0)
    stretch.setMaximumValue(1)
    stretch.setContrastEnhancementAlgorithm(QgsContrastEnhancement.ContrastEnhancementAlgorithm.StretchToMinimumMaximum)
    renderer.setContrastEnhancement(stretch)
    layer.setRenderer(renderer)


def look(layer, x, y, w, h):
    extent = layer.extent()
    across, down = extent.width() / layer.width(), extent.height() / layer.height()
    left, top = extent.xMinimum() + x * across, extent.yMaximum() - y * down
    settings = QgsMapSettings()
    settings.setLayers([layer])
    settings.setDestinationCrs(layer.crs())
    settings.setOutputSize(QSize(w, h))
    settings.setExtent(QgsRectangle(left, top - h * down, left + w * across, top))
    begin, processors = time.perf_counter(), time.process_time()
    job = QgsMapRendererParallelJob(settings)
    job.start()
    job.waitForFinished()
    image = job.renderedImage()
    return {"seconds": time.perf_counter() - begin, "processor": time.process_time() - processors}, image


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("raster")
    parser.add_argument("windows", nargs="+")
    parser.add_argument("--picture")
    args = parser.parse_args()
    app = QgsApplication([], False)
    app.initQgis()
    layer = QgsRasterLayer(args.raster, "raster")
    assert layer.isValid(), args.raster
    if layer.renderer().type() == "singlebandgray":
        gray(layer)
    told = []
    computed()
    for window in args.windows:
        took, image = look(layer, *map(int, window.split(",")))
        told.append({**took, "computed": computed()})
    if args.picture:
        image.save(args.picture)
    print("LOOKED " + json.dumps(told), flush=True)
    LOG.unlink(missing_ok=True)
    LOG.parent.rmdir()
    os._exit(0)  # QGIS's own teardown is slow and may crash without a screen


if __name__ == "__main__":
    main()
