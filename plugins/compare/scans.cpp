// SPDX-License-Identifier: MIT
// Ranges, histograms and thresholds of the bands of two scenes.
#include "compare/compare.h"
#include "compare/kernels_simd.h"
#include "compare/valid_pixels.h"
#include "core/byte_pack.h"
#include "parallel/group.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hsi::compare {
namespace {

/// The initial range, which contains no value.
constexpr std::array<double, 2> no_range = {std::numeric_limits<double>::infinity(),
                                            -std::numeric_limits<double>::infinity()};

class RangeLane final : public stream::Worker {
  public:
    RangeLane(int bands, int parts, const stream::TileLimits& limits)
        : m_bands(bands), m_parts(parts), m_valid(limits), range(static_cast<size_t>(2 * bands), no_range) {}
    void process(const Tile& tile, const CubeView<float>& in, const std::vector<CubeView<float>>&) override {
        const uint8_t* valid = m_valid.judge(in, m_parts);
        for (int b = 0; b < 2 * m_bands; ++b) {
            auto& [low, high] = range[static_cast<size_t>(b)];
            if (m_parts > 1) {
                widen(in, b, valid, low, high);
                continue;
            }
            float least = std::numeric_limits<float>::infinity(), greatest = -least;
            for (int64_t y = 0; y < tile.core.h; ++y) {
                const float* row = in.row(b, y);
                const uint8_t* ok = valid + y * tile.core.w;
                for (int64_t x = 0; x < tile.core.w; ++x) {
                    least = ok[x] && row[x] < least ? row[x] : least;
                    greatest = ok[x] && row[x] > greatest ? row[x] : greatest;
                }
            }
            low = std::min(low, double{least});
            high = std::max(high, double{greatest});
        }
    }

  private:
    void widen(const CubeView<float>& in, int b, const uint8_t* valid, double& low, double& high) const {
        for (int64_t y = 0; y < in.lines; ++y) {
            const BandLine row(in, m_parts, b, y);
            for (int64_t x = 0; x < in.samples; ++x) {
                if (!valid[y * in.samples + x]) continue;
                low = std::min(low, row[x]);
                high = std::max(high, row[x]);
            }
        }
    }

    int m_bands, m_parts;
    ValidPixels m_valid;

  public:
    std::vector<std::array<double, 2>> range; ///< ranges of the first cube's bands, then of the second cube's
};

class RangeScan final : public Scan<Ranges> {
  public:
    RangeScan(int bands, int parts)
        : m_bands(bands), m_parts(parts), m_range(static_cast<size_t>(2 * bands), no_range) {}
    uint64_t scratch_bytes(const stream::TileLimits& t) const override { return ValidPixels::bytes(t); }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits& limits) override {
        return std::make_unique<RangeLane>(m_bands, m_parts, limits);
    }
    void stop(stream::Worker& worker) override {
        const auto& lane = static_cast<RangeLane&>(worker);
        for (size_t b = 0; b < m_range.size(); ++b) {
            m_range[b][0] = std::min(m_range[b][0], lane.range[b][0]);
            m_range[b][1] = std::max(m_range[b][1], lane.range[b][1]);
        }
    }
    bool divides() const override { return true; }
    void exchange(parallel::Group& ranks) override {
        for (const std::string& bytes : ranks.all("ranges", BytePacker().put(m_range).take())) {
            const auto other = ByteUnpacker(bytes).one<std::vector<std::array<double, 2>>>();
            for (size_t b = 0; b < m_range.size(); ++b) {
                m_range[b][0] = std::min(m_range[b][0], other.at(b)[0]);
                m_range[b][1] = std::max(m_range[b][1], other.at(b)[1]);
            }
        }
    }
    Ranges result() const override {
        return {{m_range.begin(), m_range.begin() + m_bands}, {m_range.begin() + m_bands, m_range.end()}};
    }

  private:
    int m_bands, m_parts;
    std::vector<std::array<double, 2>> m_range;
};

using Histogram = std::array<int64_t, histogram_bins>;

std::vector<std::array<double, 2>> both(const Ranges& r) {
    auto all = r.first;
    all.insert(all.end(), r.second.begin(), r.second.end());
    return all;
}

class ThresholdLane final : public stream::Worker {
  public:
    ThresholdLane(const std::vector<std::array<double, 2>>& ranges, int parts,
                  const stream::TileLimits& limits)
        : m_parts(parts), m_valid(limits), m_bins(static_cast<size_t>(limits.core_samples)),
          histograms(ranges.size(), Histogram{}) {
        for (const auto& range : ranges)
            m_binning.emplace_back(range);
    }
    void process(const Tile& tile, const CubeView<float>& in, const std::vector<CubeView<float>>&) override {
        const uint8_t* valid = m_valid.judge(in, m_parts);
        const int64_t w = tile.core.w;
        for (int b = 0; b < in.bands / m_parts; ++b) {
            Histogram& h = histograms[static_cast<size_t>(b)];
            for (int64_t y = 0; y < tile.core.h; ++y) {
                bin_line(m_binning[static_cast<size_t>(b)], BandLine(in, m_parts, b, y), valid + y * w, w,
                         m_bins.data());
                for (int64_t x = 0; x < w; ++x)
                    if (m_bins[static_cast<size_t>(x)] >= 0)
                        ++h[static_cast<size_t>(m_bins[static_cast<size_t>(x)])];
            }
        }
    }

  private:
    const int m_parts;
    std::vector<Binning> m_binning;
    ValidPixels m_valid;
    std::vector<int32_t> m_bins;

  public:
    std::vector<Histogram> histograms;
};

class ThresholdScan final : public Scan<Thresholds> {
  public:
    ThresholdScan(int bands, int parts, const Ranges& ranges)
        : m_bands(bands), m_parts(parts), m_ranges(both(ranges)), m_histograms(m_ranges.size(), Histogram{}) {
    }
    uint64_t scratch_bytes(const stream::TileLimits& t) const override {
        return ValidPixels::bytes(t) + static_cast<uint64_t>(t.core_samples) * 4 +
               m_ranges.size() * sizeof(Histogram);
    }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits& limits) override {
        return std::make_unique<ThresholdLane>(m_ranges, m_parts, limits);
    }
    void stop(stream::Worker& worker) override {
        const auto& lane = static_cast<ThresholdLane&>(worker);
        for (size_t b = 0; b < m_histograms.size(); ++b)
            for (size_t i = 0; i < m_histograms[b].size(); ++i)
                m_histograms[b][i] += lane.histograms[b][i];
    }
    bool divides() const override { return true; }
    void exchange(parallel::Group& ranks) override {
        std::vector<int64_t> counts;
        for (const auto& h : m_histograms)
            counts.insert(counts.end(), h.begin(), h.end());
        ranks.add_up("histograms", counts);
        auto next = counts.begin();
        for (auto& h : m_histograms) {
            std::copy_n(next, h.size(), h.begin());
            next += static_cast<ptrdiff_t>(h.size());
        }
    }
    Thresholds result() const override {
        std::vector<int> all;
        for (const auto& h : m_histograms)
            all.push_back(otsu_threshold(h));
        return {{all.begin(), all.begin() + m_bands}, {all.begin() + m_bands, all.end()}};
    }

  private:
    int m_bands, m_parts;
    std::vector<std::array<double, 2>> m_ranges;
    std::vector<Histogram> m_histograms;
};

} // namespace

int otsu_threshold(const Histogram& histogram) {
    double total = 0, moment = 0;
    for (size_t i = 0; i < histogram.size(); ++i) {
        total += static_cast<double>(histogram[i]);
        moment += static_cast<double>(i) * static_cast<double>(histogram[i]);
    }
    double below = 0, below_moment = 0, best = 0;
    int at = histogram_bins - 1; // All values are in the lower phase, unless a better threshold is found.
    for (size_t i = 0; i + 1 < histogram.size(); ++i) {
        below += static_cast<double>(histogram[i]);
        below_moment += static_cast<double>(i) * static_cast<double>(histogram[i]);
        const double above = total - below;
        if (below == 0 || above == 0) continue;
        const double gap = below_moment / below - (moment - below_moment) / above;
        const double between = below * above * (gap * gap);
        if (between > best) {
            best = between;
            at = static_cast<int>(i);
        }
    }
    return at;
}

std::unique_ptr<Scan<Ranges>> make_range_scan(int bands, int parts) {
    return std::make_unique<RangeScan>(bands, parts);
}

std::unique_ptr<Scan<Thresholds>> make_threshold_scan(int bands, const Ranges& ranges, int parts) {
    return std::make_unique<ThresholdScan>(bands, parts, ranges);
}

} // namespace hsi::compare
