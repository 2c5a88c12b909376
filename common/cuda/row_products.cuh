// SPDX-License-Identifier: MIT
// A pixel times many vectors, a few of them at a time in a thread's registers. Sums run over the bands in
// their order and in double precision, so that no bit depends on blocks or launches.
#pragma once

#include <cstdint>
#include <vector>

namespace hsi::cuda {

inline constexpr int rows_at_once = 8;

inline int row_chunks(int64_t rows) { return static_cast<int>((rows + rows_at_once - 1) / rows_at_once); }

/// `count` rows of `bands` numbers as row_products() reads them: chunk by chunk, in each band by band the
/// numbers of its rows; zeros where the last chunk has no more.
inline std::vector<double> chunked_rows(const double* rows, size_t count, size_t bands) {
    constexpr auto width = static_cast<size_t>(rows_at_once);
    std::vector<double> out(static_cast<size_t>(row_chunks(static_cast<int64_t>(count))) * width * bands,
                            0.0);
    for (size_t k = 0; k < count; ++k)
        for (size_t b = 0; b < bands; ++b)
            out[(k / width * bands + b) * width + k % width] = rows[k * bands + b];
    return out;
}

/// sum[k] = sum over b of rows[k][b] x[b * stride], for the rows of one chunk, and the sum of x^2. Fused:
/// with one rounding for multiplication and addition together, as the processor's fused operations have; else
/// with one for each.
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
        square = __fma_rn(v, v, square); // the square of a float is exact: fused or not, the same
#pragma unroll
        for (int k = 0; k < rows_at_once; k += 2) {
            const double2 pair = __ldg(reinterpret_cast<const double2*>(chunk + k));
            sum[k] = add(pair.x, v, sum[k]);
            sum[k + 1] = add(pair.y, v, sum[k + 1]);
        }
    }
}

} // namespace hsi::cuda
