// SPDX-License-Identifier: MIT
// Arrays in the memory of a CUDA device, accessed only through the driver. Arrays that the CUDA modules do
// not use in place are copied to the host and back here.
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

/// Checks that the array's memory is on the device that the array states, and waits for the array's stream,
/// so that the caller's earlier work is done.
/// \throws UsageError for an absent device, memory of another device or of the host, and a stream of another
/// device.
void check_on_device(const std::string& role, const hsi_array& array);

/// Copies values between two arrays of the same shape and type, one on `device` and the other in host memory.
/// \throws Error if the driver fails.
void copy_array(int device, const hsi_array& to, const hsi_array& from);
/// Copies rows of floats from the device to the host.
void copy_to_host(int device, const CubeView<float>& to, const CubeView<float>& from);

/// Pinned host memory for copies. The library keeps up to 1 GB for the next call, because new pages, or pages
/// that the driver must pin, take several times as long as the copy.
class PinnedMemory {
  public:
    PinnedMemory() = default;
    /// Uses ordinary memory if no more can be pinned.
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

/// Elements of a shape and type packed in host memory, with axes in the order of `like`, an array on a
/// device.
struct HostArray {
    HostArray() = default;
    explicit HostArray(const hsi_array& like);
    hsi_array array = HSI_ARRAY; ///< equal to `like`, except for data, strides, device and stream
    PinnedMemory memory;
};

/// A copy in host memory of an array on a device, made at its first use. Thread-safe. The array must outlive
/// this object.
class HostCopy {
  public:
    explicit HostCopy(const hsi_array& of) : m_of(of) {}
    const hsi_array& array() const;

  private:
    const hsi_array m_of;
    mutable std::once_flag m_once;
    mutable HostArray m_copy;
};

/// A copy on a device, as floats, of a scene in host memory, for several passes. Thread-safe. A copied
/// DeviceCopy is empty.
class DeviceCopy {
  public:
    DeviceCopy() = default;
    DeviceCopy(const DeviceCopy&) {}
    DeviceCopy& operator=(const DeviceCopy&) = delete;
    ~DeviceCopy();
    /// Allocates device memory for the scene at the first call. \return false if the scene would exceed half
    /// of the free memory.
    bool take(int device, const stream::CubeShape& shape) const;
    /// Copies the scene at the first call through pinned memory, with readers from open().
    void fill(const std::function<std::unique_ptr<stream::CubeReader>()>& open, int threads) const;
    CubeView<float> view() const { return m_view; }

  private:
    mutable std::once_flag m_taken, m_filled;
    mutable int m_device = -1;
    mutable size_t m_bytes = 0;
    mutable CubeView<float> m_view; ///< the scene on the device; its data is null if there was no room
};

} // namespace hsi::arrays
