// SPDX-License-Identifier: MIT
// The kernels of the CUDA backend: the statistics of the blocks of a tile, and the transform of pixels.
#pragma once

#include "cuda/exact_sums.cuh"

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace hsi::pca::gpu {

/// A tile in device memory. Sample s of line l of band b is data[b * band_stride + l * line_stride + s]. The
/// tile may be packed, or part of a whole scene.
struct TileView {
    const float* data = nullptr;
    int bands = 0, w = 0, h = 0;
    size_t line_stride = 0, band_stride = 0;
};

/// Size of the blocks of pixels. The first block starts at the tile's corner, which is a corner of the
/// scene's blocks (stream/statistics_sums.h). The results of a block depend only on its pixels.
inline constexpr int block_samples = 1024, block_lines = 8;
int block_count(const TileView& tile);

/// Returns the number of entries of a matrix on and below its diagonal. Entry (a, b), b <= a, has the index a
/// (a+1)/2 + b.
__host__ __device__ constexpr size_t lower_size(int n) {
    return static_cast<size_t>(n) * (static_cast<size_t>(n) + 1) / 2;
}

/// The results of a tile's blocks, one block after another. A pair is a valid pixel whose right neighbour is
/// in the same block and also valid.
struct BlockResults {
    /// Sum of (x_a - c_a)(x_b - c_b) over the valid pixels, lower_size(bands) values per block; null if only
    /// sums are requested.
    double* scatter = nullptr;
    /// Sum of d_a d_b over the pairs, lower_size(bands) values per block; null if not requested.
    double* differences = nullptr;
    /// Sum of x over the valid pixels, one per band; with differences, the sum of x - c.
    double* sum = nullptr;
    float* centre = nullptr; ///< c, the mean in single precision, one per band
    int* finite = nullptr;   ///< number of pixels with a finite value, one per band
    int* count = nullptr;    ///< number of valid pixels, one per block
    int* pairs = nullptr;    ///< number of pairs, one per block; only with differences
};

/// Sets valid[p] to 1 if the pixel is valid, otherwise to 0. `valid` is packed, w x h.
void launch_valid(const TileView& tile, bool zero_is_invalid, uint8_t* valid, cudaStream_t stream);
/// Computes the statistics of each block of a tile: the centre and the sums, then the products. For a
/// covariance, products are added over 512 pixels in single precision, and these sums are added in double
/// precision. With differences, all sums are in double precision.
void launch_statistics(const TileView& tile, const uint8_t* valid, const BlockResults& out,
                       cudaStream_t stream);
/// Computes the statistics of each block for stream::Statistics::double_covariance, bitwise equal to the
/// CPU's. A block is divided into chunks of 192 pixels, line by line. Each chunk is centred on its own means,
/// and its products are in double precision. Eight sums are computed, each over every eighth pixel.
/// out.centre is the centre of the first chunk with a valid pixel.
void launch_chunked_statistics(const TileView& tile, unsigned char* scratch, const BlockResults& out,
                               cudaStream_t stream);
/// Returns true if the device has enough shared memory for launch_chunked_statistics().
bool has_chunked_statistics(int ordinal);
/// Returns the bytes of scratch memory that launch_chunked_statistics() needs for a tile with this number of
/// blocks and pixels.
size_t chunked_scratch(int bands, size_t blocks, size_t pixels);

/// The exact sums and the counts over all blocks of all tiles.
struct SceneSums {
    /// Sums of x_b; sums of x_a x_b and of d_a d_b in the order of lower_size()
    cuda::ExactView sum, product, difference;
    /// Valid pixels, pairs, then the number of finite values of each band.
    unsigned long long* counts = nullptr;
    /// Bits of the centre of one block, one per band; no_level if there is no block.
    unsigned* level = nullptr;
    unsigned* varies = nullptr; ///< not 0 if values or centres differ, one per band
};
inline constexpr unsigned no_level = ~0u;

/// Adds the results of a tile's blocks to `sums`, bitwise equal to stream::StatisticsSums. It does the work
/// of add_sums() if `scatter` is null, of add_centred_block() and add_pairs() with differences, and of
/// add_block() otherwise.
void launch_adding(const BlockResults& results, int bands, int blocks, const SceneSums& sums,
                   cudaStream_t stream);
/// Adds the pairs across the borders of blocks within a tile, as stream::BorderPairs does.
void launch_borders(const TileView& tile, const uint8_t* valid, const SceneSums& sums, cudaStream_t stream);

/// Sets low[b] and high[b] to the minimum and maximum of the valid pixels on a grid: every step-th pixel,
/// from `first` on, of every step-th line. They become infinities of opposite sign if the grid has no valid
/// pixel. Adds the number of valid pixels to `count`, which must be 0 at the start. `valid` is scratch memory
/// of grid_places() bytes.
void launch_extremes(const TileView& tile, int first, int step, uint8_t* valid, float* low, float* high,
                     unsigned long long* count, cudaStream_t stream);
size_t grid_places(const TileView& tile, int first, int step);

/// Computes out[o][p] = offset[o] + sum over b of matrix[o * bands + b] x_b of pixel p, in double precision;
/// NaN if the pixel is invalid. `out` is packed, w x h, band by band.
void launch_transform(const TileView& tile, const double* matrix, const double* offset, int outputs,
                      const uint8_t* valid, float* out, cudaStream_t stream);

} // namespace hsi::pca::gpu
