// SPDX-License-Identifier: MIT
// The whole ATDCA search on one GPU in one cooperative launch, on raw device pointers: what the module, the
// tests and the benchmark launch.
//
// The targets are those of the CPU, bit for bit in their scores: the basis and every decisive score are
// computed as basis.h defines them (32 strands a dot product are the lanes of a warp; no fused multiply and
// add), and pixels are screened by faster sums in double precision with basis.h's error bounds.
//
// The scene lies on the device pixel after pixel, so that one pixel's spectrum is read without its
// neighbours': launch_prepare() turns tiles of bands into that, and takes the norms on the way.
//
// OSP looks at few pixels: ||P x||^2 never grows as targets are added, so the score of a pixel from its last
// visit bounds it. For each target every block first brings its most promising pixels up to date; the best of
// those scores, less the error, is a lower bound of the target's score, and pixels whose old score stays
// below it are not visited. A visit applies all targets that the pixel has missed. Groups of 32 pixels have
// the greatest of their scores at hand.
#pragma once

#include "core/host_device.h"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace hsi::atdca::gpu {

/// Pixels whose greatest score is kept; a warp's lanes.
constexpr int group = 32;

struct SearchShape {
    int bands = 0;
    int64_t pixels = 0; ///< in order of line, then sample
    int targets = 0;
    bool gs = false, sign = false;

    HSI_HOST_DEVICE int64_t groups() const { return (pixels + group - 1) / group; }
    /// Pixels, rounded up to whole groups.
    HSI_HOST_DEVICE int64_t pitch() const { return groups() * group; }
    /// Floats of a pixel's spectrum on the device; zeros follow the last band.
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
    unsigned long long visits; ///< pixels looked at in the search, a pixel at every visit
};

/// Device pointers; sizes in elements. Whatever is in them before does not matter, except what
/// launch_prepare() put there.
struct SearchWork {
    SearchShape shape;
    float* cube = nullptr;            ///< pixels x row(); launch_prepare() fills it
    double* norm = nullptr;           ///< pitch(); the same; minus infinity for invalid pixels
    double* score = nullptr;          ///< pitch()
    double* greatest = nullptr;       ///< groups()
    int* applied = nullptr;           ///< pitch()
    double* basis = nullptr;          ///< targets x bands
    unsigned char* scratch = nullptr; ///< scratch_bytes()
    int64_t* found = nullptr;         ///< targets: pixel
    double* found_score = nullptr;    ///< targets
    SearchResult* result = nullptr;

    static uint64_t scratch_bytes(const SearchShape& shape);
    /// All but the cube.
    static uint64_t state_bytes(const SearchShape& shape);
};

/// A part of the scene on the device, band after band.
struct PrepareTile {
    const float* data = nullptr;
    int64_t line_stride = 0, band_stride = 0; ///< floats
    int64_t samples = 0, lines = 0;           ///< of the tile
    int64_t x = 0, y = 0;                     ///< where it lies in the scene
    int64_t scene_samples = 0;
};

/// Puts a tile's pixels and norms into their places in work.cube and work.norm; tiles may follow one another
/// on different streams. Asynchronous on `stream` of the current device.
void launch_prepare(const SearchWork& work, const PrepareTile& tile, cudaStream_t stream);

/// Once all pixels of the scene are prepared. Asynchronous on `stream` of the current device. Throws Error
/// when the device cannot run it.
void launch_search(const SearchWork& work, cudaStream_t stream);

} // namespace hsi::atdca::gpu
