// SPDX-License-Identifier: MIT
// The choice of the cheaper matrix for local RX, which all backends share. U has the pixels of a ring minus
// their mean, one pixel per row.
#pragma once

#include "core/error.h"
#include "detect/local/local.h"

#include <cstdint>
#include <string>

namespace hsi::detect {

/// Returns the number of pixels of a whole ring.
inline int64_t ring_pixels(const Ring& ring) {
    return int64_t{ring.outer} * ring.outer - int64_t{ring.inner} * ring.inner;
}

/// Return the number of multiplications per pixel. products_by_pixels() is for the matrix U U', pixels x
/// pixels. products_by_bands() is for the matrix U'U, bands x bands, whose sums slide along a line and
/// restart after `run` pixels.
inline double products_by_pixels(int bands, const Ring& ring) {
    const double b = bands, n = static_cast<double>(ring_pixels(ring));
    return n * n * b / 2 + n * n * n / 6;
}
inline double products_by_bands(int bands, const Ring& ring, int64_t run) {
    const double b = bands, n = static_cast<double>(ring_pixels(ring)), sides = ring.inner + ring.outer;
    return b * b * b / 6 + sides * b * b + n * b * b / (2 * static_cast<double>(run));
}
/// Returns true if U U' can be used and costs less. It can only be used with a ridge, since its score is
/// divided by the ridge.
inline bool takes_pixels(int bands, const Ring& ring, int64_t run) {
    return ring.ridge_share > 0 && products_by_pixels(bands, ring) < products_by_bands(bands, ring, run);
}

inline void check_ring(int bands, const Ring& ring) {
    if (ring.inner < 1 || ring.outer <= ring.inner || ring.outer > largest_window || ring.inner % 2 == 0 ||
        ring.outer % 2 == 0 || bands < 1 || !(ring.ridge_share >= 0 && ring.ridge_share <= 1))
        throw Error("internal: a ring of " + std::to_string(ring.inner) + " and " +
                    std::to_string(ring.outer) + " pixels");
}

} // namespace hsi::detect
