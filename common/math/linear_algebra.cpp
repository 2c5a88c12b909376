// SPDX-License-Identifier: MIT
#include "math/linear_algebra.h"

#include "core/error.h"
#include "math/eigen_vectors.h"

// Eigen's code for different instruction sets fuses and orders sums differently. Without vectorisation, the
// results are the same everywhere.
#define EIGEN_DONT_VECTORIZE
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#pragma GCC diagnostic pop

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

namespace hsi::math {
namespace {

using Matrix = Eigen::MatrixXd; // column-major; a symmetric matrix has the same numbers row by row

/// Eigen splits products, and thereby sums, into blocks that depend on the sizes of the processor's caches.
/// With fixed sizes, every bit is independent of the machine.
void fix_cache_sizes() {
    static const bool once = [] {
        Eigen::setCpuCacheSizes(32 << 10, 512 << 10, 8 << 20);
        return true;
    }();
    static_cast<void>(once);
}

Eigen::Map<const Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>
checked(const std::vector<double>& matrix, int n) {
    if (n < 1 || matrix.size() != static_cast<size_t>(n) * static_cast<size_t>(n))
        throw Error("internal: a matrix of " + std::to_string(matrix.size()) + " entries is not " +
                    std::to_string(n) + "x" + std::to_string(n));
    fix_cache_sizes();
    return {matrix.data(), n, n};
}

[[noreturn]] void throw_unsolved() {
    throw Error("the eigenproblem could not be solved: the matrix has values that are not finite",
                "Leave out bands with extreme values (-b).");
}

template <class Solver>
void require_success(const Solver& solver) {
    if (solver.info() != Eigen::Success) throw_unsolved();
}

void require_finite(const std::vector<double>& matrix) {
    if (!std::all_of(matrix.begin(), matrix.end(), [](double x) { return std::isfinite(x); }))
        throw_unsolved();
}

} // namespace

void fix_sign(double* vector, int n) {
    int largest = 0;
    for (int i = 1; i < n; ++i)
        if (std::fabs(vector[i]) > std::fabs(vector[largest])) largest = i;
    if (vector[largest] < 0)
        for (int i = 0; i < n; ++i)
            vector[i] = -vector[i];
}

namespace {

/// Eigenvalues in rising order, with a column of `vectors` for each.
struct Risen {
    Eigen::VectorXd values;
    Matrix vectors;
};

/// Makes a step of the implicit QR iteration with Wilkinson's shift on rows `first` .. `last` of a
/// tridiagonal matrix. Appends its rotations to `rotations`.
void qr_step(Eigen::VectorXd& diagonal, Eigen::VectorXd& beside, Eigen::Index first, Eigen::Index last,
             std::vector<PlaneRotation>& rotations) {
    const double half = (diagonal[last - 1] - diagonal[last]) * 0.5, e = beside[last - 1];
    double shift = diagonal[last];
    if (half == 0) {
        shift -= std::fabs(e);
    } else if (e != 0) {
        const double length = Eigen::numext::hypot(half, e), far = half + (half > 0 ? length : -length);
        shift -= e * e == 0 ? e / (far / e) : e * e / far;
    }
    double x = diagonal[first] - shift, z = beside[first];
    for (Eigen::Index k = first; k < last && z != 0; ++k) {
        Eigen::JacobiRotation<double> turn;
        turn.makeGivens(x, z);
        const double c = turn.c(), s = turn.s();
        const double a = s * diagonal[k] + c * beside[k], b = s * beside[k] + c * diagonal[k + 1];
        diagonal[k] = c * (c * diagonal[k] - s * beside[k]) - s * (c * beside[k] - s * diagonal[k + 1]);
        diagonal[k + 1] = s * a + c * b;
        beside[k] = c * a - s * b;
        if (k > first) beside[k - 1] = c * beside[k - 1] - s * z;
        x = beside[k];
        // z is the entry outside of the three diagonals that this rotation creates and the next one removes.
        if (k < last - 1) {
            z = -s * beside[k + 1];
            beside[k + 1] = c * beside[k + 1];
        }
        if (c != 1 || s != 0) rotations.push_back({static_cast<int>(k), c, s});
    }
}

/// Converts a tridiagonal matrix to a diagonal one. Returns false if the iteration does not converge.
bool diagonalise(Eigen::VectorXd& diagonal, Eigen::VectorXd& beside, std::vector<PlaneRotation>& rotations) {
    constexpr double least = std::numeric_limits<double>::min(),
                     precision = 1 / std::numeric_limits<double>::epsilon();
    constexpr Eigen::Index most_steps = 30; // steps per eigenvalue
    Eigen::Index first = 0, last = diagonal.size() - 1;
    for (Eigen::Index step = 0; last > 0; ++step) {
        for (Eigen::Index i = first; i < last; ++i) {
            const double scaled = precision * beside[i];
            if (std::fabs(beside[i]) < least ||
                scaled * scaled <= std::fabs(diagonal[i]) + std::fabs(diagonal[i + 1]))
                beside[i] = 0;
        }
        while (last > 0 && beside[last - 1] == 0)
            --last;
        if (last == 0) break;
        if (step == most_steps * diagonal.size()) return false;
        first = last - 1;
        while (first > 0 && beside[first - 1] != 0)
            --first;
        qr_step(diagonal, beside, first, last, rotations);
    }
    return true;
}

/// Solves a symmetric matrix, given by its lower triangle. The results equal those of Eigen's
/// SelfAdjointEigenSolver without vectorisation, to the last bit. Eigen's solver takes twice as long, because
/// it applies every reflection and rotation to all rows before the next one.
Risen solve(const Matrix& matrix, const Spread& spread) {
    const Eigen::Index n = matrix.rows();
    if (n == 1) return {matrix.diagonal(), Matrix::Ones(1, 1)};
    Matrix scaled = matrix.triangularView<Eigen::Lower>();
    double scale = scaled.cwiseAbs().maxCoeff();
    if (scale == 0) scale = 1;
    scaled.triangularView<Eigen::Lower>() /= scale;
    const Eigen::Tridiagonalization<Matrix> tridiagonal(scaled);
    Eigen::VectorXd values = tridiagonal.diagonal(), beside = tridiagonal.subDiagonal();
    const Eigen::VectorXd factors = tridiagonal.householderCoefficients();
    auto vectors = product_of_reflections(tridiagonal.packedMatrix().data(),
                                          {factors.data(), factors.data() + factors.size()},
                                          static_cast<int>(n), spread);
    std::vector<PlaneRotation> rotations;
    if (!diagonalise(values, beside, rotations)) throw_unsolved();
    rotate_columns(vectors, static_cast<int>(n), rotations, spread);
    Risen result{values, Eigen::Map<Matrix>(vectors.data(), n, n)};
    for (Eigen::Index i = 0; i + 1 < n; ++i) {
        Eigen::Index least = i;
        for (Eigen::Index k = i + 1; k < n; ++k)
            if (result.values[k] < result.values[least]) least = k;
        if (least == i) continue;
        std::swap(result.values[i], result.values[least]);
        result.vectors.col(i).swap(result.vectors.col(least));
    }
    result.values *= scale;
    return result;
}

/// Returns the rows of a symmetric matrix (its lower triangle) that are not entirely zero.
std::vector<Eigen::Index> rows_in_use(const Matrix& matrix) {
    std::vector<Eigen::Index> used;
    for (Eigen::Index i = 0; i < matrix.rows(); ++i)
        if ((matrix.row(i).head(i + 1).array() != 0).any() ||
            (matrix.col(i).tail(matrix.rows() - i - 1).array() != 0).any())
            used.push_back(i);
    return used;
}

/// Works as solve(), but gives each row of zeros the eigenvalue 0 and its own axis as eigenvector. The
/// rounding of solve() would mix rows of zeros with other rows.
Risen solve_by_parts(const Matrix& matrix, const Spread& spread) {
    const auto used = rows_in_use(matrix);
    const Eigen::Index n = matrix.rows(), count = static_cast<Eigen::Index>(used.size());
    if (count == n || count == 0) return solve(matrix, spread);
    Matrix part(count, count);
    for (Eigen::Index c = 0; c < count; ++c)
        for (Eigen::Index r = c; r < count; ++r)
            part(r, c) = matrix(used[static_cast<size_t>(r)], used[static_cast<size_t>(c)]);
    const Risen solved = solve(part, spread);
    Risen all{Eigen::VectorXd::Zero(n), Matrix::Zero(n, n)};
    // The number of eigenvalues that rounding has made negative.
    const Eigen::Index below = (solved.values.array() < 0).count();
    for (Eigen::Index k = 0; k < count; ++k) {
        const Eigen::Index to = k < below ? k : k + n - count;
        all.values[to] = solved.values[k];
        for (Eigen::Index r = 0; r < count; ++r)
            all.vectors(used[static_cast<size_t>(r)], to) = solved.vectors(r, k);
    }
    Eigen::Index to = below;
    for (Eigen::Index i = 0; i < n; ++i)
        if (!std::binary_search(used.begin(), used.end(), i)) all.vectors(i, to++) = 1;
    return all;
}

/// Reverses a solution in rising order, and returns the vectors as rows with the usual sign.
SymmetricEigen falling(const Eigen::VectorXd& values, const Matrix& vectors, int n) {
    SymmetricEigen result;
    result.size = n;
    result.vectors.reserve(static_cast<size_t>(n) * static_cast<size_t>(n));
    for (int k = n - 1; k >= 0; --k) {
        result.values.push_back(values[k]);
        for (int i = 0; i < n; ++i)
            result.vectors.push_back(vectors(i, k));
        fix_sign(result.vectors.data() + result.vectors.size() - static_cast<size_t>(n), n);
    }
    return result;
}

} // namespace

SymmetricEigen eigen_symmetric(const std::vector<double>& matrix, int n, const Spread& spread) {
    const Matrix a = checked(matrix, n);
    require_finite(matrix);
    const Risen solved = solve_by_parts(a, spread);
    return falling(solved.values, solved.vectors, n);
}

SymmetricEigen eigen_generalized(const std::vector<double>& a, const std::vector<double>& b, int n,
                                 const Spread& spread) {
    const Matrix left = checked(a, n), right = checked(b, n);
    require_finite(a);
    require_finite(b);
    const Eigen::LLT<Matrix> cholesky(right);
    if (cholesky.info() != Eigen::Success)
        throw Error("a matrix is not positive definite: some bands are linear combinations of others",
                    "Leave out constant or repeated bands (-b), or use more pixels than bands.");
    // L^-1 a L^-T has the same eigenvalues; its eigenvectors are L'v.
    const Matrix half = cholesky.matrixL().solve(left);
    Matrix inner = cholesky.matrixL().solve(half.transpose());
    inner = (0.5 * (inner + inner.transpose())).eval();
    const Risen solved = solve(inner, spread);
    return falling(solved.values, cholesky.matrixU().solve(solved.vectors), n);
}

std::vector<double> eigenvalues_symmetric(const std::vector<double>& matrix, int n) {
    const Matrix a = checked(matrix, n);
    require_finite(matrix);
    const Eigen::SelfAdjointEigenSolver<Matrix> solver(a, Eigen::EigenvaluesOnly);
    require_success(solver);
    std::vector<double> values(solver.eigenvalues().data(), solver.eigenvalues().data() + n);
    std::reverse(values.begin(), values.end());
    return values;
}

namespace {

Eigen::LLT<Matrix> factorise(const std::vector<double>& matrix, int n) {
    const Matrix a = checked(matrix, n);
    Eigen::LLT<Matrix> cholesky(a);
    if (cholesky.info() != Eigen::Success)
        throw Error(
            "the matrix of the bands cannot be inverted: some bands are linear combinations of others",
            "Leave out constant or repeated bands (-b), or use more pixels than bands.");
    return cholesky;
}

} // namespace

std::vector<double> invert_factor(const std::vector<double>& matrix, int n) {
    const Matrix inverse = factorise(matrix, n).matrixL().solve(Matrix::Identity(n, n));
    std::vector<double> result(static_cast<size_t>(n) * static_cast<size_t>(n));
    for (int i = 0; i < n; ++i)
        for (int j = 0; j <= i; ++j)
            result[static_cast<size_t>(i) * static_cast<size_t>(n) + static_cast<size_t>(j)] = inverse(i, j);
    return result;
}

std::vector<double> invert_positive(const std::vector<double>& matrix, int n) {
    const auto cholesky = factorise(matrix, n);
    const Matrix inverse = cholesky.solve(Matrix::Identity(n, n));
    std::vector<double> result(static_cast<size_t>(n) * static_cast<size_t>(n));
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j)
            result[static_cast<size_t>(i) * static_cast<size_t>(n) + static_cast<size_t>(j)] =
                0.5 * (inverse(i, j) + inverse(j, i));
    return result;
}

Tridiagonal tridiagonal_of(const std::vector<double>& matrix, const std::vector<double>& v) {
    const auto n = static_cast<int>(v.size());
    if (n == 1) return {matrix, {}, v};
    const Eigen::Tridiagonalization<Matrix> made(checked(matrix, n));
    Eigen::VectorXd turned = Eigen::Map<const Eigen::VectorXd>(v.data(), n);
    turned.applyOnTheLeft(made.matrixQ().adjoint());
    const Eigen::VectorXd diagonal = made.diagonal(), beside = made.subDiagonal();
    return {{diagonal.data(), diagonal.data() + n},
            {beside.data(), beside.data() + n - 1},
            {turned.data(), turned.data() + n}};
}

std::vector<double> invert(const std::vector<double>& matrix, int n) {
    const Matrix a = checked(matrix, n);
    require_finite(matrix);
    const Eigen::PartialPivLU<Matrix> lu(a);
    const auto pivots = lu.matrixLU().diagonal().cwiseAbs();
    if (!(pivots.minCoeff() > 1e-15 * pivots.maxCoeff()))
        throw Error("a matrix cannot be inverted: it is singular");
    const Matrix inverse = lu.inverse();
    std::vector<double> result;
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j)
            result.push_back(inverse(i, j));
    return result;
}

std::vector<double> lower_factor(std::vector<double> rows, int count, int n) {
    const auto width = static_cast<size_t>(n), height = static_cast<size_t>(count);
    if (rows.size() != height * width) throw Error("internal: rows of another length");
    std::vector<double> along(width);
    // Starting with the last column, each step reflects the remaining rows. The reflection sets all entries
    // of the column to 0, except the last one.
    for (size_t left = height; left-- > 1 && left + width >= height;) {
        const size_t column = width + left - height;
        double squared = 0;
        for (size_t i = 0; i <= left; ++i)
            squared += rows[i * width + column] * rows[i * width + column];
        if (!(squared > 0)) continue;
        std::vector<double> mirror(left + 1);
        for (size_t i = 0; i <= left; ++i)
            mirror[i] = rows[i * width + column];
        mirror[left] += std::copysign(std::sqrt(squared), mirror[left]);
        double length = 0;
        for (const double v : mirror)
            length += v * v;
        std::fill(along.begin(), along.end(), 0.0);
        for (size_t i = 0; i <= left; ++i)
            for (size_t j = 0; j <= column; ++j)
                along[j] += mirror[i] * rows[i * width + j];
        for (size_t i = 0; i <= left; ++i)
            for (size_t j = 0; j <= column; ++j)
                rows[i * width + j] -= 2 * along[j] / length * mirror[i];
        for (size_t i = 0; i < left; ++i)
            rows[i * width + column] = 0;
    }
    std::vector<double> lower(width * width);
    for (size_t i = height > width ? height - width : 0; i < height; ++i) {
        const size_t at = width + i - height;
        const double sign = rows[i * width + at] < 0 ? -1 : 1;
        for (size_t j = 0; j <= at; ++j)
            lower[at * width + j] = sign * rows[i * width + j];
    }
    return lower;
}

} // namespace hsi::math
