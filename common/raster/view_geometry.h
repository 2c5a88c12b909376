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

/// The size and position of a scene, which may be a window (-srcwin) of a file.
struct Placement {
    stream::CubeShape shape; ///< shape of the scene
    /// The first pixel of the scene in the file, and the size of the file.
    int64_t first_sample = 0, first_line = 0, all_samples = 0, all_lines = 0;
    std::optional<std::array<double, 6>> geotransform; ///< geotransform of the scene; nullopt if unknown
    std::string srs_wkt;
    bool is_whole(int64_t samples, int64_t lines) const {
        return samples == all_samples && lines == all_lines;
    }
};

/// Returns the angle that a band or an array of this name contains; nullopt if the name denotes no angle.
std::optional<view::Angle> angle_called(const std::string& name);
/// Returns the factor that converts a unit of angles to degrees.
double degrees_per(const std::string& unit);

/// An angle that a file states for each pixel or for the whole scene. For an angle per pixel, band 0 of
/// `plane` has the values to which `input` refers; otherwise `plane` is null.
struct FileAngle {
    view::Angle angle;
    view::AngleInput input;
    std::shared_ptr<const stream::CubeSource> plane;
    std::string fault = {}; ///< why some pixels lack the angle; empty: no pixel lacks it
};
/// Returns all angles in a file of a product: AVIRIS-3 OBS, EMIT L1B OBS, NEON, PRISMA L2, EnMAP's XML.
/// nullopt for other files. \throws Error if arrays of the file have another size than the scene.
std::optional<std::vector<FileAngle>> angles_of_product(const std::string& path, const Placement& scene);

/// Returns the raster `behind` on the grid of `scene`. Each pixel gets the values of the pixel of `behind`
/// that contains its centre, or NaN if it is outside of `behind`. \throws Error unless both have a
/// georeference.
std::shared_ptr<const stream::CubeSource> nearest_on_ground(const std::shared_ptr<RasterSource>& behind,
                                                            const Placement& scene);
/// Returns two bands, slope and aspect in degrees. Horn's gradient is computed on the DEM's grid, and then
/// interpolated bilinearly to the pixels of the scene. Lengths are in metres unless the SRS, or for heights
/// the band, states another unit. \throws Error if the DEM does not open, or unless both have a georeference.
std::shared_ptr<const stream::CubeSource> slopes_of_dem(const std::string& dem, const Placement& scene);
/// Returns two bands, the sun's zenith and azimuth in degrees. `days` has the times at which the first and
/// the last line of the whole file were acquired, in days since 2000-01-01T12:00 UTC.
std::shared_ptr<const stream::CubeSource> sun_positions(const std::array<double, 2>& days,
                                                        const Placement& scene);
/// Returns the sun's zenith and azimuth in degrees at a longitude and latitude in degrees, accurate to 0.01
/// degrees. `days` counts from 2000-01-01T12:00 UTC.
std::array<double, 2> sun_position(double longitude, double latitude, double days);

} // namespace hsi::raster
