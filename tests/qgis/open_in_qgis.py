#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Opens a raster in QGIS without a screen, renders it to a PNG and prints QGIS's properties of it as JSON.

  open_in_qgis.py RASTER PICTURE.png [--bands R G B] [--vector POINTS]
"""
import argparse
import json
import os

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from qgis.core import (  # noqa: E402
    QgsApplication, QgsContrastEnhancement, QgsCoordinateTransform, QgsMapRendererParallelJob, QgsMapSettings,
    QgsMarkerSymbol, QgsMultiBandColorRenderer, QgsProject, QgsRaster, QgsRasterLayer, QgsSingleSymbolRenderer,
    QgsVectorLayer)
from qgis.PyQt.QtCore import QSize  # noqa: E402
from qgis.PyQt.QtGui import QColor  # noqa: E402


def stretch(provider, band, extent):
    low, high = provider.cumulativeCut(band, 0.02, 0.98, extent, 10000)
    enhancement = QgsContrastEnhancement(provider.dataType(band))
    enhancement.setMinimumValue(low)
    enhancement.setMaximumValue(high)
    enhancement.setContrastEnhancementAlgorithm(
        QgsContrastEnhancement.ContrastEnhancementAlgorithm.StretchToMinimumMaximum)
    return enhancement


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("raster")
    parser.add_argument("picture")
    parser.add_argument("--bands", nargs=3, type=int)
    parser.add_argument("--vector")
    args = parser.parse_args()
    app = QgsApplication([], False)
    app.initQgis()
    layer = QgsRasterLayer(args.raster, "raster")
    facts = {"valid": layer.isValid()}
    layers = [layer]
    if layer.isValid():
        provider = layer.dataProvider()
        extent = layer.extent()
        facts.update(
            crs=layer.crs().authid(), width=layer.width(), height=layer.height(), bands=layer.bandCount(),
            extent=[extent.xMinimum(), extent.yMinimum(), extent.xMaximum(), extent.yMaximum()],
            band_names=[layer.bandName(b + 1) for b in range(layer.bandCount())],
            nodata=provider.sourceNoDataValue(1) if provider.sourceHasNoDataValue(1) else None,
            html_metadata=layer.htmlMetadata(),
            renderer=layer.renderer().type(),
            legend=[item[0] for item in layer.legendSymbologyItems()])
        if args.bands and layer.bandCount() >= max(args.bands):
            renderer = QgsMultiBandColorRenderer(provider, *args.bands)
            renderer.setRedContrastEnhancement(stretch(provider, args.bands[0], extent))
            renderer.setGreenContrastEnhancement(stretch(provider, args.bands[1], extent))
            renderer.setBlueContrastEnhancement(stretch(provider, args.bands[2], extent))
            layer.setRenderer(renderer)
        settings = QgsMapSettings()
        if args.vector:
            points = QgsVectorLayer(args.vector, "points", "ogr")
            facts["vector"] = {"valid": points.isValid(), "features": points.featureCount(),
                               "crs": points.crs().authid(), "fields": [f.name() for f in points.fields()]}
            points.setRenderer(QgsSingleSymbolRenderer(QgsMarkerSymbol.createSimple(
                {"name": "circle", "color": "255,0,255", "outline_style": "no", "size": "2.5"})))
            layers.insert(0, points)
            to_raster = QgsCoordinateTransform(points.crs(), layer.crs(), QgsProject.instance())
            facts["vector"]["points"] = []
            for feature in points.getFeatures():
                place = feature.geometry().asPoint()
                if points.crs().isValid() and layer.crs().isValid():
                    place = to_raster.transform(place)
                # QGIS's identify tool shows these values of the raster when a user clicks on the point.
                values = provider.identify(place, QgsRaster.IdentifyFormat.IdentifyFormatValue).results()
                facts["vector"]["points"].append({
                    "fields": dict(zip(facts["vector"]["fields"], feature.attributes())),
                    "x": place.x(), "y": place.y(), "values": [values[b + 1] for b in range(layer.bandCount())]})
        settings.setLayers(layers)
        settings.setDestinationCrs(layer.crs())
        settings.setBackgroundColor(QColor(255, 255, 255))
        settings.setOutputSize(QSize(512, max(64, int(512 * extent.height() / extent.width()))))
        settings.setExtent(extent)
        job = QgsMapRendererParallelJob(settings)
        job.start()
        job.waitForFinished()
        image = job.renderedImage()
        image.save(args.picture)
        colours = {image.pixel(x, y) for x in range(0, image.width(), 7) for y in range(0, image.height(), 7)}
        facts["colours_seen"] = len(colours)
        to_picture = settings.mapToPixel()
        for point in facts.get("vector", {}).get("points", []):
            at = to_picture.transform(point["x"], point["y"])
            colour = QColor(image.pixel(int(at.x()), int(at.y())))
            point["colour"] = [colour.red(), colour.green(), colour.blue()]
    print("QGIS " + json.dumps(facts, default=str), flush=True)
    os._exit(0)  # QGIS's own teardown is slow and may crash without a screen


if __name__ == "__main__":
    main()
