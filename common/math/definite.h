// SPDX-License-Identifier: MIT
// Covariance matrices in double precision: sums of products of pixels, and the Cholesky factor. Compiled for
// every instruction set and dispatched at run time. A SIMD lane is a column of the matrix, so the width of a
// register changes no bit.
#pragma once

#include <cstddef>

namespace hsi::math {

struct DefiniteKernels {
    /// c[a * pitch + b] += sum over j < count of u_j[a] u_j[b] for a < rows, a <= b < columns (and some
    /// entries left of the diagonal). u_j = u + j * u_pitch. pitch and u_pitch leave `slack` numbers beyond
    /// the columns, c as many rows beyond its own.
    void (*update)(double* c, ptrdiff_t pitch, int rows, int columns, const double* u, ptrdiff_t u_pitch,
                   int count);
    /// Turns the upper triangle of the symmetric positive definite matrix m, whose column `n` holds a vector
    /// d, into its factor R (m = R'R), and column n into R'^-1 d; returns d'm^-1 d.
    double (*solve)(double* m, ptrdiff_t pitch, int n);
};
inline constexpr int slack = 16;

const DefiniteKernels& definite_kernels();

} // namespace hsi::math
