// SPDX-License-Identifier: MIT
// Numbers the pixels of src by their position in its whole file, for tools that draw random numbers per
// pixel. The numbers do not depend on -srcwin.
#pragma once

#include "core/pixel_numbers.h"
#include "raster/raster_source.h"
#include "tool/run.h"

namespace hsi::tools {

/// Returns the numbering of the pixels. If -srcwin was given, opens src again to get the full width. \throws
/// the errors of opening src.
inline PixelNumbers numbers_in_file(const tool::Run& run, const raster::RasterSource& scene) {
    auto options = run.options().source;
    PixelNumbers numbers;
    numbers.width = scene.shape().samples;
    if (!options.window) return numbers;
    numbers.first_line = options.window->y;
    numbers.first_sample = options.window->x;
    options.window.reset();
    numbers.width = raster::open_raster(options)->shape().samples;
    return numbers;
}

} // namespace hsi::tools
