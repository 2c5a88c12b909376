// SPDX-License-Identifier: MIT
// Results of the search in regions of the scene, and the merging of all ranks' results, so that all ranks
// make the same decisions.
#pragma once

#include "atdca/candidate_pool.h"
#include "parallel/group.h"

#include <cstdint>
#include <limits>
#include <vector>

namespace hsi::atdca {

/// A region of some hundred consecutive pixels of a tile (line by line).
struct Region {
    float bound =
        std::numeric_limits<float>::infinity(); ///< OSP: no pixel outside the pool has a greater score
    double norm = 0;                            ///< greatest ||x||^2
    std::vector<uint32_t> pooled;               ///< pixels of the region that are in the pool
    bool is_pooled(uint32_t i) const;
};

/// Pixels that will be added to the pool, with their spectra. Their regions have already counted them.
struct Found {
    std::vector<Position> position;
    std::vector<int64_t> region;
    std::vector<uint32_t> pixel; ///< within the region
    std::vector<float> spectra;  ///< band by band
    /// group_data: the pixel's group, which contains it in this lane.
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

// All ranks call these functions together; with one rank they do nothing. Every rank has a pool of its own
// findings.

/// Marks in the regions of all ranks which pixels each rank has found for its pool.
void share_pooled(parallel::Group& ranks, const std::vector<Found>& mine, std::vector<Region>& regions);
/// Merges this rank's choice with those of all other ranks' pools.
void share_step(parallel::Group& ranks, Step& step);
/// Replaces every entry by the best on any rank. Entries without a region are the same on all ranks.
void share_best(parallel::Group& ranks, std::vector<Best>& best);
/// Merges the greatest ||x||^2 of regions, each of which one rank has examined.
void share_norms(parallel::Group& ranks, std::vector<Region>& regions);
/// Merges the lowest bound of every region.
void share_bounds(parallel::Group& ranks, std::vector<Region>& regions);

} // namespace hsi::atdca
