// SPDX-License-Identifier: MIT
// Divides a scene into tiles. A tile produces its core and reads its window (core + halo, cut at the border
// of the scene). The cores are disjoint and cover the scene.
#pragma once

#include "core/rect.h"

#include <cstdint>
#include <functional>
#include <string>

namespace hsi {

struct Tile {
    int64_t index = 0;
    Rect core;   ///< in scene coordinates
    Rect window; ///< core grown by the halo, inside the scene
};

class TilePlan {
  public:
    TilePlan() = default;
    TilePlan(int64_t samples, int64_t lines, int64_t tile_samples, int64_t tile_lines, int64_t halo,
             int lanes);

    int64_t size() const { return m_across * m_down; }
    Tile tile(int64_t index) const; ///< Tiles are numbered row by row.
    int64_t tile_samples() const { return m_tile_samples; }
    int64_t tile_lines() const { return m_tile_lines; }
    int64_t halo() const { return m_halo; }
    int lanes() const { return m_lanes; } ///< Number of tiles that are processed at once, each by one worker.
    int ranks() const { return m_ranks; } ///< processes that share the tiles
    void share_among(int ranks) { m_ranks = ranks; }
    int64_t max_core_samples() const;
    int64_t max_core_lines() const;
    int64_t max_window_samples() const;
    int64_t max_window_lines() const;
    std::string describe() const; ///< "19 tiles of 614x32, halo 2, 2 at a time"

  private:
    int64_t m_samples = 0, m_lines = 0, m_tile_samples = 1, m_tile_lines = 1, m_halo = 0;
    int64_t m_across = 0, m_down = 0;
    int m_lanes = 1, m_ranks = 1;
};

struct TileRequest {
    int64_t samples = 0, lines = 0;             ///< size of the scene in pixels
    int64_t block_samples = 0, block_lines = 1; ///< the file's blocks; block_samples = 0 means whole lines
    /// The maximum number of lines that the windows of all workers may cover together; 0: no limit. With more
    /// lines, blocks of the file would be decoded again. If the halo needs more lines, the windows may exceed
    /// this limit.
    int64_t kept_lines = 0;
    int64_t halo = 0;
    int lanes = 1;       ///< Number of workers that are requested; the plan has fewer if memory is short.
    uint64_t budget = 0; ///< bytes for all workers together
    uint64_t memory = 0; ///< -memory in bytes, which includes `budget`; 0 if unknown. Used in messages.
    uint64_t device_budget = 0; ///< bytes of device memory for all workers together; 0: no limit
    /// Bytes per worker that suit the caches or the device; 0: as many as the budget allows.
    uint64_t preferred = 0;
    int64_t align_samples = 1; ///< tile sizes are multiples of both (the size of the blocks of statistics)
    int64_t align_lines = 1;
    int64_t forced_samples = 0, forced_lines = 0; ///< size that -tile specifies; 0: chosen by plan_tiles()
    /// The time to read a line divided by the time to compute it, for computations that take far longer than
    /// reading. If above 0, the workers of all ranks get equal shares of the work, and this ratio determines
    /// the height of tiles. 0: the work is not shared equally, because the lower tiles would read the halo
    /// too often.
    double line_share = 0;
    /// Number of processes that share the tiles, each with the same number of workers. Used with
    /// `line_share`.
    int ranks = 1;
    /// Returns the bytes that one worker needs for input, outputs and scratch, for a tile with a window of
    /// window_samples x window_lines and a core of core_samples x core_lines.
    std::function<uint64_t(int64_t window_samples, int64_t window_lines, int64_t core_samples,
                           int64_t core_lines)>
        lane_bytes;
    /// Returns the same bytes for the device. May be empty if there is no limit.
    std::function<uint64_t(int64_t window_samples, int64_t window_lines, int64_t core_samples,
                           int64_t core_lines)>
        device_bytes;
};

/// Returns the host bytes of one worker with the smallest tile that can be chosen.
uint64_t least_lane_bytes(const TileRequest& request);

/// Returns the advice "Use -memory 46MB or more" if a plan needs a budget of `bytes`. The advised size
/// assumes that the budget remains the same fraction of -memory. It suffices, since this fraction does not
/// fall when -memory grows. Returns "Use a larger -memory" if request.memory is unknown, or if `bytes`
/// exceeds the budget more than a hundredfold. In the latter case, memory of a fixed size takes nearly all of
/// -memory.
std::string memory_advice(const TileRequest& request, uint64_t bytes);

/// Chooses the tile size. Tiles follow the blocks of the file, consist of whole lines if they fit, have a
/// size near `preferred`, keep all workers busy, and have a cheap halo. With `line_share`, tiles are equal
/// shares for all workers. Throws Error that names -memory or -device-memory, whichever is short, if the
/// smallest tile does not fit. Throws UsageError that names -tile if the forced size does not fit.
TilePlan plan_tiles(const TileRequest& request);

} // namespace hsi
