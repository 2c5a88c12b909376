// SPDX-License-Identifier: MIT
// The statistics of a scene's valid pixels, in one scan: the mean of every band and, where asked for, the
// covariance of the bands and that of the differences of neighbours.
//
// Sums are taken over fixed blocks of pixels anchored at the scene's origin, and the blocks are added without
// rounding (stream/statistics_sums.h): the result is the same to the last bit for every tiling and number of
// threads and ranks. On whatever level values lie, what level and products have in common is added, and
// cancels, without rounding.
#pragma once

#include "stream/operation.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace hsi::stream {

/// What a scan adds up. The three ways to a covariance differ in speed and in its last digits.
enum class Statistics {
    /// The mean of every band, which all others have, too.
    means,
    /// The covariance. A few hundred pixels at a time are centred on their own means and multiplied in single
    /// precision, then added up in double. Errs by about 1e-9 of the whole variance with ten thousand pixels
    /// and less with more.
    covariance,
    /// The same with products in double precision, where the least eigenvalues count (an inverse, a rank).
    double_covariance,
    /// The covariance in double precision of what pixels differ by from one of their block: where values are
    /// whole numbers, hardly anything is rounded. Errs by about 1e-15 of the bands' variances.
    moments,
    /// Moments, and those of the differences of neighbours along a line.
    differences
};

/// What a scan finds.
struct SceneStatistics {
    int bands = 0;
    int64_t valid_pixels = 0;
    int64_t invalid_pixels = 0;
    std::vector<double> mean;    ///< a band each, over the valid pixels; NaN when there is none
    std::vector<int64_t> finite; ///< a band each: pixels with a finite value

    // Unless means alone were asked for.
    std::vector<double>
        covariance;            ///< bands x bands, symmetric, divided by valid_pixels; NaN when there is none
    std::vector<int> constant; ///< bands (0-based) with one value in all valid pixels

    // Where differences were asked for.
    int64_t pairs = 0; ///< pixels (line, sample) and (line, sample + 1) that are both valid
    std::vector<double>
        differences; ///< bands x bands: the mean of d d', d their difference; NaN without a pair

    /// The matrix of mean products x x', bands x bands (the "correlation matrix" of virtual dimensionality).
    std::vector<double> mean_products() const;
    /// Bands (0-based) without a single finite value: the scan must be repeated without them, since they
    /// leave no pixel valid.
    std::vector<int> empty_bands() const;
    /// The band (0-based, behind those that are known to be constant) has one value. Its covariances become
    /// 0: what rounding has left there grows with the level, and at 1e25 hides the variance of other bands.
    void set_constant(int band, float level);
    /// Stands for the result of a scan that was not made (a plan needs its size): all pixels are valid, means
    /// are 0, variances 1, covariances 0, those of differences likewise.
    static SceneStatistics assumed(const CubeShape& scene);
};

class BorderPairs;
struct StatisticsSums;

/// The scan. result() is complete after run_pass().
class StatisticsScan : public Operation {
  public:
    StatisticsScan(const CubeShape& scene, Statistics what);
    ~StatisticsScan() override;
    int64_t align_samples() const override;
    int64_t align_lines() const override;
    uint64_t scratch_bytes(const TileLimits& limits) const override;
    uint64_t preferred_bytes() const override;
    std::unique_ptr<Worker> start(int lane, const TileLimits& limits) override;
    void stop(Worker& worker) override;
    bool divides() const override { return true; }
    void exchange(parallel::Group& ranks) override;
    /// threads: no bit depends on them. \throws Error when the scene varies, but so little that products in
    /// single precision vanish.
    SceneStatistics result(int threads = 1) const;
    SceneStatistics assumed() const { return SceneStatistics::assumed(m_scene); }

  protected:
    // For other backends, whose workers are StatisticsWorkers.
    int bands() const { return m_scene.bands; }
    Statistics what() const { return m_what; }
    BorderPairs& borders() { return *m_borders; }
    /// What workers gather, each at most.
    uint64_t gathered_bytes(const TileLimits& limits) const;

  private:
    const CubeShape m_scene;
    const Statistics m_what;
    std::unique_ptr<StatisticsSums> m_total;
    std::unique_ptr<BorderPairs> m_borders;
};

} // namespace hsi::stream
