// SPDX-License-Identifier: MIT
// Compares hsi_cuda_atdca.so with the CPU backend: targets and their order are equal, and scores have equal
// bits.
#include "atdca/atdca.h"
#include "core/cuda_module.h"
#include "core/error.h"
#include "support/memory_cube.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace hsi::test {
namespace {

using atdca::Detection;
using atdca::Method;
using atdca::Options;
using atdca::Score;

atdca::Backend& backend() {
    static const auto made = make_cuda_backend<atdca::Backend>("atdca", cuda_devices());
    return *made;
}

class AtdcaCuda : public testing::Test {
  protected:
    void SetUp() override {
        if (cuda_devices().empty()) GTEST_SKIP() << "NO GPU HERE: nothing of hsi_cuda_atdca.so was tested";
    }

    static stream::PassOptions pass_of(int64_t tile_samples = 0, int64_t tile_lines = 0, int lanes = 2) {
        stream::PassOptions pass;
        pass.lanes = lanes;
        pass.tile_samples = tile_samples;
        pass.tile_lines = tile_lines;
        pass.memory = uint64_t{4} << 30;
        return pass;
    }

    static Detection expect_same(const Cube& scene, const Options& options,
                                 const stream::PassOptions& pass = pass_of()) {
        const MemorySource source(scene);
        const Detection cpu = atdca::detect(source, options, pass_of());
        const Detection gpu = backend().detect(source, options, pass);
        EXPECT_EQ(gpu.targets.size(), cpu.targets.size());
        for (size_t k = 0; k < std::min(gpu.targets.size(), cpu.targets.size()); ++k) {
            EXPECT_EQ(gpu.targets[k].line, cpu.targets[k].line) << "target " << k;
            EXPECT_EQ(gpu.targets[k].sample, cpu.targets[k].sample) << "target " << k;
            EXPECT_EQ(gpu.targets[k].score, cpu.targets[k].score) << "target " << k;
            EXPECT_EQ(gpu.targets[k].spectrum, cpu.targets[k].spectrum) << "target " << k;
        }
        EXPECT_EQ(gpu.warning, cpu.warning);
        EXPECT_EQ(gpu.valid_pixels, cpu.valid_pixels);
        EXPECT_EQ(gpu.invalid_pixels, cpu.invalid_pixels);
        EXPECT_TRUE(gpu.cost.device);
        return gpu;
    }

    static std::vector<Options> all_methods(int targets) {
        std::vector<Options> list(3);
        for (auto& o : list)
            o.targets = targets;
        list[1].method = list[2].method = Method::gs;
        list[2].score = Score::sign;
        return list;
    }
};

TEST_F(AtdcaCuda, FindsWhatTheCpuFinds) {
    for (uint32_t seed : {1u, 2u, 3u})
        for (double noise : {0.001, 0.05, 0.3}) {
            const Cube scene = random_scene(161, 147, 40, seed, noise);
            for (const Options& options : all_methods(30)) {
                SCOPED_TRACE(testing::Message()
                             << "seed " << seed << ", noise " << noise << ", method "
                             << static_cast<int>(options.method) << static_cast<int>(options.score));
                expect_same(scene, options);
            }
        }
}

TEST_F(AtdcaCuda, FindsTheSameForEveryTiling) {
    Cube scene = random_scene(150, 61, 25, 10, 0.05);
    make_invalid(scene, 30, 70, 1);
    for (const Options& options : all_methods(20))
        for (const auto& pass : {pass_of(150, 7, 1), pass_of(17, 13, 3), pass_of(1, 61), pass_of(150, 1, 4)})
            expect_same(scene, options, pass);
}

TEST_F(AtdcaCuda, BreaksTiesByPosition) {
    Cube scene(140, 130, 12);
    const Cube part = random_scene(20, 15, 12, 5, 0.1);
    for (int b = 0; b < 12; ++b)
        for (int64_t l = 0; l < 130; ++l)
            for (int64_t s = 0; s < 140; ++s)
                scene.at(b, l, s) = part.at(b, l % 15, 19 - s % 20);
    for (const Options& options : all_methods(10))
        for (const auto& t : expect_same(scene, options).targets) {
            EXPECT_LT(t.line, 15);
            EXPECT_LT(t.sample, 20);
        }
}

TEST_F(AtdcaCuda, HandlesManyBandsAndMoreTargetsThanItsSharedMemoryHolds) {
    const Cube scene = random_scene(90, 70, 601, 6, 0.1);
    for (const Options& options : all_methods(60))
        EXPECT_EQ(expect_same(scene, options).targets.size(), 60u);
}

TEST_F(AtdcaCuda, EndsAsTheCpuDoes) {
    const Cube few_bands = random_scene(50, 40, 5, 11, 0.2), few_pixels = random_scene(3, 2, 30, 12, 0.2);
    for (const Options& options : all_methods(20)) {
        EXPECT_FALSE(expect_same(few_bands, options).warning.empty());
        EXPECT_FALSE(expect_same(few_pixels, options).warning.empty());
    }
    Cube ones(3, 1, 3);
    const float spectra[3][3] = {{4, 4, 4}, {1, 2, 0}, {0, 1, 3}};
    for (int s = 0; s < 3; ++s)
        for (int b = 0; b < 3; ++b)
            ones.at(b, 0, s) = spectra[s][b];
    for (const Options& options : all_methods(3))
        expect_same(ones, options);
}

TEST_F(AtdcaCuda, LeavesInvalidPixelsOut) {
    Cube scene = random_scene(140, 33, 20, 9, 0.1);
    for (int64_t l = 5; l < 12; ++l)
        for (int64_t s = 0; s < 130; ++s)
            make_invalid(scene, l, s, static_cast<int>(s % 20));
    make_invalid(scene, 20, 20, 3, std::numeric_limits<float>::infinity());
    for (int b = 0; b < 20; ++b)
        scene.at(b, 25, 8) = 0;
    for (const Options& options : all_methods(15))
        expect_same(scene, options);
    const Cube nothing(10, 10, 5, std::numeric_limits<float>::quiet_NaN());
    EXPECT_TRUE(expect_same(nothing, all_methods(3)[0]).targets.empty());
}

TEST_F(AtdcaCuda, LooksAtFewPixelsForOsp) {
    const Cube scene = random_scene(300, 300, 64, 21, 0.02);
    const Detection got = expect_same(scene, all_methods(30)[0]);
    EXPECT_LT(got.cost.scan_equivalents, 25);
    EXPECT_FALSE(backend().fits(1 << 20, scene.shape, all_methods(30)[0]));
    EXPECT_TRUE(backend().fits(0, scene.shape, all_methods(30)[0]));
}

TEST_F(AtdcaCuda, DecidesNearTiesInDouble) {
    Cube scene(64, 64, 50);
    for (int b = 0; b < 50; ++b)
        for (int64_t l = 0; l < 64; ++l)
            for (int64_t s = 0; s < 64; ++s)
                scene.at(b, l, s) = 1.0f + 0.01f * static_cast<float>(b);
    scene.at(20, 50, 33) = std::nextafter(scene.at(20, 50, 33), 10.0f);
    for (const Options& options : all_methods(3)) {
        const Detection got = expect_same(scene, options);
        ASSERT_EQ(got.targets.size(), 1u);
        EXPECT_EQ(got.targets[0].line, 50);
    }
}

TEST_F(AtdcaCuda, MapsAndScoresAreTheProcessors) {
    Cube scene = random_scene(93, 41, 30, 4, 0.1);
    make_invalid(scene, 3, 7, 2);
    make_invalid(scene, 5, 2, 0, std::numeric_limits<float>::infinity());
    for (int b = 0; b < 30; ++b)
        scene.at(b, 11, 12) = 0;
    std::vector<std::vector<float>> targets; // 11 targets: a full chunk and a partial chunk
    for (int k = 0; k < 11; ++k) {
        targets.emplace_back();
        for (int b = 0; b < 30; ++b)
            targets.back().push_back(scene.at(b, 3 * k + 1, 8 * k + 3));
    }
    const MemorySource source(scene);
    using atdca::ClassifyOptions;
    for (const auto kind :
         {ClassifyOptions::Scores::none, ClassifyOptions::Scores::abundance, ClassifyOptions::Scores::angle})
        for (const bool map : {true, false}) {
            if (!map && kind == ClassifyOptions::Scores::none) continue;
            ClassifyOptions options;
            options.map = map;
            options.max_angle = 6;
            options.scores = kind;
            const auto run = [&](stream::Operation& operation, const stream::PassOptions& pass) {
                MemorySink classes(93, 41, 1), scores(93, 41, 11);
                std::vector<stream::CubeSink*> sinks;
                if (map) sinks.push_back(&classes);
                if (kind != ClassifyOptions::Scores::none) sinks.push_back(&scores);
                stream::run_pass(source, operation, sinks, pass);
                return std::pair(std::move(classes.cube), std::move(scores.cube));
            };
            const auto cpu = run(*atdca::make_classification(targets, options), pass_of());
            for (const auto& pass : {pass_of(), pass_of(17, 9, 3), pass_of(93, 1)}) {
                const auto gpu = run(*backend().make_classification(targets, options), pass);
                EXPECT_TRUE(identical(cpu.first, gpu.first));
                if (kind == ClassifyOptions::Scores::angle) {
                    for (size_t i = 0; i < cpu.second.values.size(); ++i) {
                        ASSERT_EQ(std::isnan(cpu.second.values[i]), std::isnan(gpu.second.values[i]));
                        if (std::isnan(cpu.second.values[i])) continue;
                        ASSERT_NEAR(cpu.second.values[i], gpu.second.values[i], 1e-5);
                    }
                } else {
                    EXPECT_TRUE(identical(cpu.second, gpu.second));
                }
            }
        }
}

} // namespace
} // namespace hsi::test
