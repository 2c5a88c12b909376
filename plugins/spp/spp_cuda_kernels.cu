// SPDX-License-Identifier: MIT
#include "cuda/check.h"
#include "spp/spp.h"
#include "spp/spp_cuda_kernels.cuh"

#include <cuda_runtime.h>

#include <algorithm>

namespace hsi::spp::gpu {
namespace {

constexpr unsigned everyone = 0xffffffffu;

__host__ __device__ constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }
__host__ __device__ constexpr int round_up(int a, int b) { return ceil_div(a, b) * b; }

// ---------------------------------------------------------------------------------------------------- norms

constexpr int norm_slices = 8; // threads that share a pixel's bands

__global__ void __launch_bounds__(32 * norm_slices)
    norms_kernel(const float* __restrict__ cube, int bands, int pixels, double* __restrict__ inverse,
                 float* __restrict__ inverse_single) {
    __shared__ double partial[norm_slices][32];
    const int lane = threadIdx.x, slice = threadIdx.y;
    const int pixel = blockIdx.x * 32 + lane;
    double sum = 0;
    if (pixel < pixels) {
        const float* p = cube + static_cast<size_t>(slice) * pixels + pixel;
        const size_t step = static_cast<size_t>(norm_slices) * pixels;
#pragma unroll 7
        for (int b = slice; b < bands; b += norm_slices, p += step) {
            const double v = __ldg(p);
            sum = fma(v, v, sum);
        }
    }
    partial[slice][lane] = sum;
    __syncthreads();
    if (slice != 0 || pixel >= pixels) return;
    for (int s = 1; s < norm_slices; ++s) sum += partial[s][lane];
    const bool valid = sum > 0 && sum <= 1e300; // false for NaN; squares of finite floats stay below 1e82
    inverse[pixel] = valid ? 1.0 / sqrt(sum) : 0.0;
    const bool in_range = sum >= 1e-60 && sum <= 1e60;
    inverse_single[pixel] = !valid ? 0.0f : in_range ? static_cast<float>(1.0 / sqrt(sum)) : nanf("");
}

// --------------------------------------------------------------------------------------------------- angles
//
// Angles are stored as planes of one offset each, over the "domain": all samples of the window and its lines down to
// the core's last one. The angle of pixel p and offset o is that between p and p + o; o runs over half of the window,
// so each pair of pixels is computed once. -1: the pair takes no part. NaN: single precision is not good enough here.

struct Domain {
    const float* cube;
    size_t plane; // elements from a band to the next
    int bands, samples, lines;
    int domain_lines;
    const float* inverse;
    float* angles;
    int pitch; // multiple of 4
    size_t angle_plane;
};

constexpr int tile_samples = 64; // of one thread block; each thread has 4 neighbouring samples
constexpr int segment = 256;     // bands that are summed before the sum is put aside: keeps rounding small

/// The angle from |u-v|^2. Beyond 3.5 (an angle over 138 degrees) the sine of the half angle tells too little.
__device__ __forceinline__ float angle_of(float squared, float inverse_p, float inverse_q) {
    if (inverse_p == 0.0f || inverse_q == 0.0f) return -1.0f;
    if (!(squared <= 3.5f)) return nanf("");
    return 2.0f * asinf(0.5f * sqrtf(squared));
}

/// Adds, or finishes, the sums of 4 neighbouring pixels for one offset.
__device__ __forceinline__ void flush(float* at, const float (&sum)[4], bool first, bool last, const float (&own)[4],
                                      const float* other) {
    float4 s = make_float4(sum[0], sum[1], sum[2], sum[3]);
    if (!first) {
        const float4 before = *reinterpret_cast<const float4*>(at);
        s.x += before.x, s.y += before.y, s.z += before.z, s.w += before.w;
    }
    if (last) {
        s.x = angle_of(s.x, own[0], other[0]);
        s.y = angle_of(s.y, own[1], other[1]);
        s.z = angle_of(s.z, own[2], other[2]);
        s.w = angle_of(s.w, own[3], other[3]);
    }
    *reinterpret_cast<float4*>(at) = s;
}

/// Stages Cells pixels of Bands bands at a time as unit vectors in shared memory, two buffers deep: the next bands are
/// on their way from device memory while the present ones are used.
template <int Cells, int Threads, int Bands>
struct Stage {
    static constexpr int per_thread = ceil_div(Cells, Threads);
    int offset[per_thread];
    float scale[per_thread];
    float value[per_thread][Bands];

    /// The i-th cell of this thread is the window's pixel (x, y); pixels outside have scale 0.
    __device__ __forceinline__ void place(int i, const Domain& d, int x, int y) {
        const bool inside = x >= 0 && x < d.samples && y >= 0 && y < d.lines;
        offset[i] = inside ? y * d.samples + x : 0;
        scale[i] = inside ? __ldg(d.inverse + offset[i]) : 0.0f;
    }
    __device__ __forceinline__ void load(const Domain& d, int band) {
#pragma unroll
        for (int k = 0; k < Bands; ++k) {
            const float* p = d.cube + static_cast<size_t>(band + k) * d.plane;
            const bool there = band + k < d.bands;
#pragma unroll
            for (int i = 0; i < per_thread; ++i) value[i][k] = there ? __ldg(p + offset[i]) : 0.0f;
        }
    }
    __device__ __forceinline__ void store(float (*to)[Cells]) const {
#pragma unroll
        for (int i = 0; i < per_thread; ++i) {
            const int cell = static_cast<int>(threadIdx.x) + i * Threads;
            if (cell < Cells) {
#pragma unroll
                for (int k = 0; k < Bands; ++k) to[k][cell] = value[i][k] * scale[i];
            }
        }
    }
    /// The scales themselves, for validity at the end.
    __device__ __forceinline__ void store_scales(float* to) const {
#pragma unroll
        for (int i = 0; i < per_thread; ++i) {
            const int cell = static_cast<int>(threadIdx.x) + i * Threads;
            if (cell < Cells) to[cell] = scale[i];
        }
    }
};

template <int Vectors>
__device__ __forceinline__ void load_row(float (&v)[4 * Vectors], const float* from) {
#pragma unroll
    for (int i = 0; i < Vectors; ++i) {
        const float4 t = *reinterpret_cast<const float4*>(from + 4 * i);
        v[4 * i] = t.x, v[4 * i + 1] = t.y, v[4 * i + 2] = t.z, v[4 * i + 3] = t.w;
    }
}

/// Small windows, d = D: a thread holds the sums of all 2D(D+1) offsets of its 4 pixels.
template <int D, int Lines, int Bands, int Blocks>
__global__ void __launch_bounds__(16 * Lines, Blocks) angles_whole_kernel(const Domain d) {
    constexpr int threads = 16 * Lines, pitch = round_up(tile_samples + 2 * D, 4), cells = pitch * (Lines + D);
    constexpr int vectors = ceil_div(4 + 2 * D, 4), offsets = 2 * D * (D + 1);
    __shared__ __align__(16) float tile[2][Bands][cells];
    const int column = threadIdx.x % 16 * 4, line = threadIdx.x / 16;
    const int x0 = blockIdx.x * tile_samples, y0 = blockIdx.y * Lines;

    Stage<cells, threads, Bands> stage;
#pragma unroll
    for (int i = 0; i < stage.per_thread; ++i) {
        const int cell = static_cast<int>(threadIdx.x) + i * threads;
        stage.place(i, d, x0 - D + cell % pitch, y0 + cell / pitch);
    }
    float sum[offsets][4] = {};
    stage.load(d, 0);
    stage.store(tile[0]);
    __syncthreads();
    int buffer = 0;
    bool first = true;
    const bool mine = y0 + line < d.domain_lines && x0 + column < d.pitch;
    for (int band = 0; band < d.bands; band += Bands) {
        const int next = band + Bands;
        const bool more = next < d.bands;
        if (more) stage.load(d, next);
#pragma unroll
        for (int k = 0; k < Bands; ++k) {
            const float* row = tile[buffer][k] + line * pitch + column;
            float centre[4];
            int o = 0;
#pragma unroll
            for (int a = 0; a <= D; ++a) {
                float v[4 * vectors];
                load_row<vectors>(v, row + a * pitch);
                if (a == 0) {
#pragma unroll
                    for (int j = 0; j < 4; ++j) centre[j] = v[D + j];
                }
#pragma unroll
                for (int b = (a == 0 ? 1 : -D); b <= D; ++b, ++o) {
#pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        const float difference = centre[j] - v[D + b + j];
                        sum[o][j] = fmaf(difference, difference, sum[o][j]);
                    }
                }
            }
        }
        if (more) stage.store(tile[buffer ^ 1]);
        __syncthreads();
        buffer ^= 1;
        if (more && next % segment != 0) continue;
        if (!more) {
            stage.store_scales(tile[0][0]);
            __syncthreads();
        }
        if (mine) {
            const float* scales = tile[0][0] + line * pitch + column;
            float own[4];
#pragma unroll
            for (int j = 0; j < 4; ++j) own[j] = scales[D + j];
            float* at = d.angles + static_cast<size_t>(y0 + line) * d.pitch + x0 + column;
            int o = 0;
#pragma unroll
            for (int a = 0; a <= D; ++a) {
#pragma unroll
                for (int b = (a == 0 ? 1 : -D); b <= D; ++b, ++o, at += d.angle_plane) {
                    flush(at, sum[o], first, !more, own, scales + a * pitch + D + b);
#pragma unroll
                    for (int j = 0; j < 4; ++j) sum[o][j] = 0;
                }
            }
        }
        first = false;
    }
}

/// Any window: `Groups` groups of warps share a tile; each takes the offsets (a, b), b = b0..b0+Offsets-1, of one row a
/// of the half window. blockIdx.z runs over groups of rows and, in wide windows, pieces of rows.
template <int Offsets, int Groups, int Lines, int Bands, int Blocks>
__global__ void __launch_bounds__(16 * Lines * Groups, Blocks)
    angles_rows_kernel(const Domain d, int half, int row_begin, int row_end, int pieces) {
    constexpr int group_threads = 16 * Lines, threads = group_threads * Groups;
    constexpr int pitch = round_up(tile_samples + Offsets - 1, 4), vectors = ceil_div(4 + Offsets - 1, 4);
    constexpr int centre_cells = tile_samples * Lines, cells = centre_cells + pitch * (Lines + Groups - 1);
    static_assert(group_threads % 32 == 0, "a warp must not be in two groups");
    __shared__ __align__(16) float tile[2][Bands][cells];
    const int group = threadIdx.x / group_threads, column = threadIdx.x % 16 * 4,
              line = threadIdx.x % group_threads / 16;
    const int x0 = blockIdx.x * tile_samples, y0 = blockIdx.y * Lines;
    const int b0 = -half + static_cast<int>(blockIdx.z) % pieces * Offsets;
    const int a0 = row_begin + static_cast<int>(blockIdx.z) / pieces * Groups, a = a0 + group;
    const bool active = a < row_end && !(a == 0 && b0 + Offsets - 1 <= 0);

    Stage<cells, threads, Bands> stage;
#pragma unroll
    for (int i = 0; i < stage.per_thread; ++i) {
        const int cell = static_cast<int>(threadIdx.x) + i * threads, other = cell - centre_cells;
        if (other < 0)
            stage.place(i, d, x0 + cell % tile_samples, y0 + cell / tile_samples);
        else
            stage.place(i, d, x0 + b0 + other % pitch, y0 + a0 + other / pitch);
    }
    const int centre_at = line * tile_samples + column, other_at = centre_cells + (line + group) * pitch + column;
    float sum[Offsets][4] = {};
    stage.load(d, 0);
    stage.store(tile[0]);
    __syncthreads();
    int buffer = 0;
    bool first = true;
    const bool mine = active && y0 + line < d.domain_lines && x0 + column < d.pitch;
    for (int band = 0; band < d.bands; band += Bands) {
        const int next = band + Bands;
        const bool more = next < d.bands;
        if (more) stage.load(d, next);
        if (active) {
#pragma unroll
            for (int k = 0; k < Bands; ++k) {
                float centre[4], v[4 * vectors];
                load_row<1>(centre, tile[buffer][k] + centre_at);
                load_row<vectors>(v, tile[buffer][k] + other_at);
#pragma unroll
                for (int o = 0; o < Offsets; ++o) {
#pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        const float difference = centre[j] - v[o + j];
                        sum[o][j] = fmaf(difference, difference, sum[o][j]);
                    }
                }
            }
        }
        if (more) stage.store(tile[buffer ^ 1]);
        __syncthreads();
        buffer ^= 1;
        if (more && next % segment != 0) continue;
        if (!more) {
            stage.store_scales(tile[0][0]);
            __syncthreads();
        }
        if (mine) {
            const float* scales = tile[0][0];
            float own[4];
#pragma unroll
            for (int j = 0; j < 4; ++j) own[j] = scales[centre_at + j];
            // Planes in the order of the half window, from row row_begin on: row 0 has b = 1..d only.
            const int before = a == 0 ? -half - 1
                                      : (row_begin == 0 ? half : 0) +
                                            (a - max(row_begin, 1)) * (2 * half + 1);
            float* at = d.angles + static_cast<ptrdiff_t>(before + b0 + half) * static_cast<ptrdiff_t>(d.angle_plane) +
                        static_cast<size_t>(y0 + line) * d.pitch + x0 + column;
#pragma unroll
            for (int o = 0; o < Offsets; ++o, at += d.angle_plane) {
                const int b = b0 + o;
                if (b <= half && (a > 0 || b > 0)) flush(at, sum[o], first, !more, own, scales + other_at + o);
#pragma unroll
                for (int j = 0; j < 4; ++j) sum[o][j] = 0;
            }
        }
        first = false;
    }
}

/// Adds the weighted angles of one batch (rows [row_begin, row_end) of the half window) to each pixel of the core, in
/// the order of the offsets: first the pair (p, p+o), then (p-o, p).
__global__ void gather_kernel(const float* __restrict__ angles, int pitch, size_t angle_plane, TileShape shape, int half,
                              int row_begin, int row_end, bool last, const double* __restrict__ weights,
                              const double* __restrict__ inverse, double* __restrict__ numerator,
                              double* __restrict__ denominator, float* __restrict__ alpha, int* __restrict__ list,
                              int* __restrict__ count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= shape.core_samples * shape.core_lines) return;
    const int x = shape.core_x + i % shape.core_samples, y = shape.core_y + i / shape.core_samples;
    double num = row_begin == 0 ? 0.0 : numerator[i], den = row_begin == 0 ? 0.0 : denominator[i];
    const float* plane = angles + static_cast<size_t>(y) * pitch + x;
    for (int a = row_begin; a < row_end; ++a) {
        const double* w = weights + a * (2 * half + 1) + half;
        const bool above = y - a >= 0;
#pragma unroll 4
        for (int b = (a == 0 ? 1 : -half); b <= half; ++b, plane += angle_plane) {
            const double weight = __ldg(w + b);
            const float forward = __ldg(plane);
            const float backward = above && x - b >= 0 && x - b < shape.samples
                                       ? __ldg(plane - static_cast<ptrdiff_t>(a) * pitch - b)
                                       : -1.0f;
            if (!(forward < 0)) num = fma(weight, static_cast<double>(forward), num), den += weight;
            if (!(backward < 0)) num = fma(weight, static_cast<double>(backward), num), den += weight;
        }
    }
    if (!last) {
        numerator[i] = num;
        denominator[i] = den;
        return;
    }
    float result = nanf("");
    if (inverse[y * shape.samples + x] != 0.0) {
        result = den > 0 ? static_cast<float>(num / den) : 0.0f;
        if (den > 0 && !(result >= double_below)) list[atomicAdd(count, 1)] = i;
    }
    alpha[i] = result;
}

/// alpha of listed pixels: a warp a pixel, a lane a neighbour. The sum over the lanes is a fixed tree.
__global__ void __launch_bounds__(128)
    double_angles_kernel(const float* __restrict__ cube, int bands, TileShape shape, int half,
                         const double* __restrict__ inverse, const int* __restrict__ list,
                         const int* __restrict__ count, float* __restrict__ alpha) {
    const int lane = threadIdx.x % 32, warps = gridDim.x * 4;
    const int width = 2 * half + 1, neighbours = width * width, todo = *count;
    const size_t plane = static_cast<size_t>(shape.samples) * shape.lines;
    for (int n = blockIdx.x * 4 + threadIdx.x / 32; n < todo; n += warps) {
        const int i = list[n];
        const int x = shape.core_x + i % shape.core_samples, y = shape.core_y + i / shape.core_samples;
        const int at = y * shape.samples + x;
        const double own = inverse[at];
        double num = 0, den = 0;
        for (int k = lane; k < neighbours; k += 32) {
            const int a = k / width - half, b = k % width - half;
            const int qx = x + b, qy = y + a;
            if ((a == 0 && b == 0) || qx < 0 || qx >= shape.samples || qy < 0 || qy >= shape.lines) continue;
            const int q = qy * shape.samples + qx;
            const double other = inverse[q];
            if (other == 0.0) continue;
            double apart = 0, together = 0; // |u-v|^2, |u+v|^2
            bool same = true;
#pragma unroll 4
            for (int s = 0; s < bands; ++s) {
                const float p_value = __ldg(cube + s * plane + at), q_value = __ldg(cube + s * plane + q);
                same = same && p_value == q_value;
                const double u = p_value * own, v = q_value * other;
                apart = fma(u - v, u - v, apart);
                together = fma(u + v, u + v, together);
            }
            const double weight = 1.0 / (a * a + b * b);
            if (!same) num = fma(weight, 2.0 * atan2(sqrt(apart), sqrt(together)), num);
            den += weight;
        }
        for (int step = 16; step > 0; step /= 2) {
            num += __shfl_xor_sync(everyone, num, step);
            den += __shfl_xor_sync(everyone, den, step);
        }
        if (lane == 0) alpha[i] = static_cast<float>(num / den);
    }
}

__global__ void rho_kernel(const float* __restrict__ alpha, int pixels, float* __restrict__ rho,
                           float* __restrict__ scale) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= pixels) return;
    const double root = 1.0 + sqrt(static_cast<double>(alpha[i]));
    if (rho) rho[i] = static_cast<float>(root * root);
    scale[i] = static_cast<float>(1.0 / (root * root));
}

// --------------------------------------------------------------------------------------------- displacement

constexpr int displacement_bands = 32; // of one thread

__global__ void __launch_bounds__(256)
    displacement_kernel(const float* __restrict__ cube, int bands, size_t plane, TileShape shape,
                        const float* __restrict__ scale, const float2* __restrict__ centroid, float* __restrict__ out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int pixels = shape.core_samples * shape.core_lines;
    if (i >= pixels) return;
    const int x = shape.core_x + i % shape.core_samples, y = shape.core_y + i / shape.core_samples;
    const int begin = blockIdx.y * displacement_bands, end = min(bands, begin + displacement_bands);
    const float k = scale[i];
    const float* from = cube + begin * plane + static_cast<size_t>(y) * shape.samples + x;
    float* to = out + static_cast<size_t>(begin) * pixels + i;
#pragma unroll 8
    for (int b = begin; b < end; ++b, from += plane, to += pixels) {
        const float2 c = __ldg(centroid + b);
        const float away = (__ldcs(from) - c.x) - c.y;
        __stcs(to, fmaf(away, k, c.y) + c.x);
    }
}

// ----------------------------------------------------------------------------------------------- statistics
//
// A warp a band of a block. Lane l has samples l, l+32, l+64, l+96 of every line: four sums in double precision, added
// over the lines, then in order, then over the lanes by a fixed tree. Bit 4*line+k of a flag is sample l+32k.

constexpr int block_samples = 128, block_lines = 16;

struct BlockPosition {
    int x, y, samples, lines;
    __device__ BlockPosition(int block, int across, int all_samples, int all_lines)
        : x(block % across * block_samples), y(block / across * block_lines),
          samples(min(block_samples, all_samples - x)), lines(min(block_lines, all_lines - y)) {}
};

__device__ __forceinline__ double lane_tree(double v) {
    for (int step = 16; step > 0; step /= 2) v += __shfl_xor_sync(everyone, v, step);
    return v;
}
__device__ __forceinline__ int lane_tree(int v) {
    for (int step = 16; step > 0; step /= 2) v += __shfl_xor_sync(everyone, v, step);
    return v;
}

/// Sums of the finite values and, in flags, which pixels have a value that is not finite (first 32) and which have one
/// that is finite and not zero (last 32).
__global__ void __launch_bounds__(256)
    block_sums_kernel(const float* __restrict__ cube, int bands, int samples, int lines, int across,
                      double* __restrict__ sums, int* __restrict__ finite, uint64_t* __restrict__ flags) {
    __shared__ unsigned long long shared_flags[statistics_flags];
    const BlockPosition at(blockIdx.x, across, samples, lines);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (threadIdx.x < statistics_flags) shared_flags[threadIdx.x] = 0;
    __syncthreads();
    const size_t plane = static_cast<size_t>(samples) * lines;
    unsigned long long bad = 0, nonzero = 0;
    for (int band = blockIdx.y * 8 + warp; band < bands; band += gridDim.y * 8) {
        const float* p = cube + band * plane + static_cast<size_t>(at.y) * samples + at.x + lane;
        double sum[4] = {};
        int count = 0;
#pragma unroll 4
        for (int line = 0; line < at.lines; ++line, p += samples) {
            unsigned bad4 = 0, nonzero4 = 0;
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                const bool there = lane + 32 * k < at.samples;
                const float v = there ? __ldg(p + 32 * k) : 0.0f;
                const bool is_finite = isfinite(v);
                sum[k] += is_finite ? static_cast<double>(v) : 0.0;
                bad4 |= is_finite ? 0u : 1u << k;
                nonzero4 |= is_finite && v != 0.0f ? 1u << k : 0u;
                count += there && is_finite;
            }
            bad |= static_cast<unsigned long long>(bad4) << (4 * line);
            nonzero |= static_cast<unsigned long long>(nonzero4) << (4 * line);
        }
        const double total = lane_tree((sum[0] + sum[1]) + (sum[2] + sum[3]));
        const int finite_count = lane_tree(count);
        if (lane == 0) {
            sums[static_cast<size_t>(blockIdx.x) * bands + band] = total;
            finite[static_cast<size_t>(blockIdx.x) * bands + band] = finite_count;
        }
    }
    atomicOr(&shared_flags[lane], bad);
    atomicOr(&shared_flags[32 + lane], nonzero);
    __syncthreads();
    if (threadIdx.x < statistics_flags && shared_flags[threadIdx.x])
        atomicOr(reinterpret_cast<unsigned long long*>(flags) + blockIdx.x * statistics_flags + threadIdx.x,
                 shared_flags[threadIdx.x]);
}

/// Counts the valid pixels of each block; where an invalid pixel has added something to the sums, takes them again
/// without it, in the same order.
__global__ void __launch_bounds__(256)
    block_repair_kernel(const float* __restrict__ cube, int bands, int samples, int lines, int across,
                        double* __restrict__ sums, int* __restrict__ valid, const uint64_t* __restrict__ flags) {
    const BlockPosition at(blockIdx.x, across, samples, lines);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const uint64_t bad = flags[blockIdx.x * statistics_flags + lane],
                   nonzero = flags[blockIdx.x * statistics_flags + 32 + lane];
    const uint64_t good = nonzero & ~bad;
    if (blockIdx.y == 0 && warp == 0) {
        const int n = lane_tree(__popcll(good));
        if (lane == 0) valid[blockIdx.x] = n;
    }
    if (!__any_sync(everyone, (bad & nonzero) != 0)) return;
    const size_t plane = static_cast<size_t>(samples) * lines;
    for (int band = blockIdx.y * 8 + warp; band < bands; band += gridDim.y * 8) {
        const float* p = cube + band * plane + static_cast<size_t>(at.y) * samples + at.x + lane;
        double sum[4] = {};
        for (int line = 0; line < at.lines; ++line, p += samples) {
#pragma unroll
            for (int k = 0; k < 4; ++k)
                sum[k] += (good >> (4 * line + k)) & 1 ? static_cast<double>(__ldg(p + 32 * k)) : 0.0;
        }
        const double total = lane_tree((sum[0] + sum[1]) + (sum[2] + sum[3]));
        if (lane == 0) sums[static_cast<size_t>(blockIdx.x) * bands + band] = total;
    }
}

// ------------------------------------------------------------------------------------------------ dispatch

/// Offsets of the rows [begin, end) of the half window.
int offsets_in(int half, int begin, int end) {
    return (begin == 0 ? half : 0) + (end - std::max(begin, 1)) * (2 * half + 1);
}

/// How a window's offsets are shared out: rows of at most 15 offsets (in pieces when wider), `groups` rows a block.
struct RowPlan {
    int half, offsets, groups, pieces, batch_rows;
    explicit RowPlan(int window) : half(window / 2) {
        const int width = window;
        pieces = ceil_div(width, 15);
        offsets = ceil_div(width, pieces);
        offsets = offsets <= 7 ? 7 : round_up(offsets - 1, 2) + 1; // 7, 9, 11, 13, 15
        groups = offsets == 9 ? 5 : offsets == 11 ? 3 : 4;
        // A batch's angles take at most a kilobyte a pixel.
        batch_rows = std::max(groups, std::min(half + 1, 256 / width / groups * groups));
        if (offsets_in(half, 0, half + 1) <= 256) batch_rows = half + 1;
    }
};

template <int D, int Lines, int Bands, int Blocks>
void run_whole(const Domain& d, cudaStream_t stream) {
    const dim3 grid(ceil_div(d.samples, tile_samples), ceil_div(d.domain_lines, Lines));
    angles_whole_kernel<D, Lines, Bands, Blocks><<<grid, 16 * Lines, 0, stream>>>(d);
    HSI_CUDA_LAUNCHED("angles_whole_kernel");
}

template <int Offsets, int Groups, int Lines, int Bands, int Blocks>
void run_rows(const Domain& d, const RowPlan& plan, int row_begin, int row_end, cudaStream_t stream) {
    const dim3 grid(ceil_div(d.samples, tile_samples), ceil_div(d.domain_lines, Lines),
                    ceil_div(row_end - row_begin, Groups) * plan.pieces);
    angles_rows_kernel<Offsets, Groups, Lines, Bands, Blocks>
        <<<grid, 16 * Lines * Groups, 0, stream>>>(d, plan.half, row_begin, row_end, plan.pieces);
    HSI_CUDA_LAUNCHED("angles_rows_kernel");
}

} // namespace

AlphaSizes alpha_sizes(int window, int64_t window_samples, int64_t window_lines, int64_t core_pixels) {
    const RowPlan plan(window);
    const int rows = plan.half + 1;
    AlphaSizes s;
    s.inverse = static_cast<size_t>(window_samples * window_lines);
    int most = 0;
    for (int begin = 0; begin < rows; begin += plan.batch_rows)
        most = std::max(most, offsets_in(plan.half, begin, std::min(rows, begin + plan.batch_rows)));
    s.angles = static_cast<size_t>(most) * static_cast<size_t>((window_samples + 3) / 4 * 4 * window_lines);
    s.sums = plan.batch_rows < rows ? static_cast<size_t>(core_pixels) : 0;
    s.list = static_cast<size_t>(core_pixels);
    s.weights = static_cast<size_t>(rows * window);
    return s;
}

std::vector<double> half_window_weights(int window) {
    const int d = window / 2;
    std::vector<double> weights;
    for (int a = 0; a <= d; ++a)
        for (int b = -d; b <= d; ++b) weights.push_back(a == 0 && b == 0 ? 0.0 : 1.0 / (a * a + b * b));
    return weights;
}

std::vector<float2> split_centroid(const std::vector<double>& centroid) {
    std::vector<float2> parts;
    for (double c : centroid) {
        const auto high = static_cast<float>(c);
        parts.push_back(make_float2(high, static_cast<float>(c - static_cast<double>(high))));
    }
    return parts;
}

void launch_norms(const float* cube, int bands, int pixels, double* inverse, float* inverse_single,
                  cudaStream_t stream) {
    norms_kernel<<<ceil_div(pixels, 32), dim3(32, norm_slices), 0, stream>>>(cube, bands, pixels, inverse,
                                                                           inverse_single);
    HSI_CUDA_LAUNCHED("norms_kernel");
}

void launch_angles(const AlphaWork& work, cudaStream_t stream) {
    const TileShape& t = work.shape;
    const RowPlan plan(work.window);
    Domain d{};
    d.cube = work.cube;
    d.plane = static_cast<size_t>(t.pixels());
    d.bands = work.bands;
    d.samples = t.samples;
    d.lines = t.lines;
    d.domain_lines = t.core_y + t.core_lines;
    d.inverse = work.inverse_single;
    d.angles = work.angles;
    d.pitch = round_up(t.samples, 4);
    d.angle_plane = static_cast<size_t>(d.pitch) * static_cast<size_t>(d.domain_lines);
    HSI_CUDA_CHECK(cudaMemsetAsync(work.count, 0, sizeof(int), stream));

    const int rows = plan.half + 1, pixels = t.core_pixels();
    const bool whole = plan.half <= 3 && work.kernel != AngleKernel::rows;
    for (int begin = 0; begin < rows; begin += plan.batch_rows) {
        const int end = std::min(rows, begin + plan.batch_rows);
        if (whole) {
            if (plan.half == 1) run_whole<1, 8, 4, 6>(d, stream);
            else if (plan.half == 2) run_whole<2, 8, 4, 4>(d, stream);
            else run_whole<3, 8, 2, 3>(d, stream);
        } else {
            switch (plan.offsets) {
            case 7: run_rows<7, 4, 8, 4, 2>(d, plan, begin, end, stream); break;
            case 9: run_rows<9, 5, 8, 4, 1>(d, plan, begin, end, stream); break;
            case 11: run_rows<11, 3, 8, 4, 1>(d, plan, begin, end, stream); break;
            case 13: run_rows<13, 4, 8, 4, 1>(d, plan, begin, end, stream); break;
            default: run_rows<15, 4, 8, 4, 1>(d, plan, begin, end, stream); break;
            }
        }
        gather_kernel<<<ceil_div(pixels, 128), 128, 0, stream>>>(
            work.angles, d.pitch, d.angle_plane, t, plan.half, begin, end, end == rows, work.weights, work.inverse,
            work.numerator, work.denominator, work.alpha, work.list, work.count);
        HSI_CUDA_LAUNCHED("gather_kernel");
    }
}

void launch_double_angles(const AlphaWork& work, cudaStream_t stream) {
    const int blocks = std::min(1056, ceil_div(work.shape.core_pixels(), 4));
    double_angles_kernel<<<blocks, 128, 0, stream>>>(work.cube, work.bands, work.shape, work.window / 2, work.inverse,
                                                     work.list, work.count, work.alpha);
    HSI_CUDA_LAUNCHED("double_angles_kernel");
}

void launch_rho(const AlphaWork& work, cudaStream_t stream) {
    const int pixels = work.shape.core_pixels();
    rho_kernel<<<ceil_div(pixels, 256), 256, 0, stream>>>(work.alpha, pixels, work.rho, work.scale);
    HSI_CUDA_LAUNCHED("rho_kernel");
}

void launch_alpha(const AlphaWork& work, cudaStream_t stream) {
    launch_norms(work.cube, work.bands, work.shape.pixels(), work.inverse, work.inverse_single, stream);
    launch_angles(work, stream);
    launch_double_angles(work, stream);
    launch_rho(work, stream);
}

void launch_displacement(const float* cube, int bands, const TileShape& shape, const float* scale,
                         const float2* centroid, float* out, cudaStream_t stream) {
    const dim3 grid(ceil_div(shape.core_pixels(), 256), ceil_div(bands, displacement_bands));
    displacement_kernel<<<grid, 256, 0, stream>>>(cube, bands, static_cast<size_t>(shape.pixels()), shape, scale,
                                                  centroid, out);
    HSI_CUDA_LAUNCHED("displacement_kernel");
}

void launch_statistics(const StatisticsWork& work, cudaStream_t stream) {
    const BlockGrid blocks(work.samples, work.lines);
    HSI_CUDA_CHECK(cudaMemsetAsync(work.flags, 0, static_cast<size_t>(blocks.count()) * statistics_flags * 8, stream));
    const dim3 grid(blocks.count(), std::min(64, ceil_div(work.bands, 16)));
    block_sums_kernel<<<grid, 256, 0, stream>>>(work.cube, work.bands, work.samples, work.lines, blocks.across,
                                               work.sums, work.finite, work.flags);
    HSI_CUDA_LAUNCHED("block_sums_kernel");
    block_repair_kernel<<<grid, 256, 0, stream>>>(work.cube, work.bands, work.samples, work.lines, blocks.across,
                                                 work.sums, work.valid, work.flags);
    HSI_CUDA_LAUNCHED("block_repair_kernel");
}

} // namespace hsi::spp::gpu
