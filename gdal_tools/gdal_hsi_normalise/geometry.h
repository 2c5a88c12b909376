// SPDX-License-Identifier: MIT
// The angles of the pixels of a scene, computed from files, a DEM and a time.
#pragma once

#include "core/view_angles.h"
#include "normalise/normalise.h"
#include "raster/raster_source.h"
#include "raster/view_geometry.h"
#include "stream/cube_source.h"
#include "tool/run.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hsi::normalise_tool {

/// A value of -angle: a number of degrees, or the path of a raster.
struct AngleSetting {
    view::Angle angle;
    std::optional<double> degrees;
    std::string file;
};
struct AngleSettings {
    std::vector<AngleSetting> angles;
    std::string dem;
    /// Times of the first and the last line, in days since 2000-01-01T12:00 UTC.
    std::optional<std::array<double, 2>> days;
};
/// Parses a text like "solar_zenith=30". \throws UsageError.
AngleSetting parse_angle(const std::string& text);
/// Parses a text like "2022-08-28T10:19:16Z[/2022-08-28T10:20:00Z]". Returns days since 2000-01-01T12:00 UTC.
/// \throws UsageError.
std::array<double, 2> parse_times(const std::string& text);

struct Geometry {
    view::AngleInputs inputs;
    /// Bands with angles, in the size of the scene; null: all angles are numbers.
    std::shared_ptr<const stream::CubeSource> planes;
    uint64_t held = 0;         ///< memory of the planes, in bytes
    normalise::SceneGrid grid; ///< grid of the scene's file

    /// Reads the planes of angles into memory if they are small. Otherwise each pass would decode blocks of
    /// their file again for every few lines.
    void read(const tool::Run& run);
};

/// Opens the angles of a scene. Angles that the settings do not give are taken from `file`, or from the
/// scene's own file if `file` is empty. `windowed`: true if -srcwin selects a part of the scene. \throws
/// Error if an angle in `needed` is missing, or if a file does not match the scene.
Geometry open_geometry(tool::Run& run, const AngleSettings& settings, const raster::RasterSource& scene,
                       const std::string& file, bool windowed, const std::vector<view::Angle>& needed);

} // namespace hsi::normalise_tool
