// SPDX-License-Identifier: MIT
// The inner loops of the scan for stripes, compiled for every instruction set and selected at run time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hsi::noise {

/// Adds |row[i]| to magnitude[i]. From the sum over all bands, core/valid_pixel.h decides whether a pixel is
/// valid.
void add_magnitudes(const float* row, size_t count, float* magnitude);

/// The lines of a band that are summed. They are `stride` values apart.
struct StripeRows {
    const float* first; ///< first value; the first and the last value of a line have neighbours on both sides
    ptrdiff_t stride;
    int64_t lines;
    size_t count; ///< values per line
};

/// For each value i of a line, e = x_i - (x_{i-1} + x_{i+1})/2 is its difference from its neighbours. Sets
/// sum[i] to the sum of e over the lines, and squares[i] to the sum of e^2. The sums add one line after
/// another. `counted` has 1 for each value that counts and 0 for others, with lines `counted_stride` apart;
/// null: all values count.
void add_stripes(const StripeRows& rows, const double* counted, size_t counted_stride, double* sum,
                 double* squares);

} // namespace hsi::noise
