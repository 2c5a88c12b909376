// SPDX-License-Identifier: MIT
// Compares hsi_cuda_cluster.so with the CPU: labels, number of iterations, centres and inertia have equal
// bits.
#include "cluster/cluster.h"
#include "cluster/device_scene.h"
#include "core/cuda_module.h"
#include "stream/empty_source.h"
#include "stream/pipeline.h"
#include "support/memory_cube.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <vector>

namespace hsi::test {
namespace {

using cluster::Distance;

cluster::Backend& backend() {
    static const auto made = make_cuda_backend<cluster::Backend>("cluster", cuda_devices());
    return *made;
}

struct Outcome {
    int64_t valid = 0, invalid = 0;
    cluster::Result result;
    Cube labels;
};

Outcome clustered(const Cube& cube, int k, cluster::Options options, bool on_device, int64_t tile = 0,
                  const std::vector<std::vector<double>>& start = {}) {
    const MemorySource source(cube);
    options.numbers.width = cube.shape.samples;
    const auto make_pass = [&](const std::string& name) {
        stream::PassOptions p;
        p.name = name;
        p.lanes = 3;
        p.tile_samples = tile;
        p.tile_lines = tile;
        p.memory = uint64_t{1} << 30;
        return p;
    };
    auto device = on_device ? backend().make_scene(cube.shape, options, k, 0) : nullptr;
    EXPECT_EQ(device != nullptr, on_device);
    cluster::Clustering clustering(source, options, make_pass, std::move(device));
    Outcome out;
    out.valid = clustering.read();
    out.invalid = clustering.invalid();
    cluster::Centres centres;
    if (start.empty()) {
        centres = clustering.start(k);
    } else {
        centres.count = static_cast<int>(start.size());
        centres.bands = cube.shape.bands;
        for (const auto& x : start)
            centres.values.insert(centres.values.end(), x.begin(), x.end());
    }
    out.result = clustering.refine(std::move(centres));
    MemorySink sink(cube.shape.samples, cube.shape.lines, 1);
    const auto labels = clustering.labels();
    stream::run_pass(stream::EmptySource(cube.shape), *labels, {&sink}, make_pass("labels"));
    out.labels = sink.cube;
    return out;
}

void expect_same(const Outcome& cpu, const Outcome& gpu, const std::string& what) {
    EXPECT_TRUE(identical(cpu.labels, gpu.labels)) << what;
    EXPECT_EQ(cpu.valid, gpu.valid) << what;
    EXPECT_EQ(cpu.invalid, gpu.invalid) << what;
    EXPECT_EQ(cpu.result.iterations, gpu.result.iterations) << what;
    EXPECT_EQ(cpu.result.converged, gpu.result.converged) << what;
    EXPECT_EQ(cpu.result.relocated, gpu.result.relocated) << what;
    EXPECT_EQ(cpu.result.pixels, gpu.result.pixels) << what;
    EXPECT_EQ(cpu.result.inertia, gpu.result.inertia) << what;
    EXPECT_EQ(cpu.result.length, gpu.result.length) << what;
    EXPECT_EQ(cpu.result.centres.values, gpu.result.centres.values) << what;
}

class ClusterCuda : public testing::Test {
  protected:
    void SetUp() override {
        if (cuda_devices().empty()) GTEST_SKIP() << "NO GPU HERE: nothing of hsi_cuda_cluster.so was tested";
    }
};

TEST_F(ClusterCuda, LabelsSumsAndCentresAreTheProcessors) {
    auto cube = random_scene(83, 57, 31, 3, 0.05, 3000);
    make_invalid(cube, 5, 7, 3);
    make_invalid(cube, 9, 1, 0, std::numeric_limits<float>::infinity());
    for (int b = 0; b < 31; ++b)
        cube.at(b, 20, 20) = 0;
    for (const Distance distance : {Distance::euclidean, Distance::angle})
        for (const int k : {2, 8, 11, 40}) {
            cluster::Options options;
            options.distance = distance;
            options.seed = 4;
            options.iterations = 30;
            const std::string what =
                std::to_string(k) + " clusters" + (distance == Distance::angle ? ", angle" : "");
            const auto cpu = clustered(cube, k, options, false);
            expect_same(cpu, clustered(cube, k, options, true), what);
            expect_same(cpu, clustered(cube, k, options, true, 16), what + ", tiles");
        }
}

TEST_F(ClusterCuda, FewIterationsEndWithOneMoreAssignment) {
    const auto cube = random_scene(60, 40, 9, 6, 0.2);
    cluster::Options options;
    options.iterations = 2;
    const auto cpu = clustered(cube, 7, options, false);
    EXPECT_FALSE(cpu.result.converged);
    expect_same(cpu, clustered(cube, 7, options, true), "2 iterations");
}

/// Uses values of very different magnitudes and both signs, so that all digits of the exact sums occur.
TEST_F(ClusterCuda, SumsOfLargeAndTinyValuesAreExact) {
    auto cube = random_scene(50, 30, 6, 8, 0.3);
    for (int64_t y = 0; y < 30; ++y)
        for (int64_t x = 0; x < 50; ++x) {
            cube.at(1, y, x) *= 1e-30f;
            cube.at(2, y, x) *= -1e12f;
            cube.at(3, y, x) = x % 2 == 0 ? 1e-42f : -1e-20f; // 1e-42 is a denormal number
            cube.at(4, y, x) = static_cast<float>(x - 25) * 1e9f;
        }
    cluster::Options options;
    expect_same(clustered(cube, 5, options, false), clustered(cube, 5, options, true), "sizes");
}

TEST_F(ClusterCuda, EmptyClustersTakeTheSamePixels) {
    const auto cube = random_scene(40, 30, 5, 2, 0.1);
    std::vector<std::vector<double>> start;
    for (int k = 0; k < 6; ++k) // three of the six centres get no pixels
        start.emplace_back(5, k < 3 ? 0.3 + 0.3 * k : 1000.0 + k);
    for (const Distance distance : {Distance::euclidean, Distance::angle}) {
        auto centres = start;
        if (distance == Distance::angle)
            for (size_t k = 0; k < centres.size(); ++k) {
                centres[k] = {0, 0, 0, 0, 0};
                centres[k][k % 5] = k < 5 ? 1 : -1;
            }
        cluster::Options options;
        options.distance = distance;
        options.iterations = 20;
        const auto cpu = clustered(cube, 6, options, false, 0, centres);
        EXPECT_GT(cpu.result.relocated, 0);
        expect_same(cpu, clustered(cube, 6, options, true, 0, centres), "empty clusters");
    }
}

TEST_F(ClusterCuda, WhatDoesNotFitIsNotMade) {
    EXPECT_EQ(backend().make_scene({1000, 1000, 100}, {}, 5, uint64_t{100} << 20), nullptr);
}

} // namespace
} // namespace hsi::test
