// SPDX-License-Identifier: MIT
// The inner loops, compiled for every instruction set and selected at run time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hsi::resample {

/// The number of pixels of one call, a multiple of 16. Their inputs stay in the second-level cache.
inline constexpr int64_t block_pixels = 128;

struct SimdKernels {
    /// Computes magnitude[i] = sum of |rows[b][i]| for `count` pixels (a multiple of 16).
    void (*add_magnitudes)(const float* const* rows, size_t inputs, int64_t count, double* magnitude);
    /// Computes out[i] = sum of weights[k] * rows[sources[k]][i] in double precision, with rising k.
    void (*add_products)(const float* const* rows, const size_t* sources, const double* weights, size_t terms,
                         int64_t count, float* out);
    const char* target;
};

const SimdKernels& simd_kernels();

} // namespace hsi::resample
