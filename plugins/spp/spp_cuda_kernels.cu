// SPDX-License-Identifier: MIT
#include "core/valid_pixel.h"
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

constexpr int norm_slices = 8; // number of threads that share the bands of a pixel

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
    for (int s = 1; s < norm_slices; ++s)
        sum += partial[s][lane];
    const bool valid = is_valid_sum(sum);
    inverse[pixel] = valid ? 1.0 / sqrt(sum) : 0.0;
    const bool in_range = sum >= 1e-60 && sum <= 1e60;
    inverse_single[pixel] = !valid ? 0.0f : in_range ? static_cast<float>(1.0 / sqrt(sum)) : nanf("");
}

// --------------------------------------------------------------------------------------------------- angles
//
// Angles are stored in one plane per offset. A plane covers the "domain": all samples of the window, and its
// lines down to the core's last line. The angle of pixel p and offset o is the angle between pixels p and p +
// o. The offsets o are half of the window, so each pair of pixels is computed once. An angle of -1 means that
// the pair is excluded. NaN means that single precision is not accurate enough.
// precision is not good enough here.

struct Domain {
    const float* cube;
    size_t plane; // number of elements between two bands
    int bands, samples, lines;
    int domain_lines;
    const float* inverse;
    float* angles;
    int pitch; // multiple of 4
    size_t angle_plane;
};

constexpr int tile_samples = 64; // samples per block of threads; each thread has 4 neighbouring samples
// Approximate number of bands per partial sum. Partial sums reduce rounding errors.
constexpr int segment = 256;

// The result is accurate to two units in the last place.
__device__ __forceinline__ float quick_sqrt(float x) {
    float r;
    asm("sqrt.approx.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}

/// Returns the angle 2 asin(|u-v|/2) from |u-v|^2. Up to 60 degrees, the function uses a polynomial (error
/// 2e-8). Beyond that, it uses asin(t) = pi/2 - 2 asin(sqrt((1-t)/2)). For |u-v|^2 above 3.5 (138 degrees),
/// the sine of the half angle is too inaccurate, and the result is NaN.
__device__ __forceinline__ float angle_of(float squared, float inverse_p, float inverse_q) {
    const bool wide = squared > 1.0f;
    const float half = 0.5f * quick_sqrt(squared);
    const float z = wide ? fmaf(-0.5f, half, 0.5f) : 0.25f * squared;
    const float r = wide ? quick_sqrt(z) : half;
    float p = 0.0382063128f;
    p = fmaf(p, z, 0.026494354f);
    p = fmaf(p, z, 0.0450106859f);
    p = fmaf(p, z, 0.0749880895f);
    p = fmaf(p, z, 0.166666731f);
    p = fmaf(p * z, r, r); // asin(r)
    float angle = wide ? fmaf(-4.0f, p, 3.14159265f) : 2.0f * p;
    if (!(squared <= 3.5f)) angle = nanf("");
    return inverse_p == 0.0f || inverse_q == 0.0f ? -1.0f : angle;
}

/// Adds the sums of 4 neighbouring pixels for one offset to the earlier partial sums. After the last part,
/// converts the sums to angles.
__device__ __forceinline__ void flush(float* at, const float (&sum)[4], bool first, bool last,
                                      const float* own, const float* other) {
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

// Shared memory is accessed by 32-bit addresses, so that the loops below need only one register for each
// position.
using SharedAddress = unsigned;

__device__ __forceinline__ SharedAddress address_of(const void* p) {
    auto address = static_cast<SharedAddress>(__cvta_generic_to_shared(p));
    // The address stays in a register instead of being computed at each use.
    asm volatile("" : "+r"(address));
    return address;
}
#if __CUDA_ARCH__ >= 800
template <int Bytes>
__device__ __forceinline__ void copy_async(SharedAddress to, const char* from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" : : "r"(to), "l"(from), "n"(Bytes) : "memory");
}
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int Pending>
__device__ __forceinline__ void wait_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}
#else // GPUs without asynchronous copies copy through registers.
template <int Bytes>
__device__ __forceinline__ void copy_async(SharedAddress to, const char* from) {
    if (Bytes == 8) {
        const float2 v = __ldg(reinterpret_cast<const float2*>(from));
        asm volatile("st.shared.v2.f32 [%0], {%1, %2};" : : "r"(to), "f"(v.x), "f"(v.y) : "memory");
    } else {
        asm volatile("st.shared.f32 [%0], %1;"
                     :
                     : "r"(to), "f"(__ldg(reinterpret_cast<const float*>(from)))
                     : "memory");
    }
}
__device__ __forceinline__ void commit_copies() {}
template <int Pending>
__device__ __forceinline__ void wait_copies() {}
#endif
template <int Vectors>
__device__ __forceinline__ void load_row(float (&v)[4 * Vectors], SharedAddress from) {
#pragma unroll
    for (int i = 0; i < Vectors; ++i)
        asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(v[4 * i]), "=f"(v[4 * i + 1]), "=f"(v[4 * i + 2]), "=f"(v[4 * i + 3])
                     : "r"(from + 16 * i));
}

/// Copies the values of Cells pixels to shared memory, in the order of the cube. Each copy transfers V
/// neighbouring values.
template <int Cells, int Threads, int V>
struct Loader {
    static constexpr int per_thread = ceil_div(Cells / V, Threads);
    unsigned offset[per_thread]; // offset in bytes within a band

    static __device__ __forceinline__ int cell(int i) {
        return (static_cast<int>(threadIdx.x) + i * Threads) * V;
    }
    static __device__ __forceinline__ bool exists(int i) { return i < per_thread - 1 || cell(i) < Cells; }
    /// Assigns pixels of the window, starting at (x, y), to this thread's i-th cell and the V-1 following
    /// cells. Pixels outside get arbitrary values with scale 0.
    __device__ __forceinline__ void place(int i, const Domain& d, int x, int y, float* scales) {
        const bool inside = x >= 0 && x < d.samples && y >= 0 && y < d.lines;
        const int pixel = inside ? y * d.samples + x : 0;
        offset[i] = static_cast<unsigned>(pixel) * 4u;
        if (exists(i)) {
#pragma unroll
            for (int v = 0; v < V; ++v)
                scales[cell(i) + v] = inside ? __ldg(d.inverse + pixel + v) : 0.0f;
        }
    }
    /// Starts copying the band at `from` to this thread's cells, which start at `to`.
    __device__ __forceinline__ void fetch(const char* from, SharedAddress to) const {
#pragma unroll
        for (int i = 0; i < per_thread; ++i)
            if (exists(i)) copy_async<4 * V>(to + 4 * V * Threads * i, from + offset[i]);
    }
};

/// Loops over bands. Shared memory holds Chunks chunks of Bands bands: one chunk is in use while the others
/// are being loaded. use(shift) adds one band to the sums; the band is `shift` bytes after the first band in
/// shared memory. put_aside(first, last) ends a segment of bands.
template <int Bands, int Chunks, int Cells, int Threads, int V, class Use, class PutAside>
__device__ __forceinline__ void over_bands(const Domain& d, const float* tile,
                                           const Loader<Cells, Threads, V>& loader, const Use& use,
                                           const PutAside& put_aside) {
    constexpr SharedAddress band_bytes = Cells * 4, chunk_bytes = Bands * band_bytes;
    const SharedAddress mine = address_of(tile + loader.cell(0));
    const size_t plane_bytes = d.plane * 4;
    const char* from = reinterpret_cast<const char*>(d.cube);
    int next = 0; // first band of the next chunk to load
    const auto start = [&](SharedAddress shift) {
        const int count = min(Bands, d.bands - next);
#pragma unroll 2
        for (int k = 0; k < count; ++k, from += plane_bytes)
            loader.fetch(from, mine + shift + k * band_bytes);
        next += Bands;
        commit_copies();
    };
#pragma unroll
    for (int i = 0; i < Chunks - 1; ++i)
        start(i * chunk_bytes);
    SharedAddress now = 0, free = (Chunks - 1) * chunk_bytes;
    bool first = true;
    int segment_end = segment;
    for (int band = 0; band < d.bands; band += Bands) {
        wait_copies<Chunks - 2>();
        // The chunk has arrived for all threads, and all threads have finished the previous chunk.
        __syncthreads();
        start(free);
        const int count = min(Bands, d.bands - band);
#pragma unroll 2
        for (int k = 0; k < count; ++k)
            use(now + k * band_bytes);
        free = now;
        now = now == (Chunks - 1) * chunk_bytes ? 0 : now + chunk_bytes;
        const bool last = band + Bands >= d.bands;
        if (last || band + Bands >= segment_end) {
            segment_end += segment;
            put_aside(first, last);
            first = false;
        }
    }
}

/// Computes the angles of small windows, d = D. A thread holds the sums of all 2D(D+1) offsets of its 4
/// pixels. The scales of a pixel and its neighbour are applied in the subtraction: |u-v|^2 = sum (y/|y| -
/// z/|z|)^2 takes two instructions per term.
template <int D, int Lines, int Bands, int Chunks, int Blocks, int V>
__global__ void __launch_bounds__(16 * Lines, Blocks) angles_whole_kernel(const Domain d) {
    constexpr int threads = 16 * Lines, left = round_up(D, V), skip = left - D;
    constexpr int vectors = ceil_div(skip + 4 + 2 * D, 4), pitch = tile_samples - 4 + 4 * vectors;
    constexpr int cells = pitch * (Lines + D), offsets = 2 * D * (D + 1);
    __shared__ __align__(16) float tile[Chunks][Bands][cells];
    __shared__ __align__(16) float scales[cells];
    const int column = threadIdx.x % 16 * 4, line = threadIdx.x / 16, at_cell = line * pitch + column;
    const int x0 = blockIdx.x * tile_samples, y0 = blockIdx.y * Lines;

    Loader<cells, threads, V> loader;
#pragma unroll
    for (int i = 0; i < loader.per_thread; ++i) {
        const int cell = loader.cell(i);
        loader.place(i, d, x0 - left + cell % pitch, y0 + cell / pitch, scales);
    }
    __syncthreads();
    float scale[D + 1][4 * vectors];
#pragma unroll
    for (int a = 0; a <= D; ++a)
        load_row<vectors>(scale[a], address_of(scales + at_cell) + 4 * a * pitch);
    const SharedAddress row = address_of(&tile[0][0][at_cell]);
    float sum[offsets][4] = {};
    const bool mine = y0 + line < d.domain_lines && x0 + column < d.pitch;

    over_bands<Bands, Chunks>(
        d, &tile[0][0][0], loader,
        [&](SharedAddress shift) {
            float centre[4];
            int o = 0;
#pragma unroll
            for (int a = 0; a <= D; ++a) {
                float v[4 * vectors];
                load_row<vectors>(v, row + shift + 4 * a * pitch);
                if (a == 0) {
#pragma unroll
                    for (int j = 0; j < 4; ++j)
                        centre[j] = v[left + j] * scale[0][left + j];
                }
#pragma unroll
                for (int b = (a == 0 ? 1 : -D); b <= D; ++b, ++o) {
#pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        const int q = left + b + j;
                        const float difference = fmaf(-scale[a][q], v[q], centre[j]);
                        sum[o][j] = fmaf(difference, difference, sum[o][j]);
                    }
                }
            }
        },
        [&](bool first, bool last) {
            float* at = d.angles + static_cast<size_t>(y0 + line) * d.pitch + x0 + column;
            int o = 0;
#pragma unroll
            for (int a = 0; a <= D; ++a) {
#pragma unroll
                for (int b = (a == 0 ? 1 : -D); b <= D; ++b, ++o, at += d.angle_plane) {
                    if (mine)
                        flush(at, sum[o], first, last, scales + at_cell + left,
                              scales + at_cell + a * pitch + left + b);
#pragma unroll
                    for (int j = 0; j < 4; ++j)
                        sum[o][j] = 0;
                }
            }
        });
}

/// Computes the angles of larger windows. `Groups` groups of warps share a tile. Each group processes the
/// offsets (a, b), b = b0..b0+Offsets-1, of one row a of the half window. blockIdx.z counts the rows of the
/// half window and, in wide windows, the pieces of rows.
template <int Offsets, int Groups, int Lines, int Bands, int Chunks, int Blocks, int V>
__global__ void __launch_bounds__(16 * Lines * Groups, Blocks)
    angles_rows_kernel(const Domain d, int half, int row_begin, int row_end, int pieces) {
    constexpr int group_threads = 16 * Lines, threads = group_threads * Groups;
    // If V = 2, b0 is -Offsets/2, and copies start at even samples.
    constexpr int skip = V == 1 ? 0 : Offsets / 2 % V;
    constexpr int vectors = ceil_div(skip + 4 + Offsets - 1, 4), pitch = tile_samples - 4 + 4 * vectors;
    constexpr int centre_cells = tile_samples * Lines, cells = centre_cells + pitch * (Lines + Groups - 1);
    static_assert(group_threads % 32 == 0, "a warp must not be in two groups");
    __shared__ __align__(16) float tile[Chunks][Bands][cells];
    __shared__ __align__(16) float scales[cells];
    const int group = threadIdx.x / group_threads, column = threadIdx.x % 16 * 4,
              line = threadIdx.x % group_threads / 16;
    const int x0 = blockIdx.x * tile_samples, y0 = blockIdx.y * Lines;
    const int b0 = -half + static_cast<int>(blockIdx.z) % pieces * Offsets;
    const int a0 = row_begin + static_cast<int>(blockIdx.z) / pieces * Groups, a = a0 + group;
    const bool active = a < row_end && !(a == 0 && b0 + Offsets - 1 <= 0);

    Loader<cells, threads, V> loader;
#pragma unroll
    for (int i = 0; i < loader.per_thread; ++i) {
        const int cell = loader.cell(i), other = cell - centre_cells;
        if (other < 0)
            loader.place(i, d, x0 + cell % tile_samples, y0 + cell / tile_samples, scales);
        else
            loader.place(i, d, x0 + b0 - skip + other % pitch, y0 + a0 + other / pitch, scales);
    }
    __syncthreads();
    const int centre_at = line * tile_samples + column,
              other_at = centre_cells + (line + group) * pitch + column;
    float own[4], scale[4 * vectors];
    load_row<1>(own, address_of(scales + centre_at));
    load_row<vectors>(scale, address_of(scales + other_at));
    const SharedAddress centre_row = address_of(&tile[0][0][centre_at]),
                        other_row = address_of(&tile[0][0][other_at]);
    float sum[Offsets][4] = {};
    const bool mine = active && y0 + line < d.domain_lines && x0 + column < d.pitch;

    over_bands<Bands, Chunks>(
        d, &tile[0][0][0], loader,
        [&](SharedAddress shift) {
            if (!active) return;
            float centre[4];
            load_row<1>(centre, centre_row + shift);
#pragma unroll
            for (int j = 0; j < 4; ++j)
                centre[j] *= own[j];
            float v[4 * vectors];
            load_row<vectors>(v, other_row + shift);
#pragma unroll
            for (int o = 0; o < Offsets; ++o) {
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    const int q = skip + o + j;
                    const float difference = fmaf(-scale[q], v[q], centre[j]);
                    sum[o][j] = fmaf(difference, difference, sum[o][j]);
                }
            }
        },
        [&](bool first, bool last) {
            // Planes are in the order of the half window, starting at row row_begin. Row 0 has only b = 1..d.
            const int before =
                a == 0 ? -half - 1 : (row_begin == 0 ? half : 0) + (a - max(row_begin, 1)) * (2 * half + 1);
            float* at = d.angles +
                        static_cast<ptrdiff_t>(before + b0 + half) * static_cast<ptrdiff_t>(d.angle_plane) +
                        static_cast<ptrdiff_t>(y0 + line) * d.pitch + x0 + column;
#pragma unroll
            for (int o = 0; o < Offsets; ++o, at += d.angle_plane) {
                const int b = b0 + o;
                if (mine && b <= half && (a > 0 || b > 0))
                    flush(at, sum[o], first, last, scales + centre_at, scales + other_at + skip + o);
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    sum[o][j] = 0;
            }
        });
}

struct Results {
    float *alpha, *rho, *scale;
    /// Stores alpha, rho (eq. 4) and 1/rho; `rho` may be null.
    __device__ __forceinline__ void set(int i, float a) const {
        const double root = 1.0 + sqrt(static_cast<double>(a));
        alpha[i] = a;
        if (rho) rho[i] = static_cast<float>(root * root);
        scale[i] = static_cast<float>(1.0 / (root * root));
    }
};

/// Adds the weighted angles of one batch (rows [row_begin, row_end) of the half window) to each pixel of the
/// core, in the order of the offsets. For each offset, the pair (p, p+o) comes before the pair (p-o, p).
__global__ void gather_kernel(const float* __restrict__ angles, int pitch, size_t angle_plane,
                              TileShape shape, int half, int row_begin, int row_end, bool last,
                              const double* __restrict__ weights, const double* __restrict__ inverse,
                              double* __restrict__ numerator, double* __restrict__ denominator,
                              Results results, int* __restrict__ list, int* __restrict__ count) {
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
    results.set(i, result);
}

/// Computes alpha of the listed pixels, one pixel per warp and one neighbour per lane. The sum over the lanes
/// has a fixed order.
__global__ void __launch_bounds__(128)
    double_angles_kernel(const float* __restrict__ cube, int bands, TileShape shape, int half,
                         const double* __restrict__ inverse, const int* __restrict__ list,
                         const int* __restrict__ count, Results results) {
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
            double apart = 0, together = 0; // |u-v|^2 and |u+v|^2
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
        if (lane == 0) results.set(i, static_cast<float>(num / den));
    }
}

// --------------------------------------------------------------------------------------------- displacement

constexpr int displacement_bands = 16; // bands per thread

__device__ __forceinline__ float displaced(float y, float k, float2 c) {
    return fmaf((y - c.x) - c.y, k, c.y) + c.x;
}

/// Computes the displacement for any core, one pixel per thread.
__global__ void __launch_bounds__(256)
    displacement_kernel(const float* __restrict__ cube, int bands, size_t plane, TileShape shape,
                        const float* __restrict__ scale, const float2* __restrict__ centroid,
                        float* __restrict__ out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int pixels = shape.core_samples * shape.core_lines;
    if (i >= pixels) return;
    const int x = shape.core_x + i % shape.core_samples, y = shape.core_y + i / shape.core_samples;
    const int begin = blockIdx.y * displacement_bands, end = min(bands, begin + displacement_bands);
    const float k = scale[i];
    const float* from = cube + begin * plane + static_cast<size_t>(y) * shape.samples + x;
    float* to = out + static_cast<size_t>(begin) * pixels + i;
#pragma unroll 8
    for (int b = begin; b < end; ++b, from += plane, to += pixels)
        __stcs(to, displaced(__ldcs(from), k, __ldg(centroid + b)));
}

/// Computes the displacement for cores as wide as their window. There, each band's pixels are contiguous and
/// aligned to four.
__global__ void __launch_bounds__(256)
    displacement4_kernel(const float* __restrict__ from, int bands, size_t plane, int pixels,
                         const float* __restrict__ scale, const float2* __restrict__ centroid,
                         float* __restrict__ out) {
    const int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= pixels) return;
    const int begin = blockIdx.y * displacement_bands, end = min(bands, begin + displacement_bands);
    const float4 k = *reinterpret_cast<const float4*>(scale + i);
    from += begin * plane + i;
    out += static_cast<size_t>(begin) * pixels + i;
#pragma unroll 4
    for (int b = begin; b < end; ++b, from += plane, out += pixels) {
        const float2 c = __ldg(centroid + b);
        const float4 y = __ldcs(reinterpret_cast<const float4*>(from));
        __stcs(reinterpret_cast<float4*>(out), make_float4(displaced(y.x, k.x, c), displaced(y.y, k.y, c),
                                                           displaced(y.z, k.z, c), displaced(y.w, k.w, c)));
    }
}

// ------------------------------------------------------------------------------------------------ dispatch

/// Returns the number of offsets in the rows [begin, end) of the half window.
int offsets_in(int half, int begin, int end) {
    return (begin == 0 ? half : 0) + (end - std::max(begin, 1)) * (2 * half + 1);
}

/// The division of a window's offsets in angles_rows_kernel. A row has at most 15 offsets; wider rows are cut
/// into pieces. A block processes `block_rows` rows. Large windows are processed in batches of rows, which
/// limits the memory for angles to about a kilobyte per pixel.
struct RowPlan {
    int half, pieces, offsets, block_rows, batch_rows;
    explicit RowPlan(int window)
        : half(window / 2), pieces(ceil_div(window, 15)), offsets(ceil_div(window, pieces) / 2 * 2 + 1),
          block_rows(offsets == 9    ? 5
                     : offsets == 11 ? 3
                                     : 4),
          batch_rows(offsets_in(half, 0, half + 1) <= 256
                         ? half + 1
                         : std::max(1, 256 / window / block_rows) * block_rows) {}
};

template <int D, int Lines, int Bands, int Chunks, int Blocks>
void run_whole(const Domain& d, bool pairs, cudaStream_t stream) {
    const dim3 grid(ceil_div(d.samples, tile_samples), ceil_div(d.domain_lines, Lines));
    if (pairs)
        angles_whole_kernel<D, Lines, Bands, Chunks, Blocks, 2><<<grid, 16 * Lines, 0, stream>>>(d);
    else
        angles_whole_kernel<D, Lines, Bands, Chunks, Blocks, 1><<<grid, 16 * Lines, 0, stream>>>(d);
    HSI_CUDA_LAUNCHED("angles_whole_kernel");
}

template <int Offsets, int Groups, int Lines, int Bands, int Chunks, int Blocks>
void run_rows(const Domain& d, bool pairs, const RowPlan& plan, int row_begin, int row_end,
              cudaStream_t stream) {
    const dim3 grid(ceil_div(d.samples, tile_samples), ceil_div(d.domain_lines, Lines),
                    ceil_div(row_end - row_begin, Groups) * plan.pieces);
    constexpr int threads = 16 * Lines * Groups;
    if (pairs && Offsets == 2 * plan.half + 1)
        angles_rows_kernel<Offsets, Groups, Lines, Bands, Chunks, Blocks, 2>
            <<<grid, threads, 0, stream>>>(d, plan.half, row_begin, row_end, plan.pieces);
    else
        angles_rows_kernel<Offsets, Groups, Lines, Bands, Chunks, Blocks, 1>
            <<<grid, threads, 0, stream>>>(d, plan.half, row_begin, row_end, plan.pieces);
    HSI_CUDA_LAUNCHED("angles_rows_kernel");
}

/// Selects the tile lines, bands per chunk, chunks, and blocks per multiprocessor. These values were the
/// fastest on an H200.
void run_angles(const Domain& d, bool pairs, const RowPlan& plan, int row_begin, int row_end,
                cudaStream_t stream) {
    switch (plan.half) {
    case 1:
        return run_whole<1, 8, 2, 4, 8>(d, pairs, stream);
    case 2:
        return run_whole<2, 8, 8, 2, 4>(d, pairs, stream);
    case 3:
        return run_whole<3, 8, 4, 3, 2>(d, pairs, stream);
    default:
        break;
    }
    switch (plan.offsets) {
    case 9:
        return run_rows<9, 5, 4, 6, 2, 2>(d, pairs, plan, row_begin, row_end, stream);
    case 11:
        return run_rows<11, 3, 4, 6, 2, 2>(d, pairs, plan, row_begin, row_end, stream);
    case 13:
        return run_rows<13, 4, 4, 6, 2, 2>(d, pairs, plan, row_begin, row_end, stream);
    default:
        return run_rows<15, 4, 4, 6, 2, 2>(d, pairs, plan, row_begin, row_end, stream);
    }
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
        for (int b = -d; b <= d; ++b)
            weights.push_back(a == 0 && b == 0 ? 0.0 : 1.0 / (a * a + b * b));
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
    // A copy can transfer two pixels at once if lines start at even addresses.
    const bool pairs = t.samples % 2 == 0 && reinterpret_cast<uintptr_t>(work.cube) % 8 == 0;
    for (int begin = 0; begin < rows; begin += plan.batch_rows) {
        const int end = std::min(rows, begin + plan.batch_rows);
        run_angles(d, pairs, plan, begin, end, stream);
        gather_kernel<<<ceil_div(pixels, 128), 128, 0, stream>>>(
            work.angles, d.pitch, d.angle_plane, t, plan.half, begin, end, end == rows, work.weights,
            work.inverse, work.numerator, work.denominator, Results{work.alpha, work.rho, work.scale},
            work.list, work.count);
        HSI_CUDA_LAUNCHED("gather_kernel");
    }
}

void launch_double_angles(const AlphaWork& work, cudaStream_t stream) {
    const int blocks = std::min(1056, ceil_div(work.shape.core_pixels(), 4));
    double_angles_kernel<<<blocks, 128, 0, stream>>>(work.cube, work.bands, work.shape, work.window / 2,
                                                     work.inverse, work.list, work.count,
                                                     Results{work.alpha, work.rho, work.scale});
    HSI_CUDA_LAUNCHED("double_angles_kernel");
}

void launch_alpha(const AlphaWork& work, cudaStream_t stream) {
    launch_norms(work.cube, work.bands, work.shape.pixels(), work.inverse, work.inverse_single, stream);
    launch_angles(work, stream);
    launch_double_angles(work, stream);
}

void launch_displacement(const float* cube, int bands, const TileShape& shape, const float* scale,
                         const float2* centroid, float* out, cudaStream_t stream) {
    const int pixels = shape.core_pixels(), groups = ceil_div(bands, displacement_bands);
    const auto plane = static_cast<size_t>(shape.pixels());
    const float* first = cube + static_cast<size_t>(shape.core_y) * static_cast<size_t>(shape.samples);
    const bool aligned = reinterpret_cast<uintptr_t>(first) % 16 == 0 && plane % 4 == 0 && pixels % 4 == 0;
    if (shape.core_samples == shape.samples && aligned) {
        displacement4_kernel<<<dim3(ceil_div(pixels, 1024), groups), 256, 0, stream>>>(
            first, bands, plane, pixels, scale, centroid, out);
        HSI_CUDA_LAUNCHED("displacement4_kernel");
    } else {
        displacement_kernel<<<dim3(ceil_div(pixels, 256), groups), 256, 0, stream>>>(
            cube, bands, plane, shape, scale, centroid, out);
        HSI_CUDA_LAUNCHED("displacement_kernel");
    }
}

} // namespace hsi::spp::gpu
