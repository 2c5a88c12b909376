// SPDX-License-Identifier: MIT
// hsi_cuda_detect_local.so: local RX on GPUs, in batches of as many runs of pixels as memory has room for. A
// run's result depends only on the scene.
#include "cuda/device_buffer.h"
#include "cuda/pinned.h"
#include "detect/detect_cuda_lane.cuh"
#include "detect/local/local_cuda_kernels.cuh"
#include "detect/local/ring.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace hsi::detect {
namespace {

using cuda::DeviceBuffer;

/// The memory of a batch's matrices. With 200 bands, a batch has about 1500 pixels, which keep a large device
/// busy.
constexpr uint64_t batch_bytes = uint64_t{256} << 20;
/// The pixels of a batch are the y axis of a grid, which has at most 65535 blocks.
constexpr int64_t most_batch_runs = 1024;

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
    /// Returns the number of runs whose matrices are in memory at the same time.
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
        t.ridge_share = m_plan.ring.ridge_share;
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

class CudaLocal final : public TalliedDetection {
  public:
    CudaLocal(std::vector<CudaDevice> devices, int bands, const Ring& ring, const Decision& decision,
              double& kernel_seconds)
        : TalliedDetection(std::move(devices), decision, kernel_seconds), m_plan(bands, ring) {}
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

class CudaLocalBackend final : public cuda::TimedBackend<LocalBackend> {
  public:
    using TimedBackend::TimedBackend;
    std::unique_ptr<Detection> make_local_detection(int bands, const Ring& ring,
                                                    const Decision& decision) override {
        check_ring(bands, ring);
        return std::make_unique<CudaLocal>(m_devices, bands, ring, decision, m_kernel_seconds);
    }
};

} // namespace
} // namespace hsi::detect

extern "C" __attribute__((visibility("default"))) hsi::detect::LocalBackend*
hsi_cuda_detect_local(const std::vector<hsi::CudaDevice>& devices) {
    return new hsi::detect::CudaLocalBackend(devices);
}
