// SPDX-License-Identifier: MIT
// ATDCA on one core as published in paper 002 (Algorithms 1 and 2), in single precision, for the serial rows
// of Table III.
#pragma once

#include "support/memory_cube.h"

#include <cmath>
#include <vector>

namespace hsi::atdca::published {

/// Runs OSP or, if `gs`, GS. OSP applies the explicit projector P = I - U (U'U)^-1 U' to each pixel, which
/// takes bands^2 multiplications per pixel. The projector is computed from the orthonormalised targets, which
/// gives the same matrix.
inline std::vector<int64_t> serial(const test::Cube& cube, int targets, bool gs) {
    const auto bands = static_cast<size_t>(cube.shape.bands);
    const int64_t pixels = cube.shape.pixels();
    // Spectra are stored pixel by pixel, as serial programs store them.
    std::vector<float> x(bands * static_cast<size_t>(pixels));
    for (size_t b = 0; b < bands; ++b)
        for (int64_t i = 0; i < pixels; ++i)
            x[static_cast<size_t>(i) * bands + b] =
                cube.values[b * static_cast<size_t>(pixels) + static_cast<size_t>(i)];
    std::vector<int64_t> found;
    std::vector<std::vector<float>> q;
    std::vector<float> p(bands, 1.0f), projector(bands * bands);
    for (size_t b = 0; b < bands; ++b)
        projector[b * bands + b] = 1.0f;
    for (int t = 0; t < targets; ++t) {
        float best = -1;
        int64_t at = 0;
        for (int64_t i = 0; i < pixels; ++i) {
            const float* v = x.data() + static_cast<size_t>(i) * bands;
            float value = 0;
            if (t == 0) {
                for (size_t b = 0; b < bands; ++b)
                    value += v[b] * v[b];
            } else if (gs) {
                for (size_t b = 0; b < bands; ++b)
                    value += p[b] * v[b];
                value = std::fabs(value);
            } else {
                for (size_t r = 0; r < bands; ++r) {
                    float sum = 0;
                    for (size_t b = 0; b < bands; ++b)
                        sum += projector[r * bands + b] * v[b];
                    value += sum * sum;
                }
            }
            if (value > best) {
                best = value;
                at = i;
            }
        }
        found.push_back(at);
        std::vector<float> r(x.begin() + static_cast<ptrdiff_t>(static_cast<size_t>(at) * bands),
                             x.begin() + static_cast<ptrdiff_t>(static_cast<size_t>(at + 1) * bands));
        const auto remove = [&](const std::vector<float>& from, std::vector<float>& of) {
            float c = 0;
            for (size_t b = 0; b < bands; ++b)
                c += from[b] * of[b];
            for (size_t b = 0; b < bands; ++b)
                of[b] -= c * from[b];
        };
        for (int round = 0; round < 2; ++round)
            for (const auto& k : q)
                remove(k, r);
        float norm = 0;
        for (float v : r)
            norm += v * v;
        for (float& v : r)
            v /= std::sqrt(norm);
        remove(r, p);
        for (size_t a = 0; a < bands; ++a)
            for (size_t b = 0; b < bands; ++b)
                projector[a * bands + b] -= r[a] * r[b];
        q.push_back(std::move(r));
    }
    return found;
}

} // namespace hsi::atdca::published
