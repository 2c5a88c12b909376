// SPDX-License-Identifier: MIT
// Groups that a map defines, for a scene on a GPU, where pixels are sorted by group.
#include "cuda/copy.h"
#include "cuda/device.h"
#include "cuda/pinned.h"
#include "cuda/stream.h"
#include "detect/groups/group_scorer.cuh"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace hsi::detect {
namespace {

using cuda::DeviceBuffer;
using cuda::DeviceGuard;

class CudaGroupScene final : public GroupScene {
  public:
    CudaGroupScene(int ordinal, const stream::CubeShape& scene, const GroupPlane& plane,
                   const GroupOptions& options, const PixelMask* mask, double& kernel_seconds)
        : m_ordinal(ordinal), m_scene(scene), m_options(options), m_kernel_seconds(kernel_seconds),
          m_order(static_cast<size_t>(scene.pixels())),
          m_mask(mask != nullptr ? static_cast<size_t>(scene.pixels()) : 0),
          m_scorer(m_options, scene.bands, static_cast<size_t>(plane.groups) + 1, m_order.size(),
                   m_stream.get()) {
        sort(plane);
        if (mask == nullptr) return;
        std::vector<uint8_t> counting(m_mask.size());
        for (int64_t i = 0; i < scene.pixels(); ++i)
            counting[static_cast<size_t>(i)] = mask->at(i);
        m_mask.upload(counting.data(), counting.size(), m_stream.get());
        m_stream.synchronize();
    }
    static uint64_t bytes(const stream::CubeShape& scene, const GroupPlane& plane,
                          const GroupOptions& options) {
        const auto pixels = static_cast<uint64_t>(scene.pixels()),
                   // One more plane for the map
            planes = std::max<uint64_t>(1, options.targets.names.size()) + 1;
        return GroupScorer::bytes(options, scene.bands, static_cast<uint64_t>(plane.groups) + 1, pixels) +
               pixels * (4 * (planes + 2) + 1);
    }

    std::unique_ptr<stream::Operation> loading() override { return std::make_unique<Loading>(*this); }
    std::unique_ptr<GroupedDetection> make_detection(const Decision& decision) override;

  private:
    /// Copies tiles to their positions in the scene.
    class Loading final : public stream::Operation {
      public:
        explicit Loading(CudaGroupScene& scene) : m_scene(scene) {}
        std::shared_ptr<HostAllocator> allocator() const override {
            return std::make_shared<cuda::PinnedAllocator>(m_scene.m_ordinal);
        }
        bool reads_in_place() const override { return true; }
        std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
            const DeviceGuard guard(m_scene.m_ordinal);
            return std::make_unique<Lane>(m_scene);
        }

      private:
        struct Lane final : stream::Worker {
            explicit Lane(CudaGroupScene& s) : scene(s) {}
            void process(const Tile& tile, const CubeView<float>& in,
                         const std::vector<CubeView<float>>&) override {
                const DeviceGuard guard(scene.m_ordinal);
                cuda::copy_cube(scene.raster().cut(tile.core.x, tile.core.y, tile.core.w, tile.core.h), in,
                                stream.get());
                stream.synchronize();
            }
            CudaGroupScene& scene;
            cuda::Stream stream;
        };
        CudaGroupScene& m_scene;
    };
    class Scores;

    /// Returns the scene in raster order. Call this function before sort().
    CubeView<float> raster() const {
        return CubeView<float>::packed(m_scorer.x(), m_scene.bands, m_scene.lines, m_scene.samples);
    }

    /// Reorders pixels group by group; pixels without a group come last.
    void sort(const GroupPlane& plane) {
        m_groups.resize(static_cast<size_t>(plane.groups) + 1);
        const auto group_of = [&](uint16_t number) {
            return number != 0 ? static_cast<size_t>(number) - 1 : m_groups.size() - 1;
        };
        for (const uint16_t number : plane.of)
            ++m_groups[group_of(number)].pixels;
        std::vector<int64_t> next;
        int64_t place = 0;
        for (auto& group : m_groups) {
            group.place = group.values = place;
            next.push_back(place);
            place += group.pixels;
        }
        m_groups.back().fate = gpu::no_group;
        std::vector<int> order(plane.of.size());
        for (size_t i = 0; i < plane.of.size(); ++i)
            order[static_cast<size_t>(next[group_of(plane.of[i])]++)] = static_cast<int>(i);
        m_order.upload(order.data(), order.size(), m_stream.get());
        m_stream.synchronize();
    }

    gpu::GroupWork work() const {
        gpu::GroupWork w;
        w.samples = w.core_samples = m_scene.samples;
        w.lines = m_scene.lines;
        w.mask = m_mask.data();
        w.order = m_order.data();
        w.pitch = w.places = m_scene.pixels();
        return m_scorer.with_buffers(w);
    }

    /// Scores the loaded scene. Call this function once.
    void score() {
        if (m_scored) return;
        m_work = work();
        {
            const DeviceBuffer<float> room(m_order.size());
            for (int b = 0; b < m_scene.bands; ++b)
                gpu::launch_sort(m_work, m_scorer.x() + b * m_scene.pixels(), room.data(), m_stream.get());
            m_stream.synchronize();
        }
        m_scorer.begin(m_groups, m_work, m_stream.get());
        m_scorer.score(m_work, m_groups, m_stream.get());
        m_scored = true;
    }

    std::vector<GroupRecord> records() const {
        std::vector<GroupRecord> all;
        for (size_t g = 0; g + 1 < m_groups.size(); ++g)
            all.push_back(GroupScorer::record_of(m_groups[g]));
        return all;
    }

    const int m_ordinal;
    const stream::CubeShape m_scene;
    const GroupOptions m_options;
    double& m_kernel_seconds;
    cuda::Stream m_stream;
    cuda::KernelClock m_clock;
    DeviceBuffer<int> m_order;
    DeviceBuffer<uint8_t> m_mask;
    GroupScorer m_scorer;
    std::vector<gpu::DeviceGroup> m_groups; ///< the last group holds the pixels without a group
    gpu::GroupWork m_work;
    bool m_scored = false;
};

/// A detection whose scores are on the device already.
class CudaGroupScene::Scores final : public GroupedDetection {
  public:
    Scores(CudaGroupScene& scene, const Decision& decision)
        : m_scene(scene), m_bands(scene.m_work.planes()), m_map(decision.map),
          m_scores(scene.m_order.size() * static_cast<size_t>(m_bands)),
          m_best(m_map ? scene.m_order.size() : 0) {
        const auto stream = scene.m_stream.get();
        DeviceBuffer<unsigned long long> counts(4);
        counts.clear(stream);
        gpu::Output to;
        to.scores = m_scores.data();
        to.map = m_best.data();
        to.has_threshold = decision.threshold.has_value();
        to.threshold = decision.threshold.value_or(0);
        to.counts = counts.data();
        gpu::launch_output(scene.m_work, to, stream);
        std::array<unsigned long long, 4> found{};
        counts.download(found.data(), found.size(), stream);
        scene.m_stream.synchronize();
        m_valid = static_cast<int64_t>(found[0]);
        m_invalid = static_cast<int64_t>(found[1]);
        m_in_bad_groups = static_cast<int64_t>(found[2]);
        m_without_group = static_cast<int64_t>(found[3]);
    }
    std::vector<int> output_bands() const override {
        return m_map ? std::vector<int>{m_bands, 1} : std::vector<int>{m_bands};
    }
    std::shared_ptr<HostAllocator> allocator() const override {
        return std::make_shared<cuda::PinnedAllocator>(m_scene.m_ordinal);
    }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
        const DeviceGuard guard(m_scene.m_ordinal);
        return std::make_unique<Lane>(*this);
    }
    std::vector<GroupRecord> groups() const override { return m_scene.records(); }

  private:
    struct Lane final : stream::Worker {
        explicit Lane(const Scores& s) : scores(s) {}
        void process(const Tile& tile, const CubeView<float>&,
                     const std::vector<CubeView<float>>& out) override {
            const DeviceGuard guard(scores.m_scene.m_ordinal);
            for (size_t k = 0; k < out.size(); ++k)
                cuda::copy_cube(out[k],
                                scores.view(k).cut(tile.core.x, tile.core.y, tile.core.w, tile.core.h),
                                stream.get());
            stream.synchronize();
        }
        const Scores& scores;
        cuda::Stream stream;
    };
    CubeView<float> view(size_t output) const {
        const auto& shape = m_scene.m_scene;
        return output == 0 ? CubeView<float>::packed(m_scores.data(), m_bands, shape.lines, shape.samples)
                           : CubeView<float>::packed(m_best.data(), 1, shape.lines, shape.samples);
    }

    const CudaGroupScene& m_scene;
    const int m_bands;
    const bool m_map;
    DeviceBuffer<float> m_scores, m_best;
};

std::unique_ptr<GroupedDetection> CudaGroupScene::make_detection(const Decision& decision) {
    const DeviceGuard guard(m_ordinal);
    m_clock.start(m_stream.get());
    score();
    auto made = std::make_unique<Scores>(*this, decision);
    m_clock.stop(m_stream.get());
    m_stream.synchronize();
    m_kernel_seconds += m_clock.seconds();
    return made;
}

} // namespace

std::unique_ptr<GroupScene> make_cuda_group_scene(const CudaDevice& device, const stream::CubeShape& scene,
                                                  const GroupPlane& plane, const GroupOptions& options,
                                                  const PixelMask* mask, uint64_t memory,
                                                  double& kernel_seconds) {
    const DeviceGuard guard(device.ordinal);
    const uint64_t free = cuda::free_memory(device.ordinal),
                   room = memory > 0 ? std::min(memory, free) : free / 5 * 4;
    if (!groups_on_devices(options, scene.bands) || scene.pixels() > std::numeric_limits<int>::max() ||
        CudaGroupScene::bytes(scene, plane, options) > room)
        return nullptr;
    return std::make_unique<CudaGroupScene>(device.ordinal, scene, plane, options, mask, kernel_seconds);
}

} // namespace hsi::detect
