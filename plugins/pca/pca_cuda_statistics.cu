// SPDX-License-Identifier: MIT
// Computes sums, centres and products of the statistics blocks of a tile.
#include "cuda/check.h"
#include "pca/pca_cuda_kernels.cuh"

namespace hsi::pca::gpu {
namespace {

constexpr int statistics_threads = 256; ///< threads per block, in kernels over statistics blocks

/// Returns the sum over all threads to every thread. The number of threads must be a multiple of 32. The
/// order of additions depends only on this number.
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

__device__ Block block_of(const TileView& tile, int index) {
    const int across = (tile.w + block_samples - 1) / block_samples;
    const int x = index % across * block_samples, y = index / across * block_lines;
    return {x, y, min(block_samples, tile.w - x), min(block_lines, tile.h - y)};
}

// Centres and sums
// ----------------------------------------------------------------------------------------------------------

/// Each block of threads computes one band of a statistics block.
template <bool differences>
__global__ void sums_kernel(TileView tile, const uint8_t* __restrict__ valid, BlockResults out) {
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
            if (differences) is_pair += column + 1 < block.w && at[1];
        }
    }
    total = block_total(total);
    is_finite = block_total(is_finite);
    is_valid = block_total(is_valid);
    const float centre = is_valid > 0 ? static_cast<float>(total / is_valid) : 0.0f;
    if (differences) {
        is_pair = block_total(is_pair);
        double rest = 0;
        for (int i = static_cast<int>(threadIdx.x); i < pixels; i += stride) {
            const int x = block.x + i % block.w, y = block.y + i / block.w;
            if (valid[static_cast<size_t>(y) * tile.w + x])
                rest += static_cast<double>(in[static_cast<size_t>(y) * tile.line_stride + x]) -
                        static_cast<double>(centre);
        }
        total = block_total(rest);
    }
    if (threadIdx.x != 0) return;
    const size_t at = static_cast<size_t>(index) * tile.bands + band;
    out.sum[at] = total;
    out.centre[at] = centre;
    out.finite[at] = is_finite;
    if (band != 0) return;
    out.count[index] = is_valid;
    if (differences) out.pairs[index] = is_pair;
}

// Panels of bands: a block of threads multiplies the bands of one panel by the bands of another panel. Some
// pixels at a time are in shared memory. The pixels of a statistics block are processed in the same order for
// any division into tiles.
// ----------------------------------------------------------------------------------------------------------

constexpr int panel = 64; ///< number of bands in a panel
constexpr int step = 32;  ///< number of pixels in shared memory at a time

/// Returns the number of pairs of panels on or below the diagonal.
int panel_pairs(int bands) {
    const int panels = (bands + panel - 1) / panel;
    return panels * (panels + 1) / 2;
}

/// A pair of panels on or below the diagonal.
struct PanelPair {
    int row, column;
};
__device__ PanelPair panel_pair(int number) {
    PanelPair pair{0, number};
    while (pair.column > pair.row)
        pair.column -= ++pair.row;
    return pair;
}

/// Loads `step` pixels of a panel's bands; values are zero where pixels are invalid or outside. Thread t
/// loads pixels t % 8 + 8 g of the bands 4 (t / 32) + (t / 8) % 4 + 32 h. With `differences`, the loader
/// subtracts the pixel from its right neighbour. Otherwise it subtracts the band's centre from the pixel. T
/// is the type of the difference and of shared memory; `pitch` is the length of its rows.
template <class T, int pitch, bool differences>
struct PanelLoader {
    static constexpr int loads = panel * step / statistics_threads;
    using Values = T[loads];

    const TileView& tile;
    const uint8_t* valid;
    const Block& block;
    const float* centre;
    int first_band;

    __device__ int band(int h) const {
        return first_band + 32 * h + static_cast<int>(threadIdx.x) / 32 * 4 +
               static_cast<int>(threadIdx.x) / 8 % 4;
    }
    __device__ void load(int first, Values& out) const {
#pragma unroll
        for (int g = 0; g < step / 8; ++g) {
            const int i = first + 8 * g + static_cast<int>(threadIdx.x) % 8;
            const int column = i % block.w, x = block.x + column, y = block.y + i / block.w;
            const size_t pixel = static_cast<size_t>(y) * tile.w + x,
                         at = static_cast<size_t>(y) * tile.line_stride + x;
            bool in = i < block.w * block.h && valid[pixel] != 0;
            if (differences) in = in && column + 1 < block.w && valid[pixel + 1] != 0;
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const int b = band(h);
                T v = 0;
                if (in && b < tile.bands) {
                    const float* const value = tile.data + static_cast<size_t>(b) * tile.band_stride + at;
                    const T here = static_cast<T>(__ldg(value));
                    v = differences ? static_cast<T>(__ldg(value + 1)) - here
                                    : here - static_cast<T>(centre[b]);
                }
                out[2 * g + h] = v;
            }
        }
    }
    __device__ void store(const Values& values, T (*rows)[pitch]) const {
#pragma unroll
        for (int g = 0; g < step / 8; ++g)
#pragma unroll
            for (int h = 0; h < 2; ++h)
                rows[8 * g + static_cast<int>(threadIdx.x) % 8][band(h) - first_band] = values[2 * g + h];
    }
};

namespace single {

/// Pixels whose products are added in single precision, before their sum is added to the double.
constexpr int batch_pixels = 512;
/// This pitch aligns the rows, and puts the values that a warp stores into different banks.
constexpr int pitch = panel + 4;

/// Each block of threads computes one pair of panels of a statistics block, on or below the diagonal. Each
/// thread computes 4 x 4 entries.
__global__ void __launch_bounds__(statistics_threads)
    products_kernel(TileView tile, const uint8_t* __restrict__ valid, int pairs, BlockResults out) {
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
    double* const scatter = out.scatter + static_cast<size_t>(index) * lower_size(tile.bands);
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) {
            const int r = pair.row * panel + 4 * ty + i, c = pair.column * panel + 4 * tx + j;
            if (r < tile.bands && c <= r) scatter[lower_size(r) + c] = total[i][j];
        }
}

} // namespace single

namespace twofold {

/// This pitch aligns pairs of values, and puts the values that half a warp stores into different banks.
constexpr int pitch = panel + 2;

/// Returns the position of entry i of a thread's four rows (or columns) in a panel. The entries are pairs of
/// neighbours, which half a warp loads from different banks.
__device__ int entry(int thread, int i) { return 2 * thread + i % 2 + 32 * (i / 2); }

/// Computes one matrix of one statistics block. Each thread computes 4 x 4 entries.
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

/// Each block of threads computes a pair of panels of a statistics block (blockIdx.x), for pixels or for
/// differences (blockIdx.y).
__global__ void __launch_bounds__(statistics_threads)
    products_kernel(TileView tile, const uint8_t* __restrict__ valid, int pairs, BlockResults out) {
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

} // namespace twofold
} // namespace

int block_count(const TileView& tile) {
    return ((tile.w + block_samples - 1) / block_samples) * ((tile.h + block_lines - 1) / block_lines);
}

void launch_statistics(const TileView& tile, const uint8_t* valid, const BlockResults& out,
                       cudaStream_t stream) {
    const auto blocks = static_cast<unsigned>(block_count(tile)), bands = static_cast<unsigned>(tile.bands);
    const int pairs = panel_pairs(tile.bands);
    const auto panels = blocks * static_cast<unsigned>(pairs);
    if (out.differences != nullptr) {
        sums_kernel<true><<<blocks * bands, statistics_threads, 0, stream>>>(tile, valid, out);
        HSI_CUDA_LAUNCHED("sums_kernel<true>");
        twofold::products_kernel<<<dim3(panels, 2), statistics_threads, 0, stream>>>(tile, valid, pairs, out);
        HSI_CUDA_LAUNCHED("twofold::products_kernel");
    } else {
        sums_kernel<false><<<blocks * bands, statistics_threads, 0, stream>>>(tile, valid, out);
        HSI_CUDA_LAUNCHED("sums_kernel<false>");
        if (out.scatter == nullptr) return;
        single::products_kernel<<<panels, statistics_threads, 0, stream>>>(tile, valid, pairs, out);
        HSI_CUDA_LAUNCHED("single::products_kernel");
    }
}

} // namespace hsi::pca::gpu
