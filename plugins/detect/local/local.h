// SPDX-License-Identifier: MIT
// Anomalies by RX (pixel/pixel.h) against the pixels around each pixel, without a pass for statistics.
// Statistics and products are in double precision; the factor of bands x bands is in single precision, with a
// correction in double (ring_simd.h). A score depends on the pixel and its neighbours alone, so that neither
// tiles nor threads change a bit.
#pragma once

#include "core/cost.h"
#include "detect/detect.h"

#include <memory>

namespace hsi::detect {

/// Costs for `-device auto` (core/cost.h).
namespace cost {
inline constexpr Cost local{6.7e-11, 3.2e-13}; ///< a unit of local_cost(), local_products()
} // namespace cost

/// RX against the surrounding pixels: the square of `outer` pixels around x without the square of `inner`,
/// cut at the border of the scene; only valid pixels in the mask.
struct Ring {
    int inner = 0, outer = 0; ///< odd, 1 <= inner < outer <= 127
    const PixelMask* mask = nullptr;
    /// The addition to the local C's diagonal, as a share of its mean variance, 0 to 1. With 0 the score is
    /// RX by definition, for rings that span the bands.
    double ridge_share = 1e-2;
};
inline constexpr int largest_window = 127;
/// Without a ridge: a pivot of the factor that is at most this share of the band's variance is a rounding
/// error of a band that depends on others.
inline constexpr double least_local_pivot = 1e-11;

/// (x-m)'M^-1(x-m), M = C + ridge_share (trace C / bands) I, m and C of the ring. NaN if the ring has fewer
/// than 2 pixels; if they are all equal, 0 if x is equal, too, and NaN otherwise. With a ridge_share of 0 it
/// is NaN if C has no inverse: the ring does not have more pixels than bands, or bands depend on one another
/// in it. Outputs as make_detection()'s (pixel/pixel.h). A pixel outside of the mask also has a score.
///
/// The ring's sums slide along four lines together, and M is factorised: about (OUTER/8 + 4) B^2
/// multiplications a pixel in double precision and B^3/6 in single, whose solution is corrected by M in
/// double; or, where that is less, the n x n matrix of the ring's pixels is: n^2 B/2 + n^3/6. Without a ridge
/// the factor is in double precision. Sums restart at fixed samples of the scene.
std::unique_ptr<Detection> make_local_detection(int bands, const Ring& ring, const Decision& decision);

/// Multiplications that this takes a pixel on a device, roughly.
double local_products(int bands, const Ring& ring);
/// The time that it takes on a core, as a number of multiplications.
double local_cost(int bands, const Ring& ring);

/// Local RX; the backend for devices is in hsi_cuda_detect_local.so, whose sums restart at other samples of
/// the scene than the CPU's.
class LocalBackend : public Backend {
  public:
    virtual std::unique_ptr<Detection> make_local_detection(int bands, const Ring& ring,
                                                            const Decision& decision) {
        return detect::make_local_detection(bands, ring, decision);
    }
};

} // namespace hsi::detect
