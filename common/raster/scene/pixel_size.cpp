// SPDX-License-Identifier: MIT
#include "raster/pixel_size.h"

#include <cpl_string.h>
#include <ogr_spatialref.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace hsi::raster {
namespace {

/// Returns true if coordinates are lengths: in a projected SRS, and in a local SRS whose unit is neither
/// unknown nor an angle. PROJ assumes metres if a local SRS states no unit.
bool measures_lengths(const OGRSpatialReference& srs) {
    if (srs.IsProjected()) return true;
    if (!srs.IsLocal()) return false;
    const char* unit = nullptr;
    srs.GetLinearUnits(&unit);
    const CPLString name(unit != nullptr ? unit : "unknown");
    for (const char* const other : {"unknown", "degree", "grad", "radian", "gon", "arc", "pixel"})
        if (name.ifind(other) != std::string::npos) return false;
    return true;
}

} // namespace

std::optional<double> pixel_metres(const RasterSource& source) {
    double gt[6];
    if (!source.facts().srs || !source.facts().copy_geotransform(gt)) return {};
    OGRSpatialReference srs;
    if (srs.importFromWkt(source.facts().srs_wkt().c_str()) != OGRERR_NONE || !measures_lengths(srs))
        return {};
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
    if (measures_lengths(srs)) return GroundScale{srs.GetLinearUnits(), 0, 0};
    if (!srs.IsGeographic()) return {};
    const double a = srs.GetSemiMajor(), b = srs.GetSemiMinor();
    return GroundScale{srs.GetAngularUnits(), a, 1 - b * b / (a * a)};
}

namespace {

/// Returns the area of the ellipsoid between the equator and a latitude (radians), per radian of longitude
/// and divided by a^2 / 2 (J. P. Snyder, Map projections: a working manual, USGS Professional Paper 1395,
/// 1987, eq. 3-12).
double zone(double latitude, double e) {
    const double s = std::sin(latitude);
    if (e == 0) return 2 * s;
    return (1 - e * e) * (s / (1 - e * e * s * s) + std::atanh(e * s) / e);
}

} // namespace

std::vector<double> pixel_areas(const RasterSource& source) {
    if (const auto metres = pixel_metres(source)) return {*metres * *metres};
    double gt[6];
    if (!source.facts().srs || !source.facts().copy_geotransform(gt) || gt[2] != 0 || gt[4] != 0) return {};
    OGRSpatialReference srs;
    if (srs.importFromWkt(source.facts().srs_wkt().c_str()) != OGRERR_NONE || !srs.IsGeographic()) return {};
    const double a = srs.GetSemiMajor(), b = srs.GetSemiMinor(), unit = srs.GetAngularUnits(),
                 e = std::sqrt(std::max(0.0, 1 - b * b / (a * a))), pole = std::asin(1.0);
    std::vector<double> areas;
    for (int64_t line = 0; line < source.shape().lines; ++line) {
        const auto at = [&](int64_t k) {
            return zone(std::clamp((gt[3] + static_cast<double>(k) * gt[5]) * unit, -pole, pole), e);
        };
        areas.push_back(a * a / 2 * std::fabs(gt[1] * unit * (at(line + 1) - at(line))));
    }
    return areas;
}

} // namespace hsi::raster
