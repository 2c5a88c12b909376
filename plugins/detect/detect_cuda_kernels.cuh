// SPDX-License-Identifier: MIT
// The kernels of the CUDA backend: scores of pixels (score_cuda_kernels.cu) and local RX
// (local_cuda_kernels.cu). All in double precision; what comes out for a pixel depends on its own values
// (local RX: on those of its run and around), never on the launch.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace hsi::detect::gpu {

/// Where the scores of a pass go.
struct Output {
    float* scores = nullptr; ///< a band a score, packed; NaN where there is none
    float* map = nullptr;    ///< null: not wanted
    float* depths = nullptr; ///< of features, likewise
    bool has_threshold = false, small_is_best = false;
    double threshold = 0;
    /// Added to: pixels that are valid, invalid, without background (features: without a continuum), without
    /// variance.
    unsigned long long* counts = nullptr;
};

// --- scores

enum class Kind { sam, sid, matched, ace, rx }; ///< matched: mf and cem

/// Rows of a matrix that meet a pixel together: panels of eight, in each the columns one after another, eight
/// numbers a column; rows beyond the last are zero.
inline constexpr int panel_rows = 8;

/// The pixels of a tile, band after band, and a detector.
struct ScoreWork {
    Kind kind = Kind::rx;
    const float* raw = nullptr; ///< bands x pixels
    int pixels = 0, bands = 0;
    int used_count = 0, targets = 0;   ///< rx: 0 targets
    const int* used = nullptr;         ///< bands that scores are made from
    const double* centre = nullptr;    ///< a band used each
    const double* rows = nullptr;      ///< panels of the targets' rows
    const double* log_rows = nullptr;  ///< sid: likewise, for the logarithms
    const double* factor = nullptr;    ///< ace, rx: panels of L^-1, lower
    const double* constants = nullptr; ///< ace, sid: a target each
    double least_part = 0;             ///< sid
    // A pixel each, made here.
    uint8_t* valid = nullptr;
    double* squared = nullptr;                                      ///< sam: |x|^2; ace, rx: |L^-1 (x-m)|^2
    double *greatest = nullptr, *sum = nullptr, *entropy = nullptr; ///< sid
    double* scores = nullptr;                                       ///< a row a score
};

void launch_scores(const ScoreWork& work, const Output& out, cudaStream_t stream);

// --- local RX

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

/// What scores and map of a tile come to. best: a target each, in the order of numbers (see score_of()).
struct Tally {
    unsigned* best = nullptr;             ///< 0 before there is one
    unsigned long long* mapped = nullptr; ///< a target each, then all pixels of the map; null without a map
    bool small_is_best = false;
};
/// The score behind Tally::best.
__host__ __device__ inline float score_of(unsigned best, bool small_is_best) {
    const unsigned rising = small_is_best ? ~best : best;
    const unsigned bits = rising & 0x80000000u ? rising ^ 0x80000000u : ~rising;
    float score = 0;
    memcpy(&score, &bits, sizeof score);
    return score;
}
/// scores: `targets` planes of so many pixels; map: null where there is none.
void launch_tally(const float* scores, const float* map, int targets, int pixels, const Tally& tally,
                  cudaStream_t stream);

/// state[p] of packed bands x pixels; in_mask: null, or whether a pixel is in the mask.
void launch_states(const float* raw, int bands, int pixels, const uint8_t* in_mask, uint8_t* state,
                   cudaStream_t stream);
/// The spectra of a LocalTile from packed bands x pixels.
void launch_spectra(const float* raw, int bands, int pixels, const uint8_t* state, float* spectra,
                    cudaStream_t stream);
/// The scores of a batch's pixels.
void launch_local(const LocalTile& tile, const LocalBatch& batch, const Output& out, cudaStream_t stream);

} // namespace hsi::detect::gpu
