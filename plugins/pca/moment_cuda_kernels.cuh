// SPDX-License-Identifier: MIT
// The moments of a tile's statistics blocks, in double precision: of pixels and of differences of neighbours.
#pragma once

#include "pca/pca_cuda_kernels.cuh"

namespace hsi::pca::gpu {

/// Entries of a matrix on and below its diagonal; (a, b), b <= a, is at a (a+1)/2 + b.
__host__ __device__ constexpr size_t lower_size(int n) {
    return static_cast<size_t>(n) * (static_cast<size_t>(n) + 1) / 2;
}

/// What a tile's blocks say, one block after another. A pair is a pixel with its right neighbour in the same
/// block, both valid.
struct MomentResults {
    double* scatter = nullptr; ///< lower_size(bands) each: sum of (x_a - c_a)(x_b - c_b) of the valid pixels
    double* differences = nullptr; ///< as many: sum of d_a d_b of the pairs
    double* total = nullptr;       ///< a band each: sum of x - c
    float* centre = nullptr;       ///< a band each: c, the mean in single precision
    int* finite = nullptr;         ///< a band each: pixels with a finite value
    int* count = nullptr;          ///< one each: valid pixels
    int* pairs = nullptr;          ///< one each
};

/// Centres and sums first, then products. What comes out for a block depends on its pixels alone.
void launch_moments(const TileView& tile, const uint8_t* valid, const MomentResults& out,
                    cudaStream_t stream);

} // namespace hsi::pca::gpu
