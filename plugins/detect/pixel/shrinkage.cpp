// SPDX-License-Identifier: MIT
// The best shrinkage of the covariance of one background (-shrinkage auto).
#include "core/valid_pixel.h"
#include "detect/pixel/pixel.h"
#include "parallel/group.h"
#include "stream/statistics_sums.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hsi::detect {
namespace {

/// Adds up |z|^4 of a line's pixels, band by band.
class ShrinkageWorker final : public stream::Worker {
  public:
    ShrinkageWorker(const std::vector<double>& centre, const PixelMask* mask, int64_t samples)
        : m_centre(centre), m_mask(mask), m_squared(static_cast<size_t>(samples)),
          m_magnitude(m_squared.size()) {}

    void process(const Tile& tile, const CubeView<float>& in, const std::vector<CubeView<float>>&) override {
        for (int64_t line = 0; line < in.lines; ++line) {
            std::fill(m_squared.begin(), m_squared.end(), 0.0);
            std::fill(m_magnitude.begin(), m_magnitude.end(), 0.0);
            for (int b = 0; b < in.bands; ++b)
                take(in.row(b, line), m_centre[static_cast<size_t>(b)], static_cast<size_t>(in.samples));
            for (int64_t i = 0; i < in.samples; ++i) {
                const auto at = static_cast<size_t>(i);
                if (!is_valid_sum(m_magnitude[at])) continue;
                if (m_mask != nullptr && !m_mask->at(tile.window.y + line, tile.window.x + i)) continue;
                const double fourth = m_squared[at] * m_squared[at];
                sum.add(0, &fourth, 1);
            }
        }
    }

    math::ExactSums sum{1};

  private:
    void take(const float* row, double centre, size_t samples) {
        const bool used = !std::isnan(centre);
        for (size_t i = 0; i < samples; ++i) {
            const double x = row[i];
            m_magnitude[i] += std::fabs(x);
            if (used) m_squared[i] += (x - centre) * (x - centre);
        }
    }

    const std::vector<double>& m_centre;
    const PixelMask* m_mask;
    std::vector<double> m_squared, m_magnitude;
};

} // namespace

ShrinkageScan::ShrinkageScan(Method method, const stream::SceneStatistics& moments, const PixelMask* mask)
    : m_method(method), m_moments(moments), m_mask(mask),
      m_centre(method == Method::cem ? std::vector<double>(moments.mean.size(), 0.0) : moments.mean) {
    if (method == Method::cem) return;
    for (const int b : moments.constant)
        m_centre[static_cast<size_t>(b)] = std::numeric_limits<double>::quiet_NaN();
}

uint64_t ShrinkageScan::scratch_bytes(const stream::TileLimits& limits) const {
    return static_cast<uint64_t>(limits.window_samples) * 16;
}

std::unique_ptr<stream::Worker> ShrinkageScan::start(int, const stream::TileLimits& limits) {
    return std::make_unique<ShrinkageWorker>(m_centre, m_mask, limits.window_samples);
}

void ShrinkageScan::stop(stream::Worker& worker) { m_fourth.add(static_cast<ShrinkageWorker&>(worker).sum); }

void ShrinkageScan::exchange(parallel::Group& ranks) { stream::unite(ranks, "shrinkage", m_fourth); }

double ShrinkageScan::result() const {
    const auto matrix = m_method == Method::cem ? m_moments.mean_products() : m_moments.covariance;
    const auto n = static_cast<double>(m_moments.valid_pixels);
    double squared = 0, trace = 0, bands = 0;
    for (size_t a = 0; a < m_centre.size(); ++a) {
        if (std::isnan(m_centre[a])) continue;
        for (size_t b = 0; b < m_centre.size(); ++b)
            if (!std::isnan(m_centre[b]))
                squared += matrix[a * m_centre.size() + b] * matrix[a * m_centre.size() + b];
        trace += matrix[a * m_centre.size() + a];
        bands += 1;
    }
    const double distance = squared - trace * trace / bands;
    const double error = (m_fourth.value(0) / n - squared) / n;
    return distance > 0 ? std::clamp(error / distance, 0.0, 1.0) : 1.0;
}

} // namespace hsi::detect
