// SPDX-License-Identifier: MIT
// Segments, Savitzky-Golay on uneven steps and Whittaker, compared with closed forms, published weights and a
// dense solution.
#include "smooth/linear.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace hsi::test {
namespace {

using smooth::Segment;

std::vector<std::pair<size_t, size_t>> ends_of(const std::vector<Segment>& segments) {
    std::vector<std::pair<size_t, size_t>> ends;
    for (const auto& one : segments)
        ends.emplace_back(one.begin, one.end);
    return ends;
}

TEST(Smooth, SegmentsEndAtGapsAndDetectors) {
    using Ends = std::vector<std::pair<size_t, size_t>>;
    const struct {
        std::vector<double> nm;
        double max_gap;
        Ends ends;
    } rows[] = {
        {{400, 410, 420, 430}, 0, {{0, 4}}},
        {{400, 410, 430, 440}, 0, {{0, 4}}},                // one missing band
        {{400, 410, 435, 445}, 0, {{0, 4}}},                // 2.5 steps
        {{400, 410, 435.1, 445, 455}, 0, {{0, 2}, {2, 5}}}, // a gap
        {{400, 410, 405, 415}, 0, {{0, 2}, {2, 4}}},        // another detector
        {{400, 410, 410, 420}, 0, {{0, 2}, {2, 4}}},
        {{400, 410, 420}, 5, {{0, 1}, {1, 2}, {2, 3}}},
        {{420, 410, 400}, 0, {{0, 1}, {1, 2}, {2, 3}}},
        {{400}, 0, {{0, 1}}},
        {{}, 0, {}},
    };
    for (const auto& row : rows)
        EXPECT_EQ(ends_of(smooth::segments_of(row.nm, row.max_gap)), row.ends);
    EXPECT_EQ(smooth::median_step({400, 410, 405, 425, 455}), 20);
    EXPECT_EQ(smooth::median_step({400, 410, 430}), 15);
}

TEST(Smooth, SavitzkyGolayHasItsAuthorsWeights) {
    std::vector<double> nm;
    for (int b = 0; b < 20; ++b)
        nm.push_back(500 + 2.0 * b);
    const auto rows = smooth::savitzky_golay(nm, smooth::segments_of(nm), {5, 2, 0});
    ASSERT_EQ(rows.bands.size(), nm.size());
    const std::vector<double> published{-3, 12, 17, 12, -3}; // / 35
    for (size_t k = 0; k < 5; ++k) {
        EXPECT_EQ(rows.bands[10].sources[k], 8 + k);
        EXPECT_NEAR(rows.bands[10].weights[k], published[k] / 35, 1e-14);
    }
    const auto slopes = smooth::savitzky_golay(nm, smooth::segments_of(nm), {5, 2, 1});
    for (size_t k = 0; k < 5; ++k)
        EXPECT_NEAR(slopes.bands[10].weights[k], (static_cast<double>(k) - 2) / 10 / 2,
                    1e-14); // steps of 2 nm
}

double applied(const math::ResampledBand& row, const std::vector<double>& v) {
    double sum = 0;
    for (size_t k = 0; k < row.sources.size(); ++k)
        sum += row.weights[k] * v[row.sources[k]];
    return sum;
}

/// A polynomial of the same degree and its derivatives are preserved, on uneven steps and at the ends.
TEST(Smooth, SavitzkyGolayKeepsPolynomials) {
    std::vector<double> nm;
    for (int b = 0; b < 30; ++b)
        nm.push_back(700 + 5.0 * b + (b % 3) + (b > 12 ? 100 : 0));
    const auto segments = smooth::segments_of(nm);
    ASSERT_EQ(segments.size(), 2u);
    for (int degree = 0; degree <= 4; ++degree)
        for (int derivative = 0; derivative <= degree; ++derivative) {
            std::vector<double> v, expected;
            for (const double x : nm) {
                const double u = (x - 800) / 100;
                double value = 0, slope = 0;
                for (int k = 0; k <= degree; ++k) {
                    value += (k + 1) * std::pow(u, k);
                    double factor = (k + 1) * std::pow(0.01, derivative);
                    for (int j = 0; j < derivative; ++j)
                        factor *= k - j;
                    if (k >= derivative) slope += factor * std::pow(u, k - derivative);
                }
                v.push_back(value);
                expected.push_back(slope);
            }
            const auto rows = smooth::savitzky_golay(nm, segments, {7, degree, derivative});
            EXPECT_TRUE(rows.left_out.empty());
            const double size = std::abs(*std::max_element(expected.begin(), expected.end()));
            for (size_t b = 0; b < nm.size(); ++b) {
                EXPECT_EQ(rows.bands[b].target, b);
                EXPECT_NEAR(applied(rows.bands[b], v), expected[b], 1e-9 * (1 + size))
                    << degree << derivative << b;
                const auto& within = b < 13 ? segments[0] : segments[1];
                EXPECT_GE(rows.bands[b].sources.front(), within.begin);
                EXPECT_LT(rows.bands[b].sources.back(), within.end);
            }
        }
}

TEST(Smooth, ShortSegments) {
    const std::vector<double> nm{400, 410, 420, 430, 440, 450, 900, 910, 2000};
    const auto segments = smooth::segments_of(nm);
    ASSERT_EQ(segments.size(), 3u);
    const auto same = smooth::savitzky_golay(nm, segments, {9, 2, 0});
    EXPECT_NEAR(same.bands[6].weights[0], 1, 1e-14); // a line through two bands
    EXPECT_NEAR(same.bands[6].weights[1], 0, 1e-14);
    EXPECT_EQ(same.bands[8].weights, std::vector<double>{1});
    EXPECT_EQ(smooth::savitzky_golay(nm, segments, {5, 2, 1}).left_out, std::vector<size_t>{8});
    EXPECT_EQ(smooth::savitzky_golay(nm, segments, {5, 2, 2}).left_out, (std::vector<size_t>{6, 7, 8}));
    const auto means = smooth::moving_mean(segments, 5);
    EXPECT_EQ(means.bands[0].sources, (std::vector<size_t>{0, 1, 2}));
    EXPECT_EQ(means.bands[3].sources, (std::vector<size_t>{1, 2, 3, 4, 5}));
    EXPECT_EQ(means.bands[7].weights, (std::vector<double>{0.5, 0.5}));
}

/// Solves (I + lambda D^T D) z = y by elimination, with D from Newton's table of divided differences.
std::vector<double> whittaker_reference(std::vector<double> y, const std::vector<double>& u, double lambda,
                                        int order) {
    const size_t n = y.size();
    std::vector<std::vector<double>> d(n, std::vector<double>(n));
    for (size_t i = 0; i < n; ++i)
        d[i][i] = 1;
    for (int k = 1; k <= order; ++k) {
        for (size_t i = 0; i + 1 < d.size(); ++i)
            for (size_t j = 0; j < n; ++j)
                d[i][j] = k * (d[i + 1][j] - d[i][j]) / (u[i + static_cast<size_t>(k)] - u[i]);
        d.pop_back();
    }
    std::vector<std::vector<double>> a(n, std::vector<double>(n));
    for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j < n; ++j) {
            a[i][j] = i == j;
            for (const auto& row : d)
                a[i][j] += lambda * row[i] * row[j];
        }
    for (size_t p = 0; p < n; ++p)
        for (size_t i = p + 1; i < n; ++i) {
            const double f = a[i][p] / a[p][p];
            for (size_t j = p; j < n; ++j)
                a[i][j] -= f * a[p][j];
            y[i] -= f * y[p];
        }
    for (size_t p = n; p-- > 0;) {
        for (size_t j = p + 1; j < n; ++j)
            y[p] -= a[p][j] * y[j];
        y[p] /= a[p][p];
    }
    return y;
}

TEST(Smooth, WhittakerSolvesItsEquations) {
    constexpr size_t pixels = 3;
    std::vector<double> nm;
    for (int b = 0; b < 25; ++b)
        nm.push_back(1000 + 6.0 * b + (b % 4) + (b > 16 ? 200 : 0));
    nm.push_back(2400);
    const auto segments = smooth::segments_of(nm);
    ASSERT_EQ(segments.size(), 3u);
    const double step = smooth::median_step(nm);
    for (int order = 1; order <= 3; ++order)
        for (const double lambda : {0.01, 10.0, 1e4}) {
            std::vector<double> values(nm.size() * pixels);
            for (size_t i = 0; i < values.size(); ++i)
                values[i] = std::sin(static_cast<double>(i) * 1.7) + 2;
            auto got = values;
            smooth::Whittaker(nm, segments, lambda, order).smooth(got.data(), pixels);
            for (const auto& segment : segments)
                for (size_t p = 0; p < pixels; ++p) {
                    std::vector<double> y, u;
                    for (size_t b = segment.begin; b < segment.end; ++b) {
                        y.push_back(values[b * pixels + p]);
                        u.push_back(nm[b] / step);
                    }
                    if (y.size() > static_cast<size_t>(order)) y = whittaker_reference(y, u, lambda, order);
                    for (size_t k = 0; k < y.size(); ++k)
                        EXPECT_NEAR(got[(segment.begin + k) * pixels + p], y[k], 1e-8)
                            << order << " " << lambda;
                }
        }
}

} // namespace
} // namespace hsi::test
