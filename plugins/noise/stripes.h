// SPDX-License-Identifier: MIT
// The inner loops of the scan of stripes, compiled for every instruction set and dispatched at run time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hsi::noise {

/// Adds |row[i]| to magnitude[i], which core/valid_pixel.h then judges.
void add_magnitudes(const float* row, size_t count, float* magnitude);

/// Lines of a band, `stride` values apart.
struct StripeRows {
    const float* first; ///< the first value; it and the last one have neighbours
    ptrdiff_t stride;
    int64_t lines;
    size_t count; ///< values of a line
};

/// sum[i] = the sum over lines of e = x_i - (x_{i-1} + x_{i+1})/2, squares[i] that of e^2, line after line.
/// counted: 1 or 0 for each value, lines `counted_stride` apart; null: all count.
void add_stripes(const StripeRows& rows, const double* counted, size_t counted_stride, double* sum,
                 double* squares);

} // namespace hsi::noise
