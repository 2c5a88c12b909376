// SPDX-License-Identifier: MIT
// Inner loops over a run of pixels. Input values are floats; the computations are in double precision.
#pragma once

#include "core/cube_view.h"

#include <cstddef>

namespace hsi::compare {

/// A run has at most this many pixels of one line. It begins at a multiple of this number from the scene's
/// first sample. Sums are computed over whole runs, so tile widths are multiples of a run.
inline constexpr size_t run_pixels = 128;

/// Sums over the bands for each pixel of a run, with values s of the first cube and t of the second cube.
struct alignas(64) RunSums {
    double sum[run_pixels];        ///< sum of s
    double absolute[run_pixels];   ///< sum of |s|
    double square_s[run_pixels];   ///< sum of s^2; not finite if a value is not finite
    double square_t[run_pixels];   ///< sum of t^2; not finite if a value is not finite
    double difference[run_pixels]; ///< sum of (t - s)^2
    double largest[run_pixels];    ///< max |t - s|
    double centred[run_pixels];    ///< sum of (s - mean s)^2
    double minus[run_pixels];      ///< sum of (s/norm(s) - t/norm(t))^2
    double plus[run_pixels];       ///< sum of (s/norm(s) + t/norm(t))^2
};

/// Computes all sums except the last three. s, t: the run's values in the first band of each cube. stride:
/// elements from one band to the next, or from one part of a value to the next (stream::value_parts).
/// Differences are computed part by part, so that 64-bit integers do not lose digits.
void first_sums(const float* s, const float* t, ptrdiff_t stride, int parts, int bands, size_t pixels,
                RunSums& out);
/// Computes the last three sums from the results of first_sums() (undefined if a pixel is invalid or a norm
/// is zero).
void second_sums(const float* s, const float* t, ptrdiff_t stride, int parts, int bands, size_t pixels,
                 RunSums& out);

/// Computes out[b] = sum of (t - s)^2 over the pixels of a run whose weight is not 0, for each band b.
/// Rounding does not depend on the width of vectors. `weight`: run_pixels values.
void band_squares(const float* s, const float* t, ptrdiff_t stride, int parts, int bands, size_t pixels,
                  const double* weight, double* out);

/// The Gaussian window has 11 taps along each axis, with sigma 1.5. The taps need not be normalised, because
/// each filtered value is divided by the sum of the taps over compared pixels.
inline constexpr int ssim_radius = 5, ssim_taps = 2 * ssim_radius + 1;

/// Computes out[i] = taps[5] in[i + 5 stride] + sum_{k < 5} taps[k] (in[i + k stride] + in[i + (10 - k)
/// stride]) for 0 <= i < n. The taps are symmetric.
void correlate(const double* in, ptrdiff_t stride, const double* taps, size_t n, double* out);

/// Computes ssim of n pixels of one band. planes: the filtered weight, s, t, s^2, t^2 and s t, where `middle`
/// was subtracted from s and t. The result is undefined where the weight is 0.
void ssim_values(const double* const planes[6], double middle, double c1, double c2, size_t n, double* out);

} // namespace hsi::compare
