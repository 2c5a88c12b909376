// SPDX-License-Identifier: MIT
// Finds anomalies by local RX, against the pixels around each pixel but outside its guard window.
// Statistics and products are in double precision. The bands x bands matrix is factorised in single
// precision, and the solution is corrected in double precision (ring_simd.h). A score depends only on the
// pixel and its neighbours, so it has the same bits for any tiles and threads.
#pragma once

#include "core/cost.h"
#include "detect/detect.h"

#include <memory>

namespace hsi::detect {

/// Costs for `-device auto` (core/cost.h).
namespace cost {
inline constexpr Cost local{6.7e-11, 3.2e-13}; ///< per unit of local_cost() and local_products()
} // namespace cost

/// The background of a pixel x in local RX: the pixels in a square of outer x outer pixels around x, except
/// those in the square of inner x inner pixels. Only valid pixels of the scene that are in the mask are used.
struct Ring {
    int inner = 0, outer = 0; ///< odd, 1 <= inner < outer <= 127
    const PixelMask* mask = nullptr;
    /// The addition to the diagonal of the local C, as a fraction of the mean variance of the bands, 0 to 1.
    /// With 0, the score is RX by definition; the pixels of the ring must then span the bands.
    double ridge_share = 1e-2;
};
inline constexpr int largest_window = 127;
/// Without a ridge: if a pivot of the factor is at most this fraction of the band's variance, the pivot is a
/// rounding error. The band then depends on other bands, and the pixel gets no score.
inline constexpr double least_local_pivot = 1e-11;

/// Computes (x-m)'M^-1(x-m), where M = C + ridge_share (trace C / bands) I, with m and C of the ring. The
/// score is NaN if the ring has fewer than 2 pixels. If all pixels of the ring are equal, the score is 0 if x
/// also equals them, otherwise NaN. With a ridge_share of 0, the score is NaN if C has no inverse: the ring
/// has at most as many pixels as bands, or its bands depend on each other. The outputs are those of
/// make_detection() (pixel/pixel.h). A pixel outside the mask also has a score.
///
/// The sums of the rings slide along four lines together, and M is factorised for each pixel. With B bands,
/// this takes about (OUTER/8 + 4) B^2 multiplications per pixel in double precision, and B^3/6 in single
/// precision. With a ridge, the n x n matrix of the products between the n pixels of the ring is factorised
/// instead if this costs less, n^2 B/2 + n^3/6 multiplications. Without a ridge, M is factorised in double
/// precision. Sums restart at fixed samples of the scene, so that results do not depend on tiles.
std::unique_ptr<Detection> make_local_detection(int bands, const Ring& ring, const Decision& decision);

/// Returns the approximate number of multiplications per pixel on a device.
double local_products(int bands, const Ring& ring);
/// Returns the estimated time per pixel on one core, expressed as a number of multiplications.
double local_cost(int bands, const Ring& ring);

/// The backend of local RX. The backend for devices is in hsi_cuda_detect_local.so. On devices, the sums
/// restart at other samples of the scene than on the CPU, so rounding may differ.
class LocalBackend : public Backend {
  public:
    virtual std::unique_ptr<Detection> make_local_detection(int bands, const Ring& ring,
                                                            const Decision& decision) {
        return detect::make_local_detection(bands, ring, decision);
    }
};

} // namespace hsi::detect
