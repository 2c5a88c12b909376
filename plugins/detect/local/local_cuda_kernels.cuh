// SPDX-License-Identifier: MIT
// The kernels of local RX.
#pragma once

#include "detect/detect_cuda_kernels.cuh"

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace hsi::detect::gpu {

/// The length of a run: the pixels of a line over which sums slide. Sums restart at samples of the scene that
/// are multiples of this number.
inline constexpr int run_pixels = 32;

/// Returns the length of a spectrum in the kernels' layout: the bands, a 1, and zeros up to a multiple of 32.
__host__ __device__ inline constexpr int spectrum_pitch(int bands) { return (bands + 32) / 32 * 32; }

/// Symmetric matrices are stored as tiles of 8 x 8 entries. Only the tiles on and below the diagonal are
/// stored, one row of tiles after another. A tile has two halves of four columns; each half is stored row by
/// row. A matrix has one row more than its order.
__host__ __device__ inline constexpr int tile_rows(int order) { return (order + 8) / 8; }
__host__ __device__ inline constexpr size_t matrix_size(int order) {
    return static_cast<size_t>(tile_rows(order)) * static_cast<size_t>(tile_rows(order) + 1) / 2 * 64;
}

/// The window of a tile, and the core in the window.
struct LocalTile {
    const float* spectra = nullptr; ///< pixel by pixel, spectrum_pitch() apart; zeros where invalid
    const uint8_t* state = nullptr; ///< per pixel: bit 0 valid, bit 1 belongs to the background
    int w = 0, h = 0;
    int core_x = 0, core_y = 0, core_w = 0, core_h = 0;
    int bands = 0, pitch = 0;
    int inner = 0, outer = 0;
    bool by_pixels = false; ///< computes U U' instead of U'U
    double ridge_share = 0; ///< Ring::ridge_share; may be 0 only without by_pixels
    __host__ __device__ int ring() const { return outer * outer - inner * inner; }
    __host__ __device__ int order() const { return by_pixels ? ring() : bands; }
    __host__ __device__ int runs_of_line() const { return (core_w + run_pixels - 1) / run_pixels; }
};

/// Consecutive runs of the core whose matrices are in memory at the same time. Runs are counted line by line.
/// All arrays have `run_pixels` entries per run, except `centres`, which has one entry per run.
struct LocalBatch {
    int first_run = 0, runs = 0;
    double* matrices = nullptr; ///< matrix_size(order) per entry
    float* centres = nullptr;   ///< pitch per entry: subtracted before summing; zero after the bands
    double* means = nullptr;    ///< pitch per entry: the ring's mean, if means_kernel() computes it
    int* ring_counts = nullptr; ///< number of pixels in the ring, if means_kernel() counts them
    uint8_t* status = nullptr;
};

/// Sets LocalTile::state from the packed values `raw`, bands x pixels. in_mask: not 0 for each pixel in the
/// mask; null if all pixels are.
void launch_states(const float* raw, int bands, int pixels, const uint8_t* in_mask, uint8_t* state,
                   cudaStream_t stream);
/// Fills LocalTile::spectra from the packed values `raw`, bands x pixels.
void launch_spectra(const float* raw, int bands, int pixels, const uint8_t* state, float* spectra,
                    cudaStream_t stream);
/// Computes the scores of a batch's pixels.
void launch_local(const LocalTile& tile, const LocalBatch& batch, const Output& out, cudaStream_t stream);

} // namespace hsi::detect::gpu
