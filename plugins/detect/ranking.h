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
/// its bits. After seek(), it counts only scores with the upper half that was found, by the lower half of
/// their bits. Counts do not depend on the order of pixels, so results are equal for any tiles, threads and
/// ranks. Use with two passes of the same scores:
///   ScoreRanking r(...); run_pass(.., {&r}, ..); r.seek(k); run_pass(.., {&r}, ..); r.value()
class ScoreRanking final : public stream::GatheringSink {
  public:
    /// mask: the pixels whose scores are counted; null for all. The mask must outlive the ranking.
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
        int64_t at_least = 0; ///< number of pixels with this score or a better score
    };
    /// Returns the score of the rank given to seek(), after the second pass.
    Found found() const;

  private:
    /// The bin of the `rank`-th best score, and the number of scores in better bins.
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
    int64_t m_rank = 0;   ///< second pass: rank of the key to find among the keys with this upper half
    int64_t m_better = 0; ///< number of pixels whose key has a better upper half
};

/// Returns the worst double that rounds to `score`, or to a better score, in single precision. A score in
/// double precision is at least as good as this value if, after rounding, it is at least as good as `score`.
double edge_of(float score, bool small_is_best);

} // namespace hsi::detect
