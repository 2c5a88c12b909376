// SPDX-License-Identifier: MIT
#include "pca/moment_cuda_kernels.cuh"

#include "cuda/check.h"
#include "pca/pca_cuda_panels.cuh"

namespace hsi::pca::gpu {
namespace {

// A block of threads a band of a statistics block.
__global__ void moment_sums_kernel(TileView tile, const uint8_t* __restrict__ valid, MomentResults out) {
    const int index = static_cast<int>(blockIdx.x) / tile.bands,
              band = static_cast<int>(blockIdx.x) % tile.bands;
    const Block block = block_of(tile, index);
    const float* const in = tile.data + static_cast<size_t>(band) * tile.band_stride;
    const int pixels = block.w * block.h, stride = static_cast<int>(blockDim.x);
    double total = 0;
    int is_finite = 0, is_valid = 0, is_pair = 0;
    for (int i = static_cast<int>(threadIdx.x); i < pixels; i += stride) {
        const int column = i % block.w, x = block.x + column, y = block.y + i / block.w;
        const float v = in[static_cast<size_t>(y) * tile.line_stride + x];
        is_finite += isfinite(v);
        const uint8_t* const at = valid + static_cast<size_t>(y) * tile.w + x;
        if (*at) {
            total += static_cast<double>(v);
            ++is_valid;
            is_pair += column + 1 < block.w && at[1];
        }
    }
    total = block_total(total);
    is_finite = block_total(is_finite);
    is_valid = block_total(is_valid);
    is_pair = block_total(is_pair);
    const float centre = is_valid > 0 ? static_cast<float>(total / is_valid) : 0.0f;
    double rest = 0;
    for (int i = static_cast<int>(threadIdx.x); i < pixels; i += stride) {
        const int x = block.x + i % block.w, y = block.y + i / block.w;
        if (valid[static_cast<size_t>(y) * tile.w + x])
            rest += static_cast<double>(in[static_cast<size_t>(y) * tile.line_stride + x]) -
                    static_cast<double>(centre);
    }
    rest = block_total(rest);
    if (threadIdx.x == 0) {
        const size_t at = static_cast<size_t>(index) * tile.bands + band;
        out.total[at] = rest;
        out.centre[at] = centre;
        out.finite[at] = is_finite;
        if (band == 0) {
            out.count[index] = is_valid;
            out.pairs[index] = is_pair;
        }
    }
}

// --- products

constexpr int pitch = panel + 2; ///< keeps pairs aligned, and what half a warp stores in different banks

/// Entry i of a thread's four rows (or columns) of a panel: neighbours in twos, which half a warp loads from
/// different banks.
__device__ int entry(int thread, int i) { return 2 * thread + i % 2 + 32 * (i / 2); }

/// One matrix of one statistics block: 4 x 4 entries a thread. The pixels are taken in one order, whatever
/// the tile that the block came in.
template <bool differences>
__device__ void multiply(const TileView& tile, const uint8_t* valid, const Block& block, const float* centre,
                         PanelPair pair, double (*rows)[pitch], double (*columns)[pitch],
                         double* __restrict__ out) {
    const PanelLoader<double, pitch, differences> a{tile, valid, block, centre, pair.row * panel},
        b{tile, valid, block, centre, pair.column * panel};
    const int tx = static_cast<int>(threadIdx.x) % 16, ty = static_cast<int>(threadIdx.x) / 16;
    double sum[4][4] = {};
    typename PanelLoader<double, pitch, differences>::Values next_a, next_b;
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
#pragma unroll 4
        for (int k = 0; k < step; ++k) {
            double u[4], v[4];
#pragma unroll
            for (int i = 0; i < 4; i += 2) {
                const double2 us = *reinterpret_cast<const double2*>(&rows[k][entry(ty, i)]),
                              vs = *reinterpret_cast<const double2*>(&columns[k][entry(tx, i)]);
                u[i] = us.x;
                u[i + 1] = us.y;
                v[i] = vs.x;
                v[i + 1] = vs.y;
            }
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    sum[i][j] = fma(u[i], v[j], sum[i][j]);
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) {
            const int r = pair.row * panel + entry(ty, i), c = pair.column * panel + entry(tx, j);
            if (r < tile.bands && c <= r) out[lower_size(r) + c] = sum[i][j];
        }
}

/// A statistics block and a pair of panels for each block of threads in x; pixels and differences in y.
__global__ void __launch_bounds__(threads)
    moment_products_kernel(TileView tile, const uint8_t* __restrict__ valid, int pairs, MomentResults out) {
    __shared__ __align__(16) double rows[step][pitch], columns[step][pitch];
    const int index = static_cast<int>(blockIdx.x) / pairs;
    const PanelPair pair = panel_pair(static_cast<int>(blockIdx.x) % pairs);
    const Block block = block_of(tile, index);
    const float* const centre = out.centre + static_cast<size_t>(index) * tile.bands;
    const size_t at = static_cast<size_t>(index) * lower_size(tile.bands);
    if (blockIdx.y == 0)
        multiply<false>(tile, valid, block, centre, pair, rows, columns, out.scatter + at);
    else
        multiply<true>(tile, valid, block, centre, pair, rows, columns, out.differences + at);
}

} // namespace

void launch_moments(const TileView& tile, const uint8_t* valid, const MomentResults& out,
                    cudaStream_t stream) {
    const auto blocks = static_cast<unsigned>(block_count(tile));
    moment_sums_kernel<<<blocks* static_cast<unsigned>(tile.bands), threads, 0, stream>>>(tile, valid, out);
    HSI_CUDA_LAUNCHED("moment_sums_kernel");
    const int pairs = panel_pairs(tile.bands);
    moment_products_kernel<<<dim3(blocks * static_cast<unsigned>(pairs), 2), threads, 0, stream>>>(
        tile, valid, pairs, out);
    HSI_CUDA_LAUNCHED("moment_products_kernel");
}

} // namespace hsi::pca::gpu
