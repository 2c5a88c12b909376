// SPDX-License-Identifier: MIT
// Compares hsi_cuda_sahic.so with the CPU backend and with the reference in double precision.
#include "core/cuda_module.h"
#include "core/error.h"
#include "sahic/lorsal.h"
#include "sahic/sahic_reference.h"
#include "sahic/sahic_scene.h"
#include "stream/pipeline.h"
#include "support/memory_cube.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <ostream>

namespace hsi::sahic {
namespace {

using test::Cube;
using test::MemorySink;
using test::MemorySource;

Backend& backend() {
    static const auto made = make_cuda_backend<Backend>("sahic", cuda_devices());
    return *made;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
    double largest = 0;
    for (size_t i = 0; i < a.size(); ++i)
        largest = std::max(largest, std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
    return a.size() == b.size() ? largest : 1e9;
}

/// Returns the fraction of pixels whose most probable class is equal in both results.
double agreement(const Scene& scene, const std::vector<float>& a, const std::vector<float>& b) {
    const size_t pixels = scene.weight.size();
    const auto label = [&](const std::vector<float>& q, size_t i) {
        int best = 0;
        for (int k = 1; k < scene.classes; ++k)
            if (q[static_cast<size_t>(k) * pixels + i] > q[static_cast<size_t>(best) * pixels + i]) best = k;
        return best;
    };
    size_t same = 0;
    for (size_t i = 0; i < pixels; ++i)
        same += label(a, i) == label(b, i);
    return static_cast<double>(same) / static_cast<double>(pixels);
}

class SahicCuda : public testing::Test {
  protected:
    void SetUp() override {
        if (cuda_devices().empty()) GTEST_SKIP() << "NO GPU HERE: nothing of hsi_cuda_sahic.so was tested";
    }
    static std::unique_ptr<MrfSolver> solver(const MrfOptions& o, const Scene& s) {
        return backend().make_mrf_solver(o, {s.classes, s.lines, s.samples});
    }
};

// ---- The Markov random field

struct FieldCase {
    int classes;
    int64_t lines, samples;
    bool periodic, anisotropic;
};

void PrintTo(const FieldCase& c, std::ostream* out) {
    *out << c.classes << " classes, " << c.lines << "x" << c.samples
         << (c.periodic ? ", periodic" : ", reflect") << (c.anisotropic ? ", anisotropic" : ", isotropic");
}

class SahicCudaField : public SahicCuda, public testing::WithParamInterface<FieldCase> {};

TEST_P(SahicCudaField, AgainstReferenceAndCpu) {
    const FieldCase c = GetParam();
    const Scene scene(c.classes, c.lines, c.samples, 7);
    MrfOptions o;
    o.anisotropic = c.anisotropic;
    MrfResiduals ours, theirs;
    const auto gpu = scene.solve(*solver(o, scene), c.periodic, &ours);
    const auto cpu = scene.solve(o, c.periodic, 2, &theirs);
    EXPECT_LT(largest_difference(gpu, cpu), 2e-5);
    EXPECT_GE(agreement(scene, gpu, cpu), 0.9999);
    const auto truth = reference::mrf(scene.problem(c.periodic), o);
    double largest = 0;
    for (size_t k = 0; k < truth.q.size(); ++k)
        for (size_t i = 0; i < truth.q[k].size(); ++i)
            largest = std::max(
                largest, std::fabs(static_cast<double>(gpu[k * truth.q[k].size() + i]) - truth.q[k][i]));
    EXPECT_LT(largest, 2e-5);
    const auto near = [](double a, double b) { return std::fabs(a - b) <= 1e-3 * b + 1e-9; };
    const auto& t = truth.residuals;
    EXPECT_EQ(ours.entries, t.entries);
    EXPECT_TRUE(near(ours.v1, t.v1)) << ours.v1 << " " << t.v1;
    EXPECT_TRUE(near(ours.v2, t.v2)) << ours.v2 << " " << t.v2;
    EXPECT_TRUE(near(ours.v3, t.v3)) << ours.v3 << " " << t.v3;
    EXPECT_TRUE(near(ours.v4, t.v4)) << ours.v4 << " " << t.v4;
    EXPECT_TRUE(near(ours.v5, t.v5)) << ours.v5 << " " << t.v5;
    EXPECT_TRUE(near(ours.change, t.change)) << ours.change << " " << t.change;
    EXPECT_TRUE(near(ours.objective, t.objective)) << ours.objective << " " << t.objective;
}

INSTANTIATE_TEST_SUITE_P(Borders, SahicCudaField,
                         testing::Values(FieldCase{5, 40, 37, false, false},
                                         FieldCase{5, 40, 37, true, false}, FieldCase{4, 21, 50, false, true},
                                         FieldCase{4, 21, 50, true, true}, FieldCase{2, 1, 30, false, false},
                                         FieldCase{3, 30, 1, true, false}, FieldCase{3, 2, 2, true, false},
                                         FieldCase{3, 17, 64, false, false}));

// Uses the size of Pavia University. Differences may be at most 1e-4, and labels must be equal in 99.99 % of
// the pixels.
TEST_F(SahicCuda, LargeSceneAgainstCpuOnBothBorders) {
    const Scene scene(9, 610, 340, 21);
    for (const bool periodic : {false, true})
        for (const bool anisotropic : {false, true}) {
            MrfOptions o;
            o.anisotropic = anisotropic;
            const auto on_gpu = solver(o, scene);
            const auto gpu = scene.solve(*on_gpu, periodic);
            const auto cpu = scene.solve(o, periodic, 4);
            const double difference = largest_difference(gpu, cpu), same = agreement(scene, gpu, cpu);
            std::printf("610x340, 9 classes, %s, %s: largest difference %.2e, labels %.6f %%\n",
                        periodic ? "periodic" : "reflect", anisotropic ? "anisotropic" : "isotropic",
                        difference, 100 * same);
            EXPECT_LT(difference, 1e-4);
            EXPECT_GE(same, 0.9999);
            EXPECT_EQ(gpu, scene.solve(*on_gpu, periodic)) << "a second run gives other bits";
        }
}

TEST_F(SahicCuda, AnyNumberOfIterations) {
    const Scene scene(3, 25, 33, 4);
    for (const int iterations : {1, 2, 3, 16, 17, 18, 19, 35, 50, 67}) {
        MrfOptions o;
        o.iterations = iterations;
        MrfResiduals a, b;
        const auto gpu = scene.solve(*solver(o, scene), false, &a), cpu = scene.solve(o, false, 1, &b);
        EXPECT_LT(largest_difference(gpu, cpu), 1e-5) << iterations;
        EXPECT_NEAR(a.change, b.change, 1e-3 * b.change + 1e-9) << iterations;
    }
}

// Uses every compiled size of transforms, and larger sizes, for which cuFFT is used. In narrow scenes, the
// mirror image is mirrored again.
TEST_F(SahicCuda, LinesOfManyLengths) {
    MrfOptions o;
    o.iterations = 40;
    for (const int64_t samples : {3,   20,  60,   90,   120,  150,  200,  260,  340,  470, 600,
                                  700, 980, 1200, 1500, 2000, 2500, 3000, 4064, 4065, 4500})
        for (const bool periodic : {false, true}) {
            const Scene scene(3, 9, samples, 12);
            EXPECT_LT(largest_difference(scene.solve(*solver(o, scene), periodic), scene.solve(o, periodic)),
                      1e-5)
                << samples << (periodic ? " periodic" : " reflect");
        }
}

// Uses columns with more lines than a block of the filter, and more classes than a pair.
TEST_F(SahicCuda, ColumnsOfManyLengths) {
    MrfOptions o;
    o.iterations = 40;
    for (const int64_t lines : {1, 9, 10, 11, 159, 160, 161, 500})
        for (const int classes : {2, 7, 24}) {
            const Scene scene(classes, lines, 40, 13);
            EXPECT_LT(largest_difference(scene.solve(*solver(o, scene), true), scene.solve(o, true)), 1e-5)
                << lines << " lines, " << classes << " classes";
        }
}

TEST_F(SahicCuda, ConvergedPenalty) {
    const Scene scene(3, 24, 24, 3);
    MrfOptions o;
    o.mu = 10;
    o.iterations = 300;
    EXPECT_LT(largest_difference(scene.solve(*solver(o, scene), false), scene.solve(o, false)), 2e-5);
}

TEST_F(SahicCuda, OneSolverForWindowsOfManySizes) {
    const Scene large(4, 70, 90, 5);
    const auto shared = solver({}, large);
    for (int round = 0; round < 2; ++round)
        for (const Rect& window :
             {Rect{0, 0, 90, 70}, Rect{3, 2, 40, 68}, Rect{0, 10, 90, 33}, Rect{7, 7, 31, 17}}) {
            const Scene part = large.part(window);
            EXPECT_EQ(part.solve(*shared, false), part.solve(*solver({}, part), false));
        }
    EXPECT_THROW(Scene(4, 71, 90, 1).solve(*shared, false), Error);
}

TEST_F(SahicCuda, TilesAgreeWithTheWhole) {
    const Scene scene(5, 260, 300, 9);
    const int64_t halo = *mrf_halo({});
    const auto whole = scene.solve(*solver({}, scene), false);
    MrfOptions o;
    const auto tiled = backend().make_mrf_solver(o, {5, 90 + 2 * halo, 110 + 2 * halo});
    double largest = 0;
    for (int64_t y = 0; y < scene.lines; y += 90)
        for (int64_t x = 0; x < scene.samples; x += 110) {
            const Rect core = intersect({x, y, 110, 90}, {0, 0, scene.samples, scene.lines});
            const Rect window = intersect(grow(core, halo), {0, 0, scene.samples, scene.lines});
            const Scene part = scene.part(window);
            const auto q = part.solve(*tiled, false);
            for (int64_t l = core.y; l < core.bottom(); ++l)
                for (int64_t s = core.x; s < core.right(); ++s)
                    for (size_t k = 0; k < 5; ++k)
                        largest = std::max(
                            largest, std::fabs(static_cast<double>(
                                         q[k * part.weight.size() +
                                           static_cast<size_t>((l - window.y) * window.w + s - window.x)] -
                                         whole[k * scene.weight.size() +
                                               static_cast<size_t>(l * scene.samples + s)])));
        }
    std::printf("tiles against the whole: %.2e\n", largest);
    EXPECT_LT(largest, 1e-4);
}

TEST_F(SahicCuda, TrainingPixelsKeepTheirClassAndTheSimplexHolds) {
    const Scene scene(6, 80, 95, 5);
    auto q = scene.solve(*solver({}, scene), false);
    const auto pixels = static_cast<int64_t>(scene.weight.size());
    int64_t kept = 0;
    for (int64_t i = 0; i < pixels; ++i) {
        const int fixed = scene.fixed[static_cast<size_t>(i)];
        if (fixed == 0 || std::isnan(scene.p[static_cast<size_t>(i)])) continue;
        for (int k = 0; k < scene.classes; ++k)
            EXPECT_EQ(q[static_cast<size_t>(k * pixels + i)], fixed - 1 == k ? 1.0f : 0.0f);
        ++kept;
    }
    EXPECT_GT(kept, 100);
    project_on_simplex(q.data(), scene.classes, pixels, pixels);
    for (int64_t i = 0; i < pixels; ++i) {
        double sum = 0;
        for (int k = 0; k < scene.classes; ++k) {
            EXPECT_GE(q[static_cast<size_t>(k * pixels + i)], 0.0f);
            sum += static_cast<double>(q[static_cast<size_t>(k * pixels + i)]);
        }
        EXPECT_NEAR(sum, 1.0, 1e-5);
    }
}

TEST_F(SahicCuda, CancelledBetweenIterations) {
    const Scene scene(3, 20, 20, 2);
    CancelFlag cancel;
    cancel.request();
    std::vector<float> q(scene.p.size());
    const auto made = solver({}, scene);
    EXPECT_THROW(made->solve(scene.problem(), q.data(), &cancel), Cancelled);
    // After the cancellation, the solver gives the same result as a new solver.
    EXPECT_EQ(scene.solve(*made, false), scene.solve(*solver({}, scene), false));
}

TEST_F(SahicCuda, MemoryIsWhatWasAnnounced) {
    const MrfLimits limits{9, 610, 340};
    { // the first solver allocates the memory of the libraries
        const Scene small(9, 12, 12, 1);
        small.solve(*backend().make_mrf_solver({}, {9, 12, 12}), false);
    }
    const Scene scene(9, 610, 340, 2);
    const uint64_t before = backend().free_memory();
    const auto made = backend().make_mrf_solver({}, limits);
    scene.solve(*made, false);
    const uint64_t taken = before - std::min(before, backend().free_memory());
    std::printf("solver: %.1f MB announced, %.1f MB taken\n",
                static_cast<double>(backend().mrf_device_bytes(limits)) / 1e6,
                static_cast<double>(taken) / 1e6);
    EXPECT_LE(taken, backend().mrf_device_bytes(limits) +
                         (uint64_t{8} << 20)); // memory is allocated in pages of 2 MB
}

// ---- Class probabilities

/// Makes a scene whose classes are clouds around separate spectra. The classes form patches.
struct SpectralScene {
    Cube cube;
    std::vector<uint16_t> truth;
    SpectralScene(int64_t samples, int64_t lines, int bands, int classes, uint32_t seed)
        : cube(samples, lines, bands) {
        std::mt19937 random(seed);
        std::normal_distribution<double> normal;
        std::vector<std::vector<double>> spectrum(static_cast<size_t>(classes));
        for (auto& s : spectrum)
            for (int b = 0; b < bands; ++b)
                s.push_back(2000 + 400 * normal(random));
        for (int64_t l = 0; l < lines; ++l)
            for (int64_t s = 0; s < samples; ++s) {
                const auto c = static_cast<size_t>((l / 9 + s / 7) % classes);
                truth.push_back(static_cast<uint16_t>(2 * c + 3));
                for (int b = 0; b < bands; ++b)
                    cube.at(b, l, s) =
                        static_cast<float>(spectrum[c][static_cast<size_t>(b)] + 250 * normal(random));
            }
    }
    TrainingSet training(int samples_of_class, int classes) const {
        TrainingSet set;
        set.features = cube.shape.bands;
        set.scale = 5000;
        std::vector<int> left(static_cast<size_t>(classes), samples_of_class);
        const int64_t pixels = cube.shape.pixels();
        for (int64_t n = 0; n < pixels; ++n) {
            const int64_t i = n * 7919 % pixels;
            const uint16_t value = truth[static_cast<size_t>(i)];
            if (left[static_cast<size_t>((value - 3) / 2)]-- <= 0) continue;
            set.label.push_back(value);
            for (int b = 0; b < set.features; ++b)
                set.values.push_back(cube.at(b, i / cube.shape.samples, i % cube.shape.samples));
        }
        for (int c = 0; c < classes; ++c) {
            ModelClass one;
            one.value = 2 * c + 3;
            set.classes.push_back(one);
        }
        return set;
    }
};

struct Passed {
    Cube map, probabilities, confidence, weight;
    std::vector<int64_t> by_class;
    int64_t invalid = 0;
};

struct Cut {
    int64_t samples = 0, lines = 0;
    int lanes = 1;
};

Passed pass_over(SpectralPass& operation, const Cube& cube, int classes, Cut cut = {}) {
    const auto shape = cube.shape;
    const MemorySource source(cube);
    MemorySink map(shape.samples, shape.lines, 1), probabilities(shape.samples, shape.lines, classes),
        confidence(shape.samples, shape.lines, 1), weight(shape.samples, shape.lines, 1);
    stream::PassOptions pass;
    pass.lanes = cut.lanes;
    pass.tile_samples = cut.samples;
    pass.tile_lines = cut.lines;
    pass.memory = uint64_t{4} << 30;
    stream::run_pass(source, operation, {&map, &probabilities, &confidence, &weight}, pass);
    return {map.cube,    probabilities.cube,          confidence.cube,
            weight.cube, operation.pixels_by_class(), operation.invalid()};
}

SpectralOptions everything(const Cube& cube, bool periodic) {
    SpectralOptions o;
    o.map = o.probabilities = o.confidence = o.weight = true;
    if (periodic)
        for (int b = 0; b < cube.shape.bands; ++b) {
            for (int64_t s = 0; s < cube.shape.samples; ++s)
                o.first_line.push_back(cube.at(b, 0, s));
            for (int64_t l = 0; l < cube.shape.lines; ++l)
                o.first_sample.push_back(cube.at(b, l, 0));
        }
    return o;
}

Passed on_gpu(const MlrModel& model, const Cube& cube, bool periodic, Cut cut = {}) {
    const auto operation = backend().make_spectral_pass(
        std::make_shared<MlrModel>(model), everything(cube, periodic), cube.shape.samples, cube.shape.lines);
    return pass_over(*operation, cube, model.class_count(), cut);
}

Passed on_cpu(const MlrModel& model, const Cube& cube, bool periodic) {
    const auto operation = make_spectral_pass(std::make_shared<MlrModel>(model), everything(cube, periodic),
                                              cube.shape.samples, cube.shape.lines);
    return pass_over(*operation, cube, model.class_count());
}

double largest_difference(const Cube& a, const Cube& b) {
    double largest = 0;
    for (size_t i = 0; i < a.values.size(); ++i) {
        if (std::isnan(a.values[i]) != std::isnan(b.values[i])) return 1e9;
        if (!std::isnan(a.values[i]))
            largest = std::max(
                largest, std::fabs(static_cast<double>(a.values[i]) - static_cast<double>(b.values[i])));
    }
    return largest;
}

TEST_F(SahicCuda, ProbabilitiesAndWeightsAgainstCpu) {
    struct Case {
        int bands, classes, samples_of_class;
        bool periodic;
    };
    // 20 and 35 classes have more outputs than one sweep.
    for (const Case& c : {Case{7, 3, 30, false}, Case{103, 9, 40, true}, Case{30, 20, 12, false},
                          Case{12, 35, 6, true}, Case{1, 2, 3, false}}) {
        SpectralScene scene(83, 61, c.bands, c.classes, 3);
        const TrainingSet set = scene.training(c.samples_of_class, c.classes);
        test::make_invalid(scene.cube, 5, 6, c.bands / 2);
        test::make_invalid(scene.cube, 0, 0, 0, std::numeric_limits<float>::infinity());
        for (int b = 0; b < c.bands; ++b)
            scene.cube.at(b, 60, 82) = 0;
        LorsalOptions o;
        o.iterations = 60;
        o.delta = 0.5;
        const MlrModel model = train(set, o).model;
        auto named = model;
        named.bands.resize(static_cast<size_t>(c.bands));
        const auto gpu = on_gpu(named, scene.cube, c.periodic), cpu = on_cpu(named, scene.cube, c.periodic);
        EXPECT_LT(largest_difference(gpu.probabilities, cpu.probabilities), 1e-6) << c.classes;
        EXPECT_LT(largest_difference(gpu.confidence, cpu.confidence), 1e-6) << c.classes;
        EXPECT_EQ(largest_difference(gpu.weight, cpu.weight), 0.0) << c.classes;
        EXPECT_EQ(largest_difference(gpu.map, cpu.map), 0.0) << c.classes;
        EXPECT_EQ(gpu.by_class, cpu.by_class);
        EXPECT_EQ(gpu.invalid, 3);
        EXPECT_EQ(cpu.invalid, 3);
        // Results must not depend on tiles or on the number of threads.
        for (const Cut& cut : {Cut{16, 7, 3}, Cut{83, 1, 2}, Cut{1, 61, 4}}) {
            const auto tiled = on_gpu(named, scene.cube, c.periodic, cut);
            EXPECT_EQ(largest_difference(tiled.probabilities, gpu.probabilities), 0.0);
            EXPECT_EQ(largest_difference(tiled.weight, gpu.weight), 0.0);
            EXPECT_EQ(largest_difference(tiled.map, gpu.map), 0.0);
            EXPECT_EQ(tiled.by_class, gpu.by_class);
        }
    }
}

TEST_F(SahicCuda, ModelWithoutAnchors) {
    const SpectralScene scene(20, 10, 4, 3, 1);
    MlrModel model = train(scene.training(5, 3), {}).model;
    model.anchors.clear();
    model.weights = {0.5, -1};
    const auto gpu = on_gpu(model, scene.cube, false), cpu = on_cpu(model, scene.cube, false);
    EXPECT_LT(largest_difference(gpu.probabilities, cpu.probabilities), 1e-6);
    EXPECT_EQ(gpu.by_class, cpu.by_class);
}

// ---- Training

TEST_F(SahicCuda, TrainingAgainstCpu) {
    struct Case {
        int bands, classes, samples_of_class;
        double delta;
    };
    for (const Case& c : {Case{20, 9, 40, 0.35}, Case{50, 16, 30, 0.8}, Case{5, 2, 3, 1.0}}) {
        const SpectralScene scene(90, 80, c.bands, c.classes, 8);
        const auto set = scene.training(c.samples_of_class, c.classes);
        LorsalOptions o;
        o.delta = c.delta;
        const auto gpu = backend().train(set, o), cpu = train(set, o);
        EXPECT_NEAR(gpu.objective, cpu.objective, 1e-6 * cpu.objective);
        ASSERT_EQ(gpu.history.size(), cpu.history.size());
        for (size_t i = 0; i < gpu.history.size(); ++i)
            EXPECT_NEAR(gpu.history[i], cpu.history[i], 1e-6 * cpu.history[i]) << i;
        EXPECT_EQ(gpu.model.spread, cpu.model.spread);
        EXPECT_EQ(gpu.iterations, 200);
        EXPECT_NEAR(static_cast<double>(gpu.active_features), static_cast<double>(cpu.active_features),
                    2 + 0.01 * static_cast<double>(cpu.active_features));
        const auto a = on_gpu(gpu.model, scene.cube, false), b = on_cpu(cpu.model, scene.cube, false);
        std::printf("training, %d classes: objective %.10g and %.10g, probabilities within %.2e\n", c.classes,
                    gpu.objective, cpu.objective, largest_difference(a.probabilities, b.probabilities));
        EXPECT_LT(largest_difference(a.probabilities, b.probabilities), 1e-4);
        EXPECT_EQ(largest_difference(a.map, b.map), 0.0);
        const auto again = backend().train(set, o);
        EXPECT_EQ(again.model.weights, gpu.model.weights);
        EXPECT_EQ(again.model.anchors, gpu.model.anchors);
    }
}

TEST_F(SahicCuda, TrainingIsRefusedOrCancelled) {
    const SpectralScene scene(30, 30, 5, 3, 2);
    auto set = scene.training(10, 3);
    CancelFlag cancel;
    cancel.request();
    LorsalOptions o;
    o.cancel = &cancel;
    EXPECT_THROW(backend().train(set, o), Cancelled);
    set.classes.resize(1);
    std::fill(set.label.begin(), set.label.end(), static_cast<uint16_t>(set.classes[0].value));
    EXPECT_THROW(backend().train(set, {}), Error);
}

} // namespace
} // namespace hsi::sahic
