// SPDX-License-Identifier: MIT
// The filters against the definition, which computes z and its covariance in every iteration; the unit
// absorption of spectra with a closed form; outlines of plumes; medians.
#include "gas/gas.h"
#include "gas/gas_scene.h"
#include "gas/plumes.h"
#include "stream/pipeline.h"
#include "support/memory_cube.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <set>
#include <vector>

namespace hsi {
namespace {

using test::absorption_of;
using test::Cube;
using test::MemorySink;
using test::MemorySource;
using test::scene_with_plume;

std::vector<double> solved(std::vector<std::vector<double>> m, std::vector<double> t) {
    const size_t n = t.size();
    for (size_t i = 0; i < n; ++i)
        for (size_t j = i + 1; j < n; ++j) {
            const double f = m[j][i] / m[i][i];
            for (size_t c = i; c < n; ++c)
                m[j][c] -= f * m[i][c];
            t[j] -= f * t[i];
        }
    for (size_t i = n; i-- > 0;) {
        for (size_t c = i + 1; c < n; ++c)
            t[i] -= m[i][c] * t[c];
        t[i] /= m[i][i];
    }
    return t;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (size_t i = 0; i < a.size(); ++i)
        sum += a[i] * b[i];
    return sum;
}

/// Computes mag1c of the pixels of a group.
std::vector<double> mag1c(const std::vector<std::vector<double>>& x, int iterations) {
    const size_t bands = x[0].size();
    const auto k = absorption_of(static_cast<int>(bands));
    std::vector<double> m(bands), t(bands), w, a(x.size()), r(x.size());
    auto z = x;
    double q = 0;
    for (int round = 0; round <= iterations; ++round) {
        if (round > 0)
            for (size_t i = 0; i < x.size(); ++i)
                for (size_t b = 0; b < bands; ++b)
                    z[i][b] = x[i][b] - r[i] * a[i] * t[b];
        for (size_t b = 0; b < bands; ++b) {
            m[b] = 0;
            for (const auto& pixel : z)
                m[b] += pixel[b] / static_cast<double>(x.size());
        }
        std::vector<std::vector<double>> c(bands, std::vector<double>(bands));
        for (const auto& pixel : z)
            for (size_t i = 0; i < bands; ++i)
                for (size_t j = 0; j < bands; ++j)
                    c[i][j] += (pixel[i] - m[i]) * (pixel[j] - m[j]) / static_cast<double>(x.size());
        for (size_t b = 0; b < bands; ++b)
            t[b] = 1e5 * k[b] * m[b];
        w = solved(c, t);
        q = round > 0 ? std::max(1.0, dot(t, w)) : dot(t, w);
        for (size_t i = 0; i < x.size(); ++i) {
            if (round == 0) r[i] = dot(x[i], m) / dot(m, m);
            const double p = round > 0 ? 1 / (r[i] * (a[i] + 1e-9)) : 0;
            a[i] = std::max(0.0, (dot(x[i], w) - dot(m, w) - p) / (r[i] * q));
        }
    }
    for (double& v : a)
        v *= 1e5;
    return a;
}

std::vector<float> filtered(const Cube& cube, const stream::Columns& columns, int iterations,
                            const stream::PassOptions& pass = {}) {
    gas::FilterOptions options;
    options.absorption = absorption_of(cube.shape.bands);
    options.iterations = iterations;
    const auto operation = gas::make_filter(cube.shape, columns, options, nullptr);
    MemorySink sink(cube.shape.samples, cube.shape.lines, 1);
    auto whole = pass;
    whole.tile_lines = cube.shape.lines;
    if (whole.tile_samples == 0) whole.tile_samples = cube.shape.samples;
    stream::run_pass(MemorySource(cube), *operation, {&sink}, whole);
    return sink.cube.values;
}

TEST(GasFilter, Mag1cIsThatOfTheDefinition) {
    const Cube cube = scene_with_plume(7, 70, 9);
    const stream::Columns columns{1, 3};
    for (const int iterations : {0, 1, 6, 30}) {
        const auto got = filtered(cube, columns, iterations);
        for (int64_t group = 0; group < columns.count(7); ++group) {
            std::vector<std::vector<double>> x;
            std::vector<size_t> places;
            for (int64_t i = 0; i < 7 * 70; ++i) {
                const int64_t line = i / 7, sample = i % 7;
                std::vector<double> pixel;
                for (int b = 0; b < 9; ++b)
                    pixel.push_back(static_cast<double>(cube.at(b, line, sample)));
                if (columns.group(sample) != group || std::isnan(pixel[0]) || pixel[0] == 0) continue;
                x.push_back(pixel);
                places.push_back(static_cast<size_t>(i));
            }
            const auto want = mag1c(x, iterations);
            for (size_t i = 0; i < want.size(); ++i)
                ASSERT_NEAR(got[places[i]], want[i], 0.01 + 1e-4 * want[i]) << iterations << " " << places[i];
        }
        EXPECT_TRUE(std::isnan(got[2 * 7 + 1]));
        EXPECT_TRUE(std::isnan(got[3 * 7]));
    }
}

TEST(GasFilter, TilesAndLanesChangeNoBit) {
    const Cube cube = scene_with_plume(24, 60, 8);
    const auto whole = filtered(cube, {1, 2}, 30);
    for (const int64_t samples : {2, 4, 6, 24})
        for (const int lanes : {1, 3}) {
            stream::PassOptions pass;
            pass.tile_samples = samples;
            pass.lanes = lanes;
            const auto cut = filtered(cube, {1, 2}, 30, pass);
            EXPECT_EQ(0, std::memcmp(whole.data(), cut.data(), whole.size() * sizeof(float))) << samples;
        }
}

TEST(UnitAbsorption, IsTheSlopeOfAnExponential) {
    gas::RadianceTable table;
    table.concentrations = {0, 500, 1000, 4000};
    table.radiances.resize(4);
    for (int i = 0; i <= 400; ++i) {
        table.wavelengths_nm.push_back(2100 + i);
        for (size_t c = 0; c < 4; ++c)
            table.radiances[c].push_back((3 + std::sin(i / 20.0)) *
                                         std::exp(-2e-5 * table.concentrations[c]));
    }
    const auto k = gas::unit_absorption(table, {2099.9, 2100, 2300, 2500, 2500.1}, {8, 8, 8, 8, 8});
    EXPECT_TRUE(std::isnan(k.front()) && std::isnan(k.back()));
    for (size_t b = 1; b < 4; ++b)
        EXPECT_NEAR(k[b], -2e-5, 1e-15);
}

// The signed areas of outlines add up to the pixels, outer rings come first, and rings do not cross
// themselves.
TEST(Plumes, OutlinesOfRandomPixels) {
    std::mt19937 random(5);
    for (int round = 0; round < 200; ++round) {
        constexpr int64_t lines = 9, samples = 11;
        gas::PlumeFinder finder(samples, {1, 1, 1, round % 2 == 0});
        std::vector<double> shape(samples);
        std::vector<float> values(samples);
        int64_t all = 0;
        for (int64_t y = 0; y < lines; ++y) {
            for (size_t x = 0; x < samples; ++x) {
                values[x] = std::uniform_real_distribution<float>(0, 1)(random) < 0.6F ? 1.0F : 0.0F;
                shape[x] = static_cast<double>(values[x]);
                all += values[x] > 0;
            }
            finder.take(shape.data(), values.data(), nullptr, 2);
        }
        int64_t found = 0;
        for (const auto& plume : finder.finish()) {
            found += plume.pixels;
            double twice = 0;
            for (const auto& polygon : gas::outline(plume))
                for (size_t r = 0; r < polygon.size(); ++r) {
                    const auto& ring = polygon[r];
                    ASSERT_EQ(ring.front(), ring.back());
                    EXPECT_EQ(std::set(ring.begin(), ring.end()).size(), ring.size() - 1);
                    double area = 0;
                    for (size_t i = 0; i + 1 < ring.size(); ++i)
                        area +=
                            static_cast<double>(ring[i][0] * ring[i + 1][1] - ring[i + 1][0] * ring[i][1]);
                    EXPECT_EQ(area > 0, r == 0);
                    twice += area;
                }
            EXPECT_EQ(twice / 2, static_cast<double>(plume.pixels));
            EXPECT_EQ(plume.area, 2 * static_cast<double>(plume.pixels));
        }
        EXPECT_EQ(found, all);
    }
}

TEST(Plumes, MedianIsTheLowerMiddleValue) {
    std::mt19937 random(2);
    for (const size_t count : {1, 2, 7, 1000}) {
        std::vector<float> values(count);
        for (float& v : values)
            v = std::normal_distribution<float>(-3, 100)(random);
        const float got = gas::median_of([&](const auto& take) {
            for (const float v : values)
                take(v);
        });
        std::sort(values.begin(), values.end());
        EXPECT_EQ(got, values[(count - 1) / 2]);
    }
    EXPECT_TRUE(std::isnan(gas::median_of([](const auto&) {})));
}

} // namespace
} // namespace hsi
