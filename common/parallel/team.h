// SPDX-License-Identifier: MIT
// A few threads that share one piece of work after another: a tile, or an algorithm that cannot be cut into
// tiles.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace hsi {

class Team {
  public:
    /// The caller is a member: members - 1 threads are made.
    explicit Team(int members) {
        for (int i = 1; i < members; ++i)
            m_threads.emplace_back([this, i] { serve(i); });
    }
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;
    ~Team() {
        {
            const std::lock_guard lock(m_mutex);
            m_end = true;
        }
        m_wake.notify_all();
        for (auto& t : m_threads)
            t.join();
    }
    int size() const { return static_cast<int>(m_threads.size()) + 1; }

    /// Calls work(unit, member) for every unit in [0, units), in no particular order; returns when all are
    /// done. `work` must not throw.
    void run(int64_t units, const std::function<void(int64_t, int)>& work) {
        if (m_threads.empty() || units <= 1) {
            for (int64_t u = 0; u < units; ++u)
                work(u, 0);
            return;
        }
        {
            const std::lock_guard lock(m_mutex);
            m_work = &work;
            m_units = units;
            m_next.store(0);
            m_busy = static_cast<int>(m_threads.size());
            ++m_round;
        }
        m_wake.notify_all();
        take(work, units, 0);
        std::unique_lock lock(m_mutex);
        m_done.wait(lock, [&] { return m_busy == 0; });
    }

  private:
    void take(const std::function<void(int64_t, int)>& work, int64_t units, int member) {
        for (int64_t u = m_next.fetch_add(1); u < units; u = m_next.fetch_add(1))
            work(u, member);
    }
    void serve(int member) {
        int64_t seen = 0;
        for (;;) {
            const std::function<void(int64_t, int)>* work = nullptr;
            int64_t units = 0;
            {
                std::unique_lock lock(m_mutex);
                m_wake.wait(lock, [&] { return m_end || m_round != seen; });
                if (m_end) return;
                seen = m_round;
                work = m_work;
                units = m_units;
            }
            take(*work, units, member);
            const std::lock_guard lock(m_mutex);
            if (--m_busy == 0) m_done.notify_one();
        }
    }

    std::mutex m_mutex;
    std::condition_variable m_wake, m_done;
    const std::function<void(int64_t, int)>* m_work = nullptr;
    int64_t m_units = 0, m_round = 0;
    std::atomic<int64_t> m_next{0};
    int m_busy = 0;
    bool m_end = false;
    std::vector<std::thread> m_threads;
};

} // namespace hsi
