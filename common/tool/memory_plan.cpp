// SPDX-License-Identifier: MIT
#include "tool/memory_plan.h"

#include "core/error.h"
#include "core/host_memory.h"
#include "core/process_limits.h"

#include <algorithm>

namespace hsi::tool {
namespace {

// This is enough for GDAL's own data and for one row of blocks of an ordinary file.
constexpr uint64_t least_cache = uint64_t{16} << 20;
// Smaller buffers cannot store a line of any scene of a useful size.
constexpr uint64_t least_buffers = uint64_t{64} << 10;

} // namespace

uint64_t memory_bytes(const std::string& text, int sharing) {
    return parse_byte_size(text, usable_ram() / static_cast<uint64_t>(sharing), "-memory");
}

uint64_t device_memory_bytes(const std::string& text) {
    if (text.empty()) return 0;
    if (text.find('%') != std::string::npos)
        throw UsageError(
            "-device-memory: '" + text + "' is not a memory size",
            "Give a size such as 8GB, or leave the option out to use 80 % of the free device memory.");
    return parse_byte_size(text, 0, "-device-memory");
}

void leave_room(stream::PassOptions& pass, uint64_t held) {
    pass.memory -= std::min(half(pass.memory), held);
}

uint64_t MemoryPlan::cache() const {
    const uint64_t bytes = std::min(std::max(m_cache_wanted, least_cache), quarter(m_memory));
    // If all bands of a block fit, GDAL puts them into the cache together with the requested band. If blocks
    // displace each other before their bands are requested, each band reads all other bands again. A cache in
    // which no such block fits is then better.
    const auto lanes = static_cast<uint64_t>(std::max(1, m_threads));
    return m_shared_block > 0 && bytes >= m_shared_block && bytes < (lanes + 1) * m_shared_block
               ? m_shared_block - 1
               : bytes;
}

uint64_t MemoryPlan::buffers(uint64_t held) const {
    // Memory that was requested for the block cache but exceeds the cache is used elsewhere, for a sink's
    // unfinished blocks. It is left free, up to half of -memory. A kept scene takes at most half of the rest.
    held += m_held + std::clamp(m_cache_wanted, cache(), half(m_memory));
    const uint64_t left = m_memory - std::min(held, m_memory);
    if (left < least_buffers)
        throw Error("-memory: " + format_byte_size(m_memory) + " leaves no room for tile buffers",
                    "Use a larger -memory, such as 64MB.");
    return left;
}

bool MemoryPlan::may_keep(uint64_t bytes, uint64_t left, uint64_t reader, uint64_t beside) {
    return bytes <= half(left) && left - bytes >= std::max(beside, reader + least_buffers);
}

} // namespace hsi::tool
