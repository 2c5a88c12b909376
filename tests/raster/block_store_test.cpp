// SPDX-License-Identifier: MIT
#include "raster/io/block_store.h"

#include "core/error.h"
#include "parallel/threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <vector>

namespace hsi::raster {
namespace {

constexpr uint64_t bytes_of_block = 2048, damaged = 77;

/// Fills a block with its number, and counts how often each block is decoded.
class Counting final : public BlockHands {
  public:
    explicit Counting(std::vector<std::atomic<int>>& times) : m_times(times) {}
    void decode(uint64_t block, char* samples) override {
        ++m_times[block];
        if (block == damaged) throw Error("block 77 is damaged");
        for (size_t i = 0; i < bytes_of_block; i += sizeof block)
            std::memcpy(samples + i, &block, sizeof block);
    }

  private:
    std::vector<std::atomic<int>>& m_times;
};

class BlockStoreTest : public testing::Test {
  protected:
    /// Takes a block and checks its samples; if `wait` is false, it does not wait for another thread.
    void look_at(uint64_t block, bool keep, BlockHands& by, bool wait = true) {
        std::vector<char> own(bytes_of_block);
        const auto lease = store.take({block, bytes_of_block}, keep, wait, by, own.data());
        ASSERT_TRUE(lease);
        uint64_t first = 0, last = 0;
        std::memcpy(&first, lease.samples(), sizeof first);
        std::memcpy(&last, lease.samples() + bytes_of_block - sizeof last, sizeof last);
        EXPECT_EQ(first, block);
        EXPECT_EQ(last, block);
    }
    int decoded() const {
        int sum = 0;
        for (const auto& n : times)
            sum += n;
        return sum;
    }
    BlockStore::MakeHands maker() {
        return [this] { return std::make_unique<Counting>(times); };
    }

    std::vector<std::atomic<int>> times = std::vector<std::atomic<int>>(1000);
    BlockStore store;
    Counting hands{times};
};

BlockRow rows_of(int64_t blocks, int64_t lines) {
    return {static_cast<uint64_t>(blocks) * bytes_of_block, bytes_of_block, static_cast<uint64_t>(blocks),
            lines};
}

TEST_F(BlockStoreTest, KeepsTwoRowsAndFreesTilesFromBlocks) {
    // 1000 lines in rows of 100 lines and 10 blocks.
    const uint64_t taken = store.share_memory(10 * 10 * bytes_of_block, rows_of(10, 100), 0, 1000, 4);
    EXPECT_GT(taken, 2 * 10 * bytes_of_block) << "what is known of each counts, too";
    EXPECT_LT(taken, 3 * 10 * bytes_of_block);
    EXPECT_EQ(store.kept_lines(), 100);
}

TEST_F(BlockStoreTest, FollowsTheBlocksWhereMemoryIsShort) {
    EXPECT_EQ(store.share_memory(14 * bytes_of_block, rows_of(10, 100), 0, 1000, 4), 7 * bytes_of_block);
    EXPECT_EQ(store.kept_lines(), 0);
    // If there is some room, blocks that neighbouring windows share are kept.
    EXPECT_EQ(store.share_memory(18 * bytes_of_block, rows_of(10, 100), 0, 1000, 4), 9 * bytes_of_block);
    EXPECT_EQ(store.kept_lines(), 0);
}

TEST_F(BlockStoreTest, LowRowsMakeTilesByThemselves) {
    store.share_memory(1000 * bytes_of_block, rows_of(10, 8), 0, 1000, 4);
    EXPECT_EQ(store.kept_lines(), 0);
}

TEST_F(BlockStoreTest, AllOfASmallScene) {
    EXPECT_GT(store.share_memory(1000 * bytes_of_block, rows_of(10, 100), 50, 250, 64), 30 * bytes_of_block);
    EXPECT_EQ(store.kept_lines(), 200);
}

TEST_F(BlockStoreTest, ThreadsDecodeNoBlockTwice) {
    store.share_memory(uint64_t{1} << 30, rows_of(1000, 100), 0, 100, 4);
    parallel::on_threads(8, [&](int) {
        Counting own(times);
        for (uint64_t block = 0; block < 1000; ++block)
            if (block != damaged) look_at(block, true, own);
    });
    EXPECT_EQ(decoded(), 999);
}

TEST_F(BlockStoreTest, WithinItsMemoryTheLongestUnusedGoesFirst) {
    store.share_memory(20 * bytes_of_block, rows_of(8, 100), 0, 1000, 1); // 16 blocks
    for (uint64_t block = 0; block < 10; ++block)
        look_at(block, true, hands);
    look_at(0, true, hands);
    EXPECT_EQ(times[0], 1);
    for (uint64_t block = 10; block < 20; ++block)
        look_at(block, true, hands);
    look_at(0, true, hands);
    EXPECT_EQ(times[0], 1) << "used again in between";
    look_at(1, true, hands);
    EXPECT_EQ(times[1], 2);
}

TEST_F(BlockStoreTest, WhatIsNotKeptIsTheReadersOwn) {
    std::vector<char> own(bytes_of_block);
    const auto lease = store.take({5, bytes_of_block}, false, true, hands, own.data());
    EXPECT_EQ(lease.samples(), own.data());
    look_at(5, false, hands);
    EXPECT_EQ(times[5], 2);
    look_at(5, true, hands); // there is no memory to keep it
    look_at(5, true, hands);
    EXPECT_EQ(times[5], 4);
}

TEST_F(BlockStoreTest, HelpersDecodeAheadAndNothingTwice) {
    for (const int helpers : {1, 3}) {
        const int before = decoded();
        ASSERT_GT(store.start_helpers(64 * bytes_of_block, helpers, bytes_of_block, bytes_of_block, maker()),
                  0U);
        for (uint64_t first = 100; first < 400; first += 100) {
            std::vector<BlockStore::Block> wanted;
            for (uint64_t k = 0; k < 100; ++k)
                wanted.push_back({first + k, bytes_of_block});
            store.want(wanted);
            for (uint64_t k = 0; k < 100; ++k)
                look_at(first + k, false, hands);
        }
        EXPECT_EQ(decoded() - before, 300);
        store.stop_helpers();
    }
}

TEST_F(BlockStoreTest, ForgetsWhatNobodyTook) {
    store.start_helpers(64 * bytes_of_block, 2, bytes_of_block, bytes_of_block, maker());
    std::vector<BlockStore::Block> wanted;
    for (uint64_t k = 200; k < 300; ++k)
        wanted.push_back({k, bytes_of_block});
    store.want(wanted);
    store.forget();
    store.want({{300, bytes_of_block}, {301, bytes_of_block}}); // they fit into the memory
    look_at(300, false, hands);
    look_at(301, false, hands);
    EXPECT_EQ(times[300] + times[301], 2);
    store.stop_helpers();
}

TEST_F(BlockStoreTest, TooLittleMemoryForAHelper) {
    EXPECT_EQ(store.start_helpers(2 * bytes_of_block - 1, 4, bytes_of_block, bytes_of_block, maker()), 0U);
    EXPECT_EQ(store.start_helpers(64 * bytes_of_block, 0, bytes_of_block, bytes_of_block, maker()), 0U);
    store.want({{1, bytes_of_block}});
    look_at(1, false, hands);
    EXPECT_EQ(times[1], 1);
}

TEST_F(BlockStoreTest, HelpersHaveWhatIsTooLittleToKeepBlocksIn) {
    ASSERT_EQ(store.share_memory(14 * bytes_of_block, rows_of(10, 100), 0, 1000, 4), 7 * bytes_of_block);
    EXPECT_EQ(store.start_helpers(0, 1, bytes_of_block, bytes_of_block, maker()), 7 * bytes_of_block);
    store.stop_helpers();
}

TEST_F(BlockStoreTest, WhoeverTakesADamagedBlockIsTold) {
    store.share_memory(uint64_t{1} << 30, rows_of(1000, 100), 0, 100, 4);
    parallel::on_threads(4, [&](int) {
        Counting own(times);
        std::vector<char> room(bytes_of_block);
        EXPECT_THROW(store.take({damaged, bytes_of_block}, true, true, own, room.data()), Error);
    });
    EXPECT_EQ(times[damaged], 1);
    BlockStore ahead;
    ahead.start_helpers(64 * bytes_of_block, 1, bytes_of_block, bytes_of_block, maker());
    ahead.want({{damaged, bytes_of_block}});
    std::vector<char> room(bytes_of_block);
    EXPECT_THROW(ahead.take({damaged, bytes_of_block}, false, true, hands, room.data()), Error);
}

TEST(BlockRange, KeepsWhatNeighboursNeed) {
    const auto kept = [](int64_t begin, int64_t end) {
        const BlockRange range = BlockRange::of(begin, end, 10, 100);
        std::vector<int64_t> blocks;
        for (int64_t k = range.first; k <= range.last; ++k)
            if (range.keeps(k)) blocks.push_back(k);
        return blocks;
    };
    using Blocks = std::vector<int64_t>;
    EXPECT_EQ(kept(0, 100), Blocks());
    EXPECT_EQ(kept(20, 50), Blocks()) << "whole blocks";
    EXPECT_EQ(kept(0, 52), (Blocks{4, 5})) << "and the tile below needs block 4 above its own";
    EXPECT_EQ(kept(38, 72), (Blocks{3, 4, 6, 7}));
    EXPECT_EQ(kept(95, 100), (Blocks{9})) << "nobody comes behind the end";
    EXPECT_EQ(kept(21, 25), (Blocks{2}));
}

} // namespace
} // namespace hsi::raster
