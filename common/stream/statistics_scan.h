// SPDX-License-Identifier: MIT
// Computes the statistics of a scene's valid pixels in one scan: the mean of every band and, if requested,
// the covariance of the bands and the covariance of the differences of neighbours.
//
// Sums are computed over fixed blocks of pixels from the scene's origin, and the blocks are added without
// rounding (stream/statistics_sums.h). So the result is the same to the last bit for every tiling and number
// of threads and ranks. A high common level of the values loses no digits, since the level is subtracted and
// added again without rounding.
#pragma once

#include "stream/operation.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace hsi::stream {

/// Selects the sums of a scan. The three ways to compute a covariance differ in speed and in the last digits.
enum class Statistics {
    /// The mean of every band, which all other choices include.
    means,
    /// The covariance. A few hundred pixels at a time are centred on their own means, multiplied in single
    /// precision, and then added in double precision. The error is about 1e-9 of the whole variance for ten
    /// thousand pixels, and less for more.
    covariance,
    /// The covariance with products in double precision, for computations in which the smallest eigenvalues
    /// matter (an inverse, a rank).
    double_covariance,
    /// The covariance in double precision, from the differences between the pixels and one pixel of their
    /// block. For whole numbers, almost nothing is rounded. The error is about 1e-15 of the bands' variances.
    moments,
    /// The results of `moments`, and the mean products of the differences of neighbours along a line.
    differences
};

/// The results of a scan.
struct SceneStatistics {
    int bands = 0;
    int64_t valid_pixels = 0;
    int64_t invalid_pixels = 0;
    std::vector<double> mean;    ///< one per band, over the valid pixels; NaN without valid pixels
    std::vector<int64_t> finite; ///< one per band: number of pixels with a finite value

    // The following two members are empty if only means were requested.
    /// Bands x bands, symmetric, divided by valid_pixels; NaN without valid pixels.
    std::vector<double> covariance;
    std::vector<int> constant; ///< bands (0-based) with the same value in all valid pixels

    // The following two members are set if differences were requested.
    int64_t pairs = 0; ///< number of pixels (line, sample) that are valid together with (line, sample + 1)
    /// bands x bands: the mean of d d', where d is the difference of the two pixels of a pair; NaN without
    /// pairs.
    std::vector<double> differences;

    /// Returns the matrix of mean products x x', bands x bands (the "correlation matrix" of virtual
    /// dimensionality).
    std::vector<double> mean_products() const;
    /// Returns the bands (0-based) without any finite value. The scan must be repeated without them, because
    /// no pixel is valid with them.
    std::vector<int> empty_bands() const;
    /// Declares that a band (0-based) has the value `level` in all valid pixels. Sets its mean to `level` and
    /// its covariances to 0. Computed covariances have rounding errors that grow with the level: at a level
    /// of 1e25, they exceed the variance of other bands.
    void set_constant(int band, float level);
    /// Returns statistics of the size that a scan would give, for plans, which do not read the scene. All
    /// pixels are valid, means are 0, variances 1 and covariances 0. The differences have the same values.
    static SceneStatistics assumed(const CubeShape& scene);
};

class BorderPairs;
struct StatisticsSums;

/// Performs the scan. result() is complete after run_pass().
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
    /// Returns the statistics. `threads` does not change any bit. \throws Error if the scene varies so little
    /// that products in single precision vanish.
    SceneStatistics result(int threads = 1) const;
    SceneStatistics assumed() const { return SceneStatistics::assumed(m_scene); }

  protected:
    // For backends with their own start(), whose workers must be StatisticsWorkers.
    int bands() const { return m_scene.bands; }
    Statistics what() const { return m_what; }
    BorderPairs& borders() { return *m_borders; }
    /// Returns the maximum number of bytes of the results that each worker collects.
    uint64_t gathered_bytes(const TileLimits& limits) const;

  private:
    const CubeShape m_scene;
    const Statistics m_what;
    std::unique_ptr<StatisticsSums> m_total;
    std::unique_ptr<BorderPairs> m_borders;
};

} // namespace hsi::stream
