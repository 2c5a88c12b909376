// SPDX-License-Identifier: MIT
// State that a library keeps from one call to the next, in a process that forks while other threads are in
// calls. The child has only the thread that forked: nobody would unlock a mutex that another thread held.
#pragma once

#include <mutex>

namespace hsi {

/// A mutex that is free in the child of a fork, with the data behind it whole: fork() waits until it has the
/// mutex. It is for static objects, which live as long as the process. A holder must not lock another
/// ForkMutex, call a function of the caller's (it may fork), or call a library that was loaded later and has
/// its own locks and fork handlers.
class ForkMutex {
  public:
    ForkMutex() noexcept;
    ForkMutex(const ForkMutex&) = delete;
    ForkMutex& operator=(const ForkMutex&) = delete;
    void lock() { m_mutex.lock(); }
    bool try_lock() { return m_mutex.try_lock(); }
    void unlock() { m_mutex.unlock(); }

  private:
    friend struct ForkHandlers;
    std::mutex m_mutex;
    ForkMutex* m_next = nullptr;
};

/// Calls begin() in the child of each fork, while all data behind ForkMutex are at rest.
class InForkedChild {
  public:
    explicit InForkedChild(void (*begin)()) noexcept;
    InForkedChild(const InForkedChild&) = delete;
    InForkedChild& operator=(const InForkedChild&) = delete;

  private:
    friend struct ForkHandlers;
    void (*const m_begin)();
    InForkedChild* m_next = nullptr;
};

} // namespace hsi
