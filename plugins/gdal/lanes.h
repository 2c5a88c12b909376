// SPDX-License-Identifier: MIT
// Functions with parsed arguments, and their working memory. One cache serves all threads of the process.
// After a fork, both processes continue with it.
#pragma once

#include "core/host_memory.h"
#include "gdal/function.h"

#include <functional>
#include <memory>
#include <string>

namespace hsi::plugin {

/// Memory and state for one slice of pixels, used by one thread at a time.
struct Lane {
    std::shared_ptr<const Function> function;
    int64_t capacity = 0; ///< pixels
    int64_t count = 0;    ///< pixels of the current slice; its bands are packed, as operations expect tiles
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

/// Returns the maximum number of pixels of a slice: its spectra fit into the CPU's second-level cache, or are
/// worth a transfer.
int64_t slice_pixels(const Function& function);

/// Returns the earlier result of `make` for the same key if the files that it read are unchanged; otherwise
/// calls it. key: the function's name, number of sources, and so on; list: its arguments.
std::shared_ptr<const Function> recall(const std::string& key, CSLConstList list, const std::string& folder,
                                       const std::function<Function(const Arguments&)>& make);

/// Returns a lane of at least min(pixels, slice_pixels()) pixels: a free one, a free one of another function
/// that is large enough, or a new one.
std::unique_ptr<Lane> take_lane(const std::shared_ptr<const Function>& function, int64_t pixels);
/// Keeps the lane for the next call.
void give_lane(std::unique_ptr<Lane> lane);

/// The device for functions with a CUDA backend, from the configuration option GDAL_HSI_DEVICE (auto, cpu,
/// cuda, cuda:I; default: auto). A GPU cannot be used on both sides of a fork. In a child of a process that
/// had started a GPU, auto means cpu, and cuda throws Error.
struct DeviceWish {
    std::string text = "auto";
    bool forked = false; ///< the parent started a GPU
};
DeviceWish device_wish();
/// Call it before a GPU is started.
void note_device_start();

} // namespace hsi::plugin
