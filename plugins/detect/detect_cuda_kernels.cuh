// SPDX-License-Identifier: MIT
// What the kernels of all rooms have in common: where scores go, and what those of a tile come to. All
// kernels compute in double precision; a result depends on its pixel's values (local RX: on those of its run
// and around; groups: on its group's), never on the launch.
#pragma once

#include <cuda_runtime.h>

#include <cstring>

namespace hsi::detect::gpu {

/// Where the scores of a pass go.
struct Output {
    float* scores = nullptr; ///< a band a score, packed; NaN where there is none
    float* map = nullptr;    ///< null: not wanted
    float* depths = nullptr; ///< of features, likewise
    bool has_threshold = false, small_is_best = false;
    double threshold = 0;
    /// Added to: pixels that are valid, invalid, without background (features: without a continuum), without
    /// variance.
    unsigned long long* counts = nullptr;
};

/// What scores and map of a tile come to. best: a target each, in the order of numbers (see score_of()).
struct Tally {
    unsigned* best = nullptr;             ///< 0 before there is one
    unsigned long long* mapped = nullptr; ///< a target each, then all pixels of the map; null without a map
    bool small_is_best = false;
};
/// The score behind Tally::best.
__host__ __device__ inline float score_of(unsigned best, bool small_is_best) {
    const unsigned rising = small_is_best ? ~best : best;
    const unsigned bits = rising & 0x80000000u ? rising ^ 0x80000000u : ~rising;
    float score = 0;
    memcpy(&score, &bits, sizeof score);
    return score;
}
/// scores: `targets` planes of so many pixels; map: null where there is none.
void launch_tally(const float* scores, const float* map, int targets, int pixels, const Tally& tally,
                  cudaStream_t stream);

} // namespace hsi::detect::gpu
