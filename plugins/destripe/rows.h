// SPDX-License-Identifier: MIT
// The inner loops over rows of pixels, compiled for every instruction set and dispatched at run time.
#pragma once

#include <cstddef>

namespace hsi::destripe {

/// Adds |row[i]| to magnitude[i]. From the sum over all bands, core/valid_pixel.h decides whether a pixel is
/// valid.
void add_magnitudes(const float* row, size_t count, float* magnitude);

/// Computes to[i] = factor[i] from[i] + offset[i] in double precision and rounds it to float. The result is
/// NaN if it exceeds the range of float.
void correct_row(const float* from, const double* factor, const double* offset, size_t count, float* to);

} // namespace hsi::destripe
