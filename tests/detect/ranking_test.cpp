// SPDX-License-Identifier: MIT
// The k-th best score against sorted scores, and the double at which single precision begins to round to it.
#include "core/error.h"
#include "detect/ranking.h"
#include "support/thread_ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace hsi::test {
namespace {

constexpr int64_t samples = 37, lines = 23;
constexpr int bands = 3;

/// Returns scores of both signs and all magnitudes; many are equal, some are NaN.
std::vector<float> some_scores() {
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    std::vector<float> scores(samples * lines * bands);
    for (float& v : scores)
        v = std::round(normal(random) * 8) / 8 * std::pow(10.0f, std::round(normal(random)));
    scores[5] = -0.0f;
    scores[6] = 1e-44f;
    scores[7] = std::numeric_limits<float>::infinity();
    for (const size_t i : {20u, 300u, 301u})
        for (size_t b = 0; b < bands; ++b)
            scores[b * samples * lines + i] = std::nanf("");
    return scores;
}

std::vector<float> sorted_best(const std::vector<float>& scores, bool small, const stream::PixelMask* mask) {
    std::vector<float> best;
    for (int64_t i = 0; i < samples * lines; ++i) {
        const auto at = static_cast<size_t>(i);
        if (std::isnan(scores[at]) || (mask != nullptr && !mask->at(i))) continue;
        float one = scores[at];
        for (size_t b = 1; b < bands; ++b) {
            const float other = scores[b * samples * lines + at];
            one = small ? std::min(one, other) : std::max(one, other);
        }
        best.push_back(one);
    }
    std::sort(best.begin(), best.end());
    if (!small) std::reverse(best.begin(), best.end());
    return best;
}

/// Writes the lines from .. to - 1.
void put_lines(detect::ScoreRanking& ranking, std::vector<float>& scores, int64_t from, int64_t to) {
    const CubeView<float> part(scores.data() + from * samples, bands, to - from, samples, samples,
                               samples * lines);
    ranking.write({0, from, samples, to - from}, part);
}

TEST(ScoreRanking, FindsEveryRank) {
    auto scores = some_scores();
    stream::PixelMask mask(samples, lines);
    for (int64_t i = 0; i < samples * lines; i += 3)
        mask.set(i / samples, i % samples);
    for (const bool small : {false, true})
        for (const stream::PixelMask* only :
             {static_cast<const stream::PixelMask*>(nullptr), &std::as_const(mask)}) {
            const auto best = sorted_best(scores, small, only);
            for (size_t rank = 1; rank <= best.size(); rank += rank < 4 ? 1 : 29) {
                detect::ScoreRanking ranking({samples, lines, bands}, small, only);
                put_lines(ranking, scores, 0, lines);
                ASSERT_EQ(ranking.pixels(), static_cast<int64_t>(best.size()));
                ranking.seek(static_cast<int64_t>(rank));
                put_lines(ranking, scores, 10, lines);
                put_lines(ranking, scores, 0, 10);
                const auto [score, at_least] = ranking.found();
                EXPECT_EQ(score, best[rank - 1]);
                EXPECT_EQ(at_least, std::count_if(best.begin(), best.end(), [&, limit = score](float v) {
                              return small ? v <= limit : v >= limit;
                          }));
            }
        }
}

TEST(ScoreRanking, RanksFindTheSameTogether) {
    auto scores = some_scores();
    const auto best = sorted_best(scores, false, nullptr);
    on_ranks(3, [&](parallel::Ranks& ranks, CancelFlag&) {
        auto mine = scores;
        const int64_t from = lines * ranks.rank() / 3, to = lines * (ranks.rank() + 1) / 3;
        detect::ScoreRanking ranking({samples, lines, bands}, false);
        put_lines(ranking, mine, from, to);
        ranking.gather(ranks);
        EXPECT_EQ(ranking.pixels(), static_cast<int64_t>(best.size()));
        ranking.seek(100);
        put_lines(ranking, mine, from, to);
        ranking.gather(ranks);
        EXPECT_EQ(ranking.found().score, best[99]);
    });
}

TEST(ScoreRanking, RefusesRanksThatThereAreNot) {
    auto scores = some_scores();
    detect::ScoreRanking ranking({samples, lines, bands}, false);
    EXPECT_THROW(ranking.seek(1), Error);
    put_lines(ranking, scores, 0, lines);
    EXPECT_THROW(ranking.seek(0), Error);
    EXPECT_THROW(ranking.seek(ranking.pixels() + 1), Error);
}

TEST(EdgeOf, IsTheWorstThatRoundsToTheScore) {
    for (const float score : {1.0f, 1.5f, -3.25f, 0.1f, 1e-30f, 1e-44f, 0.0f, -2.0f, 3e38f})
        for (const bool small : {false, true}) {
            const double edge = detect::edge_of(score, small), away = small ? INFINITY : -INFINITY;
            EXPECT_EQ(static_cast<float>(edge), score);
            EXPECT_NE(static_cast<float>(std::nextafter(edge, away)), score) << score;
        }
    EXPECT_EQ(detect::edge_of(INFINITY, false), INFINITY);
}

} // namespace
} // namespace hsi::test
