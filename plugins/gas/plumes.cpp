// SPDX-License-Identifier: MIT
#include "gas/plumes.h"
#include "math/elementary.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

namespace hsi::gas {

// Components
// ----------------------------------------------------------------------------------------------------------

PlumeFinder::PlumeFinder(int64_t samples, const PlumeOptions& options)
    : m_samples(samples), m_options(options) {}

size_t PlumeFinder::root(size_t i) const {
    while (m_components[i].parent != i)
        i = m_components[i].parent;
    return i;
}

size_t PlumeFinder::make() {
    if (m_free.empty()) {
        m_free.push_back(m_components.size());
        m_components.emplace_back();
    }
    const size_t i = m_free.back();
    m_free.pop_back();
    m_components[i] = {};
    m_components[i].parent = i;
    m_components[i].plume.greatest = -std::numeric_limits<float>::infinity();
    return i;
}

size_t PlumeFinder::unite(size_t a, size_t b) {
    if (a == b) return a;
    if (m_components[a].plume.runs.size() < m_components[b].plume.runs.size()) std::swap(a, b);
    Component &to = m_components[a], &from = m_components[b];
    Plume &p = to.plume, &q = from.plume;
    p.runs.insert(p.runs.end(), q.runs.begin(), q.runs.end());
    std::vector<PlumeRun>().swap(q.runs);
    p.pixels += q.pixels;
    p.area += q.area;
    p.sum += q.sum;
    p.mass += q.mass;
    p.variance += q.variance;
    if (std::tuple(-q.greatest, q.line, q.sample) < std::tuple(-p.greatest, p.line, p.sample))
        std::tie(p.greatest, p.line, p.sample) = std::tuple(q.greatest, q.line, q.sample);
    to.reaches = to.reaches || from.reaches;
    to.last = std::max(to.last, from.last);
    from.parent = a;
    m_used_up.push_back(b);
    return a;
}

void PlumeFinder::close(size_t i) {
    Component& one = m_components[i];
    if (one.reaches && one.plume.pixels >= m_options.min_pixels) m_plumes.push_back(std::move(one.plume));
    one.plume = {};
    m_used_up.push_back(i);
}

void PlumeFinder::take(const double* shape, const float* enhancement, const float* uncertainty, double area) {
    const int64_t reach = m_options.eight ? 1 : 0;
    m_now.clear();
    size_t before = 0;
    for (int64_t s = 0; s < m_samples; ++s) {
        if (!(shape[s] >= m_options.extent)) continue;
        PlumeRun run{m_line, s, s};
        const size_t own = make();
        Component& made = m_components[own];
        Plume& p = made.plume;
        for (; run.end < m_samples && shape[run.end] >= m_options.extent; ++run.end) {
            const float e = enhancement[run.end];
            made.reaches = made.reaches || shape[run.end] >= m_options.threshold;
            p.sum += static_cast<double>(e);
            p.mass += static_cast<double>(e) * area;
            const double spread = uncertainty != nullptr ? static_cast<double>(uncertainty[run.end]) * area
                                                         : std::numeric_limits<double>::quiet_NaN();
            p.variance += spread * spread;
            if (e > p.greatest) std::tie(p.greatest, p.line, p.sample) = std::tuple(e, m_line, run.end);
        }
        p.pixels = run.end - run.first;
        p.area = static_cast<double>(p.pixels) * area;
        p.runs.push_back(run);
        made.last = m_line;
        while (before < m_before.size() && m_before[before].run.end + reach <= run.first)
            ++before;
        size_t component = own;
        for (size_t k = before; k < m_before.size() && m_before[k].run.first < run.end + reach; ++k)
            component = unite(root(m_before[k].component), root(component));
        m_now.push_back({run, component});
        s = run.end;
    }
    for (auto& one : m_now)
        one.component = root(one.component);
    for (const auto& one : m_before) {
        const size_t i = root(one.component);
        // The component is still open, or has already been closed.
        if (m_components[i].last == m_line || m_components[i].plume.pixels == 0) continue;
        close(i);
    }
    m_free.insert(m_free.end(), m_used_up.begin(), m_used_up.end());
    m_used_up.clear();
    m_before.swap(m_now);
    ++m_line;
}

std::vector<Plume> PlumeFinder::finish() {
    const std::vector<double> nothing(static_cast<size_t>(m_samples),
                                      std::numeric_limits<double>::quiet_NaN());
    take(nothing.data(), nullptr, nullptr, 0);
    const auto place = [](const PlumeRun& r) { return std::pair(r.line, r.first); };
    for (auto& plume : m_plumes)
        std::sort(plume.runs.begin(), plume.runs.end(),
                  [&](const auto& a, const auto& b) { return place(a) < place(b); });
    std::sort(m_plumes.begin(), m_plumes.end(), [&](const Plume& a, const Plume& b) {
        return std::pair(-a.mass, place(a.runs[0])) < std::pair(-b.mass, place(b.runs[0]));
    });
    return std::move(m_plumes);
}

// Outlines
// ----------------------------------------------------------------------------------------------------------

namespace {

using Corner = std::array<int64_t, 2>;

/// Splits the runs into parts whose pixels share edges. Returns the parts in the order of their first pixels.
std::vector<std::vector<PlumeRun>> parts_of(const std::vector<PlumeRun>& runs) {
    std::vector<size_t> parent(runs.size());
    const auto root = [&](size_t i) {
        while (parent[i] != i)
            i = parent[i] = parent[parent[i]];
        return i;
    };
    size_t above = 0;
    for (size_t i = 0; i < runs.size(); ++i) {
        parent[i] = i;
        const auto is_before = [&](const PlumeRun& r) {
            return r.line < runs[i].line - 1 || (r.line == runs[i].line - 1 && r.end <= runs[i].first);
        };
        while (above < i && is_before(runs[above]))
            ++above;
        for (size_t k = above; k < i && runs[k].line == runs[i].line - 1 && runs[k].first < runs[i].end;
             ++k) {
            const size_t a = root(k), b = root(i);
            parent[std::max(a, b)] = std::min(a, b);
        }
    }
    std::map<size_t, std::vector<PlumeRun>> parts;
    for (size_t i = 0; i < runs.size(); ++i)
        parts[root(i)].push_back(runs[i]);
    std::vector<std::vector<PlumeRun>> list;
    for (auto& [first, part] : parts)
        list.push_back(std::move(part));
    return list;
}

/// Traces outlines. Pixels are on the right of each directed edge (rows count downwards), so outer rings run
/// clockwise. Where two rings meet, each ring turns left, away from the pixels. Holes that touch the outer
/// ring therefore stay separate from it.
class Tracer {
  public:
    explicit Tracer(const std::vector<PlumeRun>& runs) {
        std::map<int64_t, std::vector<PlumeRun>> lines;
        for (const auto& run : runs)
            lines[run.line].push_back(run);
        for (const auto& [line, own] : lines) {
            add(line, lines.count(line - 1) > 0 ? lines[line - 1] : std::vector<PlumeRun>(), own);
            if (lines.count(line + 1) == 0) add(line + 1, own, {});
        }
        for (const auto& run : runs) {
            link({run.end, run.line}, {run.end, run.line + 1});
            link({run.first, run.line + 1}, {run.first, run.line});
        }
    }
    /// Returns the outer ring, which contains the first corner in raster order, and then the holes.
    std::vector<CornerRing> rings() {
        std::vector<CornerRing> list;
        while (!m_next.empty())
            list.push_back(ring());
        return list;
    }

  private:
    void add(int64_t line, const std::vector<PlumeRun>& above, const std::vector<PlumeRun>& below) {
        std::vector<int64_t> corners;
        for (const auto* const runs : {&above, &below})
            for (const auto& run : *runs)
                corners.insert(corners.end(), {run.first, run.end});
        std::sort(corners.begin(), corners.end());
        corners.erase(std::unique(corners.begin(), corners.end()), corners.end());
        const auto covers = [](const std::vector<PlumeRun>& runs, int64_t s) {
            const auto after = std::upper_bound(runs.begin(), runs.end(), s,
                                                [](int64_t v, const PlumeRun& r) { return v < r.first; });
            return after != runs.begin() && s < std::prev(after)->end;
        };
        for (size_t k = 0; k + 1 < corners.size(); ++k) {
            const bool over = covers(above, corners[k]), under = covers(below, corners[k]);
            if (under && !over) link({corners[k], line}, {corners[k + 1], line});
            if (over && !under) link({corners[k + 1], line}, {corners[k], line});
        }
    }
    static Corner in_raster_order(const Corner& corner) { return {corner[1], corner[0]}; }
    void link(const Corner& from, const Corner& to) { m_next[in_raster_order(from)].push_back(to); }

    CornerRing ring() {
        const Corner first{m_next.begin()->first[1], m_next.begin()->first[0]};
        CornerRing ring{first};
        Corner before = first, at = take(first, 0);
        while (at != first) {
            ring.push_back(at);
            const auto& ways = m_next.at(in_raster_order(at));
            size_t way = 0;
            // A left turn is counter-clockwise, since rows count downwards.
            for (size_t k = 1; k < ways.size(); ++k)
                if (turn(before, at, ways[k]) < turn(before, at, ways[way])) way = k;
            before = std::exchange(at, take(at, way));
        }
        ring.push_back(first);
        return straightened(ring);
    }
    Corner take(const Corner& from, size_t way) {
        const auto found = m_next.find(in_raster_order(from));
        const Corner to = found->second[way];
        found->second.erase(found->second.begin() + static_cast<ptrdiff_t>(way));
        if (found->second.empty()) m_next.erase(found);
        return to;
    }
    static int64_t turn(const Corner& a, const Corner& b, const Corner& c) {
        return (b[0] - a[0]) * (c[1] - b[1]) - (b[1] - a[1]) * (c[0] - b[0]);
    }
    /// Returns the ring without the corners on straight edges.
    static CornerRing straightened(const CornerRing& ring) {
        CornerRing kept;
        const size_t n = ring.size() - 1;
        for (size_t i = 0; i < n; ++i)
            if (turn(ring[(i + n - 1) % n], ring[i], ring[(i + 1) % n]) != 0) kept.push_back(ring[i]);
        kept.push_back(kept.front());
        return kept;
    }

    /// Corners that follow each corner, ordered by row and sample.
    std::map<Corner, std::vector<Corner>> m_next;
};

} // namespace

std::vector<std::vector<CornerRing>> outline(const Plume& plume) {
    std::vector<std::vector<CornerRing>> polygons;
    for (const auto& part : parts_of(plume.runs))
        polygons.push_back(Tracer(part).rings());
    return polygons;
}

// Smoothing and medians
// ----------------------------------------------------------------------------------------------------------

LineSmoother::LineSmoother(int64_t samples, int64_t lines, double deviation)
    : m_samples(samples), m_lines(lines), m_reach(static_cast<int64_t>(std::floor(4 * deviation + 0.5))),
      m_values(static_cast<size_t>(2 * m_reach + 1)), m_shares(m_values.size()), m_known(m_values.size()) {
    for (int64_t i = -m_reach; i <= m_reach; ++i) {
        const auto x = static_cast<double>(i);
        m_weights.push_back(deviation > 0 ? math::exp(-x * x / (2 * deviation * deviation)) : 1);
    }
}

void LineSmoother::take(const float* x) {
    const auto samples = static_cast<size_t>(m_samples), at = static_cast<size_t>(m_taken) % m_values.size();
    auto &value = m_values[at], &share = m_shares[at];
    auto& known = m_known[at];
    value.assign(samples, 0);
    share.assign(samples, 0);
    known.resize(samples);
    for (size_t s = 0; s < samples; ++s)
        known[s] = !std::isnan(x[s]);
    for (int64_t s = 0; s < m_samples; ++s)
        for (int64_t k = std::max<int64_t>(0, s - m_reach); k <= std::min(m_samples - 1, s + m_reach); ++k) {
            if (!known[static_cast<size_t>(k)]) continue;
            const double weight = m_weights[static_cast<size_t>(k - s + m_reach)];
            value[static_cast<size_t>(s)] += weight * static_cast<double>(x[k]);
            share[static_cast<size_t>(s)] += weight;
        }
    ++m_taken;
}

bool LineSmoother::next(double* smoothed) {
    if (m_given == m_lines || m_taken < std::min(m_lines, m_given + m_reach + 1)) return false;
    const int64_t first = std::max<int64_t>(0, m_given - m_reach),
                  last = std::min(m_lines - 1, m_given + m_reach);
    const auto& known = m_known[static_cast<size_t>(m_given) % m_known.size()];
    for (size_t s = 0; s < static_cast<size_t>(m_samples); ++s) {
        double value = 0, share = 0;
        for (int64_t line = first; line <= last; ++line) {
            const size_t at = static_cast<size_t>(line) % m_values.size();
            const double weight = m_weights[static_cast<size_t>(line - m_given + m_reach)];
            value += weight * m_values[at][s];
            share += weight * m_shares[at][s];
        }
        smoothed[s] = known[s] ? value / share : std::numeric_limits<double>::quiet_NaN();
    }
    ++m_given;
    return true;
}

float median_of(const std::function<void(const std::function<void(float)>&)>& each) {
    // The bits of a float form a key that rises with the float. The first pass finds the upper half of the
    // key, the second pass the lower half.
    const auto key = [](float v) {
        uint32_t bits;
        std::memcpy(&bits, &v, sizeof bits);
        return (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
    };
    constexpr size_t half = size_t{1} << 16;
    std::vector<int64_t> upper(half), lower(half);
    int64_t count = 0;
    each([&](float v) {
        ++upper[key(v) >> 16];
        ++count;
    });
    if (count == 0) return std::numeric_limits<float>::quiet_NaN();
    int64_t rank = (count - 1) / 2;
    const auto find = [&rank](const std::vector<int64_t>& counts) {
        uint32_t place = 0;
        for (; rank >= counts[place]; ++place)
            rank -= counts[place];
        return place;
    };
    const uint32_t high = find(upper);
    each([&](float v) {
        if (key(v) >> 16 == high) ++lower[key(v) & 0xffffU];
    });
    uint32_t bits = (high << 16) | find(lower);
    bits = (bits & 0x80000000U) != 0 ? bits & 0x7fffffffU : ~bits;
    float v;
    std::memcpy(&v, &bits, sizeof v);
    return v;
}

} // namespace hsi::gas
