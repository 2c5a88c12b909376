# SPDX-License-Identifier: MIT
"""From a layer of QGIS to what a tool can open."""

import re
from dataclasses import dataclass, field

from osgeo import ogr
from qgis.core import QgsProcessingUtils, QgsRasterLayer, QgsVectorFileWriter, QgsVectorLayer


class NotAFile(Exception):
    """The layer cannot be given to a tool; the text says why and what to do."""


@dataclass
class Source:
    path: str
    options: list = field(default_factory=list)  # open options, NAME=VALUE
    layer: str = ""  # of a vector file


def raster_uri(uri):
    """The path and open options of a source of QGIS's provider gdal: PATH|option:NAME=VALUE|..."""
    path, *parts = uri.split("|")
    options = [part[len("option:"):] for part in parts if part.startswith("option:")]
    others = [part for part in parts if not part.startswith("option:")]
    if others or re.search(r"\bauthcfg=", uri):
        raise NotAFile("it is opened with settings that the tools do not know (%s)" % "|".join(others or ["authcfg"]))
    if "/vsimem/" in path:
        raise NotAFile("it is in QGIS's memory")
    return Source(path, options)


def raster_source(layer):
    if layer.providerType() != "gdal":
        raise NotAFile("its data come from the provider '%s', not from a file" % layer.providerType())
    return raster_uri(layer.source())


def has_several_layers(path):
    try:
        dataset = ogr.Open(path)
    except RuntimeError:  # GDAL's, where somebody has told it to throw
        return False
    return dataset is not None and dataset.GetLayerCount() > 1


def is_as_stored(layer):
    """Whether the file holds what QGIS shows: no filter, no edits, no fields made by QGIS, no open options."""
    return (layer.providerType() == "ogr" and not layer.subsetString() and not layer.isModified()
            and layer.fields().count() == layer.dataProvider().fields().count()
            and not re.search(r"\|(?!layername=|layerid=|geometrytype=)", layer.source())
            and "/vsimem/" not in layer.source() and "authcfg=" not in layer.source())


def vector_source(layer, context, one_layer):
    """A vector layer; what is no file as it stands is written to a temporary GeoPackage. one_layer: the tool cannot be
    told which layer of the file to take."""
    if is_as_stored(layer):
        path, *parts = layer.source().split("|")
        named = [part[len("layername="):] for part in parts if part.startswith("layername=")]
        by_number = any(part.startswith(("layerid=", "geometrytype=")) for part in parts)
        if not by_number and not (one_layer and has_several_layers(path)):
            return Source(path, layer=named[0] if named and not one_layer else "")
    path = QgsProcessingUtils.generateTempFilename("labels.gpkg")
    options = QgsVectorFileWriter.SaveVectorOptions()
    options.driverName, options.layerName, options.layerOptions = "GPKG", "labels", ["FID=hsi_fid"]
    done = QgsVectorFileWriter.writeAsVectorFormatV3(layer, path, context.transformContext(), options)
    if done[0] != QgsVectorFileWriter.WriterError.NoError:
        raise NotAFile("it cannot be written as a GeoPackage: %s" % done[1])
    return Source(path)


def source_of(layer, context, one_layer=False):
    """What a tool opens for the layer. NotAFile names the layer."""
    try:
        if not layer.isValid():
            raise NotAFile("it is not valid; is its file gone?")
        if isinstance(layer, QgsRasterLayer):
            return raster_source(layer)
        if isinstance(layer, QgsVectorLayer):
            return vector_source(layer, context, one_layer)
        raise NotAFile("it is neither a raster nor a vector layer")
    except NotAFile as error:
        raise NotAFile("The layer '%s' cannot be used: %s. Save it as a file (Export > Save As...) and take that."
                       % (layer.name(), error)) from None
