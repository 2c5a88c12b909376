// SPDX-License-Identifier: MIT
// Packs the pixels of groups of columns (stream/column_strips.h) next to each other on a device.
#pragma once

#include "cuda/check.h"

#include <cuda_runtime.h>

#include <cstdint>

namespace hsi::cuda {

/// The destination of the pixels of one sample (image column): line y of band b goes to [at + b * pitch + y *
/// width].
struct SamplePlace {
    int64_t at = -1; ///< -1: the sample is not copied
    int width = 1;   ///< number of samples in the sample's group
};

inline constexpr int pack_block = 32, pack_threads = 256;

/// Transposes blocks of lines and samples in shared memory.
static __global__ void __launch_bounds__(pack_threads)
    pack_column_blocks(const float* __restrict__ raw, int64_t lines, int64_t samples,
                       const SamplePlace* __restrict__ places, int64_t pitch, float* __restrict__ to) {
    __shared__ float part[pack_block][pack_block + 1];
    const int b = static_cast<int>(blockIdx.z);
    const int64_t s0 = static_cast<int64_t>(blockIdx.x) * pack_block,
                  y0 = static_cast<int64_t>(blockIdx.y) * pack_block;
    const int lane = static_cast<int>(threadIdx.x) % pack_block,
              row = static_cast<int>(threadIdx.x) / pack_block;
    for (int r = row; r < pack_block; r += pack_threads / pack_block)
        if (s0 + lane < samples && y0 + r < lines)
            part[r][lane] = raw[(b * lines + y0 + r) * samples + s0 + lane];
    __syncthreads();
    for (int r = row; r < pack_block; r += pack_threads / pack_block) {
        const int64_t s = s0 + r, y = y0 + lane;
        if (s >= samples || y >= lines) continue;
        const SamplePlace place = places[s];
        if (place.at >= 0) to[place.at + b * pitch + y * place.width] = part[lane][r];
    }
}

/// Copies the columns of `raw` ([band][line][sample]) to `to`, as `places` specifies. `places` is in device
/// memory and has one entry per sample. `pitch`: number of floats from one band to the next in `to`.
inline void pack_columns(const float* raw, int bands, int64_t lines, int64_t samples,
                         const SamplePlace* places, int64_t pitch, float* to, cudaStream_t stream) {
    const auto parts = [](int64_t n) { return static_cast<unsigned>((n + pack_block - 1) / pack_block); };
    pack_column_blocks<<<dim3(parts(samples), parts(lines), static_cast<unsigned>(bands)), pack_threads, 0,
                         stream>>>(raw, lines, samples, places, pitch, to);
    HSI_CUDA_LAUNCHED("pack_column_blocks");
}

} // namespace hsi::cuda
