// SPDX-License-Identifier: MIT
// Scenes with overlapping classes, and models for them.
#pragma once

#include "support/memory_cube.h"
#include "svm/svm.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace hsi::test {

struct ClassScene {
    Cube cube;
    std::vector<uint16_t> truth; ///< one per pixel
};

/// Returns a scene in which every class is a cloud around its own spectrum; `spread` controls the overlap.
/// Values are about 1000, as reflectances times 10,000 are.
inline ClassScene class_scene(int64_t samples, int64_t lines, int bands, int classes, double spread,
                              uint32_t seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    std::vector<std::vector<double>> spectrum(static_cast<size_t>(classes),
                                              std::vector<double>(static_cast<size_t>(bands)));
    for (auto& s : spectrum)
        for (auto& v : s)
            v = 1000 + 300 * normal(random);
    ClassScene scene{Cube(samples, lines, bands), {}};
    for (int64_t l = 0; l < lines; ++l)
        for (int64_t s = 0; s < samples; ++s) {
            const auto c = static_cast<size_t>(random() % static_cast<unsigned>(classes));
            scene.truth.push_back(static_cast<uint16_t>(3 * c + 2)); // class values differ from 1, 2, 3
            for (int b = 0; b < bands; ++b)
                scene.cube.at(b, l, s) =
                    static_cast<float>(spectrum[c][static_cast<size_t>(b)] + 300 * spread * normal(random));
        }
    return scene;
}

/// Returns an untrained model: support vectors are pixels of the scene, coefficients are random, and decision
/// values have both signs. For tests and benchmarks without LIBSVM.
inline svm::Model made_model(const ClassScene& scene, int classes, int vectors_of_class, double gamma,
                             double c, bool probability, uint32_t seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> uniform;
    const auto& shape = scene.cube.shape;
    svm::Model m;
    for (int b = 0; b < shape.bands; ++b) {
        const float* band = scene.cube.view().row(b, 0);
        const auto [low, high] = std::minmax_element(band, band + shape.pixels());
        m.minimum.push_back(static_cast<double>(*low));
        m.maximum.push_back(static_cast<double>(*high));
        m.bands.push_back(b + 1);
    }
    m.gamma = gamma;
    m.c = c;
    for (int k = 0; k < classes; ++k) {
        svm::ModelClass one;
        one.value = 3 * k + 2;
        m.classes.push_back(one);
        m.support_count.push_back(vectors_of_class + k % 3);
        for (int v = 0; v < m.support_count.back(); ++v) {
            const auto pixel = static_cast<int64_t>(random() % static_cast<uint64_t>(shape.pixels()));
            for (int b = 0; b < shape.bands; ++b)
                m.support_vectors.push_back(
                    svm::scaled(scene.cube.at(b, pixel / shape.samples, pixel % shape.samples),
                                m.minimum[static_cast<size_t>(b)], m.factor(b)));
        }
    }
    // Coefficients of a class are positive against later classes, and negative against earlier classes.
    for (int other = 0; other + 1 < classes; ++other)
        for (int k = 0; k < classes; ++k)
            for (int v = 0; v < m.support_count[static_cast<size_t>(k)]; ++v)
                m.coefficients.push_back((other < k ? -1 : 1) * (random() % 4 ? uniform(random) * c : c));
    for (int p = 0; p < m.pair_count(); ++p) {
        m.rho.push_back(uniform(random) - 0.5);
        if (probability) {
            m.prob_a.push_back(-1 - 2 * uniform(random));
            m.prob_b.push_back(uniform(random) - 0.5);
        }
    }
    return m;
}

} // namespace hsi::test
