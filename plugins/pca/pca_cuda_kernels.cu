// SPDX-License-Identifier: MIT
#include "core/valid_pixel.h"
#include "cuda/check.h"
#include "pca/pca_cuda_kernels.cuh"

#include <cmath>

namespace hsi::pca::gpu {
namespace {

constexpr int pixel_threads = 256; ///< threads per block, in kernels over pixels

unsigned blocks_for(size_t n) { return static_cast<unsigned>((n + pixel_threads - 1) / pixel_threads); }

/// Returns the offset in a band of pixel p of a tile. Pixels are counted line by line.
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

void launch_valid(const TileView& tile, bool zero_is_invalid, uint8_t* valid, cudaStream_t stream) {
    valid_kernel<<<blocks_for(static_cast<size_t>(tile.w) * static_cast<size_t>(tile.h)), pixel_threads, 0,
                   stream>>>(tile, zero_is_invalid, valid);
    HSI_CUDA_LAUNCHED("valid_kernel");
}

void launch_transform(const TileView& tile, const double* matrix, const double* offset, int outputs,
                      const uint8_t* valid, float* out, cudaStream_t stream) {
    const size_t shared = static_cast<size_t>(tile.bands) * transform_outputs * sizeof(double);
    HSI_CUDA_CHECK(cudaFuncSetAttribute(transform_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(shared)));
    transform_kernel<<<dim3(blocks_for(static_cast<size_t>(tile.w) * static_cast<size_t>(tile.h)),
                            static_cast<unsigned>((outputs + transform_outputs - 1) / transform_outputs)),
                       pixel_threads, shared, stream>>>(tile, matrix, offset, outputs, valid, out);
    HSI_CUDA_LAUNCHED("transform_kernel");
}

} // namespace hsi::pca::gpu
