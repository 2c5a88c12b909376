// SPDX-License-Identifier: MIT
// All sweeps of a stage in one cooperative launch, in which every multiprocessor keeps a tile. Recurrence
// launches it.
#pragma once

#include "eadp/eadp_cuda_kernels.cuh"

namespace hsi::eadp::gpu {

constexpr int group_sweeps = 4; ///< sweeps between two exchanges, equal to the width of the halo
constexpr int batch_copies = 8; ///< number of copies whose sums fit into shared memory
constexpr int warp_rows = 4;    ///< lines per warp; each lane has 4 samples per line
constexpr int most_warps = 12;  ///< per block, three per scheduler; the last warp has the halo's lines
/// Tiles have 128 x 52 pixels
constexpr int core_samples = 120, most_core_lines = (most_warps - 1) * warp_rows;
/// The data that a block publishes, two samples and their tags per word: the core's first and last four lines
/// as [first, last][line][Y_k, Y_{k-1} x two halves of 4 samples][lane], then the core's first and last four
/// samples of every line as [first, last][line][Y_k, Y_{k-1} x two halves].
constexpr size_t exchange_lines = 2 * warp_rows * 4 * 32;
constexpr size_t exchange_words = exchange_lines + 2 * most_core_lines * 4;

struct PersistentWork {
    StageWork<float> stage;
    int across, down; ///< blocks per team
    int teams;
    int core_lines; ///< per block
    int windows_across, windows_down;
    int step_x, step_y; ///< step between windows in the planes
    int halo;
    const float* coefficients;
    const int* masks;
    int groups, first_copy, copies;
    bool write_next;
    Core output;     ///< the core, or the region of `next`
    uint4* exchange; ///< [team][block][half][exchange_words]
    unsigned epoch;  ///< last epoch of earlier launches
};

/// Returns true if the device has enough shared memory for the largest tile.
bool fits_persistent(int ordinal);
/// Allows the kernel to use that memory; call it once per device.
void allow_persistent();
/// Launches work.across x work.down x work.teams blocks, which the device must be able to run at once.
/// Asynchronous.
void launch_persistent(PersistentWork work, cudaStream_t stream);

} // namespace hsi::eadp::gpu
