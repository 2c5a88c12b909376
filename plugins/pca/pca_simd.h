// SPDX-License-Identifier: MIT
// The inner loops of the CPU backend. Each loop is compiled for every instruction set and selected at run
// time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hsi::pca {

/// The number of pixels of one call. Their inputs (a few bands at a time) and sums stay in the first-level
/// cache.
inline constexpr int64_t block_pixels = 128;
/// The number of inputs that one call adds.
inline constexpr int group_inputs = 16;

struct SimdKernels {
    /// Adds matrix[o * matrix_stride + b] * in[b * in_stride + i], summed over the `inputs` <= group_inputs
    /// rows b, to sum[o * block_pixels + i]. Processes `count` pixels (a multiple of 16) in double precision.
    /// Also adds |in| of every row to magnitude[i].
    void (*add_products)(const float* in, ptrdiff_t in_stride, int inputs, const double* matrix,
                         int matrix_stride, int outputs, int64_t count, double* sum, double* magnitude);
    const char* target;
};

const SimdKernels& simd_kernels();

} // namespace hsi::pca
