// SPDX-License-Identifier: MIT
// Computes medians of several columns at once, with one column in each SIMD lane. Values are neither sorted
// nor moved. Instead, each pass over the rows counts the values up to a pivot. The pivot is interpolated
// between two values that enclose the median, until the median is known.
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

/// Fills `rows` (lines x columns_at_once) with a band's values in the columns [first, first +
/// columns_at_once). With `steps`, fills it with the differences from the values in the previous column.
/// keep: packed lines x samples, 1 for valid pixels, otherwise 0; null if all pixels are valid. Values and
/// differences of pixels that are not valid become left_out.
void fill_rows(const CubeView<float>& in, int band, int64_t first, bool steps, const float* keep,
               double* rows);

} // namespace hsi::destripe
