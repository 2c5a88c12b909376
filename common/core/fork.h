// SPDX-License-Identifier: MIT
// What is kept from one call of a library to the next, in a process that forks while other threads are in
// calls. The child has the thread alone that has forked: what another one had locked nobody would unlock.
#pragma once

#include <mutex>

namespace hsi {

/// A mutex that is free in the child of a fork, and what it guards whole: fork() waits until it has it. It is
/// for static objects, which live as long as the process. Whoever holds it takes no other one, calls nothing
/// of a caller's (which may fork) and no library that has locks and handlers for forks of its own and was
/// loaded later.
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

/// Calls begin() in the child of each fork, with all that ForkMutex guards at rest.
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
