// SPDX-License-Identifier: MIT
// The size of a pixel on the ground.
#pragma once

#include "raster/raster_source.h"

#include <array>
#include <cmath>
#include <optional>
#include <vector>

namespace hsi::raster {

/// Returns the square root of a pixel's area in metres, from the geotransform and the unit of the SRS;
/// nullopt without a geotransform, or if the SRS is not projected.
std::optional<double> pixel_metres(const RasterSource& source);

/// Metres per unit of the SRS.
class GroundScale {
  public:
    /// Returns the scale along x and along y at the position y. For a geographic SRS, the scale follows from
    /// the radii of curvature of the ellipsoid.
    std::array<double, 2> at(double y) const {
        if (semi_major == 0) return {unit, unit};
        const double latitude = y * unit, sine = std::sin(latitude),
                     w = 1 - eccentricity_squared * sine * sine;
        const double across = semi_major / std::sqrt(w), along = across * (1 - eccentricity_squared) / w;
        return {across * std::cos(latitude) * unit, along * unit};
    }
    double unit = 1; ///< One unit of the SRS, in metres (projected SRS) or radians (geographic SRS).
    /// Ellipsoid of a geographic SRS (semi_major in metres); 0: the SRS is projected.
    double semi_major = 0, eccentricity_squared = 0;
};
/// Returns nullopt without a geotransform, or if the SRS is neither projected nor geographic.
std::optional<GroundScale> ground_scale(const RasterSource& source);
/// Returns the area of a pixel (m^2): one value if the SRS is projected; one value per line, computed on the
/// ellipsoid, if the SRS is geographic and the geotransform is not rotated; otherwise empty.
std::vector<double> pixel_areas(const RasterSource& source);

} // namespace hsi::raster
