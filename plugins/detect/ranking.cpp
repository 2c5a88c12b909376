// SPDX-License-Identifier: MIT
#include "detect/ranking.h"

#include "core/error.h"
#include "parallel/group.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace hsi::detect {
namespace {

constexpr uint32_t sign_bit = 0x80000000u;
constexpr size_t halves = size_t{1} << 16;

/// Returns an integer that rises with the score, or falls if small scores are best; -0 and 0 have the same
/// key.
uint32_t key_of(float score, bool small_is_best) {
    const auto bits = std::bit_cast<uint32_t>(score == 0 ? 0.0f : score);
    const uint32_t rising = (bits & sign_bit) != 0 ? ~bits : bits | sign_bit;
    return small_is_best ? ~rising : rising;
}

float score_of(uint32_t key, bool small_is_best) {
    const uint32_t rising = small_is_best ? ~key : key;
    return std::bit_cast<float>((rising & sign_bit) != 0 ? rising & ~sign_bit : ~rising);
}

} // namespace

ScoreRanking::ScoreRanking(const stream::CubeShape& scores, bool small_is_best, const stream::PixelMask* mask)
    : m_shape(scores), m_small(small_is_best), m_mask(mask), m_counts(halves) {}

void ScoreRanking::write(const Rect& core, const CubeView<float>& src) {
    for (int64_t line = 0; line < src.lines; ++line)
        for (int64_t sample = 0; sample < src.samples; ++sample) {
            if (m_mask != nullptr && !m_mask->at(core.y + line, core.x + sample)) continue;
            float best = no_value; // A pixel may have scores of only some targets.
            for (int k = 0; k < src.bands; ++k) {
                const float score = src.row(k, line)[sample];
                if (std::isnan(best) || (m_small ? score < best : score > best)) best = score;
            }
            if (std::isnan(best)) continue;
            const uint32_t key = key_of(best, m_small);
            if (m_second && key >> 16 != m_upper) continue;
            m_counts[m_second ? key & 0xffffu : key >> 16].fetch_add(1, std::memory_order_relaxed);
        }
}

void ScoreRanking::gather(parallel::Group& ranks) {
    std::vector<int64_t> counts(m_counts.begin(), m_counts.end());
    ranks.add_up("scores", counts);
    for (size_t i = 0; i < counts.size(); ++i)
        m_counts[i] = counts[i];
}

int64_t ScoreRanking::pixels() const {
    int64_t sum = 0;
    for (const auto& count : m_counts)
        sum += count;
    return sum;
}

ScoreRanking::Place ScoreRanking::place_of(int64_t rank) const {
    Place place{halves, 0};
    while (place.bin-- > 0) {
        if (place.better + m_counts[place.bin] >= rank) return place;
        place.better += m_counts[place.bin];
    }
    throw Error("internal: the score of rank " + std::to_string(rank) + " was not counted");
}

void ScoreRanking::seek(int64_t rank) {
    if (m_second || rank < 1) throw Error("internal: a rank of scores that were not counted");
    const auto place = place_of(rank);
    m_upper = static_cast<uint32_t>(place.bin);
    m_better = place.better;
    m_rank = rank - place.better;
    m_second = true;
    for (auto& count : m_counts)
        count = 0;
}

ScoreRanking::Found ScoreRanking::found() const {
    const auto place = place_of(m_rank);
    return {score_of(m_upper << 16 | static_cast<uint32_t>(place.bin), m_small),
            m_better + place.better + m_counts[place.bin]};
}

double edge_of(float score, bool small_is_best) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    const float worse = std::nextafter(score, small_is_best ? infinity : -infinity);
    if (!std::isfinite(score) || !std::isfinite(worse)) return score;
    const double exact = score, middle = exact + (static_cast<double>(worse) - exact) / 2;
    return static_cast<float>(middle) == score ? middle : std::nextafter(middle, exact);
}

} // namespace hsi::detect
