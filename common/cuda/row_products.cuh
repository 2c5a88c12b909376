// SPDX-License-Identifier: MIT
// Multiplies a pixel with many vectors, a few at a time in the registers of a thread. Sums add the bands in
// order and in double precision, so the results do not depend on blocks or launches.
#pragma once

#include <cstdint>
#include <vector>

namespace hsi::cuda {

inline constexpr int rows_at_once = 8;

inline int row_chunks(int64_t rows) { return static_cast<int>((rows + rows_at_once - 1) / rows_at_once); }

/// Converts `count` rows of `bands` numbers to the order that row_products() reads: chunk by chunk, and in
/// each chunk the numbers of its rows band by band. The last chunk is padded with zeros.
inline std::vector<double> chunked_rows(const double* rows, size_t count, size_t bands) {
    constexpr auto width = static_cast<size_t>(rows_at_once);
    std::vector<double> out(static_cast<size_t>(row_chunks(static_cast<int64_t>(count))) * width * bands,
                            0.0);
    for (size_t k = 0; k < count; ++k)
        for (size_t b = 0; b < bands; ++b)
            out[(k / width * bands + b) * width + k % width] = rows[k * bands + b];
    return out;
}

/// Computes sum[k] = sum over b of rows[k][b] x[b * stride] for the rows of one chunk, and the sum of x^2.
/// With Fused, multiplication and addition have one common rounding, as in the CPU's fused operations;
/// otherwise one rounding per operation.
template <bool Fused>
__device__ inline void row_products(const float* __restrict__ x, int64_t stride, int bands,
                                    const double* __restrict__ chunk, double (&sum)[rows_at_once],
                                    double& square) {
#pragma unroll
    for (int k = 0; k < rows_at_once; ++k)
        sum[k] = 0;
    square = 0;
    const auto add = [](double a, double b, double to) {
        return Fused ? __fma_rn(a, b, to) : __dadd_rn(__dmul_rn(a, b), to);
    };
#pragma unroll 4
    for (int b = 0; b < bands; ++b, chunk += rows_at_once) {
        const auto v = static_cast<double>(__ldg(x + b * stride));
        // The square of a float is exact in double precision, so fused and separate operations agree.
        square = __fma_rn(v, v, square);
#pragma unroll
        for (int k = 0; k < rows_at_once; k += 2) {
            const double2 pair = __ldg(reinterpret_cast<const double2*>(chunk + k));
            sum[k] = add(pair.x, v, sum[k]);
            sum[k + 1] = add(pair.y, v, sum[k + 1]);
        }
    }
}

} // namespace hsi::cuda
