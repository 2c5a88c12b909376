// SPDX-License-Identifier: MIT
#include "core/error.h"
#include "core/json.h"
#include "pca/pca.h"
#include "stream/pipeline.h"
#include "support/memory_cube.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <gtest/gtest.h>
#include <limits>
#include <unistd.h>

namespace hsi::test {
namespace {

struct Cut {
    int64_t samples = 0, lines = 0;
    int lanes = 1;
};

stream::PassOptions pass(const Cut& cut) {
    stream::PassOptions options;
    options.lanes = cut.lanes;
    options.tile_samples = cut.samples;
    options.tile_lines = cut.lines;
    return options;
}

pca::Model fit(const Cube& scene, const pca::FitOptions& options, Cut cut = {}) {
    const MemorySource source(scene);
    stream::StatisticsScan scan(scene.shape, stream::Statistics::covariance);
    stream::run_pass(source, scan, {}, pass(cut));
    return pca::fit(scan.result(), options);
}

Cube transform(const Cube& scene, pca::Transform t, Cut cut = {}) {
    const MemorySource source(scene);
    MemorySink sink(scene.shape.samples, scene.shape.lines, t.outputs);
    const auto operation = pca::make_transform(std::move(t));
    stream::run_pass(source, *operation, {&sink}, pass(cut));
    return sink.cube;
}

std::vector<int> identity(int n) {
    std::vector<int> all;
    for (int i = 0; i < n; ++i)
        all.push_back(i);
    return all;
}

Cube components(const Cube& scene, const pca::Model& model, int nc, Cut cut = {}) {
    return transform(scene, pca::projection(model, nc, identity(scene.shape.bands), scene.shape.bands), cut);
}

double value(const Cube& cube, int band, int64_t pixel) {
    return static_cast<double>(cube.values[static_cast<size_t>(band * cube.shape.pixels() + pixel)]);
}

/// Returns the covariance of two components, computed from their values.
double covariance(const Cube& cube, int a, int b) {
    double ma = 0, mb = 0, sum = 0;
    int64_t n = 0;
    for (int64_t p = 0; p < cube.shape.pixels(); ++p)
        if (std::isfinite(value(cube, a, p))) {
            ma += value(cube, a, p);
            mb += value(cube, b, p);
            ++n;
        }
    for (int64_t p = 0; p < cube.shape.pixels(); ++p)
        if (std::isfinite(value(cube, a, p)))
            sum += (value(cube, a, p) - ma / static_cast<double>(n)) *
                   (value(cube, b, p) - mb / static_cast<double>(n));
    return sum / static_cast<double>(n - 1);
}

TEST(Pca, ComponentsAreUncorrelatedAndTheirVariancesAreTheEigenvalues) {
    Cube scene = random_scene(70, 60, 20, 2);
    make_invalid(scene, 10, 11, 3);
    const auto model = fit(scene, {20, false, false});
    const Cube y = components(scene, model, 20);
    EXPECT_TRUE(std::isnan(y.at(0, 10, 11)) && std::isnan(y.at(19, 10, 11)));
    for (int a = 0; a < 20; ++a)
        for (int b = 0; b <= a; ++b) {
            const double va = model.eigenvalues[static_cast<size_t>(a)],
                         vb = model.eigenvalues[static_cast<size_t>(b)];
            EXPECT_NEAR(covariance(y, a, b), a == b ? va : 0.0,
                        1e-5 * std::sqrt(va * vb) + 1e-8 * model.eigenvalues[0])
                << a << "," << b;
        }
    double share = 0;
    for (int k = 0; k < 20; ++k)
        share += model.explained(k);
    EXPECT_NEAR(share, 1.0, 1e-12);
}

TEST(Pca, ProjectionIsTheDefinition) {
    const Cube scene = random_scene(131, 9, 33, 3);
    const auto model = fit(scene, {7, false, false});
    const Cube y = components(scene, model, 7);
    for (int64_t p = 0; p < scene.shape.pixels(); ++p)
        for (int k = 0; k < 7; ++k) {
            double want = 0;
            for (int b = 0; b < 33; ++b)
                want += model.loading(k)[b] * (value(scene, b, p) - model.mean[static_cast<size_t>(b)]);
            EXPECT_NEAR(value(y, k, p), want, 1e-6 * std::sqrt(model.eigenvalues.front()));
        }
}

TEST(Pca, ScaledBandsGiveTheCorrelationMatrix) {
    Cube scene = random_scene(60, 50, 6, 4);
    for (int64_t p = 0; p < scene.shape.pixels(); ++p)
        scene.values[static_cast<size_t>(p)] *= 1000.0f; // band 1
    const auto plain = fit(scene, {6, false, false}), scaled = fit(scene, {6, true, false});
    double trace = 0;
    for (double v : scaled.eigenvalues)
        trace += v;
    EXPECT_NEAR(trace, 6.0, 1e-9);
    EXPECT_GT(std::fabs(plain.loading(0)[0]), 0.999); // without scaling, the band with large values dominates
    EXPECT_LT(std::fabs(scaled.loading(0)[0]), 0.9);
    const Cube y = components(scene, scaled, 6);
    EXPECT_NEAR(covariance(y, 0, 0), scaled.eigenvalues[0], 1e-5 * scaled.eigenvalues[0]);
}

TEST(Pca, WhitenedComponentsHaveUnitVariance) {
    const Cube scene = random_scene(60, 50, 12, 5);
    const auto model = fit(scene, {5, false, true});
    const Cube y = components(scene, model, 5);
    // Products are in single precision, with few pixels to average their rounding errors
    for (int k = 0; k < 5; ++k)
        EXPECT_NEAR(covariance(y, k, k), 1.0, 1e-4);
}

TEST(Pca, WhiteningSparesComponentsWithoutVariance) {
    Cube scene = random_scene(30, 30, 4, 6);
    for (int64_t p = 0; p < scene.shape.pixels(); ++p) {
        scene.values[static_cast<size_t>(2 * 900 + p)] = scene.values[static_cast<size_t>(p)];
        scene.values[static_cast<size_t>(3 * 900 + p)] = 5.0f; // constant
    }
    const auto model = fit(scene, {4, true, true});
    EXPECT_EQ(model.rank(), 2);
    const Cube y = components(scene, model, 4);
    for (float x : y.values)
        EXPECT_TRUE(std::isfinite(x));
}

TEST(Pca, TheInverseOfAllComponentsIsTheScene) {
    for (const bool scale : {false, true})
        for (const bool whiten : {false, true}) {
            Cube scene = random_scene(40, 30, 10, 7, 0.02, 1000);
            make_invalid(scene, 3, 4, 5);
            const auto model = fit(scene, {10, scale, whiten});
            const Cube back = transform(components(scene, model, 10), pca::reconstruction(model, 10));
            for (int64_t p = 0; p < scene.shape.pixels(); ++p)
                for (int b = 0; b < 10; ++b) {
                    if (p == 3 * 40 + 4)
                        EXPECT_TRUE(std::isnan(value(back, b, p)));
                    else
                        EXPECT_NEAR(value(back, b, p), value(scene, b, p), 2e-3);
                }
        }
}

TEST(Pca, FewComponentsKeepTheExplainedShare) {
    const Cube scene = random_scene(50, 40, 16, 8);
    const auto model = fit(scene, {3, false, false});
    const Cube back = transform(components(scene, model, 3), pca::reconstruction(model, 3));
    double error = 0, total = 0, lost = 0;
    for (int64_t p = 0; p < scene.shape.pixels(); ++p)
        for (int b = 0; b < 16; ++b)
            error += std::pow(value(back, b, p) - value(scene, b, p), 2);
    for (size_t k = 0; k < 16; ++k) {
        total += model.eigenvalues[k];
        if (k >= 3) lost += model.eigenvalues[k];
    }
    EXPECT_NEAR(error / static_cast<double>(scene.shape.pixels() - 1), lost, 1e-4 * total);
}

TEST(Pca, IsBitIdenticalForEveryTilingAndNumberOfThreads) {
    Cube scene = random_scene(300, 150, 18, 9);
    make_invalid(scene, 77, 200, 1);
    const auto whole = fit(scene, {7, false, false});
    const Cube y = components(scene, whole, 7);
    for (const Cut& cut : {Cut{128, 64, 1}, Cut{300, 64, 3}, Cut{17, 5, 2}, Cut{1, 150, 2}}) {
        const auto model = fit(scene, {7, false, false}, cut);
        EXPECT_EQ(model.loadings, whole.loadings);
        EXPECT_EQ(model.eigenvalues, whole.eigenvalues);
        EXPECT_TRUE(identical(components(scene, model, 7, cut), y));
    }
}

TEST(Pca, ZeroSpectraAreInvalidInScenesButNotInComponents) {
    Cube scene = random_scene(5, 4, 3, 10);
    for (int b = 0; b < 3; ++b)
        scene.at(b, 2, 2) = 0;
    pca::Transform t;
    t.inputs = t.outputs = 3;
    t.matrix = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    t.offset = {0, 0, 0};
    EXPECT_TRUE(std::isnan(transform(scene, t).at(1, 2, 2)));
    t.zero_is_invalid = false;
    EXPECT_EQ(transform(scene, t).at(1, 2, 2), 0.0f);
    make_invalid(scene, 1, 1, 2, std::numeric_limits<float>::infinity());
    make_invalid(scene, 1, 2, 0);
    for (int b = 0; b < 3; ++b)
        scene.at(b, 1, 3) = 2e38f; // finite, but the sum of magnitudes overflows
    const Cube y = transform(scene, t);
    EXPECT_TRUE(std::isnan(y.at(0, 1, 1)) && std::isnan(y.at(2, 1, 2)));
    EXPECT_EQ(y.at(0, 1, 3), 2e38f);
}

TEST(Pca, TheModelSurvivesItsFile) {
    const Cube scene = random_scene(40, 30, 9, 11);
    auto model = fit(scene, {4, true, true});
    model.source = "scene \"x\".img";
    for (int b = 0; b < 9; ++b) {
        model.bands.push_back(2 * b + 1);
        model.wavelengths_nm.push_back(b == 3 ? std::nan("") : 400.5 + 10.1 * b);
    }
    const std::string path = testing::TempDir() + "pca_model_test_" + std::to_string(getpid()) + ".json";
    std::ofstream(path) << pca::to_json(model);
    const auto back = pca::load_model(path);
    std::remove(path.c_str());
    EXPECT_EQ(back.source, model.source);
    EXPECT_EQ(back.pixels, model.pixels);
    EXPECT_EQ(back.bands, model.bands);
    EXPECT_EQ(back.mean, model.mean);
    EXPECT_EQ(back.scale, model.scale);
    EXPECT_EQ(back.loadings, model.loadings);
    EXPECT_EQ(back.eigenvalues, model.eigenvalues);
    EXPECT_EQ(back.components, 4);
    EXPECT_TRUE(back.whiten);
    EXPECT_TRUE(std::isnan(back.wavelengths_nm[3]));
    EXPECT_EQ(back.wavelengths_nm[4], model.wavelengths_nm[4]);
}

TEST(Pca, FilesThatAreNoModelsAreRefused) {
    EXPECT_THROW(pca::load_model("/nonexistent/model.json"), Error);
    for (const char* text :
         {"", "{", "[]", "{}", "{\"format\": \"x\"}", "{\"format\": \"gdal_hsi_pca model\"}",
          "{\"format\": \"gdal_hsi_pca model\", \"version\": 2}"})
        EXPECT_THROW(pca::from_json(text, "m"), Error) << text;
    auto model = fit(random_scene(20, 20, 4, 12), {2, false, false});
    EXPECT_THROW(pca::from_json(pca::to_json(model), "m"), Error); // no band list
    model.bands = {1, 2, 3, 4};
    EXPECT_NO_THROW(pca::from_json(pca::to_json(model), "m"));
    model.mean.pop_back();
    EXPECT_THROW(pca::from_json(pca::to_json(model), "m"), Error);
}

TEST(Pca, DamagedModelsAreRefusedByTheNameOfTheEntry) {
    auto model = fit(random_scene(40, 30, 4, 12), {3, true, false});
    model.bands = {1, 2, 3, 5};
    model.wavelengths_nm = {400, 410, 420, std::nan("")};
    model.value_scale = {1e-4, 1e-4, 1e-4, 2e-4};
    model.value_offset = {0, 0, 0, 1};
    model.value_unit = "reflectance";
    model.minimum = {1, 2, 3, 4};
    model.maximum = {5, 6, 7, 8};
    const auto good = Json::parse(pca::to_json(model));
    EXPECT_EQ(pca::to_json(pca::from_json(good.dump(), "m.json")), pca::to_json(model));
    const auto refused = [&](const Json& patch, const std::string& words) {
        auto bad = good;
        bad.merge_patch(patch);
        try {
            pca::from_json(bad.dump(), "m.json");
            ADD_FAILURE() << patch << " was taken";
        } catch (const Error& e) {
            const std::string what = e.what();
            EXPECT_NE(what.find("'m.json' is not a usable PCA model"), std::string::npos) << what;
            EXPECT_NE(what.find(words), std::string::npos) << patch << ": " << what;
        }
    };
    for (const char* key : {"format", "version", "pixels", "components", "whiten", "eigenvalues", "bands",
                            "wavelengths_nm", "mean", "scale", "loadings"}) {
        refused({{key, nullptr}},
                key == std::string("format") ? "its format is not" : std::string("'") + key + "' is missing");
        refused({{key, Json::object({{"a", 1}})}}, key == std::string("format") ? "format" : key);
    }
    refused({{"format", "gdal_hsi_svm"}}, "its format is not");
    refused({{"version", 2}}, "has version 2");
    refused({{"version", 1.5}}, "version");
    refused({{"pixels", 0}}, "'pixels'");
    refused({{"pixels", 1e308}}, "'pixels'");
    refused({{"pixels", "7"}}, "'pixels'");
    refused({{"components", 0}}, "'components'");
    refused({{"components", 5}}, "'components'");
    refused({{"components", 2}}, "'loadings' has 3 entries instead of 2");
    refused({{"components", 1e300}}, "'components'");
    refused({{"whiten", 1}}, "'whiten'");
    refused({{"source", 5}}, "'source'");
    refused({{"bands", {1, 2, 3, -5}}}, "'bands'");
    refused({{"bands", {0, 2, 3, 5}}}, "'bands'");
    refused({{"bands", {1, 2, 3, 2}}}, "band 2 twice");
    refused({{"bands", {1, 2, 3, 1e308}}}, "'bands'");
    refused({{"bands", {1, 2, 3, 4.5}}}, "'bands'");
    refused({{"bands", {1, 2, 3, "4"}}}, "'bands'");
    refused({{"bands", Json::array()}}, "features");
    refused({{"bands", {1, 2, 3}}}, "instead of 3");
    refused({{"wavelengths_nm", {400, -1, 420, nullptr}}}, "'wavelengths_nm'");
    refused({{"wavelengths_nm", {400, 1e308, 420, nullptr}}}, "'wavelengths_nm'");
    refused({{"wavelengths_nm", {400, "x", 420, nullptr}}}, "'wavelengths_nm'");
    refused({{"wavelengths_nm", {400}}}, "'wavelengths_nm'");
    refused({{"mean", {1, 2, 3, 1e308}}}, "'mean' is out of range");
    refused({{"mean", {1, 2, 3, nullptr}}}, "'mean'");
    refused({{"mean", {1, 2, 3}}}, "'mean' has 3 entries");
    refused({{"scale", {1, 2, 3, 0}}}, "entry 4 of 'scale'");
    refused({{"scale", {1, -2, 3, 4}}}, "entry 2 of 'scale'");
    refused({{"scale", {1e308, 2, 3, 4}}}, "entry 1 of 'scale'");
    refused({{"scale", {1, 2}}}, "'scale' has 2 entries");
    refused({{"eigenvalues", {3, 2, 1, -1}}}, "entry 4 of 'eigenvalues' is negative");
    refused({{"eigenvalues", {-3, -3, -3, -3}}}, "'eigenvalues' is negative");
    refused({{"eigenvalues", {1e308, 2, 1, 0}}}, "entry 1 of 'eigenvalues' is out of range");
    refused({{"eigenvalues", {1, 2, 1, 0}}}, "entry 2 of 'eigenvalues' is larger");
    refused({{"eigenvalues", {3, 2, 1}}}, "'eigenvalues' has 3 entries");
    refused({{"eigenvalues", {3, nullptr, 1, 0}}}, "'eigenvalues'");
    auto rows = good["loadings"];
    rows[1][2] = 1e308;
    refused({{"loadings", rows}}, "row 2 of 'loadings'");
    rows = good["loadings"];
    for (auto& x : rows[2])
        x = 0;
    refused({{"loadings", rows}}, "row 3 of 'loadings'");
    rows = good["loadings"];
    rows[2] = rows[0];
    refused({{"loadings", rows}}, "rows 1 and 3 of 'loadings' are not orthogonal");
    rows = good["loadings"];
    rows[0].erase(3);
    refused({{"loadings", rows}}, "'loadings' has 3 entries instead of 4");
    rows[0] = "x";
    refused({{"loadings", rows}}, "'loadings'");
    refused({{"minimum", {9, 2, 3, 4}}}, "minimum of feature 1");
    refused({{"minimum", nullptr}}, "only one of");
    refused({{"maximum", {5, 6, 7}}}, "'maximum' has 3 entries");
    refused({{"values", {{"scale", 0}}}}, "'scale' of its values is 0");
    refused({{"values", "x"}}, "'values'");
    refused({{"values", {{"offset", {1, 2, 3}}}}}, "'offset'");
    refused({{"values", {{"unit", 1}}}}, "'unit'");
    std::string text = good.dump();
    for (size_t cut = 0; cut < text.size(); cut += 13)
        EXPECT_THROW(pca::from_json(text.substr(0, cut), "m"), Error);
    text.replace(text.find("\"mean\":[") + 8, 1, "[NaN,");
    EXPECT_THROW(pca::from_json(text, "m"), Error);
}

TEST(Pca, ARescaledModelGivesTheSameComponents) {
    const Cube scene = random_scene(40, 30, 5, 12, 0.02, 3000);
    Cube percent = scene;
    for (int b = 0; b < 5; ++b)
        for (int64_t p = 0; p < scene.shape.pixels(); ++p)
            percent.at(b, p / 40, p % 40) = scene.at(b, p / 40, p % 40) * (b == 2 ? 0.02f : 0.01f) + 5;
    for (const bool scaled : {false, true}) {
        auto model = fit(scene, {5, scaled, true});
        model.value_scale.assign(5, 1e-4);
        model.value_offset.assign(5, 0);
        const model::ValueScale other{
            {0.01, 0.01, 0.005, 0.01, 0.01}, {-0.05, -0.05, -0.025, -0.05, -0.05}, ""};
        const Cube want = components(scene, model, 5);
        const auto by = model::rescaling("m", model, other);
        ASSERT_EQ(by.factor.size(), 5u);
        pca::rescale(model, by, other);
        const Cube got = components(percent, model, 5);
        for (int64_t p = 0; p < scene.shape.pixels(); ++p)
            for (int k = 0; k < 5; ++k)
                EXPECT_NEAR(value(got, k, p), value(want, k, p), 2e-3); // whitened, so relative to 1
        EXPECT_TRUE(model::rescaling("m", model, other).none());
    }
}

TEST(Pca, ImpossibleNumbersOfComponentsNameTheRange) {
    const Cube scene = random_scene(20, 20, 4, 13);
    for (int nc : {-1, 0, 5})
        EXPECT_THROW(fit(scene, {nc, false, false}), UsageError);
    EXPECT_NO_THROW(fit(scene, {4, false, false}));
}

/// Rounding errors in dimensions that four pixels cannot span exceed the limit for eigenvalues.
TEST(Pca, PixelsSpanFewerDimensionsThanTheyAre) {
    const auto model = fit(random_scene(2, 2, 40, 7), {7, false, false});
    EXPECT_EQ(model.rank(), 3);
}

} // namespace
} // namespace hsi::test
