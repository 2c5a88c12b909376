// SPDX-License-Identifier: MIT
// Results of the search in regions of the scene, and functions that merge the results of all ranks, so that
// all ranks make the same decisions.
#pragma once

#include "atdca/candidate_pool.h"
#include "parallel/group.h"

#include <cstdint>
#include <limits>
#include <vector>

namespace hsi::atdca {

/// A region of some hundred consecutive pixels of a tile (line by line).
struct Region {
    /// OSP: upper bound of the scores of the region's pixels that are not in the pool
    float bound = std::numeric_limits<float>::infinity();
    double norm = 0;              ///< greatest ||x||^2 of the region's pixels
    std::vector<uint32_t> pooled; ///< indices within the region of the pixels that are in the pool
    bool is_pooled(uint32_t i) const;
};

/// Pixels that a worker has found for the pool, with their spectra. They are not in the pool yet, but
/// Region::pooled already lists them.
struct Found {
    std::vector<Position> position;
    std::vector<int64_t> region;
    std::vector<uint32_t> pixel; ///< index of each pixel within its region
    std::vector<float> spectra;  ///< one spectrum after another
    /// Adds the pixel `at`, which has the index `pixel_of_region` in region `id`. group_data: the spectra of
    /// its group (atdca_simd.h). lane: its index in this group.
    void add(const Position& at, int64_t id, uint32_t pixel_of_region, const float* group_data, int64_t lane,
             int bands);
};

/// The best pixel at one step of a sequence.
struct Best {
    double score = -std::numeric_limits<double>::infinity();
    Position position{std::numeric_limits<int64_t>::max(), 0};
    int64_t region = -1; ///< -1: the entry is a guess or empty, not a pixel that was examined
    uint32_t pixel = 0;  ///< index of the pixel within its region
    std::vector<float> spectrum;
};

/// Moves the findings of all workers into the pool, on all threads of a team.
void pool_findings(std::vector<Found>&& found, CandidatePool& pool, Team& team);

// All ranks call the functions below together. With one rank, the functions do nothing. The pool of a rank
// has only the findings of that rank.

/// Adds the pixels that each rank has found for its pool to Region::pooled on the other ranks.
void share_pooled(parallel::Group& ranks, const std::vector<Found>& mine, std::vector<Region>& regions);
/// Replaces this rank's choice by the best choice of all ranks.
void share_step(parallel::Group& ranks, Step& step);
/// Replaces every entry by the best entry of all ranks. An entry with region -1 must be equal on all ranks.
void share_best(parallel::Group& ranks, std::vector<Best>& best);
/// Gives all ranks the norm of every region. Only one rank has examined a region; on the others, its norm is
/// 0.
void share_norms(parallel::Group& ranks, std::vector<Region>& regions);
/// Sets the bound of every region on all ranks to the lowest bound that any rank has found.
void share_bounds(parallel::Group& ranks, std::vector<Region>& regions);

} // namespace hsi::atdca
