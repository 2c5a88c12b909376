// SPDX-License-Identifier: MIT
// The inner loops of the CPU backend, on rows. Each is compiled for every instruction set and selected at run
// time.
#pragma once

#include "eadp/eadp.h"

#include <cstddef>
#include <cstdint>

namespace hsi::eadp {

/// The number of sweeps that one pass over memory fuses.
inline constexpr int fused_sweeps = 16;
/// The maximum number of rows that are added at once.
inline constexpr int most_rows = 9;
/// Rows may be read this many elements before their start and after their end, and ring rows written as many
/// after it.
inline constexpr int64_t row_slack = 32;

/// The diffusion, in T = float or double.
template <class T>
struct SweepKernels {
    /// out = 2 mid - prev + flux; the first sweep of a recurrence (first = true) is out = mid + flux / 2.
    /// flux = sum over the four neighbours of weight x (neighbour - mid); weights are 2 tau_max times the
    /// mean g. east[i] is between i and i+1, south[i] between mid and down, north[i] between mid and up.
    /// Works in whole vectors: writes up to row_slack more.
    void (*sweep)(const T* prev, const T* up, const T* mid, const T* down, const T* east, const T* south,
                  const T* north, int64_t count, bool first, T* out);
    /// sum[i] = (fresh ? 0 : sum[i]) + coefficient[j] rows[j][i] over j < n <= most_rows. Writes exactly
    /// `count` elements.
    void (*accumulate)(const T* const* rows, const T* coefficient, int n, int64_t count, bool fresh, T* sum);
};

struct SetupKernels {
    /// out[i] = w_0 in[i] + sum_t w_t (in[i-t] + in[i+t]) for one row; in has `radius` elements on both
    /// sides.
    void (*smooth_row)(const double* in, const double* weights, int radius, int64_t count, double* out);
    /// Computes the same across rows: rows[radius + t] is t rows below.
    void (*smooth_column)(const double* const* rows, const double* weights, int radius, int64_t count,
                          double* out);
    /// out = numerator / denominator if valid, else 0.
    void (*divide)(const double* numerator, const double* denominator, const double* valid, int64_t count,
                   double* out);
    /// Computes the squared gradient magnitude; a tap on an invalid pixel uses the centre's value. Rows have
    /// one more element on both sides.
    void (*scharr)(const double* const* smooth, const double* const* valid, int64_t count, double* squared);
    /// Returns the largest value of valid pixels.
    double (*maximum)(const double* squared, const double* valid, int64_t count);
    /// Computes g of squared gradients for squared contrast k2 > 0 (g1, g2, g3).
    void (*diffusivity)(const double* squared, double k2, Diffusivity kind, int64_t count, double* g);
};

template <class T>
const SweepKernels<T>& sweep_kernels();
const SetupKernels& setup_kernels();

} // namespace hsi::eadp
