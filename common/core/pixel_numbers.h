// SPDX-License-Identifier: MIT
// Numbers the pixels of a window by their position in the file, so that the random numbers of a pixel are the
// same in any window.
#pragma once

#include <cstdint>

namespace hsi {

struct PixelNumbers {
    int64_t width = 0; ///< samples per line of the file
    int64_t first_line = 0, first_sample = 0;
    /// Returns the number of a pixel: line * width + sample, with both counted from 0 in the file. The
    /// arguments are counted from 0 in the window.
    int64_t of(int64_t line, int64_t sample) const {
        return (first_line + line) * width + first_sample + sample;
    }
};

} // namespace hsi
