// SPDX-License-Identifier: MIT
#include "atdca/atdca.h"
#include "atdca/atdca_reference.h"
#include "core/error.h"
#include "parallel/thread_job.h"
#include "support/thread_ranks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <mutex>
#include <set>

namespace hsi::test {
namespace {

using atdca::Detection;
using atdca::Method;
using atdca::Options;
using atdca::Score;

struct Cut {
    int64_t samples = 0, lines = 0;
    int lanes = 1;
    uint64_t memory = uint64_t{1} << 30;
};

Detection run(const Cube& scene, const Options& options, const Cut& cut = {}) {
    const MemorySource source(scene);
    stream::PassOptions pass;
    pass.lanes = cut.lanes;
    pass.tile_samples = cut.samples;
    pass.tile_lines = cut.lines;
    pass.memory = cut.memory;
    return atdca::detect(source, options, pass);
}

std::vector<int64_t> pixels(const Cube& scene, const Detection& d) {
    std::vector<int64_t> list;
    for (const auto& t : d.targets)
        list.push_back(t.line * scene.shape.samples + t.sample);
    return list;
}

Options options_of(int targets, Method method = Method::osp, Score score = Score::absolute) {
    Options o;
    o.targets = targets;
    o.method = method;
    o.score = score;
    return o;
}

void expect_reference(const Cube& scene, const Options& options, const Detection& got) {
    const auto want =
        atdca_reference(scene, options.targets, options.method == Method::gs, options.score == Score::sign);
    EXPECT_EQ(pixels(scene, got), want.pixels);
    ASSERT_EQ(got.targets.size(), want.scores.size());
    for (size_t k = 0; k < want.scores.size(); ++k) {
        const auto& t = got.targets[k];
        const double scale =
            options.method == Method::osp || k == 0 ? want.scores[0] : std::sqrt(want.scores[0]);
        EXPECT_NEAR(t.score, want.scores[k], 1e-11 * scale) << "target " << k;
        for (int b = 0; b < scene.shape.bands; ++b)
            EXPECT_EQ(t.spectrum[static_cast<size_t>(b)], scene.at(b, t.line, t.sample));
    }
    EXPECT_EQ(got.warning.empty(), static_cast<int>(want.pixels.size()) == options.targets);
}

const std::vector<Options> all_methods(int targets) {
    return {options_of(targets), options_of(targets, Method::gs),
            options_of(targets, Method::gs, Score::sign)};
}

TEST(AtdcaCpu, FindsTheReferencesTargetsInItsOrder) {
    for (uint32_t seed : {1u, 2u, 3u})
        for (double noise : {0.001, 0.02, 0.3}) {
            const Cube scene = random_scene(61, 47, 40, seed, noise);
            for (const Options& options : all_methods(30)) {
                SCOPED_TRACE(testing::Message()
                             << "seed " << seed << ", noise " << noise << ", method "
                             << static_cast<int>(options.method) << static_cast<int>(options.score));
                expect_reference(scene, options, run(scene, options));
            }
        }
}

TEST(AtdcaCpu, FindsTheSameForEveryTilingThreadsAndMemory) {
    Cube scene = random_scene(150, 61, 24, 10, 0.05);
    make_invalid(scene, 30, 70, 1);
    for (const Options& options : all_methods(20)) {
        const Detection whole = run(scene, options);
        expect_reference(scene, options, whole);
        EXPECT_TRUE(whole.cost.in_memory);
        for (const Cut& cut : {Cut{150, 7, 1, 1 << 30}, Cut{64, 64, 2, 1 << 30}, Cut{17, 13, 3, 700 << 10},
                               Cut{1, 61, 2, 1 << 30}, Cut{150, 1, 4, 1 << 30}, Cut{0, 0, 2, 400 << 10},
                               Cut{64, 16, 2, 600 << 10}}) {
            SCOPED_TRACE(testing::Message() << "method " << static_cast<int>(options.method) << ", tiles "
                                            << cut.samples << "x" << cut.lines << ", memory " << cut.memory);
            const Detection tiled = run(scene, options, cut);
            EXPECT_EQ(pixels(scene, tiled), pixels(scene, whole));
            EXPECT_EQ(tiled.cost.in_memory, cut.memory > (1 << 20));
            for (size_t k = 0; k < whole.targets.size(); ++k)
                EXPECT_EQ(tiled.targets[k].score, whole.targets[k].score); // equal bits
        }
    }
}

/// Returns the detections of all ranks.
std::vector<Detection> run_on_ranks(int ranks, const Cube& scene, const Options& options, const Cut& cut) {
    std::vector<Detection> list(static_cast<size_t>(ranks));
    on_ranks(ranks, [&](parallel::Ranks& mine, CancelFlag&) {
        const parallel::ThreadJob job(mine);
        list[static_cast<size_t>(mine.rank())] = run(scene, options, cut);
    });
    return list;
}

TEST(AtdcaCpu, RanksFindWhatOneProcessFinds) {
    Cube scene = random_scene(150, 61, 24, 10, 0.05);
    make_invalid(scene, 30, 70, 1);
    for (const Options& options : all_methods(20)) {
        const Detection alone = run(scene, options);
        expect_reference(scene, options, alone);
        for (const int ranks : {2, 3, 5})
            for (const Cut& cut :
                 {Cut{}, Cut{64, 16, 2, 600 << 10}, Cut{17, 13, 2, 1 << 30}, Cut{150, 61, 1}}) {
                SCOPED_TRACE(testing::Message()
                             << "method " << static_cast<int>(options.method) << ", ranks " << ranks
                             << ", tiles " << cut.samples << "x" << cut.lines << ", memory " << cut.memory);
                for (const Detection& d : run_on_ranks(ranks, scene, options, cut)) {
                    EXPECT_EQ(pixels(scene, d), pixels(scene, alone));
                    EXPECT_EQ(d.valid_pixels, alone.valid_pixels);
                    EXPECT_EQ(d.invalid_pixels, alone.invalid_pixels);
                    EXPECT_EQ(d.warning, alone.warning);
                    EXPECT_EQ(d.cost.in_memory, cut.memory > (1 << 20));
                    for (size_t k = 0; k < alone.targets.size(); ++k)
                        EXPECT_EQ(d.targets[k].score, alone.targets[k].score); // equal bits
                    for (const auto& pass : d.passes) { // each rank did only its own work
                        EXPECT_EQ(pass.ranks.size(), static_cast<size_t>(ranks));
                        if (pass.name == "read") {
                            EXPECT_EQ(pass.tiles, d.cost.tiles);
                        }
                    }
                }
            }
    }
}

TEST(AtdcaCpu, RanksBreakTiesAsOneProcess) {
    // Every spectrum occurs six times, in tiles of different ranks.
    Cube scene(40, 30, 12);
    const Cube part = random_scene(20, 10, 12, 5, 0.1);
    for (int b = 0; b < 12; ++b)
        for (int64_t l = 0; l < 30; ++l)
            for (int64_t s = 0; s < 40; ++s)
                scene.at(b, l, s) = part.at(b, l % 10, 19 - s % 20);
    for (const Options& options : all_methods(10))
        for (const Cut& cut : {Cut{20, 10, 1}, Cut{40, 4, 2, 300 << 10}}) {
            const auto alone = pixels(scene, run(scene, options, cut));
            for (const Detection& d : run_on_ranks(3, scene, options, cut))
                EXPECT_EQ(pixels(scene, d), alone);
        }
}

TEST(AtdcaCpu, RanksHoldASceneThatOneOfThemCannot) {
    const Cube scene = random_scene(150, 61, 24, 12, 0.05); // 0.9 MB
    const Cut cut{150, 4, 1, 900 << 10};
    const Detection alone = run(scene, options_of(12), cut);
    EXPECT_FALSE(alone.cost.in_memory);
    for (const Detection& d : run_on_ranks(5, scene, options_of(12), cut)) {
        EXPECT_TRUE(d.cost.in_memory);
        EXPECT_EQ(pixels(scene, d), pixels(scene, alone));
    }
}

TEST(AtdcaCpu, BreaksTiesByLineThenSample) {
    // Every spectrum occurs several times: the search must find the smallest line, then the smallest sample.
    Cube scene(40, 30, 12);
    const Cube part = random_scene(20, 15, 12, 5, 0.1);
    for (int b = 0; b < 12; ++b)
        for (int64_t l = 0; l < 30; ++l)
            for (int64_t s = 0; s < 40; ++s)
                scene.at(b, l, s) = part.at(b, l % 15, 19 - s % 20);
    for (const Options& options : all_methods(10))
        for (const Cut& cut : {Cut{}, Cut{7, 30, 3}, Cut{40, 4, 2, 300 << 10}}) {
            const Detection got = run(scene, options, cut);
            if (options.score == Score::absolute) expect_reference(scene, options, got);
            for (const auto& t : got.targets) {
                EXPECT_LT(t.line, 15);
                EXPECT_LT(t.sample, 20);
            }
        }
}

TEST(AtdcaCpu, DecidesNearTiesThatSinglePrecisionCannotSee) {
    // The scene has many copies of one spectrum. One copy is longer by the last bit of one band, so it is the
    // first target.
    Cube scene(64, 64, 50, 1.0f);
    for (int b = 0; b < 50; ++b)
        for (int64_t l = 0; l < 64; ++l)
            for (int64_t s = 0; s < 64; ++s)
                scene.at(b, l, s) = 1.0f + 0.01f * static_cast<float>(b);
    scene.at(20, 50, 33) = std::nextafter(scene.at(20, 50, 33), 10.0f);
    const Detection got = run(scene, options_of(3), {16, 16, 2});
    ASSERT_EQ(got.targets.size(), 1u); // the other pixels have no residual
    EXPECT_EQ(got.targets[0].line, 50);
    EXPECT_EQ(got.targets[0].sample, 33);
    EXPECT_NE(got.warning.find("only 1 of 3"), std::string::npos);
}

TEST(AtdcaCpu, StopsAtTheRank) {
    // Mixtures of four spectra without noise have rank 4.
    Cube scene(50, 40, 30);
    const Cube part = random_scene(4, 1, 30, 9, 0.5);
    for (int64_t l = 0; l < 40; ++l)
        for (int64_t s = 0; s < 50; ++s)
            for (int b = 0; b < 30; ++b) {
                const double mix[4] = {0.1 + static_cast<double>((l * 7 + s) % 11),
                                       static_cast<double>((l + s * 3) % 7), static_cast<double>((l * s) % 5),
                                       static_cast<double>((l + 2 * s) % 3)};
                double v = 0;
                for (int m = 0; m < 4; ++m)
                    v += mix[m] * static_cast<double>(part.at(b, 0, m));
                scene.at(b, l, s) = static_cast<float>(v);
            }
    for (const Options& options : all_methods(12)) {
        const Detection got = run(scene, options);
        expect_reference(scene, options, got);
        EXPECT_LE(got.targets.size(), 4u);
        EXPECT_FALSE(got.warning.empty());
    }
}

TEST(AtdcaCpu, StopsAtTheNumberOfBandsAndOfPixels) {
    const Cube few_bands = random_scene(50, 40, 5, 11, 0.2), few_pixels = random_scene(3, 2, 30, 12, 0.2);
    for (const Options& options : all_methods(20)) {
        expect_reference(few_bands, options, run(few_bands, options));
        expect_reference(few_pixels, options, run(few_pixels, options));
    }
    EXPECT_EQ(run(few_bands, options_of(20)).targets.size(), 5u);
    EXPECT_EQ(run(few_pixels, options_of(20)).targets.size(), 6u);
}

TEST(AtdcaCpu, SignedScoreEndsWhenNothingIsPositive) {
    // The scene has two orthogonal materials. When both are targets and p has turned against the rest, no
    // projection is positive.
    Cube scene(4, 1, 3);
    const float spectra[4][3] = {{9, 0, 0}, {0, 5, 0}, {1, 1, -3}, {2, 2, -1}};
    for (int s = 0; s < 4; ++s)
        for (int b = 0; b < 3; ++b)
            scene.at(b, 0, s) = spectra[s][b];
    const Detection got = run(scene, options_of(4, Method::gs, Score::sign));
    EXPECT_EQ(pixels(scene, got), (std::vector<int64_t>{0, 1}));
    EXPECT_NE(got.warning.find("positive"), std::string::npos);
    const Detection absolute = run(scene, options_of(3, Method::gs));
    EXPECT_EQ(pixels(scene, absolute), (std::vector<int64_t>{0, 1, 2}));
}

TEST(AtdcaCpu, EndsWhenTheVectorOfOnesIsSpanned) {
    Cube scene(3, 1, 3);
    const float spectra[3][3] = {{4, 4, 4}, {1, 2, 0}, {0, 1, 3}};
    for (int s = 0; s < 3; ++s)
        for (int b = 0; b < 3; ++b)
            scene.at(b, 0, s) = spectra[s][b];
    const Detection got = run(scene, options_of(3, Method::gs));
    EXPECT_EQ(pixels(scene, got), (std::vector<int64_t>{0}));
    EXPECT_NE(got.warning.find("vector p is zero"), std::string::npos);
}

TEST(AtdcaCpu, LeavesInvalidPixelsOut) {
    Cube scene = random_scene(40, 33, 20, 9, 0.1);
    const auto before_holes = atdca_reference(scene, 3);
    for (int64_t pixel : before_holes.pixels)
        make_invalid(scene, pixel / 40, pixel % 40, 7);
    make_invalid(scene, 20, 20, 3, std::numeric_limits<float>::infinity());
    for (int b = 0; b < 20; ++b)
        scene.at(b, 25, 8) = 0;
    for (const Options& options : all_methods(15)) {
        const Detection got = run(scene, options, {16, 16, 2});
        expect_reference(scene, options, got);
        EXPECT_EQ(got.invalid_pixels, 5);
        EXPECT_EQ(got.valid_pixels, 40 * 33 - 5);
    }
    const Cube nothing(10, 10, 5, std::numeric_limits<float>::quiet_NaN());
    const Detection none = run(nothing, options_of(3));
    EXPECT_TRUE(none.targets.empty());
    EXPECT_EQ(none.valid_pixels, 0);
}

TEST(AtdcaCpu, ReadsOnceWhatFitsAndFewTilesOtherwise) {
    const Cube scene = random_scene(400, 300, 32, 21, 0.02);
    MemorySource source(scene);
    std::mutex mutex;
    int64_t read = 0;
    source.on_read = [&](const Rect& r) {
        const std::lock_guard lock(mutex);
        read += r.area();
    };
    stream::PassOptions pass;
    pass.lanes = 2;
    const Detection kept = atdca::detect(source, options_of(30), pass);
    EXPECT_TRUE(kept.cost.in_memory);
    EXPECT_EQ(read, scene.shape.pixels());
    auto again = options_of(30);
    again.keep_scene = false;
    const Detection reread = atdca::detect(source, again, pass);
    EXPECT_FALSE(reread.cost.in_memory);
    EXPECT_EQ(pixels(scene, kept), pixels(scene, reread));
    read = 0;
    pass.memory = 4 << 20; // the scene takes 15 MB
    const Detection streamed = atdca::detect(source, options_of(30), pass);
    EXPECT_FALSE(streamed.cost.in_memory);
    EXPECT_EQ(pixels(scene, kept), pixels(scene, streamed));
    EXPECT_DOUBLE_EQ(streamed.cost.scan_equivalents,
                     static_cast<double>(read) / static_cast<double>(scene.shape.pixels()));
    EXPECT_LE(streamed.cost.scan_equivalents, 12);
    EXPECT_LT(streamed.cost.tile_visits, 30 * streamed.cost.tiles);
}

TEST(AtdcaCpu, IsStoppedByTheCancelFlagAndRefusesNonsense) {
    const Cube scene = random_scene(60, 60, 8);
    const MemorySource source(scene);
    stream::PassOptions pass;
    CancelFlag cancel;
    cancel.request();
    pass.cancel = &cancel;
    EXPECT_THROW(atdca::detect(source, options_of(3), pass), Cancelled);
    pass.cancel = nullptr;
    EXPECT_THROW(atdca::detect(source, options_of(0), pass), UsageError);
    pass.memory = 100;
    EXPECT_THROW(atdca::detect(source, options_of(3), pass), Error);
    double last = -1;
    pass.memory = 1 << 30;
    pass.progress = [&](double share) {
        EXPECT_GE(share, last);
        last = share;
    };
    atdca::detect(source, options_of(5), pass);
    EXPECT_EQ(last, 1.0);
}

} // namespace
} // namespace hsi::test
