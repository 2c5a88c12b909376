// SPDX-License-Identifier: MIT
// The inner loops of the CPU backend, on rows. Each loop is compiled for every instruction set and selected
// at run time.
#pragma once

#include "eadp/eadp.h"

#include <cstddef>
#include <cstdint>

namespace hsi::eadp {

/// The number of sweeps that one pass over memory fuses.
inline constexpr int fused_sweeps = 16;
/// The maximum number of rows that one call of accumulate() adds.
inline constexpr int most_rows = 9;
/// Kernels may read this many elements before the start and after the end of a row, and may write this many
/// elements after the end of an output row of sweep().
inline constexpr int64_t row_slack = 32;

/// The kernels of a sweep; T is float or double.
template <class T>
struct SweepKernels {
    /// Computes out = 2 mid - prev + flux, or out = mid + flux / 2 in the first sweep of a recurrence (first
    /// = true). flux = sum over the four neighbours of weight x (neighbour - mid); weights are 2 tau_max
    /// times the mean g. east[i] is between i and i+1, south[i] between mid and down, north[i] between mid
    /// and up. Processes whole vectors, and so writes up to row_slack elements after the end.
    void (*sweep)(const T* prev, const T* up, const T* mid, const T* down, const T* east, const T* south,
                  const T* north, int64_t count, bool first, T* out);
    /// Computes sum[i] = (fresh ? 0 : sum[i]) + sum_j coefficient[j] rows[j][i] over j < n <= most_rows.
    /// Writes exactly `count` elements.
    void (*accumulate)(const T* const* rows, const T* coefficient, int n, int64_t count, bool fresh, T* sum);
};

struct SetupKernels {
    /// Computes out[i] = w_0 in[i] + sum_t w_t (in[i-t] + in[i+t]) for one row. The row has `radius` extra
    /// elements on each side.
    void (*smooth_row)(const double* in, const double* weights, int radius, int64_t count, double* out);
    /// Computes the same sum as smooth_row(), but across rows. rows[radius + t] is the row t rows below the
    /// centre row.
    void (*smooth_column)(const double* const* rows, const double* weights, int radius, int64_t count,
                          double* out);
    /// Computes out = numerator / denominator for valid pixels, and 0 for the others.
    void (*divide)(const double* numerator, const double* denominator, const double* valid, int64_t count,
                   double* out);
    /// Computes the squared Scharr gradient magnitude. An invalid neighbour is replaced by the value of the
    /// centre. Rows have one extra element on each side.
    void (*scharr)(const double* const* smooth, const double* const* valid, int64_t count, double* squared);
    /// Returns the largest value of valid pixels.
    double (*maximum)(const double* squared, const double* valid, int64_t count);
    /// Computes the diffusivity g1, g2 or g3 from squared gradients and the squared contrast k2 > 0.
    void (*diffusivity)(const double* squared, double k2, Diffusivity kind, int64_t count, double* g);
};

template <class T>
const SweepKernels<T>& sweep_kernels();
const SetupKernels& setup_kernels();

} // namespace hsi::eadp
