// SPDX-License-Identifier: MIT
// The inner loops of the search. Each loop is compiled for every instruction set and selected at run time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hsi::endmembers {

/// The number of pixels of one call. Their values fit into the first-level cache.
inline constexpr int64_t block_pixels = 128;

struct SimdKernels {
    /// Computes out[k * block_pixels + i] = offset[k] + sum_r matrix[k * rows + r] y[r * stride + i] for
    /// `count` pixels (a multiple of 16) and `forms` rows of the matrix. The sum runs over rising r.
    void (*affine)(const double* y, ptrdiff_t stride, int rows, const double* matrix, const double* offset,
                   int forms, int64_t count, double* out);
    /// Computes out[i] = constant + sum of y[r * stride + i]^2 - sum of forms[k * block_pixels + i]^2, in
    /// this order.
    void (*residual)(const double* y, ptrdiff_t stride, int rows, double constant, const double* forms,
                     int count_of_forms, int64_t count, double* out);
    /// Returns true if any |value[i]| is greater than or equal to the threshold. NaN values are ignored.
    bool (*reaches)(const double* value, int64_t count, double threshold);
};

const SimdKernels& simd_kernels();

} // namespace hsi::endmembers
