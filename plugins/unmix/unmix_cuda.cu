// SPDX-License-Identifier: MIT
// hsi_cuda_unmix.so: unmixing on GPUs. The file is compiled with -fmad=false, and operations are in the CPU's
// order, so abundances are bitwise equal to the CPU's. The first kernel computes E'x and x'x, some endmembers
// at a time. The second kernel solves the active set. For few endmembers, one thread solves a pixel, with its
// arrays in local memory. For more endmembers, one warp solves a pixel, with its arrays in shared memory or,
// if they do not fit, in device memory.
#include "core/error.h"
#include "core/process_owner.h"
#include "core/valid_pixel.h"
#include "cuda/copy.h"
#include "cuda/device.h"
#include "cuda/device_buffer.h"
#include "cuda/exact_sums.cuh"
#include "cuda/lane_operation.h"
#include "cuda/pinned.h"
#include "cuda/row_products.cuh"
#include "cuda/spectrum_lengths.cuh"
#include "cuda/stream.h"
#include "unmix/draws_cuda.h"
#include "unmix/mixture.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
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
/// Up to this number of endmembers, the arrays of a thread fit into its local memory.
constexpr int own_memory = 16;
constexpr int warp = 32;
/// Limit per worker for the arrays of warps that do not fit into shared memory.
constexpr int64_t most_numbers = int64_t{256} << 20;

int blocks(int64_t n) { return static_cast<int>((n + threads - 1) / threads); }
size_t count_of(int64_t a, int64_t b = 1, int64_t c = 1) { return static_cast<size_t>(a * b * c); }

/// Computes products[k][pixel] = sum over the bands of e[k] x, and squared[pixel] = sum of x^2, for the
/// endmembers of chunk blockIdx.y. `spectra` has the layout of cuda::chunked_rows().
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
    float* rmse = nullptr;       ///< null if not requested
    double bands = 1;
};

__device__ float rmse_of(double residual, double bands) { return static_cast<float>(sqrt(residual / bands)); }

/// Unmixes with at most Most endmembers, one pixel per thread. The data that all pixels share are in shared
/// memory.
template <int Most>
__global__ void __launch_bounds__(threads) unmix_by_thread(Problem problem, const Pixels w) {
    __shared__ double gram[Most * Most], whole[Most * (Most + 1) / 2], whole_ones[Most];
    const int p = problem.size, at = static_cast<int>(threadIdx.x);
    for (int k = at; k < p * p; k += threads)
        gram[k] = problem.gram[k];
    for (int k = at; k < p * (p + 1) / 2; k += threads)
        whole[k] = problem.whole[k];
    for (int k = at; k < p; k += threads)
        whole_ones[k] = problem.whole_ones[k];
    __syncthreads();
    const int64_t i = static_cast<int64_t>(blockIdx.x) * threads + at;
    if (i >= w.count) return;
    const double squared = w.squared[i];
    if (!is_valid_sum(squared)) {
        for (int k = 0; k < p; ++k)
            w.abundances[k * w.count + i] = nanf("");
        if (w.rmse) w.rmse[i] = nanf("");
        return;
    }
    problem.gram = gram;
    problem.whole = whole;
    problem.whole_ones = whole_ones;
    double factor[Most * (Most + 1) / 2], abundances[Most], trial[Most], ones[Most];
    int index[Most];
    unsigned char state[Most];
    Workspace space;
    space.products = w.products + i;
    space.stride = w.count;
    space.factor = factor;
    space.abundances = abundances;
    space.trial = trial;
    space.ones = ones;
    space.index = index;
    space.state = state;
    ActiveSet<Alone> active(problem, space, {});
    active.solve(squared);
    for (int k = 0; k < p; ++k)
        w.abundances[k * w.count + i] = static_cast<float>(abundances[k]);
    if (w.rmse) w.rmse[i] = rmse_of(active.residual(squared), w.bands);
}

/// The threads of a warp. All threads are active, since blocks consist of whole warps.
struct Warp {
    static constexpr int lanes = warp;
    __device__ int lane() const { return static_cast<int>(threadIdx.x) % warp; }
    __device__ void sync() const { __syncwarp(); }
    __device__ bool any(bool mine) const { return __any_sync(~0u, mine) != 0; }
    __device__ double least(double mine) const {
        for (int o = warp / 2; o > 0; o /= 2)
            mine = fmin(mine, __shfl_xor_sync(~0u, mine, o));
        return mine;
    }
    __device__ void best(double& most, int& k) const {
        for (int o = warp / 2; o > 0; o /= 2) {
            const double other = __shfl_xor_sync(~0u, most, o);
            const int other_k = __shfl_xor_sync(~0u, k, o);
            if (other > most || (other == most && other_k < k)) {
                most = other;
                k = other_k;
            }
        }
    }
    __device__ void count(bool mine, int& before, int& all) const {
        const unsigned who = __ballot_sync(~0u, mine);
        before = __popc(who & ((1u << lane()) - 1));
        all = __popc(who);
    }
};

/// Returns the bytes of a warp's arrays for its pixel, a multiple of 8.
__host__ __device__ int64_t warp_bytes(int64_t p) {
    return 8 * (p * (p + 1) / 2 + 4 * p) + (5 * p + 7) / 8 * 8;
}

/// With n warps, each warp unmixes every n-th pixel. `numbers` has warp_bytes() bytes per warp; it is null if
/// the arrays are in shared memory.
__global__ void __launch_bounds__(threads)
    unmix_by_warp(const Problem problem, const Pixels w, unsigned char* numbers) {
    extern __shared__ double shared[];
    const Warp team;
    const int p = problem.size;
    const int64_t mine = threadIdx.x / warp, teams = blockDim.x / warp;
    const int64_t number = blockIdx.x * teams + mine;
    unsigned char* const memory = numbers ? numbers + number * warp_bytes(p)
                                          : reinterpret_cast<unsigned char*>(shared) + mine * warp_bytes(p);
    auto* const products = reinterpret_cast<double*>(memory);
    Workspace space;
    space.products = products;
    space.abundances = products + p;
    space.trial = space.abundances + p;
    space.ones = space.trial + p;
    space.factor = space.ones + p;
    space.index = reinterpret_cast<int*>(space.factor + triangle(p));
    space.state = reinterpret_cast<unsigned char*>(space.index + p);
    for (int64_t i = number; i < w.count; i += gridDim.x * teams) {
        const double squared = w.squared[i];
        const bool valid = is_valid_sum(squared);
        if (valid) {
            for (int k = team.lane(); k < p; k += warp)
                products[k] = w.products[k * w.count + i];
            team.sync();
            ActiveSet<Warp> active(problem, space, team);
            active.solve(squared);
            if (w.rmse) {
                const double residual = active.residual(squared);
                if (team.lane() == 0) w.rmse[i] = rmse_of(residual, w.bands);
            }
        } else if (w.rmse && team.lane() == 0) {
            w.rmse[i] = nanf("");
        }
        for (int k = team.lane(); k < p; k += warp)
            w.abundances[k * w.count + i] = valid ? static_cast<float>(space.abundances[k]) : nanf("");
        team.sync(); // The next pixel reuses the arrays.
    }
}

/// The sums over the pixels of a tile.
struct TallyView {
    cuda::ExactView sums;       ///< two sums: of abundances and of squared errors
    unsigned long long* counts; ///< number of valid pixels, number of invalid pixels
    bool adds;                  ///< true: compute the sums, which requires the pixels' `rmse`
};

/// Adds a tile to the sums. The threads of a block add to shared memory first, since all threads add to the
/// same few digits.
__global__ void __launch_bounds__(threads) tally_kernel(const Pixels w, int size, TallyView to) {
    __shared__ unsigned long long digit[cuda::digit_rows * 2], counts[2];
    __shared__ double special[2];
    __shared__ unsigned used[cuda::digit_rows + 1];
    const auto at = static_cast<int>(threadIdx.x);
    for (int k = at; k < cuda::digit_rows * 2; k += threads)
        digit[k] = 0;
    for (int k = at; k <= cuda::digit_rows; k += threads)
        used[k] = 0;
    if (at < 2) special[at] = 0, counts[at] = 0;
    __syncthreads();
    const cuda::ExactView here{digit, special, used, 2};
    cuda::ExactTerms sum(here, 0), square(here, 1);
    unsigned long long valid = 0, others = 0;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * threads + at; i < w.count;
         i += static_cast<int64_t>(gridDim.x) * threads) {
        if (isnan(w.abundances[i])) {
            ++others;
            continue;
        }
        ++valid;
        if (!to.adds || isnan(w.rmse[i])) continue;
        double abundances = 0;
        for (int k = 0; k < size; ++k)
            abundances = __dadd_rn(abundances, static_cast<double>(w.abundances[k * w.count + i]));
        const auto error = static_cast<double>(w.rmse[i]);
        sum.add(abundances);
        square.add(__dmul_rn(error, error));
    }
    sum.end();
    square.end();
    if (valid > 0) atomicAdd(counts, valid);
    if (others > 0) atomicAdd(counts + 1, others);
    __syncthreads();
    for (int k = at; k < cuda::digit_rows * 2; k += threads)
        if (digit[k] != 0) atomicAdd(to.sums.digit + k, digit[k]);
    for (int k = at; k <= cuda::digit_rows; k += threads)
        if (used[k] != 0) to.sums.used[k] = 1;
    if (at >= 2) return;
    if (special[at] != 0 || isnan(special[at])) atomicAdd(to.sums.special + at, special[at]);
    if (counts[at] > 0) atomicAdd(to.counts + at, counts[at]);
}

/// The launch configuration of unmix_by_warp() on the current device.
struct Warps {
    explicit Warps(int64_t p) {
        if (p <= own_memory) return;
        int device = 0, most_shared = 0, processors = 0;
        HSI_CUDA_CHECK(cudaGetDevice(&device));
        HSI_CUDA_CHECK(cudaDeviceGetAttribute(&most_shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
        HSI_CUDA_CHECK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
        if (warp_bytes(p) <= most_shared) {
            of_block = static_cast<int>(std::min<int64_t>(threads / warp, most_shared / warp_bytes(p)));
            shared = static_cast<int>(of_block * warp_bytes(p));
            most_blocks = processors * 64;
            // All operations share the kernel. It is therefore allowed to use all shared memory, instead of
            // only the memory that this operation needs.
            HSI_CUDA_CHECK(cudaFuncSetAttribute(unmix_by_warp, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                most_shared));
        } else {
            of_block = 1;
            most_blocks = static_cast<int>(
                std::clamp<int64_t>(most_numbers / warp_bytes(p), 1, int64_t{processors} * 16));
            numbers = warp_bytes(p) * most_blocks;
        }
    }
    int of_block = 0;
    int shared = 0; ///< bytes of shared memory per block
    int most_blocks = 0;
    int64_t numbers = 0; ///< bytes of device memory for the arrays
};

/// The endmembers on one device, shared by all workers.
struct DeviceMixture {
    Problem problem;
    DeviceBuffer<double> spectra, gram, whole, whole_ones;

    explicit DeviceMixture(const Mixture& mixture) : problem(mixture.problem()) {
        const size_t p = mixture.size(), bands = mixture.bands();
        const auto by_chunk = cuda::chunked_rows(mixture.spectrum(0), p, bands);
        spectra = DeviceBuffer(by_chunk.data(), by_chunk.size());
        gram = DeviceBuffer(problem.gram, p * p);
        whole = DeviceBuffer(problem.whole, triangle(problem.size));
        whole_ones = DeviceBuffer(problem.whole_ones, p);
        problem.gram = gram.data();
        problem.whole = whole.data();
        problem.whole_ones = whole_ones.data();
    }
};

class CudaWorker final : public stream::Worker {
  public:
    /// Precondition: `ordinal` is the current device.
    CudaWorker(int ordinal, std::shared_ptr<const DeviceMixture> mixture, int bands, bool rmse, bool sums,
               const TileLimits& limits)
        : m_ordinal(ordinal), m_mixture(std::move(mixture)), m_bands(bands), m_wants_rmse(rmse), m_adds(sums),
          m_warps(size()), m_x(count_of(limits.core_samples * limits.core_lines, bands)),
          m_abundances(count_of(limits.core_samples * limits.core_lines, size())),
          m_rmse(rmse || sums ? count_of(limits.core_samples * limits.core_lines) : 0),
          m_sums(2, m_stream.get()), m_counts(2) {
        const int64_t pixels = limits.core_samples * limits.core_lines, p = size();
        m_products = DeviceBuffer<double>(count_of(pixels, p));
        m_squared = DeviceBuffer<double>(count_of(pixels));
        m_numbers = DeviceBuffer<unsigned char>(count_of(m_warps.numbers));
        m_counts.clear(m_stream.get());
    }

    /// `numbers` is Warps::numbers.
    static uint64_t device_bytes(int64_t bands, int64_t p, bool rmse, int64_t numbers, const TileLimits& l) {
        const int64_t pixels = l.core_samples * l.core_lines;
        return static_cast<uint64_t>(pixels * (4 * bands + 12 * p + 8 + (rmse ? 4 : 0)) + numbers +
                                     8 * (cuda::row_chunks(p) * chunk * bands + 2 * p * p + 2 * p)) +
               cuda::ExactDeviceSums::bytes(2) + 16;
    }

    void process(const Tile&, const CubeView<float>& in, const std::vector<CubeView<float>>& out) override {
        const DeviceGuard guard(m_ordinal);
        const auto stream = m_stream.get();
        const int64_t pixels = in.lines * in.samples; // The window equals the core.
        const float* const x = m_x.packed(in, stream);
        float* const abundances = m_abundances.begin(out[0]);
        float* const rmse = m_wants_rmse ? m_rmse.begin(out[1]) : m_adds ? m_rmse.scratch() : nullptr;
        m_clock.start(stream);
        multiply<<<dim3(static_cast<unsigned>(blocks(pixels)),
                        static_cast<unsigned>(cuda::row_chunks(size()))),
                   threads, 0, stream>>>(x, pixels, m_bands, size(), m_mixture->spectra.data(),
                                         m_products.data(), m_squared.data());
        HSI_CUDA_LAUNCHED("multiply");
        const Pixels w{pixels, m_products.data(),           m_squared.data(), abundances,
                       rmse,   static_cast<double>(m_bands)};
        solve(w, stream);
        constexpr int most = 1056; // a few blocks per multiprocessor
        tally_kernel<<<static_cast<unsigned>(std::min(blocks(pixels), most)), threads, 0, stream>>>(
            w, size(), {m_sums.view(), m_counts.data(), m_adds});
        HSI_CUDA_LAUNCHED("tally_kernel");
        m_clock.stop(stream);
        m_abundances.end(stream);
        if (m_wants_rmse) m_rmse.end(stream);
        m_stream.synchronize();
        kernel_seconds += m_clock.seconds();
        m_pixels += pixels;
    }
    /// Adds the sums of this worker after the last tile.
    void finish(int64_t& valid, int64_t& invalid, math::ExactSums& sums) {
        const DeviceGuard guard(m_ordinal);
        const auto memory = process_is_ours()
                                ? paged_allocator()
                                : std::shared_ptr<HostAllocator>(new cuda::PinnedAllocator(m_ordinal));
        HostBuffer<unsigned long long> counts(memory, 2);
        m_counts.download(counts.data(), 2, m_stream.get());
        if (m_adds) m_sums.add_to(sums, std::min(m_pixels, exact::most_terms - 1), *memory, m_stream.get());
        m_stream.synchronize();
        valid += static_cast<int64_t>(counts[0]);
        invalid += static_cast<int64_t>(counts[1]);
    }

    double kernel_seconds = 0;

  private:
    int size() const { return m_mixture->problem.size; }

    void solve(const Pixels& w, cudaStream_t stream) {
        const Problem& problem = m_mixture->problem;
        if (problem.size <= own_memory / 2) {
            unmix_by_thread<own_memory / 2><<<blocks(w.count), threads, 0, stream>>>(problem, w);
        } else if (problem.size <= own_memory) {
            unmix_by_thread<own_memory><<<blocks(w.count), threads, 0, stream>>>(problem, w);
        } else {
            const int64_t wanted = (w.count + m_warps.of_block - 1) / m_warps.of_block;
            const auto number = static_cast<unsigned>(std::min<int64_t>(wanted, m_warps.most_blocks));
            unmix_by_warp<<<number, static_cast<unsigned>(m_warps.of_block * warp),
                            static_cast<size_t>(m_warps.shared), stream>>>(
                problem, w, m_warps.numbers > 0 ? m_numbers.data() : nullptr);
        }
        HSI_CUDA_LAUNCHED("unmix");
    }

    const int m_ordinal;
    const std::shared_ptr<const DeviceMixture> m_mixture;
    const int m_bands;
    const bool m_wants_rmse, m_adds;
    const Warps m_warps;
    cuda::Stream m_stream;
    cuda::KernelClock m_clock;
    cuda::TileInput m_x;
    cuda::TileOutput m_abundances, m_rmse;
    cuda::ExactDeviceSums m_sums; ///< sums over the pixels of all tiles
    DeviceBuffer<unsigned long long> m_counts;
    int64_t m_pixels = 0;
    DeviceBuffer<double> m_products, m_squared;
    DeviceBuffer<unsigned char> m_numbers;
};

class CudaUnmixing final : public cuda::LaneOperation<Unmixing> {
  public:
    CudaUnmixing(std::vector<CudaDevice> devices, const Endmembers& endmembers, const Options& options,
                 double& kernel_seconds)
        : LaneOperation(std::move(devices)), m_mixture(endmembers, options.method), m_rmse(options.rmse),
          m_adds(options.sums), m_shared(this->devices().size()), m_kernel_seconds(kernel_seconds) {
        for (const CudaDevice& device : this->devices()) {
            const DeviceGuard guard(device.ordinal);
            m_numbers = std::max(m_numbers, Warps(size()).numbers);
        }
    }
    std::vector<int> output_bands() const override { return bands_of(size(), m_rmse); }
    int takes_from() const override { return only_device(); }
    int puts_on() const override { return only_device(); }
    uint64_t preferred_bytes() const override { return uint64_t{64} << 20; }
    uint64_t device_bytes(const TileLimits& l) const override {
        return CudaWorker::device_bytes(bands(), size(), m_rmse || m_adds, m_numbers, l);
    }
    void stop(stream::Worker& worker) override {
        auto& w = static_cast<CudaWorker&>(worker);
        w.finish(m_valid, m_invalid, m_sums);
        m_kernel_seconds += w.kernel_seconds;
    }

  private:
    std::unique_ptr<stream::Worker> make_lane(const cuda::LaneDevice& on, const TileLimits& limits) override {
        auto shared = m_shared.on(on, [&] { return std::make_shared<DeviceMixture>(m_mixture); });
        return std::make_unique<CudaWorker>(on.ordinal, std::move(shared), bands(), m_rmse, m_adds, limits);
    }
    int size() const { return static_cast<int>(m_mixture.size()); }
    int bands() const { return static_cast<int>(m_mixture.bands()); }

    const Mixture m_mixture;
    const bool m_rmse, m_adds;
    int64_t m_numbers = 0;
    cuda::OncePerDevice<DeviceMixture> m_shared;
    double& m_kernel_seconds;
};

class CudaBackend final : public cuda::TimedBackend<Backend> {
  public:
    using TimedBackend::TimedBackend;
    std::unique_ptr<Unmixing> make_unmixing(const Endmembers& endmembers, const Options& options) override {
        check_endmembers(endmembers, options.method);
        return std::make_unique<CudaUnmixing>(m_devices, endmembers, options, m_kernel_seconds);
    }
    std::unique_ptr<DrawUnmixing> make_draws(const Endmembers& library, const Classes& classes,
                                             const DrawOptions& options) override {
        return make_cuda_draws(m_devices, library, classes, options, m_kernel_seconds);
    }
    bool sum_squares(const CubeView<float>& scene, double* squares) override {
        cuda::sum_squares(m_devices.front().ordinal, scene, squares);
        return true;
    }
};

} // namespace
} // namespace hsi::unmix

extern "C" __attribute__((visibility("default"))) hsi::unmix::Backend*
hsi_cuda_unmix(const std::vector<hsi::CudaDevice>& devices) {
    return new hsi::unmix::CudaBackend(devices);
}
