// SPDX-License-Identifier: MIT
// Bands of wavelengths and ranges, their measures against closed forms, and the pass, which has equal bits
// for every tiling and thread count.
#include "indices/indices.h"

#include "core/error.h"
#include "stream/pipeline.h"
#include "support/memory_cube.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

namespace hsi::test {
namespace {

using indices::Bands;
using indices::Choice;
using indices::Choosing;
using indices::Expression;
using indices::Term;

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

Term term_of(const std::string& text, const Bands& bands, const Choosing& choosing) {
    return indices::term_of(Expression(text).operands().front(), bands, choosing);
}

TEST(Indices, BandsOfAWavelength) {
    // Two detectors overlap; one band has no wavelength.
    const Bands bands{{790, 805, unknown, 795, 820, 805}, {}, {3, 4, 7, 9, 10, 11}, {}, {}};
    const struct {
        const char* text;
        Choosing choosing;
        std::vector<size_t> sources;
        std::vector<double> weights;
    } rows[] = {
        // 805 and 795 are equally near: the first in the file wins
        {"r800", {Choice::nearest, 10, 10}, {1}, {1}},
        {"r797", {Choice::nearest, 10, 10}, {3}, {1}},
        {"r830", {Choice::nearest, 10, 10}, {4}, {1}},
        {"r830.1", {Choice::nearest, 10, 10}, {}, {}},
        {"r795", {Choice::nearest, 0, 10}, {3}, {1}},
        {"r796", {Choice::nearest, 0, 10}, {}, {}},
        {"r800", {Choice::linear, 10, 10}, {3, 1}, {0.5, 0.5}},
        {"r807", {Choice::linear, 10, 10}, {1, 4}, {13.0 / 15, 2.0 / 15}},
        {"r805", {Choice::linear, 0, 10}, {1}, {1}},
        {"r800", {Choice::linear, 2.5, 10}, {3, 1}, {0.5, 0.5}},
        {"r800", {Choice::linear, 2.4, 10}, {}, {}},
        {"r789", {Choice::linear, 10, 10}, {}, {}},
        {"r821", {Choice::linear, 10, 10}, {}, {}},
        {"r800", {Choice::average, 10, 10}, {3, 1}, {0.5, 0.5}},
        {"r812", {Choice::average, 10, 10}, {}, {}},
        {"b9", {}, {3}, {1}},
        {"b7", {}, {2}, {1}},
        {"b5", {}, {}, {}},
        {"mean(r[790:805])", {}, {0, 3, 1}, {}},
        {"slope(r[791:800])", {}, {}, {}},
        {"mean(r[791:800])", {}, {3}, {}},
        {"edge(r[790:820])", {}, {0, 3, 1, 4}, {}},
        {"edge(r[790:819])", {}, {}, {}},
        {"mean(r[100:200])", {}, {}, {}},
    };
    for (const auto& row : rows) {
        const auto term = term_of(row.text, bands, row.choosing);
        EXPECT_EQ(term.sources, row.sources) << row.text;
        ASSERT_EQ(term.weights.size(), row.weights.size()) << row.text;
        for (size_t k = 0; k < row.weights.size(); ++k)
            EXPECT_NEAR(term.weights[k], row.weights[k], 1e-15) << row.text;
    }
    const Bands even{{780, 790, 800, 810, 820}, {10, 10, 10, 10, 10}, {}, {}, {}};
    double sum = 0, centre = 0;
    const auto term = term_of("r800", even, {Choice::response, 10, 20});
    for (size_t k = 0; k < term.sources.size(); ++k) {
        sum += term.weights[k];
        centre += term.weights[k] * even.wavelengths[term.sources[k]];
    }
    EXPECT_NEAR(sum, 1, 1e-12);
    EXPECT_NEAR(centre, 800, 1e-9);
    EXPECT_GT(term.sources.size(), 1u);
}

double value_of(const std::string& text, const std::vector<double>& spectrum, const Bands& bands) {
    return indices::indices_of({spectrum}, {text}, bands).front().front();
}

TEST(Indices, MeasuresOfARange) {
    const std::vector<double> x{500, 510, 530, 540, 560};
    const struct {
        const char* text;
        std::vector<double> v;
        double value;
    } rows[] = {
        {"mean(r[500:560])", {1, 2, 3, 4, 10}, 4},
        {"sum(r[500:560])", {1, 2, 3, 4, 10}, 20},
        {"min(r[505:560])", {1, 2, 3, 1.5, 10}, 1.5},
        {"max(r[500:555])", {1, 2, 3, 4, 10}, 4},
        {"std(r[500:530])", {1, 2, 3, 4, 10}, 1},
        {"slope(r[500:560])", {1, 1.2, 1.6, 1.8, 2.2}, 0.02},
        {"area(r[500:530])", {1, 3, 2, 0, 0}, 20 + 50},
        {"argmin(r[500:560])", {2, 1, 1, 4, 10}, 510},
        {"argmax(r[500:560])", {1, 7, 7, 4, 6}, 510},
        // Slopes are at 505, 520, 535, 550. If the greatest slope is at an end, the result is its midpoint.
        {"edge(r[500:560])", {0, 10, 11, 11.1, 11.2}, 505},
        {"edge(r[500:560])", {1, 1.1, 1.2, 1.3, 9}, 550},
        {"edge(r[500:560])", {5, 5, 5, 5, 5}, unknown},
        {"edge(r[500:560])", {5, 4, 3, 2, 1}, unknown},
        {"edge(r[500:560])", {1, 2, 4, 5, 7}, 505}, // among equal slopes the first wins
    };
    for (const auto& row : rows) {
        const double v = value_of(row.text, row.v, {x, {}, {}, {}, {}});
        if (std::isnan(row.value))
            EXPECT_TRUE(std::isnan(v)) << row.text << " is " << v;
        else
            EXPECT_NEAR(v, row.value, 1e-6 * row.value) << row.text;
    }
    // For a cubic on even steps, the slopes between neighbours form a parabola. Its vertex is exact if it is
    // within half a step of the middle midpoint.
    const std::vector<double> even{680, 690, 700, 710, 720, 730};
    std::vector<double> cubic;
    for (const double nm : even)
        cubic.push_back(900 * nm - std::pow(nm - 707, 3));
    EXPECT_NEAR(value_of("edge(r[680:730])", cubic, {even, {}, {}, {}, {}}), 707, 1e-4);
}

TEST(Indices, ScaleAndOffset) {
    const Bands bands{{500, 600, 700}, {}, {}, {0.1, 0.01, 1}, {1, 2, 3}};
    EXPECT_NEAR(value_of("r500", {10, 100, 1}, bands), 2, 1e-7);
    EXPECT_NEAR(value_of("mean(r[500:600])", {10, 100, 1}, bands), 2.5, 1e-6);
    EXPECT_NEAR(value_of("max(r[500:700])", {10, 100, 1}, bands), 4, 1e-6);
}

TEST(Indices, SpectraWithoutAValueHaveNoIndex) {
    const Bands bands{{500, 600}, {}, {}, {}, {}};
    EXPECT_TRUE(std::isnan(value_of("r500", {1, unknown}, bands)));
    EXPECT_TRUE(std::isnan(value_of("r500+1", {0, 0}, bands)));
    EXPECT_EQ(value_of("r500+1", {0, 1}, bands), 1);
    EXPECT_TRUE(std::isnan(value_of("r500*1e30", {1e10, 1}, bands)));
    EXPECT_THROW(value_of("r700", {1, 1}, bands), Error);
    EXPECT_THROW(value_of("r500+", {1, 1}, bands), UsageError);
}

TEST(Indices, CatalogueIsReadWholeAndCanBeComputed) {
    const auto& all = indices::catalogue();
    ASSERT_EQ(all.size(), 78u);
    EXPECT_EQ(all.front().name, "NDVI");
    EXPECT_EQ(all.back().domain, "urban");
    Bands bands;
    std::vector<double> spectrum;
    for (int nm = 400; nm <= 2500; nm += 5) {
        bands.wavelengths.push_back(nm);
        spectrum.push_back(0.3 + 0.2 * std::sin(nm / 50.0));
    }
    for (const auto& one : all) {
        EXPECT_FALSE(one.citation.empty()) << one.name;
        EXPECT_TRUE(one.unit.empty() || one.unit == "nm") << one.name;
        EXPECT_NO_THROW(value_of(one.formula, spectrum, bands)) << one.name;
    }
}

TEST(Indices, SameBitsForEveryTilingAndNumberOfThreads) {
    auto cube = random_scene(301, 37, 9);
    make_invalid(cube, 3, 7, 2);
    make_invalid(cube, 5, 290, 8, std::numeric_limits<float>::infinity());
    for (int b = 0; b < 9; ++b)
        cube.at(b, 20, 200) = 0;
    Bands bands;
    for (int b = 0; b < 9; ++b)
        bands.wavelengths.push_back(660 + 11.0 * b);
    const std::vector<std::string> expressions{"(b1-b2)/(b1+b2)", "edge(r[660:760])", "ln(b3)^2+tanh(b4)",
                                               "if(b5>0.5,std(r[660:760]),b6)"};
    const auto made = [&](int lanes, int64_t samples, int64_t lines) {
        MemorySource source(cube);
        MemorySink sink(301, 37, 4);
        stream::PassOptions pass;
        pass.lanes = lanes;
        pass.tile_samples = samples;
        pass.tile_lines = lines;
        const auto operation = indices::make_indices(9, expressions, bands, {0, 1});
        stream::run_pass(source, *operation, {&sink}, pass);
        EXPECT_EQ(operation->valid(), 301 * 37 - 3);
        EXPECT_EQ(operation->invalid(), 3);
        int64_t outside = 0;
        for (int64_t l = 0; l < 37; ++l)
            for (int64_t s = 0; s < 301; ++s)
                for (int b = 0; b < 2; ++b)
                    outside += !std::isnan(sink.cube.at(2, l, s)) && std::abs(cube.at(b, l, s) - 0.5) > 1;
        EXPECT_EQ(operation->outside(), outside);
        return sink.cube.values;
    };
    const auto whole = made(1, 301, 37);
    for (const auto& [lanes, samples, lines] :
         {std::tuple(2, 301, 1), std::tuple(3, 1, 37), std::tuple(2, 17, 5), std::tuple(1, 128, 16)}) {
        const auto tiled = made(lanes, samples, lines);
        EXPECT_EQ(std::memcmp(whole.data(), tiled.data(), whole.size() * sizeof(float)), 0) << samples;
    }
}

} // namespace
} // namespace hsi::test
