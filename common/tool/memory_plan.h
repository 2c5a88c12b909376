// SPDX-License-Identifier: MIT
// Divides a run's -memory among GDAL's block cache, tile buffers, kept scenes and data that is held during a
// pass.
#pragma once

#include "stream/pipeline.h"

#include <algorithm>
#include <cstdint>
#include <string>

namespace hsi::tool {

/// The defaults of -memory and -device-memory.
inline constexpr const char* default_memory = "25%";
inline constexpr const char* default_device_memory = "80 % of what is free";

/// Returns -memory in bytes. A percentage refers to the memory that this process may use, divided by
/// `sharing`. \throws UsageError
uint64_t memory_bytes(const std::string& text, int sharing);
/// Returns -device-memory in bytes; 0: not given. \throws UsageError
uint64_t device_memory_bytes(const std::string& text);
/// Returns the default share of a device's free bytes: 80 %.
inline uint64_t device_share(uint64_t free) { return free / 5 * 4; }

/// Returns the maximum part of -memory for each of the following: GDAL's block cache, a mask of src, a sink's
/// unfinished blocks.
inline uint64_t quarter(uint64_t memory) { return memory / 4; }
/// Returns the maximum part of -memory for each of the following: a reader's decoded blocks, and data that is
/// held during a pass. The other half always suffices for one worker.
inline uint64_t half(uint64_t memory) { return memory / 2; }
/// Reduces the memory of a pass by the memory of held data (planes, spectra), but at most by half.
void leave_room(stream::PassOptions& pass, uint64_t held);

/// The division of a run's -memory.
class MemoryPlan {
  public:
    MemoryPlan() = default;
    MemoryPlan(uint64_t memory, int threads) : m_memory(memory), m_threads(threads) {}
    /// Requests `bytes` more for GDAL's block cache, within its limit.
    void reserve_cache(uint64_t bytes) { m_cache_wanted += bytes; }
    /// Announces a source whose bands share blocks of this size. cache() then avoids a size at which workers
    /// would displace the blocks of each other.
    void expect_shared_block(uint64_t bytes) { m_shared_block = std::max(m_shared_block, bytes); }
    /// Reserves memory until the end of the run: decoded chunks that readers share.
    void hold(uint64_t bytes) { m_held += bytes; }
    uint64_t cache() const; ///< bytes of GDAL's block cache
    /// Returns the memory for tile buffers: -memory without `held` bytes, without the memory of hold(), and
    /// without the memory of reserve_cache() (at least the cache, at most half of -memory). \throws Error if
    /// the rest is too small for any pass
    uint64_t buffers(uint64_t held) const;
    /// Returns whether a scene of `bytes` may stay in memory. It may take up to half of `left`, the memory
    /// that is left for buffers. The rest must hold a reader (`reader` bytes) with the smallest buffers, and
    /// must be at least `beside`, the memory of a pass.
    static bool may_keep(uint64_t bytes, uint64_t left, uint64_t reader, uint64_t beside);

  private:
    uint64_t m_memory = 0;
    int m_threads = 1;
    uint64_t m_cache_wanted = 0, m_shared_block = 0, m_held = 0;
};

} // namespace hsi::tool
