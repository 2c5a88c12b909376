// SPDX-License-Identifier: MIT
// Finds thresholds from scores: the exact k-th best score of all pixels. Two passes count scores, and store
// none of them.
#pragma once

#include "core/cube_view.h"
#include "stream/pixel_mask.h"

#include <atomic>
#include <cstdint>
#include <vector>

namespace hsi::detect {

/// Takes the scores of a pass, one band per target, and counts each pixel's best score by the upper half of
/// its bits. After seek(), it counts scores with the upper half that was found, by their lower half. Counts
/// do not depend on the order of pixels, so results are equal for any tiles, threads and ranks. Two passes
/// with the same scores:
///   ScoreRanking r(...); run_pass(.., {&r}, ..); r.seek(k); run_pass(.., {&r}, ..); r.value()
class ScoreRanking final : public stream::GatheringSink {
  public:
    /// mask: the pixels that count; null for all. It must outlive the ranking.
    ScoreRanking(const stream::CubeShape& scores, bool small_is_best,
                 const stream::PixelMask* mask = nullptr);
    stream::CubeShape shape() const override { return m_shape; }
    bool concurrent() const override { return true; }
    uint64_t stored_bytes_per_pixel() const override { return 0; }
    void write(const Rect& core, const CubeView<float>& src) override;
    void gather(parallel::Group& ranks) override;

    /// Returns the number of pixels with a score, after the first pass.
    int64_t pixels() const;
    /// Selects the score to find, after the first pass: 1 is the best, pixels() the worst.
    void seek(int64_t rank);
    struct Found {
        float score = 0;
        int64_t at_least = 0; ///< pixels whose score equals it or is better
    };
    Found found() const; ///< after the second pass

  private:
    /// The bin of the `rank`-th best score, and the count of the better bins.
    struct Place {
        size_t bin = 0;
        int64_t better = 0;
    };
    Place place_of(int64_t rank) const;

    const stream::CubeShape m_shape;
    const bool m_small;
    const stream::PixelMask* const m_mask;
    std::vector<std::atomic<int64_t>> m_counts; ///< in the order of rising keys (key_of())
    bool m_second = false;
    uint32_t m_upper = 0; ///< second pass: upper half of the key to find
    int64_t m_rank = 0;   ///< its rank among keys with this upper half
    int64_t m_better = 0; ///< pixels with a better upper half
};

/// Returns the worst double that single precision rounds to `score` or better. Scores in double precision
/// compare with it as stored scores compare with `score`.
double edge_of(float score, bool small_is_best);

} // namespace hsi::detect
