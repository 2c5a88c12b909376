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

__global__ void range_kernel(Planes planes, const uint8_t* __restrict__ valid,
                             const double* __restrict__ squared, Core core, RangeSums* sums) {
    const size_t plane = static_cast<size_t>(blockIdx.y) * planes.pixels();
    unsigned low = 0xffffffffu, high = 0;
    unsigned long long steepest = 0;
    unsigned count = 0;
    const size_t n = static_cast<size_t>(core.w) * core.h;
    for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
         i += static_cast<size_t>(gridDim.x) * blockDim.x) {
        const size_t p = static_cast<size_t>(core.y + i / core.w) * planes.samples + core.x + i % core.w;
        if (!valid[p]) continue;
        const unsigned v = encode_ordered(planes.x[plane + p]);
        low = min(low, v);
        high = max(high, v);
        const auto s = static_cast<unsigned long long>(
            __double_as_longlong(squared[plane + p])); // >= 0: bits are ordered
        steepest = s > steepest ? s : steepest;
        ++count;
    }
    for (int o = 16; o > 0; o /= 2) {
        low = min(low, __shfl_down_sync(~0u, low, o));
        high = max(high, __shfl_down_sync(~0u, high, o));
        const auto s = __shfl_down_sync(~0u, steepest, o);
        steepest = s > steepest ? s : steepest;
        count += __shfl_down_sync(~0u, count, o);
    }
    if (threadIdx.x % 32 == 0 && count > 0) {
        RangeSums& r = sums[blockIdx.y];
        atomicMin(&r.lowest, low);
        atomicMax(&r.highest, high);
        atomicMax(&r.steepest, steepest);
        atomicAdd(&r.valid, static_cast<unsigned long long>(count));
    }
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
    __shared__ unsigned local[histogram_bins];
    for (int i = static_cast<int>(threadIdx.x); i < histogram_bins; i += static_cast<int>(blockDim.x))
        local[i] = 0;
    __syncthreads();
    const double top = steepest[blockIdx.y];
    const size_t plane = static_cast<size_t>(blockIdx.y) * planes.pixels(),
                 n = static_cast<size_t>(core.w) * core.h;
    if (top > 0)
        for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
             i += static_cast<size_t>(gridDim.x) * blockDim.x) {
            const size_t p = static_cast<size_t>(core.y + i / core.w) * planes.samples + core.x + i % core.w;
            const double s = squared[plane + p];
            if (!valid[p] || !(s > 0)) continue;
            atomicAdd(&local[min(histogram_bins - 1, static_cast<int>(histogram_bins * sqrt(s) / top))], 1u);
        }
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < histogram_bins; i += static_cast<int>(blockDim.x))
        if (local[i]) atomicAdd(&counts[static_cast<size_t>(blockIdx.y) * histogram_bins + i], local[i]);
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
    const double q = squared / (k * k);
    if (kind == Diffusivity::g2) return 1.0 / (1.0 + q);
    if (kind == Diffusivity::g1) return exp(-q);
    const double q4 = (q * q) * (q * q);
    return q4 > 0 ? 1.0 - exp(-3.31488 / q4) : 1.0;
}

template <class T>
__global__ void weights_kernel(Planes planes, const uint8_t* __restrict__ valid,
                               const double* __restrict__ squared, const double* __restrict__ contrast,
                               const float* __restrict__ level, Diffusivity kind, T* __restrict__ start,
                               T* __restrict__ east, T* __restrict__ south) {
    const int x = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), y = static_cast<int>(blockIdx.y);
    if (x >= planes.samples) return;
    const int c = static_cast<int>(blockIdx.z);
    const size_t p = static_cast<size_t>(y) * planes.samples + x,
                 i = static_cast<size_t>(c) * planes.pixels() + p;
    const double k = contrast[c];
    T e = 0, s = 0, x0 = 0;
    if (valid[p]) {
        x0 = static_cast<T>(planes.x[i]) - static_cast<T>(level[c]);
        const double own = diffusivity(squared[i], k, kind);
        if (x + 1 < planes.samples && valid[p + 1])
            e = static_cast<T>(tau_max * (own + diffusivity(squared[i + 1], k, kind)));
        if (y + 1 < planes.lines && valid[p + planes.samples])
            s = static_cast<T>(tau_max * (own + diffusivity(squared[i + planes.samples], k, kind)));
    }
    start[i] = x0;
    east[i] = e;
    south[i] = s;
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

void launch_gaussian_rows(const Planes& planes, const uint8_t* valid, const GradientWork& work,
                          cudaStream_t stream) {
    gaussian_rows<<<plane_grid(planes, planes.components + 1), threads, 0, stream>>>(planes, valid, work);
    HSI_CUDA_LAUNCHED("gaussian_rows");
}

void launch_gaussian_columns(const Planes& planes, const uint8_t* valid, const GradientWork& work,
                             cudaStream_t stream) {
    gaussian_columns<<<plane_grid(planes, 1), threads, 0, stream>>>(planes, valid, work, true);
    HSI_CUDA_LAUNCHED("gaussian_columns");
    gaussian_columns<<<plane_grid(planes, planes.components), threads, 0, stream>>>(planes, valid, work,
                                                                                    false);
    HSI_CUDA_LAUNCHED("gaussian_columns");
}

void launch_scharr(const Planes& planes, const uint8_t* valid, const double* smooth, double* squared,
                   cudaStream_t stream) {
    scharr_kernel<<<plane_grid(planes, planes.components), threads, 0, stream>>>(planes, valid, smooth,
                                                                                 squared);
    HSI_CUDA_LAUNCHED("scharr_kernel");
}

void clear_ranges(RangeSums* sums, int components, cudaStream_t stream) {
    clear_kernel<<<blocks_for(static_cast<size_t>(components)), threads, 0, stream>>>(sums, components);
    HSI_CUDA_LAUNCHED("clear_kernel");
}

namespace {
dim3 scan_grid(Core core, int components) {
    const size_t n = static_cast<size_t>(core.w) * static_cast<size_t>(core.h);
    return dim3(std::min(blocks_for(n), 264u), static_cast<unsigned>(components));
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
    weights_kernel<T><<<plane_grid(planes, planes.components), threads, 0, stream>>>(
        planes, valid, squared, k, level, kind, start, east, south);
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
constexpr int tile_warps = 16;
constexpr int core_samples = 120, core_lines = 56; ///< of the 128 x 64 pixels that a block holds
constexpr int tile_threads = 32 * tile_warps;
constexpr size_t sum_floats = static_cast<size_t>(batch_copies) * core_lines * core_samples;
constexpr size_t edge_floats = 2 * tile_warps * 128; ///< first and last line of every warp
constexpr size_t tile_shared = (sum_floats + edge_floats) * sizeof(float);

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
    int windows_across, windows_down;
    int window_w, window_h, step_x, step_y; ///< of windows, in planes
    int halo;
    const float* coefficients;
    const int* masks;
    int groups, first_copy, copies;
    bool write_next;
    Core output;     ///< core, or the region of `next`
    float* exchange; ///< [parity][team][Y_k, Y_{k-1}][block][64 x 128]
    unsigned* flags; ///< [team][block]
    unsigned epoch;
};

__device__ float4 load4(const float* p) { return __ldcg(reinterpret_cast<const float4*>(p)); }
__device__ void store4(float* p, float4 v) { __stcg(reinterpret_cast<float4*>(p), v); }

__device__ void publish(unsigned* flag, unsigned epoch) {
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flag), "r"(epoch) : "memory");
}
__device__ unsigned observe(const unsigned* flag) {
    unsigned v;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory");
    return v;
}

using Pixels = float[warp_rows][4];

/// One sweep of the tile: out = 2 cur - prev + flux (first: cur + flux / 2). `out` may be any level but prev
/// and cur.
template <bool first>
__device__ __forceinline__ void sweep(const Pixels& prev, const Pixels& cur, Pixels& out, const Pixels& east,
                                      const Pixels& south, const float (&north)[4], float* edges, int warp,
                                      int lane) {
    // The lines that neighbouring warps need: [warp][first, last][128].
    float4* const own = reinterpret_cast<float4*>(edges + warp * 256) + lane;
    own[0] = make_float4(cur[0][0], cur[0][1], cur[0][2], cur[0][3]);
    own[32] = make_float4(cur[3][0], cur[3][1], cur[3][2], cur[3][3]);
    __syncthreads();
    float above[4] = {cur[0][0], cur[0][1], cur[0][2], cur[0][3]},
          below[4] = {cur[3][0], cur[3][1], cur[3][2], cur[3][3]};
    if (warp > 0) {
        const float4 v = reinterpret_cast<const float4*>(edges + (warp - 1) * 256 + 128)[lane];
        above[0] = v.x, above[1] = v.y, above[2] = v.z, above[3] = v.w;
    }
    if (warp + 1 < tile_warps) {
        const float4 v = reinterpret_cast<const float4*>(edges + (warp + 1) * 256)[lane];
        below[0] = v.x, below[1] = v.y, below[2] = v.z, below[3] = v.w;
    }
    __syncthreads();
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

__device__ __forceinline__ void load_pixels(Pixels& to, const float* plane, const Window& win, int samples,
                                            int x, int y, bool last_column_zero, bool last_line_zero) {
#pragma unroll
    for (int r = 0; r < warp_rows; ++r)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int xx = x + i, yy = y + r;
            const bool inside = xx >= 0 && yy >= 0 && xx < win.w - (last_column_zero ? 1 : 0) &&
                                yy < win.h - (last_line_zero ? 1 : 0);
            to[r][i] = inside ? plane[static_cast<size_t>(win.y + yy) * samples + win.x + xx] : 0.0f;
        }
}

__global__ void __launch_bounds__(tile_threads, 1) persistent_kernel(const PersistentWork work) {
    extern __shared__ float shared[];
    float* const sums = shared; // [copy][line of the core][120]
    float* const edges = shared + sum_floats;
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const int team_blocks = work.across * work.down;
    const int team = static_cast<int>(blockIdx.x) / team_blocks,
              block = static_cast<int>(blockIdx.x) % team_blocks;
    if (team >= work.teams) return;
    const int bx = block % work.across, by = block / work.across;
    const int x = bx * core_samples - group_sweeps + lane * 4,
              y = by * core_lines - group_sweeps + warp * warp_rows;
    const bool in_core = warp >= 1 && warp < tile_warps - 1 && lane >= 1 && lane < 31;
    const bool at_rim = in_core && (warp == 1 || warp == tile_warps - 2 || lane == 1 || lane == 30);
    unsigned* const flags = work.flags + team * team_blocks;
    const auto& stage = work.stage;
    const size_t pixels = static_cast<size_t>(stage.samples) * stage.lines;
    unsigned epoch = work.epoch;

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
            win.x = max(0, win.out_x - work.halo);
            win.y = max(0, win.out_y - work.halo);
            win.w = min(stage.samples, win.out_x + win.out_w + work.halo) - win.x;
            win.h = min(stage.lines, win.out_y + win.out_h + work.halo) - win.y;
        }
        const size_t plane = static_cast<size_t>(win.component) * pixels;
        Pixels east, south, level0, level1, level2, level3;
        float north[4];
        load_pixels(level3, stage.start + plane, win, stage.samples, x, y, false, false);
        load_pixels(east, stage.east + plane, win, stage.samples, x, y, true, false);
        load_pixels(south, stage.south + plane, win, stage.samples, x, y, false, true);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int xx = x + i, yy = y - 1;
            const bool inside = warp > 0 && xx >= 0 && yy >= 0 && xx < win.w && yy < win.h - 1;
            north[i] = inside
                           ? stage.south[plane + static_cast<size_t>(win.y + yy) * stage.samples + win.x + xx]
                           : 0.0f;
        }
        float4* const sum4 =
            reinterpret_cast<float4*>(sums + ((warp - 1) * warp_rows) * core_samples + (lane - 1) * 4);
        const auto sum_at = [&](int copy, int r) -> float4& {
            return sum4[(copy * core_lines + r) * (core_samples / 4)];
        };
        if (in_core)
            for (int c = 0; c < work.copies; ++c) {
                const float a = work.coefficients[c]; // the terms of Y_0 stand first
#pragma unroll
                for (int r = 0; r < warp_rows; ++r)
                    sum_at(c, r) =
                        make_float4(a * level3[r][0], a * level3[r][1], a * level3[r][2], a * level3[r][3]);
            }
        for (int g = 0; g < work.groups; ++g) {
            if (g == 0)
                sweep<true>(level3, level3, level0, east, south, north, edges, warp, lane);
            else
                sweep<false>(level2, level3, level0, east, south, north, edges, warp, lane);
            sweep<false>(level3, level0, level1, east, south, north, edges, warp, lane);
            sweep<false>(level0, level1, level2, east, south, north, edges, warp, lane);
            sweep<false>(level1, level2, level3, east, south, north, edges, warp, lane);
            const bool exchanges = g + 1 < work.groups && team_blocks > 1;
            float* const parity = work.exchange + ((epoch & 1) * work.teams + team) *
                                                      static_cast<size_t>(team_blocks) * 2 * 8192;
            if (exchanges) {
                if (at_rim) {
                    float* const to =
                        parity + static_cast<size_t>(block) * 2 * 8192 + (warp * warp_rows) * 128 + lane * 4;
#pragma unroll
                    for (int r = 0; r < warp_rows; ++r) {
                        store4(to + r * 128,
                               make_float4(level3[r][0], level3[r][1], level3[r][2], level3[r][3]));
                        store4(to + 8192 + r * 128,
                               make_float4(level2[r][0], level2[r][1], level2[r][2], level2[r][3]));
                    }
                    __threadfence();
                }
                __syncthreads();
                if (threadIdx.x == 0) publish(flags + block, epoch + 1);
            }
            // The sums are added to while the neighbours' halos are on their way.
            if (in_core) {
                const int mask = __ldg(work.masks + g);
                const float4* const coefficients =
                    reinterpret_cast<const float4*>(work.coefficients + batch_copies) + g * batch_copies;
                for (int c = 0; c < work.copies; ++c) {
                    if (!(mask >> c & 1)) continue;
                    const float4 a = __ldg(coefficients + c);
#pragma unroll
                    for (int r = 0; r < warp_rows; ++r) {
                        float4 v = sum_at(c, r);
                        v.x = fmaf(
                            a.w, level3[r][0],
                            fmaf(a.z, level2[r][0], fmaf(a.y, level1[r][0], fmaf(a.x, level0[r][0], v.x))));
                        v.y = fmaf(
                            a.w, level3[r][1],
                            fmaf(a.z, level2[r][1], fmaf(a.y, level1[r][1], fmaf(a.x, level0[r][1], v.y))));
                        v.z = fmaf(
                            a.w, level3[r][2],
                            fmaf(a.z, level2[r][2], fmaf(a.y, level1[r][2], fmaf(a.x, level0[r][2], v.z))));
                        v.w = fmaf(
                            a.w, level3[r][3],
                            fmaf(a.z, level2[r][3], fmaf(a.y, level1[r][3], fmaf(a.x, level0[r][3], v.w))));
                        sum_at(c, r) = v;
                    }
                }
            }
            if (exchanges) {
                ++epoch;
                if (threadIdx.x < 9) {
                    const int nx = bx + static_cast<int>(threadIdx.x) % 3 - 1,
                              ny = by + static_cast<int>(threadIdx.x) / 3 - 1;
                    if (nx >= 0 && ny >= 0 && nx < work.across && ny < work.down) {
                        // Epochs only grow; their difference is right after they wrap round, too.
                        while (static_cast<int>(observe(flags + ny * work.across + nx) - epoch) < 0) {
                        }
                    }
                }
                __syncthreads();
                if (!in_core) {
                    const int nx = bx + (lane == 0    ? -1
                                         : lane == 31 ? 1
                                                      : 0),
                              ny = by + (warp == 0                ? -1
                                         : warp == tile_warps - 1 ? 1
                                                                  : 0);
                    if (nx >= 0 && ny >= 0 && nx < work.across && ny < work.down) {
                        // The same pixels in the neighbour's tile: 30 lanes (14 warps) further.
                        const int l = lane == 0    ? 30
                                      : lane == 31 ? 1
                                                   : lane,
                                  w = warp == 0                ? tile_warps - 2
                                      : warp == tile_warps - 1 ? 1
                                                               : warp;
                        const float* const from = parity +
                                                  static_cast<size_t>(ny * work.across + nx) * 2 * 8192 +
                                                  (w * warp_rows) * 128 + l * 4;
#pragma unroll
                        for (int r = 0; r < warp_rows; ++r) {
                            const float4 a = load4(from + r * 128), b = load4(from + 8192 + r * 128);
                            level3[r][0] = a.x, level3[r][1] = a.y, level3[r][2] = a.z, level3[r][3] = a.w;
                            level2[r][0] = b.x, level2[r][1] = b.y, level2[r][2] = b.z, level2[r][3] = b.w;
                        }
                    }
                }
            }
        }
        __syncthreads();
        // Out of shared memory line by line, so that writes are whole sectors.
        const float level = stage.level[win.component];
        for (int line = warp; line < core_lines; line += tile_warps) {
            const int yy = win.y + by * core_lines + line;
            if (yy < win.out_y || yy >= win.out_y + win.out_h) continue;
            for (int i = lane; i < core_samples; i += 32) {
                const int xx = win.x + bx * core_samples + i;
                if (xx < win.out_x || xx >= win.out_x + win.out_w) continue;
                const size_t p = static_cast<size_t>(yy) * stage.samples + xx;
                const bool valid = stage.valid[p] != 0;
                for (int c = 0; c < work.copies; ++c) {
                    const float v = sums[(c * core_lines + line) * core_samples + i];
                    if (work.write_next && c == 0) stage.next[plane + p] = v;
                    const int ox = xx - stage.core.x, oy = yy - stage.core.y;
                    if (ox < 0 || oy < 0 || ox >= stage.core.w || oy >= stage.core.h) continue;
                    const size_t band =
                        static_cast<size_t>(win.component) * stage.out_bands + work.first_copy + c;
                    stage.out[(band * stage.core.h + oy) * stage.core.w + ox] = valid ? v + level : nanf("");
                }
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
    const size_t pixels = static_cast<size_t>(work.samples) * work.lines,
                 p = static_cast<size_t>(y) * work.samples + x;
    const T v = sums[(static_cast<size_t>(copy) * work.components + component) * pixels + p];
    if (write_next && copy == 0) work.next[static_cast<size_t>(component) * pixels + p] = v;
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
    return cooperative && static_cast<size_t>(shared) >= tile_shared;
}

int multiprocessors_of(int ordinal) {
    int n = 0;
    HSI_CUDA_CHECK(cudaDeviceGetAttribute(&n, cudaDevAttrMultiProcessorCount, ordinal));
    return n;
}

int ceil_div(int a, int b) { return (a + b - 1) / b; }

} // namespace

template <class T>
Recurrence<T>::Recurrence(int ordinal, int max_samples, int max_lines, int max_components,
                          const std::vector<Stage>& stages)
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
    HSI_CUDA_CHECK(cudaMemcpy(m_coefficients.data(), m_host_coefficients.data(), m_coefficients.bytes(),
                              cudaMemcpyHostToDevice));
    HSI_CUDA_CHECK(cudaMemcpy(m_masks.data(), m_host_masks.data(), m_masks.bytes(), cudaMemcpyHostToDevice));
    if (m_persistent) {
        HSI_CUDA_CHECK(cudaFuncSetAttribute(persistent_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            static_cast<int>(tile_shared)));
        m_exchange = cuda::DeviceBuffer<float>(static_cast<size_t>(m_multiprocessors) * 4 * 8192);
        m_flags = cuda::DeviceBuffer<unsigned>(static_cast<size_t>(m_multiprocessors));
        HSI_CUDA_CHECK(cudaMemset(m_flags.data(), 0, m_flags.bytes()));
    } else {
        m_planes = cuda::DeviceBuffer<T>(static_cast<size_t>(max_samples) * static_cast<size_t>(max_lines) *
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
        return small + static_cast<uint64_t>(multiprocessors_of(ordinal)) * (4 * 8192 * 4 + 4);
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
    const auto extent = [&](int begin, int length,
                            int limit) { // of the largest window when pieces are `length` long
        return std::min(limit, length + 2 * work.halo) - 0 * begin;
    };
    double best = 0;
    for (int across = 1; across <= m_multiprocessors; ++across) {
        const int down_most = m_multiprocessors / across;
        const auto fit = [&](int output, int limit, int capacity, int& step, int& pieces) {
            // The longest piece whose window is no longer than the capacity.
            step = output;
            if (extent(0, output, limit) > capacity) step = capacity - 2 * work.halo;
            if (step < 1) return false;
            pieces = ceil_div(output, step);
            step = ceil_div(output, pieces);
            return true;
        };
        int step_x = 0, step_y = 0, nx = 0, ny = 0;
        if (!fit(work.output.w, stage.samples, across * core_samples, step_x, nx)) continue;
        if (!fit(work.output.h, stage.lines, down_most * core_lines, step_y, ny)) continue;
        const int used_x = ceil_div(extent(0, step_x, stage.samples), core_samples);
        const int used_y = ceil_div(extent(0, step_y, stage.lines), core_lines);
        if (used_x != across) continue;
        const int teams = std::max(1, m_multiprocessors / (used_x * used_y));
        const int jobs = nx * ny * stage.components, rounds = ceil_div(jobs, std::min(teams, jobs));
        const double speed = 1.0 / rounds;
        if (speed > best) {
            best = speed;
            work.across = used_x;
            work.down = used_y;
            work.teams = std::min(teams, jobs);
            work.windows_across = nx;
            work.windows_down = ny;
            work.step_x = step_x;
            work.step_y = step_y;
        }
    }
    if (best == 0) { // the degree is too high for any window: sweep by sweep
        if (m_planes.size() == 0)
            m_planes = cuda::DeviceBuffer<float>(static_cast<size_t>(stage.samples) *
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
    work.flags = m_flags.data();
    work.epoch = m_epoch;
    // Teams may end on different epochs: flags start anew with every launch.
    HSI_CUDA_CHECK(cudaMemsetAsync(m_flags.data(), 0, m_flags.bytes(), stream));
    void* arguments[] = {&work};
    HSI_CUDA_CHECK(
        cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(persistent_kernel),
                                    dim3(static_cast<unsigned>(work.across * work.down * work.teams)),
                                    dim3(tile_threads), arguments, tile_shared, stream));
}

template <class T>
void Recurrence<T>::run_sweeps(const Batch& batch, const StageWork<T>& work, cudaStream_t stream) {
    const size_t count = static_cast<size_t>(work.samples) * static_cast<size_t>(work.lines) *
                         static_cast<size_t>(work.components);
    T* planes[3] = {m_planes.data(), m_planes.data() + count, m_planes.data() + 2 * count};
    T* const sums = m_planes.data() + 3 * count;
    const T* const coefficients = m_coefficients.data() + batch.coefficients;
    const dim3 grid(blocks_for(static_cast<size_t>(work.samples)), static_cast<unsigned>(work.lines),
                    static_cast<unsigned>(work.components));
    add_planes<T><<<blocks_for(count), threads, 0, stream>>>(work.start, sums, count, coefficients,
                                                             batch.copies, 0, true);
    HSI_CUDA_LAUNCHED("add_planes");
    const T *prev = work.start, *cur = work.start;
    for (int k = 1; k <= batch.groups * group_sweeps; ++k) {
        T* const out = planes[k % 3];
        sweep_planes<T><<<grid, threads, 0, stream>>>(prev, cur, out, work.east, work.south, work.samples,
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
