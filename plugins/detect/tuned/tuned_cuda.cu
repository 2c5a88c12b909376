// SPDX-License-Identifier: MIT
// Mixture-tuned matched filtering on GPUs, in double precision. Eight components of a pixel are computed at a
// time; the scores of every target follow from the components.
#include "core/valid_pixel.h"
#include "detect/detect_cuda_lane.cuh"
#include "detect/tuned/tuned_plan.h"

#include <algorithm>

namespace hsi::detect {
namespace {

using cuda::DeviceBuffer;

constexpr int threads = 128;
constexpr int at_once = 8; ///< components that are computed together

struct TunedWork {
    const float* x = nullptr; ///< [band][pixel]
    int64_t pixels = 0;
    int bands = 0, used_count = 0, components = 0, targets = 0;
    const int* used = nullptr;
    const double *mean = nullptr, *rows = nullptr; ///< rows: [chunk][band used][at_once]
    const double *places = nullptr, *weights = nullptr, *signal = nullptr; ///< as in TunedPlan
    double* y = nullptr;                                                   ///< [component][pixel]
    double* scores = nullptr; ///< [target][MF, infeasibility][pixel]
    bool has_limit = false;
    double limit = 0;
};

__global__ void __launch_bounds__(threads) find_components(const TunedWork w) {
    const int64_t p = static_cast<int64_t>(blockIdx.x) * threads + threadIdx.x;
    if (p >= w.pixels) return;
    const int from = static_cast<int>(blockIdx.y) * at_once;
    const double* row = w.rows + static_cast<int64_t>(from) * w.used_count;
    double sum[at_once] = {};
    for (int r = 0; r < w.used_count; ++r, row += at_once) {
        const double z = static_cast<double>(w.x[w.used[r] * w.pixels + p]) - w.mean[r];
#pragma unroll
        for (int k = 0; k < at_once; k += 2) {
            const double2 pair = __ldg(reinterpret_cast<const double2*>(row + k));
            sum[k] = fma(pair.x, z, sum[k]);
            sum[k + 1] = fma(pair.y, z, sum[k + 1]);
        }
    }
#pragma unroll
    for (int k = 0; k < at_once; ++k)
        if (from + k < w.components) w.y[(from + k) * w.pixels + p] = sum[k];
}

/// Returns the map's value: the target with the greatest MF among the feasible targets, chosen as in
/// Decider::best().
__device__ float best_tuned(const TunedWork& w, const gpu::Output& out, int64_t p) {
    const auto judged = [&](int k) {
        const double apart = w.scores[(2 * k + 1) * w.pixels + p];
        return w.has_limit && !(apart <= w.limit) ? -INFINITY : w.scores[2 * k * w.pixels + p];
    };
    double greatest = -INFINITY;
    for (int k = 0; k < w.targets; ++k)
        greatest = fmax(greatest, judged(k));
    if (greatest == -INFINITY) return 0.0f;
    const double least = greatest - 1e-10 * fabs(greatest);
    int first = 0;
    while (first < w.targets - 1 && !(judged(first) >= least))
        ++first;
    return out.has_threshold && !(judged(first) >= out.threshold) ? 0.0f : static_cast<float>(first + 1);
}

__global__ void __launch_bounds__(threads) tune_pixels(const TunedWork w, const gpu::Output out) {
    const int64_t p = static_cast<int64_t>(blockIdx.x) * threads + threadIdx.x;
    const bool inside = p < w.pixels, valid = inside && is_valid_pixel(w.x + p, w.bands, w.pixels);
    for (int t = 0; inside && t < w.targets; ++t) {
        const double* const weights = w.weights + static_cast<int64_t>(t) * w.components;
        const double* const place = w.places + static_cast<int64_t>(t) * w.components;
        double sum = 0, squares = 0;
        for (int k = 0; k < w.components; ++k)
            sum = fma(weights[k], w.y[k * w.pixels + p], sum);
        const double a = fmin(fmax(sum, 0.0), 1.0), left = (1 - a) * (1 - a);
        for (int k = 0; k < w.components; ++k) {
            const double off = w.y[k * w.pixels + p] - a * place[k];
            squares += off * off / fma(left, w.signal[k], 1.0);
        }
        const double apart = sqrt(squares / w.components);
        const int64_t at = 2 * t * w.pixels + p;
        w.scores[at] = sum;
        w.scores[at + w.pixels] = apart;
        out.scores[at] = valid ? static_cast<float>(sum) : nanf("");
        out.scores[at + w.pixels] = valid ? static_cast<float>(apart) : nanf("");
    }
    if (inside && out.map != nullptr) out.map[p] = valid ? best_tuned(w, out, p) : nanf("");
    const int here = __syncthreads_count(inside), good = __syncthreads_count(valid);
    if (threadIdx.x != 0) return;
    atomicAdd(out.counts, static_cast<unsigned long long>(good));
    atomicAdd(out.counts + 1, static_cast<unsigned long long>(here - good));
}

/// The plan on one device, shared by all workers.
struct DeviceTuned {
    DeviceBuffer<int> used;
    DeviceBuffer<double> mean, rows, places, weights, signal;

    explicit DeviceTuned(const TunedPlan& plan) {
        const auto n = static_cast<size_t>(plan.height), count = static_cast<size_t>(plan.components);
        constexpr auto width = static_cast<size_t>(at_once);
        std::vector<double> by_chunk((count + width - 1) / width * width * n);
        for (size_t k = 0; k < count; ++k)
            for (size_t r = 0; r < n; ++r)
                by_chunk[(k / width * n + r) * width + k % width] = plan.loadings[k * n + r];
        used = DeviceBuffer(plan.used);
        mean = DeviceBuffer(plan.mean);
        rows = DeviceBuffer(by_chunk);
        places = DeviceBuffer(plan.places);
        weights = DeviceBuffer(plan.weights);
        signal = DeviceBuffer(plan.signal);
    }
    static uint64_t bytes(const TunedPlan& plan) {
        const auto n = static_cast<uint64_t>(plan.height), count = static_cast<uint64_t>(plan.components);
        return 12 * n + 8 * (n * (count + at_once) + 2 * plan.targets * count + count);
    }
};

class TunedLane final : public CudaWorker {
  public:
    TunedLane(int ordinal, std::shared_ptr<const DeviceTuned> tuned, const TunedPlan& plan,
              const Decision& decision, const TileLimits& l)
        : CudaWorker(ordinal, plan.bands, plan.output_bands(decision.map), decision, l),
          m_tuned(std::move(tuned)), m_plan(plan),
          m_y(static_cast<size_t>(plan.components) * window_pixels(l)),
          m_scores(2 * plan.targets * window_pixels(l)) {}
    static uint64_t device_bytes(const TunedPlan& plan, const Decision& decision, const TileLimits& l) {
        return common_bytes(plan.bands, plan.output_bands(decision.map), l) + DeviceTuned::bytes(plan) +
               8 * window_pixels(l) * (static_cast<uint64_t>(plan.components) + 2 * plan.targets);
    }

  private:
    void launch(const Tile&, const CubeView<float>& in, gpu::Output& to, cudaStream_t stream) override {
        TunedWork w;
        w.x = m_raw;
        w.pixels = in.lines * in.samples;
        w.bands = m_plan.bands;
        w.used_count = m_plan.height;
        w.components = m_plan.components;
        w.targets = static_cast<int>(m_plan.targets);
        w.used = m_tuned->used.data();
        w.mean = m_tuned->mean.data();
        w.rows = m_tuned->rows.data();
        w.places = m_tuned->places.data();
        w.weights = m_tuned->weights.data();
        w.signal = m_tuned->signal.data();
        w.y = m_y.data();
        w.scores = m_scores.data();
        w.has_limit = m_plan.most_infeasible.has_value();
        w.limit = m_plan.most_infeasible.value_or(0);
        const auto blocks = static_cast<unsigned>((w.pixels + threads - 1) / threads),
                   chunks = static_cast<unsigned>((w.components + at_once - 1) / at_once);
        find_components<<<dim3(blocks, chunks), threads, 0, stream>>>(w);
        HSI_CUDA_LAUNCHED("find_components");
        tune_pixels<<<blocks, threads, 0, stream>>>(w, to);
        HSI_CUDA_LAUNCHED("tune_pixels");
    }

    const std::shared_ptr<const DeviceTuned> m_tuned;
    const TunedPlan& m_plan;
    DeviceBuffer<double> m_y, m_scores;
};

class CudaTunedFilter final : public CudaDetectionOf<Detection> {
  public:
    CudaTunedFilter(std::vector<CudaDevice> devices, const TunedTask& task, const Decision& decision,
                    double& kernel_seconds)
        : CudaDetectionOf(std::move(devices), decision, kernel_seconds), m_plan(task),
          m_shared(this->devices().size()) {}
    std::vector<int> output_bands() const override { return m_plan.output_bands(m_decision.map); }
    uint64_t preferred_bytes() const override { return uint64_t{32} << 20; }
    uint64_t device_bytes(const TileLimits& l) const override {
        return TunedLane::device_bytes(m_plan, m_decision, l);
    }

  private:
    std::unique_ptr<stream::Worker> make_lane(const cuda::LaneDevice& on, const TileLimits& l) override {
        auto tuned = m_shared.on(on, [&] { return std::make_shared<DeviceTuned>(m_plan); });
        return std::make_unique<TunedLane>(on.ordinal, std::move(tuned), m_plan, m_decision, l);
    }
    const TunedPlan m_plan;
    cuda::OncePerDevice<DeviceTuned> m_shared;
};

class CudaTunedBackend final : public cuda::TimedBackend<TunedBackend> {
  public:
    using TimedBackend::TimedBackend;
    std::unique_ptr<Detection> make_tuned_filter(const TunedTask& task, const Decision& decision) override {
        return std::make_unique<CudaTunedFilter>(m_devices, task, decision, m_kernel_seconds);
    }
};

} // namespace
} // namespace hsi::detect

extern "C" __attribute__((visibility("default"))) hsi::detect::TunedBackend*
hsi_cuda_detect_tuned(const std::vector<hsi::CudaDevice>& devices) {
    return new hsi::detect::CudaTunedBackend(devices);
}
