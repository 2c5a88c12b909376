// SPDX-License-Identifier: MIT
// Memory that ranks of one host share, and the rounds in which all their threads work on it: it makes one
// team (parallel/team.h) of the threads of several processes.
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
    /// All ranks call this together. Returns room for `bytes`, zero at first, on the root and the ranks that
    /// see its memory. Null on the others (on another host, or in another container), and on all ranks when
    /// the root has no such rank. The system holds the memory once for all of them and frees it with the last
    /// of them, however that process ends. `ranks` must outlive it. at_once: the pages exist before the first
    /// access, which is quicker for memory that every rank reads many times.
    static std::shared_ptr<JointMemory> make(Group& ranks, const std::string& what, uint64_t bytes,
                                             bool at_once = true);
    JointMemory(const JointMemory&) = delete;
    JointMemory& operator=(const JointMemory&) = delete;
    ~JointMemory() override;

    /// Returns the same memory in each process that allocates the same sizes in the same order.
    void* allocate(size_t bytes) override;
    void release(void*, size_t) noexcept override {} ///< with the whole
    int processes() const { return m_processes; }

    /// The next unit of the round, from 0.
    int64_t take();
    /// Ends a round when one thread of each process has called it. \throws Cancelled when the run is to end,
    /// because another rank has failed or by a signal.
    void meet();

  private:
    struct Head;
    JointMemory(void* memory, uint64_t size, const CancelFlag* cancel);
    void make_all_pages(); ///< by all processes together

    Head* const m_head;
    const uint64_t m_size;
    uint64_t m_used;
    const CancelFlag* const m_cancel;
    int m_processes = 1;
};

} // namespace hsi::parallel
