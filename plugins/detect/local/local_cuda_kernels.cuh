// SPDX-License-Identifier: MIT
// The kernels of local RX.
#pragma once

#include "detect/detect_cuda_kernels.cuh"

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace hsi::detect::gpu {

/// Pixels of a line after which sums start anew, at multiples of it in the scene.
inline constexpr int run_pixels = 32;

/// Columns of a spectrum as the kernels read it: the bands, a 1, and zeros up to a multiple of 32.
__host__ __device__ inline constexpr int spectrum_pitch(int bands) { return (bands + 32) / 32 * 32; }

/// Symmetric matrices lie in tiles of 8 x 8 numbers, those on and below the diagonal, row of tiles by row of
/// tiles; a tile is two halves of four columns, each row by row. There is one more row than the order says.
__host__ __device__ inline constexpr int tile_rows(int order) { return (order + 8) / 8; }
__host__ __device__ inline constexpr size_t matrix_size(int order) {
    return static_cast<size_t>(tile_rows(order)) * static_cast<size_t>(tile_rows(order) + 1) / 2 * 64;
}

/// The window of a tile, and its core in it.
struct LocalTile {
    const float* spectra = nullptr; ///< pixel by pixel, spectrum_pitch() apart: zeros where invalid
    const uint8_t* state = nullptr; ///< a pixel each: bit 0 valid, bit 1 counts as background
    int w = 0, h = 0;
    int core_x = 0, core_y = 0, core_w = 0, core_h = 0;
    int bands = 0, pitch = 0;
    int inner = 0, outer = 0;
    bool by_pixels = false; ///< U U' in place of U'U
    double ridge_share = 0; ///< Ring::ridge_share, 0 without by_pixels alone
    __host__ __device__ int ring() const { return outer * outer - inner * inner; }
    __host__ __device__ int order() const { return by_pixels ? ring() : bands; }
    __host__ __device__ int runs_of_line() const { return (core_w + run_pixels - 1) / run_pixels; }
};

/// Runs of the core, counted line by line, whose matrices are there at the same time. `run_pixels` of
/// everything a run; one of the centres.
struct LocalBatch {
    int first_run = 0, runs = 0;
    double* matrices = nullptr; ///< matrix_size(order) each
    float* centres = nullptr;   ///< pitch each: what sums are taken from; zero beyond the bands
    double* means = nullptr;    ///< pitch each: of the ring, where it is looked at by itself
    int* ring_counts = nullptr; ///< likewise: its pixels
    uint8_t* status = nullptr;
};

/// state[p] of packed bands x pixels; in_mask: null, or whether a pixel is in the mask.
void launch_states(const float* raw, int bands, int pixels, const uint8_t* in_mask, uint8_t* state,
                   cudaStream_t stream);
/// The spectra of a LocalTile from packed bands x pixels.
void launch_spectra(const float* raw, int bands, int pixels, const uint8_t* state, float* spectra,
                    cudaStream_t stream);
/// The scores of a batch's pixels.
void launch_local(const LocalTile& tile, const LocalBatch& batch, const Output& out, cudaStream_t stream);

} // namespace hsi::detect::gpu
