// SPDX-License-Identifier: MIT
// The tiles of the workers of the CUDA backend. A tile is in a worker's own buffer, or in a scene that stays
// on the device from one pass to the next.
#pragma once

#include "core/error.h"
#include "cuda/copy.h"
#include "cuda/device_buffer.h"
#include "pca/pca_cuda_kernels.cuh"
#include "stream/operation.h"

#include <atomic>
#include <memory>
#include <string>
#include <utility>

namespace hsi::pca {

inline size_t window_pixels(const stream::TileLimits& l) {
    return static_cast<size_t>(l.window_samples * l.window_lines);
}

/// Returns the maximum number of statistics blocks of a tile.
inline size_t most_blocks(const stream::TileLimits& l) {
    const auto up = [](int64_t a, int64_t b) { return static_cast<size_t>((a + b - 1) / b); };
    return up(l.window_samples, gpu::block_samples) * up(l.window_lines, gpu::block_lines);
}

/// A scene in device memory, which the workers of one pass write.
struct HeldScene {
    HeldScene(int device, const stream::CubeShape& s)
        : ordinal(device), shape(s), values(static_cast<size_t>(s.float_bytes() / sizeof(float))) {}
    CubeView<float> view() const {
        return CubeView<float>::packed(values.data(), shape.bands, shape.lines, shape.samples);
    }
    bool complete() const { return pixels.load() == shape.pixels(); }

    const int ordinal;
    const stream::CubeShape shape;
    cuda::DeviceBuffer<float> values;
    std::atomic<int64_t> pixels{0};
};

/// A worker's tile, in its own buffer or at its position in the kept scene.
class LaneTile {
  public:
    LaneTile(std::shared_ptr<HeldScene> scene, int bands, const stream::TileLimits& l)
        : m_scene(std::move(scene)), m_most(static_cast<size_t>(bands) * window_pixels(l)),
          m_own(m_scene ? cuda::DeviceBuffer<float>() : cuda::first_tile_buffer(m_most)), m_bands(bands) {}
    static uint64_t bytes(bool held, int bands, const stream::TileLimits& l) {
        return held ? 0 : window_pixels(l) * 4 * static_cast<uint64_t>(bands);
    }
    /// Returns uninitialised device memory for the tile.
    CubeView<float> place(const Rect& window) {
        if (!m_scene && m_own.size() == 0) m_own = cuda::DeviceBuffer<float>(m_most);
        return m_scene ? m_scene->view().cut(window.x, window.y, window.w, window.h)
                       : CubeView<float>::packed(m_own.data(), m_bands, window.h, window.w);
    }
    /// Returns the tile on the device. If the tile is already on the device, and the scene is not kept, the
    /// tile is not copied. Otherwise it is copied to place().
    gpu::TileView taken(const Rect& window, const CubeView<float>& in, cudaStream_t stream) {
        if (!m_scene && cuda::on_device(in)) return view(in);
        const auto to = place(window);
        cuda::copy_cube(to, in, stream);
        return view(to);
    }
    static gpu::TileView view(const CubeView<float>& v) {
        return {v.data,
                v.bands,
                static_cast<int>(v.samples),
                static_cast<int>(v.lines),
                static_cast<size_t>(v.line_stride),
                static_cast<size_t>(v.band_stride)};
    }

  private:
    const std::shared_ptr<HeldScene> m_scene;
    const size_t m_most;
    cuda::DeviceBuffer<float> m_own;
    const int m_bands;
};

} // namespace hsi::pca
