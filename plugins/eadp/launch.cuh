// SPDX-License-Identifier: MIT
// Launch parameters that the kernels' source files share on the host.
#pragma once

#include "cuda/check.h"
#include "eadp/eadp_cuda_kernels.cuh"

#include <algorithm>

namespace hsi::eadp::gpu {

constexpr int threads = 256;

inline unsigned blocks_for(size_t n) { return static_cast<unsigned>((n + threads - 1) / threads); }

inline int multiprocessors_of(int ordinal) {
    int n = 0;
    HSI_CUDA_CHECK(cudaDeviceGetAttribute(&n, cudaDevAttrMultiProcessorCount, ordinal));
    return n;
}

/// Returns the grid of scans, in which each block processes several lines of the core.
inline dim3 scan_grid(Core core, int components) {
    return dim3(static_cast<unsigned>(std::clamp(core.h, 1, 264)), static_cast<unsigned>(components));
}

} // namespace hsi::eadp::gpu
