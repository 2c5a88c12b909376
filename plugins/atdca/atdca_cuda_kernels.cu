// SPDX-License-Identifier: MIT
#include "atdca/atdca_cuda_kernels.cuh"
#include "core/error.h"
#include "cuda/check.h"

#include <cooperative_groups.h>

#include <algorithm>

namespace hsi::atdca::gpu {
namespace {

namespace cg = cooperative_groups;

constexpr int threads = 256, warps = threads / 32;
constexpr int at_once = 8;        ///< targets applied in one pass over a group, by a warp
constexpr int at_once_together = 4; ///< the same, by a block
constexpr int candidates = 64;    ///< of a block, decided by all its warps
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
    double *recent, *vector, *p, *coefficients, *partial;
    long long *candidate, *found;
    int* list;
};

__host__ __device__ inline int even(int n) { return (n + 1) / 2 * 2; }

/// q_k in shared memory at a time.
__host__ inline int window_of(const SearchShape& s) {
    const int row = even(s.bands) * 8;
    return std::max(1, std::min(s.targets, (72 << 10) / row));
}

__host__ inline size_t shared_bytes(const SearchShape& s) {
    const size_t row = static_cast<size_t>(even(s.bands)) * 8;
    return row * (static_cast<size_t>(window_of(s)) + 2) + static_cast<size_t>(even(s.targets)) * 16 +
           sizeof(double) * warps * at_once_together * 32 + sizeof(int) * threads + sizeof(long long) * candidates;
}

__device__ Shared carve(unsigned char* memory, const SearchShape& s, int window) {
    Shared m;
    const int row = even(s.bands);
    m.recent = reinterpret_cast<double*>(memory);
    m.vector = m.recent + static_cast<size_t>(window) * row;
    m.p = m.vector + row;
    m.coefficients = m.p + row;
    m.partial = m.coefficients + even(s.targets);
    m.candidate = reinterpret_cast<long long*>(m.partial + warps * at_once_together * 32);
    m.found = m.candidate + candidates;
    m.list = reinterpret_cast<int*>(m.found + even(s.targets));
    return m;
}

/// v -= sum_k (q_k.v) q_k, twice, by the whole block, as basis.h has it.
__device__ void orthogonalise(const Basis& basis, int count, double* v, double* c) {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    for (int round = 0; round < 2; ++round) {
        __syncthreads();
        for (int k = warp; k < count; k += warps) {
            const double d = strand_dot([&](int b) { return basis.at(k, b); }, [&](int b) { return v[b]; }, basis.bands);
            if (threadIdx.x % 32 == 0) c[k] = d;
        }
        __syncthreads();
        for (int b = static_cast<int>(threadIdx.x); b < basis.bands; b += threads) {
            double r = v[b];
            for (int k = 0; k < count; ++k)
                r = __dsub_rn(r, __dmul_rn(c[k], basis.at(k, b)));
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
    for (int k = static_cast<int>(threadIdx.x) / 32; k < count; k += warps) {
        const double d = strand_dot([&](int b) { return basis.at(k, b); }, [&](int b) { return x[b]; }, basis.bands);
        if (threadIdx.x % 32 == 0) c[k] = d;
    }
    __syncthreads();
    double s = w.norm[pixel];
    for (int k = 0; k < count; ++k)
        s = __dsub_rn(s, __dmul_rn(c[k], c[k]));
    return s;
}

/// acc[j] = sum over bands [first, last) of q[j * pitch + b] * x_b for this lane's pixel.
template <int M>
__device__ void dots(const float* x, int64_t x_pitch, const double* q, int pitch, int first, int last, double (&acc)[M]) {
    constexpr int unroll = 16;
    for (int j = 0; j < M; ++j)
        acc[j] = 0;
    int b = first;
    const float* at = x + first * x_pitch;
    for (; b + unroll <= last; b += unroll, at += unroll * x_pitch) {
        float value[unroll];
#pragma unroll
        for (int u = 0; u < unroll; ++u)
            value[u] = at[u * x_pitch];
#pragma unroll
        for (int u = 0; u < unroll; ++u) {
            const double v = static_cast<double>(value[u]);
#pragma unroll
            for (int j = 0; j < M; ++j)
                acc[j] = fma(q[j * pitch + b + u], v, acc[j]);
        }
    }
    for (; b < last; ++b, at += x_pitch) {
        const double v = static_cast<double>(*at);
#pragma unroll
        for (int j = 0; j < M; ++j)
            acc[j] = fma(q[j * pitch + b], v, acc[j]);
    }
}

template <int M>
__device__ double squares(const float* x, int64_t x_pitch, const double* q, int pitch, int first, int last) {
    double acc[M], sum = 0;
    dots<M>(x, x_pitch, q, pitch, first, last, acc);
#pragma unroll
    for (int j = 0; j < M; ++j)
        sum = fma(acc[j], acc[j], sum);
    return sum;
}

__device__ double squares_of(int count, const float* x, int64_t x_pitch, const double* q, int pitch, int bands) {
    switch (count) {
    case 1: return squares<1>(x, x_pitch, q, pitch, 0, bands);
    case 2: return squares<2>(x, x_pitch, q, pitch, 0, bands);
    case 3: return squares<3>(x, x_pitch, q, pitch, 0, bands);
    case 4: return squares<4>(x, x_pitch, q, pitch, 0, bands);
    case 5: return squares<5>(x, x_pitch, q, pitch, 0, bands);
    case 6: return squares<6>(x, x_pitch, q, pitch, 0, bands);
    case 7: return squares<7>(x, x_pitch, q, pitch, 0, bands);
    default: return squares<8>(x, x_pitch, q, pitch, 0, bands);
    }
}

/// One warp: a group's scores with all `count` targets; returns the greatest, to all lanes.
__device__ double refresh(const SearchWork& w, const Basis& basis, int count, int64_t g) {
    const int64_t pixel = g * group + threadIdx.x % 32, pitch = w.shape.pitch();
    double s = w.score[pixel];
    const bool valid = s != minus_infinity();
    for (int k = w.applied[g]; k < count;) {
        const int some = min(at_once, count - k);
        const double less = squares_of(some, w.cube + pixel, pitch, basis.recent + (k - basis.base) * basis.pitch,
                                       basis.pitch, basis.bands);
        s -= less;
        k += some;
    }
    if (!valid) s = minus_infinity(); // NaN arises there
    w.score[pixel] = s;
    const double most = warp_max(s);
    if (threadIdx.x % 32 == 0) {
        w.greatest[g] = most;
        w.applied[g] = count;
    }
    __syncwarp();
    return most;
}

/// The same by the whole block, each warp a part of the bands.
__device__ double refresh_together(const SearchWork& w, const Basis& basis, int count, int64_t g, double* partial) {
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    const int64_t pixel = g * group + lane, pitch = w.shape.pitch();
    const int first = basis.bands * warp / warps, last = basis.bands * (warp + 1) / warps;
    double s = w.score[pixel];
    const bool valid = s != minus_infinity();
    int k = w.applied[g];
    while (k < count) {
        constexpr int some = at_once_together;
        const int now = min(some, count - k);
        const double* q = basis.recent + (k - basis.base) * basis.pitch;
        double acc[some] = {};
        if (now == some) {
            dots<some>(w.cube + pixel, pitch, q, basis.pitch, first, last, acc);
        } else {
            for (int j = 0; j < now; ++j) {
                double one[1];
                dots<1>(w.cube + pixel, pitch, q + j * basis.pitch, basis.pitch, first, last, one);
                acc[j] = one[0];
            }
        }
        __syncthreads();
#pragma unroll
        for (int j = 0; j < some; ++j)
            partial[(j * warps + warp) * 32 + lane] = acc[j];
        __syncthreads();
        for (int j = 0; j < now; ++j) {
            double c = 0;
            for (int v = 0; v < warps; ++v)
                c += partial[(j * warps + v) * 32 + lane];
            s -= c * c;
        }
        k += now;
    }
    if (!valid) s = minus_infinity();
    const double most = warp_max(s);
    __syncthreads(); // every warp has read the old score and count
    if (warp == 0) {
        w.score[pixel] = s;
        if (lane == 0) {
            w.greatest[g] = most;
            w.applied[g] = count;
        }
    }
    __syncthreads();
    return most;
}

__device__ bool among(long long pixel, const long long* found, int count) {
    for (int k = 0; k < count; ++k)
        if (found[k] == pixel) return true;
    return false;
}

__global__ void __launch_bounds__(threads, 2) search(SearchWork w, int window, BlockBest* blocks,
                                                      unsigned long long* floors) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ BlockBest best;
    __shared__ int listed, waiting;
    __shared__ double warp_values[warps];
    __shared__ int64_t warp_groups[warps];
    const cg::grid_group grid = cg::this_grid();
    const SearchShape shape = w.shape;
    const Shared m = carve(memory, shape, window);
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    const int64_t pitch = shape.pitch(), groups = shape.groups(), step = gridDim.x;
    Basis basis{w.basis, m.recent, shape.bands, even(shape.bands), 0};
    unsigned long long visits = 0; // of this warp
    double first_norm = 0;

    // A block's groups are blockIdx.x, blockIdx.x + gridDim.x ...: bright areas are spread over all blocks.
    const auto own_groups = [&]() -> int64_t {
        return blockIdx.x < groups ? (groups - blockIdx.x + step - 1) / step : 0;
    };
    const int64_t mine = own_groups();

    // ---- the norms, and each block's first of the longest
    unsigned long long valid_here = 0;
    double longest = minus_infinity();
    long long longest_at = -1;
    for (int64_t i = warp; i < mine; i += warps) {
        const int64_t g = blockIdx.x + i * step, pixel = g * group + lane;
        double n = 0;
        int b = 0;
        const float* at = w.cube + pixel;
        constexpr int unroll = 16;
        for (; b + unroll <= shape.bands; b += unroll, at += unroll * pitch) {
            float value[unroll];
#pragma unroll
            for (int u = 0; u < unroll; ++u)
                value[u] = at[u * pitch];
#pragma unroll
            for (int u = 0; u < unroll; ++u)
                n = fma(static_cast<double>(value[u]), static_cast<double>(value[u]), n); // the square is exact
        }
        for (; b < shape.bands; ++b, at += pitch)
            n = fma(static_cast<double>(*at), static_cast<double>(*at), n);
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
    int count = 0; // targets found
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
            if (!shape.gs)
                for (int64_t i = warp; i < mine; i += warps) {
                    const int64_t g = blockIdx.x + i * step;
                    if (w.applied[g] < count) {
                        refresh(w, basis, count, g);
                        ++visits;
                    }
                }
            __syncthreads();
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
            if (blockIdx.x == 0) w.basis[static_cast<size_t>(count) * shape.bands + b] = q;
        }
        ++count;
        __syncthreads();
        double error = 8.0 * (count + 1) * (shape.bands + 4) * unit_roundoff * first_norm;
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
        if (shape.gs) {
            double most = minus_infinity();
            for (int64_t i = warp; i < mine; i += warps) {
                const int64_t g = blockIdx.x + i * step, pixel = g * group + lane;
                double f[1];
                dots<1>(w.cube + pixel, pitch, m.p, basis.pitch, 0, shape.bands, f);
                double value = shape.sign ? f[0] : fabs(f[0]);
                if (w.norm[pixel] == minus_infinity()) value = minus_infinity();
                if (shape.sign && value > most && among(pixel, m.found, count)) value = minus_infinity();
                w.score[pixel] = value;
                const double here = warp_max(value);
                if (lane == 0) w.greatest[g] = here;
                most = fmax(most, here);
                ++visits;
            }
            if (lane == 0 && most != minus_infinity()) atomicMax(floor, ordered(most - error));
        } else if (mine > 0) {
            double top = minus_infinity();
            int64_t top_group = blockIdx.x;
            for (int64_t i = threadIdx.x; i < mine; i += threads) {
                const int64_t g = blockIdx.x + i * step;
                if (w.greatest[g] > top) {
                    top = w.greatest[g];
                    top_group = g;
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
            if (top != minus_infinity()) {
                const double most = refresh_together(w, basis, count, top_group, m.partial);
                if (threadIdx.x == 0) atomicMax(floor, ordered(most - error));
                visits += warp == 0;
            }
        }
        grid.sync();

        // ---- groups that may hold it, and the pixels in them that may be it
        double least = from_ordered(__ldcg(floor));
        if (!shape.gs)
            for (int64_t from = 0; from < mine; from += threads) {
                if (threadIdx.x == 0) listed = 0;
                __syncthreads();
                const int64_t i = from + threadIdx.x;
                if (i < mine) {
                    const int64_t g = blockIdx.x + i * step;
                    if (w.applied[g] < count && w.greatest[g] + error >= least)
                        m.list[atomicAdd(&listed, 1)] = static_cast<int>(i);
                }
                __syncthreads();
                for (int k = warp; k < listed; k += warps) {
                    const int64_t g = blockIdx.x + m.list[k] * step;
                    if (w.greatest[g] + error >= least) {
                        const double most = refresh(w, basis, count, g);
                        ++visits;
                        if (most - error > least) {
                            if (lane == 0) atomicMax(floor, ordered(most - error));
                            least = most - error;
                        }
                    }
                }
                __syncthreads();
            }
        least = from_ordered(__ldcg(floor));
        // Which pixels are decided anew depends on how far other blocks are; the best of them does not.
        if (threadIdx.x == 0) {
            best = {minus_infinity(), -1};
            waiting = 0;
        }
        __syncthreads();
        const auto decide = [&] {
            __syncthreads();
            const int held = min(waiting, candidates);
            for (int k = 0; k < held; ++k) {
                const long long pixel = m.candidate[k];
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
            if (threadIdx.x == 0) waiting = 0;
            __syncthreads();
        };
        for (int64_t from = 0; from < mine; from += threads) {
            if (threadIdx.x == 0) listed = 0;
            __syncthreads();
            const int64_t i = from + threadIdx.x;
            if (i < mine) {
                const int64_t g = blockIdx.x + i * step;
                if (w.greatest[g] + error >= least && w.greatest[g] != minus_infinity())
                    m.list[atomicAdd(&listed, 1)] = static_cast<int>(i);
            }
            __syncthreads();
            const int groups_here = listed;
            for (int k = 0; k < groups_here; ++k) {
                const int64_t pixel = (blockIdx.x + m.list[k] * step) * group + lane;
                if (warp == 0 && w.score[pixel] + error >= least && w.score[pixel] != minus_infinity() &&
                    !(shape.sign && among(pixel, m.found, count)))
                    m.candidate[atomicAdd(&waiting, 1)] = pixel;
                __syncthreads();
                const bool full = waiting > candidates - group;
                __syncthreads();
                if (full) decide();
            }
            __syncthreads();
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
    return sizeof(BlockBest) * most_blocks + sizeof(unsigned long long) * (static_cast<uint64_t>(shape.targets) + 1);
}

uint64_t SearchWork::state_bytes(const SearchShape& s) {
    const auto groups = static_cast<uint64_t>(s.groups()), targets = static_cast<uint64_t>(s.targets);
    return groups * (group * 16 + 12) + targets * (static_cast<uint64_t>(s.bands) * 8 + 16) + sizeof(SearchResult) +
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
    SearchWork copy = work;
    void* arguments[] = {&copy, &window, &blocks, &floors};
    HSI_CUDA_CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(search), dim3(static_cast<unsigned>(grid)),
                                               dim3(threads), arguments, bytes, stream));
}

} // namespace hsi::atdca::gpu
