// SPDX-License-Identifier: MIT
// Code that the filters on the CPU and on GPUs share.
#pragma once

#include "gas/gas.h"

#include <cstdint>
#include <vector>

namespace hsi::gas {

/// Unit of amounts in mag1c, in ppm m; the constants of its regularisation refer to this unit.
inline constexpr double mag1c_unit = 1e5;
/// Added to the amount in the denominator of the sparsity term, in units of mag1c_unit.
inline constexpr double least_amount = 1e-9;
inline constexpr double least_pivot = 1e-12;   ///< smallest squared pivot, relative to the diagonal element
inline constexpr double least_radiance = 1e-5; ///< smallest radiance under the square root of the noise model

/// The data that all workers share: the scene, its groups of columns, the options, and the mask.
struct FilterTask : stream::ColumnStrips {
    FilterOptions options;
    const stream::PixelMask* mask = nullptr;
    bool is_mag1c() const { return options.method == Method::mag1c; }
    bool is_log() const { return options.method == Method::lognormal; }
    bool shrinks() const { return options.ledoit_wolf || options.shrinkage > 0; }
    /// Returns the indices of the bands of the first output that the second output repeats
    /// (FilterOptions::keep).
    std::vector<int> kept() const;
};

/// Creates the task. \throws Error if the scene, the options and the mask do not match.
FilterTask make_task(const stream::CubeShape& scene, const stream::Columns& columns,
                     const FilterOptions& options, const stream::PixelMask* mask);

/// A worker that filters groups of columns. It collects the records of its groups and counts its pixels;
/// ColumnFilter::stop() adds them to the results of the pass.
class FilterLane : public stream::Worker {
  public:
    std::vector<stream::ColumnRecords<GroupRecord>::Found> found;
    int64_t valid = 0, invalid = 0, in_bad_groups = 0, dark = 0;

  protected:
    /// Copies the bands of FilterTask::kept() from the first output to the second output, if a second output
    /// is requested.
    static void copy_kept(const FilterTask& task, const std::vector<CubeView<float>>& out);
};

/// The common part of filters on the CPU and on GPUs, whose workers are FilterLanes.
class ColumnFilter : public Filter {
  public:
    explicit ColumnFilter(FilterTask task);
    int64_t halo() const override { return m_task.halo(); }
    int64_t align_samples() const override { return m_task.columns.width; }
    int64_t align_lines() const override { return m_task.scene.lines; }
    std::vector<int> output_bands() const override;
    void stop(stream::Worker& worker) override;
    bool divides() const override { return true; }
    void exchange(parallel::Group& ranks) override;
    const std::vector<GroupRecord>& groups() const override { return m_records.all(); }

  protected:
    const FilterTask& task() const { return m_task; }

  private:
    const FilterTask m_task;
    stream::ColumnRecords<GroupRecord> m_records;
};

} // namespace hsi::gas
