// SPDX-License-Identifier: MIT
// Compares hsi_cuda_spp.so, in the tile pipeline, with the reference in double precision that tests of the
// CPU backend also use.
#include "core/cuda_module.h"
#include "core/error.h"
#include "spp/spp.h"
#include "spp/spp_reference.h"
#include "stream/pipeline.h"
#include "stream/statistics_scan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

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

spp::Backend& backend() {
    static const auto made = make_cuda_backend<spp::Backend>("spp", cuda_devices());
    return *made;
}

class SppCuda : public testing::Test {
  protected:
    void SetUp() override {
        if (cuda_devices().empty()) GTEST_SKIP() << "NO GPU HERE: nothing of hsi_cuda_spp.so was tested";
    }

    static Result run_spp(const Cube& scene, int ws, Cut cut = {}, std::vector<double> centroid = {}) {
        const MemorySource source(scene);
        stream::PassOptions options;
        options.lanes = cut.lanes;
        options.tile_samples = cut.samples;
        options.tile_lines = cut.lines;
        options.memory = uint64_t{8} << 30;
        stream::StatisticsScan scan(scene.shape, stream::Statistics::means);
        stream::run_pass(source, scan, {}, options);
        Result r;
        r.statistics = scan.result();
        spp::Options spp_options;
        spp_options.window = ws;
        spp_options.alpha = spp_options.rho = true;
        const auto operation =
            backend().make_displacement(spp_options, centroid.empty() ? r.statistics.mean : centroid);
        MemorySink cube(scene.shape.samples, scene.shape.lines, scene.shape.bands);
        MemorySink alpha(scene.shape.samples, scene.shape.lines, 1),
            rho(scene.shape.samples, scene.shape.lines, 1);
        stream::run_pass(source, *operation, {&cube, &alpha, &rho}, options);
        r.cube = std::move(cube.cube);
        r.alpha = std::move(alpha.cube);
        r.rho = std::move(rho.cube);
        return r;
    }

    static Cube rounded(const SppReference& reference, const stream::CubeShape& shape) {
        Cube cube(shape.samples, shape.lines, shape.bands);
        for (size_t i = 0; i < cube.values.size(); ++i)
            cube.values[i] = static_cast<float>(reference.cube[i]);
        return cube;
    }

    static void expect_close(const Cube& scene, int ws, const Result& got) {
        const SppReference want = spp_reference(scene, ws);
        EXPECT_EQ(got.statistics.valid_pixels, want.valid);
        EXPECT_EQ(got.statistics.invalid_pixels, scene.shape.pixels() - want.valid);
        for (size_t b = 0; b < want.centroid.size(); ++b)
            EXPECT_NEAR(got.statistics.mean[b], want.centroid[b], 1e-12 * std::fabs(want.centroid[b]));
        const SppErrors errors = compare(want, got.cube);
        EXPECT_EQ(errors.validity_differs, 0);
        // With few bands, even the reference rounded to single precision has a mean NRMSE above 1e-6.
        EXPECT_LE(errors.mean_nrmse,
                  std::max(1e-6, 3 * compare(want, rounded(want, scene.shape)).mean_nrmse));
        EXPECT_LE(errors.max_maxsde, 5e-6);
        int64_t wrong = 0;
        double worst = 0;
        for (size_t p = 0; p < want.alpha.size(); ++p) {
            if (std::isnan(want.alpha[p])) {
                wrong += !(std::isnan(got.alpha.values[p]) && std::isnan(got.rho.values[p]));
                continue;
            }
            const double off = std::fabs(static_cast<double>(got.alpha.values[p]) - want.alpha[p]);
            worst = std::max(worst, off);
            wrong += !(off <= 2e-7 + 1e-6 * want.alpha[p]);
            wrong += !(std::fabs(static_cast<double>(got.rho.values[p]) - want.rho[p]) <= 5e-6);
        }
        EXPECT_EQ(wrong, 0) << "alpha is off by up to " << worst;
    }

    static void expect_same(const Result& a, const Result& b) {
        EXPECT_TRUE(identical(a.cube, b.cube));
        EXPECT_TRUE(identical(a.alpha, b.alpha));
        EXPECT_TRUE(identical(a.rho, b.rho));
        EXPECT_EQ(a.statistics.mean, b.statistics.mean);
        EXPECT_EQ(a.statistics.finite, b.statistics.finite);
        EXPECT_EQ(a.statistics.valid_pixels, b.statistics.valid_pixels);
    }

    /// Returns a scene with holes, single bad values, pixels of zeros, and an island of one valid pixel at
    /// line 31, sample 2.
    static Cube scene_with_holes(int64_t samples, int64_t lines, int bands, uint32_t seed) {
        Cube scene = random_scene(samples, lines, bands, seed);
        for (int64_t l = 5; l < 12; ++l)
            for (int64_t s = 0; s < 30; ++s)
                make_invalid(scene, l, s, static_cast<int>(s) % bands);
        for (int b = 0; b < bands; ++b) {
            for (int64_t s = 33; s < 38; ++s)
                make_invalid(scene, 14, s, b); // invalid in all bands
            scene.at(b, 25, 8) = 0;            // zero in all bands
        }
        make_invalid(scene, 20, 20, 1, std::numeric_limits<float>::infinity());
        make_invalid(scene, 21, 35, 0, -std::numeric_limits<float>::infinity());
        for (int64_t l = 29; l < 33; ++l)
            for (int64_t s = 0; s < 4; ++s)
                if (l != 31 || s != 2) make_invalid(scene, l, s, 0);
        return scene;
    }
};

TEST_F(SppCuda, AgreesWithTheDoubleReferenceForEveryWindow) {
    const Cube scene = random_scene(75, 67, 31);
    for (int ws : {3, 5, 7, 9, 11, 13, 15, 17, 21, 27, 31}) {
        SCOPED_TRACE(ws);
        expect_close(scene, ws, run_spp(scene, ws));
    }
}

TEST_F(SppCuda, AgreesForWindowsLargerThanTheScene) {
    const Cube scene = random_scene(19, 23, 12, 3);
    for (int ws : {31, 45, 63}) {
        SCOPED_TRACE(ws);
        expect_close(scene, ws, run_spp(scene, ws));
    }
}

TEST_F(SppCuda, AgreesForTwoBandsAndForManyBands) {
    for (int bands : {2, 3, 5, 255, 256, 257, 425, 1031}) {
        const Cube scene = random_scene(67, 9, bands, static_cast<uint32_t>(bands));
        for (int ws : {3, 5, 9, 15}) {
            SCOPED_TRACE(std::to_string(bands) + " bands, ws " + std::to_string(ws));
            expect_close(scene, ws, run_spp(scene, ws));
        }
    }
}

TEST_F(SppCuda, AgreesForScenesOfOneLineOrOneSample) {
    const Cube line = random_scene(50, 1, 9, 6), column = random_scene(1, 50, 9, 7),
               pixel = random_scene(1, 1, 9, 8);
    for (int ws : {3, 5, 9}) {
        expect_close(line, ws, run_spp(line, ws));
        expect_close(column, ws, run_spp(column, ws));
        expect_close(pixel, ws, run_spp(pixel, ws));
    }
}

TEST_F(SppCuda, LeavesInvalidPixelsOutAndMarksThem) {
    const Cube scene = scene_with_holes(140, 37, 20, 9);
    for (int ws : {3, 5, 7, 9, 15, 31}) {
        SCOPED_TRACE(ws);
        expect_close(scene, ws, run_spp(scene, ws, {128, 16, 2}));
    }
    const Result small = run_spp(scene, 3);
    EXPECT_EQ(small.alpha.at(0, 31, 2), 0.0f); // the pixel has no valid neighbours
    EXPECT_EQ(small.rho.at(0, 31, 2), 1.0f);
    for (int b = 0; b < 20; ++b) {
        int64_t finite = 0;
        for (int64_t p = 0; p < scene.shape.pixels(); ++p)
            finite += std::isfinite(scene.values[static_cast<size_t>(b * scene.shape.pixels() + p)]);
        EXPECT_EQ(small.statistics.finite[static_cast<size_t>(b)], finite) << "band " << b;
    }
}

TEST_F(SppCuda, NamesBandsWithoutAnyValue) {
    Cube scene = random_scene(60, 20, 7, 2);
    for (int64_t l = 0; l < 20; ++l)
        for (int64_t s = 0; s < 60; ++s)
            make_invalid(scene, l, s, 4);
    const Result got = run_spp(scene, 3, {}, std::vector<double>(7, 1.0));
    EXPECT_EQ(got.statistics.empty_bands(), std::vector<int>{4});
    EXPECT_EQ(got.statistics.valid_pixels, 0);
    for (float v : got.cube.values)
        ASSERT_TRUE(std::isnan(v));
}

TEST_F(SppCuda, DoesNotDependOnTilesOrLanes) {
    const Cube scene = scene_with_holes(301, 130, 37, 11);
    for (int ws : {3, 5, 7, 9, 15, 31}) {
        SCOPED_TRACE(ws);
        const Result whole = run_spp(scene, ws, {301, 130, 1});
        for (const Cut& cut :
             {Cut{17, 5, 1}, Cut{64, 64, 4}, Cut{301, 1, 4}, Cut{1, 130, 2}, Cut{128, 16, 3}}) {
            SCOPED_TRACE(std::to_string(cut.samples) + "x" + std::to_string(cut.lines));
            expect_same(whole, run_spp(scene, ws, cut));
        }
    }
}

TEST_F(SppCuda, GivesTheSameBitsTwice) {
    // With so little noise, many pixels are computed in double precision.
    const Cube scene = random_scene(200, 100, 64, 5, 1e-3);
    for (int ws : {5, 9, 31})
        expect_same(run_spp(scene, ws, {0, 0, 4}), run_spp(scene, ws, {0, 0, 4}));
}

TEST_F(SppCuda, TakesParallelSpectraForParallel) {
    Cube scene(70, 20, 50);
    for (int b = 0; b < 50; ++b)
        for (int64_t l = 0; l < 20; ++l)
            for (int64_t s = 0; s < 70; ++s)
                // All spectra are exact multiples of one spectrum.
                scene.at(b, l, s) = static_cast<float>((1 + b) * (1 + (3 * l + 5 * s) % 16));
    for (int ws : {3, 5, 9, 31}) {
        SCOPED_TRACE(ws);
        const Result got = run_spp(scene, ws);
        EXPECT_LE(*std::max_element(got.alpha.values.begin(), got.alpha.values.end()), 1e-14f);
        for (float v : got.alpha.values)
            ASSERT_GE(v, 0.0f);
    }
    const Cube flat(70, 20, 50, 0.1f);
    const Result got = run_spp(flat, 5);
    for (float v : got.alpha.values)
        ASSERT_EQ(v, 0.0f);
    for (float v : got.cube.values)
        ASSERT_EQ(v, 0.1f);
}

TEST_F(SppCuda, KeepsItsAccuracyForNearlyParallelSpectra) {
    for (double noise : {1e-2, 1e-3, 1e-4, 1e-5}) {
        Cube scene = random_scene(66, 20, 60, 13, 0.0);
        for (int64_t l = 0; l < 20; ++l)
            for (int64_t s = 0; s < 66; ++s)
                for (int b = 0; b < 60; ++b) {
                    const double wave = std::sin(0.3 * b + 0.7 * static_cast<double>(l * 66 + s));
                    scene.at(b, l, s) = static_cast<float>((2.0 + std::sin(0.1 * b)) * (1.0 + noise * wave));
                }
        SCOPED_TRACE(noise);
        expect_close(scene, 5, run_spp(scene, 5));
        expect_close(scene, 9, run_spp(scene, 9));
    }
}

TEST_F(SppCuda, HandlesOppositeSpectraAndExtremeValues) {
    Cube opposite = random_scene(66, 20, 8, 17);
    for (int64_t l = 0; l < 20; ++l)
        for (int64_t s = 0; s < 66; ++s)
            if ((l + s) % 3 == 0)
                for (int b = 0; b < 8; ++b)
                    opposite.at(b, l, s) = -opposite.at(b, l, s);
    // Here y' is a small difference of large numbers. Only alpha and rho can be compared.
    const SppReference turned = spp_reference(opposite, 5);
    const Result got_opposite = run_spp(opposite, 5);
    for (size_t p = 0; p < turned.alpha.size(); ++p) {
        ASSERT_NEAR(got_opposite.alpha.values[p], turned.alpha[p], 1e-6 * turned.alpha[p]) << "pixel " << p;
        ASSERT_NEAR(got_opposite.rho.values[p], turned.rho[p], 1e-6 * turned.rho[p]) << "pixel " << p;
    }
    // In single precision, the squares of these values overflow or become 0.
    for (float level : {1e30f, 1e-30f, 1e-42f}) {
        Cube scene = random_scene(66, 20, 8, 18);
        for (float& v : scene.values)
            v *= level;
        const SppReference want = spp_reference(scene, 5);
        const Result got = run_spp(scene, 5);
        for (size_t p = 0; p < want.alpha.size(); ++p)
            ASSERT_NEAR(got.alpha.values[p], want.alpha[p], 2e-7 + 1e-6 * want.alpha[p])
                << level << " pixel " << p;
    }
}

TEST_F(SppCuda, WritesOnlyTheOutputsAskedFor) {
    const Cube scene = random_scene(80, 40, 10, 21);
    const Result all = run_spp(scene, 5);
    const MemorySource source(scene);
    for (int mask = 1; mask < 8; ++mask) {
        spp::Options options;
        options.cube = mask & 1;
        options.alpha = mask & 2;
        options.rho = mask & 4;
        const auto operation = backend().make_displacement(options, all.statistics.mean);
        MemorySink cube(80, 40, 10), alpha(80, 40, 1), rho(80, 40, 1);
        std::vector<stream::CubeSink*> sinks;
        if (options.cube) sinks.push_back(&cube);
        if (options.alpha) sinks.push_back(&alpha);
        if (options.rho) sinks.push_back(&rho);
        stream::run_pass(source, *operation, sinks, stream::PassOptions{});
        EXPECT_TRUE(!options.cube || identical(cube.cube, all.cube)) << mask;
        EXPECT_TRUE(!options.alpha || identical(alpha.cube, all.alpha)) << mask;
        EXPECT_TRUE(!options.rho || identical(rho.cube, all.rho)) << mask;
    }
}

TEST_F(SppCuda, AsksForNoMoreDeviceMemoryThanItSays) {
    // With several devices, workers are distributed over the devices. The test measures the memory of one
    // device.
    const auto device = make_cuda_backend<spp::Backend>("spp", {cuda_devices().front()});
    device->free_memory(); // allocates the memory of the CUDA context before the measurement
    for (int ws : {5, 15, 63}) {
        spp::Options options;
        options.window = ws;
        const auto operation = device->make_displacement(options, std::vector<double>(100, 1.0));
        const stream::TileLimits limits{700, 500, 640, 440};
        auto first = operation->start(0, limits); // loads the code of the module before the measurement
        const uint64_t before = device->free_memory();
        auto second = operation->start(1, limits);
        const uint64_t after = device->free_memory();
        // Other programs may allocate memory at the same time, and the allocator rounds each buffer up to 2
        // MiB.
        EXPECT_LE(before - after, operation->device_bytes(limits) + (uint64_t{32} << 20)) << ws;
        EXPECT_GT(before - after, operation->device_bytes(limits) / 2) << ws;
    }
}

TEST_F(SppCuda, SaysWhatIsWrong) {
    spp::Options options;
    options.window = 4;
    EXPECT_THROW(backend().make_displacement(options, {1.0, 2.0}), UsageError);
    options.window = 65;
    EXPECT_THROW(backend().make_displacement(options, {1.0, 2.0}), UsageError);
    options.window = 5;
    EXPECT_THROW(make_cuda_backend<spp::Backend>("spp", {}), Error);
    const auto huge = backend().make_displacement(options, std::vector<double>(5000, 1.0));
    try {
        huge->start(0, stream::TileLimits{30000, 30000, 29996, 29996});
        FAIL() << "18 terabytes fit on the GPU";
    } catch (const Error& e) {
        EXPECT_NE(std::string(e.what()).find("out of memory"), std::string::npos) << e.what();
        EXPECT_NE(e.advice().find("-memory"), std::string::npos);
    }
    // The device still works after the failure.
    expect_close(random_scene(40, 30, 6), 5, run_spp(random_scene(40, 30, 6), 5));
}

TEST_F(SppCuda, PassesErrorsOfOtherStagesOn) {
    const Cube scene = random_scene(64, 64, 8);
    MemorySource source(scene);
    source.on_read = [](const Rect& r) {
        if (r.y > 20) throw Error("a broken file");
    };
    stream::PassOptions options;
    options.lanes = 4;
    options.tile_samples = options.tile_lines = 16;
    const auto operation = backend().make_displacement(spp::Options{}, std::vector<double>(8, 1.0));
    MemorySink sink(64, 64, 8);
    EXPECT_THROW(stream::run_pass(source, *operation, {&sink}, options), Error);
}

} // namespace
} // namespace hsi::test
