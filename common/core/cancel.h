// SPDX-License-Identifier: MIT
// The flag by which a signal handler or a progress callback ends a run.
#pragma once

#include <atomic>

namespace hsi {

/// A flag that a signal handler or a progress callback sets, and that the pipeline reads between tiles.
class CancelFlag {
  public:
    void request() noexcept { m_flag.store(true, std::memory_order_relaxed); }
    bool requested() const noexcept { return m_flag.load(std::memory_order_relaxed); }
    /// Works as request(), and also records that the run must end quickly because the sender, such as a
    /// signal handler, does not wait long.
    void interrupt() noexcept {
        m_interrupted.store(true, std::memory_order_relaxed);
        request();
    }
    bool interrupted() const noexcept { return m_interrupted.load(std::memory_order_relaxed); }

  private:
    std::atomic<bool> m_flag{false}, m_interrupted{false};
};

} // namespace hsi
