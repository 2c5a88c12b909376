// SPDX-License-Identifier: MIT
// The whole ATDCA search on one GPU in one cooperative launch, on raw device pointers: what the module, the tests and
// the benchmark launch.
//
// The targets are those of the CPU, bit for bit in their scores: the basis and every decisive score are computed as
// basis.h defines them (32 strands a dot product are the lanes of a warp; no fused multiply and add), and pixels are
// screened by faster sums in double precision with basis.h's error bounds.
//
// OSP looks at few pixels: ||P x||^2 never grows as targets are added, so the score of a group of 32 pixels from its last
// visit bounds it. For each target every block first brings its most promising group up to date; the best of those
// scores, less the error, is a lower bound of the target's score, and groups whose old score stays below it are not
// visited. A visit applies all targets that the group has missed in one pass over its spectra.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#ifdef __CUDACC__
#define HSI_ATDCA_BOTH __host__ __device__
#else
#define HSI_ATDCA_BOTH
#endif

namespace hsi::atdca::gpu {

/// Pixels that share a bound; a warp's lanes.
constexpr int group = 32;

struct SearchShape {
    int bands = 0;
    int64_t pixels = 0; ///< in order of line, then sample
    int targets = 0;
    bool gs = false, sign = false;

    HSI_ATDCA_BOTH int64_t groups() const { return (pixels + group - 1) / group; }
    /// Floats from a band of the cube to the next: a multiple of 32.
    HSI_ATDCA_BOTH int64_t pitch() const { return groups() * group; }
    HSI_ATDCA_BOTH uint64_t cube_bytes() const { return static_cast<uint64_t>(pitch()) * static_cast<uint64_t>(bands) * 4; }
};

enum class End : int { complete = 0, rank = 1, nothing_positive = 2, p_vanished = 3 };

struct SearchResult {
    int found;
    End end;
    unsigned long long valid;  ///< valid pixels
    unsigned long long visits; ///< groups looked at, all passes together
};

/// Device pointers; sizes in elements. Whatever is in them before does not matter, except that of the cube.
struct SearchWork {
    SearchShape shape;
    const float* cube = nullptr; ///< bands x pitch(); pixels from `pixels` on are not read as targets
    double* norm = nullptr;      ///< pitch()
    double* score = nullptr;     ///< pitch()
    double* greatest = nullptr;  ///< groups()
    int* applied = nullptr;      ///< groups()
    double* basis = nullptr;     ///< targets x bands
    unsigned char* scratch = nullptr; ///< scratch_bytes()
    int64_t* found = nullptr;         ///< targets: pixel
    double* found_score = nullptr;    ///< targets
    SearchResult* result = nullptr;

    static uint64_t scratch_bytes(const SearchShape& shape);
    /// All but the cube.
    static uint64_t state_bytes(const SearchShape& shape);
};

/// Asynchronous on `stream` of the current device. Throws Error when the device cannot run it.
void launch_search(const SearchWork& work, cudaStream_t stream);

} // namespace hsi::atdca::gpu
