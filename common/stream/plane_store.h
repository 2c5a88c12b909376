// SPDX-License-Identifier: MIT
// Planes between two passes (components, class probabilities): in memory if they fit, else in an unnamed
// temporary file.
#pragma once

#include "core/host_memory.h"
#include "stream/cube_source.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hsi::parallel {
class Group;
}

namespace hsi::stream {

class PlaneStore {
  public:
    /// In memory from `allocator`.
    explicit PlaneStore(const CubeShape& shape, std::shared_ptr<HostAllocator> allocator = paged_allocator());
    /// In a file in `folder` that is removed as soon as it is open, so that it does not stay after the
    /// process. \throws Error when it cannot be made.
    PlaneStore(const CubeShape& shape, const std::string& folder);
    /// In memory, by all ranks together: one store for all of them if they can share memory, else one each.
    static std::unique_ptr<PlaneStore> in_memory_of(parallel::Group& ranks, const CubeShape& shape);
    ~PlaneStore();
    PlaneStore(const PlaneStore&) = delete;
    PlaneStore& operator=(const PlaneStore&) = delete;

    bool in_memory() const { return m_file < 0; }
    const CubeShape& shape() const { return m_shape; }
    /// All planes, packed; null when they are in a file.
    const float* data() const { return m_memory.data(); }
    /// Some of the planes, in this order. Both live no longer than the store. At the end of a shared pass
    /// each rank has all of it in its sinks.
    std::unique_ptr<CubeSource> source(std::vector<int> planes);
    std::unique_ptr<CubeSink> sink(std::vector<int> planes);
    /// A window of some of the planes.
    struct Part {
        std::vector<int> planes;
        Rect window;
    };
    /// All ranks call it together: `mine` is the part of the store that this rank alone has written.
    /// Afterwards each has the parts of all or, if rows > 0, at least its own lines.
    void share(parallel::Group& ranks, const std::vector<Part>& mine, int64_t rows = 0);
    /// The rank that owns a line, when runs of `rows` lines (a row of tiles) go to the ranks in turn.
    static int owner(int64_t line, int64_t rows, int ranks) { return static_cast<int>(line / rows % ranks); }
    /// Reads all planes of a window into `to`, packed. The window may leave the scene on every side: lines
    /// and samples there come from a scene that wraps round. \throws Error when the file cannot be read.
    void read(const Rect& window, float* to) const;

  private:
    class Source;
    class Sink;
    void read_row(int plane, int64_t line, int64_t sample, int64_t count, float* to) const;
    void write_row(int plane, int64_t line, int64_t sample, int64_t count, const float* from);
    int64_t position(int plane, int64_t line, int64_t sample) const {
        return (plane * m_shape.lines + line) * m_shape.samples + sample;
    }

    const CubeShape m_shape;
    HostBuffer<float> m_memory;
    bool m_common = false; ///< to all ranks
    int m_file = -1;
};

/// The folder for a file next to an output: the output's own, or the folder of temporary files if the output
/// is not an ordinary file (/vsimem/x.tif).
std::string folder_beside(const std::string& output);

} // namespace hsi::stream
