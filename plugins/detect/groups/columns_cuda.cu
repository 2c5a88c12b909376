// SPDX-License-Identifier: MIT
// hsi_cuda_detect_groups.so: groups of columns on GPUs, all groups of a tile at a time. classes_cuda.cu
// handles the groups of a map.
#include "cuda/column_pack.cuh"
#include "detect/detect_cuda_lane.cuh"
#include "detect/groups/column_task.h"
#include "detect/groups/group_scorer.cuh"

#include <algorithm>

namespace hsi::detect {
namespace {

using cuda::DeviceBuffer;

/// Returns the maximum number of groups that overlap a tile with this number of samples.
int64_t most_groups(const ColumnTask& task, int64_t samples) {
    return std::min<int64_t>(samples, samples / task.columns.width + 2);
}

/// Returns the number of pixels that a group has room for.
int64_t pitch_of(const ColumnTask& task) { return (task.pixels() + 31) / 32 * 32; }

class ColumnDeviceLane final : public CudaWorker {
  public:
    ColumnDeviceLane(int ordinal, const ColumnTask& task, const TileLimits& l)
        : CudaWorker(ordinal, task.scene.bands, output_list(task.scores(), task.decision), task.decision, l),
          m_task(task), m_places(static_cast<size_t>(l.window_samples)),
          m_mask(task.mask ? window_pixels(l) : 0),
          m_scorer(task.options, task.scene.bands, static_cast<size_t>(most_groups(task, l.window_samples)),
                   static_cast<size_t>(most_groups(task, l.window_samples) * pitch_of(task)), m_stream.get()),
          m_host_mask(task.mask ? window_pixels(l) : 1) {}
    static uint64_t device_bytes(const ColumnTask& task, const TileLimits& l) {
        const auto groups = static_cast<uint64_t>(most_groups(task, l.window_samples));
        return common_bytes(task.scene.bands, output_list(task.scores(), task.decision), l) +
               GroupScorer::bytes(task.options, task.scene.bands, groups,
                                  groups * static_cast<uint64_t>(pitch_of(task))) +
               static_cast<uint64_t>(l.window_samples) * sizeof(cuda::SamplePlace) +
               (task.mask ? window_pixels(l) : 0);
    }

    std::vector<ColumnLane::Found> found;

  private:
    void launch(const Tile& tile, const CubeView<float>& in, gpu::Output& to, cudaStream_t stream) override {
        gpu::GroupWork w;
        w.samples = in.samples;
        w.lines = in.lines;
        w.core_first = tile.core.x - tile.window.x;
        w.core_samples = tile.core.w;
        w.pitch = pitch_of(m_task);
        const Columns& c = m_task.columns;
        const int64_t first = c.group(tile.core.x), end = c.group(tile.core.right() - 1) + 1;
        std::vector<gpu::DeviceGroup> groups(static_cast<size_t>(end - first));
        w.places = static_cast<int64_t>(groups.size()) * w.pitch;
        std::vector<cuda::SamplePlace> places(static_cast<size_t>(in.samples));
        for (size_t g = 0; g < groups.size(); ++g) {
            const int64_t group = first + static_cast<int64_t>(g), x = m_task.first_sample(group),
                          width = m_task.end_sample(group) - x;
            groups[g].place = static_cast<int64_t>(g) * w.pitch;
            groups[g].values = groups[g].place * m_task.scene.bands;
            groups[g].first = static_cast<int>(x - tile.window.x);
            groups[g].width = static_cast<int>(width);
            groups[g].pixels = static_cast<int>(width * in.lines);
            for (int64_t s = 0; s < width; ++s)
                places[static_cast<size_t>(x - tile.window.x + s)] = {groups[g].values + s, groups[g].width};
        }
        m_places.upload(places.data(), places.size(), stream);
        take_mask(tile, in, w, stream);
        w = m_scorer.with_buffers(w);
        m_scorer.begin(groups, w, stream);
        cuda::pack_columns(m_raw, in.bands, in.lines, in.samples, m_places.data(), w.pitch, w.x, stream);
        m_scorer.score(w, groups, stream);
        gpu::launch_output(w, to, stream);
        for (size_t g = 0; g < groups.size(); ++g) {
            const int64_t group = first + static_cast<int64_t>(g);
            if (m_task.first_sample(group) < tile.core.x) continue; // the previous tile covers this group
            found.push_back({group - c.group(0), GroupScorer::record_of(groups[g])});
        }
    }

    void take_mask(const Tile& tile, const CubeView<float>& in, gpu::GroupWork& w, cudaStream_t stream) {
        if (m_task.mask == nullptr) return;
        for (int64_t y = 0; y < in.lines; ++y)
            for (int64_t x = 0; x < in.samples; ++x)
                m_host_mask[static_cast<size_t>(y * in.samples + x)] =
                    m_task.mask->at(tile.window.y + y, tile.window.x + x);
        m_mask.upload(m_host_mask.data(), static_cast<size_t>(in.lines * in.samples), stream);
        w.mask = m_mask.data();
    }

    const ColumnTask& m_task;
    DeviceBuffer<cuda::SamplePlace> m_places;
    DeviceBuffer<uint8_t> m_mask;
    GroupScorer m_scorer;
    std::vector<uint8_t> m_host_mask;
};

class CudaColumns final : public cuda::LaneOperation<ColumnDetection> {
  public:
    CudaColumns(std::vector<CudaDevice> devices, ColumnTask task, double& kernel_seconds)
        : LaneOperation(std::move(devices), std::move(task)), m_kernel_seconds(kernel_seconds) {}
    uint64_t preferred_bytes() const override { return uint64_t{64} << 20; }
    uint64_t scratch_bytes(const TileLimits& l) const override {
        constexpr uint64_t matrices = 4; // matrices on the host while it makes a detector
        const auto bands = static_cast<uint64_t>(task().scene.bands);
        return matrices * 8 * bands * bands + window_pixels(l);
    }
    uint64_t device_bytes(const TileLimits& l) const override {
        return ColumnDeviceLane::device_bytes(task(), l);
    }
    void stop(stream::Worker& worker) override {
        const auto& lane = static_cast<const ColumnDeviceLane&>(worker);
        take(lane.counts[0], lane.counts[1], lane.counts[2], lane.found);
        m_kernel_seconds += lane.kernel_seconds;
    }

  private:
    std::unique_ptr<stream::Worker> make_lane(const cuda::LaneDevice& on, const TileLimits& l) override {
        return std::make_unique<ColumnDeviceLane>(on.ordinal, task(), l);
    }
    double& m_kernel_seconds;
};

class CudaGroupBackend final : public cuda::TimedBackend<GroupBackend> {
  public:
    using TimedBackend::TimedBackend;
    std::unique_ptr<GroupedDetection>
    make_column_detection(const stream::CubeShape& scene, const Columns& columns, const GroupOptions& options,
                          const Decision& decision, const PixelMask* mask) override {
        if (!groups_on_devices(options, scene.bands))
            return GroupBackend::make_column_detection(scene, columns, options, decision, mask);
        return std::make_unique<CudaColumns>(
            m_devices, make_column_task(scene, columns, options, decision, mask), m_kernel_seconds);
    }
    std::unique_ptr<GroupScene> make_group_scene(const stream::CubeShape& scene, const GroupPlane& plane,
                                                 const GroupOptions& options, const PixelMask* mask,
                                                 uint64_t memory) override {
        return make_cuda_group_scene(m_devices.front(), scene, plane, options, mask, memory,
                                     m_kernel_seconds);
    }
};

} // namespace
} // namespace hsi::detect

extern "C" __attribute__((visibility("default"))) hsi::detect::GroupBackend*
hsi_cuda_detect_groups(const std::vector<hsi::CudaDevice>& devices) {
    return new hsi::detect::CudaGroupBackend(devices);
}
