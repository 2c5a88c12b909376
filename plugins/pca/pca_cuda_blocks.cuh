// SPDX-License-Identifier: MIT
// Device code that covariance and moments share: where a tile's statistics blocks lie, and sums over a block
// of threads.
#pragma once

#include "pca/pca_cuda_kernels.cuh"

namespace hsi::pca::gpu {

/// The sum over all threads, a multiple of 32 of them, in every thread; in an order that the number of
/// threads alone decides.
template <class T>
__device__ T block_total(T v) {
    __shared__ T part[32];
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    for (int o = 16; o > 0; o /= 2)
        v += __shfl_xor_sync(~0u, v, o);
    __syncthreads();
    if (lane == 0) part[warp] = v;
    __syncthreads();
    v = lane < static_cast<int>(blockDim.x) / 32 ? part[lane] : T(0);
    for (int o = 16; o > 0; o /= 2)
        v += __shfl_xor_sync(~0u, v, o);
    return v;
}

/// One statistics block of a tile.
struct Block {
    int x, y, w, h;
};

inline __device__ Block block_of(const TileView& tile, int index) {
    const int across = (tile.w + block_samples - 1) / block_samples;
    const int x = index % across * block_samples, y = index / across * block_lines;
    return {x, y, min(block_samples, tile.w - x), min(block_lines, tile.h - y)};
}

} // namespace hsi::pca::gpu
