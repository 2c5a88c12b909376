// SPDX-License-Identifier: MIT
// The algorithms of the specification, line by line in double precision. Every variable of Algorithm 1 is
// kept, and operations are not rearranged.
#pragma once

#include "math/linear_algebra.h"
#include "sahic/lorsal.h"
#include "sahic/sahic.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace hsi::sahic::reference {

using Plane = std::vector<double>;

/// Computes (H'H + I)^-1 from the eigenvectors of the one-dimensional second differences, for either border.
class Inverse {
  public:
    Inverse(int64_t lines, int64_t samples, bool periodic)
        : m_lines(lines), m_samples(samples), m_y(axis(lines, periodic)), m_x(axis(samples, periodic)) {}
    Plane apply(const Plane& in) const {
        Plane a = turn(in, false);
        for (int64_t y = 0; y < m_lines; ++y)
            for (int64_t x = 0; x < m_samples; ++x)
                a[static_cast<size_t>(y * m_samples + x)] /=
                    1 + m_y.values[static_cast<size_t>(y)] + m_x.values[static_cast<size_t>(x)];
        return turn(a, true);
    }

  private:
    static math::SymmetricEigen axis(int64_t n, bool periodic) {
        std::vector<double> m(static_cast<size_t>(n * n), 0.0);
        const int64_t differences = periodic ? n : n - 1;
        for (int64_t i = 0; i < differences; ++i) {
            const int64_t j = (i + 1) % n;
            if (i == j) continue;
            m[static_cast<size_t>(i * n + i)] += 1;
            m[static_cast<size_t>(j * n + j)] += 1;
            m[static_cast<size_t>(i * n + j)] -= 1;
            m[static_cast<size_t>(j * n + i)] -= 1;
        }
        return math::eigen_symmetric(m, static_cast<int>(n));
    }
    Plane turn(const Plane& in, bool back) const {
        Plane half(in.size(), 0.0), out(in.size(), 0.0);
        const auto at = [&](int64_t y, int64_t x) { return static_cast<size_t>(y * m_samples + x); };
        for (int64_t y = 0; y < m_lines; ++y)
            for (int64_t k = 0; k < m_samples; ++k)
                for (int64_t x = 0; x < m_samples; ++x)
                    half[at(y, k)] += in[at(y, x)] * (back ? m_x.vector(static_cast<int>(x))[k]
                                                           : m_x.vector(static_cast<int>(k))[x]);
        for (int64_t k = 0; k < m_lines; ++k)
            for (int64_t y = 0; y < m_lines; ++y)
                for (int64_t x = 0; x < m_samples; ++x)
                    out[at(k, x)] += half[at(y, x)] * (back ? m_y.vector(static_cast<int>(y))[k]
                                                            : m_y.vector(static_cast<int>(k))[y]);
        return out;
    }
    int64_t m_lines, m_samples;
    math::SymmetricEigen m_y, m_x;
};

struct MrfOutcome {
    std::vector<Plane> q;
    MrfResiduals residuals;
};

inline MrfOutcome mrf(const MrfProblem& in, const MrfOptions& o) {
    const int64_t lines = in.lines, samples = in.samples, pixels = lines * samples;
    const auto n = static_cast<size_t>(pixels);
    const auto classes = static_cast<size_t>(in.classes);
    const Inverse inverse(lines, samples, in.periodic);
    std::vector<char> valid(n);
    for (size_t i = 0; i < n; ++i)
        valid[i] = !std::isnan(in.p[i]);
    std::vector<Plane> p(classes, Plane(n)), zero(classes, Plane(n, 0.0));
    for (size_t k = 0; k < classes; ++k)
        for (size_t i = 0; i < n; ++i)
            p[k][i] = valid[i] ? static_cast<double>(in.p[k * n + i]) : 1.0 / static_cast<double>(classes);
    auto v1 = p, v2 = p, v3 = p, v4 = p, v5h = zero, v5v = zero;
    auto d1 = zero, d2 = zero, d3 = zero, d4 = zero, d5h = zero, d5v = zero;
    auto q = p, before = p;
    // The next pixel right of and below i; at the border i itself, so that the difference is zero.
    const auto right = [&](size_t i) {
        const auto s = static_cast<size_t>(samples);
        if (i % s + 1 < s) return i + 1;
        return in.periodic ? i + 1 - s : i;
    };
    const auto below = [&](size_t i) {
        const auto s = static_cast<size_t>(samples);
        if (i + s < n) return i + s;
        return in.periodic ? i % s : i;
    };
    MrfOutcome result;
    for (int it = 0; it < o.iterations; ++it) {
        before = q;
        for (size_t k = 0; k < classes; ++k)
            for (size_t i = 0; i < n; ++i) {
                q[k][i] = 0.25 * (v1[k][i] + d1[k][i] + v2[k][i] + d2[k][i] + v3[k][i] + d3[k][i] + v4[k][i] +
                                  d4[k][i]);
                if (in.fixed && in.fixed[i] > 0 && valid[i]) q[k][i] = in.fixed[i] - 1 == static_cast<int>(k);
            }
        for (size_t i = 0; i < n; ++i) {
            double sum = 0;
            for (size_t k = 0; k < classes; ++k)
                sum += q[k][i] - d3[k][i];
            for (size_t k = 0; k < classes; ++k)
                v3[k][i] = q[k][i] - d3[k][i] + (1 - sum) / static_cast<double>(classes);
        }
        for (size_t k = 0; k < classes; ++k) {
            Plane rhs(n);
            for (size_t i = 0; i < n; ++i) {
                v1[k][i] =
                    valid[i] ? (p[k][i] + o.mu * (q[k][i] - d1[k][i])) / (1 + o.mu) : q[k][i] - d1[k][i];
                v2[k][i] = std::max(q[k][i] - d2[k][i], 0.0);
                rhs[i] = q[k][i] - d4[k][i];
            }
            for (size_t i = 0; i < n; ++i) { // adds H'(V5 + D5)
                const double h = v5h[k][i] + d5h[k][i], v = v5v[k][i] + d5v[k][i];
                if (right(i) != i) {
                    rhs[right(i)] += h;
                    rhs[i] -= h;
                }
                if (below(i) != i) {
                    rhs[below(i)] += v;
                    rhs[i] -= v;
                }
            }
            v4[k] = inverse.apply(rhs);
            for (size_t i = 0; i < n; ++i) {
                const double h = v4[k][right(i)] - v4[k][i], v = v4[k][below(i)] - v4[k][i];
                const double th = h - d5h[k][i], tv = v - d5v[k][i];
                const bool ch = right(i) != i && valid[i] && valid[right(i)],
                           cv = below(i) != i && valid[i] && valid[below(i)];
                const double limit = o.lambda * static_cast<double>(in.weight[i]) / o.mu;
                if (o.anisotropic) {
                    const auto soft = [&](double t) {
                        return t > limit ? t - limit : t < -limit ? t + limit : 0.0;
                    };
                    v5h[k][i] = ch ? soft(th) : th;
                    v5v[k][i] = cv ? soft(tv) : tv;
                } else {
                    const double norm = std::sqrt((ch ? th * th : 0) + (cv ? tv * tv : 0));
                    const double factor = norm > limit ? 1 - limit / norm : 0;
                    v5h[k][i] = ch ? factor * th : th;
                    v5v[k][i] = cv ? factor * tv : tv;
                }
                d1[k][i] -= q[k][i] - v1[k][i];
                d2[k][i] -= q[k][i] - v2[k][i];
                d3[k][i] -= q[k][i] - v3[k][i];
                d4[k][i] -= q[k][i] - v4[k][i];
                d5h[k][i] -= h - v5h[k][i];
                d5v[k][i] -= v - v5v[k][i];
            }
        }
    }
    auto& r = result.residuals;
    const auto square = [](double x) { return x * x; };
    for (size_t k = 0; k < classes; ++k)
        for (size_t i = 0; i < n; ++i) {
            if (valid[i]) r.v1 += square(q[k][i] - v1[k][i]);
            r.v2 += square(q[k][i] - v2[k][i]);
            r.v3 += square(q[k][i] - v3[k][i]);
            r.v4 += square(q[k][i] - v4[k][i]);
            r.v5 += square(v4[k][right(i)] - v4[k][i] - v5h[k][i]) +
                    square(v4[k][below(i)] - v4[k][i] - v5v[k][i]);
            r.change += square(q[k][i] - before[k][i]);
            const double gh = valid[i] && valid[right(i)] ? q[k][right(i)] - q[k][i] : 0;
            const double gv = valid[i] && valid[below(i)] ? q[k][below(i)] - q[k][i] : 0;
            if (valid[i]) r.objective += 0.5 * square(q[k][i] - p[k][i]);
            r.objective += o.lambda * static_cast<double>(in.weight[i]) *
                           (o.anisotropic ? std::fabs(gh) + std::fabs(gv) : std::hypot(gh, gv));
        }
    r.entries = static_cast<int64_t>(classes) * pixels;
    result.q = std::move(q);
    return result;
}

} // namespace hsi::sahic::reference
