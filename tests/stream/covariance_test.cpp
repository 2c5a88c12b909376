// SPDX-License-Identifier: MIT
#include "stream/pipeline.h"
#include "stream/statistics_scan.h"
#include "support/memory_cube.h"
#include "support/simd_targets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace hsi::test {
namespace {

stream::SceneStatistics scan(const Cube& cube, int64_t tile_samples = 0, int64_t tile_lines = 0,
                             int lanes = 1, stream::Statistics what = stream::Statistics::covariance) {
    const MemorySource source(cube);
    stream::PassOptions options;
    options.lanes = lanes;
    options.tile_samples = tile_samples;
    options.tile_lines = tile_lines;
    stream::StatisticsScan operation(cube.shape, what);
    stream::run_pass(source, operation, {}, options);
    return operation.result();
}

/// Computes the definition in two passes in long double.
stream::SceneStatistics reference(const Cube& cube) {
    const auto n = static_cast<size_t>(cube.shape.bands);
    const auto pixels = static_cast<size_t>(cube.shape.pixels());
    stream::SceneStatistics r;
    r.finite.assign(n, 0);
    std::vector<size_t> valid;
    for (size_t p = 0; p < pixels; ++p) {
        bool finite = true, zero = true;
        for (size_t b = 0; b < n; ++b) {
            const float x = cube.values[b * pixels + p];
            r.finite[b] += std::isfinite(x);
            finite = finite && std::isfinite(x);
            zero = zero && x == 0;
        }
        if (finite && !zero) valid.push_back(p);
    }
    r.valid_pixels = static_cast<int64_t>(valid.size());
    r.invalid_pixels = static_cast<int64_t>(pixels - valid.size());
    const auto count = static_cast<long double>(valid.size());
    std::vector<long double> mean(n, 0);
    for (size_t b = 0; b < n; ++b) {
        for (size_t p : valid)
            mean[b] += static_cast<long double>(cube.values[b * pixels + p]);
        mean[b] /= count;
        r.mean.push_back(static_cast<double>(mean[b]));
    }
    for (size_t a = 0; a < n; ++a)
        for (size_t b = 0; b < n; ++b) {
            long double sum = 0;
            for (size_t p : valid)
                sum += (static_cast<long double>(cube.values[a * pixels + p]) - mean[a]) *
                       (static_cast<long double>(cube.values[b * pixels + p]) - mean[b]);
            r.covariance.push_back(static_cast<double>(sum / count));
        }
    return r;
}

void expect_close(const stream::SceneStatistics& got, const stream::SceneStatistics& want, double tolerance) {
    EXPECT_EQ(got.valid_pixels, want.valid_pixels);
    EXPECT_EQ(got.invalid_pixels, want.invalid_pixels);
    EXPECT_EQ(got.finite, want.finite);
    const size_t n = want.mean.size();
    for (size_t a = 0; a < n; ++a) {
        EXPECT_NEAR(got.mean[a], want.mean[a], 1e-12 * std::fabs(want.mean[a]));
        for (size_t b = 0; b < n; ++b)
            EXPECT_NEAR(got.covariance[a * n + b], want.covariance[a * n + b],
                        tolerance * std::sqrt(want.covariance[a * n + a] * want.covariance[b * n + b]))
                << a << "," << b;
    }
}

TEST(Covariance, AgreesWithTheDefinition) {
    for (int bands : {1, 2, 3, 11, 12, 13, 50}) {
        const Cube cube = random_scene(150, 70, bands, 3);
        expect_close(scan(cube), reference(cube), 1e-7);
    }
}

TEST(Covariance, AgreesForNarrowAndTinyScenes) {
    for (auto [samples, lines] :
         {std::pair{1, 1}, {1, 200}, {200, 1}, {3, 5}, {129, 65}, {513, 17}, {17, 300}}) {
        const Cube cube = random_scene(samples, lines, 9, 4);
        // The rounding error of a few products in single precision
        expect_close(scan(cube), reference(cube), 2e-7);
    }
}

TEST(Covariance, KeepsItsDigitsOnAHighLevel) {
    Cube cube = random_scene(140, 80, 10, 6, 0.02, 1.0);
    for (auto& x : cube.values)
        x += 3000.0f; // the spread is 1e-4 of the level
    expect_close(scan(cube), reference(cube), 1e-6);
}

TEST(Covariance, LeavesOutInvalidPixels) {
    Cube cube = random_scene(150, 70, 14, 7);
    for (int64_t l = 3; l < 40; ++l)
        for (int64_t s = 10; s < 60; ++s)
            make_invalid(cube, l, s, static_cast<int>((l + s) % 14));
    make_invalid(cube, 69, 149, 2, std::numeric_limits<float>::infinity());
    make_invalid(cube, 68, 149, 13, -std::numeric_limits<float>::infinity());
    for (int b = 0; b < 14; ++b)
        cube.at(b, 66, 100) = 0;
    expect_close(scan(cube), reference(cube), 1e-7);
}

TEST(Covariance, DoubleProductsKeepTheLeastVariances) {
    constexpr auto twofold = stream::Statistics::double_covariance;
    for (int bands : {1, 2, 11, 12, 13, 50}) {
        Cube cube = random_scene(1100, 17, bands, 3);
        make_invalid(cube, 4, 900, bands - 1);
        const auto whole = scan(cube, 0, 0, 1, twofold);
        expect_close(whole, reference(cube), 1e-13);
        const auto tiled = scan(cube, 1024, 8, 3, twofold);
        EXPECT_EQ(tiled.mean, whole.mean);
        EXPECT_EQ(tiled.covariance, whole.covariance);
    }
    Cube cube = random_scene(140, 80, 10, 6, 0.02, 1.0);
    for (auto& x : cube.values)
        x += 3000.0f; // the spread is 1e-4 of the level
    expect_close(scan(cube, 0, 0, 1, twofold), reference(cube), 1e-13);
}

TEST(Covariance, KeepsItsDigitsWhereTheLevelIsAMillionTimesTheSpread) {
    Cube cube = random_scene(1300, 20, 7, 6, 0.02, 1.0);
    for (size_t i = 0; i < cube.values.size(); ++i) // an odd level for each band
        cube.values[i] = 10 * cube.values[i] + 1e7f + 333 * static_cast<float>(i / (1300 * 20));
    make_invalid(cube, 9, 1024, 3);
    const auto want = reference(cube);
    expect_close(scan(cube, 0, 0, 1, stream::Statistics::covariance), want, 1e-6);
    expect_close(scan(cube, 0, 0, 1, stream::Statistics::double_covariance), want, 1e-13);
    const auto whole = scan(cube), tiled = scan(cube, 1024, 8, 3);
    EXPECT_EQ(tiled.covariance, whole.covariance);
}

TEST(Covariance, RefusesValuesWhoseProductsVanish) {
    const auto scaled = [](float factor) {
        auto cube = random_scene(40, 30, 5, 3);
        for (float& v : cube.values)
            v *= factor;
        return cube;
    };
    const auto want = scan(scaled(1));
    const auto small = scan(scaled(0x1p-40f)); // a power of two keeps the digits
    for (size_t i = 0; i < want.covariance.size(); ++i)
        EXPECT_EQ(small.covariance[i], std::ldexp(want.covariance[i], -80));
    EXPECT_THROW(scan(scaled(1e-27f)), Error);
    EXPECT_NO_THROW(scan(scaled(0)));
}

TEST(Covariance, KnowsConstantBands) {
    Cube cube = random_scene(1100, 40, 6, 12);
    for (int64_t l = 0; l < 40; ++l)
        for (int64_t s = 0; s < 1100; ++s) {
            cube.at(1, l, s) = 0.1f; // its sums are not exact
            cube.at(2, l, s) = 0;
            cube.at(4, l, s) = l < 24 ? 0.3f : std::nextafter(0.3f, 1.0f); // constant in every block
            cube.at(5, l, s) = l == 39 && s == 1099 ? 7.0f : 8.0f;
        }
    make_invalid(cube, 0, 0, 0);
    for (const auto what : {stream::Statistics::covariance, stream::Statistics::double_covariance,
                            stream::Statistics::moments, stream::Statistics::differences}) {
        EXPECT_EQ(scan(cube, 0, 0, 1, what).constant, (std::vector<int>{1, 2}));
        EXPECT_EQ(scan(cube, 1024, 8, 3, what).constant, (std::vector<int>{1, 2}));
    }
    make_invalid(cube, 39, 1099, 0);
    EXPECT_EQ(scan(cube, 1024, 8, 2).constant, (std::vector<int>{1, 2, 5}));
    EXPECT_TRUE(scan(Cube(3, 3, 2)).constant.empty()) << "no pixel is valid";
}

TEST(Covariance, OfConstantBandsIsZeroOnEveryLevel) {
    for (const auto what : {stream::Statistics::covariance, stream::Statistics::double_covariance,
                            stream::Statistics::moments, stream::Statistics::differences})
        for (const float level : {65535.0f, 1e25f, 3e38f}) {
            Cube cube = random_scene(101, 97, 5, 7);
            const auto pixels = static_cast<size_t>(cube.shape.pixels());
            std::fill_n(cube.values.begin() + static_cast<ptrdiff_t>(2 * pixels), pixels, level);
            const auto found = scan(cube, 0, 0, 1, what);
            EXPECT_EQ(found.constant, std::vector<int>{2});
            EXPECT_EQ(found.mean[2], static_cast<double>(level));
            for (size_t b = 0; b < 5; ++b) {
                EXPECT_EQ(found.covariance[2 * 5 + b], 0) << level;
                EXPECT_EQ(found.covariance[b * 5 + 2], 0) << level;
            }
        }
}

TEST(Covariance, CentresOnWhateverItPicks) {
    // Blocks whose sampled pixels differ from the rest: one block has no sampled value, another has very
    // different ones.
    Cube cube = random_scene(1024, 16, 5, 11);
    for (int64_t l = 0; l < 16; ++l)
        for (int64_t s = 0; s < 1024; ++s)
            if (s % 512 != 17) {
                if (s < 512) make_invalid(cube, l, s, 1);
            } else {
                for (int b = 0; b < 5; ++b)
                    cube.at(b, l, s) += 40.0f;
            }
    expect_close(scan(cube), reference(cube), 1e-6);
}

TEST(Covariance, IsBitIdenticalForEveryTilingAndNumberOfThreads) {
    for (auto [width, height] : {std::pair{300, 201}, {1100, 70}}) {
        Cube cube = random_scene(width, height, 20, 8);
        make_invalid(cube, 60, 200, 5);
        const auto whole = scan(cube);
        for (auto [samples, lines, lanes] :
             {std::tuple{512, 16, 1}, {512, 16, 3}, {300, 64, 2}, {1024, 32, 2}, {1, 1, 4}}) {
            const auto tiled = scan(cube, samples, lines, lanes);
            EXPECT_EQ(tiled.mean, whole.mean);
            EXPECT_EQ(tiled.covariance, whole.covariance);
            EXPECT_EQ(tiled.valid_pixels, whole.valid_pixels);
        }
    }
}

/// Returns a scene whose bits are equal on every machine and with every standard library.
Cube hashed_scene(int64_t samples, int64_t lines, int bands) {
    Cube cube(samples, lines, bands);
    uint32_t state = 12345;
    for (float& v : cube.values) {
        state = state * 1664525u + 1013904223u;
        v = 0.25f + static_cast<float>(state >> 8) * 0x1p-24f;
    }
    return cube;
}

TEST(Covariance, IsTheSameInEveryInstructionSetAndOnEveryMachine) {
    // Computed once, with AVX-512 and AVX2, and without fused arithmetic. The results must not change
    // unnoticed.
    constexpr uint64_t fused = 13519979520163862637u, apart = 13916504757249308792u;
    Cube cube = hashed_scene(301, 57, 29); // runs and stretches that are not multiples of sixteen
    cube.values[11 * 301 + 7] = std::numeric_limits<float>::quiet_NaN();
    for_every_simd([&](const std::string& name) {
        const auto got = scan(cube);
        expect_close(got, reference(cube), 1e-6);
        EXPECT_EQ(fingerprint(got.covariance, fingerprint(got.mean)), is_fused(name) ? fused : apart) << name;
    });
}

TEST(Covariance, DoubleProductsAreTheSameInEveryInstructionSet) {
    Cube cube = hashed_scene(301, 57, 29);
    cube.values[11 * 301 + 7] = std::numeric_limits<float>::quiet_NaN();
    std::vector<double> first[2]; // without and with fused arithmetic
    for_every_simd([&](const std::string& name) {
        const auto got = scan(cube, 0, 0, 1, stream::Statistics::double_covariance);
        expect_close(got, reference(cube), 1e-13);
        auto& same = first[is_fused(name) ? 1 : 0];
        if (same.empty()) same = got.covariance;
        EXPECT_EQ(got.covariance, same) << name;
    });
}

TEST(BandMeans, AreTheSameInEveryInstructionSet) {
    const Cube cube = hashed_scene(301, 57, 5);
    std::vector<double> first;
    for_every_simd([&](const std::string& name) {
        const MemorySource source(cube);
        stream::StatisticsScan operation(cube.shape, stream::Statistics::means);
        stream::run_pass(source, operation, {}, {});
        const auto mean = operation.result().mean;
        if (first.empty()) first = mean;
        EXPECT_EQ(mean, first) << name; // without multiplication, so equal with and without fused arithmetic
        EXPECT_NEAR(mean[2], 0.75, 0.01) << name;
    });
}

TEST(Covariance, FindsEmptyBandsAndEmptyScenes) {
    Cube cube = random_scene(30, 20, 4, 9);
    for (int64_t l = 0; l < 20; ++l)
        for (int64_t s = 0; s < 30; ++s)
            make_invalid(cube, l, s, 2);
    const auto r = scan(cube);
    EXPECT_EQ(r.valid_pixels, 0);
    EXPECT_EQ(r.empty_bands(), std::vector<int>{2});
    EXPECT_TRUE(std::isnan(r.mean[0]) && std::isnan(r.covariance[5]));
}

TEST(Covariance, MeanProductsAddTheMeans) {
    const Cube cube = random_scene(40, 30, 3, 10);
    const auto r = scan(cube);
    const auto products = r.mean_products();
    double direct = 0;
    for (int64_t p = 0; p < 1200; ++p)
        direct += static_cast<double>(cube.values[static_cast<size_t>(p)]) *
                  static_cast<double>(cube.values[static_cast<size_t>(2400 + p)]);
    EXPECT_NEAR(products[2], direct / 1200, 1e-7 * direct / 1200);
    EXPECT_EQ(products[2], products[6]);
}

} // namespace
} // namespace hsi::test
