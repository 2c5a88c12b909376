// SPDX-License-Identifier: MIT
#pragma once

#include "cuda/check.h"

#include <cstddef>
#include <type_traits>
#include <utility>

namespace hsi::cuda {

/// One owner of `size()` elements of T in the memory of the device that was current when it was made.
/// Contents start undefined. Empty buffers allocate nothing.
template <class T>
class DeviceBuffer {
    static_assert(std::is_trivially_copyable_v<T>, "device memory is copied byte by byte");

  public:
    DeviceBuffer() = default;
    explicit DeviceBuffer(size_t count) : m_count(count) {
        if (count) HSI_CUDA_CHECK(cudaMalloc(reinterpret_cast<void**>(&m_data), count * sizeof(T)));
    }
    DeviceBuffer(DeviceBuffer&& o) noexcept
        : m_count(std::exchange(o.m_count, 0)), m_data(std::exchange(o.m_data, nullptr)) {}
    DeviceBuffer& operator=(DeviceBuffer&& o) noexcept {
        std::swap(m_count, o.m_count);
        std::swap(m_data, o.m_data);
        return *this;
    }
    ~DeviceBuffer() {
        if (m_data) cudaFree(m_data);
    }
    T* data() const { return m_data; }
    size_t size() const { return m_count; }
    size_t bytes() const { return m_count * sizeof(T); }

    /// Copies `count` elements (at most size()) from or to host memory; asynchronous when that is pinned.
    void upload(const T* from, size_t count, cudaStream_t stream) {
        HSI_CUDA_CHECK(cudaMemcpyAsync(m_data, from, count * sizeof(T), cudaMemcpyHostToDevice, stream));
    }
    void download(T* to, size_t count, cudaStream_t stream) const {
        HSI_CUDA_CHECK(cudaMemcpyAsync(to, m_data, count * sizeof(T), cudaMemcpyDeviceToHost, stream));
    }
    /// All bytes zero.
    void clear(cudaStream_t stream) {
        if (m_data) HSI_CUDA_CHECK(cudaMemsetAsync(m_data, 0, bytes(), stream));
    }

  private:
    size_t m_count = 0;
    T* m_data = nullptr;
};

} // namespace hsi::cuda
