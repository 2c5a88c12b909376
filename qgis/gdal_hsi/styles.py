# SPDX-License-Identifier: MIT
"""How results look when QGIS loads them: natural colours, class maps with the classes that occur, diverging colours."""

import os
from dataclasses import dataclass, field

import numpy
from osgeo import gdal
from qgis.core import (QgsColorRampShader, QgsContrastEnhancement, QgsMultiBandColorRenderer, QgsPalettedRasterRenderer,
                       QgsProcessingLayerPostProcessorInterface, QgsRasterLayer, QgsRasterShader,
                       QgsSingleBandPseudoColorRenderer)
from qgis.PyQt.QtGui import QColor

NATURAL = (640.0, 550.0, 460.0)  # nm: red, green, blue
NEAR = 50.0  # nm that a band may be away from these
CUT = (0.02, 0.98)  # of the values, what the stretch spans
SAMPLE = 250000  # pixels looked at for a stretch
DIVERGING = ["#2166ac", "#67a9cf", "#d1e5f0", "#f7f7f7", "#fddbc7", "#ef8a62", "#b2182b"]  # RdBu of ColorBrewer, turned
UNNAMED = ["#%02x%02x%02x" % rgb for rgb in (
    (230, 159, 0), (86, 180, 233), (0, 158, 115), (240, 228, 66), (0, 114, 178), (213, 94, 0), (204, 121, 167))]


@dataclass
class Look:
    """What a layer shall look like. kind: natural, classes or diverging."""
    kind: str
    bands: list = field(default_factory=list)
    classes: list = field(default_factory=list)  # (value, "#rrggbb", alpha, name)
    limits: list = field(default_factory=list)  # (low, high) of each of the bands


def wavelength_nm(band):
    """In nanometres, or None."""
    try:
        um = band.GetMetadataItem("CENTRAL_WAVELENGTH_UM", "IMAGERY")
        if um:
            return float(um) * 1000
        value = float(band.GetMetadataItem("wavelength") or "nan")
    except ValueError:
        return None
    if value != value:
        return None
    unit = (band.GetMetadataItem("wavelength_units") or "").lower()
    return value * 1000 if unit.startswith("micro") or unit == "um" or (not unit and value < 100) else value


def natural_bands(wavelengths):
    """The numbers of the bands nearest to red, green and blue; None where one is too far or two are the same."""
    known = [(w, n) for n, w in enumerate(wavelengths, 1) if w is not None]
    if len(known) < 3:
        return None
    nearest = [min(known, key=lambda one, want=want: abs(one[0] - want)) for want in NATURAL]
    if any(abs(w - want) > NEAR for (w, _), want in zip(nearest, NATURAL)) or len({n for _, n in nearest}) < 3:
        return None
    return [n for _, n in nearest]


def sample(band):
    """Values of the band from a decimated picture, without nodata and what is not finite."""
    shrink = max(1.0, (band.XSize * band.YSize / SAMPLE) ** 0.5)
    size = {"buf_xsize": max(1, int(band.XSize / shrink)), "buf_ysize": max(1, int(band.YSize / shrink))}
    values = band.ReadAsArray(**size)
    valid = (band.GetMaskBand().ReadAsArray(**size) != 0) & numpy.isfinite(values)
    return values[valid].astype(float)


def used_values(band):
    """The values that occur, nodata aside: the whole band is read, block row by block row."""
    nodata, found = band.GetNoDataValue(), set()
    lines = max(1, band.GetBlockSize()[1])
    lines *= max(1, 4000000 // max(1, lines * band.XSize))
    for line in range(0, band.YSize, lines):
        found.update(numpy.unique(band.ReadAsArray(0, line, band.XSize, min(lines, band.YSize - line))).tolist())
    return sorted(v for v in found if v != nodata)


def class_look(dataset):
    """The classes of a map that occur in it, with names and colours of the file; None where it is no map."""
    band = dataset.GetRasterBand(1)
    band.GetMetadata()  # GDAL 3.6 reads a GeoTIFF's names from the .aux.xml only when metadata were asked for
    table, names = band.GetColorTable(), band.GetCategoryNames() or []
    if dataset.RasterCount != 1 or not (table or names) or gdal.GetDataTypeSize(band.DataType) > 16 \
            or band.DataType in (gdal.GDT_Float32, gdal.GDT_Float64):
        return None
    classes = []
    for value in map(int, used_values(band)):
        if table and 0 <= value < table.GetCount():
            red, green, blue, alpha = table.GetColorEntry(value)
            colour = "#%02x%02x%02x" % (red, green, blue)
        else:
            colour, alpha = UNNAMED[value % len(UNNAMED)], 255
        name = names[value] if 0 <= value < len(names) else ""
        classes.append((value, colour, alpha, name or str(value)))
    return Look("classes", bands=[1], classes=classes) if classes else None


def signed_look(dataset, further):
    """Diverging colours about 0 for scores: one band, or bands that stand beside one another (further outputs, bands
    with a unit) and are looked at one at a time. Components and other coordinates stay a composite."""
    band = dataset.GetRasterBand(1)
    if dataset.RasterCount > 1 and not further and band.GetMetadataItem("unit") is None:
        return None
    values = sample(band)
    if values.size == 0 or values.min() >= 0 or values.max() <= 0:
        return None
    low, high = numpy.quantile(values, CUT)
    limit = float(max(abs(low), abs(high))) or float(max(-values.min(), values.max()))
    return Look("diverging", bands=[1], limits=[(-limit, limit)])


def look_of(path, further=False):
    """The look of a raster, or None for QGIS's own; a .qml beside it is the user's word and stands."""
    if os.path.exists(os.path.splitext(path)[0] + ".qml"):
        return None
    try:
        dataset = gdal.Open(path)
        if dataset is None or dataset.RasterCount == 0:
            return None
        look = class_look(dataset)
        if look:
            return look
        bands = natural_bands([wavelength_nm(dataset.GetRasterBand(n)) for n in range(1, dataset.RasterCount + 1)])
        if not bands:
            return signed_look(dataset, further)
        limits = [numpy.quantile(values, CUT).tolist() if values.size else [0.0, 1.0]
                  for values in (sample(dataset.GetRasterBand(n)) for n in bands)]
        return Look("natural", bands=bands, limits=limits)
    except RuntimeError:  # GDAL's, where somebody has told it to throw: QGIS then shows the layer as it likes
        return None


def stretch(provider, band, limits):
    enhancement = QgsContrastEnhancement(provider.dataType(band))
    enhancement.setMinimumValue(limits[0])
    enhancement.setMaximumValue(limits[1])
    enhancement.setContrastEnhancementAlgorithm(
        QgsContrastEnhancement.ContrastEnhancementAlgorithm.StretchToMinimumMaximum)
    return enhancement


def natural_renderer(provider, look):
    renderer = QgsMultiBandColorRenderer(provider, *look.bands)
    set_band = (renderer.setRedContrastEnhancement, renderer.setGreenContrastEnhancement,
                renderer.setBlueContrastEnhancement)
    for setter, band, limits in zip(set_band, look.bands, look.limits):
        setter(stretch(provider, band, limits))
    return renderer


def class_renderer(provider, look):
    classes = []
    for value, text, alpha, name in look.classes:
        colour = QColor(text)
        colour.setAlpha(alpha)
        classes.append(QgsPalettedRasterRenderer.Class(value, colour, name))
    return QgsPalettedRasterRenderer(provider, look.bands[0], classes)


def diverging_renderer(provider, look):
    low, high = look.limits[0]
    ramp = QgsColorRampShader(low, high)
    ramp.setColorRampType(QgsColorRampShader.Type.Interpolated)
    step = (high - low) / (len(DIVERGING) - 1)
    values = [low + i * step for i in range(len(DIVERGING))]
    ramp.setColorRampItemList([QgsColorRampShader.ColorRampItem(value, QColor(colour), "%.4g" % value)
                               for value, colour in zip(values, DIVERGING)])
    shader = QgsRasterShader()
    shader.setRasterShaderFunction(ramp)
    renderer = QgsSingleBandPseudoColorRenderer(provider, look.bands[0], shader)
    renderer.setClassificationMin(low)
    renderer.setClassificationMax(high)
    return renderer


RENDERERS = {"natural": natural_renderer, "classes": class_renderer, "diverging": diverging_renderer}


class Dresser(QgsProcessingLayerPostProcessorInterface):
    """Gives a layer its look when it is loaded. QGIS does not own it, so it is kept here until then."""
    kept = []

    def __init__(self, look):
        super().__init__()
        self.look = look

    @classmethod
    def make(cls, look):
        cls.kept = cls.kept[-999:] + [cls(look)]
        return cls.kept[-1]

    def postProcessLayer(self, layer, context, feedback):
        if isinstance(layer, QgsRasterLayer) and layer.isValid():
            layer.setRenderer(RENDERERS[self.look.kind](layer.dataProvider(), self.look))
            layer.triggerRepaint()
        # Not removed here: QGIS still holds the object that runs this.
