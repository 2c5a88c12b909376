// SPDX-License-Identifier: MIT
// Mean, covariance and, on request, the covariance of the differences of neighbours, all in double precision:
// for decisions that hang on the last digits of a matrix, such as its inverse, where CovarianceScan's
// products in single precision would not do.
//
// Sums are taken over the same fixed blocks as those of CovarianceScan and added without rounding, so the
// result is the same to the last bit for every tiling and number of threads. It errs by about 1e-15 of the
// bands' variances, on whatever level they lie.
#pragma once

#include "stream/covariance_scan.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace hsi::stream {

struct SceneMoments : SceneCovariance {
    /// Pixels (line, sample) and (line, sample + 1) that are both valid.
    int64_t pairs = 0;
    /// bands x bands: the mean of d d', d their difference; empty unless asked for, NaN without a pair.
    std::vector<double> differences;
};

/// Exact sums over blocks, of pixels and of pairs.
struct MomentSums : CovarianceSums {
    MomentSums(int bands, bool with_differences);
    /// A block of `count` valid pixels, count at most 2^13: total[b] = sum of x_b - centre_b, scatter = sums
    /// of (x_a - centre_a)(x_b - centre_b), for any centre.
    void add_pixels(int64_t count, const float* centre, const double* total, const LowerRows& scatter);
    /// `count` pairs: sums of d_a d_b.
    void add_pairs(int64_t count, const LowerRows& scatter);

    int64_t pairs = 0;
    math::ExactSums differences; ///< of d_a d_b, b <= a, at a (a+1)/2 + b
};

/// The last column of a block waits for the first one of its right neighbour, or the other way round: whoever
/// comes second adds up their pairs, so no tile needs a column more than it owns.
class BorderColumns {
  public:
    /// The first sample right of it, the first line.
    using Border = std::pair<int64_t, int64_t>;
    /// Of a block, bands x lines.
    struct Column {
        bool left = false; ///< of the border
        std::vector<float> values;
    };
    /// Returns the other side when that is here already, else keeps the column and returns nothing.
    /// Thread-safe.
    std::vector<float> meet(const Border& border, Column&& column);
    /// Those whose neighbours have not come.
    std::map<Border, Column> take_waiting() { return std::exchange(m_waiting, {}); }
    /// At most, of a tile of such a scene.
    static uint64_t bytes(const CubeShape& scene, const TileLimits& limits);

  private:
    std::mutex m_mutex;
    std::map<Border, Column> m_waiting;
};

/// Pairs across the borders of blocks, added up on the CPU: one worker's. They are one pair in 1024.
class BorderPairs {
  public:
    /// run and scatter: run_size() and scatter_size() numbers to work in, which outlive this.
    BorderPairs(BorderColumns& columns, int64_t scene_samples, int bands, double* run, double* scatter);
    static size_t run_size(int bands);
    static size_t scatter_size(int bands);
    /// A block of the scene (covariance_block_samples x covariance_block_lines, or less at its end) whose
    /// corner is (x, y) there meets its left and right neighbours.
    void add(const CubeView<float>& block, int64_t x, int64_t y, MomentSums& sums);
    /// The pairs of two columns, bands x lines, that lie side by side.
    void add_border(const std::vector<float>& left, const std::vector<float>& right, MomentSums& sums);

  private:
    void meet(const CubeView<float>& block, int64_t sample, const BorderColumns::Border& border, bool left,
              MomentSums& sums);

    BorderColumns& m_columns;
    const int64_t m_samples;
    const int m_bands;
    double *m_run, *m_scatter;
};

class MomentScan : public CovarianceScan {
  public:
    /// differences: also those of neighbours along a line; `shape` is the scene's.
    MomentScan(const CubeShape& shape, bool differences);
    ~MomentScan() override;
    uint64_t scratch_bytes(const TileLimits& limits) const override;
    uint64_t preferred_bytes() const override;
    std::unique_ptr<Worker> start(int lane, const TileLimits& limits) override;
    void stop(Worker& worker) override;
    void exchange(parallel::Group& ranks) override;
    SceneMoments result() const;

  protected:
    /// For other backends: adds what a worker has gathered.
    void merge_moments(const MomentSums& sums);
    BorderColumns& columns() { return m_columns; }
    int64_t scene_samples() const { return m_scene.samples; }

  private:
    class ScanWorker;
    void meet_other_ranks(parallel::Group& ranks);

    const CubeShape m_scene;
    const bool m_with_differences;
    BorderColumns m_columns;
    int64_t m_pairs = 0;
    math::ExactSums m_difference; ///< of d_a d_b, b <= a, at a (a+1)/2 + b
};

} // namespace hsi::stream
