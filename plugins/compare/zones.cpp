// SPDX-License-Identifier: MIT
// Flat zones by union-find: in each strip over its pixels, then over the labels along the line where two
// strips meet.
#include "compare/compare.h"
#include "compare/valid_pixels.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>

namespace hsi::compare {
namespace {

class Forest {
  public:
    void reset(size_t n) {
        m_parent.resize(n);
        std::iota(m_parent.begin(), m_parent.end(), 0);
    }
    int32_t find(int32_t i) {
        while (m_parent[static_cast<size_t>(i)] != i) {
            auto& up = m_parent[static_cast<size_t>(i)];
            up = m_parent[static_cast<size_t>(up)]; // halve the path
            i = up;
        }
        return i;
    }
    /// True when a and b were apart.
    bool join(int32_t a, int32_t b) {
        a = find(a);
        b = find(b);
        if (a == b) return false;
        m_parent[static_cast<size_t>(std::max(a, b))] = std::min(a, b);
        return true;
    }

  private:
    std::vector<int32_t> m_parent;
};

/// A line of labels: 2 x label + phase; -1 where a pixel takes no part.
using LabelLine = std::vector<int32_t>;

struct Strip {
    struct Image {
        int64_t zones = 0;
        LabelLine top, bottom;
        int32_t labels = 0; ///< those in top and bottom are 0..labels-1
    };
    std::vector<Image> images; ///< bands of the first cube, then of the second
};

/// Joins strips in order; strips that come early wait.
class Seam {
  public:
    void put(int64_t index, Strip strip) {
        const std::lock_guard lock(m_mutex);
        m_waiting.emplace(index, std::move(strip));
        for (auto it = m_waiting.begin(); it != m_waiting.end() && it->first == m_next;
             it = m_waiting.begin()) {
            append(it->second);
            m_waiting.erase(it);
            ++m_next;
        }
    }
    const std::vector<int64_t>& zones() const { return m_zones; }

  private:
    void append(Strip& strip) {
        m_zones.resize(strip.images.size());
        m_edge.resize(strip.images.size());
        m_labels.resize(strip.images.size());
        for (size_t k = 0; k < strip.images.size(); ++k) {
            Strip::Image& s = strip.images[k];
            m_zones[k] += s.zones;
            const int32_t offset = m_labels[k];
            m_forest.reset(static_cast<size_t>(offset + s.labels));
            const LabelLine& edge = m_edge[k];
            for (size_t x = 0; x < edge.size(); ++x) {
                if (edge[x] < 0 || s.top[x] < 0 || (edge[x] & 1) != (s.top[x] & 1)) continue;
                if (m_forest.join(edge[x] >> 1, offset + (s.top[x] >> 1))) --m_zones[k];
            }
            // The new edge with labels numbered from 0.
            m_number.assign(static_cast<size_t>(offset + s.labels), -1);
            int32_t next = 0;
            for (int32_t& v : s.bottom) {
                if (v < 0) continue;
                int32_t& n = m_number[static_cast<size_t>(m_forest.find(offset + (v >> 1)))];
                if (n < 0) n = next++;
                v = 2 * n + (v & 1);
            }
            m_labels[k] = next;
            m_edge[k] = std::move(s.bottom);
        }
    }
    std::mutex m_mutex;
    std::map<int64_t, Strip> m_waiting;
    int64_t m_next = 0;
    std::vector<int64_t> m_zones;
    std::vector<LabelLine> m_edge;
    std::vector<int32_t> m_labels;
    Forest m_forest;
    std::vector<int32_t> m_number;
};

struct Split {
    std::array<double, 2> range;
    int threshold;
};

class Lane final : public stream::Worker {
  public:
    Lane(const std::vector<Split>& splits, Seam& seam, const stream::TileLimits& limits)
        : m_splits(splits), m_seam(seam), m_valid(limits),
          m_phase(static_cast<size_t>(limits.core_samples * limits.core_lines)),
          m_number(m_phase.size(), -1) {}

    void process(const Tile& tile, const CubeView<float>& in, const std::vector<CubeView<float>>&) override {
        const uint8_t* valid = m_valid.judge(in, in.bands / 2);
        Strip strip;
        for (int b = 0; b < in.bands; ++b)
            strip.images.push_back(image(in, b, valid));
        m_seam.put(tile.index, std::move(strip));
    }

  private:
    Strip::Image image(const CubeView<float>& in, int band, const uint8_t* valid) {
        const int64_t w = in.samples, h = in.lines;
        const Split& split = m_splits[static_cast<size_t>(band)];
        Strip::Image s;
        m_forest.reset(static_cast<size_t>(w * h));
        for (int64_t y = 0; y < h; ++y) {
            const float* row = in.row(band, y);
            for (int64_t x = 0; x < w; ++x) {
                const auto i = static_cast<size_t>(y * w + x);
                m_phase[i] = -1;
                if (!valid[i]) continue;
                m_phase[i] = histogram_bin(row[x], split.range) > split.threshold;
                ++s.zones;
                const auto here = static_cast<int32_t>(i);
                if (x > 0 && m_phase[i - 1] == m_phase[i]) s.zones -= m_forest.join(here - 1, here);
                const auto up = static_cast<int32_t>(i - static_cast<size_t>(w));
                if (y > 0 && m_phase[static_cast<size_t>(up)] == m_phase[i])
                    s.zones -= m_forest.join(up, here);
            }
        }
        const auto number = [&](int64_t y) {
            LabelLine line(static_cast<size_t>(w), -1);
            for (int64_t x = 0; x < w; ++x) {
                const auto i = static_cast<size_t>(y * w + x);
                if (m_phase[i] < 0) continue;
                const int32_t root = m_forest.find(static_cast<int32_t>(i));
                int32_t& n = m_number[static_cast<size_t>(root)];
                if (n < 0) {
                    n = s.labels++;
                    m_touched.push_back(root);
                }
                line[static_cast<size_t>(x)] = 2 * n + m_phase[i];
            }
            return line;
        };
        s.top = number(0);
        s.bottom = number(h - 1);
        for (int32_t root : m_touched)
            m_number[static_cast<size_t>(root)] = -1;
        m_touched.clear();
        return s;
    }

    const std::vector<Split>& m_splits;
    Seam& m_seam;
    ValidPixels m_valid;
    std::vector<int8_t> m_phase;
    std::vector<int32_t> m_number, m_touched;
    Forest m_forest;
};

class ZoneScanImpl final : public ZoneScan {
  public:
    ZoneScanImpl(int bands, int64_t samples, const Ranges& ranges, const Thresholds& thresholds)
        : m_bands(bands), m_samples(samples) {
        for (size_t b = 0; b < static_cast<size_t>(bands); ++b)
            m_splits.push_back({ranges.first[b], thresholds.first[b]});
        for (size_t b = 0; b < static_cast<size_t>(bands); ++b)
            m_splits.push_back({ranges.second[b], thresholds.second[b]});
    }
    int64_t align_samples() const override { return m_samples; } // strips of whole lines
    uint64_t scratch_bytes(const stream::TileLimits& t) const override {
        // forest, numbers, phases and validity; two label lines a band and a strip; the seam's edge
        return static_cast<uint64_t>(t.core_samples * t.core_lines) * (4 + 4 + 1 + 1) +
               static_cast<uint64_t>(t.core_samples) * m_splits.size() * 4 * 3;
    }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits& limits) override {
        return std::make_unique<Lane>(m_splits, m_seam, limits);
    }
    Zones result() const override {
        const auto& z = m_seam.zones();
        if (z.empty()) return {};
        return {{z.begin(), z.begin() + m_bands}, {z.begin() + m_bands, z.end()}};
    }

  private:
    int m_bands;
    int64_t m_samples;
    std::vector<Split> m_splits;
    Seam m_seam;
};

} // namespace

std::unique_ptr<ZoneScan> make_zone_scan(int bands, int64_t scene_samples, const Ranges& ranges,
                                         const Thresholds& thresholds) {
    return std::make_unique<ZoneScanImpl>(bands, scene_samples, ranges, thresholds);
}

} // namespace hsi::compare
