// SPDX-License-Identifier: MIT
// The inner loops over rows of pixels, compiled for every instruction set and dispatched at run time.
#pragma once

#include <cstddef>

namespace hsi::destripe {

/// Adds |row[i]| to magnitude[i]. From this sum over the bands, core/valid_pixel.h decides if a pixel is
/// valid.
void add_magnitudes(const float* row, size_t count, float* magnitude);

/// to[i] = factor[i] from[i] + offset[i], computed in double precision and rounded to float; NaN if a float
/// cannot represent it.
void correct_row(const float* from, const double* factor, const double* offset, size_t count, float* to);

} // namespace hsi::destripe
