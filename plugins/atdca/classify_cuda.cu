// SPDX-License-Identifier: MIT
// Classification on GPUs, one thread per pixel, some targets at a time. Fused multiply and add sums the bands
// in the same order as on the CPU, so maps and abundances equal those of the CPU. Angles may differ in the
// last digit of acos.
#include "atdca/classify_cuda.h"

#include "core/error.h"
#include "core/valid_pixel.h"
#include "cuda/copy.h"
#include "cuda/device.h"
#include "cuda/device_buffer.h"
#include "cuda/pinned.h"
#include "cuda/row_products.cuh"
#include "cuda/stream.h"

#include <limits>
#include <mutex>
#include <string>
#include <utility>

namespace hsi::atdca {
namespace {

using cuda::DeviceBuffer;
using cuda::DeviceGuard;
using stream::TileLimits;

constexpr int threads = 128;
constexpr int chunk = cuda::rows_at_once;

size_t count_of(int64_t a, int64_t b = 1) { return static_cast<size_t>(a * b); }

struct ClassifyWork {
    const float* x = nullptr; ///< [band][pixel]
    int64_t pixels = 0;
    int bands = 0, targets = 0;
    /// In the order of cuda::chunked_rows(); weights is null without abundances
    const double *units = nullptr, *weights = nullptr;
    double max_angle = 180;
    float* map = nullptr;    ///< null if not requested
    float* scores = nullptr; ///< [target][pixel]; null if not requested
};

__device__ double degrees(double cosine) { return acos(fmin(fmax(cosine, -1.0), 1.0)) * degrees_per_radian; }

__global__ void __launch_bounds__(threads) classify(const ClassifyWork w) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= w.pixels) return;
    const int64_t step = static_cast<int64_t>(w.bands) * chunk;
    double product[chunk], squared = 0, greatest = 0;
    int best = 0;
    for (int first = 0; first < w.targets; first += chunk) {
        cuda::row_products<true>(w.x + i, w.pixels, w.bands, w.units + first / chunk * step, product,
                                 squared);
        const double inverse = 1.0 / sqrt(squared);
#pragma unroll
        for (int k = 0; k < chunk; ++k) {
            if (first + k >= w.targets) continue;
            if (first + k == 0 || product[k] > greatest) {
                greatest = product[k];
                best = first + k;
            }
            if (w.scores && !w.weights)
                w.scores[(first + k) * w.pixels + i] = static_cast<float>(degrees(product[k] * inverse));
        }
    }
    const bool valid = is_valid_sum(squared);
    if (w.map)
        w.map[i] = !valid                                                     ? nanf("")
                   : degrees(greatest * (1.0 / sqrt(squared))) <= w.max_angle ? static_cast<float>(best + 1)
                                                                              : 0.0f;
    if (w.scores && !valid)
        for (int k = 0; k < w.targets; ++k)
            w.scores[k * w.pixels + i] = nanf("");
    if (!w.scores || !w.weights || !valid) return;
    for (int first = 0; first < w.targets; first += chunk) {
        cuda::row_products<true>(w.x + i, w.pixels, w.bands, w.weights + first / chunk * step, product,
                                 squared);
#pragma unroll
        for (int k = 0; k < chunk; ++k)
            if (first + k < w.targets) w.scores[(first + k) * w.pixels + i] = static_cast<float>(product[k]);
    }
}

/// The targets on one device, shared by all workers.
struct DeviceTargets {
    DeviceBuffer<double> units, weights;
    explicit DeviceTargets(const Classifier& c) {
        const auto load = [&](const std::vector<double>& rows) {
            if (rows.empty()) return DeviceBuffer<double>();
            const auto chunked = cuda::chunked_rows(rows.data(), count_of(c.targets), count_of(c.bands));
            return DeviceBuffer<double>(chunked);
        };
        units = load(c.units);
        weights = load(c.weights);
    }
};

class ClassifyLane final : public stream::Worker {
  public:
    /// Precondition: `ordinal` is the current device.
    ClassifyLane(int ordinal, const Classifier& classifier, std::shared_ptr<const DeviceTargets> targets,
                 const TileLimits& limits)
        : m_ordinal(ordinal), m_classifier(classifier), m_targets(std::move(targets)),
          m_x(count_of(limits.core_samples * limits.core_lines, classifier.bands)) {
        const int64_t pixels = limits.core_samples * limits.core_lines;
        if (classifier.options.map) m_map = DeviceBuffer<float>(count_of(pixels));
        if (classifier.has_scores()) m_scores = DeviceBuffer<float>(count_of(pixels, classifier.targets));
    }

    void process(const Tile&, const CubeView<float>& in, const std::vector<CubeView<float>>& out) override {
        const DeviceGuard guard(m_ordinal);
        const auto stream = m_stream.get();
        ClassifyWork w;
        w.pixels = in.lines * in.samples; // the window equals the core
        w.bands = m_classifier.bands;
        w.targets = m_classifier.targets;
        w.units = m_targets->units.data();
        w.weights = m_targets->weights.data();
        w.max_angle = m_classifier.options.max_angle;
        w.x = m_x.packed(in, stream);
        w.map = m_map.data();
        w.scores = m_scores.data();
        classify<<<static_cast<unsigned>((w.pixels + threads - 1) / threads), threads, 0, stream>>>(w);
        HSI_CUDA_LAUNCHED("classify");
        size_t next = 0;
        if (w.map) m_map.download(out[next++].data, count_of(w.pixels), stream);
        if (w.scores) m_scores.download(out[next].data, count_of(w.pixels, w.targets), stream);
        m_stream.synchronize();
    }

  private:
    const int m_ordinal;
    const Classifier& m_classifier;
    const std::shared_ptr<const DeviceTargets> m_targets;
    cuda::Stream m_stream;
    cuda::TileInput m_x;
    DeviceBuffer<float> m_map, m_scores;
};

class CudaClassification final : public stream::Operation {
  public:
    CudaClassification(int ordinal, Classifier classifier)
        : m_ordinal(ordinal), m_classifier(std::move(classifier)) {}
    bool divides() const override { return true; }
    std::vector<int> output_bands() const override { return m_classifier.output_bands(); }
    uint64_t preferred_bytes() const override { return uint64_t{64} << 20; }
    uint64_t device_bytes(const TileLimits& l) const override {
        const int64_t bands = m_classifier.bands, targets = m_classifier.targets;
        const int64_t outputs =
            (m_classifier.options.map ? 1 : 0) + (m_classifier.has_scores() ? targets : 0);
        return static_cast<uint64_t>(l.core_samples * l.core_lines * 4 * (bands + outputs) +
                                     int64_t{2} * cuda::row_chunks(targets) * chunk * bands * 8);
    }
    std::shared_ptr<HostAllocator> allocator() const override {
        return std::make_shared<cuda::PinnedAllocator>(m_ordinal);
    }
    std::unique_ptr<stream::Worker> start(int, const TileLimits& limits) override {
        const DeviceGuard guard(m_ordinal);
        std::shared_ptr<const DeviceTargets> targets;
        {
            const std::lock_guard lock(m_mutex);
            if (!m_targets) m_targets = std::make_shared<DeviceTargets>(m_classifier);
            targets = m_targets;
        }
        return std::make_unique<ClassifyLane>(m_ordinal, m_classifier, std::move(targets), limits);
    }

  private:
    const int m_ordinal;
    const Classifier m_classifier;
    std::mutex m_mutex;
    std::shared_ptr<const DeviceTargets> m_targets;
};

} // namespace

std::unique_ptr<stream::Operation> make_cuda_classification(int ordinal, Classifier classifier) {
    return std::make_unique<CudaClassification>(ordinal, std::move(classifier));
}

} // namespace hsi::atdca
