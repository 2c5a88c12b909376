// SPDX-License-Identifier: MIT
// The kernels of scores of single pixels.
#pragma once

#include "detect/detect_cuda_kernels.cuh"

#include <cuda_runtime.h>

#include <cstdint>

namespace hsi::detect::gpu {

enum class Kind { sam, sid, matched, ace, rx }; ///< matched: mf and cem

/// Rows of a matrix that meet a pixel together: panels of eight, in each the columns one after another, eight
/// numbers a column; rows beyond the last are zero.
inline constexpr int panel_rows = 8;

/// The pixels of a tile, band after band, and a detector.
struct ScoreWork {
    Kind kind = Kind::rx;
    const float* raw = nullptr; ///< bands x pixels
    int pixels = 0, bands = 0;
    int used_count = 0, targets = 0;   ///< rx: 0 targets
    const int* used = nullptr;         ///< bands that scores are made from
    const double* centre = nullptr;    ///< a band used each
    const double* rows = nullptr;      ///< panels of the targets' rows
    const double* log_rows = nullptr;  ///< sid: likewise, for the logarithms
    const double* factor = nullptr;    ///< ace, rx: panels of L^-1, lower
    const double* constants = nullptr; ///< ace, sid: a target each
    double least_part = 0;             ///< sid
    double sam_rounding = 0;           ///< 1 - cosine up to which the angle is 0
    // A pixel each, made here.
    uint8_t* valid = nullptr;
    double* squared = nullptr;                                      ///< sam: |x|^2; ace, rx: |L^-1 (x-m)|^2
    double *greatest = nullptr, *sum = nullptr, *entropy = nullptr; ///< sid
    double* scores = nullptr;                                       ///< a row a score
};

void launch_scores(const ScoreWork& work, const Output& out, cudaStream_t stream);

} // namespace hsi::detect::gpu
