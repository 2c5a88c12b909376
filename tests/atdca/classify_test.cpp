// SPDX-License-Identifier: MIT
#include "atdca/atdca.h"
#include "core/error.h"
#include "support/memory_cube.h"

#include <gtest/gtest.h>

#include <cmath>

namespace hsi::test {
namespace {

using atdca::ClassifyOptions;

std::vector<float> spectrum_at(const Cube& cube, int64_t line, int64_t sample) {
    std::vector<float> x;
    for (int b = 0; b < cube.shape.bands; ++b)
        x.push_back(cube.at(b, line, sample));
    return x;
}

struct Maps {
    Cube map, scores;
};

Maps run(const Cube& scene, const std::vector<std::vector<float>>& targets, const ClassifyOptions& options,
         int64_t tile_samples = 0, int64_t tile_lines = 0) {
    const MemorySource source(scene);
    MemorySink map(scene.shape.samples, scene.shape.lines, 1),
        scores(scene.shape.samples, scene.shape.lines, static_cast<int>(targets.size()));
    stream::PassOptions pass;
    pass.lanes = 2;
    pass.tile_samples = tile_samples;
    pass.tile_lines = tile_lines;
    const auto operation = atdca::make_classification(targets, options);
    std::vector<stream::CubeSink*> sinks{&map};
    if (options.scores != ClassifyOptions::Scores::none) sinks.push_back(&scores);
    stream::run_pass(source, *operation, sinks, pass);
    return {std::move(map.cube), std::move(scores.cube)};
}

double angle(const std::vector<float>& a, const std::vector<float>& b) {
    const std::vector<double> x(a.begin(), a.end()), y(b.begin(), b.end());
    return atdca::spectral_angle(x.data(), y.data(), x.size());
}

TEST(AtdcaClassify, GivesEachPixelItsNearestTargetByAngle) {
    Cube scene = random_scene(45, 31, 16, 4, 0.1);
    make_invalid(scene, 3, 7, 2);
    std::vector<std::vector<float>> targets;
    for (int k = 0; k < 7; ++k)
        targets.push_back(spectrum_at(scene, 4 * k + 1, 5 * k + 3));
    ClassifyOptions options;
    options.max_angle = 6;
    options.scores = ClassifyOptions::Scores::angle;
    const Maps got = run(scene, targets, options);
    int unclassified = 0;
    for (int64_t l = 0; l < 31; ++l)
        for (int64_t s = 0; s < 45; ++s) {
            if (l == 3 && s == 7) {
                EXPECT_TRUE(std::isnan(got.map.at(0, l, s)) && std::isnan(got.scores.at(4, l, s)));
                continue;
            }
            double nearest = 1e9;
            int which = 0;
            for (int k = 0; k < 7; ++k) {
                const double a = angle(spectrum_at(scene, l, s), targets[static_cast<size_t>(k)]);
                EXPECT_NEAR(got.scores.at(k, l, s), a, 1e-4);
                if (a < nearest) {
                    nearest = a;
                    which = k + 1;
                }
            }
            EXPECT_EQ(got.map.at(0, l, s), nearest <= 6 ? static_cast<float>(which) : 0.0f) << l << ", " << s;
            unclassified += nearest > 6;
        }
    EXPECT_GT(unclassified, 0);
    for (const auto& [w, h] : {std::pair{7, 31}, std::pair{45, 1}, std::pair{16, 16}}) {
        const Maps tiled = run(scene, targets, options, w, h);
        EXPECT_TRUE(identical(got.map, tiled.map));
        EXPECT_TRUE(identical(got.scores, tiled.scores));
    }
}

TEST(AtdcaClassify, AbundancesAreOnesAndZerosAtTheTargetsAndRecoverMixtures) {
    Cube scene = random_scene(30, 20, 12, 6, 0.3);
    std::vector<std::vector<float>> targets;
    for (int k = 0; k < 4; ++k)
        targets.push_back(spectrum_at(scene, 3 * k, 5 * k));
    for (int b = 0; b < 12; ++b) {
        const auto i = static_cast<size_t>(b);
        scene.at(b, 19, 29) = 0.25f * targets[0][i] + 0.5f * targets[2][i] + 0.125f * targets[3][i];
    }
    ClassifyOptions options;
    options.scores = ClassifyOptions::Scores::abundance;
    const Maps got = run(scene, targets, options);
    for (int k = 0; k < 4; ++k)
        for (int j = 0; j < 4; ++j)
            EXPECT_NEAR(got.scores.at(j, 3 * k, 5 * k), j == k ? 1 : 0, 1e-5);
    const float want[4] = {0.25f, 0, 0.5f, 0.125f};
    for (int j = 0; j < 4; ++j)
        EXPECT_NEAR(got.scores.at(j, 19, 29), want[j], 1e-5);
    targets.push_back(targets[1]);
    EXPECT_THROW(run(scene, targets, options), Error);
}

TEST(AtdcaClassify, SpectralAngleKeepsItsDigits) {
    const double a[3] = {1, 2, 3}, b[3] = {2, 4, 6}, c[3] = {1, 2, 3 + 3e-9}, zero[3] = {0, 0, 0};
    EXPECT_NEAR(atdca::spectral_angle(a, b, 3), 0, 1e-14);
    EXPECT_NEAR(atdca::spectral_angle(a, c, 3), std::sqrt(5.0) / 14 * 3e-9 * 180 / std::acos(-1.0), 1e-12);
    const double x[2] = {1, 0}, y[2] = {0, 3}, minus[2] = {-5, 0};
    EXPECT_DOUBLE_EQ(atdca::spectral_angle(x, y, 2), 90);
    EXPECT_DOUBLE_EQ(atdca::spectral_angle(x, minus, 2), 180);
    EXPECT_TRUE(std::isnan(atdca::spectral_angle(a, zero, 3)));
}

} // namespace
} // namespace hsi::test
