// SPDX-License-Identifier: MIT
// Ledoit-Wolf shrinkage of the covariance (-shrinkage ledoit-wolf), of groups and of one background.
#include "core/valid_pixel.h"
#include "detect/groups/groups.h"
#include "parallel/group.h"
#include "stream/statistics_sums.h"

#include <algorithm>
#include <cmath>

namespace hsi::detect {
namespace {

/// Adds up |z|^4 of a line's pixels, band by band.
class GroupShrinkageWorker final : public stream::Worker {
  public:
    GroupShrinkageWorker(const std::vector<double>& centre, const std::vector<double>& weight,
                         const std::vector<std::unique_ptr<BandShrinkage>>& parts, const GroupPlane* plane,
                         const PixelMask* mask, int64_t samples)
        : sums(parts.size()), m_centre(centre), m_weight(weight), m_parts(parts), m_plane(plane),
          m_mask(mask), m_squared(static_cast<size_t>(samples)), m_magnitude(m_squared.size()),
          m_group(m_squared.size()) {}

    void process(const Tile& tile, const CubeView<float>& in, const std::vector<CubeView<float>>&) override {
        const auto samples = static_cast<size_t>(in.samples);
        for (int64_t line = 0; line < in.lines; ++line) {
            std::fill(m_squared.begin(), m_squared.end(), 0.0);
            std::fill(m_magnitude.begin(), m_magnitude.end(), 0.0);
            for (size_t i = 0; i < samples; ++i)
                m_group[i] = group_of(tile.window.y + line, tile.window.x + static_cast<int64_t>(i));
            for (int b = 0; b < in.bands; ++b)
                take(in.row(b, line), static_cast<size_t>(b), samples);
            for (size_t i = 0; i < samples; ++i) {
                if (m_group[i] < 0 || !is_valid_sum(m_magnitude[i])) continue;
                const double fourth = m_squared[i] * m_squared[i];
                sums.add(static_cast<size_t>(m_group[i]), &fourth, 1);
            }
        }
    }

    math::ExactSums sums;

  private:
    /// Returns the index of the pixel's group; -1 if the pixel is outside the mask, or in no group with a
    /// BandShrinkage.
    int group_of(int64_t line, int64_t sample) const {
        if (m_mask != nullptr && !m_mask->at(line, sample)) return -1;
        const int group = m_plane != nullptr ? m_plane->at(line, sample) - 1 : 0;
        return group >= 0 && m_parts[static_cast<size_t>(group)] ? group : -1;
    }
    void take(const float* row, size_t band, size_t samples) {
        const double* const centre = m_centre.data() + band * m_parts.size();
        const double* const weight = m_weight.data() + band * m_parts.size();
        for (size_t i = 0; i < samples; ++i) {
            const double x = row[i];
            m_magnitude[i] += std::fabs(x);
            if (m_group[i] < 0) continue;
            const auto group = static_cast<size_t>(m_group[i]);
            m_squared[i] += weight[group] * (x - centre[group]) * (x - centre[group]);
        }
    }

    const std::vector<double>&m_centre, &m_weight;
    const std::vector<std::unique_ptr<BandShrinkage>>& m_parts;
    const GroupPlane* m_plane;
    const PixelMask* m_mask;
    std::vector<double> m_squared, m_magnitude;
    std::vector<int> m_group;
};

} // namespace

BandShrinkage::BandShrinkage(Method method, const stream::SceneStatistics& background)
    : m_centre(static_cast<size_t>(background.bands)), m_weight(m_centre.size()),
      m_pixels(static_cast<double>(background.valid_pixels)) {
    const size_t bands = m_centre.size();
    const auto products = method == Method::cem ? background.mean_products() : std::vector<double>();
    const auto& matrix = method == Method::cem ? products : background.covariance;
    for (size_t b = 0; b < bands; ++b) {
        const bool varies =
            method == Method::cem ||
            !std::binary_search(background.constant.begin(), background.constant.end(), static_cast<int>(b));
        const double variance = varies ? matrix[b * bands + b] : 0;
        if (!(variance > 0)) continue;
        m_centre[b] = method == Method::cem ? 0 : background.mean[b];
        m_weight[b] = 1 / variance;
        m_bands += 1;
    }
    for (size_t a = 0; a < bands; ++a)
        for (size_t b = 0; b < a; ++b)
            m_off_diagonal += 2 * matrix[a * bands + b] * matrix[a * bands + b] * m_weight[a] * m_weight[b];
}

BandShrinkage::BandShrinkage(const std::vector<double>& mean, const std::vector<int>& varying,
                             const double* products, ptrdiff_t pitch, int64_t pixels)
    : m_centre(mean.size()), m_weight(mean.size()), m_pixels(static_cast<double>(pixels)) {
    const size_t used = varying.size();
    std::vector<double> weight(used);
    for (size_t a = 0; a < used; ++a) {
        const double squares = products[static_cast<ptrdiff_t>(a) * (pitch + 1)];
        if (!(squares > 0)) continue;
        weight[a] = m_pixels / squares;
        m_centre[static_cast<size_t>(varying[a])] = mean[static_cast<size_t>(varying[a])];
        m_weight[static_cast<size_t>(varying[a])] = weight[a];
        m_bands += 1;
    }
    for (size_t a = 0; a < used; ++a) {
        const double* const row = products + static_cast<ptrdiff_t>(a) * pitch;
        double sums[4] = {};
        for (size_t b = a + 1; b < used; ++b)
            sums[b % 4] += row[b] * row[b] * weight[b];
        m_off_diagonal += 2 * weight[a] * ((sums[0] + sums[1]) + (sums[2] + sums[3])) / (m_pixels * m_pixels);
    }
}

double BandShrinkage::share(double sum_of_fourth_powers) const {
    if (!(m_off_diagonal > 0)) return 1;
    const double delta = m_off_diagonal / m_bands, squared = m_off_diagonal + m_bands; // squared: |P|^2
    const double beta = (sum_of_fourth_powers / m_pixels - squared) / (m_bands * m_pixels);
    return std::clamp(beta, 0.0, delta) / delta;
}

GroupShrinkageScan::GroupShrinkageScan(int bands, const std::vector<std::unique_ptr<BandShrinkage>>& parts,
                                       const GroupPlane* plane, const PixelMask* mask)
    : m_parts(parts), m_plane(plane), m_mask(mask), m_centre(static_cast<size_t>(bands) * parts.size()),
      m_weight(m_centre.size()), m_fourth(parts.size()) {
    for (size_t g = 0; g < parts.size(); ++g)
        for (size_t b = 0; b < static_cast<size_t>(bands) && parts[g]; ++b) {
            m_centre[b * parts.size() + g] = parts[g]->centre()[b];
            m_weight[b * parts.size() + g] = parts[g]->weight()[b];
        }
}

uint64_t GroupShrinkageScan::scratch_bytes(const stream::TileLimits& limits) const {
    constexpr uint64_t digits = 12; // digits of an exact sum
    return static_cast<uint64_t>(limits.window_samples) * 20 + m_parts.size() * digits * 8;
}

std::unique_ptr<stream::Worker> GroupShrinkageScan::start(int, const stream::TileLimits& limits) {
    return std::make_unique<GroupShrinkageWorker>(m_centre, m_weight, m_parts, m_plane, m_mask,
                                                  limits.window_samples);
}

void GroupShrinkageScan::stop(stream::Worker& worker) {
    m_fourth.add(static_cast<GroupShrinkageWorker&>(worker).sums);
}

void GroupShrinkageScan::exchange(parallel::Group& ranks) {
    stream::unite(ranks, "shrinkage of groups", m_fourth);
}

double GroupShrinkageScan::share(size_t group) const { return m_parts[group]->share(m_fourth.value(group)); }

} // namespace hsi::detect
