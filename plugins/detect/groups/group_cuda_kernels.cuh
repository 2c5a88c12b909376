// SPDX-License-Identifier: MIT
// The kernels for detections with a background per group. They gather the pixels of each group. They compute
// means, sums of products, shrinkage, factors (which replace the products), the targets' rows, and scores.
// All computations are in double precision, in an order that depends only on the group's own pixels.
#pragma once

#include "detect/detect_cuda_kernels.cuh"

#include <cuda_runtime.h>

#include <cstdint>

namespace hsi::detect::gpu {

/// The state of a group.
enum Fate : int {
    going,      ///< scores will be computed
    uncertain,  ///< the matrix may be singular: the host decides, and computes the detector
    few_pixels, ///< This state and the following ones are final: the group has no scores.
    no_variance,
    target_is_mean,
    no_group ///< the state of all pixels without a group, which form one DeviceGroup
};

/// A group of pixels. Kernels set `fate` and the members after it.
struct DeviceGroup {
    int64_t values = 0; ///< index of the first band's first value in GroupWork::x
    int64_t place = 0;  ///< index of the first pixel in the arrays [place], which have one value per pixel
    int pixels = 0;
    int first = 0, width = 1; ///< groups of columns: first sample in the raster, and number of samples
    int fate = going;         ///< a Fate; kernels set it and all members below
    int valid = 0, background = 0;
    /// Background pixels in the statistics, and background pixels that are excluded
    int counted = 0, excluded = 0;
    int varying = 0;     ///< number of bands that are not constant
    int regularised = 0; ///< not 0 if a ridge was added to the diagonal
    double share = 0;
    double mean_eigenvalue = 0; ///< mean eigenvalue of the matrix before a ridge is added
    __host__ __device__ bool settled() const { return fate > uncertain; }
};

struct GroupWork {
    // The raster of the pixels and of the scores.
    int64_t samples = 0, lines = 0;
    const uint8_t* mask = nullptr; ///< [line][sample]; null for all pixels
    const int* order = nullptr;    ///< [place]: index in the raster; null if groups are columns
    int bands = 0, groups = 0;
    int targets = 0;       ///< 0 for rx
    int64_t pitch = 0;     ///< values in x from one band of a group to the next
    int64_t places = 0;    ///< number of pixels of all groups
    int64_t most = 0;      ///< number of pixels of the largest group
    bool centred = true;   ///< false for cem, which does not subtract the mean and uses constant bands
    bool ace = false;      ///< squares scores, and divides them by (x-m)'M^-1(x-m)
    bool measures = false; ///< ace, rx: computes (x-m)'M^-1(x-m) of each pixel
    bool ledoit_wolf = false, absorption = false;
    double share = 0, exclude_share = 0;
    DeviceGroup* group = nullptr;
    float* x = nullptr;
    uint8_t* state = nullptr; ///< [place]: whether the pixel is valid, in the background, in the statistics
    double* mean = nullptr;   ///< [group][band]; 0 for cem
    uint8_t* constant = nullptr; ///< [group][band]
    double* matrix = nullptr;    ///< [group][band][band]: sums of products above the diagonal
    double* own = nullptr;       ///< [group][band]: sums of products on the diagonal
    double* weight = nullptr;    ///< [group][band]
    /// [group][band][band], lower: inverse of the factor; null if not needed
    double* inverse = nullptr;
    double* squares = nullptr;       ///< [place]: |z|^4 for the shrinkage, later |L^-1 (x-m)|^2
    const double* spectra = nullptr; ///< [target][band]
    double* rows = nullptr;          ///< [group][target][band]
    double* constants = nullptr;     ///< [group][target]: z'M^-1 z
    double* scores = nullptr;        ///< [target, or 1][place]
    // The samples of the raster that outputs contain.
    int64_t core_first = 0, core_samples = 0;

    __host__ __device__ int64_t matrix_at(int g) const { return static_cast<int64_t>(g) * bands * bands; }
    __host__ __device__ int planes() const { return targets > 0 ? targets : 1; }
};

/// Sorts a band of x from raster order into the order of groups. room: scratch memory with one value per
/// pixel.
void launch_sort(const GroupWork& work, float* band, float* room, cudaStream_t stream);
/// Finds the valid pixels and the background pixels of each group. Call it before the functions below.
void launch_look(const GroupWork& work, cudaStream_t stream);
/// Computes rows, constants and the factor's inverse from the background pixels. Afterwards a group is
/// `going` if it will have scores.
void launch_statistics(const GroupWork& work, cudaStream_t stream);
void launch_group_scores(const GroupWork& work, cudaStream_t stream);
/// Excludes the pixels with the greatest scores from the statistics (GroupOptions::exclude_share). Call
/// launch_statistics() afterwards.
void launch_exclusion(const GroupWork& work, cudaStream_t stream);
/// Writes the scores and the map to the outputs. Adds to Output::counts the pixels with a score, the invalid
/// pixels, the valid pixels of groups without scores, and the valid pixels without a group.
void launch_output(const GroupWork& work, const Output& out, cudaStream_t stream);

} // namespace hsi::detect::gpu
