// SPDX-License-Identifier: MIT
// MNF on a device, in the tile pipeline. Moments are compared with their definition and with the CPU's scan;
// components and the inverse transform are compared with the CPU. The device code is in hsi_cuda_pca.so.
#include "core/cuda_module.h"
#include "mnf/mnf.h"
#include "stream/empty_source.h"
#include "stream/pipeline.h"
#include "support/memory_cube.h"
#include "support/moment_reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

namespace hsi::test {
namespace {

struct Cut {
    int64_t samples = 0, lines = 0;
    int lanes = 1;
};

stream::PassOptions pass(Cut cut) {
    stream::PassOptions options;
    options.lanes = cut.lanes;
    options.tile_samples = cut.samples;
    options.tile_lines = cut.lines;
    options.memory = uint64_t{4} << 30;
    return options;
}

stream::SceneStatistics scan(const Cube& scene, std::unique_ptr<stream::StatisticsScan> operation,
                             Cut cut = {}) {
    const MemorySource source(scene);
    stream::run_pass(source, *operation, {}, pass(cut));
    return operation->result();
}

Cube transform(const stream::CubeSource& source, std::unique_ptr<stream::Operation> operation, Cut cut = {}) {
    const auto shape = source.shape();
    MemorySink sink(shape.samples, shape.lines, operation->output_bands()[0]);
    stream::run_pass(source, *operation, {&sink}, pass(cut));
    return sink.cube;
}

void expect_same(const stream::SceneStatistics& got, const stream::SceneStatistics& want) {
    EXPECT_EQ(got.valid_pixels, want.valid_pixels);
    EXPECT_EQ(got.invalid_pixels, want.invalid_pixels);
    EXPECT_EQ(got.pairs, want.pairs);
    EXPECT_EQ(got.finite, want.finite);
    EXPECT_EQ(got.mean, want.mean);
    EXPECT_EQ(got.covariance, want.covariance);
    EXPECT_EQ(got.differences, want.differences);
}

class MnfCuda : public testing::Test {
  protected:
    void SetUp() override {
        if (cuda_devices().empty()) GTEST_SKIP() << "NO GPU HERE: nothing of MNF on devices was tested";
        m_cuda = make_cuda_backend<pca::Backend>("pca", {cuda_devices().front()});
    }
    stream::SceneStatistics moments(const Cube& scene, Cut cut = {}) {
        return scan(scene, m_cuda->make_scan(scene.shape, stream::Statistics::differences, 0), cut);
    }
    static stream::SceneStatistics of_cpu(const Cube& scene) {
        return scan(scene,
                    std::make_unique<stream::StatisticsScan>(scene.shape, stream::Statistics::differences));
    }
    std::unique_ptr<pca::Backend> m_cuda;
};

TEST_F(MnfCuda, MomentsAreTheDefinition) {
    for (auto [samples, lines, bands] : {std::tuple{150, 41, 3},
                                         {1, 20, 5},
                                         {9, 1, 11},
                                         {193, 17, 13},
                                         {2049, 9, 6},
                                         {70, 9, 64},
                                         {61, 10, 65},
                                         {33, 7, 150}}) {
        const Cube cube = random_scene(samples, lines, bands, 3);
        expect_close(moments(cube), moment_reference(cube), 1e-13);
    }
}

TEST_F(MnfCuda, LeavesOutInvalidPixelsAndPairs) {
    for (auto [samples, lines] : {std::pair{150, 70}, {1100, 20}}) {
        Cube cube = random_scene(samples, lines, 7, 7);
        spoil(cube);
        const auto got = moments(cube);
        expect_close(got, moment_reference(cube), 1e-13);
        EXPECT_EQ(got.finite, of_cpu(cube).finite);
    }
}

TEST_F(MnfCuda, KeepsItsDigitsOnAHighLevel) {
    for (const float level : {3e4f, 1e7f}) {
        Cube cube = random_scene(1140, 10, 10, 6, 0.02, 1.0);
        for (auto& x : cube.values)
            x = 10 * x + level;
        expect_close(moments(cube), moment_reference(cube), 1e-12);
    }
}

TEST_F(MnfCuda, IsBitIdenticalForEveryTilingAndNumberOfLanes) {
    for (auto [width, height] : {std::pair{300, 101}, {2100, 30}}) {
        Cube cube = random_scene(width, height, 14, 8);
        spoil(cube);
        const auto whole = moments(cube);
        for (const Cut& cut : {Cut{1024, 8, 1}, {1024, 8, 3}, {1, 1, 2}, {2048, 16, 2}, {4096, 8, 4}})
            expect_same(moments(cube, cut), whole);
    }
}

TEST_F(MnfCuda, IsBitIdenticalWhereTwoDevicesTakeTurns) {
    const auto& found = cuda_devices();
    const auto two = make_cuda_backend<pca::Backend>("pca", {found.front(), found.back()});
    Cube cube = random_scene(1500, 43, 20, 9);
    spoil(cube);
    expect_same(scan(cube, two->make_scan(cube.shape, stream::Statistics::differences, uint64_t{1} << 30),
                     {1024, 8, 4}),
                moments(cube));
    EXPECT_FALSE(two->holds_scene());
}

TEST_F(MnfCuda, ModelAndComponentsAgreeWithTheCpu) {
    Cube cube = random_scene(301, 80, 70, 2);
    spoil(cube);
    const auto cpu = mnf::fit(of_cpu(cube)), cuda = mnf::fit(moments(cube));
    EXPECT_EQ(cpu.kept, cuda.kept);
    EXPECT_EQ(cpu.model.regularised, cuda.model.regularised);
    for (int k = 0; k < 70; ++k)
        EXPECT_NEAR(cuda.model.eigenvalues[static_cast<size_t>(k)],
                    cpu.model.eigenvalues[static_cast<size_t>(k)],
                    1e-10 * cpu.model.eigenvalues[static_cast<size_t>(k)]);
    const MemorySource source(cube);
    const auto t = mnf::projection(cuda.model, 9, cuda.kept, 70);
    const Cube want = transform(source, pca::make_transform(t)),
               got = transform(source, m_cuda->make_transform(t), {128, 16, 2});
    for (size_t i = 0; i < want.values.size(); ++i) {
        ASSERT_EQ(std::isnan(want.values[i]), std::isnan(got.values[i]));
        if (!std::isnan(want.values[i])) {
            ASSERT_NEAR(want.values[i], got.values[i], 1e-6f * (1 + std::fabs(want.values[i])));
        }
    }
}

TEST_F(MnfCuda, BandsWithoutNoiseAreLeftOut) {
    Cube cube = random_scene(90, 40, 6, 4);
    for (int64_t l = 0; l < 40; ++l)
        for (int64_t s = 0; s < 90; ++s) {
            cube.at(1, l, s) = 17.3f;
            cube.at(4, l, s) = static_cast<float>(l); // differs only between lines
        }
    const auto got = moments(cube);
    EXPECT_EQ(got.covariance[7], 0); // variance of band 1
    EXPECT_EQ(mnf::fit(got).kept, (std::vector<int>{0, 2, 3, 5}));
}

TEST_F(MnfCuda, AgreesToTheBitWhetherTheSceneStaysOnTheDeviceOrNot) {
    Cube cube = random_scene(1301, 45, 30, 5);
    spoil(cube);
    const auto streamed = moments(cube);
    EXPECT_FALSE(m_cuda->holds_scene());
    const auto model = mnf::fit(streamed);
    const auto t = mnf::projection(model.model, 5, model.kept, 30);
    const Cube y = transform(MemorySource(cube), m_cuda->make_transform(t));
    for (const Cut& cut : {Cut{}, Cut{1024, 8, 3}}) {
        const auto held =
            scan(cube,
                 m_cuda->make_scan(cube.shape, stream::Statistics::differences, 4 * cube.shape.float_bytes()),
                 cut);
        expect_same(held, streamed);
        ASSERT_TRUE(m_cuda->holds_scene());
        EXPECT_EQ(m_cuda->held_bytes(), cube.shape.float_bytes());
        for (const Cut& out : {Cut{}, Cut{17, 5, 3}})
            EXPECT_TRUE(
                identical(transform(stream::EmptySource(cube.shape), m_cuda->make_transform(t), out), y));
        m_cuda->release();
    }
}

TEST_F(MnfCuda, AllComponentsGiveTheSceneBack) {
    Cube cube = random_scene(120, 30, 12, 6);
    make_invalid(cube, 3, 5, 2);
    const auto found = mnf::fit(moments(cube));
    const Cube y = transform(MemorySource(cube),
                             m_cuda->make_transform(mnf::projection(found.model, 12, found.kept, 12)));
    const Cube back =
        transform(MemorySource(y), m_cuda->make_transform(mnf::reconstruction(found.model, 12)));
    for (int b = 0; b < 12; ++b)
        for (int64_t l = 0; l < 30; ++l)
            for (int64_t s = 0; s < 120; ++s) {
                if (l == 3 && s == 5)
                    EXPECT_TRUE(std::isnan(back.at(b, l, s)));
                else
                    EXPECT_NEAR(back.at(b, l, s), cube.at(b, l, s),
                                2e-6f * (1 + std::fabs(cube.at(b, l, s))));
            }
}

TEST_F(MnfCuda, ScenesWithoutPairsOrPixels) {
    Cube cube = random_scene(1, 20, 4, 9);
    auto r = moments(cube);
    EXPECT_EQ(r.pairs, 0);
    EXPECT_TRUE(std::isnan(r.differences[0]));
    for (int64_t l = 0; l < 20; ++l)
        make_invalid(cube, l, 0, 2);
    r = moments(cube);
    EXPECT_EQ(r.valid_pixels, 0);
    EXPECT_EQ(r.empty_bands(), std::vector<int>{2});
    EXPECT_TRUE(std::isnan(r.mean[0]) && std::isnan(r.covariance[5]));
}

TEST_F(MnfCuda, TakesTilesOfMoreBlocksThanAGridIsHigh) {
    constexpr int64_t lines = 8 * 66000;
    const Cube cube = random_scene(2, lines, 2, 10);
    const auto got = moments(cube, {1024, lines, 1}), want = of_cpu(cube);
    EXPECT_EQ(got.pairs, lines);
    for (size_t i = 0; i < 4; ++i) {
        EXPECT_NEAR(got.covariance[i], want.covariance[i], 1e-13);
        EXPECT_NEAR(got.differences[i], want.differences[i], 1e-13);
    }
}

} // namespace
} // namespace hsi::test
