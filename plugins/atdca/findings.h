// SPDX-License-Identifier: MIT
// What a look at regions of the scene finds, and how the ranks of a job put together what each of them has
// found, so that all of them decide alike.
#pragma once

#include "atdca/candidate_pool.h"
#include "parallel/group.h"

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

/// Moves what the lanes have found into the pool, by all of a team.
void pool_findings(std::vector<Found>&& found, CandidatePool& pool, Team& team);

// All ranks together; with one they do nothing. Every rank has a pool of what itself has found.

/// Tells the regions of all ranks which pixels each rank has found for its pool.
void share_pooled(parallel::Group& ranks, const std::vector<Found>& mine, std::vector<Region>& regions);
/// What the pools of all ranks choose together, from what this rank's has chosen.
void share_step(parallel::Group& ranks, Step& step);
/// Of every entry the best that any rank has. Entries without a region are the same everywhere.
void share_best(parallel::Group& ranks, std::vector<Best>& best);
/// Greatest ||x||^2 of regions, each looked at by one rank.
void share_norms(parallel::Group& ranks, std::vector<Region>& regions);
/// The least bound of every region.
void share_bounds(parallel::Group& ranks, std::vector<Region>& regions);

} // namespace hsi::atdca
