// SPDX-License-Identifier: MIT
// The mean and covariance of the background.
#include "core/valid_pixel.h"
#include "detect/pixel/pixel.h"
#include "parallel/group.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace hsi::detect {
namespace {

/// Counts the valid pixels outside the mask, sets these pixels to NaN, and passes the tile to another worker.
class MaskingWorker final : public stream::Worker {
  public:
    MaskingWorker(std::unique_ptr<stream::Worker> behind, const PixelMask& mask, int bands, int64_t samples)
        : finite(static_cast<size_t>(bands)), m_behind(std::move(behind)), m_mask(mask),
          m_outside(static_cast<size_t>(samples)), m_magnitude(static_cast<size_t>(samples)) {}

    void process(const Tile& tile, const CubeView<float>& in,
                 const std::vector<CubeView<float>>& out) override {
        for (int64_t line = 0; line < in.lines; ++line)
            take_out(tile, in, line);
        m_behind->process(tile, in, out);
    }
    stream::Worker& behind() { return *m_behind; }

    int64_t valid = 0;           ///< valid pixels outside the mask
    std::vector<int64_t> finite; ///< per band: finite values outside the mask

  private:
    void take_out(const Tile& tile, const CubeView<float>& in, int64_t line) {
        m_outside.clear();
        for (int64_t i = 0; i < in.samples; ++i)
            if (!m_mask.at(tile.window.y + line, tile.window.x + i)) m_outside.push_back(i);
        std::fill(m_magnitude.begin(), m_magnitude.end(), 0.0);
        for (int b = 0; b < in.bands; ++b) {
            float* const row = in.row(b, line);
            for (const int64_t i : m_outside) {
                finite[static_cast<size_t>(b)] += std::isfinite(row[i]);
                m_magnitude[static_cast<size_t>(i)] += std::fabs(static_cast<double>(row[i]));
                row[i] = std::numeric_limits<float>::quiet_NaN();
            }
        }
        valid += std::count_if(m_outside.begin(), m_outside.end(), [this](int64_t i) {
            return is_valid_sum(m_magnitude[static_cast<size_t>(i)]);
        });
    }

    std::unique_ptr<stream::Worker> m_behind;
    const PixelMask& m_mask;
    std::vector<int64_t> m_outside; ///< samples of a line outside the mask
    std::vector<double> m_magnitude;
};

} // namespace

BackgroundScan::BackgroundScan(const stream::CubeShape& scene, const PixelMask* mask)
    : StatisticsScan(scene, stream::Statistics::double_covariance), m_mask(mask),
      m_finite_outside(static_cast<size_t>(scene.bands)) {}

uint64_t BackgroundScan::scratch_bytes(const stream::TileLimits& limits) const {
    return StatisticsScan::scratch_bytes(limits) +
           (m_mask != nullptr
                ? static_cast<uint64_t>(limits.window_samples) * 16 + static_cast<uint64_t>(bands()) * 8
                : 0);
}

std::unique_ptr<stream::Worker> BackgroundScan::start(int lane, const stream::TileLimits& limits) {
    auto worker = StatisticsScan::start(lane, limits);
    if (m_mask == nullptr) return worker;
    return std::make_unique<MaskingWorker>(std::move(worker), *m_mask, bands(), limits.window_samples);
}

void BackgroundScan::stop(stream::Worker& worker) {
    if (m_mask == nullptr) return StatisticsScan::stop(worker);
    auto& masking = static_cast<MaskingWorker&>(worker);
    m_valid_outside += masking.valid;
    for (size_t b = 0; b < m_finite_outside.size(); ++b)
        m_finite_outside[b] += masking.finite[b];
    StatisticsScan::stop(masking.behind());
}

void BackgroundScan::exchange(parallel::Group& ranks) {
    StatisticsScan::exchange(ranks);
    ranks.add_up("values outside of the mask", m_finite_outside);
    m_valid_outside = ranks.sum("pixels outside of the mask", m_valid_outside);
}

Background BackgroundScan::result(int threads) const {
    Background b;
    b.moments = StatisticsScan::result(threads);
    b.valid_pixels = b.moments.valid_pixels + m_valid_outside;
    b.invalid_pixels = b.moments.invalid_pixels - m_valid_outside;
    for (size_t k = 0; k < m_finite_outside.size(); ++k)
        if (b.moments.finite[k] + m_finite_outside[k] == 0) b.empty.push_back(static_cast<int>(k));
    return b;
}

} // namespace hsi::detect
