// SPDX-License-Identifier: MIT
// Threads that end together: every unit runs once, one exception is thrown, cancellation works; and the
// rounds of a team.
#include "core/cancel_scope.h"
#include "core/error.h"
#include "core/process_owner.h"
#include "parallel/team.h"
#include "parallel/threads.h"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

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

TEST(Threads, AUnitSeesTheFlagOfItsCallAlone) {
    CancelFlag outer, inner;
    const CancelScope scope(&outer);
    EXPECT_THROW(parallel::for_each(3, 2, &inner,
                                    [&](int64_t, int) {
                                        outer.request();
                                        check_cancelled();
                                        inner.request();
                                        check_cancelled();
                                        FAIL() << "the flag that was set has not been seen";
                                    }),
                 Cancelled);
    EXPECT_TRUE(inner.requested());
    EXPECT_THROW(check_cancelled(), Cancelled);
    const CancelScope none(nullptr);
    check_cancelled();
}

/// Tests within a program of another author.
class KeptThreads : public testing::Test {
  protected:
    void SetUp() override { share_process(); }
    void TearDown() override { g_process_is_ours.store(true); }
};

TEST_F(KeptThreads, TheNextCallHasTheSameOnes) {
    const auto ids_of = [](int members) {
        std::vector<std::thread::id> ids(static_cast<size_t>(members));
        parallel::on_threads(
            members, [&](int member) { ids[static_cast<size_t>(member)] = std::this_thread::get_id(); });
        EXPECT_EQ(ids[0], std::this_thread::get_id());
        return std::set<std::thread::id>(ids.begin(), ids.end());
    };
    const auto first = ids_of(2);
    EXPECT_EQ(first.size(), 2u);
    EXPECT_EQ(ids_of(2), first);
    EXPECT_EQ(ids_of(40).size(), 40u) << "more than there are processors";
    EXPECT_EQ(ids_of(2).size(), 2u);
}

TEST_F(KeptThreads, EveryUnitIsDoneOnceInManyRoundsOfSeveralCallers) {
    std::vector<std::thread> callers;
    for (int caller = 0; caller < 3; ++caller)
        callers.emplace_back([] {
            for (int round = 0; round < 500; ++round) {
                std::vector<std::atomic<int>> done(20);
                std::atomic<int> within{0};
                parallel::for_each(20, 4, nullptr, [&](int64_t unit, int) {
                    ++done[static_cast<size_t>(unit)];
                    if (unit == 3) parallel::for_each(5, 2, nullptr, [&](int64_t, int) { ++within; });
                });
                for (const auto& times : done)
                    EXPECT_EQ(times, 1);
                EXPECT_EQ(within, 5);
            }
        });
    for (auto& caller : callers)
        caller.join();
}

TEST_F(KeptThreads, WhoHasBegunEndsBeforeTheCallDoes) {
    for (int round = 0; round < 2000; ++round) {
        std::atomic<int> begun{0}, ended{0};
        parallel::on_threads(
            4,
            [&](int member) {
                ++begun;
                if (member > 0) std::this_thread::yield();
                ++ended;
            },
            [] {}, parallel::Members::who_are_free);
        EXPECT_EQ(begun, ended);
        EXPECT_TRUE(begun >= 1 && begun <= 4) << begun;
    }
}

TEST_F(KeptThreads, AnExceptionLeavesThemForTheNextCall) {
    EXPECT_THROW(parallel::for_each(100, 3, nullptr,
                                    [](int64_t unit, int) {
                                        if (unit == 10) throw Error("unit 10");
                                    }),
                 Error);
    std::atomic<int> done{0};
    parallel::for_each(100, 3, nullptr, [&](int64_t, int) { ++done; });
    EXPECT_EQ(done, 100);
}

TEST_F(KeptThreads, AForkedChildHasItsOwn) {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "the sanitizer lets no child of several threads start any";
#endif
    parallel::on_threads(3, [](int) {});
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        ::alarm(60);
        std::atomic<int> begun{0};
        parallel::on_threads(3, [&](int) { ++begun; });
        ::_exit(begun == 3 ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
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
