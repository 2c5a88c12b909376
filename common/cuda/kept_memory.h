// SPDX-License-Identifier: MIT
// Memory that a library keeps for its next call, because its calls allocate the same sizes repeatedly. A tool
// in its own process frees the memory at once.
#pragma once

#include "core/process_owner.h"
#include "cuda/check.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

namespace hsi::cuda {

/// Free blocks for later requests of the same size and place (a device, or -1 for pinned host memory). Each
/// module has one object per Kind. The object is never destroyed, since the driver may end before it.
template <class Kind>
class KeptMemory {
  public:
    static KeptMemory& instance() {
        static KeptMemory* const one = new KeptMemory;
        return *one;
    }
    /// Returns a kept block of this size and place; null if there is none.
    void* take(int place, size_t bytes) {
        const std::lock_guard<std::mutex> lock(m_mutex);
        const auto found = m_blocks.find({place, bytes});
        if (found == m_blocks.end()) return nullptr;
        void* const block = found->second;
        m_blocks.erase(found);
        m_bytes[place] -= bytes;
        return block;
    }
    /// Keeps a block. Returns false in a tool, or if the kept blocks of this place would exceed `most` bytes.
    /// The caller then frees the block.
    bool keep(int place, void* block, size_t bytes, uint64_t most) {
        if (process_is_ours()) return false;
        const std::lock_guard<std::mutex> lock(m_mutex);
        if (m_bytes[place] + bytes > most) return false;
        m_blocks.insert({{place, bytes}, block});
        m_bytes[place] += bytes;
        return true;
    }
    /// Frees the kept blocks of this place. \return false if no block was kept
    template <class Free>
    bool clear(int place, const Free& free) {
        const std::lock_guard<std::mutex> lock(m_mutex);
        bool any = false;
        for (auto it = m_blocks.lower_bound({place, 0}); it != m_blocks.end() && it->first.first == place;) {
            free(it->second, it->first.second);
            it = m_blocks.erase(it);
            any = true;
        }
        m_bytes[place] = 0;
        return any;
    }
    uint64_t bytes(int place) {
        const std::lock_guard<std::mutex> lock(m_mutex);
        return m_bytes[place];
    }

  private:
    std::mutex m_mutex;
    std::multimap<std::pair<int, size_t>, void*> m_blocks;
    std::map<int, uint64_t> m_bytes;
};

struct DeviceKind;
using KeptDeviceMemory = KeptMemory<DeviceKind>;

} // namespace hsi::cuda
