// SPDX-License-Identifier: MIT
// Covariance matrices in double precision: sums of products of pixels, and the Cholesky factor. The kernels
// are compiled for every instruction set and selected at run time. A SIMD lane is a column of the matrix, so
// the results are the same for every register width.
#pragma once

#include <cstddef>

namespace hsi::math {

struct DefiniteKernels {
    /// c[a * pitch + b] += sum over j < count of u_j[a] u_j[b] for a < rows, a <= b < columns. Also changes
    /// some entries left of the diagonal. u_j = u + j * u_pitch. pitch and u_pitch leave room for `slack`
    /// numbers after the columns, and c has room for `slack` further rows.
    void (*update)(double* c, ptrdiff_t pitch, int rows, int columns, const double* u, ptrdiff_t u_pitch,
                   int count);
    /// Replaces the upper triangle of the symmetric positive definite matrix m by its factor R (m = R'R).
    /// Column `n` of m contains a vector d and is replaced by R'^-1 d. Returns d'm^-1 d.
    double (*solve)(double* m, ptrdiff_t pitch, int n);
};
inline constexpr int slack = 16;

const DefiniteKernels& definite_kernels();

} // namespace hsi::math
