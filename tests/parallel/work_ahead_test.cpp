// SPDX-License-Identifier: MIT
#include "parallel/work_ahead.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

namespace hsi::parallel {
namespace {

int value_of(const char* buffer) {
    int value = 0;
    std::memcpy(&value, buffer, sizeof value);
    return value;
}

void put(int item, char* buffer) { std::memcpy(buffer, &item, sizeof item); }

std::vector<int> numbers(int first, int count) {
    std::vector<int> all(static_cast<size_t>(count));
    std::iota(all.begin(), all.end(), first);
    return all;
}

TEST(WorkAhead, GivesWhatWasAddedInOrder) {
    for (const size_t buffers : {1, 2, 7}) {
        WorkAhead<int> ahead(buffers, sizeof(int), put);
        ahead.add(numbers(0, 50));
        ahead.add(numbers(50, 50));
        for (int i = 0; i < 100; ++i)
            ASSERT_EQ(value_of(ahead.take()), i) << buffers;
    }
}

TEST(WorkAhead, WorksWhileNobodyTakesAndNoFurtherThanItsBuffers) {
    std::atomic<int> made{0};
    WorkAhead<int> ahead(3, sizeof(int), [&](int item, char* buffer) {
        put(item, buffer);
        ++made;
    });
    ahead.add(numbers(0, 10));
    while (made < 3)
        std::this_thread::yield();
    EXPECT_EQ(value_of(ahead.take()), 0); // one of the three remains in this process
    for (int i = 1; i < 10; ++i) {
        EXPECT_EQ(value_of(ahead.take()), i);
        EXPECT_LE(made, i + 3);
    }
}

TEST(WorkAhead, ForgetsWhatWasNotTaken) {
    WorkAhead<int> ahead(3, sizeof(int), put);
    for (int round = 0; round < 20; ++round) {
        ahead.add(numbers(100 * round, 10));
        for (int i = 0; i < round % 5; ++i)
            ASSERT_EQ(value_of(ahead.take()), 100 * round + i);
        ahead.clear();
    }
    ahead.add(numbers(7, 1));
    EXPECT_EQ(value_of(ahead.take()), 7);
}

TEST(WorkAhead, ThrowsWhatMakingAnItemThrew) {
    WorkAhead<int> ahead(2, sizeof(int), [](int item, char* buffer) {
        if (item == 2) throw std::runtime_error("two");
        put(item, buffer);
    });
    ahead.add(numbers(0, 5));
    EXPECT_EQ(value_of(ahead.take()), 0);
    EXPECT_EQ(value_of(ahead.take()), 1);
    EXPECT_THROW(ahead.take(), std::runtime_error);
    EXPECT_EQ(value_of(ahead.take()), 3);
    ahead.clear();
    ahead.add(numbers(8, 2));
    EXPECT_EQ(value_of(ahead.take()), 8);
}

TEST(WorkAhead, EndsWithItemsLeft) {
    std::atomic<int> made{0};
    {
        WorkAhead<int> ahead(2, sizeof(int), [&](int, char*) { ++made; });
        ahead.add(numbers(0, 1000));
    }
    EXPECT_LE(made, 2);
}

} // namespace
} // namespace hsi::parallel
