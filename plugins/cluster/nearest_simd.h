// SPDX-License-Identifier: MIT
// The inner loop of k-means: distances of pixels from centres, compiled for every instruction set and
// selected at run time. The sums of a pixel run over the bands in their order. Sums are in double precision,
// except in screen().
#pragma once

#include <cstdint>

namespace hsi::cluster {

/// The number of pixels that are processed together. Their values in a few hundred bands fit into the
/// first-level cache.
inline constexpr int group = 16;

struct SimdKernels {
    /// y: [bands][group]; centres: [count][bands]. Finds for every pixel the centre with the smallest sum of
    /// (y - c)^2, and stores this sum. Among equal sums, the first centre wins.
    void (*nearest)(const double* y, int bands, const double* centres, int count, double* least,
                    int32_t* index);
    /// Finds for every pixel the centre with the greatest sum of y c, and stores this sum. Among equal sums,
    /// the first centre wins.
    void (*most_alike)(const double* y, int bands, const double* centres, int count, double* greatest,
                       int32_t* index);
    /// Computes products[k][i] = sum of x c and squares[i] = sum of x^2 for every pixel i, in single
    /// precision. x: [band][group].
    void (*screen)(const float* x, int bands, const float* centres, int count, float* products,
                   float* squares);
};

const SimdKernels& simd_kernels();

} // namespace hsi::cluster
