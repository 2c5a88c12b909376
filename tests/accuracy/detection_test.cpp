// SPDX-License-Identifier: MIT
// Detection measures against literal definitions: every pair, every threshold, every flood fill.
#include "accuracy/detection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace hsi::accuracy {
namespace {

struct Sample {
    std::vector<double> targets, background;
};

Sample sample(uint32_t seed, size_t targets, size_t background, double step) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    const auto rounded = [&](double v) { return step > 0 ? step * std::round(v / step) : v; };
    Sample s;
    for (size_t k = 0; k < targets; ++k)
        s.targets.push_back(rounded(normal(random) + 1));
    for (size_t k = 0; k < background; ++k)
        s.background.push_back(rounded(normal(random)));
    return s;
}

DetectionCurve curve_of(const Sample& s, bool small_is_best = false) {
    DetectionCounts counts(small_is_best);
    for (const double v : s.targets)
        counts.add_target(small_is_best ? -v : v);
    counts.seal();
    auto scores = s.background;
    if (small_is_best)
        for (double& v : scores)
            v = -v;
    const std::vector<char> use(scores.size(), 1);
    counts.add_background(scores.data(), use.data(), scores.size());
    return counts.curve();
}

TEST(Detection, MeasuresAreThoseOfAllPairsAndThresholds) {
    const struct {
        size_t targets, background;
        double step; ///< 0 for scores without ties
    } rows[] = {{40, 300, 0}, {40, 300, 0.5}, {300, 40, 0.25}, {1, 50, 0}, {50, 1, 0}, {100, 1000, 3}};
    for (const auto& row : rows)
        for (const bool small : {false, true}) {
            const auto s = sample(7, row.targets, row.background, row.step);
            const auto c = curve_of(s, small);
            double right = 0;
            for (const double t : s.targets)
                for (const double b : s.background)
                    right += t > b ? 1 : t == b ? 0.5 : 0;
            EXPECT_NEAR(c.auc(), right / static_cast<double>(row.targets * row.background), 1e-12);
            const auto at_least = [](const std::vector<double>& v, double t) {
                return static_cast<double>(
                    std::count_if(v.begin(), v.end(), [&](double x) { return x >= t; }));
            };
            std::set<double> thresholds(s.targets.begin(), s.targets.end());
            thresholds.insert(s.background.begin(), s.background.end());
            double precision = 0, before = 0;
            for (auto t = thresholds.rbegin(); t != thresholds.rend(); ++t) {
                const double tp = at_least(s.targets, *t), fp = at_least(s.background, *t);
                precision += (tp - before) / static_cast<double>(row.targets) * tp / (tp + fp);
                before = tp;
            }
            EXPECT_NEAR(c.average_precision(), precision, 1e-12);
            for (const double rate : {0.5, 0.1, 0.01, 0.0}) {
                double best = 0;
                for (const double t : thresholds)
                    if (at_least(s.background, t) / static_cast<double>(row.background) <= rate)
                        best = std::max(best, at_least(s.targets, t) / static_cast<double>(row.targets));
                const size_t k = c.at_rate(rate);
                EXPECT_EQ(k < c.size() ? c.pd(k) : 0, best) << rate;
                if (k == c.size()) continue;
                const double t = small ? -c.threshold[k] : c.threshold[k];
                EXPECT_EQ(at_least(s.targets, t), static_cast<double>(c.targets[k]));
                EXPECT_EQ(at_least(s.background, t), static_cast<double>(c.alarms[k]));
            }
        }
}

TEST(Detection, BoundsAndNothing) {
    EXPECT_EQ(curve_of({{3, 2}, {1, 0}}).auc(), 1);
    EXPECT_EQ(curve_of({{1, 0}, {3, 2}}).auc(), 0);
    EXPECT_EQ(curve_of({{0.0}, {-0.0}}).auc(), 0.5);
    EXPECT_EQ(curve_of({{3, 2}, {1, 0}}).average_precision(), 1);
    for (const auto& s : {Sample{{}, {1}}, Sample{{1}, {}}, Sample{}}) {
        EXPECT_TRUE(std::isnan(curve_of(s).auc()));
        EXPECT_TRUE(std::isnan(curve_of(s).average_precision()));
    }
    DetectionCounts counts(false);
    counts.add_target(1);
    counts.seal();
    const double nan = std::numeric_limits<double>::quiet_NaN(), scores[] = {2, nan, 2, 0};
    const char use[] = {1, 1, 0, 1};
    counts.add_background(scores, use, 4);
    EXPECT_EQ(counts.curve().background_pixels, 2);
    EXPECT_EQ(counts.curve().at_rate(0.1), 1u);
}

/// Uses more distinct scores than are kept before a merge.
TEST(Detection, ManyTargets) {
    DetectionCounts counts(false);
    constexpr int n = 2500000;
    for (int k = 0; k < n; ++k)
        counts.add_target(static_cast<double>((k * 7919LL) % 1000003));
    counts.seal();
    const double score = 500000;
    const char use = 1;
    counts.add_background(&score, &use, 1);
    const auto c = counts.curve();
    EXPECT_EQ(c.size(), 1000003u);
    EXPECT_EQ(c.target_pixels, n);
    double better = 0;
    for (int k = 0; k < n; ++k) {
        const auto v = (k * 7919LL) % 1000003;
        better += v > 500000 ? 1 : v == 500000 ? 0.5 : 0;
    }
    EXPECT_NEAR(c.auc(), better / n, 1e-12);
}

TEST(Detection, ObjectsAreThoseOfAFloodFill) {
    std::mt19937 random(3);
    for (const int wide : {1, 2, 37}) {
        constexpr int high = 41;
        std::vector<uint16_t> classes;
        std::vector<double> scores;
        for (int k = 0; k < wide * high; ++k) {
            const auto v = random() % 5;
            // 0 is unclassified; the classes are 3 and 4
            classes.push_back(static_cast<uint16_t>(v < 3 ? 0 : v));
            scores.push_back(random() % 7 == 0 ? std::numeric_limits<double>::quiet_NaN()
                                               : static_cast<double>(random() % 1000));
        }
        Objects objects(static_cast<size_t>(wide), true);
        for (int y = 0; y < high; ++y)
            objects.add_line(classes.data() + y * wide, 0, scores.data() + y * wide);
        std::multiset<std::pair<int, double>> found, expected;
        const auto entry = [](int of, double best) { return std::pair(of, std::isnan(best) ? -1 : best); };
        for (const auto& one : objects.all())
            found.insert(entry(one.of, one.best));
        auto left = classes;
        for (int k = 0; k < wide * high; ++k) {
            const auto start = static_cast<size_t>(k);
            if (left[start] == 0) continue;
            const uint16_t of = left[start];
            double best = std::numeric_limits<double>::quiet_NaN();
            std::vector<int> next{k};
            left[start] = 0;
            while (!next.empty()) {
                const int at = next.back(), x = at % wide, y = at / wide;
                next.pop_back();
                best = std::fmin(best, scores[static_cast<size_t>(at)]);
                for (int dy = -1; dy <= 1; ++dy)
                    for (int dx = -1; dx <= 1; ++dx) {
                        if (x + dx < 0 || x + dx >= wide || y + dy < 0 || y + dy >= high) continue;
                        const int other = (y + dy) * wide + x + dx;
                        if (left[static_cast<size_t>(other)] != of) continue;
                        left[static_cast<size_t>(other)] = 0;
                        next.push_back(other);
                    }
            }
            expected.insert(entry(of, best));
        }
        EXPECT_EQ(found, expected) << wide;
    }
}

} // namespace
} // namespace hsi::accuracy
