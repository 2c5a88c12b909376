// SPDX-License-Identifier: MIT
// What an algorithm tells the pipeline about itself, and what the pipeline calls.
#pragma once

#include "core/host_memory.h"
#include "core/tile_plan.h"
#include "parallel/group.h"
#include "stream/cube_source.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace hsi::stream {

/// The largest tile that a worker will see; it allocates for this once, in start().
struct TileLimits {
    int64_t window_samples = 0, window_lines = 0;
    int64_t core_samples = 0, core_lines = 0;
    int ranks = 1; ///< processes that share the tiles
};

/// One lane's state. Called from one thread at a time.
class Worker {
  public:
    virtual ~Worker() = default;
    /// in: the tile's window, all bands; out[k]: the tile's core for output k, to be filled completely (NaN
    /// where there is no value). Scans have no outputs.
    virtual void process(const Tile& tile, const CubeView<float>& in,
                         const std::vector<CubeView<float>>& out) = 0;
};

/// A computation over tiles: start (a worker a lane), process (a tile), stop (merge what a worker has
/// gathered). Results must not depend on how the scene is cut, nor on which worker saw which tile.
class Operation {
  public:
    virtual ~Operation() = default;
    virtual int64_t halo() const { return 0; }
    /// Bands of every output, in the order of the sinks; empty for a scan.
    virtual std::vector<int> output_bands() const { return {}; }
    /// Tile sizes must be multiples of these: scans that sum over fixed blocks anchored at the scene's
    /// origin.
    virtual int64_t align_samples() const { return 1; }
    virtual int64_t align_lines() const { return 1; }
    /// Host bytes that a worker allocates beside its tile buffers.
    virtual uint64_t scratch_bytes(const TileLimits&) const { return 0; }
    /// Device bytes that a worker allocates (0 on the CPU).
    virtual uint64_t device_bytes(const TileLimits&) const { return 0; }
    /// Bytes of tile buffers that one lane likes best (cache size, transfer size).
    virtual uint64_t preferred_bytes() const { return uint64_t{24} << 20; }
    /// Of what a line of a tile's core takes to compute, the share that a line of its window takes to read
    /// and to take in, where computing takes far longer: tiles are then even shares for all lanes, though
    /// that is more to read. 0: tiles whose halo is small.
    virtual double line_share() const { return 0; }
    /// True: process() takes a tile with any strides and leaves it as it is, so that one which lies in memory
    /// needs no copy (CubeReader::view()).
    virtual bool reads_in_place() const { return false; }
    /// The CUDA device in whose memory process() takes tiles as they lie there, with any strides, beside
    /// those in host memory; -1: none.
    virtual int takes_from() const { return -1; }
    /// The CUDA device into whose memory process() puts outputs, with any strides, beside host memory; -1:
    /// none.
    virtual int puts_on() const { return -1; }
    /// Memory of that device, for who takes outputs there; null: none.
    virtual std::shared_ptr<HostAllocator> device_allocator() const { return nullptr; }
    /// Where the lanes' tile buffers come from: pinned memory for a GPU.
    virtual std::shared_ptr<HostAllocator> allocator() const { return paged_allocator(); }
    /// Thread-safe: lanes start at the same time.
    virtual std::unique_ptr<Worker> start(int lane, const TileLimits& limits) = 0;
    /// Called once for every worker, from one thread, after the last tile, and only when no tile failed.
    virtual void stop(Worker&) {}

    /// True: the ranks of a job may share the tiles. False: each of them goes through all tiles itself, with
    /// the same result, as an operation must that gathers what exchange() does not put together.
    virtual bool divides() const { return false; }
    /// All ranks together, after stop(), of an operation that divides: what this rank has gathered becomes
    /// the whole, the same on every rank. Where nothing is gathered there is nothing to do.
    virtual void exchange(parallel::Group&) {}
};

} // namespace hsi::stream
