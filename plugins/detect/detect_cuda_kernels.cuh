// SPDX-License-Identifier: MIT
// The outputs of the kernels of all detection methods, and the summary of their scores. All kernels compute
// in double precision. A result depends only on its pixel's values (local RX: on the pixels of its run and
// their surroundings; groups: on the pixels of its group). It does not depend on tiles, grids or blocks.
#pragma once

#include <cuda_runtime.h>

#include <cstring>

namespace hsi::detect::gpu {

/// The buffers of a pass's scores.
struct Output {
    float* scores = nullptr; ///< one band per score, packed; NaN without a score
    float* map = nullptr;    ///< null if not requested
    float* depths = nullptr; ///< depths of features; null if not requested
    bool has_threshold = false, small_is_best = false;
    double threshold = 0;
    /// Four numbers that the kernels increase: valid pixels, invalid pixels, pixels without background
    /// (features: without a continuum), and pixels without variance.
    unsigned long long* counts = nullptr;
};

/// Buffers that summarise the scores and the maps of all tiles of a worker. Clear them before the first tile.
struct Tally {
    unsigned* best = nullptr; ///< best score of each target, see score_of(); 0 before the first score
    /// Number of pixels of each target in the map, then of all pixels of the map; null without a map
    unsigned long long* mapped = nullptr;
    bool small_is_best = false;
};
/// Returns the score that Tally::best encodes.
__host__ __device__ inline float score_of(unsigned best, bool small_is_best) {
    const unsigned rising = small_is_best ? ~best : best;
    const unsigned bits = rising & 0x80000000u ? rising ^ 0x80000000u : ~rising;
    float score = 0;
    memcpy(&score, &bits, sizeof score);
    return score;
}
/// Adds the scores and the map of a tile to its worker's summary. scores: `targets` planes with `pixels`
/// scores per plane. map: `pixels` target numbers; null without a map.
void launch_tally(const float* scores, const float* map, int targets, int pixels, const Tally& tally,
                  cudaStream_t stream);

} // namespace hsi::detect::gpu
