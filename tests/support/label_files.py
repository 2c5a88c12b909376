# SPDX-License-Identifier: MIT
"""Makes small label files in the forms of other programs, and reads them through the tools."""
import numpy as np
from osgeo import gdal, ogr, osr
from suite import open_band, read, run, succeed

LINES, SAMPLES = 20, 24
PLACE = (500000, 30, 0, 5400000, 0, -30)
NAMES = ["water", "forest", "soil"]
TYPES = {"u1": gdal.GDT_Byte, "u2": gdal.GDT_UInt16, "i2": gdal.GDT_Int16, "i4": gdal.GDT_Int32, "i8": gdal.GDT_Int64,
         "f4": gdal.GDT_Float32}


def truth(classes=3, seed=3):
    return np.random.default_rng(seed).integers(0, classes, (LINES, SAMPLES))


def scene_of(labels, seed=5):
    """Returns a scene (bands, lines, samples) whose classes are easy to separate."""
    random = np.random.default_rng(seed)
    spectra = random.uniform(200, 2000, (int(labels.max()) + 1, 6))
    return np.moveaxis(spectra[labels] + random.normal(0, 5, (*labels.shape, 6)), 2, 0)


def utm():
    srs = osr.SpatialReference()
    srs.ImportFromEPSG(32633)
    return srs


def write_labels(path, planes, dtype="u1", names=None, nodata=None, driver="GTiff", place=PLACE, options=()):
    planes = planes if planes.ndim == 3 else planes[None]
    dataset = gdal.GetDriverByName(driver).Create(str(path), planes.shape[2], planes.shape[1], len(planes), TYPES[dtype],
                                                  list(options))
    if place:
        dataset.SetGeoTransform(place)
        dataset.SetProjection(utm().ExportToWkt())
    for number, plane in enumerate(planes, 1):
        band = dataset.GetRasterBand(number)
        band.WriteArray(plane.astype(np.dtype(dtype)))
        if nodata is not None:
            band.SetNoDataValue(nodata)
    if names:
        dataset.GetRasterBand(1).SetCategoryNames(names)
    return path


def write_features(path, shapes, fields, driver="GPKG", srs="EPSG:32633"):
    """shapes: (WKT, values); fields: (name, type)."""
    reference = None
    if srs:
        reference = osr.SpatialReference()
        reference.SetFromUserInput(srs)
        reference.SetAxisMappingStrategy(osr.OAMS_TRADITIONAL_GIS_ORDER)
    dataset = ogr.GetDriverByName(driver).CreateDataSource(str(path))
    layer = dataset.CreateLayer("shapes", reference, ogr.wkbUnknown)
    for name, kind in fields:
        layer.CreateField(ogr.FieldDefn(name, kind))
    for text, values in shapes:
        feature = ogr.Feature(layer.GetLayerDefn())
        if text:
            feature.SetGeometry(ogr.CreateGeometryFromWkt(text))
        for (name, _), value in zip(fields, values):
            if value is not None:
                feature.SetField(name, value)
        layer.CreateFeature(feature)
    return path


def centre(line, sample):
    return f"POINT ({PLACE[0] + 30 * (sample + 0.5)} {PLACE[3] - 30 * (line + 0.5)})"


def points_of(labels, value=lambda v: (int(v),)):
    return [(centre(i, j), value(labels[i, j])) for i in range(labels.shape[0]) for j in range(labels.shape[1])]


def labels_on(folder, labels, *options):
    """Returns (lines, samples): the labels as every tool reads them, NaN where missing, and the messages."""
    like = folder / "like.tif"
    if not like.exists():
        write_labels(like, np.zeros((LINES, SAMPLES)))
    said = succeed(run("gdal_hsi_sample", "-overwrite", "-fraction", 0.5, "-like", like, *options, labels, folder / "train.tif",
                       folder / "test.tif")).err
    train, test = read(folder / "train.tif")[0], read(folder / "test.tif")[0]
    # Concerns the split, not the labels
    said = "".join(line for line in said.splitlines(True) if "touch a training pixel" not in line)
    return np.where(np.isnan(train), test, train), said


def nodata_of(path):
    return open_band(path).GetNoDataValue()
