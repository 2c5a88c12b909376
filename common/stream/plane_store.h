// SPDX-License-Identifier: MIT
// Stores planes (components, class probabilities) between two passes: in memory if they fit, else in an
// unnamed temporary file.
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
    /// Stores the planes in memory from `allocator`.
    explicit PlaneStore(const CubeShape& shape, std::shared_ptr<HostAllocator> allocator = paged_allocator());
    /// Stores the planes in a file in `folder`. The file is removed after it is opened, so it never outlives
    /// the process.
    /// \throws Error if the file cannot be created.
    PlaneStore(const CubeShape& shape, const std::string& folder);
    /// Stores the planes in memory. All ranks use one common memory if they can share memory; otherwise each
    /// rank has its own. All ranks call this function together.
    static std::unique_ptr<PlaneStore> in_memory_of(parallel::Group& ranks, const CubeShape& shape);
    ~PlaneStore();
    PlaneStore(const PlaneStore&) = delete;
    PlaneStore& operator=(const PlaneStore&) = delete;

    bool in_memory() const { return m_file < 0; }
    const CubeShape& shape() const { return m_shape; }
    /// Returns all planes, packed; null if they are in a file.
    const float* data() const { return m_memory.data(); }
    /// Return a source and a sink for some of the planes, in the given order. They must not outlive the
    /// store. At the end of a pass that ranks have shared, the store of each rank contains all tiles.
    std::unique_ptr<CubeSource> source(std::vector<int> planes);
    std::unique_ptr<CubeSink> sink(std::vector<int> planes);
    /// A window of some of the planes.
    struct Part {
        std::vector<int> planes;
        Rect window;
    };
    /// Exchanges the parts of all ranks. `mine` lists the parts of the store that only this rank has written.
    /// Afterwards each rank has all parts or, if rows > 0, at least the lines that it owns (owner()). All
    /// ranks call this function together.
    void share(parallel::Group& ranks, const std::vector<Part>& mine, int64_t rows = 0);
    /// Returns the rank that owns a line. The lines are divided into groups of `rows` lines (a row of tiles),
    /// which are assigned to the ranks in turn.
    static int owner(int64_t line, int64_t rows, int ranks) { return static_cast<int>(line / rows % ranks); }
    /// Reads all planes of a window into `to`, packed. The window may extend beyond the scene on every side:
    /// the scene is repeated periodically there. \throws Error if the file cannot be read.
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
    bool m_common = false; ///< true: all ranks share m_memory
    int m_file = -1;
};

/// Returns the folder for a temporary file of an output: the output's own folder, or the folder of temporary
/// files if the output's folder does not exist on disk (/vsimem/x.tif).
std::string folder_beside(const std::string& output);

} // namespace hsi::stream
