// SPDX-License-Identifier: MIT
#include "core/valid_pixel.h"
#include "cuda/check.h"
#include "pca/pca_cuda_kernels.cuh"
#include "pca/pca_cuda_panels.cuh"

#include <cmath>

namespace hsi::pca::gpu {
namespace {

unsigned blocks_for(size_t n) { return static_cast<unsigned>((n + threads - 1) / threads); }

/// Where pixel p of a tile, counted line by line, lies in a band.
__device__ size_t place(const TileView& tile, int p) {
    return static_cast<size_t>(p / tile.w) * tile.line_stride + static_cast<size_t>(p % tile.w);
}

__global__ void valid_kernel(TileView tile, bool zero_is_invalid, uint8_t* __restrict__ valid) {
    const int p = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (p >= tile.w * tile.h) return;
    const float* const at = tile.data + place(tile, p);
    PixelLook<float> look;
    for (int b = 0; b < tile.bands; ++b)
        look.at(__ldg(at + static_cast<size_t>(b) * tile.band_stride));
    valid[p] = look.is_valid(zero_is_invalid);
}

// A block of threads a band and a statistics block.
__global__ void block_sums_kernel(TileView tile, const uint8_t* __restrict__ valid, BlockResults out) {
    const int band = static_cast<int>(blockIdx.x) % tile.bands,
              index = static_cast<int>(blockIdx.x) / tile.bands;
    const Block block = block_of(tile, index);
    const float* const in = tile.data + static_cast<size_t>(band) * tile.band_stride;
    double total = 0;
    int is_finite = 0, is_valid = 0;
    for (int i = static_cast<int>(threadIdx.x); i < block.w * block.h; i += static_cast<int>(blockDim.x)) {
        const int x = block.x + i % block.w, y = block.y + i / block.w;
        const float v = in[static_cast<size_t>(y) * tile.line_stride + x];
        is_finite += isfinite(v);
        if (valid[y * tile.w + x]) {
            total += static_cast<double>(v);
            ++is_valid;
        }
    }
    total = block_total(total);
    is_finite = block_total(is_finite);
    is_valid = block_total(is_valid);
    if (threadIdx.x == 0) {
        const int at = index * tile.bands + band;
        out.sum[at] = total;
        out.finite[at] = is_finite;
        out.centre[at] = is_valid > 0 ? static_cast<float>(total / is_valid) : 0.0f;
        if (band == 0) out.count[index] = is_valid;
    }
}

// --- products of centred bands

constexpr int batch_pixels = 512; ///< added up in single precision before they join the double
constexpr int pitch = panel + 4;  ///< keeps rows aligned, and what a warp stores in different banks

/// A pair of panels on or below the diagonal and a statistics block for each block of threads, 4 x 4 entries
/// a thread. The pixels of a block are taken in one order, whatever the tile that it came in.
__global__ void __launch_bounds__(threads)
    scatter_kernel(TileView tile, const uint8_t* __restrict__ valid, int pairs, BlockResults out) {
    __shared__ __align__(16) float rows[step][pitch], columns[step][pitch];
    const PanelPair pair = panel_pair(static_cast<int>(blockIdx.x) % pairs);
    const int index = static_cast<int>(blockIdx.x) / pairs;
    const Block block = block_of(tile, index);
    const float* const centre = out.centre + index * tile.bands;
    const PanelLoader<float, pitch, false> a{tile, valid, block, centre, pair.row * panel},
        b{tile, valid, block, centre, pair.column * panel};
    const int tx = static_cast<int>(threadIdx.x) % 16, ty = static_cast<int>(threadIdx.x) / 16;
    double total[4][4] = {};
    float sum[4][4] = {};
    PanelLoader<float, pitch, false>::Values next_a, next_b;
    const int pixels = block.w * block.h;
    a.load(0, next_a);
    b.load(0, next_b);
    for (int first = 0; first < pixels; first += step) {
        a.store(next_a, rows);
        b.store(next_b, columns);
        __syncthreads();
        if (first + step < pixels) {
            a.load(first + step, next_a);
            b.load(first + step, next_b);
        }
#pragma unroll 8
        for (int k = 0; k < step; ++k) {
            const float4 u = *reinterpret_cast<const float4*>(&rows[k][4 * ty]),
                         v = *reinterpret_cast<const float4*>(&columns[k][4 * tx]);
            const float us[4] = {u.x, u.y, u.z, u.w}, vs[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    sum[i][j] = fmaf(us[i], vs[j], sum[i][j]);
        }
        if ((first + step) % batch_pixels == 0 || first + step >= pixels)
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    total[i][j] += static_cast<double>(sum[i][j]);
                    sum[i][j] = 0;
                }
        __syncthreads();
    }
    double* const scatter = out.scatter + static_cast<size_t>(index) * tile.bands * tile.bands;
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) {
            const int r = pair.row * panel + 4 * ty + i, c = pair.column * panel + 4 * tx + j;
            if (r < tile.bands && c < tile.bands)
                scatter[static_cast<size_t>(r) * tile.bands + c] = total[i][j];
        }
}

// --- the transform

constexpr int transform_outputs = 8;

__global__ void transform_kernel(TileView tile, const double* __restrict__ matrix,
                                 const double* __restrict__ offset, int outputs,
                                 const uint8_t* __restrict__ valid, float* __restrict__ out) {
    extern __shared__ double weights[]; // [input][transform_outputs]
    const int first = static_cast<int>(blockIdx.y) * transform_outputs,
              n = min(transform_outputs, outputs - first);
    for (int i = static_cast<int>(threadIdx.x); i < tile.bands * transform_outputs;
         i += static_cast<int>(blockDim.x)) {
        const int o = i % transform_outputs, b = i / transform_outputs;
        weights[i] = o < n ? matrix[static_cast<size_t>(first + o) * tile.bands + b] : 0.0;
    }
    __syncthreads();
    const int p = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), pixels = tile.w * tile.h;
    if (p >= pixels) return;
    const float* const at = tile.data + place(tile, p);
    double sum[transform_outputs];
#pragma unroll
    for (int o = 0; o < transform_outputs; ++o)
        sum[o] = o < n ? offset[first + o] : 0.0;
#pragma unroll 4
    for (int b = 0; b < tile.bands; ++b) {
        const auto x = static_cast<double>(__ldg(at + static_cast<size_t>(b) * tile.band_stride));
#pragma unroll
        for (int o = 0; o < transform_outputs; ++o)
            sum[o] = fma(weights[b * transform_outputs + o], x, sum[o]);
    }
    const bool ok = valid[p] != 0;
    for (int o = 0; o < n; ++o)
        out[static_cast<size_t>(first + o) * pixels + p] = ok ? static_cast<float>(sum[o]) : nanf("");
}

} // namespace

int block_count(const TileView& tile) {
    return ((tile.w + block_samples - 1) / block_samples) * ((tile.h + block_lines - 1) / block_lines);
}

void launch_valid(const TileView& tile, bool zero_is_invalid, uint8_t* valid, cudaStream_t stream) {
    valid_kernel<<<blocks_for(static_cast<size_t>(tile.w) * static_cast<size_t>(tile.h)), threads, 0,
                   stream>>>(tile, zero_is_invalid, valid);
    HSI_CUDA_LAUNCHED("valid_kernel");
}

void launch_covariance(const TileView& tile, const uint8_t* valid, const BlockResults& out,
                       cudaStream_t stream) {
    const auto blocks = static_cast<unsigned>(block_count(tile));
    block_sums_kernel<<<blocks* static_cast<unsigned>(tile.bands), threads, 0, stream>>>(tile, valid, out);
    HSI_CUDA_LAUNCHED("block_sums_kernel");
    const int pairs = panel_pairs(tile.bands);
    scatter_kernel<<<blocks* static_cast<unsigned>(pairs), threads, 0, stream>>>(tile, valid, pairs, out);
    HSI_CUDA_LAUNCHED("scatter_kernel");
}

void launch_transform(const TileView& tile, const double* matrix, const double* offset, int outputs,
                      const uint8_t* valid, float* out, cudaStream_t stream) {
    const size_t shared = static_cast<size_t>(tile.bands) * transform_outputs * sizeof(double);
    HSI_CUDA_CHECK(cudaFuncSetAttribute(transform_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(shared)));
    transform_kernel<<<dim3(blocks_for(static_cast<size_t>(tile.w) * static_cast<size_t>(tile.h)),
                            static_cast<unsigned>((outputs + transform_outputs - 1) / transform_outputs)),
                       threads, shared, stream>>>(tile, matrix, offset, outputs, valid, out);
    HSI_CUDA_LAUNCHED("transform_kernel");
}

} // namespace hsi::pca::gpu
