// SPDX-License-Identifier: MIT
// Fits of features, tuned filters and columns of hsi_cuda_detect.so through the tile pipeline: the
// processor's scores to rounding, and its maps.
#include "core/cuda_module.h"
#include "detect/feature_fit.h"
#include "detect/groups.h"
#include "detect/tuned_filter.h"
#include "stream/pipeline.h"
#include "support/memory_cube.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace hsi::test {
namespace {

detect::Backend& backend() {
    static const auto made = make_cuda_backend<detect::Backend>("detect", cuda_devices());
    return *made;
}

struct Found {
    std::vector<Cube> outputs;
    int64_t valid = 0, invalid = 0;
};

template <class Operation>
Found run_in(Operation& operation, const Cube& cube, int lanes, int64_t samples, int64_t lines) {
    const MemorySource source(cube);
    std::vector<std::unique_ptr<MemorySink>> sinks;
    std::vector<stream::CubeSink*> all;
    for (const int bands : operation.output_bands()) {
        sinks.push_back(std::make_unique<MemorySink>(cube.shape.samples, cube.shape.lines, bands));
        all.push_back(sinks.back().get());
    }
    stream::PassOptions pass;
    pass.lanes = lanes;
    pass.tile_samples = samples;
    pass.tile_lines = lines;
    pass.memory = uint64_t{4} << 30;
    stream::run_pass(source, operation, all, pass);
    Found found{{}, operation.valid(), operation.invalid()};
    for (const auto& sink : sinks)
        found.outputs.push_back(sink->cube);
    return found;
}

Found run(detect::Detection& operation, const Cube& cube, int64_t tile = 0) {
    return run_in(operation, cube, 3, tile, tile);
}

/// Tiles of so many samples have all lines.
Found run_columns(detect::GroupedDetection& operation, const Cube& cube, int64_t samples) {
    return run_in(operation, cube, 2, samples > 0 ? samples : cube.shape.samples, cube.shape.lines);
}

/// The greatest difference, relative to 1 and the value; infinite where only one of both is a number.
double apart(const Cube& a, const Cube& b) {
    double most = 0;
    for (size_t i = 0; i < a.values.size(); ++i) {
        const double x = a.values[i], y = b.values[i];
        if (std::isnan(x) && std::isnan(y)) continue;
        if (std::isnan(x) != std::isnan(y)) return std::numeric_limits<double>::infinity();
        most = std::max(most, std::fabs(x - y) / (1 + std::fabs(x)));
    }
    return most;
}

int64_t different(const Cube& a, const Cube& b) {
    int64_t count = 0;
    for (size_t i = 0; i < a.values.size(); ++i)
        count += !(a.values[i] == b.values[i] || (std::isnan(a.values[i]) && std::isnan(b.values[i])));
    return count;
}

Cube scene_of(int bands) {
    auto cube = random_scene(67, 41, bands, 5, 0.03, 1000);
    for (int b = 0; b < bands; ++b) {
        cube.at(b, 1, 1) = 1;
        cube.at(b, 2, 2) = 0;
    }
    cube.at(0, 3, 3) = -1;
    cube.at(bands - 1, 3, 4) = 0;
    cube.at(bands / 2, 3, 5) = std::numeric_limits<float>::quiet_NaN();
    return cube;
}

class DetectSpectraCuda : public testing::Test {
  protected:
    void SetUp() override {
        if (cuda_devices().empty()) GTEST_SKIP() << "NO GPU HERE: nothing of hsi_cuda_detect.so was tested";
    }
};

detect::FitTask fit_task(int bands, int targets, const std::vector<std::pair<size_t, size_t>>& ranges) {
    std::mt19937 random(9);
    std::uniform_real_distribution<double> uniform(0, 1);
    detect::FitTask task;
    task.inputs = bands;
    for (const auto& [first, count] : ranges) {
        detect::FitRange range;
        for (size_t i = 0; i < count; ++i) {
            range.bands.push_back(first + i);
            range.x.push_back(400 + 9.1 * static_cast<double>(first + i));
        }
        task.ranges.push_back(std::move(range));
    }
    for (int k = 0; k < targets; ++k) {
        detect::FitTarget target;
        target.name = "t" + std::to_string(k + 1);
        for (size_t r = 0; r < task.ranges.size(); ++r) {
            if (r > 0 && k % 3 == 1) continue;
            std::vector<double> spectrum;
            const auto n = static_cast<double>(task.ranges[r].x.size());
            const double centre = n * (0.3 + 0.4 * uniform(random)),
                         width = n * (0.05 + 0.2 * uniform(random));
            for (double i = 0; i < n; ++i)
                spectrum.push_back(1 - 0.4 * std::exp(-(i - centre) * (i - centre) / (2 * width * width)));
            auto feature = detect::feature_to_fit(task.ranges[r], spectrum, "t");
            feature.range = r;
            if (k % 4 == 2) feature.least_fit = 0.2;
            if (k % 4 == 3) feature.least_depth = 0.01;
            target.features.push_back(std::move(feature));
        }
        task.targets.push_back(std::move(target));
    }
    return task;
}

TEST_F(DetectSpectraCuda, FitsOfFeaturesAreTheProcessors) {
    const auto cube = scene_of(80);
    for (const auto score : {detect::FitScore::fit, detect::FitScore::depth, detect::FitScore::fd})
        for (const int targets : {1, 7, 21})
            for (const bool depths : {false, true}) {
                auto task = fit_task(80, targets, {{0, 30}, {20, 40}, {61, 19}});
                task.score = score;
                task.depths = depths;
                for (const detect::Decision& decision :
                     {detect::Decision{false, {}}, detect::Decision{true, {}},
                      detect::Decision{true, 0.05}}) {
                    const auto first = detect::make_feature_fit(task, decision);
                    const auto cpu = run(*first, cube);
                    for (const int64_t tile : {0, 16}) {
                        const auto second = backend().make_feature_fit(task, decision);
                        const auto gpu = run(*second, cube, tile);
                        ASSERT_EQ(cpu.outputs.size(), gpu.outputs.size());
                        EXPECT_LT(apart(cpu.outputs.front(), gpu.outputs.front()), 2e-7);
                        if (depths) {
                            EXPECT_LT(apart(cpu.outputs.back(), gpu.outputs.back()), 2e-7);
                        }
                        if (decision.map) {
                            EXPECT_EQ(different(cpu.outputs[1], gpu.outputs[1]), 0);
                        }
                        EXPECT_EQ(cpu.valid, gpu.valid);
                        EXPECT_EQ(cpu.invalid, gpu.invalid);
                        EXPECT_EQ(first->without_continuum(), second->without_continuum());
                    }
                    EXPECT_GT(first->without_continuum(), 0);
                }
            }
}

TEST_F(DetectSpectraCuda, LongRangesAreFittedAlike) {
    const auto cube = scene_of(600);
    const auto task = fit_task(600, 5, {{0, 600}});
    const auto cpu = run(*detect::make_feature_fit(task, {}), cube),
               gpu = run(*backend().make_feature_fit(task, {}), cube);
    EXPECT_LT(apart(cpu.outputs[0], gpu.outputs[0]), 2e-7);
}

TEST_F(DetectSpectraCuda, TunedFiltersAreTheProcessors) {
    constexpr int bands = 60;
    const auto cube = scene_of(bands);
    std::mt19937 random(3);
    std::normal_distribution<double> normal;
    for (const int components : {1, 8, 20})
        for (const size_t targets : {size_t{1}, size_t{5}}) {
            detect::TunedTask task;
            task.bands = bands;
            for (int b = 0; b < bands; ++b)
                if (b % 7 != 3) {
                    task.used.push_back(b);
                    task.mean.push_back(500 + 3 * b);
                }
            for (int k = 0; k < components; ++k) {
                for (size_t r = 0; r < task.used.size(); ++r)
                    task.loadings.push_back(normal(random) / 100);
                task.eigenvalues.push_back(30.0 / (k + 1) + 0.5);
            }
            for (size_t k = 0; k < targets; ++k) {
                task.targets.names.push_back("t" + std::to_string(k + 1));
                task.targets.spectra.emplace_back();
                for (int b = 0; b < bands; ++b)
                    task.targets.spectra.back().push_back(700 + 200 * normal(random));
            }
            for (const bool limited : {false, true}) {
                if (limited) task.most_infeasible = 2.5;
                for (const detect::Decision& decision :
                     {detect::Decision{false, {}}, detect::Decision{true, {}}, detect::Decision{true, 0.1}}) {
                    const auto cpu = run(*detect::make_tuned_filter(task, decision), cube);
                    for (const int64_t tile : {0, 16}) {
                        const auto gpu = run(*backend().make_tuned_filter(task, decision), cube, tile);
                        EXPECT_LT(apart(cpu.outputs[0], gpu.outputs[0]), 2e-7);
                        if (decision.map) {
                            EXPECT_EQ(different(cpu.outputs[1], gpu.outputs[1]), 0);
                        }
                        EXPECT_EQ(cpu.valid, gpu.valid);
                        EXPECT_EQ(cpu.invalid, gpu.invalid);
                    }
                }
            }
        }
}

/// The scene whose columns differ, with pixels that are invalid.
Cube striped_scene(int64_t samples, int64_t lines, int bands) {
    auto cube = random_scene(samples, lines, bands, 12, 0.05, 500);
    for (int64_t x = 0; x < samples; ++x)
        for (int b = 0; b < bands; ++b) {
            const float gain = 1 + 0.05f * static_cast<float>((x * 7 + b * 3) % 11);
            for (int64_t y = 0; y < lines; ++y)
                cube.at(b, y, x) = cube.at(b, y, x) * gain + static_cast<float>(x % 5);
        }
    for (int64_t y = 0; y < lines; ++y) {
        cube.at(0, y, 3) = std::numeric_limits<float>::quiet_NaN(); // a column without a pixel
        cube.at(2, y, 6) = 7;                                       // one with a constant band
        if (y > 0)
            for (int b = 0; b < bands; ++b)
                cube.at(b, y, 8) = 0; // one with a single pixel
    }
    cube.at(bands / 2, 4, 5) = std::numeric_limits<float>::infinity();
    return cube;
}

TEST_F(DetectSpectraCuda, ColumnsAreTheProcessors) {
    constexpr int bands = 43;
    const auto cube = striped_scene(37, 90, bands);
    detect::PixelMask mask(37, 90);
    for (int64_t y = 0; y < 90; ++y)
        for (int64_t x = 0; x < 37; ++x)
            if ((x + 2 * y) % 5 != 0) mask.set(y, x);
    std::mt19937 random(4);
    std::normal_distribution<double> normal;
    for (const size_t targets : {size_t{1}, size_t{3}})
        for (const int64_t width : {1, 4, 37})
            for (const bool ledoit : {true, false})
                for (const bool masked : {false, true}) {
                    detect::GroupOptions options;
                    options.method = detect::Method::mf;
                    options.ledoit_wolf = ledoit;
                    options.conditioning.by_bands = true;
                    options.conditioning.shrinkage = ledoit ? 0 : 0.1;
                    options.targets.absorption = !ledoit;
                    for (size_t k = 0; k < targets; ++k) {
                        options.targets.names.push_back("t" + std::to_string(k + 1));
                        options.targets.spectra.emplace_back();
                        for (int b = 0; b < bands; ++b)
                            options.targets.spectra.back().push_back(
                                ledoit ? 600 + 100 * normal(random) : -0.1 * std::fabs(normal(random)));
                    }
                    const detect::Columns columns{3, width};
                    const detect::Decision decision{targets > 1, 0.2};
                    const detect::PixelMask* const counting = masked ? &mask : nullptr;
                    const auto first =
                        detect::make_column_detection(cube.shape, columns, options, decision, counting);
                    const auto cpu = run_columns(*first, cube, 0);
                    for (const int64_t tile : {0, 8}) {
                        const auto second =
                            backend().make_column_detection(cube.shape, columns, options, decision, counting);
                        const auto gpu = run_columns(*second, cube, tile);
                        const std::string what = std::to_string(width) + " wide, " + std::to_string(targets) +
                                                 " targets, tile " + std::to_string(tile) +
                                                 (masked ? ", masked" : "") + (ledoit ? "" : ", 0.1");
                        EXPECT_LT(apart(cpu.outputs[0], gpu.outputs[0]), 1e-6) << what;
                        if (decision.map) {
                            EXPECT_LE(different(cpu.outputs[1], gpu.outputs[1]), 2) << what;
                        }
                        EXPECT_EQ(cpu.valid, gpu.valid) << what;
                        EXPECT_EQ(cpu.invalid, gpu.invalid) << what;
                        EXPECT_EQ(first->in_bad_groups(), second->in_bad_groups()) << what;
                        const auto a = first->groups(), b = second->groups();
                        ASSERT_EQ(a.size(), b.size());
                        for (size_t g = 0; g < a.size(); ++g) {
                            EXPECT_EQ(a[g].state, b[g].state) << what << ", group " << g;
                            EXPECT_EQ(a[g].pixels, b[g].pixels) << what << ", group " << g;
                            EXPECT_NEAR(a[g].shrinkage, b[g].shrinkage, 1e-9) << what << ", group " << g;
                        }
                    }
                }
}

/// More bands than a panel of the factor holds, and fewer pixels than bands.
TEST_F(DetectSpectraCuda, ColumnsOfManyBandsAreTheProcessors) {
    for (const int bands : {31, 32, 33, 150}) {
        const auto cube = striped_scene(11, 70, bands);
        detect::GroupOptions options;
        options.method = detect::Method::mf;
        options.ledoit_wolf = true;
        options.conditioning.by_bands = true;
        options.targets.names = {"t"};
        options.targets.spectra.emplace_back();
        for (int b = 0; b < bands; ++b)
            options.targets.spectra.back().push_back(500 + 40 * std::sin(b));
        const auto cpu =
            run_columns(*detect::make_column_detection(cube.shape, {0, 1}, options, {}, nullptr), cube, 0);
        const auto gpu =
            run_columns(*backend().make_column_detection(cube.shape, {0, 1}, options, {}, nullptr), cube, 0);
        EXPECT_LT(apart(cpu.outputs[0], gpu.outputs[0]), 1e-6) << bands;
    }
}

} // namespace
} // namespace hsi::test
