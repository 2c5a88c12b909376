// SPDX-License-Identifier: MIT
// A scene that stays on a device from the first pass to the last assignment; assignments there find the
// processor's labels and sums.
#pragma once

#include "cluster/cluster.h"
#include "cluster/moves.h"
#include "core/cube_view.h"
#include "core/host_memory.h"
#include "core/rect.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace hsi::cluster {

/// Pixels are numbered in raster order.
class DeviceScene {
  public:
    virtual ~DeviceScene() = default;
    /// For tiles that put() takes.
    virtual std::shared_ptr<HostAllocator> allocator() const = 0;
    /// Puts the values of a tile, whose window is its core. It may be called from several threads at once.
    virtual void put(const Rect& core, const CubeView<float>& values) = 0;
    /// The values of these pixels, [pixel][band].
    virtual void get(const std::vector<int64_t>& pixels, float* to) = 0;
    /// Once all is put: the label of every pixel, 0 for those that are not valid.
    virtual void begin(const std::vector<uint16_t>& labels) = 0;
    /// Assigns every valid pixel to its nearest centre. Returns the moves; first: all pixels come, and none
    /// goes. It computes neither inertia nor sums of lengths.
    virtual void assign(const Centres& centres, bool first, Moves& moves) = 0;
    /// From the last assignment: a pixel's squared distance from its centre (angle: the cosine), for `count`
    /// pixels from `first` on; undefined for invalid pixels.
    virtual void best(int64_t first, int64_t count, double* to) = 0;
    /// |x| of these pixels, for angles.
    virtual void lengths(int64_t first, int64_t count, double* to) = 0;
    virtual void labels(std::vector<uint16_t>& to) = 0;
};

} // namespace hsi::cluster
