// SPDX-License-Identifier: MIT
// The angles of the pixels of a scene, from files, a DEM and a time.
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

/// An angle of -angle: a number or the name of a raster.
struct AngleSetting {
    view::Angle angle;
    std::optional<double> degrees;
    std::string file;
};
struct AngleSettings {
    std::vector<AngleSetting> angles;
    std::string dem;
    std::optional<std::array<double, 2>> days; ///< since 2000-01-01T12:00 UTC, of the first and the last line
};
/// Parses "solar_zenith=30". \throws UsageError.
AngleSetting parse_angle(const std::string& text);
/// Parses "2022-08-28T10:19:16Z[/2022-08-28T10:20:00Z]" to days. \throws UsageError.
std::array<double, 2> parse_times(const std::string& text);

struct Geometry {
    view::AngleInputs inputs;
    std::shared_ptr<const stream::CubeSource> planes; ///< of the scene's size; null: all angles are numbers
    uint64_t held = 0;                                ///< bytes of planes that are in memory
    normalise::SceneGrid grid;                        ///< of the scene's file

    /// Reads the planes at once if they take little memory. Otherwise each pass would decode blocks of their
    /// file for a few lines.
    void read(const tool::Run& run);
};

/// Opens a scene's angles, from `file` (empty: the scene itself) and the settings. `windowed`: -srcwin
/// applies to the scene.
/// \throws Error if an angle in `needed` has no source, or if a file does not match the scene.
Geometry open_geometry(tool::Run& run, const AngleSettings& settings, const raster::RasterSource& scene,
                       const std::string& file, bool windowed, const std::vector<view::Angle>& needed);

} // namespace hsi::normalise_tool
