// SPDX-License-Identifier: MIT
// Results of the search in regions of the scene, and the merging of all ranks' results, so that all ranks
// decide alike.
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

/// Pixels on their way into the pool, with their spectra. Their regions have counted them already.
struct Found {
    std::vector<Position> position;
    std::vector<int64_t> region;
    std::vector<uint32_t> pixel; ///< within the region
    std::vector<float> spectra;  ///< band after band
    /// group_data: the pixel's group, which has it in this lane.
    void add(const Position& at, int64_t id, uint32_t pixel_of_region, const float* group_data, int64_t lane,
             int bands);
};

/// The best pixel at one step of a sequence.
struct Best {
    double score = -std::numeric_limits<double>::infinity();
    Position position{std::numeric_limits<int64_t>::max(), 0};
    int64_t region = -1; ///< -1: none of the examined pixels
    uint32_t pixel = 0;  ///< within the region
    std::vector<float> spectrum;
};

/// Moves the lanes' findings into the pool, on all threads of a team.
void pool_findings(std::vector<Found>&& found, CandidatePool& pool, Team& team);

// All ranks call these together; with one rank they do nothing. Every rank has a pool of its own findings.

/// Tells the regions of all ranks which pixels each rank has found for its pool.
void share_pooled(parallel::Group& ranks, const std::vector<Found>& mine, std::vector<Region>& regions);
/// Merges this rank's choice with those of all other ranks' pools.
void share_step(parallel::Group& ranks, Step& step);
/// For every entry, the best on any rank. Entries without a region are the same everywhere.
void share_best(parallel::Group& ranks, std::vector<Best>& best);
/// Greatest ||x||^2 of regions, each looked at by one rank.
void share_norms(parallel::Group& ranks, std::vector<Region>& regions);
/// The least bound of every region.
void share_bounds(parallel::Group& ranks, std::vector<Region>& regions);

} // namespace hsi::atdca
