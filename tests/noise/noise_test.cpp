// SPDX-License-Identifier: MIT
// The methods find known noise and stripes. The scan has equal bits for every tiling and thread count.
#include "noise/noise.h"

#include "core/error.h"
#include "stream/pipeline.h"
#include "support/memory_cube.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>
#include <tuple>
#include <vector>

namespace hsi::test {
namespace {

using noise::BlockMethod;

constexpr int bands = 24;
constexpr int64_t samples = 130, lines = 120;

/// Returns three smoothly mixed materials with white noise of 0.5 + 0.1 b.
Cube noisy_scene(double stripe = 0) {
    std::mt19937 random(5);
    std::normal_distribution<double> normal;
    std::vector<double> columns;
    for (int64_t s = 0; s < samples; ++s)
        columns.push_back(stripe * normal(random));
    Cube cube(samples, lines, bands);
    for (int64_t l = 0; l < lines; ++l)
        for (int64_t s = 0; s < samples; ++s) {
            const auto x = static_cast<double>(s), y = static_cast<double>(l);
            const double a = 1 + std::sin(x / 20) * std::cos(y / 30), c = 1 + std::cos(x / 25 + y / 17);
            for (int b = 0; b < bands; ++b)
                cube.at(b, l, s) = static_cast<float>(
                    100 + 30 * a * (1 + std::sin(b / 6.0)) + 20 * c * (1 + std::cos(b / 9.0)) +
                    (0.5 + 0.1 * b) * normal(random) + columns[static_cast<size_t>(s)]);
        }
    return cube;
}

std::vector<noise::Neighbours> neighbours() {
    std::vector<noise::Neighbours> all;
    for (int b = 0; b < bands; ++b)
        all.push_back(b == 0           ? noise::Neighbours{1, 2}
                      : b == bands - 1 ? noise::Neighbours{bands - 3, bands - 2}
                                       : noise::Neighbours{b - 1, b + 1});
    return all;
}

std::unique_ptr<noise::NoiseScan> scanned(const Cube& cube, BlockMethod method, int block = 8, int lanes = 1,
                                          int64_t width = samples, int64_t height = lines) {
    MemorySource source(cube);
    stream::PassOptions pass;
    pass.lanes = lanes;
    pass.tile_samples = width;
    pass.tile_lines = height;
    auto scan = noise::make_scan(cube.shape, method, block, neighbours());
    stream::run_pass(source, *scan, {}, pass);
    return scan;
}

stream::SceneStatistics statistics_of(const Cube& cube, stream::Statistics what) {
    MemorySource source(cube);
    stream::StatisticsScan scan(cube.shape, what);
    stream::run_pass(source, scan, {}, {});
    return scan.result();
}

void expect_near_truth(const std::vector<double>& found, double share) {
    for (int b = 0; b < bands; ++b)
        EXPECT_NEAR(found[static_cast<size_t>(b)], 0.5 + 0.1 * b, share * (0.5 + 0.1 * b)) << b;
}

TEST(Noise, IsFoundAgain) {
    const auto cube = noisy_scene();
    const auto regression = noise::by_regression(statistics_of(cube, stream::Statistics::moments));
    expect_near_truth(regression.noise, 0.12);
    EXPECT_GT(regression.residual[0], regression.noise[0]);
    for (const auto method : {BlockMethod::residual, BlockMethod::ssdc})
        expect_near_truth(scanned(cube, method)->blocks().noise, 0.25);
}

TEST(Noise, NeedsMorePixelsThanBands) {
    Cube cube(5, 5, bands);
    const auto whole = noisy_scene();
    for (int b = 0; b < bands; ++b)
        for (int64_t l = 0; l < 5; ++l)
            for (int64_t s = 0; s < 5; ++s)
                cube.at(b, l, s) = whole.at(b, l, s);
    EXPECT_THROW(noise::by_regression(statistics_of(cube, stream::Statistics::moments)), Error);
}

TEST(Noise, StripesAreFound) {
    const auto clean = scanned(noisy_scene(), BlockMethod::none)->stripes(),
               striped = scanned(noisy_scene(3), BlockMethod::none)->stripes();
    for (size_t b = 0; b < bands; ++b) {
        EXPECT_NEAR(striped.stripe[b], 3, 0.9) << b;
        EXPECT_LT(clean.stripe[b], 0.5) << b;
        EXPECT_GT(striped.share[b], 0.5) << b;
        EXPECT_LT(clean.share[b], 0.1) << b;
    }
}

TEST(Noise, ScanHasTheSameBitsForEveryTiling) {
    auto cube = noisy_scene(1);
    make_invalid(cube, 17, 33, 4);
    for (const auto method : {BlockMethod::residual, BlockMethod::ssdc, BlockMethod::deviations}) {
        const auto whole = scanned(cube, method, 5);
        for (const auto& [lanes, width, height] :
             {std::tuple<int, int64_t, int64_t>(1, 10, 20), std::tuple<int, int64_t, int64_t>(3, 65, 40)}) {
            const auto tiled = scanned(cube, method, 5, lanes, width, height);
            EXPECT_EQ(whole->blocks().noise, tiled->blocks().noise);
            EXPECT_EQ(whole->blocks().residual, tiled->blocks().residual);
            EXPECT_EQ(whole->stripes().stripe, tiled->stripes().stripe);
            EXPECT_EQ(whole->stripes().share, tiled->stripes().share);
        }
    }
}

TEST(Noise, Median) {
    EXPECT_EQ(noise::median({3, 1, 2}), 2);
    EXPECT_EQ(noise::median({4, 1, 3, 2}), 2.5);
    EXPECT_TRUE(std::isnan(noise::median({})));
}

} // namespace
} // namespace hsi::test
