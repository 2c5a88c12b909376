// SPDX-License-Identifier: MIT
#include "parallel/thread_job.h"
#include "stream/pipeline.h"
#include "stream/statistics_scan.h"
#include "support/memory_cube.h"
#include "support/moment_reference.h"
#include "support/simd_targets.h"
#include "support/thread_ranks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

namespace hsi::test {
namespace {

stream::SceneStatistics scan(const Cube& cube, bool differences = true, int64_t tile_samples = 0,
                             int64_t tile_lines = 0, int lanes = 1) {
    const MemorySource source(cube);
    stream::PassOptions options;
    options.lanes = lanes;
    options.tile_samples = tile_samples;
    options.tile_lines = tile_lines;
    stream::StatisticsScan operation(cube.shape, differences ? stream::Statistics::differences
                                                             : stream::Statistics::moments);
    stream::run_pass(source, operation, {}, options);
    return operation.result();
}

TEST(Moments, AgreesWithTheDefinition) {
    for (auto [samples, lines, bands] : {std::tuple{150, 41, 3},
                                         {1, 20, 5},
                                         {9, 1, 11},
                                         {200, 9, 12},
                                         {193, 17, 13},
                                         {1500, 10, 4},
                                         {2049, 9, 6}}) {
        const Cube cube = random_scene(samples, lines, bands, 3);
        expect_close(scan(cube), moment_reference(cube), 1e-14);
    }
}

TEST(Moments, LeavesOutInvalidPixelsAndPairs) {
    for (auto [samples, lines] : {std::pair{150, 70}, {1100, 20}}) {
        Cube cube = random_scene(samples, lines, 7, 7);
        spoil(cube);
        expect_close(scan(cube), moment_reference(cube), 1e-14);
    }
}

// Lines are divided into octets. The test uses every width around one, two and three octets, with a hole at
// every position.
TEST(Moments, CutsLinesAnywhere) {
    for (int64_t samples = 2; samples <= 26; ++samples) {
        const Cube whole = random_scene(samples, 3, 4, 11);
        expect_close(scan(whole), moment_reference(whole), 1e-14);
        for (int64_t hole = 0; hole < samples; ++hole) {
            Cube cube = whole;
            make_invalid(cube, 1, hole, 2);
            expect_close(scan(cube), moment_reference(cube), 1e-14);
        }
    }
}

TEST(Moments, KeepsItsDigitsOnAHighLevel) {
    Cube cube = random_scene(140, 60, 10, 6, 0.02, 1.0);
    for (auto& x : cube.values)
        x += 30000.0f; // the spread is 1e-5 of the level
    expect_close(scan(cube), moment_reference(cube), 1e-12);
}

TEST(Moments, RanksComeToTheBitsOfOneProcess) {
    Cube cube = random_scene(2500, 50, 7, 9);
    spoil(cube);
    const auto alone = scan(cube);
    expect_close(alone, moment_reference(cube), 1e-14);
    // Tiles of the scene's width, and tiles whose neighbours are on another rank.
    for (const int size : {2, 3, 5})
        for (const int64_t tile_samples : {int64_t{1024}, int64_t{2048}, int64_t{4096}})
            on_ranks(size, [&](parallel::Ranks& ranks, CancelFlag&) {
                const parallel::ThreadJob job(ranks);
                const auto together = scan(cube, true, tile_samples, 16, 2);
                EXPECT_EQ(together.valid_pixels, alone.valid_pixels);
                EXPECT_EQ(together.invalid_pixels, alone.invalid_pixels);
                EXPECT_EQ(together.pairs, alone.pairs);
                EXPECT_EQ(together.mean, alone.mean);
                EXPECT_EQ(together.covariance, alone.covariance);
                EXPECT_EQ(together.differences, alone.differences);
            });
}

TEST(Moments, WithoutDifferencesIsTheSame) {
    Cube cube = random_scene(130, 30, 8, 2);
    spoil(cube);
    const auto with = scan(cube), without = scan(cube, false);
    EXPECT_EQ(with.valid_pixels, without.valid_pixels);
    auto want = moment_reference(cube);
    expect_close(with, want, 1e-14);
    want.differences.clear();
    want.pairs = 0;
    expect_close(without, want, 1e-14);
    EXPECT_TRUE(without.differences.empty());
    EXPECT_EQ(without.pairs, 0);
}

TEST(Moments, IsBitIdenticalForEveryTilingAndNumberOfThreads) {
    for (auto [width, height] : {std::pair{300, 101}, {2100, 30}}) {
        Cube cube = random_scene(width, height, 14, 8);
        spoil(cube);
        const auto whole = scan(cube);
        for (auto [samples, lines, lanes] :
             {std::tuple{1024, 8, 1}, {1024, 8, 3}, {1, 1, 2}, {2048, 16, 2}, {4096, 8, 4}}) {
            const auto tiled = scan(cube, true, samples, lines, lanes);
            EXPECT_EQ(tiled.mean, whole.mean);
            EXPECT_EQ(tiled.covariance, whole.covariance);
            EXPECT_EQ(tiled.differences, whole.differences);
            EXPECT_EQ(tiled.pairs, whole.pairs);
        }
    }
}

TEST(Moments, IsTheSameInEveryInstructionSetThatFuses) {
    Cube cube = random_scene(301, 37, 13, 12);
    spoil(cube);
    const auto want = moment_reference(cube);
    std::vector<double> fused, apart;
    for_every_simd([&](const std::string& name) {
        const auto got = scan(cube);
        expect_close(got, want, 1e-14);
        auto& first = is_fused(name) ? fused : apart;
        auto both = got.differences;
        both.insert(both.end(), got.covariance.begin(), got.covariance.end());
        if (first.empty()) first = both;
        EXPECT_EQ(both, first) << name;
    });
}

TEST(Moments, OfScenesWithoutPairsOrPixels) {
    Cube cube = random_scene(1, 20, 4, 9);
    auto r = scan(cube);
    EXPECT_EQ(r.pairs, 0);
    EXPECT_TRUE(std::isnan(r.differences[0]));
    for (int64_t l = 0; l < 20; ++l)
        make_invalid(cube, l, 0, 2);
    r = scan(cube);
    EXPECT_EQ(r.valid_pixels, 0);
    EXPECT_EQ(r.empty_bands(), std::vector<int>{2});
    EXPECT_TRUE(std::isnan(r.mean[0]) && std::isnan(r.covariance[5]));
}

} // namespace
} // namespace hsi::test
