// SPDX-License-Identifier: MIT
// Contains the inner loops of the scan of stripes, compiled for every instruction set and selected at run
// time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hsi::noise {

/// Adds |row[i]| to magnitude[i], which core/valid_pixel.h uses to detect invalid pixels.
void add_magnitudes(const float* row, size_t count, float* magnitude);

/// The lines of a band, which are `stride` values apart.
struct StripeRows {
    const float* first; ///< first value; the first and the last value of a line have neighbours on both sides
    ptrdiff_t stride;
    int64_t lines;
    size_t count; ///< values per line
};

/// Sets sum[i] to the sum of e = x_i - (x_{i-1} + x_{i+1})/2 over the lines, and squares[i] to the sum of
/// e^2. The sums are added line by line. `counted` has 1 or 0 for each value, with lines `counted_stride`
/// apart; null: all values count.
void add_stripes(const StripeRows& rows, const double* counted, size_t counted_stride, double* sum,
                 double* squares);

} // namespace hsi::noise
