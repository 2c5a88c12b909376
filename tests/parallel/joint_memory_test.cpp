// SPDX-License-Identifier: MIT
// Ranks with even numbers are on the root's host (support/thread_ranks.h). ctest runs all tests also with
// larger pages, and once with HSI_PORTABLE=1, where processes have no common memory.
#include "parallel/joint_memory.h"

#include "core/error.h"
#include "core/system.h"
#include "parallel/team.h"
#include "support/thread_ranks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>

namespace hsi::test {
namespace {

using parallel::JointMemory;
using parallel::Ranks;

const uint64_t page = system::page_size();

/// Tests of the memory itself. If it is missing, every rank must know this, or its first use would hang.
class JointMemoryOf : public testing::Test {
  protected:
    void SetUp() override {
        if (system::portable()) GTEST_SKIP() << "portably there is no memory in common";
    }
};

TEST(JointMemory, IsTheRootsHosts) {
    EXPECT_EQ(JointMemory::make(parallel::ranks(), "alone", 1000), nullptr);
    for (const int size : {2, 3, 5})
        on_ranks(size, [&](Ranks& ranks, CancelFlag&) {
            const auto memory = JointMemory::make(ranks, "numbers", 3 * page);
            const bool there = size > 2 && ranks.rank() % 2 == 0 && !system::portable();
            ASSERT_EQ(memory != nullptr, there);
            if (there) {
                EXPECT_EQ(memory->processes(), (size + 1) / 2);
                const size_t last = page / 8 - 1;
                const HostBuffer<int64_t> first(memory, 1), second(memory, last + 1);
                EXPECT_EQ(first[0], 0);
                if (ranks.rank() == 2) second[last] = 7;
                memory->meet();
                EXPECT_EQ(second[last], 7);
                EXPECT_NO_THROW(memory->allocate(page));
                EXPECT_THROW(memory->allocate(1), Error);
                memory->meet();
            }
            ranks.sum("end", 0);
        });
}

/// Uses more than a few huge pages, which all processes populate together, and a last page that is only
/// partly used.
TEST_F(JointMemoryOf, IsZeroAtFirstAndOneForAllWhateverItsPages) {
    // Reads some values of every small page
    constexpr size_t values = (size_t{37} << 20) / 8 + 1234, step = 511;
    for (const bool at_once : {true, false})
        on_ranks(5, [&](Ranks& ranks, CancelFlag&) {
            const auto memory = JointMemory::make(ranks, "numbers", values * 8, at_once);
            if (!memory) return;
            const HostBuffer<int64_t> numbers(memory, values);
            const auto mine = static_cast<size_t>(ranks.rank()) / 2;
            const auto wrong = [&](const auto& expected) {
                size_t count = 0;
                for (size_t i = 0; i < values; i += step)
                    count += numbers[i] != static_cast<int64_t>(expected(i)) ? 1 : 0;
                return count;
            };
            EXPECT_EQ(wrong([](size_t) { return size_t{0}; }), 0U);
            memory->meet();
            for (size_t i = mine * step; i < values; i += 3 * step)
                numbers[i] = static_cast<int64_t>(i + mine);
            memory->meet();
            EXPECT_EQ(wrong([&](size_t i) { return i + i / step % 3; }), 0U);
            memory->meet();
        });
}

TEST_F(JointMemoryOf, MakesOneTeamOfAllThreads) {
    constexpr int64_t units = 1000;
    constexpr int rounds = 60;
    std::atomic<int64_t> done{0}, single{0};
    on_ranks(5, [&](Ranks& ranks, CancelFlag&) {
        const auto memory = JointMemory::make(ranks, "counts", 2 * units * 8 + 2 * page);
        if (!memory) return;
        const int members = 1 + ranks.rank() / 2; // 1, 2 and 3
        Team team(members, memory);
        EXPECT_EQ(team.size(), members);
        const HostBuffer<int64_t> counts[2] = {{team.memory(), units}, {team.memory(), units}};
        for (int round = 0; round < rounds; ++round) {
            // Each unit continues from the result of another member in the previous round.
            const auto &from = counts[round % 2], &to = counts[1 - round % 2];
            team.run(units, [&](int64_t unit, int member) {
                EXPECT_LT(member, members);
                to[static_cast<size_t>(unit)] = from[static_cast<size_t>((unit + 7) % units)] + 1;
                ++done;
            });
            team.run(1, [&](int64_t, int) { ++single; });
            team.run(0, [](int64_t, int) { FAIL(); });
        }
        for (size_t unit = 0; unit < units; ++unit)
            EXPECT_EQ(counts[0][unit], rounds);
    });
    EXPECT_EQ(done, rounds * units);
    EXPECT_EQ(single, rounds);
}

/// A rank that fails ends the ranks that wait for it.
TEST_F(JointMemoryOf, WhoWaitsForARankThatHasFailedIsEnded) {
    std::atomic<int> failed{0}, ended{0};
    on_ranks(5, [&](Ranks& ranks, CancelFlag& cancel) {
        const auto memory = JointMemory::make(ranks, "counts", 4096);
        if (!memory) { // on another host
            ranks.conclude({});
            return;
        }
        Team team(2, memory);
        try {
            for (int round = 0; round < 1000; ++round) {
                if (round == 20 && ranks.rank() == 2) throw Error("rank 2 has had enough");
                team.run(10, [](int64_t, int) {});
            }
        } catch (const Cancelled&) {
            EXPECT_TRUE(cancel.requested());
            ++ended;
            ranks.conclude({1, "interrupted", "", false});
        } catch (const Error& error) {
            ++failed;
            EXPECT_NE(ranks.conclude({1, error.what(), "", false}).code, 0);
        }
    });
    EXPECT_EQ(failed, 1);
    EXPECT_EQ(ended, 2);
}

/// A signal reaches each rank separately.
TEST_F(JointMemoryOf, ASignalEndsTheWait) {
    std::atomic<int> ended{0};
    on_ranks(3, [&](Ranks& ranks, CancelFlag& cancel) {
        const auto memory = JointMemory::make(ranks, "counts", 4096);
        if (memory && ranks.root()) {
            std::thread signal([&] {
                std::this_thread::sleep_for(std::chrono::milliseconds(20));
                cancel.request();
            });
            EXPECT_THROW(memory->meet(), Cancelled);
            signal.join();
            ++ended;
        }
    });
    EXPECT_EQ(ended, 1);
}

} // namespace
} // namespace hsi::test
