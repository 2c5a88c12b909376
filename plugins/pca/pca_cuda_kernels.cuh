// SPDX-License-Identifier: MIT
// The kernels of the CUDA backend: statistics blocks of a tile, and the transform of pixels.
#pragma once

#include "cuda/exact_sums.cuh"

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace hsi::pca::gpu {

/// A tile in device memory: sample s of line l of band b is data[b * band_stride + l * line_stride + s]. It
/// may be packed, or a part of a whole scene.
struct TileView {
    const float* data = nullptr;
    int bands = 0, w = 0, h = 0;
    size_t line_stride = 0, band_stride = 0;
};

/// Blocks of pixels anchored at the tile's corner, which lies on a corner of the scene's blocks
/// (stream/statistics_sums.h). What comes out for a block depends on its pixels alone.
inline constexpr int block_samples = 1024, block_lines = 8;
int block_count(const TileView& tile);

/// Entries of a matrix on and below its diagonal; (a, b), b <= a, is at a (a+1)/2 + b.
__host__ __device__ constexpr size_t lower_size(int n) {
    return static_cast<size_t>(n) * (static_cast<size_t>(n) + 1) / 2;
}

/// What a tile's blocks say, one block after another. A pair is a pixel with its right neighbour in the same
/// block, both valid.
struct BlockResults {
    /// lower_size(bands) each: sum of (x_a - c_a)(x_b - c_b) of the valid pixels; null where sums are all.
    double* scatter = nullptr;
    double* differences = nullptr; ///< as many: sum of d_a d_b of the pairs; null where they are not wanted
    double* sum = nullptr;         ///< a band each, of the valid pixels: sum of x; with differences of x - c
    float* centre = nullptr;       ///< a band each: c, the mean in single precision
    int* finite = nullptr;         ///< a band each: pixels with a finite value
    int* count = nullptr;          ///< one each: valid pixels
    int* pairs = nullptr;          ///< one each; with differences alone
};

/// valid[p] = 1 where the pixel is valid, else 0; w x h, packed.
void launch_valid(const TileView& tile, bool zero_is_invalid, uint8_t* valid, cudaStream_t stream);
/// Centres and sums first, then products: those of a covariance are added up over 512 pixels in single
/// precision and these sums in double; with differences all is in double.
void launch_statistics(const TileView& tile, const uint8_t* valid, const BlockResults& out,
                       cudaStream_t stream);
/// The same with the covariance of stream::Statistics::double_covariance, to the bit: chunks of 192 pixels of
/// a block, counted line by line, are centred on their own means and multiplied in double, each of eight sums
/// over every eighth pixel. out.centre: that of the first chunk with a valid pixel.
void launch_chunked_statistics(const TileView& tile, unsigned char* scratch, const BlockResults& out,
                               cudaStream_t stream);
/// Whether a block of its threads has enough shared memory on a device.
bool has_chunked_statistics(int ordinal);
/// Bytes of scratch for a tile of so many blocks and pixels.
size_t chunked_scratch(int bands, size_t blocks, size_t pixels);

/// What all blocks come to: sums without rounding, and counts.
struct SceneSums {
    cuda::ExactView sum, product, difference; ///< of x_b; of x_a x_b and d_a d_b as lower_size() has them
    unsigned long long* counts = nullptr;     ///< valid pixels, pairs, then finite values, a band each
    unsigned* level = nullptr; ///< a band each: the bits of some block's centre; no_level before there is one
    unsigned* varies = nullptr; ///< a band each: not 0 where values or centres differ
};
inline constexpr unsigned no_level = ~0u;

/// Adds the results of a tile's blocks as stream::StatisticsSums does, to the bit: add_sums() where there is
/// no scatter, add_block(), or with differences add_centred_block() and add_pairs().
void launch_adding(const BlockResults& results, int bands, int blocks, const SceneSums& sums,
                   cudaStream_t stream);
/// Adds the pairs across the borders of blocks within a tile, as stream::BorderPairs does.
void launch_borders(const TileView& tile, const uint8_t* valid, const SceneSums& sums, cudaStream_t stream);

/// low[b], high[b] = the least and the greatest value of the valid pixels among every step-th one, from
/// `first` on, of every step-th line, infinities of the other sign where there is none; count: how many there
/// are, 0 before. valid: scratch of grid_places().
void launch_extremes(const TileView& tile, int first, int step, uint8_t* valid, float* low, float* high,
                     unsigned long long* count, cudaStream_t stream);
size_t grid_places(const TileView& tile, int first, int step);

/// out[o][p] = offset[o] + sum over b of matrix[o * bands + b] x_b of pixel p, in double precision; NaN where
/// invalid. w x h, packed, band after band.
void launch_transform(const TileView& tile, const double* matrix, const double* offset, int outputs,
                      const uint8_t* valid, float* out, cudaStream_t stream);

} // namespace hsi::pca::gpu
