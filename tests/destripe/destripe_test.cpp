// SPDX-License-Identifier: MIT
// The low pass against its definition, known stripes, and equal bits for every tiling.
#include "destripe/destripe.h"

#include "destripe/medians.h"
#include "stream/pipeline.h"
#include "support/memory_cube.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <tuple>
#include <vector>

namespace hsi::test {
namespace {

using destripe::Method;

TEST(Destripe, LowPassKeepsLinesAndLeavesOutFarColumns) {
    const std::vector<size_t> places{0, 1, 2, 4, 5, 6, 7, 9, 10, 12};
    std::vector<double> line;
    for (const size_t j : places)
        line.push_back(3 + 0.5 * static_cast<double>(j));
    const auto same = destripe::low_pass(places, line, 7);
    for (size_t k = 0; k < places.size(); ++k)
        EXPECT_NEAR(same[k], line[k], 1e-12);
    auto far = line;
    for (size_t k = 0; k < far.size(); ++k)
        far[k] += k % 2 == 0 ? 0.01 : -0.01;
    far[4] += 50; // excluded from the second fit
    const auto again = destripe::low_pass(places, far, 9);
    for (size_t k = 0; k < places.size(); ++k)
        EXPECT_NEAR(again[k], line[k], 0.05) << k;
    EXPECT_EQ(destripe::low_pass({3, 4}, {1, 5}, 5), (std::vector<double>{1, 5})); // fewer than 3 columns
}

TEST(Destripe, MediansOfColumnsAreThoseOfSortedValues) {
    using destripe::columns_at_once;
    std::mt19937 random(11);
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> uniform;
    // How each column is made: white noise, few different values, far outliers, sizes of all magnitudes, one
    // value, a value among gaps, two values, gaps alone.
    const auto value = [&](size_t column, size_t line) {
        const double v = normal(random);
        const double made[columns_at_once] = {v,
                                              std::round(v),
                                              line % 7 == 0 ? 1e30 * v : v,
                                              std::exp(60 * v),
                                              -3.5,
                                              line == 5 ? v : destripe::left_out,
                                              line % 2 == 0 ? -1e-40 : 1e38,
                                              destripe::left_out};
        return column != 7 && uniform(random) < 0.2 ? destripe::left_out : made[column];
    };
    for (const size_t count : {1, 2, 3, 6, 20, 63, 512}) {
        std::vector<double> rows;
        for (size_t line = 0; line < count; ++line)
            for (size_t column = 0; column < columns_at_once; ++column)
                rows.push_back(value(column, line));
        destripe::ColumnNumbers kept{}, median{};
        destripe::find_medians(rows.data(), static_cast<int64_t>(count), kept, median);
        for (size_t column = 0; column < columns_at_once; ++column) {
            std::vector<double> values;
            for (size_t line = 0; line < count; ++line)
                if (std::isfinite(rows[line * columns_at_once + column]))
                    values.push_back(rows[line * columns_at_once + column]);
            std::sort(values.begin(), values.end());
            const size_t n = values.size();
            EXPECT_EQ(kept[column], static_cast<double>(n));
            EXPECT_EQ(median[column], n == 0 ? 0 : (values[(n - 1) / 2] + values[n / 2]) / 2)
                << column << " of " << count;
        }
    }
}

constexpr int bands = 3;
constexpr int64_t samples = 60, lines = 50;

/// Returns a smooth scene, and the scene with stripes that the method can remove.
std::pair<Cube, Cube> scenes(Method method) {
    std::mt19937 random(3);
    std::normal_distribution<double> normal;
    Cube clean(samples, lines, bands), striped(samples, lines, bands);
    for (int b = 0; b < bands; ++b)
        for (int64_t s = 0; s < samples; ++s) {
            const double stripe = normal(random);
            for (int64_t l = 0; l < lines; ++l) {
                const double v = 500 + 40 * b + 30 * std::sin(static_cast<double>(l) / 9 + b) +
                                 static_cast<double>(s) + 5 * normal(random);
                clean.at(b, l, s) = static_cast<float>(v);
                striped.at(b, l, s) =
                    static_cast<float>(method == Method::ratio ? v * std::exp(stripe / 20) : v + 25 * stripe);
            }
        }
    return {clean, striped};
}

Cube corrected(const Cube& cube, Method method, int lanes, int64_t width, int64_t height) {
    MemorySource source(cube);
    stream::PassOptions pass;
    pass.lanes = lanes;
    pass.tile_samples = width;
    pass.tile_lines = lines;
    const auto scan = destripe::make_scan(cube.shape, method);
    stream::run_pass(source, *scan, {}, pass);
    MemorySink sink(samples, lines, bands);
    const auto operation = destripe::make_correction(bands, scan->columns(source, 15));
    pass.tile_lines = height;
    stream::run_pass(source, *operation, {&sink}, pass);
    return sink.cube;
}

double difference(const Cube& a, const Cube& b) {
    double squares = 0;
    for (size_t i = 0; i < a.values.size(); ++i)
        squares += std::pow(static_cast<double>(a.values[i] - b.values[i]), 2);
    return std::sqrt(squares / static_cast<double>(a.values.size()));
}

TEST(Destripe, KnownStripesGo) {
    for (const Method method : {Method::difference, Method::ratio, Method::moment, Method::median}) {
        const auto [clean, striped] = scenes(method);
        const double before = difference(clean, striped),
                     after = difference(clean, corrected(striped, method, 1, samples, lines));
        EXPECT_LT(after, 0.5 * before) << static_cast<int>(method);
    }
}

TEST(Destripe, SameBitsForEveryTilingAndUnusableColumnsStay) {
    for (const Method method : {Method::difference, Method::ratio, Method::moment, Method::median}) {
        auto striped = scenes(method).second;
        for (int64_t l = 0; l < lines; ++l)
            for (const int64_t s : {20, 21, 35})
                if (l > 10) make_invalid(striped, l, s, 1);
        const auto whole = corrected(striped, method, 1, samples, lines);
        for (const auto& [lanes, width, height] :
             {std::tuple<int, int64_t, int64_t>(1, 1, 7), std::tuple<int, int64_t, int64_t>(3, 17, 50)}) {
            const auto tiled = corrected(striped, method, lanes, width, height);
            EXPECT_EQ(0, std::memcmp(whole.values.data(), tiled.values.data(),
                                     whole.values.size() * sizeof(float)));
        }
        EXPECT_EQ(whole.at(0, 3, 20), striped.at(0, 3, 20));
        EXPECT_TRUE(std::isnan(whole.at(0, 30, 35)));
    }
}

} // namespace
} // namespace hsi::test
