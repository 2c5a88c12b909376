// SPDX-License-Identifier: MIT
// Solves eigenproblems for references, with another method than the libraries and with more digits than
// double precision.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

namespace hsi::test {

using Matrix = std::vector<long double>; ///< n x n, row by row

/// Returns the eigenvalues in descending order and the eigenvectors (as rows) of a symmetric matrix, by
/// cyclic Jacobi rotations.
inline std::pair<std::vector<long double>, Matrix> jacobi(Matrix a, size_t n) {
    Matrix v(n * n, 0);
    for (size_t i = 0; i < n; ++i)
        v[i * n + i] = 1;
    for (int sweep = 0; sweep < 60; ++sweep) {
        long double off = 0;
        for (size_t p = 0; p < n; ++p)
            for (size_t q = p + 1; q < n; ++q)
                off += a[p * n + q] * a[p * n + q];
        if (off == 0) break;
        for (size_t p = 0; p < n; ++p)
            for (size_t q = p + 1; q < n; ++q) {
                if (a[p * n + q] == 0) continue;
                const long double theta = (a[q * n + q] - a[p * n + p]) / (2 * a[p * n + q]);
                const long double t =
                    (theta >= 0 ? 1 : -1) / (std::fabs(theta) + std::sqrt(theta * theta + 1));
                const long double c = 1 / std::sqrt(t * t + 1), s = t * c;
                for (size_t k = 0; k < n; ++k) {
                    const long double x = a[k * n + p], y = a[k * n + q];
                    a[k * n + p] = c * x - s * y;
                    a[k * n + q] = s * x + c * y;
                }
                for (size_t k = 0; k < n; ++k) {
                    const long double x = a[p * n + k], y = a[q * n + k];
                    a[p * n + k] = c * x - s * y;
                    a[q * n + k] = s * x + c * y;
                    const long double g = v[p * n + k], h = v[q * n + k];
                    v[p * n + k] = c * g - s * h;
                    v[q * n + k] = s * g + c * h;
                }
            }
    }
    std::vector<size_t> order(n);
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(), [&](size_t i, size_t j) { return a[i * n + i] > a[j * n + j]; });
    std::pair<std::vector<long double>, Matrix> result;
    for (const size_t k : order) {
        result.first.push_back(a[k * n + k]);
        result.second.insert(result.second.end(), v.begin() + static_cast<ptrdiff_t>(k * n),
                             v.begin() + static_cast<ptrdiff_t>((k + 1) * n));
    }
    return result;
}

} // namespace hsi::test
