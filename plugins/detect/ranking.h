// SPDX-License-Identifier: MIT
// Finds a threshold from scores: the exact k-th best score of all pixels. It needs two passes, which count
// scores and do not store them.
#pragma once

#include "core/cube_view.h"
#include "stream/pixel_mask.h"

#include <atomic>
#include <cstdint>
#include <vector>

namespace hsi::detect {

/// A sink for scores, one band per target, that counts the best score of each pixel in 65536 bins. In the
/// first pass, the bin is the upper half of the score's bits. In the second pass, after seek(), only scores
/// with the upper half of the wanted score are counted, by the lower half of their bits. Counts do not depend
/// on the order of pixels, so results are equal for any tiles, threads and ranks. Use with two passes of the
/// same scores:
///   ScoreRanking r(...); run_pass(.., {&r}, ..); r.seek(k); run_pass(.., {&r}, ..); r.found()
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
    /// Selects the rank of the score to find: 1 is the best score, pixels() the worst. Call it between the
    /// passes.
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

/// Returns the worst double that rounds, in single precision, to `score` or to a better score. Pixels can
/// then be compared in double precision: a score reaches the returned value if and only if its rounded value
/// reaches `score`.
double edge_of(float score, bool small_is_best);

} // namespace hsi::detect
