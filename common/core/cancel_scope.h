// SPDX-License-Identifier: MIT
// Cancels work within a tile, or within another long piece of work. Code that distributes the pieces sets the
// flag of each thread, and loops that take longer than a moment check the flag.
#pragma once

#include "core/cancel.h"
#include "core/error.h"

#include <utility>

namespace hsi {

/// While this object exists, check_cancelled() on this thread reads `flag`, which may be null.
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
