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

std::optional<GroundScale> ground_scale(const RasterSource& source) {
    double gt[6];
    if (!source.facts().srs || !source.facts().copy_geotransform(gt)) return {};
    OGRSpatialReference srs;
    if (srs.importFromWkt(source.facts().srs_wkt().c_str()) != OGRERR_NONE) return {};
    if (srs.IsProjected()) return GroundScale{srs.GetLinearUnits(), 0, 0};
    if (!srs.IsGeographic()) return {};
    const double a = srs.GetSemiMajor(), b = srs.GetSemiMinor();
    return GroundScale{srs.GetAngularUnits(), a, 1 - b * b / (a * a)};
}

std::array<double, 2> GroundScale::at(double y) const {
    if (semi_major == 0) return {unit, unit};
    const double latitude = y * unit, sine = std::sin(latitude), w = 1 - eccentricity_squared * sine * sine;
    const double across = semi_major / std::sqrt(w), along = across * (1 - eccentricity_squared) / w;
    return {across * std::cos(latitude) * unit, along * unit};
}

} // namespace hsi::raster
