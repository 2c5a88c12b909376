// SPDX-License-Identifier: MIT
// Scores against their definitions in long double and closed forms, tiles and threads, and refused input.
#include "core/error.h"
#include "detect/pixel/pixel.h"
#include "detect/reference.h"
#include "stream/pipeline.h"
#include "support/memory_cube.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace hsi::test {
namespace {

using detect::Method;
using detect::Targets;

constexpr Method methods[] = {Method::sam, Method::sid, Method::mf, Method::cem, Method::ace, Method::rx};

/// Returns the spectra of some pixels, and a spectrum that no pixel has; two spectra are equal.
Targets some_targets(const Cube& cube) {
    Targets t;
    const auto add = [&](const char* name, const Vector& x) {
        t.names.emplace_back(name);
        t.spectra.emplace_back(x.begin(), x.end());
    };
    add("a", pixel(cube, 3, 5));
    Vector other = pixel(cube, 8, 1);
    for (size_t b = 0; b < other.size(); ++b)
        other[b] = 0.7L * other[b] + static_cast<long double>(b % 5);
    add("b", other);
    add("a again", pixel(cube, 3, 5));
    add("c", pixel(cube, 2, 11));
    return t;
}

struct Found {
    MemorySink scores, map;
    int64_t valid = 0, invalid = 0;
};

stream::PassOptions tiles(int64_t samples, int64_t lines, int lanes) {
    stream::PassOptions pass;
    pass.tile_samples = samples;
    pass.tile_lines = lines;
    pass.lanes = lanes;
    return pass;
}

stream::SceneStatistics background(const Cube& cube, const detect::PixelMask* mask = nullptr,
                                   const stream::PassOptions& pass = {}) {
    detect::BackgroundScan scan(cube.shape, mask);
    stream::run_pass(MemorySource(cube), scan, {}, pass);
    return scan.result().moments;
}

detect::Detector detector_for(const Cube& cube, Method method, const Targets& targets,
                              const detect::PixelMask* mask = nullptr, const stream::PassOptions& pass = {}) {
    if (!detect::has_background(method)) return detect::make_detector(method, targets);
    return detect::make_detector(method, detect::has_target(method) ? targets : Targets{},
                                 background(cube, mask, pass));
}

Found found(const Cube& cube, const detect::Detector& detector, std::optional<double> threshold = {},
            const stream::PassOptions& pass = {}) {
    const auto s = cube.shape;
    Found f{MemorySink(s.samples, s.lines, detector.scores()), MemorySink(s.samples, s.lines, 1)};
    const auto operation = detect::make_detection(detector, {true, threshold});
    stream::run_pass(MemorySource(cube), *operation, {&f.scores, &f.map}, pass);
    f.valid = operation->valid();
    f.invalid = operation->invalid();
    return f;
}

Cube a_scene(int64_t samples = 37, int64_t lines = 19, int bands = 13) {
    Cube cube = random_scene(samples, lines, bands, 7, 0.03, 900);
    make_invalid(cube, 0, 4, 2);
    make_invalid(cube, 5, 7, bands - 1, std::numeric_limits<float>::infinity());
    for (int b = 0; b < bands; ++b)
        cube.at(b, 9, 9) = 0;
    for (int b = 0; b < bands; b += 3)
        cube.at(b, 4, 4) = -5; // negative values are valid
    return cube;
}

void expect_definitions(const Cube& cube, const detect::PixelMask* mask, double finer, int64_t step = 1) {
    const auto inside = [&](int64_t y, int64_t x) { return mask == nullptr || mask->at(y, x); };
    const Reference reference(cube, inside);
    const Targets targets = some_targets(cube);
    for (const Method method : methods) {
        SCOPED_TRACE(detect::name_of(method));
        const auto detector = detector_for(cube, method, targets, mask);
        EXPECT_EQ(detector.ridge, 0);
        const auto got = found(cube, detector);
        EXPECT_EQ(got.invalid, 3);
        EXPECT_EQ(got.valid, cube.shape.pixels() - 3);
        for (int64_t y = 0; y < cube.shape.lines; ++y)
            for (int64_t x = 0; x < cube.shape.samples; x += step) {
                const Vector v = pixel(cube, y, x);
                for (int k = 0; k < detector.scores(); ++k) {
                    const float score = got.scores.cube.at(k, y, x);
                    if (!is_valid(v)) {
                        EXPECT_TRUE(std::isnan(score));
                        EXPECT_TRUE(std::isnan(got.map.cube.at(0, y, x)));
                        continue;
                    }
                    const auto& t = targets.spectra[static_cast<size_t>(k)];
                    const double want = reference.score(method, v, Vector(t.begin(), t.end()));
                    // Scores that use single precision have a larger tolerance.
                    const double part = detector.factor.empty() ? finer : 1.0;
                    ASSERT_NEAR(score, want, std::max(1e-7 * std::fabs(want), part * tolerance(method, want)))
                        << k << " " << y << " " << x;
                }
            }
    }
}

TEST(Detect, ScoresAreTheirDefinitions) { expect_definitions(a_scene(), nullptr, 0.1); }

TEST(Detect, ManyBandsAndBlocksAreNoOtherThing) { expect_definitions(a_scene(130, 11, 50), nullptr, 0.1, 7); }

TEST(Detect, BandsThatHardlyDifferKeepTheirAccuracy) {
    // The least eigenvalue of C is about 1e-8 of the mean eigenvalue; C is computed from values near 1000.
    auto cube = a_scene(90, 40, 12);
    std::mt19937 random(3);
    std::normal_distribution<double> noise(0, 0.05);
    for (int64_t y = 0; y < 40; ++y)
        for (int64_t x = 0; x < 90; ++x)
            if (cube.at(5, y, x) != 0)
                cube.at(6, y, x) = static_cast<float>(static_cast<double>(cube.at(5, y, x)) + noise(random));
    const auto d = detector_for(cube, Method::rx, {});
    EXPECT_LT(d.least_eigenvalue, 1e-6 * d.mean_eigenvalue);
    expect_definitions(cube, nullptr, 1, 7);
}

TEST(Detect, TheBackgroundIsWhatTheMaskSays) {
    const auto cube = a_scene();
    detect::PixelMask mask(37, 19);
    for (int64_t y = 0; y < 19; ++y)
        for (int64_t x = 0; x < 37; ++x)
            if ((x / 4 + y) % 3 != 0) mask.set(y, x);
    expect_definitions(cube, &mask, 0.1);
    detect::BackgroundScan scan(cube.shape, &mask);
    stream::run_pass(MemorySource(cube), scan, {}, tiles(1024, 8, 2));
    const auto b = scan.result();
    EXPECT_EQ(b.valid_pixels, 37 * 19 - 3);
    EXPECT_EQ(b.invalid_pixels, 3);
    EXPECT_LT(b.moments.valid_pixels, 37 * 19 / 4 * 3);
    EXPECT_TRUE(b.empty_bands().empty());
}

TEST(Detect, BandsAreEmptyForTheSceneAndNotForTheBackground) {
    auto cube = a_scene();
    detect::PixelMask mask(37, 19);
    mask.set(1, 1);
    mask.set(1, 2);
    for (int64_t x = 1; x < 3; ++x)
        make_invalid(cube, 1, x, 6);
    detect::BackgroundScan some(cube.shape, &mask);
    stream::run_pass(MemorySource(cube), some, {}, {});
    EXPECT_TRUE(some.result().empty_bands().empty());
    EXPECT_EQ(some.result().moments.valid_pixels, 0);
    EXPECT_GT(some.result().valid_pixels, 600);
    for (int64_t y = 0; y < 19; ++y)
        for (int64_t x = 0; x < 37; ++x)
            make_invalid(cube, y, x, 6);
    detect::BackgroundScan none(cube.shape, &mask);
    stream::run_pass(MemorySource(cube), none, {}, {});
    EXPECT_EQ(none.result().empty_bands(), std::vector<int>{6});
    EXPECT_EQ(none.result().valid_pixels, 0);
}

TEST(Detect, TargetsAndMeanScoreAsTheyMust) {
    auto cube = a_scene();
    const auto targets = some_targets(cube);
    const auto moments = background(cube);
    for (int b = 0; b < 13; ++b) // opposite to the first target, relative to the mean
        cube.at(b, 0, 0) = static_cast<float>(2 * moments.mean[static_cast<size_t>(b)] -
                                              targets.spectra[0][static_cast<size_t>(b)]);
    const auto at = [&](Method m, int64_t y, int64_t x) {
        const auto d = detect::has_background(m)
                           ? detect::make_detector(m, detect::has_target(m) ? targets : Targets{}, moments)
                           : detect::make_detector(m, targets);
        return found(cube, d).scores.cube.at(0, y, x);
    };
    EXPECT_EQ(at(Method::sam, 3, 5), 0);
    EXPECT_NEAR(at(Method::sid, 3, 5), 0, 1e-12);
    EXPECT_NEAR(at(Method::mf, 3, 5), 1, 1e-6);
    EXPECT_NEAR(at(Method::cem, 3, 5), 1, 1e-6);
    EXPECT_NEAR(at(Method::ace, 3, 5), 1, 1e-6);
    EXPECT_NEAR(at(Method::mf, 0, 0), -1, 1e-4);
    EXPECT_NEAR(at(Method::ace, 0, 0), -1, 1e-5) << "opposite pixels must not rank as targets";
}

TEST(Detect, AceIsNothingAtTheMean) {
    // Pixels are pairs around (4, 4, 4), so the mean is exact.
    Cube cube(9, 1, 3);
    const float apart[4][3] = {{1, 0, 0}, {0, 2, 0}, {0, 0, 1}, {1, 1, 0}};
    for (int k = 0; k < 4; ++k)
        for (int b = 0; b < 3; ++b) {
            cube.at(b, 0, 2 * k) = 4 + apart[k][b];
            cube.at(b, 0, 2 * k + 1) = 4 - apart[k][b];
        }
    for (int b = 0; b < 3; ++b)
        cube.at(b, 0, 8) = 4;
    const Targets t{{"t"}, {{5, 5, 6}}};
    const auto scores = found(cube, detector_for(cube, Method::ace, t)).scores.cube;
    EXPECT_EQ(scores.at(0, 0, 8), 0.0f);
    for (int k = 0; k < 4; ++k)
        EXPECT_FLOAT_EQ(scores.at(0, 0, 2 * k), -scores.at(0, 0, 2 * k + 1));
    try {
        detector_for(cube, Method::mf, {{"mean"}, {{4, 4, 4}}});
        FAIL();
    } catch (const Error& e) {
        EXPECT_NE(std::string(e.what()).find("'mean' equals the mean"), std::string::npos) << e.what();
    }
}

TEST(Detect, SidTakesWhatIsNotPositiveForLittle) {
    Cube cube(3, 1, 3);
    const float values[3][3] = {{1, 0, -4}, {-1, -2, -3}, {0, 2, 2}};
    for (int x = 0; x < 3; ++x)
        for (int b = 0; b < 3; ++b)
            cube.at(b, 0, x) = values[x][b];
    const Targets t{{"t"}, {{2, -1, 0}}};
    const auto got = found(cube, detect::make_detector(Method::sid, t));
    EXPECT_EQ(got.valid, 2);
    EXPECT_NEAR(got.scores.cube.at(0, 0, 0), 0, 1e-12) << "both are (1, 1e-6, 1e-6) / sum";
    EXPECT_TRUE(std::isnan(got.scores.cube.at(0, 0, 1))) << "no band is positive";
    EXPECT_TRUE(std::isnan(got.map.cube.at(0, 0, 1)));
    EXPECT_GT(got.scores.cube.at(0, 0, 2), 10);
    EXPECT_THROW(detect::make_detector(Method::sid, {{"n"}, {{-1, 0, -2}}}), Error);
}

TEST(Detect, TilesAndThreadsChangeNoBit) {
    const auto cube = a_scene(301, 23, 33);
    const auto targets = some_targets(cube);
    detect::PixelMask mask(301, 23);
    for (int64_t y = 0; y < 23; ++y)
        for (int64_t x = 0; x < 301; x += 1 + y % 3)
            mask.set(y, x);
    for (const Method method : methods) {
        SCOPED_TRACE(detect::name_of(method));
        const auto detector = detector_for(cube, method, targets, &mask);
        const auto whole = found(cube, detector);
        for (const auto& [samples, lines, lanes] :
             {std::array<int, 3>{17, 5, 3}, {301, 1, 2}, {129, 23, 4}, {1, 23, 2}}) {
            const auto again = detector_for(cube, method, targets, &mask, tiles(1024, 8, lanes));
            EXPECT_EQ(again.rows, detector.rows);
            EXPECT_EQ(again.factor, detector.factor);
            const auto cut = found(cube, again, {}, tiles(samples, lines, lanes));
            EXPECT_TRUE(identical(whole.scores.cube, cut.scores.cube)) << samples;
            EXPECT_TRUE(identical(whole.map.cube, cut.map.cube)) << samples;
        }
    }
}

TEST(Detect, TheMapNamesTheFirstOfTheBest) {
    const auto cube = a_scene();
    const auto targets = some_targets(cube);
    for (const Method method : methods) {
        if (method == Method::rx) continue;
        SCOPED_TRACE(detect::name_of(method));
        const bool small = detect::is_small_at_target(method);
        const auto detector = detector_for(cube, method, targets);
        const auto plain = found(cube, detector);
        std::vector<double> best;
        for (size_t i = 0; i < plain.map.cube.values.size(); ++i)
            if (const float m = plain.map.cube.values[i]; !std::isnan(m))
                best.push_back(static_cast<double>(
                    plain.scores.cube
                        .values[i + (static_cast<size_t>(m) - 1) * plain.map.cube.values.size()]));
        std::sort(best.begin(), best.end());
        const double threshold = best[best.size() / 2];
        const auto cut = found(cube, detector, threshold);
        int zeros = 0, ones = 0;
        for (int64_t y = 0; y < 19; ++y)
            for (int64_t x = 0; x < 37; ++x) {
                const float got = plain.map.cube.at(0, y, x);
                if (std::isnan(got)) continue;
                ASSERT_NE(got, 3.0f) << "the second of two equal targets";
                const auto score = [&](int k) {
                    return (small ? -1 : 1) * static_cast<double>(plain.scores.cube.at(k, y, x));
                };
                const int chosen = static_cast<int>(got) - 1;
                for (int k = 0; k < 4; ++k)
                    ASSERT_GE(score(chosen), score(k) - 1e-6 * std::fabs(score(k)));
                ones += got == 1;
                const bool within = score(chosen) >= (small ? -1 : 1) * threshold;
                if (std::fabs(score(chosen) - (small ? -1 : 1) * threshold) > 1e-6 * std::fabs(threshold)) {
                    ASSERT_EQ(cut.map.cube.at(0, y, x), within ? got : 0.0f);
                }
                zeros += cut.map.cube.at(0, y, x) == 0;
            }
        EXPECT_GT(ones, 0);
        EXPECT_GT(zeros, 0);
        EXPECT_TRUE(identical(plain.scores.cube, cut.scores.cube));
    }
    const auto rx = found(cube, detector_for(cube, Method::rx, {}), 20.0);
    for (int64_t x = 0; x < 37; ++x)
        if (x != 4) {
            EXPECT_EQ(rx.map.cube.at(0, 0, x), rx.scores.cube.at(0, 0, x) >= 20 ? 1.0f : 0.0f);
        }
}

TEST(Detect, ConstantBandsAreLeftOut) {
    auto cube = a_scene();
    for (int64_t y = 0; y < 19; ++y)
        for (int64_t x = 0; x < 37; ++x) {
            cube.at(3, y, x) = 0.1f; // its sums are not exact
            cube.at(8, y, x) = 0;
            cube.at(10, y, x) = x == 20 && y == 7 ? 1e6f : std::nextafter(1e6f, 2e6f); // nearly constant
        }
    make_invalid(cube, 9, 9, 0);
    for (const Method method : {Method::mf, Method::ace, Method::rx}) {
        const auto d = detector_for(cube, method, some_targets(cube));
        EXPECT_EQ(d.constant, (std::vector<int>{3, 8}));
        EXPECT_EQ(d.used.size(), 11u);
    }
    // The mask excludes the only pixel that differs.
    detect::PixelMask mask(37, 19);
    for (int64_t y = 0; y < 19; ++y)
        for (int64_t x = 0; x < 37; ++x)
            if (y != 7) mask.set(y, x);
    EXPECT_EQ(detector_for(cube, Method::rx, {}, &mask).constant, (std::vector<int>{3, 8, 10}));
    // Scores equal the scores without these bands.
    Cube fewer(37, 19, 10);
    const auto targets = some_targets(cube);
    Targets same = targets;
    for (auto& t : same.spectra)
        for (const int b : {10, 8, 3})
            t.erase(t.begin() + b);
    int to = 0;
    for (int b = 0; b < 13; ++b) {
        if (b == 3 || b == 8 || b == 10) continue;
        for (int64_t y = 0; y < 19; ++y)
            for (int64_t x = 0; x < 37; ++x)
                fewer.at(to, y, x) = cube.at(b, y, x);
        ++to;
    }
    const auto a = found(cube, detector_for(cube, Method::ace, targets, &mask)),
               b = found(fewer, detector_for(fewer, Method::ace, same, &mask));
    EXPECT_TRUE(identical(a.scores.cube, b.scores.cube));
    const auto cem = detector_for(cube, Method::cem, some_targets(cube));
    EXPECT_TRUE(cem.constant.empty());
}

TEST(Detect, SmallAndDependentSamplesAreRegularised) {
    auto scene = random_scene(5, 3, 20, 7, 0.03, 900);
    make_invalid(scene, 0, 4, 2);
    const Targets t{{"t"}, {std::vector<double>(20, 700.0)}};
    for (const Method method : {Method::mf, Method::cem, Method::ace, Method::rx}) {
        SCOPED_TRACE(detect::name_of(method));
        const auto d = detector_for(scene, method, t);
        EXPECT_NEAR(d.ridge, 1e-6 * d.mean_eigenvalue, 1e-12 * d.mean_eigenvalue) << "14 pixels of 20 bands";
        // The same result from the definition.
        Reference r(scene, [](int64_t, int64_t) { return true; });
        add_ridge(r.covariance, static_cast<long double>(d.ridge));
        add_ridge(r.all, static_cast<long double>(d.ridge));
        const auto got = found(scene, d);
        const Vector x = pixel(scene, 1, 2);
        const double want = r.score(method, x, Vector(20, 700));
        EXPECT_NEAR(got.scores.cube.at(0, 1, 2), want, tolerance(method, want));
    }
    // One band is the sum of two others.
    auto cube = a_scene();
    for (int64_t y = 0; y < 19; ++y)
        for (int64_t x = 0; x < 37; ++x)
            cube.at(12, y, x) = std::floor(cube.at(0, y, x)) + std::floor(cube.at(1, y, x));
    for (int64_t y = 0; y < 19; ++y)
        for (int64_t x = 0; x < 37; ++x)
            for (int b : {0, 1})
                cube.at(b, y, x) = std::floor(cube.at(b, y, x));
    const auto d = detector_for(cube, Method::rx, {});
    EXPECT_LT(std::fabs(d.least_eigenvalue), 1e-12 * d.mean_eigenvalue) << "the covariance is one of doubles";
    EXPECT_GT(d.ridge, 0);
    EXPECT_EQ(detector_for(a_scene(), Method::rx, {}).ridge, 0);
}

std::string complaint(const Cube& cube, Method method, const Targets& targets,
                      const detect::PixelMask* mask = nullptr) {
    try {
        detector_for(cube, method, targets, mask);
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

TEST(Detect, WhatCannotBeComputedIsRefused) {
    const auto cube = a_scene();
    auto targets = some_targets(cube);
    detect::PixelMask one(37, 19);
    one.set(1, 1);
    Cube flat(4, 3, 5, 7.25f);
    for (const Method method : {Method::mf, Method::cem, Method::ace, Method::rx}) {
        EXPECT_NE(complaint(cube, method, targets, &one).find("1 valid pixel:"), std::string::npos);
        EXPECT_NE(complaint(flat, method, {{"t"}, {{1, 2, 3, 4, 5}}}).find("no variance"), std::string::npos);
    }
    targets.spectra[1].assign(13, 0.0);
    for (const Method method : {Method::sam, Method::sid, Method::cem})
        EXPECT_NE(complaint(cube, method, targets).find("'b'"), std::string::npos) << detect::name_of(method);
    EXPECT_EQ(complaint(cube, Method::mf, targets), "") << "darkness is a target";
    targets.spectra[1][4] = std::nan("");
    for (const Method method : {Method::sam, Method::sid, Method::mf, Method::cem, Method::ace})
        EXPECT_NE(complaint(cube, method, targets).find("'b'"), std::string::npos);
}

} // namespace
} // namespace hsi::test
