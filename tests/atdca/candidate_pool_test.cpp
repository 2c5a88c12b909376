// SPDX-License-Identifier: MIT
#include "atdca/candidate_pool.h"

#include "atdca/findings.h"
#include "parallel/team.h"
#include "support/memory_cube.h"
#include "support/thread_ranks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace hsi::test {
namespace {

using atdca::Basis;
using atdca::CandidatePool;
using atdca::Position;

constexpr int bands = 21;

/// Returns the spectra of a scene's pixels.
std::vector<std::vector<float>> spectra_of(int64_t count) {
    const Cube scene = random_scene(count, 1, bands, 9);
    std::vector<std::vector<float>> all(static_cast<size_t>(count), std::vector<float>(bands));
    for (int64_t i = 0; i < count; ++i)
        for (int b = 0; b < bands; ++b)
            all[static_cast<size_t>(i)][static_cast<size_t>(b)] = scene.at(b, 0, i);
    return all;
}

Position position_of(int64_t i) { return {i / 7, i % 7}; }

void expect_alike(const CandidatePool& a, const CandidatePool& b) {
    ASSERT_EQ(a.size(), b.size());
    for (int64_t i = 0; i < a.size(); ++i) {
        EXPECT_TRUE(a.position(i) == b.position(i)) << i;
        EXPECT_EQ(a.spectrum(i), b.spectrum(i)) << i;
    }
}

/// Returns the first target, then the targets that the pool suggests.
atdca::Sequence sequence_of(const CandidatePool& pool, const std::vector<std::vector<float>>& all,
                            const atdca::Options& options, Team& team,
                            const CandidatePool::Share& share = {}) {
    Basis basis(bands);
    size_t first = 0;
    for (size_t i = 1; i < all.size(); ++i)
        if (Basis::squared_norm(all[i].data(), bands) > Basis::squared_norm(all[first].data(), bands))
            first = i;
    basis.add(all[first].data());
    return pool.guess(basis, {position_of(static_cast<int64_t>(first))}, options,
                      Basis::squared_norm(all[first].data(), bands), team, share);
}
void expect_same_steps(const atdca::Sequence& got, const atdca::Sequence& expected) {
    ASSERT_EQ(got.steps.size(), expected.steps.size());
    for (size_t j = 0; j < got.steps.size(); ++j) {
        EXPECT_EQ(got.steps[j].score, expected.steps[j].score);
        EXPECT_EQ(got.steps[j].spectrum, expected.steps[j].spectrum);
        EXPECT_EQ(got.steps[j].ends, expected.steps[j].ends);
    }
}

TEST(CandidatePool, HoldsWhatATeamAddsAsWhatIsAddedOneByOne) {
    const auto all = spectra_of(5000);
    CandidatePool single(bands);
    for (size_t i = 0; i < all.size(); ++i)
        single.add(position_of(static_cast<int64_t>(i)), all[i].data());
    for (const int members : {1, 3}) {
        Team team(members);
        CandidatePool pool(bands);
        if (members == 3) pool.reserve(100); // fewer than will be added
        // Ranges begin and end within groups and at their borders; single pixels fill the gaps.
        int64_t next = 0;
        for (const int64_t count : {0, 1, 3, 12, 16, 40, 1, 2000, 0, 2900}) {
            std::vector<std::atomic<int>> asked(static_cast<size_t>(count));
            pool.add(
                count,
                [&](int64_t i) {
                    ++asked[static_cast<size_t>(i)];
                    return CandidatePool::Candidate{position_of(next + i),
                                                    all[static_cast<size_t>(next + i)].data()};
                },
                team);
            for (const auto& times : asked)
                EXPECT_EQ(times, 1);
            next += count;
        }
        for (; next < static_cast<int64_t>(all.size()); ++next)
            pool.add(position_of(next), all[static_cast<size_t>(next)].data());
        expect_alike(pool, single);
    }
}

TEST(CandidatePool, GuessesTheSameWithEveryTeam) {
    const auto all = spectra_of(9000);
    CandidatePool pool(bands);
    for (size_t i = 0; i < all.size(); ++i)
        pool.add(position_of(static_cast<int64_t>(i)), all[i].data());
    for (const auto method : {atdca::Method::osp, atdca::Method::gs})
        for (const auto score : {atdca::Score::absolute, atdca::Score::sign}) {
            atdca::Options options;
            options.targets = 12;
            options.method = method;
            options.score = score;
            Team alone(1);
            const auto expected = sequence_of(pool, all, options, alone);
            ASSERT_GT(expected.steps.size(), 2u);
            for (const int members : {2, 5})
                for (int round = 0; round < 3; ++round) {
                    Team team(members);
                    const auto got = sequence_of(pool, all, options, team);
                    expect_same_steps(got, expected);
                }
        }
}

TEST(CandidatePool, PoolsOfRanksGuessTogetherWhatOneGuesses) {
    const auto all = spectra_of(400);
    for (const auto method : {atdca::Method::osp, atdca::Method::gs})
        for (const auto score : {atdca::Score::absolute, atdca::Score::sign})
            for (const size_t few : {400u, 9u}) { // with nine spectra the search ends early
                const std::vector<std::vector<float>> scene(all.begin(),
                                                            all.begin() + static_cast<ptrdiff_t>(few));
                atdca::Options options;
                options.targets = 12;
                options.method = method;
                options.score = score;
                Team team(1);
                CandidatePool whole(bands);
                for (size_t i = 0; i < scene.size(); ++i)
                    whole.add(position_of(static_cast<int64_t>(i)), scene[i].data());
                const auto expected = sequence_of(whole, scene, options, team);
                ASSERT_GT(expected.steps.size(), 2u);
                EXPECT_EQ(expected.steps.back().ends, few == 9u);
                on_ranks(4, [&](parallel::Ranks& ranks, CancelFlag&) {
                    // The last rank has no candidates.
                    Team mine(1);
                    CandidatePool pool(bands);
                    for (size_t i = 0; i < scene.size(); ++i)
                        if (static_cast<int>(i % 3) == ranks.rank())
                            pool.add(position_of(static_cast<int64_t>(i)), scene[i].data());
                    expect_same_steps(sequence_of(pool, scene, options, mine,
                                                  [&](atdca::Step& step) { atdca::share_step(ranks, step); }),
                                      expected);
                });
            }
}

} // namespace
} // namespace hsi::test
