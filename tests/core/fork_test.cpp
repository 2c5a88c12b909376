// SPDX-License-Identifier: MIT
// Forks while another thread holds locks that the child needs.
#include "core/fork.h"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace hsi {
namespace {

ForkMutex g_mutex, g_other; // they guard the counters
int g_first = 0, g_second = 0, g_begun = 0;
const InForkedChild g_child([] { ++g_begun; });

/// Returns the exit status of a forked child that calls `look`; -1 if the child was killed.
template <class Look>
int in_child(const Look& look) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(look());
    int status = 0;
    return ::waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Fork, ChildFindsMutexesFreeAndWhatTheyGuardWhole) {
    std::atomic<bool> held{false};
    std::thread changing([&] {
        const std::lock_guard lock(g_mutex);
        g_first = 1;
        held = true;
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        g_second = 1;
    });
    while (!held)
        std::this_thread::yield();
    const int seen = in_child([] {
        if (!g_mutex.try_lock() || !g_other.try_lock()) return 1;
        if (g_first != g_second) return 2;
        return g_begun == 1 ? 0 : 3;
    });
    changing.join();
    EXPECT_EQ(seen, 0);
    EXPECT_EQ(g_begun, 0); // in the parent
    EXPECT_TRUE(g_mutex.try_lock());
    g_mutex.unlock();
}

TEST(Fork, ChildForksLikewise) {
    EXPECT_EQ(in_child([] { return in_child([] { return g_mutex.try_lock() && g_begun == 2 ? 0 : 1; }); }),
              0);
}

} // namespace
} // namespace hsi
