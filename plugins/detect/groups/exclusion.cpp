// SPDX-License-Identifier: MIT
// The pixels with the greatest scores, which the statistics of their group leave out.
#include "core/error.h"
#include "detect/groups/groups.h"
#include "parallel/group.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

namespace hsi::detect {

std::vector<int64_t> greatest_scores(const float* scores, int64_t pixels, int64_t count) {
    std::vector<int64_t> order(static_cast<size_t>(pixels));
    std::iota(order.begin(), order.end(), int64_t{0});
    std::nth_element(order.begin(), order.begin() + count, order.end(), [scores](int64_t a, int64_t b) {
        return scores[a] > scores[b] || (scores[a] == scores[b] && a < b);
    });
    order.resize(static_cast<size_t>(count));
    return order;
}

BestScores::BestScores(const stream::CubeShape& scores)
    : m_shape(scores), m_best(static_cast<size_t>(scores.pixels()), std::numeric_limits<float>::quiet_NaN()) {
}

void BestScores::write(const Rect& core, const CubeView<float>& src) {
    for (int64_t line = 0; line < src.lines; ++line) {
        float* const best = m_best.data() + (core.y + line) * m_shape.samples + core.x;
        std::copy_n(src.row(0, line), src.samples, best);
        for (int k = 1; k < src.bands; ++k) {
            const float* const scores = src.row(k, line);
            for (int64_t i = 0; i < src.samples; ++i)
                best[i] = std::max(best[i], scores[i]);
        }
    }
}

void BestScores::gather(parallel::Group& ranks) {
    const size_t size = m_best.size() * sizeof(float);
    ranks.unite(
        "scores of the background",
        [&] { return std::string(reinterpret_cast<const char*>(m_best.data()), size); },
        [&](const std::string& bytes) {
            if (bytes.size() != size) throw Error("internal: a rank has other scores");
            for (size_t i = 0; i < m_best.size(); ++i) {
                float score;
                std::memcpy(&score, bytes.data() + i * sizeof score, sizeof score);
                if (!std::isnan(score)) m_best[i] = score;
            }
        },
        [&](const std::string& bytes) { std::memcpy(m_best.data(), bytes.data(), size); });
}

std::shared_ptr<PixelMask> BestScores::without_greatest(double share, const GroupPlane* plane,
                                                        const PixelMask* mask,
                                                        std::vector<int64_t>& excluded) const {
    const auto groups = static_cast<size_t>(plane != nullptr ? plane->groups : 1);
    auto kept = std::make_shared<PixelMask>(m_shape.samples, m_shape.lines);
    std::vector<std::vector<int64_t>> pixels(groups);
    for (int64_t i = 0; i < m_shape.pixels(); ++i) {
        if (std::isnan(m_best[static_cast<size_t>(i)]) || (mask != nullptr && !mask->at(i))) continue;
        const int group = plane != nullptr ? plane->of[static_cast<size_t>(i)] : 1;
        if (group == 0) continue;
        pixels[static_cast<size_t>(group) - 1].push_back(i);
        kept->set(i / m_shape.samples, i % m_shape.samples);
    }
    excluded.assign(groups, 0);
    for (size_t g = 0; g < groups; ++g) {
        std::vector<float> scores;
        scores.reserve(pixels[g].size());
        for (const int64_t i : pixels[g])
            scores.push_back(m_best[static_cast<size_t>(i)]);
        const auto count = static_cast<int64_t>(scores.size());
        excluded[g] = excluded_pixels(share, count);
        for (const int64_t at : greatest_scores(scores.data(), count, excluded[g])) {
            const int64_t i = pixels[g][static_cast<size_t>(at)];
            kept->clear(i / m_shape.samples, i % m_shape.samples);
        }
        std::vector<int64_t>().swap(pixels[g]);
    }
    return kept;
}

} // namespace hsi::detect
