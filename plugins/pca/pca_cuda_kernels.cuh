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

/// Blocks of pixels begin at the tile's corner, which is a corner of the scene's blocks
/// (stream/statistics_sums.h). The results of a block depend only on its pixels.
inline constexpr int block_samples = 1024, block_lines = 8;
int block_count(const TileView& tile);

/// Returns the number of entries of a matrix on and below its diagonal; (a, b), b <= a, is at a (a+1)/2 + b.
__host__ __device__ constexpr size_t lower_size(int n) {
    return static_cast<size_t>(n) * (static_cast<size_t>(n) + 1) / 2;
}

/// The results of a tile's blocks, one block after another. A pair is a pixel with its right neighbour in the
/// same block, if both are valid.
struct BlockResults {
    /// lower_size(bands) per block: sum of (x_a - c_a)(x_b - c_b) of the valid pixels; null if only sums are
    /// requested.
    double* scatter = nullptr;
    /// Has lower_size(bands) per block: sum of d_a d_b of the pairs; null if not requested
    double* differences = nullptr;
    /// One per band: sum of x over the valid pixels; with differences, of x - c
    double* sum = nullptr;
    float* centre = nullptr; ///< one per band: c, the mean in single precision
    int* finite = nullptr;   ///< one per band: pixels with a finite value
    int* count = nullptr;    ///< one per block: valid pixels
    int* pairs = nullptr;    ///< one per block; only with differences
};

/// Sets valid[p] to 1 if the pixel is valid, else 0; w x h, packed.
void launch_valid(const TileView& tile, bool zero_is_invalid, uint8_t* valid, cudaStream_t stream);
/// Computes centres and sums first, then products. Products of a covariance are added over 512 pixels in
/// single precision, and these sums in double precision; with differences, all sums are in double precision.
void launch_statistics(const TileView& tile, const uint8_t* valid, const BlockResults& out,
                       cudaStream_t stream);
/// Computes the covariance of stream::Statistics::double_covariance, bit by bit. Chunks of 192 pixels of a
/// block, counted line by line, are centred on their own means and multiplied in double precision; each of
/// eight sums covers every eighth pixel. out.centre is the centre of the first chunk with a valid pixel.
void launch_chunked_statistics(const TileView& tile, unsigned char* scratch, const BlockResults& out,
                               cudaStream_t stream);
/// Returns true if the device has enough shared memory for a block of its threads.
bool has_chunked_statistics(int ordinal);
/// Returns the bytes of scratch for a tile with this number of blocks and pixels.
size_t chunked_scratch(int bands, size_t blocks, size_t pixels);

/// The exact sums over all blocks, and counts.
struct SceneSums {
    cuda::ExactView sum, product, difference; ///< of x_b; of x_a x_b and d_a d_b in the order of lower_size()
    unsigned long long* counts = nullptr;     ///< valid pixels, pairs, then finite values, one per band
    unsigned* level = nullptr;  ///< one per band: the bits of some block's centre; no_level before there is
                                ///< one
    unsigned* varies = nullptr; ///< one per band: not 0 if values or centres differ
};
inline constexpr unsigned no_level = ~0u;

/// Adds the results of a tile's blocks with the bits of stream::StatisticsSums: add_sums() without scatter,
/// otherwise add_block(), or with differences add_centred_block() and add_pairs().
void launch_adding(const BlockResults& results, int bands, int blocks, const SceneSums& sums,
                   cudaStream_t stream);
/// Adds the pairs across the borders of blocks within a tile, as stream::BorderPairs does.
void launch_borders(const TileView& tile, const uint8_t* valid, const SceneSums& sums, cudaStream_t stream);

/// Sets low[b] and high[b] to the minimum and maximum of the valid pixels in a grid: every step-th pixel,
/// from `first` on, of every step-th line. They become infinities of opposite sign if the grid has no valid
/// pixel. count: incremented by the number of valid pixels; must be 0 at the start. valid: scratch of
/// grid_places().
void launch_extremes(const TileView& tile, int first, int step, uint8_t* valid, float* low, float* high,
                     unsigned long long* count, cudaStream_t stream);
size_t grid_places(const TileView& tile, int first, int step);

/// Computes out[o][p] = offset[o] + sum over b of matrix[o * bands + b] x_b of pixel p, in double precision;
/// NaN if invalid. w x h, packed, band by band.
void launch_transform(const TileView& tile, const double* matrix, const double* offset, int outputs,
                      const uint8_t* valid, float* out, cudaStream_t stream);

} // namespace hsi::pca::gpu
