// SPDX-License-Identifier: MIT
// Compiled with -fmad=false: operations are fused only where the source says fma.
#include "cuda/check.h"
#include "cuda/device.h"
#include "eadp/eadp_cuda_kernels.cuh"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace hsi::eadp::gpu {
namespace {

constexpr int threads = 256;

unsigned blocks_for(size_t n) { return static_cast<unsigned>((n + threads - 1) / threads); }

int multiprocessors_of(int ordinal) {
    int n = 0;
    HSI_CUDA_CHECK(cudaDeviceGetAttribute(&n, cudaDevAttrMultiProcessorCount, ordinal));
    return n;
}

/// Half-sample symmetric.
__device__ int mirrored(int i, int n) {
    while (i < 0 || i >= n)
        i = i < 0 ? -1 - i : 2 * n - 1 - i;
    return i;
}

__global__ void mask_kernel(const float* x, int components, size_t pixels, bool zero_is_invalid,
                            uint8_t* valid) {
    const size_t p = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (p >= pixels) return;
    bool finite = true, nonzero = false;
    for (int c = 0; c < components; ++c) {
        const float v = x[static_cast<size_t>(c) * pixels + p];
        finite = finite && isfinite(v);
        nonzero = nonzero || v != 0;
    }
    valid[p] = finite && (nonzero || !zero_is_invalid);
}

// gridDim.z = components + 1; the last one filters the mask.
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

/// Floats as unsigned numbers of the same order.
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
            static_cast<unsigned long long>(__double_as_longlong(squared)); // >= 0: bits are ordered
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

/// Adds what the threads of a block have; `parts` is shared memory, one a warp.
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

// Gaussian, Scharr and range at once for small radii: a block walks down a strip of 126 samples, a line a
// step. Every thread keeps the filtered lines of its column, and three smooth lines of its neighbours, in
// registers.
constexpr int strip_threads = 128, strip_samples = strip_threads - 2, most_fused_radius = 6;

template <int radius, bool masked>
__device__ __forceinline__ void
walk(const Planes& planes, const uint8_t* __restrict__ valid, const double* __restrict__ weights,
     double* __restrict__ squared, const Core& core, bool sums, int first, int last, RangePart& own,
     float (&raw)[2][strip_threads + 2 * most_fused_radius],
     float (&mask)[2][strip_threads + 2 * most_fused_radius], double (&smooth)[2][strip_threads]) {
    constexpr int taps = 2 * radius + 1;
    const int t = static_cast<int>(threadIdx.x);
    const int x = static_cast<int>(blockIdx.x) * strip_samples - 1 + t; // of this thread's column
    const size_t plane = static_cast<size_t>(blockIdx.z) * planes.pixels();
    const float* const in = planes.x + plane;
    const bool puts_out = t > 0 && t < strip_threads - 1 && x < planes.samples;
    double w[radius + 1];
#pragma unroll
    for (int k = 0; k <= radius; ++k)
        w[k] = weights[k];
    // raw[..][i] is sample x - radius of thread i; the first threads fetch the last ones.
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
    const auto along = [&](const float* line) { // the filter along the line, around this thread's column
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
    double plain = 0; // what the Gaussian of ones is, by the same operations
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
              end = last + radius; // lines that come in; `last` is beyond the part
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
        const int centre = y - radius; // the line that is smooth now
        if (centre >= first - 1) {
            double s = 0;
            if constexpr (masked) {
                const size_t p = static_cast<size_t>(mirrored(centre, planes.lines)) * planes.samples +
                                 mirrored(x, planes.samples);
                // Negative zero says that there is no value.
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
            // The border is mirrored, so the line above the first is the first, and there is one to the left.
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

/// Blocks that a multiprocessor has registers for.
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
    bool all = true; // pixels that this block looks at are valid
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

__global__ void steepest_kernel(const RangeSums* sums, int components, double* steepest) {
    const int c = static_cast<int>(threadIdx.x + blockIdx.x * blockDim.x);
    if (c < components) steepest[c] = sqrt(__longlong_as_double(static_cast<long long>(sums[c].steepest)));
}

__global__ void histogram_kernel(Planes planes, const uint8_t* __restrict__ valid,
                                 const double* __restrict__ squared, Core core,
                                 const double* __restrict__ steepest, unsigned long long* counts) {
    constexpr int copies =
        threads / 32; // most gradients are small: warps must not wait for one another's bins
    __shared__ unsigned local[copies * histogram_bins];
    const int t = static_cast<int>(threadIdx.x);
    for (int i = t; i < copies * histogram_bins; i += threads)
        local[i] = 0;
    __syncthreads();
    const double top = steepest[blockIdx.y];
    const size_t plane = static_cast<size_t>(blockIdx.y) * planes.pixels();
    unsigned* const mine = local + t / 32 * histogram_bins;
    if (top > 0)
        for (int y = static_cast<int>(blockIdx.x); y < core.h; y += static_cast<int>(gridDim.x))
            for (int x = t; x < core.w; x += threads) {
                const size_t p = static_cast<size_t>(core.y + y) * planes.samples + core.x + x;
                const double s = squared[plane + p];
                if (!valid[p] || !(s > 0)) continue;
                atomicAdd(&mine[min(histogram_bins - 1, static_cast<int>(histogram_bins * sqrt(s) / top))],
                          1u);
            }
    __syncthreads();
    for (int i = t; i < histogram_bins; i += threads) {
        unsigned sum = 0;
        for (int w = 0; w < copies; ++w)
            sum += local[w * histogram_bins + i];
        if (sum)
            atomicAdd(&counts[static_cast<size_t>(blockIdx.y) * histogram_bins + i],
                      static_cast<unsigned long long>(sum));
    }
}

__device__ float decode_on_device(unsigned bits) {
    return __uint_as_float(bits & 0x80000000u ? bits & 0x7fffffffu : ~bits);
}

// One warp a component; the running count in integers.
__global__ void contrast_kernel(const RangeSums* sums, const double* steepest,
                                const unsigned long long* counts, long long share, double* k, float* level) {
    const int c = static_cast<int>(blockIdx.x), lane = static_cast<int>(threadIdx.x);
    const unsigned long long* const h = counts + static_cast<size_t>(c) * histogram_bins;
    unsigned long long before = 0, total = 0;
    for (int i = lane; i < histogram_bins; i += 32)
        total += h[i];
    for (int o = 16; o > 0; o /= 2)
        total += __shfl_xor_sync(~0u, total, o);
    int found = -1;
    for (int base = 0; base < histogram_bins && found < 0; base += 32) {
        unsigned long long v = base + lane < histogram_bins ? h[base + lane] : 0;
        for (int o = 1; o < 32; o *= 2) {
            const auto other = __shfl_up_sync(~0u, v, o);
            if (lane >= o) v += other;
        }
        const unsigned long long count = before + v;
        // 1e6 count >= share total fits 64 bits for fewer than 1.8e13 pixels.
        const unsigned hit =
            __ballot_sync(~0u, 1000000ull * count >= static_cast<unsigned long long>(share) * total);
        if (hit) found = base + __ffs(static_cast<int>(hit)) - 1;
        before += __shfl_sync(~0u, v, 31);
    }
    if (lane == 0) {
        const double top = steepest[c];
        k[c] = total > 0 && top > 0 ? top * (min(found, histogram_bins - 1) + 1) / histogram_bins : 0.0;
        level[c] = sums[c].valid > 0
                       ? 0.5f * decode_on_device(sums[c].lowest) + 0.5f * decode_on_device(sums[c].highest)
                       : 0.0f;
    }
}

__device__ double diffusivity(double squared, double k, Diffusivity kind) {
    if (!(k > 0)) return 1.0;
    const double k2 = k * k;
    if (kind == Diffusivity::g2) return k2 / (k2 + squared);
    const double q = squared / k2;
    if (kind == Diffusivity::g1) return exp(-q);
    const double q4 = (q * q) * (q * q);
    return q4 > 0 ? 1.0 - exp(-3.31488 / q4) : 1.0;
}

constexpr int weights_w = 64, weights_h = 16;

template <class T>
__global__ void __launch_bounds__(threads)
    weights_kernel(Planes planes, const uint8_t* __restrict__ valid, const double* __restrict__ squared,
                   const double* __restrict__ contrast, const float* __restrict__ level, Diffusivity kind,
                   T* __restrict__ start, T* __restrict__ east, T* __restrict__ south) {
    constexpr int wide = weights_w + 1, all = wide * (weights_h + 1), rounds = (all + threads - 1) / threads;
    __shared__ double g[all]; // negative where there is no flux
    const int t = static_cast<int>(threadIdx.x), c = static_cast<int>(blockIdx.z);
    const int x0 = static_cast<int>(blockIdx.x) * weights_w, y0 = static_cast<int>(blockIdx.y) * weights_h;
    const size_t plane = static_cast<size_t>(c) * planes.pixels();
    const double k = contrast[c];
    double s[rounds]; // all loads before the first division
#pragma unroll
    for (int round = 0; round < rounds; ++round) {
        const int at = round * threads + t, x = x0 + at % wide, y = y0 + at / wide;
        s[round] = -1;
        if (at < all && x < planes.samples && y < planes.lines) {
            const size_t p = static_cast<size_t>(y) * planes.samples + x;
            const double there = squared[plane + p];
            if (valid[p]) s[round] = there;
        }
    }
    const T base = static_cast<T>(level[c]);
    const int pitch = padded(planes.samples);
    constexpr int lines_each = weights_w * weights_h / threads;
    const int i = t % weights_w, j = t / weights_w * lines_each, x = x0 + i;
    float value[lines_each];
#pragma unroll
    for (int r = 0; r < lines_each; ++r)
        value[r] = x < planes.samples && y0 + j + r < planes.lines
                       ? planes.x[plane + static_cast<size_t>(y0 + j + r) * planes.samples + x]
                       : 0.0f;
#pragma unroll
    for (int round = 0; round < rounds; ++round) {
        const int at = round * threads + t;
        if (at < all) g[at] = s[round] >= 0 ? diffusivity(s[round], k, kind) : -2.0;
    }
    __syncthreads();
    if (x >= pitch) return;
    double own = g[j * wide + i];
#pragma unroll
    for (int r = 0; r < lines_each; ++r) {
        const int y = y0 + j + r;
        if (y >= planes.lines) return;
        const double* const at = g + (j + r) * wide + i;
        const double below = at[wide];
        const size_t p = (static_cast<size_t>(c) * planes.lines + y) * pitch + x;
        start[p] = own >= 0 ? static_cast<T>(value[r]) - base : T(0); // zeros behind the last sample
        east[p] = static_cast<T>(tau_max * fmax(0.0, own + at[1]));
        south[p] = static_cast<T>(tau_max * fmax(0.0, own + below));
        own = below;
    }
}

dim3 plane_grid(const Planes& planes, int components) {
    return dim3(blocks_for(static_cast<size_t>(planes.samples)), static_cast<unsigned>(planes.lines),
                static_cast<unsigned>(components));
}

} // namespace

float decode_ordered(unsigned bits) {
    const unsigned raw = bits & 0x80000000u ? bits & 0x7fffffffu : ~bits;
    float v = 0;
    std::memcpy(&v, &raw, sizeof v);
    return v;
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
        // All parts at once where they can be; else long enough that the lines above and below weigh little.
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

namespace {
dim3 scan_grid(Core core, int components) {
    return dim3(static_cast<unsigned>(std::clamp(core.h, 1, 264)), static_cast<unsigned>(components));
}
} // namespace

void launch_range(const Planes& planes, const uint8_t* valid, const double* squared, Core core,
                  RangeSums* sums, cudaStream_t stream) {
    range_kernel<<<scan_grid(core, planes.components), threads, 0, stream>>>(planes, valid, squared, core,
                                                                             sums);
    HSI_CUDA_LAUNCHED("range_kernel");
}

void launch_steepest(const RangeSums* sums, int components, double* steepest, cudaStream_t stream) {
    steepest_kernel<<<blocks_for(static_cast<size_t>(components)), threads, 0, stream>>>(sums, components,
                                                                                         steepest);
    HSI_CUDA_LAUNCHED("steepest_kernel");
}

void launch_histogram(const Planes& planes, const uint8_t* valid, const double* squared, Core core,
                      const double* steepest, unsigned long long* counts, cudaStream_t stream) {
    histogram_kernel<<<scan_grid(core, planes.components), threads, 0, stream>>>(planes, valid, squared, core,
                                                                                 steepest, counts);
    HSI_CUDA_LAUNCHED("histogram_kernel");
}

void launch_contrast(const RangeSums* sums, const double* steepest, const unsigned long long* counts,
                     int components, double percentile, double* k, float* level, cudaStream_t stream) {
    contrast_kernel<<<static_cast<unsigned>(components), 32, 0, stream>>>(
        sums, steepest, counts, std::llround(percentile * 1e6), k, level);
    HSI_CUDA_LAUNCHED("contrast_kernel");
}

template <class T>
void launch_weights(const Planes& planes, const uint8_t* valid, const double* squared, const double* k,
                    const float* level, Diffusivity kind, T* start, T* east, T* south, cudaStream_t stream) {
    const dim3 grid(static_cast<unsigned>((padded(planes.samples) + weights_w - 1) / weights_w),
                    static_cast<unsigned>((planes.lines + weights_h - 1) / weights_h),
                    static_cast<unsigned>(planes.components));
    weights_kernel<T>
        <<<grid, threads, 0, stream>>>(planes, valid, squared, k, level, kind, start, east, south);
    HSI_CUDA_LAUNCHED("weights_kernel");
}
template void launch_weights<float>(const Planes&, const uint8_t*, const double*, const double*, const float*,
                                    Diffusivity, float*, float*, float*, cudaStream_t);
template void launch_weights<double>(const Planes&, const uint8_t*, const double*, const double*,
                                     const float*, Diffusivity, double*, double*, double*, cudaStream_t);

// --- the recurrence
// ---------------------------------------------------------------------------------------------------

namespace {

constexpr int group_sweeps = 4; ///< sweeps between two exchanges; also the width of the halo
constexpr int batch_copies = 8; ///< copies whose sums fit in shared memory
constexpr int warp_rows = 4;    ///< lines of a warp; a lane has 4 samples of each
constexpr int most_warps = 12;  ///< of a block, three a scheduler; the last one has the halo's lines
constexpr int core_samples = 120, most_core_lines = (most_warps - 1) * warp_rows; ///< of tiles of 128 x 52
constexpr int most_threads = 32 * most_warps;
constexpr size_t edge_vectors = (most_warps + 1) * 64;  ///< first and last line of every warp
constexpr size_t term_vectors = 2 * (batch_copies + 1); ///< coefficients and mask of this group and the next
constexpr size_t side_vectors =
    (most_warps - 1) * 16;                   ///< two sides of a warp's lines: 4 samples of Y_k, of Y_{k-1}
constexpr size_t shared_of(int core_lines) { ///< Place, terms, sides, edges for even and odd sweeps, sums
    return (3 + term_vectors + side_vectors + 3 * edge_vectors) * sizeof(float4) +
           static_cast<size_t>(batch_copies * core_lines * 128) * sizeof(float);
}
/// What a block publishes, two samples and their tags a word: the core's first and last four lines as
/// [first, last][line][Y_k, Y_{k-1} x two halves of 4 samples][lane], then the core's first and last four
/// samples of every line as [first, last][line][Y_k, Y_{k-1} x two halves].
constexpr size_t exchange_lines = 2 * warp_rows * 4 * 32;
constexpr size_t exchange_words = exchange_lines + 2 * most_core_lines * 4;

/// A window that a team of across x down blocks works through, and what of it is put out.
struct Window {
    int component;
    int x, y; ///< of its first pixel, in the planes
    int out_x, out_y, out_w, out_h;
};

struct PersistentWork {
    StageWork<float> stage;
    int across, down; ///< blocks of a team
    int teams;
    int core_lines; ///< of a block
    int windows_across, windows_down;
    int step_x, step_y; ///< of windows, in planes
    int halo;
    const float* coefficients;
    const int* masks;
    int groups, first_copy, copies;
    bool write_next;
    Core output;     ///< core, or the region of `next`
    uint4* exchange; ///< [team][block][half][exchange_words]
    unsigned epoch;  ///< the last one of earlier launches
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800

/// Two samples, each beside the epoch that it belongs to: whoever reads the right tags has the right samples,
/// without a fence or a flag. (8 bytes of an aligned access arrive together.)
__device__ __forceinline__ void publish(uint4* to, float a, float b, unsigned epoch) {
    asm volatile("st.relaxed.gpu.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(__float_as_uint(a)),
                 "r"(epoch), "r"(__float_as_uint(b)), "r"(epoch)
                 : "memory");
}
__device__ __forceinline__ uint4 observe(const uint4* from) {
    uint4 v;
    asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(from)
                 : "memory");
    return v;
}

/// __syncthreads() from two places: terms and sides are written anew behind it.
__device__ __forceinline__ void block_barrier() { asm volatile("bar.sync 0;" ::: "memory"); }

/// A barrier of the block's warps in two halves, so that a warp works between its arrival and its wait.
__device__ __forceinline__ void barrier_init(unsigned barrier, int arrivals) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
/// By every thread: what it wrote before is seen by whoever waits. (One lane for its warp would do, behind
/// __syncwarp(), but compute-sanitizer does not see that, and it is no faster.)
__device__ __forceinline__ void barrier_arrive(unsigned barrier) {
    __syncwarp(); // together, so that it is one instruction
    asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ void barrier_wait(unsigned barrier, unsigned parity) {
    unsigned done = 0;
    do {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
        asm volatile(
            "{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
            : "=r"(done)
            : "r"(barrier), "r"(parity)
            : "memory");
#else
        asm volatile(
            "{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
            : "=r"(done)
            : "r"(barrier), "r"(parity)
            : "memory");
#endif
    } while (!done);
}

using Pixels = float[warp_rows][4];

__device__ __forceinline__ void add_terms(float& sum, float4 a, float y0, float y1, float y2, float y3) {
    sum = fmaf(a.w, y3, fmaf(a.z, y2, fmaf(a.y, y1, fmaf(a.x, y0, sum))));
}

/// Weights of four lines of a warp.
struct Strip {
    Pixels east, south;    ///< of the edges to the right and below
    float west[warp_rows]; ///< of the edge to the left of the lane's first sample
    float north[4];        ///< of the edge above the first line
};

// A sweep is out = 2 cur - prev + flux (the first one of all: cur + flux / 2). The operations and their order
// are the same for every pixel, wherever it lies in the tile; a difference has the same bits from both sides.

__device__ __forceinline__ void add_north(Pixels& flux, const Strip& s, int r, int i, float d) {
    flux[r][i] = fmaf(-(r > 0 ? s.south[r > 0 ? r - 1 : 0][i] : s.north[i]), d, flux[r][i]);
}
__device__ __forceinline__ void add_south(Pixels& flux, const Strip& s, int r, int i, float d) {
    flux[r][i] = fmaf(s.south[r][i], d, flux[r][i]);
}
template <bool first>
__device__ __forceinline__ void finish(const Pixels& flux, const Pixels& prev, const Pixels& cur, Pixels& out,
                                       int r, int i) {
    out[r][i] = first ? fmaf(0.5f, flux[r][i], cur[r][i]) : fmaf(2.0f, cur[r][i], -prev[r][i]) + flux[r][i];
}

/// Of lines lo..hi all that needs no other warp; complete where that is all. `out` may be prev.
template <bool first, int lo, int hi>
__device__ __forceinline__ void sweep_inside(const Pixels& prev, const Pixels& cur, Pixels& flux, Pixels& out,
                                             const Strip& s) {
#pragma unroll
    for (int r = lo; r <= hi; ++r) {
        const float left = __shfl_up_sync(~0u, cur[r][3], 1), right = __shfl_down_sync(~0u, cur[r][0], 1);
        float d[5];
        d[0] = cur[r][0] - left;
#pragma unroll
        for (int i = 1; i < 4; ++i)
            d[i] = cur[r][i] - cur[r][i - 1];
        d[4] = right - cur[r][3];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            flux[r][i] = s.east[r][i] * d[i + 1];
            flux[r][i] = fmaf(-(i > 0 ? s.east[r][i > 0 ? i - 1 : 0] : s.west[r]), d[i], flux[r][i]);
        }
    }
    // Within a pixel north comes before south.
#pragma unroll
    for (int r = lo > 0 ? lo - 1 : 0; r <= hi && r + 1 < warp_rows; ++r)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float d = cur[r + 1][i] - cur[r][i];
            if (r >= lo && r > 0) {
                add_south(flux, s, r, i, d);
                finish<first>(flux, prev, cur, out, r, i);
            }
            if (r + 1 <= hi) add_north(flux, s, r + 1, i, d);
        }
}
/// The first line, when the one above it is there.
template <bool first>
__device__ __forceinline__ void sweep_first(const Pixels& prev, const Pixels& cur, Pixels& flux, Pixels& out,
                                            const Strip& s, float4 above) {
    const float v[4] = {above.x, above.y, above.z, above.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        add_north(flux, s, 0, i, cur[0][i] - v[i]);
        add_south(flux, s, 0, i, cur[1][i] - cur[0][i]);
        finish<first>(flux, prev, cur, out, 0, i);
    }
}
/// The last line, when the one below it is there.
template <bool first>
__device__ __forceinline__ void sweep_last(const Pixels& prev, const Pixels& cur, Pixels& flux, Pixels& out,
                                           const Strip& s, float4 below) {
    const float v[4] = {below.x, below.y, below.z, below.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        add_south(flux, s, warp_rows - 1, i, v[i] - cur[warp_rows - 1][i]);
        finish<first>(flux, prev, cur, out, warp_rows - 1, i);
    }
}
__device__ __forceinline__ float4 line_of(const Pixels& p, int r) {
    return make_float4(p[r][0], p[r][1], p[r][2], p[r][3]);
}

/// From a warp's first line in the edges to its lanes' Strip::west and, 32 further, Strip::north, which the
/// core keeps in shared memory.
constexpr int west_of_edges = 2 * static_cast<int>(edge_vectors), north_of_edges = west_of_edges + 32;

// The block's barrier of sweeps has four phases a group, so its parity is that of the sweep in the group.

/// One sweep of a warp of the core. `edges`: this warp's first line, the last one 32 further; those for even
/// and odd sweeps differ, so that one barrier a sweep is enough.
template <bool first, int number>
__device__ __forceinline__ void sweep_core(const Pixels& prev, const Pixels& cur, Pixels& out, const Strip& s,
                                           unsigned barrier, float4* edges) {
    Strip strip = s;
    const float4 w = edges[west_of_edges];
    strip.west[0] = w.x, strip.west[1] = w.y, strip.west[2] = w.z, strip.west[3] = w.w;
    float4* const shown = edges + number % 2 * edge_vectors;
    shown[0] = line_of(cur, 0);
    shown[32] = line_of(cur, warp_rows - 1);
    barrier_arrive(barrier);
    Pixels flux;
    sweep_inside<first, 0, warp_rows - 1>(prev, cur, flux, out, strip);
    barrier_wait(barrier, number % 2);
    const float4 n = edges[north_of_edges];
    strip.north[0] = n.x, strip.north[1] = n.y, strip.north[2] = n.z, strip.north[3] = n.w;
    sweep_first<first>(prev, cur, flux, out, strip, shown[-32]);
    sweep_last<first>(prev, cur, flux, out, strip, shown[64]);
}

/// One sweep of the halo's warp, in place: of the last 3 - number of four lines above the core and the first
/// ones below it.
template <bool first, int number>
__device__ __forceinline__ void sweep_halo(Pixels (&prev)[2], const Pixels (&cur)[2], const Strip (&s)[2],
                                           unsigned barrier, float4* above, float4* below) {
    constexpr int count = group_sweeps - 1 - number;
    above += number % 2 * edge_vectors;
    below += number % 2 * edge_vectors;
    above[0] = line_of(cur[0], warp_rows - 1);
    below[0] = line_of(cur[1], 0);
    barrier_arrive(barrier);
    Pixels flux[2];
    sweep_inside<first, warp_rows - count, warp_rows - 1>(prev[0], cur[0], flux[0], prev[0], s[0]);
    sweep_inside<first, 0, count - 1>(prev[1], cur[1], flux[1], prev[1], s[1]);
    barrier_wait(barrier, number % 2);
    if (count == 0) return;
    sweep_last<first>(prev[0], cur[0], flux[0], prev[0], s[0], above[32]);
    sweep_first<first>(prev[1], cur[1], flux[1], prev[1], s[1], below[-32]);
}

/// Where a block is.
struct Place {
    uint64_t barrier; ///< of sweeps
    int bx, by;       ///< in the team
    int neighbours;   ///< bits to_left ... to_south
};
enum : int { to_left = 1, to_right = 2, to_north = 4, to_south = 8 };
/// The parts of shared memory, in float4.
constexpr int terms_at = 3, sides_at = terms_at + static_cast<int>(term_vectors),
              edges_at =
                  sides_at + static_cast<int>(side_vectors), ///< [even, odd][warp, with the halo's lines
                                                             ///< before and after][first, last][lane]
    sums_at = edges_at + 3 * static_cast<int>(edge_vectors); ///< [copy][line of the core][lane]
static_assert(sizeof(Place) <= terms_at * sizeof(float4));

/// The half of a block's words that belongs to an epoch.
__device__ __forceinline__ uint4* half_of(const PersistentWork& work, int block, unsigned epoch) {
    return work.exchange + (2 * block + static_cast<int>(epoch & 1)) * static_cast<int>(exchange_words);
}

__device__ Window window_of(const PersistentWork& work, int job) {
    const int windows = work.windows_across * work.windows_down;
    const int wx = job % windows % work.windows_across, wy = job % windows / work.windows_across;
    Window win;
    win.component = job / windows;
    win.out_x = work.output.x + wx * work.step_x;
    win.out_y = work.output.y + wy * work.step_y;
    win.out_w = min(work.step_x, work.output.x + work.output.w - win.out_x);
    win.out_h = min(work.step_y, work.output.y + work.output.h - win.out_y);
    win.x = max(0, win.out_x - work.halo) & ~3; // float4 by float4
    win.y = max(0, win.out_y - work.halo);
    return win;
}

/// Pixels beyond the planes are zero; x is a multiple of 4, and so is the pitch.
__device__ __forceinline__ float4 load_four(const float* plane, int pitch, int lines, int x, int y) {
    if (x < 0 || x >= pitch || y < 0 || y >= lines) return make_float4(0, 0, 0, 0);
    return __ldg(reinterpret_cast<const float4*>(plane + static_cast<size_t>(y) * pitch + x));
}
__device__ __forceinline__ void load_pixels(Pixels& to, const float* plane, int pitch, int lines, int x,
                                            int y) {
#pragma unroll
    for (int r = 0; r < warp_rows; ++r) {
        const float4 v = load_four(plane, pitch, lines, x, y + r);
        to[r][0] = v.x, to[r][1] = v.y, to[r][2] = v.z, to[r][3] = v.w;
    }
}

/// Weights and start of four lines of a warp; `line` is the core's.
__device__ __forceinline__ void load_strip(const PersistentWork& work, const Place& place, const Window& win,
                                           int lane, int line, Strip& s, Pixels& start) {
    const auto& stage = work.stage;
    const size_t plane = static_cast<size_t>(win.component) * stage.pitch * stage.lines;
    const int x = win.x + place.bx * core_samples - group_sweeps + lane * 4,
              y = win.y + place.by * work.core_lines + line;
    load_pixels(start, stage.start + plane, stage.pitch, stage.lines, x, y);
    load_pixels(s.east, stage.east + plane, stage.pitch, stage.lines, x, y);
    load_pixels(s.south, stage.south + plane, stage.pitch, stage.lines, x, y);
    const float4 v = load_four(stage.south + plane, stage.pitch, stage.lines, x, y - 1);
    s.north[0] = v.x, s.north[1] = v.y, s.north[2] = v.z, s.north[3] = v.w;
#pragma unroll
    for (int r = 0; r < warp_rows; ++r) {
        const float left = __shfl_up_sync(~0u, s.east[r][3], 1);
        s.west[r] = lane > 0 ? left : 0.0f; // the first lane's first sample is of no use anyway
    }
}

/// Coefficients of group g: a thread a copy, and one for the mask; seen after the next barrier.
__device__ __forceinline__ void fetch_terms(const PersistentWork& work, float4* terms, int g, int lane) {
    if (lane > batch_copies || g >= work.groups) return;
    float4& to = terms[(g & 1) * (batch_copies + 1) + lane];
    if (lane < batch_copies)
        to = __ldg(reinterpret_cast<const float4*>(work.coefficients + batch_copies) + g * batch_copies +
                   lane);
    else
        to.x = __int_as_float(__ldg(work.masks + g));
}

/// Which samples of a warp's lines are put out. Copies are put out 32 samples of a line at a time. Bit
/// 4 r + j: line r, sample lane + 32 j; high half: lies in the window's output, low half: has a value.
__device__ __noinline__ unsigned output_of(const PersistentWork& work, const Place& place, int job) {
    const Window win = window_of(work, job);
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const int x = win.x + place.bx * core_samples + lane,
              y = win.y + place.by * work.core_lines + warp * warp_rows;
    unsigned bits = 0;
#pragma unroll
    for (int r = 0; r < warp_rows; ++r)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int xx = x + 32 * j, yy = y + r;
            if (lane + 32 * j < core_samples && yy >= win.out_y && yy < win.out_y + win.out_h &&
                xx >= win.out_x && xx < win.out_x + win.out_w)
                bits |= (work.stage.valid[static_cast<size_t>(yy) * work.stage.samples + xx] ? 0x10001u
                                                                                             : 0x10000u)
                        << (4 * r + j);
        }
    return bits;
}

/// Puts out the copies of a warp that are complete. Seldom called: a function of its own, so that its
/// addresses take no registers from the sweeps.
__device__ __noinline__ void put_out(const PersistentWork& work, const Place& place, int job,
                                     const float* sums, int complete, unsigned bits) {
    const auto& stage = work.stage;
    const Window win = window_of(work, job);
    const Core core = stage.core; // and more local copies: stores might alias the arguments
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const int x = win.x + place.bx * core_samples + lane,
              y = win.y + place.by * work.core_lines + warp * warp_rows;
    const int copy_stride = work.core_lines * 128, pitch = stage.pitch;
    const size_t out_plane = static_cast<size_t>(core.w) * core.h;
    const float level = stage.level[win.component];
    float* const out = stage.out +
                       (static_cast<size_t>(win.component) * stage.out_bands + work.first_copy) * out_plane +
                       static_cast<ptrdiff_t>(y - core.y) * core.w + (x - core.x);
    sums += 4 + lane; // the first lane's four samples are the left neighbour's
    if (work.write_next && (complete & 1)) {
        float* const next = stage.next + (static_cast<size_t>(win.component) * stage.lines + y) * pitch + x;
#pragma unroll
        for (int r = 0; r < warp_rows; ++r)
#pragma unroll
            for (int j = 0; j < 4; ++j)
                if (bits >> (16 + 4 * r + j) & 1u) next[r * pitch + 32 * j] = sums[r * 128 + 32 * j];
    }
#pragma unroll
    for (int r = 0; r < warp_rows; ++r) // a window's output may be more than the core
#pragma unroll
        for (int j = 0; j < 4; ++j)
            if (x + 32 * j < core.x || x + 32 * j >= core.x + core.w || y + r < core.y ||
                y + r >= core.y + core.h)
                bits &= ~(0x10000u << (4 * r + j));
    while (complete) {
        const int c = __ffs(complete) - 1;
        complete &= complete - 1;
        const float* const from = sums + c * copy_stride;
        float* const to = out + c * out_plane;
        float v[warp_rows][4];
#pragma unroll
        for (int r = 0; r < warp_rows; ++r)
#pragma unroll
            for (int j = 0; j < 4; ++j) // of the last 32 there are 24 only; the others are read, not put out
                v[r][j] = from[r * 128 + (j < 3 || lane < 24 ? 32 * j : 0)];
#pragma unroll
        for (int r = 0; r < warp_rows; ++r)
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const float value = bits >> (4 * r + j) & 1u ? v[r][j] + level : nanf("");
                if (bits >> (16 + 4 * r + j) & 1u) to[r * core.w + 32 * j] = value;
            }
    }
}

/// Asks for lines of a plane that a warp will load soon.
__device__ __forceinline__ void prefetch_lines(const float* plane, int pitch, int lines, int x, int y) {
    if (x < 0 || x >= pitch) return;
#pragma unroll
    for (int r = 0; r < warp_rows; ++r)
        if (y + r >= 0 && y + r < lines)
            asm volatile("prefetch.global.L2 [%0];" ::"l"(plane + static_cast<size_t>(y + r) * pitch + x));
}

/// The warps of the core through all windows: sweeps, sums, copies put out as soon as they are complete.
__device__ __forceinline__ void core_warps(const PersistentWork& work, float4* shared, unsigned barrier) {
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const Place& place = *reinterpret_cast<const Place*>(shared);
    float4* const edges = shared + edges_at + (warp + 1) * 64 + lane;
    float4* const own_sums = shared + sums_at + warp * (warp_rows * 32) + lane;
    const int neighbours = place.neighbours, windows = work.windows_across * work.windows_down;
    unsigned epoch = work.epoch, bits = 0;
    const int first_job = static_cast<int>(blockIdx.x) / (work.across * work.down);
    // What this thread has to do with the neighbours, in one register that is not computed again and again.
    enum : int { fetches = 1, shows = 2, takes = 4, northern = 8, southern = 16 };
    int part = 0;
    if (neighbours & (lane < 16 ? to_left : to_right)) part |= fetches; // a word of a side
    if (lane == 1 || lane == 30) part |= shows;
    if (neighbours & (lane == 0 ? to_left : lane == 31 ? to_right : 0)) part |= takes;
    if (warp == 0 && neighbours & to_north) part |= northern;
    if (warp == work.core_lines / warp_rows - 1 && neighbours & to_south) part |= southern;
    asm volatile("" : "+r"(part));
    for (int job = first_job; job < windows * work.stage.components; job += work.teams) {
        Strip s;
        Pixels level0, level1, level2, level3;
        load_strip(work, place, window_of(work, job), lane, warp * warp_rows, s, level3);
        edges[west_of_edges] = make_float4(s.west[0], s.west[1], s.west[2], s.west[3]);
        edges[north_of_edges] = make_float4(s.north[0], s.north[1], s.north[2], s.north[3]);
        if (job == first_job || windows > 1) bits = output_of(work, place, job);
        for (int c = 0; c < work.copies; ++c) {
            const float a = work.coefficients[c]; // the terms of Y_0 stand first
#pragma unroll
            for (int r = 0; r < warp_rows; ++r)
                own_sums[(c * work.core_lines + r) * 32] =
                    make_float4(a * level3[r][0], a * level3[r][1], a * level3[r][2], a * level3[r][3]);
        }
        for (int g = 0; g < work.groups; ++g) {
            if (g == 0)
                sweep_core<true, 0>(level3, level3, level0, s, barrier, edges);
            else
                sweep_core<false, 0>(level2, level3, level0, s, barrier, edges);
            sweep_core<false, 1>(level3, level0, level1, s, barrier, edges);
            sweep_core<false, 2>(level0, level1, level2, s, barrier, edges);
            sweep_core<false, 3>(level1, level2, level3, s, barrier, edges);
            const bool exchanges = neighbours != 0 && g + 1 < work.groups;
            // Two words a line and level of the two sides: one for each lane.
            const int words = static_cast<int>(exchange_lines) + warp * 16 + lane % 16;
            float4* const sides = shared + sides_at + warp * 16; // [left, right][line][Y_k, Y_{k-1}]
            if (exchanges) {
                // Two halves that alternate: whoever writes a half again has its neighbours' next epoch, so
                // they are done with the last one.
                ++epoch;
                uint4* const half = half_of(work, static_cast<int>(blockIdx.x), epoch);
                for (int which = 0; which < 2; ++which)
                    if (part & (which == 0 ? northern : southern)) {
                        uint4* const to = half + which * (warp_rows * 128) + lane;
#pragma unroll
                        for (int r = 0; r < warp_rows; ++r) {
                            publish(to + r * 128, level3[r][0], level3[r][1], epoch);
                            publish(to + r * 128 + 32, level3[r][2], level3[r][3], epoch);
                            publish(to + r * 128 + 64, level2[r][0], level2[r][1], epoch);
                            publish(to + r * 128 + 96, level2[r][2], level2[r][3], epoch);
                        }
                    }
                if (part & shows) {
                    float4* const to = sides + (lane == 1 ? 0 : 8);
#pragma unroll
                    for (int r = 0; r < warp_rows; ++r) {
                        to[2 * r] = line_of(level3, r);
                        to[2 * r + 1] = line_of(level2, r);
                    }
                }
                __syncwarp();
                const float2 own = reinterpret_cast<const float2*>(sides)[lane];
                if (part & fetches)
                    publish(half + words + (lane < 16 ? 0 : most_core_lines * 4), own.x, own.y, epoch);
            }
            // The sums are added to while the neighbours' halos are on their way.
            const float4* const now = shared + terms_at + (g & 1) * (batch_copies + 1);
            const int mask = __float_as_int(now[batch_copies].x);
            uint4 found = make_uint4(0, 0, 0, 0);
            const uint4* const from =
                half_of(work, static_cast<int>(blockIdx.x) + (lane < 16 ? -1 : 1), epoch) + words +
                (lane < 16 ? most_core_lines * 4 : 0);
            unsigned live = mask & ((1 << batch_copies) - 1);
            do {
                const int c0 = __ffs(live) - 1;
                live &= live - 1;
                const int c1 = __ffs(live) - 1; // -1: none
                live &= live - 1;
                if (live == 0 && exchanges && part & fetches) found = observe(from);
                if (c0 < 0) break;
                float4* const sum0 = own_sums + c0 * work.core_lines * 32;
                float4* const sum1 = own_sums + c1 * work.core_lines * 32;
                const float4 a0 = now[c0];
                float4 v0[warp_rows];
#pragma unroll
                for (int r = 0; r < warp_rows; ++r)
                    v0[r] = sum0[r * 32];
                const auto add = [&](float4* sum, float4 a, float4(&v)[warp_rows]) {
#pragma unroll
                    for (int r = 0; r < warp_rows; ++r) {
                        add_terms(v[r].x, a, level0[r][0], level1[r][0], level2[r][0], level3[r][0]);
                        add_terms(v[r].y, a, level0[r][1], level1[r][1], level2[r][1], level3[r][1]);
                        add_terms(v[r].z, a, level0[r][2], level1[r][2], level2[r][2], level3[r][2]);
                        add_terms(v[r].w, a, level0[r][3], level1[r][3], level2[r][3], level3[r][3]);
                        sum[r * 32] = v[r];
                    }
                };
                if (c1 < 0) {
                    add(sum0, a0, v0);
                } else {
                    const float4 a1 = now[c1];
                    float4 v1[warp_rows];
#pragma unroll
                    for (int r = 0; r < warp_rows; ++r)
                        v1[r] = sum1[r * 32];
                    add(sum0, a0, v0);
                    add(sum1, a1, v1);
                }
            } while (live != 0);
            if (const int complete = mask >> batch_copies) {
                __syncwarp(); // the sums of other lanes
                put_out(work, place, job,
                        reinterpret_cast<const float*>(shared + sums_at + warp * (warp_rows * 32)), complete,
                        bits);
                __syncwarp();
            }
            if (exchanges) {
                while (part & fetches && (found.y != epoch || found.w != epoch))
                    found = observe(from);
                __syncwarp();
                reinterpret_cast<float2*>(sides)[lane] =
                    make_float2(__uint_as_float(found.x), __uint_as_float(found.z));
                __syncwarp();
                if (part & takes) {
                    const float4* const side = sides + (lane == 0 ? 0 : 8);
#pragma unroll
                    for (int r = 0; r < warp_rows; ++r) {
                        const float4 a = side[2 * r], b = side[2 * r + 1];
                        level3[r][0] = a.x, level3[r][1] = a.y, level3[r][2] = a.z, level3[r][3] = a.w;
                        level2[r][0] = b.x, level2[r][1] = b.y, level2[r][2] = b.z, level2[r][3] = b.w;
                    }
                }
                __syncwarp();
            }
            if (g == work.groups / 2 && job + work.teams < windows * work.stage.components && lane % 8 == 0) {
                const auto& stage = work.stage;
                const Window win = window_of(work, job + work.teams);
                const size_t plane = static_cast<size_t>(win.component) * stage.pitch * stage.lines;
                const int x = win.x + place.bx * core_samples + lane * 4,
                          y = win.y + place.by * work.core_lines + warp * warp_rows;
                prefetch_lines(stage.start + plane, stage.pitch, stage.lines, x, y);
                prefetch_lines(stage.east + plane, stage.pitch, stage.lines, x, y);
                prefetch_lines(stage.south + plane, stage.pitch, stage.lines, x, y);
            }
        }
        block_barrier();
    }
}

/// The halo's warp through all windows. It sweeps the lines above and below that the core still depends on,
/// fewer from sweep to sweep, and while the core adds up its sums it fetches them anew.
__device__ __forceinline__ void halo_warp(const PersistentWork& work, float4* shared, unsigned barrier) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const Place& place = *reinterpret_cast<const Place*>(shared);
    // Where the last line above and the first one below are shown.
    float4 *const above = shared + edges_at + 32 + lane, *const below =
                                                             shared + edges_at +
                                                             (work.core_lines / warp_rows + 1) * 64 + lane;
    const int neighbours = place.neighbours;
    // The same samples in the neighbour's core: 30 lanes further.
    const int dx = lane == 0 ? -1 : lane == 31 ? 1 : 0;
    const bool there = lane == 0 ? neighbours & to_left : lane == 31 ? neighbours & to_right : true;
    const int words = lane == 0 ? 30 : lane == 31 ? 1 : lane;
    unsigned epoch = work.epoch;
    for (int job = static_cast<int>(blockIdx.x) / (work.across * work.down);
         job < work.windows_across * work.windows_down * work.stage.components; job += work.teams) {
        Strip s[2];
        Pixels a[2], b[2]; // Y_{k-1} and Y_k; beyond the scene they stay zero
        {
            const Window win = window_of(work, job);
            load_strip(work, place, win, lane, -warp_rows, s[0], b[0]);
            load_strip(work, place, win, lane, work.core_lines, s[1], b[1]);
        }
#pragma unroll
        for (int side = 0; side < 2; ++side)
#pragma unroll
            for (int r = 0; r < warp_rows; ++r)
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    a[side][r][i] = b[side][r][i];
        fetch_terms(work, shared + terms_at, 0, lane);
        for (int g = 0; g < work.groups; ++g) {
            if (g == 0)
                sweep_halo<true, 0>(a, b, s, barrier, above, below);
            else
                sweep_halo<false, 0>(a, b, s, barrier, above, below);
            sweep_halo<false, 1>(b, a, s, barrier, above, below);
            sweep_halo<false, 2>(a, b, s, barrier, above, below);
            sweep_halo<false, 3>(b, a, s, barrier, above, below);
            fetch_terms(work, shared + terms_at, g + 1, lane);
            if (neighbours == 0 || g + 1 == work.groups) continue;
            ++epoch;
#pragma unroll
            for (int side = 0; side < 2; ++side) {
                if (!there || !(neighbours & (side == 0 ? to_north : to_south))) continue;
                const uint4* const from =
                    half_of(work,
                            static_cast<int>(blockIdx.x) + dx + (side == 0 ? -work.across : work.across),
                            epoch) +
                    (side == 0 ? warp_rows * 128 : 0) + words;
                // The line farthest off is not swept, only looked at: Y_{k-1} is of no use there.
                const int farthest = side == 0 ? 0 : warp_rows - 1;
                uint4 v[warp_rows][4];
                bool here;
                do {
                    here = true;
#pragma unroll
                    for (int r = 0; r < warp_rows; ++r)
#pragma unroll
                        for (int i = 0; i < (r == farthest ? 2 : 4); ++i)
                            v[r][i] = observe(from + r * 128 + i * 32);
#pragma unroll
                    for (int r = 0; r < warp_rows; ++r)
#pragma unroll
                        for (int i = 0; i < (r == farthest ? 2 : 4); ++i)
                            here = here && v[r][i].y == epoch && v[r][i].w == epoch;
                } while (!here);
#pragma unroll
                for (int r = 0; r < warp_rows; ++r)
#pragma unroll
                    for (int i = 0; i < 2; ++i) {
                        b[side][r][2 * i] = __uint_as_float(v[r][i].x);
                        b[side][r][2 * i + 1] = __uint_as_float(v[r][i].z);
                        if (r == farthest) continue;
                        a[side][r][2 * i] = __uint_as_float(v[r][i + 2].x);
                        a[side][r][2 * i + 1] = __uint_as_float(v[r][i + 2].z);
                    }
            }
            __syncwarp();
        }
        block_barrier();
    }
}

__global__ void __launch_bounds__(most_threads, 1)
    persistent_kernel(const __grid_constant__ PersistentWork work) {
    extern __shared__ float4 shared[];
    auto barrier = static_cast<unsigned>(__cvta_generic_to_shared(shared));
    asm volatile("" : "+r"(barrier)); // keeps it: computing it takes a slow special register
    if (threadIdx.x == 0) {
        auto& place = *reinterpret_cast<Place*>(shared);
        const int block = static_cast<int>(blockIdx.x) % (work.across * work.down);
        place.bx = block % work.across;
        place.by = block / work.across;
        place.neighbours = (place.bx > 0 ? to_left : 0) | (place.bx + 1 < work.across ? to_right : 0) |
                           (place.by > 0 ? to_north : 0) | (place.by + 1 < work.down ? to_south : 0);
        barrier_init(barrier, static_cast<int>(blockDim.x));
    }
    __syncthreads();
    if (threadIdx.x / 32 == blockDim.x / 32 - 1)
        halo_warp(work, shared, barrier);
    else
        core_warps(work, shared, barrier);
}
#else
__global__ void __launch_bounds__(most_threads) persistent_kernel(const PersistentWork) {
} // never launched: too little shared memory
#endif

/// One sweep over planes in global memory. kind 0: out = cur + flux / 2; 1: out = 2 cur - prev + flux.
template <class T>
__global__ void sweep_planes(const T* __restrict__ prev, const T* __restrict__ cur, T* __restrict__ out,
                             const T* __restrict__ east, const T* __restrict__ south, int samples, int lines,
                             bool first) {
    const int x = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), y = static_cast<int>(blockIdx.y);
    if (x >= samples) return;
    const size_t i = static_cast<size_t>(blockIdx.z) * samples * lines + static_cast<size_t>(y) * samples + x;
    const T c = cur[i];
    // The same operations in the same order as in sweep().
    T flux = x + 1 < samples ? east[i] * (cur[i + 1] - c) : T(0);
    if (x > 0) flux = fma(-east[i - 1], c - cur[i - 1], flux);
    if (y > 0) flux = fma(-south[i - samples], c - cur[i - samples], flux);
    if (y + 1 < lines) flux = fma(south[i], cur[i + samples] - c, flux);
    out[i] = first ? fma(T(0.5), flux, c) : fma(T(2), c, -prev[i]) + flux;
}

template <class T>
__global__ void add_planes(const T* __restrict__ y, T* __restrict__ sums, size_t count,
                           const T* __restrict__ coefficients, int copies, int mask, bool fresh) {
    const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const T v = y[i];
    for (int c = 0; c < copies; ++c) {
        T* const s = sums + static_cast<size_t>(c) * count + i;
        if (fresh)
            *s = coefficients[c] * v;
        else if (mask >> c & 1)
            *s = fma(coefficients[c * group_sweeps], v, *s);
    }
}

template <class T>
__global__ void finish_planes(StageWork<T> work, const T* __restrict__ sums, int first_copy,
                              bool write_next) {
    const int x = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), y = static_cast<int>(blockIdx.y);
    if (x >= work.samples) return;
    const int component = static_cast<int>(blockIdx.z) % work.components,
              copy = static_cast<int>(blockIdx.z) / work.components;
    const size_t p = static_cast<size_t>(y) * work.samples + x;
    const size_t at = (static_cast<size_t>(component) * work.lines + y) * work.pitch + x;
    const T v = sums[static_cast<size_t>(copy) * work.components * work.lines * work.pitch + at];
    if (write_next && copy == 0) work.next[at] = v;
    const int ox = x - work.core.x, oy = y - work.core.y;
    if (ox < 0 || oy < 0 || ox >= work.core.w || oy >= work.core.h) return;
    const size_t band = static_cast<size_t>(component) * work.out_bands + first_copy + copy;
    work.out[(band * work.core.h + oy) * work.core.w + ox] =
        work.valid[p] ? static_cast<float>(v + static_cast<T>(work.level[component])) : nanf("");
}

bool fits_persistent(int ordinal) {
    int shared = 0, cooperative = 0;
    HSI_CUDA_CHECK(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, ordinal));
    HSI_CUDA_CHECK(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, ordinal));
    return cooperative && static_cast<size_t>(shared) >= shared_of(most_core_lines);
}

int ceil_div(int a, int b) { return (a + b - 1) / b; }

} // namespace

template <class T>
Recurrence<T>::Recurrence(int ordinal, int max_samples, int max_lines, int max_components,
                          const std::vector<Stage>& stages, cudaStream_t stream)
    : m_ordinal(ordinal), m_multiprocessors(multiprocessors_of(ordinal)),
      m_persistent(sizeof(T) == sizeof(float) && fits_persistent(ordinal)) {
    for (const auto& stage : stages) {
        m_degrees.push_back(stage.degree);
        m_batches.emplace_back();
        for (size_t first = 0; first < stage.coefficients.size(); first += batch_copies) {
            Batch b;
            b.first_copy = static_cast<int>(first);
            b.copies = static_cast<int>(std::min<size_t>(batch_copies, stage.coefficients.size() - first));
            size_t terms = 0;
            for (int c = 0; c < b.copies; ++c)
                terms = std::max(terms, stage.coefficients[first + static_cast<size_t>(c)].size());
            b.groups = std::max(1, ceil_div(static_cast<int>(terms) - 1, group_sweeps));
            b.coefficients = m_host_coefficients.size();
            b.masks = m_host_masks.size();
            for (int c = 0; c < batch_copies; ++c)
                m_host_coefficients.push_back(
                    c < b.copies ? static_cast<T>(stage.coefficients[first + static_cast<size_t>(c)][0])
                                 : T(0));
            for (int g = 0; g < b.groups; ++g) {
                int mask = 0;
                for (int c = 0; c < batch_copies; ++c)
                    for (int j = 0; j < group_sweeps; ++j) {
                        const auto k = static_cast<size_t>(1 + g * group_sweeps + j);
                        const bool there =
                            c < b.copies && k < stage.coefficients[first + static_cast<size_t>(c)].size();
                        if (there) mask |= 1 << c;
                        m_host_coefficients.push_back(
                            there ? static_cast<T>(stage.coefficients[first + static_cast<size_t>(c)][k])
                                  : T(0));
                    }
                // Copies whose last terms these are.
                for (int c = 0; c < b.copies; ++c) {
                    const auto n = stage.coefficients[first + static_cast<size_t>(c)].size();
                    if (g == std::max(1, ceil_div(static_cast<int>(n) - 1, group_sweeps)) - 1)
                        mask |= 1 << (batch_copies + c);
                }
                m_host_masks.push_back(mask);
            }
            m_batches.back().push_back(b);
        }
    }
    m_coefficients = cuda::DeviceBuffer<T>(m_host_coefficients.size());
    m_masks = cuda::DeviceBuffer<int>(m_host_masks.size());
    m_coefficients.upload(m_host_coefficients.data(), m_host_coefficients.size(), stream);
    m_masks.upload(m_host_masks.data(), m_host_masks.size(), stream);
    if (m_persistent) {
        HSI_CUDA_CHECK(cudaFuncSetAttribute(persistent_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            static_cast<int>(shared_of(most_core_lines))));
        m_exchange = cuda::DeviceBuffer<uint4>(static_cast<size_t>(m_multiprocessors) * 2 * exchange_words);
        m_exchange.clear(stream);
    } else {
        m_planes =
            cuda::DeviceBuffer<T>(static_cast<size_t>(padded(max_samples)) * static_cast<size_t>(max_lines) *
                                  static_cast<size_t>(max_components) * (3 + batch_copies));
    }
}

template <class T>
uint64_t Recurrence<T>::device_bytes(int ordinal, uint64_t pixels, int components,
                                     const std::vector<Stage>& stages) {
    uint64_t terms = 0;
    for (const auto& s : stages)
        terms += (s.coefficients.size() + batch_copies) * static_cast<uint64_t>(s.degree + 8);
    const uint64_t small = terms * (sizeof(T) + 4) + (1 << 20);
    if (sizeof(T) == sizeof(float) && fits_persistent(ordinal))
        return small +
               static_cast<uint64_t>(multiprocessors_of(ordinal)) * 2 * exchange_words * sizeof(uint4);
    return small + pixels * static_cast<uint64_t>(components) * sizeof(T) * (3 + batch_copies);
}

template <class T>
void Recurrence<T>::run(int index, const StageWork<T>& work, cudaStream_t stream) {
    for (const auto& batch : m_batches[static_cast<size_t>(index)])
        if (m_persistent)
            run_persistent(batch, work, m_degrees[static_cast<size_t>(index)], stream);
        else
            run_sweeps(batch, work, stream);
}

template <>
void Recurrence<double>::run_persistent(const Batch&, const StageWork<double>&, int, cudaStream_t) {
    throw Error("internal: the persistent kernel is single precision");
}

template <>
void Recurrence<float>::run_persistent(const Batch& batch, const StageWork<float>& stage, int,
                                       cudaStream_t stream) {
    PersistentWork work{};
    work.stage = stage;
    work.output = stage.next ? stage.region : stage.core;
    work.halo = batch.groups * group_sweeps;
    // Windows are as large as all multiprocessors together can hold, with the halo where the scene goes on.
    // The largest window of pieces that are `length` long; its start may move by `slack` to be aligned:
    const auto extent = [&](int length, int limit, int slack) {
        return length >= limit ? limit : std::min(limit, length + 2 * work.halo + slack);
    };
    double best = 0;
    for (int across = 1; across <= m_multiprocessors; ++across)
        for (int down = 1; across * down <= m_multiprocessors; ++down) {
            const auto fit = [&](int output, int limit, int capacity, int slack, int& step, int& pieces) {
                // The longest piece whose window is no longer than the capacity.
                step = output;
                if (extent(output, limit, slack) > capacity) step = capacity - 2 * work.halo - slack;
                if (step < 1) return false;
                pieces = ceil_div(output, step);
                step = ceil_div(output, pieces);
                return true;
            };
            int step_x = 0, step_y = 0, nx = 0, ny = 0;
            if (!fit(work.output.w, stage.samples, across * core_samples, 3, step_x, nx)) continue;
            if (!fit(work.output.h, stage.lines, down * most_core_lines, 0, step_y, ny)) continue;
            const int used_x = ceil_div(extent(step_x, stage.samples, 3), core_samples);
            if (used_x != across) continue;
            const int lines = extent(step_y, stage.lines, 0);
            const int core_warps = ceil_div(ceil_div(lines, down), warp_rows);
            const int used_y = ceil_div(lines, core_warps * warp_rows);
            const int teams = std::max(1, m_multiprocessors / (used_x * used_y));
            const int jobs = nx * ny * stage.components, rounds = ceil_div(jobs, std::min(teams, jobs));
            // A sweep takes as long as its warps take turns, and some time for barrier and exchange.
            const double speed = 1.0 / (rounds * (core_warps + 5));
            if (speed > best) {
                best = speed;
                work.across = used_x;
                work.down = used_y;
                work.core_lines = core_warps * warp_rows;
                work.teams = std::min(teams, jobs);
                work.windows_across = nx;
                work.windows_down = ny;
                work.step_x = step_x;
                work.step_y = step_y;
            }
        }
    if (best == 0) { // the degree is too high for any window: sweep by sweep
        if (m_planes.size() == 0)
            m_planes = cuda::DeviceBuffer<float>(static_cast<size_t>(stage.pitch) *
                                                 static_cast<size_t>(stage.lines) *
                                                 static_cast<size_t>(stage.components) * (3 + batch_copies));
        run_sweeps(batch, stage, stream);
        return;
    }
    work.coefficients = m_coefficients.data() + batch.coefficients;
    work.masks = m_masks.data() + batch.masks;
    work.groups = batch.groups;
    work.first_copy = batch.first_copy;
    work.copies = batch.copies;
    work.write_next = stage.next != nullptr && batch.first_copy == 0;
    work.exchange = m_exchange.data();
    work.epoch = m_epoch;
    // Tags of earlier launches must never be taken for those of this one.
    m_epoch += static_cast<unsigned>(work.groups) *
               static_cast<unsigned>(
                   ceil_div(work.windows_across * work.windows_down * stage.components, work.teams));
    void* arguments[] = {&work};
    HSI_CUDA_CHECK(
        cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(persistent_kernel),
                                    dim3(static_cast<unsigned>(work.across * work.down * work.teams)),
                                    dim3(static_cast<unsigned>(32 * (work.core_lines / warp_rows + 1))),
                                    arguments, shared_of(work.core_lines), stream));
}

template <class T>
void Recurrence<T>::run_sweeps(const Batch& batch, const StageWork<T>& work, cudaStream_t stream) {
    const size_t count = static_cast<size_t>(work.pitch) * static_cast<size_t>(work.lines) *
                         static_cast<size_t>(work.components);
    T* planes[3] = {m_planes.data(), m_planes.data() + count, m_planes.data() + 2 * count};
    T* const sums = m_planes.data() + 3 * count;
    const T* const coefficients = m_coefficients.data() + batch.coefficients;
    const dim3 grid(blocks_for(static_cast<size_t>(work.pitch)), static_cast<unsigned>(work.lines),
                    static_cast<unsigned>(work.components));
    add_planes<T><<<blocks_for(count), threads, 0, stream>>>(work.start, sums, count, coefficients,
                                                             batch.copies, 0, true);
    HSI_CUDA_LAUNCHED("add_planes");
    const T *prev = work.start, *cur = work.start;
    for (int k = 1; k <= batch.groups * group_sweeps; ++k) {
        T* const out = planes[k % 3];
        sweep_planes<T><<<grid, threads, 0, stream>>>(prev, cur, out, work.east, work.south, work.pitch,
                                                      work.lines, k == 1);
        HSI_CUDA_LAUNCHED("sweep_planes");
        const int g = (k - 1) / group_sweeps, j = (k - 1) % group_sweeps;
        const T* const a =
            coefficients + batch_copies + static_cast<size_t>(g) * batch_copies * group_sweeps + j;
        add_planes<T><<<blocks_for(count), threads, 0, stream>>>(
            out, sums, count, a, batch.copies, m_host_masks[batch.masks + static_cast<size_t>(g)], false);
        HSI_CUDA_LAUNCHED("add_planes");
        prev = cur;
        cur = out;
    }
    const dim3 all(grid.x, grid.y, static_cast<unsigned>(work.components * batch.copies));
    finish_planes<T><<<all, threads, 0, stream>>>(work, sums, batch.first_copy,
                                                  work.next != nullptr && batch.first_copy == 0);
    HSI_CUDA_LAUNCHED("finish_planes");
}

template class Recurrence<float>;
template class Recurrence<double>;

} // namespace hsi::eadp::gpu
