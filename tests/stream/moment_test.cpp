// SPDX-License-Identifier: MIT
#include "stream/moment_scan.h"
#include "stream/pipeline.h"
#include "support/memory_cube.h"
#include "support/simd_targets.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <tuple>

namespace hsi::test {
namespace {

stream::SceneMoments scan(const Cube& cube, bool differences = true, int64_t tile_samples = 0,
                          int64_t tile_lines = 0, int lanes = 1) {
    const MemorySource source(cube);
    stream::PassOptions options;
    options.lanes = lanes;
    options.tile_samples = tile_samples;
    options.tile_lines = tile_lines;
    stream::MomentScan operation(cube.shape, differences);
    stream::run_pass(source, operation, {}, options);
    return operation.result();
}

/// Straight from the definition, in long double.
stream::SceneMoments reference(const Cube& cube) {
    const auto n = static_cast<size_t>(cube.shape.bands);
    const auto pixels = static_cast<size_t>(cube.shape.pixels());
    const auto value = [&](size_t b, size_t p) {
        return static_cast<long double>(cube.values[b * pixels + p]);
    };
    stream::SceneMoments r;
    std::vector<char> valid(pixels);
    for (size_t p = 0; p < pixels; ++p) {
        bool finite = true, zero = true;
        for (size_t b = 0; b < n; ++b) {
            finite = finite && std::isfinite(cube.values[b * pixels + p]);
            zero = zero && value(b, p) == 0;
        }
        valid[p] = finite && !zero;
        ++(valid[p] ? r.valid_pixels : r.invalid_pixels);
    }
    std::vector<long double> mean(n, 0), products(n * n, 0), differences(n * n, 0);
    for (size_t p = 0; p < pixels; ++p)
        for (size_t b = 0; b < n && valid[p]; ++b)
            mean[b] += value(b, p) / static_cast<long double>(r.valid_pixels);
    for (size_t p = 0; p < pixels; ++p) {
        if (!valid[p]) continue;
        const bool pair = (p + 1) % static_cast<size_t>(cube.shape.samples) != 0 && valid[p + 1];
        r.pairs += pair;
        for (size_t a = 0; a < n; ++a)
            for (size_t b = 0; b < n; ++b) {
                products[a * n + b] += (value(a, p) - mean[a]) * (value(b, p) - mean[b]);
                if (pair)
                    differences[a * n + b] +=
                        (value(a, p + 1) - value(a, p)) * (value(b, p + 1) - value(b, p));
            }
    }
    for (size_t b = 0; b < n; ++b)
        r.mean.push_back(static_cast<double>(mean[b]));
    for (size_t i = 0; i < n * n; ++i) {
        r.covariance.push_back(static_cast<double>(products[i] / static_cast<long double>(r.valid_pixels)));
        r.differences.push_back(static_cast<double>(differences[i] / static_cast<long double>(r.pairs)));
    }
    return r;
}

void expect_matrix(const std::vector<double>& got, const std::vector<double>& want, size_t n,
                   double tolerance) {
    ASSERT_EQ(got.size(), n * n);
    for (size_t a = 0; a < n; ++a)
        for (size_t b = 0; b < n; ++b)
            EXPECT_NEAR(got[a * n + b], want[a * n + b],
                        tolerance * std::sqrt(want[a * n + a] * want[b * n + b]))
                << a << "," << b;
}

void expect_close(const stream::SceneMoments& got, const stream::SceneMoments& want, double tolerance) {
    const size_t n = want.mean.size();
    EXPECT_EQ(got.valid_pixels, want.valid_pixels);
    EXPECT_EQ(got.invalid_pixels, want.invalid_pixels);
    EXPECT_EQ(got.pairs, want.pairs);
    for (size_t b = 0; b < n; ++b)
        EXPECT_NEAR(got.mean[b], want.mean[b], 1e-15 * std::fabs(want.mean[b]));
    expect_matrix(got.covariance, want.covariance, n, tolerance);
    if (want.pairs > 0) expect_matrix(got.differences, want.differences, n, tolerance);
}

/// Holes, infinities, zeros; also beside the borders of blocks.
void spoil(Cube& cube) {
    const int64_t samples = cube.shape.samples, lines = cube.shape.lines;
    for (int64_t l = lines / 4; l < lines / 2; ++l)
        for (int64_t s = samples / 5; s < samples / 2; s += 1 + l % 3)
            make_invalid(cube, l, s, static_cast<int>((l + s) % cube.shape.bands));
    make_invalid(cube, lines - 1, samples - 1, 1, std::numeric_limits<float>::infinity());
    for (int b = 0; b < cube.shape.bands; ++b)
        cube.at(b, lines - 2, samples / 2) = 0;
    if (samples > 1024) {
        make_invalid(cube, 3, 1023, 0);
        make_invalid(cube, 5, 1024, 2);
    }
}

TEST(MomentScan, AgreesWithTheDefinition) {
    for (auto [samples, lines, bands] : {std::tuple{150, 41, 3},
                                         {1, 20, 5},
                                         {9, 1, 11},
                                         {200, 9, 12},
                                         {193, 17, 13},
                                         {1500, 10, 4},
                                         {2049, 9, 6}}) {
        const Cube cube = random_scene(samples, lines, bands, 3);
        expect_close(scan(cube), reference(cube), 1e-14);
    }
}

TEST(MomentScan, LeavesOutInvalidPixelsAndPairs) {
    for (auto [samples, lines] : {std::pair{150, 70}, {1100, 20}}) {
        Cube cube = random_scene(samples, lines, 7, 7);
        spoil(cube);
        expect_close(scan(cube), reference(cube), 1e-14);
    }
}

TEST(MomentScan, KeepsItsDigitsOnAHighLevel) {
    Cube cube = random_scene(140, 60, 10, 6, 0.02, 1.0);
    for (auto& x : cube.values)
        x += 30000.0f; // spread 1e-5 of the level
    expect_close(scan(cube), reference(cube), 1e-12);
}

TEST(MomentScan, WithoutDifferencesIsTheSame) {
    Cube cube = random_scene(130, 30, 8, 2);
    spoil(cube);
    const auto with = scan(cube), without = scan(cube, false);
    EXPECT_EQ(with.covariance, without.covariance);
    EXPECT_EQ(with.mean, without.mean);
    EXPECT_TRUE(without.differences.empty());
    EXPECT_EQ(without.pairs, 0);
}

TEST(MomentScan, IsBitIdenticalForEveryTilingAndNumberOfThreads) {
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

TEST(MomentScan, IsTheSameInEveryInstructionSetThatFuses) {
    Cube cube = random_scene(301, 37, 13, 12);
    spoil(cube);
    const auto want = reference(cube);
    std::vector<double> fused, apart;
    for_every_simd([&](const std::string& name) {
        const auto got = scan(cube);
        expect_close(got, want, 1e-14);
        auto& first = is_fused(name) ? fused : apart;
        if (first.empty()) first = got.differences;
        EXPECT_EQ(got.differences, first) << name;
    });
}

TEST(MomentScan, OfScenesWithoutPairsOrPixels) {
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
