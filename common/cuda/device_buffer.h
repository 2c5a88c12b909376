// SPDX-License-Identifier: MIT
// Allocates device memory, and frees it when its owner is destroyed.
#pragma once

#include "core/host_memory.h"
#include "cuda/check.h"
#include "cuda/device.h"
#include "cuda/kept_memory.h"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <type_traits>
#include <utility>
#include <vector>

namespace hsi::cuda {

/// Returns `bytes` bytes of memory of the current device, whose ordinal is `device`. A library reuses memory
/// that an earlier call has left. If the device has too little free memory, the kept memory is freed first.
inline void* take_device_memory(int device, size_t bytes) {
    auto& kept = KeptDeviceMemory::instance();
    if (void* const block = kept.take(device, bytes)) return block;
    void* made = nullptr;
    cudaError_t status = cudaMalloc(&made, bytes);
    if (status == cudaErrorMemoryAllocation &&
        kept.clear(device, [](void* block, size_t) { cudaFree(block); })) {
        cudaGetLastError();
        status = cudaMalloc(&made, bytes);
    }
    HSI_CUDA_CHECK(status);
    return made;
}

inline void give_back_device_memory(int device, void* block, size_t bytes) noexcept {
    // The limit is a quarter of the memory of an ordinary device. After an error, kernels may still use the
    // block.
    constexpr uint64_t most = uint64_t{8} << 30;
    if (std::uncaught_exceptions() > 0 || !KeptDeviceMemory::instance().keep(device, block, bytes, most))
        cudaFree(block);
}

/// Allocates device memory for code without CUDA, such as a step of a pipeline whose results the next step
/// reads on the device.
class DeviceAllocator final : public HostAllocator {
  public:
    explicit DeviceAllocator(int ordinal) : m_ordinal(ordinal) {}
    void* allocate(size_t bytes) override {
        const DeviceGuard guard(m_ordinal);
        return take_device_memory(m_ordinal, bytes);
    }
    void release(void* block, size_t bytes) noexcept override {
        try {
            const DeviceGuard guard(m_ordinal);
            give_back_device_memory(m_ordinal, block, bytes);
        } catch (const Error&) {
            // The device has failed; the failing call has already reported it.
        }
    }

  private:
    const int m_ordinal;
};

/// Owns `size()` elements of T in the memory of the device that was current at construction. The contents are
/// undefined at first. Empty buffers allocate nothing.
template <class T>
class DeviceBuffer {
    static_assert(std::is_trivially_copyable_v<T>, "device memory is copied byte by byte");

  public:
    DeviceBuffer() = default;
    explicit DeviceBuffer(size_t count) : m_count(count) {
        if (count == 0) return;
        HSI_CUDA_CHECK(cudaGetDevice(&m_device));
        m_data = static_cast<T*>(take_device_memory(m_device, count * sizeof(T)));
    }
    /// Allocates memory for `count` elements and copies them from host memory. The copy is complete when the
    /// constructor returns, so several workers may share the data.
    DeviceBuffer(const T* from, size_t count) : DeviceBuffer(count) {
        if (count == 0) return;
        HSI_CUDA_CHECK(cudaMemcpy(m_data, from, bytes(), cudaMemcpyHostToDevice));
        HSI_CUDA_CHECK(cudaStreamSynchronize(nullptr)); // cudaMemcpy() may return before the copy is complete
    }
    explicit DeviceBuffer(const std::vector<T>& from) : DeviceBuffer(from.data(), from.size()) {}
    DeviceBuffer(DeviceBuffer&& o) noexcept
        : m_count(std::exchange(o.m_count, 0)), m_data(std::exchange(o.m_data, nullptr)),
          m_device(o.m_device) {}
    DeviceBuffer& operator=(DeviceBuffer&& o) noexcept {
        std::swap(m_count, o.m_count);
        std::swap(m_data, o.m_data);
        std::swap(m_device, o.m_device);
        return *this;
    }
    ~DeviceBuffer() {
        if (m_data) give_back_device_memory(m_device, m_data, bytes());
    }
    T* data() const { return m_data; }
    size_t size() const { return m_count; }
    size_t bytes() const { return m_count * sizeof(T); }

    /// Copies `count` elements (at most size()) from or to host memory. The copy is asynchronous if the host
    /// memory is pinned.
    void upload(const T* from, size_t count, cudaStream_t stream) {
        HSI_CUDA_CHECK(cudaMemcpyAsync(m_data, from, count * sizeof(T), cudaMemcpyHostToDevice, stream));
    }
    void download(T* to, size_t count, cudaStream_t stream) const {
        HSI_CUDA_CHECK(cudaMemcpyAsync(to, m_data, count * sizeof(T), cudaMemcpyDeviceToHost, stream));
    }
    /// Sets all bytes to zero.
    void clear(cudaStream_t stream) {
        if (m_data) HSI_CUDA_CHECK(cudaMemsetAsync(m_data, 0, bytes(), stream));
    }

  private:
    size_t m_count = 0;
    T* m_data = nullptr;
    int m_device = 0;
};

} // namespace hsi::cuda
