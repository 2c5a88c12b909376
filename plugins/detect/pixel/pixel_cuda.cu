// SPDX-License-Identifier: MIT
// hsi_cuda_detect.so: scores and local RX on GPUs. A lane is a stream with its own buffers, made once; lanes
// take turns on the devices. Local RX goes through in batches of runs of pixels, as many as there is room for
// their matrices; a run's result depends on nothing but the scene.
#include "core/error.h"
#include "cuda/copy.h"
#include "cuda/device.h"
#include "cuda/device_buffer.h"
#include "cuda/lane_operation.h"
#include "cuda/pinned.h"
#include "cuda/spectrum_lengths.cuh"
#include "cuda/stream.h"
#include "detect/detect.h"
#include "detect/detect_cuda_kernels.cuh"
#include "detect/detect_cuda_lane.cuh"
#include "detect/fit/fit.h"
#include "detect/groups/groups_cuda.h"
#include "detect/local/ring.h"
#include "detect/tuned/tuned.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace hsi::detect {
namespace {

using cuda::DeviceBuffer;
using stream::TileLimits;

/// Of the matrices of a batch: a few thousand pixels of 200 bands keep a large device busy.
constexpr uint64_t batch_bytes = uint64_t{256} << 20;
constexpr int64_t most_batch_runs = 1024; // a batch's pixels are rows of a grid

// --- scores

/// A matrix as the kernels read it (gpu::panel_rows).
std::vector<double> panels_of(const std::vector<double>& matrix, size_t columns) {
    constexpr auto height = static_cast<size_t>(gpu::panel_rows);
    const size_t rows = matrix.size() / columns, count = (rows + height - 1) / height;
    std::vector<double> panels(count * height * columns);
    for (size_t r = 0; r < rows; ++r)
        for (size_t c = 0; c < columns; ++c)
            panels[(r / height * columns + c) * height + r % height] = matrix[r * columns + c];
    return panels;
}

/// The detector as the kernels read it.
struct Parts {
    explicit Parts(Detector d)
        : detector(std::move(d)), rows(panels_of(detector.rows, detector.used.size())),
          log_rows(panels_of(detector.log_rows, detector.used.size())),
          factor(panels_of(detector.factor, detector.used.size())) {}
    const Detector detector;
    const std::vector<double> rows, log_rows, factor;
    uint64_t bytes() const {
        return 8 * (rows.size() + log_rows.size() + factor.size() + detector.constants.size() +
                    detector.centre.size()) +
               4 * detector.used.size();
    }
    gpu::Kind kind() const {
        switch (detector.method) {
        case Method::sam:
            return gpu::Kind::sam;
        case Method::sid:
            return gpu::Kind::sid;
        case Method::ace:
            return gpu::Kind::ace;
        case Method::rx:
            return gpu::Kind::rx;
        default:
            return gpu::Kind::matched;
        }
    }
    /// Numbers a pixel that kernels leave for one another.
    uint64_t numbers() const {
        return static_cast<uint64_t>(detector.targets) + (detector.method == Method::sid ? 3
                                                          : detector.method == Method::sam || !factor.empty()
                                                              ? 1
                                                              : 0);
    }
};

class ScoreWorker final : public CudaWorker {
  public:
    ScoreWorker(int ordinal, const Parts& parts, const Decision& decision, const TileLimits& l)
        : CudaWorker(ordinal, parts.detector.bands, output_list(parts.detector.scores(), decision), decision,
                     l, true),
          m_parts(parts), m_used(parts.detector.used.size()), m_centre(parts.detector.centre.size()),
          m_rows(parts.rows.size()), m_log_rows(parts.log_rows.size()), m_factor(parts.factor.size()),
          m_constants(parts.detector.constants.size()), m_valid(window_pixels(l)),
          m_numbers(static_cast<size_t>(parts.numbers()) * window_pixels(l)) {
        const auto stream = m_stream.get();
        const Detector& d = parts.detector;
        m_used.upload(d.used.data(), d.used.size(), stream);
        const auto upload = [stream](DeviceBuffer<double>& to, const std::vector<double>& from) {
            if (!from.empty()) to.upload(from.data(), from.size(), stream);
        };
        upload(m_centre, d.centre);
        upload(m_rows, parts.rows);
        upload(m_log_rows, parts.log_rows);
        upload(m_factor, parts.factor);
        upload(m_constants, d.constants);
        m_stream.synchronize();
    }
    static uint64_t device_bytes(const Parts& p, const Decision& decision, const TileLimits& l) {
        return common_bytes(p.detector.bands, output_list(p.detector.scores(), decision), l) + p.bytes() +
               window_pixels(l) * (1 + 8 * p.numbers());
    }

  private:
    void launch(const Tile&, const CubeView<float>& in, gpu::Output& to, cudaStream_t stream) override {
        const auto pixels = static_cast<size_t>(in.lines * in.samples);
        gpu::ScoreWork w;
        w.kind = m_parts.kind();
        w.raw = m_raw;
        w.pixels = static_cast<int>(pixels);
        w.bands = in.bands;
        w.used_count = static_cast<int>(m_parts.detector.used.size());
        w.targets = m_parts.detector.targets;
        w.used = m_used.data();
        w.centre = m_centre.data();
        w.rows = m_rows.data();
        w.log_rows = m_log_rows.data();
        w.factor = m_factor.data();
        w.constants = m_constants.data();
        w.least_part = least_part;
        w.valid = m_valid.data();
        w.scores = m_numbers.data();
        double* const rest = m_numbers.data() + static_cast<size_t>(w.targets) * pixels;
        if (w.kind == gpu::Kind::sid) {
            w.greatest = rest;
            w.sum = rest + pixels;
            w.entropy = rest + 2 * pixels;
        } else {
            w.squared = rest;
        }
        to.small_is_best = is_small_at_target(m_parts.detector.method);
        gpu::launch_scores(w, to, stream);
    }

    const Parts& m_parts;
    DeviceBuffer<int> m_used;
    DeviceBuffer<double> m_centre, m_rows, m_log_rows, m_factor, m_constants;
    DeviceBuffer<uint8_t> m_valid;
    DeviceBuffer<double> m_numbers;
};

// --- local RX

struct LocalPlan {
    LocalPlan(int b, const Ring& r)
        : bands(b), ring(r), by_pixels(takes_pixels(b, r, gpu::run_pixels)),
          order(by_pixels ? static_cast<int>(ring_pixels(r)) : b), pitch(gpu::spectrum_pitch(b)) {}
    const int bands;
    const Ring ring;
    const bool by_pixels;
    const int order, pitch;
    int64_t reach() const { return ring.outer / 2; }
    size_t matrix() const { return gpu::matrix_size(order); }
    /// Runs whose matrices are there at the same time.
    size_t runs(const TileLimits& l) const {
        const int64_t of_tile = (l.core_samples + gpu::run_pixels - 1) / gpu::run_pixels * l.core_lines;
        const auto fitting = static_cast<int64_t>(batch_bytes / (8 * matrix() * gpu::run_pixels));
        return static_cast<size_t>(std::clamp<int64_t>(fitting, 1, std::min(of_tile, most_batch_runs)));
    }
};

class LocalWorker final : public CudaWorker {
  public:
    LocalWorker(int ordinal, const LocalPlan& plan, const Decision& decision, const TileLimits& l)
        : CudaWorker(ordinal, plan.bands, output_list(1, decision), decision, l, true), m_plan(plan),
          m_runs(plan.runs(l)), m_spectra(static_cast<size_t>(plan.pitch) * window_pixels(l)),
          m_state(window_pixels(l)), m_mask(plan.ring.mask != nullptr ? window_pixels(l) : 0),
          m_matrices(plan.matrix() * batch_pixels()), m_centres(static_cast<size_t>(plan.pitch) * m_runs),
          m_means(static_cast<size_t>(plan.pitch) * batch_pixels()), m_ring_counts(batch_pixels()),
          m_status(batch_pixels()),
          m_host_mask(std::make_shared<cuda::PinnedAllocator>(ordinal), std::max<size_t>(1, m_mask.size())) {}
    static uint64_t device_bytes(const LocalPlan& p, const Decision& decision, const TileLimits& l) {
        const uint64_t runs = p.runs(l), pixels = runs * gpu::run_pixels,
                       pitch = static_cast<uint64_t>(p.pitch);
        return common_bytes(p.bands, output_list(1, decision), l) +
               window_pixels(l) * (4 * pitch + 1 + (p.ring.mask != nullptr ? 1 : 0)) +
               pixels * (8 * (p.matrix() + pitch) + 5) + runs * pitch * 4;
    }

  private:
    size_t batch_pixels() const { return m_runs * gpu::run_pixels; }

    void launch(const Tile& tile, const CubeView<float>& in, gpu::Output& to, cudaStream_t stream) override {
        const auto pixels = static_cast<int>(in.lines * in.samples);
        if (m_plan.ring.mask != nullptr) {
            for (int64_t y = 0; y < in.lines; ++y)
                for (int64_t x = 0; x < in.samples; ++x)
                    m_host_mask[static_cast<size_t>(y * in.samples + x)] =
                        m_plan.ring.mask->at(tile.window.y + y, tile.window.x + x);
            m_mask.upload(m_host_mask.data(), static_cast<size_t>(pixels), stream);
        }
        gpu::launch_states(m_raw, m_plan.bands, pixels, m_mask.data(), m_state.data(), stream);
        gpu::launch_spectra(m_raw, m_plan.bands, pixels, m_state.data(), m_spectra.data(), stream);
        gpu::LocalTile t;
        t.spectra = m_spectra.data();
        t.state = m_state.data();
        t.w = static_cast<int>(in.samples);
        t.h = static_cast<int>(in.lines);
        t.core_x = static_cast<int>(tile.core.x - tile.window.x);
        t.core_y = static_cast<int>(tile.core.y - tile.window.y);
        t.core_w = static_cast<int>(tile.core.w);
        t.core_h = static_cast<int>(tile.core.h);
        t.bands = m_plan.bands;
        t.pitch = m_plan.pitch;
        t.inner = m_plan.ring.inner;
        t.outer = m_plan.ring.outer;
        t.by_pixels = m_plan.by_pixels;
        gpu::LocalBatch b;
        b.matrices = m_matrices.data();
        b.centres = m_centres.data();
        b.means = m_means.data();
        b.ring_counts = m_ring_counts.data();
        b.status = m_status.data();
        const int runs = t.runs_of_line() * t.core_h;
        for (b.first_run = 0; b.first_run < runs; b.first_run += b.runs) {
            b.runs = std::min(static_cast<int>(m_runs), runs - b.first_run);
            gpu::launch_local(t, b, to, stream);
        }
    }

    const LocalPlan& m_plan;
    const size_t m_runs;
    DeviceBuffer<float> m_spectra;
    DeviceBuffer<uint8_t> m_state, m_mask;
    DeviceBuffer<double> m_matrices;
    DeviceBuffer<float> m_centres;
    DeviceBuffer<double> m_means;
    DeviceBuffer<int> m_ring_counts;
    DeviceBuffer<uint8_t> m_status;
    HostBuffer<uint8_t> m_host_mask;
};

// --- operations

class CudaDetection : public CudaDetectionOf<Detection> {
  public:
    using CudaDetectionOf::CudaDetectionOf;
    void stop(stream::Worker& worker) override {
        static_cast<CudaWorker&>(worker).add_to(m_score_counts);
        CudaDetectionOf::stop(worker);
    }
    const ScoreCounts* score_counts() const override { return &m_score_counts; }

  private:
    ScoreCounts m_score_counts;
};

class CudaScores final : public CudaDetection {
  public:
    CudaScores(std::vector<CudaDevice> devices, const Detector& detector, const Decision& decision,
               double& kernel_seconds)
        : CudaDetection(std::move(devices), decision, kernel_seconds), m_parts(detector) {}
    std::vector<int> output_bands() const override {
        return output_list(m_parts.detector.scores(), m_decision);
    }
    uint64_t preferred_bytes() const override { return uint64_t{32} << 20; }
    uint64_t device_bytes(const TileLimits& l) const override {
        return ScoreWorker::device_bytes(m_parts, m_decision, l);
    }

  private:
    std::unique_ptr<stream::Worker> make_lane(const cuda::LaneDevice& on, const TileLimits& l) override {
        return std::make_unique<ScoreWorker>(on.ordinal, m_parts, m_decision, l);
    }
    const Parts m_parts;
};

class CudaLocal final : public CudaDetection {
  public:
    CudaLocal(std::vector<CudaDevice> devices, int bands, const Ring& ring, const Decision& decision,
              double& kernel_seconds)
        : CudaDetection(std::move(devices), decision, kernel_seconds), m_plan(bands, ring) {}
    int64_t halo() const override { return m_plan.reach(); }
    int64_t align_samples() const override { return m_plan.by_pixels ? 1 : gpu::run_pixels; }
    std::vector<int> output_bands() const override { return output_list(1, m_decision); }
    uint64_t preferred_bytes() const override { return uint64_t{64} << 20; }
    uint64_t scratch_bytes(const TileLimits& l) const override {
        return m_plan.ring.mask != nullptr ? window_pixels(l) : 0;
    }
    uint64_t device_bytes(const TileLimits& l) const override {
        return LocalWorker::device_bytes(m_plan, m_decision, l);
    }

  private:
    std::unique_ptr<stream::Worker> make_lane(const cuda::LaneDevice& on, const TileLimits& l) override {
        return std::make_unique<LocalWorker>(on.ordinal, m_plan, m_decision, l);
    }
    const LocalPlan m_plan;
};

class CudaBackend final : public cuda::TimedBackend<Backend> {
  public:
    using TimedBackend::TimedBackend;
    std::unique_ptr<Detection> make_detection(const Detector& detector, const Decision& decision) override {
        check_detector(detector);
        return std::make_unique<CudaScores>(m_devices, detector, decision, m_kernel_seconds);
    }
    std::unique_ptr<Detection> make_local_detection(int bands, const Ring& ring,
                                                    const Decision& decision) override {
        check_ring(bands, ring);
        return std::make_unique<CudaLocal>(m_devices, bands, ring, decision, m_kernel_seconds);
    }
    std::unique_ptr<FeatureFit> make_feature_fit(FitTask task, const Decision& decision) override {
        return make_cuda_feature_fit(m_devices, std::move(task), decision, m_kernel_seconds);
    }
    std::unique_ptr<Detection> make_tuned_filter(const TunedTask& task, const Decision& decision) override {
        return make_cuda_tuned_filter(m_devices, task, decision, m_kernel_seconds);
    }
    std::unique_ptr<GroupedDetection>
    make_column_detection(const stream::CubeShape& scene, const Columns& columns, const GroupOptions& options,
                          const Decision& decision, const PixelMask* mask) override {
        auto made = make_cuda_columns(m_devices, make_column_task(scene, columns, options, decision, mask),
                                      m_kernel_seconds);
        return made ? std::move(made)
                    : detect::make_column_detection(scene, columns, options, decision, mask);
    }
    std::unique_ptr<GroupScene> make_group_scene(const stream::CubeShape& scene, const GroupPlane& plane,
                                                 const GroupOptions& options, const PixelMask* mask,
                                                 uint64_t memory) override {
        return make_cuda_group_scene(m_devices.front(), scene, plane, options, mask, memory,
                                     m_kernel_seconds);
    }
    bool sum_squares(const CubeView<float>& scene, double* squares) override {
        cuda::sum_squares(m_devices.front().ordinal, scene, squares);
        return true;
    }
};

} // namespace
} // namespace hsi::detect

extern "C" __attribute__((visibility("default"))) hsi::detect::Backend*
hsi_cuda_detect(const std::vector<hsi::CudaDevice>& devices) {
    return new hsi::detect::CudaBackend(devices);
}
