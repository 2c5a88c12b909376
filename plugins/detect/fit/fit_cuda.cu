// SPDX-License-Identifier: MIT
// Fits of features on GPUs, one thread per pixel, one range after another. A thread computes the hull, the
// mean and variance of the ratios, and their products with eight features at a time; it computes the ratios
// again for each product. Hulls equal the CPU's (the file is compiled with -fmad=false). Scores equal the
// CPU's except for rounding.
#include "core/valid_pixel.h"
#include "cuda/continuum.cuh"
#include "detect/detect_cuda_lane.cuh"
#include "detect/fit/fit_plan.h"

#include <algorithm>

namespace hsi::detect {
namespace {

using cuda::DeviceBuffer;
using cuda::HullStack;
using cuda::RangeValues;

constexpr int threads = 128;
constexpr int at_once = 8; ///< features whose products are computed together

/// A feature of a range.
struct DeviceFeature {
    int target = 0;
    FitLine line;
};

/// A range and its features.
struct DeviceRange {
    int n = 0, features = 0;
    const int* band = nullptr;
    const double* at = nullptr;
    const double* rows = nullptr; ///< [chunk][band][at_once]
    const DeviceFeature* feature = nullptr;
};

/// The pixels of a tile, and the data that one kernel leaves for another.
struct FitWork {
    const float* x = nullptr; ///< [band][pixel]
    int64_t pixels = 0;
    int inputs = 0, ranges = 0, targets = 0;
    int how = 0;
    double *scores = nullptr, *depths = nullptr; ///< [target][pixel]
    /// [range][pixel]: 1 if there is no continuum; the last row: 1 if the pixel is valid
    uint8_t* state = nullptr;
    /// [vertex][pixel]; null if the hulls fit into the threads' own memory
    uint16_t* hulls = nullptr;
    /// Index into `range` of each target's first feature; one more entry at the end
    const int* first = nullptr;
    const int* range = nullptr; ///< range of each feature
    __device__ uint8_t& valid(int64_t p) const { return state[ranges * pixels + p]; }
};

__device__ int64_t fit_pixel() { return static_cast<int64_t>(blockIdx.x) * threads + threadIdx.x; }

__global__ void __launch_bounds__(threads) look_at_pixels(const FitWork w) {
    const int64_t p = fit_pixel();
    if (p >= w.pixels) return;
    w.valid(p) = is_valid_pixel(w.x + p, w.inputs, w.pixels);
    for (int k = 0; k < w.targets; ++k)
        w.scores[k * w.pixels + p] = w.depths[k * w.pixels + p] = 0;
}

/// Computes SimdKernels::add_fit() of one pixel.
__device__ void add_fit(double product, double inverse, const FitLine& line, int how, double& score,
                        double& depth) {
    const bool is = product > 0 && inverse > 0;
    const double f = is ? fmin(product * inverse * line.fit, 1.0) : 0.0,
                 deep = is ? product * line.depth : 0.0;
    const bool strong = f >= line.least_fit && deep >= line.least_depth;
    const double one = how == 0 ? f : how == 1 ? deep : f * deep;
    score = strong ? score + line.weight * one : -INFINITY;
    depth = strong ? depth + line.weight * deep : -INFINITY;
}

/// Own: true if the hull is in the thread's own memory.
template <bool Own>
__global__ void __launch_bounds__(threads) fit_range(const FitWork w, const DeviceRange range, int number) {
    uint16_t own[Own ? cuda::own_hull : 1];
    const int64_t p = fit_pixel();
    if (p >= w.pixels || w.valid(p) == 0) return;
    const HullStack hull{Own ? own : w.hulls + p, Own ? 1 : w.pixels};
    const RangeValues v{w.x + p, w.pixels, range.band, range.at, range.n};
    const int vertices = upper_hull(v, hull);
    w.state[number * w.pixels + p] = vertices == 0;
    if (vertices == 0) return;
    double mean = 0, squares = 0;
    for_each_ratio(v, hull, vertices, [&](int, double r) { mean += r; });
    mean *= 1.0 / range.n;
    for_each_ratio(v, hull, vertices, [&](int, double r) { squares = fma(r - mean, r - mean, squares); });
    const double inverse = squares >= 1e-12 * range.n ? 1 / sqrt(squares) : 0.0;
    for (int from = 0; from < range.features; from += at_once) {
        const double* const rows = range.rows + static_cast<int64_t>(from) * range.n;
        double sum[at_once] = {};
        for_each_ratio(v, hull, vertices, [&](int i, double r) {
            const double z = r - mean;
#pragma unroll
            for (int k = 0; k < at_once; k += 2) {
                const double2 pair = __ldg(reinterpret_cast<const double2*>(rows + i * at_once + k));
                sum[k] = fma(pair.x, z, sum[k]);
                sum[k + 1] = fma(pair.y, z, sum[k + 1]);
            }
        });
#pragma unroll
        for (int k = 0; k < at_once; ++k) {
            if (from + k >= range.features) break;
            const DeviceFeature& one = range.feature[from + k];
            const int64_t at = one.target * w.pixels + p;
            add_fit(sum[k], inverse, one.line, w.how, w.scores[at], w.depths[at]);
        }
    }
}

/// Returns Decider::best() of the scores; 0 if the best score is not above 0.
__device__ float best_fit(const FitWork& w, const gpu::Output& out, int64_t p) {
    const auto judged = [&](int k) {
        const double score = w.scores[k * w.pixels + p];
        return isnan(score) ? -1.0 : score;
    };
    bool any = false;
    double greatest = -INFINITY;
    for (int k = 0; k < w.targets; ++k) {
        any = any || !isnan(w.scores[k * w.pixels + p]);
        greatest = fmax(greatest, judged(k));
    }
    if (!any) return nanf("");
    const double least = greatest - 1e-10 * fabs(greatest);
    int first = 0;
    while (!(judged(first) >= least))
        ++first;
    const double found = judged(first);
    return (out.has_threshold && !(found >= out.threshold)) || !(found > 0) ? 0.0f
                                                                            : static_cast<float>(first + 1);
}

__global__ void __launch_bounds__(threads) hand_out(const FitWork w, const gpu::Output out) {
    const int64_t p = fit_pixel();
    const bool inside = p < w.pixels, valid = inside && w.valid(p) != 0;
    bool incomplete = false;
    for (int k = 0; inside && k < w.targets; ++k) {
        const int64_t at = k * w.pixels + p;
        double score = w.scores[at], deep = w.depths[at];
        if (!(deep >= 0)) score = deep = 0;
        bool open = !valid;
        for (int f = w.first[k]; valid && f < w.first[k + 1]; ++f)
            open = open || w.state[w.range[f] * w.pixels + p] != 0;
        if (open) score = deep = nan("");
        incomplete = incomplete || (open && valid);
        w.scores[at] = score;
        out.scores[at] = static_cast<float>(score);
        if (out.depths != nullptr) out.depths[at] = static_cast<float>(deep);
    }
    if (inside && out.map != nullptr) out.map[p] = best_fit(w, out, p);
    const int here = __syncthreads_count(inside), good = __syncthreads_count(valid),
              open = __syncthreads_count(incomplete);
    if (threadIdx.x != 0) return;
    atomicAdd(out.counts, static_cast<unsigned long long>(good));
    atomicAdd(out.counts + 1, static_cast<unsigned long long>(here - good));
    atomicAdd(out.counts + 2, static_cast<unsigned long long>(open));
}

/// The plan on one device, shared by all workers.
struct DeviceFit {
    std::vector<DeviceRange> ranges;
    DeviceBuffer<int> bands, first, of_feature;
    DeviceBuffer<double> at, rows;
    DeviceBuffer<DeviceFeature> features;

    explicit DeviceFit(const FitPlan& plan) {
        std::vector<int> all_bands, begin, range_of;
        std::vector<double> x, all_rows;
        std::vector<DeviceFeature> lines;
        struct Place {
            size_t bands, rows, lines;
        };
        std::vector<Place> places;
        for (const auto& part : plan.parts) {
            const size_t n = part.range.x.size(), count = part.features.size();
            places.push_back({all_bands.size(), all_rows.size(), lines.size()});
            for (const size_t b : part.range.bands)
                all_bands.push_back(static_cast<int>(b));
            x.insert(x.end(), part.range.x.begin(), part.range.x.end());
            for (const auto& feature : part.features)
                lines.push_back({static_cast<int>(feature.target), feature.line});
            constexpr auto width = static_cast<size_t>(at_once);
            const size_t start = all_rows.size();
            all_rows.resize(start + (count + width - 1) / width * width * n, 0.0);
            for (size_t k = 0; k < count; ++k)
                for (size_t i = 0; i < n; ++i)
                    all_rows[start + (k / width * n + i) * width + k % width] = part.matrix[k * n + i];
        }
        for (const auto& target : plan.task.targets) {
            begin.push_back(static_cast<int>(range_of.size()));
            for (const auto& feature : target.features)
                range_of.push_back(static_cast<int>(feature.range));
        }
        begin.push_back(static_cast<int>(range_of.size()));
        bands = DeviceBuffer(all_bands);
        first = DeviceBuffer(begin);
        of_feature = DeviceBuffer(range_of);
        at = DeviceBuffer(x);
        rows = DeviceBuffer(all_rows);
        features = DeviceBuffer(lines);
        for (size_t r = 0; r < plan.parts.size(); ++r) {
            DeviceRange range;
            range.n = static_cast<int>(plan.parts[r].range.x.size());
            range.features = static_cast<int>(plan.parts[r].features.size());
            range.band = bands.data() + places[r].bands;
            range.at = at.data() + places[r].bands;
            range.rows = rows.data() + places[r].rows;
            range.feature = features.data() + places[r].lines;
            ranges.push_back(range);
        }
    }
    static uint64_t bytes(const FitPlan& plan) {
        uint64_t all = 0;
        for (const auto& part : plan.parts)
            all += part.range.x.size() * (12 + 8 * (part.features.size() + at_once)) +
                   part.features.size() * (sizeof(DeviceFeature) + 4);
        return all + 4 * (plan.task.targets.size() + 1);
    }
};

class FitLane final : public CudaWorker {
  public:
    FitLane(int ordinal, std::shared_ptr<const DeviceFit> fit, const FitPlan& plan, const Decision& decision,
            const TileLimits& l)
        : CudaWorker(ordinal, plan.task.inputs, plan.output_bands(decision.map), decision, l),
          m_fit(std::move(fit)), m_plan(plan), m_scores(plan.task.targets.size() * window_pixels(l)),
          m_depths(m_scores.size()), m_state((plan.parts.size() + 1) * window_pixels(l)),
          m_hulls(own(plan) ? 0 : plan.longest * window_pixels(l)) {}
    static bool own(const FitPlan& plan) { return plan.longest <= static_cast<size_t>(cuda::own_hull); }
    static uint64_t device_bytes(const FitPlan& plan, const Decision& decision, const TileLimits& l) {
        return common_bytes(plan.task.inputs, plan.output_bands(decision.map), l) +
               window_pixels(l) * (16 * plan.task.targets.size() + plan.parts.size() + 1 +
                                   (own(plan) ? 0 : 2 * plan.longest)) +
               DeviceFit::bytes(plan);
    }

  private:
    void launch(const Tile&, const CubeView<float>& in, gpu::Output& to, cudaStream_t stream) override {
        FitWork w;
        w.x = m_raw;
        w.pixels = in.lines * in.samples;
        w.inputs = m_plan.task.inputs;
        w.ranges = static_cast<int>(m_plan.parts.size());
        w.targets = static_cast<int>(m_plan.task.targets.size());
        w.how = static_cast<int>(m_plan.task.score);
        w.scores = m_scores.data();
        w.depths = m_depths.data();
        w.state = m_state.data();
        w.hulls = m_hulls.data();
        w.first = m_fit->first.data();
        w.range = m_fit->of_feature.data();
        const auto blocks = static_cast<unsigned>((w.pixels + threads - 1) / threads);
        look_at_pixels<<<blocks, threads, 0, stream>>>(w);
        HSI_CUDA_LAUNCHED("look_at_pixels");
        for (size_t r = 0; r < m_fit->ranges.size(); ++r) {
            if (own(m_plan))
                fit_range<true><<<blocks, threads, 0, stream>>>(w, m_fit->ranges[r], static_cast<int>(r));
            else
                fit_range<false><<<blocks, threads, 0, stream>>>(w, m_fit->ranges[r], static_cast<int>(r));
            HSI_CUDA_LAUNCHED("fit_range");
        }
        hand_out<<<blocks, threads, 0, stream>>>(w, to);
        HSI_CUDA_LAUNCHED("hand_out");
    }

    const std::shared_ptr<const DeviceFit> m_fit;
    const FitPlan& m_plan;
    DeviceBuffer<double> m_scores, m_depths;
    DeviceBuffer<uint8_t> m_state;
    DeviceBuffer<uint16_t> m_hulls;
};

class CudaFeatureFit final : public CudaDetectionOf<FeatureFit> {
  public:
    CudaFeatureFit(std::vector<CudaDevice> devices, FitTask task, const Decision& decision,
                   double& kernel_seconds)
        : CudaDetectionOf(std::move(devices), decision, kernel_seconds), m_plan(std::move(task)),
          m_shared(this->devices().size()) {}
    std::vector<int> output_bands() const override { return m_plan.output_bands(m_decision.map); }
    uint64_t preferred_bytes() const override { return uint64_t{32} << 20; }
    uint64_t device_bytes(const TileLimits& l) const override {
        return FitLane::device_bytes(m_plan, m_decision, l);
    }
    void stop(stream::Worker& worker) override {
        CudaDetectionOf::stop(worker);
        m_open += m_few;
        m_few = 0;
    }

  private:
    std::unique_ptr<stream::Worker> make_lane(const cuda::LaneDevice& on, const TileLimits& l) override {
        auto fit = m_shared.on(on, [&] { return std::make_shared<DeviceFit>(m_plan); });
        return std::make_unique<FitLane>(on.ordinal, std::move(fit), m_plan, m_decision, l);
    }
    const FitPlan m_plan;
    cuda::OncePerDevice<DeviceFit> m_shared;
};

class CudaFitBackend final : public cuda::TimedBackend<FitBackend> {
  public:
    using TimedBackend::TimedBackend;
    std::unique_ptr<FeatureFit> make_feature_fit(FitTask task, const Decision& decision) override {
        return std::make_unique<CudaFeatureFit>(m_devices, std::move(task), decision, m_kernel_seconds);
    }
};

} // namespace
} // namespace hsi::detect

extern "C" __attribute__((visibility("default"))) hsi::detect::FitBackend*
hsi_cuda_detect_fit(const std::vector<hsi::CudaDevice>& devices) {
    return new hsi::detect::CudaFitBackend(devices);
}
