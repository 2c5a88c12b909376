// SPDX-License-Identifier: MIT
// Protects the state of a library if the process forks while other threads call the library. In the child,
// only the thread that forked exists, so a mutex that another thread has locked would stay locked.
#pragma once

#include <mutex>

namespace hsi {

/// A mutex that is free in the child of a fork. fork() waits until it can lock the mutex, so the data that
/// the mutex protects are consistent in the child. The mutex must be a static object that lives as long as
/// the process. The holder must not lock another ForkMutex, call a function of the caller (which may fork),
/// or call a library that was loaded later and has its own locks and fork handlers.
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

/// Calls begin() in the child of each fork, before the mutexes are released. All ForkMutexes are still held
/// by fork(): begin() must not lock them, but may change the data that they protect.
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
