// SPDX-License-Identifier: MIT
// The size of a pixel on the ground.
#pragma once

#include "raster/raster_source.h"

#include <array>
#include <cmath>
#include <optional>
#include <vector>

namespace hsi::raster {

/// Returns the side length, in metres, of a square with the area of a pixel. It is computed from the
/// geotransform and the unit of the SRS. nullopt without a geotransform, or if the SRS is neither projected
/// nor a local one whose unit is a length.
std::optional<double> pixel_metres(const RasterSource& source);

/// The scale from coordinates to the ground, in metres per unit of the SRS.
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
    double unit = 1; ///< One unit of the SRS, in metres (projected or local SRS) or radians (geographic SRS).
    /// Ellipsoid of a geographic SRS (semi_major in metres); 0: the SRS is projected or local.
    double semi_major = 0, eccentricity_squared = 0;
};
/// Returns the scale for the SRS of the source; nullopt without a geotransform, or if the SRS is neither
/// projected, nor local with a unit of length, nor geographic.
std::optional<GroundScale> ground_scale(const RasterSource& source);
/// Returns the areas of pixels in m^2. The list has a single value if the SRS is projected or local. It has
/// one value per line, computed on the ellipsoid, if the SRS is geographic and the geotransform is not
/// rotated. Otherwise the list is empty.
std::vector<double> pixel_areas(const RasterSource& source);

} // namespace hsi::raster
