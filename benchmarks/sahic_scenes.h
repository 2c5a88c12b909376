// SPDX-License-Identifier: MIT
// The two scenes of paper 003 for its tables: sizes, parameters and the paper's times. Also makes synthetic
// scenes with these sizes.
#pragma once

#include "model/training_set.h"
#include "sahic/sahic.h"
#include "support/memory_cube.h"

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace hsi::sahic {

inline const char* const kernel_names[] = {"q", "fixq", "nu_aux3_sum", "Vs", "V4", "V5"};

struct Size {
    const char* name;
    int lines, samples, bands, classes, training;
    double delta, lambda;
    double k20c, c2075; ///< seconds of the whole process in paper 003, Tables V and VII
    /// Seconds of the kernels of one iteration on the K20c, Table VIII: q, fixq, nu_aux3_sum, Vs, V4, V5.
    double kernels[6];
    size_t pixels() const { return static_cast<size_t>(lines) * static_cast<size_t>(samples); }
    /// Returns the class of a pixel. The classes form patches of 17 x 23 pixels.
    int truth(size_t pixel) const {
        const size_t y = pixel / static_cast<size_t>(samples), x = pixel % static_cast<size_t>(samples);
        return static_cast<int>((y / 17 + x / 23) % static_cast<size_t>(classes));
    }
    MrfOptions field() const {
        MrfOptions o;
        o.lambda = lambda;
        return o;
    }
};
inline const Size sizes[] = {
    {"Pavia University", 610, 340, 103, 9, 360, 0.35, 1, 10.85, 17.73, {2e-5, 3e-5, 3e-5, 4e-5, 6e-5, 17e-5}},
    {"Indian Pines", 145, 145, 200, 16, 1043, 0.8, 2, 2.95, 4.62, {2e-5, 4e-5, 3e-5, 5e-5, 15e-5, 31e-5}}};

/// The differences between two results for the same problem, [class][pixel].
struct Agreement {
    double largest = 0; ///< greatest difference of two probabilities; infinite if one of them is NaN
    int64_t labels = 0, pixels = 0;
    Agreement(const std::vector<float>& a, const std::vector<float>& b, int classes)
        : pixels(static_cast<int64_t>(a.size()) / classes) {
        for (int64_t i = 0; i < pixels; ++i) {
            const auto at = [&](int k) { return static_cast<size_t>(k * pixels + i); };
            int best_a = 0, best_b = 0;
            for (int k = 0; k < classes; ++k) {
                const double d = std::fabs(static_cast<double>(a[at(k)]) - static_cast<double>(b[at(k)]));
                if (!(d <= largest)) largest = std::isnan(d) ? INFINITY : d;
                if (a[at(k)] > a[at(best_a)]) best_a = k;
                if (b[at(k)] > b[at(best_b)]) best_b = k;
            }
            labels += best_a != best_b;
        }
    }
    /// Our result has single precision: after 200 iterations, five digits are correct. A label may differ if
    /// two classes are equally probable.
    bool good() const { return largest < 1e-3 && 10000 * labels <= pixels; }
};

/// The inputs of a Markov random field.
struct FieldInput {
    std::vector<float> p, weight;
    std::vector<uint16_t> fixed;
    MrfProblem problem(const Size& s, bool periodic) const {
        MrfProblem m;
        m.classes = s.classes;
        m.lines = s.lines;
        m.samples = s.samples;
        m.p = p.data();
        m.weight = weight.data();
        m.fixed = fixed.data();
        m.periodic = periodic;
        m.core = {0, 0, s.samples, s.lines};
        return m;
    }
};

/// Makes noisy probabilities of patches, training pixels and weights.
struct MadeField : FieldInput {
    explicit MadeField(const Size& s) {
        p.resize(static_cast<size_t>(s.classes) * s.pixels());
        weight.resize(s.pixels());
        fixed.assign(s.pixels(), 0);
        std::mt19937 random(7);
        std::uniform_real_distribution<float> uniform(0.0f, 1.0f);
        for (size_t i = 0; i < s.pixels(); ++i) {
            float sum = 0;
            for (int k = 0; k < s.classes; ++k) {
                const float v = std::exp(3.0f * uniform(random) + (k == s.truth(i) ? 1.2f : 0.0f));
                p[static_cast<size_t>(k) * s.pixels() + i] = v;
                sum += v;
            }
            for (int k = 0; k < s.classes; ++k)
                p[static_cast<size_t>(k) * s.pixels() + i] /= sum;
            weight[i] = 0.3f + 0.6f * uniform(random);
        }
        for (int n = 0; n < s.training; ++n) {
            const size_t i = random() % s.pixels();
            fixed[i] = static_cast<uint16_t>(1 + s.truth(i));
        }
    }
};

/// A scene whose classes are clouds around overlapping spectra, and its training pixels.
struct SpectralScene {
    test::Cube cube;
    model::TrainingSet set;
    std::vector<uint16_t> fixed; ///< training labels, in the layout of MrfProblem
    SpectralScene(const Size& s, int training) : cube(s.samples, s.lines, s.bands), fixed(s.pixels(), 0) {
        std::mt19937 random(3);
        std::normal_distribution<float> normal;
        std::vector<std::vector<float>> spectrum(static_cast<size_t>(s.classes));
        for (int b = 0; b < s.bands; ++b) {
            const float common = 2000 + 400 * normal(random);
            for (auto& v : spectrum)
                v.push_back(common + 60 * normal(random));
        }
        std::vector<float> noise(8191);
        for (auto& v : noise)
            v = 250 * normal(random);
        size_t n = 0;
        for (int b = 0; b < s.bands; ++b)
            for (size_t i = 0; i < s.pixels(); ++i)
                cube.values[static_cast<size_t>(b) * s.pixels() + i] =
                    spectrum[static_cast<size_t>(s.truth(i))][static_cast<size_t>(b)] +
                    noise[(n += 1 + n % 7) % noise.size()];
        set.features = s.bands;
        set.scale = 5000;
        for (int c = 0; c < s.classes; ++c) {
            ModelClass one;
            one.value = c + 1;
            set.classes.push_back(one);
        }
        for (int j = 0; j < training; ++j) {
            const size_t i = static_cast<size_t>(j) * 7919 % s.pixels();
            fixed[i] = static_cast<uint16_t>(1 + s.truth(i));
            set.label.push_back(fixed[i]);
            for (int b = 0; b < s.bands; ++b)
                set.values.push_back(cube.values[static_cast<size_t>(b) * s.pixels() + i]);
        }
    }
};

} // namespace hsi::sahic
