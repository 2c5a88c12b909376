// SPDX-License-Identifier: MIT
// Compares hsi_cuda_detect_pixel.so and hsi_cuda_detect_local.so, in the tile pipeline, with the definitions
// in long double and with the CPU's operations.
#include "core/cuda_module.h"
#include "detect/local/local.h"
#include "detect/pixel/pixel.h"
#include "detect/reference.h"
#include "stream/pipeline.h"
#include "support/memory_cube.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace hsi::test {
namespace {

using detect::Method;
using detect::PixelMask;
using detect::Ring;
using detect::Targets;

constexpr Method methods[] = {Method::sam, Method::sid, Method::mf, Method::cem, Method::ace, Method::rx};

struct Found {
    MemorySink scores, map;
    std::array<int64_t, 4> counts{};
    double at(int64_t y, int64_t x, int k = 0) const { return scores.cube.at(k, y, x); }
};

Found found(const Cube& cube, detect::Detection& operation, int scores, stream::PassOptions pass = {}) {
    const auto s = cube.shape;
    pass.memory = uint64_t{4} << 30;
    Found f{MemorySink(s.samples, s.lines, scores), MemorySink(s.samples, s.lines, 1)};
    stream::run_pass(MemorySource(cube), operation, {&f.scores, &f.map}, pass);
    f.counts = {operation.valid(), operation.invalid(), operation.without_background(),
                operation.without_variance()};
    return f;
}

stream::PassOptions tiles(int64_t samples, int64_t lines, int lanes) {
    stream::PassOptions pass;
    pass.tile_samples = samples;
    pass.tile_lines = lines;
    pass.lanes = lanes;
    return pass;
}

bool same(const Found& a, const Found& b) {
    return identical(a.scores.cube, b.scores.cube) && identical(a.map.cube, b.map.cube) &&
           a.counts == b.counts;
}

/// Returns a scene with a NaN, an infinity, a pixel of zeros and a pixel of negative values.
Cube a_scene(int64_t samples, int64_t lines, int bands) {
    Cube cube = random_scene(samples, lines, bands, 7, 0.03, 900);
    make_invalid(cube, 0, 0, 0);
    make_invalid(cube, lines / 2, samples / 2, bands - 1, std::numeric_limits<float>::infinity());
    for (int b = 0; b < bands; ++b)
        cube.at(b, lines / 3, samples - 2) = 0;
    for (int b = 0; b < bands; b += 3)
        cube.at(b, lines / 4, samples / 4) = -5;
    return cube;
}

/// Returns `count` targets. The third target equals the first.
Targets some_targets(const Cube& cube, int count) {
    Targets t;
    for (int k = 0; k < count; ++k) {
        const int64_t i = k == 2 ? 0 : k;
        const Vector x = pixel(cube, 1 + i % (cube.shape.lines - 2), 2 + i * 5 % (cube.shape.samples - 4));
        t.names.push_back("t" + std::to_string(k));
        t.spectra.emplace_back();
        for (size_t b = 0; b < x.size(); ++b)
            t.spectra.back().push_back(static_cast<double>(x[b]) * (1 + 0.02 * static_cast<double>(i)) +
                                       0.5 * static_cast<double>(b % 3));
    }
    return t;
}

detect::Detector detector_for(const Cube& cube, Method method, const Targets& targets,
                              const PixelMask* mask = nullptr) {
    if (!detect::has_background(method)) return detect::make_detector(method, targets);
    detect::BackgroundScan scan(cube.shape, mask);
    stream::run_pass(MemorySource(cube), scan, {}, {});
    return detect::make_detector(method, detect::has_target(method) ? targets : Targets{},
                                 scan.result().moments);
}

class DetectCuda : public testing::Test {
  protected:
    void SetUp() override {
        if (cuda_devices().empty()) GTEST_SKIP() << "NO GPU HERE: nothing of hsi_cuda_detect_*.so was tested";
        m_pixel = make_cuda_backend<detect::PixelBackend>("detect_pixel", cuda_devices());
        m_local = make_cuda_backend<detect::LocalBackend>("detect_local", cuda_devices());
    }
    Found on_gpu(const Cube& cube, const detect::Detector& d, std::optional<double> threshold = {},
                 const stream::PassOptions& pass = {}) {
        return found(cube, *m_pixel->make_detection(d, {true, threshold}), d.scores(), pass);
    }
    Found on_gpu(const Cube& cube, const Ring& ring, const stream::PassOptions& pass = {}) {
        return found(cube, *m_local->make_local_detection(cube.shape.bands, ring, {true, 20}), 1, pass);
    }
    void expect_definition(const Cube& cube, const Ring& ring, int64_t step = 1);
    void expect_as_on_cpu(const Cube& cube, const Ring& ring);
    std::unique_ptr<detect::PixelBackend> m_pixel;
    std::unique_ptr<detect::LocalBackend> m_local;
};

TEST_F(DetectCuda, ScoresAreTheirDefinitions) {
    struct Case {
        int bands, targets;
        int64_t step;
    };
    for (const Case& c : {Case{1, 1, 1},
                          {2, 2, 1},
                          {3, 3, 1},
                          {4, 9, 3},
                          {5, 4, 1},
                          {13, 17, 5},
                          {50, 4, 23},
                          {224, 3, 97}}) {
        const auto cube = a_scene(61, 29, c.bands);
        const auto targets = some_targets(cube, c.targets);
        const Reference reference(cube, [](int64_t, int64_t) { return true; });
        for (const Method method : methods) {
            SCOPED_TRACE(std::string(detect::name_of(method)) + ", " + std::to_string(c.bands) + " bands");
            const auto d = detector_for(cube, method, targets);
            ASSERT_EQ(d.ridge, 0);
            const auto got = on_gpu(cube, d);
            for (int64_t i = 0; i < cube.shape.pixels(); i += c.step) {
                const int64_t y = i / 61, x = i % 61;
                const Vector v = pixel(cube, y, x);
                const bool valid =
                    is_valid(v) && (method != Method::sid || *std::max_element(v.begin(), v.end()) > 0);
                ASSERT_EQ(std::isnan(got.map.cube.at(0, y, x)), !valid) << y << " " << x;
                for (int k = 0; k < d.scores(); k += std::max(1, d.scores() - 1)) {
                    ASSERT_EQ(std::isnan(got.at(y, x, k)), !valid);
                    if (!valid) continue;
                    const auto& t = targets.spectra[static_cast<size_t>(k)];
                    const double want = reference.score(method, v, Vector(t.begin(), t.end()));
                    ASSERT_NEAR(got.at(y, x, k), want,
                                std::max(1e-7 * std::fabs(want), 0.1 * tolerance(method, want)))
                        << k << " " << y << " " << x;
                }
            }
        }
    }
}

TEST_F(DetectCuda, ScoresMapsAndCountsAreTheCpus) {
    const auto cube = a_scene(133, 37, 21);
    const auto targets = some_targets(cube, 11);
    PixelMask mask(133, 37);
    for (int64_t y = 0; y < 37; ++y)
        for (int64_t x = 0; x < 133; ++x)
            if ((x / 4 + y) % 3 != 0) mask.set(y, x);
    for (const Method method : methods)
        for (const std::optional<double> threshold : {std::optional<double>(), std::optional<double>(0.3)}) {
            SCOPED_TRACE(detect::name_of(method));
            const auto d = detector_for(cube, method, targets, &mask);
            const auto cpu = found(cube, *detect::make_detection(d, {true, threshold}), d.scores()),
                       gpu = on_gpu(cube, d, threshold);
            EXPECT_EQ(cpu.counts, gpu.counts);
            EXPECT_EQ(gpu.counts[1], 3);
            const auto near = [&](double a, double b) {
                return std::fabs(a - b) <= 2 * tolerance(method, a);
            };
            const double sign = detect::is_small_at_target(method) ? -1 : 1;
            for (int64_t y = 0; y < 37; ++y)
                for (int64_t x = 0; x < 133; ++x) {
                    double best = -std::numeric_limits<double>::infinity();
                    for (int k = 0; k < d.scores(); ++k) {
                        const double a = cpu.at(y, x, k), b = gpu.at(y, x, k);
                        ASSERT_EQ(std::isnan(a), std::isnan(b));
                        ASSERT_TRUE(std::isnan(a) || near(a, b)) << a << " " << b;
                        best = std::max(best, sign * b);
                    }
                    const float a = cpu.map.cube.at(0, y, x), b = gpu.map.cube.at(0, y, x);
                    EXPECT_NE(b, 3.0f) << "the first of equal ones";
                    if (std::isnan(a) || a == b) {
                        ASSERT_EQ(std::isnan(a), std::isnan(b));
                        continue;
                    }
                    const bool at_threshold = threshold && near(sign * best, *threshold);
                    const bool between =
                        a > 0 && b > 0 && near(gpu.at(y, x, static_cast<int>(a) - 1), sign * best);
                    EXPECT_TRUE(at_threshold || between) << a << " " << b << " at " << y << " " << x;
                }
        }
}

TEST_F(DetectCuda, TilesLanesAndDeviceMemoryChangeNoBitOfScores) {
    const auto cube = a_scene(389, 21, 33);
    const auto targets = some_targets(cube, 10);
    for (const Method method : methods) {
        SCOPED_TRACE(detect::name_of(method));
        const auto d = detector_for(cube, method, targets);
        const auto whole = on_gpu(cube, d, 0.5);
        for (auto pass : {tiles(128, 5, 3), tiles(389, 1, 2), tiles(17, 3, 4), tiles(256, 21, 1)}) {
            EXPECT_TRUE(same(whole, on_gpu(cube, d, 0.5, pass)));
            pass.device_memory = uint64_t{8} << 20;
            EXPECT_TRUE(same(whole, on_gpu(cube, d, 0.5, pass)));
        }
    }
}

TEST_F(DetectCuda, SidWantsAPositiveValueAndAceIsNothingAtTheMean) {
    Cube cube(3, 1, 3);
    const float values[3][3] = {{1, 0, -4}, {-1, -2, -3}, {0, 2, 2}};
    for (int x = 0; x < 3; ++x)
        for (int b = 0; b < 3; ++b)
            cube.at(b, 0, x) = values[x][b];
    const auto sid = on_gpu(cube, detect::make_detector(Method::sid, {{"t"}, {{2, -1, 0}}}));
    EXPECT_EQ(sid.counts[0], 2);
    EXPECT_EQ(sid.counts[1], 1);
    EXPECT_TRUE(std::isnan(sid.at(0, 1)));
    Cube pairs(9, 1, 3);
    const float apart[4][3] = {{1, 0, 0}, {0, 2, 0}, {0, 0, 1}, {1, 1, 0}};
    for (int k = 0; k < 4; ++k)
        for (int b = 0; b < 3; ++b) {
            pairs.at(b, 0, 2 * k) = 4 + apart[k][b];
            pairs.at(b, 0, 2 * k + 1) = 4 - apart[k][b];
        }
    for (int b = 0; b < 3; ++b)
        pairs.at(b, 0, 8) = 4;
    const auto ace = on_gpu(pairs, detector_for(pairs, Method::ace, {{"t"}, {{5, 5, 6}}}));
    EXPECT_EQ(ace.at(0, 8), 0);
    for (int k = 0; k < 4; ++k)
        EXPECT_FLOAT_EQ(static_cast<float>(ace.at(0, 2 * k)), -static_cast<float>(ace.at(0, 2 * k + 1)));
}

TEST_F(DetectCuda, BandsThatAreLeftOutSayNothing) {
    auto cube = a_scene(40, 23, 12);
    for (int64_t y = 0; y < 23; ++y)
        for (int64_t x = 0; x < 40; ++x)
            for (const int b : {3, 8})
                if (std::isfinite(cube.at(b, y, x)) && cube.at(b, y, x) != 0) cube.at(b, y, x) = 7;
    const auto targets = some_targets(cube, 3);
    for (const Method method : {Method::mf, Method::ace, Method::rx}) {
        SCOPED_TRACE(detect::name_of(method));
        const auto d = detector_for(cube, method, targets);
        ASSERT_EQ(d.constant, (std::vector<int>{3, 8}));
        const auto cpu = found(cube, *detect::make_detection(d, {true, 0.5}), d.scores()),
                   gpu = on_gpu(cube, d, 0.5);
        for (int64_t y = 0; y < 23; ++y)
            for (int64_t x = 0; x < 40; ++x) {
                const double a = cpu.at(y, x), b = gpu.at(y, x);
                EXPECT_TRUE(std::isnan(a) ? std::isnan(b) : std::fabs(a - b) <= 2 * tolerance(method, a));
            }
    }
}

// --- Local RX

void DetectCuda::expect_definition(const Cube& cube, const Ring& ring, int64_t step) {
    SCOPED_TRACE(std::to_string(cube.shape.bands) + " bands, " + std::to_string(ring.inner) + " in " +
                 std::to_string(ring.outer));
    const auto got = on_gpu(cube, ring);
    for (int64_t i = 0; i < cube.shape.pixels(); i += step) {
        const int64_t y = i / cube.shape.samples, x = i % cube.shape.samples;
        const double want = local_reference(cube, ring, y, x), score = got.at(y, x);
        const float map = got.map.cube.at(0, y, x);
        ASSERT_EQ(std::isnan(want), std::isnan(score)) << y << " " << x;
        ASSERT_EQ(std::isnan(want), std::isnan(map)) << y << " " << x;
        if (std::isnan(want)) continue;
        ASSERT_NEAR(score, want, 1e-5 * want + 1e-6) << y << " " << x;
        if (std::fabs(want - 20) > 1e-3) {
            ASSERT_EQ(map, want >= 20 ? 1.0f : 0.0f);
        }
    }
}

void DetectCuda::expect_as_on_cpu(const Cube& cube, const Ring& ring) {
    SCOPED_TRACE(std::to_string(cube.shape.bands) + " bands, " + std::to_string(ring.inner) + " in " +
                 std::to_string(ring.outer));
    stream::PassOptions pass;
    pass.lanes = 4;
    const auto gpu = on_gpu(cube, ring),
               cpu = found(cube, *detect::make_local_detection(cube.shape.bands, ring, {true, 20}), 1, pass);
    EXPECT_EQ(gpu.counts, cpu.counts);
    for (int64_t y = 0; y < cube.shape.lines; ++y)
        for (int64_t x = 0; x < cube.shape.samples; ++x) {
            const double a = cpu.at(y, x), b = gpu.at(y, x);
            ASSERT_EQ(std::isnan(a), std::isnan(b)) << y << " " << x;
            if (std::isnan(a)) continue;
            ASSERT_NEAR(b, a, 1e-5 * a + 1e-6) << y << " " << x;
            if (std::fabs(a - 20) > 1e-3) {
                ASSERT_EQ(cpu.map.cube.at(0, y, x), gpu.map.cube.at(0, y, x));
            }
        }
}

TEST_F(DetectCuda, LocalRxIsItsDefinition) {
    for (int bands = 1; bands <= 5; ++bands)
        expect_definition(a_scene(23, 14, bands), {1, 3});
    for (const int bands : {7, 8, 9, 15, 16, 17})
        expect_definition(a_scene(40, 13, bands), {3, 9}, 7);
    expect_definition(a_scene(23, 14, 20), {1, 3});     // 8 pixels for 20 bands: uses U U' instead of U'U
    expect_definition(a_scene(23, 14, 20), {3, 7});     // 40 pixels in the ring
    expect_definition(a_scene(23, 14, 37), {5, 11}, 5); // 96 pixels in the ring
    expect_definition(a_scene(5, 4, 6), {7, 21});       // the outer square exceeds the scene on all sides
    expect_definition(a_scene(300, 5, 6), {3, 9});      // several runs of pixels per row
    expect_definition(a_scene(1, 9, 3), {1, 5});
    expect_definition(a_scene(140, 3, 2), {125, 127}, 31);
    expect_definition(a_scene(40, 36, 60), {15, 31}, 331);
}

TEST_F(DetectCuda, LocalRxIsThatOfTheCpu) {
    expect_as_on_cpu(a_scene(70, 34, 31), {7, 15});
    expect_as_on_cpu(a_scene(50, 33, 64), {15, 31});
    expect_as_on_cpu(a_scene(37, 12, 224), {15, 31}); // uses nearly all of the shared memory
    expect_as_on_cpu(a_scene(21, 5, 260), {9, 25});   // needs more than the available shared memory
    expect_as_on_cpu(a_scene(33, 9, 200), {1, 3});    // uses U U' instead of U'U
    expect_as_on_cpu(a_scene(33, 9, 224), {5, 11});
    expect_as_on_cpu(a_scene(19, 7, 600), {3, 17}); // uses U U' of order 280
}

TEST_F(DetectCuda, LocalRxTakesItsBackgroundFromTheMask) {
    for (const int bands : {7, 40}) {
        const auto cube = a_scene(41, 16, bands);
        PixelMask mask(41, 16);
        for (int64_t y = 0; y < 16; ++y)
            for (int64_t x = 0; x < 41; ++x)
                // At the far right, rings contain too few pixels.
                if ((x * 7 + y * 3) % 5 < 2 && x < 30) mask.set(y, x);
        for (const auto& [inner, outer] : {std::pair(1, 3), std::pair(3, 9)}) {
            expect_definition(cube, {inner, outer, &mask}, 3);
            expect_as_on_cpu(cube, {inner, outer, &mask});
        }
        const auto got = on_gpu(cube, {3, 9, &mask});
        EXPECT_GT(got.counts[2], 0);
        EXPECT_TRUE(std::isnan(got.at(8, 40)));
    }
}

TEST_F(DetectCuda, LocalRxOfRingsWithoutVariance) {
    for (const int bands : {4, 30}) {
        const auto cube = flattened(a_scene(60, 13, bands));
        expect_definition(cube, {3, 7});
        expect_as_on_cpu(cube, {3, 7});
        const auto got = on_gpu(cube, {3, 7});
        EXPECT_TRUE(std::isnan(got.at(6, 45)));
        EXPECT_EQ(got.at(6, 30), 0);
        EXPECT_GT(got.counts[3], 100);
    }
}

TEST_F(DetectCuda, LocalRxWithoutARidgeIsItsDefinition) {
    for (const auto& [bands, inner, outer] :
         {std::tuple(4, 1, 3), std::tuple(10, 3, 9), std::tuple(37, 5, 11), std::tuple(150, 3, 7)}) {
        expect_definition(a_scene(43, 14, bands), {inner, outer, nullptr, 0}, 3);
        expect_as_on_cpu(a_scene(43, 14, bands), {inner, outer, nullptr, 0});
    }
    auto cube = a_scene(40, 12, 9);
    for (int64_t i = 0; i < 40 * 12; ++i)
        cube.at(7, i / 40, i % 40) = 2 * cube.at(1, i / 40, i % 40);
    const auto got = on_gpu(cube, {3, 9, nullptr, 0});
    for (int64_t i = 0; i < 40 * 12; ++i)
        ASSERT_TRUE(std::isnan(got.at(i / 40, i % 40))) << i;
}

TEST_F(DetectCuda, TilesLanesAndDeviceMemoryChangeNoBitOfLocalRx) {
    const auto cube = a_scene(389, 21, 9);
    PixelMask mask(389, 21);
    for (int64_t y = 0; y < 21; ++y)
        for (int64_t x = 0; x < 389; ++x)
            if ((x + y) % 4 != 0) mask.set(y, x);
    for (const auto& [inner, outer] : {std::pair(1, 3), std::pair(5, 11)}) {
        const Ring ring{inner, outer, &mask};
        const auto whole = on_gpu(cube, ring);
        for (auto pass :
             {tiles(128, 5, 3), tiles(389, 1, 2), tiles(256, 21, 4), tiles(96, 4, 2), tiles(17, 3, 1)}) {
            EXPECT_TRUE(same(whole, on_gpu(cube, ring, pass))) << pass.tile_samples << " " << pass.tile_lines;
            pass.device_memory = uint64_t{160} << 20;
            EXPECT_TRUE(same(whole, on_gpu(cube, ring, pass))) << pass.tile_samples << " " << pass.tile_lines;
        }
    }
}

TEST_F(DetectCuda, LocalRxOfManyBatchesIsTheSameInEveryRun) {
    // The matrices of all 3840 pixels do not fit into one batch.
    const auto cube = a_scene(160, 24, 200);
    const Ring ring{3, 17};
    const auto whole = on_gpu(cube, ring);
    EXPECT_TRUE(same(whole, on_gpu(cube, ring)));
    EXPECT_TRUE(same(whole, on_gpu(cube, ring, tiles(96, 7, 3))));
    for (int64_t i = 1; i < cube.shape.pixels(); i += 1201) {
        const double want = local_reference(cube, ring, i / 160, i % 160);
        EXPECT_NEAR(whole.at(i / 160, i % 160), want, 1e-5 * want + 1e-6);
    }
    EXPECT_GT(m_local->kernel_seconds(), 0);
}

} // namespace
} // namespace hsi::test
