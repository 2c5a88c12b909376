// SPDX-License-Identifier: MIT
// Finds anomalies by RX (pixel/pixel.h) against the pixels around each pixel, without a pass for statistics.
// Statistics and products are in double precision; the factor of bands x bands is in single precision, with a
// correction in double precision (ring_simd.h). A score depends only on the pixel and its neighbours, so it
// has the same bits for any tiles and threads.
#pragma once

#include "core/cost.h"
#include "detect/detect.h"

#include <memory>

namespace hsi::detect {

/// Costs for `-device auto` (core/cost.h).
namespace cost {
inline constexpr Cost local{6.7e-11, 3.2e-13}; ///< per unit of local_cost() and local_products()
} // namespace cost

/// The background of a pixel x in local RX: the square of outer x outer pixels around x, without the square
/// of inner x inner pixels, and without positions outside of the scene. Only valid pixels in the mask are
/// used.
struct Ring {
    int inner = 0, outer = 0; ///< odd, 1 <= inner < outer <= 127
    const PixelMask* mask = nullptr;
    /// The addition to the diagonal of the local C, as a fraction of the mean variance of the bands, 0 to 1.
    /// With 0, the score is RX by definition; the pixels of the ring must then span the bands.
    double ridge_share = 1e-2;
};
inline constexpr int largest_window = 127;
/// Without a ridge: if a pivot of the factor is at most this fraction of the band's variance, the band
/// depends on other bands, and the pivot is a rounding error.
inline constexpr double least_local_pivot = 1e-11;

/// Computes (x-m)'M^-1(x-m), where M = C + ridge_share (trace C / bands) I, with m and C of the ring. The
/// score is NaN if the ring has fewer than 2 pixels. If its pixels are all equal, the score is 0 if x equals
/// them, otherwise NaN. With a ridge_share of 0, the score is NaN if C has no inverse: the ring has at most
/// as many pixels as bands, or its bands depend on each other. The outputs are those of make_detection()
/// (pixel/pixel.h). A pixel outside the mask also has a score.
///
/// The ring's sums slide along four lines together, and M is factorised. This takes about (OUTER/8 + 4) B^2
/// multiplications per pixel in double precision, and B^3/6 in single precision; the solution is corrected by
/// M in double precision. If it costs less, the n x n matrix of the ring's pixels is factorised instead: n^2
/// B/2 + n^3/6. Without a ridge, the factor is in double precision. Sums restart at fixed samples of the
/// scene.
std::unique_ptr<Detection> make_local_detection(int bands, const Ring& ring, const Decision& decision);

/// Returns the approximate number of multiplications per pixel on a device.
double local_products(int bands, const Ring& ring);
/// Returns the time per pixel on a core, in multiplications.
double local_cost(int bands, const Ring& ring);

/// Local RX; the backend for devices is in hsi_cuda_detect_local.so. Its sums restart at other samples of the
/// scene than the CPU's.
class LocalBackend : public Backend {
  public:
    virtual std::unique_ptr<Detection> make_local_detection(int bands, const Ring& ring,
                                                            const Decision& decision) {
        return detect::make_local_detection(bands, ring, decision);
    }
};

} // namespace hsi::detect
