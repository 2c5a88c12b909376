// SPDX-License-Identifier: MIT
// A plain implementation of ATDCA in double precision: one full scan per target, with explicit residual
// vectors. It shares no code with the backends.
#pragma once

#include "support/memory_cube.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace hsi::test {

struct AtdcaReference {
    std::vector<int64_t> pixels; ///< line * samples + sample, in order
    std::vector<double> scores;
    /// Score minus the best other pixel's score, relative to the greatest squared norm
    std::vector<double> margins;
};

/// gs: Algorithm 2, with the absolute value or as printed (`sign`).
inline AtdcaReference atdca_reference(const Cube& cube, int targets, bool gs = false, bool sign = false) {
    const auto bands = static_cast<size_t>(cube.shape.bands);
    const int64_t samples = cube.shape.samples;
    std::vector<int64_t> valid;
    std::vector<std::vector<double>> residual;
    for (int64_t i = 0; i < cube.shape.pixels(); ++i) {
        std::vector<double> x(bands);
        bool finite = true, zero = true;
        for (size_t b = 0; b < bands; ++b) {
            x[b] = static_cast<double>(cube.at(static_cast<int>(b), i / samples, i % samples));
            finite = finite && std::isfinite(x[b]);
            zero = zero && x[b] == 0;
        }
        if (!finite || zero) continue;
        valid.push_back(i);
        residual.push_back(std::move(x));
    }
    const auto original = residual;
    const auto dot = [&](const std::vector<double>& a, const std::vector<double>& b) {
        long double sum = 0;
        for (size_t k = 0; k < bands; ++k)
            sum += static_cast<long double>(a[k]) * static_cast<long double>(b[k]);
        return static_cast<double>(sum);
    };
    AtdcaReference r;
    std::vector<double> w(bands, 1.0); // p
    double first = 0;
    for (int t = 0; t < targets; ++t) {
        double best = 0, second = 0;
        size_t at = valid.size();
        for (size_t i = 0; i < valid.size(); ++i) {
            if (sign && std::find(r.pixels.begin(), r.pixels.end(), valid[i]) != r.pixels.end()) continue;
            double score = dot(residual[i], residual[i]);
            if (gs && t > 0) score = sign ? dot(w, original[i]) : std::fabs(dot(w, original[i]));
            if (score > best) {
                second = best;
                best = score;
                at = i;
            } else {
                second = std::max(second, score);
            }
        }
        if (at == valid.size() || !(best > 0)) break;
        const double left = dot(residual[at], residual[at]);
        if (t == 0) first = left;
        if (left < 1e-6 * first) break;
        r.pixels.push_back(valid[at]);
        r.scores.push_back(best);
        r.margins.push_back((best - second) / first);
        std::vector<double> q = residual[at];
        const double norm = std::sqrt(left);
        for (double& v : q)
            v /= norm;
        for (int round = 0; round < 2; ++round) {
            for (auto& x : residual) {
                const double c = dot(q, x);
                for (size_t b = 0; b < bands; ++b)
                    x[b] -= c * q[b];
            }
            const double c = dot(q, w);
            for (size_t b = 0; b < bands; ++b)
                w[b] -= c * q[b];
        }
    }
    return r;
}

} // namespace hsi::test
