// SPDX-License-Identifier: MIT
// What detections by columns have in common on the processor and on GPUs.
#pragma once

#include "detect/groups/groups.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace hsi::detect {

/// What all workers share.
struct ColumnTask {
    stream::CubeShape scene;
    Columns columns;
    GroupOptions options;
    Decision decision;
    const PixelMask* mask;
    bool finite = true; ///< all values of the targets are
    int scores() const {
        return has_target(options.method) ? static_cast<int>(options.targets.names.size()) : 1;
    }
    /// Of the scene: those of a group, [first, end).
    int64_t first_sample(int64_t group) const {
        return std::max<int64_t>(0, group * columns.width - columns.first);
    }
    int64_t end_sample(int64_t group) const {
        return std::min(scene.samples, (group + 1) * columns.width - columns.first);
    }
    int64_t pixels() const { return std::min(columns.width, scene.samples) * scene.lines; } ///< of a group
    /// Groups whose pixels are put side by side at a time: those of a cache line.
    int64_t batch() const { return std::max<int64_t>(1, 16 / columns.width); }
    /// Numbers of a group; not whole pages, so that the groups do not fall on the same lines of a cache.
    size_t group_values() const {
        return (static_cast<size_t>(scene.bands) * static_cast<size_t>(pixels()) + 1023) / 1024 * 1024 + 48;
    }
};

/// \throws Error when its parts do not go together.
ColumnTask make_column_task(const stream::CubeShape& scene, const Columns& columns,
                            const GroupOptions& options, const Decision& decision, const PixelMask* mask);

/// A lane, and what it has found.
class ColumnLane : public stream::Worker {
  public:
    /// The groups from `first` to before `last`, of which a part at least lies in the tile's core. in: the
    /// tile's window, which has all of them.
    virtual void take_groups(const Tile& tile, const CubeView<float>& in, int64_t first, int64_t last,
                             const std::vector<CubeView<float>>& out) = 0;
    struct Found {
        int64_t group = 0; ///< of the scene, from 0
        GroupRecord record;
    };
    std::vector<Found> found;
    int64_t valid = 0, invalid = 0, in_bad_groups = 0;
};

/// On the processor; `task` must outlive it.
std::unique_ptr<ColumnLane> make_column_lane(const ColumnTask& task);
uint64_t column_lane_bytes(const ColumnTask& task); ///< that it takes

class ColumnDetection : public GroupedDetection {
  public:
    explicit ColumnDetection(ColumnTask task);
    /// Where the scene begins inside of a group, tiles do not begin where groups do: each reads the whole of
    /// those that it has a part of.
    int64_t halo() const override;
    int64_t align_samples() const override { return m_task.columns.width; }
    int64_t align_lines() const override { return m_task.scene.lines; }
    std::vector<int> output_bands() const override;
    void stop(stream::Worker& worker) override;
    void exchange(parallel::Group& ranks) override;
    std::vector<GroupRecord> groups() const override { return m_groups; }

  protected:
    const ColumnTask& task() const { return m_task; }
    void take(const ColumnLane& lane) { take(lane.valid, lane.invalid, lane.in_bad_groups, lane.found); }
    void take(int64_t valid, int64_t invalid, int64_t in_bad_groups,
              const std::vector<ColumnLane::Found>& found);

  private:
    const ColumnTask m_task;
    std::vector<GroupRecord> m_groups;
    std::vector<int64_t> m_mine; ///< groups of this rank
};

} // namespace hsi::detect
