// SPDX-License-Identifier: MIT
// Computes the mask, the squared gradient and the ranges of a scan. Compiled with -fmad=false: operations are
// fused only where the source says fma.
#include "core/valid_pixel.h"
#include "eadp/launch.cuh"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace hsi::eadp::gpu {
namespace {

/// Returns the index after reflection at the outer edges of the border pixels.
__device__ int mirrored(int i, int n) {
    while (i < 0 || i >= n)
        i = i < 0 ? -1 - i : 2 * n - 1 - i;
    return i;
}

__global__ void mask_kernel(const float* x, int components, size_t pixels, bool zero_is_invalid,
                            uint8_t* valid) {
    const size_t p = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (p >= pixels) return;
    valid[p] = is_valid_pixel(x + p, components, static_cast<ptrdiff_t>(pixels), zero_is_invalid);
}

// gridDim.z is components + 1. The last plane filters the mask.
__global__ void gaussian_rows(Planes planes, const uint8_t* __restrict__ valid, GradientWork work) {
    const int x = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), y = static_cast<int>(blockIdx.y);
    const int c = static_cast<int>(blockIdx.z);
    if (x >= planes.samples) return;
    const size_t line = static_cast<size_t>(y) * planes.samples;
    const float* const in = planes.x + static_cast<size_t>(c) * planes.pixels() + line;
    const bool mask = c == planes.components;
    const auto value = [&](int i) -> double {
        i = mirrored(i, planes.samples);
        if (mask) return valid[line + i];
        return valid[line + i] ? static_cast<double>(in[i]) : 0.0;
    };
    double sum = work.weights[0] * value(x);
    for (int t = 1; t <= work.radius; ++t)
        sum = sum + work.weights[t] * (value(x - t) + value(x + t));
    work.row_sums[static_cast<size_t>(c) * planes.pixels() + line + x] = sum;
}

__global__ void gaussian_columns(Planes planes, const uint8_t* __restrict__ valid, GradientWork work,
                                 bool mask) {
    const int x = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), y = static_cast<int>(blockIdx.y);
    const int c = mask ? planes.components : static_cast<int>(blockIdx.z);
    if (x >= planes.samples) return;
    const double* const in = work.row_sums + static_cast<size_t>(c) * planes.pixels() + x;
    const auto value = [&](int i) {
        return in[static_cast<size_t>(mirrored(i, planes.lines)) * planes.samples];
    };
    double sum = work.weights[0] * value(y);
    for (int t = 1; t <= work.radius; ++t)
        sum = sum + work.weights[t] * (value(y - t) + value(y + t));
    const size_t p = static_cast<size_t>(y) * planes.samples + x;
    if (mask)
        work.column_weight[p] = sum;
    else
        work.smooth[static_cast<size_t>(c) * planes.pixels() + p] =
            valid[p] ? sum / work.column_weight[p] : 0.0;
}

__global__ void scharr_kernel(Planes planes, const uint8_t* __restrict__ valid,
                              const double* __restrict__ smooth, double* __restrict__ squared) {
    const int x = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), y = static_cast<int>(blockIdx.y);
    if (x >= planes.samples) return;
    const size_t plane = static_cast<size_t>(blockIdx.z) * planes.pixels();
    const int w = planes.samples, left = max(0, x - 1), right = min(w - 1, x + 1);
    const size_t up = static_cast<size_t>(max(0, y - 1)) * w, mid = static_cast<size_t>(y) * w,
                 down = static_cast<size_t>(min(planes.lines - 1, y + 1)) * w;
    const double c = smooth[plane + mid + x];
    const auto tap = [&](size_t line, int i) { return valid[line + i] ? smooth[plane + line + i] : c; };
    const double ul = tap(up, left), u = tap(up, x), ur = tap(up, right), l = tap(mid, left),
                 r = tap(mid, right), dl = tap(down, left), d = tap(down, x), dr = tap(down, right);
    const double gx = (3.0 * ((ur - ul) + (dr - dl)) + 10.0 * (r - l)) * 0.03125;
    const double gy = (3.0 * ((dl - ul) + (dr - ur)) + 10.0 * (d - u)) * 0.03125;
    squared[plane + mid + x] = gx * gx + gy * gy;
}

/// Returns an unsigned integer whose order is the order of the floats.
__device__ unsigned encode_ordered(float v) {
    const unsigned bits = __float_as_uint(v);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

struct RangePart {
    unsigned low = 0xffffffffu, high = 0, count = 0;
    unsigned long long steepest = 0;
    __device__ void add(float x, double squared) {
        const unsigned v = encode_ordered(x);
        low = min(low, v);
        high = max(high, v);
        const auto s =
            // A squared gradient is not negative, so the order of its bits is the order of the values.
            static_cast<unsigned long long>(__double_as_longlong(squared));
        steepest = s > steepest ? s : steepest;
        ++count;
    }
    __device__ void merge(const RangePart& o) {
        low = min(low, o.low);
        high = max(high, o.high);
        steepest = o.steepest > steepest ? o.steepest : steepest;
        count += o.count;
    }
};

/// Adds the values of a block's threads to `r`. `parts` is in shared memory and has one element per warp.
__device__ void add_range(RangePart own, RangePart* parts, int thread, int count, RangeSums& r) {
    for (int o = 16; o > 0; o /= 2) {
        RangePart other;
        other.low = __shfl_down_sync(~0u, own.low, o);
        other.high = __shfl_down_sync(~0u, own.high, o);
        other.steepest = __shfl_down_sync(~0u, own.steepest, o);
        other.count = __shfl_down_sync(~0u, own.count, o);
        own.merge(other);
    }
    if (thread % 32 == 0) parts[thread / 32] = own;
    __syncthreads();
    if (thread > 0) return;
    for (int w = 1; w < count / 32; ++w)
        own.merge(parts[w]);
    if (own.count == 0) return;
    atomicMin(&r.lowest, own.low);
    atomicMax(&r.highest, own.high);
    atomicMax(&r.steepest, own.steepest);
    atomicAdd(&r.valid, static_cast<unsigned long long>(own.count));
}

__global__ void range_kernel(Planes planes, const uint8_t* __restrict__ valid,
                             const double* __restrict__ squared, Core core, RangeSums* sums) {
    __shared__ RangePart parts[threads / 32];
    const size_t plane = static_cast<size_t>(blockIdx.y) * planes.pixels();
    RangePart own;
    for (int y = static_cast<int>(blockIdx.x); y < core.h; y += static_cast<int>(gridDim.x))
        for (int x = static_cast<int>(threadIdx.x); x < core.w; x += threads) {
            const size_t p = static_cast<size_t>(core.y + y) * planes.samples + core.x + x;
            if (valid[p]) own.add(planes.x[plane + p], squared[plane + p]);
        }
    add_range(own, parts, static_cast<int>(threadIdx.x), threads, sums[blockIdx.y]);
}

// For small radii, one kernel computes Gaussian, Scharr gradient and range. A block walks down a strip of 126
// samples, one line per step. Every thread keeps in registers the filtered lines of its column, and three
// smooth lines of its column and its neighbours.
constexpr int strip_threads = 128, strip_samples = strip_threads - 2, most_fused_radius = 6;

template <int radius, bool masked>
__device__ __forceinline__ void
walk(const Planes& planes, const uint8_t* __restrict__ valid, const double* __restrict__ weights,
     double* __restrict__ squared, const Core& core, bool sums, int first, int last, RangePart& own,
     float (&raw)[2][strip_threads + 2 * most_fused_radius],
     float (&mask)[2][strip_threads + 2 * most_fused_radius], double (&smooth)[2][strip_threads]) {
    constexpr int taps = 2 * radius + 1;
    const int t = static_cast<int>(threadIdx.x);
    const int x = static_cast<int>(blockIdx.x) * strip_samples - 1 + t; // sample of this thread's column
    const size_t plane = static_cast<size_t>(blockIdx.z) * planes.pixels();
    const float* const in = planes.x + plane;
    const bool puts_out = t > 0 && t < strip_threads - 1 && x < planes.samples;
    double w[radius + 1];
#pragma unroll
    for (int k = 0; k <= radius; ++k)
        w[k] = weights[k];
    // raw[..][i] is sample x - radius of thread i. The first threads also load the last samples of the line.
    const int near = mirrored(x - radius, planes.samples),
              far = mirrored(x - radius + strip_threads, planes.samples);
    float value = 0, value_far = 0, ok = 1, ok_far = 1;
    const auto fetch = [&](int y) {
        const size_t line = static_cast<size_t>(mirrored(y, planes.lines)) * planes.samples;
        value = in[line + near];
        if (t < 2 * radius) value_far = in[line + far];
        if constexpr (masked) {
            ok = valid[line + near] ? 1.0f : 0.0f;
            value = ok != 0 ? value : 0.0f;
            if (t < 2 * radius) {
                ok_far = valid[line + far] ? 1.0f : 0.0f;
                value_far = ok_far != 0 ? value_far : 0.0f;
            }
        }
    };
    const auto store = [&](int half) {
        raw[half][t] = value;
        if (t < 2 * radius) raw[half][strip_threads + t] = value_far;
        if constexpr (masked) {
            mask[half][t] = ok;
            if (t < 2 * radius) mask[half][strip_threads + t] = ok_far;
        }
    };
    const auto along = [&](const float* line) { // filters along the line, around this thread's column
        const float* const at = line + t + radius;
        double sum = w[0] * static_cast<double>(at[0]);
#pragma unroll
        for (int k = 1; k <= radius; ++k)
            sum = sum + w[k] * (static_cast<double>(at[-k]) + static_cast<double>(at[k]));
        return sum;
    };
    const auto across = [&](const double(&line)[taps]) {
        double sum = w[0] * line[radius];
#pragma unroll
        for (int k = 1; k <= radius; ++k)
            sum = sum + w[k] * (line[radius - k] + line[radius + k]);
        return sum;
    };
    double plain = 0; // The Gaussian of a plane of ones, computed with the same operations as the data.
    if constexpr (!masked) {
        double ones[taps];
        double line = w[0] * 1.0;
#pragma unroll
        for (int k = 1; k <= radius; ++k)
            line = line + w[k] * (1.0 + 1.0);
#pragma unroll
        for (int k = 0; k < taps; ++k)
            ones[k] = line;
        plain = across(ones);
    }

    double filtered[taps], weight[masked ? taps : 1];
    double u[3][3] = {}; // smooth lines y - 1, y, y + 1 of samples x - 1, x, x + 1
    bool here[3][3] = {};
    const int begin = first - 1 - radius,
              end = last + radius; // first input line, and the line after the last
    fetch(begin);
    store(begin & 1);
    fetch(begin + 1);
    __syncthreads();
    for (int y = begin; y <= end; ++y) {
        store((y + 1) & 1);
        if (y + 2 <= end) fetch(y + 2);
#pragma unroll
        for (int k = 0; k + 1 < taps; ++k) {
            filtered[k] = filtered[k + 1];
            if constexpr (masked) weight[k] = weight[k + 1];
        }
        filtered[taps - 1] = along(raw[y & 1]);
        if constexpr (masked) weight[taps - 1] = along(mask[y & 1]);
        const int centre = y - radius; // line that becomes smooth in this step
        if (centre >= first - 1) {
            double s = 0;
            if constexpr (masked) {
                const size_t p = static_cast<size_t>(mirrored(centre, planes.lines)) * planes.samples +
                                 mirrored(x, planes.samples);
                // Negative zero marks an invalid value.
                s = valid[p] ? across(filtered) / across(weight) + 0.0 : -0.0;
            } else {
                s = across(filtered) / plain;
            }
            smooth[y & 1][t] = s;
        }
        __syncthreads();
        if (centre < first - 1) continue;
#pragma unroll
        for (int k = 0; k < 3; ++k) {
            u[0][k] = u[1][k], u[1][k] = u[2][k];
            here[0][k] = here[1][k], here[1][k] = here[2][k];
            // The image is mirrored at its border, so the line above the first line equals the first line,
            // and its left neighbour exists.
            u[2][k] = smooth[y & 1][min(max(t - 1 + k, 0), strip_threads - 1)];
            here[2][k] = !masked || __double_as_longlong(u[2][k]) != static_cast<long long>(1ull << 63);
        }
        const int line = centre - 1;
        if (line < first || !puts_out) continue;
        const double m = u[1][1];
        const auto tap = [&](int j, int i) { return here[j][i] ? u[j][i] : m; };
        const double ul = tap(0, 0), up = tap(0, 1), ur = tap(0, 2), l = tap(1, 0), r = tap(1, 2),
                     dl = tap(2, 0), d = tap(2, 1), dr = tap(2, 2);
        const double gx = (3.0 * ((ur - ul) + (dr - dl)) + 10.0 * (r - l)) * 0.03125;
        const double gy = (3.0 * ((dl - ul) + (dr - ur)) + 10.0 * (d - up)) * 0.03125;
        const double g = gx * gx + gy * gy;
        const size_t p = static_cast<size_t>(line) * planes.samples + x;
        squared[plane + p] = g;
        if (sums && x >= core.x && line >= core.y && x < core.x + core.w && line < core.y + core.h &&
            here[1][1])
            own.add(in[p], g);
    }
}

/// Returns the number of blocks that fit into the registers of a multiprocessor.
constexpr int gradient_blocks(int radius) { return radius <= 3 ? 5 : 4; }

template <int radius>
__global__ void __launch_bounds__(strip_threads, gradient_blocks(radius))
    gradient_kernel(Planes planes, const uint8_t* __restrict__ valid, const double* __restrict__ weights,
                    int lines, double* __restrict__ squared, Core core, RangeSums* sums) {
    __shared__ float raw[2][strip_threads + 2 * most_fused_radius],
        mask[2][strip_threads + 2 * most_fused_radius];
    __shared__ double smooth[2][strip_threads];
    __shared__ RangePart parts[strip_threads / 32];
    const int first = static_cast<int>(blockIdx.y) * lines, last = min(first + lines, planes.lines);
    const int t = static_cast<int>(threadIdx.x),
              x0 = static_cast<int>(blockIdx.x) * strip_samples - 1 - radius;
    bool all = true; // true if all pixels that the block reads are valid
#pragma unroll 4
    for (int y = max(0, first - 1 - radius); y < min(planes.lines, last + 1 + radius); ++y)
        for (int i = t; i < strip_threads + 2 * radius; i += strip_threads)
            all =
                all &&
                valid[static_cast<size_t>(y) * planes.samples + min(max(x0 + i, 0), planes.samples - 1)] != 0;
    RangePart own;
    if (__syncthreads_and(all))
        walk<radius, false>(planes, valid, weights, squared, core, sums != nullptr, first, last, own, raw,
                            mask, smooth);
    else
        walk<radius, true>(planes, valid, weights, squared, core, sums != nullptr, first, last, own, raw,
                           mask, smooth);
    if (sums) add_range(own, parts, t, strip_threads, sums[blockIdx.z]);
}

__global__ void clear_kernel(RangeSums* sums, int components) {
    const int c = static_cast<int>(threadIdx.x + blockIdx.x * blockDim.x);
    if (c < components) sums[c] = RangeSums{0, 0xffffffffu, 0, 0};
}

dim3 plane_grid(const Planes& planes, int components) {
    return dim3(blocks_for(static_cast<size_t>(planes.samples)), static_cast<unsigned>(planes.lines),
                static_cast<unsigned>(components));
}

} // namespace

Range range_of(const RangeSums& sums) {
    const auto decoded = [](unsigned bits) { // inverts encode_ordered()
        const unsigned raw = bits & 0x80000000u ? bits & 0x7fffffffu : ~bits;
        float v = 0;
        std::memcpy(&v, &raw, sizeof v);
        return v;
    };
    Range r;
    r.valid = static_cast<int64_t>(sums.valid);
    if (sums.valid == 0) return r;
    double squared = 0;
    static_assert(sizeof squared == sizeof sums.steepest);
    std::memcpy(&squared, &sums.steepest, sizeof squared);
    r.lowest = decoded(sums.lowest);
    r.highest = decoded(sums.highest);
    r.steepest = std::sqrt(squared);
    return r;
}

void launch_mask(const Planes& planes, bool zero_is_invalid, uint8_t* valid, cudaStream_t stream) {
    mask_kernel<<<blocks_for(planes.pixels()), threads, 0, stream>>>(planes.x, planes.components,
                                                                     planes.pixels(), zero_is_invalid, valid);
    HSI_CUDA_LAUNCHED("mask_kernel");
}

void launch_gradient(const Planes& planes, const uint8_t* valid, const GradientWork& work, double* squared,
                     Core core, RangeSums* sums, cudaStream_t stream) {
    if (work.radius <= most_fused_radius) {
        constexpr void (*kernels[])(Planes, const uint8_t*, const double*, int, double*, Core, RangeSums*) = {
            gradient_kernel<0>, gradient_kernel<1>, gradient_kernel<2>, gradient_kernel<3>,
            gradient_kernel<4>, gradient_kernel<5>, gradient_kernel<6>};
        const int strips = (planes.samples + strip_samples - 1) / strip_samples;
        int device = 0;
        HSI_CUDA_CHECK(cudaGetDevice(&device));
        // If possible, all parts run at the same time. Otherwise, parts are long enough that the extra lines
        // above and below them cost little.
        const int at_once = multiprocessors_of(device) * gradient_blocks(work.radius);
        const int parts = std::max(1, at_once / (strips * planes.components));
        const int lines = std::clamp((planes.lines + parts - 1) / parts, 24, 96);
        const dim3 grid(static_cast<unsigned>(strips),
                        static_cast<unsigned>((planes.lines + lines - 1) / lines),
                        static_cast<unsigned>(planes.components));
        kernels[work.radius]<<<grid, strip_threads, 0, stream>>>(planes, valid, work.weights, lines, squared,
                                                                 core, sums);
        HSI_CUDA_LAUNCHED("gradient_kernel");
        return;
    }
    gaussian_rows<<<plane_grid(planes, planes.components + 1), threads, 0, stream>>>(planes, valid, work);
    HSI_CUDA_LAUNCHED("gaussian_rows");
    gaussian_columns<<<plane_grid(planes, 1), threads, 0, stream>>>(planes, valid, work, true);
    HSI_CUDA_LAUNCHED("gaussian_columns");
    gaussian_columns<<<plane_grid(planes, planes.components), threads, 0, stream>>>(planes, valid, work,
                                                                                    false);
    HSI_CUDA_LAUNCHED("gaussian_columns");
    scharr_kernel<<<plane_grid(planes, planes.components), threads, 0, stream>>>(planes, valid, work.smooth,
                                                                                 squared);
    HSI_CUDA_LAUNCHED("scharr_kernel");
    if (sums) launch_range(planes, valid, squared, core, sums, stream);
}

bool gradient_needs_planes(int radius) { return radius > most_fused_radius; }

void clear_ranges(RangeSums* sums, int components, cudaStream_t stream) {
    clear_kernel<<<blocks_for(static_cast<size_t>(components)), threads, 0, stream>>>(sums, components);
    HSI_CUDA_LAUNCHED("clear_kernel");
}

void launch_range(const Planes& planes, const uint8_t* valid, const double* squared, Core core,
                  RangeSums* sums, cudaStream_t stream) {
    range_kernel<<<scan_grid(core, planes.components), threads, 0, stream>>>(planes, valid, squared, core,
                                                                             sums);
    HSI_CUDA_LAUNCHED("range_kernel");
}

} // namespace hsi::eadp::gpu
