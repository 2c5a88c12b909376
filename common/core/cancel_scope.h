// SPDX-License-Identifier: MIT
// Lets a run be cancelled within a tile or within another long piece of work. Code that gives such work to a
// thread creates a CancelScope on that thread. Loops that take longer than a moment call check_cancelled().
#pragma once

#include "core/cancel.h"
#include "core/error.h"

#include <utility>

namespace hsi {

/// While this object exists, check_cancelled() on this thread reads `flag`. If `flag` is null, work on this
/// thread cannot be cancelled. The destructor restores the previous flag of the thread.
class CancelScope {
  public:
    explicit CancelScope(const CancelFlag* flag) : m_before(std::exchange(t_heeded, flag)) {}
    ~CancelScope() { t_heeded = m_before; }
    CancelScope(const CancelScope&) = delete;
    CancelScope& operator=(const CancelScope&) = delete;

    static bool cancelled() { return t_heeded != nullptr && t_heeded->requested(); }

  private:
    static inline thread_local const CancelFlag* t_heeded = nullptr;
    const CancelFlag* const m_before;
};

/// Throws Cancelled if the flag of this thread is set. The check costs as little as reading two variables.
inline void check_cancelled() {
    if (CancelScope::cancelled()) throw Cancelled();
}

} // namespace hsi
