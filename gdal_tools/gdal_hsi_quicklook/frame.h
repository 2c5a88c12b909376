// SPDX-License-Identifier: MIT
// The parts around a picture in a report: title, coordinates, scale bar, north arrow and colour bar.
#pragma once

#include "raster/raster_source.h"
#include "shared/canvas.h"

#include <array>
#include <cstdint>
#include <functional>
#include <string>

namespace hsi::quicklook_tool {

/// The values of a panel in grey, from black to white.
struct ColourBar {
    double lowest = 0, highest = 1;
    std::function<uint8_t(double value)> shade;
    std::string label; ///< the band and its unit
};

/// The first panel, at the upper left corner of the picture.
struct FramedPanel {
    const raster::RasterSource& scene;
    int64_t samples, lines; ///< pixels of the picture
};

/// Returns the picture with a title above it (if it is not empty) and, with `frame`, coordinates, scale bar
/// and north arrow of the panel if the scene is georeferenced. Coordinates are round numbers in the scene's
/// SRS; a rotated scene has none. `bar` may be null.
tools::Canvas framed(const tools::Canvas& picture, const std::string& title, bool frame,
                     const FramedPanel& panel, const ColourBar* bar);

inline constexpr int64_t name_height = tools::letter_height + 6; ///< of draw_name()
/// Returns how wide draw_name() draws the name.
int64_t name_width(const std::string& name, int64_t width);
/// Draws the text on white, with its upper left corner at x0, y0; it is cut to fit into `width`.
void draw_name(tools::Canvas& canvas, int64_t x0, int64_t y0, int64_t width, const std::string& name);

} // namespace hsi::quicklook_tool
