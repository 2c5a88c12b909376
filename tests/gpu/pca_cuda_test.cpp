// SPDX-License-Identifier: MIT
// Compares hsi_cuda_pca.so, in the tile pipeline, with the CPU backend.
#include "core/cuda_module.h"
#include "pca/pca.h"
#include "stream/empty_source.h"
#include "stream/pipeline.h"
#include "support/memory_cube.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace hsi::test {
namespace {

struct Cut {
    int64_t samples = 0, lines = 0;
    int lanes = 1;
};

class PcaCuda : public testing::Test {
  protected:
    void SetUp() override {
        if (cuda_devices().empty()) GTEST_SKIP() << "NO GPU HERE: nothing of hsi_cuda_pca.so was tested";
        m_cuda = make_cuda_backend<pca::Backend>("pca", cuda_devices());
    }
    static stream::PassOptions pass(Cut cut) {
        stream::PassOptions options;
        options.lanes = cut.lanes;
        options.tile_samples = cut.samples;
        options.tile_lines = cut.lines;
        options.memory = uint64_t{4} << 30;
        return options;
    }
    static std::unique_ptr<stream::StatisticsScan>
    of_cpu(const Cube& scene, stream::Statistics what = stream::Statistics::covariance) {
        return std::make_unique<stream::StatisticsScan>(scene.shape, what);
    }
    std::unique_ptr<stream::StatisticsScan> of_cuda(const Cube& scene) {
        return m_cuda->make_scan(scene.shape, stream::Statistics::covariance, 0);
    }
    static stream::SceneStatistics scan(const Cube& scene, std::unique_ptr<stream::StatisticsScan> operation,
                                        Cut cut = {}) {
        const MemorySource source(scene);
        stream::run_pass(source, *operation, {}, pass(cut));
        return operation->result();
    }
    static Cube transform(const Cube& scene, std::unique_ptr<stream::Operation> operation, Cut cut = {}) {
        const MemorySource source(scene);
        MemorySink sink(scene.shape.samples, scene.shape.lines, operation->output_bands()[0]);
        stream::run_pass(source, *operation, {&sink}, pass(cut));
        return sink.cube;
    }
    static std::vector<int> all(int n) {
        std::vector<int> list;
        for (int i = 0; i < n; ++i)
            list.push_back(i);
        return list;
    }
    std::unique_ptr<pca::Backend> m_cuda;
};

Cube holed_scene(int64_t samples, int64_t lines, int bands, uint32_t seed) {
    Cube scene = random_scene(samples, lines, bands, seed);
    for (int64_t l = lines / 3; l < lines / 2; ++l)
        for (int64_t s = 5; s < samples / 2; ++s)
            make_invalid(scene, l, s, static_cast<int>(s % bands));
    for (int b = 0; b < bands; ++b)
        scene.at(b, lines - 1, samples - 1) = 0;
    return scene;
}

TEST_F(PcaCuda, CovarianceAgreesWithTheCpu) {
    for (int bands : {2, 7, 100, 224}) {
        const Cube scene = holed_scene(301, 131, bands, 1);
        const auto cpu = scan(scene, of_cpu(scene)), cuda = scan(scene, of_cuda(scene));
        EXPECT_EQ(cpu.valid_pixels, cuda.valid_pixels);
        EXPECT_EQ(cpu.invalid_pixels, cuda.invalid_pixels);
        EXPECT_EQ(cpu.finite, cuda.finite);
        const auto n = static_cast<size_t>(bands);
        for (size_t a = 0; a < n; ++a) {
            EXPECT_NEAR(cpu.mean[a], cuda.mean[a], 1e-12 * std::fabs(cpu.mean[a]));
            for (size_t b = 0; b < n; ++b)
                EXPECT_NEAR(cpu.covariance[a * n + b], cuda.covariance[a * n + b],
                            2e-7 * std::sqrt(cpu.covariance[a * n + a] * cpu.covariance[b * n + b]));
        }
    }
}

TEST_F(PcaCuda, TakesTilesOfMoreBlocksThanAGridIsHigh) {
    constexpr int64_t lines = 8 * 66000;
    const Cube scene = random_scene(2, lines, 2, 6);
    const auto cpu = scan(scene, of_cpu(scene)), cuda = scan(scene, of_cuda(scene), {1024, lines, 1});
    EXPECT_EQ(cuda.valid_pixels, 2 * lines);
    for (size_t i = 0; i < 4; ++i)
        EXPECT_NEAR(cpu.covariance[i], cuda.covariance[i], 2e-7 * cpu.covariance[0]);
}

TEST_F(PcaCuda, CovarianceInDoublePrecisionIsTheCpusToTheBit) {
    constexpr auto what = stream::Statistics::double_covariance;
    if (!m_cuda->has_scan(what)) GTEST_SKIP() << "blocks of threads have too little shared memory here";
    // The sizes give lines of less than a chunk, of more than a chunk, and of several blocks. Chunks are
    // whole, have holes, or are empty.
    for (const auto& [samples, lines, bands] :
         {std::array{5, 70, 3}, {301, 131, 100}, {1100, 17, 224}, {2500, 9, 65}, {16, 16, 64}, {1, 1, 2}}) {
        Cube scene =
            samples > 16 ? holed_scene(samples, lines, bands, 8) : random_scene(samples, lines, bands, 9);
        if (samples == 301)
            for (int64_t s = 0; s < samples; ++s)
                // Valid values whose sum of magnitudes is infinite.
                for (int b = 0; b < bands; ++b)
                    scene.at(b, 3, s) = 3e38f;
        const auto cpu = scan(scene, of_cpu(scene, what));
        for (const Cut& cut : {Cut{}, Cut{1024, 8, 3}}) {
            const auto cuda = scan(scene, m_cuda->make_scan(scene.shape, what, 0), cut);
            EXPECT_EQ(cpu.valid_pixels, cuda.valid_pixels);
            EXPECT_EQ(cpu.invalid_pixels, cuda.invalid_pixels);
            EXPECT_EQ(cpu.finite, cuda.finite);
            EXPECT_EQ(cpu.mean, cuda.mean);
            EXPECT_EQ(cpu.covariance, cuda.covariance);
            EXPECT_EQ(cpu.constant, cuda.constant);
        }
    }
}

TEST_F(PcaCuda, KeepsItsDigitsOnAHighLevel) {
    Cube scene = random_scene(1140, 30, 10, 7);
    for (auto& x : scene.values)
        x = 10 * x + 1e7f;
    const auto want = scan(scene, of_cpu(scene, stream::Statistics::double_covariance)),
               cuda = scan(scene, of_cuda(scene));
    for (size_t a = 0; a < 10; ++a)
        for (size_t b = 0; b < 10; ++b)
            EXPECT_NEAR(want.covariance[a * 10 + b], cuda.covariance[a * 10 + b],
                        1e-6 * std::sqrt(want.covariance[a * 11] * want.covariance[b * 11]));
}

TEST_F(PcaCuda, ComponentsAgreeWithTheCpu) {
    const Cube scene = holed_scene(301, 131, 60, 2);
    const auto model = pca::fit(scan(scene, of_cpu(scene)), {30, false, false});
    for (int nc : {1, 7, 30}) {
        const auto t = pca::projection(model, nc, all(60), 60);
        const Cube cpu = transform(scene, pca::make_transform(t)),
                   cuda = transform(scene, m_cuda->make_transform(t));
        for (size_t i = 0; i < cpu.values.size(); ++i) {
            EXPECT_EQ(std::isnan(cpu.values[i]), std::isnan(cuda.values[i]));
            if (!std::isnan(cpu.values[i])) {
                EXPECT_NEAR(cpu.values[i], cuda.values[i], 1e-6f * (1 + std::fabs(cpu.values[i])));
            }
        }
    }
}

TEST_F(PcaCuda, IsBitIdenticalForEveryTilingAndNumberOfThreads) {
    const Cube scene = holed_scene(300, 201, 40, 3);
    const auto whole = scan(scene, of_cuda(scene));
    const auto t = pca::projection(pca::fit(whole, {7, false, false}), 7, all(40), 40);
    const Cube y = transform(scene, m_cuda->make_transform(t));
    for (const Cut& cut : {Cut{128, 64, 1}, Cut{300, 64, 3}, Cut{256, 128, 2}}) {
        const auto tiled = scan(scene, of_cuda(scene), cut);
        EXPECT_EQ(tiled.covariance, whole.covariance);
        EXPECT_EQ(tiled.mean, whole.mean);
        EXPECT_TRUE(identical(transform(scene, m_cuda->make_transform(t), cut), y));
    }
}

TEST_F(PcaCuda, AgreesToTheBitWhetherTheSceneStaysOnTheDeviceOrNot) {
    // The scene has several blocks in both directions; the last blocks are partial.
    const Cube scene = holed_scene(1301, 67, 70, 4);
    const auto streamed = scan(scene, of_cuda(scene));
    EXPECT_FALSE(m_cuda->holds_scene());
    EXPECT_EQ(m_cuda->held_bytes(), 0u);
    const auto t = pca::projection(pca::fit(streamed, {9, false, false}), 9, all(70), 70);
    const Cube y = transform(scene, m_cuda->make_transform(t));
    const auto one = make_cuda_backend<pca::Backend>("pca", {cuda_devices().front()});
    for (const Cut& cut : {Cut{}, Cut{1024, 8, 3}, Cut{1301, 16, 2}}) {
        const auto operation =
            one->make_scan(scene.shape, stream::Statistics::covariance, 4 * scene.shape.float_bytes());
        EXPECT_FALSE(one->holds_scene()); // the scene is not loaded yet
        EXPECT_EQ(one->held_bytes(), scene.shape.float_bytes());
        const MemorySource source(scene);
        stream::run_pass(source, *operation, {}, pass(cut));
        EXPECT_EQ(operation->result().covariance, streamed.covariance);
        EXPECT_EQ(operation->result().mean, streamed.mean);
        ASSERT_TRUE(one->holds_scene());
        for (const Cut& out : {Cut{}, Cut{17, 5, 3}}) {
            const auto held = one->make_transform(t);
            MemorySink sink(scene.shape.samples, scene.shape.lines, 9);
            stream::run_pass(stream::EmptySource(scene.shape), *held, {&sink}, pass(out));
            EXPECT_TRUE(identical(sink.cube, y));
        }
        one->release();
        EXPECT_FALSE(one->holds_scene());
        EXPECT_TRUE(identical(transform(scene, one->make_transform(t)), y));
    }
}

TEST_F(PcaCuda, KnowsConstantBands) {
    Cube scene = random_scene(1100, 20, 4, 12);
    for (int64_t l = 0; l < 20; ++l)
        for (int64_t s = 0; s < 1100; ++s) {
            scene.at(1, l, s) = 0.1f;                   // sums of this value are not exact
            scene.at(2, l, s) = s < 1024 ? 0.3f : 0.4f; // constant in each block, but not in the scene
        }
    make_invalid(scene, 0, 0, 0);
    for (const auto what : {stream::Statistics::covariance, stream::Statistics::differences})
        for (const Cut& cut : {Cut{}, Cut{1024, 8, 3}})
            EXPECT_EQ(scan(scene, m_cuda->make_scan(scene.shape, what, 0), cut).constant,
                      std::vector<int>{1});
    const Cube still(30, 20, 3, 0.3f);
    EXPECT_EQ(scan(still, of_cuda(still)).constant, (std::vector<int>{0, 1, 2}));
}

TEST_F(PcaCuda, KeepsNoSceneThatWouldTakeMoreThanHalfOfTheDevicesShare) {
    const Cube scene = holed_scene(100, 20, 5, 5);
    scan(scene,
         m_cuda->make_scan(scene.shape, stream::Statistics::covariance, 2 * scene.shape.float_bytes() - 1));
    EXPECT_FALSE(m_cuda->holds_scene());
}

} // namespace
} // namespace hsi::test
