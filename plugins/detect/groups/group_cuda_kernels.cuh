// SPDX-License-Identifier: MIT
// The kernels of backgrounds by group: the pixels of each group side by side, means, products, the shrinkage,
// factors in the place of the products, the targets' rows, scores. All in double precision, in an order that
// depends on a group's own pixels alone.
#pragma once

#include "detect/detect_cuda_kernels.cuh"

#include <cuda_runtime.h>

#include <cstdint>

namespace hsi::detect::gpu {

/// Where a group is.
enum Fate : int {
    going,     ///< to its scores
    uncertain, ///< its matrix may not bear an inverse: the host decides, and brings the parts of a detector
    few_pixels,
    no_variance,
    target_is_mean, ///< settled: no scores
    no_group        ///< the pixels of all that is none
};

/// A group of pixels; found: by kernels.
struct DeviceGroup {
    int64_t values = 0; ///< of GroupWork::x: where its first band begins
    int64_t place = 0;  ///< of its first pixel, where a pixel has one number
    int pixels = 0;
    int first = 0, width = 1; ///< of columns: samples of the raster
    int fate = going;         ///< found, as what follows is
    int valid = 0, background = 0;
    int counted = 0, excluded = 0; ///< of the background: what statistics are made from, and what is not
    int varying = 0;               ///< bands
    int regularised = 0;           ///< something was added to the diagonal
    double share = 0;
    double mean_eigenvalue = 0; ///< before anything was added
    __host__ __device__ bool settled() const { return fate > uncertain; }
};

struct GroupWork {
    // The raster that pixels come from, and scores go to.
    int64_t samples = 0, lines = 0;
    const uint8_t* mask = nullptr; ///< [line][sample]; null: all
    const int* order = nullptr;    ///< by place: the pixel of the raster; null: groups are columns
    int bands = 0, groups = 0;
    int targets = 0;       ///< rx: 0
    int64_t pitch = 0;     ///< of x: from a band of a group to the next
    int64_t places = 0;    ///< of all groups
    int64_t most = 0;      ///< pixels of a group
    bool centred = true;   ///< cem: false, and constant bands are as others
    bool ace = false;      ///< scores are squared, over those of the pixel
    bool measures = false; ///< ace, rx: the pixel's own (x-m)'M^-1(x-m)
    bool ledoit_wolf = false, absorption = false;
    double share = 0, exclude_share = 0;
    DeviceGroup* group = nullptr;
    float* x = nullptr;
    uint8_t* state = nullptr;        ///< [place]
    double* mean = nullptr;          ///< [group][band]; cem: 0
    uint8_t* constant = nullptr;     ///< [group][band]
    double* matrix = nullptr;        ///< [group][band][band]: sums of products above the diagonal
    double* own = nullptr;           ///< [group][band]: those on it
    double* weight = nullptr;        ///< [group][band]
    double* inverse = nullptr;       ///< [group][band][band], lower: of the factor; null: not wanted
    double* squares = nullptr;       ///< [place]: |z|^4 for the share, then |L^-1 (x-m)|^2
    const double* spectra = nullptr; ///< [target][band]
    double* rows = nullptr;          ///< [group][target][band]
    double* constants = nullptr;     ///< [group][target]: z'M^-1 z
    double* scores = nullptr;        ///< [target, or 1][place]
    // Of the raster: what outputs have.
    int64_t core_first = 0, core_samples = 0;

    __host__ __device__ int64_t matrix_at(int g) const { return static_cast<int64_t>(g) * bands * bands; }
    __host__ __device__ int planes() const { return targets > 0 ? targets : 1; }
};

/// A band of x, in raster order, by places; room: a number a place.
void launch_sort(const GroupWork& work, float* band, float* room, cudaStream_t stream);
/// Which pixels are valid, and count. Before all else.
void launch_look(const GroupWork& work, cudaStream_t stream);
/// From the pixels that count to rows, constants and the factor's inverse, where a group is `going` then.
void launch_statistics(const GroupWork& work, cudaStream_t stream);
void launch_group_scores(const GroupWork& work, cudaStream_t stream);
/// From now on the pixels of greatest score do not count (GroupOptions::exclude_share).
void launch_exclusion(const GroupWork& work, cudaStream_t stream);
/// Scores and the map. Counts: pixels with a score, invalid ones, valid ones of groups without scores, valid
/// ones without a group.
void launch_output(const GroupWork& work, const Output& out, cudaStream_t stream);

} // namespace hsi::detect::gpu
