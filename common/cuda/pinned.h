// SPDX-License-Identifier: MIT
// Page-locked (pinned) host memory.
#pragma once

#include "core/host_memory.h"
#include "cuda/device.h"
#include "cuda/kept_memory.h"

#include <memory>
#include <string>

namespace hsi::cuda {

/// Page-locked host memory that every device can copy from and to while the CPU works. The memory is on huge
/// pages that the requesting thread touches before they are pinned. If 16 threads allocate 32 MB each, this
/// takes a ninth of the time of cudaHostAlloc, which creates its pages one by one under one lock.
class PinnedAllocator final : public HostAllocator {
  public:
    /// `ordinal`: a device whose context may be used. The memory serves all devices.
    explicit PinnedAllocator(int ordinal) : m_ordinal(ordinal), m_pages(paged_allocator()) {}
    void* allocate(size_t bytes) override {
        if (void* const kept = Kept::instance().take(anywhere, bytes)) return kept;
        const DeviceGuard guard(m_ordinal);
        void* const p = m_pages->allocate(bytes);
        constexpr size_t page = 4096;
        for (size_t at = 0; at < bytes; at += page)
            static_cast<volatile char*>(p)[at] = 0;
        const cudaError_t status = cudaHostRegister(p, bytes, cudaHostRegisterPortable);
        if (status == cudaSuccess) return p;
        m_pages->release(p, bytes);
        if (status == cudaErrorMemoryAllocation) {
            cudaGetLastError();
            throw Error("cannot pin " + format_byte_size(bytes) + " of memory for copies to the GPU",
                        "Use a smaller -memory or -tile, fewer -threads, or -device cpu.");
        }
        HSI_CUDA_CHECK(status);
        return nullptr;
    }
    void release(void* p, size_t bytes) noexcept override {
        // The limit suffices for the ring buffers of a library's calls. Blocks are kept because pinning
        // memory takes as long as copying it several times.
        constexpr uint64_t most = uint64_t{1} << 30;
        if (Kept::instance().keep(anywhere, p, bytes, most)) return;
        cudaHostUnregister(p);
        m_pages->release(p, bytes);
    }

  private:
    struct PinnedKind;
    using Kept = KeptMemory<PinnedKind>;
    static constexpr int anywhere = -1;

    const int m_ordinal;
    const std::shared_ptr<HostAllocator> m_pages;
};

/// Pins existing host memory while this object exists. If the memory cannot be pinned, it is used as it is,
/// and copies from it are slower.
class PinnedRange {
  public:
    PinnedRange(void* data, size_t bytes) {
        cudaPointerAttributes known{};
        HSI_CUDA_CHECK(cudaPointerGetAttributes(&known, data));
        if (known.type == cudaMemoryTypeHost) return; // pinned already
        if (cudaHostRegister(data, bytes, cudaHostRegisterPortable) == cudaSuccess)
            m_data = data;
        else
            cudaGetLastError(); // no more memory can be pinned
    }
    PinnedRange(const PinnedRange&) = delete;
    PinnedRange& operator=(const PinnedRange&) = delete;
    ~PinnedRange() {
        if (m_data != nullptr) cudaHostUnregister(m_data);
    }

  private:
    void* m_data = nullptr;
};

} // namespace hsi::cuda
