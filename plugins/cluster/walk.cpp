// SPDX-License-Identifier: MIT
#include "cluster/walk.h"

#include "parallel/group.h"
#include "parallel/threads.h"
#include "stream/pipeline.h"

#include <algorithm>
#include <cmath>
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
    bool divides() const override { return true; } // what is gathered is put together after the walk
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
    // No more threads than memory holds the sums of.
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

Look::Look(int bands, Distance distance)
    : m_bands(bands), m_distance(distance), m_values(static_cast<size_t>(bands) * group) {
    std::fill_n(m_values.data(), m_values.size(), 0.0);
}

void Look::take(const float* first, ptrdiff_t band_stride, int count) {
    double* to = m_values.data();
    for (int b = 0; b < m_bands; ++b, to += group) {
        const float* const from = first + b * band_stride;
        if (count == group)
            for (int i = 0; i < group; ++i)
                to[i] = from[i];
        else
            for (int i = 0; i < count; ++i)
                to[i] = from[i];
    }
    if (m_distance != Distance::angle) return;
    m_length.fill(0.0);
    to = m_values.data();
    for (int b = 0; b < m_bands; ++b, to += group)
        for (size_t i = 0; i < group; ++i)
            m_length[i] += to[i] * to[i];
    for (double& v : m_length)
        v = std::sqrt(v);
    // A number below 2^51 becomes a whole one beside this one, which has no digits behind the point.
    constexpr double unit = 0x1p40, whole = 0x1.8p52;
    to = m_values.data();
    for (int b = 0; b < m_bands; ++b, to += group)
        for (size_t i = 0; i < group; ++i)
            to[i] = ((to[i] / m_length[i] * unit + whole) - whole) / unit;
}

void Look::find_nearest(const Centres& centres) {
    const auto& kernels = simd_kernels();
    const auto kernel = m_distance == Distance::angle ? kernels.most_alike : kernels.nearest;
    kernel(m_values.data(), m_bands, centres.values.data(), centres.count, m_best.data(), m_index.data());
}

void Look::get(int i, double* to) const {
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
    // The labels of a tile stay with one rank.
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
