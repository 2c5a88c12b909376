// SPDX-License-Identifier: MIT
// Memory that the ranks of one host share, and rounds in which all threads of these ranks work on it. The
// threads of several processes become one team (parallel/team.h).
#pragma once

#include "core/cancel.h"
#include "core/host_memory.h"
#include "parallel/group.h"

#include <cstdint>
#include <memory>
#include <string>

namespace hsi::parallel {

class JointMemory final : public HostAllocator {
  public:
    /// Returns shared memory of `bytes` bytes, zero at first, on the root and the ranks that can share its
    /// memory. Returns null on other ranks (on another host or in another container), and on all ranks if no
    /// rank can share the root's memory. All ranks must call this function together. The system stores the
    /// memory once and frees it after the last process ends, however it ends. `ranks` must outlive the
    /// result. at_once: creates the pages before the first access, which is faster for memory that every rank
    /// reads many times.
    static std::shared_ptr<JointMemory> make(Group& ranks, const std::string& what, uint64_t bytes,
                                             bool at_once = true);
    JointMemory(const JointMemory&) = delete;
    JointMemory& operator=(const JointMemory&) = delete;
    ~JointMemory() override;

    /// Returns the same memory in each process that allocates the same sizes in the same order.
    void* allocate(size_t bytes) override;
    void release(void*, size_t) noexcept override {} ///< Does nothing: the destructor frees the whole memory.
    int processes() const { return m_processes; }

    /// Returns the next unit of the current round. The units count from 0 and are shared by all threads of
    /// all processes.
    int64_t take();
    /// Ends a round: waits until one thread of each process has called this function. Units count from 0
    /// again afterwards. \throws Cancelled if the run must end, because another rank has failed or a signal
    /// arrived.
    void meet();

  private:
    struct Head;
    JointMemory(void* memory, uint64_t size, const CancelFlag* cancel);
    void make_all_pages(); ///< all processes call it together

    Head* const m_head;
    const uint64_t m_size;
    uint64_t m_used;
    const CancelFlag* const m_cancel;
    int m_processes = 1;
};

} // namespace hsi::parallel
