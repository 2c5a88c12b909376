// SPDX-License-Identifier: MIT
// Compares hsi_cuda_gas.so, in the tile pipeline, with the CPU: values are equal except for rounding, and
// groups are equal.
#include "core/cuda_module.h"
#include "gas/gas.h"
#include "gas/gas_scene.h"
#include "stream/pipeline.h"
#include "support/memory_cube.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace hsi::test {
namespace {

using gas::Method;
using gas::Output;

gas::Backend& backend() {
    static const auto made = make_cuda_backend<gas::Backend>("gas", cuda_devices());
    return *made;
}

struct Found {
    std::vector<Cube> outputs;
    int64_t valid = 0, invalid = 0, in_bad_groups = 0, dark = 0;
    std::vector<gas::GroupRecord> groups;
};

Found filtered(gas::Filter& operation, const Cube& cube, int64_t samples = 0) {
    const MemorySource source(cube);
    std::vector<std::unique_ptr<MemorySink>> sinks;
    std::vector<stream::CubeSink*> all;
    for (const int bands : operation.output_bands()) {
        sinks.push_back(std::make_unique<MemorySink>(cube.shape.samples, cube.shape.lines, bands));
        all.push_back(sinks.back().get());
    }
    stream::PassOptions pass;
    pass.lanes = 2;
    pass.tile_samples = samples > 0 ? samples : cube.shape.samples;
    pass.tile_lines = cube.shape.lines;
    pass.memory = uint64_t{4} << 30;
    stream::run_pass(source, operation, all, pass);
    Found found{{},
                operation.valid(),
                operation.invalid(),
                operation.in_bad_groups(),
                operation.dark(),
                operation.groups()};
    for (const auto& sink : sinks)
        found.outputs.push_back(sink->cube);
    return found;
}

gas::FilterOptions options_of(Method method, int bands) {
    gas::FilterOptions options;
    options.method = method;
    options.absorption = absorption_of(bands);
    options.outputs = {Output::enhancement, Output::uncertainty, Output::sensitivity};
    if (method == Method::mag1c) options.outputs.push_back(Output::albedo);
    options.keep = true;
    for (int b = 0; b < bands; ++b)
        options.noise.push_back({0.002 + 1e-5 * b, 0.1, 0.001});
    options.radiance_scale = 0.1;
    return options;
}

/// Returns scene_with_plume() with unusual groups: constant bands, too few pixels, no valid pixels, or a dark
/// pixel.
Cube odd_scene(int64_t samples, int64_t lines, int bands) {
    Cube cube = scene_with_plume(samples, lines, bands);
    const float nan = std::numeric_limits<float>::quiet_NaN();
    for (int64_t y = 0; y < lines; ++y) {
        cube.at(1, y, 0) = 0.5F; // a band that is constant in groups of one column
        if (y > bands / 2) cube.at(0, y, 5) = nan;
        cube.at(bands - 1, y, 6) = nan;
    }
    for (int b = 0; b < bands; ++b)
        cube.at(b, 20, 9) = -0.01F * cube.at(b, 21, 9);
    cube.at(0, 22, 10) = 0;
    cube.at(2, 23, 11) = std::numeric_limits<float>::infinity();
    return cube;
}

/// Returns the greatest difference, relative to its tolerance; infinite if only one of two values is NaN.
double apart(const Cube& a, const Cube& b, const std::vector<double>& absolute) {
    double most = 0;
    const size_t plane = a.values.size() / absolute.size();
    for (size_t i = 0; i < a.values.size(); ++i) {
        const double x = a.values[i], y = b.values[i];
        if (std::isnan(x) && std::isnan(y)) continue;
        if (std::isnan(x) != std::isnan(y)) return std::numeric_limits<double>::infinity();
        most = std::max(most, std::fabs(x - y) / (absolute[i / plane] + 1e-4 * std::fabs(x)));
    }
    return most;
}

class GasCuda : public testing::Test {
  protected:
    void SetUp() override {
        if (cuda_devices().empty()) GTEST_SKIP() << "NO GPU HERE: nothing of hsi_cuda_gas.so was tested";
    }

    static void expect_processors(const Cube& cube, const stream::Columns& columns,
                                  const gas::FilterOptions& options, const stream::PixelMask* mask,
                                  int64_t tile, const std::string& what) {
        const auto first = gas::make_filter(cube.shape, columns, options, mask),
                   second = backend().make_filter(cube.shape, columns, options, mask);
        const auto cpu = filtered(*first, cube), gpu = filtered(*second, cube, tile);
        std::vector<double> absolute{0.01};
        for (size_t k = 1; k < options.outputs.size(); ++k)
            absolute.push_back(k == 1 ? 0.01 : 1e-6);
        const double far = apart(cpu.outputs[0], gpu.outputs[0], absolute);
        EXPECT_LE(far, 1) << what;
        EXPECT_LE(apart(cpu.outputs[1], gpu.outputs[1], {0.01, 0.01}), 1) << what;
        EXPECT_EQ(cpu.valid, gpu.valid) << what;
        EXPECT_EQ(cpu.invalid, gpu.invalid) << what;
        EXPECT_EQ(cpu.in_bad_groups, gpu.in_bad_groups) << what;
        EXPECT_EQ(cpu.dark, gpu.dark) << what;
        ASSERT_EQ(cpu.groups.size(), gpu.groups.size()) << what;
        for (size_t g = 0; g < cpu.groups.size(); ++g) {
            EXPECT_EQ(static_cast<int>(cpu.groups[g].state), static_cast<int>(gpu.groups[g].state))
                << what << ", group " << g;
            EXPECT_EQ(cpu.groups[g].pixels, gpu.groups[g].pixels) << what << ", group " << g;
            EXPECT_NEAR(cpu.groups[g].shrinkage, gpu.groups[g].shrinkage, 1e-9) << what << ", group " << g;
        }
        s_furthest = std::max(s_furthest, far);
    }
    static void TearDownTestSuite() {
        std::cout << "values differ by " << s_furthest << " of the tolerance at most\n";
    }

  private:
    static double s_furthest;
};
double GasCuda::s_furthest = 0;

TEST_F(GasCuda, ValuesAreTheProcessors) {
    constexpr int bands = 11;
    const Cube cube = odd_scene(47, 70, bands);
    stream::PixelMask mask(47, 70);
    mask.invert();
    for (int64_t y = 30; y < 36; ++y)
        for (int64_t x = 3; x < 44; ++x)
            mask.clear(y, x);
    for (const Method method : {Method::mag1c, Method::mf, Method::lognormal})
        for (const int64_t width : {1, 4, 47})
            for (const bool masked : {false, true})
                for (const bool shrinks : {false, true}) {
                    auto options = options_of(method, bands);
                    options.ledoit_wolf = shrinks && method != Method::mag1c;
                    if (shrinks && method == Method::mag1c) options.shrinkage = 0.01;
                    // The first group begins before the scene, and the last group is narrow.
                    expect_processors(
                        cube, {3, width}, options, masked ? &mask : nullptr, width == 4 ? 12 : 0,
                        "method " + std::to_string(static_cast<int>(method)) + ", " + std::to_string(width) +
                            " columns" + (masked ? ", masked" : "") + (shrinks ? ", shrunk" : ""));
                }
}

TEST_F(GasCuda, OptionsOfMag1cAreTheProcessors) {
    constexpr int bands = 9;
    const Cube cube = odd_scene(12, 90, bands);
    for (const bool albedo : {false, true})
        for (const bool sparsity : {false, true})
            for (const int iterations : {0, 1, 7}) {
                auto options = options_of(Method::mag1c, bands);
                options.albedo = albedo;
                options.sparsity = sparsity;
                options.iterations = iterations;
                expect_processors(cube, {0, 5}, options, nullptr, 0,
                                  std::to_string(albedo) + std::to_string(sparsity) + ", " +
                                      std::to_string(iterations) + " iterations");
            }
}

TEST_F(GasCuda, ManyPixelsAndBandsAreTheProcessors) {
    // With many pixels, sums and products have several parts. With many bands, a matrix exceeds the shared
    // memory.
    expect_processors(scene_with_plume(600, 500, 6), {0, 600}, options_of(Method::mag1c, 6), nullptr, 0,
                      "many pixels");
    expect_processors(scene_with_plume(2, 500, 240), {0, 1}, options_of(Method::mag1c, 240), nullptr, 0,
                      "many bands");
    expect_processors(scene_with_plume(2, 1500, 1030), {0, 1}, options_of(Method::mf, 1030), nullptr, 0,
                      "more bands than a device takes");
}

TEST_F(GasCuda, TilesChangeNoBit) {
    const Cube cube = odd_scene(48, 300, 8);
    const auto options = options_of(Method::mag1c, 8);
    const auto whole = filtered(*backend().make_filter(cube.shape, {1, 3}, options, nullptr), cube);
    for (const int64_t samples : {3, 6, 24}) {
        const auto cut =
            filtered(*backend().make_filter(cube.shape, {1, 3}, options, nullptr), cube, samples);
        EXPECT_TRUE(identical(whole.outputs[0], cut.outputs[0])) << samples;
        EXPECT_TRUE(identical(whole.outputs[1], cut.outputs[1])) << samples;
    }
}

} // namespace
} // namespace hsi::test
