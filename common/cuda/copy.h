// SPDX-License-Identifier: MIT
#pragma once

#include "core/cube_view.h"
#include "cuda/check.h"

#include <cstddef>

namespace hsi::cuda {

/// Copies a cube between host and device, any strides on both sides; asynchronous when the host's memory is
/// pinned. Where whole lines follow one another, a band is one run.
inline void copy_cube(const CubeView<float>& to, const CubeView<float>& from, cudaMemcpyKind kind,
                      cudaStream_t stream) {
    if (from.bands == 0 || from.lines == 0 || from.samples == 0) return;
    const auto packed_lines = [](const CubeView<float>& v) { return v.line_stride == v.samples; };
    const auto bytes = [](int64_t floats) { return static_cast<size_t>(floats) * sizeof(float); };
    const auto bands = static_cast<size_t>(from.bands), lines = static_cast<size_t>(from.lines);
    constexpr size_t widest_pitch = (size_t{1} << 31) - 1; // of a copy in two dimensions
    if (packed_lines(to) && packed_lines(from) && bytes(to.band_stride) <= widest_pitch &&
        bytes(from.band_stride) <= widest_pitch) {
        HSI_CUDA_CHECK(cudaMemcpy2DAsync(to.data, bytes(to.band_stride), from.data, bytes(from.band_stride),
                                         bytes(from.lines * from.samples), bands, kind, stream));
        return;
    }
    for (size_t b = 0; b < bands; ++b)
        HSI_CUDA_CHECK(cudaMemcpy2DAsync(to.row(static_cast<int>(b), 0), bytes(to.line_stride),
                                         from.row(static_cast<int>(b), 0), bytes(from.line_stride),
                                         bytes(from.samples), lines, kind, stream));
}

} // namespace hsi::cuda
