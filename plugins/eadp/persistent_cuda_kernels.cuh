// SPDX-License-Identifier: MIT
// All sweeps of a stage in one launch, during which every multiprocessor keeps a tile. The class
// gpu::Recurrence starts the launch.
#pragma once

#include "eadp/eadp_cuda_kernels.cuh"

namespace hsi::eadp::gpu {

constexpr int group_sweeps = 4; ///< sweeps between two exchanges; also the width of the halo in pixels
constexpr int batch_copies = 8; ///< number of copies whose sums fit into shared memory
constexpr int warp_rows = 4;    ///< lines per warp; each lane has 4 samples per line
constexpr int most_warps = 12;  ///< warps per block, three per scheduler; the last warp processes the halo
/// Tiles have 128 x 52 pixels. Their core has at most 120 x 44 pixels.
constexpr int core_samples = 120, most_core_lines = (most_warps - 1) * warp_rows;
/// The words that a block publishes for its neighbours. Each word has two samples and their tags, so four
/// samples need two words (halves). The words begin with the core's first and last four lines: [first,
/// last][line][Y_k, Y_{k-1} x two halves][lane]. The core's first and last four samples of every line follow:
/// [first, last][line][Y_k, Y_{k-1} x two halves].
constexpr size_t exchange_lines = 2 * warp_rows * 4 * 32;
constexpr size_t exchange_words = exchange_lines + 2 * most_core_lines * 4;

struct PersistentWork {
    StageWork<float> stage;
    int across, down; ///< number of blocks in a team
    int teams;
    int core_lines; ///< lines of the core of one block
    int windows_across, windows_down;
    int step_x, step_y; ///< distance between windows, in pixels of the planes
    int halo;
    const float* coefficients;
    const int* masks;
    int groups, first_copy, copies;
    bool write_next;
    Core output;     ///< the core of the stage, or the region of `next`
    uint4* exchange; ///< [team][block][half][exchange_words]
    unsigned epoch;  ///< last epoch of the previous launches
};

/// Returns true if the device has enough shared memory for the largest tile.
bool fits_persistent(int ordinal);
/// Allows the kernel to use the shared memory that fits_persistent() checks. Call it once per device.
void allow_persistent();
/// Starts work.across x work.down x work.teams blocks, which the device must be able to run at the same time.
/// Returns before the kernel has finished.
void launch_persistent(PersistentWork work, cudaStream_t stream);

} // namespace hsi::eadp::gpu
