// SPDX-License-Identifier: MIT
// Numbers that a float does not hold, as three floats whose sum is the number (D. M. Priest, "Algorithms for
// arbitrary precision floating point arithmetic", 1991: a number, then repeatedly the rest after rounding). A
// cube of such numbers has three bands for each, one after another, and is handled like any cube of floats.
#pragma once

#include <cstddef>

namespace hsi::stream {

/// Floats to a number: 72 bits, more than a double or a 64-bit integer has.
inline constexpr int value_parts = 3;

/// The number with parts `step` floats apart: exact if a double holds it, NaN for a missing value.
inline double joined(const float* parts, ptrdiff_t step) {
    return static_cast<double>(parts[0]) +
           (static_cast<double>(parts[step]) + static_cast<double>(parts[2 * step]));
}

} // namespace hsi::stream
