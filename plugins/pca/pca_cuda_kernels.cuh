// SPDX-License-Identifier: MIT
// The kernels of the CUDA backend: statistics blocks of a tile for the covariance, and the transform of
// pixels.
#pragma once

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
/// (stream/covariance_scan.h). What comes out for a block depends on its pixels alone.
inline constexpr int block_samples = 1024, block_lines = 8;
int block_count(const TileView& tile);

/// What a tile's blocks say, one block after another.
struct BlockResults {
    double* scatter =
        nullptr;             ///< bands x bands each; on and below the diagonal: sum of (x_a - c_a)(x_b - c_b)
    double* sum = nullptr;   ///< a band each: of the valid pixels
    float* centre = nullptr; ///< a band each: c, the mean in single precision
    int* finite = nullptr;   ///< a band each: pixels with a finite value
    int* count = nullptr;    ///< one each: valid pixels
};

/// valid[p] = 1 where the pixel is valid, else 0; w x h, packed.
void launch_valid(const TileView& tile, bool zero_is_invalid, uint8_t* valid, cudaStream_t stream);
/// Products are added up over 512 pixels in single precision, these sums in double.
void launch_covariance(const TileView& tile, const uint8_t* valid, const BlockResults& out,
                       cudaStream_t stream);
/// out[o][p] = offset[o] + sum over b of matrix[o * bands + b] x_b of pixel p, in double precision; NaN where
/// invalid. w x h, packed, band after band.
void launch_transform(const TileView& tile, const double* matrix, const double* offset, int outputs,
                      const uint8_t* valid, float* out, cudaStream_t stream);

} // namespace hsi::pca::gpu
