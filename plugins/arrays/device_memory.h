// SPDX-License-Identifier: MIT
// Arrays in the memory of a CUDA device, accessed only through the CUDA driver. These functions copy an array
// to the host, and results back to the device, if no CUDA module uses the array in place.
#pragma once

#include "arrays/hsi.h"
#include "core/cube_view.h"
#include "stream/cube_source.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace hsi::arrays {

/// Checks that the array's memory is on the device in array.device. Then waits for array.stream, so that the
/// caller's earlier work on the array is complete.
/// \throws UsageError if the device does not exist, if the memory is on another device or on the host, or if
/// the stream belongs to another device.
void check_on_device(const std::string& role, const hsi_array& array);

/// Copies values between two arrays of the same shape and type, one on `device` and the other in host memory.
/// \throws Error if the driver fails.
void copy_array(int device, const hsi_array& to, const hsi_array& from);
/// Copies a cube of floats from the device to the host, where it gets the layout of `to`.
void copy_to_host(int device, const CubeView<float>& to, const CubeView<float>& from);

/// Pinned host memory for copies. After use, the library keeps up to 1 GB of pinned memory for the next call.
/// Allocating and pinning new pages would take several times as long as the copy.
class PinnedMemory {
  public:
    PinnedMemory() = default;
    /// Takes at least `bytes` bytes: kept memory, new pinned memory, or ordinary memory if the driver cannot
    /// pin more.
    PinnedMemory(int device, size_t bytes);
    ~PinnedMemory();
    PinnedMemory(PinnedMemory&& o) noexcept { *this = std::move(o); }
    PinnedMemory& operator=(PinnedMemory&& o) noexcept {
        std::swap(m_data, o.m_data);
        std::swap(m_bytes, o.m_bytes);
        std::swap(m_device, o.m_device);
        return *this;
    }
    char* data() const { return m_data; }

  private:
    char* m_data = nullptr;
    size_t m_bytes = 0;
    int m_device = -1; ///< -1 if the memory is not pinned
};

/// A contiguous array in host memory with the shape, the type and the order of axes of `like`, an array on a
/// device. The constructor does not copy the elements.
struct HostArray {
    HostArray() = default;
    explicit HostArray(const hsi_array& like);
    hsi_array array = HSI_ARRAY; ///< equal to `like`, except for data, strides, device and stream
    PinnedMemory memory;
};

/// A copy in host memory of an array on a device. The first call of array() makes it. Thread-safe. The memory
/// on the device must outlive this object.
class HostCopy {
  public:
    explicit HostCopy(const hsi_array& of) : m_of(of) {}
    const hsi_array& array() const;

  private:
    const hsi_array m_of;
    mutable std::once_flag m_once;
    mutable HostArray m_copy;
};

/// A copy of a scene on a device, as floats. Several passes use it instead of reading the scene in host
/// memory again. Thread-safe. The copy constructor makes an empty object.
class DeviceCopy {
  public:
    DeviceCopy() = default;
    DeviceCopy(const DeviceCopy&) {}
    DeviceCopy& operator=(const DeviceCopy&) = delete;
    ~DeviceCopy();
    /// Allocates device memory for the scene at the first call. \return false if this was not possible: CUDA
    /// is missing, the scene would take more than half of the free memory, or the allocation failed.
    bool take(int device, const stream::CubeShape& shape) const;
    /// Copies the scene to the device at the first call, on `threads` threads. Each thread reads lines into
    /// pinned memory, with its own reader from open(). Call take() first.
    void fill(const std::function<std::unique_ptr<stream::CubeReader>()>& open, int threads) const;
    CubeView<float> view() const { return m_view; }

  private:
    mutable std::once_flag m_taken, m_filled;
    mutable int m_device = -1;
    mutable size_t m_bytes = 0;
    mutable CubeView<float> m_view; ///< the scene on the device; its data is null if there was no room
};

} // namespace hsi::arrays
