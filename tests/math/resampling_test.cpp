// SPDX-License-Identifier: MIT
// Weights, compared with an integral in small steps and with closed forms; gaps and unknown widths.
#include "math/resampling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

namespace {

using namespace hsi::math;
using Numbers = std::vector<double>;

const double unknown = std::nan("");

SpectralBands grid(double from, double step, int count, double width) {
    SpectralBands bands;
    for (int b = 0; b < count; ++b) {
        bands.centres.push_back(from + step * b);
        bands.widths.push_back(width);
    }
    return bands;
}

double value_of(const ResampledBand& band, const Numbers& spectrum) {
    double sum = 0;
    for (size_t k = 0; k < band.sources.size(); ++k)
        sum += band.weights[k] * spectrum[band.sources[k]];
    return sum;
}

double broken_line(const Numbers& x, const Numbers& y, double at) {
    const auto above = static_cast<size_t>(std::upper_bound(x.begin(), x.end(), at) - x.begin());
    const size_t i = std::clamp<size_t>(above, 1, x.size() - 1) - 1;
    return y[i] + (y[i + 1] - y[i]) * (at - x[i]) / (x[i + 1] - x[i]);
}

/// Returns the integral of the line under a normal curve that is cut at 4 deviations, in steps of a 20,000th.
double integral(const Numbers& x, const Numbers& y, double centre, double s) {
    const double from = std::max(x.front(), centre - 4 * s), to = std::min(x.back(), centre + 4 * s);
    constexpr int steps = 20000;
    double sum = 0, weight = 0;
    for (int i = 0; i < steps; ++i) {
        const double at = from + (to - from) * (i + 0.5) / steps, z = (at - centre) / s;
        const double g = std::exp(-z * z / 2);
        weight += g;
        sum += g * broken_line(x, y, at);
    }
    return sum / weight;
}

TEST(Resampling, IsTheIntegralUnderTheMissingResponse) {
    std::mt19937 random(3);
    std::uniform_real_distribution<double> uniform(0, 1);
    size_t made = 0;
    for (int trial = 0; trial < 20; ++trial) {
        SpectralBands source;
        Numbers y;
        double at = 400;
        for (int b = 0; b < 60; ++b) {
            source.centres.push_back(at += 2 + 6 * uniform(random));
            source.widths.push_back(3 + 5 * uniform(random));
            y.push_back(uniform(random));
        }
        SpectralBands target;
        for (int j = 0; j < 12; ++j) {
            target.centres.push_back(source.centres.front() +
                                     (source.centres.back() - source.centres.front()) * uniform(random));
            target.widths.push_back(12 + 30 * uniform(random));
        }
        const auto plan = plan_resampling(source, target, Resampling::response);
        for (const auto& band : plan.bands) {
            const double c = target.centres[band.target];
            const auto above = std::upper_bound(source.centres.begin(), source.centres.end(), c);
            const auto i = static_cast<size_t>(above - source.centres.begin()) - 1;
            const double h = source.centres[i + 1] - source.centres[i], share = (c - source.centres[i]) / h;
            const double w = (1 - share) * source.widths[i] + share * source.widths[i + 1];
            const double s = std::sqrt(
                (std::pow(target.widths[band.target], 2) - w * w) / (2.354820045 * 2.354820045) - h * h / 6);
            ASSERT_FALSE(std::isnan(s));
            EXPECT_NEAR(value_of(band, y), integral(source.centres, y, c, s), 2e-6);
            EXPECT_NEAR(std::accumulate(band.weights.begin(), band.weights.end(), 0.0), 1, 1e-12);
            EXPECT_GT(*std::min_element(band.weights.begin(), band.weights.end()), 0);
            EXPECT_TRUE(std::is_sorted(band.sources.begin(), band.sources.end()));
            ++made;
        }
    }
    EXPECT_GT(made, 200u);
}

TEST(Resampling, OfItsOwnBandsIsTheSpectrum) {
    const auto bands = grid(400, 10, 30, 11);
    for (const auto method : {Resampling::response, Resampling::linear}) {
        const auto plan = plan_resampling(bands, bands, method);
        ASSERT_EQ(plan.bands.size(), 30u);
        for (size_t j = 0; j < 30; ++j) {
            EXPECT_EQ(plan.bands[j].sources, (std::vector<size_t>{j}));
            EXPECT_EQ(plan.bands[j].weights, (Numbers{1}));
            EXPECT_EQ(plan.bands[j].noise_gain(), 1);
        }
    }
}

TEST(Resampling, KeepsLevelsAndLines) {
    const auto source = grid(400, 5, 200, 7), target = grid(430, 10, 90, 12);
    Numbers flat(source.size(), 0.37), line;
    for (const double c : source.centres)
        line.push_back(3 - c / 1000);
    const auto plan = plan_resampling(source, target, Resampling::response);
    ASSERT_EQ(plan.bands.size(), target.size());
    EXPECT_TRUE(plan.left_out.empty());
    EXPECT_EQ(plan.cut(), 0u);
    for (const auto& band : plan.bands) {
        EXPECT_NEAR(value_of(band, flat), 0.37, 1e-12);
        EXPECT_NEAR(value_of(band, line), 3 - target.centres[band.target] / 1000, 1e-9);
        EXPECT_GT(band.sources.size(), 2u);
        EXPECT_LT(band.noise_gain(), 1);
    }
}

/// A line of 20 nm FWHM, seen by bands of 7 nm and of 11 nm FWHM: resampling the first must give the second.
TEST(Resampling, SeesWhatTheTargetWouldHaveSeen) {
    const auto source = grid(400, 5, 120, 7), target = grid(500, 8, 40, 11);
    const auto seen = [](const SpectralBands& by, size_t b) {
        const double width2 = 20 * 20 + by.widths[b] * by.widths[b], d = by.centres[b] - 660;
        return 1 - 0.4 * 20 / std::sqrt(width2) * std::exp(-d * d / 2 * 2.354820045 * 2.354820045 / width2);
    };
    Numbers y;
    for (size_t b = 0; b < source.size(); ++b)
        y.push_back(seen(source, b));
    double worst = 0;
    for (const auto& band : plan_resampling(source, target, Resampling::response).bands)
        worst = std::max(worst, std::fabs(value_of(band, y) - seen(target, band.target)));
    EXPECT_LT(worst, 3e-5);
}

TEST(Resampling, BridgesALostBandAndNoGap) {
    auto source = grid(400, 10, 40, 10);
    source.centres[20] = unknown; // 600 nm
    for (int b = 30; b < 36; ++b)
        source.centres[static_cast<size_t>(b)] = unknown; // 700 to 750 nm
    const SpectralBands target{{600, 725, 300, unknown, 800, 690}, {12, 12, 12, 12, 12, 12}};
    const auto plan = plan_resampling(source, target, Resampling::response);
    EXPECT_EQ(plan.sources.size(), 33u);
    EXPECT_EQ(plan.left_out, (std::vector<size_t>{1, 2, 3, 4}));
    ASSERT_EQ(plan.bands.size(), 2u);
    const auto linear = plan_resampling(source, target, Resampling::linear);
    EXPECT_EQ(linear.left_out, (std::vector<size_t>{2, 3, 4}));
    ASSERT_EQ(linear.bands.size(), 3u);
    EXPECT_EQ(linear.bands[1].target, 1u);
    EXPECT_EQ(linear.bands[1].sources, (std::vector<size_t>{29, 36}));
    EXPECT_NEAR(linear.bands[1].weights[0], 1 - 35.0 / 70, 1e-12);
}

TEST(Resampling, CountsBandsThatTheEndsCut) {
    const auto source = grid(400, 2, 100, 2); // to 598 nm
    const auto plan = plan_resampling(source, {{400, 500, 598}, {20, 20, 20}}, Resampling::response);
    ASSERT_EQ(plan.bands.size(), 3u);
    EXPECT_NEAR(plan.bands[0].inside, 0.5, 1e-12);
    EXPECT_NEAR(plan.bands[1].inside, 1, 1e-12);
    EXPECT_EQ(plan.cut(), 2u);
}

TEST(Resampling, GoesOverToTheLineWithoutAJump) {
    const auto source = grid(400, 10, 40, 10);
    Numbers y;
    for (size_t b = 0; b < source.size(); ++b)
        y.push_back(std::sin(static_cast<double>(b)));
    const double least = std::sqrt(100 + 100.0 / 6 * 2.354820045 * 2.354820045);
    const auto at = [&](double width) {
        return value_of(plan_resampling(source, {{553}, {width}}, Resampling::response).bands.at(0), y);
    };
    const double linear = 0.7 * y[15] + 0.3 * y[16];
    EXPECT_NEAR(at(least - 1e-3), linear, 1e-12);
    EXPECT_NEAR(at(least + 1e-3), linear, 1e-9);
}

TEST(Resampling, TakesDoublesOnceAndSorts) {
    const SpectralBands source{{500, 410, 400, 410, 450}, {8, 8, 8, 8, 8}};
    const auto plan = plan_resampling(source, {{410}, {8}}, Resampling::linear);
    EXPECT_EQ(plan.sources, (std::vector<size_t>{2, 1, 4, 0}));
    ASSERT_EQ(plan.bands.size(), 1u);
    EXPECT_EQ(plan.bands[0].sources, (std::vector<size_t>{1}));
    EXPECT_TRUE(plan_resampling({{500}, {8}}, {{500}, {8}}, Resampling::linear).bands.empty());
}

TEST(Resampling, GuessesWidthsThatAreNotTold) {
    EXPECT_EQ(full_widths({{400, 410, 430, 440}, {}}), (Numbers{10, 15, 15, 10}));
    EXPECT_EQ(full_widths({{440, 400, 410, 430}, {unknown, 7, 0, -1}}), (Numbers{10, 7, 15, 15}));
    EXPECT_TRUE(std::isnan(full_widths({{400}, {}})[0]));
    EXPECT_TRUE(tells_widths({{400, unknown}, {3, unknown}}));
    EXPECT_FALSE(tells_widths({{400, 410}, {3, unknown}}));
    EXPECT_FALSE(tells_widths({{400, 410}, {}}));
    EXPECT_FALSE(tells_widths({{unknown}, {3}}));
}

} // namespace
