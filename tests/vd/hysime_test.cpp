// SPDX-License-Identifier: MIT
#include "core/error.h"
#include "stream/pipeline.h"
#include "support/memory_cube.h"
#include "vd/hysime.h"

#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

namespace hsi::test {
namespace {

stream::SceneStatistics scan(const Cube& cube, int64_t samples = 0, int64_t lines = 0, int lanes = 1) {
    const MemorySource source(cube);
    stream::PassOptions options;
    options.lanes = lanes;
    options.tile_samples = samples;
    options.tile_lines = lines;
    stream::StatisticsScan operation(cube.shape, stream::Statistics::moments);
    stream::run_pass(source, operation, {}, options);
    return operation.result();
}

/// Returns `rank` random spectra, randomly mixed, with white noise.
Cube mixed_scene(int rank, int bands, double noise, uint32_t seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> uniform(0.0, 1.0);
    std::vector<std::vector<double>> spectra(static_cast<size_t>(rank));
    for (auto& s : spectra)
        for (int b = 0; b < bands; ++b)
            s.push_back(100 + 50 * normal(random));
    Cube cube(60, 50, bands);
    for (int64_t l = 0; l < 50; ++l)
        for (int64_t s = 0; s < 60; ++s) {
            std::vector<double> a;
            for (int k = 0; k < rank; ++k)
                a.push_back(uniform(random));
            for (int b = 0; b < bands; ++b) {
                double x = noise * normal(random);
                for (size_t k = 0; k < a.size(); ++k)
                    x += a[k] * spectra[k][static_cast<size_t>(b)];
                cube.at(b, l, s) = static_cast<float>(x);
            }
        }
    return cube;
}

/// Returns the residual of a band after least squares on the other bands, by normal equations in long double
/// with elimination.
long double residual_power(const Cube& cube, int band) {
    const int n = cube.shape.bands;
    const auto pixels = static_cast<size_t>(cube.shape.pixels());
    std::vector<int> others;
    for (int b = 0; b < n; ++b)
        if (b != band) others.push_back(b);
    others.push_back(band); // the right-hand side
    const auto m = others.size();
    std::vector<std::vector<long double>> a(m, std::vector<long double>(m, 0));
    for (size_t i = 0; i < m; ++i)
        for (size_t j = 0; j < m; ++j)
            for (size_t p = 0; p < pixels; ++p)
                a[i][j] +=
                    static_cast<long double>(cube.values[static_cast<size_t>(others[i]) * pixels + p]) *
                    static_cast<long double>(cube.values[static_cast<size_t>(others[j]) * pixels + p]);
    for (size_t k = 0; k + 1 < m; ++k)
        for (size_t i = k + 1; i < m; ++i) {
            const long double factor = a[i][k] / a[k][k];
            for (size_t j = k; j < m; ++j)
                a[i][j] -= factor * a[k][j];
        }
    return a[m - 1][m - 1] / static_cast<long double>(pixels); // the residual
}

TEST(HySime, NoiseIsWhatRegressionLeaves) {
    const Cube cube = mixed_scene(3, 9, 2.0, 1);
    const auto found = vd::hysime(scan(cube));
    for (int b = 0; b < 9; ++b) {
        const double want = std::sqrt(static_cast<double>(residual_power(cube, b)));
        EXPECT_NEAR(found.noise[static_cast<size_t>(b)], want, 1e-6 * want);
    }
}

TEST(HySime, FindsTheRankOfAMixture) {
    for (int rank : {1, 3, 6}) {
        const auto found = vd::hysime(scan(mixed_scene(rank, 30, 0.5, static_cast<uint32_t>(rank))));
        EXPECT_EQ(found.dimension, rank);
        ASSERT_EQ(found.directions.size(), 30u);
        for (size_t k = 0; k < 30; ++k) {
            const auto& d = found.directions[k];
            EXPECT_EQ(d.signal, k < static_cast<size_t>(rank));
            EXPECT_EQ(d.delta, 2 * d.noise_power - d.power);
            EXPECT_LE(d.eigenvalue, found.directions[k > 0 ? k - 1 : 0].eigenvalue);
        }
    }
}

TEST(HySime, IsBitIdenticalForEveryTilingAndNumberOfThreads) {
    const Cube cube = mixed_scene(4, 12, 1.0, 5);
    const auto whole = vd::hysime(scan(cube));
    for (auto [samples, lines, lanes] : {std::tuple{1, 1, 3}, {1024, 8, 2}, {1024, 16, 1}}) {
        const auto cut = vd::hysime(scan(cube, samples, lines, lanes));
        EXPECT_EQ(cut.noise, whole.noise);
        for (size_t k = 0; k < 12; ++k)
            EXPECT_EQ(cut.directions[k].delta, whole.directions[k].delta);
    }
}

TEST(HySime, DependentBandsBoundTheNoiseAndFewPixelsAreErrors) {
    Cube cube = mixed_scene(3, 6, 1.0, 6);
    for (size_t p = 0; p < 3000; ++p)
        cube.values[5 * 3000 + p] = 2 * cube.values[p];
    const auto found = vd::hysime(scan(cube));
    EXPECT_FALSE(found.resolved);
    EXPECT_EQ(found.dimension, 3);
    EXPECT_LT(found.noise[5], 1e-3);
    EXPECT_TRUE(vd::hysime(scan(mixed_scene(3, 6, 1.0, 6))).resolved);
    for (size_t p = 0; p < 3000; ++p)
        cube.values[5 * 3000 + p] = 0;
    EXPECT_THROW(vd::hysime(scan(cube)), Error);
    EXPECT_THROW(vd::hysime(scan(random_scene(4, 3, 12, 1))), Error);
    EXPECT_NO_THROW(vd::hysime(scan(random_scene(13, 2, 12, 1, 0.5))));
}

} // namespace
} // namespace hsi::test
