// SPDX-License-Identifier: MIT
// hsi_cuda_unmix.so: unmixing on GPUs. A thread a pixel, the operations of the processor in its order and
// none of them fused (the file is compiled with -fmad=false), so that abundances are those of the processor
// to the last bit. First E'x and x'x, a chunk of endmembers at a time; then the active set, in a thread's own
// memory where it is small, else in a room beside those of other threads, which take one pixel after another.
#include "core/error.h"
#include "cuda/device.h"
#include "cuda/device_buffer.h"
#include "cuda/pinned.h"
#include "cuda/row_products.cuh"
#include "cuda/stream.h"
#include "unmix/mixture.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace hsi::unmix {
namespace {

using cuda::DeviceBuffer;
using cuda::DeviceGuard;
using stream::TileLimits;

constexpr int threads = 128;
constexpr int chunk = cuda::rows_at_once;
constexpr int own_memory = 16; ///< up to so many endmembers a thread's room is its own memory
constexpr int room_threads = 1 << 15;

int blocks(int64_t n) { return static_cast<int>((n + threads - 1) / threads); }
size_t count_of(int64_t a, int64_t b = 1, int64_t c = 1) { return static_cast<size_t>(a * b * c); }

/// products[k][pixel] = sum over the bands of e[k] x, squared[pixel] = sum of x^2, for the endmembers of
/// chunk blockIdx.y. spectra: cuda::chunked_rows().
__global__ void multiply(const float* __restrict__ x, int64_t pixels, int bands, int size,
                         const double* __restrict__ spectra, double* products, double* squared) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= pixels) return;
    const auto part = static_cast<int>(blockIdx.y);
    double sum[chunk], square = 0;
    cuda::row_products<false>(x + i, pixels, bands, spectra + static_cast<int64_t>(part) * bands * chunk, sum,
                              square);
#pragma unroll
    for (int k = 0; k < chunk; ++k)
        if (part * chunk + k < size) products[static_cast<int64_t>(part * chunk + k) * pixels + i] = sum[k];
    if (part == 0) squared[i] = square;
}

struct Pixels {
    int64_t count = 0;
    const double *products = nullptr, *squared = nullptr;
    float* abundances = nullptr; ///< [endmember][pixel]
    float* rmse = nullptr;       ///< null: not wanted
    double bands = 1;
};

template <class Doubles, class Flags>
__device__ void unmix_pixel(const Problem& problem, const Room<Doubles, Flags>& room, const Pixels& w,
                            int64_t i) {
    const double squared = w.squared[i];
    if (!(isfinite(squared) && squared > 0)) {
        for (int k = 0; k < problem.size; ++k)
            w.abundances[k * w.count + i] = nanf("");
        if (w.rmse) w.rmse[i] = nanf("");
        return;
    }
    for (int k = 0; k < problem.size; ++k)
        room.products[k] = w.products[k * w.count + i];
    PixelSolver<Doubles, Flags> solver(problem, room);
    solver.solve(squared);
    for (int k = 0; k < problem.size; ++k)
        w.abundances[k * w.count + i] = static_cast<float>(room.a[k]);
    if (w.rmse) w.rmse[i] = static_cast<float>(sqrt(solver.residual(squared) / w.bands));
}

/// A pixel a thread, for at most Most endmembers.
template <int Most>
__global__ void __launch_bounds__(threads) unmix_small(Problem problem, const Pixels w) {
    __shared__ double matrices[3][Most * Most];
    const int entries = problem.size * problem.size;
    for (int at = static_cast<int>(threadIdx.x); at < entries; at += static_cast<int>(blockDim.x)) {
        matrices[0][at] = problem.gram[at];
        matrices[1][at] = problem.bordered[at];
        matrices[2][at] = problem.whole[at];
    }
    __syncthreads();
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= w.count) return;
    problem.gram = matrices[0];
    problem.bordered = matrices[1];
    problem.whole = matrices[2];
    double numbers[7][Most], part[Most * Most];
    unsigned short flags[3][Most];
    const Room<double*, unsigned short*> room{numbers[0], numbers[1], numbers[2], numbers[3],
                                              numbers[4], numbers[5], numbers[6], part,
                                              flags[0],   flags[1],   flags[2]};
    unmix_pixel(problem, room, w, i);
}

/// Numbers of a room, and its flags.
__host__ __device__ int64_t room_numbers(int64_t size) { return 7 * size + size * size; }
__host__ __device__ int64_t room_flags(int64_t size) { return 3 * size; }

/// Any number of endmembers. The rooms lie number by number, so that threads read side by side.
__global__ void __launch_bounds__(threads)
    unmix_large(const Problem problem, const Pixels w, double* numbers, unsigned short* flags) {
    const int64_t thread = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    const int64_t all = static_cast<int64_t>(gridDim.x) * blockDim.x, p = problem.size;
    const auto number = [&](int64_t from) { return Strided<double>{numbers + from * all + thread, all}; };
    const auto flag = [&](int64_t from) { return Strided<unsigned short>{flags + from * all + thread, all}; };
    const Room<Strided<double>, Strided<unsigned short>> room{
        number(0),     number(p),     number(2 * p), number(3 * p), number(4 * p), number(5 * p),
        number(6 * p), number(7 * p), flag(0),       flag(p),       flag(2 * p)};
    for (int64_t i = thread; i < w.count; i += all)
        unmix_pixel(problem, room, w, i);
}

template <class T>
DeviceBuffer<T> to_device(const T* host, size_t count) {
    DeviceBuffer<T> buffer(count);
    HSI_CUDA_CHECK(cudaMemcpy(buffer.data(), host, buffer.bytes(), cudaMemcpyHostToDevice));
    return buffer;
}

/// The endmembers on one device; lanes share them.
struct DeviceMixture {
    Problem problem;
    DeviceBuffer<double> spectra, gram, bordered, whole;

    explicit DeviceMixture(const Mixture& mixture) : problem(mixture.problem()) {
        const size_t p = mixture.size(), bands = mixture.bands(), matrix = p * p;
        const auto by_chunk = cuda::chunked_rows(mixture.spectrum(0), p, bands);
        spectra = to_device(by_chunk.data(), by_chunk.size());
        gram = to_device(problem.gram, matrix);
        bordered = to_device(problem.bordered, matrix);
        whole = to_device(problem.whole, matrix);
        problem.gram = gram.data();
        problem.bordered = bordered.data();
        problem.whole = whole.data();
    }
};

/// Threads of unmix_large(): fewer than pixels where their rooms are large.
int64_t rooms_for(int64_t size, int64_t pixels) {
    if (size <= own_memory) return 0;
    constexpr int64_t most_bytes = int64_t{1} << 30;
    const int64_t most =
        std::max<int64_t>(threads, most_bytes / (8 * room_numbers(size)) / threads * threads);
    return std::min({most, int64_t{room_threads}, int64_t{blocks(pixels)} * threads});
}

class CudaWorker final : public stream::Worker {
  public:
    /// Made while `ordinal` is the current device.
    CudaWorker(int ordinal, std::shared_ptr<const DeviceMixture> mixture, int bands, bool rmse,
               const TileLimits& limits)
        : m_ordinal(ordinal), m_mixture(std::move(mixture)), m_bands(bands), m_wants_rmse(rmse) {
        const int64_t pixels = limits.core_samples * limits.core_lines, p = size();
        m_rooms = rooms_for(p, pixels);
        m_x = DeviceBuffer<float>(count_of(pixels, bands));
        m_products = DeviceBuffer<double>(count_of(pixels, p));
        m_squared = DeviceBuffer<double>(count_of(pixels));
        m_abundances = DeviceBuffer<float>(count_of(pixels, p));
        if (rmse) m_rmse = DeviceBuffer<float>(count_of(pixels));
        m_numbers = DeviceBuffer<double>(count_of(m_rooms, room_numbers(p)));
        m_flags = DeviceBuffer<unsigned short>(count_of(m_rooms, room_flags(p)));
    }

    static uint64_t device_bytes(int64_t bands, int64_t p, bool rmse, const TileLimits& l) {
        const int64_t pixels = l.core_samples * l.core_lines;
        return static_cast<uint64_t>(pixels * (4 * bands + 12 * p + 8 + (rmse ? 4 : 0)) +
                                     rooms_for(p, pixels) * (8 * room_numbers(p) + 2 * room_flags(p)) +
                                     8 * (cuda::row_chunks(p) * chunk * bands + 3 * p * p));
    }

    void process(const Tile&, const CubeView<float>& in, const std::vector<CubeView<float>>& out) override {
        const DeviceGuard guard(m_ordinal);
        const auto stream = m_stream.get();
        const int64_t pixels = in.lines * in.samples; // packed, and the window is the core
        m_x.upload(in.data, count_of(pixels, m_bands), stream);
        m_begin.record(stream);
        multiply<<<dim3(static_cast<unsigned>(blocks(pixels)),
                        static_cast<unsigned>(cuda::row_chunks(size()))),
                   threads, 0, stream>>>(m_x.data(), pixels, m_bands, size(), m_mixture->spectra.data(),
                                         m_products.data(), m_squared.data());
        HSI_CUDA_LAUNCHED("multiply");
        solve({pixels, m_products.data(), m_squared.data(), m_abundances.data(),
               m_wants_rmse ? m_rmse.data() : nullptr, static_cast<double>(m_bands)},
              stream);
        m_end.record(stream);
        m_abundances.download(out[0].data, count_of(pixels, size()), stream);
        if (m_wants_rmse) m_rmse.download(out[1].data, count_of(pixels), stream);
        m_stream.synchronize();
        kernel_seconds += static_cast<double>(m_end.milliseconds_since(m_begin)) / 1000;
        for (int64_t i = 0; i < pixels; ++i)
            ++(std::isnan(out[0].data[i]) ? invalid : valid);
    }

    int64_t valid = 0, invalid = 0;
    double kernel_seconds = 0;

  private:
    int size() const { return m_mixture->problem.size; }

    void solve(const Pixels& w, cudaStream_t stream) {
        const Problem& problem = m_mixture->problem;
        if (problem.size <= own_memory / 2)
            unmix_small<own_memory / 2><<<blocks(w.count), threads, 0, stream>>>(problem, w);
        else if (problem.size <= own_memory)
            unmix_small<own_memory><<<blocks(w.count), threads, 0, stream>>>(problem, w);
        else
            unmix_large<<<static_cast<unsigned>(m_rooms / threads), threads, 0, stream>>>(
                problem, w, m_numbers.data(), m_flags.data());
        HSI_CUDA_LAUNCHED("unmix");
    }

    const int m_ordinal;
    const std::shared_ptr<const DeviceMixture> m_mixture;
    const int m_bands;
    const bool m_wants_rmse;
    int64_t m_rooms = 0;
    cuda::Stream m_stream;
    cuda::Event m_begin{cuda::Event::Timing::on}, m_end{cuda::Event::Timing::on};
    DeviceBuffer<float> m_x, m_abundances, m_rmse;
    DeviceBuffer<double> m_products, m_squared, m_numbers;
    DeviceBuffer<unsigned short> m_flags;
};

class CudaUnmixing final : public Unmixing {
  public:
    CudaUnmixing(std::vector<CudaDevice> devices, const Endmembers& endmembers, const Options& options,
                 double& kernel_seconds)
        : m_devices(std::move(devices)), m_mixture(endmembers, options.method), m_rmse(options.rmse),
          m_on(m_devices.size()), m_kernel_seconds(kernel_seconds) {}
    std::vector<int> output_bands() const override { return bands_of(size(), m_rmse); }
    uint64_t preferred_bytes() const override { return uint64_t{64} << 20; }
    uint64_t device_bytes(const TileLimits& l) const override {
        return CudaWorker::device_bytes(bands(), size(), m_rmse, l);
    }
    std::shared_ptr<HostAllocator> allocator() const override {
        return std::make_shared<cuda::PinnedAllocator>(m_devices.front().ordinal);
    }
    std::unique_ptr<stream::Worker> start(int lane, const TileLimits& limits) override {
        if (limits.core_samples * limits.core_lines > std::numeric_limits<int>::max() / 2)
            throw Error("a tile of " + std::to_string(limits.core_samples) + "x" +
                            std::to_string(limits.core_lines) + " pixels is too large for the GPU",
                        "Use a smaller -tile.");
        const size_t d = count_of(lane) % m_devices.size();
        const DeviceGuard guard(m_devices[d].ordinal);
        std::shared_ptr<const DeviceMixture> shared;
        {
            const std::lock_guard lock(m_mutex);
            if (!m_on[d]) m_on[d] = std::make_shared<DeviceMixture>(m_mixture);
            shared = m_on[d];
        }
        return std::make_unique<CudaWorker>(m_devices[d].ordinal, std::move(shared), bands(), m_rmse, limits);
    }
    void stop(stream::Worker& worker) override {
        const auto& w = static_cast<const CudaWorker&>(worker);
        m_valid += w.valid;
        m_invalid += w.invalid;
        m_kernel_seconds += w.kernel_seconds;
    }

  private:
    int size() const { return static_cast<int>(m_mixture.size()); }
    int bands() const { return static_cast<int>(m_mixture.bands()); }

    const std::vector<CudaDevice> m_devices;
    const Mixture m_mixture;
    const bool m_rmse;
    std::vector<std::shared_ptr<const DeviceMixture>> m_on;
    std::mutex m_mutex;
    double& m_kernel_seconds;
};

class CudaBackend final : public Backend {
  public:
    explicit CudaBackend(std::vector<CudaDevice> devices) : m_devices(std::move(devices)) {}
    std::unique_ptr<Unmixing> make_unmixing(const Endmembers& endmembers, const Options& options) override {
        check_endmembers(endmembers, options.method);
        return std::make_unique<CudaUnmixing>(m_devices, endmembers, options, m_kernel_seconds);
    }
    uint64_t free_memory() const override { return cuda::least_free_memory(m_devices); }
    double kernel_seconds() const override { return m_kernel_seconds; }

  private:
    const std::vector<CudaDevice> m_devices;
    double m_kernel_seconds = 0;
};

} // namespace
} // namespace hsi::unmix

extern "C" __attribute__((visibility("default"))) hsi::unmix::Backend*
hsi_cuda_unmix(const std::vector<hsi::CudaDevice>& devices) {
    return new hsi::unmix::CudaBackend(devices);
}
