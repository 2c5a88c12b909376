// SPDX-License-Identifier: MIT
// The synthetic scene has equal bits for every tiling and thread count, and its statistics match the options.
#include "core/error.h"
#include "stream/pipeline.h"
#include "support/memory_cube.h"
#include "synth/materials.h"
#include "synth/synth.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

namespace {

using namespace hsi;
using synth::MadeScene;
using synth::Options;

Options small() {
    Options o;
    o.samples = 701; // not a multiple of any vector or run length
    o.lines = 37;
    o.bands = 23;
    return o;
}

struct Painted {
    std::vector<float> cube, labels;
    stream::CubeShape shape;
    float at(int band, int64_t line, int64_t sample) const {
        return cube[static_cast<size_t>((band * shape.lines + line) * shape.samples + sample)];
    }
    float label(int64_t line, int64_t sample) const {
        return labels[static_cast<size_t>(line * shape.samples + sample)];
    }
};

Painted whole(const MadeScene& scene) {
    Painted p;
    p.shape = scene.shape();
    p.cube.resize(static_cast<size_t>(p.shape.pixels() * p.shape.bands));
    p.labels.resize(static_cast<size_t>(p.shape.pixels()));
    scene.paint({0, 0, p.shape.samples, p.shape.lines},
                CubeView<float>::packed(p.cube.data(), p.shape.bands, p.shape.lines, p.shape.samples),
                CubeView<float>::packed(p.labels.data(), 1, p.shape.lines, p.shape.samples));
    return p;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(Scene, EveryTilingAndThreadCountGivesTheSameBits) {
    Options o = small();
    o.targets = 9;
    o.nan_pixels = 5;
    o.stripe_first = 100;
    o.stripe_width = 7;
    const auto scene = std::make_shared<const MadeScene>(o);
    const Painted want = whole(*scene);
    for (const auto& [tx, ty, lanes] : {std::array{701, 1, 1}, std::array{64, 8, 3}, std::array{1, 37, 2},
                                        std::array{513, 5, 4}, std::array{130, 37, 1}}) {
        const auto painter = synth::make_painter(scene, true);
        const synth::Canvas canvas(scene->shape());
        test::MemorySink cube(o.samples, o.lines, o.bands), labels(o.samples, o.lines, 1);
        stream::PassOptions pass;
        pass.lanes = lanes;
        pass.tile_samples = tx;
        pass.tile_lines = ty;
        stream::run_pass(canvas, *painter, {&cube, &labels}, pass);
        EXPECT_TRUE(same_bits(cube.cube.values, want.cube)) << tx << "x" << ty;
        EXPECT_TRUE(same_bits(labels.cube.values, want.labels)) << tx << "x" << ty;
    }
}

TEST(Scene, SeedsDiffer) {
    Options o = small();
    const Painted a = whole(MadeScene(o)), again = whole(MadeScene(o));
    o.seed = 2;
    const Painted b = whole(MadeScene(o));
    EXPECT_TRUE(same_bits(a.cube, again.cube));
    EXPECT_FALSE(same_bits(a.cube, b.cube));
    size_t differ = 0;
    for (size_t i = 0; i < a.labels.size(); ++i)
        differ += a.labels[i] != b.labels[i];
    EXPECT_GT(differ, a.labels.size() / 2);
}

uint64_t fingerprint(const std::vector<float>& values) { // FNV-1a over the bits
    uint64_t sum = 1469598103934665603u;
    for (float v : values) {
        uint32_t bits = 0;
        std::memcpy(&bits, &v, 4);
        sum = (sum ^ bits) * 1099511628211u;
    }
    return sum;
}

TEST(Scene, IsTheSameOnEveryMachine) {
    // Computed once. Hashes, geometry and arithmetic must not change unnoticed.
    Options o = small();
    const MadeScene land(o);
    o.pattern = synth::Pattern::fields;
    const MadeScene fields(o);
    std::set<std::string> tried;
    for (int64_t targets = hwy::SupportedTargets(); targets != 0; targets &= targets - 1) {
        hwy::SetSupportedTargetsForTest(targets & -targets);
        hwy::GetChosenTarget().Update(hwy::SupportedTargets());
        tried.insert(synth::simd_target());
        EXPECT_EQ(fingerprint(whole(land).cube), 16997809258541171032u) << synth::simd_target();
        EXPECT_EQ(fingerprint(whole(fields).cube), 17681010757954780456u) << synth::simd_target();
    }
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    EXPECT_GE(tried.size(), 1u);
}

TEST(Scene, SignalToNoiseIsWhatWasAsked) {
    for (double snr : {10.0, 30.0, 50.0}) {
        Options o = small();
        o.lines = 300;
        o.snr = snr;
        const Painted noisy = whole(MadeScene(o));
        o.snr = std::numeric_limits<double>::infinity();
        const Painted clean = whole(MadeScene(o));
        for (int b = 0; b < o.bands; ++b) {
            double signal = 0, noise = 0;
            for (int64_t y = 0; y < o.lines; ++y)
                for (int64_t x = 0; x < o.samples; ++x) {
                    const double s = clean.at(b, y, x), n = noisy.at(b, y, x) - s;
                    signal += s * s;
                    noise += n * n;
                }
            EXPECT_NEAR(10 * std::log10(signal / noise), snr, 0.5) << "band " << b;
        }
    }
}

TEST(Scene, NoiseIsNearlyNormalAndUncorrelated) {
    Options o;
    o.samples = 1000;
    o.lines = 200;
    o.bands = 6;
    o.bad_bands = 5; // noise only
    const MadeScene scene(o);
    const Painted p = whole(scene);
    const int b = scene.bad_bands()[1], c = scene.bad_bands()[2];
    const double n = static_cast<double>(o.samples * o.lines), sigma = scene.noise()[static_cast<size_t>(b)];
    double m1 = 0, m2 = 0, m3 = 0, m4 = 0, across_bands = 0, along_line = 0, along_column = 0, beyond2 = 0;
    for (int64_t y = 0; y < o.lines; ++y)
        for (int64_t x = 0; x < o.samples; ++x) {
            const double z = p.at(b, y, x) / sigma;
            m1 += z / n;
            m2 += z * z / n;
            m3 += z * z * z / n;
            m4 += z * z * z * z / n;
            beyond2 += std::abs(z) > 2 ? 1 / n : 0;
            across_bands += z * p.at(c, y, x) / sigma / n;
            along_line += x > 0 ? z * p.at(b, y, x - 1) / sigma / n : 0;
            along_column += y > 0 ? z * p.at(b, y - 1, x) / sigma / n : 0;
        }
    EXPECT_NEAR(m1, 0, 0.01); // 4.5 standard errors of 200000 samples
    EXPECT_NEAR(m2, 1, 0.015);
    EXPECT_NEAR(m3, 0, 0.025);
    EXPECT_NEAR(m4, 3, 0.1);
    EXPECT_NEAR(beyond2, 0.0455, 0.002);
    EXPECT_NEAR(across_bands, 0, 0.01);
    EXPECT_NEAR(along_line, 0, 0.01);
    EXPECT_NEAR(along_column, 0, 0.01);
}

void expect_pure_targets(Options o, float dimmest) {
    o.targets = 20;
    o.snr = std::numeric_limits<double>::infinity();
    const MadeScene scene(o);
    const Painted p = whole(scene);
    ASSERT_EQ(scene.targets().size(), 20u);
    std::set<std::pair<int64_t, int64_t>> places;
    for (size_t t = 0; t < scene.targets().size(); ++t) {
        const auto& target = scene.targets()[t];
        EXPECT_EQ(target.endmember, static_cast<int>(t) % o.endmembers);
        places.insert({target.line, target.sample});
        const auto spectrum = scene.spectrum(target.endmember);
        for (int b = 0; b < o.bands; ++b)
            EXPECT_EQ(p.at(b, target.line, target.sample),
                      static_cast<float>(spectrum[static_cast<size_t>(b)]));
        EXPECT_EQ(p.label(target.line, target.sample), static_cast<float>(target.endmember + 1));
    }
    EXPECT_EQ(places.size(), 20u);
    for (int64_t y = 0; y < o.lines; ++y)
        for (int64_t x = 0; x < o.samples; x += 3) {
            if (places.count({y, x})) continue;
            float sum = 0;
            for (float a : scene.abundances(y, x)) {
                EXPECT_GE(a, 0);
                EXPECT_LE(a, 0.9701f);
                sum += a;
            }
            EXPECT_GE(sum, dimmest);
            EXPECT_LE(sum, 0.9701f);
        }
}

TEST(Scene, TargetsArePureAndNothingElseIs) {
    Options o = small();
    expect_pure_targets(o, 0.1f); // between crowns, in the shadow of a hill
    o.pattern = synth::Pattern::fields;
    expect_pure_targets(o, 0.699f);
}

TEST(Scene, LandHasEachMaterialThatItIsMadeOf) {
    Options o;
    o.samples = 400;
    o.lines = 320;
    o.bands = 1;
    for (const uint64_t seed : {1u, 2u, 3u, 4u}) {
        o.seed = seed;
        const Painted p = whole(MadeScene(o));
        for (int k = 1; k <= o.endmembers; ++k)
            EXPECT_GE(std::count(p.labels.begin(), p.labels.end(), static_cast<float>(k)), 100)
                << "material " << k << " of seed " << seed;
    }
}

TEST(Scene, LandHasShadows) {
    // Light equals the sum of abundances. Houses and woods reduce it considerably, but only on the side away
    // from the sun: it is darker north of an edge than south of it.
    Options o;
    o.samples = 300;
    o.lines = 240;
    o.bands = 1;
    const MadeScene scene(o);
    double north = 0, south = 0;
    int64_t edges = 0;
    const auto light = [&](int64_t y, int64_t x) {
        double sum = 0;
        for (float a : scene.abundances(y, x))
            sum += double{a};
        return sum;
    };
    const Painted p = whole(scene);
    const auto wood = [&](int64_t y, int64_t x) { return p.label(y, x) == 5; };
    for (int64_t x = 0; x < o.samples; ++x)
        for (int64_t y = 3; y + 3 < o.lines; ++y) {
            if (wood(y, x)) continue;
            if (wood(y + 1, x) && wood(y + 2, x)) north += light(y, x), ++edges;
            if (wood(y - 1, x) && wood(y - 2, x)) south += light(y, x), --edges;
        }
    EXPECT_LT(std::abs(edges), 400); // of several thousand: nearly as many on one side as on the other
    EXPECT_LT(north, 0.9 * south);
}

TEST(Scene, LabelsAreTheDominantMaterialAndCoherent) {
    const MadeScene scene(small());
    const Painted p = whole(scene);
    int64_t same = 0, pairs = 0;
    std::set<float> seen;
    for (int64_t y = 0; y < p.shape.lines; ++y)
        for (int64_t x = 0; x + 1 < p.shape.samples; ++x) {
            same += p.label(y, x) == p.label(y, x + 1);
            ++pairs;
            seen.insert(p.label(y, x));
            if (x % 17) continue;
            const auto a = scene.abundances(y, x);
            EXPECT_EQ(p.label(y, x),
                      static_cast<float>(std::max_element(a.begin(), a.end()) - a.begin() + 1));
        }
    EXPECT_GT(static_cast<double>(same) / static_cast<double>(pairs), 0.9); // fields, not single pixels
    EXPECT_GE(seen.size(), 6u);
}

TEST(Scene, HolesAndBadBandsAreWhereTheTruthSays) {
    Options o = small();
    o.nan_pixels = 12;
    o.stripe_first = 600;
    o.stripe_width = 30;
    o.bad_bands = 3;
    o.targets = 10;
    const MadeScene scene(o);
    const Painted p = whole(scene);
    int64_t holes = 0, single = 0;
    for (int64_t y = 0; y < o.lines; ++y)
        for (int64_t x = 0; x < o.samples; ++x) {
            int nan = 0, nodata = 0;
            for (int b = 0; b < o.bands; ++b) {
                nan += std::isnan(p.at(b, y, x));
                nodata += p.at(b, y, x) == -9999.0f;
            }
            holes += nan > 0;
            single += nan == 1;
            EXPECT_EQ(nodata, x >= 600 && x < 630 ? o.bands : 0);
            EXPECT_EQ(p.label(y, x) == 0, nan > 0 || nodata > 0);
        }
    EXPECT_EQ(holes, 12);
    EXPECT_EQ(single, 6);
    ASSERT_EQ(scene.nan_pixels().size(), 12u);
    for (const auto& [line, sample] : scene.nan_pixels())
        EXPECT_EQ(p.label(line, sample), 0);
    ASSERT_EQ(scene.bad_bands().size(), 3u);
    for (int b : scene.bad_bands()) {
        const double nm = scene.wavelengths()[static_cast<size_t>(b)];
        EXPECT_LT(std::min(std::abs(nm - 1400), std::abs(nm - 1900)), 100);
    }
    // Readers get NaN for nodata.
    const synth::SceneSource source(std::make_shared<const MadeScene>(o));
    std::vector<float> line(static_cast<size_t>(o.samples * o.bands));
    source.open_reader()->read({0, 4, o.samples, 1},
                               CubeView<float>::packed(line.data(), o.bands, 1, o.samples));
    EXPECT_TRUE(std::isnan(line[600]) && std::isnan(line[629]) && !std::isnan(line[599]) &&
                !std::isnan(line[630]));
}

TEST(Scene, ScaleMultipliesEverything) {
    Options o = small();
    const Painted one = whole(MadeScene(o));
    o.scale = 10000;
    const Painted scaled = whole(MadeScene(o));
    for (size_t i = 0; i < one.cube.size(); ++i)
        ASSERT_NEAR(scaled.cube[i], one.cube[i] * 10000, 0.05);
}

TEST(Scene, EveryEndmemberCountWorks) {
    Options o = small();
    for (int k : {2, 3, 4, 5, synth::material_count()}) {
        o.endmembers = k;
        const Painted p = whole(MadeScene(o));
        for (float v : p.cube)
            ASSERT_TRUE(std::isfinite(v));
        EXPECT_LE(*std::max_element(p.labels.begin(), p.labels.end()), static_cast<float>(k));
    }
}

TEST(Materials, SpectraAreDistinctAndPlausible) {
    const auto at = [](int k, double nm) { return synth::material_reflectance(k, nm, 10, 1); };
    for (int k = 0; k < synth::material_count(); ++k) {
        double before = at(k, 400);
        for (double nm = 400; nm <= 2500; nm += 10) {
            const double r = at(k, nm);
            EXPECT_GT(r, 0) << synth::material_name(k);
            EXPECT_LE(r, 1) << synth::material_name(k);
            EXPECT_LT(std::abs(r - before), 0.2) << synth::material_name(k) << " jumps at " << nm;
            before = r;
        }
        for (int j = 0; j < k; ++j) {
            double dot = 0, a2 = 0, b2 = 0;
            for (double nm = 400; nm <= 2500; nm += 10) {
                dot += at(k, nm) * at(j, nm);
                a2 += at(k, nm) * at(k, nm);
                b2 += at(j, nm) * at(j, nm);
            }
            EXPECT_GT(std::acos(std::min(1.0, dot / std::sqrt(a2 * b2))), 0.02)
                << synth::material_name(k) << " and " << synth::material_name(j);
        }
    }
    EXPECT_GT(at(0, 860) / at(0, 670), 5);     // red edge of vegetation
    EXPECT_GT(at(2, 550) / at(2, 860), 3);     // water is dark in the infrared
    EXPECT_LT(at(6, 2206), 0.8 * at(6, 2270)); // Al-OH feature of kaolinite
}

TEST(Scene, RefusesWhatDoesNotFit) {
    const auto refuses = [](auto change, const char* option) {
        Options o = small();
        change(o);
        try {
            const MadeScene scene(o);
            ADD_FAILURE() << option << " was accepted";
        } catch (const UsageError& e) {
            EXPECT_NE(std::string(e.what()).find(option), std::string::npos) << e.what();
        }
    };
    refuses([](Options& o) { o.bands = 0; }, "-size");
    refuses([](Options& o) { o.samples = int64_t{1} << 31; }, "-size");
    refuses([](Options& o) { o.endmembers = 1; }, "-endmembers");
    refuses([](Options& o) { o.endmembers = 1000; }, "-endmembers");
    refuses([](Options& o) { o.snr = std::nan(""); }, "-snr");
    refuses([](Options& o) { o.bad_bands = 23; }, "-bad-bands");
    refuses([](Options& o) { o.targets = 700 * 37; }, "-targets");
    refuses([](Options& o) { o.nan_pixels = -1; }, "-nan-pixels");
    refuses([](Options& o) { o.stripe_first = 700, o.stripe_width = 2; }, "-nodata-stripe");
}

} // namespace
