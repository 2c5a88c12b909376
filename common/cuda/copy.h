// SPDX-License-Identifier: MIT
// Copies cubes between host and device.
#pragma once

#include "core/cube_view.h"
#include "core/process_owner.h"
#include "cuda/check.h"
#include "cuda/device_buffer.h"

#include <cstddef>

namespace hsi::cuda {

/// Copies a cube between host and device, or on the device, with any strides on both sides. The copy is
/// asynchronous if the host's memory is pinned. If the lines are contiguous on both sides, one call of CUDA
/// copies all bands; otherwise each band takes one call.
inline void copy_cube(const CubeView<float>& to, const CubeView<float>& from, cudaStream_t stream) {
    constexpr cudaMemcpyKind kind = cudaMemcpyDefault;
    if (from.bands == 0 || from.lines == 0 || from.samples == 0) return;
    const auto packed_lines = [](const CubeView<float>& v) { return v.line_stride == v.samples; };
    const auto bytes = [](int64_t floats) { return static_cast<size_t>(floats) * sizeof(float); };
    const auto bands = static_cast<size_t>(from.bands), lines = static_cast<size_t>(from.lines);
    // CUDA's limit for a two-dimensional copy, in bytes
    constexpr size_t widest_pitch = (size_t{1} << 31) - 1;
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

/// Returns whether a cube is in the memory of a device.
inline bool on_device(const CubeView<float>& cube) {
    cudaPointerAttributes known{};
    HSI_CUDA_CHECK(cudaPointerGetAttributes(&known, cube.data));
    return known.type == cudaMemoryTypeDevice || known.type == cudaMemoryTypeManaged;
}

/// Returns the buffer for tiles with which a worker starts. In a tool, the buffer has `most` floats. In a
/// library, it is empty, since tiles may already be on the device. TileInput and TileOutput then allocate the
/// buffer on demand, from memory that the library keeps.
inline DeviceBuffer<float> first_tile_buffer(size_t most) {
    return process_is_ours() ? DeviceBuffer<float>(most) : DeviceBuffer<float>();
}

/// The input tiles of a worker on its device. A tile is used in place if it is on the device and packed, else
/// it is copied to a buffer.
class TileInput {
  public:
    /// most: the number of floats of a tile.
    explicit TileInput(size_t most) : m_most(most), m_buffer(first_tile_buffer(most)) {}
    /// Returns the tile's values, packed.
    const float* packed(const CubeView<float>& in, cudaStream_t stream) {
        if (in.is_packed() && on_device(in)) return in.data;
        if (m_buffer.size() == 0) m_buffer = DeviceBuffer<float>(m_most);
        copy_cube(CubeView<float>::packed(m_buffer.data(), in.bands, in.lines, in.samples), in, stream);
        return m_buffer.data();
    }

  private:
    size_t m_most;
    DeviceBuffer<float> m_buffer;
};

/// An output of a worker on its device. Kernels write to the destination itself if it is on the device and
/// packed, else to a buffer.
class TileOutput {
  public:
    /// most: the number of floats of a tile; 0: the output does not exist.
    explicit TileOutput(size_t most) : m_most(most), m_buffer(first_tile_buffer(most)) {}
    /// Returns the address to which kernels write the output of this tile, packed.
    float* begin(const CubeView<float>& out) {
        m_out = out;
        m_there = out.is_packed() && on_device(out);
        return m_there ? out.data : scratch();
    }
    /// Returns the buffer, for a worker that needs scratch memory instead of this output.
    float* scratch() {
        if (m_buffer.size() == 0) m_buffer = DeviceBuffer<float>(m_most);
        return m_buffer.data();
    }
    /// Copies the output from the buffer to the destination, unless the kernels write to the destination
    /// itself. Call this function after the kernels are launched on `stream`.
    void end(cudaStream_t stream) {
        if (m_there) return;
        copy_cube(m_out, CubeView<float>::packed(m_buffer.data(), m_out.bands, m_out.lines, m_out.samples),
                  stream);
    }

  private:
    size_t m_most;
    DeviceBuffer<float> m_buffer;
    CubeView<float> m_out;
    bool m_there = false;
};

} // namespace hsi::cuda
