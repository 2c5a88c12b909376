// SPDX-License-Identifier: MIT
// Computes medians of several columns at once, with one column in each SIMD lane. Each pass over the rows
// counts the values up to a pivot, which is interpolated between two of the values. No value is moved.
#pragma once

#include "core/cube_view.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace hsi::destripe {

inline constexpr size_t columns_at_once = 8;
using ColumnNumbers = std::array<double, columns_at_once>;
/// Marks a value that is left out of the medians.
inline constexpr double left_out = std::numeric_limits<double>::infinity();

/// Finds the median of each column, and stores the number of finite values in `kept`. rows: lines x
/// columns_at_once, finite or left_out. median: 0 if there are no finite values.
void find_medians(const double* rows, int64_t lines, ColumnNumbers& kept, ColumnNumbers& median);

/// Fills `rows` (lines x columns_at_once) with values [first, first + columns_at_once) of the lines of a band
/// or, with `steps`, with their differences from the previous column. keep: 1 or 0 for each pixel, in the
/// layout of the band; null if all are kept.
void fill_rows(const CubeView<float>& in, int band, int64_t first, bool steps, const float* keep,
               double* rows);

} // namespace hsi::destripe
