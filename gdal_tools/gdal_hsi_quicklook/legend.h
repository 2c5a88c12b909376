// SPDX-License-Identifier: MIT
// The legend next to the panels of a picture.
#pragma once

#include "shared/canvas.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hsi::quicklook_tool {

using tools::Canvas;
using tools::Rgb;

/// An entry of the legend: a class and its colour.
struct Entry {
    std::string name; ///< class name; empty if the class has no name
    Rgb colour{};
    int value = 0;
    bool seen = false;
};

/// Returns the picture with a legend on its right side, `gap` pixels away. The legend is sorted by class
/// number and shortened to the height of the picture or to 64 classes, with a warning. `none`: colour of
/// pixels without a class, which is the last entry; nullopt if there are none.
Canvas with_legend(tool::Run& run, const Canvas& picture, int64_t gap, std::vector<Entry> legend,
                   const std::optional<Rgb>& none);

} // namespace hsi::quicklook_tool
