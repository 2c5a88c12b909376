// SPDX-License-Identifier: MIT
// The tile pipeline: lanes that read, compute and write tiles at the same time.
//
// A lane is a thread with its own reader, tile buffers and worker, all created once. Lanes take tiles in
// order. While one lane reads, another computes and a third writes, so the slowest of file, device and CPU
// determines the speed, without queues between stages. The memory is lanes x one tile and is known before the
// first byte is read. Sinks that cannot take tiles from several threads get them one at a time, in tile
// order, so the bytes of their files do not depend on the lanes.
#pragma once

#include "core/cancel.h"
#include "core/tile_plan.h"
#include "stream/operation.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace hsi::stream {

/// Limits of the number of workers, from the algorithm or from the device on which it computes.
struct WorkerLimit {
    uint64_t bytes_each = 0; ///< bytes of a raw scene per worker; 0: no limit
    int least = 1;           ///< lower bound of this limit, for small scenes
    int most = std::numeric_limits<int>::max();
};

/// Returns the number of workers: `wanted`, or fewer if the limit is lower. `scene_bytes`: the size of a raw
/// scene. Callers pass 0 for all other scenes, whose readers also decode; the limit then does not depend on
/// the size.
inline int worker_count(int wanted, uint64_t scene_bytes, const WorkerLimit& limit) {
    wanted = std::min(wanted, limit.most);
    if (limit.bytes_each == 0 || scene_bytes == 0) return wanted;
    const uint64_t worth = std::max(static_cast<uint64_t>(limit.least), scene_bytes / limit.bytes_each);
    return worth < static_cast<uint64_t>(wanted) ? static_cast<int>(worth) : wanted;
}

/// The costs of a pass or of part of a pass.
struct PassCosts {
    int64_t tiles = 0;
    uint64_t bytes_read = 0, bytes_written = 0;                      ///< as stored in the files
    double seconds = 0;                                              ///< wall clock
    double read_seconds = 0, compute_seconds = 0, write_seconds = 0; ///< summed over workers
    /// Processor time of decompression and compression over all threads: workers that read and write, and
    /// threads that work ahead of the workers.
    double decode_seconds = 0, encode_seconds = 0;
    /// Adds the costs of another part, which ran before or after this part.
    void add(const PassCosts& other);
};

/// The costs of one rank of a job in a pass. `seconds` is the time until no tiles remain for the rank.
struct RankPass : PassCosts {
    int lanes = 0;
    double wait_seconds = 0; ///< time that workers have waited for tiles, summed over workers
};

struct PassReport : PassCosts {
    std::string name;
    int64_t tile_samples = 0, tile_lines = 0, halo = 0;
    int lanes = 0;
    uint64_t buffer_bytes = 0; ///< host memory planned for all workers
    /// The part of buffer_bytes for data that the reader of a single worker decodes while the worker
    /// computes.
    uint64_t ahead_bytes = 0;
    /// The costs of each rank, if there are several ranks. The sums above then cover all ranks.
    std::vector<RankPass> ranks;
};

struct PassOptions {
    std::string name;                    ///< name for reports and errors: "centroid"
    int lanes = 1;                       ///< requested number of workers
    uint64_t memory = uint64_t{1} << 30; ///< host bytes for all workers
    uint64_t asked_memory = 0; ///< -memory in bytes, which includes `memory`; 0 if unknown. Used in messages.
    uint64_t device_memory = 0;               ///< device bytes for all workers; 0: no limit
    WorkerLimit limit;                        ///< limits the number of workers
    int64_t tile_samples = 0, tile_lines = 0; ///< tile size that -tile specifies; 0: chosen by the plan
    BlockLayout output_layout;                ///< CubeSink::layout() of the largest output
    /// True if the sinks are in the memory to which the operation writes its outputs. Set by run_pass().
    bool outputs_on_device = false;
    const CancelFlag* cancel = nullptr;
    /// Called with the fraction of tiles that are done, by one thread at a time.
    std::function<void(double)> progress;
    /// Indices (in the plan) of the tiles to visit; null: all tiles.
    const std::vector<int64_t>* only = nullptr;
    /// Returns the rank that must process a tile. Needed if several ranks each keep the data of their own
    /// tiles. If null, a free rank takes the next tile.
    std::function<int(const Tile&)> owner;
    int ranks = 0; ///< For a plan: number of ranks that share the tiles; 0: the actual number.
};

/// Returns the plan that run_pass() would use (for -dry-run, and for callers that keep data per tile).
TilePlan plan_pass(const CubeSource& source, const Operation& operation, const PassOptions& options);

/// Returns the host bytes of one worker with the smallest tile, the minimum for a pass.
uint64_t least_pass_bytes(const CubeSource& source, const Operation& operation);
/// Returns the host bytes that the plan needs for all workers.
uint64_t plan_bytes(const CubeSource& source, const Operation& operation, const TilePlan& plan);
/// Returns the bytes of device memory that all workers of a plan use; 0 if only the CPU computes.
uint64_t plan_device_bytes(const CubeSource& source, const Operation& operation, const TilePlan& plan);

/// Runs the operation over the scene. sinks[k] takes output k. Throws the first error of any worker; errors
/// of reading and writing name the tile. Throws Cancelled if options.cancel was set.
///
/// All ranks call this function with the same plan. If the operation divides, the ranks share its tiles,
/// unless a sink is neither a SharedSink nor a GatheringSink that accepts tiles in any order. Otherwise each
/// rank processes all tiles, and only the root writes to shared sinks.
PassReport run_pass(const CubeSource& source, Operation& operation, const std::vector<CubeSink*>& sinks,
                    const TilePlan& plan, const PassOptions& options);

/// Runs the operation with the plan of plan_pass().
PassReport run_pass(const CubeSource& source, Operation& operation, const std::vector<CubeSink*>& sinks,
                    const PassOptions& options);

/// Combines the reports of all ranks, for a pass that was made without run_pass(). `report` is this rank's
/// report of its part. It becomes the report of the whole pass, and lists the part of each rank. All ranks
/// call this function together. waited: seconds that the workers of this rank have waited for tiles, summed
/// over workers.
void add_up(parallel::Group& ranks, PassReport& report, double waited);

} // namespace hsi::stream
