// SPDX-License-Identifier: MIT
#include "core/host_memory.h"

#include "core/error.h"
#include "core/fork.h"
#include "core/process_owner.h"
#include "core/system.h"
#include "core/text.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <mutex>

namespace hsi {

namespace {

bool g_small = false; // true: this process runs one of our programs, and its heap is kept small

/// Small blocks that a library keeps for its next call, because getting new pages takes longer than computing
/// small arrays. The size of a block is a power of two.
class KeptPages {
  public:
    /// Returns true if blocks of this size are kept. A process of our own keeps no blocks.
    static bool holds(size_t bytes) { return bytes <= largest && !process_is_ours(); }
    static size_t size_of(size_t bytes) { return std::bit_ceil(std::max<size_t>(bytes, 4096)); }
    /// Returns null if no block is kept.
    static void* take(size_t bytes) noexcept {
        const std::lock_guard lock(s_mutex);
        auto& blocks = s_blocks[place(bytes)];
        if (blocks.count == 0) return nullptr;
        return blocks.free[--blocks.count];
    }
    static bool keep(void* p, size_t bytes) noexcept {
        const std::lock_guard lock(s_mutex);
        auto& blocks = s_blocks[place(bytes)];
        if (blocks.count == blocks.free.size()) return false;
        blocks.free[blocks.count++] = p;
        return true;
    }

  private:
    static constexpr size_t largest = size_t{1} << 20;
    struct Blocks {
        std::array<void*, 32> free;
        size_t count;
    };
    static size_t place(size_t bytes) {
        return static_cast<size_t>(std::bit_width(size_of(bytes) / 4096)) - 1;
    }
    static inline ForkMutex s_mutex;
    /// Free blocks of 4 kB, 8 kB, .., 1 MB; at most 64 MB in total.
    static inline std::array<Blocks, 9> s_blocks{};
};

class PagedAllocator final : public HostAllocator {
  public:
    void* allocate(size_t bytes) override {
        const bool small = KeptPages::holds(bytes);
        if (small)
            if (void* const kept = KeptPages::take(bytes)) return std::memset(kept, 0, bytes);
        if (small) bytes = KeptPages::size_of(bytes);
        void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
            throw Error("cannot allocate " + format_byte_size(bytes) + " of memory",
                        "Use a smaller -memory or -tile.");
        system::want_huge_pages(p, bytes);
        return p;
    }
    void release(void* p, size_t bytes) noexcept override {
        if (!KeptPages::holds(bytes)) {
            munmap(p, bytes);
        } else if (!KeptPages::keep(p, bytes)) {
            munmap(p, KeptPages::size_of(bytes));
        }
    }
};

} // namespace

void keep_heap_small() noexcept {
    g_small = true;
    // Blocks of GDAL's cache are freed in the order of their use. On the heap they would leave holes of
    // several times the size of the cache (246 MB for a cache of 24 MB while overviews of 224 bands are made;
    // 31 MB with one mapping per block).
    system::set_heap(64 << 10, 2 << 20);
}

void keep_buffers_of(uint64_t bytes) noexcept {
    constexpr uint64_t largest = uint64_t{32} << 20; // glibc's own limit, above which blocks are mappings
    if (!g_small || bytes >= largest) return;
    system::set_heap(static_cast<int>(std::max<uint64_t>(bytes + (64 << 10), 64 << 10)),
                     static_cast<int>(2 * bytes + (2 << 20)));
}

void share_one_heap() noexcept {
    if (g_small) system::share_heap();
}

std::shared_ptr<HostAllocator> paged_allocator() {
    static const auto allocator = std::make_shared<PagedAllocator>();
    return allocator;
}

uint64_t parse_byte_size(std::string_view text, uint64_t whole, std::string_view option) {
    const std::string s(text);
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    if (!text.empty() && text.front() == '+') text.remove_prefix(1);
    const auto value = take_number(text);
    std::string unit;
    for (const char c : text)
        if (!std::isspace(static_cast<unsigned char>(c)))
            unit += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    double factor = 0;
    if (unit.empty() || unit == "B")
        factor = 1;
    else if (unit == "K" || unit == "KB" || unit == "KIB")
        factor = 1024.0;
    else if (unit == "M" || unit == "MB" || unit == "MIB")
        factor = 1024.0 * 1024;
    else if (unit == "G" || unit == "GB" || unit == "GIB")
        factor = 1024.0 * 1024 * 1024;
    else if (unit == "T" || unit == "TB" || unit == "TIB")
        factor = 1024.0 * 1024 * 1024 * 1024;
    else if (unit == "%")
        factor = static_cast<double>(whole) / 100.0;
    const double bytes = value.value_or(0) * factor;
    if (!(bytes >= 1) || bytes > 9e18 || (unit == "%" && *value > 100))
        throw UsageError(std::string(option) + ": '" + s + "' is not a memory size",
                         "Give a positive size such as 512MB, 2GB or 25%.");
    return static_cast<uint64_t>(bytes);
}

std::string format_byte_size(uint64_t bytes) {
    static constexpr const char* units[] = {"B", "kB", "MB", "GB", "TB"};
    double v = static_cast<double>(bytes);
    int u = 0;
    while (v >= 1024 && u < 4) {
        v /= 1024;
        ++u;
    }
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, v < 10 && u > 0 ? "%.1f %s" : "%.0f %s", v, units[u]);
    return buffer;
}

uint64_t peak_resident() { return system::peak_resident(); }

} // namespace hsi
