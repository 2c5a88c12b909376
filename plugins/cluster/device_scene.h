// SPDX-License-Identifier: MIT
// A scene that stays on a device from the first pass to the last assignment. Assignments on the device give
// the same labels and sums as on the CPU.
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
    /// Returns the allocator of tiles for put().
    virtual std::shared_ptr<HostAllocator> allocator() const = 0;
    /// Copies the values of a tile without a halo (its window is `core`) to the device. Several threads may
    /// call this function at once.
    virtual void put(const Rect& core, const CubeView<float>& values) = 0;
    /// Reads the values of these pixels, [pixel][band].
    virtual void get(const std::vector<int64_t>& pixels, float* to) = 0;
    /// Sets the label of every pixel; 0 marks invalid pixels. Call it once, after put() of all tiles.
    virtual void begin(const std::vector<uint16_t>& labels) = 0;
    /// Assigns every valid pixel to its nearest centre, and adds the changes to `moves`, but neither inertia
    /// nor sums of lengths. first: no pixel belongs to a cluster yet, so all valid pixels move.
    virtual void assign(const Centres& centres, bool first, Moves& moves) = 0;
    /// Reads, for `count` pixels from `first` on, the squared distance from the nearest centre in the last
    /// assignment (for angles, the cosine of the angle). Undefined for invalid pixels.
    virtual void best(int64_t first, int64_t count, double* to) = 0;
    /// Reads |x| of `count` pixels from `first` on; only for angles.
    virtual void lengths(int64_t first, int64_t count, double* to) = 0;
    virtual void labels(std::vector<uint16_t>& to) = 0;
};

} // namespace hsi::cluster
