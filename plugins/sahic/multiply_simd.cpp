// SPDX-License-Identifier: MIT
#include "sahic/multiply_simd.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sahic/multiply_simd.cpp"
#include <hwy/foreach_target.h> // must come before highway.h

#include <hwy/highway.h>

#ifndef HSI_MULTIPLY_CONSTANTS
#define HSI_MULTIPLY_CONSTANTS
namespace hsi::sahic {
namespace {
/// A piece of a, multiply_rows x depth, fills a first-level cache of 32 kB, or stays in the second.
constexpr int64_t depth = 32;
/// Columns of a register tile: with two registers of rows twelve sums, which hide the latency of multiply-add
/// and fit the 16 registers of AVX2.
constexpr int64_t tile_columns = 6;
} // namespace
} // namespace hsi::sahic
#endif

HWY_BEFORE_NAMESPACE();
namespace hsi::sahic {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DoubleTag = hn::CappedTag<double, 8>;
using V = hn::Vec<DoubleTag>;

/// c[j][i] += sum over k < count of piece[k][i] b[j][k], for all rows of the piece and N columns.
template <int N>
void add_columns(const double* HWY_RESTRICT piece, int64_t rows, int64_t count, const double* HWY_RESTRICT b,
                 int64_t ldb, double* HWY_RESTRICT c) {
    const DoubleTag d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    for (int64_t i = 0; i < rows; i += 2 * lanes) {
        V low[N], high[N];
        for (int j = 0; j < N; ++j) {
            low[j] = hn::LoadU(d, c + j * multiply_rows + i);
            high[j] = hn::LoadU(d, c + j * multiply_rows + i + lanes);
        }
        const double* HWY_RESTRICT x = piece + i;
        for (int64_t k = 0; k < count; ++k, x += multiply_rows) {
            const V x0 = hn::LoadU(d, x), x1 = hn::LoadU(d, x + lanes);
#pragma GCC unroll 6
            for (int j = 0; j < N; ++j) {
                const V factor = hn::Set(d, b[j * ldb + k]);
                low[j] = hn::MulAdd(factor, x0, low[j]);
                high[j] = hn::MulAdd(factor, x1, high[j]);
            }
        }
        for (int j = 0; j < N; ++j) {
            hn::StoreU(low[j], d, c + j * multiply_rows + i);
            hn::StoreU(high[j], d, c + j * multiply_rows + i + lanes);
        }
    }
}

void add_some(int64_t columns, const double* piece, int64_t rows, int64_t count, const double* b, int64_t ldb,
              double* c) {
    switch (columns) {
    case 1:
        return add_columns<1>(piece, rows, count, b, ldb, c);
    case 2:
        return add_columns<2>(piece, rows, count, b, ldb, c);
    case 3:
        return add_columns<3>(piece, rows, count, b, ldb, c);
    case 4:
        return add_columns<4>(piece, rows, count, b, ldb, c);
    case 5:
        return add_columns<5>(piece, rows, count, b, ldb, c);
    default:
        return add_columns<tile_columns>(piece, rows, count, b, ldb, c);
    }
}

/// `sums`: cols rounded up to tiles, multiply_rows each.
void add_block(int64_t rows, int64_t cols, int64_t inner, const double* a, int64_t lda, const double* b,
               int64_t ldb, double* sums) {
    HWY_ALIGN double piece[depth * multiply_rows];
    // Whole registers: the rows beyond are computed for nothing, from zeros.
    const int64_t padded = (rows + 15) / 16 * 16;
    for (int64_t first = 0; first < inner; first += depth) {
        const int64_t count = std::min(depth, inner - first);
        for (int64_t k = 0; k < count; ++k) {
            const double* const from = a + (first + k) * lda;
            std::copy(from, from + rows, piece + k * multiply_rows);
            std::fill(piece + k * multiply_rows + rows, piece + k * multiply_rows + padded, 0.0);
        }
        // Tiles of like widths: a single column would wait for its own sums.
        const int64_t tiles = (cols + tile_columns - 1) / tile_columns;
        for (int64_t t = 0; t < tiles; ++t) {
            const int64_t j = t * cols / tiles, next = (t + 1) * cols / tiles;
            add_some(next - j, piece, padded, count, b + j * ldb + first, ldb, sums + j * multiply_rows);
        }
    }
}

} // namespace HWY_NAMESPACE
} // namespace hsi::sahic
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hsi::sahic {
HWY_EXPORT(add_block);

void multiply_block(int64_t rows, int64_t cols, int64_t inner, const double* a, int64_t lda, const double* b,
                    int64_t ldb, double* c, int64_t ldc) {
    // Columns in portions whose sums stay in the second-level cache.
    constexpr int64_t portion = 16 * tile_columns;
    std::vector<double> sums(static_cast<size_t>(std::min(portion, cols) * multiply_rows));
    for (int64_t first = 0; first < cols; first += portion) {
        const int64_t some = std::min(portion, cols - first);
        std::fill(sums.begin(), sums.end(), 0.0);
        HWY_DYNAMIC_DISPATCH(add_block)
        (rows, some, inner, a, lda, b + first * ldb, ldb, sums.data());
        for (int64_t j = 0; j < some; ++j)
            std::copy_n(sums.data() + j * multiply_rows, rows, c + (first + j) * ldc);
    }
}

} // namespace hsi::sahic
#endif
