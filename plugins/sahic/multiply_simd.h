// SPDX-License-Identifier: MIT
// Products with matrices of few columns, as training takes them hundreds of times; compiled for every
// instruction set and dispatched at run time.
#pragma once

#include <cstdint>

namespace hsi::sahic {

/// Rows of one call.
inline constexpr int64_t multiply_rows = 128;

/// Column-major matrices; c (rows x cols) = a (rows x inner) b (inner x cols), rows <= multiply_rows.
/// Every sum is taken in the order of `inner`, so that its bits do not depend on a register's width.
void multiply_block(int64_t rows, int64_t cols, int64_t inner, const double* a, int64_t lda, const double* b,
                    int64_t ldb, double* c, int64_t ldc);

} // namespace hsi::sahic
