// SPDX-License-Identifier: MIT
// Memory of the host: sizes as users write them, what this process has used, and large buffers: page-aligned,
// on huge pages where the kernel gives them; a backend may supply pinned memory.
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

/// Gives memory that malloc's users free back to the system at once. Otherwise the C library learns from
/// large buffers that come and go (decoded blocks) to keep tens of megabytes for each thread, which no plan
/// includes. Call it before threads are started.
void keep_heap_small() noexcept;

/// After keep_heap_small(): each thread keeps the memory of two buffers of this size from one use to the
/// next. Chunks of an array are decoded into such buffers; new memory for each would be cleared every time.
/// Call it before threads are started.
void keep_buffers_of(uint64_t bytes) noexcept;

/// After keep_heap_small(): threads that are started later share one heap. A library that works on one thread
/// at a time, but on each in turn, and takes thousands of small blocks would leave holes in a heap of each
/// thread (HDF5 where chunks are small: 216 MB where one heap takes 120).
void share_one_heap() noexcept;

/// Ordinary memory, zero at first, advised to use huge pages.
std::shared_ptr<HostAllocator> paged_allocator();

/// One owner of one block of T from an allocator. Contents start undefined.
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

/// Parses "512MB", "2GB", "1.5GiB", "800000", "25%" (of `whole`). Suffixes are binary (1 MB = 2^20 bytes) as
/// in GDAL_CACHEMAX. Throws UsageError naming `option` when the text is not a positive size.
uint64_t parse_byte_size(std::string_view text, uint64_t whole, std::string_view option);

/// "1.5 GB", "300 MB", "12 kB": for messages.
std::string format_byte_size(uint64_t bytes);

/// Highest resident set of this process so far, in bytes.
uint64_t peak_resident();

} // namespace hsi
