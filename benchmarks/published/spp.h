// SPDX-License-Identifier: MIT
// The serial program of paper 004, for the first row of Table III: single precision, angles by arccos, pixel
// by pixel. At the border, weights are normalised over the existing neighbours.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace hsi::published {

/// Computes alpha and y' of pixel-interleaved spectra on one core.
inline void serial(const float* pixels, int samples, int lines, int bands, int ws, float* out) {
    const int d = ws / 2, count = samples * lines;
    std::vector<float> centroid(static_cast<size_t>(bands)), norm(static_cast<size_t>(count));
    std::vector<double> sum(static_cast<size_t>(bands));
    for (int p = 0; p < count; ++p) {
        const float* y = pixels + static_cast<size_t>(p) * bands;
        float n = 0;
        for (int b = 0; b < bands; ++b) {
            n += y[b] * y[b];
            sum[static_cast<size_t>(b)] += y[b];
        }
        norm[static_cast<size_t>(p)] = std::sqrt(n);
    }
    for (int b = 0; b < bands; ++b)
        centroid[static_cast<size_t>(b)] = static_cast<float>(sum[static_cast<size_t>(b)] / count);
    for (int l = 0; l < lines; ++l)
        for (int s = 0; s < samples; ++s) {
            const int p = l * samples + s;
            const float* y = pixels + static_cast<size_t>(p) * bands;
            float num = 0, den = 0;
            for (int a = std::max(-d, -l); a <= std::min(d, lines - 1 - l); ++a)
                for (int b = std::max(-d, -s); b <= std::min(d, samples - 1 - s); ++b) {
                    if (a == 0 && b == 0) continue;
                    const int q = p + a * samples + b;
                    const float* z = pixels + static_cast<size_t>(q) * bands;
                    float dot = 0;
                    for (int k = 0; k < bands; ++k)
                        dot += y[k] * z[k];
                    const float cosine = dot / (norm[static_cast<size_t>(p)] * norm[static_cast<size_t>(q)]);
                    const float beta = 1.0f / static_cast<float>(a * a + b * b);
                    num += beta * std::acos(std::min(1.0f, std::max(-1.0f, cosine)));
                    den += beta;
                }
            const float root = 1.0f + std::sqrt(den > 0 ? num / den : 0.0f), scale = 1.0f / (root * root);
            float* z = out + static_cast<size_t>(p) * bands;
            for (int k = 0; k < bands; ++k)
                z[k] = scale * (y[k] - centroid[static_cast<size_t>(k)]) + centroid[static_cast<size_t>(k)];
        }
}

} // namespace hsi::published
