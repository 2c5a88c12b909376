// SPDX-License-Identifier: MIT
// Code that the CPU and GPUs share for detections with groups of columns.
#pragma once

#include "detect/groups/groups.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace hsi::detect {

/// The data that all workers share.
struct ColumnTask : stream::ColumnStrips {
    GroupOptions options;
    Decision decision;
    const PixelMask* mask;
    bool finite = true; ///< true if all values of the targets are finite
    int scores() const {
        return has_target(options.method) ? static_cast<int>(options.targets.names.size()) : 1;
    }
};

/// \throws Error if the parts are inconsistent.
ColumnTask make_column_task(const stream::CubeShape& scene, const Columns& columns,
                            const GroupOptions& options, const Decision& decision, const PixelMask* mask);

/// A worker that processes groups of columns. It collects the records of its groups and counts its pixels.
class ColumnLane : public stream::Worker {
  public:
    /// Processes the groups first .. last - 1, each of which has samples in the tile's core. in: the tile's
    /// window, which contains all pixels of these groups.
    virtual void take_groups(const Tile& tile, const CubeView<float>& in, int64_t first, int64_t last,
                             const std::vector<CubeView<float>>& out) = 0;
    using Found = stream::ColumnRecords<GroupRecord>::Found;
    std::vector<Found> found;
    int64_t valid = 0, invalid = 0, in_bad_groups = 0;
};

/// Makes a worker that uses the CPU. `task` must outlive the worker.
std::unique_ptr<ColumnLane> make_column_lane(const ColumnTask& task);
uint64_t column_lane_bytes(const ColumnTask& task); ///< Returns the bytes of such a worker.

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
