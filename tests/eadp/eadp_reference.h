// SPDX-License-Identifier: MIT
// The profile from its definition in double precision: the whole scene, one step at a time, without Chebyshev
// polynomials.
#pragma once

#include "eadp/eadp.h"
#include "support/memory_cube.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace hsi::test {

struct Field {
    int64_t w = 0, h = 0;
    std::vector<double> v;
    std::vector<char> valid;
    Field(int64_t samples, int64_t lines)
        : w(samples), h(lines), v(static_cast<size_t>(w * h)), valid(static_cast<size_t>(w * h), 1) {}
    size_t at(int64_t y, int64_t x) const { return static_cast<size_t>(y * w + x); }
    double operator()(int64_t y, int64_t x) const { return v[at(y, x)]; }
    bool ok(int64_t y, int64_t x) const { return valid[at(y, x)]; }
};

inline Field component_of(const Cube& cube, int band) {
    Field f(cube.shape.samples, cube.shape.lines);
    for (int64_t y = 0; y < f.h; ++y)
        for (int64_t x = 0; x < f.w; ++x) {
            const float value = cube.at(band, y, x);
            f.valid[f.at(y, x)] = std::isfinite(value);
            f.v[f.at(y, x)] = std::isfinite(value) ? static_cast<double>(value) : 0.0;
        }
    return f;
}

inline int64_t reference_mirror(int64_t i, int64_t n) {
    while (i < 0 || i >= n)
        i = i < 0 ? -1 - i : 2 * n - 1 - i;
    return i;
}

inline std::vector<double> reference_gradient(const Field& f, double sigma) {
    const int r = static_cast<int>(std::ceil(3 * sigma));
    Field s = f;
    if (r > 0)
        for (int64_t y = 0; y < f.h; ++y)
            for (int64_t x = 0; x < f.w; ++x) {
                double num = 0, den = 0;
                for (int a = -r; a <= r; ++a)
                    for (int b = -r; b <= r; ++b) {
                        const int64_t yy = reference_mirror(y + a, f.h), xx = reference_mirror(x + b, f.w);
                        if (!f.ok(yy, xx)) continue;
                        const double w = std::exp(-0.5 * (a * a + b * b) / (sigma * sigma));
                        num += w * f(yy, xx);
                        den += w;
                    }
                s.v[s.at(y, x)] = den > 0 ? num / den : 0;
            }
    std::vector<double> m(f.v.size());
    for (int64_t y = 0; y < f.h; ++y)
        for (int64_t x = 0; x < f.w; ++x) {
            const auto tap = [&](int64_t a, int64_t b) {
                const int64_t yy = reference_mirror(y + a, f.h), xx = reference_mirror(x + b, f.w);
                return f.ok(yy, xx) ? s(yy, xx) : s(y, x);
            };
            const double gx = (3 * (tap(-1, 1) - tap(-1, -1)) + 10 * (tap(0, 1) - tap(0, -1)) +
                               3 * (tap(1, 1) - tap(1, -1))) /
                              32;
            const double gy = (3 * (tap(1, -1) - tap(-1, -1)) + 10 * (tap(1, 0) - tap(-1, 0)) +
                               3 * (tap(1, 1) - tap(-1, 1))) /
                              32;
            m[f.at(y, x)] = std::sqrt(gx * gx + gy * gy);
        }
    return m;
}

inline double reference_contrast(const Field& f, const std::vector<double>& m, double percentile) {
    double hmax = 0;
    int64_t nonzero = 0;
    std::vector<int64_t> histogram(300);
    for (size_t i = 0; i < m.size(); ++i)
        if (f.valid[i]) hmax = std::max(hmax, m[i]);
    if (hmax == 0) return 0;
    for (size_t i = 0; i < m.size(); ++i)
        if (f.valid[i] && m[i] > 0) {
            ++nonzero;
            ++histogram[std::min<size_t>(299, static_cast<size_t>(std::floor(300 * m[i] / hmax)))];
        }
    int64_t count = 0;
    for (size_t b = 0; b < 300; ++b) {
        count += histogram[b];
        if (static_cast<double>(count) >= percentile * static_cast<double>(nonzero) - 1e-6)
            return hmax * static_cast<double>(b + 1) / 300;
    }
    return hmax;
}

inline std::vector<double> reference_g(const std::vector<double>& m, double k, eadp::Diffusivity kind) {
    std::vector<double> g;
    for (double x : m) {
        const double q = k > 0 ? x / k : 0;
        if (kind == eadp::Diffusivity::g1) g.push_back(std::exp(-q * q));
        if (kind == eadp::Diffusivity::g2) g.push_back(1 / (1 + q * q));
        if (kind == eadp::Diffusivity::g3) g.push_back(q > 0 ? 1 - std::exp(-3.31488 / std::pow(q, 8)) : 1.0);
    }
    return g;
}

/// Returns A L, the divergence of g grad L.
inline std::vector<double> reference_operator(const Field& f, const std::vector<double>& g,
                                              const std::vector<double>& l) {
    std::vector<double> out(l.size(), 0.0);
    for (int64_t y = 0; y < f.h; ++y)
        for (int64_t x = 0; x < f.w; ++x)
            for (auto [a, b] : {std::pair{0, 1}, {0, -1}, {1, 0}, {-1, 0}}) {
                const int64_t yy = y + a, xx = x + b;
                if (yy < 0 || yy >= f.h || xx < 0 || xx >= f.w || !f.ok(y, x) || !f.ok(yy, xx)) continue;
                const size_t i = f.at(y, x), j = f.at(yy, xx);
                out[i] += 0.5 * (g[i] + g[j]) * (l[j] - l[i]);
            }
    return out;
}

inline std::vector<double> reference_fed(const Field& f, const std::vector<double>& g, std::vector<double> l,
                                         double time, int cycles) {
    const auto taus = eadp::fed_taus(time, cycles);
    for (int c = 0; c < cycles; ++c)
        for (double tau : taus) {
            const auto a = reference_operator(f, g, l);
            for (size_t i = 0; i < l.size(); ++i)
                l[i] += tau * a[i];
        }
    return l;
}

/// Returns the profile by ordered FED products: components x (copies + 1) planes.
inline std::vector<std::vector<double>> reference_profile(const Cube& components, const eadp::Options& o) {
    std::vector<std::vector<double>> profile;
    for (int b = 0; b < components.shape.bands; ++b) {
        const Field x = component_of(components, b);
        const auto g_of = [&](const Field& f) {
            const auto m = reference_gradient(f, o.sigma);
            return reference_g(m, o.contrast ? *o.contrast : reference_contrast(f, m, o.percentile),
                               o.diffusivity);
        };
        auto g = g_of(x);
        profile.push_back(x.v);
        Field last = x;
        for (size_t c = 0; c < o.times.size(); ++c) {
            if (o.evolution == eadp::Evolution::independent) {
                profile.push_back(reference_fed(x, g, x.v, o.times[c], o.cycles));
                continue;
            }
            if (o.evolution == eadp::Evolution::cascade) g = g_of(last);
            const bool delta = o.evolution == eadp::Evolution::incremental && c > 0;
            last.v = reference_fed(x, g, last.v, o.times[c] - (delta ? o.times[c - 1] : 0), o.cycles);
            profile.push_back(last.v);
        }
        for (size_t p = profile.size() - o.times.size() - 1; p < profile.size(); ++p)
            for (size_t i = 0; i < x.v.size(); ++i)
                if (!x.valid[i]) profile[p][i] = std::numeric_limits<double>::quiet_NaN();
    }
    return profile;
}

} // namespace hsi::test
