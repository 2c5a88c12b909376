// SPDX-License-Identifier: MIT
// The current device of a thread, and the free memory of devices.
#pragma once

#include "core/cuda_module.h"
#include "cuda/check.h"
#include "cuda/kept_memory.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace hsi::cuda {

/// Makes a device current for the calling thread, and restores the previous device at the end of the scope.
class DeviceGuard {
  public:
    explicit DeviceGuard(int ordinal) {
        HSI_CUDA_CHECK(cudaGetDevice(&m_before));
        if (m_before != ordinal) HSI_CUDA_CHECK(cudaSetDevice(ordinal));
        m_changed = m_before != ordinal;
    }
    DeviceGuard(const DeviceGuard&) = delete;
    DeviceGuard& operator=(const DeviceGuard&) = delete;
    ~DeviceGuard() {
        if (m_changed) cudaSetDevice(m_before);
    }

  private:
    int m_before = 0;
    bool m_changed = false;
};

/// Returns the free bytes on the device, including the memory that is kept for the next call.
inline uint64_t free_memory(int ordinal) {
    const DeviceGuard guard(ordinal);
    size_t available = 0, total = 0;
    HSI_CUDA_CHECK(cudaMemGetInfo(&available, &total));
    return available + KeptDeviceMemory::instance().bytes(ordinal);
}

/// Returns the free bytes of the device with the least free memory.
inline uint64_t least_free_memory(const std::vector<CudaDevice>& devices) {
    uint64_t least = UINT64_MAX;
    for (const CudaDevice& device : devices)
        least = std::min(least, free_memory(device.ordinal));
    return least;
}

} // namespace hsi::cuda
