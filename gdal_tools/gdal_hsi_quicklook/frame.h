// SPDX-License-Identifier: MIT
// The frame around a picture for reports: title, coordinates, scale bar, north arrow and colour bar.
#pragma once

#include "raster/raster_source.h"
#include "shared/canvas.h"

#include <array>
#include <cstdint>
#include <functional>
#include <string>

namespace hsi::quicklook_tool {

/// The range of values of a grey panel, from black to white.
struct ColourBar {
    double lowest = 0, highest = 1;
    std::function<uint8_t(double value)> shade;
    std::string label; ///< name of the band and its unit
};

/// The first panel, which is in the upper left corner of the picture.
struct FramedPanel {
    const raster::RasterSource& scene;
    int64_t samples, lines; ///< size of the panel in pixels of the picture
};

/// Returns the picture with a title above it; no title if the text is empty. With `frame`, and if the scene
/// is georeferenced, adds coordinates, a scale bar and a north arrow for the panel. Coordinates are round
/// numbers in the scene's SRS; a rotated scene gets no coordinates. `bar`: colour bar; may be null.
tools::Canvas framed(const tools::Canvas& picture, const std::string& title, bool frame,
                     const FramedPanel& panel, const ColourBar* bar);

/// Height of the text of draw_name(), in pixels.
inline constexpr int64_t name_height = tools::letter_height + 6;
/// Returns the width of the text that draw_name() draws, in pixels.
int64_t name_width(const std::string& name, int64_t width);
/// Draws a text on a white background, with its upper left corner at (x0, y0). The text is cut to fit into
/// `width` pixels.
void draw_name(tools::Canvas& canvas, int64_t x0, int64_t y0, int64_t width, const std::string& name);

} // namespace hsi::quicklook_tool
