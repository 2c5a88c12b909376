// SPDX-License-Identifier: MIT
// Medians of several columns at once: one column in each SIMD lane. Each pass over the rows counts the values
// up to a pivot, which is interpolated between bounds that are values themselves; no value is moved.
#pragma once

#include "core/cube_view.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace hsi::destripe {

inline constexpr size_t columns_at_once = 8;
using ColumnNumbers = std::array<double, columns_at_once>;
/// Left out of the medians.
inline constexpr double left_out = std::numeric_limits<double>::infinity();

/// rows: lines x columns_at_once, finite or left_out. kept: the count of finite values; median: 0 without
/// any.
void find_medians(const double* rows, int64_t lines, ColumnNumbers& kept, ColumnNumbers& median);

/// rows: lines x columns_at_once: values [first, first + columns_at_once) of the lines of a band or, as
/// steps, less those of the column before. keep: 1 or 0 for each pixel, like the band; null: all are kept.
void fill_rows(const CubeView<float>& in, int band, int64_t first, bool steps, const float* keep,
               double* rows);

} // namespace hsi::destripe
