// SPDX-License-Identifier: MIT
// RX against the ring around a pixel: the definition in long double, borders, holes, masks, rings without
// variance, tiles and threads.
#include "core/error.h"
#include "detect/local/local.h"
#include "detect/reference.h"
#include "stream/pipeline.h"
#include "support/cancelled_tile.h"
#include "support/memory_cube.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <vector>

namespace hsi::test {
namespace {

using detect::PixelMask;
using detect::Ring;

struct Found {
    MemorySink scores, map;
    int64_t valid = 0, invalid = 0, few = 0, flat = 0;
};

Found found(const Cube& cube, const Ring& ring, const stream::PassOptions& pass = {}, double threshold = 20) {
    const auto s = cube.shape;
    Found f{MemorySink(s.samples, s.lines, 1), MemorySink(s.samples, s.lines, 1)};
    const auto operation = detect::make_local_detection(s.bands, ring, {true, threshold});
    stream::run_pass(MemorySource(cube), *operation, {&f.scores, &f.map}, pass);
    f.valid = operation->valid();
    f.invalid = operation->invalid();
    f.few = operation->without_background();
    f.flat = operation->without_variance();
    return f;
}

void expect_definition(const Cube& cube, const Ring& ring, int64_t step = 1) {
    SCOPED_TRACE(std::to_string(cube.shape.bands) + " bands, " + std::to_string(ring.inner) + " in " +
                 std::to_string(ring.outer));
    const auto got = found(cube, ring);
    for (int64_t y = 0; y < cube.shape.lines; y += step)
        for (int64_t x = 0; x < cube.shape.samples; x += step) {
            const double want = local_reference(cube, ring, y, x);
            const float score = got.scores.cube.at(0, y, x), map = got.map.cube.at(0, y, x);
            ASSERT_EQ(std::isnan(want), std::isnan(score)) << y << " " << x;
            ASSERT_EQ(std::isnan(want), std::isnan(map));
            if (std::isnan(want)) continue;
            ASSERT_NEAR(score, want, 1e-5 * want + 1e-6) << y << " " << x;
            if (std::fabs(want - 20) > 1e-3) {
                ASSERT_EQ(map, want >= 20 ? 1.0f : 0.0f);
            }
        }
}

Cube a_scene(int64_t samples, int64_t lines, int bands) {
    Cube cube = random_scene(samples, lines, bands, 5, 0.03, 800);
    make_invalid(cube, 0, 0, 0);
    make_invalid(cube, lines / 2, samples / 2, bands - 1, std::numeric_limits<float>::infinity());
    for (int b = 0; b < bands; ++b)
        cube.at(b, lines / 3, samples - 2) = 0;
    return cube;
}

TEST(LocalRx, IsItsDefinition) {
    expect_definition(a_scene(23, 14, 4), {1, 3});      // more pixels than bands
    expect_definition(a_scene(23, 14, 4), {3, 9});      // the square is higher than half of the scene
    expect_definition(a_scene(23, 14, 20), {1, 3});     // 8 pixels, 20 bands: uses U U'
    expect_definition(a_scene(23, 14, 150), {3, 7}, 3); // 40 pixels: uses U U'
    expect_definition(a_scene(23, 14, 37), {5, 11});    // 96 pixels: uses U'U
    expect_definition(a_scene(5, 4, 6), {7, 21});       // the square exceeds the scene on all sides
    expect_definition(a_scene(300, 5, 6), {3, 9}, 1);   // several segments
    expect_definition(a_scene(1, 9, 3), {1, 5});
    expect_definition(a_scene(140, 3, 2), {125, 127}, 5);
}

TEST(LocalRx, WithoutARidgeIsRxByDefinition) {
    expect_definition(a_scene(23, 14, 4), {1, 3, nullptr, 0}); // rings at the border have too few pixels
    expect_definition(a_scene(23, 14, 10), {3, 9, nullptr, 0});
    expect_definition(a_scene(23, 14, 150), {3, 7, nullptr, 0}, 3); // rings do not span the bands
    expect_definition(a_scene(300, 5, 6), {3, 9, nullptr, 0});
    expect_definition(a_scene(23, 14, 37), {5, 11, nullptr, 0}, 3);
    expect_definition(a_scene(23, 14, 10), {3, 9, nullptr, 0.5});
    EXPECT_EQ(found(a_scene(23, 14, 150), {3, 7, nullptr, 0}).few, found(a_scene(23, 14, 150), {3, 7}).valid);
}

// One band is a multiple of another, or the sum of two others: C has no inverse, for any rounding errors.
TEST(LocalRx, WithoutARidgeCollinearBandsHaveNoScore) {
    for (const bool twice : {true, false}) {
        auto cube = a_scene(40, 12, 9);
        for (int64_t y = 0; y < 12; ++y)
            for (int64_t x = 0; x < 40; ++x)
                cube.at(7, y, x) = twice ? 2 * cube.at(1, y, x) : cube.at(1, y, x);
        const auto got = found(cube, {3, 9, nullptr, 0});
        for (const float score : got.scores.cube.values)
            ASSERT_TRUE(std::isnan(score));
        EXPECT_EQ(got.few, got.valid);
    }
}

TEST(LocalRx, EndsWithinATile) {
    const Cube cube = a_scene(23, 14, 6);
    for (const int outer : {3, 9})
        EXPECT_TRUE(ends_within_its_tile(cube, *detect::make_local_detection(6, {1, outer}, {true, 20})));
}

// The matrix of sums is divided into rows of six and blocks of 16 columns; one column is the pixel's.
TEST(LocalRx, AnyNumberOfBandsIsItsDefinition) {
    for (const int bands : {1, 2, 5, 6, 7, 11, 12, 13, 14, 15, 16, 17, 29, 30, 31, 32, 33, 47, 48, 49, 66})
        expect_definition(a_scene(19, 11, bands), {3, 9}, 4);
}

// Lines slide together. The last group may have fewer lines, and small squares have no line in common for all
// pixels.
TEST(LocalRx, AnyNumberOfLinesIsItsDefinition) {
    for (int64_t lines = 1; lines <= 9; ++lines) {
        expect_definition(a_scene(19, lines, 6), {1, 5});
        expect_definition(a_scene(19, lines, 6), {3, 7});
        expect_definition(a_scene(19, lines, 4), {1, 3});
    }
}

// Products of a few columns are kept. With many bands and large rings they are not kept, and are computed
// again when columns leave.
TEST(LocalRx, ColumnsThatAreNotKeptAreItsDefinition) {
    expect_definition(a_scene(141, 3, 300), {3, 127}, 22);
    expect_definition(a_scene(141, 3, 30), {3, 127}, 22);
}

// M's least eigenvalue is the ridge. Its greatest eigenvalue is 100 x bands times the ridge.
TEST(LocalRx, CollinearBandsAreItsDefinition) {
    auto cube = a_scene(40, 12, 60);
    for (int64_t y = 0; y < 12; ++y)
        for (int64_t x = 0; x < 40; ++x)
            for (int b = 1; b < 60; ++b)
                cube.at(b, y, x) = cube.at(0, y, x) * static_cast<float>(1 + b % 4);
    expect_definition(cube, {5, 11}, 2);
}

// Half of a line has a different level, so the mean of its values is far from all of them. An object fills
// the inner square, and is much brighter than the deviations of its ring.
TEST(LocalRx, BrightNeighboursCostNoDigits) {
    auto cube = a_scene(150, 20, 30);
    for (int b = 0; b < 30; ++b)
        for (int64_t y = 0; y < 20; ++y)
            for (int64_t x = 0; x < 150; ++x)
                if (x >= 70 || (std::abs(x - 30) <= 2 && std::abs(y - 10) <= 2)) cube.at(b, y, x) += 50000;
    expect_definition(cube, {5, 11}, 3);
    expect_definition(cube, {1, 13}, 5);
}

// The squares of these values exceed single precision. While they are in the ring, the factor is computed in
// double precision. After they have left, their rounding errors must not count as variance.
TEST(LocalRx, ValuesBeyondSinglePrecisionCostNoDigits) {
    auto cube = a_scene(60, 12, 14);
    cube.at(3, 5, 20) = cube.at(4, 5, 20) = 1e21f;
    expect_definition(cube, {3, 7}, 2); // excludes the pixel itself, whose score exceeds a float
}

TEST(LocalRx, TheMaskSaysWhatIsBackground) {
    const auto cube = a_scene(41, 16, 7);
    PixelMask mask(41, 16);
    for (int64_t y = 0; y < 16; ++y)
        for (int64_t x = 0; x < 41; ++x)
            if ((x * 7 + y * 3) % 5 < 2 && x < 30) mask.set(y, x); // too few pixels at the far right
    for (const auto& [inner, outer] : {std::pair(1, 3), std::pair(3, 9)})
        expect_definition(cube, {inner, outer, &mask});
    const auto got = found(cube, {3, 9, &mask});
    EXPECT_GT(got.few, 0);
    EXPECT_TRUE(std::isnan(got.scores.cube.at(0, 8, 40)));
    EXPECT_EQ(got.invalid, 3);
    EXPECT_EQ(got.valid, 41 * 16 - 3);
}

TEST(LocalRx, RingsWithoutVariance) {
    for (const int bands : {4, 30}) {
        const auto cube = flattened(a_scene(60, 13, bands));
        expect_definition(cube, {3, 7});
        const auto got = found(cube, {3, 7});
        EXPECT_TRUE(std::isnan(got.scores.cube.at(0, 6, 45)));
        EXPECT_EQ(got.scores.cube.at(0, 6, 30), 0.0f);
        EXPECT_GT(got.flat, 100);
    }
}

TEST(LocalRx, TilesAndThreadsChangeNoBit) {
    const auto cube = a_scene(389, 21, 20);
    PixelMask mask(389, 21);
    for (int64_t y = 0; y < 21; ++y)
        for (int64_t x = 0; x < 389; ++x)
            if ((x + y) % 4 != 0) mask.set(y, x);
    for (const auto& [inner, outer] : {std::pair(1, 3), std::pair(5, 11)}) {
        const auto whole = found(cube, {inner, outer, &mask});
        for (const auto& [samples, lines, lanes] :
             {std::array<int, 3>{128, 5, 3}, {389, 1, 2}, {256, 21, 4}, {128, 4, 2}, {17, 3, 1}}) {
            stream::PassOptions pass;
            pass.tile_samples = samples;
            pass.tile_lines = lines;
            pass.lanes = lanes;
            const auto cut = found(cube, {inner, outer, &mask}, pass);
            EXPECT_TRUE(identical(whole.scores.cube, cut.scores.cube)) << samples << " " << lines;
            EXPECT_TRUE(identical(whole.map.cube, cut.map.cube)) << samples << " " << lines;
        }
    }
}

TEST(LocalRx, AnomaliesStandOut) {
    auto cube = random_scene(64, 48, 40, 11, 0.02, 1000);
    for (int b = 0; b < 40; ++b)
        cube.at(b, 20, 30) = 400 + 12 * static_cast<float>((b * 7) % 40);
    const auto got = found(cube, {5, 13});
    for (int64_t y = 0; y < 48; ++y)
        for (int64_t x = 0; x < 64; ++x)
            if (y != 20 || x != 30) {
                EXPECT_LT(got.scores.cube.at(0, y, x), got.scores.cube.at(0, 20, 30));
            }
}

} // namespace
} // namespace hsi::test
