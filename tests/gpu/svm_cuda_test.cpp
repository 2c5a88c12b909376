// SPDX-License-Identifier: MIT
// Compares hsi_cuda_svm.so, in the tile pipeline, with LIBSVM's order of operations and with the CPU backend.
#include "core/cuda_module.h"
#include "core/error.h"
#include "stream/pipeline.h"
#include "svm/svm_scene.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace hsi::test {
namespace {

svm::Backend& backend() {
    static const auto made = make_cuda_backend<svm::Backend>("svm", cuda_devices());
    return *made;
}

struct Cut {
    int64_t samples = 0, lines = 0;
    int lanes = 1;
};

struct Maps {
    Cube labels, probabilities, confidence;
    int64_t repeated = 0, invalid = 0;
    std::vector<int64_t> by_class;
};

Maps classify(svm::Classification& operation, const Cube& cube, Cut cut = {}) {
    const auto shape = cube.shape;
    const MemorySource source(cube);
    MemorySink labels(shape.samples, shape.lines, 1),
        probabilities(shape.samples, shape.lines, operation.model().class_count()),
        confidence(shape.samples, shape.lines, 1);
    std::vector<stream::CubeSink*> sinks{&labels};
    if (operation.options().probabilities) sinks.push_back(&probabilities);
    if (operation.options().confidence) sinks.push_back(&confidence);
    stream::PassOptions pass;
    pass.lanes = cut.lanes;
    pass.tile_samples = cut.samples;
    pass.tile_lines = cut.lines;
    pass.memory = uint64_t{8} << 30;
    stream::run_pass(source, operation, sinks, pass);
    return {labels.cube,          probabilities.cube,  confidence.cube,
            operation.repeated(), operation.invalid(), operation.pixels_by_class()};
}

class SvmCuda : public testing::Test {
  protected:
    void SetUp() override {
        if (cuda_devices().empty()) GTEST_SKIP() << "NO GPU HERE: nothing of hsi_cuda_svm.so was tested";
    }
    static Maps on_gpu(const svm::Model& model, const Cube& cube, bool estimates, Cut cut = {}) {
        svm::ClassifyOptions o;
        o.probabilities = o.confidence = estimates;
        return classify(*backend().make_classification(std::make_shared<svm::Model>(model), o), cube, cut);
    }
    static Maps on_cpu(const svm::Model& model, const Cube& cube, bool estimates) {
        svm::ClassifyOptions o;
        o.probabilities = o.confidence = estimates;
        return classify(*svm::make_classification(std::make_shared<svm::Model>(model), o), cube);
    }
};

TEST_F(SvmCuda, LabelsAndProbabilitiesAreExact) {
    struct Case {
        int bands, classes, vectors;
        double gamma, c;
    };
    // With 20 classes, a pixel has more than one chunk of sums.
    for (const Case& t : {Case{5, 2, 30, 1, 8}, Case{63, 9, 60, 0.5, 2}, Case{30, 20, 11, 0.25, 128},
                          Case{9, 17, 7, 8, 32768}, Case{200, 16, 33, 0.125, 32}, Case{1, 3, 1, 1, 1}}) {
        auto scene = class_scene(71, 43, t.bands, t.classes, 1.5, 3);
        const auto model = made_model(scene, t.classes, t.vectors, t.gamma, t.c, true, 4);
        make_invalid(scene.cube, 5, 6, t.bands / 2);
        make_invalid(scene.cube, 0, 0, 0, std::numeric_limits<float>::infinity());
        const auto gpu = on_gpu(model, scene.cube, true);
        int64_t wrong = 0;
        double worst = 0;
        for (int64_t i = 0; i < scene.cube.shape.pixels(); ++i) {
            const int64_t l = i / 71, s = i % 71;
            std::vector<float> x;
            bool valid = true;
            for (int f = 0; f < t.bands; ++f) {
                valid = valid && std::isfinite(scene.cube.at(f, l, s));
                x.push_back(svm::scaled(scene.cube.at(f, l, s), model.minimum[static_cast<size_t>(f)],
                                        model.factor(f)));
            }
            if (!valid) {
                EXPECT_TRUE(std::isnan(gpu.labels.at(0, l, s)));
                EXPECT_TRUE(std::isnan(gpu.confidence.at(0, l, s)));
                continue;
            }
            const auto exact = svm::predict_exactly(model, x.data());
            wrong += gpu.labels.at(0, l, s) !=
                     static_cast<float>(model.classes[static_cast<size_t>(exact.label)].value);
            for (int c = 0; c < t.classes; ++c)
                worst = std::max(worst, std::fabs(static_cast<double>(gpu.probabilities.at(c, l, s)) -
                                                  exact.probabilities[static_cast<size_t>(c)]));
            EXPECT_EQ(gpu.confidence.at(0, l, s), gpu.probabilities.at(exact.label, l, s));
        }
        EXPECT_EQ(wrong, 0) << t.classes << " classes";
        EXPECT_LE(worst, 1e-6) << t.classes << " classes";
        EXPECT_EQ(gpu.invalid, 2);
        const auto cpu = on_cpu(model, scene.cube, true);
        EXPECT_TRUE(identical(cpu.labels, gpu.labels));
        EXPECT_EQ(cpu.by_class, gpu.by_class);
    }
}

TEST_F(SvmCuda, TilesAndLanesChangeNothing) {
    const auto scene = class_scene(83, 57, 12, 5, 1.5, 8);
    const auto model = made_model(scene, 5, 20, 0.5, 4, true, 9);
    const auto whole = on_gpu(model, scene.cube, true);
    for (const Cut& cut : {Cut{7, 5, 3}, Cut{83, 1, 2}, Cut{16, 57, 4}}) {
        const auto maps = on_gpu(model, scene.cube, true, cut);
        EXPECT_TRUE(identical(maps.labels, whole.labels));
        EXPECT_TRUE(identical(maps.probabilities, whole.probabilities));
        EXPECT_TRUE(identical(maps.confidence, whole.confidence));
        EXPECT_EQ(maps.repeated, whole.repeated);
    }
}

TEST_F(SvmCuda, BoundaryPixelsAreRepeated) {
    // Two classes have equal support vectors and opposite coefficients. Every decision value is then zero
    // except for rounding.
    const auto scene = class_scene(40, 30, 6, 2, 1, 10);
    auto model = made_model(scene, 2, 1, 0.5, 2, false, 11);
    const auto n = static_cast<size_t>(model.features());
    model.support_count = {1, 1};
    model.support_vectors.resize(2 * n);
    std::copy_n(model.support_vectors.begin(), n, model.support_vectors.begin() + static_cast<ptrdiff_t>(n));
    model.coefficients = {2, -2};
    model.rho = {0};
    const auto gpu = on_gpu(model, scene.cube, false);
    EXPECT_EQ(gpu.repeated, scene.cube.shape.pixels());
    EXPECT_TRUE(identical(gpu.labels, on_cpu(model, scene.cube, false).labels));
}

TEST_F(SvmCuda, KernelTimeOfAScene) {
    // The size of the profile of Pavia University: 610x340 pixels, 63 features, 9 classes, and about 1500
    // support vectors.
    const auto scene = class_scene(340, 610, 63, 9, 1.5, 12);
    const auto model = made_model(scene, 9, 166, 0.125, 8, true, 13);
    svm::ClassifyOptions options;
    double best = 1e9, with_estimates = 1e9;
    for (int round = 0; round < 6; ++round) {
        options.probabilities = options.confidence = round >= 3;
        const double before = backend().kernel_seconds();
        const auto operation = backend().make_classification(std::make_shared<svm::Model>(model), options);
        const auto maps = classify(*operation, scene.cube, {340, 610, 1}); // the whole scene is one tile
        const double seconds = backend().kernel_seconds() - before;
        (round < 3 ? best : with_estimates) = std::min(round < 3 ? best : with_estimates, seconds);
        if (round == 0) {
            EXPECT_TRUE(identical(maps.labels, on_cpu(model, scene.cube, false).labels));
        }
    }
    std::printf("kernels: %.3f ms, with probabilities %.3f ms (%lld support vectors)\n", 1e3 * best,
                1e3 * with_estimates, static_cast<long long>(model.vector_count()));
    EXPECT_GT(best, 0);
}

} // namespace
} // namespace hsi::test
