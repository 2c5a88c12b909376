// SPDX-License-Identifier: MIT
// Reduces one value per thread of a block to one value, in a fixed order.
#pragma once

#include <cuda_runtime.h>

#include <cmath>

namespace hsi::cuda {

/// Combines the values of all threads of a block with `fold` in a fixed order, and returns the result to all
/// threads. All threads must call it. Threads: the number of threads of the block, a power of two.
template <int Threads, class F>
__device__ double block_fold(double v, const F& fold) {
    __shared__ double all[Threads];
    __syncthreads();
    all[threadIdx.x] = v;
    for (int half = Threads / 2; half > 0; half /= 2) {
        __syncthreads();
        if (static_cast<int>(threadIdx.x) < half)
            all[threadIdx.x] = fold(all[threadIdx.x], all[threadIdx.x + half]);
    }
    __syncthreads();
    return all[0];
}
template <int Threads>
__device__ double block_sum(double v) {
    return block_fold<Threads>(v, [](double a, double b) { return a + b; });
}
template <int Threads>
__device__ double block_least(double v) {
    return block_fold<Threads>(v, [](double a, double b) { return fmin(a, b); });
}

} // namespace hsi::cuda
