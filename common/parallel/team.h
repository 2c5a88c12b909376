// SPDX-License-Identifier: MIT
// A few threads that together compute one piece of work after another, such as a tile, or a round of an
// algorithm that cannot be divided into tiles. The threads may belong to several processes of one host.
#pragma once

#include "core/host_memory.h"
#include "parallel/joint_memory.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace hsi {

class Team {
  public:
    /// Starts members - 1 threads, because the caller is a member.
    explicit Team(int members) : Team(members, nullptr) {}
    /// Joins the teams of other processes that use the same memory. All of them call run() for the same
    /// units, round after round, on buffers from memory(). Between two rounds, every process executes the
    /// same code, and must write only to its own memory there.
    Team(int members, std::shared_ptr<parallel::JointMemory> joint) : m_joint(std::move(joint)) {
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
    int size() const { return static_cast<int>(m_threads.size()) + 1; } ///< members of this process
    /// Returns the allocator of buffers that more than one member uses.
    std::shared_ptr<HostAllocator> memory() const {
        if (m_joint) return m_joint;
        return paged_allocator();
    }

    /// Calls work(unit, member) for every unit in [0, units) in any order, and returns when all are done.
    /// `work` must not throw; `member` counts within this process. \throws Cancelled if another process of
    /// the team has ended.
    void run(int64_t units, const std::function<void(int64_t, int)>& work) {
        share(units, work);
        if (m_joint) m_joint->meet();
    }

  private:
    void share(int64_t units, const std::function<void(int64_t, int)>& work) {
        if (!m_joint && (m_threads.empty() || units <= 1)) {
            for (int64_t u = 0; u < units; ++u)
                work(u, 0);
            return;
        }
        if (m_threads.empty()) return take(work, units, 0);
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
    void take(const std::function<void(int64_t, int)>& work, int64_t units, int member) {
        const auto next = [this] { return m_joint ? m_joint->take() : m_next.fetch_add(1); };
        for (int64_t u = next(); u < units; u = next())
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

    const std::shared_ptr<parallel::JointMemory> m_joint;
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
