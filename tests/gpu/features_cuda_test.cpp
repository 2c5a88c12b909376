// SPDX-License-Identifier: MIT
// Compares hsi_cuda_features.so, in the tile pipeline, with the CPU: ratios and features have equal bits.
#include "core/cuda_module.h"
#include "features/features.h"
#include "stream/pipeline.h"
#include "support/memory_cube.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace hsi::test {
namespace {

using features::Output;
using features::Range;

features::Backend& backend() {
    static const auto made = make_cuda_backend<features::Backend>("features", cuda_devices());
    return *made;
}

struct Found {
    Cube out;
    int64_t valid = 0, invalid = 0, open = 0;
};

Found measured(features::Features& operation, const Cube& cube, int64_t tile = 0) {
    const MemorySource source(cube);
    MemorySink sink(cube.shape.samples, cube.shape.lines, operation.output_bands().front());
    stream::PassOptions pass;
    pass.lanes = 3;
    pass.tile_samples = pass.tile_lines = tile;
    pass.memory = uint64_t{4} << 30;
    stream::run_pass(source, operation, {&sink}, pass);
    return {sink.cube, operation.valid(), operation.invalid(), operation.without_continuum()};
}

/// Returns a range of `count` bands from band `first` on, with uneven wavelengths.
Range range_of(size_t first, size_t count) {
    Range range;
    for (size_t i = 0; i < count; ++i) {
        range.bands.push_back(first + i);
        range.x.push_back(400 + 7.3 * static_cast<double>(first + i) + (i % 3 == 1 ? 0.5 : 0));
    }
    return range;
}

/// Returns spectra with features, noise and straight parts. Some pixels are invalid or have no continuum.
Cube spectra_scene(int bands) {
    auto cube = random_scene(67, 41, bands, 5, 0.03, 1000);
    for (int b = 0; b < bands; ++b) {
        cube.at(b, 1, 1) = 1;                                       // flat spectrum
        cube.at(b, 1, 2) = static_cast<float>(3 + b);               // straight line
        cube.at(b, 1, 3) = 2 - static_cast<float>(b % 2);           // alternating steps
        cube.at(b, 2, 2) = 0;                                       // invalid pixel
        cube.at(b, 2, 3) = b == 0 || b == bands - 1 ? 5.0f : -2.0f; // negative values except at the ends
    }
    cube.at(0, 3, 3) = -1;
    cube.at(bands - 1, 3, 4) = 0;
    cube.at(bands / 2, 3, 5) = std::numeric_limits<float>::quiet_NaN();
    return cube;
}

class FeaturesCuda : public testing::Test {
  protected:
    void SetUp() override {
        if (cuda_devices().empty()) GTEST_SKIP() << "NO GPU HERE: nothing of hsi_cuda_features.so was tested";
    }
    static void compare(const Cube& cube, const std::vector<Range>& ranges, Output output,
                        const std::string& what) {
        const int bands = cube.shape.bands;
        const auto cpu = measured(*features::make_features(bands, ranges, output), cube);
        for (const int64_t tile : {0, 16}) {
            const auto gpu = measured(*backend().make_features(bands, ranges, output), cube, tile);
            EXPECT_TRUE(identical(cpu.out, gpu.out)) << what << ", tile " << tile;
            EXPECT_EQ(cpu.valid, gpu.valid) << what;
            EXPECT_EQ(cpu.invalid, gpu.invalid) << what;
            EXPECT_EQ(cpu.open, gpu.open) << what;
        }
        EXPECT_GT(cpu.open, 0) << what;
    }
};

TEST_F(FeaturesCuda, RatiosAndMeasuresAreTheProcessors) {
    for (const int bands : {3, 30, 224}) {
        const auto cube = spectra_scene(bands);
        const auto n = static_cast<size_t>(bands);
        const std::string what = std::to_string(bands) + " bands";
        compare(cube, {range_of(0, n)}, Output::removed, what + ", removed");
        compare(cube, {range_of(0, n)}, Output::features, what + ", features");
        if (bands < 10) continue;
        compare(cube, {range_of(0, n / 2), range_of(n / 2, n - n / 2)}, Output::removed,
                what + ", two, removed");
        compare(cube, {range_of(0, 5), range_of(3, n / 2), range_of(n - 4, 4)}, Output::features,
                what + ", three, features");
    }
}

TEST_F(FeaturesCuda, HullsThatAThreadDoesNotHoldAreTheSame) {
    const auto cube = spectra_scene(700);
    compare(cube, {range_of(0, 700)}, Output::removed, "removed");
    compare(cube, {range_of(0, 700)}, Output::features, "features");
}

} // namespace
} // namespace hsi::test
