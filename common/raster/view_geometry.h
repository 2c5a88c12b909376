// SPDX-License-Identifier: MIT
// Angles of pixels from products, and positions of pixels on the ground: rasters of another grid, slopes of a
// DEM, positions of the sun.
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
    stream::CubeShape shape; ///< size and position of the window
    int64_t first_sample = 0, first_line = 0, all_samples = 0, all_lines = 0;
    std::optional<std::array<double, 6>> geotransform; ///< size and position of the window
    std::string srs_wkt;
    bool is_whole(int64_t samples, int64_t lines) const {
        return samples == all_samples && lines == all_lines;
    }
};

/// Returns the angle that a band or an array of this name contains.
std::optional<view::Angle> angle_called(const std::string& name);
/// Returns the factor that converts a unit of angles to degrees.
double degrees_per(const std::string& unit);

/// One angle of a file. If `plane` is not null, `input` refers to band 0 of `plane`.
struct FileAngle {
    view::Angle angle;
    view::AngleInput input;
    std::shared_ptr<const stream::CubeSource> plane;
    std::string fault = {}; ///< why some pixels lack the angle; empty: no pixel lacks it
};
/// Returns all angles of a product: AVIRIS-3 OBS, EMIT L1B OBS, NEON, PRISMA L2, EnMAP's XML. nullopt for
/// other files. \throws Error if the size of arrays differs from the scene's.
std::optional<std::vector<FileAngle>> angles_of_product(const std::string& path, const Placement& scene);

/// Returns `behind` on the grid of `scene`: each pixel has the values of the nearest pixel on the ground, and
/// NaN outside of `behind`. \throws Error unless both have a georeference.
std::shared_ptr<const stream::CubeSource> nearest_on_ground(const std::shared_ptr<RasterSource>& behind,
                                                            const Placement& scene);
/// Returns two bands, slope and aspect in degrees, by Horn's gradient on the DEM's grid, then bilinear
/// interpolation. Lengths are in metres unless the SRS, or for heights the band, states another unit. \throws
/// Error if the DEM does not open, or unless both have a georeference.
std::shared_ptr<const stream::CubeSource> slopes_of_dem(const std::string& dem, const Placement& scene);
/// Returns two bands, the sun's zenith and azimuth in degrees. `days`: days since 2000-01-01T12:00 UTC, of
/// the first and the last line of the whole file.
std::shared_ptr<const stream::CubeSource> sun_positions(const std::array<double, 2>& days,
                                                        const Placement& scene);
/// Returns zenith and azimuth in degrees at a longitude and latitude in degrees, accurate to 0.01 degrees.
std::array<double, 2> sun_position(double longitude, double latitude, double days);

} // namespace hsi::raster
