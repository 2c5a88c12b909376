// SPDX-License-Identifier: MIT
#pragma once

#include "core/byte_size.h"
#include "core/host_memory.h"
#include "cuda/device.h"

#include <string>

namespace hsi::cuda {

/// Page-locked host memory that every device can copy from and to while the processor works on. Pinning costs
/// time (about 0.3 s a GiB): allocate once, use again.
class PinnedAllocator final : public HostAllocator {
  public:
    /// `ordinal`: a device whose context may be used; the memory serves all devices.
    explicit PinnedAllocator(int ordinal) : m_ordinal(ordinal) {}
    void* allocate(size_t bytes) override {
        const DeviceGuard guard(m_ordinal);
        void* p = nullptr;
        const cudaError_t status = cudaHostAlloc(&p, bytes, cudaHostAllocPortable);
        if (status == cudaErrorMemoryAllocation) {
            cudaGetLastError();
            throw Error("cannot pin " + format_byte_size(bytes) + " of memory for copies to the GPU",
                        "Use a smaller -memory or -tile, fewer -threads, or -device cpu.");
        }
        HSI_CUDA_CHECK(status);
        return p;
    }
    void release(void* p, size_t) noexcept override { cudaFreeHost(p); }

  private:
    int m_ordinal;
};

} // namespace hsi::cuda
