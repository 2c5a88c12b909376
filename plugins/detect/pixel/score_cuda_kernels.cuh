// SPDX-License-Identifier: MIT
// The kernels that score single pixels.
#pragma once

#include "detect/detect_cuda_kernels.cuh"

#include <cuda_runtime.h>

#include <cstdint>

namespace hsi::detect::gpu {

enum class Kind { sam, sid, matched, ace, rx }; ///< matched: mf and cem

/// A matrix is stored in panels of eight rows that are multiplied with a pixel together. A panel is stored
/// column by column, with eight entries per column; missing rows are zero.
inline constexpr int panel_rows = 8;

/// The input and the scratch memory of the kernels: the pixels of a tile, and a detector.
struct ScoreWork {
    Kind kind = Kind::rx;
    const float* raw = nullptr; ///< bands x pixels
    int pixels = 0, bands = 0;
    int used_count = 0, targets = 0;   ///< targets: 0 for rx
    const int* used = nullptr;         ///< bands used for scores
    const double* centre = nullptr;    ///< one per used band
    const double* rows = nullptr;      ///< panels of the targets' rows
    const double* log_rows = nullptr;  ///< sid: panels of the rows of logarithms
    const double* factor = nullptr;    ///< ace, rx: panels of L^-1, lower
    const double* constants = nullptr; ///< ace, sid: one per target
    double least_part = 0;             ///< sid: detect::least_part
    double sam_rounding = 0;           ///< sam: greatest 1 - cosine for which the angle is 0
    // One value per pixel, computed by the kernels.
    uint8_t* valid = nullptr;
    double* squared = nullptr; ///< sam: |x|^2; ace, rx: |L^-1 (x-m)|^2
    /// sid: the maximum of x, the sum of x+, and the sum of x+ ln x+ (pixel.h)
    double *greatest = nullptr, *sum = nullptr, *entropy = nullptr;
    double* scores = nullptr; ///< one row per score
};

void launch_scores(const ScoreWork& work, const Output& out, cudaStream_t stream);

} // namespace hsi::detect::gpu
