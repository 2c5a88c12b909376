// SPDX-License-Identifier: MIT
// The interface between an algorithm and the pipeline: the properties of an operation, and the functions that
// the pipeline calls.
#pragma once

#include "core/host_memory.h"
#include "core/tile_plan.h"
#include "parallel/group.h"
#include "stream/cube_source.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace hsi::stream {

/// The largest tile that a worker gets. The worker allocates its buffers for this size once, in start().
struct TileLimits {
    int64_t window_samples = 0, window_lines = 0;
    int64_t core_samples = 0, core_lines = 0;
    int ranks = 1; ///< processes that share the tiles
};

/// The state of one lane (a thread with its own tile buffers). process() is called from one thread at a time.
class Worker {
  public:
    virtual ~Worker() = default;
    /// Processes a tile. in: the tile's window, all bands; out[k]: the tile's core for output k, to be filled
    /// completely (NaN for a missing value). Scans have no outputs.
    virtual void process(const Tile& tile, const CubeView<float>& in,
                         const std::vector<CubeView<float>>& out) = 0;
};

/// A computation over tiles. start() makes one worker per lane, Worker::process() computes a tile, and stop()
/// merges a worker's results. Results must not depend on the division into tiles or on the worker of a tile.
class Operation {
  public:
    virtual ~Operation() = default;
    virtual int64_t halo() const { return 0; }
    /// Returns the number of bands of every output, in the order of the sinks; empty for a scan.
    virtual std::vector<int> output_bands() const { return {}; }
    /// Return the numbers of which the sizes of tiles are multiples, for scans that sum over fixed blocks
    /// from the scene's origin.
    virtual int64_t align_samples() const { return 1; }
    virtual int64_t align_lines() const { return 1; }
    /// Returns the host bytes that a worker allocates in addition to its tile buffers.
    virtual uint64_t scratch_bytes(const TileLimits&) const { return 0; }
    /// Returns the device bytes that a worker allocates (0 on the CPU).
    virtual uint64_t device_bytes(const TileLimits&) const { return 0; }
    /// Returns the preferred bytes of the tile buffers of one worker (cache size, transfer size).
    virtual uint64_t preferred_bytes() const { return uint64_t{24} << 20; }
    /// Returns the time to read a line of a tile's window divided by the time to compute a line of its core,
    /// for operations whose computation takes far longer than reading. All workers then get equal shares of
    /// tiles, although more lines are read. 0: tiles are chosen so that the halo is cheap.
    virtual double line_share() const { return 0; }
    /// Returns true if process() accepts a tile with any strides and does not change it, so that a tile in
    /// memory needs no copy (CubeReader::view()).
    virtual bool reads_in_place() const { return false; }
    /// Returns the CUDA device in whose memory process() also accepts tiles, with any strides; -1: only host
    /// memory.
    virtual int takes_from() const { return -1; }
    /// Returns the CUDA device in whose memory process() also writes outputs, with any strides; -1: only host
    /// memory.
    virtual int puts_on() const { return -1; }
    /// Returns an allocator of memory on the device puts_on(), for callers that take outputs in this memory;
    /// null if puts_on() is -1.
    virtual std::shared_ptr<HostAllocator> device_allocator() const { return nullptr; }
    /// Returns the allocator of the workers' tile buffers: pinned memory for a GPU.
    virtual std::shared_ptr<HostAllocator> allocator() const { return paged_allocator(); }
    /// Creates the worker of a lane. Thread-safe: the workers of several lanes are created at the same time.
    virtual std::unique_ptr<Worker> start(int lane, const TileLimits& limits) = 0;
    /// Merges the results of a worker. Called once for every worker, from one thread, after the last tile,
    /// and only if no tile failed.
    virtual void stop(Worker&) {}

    /// Returns true if the ranks of a job may share the tiles. If false, each rank processes all tiles with
    /// the same result. Return false if exchange() does not merge the operation's results.
    virtual bool divides() const { return false; }
    /// Replaces this rank's results by the results for the whole scene, which are the same on every rank. All
    /// ranks call this function together after stop() if the operation divides. Operations without results
    /// over tiles need not implement it.
    virtual void exchange(parallel::Group&) {}
};

} // namespace hsi::stream
