// SPDX-License-Identifier: MIT
#include "stream/value_range.h"
#include "support/memory_cube.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

namespace hsi::test {
namespace {

using stream::RangeWatch;
using stream::ValueRange;

/// Reads the scene in windows that overlap by `halo`.
void read_all(const RangeWatch& watch, int64_t w, int64_t h, int64_t halo) {
    const auto shape = watch.shape();
    const auto first = watch.open_reader(), second = watch.open_reader();
    std::vector<float> values(static_cast<size_t>(shape.pixels() * shape.bands));
    bool odd = false;
    for (int64_t y = 0; y < shape.lines; y += h)
        for (int64_t x = 0; x < shape.samples; x += w, odd = !odd) {
            const Rect window = intersect(grow({x, y, w, h}, halo), {0, 0, shape.samples, shape.lines});
            (odd ? first : second)
                ->read(window, CubeView<float>::packed(values.data(), shape.bands, window.h, window.w));
        }
}

Cube ramp(int64_t lines, int64_t samples) {
    Cube cube = random_scene(samples, lines, 4, 5);
    for (int b = 0; b < 4; ++b)
        for (int64_t y = 0; y < lines; ++y)
            for (int64_t x = 0; x < samples; ++x)
                cube.at(b, y, x) = static_cast<float>(100 * (b + 1) + (x + y) % 10);
    return cube;
}

const ValueRange known{{100, 200, 300, 400}, {110, 210, 310, 410}, {104, 204, 304, 404}};

TEST(RangeWatch, FindsTheRangeOfValidPixels) {
    Cube cube = ramp(20, 30);
    cube.at(0, 3, 3) = 1e6f;
    cube.at(2, 3, 3) = std::numeric_limits<float>::quiet_NaN();
    cube.at(1, 4, 4) = -std::numeric_limits<float>::infinity();
    for (int b = 0; b < 4; ++b)
        cube.at(b, 5, 5) = 0;
    const MemorySource source(cube);
    const RangeWatch watch(source);
    read_all(watch, 30, 20, 0);
    EXPECT_EQ(watch.valid(), 20 * 30 - 3);
    EXPECT_EQ(watch.far_outside(), 0);
    EXPECT_EQ(watch.minimum(), (std::vector<float>{100, 200, 300, 400}));
    EXPECT_EQ(watch.maximum(), (std::vector<float>{109, 209, 309, 409}));
}

TEST(RangeWatch, CountsPixelsWithMostOfTheirBandsFarOutside) {
    Cube cube = ramp(20, 30);
    cube.at(0, 0, 0) = cube.at(1, 0, 0) = 1000;                             // only half of the bands
    cube.at(0, 0, 1) = cube.at(1, 0, 1) = cube.at(2, 0, 1) = 1000;          // most bands
    cube.at(0, 0, 2) = cube.at(1, 0, 2) = cube.at(2, 0, 2) = -1000;         // below the range
    cube.at(0, 0, 3) = 119, cube.at(1, 0, 3) = 219, cube.at(2, 0, 3) = 319; // within the widened range
    for (int b = 0; b < 4; ++b)
        cube.at(b, 0, 4) = 1; // faint
    const MemorySource source(cube);
    const RangeWatch watch(source, known);
    read_all(watch, 30, 20, 0);
    EXPECT_EQ(watch.far_outside(), 3);
}

TEST(RangeWatch, ValuesNearZeroAreFarFromAmountsWhoseWidenedRangeHoldsZero) {
    Cube cube = ramp(20, 30);
    for (int b = 0; b < 4; ++b)
        for (int64_t y = 0; y < 20; ++y)
            for (int64_t x = 0; x < 15; ++x)
                cube.at(b, y, x) /= 100;
    const MemorySource source(cube);
    const ValueRange wide{{0, 0, 0, 0}, {500, 500, 500, 500}, {104, 204, 304, 404}};
    const RangeWatch amounts(source, wide);
    read_all(amounts, 30, 20, 0);
    EXPECT_EQ(amounts.far_outside(), 20 * 15);
    // Components have both signs, so values near 0 are normal.
    const RangeWatch components(source, {{-500, -500, -500, -500}, {500, 500, 500, 500}, {0, 1, -1, 0}});
    read_all(components, 30, 20, 0);
    EXPECT_EQ(components.far_outside(), 0);
    // Without means, the end of the range decides.
    const RangeWatch old(source, {{100, 200, 300, 400}, {5000, 5000, 5000, 5000}, {}});
    read_all(old, 30, 20, 0);
    EXPECT_EQ(old.far_outside(), 20 * 15);
}

TEST(RangeWatch, BandsThatDidNotVaryTellNothing) {
    const Cube cube = ramp(20, 30);
    const MemorySource source(cube);
    const RangeWatch watch(source, {{7, 7, 7, 7}, {7, 7, 7, 7}, {7, 7, 7, 7}});
    read_all(watch, 30, 20, 0);
    EXPECT_EQ(watch.far_outside(), 0);
}

TEST(RangeWatch, SeesTheSamePixelsOnceForEveryTiling) {
    Cube cube = ramp(333, 290);
    for (int64_t y = 40; y < 200; ++y)
        for (int64_t x = 30; x < 150; ++x)
            for (int b = 0; b < 4; ++b)
                cube.at(b, y, x) = -0.0f + static_cast<float>(x % 3) * 4000;
    const MemorySource source(cube);
    const RangeWatch whole(source, known);
    read_all(whole, 290, 333, 0);
    EXPECT_GE(whole.valid(), 3000);
    EXPECT_LT(whole.valid(), 16384);
    EXPECT_GT(whole.far_outside(), 100);
    for (const auto& [w, h, halo] :
         {std::array<int64_t, 3>{64, 32, 0}, {17, 5, 3}, {290, 1, 1}, {1, 333, 0}}) {
        const RangeWatch watch(source, known);
        read_all(watch, w, h, halo);
        EXPECT_EQ(watch.valid(), whole.valid());
        EXPECT_EQ(watch.far_outside(), whole.far_outside());
        EXPECT_EQ(watch.minimum(), whole.minimum());
        EXPECT_EQ(watch.maximum(), whole.maximum());
    }
}

} // namespace
} // namespace hsi::test
