// SPDX-License-Identifier: MIT
// Writes the plumes of an enhancement as polygons, as points and as a map.
#pragma once

#include "raster/raster_source.h"
#include "stream/cube_source.h"
#include "stream/pixel_mask.h"
#include "tool/definition.h"
#include "tool/run.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace hsi::gas_tool {

/// A level in ppm m or, with `deviations`, in standard deviations above the median.
struct Level {
    double value = 0;
    bool deviations = false;
};

struct PlumeSettings {
    std::string path, map; ///< paths of -plumes and -plume-map
    std::string threshold_text, extent_text;
    Level threshold, extent;
    int64_t min_pixels = 5;
    std::string connectivity = "8";
    double smooth = 0;
    std::optional<double> wind;
    std::string ueff_text = "linear:0.34,0.44";
    bool logarithm = false;
    std::array<double, 2> ueff{};
    bool fetch = false;                 ///< true with -length fetch
    std::array<double, 2> pixel_size{}; ///< metres, in x and y; 0: derived from the grid
    bool given() const { return !path.empty() || !map.empty(); }
};

void declare_plumes(tool::Builder& args, PlumeSettings& s);
/// Checks the options. `methane`: true if the threshold has a default. \throws UsageError.
void settle_plumes(PlumeSettings& s, const tool::Call& call, bool methane);

/// Checks the outputs before the work begins. \throws Error if the area of the pixels is unknown.
void check_plumes(const tool::Run& run, const PlumeSettings& s, const raster::RasterSource& grid);
/// Finds the plumes of `enhancement` and writes them. The first band of this cube is the enhancement; an
/// optional second band is the uncertainty of the enhancement. mask: pixels that may belong to plumes; null:
/// all. molar_mass: kg/mol.
void write_plumes(tool::Run& run, const PlumeSettings& s, const raster::RasterSource& grid,
                  const stream::CubeSource& enhancement, const stream::PixelMask* mask, double molar_mass);

} // namespace hsi::gas_tool
