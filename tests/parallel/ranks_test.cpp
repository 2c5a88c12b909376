// SPDX-License-Identifier: MIT
#include "parallel/ranks.h"

#include "core/error.h"
#include "core/process_limits.h"
#include "core/system.h"
#include "support/thread_ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <numeric>
#include <set>
#include <thread>
#include <tuple>

namespace hsi::test {
namespace {

using parallel::Ending;
using parallel::Ranks;

TEST(Ranks, OneProcessIsItsOwnRoot) {
    Ranks alone;
    EXPECT_EQ(alone.size(), 1);
    EXPECT_TRUE(alone.root());
    EXPECT_FALSE(alone.several());
    EXPECT_EQ(alone.broadcast("x", "bytes"), "bytes");
    EXPECT_EQ(alone.sum("x", 7), 7);
    EXPECT_EQ(alone.all("x", "mine"), std::vector<std::string>{"mine"});
    alone.await_others();
    EXPECT_EQ(alone.conclude({3, "what", "advice", false}).code, 3);
}

TEST(Ranks, WhoWorksWhileOthersWaitHasTheThreadsOfItsHost) {
    EXPECT_EQ(Ranks().threads_of_host(3), 3);
    const std::string set = system::processor_set();
    const auto processors = static_cast<int>(std::count(set.begin(), set.end(), '1'));
    for (const int hosts : {1, 2})
        on_ranks(
            4,
            [&](Ranks& ranks, CancelFlag&) {
                const int here = hosts == 1 ? 4 : 2;
                // 0: the number is unknown
                EXPECT_EQ(ranks.threads_of_host(1), std::max(1, std::min(here, processors)));
                EXPECT_EQ(ranks.threads_of_host(1000), 1000); // more than exist, but the user requested them
            },
            hosts);
}

class RanksOf : public testing::TestWithParam<int> {};

/// `size` ranks on one host, which share a counter of tiles, or on two hosts, which send messages.
class TilesOf : public testing::TestWithParam<std::tuple<int, int>> {
  protected:
    static int ranks_of() { return std::get<0>(GetParam()); }
    static int hosts() { return std::get<1>(GetParam()); }
};

TEST_P(RanksOf, PutTogetherWhatEachHas) {
    const int n = GetParam();
    on_ranks(n, [n](Ranks& ranks, CancelFlag&) {
        EXPECT_EQ(ranks.size(), n);
        EXPECT_EQ(ranks.broadcast("word", "from " + std::to_string(ranks.rank())), "from 0");
        EXPECT_EQ(ranks.sum("sum", int64_t{1} << ranks.rank()), (int64_t{1} << n) - 1);
        EXPECT_EQ(ranks.least("least", static_cast<uint64_t>(100 - ranks.rank())),
                  static_cast<uint64_t>(101 - n));
        EXPECT_TRUE(ranks.any("any", ranks.rank() == n - 1));
        EXPECT_FALSE(ranks.any("none", false));
        std::vector<int64_t> counts{ranks.rank(), 1, -ranks.rank()};
        ranks.add_up("counts", counts);
        const int64_t all = n * (n - 1) / 2;
        EXPECT_EQ(counts, (std::vector<int64_t>{all, n, -all}));
        const auto list = ranks.all("list", std::string(static_cast<size_t>(ranks.rank() * 1000), 'x'));
        for (int r = 0; r < n; ++r)
            EXPECT_EQ(list[static_cast<size_t>(r)].size(), static_cast<size_t>(r * 1000));
        EXPECT_EQ(ranks.host(0), "even");
        EXPECT_EQ(ranks.several_hosts(), n > 1);
        ranks.agree("same", "a", "has another", "");
    });
}

TEST_P(RanksOf, UniteWhatIsPutTogetherWhereItIs) {
    const int n = GetParam();
    on_ranks(n, [n](Ranks& ranks, CancelFlag&) {
        // From data that fit into the first message to data that need two messages.
        for (const size_t size : {size_t{1}, size_t{1000}, parallel::Transport::most_bytes / 8 + 1}) {
            std::vector<int64_t> mine(size, int64_t{1} << ranks.rank());
            const auto each = [&](const std::string& bytes, const auto& use) {
                ASSERT_EQ(bytes.size(), size * sizeof(int64_t));
                for (size_t i = 0; i < size; ++i) {
                    int64_t value = 0;
                    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
                    use(mine[i], value);
                }
            };
            int times_set = 0;
            ranks.unite(
                "numbers",
                [&] {
                    return std::string(reinterpret_cast<const char*>(mine.data()), size * sizeof mine[0]);
                },
                [&](const std::string& bytes) { each(bytes, [](int64_t& a, int64_t b) { a += b; }); },
                [&](const std::string& bytes) {
                    ++times_set;
                    each(bytes, [](int64_t& a, int64_t b) { a = b; });
                });
            EXPECT_EQ(mine, std::vector<int64_t>(size, (int64_t{1} << n) - 1));
            EXPECT_EQ(times_set, ranks.root() ? 0 : 1);
        }
    });
}

TEST_P(RanksOf, PiecesOfAllReachAllUntilNobodyHasAny) {
    const int n = GetParam();
    on_ranks(n, [n](Ranks& ranks, CancelFlag&) {
        // Rank r has r pieces, so rank 0 has no pieces.
        int given = 0;
        std::vector<std::vector<std::string>> found(static_cast<size_t>(n));
        ranks.all_in_pieces(
            "pieces",
            [&] {
                return given < ranks.rank() ? std::to_string(ranks.rank()) + "." + std::to_string(given++)
                                            : std::string();
            },
            [&](int rank, const std::string& piece) { found[static_cast<size_t>(rank)].push_back(piece); });
        for (int rank = 0; rank < n; ++rank) {
            std::vector<std::string> expected;
            expected.reserve(static_cast<size_t>(rank));
            for (int piece = 0; piece < rank; ++piece)
                expected.push_back(std::to_string(rank) + "." + std::to_string(piece));
            EXPECT_EQ(found[static_cast<size_t>(rank)], expected);
        }
    });
}

TEST_P(RanksOf, EachSendsToEachOther) {
    const int n = GetParam();
    on_ranks(n, [n](Ranks& ranks, CancelFlag&) {
        for (int round = 0; round < 3; ++round) {
            // Rank a has a - b pieces for rank b; one piece is larger than a message.
            std::vector<int> given(static_cast<size_t>(n));
            std::vector<std::vector<std::string>> found(static_cast<size_t>(n));
            const auto piece = [&](int from, int to, int k) {
                return std::to_string(from) + ">" + std::to_string(to) + std::string(k == 1 ? 5000 : 0, '.') +
                       std::to_string(round);
            };
            const int me = ranks.rank();
            ranks.exchange(
                "pieces",
                [&](int to) {
                    int& k = given[static_cast<size_t>(to)];
                    return k < me - to ? piece(me, to, k++) : std::string();
                },
                [&](int from, const std::string& bytes) {
                    found[static_cast<size_t>(from)].push_back(bytes);
                });
            for (int from = 0; from < n; ++from) {
                std::vector<std::string> expected;
                for (int k = 0; k < from - me; ++k)
                    expected.push_back(piece(from, me, k));
                EXPECT_EQ(found[static_cast<size_t>(from)], expected) << from << " to " << me;
            }
        }
    });
}

TEST_P(RanksOf, NeighboursSwapTheirBorders) {
    const int n = GetParam();
    on_ranks(n, [n](Ranks& ranks, CancelFlag&) {
        const int me = ranks.rank();
        const auto border = [](int from, int to, size_t size) {
            return std::to_string(from) + ">" + std::to_string(to) + std::string(size, '.');
        };
        for (const size_t size : {size_t{0}, size_t{3000}, parallel::Transport::most_bytes + 1}) {
            std::string before = border(me, me - 1, size), after = border(me, me + 1, size + 1);
            ranks.swap_borders("border", before, after);
            EXPECT_EQ(before, me > 0 ? border(me - 1, me, size + 1) : border(me, me - 1, size));
            EXPECT_EQ(after, me + 1 < n ? border(me + 1, me, size) : border(me, me + 1, size + 1));
        }
    });
}

/// Checks the tests' own ranks: a rank that leaves early must not leave the others waiting.
TEST(Ranks, WhatOneThrowsEndsTheOthers) {
    std::atomic<int> ended{0};
    const auto work = [&](Ranks& ranks, CancelFlag&) {
        if (ranks.rank() == 1) throw Error("rank 1 has had enough");
        try {
            ranks.sum("never", 1);
        } catch (const Cancelled&) {
            ++ended;
            throw;
        }
    };
    try {
        on_ranks(3, work);
        ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
        EXPECT_STREQ(error.what(), "rank 1 has had enough");
    }
    EXPECT_EQ(ended, 2);
}

TEST(Ranks, WhoIsAtAnotherPointIsTold) {
    std::atomic<int> told{0};
    on_ranks(2, [&](Ranks& ranks, CancelFlag&) {
        const auto nothing = [](int) { return std::string(); };
        try {
            ranks.exchange(ranks.root() ? "planes" : "borders", nothing, [](int, const std::string&) {});
        } catch (const Error& e) {
            EXPECT_NE(std::string(e.what()).find("is at '"), std::string::npos) << e.what();
            ++told;
        }
    });
    EXPECT_EQ(told, 2);
}

TEST_P(TilesOf, TilesThatAreSettledGoToTheirRank) {
    const int n = ranks_of();
    on_ranks(
        n,
        [n](Ranks& ranks, CancelFlag&) {
            const auto never = [] { return false; };
            for (int pass = 0; pass < 2; ++pass) {
                std::vector<int> settled;
                settled.reserve(50);
                for (int i = 0; i < 50; ++i)
                    settled.push_back(i / 3 % n);
                parallel::SharedTiles shared(ranks, settled);
                std::vector<int64_t> expected, taken;
                for (int i = 0; i < 50; ++i) {
                    EXPECT_EQ(shared.owner(i, never), settled[static_cast<size_t>(i)]);
                    if (settled[static_cast<size_t>(i)] == ranks.rank()) expected.push_back(i);
                }
                while (const auto position = shared.next(0, never))
                    taken.push_back(*position);
                EXPECT_EQ(taken, expected);
                // A dynamic pass may follow while other ranks are still in this pass.
                parallel::SharedTiles free(ranks, 20);
                int64_t mine = 0;
                while (free.next(0, never))
                    ++mine;
                EXPECT_EQ(ranks.sum("tiles", mine), 20);
            }
        },
        hosts());
}

TEST_P(RanksOf, ADifferenceIsToldWithRankAndHost) {
    const int n = GetParam();
    std::atomic<int> told{0};
    on_ranks(n, [&](Ranks& ranks, CancelFlag&) {
        try {
            ranks.agree("version", ranks.rank() == 1 ? "b" : "a", "runs another version", "Install one.");
        } catch (const Error& e) {
            EXPECT_STREQ(e.what(), "rank 1 on odd runs another version than rank 0 on even: b and a");
            ++told;
        }
    });
    EXPECT_EQ(told, n);
}

TEST_P(TilesOf, EveryTileGoesToOneLane) {
    const int n = ranks_of();
    constexpr int64_t tiles = 300;
    std::mutex mutex;
    std::vector<int64_t> taken;
    on_ranks(
        n,
        [&](Ranks& ranks, CancelFlag&) {
            for (int pass = 0; pass < 3; ++pass) {
                parallel::SharedTiles shared(ranks, tiles, pass == 1);
                std::vector<std::thread> lanes;
                for (int lane = 0; lane < 2; ++lane)
                    lanes.emplace_back([&, lane] {
                        int64_t last = -1;
                        while (const auto position = shared.next(lane, [] { return false; })) {
                            EXPECT_GT(*position,
                                      last); // in rising order, since otherwise ordered writing would stop
                            last = *position;
                            const std::lock_guard lock(mutex);
                            taken.push_back(*position);
                        }
                    });
                for (auto& lane : lanes)
                    lane.join();
                ranks.sum("end of pass", 0);
            }
        },
        hosts());
    ASSERT_EQ(taken.size(), 3u * tiles);
    std::sort(taken.begin(), taken.end());
    for (size_t i = 0; i < taken.size(); ++i)
        EXPECT_EQ(taken[i], static_cast<int64_t>(i / 3));
}

TEST_P(TilesOf, UnitsAreSharedOnceEach) {
    // One pass after another: a rank may request the next one while the root still finishes the last.
    constexpr int64_t units = 25;
    constexpr int passes = 40;
    std::vector<std::atomic<int>> times(units);
    on_ranks(
        ranks_of(),
        [&](Ranks& ranks, CancelFlag& cancel) {
            for (int pass = 0; pass < passes; ++pass)
                ranks.for_each("units", units, 3, &cancel, [&](int64_t unit, int member) {
                    EXPECT_LT(member, 3);
                    times[static_cast<size_t>(unit)] += 1;
                });
        },
        hosts());
    for (const auto& one : times)
        EXPECT_EQ(one, passes);
}

TEST_P(TilesOf, AnErrorInAUnitIsTheRanksOwn) {
    std::atomic<int> told = 0, ended = 0;
    on_ranks(
        ranks_of(),
        [&](Ranks& ranks, CancelFlag& cancel) {
            try {
                ranks.for_each("units", 40, 2, &cancel, [&](int64_t unit, int) {
                    if (unit == 7) throw Error("unit 7");
                    std::this_thread::sleep_for(std::chrono::milliseconds(1));
                });
            } catch (const Cancelled&) {
                ended += 1;
                ranks.conclude({1, "interrupted", "", false});
            } catch (const Error& error) {
                EXPECT_STREQ(error.what(), "unit 7");
                told += 1;
                ranks.conclude({2, error.what(), "", false});
            }
        },
        hosts());
    EXPECT_EQ(told, 1);
    EXPECT_EQ(ended, ranks_of() - 1);
}

TEST_P(TilesOf, WhatBelongsToATileComesToTheRootInOrder) {
    const int n = ranks_of();
    constexpr int64_t tiles = 60;
    constexpr size_t floats = 5000;
    const auto never = [] { return false; };
    on_ranks(
        n,
        [&](Ranks& ranks, CancelFlag&) {
            parallel::SharedTiles shared(ranks, tiles);
            const auto lane = [&](const std::function<void(int64_t)>& use) {
                while (const auto position = shared.next(0, never))
                    use(*position);
            };
            if (!ranks.root()) {
                lane([&](int64_t position) {
                    const std::vector<float> part(floats, static_cast<float>(position));
                    shared.send(position, part.data(), floats * sizeof(float), never);
                });
            } else {
                std::set<int64_t> own;
                std::thread work([&] { lane([&](int64_t position) { own.insert(position); }); });
                std::set<int64_t> others;
                for (int64_t position = 0; position < tiles; ++position) {
                    const int owner = shared.owner(position, never).value();
                    if (owner == 0) continue;
                    others.insert(position);
                    std::vector<float> part(floats);
                    shared.receive(position, owner, part.data(), floats * sizeof(float), never);
                    EXPECT_EQ(part, std::vector<float>(floats, static_cast<float>(position)));
                }
                work.join();
                EXPECT_EQ(own.size() + others.size(), static_cast<size_t>(tiles));
                for (const int64_t position : own)
                    EXPECT_EQ(others.count(position), 0u);
            }
            ranks.sum("end of pass", 0);
        },
        hosts());
}

TEST_P(RanksOf, AllEndAsOneWhenAllIsWell) {
    on_ranks(GetParam(), [](Ranks& ranks, CancelFlag& cancel) {
        if (ranks.root()) ranks.await_others();
        const Ending all = ranks.conclude({});
        EXPECT_EQ(all.code, 0);
        EXPECT_FALSE(cancel.requested());
    });
}

TEST_P(RanksOf, WhatEndsInOrderIsLeftTogether) {
    for (const int code : {0, 2}) {
        const auto left = on_ranks(GetParam(), [&](Ranks& ranks, CancelFlag&) {
            Ending mine;
            if (ranks.rank() == 1) mine = {code, "the disk is full", "", false};
            if (ranks.root()) {
                try {
                    ranks.await_others();
                } catch (const Cancelled&) {
                    mine = {1, "interrupted", "", false};
                }
            }
            ranks.finish(ranks.conclude(mine).code);
        });
        EXPECT_EQ(left, std::vector<std::string>(left.size(), "together with " + std::to_string(code)));
    }
}

TEST_P(RanksOf, ASignalToOneLetsAllLeaveAlone) {
    const int n = GetParam();
    for (const int told : {0, n - 1}) {
        std::atomic<bool> said = false;
        const auto left = on_ranks(n, [&](Ranks& ranks, CancelFlag& cancel) {
            if (ranks.rank() == told)
                cancel.interrupt();
            else
                EXPECT_THROW(ranks.sum("never complete", 1), Cancelled);
            const Ending all = ranks.conclude({1, "interrupted", "", false});
            EXPECT_EQ(all.code, 1);
            if (ranks.root()) {
                // The other ranks wait for the root's message.
                std::this_thread::sleep_for(std::chrono::milliseconds(50));
                said = true;
            } else if (ranks.rank() != told) {
                EXPECT_TRUE(said);
            }
            ranks.finish(all.code);
        });
        EXPECT_EQ(left, std::vector<std::string>(left.size(), "alone with 1"));
    }
}

TEST_P(RanksOf, AfterASignalNobodyWaitsForOneThatIsStuck) {
    const int n = GetParam();
    std::atomic<int> gone{0};
    const auto left = on_ranks(n, [&](Ranks& ranks, CancelFlag& cancel) {
        if (ranks.rank() == 1) {
            while (gone < n - 1)
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            return; // killed
        }
        cancel.interrupt();
        EXPECT_THROW(ranks.sum("never complete", 1), Cancelled);
        // One rank had finished its part before the signal; the result must still be a failure.
        const Ending all = ranks.conclude(ranks.rank() == 2 ? Ending{} : Ending{1, "interrupted", "", false});
        EXPECT_EQ(all.code, 1);
        ranks.finish(all.code);
        ++gone;
    });
    for (int r = 0; r < n; ++r)
        EXPECT_EQ(left[static_cast<size_t>(r)], r == 1 ? "" : "alone with 1");
}

TEST_P(RanksOf, ASignalDoesNotTakeBackWhatTheRootHasDone) {
    const auto left = on_ranks(GetParam(), [&](Ranks& ranks, CancelFlag& cancel) {
        if (ranks.root()) {
            ranks.await_others();
            cancel.interrupt();
        }
        const Ending all = ranks.conclude({});
        EXPECT_EQ(all.code, 0);
        ranks.finish(all.code);
    });
    EXPECT_EQ(left, std::vector<std::string>(left.size(), "alone with 0"));
}

TEST_P(RanksOf, AFailureOfOneEndsAll) {
    const int n = GetParam();
    for (const int bad : {0, n - 1}) {
        std::atomic<int> ended{0};
        on_ranks(n, [&](Ranks& ranks, CancelFlag& cancel) {
            Ending mine;
            if (ranks.rank() == bad) {
                mine = {2, "the disk is full", "Make room.", false};
            } else {
                // In the middle of an operation that waits for all ranks.
                EXPECT_THROW(ranks.sum("never complete", 1), Cancelled);
                EXPECT_TRUE(cancel.requested());
                mine = {1, "interrupted", "", false};
            }
            const Ending all = ranks.conclude(mine);
            EXPECT_EQ(all.code, 2);
            if (ranks.root()) {
                EXPECT_EQ(all.what, "the disk is full (rank " + std::to_string(bad) + " on " +
                                        (bad % 2 ? "odd" : "even") + ")");
                EXPECT_EQ(all.advice, "Make room.");
            } else {
                EXPECT_EQ(all.what, "");
            }
            ++ended;
        });
        EXPECT_EQ(ended, n);
    }
}

TEST_P(RanksOf, TheRootDoesNotCommitWhatOthersHaveNotDone) {
    const int n = GetParam();
    on_ranks(n, [&](Ranks& ranks, CancelFlag&) {
        Ending mine;
        if (ranks.root()) {
            EXPECT_THROW(ranks.await_others(), Cancelled);
            mine = {1, "interrupted", "", false};
        } else if (ranks.rank() == 1) {
            mine = {1, "no memory", "", false};
        }
        const Ending all = ranks.conclude(mine);
        EXPECT_EQ(all.code, 1);
        EXPECT_EQ(all.what, ranks.root() ? "no memory (rank 1 on odd)" : "");
    });
}

TEST_P(RanksOf, RanksThatHaveLostStepSaySo) {
    const int n = GetParam();
    std::atomic<int> told{0};
    on_ranks(n, [&](Ranks& ranks, CancelFlag&) {
        Ending mine;
        try {
            if (ranks.rank() == 1)
                ranks.sum("one thing", 1);
            else
                ranks.sum("another", 1);
        } catch (const Cancelled&) {
            mine = {1, "interrupted", "", false};
        } catch (const Error& e) {
            EXPECT_NE(std::string(e.what()).find("one thing"), std::string::npos);
            ++told;
            mine = {1, e.what(), "", false};
        }
        EXPECT_EQ(ranks.conclude(mine).code, 1);
    });
    EXPECT_GE(told, 1);
}

INSTANTIATE_TEST_SUITE_P(Sizes, RanksOf, testing::Values(2, 3, 5, 8));
INSTANTIATE_TEST_SUITE_P(Sizes, TilesOf,
                         testing::Combine(testing::Values(2, 3, 5, 8), testing::Values(1, 2)));

} // namespace
} // namespace hsi::test
