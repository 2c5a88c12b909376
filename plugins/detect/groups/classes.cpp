// SPDX-License-Identifier: MIT
// Groups that a map defines. Their pixels may be anywhere, so the pixels of a block or strip of the scene are
// gathered group by group before operations on scenes process them.
#include "core/error.h"
#include "core/valid_pixel.h"
#include "detect/groups/groups.h"
#include "parallel/group.h"
#include "stream/statistics_sums.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>

namespace hsi::detect {
namespace {

constexpr auto scan_block = stream::block_shape(stream::Statistics::double_covariance);
constexpr int64_t block_size = scan_block.samples * scan_block.lines;
/// Pixels of a strip that are scored together, unless a line has more.
constexpr int64_t strip_pixels = 8192;

/// The pixels of a window, sorted by group. Each group has the positions of its pixels in raster order.
class Members {
  public:
    explicit Members(int groups) : m_count(static_cast<size_t>(groups) + 1) {}
    static uint64_t bytes(int groups, int64_t pixels) {
        return static_cast<uint64_t>(groups + 1) * 8 + static_cast<uint64_t>(pixels) * 10;
    }

    /// Sorts the pixels of `window` in the scene. Pixels outside the mask get group 0, which is no group.
    void sort(const GroupPlane& plane, const PixelMask* mask, const Rect& window) {
        m_keys.resize(static_cast<size_t>(window.area()));
        m_order.resize(m_keys.size());
        present.clear();
        size_t i = 0;
        for (int64_t line = window.y; line < window.bottom(); ++line)
            for (int64_t sample = window.x; sample < window.right(); ++sample, ++i) {
                const bool in = mask == nullptr || mask->at(line, sample);
                const int key = in ? plane.at(line, sample) : 0;
                m_keys[i] = static_cast<uint16_t>(key);
                if (m_count[static_cast<size_t>(key)]++ == 0) present.push_back(key);
            }
        std::sort(present.begin(), present.end());
        m_begin.assign(1, 0);
        for (const int key : present) {
            m_begin.push_back(m_begin.back() + m_count[static_cast<size_t>(key)]);
            m_count[static_cast<size_t>(key)] = m_begin[m_begin.size() - 2];
        }
        for (i = 0; i < m_keys.size(); ++i)
            m_order[static_cast<size_t>(m_count[m_keys[i]]++)] = static_cast<int32_t>(i);
        for (const int key : present)
            m_count[static_cast<size_t>(key)] = 0;
    }
    std::vector<int> present; ///< groups that have a pixel, in ascending order; 0 is included
    /// Return the first position of group present[k], and one past its last position.
    const int32_t* begin(size_t k) const { return m_order.data() + m_begin[k]; }
    const int32_t* end(size_t k) const { return m_order.data() + m_begin[k + 1]; }

  private:
    std::vector<int64_t> m_count; ///< number of pixels of each group; zero between calls of sort()
    std::vector<int64_t> m_begin;
    std::vector<uint16_t> m_keys;
    std::vector<int32_t> m_order;
};

/// Gathers pixels of a window into rows of `width`; the rest of the last row is NaN.
CubeView<float> gathered(const CubeView<float>& in, const int32_t* first, const int32_t* last, int64_t width,
                         float* to, int64_t room, std::vector<ptrdiff_t>& offsets) {
    const auto count = static_cast<int64_t>(last - first);
    const int64_t samples = std::min(count, width), lines = (count + samples - 1) / samples;
    offsets.clear();
    for (const int32_t* at = first; at != last; ++at)
        offsets.push_back(*at / in.samples * in.line_stride + *at % in.samples);
    for (int b = 0; b < in.bands; ++b) {
        const float* const band = in.row(b, 0);
        float* const row = to + b * room;
        for (size_t i = 0; i < offsets.size(); ++i)
            row[i] = band[offsets[i]];
        std::fill(row + count, row + lines * samples, no_value);
    }
    return {to, in.bands, lines, samples, samples, room};
}

stream::TileLimits limits_of(int64_t samples, int64_t lines) {
    stream::TileLimits limits;
    limits.window_samples = limits.core_samples = samples;
    limits.window_lines = limits.core_lines = lines;
    return limits;
}

Tile tile_of(const CubeView<float>& view) {
    const Rect all{0, 0, view.samples, view.lines};
    return {0, all, all};
}

/// Counts pixels without a group.
class Others {
  public:
    explicit Others(int bands) : finite(static_cast<size_t>(bands)) {}
    void take(const CubeView<float>& in, const int32_t* first, const int32_t* last) {
        for (const int32_t* at = first; at != last; ++at) {
            const float* const x = in.row(0, *at / in.samples) + *at % in.samples;
            for (int b = 0; b < in.bands; ++b)
                finite[static_cast<size_t>(b)] += std::isfinite(x[b * in.band_stride]);
            ++(is_valid_pixel(x, in.bands, in.band_stride) ? valid : invalid);
        }
    }
    int64_t valid = 0, invalid = 0;
    std::vector<int64_t> finite;
};

} // namespace

// Moments
// ----------------------------------------------------------------------------------------------------------

struct GroupScan::Totals {
    explicit Totals(int bands) : others(bands) {}
    std::shared_ptr<std::vector<stream::StatisticsSums>> sums =
        std::make_shared<std::vector<stream::StatisticsSums>>();
    std::array<std::mutex, 64> mutexes; ///< Mutex g % 64 guards the sums of group g.
    Others others;                      ///< pixels without a group or outside the mask
};

/// Passes a block to a worker of StatisticsScan group by group, and adds the results to the sums of the
/// group, which all workers share.
class GroupScan::Worker final : public stream::Worker {
  public:
    Worker(const GroupScan& scan, std::unique_ptr<stream::Worker> behind)
        : others(scan.m_scene.bands), m_scan(scan), m_behind(std::move(behind)),
          m_members(scan.m_plane.groups),
          m_gathered(static_cast<size_t>(block_size) * static_cast<size_t>(scan.m_scene.bands)) {}
    static uint64_t bytes(int bands, int groups) {
        return static_cast<uint64_t>(block_size) * static_cast<uint64_t>(bands) * 4 +
               Members::bytes(groups, block_size) + static_cast<uint64_t>(block_size) * 8;
    }

    void process(const Tile& tile, const CubeView<float>& in, const std::vector<CubeView<float>>&) override {
        stream::for_each_block(
            scan_block, tile, in,
            [this](const CubeView<float>& block, int64_t x, int64_t y) { add_block(block, x, y); });
    }
    Others others;

  private:
    void add_block(const CubeView<float>& block, int64_t x, int64_t y) {
        m_members.sort(m_scan.m_plane, m_scan.m_mask, {x, y, block.samples, block.lines});
        for (size_t k = 0; k < m_members.present.size(); ++k) {
            const int group = m_members.present[k];
            if (group == 0) {
                others.take(block, m_members.begin(k), m_members.end(k));
                continue;
            }
            const int64_t count = m_members.end(k) - m_members.begin(k);
            const auto view = count == block.samples * block.lines
                                  ? block
                                  : gathered(block, m_members.begin(k), m_members.end(k), scan_block.samples,
                                             m_gathered.data(), block_size, m_offsets);
            m_behind->process(tile_of(view), view, {});
            auto& found = static_cast<stream::StatisticsWorker&>(*m_behind).sums;
            found.invalid -= view.samples * view.lines - count; // subtracts the padding of the last row
            const auto g = static_cast<size_t>(group) - 1;
            {
                const std::lock_guard lock(m_scan.m_totals->mutexes[g % m_scan.m_totals->mutexes.size()]);
                (*m_scan.m_totals->sums)[g].add(found);
            }
            found = stream::StatisticsSums(block.bands, stream::Statistics::double_covariance);
        }
    }

    const GroupScan& m_scan;
    std::unique_ptr<stream::Worker> m_behind;
    Members m_members;
    HostBuffer<float> m_gathered; ///< bands x block_size
    std::vector<ptrdiff_t> m_offsets;
};

GroupScan::GroupScan(const stream::CubeShape& scene, const GroupPlane& plane, const PixelMask* mask)
    : m_scene(scene), m_plane(plane), m_mask(mask),
      m_scan({scan_block.samples, scan_block.lines, scene.bands}, stream::Statistics::double_covariance),
      m_totals(std::make_unique<Totals>(scene.bands)) {
    for (int g = 0; g < plane.groups; ++g)
        m_totals->sums->emplace_back(scene.bands, stream::Statistics::double_covariance);
}

GroupScan::~GroupScan() = default;

uint64_t GroupScan::bytes(int bands, int groups) {
    // Products of similar magnitude need six digits of 8 bytes per sum.
    return static_cast<uint64_t>(groups) * (stream::at_lower(bands, 0) + static_cast<uint64_t>(bands)) * 48;
}

uint64_t GroupScan::scratch_bytes(const stream::TileLimits&) const {
    return m_scan.scratch_bytes(limits_of(scan_block.samples, scan_block.lines)) +
           Worker::bytes(m_scene.bands, m_plane.groups);
}

std::unique_ptr<stream::Worker> GroupScan::start(int lane, const stream::TileLimits&) {
    return std::make_unique<Worker>(*this,
                                    m_scan.start(lane, limits_of(scan_block.samples, scan_block.lines)));
}

void GroupScan::stop(stream::Worker& worker) {
    const auto& others = static_cast<Worker&>(worker).others;
    m_totals->others.valid += others.valid;
    m_totals->others.invalid += others.invalid;
    for (size_t b = 0; b < others.finite.size(); ++b)
        m_totals->others.finite[b] += others.finite[b];
}

void GroupScan::exchange(parallel::Group& ranks) {
    for (auto& sums : *m_totals->sums)
        sums.unite(ranks);
    Others& others = m_totals->others;
    ranks.add_up("values without a group", others.finite);
    others.valid = ranks.sum("valid pixels without a group", others.valid);
    others.invalid = ranks.sum("invalid pixels without a group", others.invalid);
}

GroupBackgrounds GroupScan::result() const {
    GroupBackgrounds found;
    found.sums = m_totals->sums;
    found.valid_pixels = m_totals->others.valid;
    found.invalid_pixels = m_totals->others.invalid;
    auto finite = m_totals->others.finite;
    for (const auto& sums : *m_totals->sums) {
        found.valid_pixels += sums.valid;
        found.invalid_pixels += sums.invalid;
        for (size_t b = 0; b < finite.size(); ++b)
            finite[b] += sums.finite[b];
    }
    for (size_t b = 0; b < finite.size(); ++b)
        if (finite[b] == 0) found.empty.push_back(static_cast<int>(b));
    return found;
}

stream::SceneStatistics GroupBackgrounds::moments(size_t group) const {
    return sums ? (*sums)[group].result() : stream::SceneStatistics::assumed(scene);
}

// Scores
// ----------------------------------------------------------------------------------------------------------

namespace {

class ClassDetection final : public GroupedDetection {
  public:
    ClassDetection(const stream::CubeShape& scene, const GroupPlane& plane,
                   const std::vector<std::unique_ptr<Detector>>& detectors,
                   const std::vector<GroupRecord>& records, const Decision& decision)
        : m_scene(scene), m_plane(plane), m_records(records), m_decision(decision) {
        for (const auto& detector : detectors) {
            if (detector) m_scores = detector->scores();
            m_operations.push_back(detector ? make_detection(*detector, decision) : nullptr);
        }
    }
    std::vector<int> output_bands() const override {
        std::vector<int> bands{m_scores};
        if (m_decision.map) bands.push_back(1);
        return bands;
    }
    uint64_t scratch_bytes(const stream::TileLimits& limits) const override {
        const auto bands = static_cast<uint64_t>(m_scene.bands),
                   outputs = static_cast<uint64_t>(m_scores) + 1;
        const auto pixels = static_cast<uint64_t>(std::max(strip_pixels, limits.core_samples));
        return pixels * (4 * (bands + outputs) + 8) +
               Members::bytes(m_plane.groups, static_cast<int64_t>(pixels)) +
               64 * (bands * 16 + outputs * 16);
    }
    uint64_t preferred_bytes() const override { return uint64_t{8} << 20; }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits& limits) override {
        return std::make_unique<ClassWorker>(*this, std::max(strip_pixels, limits.core_samples));
    }
    void stop(stream::Worker& worker) override {
        const auto& w = static_cast<const ClassWorker&>(worker);
        m_valid += w.valid;
        m_invalid += w.invalid;
        m_without_group += w.without_group;
        m_in_bad_groups += w.in_bad_groups;
    }
    std::vector<GroupRecord> groups() const override { return m_records; }

  private:
    class ClassWorker final : public stream::Worker {
      public:
        ClassWorker(const ClassDetection& all, int64_t room)
            : m_all(all), m_room(room), m_members(all.m_plane.groups),
              m_gathered(static_cast<size_t>(room) * static_cast<size_t>(all.m_scene.bands)),
              m_scores(static_cast<size_t>(room) * static_cast<size_t>(all.m_scores + 1)) {}
        void process(const Tile& tile, const CubeView<float>& in,
                     const std::vector<CubeView<float>>& out) override {
            const int64_t height = std::max<int64_t>(1, m_room / in.samples);
            for (int64_t y = 0; y < in.lines; y += height) {
                const int64_t lines = std::min(height, in.lines - y);
                std::vector<CubeView<float>> strips;
                for (const auto& one : out)
                    strips.push_back(one.cut(0, y, in.samples, lines));
                do_strip({tile.window.x, tile.window.y + y, in.samples, lines},
                         in.cut(0, y, in.samples, lines), strips);
            }
        }
        int64_t valid = 0, invalid = 0, without_group = 0, in_bad_groups = 0;

      private:
        void do_strip(const Rect& window, const CubeView<float>& in,
                      const std::vector<CubeView<float>>& out) {
            m_members.sort(m_all.m_plane, nullptr, window);
            for (size_t k = 0; k < m_members.present.size(); ++k) {
                const int32_t *first = m_members.begin(k), *last = m_members.end(k);
                const int group = m_members.present[k];
                const auto* const operation =
                    group > 0 ? m_all.m_operations[static_cast<size_t>(group) - 1].get() : nullptr;
                if (operation != nullptr) {
                    score(group, in, first, last, out);
                    continue;
                }
                Others others(in.bands);
                others.take(in, first, last);
                (group > 0 ? in_bad_groups : without_group) += others.valid;
                invalid += others.invalid;
                for (const auto& one : out)
                    for (const int32_t* at = first; at != last; ++at)
                        for (int b = 0; b < one.bands; ++b)
                            one.row(b, *at / in.samples)[*at % in.samples] = no_value;
            }
        }
        void score(int group, const CubeView<float>& in, const int32_t* first, const int32_t* last,
                   const std::vector<CubeView<float>>& out) {
            const auto count = static_cast<int64_t>(last - first);
            const auto view = gathered(in, first, last, count, m_gathered.data(), m_room, m_offsets);
            const auto worker =
                m_all.m_operations[static_cast<size_t>(group) - 1]->start(0, limits_of(count, 1));
            std::vector<CubeView<float>> made;
            float* to = m_scores.data();
            for (const auto& one : out) {
                made.push_back(CubeView<float>::packed(to, one.bands, 1, count));
                to += one.bands * count;
            }
            worker->process(tile_of(view), view, made);
            for (int64_t i = 0; i < count; ++i)
                ++(std::isnan(made[0].row(0, 0)[i]) ? invalid : valid);
            for (size_t o = 0; o < out.size(); ++o)
                for (int b = 0; b < out[o].bands; ++b)
                    for (int64_t i = 0; i < count; ++i)
                        out[o].row(b, first[i] / in.samples)[first[i] % in.samples] = made[o].row(b, 0)[i];
        }

        const ClassDetection& m_all;
        const int64_t m_room; ///< maximum number of pixels of a strip
        Members m_members;
        HostBuffer<float> m_gathered, m_scores;
        std::vector<ptrdiff_t> m_offsets;
    };

    const stream::CubeShape m_scene;
    const GroupPlane& m_plane;
    const std::vector<GroupRecord>& m_records;
    const Decision m_decision;
    std::vector<std::unique_ptr<Detection>> m_operations; ///< one per group; null without scores
    int m_scores = 1;
};

} // namespace

std::unique_ptr<GroupedDetection>
make_group_detection(const stream::CubeShape& scene, const GroupPlane& plane,
                     const std::vector<std::unique_ptr<Detector>>& detectors,
                     const std::vector<GroupRecord>& records, const Decision& decision) {
    return std::make_unique<ClassDetection>(scene, plane, detectors, records, decision);
}

} // namespace hsi::detect
