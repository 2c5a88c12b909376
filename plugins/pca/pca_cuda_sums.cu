// SPDX-License-Identifier: MIT
// Adds up the results of a scene's blocks on the device.
#include "core/valid_pixel.h"
#include "cuda/check.h"
#include "pca/pca_cuda_kernels.cuh"

#include <cmath>

namespace hsi::pca::gpu {
namespace {

constexpr int sum_threads = 128;
/// Number of groups of a tile's blocks; each group is added by separate threads.
constexpr int block_groups = 8;

unsigned groups_of(size_t n) { return static_cast<unsigned>((n + sum_threads - 1) / sum_threads); }

/// The row and the column of an entry of a matrix on and below its diagonal.
struct Entry {
    int a, b;
};
__device__ Entry entry_of(size_t k) {
    int a = static_cast<int>((sqrt(8.0 * static_cast<double>(k) + 1) - 1) / 2);
    while (lower_size(a) > k)
        --a;
    while (lower_size(a + 1) <= k)
        ++a;
    return {a, static_cast<int>(k - lower_size(a))};
}

/// Returns the number with only the upper 27 of the 53 bits of its significand.
__device__ double upper_bits(double x) {
    return __longlong_as_double(__double_as_longlong(x) & ~((1ll << 26) - 1));
}

/// Adds the products, one entry per thread and one group of blocks per blockIdx.y. The operations are the
/// same as in stream::StatisticsSums::add_products(), without fused operations.
__global__ void products_kernel(BlockResults r, int bands, int blocks, cuda::ExactView product) {
    const size_t k = static_cast<size_t>(blockIdx.x) * sum_threads + threadIdx.x, size = lower_size(bands);
    if (k >= size) return;
    const Entry at = entry_of(k);
    cuda::ExactTerms upper(product, k), lower(product, k), rest_terms(product, k);
    for (int block = static_cast<int>(blockIdx.y); block < blocks; block += static_cast<int>(gridDim.y)) {
        if (r.count[block] == 0) continue;
        const auto n = static_cast<double>(r.count[block]);
        const size_t first = static_cast<size_t>(block) * bands;
        const auto centre_a = static_cast<double>(r.centre[first + at.a]),
                   centre_b = static_cast<double>(r.centre[first + at.b]);
        double rest_a = r.sum[first + at.a], rest_b = r.sum[first + at.b];
        // Here the sums are of x, without subtraction of the centre.
        if (r.differences == nullptr) {
            rest_a = __dsub_rn(rest_a, __dmul_rn(n, centre_a));
            rest_b = __dsub_rn(rest_b, __dmul_rn(n, centre_b));
        }
        const double of_centres = __dmul_rn(centre_a, centre_b), high = upper_bits(of_centres);
        upper.add(__dmul_rn(n, high));
        lower.add(__dmul_rn(n, __dsub_rn(of_centres, high)));
        rest_terms.add(__dadd_rn(r.scatter[static_cast<size_t>(block) * size + k],
                                 __dadd_rn(__dmul_rn(centre_a, rest_b), __dmul_rn(centre_b, rest_a))));
    }
    upper.end();
    lower.end();
    rest_terms.end();
}

/// Adds the differences, one entry per thread.
__global__ void differences_kernel(BlockResults r, int bands, int blocks, cuda::ExactView difference) {
    const size_t k = static_cast<size_t>(blockIdx.x) * sum_threads + threadIdx.x, size = lower_size(bands);
    if (k >= size) return;
    cuda::ExactTerms terms(difference, k);
    for (int block = static_cast<int>(blockIdx.y); block < blocks; block += static_cast<int>(gridDim.y))
        if (r.pairs[block] > 0) terms.add(r.differences[static_cast<size_t>(block) * size + k]);
    terms.end();
}

/// Adds the sums and counts of bands, one band per thread and one group of blocks per blockIdx.y.
__global__ void bands_kernel(BlockResults r, int bands, int blocks, SceneSums sums) {
    const int b = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (b >= bands) return;
    cuda::ExactTerms terms(sums.sum, static_cast<size_t>(b));
    unsigned long long finite = 0, valid = 0, pairs = 0;
    for (int block = static_cast<int>(blockIdx.y); block < blocks; block += static_cast<int>(gridDim.y)) {
        const size_t at = static_cast<size_t>(block) * bands + b;
        finite += static_cast<unsigned long long>(r.finite[at]);
        const int count = r.count[block];
        if (count == 0) continue;
        valid += static_cast<unsigned long long>(count);
        const float centre = r.centre[at];
        if (r.differences != nullptr) {
            pairs += static_cast<unsigned long long>(r.pairs[block]);
            terms.add(__dmul_rn(static_cast<double>(centre), static_cast<double>(count)));
        }
        terms.add(r.sum[at]);
        if (r.scatter == nullptr) continue;
        const unsigned before = atomicCAS(sums.level + b, no_level, __float_as_uint(centre));
        if (r.scatter[static_cast<size_t>(block) * lower_size(bands) + lower_size(b + 1) - 1] > 0 ||
            (before != no_level && __uint_as_float(before) != centre))
            sums.varies[b] = 1;
    }
    terms.end();
    atomicAdd(sums.counts + 2 + b, finite);
    if (b != 0) return;
    atomicAdd(sums.counts, valid);
    atomicAdd(sums.counts + 1, pairs);
}

/// Adds the pairs across borders, one entry per thread. blockIdx.y selects a border between blocks. Each row
/// of blocks has `across` borders.
__global__ void borders_kernel(TileView tile, const uint8_t* __restrict__ valid, int across, SceneSums sums) {
    __shared__ bool is_pair[block_lines];
    const int x = (static_cast<int>(blockIdx.y) % across + 1) * block_samples,
              y = static_cast<int>(blockIdx.y) / across * block_lines, lines = min(block_lines, tile.h - y);
    if (threadIdx.x < block_lines) {
        const auto line = static_cast<int>(threadIdx.x);
        const uint8_t* const at = valid + static_cast<size_t>(y + line) * tile.w + x;
        is_pair[line] = line < lines && at[-1] != 0 && at[0] != 0;
    }
    __syncthreads();
    int count = 0;
    for (int line = 0; line < block_lines; ++line)
        count += is_pair[line];
    if (count == 0) return;
    const size_t k = static_cast<size_t>(blockIdx.x) * sum_threads + threadIdx.x;
    if (k == 0) atomicAdd(sums.counts + 1, static_cast<unsigned long long>(count));
    if (k >= lower_size(tile.bands)) return;
    const Entry entry = entry_of(k);
    const auto difference = [&](int band, int line) {
        const float* const right = tile.data + static_cast<size_t>(band) * tile.band_stride +
                                   static_cast<size_t>(y + line) * tile.line_stride + x;
        return __dsub_rn(static_cast<double>(right[0]), static_cast<double>(right[-1]));
    };
    double product[block_lines];
    for (int line = 0; line < block_lines; ++line)
        product[line] = is_pair[line] ? __dmul_rn(difference(entry.a, line), difference(entry.b, line)) : 0.0;
    // The order of additions is the same as in stream::BorderPairs.
    cuda::ExactTerms terms(sums.difference, k);
    terms.add(__dadd_rn(__dadd_rn(__dadd_rn(product[0], product[4]), __dadd_rn(product[1], product[5])),
                        __dadd_rn(__dadd_rn(product[2], product[6]), __dadd_rn(product[3], product[7]))));
    terms.end();
}

/// A grid of pixels: every step-th pixel, from `first` on, of every step-th line.
struct Grid {
    int first, step, across, places;
    __device__ size_t offset(const TileView& tile, int place) const {
        return static_cast<size_t>(first + place / across * step) * tile.line_stride +
               static_cast<size_t>(first + place % across * step);
    }
};

/// Finds the valid pixels of a grid, one pixel per thread.
__global__ void grid_valid_kernel(TileView tile, Grid grid, uint8_t* __restrict__ valid,
                                  unsigned long long* __restrict__ count) {
    const int place = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    PixelLook<float> look;
    if (place < grid.places) {
        const float* const at = tile.data + grid.offset(tile, place);
#pragma unroll 16
        for (int b = 0; b < tile.bands; ++b)
            look.at(__ldg(at + static_cast<size_t>(b) * tile.band_stride));
        valid[place] = look.is_valid();
    }
    const unsigned all = __ballot_sync(~0u, place < grid.places && look.is_valid());
    if (threadIdx.x % 32 == 0 && all != 0) atomicAdd(count, static_cast<unsigned long long>(__popc(all)));
}

/// Finds the extremes of a band, one band per block of threads.
__global__ void grid_extremes_kernel(TileView tile, Grid grid, const uint8_t* __restrict__ valid,
                                     float* __restrict__ low, float* __restrict__ high) {
    const float* const band = tile.data + static_cast<size_t>(blockIdx.x) * tile.band_stride;
    float least = INFINITY, greatest = -INFINITY;
    for (int place = static_cast<int>(threadIdx.x); place < grid.places; place += sum_threads)
        if (valid[place] != 0) {
            const float v = __fadd_rn(__ldg(band + grid.offset(tile, place)), 0.0f); // turns -0 into 0
            least = fminf(least, v);
            greatest = fmaxf(greatest, v);
        }
    __shared__ float part[2][sum_threads / 32];
    for (int o = 16; o > 0; o /= 2) {
        least = fminf(least, __shfl_xor_sync(~0u, least, o));
        greatest = fmaxf(greatest, __shfl_xor_sync(~0u, greatest, o));
    }
    if (threadIdx.x % 32 == 0) {
        part[0][threadIdx.x / 32] = least;
        part[1][threadIdx.x / 32] = greatest;
    }
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (int k = 0; k < sum_threads / 32; ++k) {
        least = fminf(least, part[0][k]);
        greatest = fmaxf(greatest, part[1][k]);
    }
    low[blockIdx.x] = least;
    high[blockIdx.x] = greatest;
}

} // namespace

void launch_adding(const BlockResults& results, int bands, int blocks, const SceneSums& sums,
                   cudaStream_t stream) {
    const unsigned entries = groups_of(lower_size(bands)),
                   groups = static_cast<unsigned>(blocks < block_groups ? blocks : block_groups);
    bands_kernel<<<dim3(static_cast<unsigned>((bands + 31) / 32), groups), 32, 0, stream>>>(results, bands,
                                                                                            blocks, sums);
    HSI_CUDA_LAUNCHED("bands_kernel");
    if (results.scatter == nullptr) return;
    products_kernel<<<dim3(entries, groups), sum_threads, 0, stream>>>(results, bands, blocks, sums.product);
    HSI_CUDA_LAUNCHED("products_kernel");
    if (results.differences == nullptr) return;
    differences_kernel<<<dim3(entries, groups), sum_threads, 0, stream>>>(results, bands, blocks,
                                                                          sums.difference);
    HSI_CUDA_LAUNCHED("differences_kernel");
}

void launch_borders(const TileView& tile, const uint8_t* valid, const SceneSums& sums, cudaStream_t stream) {
    const int across = (tile.w - 1) / block_samples, rows = (tile.h + block_lines - 1) / block_lines;
    if (across == 0) return;
    constexpr int most = 65535; // limit of a CUDA grid in y
    TileView part = tile;
    const int rows_at_once = most / across > 0 ? most / across : 1;
    for (int row = 0; row < rows; row += rows_at_once) {
        const int count = rows - row < rows_at_once ? rows - row : rows_at_once;
        part.data = tile.data + static_cast<size_t>(row) * block_lines * tile.line_stride;
        part.h = tile.h - row * block_lines;
        borders_kernel<<<dim3(groups_of(lower_size(tile.bands)), static_cast<unsigned>(count * across)),
                         sum_threads, 0, stream>>>(
            part, valid + static_cast<size_t>(row) * block_lines * tile.w, across, sums);
        HSI_CUDA_LAUNCHED("borders_kernel");
    }
}

namespace {
Grid grid_of(const TileView& tile, int first, int step) {
    const auto places = [&](int size) { return size > first ? (size - first + step - 1) / step : 0; };
    return {first, step, places(tile.w), places(tile.w) * places(tile.h)};
}
} // namespace

size_t grid_places(const TileView& tile, int first, int step) {
    return static_cast<size_t>(grid_of(tile, first, step).places);
}

void launch_extremes(const TileView& tile, int first, int step, uint8_t* valid, float* low, float* high,
                     unsigned long long* count, cudaStream_t stream) {
    const Grid grid = grid_of(tile, first, step);
    if (grid.places == 0) return;
    constexpr unsigned few = 32; // Few threads per block give many blocks, whose loads wait in parallel.
    grid_valid_kernel<<<(static_cast<unsigned>(grid.places) + few - 1) / few, few, 0, stream>>>(tile, grid,
                                                                                                valid, count);
    HSI_CUDA_LAUNCHED("grid_valid_kernel");
    grid_extremes_kernel<<<static_cast<unsigned>(tile.bands), sum_threads, 0, stream>>>(tile, grid, valid,
                                                                                        low, high);
    HSI_CUDA_LAUNCHED("grid_extremes_kernel");
}

} // namespace hsi::pca::gpu
