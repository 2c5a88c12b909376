// SPDX-License-Identifier: MIT
// Counts flat zones by union-find: in each strip over runs of pixels, then over the labels along the line
// where two strips meet.
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
            up = m_parent[static_cast<size_t>(up)]; // halves the path
            i = up;
        }
        return i;
    }
    int32_t add() {
        m_parent.push_back(static_cast<int32_t>(m_parent.size()));
        return m_parent.back();
    }
    /// Joins a and b. Returns true if they were separate before.
    bool join(int32_t a, int32_t b) {
        a = find(a);
        b = find(b);
        if (a == b) return false;
        m_parent[static_cast<size_t>(std::max(a, b))] = std::min(a, b);
        return true;
    }

    size_t size() const { return m_parent.size(); }

  private:
    std::vector<int32_t> m_parent;
};

/// A line of labels: 2 x label + phase; -1 for a pixel that is not compared.
using LabelLine = std::vector<int32_t>;

struct Strip {
    struct Image {
        int64_t zones = 0;
        LabelLine top, bottom;
        int32_t labels = 0; ///< labels in top and bottom are 0..labels-1
    };
    std::vector<Image> images; ///< bands of the first cube, then of the second
};

/// Joins strips in order; strips that arrive early wait.
class Seam {
  public:
    void join(int64_t index, Strip strip) {
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
            // The strip's bottom line becomes the new edge; its labels are numbered from 0 again.
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
    Binning binning;
    int threshold;
};

/// Adjacent pixels of equal phase in one line: samples begin..end-1.
struct PhaseRun {
    int64_t begin, end;
    int32_t phase, label;
};

class ZoneLane final : public stream::Worker {
  public:
    ZoneLane(const std::vector<Split>& splits, int parts, Seam& seam, const stream::TileLimits& limits)
        : m_splits(splits), m_parts(parts), m_seam(seam), m_valid(limits),
          m_bins(static_cast<size_t>(limits.core_samples)) {}

    void process(const Tile& tile, const CubeView<float>& in, const std::vector<CubeView<float>>&) override {
        const uint8_t* valid = m_valid.judge(in, m_parts);
        Strip strip;
        for (int b = 0; b < in.bands / m_parts; ++b)
            strip.images.push_back(image(in, b, valid));
        m_seam.join(tile.index, std::move(strip));
    }

  private:
    Strip::Image image(const CubeView<float>& in, int band, const uint8_t* valid) {
        const int64_t w = in.samples, h = in.lines;
        const Split& split = m_splits[static_cast<size_t>(band)];
        Strip::Image s;
        m_forest.reset(0);
        m_above.clear();
        for (int64_t y = 0; y < h; ++y) {
            bin_line(split.binning, BandLine(in, m_parts, band, y), valid + y * w, w, m_bins.data());
            m_here.clear();
            for (int64_t x = 0; x < w;) {
                const int32_t first = m_bins[static_cast<size_t>(x)];
                const int64_t begin = x++;
                if (first < 0) continue;
                const bool upper = first > split.threshold;
                while (x < w && m_bins[static_cast<size_t>(x)] >= 0 &&
                       (m_bins[static_cast<size_t>(x)] > split.threshold) == upper)
                    ++x;
                m_here.push_back({begin, x, upper, m_forest.add()});
            }
            s.zones += static_cast<int64_t>(m_here.size());
            // Runs of adjacent lines belong to the same zone if they overlap and have the same phase.
            for (size_t i = 0, j = 0; i < m_above.size() && j < m_here.size();) {
                const PhaseRun &a = m_above[i], &b = m_here[j];
                if (a.phase == b.phase && a.begin < b.end && b.begin < a.end)
                    s.zones -= m_forest.join(a.label, b.label);
                if (a.end < b.end)
                    ++i;
                else
                    ++j;
            }
            if (y == 0) m_top = m_here;
            m_above.swap(m_here);
        }
        // Labels of the strip's first and last line, numbered from 0.
        m_number.assign(m_forest.size(), -1);
        const auto labels = [&](const std::vector<PhaseRun>& runs) {
            LabelLine line(static_cast<size_t>(w), -1);
            for (const PhaseRun& run : runs) {
                int32_t& n = m_number[static_cast<size_t>(m_forest.find(run.label))];
                if (n < 0) n = s.labels++;
                std::fill(line.begin() + run.begin, line.begin() + run.end, 2 * n + run.phase);
            }
            return line;
        };
        s.top = labels(m_top);
        s.bottom = labels(m_above);
        return s;
    }

    const std::vector<Split>& m_splits;
    const int m_parts;
    Seam& m_seam;
    ValidPixels m_valid;
    std::vector<int32_t> m_bins, m_number;
    std::vector<PhaseRun> m_above, m_here, m_top;
    Forest m_forest;
};

class ZoneScan final : public Scan<Zones> {
  public:
    ZoneScan(int bands, int parts, int64_t samples, const Ranges& ranges, const Thresholds& thresholds)
        : m_bands(bands), m_parts(parts), m_samples(samples) {
        for (size_t b = 0; b < static_cast<size_t>(bands); ++b)
            m_splits.push_back({Binning(ranges.first[b]), thresholds.first[b]});
        for (size_t b = 0; b < static_cast<size_t>(bands); ++b)
            m_splits.push_back({Binning(ranges.second[b]), thresholds.second[b]});
    }
    int64_t align_samples() const override { return m_samples; } // strips of whole lines
    uint64_t scratch_bytes(const stream::TileLimits& t) const override {
        // First term: forest and numbers, with at most one run per pixel, and validity. Second term: runs and
        // bins of a line. Third term: two label lines of a strip and the edge of the seam, per band.
        const auto width = static_cast<uint64_t>(t.core_samples);
        return width * static_cast<uint64_t>(t.core_lines) * (4 + 4 + 1) +
               width * (3 * sizeof(PhaseRun) + 4) + width * m_splits.size() * 4 * 3;
    }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits& limits) override {
        return std::make_unique<ZoneLane>(m_splits, m_parts, m_seam, limits);
    }
    Zones result() const override {
        const auto& z = m_seam.zones();
        if (z.empty()) return {};
        return {{z.begin(), z.begin() + m_bands}, {z.begin() + m_bands, z.end()}};
    }

  private:
    int m_bands, m_parts;
    int64_t m_samples;
    std::vector<Split> m_splits;
    Seam m_seam;
};

} // namespace

std::unique_ptr<Scan<Zones>> make_zone_scan(int bands, int64_t scene_samples, const Ranges& ranges,
                                            const Thresholds& thresholds, int parts) {
    return std::make_unique<ZoneScan>(bands, parts, scene_samples, ranges, thresholds);
}

} // namespace hsi::compare
