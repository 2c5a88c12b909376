// SPDX-License-Identifier: MIT
#include "core/error.h"
#include "spp/spp.h"
#include "spp/spp_reference.h"
#include "stream/pipeline.h"
#include "stream/statistics_scan.h"
#include "support/cancelled_tile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace hsi::test {
namespace {

struct Cut {
    int64_t samples = 0, lines = 0;
    int lanes = 1;
};

struct Result {
    stream::SceneStatistics statistics;
    Cube cube, alpha, rho;
};

Result run_spp(const Cube& scene, int ws, Cut cut = {}) {
    const MemorySource source(scene);
    stream::PassOptions options;
    options.lanes = cut.lanes;
    options.tile_samples = cut.samples;
    options.tile_lines = cut.lines;
    stream::StatisticsScan scan(scene.shape, stream::Statistics::means);
    stream::run_pass(source, scan, {}, options);
    Result r;
    r.statistics = scan.result();
    spp::Options spp_options;
    spp_options.window = ws;
    spp_options.alpha = spp_options.rho = true;
    const auto operation = spp::make_displacement(spp_options, r.statistics.mean);
    MemorySink cube(scene.shape.samples, scene.shape.lines, scene.shape.bands);
    MemorySink alpha(scene.shape.samples, scene.shape.lines, 1),
        rho(scene.shape.samples, scene.shape.lines, 1);
    stream::run_pass(source, *operation, {&cube, &alpha, &rho}, options);
    r.cube = std::move(cube.cube);
    r.alpha = std::move(alpha.cube);
    r.rho = std::move(rho.cube);
    return r;
}

Cube rounded(const SppReference& reference, const stream::CubeShape& shape) {
    Cube cube(shape.samples, shape.lines, shape.bands);
    for (size_t i = 0; i < cube.values.size(); ++i)
        cube.values[i] = static_cast<float>(reference.cube[i]);
    return cube;
}

void expect_close(const Cube& scene, int ws, const Result& got) {
    const SppReference want = spp_reference(scene, ws);
    EXPECT_EQ(got.statistics.valid_pixels, want.valid);
    for (size_t b = 0; b < want.centroid.size(); ++b)
        EXPECT_NEAR(got.statistics.mean[b], want.centroid[b], 1e-12 * std::fabs(want.centroid[b]));
    const SppErrors errors = compare(want, got.cube);
    EXPECT_EQ(errors.validity_differs, 0);
    // NRMSE is relative to the spread of a spectrum over its bands. If the spread is small compared with the
    // level (few bands), even the rounded reference differs by more than 1e-6.
    EXPECT_LE(errors.mean_nrmse, std::max(1e-6, 3 * compare(want, rounded(want, scene.shape)).mean_nrmse));
    EXPECT_LE(errors.max_maxsde, 5e-6);
    for (size_t p = 0; p < want.alpha.size(); ++p) {
        if (std::isnan(want.alpha[p])) {
            EXPECT_TRUE(std::isnan(got.alpha.values[p]) && std::isnan(got.rho.values[p])) << "pixel " << p;
            continue;
        }
        EXPECT_NEAR(got.alpha.values[p], want.alpha[p], 2e-7 + 1e-6 * want.alpha[p]) << "pixel " << p;
        EXPECT_NEAR(got.rho.values[p], want.rho[p], 5e-6) << "pixel " << p;
    }
}

TEST(SppCpu, AgreesWithTheDoubleReferenceForEveryWindow) {
    const Cube scene = random_scene(41, 37, 30);
    for (int ws = 3; ws <= 15; ws += 2) {
        SCOPED_TRACE(ws);
        expect_close(scene, ws, run_spp(scene, ws));
    }
}

TEST(SppCpu, AgreesForWindowsLargerThanTheScene) {
    const Cube scene = random_scene(19, 23, 12, 3);
    expect_close(scene, 31, run_spp(scene, 31));
    expect_close(scene, 63, run_spp(scene, 63));
}

TEST(SppCpu, AgreesForTwoBandsAndForManyBands) {
    const Cube two = random_scene(29, 17, 2, 4), many = random_scene(17, 9, 1000, 5);
    expect_close(two, 5, run_spp(two, 5));
    expect_close(many, 5, run_spp(many, 5));
}

TEST(SppCpu, AgreesForScenesOfOneLineOrOneSample) {
    const Cube line = random_scene(50, 1, 9, 6), column = random_scene(1, 50, 9, 7),
               pixel = random_scene(1, 1, 9, 8);
    expect_close(line, 5, run_spp(line, 5));
    expect_close(column, 5, run_spp(column, 5));
    expect_close(pixel, 3, run_spp(pixel, 3));
}

TEST(SppCpu, EndsWithinATile) {
    const Cube scene = random_scene(19, 23, 12, 3);
    for (const int ws : {3, 63}) {
        spp::Options options;
        options.window = ws;
        EXPECT_TRUE(
            ends_within_its_tile(scene, *spp::make_displacement(options, std::vector<double>(12, 0.5))));
    }
}

TEST(SppCpu, LeavesInvalidPixelsOutAndMarksThem) {
    Cube scene = random_scene(40, 33, 20, 9);
    for (int64_t l = 5; l < 12; ++l)
        for (int64_t s = 0; s < 30; ++s)
            make_invalid(scene, l, s, static_cast<int>(s % 20));
    make_invalid(scene, 20, 20, 3, std::numeric_limits<float>::infinity());
    for (int b = 0; b < 20; ++b)
        scene.at(b, 25, 8) = 0;       // all zero
    for (int64_t l = 29; l < 33; ++l) // an island of one pixel
        for (int64_t s = 0; s < 4; ++s)
            if (l != 31 || s != 2) make_invalid(scene, l, s, 0);
    for (int ws : {3, 5, 9}) {
        SCOPED_TRACE(ws);
        const Result got = run_spp(scene, ws, {16, 16, 2});
        expect_close(scene, ws, got);
    }
    const Result small = run_spp(scene, 3);
    EXPECT_EQ(small.alpha.at(0, 31, 2), 0.0f); // without valid neighbours
    EXPECT_EQ(small.cube.at(7, 31, 2), scene.at(7, 31, 2));
}

TEST(SppCpu, IsBitIdenticalForEveryTilingAndNumberOfThreads) {
    Cube scene = random_scene(150, 61, 24, 10);
    make_invalid(scene, 30, 70, 1);
    for (int ws : {3, 5, 11}) {
        const Result whole = run_spp(scene, ws);
        for (const Cut& cut :
             {Cut{150, 7, 1}, Cut{64, 64, 2}, Cut{17, 13, 3}, Cut{1, 61, 2}, Cut{150, 1, 4}}) {
            SCOPED_TRACE(testing::Message() << "ws " << ws << ", tiles " << cut.samples << "x" << cut.lines);
            const Result tiled = run_spp(scene, ws, cut);
            EXPECT_EQ(whole.statistics.mean, tiled.statistics.mean);
            EXPECT_TRUE(identical(whole.cube, tiled.cube));
            EXPECT_TRUE(identical(whole.alpha, tiled.alpha));
            EXPECT_TRUE(identical(whole.rho, tiled.rho));
        }
    }
}

TEST(SppCpu, IsAccurateForSpectraThatAreMultiplesOfOneAnother) {
    // Angles that are zero except for rounding: the square root in rho would turn 1e-8 of single precision
    // into 1e-4.
    Cube scene = random_scene(30, 30, 50, 11, 0.0);
    for (int64_t l = 0; l < 30; ++l)
        for (int64_t s = 0; s < 30; ++s)
            for (int b = 0; b < 50; ++b)
                scene.at(b, l, s) =
                    static_cast<float>((1 + b % 7) * (3 + l * 30 + s)); // integers: exactly parallel
    const Result got = run_spp(scene, 5);
    for (float a : got.alpha.values)
        EXPECT_LT(a, 1e-14);
    expect_close(scene, 5, got);
    Cube nearly = random_scene(30, 30, 50, 12, 1e-6); // smooth, and almost without noise
    expect_close(nearly, 5, run_spp(nearly, 5));
}

TEST(SppCpu, GivesTheScenesOwnValuesWhereAllSpectraAreEqual) {
    Cube scene(20, 20, 8);
    for (int b = 0; b < 8; ++b)
        for (int64_t l = 0; l < 20; ++l)
            for (int64_t s = 0; s < 20; ++s)
                scene.at(b, l, s) = static_cast<float>(0.1 * (b + 1));
    const Result got = run_spp(scene, 5);
    for (size_t i = 0; i < scene.values.size(); ++i)
        EXPECT_FLOAT_EQ(got.cube.values[i], scene.values[i]);
    for (float r : got.rho.values)
        EXPECT_EQ(r, 1.0f);
}

TEST(SppCpu, MatchesAClosedForm) {
    // Two pixels at a right angle have alpha = pi/2, for any window.
    Cube scene(2, 1, 2);
    scene.at(0, 0, 0) = 2;
    scene.at(1, 0, 1) = 5;
    const Result got = run_spp(scene, 3);
    const double alpha = std::acos(0.0), rho = std::pow(1 + std::sqrt(alpha), 2);
    EXPECT_NEAR(got.alpha.values[0], alpha, 1e-6);
    EXPECT_NEAR(got.cube.at(0, 0, 0), (2 - 1) / rho + 1, 1e-6);
    EXPECT_NEAR(got.cube.at(1, 0, 1), (5 - 2.5) / rho + 2.5, 1e-6);
}

TEST(SppCpu, RefusesWindowsThatAreNoWindows) {
    for (int ws : {-1, 0, 1, 2, 4, 64, 65}) {
        spp::Options options;
        options.window = ws;
        EXPECT_THROW(spp::make_displacement(options, {1.0, 2.0}), UsageError) << ws;
    }
}

} // namespace
} // namespace hsi::test
