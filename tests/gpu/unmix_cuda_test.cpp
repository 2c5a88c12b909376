// SPDX-License-Identifier: MIT
// Compares hsi_cuda_unmix.so, in the tile pipeline, with the CPU: abundances have equal bits.
#include "core/cuda_module.h"
#include "stream/pipeline.h"
#include "support/memory_cube.h"
#include "unmix/draws.h"
#include "unmix/unmix.h"
#include "unmix/unmix_scene.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace hsi::test {
namespace {

using unmix::Method;

unmix::Backend& backend() {
    static const auto made = make_cuda_backend<unmix::Backend>("unmix", cuda_devices());
    return *made;
}

struct Cut {
    int64_t samples = 0, lines = 0;
    int lanes = 1;
};

struct Found {
    Cube abundances, rmse;
    int64_t valid = 0, invalid = 0;
};

Found unmixed(unmix::Unmixing& operation, const Cube& cube, int size, Cut cut = {}) {
    const MemorySource source(cube);
    MemorySink abundances(cube.shape.samples, cube.shape.lines, size),
        rmse(cube.shape.samples, cube.shape.lines, 1);
    std::vector<stream::CubeSink*> sinks{&abundances};
    if (operation.output_bands().size() > 1) sinks.push_back(&rmse);
    stream::PassOptions pass;
    pass.lanes = cut.lanes;
    pass.tile_samples = cut.samples;
    pass.tile_lines = cut.lines;
    pass.memory = uint64_t{4} << 30;
    stream::run_pass(source, operation, sinks, pass);
    return {abundances.cube, rmse.cube, operation.valid(), operation.invalid()};
}

class UnmixCuda : public testing::Test {
  protected:
    void SetUp() override {
        if (cuda_devices().empty()) GTEST_SKIP() << "NO GPU HERE: nothing of hsi_cuda_unmix.so was tested";
    }
    static Found on_gpu(const unmix::Endmembers& e, Method method, const Cube& cube, Cut cut = {},
                        bool rmse = true) {
        return unmixed(*backend().make_unmixing(e, {method, rmse}), cube, e.count(), cut);
    }
    static Found on_cpu(const unmix::Endmembers& e, Method method, const Cube& cube) {
        return unmixed(*unmix::make_unmixing(e, {method, true}), cube, e.count());
    }
};

constexpr Method methods[] = {Method::ucls, Method::nnls, Method::scls, Method::fcls};

void spoil(Cube& cube) {
    cube.at(cube.shape.bands / 2, 1, 2) = std::numeric_limits<float>::quiet_NaN();
    cube.at(0, 2, 3) = std::numeric_limits<float>::infinity();
    for (int b = 0; b < cube.shape.bands; ++b)
        cube.at(b, 3, 4) = 0;
}

TEST_F(UnmixCuda, AbundancesAreTheProcessorsToTheLastBit) {
    struct Case {
        int endmembers, bands;
        double likeness;
    };
    // Up to 8 and up to 16 endmembers are solved by one thread per pixel, more endmembers by a warp per
    // pixel. Chunks of 8 endmembers may be partly filled.
    for (const Case& t : {Case{1, 5, 0},
                          {2, 30, 0},
                          {3, 224, 0.9},
                          {8, 60, 0},
                          {9, 61, 0.999},
                          {10, 224, 0},
                          {16, 100, 0.5},
                          {17, 50, 0},
                          {40, 120, 0.3}}) {
        const auto e = spectra(t.endmembers, t.bands, 7, t.likeness);
        auto cube = mixtures(e, 61, 23, 8);
        spoil(cube);
        for (const Method method : methods) {
            const auto cpu = on_cpu(e, method, cube), gpu = on_gpu(e, method, cube);
            const std::string what = std::to_string(t.endmembers) + " endmembers, method " +
                                     std::to_string(static_cast<int>(method));
            EXPECT_TRUE(identical(cpu.abundances, gpu.abundances)) << what;
            EXPECT_TRUE(identical(cpu.rmse, gpu.rmse)) << what;
            EXPECT_EQ(gpu.valid, cpu.valid);
            EXPECT_EQ(gpu.invalid, 3);
        }
    }
}

TEST_F(UnmixCuda, EndmembersThatSharedMemoryDoesNotHoldAreSolvedAlike) {
    const auto e = spectra(250, 300, 9);
    auto cube = mixtures(e, 5, 4, 10);
    spoil(cube);
    for (const Method method : {Method::scls, Method::fcls}) {
        const auto cpu = on_cpu(e, method, cube), gpu = on_gpu(e, method, cube);
        EXPECT_TRUE(identical(cpu.abundances, gpu.abundances)) << static_cast<int>(method);
        EXPECT_TRUE(identical(cpu.rmse, gpu.rmse)) << static_cast<int>(method);
        EXPECT_EQ(gpu.invalid, 3);
    }
}

TEST_F(UnmixCuda, OperationsOfSeveralSizesLiveSideBySide) {
    // All launches of a kernel share its limit of shared memory, so the second operation must not lower the
    // limit for the first.
    const auto many = spectra(100, 120, 12), few = spectra(20, 120, 13);
    const auto cube = mixtures(few, 30, 20, 14);
    const auto first = backend().make_unmixing(many, {Method::nnls, false}),
               second = backend().make_unmixing(few, {Method::nnls, false});
    EXPECT_TRUE(identical(unmixed(*second, cube, 20).abundances, on_cpu(few, Method::nnls, cube).abundances));
    EXPECT_TRUE(
        identical(unmixed(*first, cube, 100).abundances, on_cpu(many, Method::nnls, cube).abundances));
}

TEST_F(UnmixCuda, TilesAndLanesChangeNothing) {
    const auto e = spectra(12, 40, 3), many = spectra(20, 40, 4);
    auto cube = mixtures(e, 83, 57, 5);
    spoil(cube);
    const auto whole = on_gpu(e, Method::fcls, cube), whole_of_many = on_gpu(many, Method::fcls, cube);
    for (const Cut& cut : {Cut{7, 5, 3}, Cut{83, 1, 2}, Cut{16, 57, 4}, Cut{1, 1, 1}}) {
        const auto cut_up = on_gpu(e, Method::fcls, cube, cut);
        EXPECT_TRUE(identical(whole.abundances, cut_up.abundances));
        EXPECT_TRUE(identical(whole.rmse, cut_up.rmse));
        EXPECT_EQ(whole.valid, cut_up.valid);
        EXPECT_TRUE(identical(whole_of_many.abundances, on_gpu(many, Method::fcls, cube, cut).abundances));
    }
    EXPECT_TRUE(identical(whole.abundances, on_gpu(e, Method::fcls, cube, {}, false).abundances));
}

struct FoundDraws {
    std::vector<Cube> outputs;
    int64_t valid = 0, invalid = 0;
    int skipped = 0;
};

FoundDraws drawn_from(unmix::DrawUnmixing& operation, const Cube& cube, Cut cut = {}) {
    const MemorySource source(cube);
    std::vector<std::unique_ptr<MemorySink>> sinks;
    std::vector<stream::CubeSink*> all;
    for (const int bands : operation.output_bands()) {
        sinks.push_back(std::make_unique<MemorySink>(cube.shape.samples, cube.shape.lines, bands));
        all.push_back(sinks.back().get());
    }
    stream::PassOptions pass;
    pass.lanes = cut.lanes;
    pass.tile_samples = cut.samples;
    pass.tile_lines = cut.lines;
    pass.memory = uint64_t{4} << 30;
    stream::run_pass(source, operation, all, pass);
    FoundDraws found{{}, operation.valid(), operation.invalid(), operation.skipped()};
    for (const auto& sink : sinks)
        found.outputs.push_back(sink->cube);
    return found;
}

/// Returns the scene, followed by bands with the standard deviations of its values.
Cube with_deviations(const Cube& cube, float sigma) {
    Cube both(cube.shape.samples, cube.shape.lines, 2 * cube.shape.bands, sigma);
    std::copy(cube.values.begin(), cube.values.end(), both.values.begin());
    both.at(cube.shape.bands + 1, 4, 5) = -1;
    both.at(cube.shape.bands, 5, 6) = std::numeric_limits<float>::infinity();
    both.at(2 * cube.shape.bands - 1, 6, 7) = 0;
    return both;
}

TEST_F(UnmixCuda, DrawsAreTheProcessorsToTheLastBit) {
    // The classes have 7, 5 and the remaining spectra. With 3 to 30 spectra per draw, a thread uses local
    // memory for 8 or 16 spectra, or device memory.
    for (const int per_class : {1, 2, 4, 10}) {
        const auto e = spectra(30, 61, 17);
        unmix::Classes classes;
        classes.names = {"a", "b", "c"};
        classes.members.resize(3);
        for (int k = 0; k < 30; ++k)
            classes.members[k < 7 ? 0 : k < 12 ? 1 : 2].push_back(k);
        auto cube = mixtures(e, 41, 19, 8);
        spoil(cube);
        for (const Method method : {Method::nnls, Method::scls, Method::fcls})
            for (const auto normalise : {unmix::Normalise::none, unmix::Normalise::unit})
                for (const bool noise : {false, true}) {
                    unmix::DrawOptions options;
                    options.method = method;
                    options.draws = 4;
                    options.per_class = per_class;
                    options.seed = 5;
                    options.normalise = normalise;
                    options.noise = noise;
                    options.deviation = options.rmse = true;
                    options.numbers = {1000, 5000000, 3};
                    const Cube& scene = noise ? with_deviations(cube, 12) : cube;
                    const auto cpu = drawn_from(*unmix::make_draws(e, classes, options), scene),
                               gpu = drawn_from(*backend().make_draws(e, classes, options), scene),
                               cut_up =
                                   drawn_from(*backend().make_draws(e, classes, options), scene, {7, 5, 3});
                    const std::string what = std::to_string(per_class) + " of a class, method " +
                                             std::to_string(static_cast<int>(method)) +
                                             (noise ? ", noise" : "");
                    ASSERT_EQ(gpu.outputs.size(), 3u);
                    for (size_t k = 0; k < 3; ++k) {
                        EXPECT_TRUE(identical(cpu.outputs[k], gpu.outputs[k])) << what << ", output " << k;
                        EXPECT_TRUE(identical(cpu.outputs[k], cut_up.outputs[k])) << what << ", output " << k;
                    }
                    EXPECT_EQ(gpu.valid, cpu.valid);
                    EXPECT_EQ(gpu.invalid, noise ? 5 : 3);
                }
    }
}

TEST_F(UnmixCuda, PureAndHalvedPixelsAreThemselves) {
    const auto e = spectra(4, 50, 11);
    Cube cube(5, 1, 50);
    for (int b = 0; b < 50; ++b) {
        const auto at = static_cast<size_t>(b);
        for (int k = 0; k < 4; ++k)
            cube.at(b, 0, k) = static_cast<float>(e.spectra[static_cast<size_t>(k)][at]);
        cube.at(b, 0, 4) = static_cast<float>(0.5 * (e.spectra[0][at] + e.spectra[1][at]));
    }
    const auto found = on_gpu(e, Method::fcls, cube);
    for (int k = 0; k < 4; ++k)
        for (int i = 0; i < 5; ++i) {
            const double want = i < 4 ? (i == k ? 1 : 0) : (k < 2 ? 0.5 : 0);
            EXPECT_NEAR(found.abundances.at(k, 0, i), want, 1e-5);
        }
}

} // namespace
} // namespace hsi::test
