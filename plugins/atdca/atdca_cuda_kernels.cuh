// SPDX-License-Identifier: MIT
// The whole ATDCA search on one GPU in one cooperative launch, on raw device pointers. The CUDA module, the
// tests and the benchmark use these functions.
//
// The targets are those of the CPU, and their scores have the same bits. The basis and every decisive score
// are computed as basis.h defines them (the 32 strands of a dot product are the lanes of a warp; no fused
// multiply and add). To examine fewer pixels in this way, faster sums in double precision first exclude
// pixels, with the error bounds of basis.h.
//
// The scene is stored on the device pixel by pixel, so that one pixel's spectrum is read without its
// neighbours. launch_prepare() converts tiles of bands to this order and computes the norms.
//
// OSP examines few pixels: ||P x||^2 never grows as targets are added, so the score of a pixel from its last
// visit is an upper bound. For each target, every block first updates its most promising pixels. The best of
// these scores, minus its error, is a lower bound of the target's score. Pixels whose old score is below this
// bound are not visited. A visit applies all targets that the pixel has missed. The greatest score of every
// 32 pixels is stored, so that groups of pixels are skipped together.
#pragma once

#include "core/host_device.h"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace hsi::atdca::gpu {

/// The number of pixels that share one stored greatest score; equals the lanes of a warp.
constexpr int group = 32;

struct SearchShape {
    int bands = 0;
    int64_t pixels = 0; ///< in order of line, then sample
    int targets = 0;
    bool gs = false, sign = false;

    HSI_HOST_DEVICE int64_t groups() const { return (pixels + group - 1) / group; }
    /// Returns the number of pixels, rounded up to whole groups.
    HSI_HOST_DEVICE int64_t pitch() const { return groups() * group; }
    /// Returns the number of floats that a pixel's spectrum has on the device. Zeros follow the last band.
    HSI_HOST_DEVICE int row() const { return (bands + 15) / 16 * 16; }
    HSI_HOST_DEVICE uint64_t cube_bytes() const {
        return static_cast<uint64_t>(pixels) * static_cast<uint64_t>(row()) * 4;
    }
};

enum class End : int { complete = 0, rank = 1, nothing_positive = 2, p_vanished = 3 };

struct SearchResult {
    int found;
    End end;
    unsigned long long valid;  ///< valid pixels
    unsigned long long visits; ///< pixels examined in the search, counted at every visit
};

/// Device pointers. Each comment begins with the number of elements. Only `cube` and `norm`, which
/// launch_prepare() fills, need initial values.
struct SearchWork {
    SearchShape shape;
    float* cube = nullptr;            ///< pixels x row(): the spectra
    double* norm = nullptr;           ///< pitch(): ||x||^2; minus infinity for invalid pixels
    double* score = nullptr;          ///< pitch(): score of each pixel at its last visit
    double* greatest = nullptr;       ///< groups(): greatest score of each group of pixels
    int* applied = nullptr;           ///< pitch(): number of targets that the pixel's score includes
    double* basis = nullptr;          ///< targets x bands: q_k
    unsigned char* scratch = nullptr; ///< scratch_bytes()
    int64_t* found = nullptr;         ///< targets: the pixel of each target
    double* found_score = nullptr;    ///< targets: the decisive score of each target
    SearchResult* result = nullptr;

    static uint64_t scratch_bytes(const SearchShape& shape);
    /// Returns the bytes of all members except the cube.
    static uint64_t state_bytes(const SearchShape& shape);
};

/// A part of the scene on the device, band by band.
struct PrepareTile {
    const float* data = nullptr;
    int64_t line_stride = 0, band_stride = 0; ///< in floats
    int64_t samples = 0, lines = 0;           ///< size of the tile
    int64_t x = 0, y = 0;                     ///< position of the tile in the scene
    int64_t scene_samples = 0;
};

/// Writes a tile's pixels and norms to their positions in work.cube and work.norm; tiles may be on different
/// streams. Asynchronous on `stream` of the current device.
void launch_prepare(const SearchWork& work, const PrepareTile& tile, cudaStream_t stream);

/// Starts the search. All launches of launch_prepare() for the scene must be complete. Asynchronous on
/// `stream` of the current device. Throws Error if the device cannot run the search.
void launch_search(const SearchWork& work, cudaStream_t stream);

} // namespace hsi::atdca::gpu
