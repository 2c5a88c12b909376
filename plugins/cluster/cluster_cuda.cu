// SPDX-License-Identifier: MIT
// hsi_cuda_cluster.so: k-means with the scene on a device. The scene is copied tile by tile while it is read.
// An assignment has two kernels. The first kernel finds every pixel's nearest centre, and lists the pixels
// that move. It makes the same operations in the same order as the CPU, and fuses multiply and add only where
// the CPU does (the file is compiled with -fmad=false). The second kernel adds the moved pixels to their new
// clusters and subtracts them from the old ones. Sums are exact: floats are added as integers in digits of 16
// bits, so atomic additions in any order give the CPU's sums bit by bit.
#include "cluster/device_scene.h"
#include "core/error.h"
#include "cuda/copy.h"
#include "cuda/device.h"
#include "cuda/device_buffer.h"
#include "cuda/lane_operation.h"
#include "cuda/pinned.h"
#include "cuda/stream.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

namespace hsi::cluster {
namespace {

using cuda::DeviceBuffer;
using cuda::DeviceGuard;

constexpr int threads = 128;
constexpr int at_once = 8; ///< centres whose distances are computed together
/// Pixels per step. A pixel adds less than 2^40 to a digit of a sum, so no digit overflows within a step.
constexpr int64_t step_pixels = int64_t{1} << 22;
constexpr int digit_bits = 16;
/// The number of digits in a sum of floats. Digit k counts multiples of 2^(16 k - 149).
constexpr int float_digits = 16;
constexpr double angle_unit = 0x1p40, angle_whole = 0x1.8p52; ///< the constants of Look::expand()

/// The data of the scene that kernels read.
struct DevicePixels {
    const float* x = nullptr; ///< [band][pixel]
    int64_t count = 0;
    int bands = 0;
    const double* length = nullptr; ///< |x| per pixel; null for euclidean
    uint16_t* label = nullptr;
    double* best = nullptr;
};

__device__ double unit_value(float x, double length) {
    return __dadd_rn(__dadd_rn(__dmul_rn(__ddiv_rn(static_cast<double>(x), length), angle_unit), angle_whole),
                     -angle_whole) /
           angle_unit;
}

__global__ void __launch_bounds__(threads)
    find_lengths(const float* x, int64_t count, int bands, double* length) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * threads + threadIdx.x;
    if (i >= count) return;
    double sum = 0;
    for (int b = 0; b < bands; ++b) {
        const auto v = static_cast<double>(x[b * count + i]);
        sum = __dadd_rn(sum, __dmul_rn(v, v));
    }
    length[i] = sqrt(sum);
}

/// Finds the nearest centre of the pixels first to end - 1. centres: [chunk][band][at_once]. Adds pixels
/// whose label changes to `moved`, and their old labels to `old`, in any order. If all labels are new, adds
/// all valid pixels.
template <bool Angle>
__global__ void __launch_bounds__(threads)
    assign_pixels(const DevicePixels s, int64_t first, int64_t end, const double* __restrict__ centres,
                  int clusters, bool all_new, uint32_t* moved, uint16_t* old, unsigned* moves) {
    const int64_t i = first + static_cast<int64_t>(blockIdx.x) * threads + threadIdx.x;
    if (i >= end || s.label[i] == 0) return;
    double best = Angle ? -INFINITY : INFINITY;
    int at = 0;
    const double length = Angle ? s.length[i] : 0.0;
    for (int from = 0; from < clusters; from += at_once) {
        const double* row = centres + static_cast<int64_t>(from) * s.bands;
        double sum[at_once];
#pragma unroll
        for (int k = 0; k < at_once; ++k)
            sum[k] = 0;
        for (int b = 0; b < s.bands; ++b, row += at_once) {
            const float x = s.x[b * s.count + i];
            const double y = Angle ? unit_value(x, length) : static_cast<double>(x);
#pragma unroll
            for (int k = 0; k < at_once; k += 2) {
                const double2 c = __ldg(reinterpret_cast<const double2*>(row + k));
                if (Angle) {
                    sum[k] = __fma_rn(y, c.x, sum[k]);
                    sum[k + 1] = __fma_rn(y, c.y, sum[k + 1]);
                } else {
                    const double p = __dadd_rn(y, -c.x), q = __dadd_rn(y, -c.y);
                    sum[k] = __fma_rn(p, p, sum[k]);
                    sum[k + 1] = __fma_rn(q, q, sum[k + 1]);
                }
            }
        }
#pragma unroll
        for (int k = 0; k < at_once; ++k) {
            if (from + k >= clusters) break;
            if (Angle ? sum[k] > best : sum[k] < best) {
                best = sum[k];
                at = from + k;
            }
        }
    }
    s.best[i] = best;
    const auto label = static_cast<uint16_t>(at + 1), before = s.label[i];
    if (label == before && !all_new) return;
    s.label[i] = label;
    const unsigned place = atomicAdd(moves, 1u);
    moved[place] = static_cast<uint32_t>(i - first);
    old[place] = before;
}

__device__ void add_whole(int64_t* to, int64_t v) {
    atomicAdd(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(v));
}

/// Adds the moved pixels to the sums of their new clusters, and subtracts them from the sums of the old
/// clusters unless all labels are new. sums: several copies of [cluster][band][digit], among which the blocks
/// are distributed.
template <bool Angle>
__global__ void __launch_bounds__(threads)
    add_moves(const DevicePixels s, int64_t first, const uint32_t* moved, const uint16_t* old,
              const unsigned* moves, bool all_new, int band_step, int64_t* sums, int64_t entries, int copies,
              int64_t* pixels) {
    constexpr int digits = Angle ? 1 : float_digits;
    int64_t* const mine = sums + static_cast<int64_t>(blockIdx.x % static_cast<unsigned>(copies)) * entries;
    const int b0 = static_cast<int>(blockIdx.y) * band_step, b1 = min(b0 + band_step, s.bands);
    for (unsigned j = blockIdx.x * threads + threadIdx.x; j < *moves; j += gridDim.x * threads) {
        const int64_t i = first + moved[j];
        const int64_t to = s.label[i] - 1, from = all_new ? -1 : old[j] - 1;
        if (b0 == 0) {
            add_whole(pixels + to, 1);
            if (from >= 0) add_whole(pixels + from, -1);
        }
        for (int b = b0; b < b1; ++b) {
            const float x = s.x[b * s.count + i];
            int64_t v = 0;
            int digit = 0;
            if (Angle) {
                v = static_cast<int64_t>(unit_value(x, s.length[i]) * angle_unit);
            } else {
                const unsigned bits = __float_as_uint(x), exponent = (bits >> 23) & 255u;
                const unsigned place = exponent > 0 ? exponent - 1 : 0; // x = v 2^(place - 149)
                v = static_cast<int64_t>((bits & 0x7FFFFFu) | (exponent > 0 ? 0x800000u : 0u));
                digit = static_cast<int>(place / digit_bits);
                v <<= place % digit_bits;
                if (bits >> 31) v = -v;
            }
            if (v == 0) continue;
            add_whole(mine + (to * s.bands + b) * digits + digit, v);
            if (from >= 0) add_whole(mine + (from * s.bands + b) * digits + digit, -v);
        }
    }
}

/// Adds up the copies into two integers per value: v = upper 2^32 + lower. Clears the copies, and adds the
/// number of moves to `moved`.
__global__ void __launch_bounds__(threads)
    gather_sums(int64_t* sums, int64_t entries, int copies, int64_t* upper, int64_t* lower,
                const unsigned* moves, int64_t* moved) {
    const int64_t e = static_cast<int64_t>(blockIdx.x) * threads + threadIdx.x;
    if (e == 0) *moved += *moves;
    if (e >= entries) return;
    int64_t all = 0;
    for (int c = 0; c < copies; ++c) {
        all += sums[c * entries + e];
        sums[c * entries + e] = 0;
    }
    upper[e] += all >> 32;
    lower[e] += all & 0xFFFFFFFF;
}

__global__ void __launch_bounds__(threads) gather_spectra(const float* x, int64_t count, int bands,
                                                          const int64_t* pixels, int64_t wanted, float* to) {
    const int64_t t = static_cast<int64_t>(blockIdx.x) * threads + threadIdx.x;
    if (t >= wanted * bands) return;
    const int64_t j = t % wanted, b = t / wanted;
    to[j * bands + b] = x[b * count + pixels[j]];
}

unsigned blocks_of(int64_t n) { return static_cast<unsigned>((n + threads - 1) / threads); }

/// The sizes of buffers for a scene and its clustering.
struct Sizes {
    Sizes(const stream::CubeShape& scene, Distance distance, int clusters)
        : pixels(scene.pixels()), bands(scene.bands), digits(distance == Distance::angle ? 1 : float_digits),
          entries(static_cast<int64_t>(clusters) * bands * digits),
          copies(static_cast<int>(std::clamp<int64_t>((int64_t{4} << 20) / entries, 1, 16))),
          chunks((clusters + at_once - 1) / at_once), angle(distance == Distance::angle) {}
    uint64_t bytes() const {
        const int64_t step = std::min(step_pixels, pixels);
        return static_cast<uint64_t>(pixels * (4 * int64_t{bands} + 8 + (angle ? 8 : 0) + 2) + step * 6 +
                                     entries * 8 * (copies + 2) +
                                     int64_t{chunks} * at_once * (bands + 1) * 8);
    }
    const int64_t pixels;
    const int bands, digits;
    const int64_t entries; ///< number of digits in all sums
    const int copies, chunks;
    const bool angle;
};

class CudaScene final : public DeviceScene {
  public:
    CudaScene(int ordinal, const stream::CubeShape& scene, const Sizes& sizes, int clusters,
              double& kernel_seconds)
        : m_ordinal(ordinal), m_scene(scene), m_size(sizes), m_most(clusters),
          m_kernel_seconds(kernel_seconds) {
        const DeviceGuard guard(ordinal);
        const auto pixels = static_cast<size_t>(sizes.pixels);
        const auto step = static_cast<size_t>(std::min(step_pixels, sizes.pixels)),
                   entries = static_cast<size_t>(sizes.entries);
        m_x = DeviceBuffer<float>(pixels * static_cast<size_t>(sizes.bands));
        m_best = DeviceBuffer<double>(pixels);
        if (sizes.angle) m_length = DeviceBuffer<double>(pixels);
        m_label = DeviceBuffer<uint16_t>(pixels);
        m_moved = DeviceBuffer<uint32_t>(step);
        m_old = DeviceBuffer<uint16_t>(step);
        m_sums = DeviceBuffer<int64_t>(entries * static_cast<size_t>(sizes.copies));
        m_upper = DeviceBuffer<int64_t>(entries);
        m_lower = DeviceBuffer<int64_t>(entries);
        m_pixels = DeviceBuffer<int64_t>(static_cast<size_t>(clusters));
        m_moves = DeviceBuffer<unsigned>(1);
        m_total = DeviceBuffer<int64_t>(1);
        m_centres = DeviceBuffer<double>(static_cast<size_t>(sizes.chunks * at_once * sizes.bands));
        m_sums.clear(m_stream->get());
    }

    std::shared_ptr<HostAllocator> allocator() const override {
        return std::make_shared<cuda::PinnedAllocator>(m_ordinal);
    }

    void put(const Rect& core, const CubeView<float>& values) override {
        const DeviceGuard guard(m_ordinal);
        const cuda::Stream stream;
        CubeView<float> to =
            CubeView<float>::packed(m_x.data(), m_size.bands, m_scene.lines, m_scene.samples);
        to.data += core.y * to.line_stride + core.x;
        to.lines = values.lines;
        to.samples = values.samples;
        cuda::copy_cube(to, values, stream.get());
        HSI_CUDA_CHECK(cudaStreamSynchronize(stream.get()));
    }

    void get(const std::vector<int64_t>& pixels, float* to) override {
        if (pixels.empty()) return;
        const DeviceGuard guard(m_ordinal);
        const auto wanted = static_cast<int64_t>(pixels.size());
        DeviceBuffer<int64_t> which(pixels.size());
        DeviceBuffer<float> spectra(pixels.size() * static_cast<size_t>(m_size.bands));
        which.upload(pixels.data(), pixels.size(), m_stream->get());
        gather_spectra<<<blocks_of(wanted * m_size.bands), threads, 0, m_stream->get()>>>(
            m_x.data(), m_size.pixels, m_size.bands, which.data(), wanted, spectra.data());
        HSI_CUDA_LAUNCHED("gather_spectra");
        spectra.download(to, spectra.size(), m_stream->get());
        HSI_CUDA_CHECK(cudaStreamSynchronize(m_stream->get()));
    }

    void begin(const std::vector<uint16_t>& labels) override {
        const DeviceGuard guard(m_ordinal);
        m_label.upload(labels.data(), labels.size(), m_stream->get());
        if (m_size.angle) {
            find_lengths<<<blocks_of(m_size.pixels), threads, 0, m_stream->get()>>>(
                m_x.data(), m_size.pixels, m_size.bands, m_length.data());
            HSI_CUDA_LAUNCHED("find_lengths");
        }
        HSI_CUDA_CHECK(cudaStreamSynchronize(m_stream->get()));
    }

    void assign(const Centres& centres, bool first, Moves& moves) override {
        if (centres.count > m_most) throw Error("internal: more clusters than the device has room for");
        const DeviceGuard guard(m_ordinal);
        const auto stream = m_stream->get();
        const auto chunked = by_chunk(centres);
        m_centres.upload(chunked.data(), chunked.size(), stream);
        m_upper.clear(stream);
        m_lower.clear(stream);
        m_pixels.clear(stream);
        m_total.clear(stream);
        m_clock->start(stream);
        for (int64_t at = 0; at < m_size.pixels; at += step_pixels)
            if (m_size.angle)
                step<true>(centres.count, first, at, stream);
            else
                step<false>(centres.count, first, at, stream);
        m_clock->stop(stream);
        take_sums(static_cast<size_t>(centres.count), moves, stream);
        m_kernel_seconds += m_clock->seconds();
    }

    void best(int64_t first, int64_t count, double* to) override { download(m_best, first, count, to); }
    void lengths(int64_t first, int64_t count, double* to) override { download(m_length, first, count, to); }
    void labels(std::vector<uint16_t>& to) override {
        download(m_label, 0, static_cast<int64_t>(to.size()), to.data());
    }

  private:
    /// Returns the centres as [chunk][band][at_once]; missing centres of the last chunk are zeros.
    std::vector<double> by_chunk(const Centres& centres) const {
        const auto bands = static_cast<size_t>(m_size.bands);
        constexpr auto width = static_cast<size_t>(at_once);
        const size_t count = static_cast<size_t>(centres.count);
        std::vector<double> out((count + width - 1) / width * width * bands);
        for (size_t k = 0; k < count; ++k)
            for (size_t b = 0; b < bands; ++b)
                out[(k / width * bands + b) * width + k % width] = centres.values[k * bands + b];
        return out;
    }

    template <bool Angle>
    void step(int clusters, bool first, int64_t at, cudaStream_t stream) {
        const int64_t end = std::min(at + step_pixels, m_size.pixels);
        const DevicePixels pixels{m_x.data(),     m_size.pixels,
                                  m_size.bands,   m_size.angle ? m_length.data() : nullptr,
                                  m_label.data(), m_best.data()};
        m_moves.clear(stream);
        assign_pixels<Angle><<<blocks_of(end - at), threads, 0, stream>>>(
            pixels, at, end, m_centres.data(), clusters, first, m_moved.data(), m_old.data(), m_moves.data());
        HSI_CUDA_LAUNCHED("assign_pixels");
        constexpr int band_step = 8;
        const dim3 grid(std::min(blocks_of(end - at), 1024u),
                        static_cast<unsigned>((m_size.bands + band_step - 1) / band_step));
        add_moves<Angle><<<grid, threads, 0, stream>>>(pixels, at, m_moved.data(), m_old.data(),
                                                       m_moves.data(), first, band_step, m_sums.data(),
                                                       m_size.entries, m_size.copies, m_pixels.data());
        HSI_CUDA_LAUNCHED("add_moves");
        gather_sums<<<blocks_of(m_size.entries), threads, 0, stream>>>(
            m_sums.data(), m_size.entries, m_size.copies, m_upper.data(), m_lower.data(), m_moves.data(),
            m_total.data());
        HSI_CUDA_LAUNCHED("gather_sums");
    }

    /// Converts the sums of the steps into sums of doubles; each double is exact.
    void take_sums(size_t clusters, Moves& moves, cudaStream_t stream) {
        const auto bands = static_cast<size_t>(m_size.bands), digits = static_cast<size_t>(m_size.digits);
        const size_t stride = stride_of(m_size.bands, m_size.angle ? Distance::angle : Distance::euclidean);
        std::vector<int64_t> upper(clusters * bands * digits), lower(upper.size());
        m_upper.download(upper.data(), upper.size(), stream);
        m_lower.download(lower.data(), lower.size(), stream);
        std::vector<int64_t> pixels(clusters);
        int64_t moved = 0;
        m_pixels.download(pixels.data(), clusters, stream);
        m_total.download(&moved, 1, stream);
        HSI_CUDA_CHECK(cudaStreamSynchronize(stream));
        std::vector<double> row(clusters * stride);
        for (size_t digit = 0; digit < digits; ++digit)
            for (const bool high : {false, true}) {
                const int exponent =
                    (m_size.angle ? -40 : static_cast<int>(digit) * digit_bits - 149) + (high ? 32 : 0);
                const auto& all = high ? upper : lower;
                bool any = false;
                for (size_t k = 0; k < clusters; ++k)
                    for (size_t b = 0; b < bands; ++b) {
                        const int64_t v = all[(k * bands + b) * digits + digit];
                        row[k * stride + b] = v == 0 ? 0.0 : std::ldexp(static_cast<double>(v), exponent);
                        any = any || v != 0;
                    }
                if (any) moves.sums.add(0, row.data(), row.size());
            }
        for (size_t k = 0; k < clusters; ++k)
            moves.pixels[k] += pixels[k];
        moves.moved += moved;
    }

    template <class T>
    void download(const DeviceBuffer<T>& from, int64_t first, int64_t count, T* to) const {
        const DeviceGuard guard(m_ordinal);
        HSI_CUDA_CHECK(cudaMemcpyAsync(to, from.data() + first, static_cast<size_t>(count) * sizeof(T),
                                       cudaMemcpyDeviceToHost, m_stream->get()));
        HSI_CUDA_CHECK(cudaStreamSynchronize(m_stream->get()));
    }

    const int m_ordinal;
    const stream::CubeShape m_scene;
    const Sizes m_size;
    const int m_most;
    double& m_kernel_seconds;
    std::unique_ptr<cuda::Stream> m_stream = std::make_unique<cuda::Stream>();
    std::unique_ptr<cuda::KernelClock> m_clock = std::make_unique<cuda::KernelClock>();
    DeviceBuffer<float> m_x;
    DeviceBuffer<double> m_best, m_length, m_centres;
    DeviceBuffer<uint16_t> m_label, m_old;
    DeviceBuffer<uint32_t> m_moved;
    DeviceBuffer<int64_t> m_sums, m_upper, m_lower, m_pixels, m_total;
    DeviceBuffer<unsigned> m_moves;
};

class CudaBackend final : public cuda::TimedBackend<Backend> {
  public:
    using TimedBackend::TimedBackend;
    std::unique_ptr<DeviceScene> make_scene(const stream::CubeShape& scene, const Options& options,
                                            int clusters, uint64_t memory) override {
        const int ordinal = m_devices.front().ordinal;
        const DeviceGuard guard(ordinal);
        const uint64_t free = cuda::free_memory(ordinal),
                       room = memory > 0 ? std::min(memory, free) : free / 5 * 4;
        const Sizes sizes(scene, options.distance, clusters);
        if (scene.pixels() > std::numeric_limits<int>::max() || sizes.bytes() > room) return nullptr;
        return std::make_unique<CudaScene>(ordinal, scene, sizes, clusters, m_kernel_seconds);
    }
};

} // namespace
} // namespace hsi::cluster

extern "C" __attribute__((visibility("default"))) hsi::cluster::Backend*
hsi_cuda_cluster(const std::vector<hsi::CudaDevice>& devices) {
    return new hsi::cluster::CudaBackend(devices);
}
