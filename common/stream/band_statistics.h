// SPDX-License-Identifier: MIT
// The mean spectrum of the valid pixels of a scene, in one scan.
#pragma once

#include "math/exact_sum.h"
#include "stream/operation.h"

#include <cstdint>
#include <vector>

namespace hsi::stream {

/// Sums are taken over fixed blocks of pixels anchored at the scene's origin, in double precision, and the
/// blocks are added without rounding: the result is the same to the last bit for every tiling and number of
/// threads.
inline constexpr int64_t statistics_block_samples = 128;
inline constexpr int64_t statistics_block_lines = 16;

struct BandStatistics {
    int64_t valid_pixels = 0;
    int64_t invalid_pixels = 0;
    std::vector<double> mean;    ///< a band each, over the valid pixels; NaN when there is none
    std::vector<int64_t> finite; ///< a band each: pixels with a finite value
    /// Bands (0-based) without a single finite value: the scan must be repeated without them, since they
    /// leave no pixel valid.
    std::vector<int> empty_bands() const;
};

/// The scan. result() is complete after run_pass().
class BandStatisticsScan : public Operation {
  public:
    explicit BandStatisticsScan(int bands)
        : m_sum(static_cast<size_t>(bands)), m_finite(static_cast<size_t>(bands)) {}
    int64_t align_samples() const override { return statistics_block_samples; }
    int64_t align_lines() const override { return statistics_block_lines; }
    uint64_t preferred_bytes() const override { return uint64_t{16} << 20; }
    std::unique_ptr<Worker> start(int lane, const TileLimits& limits) override;
    void stop(Worker& worker) override;
    bool divides() const override { return true; }
    void exchange(parallel::Group& ranks) override;
    BandStatistics result() const;

  protected:
    /// For other backends: adds what a worker has gathered.
    void merge(const std::vector<math::ExactSum>& sums, const std::vector<int64_t>& finite, int64_t valid,
               int64_t invalid);

  private:
    std::vector<math::ExactSum> m_sum;
    std::vector<int64_t> m_finite;
    int64_t m_valid = 0, m_invalid = 0;
};

} // namespace hsi::stream
