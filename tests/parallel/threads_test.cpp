// SPDX-License-Identifier: MIT
// Threads that end together: every unit once, one exception out, cancellation; and a team's rounds.
#include "core/error.h"
#include "parallel/team.h"
#include "parallel/threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace hsi;

TEST(Threads, EveryMemberWorksOnceOnAThreadOfItsOwn) {
    for (int members : {1, 2, 7}) {
        std::vector<std::thread::id> ids(static_cast<size_t>(members));
        parallel::on_threads(
            members, [&](int member) { ids[static_cast<size_t>(member)] = std::this_thread::get_id(); });
        EXPECT_EQ(ids[0], std::this_thread::get_id());
        EXPECT_EQ(std::set<std::thread::id>(ids.begin(), ids.end()).size(), static_cast<size_t>(members));
    }
}

TEST(Threads, EveryUnitIsDoneOnce) {
    for (int members : {1, 3, 50}) {
        std::vector<std::atomic<int>> done(1000);
        parallel::for_each(1000, members, nullptr, [&](int64_t unit, int member) {
            EXPECT_TRUE(member >= 0 && member < members);
            ++done[static_cast<size_t>(unit)];
        });
        for (const auto& times : done)
            EXPECT_EQ(times, 1);
    }
    parallel::for_each(0, 4, nullptr, [](int64_t, int) { FAIL() << "there is no unit"; });
}

TEST(Threads, TheFirstExceptionComesOutWhenAllHaveEnded) {
    std::atomic<int> running{0}, failures{0};
    std::atomic<bool> stop{false};
    try {
        parallel::on_threads(
            4,
            [&](int member) {
                ++running;
                if (member == 2) {
                    --running;
                    throw std::runtime_error("member 2");
                }
                while (!stop)
                    std::this_thread::yield();
                --running;
            },
            [&] {
                ++failures;
                stop = true;
            });
        FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& e) {
        EXPECT_EQ(std::string(e.what()), "member 2");
    }
    EXPECT_EQ(running, 0) << "a thread outlived the call";
    EXPECT_EQ(failures, 1);
}

TEST(Threads, NothingBeginsAfterAnExceptionOrACancellation) {
    std::atomic<int> begun{0};
    EXPECT_THROW(parallel::for_each(1000000, 3, nullptr,
                                    [&](int64_t unit, int) {
                                        ++begun;
                                        if (unit == 10) throw Error("unit 10");
                                        if (unit > 10) std::this_thread::yield();
                                    }),
                 Error);
    EXPECT_LT(begun, 1000000);
    CancelFlag cancel;
    begun = 0;
    EXPECT_THROW(parallel::for_each(1000000, 3, &cancel,
                                    [&](int64_t unit, int) {
                                        ++begun;
                                        if (unit == 10) cancel.request();
                                    }),
                 Cancelled);
    EXPECT_LT(begun, 1000000);
}

TEST(Team, EveryRoundDoesEveryUnitOnce) {
    for (int members : {1, 2, 5}) {
        Team team(members);
        EXPECT_EQ(team.size(), members);
        for (int64_t units : {0, 1, 3, 1000}) {
            std::vector<std::atomic<int>> done(static_cast<size_t>(units));
            team.run(units, [&](int64_t unit, int member) {
                EXPECT_LT(member, members);
                ++done[static_cast<size_t>(unit)];
            });
            for (const auto& times : done)
                EXPECT_EQ(times, 1);
        }
    }
}

} // namespace
