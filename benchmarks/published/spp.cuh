// SPDX-License-Identifier: MIT
// The kernels of paper 004 (Delgado et al., section IV), for comparison with ours: 1M-SPP, NM-SPP and NS-SPP,
// and the kernels before and after them. The serial program is in spp.h. All values have single precision,
// and angles are computed by arccos. The paper does not state some details. Here the cube is band-sequential:
// kernels 2 and 4 have one thread per pixel, which gives coalesced reads only in this order. Cosines are
// clipped to [-1, 1]. At the border, weights are normalised over the existing neighbours, so that results can
// be compared. `total` is the sum of beta for each pixel; like beta, it is computed on the CPU.
#pragma once

#include "cuda/check.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace hsi::published {

struct Scene {
    const float* cube; // bands x lines x samples
    int samples, lines, bands;
    __host__ __device__ int pixels() const { return samples * lines; }
};

/// Kernel 1, the centroid: one block per band, with a reduction in shared memory.
__global__ void centroid_kernel(Scene s, float* centroid) {
    __shared__ float sum[1024];
    const float* band = s.cube + static_cast<size_t>(blockIdx.x) * s.pixels();
    float mine = 0;
    for (int i = threadIdx.x; i < s.pixels(); i += blockDim.x)
        mine += band[i];
    sum[threadIdx.x] = mine;
    __syncthreads();
    for (int k = blockDim.x / 2; k > 0; k /= 2) {
        if (threadIdx.x < k) sum[threadIdx.x] += sum[threadIdx.x + k];
        __syncthreads();
    }
    if (threadIdx.x == 0) centroid[blockIdx.x] = sum[0] / static_cast<float>(s.pixels());
}

/// Kernel 2, the norms: one thread per pixel.
__global__ void norm_kernel(Scene s, float* norm) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= s.pixels()) return;
    float sum = 0;
    for (int b = 0; b < s.bands; ++b) {
        const float v = s.cube[static_cast<size_t>(b) * s.pixels() + i];
        sum += v * v;
    }
    norm[i] = sqrtf(sum);
}

/// Adds up delta[0 .. count) for one window. All threads of the block must call this function.
__device__ inline void reduce(float* delta, int count, int at, int power) {
    for (int k = power; k > 0; k /= 2) {
        __syncthreads();
        if (at < k && at + k < count) delta[at] += delta[at + k];
    }
    __syncthreads();
}

__device__ inline float weighted_angle(float dot, float norm_p, float norm_q, float beta) {
    return beta * acosf(fminf(1.0f, fmaxf(-1.0f, dot / (norm_p * norm_q))));
}

/// Kernel 3 of 1M-SPP, alpha: one block per pixel, one thread per neighbour, and the cube in global memory.
__global__ void alpha_1m_kernel(Scene s, const float* norm, const float* beta, const float* total, int ws,
                                int power, float* alpha) {
    extern __shared__ float delta[];
    const int x = blockIdx.x, y = blockIdx.y, l = threadIdx.y * ws + threadIdx.x;
    const int qx = x + static_cast<int>(threadIdx.x) - ws / 2,
              qy = y + static_cast<int>(threadIdx.y) - ws / 2;
    const int p = y * s.samples + x, q = qy * s.samples + qx;
    float value = 0;
    if (qx >= 0 && qx < s.samples && qy >= 0 && qy < s.lines) {
        for (int b = 0; b < s.bands; ++b) {
            const float* band = s.cube + static_cast<size_t>(b) * s.pixels();
            value += band[p] * band[q];
        }
        value = weighted_angle(value, norm[p], norm[q], beta[l]);
    }
    delta[l] = value;
    reduce(delta, ws * ws, l, power);
    if (l == 0) alpha[p] = delta[0] / total[p];
}

/// Kernel 3 of NM-SPP, alpha: floor(Tmax / ws^2) pixels of a line per block. Common neighbours are read from
/// the L1 cache.
__global__ void alpha_nm_kernel(Scene s, const float* norm, const float* beta, const float* total, int ws,
                                int power, float* alpha) {
    extern __shared__ float delta[];
    const int window = ws * ws, which = threadIdx.x / window, l = threadIdx.x % window;
    const int per_block = blockDim.x / window;
    const int x = blockIdx.x * per_block + which, y = blockIdx.y;
    const int qx = x + l % ws - ws / 2, qy = y + l / ws - ws / 2;
    const int p = y * s.samples + x, q = qy * s.samples + qx;
    float value = 0;
    if (x < s.samples && qx >= 0 && qx < s.samples && qy >= 0 && qy < s.lines) {
        for (int b = 0; b < s.bands; ++b) {
            const float* band = s.cube + static_cast<size_t>(b) * s.pixels();
            value += __ldg(band + p) * __ldg(band + q);
        }
        value = weighted_angle(value, norm[p], norm[q], beta[l]);
    }
    float* mine = delta + which * window;
    mine[l] = value;
    reduce(mine, window, l, power);
    if (l == 0 && x < s.samples) alpha[p] = mine[0] / total[p];
}

/// Kernel 3 of NS-SPP, alpha: the same grid as NM-SPP. The block copies its pixels to shared memory, `chunk`
/// bands at a time.
__global__ void alpha_ns_kernel(Scene s, const float* norm, const float* beta, const float* total, int ws,
                                int power, int chunk, float* alpha) {
    extern __shared__ float shared[];
    const int window = ws * ws, which = threadIdx.x / window, l = threadIdx.x % window, d = ws / 2;
    const int per_block = blockDim.x / window, width = per_block + ws - 1, cells = width * ws;
    float* const values = shared + blockDim.x;
    const int x0 = blockIdx.x * per_block, x = x0 + which, y = blockIdx.y;
    const int qx = x + l % ws - d, qy = y + l / ws - d;
    const int p = y * s.samples + x, q = qy * s.samples + qx;
    const bool there = x < s.samples && qx >= 0 && qx < s.samples && qy >= 0 && qy < s.lines;
    float value = 0;
    for (int b = 0; b < s.bands; b += chunk) {
        const int bands = min(chunk, s.bands - b);
        for (int i = threadIdx.x; i < cells * bands; i += blockDim.x) {
            const int cell = i % cells, cx = x0 - d + cell % width, cy = y - d + cell / width;
            const bool inside = cx >= 0 && cx < s.samples && cy >= 0 && cy < s.lines;
            values[i] =
                inside ? s.cube[static_cast<size_t>(b + i / cells) * s.pixels() + cy * s.samples + cx] : 0.0f;
        }
        __syncthreads();
        const float* mine = values + d * width + which + d;
        const float* other = values + l / ws * width + which + l % ws;
        for (int k = 0; k < bands; ++k)
            value += mine[k * cells] * other[k * cells];
        __syncthreads();
    }
    float* delta = shared + which * window;
    delta[l] = there ? weighted_angle(value, norm[p], norm[q], beta[l]) : 0.0f;
    reduce(delta, window, l, power);
    if (l == 0 && x < s.samples) alpha[p] = delta[0] / total[p];
}

/// Kernel 4, the displacement: one thread per pixel.
__global__ void displacement_kernel(Scene s, const float* alpha, const float* centroid, float* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= s.pixels()) return;
    const float root = 1.0f + sqrtf(alpha[i]), scale = 1.0f / (root * root);
    for (int b = 0; b < s.bands; ++b) {
        const size_t at = static_cast<size_t>(b) * s.pixels() + i;
        out[at] = scale * (s.cube[at] - centroid[b]) + centroid[b];
    }
}

enum class Variant { m1, nm, ns };
inline constexpr int max_threads = 1024;

/// Returns the largest power of two below `count`.
inline int below(int count) {
    int p = 1;
    while (2 * p < count)
        p *= 2;
    return p;
}

inline void launch_alpha(Variant variant, const Scene& s, const float* norm, const float* beta,
                         const float* total, int ws, float* alpha, cudaStream_t stream) {
    const int window = ws * ws, power = below(window), pixels = max_threads / window,
              threads = pixels * window;
    const dim3 lines((s.samples + pixels - 1) / pixels, s.lines);
    if (variant == Variant::m1) {
        alpha_1m_kernel<<<dim3(s.samples, s.lines), dim3(ws, ws), window * sizeof(float), stream>>>(
            s, norm, beta, total, ws, power, alpha);
    } else if (variant == Variant::nm) {
        HSI_CUDA_CHECK(cudaFuncSetAttribute(alpha_nm_kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                            cudaSharedmemCarveoutMaxL1));
        alpha_nm_kernel<<<lines, threads, threads * sizeof(float), stream>>>(s, norm, beta, total, ws, power,
                                                                             alpha);
    } else {
        // The paper's GPUs have 48 kB of shared memory per block.
        const int cells = (pixels + ws - 1) * ws;
        const int chunk = std::min(s.bands, (48 * 1024 - threads * 4) / (cells * 4));
        alpha_ns_kernel<<<lines, threads, (threads + static_cast<size_t>(cells) * chunk) * sizeof(float),
                          stream>>>(s, norm, beta, total, ws, power, chunk, alpha);
    }
    HSI_CUDA_LAUNCHED("published alpha kernel");
}

} // namespace hsi::published
