// SPDX-License-Identifier: MIT
// Sums products of pixels and solves systems with covariance matrices, in double precision. The kernels are
// compiled for every instruction set and selected at run time. Each SIMD lane computes one column of the
// matrix, so the results are the same for every register width.
#pragma once

#include <cstddef>

namespace hsi::math {

struct DefiniteKernels {
    /// Adds the sum over j < count of u_j[a] u_j[b] to c[a * pitch + b], for a < rows and a <= b < columns,
    /// where u_j = u + j * u_pitch. The function works with whole registers. It therefore also changes some
    /// entries left of the diagonal, and needs memory for `slack` numbers after the columns (of c and of each
    /// u_j) and for `slack` further rows of c.
    void (*update)(double* c, ptrdiff_t pitch, int rows, int columns, const double* u, ptrdiff_t u_pitch,
                   int count);
    /// Replaces the upper triangle of the symmetric positive definite n x n matrix m by its factor R (m =
    /// R'R). Column `n` of m contains a vector d and is replaced by R'^-1 d. Returns d'm^-1 d.
    double (*solve)(double* m, ptrdiff_t pitch, int n);
};
inline constexpr int slack = 16;

const DefiniteKernels& definite_kernels();

} // namespace hsi::math
