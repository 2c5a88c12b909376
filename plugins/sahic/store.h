// SPDX-License-Identifier: MIT
// Probabilities and weights between the pass that makes them and the smoothing: in memory when they fit, else
// in a temporary file that has no name.
#pragma once

#include "core/host_memory.h"
#include "stream/cube_source.h"

#include <memory>
#include <string>

namespace hsi::sahic {

class Store {
  public:
    /// shape.bands planes, in memory from `from`.
    Store(const stream::CubeShape& shape, std::shared_ptr<HostAllocator> from);
    /// In a file in `folder` that is removed as soon as it is open: nothing stays behind, however the process
    /// ends. Throws Error when it cannot be made.
    Store(const stream::CubeShape& shape, const std::string& folder);
    ~Store();
    Store(const Store&) = delete;
    Store& operator=(const Store&) = delete;

    bool in_memory() const { return m_file < 0; }
    /// All planes, packed; null when they are in a file.
    const float* data() const { return m_memory.data(); }
    /// Planes [first, first + count); lives no longer than the store.
    std::unique_ptr<stream::CubeSink> sink(int first, int count);
    /// All planes of a window into `to`, packed. The window may leave the scene on every side: lines and
    /// samples there are those of a scene that wraps round.
    void read(const Rect& window, float* to) const;

  private:
    class Sink;
    void read_row(int plane, int64_t line, int64_t sample, int64_t count, float* to) const;
    void write_row(int plane, int64_t line, int64_t sample, int64_t count, const float* from);
    int64_t position(int plane, int64_t line, int64_t sample) const {
        return (plane * m_shape.lines + line) * m_shape.samples + sample;
    }
    const stream::CubeShape m_shape;
    HostBuffer<float> m_memory;
    int m_file = -1;
};

} // namespace hsi::sahic
