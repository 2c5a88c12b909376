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
constexpr int most_warps = 15;  ///< of a block; the first and the last one hold the halo's lines
constexpr int core_samples = 120, most_core_lines = (most_warps - 2) * warp_rows; ///< of 128 x 60 pixels
constexpr int most_threads = 32 * most_warps;
constexpr size_t edge_floats = 2 * most_warps * 128;    ///< first and last line of every warp
constexpr size_t term_vectors = 2 * (batch_copies + 1); ///< coefficients and mask of this group and the next
constexpr size_t shared_of(int core_lines) {            ///< terms, edges for even and odd sweeps, sums
    return term_vectors * sizeof(float4) +
           (2 * edge_floats + static_cast<size_t>(batch_copies * core_lines * core_samples)) * sizeof(float);
}
/// What a block publishes: of every line and lane, 4 samples of Y_k and of Y_{k-1}, each beside a tag.
constexpr size_t exchange_words = static_cast<size_t>(most_warps) * warp_rows * 32 * 4;

/// A window that a team of across x down blocks works through, and what of it is put out.
struct Window {
    int component;
    int x, y, w, h; ///< in the planes
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

/// Two samples, each beside the epoch that it belongs to: whoever reads the right tags has the right samples,
/// without a fence or a flag. (8 bytes of an aligned access arrive together.)
__device__ void publish(uint4* to, float a, float b, unsigned epoch) {
    asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(__float_as_uint(a)),
                 "r"(epoch), "r"(__float_as_uint(b)), "r"(epoch)
                 : "memory");
}
__device__ uint4 observe(const uint4* from) {
    uint4 v;
    asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(from)
                 : "memory");
    return v;
}

using Pixels = float[warp_rows][4];

__device__ __forceinline__ void add_terms(float& sum, float4 a, float y0, float y1, float y2, float y3) {
    sum = fmaf(a.w, y3, fmaf(a.z, y2, fmaf(a.y, y1, fmaf(a.x, y0, sum))));
}

/// One sweep of the tile (`edges` alternates from sweep to sweep, so that one barrier is enough): out = 2 cur
/// - prev + flux (first: cur + flux / 2). `out` may be any level but prev and cur. The operations and their
/// order are the same for every pixel, wherever it lies in the tile.
template <bool first>
__device__ __forceinline__ void sweep(const Pixels& prev, const Pixels& cur, Pixels& out, const Pixels& east,
                                      const Pixels& south, const float (&north)[4], float4* edges, int warp,
                                      int lane, int warps) {
    // The lines that neighbouring warps need: [warp][first, last][32 lanes].
    float4* const own = edges + warp * 64 + lane;
    own[0] = make_float4(cur[0][0], cur[0][1], cur[0][2], cur[0][3]);
    own[32] = make_float4(cur[3][0], cur[3][1], cur[3][2], cur[3][3]);
    __syncthreads();
    // Beyond the tile there is no line: its edge is wrong from here on, by one more pixel a sweep.
    const float4 upper = own[warp > 0 ? -32 : 0], lower = own[warp + 1 < warps ? 64 : 32];
    const float above[4] = {upper.x, upper.y, upper.z, upper.w},
                below[4] = {lower.x, lower.y, lower.z, lower.w};
    float up[4]; // flux through the upper edge of the line
#pragma unroll
    for (int i = 0; i < 4; ++i)
        up[i] = north[i] * (cur[0][i] - above[i]);
#pragma unroll
    for (int r = 0; r < warp_rows; ++r) {
        const float right = __shfl_down_sync(~0u, cur[r][0], 1);
        float across[4];
#pragma unroll
        for (int i = 0; i < 3; ++i)
            across[i] = east[r][i] * (cur[r][i + 1] - cur[r][i]);
        across[3] = east[r][3] * (right - cur[r][3]);
        float left = __shfl_up_sync(~0u, across[3], 1);
        if (lane == 0) left = 0;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float beneath = r + 1 < warp_rows ? cur[r + 1 < warp_rows ? r + 1 : r][i] : below[i];
            const float down = south[r][i] * (beneath - cur[r][i]);
            const float flux = (across[i] - (i > 0 ? across[i > 0 ? i - 1 : 0] : left)) + (down - up[i]);
            out[r][i] = first ? fmaf(0.5f, flux, cur[r][i]) : fmaf(2.0f, cur[r][i], -prev[r][i]) + flux;
            up[i] = down;
        }
    }
}

/// Pixels beyond the planes are zero; x is a multiple of 4, and so is the pitch.
__device__ __forceinline__ void load_pixels(Pixels& to, const float* plane, int pitch, int lines, int x,
                                            int y) {
#pragma unroll
    for (int r = 0; r < warp_rows; ++r) {
        float4 v = make_float4(0, 0, 0, 0);
        if (x >= 0 && x < pitch && y + r >= 0 && y + r < lines)
            v = __ldg(reinterpret_cast<const float4*>(plane + static_cast<size_t>(y + r) * pitch + x));
        to[r][0] = v.x, to[r][1] = v.y, to[r][2] = v.z, to[r][3] = v.w;
    }
}

__global__ void __launch_bounds__(most_threads, 1) persistent_kernel(const PersistentWork work) {
    extern __shared__ float4 shared[];
    float4* const terms = shared;
    float4* const edges = terms + term_vectors;
    float4* const other = edges + edge_floats / 4;
    float4* const sums = other + edge_floats / 4; // [copy][line of the core][30]
    const auto fetch = [&](int g) { // a thread a copy, and one for the mask; seen after the next barrier
        if (threadIdx.x > batch_copies || g >= work.groups) return;
        float4& to = terms[(g & 1) * (batch_copies + 1) + threadIdx.x];
        if (threadIdx.x < batch_copies)
            to = __ldg(reinterpret_cast<const float4*>(work.coefficients + batch_copies) + g * batch_copies +
                       threadIdx.x);
        else
            to.x = __int_as_float(__ldg(work.masks + g));
    };
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const int warps = static_cast<int>(blockDim.x) / 32;
    const int team_blocks = work.across * work.down;
    const int team = static_cast<int>(blockIdx.x) / team_blocks,
              block = static_cast<int>(blockIdx.x) % team_blocks;
    const int bx = block % work.across, by = block / work.across;
    const int x = bx * core_samples - group_sweeps + lane * 4,
              y = by * work.core_lines - group_sweeps + warp * warp_rows;
    const bool in_core = warp >= 1 && warp < warps - 1 && lane >= 1 && lane < 31;
    const auto& stage = work.stage;
    const size_t pixels = static_cast<size_t>(stage.pitch) * stage.lines; // of a padded plane
    const int copy_stride = work.core_lines * (core_samples / 4);
    float4* const own_sums = sums + (warp - 1) * warp_rows * (core_samples / 4) + (lane - 1);
    unsigned epoch = work.epoch;

    // Where this thread publishes (the rim of the core) or finds (the halo) its pixels, or neither.
    enum { nothing, publishes, finds } part = nothing;
    uint4* place = nullptr;
    {
        int block_there = block, warp_there = warp, lane_there = lane;
        if (in_core) {
            if (warp == 1 || warp == warps - 2 || lane == 1 || lane == 30) part = publishes;
        } else {
            // The same pixels in the neighbour's tile: 30 lanes, or all core lines, further.
            const int nx = bx + (lane == 0 ? -1 : lane == 31 ? 1 : 0);
            const int ny = by + (warp == 0 ? -1 : warp == warps - 1 ? 1 : 0);
            if (nx >= 0 && ny >= 0 && nx < work.across && ny < work.down) part = finds;
            block_there = ny * work.across + nx;
            lane_there = lane == 0 ? 30 : lane == 31 ? 1 : lane;
            warp_there = warp == 0 ? warps - 2 : warp == warps - 1 ? 1 : warp;
        }
        if (part != nothing)
            place = work.exchange +
                    static_cast<size_t>(team * team_blocks + block_there) * 2 * exchange_words +
                    warp_there * (warp_rows * 128) + lane_there;
    }

    const int windows = work.windows_across * work.windows_down;
    for (int job = team; job < windows * stage.components; job += work.teams) {
        Window win;
        win.component = job / windows;
        {
            const int wx = job % windows % work.windows_across, wy = job % windows / work.windows_across;
            win.out_x = work.output.x + wx * work.step_x;
            win.out_y = work.output.y + wy * work.step_y;
            win.out_w = min(work.step_x, work.output.x + work.output.w - win.out_x);
            win.out_h = min(work.step_y, work.output.y + work.output.h - win.out_y);
            win.x = max(0, win.out_x - work.halo) & ~3; // float4 by float4
            win.y = max(0, win.out_y - work.halo);
        }
        const size_t plane = static_cast<size_t>(win.component) * pixels;
        Pixels east, south, level0, level1, level2, level3;
        float north[4];
        load_pixels(level3, stage.start + plane, stage.pitch, stage.lines, win.x + x, win.y + y);
        load_pixels(east, stage.east + plane, stage.pitch, stage.lines, win.x + x, win.y + y);
        load_pixels(south, stage.south + plane, stage.pitch, stage.lines, win.x + x, win.y + y);
        {
            const int xx = win.x + x, yy = win.y + y - 1;
            float4 v = make_float4(0, 0, 0, 0);
            if (warp > 0 && xx >= 0 && xx < stage.pitch && yy >= 0 && yy < stage.lines)
                v = __ldg(reinterpret_cast<const float4*>(stage.south + plane +
                                                          static_cast<size_t>(yy) * stage.pitch + xx));
            north[0] = v.x, north[1] = v.y, north[2] = v.z, north[3] = v.w;
        }
        if (in_core) {
            float4* to = own_sums;
            for (int c = 0; c < work.copies; ++c, to += copy_stride) {
                const float a = work.coefficients[c]; // the terms of Y_0 stand first
#pragma unroll
                for (int r = 0; r < warp_rows; ++r)
                    to[r * (core_samples / 4)] =
                        make_float4(a * level3[r][0], a * level3[r][1], a * level3[r][2], a * level3[r][3]);
            }
        }
        fetch(0);
        for (int g = 0; g < work.groups; ++g) {
            if (g == 0)
                sweep<true>(level3, level3, level0, east, south, north, edges, warp, lane, warps);
            else
                sweep<false>(level2, level3, level0, east, south, north, edges, warp, lane, warps);
            sweep<false>(level3, level0, level1, east, south, north, other, warp, lane, warps);
            sweep<false>(level0, level1, level2, east, south, north, edges, warp, lane, warps);
            sweep<false>(level1, level2, level3, east, south, north, other, warp, lane, warps);
            fetch(g + 1);
            const bool exchanges = g + 1 < work.groups && team_blocks > 1;
            // Two halves that alternate: whoever writes a half again has its neighbours' next epoch, so they
            // are done with the last one.
            epoch += exchanges;
            uint4* const half = place + (epoch & 1) * exchange_words;
            if (exchanges && part == publishes) {
#pragma unroll
                for (int r = 0; r < warp_rows; ++r) {
                    publish(half + r * 128, level3[r][0], level3[r][1], epoch);
                    publish(half + r * 128 + 32, level3[r][2], level3[r][3], epoch);
                    publish(half + r * 128 + 64, level2[r][0], level2[r][1], epoch);
                    publish(half + r * 128 + 96, level2[r][2], level2[r][3], epoch);
                }
            }
            // The sums are added to while the neighbours' halos are on their way.
            if (in_core) {
                const float4* const now = terms + (g & 1) * (batch_copies + 1);
                const int mask = __float_as_int(now[batch_copies].x);
                float4* sum = own_sums;
                for (int c = 0; c < work.copies; ++c, sum += copy_stride) {
                    if (!(mask >> c & 1)) continue;
                    const float4 a = now[c];
#pragma unroll
                    for (int pair = 0; pair < warp_rows;
                         pair += 2) { // two lines at a time: registers are dear
                        float4 v[2] = {sum[pair * (core_samples / 4)], sum[(pair + 1) * (core_samples / 4)]};
#pragma unroll
                        for (int i = 0; i < 2; ++i) {
                            const int r = pair + i;
                            add_terms(v[i].x, a, level0[r][0], level1[r][0], level2[r][0], level3[r][0]);
                            add_terms(v[i].y, a, level0[r][1], level1[r][1], level2[r][1], level3[r][1]);
                            add_terms(v[i].z, a, level0[r][2], level1[r][2], level2[r][2], level3[r][2]);
                            add_terms(v[i].w, a, level0[r][3], level1[r][3], level2[r][3], level3[r][3]);
                            sum[r * (core_samples / 4)] = v[i];
                        }
                    }
                }
            }
            if (exchanges && part == finds) {
#pragma unroll
                for (int pair = 0; pair < warp_rows; pair += 2) { // two lines at a time
                    uint4 v[2][4];
                    bool here;
                    do {
                        here = true;
#pragma unroll
                        for (int r = 0; r < 2; ++r)
#pragma unroll
                            for (int i = 0; i < 4; ++i)
                                v[r][i] = observe(half + (pair + r) * 128 + i * 32);
#pragma unroll
                        for (int r = 0; r < 2; ++r)
#pragma unroll
                            for (int i = 0; i < 4; ++i)
                                here = here && v[r][i].y == epoch && v[r][i].w == epoch;
                    } while (!here);
#pragma unroll
                    for (int r = 0; r < 2; ++r)
#pragma unroll
                        for (int i = 0; i < 2; ++i) {
                            level3[pair + r][2 * i] = __uint_as_float(v[r][i].x);
                            level3[pair + r][2 * i + 1] = __uint_as_float(v[r][i].z);
                            level2[pair + r][2 * i] = __uint_as_float(v[r][i + 2].x);
                            level2[pair + r][2 * i + 1] = __uint_as_float(v[r][i + 2].z);
                        }
                }
            }
        }
        __syncthreads();
        // Out of shared memory line by line, so that writes are whole sectors.
        const float level = stage.level[win.component];
        const size_t out_plane = static_cast<size_t>(stage.core.w) * stage.core.h;
        float* const out =
            stage.out + (static_cast<size_t>(win.component) * stage.out_bands + work.first_copy) * out_plane;
        for (int line = warp; line < work.core_lines; line += warps) {
            const int yy = win.y + by * work.core_lines + line, oy = yy - stage.core.y;
            if (yy < win.out_y || yy >= win.out_y + win.out_h) continue;
            const uint8_t* const valid = stage.valid + static_cast<size_t>(yy) * stage.samples;
            for (int i = lane; i < core_samples; i += 32) {
                const int xx = win.x + bx * core_samples + i, ox = xx - stage.core.x;
                if (xx < win.out_x || xx >= win.out_x + win.out_w) continue;
                const float* sum = reinterpret_cast<const float*>(sums) + line * core_samples + i;
                if (work.write_next) stage.next[plane + static_cast<size_t>(yy) * stage.pitch + xx] = *sum;
                if (ox < 0 || oy < 0 || ox >= stage.core.w || oy >= stage.core.h) continue;
                const bool ok = valid[xx] != 0;
                float* to = out + static_cast<size_t>(oy) * stage.core.w + ox;
                for (int c = 0; c < work.copies; ++c, sum += 4 * copy_stride, to += out_plane)
                    *to = ok ? *sum + level : nanf("");
            }
        }
        __syncthreads();
    }
}

/// One sweep over planes in global memory. kind 0: out = cur + flux / 2; 1: out = 2 cur - prev + flux.
template <class T>
__global__ void sweep_planes(const T* __restrict__ prev, const T* __restrict__ cur, T* __restrict__ out,
                             const T* __restrict__ east, const T* __restrict__ south, int samples, int lines,
                             bool first) {
    const int x = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), y = static_cast<int>(blockIdx.y);
    if (x >= samples) return;
    const size_t i = static_cast<size_t>(blockIdx.z) * samples * lines + static_cast<size_t>(y) * samples + x;
    const T c = cur[i];
    const T right = x + 1 < samples ? east[i] * (cur[i + 1] - c) : T(0),
            left = x > 0 ? east[i - 1] * (c - cur[i - 1]) : T(0);
    const T down = y + 1 < lines ? south[i] * (cur[i + samples] - c) : T(0),
            up = y > 0 ? south[i - samples] * (c - cur[i - samples]) : T(0);
    const T flux = (right - left) + (down - up);
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
            b.groups = ceil_div(static_cast<int>(terms) - 1, group_sweeps);
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
            const double speed = 1.0 / (rounds * (core_warps + 2 + 4));
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
                                    dim3(static_cast<unsigned>(32 * (work.core_lines / warp_rows + 2))),
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
