// SPDX-License-Identifier: MIT
// The inner loops over rows of pixels, compiled for every instruction set and dispatched at run time.
#pragma once

#include <cstddef>

namespace hsi::destripe {

/// Adds |row[i]| to magnitude[i], which core/valid_pixel.h then judges.
void add_magnitudes(const float* row, size_t count, float* magnitude);

/// to[i] = factor[i] from[i] + offset[i] in double precision, rounded once; NaN where a float cannot hold it.
void correct_row(const float* from, const double* factor, const double* offset, size_t count, float* to);

} // namespace hsi::destripe
