// SPDX-License-Identifier: MIT
// Synthetic probabilities for tests of the Markov random field.
#pragma once

#include "sahic/sahic.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace hsi::sahic {

/// Noisy probabilities of a scene of patches, with weights, training pixels and invalid pixels.
struct Scene {
    int classes;
    int64_t lines, samples;
    std::vector<float> p, weight;
    std::vector<uint16_t> fixed;

    Scene(int k, int64_t h, int64_t w, uint32_t seed, bool holes = true)
        : classes(k), lines(h), samples(w), p(static_cast<size_t>(k * h * w)),
          weight(static_cast<size_t>(h * w)), fixed(static_cast<size_t>(h * w), 0) {
        std::mt19937 random(seed);
        std::uniform_real_distribution<float> uniform(0.0f, 1.0f);
        for (int64_t y = 0; y < h; ++y)
            for (int64_t x = 0; x < w; ++x) {
                const auto i = static_cast<size_t>(y * w + x);
                const int truth = static_cast<int>((y / 7 + x / 9) % k);
                float sum = 0;
                for (int c = 0; c < k; ++c) {
                    const float v = std::exp(3.0f * uniform(random) + (c == truth ? 1.2f : 0.0f));
                    p[static_cast<size_t>(c) * weight.size() + i] = v;
                    sum += v;
                }
                for (int c = 0; c < k; ++c)
                    p[static_cast<size_t>(c) * weight.size() + i] /= sum;
                weight[i] = 0.3f + 0.6f * uniform(random);
                const float draw = uniform(random);
                if (draw < 0.05f) fixed[i] = static_cast<uint16_t>(1 + truth);
                if (holes && (draw > 0.96f || (y > 3 && y < 8 && x > 4 && x < 10)))
                    for (int c = 0; c < k; ++c)
                        p[static_cast<size_t>(c) * weight.size() + i] =
                            std::numeric_limits<float>::quiet_NaN();
            }
    }
    MrfProblem problem(bool periodic = false) const {
        MrfProblem m;
        m.classes = classes;
        m.lines = lines;
        m.samples = samples;
        m.p = p.data();
        m.weight = weight.data();
        m.fixed = fixed.data();
        m.periodic = periodic;
        m.core = {0, 0, samples, lines};
        return m;
    }
    std::vector<float> solve(MrfSolver& solver, bool periodic, MrfResiduals* r = nullptr) const {
        std::vector<float> q(p.size());
        const auto residuals = solver.solve(problem(periodic), q.data(), nullptr);
        if (r) *r = residuals;
        return q;
    }
    std::vector<float> solve(const MrfOptions& o, bool periodic, int threads = 2,
                             MrfResiduals* r = nullptr) const {
        return solve(*make_mrf_solver(o, {classes, lines, samples}, threads), periodic, r);
    }
    /// Returns the scene of a tile with this window.
    Scene part(const Rect& window) const {
        Scene cut(classes, window.h, window.w, 1);
        for (int64_t y = 0; y < window.h; ++y)
            for (int64_t x = 0; x < window.w; ++x) {
                const auto from = static_cast<size_t>((window.y + y) * samples + window.x + x),
                           to = static_cast<size_t>(y * window.w + x);
                for (size_t k = 0; k < static_cast<size_t>(classes); ++k)
                    cut.p[k * cut.weight.size() + to] = p[k * weight.size() + from];
                cut.weight[to] = weight[from];
                cut.fixed[to] = fixed[from];
            }
        return cut;
    }
};

} // namespace hsi::sahic
