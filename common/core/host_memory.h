// SPDX-License-Identifier: MIT
// Host memory: sizes as users write them, the memory that this process has used, and large buffers. Buffers
// are page-aligned and on huge pages if the kernel provides them; a backend may supply pinned memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace hsi {

class HostAllocator {
  public:
    virtual ~HostAllocator() = default;
    virtual void*
    allocate(size_t bytes) = 0; ///< aligned to at least 64 bytes; throws Error when memory is short
    virtual void release(void* p, size_t bytes) noexcept = 0;
};

/// Makes malloc() return freed memory to the system at once. By default, the C library keeps tens of
/// megabytes per thread after large buffers (decoded blocks) are freed, and no memory plan includes them.
/// Call this function before threads are started.
void keep_heap_small() noexcept;

/// Lets the heap keep the memory of two freed buffers of this size per thread, for reuse. Chunks of an array
/// are decoded into such buffers. Without this call, the system provides new, cleared memory for each chunk.
/// Has an effect only if keep_heap_small() was called before, and for sizes below 32 MiB. Call this function
/// before threads are started.
void keep_buffers_of(uint64_t bytes) noexcept;

/// Makes threads that are started later share one heap. Has an effect only if keep_heap_small() was called
/// before. Needed for a library that runs on each thread in turn and allocates thousands of small blocks: it
/// would leave holes in the heap of each thread (HDF5 with small chunks: 216 MB instead of 120 MB).
void share_one_heap() noexcept;

/// Returns an allocator of ordinary (pageable) memory. Its blocks contain zeros at first. The kernel is asked
/// to use huge pages for them.
std::shared_ptr<HostAllocator> paged_allocator();

/// Owns an array of T from an allocator. The contents are undefined at first.
template <class T>
class HostBuffer {
  public:
    HostBuffer() = default;
    HostBuffer(std::shared_ptr<HostAllocator> from, size_t count)
        : m_from(std::move(from)), m_count(count),
          m_data(count ? static_cast<T*>(m_from->allocate(count * sizeof(T))) : nullptr) {}
    explicit HostBuffer(size_t count) : HostBuffer(paged_allocator(), count) {}
    HostBuffer(HostBuffer&& o) noexcept
        : m_from(std::move(o.m_from)), m_count(std::exchange(o.m_count, 0)),
          m_data(std::exchange(o.m_data, nullptr)) {}
    HostBuffer& operator=(HostBuffer&& o) noexcept {
        std::swap(m_from, o.m_from);
        std::swap(m_count, o.m_count);
        std::swap(m_data, o.m_data);
        return *this;
    }
    ~HostBuffer() {
        if (m_data) m_from->release(m_data, m_count * sizeof(T));
    }
    T* data() const { return m_data; }
    size_t size() const { return m_count; }
    T& operator[](size_t i) const { return m_data[i]; }

  private:
    std::shared_ptr<HostAllocator> m_from;
    size_t m_count = 0;
    T* m_data = nullptr;
};

/// Parses "512MB", "2GB", "1.5GiB", "800000" or "25%" (of `whole`). Suffixes are binary (1 MB = 2^20 bytes)
/// as in GDAL_CACHEMAX. Throws UsageError that names `option` if the text is not a positive size.
uint64_t parse_byte_size(std::string_view text, uint64_t whole, std::string_view option);

/// Returns "1.5 GB", "300 MB" or "12 kB", for messages.
std::string format_byte_size(uint64_t bytes);

/// Returns the highest resident set of this process so far, in bytes.
uint64_t peak_resident();

} // namespace hsi
