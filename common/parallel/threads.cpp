// SPDX-License-Identifier: MIT
#include "parallel/threads.h"

#include "core/error.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace hsi::parallel {

void on_threads(int members, const std::function<void(int)>& work, const std::function<void()>& failed) {
    std::mutex mutex;
    std::exception_ptr error; // guarded by mutex
    const auto guarded = [&](int member) {
        try {
            work(member);
        } catch (...) {
            const std::lock_guard lock(mutex);
            if (!error) error = std::current_exception();
            failed();
        }
    };
    std::vector<std::thread> threads;
    threads.reserve(static_cast<size_t>(std::max(0, members - 1)));
    try {
        for (int member = 1; member < members; ++member)
            threads.emplace_back(guarded, member);
    } catch (const std::system_error&) {
        // No more threads here: those that there are do the work.
    }
    guarded(0);
    for (auto& thread : threads)
        thread.join();
    if (error) std::rethrow_exception(error);
}

void for_each(int64_t units, int members, const CancelFlag* cancel,
              const std::function<void(int64_t, int)>& work) {
    std::atomic<int64_t> next{0};
    on_threads(
        static_cast<int>(std::min<int64_t>(members, units)),
        [&](int member) {
            for (int64_t unit = next.fetch_add(1); unit < units; unit = next.fetch_add(1)) {
                if (cancel != nullptr && cancel->requested()) throw Cancelled();
                work(unit, member);
            }
        },
        [&] { next.store(units); });
}

} // namespace hsi::parallel
