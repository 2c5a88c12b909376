// SPDX-License-Identifier: MIT
// The definitions of detect.h, pixel by pixel in long double, without any of its machinery.
#pragma once

#include "support/memory_cube.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace hsi::test {

using Vector = std::vector<long double>;
using Matrix = std::vector<Vector>;

inline Vector pixel(const Cube& cube, int64_t y, int64_t x) {
    Vector v;
    for (int b = 0; b < cube.shape.bands; ++b)
        v.push_back(cube.at(b, y, x));
    return v;
}

inline bool is_valid(const Vector& x) {
    return std::all_of(x.begin(), x.end(), [](long double v) { return std::isfinite(v); }) &&
           std::any_of(x.begin(), x.end(), [](long double v) { return v != 0; });
}

/// m^-1 r by Gauss with pivoting.
inline Vector solved(Matrix m, Vector r) {
    const size_t n = r.size();
    for (size_t c = 0; c < n; ++c) {
        size_t best = c;
        for (size_t i = c; i < n; ++i)
            if (std::fabs(m[i][c]) > std::fabs(m[best][c])) best = i;
        std::swap(m[c], m[best]);
        std::swap(r[c], r[best]);
        for (size_t i = c + 1; i < n; ++i) {
            const long double f = m[i][c] / m[c][c];
            for (size_t j = c; j < n && f != 0; ++j)
                m[i][j] -= f * m[c][j];
            r[i] -= f * r[c];
        }
    }
    for (size_t i = n; i-- > 0;) {
        for (size_t j = i + 1; j < n; ++j)
            r[i] -= m[i][j] * r[j];
        r[i] /= m[i][i];
    }
    return r;
}

inline long double dot(const Vector& a, const Vector& b) {
    long double sum = 0;
    for (size_t i = 0; i < a.size(); ++i)
        sum += a[i] * b[i];
    return sum;
}

inline Vector minus(const Vector& a, const Vector& b) {
    Vector c;
    for (size_t i = 0; i < a.size(); ++i)
        c.push_back(a[i] - b[i]);
    return c;
}

struct Statistics {
    Vector mean;
    Matrix covariance, correlation; ///< divided by n - 1, and n
    size_t count = 0;
    long double trace() const {
        long double t = 0;
        for (size_t i = 0; i < mean.size(); ++i)
            t += covariance[i][i];
        return t;
    }
};

inline Statistics statistics(const std::vector<Vector>& pixels, size_t bands) {
    Statistics s;
    s.count = pixels.size();
    s.mean.assign(bands, 0);
    s.covariance.assign(bands, Vector(bands, 0));
    s.correlation = s.covariance;
    const auto n = static_cast<long double>(pixels.size());
    for (const auto& x : pixels)
        for (size_t b = 0; b < bands; ++b)
            s.mean[b] += x[b];
    for (auto& m : s.mean)
        m /= n; // of equal values exactly their value
    for (const auto& x : pixels)
        for (size_t a = 0; a < bands; ++a)
            for (size_t b = 0; b < bands; ++b) {
                s.covariance[a][b] += (x[a] - s.mean[a]) * (x[b] - s.mean[b]) / (n - 1);
                s.correlation[a][b] += x[a] * x[b] / n;
            }
    return s;
}

inline void add_ridge(Matrix& m, long double ridge) {
    for (size_t i = 0; i < m.size(); ++i)
        m[i][i] += ridge;
}

} // namespace hsi::test
