// SPDX-License-Identifier: MIT
// Panels of bands for sums of products over a statistics block: a block of threads multiplies the bands of
// one panel by those of another, some pixels at a time in shared memory.
#pragma once

#include "pca/pca_cuda_blocks.cuh"

namespace hsi::pca::gpu {

constexpr int threads = 256; ///< of every kernel over blocks
constexpr int panel = 64;    ///< bands on either side of one block of threads
constexpr int step = 32;     ///< pixels in shared memory at a time

/// Pairs of panels on or below the diagonal.
inline int panel_pairs(int bands) {
    const int panels = (bands + panel - 1) / panel;
    return panels * (panels + 1) / 2;
}

/// A pair of panels on or below the diagonal.
struct PanelPair {
    int row, column;
};
inline __device__ PanelPair panel_pair(int number) {
    PanelPair pair{0, number};
    while (pair.column > pair.row)
        pair.column -= ++pair.row;
    return pair;
}

/// Loads `step` pixels of a panel's bands: thread t takes pixels t % 8 + 8 g of the bands 4 (t / 32) +
/// (t / 8) % 4 + 32 h; zero where invalid or outside. differences: of the pixel's right neighbour and itself;
/// else of the pixel and its band's centre. T: of the difference and of shared memory; pitch: of its rows.
template <class T, int pitch, bool differences>
struct PanelLoader {
    static constexpr int loads = panel * step / threads;
    using Values = T[loads];

    const TileView& tile;
    const uint8_t* valid;
    const Block& block;
    const float* centre;
    int first_band;

    __device__ int band(int h) const {
        return first_band + 32 * h + static_cast<int>(threadIdx.x) / 32 * 4 +
               static_cast<int>(threadIdx.x) / 8 % 4;
    }
    __device__ void load(int first, Values& out) const {
#pragma unroll
        for (int g = 0; g < step / 8; ++g) {
            const int i = first + 8 * g + static_cast<int>(threadIdx.x) % 8;
            const int column = i % block.w, x = block.x + column, y = block.y + i / block.w;
            const size_t pixel = static_cast<size_t>(y) * tile.w + x,
                         at = static_cast<size_t>(y) * tile.line_stride + x;
            bool in = i < block.w * block.h && valid[pixel] != 0;
            if (differences) in = in && column + 1 < block.w && valid[pixel + 1] != 0;
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const int b = band(h);
                T v = 0;
                if (in && b < tile.bands) {
                    const float* const value = tile.data + static_cast<size_t>(b) * tile.band_stride + at;
                    const T here = static_cast<T>(__ldg(value));
                    v = differences ? static_cast<T>(__ldg(value + 1)) - here
                                    : here - static_cast<T>(centre[b]);
                }
                out[2 * g + h] = v;
            }
        }
    }
    __device__ void store(const Values& values, T (*rows)[pitch]) const {
#pragma unroll
        for (int g = 0; g < step / 8; ++g)
#pragma unroll
            for (int h = 0; h < 2; ++h)
                rows[8 * g + static_cast<int>(threadIdx.x) % 8][band(h) - first_band] = values[2 * g + h];
    }
};

} // namespace hsi::pca::gpu
