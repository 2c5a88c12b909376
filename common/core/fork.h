// SPDX-License-Identifier: MIT
// Protects the state that a library keeps between calls when the process forks while other threads are in
// calls. The child has only the thread that forked, so nothing would unlock a mutex of another thread.
#pragma once

#include <mutex>

namespace hsi {

/// A mutex that is free in the child of a fork. fork() waits until it holds the mutex, so the data behind it
/// are consistent. The mutex must be a static object that lives as long as the process. The holder must not
/// lock another ForkMutex, call a function of the caller (which may fork), or call a library that was loaded
/// later and has its own locks and fork handlers.
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
