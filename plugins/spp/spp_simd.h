// SPDX-License-Identifier: MIT
// The inner loops of the CPU backend. Each loop is compiled for every instruction set and selected at run
// time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hsi::spp {

/// The number of offsets whose sums squared_distances() keeps in registers. These sums, the centre and a
/// temporary value fill the 16 registers of AVX2.
inline constexpr int max_group = 12;
/// Rows may be read and written up to this many floats beyond their length.
inline constexpr int64_t row_slack = 16;

/// The surroundings of a run of pixels of one line, for exact_alpha().
struct ExactWindow {
    int d = 0;
    int bands = 0;
    ptrdiff_t band_stride = 0;
    /// 2d+1 lines, starting at the first pixel of the run; null: the line is outside the scene.
    const float* const* row = nullptr;
    const double* const* inverse = nullptr; ///< 1/|y| of the same pixels; 0 if the pixel is invalid
    /// Number of existing columns left of the first pixel, and from the first pixel to the right.
    int64_t left = 0, right = 0;
};

struct SimdKernels {
    /// Computes one line of unit vectors. `in` has `count` samples, with bands `in_stride` apart; `unit` has
    /// bands `unit_stride` apart. mask[i] is 1 for a valid pixel. For an invalid pixel, mask[i] is 0 and the
    /// unit vector is zero. `norm` is scratch memory of count + row_slack doubles.
    void (*unit_row)(const float* in, ptrdiff_t in_stride, int bands, int64_t count, float* unit,
                     ptrdiff_t unit_stride, float* mask, double* norm);
    /// Computes the distances of a run of pixels to `rows` x `columns` neighbours: result[(r * columns + k) *
    /// result_stride + i] = sum over bands (centre[i] - neighbour[r][i + k])^2. There is one row with any
    /// number of columns, or two rows with 3 or 5 columns. All rows have their bands `stride` apart.
    /// Processes whole vectors, and so reads and writes up to row_slack elements after the end.
    void (*squared_distances)(const float* centre, const float* const* neighbour, int rows, int columns,
                              ptrdiff_t stride, int bands, int64_t count, float* result,
                              ptrdiff_t result_stride);
    /// Computes weight[i] = beta * mask_a[i] * mask_b[i], and angle[i] = 2 asin(sqrt(squared[i])/2) *
    /// weight[i], an angle in radians times its weight.
    void (*weighted_angles)(const float* squared, const float* mask_a, const float* mask_b, float beta,
                            int64_t count, float* angle, float* weight);
    /// Adds term[i] to sum[i].
    void (*accumulate)(const float* term, int64_t count, double* sum);
    /// Computes out = (in - c) * inverse_rho + c for every band. NaN in inverse_rho gives NaN.
    void (*displace_row)(const float* in, ptrdiff_t in_stride, const float* inverse_rho,
                         const float* centroid, int bands, int64_t count, float* out, ptrdiff_t out_stride);
    /// Computes inverse[i] = 1/rho = 1 / (1 + sqrt(alpha[i]))^2 in double precision; NaN if alpha[i] is
    /// negative or not finite.
    void (*inverse_rho)(const float* alpha, int64_t count, float* inverse);
    /// Computes alpha[i] again, in double precision, for the pixels with alpha[i] < below. Other values,
    /// including NaN, are unchanged.
    void (*exact_alpha)(const ExactWindow& window, int64_t count, double below, double* alpha);
    const char* target;
};

const SimdKernels& simd_kernels();

} // namespace hsi::spp
