// SPDX-License-Identifier: MIT
// Evaluation of models, compared with plain sums in long double: any number of members, with and without a
// domain, each kernel. The pass has equal bits for every tiling and thread count. Models can be read from
// their own text.
#include "regression/train.h"

#include "core/error.h"
#include "core/json.h"
#include "regression/regression_models.h"
#include "stream/pipeline.h"
#include "support/memory_cube.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace hsi::test {
namespace {

using namespace regression;

constexpr int bands = few_bands;

struct Expected {
    double estimate, deviation; ///< NaN if undefined
    double t2, q;
};

/// Computes the result by the definitions in long double, with M^-1 k by elimination.
Expected expected_of(const Model& m, const std::vector<double>& x) {
    using Long = long double;
    Expected e{};
    std::vector<Long> all;
    for (size_t d = 0; d < m.members(); ++d) {
        Long sum = m.linear.intercepts[d];
        for (size_t b = 0; b < bands; ++b)
            sum += Long(m.linear.coefficients[d * bands + b]) * x[b];
        all.push_back(sum);
    }
    e.deviation = std::nan("");
    if (m.is_linear()) {
        const Long mean = std::accumulate(all.begin(), all.end(), Long(0)) / static_cast<Long>(all.size());
        Long squares = 0;
        for (const Long v : all)
            squares += (v - mean) * (v - mean);
        e.estimate = static_cast<double>(mean);
        if (all.size() > 1)
            e.deviation = static_cast<double>(std::sqrt(squares / static_cast<Long>(all.size() - 1)));
    } else {
        const Kernel& k = m.kernel;
        const size_t n = k.weights.size();
        const bool gp = m.method == Method::gp;
        const auto near = [&](const auto& a, const auto& b) {
            Long d2 = 0;
            for (size_t band = 0; band < bands; ++band)
                d2 += (a(band) - b(band)) * (a(band) - b(band));
            return std::exp(-d2 * (gp ? 1 / (2 * Long(k.length) * k.length) : Long(k.gamma)));
        };
        const auto sample = [&](size_t s) {
            return [&k, s](size_t band) { return Long(k.samples[s * bands + band]); };
        };
        const auto pixel = [&](size_t band) {
            return (Long(x[band]) - k.standard.centre[band]) / k.standard.spread[band];
        };
        std::vector<Long> to;
        Long sum = gp ? 0 : -Long(k.rho);
        for (size_t s = 0; s < n; ++s) {
            to.push_back(near(pixel, sample(s)));
            sum += k.weights[s] * to.back();
        }
        e.estimate = static_cast<double>(k.value_mean + k.value_spread * sum);
        if (gp) {
            std::vector<std::vector<Long>> a(n, std::vector<Long>(n + 1));
            for (size_t i = 0; i < n; ++i) {
                for (size_t j = 0; j < n; ++j)
                    a[i][j] = near(sample(i), sample(j)) + (i == j ? Long(k.noise) : 0);
                a[i][n] = to[i];
            }
            for (size_t p = 0; p < n; ++p)
                for (size_t i = 0; i < n; ++i) {
                    const Long f = a[i][p] / a[p][p];
                    for (size_t j = p; j <= n && i != p; ++j)
                        a[i][j] -= f * a[p][j];
                }
            Long explained = 0;
            for (size_t i = 0; i < n; ++i)
                explained += to[i] * a[i][n] / a[i][i];
            e.deviation = static_cast<double>(
                k.value_spread * std::sqrt(std::max(Long(0), k.variance * (1 + k.noise - explained))));
        }
    }
    if (!m.domain) return e;
    Long q = 0, t2 = 0;
    std::vector<Long> z;
    for (size_t b = 0; b < bands; ++b) {
        z.push_back((Long(x[b]) - m.domain->standard.centre[b]) / m.domain->standard.spread[b]);
        q += z.back() * z.back();
    }
    for (size_t c = 0; c < m.domain->variances.size(); ++c) {
        Long t = 0;
        for (size_t b = 0; b < bands; ++b)
            t += m.domain->components[c * bands + b] * z[b];
        q -= t * t;
        t2 += t * t / m.domain->variances[c];
    }
    e.q = static_cast<double>(q);
    e.t2 = static_cast<double>(t2);
    return e;
}

Cube map_of(const std::shared_ptr<Model>& model, const Inputs& inputs, const Cube& scene, int threads,
            int64_t tile) {
    const auto operation = make_estimation(scene.shape.bands, {{model, inputs}});
    MemorySink sink(scene.shape.samples, scene.shape.lines, 3);
    stream::PassOptions options;
    options.lanes = threads;
    options.tile_samples = tile;
    options.tile_lines = tile;
    stream::run_pass(MemorySource(scene), *operation, {&sink}, options);
    return sink.cube;
}

TEST(Regression, EstimatesAreThoseOfTheDefinition) {
    Cube scene = random_scene(37, 5, bands, 3);
    make_invalid(scene, 2, 3, 4);
    for (int b = 0; b < bands; ++b)
        scene.at(b, 1, 36) = 0;
    for (const auto& [name, model] : models()) {
        const Cube map = map_of(model, as_they_are(), scene, 1, 0);
        for (int64_t l = 0; l < 5; ++l)
            for (int64_t s = 0; s < 37; ++s) {
                std::vector<double> x;
                for (int b = 0; b < bands; ++b)
                    x.push_back(scene.at(b, l, s));
                if ((l == 2 && s == 3) || (l == 1 && s == 36)) {
                    EXPECT_TRUE(std::isnan(map.at(0, l, s)) && std::isnan(map.at(1, l, s)) &&
                                std::isnan(map.at(2, l, s)));
                    continue;
                }
                const Expected e = expected_of(*model, x);
                EXPECT_NEAR(map.at(0, l, s), e.estimate, 1e-6 * (1 + std::fabs(e.estimate))) << name;
                if (std::isnan(e.deviation))
                    EXPECT_TRUE(std::isnan(map.at(1, l, s))) << name;
                else
                    EXPECT_NEAR(map.at(1, l, s), e.deviation, 1e-6) << name;
                float outside = e.estimate < model->lowest || e.estimate > model->highest ? 1 : 0;
                if (model->domain && (e.t2 > 4 || e.q > 9)) outside += 2;
                EXPECT_EQ(map.at(2, l, s), outside) << name;
            }
    }
}

/// If components contain the whole of each spectrum, Q consists of rounding errors only.
TEST(Regression, NoPixelIsOutsideByRounding) {
    const auto model = linear_model(3, true);
    Domain& d = *model->domain;
    d.components.assign(bands * bands, 0.0);
    for (size_t b = 0; b < bands; b += 2) { // rotated by 45 degrees in pairs
        const double half = b + 1 < bands ? std::sqrt(0.5) : 1;
        d.components[b * bands + b] = half;
        if (b + 1 == bands) break;
        d.components[b * bands + b + 1] = d.components[(b + 1) * bands + b] = half;
        d.components[(b + 1) * bands + b + 1] = -half;
    }
    d.variances.assign(bands, 1.0);
    d.t2_limit = 1e6;
    d.q_limit = 1e-18;
    const Cube map = map_of(model, as_they_are(), random_scene(50, 20, bands, 4), 1, 0);
    for (int64_t l = 0; l < 20; ++l)
        for (int64_t s = 0; s < 50; ++s)
            EXPECT_LT(map.at(2, l, s), 2);
}

TEST(Regression, BitsDependOnNoTileAndNoThread) {
    const Cube scene = random_scene(83, 29, bands, 5);
    for (const auto& [name, model] : models()) {
        const Cube map = map_of(model, as_they_are(), scene, 1, 0);
        for (const int64_t tile : {1, 7, 25})
            EXPECT_TRUE(identical(map, map_of(model, as_they_are(), scene, 3, tile))) << name << " " << tile;
    }
}

/// Uses bands of a scene with scale and offset, weighted to the bands of the model.
TEST(Regression, InputsAreWeightedSumsOfScaledValues) {
    const Cube scene = random_scene(31, 3, 2 * bands, 9);
    Cube model_scene(31, 3, bands);
    Inputs inputs;
    for (size_t b = 0; b < 2 * bands; ++b) {
        inputs.scale.push_back(0.5 + 0.1 * static_cast<double>(b));
        inputs.offset.push_back(0.01 * static_cast<double>(b));
    }
    for (size_t b = 0; b < bands; ++b)
        inputs.bands.push_back({b, {2 * b, 2 * b + 1}, {0.25, 0.75}});
    for (int64_t l = 0; l < 3; ++l)
        for (int64_t s = 0; s < 31; ++s)
            for (int b = 0; b < bands; ++b) {
                const auto scaled = [&](int band) {
                    const auto k = static_cast<size_t>(band);
                    return scene.at(band, l, s) * inputs.scale[k] + inputs.offset[k];
                };
                model_scene.at(b, l, s) = static_cast<float>(0.25 * scaled(2 * b) + 0.75 * scaled(2 * b + 1));
            }
    const auto model = linear_model(20, true);
    const Cube direct = map_of(model, as_they_are(), model_scene, 1, 0),
               made = map_of(model, inputs, scene, 1, 0);
    for (size_t i = 0; i < direct.values.size(); ++i)
        EXPECT_NEAR(made.values[i], direct.values[i], 1e-5);
}

TEST(Regression, ModelsComeBackFromTheirText) {
    for (const auto& [name, model] : models()) {
        const std::string text = to_json(*model);
        EXPECT_EQ(to_json(from_json(text, "model")), text) << name;
    }
    const auto model = linear_model(3, false);
    model->wavelengths_nm.resize(bands);
    std::iota(model->wavelengths_nm.begin(), model->wavelengths_nm.end(), 500.0);
    const Model back = from_json(to_hytools(*model), "trait");
    EXPECT_EQ(back.linear.coefficients, model->linear.coefficients);
    EXPECT_EQ(back.linear.intercepts, model->linear.intercepts);
    EXPECT_FALSE(back.domain);
}

/// Steps of a transform, in our models and in HyTools' models.
TEST(Regression, ATransformHasUpToSixteenSteps) {
    const auto model = linear_model(1, false);
    model->wavelengths_nm.resize(bands);
    std::iota(model->wavelengths_nm.begin(), model->wavelengths_nm.end(), 500.0);
    model->transform = {std::vector<Step>(16, Step{Step::Kind::snv, 0}), {}, bands};
    for (const std::string& text : {to_json(*model), to_hytools(*model)}) {
        EXPECT_EQ(from_json(text, "model").transform.steps().size(), 16u);
        Json more = Json::parse(text);
        more.erase("checksum");
        (more.contains("transform") ? more : more["model"])["transform"].push_back("snv");
        try {
            from_json(more.dump(), "model");
            ADD_FAILURE() << "read";
        } catch (const Error& error) {
            EXPECT_NE(std::string(error.what()).find("17 steps, but at most 16 are possible"),
                      std::string::npos)
                << error.what();
            EXPECT_NE(std::string(error.what()).find("model"), std::string::npos) << error.what();
        }
    }
}

TEST(Regression, FoldsAndMembersFollowTheirWords) {
    std::vector<int> group(10);
    std::iota(group.begin(), group.end(), 0);
    EXPECT_EQ(folds_of(group, 3, 1), (std::vector<int>{0, 1, 2, 2, 2, 0, 1, 1, 0, 0}));
    for (const auto& [d, left_out] : {std::pair{0, std::pair{2, 5}}, {1, {1, 3}}}) {
        const auto chosen = member_groups(10, 0.8, d, 1);
        for (int g = 0; g < 10; ++g)
            EXPECT_EQ(chosen[static_cast<size_t>(g)] != 0, g != left_out.first && g != left_out.second);
    }
}

} // namespace
} // namespace hsi::test
