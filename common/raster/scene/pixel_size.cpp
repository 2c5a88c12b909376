// SPDX-License-Identifier: MIT
#include "raster/pixel_size.h"

#include <ogr_spatialref.h>

#include <cmath>

namespace hsi::raster {

std::optional<double> pixel_metres(const RasterSource& source) {
    double gt[6];
    if (!source.facts().srs || !source.facts().copy_geotransform(gt)) return {};
    OGRSpatialReference srs;
    if (srs.importFromWkt(source.facts().srs_wkt().c_str()) != OGRERR_NONE || !srs.IsProjected()) return {};
    const double area = std::fabs(gt[1] * gt[5] - gt[2] * gt[4]);
    const double size = std::sqrt(area) * srs.GetLinearUnits();
    if (!std::isfinite(size) || !(size > 0)) return {};
    return size;
}

} // namespace hsi::raster
