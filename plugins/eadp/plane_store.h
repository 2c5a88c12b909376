// SPDX-License-Identifier: MIT
// Planes between two passes: in memory when they fit, else in a temporary file that has no name.
#pragma once

#include "core/host_memory.h"
#include "stream/cube_source.h"

#include <memory>
#include <string>
#include <vector>

namespace hsi::eadp {

class PlaneStore {
  public:
    /// In memory.
    explicit PlaneStore(const stream::CubeShape& shape);
    /// In a file in `folder` that is removed as soon as it is open: nothing stays behind, however the process
    /// ends. Throws Error when it cannot be made.
    PlaneStore(const stream::CubeShape& shape, const std::string& folder);
    ~PlaneStore();
    PlaneStore(const PlaneStore&) = delete;
    PlaneStore& operator=(const PlaneStore&) = delete;

    bool in_memory() const { return m_file < 0; }
    const stream::CubeShape& shape() const { return m_shape; }
    /// Some of the planes, in this order. Both live no longer than the store.
    std::unique_ptr<stream::CubeSource> source(std::vector<int> planes);
    std::unique_ptr<stream::CubeSink> sink(std::vector<int> planes);

  private:
    class Source;
    class Sink;
    void read(int plane, int64_t line, int64_t sample, int64_t count, float* to) const;
    void write(int plane, int64_t line, int64_t sample, int64_t count, const float* from);
    uint64_t position(int plane, int64_t line, int64_t sample) const {
        return (static_cast<uint64_t>(plane) * static_cast<uint64_t>(m_shape.lines) +
                static_cast<uint64_t>(line)) *
                   static_cast<uint64_t>(m_shape.samples) +
               static_cast<uint64_t>(sample);
    }

    const stream::CubeShape m_shape;
    HostBuffer<float> m_memory;
    int m_file = -1;
};

} // namespace hsi::eadp
