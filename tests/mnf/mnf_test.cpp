// SPDX-License-Identifier: MIT
#include "core/error.h"
#include "core/json.h"
#include "mnf/mnf.h"
#include "stream/pipeline.h"
#include "support/jacobi.h"
#include "support/memory_cube.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <tuple>

namespace hsi::test {
namespace {

stream::PassOptions pass(int64_t samples, int64_t lines, int lanes) {
    stream::PassOptions options;
    options.lanes = lanes;
    options.tile_samples = samples;
    options.tile_lines = lines;
    return options;
}

mnf::Fit fit(const Cube& scene, int64_t samples = 0, int64_t lines = 0, int lanes = 1) {
    const MemorySource source(scene);
    stream::StatisticsScan scan(scene.shape, stream::Statistics::differences);
    stream::run_pass(source, scan, {}, pass(samples, lines, lanes));
    return mnf::fit(scan.result());
}

Cube transform(const Cube& scene, pca::Transform t, int64_t samples = 0, int64_t lines = 0, int lanes = 1) {
    const MemorySource source(scene);
    MemorySink sink(scene.shape.samples, scene.shape.lines, t.outputs);
    const auto operation = pca::make_transform(std::move(t));
    stream::run_pass(source, *operation, {&sink}, pass(samples, lines, lanes));
    return sink.cube;
}

/// Returns a smooth scene with noise in every band, correlated between neighbouring bands.
Cube noisy_scene(int64_t samples, int64_t lines, int bands, uint32_t seed) {
    Cube cube(samples, lines, bands);
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    for (int64_t l = 0; l < lines; ++l)
        for (int64_t s = 0; s < samples; ++s) {
            const double u = std::sin(0.03 * static_cast<double>(s)) + 0.02 * static_cast<double>(l),
                         v = std::cos(0.05 * static_cast<double>(l) + 0.01 * static_cast<double>(s)),
                         shared = normal(random);
            for (int b = 0; b < bands; ++b)
                cube.at(b, l, s) =
                    static_cast<float>(1000 + 200 * u * std::cos(0.3 * b) + 90 * v * std::sin(0.2 * b + 1) +
                                       (3 + b % 5) * (normal(random) + 0.5 * shared));
        }
    return cube;
}

struct Reference {
    std::vector<long double> mean, eigenvalues;
    Matrix covariance, noise, loadings; ///< loadings: one row per component
};

bool valid(const Cube& cube, int64_t line, int64_t sample) {
    bool any = false;
    for (int b = 0; b < cube.shape.bands; ++b) {
        if (!std::isfinite(cube.at(b, line, sample))) return false;
        any = any || cube.at(b, line, sample) != 0;
    }
    return any;
}

/// Computes the definition in long double: Cn is whitened by its eigenvectors (not by Cholesky), and C is
/// transformed to their basis.
Reference reference(const Cube& cube) {
    const auto n = static_cast<size_t>(cube.shape.bands);
    const auto at = [&](size_t b, int64_t l, int64_t s) {
        return static_cast<long double>(cube.at(static_cast<int>(b), l, s));
    };
    Reference r;
    r.mean.assign(n, 0);
    r.covariance.assign(n * n, 0);
    r.noise.assign(n * n, 0);
    long double pixels = 0, pairs = 0;
    for (int round = 0; round < 2; ++round)
        for (int64_t l = 0; l < cube.shape.lines; ++l)
            for (int64_t s = 0; s < cube.shape.samples; ++s) {
                if (!valid(cube, l, s)) continue;
                const bool pair = s + 1 < cube.shape.samples && valid(cube, l, s + 1);
                if (round == 0) {
                    pixels += 1;
                    pairs += pair;
                    for (size_t b = 0; b < n; ++b)
                        r.mean[b] += at(b, l, s);
                    continue;
                }
                for (size_t a = 0; a < n; ++a)
                    for (size_t b = 0; b < n; ++b) {
                        r.covariance[a * n + b] += (at(a, l, s) - r.mean[a] / pixels) *
                                                   (at(b, l, s) - r.mean[b] / pixels) / (pixels - 1);
                        if (pair)
                            r.noise[a * n + b] += (at(a, l, s + 1) - at(a, l, s)) *
                                                  (at(b, l, s + 1) - at(b, l, s)) / (2 * pairs);
                    }
            }
    for (auto& m : r.mean)
        m /= pixels;
    const auto [noise, frame] = jacobi(r.noise, n);
    Matrix half(n * n, 0), turned(n * n, 0);
    for (size_t k = 0; k < n; ++k)
        for (size_t a = 0; a < n; ++a)
            for (size_t b = 0; b < n; ++b)
                half[k * n + a] += frame[k * n + b] * r.covariance[b * n + a] / std::sqrt(noise[k]);
    for (size_t k = 0; k < n; ++k)
        for (size_t m = 0; m < n; ++m)
            for (size_t a = 0; a < n; ++a)
                turned[k * n + m] += half[k * n + a] * frame[m * n + a] / std::sqrt(noise[m]);
    const auto [values, vectors] = jacobi(turned, n);
    r.eigenvalues = values;
    r.loadings.assign(n * n, 0);
    for (size_t k = 0; k < n; ++k) {
        size_t largest = 0;
        for (size_t b = 0; b < n; ++b) {
            for (size_t m = 0; m < n; ++m)
                r.loadings[k * n + b] += vectors[k * n + m] * frame[m * n + b] / std::sqrt(noise[m]);
            if (std::fabs(r.loadings[k * n + b]) > std::fabs(r.loadings[k * n + largest])) largest = b;
        }
        if (r.loadings[k * n + largest] < 0)
            for (size_t b = 0; b < n; ++b)
                r.loadings[k * n + b] *= -1;
    }
    return r;
}

void expect_reference(const Cube& scene) {
    const auto want = reference(scene);
    const auto found = fit(scene);
    const auto n = want.mean.size();
    ASSERT_EQ(found.kept.size(), n);
    EXPECT_FALSE(found.model.regularised);
    const Cube y =
        transform(scene, mnf::projection(found.model, found.model.components, found.kept, scene.shape.bands));
    for (size_t k = 0; k < n; ++k) {
        const auto l = want.eigenvalues[k];
        EXPECT_NEAR(found.model.eigenvalues[k], static_cast<double>(l), 1e-8 * static_cast<double>(l)) << k;
        for (size_t m = 0; m <= k; ++m) { // checks V'Cn V = I
            long double product = 0;
            for (size_t a = 0; a < n; ++a)
                for (size_t b = 0; b < n; ++b)
                    product += static_cast<long double>(found.model.loading(static_cast<int>(k))[a]) *
                               want.noise[a * n + b] *
                               static_cast<long double>(found.model.loading(static_cast<int>(m))[b]);
            EXPECT_NEAR(static_cast<double>(product), k == m ? 1.0 : 0.0, 1e-8) << k << "," << m;
        }
        const bool apart = (k == 0 || want.eigenvalues[k - 1] > l * (1 + 1e-4L)) &&
                           (k + 1 == n || l > want.eigenvalues[k + 1] * (1 + 1e-4L));
        if (!apart) continue;
        for (int64_t line = 0; line < scene.shape.lines; ++line)
            for (int64_t s = 0; s < scene.shape.samples; ++s) {
                const float got = y.at(static_cast<int>(k), line, s);
                if (!valid(scene, line, s)) {
                    EXPECT_TRUE(std::isnan(got));
                    continue;
                }
                long double value = 0;
                for (size_t b = 0; b < n; ++b)
                    value +=
                        want.loadings[k * n + b] *
                        (static_cast<long double>(scene.at(static_cast<int>(b), line, s)) - want.mean[b]);
                EXPECT_NEAR(got, static_cast<double>(value), 2e-4 * std::sqrt(static_cast<double>(l)));
            }
    }
}

TEST(Mnf, IsTheDefinition) {
    expect_reference(noisy_scene(60, 40, 9, 1));
    Cube holes = noisy_scene(53, 31, 12, 2);
    for (int64_t l = 3; l < 30; l += 2)
        for (int64_t s = l % 5; s < 53; s += 4)
            make_invalid(holes, l, s, static_cast<int>(s % 12));
    for (int b = 0; b < 12; ++b)
        holes.at(b, 0, 7) = 0;
    expect_reference(holes);
}

TEST(Mnf, NoiseOfComponentsIsOne) {
    const Cube scene = noisy_scene(80, 50, 10, 3);
    const auto found = fit(scene);
    const Cube y = transform(scene, mnf::projection(found.model, 10, found.kept, 10));
    for (int a = 0; a < 10; ++a)
        for (int b = 0; b <= a; ++b) {
            double noise = 0;
            for (int64_t l = 0; l < 50; ++l)
                for (int64_t s = 0; s + 1 < 80; ++s)
                    noise += (static_cast<double>(y.at(a, l, s + 1)) - static_cast<double>(y.at(a, l, s))) *
                             (static_cast<double>(y.at(b, l, s + 1)) - static_cast<double>(y.at(b, l, s)));
            EXPECT_NEAR(noise / (2.0 * 50 * 79), a == b ? 1.0 : 0.0, 1e-4);
        }
    EXPECT_GT(found.model.snr(0), 100); // the signal has two fields
    EXPECT_GT(found.model.snr(1), 10);
    EXPECT_LT(found.model.snr(2), 0.5);
}

TEST(Mnf, IsBitIdenticalForEveryTilingAndNumberOfThreads) {
    Cube scene = noisy_scene(1100, 40, 7, 4);
    make_invalid(scene, 17, 1023, 1);
    const auto whole = fit(scene);
    const Cube y = transform(scene, mnf::projection(whole.model, 5, whole.kept, 7));
    for (auto [samples, lines, lanes] :
         {std::tuple{1024, 8, 2}, {1024, 16, 3}, {1, 1, 1}, {2048, 24, 2}, {513, 11, 4}}) {
        const auto cut = fit(scene, samples, lines, lanes);
        EXPECT_EQ(cut.model.eigenvalues, whole.model.eigenvalues);
        EXPECT_EQ(cut.model.loadings, whole.model.loadings);
        EXPECT_EQ(cut.model.inverse, whole.model.inverse);
        EXPECT_TRUE(identical(
            transform(scene, mnf::projection(cut.model, 5, cut.kept, 7), samples, lines, lanes), y));
    }
}

TEST(Mnf, BandsWithoutNoiseAreLeftOut) {
    const Cube small = noisy_scene(40, 30, 5, 5);
    Cube scene(40, 30, 7);
    for (int64_t l = 0; l < 30; ++l)
        for (int64_t s = 0; s < 40; ++s)
            for (int b = 0, from = 0; b < 7; ++b)
                scene.at(b, l, s) = b == 2   ? 4.0f
                                    : b == 6 ? static_cast<float>(l) // differs, but not within lines
                                             : small.at(from++, l, s);
    const auto want = fit(small), got = fit(scene);
    EXPECT_EQ(got.kept, (std::vector<int>{0, 1, 3, 4, 5}));
    EXPECT_EQ(got.model.loadings, want.model.loadings);
    EXPECT_EQ(got.model.eigenvalues, want.model.eigenvalues);
    EXPECT_EQ(got.model.mean, want.model.mean);
    EXPECT_TRUE(identical(transform(scene, mnf::projection(got.model, 5, got.kept, 7)),
                          transform(small, mnf::projection(want.model, 5, want.kept, 5))));
}

TEST(Mnf, TheInverseOfAllComponentsIsTheScene) {
    Cube scene = noisy_scene(40, 30, 9, 6);
    make_invalid(scene, 3, 4, 5);
    const auto found = fit(scene);
    const Cube back = transform(transform(scene, mnf::projection(found.model, 9, found.kept, 9)),
                                mnf::reconstruction(found.model, 9));
    const auto [low, high] = std::minmax_element(scene.values.begin(), scene.values.end());
    for (size_t i = 0; i < scene.values.size(); ++i)
        if (i % 1200 == 3 * 40 + 4)
            EXPECT_TRUE(std::isnan(back.values[i]));
        else
            EXPECT_NEAR(back.values[i], scene.values[i], 1e-6 * static_cast<double>(*high - *low) + 1e-4);
}

TEST(Mnf, FewComponentsTakeNoiseAway) {
    Cube clean(80, 60, 20), noisy = clean;
    std::mt19937 random(7);
    std::normal_distribution<double> normal;
    for (int64_t l = 0; l < 60; ++l)
        for (int64_t s = 0; s < 80; ++s)
            for (int b = 0; b < 20; ++b) {
                clean.at(b, l, s) =
                    static_cast<float>(500 + 200 * std::sin(0.02 * static_cast<double>(s) + b) +
                                       3 * static_cast<double>(l) * std::cos(b));
                noisy.at(b, l, s) = clean.at(b, l, s) + static_cast<float>(20 * normal(random));
            }
    const auto found = fit(noisy);
    const Cube smooth = transform(transform(noisy, mnf::projection(found.model, 3, found.kept, 20)),
                                  mnf::reconstruction(found.model, 3));
    double before = 0, after = 0;
    for (size_t i = 0; i < clean.values.size(); ++i) {
        before += std::pow(static_cast<double>(noisy.values[i] - clean.values[i]), 2);
        after += std::pow(static_cast<double>(smooth.values[i] - clean.values[i]), 2);
    }
    EXPECT_LT(after, 0.25 * before); // 3 of 20 components contain 3/20 of the noise
}

TEST(Mnf, SingularNoiseIsRegularised) {
    Cube scene = noisy_scene(40, 30, 6, 8);
    for (int64_t p = 0; p < 1200; ++p)
        scene.values[static_cast<size_t>(4 * 1200 + p)] = 2 * scene.values[static_cast<size_t>(p)];
    const auto twice = fit(scene);
    EXPECT_TRUE(twice.model.regularised);
    for (const double v : twice.model.loadings)
        EXPECT_TRUE(std::isfinite(v));
    const Cube back = transform(transform(scene, mnf::projection(twice.model, 6, twice.kept, 6)),
                                mnf::reconstruction(twice.model, 6));
    for (size_t i = 0; i < scene.values.size(); ++i)
        EXPECT_NEAR(back.values[i], scene.values[i], 0.05);
    EXPECT_TRUE(fit(noisy_scene(4, 2, 6, 9)).model.regularised); // 6 pairs of pixels
    EXPECT_FALSE(fit(noisy_scene(8, 2, 6, 9)).model.regularised);
}

TEST(Mnf, ScenesWithoutPairsAreErrors) {
    EXPECT_THROW(fit(noisy_scene(1, 30, 4, 10)), Error);
    Cube sieve = noisy_scene(20, 20, 4, 11);
    for (int64_t l = 0; l < 20; ++l)
        for (int64_t s = l % 2; s < 20; s += 2)
            make_invalid(sieve, l, s, 0);
    EXPECT_THROW(fit(sieve), Error);
    EXPECT_THROW(fit(Cube(20, 20, 4, 3.0f)), Error);
}

mnf::Model complete_model() {
    auto model = fit(noisy_scene(30, 20, 4, 12)).model;
    model.bands = {1, 2, 3, 5};
    model.wavelengths_nm = {400, 410, 420, std::nan("")};
    model.value_scale = {1e-4, 1e-4, 1e-4, 2e-4};
    model.value_offset = {0, 0, 0, 1};
    model.minimum = {1, 2, 3, 4};
    model.maximum = {5, 6, 7, 8};
    model.source = "scene \"x\".img";
    return model;
}

TEST(Mnf, TheModelSurvivesItsFile) {
    const auto model = complete_model();
    const auto back = mnf::from_json(mnf::to_json(model), "m.json");
    EXPECT_EQ(mnf::to_json(back), mnf::to_json(model));
    EXPECT_EQ(back.loadings, model.loadings);
    EXPECT_EQ(back.inverse, model.inverse);
    EXPECT_EQ(back.eigenvalues, model.eigenvalues);
    EXPECT_EQ(back.pairs, model.pairs);
    EXPECT_EQ(back.components, 4);
    EXPECT_TRUE(std::isnan(back.wavelengths_nm[3]));
}

TEST(Mnf, DamagedModelsAreRefusedByTheNameOfTheEntry) {
    const auto good = Json::parse(mnf::to_json(complete_model()));
    const auto refused = [&](const Json& patch, const std::string& words) {
        auto bad = good;
        bad.merge_patch(patch);
        try {
            mnf::from_json(bad.dump(), "m.json");
            ADD_FAILURE() << patch << " was taken";
        } catch (const Error& e) {
            const std::string what = e.what();
            EXPECT_NE(what.find("'m.json' is not a usable MNF model"), std::string::npos) << what;
            EXPECT_NE(what.find(words), std::string::npos) << patch << ": " << what;
        }
    };
    for (const char* key : {"version", "pixels", "pairs", "regularised", "eigenvalues", "bands",
                            "wavelengths_nm", "mean", "loadings", "inverse_loadings"})
        refused({{key, nullptr}}, std::string("'") + key + "' is missing");
    refused({{"format", "gdal_hsi_pca"}}, "its format is not");
    refused({{"pairs", 1}}, "'pairs'");
    refused({{"regularised", 1}}, "'regularised'");
    refused({{"eigenvalues", {3, 4, 1, 0}}}, "entry 2 of 'eigenvalues' is larger");
    auto rows = good["loadings"];
    rows[1][2] = rows[1][2].get<double>() * 1.5;
    refused({{"loadings", rows}}, "'loadings' and 'inverse_loadings'");
    rows = good["inverse_loadings"];
    rows.erase(3);
    refused({{"inverse_loadings", rows}}, "'inverse_loadings' has 3 entries");
    rows = good["inverse_loadings"];
    for (size_t b = 0; b < 4; ++b)
        rows[2][b] = rows[2][b].get<double>() + rows[0][b].get<double>();
    refused({{"inverse_loadings", rows}}, "are not orthogonal");
}

TEST(Mnf, ARescaledModelGivesTheSameComponents) {
    const Cube scene = noisy_scene(40, 30, 5, 13);
    Cube percent = scene;
    for (int b = 0; b < 5; ++b)
        for (int64_t p = 0; p < 1200; ++p)
            percent.at(b, p / 40, p % 40) = scene.at(b, p / 40, p % 40) * (b == 2 ? 0.02f : 0.01f) + 5;
    auto model = fit(scene).model;
    model.value_scale.assign(5, 1e-4);
    model.value_offset.assign(5, 0);
    const model::ValueScale other{{0.01, 0.01, 0.005, 0.01, 0.01}, {-0.05, -0.05, -0.025, -0.05, -0.05}, ""};
    const std::vector<int> all{0, 1, 2, 3, 4};
    const Cube want = transform(scene, mnf::projection(model, 5, all, 5));
    const auto by = model::rescaling("m", model, other);
    ASSERT_EQ(by.factor.size(), 5u);
    mnf::rescale(model, by, other);
    const Cube got = transform(percent, mnf::projection(model, 5, all, 5));
    for (size_t i = 0; i < want.values.size(); ++i)
        EXPECT_NEAR(got.values[i], want.values[i], 2e-3);
    const Cube back = transform(got, mnf::reconstruction(model, 5));
    for (size_t i = 0; i < back.values.size(); ++i)
        EXPECT_NEAR(back.values[i], percent.values[i], 1e-4);
}

/// The SNR of the first component of white noise equals chance_snr(). This is the limit for large matrices,
/// whose greatest eigenvalue varies little.
TEST(Mnf, NoiseHasTheSnrOfChance) {
    for (const auto& [samples, lines, bands] :
         {std::tuple(40, 30, 100), std::tuple(60, 20, 60), std::tuple(100, 30, 40)}) {
        Cube cube(samples, lines, bands);
        std::mt19937 random(static_cast<uint32_t>(bands));
        std::normal_distribution<float> normal(5, 1);
        for (float& v : cube.values)
            v = normal(random);
        const auto model = fit(cube).model;
        const double expected = mnf::chance_snr(model.pairs, bands);
        EXPECT_NEAR(model.snr(0), expected, 0.15 * expected) << bands;
    }
    EXPECT_TRUE(std::isinf(mnf::chance_snr(60, 60)));
    EXPECT_NEAR(mnf::chance_snr(746, 100), 1, 0.01);
    EXPECT_NEAR(mnf::chance_snr(64, 60), 510, 1);
}

} // namespace
} // namespace hsi::test
