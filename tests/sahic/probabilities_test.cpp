// SPDX-License-Identifier: MIT
// Probabilities of any origin: they are cleaned, and get the weights that gdal_hsi_sahic computes for the
// same scene, for every tiling.
#include "sahic/probabilities.h"

#include "stream/pipeline.h"
#include "stream/stacked_source.h"
#include "support/memory_cube.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace hsi::sahic {
namespace {

struct Planes {
    test::Cube p, a;
    ProbabilityFacts facts;
};

Planes pass_over(const test::Cube& probabilities, const test::Cube* scene, std::optional<WeightScene> weights,
                 int64_t tile = 0, int lanes = 1) {
    std::vector<std::shared_ptr<const stream::CubeSource>> sources{
        std::make_shared<test::MemorySource>(probabilities)};
    if (scene != nullptr) sources.push_back(std::make_shared<test::MemorySource>(*scene));
    const stream::StackedSource stacked(std::move(sources));
    const auto shape = probabilities.shape;
    ProbabilityPass operation(shape, shape.bands, std::move(weights));
    test::MemorySink p(shape.samples, shape.lines, operation.classes()), a(shape.samples, shape.lines, 1);
    stream::PassOptions pass;
    pass.lanes = lanes;
    pass.tile_samples = pass.tile_lines = tile;
    stream::run_pass(stacked, operation, {&p, &a}, pass);
    return {p.cube, a.cube, operation.facts()};
}

bool same(const test::Cube& a, const test::Cube& b) {
    return a.values.size() == b.values.size() &&
           std::memcmp(a.values.data(), b.values.data(), a.values.size() * sizeof(float)) == 0;
}

TEST(Probabilities, AreCleaned) {
    test::Cube p(4, 1, 3);
    const float values[3][4] = {
        {0.2f, -0.5f, 0.0f, 0.5f}, {0.3f, 2.0f, -1.0f, NAN}, {0.5f, 6.0f, 0.0f, 0.5f}};
    for (int k = 0; k < 3; ++k)
        for (int64_t x = 0; x < 4; ++x)
            p.at(k, 0, x) = values[k][x];
    const auto found = pass_over(p, nullptr, {});
    for (int k = 0; k < 3; ++k) {
        EXPECT_FLOAT_EQ(found.p.at(k, 0, 0), values[k][0]);
        EXPECT_TRUE(std::isnan(found.p.at(k, 0, 2)));
        EXPECT_TRUE(std::isnan(found.p.at(k, 0, 3)));
    }
    EXPECT_EQ(found.p.at(0, 0, 1), 0.0f);
    EXPECT_EQ(found.p.at(1, 0, 1), 0.25f);
    EXPECT_EQ(found.p.at(2, 0, 1), 0.75f);
    EXPECT_EQ(found.facts.valid, 2);
    EXPECT_EQ(found.facts.invalid, 2);
    EXPECT_EQ(found.facts.off, 1);
    EXPECT_FALSE(found.facts.labels(3));
    EXPECT_EQ(found.a.at(0, 0, 3), 1.0f);
}

TEST(Probabilities, OfOneBandHaveAComplement) {
    test::Cube p(4, 1, 1);
    p.values = {0.0f, 0.25f, 1.5f, NAN};
    const auto found = pass_over(p, nullptr, {});
    EXPECT_EQ(found.p.shape.bands, 2);
    EXPECT_EQ(found.p.at(0, 0, 0), 0.0f);
    EXPECT_EQ(found.p.at(1, 0, 0), 1.0f);
    EXPECT_EQ(found.p.at(1, 0, 1), 0.75f);
    EXPECT_EQ(found.p.at(0, 0, 2), 1.0f);
    EXPECT_EQ(found.facts.valid, 3);
    EXPECT_EQ(found.facts.off, 1);
}

TEST(Probabilities, ClassNumbersAreTold) {
    const auto labels = [](std::vector<float> values, int bands) {
        test::Cube p(static_cast<int64_t>(values.size()) / bands, 1, bands);
        p.values = std::move(values);
        return pass_over(p, nullptr, {}).facts.labels(bands);
    };
    EXPECT_TRUE(labels({0, 1, 2, 5}, 1));
    EXPECT_FALSE(labels({0, 1, 1, 0}, 1)); // a classifier that is always certain
    EXPECT_FALSE(labels({0, 1, 2.5f, 0}, 1));
    EXPECT_TRUE(labels({2, 3, 4, 2}, 2));
    EXPECT_FALSE(labels({0, 3, 4, 1}, 2)); // votes
}

/// The weights equal those of gdal_hsi_sahic's pass over the scene, which a model of one class without
/// anchors performs.
TEST(Probabilities, TheWeightsAreThoseOfTheSpectralPass) {
    auto scene = test::random_scene(37, 29, 6, 3);
    test::make_invalid(scene, 4, 5, 2);
    for (int b = 0; b < 6; ++b)
        scene.at(b, 20, 36) = 0;
    test::Cube p(37, 29, 2, 0.5f);
    float largest = 0;
    for (const float v : scene.values)
        if (std::isfinite(v)) largest = std::max(largest, std::fabs(v));
    for (const bool periodic : {false, true}) {
        WeightScene weights;
        weights.bands = 6;
        weights.scale = static_cast<double>(largest);
        if (periodic)
            for (int b = 0; b < 6; ++b) {
                for (int64_t x = 0; x < 37; ++x)
                    weights.first_line.push_back(scene.at(b, 0, x));
                for (int64_t y = 0; y < 29; ++y)
                    weights.first_sample.push_back(scene.at(b, y, 0));
            }
        auto model = std::make_shared<MlrModel>();
        model->scale = weights.scale;
        model->bands.resize(6);
        model->classes.resize(2);
        model->weights.assign(1, 0.0);
        SpectralOptions options;
        options.weight = true;
        options.first_line = weights.first_line;
        options.first_sample = weights.first_sample;
        const auto spectral = make_spectral_pass(model, options, 37, 29);
        test::MemorySink a(37, 29, 1);
        stream::run_pass(test::MemorySource(scene), *spectral, {&a}, stream::PassOptions());
        const auto whole = pass_over(p, &scene, weights);
        EXPECT_TRUE(same(whole.a, a.cube));
        EXPECT_EQ(whole.facts.invalid, 2);
        EXPECT_TRUE(std::isnan(whole.p.at(1, 4, 5)));
        EXPECT_TRUE(std::isnan(whole.p.at(0, 20, 36)));
        // The closed form for one pixel, as documented.
        double sum = 0;
        for (int b = 0; b < 6; ++b) {
            const double x = static_cast<double>(scene.at(b, 10, 12));
            const double dx = static_cast<double>(scene.at(b, 10, 13)) - x,
                         dy = static_cast<double>(scene.at(b, 11, 12)) - x;
            sum += (dx * dx + dy * dy) / (weights.scale * weights.scale);
        }
        EXPECT_NEAR(whole.a.at(0, 10, 12), 1 / (1 + std::sqrt(sum)), 1e-6);
        for (const int64_t tile : {5, 16})
            for (const int lanes : {1, 3}) {
                const auto tiles = pass_over(p, &scene, weights, tile, lanes);
                EXPECT_TRUE(same(tiles.a, whole.a)) << tile;
                EXPECT_EQ(tiles.facts.invalid, 2);
            }
    }
}

} // namespace
} // namespace hsi::sahic
