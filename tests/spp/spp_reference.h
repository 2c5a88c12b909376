// SPDX-License-Identifier: MIT
// An independent implementation of SPP by its definition, pixel by pixel in double precision, with every
// angle by atan2.
#pragma once

#include "support/memory_cube.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace hsi::test {

struct SppReference {
    std::vector<double> centroid;
    std::vector<double> alpha, rho; ///< one per pixel; NaN where invalid
    std::vector<double> cube;       ///< band-sequential
    int64_t valid = 0;
};

inline SppReference spp_reference(const Cube& in, int ws) {
    const auto [samples, lines, bands] = in.shape;
    const int d = ws / 2;
    const auto pixels = static_cast<size_t>(samples * lines);
    const auto at = [&, n = samples](int64_t l, int64_t s) { return static_cast<size_t>(l * n + s); };
    SppReference r;
    r.centroid.assign(static_cast<size_t>(bands), 0.0);
    std::vector<char> valid(pixels);
    std::vector<std::vector<double>> unit(pixels);
    for (int64_t l = 0; l < lines; ++l)
        for (int64_t s = 0; s < samples; ++s) {
            long double n = 0;
            bool finite = true;
            for (int b = 0; b < bands; ++b) {
                const double v = static_cast<double>(in.at(b, l, s));
                finite = finite && std::isfinite(v);
                n += static_cast<long double>(v) * v;
            }
            if (!finite || n == 0) continue;
            valid[at(l, s)] = 1;
            ++r.valid;
            for (int b = 0; b < bands; ++b) {
                const double v = static_cast<double>(in.at(b, l, s));
                unit[at(l, s)].push_back(static_cast<double>(v / std::sqrt(n)));
                r.centroid[static_cast<size_t>(b)] += v;
            }
        }
    for (auto& c : r.centroid)
        c /= static_cast<double>(r.valid);
    r.alpha.assign(pixels, std::nan(""));
    r.rho.assign(pixels, std::nan(""));
    r.cube.assign(pixels * static_cast<size_t>(bands), std::nan(""));
    for (int64_t l = 0; l < lines; ++l)
        for (int64_t s = 0; s < samples; ++s) {
            if (!valid[at(l, s)]) continue;
            double num = 0, den = 0;
            for (int64_t i = std::max<int64_t>(0, l - d); i <= std::min(lines - 1, l + d); ++i)
                for (int64_t j = std::max<int64_t>(0, s - d); j <= std::min(samples - 1, s + d); ++j) {
                    if ((i == l && j == s) || !valid[at(i, j)]) continue;
                    const auto &u = unit[at(l, s)], &v = unit[at(i, j)];
                    double difference = 0, sum = 0;
                    for (size_t b = 0; b < u.size(); ++b) {
                        difference += (u[b] - v[b]) * (u[b] - v[b]);
                        sum += (u[b] + v[b]) * (u[b] + v[b]);
                    }
                    const double angle = 2 * std::atan2(std::sqrt(difference), std::sqrt(sum));
                    const double beta = 1.0 / static_cast<double>((i - l) * (i - l) + (j - s) * (j - s));
                    num += beta * angle;
                    den += beta;
                }
            const double alpha = den > 0 ? num / den : 0;
            const double rho = (1 + std::sqrt(alpha)) * (1 + std::sqrt(alpha));
            r.alpha[at(l, s)] = alpha;
            r.rho[at(l, s)] = rho;
            for (int b = 0; b < bands; ++b) {
                const double c = r.centroid[static_cast<size_t>(b)];
                r.cube[static_cast<size_t>(b) * pixels + at(l, s)] =
                    (static_cast<double>(in.at(b, l, s)) - c) / rho + c;
            }
        }
    return r;
}

struct SppErrors {
    double mean_nrmse = 0,
           max_maxsde = 0;        ///< the measures of paper 004 (equations 6 and 8), over the valid pixels
    int64_t validity_differs = 0; ///< pixels that have a value in only one of two results
};

inline SppErrors compare(const SppReference& reference, const Cube& got) {
    SppErrors e;
    const auto pixels = static_cast<size_t>(got.shape.pixels());
    const auto bands = static_cast<size_t>(got.shape.bands);
    double sum = 0;
    int64_t counted = 0;
    for (size_t p = 0; p < pixels; ++p) {
        const bool valid = !std::isnan(reference.alpha[p]);
        bool all_nan = true, any_nan = false;
        for (size_t b = 0; b < bands; ++b) {
            all_nan = all_nan && std::isnan(got.values[b * pixels + p]);
            any_nan = any_nan || std::isnan(got.values[b * pixels + p]);
        }
        if (valid ? any_nan : !all_nan) {
            ++e.validity_differs;
            continue;
        }
        if (!valid) continue;
        double mean = 0, magnitude = 0, square = 0, spread = 0, largest = 0;
        for (size_t b = 0; b < bands; ++b) {
            mean += reference.cube[b * pixels + p];
            magnitude += std::fabs(reference.cube[b * pixels + p]);
        }
        mean /= static_cast<double>(bands);
        for (size_t b = 0; b < bands; ++b) {
            const double want = reference.cube[b * pixels + p];
            const double off = static_cast<double>(got.values[b * pixels + p]) - want;
            square += off * off;
            spread += (want - mean) * (want - mean);
            largest = std::max(largest, std::fabs(off));
        }
        if (spread > 0) {
            sum += std::sqrt(square / spread);
            ++counted;
        }
        if (magnitude > 0)
            e.max_maxsde = std::max(e.max_maxsde, largest * static_cast<double>(bands) / magnitude);
    }
    e.mean_nrmse = counted ? sum / static_cast<double>(counted) : 0;
    return e;
}

} // namespace hsi::test
