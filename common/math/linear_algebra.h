// SPDX-License-Identifier: MIT
// Solves small dense symmetric problems in double precision, about as large as the number of bands. Matrices
// are n x n, packed row by row. Only the lower triangle of a symmetric matrix is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace hsi::math {

/// Calls work(unit) for every unit of 0 .. units - 1, on any threads, and returns when all units are done. If
/// a function below gets no Spread, it computes its units one after another, with the same result.
using Spread = std::function<void(int64_t units, const std::function<void(int64_t unit)>& work)>;

struct SymmetricEigen {
    int size = 0;
    std::vector<double> values; ///< in falling order
    /// Row k (size entries) is the eigenvector of values[k]. The rows have unit length and are mutually
    /// orthogonal. The sign makes the entry of greatest magnitude (the first of equal ones) positive.
    std::vector<double> vectors;
    const double* vector(int k) const {
        return vectors.data() + static_cast<size_t>(k) * static_cast<size_t>(size);
    }
};

/// Returns all eigenvalues and eigenvectors. If row k of the matrix is zero, the matrix has exactly the
/// eigenvalue 0, with the unit vector of axis k as eigenvector. Throws Error if the matrix contains NaN or
/// infinities.
SymmetricEigen eigen_symmetric(const std::vector<double>& matrix, int n, const Spread& spread = {});

/// Returns the eigenvalues in falling order, without the eigenvectors, in less time. Throws Error if the
/// matrix contains NaN or infinities.
std::vector<double> eigenvalues_symmetric(const std::vector<double>& matrix, int n);

/// Solves the generalised eigenproblem a v = l b v for a symmetric matrix a and a symmetric positive definite
/// matrix b. Eigenvectors have v'b v = 1 instead of unit length, and v_i'b v_j = 0 for i != j. Throws Error
/// if b is not positive definite (to rounding), or if a matrix contains NaN or infinities.
SymmetricEigen eigen_generalized(const std::vector<double>& a, const std::vector<double>& b, int n,
                                 const Spread& spread = {});

/// Returns the inverse of a symmetric positive definite matrix, by Cholesky. Throws Error if the matrix is
/// not positive definite (to rounding), for example if bands are linearly dependent.
std::vector<double> invert_positive(const std::vector<double>& matrix, int n);

/// Returns the lower triangular matrix L^-1, where L L' is the Cholesky factorisation of a symmetric positive
/// definite matrix. Throws Error in the same cases as invert_positive().
std::vector<double> invert_factor(const std::vector<double>& matrix, int n);

/// Returns the lower triangular n x n matrix L with L'L = W'W, where W is the `count` rows of n numbers. Only
/// the last `count` rows of L can differ from zero, and the diagonal entries are not negative. Uses
/// reflections.
std::vector<double> lower_factor(std::vector<double> rows, int count, int n);

/// Returns the inverse of any n x n matrix, by elimination. Throws Error if the matrix is singular (to
/// rounding).
std::vector<double> invert(const std::vector<double>& matrix, int n);

/// The tridiagonal form Q'aQ of a symmetric matrix a for an orthogonal matrix Q, and the product Q'v.
struct Tridiagonal {
    std::vector<double> diagonal, beside; ///< n entries, and n - 1 entries next to the diagonal
    std::vector<double> turned;           ///< Q'v
};
Tridiagonal tridiagonal_of(const std::vector<double>& matrix, const std::vector<double>& v);

/// Changes the sign of a vector of n entries so that its entry of greatest magnitude (the first of equal
/// ones) is positive.
void fix_sign(double* vector, int n);

} // namespace hsi::math
