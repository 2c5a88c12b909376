// SPDX-License-Identifier: MIT
#include "cuda/check.h"
#include "cuda/pinned.h"
#include "sahic/mrf_cuda_kernels.cuh"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

namespace hsi::sahic::gpu {
namespace {

constexpr int tile_w = 32, tile_h = 8; ///< pixels per block of the kernel `step`
constexpr int column_group = 16;       ///< frequencies per block of the kernel `filter`
constexpr int segment = 10;            ///< lines per thread of the kernel `filter`; 0.382^20 is 4e-9
constexpr int64_t reach = 16;          ///< minimum number of values that extend a line; 0.382^16 is 2e-7
constexpr int segments = 16;           ///< segments of a column per block of the kernel `filter`
constexpr int residual_threads = 128;

unsigned blocks_of(int64_t n, int64_t each) { return static_cast<unsigned>((n + each - 1) / each); }
int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

/// A rectangle that kernels can read.
struct Core {
    int x, y, right, bottom;
};
Core core_of(const Rect& r) {
    return {static_cast<int>(r.x), static_cast<int>(r.y), static_cast<int>(r.right()),
            static_cast<int>(r.bottom())};
}

// Operators for the values of two classes, or for a complex number
__device__ __forceinline__ float2 operator+(float2 a, float2 b) { return {a.x + b.x, a.y + b.y}; }
__device__ __forceinline__ float2 operator-(float2 a, float2 b) { return {a.x - b.x, a.y - b.y}; }
__device__ __forceinline__ float2 operator*(float f, float2 a) { return {f * a.x, f * a.y}; }

/// The differences of a pixel to its right and lower neighbour, for two classes.
struct Pair {
    float2 h, v;
};

template <bool isotropic>
__device__ __forceinline__ void project_one(float& h, float& v, float limit) {
    if (isotropic) {
        const float square = fmaf(h, h, v * v);
        const float factor = square > limit * limit ? limit * rsqrtf(square) : 1.0f;
        h *= factor;
        v *= factor;
    } else {
        h = fminf(fmaxf(h, -limit), limit);
        v = fminf(fmaxf(v, -limit), limit);
    }
}

/// Projects the penalised differences onto the ball of radius `limit`.
template <bool isotropic>
__device__ __forceinline__ Pair project(Pair t, uint32_t flags, float limit) {
    if (!(flags & flag_h_counts)) t.h = {0.0f, 0.0f};
    if (!(flags & flag_v_counts)) t.v = {0.0f, 0.0f};
    project_one<isotropic>(t.h.x, t.v.x, limit);
    project_one<isotropic>(t.h.y, t.v.y, limit);
    return t;
}

/// The position of a pixel and its neighbours.
struct Site {
    /// Offsets in a plane; right and below are offsets in v4's planes.
    int at = 0, wide_at = 0, right = 0, below = 0;
    uint32_t flags = 0;
    float limit = 0;
    bool there = false;
};

__device__ __forceinline__ Site site_of(const MrfWork& w, int x, int y) {
    Site s;
    if (w.periodic) {
        if (x < 0) x += w.samples;
        if (y < 0) y += w.lines;
    }
    s.there = x >= 0 && y >= 0 && x < w.samples && y < w.lines;
    if (!s.there) return s;
    s.at = y * w.pitch + x;
    s.wide_at = y * w.n + x;
    s.right = y * w.n + (x + 1 < w.samples ? x + 1 : 0);
    s.below = (y + 1 < w.lines ? y + 1 : 0) * w.n + x;
    s.flags = w.flags[s.at];
    s.limit = w.threshold[s.at];
    return s;
}

/// The values at a pixel and its edges.
struct EdgeValues {
    float2 v4{0.0f, 0.0f}, right{0.0f, 0.0f}, below{0.0f, 0.0f};
    Pair old{{0.0f, 0.0f}, {0.0f, 0.0f}};
};

__device__ __forceinline__ EdgeValues read_edge(const Site& s, const float2* __restrict__ v4,
                                                const float2* __restrict__ t5h,
                                                const float2* __restrict__ t5v) {
    EdgeValues r;
    if (!s.there) return r;
    r.v4 = v4[s.wide_at];
    r.right = v4[s.right];
    r.below = v4[s.below];
    r.old = {t5h[s.at], t5v[s.at]};
    return r;
}

/// w = V5' + D5'. g is V5 + D5 of the previous step minus H V4, so that H'g = D4'.
struct Edge {
    Pair g, w, t5;
};

template <bool isotropic>
__device__ __forceinline__ Edge edge_of(const Site& s, const EdgeValues& e) {
    Edge r;
    const float2 none{0.0f, 0.0f};
    const Pair difference{s.flags & flag_h_exists ? e.right - e.v4 : none,
                          s.flags & flag_v_exists ? e.below - e.v4 : none};
    const Pair d = project<isotropic>(e.old, s.flags, s.limit); // -D5
    r.t5 = {difference.h + d.h, difference.v + d.v};
    const Pair next = project<isotropic>(r.t5, s.flags, s.limit); // -D5'
    r.g = {e.old.h - 2.0f * d.h - difference.h, e.old.v - 2.0f * d.v - difference.v};
    r.w = {r.t5.h - 2.0f * next.h, r.t5.v - 2.0f * next.v};
    return r;
}

/// Returns the sum of a value over a block of `count` threads, in thread 0. The order of additions is fixed.
__device__ double block_sum(double v, double* warps, int thread, int count) {
    for (int o = 16; o > 0; o /= 2)
        v += __shfl_down_sync(~0u, v, o);
    __syncthreads();
    if (thread % 32 == 0) warps[thread / 32] = v;
    __syncthreads();
    if (thread == 0)
        for (int i = 1; i < count / 32; ++i)
            v += warps[i];
    return v;
}

struct Next {
    float q, d1, t, rhs;
};

/// Computes the step of one pixel and class.
__device__ __forceinline__ Next next_of(float q, float p, float d1, float t, float v4, float d4,
                                        float divergence, float e, float mu, float inverse, bool valid,
                                        uint32_t fixed, uint32_t wanted) {
    const float v1 = valid ? fmaf(1.0f - mu, d1, p) : q; // V1 + D1; an invalid pixel has no data term
    Next r;
    r.q = 0.25f * ((v1 + fabsf(t)) + ((q + e) + (v4 + d4)));
    if (fixed) r.q = fixed == wanted ? 1.0f : 0.0f;
    r.d1 = valid ? inverse * ((d1 - r.q) + p) : 0.0f;
    r.t = r.q + fminf(t, 0.0f); // q - D2, D2 = max(-t, 0)
    r.rhs = (r.q - d4) + divergence;
    return r;
}

/// Computes one step. A block of threads processes tile_w x tile_h pixels of one pair of classes. Its first
/// threads also compute the edges to the left of the tile and above it.
template <bool isotropic, bool first, bool last>
__global__ void __launch_bounds__(tile_w* tile_h, 4) step(const MrfWork w, Core core, double* change_of) {
    struct Ends {
        float2 g, w;
    };
    __shared__ Ends across[tile_h][tile_w + 1], down[tile_h + 1][tile_w];
    const int tx = static_cast<int>(threadIdx.x), ty = static_cast<int>(threadIdx.y),
              thread = ty * tile_w + tx;
    const int x0 = static_cast<int>(blockIdx.x) * tile_w, y0 = static_cast<int>(blockIdx.y) * tile_h;
    const int pair = static_cast<int>(blockIdx.z);
    const size_t plane = static_cast<size_t>(pair) * w.plane(),
                 wide = static_cast<size_t>(pair) * w.wide_plane();
    const Site mine = site_of(w, x0 + tx, y0 + ty);
    const size_t at = plane + static_cast<size_t>(mine.at);
    // All loads come first, so that no load waits for another.
    EdgeValues values, outer_values;
    float2 q{0.0f, 0.0f}, p = q, d1 = q, t = q;
    float e = 0;
    if (mine.there) {
        if (first)
            values.v4 = w.v4[wide + static_cast<size_t>(mine.wide_at)];
        else
            values = read_edge(mine, w.v4 + wide, w.t5h_old + plane, w.t5v_old + plane);
        q = w.q[at];
        p = w.p[at];
        d1 = w.d1[at];
        t = w.t[at];
        e = w.e[mine.at];
    }
    float2 d4{0.0f, 0.0f}, divergence{0.0f, 0.0f};
    if (!first) {
        const bool above = thread < tile_w;
        if (thread < tile_w + tile_h) {
            const Site outer =
                above ? site_of(w, x0 + thread, y0 - 1) : site_of(w, x0 - 1, y0 + thread - tile_w);
            outer_values = read_edge(outer, w.v4 + wide, w.t5h_old + plane, w.t5v_old + plane);
            Edge edge;
            edge.g = edge.w = {{0.0f, 0.0f}, {0.0f, 0.0f}};
            if (outer.there) edge = edge_of<isotropic>(outer, outer_values);
            if (above)
                down[0][thread] = {edge.g.v, edge.w.v};
            else
                across[thread - tile_w][0] = {edge.g.h, edge.w.h};
        }
        Edge edge;
        edge.g = edge.w = {{0.0f, 0.0f}, {0.0f, 0.0f}};
        if (mine.there) {
            edge = edge_of<isotropic>(mine, values);
            w.t5h[at] = edge.t5.h;
            w.t5v[at] = edge.t5.v;
        }
        across[ty][tx + 1] = {edge.g.h, edge.w.h};
        down[ty + 1][tx] = {edge.g.v, edge.w.v};
        __syncthreads();
        const Ends left = across[ty][tx], over = down[ty][tx];
        d4 = (left.g - edge.g.h) + (over.g - edge.g.v);
        divergence = (left.w - edge.w.h) + (over.w - edge.w.v);
    }
    double change = 0;
    if (mine.there) {
        const bool valid = mine.flags & flag_valid;
        const uint32_t fixed = mine.flags & 0xffffu, number = 2 * static_cast<uint32_t>(pair) + 1;
        const Next one = next_of(q.x, p.x, d1.x, t.x, values.v4.x, d4.x, divergence.x, e, w.mu, w.inverse,
                                 valid, fixed, number);
        Next two = next_of(q.y, p.y, d1.y, t.y, values.v4.y, d4.y, divergence.y, e, w.mu, w.inverse, valid,
                           fixed, number + 1);
        // If the number of classes is odd, the last class has no partner.
        if (static_cast<int>(number) == w.classes) two = {0.0f, 0.0f, 0.0f, 0.0f};
        w.q[at] = {one.q, two.q};
        w.d1[at] = {one.d1, two.d1};
        w.t[at] = {one.t, two.t};
        w.rhs[wide + static_cast<size_t>(mine.wide_at)] = {one.rhs, two.rhs};
        w.sum[at] = one.q + two.q;
        const int x = x0 + tx, y = y0 + ty;
        if (last && x >= core.x && x < core.right && y >= core.y && y < core.bottom) {
            const double dx = static_cast<double>(one.q) - static_cast<double>(q.x),
                         dy = static_cast<double>(two.q) - static_cast<double>(q.y);
            change = dx * dx + dy * dy;
        }
    }
    if (last) {
        __shared__ double warps[tile_w * tile_h / 32];
        change = block_sum(change, warps, thread, tile_w * tile_h);
        if (thread == 0) change_of[(blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x] = change;
    }
}

/// Computes b = (1 - sum of q)/K + D3 and e = 2 b - D3, and stores b as the new D3.
__device__ __forceinline__ void fold_pixel(const MrfWork& w, size_t i) {
    if (i >= w.plane()) return;
    float sum = 0;
    for (int k = 0; k < w.pairs; ++k)
        sum += w.sum[static_cast<size_t>(k) * w.plane() + i];
    const float before = w.d3[i], b = fmaf(1.0f - sum, 1.0f / static_cast<float>(w.classes), before);
    w.e[i] = 2.0f * b - before;
    w.d3[i] = b;
}

__global__ void fold(const MrfWork w) {
    fold_pixel(w, static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x);
}

/// Returns the index of the line (or sample) that replaces a line (or sample) beyond the border.
__device__ __forceinline__ int beyond(int i, int size, bool periodic) {
    if (i >= 0 && i < size) return i;
    const int period = periodic ? size : 2 * size;
    const int at = (i % period + period) % period;
    return at < size ? at : period - 1 - at;
}

// ---- The transform is self-sorting (Stockham), with one line in shared memory. The first stage reads device
// memory, and the last stage writes to device memory.

__device__ __forceinline__ float2 times(float2 a, float2 w) {
    return {fmaf(a.x, w.x, -a.y * w.y), fmaf(a.x, w.y, a.y * w.x)};
}
__device__ __forceinline__ float2 minus_i(float2 a) { return {a.y, -a.x}; }

template <int R>
__device__ __forceinline__ void dft(float2* v);

template <>
__device__ __forceinline__ void dft<3>(float2* v) {
    const float2 sum = v[1] + v[2], turn = 0.86602540378443864676f * minus_i(v[1] - v[2]),
                 half = v[0] - 0.5f * sum;
    v[0] = v[0] + sum;
    v[1] = half + turn;
    v[2] = half - turn;
}
template <>
__device__ __forceinline__ void dft<4>(float2* v) {
    const float2 s0 = v[0] + v[2], s1 = v[0] - v[2], s2 = v[1] + v[3], s3 = minus_i(v[1] - v[3]);
    v[0] = s0 + s2;
    v[1] = s1 + s3;
    v[2] = s0 - s2;
    v[3] = s1 - s3;
}
template <>
__device__ __forceinline__ void dft<5>(float2* v) {
    constexpr float c1 = 0.30901699437494742410f, c2 = -0.80901699437494742410f, n1 = 0.95105651629515357212f,
                    n2 = 0.58778525229247312917f;
    const float2 a = v[0], s1 = v[1] + v[4], s2 = v[2] + v[3], d1 = minus_i(v[1] - v[4]),
                 d2 = minus_i(v[2] - v[3]);
    const float2 m1 = a + (c1 * s1 + c2 * s2), m2 = a + (c2 * s1 + c1 * s2);
    const float2 t1 = n1 * d1 + n2 * d2, t2 = n2 * d1 - n1 * d2;
    v[0] = a + (s1 + s2);
    v[1] = m1 + t1;
    v[2] = m2 + t2;
    v[3] = m2 - t2;
    v[4] = m1 - t1;
}
template <>
__device__ __forceinline__ void dft<6>(float2* v) {
    constexpr float c = 0.86602540378443864676f;
    float2 even[3] = {v[0], v[2], v[4]}, odd[3] = {v[1], v[3], v[5]};
    dft<3>(even);
    dft<3>(odd);
    odd[1] = times(odd[1], {0.5f, -c});
    odd[2] = times(odd[2], {-0.5f, -c});
#pragma unroll
    for (int k = 0; k < 3; ++k) {
        v[k] = even[k] + odd[k];
        v[k + 3] = even[k] - odd[k];
    }
}
template <>
__device__ __forceinline__ void dft<8>(float2* v) {
    constexpr float c = 0.70710678118654752440f;
    float2 even[4] = {v[0], v[2], v[4], v[6]}, odd[4] = {v[1], v[3], v[5], v[7]};
    dft<4>(even);
    dft<4>(odd);
    odd[1] = c * float2{odd[1].x + odd[1].y, odd[1].y - odd[1].x};
    odd[2] = minus_i(odd[2]);
    odd[3] = c * float2{odd[3].y - odd[3].x, -odd[3].x - odd[3].y};
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        v[k] = even[k] + odd[k];
        v[k + 4] = even[k] - odd[k];
    }
}

/// Returns the position of a line's value in shared memory. A gap after every 16 values avoids bank
/// conflicts.
__device__ __forceinline__ int spread(int i) { return i + (i >> 4); }

/// The radices of the compiled transforms.
template <int N>
struct Radices;
#define HSI_TRANSFORM(N, ...)                                                                                \
    template <>                                                                                              \
    struct Radices<N> {                                                                                      \
        static constexpr int value[] = {__VA_ARGS__};                                                        \
        static constexpr int stages = sizeof(value) / sizeof(int);                                           \
        static constexpr int lines = N >= 2048 ? 1 : 2048 / N; /* of a block */                              \
        static constexpr int threads = N >= 2048 ? N / 8 : 256;                                              \
    }
HSI_TRANSFORM(64, 8, 8);
HSI_TRANSFORM(96, 6, 4, 4);
HSI_TRANSFORM(128, 8, 4, 4);
HSI_TRANSFORM(160, 8, 5, 4);
HSI_TRANSFORM(192, 8, 6, 4);
HSI_TRANSFORM(256, 8, 8, 4);
HSI_TRANSFORM(320, 8, 8, 5);
HSI_TRANSFORM(384, 8, 8, 6);
HSI_TRANSFORM(512, 8, 8, 8);
HSI_TRANSFORM(640, 8, 5, 4, 4);
HSI_TRANSFORM(768, 8, 6, 4, 4);
HSI_TRANSFORM(1024, 8, 8, 4, 4);
HSI_TRANSFORM(1280, 8, 8, 5, 4);
HSI_TRANSFORM(1536, 8, 8, 6, 4);
HSI_TRANSFORM(2048, 8, 8, 8, 4);
HSI_TRANSFORM(2560, 8, 8, 8, 5);
HSI_TRANSFORM(3072, 8, 8, 8, 6);
HSI_TRANSFORM(4096, 8, 8, 8, 8);
#undef HSI_TRANSFORM

/// Calls f(integral_constant) with the smallest compiled size that is at least `least`. Returns false if all
/// compiled sizes are smaller.
template <class F>
bool with_transform(int64_t least, const F& f) {
    const auto fits = [&](auto... sizes) {
        return ((decltype(sizes)::value >= least && (f(sizes), true)) || ...);
    };
#define HSI_SIZE(n) std::integral_constant<int, n>()
    return fits(HSI_SIZE(64), HSI_SIZE(96), HSI_SIZE(128), HSI_SIZE(160), HSI_SIZE(192), HSI_SIZE(256),
                HSI_SIZE(320), HSI_SIZE(384), HSI_SIZE(512), HSI_SIZE(640), HSI_SIZE(768), HSI_SIZE(1024),
                HSI_SIZE(1280), HSI_SIZE(1536), HSI_SIZE(2048), HSI_SIZE(2560), HSI_SIZE(3072),
                HSI_SIZE(4096));
#undef HSI_SIZE
}

struct LineWork {
    float2* data;       ///< device memory, first line of the block of threads
    const float2* from; ///< shared memory, [line][spread(N)]
    float2* to;
    const float2* roots; ///< exp(-2 pi i k/N)
    int lines, samples;  ///< number of existing lines and samples
    bool periodic;
};

/// Transforms a_k = x[b + k N/R], k = 0 .. R - 1, for all b. Writes the results to y[q + S (R p + j)] with b
/// = q + S p. Calls itself for the next stage.
template <int N, int Stage, int S, bool backward>
__device__ __forceinline__ void fft_stages(LineWork l) {
    using Plan = Radices<N>;
    constexpr int R = Plan::value[Stage], count = N / R;
    constexpr bool begins = Stage == 0, ends = Stage + 1 == Plan::stages;
    constexpr int size = N + N / 16;
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x); i < Plan::lines * count; i += Plan::threads) {
        const int line = i / count, b = i % count;
        const bool there = line < l.lines;
        float2* const data = l.data + line * N;
        float2 v[R];
#pragma unroll
        for (int k = 0; k < R; ++k) {
            const int x = b + k * count;
            if constexpr (!begins) {
                v[k] = l.from[line * size + spread(x)];
            } else if constexpr (backward) {
                v[k] = {there ? data[x].y : 0.0f, there ? data[x].x : 0.0f};
            } else {
                // Values after the end extend the line up to the middle of the gap. The rest of the gap has
                // the values that precede the start of the line.
                int at = x;
                if (x >= l.samples)
                    at = beyond(x - l.samples < (N - l.samples + 1) / 2 ? x : x - N, l.samples, l.periodic);
                v[k] = there ? data[at] : float2{0.0f, 0.0f};
            }
        }
        dft<R>(v);
        if constexpr (ends) {
#pragma unroll
            for (int j = 0; j < R; ++j) {
                const int x = b + S * j;
                if (!backward && there) data[x] = v[j];
                if (backward && there && x < l.samples) data[x] = {v[j].y, v[j].x};
            }
        } else {
            const int p = b / S, base = b + p * S * (R - 1);
            float2* const to = l.to + line * size;
            to[spread(base)] = v[0];
#pragma unroll
            for (int j = 1; j < R; ++j)
                to[spread(base + S * j)] = times(v[j], __ldg(l.roots + p * j * S));
        }
    }
    if constexpr (!ends) {
        __syncthreads();
        float2* const other = begins ? l.to + Plan::lines * size : const_cast<float2*>(l.from);
        l.from = l.to;
        l.to = other;
        fft_stages<N, Stage + 1, S * R, backward>(l);
    }
}

/// Transforms in place: lines of w.rhs to their spectra, or filtered spectra in w.v4 back to lines.
/// Additional blocks of threads process the sums of q.
template <int N, bool backward>
__global__ void __launch_bounds__(Radices<N>::threads)
    transform(const MrfWork w, const float2* __restrict__ roots, int line_blocks) {
    using Plan = Radices<N>;
    extern __shared__ float2 shared[]; // [2][line][N + N/16]
    if (static_cast<int>(blockIdx.x) >= line_blocks) {
        fold_pixel(w, static_cast<size_t>(static_cast<int>(blockIdx.x) - line_blocks) * Plan::threads +
                          threadIdx.x);
        return;
    }
    const int first = static_cast<int>(blockIdx.x) * Plan::lines;
    LineWork l;
    l.data = (backward ? w.v4 : w.rhs) + static_cast<size_t>(first) * N;
    l.from = nullptr;
    l.to = shared;
    l.roots = roots;
    l.lines = min(Plan::lines, w.pairs * w.lines - first);
    l.samples = w.samples;
    l.periodic = w.periodic;
    fft_stages<N, 0, 1, backward>(l);
}

/// Extends the lines of w.rhs beyond both ends, for cuFFT.
__global__ void lengthen(const MrfWork w) {
    const int i = w.samples + static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= w.n) return;
    float2* line = w.rhs + static_cast<size_t>(blockIdx.y) * static_cast<size_t>(w.n);
    for (int pair = 0; pair < w.pairs; ++pair, line += w.wide_plane())
        line[i] =
            line[beyond(i - w.samples < (w.n - w.samples + 1) / 2 ? i : i - w.n, w.samples, w.periodic)];
}

/// Solves the tridiagonal systems of column_group frequencies of one pair, for `count` segments of lines. It
/// applies a causal and then an anticausal filter with the pole z. A thread keeps one segment in registers.
/// The initial state of a segment follows from the ends of the two previous segments, since z^(2 segment) is
/// below rounding errors. The first two and the last two threads of a column process segments outside the
/// block's lines, and write nothing.
__global__ void filter(const MrfWork w, const float* __restrict__ pole, const float* __restrict__ gain,
                       int count) {
    extern __shared__ float2 ends[]; // [2][count + 4][column_group]
    const int f = static_cast<int>(blockIdx.x) * column_group + static_cast<int>(threadIdx.x);
    const int s = static_cast<int>(threadIdx.y), all = count + 4;
    const int first = (static_cast<int>(blockIdx.z) * count + s - 2) * segment;
    const bool active = f < w.n;
    const size_t base =
        static_cast<size_t>(blockIdx.y) * static_cast<size_t>(w.lines) * static_cast<size_t>(w.n) +
        static_cast<size_t>(f);
    const float2* in = w.rhs + base;
    float2 v[segment];
    const float z = active ? pole[f] : 0.0f;
    if (first >= 0 && first + segment <= w.lines) {
#pragma unroll
        for (int i = 0; i < segment; ++i)
            v[i] = active ? in[(first + i) * w.n] : make_float2(0, 0);
    } else {
#pragma unroll
        for (int i = 0; i < segment; ++i)
            v[i] = active ? in[beyond(first + i, w.lines, w.periodic) * w.n] : make_float2(0, 0);
    }
    const auto follow = [z](float2 state, float2 value) {
        return make_float2(fmaf(z, state.x, value.x), fmaf(z, state.y, value.y));
    };
    float far = z; // z^segment
#pragma unroll
    for (int i = 1; i < segment; ++i)
        far *= z;
    float2 end = v[0];
#pragma unroll
    for (int i = 1; i < segment; ++i)
        end = follow(end, v[i]);
    float2* causal = ends + threadIdx.x;
    float2* anticausal = causal + all * column_group;
    causal[s * column_group] = end;
    __syncthreads();
    float2 state = make_float2(0, 0);
    if (s > 0) state = causal[(s - 1) * column_group];
    if (s > 1) {
        const float2 more = causal[(s - 2) * column_group];
        state = make_float2(fmaf(far, more.x, state.x), fmaf(far, more.y, state.y));
    }
#pragma unroll
    for (int i = 0; i < segment; ++i)
        v[i] = state = follow(state, v[i]);
    end = v[segment - 1];
#pragma unroll
    for (int i = segment - 2; i >= 0; --i)
        end = follow(end, v[i]);
    anticausal[s * column_group] = end;
    __syncthreads();
    if (s < 2 || s >= all - 2 || !active) return;
    state = anticausal[(s + 1) * column_group];
    const float2 more = anticausal[(s + 2) * column_group];
    state = make_float2(fmaf(far, more.x, state.x), fmaf(far, more.y, state.y));
    float2* out = w.v4 + base;
    const float scale = gain[f];
#pragma unroll
    for (int i = segment - 1; i >= 0; --i) {
        state = follow(state, v[i]);
        if (first + i < w.lines) out[(first + i) * w.n] = make_float2(scale * state.x, scale * state.y);
    }
}

/// Converts p, weights and training pixels from the host's layout to the data of the first iteration.
__global__ void prepare(const MrfWork w, const float* __restrict__ p, const float* __restrict__ weight,
                        const uint16_t* __restrict__ fixed, float2* planes_p, double lambda, double mu) {
    const int x = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), y = static_cast<int>(blockIdx.y);
    if (x >= w.samples) return;
    const auto pixels = static_cast<size_t>(w.lines) * static_cast<size_t>(w.samples);
    const size_t from = static_cast<size_t>(y) * static_cast<size_t>(w.samples) + static_cast<size_t>(x);
    const auto valid_at = [&](int line, int sample) {
        return !isnan(
            p[static_cast<size_t>(line) * static_cast<size_t>(w.samples) + static_cast<size_t>(sample)]);
    };
    const bool valid = valid_at(y, x);
    const bool h = x + 1 < w.samples || w.periodic, v = y + 1 < w.lines || w.periodic;
    const bool h_counts = h && valid && valid_at(y, x + 1 < w.samples ? x + 1 : 0);
    const bool v_counts = v && valid && valid_at(y + 1 < w.lines ? y + 1 : 0, x);
    const size_t at = static_cast<size_t>(y) * static_cast<size_t>(w.pitch) + static_cast<size_t>(x);
    w.flags[at] = (valid && fixed ? fixed[from] : 0u) | (valid ? flag_valid : 0u) | (h ? flag_h_exists : 0u) |
                  (h_counts ? flag_h_counts : 0u) | (v ? flag_v_exists : 0u) |
                  (v_counts ? flag_v_counts : 0u);
    w.threshold[at] = static_cast<float>(lambda * static_cast<double>(weight[from]) / mu);
    w.d3[at] = w.e[at] = 0.0f;
    for (int pair = 0; pair < w.pairs; ++pair) {
        const auto value = [&](int k) {
            if (k >= w.classes) return 0.0f;
            return valid ? p[static_cast<size_t>(k) * pixels + from] : 1.0f / static_cast<float>(w.classes);
        };
        const size_t to = static_cast<size_t>(pair) * w.plane() + at;
        const float2 both{value(2 * pair), value(2 * pair + 1)};
        planes_p[to] = w.q[to] = w.t[to] = both;
        w.d1[to] = {0.0f, 0.0f};
        w.v4[static_cast<size_t>(pair) * w.wide_plane() + static_cast<size_t>(y) * static_cast<size_t>(w.n) +
             static_cast<size_t>(x)] = both;
    }
}

/// Copies q to packed planes.
__global__ void pack(const MrfWork w, float* out) {
    const int x = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), y = static_cast<int>(blockIdx.y);
    if (x >= w.samples) return;
    const auto pixels = static_cast<size_t>(w.lines) * static_cast<size_t>(w.samples);
    const size_t to = static_cast<size_t>(y) * static_cast<size_t>(w.samples) + static_cast<size_t>(x);
    const size_t at = static_cast<size_t>(y) * static_cast<size_t>(w.pitch) + static_cast<size_t>(x);
    for (int pair = 0; pair < w.pairs; ++pair) {
        const float2 q = w.q[static_cast<size_t>(pair) * w.plane() + at];
        out[static_cast<size_t>(2 * pair) * pixels + to] = q.x;
        if (2 * pair + 1 < w.classes) out[static_cast<size_t>(2 * pair + 1) * pixels + to] = q.y;
    }
}

/// Computes the residuals after the last iteration. Each thread processes one pixel of the core.
template <bool isotropic>
__global__ void residuals_kernel(const MrfWork w, Core core, double mu, PartialResiduals* partial) {
    __shared__ double warps[residual_threads / 32];
    const int64_t i = static_cast<int64_t>(blockIdx.x) * residual_threads + threadIdx.x;
    PartialResiduals r{};
    const int64_t width = core.right - core.x;
    if (i < width * (core.bottom - core.y)) {
        const int x = core.x + static_cast<int>(i % width), y = core.y + static_cast<int>(i / width);
        const Site s = site_of(w, x, y);
        const int right = y * w.pitch + (x + 1 < w.samples ? x + 1 : 0),
                  below = (y + 1 < w.lines ? y + 1 : 0) * w.pitch + x;
        const auto square = [](double v) { return v * v; };
        const bool valid = s.flags & flag_valid, ch = s.flags & flag_h_counts, cv = s.flags & flag_v_counts;
        const auto limit = static_cast<double>(s.limit);
        double sum = 0;
        for (int k = 0; k < w.classes; ++k) {
            const size_t plane = static_cast<size_t>(k / 2) * w.plane(),
                         wide = static_cast<size_t>(k / 2) * w.wide_plane();
            // Returns the value of one class of a pair.
            const auto of = [&](const float2* planes, size_t at) {
                return static_cast<double>(k % 2 ? planes[at].y : planes[at].x);
            };
            const auto at = plane + static_cast<size_t>(s.at);
            const double q = of(w.q, at), p = of(w.p, at);
            sum += q;
            if (valid) {
                r.v1 += square(q - (p - mu * of(w.d1, at))); // V1 = p - mu D1
                r.objective += 0.5 * square(q - p);
            }
            r.v2 += square(q - fmax(of(w.t, at), 0.0));
            const double here = of(w.v4, wide + static_cast<size_t>(s.wide_at));
            r.v4 += square(q - here);
            const double h =
                s.flags & flag_h_exists ? of(w.v4, wide + static_cast<size_t>(s.right)) - here : 0.0;
            const double v =
                s.flags & flag_v_exists ? of(w.v4, wide + static_cast<size_t>(s.below)) - here : 0.0;
            const Pair d = project<isotropic>({w.t5h[at], w.t5v[at]}, s.flags, s.limit); // -D5
            const double th = h + static_cast<double>(k % 2 ? d.h.y : d.h.x),
                         tv = v + static_cast<double>(k % 2 ? d.v.y : d.v.x);
            const double eh = ch ? th : 0.0, ev = cv ? tv : 0.0;
            const double gh = ch ? of(w.q, plane + static_cast<size_t>(right)) - q : 0.0,
                         gv = cv ? of(w.q, plane + static_cast<size_t>(below)) - q : 0.0;
            double nh, nv; // -D5'
            if (isotropic) {
                const double norm = hypot(eh, ev), factor = norm > limit ? limit / norm : 1.0;
                nh = eh * factor;
                nv = ev * factor;
                r.objective += mu * limit * hypot(gh, gv);
            } else {
                nh = fmin(fmax(eh, -limit), limit);
                nv = fmin(fmax(ev, -limit), limit);
                r.objective += mu * limit * (fabs(gh) + fabs(gv));
            }
            r.v5 += square(h - (th - nh)) + square(v - (tv - nv)); // V5 = t5 + D5'
        }
        r.v3 = square(1.0 - sum) / w.classes; // (V3 - q)^2, since V3 - q = (1 - sum of q)/K in every class
    }
    double* const each[] = {&r.v1, &r.v2, &r.v3, &r.v4, &r.v5, &r.objective};
    for (double* v : each)
        *v = block_sum(*v, warps, static_cast<int>(threadIdx.x), residual_threads);
    if (threadIdx.x == 0) partial[blockIdx.x] = r;
}

template <bool isotropic>
void launch_step_of(const MrfWork& w, bool first, bool last, const Core& core, double* change, dim3 grid,
                    cudaStream_t stream) {
    const dim3 block(tile_w, tile_h);
    if (first && last)
        step<isotropic, true, true><<<grid, block, 0, stream>>>(w, core, change);
    else if (first)
        step<isotropic, true, false><<<grid, block, 0, stream>>>(w, core, change);
    else if (last)
        step<isotropic, false, true><<<grid, block, 0, stream>>>(w, core, change);
    else
        step<isotropic, false, false><<<grid, block, 0, stream>>>(w, core, change);
    HSI_CUDA_LAUNCHED("step");
}

dim3 step_grid(int64_t samples, int64_t lines, int64_t pairs) {
    return {blocks_of(samples, tile_w), blocks_of(lines, tile_h), static_cast<unsigned>(pairs)};
}

/// Returns the number of lines per call of cuFFT. It is small enough to keep cuFFT's scratch memory small.
int64_t slab_lines(int64_t all, int64_t n) {
    constexpr int64_t values = int64_t{4} << 20;
    const int64_t count = std::max<int64_t>(1, (all * n + values - 1) / values);
    return (all + count - 1) / count;
}

/// Returns the first multiple of 8 that is at least `least` and has no prime factor above 7.
int64_t composite(int64_t least) {
    for (int64_t m = (least + 7) / 8;; ++m) {
        int64_t left = m;
        for (const int64_t factor : {2, 3, 5, 7})
            while (left % factor == 0)
                left /= factor;
        if (left == 1) return 8 * m;
    }
}

struct Sizes {
    int64_t pairs, pitch, n, plane, wide_all, slab;
    bool own;
    explicit Sizes(const MrfLimits& l) : pairs((l.classes + 1) / 2), pitch(round_up(l.samples, 8)) {
        const int64_t least = l.samples + 2 * reach;
        own = with_transform(least, [&](auto size) { n = size; });
        if (!own) n = composite(least);
        plane = l.lines * pitch;
        // All slabs for cuFFT have the same size, so there is some unused space after the last line.
        const int64_t all = pairs * l.lines;
        slab = slab_lines(all, n);
        wide_all = (own ? all : (all + slab - 1) / slab * slab) * n;
    }
};

} // namespace

/// The data that depend on the size of a window.
struct DeviceMrf::Shape {
    int lines = 0, samples = 0;
    bool periodic = false, own = false;
    int n = 0;
    int slabs = 0, slab = 0;
    cufftHandle plan = 0;
    bool planned = false;
    cuda::DeviceBuffer<float> pole, gain;
    cuda::DeviceBuffer<float2> roots;
    cudaGraphExec_t graph = nullptr;
    int graph_count = 0;

    Shape(int classes, int lines_, int samples_, bool periodic_)
        : lines(lines_), samples(samples_), periodic(periodic_) {
        const Sizes sizes({classes, lines, samples});
        own = sizes.own;
        n = static_cast<int>(sizes.n);
        std::vector<float> z, g;
        std::vector<float2> r;
        for (int k = 0; k < n; ++k) {
            const double angle = 2.0 * M_PI * k / n, d = 5.0 - 2.0 * std::cos(angle);
            const double root = (d - std::sqrt(d * d - 4.0)) / 2.0;
            z.push_back(static_cast<float>(root));
            g.push_back(static_cast<float>(root / n));
            r.push_back({static_cast<float>(std::cos(angle)), static_cast<float>(-std::sin(angle))});
        }
        pole = cuda::DeviceBuffer(z);
        gain = cuda::DeviceBuffer(g);
        roots = cuda::DeviceBuffer(r);
        if (own) return;
        slab = static_cast<int>(sizes.slab);
        slabs = static_cast<int>((sizes.pairs * lines + slab - 1) / slab);
        int size[1] = {n};
        HSI_CUFFT_CHECK(cufftPlanMany(&plan, 1, size, nullptr, 1, n, nullptr, 1, n, CUFFT_C2C, slab));
        planned = true;
    }
    Shape(const Shape&) = delete;
    Shape& operator=(const Shape&) = delete;
    ~Shape() {
        if (graph) cudaGraphExecDestroy(graph);
        if (planned) cufftDestroy(plan);
    }
};

uint64_t DeviceMrf::bytes(const MrfLimits& l) {
    const Sizes s(l);
    return static_cast<uint64_t>(8 * (8 * s.pairs * s.plane + 2 * s.wide_all) + 4 * s.plane * (4 + s.pairs) +
                                 (l.lines * l.samples / residual_threads + 1) *
                                     static_cast<int64_t>(sizeof(PartialResiduals)) +
                                 (l.lines / tile_h + 1) * (l.samples / tile_w + 1) * s.pairs * 8 +
                                 (s.own ? 0 : 2 * 8 * s.slab * s.n)) +
           (uint64_t{4} << 20);
}

DeviceMrf::DeviceMrf(const MrfOptions& options, const MrfLimits& limits)
    : m_options(options), m_limits(limits) {
    const Sizes s(limits);
    if (s.plane > std::numeric_limits<int>::max() || limits.lines * s.n > std::numeric_limits<int>::max() ||
        s.pairs * limits.lines > std::numeric_limits<int>::max() || limits.lines > 65535)
        throw Error("a window of " + std::to_string(limits.samples) + "x" + std::to_string(limits.lines) +
                        " pixels is too large for the GPU",
                    "Use a smaller -tile.");
    const auto plane = static_cast<size_t>(s.plane), pairs = static_cast<size_t>(s.pairs);
    m_state = cuda::DeviceBuffer<float2>(8 * pairs * plane);
    m_pixel = cuda::DeviceBuffer<float>((3 + pairs) * plane);
    m_flags = cuda::DeviceBuffer<uint32_t>(plane);
    m_rhs = cuda::DeviceBuffer<float2>(static_cast<size_t>(s.wide_all));
    m_v4 = cuda::DeviceBuffer<float2>(static_cast<size_t>(s.wide_all));
    const dim3 grid = step_grid(limits.samples, limits.lines, s.pairs);
    m_change = cuda::DeviceBuffer<double>(static_cast<size_t>(grid.x) * grid.y * grid.z);
    m_partial =
        cuda::DeviceBuffer<PartialResiduals>(blocks_of(limits.lines * limits.samples, residual_threads));
    // Transforms and sums also read the few values after the last line, which must be zero.
    HSI_CUDA_CHECK(cudaMemset(m_pixel.data(), 0, m_pixel.bytes()));
    HSI_CUDA_CHECK(cudaMemset(m_rhs.data(), 0, m_rhs.bytes()));
    HSI_CUDA_CHECK(cudaMemset(m_v4.data(), 0, m_v4.bytes()));
    m_host_change = HostBuffer<double>(m_change.size());
    m_host_partial = HostBuffer<PartialResiduals>(m_partial.size());
    // The memsets run on the default stream. The streams of the solvers do not wait for it, because they are
    // non-blocking.
    HSI_CUDA_CHECK(cudaDeviceSynchronize());
}

DeviceMrf::~DeviceMrf() = default;

void DeviceMrf::shape_for(const MrfProblem& p) {
    if (p.classes != m_limits.classes || p.samples > m_limits.samples || p.lines > m_limits.lines)
        throw Error("internal: an MRF tile is larger than was planned");
    const auto lines = static_cast<int>(p.lines), samples = static_cast<int>(p.samples);
    MrfWork& w = m_work;
    w.classes = p.classes;
    w.pairs = (p.classes + 1) / 2;
    m_shape = nullptr;
    for (const auto& s : m_shapes)
        if (s->lines == lines && s->samples == samples && s->periodic == p.periodic) m_shape = s.get();
    if (!m_shape) {
        // Tiles have only a few sizes: inner tiles, tiles at the right and lower borders, and the corner
        // tile.
        if (m_shapes.size() >= 12) m_shapes.erase(m_shapes.begin());
        m_shapes.push_back(std::make_unique<Shape>(p.classes, lines, samples, p.periodic));
        m_shape = m_shapes.back().get();
    }
    w.lines = lines;
    w.samples = samples;
    w.pitch = static_cast<int>(round_up(samples, 8));
    w.n = m_shape->n;
    w.periodic = p.periodic;
    w.mu = static_cast<float>(m_options.mu);
    w.inverse = static_cast<float>(1.0 / (1.0 + m_options.mu));
    const size_t planes = static_cast<size_t>(w.pairs) * w.plane();
    float2* at = m_state.data();
    w.p = at;
    w.q = at + planes;
    w.d1 = at + 2 * planes;
    w.t = at + 3 * planes;
    w.threshold = m_pixel.data();
    w.e = w.threshold + w.plane();
    w.d3 = w.e + w.plane();
    w.sum = w.d3 + w.plane();
    w.flags = m_flags.data();
    w.rhs = m_rhs.data();
    w.v4 = m_v4.data();
    m_core = p.core;
}

MrfWork DeviceMrf::work_of(int iteration) const {
    MrfWork w = m_work;
    const size_t planes = static_cast<size_t>(w.pairs) * w.plane(), old = iteration % 2, now = 1 - old;
    float2* t5 = m_state.data() + 4 * planes;
    w.t5h_old = t5 + 2 * old * planes;
    w.t5v_old = w.t5h_old + planes;
    w.t5h = t5 + 2 * now * planes;
    w.t5v = w.t5h + planes;
    return w;
}

void DeviceMrf::upload(const MrfProblem& p, cudaStream_t stream) {
    shape_for(p);
    const auto pixels = static_cast<size_t>(p.lines * p.samples);
    const size_t planes = static_cast<size_t>(m_work.pairs) * m_work.plane();
    // p is copied to the memory of the right sides. Weights and training pixels are copied to the t5 buffer
    // that is cleared last.
    auto* const values = reinterpret_cast<float*>(m_rhs.data());
    auto* const weight = reinterpret_cast<float*>(m_state.data() + 4 * planes);
    auto* const fixed = reinterpret_cast<uint16_t*>(weight + pixels);
    HSI_CUDA_CHECK(cudaMemcpyAsync(values, p.p, static_cast<size_t>(p.classes) * pixels * 4,
                                   cudaMemcpyHostToDevice, stream));
    HSI_CUDA_CHECK(cudaMemcpyAsync(weight, p.weight, pixels * 4, cudaMemcpyHostToDevice, stream));
    if (p.fixed) HSI_CUDA_CHECK(cudaMemcpyAsync(fixed, p.fixed, pixels * 2, cudaMemcpyHostToDevice, stream));
    const dim3 grid(blocks_of(p.samples, 128), static_cast<unsigned>(p.lines));
    prepare<<<grid, 128, 0, stream>>>(m_work, values, weight, p.fixed ? fixed : nullptr, m_state.data(),
                                      m_options.lambda, m_options.mu);
    HSI_CUDA_LAUNCHED("prepare");
    HSI_CUDA_CHECK(cudaMemsetAsync(m_state.data() + 4 * planes, 0, 4 * planes * sizeof(float2), stream));
}

void DeviceMrf::launch_step(int iteration, cudaStream_t stream) {
    const MrfWork w = work_of(iteration);
    const dim3 grid = step_grid(w.samples, w.lines, w.pairs);
    const bool first = iteration == 0, last = iteration + 1 == m_options.iterations;
    if (last) m_change_count = static_cast<size_t>(grid.x) * grid.y * grid.z;
    if (m_options.anisotropic)
        launch_step_of<false>(w, first, last, core_of(m_core), m_change.data(), grid, stream);
    else
        launch_step_of<true>(w, first, last, core_of(m_core), m_change.data(), grid, stream);
}

void DeviceMrf::launch_transform(bool backward, cudaStream_t stream) {
    const auto plane = static_cast<int64_t>(m_work.plane());
    const bool launched =
        m_shape->own && with_transform(m_work.n, [&](auto size) {
            using Plan = Radices<size>;
            const unsigned lines = blocks_of(static_cast<int64_t>(m_work.pairs) * m_work.lines, Plan::lines);
            constexpr size_t shared = 2 * Plan::lines * (size + size / 16) * sizeof(float2);
            const auto launch = [&](auto kernel, unsigned blocks) {
                if (shared > 48 << 10)
                    HSI_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                        static_cast<int>(shared)));
                kernel<<<blocks, Plan::threads, shared, stream>>>(m_work, m_shape->roots.data(),
                                                                  static_cast<int>(lines));
            };
            if (backward)
                launch(transform<size, true>, lines);
            else
                launch(transform<size, false>, lines + blocks_of(plane, Plan::threads));
        });
    if (launched) {
        HSI_CUDA_LAUNCHED("transform");
        return;
    }
    if (!backward) {
        const dim3 grid(blocks_of(m_work.n - m_work.samples, 64), static_cast<unsigned>(m_work.lines));
        lengthen<<<grid, 64, 0, stream>>>(m_work);
        HSI_CUDA_LAUNCHED("lengthen");
        fold<<<blocks_of(plane, 256), 256, 0, stream>>>(m_work);
        HSI_CUDA_LAUNCHED("fold");
    }
    HSI_CUFFT_CHECK(cufftSetStream(m_shape->plan, stream));
    const size_t step = static_cast<size_t>(m_shape->slab) * static_cast<size_t>(m_shape->n);
    for (int i = 0; i < m_shape->slabs; ++i) {
        float2* at = (backward ? m_v4 : m_rhs).data() + static_cast<size_t>(i) * step;
        HSI_CUFFT_CHECK(cufftExecC2C(m_shape->plan, at, at, backward ? CUFFT_INVERSE : CUFFT_FORWARD));
    }
}

void DeviceMrf::launch_filter(cudaStream_t stream) {
    const int all = (m_work.lines + segment - 1) / segment;
    const int blocks = (all + segments - 1) / segments, each = (all + blocks - 1) / blocks;
    const dim3 grid(blocks_of(m_work.n, column_group), static_cast<unsigned>(m_work.pairs),
                    static_cast<unsigned>(blocks));
    const dim3 block(column_group, static_cast<unsigned>(each + 4));
    const size_t shared = 2 * static_cast<size_t>(each + 4) * column_group * sizeof(float2);
    filter<<<grid, block, shared, stream>>>(m_work, m_shape->pole.data(), m_shape->gain.data(), each);
    HSI_CUDA_LAUNCHED("filter");
}

void DeviceMrf::iterate(int first, int count, cudaStream_t stream) {
    for (int i = first; i < first + count; ++i) {
        launch_step(i, stream);
        launch_transform(false, stream);
        launch_filter(stream);
        launch_transform(true, stream);
    }
}

void DeviceMrf::iterate_graph(int count, cudaStream_t stream) {
    if (!m_shape->graph || m_shape->graph_count != count) {
        if (m_shape->graph) cudaGraphExecDestroy(std::exchange(m_shape->graph, nullptr));
        cudaGraph_t graph = nullptr;
        HSI_CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        try {
            iterate(1, count, stream);
        } catch (...) {
            cudaStreamEndCapture(stream, &graph);
            if (graph) cudaGraphDestroy(graph);
            throw;
        }
        HSI_CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
        const cudaError_t made = cudaGraphInstantiate(&m_shape->graph, graph, 0);
        cudaGraphDestroy(graph);
        HSI_CUDA_CHECK(made);
        m_shape->graph_count = count;
    }
    HSI_CUDA_CHECK(cudaGraphLaunch(m_shape->graph, stream));
}

void DeviceMrf::residuals(cudaStream_t stream) {
    const MrfWork w = work_of(m_options.iterations - 1);
    m_partial_count = blocks_of(m_core.area(), residual_threads);
    const auto grid = static_cast<unsigned>(m_partial_count);
    if (m_options.anisotropic)
        residuals_kernel<false>
            <<<grid, residual_threads, 0, stream>>>(w, core_of(m_core), m_options.mu, m_partial.data());
    else
        residuals_kernel<true>
            <<<grid, residual_threads, 0, stream>>>(w, core_of(m_core), m_options.mu, m_partial.data());
    HSI_CUDA_LAUNCHED("residuals");
    m_partial.download(m_host_partial.data(), m_partial_count, stream);
    m_change.download(m_host_change.data(), m_change_count, stream);
}

void DeviceMrf::download(float* q, cudaStream_t stream) {
    const dim3 grid(blocks_of(m_work.samples, 128), static_cast<unsigned>(m_work.lines));
    auto* const packed = reinterpret_cast<float*>(m_rhs.data());
    pack<<<grid, 128, 0, stream>>>(m_work, packed);
    HSI_CUDA_LAUNCHED("pack");
    const auto values = static_cast<size_t>(m_work.classes) * static_cast<size_t>(m_work.lines) *
                        static_cast<size_t>(m_work.samples);
    HSI_CUDA_CHECK(cudaMemcpyAsync(q, packed, values * sizeof(float), cudaMemcpyDeviceToHost, stream));
}

MrfResiduals DeviceMrf::total() const {
    MrfResiduals r;
    for (size_t i = 0; i < m_partial_count; ++i) {
        const PartialResiduals& p = m_host_partial[i];
        r.v1 += p.v1;
        r.v2 += p.v2;
        r.v3 += p.v3;
        r.v4 += p.v4;
        r.v5 += p.v5;
        r.objective += p.objective;
    }
    for (size_t i = 0; i < m_change_count; ++i)
        r.change += m_host_change[i];
    r.entries = static_cast<int64_t>(m_work.classes) * m_core.area();
    return r;
}

} // namespace hsi::sahic::gpu
