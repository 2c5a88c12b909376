// SPDX-License-Identifier: MIT
#include "core/error.h"
#include "stream/pipeline.h"
#include "support/memory_cube.h"
#include "vd/vd.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace hsi::test {
namespace {

stream::SceneStatistics covariance_of(const Cube& cube, int lanes = 1, int64_t tile_lines = 0) {
    const MemorySource source(cube);
    stream::StatisticsScan scan(cube.shape, stream::Statistics::covariance);
    stream::PassOptions pass;
    pass.lanes = lanes;
    pass.tile_lines = tile_lines;
    pass.tile_samples = tile_lines > 0 ? cube.shape.samples : 0;
    stream::run_pass(source, scan, {}, pass);
    return scan.result();
}

/// Returns independent bands: band b has mean mean[b] and standard deviation deviation[b].
Cube independent(const std::vector<double>& mean, const std::vector<double>& deviation, int64_t samples,
                 int64_t lines) {
    std::mt19937 random(3);
    std::normal_distribution<double> normal;
    Cube cube(samples, lines, static_cast<int>(mean.size()));
    for (int64_t l = 0; l < lines; ++l)
        for (int64_t s = 0; s < samples; ++s)
            for (size_t b = 0; b < mean.size(); ++b)
                cube.at(static_cast<int>(b), l, s) =
                    static_cast<float>(mean[b] + deviation[b] * normal(random));
    return cube;
}

TEST(Vd, KnowsTheNormalQuantile) {
    EXPECT_NEAR(vd::upper_quantile(0.5), 0.0, 1e-12);
    EXPECT_NEAR(vd::upper_quantile(1e-3), 3.0902323061678132, 1e-12);
    EXPECT_NEAR(vd::upper_quantile(1e-5), 4.264890793922825, 1e-11);
    EXPECT_NEAR(vd::upper_quantile(1e-9), 5.997807015007687, 1e-10);
    EXPECT_NEAR(vd::upper_quantile(0.99), -2.3263478740408408, 1e-12);
}

TEST(Vd, CountsTheMeanOfWhiteNoiseAsOneSignal) {
    const auto result = vd::estimate(
        covariance_of(independent({5, 0, 0, 0, 0, 0}, {1, 1, 1, 1, 1, 1}, 100, 80)), vd::Method::hfc, 1e-4);
    EXPECT_EQ(result.number, 1);
    ASSERT_EQ(result.test.size(), 6u);
    EXPECT_TRUE(result.test[0].signal);
    EXPECT_EQ(result.pixels, 8000);
    for (size_t i = 0; i < 6; ++i) {
        const auto& e = result.test[i];
        EXPECT_NEAR(e.sigma,
                    std::sqrt(2 * (e.correlation * e.correlation + e.covariance * e.covariance) / 8000),
                    1e-12);
        EXPECT_NEAR(e.threshold, vd::upper_quantile(1e-4) * e.sigma, 1e-12);
        EXPECT_EQ(e.signal, e.correlation - e.covariance > e.threshold);
        if (i > 0) {
            EXPECT_LE(e.correlation, result.test[i - 1].correlation);
            EXPECT_LE(e.covariance, result.test[i - 1].covariance);
        }
    }
}

TEST(Vd, WhiteningFindsASignalThatLoudBandsHide) {
    // The mean is in a band with small variance; the eigenvalues of the other bands are much larger.
    const auto scene = covariance_of(independent({0, 0, 0, 0.4}, {50, 40, 30, 0.5}, 120, 90));
    EXPECT_EQ(vd::estimate(scene, vd::Method::hfc, 1e-5).number, 1);
    const auto whitened = vd::estimate(scene, vd::Method::nwhfc, 1e-5);
    EXPECT_EQ(whitened.number, 1);
    EXPECT_TRUE(whitened.test[0].signal); // now it comes first
    ASSERT_EQ(whitened.noise.size(), 4u);
    EXPECT_NEAR(whitened.noise[0], 50, 2);
    EXPECT_NEAR(whitened.noise[3], 0.5, 0.02);
}

TEST(Vd, DoesNotDependOnTilesAndThreads) {
    const Cube scene = random_scene(150, 140, 20, 5);
    const auto whole = vd::estimate(covariance_of(scene), vd::Method::nwhfc, 1e-3);
    const auto tiled = vd::estimate(covariance_of(scene, 3, 64), vd::Method::nwhfc, 1e-3);
    ASSERT_EQ(whole.test.size(), tiled.test.size());
    for (size_t i = 0; i < whole.test.size(); ++i) {
        EXPECT_EQ(whole.test[i].correlation, tiled.test[i].correlation);
        EXPECT_EQ(whole.test[i].covariance, tiled.test[i].covariance);
    }
}

TEST(Vd, RefusesWhatHasNoAnswer) {
    const auto scene = covariance_of(random_scene(30, 30, 6, 5));
    EXPECT_THROW(vd::estimate(scene, vd::Method::hfc, 0), UsageError);
    EXPECT_THROW(vd::estimate(scene, vd::Method::hfc, 1), UsageError);
    EXPECT_THROW(vd::estimate(scene, vd::Method::hfc, std::nan("")), UsageError);
    EXPECT_THROW(vd::estimate(covariance_of(random_scene(1, 1, 6, 5)), vd::Method::hfc, 1e-3), Error);
    // Two equal bands make the covariance matrix singular.
    Cube twin = random_scene(40, 40, 3, 8);
    for (int64_t l = 0; l < 40; ++l)
        for (int64_t s = 0; s < 40; ++s)
            twin.at(2, l, s) = twin.at(1, l, s);
    EXPECT_THROW(vd::estimate(covariance_of(twin), vd::Method::nwhfc, 1e-3), Error);
    EXPECT_NO_THROW(vd::estimate(covariance_of(twin), vd::Method::hfc, 1e-3));
}

} // namespace
} // namespace hsi::test
