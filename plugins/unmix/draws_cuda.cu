// SPDX-License-Identifier: MIT
// Monte Carlo unmixing on GPUs, one thread per pixel, one realisation ("draw") after another. A realisation
// consists of the noise at the pixel's position, the products with the selected spectra, the active set, and
// the moments of the fractions. The file is compiled with -fmad=false, and operations are in the CPU's order,
// so all results are bitwise equal to the CPU's. For up to 16 spectra, the arrays of a thread are in its
// local memory, and shared memory holds the data of a realisation that all pixels share. For more spectra,
// the arrays are in device memory.
#include "core/valid_pixel.h"
#include "cuda/copy.h"
#include "cuda/device.h"
#include "cuda/device_buffer.h"
#include "cuda/lane_operation.h"
#include "cuda/stream.h"
#include "math/philox.h"
#include "unmix/draw_plan.h"
#include "unmix/draws_cuda.h"
#include "unmix/draws_simd.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

namespace hsi::unmix {
namespace {

using cuda::DeviceBuffer;
using cuda::DeviceGuard;
using stream::TileLimits;

constexpr int draw_threads = 128;
/// Number of spectra whose products are computed together if there are many spectra.
constexpr int draw_chunk = 8;
/// Up to this number of spectra, the data of a thread fit into its local memory.
constexpr int own_draw_memory = 16;
/// Limit per worker for the data that do not fit into local memory.
constexpr int64_t most_scratch = int64_t{256} << 20;

/// A realisation, and the positions of its parts in the arrays of all realisations.
struct DrawPlace {
    int number = 0, size = 0;
    int64_t members = 0, numbers = 0; ///< numbers: position of gram, whole and whole_ones
    double weight_squared = 0, longest = 0;
};

/// The data that all pixels share.
struct DrawTask {
    const DrawPlace* draws = nullptr;
    const int *members = nullptr, *class_of = nullptr;
    const double* numbers = nullptr;
    const double* library = nullptr; ///< [band][spectrum]
    int count = 0, spectra = 0, bands = 0, classes = 0, most = 0;
    bool nnls = false, sum = false, nonnegative = false, unit = false, noise = false;
    uint64_t seed = 0;
};

/// The pixels of a tile, and the result buffers, which are null if not requested.
struct DrawPixels {
    /// [band][pixel]; with noise, the standard deviations follow in the same layout.
    const float* x = nullptr;
    int64_t count = 0, samples = 0, first_number = 0, width = 0;
    float *mean = nullptr, *deviation = nullptr, *rmse = nullptr;
    unsigned long long* invalid = nullptr;
    __device__ uint64_t number(int64_t i) const {
        return static_cast<uint64_t>(first_number + i / samples * width + i % samples);
    }
};

/// A thread's arrays for a pixel.
struct DrawRoom {
    double *products, *factor, *abundances, *trial, *ones, *mean, *squared, *fraction;
    int* index;
    unsigned char* state;
};

/// Returns the bytes of a thread's arrays, a multiple of 8.
__host__ __device__ int64_t room_bytes(int64_t p, int64_t classes) {
    return 8 * (p * (p + 1) / 2 + 4 * p + 3 * classes) + (5 * p + 7) / 8 * 8;
}

__device__ DrawRoom room_at(unsigned char* memory, int p, int classes) {
    DrawRoom room{};
    room.products = reinterpret_cast<double*>(memory);
    room.abundances = room.products + p;
    room.trial = room.abundances + p;
    room.ones = room.trial + p;
    room.mean = room.ones + p;
    room.squared = room.mean + classes;
    room.fraction = room.squared + classes;
    room.factor = room.fraction + classes;
    room.index = reinterpret_cast<int*>(room.factor + triangle(p));
    room.state = reinterpret_cast<unsigned char*>(room.index + p);
    return room;
}

/// Returns true if the values are valid; with noise, the standard deviations must also be valid.
__device__ bool is_valid_draw_pixel(const DrawTask& t, const DrawPixels& w, int64_t i) {
    double squared = 0;
    bool good = true;
    for (int b = 0; b < t.bands; ++b) {
        const auto v = static_cast<double>(w.x[b * w.count + i]);
        squared += v * v;
        if (!t.noise) continue;
        const float sigma = w.x[(t.bands + b) * w.count + i];
        good = good && sigma >= 0 && sigma <= greatest_finite<float>;
    }
    return good && is_valid_sum(squared);
}

/// Computes the products of Most spectra of a realisation, starting at index `first`, with the pixel's values
/// in this realisation. Also computes the sum of the squared values.
template <int Most, bool Noise>
__device__ void draw_products(const DrawTask& t, const DrawPixels& w, int64_t i, const DrawPlace& draw,
                              int first, double* products, double& squared) {
    double sum[Most];
    int member[Most];
    const int count = min(Most, draw.size - first);
#pragma unroll
    for (int k = 0; k < Most; ++k) {
        sum[k] = 0;
        member[k] = k < count ? t.members[draw.members + first + k] : 0;
    }
    squared = 0;
    const uint64_t pixel = Noise ? w.number(i) : 0;
    for (int b = 0; b < t.bands; b += 4) {
        math::NormalNumbers z{};
        if (Noise)
            z = math::normal_numbers(math::philox(
                {{static_cast<uint32_t>(b / 4), noise_of_draw + static_cast<uint32_t>(draw.number),
                  static_cast<uint32_t>(pixel), static_cast<uint32_t>(pixel >> 32)}},
                t.seed));
#pragma unroll
        for (int q = 0; q < 4; ++q) {
            if (b + q >= t.bands) break;
            auto v = static_cast<double>(w.x[(b + q) * w.count + i]);
            if (Noise) v += static_cast<double>(w.x[(t.bands + b + q) * w.count + i]) * z.z[q];
            squared += v * v;
            const double* const row = t.library + static_cast<int64_t>(b + q) * t.spectra;
#pragma unroll
            for (int k = 0; k < Most; ++k)
                if (k < count) sum[k] += __ldg(row + member[k]) * v;
        }
    }
#pragma unroll
    for (int k = 0; k < Most; ++k)
        if (k < count) products[first + k] = sum[k];
}

/// The sums over a pixel's realisations.
struct DrawSums {
    double count = 0, sum = 0, error = 0;
};

/// Solves one realisation of one pixel. room.products must already contain the products.
__device__ void solve_draw(const DrawTask& t, const Problem& problem, const DrawPlace& draw,
                           const DrawRoom& room, double squared, bool rmse, DrawSums& all) {
    const int p = draw.size;
    if (t.unit) {
        if (!(squared > 0)) return;
        const double length = sqrt(squared);
        for (int k = 0; k < p; ++k)
            room.products[k] /= length;
        squared = 1;
    }
    Workspace space;
    space.products = room.products;
    space.factor = room.factor;
    space.abundances = room.abundances;
    space.trial = room.trial;
    space.ones = room.ones;
    space.index = room.index;
    space.state = room.state;
    ActiveSet<Alone> active(problem, space, {});
    active.solve(squared);
    const double residual = rmse ? active.residual(squared) : 0.0;
    for (int c = 0; c < t.classes; ++c)
        room.fraction[c] = 0;
    double whole = 0;
    for (int k = 0; k < p; ++k) {
        room.fraction[t.class_of[draw.members + k]] += room.abundances[k];
        whole += room.abundances[k];
    }
    if (t.nnls) {
        if (!(whole > 1e-9)) return;
        for (int c = 0; c < t.classes; ++c)
            room.fraction[c] /= whole;
    }
    all.count += 1;
    all.sum += whole;
    all.error += sqrt(residual / static_cast<double>(t.bands));
    for (int c = 0; c < t.classes; ++c) {
        const double apart = room.fraction[c] - room.mean[c];
        room.mean[c] += apart / all.count;
        room.squared[c] += apart * (room.fraction[c] - room.mean[c]);
    }
}

__device__ void write_draws(const DrawTask& t, const DrawPixels& w, int64_t i, bool valid,
                            const DrawRoom& room, const DrawSums& all) {
    if (!valid) atomicAdd(w.invalid, 1ull);
    const bool any = valid && all.count > 0;
    for (int c = 0; c < t.classes; ++c)
        w.mean[c * w.count + i] = any ? static_cast<float>(room.mean[c]) : nanf("");
    if (t.nnls) w.mean[t.classes * w.count + i] = any ? static_cast<float>(all.sum / all.count) : nanf("");
    for (int c = 0; w.deviation && c < t.classes; ++c) {
        const double squared = room.squared[c];
        w.deviation[c * w.count + i] =
            any && all.count > 1 ? static_cast<float>(sqrt((squared > 0 ? squared : 0.0) / (all.count - 1)))
                                 : nanf("");
    }
    if (w.rmse) w.rmse[i] = any ? static_cast<float>(all.error / all.count) : nanf("");
}

__device__ Problem problem_of(const DrawTask& t, const DrawPlace& draw, const double* numbers) {
    Problem problem;
    problem.size = draw.size;
    problem.sum = t.sum;
    problem.nonnegative = t.nonnegative;
    problem.weight_squared = draw.weight_squared;
    problem.longest = draw.longest;
    problem.gram = numbers;
    problem.whole = numbers + draw.size * draw.size;
    problem.whole_ones = problem.whole + triangle(draw.size);
    return problem;
}

/// Solves realisations of at most Most spectra, one pixel per thread.
template <int Most, bool Noise>
__global__ void __launch_bounds__(draw_threads) draw_by_thread(const DrawTask t, const DrawPixels w) {
    __shared__ double numbers[Most * Most + Most * (Most + 1) / 2 + Most];
    double products[Most], factor[Most * (Most + 1) / 2], abundances[Most], trial[Most], ones[Most],
        mean[Most], squares[Most], fraction[Most];
    int index[Most];
    unsigned char state[Most];
    const DrawRoom room{products, factor, abundances, trial, ones, mean, squares, fraction, index, state};
    const int64_t i = static_cast<int64_t>(blockIdx.x) * draw_threads + threadIdx.x;
    const bool there = i < w.count, valid = there && is_valid_draw_pixel(t, w, i);
    for (int c = 0; c < t.classes; ++c)
        mean[c] = squares[c] = 0;
    DrawSums all;
    for (int d = 0; d < t.count; ++d) {
        const DrawPlace draw = t.draws[d];
        __syncthreads(); // All threads must have finished the previous realisation.
        const int p = draw.size, n = p * p + p * (p + 1) / 2 + p;
        for (int k = static_cast<int>(threadIdx.x); k < n; k += draw_threads)
            numbers[k] = t.numbers[draw.numbers + k];
        __syncthreads();
        if (!valid) continue;
        double squared = 0;
        draw_products<Most, Noise>(t, w, i, draw, 0, products, squared);
        solve_draw(t, problem_of(t, draw, numbers), draw, room, squared, w.rmse != nullptr, all);
    }
    if (there) write_draws(t, w, i, valid, room, all);
}

/// Solves realisations of any number of spectra. The arrays of a thread are in `scratch`. With n threads,
/// each thread processes every n-th pixel.
template <bool Noise>
__global__ void __launch_bounds__(draw_threads)
    draw_in_memory(const DrawTask t, const DrawPixels w, unsigned char* scratch) {
    const int64_t me = static_cast<int64_t>(blockIdx.x) * draw_threads + threadIdx.x;
    const DrawRoom room = room_at(scratch + me * room_bytes(t.most, t.classes), t.most, t.classes);
    for (int64_t i = me; i < w.count; i += static_cast<int64_t>(gridDim.x) * draw_threads) {
        const bool valid = is_valid_draw_pixel(t, w, i);
        for (int c = 0; c < t.classes; ++c)
            room.mean[c] = room.squared[c] = 0;
        DrawSums all;
        for (int d = 0; valid && d < t.count; ++d) {
            const DrawPlace draw = t.draws[d];
            double squared = 0;
            // The noise is generated again for each chunk.
            for (int first = 0; first < draw.size; first += draw_chunk)
                draw_products<draw_chunk, Noise>(t, w, i, draw, first, room.products, squared);
            solve_draw(t, problem_of(t, draw, t.numbers + draw.numbers), draw, room, squared,
                       w.rmse != nullptr, all);
        }
        write_draws(t, w, i, valid, room, all);
    }
}

/// The realisations on one device, shared by all workers.
struct DeviceDraws {
    DrawTask task;
    DeviceBuffer<DrawPlace> draws;
    DeviceBuffer<int> members, class_of;
    DeviceBuffer<double> numbers, library;

    explicit DeviceDraws(const DrawPlan& plan) {
        std::vector<DrawPlace> places;
        std::vector<int> all_members, all_classes;
        std::vector<double> all_numbers;
        for (const auto& draw : plan.draws) {
            const Problem& problem = draw->mixture.problem();
            const auto p = static_cast<size_t>(problem.size);
            DrawPlace place;
            place.number = draw->number;
            place.size = problem.size;
            place.members = static_cast<int64_t>(all_members.size());
            place.numbers = static_cast<int64_t>(all_numbers.size());
            place.weight_squared = problem.weight_squared;
            place.longest = problem.longest;
            places.push_back(place);
            all_members.insert(all_members.end(), draw->members.begin(), draw->members.end());
            all_classes.insert(all_classes.end(), draw->class_of.begin(), draw->class_of.end());
            all_numbers.insert(all_numbers.end(), problem.gram, problem.gram + p * p);
            all_numbers.insert(all_numbers.end(), problem.whole, problem.whole + triangle(problem.size));
            all_numbers.insert(all_numbers.end(), problem.whole_ones, problem.whole_ones + p);
        }
        const auto bands = static_cast<size_t>(plan.library.bands()),
                   spectra_count = plan.library.spectra.size();
        std::vector<double> by_band(bands * spectra_count);
        for (size_t k = 0; k < spectra_count; ++k)
            for (size_t b = 0; b < bands; ++b)
                by_band[b * spectra_count + k] = plan.library.spectra[k][b];
        draws = DeviceBuffer(places);
        members = DeviceBuffer(all_members);
        class_of = DeviceBuffer(all_classes);
        numbers = DeviceBuffer(all_numbers);
        library = DeviceBuffer(by_band);
        const DrawOptions& o = plan.options;
        task.draws = draws.data();
        task.members = members.data();
        task.class_of = class_of.data();
        task.numbers = numbers.data();
        task.library = library.data();
        task.count = static_cast<int>(places.size());
        task.spectra = static_cast<int>(spectra_count);
        task.bands = static_cast<int>(bands);
        task.classes = static_cast<int>(plan.classes);
        task.most = static_cast<int>(plan.most);
        task.nnls = o.method == Method::nnls;
        task.sum = sums_to_one(o.method);
        task.nonnegative = is_nonnegative(o.method);
        task.unit = o.normalise == Normalise::unit;
        task.noise = o.noise;
        task.seed = o.seed;
    }
    static uint64_t bytes(const DrawPlan& plan) {
        uint64_t all = 8 * static_cast<uint64_t>(plan.library.bands()) * plan.library.spectra.size();
        for (const auto& draw : plan.draws) {
            const uint64_t p = draw->mixture.size();
            all += sizeof(DrawPlace) + 8 * (p * p + p * (p + 1) / 2 + p) + 8 * p;
        }
        return all;
    }
};

/// Returns the number of blocks of draw_in_memory() per worker; 0 if local memory is large enough.
int64_t blocks_in_memory(const DrawPlan& plan) {
    if (plan.most <= static_cast<size_t>(own_draw_memory)) return 0;
    const int64_t block =
        draw_threads * room_bytes(static_cast<int64_t>(plan.most), static_cast<int64_t>(plan.classes));
    return std::clamp<int64_t>(most_scratch / block, 1, 512);
}

class CudaDrawWorker final : public stream::Worker {
  public:
    /// Precondition: `ordinal` is the current device.
    CudaDrawWorker(int ordinal, std::shared_ptr<const DeviceDraws> draws, const DrawPlan& plan,
                   const TileLimits& limits)
        : m_ordinal(ordinal), m_draws(std::move(draws)), m_plan(plan),
          m_x(static_cast<size_t>(pixels_of(limits) * inputs(plan))), m_blocks(blocks_in_memory(plan)),
          m_invalid(1) {
        const auto pixels = static_cast<size_t>(pixels_of(limits));
        for (const int bands : plan.output_bands())
            m_out.emplace_back(pixels * static_cast<size_t>(bands));
        m_scratch = DeviceBuffer<unsigned char>(static_cast<size_t>(scratch_bytes(plan)));
    }
    static int64_t pixels_of(const TileLimits& limits) { return limits.core_samples * limits.core_lines; }
    static int64_t inputs(const DrawPlan& plan) {
        return static_cast<int64_t>(plan.library.bands()) * (plan.options.noise ? 2 : 1);
    }
    static int64_t scratch_bytes(const DrawPlan& plan) {
        return blocks_in_memory(plan) * draw_threads *
               room_bytes(static_cast<int64_t>(plan.most), static_cast<int64_t>(plan.classes));
    }
    static uint64_t device_bytes(const DrawPlan& plan, const TileLimits& limits) {
        int64_t numbers = inputs(plan);
        for (const int bands : plan.output_bands())
            numbers += bands;
        return static_cast<uint64_t>(4 * numbers * pixels_of(limits) + scratch_bytes(plan) + 8);
    }

    void process(const Tile& tile, const CubeView<float>& in,
                 const std::vector<CubeView<float>>& out) override {
        const DeviceGuard guard(m_ordinal);
        const auto stream = m_stream.get();
        const int64_t pixels = in.lines * in.samples; // The window equals the core.
        const auto& numbers = m_plan.options.numbers;
        DrawPixels w;
        w.x = m_x.packed(in, stream);
        w.count = pixels;
        w.samples = in.samples;
        w.width = numbers.width;
        w.first_number = numbers.of(tile.core.y, tile.core.x);
        size_t next = 0;
        w.mean = m_out[next++].begin(out[0]);
        if (m_plan.options.deviation) {
            w.deviation = m_out[next].begin(out[next]);
            ++next;
        }
        if (m_plan.options.rmse) w.rmse = m_out[next].begin(out[next]);
        w.invalid = m_invalid.data();
        m_invalid.clear(stream);
        m_clock.start(stream);
        if (m_draws->task.noise)
            launch<true>(w, stream);
        else
            launch<false>(w, stream);
        HSI_CUDA_LAUNCHED("draws");
        m_clock.stop(stream);
        for (auto& one : m_out)
            one.end(stream);
        unsigned long long bad = 0;
        m_invalid.download(&bad, 1, stream);
        m_stream.synchronize();
        kernel_seconds += m_clock.seconds();
        invalid += static_cast<int64_t>(bad);
        valid += pixels - static_cast<int64_t>(bad);
    }

    int64_t valid = 0, invalid = 0;
    double kernel_seconds = 0;

  private:
    template <bool Noise>
    void launch(const DrawPixels& w, cudaStream_t stream) {
        const auto blocks = static_cast<unsigned>((w.count + draw_threads - 1) / draw_threads);
        const DrawTask& t = m_draws->task;
        if (t.most <= own_draw_memory / 2)
            draw_by_thread<own_draw_memory / 2, Noise><<<blocks, draw_threads, 0, stream>>>(t, w);
        else if (t.most <= own_draw_memory)
            draw_by_thread<own_draw_memory, Noise><<<blocks, draw_threads, 0, stream>>>(t, w);
        else
            draw_in_memory<Noise>
                <<<static_cast<unsigned>(std::min<int64_t>(blocks, m_blocks)), draw_threads, 0, stream>>>(
                    t, w, m_scratch.data());
    }

    const int m_ordinal;
    const std::shared_ptr<const DeviceDraws> m_draws;
    const DrawPlan& m_plan;
    cuda::Stream m_stream;
    cuda::KernelClock m_clock;
    cuda::TileInput m_x;
    std::vector<cuda::TileOutput> m_out;
    const int64_t m_blocks;
    DeviceBuffer<unsigned char> m_scratch;
    DeviceBuffer<unsigned long long> m_invalid;
};

class CudaDraws final : public cuda::LaneOperation<DrawUnmixing> {
  public:
    CudaDraws(std::vector<CudaDevice> devices, const Endmembers& library, const Classes& classes,
              const DrawOptions& options, double& kernel_seconds)
        : LaneOperation(std::move(devices)), m_plan(library, classes, options),
          m_shared(this->devices().size()), m_kernel_seconds(kernel_seconds) {
        m_skipped = m_plan.skipped;
    }
    std::vector<int> output_bands() const override { return m_plan.output_bands(); }
    int takes_from() const override { return only_device(); }
    int puts_on() const override { return only_device(); }
    uint64_t preferred_bytes() const override { return uint64_t{64} << 20; }
    uint64_t device_bytes(const TileLimits& limits) const override {
        return CudaDrawWorker::device_bytes(m_plan, limits) + DeviceDraws::bytes(m_plan);
    }
    void stop(stream::Worker& worker) override {
        const auto& w = static_cast<const CudaDrawWorker&>(worker);
        m_valid += w.valid;
        m_invalid += w.invalid;
        m_kernel_seconds += w.kernel_seconds;
    }

  private:
    std::unique_ptr<stream::Worker> make_lane(const cuda::LaneDevice& on, const TileLimits& limits) override {
        auto shared = m_shared.on(on, [&] { return std::make_shared<DeviceDraws>(m_plan); });
        return std::make_unique<CudaDrawWorker>(on.ordinal, std::move(shared), m_plan, limits);
    }

    const DrawPlan m_plan;
    cuda::OncePerDevice<DeviceDraws> m_shared;
    double& m_kernel_seconds;
};

} // namespace

std::unique_ptr<DrawUnmixing> make_cuda_draws(std::vector<CudaDevice> devices, const Endmembers& library,
                                              const Classes& classes, const DrawOptions& options,
                                              double& kernel_seconds) {
    return std::make_unique<CudaDraws>(std::move(devices), library, classes, options, kernel_seconds);
}

} // namespace hsi::unmix
