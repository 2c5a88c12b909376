// SPDX-License-Identifier: MIT
// Groups of neighbouring columns, such as the detectors of a pushbroom scanner. Each group is processed as a
// whole: a tile has all lines of its groups, and the pixels of a group are packed next to each other.
#pragma once

#include "core/byte_pack.h"
#include "core/cube_view.h"
#include "core/tile_plan.h"
#include "parallel/group.h"
#include "stream/cube_source.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hsi::stream {

/// Assigns sample s of a scene to group (first + s) / width.
struct Columns {
    int64_t first = 0; ///< sample of the file at which the scene begins
    int64_t width = 1;
    int64_t group(int64_t sample) const { return (first + sample) / width; }
    int64_t count(int64_t samples) const { return group(samples - 1) - group(0) + 1; }
};

/// The groups of a scene.
struct ColumnStrips {
    CubeShape scene;
    Columns columns;

    /// The samples of a group in the scene are [first_sample(), end_sample()).
    int64_t first_sample(int64_t group) const {
        return std::max<int64_t>(0, group * columns.width - columns.first);
    }
    int64_t end_sample(int64_t group) const {
        return std::min(scene.samples, (group + 1) * columns.width - columns.first);
    }
    /// Largest number of pixels of a group.
    int64_t pixels() const { return std::min(columns.width, scene.samples) * scene.lines; }
    /// Returns the halo of tiles. It is needed if the scene begins within a group, because tiles then do not
    /// begin where groups begin, and each tile must read its groups completely.
    int64_t halo() const { return columns.first % columns.width == 0 ? 0 : columns.width - 1; }
    /// Returns the number of groups that are packed at a time: as many as fill a cache line with the values
    /// of one line of the scene.
    int64_t batch() const { return std::max<int64_t>(1, 16 / columns.width); }
    /// Returns the number of values of a group. The number is not a multiple of a page, so that the groups do
    /// not use the same cache lines.
    size_t group_values() const {
        return (static_cast<size_t>(scene.bands) * static_cast<size_t>(pixels()) + 1023) / 1024 * 1024 + 48;
    }
    /// Copies the pixels of the groups [group, end), at most batch() groups, to `packed`. Each group takes
    /// group_values() numbers, in the order [band][line][sample]. in: the values of the tile's window, which
    /// contains all these pixels.
    void pack(const Tile& tile, const CubeView<float>& in, int64_t group, int64_t end, float* packed) const;
};

/// Collects the results of a pass, one for each group of a scene. take() adds the results of a worker, and
/// exchange() the results of the other ranks.
template <class Record>
class ColumnRecords {
  public:
    struct Found {
        int64_t group = 0; ///< index of the group in the scene, from 0
        Record record;
    };
    explicit ColumnRecords(const ColumnStrips& strips)
        : m_all(static_cast<size_t>(strips.columns.count(strips.scene.samples))) {}
    void take(const std::vector<Found>& found) {
        for (const auto& one : found) {
            m_all[static_cast<size_t>(one.group)] = one.record;
            m_mine.push_back(one.group);
        }
    }
    void exchange(parallel::Group& ranks) {
        BytePacker mine;
        for (const int64_t g : m_mine)
            mine.put(g).put(m_all[static_cast<size_t>(g)]);
        for (const auto& bytes : ranks.all("groups", mine.take()))
            for (ByteUnpacker in(bytes); !in.empty();) {
                const auto g = in.one<int64_t>();
                in.get(m_all[static_cast<size_t>(g)]);
            }
    }
    const std::vector<Record>& all() const { return m_all; } ///< complete after exchange()

  private:
    std::vector<Record> m_all;
    std::vector<int64_t> m_mine; ///< groups that this rank has computed
};

} // namespace hsi::stream
