// SPDX-License-Identifier: MIT
// The legend next to the panels of a picture.
#pragma once

#include "shared/canvas.h"

#include <cstdint>
#include <string>
#include <vector>

namespace hsi::quicklook_tool {

constexpr int64_t legend_line = 20; ///< height of a line of the legend, in pixels

using tools::Canvas;
using tools::Rgb;

/// An entry of the legend: a class and its colour.
struct Entry {
    std::string name; ///< class name; empty if the class has no name
    Rgb colour{};
    int value = 0;
    bool seen = false;
};

/// Returns the width of a legend with these entries, in pixels; 0 if there are no entries.
int64_t legend_width(const std::vector<Entry>& entries);

/// Draws the entries below each other. x0: left edge; the first entry is at the top of the canvas.
void draw_legend(Canvas& canvas, int64_t x0, const std::vector<Entry>& entries);

/// Shortens the legend to as many entries as fit next to panels of the height `high`, but not to fewer than
/// 64. Warns about entries that are left out.
void shorten_legend(tool::Run& run, std::vector<Entry>& legend, int64_t high);

} // namespace hsi::quicklook_tool
