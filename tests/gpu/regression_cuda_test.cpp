// SPDX-License-Identifier: MIT
// Compares hsi_cuda_regression.so, in the tile pipeline, with the CPU, for each method, transform and input
// of bands. Estimates are equal except for rounding. All tilings give equal bits.
#include "core/cuda_module.h"
#include "regression/regression.h"
#include "regression/regression_models.h"
#include "stream/pipeline.h"
#include "support/memory_cube.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hsi::test {
namespace {

using regression::Applied;
using regression::Method;
using regression::Step;

regression::Backend& backend() {
    static const auto made = make_cuda_backend<regression::Backend>("regression", cuda_devices());
    return *made;
}

Cube estimated(regression::Estimation& operation, const Cube& scene, int64_t tile = 0, int lanes = 2) {
    MemorySink sink(scene.shape.samples, scene.shape.lines, operation.output_bands().front());
    stream::PassOptions pass;
    pass.lanes = lanes;
    pass.tile_samples = pass.tile_lines = tile;
    pass.memory = uint64_t{4} << 30;
    stream::run_pass(MemorySource(scene), operation, {&sink}, pass);
    return sink.cube;
}

/// Returns a scene in which some pixels have no result: invalid pixels, pixels of zeros, and negative pixels,
/// which have no logarithm.
Cube odd_scene(int bands) {
    Cube scene = random_scene(83, 61, bands, 3);
    make_invalid(scene, 2, 3, bands / 2);
    make_invalid(scene, 0, 0, 0, std::numeric_limits<float>::infinity());
    for (int b = 0; b < bands; ++b) {
        scene.at(b, 1, 36) = 0;
        scene.at(b, 4, 4) = 0.5F; // a constant spectrum has no SNV transform
        scene.at(b, 5, 5) = 1e4F; // values of another scale
    }
    scene.at(1, 3, 3) = -0.1F;
    return scene;
}

class RegressionCuda : public testing::Test {
  protected:
    void SetUp() override {
        if (cuda_devices().empty())
            GTEST_SKIP() << "NO GPU HERE: nothing of hsi_cuda_regression.so was tested";
    }

    /// Checks that estimates and deviations differ by at most 1e-5 of the range of the values (-1 to 3).
    /// Outside flags may differ only for pixels at a limit.
    static void expect_processors(const Cube& scene, const std::vector<Applied>& models,
                                  const std::string& what) {
        const auto on_cpu = regression::make_estimation(scene.shape.bands, models),
                   on_gpu = backend().make_estimation(scene.shape.bands, models);
        const Cube cpu = estimated(*on_cpu, scene), gpu = estimated(*on_gpu, scene);
        const auto pixels = static_cast<size_t>(scene.shape.pixels());
        for (size_t m = 0; m < models.size(); ++m) {
            double furthest = 0;
            int64_t others = 0;
            for (size_t i = 3 * m * pixels; i < (3 * m + 3) * pixels; ++i) {
                const double a = cpu.values[i], b = gpu.values[i];
                ASSERT_EQ(std::isnan(a), std::isnan(b)) << what << ", value " << i;
                if (std::isnan(a)) continue;
                if (i / pixels % 3 == 2)
                    others += a != b;
                else
                    furthest = std::max(furthest, std::fabs(a - b) / (1 + std::fabs(a)));
            }
            EXPECT_LE(furthest, 4e-5) << what;
            EXPECT_LE(others, static_cast<int64_t>(pixels) / 500) << what;
            EXPECT_EQ(on_cpu->estimated(m), on_gpu->estimated(m)) << what;
            EXPECT_EQ(on_cpu->undefined(m), on_gpu->undefined(m)) << what;
            EXPECT_NEAR(static_cast<double>(on_cpu->outside(m)), static_cast<double>(on_gpu->outside(m)),
                        static_cast<double>(others))
                << what;
            EXPECT_EQ(on_cpu->of_another_scale(m), on_gpu->of_another_scale(m)) << what;
            s_furthest = std::max(s_furthest, furthest);
        }
        EXPECT_EQ(on_cpu->valid(), on_gpu->valid()) << what;
        EXPECT_EQ(on_cpu->invalid(), on_gpu->invalid()) << what;
    }
    static void TearDownTestSuite() { std::printf("values differ by %.2g at most\n", s_furthest); }

  private:
    static double s_furthest;
};
double RegressionCuda::s_furthest = 0;

TEST_F(RegressionCuda, EstimatesAreTheProcessors) {
    const Cube scene = odd_scene(few_bands);
    std::vector<Applied> all;
    for (const auto& [name, model] : models()) {
        all.push_back({model, as_they_are()});
        expect_processors(scene, {all.back()}, name);
    }
    expect_processors(scene, all, "all at once");
}

TEST_F(RegressionCuda, TransformsAreTheProcessors) {
    const Cube scene = odd_scene(few_bands);
    // Falling wavelengths with a gap, at which a derivative omits bands.
    std::vector<double> wavelengths;
    for (size_t b = 0; b < few_bands; ++b)
        wavelengths.push_back(900 - 7.0 * static_cast<double>(b) - (b > 8 ? 200 : 0));
    using Kind = Step::Kind;
    const std::vector<std::vector<Step>> transforms{{{Kind::snv, 0}},
                                                    {{Kind::vector, 0}},
                                                    {{Kind::mean, 0}},
                                                    {{Kind::log, 0}},
                                                    {{Kind::derivative1, 5}},
                                                    {{Kind::derivative2, 3}, {Kind::vector, 0}},
                                                    {{Kind::log, 0}, {Kind::derivative1, 3}}};
    for (const auto& steps : transforms) {
        const regression::Transform transform(steps, wavelengths, few_bands);
        for (const Method method : {Method::plsr, Method::gp, Method::svr}) {
            const size_t bands = transform.outputs();
            const auto model =
                method == Method::plsr ? linear_model(20, true, bands) : kernel_model(method, 21, bands);
            model->transform = transform;
            expect_processors(scene, {{model, as_they_are()}},
                              regression::text_of(steps.front()) + ", " + regression::name_of(method));
        }
    }
}

/// Uses a scene with scales and offsets. Each band of the model is a weighted sum of two bands of the scene.
TEST_F(RegressionCuda, InputsAreWeightedSumsOfScaledValues) {
    const Cube scene = odd_scene(2 * few_bands + 1); // the last band is not used by any model
    regression::Inputs inputs;
    for (size_t b = 0; b < 2 * few_bands + 1; ++b) {
        inputs.scale.push_back(0.5 + 0.1 * static_cast<double>(b));
        inputs.offset.push_back(0.01 * static_cast<double>(b));
    }
    for (size_t b = 0; b < few_bands; ++b)
        inputs.bands.push_back({b, {2 * b, 2 * b + 1}, {0.25, 0.75}});
    expect_processors(scene, {{linear_model(20, true), inputs}, {kernel_model(Method::gp), inputs}},
                      "weighted");
}

/// Uses more samples than one matrix product, and more pixels than one batch.
TEST_F(RegressionCuda, ManySamplesAndBands) {
    constexpr size_t bands = 224, samples = 701;
    const Cube scene = random_scene(400, 200, bands, 8);
    for (const Method method : {Method::gp, Method::svr}) {
        const auto model = kernel_model(method, samples, bands);
        model->kernel.length = 14;
        model->kernel.gamma = 0.003;
        expect_processors(scene, {{model, as_they_are(bands)}}, regression::name_of(method));
    }
    expect_processors(scene, {{linear_model(100, true, bands), as_they_are(bands)}}, "100 members");
    expect_processors(scene, {{linear_model(500, true, bands), as_they_are(bands)}}, "500 members");
}

TEST_F(RegressionCuda, TilesAndLanesChangeNothing) {
    const Cube scene = odd_scene(few_bands);
    const std::vector<Applied> both{{kernel_model(Method::gp), as_they_are()},
                                    {linear_model(20, true), as_they_are()}};
    const auto whole = estimated(*backend().make_estimation(few_bands, both), scene, 0, 1);
    for (const int64_t tile : {7, 25, 61})
        EXPECT_TRUE(identical(whole, estimated(*backend().make_estimation(few_bands, both), scene, tile, 3)))
            << tile;
}

TEST_F(RegressionCuda, KernelTimeOfAScene) {
    constexpr size_t bands = 224;
    const Cube scene = random_scene(614, 512, bands, 9);
    const std::vector<std::pair<std::string, std::shared_ptr<regression::Model>>> timed{
        {"gp of 500 samples", kernel_model(Method::gp, 500, bands)},
        {"svr of 500 vectors", kernel_model(Method::svr, 500, bands)},
        {"100 members", linear_model(100, true, bands)}};
    for (const auto& [name, model] : timed) {
        double best = 1e9;
        for (int round = 0; round < 3; ++round) {
            const double before = backend().kernel_seconds();
            estimated(*backend().make_estimation(bands, {{model, as_they_are(bands)}}), scene, 0, 1);
            best = std::min(best, backend().kernel_seconds() - before);
        }
        std::printf("kernels: %.2f ms, %s, 614 x 512 x 224\n", 1e3 * best, name.c_str());
        EXPECT_GT(best, 0);
    }
}

} // namespace
} // namespace hsi::test
