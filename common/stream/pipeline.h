// SPDX-License-Identifier: MIT
// The tile pipeline: lanes of read -> compute -> write that overlap one another.
//
// A lane is a thread with its own reader, tile buffers and worker, all made once. Lanes take tiles in order;
// while one lane reads, another computes and a third writes, so the slowest of file, device and processor
// sets the pace without queues between stages, and memory in use is lanes x one tile, known before the first
// byte is read. Sinks that cannot take tiles from several threads get them one at a time, in tile order, so
// their files come out the same byte for byte.
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

/// Limits of an algorithm, or of the device that it computes on.
struct WorkerLimit {
    uint64_t bytes_each = 0; ///< of a raw scene, for each worker; 0: any
    int least = 1;           ///< for scenes of any size
    int most = std::numeric_limits<int>::max();
};

/// Returns `wanted` workers, or fewer if the limit for a raw scene of so many bytes is lower. Readers of any
/// other scene also decode, so callers pass 0 for `scene_bytes` and the size does not count.
inline int worker_count(int wanted, uint64_t scene_bytes, const WorkerLimit& limit) {
    wanted = std::min(wanted, limit.most);
    if (limit.bytes_each == 0 || scene_bytes == 0) return wanted;
    const uint64_t worth = std::max(static_cast<uint64_t>(limit.least), scene_bytes / limit.bytes_each);
    return worth < static_cast<uint64_t>(wanted) ? static_cast<int>(worth) : wanted;
}

/// Costs of a pass, or of a part of it.
struct PassCosts {
    int64_t tiles = 0;
    uint64_t bytes_read = 0, bytes_written = 0;                      ///< as stored in the files
    double seconds = 0;                                              ///< wall clock
    double read_seconds = 0, compute_seconds = 0, write_seconds = 0; ///< summed over lanes
    /// Processor time of decompression and compression, of all threads: lanes, while they read and write, and
    /// those that work ahead of them.
    double decode_seconds = 0, encode_seconds = 0;
    /// Those of another part, which came before or after this one.
    void add(const PassCosts& other);
};

/// The part of one rank of a job in a pass; its seconds last until it had no more tiles.
struct RankPass : PassCosts {
    int lanes = 0;
    double wait_seconds = 0; ///< for tiles, summed over lanes
};

struct PassReport : PassCosts {
    std::string name;
    int64_t tile_samples = 0, tile_lines = 0, halo = 0;
    int lanes = 0;
    uint64_t buffer_bytes = 0;   ///< host memory planned for all lanes
    uint64_t ahead_bytes = 0;    ///< the part of these for data that a single lane's reader decodes while the
                                 ///< lane computes
    std::vector<RankPass> ranks; ///< with several: of each; the sums above then cover all
};

struct PassOptions {
    std::string name;                    ///< "centroid": for reports and errors
    int lanes = 1;                       ///< wanted
    uint64_t memory = uint64_t{1} << 30; ///< host bytes for all lanes
    uint64_t asked_memory = 0;  ///< -memory, which `memory` is a part of; 0 if not known. For messages.
    uint64_t device_memory = 0; ///< device bytes for all lanes; 0: no limit
    WorkerLimit limit;          ///< fewer lanes than are wanted
    int64_t tile_samples = 0, tile_lines = 0; ///< forced tile size, 0: choose
    BlockLayout output_layout;                ///< CubeSink::layout() of the largest output
    bool outputs_on_device = false; ///< the sinks are where the operation puts outputs; run_pass() asks them
    const CancelFlag* cancel = nullptr;
    std::function<void(double)> progress;       ///< share of the tiles done, called by one thread at a time
    const std::vector<int64_t>* only = nullptr; ///< tiles to visit (indices of the plan); all when null
    /// With several ranks: the owner of a tile, if that is fixed because each rank keeps the data for its own
    /// tiles. If null, a free rank takes the next tile.
    std::function<int(const Tile&)> owner;
    int ranks = 0; ///< for a plan: ranks that share the tiles; 0: those that there are
};

/// The plan that run_pass() would use (for -dry-run, and for callers that keep something for each tile).
TilePlan plan_pass(const CubeSource& source, const Operation& operation, const PassOptions& options);

/// Host bytes of one lane with the smallest tile: the minimum for a pass.
uint64_t least_pass_bytes(const CubeSource& source, const Operation& operation);
/// Host bytes that the plan needs for all lanes.
uint64_t plan_bytes(const CubeSource& source, const Operation& operation, const TilePlan& plan);
/// Bytes of device memory that a plan's lanes take together; 0 where all is done by the CPU.
uint64_t plan_device_bytes(const CubeSource& source, const Operation& operation, const TilePlan& plan);

/// Runs the operation over the scene. sinks[k] takes output k. Throws the first error of any lane; an error
/// while reading or writing says which tile. Throws Cancelled when options.cancel was set.
///
/// With several ranks, which all call this with the same plan, the tiles of an operation that
/// divides are shared among them unless a sink is a rank's own and gathers nothing; any other operation is
/// run as a whole by each of them, and the root alone writes to shared sinks.
PassReport run_pass(const CubeSource& source, Operation& operation, const std::vector<CubeSink*>& sinks,
                    const TilePlan& plan, const PassOptions& options);

/// The same with plan_pass()'s plan.
PassReport run_pass(const CubeSource& source, Operation& operation, const std::vector<CubeSink*>& sinks,
                    const PassOptions& options);

/// For a pass without run_pass(), all ranks together: this rank's report of its part becomes the report of
/// the whole, with each rank's part. waited: seconds for tiles, summed over lanes.
void add_up(parallel::Group& ranks, PassReport& report, double waited);

} // namespace hsi::stream
