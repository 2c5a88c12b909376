// SPDX-License-Identifier: MIT
// What a look at regions of the scene finds, and how the ranks of a job put together what each of them has
// found, so that all of them decide alike.
#pragma once

#include "atdca/candidate_pool.h"
#include "parallel/ranks.h"

#include <cstdint>
#include <limits>
#include <vector>

namespace hsi::atdca {

/// Some hundred pixels that follow one another in a tile (line by line).
struct Region {
    float bound =
        std::numeric_limits<float>::infinity(); ///< OSP: no pixel outside the pool scores more than this
    double norm = 0;                            ///< greatest ||x||^2
    std::vector<uint32_t> pooled;               ///< pixels of the region that are in the pool
    bool is_pooled(uint32_t i) const;
};

/// Pixels on their way into the pool, with their spectra. Their regions know of them already.
struct Found {
    std::vector<Position> position;
    std::vector<int64_t> region;
    std::vector<uint32_t> pixel; ///< within the region
    std::vector<float> spectra;  ///< band after band
    /// group_data: of the pixel's group, which has it in this lane.
    void add(const Position& at, int64_t id, uint32_t pixel_of_region, const float* group_data, int64_t lane,
             int bands);
};

/// The best pixel at one step of a sequence.
struct Best {
    double score = -std::numeric_limits<double>::infinity();
    Position position{std::numeric_limits<int64_t>::max(), 0};
    int64_t region = -1; ///< -1: none of the pixels that were looked at
    uint32_t pixel = 0;  ///< within the region
    std::vector<float> spectrum;
};

// All ranks together; with one they only do what the comment says of the pool.

/// Moves what all ranks have found into the pool, and into the regions what the others have. mine: of this
/// rank's lanes, moved by all of the team. The order in the pool is another on each rank.
void pool_findings(parallel::Ranks& ranks, std::vector<Found>&& mine, std::vector<Region>& regions,
                   CandidatePool& pool, Team& team);
/// Of every entry the best that any rank has. Entries without a region are the same everywhere.
void share_best(parallel::Ranks& ranks, std::vector<Best>& best);
/// Greatest ||x||^2 of regions, each looked at by one rank.
void share_norms(parallel::Ranks& ranks, std::vector<Region>& regions);
/// The least bound of every region.
void share_bounds(parallel::Ranks& ranks, std::vector<Region>& regions);

} // namespace hsi::atdca
