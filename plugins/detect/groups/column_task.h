// SPDX-License-Identifier: MIT
// Shared code of detections by columns on the processor and on GPUs.
#pragma once

#include "detect/groups/groups.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace hsi::detect {

/// Data shared by all workers.
struct ColumnTask : stream::ColumnStrips {
    GroupOptions options;
    Decision decision;
    const PixelMask* mask;
    bool finite = true; ///< all values of the targets are
    int scores() const {
        return has_target(options.method) ? static_cast<int>(options.targets.names.size()) : 1;
    }
};

/// \throws Error when its parts do not go together.
ColumnTask make_column_task(const stream::CubeShape& scene, const Columns& columns,
                            const GroupOptions& options, const Decision& decision, const PixelMask* mask);

/// A lane with its findings.
class ColumnLane : public stream::Worker {
  public:
    /// The groups from `first` to before `last`, at least a part of each in the tile's core. in: the tile's
    /// window, which has all of them.
    virtual void take_groups(const Tile& tile, const CubeView<float>& in, int64_t first, int64_t last,
                             const std::vector<CubeView<float>>& out) = 0;
    using Found = stream::ColumnRecords<GroupRecord>::Found;
    std::vector<Found> found;
    int64_t valid = 0, invalid = 0, in_bad_groups = 0;
};

/// On the processor; `task` must outlive it.
std::unique_ptr<ColumnLane> make_column_lane(const ColumnTask& task);
uint64_t column_lane_bytes(const ColumnTask& task); ///< that it takes

class ColumnDetection : public GroupedDetection {
  public:
    explicit ColumnDetection(ColumnTask task);
    int64_t halo() const override { return m_task.halo(); }
    int64_t align_samples() const override { return m_task.columns.width; }
    int64_t align_lines() const override { return m_task.scene.lines; }
    std::vector<int> output_bands() const override;
    void stop(stream::Worker& worker) override;
    void exchange(parallel::Group& ranks) override;
    std::vector<GroupRecord> groups() const override { return m_records.all(); }

  protected:
    const ColumnTask& task() const { return m_task; }
    void take(const ColumnLane& lane) { take(lane.valid, lane.invalid, lane.in_bad_groups, lane.found); }
    void take(int64_t valid, int64_t invalid, int64_t in_bad_groups,
              const std::vector<ColumnLane::Found>& found);

  private:
    const ColumnTask m_task;
    stream::ColumnRecords<GroupRecord> m_records;
};

} // namespace hsi::detect
