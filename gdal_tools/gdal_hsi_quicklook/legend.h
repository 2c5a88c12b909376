// SPDX-License-Identifier: MIT
// The legend next to the panels of a picture.
#pragma once

#include "shared/canvas.h"

#include <cstdint>
#include <string>
#include <vector>

namespace hsi::quicklook_tool {

constexpr int64_t legend_line = 20; ///< pixels

using tools::Canvas;
using tools::Rgb;

/// A class of the legend with its colour.
struct Entry {
    std::string name; ///< empty: no name
    Rgb colour{};
    int value = 0;
    bool seen = false;
};

/// Returns the width of the legend with these names; 0 without names.
int64_t legend_width(const std::vector<Entry>& entries);

/// Draws the classes below each other, from the top of column x0 on.
void draw_legend(Canvas& canvas, int64_t x0, const std::vector<Entry>& entries);

/// Limits the legend to the height of the panels, and to 64 classes, so that it is readable.
void shorten_legend(tool::Run& run, std::vector<Entry>& legend, int64_t high);

} // namespace hsi::quicklook_tool
