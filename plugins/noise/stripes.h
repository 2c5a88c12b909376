// SPDX-License-Identifier: MIT
// Contains the inner loops of the scan of stripes, compiled for every instruction set and selected at run
// time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hsi::noise {

/// Adds |row[i]| to magnitude[i], for core/valid_pixel.h.
void add_magnitudes(const float* row, size_t count, float* magnitude);

/// Describes the lines of a band, which are `stride` values apart.
struct StripeRows {
    const float* first; ///< the first value; this and the last value have neighbours
    ptrdiff_t stride;
    int64_t lines;
    size_t count; ///< values per line
};

/// Sets sum[i] to the sum over lines of e = x_i - (x_{i-1} + x_{i+1})/2, and squares[i] to that of e^2, added
/// line by line. counted: 1 or 0 for each value, with lines `counted_stride` apart; null if all count.
void add_stripes(const StripeRows& rows, const double* counted, size_t counted_stride, double* sum,
                 double* squares);

} // namespace hsi::noise
