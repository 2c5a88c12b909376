// SPDX-License-Identifier: MIT
// How many workers (lanes) a pass gets.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace hsi::stream {

/// What an algorithm, or the device that it computes on, allows.
struct WorkerLimit {
    uint64_t bytes_each = 0; ///< of a raw scene, for each worker; 0: any
    int least = 1;           ///< whatever the scene's size
    int most = std::numeric_limits<int>::max();
};

/// Returns `wanted` workers, or fewer: what the limit allows for a raw scene of so many bytes. Readers of any
/// other scene have work of their own, so that `scene_bytes` is 0 and its size does not count.
inline int worker_count(int wanted, uint64_t scene_bytes, const WorkerLimit& limit) {
    wanted = std::min(wanted, limit.most);
    if (limit.bytes_each == 0 || scene_bytes == 0) return wanted;
    const uint64_t worth = std::max(static_cast<uint64_t>(limit.least), scene_bytes / limit.bytes_each);
    return worth < static_cast<uint64_t>(wanted) ? static_cast<int>(worth) : wanted;
}

} // namespace hsi::stream
