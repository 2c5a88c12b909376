// SPDX-License-Identifier: MIT
// Numbers the pixels of a window by their place in the file: random numbers of a pixel are then the same in
// any window.
#pragma once

#include <cstdint>

namespace hsi {

struct PixelNumbers {
    int64_t width = 0; ///< samples of the file
    int64_t first_line = 0, first_sample = 0;
    /// Line times width plus sample, from 0 on; line and sample count within the window.
    int64_t of(int64_t line, int64_t sample) const {
        return (first_line + line) * width + first_sample + sample;
    }
};

} // namespace hsi
