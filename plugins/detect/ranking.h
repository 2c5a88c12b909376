// SPDX-License-Identifier: MIT
// Thresholds from scores: the k-th best of all pixels, exactly, in two passes that count and keep nothing.
#pragma once

#include "core/cube_view.h"
#include "stream/pixel_mask.h"

#include <atomic>
#include <cstdint>
#include <vector>

namespace hsi::detect {

/// Takes the scores of a pass, one band per target, and counts each pixel's best one by the upper half of its
/// bits; after seek(), by the lower half within the upper half that was found. Counts have no order: tiles,
/// threads and ranks change nothing. Two passes with the same scores:
///   ScoreRanking r(...); run_pass(.., {&r}, ..); r.seek(k); run_pass(.., {&r}, ..); r.value()
class ScoreRanking final : public stream::GatheringSink {
  public:
    /// mask: the pixels that count, all with null; it must outlive this.
    ScoreRanking(const stream::CubeShape& scores, bool small_is_best,
                 const stream::PixelMask* mask = nullptr);
    stream::CubeShape shape() const override { return m_shape; }
    bool concurrent() const override { return true; }
    uint64_t stored_bytes_per_pixel() const override { return 0; }
    void write(const Rect& core, const CubeView<float>& src) override;
    void gather(parallel::Group& ranks) override;

    /// Pixels with a score; after the first pass.
    int64_t pixels() const;
    /// After the first pass: the score wanted, 1 the best of all, pixels() the worst.
    void seek(int64_t rank);
    struct Found {
        float score = 0;
        int64_t at_least = 0; ///< pixels that have it or a better one
    };
    Found found() const; ///< after the second pass

  private:
    /// The place of the `rank`-th best count, and the count before it.
    struct Place {
        size_t bin = 0;
        int64_t better = 0;
    };
    Place place_of(int64_t rank) const;

    const stream::CubeShape m_shape;
    const bool m_small;
    const stream::PixelMask* const m_mask;
    std::vector<std::atomic<int64_t>> m_counts; ///< by rising keys (key_of())
    bool m_second = false;
    uint32_t m_upper = 0; ///< second pass: of the key that is looked for
    int64_t m_rank = 0;   ///< and its rank among those with this half
    int64_t m_better = 0; ///< pixels with a better half
};

/// The worst number that single precision rounds to `score` or better: scores in double precision are
/// compared with it as the stored ones are with `score`.
double edge_of(float score, bool small_is_best);

} // namespace hsi::detect
