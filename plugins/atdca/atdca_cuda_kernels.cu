// SPDX-License-Identifier: MIT
#include "atdca/atdca_cuda_kernels.cuh"
#include "core/error.h"
#include "cuda/check.h"

#include <cooperative_groups.h>

#include <algorithm>

namespace hsi::atdca::gpu {
namespace {

namespace cg = cooperative_groups;

constexpr int warps = 8, threads = warps * 32;
constexpr int at_once = 4;        ///< vectors applied in one pass over a group
constexpr int slice_step = 32;    ///< bands that a warp loads at once
constexpr int candidates = 256;   ///< of a block, decided by all its warps
constexpr int most_blocks = 2048; ///< of a launch
constexpr unsigned all = 0xffffffffu;
constexpr double rank_limit = 1e-6, unit_roundoff = 1.1102230246251565e-16;

struct BlockBest {
    double score;
    long long pixel; ///< -1: none
};

/// Doubles in the order of unsigned integers; 0 is below all of them.
__device__ unsigned long long ordered(double d) {
    const auto bits = static_cast<unsigned long long>(__double_as_longlong(d));
    return bits >> 63 ? ~bits : bits | (1ull << 63);
}
__device__ double from_ordered(unsigned long long o) {
    return __longlong_as_double(static_cast<long long>(o >> 63 ? o & ~(1ull << 63) : ~o));
}

__device__ double minus_infinity() { return __longlong_as_double(static_cast<long long>(0xfff0000000000000ull)); }

__device__ bool before(double a, long long pa, double b, long long pb) {
    if (pa < 0) return false;
    if (pb < 0) return true;
    return a != b ? a > b : pa < pb;
}

__device__ double warp_max(double v) {
    for (int o = 16; o > 0; o /= 2)
        v = fmax(v, __shfl_xor_sync(all, v, o));
    return v;
}

/// basis.h's dot product; all lanes get it.
template <class A, class B>
__device__ double strand_dot(A a, B b, int n) {
    double part = 0;
    for (int i = static_cast<int>(threadIdx.x % 32); i < n; i += 32)
        part = __dadd_rn(part, __dmul_rn(a(i), b(i)));
    for (int o = 16; o > 0; o /= 2)
        part = __dadd_rn(part, __shfl_xor_sync(all, part, o));
    return part;
}

/// The targets' q_k: the latest in shared memory, all in global memory.
struct Basis {
    const double* global;
    double* recent; ///< q_{base}, q_{base+1} ..., `pitch` apart
    int bands, pitch, base;
    __device__ double at(int k, int b) const {
        // __ldcg: another block has written it.
        return k >= base ? recent[(k - base) * pitch + b] : __ldcg(global + static_cast<size_t>(k) * bands + b);
    }
};

struct Shared {
    double *recent, *vector, *p, *coefficients;
    double *partial;  ///< [2][vector][warp][lane]: products over a warp's slice of the bands
    double *product;  ///< [2][vector][lane]
    double *candidate_score;
    long long *candidate, *found;
    int* list;
};

__host__ __device__ inline int even(int n) { return (n + 1) / 2 * 2; }

/// q_k in shared memory at a time.
__host__ inline int window_of(const SearchShape& s) {
    const int row = even(s.bands) * 8;
    return std::max(1, std::min(s.targets, (64 << 10) / row));
}

__host__ inline size_t shared_bytes(const SearchShape& s) {
    const size_t row = static_cast<size_t>(even(s.bands)) * 8;
    return row * (static_cast<size_t>(window_of(s)) + 2) + static_cast<size_t>(even(s.targets)) * 16 +
           sizeof(double) * 2 * at_once * 32 * (warps + 1) + sizeof(int) * threads + 16 * candidates;
}

__device__ Shared carve(unsigned char* memory, const SearchShape& s, int window) {
    Shared m;
    const int row = even(s.bands);
    m.recent = reinterpret_cast<double*>(memory);
    m.vector = m.recent + static_cast<size_t>(window) * row;
    m.p = m.vector + row;
    m.coefficients = m.p + row;
    m.partial = m.coefficients + even(s.targets);
    m.product = m.partial + 2 * at_once * warps * 32;
    m.candidate_score = m.product + 2 * at_once * 32;
    m.candidate = reinterpret_cast<long long*>(m.candidate_score + candidates);
    m.found = m.candidate + candidates;
    m.list = reinterpret_cast<int*>(m.found + even(s.targets));
    return m;
}

/// c_k = row_k.v for k < count, each as strand_dot() has it; by the whole block. GLOBAL: rows that another block wrote.
template <bool GLOBAL>
__device__ void products(const double* rows, int pitch, int bands, int count, const double* v, double* c) {
    constexpr int together = 4; // independent sums hide one another's latency
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    for (int first = warp; first < count; first += together * warps) {
        const double* row[together];
#pragma unroll
        for (int u = 0; u < together; ++u) // rows that are not there are computed again, without branches
            row[u] = rows + static_cast<int64_t>(min(first + u * warps, count - 1)) * pitch;
        double part[together] = {};
        for (int b = lane; b < bands; b += 32) {
            const double x = v[b];
#pragma unroll
            for (int u = 0; u < together; ++u)
                part[u] = __dadd_rn(part[u], __dmul_rn(GLOBAL ? __ldcg(row[u] + b) : row[u][b], x));
        }
#pragma unroll
        for (int o = 16; o > 0; o /= 2)
#pragma unroll
            for (int u = 0; u < together; ++u)
                part[u] = __dadd_rn(part[u], __shfl_xor_sync(all, part[u], o));
#pragma unroll
        for (int u = 0; u < together; ++u)
            if (lane == 0 && first + u * warps < count) c[first + u * warps] = part[u];
    }
}

/// c_k = q_k.v, between barriers of the caller.
__device__ void coefficients(const Basis& basis, int count, const double* v, double* c) {
    const int old = min(basis.base, count);
    products<true>(basis.global, basis.bands, basis.bands, old, v, c);
    products<false>(basis.recent, basis.pitch, basis.bands, count - old, v, c + old);
}

/// v -= sum_k (q_k.v) q_k, twice, by the whole block, as basis.h has it.
__device__ void orthogonalise(const Basis& basis, int count, double* v, double* c) {
    for (int round = 0; round < 2; ++round) {
        __syncthreads();
        coefficients(basis, count, v, c);
        __syncthreads();
        for (int b = static_cast<int>(threadIdx.x); b < basis.bands; b += threads) {
            double r = v[b];
            int k = 0;
            for (; k < min(basis.base, count); ++k)
                r = __dsub_rn(r, __dmul_rn(c[k], basis.at(k, b)));
            const double* q = basis.recent + b - basis.base * basis.pitch;
#pragma unroll 8
            for (; k < count; ++k)
                r = __dsub_rn(r, __dmul_rn(c[k], q[k * basis.pitch]));
            v[b] = r;
        }
    }
    __syncthreads();
}

/// ||x||^2 - sum_k (q_k.x)^2 of a pixel, decisive; by the whole block.
__device__ double squared_residual(const SearchWork& w, const Basis& basis, int count, long long pixel, double* x,
                                   double* c) {
    __syncthreads();
    const int64_t pitch = w.shape.pitch();
    for (int b = static_cast<int>(threadIdx.x); b < basis.bands; b += threads)
        x[b] = static_cast<double>(w.cube[b * pitch + pixel]);
    __syncthreads();
    coefficients(basis, count, x, c);
    __syncthreads();
    double s = __ldcg(w.norm + pixel);
#pragma unroll 8
    for (int k = 0; k < count; ++k)
        s = __dsub_rn(s, __dmul_rn(c[k], c[k]));
    return s;
}

struct Item {
    int group, applied; ///< vectors before `applied` are done with
};

/// The values of this lane's pixel in a warp's slice of the bands: all loads at once, none behind a branch. Beyond
/// `count` bands the last one is read again, and dots() leaves it out.
__device__ __forceinline__ void load_slice(const float* x, int64_t pitch, int count, float (&value)[slice_step]) {
#pragma unroll
    for (int u = 0; u < slice_step; ++u)
        value[u] = __ldg(x + max(0, min(u, count - 1)) * pitch);
}

/// acc[j] += sum over u < count of row_j[u] * value[u]. row: its first element lies at an even index; rows end with zeros
/// up to `room` elements, an even number of at least 2.
template <int M>
__device__ __forceinline__ void dots(const double* row, int pitch, int count, int room, const float (&value)[slice_step],
                                     double (&acc)[at_once]) {
#pragma unroll
    for (int u = 0; u < slice_step; u += 2) {
        const double v0 = u < count ? static_cast<double>(value[u]) : 0.0;
        const double v1 = u + 1 < count ? static_cast<double>(value[u + 1]) : 0.0;
        const double* at = row + min(u, room - 2);
#pragma unroll
        for (int j = 0; j < M; ++j) {
            const double2 q = *reinterpret_cast<const double2*>(at + j * pitch);
            acc[j] = fma(q.x, v0, acc[j]);
            acc[j] = fma(q.y, v1, acc[j]);
        }
    }
}

__device__ __forceinline__ void dots_of(int vectors, const double* row, int pitch, int count, int room,
                                        const float (&value)[slice_step], double (&acc)[at_once]) {
    // More rows than asked for do no harm: they lie in the window, and nobody looks at their sums.
    if (vectors == 1)
        dots<1>(row, pitch, count, room, value, acc);
    else if (vectors == 2)
        dots<2>(row, pitch, count, room, value, acc);
    else
        dots<at_once>(row, pitch, count, room, value, acc);
}

__device__ bool among(long long pixel, const long long* found, int count) {
    for (int k = 0; k < count; ++k)
        if (found[k] == pixel) return true;
    return false;
}

/// What visit() is to do; in shared memory, the same for the whole block.
struct Visit {
    enum What {
        one,    ///< item `only`
        listed, ///< the items of work.list; pixels that reach `least` are noted as candidates
        all,    ///< every group, whatever its score
        project ///< every group; the score becomes |p.x| or p.x
    } what;
    SearchWork work;
    Shared memory;
    const double* rows; ///< vector k at rows + (k - base) * pitch; at_once - 1 rows behind the last one may be read
    int pitch, base, count;
    Item only;
    int64_t start, items, stride; ///< items start, start + stride ... below items
    double error, least;
    unsigned long long* floor; ///< raised to the best score found, less the error
    int found;                 ///< targets so far
    int waiting;               ///< candidates; more than there is room for: they were not all noted
};

__device__ void note(Visit& v, int64_t pixel, double s) {
    if (s == minus_infinity() || s + v.error < v.least) return;
    const int slot = atomicAdd(&v.waiting, 1);
    if (slot < candidates) {
        v.memory.candidate[slot] = pixel;
        v.memory.candidate_score[slot] = s;
    }
}

__device__ Item item_at(const Visit& v, int64_t i) {
    if (v.what == Visit::one) return v.only;
    if (v.what == Visit::listed) {
        const int2 entry = __ldcg(v.work.list + i);
        return {entry.x, entry.y};
    }
    return {static_cast<int>(i), v.what == Visit::all ? __ldcg(v.work.applied + i) : 0};
}

/// The block looks at groups, each warp at a slice of the bands; warp 0 keeps the scores. While a group is summed up the
/// next one is on its way. Returns warp 0's score of the last group. Not inlined: it needs the registers for itself.
__device__ __noinline__ double visit(Visit& v) {
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    const int bands = v.work.shape.bands, pitch = v.pitch, count = v.count;
    const int slice = even((bands + warps - 1) / warps), first = min(warp * slice, even(bands) - 2),
              length = max(0, min(slice, bands - warp * slice)), room = even(bands) - first;
    const int64_t x_pitch = v.work.shape.pitch(), items = v.items, stride = v.stride;
    const float* const x = v.work.cube + static_cast<int64_t>(min(first, bands - 1)) * x_pitch + lane;
    const double* const row = v.rows + first;
    const double* const kept = v.what == Visit::project ? v.work.norm : v.work.score;

    Item item = item_at(v, v.start), next = v.start + stride < items ? item_at(v, v.start + stride) : item;
    float value[slice_step];
    load_slice(x + static_cast<int64_t>(item.group) * group, x_pitch, min(length, slice_step), value);
    double mine = warp == 0 ? __ldcg(kept + static_cast<int64_t>(item.group) * group + lane) : 0.0, mine_next = 0.0;
    double result = minus_infinity(), raised = v.least;
    int buffer = 0;
    for (int64_t i = v.start; i < items; i += stride) {
        const Item after = i + 2 * stride < items ? item_at(v, i + 2 * stride) : next;
        for (int k = item.applied; k < count; k += at_once) {
            const int some = min(at_once, count - k);
            double acc[at_once] = {};
            const double* const q = row + (k - v.base) * pitch;
            dots_of(some, q, pitch, length, room, value, acc);
            for (int b = slice_step; b < slice; b += slice_step) {
                float more[slice_step];
                const int rest = max(0, min(length - b, slice_step));
                load_slice(x + static_cast<int64_t>(rest > 0 ? b : 0) * x_pitch + static_cast<int64_t>(item.group) * group,
                           x_pitch, rest, more);
                dots_of(some, q + min(b, room - 2), pitch, rest, max(2, room - b), more, acc);
            }
            if (k + at_once >= count) {
                load_slice(x + static_cast<int64_t>(next.group) * group, x_pitch, min(length, slice_step), value);
                if (warp == 0) mine_next = __ldcg(kept + static_cast<int64_t>(next.group) * group + lane);
            }
            double* const partial = v.memory.partial + buffer * at_once * warps * 32;
            double* const product = v.memory.product + buffer * at_once * 32;
#pragma unroll
            for (int j = 0; j < at_once; ++j)
                if (j < some) partial[(j * warps + warp) * 32 + lane] = acc[j];
            __syncthreads();
            if (warp < some) {
                double sum = 0;
#pragma unroll
                for (int u = 0; u < warps; ++u)
                    sum += partial[(warp * warps + u) * 32 + lane];
                product[warp * 32 + lane] = sum;
            }
            __syncthreads();
            if (warp == 0 && mine != minus_infinity()) { // NaN arises in invalid pixels
                if (v.what == Visit::project)
                    mine = v.work.shape.sign ? product[lane] : fabs(product[lane]);
                else
                    for (int j = 0; j < some; ++j)
                        mine -= product[j * 32 + lane] * product[j * 32 + lane];
            }
            buffer ^= 1;
        }
        if (item.applied >= count) { // nothing was to be done
            load_slice(x + static_cast<int64_t>(next.group) * group, x_pitch, min(length, slice_step), value);
            if (warp == 0) mine_next = __ldcg(kept + static_cast<int64_t>(next.group) * group + lane);
        }
        if (warp == 0) {
            const int64_t pixel = static_cast<int64_t>(item.group) * group + lane;
            if (v.what == Visit::project && v.work.shape.sign && among(pixel, v.memory.found, v.found))
                mine = minus_infinity();
            v.work.score[pixel] = mine;
            const double most = warp_max(mine);
            if (lane == 0) {
                v.work.greatest[item.group] = most;
                if (v.what != Visit::project) v.work.applied[item.group] = count;
                if (most - v.error > raised && v.what != Visit::all) {
                    raised = most - v.error;
                    atomicMax(v.floor, ordered(raised));
                }
            }
            if (v.what == Visit::listed) note(v, pixel, mine);
            result = mine;
            __syncwarp();
        }
        item = next;
        next = after;
        mine = mine_next;
    }
    __syncthreads();
    return result;
}

__global__ void __launch_bounds__(threads, 2) search(SearchWork w, int window, BlockBest* blocks,
                                                      unsigned long long* floors, unsigned* lengths) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ BlockBest best;
    __shared__ int listed;
    __shared__ __align__(16) unsigned char job_memory[sizeof(Visit)];
    Visit& job = *reinterpret_cast<Visit*>(job_memory);
    __shared__ double warp_values[warps];
    __shared__ int64_t warp_groups[warps];
    const cg::grid_group grid = cg::this_grid();
    const SearchShape shape = w.shape;
    const Shared m = carve(memory, shape, window);
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    const int64_t pitch = shape.pitch(), step = gridDim.x;
    Basis basis{w.basis, m.recent, shape.bands, even(shape.bands), 0};
    unsigned long long visits = 0; // of this warp
    double first_norm = 0, error = 0;
    int count = 0; // targets found

    // A block owns every gridDim.x-th group, so that bright areas are spread over all blocks; it looks after the bounds of
    // its own, and may be given any group to visit. What other blocks write is read past the first-level cache (__ldcg).
    const int64_t groups = shape.groups(), mine = (groups - blockIdx.x + step - 1) / step;
    const auto own = [&](int64_t i) -> int64_t { return i * step + blockIdx.x; };
    int listings = 0; // lists made so far, the same in all blocks
    const auto run = [&](Visit::What what, Item only, int64_t start, int64_t items, int64_t stride) {
        if (start >= items) return minus_infinity();
        __syncthreads();
        if (threadIdx.x == 0) {
            job.what = what;
            job.rows = what == Visit::project ? m.p : basis.recent;
            job.base = what == Visit::project ? 0 : basis.base;
            job.count = what == Visit::project ? 1 : count;
            job.only = only;
            job.start = start;
            job.items = items;
            job.stride = stride;
        }
        __syncthreads();
        const int64_t looked = (items - start + stride - 1) / stride;
        if (warp == 0) visits += static_cast<unsigned long long>(looked);
        return visit(job);
    };
    if (threadIdx.x == 0) {
        job.work = w;
        job.memory = m;
        job.pitch = basis.pitch;
    }

    // ---- the norms, and each block's first of the longest
    unsigned long long valid_here = 0;
    double longest = minus_infinity();
    long long longest_at = -1;
    for (int64_t i = warp; i < mine; i += warps) {
        const int64_t g = own(i), pixel = g * group + lane;
        double n = 0;
        const float* at = w.cube + pixel;
        constexpr int unroll = 16;
        for (int b = 0; b < shape.bands; b += unroll, at += unroll * pitch) {
            float value[unroll];
#pragma unroll
            for (int u = 0; u < unroll; ++u)
                value[u] = at[min(u, shape.bands - 1 - b) * pitch];
#pragma unroll
            for (int u = 0; u < unroll; ++u) { // zeros change nothing; the square is exact
                const double v = b + u < shape.bands ? static_cast<double>(value[u]) : 0.0;
                n = fma(v, v, n);
            }
        }
        const bool valid = pixel < shape.pixels && n > 0 && n <= 1e300;
        if (!valid) n = minus_infinity();
        valid_here += valid;
        w.norm[pixel] = n;
        w.score[pixel] = n;
        const double most = warp_max(n);
        if (lane == 0) {
            w.greatest[g] = most;
            w.applied[g] = 0;
        }
        ++visits;
        if (valid && before(n, pixel, longest, longest_at)) {
            longest = n;
            longest_at = pixel;
        }
    }
    for (int o = 16; o > 0; o /= 2) {
        valid_here += __shfl_xor_sync(all, valid_here, o);
        const double other = __shfl_xor_sync(all, longest, o);
        const long long other_at = __shfl_xor_sync(all, longest_at, o);
        if (before(other, other_at, longest, longest_at)) {
            longest = other;
            longest_at = other_at;
        }
    }
    if (threadIdx.x == 0) best = {minus_infinity(), -1};
    __syncthreads();
    for (int v = 0; v < warps; ++v) {
        if (warp == v && lane == 0 && before(longest, longest_at, best.score, best.pixel)) best = {longest, longest_at};
        __syncthreads();
    }
    if (lane == 0 && valid_here) atomicAdd(&w.result->valid, valid_here);

    End end = End::complete;
    for (;;) {
        // ---- the best of all blocks becomes a target
        if (threadIdx.x == 0) blocks[blockIdx.x] = best;
        grid.sync();
        {
            double s = minus_infinity();
            long long at = -1;
            for (unsigned k = threadIdx.x; k < gridDim.x; k += threads) {
                const double other = __ldcg(&blocks[k].score);
                const long long other_at = __ldcg(&blocks[k].pixel);
                if (before(other, other_at, s, at)) {
                    s = other;
                    at = other_at;
                }
            }
            for (int o = 16; o > 0; o /= 2) {
                const double other = __shfl_xor_sync(all, s, o);
                const long long other_at = __shfl_xor_sync(all, at, o);
                if (before(other, other_at, s, at)) {
                    s = other;
                    at = other_at;
                }
            }
            if (lane == 0) {
                warp_values[warp] = s;
                warp_groups[warp] = at;
            }
            __syncthreads();
            for (int v = 0; v < warps; ++v)
                if (before(warp_values[v], warp_groups[v], s, at)) {
                    s = warp_values[v];
                    at = warp_groups[v];
                }
            __syncthreads();
            if (threadIdx.x == 0) best = {s, at};
            __syncthreads();
        }
        const BlockBest chosen = best; // the same in every block
        if (count == 0 && chosen.pixel < 0) break; // no valid pixel
        if (count == 0) first_norm = chosen.score;
        if (count > 0) {
            const double limit = rank_limit * first_norm;
            if (shape.gs && shape.sign && (chosen.pixel < 0 || chosen.score <= 0)) {
                end = End::nothing_positive;
                break;
            }
            if (chosen.pixel < 0) {
                end = End::rank;
                break;
            }
            const double left =
                shape.gs ? squared_residual(w, basis, count, chosen.pixel, m.vector, m.coefficients) : chosen.score;
            if (left < limit) {
                end = End::rank;
                break;
            }
        }
        if (threadIdx.x == 0) {
            m.found[count] = chosen.pixel;
            if (blockIdx.x == 0) {
                w.found[count] = chosen.pixel;
                w.found_score[count] = chosen.score;
            }
        }
        if (count + 1 == shape.targets) {
            ++count;
            break;
        }
        // The window of recent targets is full: apply them everywhere, and start anew.
        if (count - basis.base == window) {
            if (!shape.gs) {
                run(Visit::all, {}, blockIdx.x, groups, step);
                // A group's next reader may be another block.
                grid.sync();
            }
            basis.base = count;
        }
        for (int b = static_cast<int>(threadIdx.x); b < shape.bands; b += threads)
            m.vector[b] = static_cast<double>(w.cube[b * pitch + chosen.pixel]);
        orthogonalise(basis, count, m.vector, m.coefficients);
        const double length = __dsqrt_rn(strand_dot([&](int b) { return m.vector[b]; }, [&](int b) { return m.vector[b]; },
                                                    shape.bands));
        for (int b = static_cast<int>(threadIdx.x); b < shape.bands; b += threads) {
            const double q = __ddiv_rn(m.vector[b], length);
            basis.recent[(count - basis.base) * basis.pitch + b] = q;
            if (b == shape.bands - 1 && shape.bands % 2) basis.recent[(count - basis.base) * basis.pitch + b + 1] = 0;
            if (blockIdx.x == 0) w.basis[static_cast<size_t>(count) * shape.bands + b] = q;
        }
        ++count;
        __syncthreads();
        error = 8.0 * (count + 1) * (shape.bands + 4) * unit_roundoff * first_norm;
        if (shape.gs) {
            for (int b = static_cast<int>(threadIdx.x); b < shape.bands; b += threads)
                m.p[b] = 1.0;
            orthogonalise(basis, count, m.p, m.coefficients);
            const double squared =
                strand_dot([&](int b) { return m.p[b]; }, [&](int b) { return m.p[b]; }, shape.bands);
            if (squared < 1e-16 * shape.bands) {
                end = End::p_vanished;
                break;
            }
            error = 4.0 * (shape.bands + 4) * unit_roundoff * sqrt(squared * first_norm);
        }

        // ---- a lower bound of the next score
        unsigned long long* const floor = floors + count;
        double least = minus_infinity(), top_score = minus_infinity();
        int64_t top_group = 0, items = 0;
        __syncthreads();
        if (threadIdx.x == 0) {
            best = {minus_infinity(), -1};
            job.waiting = 0;
            job.error = error;
            job.least = minus_infinity();
            job.floor = floor;
            job.found = count;
            if (shape.gs && shape.bands % 2) m.p[shape.bands] = 0;
        }
        if (shape.gs) {
            run(Visit::project, {}, blockIdx.x, groups, step);
            grid.sync();
            least = from_ordered(__ldcg(floor));
        } else {
            double top = minus_infinity();
            top_group = blockIdx.x;
            for (int64_t i = threadIdx.x; i < mine; i += threads) {
                const double here = __ldcg(w.greatest + own(i));
                if (here > top) {
                    top = here;
                    top_group = own(i);
                }
            }
            for (int o = 16; o > 0; o /= 2) {
                const double other = __shfl_xor_sync(all, top, o);
                const int64_t other_group = __shfl_xor_sync(all, top_group, o);
                if (other > top || (other == top && other_group < top_group)) {
                    top = other;
                    top_group = other_group;
                }
            }
            if (lane == 0) {
                warp_values[warp] = top;
                warp_groups[warp] = top_group;
            }
            __syncthreads();
            for (int v = 0; v < warps; ++v)
                if (warp_values[v] > top || (warp_values[v] == top && warp_groups[v] < top_group)) {
                    top = warp_values[v];
                    top_group = warp_groups[v];
                }
            if (top != minus_infinity())
                top_score =
                    run(Visit::one, {static_cast<int>(top_group), __ldcg(w.applied + top_group)}, 0, 1, 1);
            grid.sync();

            // ---- groups that may hold more: shared out evenly among all blocks
            least = from_ordered(__ldcg(floor));
            unsigned* const length = lengths + listings++;
            for (int64_t from = 0; from < mine; from += threads) {
                const int64_t i = from + threadIdx.x;
                int applied = count;
                if (i < mine && __ldcg(w.greatest + own(i)) + error >= least) applied = __ldcg(w.applied + own(i));
                const unsigned wanted = __ballot_sync(all, applied < count);
                if (wanted == 0) continue;
                unsigned at = 0;
                if (lane == 0) at = atomicAdd(length, __popc(wanted));
                at = __shfl_sync(all, at, 0) + __popc(wanted & ((1u << lane) - 1));
                if (applied < count) w.list[at] = make_int2(static_cast<int>(own(i)), applied);
            }
            grid.sync();
            items = __ldcg(length);
            __syncthreads();
            if (threadIdx.x == 0) job.least = least;
            __syncthreads();
            if (warp == 0) note(job, top_group * group + lane, top_score);
            run(Visit::listed, {}, blockIdx.x, items, step);
            __syncthreads();
            if (threadIdx.x == 0) job.least = from_ordered(__ldcg(floor)); // other blocks may be raising it
            __syncthreads();
            least = job.least;
        }

        // ---- the pixels that may be it. Which ones are decided anew depends on how far other blocks are; the best of them
        // does not.
        __syncthreads();
        const auto decide = [&] {
            __syncthreads();
            const int held = min(job.waiting, candidates);
            for (int k = 0; k < held; ++k) {
                const long long pixel = m.candidate[k];
                if (m.candidate_score[k] + error < least) continue; // the same for all threads
                double decisive;
                if (shape.gs) {
                    // Every warp computes the same.
                    decisive = strand_dot([&](int b) { return m.p[b]; },
                                          [&](int b) { return static_cast<double>(w.cube[b * pitch + pixel]); },
                                          shape.bands);
                    if (!shape.sign) decisive = fabs(decisive);
                } else {
                    decisive = squared_residual(w, basis, count, pixel, m.vector, m.coefficients);
                }
                __syncthreads();
                if (threadIdx.x == 0 && before(decisive, pixel, best.score, best.pixel)) best = {decisive, pixel};
            }
            __syncthreads();
            if (threadIdx.x == 0) job.waiting = 0;
            __syncthreads();
        };
        // All that are in the groups which this block has looked at, when they were not noted or too many.
        if (shape.gs || job.waiting > candidates) {
            __syncthreads();
            if (threadIdx.x == 0) job.waiting = 0;
            __syncthreads();
            const auto collect = [&](int64_t g) {
                const int64_t pixel = g * group + lane;
                if (warp == 0) {
                    const double s = __ldcg(w.score + pixel);
                    if (s != minus_infinity() && s + error >= least &&
                        !(shape.sign && among(pixel, m.found, count))) {
                        const int slot = atomicAdd(&job.waiting, 1);
                        m.candidate[slot] = pixel;
                        m.candidate_score[slot] = s;
                    }
                }
                __syncthreads();
                const bool full = job.waiting > candidates - group;
                __syncthreads();
                if (full) decide();
            };
            if (shape.gs)
                for (int64_t from = 0; from < mine; from += threads) {
                    if (threadIdx.x == 0) listed = 0;
                    __syncthreads();
                    const int64_t i = from + threadIdx.x;
                    if (i < mine && __ldcg(w.greatest + own(i)) + error >= least)
                        m.list[atomicAdd(&listed, 1)] = static_cast<int>(i);
                    __syncthreads();
                    const int here = listed;
                    for (int k = 0; k < here; ++k)
                        collect(own(m.list[k]));
                    __syncthreads();
                }
            else {
                if (top_group < groups) collect(top_group);
                for (int64_t i = blockIdx.x; i < items; i += step)
                    collect(__ldcg(w.list + i).x);
            }
        }
        decide();
    }
    if (lane == 0) atomicAdd(&w.result->visits, visits);
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        w.result->found = count;
        w.result->end = end;
    }
}

} // namespace

uint64_t SearchWork::scratch_bytes(const SearchShape& shape) {
    return sizeof(BlockBest) * most_blocks + (sizeof(unsigned long long) + sizeof(unsigned)) * (static_cast<uint64_t>(shape.targets) + 1);
}

uint64_t SearchWork::state_bytes(const SearchShape& s) {
    const auto groups = static_cast<uint64_t>(s.groups()), targets = static_cast<uint64_t>(s.targets);
    return groups * (group * 16 + 20) + targets * (static_cast<uint64_t>(s.bands) * 8 + 16) + sizeof(SearchResult) +
           scratch_bytes(s);
}

void launch_search(const SearchWork& work, cudaStream_t stream) {
    const SearchShape& s = work.shape;
    int device = 0, processors = 0, cooperative = 0, limit = 0, per_processor = 0;
    HSI_CUDA_CHECK(cudaGetDevice(&device));
    HSI_CUDA_CHECK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
    HSI_CUDA_CHECK(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, device));
    HSI_CUDA_CHECK(cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    if (!cooperative) throw Error("this GPU cannot run cooperative kernels", "Use -device cpu.");
    int window = window_of(s);
    const size_t bytes = shared_bytes(s);
    if (bytes > static_cast<size_t>(limit))
        throw Error("the search for " + std::to_string(s.targets) + " targets in " + std::to_string(s.bands) +
                        " bands needs more shared memory than this GPU has",
                    "Use -device cpu.");
    HSI_CUDA_CHECK(cudaFuncSetAttribute(search, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)));
    HSI_CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_processor, search, threads, bytes));
    const int64_t grid = std::min<int64_t>({int64_t{processors} * std::min(per_processor, 2), s.groups(), most_blocks});
    HSI_CUDA_CHECK(cudaMemsetAsync(work.result, 0, sizeof(SearchResult), stream));
    HSI_CUDA_CHECK(cudaMemsetAsync(work.scratch, 0, SearchWork::scratch_bytes(s), stream));
    auto* blocks = reinterpret_cast<BlockBest*>(work.scratch);
    auto* floors = reinterpret_cast<unsigned long long*>(work.scratch + sizeof(BlockBest) * most_blocks);
    auto* lengths = reinterpret_cast<unsigned*>(floors + s.targets + 1);
    SearchWork copy = work;
    void* arguments[] = {&copy, &window, &blocks, &floors, &lengths};
    HSI_CUDA_CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(search), dim3(static_cast<unsigned>(grid)),
                                               dim3(threads), arguments, bytes, stream));
}

} // namespace hsi::atdca::gpu
