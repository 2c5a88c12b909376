// SPDX-License-Identifier: MIT
// The interface between an algorithm and the pipeline: its properties, and the functions that the pipeline
// calls.
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
    /// for a missing value). Scans have no outputs.
    virtual void process(const Tile& tile, const CubeView<float>& in,
                         const std::vector<CubeView<float>>& out) = 0;
};

/// A computation over tiles: start (one worker per lane), process (a tile), stop (merges a worker's results).
/// Results must not depend on how the scene is cut, nor on which worker saw which tile.
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
    /// Host bytes that a worker allocates in addition to its tile buffers.
    virtual uint64_t scratch_bytes(const TileLimits&) const { return 0; }
    /// Device bytes that a worker allocates (0 on the CPU).
    virtual uint64_t device_bytes(const TileLimits&) const { return 0; }
    /// Bytes of tile buffers that one lane likes best (cache size, transfer size).
    virtual uint64_t preferred_bytes() const { return uint64_t{24} << 20; }
    /// For operations that compute far longer than they read: the time to read a line of a tile's window, as
    /// a share of the time to compute a line of its core. Tiles are then even shares for all lanes, although
    /// more lines are read. 0: tiles are chosen with a small halo.
    virtual double line_share() const { return 0; }
    /// True if process() takes a tile with any strides and does not change it, so that a tile in memory needs
    /// no copy (CubeReader::view()).
    virtual bool reads_in_place() const { return false; }
    /// The CUDA device whose memory process() also takes tiles in, with any strides; -1: host memory alone.
    virtual int takes_from() const { return -1; }
    /// The CUDA device whose memory process() also puts outputs in, with any strides; -1: host memory alone.
    virtual int puts_on() const { return -1; }
    /// Memory of that device, for callers that take outputs there; null: none.
    virtual std::shared_ptr<HostAllocator> device_allocator() const { return nullptr; }
    /// The allocator of the lanes' tile buffers: pinned memory for a GPU.
    virtual std::shared_ptr<HostAllocator> allocator() const { return paged_allocator(); }
    /// Thread-safe: lanes start at the same time.
    virtual std::unique_ptr<Worker> start(int lane, const TileLimits& limits) = 0;
    /// Called once for every worker, from one thread, after the last tile, and only when no tile failed.
    virtual void stop(Worker&) {}

    /// True: the ranks of a job may share the tiles. False: each of them processes all tiles itself, with the
    /// same result. This is needed if exchange() does not merge the operation's results.
    virtual bool divides() const { return false; }
    /// For an operation that divides, all ranks together, after stop(): replaces this rank's results by those
    /// of the whole, the same on every rank. Without gathered results there is nothing to do.
    virtual void exchange(parallel::Group&) {}
};

} // namespace hsi::stream
