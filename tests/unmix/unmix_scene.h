// SPDX-License-Identifier: MIT
// Endmembers, and scenes of their mixtures.
#pragma once

#include "support/memory_cube.h"
#include "unmix/unmix.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace hsi::test {

/// Returns spectra of magnitude 1000: waves, and some independent variation in every band.
inline unmix::Endmembers spectra(int count, int bands, uint32_t seed, double likeness = 0) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> uniform(0, 1);
    unmix::Endmembers e;
    for (int k = 0; k < count; ++k) {
        const double a = uniform(random) * 6, b = uniform(random) * 9, level = 300 + 900 * uniform(random);
        const double c = 3 + 15 * uniform(random), d = 5 + 30 * uniform(random);
        std::vector<double> x;
        for (int i = 0; i < bands; ++i) {
            const double t = static_cast<double>(i) / bands;
            x.push_back(level *
                        (1 + 0.5 * std::sin(a + c * t) + 0.3 * std::cos(b + d * t) + 0.1 * uniform(random)));
        }
        if (k > 0)
            for (int i = 0; i < bands; ++i)
                x[static_cast<size_t>(i)] = likeness * e.spectra[0][static_cast<size_t>(i)] +
                                            (1 - likeness) * x[static_cast<size_t>(i)];
        e.spectra.push_back(x);
        e.names.push_back("m" + std::to_string(k + 1));
    }
    return e;
}

/// Returns mixtures with noise, some of them outside the simplex, and pixels without a value.
inline Cube mixtures(const unmix::Endmembers& e, int64_t samples, int64_t lines, uint32_t seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> uniform(0, 1);
    std::normal_distribution<double> noise(0, 15);
    Cube cube(samples, lines, e.bands());
    for (int64_t y = 0; y < lines; ++y)
        for (int64_t x = 0; x < samples; ++x) {
            std::vector<double> a;
            double sum = 0;
            for (int k = 0; k < e.count(); ++k) {
                a.push_back(uniform(random) < 0.4 ? 0.0 : uniform(random));
                sum += a.back();
            }
            const double scale = uniform(random) < 0.3 ? 0.4 + uniform(random) : 1 / std::max(sum, 0.1);
            for (int b = 0; b < e.bands(); ++b) {
                double v = noise(random);
                for (int k = 0; k < e.count(); ++k)
                    v += scale * a[static_cast<size_t>(k)] *
                         e.spectra[static_cast<size_t>(k)][static_cast<size_t>(b)];
                cube.at(b, y, x) = static_cast<float>(v);
            }
        }
    return cube;
}

} // namespace hsi::test
