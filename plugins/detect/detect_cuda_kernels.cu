// SPDX-License-Identifier: MIT
#include "detect/detect_cuda_kernels.cuh"

#include "cuda/check.h"

namespace hsi::detect::gpu {
namespace {

constexpr int threads = 128;

__device__ int thread_pixel() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }

/// Finds the best score of each plane (blockIdx.y). Better scores have greater integers.
__global__ void best_kernel(const float* __restrict__ scores, int pixels, Tally tally) {
    unsigned best = 0;
    for (int p = thread_pixel(); p < pixels; p += static_cast<int>(gridDim.x * blockDim.x)) {
        const float score = scores[static_cast<size_t>(blockIdx.y) * static_cast<size_t>(pixels) + p];
        if (isnan(score)) continue;
        const unsigned bits = __float_as_uint(score),
                       rising = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
        best = max(best, tally.small_is_best ? ~rising : rising);
    }
    for (int o = 16; o > 0; o /= 2)
        best = max(best, __shfl_xor_sync(~0u, best, o));
    if (threadIdx.x % 32 == 0 && best != 0) atomicMax(tally.best + blockIdx.y, best);
}

constexpr int most_shared_targets = 1024;

__global__ void map_kernel(const float* __restrict__ map, int targets, int pixels, Tally tally) {
    __shared__ unsigned counts[most_shared_targets + 1];
    const bool shared = targets <= most_shared_targets;
    for (int k = static_cast<int>(threadIdx.x); shared && k <= targets; k += static_cast<int>(blockDim.x))
        counts[k] = 0;
    __syncthreads();
    const auto add = [&](int k) {
        if (shared)
            atomicAdd(counts + k, 1u);
        else
            atomicAdd(tally.mapped + k, 1ull);
    };
    for (int p = thread_pixel(); p < pixels; p += static_cast<int>(gridDim.x * blockDim.x)) {
        const float target = map[p];
        if (isnan(target)) continue;
        add(targets);
        if (target > 0) add(static_cast<int>(target) - 1);
    }
    __syncthreads();
    for (int k = static_cast<int>(threadIdx.x); shared && k <= targets; k += static_cast<int>(blockDim.x))
        if (counts[k] > 0) atomicAdd(tally.mapped + k, static_cast<unsigned long long>(counts[k]));
}

} // namespace

void launch_tally(const float* scores, const float* map, int targets, int pixels, const Tally& tally,
                  cudaStream_t stream) {
    const unsigned all = (static_cast<unsigned>(pixels) + threads - 1) / threads, blocks = min(all, 256u);
    constexpr int most = 65535; // the most blocks of a grid along y
    for (int k = 0; k < targets; k += most) {
        Tally part = tally;
        part.best += k;
        best_kernel<<<dim3(blocks, static_cast<unsigned>(min(most, targets - k))), threads, 0, stream>>>(
            scores + static_cast<size_t>(k) * static_cast<size_t>(pixels), pixels, part);
        HSI_CUDA_LAUNCHED("best_kernel");
    }
    if (map == nullptr) return;
    map_kernel<<<blocks, threads, 0, stream>>>(map, targets, pixels, tally);
    HSI_CUDA_LAUNCHED("map_kernel");
}

} // namespace hsi::detect::gpu
