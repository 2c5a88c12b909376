// SPDX-License-Identifier: MIT
// The common part of operations on GPUs. A lane is a worker: a thread with its own stream and buffers. Lanes
// are distributed over the devices, tiles are in pinned memory, and lanes of a device share their constant
// data. Also contains the backend that creates such operations.
#pragma once

#include "core/error.h"
#include "cuda/device.h"
#include "cuda/device_buffer.h"
#include "cuda/pinned.h"
#include "stream/operation.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace hsi::cuda {

/// Checks the number of pixels, because pixel indices of a tile have 32 bits on a device. \throws Error for a
/// window of more than `most` pixels.
inline void check_pixels(const stream::TileLimits& limits, int64_t most) {
    if (limits.window_samples * limits.window_lines <= most) return;
    throw Error("a tile of " + std::to_string(limits.window_samples) + "x" +
                    std::to_string(limits.window_lines) + " pixels is too large for the GPU",
                "Use a smaller -tile.");
}

/// The device of a lane (worker).
struct LaneDevice {
    size_t place = 0; ///< index among the devices of the operation
    int ordinal = 0;
};

/// Data that the lanes of a device share. The first lane creates them.
template <class T>
class OncePerDevice {
  public:
    explicit OncePerDevice(size_t devices) : m_made(devices) {}
    /// Returns the data for this device. On the first call for a device, make() creates them and returns them
    /// as a shared_ptr.
    template <class Make>
    std::shared_ptr<const T> on(const LaneDevice& device, const Make& make) {
        const std::lock_guard<std::mutex> lock(m_mutex);
        auto& made = m_made[device.place];
        if (!made) made = make();
        return made;
    }

  private:
    std::mutex m_mutex;
    std::vector<std::shared_ptr<const T>> m_made;
};

/// The operation `Base` with lanes that are distributed over the devices. The constructor takes the devices,
/// followed by the arguments of the constructor of `Base`.
template <class Base>
class LaneOperation : public Base {
  public:
    std::shared_ptr<HostAllocator> allocator() const override {
        return std::make_shared<PinnedAllocator>(m_devices.front().ordinal);
    }
    std::shared_ptr<HostAllocator> device_allocator() const override {
        return this->puts_on() < 0 ? nullptr : std::make_shared<DeviceAllocator>(this->puts_on());
    }
    std::unique_ptr<stream::Worker> start(int lane, const stream::TileLimits& limits) override {
        check_pixels(limits, most_pixels());
        LaneDevice on;
        on.place = static_cast<size_t>(lane) % m_devices.size();
        on.ordinal = m_devices[on.place].ordinal;
        const DeviceGuard guard(on.ordinal);
        return make_lane(on, limits);
    }

  protected:
    template <class... Arguments>
    explicit LaneOperation(std::vector<CudaDevice> devices, Arguments&&... of_base)
        : Base(std::forward<Arguments>(of_base)...), m_devices(std::move(devices)) {}
    /// Returns the worker of a lane. The device of the lane is current during the call.
    virtual std::unique_ptr<stream::Worker> make_lane(const LaneDevice& on,
                                                      const stream::TileLimits& limits) = 0;
    /// Returns the maximum number of pixels of a tile's window.
    virtual int64_t most_pixels() const { return std::numeric_limits<int>::max() / 2; }
    const std::vector<CudaDevice>& devices() const { return m_devices; }
    /// Returns the only device, for takes_from() and puts_on(); -1 if there are several.
    int only_device() const { return m_devices.size() == 1 ? m_devices.front().ordinal : -1; }

  private:
    const std::vector<CudaDevice> m_devices;
};

/// The common part of backends on GPUs: implements free_memory() and kernel_seconds() of `Interface`. The
/// operations of the backend add the time of their kernels to m_kernel_seconds.
template <class Interface>
class TimedBackend : public Interface {
  public:
    explicit TimedBackend(std::vector<CudaDevice> devices) : m_devices(std::move(devices)) {}
    uint64_t free_memory() const override { return least_free_memory(m_devices); }
    double kernel_seconds() const override { return m_kernel_seconds; }

  protected:
    const std::vector<CudaDevice> m_devices;
    double m_kernel_seconds = 0;
};

} // namespace hsi::cuda
