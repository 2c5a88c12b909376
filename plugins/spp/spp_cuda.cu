// SPDX-License-Identifier: MIT
// hsi_cuda_spp.so: displacement on GPUs. Each worker has a stream and its own device buffers, which are
// allocated once. Workers are distributed over the devices, so copies of one worker overlap kernels of
// another.
#include "core/error.h"
#include "cuda/copy.h"
#include "cuda/device.h"
#include "cuda/device_buffer.h"
#include "cuda/lane_operation.h"
#include "cuda/pinned.h"
#include "cuda/stream.h"
#include "spp/spp.h"
#include "spp/spp_cuda_kernels.cuh"

namespace hsi::spp {
namespace {

using cuda::DeviceBuffer;
using cuda::DeviceGuard;
using stream::TileLimits;

size_t count_of(int64_t a, int64_t b = 1, int64_t c = 1) { return static_cast<size_t>(a * b * c); }

class DisplacementWorker final : public stream::Worker {
  public:
    /// Precondition: `ordinal` is the current device.
    DisplacementWorker(int ordinal, const Options& options, const std::vector<double>& centroid,
                       const TileLimits& limits)
        : m_ordinal(ordinal), m_options(options), m_bands(static_cast<int>(centroid.size())),
          m_sizes(sizes(options, limits)),
          m_cube(count_of(m_bands, limits.window_samples, limits.window_lines)),
          m_out(options.cube ? count_of(m_bands, limits.core_samples, limits.core_lines) : 0),
          m_alpha(count_of(limits.core_samples, limits.core_lines)),
          m_rho(options.rho ? count_of(limits.core_samples, limits.core_lines) : 0),
          m_scale(count_of(limits.core_samples, limits.core_lines)), m_inverse(m_sizes.inverse),
          m_inverse_single(m_sizes.inverse), m_angles(m_sizes.angles), m_numerator(m_sizes.sums),
          m_denominator(m_sizes.sums), m_list(m_sizes.list), m_count(1), m_weights(m_sizes.weights),
          m_centroid(centroid.size()) {
        const std::vector<double> weights = gpu::half_window_weights(options.window);
        const std::vector<float2> parts = gpu::split_centroid(centroid);
        m_weights.upload(weights.data(), weights.size(), m_stream.get());
        m_centroid.upload(parts.data(), parts.size(), m_stream.get());
        m_stream.synchronize();
    }

    static uint64_t device_bytes(const Options& options, int bands, const TileLimits& l) {
        const uint64_t core = count_of(l.core_samples, l.core_lines);
        return uint64_t{4} * count_of(bands, l.window_samples, l.window_lines) +
               (options.cube ? 4 * core * static_cast<uint64_t>(bands) : 0) + core * (options.rho ? 12 : 8) +
               sizes(options, l).bytes() + sizeof(float2) * static_cast<uint64_t>(bands);
    }

    void process(const Tile& tile, const CubeView<float>& in,
                 const std::vector<CubeView<float>>& out) override {
        const DeviceGuard guard(m_ordinal);
        const auto stream = m_stream.get();
        gpu::AlphaWork work;
        work.cube = m_cube.packed(in, stream);
        work.bands = m_bands;
        work.shape.samples = static_cast<int>(tile.window.w);
        work.shape.lines = static_cast<int>(tile.window.h);
        work.shape.core_x = static_cast<int>(tile.core.x - tile.window.x);
        work.shape.core_y = static_cast<int>(tile.core.y - tile.window.y);
        work.shape.core_samples = static_cast<int>(tile.core.w);
        work.shape.core_lines = static_cast<int>(tile.core.h);
        work.window = m_options.window;
        size_t k = 0;
        float* const displaced = m_options.cube ? m_out.begin(out[k++]) : nullptr;
        work.alpha = m_options.alpha ? m_alpha.begin(out[k++]) : m_alpha.scratch();
        work.rho = m_options.rho ? m_rho.begin(out[k++]) : nullptr;
        work.scale = m_scale.data();
        work.inverse = m_inverse.data();
        work.inverse_single = m_inverse_single.data();
        work.angles = m_angles.data();
        work.numerator = m_numerator.data();
        work.denominator = m_denominator.data();
        work.list = m_list.data();
        work.count = m_count.data();
        work.weights = m_weights.data();
        gpu::launch_alpha(work, stream);
        if (m_options.cube) {
            gpu::launch_displacement(work.cube, m_bands, work.shape, work.scale, m_centroid.data(), displaced,
                                     stream);
            m_out.end(stream);
        }
        if (m_options.alpha) m_alpha.end(stream);
        if (m_options.rho) m_rho.end(stream);
        m_done.record(stream);
        m_done.wait();
    }

  private:
    static gpu::AlphaSizes sizes(const Options& options, const TileLimits& l) {
        return gpu::alpha_sizes(options.window, l.window_samples, l.window_lines,
                                l.core_samples * l.core_lines);
    }

    int m_ordinal;
    Options m_options;
    int m_bands;
    cuda::Stream m_stream;
    cuda::Event m_done;
    gpu::AlphaSizes m_sizes;
    cuda::TileInput m_cube;
    cuda::TileOutput m_out, m_alpha, m_rho;
    DeviceBuffer<float> m_scale;
    DeviceBuffer<double> m_inverse;
    DeviceBuffer<float> m_inverse_single, m_angles;
    DeviceBuffer<double> m_numerator, m_denominator;
    DeviceBuffer<int> m_list, m_count;
    DeviceBuffer<double> m_weights;
    DeviceBuffer<float2> m_centroid;
};

class Displacement final : public cuda::LaneOperation<stream::Operation> {
  public:
    Displacement(std::vector<CudaDevice> devices, const Options& options, std::vector<double> centroid)
        : LaneOperation(std::move(devices)), m_options(options), m_centroid(std::move(centroid)) {}
    bool divides() const override { return true; }
    int64_t halo() const override { return m_options.window / 2; }
    std::vector<int> output_bands() const override {
        std::vector<int> bands;
        if (m_options.cube) bands.push_back(static_cast<int>(m_centroid.size()));
        if (m_options.alpha) bands.push_back(1);
        if (m_options.rho) bands.push_back(1);
        return bands;
    }
    int takes_from() const override { return only_device(); }
    int puts_on() const override { return only_device(); }
    uint64_t device_bytes(const TileLimits& l) const override {
        return DisplacementWorker::device_bytes(m_options, static_cast<int>(m_centroid.size()), l);
    }

  private:
    std::unique_ptr<stream::Worker> make_lane(const cuda::LaneDevice& on, const TileLimits& limits) override {
        return std::make_unique<DisplacementWorker>(on.ordinal, m_options, m_centroid, limits);
    }

    Options m_options;
    std::vector<double> m_centroid;
};

class CudaBackend final : public Backend {
  public:
    explicit CudaBackend(std::vector<CudaDevice> devices) : m_devices(std::move(devices)) {
        if (m_devices.empty()) throw Error("no CUDA device was chosen", "Use -device cpu.");
    }
    std::unique_ptr<stream::Operation> make_displacement(const Options& options,
                                                         std::vector<double> centroid) override {
        if (options.window < min_window || options.window > max_window || options.window % 2 == 0)
            throw UsageError("-ws: " + std::to_string(options.window) + " is not a window size",
                             "Use an odd number from 3 to 63.");
        return std::make_unique<Displacement>(m_devices, options, std::move(centroid));
    }
    uint64_t free_memory() const override { return cuda::least_free_memory(m_devices); }

  private:
    const std::vector<CudaDevice> m_devices;
};

} // namespace
} // namespace hsi::spp

extern "C" __attribute__((visibility("default"))) hsi::spp::Backend*
hsi_cuda_spp(const std::vector<hsi::CudaDevice>& devices) {
    return new hsi::spp::CudaBackend(devices);
}
