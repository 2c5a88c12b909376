// SPDX-License-Identifier: MIT
// Ends work within a tile, or within another piece that takes long: code that hands out pieces states which
// flag a thread heeds, and loops that take longer than a moment check it.
#pragma once

#include "core/cancel.h"
#include "core/error.h"

#include <utility>

namespace hsi {

/// While it lives, check_cancelled() on this thread asks the flag, which may be null.
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

/// \throws Cancelled. Costs as little as a look at two variables.
inline void check_cancelled() {
    if (CancelScope::cancelled()) throw Cancelled();
}

} // namespace hsi
