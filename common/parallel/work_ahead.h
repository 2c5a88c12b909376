// SPDX-License-Identifier: MIT
// Computes items on a thread of its own, ahead of the thread that takes the results. The first thread
// computes the items in their order into a few buffers, which the second thread takes.
#pragma once

#include "core/host_memory.h"

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace hsi::parallel {

template <class Item>
class WorkAhead {
  public:
    using Work = std::function<void(const Item&, char* buffer)>;

    /// `work` fills a buffer of `bytes` bytes. At most `buffers` buffers are created; the taker holds one of
    /// them.
    /// \throws std::system_error if the system has no more threads.
    WorkAhead(size_t buffers, size_t bytes, Work work)
        : m_bytes(bytes), m_work(std::move(work)), m_free(buffers), m_thread([this] { serve(); }) {}
    WorkAhead(const WorkAhead&) = delete;
    WorkAhead& operator=(const WorkAhead&) = delete;
    ~WorkAhead() {
        {
            const std::lock_guard lock(m_mutex);
            m_end = true;
        }
        m_changed.notify_all();
        m_thread.join();
    }

    void add(const std::vector<Item>& items) {
        const std::lock_guard lock(m_mutex);
        m_waiting.insert(m_waiting.end(), items.begin(), items.end());
        m_changed.notify_all();
    }

    /// Waits for the result of the next item in the order of add(), and returns it. The result is valid until
    /// the next call of take() or clear(). Rethrows an exception of the computation.
    const char* take() {
        std::unique_lock lock(m_mutex);
        give_back();
        m_changed.wait(lock, [&] { return !m_made.empty(); });
        m_taken = std::move(m_made.front());
        m_made.pop_front();
        if (m_taken.error) std::rethrow_exception(m_taken.error);
        return m_taken.buffer.data();
    }

    /// Removes all items that were added and not taken.
    void clear() {
        std::unique_lock lock(m_mutex);
        m_waiting.clear();
        m_changed.wait(lock, [&] { return !m_busy; });
        give_back();
        for (Made& made : m_made)
            m_free.push_back(std::move(made.buffer));
        m_made.clear();
    }

  private:
    struct Made {
        HostBuffer<char> buffer;
        std::exception_ptr error;
        bool there = false;
    };

    void give_back() {
        if (!m_taken.there) return;
        m_free.push_back(std::move(m_taken.buffer));
        m_taken = {};
        m_changed.notify_all();
    }

    void serve() {
        std::unique_lock lock(m_mutex);
        while (true) {
            m_changed.wait(lock, [&] { return m_end || (!m_waiting.empty() && !m_free.empty()); });
            if (m_end) return;
            const Item item = std::move(m_waiting.front());
            m_waiting.pop_front();
            Made made{std::move(m_free.back()), nullptr, true};
            m_free.pop_back();
            m_busy = true;
            lock.unlock();
            try {
                if (made.buffer.size() == 0) made.buffer = HostBuffer<char>(m_bytes); // created on demand
                m_work(item, made.buffer.data());
            } catch (...) {
                made.error = std::current_exception();
            }
            lock.lock();
            m_made.push_back(std::move(made));
            m_busy = false;
            m_changed.notify_all();
        }
    }

    const size_t m_bytes;
    const Work m_work;
    std::mutex m_mutex; ///< guards the following members
    std::condition_variable m_changed;
    std::deque<Item> m_waiting;
    /// The last buffer is taken first, so that existing buffers are reused before new ones are created.
    std::vector<HostBuffer<char>> m_free;
    std::deque<Made> m_made;
    Made m_taken;
    bool m_busy = false, m_end = false;
    std::thread m_thread; ///< initialised after all members that it uses
};

} // namespace hsi::parallel
