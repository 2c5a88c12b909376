// SPDX-License-Identifier: MIT
#include "math/rbf_sums.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace hsi::math {
namespace {

struct Machine {
    size_t features, outputs;
    std::vector<std::vector<double>> vectors; ///< one entry per part, feature by feature
    std::vector<std::vector<double>> weights; ///< [output][vector], part by part
    double gamma = 0.7;
};

Machine random_machine(size_t features, size_t outputs, const std::vector<size_t>& parts,
                       std::mt19937& random) {
    std::normal_distribution<double> normal;
    Machine m{features, outputs, {}, {}};
    for (const size_t count : parts) {
        m.vectors.emplace_back(count * features);
        m.weights.emplace_back(count * outputs);
        for (auto& v : m.vectors.back())
            v = normal(random);
        for (auto& w : m.weights.back())
            w = normal(random);
    }
    return m;
}

/// Returns f_o(x) of one part, by the definition.
double sum_of(const Machine& m, size_t part, size_t output, const double* x, int width) {
    const size_t count = m.weights[part].size() / m.outputs;
    double sum = 0;
    for (size_t v = 0; v < count; ++v) {
        double distance = 0;
        for (size_t f = 0; f < m.features; ++f)
            distance +=
                std::pow(x[static_cast<ptrdiff_t>(f) * width] - m.vectors[part][v * m.features + f], 2);
        sum += m.weights[part][output * count + v] * std::exp(-m.gamma * distance);
    }
    return sum;
}

TEST(RbfSums, AgreeWithTheDefinitionPartByPart) {
    std::mt19937 random(3);
    std::normal_distribution<double> normal;
    const auto& kernels = rbf_kernels();
    const auto width = static_cast<size_t>(kernels.width);
    for (auto [features, outputs] : {std::pair<size_t, size_t>{1, 1}, {3, 2}, {17, 5}}) {
        const Machine m = random_machine(features, outputs, {1, 0, 4, 7, 9}, random);
        RbfPanels panels(static_cast<int>(features), static_cast<int>(outputs), m.gamma);
        std::vector<int64_t> begin{0};
        for (size_t part = 0; part < m.vectors.size(); ++part) {
            const size_t count = m.weights[part].size() / outputs, n = features;
            panels.append(
                count, [&](size_t v, size_t f) { return m.vectors[part][v * n + f]; },
                [&](size_t o, size_t v) { return m.weights[part][o * count + v]; });
            begin.push_back(panels.groups());
        }
        EXPECT_EQ(begin, (std::vector<int64_t>{0, 1, 1, 2, 4, 7}));
        std::vector<double> x(features * width), x2(width, 0.0);
        for (size_t i = 0; i < x.size(); ++i) {
            x[i] = normal(random);
            x2[i % width] += x[i] * x[i];
        }
        for (size_t part = 0; part < m.vectors.size(); ++part) {
            std::vector<double> sums(outputs * width, 0.5); // the sums are added to
            kernels.add_sums(panels, begin[part], begin[part + 1], x.data(), x2.data(), sums.data());
            for (size_t o = 0; o < outputs; ++o)
                for (size_t i = 0; i < width; ++i)
                    EXPECT_NEAR(sums[o * width + i], 0.5 + sum_of(m, part, o, x.data() + i, kernels.width),
                                1e-12);
        }
    }
}

TEST(RbfSums, APixelDoesNotDependOnItsPlace) {
    std::mt19937 random(4);
    const Machine m = random_machine(6, 3, {13}, random);
    RbfPanels panels(6, 3, m.gamma);
    panels.append(
        13, [&](size_t v, size_t f) { return m.vectors[0][v * 6 + f]; },
        [&](size_t o, size_t v) { return m.weights[0][o * 13 + v]; });
    const auto& kernels = rbf_kernels();
    const auto width = static_cast<size_t>(kernels.width);
    std::vector<double> x(6 * width), x2(width, 0.0), sums(3 * width, 0.0);
    for (size_t f = 0; f < 6; ++f)
        for (size_t i = 0; i < width; ++i) {
            x[f * width + i] = 0.3 * static_cast<double>(f) - 0.4;
            x2[i] += x[f * width + i] * x[f * width + i];
        }
    kernels.add_sums(panels, 0, panels.groups(), x.data(), x2.data(), sums.data());
    for (size_t o = 0; o < 3; ++o)
        for (size_t i = 1; i < width; ++i)
            EXPECT_EQ(sums[o * width + i], sums[o * width]);
}

} // namespace
} // namespace hsi::math
