// SPDX-License-Identifier: MIT
#include "core/host_memory.h"

#include "core/byte_size.h"
#include "core/error.h"

#include <malloc.h>
#include <sys/mman.h>

#include <algorithm>

namespace hsi {
namespace {

bool g_small = false; // the process is ours, and its heap kept small

class PagedAllocator final : public HostAllocator {
  public:
    void* allocate(size_t bytes) override {
        void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
            throw Error("cannot allocate " + format_byte_size(bytes) + " of memory",
                        "Use a smaller -memory or -tile.");
        madvise(p, bytes, MADV_HUGEPAGE);
        return p;
    }
    void release(void* p, size_t bytes) noexcept override { munmap(p, bytes); }
};

} // namespace

void keep_heap_small() noexcept {
#ifdef __GLIBC__
    g_small = true;
    // Blocks of GDAL's cache come and go in the order of their use: on the heap they would leave holes,
    // several times the size of the cache (246 MB for one of 24 MB while overviews of 224 bands are made; 31
    // MB with a mapping for each).
    mallopt(M_MMAP_THRESHOLD, 64 << 10);
    mallopt(M_TRIM_THRESHOLD, 2 << 20);
#endif
}

void keep_buffers_of(uint64_t bytes) noexcept {
#ifdef __GLIBC__
    constexpr uint64_t largest = uint64_t{32} << 20; // glibc's own limit for what is no mapping of its own
    if (!g_small || bytes >= largest) return;
    mallopt(M_MMAP_THRESHOLD, static_cast<int>(std::max<uint64_t>(bytes + (64 << 10), 64 << 10)));
    mallopt(M_TRIM_THRESHOLD, static_cast<int>(2 * bytes + (2 << 20)));
#else
    (void)bytes;
#endif
}

void share_one_heap() noexcept {
#ifdef __GLIBC__
    if (g_small) mallopt(M_ARENA_MAX, 1);
#endif
}

std::shared_ptr<HostAllocator> paged_allocator() {
    static const auto allocator = std::make_shared<PagedAllocator>();
    return allocator;
}

} // namespace hsi
