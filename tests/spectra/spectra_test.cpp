// SPDX-License-Identifier: MIT
#include "spectra/spectra.h"
#include "stream/pipeline.h"
#include "support/memory_cube.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace hsi::test {
namespace {

using spectra::ClassSpectra;
using spectra::Labels;

constexpr int64_t samples = 150, lines = 47;
constexpr int bands = 9;
constexpr size_t classes = 4;

Labels some_labels() {
    Labels labels;
    labels.samples = samples;
    labels.classes = classes;
    std::mt19937 random(5);
    for (int64_t i = 0; i < samples * lines; ++i)
        if (random() % 3 == 0) {
            labels.index.push_back(i);
            labels.class_of.push_back(
                static_cast<uint16_t>(random() % (classes - 1))); // the last class has no pixels
        }
    return labels;
}

Cube scene_with_holes() {
    Cube cube = random_scene(samples, lines, bands, 2, 0.02, 4000);
    cube.at(3, 10, 20) = std::numeric_limits<float>::quiet_NaN();
    cube.at(0, 11, 30) = std::numeric_limits<float>::infinity();
    for (int b = 0; b < bands; ++b)
        for (int64_t s = 0; s < samples; ++s)
            cube.at(b, 5, s) = 0;
    return cube;
}

std::vector<ClassSpectra> measured(const Cube& cube, const Labels& labels, int lanes, int64_t tile) {
    const MemorySource source(cube);
    spectra::ClassScan scan(bands, labels);
    stream::PassOptions pass;
    pass.lanes = lanes;
    pass.tile_lines = pass.tile_samples = tile;
    const auto plan = stream::plan_pass(source, scan, pass);
    const auto tiles = scan.tiles(plan);
    pass.only = &tiles;
    stream::run_pass(source, scan, {}, plan, pass);
    return scan.result();
}

bool valid_at(const Cube& cube, int64_t index) {
    bool zero = true;
    for (int b = 0; b < bands; ++b) {
        const float v = cube.at(b, index / samples, index % samples);
        if (!std::isfinite(v)) return false;
        zero = zero && v == 0;
    }
    return !zero;
}

TEST(Spectra, MeansAndDeviationsAreThoseOfTheDefinition) {
    const Cube cube = scene_with_holes();
    const Labels labels = some_labels();
    const auto found = measured(cube, labels, 1, 0);
    ASSERT_EQ(found.size(), classes);
    for (size_t c = 0; c < classes; ++c) {
        int64_t pixels = 0, invalid = 0;
        for (size_t i = 0; i < labels.index.size(); ++i)
            if (labels.class_of[i] == c) ++(valid_at(cube, labels.index[i]) ? pixels : invalid);
        EXPECT_EQ(found[c].pixels, pixels);
        EXPECT_EQ(found[c].invalid, invalid);
        for (int b = 0; b < bands; ++b) {
            const auto k = static_cast<size_t>(b);
            if (pixels == 0) {
                EXPECT_TRUE(std::isnan(found[c].mean[k]) && std::isnan(found[c].deviation[k]));
                continue;
            }
            double mean = 0, squares = 0; // in two passes
            for (int pass = 0; pass < 2; ++pass)
                for (size_t i = 0; i < labels.index.size(); ++i) {
                    if (labels.class_of[i] != c || !valid_at(cube, labels.index[i])) continue;
                    const auto v =
                        static_cast<double>(cube.at(b, labels.index[i] / samples, labels.index[i] % samples));
                    if (pass == 0)
                        mean += v / static_cast<double>(pixels);
                    else
                        squares += (v - mean) * (v - mean);
                }
            const double deviation = std::sqrt(squares / static_cast<double>(pixels - 1));
            EXPECT_NEAR(found[c].mean[k], mean, 1e-12 * mean);
            EXPECT_NEAR(found[c].deviation[k], deviation, 1e-9 * deviation);
        }
    }
    EXPECT_GT(found[0].invalid, 0);
}

TEST(Spectra, TilesAndLanesDoNotMatter) {
    const Cube cube = scene_with_holes();
    const Labels labels = some_labels();
    const auto once = measured(cube, labels, 1, 0);
    for (const auto& [lanes, tile] : {std::pair{1, 13}, {3, 7}, {4, 64}}) {
        const auto again = measured(cube, labels, lanes, tile);
        for (size_t c = 0; c + 1 < classes; ++c) {
            EXPECT_EQ(again[c].pixels, once[c].pixels);
            EXPECT_EQ(again[c].mean, once[c].mean); // equal bits
            EXPECT_EQ(again[c].deviation, once[c].deviation);
        }
    }
}

TEST(Spectra, OnePixelHasNoDeviation) {
    const Cube cube = random_scene(samples, lines, bands);
    Labels labels;
    labels.samples = samples;
    labels.index = {77};
    labels.class_of = {0};
    labels.classes = 1;
    const auto found = measured(cube, labels, 2, 8);
    EXPECT_EQ(found[0].pixels, 1);
    EXPECT_EQ(found[0].mean[2], static_cast<double>(cube.at(2, 0, 77)));
    EXPECT_TRUE(std::isnan(found[0].deviation[2]));
}

TEST(Spectra, EveryPixelIsKeptAsItIs) {
    const Cube cube = scene_with_holes();
    const Labels labels = some_labels();
    const MemorySource source(cube);
    spectra::PixelScan scan(bands, labels);
    stream::PassOptions pass;
    pass.lanes = 3;
    pass.tile_lines = pass.tile_samples = 11;
    stream::run_pass(source, scan, {}, pass);
    for (size_t i = 0; i < labels.index.size(); ++i) {
        const auto spectrum = scan.spectrum(i);
        ASSERT_EQ(spectrum.empty(), !valid_at(cube, labels.index[i]));
        for (size_t b = 0; b < spectrum.size(); ++b)
            EXPECT_EQ(static_cast<float>(spectrum[b]),
                      cube.at(static_cast<int>(b), labels.index[i] / samples, labels.index[i] % samples));
    }
}

} // namespace
} // namespace hsi::test
