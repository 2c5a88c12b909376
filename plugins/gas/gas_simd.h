// SPDX-License-Identifier: MIT
// The inner loops of the filters, compiled for every instruction set and selected at run time. Pixels are in
// blocks: a block has a row of block_pixels values for each band. Pixel i is added to sum i % sums, so
// results do not depend on the width of a register.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hsi::gas {

inline constexpr int64_t block_pixels = 64;
inline constexpr int sums = 16;

/// The data of one iteration of mag1c over the pixels of a group. The iteration also computes the sums for
/// the next covariance, with d = r a (gas.h).
struct Sweep {
    const float* x = nullptr; ///< blocks x bands x block_pixels
    int64_t blocks = 0;
    int bands = 0;
    const double* w = nullptr; ///< one weight per band
    double level = 0;          ///< w'm
    double q = 1;
    double penalty = 0;              ///< 1 with sparsity, otherwise 0
    const double* inverse = nullptr; ///< 1/r of each pixel; if 0, a remains 0
    const double* r = nullptr;
    double* a = nullptr;
    /// Bands x sums, to which the sweep adds d x; null if these pixels do not count in the statistics
    double* products = nullptr;
    double* d = nullptr;  ///< `sums` values; the sweep adds d
    double* d2 = nullptr; ///< `sums` values; the sweep adds d^2
};

struct SimdKernels {
    /// Updates Sweep::a in place: a = max(0, (w'x - level - penalty/(r (a + 1e-9))) / (r q)). Adds to the
    /// sums.
    void (*sweep)(const Sweep& task);
    /// Computes out[i] = w'x for each pixel i. x has the layout of Sweep::x.
    void (*project)(const float* x, int64_t blocks, int bands, const double* w, double* out);
    void (*project_doubles)(const double* x, int64_t blocks, int bands, const double* w, double* out);
    /// Computes m, which is C - c t' - t c' + b t t' with all elements off the diagonal multiplied by `keep`.
    /// Only the elements on the diagonal and right of it are computed. Rows are `pitch` elements apart, which
    /// includes math::slack elements after the bands.
    void (*form_matrix)(const double* covariance, ptrdiff_t pitch, int bands, const double* c,
                        const double* t, double b, double keep, double* m);
    const char* target;
};

const SimdKernels& simd_kernels();

} // namespace hsi::gas
