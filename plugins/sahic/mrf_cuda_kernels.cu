// SPDX-License-Identifier: MIT
#include "cuda/check.h"
#include "cuda/pinned.h"
#include "sahic/mrf_cuda_kernels.cuh"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hsi::sahic::gpu {
namespace {

constexpr int tile_w = 32, tile_h = 8; ///< pixels of a block of step
constexpr int column_group = 16;       ///< frequencies that a block of filter takes
constexpr int segment = 20;            ///< lines a thread of filter takes: 0.382^20 is 4e-9
constexpr int most_segments = 30;
constexpr int64_t reach = 16; ///< values that a line is continued by at least: 0.382^16 is 2e-7
constexpr int residual_threads = 128;

unsigned blocks_of(int64_t n, int64_t each) { return static_cast<unsigned>((n + each - 1) / each); }
int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

struct Pair {
    float h, v;
};

/// A rectangle that kernels can read.
struct Core {
    int x, y, right, bottom;
};
Core core_of(const Rect& r) {
    return {static_cast<int>(r.x), static_cast<int>(r.y), static_cast<int>(r.right()),
            static_cast<int>(r.bottom())};
}

/// Projection of a pair of differences on the ball of radius `limit`.
template <bool isotropic>
__device__ __forceinline__ Pair project(Pair t, uint32_t flags, float limit) {
    const float h = flags & flag_h_counts ? t.h : 0.0f, v = flags & flag_v_counts ? t.v : 0.0f;
    if (isotropic) {
        const float square = fmaf(h, h, v * v);
        const float factor = square > limit * limit ? limit * rsqrtf(square) : 1.0f;
        return {h * factor, v * factor};
    }
    return {fminf(fmaxf(h, -limit), limit), fminf(fmaxf(v, -limit), limit)};
}

/// What a thread knows of a pixel whose edges it computes: constant over the classes.
struct Site {
    int at = 0, wide_at = 0, right = 0, below = 0; ///< offsets in a plane; right and below in v4's
    uint32_t flags = 0;
    float limit = 0;
    bool there = false;
};

__device__ __forceinline__ Site site_of(const FieldWork& w, int x, int y) {
    Site s;
    if (w.periodic) {
        if (x < 0) x += w.samples;
        if (y < 0) y += w.lines;
    }
    s.there = x >= 0 && y >= 0 && x < w.samples && y < w.lines;
    if (!s.there) return s;
    s.at = y * w.pitch + x;
    s.wide_at = y * w.wide + x;
    s.right = y * w.wide + (x + 1 < w.samples ? x + 1 : 0);
    s.below = (y + 1 < w.lines ? y + 1 : 0) * w.wide + x;
    s.flags = w.flags[s.at];
    s.limit = w.threshold[s.at];
    return s;
}

/// Of one pixel and class: w = V5' + D5', and g = (V5 + D5) of the step before - H V4, whose H' is D4'.
struct Edge {
    Pair g, w, t5;
    float v4;
};

template <bool isotropic>
__device__ __forceinline__ Edge edge_of(const Site& s, const float* __restrict__ v4,
                                        const float* __restrict__ t5h, const float* __restrict__ t5v) {
    Edge r;
    const float here = v4[s.wide_at];
    r.v4 = here;
    const Pair difference{s.flags & flag_h_exists ? v4[s.right] - here : 0.0f,
                          s.flags & flag_v_exists ? v4[s.below] - here : 0.0f};
    const Pair old{t5h[s.at], t5v[s.at]};
    const Pair d = project<isotropic>(old, s.flags, s.limit); // -D5
    r.t5 = {difference.h + d.h, difference.v + d.v};
    const Pair next = project<isotropic>(r.t5, s.flags, s.limit); // -D5'
    r.g = {old.h - 2 * d.h - difference.h, old.v - 2 * d.v - difference.v};
    r.w = {r.t5.h - 2 * next.h, r.t5.v - 2 * next.v};
    return r;
}

/// Writes a value of the right side, and to all places beyond the border that mirror it, or where the line
/// goes on.
__device__ __forceinline__ void put_line(const FieldWork& w, float* line, int x, float value) {
    line[x] = value;
    const int gap = w.n - w.samples, right = (gap + 1) / 2, left = gap / 2;
    if (x >= right && x < w.samples - right) return;
    const int period = w.periodic ? w.samples : 2 * w.samples;
    for (int i = w.periodic ? x : w.samples - 1 - x; i < right; i += period)
        line[w.samples + i] = value;
    for (int i = w.periodic ? w.samples - 1 - x : x; i < left; i += period)
        line[w.n - 1 - i] = value;
    if (w.periodic) return;
    for (int i = w.samples + x; i < right; i += period)
        line[w.samples + i] = value;
    for (int i = 2 * w.samples - 1 - x; i < left; i += period)
        line[w.n - 1 - i] = value;
}

/// The sum of a value of all threads of a block of `count` threads, in thread 0; always in the same order.
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

/// A block has tile_w x tile_h pixels; its first threads take the edges left of and above the tile, too.
template <bool isotropic, bool first, bool last>
__global__ void __launch_bounds__(tile_w* tile_h) step(const FieldWork w, Core core, double* change_of) {
    // Two sets, one for each parity of the class: one barrier a class is enough.
    __shared__ Pair shared_g[2][tile_h + 1][tile_w + 1], shared_w[2][tile_h + 1][tile_w + 1];
    const int tx = static_cast<int>(threadIdx.x), ty = static_cast<int>(threadIdx.y),
              thread = ty * tile_w + tx;
    const int x0 = static_cast<int>(blockIdx.x) * tile_w, y0 = static_cast<int>(blockIdx.y) * tile_h;
    const int x = x0 + tx, y = y0 + ty;
    const Site mine = site_of(w, x, y);
    Site outer;
    int outer_x = 0, outer_y = 0;
    const bool has_outer = !first && thread < tile_w + tile_h;
    if (has_outer) {
        outer_x = thread < tile_w ? thread + 1 : 0;
        outer_y = thread < tile_w ? 0 : thread - tile_w + 1;
        outer = site_of(w, x0 + outer_x - 1, y0 + outer_y - 1);
    }
    const float rest = 1.0f - w.mu, inverse = 1.0f / (1.0f + w.mu);
    const bool valid = mine.flags & flag_valid;
    const uint32_t fixed = mine.flags & 0xffffu;
    const float e = mine.there ? w.e[mine.at] : 0.0f;
    float sum = 0;
    double change = 0;
    for (int k = 0; k < w.classes; ++k) {
        const size_t plane = static_cast<size_t>(k) * w.plane(),
                     wide = static_cast<size_t>(k) * w.wide_plane();
        float v4 = 0, d4 = 0, divergence = 0;
        if (!first) {
            auto& g = shared_g[k % 2];
            auto& ww = shared_w[k % 2];
            Edge edge;
            edge.g = edge.w = {0.0f, 0.0f};
            if (mine.there) {
                edge = edge_of<isotropic>(mine, w.v4 + wide, w.t5h_old + plane, w.t5v_old + plane);
                w.t5h[plane + static_cast<size_t>(mine.at)] = edge.t5.h;
                w.t5v[plane + static_cast<size_t>(mine.at)] = edge.t5.v;
                v4 = edge.v4;
            }
            g[ty + 1][tx + 1] = edge.g;
            ww[ty + 1][tx + 1] = edge.w;
            if (has_outer) {
                Edge o;
                o.g = o.w = {0.0f, 0.0f};
                if (outer.there)
                    o = edge_of<isotropic>(outer, w.v4 + wide, w.t5h_old + plane, w.t5v_old + plane);
                g[outer_y][outer_x] = o.g;
                ww[outer_y][outer_x] = o.w;
            }
            __syncthreads();
            d4 = (g[ty + 1][tx].h - edge.g.h) + (g[ty][tx + 1].v - edge.g.v);
            divergence = (ww[ty + 1][tx].h - edge.w.h) + (ww[ty][tx + 1].v - edge.w.v);
        } else if (mine.there) {
            v4 = w.v4[wide + static_cast<size_t>(mine.wide_at)];
        }
        if (!mine.there) continue;
        const size_t at = plane + static_cast<size_t>(mine.at);
        const float q = w.q[at], p = w.p[at], d1 = w.d1[at], t = w.t[at];
        const float v1 = valid ? fmaf(rest, d1, p) : q; // V1 + D1; no data term where invalid
        float next = 0.25f * ((v1 + fabsf(t)) + ((q + e) + (v4 + d4)));
        if (fixed) next = fixed == static_cast<uint32_t>(k) + 1 ? 1.0f : 0.0f;
        w.q[at] = next;
        w.d1[at] = valid ? inverse * ((d1 - next) + p) : 0.0f;
        w.t[at] = next + fminf(t, 0.0f); // q - D2, D2 = max(-t, 0)
        put_line(w, w.rhs + wide + static_cast<size_t>(y) * static_cast<size_t>(w.wide), x,
                 (next - d4) + divergence);
        sum += next;
        if (last && x >= core.x && x < core.right && y >= core.y && y < core.bottom) {
            const double d = static_cast<double>(next) - static_cast<double>(q);
            change += d * d;
        }
    }
    if (mine.there) {
        const float before = w.d3[mine.at],
                    b = fmaf(1.0f - sum, 1.0f / static_cast<float>(w.classes), before);
        w.d3[mine.at] = b;
        w.e[mine.at] = 2.0f * b - before;
    }
    if (last) {
        __shared__ double warps[tile_w * tile_h / 32];
        change = block_sum(change, warps, thread, tile_w * tile_h);
        if (thread == 0) change_of[blockIdx.y * gridDim.x + blockIdx.x] = change;
    }
}

/// Where a line beyond the border comes from.
__device__ __forceinline__ int beyond(int i, int size, bool periodic) {
    if (i >= 0 && i < size) return i;
    const int period = periodic ? size : 2 * size;
    const int at = (i % period + period) % period;
    return at < size ? at : period - 1 - at;
}

/// The tridiagonal systems of column_group frequencies of one class, for `segments` segments of lines:
/// a causal, then an anticausal filter with the pole z. A thread has one segment in registers; what came
/// before it is the last value of the segment before, since z^segment is below rounding. The first and the
/// last thread of a column take a segment beyond the block's lines, and write nothing.
__global__ void filter(const FieldWork w, const float* __restrict__ pole, const float* __restrict__ gain,
                       int segments) {
    extern __shared__ float2 ends[]; // [2][segments + 2][column_group]
    const int f = static_cast<int>(blockIdx.x) * column_group + static_cast<int>(threadIdx.x);
    const int s = static_cast<int>(threadIdx.y), all = segments + 2;
    const int first = (static_cast<int>(blockIdx.z) * segments + s - 1) * segment;
    const bool active = f <= w.n / 2;
    const size_t row = static_cast<size_t>(w.wide / 2);
    const size_t base =
        static_cast<size_t>(blockIdx.y) * static_cast<size_t>(w.lines) * row + static_cast<size_t>(f);
    const float2* in = reinterpret_cast<const float2*>(w.rhs) + base;
    float2 v[segment];
    const float z = active ? pole[f] : 0.0f;
#pragma unroll
    for (int i = 0; i < segment; ++i)
        v[i] = active ? in[static_cast<size_t>(beyond(first + i, w.lines, w.periodic)) * row]
                      : make_float2(0, 0);
    float2 end = v[0];
#pragma unroll
    for (int i = 1; i < segment; ++i)
        end = make_float2(fmaf(z, end.x, v[i].x), fmaf(z, end.y, v[i].y));
    float2* causal = ends + threadIdx.x;
    float2* anticausal = causal + all * column_group;
    causal[s * column_group] = end;
    __syncthreads();
    float2 state = s > 0 ? causal[(s - 1) * column_group] : make_float2(0, 0);
#pragma unroll
    for (int i = 0; i < segment; ++i)
        v[i] = state = make_float2(fmaf(z, state.x, v[i].x), fmaf(z, state.y, v[i].y));
    end = v[segment - 1];
#pragma unroll
    for (int i = segment - 2; i >= 0; --i)
        end = make_float2(fmaf(z, end.x, v[i].x), fmaf(z, end.y, v[i].y));
    anticausal[s * column_group] = end;
    __syncthreads();
    if (s == 0 || s == all - 1 || !active) return;
    state = anticausal[(s + 1) * column_group];
    float2* out = reinterpret_cast<float2*>(w.v4) + base;
    const float scale = gain[f];
#pragma unroll
    for (int i = segment - 1; i >= 0; --i) {
        state = make_float2(fmaf(z, state.x, v[i].x), fmaf(z, state.y, v[i].y));
        if (first + i < w.lines)
            out[static_cast<size_t>(first + i) * row] = make_float2(scale * state.x, scale * state.y);
    }
}

/// p, weights and training pixels as the host packs them to all that the first iteration needs.
__global__ void prepare(const FieldWork w, const float* __restrict__ p, const float* __restrict__ weight,
                        const uint16_t* __restrict__ fixed, float* planes_p, double lambda, double mu) {
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
    w.e[at] = w.d3[at] = 0.0f;
    for (int k = 0; k < w.classes; ++k) {
        const float value =
            valid ? p[static_cast<size_t>(k) * pixels + from] : 1.0f / static_cast<float>(w.classes);
        const size_t to = static_cast<size_t>(k) * w.plane() + at;
        planes_p[to] = w.q[to] = w.t[to] = value;
        w.d1[to] = 0.0f;
        w.v4[static_cast<size_t>(k) * w.wide_plane() + static_cast<size_t>(y) * static_cast<size_t>(w.wide) +
             static_cast<size_t>(x)] = value;
    }
}

/// q to packed planes.
__global__ void pack(const FieldWork w, float* out) {
    const int x = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), y = static_cast<int>(blockIdx.y);
    if (x >= w.samples) return;
    for (int k = 0; k < w.classes; ++k)
        out[(static_cast<size_t>(k) * static_cast<size_t>(w.lines) + static_cast<size_t>(y)) *
                static_cast<size_t>(w.samples) +
            static_cast<size_t>(x)] =
            w.q[static_cast<size_t>(k) * w.plane() + static_cast<size_t>(y) * static_cast<size_t>(w.pitch) +
                static_cast<size_t>(x)];
}

/// After the last iteration. A thread a pixel of the core.
template <bool isotropic>
__global__ void residuals_kernel(const FieldWork w, Core core, double mu, PartialResiduals* partial) {
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
        for (int k = 0; k < w.classes; ++k) {
            const size_t plane = static_cast<size_t>(k) * w.plane();
            const float* q = w.q + plane;
            const float* v4 = w.v4 + static_cast<size_t>(k) * w.wide_plane();
            const auto at = plane + static_cast<size_t>(s.at);
            const auto qi = static_cast<double>(q[s.at]), p = static_cast<double>(w.p[at]);
            if (valid) {
                r.v1 += square(qi - (p - mu * static_cast<double>(w.d1[at]))); // V1 = p - mu D1
                r.objective += 0.5 * square(qi - p);
            }
            r.v2 += square(qi - fmax(static_cast<double>(w.t[at]), 0.0));
            r.v3 += square(static_cast<double>(w.e[s.at]) - static_cast<double>(w.d3[s.at]));
            r.v4 += square(qi - static_cast<double>(v4[s.wide_at]));
            const double here = static_cast<double>(v4[s.wide_at]);
            const double h = s.flags & flag_h_exists ? static_cast<double>(v4[s.right]) - here : 0.0;
            const double v = s.flags & flag_v_exists ? static_cast<double>(v4[s.below]) - here : 0.0;
            const Pair d = project<isotropic>({w.t5h[at], w.t5v[at]}, s.flags, s.limit); // -D5
            const double th = h + static_cast<double>(d.h), tv = v + static_cast<double>(d.v);
            const double eh = ch ? th : 0.0, ev = cv ? tv : 0.0;
            const double gh = ch ? static_cast<double>(q[right]) - qi : 0.0,
                         gv = cv ? static_cast<double>(q[below]) - qi : 0.0;
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
    }
    double* const each[] = {&r.v1, &r.v2, &r.v3, &r.v4, &r.v5, &r.objective};
    for (double* v : each)
        *v = block_sum(*v, warps, static_cast<int>(threadIdx.x), residual_threads);
    if (threadIdx.x == 0) partial[blockIdx.x] = r;
}

template <bool isotropic>
void launch_step_of(const FieldWork& w, bool first, bool last, const Core& core, double* change, dim3 grid,
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

int64_t slab_lines(int64_t all, int64_t wide) {
    constexpr int64_t floats = int64_t{4} << 20;
    const int64_t count = std::max<int64_t>(1, (all * wide + floats - 1) / floats);
    return (all + count - 1) / count;
}

struct Sizes {
    int64_t pitch, n, wide, plane, wide_all;
    explicit Sizes(const MrfLimits& l)
        : pitch(round_up(l.samples, 8)), n(Field::transform_size(l.samples)), wide(round_up(n + 2, 8)),
          plane(l.lines * pitch) {
        // Transforms go through in slabs of equal size: a little space behind the last line.
        const int64_t all = l.classes * l.lines, slab = slab_lines(all, wide);
        wide_all = (all + slab - 1) / slab * slab * wide;
    }
};

} // namespace

/// What depends on a window's size.
struct Field::Shape {
    int lines = 0, samples = 0;
    bool periodic = false;
    int n = 0, wide = 0, slabs = 0, slab = 0;
    cufftHandle forward = 0, backward = 0;
    bool forward_made = false, backward_made = false;
    cuda::DeviceBuffer<float> pole, gain;
    cudaGraphExec_t graph = nullptr;
    int graph_count = 0;

    Shape(int classes, int lines_, int samples_, bool periodic_)
        : lines(lines_), samples(samples_), periodic(periodic_), n(transform_size(samples_)),
          wide(static_cast<int>(round_up(n + 2, 8))), pole(static_cast<size_t>(n / 2 + 1)),
          gain(static_cast<size_t>(n / 2 + 1)) {
        const int64_t all = static_cast<int64_t>(classes) * lines;
        slab = static_cast<int>(slab_lines(all, wide));
        slabs = static_cast<int>((all + slab - 1) / slab);
        std::vector<float> z, g;
        for (int k = 0; k <= n / 2; ++k) {
            const double d = 5.0 - 2.0 * std::cos(2.0 * M_PI * k / n);
            const double root = (d - std::sqrt(d * d - 4.0)) / 2.0;
            z.push_back(static_cast<float>(root));
            g.push_back(static_cast<float>(root / n));
        }
        HSI_CUDA_CHECK(cudaMemcpy(pole.data(), z.data(), pole.bytes(), cudaMemcpyHostToDevice));
        HSI_CUDA_CHECK(cudaMemcpy(gain.data(), g.data(), gain.bytes(), cudaMemcpyHostToDevice));
        int size[1] = {n}, real[1] = {wide}, complex[1] = {wide / 2};
        HSI_CUFFT_CHECK(
            cufftPlanMany(&forward, 1, size, real, 1, wide, complex, 1, wide / 2, CUFFT_R2C, slab));
        forward_made = true;
        HSI_CUFFT_CHECK(
            cufftPlanMany(&backward, 1, size, complex, 1, wide / 2, real, 1, wide, CUFFT_C2R, slab));
        backward_made = true;
    }
    Shape(const Shape&) = delete;
    Shape& operator=(const Shape&) = delete;
    ~Shape() {
        if (graph) cudaGraphExecDestroy(graph);
        if (forward_made) cufftDestroy(forward);
        if (backward_made) cufftDestroy(backward);
    }
};

int Field::transform_size(int64_t samples) {
    for (int64_t m = (samples + 2 * reach + 7) / 8;; ++m) {
        int64_t left = m;
        for (const int64_t factor : {2, 3, 5, 7})
            while (left % factor == 0)
                left /= factor;
        if (left == 1) return static_cast<int>(8 * m);
    }
}

uint64_t Field::bytes(const MrfLimits& l) {
    const Sizes s(l);
    const int64_t slab = slab_lines(l.classes * l.lines, s.wide) * s.wide;
    return static_cast<uint64_t>(4 * (8 * l.classes * s.plane + 4 * s.plane + 2 * s.wide_all) +
                                 (l.lines * l.samples / residual_threads + 1) *
                                     static_cast<int64_t>(sizeof(PartialResiduals)) +
                                 (l.lines / tile_h + 1) * (l.samples / tile_w + 1) * 8 + 2 * 4 * slab) +
           (uint64_t{4} << 20);
}

Field::Field(const MrfOptions& options, const MrfLimits& limits) : m_options(options), m_limits(limits) {
    const Sizes s(limits);
    if (s.plane > std::numeric_limits<int>::max() ||
        limits.lines * s.wide > std::numeric_limits<int>::max() || limits.lines > 500000)
        throw Error("a window of " + std::to_string(limits.samples) + "x" + std::to_string(limits.lines) +
                        " pixels is too large for the GPU",
                    "Use a smaller -tile.");
    const auto plane = static_cast<size_t>(s.plane), planes = static_cast<size_t>(limits.classes) * plane;
    m_state = cuda::DeviceBuffer<float>(8 * planes);
    m_pixel = cuda::DeviceBuffer<float>(3 * plane);
    m_flags = cuda::DeviceBuffer<uint32_t>(plane);
    m_rhs = cuda::DeviceBuffer<float>(static_cast<size_t>(s.wide_all));
    m_v4 = cuda::DeviceBuffer<float>(static_cast<size_t>(s.wide_all));
    m_change = cuda::DeviceBuffer<double>(static_cast<size_t>(blocks_of(limits.lines, tile_h)) *
                                          blocks_of(limits.samples, tile_w));
    m_partial =
        cuda::DeviceBuffer<PartialResiduals>(blocks_of(limits.lines * limits.samples, residual_threads));
    // The few lines behind the last one are transformed with the others.
    HSI_CUDA_CHECK(cudaMemset(m_rhs.data(), 0, m_rhs.bytes()));
    HSI_CUDA_CHECK(cudaMemset(m_v4.data(), 0, m_v4.bytes()));
    m_host_change = HostBuffer<double>(m_change.size());
    m_host_partial = HostBuffer<PartialResiduals>(m_partial.size());
}

Field::~Field() = default;

void Field::shape_for(const MrfProblem& p) {
    if (p.classes != m_limits.classes || p.samples > m_limits.samples || p.lines > m_limits.lines)
        throw Error("internal: an MRF tile is larger than was planned");
    const auto lines = static_cast<int>(p.lines), samples = static_cast<int>(p.samples);
    m_shape = nullptr;
    for (const auto& s : m_shapes)
        if (s->lines == lines && s->samples == samples && s->periodic == p.periodic) m_shape = s.get();
    if (!m_shape) {
        // Tiles have few sizes: inner ones, and those at the right and lower border and in the corner.
        if (m_shapes.size() >= 12) m_shapes.erase(m_shapes.begin());
        m_shapes.push_back(std::make_unique<Shape>(p.classes, lines, samples, p.periodic));
        m_shape = m_shapes.back().get();
    }
    FieldWork& w = m_work;
    w.classes = p.classes;
    w.lines = lines;
    w.samples = samples;
    w.pitch = static_cast<int>(round_up(samples, 8));
    w.n = m_shape->n;
    w.wide = m_shape->wide;
    w.periodic = p.periodic;
    w.mu = static_cast<float>(m_options.mu);
    const size_t planes = static_cast<size_t>(p.classes) * w.plane();
    float* at = m_state.data();
    w.p = at;
    w.q = at + planes;
    w.d1 = at + 2 * planes;
    w.t = at + 3 * planes;
    w.e = m_pixel.data();
    w.d3 = w.e + w.plane();
    w.threshold = w.d3 + w.plane();
    w.flags = m_flags.data();
    w.rhs = m_rhs.data();
    w.v4 = m_v4.data();
    m_core = p.core;
}

void Field::upload(const MrfProblem& p, cudaStream_t stream) {
    shape_for(p);
    const auto pixels = static_cast<size_t>(p.lines * p.samples);
    const size_t planes = static_cast<size_t>(p.classes) * m_work.plane();
    float* t5 = m_state.data() + 4 * planes;
    // p arrives where right sides will stand; weights and training pixels in the t5 that is cleared last.
    const size_t values = static_cast<size_t>(p.classes) * pixels;
    HSI_CUDA_CHECK(cudaMemcpyAsync(m_rhs.data(), p.p, values * 4, cudaMemcpyHostToDevice, stream));
    HSI_CUDA_CHECK(cudaMemcpyAsync(t5, p.weight, pixels * 4, cudaMemcpyHostToDevice, stream));
    auto* fixed = reinterpret_cast<uint16_t*>(t5 + pixels);
    if (p.fixed) HSI_CUDA_CHECK(cudaMemcpyAsync(fixed, p.fixed, pixels * 2, cudaMemcpyHostToDevice, stream));
    const dim3 grid(blocks_of(p.samples, 128), static_cast<unsigned>(p.lines));
    prepare<<<grid, 128, 0, stream>>>(m_work, m_rhs.data(), t5, p.fixed ? fixed : nullptr, m_state.data(),
                                      m_options.lambda, m_options.mu);
    HSI_CUDA_LAUNCHED("prepare");
    HSI_CUDA_CHECK(cudaMemsetAsync(t5, 0, 4 * planes * sizeof(float), stream));
}

void Field::launch_step(int iteration, cudaStream_t stream) {
    FieldWork w = m_work;
    const size_t planes = static_cast<size_t>(w.classes) * w.plane();
    float* t5[2] = {m_state.data() + 4 * planes, m_state.data() + 6 * planes};
    const int side = iteration % 2;
    w.t5h_old = t5[side];
    w.t5v_old = t5[side] + planes;
    w.t5h = t5[1 - side];
    w.t5v = t5[1 - side] + planes;
    const dim3 grid(blocks_of(w.samples, tile_w), blocks_of(w.lines, tile_h));
    const bool first = iteration == 0, last = iteration + 1 == m_options.iterations;
    if (last) m_change_count = static_cast<size_t>(grid.x) * grid.y;
    if (m_options.anisotropic)
        launch_step_of<false>(w, first, last, core_of(m_core), m_change.data(), grid, stream);
    else
        launch_step_of<true>(w, first, last, core_of(m_core), m_change.data(), grid, stream);
}

void Field::launch_forward(cudaStream_t stream) {
    HSI_CUFFT_CHECK(cufftSetStream(m_shape->forward, stream));
    const size_t step = static_cast<size_t>(m_shape->slab) * static_cast<size_t>(m_shape->wide);
    for (int i = 0; i < m_shape->slabs; ++i) {
        float* at = m_rhs.data() + static_cast<size_t>(i) * step;
        HSI_CUFFT_CHECK(cufftExecR2C(m_shape->forward, at, reinterpret_cast<cufftComplex*>(at)));
    }
}

void Field::launch_backward(cudaStream_t stream) {
    HSI_CUFFT_CHECK(cufftSetStream(m_shape->backward, stream));
    const size_t step = static_cast<size_t>(m_shape->slab) * static_cast<size_t>(m_shape->wide);
    for (int i = 0; i < m_shape->slabs; ++i) {
        float* at = m_v4.data() + static_cast<size_t>(i) * step;
        HSI_CUFFT_CHECK(cufftExecC2R(m_shape->backward, reinterpret_cast<cufftComplex*>(at), at));
    }
}

void Field::launch_filter(cudaStream_t stream) {
    const int segments = (m_work.lines + segment - 1) / segment;
    const int blocks = (segments + most_segments - 1) / most_segments,
              each = (segments + blocks - 1) / blocks;
    const dim3 grid(blocks_of(m_work.n / 2 + 1, column_group), static_cast<unsigned>(m_work.classes),
                    static_cast<unsigned>(blocks));
    const dim3 block(column_group, static_cast<unsigned>(each + 2));
    const size_t shared = 2 * static_cast<size_t>(each + 2) * column_group * sizeof(float2);
    filter<<<grid, block, shared, stream>>>(m_work, m_shape->pole.data(), m_shape->gain.data(), each);
    HSI_CUDA_LAUNCHED("filter");
}

void Field::iterate(int first, int count, cudaStream_t stream) {
    for (int i = first; i < first + count; ++i) {
        launch_step(i, stream);
        launch_forward(stream);
        launch_filter(stream);
        launch_backward(stream);
    }
}

void Field::iterate_graph(int count, cudaStream_t stream) {
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

void Field::residuals(cudaStream_t stream) {
    FieldWork w = m_work;
    const size_t planes = static_cast<size_t>(w.classes) * w.plane();
    const int side = m_options.iterations % 2; // where the last iteration wrote
    w.t5h = m_state.data() + static_cast<size_t>(4 + 2 * side) * planes;
    w.t5v = w.t5h + planes;
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

void Field::download(float* q, cudaStream_t stream) {
    const dim3 grid(blocks_of(m_work.samples, 128), static_cast<unsigned>(m_work.lines));
    pack<<<grid, 128, 0, stream>>>(m_work, m_rhs.data());
    HSI_CUDA_LAUNCHED("pack");
    const auto values = static_cast<size_t>(m_work.classes) * static_cast<size_t>(m_work.lines) *
                        static_cast<size_t>(m_work.samples);
    m_rhs.download(q, values, stream);
}

MrfResiduals Field::total() const {
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
