// SPDX-License-Identifier: MIT
// Represents a number that needs more digits than a float has by three floats whose sum is the number. They
// are the rounded number, the rounded rest, and the rest that then remains (D. M. Priest, "Algorithms for
// arbitrary precision floating point arithmetic", 1991). A cube of such numbers has three consecutive bands
// per number, and is handled like any cube of floats.
#pragma once

#include <cstddef>

namespace hsi::stream {

/// The floats per number: 72 bits, more than a double or a 64-bit integer has.
inline constexpr int value_parts = 3;

/// Returns the number whose parts are `step` floats apart. The result is exact if a double can represent the
/// number, and NaN for a missing value.
inline double joined(const float* parts, ptrdiff_t step) {
    return static_cast<double>(parts[0]) +
           (static_cast<double>(parts[step]) + static_cast<double>(parts[2 * step]));
}

} // namespace hsi::stream
