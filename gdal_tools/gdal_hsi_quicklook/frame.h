// SPDX-License-Identifier: MIT
// The panels of a picture with their colour bars, and the frame around them for reports: title, coordinates,
// scale bar and north arrow.
#pragma once

#include "raster/raster_source.h"
#include "shared/canvas.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace hsi::quicklook_tool {

/// The range of values of a grey panel, from black to white.
struct ColourBar {
    double lowest = 0, highest = 1;
    std::function<uint8_t(double value)> shade;
    std::string label; ///< name of the values, with their unit
    std::string unit;  ///< may be empty
};

struct DrawnPanel {
    tools::Canvas canvas;
    std::optional<ColourBar> bar = {};
};

/// Returns the picture of the panels, which have equal sizes, in rows of `columns`, `gap` pixels apart. A
/// colour bar is to the right of its panel. If all panels have the same bar, it is drawn once, to the right
/// of all.
tools::Canvas assembled(std::vector<DrawnPanel> panels, int64_t columns, int64_t gap);

/// The first panel, which is in the upper left corner of the picture.
struct FramedPanel {
    const raster::RasterSource& scene;
    int64_t samples, lines; ///< size of the panel in pixels of the picture
};

/// Returns the picture with a title above it, in up to three lines; no title if the text is empty. With
/// `frame`, and if the scene is georeferenced, adds coordinates, a scale bar and a north arrow for the panel.
/// Coordinates are round numbers in the scene's SRS, which is named below them; a rotated scene gets no
/// coordinates.
tools::Canvas framed(const tools::Canvas& picture, const std::string& title, bool frame,
                     const FramedPanel& panel);

} // namespace hsi::quicklook_tool
