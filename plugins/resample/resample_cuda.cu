// SPDX-License-Identifier: MIT
// hsi_cuda_resample.so: the product with the sparse matrix on GPUs, for steps whose pixels are there. A
// thread computes some output bands of one pixel, with the CPU's sums.
#include "core/valid_pixel.h"
#include "cuda/check.h"
#include "cuda/copy.h"
#include "cuda/device.h"
#include "cuda/device_buffer.h"
#include "cuda/lane_operation.h"
#include "cuda/stream.h"
#include "resample/resample.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

namespace hsi::resample {
namespace {

using cuda::DeviceBuffer;
using cuda::DeviceGuard;
using stream::TileLimits;

constexpr int threads = 256;
constexpr int bands_a_thread = 8;

/// The rows of the matrix. The entries of row j are at [begin[j], begin[j + 1]).
struct DeviceWeights {
    explicit DeviceWeights(const std::vector<math::ResampledBand>& bands) {
        std::vector<int> first{0}, from;
        std::vector<double> of;
        for (const auto& band : bands) {
            for (const size_t b : band.sources)
                from.push_back(static_cast<int>(b));
            of.insert(of.end(), band.weights.begin(), band.weights.end());
            first.push_back(static_cast<int>(of.size()));
        }
        begin = DeviceBuffer(first);
        source = DeviceBuffer(from);
        weight = DeviceBuffer(of);
    }
    DeviceBuffer<int> begin, source;
    DeviceBuffer<double> weight;
};

struct ResampleWork {
    const float* x = nullptr; ///< values [input][pixel]
    int64_t pixels = 0;
    int inputs = 0, bands = 0;
    const int *begin = nullptr, *source = nullptr;
    const double* weight = nullptr;
    float* out = nullptr;                 ///< results [band][pixel]
    uint8_t* valid = nullptr;             ///< 1 for a valid pixel, otherwise 0
    unsigned long long* counts = nullptr; ///< [valid pixels, invalid pixels]; kernels add to the counts
};

__device__ int64_t thread_pixel() { return static_cast<int64_t>(blockIdx.x) * threads + threadIdx.x; }

__global__ void __launch_bounds__(threads) look_kernel(const ResampleWork w) {
    const int64_t p = thread_pixel();
    const bool inside = p < w.pixels, valid = inside && is_valid_pixel(w.x + p, w.inputs, w.pixels);
    const int all = __syncthreads_count(inside), good = __syncthreads_count(valid);
    if (inside) w.valid[p] = valid;
    if (threadIdx.x != 0) return;
    atomicAdd(w.counts, static_cast<unsigned long long>(good));
    atomicAdd(w.counts + 1, static_cast<unsigned long long>(all - good));
}

__global__ void __launch_bounds__(threads) products_kernel(const ResampleWork w) {
    const int64_t p = thread_pixel();
    if (p >= w.pixels) return;
    const bool valid = w.valid[p] != 0;
    const int first = static_cast<int>(blockIdx.y) * bands_a_thread;
    for (int j = first; j < min(w.bands, first + bands_a_thread); ++j) {
        double sum = 0;
        for (int k = w.begin[j]; valid && k < w.begin[j + 1]; ++k)
            sum = fma(w.weight[k], static_cast<double>(w.x[w.source[k] * w.pixels + p]), sum);
        w.out[j * w.pixels + p] = valid ? static_cast<float>(sum) : nanf("");
    }
}

class CudaResampleWorker final : public stream::Worker {
  public:
    /// Precondition: `ordinal` is the current device.
    CudaResampleWorker(int ordinal, std::shared_ptr<const DeviceWeights> weights, int inputs, int bands,
                       const TileLimits& l)
        : m_ordinal(ordinal), m_inputs(inputs), m_bands(bands), m_weights(std::move(weights)),
          m_x(pixels_of(l) * static_cast<size_t>(inputs)), m_out(pixels_of(l) * static_cast<size_t>(bands)),
          m_valid(pixels_of(l)), m_counts(2) {}
    static size_t pixels_of(const TileLimits& l) {
        return static_cast<size_t>(l.core_samples * l.core_lines);
    }

    void process(const Tile&, const CubeView<float>& in, const std::vector<CubeView<float>>& out) override {
        const DeviceGuard guard(m_ordinal);
        const auto stream = m_stream.get();
        ResampleWork w;
        w.x = m_x.packed(in, stream);
        w.pixels = in.lines * in.samples;
        w.inputs = m_inputs;
        w.bands = m_bands;
        w.begin = m_weights->begin.data();
        w.source = m_weights->source.data();
        w.weight = m_weights->weight.data();
        w.out = m_out.begin(out[0]);
        w.valid = m_valid.data();
        w.counts = m_counts.data();
        m_counts.clear(stream);
        m_clock.start(stream);
        const auto blocks = static_cast<unsigned>((w.pixels + threads - 1) / threads);
        look_kernel<<<blocks, threads, 0, stream>>>(w);
        HSI_CUDA_LAUNCHED("look_kernel");
        const auto parts = static_cast<unsigned>((m_bands + bands_a_thread - 1) / bands_a_thread);
        products_kernel<<<dim3(blocks, parts), threads, 0, stream>>>(w);
        HSI_CUDA_LAUNCHED("products_kernel");
        m_clock.stop(stream);
        m_out.end(stream);
        std::array<unsigned long long, 2> found{};
        m_counts.download(found.data(), found.size(), stream);
        m_stream.synchronize();
        kernel_seconds += m_clock.seconds();
        valid += static_cast<int64_t>(found[0]);
        invalid += static_cast<int64_t>(found[1]);
    }

    int64_t valid = 0, invalid = 0;
    double kernel_seconds = 0;

  private:
    const int m_ordinal, m_inputs, m_bands;
    const std::shared_ptr<const DeviceWeights> m_weights;
    cuda::Stream m_stream;
    cuda::KernelClock m_clock;
    cuda::TileInput m_x;
    cuda::TileOutput m_out;
    DeviceBuffer<uint8_t> m_valid;
    DeviceBuffer<unsigned long long> m_counts;
};

class CudaResampling final : public cuda::LaneOperation<Resampling> {
  public:
    CudaResampling(std::vector<CudaDevice> devices, int inputs, std::vector<math::ResampledBand> bands,
                   double& kernel_seconds)
        : LaneOperation(std::move(devices)), m_inputs(inputs), m_bands(std::move(bands)),
          m_shared(this->devices().size()), m_kernel_seconds(kernel_seconds) {
        check_weights(inputs, m_bands);
        for (const auto& band : m_bands)
            m_terms += band.weights.size();
    }
    std::vector<int> output_bands() const override { return {static_cast<int>(m_bands.size())}; }
    int takes_from() const override { return only_device(); }
    int puts_on() const override { return only_device(); }
    uint64_t preferred_bytes() const override { return uint64_t{32} << 20; }
    uint64_t device_bytes(const TileLimits& l) const override {
        return CudaResampleWorker::pixels_of(l) *
                   (4 * (static_cast<uint64_t>(m_inputs) + m_bands.size()) + 1) +
               12 * m_terms + 4 * m_bands.size() + 20;
    }
    void stop(stream::Worker& worker) override {
        const auto& w = static_cast<const CudaResampleWorker&>(worker);
        m_valid += w.valid;
        m_invalid += w.invalid;
        m_kernel_seconds += w.kernel_seconds;
    }

  private:
    std::unique_ptr<stream::Worker> make_lane(const cuda::LaneDevice& on, const TileLimits& limits) override {
        auto shared = m_shared.on(on, [&] { return std::make_shared<DeviceWeights>(m_bands); });
        return std::make_unique<CudaResampleWorker>(on.ordinal, std::move(shared), m_inputs,
                                                    static_cast<int>(m_bands.size()), limits);
    }
    const int m_inputs;
    const std::vector<math::ResampledBand> m_bands;
    uint64_t m_terms = 0;
    cuda::OncePerDevice<DeviceWeights> m_shared;
    double& m_kernel_seconds;
};

class CudaBackend final : public cuda::TimedBackend<Backend> {
  public:
    using TimedBackend::TimedBackend;
    std::unique_ptr<Resampling> make_resampling(int inputs, std::vector<math::ResampledBand> bands) override {
        return std::make_unique<CudaResampling>(m_devices, inputs, std::move(bands), m_kernel_seconds);
    }
};

} // namespace
} // namespace hsi::resample

extern "C" __attribute__((visibility("default"))) hsi::resample::Backend*
hsi_cuda_resample(const std::vector<hsi::CudaDevice>& devices) {
    return new hsi::resample::CudaBackend(devices);
}
