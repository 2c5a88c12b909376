// SPDX-License-Identifier: MIT
// Angles of pixels from products that hold them, and where pixels are on the ground: rasters of another grid,
// slopes of a DEM, positions of the sun.
#pragma once

#include "core/view_angles.h"
#include "raster/raster_source.h"
#include "stream/cube_source.h"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hsi::raster {

/// The position of a scene, which may be a window (-srcwin) of a file.
struct Placement {
    stream::CubeShape shape; ///< of the window
    int64_t first_sample = 0, first_line = 0, all_samples = 0, all_lines = 0;
    std::optional<std::array<double, 6>> geotransform; ///< of the window
    std::string srs_wkt;
    bool is_whole(int64_t samples, int64_t lines) const {
        return samples == all_samples && lines == all_lines;
    }
};

/// The angle that a band or an array of this name holds.
std::optional<view::Angle> angle_called(const std::string& name);
/// From a unit to degrees.
double degrees_per(const std::string& unit);

/// One angle of a file: `input` is of `plane` (its band is 0) where there is one.
struct FileAngle {
    view::Angle angle;
    view::AngleInput input;
    std::shared_ptr<const stream::CubeSource> plane;
    std::string fault = {}; ///< why some pixels do not have it; empty: all have it
};
/// All angles of a product: AVIRIS-3 OBS, EMIT L1B OBS, NEON, PRISMA L2, EnMAP's XML. nullopt if the file is
/// another. \throws Error when arrays do not have the scene's size.
std::optional<std::vector<FileAngle>> angles_of_product(const std::string& path, const Placement& scene);

/// `behind` at the nearest pixel on the ground; NaN outside. \throws Error without a georeference of both.
std::shared_ptr<const stream::CubeSource> nearest_on_ground(const std::shared_ptr<RasterSource>& behind,
                                                            const Placement& scene);
/// Two bands, slope and aspect in degrees, by Horn's gradient on the DEM's grid, then bilinear. Lengths are
/// metres, unless the SRS, or for heights the band, states another unit. \throws Error when the DEM does not
/// open, or without a georeference of both.
std::shared_ptr<const stream::CubeSource> slopes_of_dem(const std::string& dem, const Placement& scene);
/// Two bands, the sun's zenith and azimuth in degrees. `days`: since 2000-01-01T12:00 UTC, of the first and
/// the last line of the whole file.
std::shared_ptr<const stream::CubeSource> sun_positions(const std::array<double, 2>& days,
                                                        const Placement& scene);
/// Zenith and azimuth in degrees at a longitude and latitude in degrees. Within 0.01 degrees.
std::array<double, 2> sun_position(double longitude, double latitude, double days);

} // namespace hsi::raster
