# SPDX-License-Identifier: MIT
"""Computes an extended morphological profile with only numpy, for builds without gdal_hsi_profile: closings and
openings by reconstruction with disks around every component."""
from .common import gdal, needs_arrays
from .common import numpy as np


def disk(radius):
    y, x = np.mgrid[-radius:radius + 1, -radius:radius + 1]
    return [(dy, dx) for dy, dx in zip(y.ravel(), x.ravel()) if dy * dy + dx * dx <= radius * radius]


def extreme(image, offsets, take):
    """Computes grey erosion (take = minimum) or dilation (maximum) by the offsets, without pixels outside the image."""
    reach = max(max(abs(y), abs(x)) for y, x in offsets)
    fill = np.inf if take is np.minimum else -np.inf
    padded = np.pad(image, reach, constant_values=fill)
    lines, samples = image.shape
    result = image.copy()
    for dy, dx in offsets:
        take(result, padded[reach + dy:reach + dy + lines, reach + dx:reach + dx + samples], out=result)
    return result


def reconstruct(marker, mask):
    """Computes morphological reconstruction by dilation, 8-connected: dilates the marker under the mask until nothing
    changes."""
    box = [(y, x) for y in (-1, 0, 1) for x in (-1, 0, 1)]
    while True:
        grown = np.minimum(extreme(marker, box, np.maximum), mask)
        if np.array_equal(grown, marker):
            return grown
        marker = grown


def morphological_profile(source, target, radii=(2, 4, 6, 8)):
    """Computes closings and openings by reconstruction with disks, around each band of `source`."""
    needs_arrays()
    dataset = gdal.Open(str(source))
    planes = []
    for image in dataset.ReadAsArray().astype(np.float64):
        openings = [reconstruct(extreme(image, disk(r), np.minimum), image) for r in radii]
        closings = [-reconstruct(extreme(-image, disk(r), np.minimum), -image) for r in radii]
        planes += [*reversed(closings), image, *openings]
    out = gdal.GetDriverByName("ENVI").Create(str(target), dataset.RasterXSize, dataset.RasterYSize, len(planes),
                                             gdal.GDT_Float32)
    out.SetGeoTransform(dataset.GetGeoTransform())
    out.SetProjection(dataset.GetProjection())
    for b, plane in enumerate(planes):
        out.GetRasterBand(b + 1).WriteArray(plane.astype(np.float32))
