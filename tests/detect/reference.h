// SPDX-License-Identifier: MIT
// The definitions of detect.h, computed pixel by pixel in long double, without code of the library.
#pragma once

#include "detect/local/local.h"
#include "detect/pixel/pixel.h"
#include "support/memory_cube.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
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

/// Returns a scene of 60 x 13 pixels. From sample 20 on, rings have no variance, except for one anomalous
/// pixel and one ring with very little variance. Bright pixels leave the sums before this part.
inline Cube flattened(Cube cube) {
    for (int64_t y = 0; y < 13; ++y)
        for (int b = 0; b < cube.shape.bands; ++b) {
            for (int64_t x = 20; x < 60; ++x)
                cube.at(b, y, x) = 0.1f * static_cast<float>(b + 1);
            cube.at(b, y, 18) *= 1e4f;
        }
    cube.at(2, 6, 45) = 9;
    cube.at(1, 0, 59) = 0.25f;
    return cube;
}

/// Returns m^-1 r by Gaussian elimination with pivoting.
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
    Matrix covariance, correlation; ///< divided by n - 1, and by n
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
        m /= n; // exact for equal values
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

inline Vector clipped(const Vector& x) {
    Vector p;
    const long double most = *std::max_element(x.begin(), x.end());
    long double sum = 0;
    for (const auto v : x)
        sum += std::max(v, 1e-6L * most);
    for (const auto v : x)
        p.push_back(std::max(v, 1e-6L * most) / sum);
    return p;
}

/// The definitions of scores; `inside` selects the background pixels.
class Reference {
  public:
    template <class Inside>
    Reference(const Cube& cube, Inside inside) {
        std::vector<Vector> pixels;
        for (int64_t y = 0; y < cube.shape.lines; ++y)
            for (int64_t x = 0; x < cube.shape.samples; ++x)
                if (const Vector v = pixel(cube, y, x); is_valid(v) && inside(y, x)) pixels.push_back(v);
        const auto bands = static_cast<size_t>(cube.shape.bands);
        const auto whole = statistics(pixels, bands);
        all = whole.correlation;
        for (size_t b = 0; b < bands; ++b)
            if (whole.covariance[b][b] > 0) used.push_back(b);
        for (const size_t a : used) {
            mean.push_back(whole.mean[a]);
            covariance.emplace_back();
            for (const size_t b : used)
                covariance.back().push_back(whole.covariance[a][b]);
        }
        count = pixels.size();
    }
    Vector kept(const Vector& x) const {
        Vector k;
        for (const size_t b : used)
            k.push_back(x[b]);
        return k;
    }
    double score(detect::Method method, const Vector& x, const Vector& t) const {
        return static_cast<double>(value(method, x, t));
    }

    Matrix covariance, all;
    Vector mean;
    std::vector<size_t> used;
    size_t count = 0;

  private:
    long double value(detect::Method method, const Vector& x, const Vector& t) const {
        if (method == detect::Method::sam) {
            Vector u, v, w;
            for (size_t b = 0; b < x.size(); ++b) {
                u.push_back(x[b] / std::sqrt(dot(x, x)));
                v.push_back(t[b] / std::sqrt(dot(t, t)));
                w.push_back(u[b] + v[b]);
            }
            return 2 * std::atan2(std::sqrt(dot(minus(u, v), minus(u, v))), std::sqrt(dot(w, w)));
        }
        if (method == detect::Method::sid) {
            const Vector p = clipped(x), q = clipped(t);
            long double sum = 0;
            for (size_t b = 0; b < p.size(); ++b)
                sum += (p[b] - q[b]) * (std::log(p[b]) - std::log(q[b]));
            return sum;
        }
        if (method == detect::Method::cem) {
            const Vector w = solved(all, t);
            return dot(w, x) / dot(w, t);
        }
        const Vector d = minus(kept(x), mean);
        if (method == detect::Method::rx) return dot(d, solved(covariance, d));
        const Vector z = minus(kept(t), mean), w = solved(covariance, z);
        if (method == detect::Method::mf) return dot(w, d) / dot(w, z);
        return dot(w, d) * std::fabs(dot(w, d)) / (dot(w, z) * dot(d, solved(covariance, d)));
    }
};

/// Returns the tolerance in the specification.
inline double tolerance(detect::Method method, double reference) {
    switch (method) {
    case detect::Method::sam:
        return 1e-6;
    case detect::Method::sid:
        return 1e-6 + 1e-5 * std::fabs(reference);
    case detect::Method::mf:
    case detect::Method::cem:
        return 1e-4 * (1 + std::fabs(reference));
    case detect::Method::ace:
        return 1e-5;
    case detect::Method::rx:
        break;
    }
    return 1e-4 * std::fabs(reference);
}

/// Returns local RX of a pixel; NaN without a score.
inline double local_reference(const Cube& cube, const detect::Ring& ring, int64_t y, int64_t x) {
    const Vector v = pixel(cube, y, x);
    if (!is_valid(v)) return std::nan("");
    std::vector<Vector> pixels;
    for (int64_t l = y - ring.outer / 2; l <= y + ring.outer / 2; ++l)
        for (int64_t s = x - ring.outer / 2; s <= x + ring.outer / 2; ++s) {
            if (l < 0 || s < 0 || l >= cube.shape.lines || s >= cube.shape.samples) continue;
            if (std::abs(l - y) <= ring.inner / 2 && std::abs(s - x) <= ring.inner / 2) continue;
            if (ring.mask != nullptr && !ring.mask->at(l, s)) continue;
            if (const Vector p = pixel(cube, l, s); is_valid(p)) pixels.push_back(p);
        }
    if (pixels.size() < 2) return std::nan("");
    auto s = statistics(pixels, v.size());
    const Vector d = minus(v, s.mean);
    if (s.trace() == 0) return dot(d, d) == 0 ? 0 : std::nan("");
    if (ring.ridge_share == 0 && pixels.size() <= v.size()) return std::nan("");
    add_ridge(s.covariance,
              static_cast<long double>(ring.ridge_share) * s.trace() / static_cast<long double>(v.size()));
    return static_cast<double>(dot(d, solved(s.covariance, d)));
}

} // namespace hsi::test
