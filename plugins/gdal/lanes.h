// SPDX-License-Identifier: MIT
// The cache of functions with parsed arguments and of their working memory. It serves all threads of the
// process. After a fork, both processes continue with their own copy of the cache.
#pragma once

#include "core/host_memory.h"
#include "gdal/function.h"

#include <functional>
#include <memory>
#include <string>

namespace hsi::plugin {

/// The memory and the worker with which one thread applies a function to slices of pixels.
struct Lane {
    std::shared_ptr<const Function> function;
    int64_t capacity = 0; ///< maximum number of pixels
    /// Number of pixels of the current slice. Its bands are packed, because operations expect tiles in this
    /// layout.
    int64_t count = 0;
    HostBuffer<float> in; ///< [band][count]
    std::vector<HostBuffer<float>> out;
    std::unique_ptr<stream::Worker> worker;

    size_t bytes() const;
    float* source(int band) const { return in.data() + static_cast<int64_t>(band) * count; }
    /// Applies the operation to the slice.
    void process();
    float* result(size_t output, int band) const {
        return out[output].data() + static_cast<int64_t>(band) * count;
    }
};

/// Returns the maximum number of pixels of a slice. On the CPU, the spectra of a slice fit into the
/// second-level cache. On a device, a slice is large enough to be worth a transfer.
int64_t slice_pixels(const Function& function);

/// Returns the function from the cache if make() was called before with the same `key`, `list` and `folder`,
/// and if the files that it read are unchanged. Otherwise calls make(), and keeps the result. `key` contains
/// the function's name, the number of sources and further settings; `list` has the function's arguments.
std::shared_ptr<const Function> recall(const std::string& key, CSLConstList list, const std::string& folder,
                                       const std::function<Function(const Arguments&)>& make);

/// Returns a lane for at least min(pixels, slice_pixels()) pixels. It is a free lane of this function, a free
/// lane of another function that is large enough, or a new lane.
std::unique_ptr<Lane> take_lane(const std::shared_ptr<const Function>& function, int64_t pixels);
/// Gives the lane back, so that a later call of take_lane() can return it.
void give_lane(std::unique_ptr<Lane> lane);

/// The device for functions with a CUDA backend, from the configuration option GDAL_HSI_DEVICE (auto, cpu,
/// cuda, cuda:I; default: auto). After a fork, a child cannot use a GPU that its parent has started. In this
/// case, auto means cpu, and cuda throws Error.
struct DeviceWish {
    std::string text = "auto";
    bool forked = false; ///< true: the parent process has started a GPU
};
DeviceWish device_wish();
/// Records that this process uses a GPU. Call it before a GPU is started.
void note_device_start();

} // namespace hsi::plugin
