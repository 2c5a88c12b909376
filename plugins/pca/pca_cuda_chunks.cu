// SPDX-License-Identifier: MIT
// Computes the covariance of stream::Statistics::double_covariance with the CPU's operations in the CPU's
// order (stream/statistics_scan.cpp, stream/scatter-inl.h, stream/pixel_run-inl.h). All results that depend
// on it are therefore bitwise equal to the CPU's.
#include "core/valid_pixel.h"
#include "cuda/check.h"
#include "pca/pca_cuda_kernels.cuh"

#include <cmath>

namespace hsi::pca::gpu {
namespace {

/// Pixels whose products are summed before they are added to the sums of their block.
constexpr int chunk = 192;
constexpr int most_chunks = (block_samples * block_lines + chunk - 1) / chunk; ///< chunks per block
constexpr int parts = 8; ///< number of sums over which a chunk's pixels are distributed
constexpr int part_pixels = chunk / parts;
constexpr int stretch = 16; ///< number of sums over which the values of a line are distributed
enum Seen : uint8_t { invalid, valid, valid_by_values };

/// One statistics block of a tile. Its pixels are counted line by line.
struct ChunkBlock {
    int x, y, w, h;
    __device__ ChunkBlock(const TileView& tile, int index) {
        const int across = (tile.w + block_samples - 1) / block_samples;
        x = index % across * block_samples;
        y = index / across * block_lines;
        w = min(block_samples, tile.w - x);
        h = min(block_lines, tile.h - y);
    }
    __device__ int pixels() const { return w * h; }
    __device__ size_t line_of(int i) const { return static_cast<size_t>(y + i / w); }
    __device__ size_t sample_of(int i) const { return static_cast<size_t>(x + i % w); }
};

/// The intermediate results of chunks. Each block has room for most_chunks chunks.
struct Chunks {
    double* sum;   ///< sum of the valid pixels, one per band
    float* centre; ///< one per band
    int* count;    ///< number of valid pixels
    uint8_t* seen; ///< one Seen value per pixel of the tile

    __host__ __device__ static size_t places(size_t blocks) { return blocks * most_chunks; }
    __host__ Chunks(unsigned char* scratch, size_t bands, size_t blocks)
        : sum(reinterpret_cast<double*>(scratch)),
          centre(reinterpret_cast<float*>(sum + places(blocks) * bands)),
          count(reinterpret_cast<int*>(centre + places(blocks) * bands)),
          seen(reinterpret_cast<uint8_t*>(count + places(blocks))) {}
    static size_t bytes(size_t bands, size_t blocks, size_t pixels) {
        return places(blocks) * (bands * 12 + 4) + pixels;
    }
};

/// Sets `seen` of each pixel, one pixel per thread. Magnitudes are added in single precision.
__global__ void seen_kernel(TileView tile, uint8_t* __restrict__ seen) {
    const int p = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (p >= tile.w * tile.h) return;
    const float* const at = tile.data + static_cast<size_t>(p / tile.w) * tile.line_stride + p % tile.w;
    float magnitude = 0;
    PixelLook<float> look;
    for (int b = 0; b < tile.bands; ++b) {
        const float v = __ldg(at + static_cast<size_t>(b) * tile.band_stride);
        magnitude = __fadd_rn(magnitude, fabsf(v));
        look.at(v);
    }
    seen[p] = is_valid_sum(magnitude)               ? valid
              : isinf(magnitude) && look.is_valid() ? valid_by_values
                                                    : invalid;
}

/// Computes sums, centres and finite values; the threads of band 0 also count valid pixels. Each band of a
/// chunk has 16 threads. blockIdx.x selects a chunk, blockIdx.y a group of bands.
__global__ void chunks_kernel(TileView tile, Chunks chunks, int* __restrict__ finite_of) {
    const int number = static_cast<int>(blockIdx.x) % most_chunks,
              index = static_cast<int>(blockIdx.x) / most_chunks;
    const ChunkBlock block(tile, index);
    const int first = number * chunk, pixels = min(chunk, block.pixels() - first);
    if (pixels <= 0) return;
    __shared__ int valid_pixels, plain_pixels;
    if (threadIdx.x == 0) valid_pixels = plain_pixels = 0;
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < pixels; i += static_cast<int>(blockDim.x)) {
        const uint8_t seen = chunks.seen[block.line_of(first + i) * tile.w + block.sample_of(first + i)];
        if (seen != invalid) atomicAdd(&valid_pixels, 1);
        if (seen == valid) atomicAdd(&plain_pixels, 1);
    }
    __syncthreads();
    const size_t place = static_cast<size_t>(index) * most_chunks + number;
    if (threadIdx.x == 0 && blockIdx.y == 0) chunks.count[place] = valid_pixels;
    const int lane = static_cast<int>(threadIdx.x) % stretch,
              band = static_cast<int>(blockIdx.y * (blockDim.x / stretch) + threadIdx.x / stretch);
    const bool there = band < tile.bands;
    const float* const values = tile.data + static_cast<size_t>(there ? band : 0) * tile.band_stride;
    const auto value = [&](int i) {
        return values[block.line_of(first + i) * tile.line_stride + block.sample_of(first + i)];
    };
    double sum = 0, rest = 0;
    int finite = 0;
    for (int i = lane; i < pixels; i += stretch)
        finite += isfinite(value(i));
    for (int o = stretch / 2; o > 0; o /= 2)
        finite += __shfl_down_sync(~0u, finite, o, stretch);
    if (plain_pixels == pixels) {
        // The values of a line are added in groups of sixteen, one value per lane. The remaining values are
        // added separately, one after the other.
        for (int i = 0; i < pixels;) {
            const int n = min(block.w - (first + i) % block.w, pixels - i);
            int k = 0;
            for (; k + stretch <= n; k += stretch)
                sum = __dadd_rn(sum, static_cast<double>(value(i + k + lane)));
            if (lane == 0)
                for (; k < n; ++k)
                    rest = __dadd_rn(rest, static_cast<double>(value(i + k)));
            i += n;
        }
        for (int half = stretch / 2; half > 0; half /= 2)
            sum = __dadd_rn(sum, __shfl_down_sync(~0u, sum, half, stretch));
        sum = __dadd_rn(sum, rest);
    } else if (lane == 0) {
        for (int i = 0; i < pixels; ++i)
            if (chunks.seen[block.line_of(first + i) * tile.w + block.sample_of(first + i)] != invalid)
                sum = __dadd_rn(sum, static_cast<double>(value(i)));
    }
    if (!there || lane != 0) return;
    chunks.sum[place * tile.bands + band] = sum;
    chunks.centre[place * tile.bands + band] =
        valid_pixels > 0 ? static_cast<float>(sum / static_cast<double>(valid_pixels)) : 0.0f;
    atomicAdd(finite_of + static_cast<size_t>(index) * tile.bands + band, finite);
}

/// Computes the centre and the sum of a band of a block, one band per thread. The thread of band 0 also
/// computes the count.
__global__ void blocks_kernel(TileView tile, Chunks chunks, BlockResults out) {
    const int b = static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x);
    if (b >= tile.bands) return;
    const auto index = static_cast<int>(blockIdx.x);
    const ChunkBlock block(tile, index);
    double sum = 0;
    float centre = 0;
    int count = 0;
    for (int c = 0; c * chunk < block.pixels(); ++c) {
        const size_t place = static_cast<size_t>(index) * most_chunks + c;
        if (chunks.count[place] == 0) continue;
        if (count == 0) centre = chunks.centre[place * tile.bands + b];
        count += chunks.count[place];
        sum = __dadd_rn(sum, chunks.sum[place * tile.bands + b]);
    }
    const size_t at = static_cast<size_t>(index) * tile.bands + b;
    out.sum[at] = sum;
    out.centre[at] = centre;
    if (b == 0) out.count[index] = count;
}

constexpr int chunk_panel = 64;    ///< bands of one panel
constexpr int chunk_threads = 512; ///< 16 x 32 threads with 4 x 2 entries per thread
constexpr int chunk_pitch = chunk_panel + 2;

/// A chunk in the shared memory of a block of threads. Index 0 is the panel of the rows, index 1 the panel of
/// the columns.
struct PanelMemory {
    float raw[2][chunk_panel][chunk + 1];
    double values[2][part_pixels][chunk_pitch]; ///< values of one part of the chunk, minus the centres
    double offset[2][chunk_panel], rest[2][chunk_panel], total[2][chunk_panel];
    float centre[2][chunk_panel];
    long long places[chunk]; ///< positions of the pixels in a band; -1 for excluded pixels
};

/// Each block of threads computes one pair of panels of one statistics block. Pairs are on or below the
/// diagonal.
__global__ void __launch_bounds__(chunk_threads)
    chunk_products_kernel(TileView tile, Chunks chunks, int pairs, BlockResults out) {
    extern __shared__ __align__(16) unsigned char memory[];
    PanelMemory& m = *reinterpret_cast<PanelMemory*>(memory);
    const auto thread = static_cast<int>(threadIdx.x);
    int row_panel = 0, column_panel = static_cast<int>(blockIdx.x) % pairs;
    while (column_panel > row_panel)
        column_panel -= ++row_panel;
    const int index = static_cast<int>(blockIdx.x) / pairs,
              side_band[2] = {row_panel * chunk_panel, column_panel * chunk_panel};
    const ChunkBlock block(tile, index);
    // The thread computes 4 rows from 4 ty on and 2 columns from 2 tx on.
    const int ty = thread / 32, tx = thread % 32;
    double total[4][2] = {};
    for (int c = 0; c * chunk < block.pixels(); ++c) {
        const size_t place = static_cast<size_t>(index) * most_chunks + c;
        const int count = chunks.count[place];
        if (count == 0) continue;
        __syncthreads(); // The previous chunk must be finished.
        const int first = c * chunk, pixels = min(chunk, block.pixels() - first);
        if (thread < chunk) {
            long long at = -1;
            if (thread < pixels) {
                const size_t line = block.line_of(first + thread), sample = block.sample_of(first + thread);
                if (chunks.seen[line * tile.w + sample] != invalid)
                    at = static_cast<long long>(line * tile.line_stride + sample);
            }
            m.places[thread] = at;
        }
        if (thread >= chunk_threads - 2 * chunk_panel) {
            const int side = (thread - (chunk_threads - 2 * chunk_panel)) / chunk_panel,
                      k = thread % chunk_panel, b = side_band[side] + k;
            const bool there = b < tile.bands;
            const double sum = there ? chunks.sum[place * tile.bands + b] : 0;
            const float centre = there ? chunks.centre[place * tile.bands + b] : 0;
            const auto n = static_cast<double>(count), own = static_cast<double>(centre),
                       of_block =
                           there
                               ? static_cast<double>(out.centre[static_cast<size_t>(index) * tile.bands + b])
                               : 0;
            m.centre[side][k] = centre;
            m.offset[side][k] = __dsub_rn(own, of_block);
            m.rest[side][k] = __dsub_rn(sum, __dmul_rn(n, own));
            m.total[side][k] = __dsub_rn(sum, __dmul_rn(n, of_block));
        }
        __syncthreads();
        for (int k = thread; k < 2 * chunk_panel * chunk; k += chunk_threads) {
            const int side = k / (chunk_panel * chunk), band = k / chunk % chunk_panel, i = k % chunk;
            const long long at = m.places[i];
            const int b = side_band[side] + band;
            m.raw[side][band][i] = at >= 0 && b < tile.bands
                                       ? __ldg(tile.data + static_cast<size_t>(b) * tile.band_stride + at)
                                       : 0.0f;
        }
        double sum[4][2], kept[4][2], pair_sum[4][2], all[4][2]; // sums of the addition tree below
        constexpr int order[parts] = {0, 4, 1, 5, 2, 6, 3, 7};
#pragma unroll
        for (int step = 0; step < parts; ++step) {
            const int part = order[step];
            __syncthreads();
            for (int k = thread; k < 2 * chunk_panel * part_pixels; k += chunk_threads) {
                const int side = k / (chunk_panel * part_pixels), i = k / chunk_panel % part_pixels,
                          band = k % chunk_panel;
                m.values[side][i][band] =
                    m.places[part + parts * i] >= 0 && side_band[side] + band < tile.bands
                        ? __dsub_rn(static_cast<double>(m.raw[side][band][part + parts * i]),
                                    static_cast<double>(m.centre[side][band]))
                        : 0.0;
            }
            __syncthreads();
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 2; ++j)
                    sum[i][j] = 0;
#pragma unroll 4
            for (int k = 0; k < part_pixels; ++k) {
                const double2 u0 = *reinterpret_cast<const double2*>(&m.values[0][k][4 * ty]),
                              u1 = *reinterpret_cast<const double2*>(&m.values[0][k][4 * ty + 2]),
                              v = *reinterpret_cast<const double2*>(&m.values[1][k][2 * tx]);
                const double us[4] = {u0.x, u0.y, u1.x, u1.y}, vs[2] = {v.x, v.y};
#pragma unroll
                for (int i = 0; i < 4; ++i)
#pragma unroll
                    for (int j = 0; j < 2; ++j)
                        sum[i][j] = __fma_rn(us[i], vs[j], sum[i][j]);
            }
            // The order of additions is ((s0 + s4) + (s1 + s5)) + ((s2 + s6) + (s3 + s7)).
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 2; ++j) {
                    if (step % 2 == 0)
                        kept[i][j] = sum[i][j];
                    else
                        kept[i][j] = __dadd_rn(kept[i][j], sum[i][j]);
                    if (step % 4 == 1) pair_sum[i][j] = kept[i][j];
                    if (step % 4 == 3) pair_sum[i][j] = __dadd_rn(pair_sum[i][j], kept[i][j]);
                    if (step == 3) all[i][j] = pair_sum[i][j];
                    if (step == 7) all[i][j] = __dadd_rn(all[i][j], pair_sum[i][j]);
                }
        }
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                const int r = 4 * ty + i, k = 2 * tx + j;
                double shifted = __fma_rn(m.offset[0][r], m.total[1][k], all[i][j]);
                shifted = __fma_rn(m.rest[0][r], m.offset[1][k], shifted);
                total[i][j] = __dadd_rn(total[i][j], shifted);
            }
    }
    double* const scatter = out.scatter + static_cast<size_t>(index) * lower_size(tile.bands);
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 2; ++j) {
            const int r = side_band[0] + 4 * ty + i, k = side_band[1] + 2 * tx + j;
            if (r < tile.bands && k <= r) scatter[lower_size(r) + k] = total[i][j];
        }
}

} // namespace

bool has_chunked_statistics(int ordinal) {
    int most = 0;
    HSI_CUDA_CHECK(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, ordinal));
    return most >= static_cast<int>(sizeof(PanelMemory));
}

size_t chunked_scratch(int bands, size_t blocks, size_t pixels) {
    return Chunks::bytes(static_cast<size_t>(bands), blocks, pixels);
}

void launch_chunked_statistics(const TileView& tile, unsigned char* scratch, const BlockResults& out,
                               cudaStream_t stream) {
    const auto blocks = static_cast<unsigned>(block_count(tile)), bands = static_cast<unsigned>(tile.bands);
    const Chunks chunks(scratch, bands, blocks);
    constexpr unsigned wide = 256;
    const auto groups = [](unsigned n, unsigned of) { return (n + of - 1) / of; };
    seen_kernel<<<groups(static_cast<unsigned>(tile.w * tile.h), wide), wide, 0, stream>>>(tile, chunks.seen);
    HSI_CUDA_LAUNCHED("seen_kernel");
    HSI_CUDA_CHECK(cudaMemsetAsync(out.finite, 0, size_t{blocks} * bands * sizeof(int), stream));
    chunks_kernel<<<dim3(blocks * most_chunks, groups(bands, wide / stretch)), wide, 0, stream>>>(
        tile, chunks, out.finite);
    HSI_CUDA_LAUNCHED("chunks_kernel");
    blocks_kernel<<<dim3(blocks, groups(bands, 64)), 64, 0, stream>>>(tile, chunks, out);
    HSI_CUDA_LAUNCHED("blocks_kernel");
    const unsigned panels = groups(bands, chunk_panel), pairs = panels * (panels + 1) / 2;
    HSI_CUDA_CHECK(cudaFuncSetAttribute(chunk_products_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(sizeof(PanelMemory))));
    chunk_products_kernel<<<blocks * pairs, chunk_threads, sizeof(PanelMemory), stream>>>(
        tile, chunks, static_cast<int>(pairs), out);
    HSI_CUDA_LAUNCHED("chunk_products_kernel");
}

} // namespace hsi::pca::gpu
