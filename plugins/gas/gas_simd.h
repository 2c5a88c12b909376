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

/// One iteration of mag1c over all pixels, and the data for the next covariance. d = r a.
struct Sweep {
    const float* x = nullptr; ///< blocks x bands x block_pixels
    int64_t blocks = 0;
    int bands = 0;
    const double* w = nullptr; ///< one per band
    double level = 0;          ///< w'm
    double q = 1;
    double penalty = 0;              ///< 1 with sparsity, else 0
    const double* inverse = nullptr; ///< 1/r of each pixel; 0: a remains 0
    const double* r = nullptr;
    double* a = nullptr;
    double* products = nullptr; ///< bands x sums: sum of d x is added; null: these pixels are not in the
                                ///< statistics
    double* d = nullptr;        ///< sums: sum of d is added
    double* d2 = nullptr;       ///< sums: sum of d^2 is added
};

struct SimdKernels {
    /// Computes a = max(0, (w'x - level - penalty/(r (a + 1e-9))) / (r q)) in place.
    void (*sweep)(const Sweep& task);
    /// Computes out = w'x of each pixel; x as in Sweep.
    void (*project)(const float* x, int64_t blocks, int bands, const double* w, double* out);
    void (*project_doubles)(const double* x, int64_t blocks, int bands, const double* w, double* out);
    /// Computes the rows of m on and right of the diagonal: keep (C - c t' - t c' + b t t'), the diagonal
    /// without the factor. Rows are `pitch` numbers; pitch leaves room for math::slack numbers after the
    /// bands.
    void (*form_matrix)(const double* covariance, ptrdiff_t pitch, int bands, const double* c,
                        const double* t, double b, double keep, double* m);
    const char* target;
};

const SimdKernels& simd_kernels();

} // namespace hsi::gas
