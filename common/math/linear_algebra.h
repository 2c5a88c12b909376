// SPDX-License-Identifier: MIT
// Small dense symmetric problems in double precision: sizes of the order of a scene's bands. Matrices are n x
// n, packed row by row; of a symmetric one only the lower triangle is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace hsi::math {

/// Calls work(unit) for every unit of 0 .. units - 1, on any threads; returns when all are done. If null, the
/// units are done one after another. The result does not depend on it.
using Spread = std::function<void(int64_t units, const std::function<void(int64_t unit)>& work)>;

struct SymmetricEigen {
    int size = 0;
    std::vector<double> values; ///< in falling order
    std::vector<double>
        vectors; ///< row k (size entries) belongs to values[k]: unit length, mutually orthogonal,
                 ///< signed so that its entry of greatest magnitude is positive (the first of equals)
    const double* vector(int k) const {
        return vectors.data() + static_cast<size_t>(k) * static_cast<size_t>(size);
    }
};

/// All eigenvalues and eigenvectors. A row of zeros has the eigenvalue 0 and its own axis for a vector,
/// exactly. Throws Error when the matrix holds NaN or infinities.
SymmetricEigen eigen_symmetric(const std::vector<double>& matrix, int n, const Spread& spread = {});

/// The eigenvalues alone, in falling order: cheaper. Throws Error when the matrix holds NaN or infinities.
std::vector<double> eigenvalues_symmetric(const std::vector<double>& matrix, int n);

/// a v = l b v of a symmetric and a symmetric positive definite matrix: the vectors have v'b v = 1 (and so
/// mutually 0), not unit length. Throws Error when b is not positive definite (to rounding), and when a
/// matrix holds NaN or infinities.
SymmetricEigen eigen_generalized(const std::vector<double>& a, const std::vector<double>& b, int n,
                                 const Spread& spread = {});

/// The inverse of a symmetric positive definite matrix, by Cholesky. Throws Error when it is not positive
/// definite (to rounding): linearly dependent bands.
std::vector<double> invert_positive(const std::vector<double>& matrix, int n);

/// L^-1, lower, of a symmetric positive definite matrix L L' (Cholesky). Throws Error as invert_positive().
std::vector<double> invert_factor(const std::vector<double>& matrix, int n);

/// The n x n lower L with L'L = W'W, with W the `count` rows of n numbers: zero except for its last `count`
/// rows, whose last entries are not negative. It uses reflections.
std::vector<double> lower_factor(std::vector<double> rows, int count, int n);

/// The inverse of any n x n matrix, by elimination. Throws Error when it is singular (to rounding).
std::vector<double> invert(const std::vector<double>& matrix, int n);

/// Q'aQ of a symmetric matrix, tridiagonal, for an orthogonal Q, and Q'v.
struct Tridiagonal {
    std::vector<double> diagonal, beside; ///< n and n - 1 entries
    std::vector<double> turned;           ///< Q'v
};
Tridiagonal tridiagonal_of(const std::vector<double>& matrix, const std::vector<double>& v);

/// Turns the sign of a vector of n entries so that its entry of greatest magnitude (the first of equals) is
/// positive.
void fix_sign(double* vector, int n);

} // namespace hsi::math
