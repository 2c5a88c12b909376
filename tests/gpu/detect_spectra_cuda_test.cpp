// SPDX-License-Identifier: MIT
// Compares hsi_cuda_detect_fit.so, hsi_cuda_detect_tuned.so and hsi_cuda_detect_groups.so, in the tile
// pipeline, with the CPU. Scores are equal except for rounding, and maps are equal.
#include "core/cuda_module.h"
#include "detect/fit/fit.h"
#include "detect/groups/groups.h"
#include "detect/tuned/tuned.h"
#include "stream/pipeline.h"
#include "support/memory_cube.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace hsi::test {
namespace {

template <class Backend>
Backend& backend(const char* module) {
    static const auto made = make_cuda_backend<Backend>(module, cuda_devices());
    return *made;
}

detect::GroupBackend& groups() { return backend<detect::GroupBackend>("detect_groups"); }

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

/// Runs the operation in tiles of `samples` samples and all lines.
Found run_columns(detect::GroupedDetection& operation, const Cube& cube, int64_t samples) {
    return run_in(operation, cube, 2, samples > 0 ? samples : cube.shape.samples, cube.shape.lines);
}

/// Returns the greatest difference of two values, relative to the larger of 1 and the value; infinite if only
/// one of two values is NaN.
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
        if (cuda_devices().empty()) GTEST_SKIP() << "NO GPU HERE: nothing of hsi_cuda_detect_*.so was tested";
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
                        const auto second =
                            backend<detect::FitBackend>("detect_fit").make_feature_fit(task, decision);
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
               gpu = run(*backend<detect::FitBackend>("detect_fit").make_feature_fit(task, {}), cube);
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
                        const auto gpu = run(
                            *backend<detect::TunedBackend>("detect_tuned").make_tuned_filter(task, decision),
                            cube, tile);
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

/// Returns a scene whose columns differ. Some pixels are invalid.
Cube striped_scene(int64_t samples, int64_t lines, int bands) {
    auto cube = random_scene(samples, lines, bands, 12, 0.05, 500);
    for (int64_t x = 0; x < samples; ++x)
        for (int b = 0; b < bands; ++b) {
            const float gain = 1 + 0.05f * static_cast<float>((x * 7 + b * 3) % 11);
            for (int64_t y = 0; y < lines; ++y)
                cube.at(b, y, x) = cube.at(b, y, x) * gain + static_cast<float>(x % 5);
        }
    for (int64_t y = 0; y < lines; ++y) {
        // Columns without valid pixels, with a constant band, and with a single valid pixel.
        cube.at(0, y, 3) = std::numeric_limits<float>::quiet_NaN();
        cube.at(2, y, 6) = 7;
        if (y > 0)
            for (int b = 0; b < bands; ++b)
                cube.at(b, y, 8) = 0;
    }
    cube.at(bands / 2, 4, 5) = std::numeric_limits<float>::infinity();
    return cube;
}

/// Returns options of groups. The targets differ from all spectra of the scene.
detect::GroupOptions group_options(detect::Method method, int bands, size_t targets, double shrinkage) {
    std::mt19937 random(4);
    std::normal_distribution<double> normal;
    detect::GroupOptions options;
    options.method = method;
    options.ledoit_wolf = shrinkage < 0;
    options.conditioning.by_bands = true;
    options.conditioning.shrinkage = std::max(shrinkage, 0.0);
    for (size_t k = 0; k < targets && detect::has_target(method); ++k) {
        options.targets.names.push_back("t" + std::to_string(k + 1));
        options.targets.spectra.emplace_back();
        for (int b = 0; b < bands; ++b)
            options.targets.spectra.back().push_back(600 + 100 * normal(random));
    }
    return options;
}

void make_absorptions(detect::GroupOptions& options) {
    options.targets.absorption = true;
    for (auto& spectrum : options.targets.spectra)
        for (double& v : spectrum)
            v = -1e-3 * std::fabs(v - 600);
}

detect::PixelMask mask_of(int64_t samples, int64_t lines) {
    detect::PixelMask mask(samples, lines);
    for (int64_t y = 0; y < lines; ++y)
        for (int64_t x = 0; x < samples; ++x)
            if ((x + 2 * y) % 5 != 0) mask.set(y, x);
    return mask;
}

std::string told(const detect::GroupOptions& o, const std::string& more) {
    return std::string(detect::name_of(o.method)) + (o.ledoit_wolf ? ", ledoit-wolf" : ", share ") +
           (o.ledoit_wolf ? "" : std::to_string(o.conditioning.shrinkage)) +
           (o.exclude_share > 0 ? ", some excluded" : "") + more;
}

/// Returns the tolerance of scores, relative to the larger of 1 and the value (for rx: relative to the
/// value).
double tolerance_of(const detect::GroupOptions& o) { return o.exclude_share > 0 ? 1e-3 : 1e-5; }

void expect_equal(const std::vector<detect::GroupRecord>& a, const std::vector<detect::GroupRecord>& b,
                  const std::string& what) {
    ASSERT_EQ(a.size(), b.size()) << what;
    for (size_t g = 0; g < a.size(); ++g) {
        const std::string where = what + ", group " + std::to_string(g);
        EXPECT_EQ(a[g].state, b[g].state) << where;
        EXPECT_EQ(a[g].pixels, b[g].pixels) << where;
        EXPECT_EQ(a[g].excluded, b[g].excluded) << where;
        EXPECT_EQ(a[g].regularised, b[g].regularised) << where;
        EXPECT_NEAR(a[g].shrinkage, b[g].shrinkage, a[g].excluded > 0 ? 1e-4 : 1e-9) << where;
    }
}

TEST_F(DetectSpectraCuda, ColumnsAreTheProcessors) {
    constexpr int bands = 43;
    const auto cube = striped_scene(37, 90, bands);
    const auto mask = mask_of(37, 90);
    double furthest = 0, furthest_excluded = 0;
    for (const auto method :
         {detect::Method::mf, detect::Method::cem, detect::Method::ace, detect::Method::rx})
        for (const size_t targets : {size_t{1}, size_t{3}})
            for (const int64_t width : {1, 4, 37})
                for (const double shrinkage : {-1.0, 0.1, 0.0})
                    // Variants: 0: all pixels; 1: pixels of a mask; 2: pixels of a mask, with exclusion.
                    for (const int variant : {0, 1, 2}) {
                        auto options = group_options(method, bands, targets, shrinkage);
                        if (variant == 2) {
                            options.exclude_share = 0.04;
                            options.exclude_iterations = static_cast<int>(targets);
                        }
                        if (shrinkage > 0 && (method == detect::Method::mf || method == detect::Method::ace))
                            make_absorptions(options);
                        const detect::Columns columns{3, width};
                        const detect::Decision decision{targets > 1, 0.2};
                        const detect::PixelMask* const counting = variant > 0 ? &mask : nullptr;
                        const auto first =
                            detect::make_column_detection(cube.shape, columns, options, decision, counting);
                        const auto cpu = run_columns(*first, cube, 0);
                        for (const int64_t tile : {0, 8}) {
                            const auto second = groups().make_column_detection(cube.shape, columns, options,
                                                                               decision, counting);
                            const auto gpu = run_columns(*second, cube, tile);
                            const auto what = told(options, ", " + std::to_string(width) + " wide, tile " +
                                                                std::to_string(tile));
                            const double apart_by = apart(cpu.outputs[0], gpu.outputs[0]);
                            EXPECT_LT(apart_by, tolerance_of(options)) << what;
                            (variant == 2 ? furthest_excluded : furthest) =
                                std::max(variant == 2 ? furthest_excluded : furthest, apart_by);
                            if (decision.map) {
                                EXPECT_LE(different(cpu.outputs[1], gpu.outputs[1]), 2) << what;
                            }
                            EXPECT_EQ(cpu.valid, gpu.valid) << what;
                            EXPECT_EQ(cpu.invalid, gpu.invalid) << what;
                            EXPECT_EQ(first->in_bad_groups(), second->in_bad_groups()) << what;
                            expect_equal(first->groups(), second->groups(), what);
                        }
                    }
    std::cout << "columns: scores differ by " << furthest << ", with an exclusion by " << furthest_excluded
              << " at most\n";
}

/// Checks that results do not depend on tiles or on the number of threads.
TEST_F(DetectSpectraCuda, ColumnsHaveTheSameBitsInAnyTiles) {
    const auto cube = striped_scene(37, 90, 43);
    for (const auto method : {detect::Method::mf, detect::Method::ace, detect::Method::rx}) {
        auto options = group_options(method, 43, 2, -1);
        options.exclude_share = 0.03;
        const auto whole =
            run_columns(*groups().make_column_detection(cube.shape, {3, 4}, options, {}, nullptr), cube, 0);
        const auto tiled =
            run_columns(*groups().make_column_detection(cube.shape, {3, 4}, options, {}, nullptr), cube, 8);
        EXPECT_EQ(different(whole.outputs[0], tiled.outputs[0]), 0) << detect::name_of(method);
    }
}

/// Uses more bands than a panel of the factorisation has, and fewer pixels than bands.
TEST_F(DetectSpectraCuda, ColumnsOfManyBandsAreTheProcessors) {
    for (const int bands : {31, 32, 33, 150, 300})
        for (const auto method :
             {detect::Method::mf, detect::Method::cem, detect::Method::ace, detect::Method::rx}) {
            const auto cube = striped_scene(11, 70, bands);
            const auto options = group_options(method, bands, 1, -1);
            const auto cpu = run_columns(
                *detect::make_column_detection(cube.shape, {0, 1}, options, {}, nullptr), cube, 0);
            const auto gpu = run_columns(
                *groups().make_column_detection(cube.shape, {0, 1}, options, {}, nullptr), cube, 0);
            EXPECT_LT(apart(cpu.outputs[0], gpu.outputs[0]), 1e-5)
                << detect::name_of(method) << ", " << bands;
        }
}

/// Returns the groups of a map: pixels without a group (0), and groups of one pixel, of equal pixels, of few
/// pixels, and of most pixels.
detect::GroupPlane plane_of(Cube& cube) {
    const auto shape = cube.shape;
    detect::GroupPlane plane;
    plane.samples = shape.samples;
    plane.groups = 6;
    for (int64_t y = 0; y < shape.lines; ++y)
        for (int64_t x = 0; x < shape.samples; ++x) {
            const int64_t at = y * shape.samples + x;
            plane.of.push_back(static_cast<uint16_t>(at % 13 == 0  ? 0
                                                     : at == 20    ? 1
                                                     : y == 7      ? 2
                                                     : y == 8      ? 3
                                                     : x < 9       ? 4
                                                     : (x + y) % 3 ? 5
                                                                   : 6));
            for (int b = 0; b < shape.bands && plane.of.back() == 2; ++b)
                cube.at(b, y, x) = static_cast<float>(b + 1);
        }
    return plane;
}

/// Computes the scores of each group separately on the CPU, as a column that consists of the group's pixels.
Found groups_alone(const Cube& cube, const detect::GroupPlane& plane, const detect::GroupOptions& options,
                   const detect::Decision& decision, const detect::PixelMask* mask,
                   std::vector<detect::GroupRecord>& records) {
    const auto shape = cube.shape;
    Found all;
    for (const int bands : {std::max<int>(1, static_cast<int>(options.targets.names.size())), 1})
        all.outputs.emplace_back(shape.samples, shape.lines, bands, std::numeric_limits<float>::quiet_NaN());
    if (!decision.map) all.outputs.pop_back();
    for (int group = 1; group <= plane.groups; ++group) {
        std::vector<int64_t> pixels;
        for (int64_t i = 0; i < shape.pixels(); ++i)
            if (plane.of[static_cast<size_t>(i)] == group) pixels.push_back(i);
        const auto count = static_cast<int64_t>(pixels.size());
        Cube column(1, count, shape.bands);
        detect::PixelMask counting(1, count);
        for (int64_t i = 0; i < count; ++i) {
            const int64_t pixel = pixels[static_cast<size_t>(i)];
            for (int b = 0; b < shape.bands; ++b)
                column.at(b, i, 0) = cube.at(b, pixel / shape.samples, pixel % shape.samples);
            if (mask == nullptr || mask->at(pixel)) counting.set(i, 0);
        }
        const auto operation =
            detect::make_column_detection(column.shape, {0, 1}, options, decision, &counting);
        const auto found = run_columns(*operation, column, 0);
        all.valid += found.valid;
        all.invalid += found.invalid;
        records.push_back(operation->groups().front());
        for (size_t o = 0; o < all.outputs.size(); ++o)
            for (int64_t i = 0; i < count; ++i)
                for (int b = 0; b < all.outputs[o].shape.bands; ++b) {
                    const int64_t pixel = pixels[static_cast<size_t>(i)];
                    all.outputs[o].at(b, pixel / shape.samples, pixel % shape.samples) =
                        found.outputs[o].at(b, i, 0);
                }
    }
    return all;
}

/// Runs a scene of groups in square tiles with sides of `tile` pixels.
Found run_group_scene(detect::GroupScene& there, const Cube& cube, const detect::Decision& decision,
                      int64_t tile, std::vector<detect::GroupRecord>& records) {
    stream::PassOptions pass;
    pass.lanes = 3;
    pass.tile_samples = pass.tile_lines = tile;
    stream::run_pass(MemorySource(cube), *there.loading(), {}, pass);
    const auto operation = there.make_detection(decision);
    Cube nothing(cube.shape.samples, cube.shape.lines, 0);
    auto found = run_in(*operation, nothing, 3, tile, tile);
    records = operation->groups();
    EXPECT_GT(operation->without_group(), 0);
    EXPECT_EQ(operation->valid() + operation->invalid() + operation->without_group() +
                  operation->in_bad_groups(),
              cube.shape.pixels());
    return found;
}

TEST_F(DetectSpectraCuda, GroupsOfAMapAreThoseGroupsAlone) {
    constexpr int bands = 43;
    auto cube = striped_scene(61, 47, bands);
    const auto plane = plane_of(cube);
    const auto mask = mask_of(61, 47);
    double furthest = 0, furthest_excluded = 0;
    for (const auto method :
         {detect::Method::mf, detect::Method::cem, detect::Method::ace, detect::Method::rx})
        for (const size_t targets : {size_t{1}, size_t{3}})
            for (const double shrinkage : {-1.0, 0.1, 0.0})
                for (const int variant : {0, 1, 2}) {
                    auto options = group_options(method, bands, targets, shrinkage);
                    if (variant == 2) {
                        options.exclude_share = 0.04;
                        options.exclude_iterations = static_cast<int>(targets);
                    }
                    if (shrinkage > 0 && method == detect::Method::ace) make_absorptions(options);
                    const detect::Decision decision{targets > 1, 0.2};
                    const detect::PixelMask* const counting = variant > 0 ? &mask : nullptr;
                    std::vector<detect::GroupRecord> records;
                    const auto cpu = groups_alone(cube, plane, options, decision, counting, records);
                    for (const int64_t tile : {0, 16}) {
                        const auto there = groups().make_group_scene(cube.shape, plane, options, counting, 0);
                        ASSERT_NE(there, nullptr);
                        std::vector<detect::GroupRecord> found;
                        const auto gpu = run_group_scene(*there, cube, decision, tile, found);
                        const auto what = told(options, ", tile " + std::to_string(tile));
                        const double apart_by = apart(cpu.outputs[0], gpu.outputs[0]);
                        EXPECT_LT(apart_by, tolerance_of(options)) << what;
                        (variant == 2 ? furthest_excluded : furthest) =
                            std::max(variant == 2 ? furthest_excluded : furthest, apart_by);
                        if (decision.map) {
                            EXPECT_LE(different(cpu.outputs[1], gpu.outputs[1]), 2) << what;
                        }
                        EXPECT_EQ(cpu.valid, gpu.valid) << what;
                        expect_equal(records, found, what);
                    }
                }
    std::cout << "groups of a map: scores differ by " << furthest << ", with an exclusion by "
              << furthest_excluded << " at most\n";
}

/// Checks that pixels with equal scores are excluded in the order of the file.
TEST_F(DetectSpectraCuda, OfEqualScoresTheFirstLeave) {
    constexpr int bands = 5;
    Cube cube(1, 600, bands);
    std::mt19937 random(8);
    std::uniform_int_distribution<int> few(1, 4); // so few values that many pixels are equal
    for (float& v : cube.values)
        v = static_cast<float>(few(random));
    for (const auto method : {detect::Method::mf, detect::Method::rx})
        for (const double share : {0.01, 0.2, 0.49}) {
            auto options = group_options(method, bands, 1, 0.1);
            if (!options.targets.spectra.empty()) options.targets.spectra[0] = {1, 4, 2, 3, 1};
            options.exclude_share = share;
            const auto first = detect::make_column_detection(cube.shape, {0, 1}, options, {}, nullptr),
                       second = groups().make_column_detection(cube.shape, {0, 1}, options, {}, nullptr);
            const auto cpu = run_columns(*first, cube, 0), gpu = run_columns(*second, cube, 0);
            EXPECT_LT(apart(cpu.outputs[0], gpu.outputs[0]), 1e-3) << detect::name_of(method) << share;
            EXPECT_EQ(first->groups()[0].excluded, second->groups()[0].excluded);
        }
}

TEST_F(DetectSpectraCuda, ASceneThatDoesNotFitIsLeftToTheProcessor) {
    auto cube = striped_scene(61, 47, 20);
    const auto plane = plane_of(cube);
    const auto options = group_options(detect::Method::mf, 20, 1, -1);
    EXPECT_EQ(groups().make_group_scene(cube.shape, plane, options, nullptr, uint64_t{1} << 18), nullptr);
    EXPECT_NE(groups().make_group_scene(cube.shape, plane, options, nullptr, uint64_t{64} << 20), nullptr);
}

} // namespace
} // namespace hsi::test
