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

/// A class of the legend in its colour.
struct Entry {
    std::string name; ///< empty: without a name
    Rgb colour{};
    int value = 0;
    bool seen = false;
};

/// Width of the legend with these names; 0 without any.
int64_t legend_width(const std::vector<Entry>& entries);

/// The classes below one another, from the top of column x0 on.
void draw_legend(Canvas& canvas, int64_t x0, const std::vector<Entry>& entries);

/// No more classes than the panels are high, and 64 in any case: a picture is for people.
void shorten_legend(tool::Run& run, std::vector<Entry>& legend, int64_t high);

} // namespace hsi::quicklook_tool
