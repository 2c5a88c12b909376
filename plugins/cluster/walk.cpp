// SPDX-License-Identifier: MIT
#include "cluster/walk.h"

#include "parallel/group.h"
#include "parallel/threads.h"
#include "stream/pipeline.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace hsi::cluster {
namespace {

bool any_valid(const uint16_t* labels, int count) {
    return std::any_of(labels, labels + count, [](uint16_t label) { return label != 0; });
}

class WalkWorker final : public stream::Worker {
  public:
    WalkWorker(std::unique_ptr<Visitor> v, uint16_t* labels, int64_t samples)
        : visitor(std::move(v)), m_labels(labels), m_samples(samples) {}
    void process(const Tile& tile, const CubeView<float>& in, const std::vector<CubeView<float>>&) override {
        for (int64_t line = 0; line < tile.core.h; ++line)
            for (int64_t first = 0; first < tile.core.w; first += group) {
                const int count = static_cast<int>(std::min<int64_t>(group, tile.core.w - first));
                const int64_t pixel = (tile.core.y + line) * m_samples + tile.core.x + first;
                if (any_valid(m_labels + pixel, count))
                    visitor->take(in.row(0, line) + first, in.band_stride, pixel, count, m_labels + pixel);
            }
    }
    std::unique_ptr<Visitor> visitor;

  private:
    uint16_t* const m_labels;
    const int64_t m_samples;
};

class WalkOperation final : public stream::Operation {
  public:
    WalkOperation(int64_t samples, uint16_t* labels, uint64_t visitor_bytes,
                  const std::function<std::unique_ptr<Visitor>()>& make,
                  const std::function<void(Visitor&)>& merge)
        : m_samples(samples), m_labels(labels), m_bytes(visitor_bytes), m_make(make), m_merge(merge) {}
    bool divides() const override { return true; } // The caller merges the results of all ranks.
    bool reads_in_place() const override { return true; }
    uint64_t preferred_bytes() const override { return uint64_t{8} << 20; }
    uint64_t scratch_bytes(const stream::TileLimits&) const override { return m_bytes; }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
        return std::make_unique<WalkWorker>(m_make(), m_labels, m_samples);
    }
    void stop(stream::Worker& worker) override { m_merge(*static_cast<WalkWorker&>(worker).visitor); }

  private:
    const int64_t m_samples;
    uint16_t* const m_labels;
    const uint64_t m_bytes;
    const std::function<std::unique_ptr<Visitor>()> m_make;
    const std::function<void(Visitor&)> m_merge;
};

void walk_kept(Scene& scene, const std::string& name, uint64_t visitor_bytes,
               const std::function<std::unique_ptr<Visitor>()>& make,
               const std::function<void(Visitor&)>& merge) {
    constexpr int64_t unit = 64; // groups that a thread takes at a time
    const auto pass = scene.make_pass(name);
    // Uses at most as many threads as there is memory for their sums.
    const uint64_t left = pass.memory - std::min(pass.memory, scene.held);
    const auto members = static_cast<int>(
        std::clamp<uint64_t>(left / std::max<uint64_t>(visitor_bytes, 1), 1, std::max(pass.lanes, 1)));
    std::vector<std::unique_ptr<Visitor>> visitors;
    for (int i = 0; i < members; ++i)
        visitors.push_back(make());
    const auto pixels = static_cast<int64_t>(scene.labels.size()), groups = scene.kept.groups();
    parallel::for_each((groups + unit - 1) / unit, members, pass.cancel, [&](int64_t u, int member) {
        for (int64_t g = u * unit; g < std::min(groups, (u + 1) * unit); ++g) {
            const int64_t first = g * group;
            const int count = static_cast<int>(std::min<int64_t>(group, pixels - first));
            uint16_t* const labels = scene.labels.data() + first;
            if (any_valid(labels, count))
                visitors[static_cast<size_t>(member)]->take(scene.kept.values(g), group, first, count,
                                                            labels);
        }
    });
    for (const auto& visitor : visitors)
        merge(*visitor);
    if (pass.progress) pass.progress(1.0);
}

} // namespace

void Kept::put(int64_t pixel, const float* from, ptrdiff_t band_stride, int64_t count) const {
    for (int64_t done = 0; done < count;) {
        const int64_t at = pixel + done, lane = at % group, part = std::min(group - lane, count - done);
        float* to = values(at / group) + lane;
        for (int b = 0; b < m_bands; ++b, to += group)
            std::copy_n(from + done + b * band_stride, part, to);
        done += part;
    }
}

void Kept::get(int64_t pixel, float* to) const {
    const float* const from = values(pixel / group) + pixel % group;
    for (int b = 0; b < m_bands; ++b)
        to[b] = from[static_cast<ptrdiff_t>(b) * group];
}

Screen::Screen(const Centres& centres, Distance distance)
    : m_centres(centres), m_singles(centres.values.begin(), centres.values.end()) {
    constexpr double unit = 0x1p-24, unit_of_doubles = 0x1p-53, least = 0x1p-126;
    double greatest = 0;
    for (int k = 0; k < centres.count; ++k) {
        double squared = 0;
        for (int b = 0; b < centres.bands; ++b)
            squared += centres.of(k)[b] * centres.of(k)[b];
        greatest = std::max(greatest, squared);
        m_half_squares.push_back(distance == Distance::angle ? 0.0f : static_cast<float>(squared / 2));
    }
    const double terms = centres.bands + 8;
    m_of_length = 2 * terms * unit * std::sqrt(greatest);
    m_of_square = 4 * terms * unit_of_doubles;
    m_least = 4 * terms * least;
    m_margin = (8 * unit + m_of_square) * greatest + m_least;
}

double Screen::margin(float squared) const {
    constexpr double most = 1e30; // below the size at which sums may overflow
    const double square = squared,
                 margin = m_of_length * std::sqrt(square + m_least) + m_of_square * square + m_margin;
    return margin < most ? margin : std::numeric_limits<double>::infinity();
}

Look::Look(int bands, Distance distance, int centres)
    : m_bands(bands), m_distance(distance), m_copy(static_cast<size_t>(bands) * group),
      m_products(static_cast<size_t>(centres) * group), m_values(m_copy.size()) {
    std::fill_n(m_copy.data(), m_copy.size(), 0.0f);
}

void Look::take(const float* first, ptrdiff_t band_stride, int count) {
    m_count = count;
    m_expanded = false;
    m_raw = first;
    if (band_stride == group && count == group) return;
    m_raw = m_copy.data();
    float* to = m_copy.data();
    for (int b = 0; b < m_bands; ++b, to += group)
        std::copy_n(first + b * band_stride, count, to);
}

void Look::find_nearest(const Screen& screen, uint32_t pixels) {
    const int count = screen.centres().count;
    std::array<float, group> squares, best, second, least;
    simd_kernels().screen(m_raw, m_bands, screen.singles(), count, m_products.data(), squares.data());
    best.fill(-std::numeric_limits<float>::infinity());
    second = best;
    m_index.fill(0);
    for (int k = 0; k < count; ++k) {
        float* const score = m_products.data() + static_cast<ptrdiff_t>(k) * group;
        const float less = screen.half_square(k);
        for (size_t i = 0; i < group; ++i) {
            score[i] -= less;
            const bool better = score[i] > best[i];
            const float worse = better ? best[i] : score[i];
            second[i] = worse > second[i] ? worse : second[i];
            best[i] = better ? score[i] : best[i];
            m_index[i] = better ? k : m_index[i];
        }
    }
    std::array<double, group> margin;
    for (size_t i = 0; i < group; ++i) {
        margin[i] = screen.margin(squares[i]);
        least[i] = static_cast<float>(static_cast<double>(best[i]) - margin[i]);
    }
    // Counts the centres that are not certainly farther than the best one. NaN is not certain.
    std::array<int32_t, group> near{};
    for (int k = 0; k < count; ++k) {
        const float* const score = m_products.data() + static_cast<ptrdiff_t>(k) * group;
        for (size_t i = 0; i < group; ++i)
            near[i] += score[i] < least[i] ? 0 : 1;
    }
    uint32_t open = 0;
    for (int i = 0; i < m_count; ++i)
        if (near[static_cast<size_t>(i)] != 1) open |= uint32_t{1} << i;
    open &= pixels;
    m_gap = 0;
    if (open == 0) {
        m_gap = std::numeric_limits<double>::infinity();
        for (size_t i = 0; i < group; ++i)
            if ((pixels >> i & 1) != 0)
                m_gap = std::min(m_gap, gap_of(squares[i], best[i], second[i], margin[i]));
        return;
    }
    m_among.clear();
    for (int k = 0; k < count; ++k) {
        const float* const score = m_products.data() + static_cast<ptrdiff_t>(k) * group;
        bool is_near = false;
        for (size_t i = 0; i < group; ++i)
            is_near = is_near || ((open >> i & 1) != 0 && !(score[i] < least[i]));
        if (is_near) m_among.push_back(k);
    }
    find_exactly(screen.centres(), m_among, open);
}

/// Returns a lower bound of the difference in distance between the second nearest centre and the nearest one,
/// minus the error in double precision.
double Look::gap_of(double squared, double best, double second, double margin) const {
    // length_of_one: allowance for |u| and |c|, which differ from 1 by rounding, also to multiples of 2^-40
    constexpr double rounding = 1e-6, length_of_one = 1e-4;
    // Lower bound of the difference of the two squared distances, and upper bound of the greater one
    double apart = 2 * (best - second - margin), square = squared - 2 * second + 3 * margin;
    if (m_distance == Distance::angle) {
        const double length = std::sqrt(squared), relative = margin / length;
        apart /= length + margin;
        square = 2 - 2 * second / length + 8 * relative;
    }
    const double both = 2 * std::sqrt(std::max(square, 0.0)); // at least the sum of both distances
    const double gap = apart / both - rounding * both - (m_distance == Distance::angle ? length_of_one : 0.0);
    return gap > 0 ? gap : 0; // also 0 for NaN
}

void Look::find_exactly(const Centres& centres, const std::vector<int>& among, uint32_t pixels) {
    std::array<double, group> best, here;
    std::array<int32_t, group> index, any;
    expand();
    if (static_cast<int>(among.size()) > centres.count / 2) { // Comparing with all centres costs no more.
        measure(centres, 0, centres.count, best.data(), index.data());
    } else {
        for (size_t n = 0; n < among.size(); ++n) {
            measure(centres, among[n], 1, here.data(), any.data());
            for (size_t i = 0; i < group; ++i) {
                const bool better =
                    n == 0 || (m_distance == Distance::angle ? here[i] > best[i] : here[i] < best[i]);
                best[i] = better ? here[i] : best[i];
                index[i] = better ? among[n] : index[i];
            }
        }
    }
    for (size_t i = 0; i < group; ++i)
        if ((pixels >> i & 1) != 0) m_index[i] = index[i];
}

template <class Number, class One>
const std::array<double, group>& Look::of_each(const Number& number, const One& one) {
    std::array<double, group> here;
    expand();
    for (int i = 0; i < m_count; ++i) {
        const int k = number(i);
        bool measured = k < 0;
        for (int before = 0; before < i; ++before)
            measured = measured || number(before) == k;
        if (measured) continue;
        one(k, here.data());
        for (int j = i; j < m_count; ++j)
            if (number(j) == k) m_distances[static_cast<size_t>(j)] = here[static_cast<size_t>(j)];
    }
    return m_distances;
}

const std::array<double, group>& Look::distances(const Centres& centres) {
    std::array<int32_t, group> any;
    return of_each([&](int i) { return index(i); },
                   [&](int k, double* to) {
                       measure(centres, k, 1, to, any.data());
                       for (size_t i = 0; m_distance == Distance::angle && i < group; ++i)
                           to[i] = 2 - 2 * to[i];
                   });
}

const std::array<double, group>& Look::squares(const Centres& centres, const uint16_t* labels) {
    std::array<int32_t, group> any;
    return of_each([&](int i) { return labels[i] - 1; },
                   [&](int k, double* to) {
                       simd_kernels().nearest(m_values.data(), m_bands, centres.of(k), 1, to, any.data());
                   });
}

void Look::measure(const Centres& centres, int first, int count, double* best, int32_t* index) const {
    const auto& kernels = simd_kernels();
    const auto kernel = m_distance == Distance::angle ? kernels.most_alike : kernels.nearest;
    kernel(m_values.data(), m_bands, centres.of(first), count, best, index);
}

void Look::expand() {
    if (m_expanded) return;
    m_expanded = true;
    std::copy_n(m_raw, m_values.size(), m_values.data());
    double* to = nullptr;
    if (m_distance != Distance::angle) return;
    m_length.fill(0.0);
    to = m_values.data();
    for (int b = 0; b < m_bands; ++b, to += group)
        for (size_t i = 0; i < group; ++i)
            m_length[i] += to[i] * to[i];
    for (double& v : m_length)
        v = std::sqrt(v);
    // Adding `whole` to a number below 2^51 and subtracting it again rounds the number to an integer.
    constexpr double unit = 0x1p40, whole = 0x1.8p52;
    to = m_values.data();
    for (int b = 0; b < m_bands; ++b, to += group)
        for (size_t i = 0; i < group; ++i)
            to[i] = ((to[i] / m_length[i] * unit + whole) - whole) / unit;
}

void Look::get(int i, double* to) {
    expand();
    for (int b = 0; b < m_bands; ++b)
        to[b] = m_values[static_cast<size_t>(b) * group + static_cast<size_t>(i)];
    if (m_distance == Distance::angle) to[m_bands] = m_length[static_cast<size_t>(i)];
}

void walk(Scene& scene, const std::string& name, uint64_t visitor_bytes,
          const std::function<std::unique_ptr<Visitor>()>& make, const std::function<void(Visitor&)>& merge) {
    if (scene.kept.any()) return walk_kept(scene, name, visitor_bytes, make, merge);
    auto pass = scene.make_pass(name);
    pass.memory -= std::min(pass.memory / 2, scene.held);
    WalkOperation operation(scene.source.shape().samples, scene.labels.data(), visitor_bytes, make, merge);
    const auto plan = stream::plan_pass(scene.source, operation, pass);
    // The labels of a tile stay on one rank, so each walk gives the tile to the same rank.
    const int ranks = parallel::group().size();
    if (ranks > 1) pass.owner = [ranks](const Tile& tile) { return static_cast<int>(tile.index % ranks); };
    scene.passes.push_back(stream::run_pass(scene.source, operation, {}, plan, pass));
}

std::unique_ptr<stream::Operation> plan_walk(const stream::CubeShape& scene, uint64_t visitor_bytes) {
    return std::make_unique<WalkOperation>(scene.samples, nullptr, visitor_bytes,
                                           std::function<std::unique_ptr<Visitor>()>(),
                                           std::function<void(Visitor&)>());
}

} // namespace hsi::cluster
