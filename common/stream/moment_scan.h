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

class MomentScan final : public CovarianceScan {
  public:
    /// differences: also those of neighbours along a line; `shape` is the scene's.
    MomentScan(const CubeShape& shape, bool differences);
    ~MomentScan() override;
    uint64_t scratch_bytes(const TileLimits& limits) const override;
    uint64_t preferred_bytes() const override;
    std::unique_ptr<Worker> start(int lane, const TileLimits& limits) override;
    void stop(Worker& worker) override;
    /// Differences across the borders of blocks want both sides in one process.
    bool divides() const override { return !m_with_differences; }
    SceneMoments result() const;

  private:
    class ScanWorker;
    /// The last column of a block waits for the first one of its right neighbour, or the other way round:
    /// whoever comes second adds up their pairs, so no tile needs a column more than it owns.
    class Borders {
      public:
        /// `column` (bands x lines) lies on one side of the border; returns the other side when that is here
        /// already, else keeps the column and returns nothing. Thread-safe.
        std::vector<float> meet(std::pair<int64_t, int64_t> border, std::vector<float>&& column);

      private:
        std::mutex m_mutex;
        std::map<std::pair<int64_t, int64_t>, std::vector<float>> m_waiting;
    };

    const int64_t m_scene_samples;
    const bool m_with_differences;
    Borders m_borders;
    int64_t m_pairs = 0;
    math::ExactSums m_difference; ///< of d_a d_b, b <= a, at a (a+1)/2 + b
};

} // namespace hsi::stream
