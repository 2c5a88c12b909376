// SPDX-License-Identifier: MIT
// Functions with parsed arguments, and their working memory. There is one cache for the process and all
// threads; after a fork both processes go on with it.
#pragma once

#include "core/host_memory.h"
#include "gdal/function.h"

#include <functional>
#include <memory>
#include <string>

namespace hsi::plugin {

/// Memory and state for one slice of pixels; one thread at a time.
struct Lane {
    std::shared_ptr<const Function> function;
    int64_t capacity = 0; ///< pixels
    int64_t count = 0;    ///< pixels of the present slice; its bands are packed, as operations expect tiles
    HostBuffer<float> in; ///< [band][count]
    std::vector<HostBuffer<float>> out;
    std::unique_ptr<stream::Worker> worker;

    size_t bytes() const;
    float* source(int band) const { return in.data() + static_cast<int64_t>(band) * count; }
    /// The slice through the operation.
    void process();
    float* result(size_t output, int band) const {
        return out[output].data() + static_cast<int64_t>(band) * count;
    }
};

/// Pixels that one slice holds at most: its spectra fit into the processor's second-level cache, or are worth
/// a transfer.
int64_t slice_pixels(const Function& function);

/// The earlier result of `make` for the same key, if the files that it read are unchanged; else calls it.
/// key: the function's name, count of sources, and the like; list: its arguments.
std::shared_ptr<const Function> recall(const std::string& key, CSLConstList list, const std::string& folder,
                                       const std::function<Function(const Arguments&)>& make);

/// A lane of at least min(pixels, slice_pixels()) pixels: one that waits, another function's that is large
/// enough, or a new one.
std::unique_ptr<Lane> take_lane(const std::shared_ptr<const Function>& function, int64_t pixels);
/// For the next call.
void give_lane(std::unique_ptr<Lane> lane);

/// Where functions with a CUDA backend compute, from the configuration option GDAL_HSI_DEVICE (auto, cpu,
/// cuda, cuda:I; auto when it is not set). A GPU cannot be used on both sides of a fork: auto is cpu in a
/// child of a process that had started one, and cuda throws Error there.
struct DeviceWish {
    std::string text = "auto";
    bool forked = false; ///< the parent started a GPU
};
DeviceWish device_wish();
/// To be called before a GPU is started.
void note_device_start();

} // namespace hsi::plugin
