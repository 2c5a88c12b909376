// SPDX-License-Identifier: MIT
// Memory that ranks of one host have in common, and the rounds in which all their threads work on it: what
// makes one team (parallel/team.h) of the threads of several processes.
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
    /// All ranks together: room for `bytes`, zero at first, for the root and those that see its memory. Null
    /// on the others (of another host, or in a container of their own), and on all when there is nobody else.
    /// The system has it once for all of them, and it is gone with the last of them, however that ends.
    /// `ranks` must outlive it. at_once: it is there before anything is touched, which is quicker for what
    /// every rank goes through, again and again.
    static std::shared_ptr<JointMemory> make(Group& ranks, const std::string& what, uint64_t bytes,
                                             bool at_once = true);
    JointMemory(const JointMemory&) = delete;
    JointMemory& operator=(const JointMemory&) = delete;
    ~JointMemory() override;

    /// The same memory for all who allocate the same sizes in the same order.
    void* allocate(size_t bytes) override;
    void release(void*, size_t) noexcept override {} ///< with the whole
    int processes() const { return m_processes; }

    /// The next unit of the round, from 0.
    int64_t take();
    /// Ends a round when all processes have come here, each by one thread. \throws Cancelled when the run is
    /// to end, because another rank has failed or by a signal.
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
