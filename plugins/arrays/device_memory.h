// SPDX-License-Identifier: MIT
// Arrays in the memory of a CUDA device, through the driver alone: arrays that the CUDA modules do not take
// in place are copied to the host and back here.
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

/// Checks that an array's memory is on the named device, and waits for its stream: the caller's earlier work
/// is then done. \throws UsageError for an absent device, memory of another one or of the host, and a stream
/// of another device.
void check_on_device(const std::string& role, const hsi_array& array);

/// Copies values between two arrays of one shape and type, one of them on `device` and the other in host
/// memory. \throws Error when the driver fails.
void copy_array(int device, const hsi_array& to, const hsi_array& from);
/// Rows of floats from the device to the host.
void copy_to_host(int device, const CubeView<float>& to, const CubeView<float>& from);

/// Pinned host memory for copies; the library keeps up to 1 GB from one call to the next: new pages, or pages
/// that the driver has to pin, take several times as long as the copy.
class PinnedMemory {
  public:
    PinnedMemory() = default;
    /// Ordinary memory where no more can be pinned.
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
    int m_device = -1; ///< -1: not pinned
};

/// Elements of a shape and type packed in host memory, with axes in the order of `like`, an array on a
/// device.
struct HostArray {
    HostArray() = default;
    explicit HostArray(const hsi_array& like);
    hsi_array array = HSI_ARRAY; ///< as `like`, except for data, strides and device
    PinnedMemory memory;
};

/// A copy in host memory of an array on a device, made when it is first used. Thread-safe. The array must
/// outlive it.
class HostCopy {
  public:
    explicit HostCopy(const hsi_array& of) : m_of(of) {}
    const hsi_array& array() const;

  private:
    const hsi_array m_of;
    mutable std::once_flag m_once;
    mutable HostArray m_copy;
};

/// A scene in host memory as floats on a device, for several passes. Thread-safe. A copy of it is empty.
class DeviceCopy {
  public:
    DeviceCopy() = default;
    DeviceCopy(const DeviceCopy&) {}
    DeviceCopy& operator=(const DeviceCopy&) = delete;
    ~DeviceCopy();
    /// Takes memory for it the first time. \return false when it would be more than half of the free memory.
    bool take(int device, const stream::CubeShape& shape) const;
    /// Copies the scene the first time, by readers that open() gives, through pinned memory.
    void fill(const std::function<std::unique_ptr<stream::CubeReader>()>& open, int threads) const;
    CubeView<float> view() const { return m_view; }

  private:
    mutable std::once_flag m_taken, m_filled;
    mutable int m_device = -1;
    mutable size_t m_bytes = 0;
    mutable CubeView<float> m_view; ///< on the device; without data: no room
};

} // namespace hsi::arrays
