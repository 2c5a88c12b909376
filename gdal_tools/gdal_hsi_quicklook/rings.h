// SPDX-License-Identifier: MIT
// Rings around points of a panel, with names next to them.
#pragma once

#include "shared/canvas.h"

#include <cstdint>
#include <string>
#include <vector>

namespace hsi::quicklook_tool {

struct Ring {
    double x, y;      ///< centre, in pixels of the panel
    std::string name; ///< may be empty
};

/// Height of the text of draw_name(), in pixels.
int64_t name_height(const tools::TextStyle& style);
/// Returns the width of the text that draw_name() draws, in pixels.
int64_t name_width(const tools::TextStyle& style, const std::string& name, int64_t width);
/// Draws a text on a white background, with its upper left corner at (x0, y0). The text is cut to fit into
/// `width` pixels.
void draw_name(tools::Canvas& canvas, int64_t x0, int64_t y0, int64_t width, const std::string& name);

/// Draws the rings and their names. A name is to the right or left of its ring, or above or below, where it
/// covers no ring, no other name and not the name of the panel. `panel_name`: the name in the upper left
/// corner; may be empty. Returns the number of names for which there is no space; they are not drawn.
int64_t draw_rings(tools::Canvas& panel, const std::vector<Ring>& rings, const std::string& panel_name);

} // namespace hsi::quicklook_tool
