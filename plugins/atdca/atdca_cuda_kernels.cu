// SPDX-License-Identifier: MIT
#include "atdca/atdca_cuda_kernels.cuh"
#include "core/error.h"
#include "core/valid_pixel.h"
#include "cuda/check.h"

#include <cooperative_groups.h>

#include <algorithm>

namespace hsi::atdca::gpu {
namespace {

namespace cg = cooperative_groups;

constexpr int threads = 512, warps = threads / 32; ///< per block; each multiprocessor has one block
/// A warp processes eight pixels with four lanes per pixel. The tensor cores multiply matrices of this shape,
/// 8 x 4 and 4 x 8 doubles: four bands of eight pixels times four bands of eight targets.
constexpr int lanes_each = 4, pixels_at_once = 32 / lanes_each, targets_at_once = 8;
/// Bands that the lanes of a pixel load together, sixteen bytes per lane
constexpr int piece = 4 * lanes_each;
/// Pieces that are loaded at a time. With at most 256 bands, a visit of a pixel waits for memory only once.
constexpr int most_pieces = 16;
constexpr int top_warps = 8;        ///< warps per block that compute a lower bound of the next score
constexpr int batch_groups = 64;    ///< groups of a block whose pixels are listed at a time
constexpr int most_blocks = 2048;   ///< most blocks of a launch
constexpr int most_resident = 2048; ///< most groups of a block whose bounds fit into shared memory
constexpr unsigned all = 0xffffffffu;
constexpr double rank_limit = 1e-6, unit_roundoff = 1.1102230246251565e-16;

/// The best pixel of a set, and the score of the second best pixel.
struct Best {
    double score;
    long long pixel; ///< -1 if the set is empty
    double second;
};

/// Returns an unsigned integer with the same order as the double; 0 is less than all results.
__device__ unsigned long long ordered(double d) {
    const auto bits = static_cast<unsigned long long>(__double_as_longlong(d));
    return bits >> 63 ? ~bits : bits | (1ull << 63);
}
__device__ double from_ordered(unsigned long long o) {
    return __longlong_as_double(static_cast<long long>(o >> 63 ? o & ~(1ull << 63) : ~o));
}

__device__ double minus_infinity() {
    return __longlong_as_double(static_cast<long long>(0xfff0000000000000ull));
}

__device__ bool before(double a, long long pa, double b, long long pb) {
    if (pa < 0) return false;
    if (pb < 0) return true;
    return a != b ? a > b : pa < pb;
}

/// Merges the best pixels of a disjoint set into `a`.
__device__ void merge(Best& a, const Best& b) {
    if (before(b.score, b.pixel, a.score, a.pixel))
        a = {b.score, b.pixel, fmax(a.score, b.second)};
    else
        a.second = fmax(a.second, b.score);
}

__device__ void merge_lanes(Best& a) {
#pragma unroll 1
    for (int o = 16; o > 0; o /= 2)
        merge(a, {__shfl_xor_sync(all, a.score, o), __shfl_xor_sync(all, a.pixel, o),
                  __shfl_xor_sync(all, a.second, o)});
}

__device__ double warp_max(double v) {
#pragma unroll 1
    for (int o = 16; o > 0; o /= 2)
        v = fmax(v, __shfl_xor_sync(all, v, o));
    return v;
}

extern __shared__ __align__(16) unsigned char memory[];

/// Returns the address of a position in shared memory, in doubles. Functions receive positions instead of
/// pointers, so that the compiler does not use generic addresses.
__device__ double* shared_at(int place) { return reinterpret_cast<double*>(memory) + place; }

/// Returns basis.h's dot product in all lanes. `b` is in shared memory.
template <class A>
__device__ double strand_dot(A a, const double* b, int n) {
    constexpr int unroll = 8;
    double part = 0;
#pragma unroll 1
    for (int first = static_cast<int>(threadIdx.x % 32); first < n; first += 32 * unroll) {
        double product[unroll];
#pragma unroll
        for (int u = 0; u < unroll; ++u) {
            const int i = first + 32 * u;
            product[u] = i < n ? __dmul_rn(a(i), b[i]) : 0.0; // adding zero is exact
        }
#pragma unroll
        for (int u = 0; u < unroll; ++u)
            part = __dadd_rn(part, product[u]);
    }
#pragma unroll
    for (int o = 16; o > 0; o /= 2)
        part = __dadd_rn(part, __shfl_xor_sync(all, part, o));
    return part;
}

__device__ __noinline__ double dot_of(int a, int b, int n) {
    const double* at = shared_at(a);
    return strand_dot([&](int i) { return at[i]; }, shared_at(b), n);
}
__device__ __noinline__ double dot_with_global(const double* a, int b, int n) {
    // __ldcg reads past the first-level cache, since another block has written the vector.
    return strand_dot([&](int i) { return __ldcg(a + i); }, shared_at(b), n);
}
__device__ __noinline__ double dot_with_pixel(const float* a, int b, int n) {
    return strand_dot([&](int i) { return static_cast<double>(a[i]); }, shared_at(b), n);
}

/// The q_k of the targets. Global memory has all of them; shared memory begins with the most recent ones.
struct Basis {
    const double* global;
    int bands, pitch, base; ///< q_{base}, q_{base+1} ... are in shared memory, `pitch` doubles apart
};

/// Returns the distance between two q_k in shared memory, in doubles. With this distance, eight lanes that
/// read from two q_k use all banks.
__host__ __device__ inline int pitch_of(const SearchShape& s) { return s.row() + 2; }
/// The division of a launch into blocks, and the positions in a block's shared memory, in bytes.
struct Layout {
    int window = 1;   ///< number of q_k in shared memory at a time
    int pieces = 1;   ///< pieces of a spectrum in a warp's buffer at a time
    int stride = 0;   ///< floats between the parts of two pixels in a warp's buffer
    int resident = 0; ///< groups whose bounds are in shared memory: all groups of the block, or 0
    size_t vector, p, coefficients, buffer, greatest, found, list, pixels, bytes;
};

Layout layout_of(const SearchShape& s, int64_t groups_each, size_t limit) {
    const size_t row = static_cast<size_t>(pitch_of(s)) * 8;
    Layout l;
    l.resident = groups_each <= most_resident ? static_cast<int>(groups_each) : 0;
    for (l.pieces = std::min(most_pieces, s.row() / piece);; l.pieces = (l.pieces + 1) / 2) {
        // The stride is an odd multiple of 64 bytes, so two pixels together use all banks.
        l.stride = l.pieces % 2 ? l.pieces * piece : (l.pieces + 1) * piece;
        for (l.window = s.targets; l.window > 0; l.window /= 2) {
            size_t at = row * static_cast<size_t>(l.window);
            const auto take = [&](size_t bytes) {
                const size_t here = at;
                at += (bytes + 15) / 16 * 16;
                return here;
            };
            l.vector = take(row);
            l.p = take(row);
            l.coefficients = take(static_cast<size_t>(s.targets) * 8);
            l.buffer = take(sizeof(float) * warps * pixels_at_once * static_cast<size_t>(l.stride));
            l.greatest = take(static_cast<size_t>(l.resident) * 8);
            l.found = take(static_cast<size_t>(s.targets) * 8);
            l.list = take(sizeof(int) * threads);
            l.pixels = take(sizeof(int) * batch_groups * group);
            l.bytes = at;
            if (l.bytes <= limit) return l;
            // Fewer pieces at a time are better than a smaller window.
            if (l.window <= targets_at_once && l.pieces > 1) break;
        }
        if (l.pieces == 1) return l;
    }
}

/// Returns q_k.v in all lanes. `v` is in shared memory.
__device__ double dot_with(const Basis& basis, int k, int v) {
    return k >= basis.base
               ? dot_of((k - basis.base) * basis.pitch, v, basis.bands)
               : dot_with_global(basis.global + static_cast<size_t>(k) * basis.bands, v, basis.bands);
}

/// Sets c[k] = q_k.v for all k < count. The whole block calls this function.
__device__ void coefficients_of(const Basis& basis, int count, int v, double* c) {
#pragma unroll 1
    for (int k = static_cast<int>(threadIdx.x) / 32; k < count; k += warps) {
        const double d = dot_with(basis, k, v);
        if (threadIdx.x % 32 == 0) c[k] = d;
    }
}

/// Returns squared - sum_k c[k]^2, subtracted in order of k.
__device__ double less_squares(double squared, const double* c, int count) {
#pragma unroll 4
    for (int k = 0; k < count; ++k)
        squared = __dsub_rn(squared, __dmul_rn(c[k], c[k]));
    return squared;
}

/// Subtracts sum_k (q_k.v) q_k from v, twice, as basis.h does. The whole block calls this function; v and c
/// are in shared memory. Sets `residual` to squared - sum_k (q_k.v)^2 of the original v; it is valid after
/// the block's next barrier.
__device__ __noinline__ void orthogonalise(Basis basis, int count, int v_at, int c_at, double squared,
                                           double* residual) {
    double *const v = shared_at(v_at), *const c = shared_at(c_at);
#pragma unroll 1
    for (int round = 0; round < 2; ++round) {
        __syncthreads();
        coefficients_of(basis, count, v_at, c);
        __syncthreads();
#pragma unroll 1
        for (int b = static_cast<int>(threadIdx.x); b < basis.bands; b += threads) {
            double r = v[b];
            const int older = min(count, basis.base);
#pragma unroll 1
            for (int k = 0; k < older; ++k)
                r = __dsub_rn(
                    r, __dmul_rn(c[k], __ldcg(basis.global + static_cast<size_t>(k) * basis.bands + b)));
            const double* q = shared_at(b - basis.base * basis.pitch);
#pragma unroll 8
            for (int k = older; k < count; ++k)
                r = __dsub_rn(r, __dmul_rn(c[k], q[k * basis.pitch]));
            v[b] = r;
        }
        if (round == 0 && threadIdx.x == threads - 1) *residual = less_squares(squared, c, count);
    }
    __syncthreads();
}

/// Returns the decisive ||x||^2 - sum_k (q_k.x)^2 of a pixel. The whole block calls this function.
__device__ __noinline__ double squared_residual(const float* pixel, double norm, Basis basis, int count,
                                                int x_at, int c_at) {
    double *const x = shared_at(x_at), *const c = shared_at(c_at);
    __syncthreads();
#pragma unroll 1
    for (int b = static_cast<int>(threadIdx.x); b < basis.bands; b += threads)
        x[b] = static_cast<double>(pixel[b]);
    __syncthreads();
    coefficients_of(basis, count, x_at, c);
    __syncthreads();
    return less_squares(norm, c, count);
}

/// Copies this lane's part of a spectrum, `count` pieces from `x` on, to its warp's buffer.
__device__ void bring(const float* x, int count, float* buffer) {
#if __CUDA_ARCH__ >= 800
    const auto to = static_cast<unsigned>(__cvta_generic_to_shared(buffer));
#pragma unroll 4
    for (int i = 0; i < count; ++i)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + i * piece * 4), "l"(x + i * piece)
                     : "memory");
    asm volatile("cp.async.wait_all;" ::: "memory");
#else
#pragma unroll 4
    for (int i = 0; i < count; ++i)
        *reinterpret_cast<float4*>(buffer + i * piece) = *reinterpret_cast<const float4*>(x + i * piece);
#endif
    __syncwarp(); // All lanes of the warp use the buffer for products.
}

/// Computes d += a b for the bands of eight pixels and of eight targets. This lane passes one band of pixel
/// lane / 4 and one band of target lane / 4. It receives the products of pixel lane / 4 with the targets lane
/// % 4 * 2 and lane % 4 * 2 + 1.
__device__ void multiply(double (&d)[2], double a, double b) {
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+d"(d[0]), "+d"(d[1])
        : "d"(a), "d"(b));
#else
    const int lane = static_cast<int>(threadIdx.x) % 32;
    for (int k = 0; k < 4; ++k) {
        const double of_pixel = __shfl_sync(all, a, lane / 4 * 4 + k);
        for (int n = 0; n < 2; ++n)
            d[n] = fma(of_pixel, __shfl_sync(all, b, (lane % 4 * 2 + n) * 4 + k), d[n]);
    }
#endif
}

/// Adds the products of the eight pixels in the warp's buffer with eight vectors to `sum`. q: this lane's
/// part of its vector.
__device__ void accumulate(const float* buffer, const double* q, int count, double (&sum)[2][2]) {
#pragma unroll 4
    for (int i = 0; i < count; ++i) {
        const float4 x = *reinterpret_cast<const float4*>(buffer + i * piece);
        const double2 low = *reinterpret_cast<const double2*>(q + i * piece);
        const double2 high = *reinterpret_cast<const double2*>(q + i * piece + 2);
        multiply(sum[0], static_cast<double>(x.x), low.x);
        multiply(sum[1], static_cast<double>(x.y), low.y);
        multiply(sum[0], static_cast<double>(x.z), high.x);
        multiply(sum[1], static_cast<double>(x.w), high.y);
    }
}

/// This lane's part of the warp's buffer for the bands of eight pixels, and the number of pieces per spectrum
/// that fit into the buffer.
struct Buffer {
    float* at;
    int pieces;
};

/// Computes a warp's dot products of its eight pixels with eight vectors in shared memory; see multiply() for
/// d. x: this lane's part of its pixel's spectrum. q: position of this lane's vector. fresh: the pixels are
/// not in the buffer yet.
__device__ void dots(const float* x, int count, Buffer buffer, int q, bool fresh, double (&d)[2]) {
    // There are two sums, since with a single sum each product would wait for the product before it.
    double sum[2][2] = {};
    const double* const mine = shared_at(q) + threadIdx.x % lanes_each * 4;
    if (count <= buffer.pieces) {
        if (fresh) bring(x, count, buffer.at);
        accumulate(buffer.at, mine, count, sum);
    } else {
#pragma unroll 1
        for (int from = 0; from < count; from += buffer.pieces) {
            const int now = min(buffer.pieces, count - from);
            bring(x + from * piece, now, buffer.at);
            accumulate(buffer.at, mine + from * piece, now, sum);
        }
    }
    d[0] = sum[0][0] + sum[1][0];
    d[1] = sum[0][1] + sum[1][1];
}

/// Returns the sum of (q_k.x)^2 over `missed` targets, from the k-th target in shared memory on, to all lanes
/// of the pixel. The first `skip` of these targets are left out, since the pixels of a warp may have missed
/// different numbers of targets.
__device__ __noinline__ double missed_squares(const float* x, int count, Buffer buffer, int q_pitch, int k,
                                              int skip, int missed) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    double less = 0;
#pragma unroll 1
    for (int from = 0; from < missed; from += targets_at_once) {
        double d[2];
        dots(x, count, buffer, (k + min(from + lane / lanes_each, missed - 1)) * q_pitch, from == 0, d);
        const int first = from + lane % lanes_each * 2;
        if (first >= skip && first < missed) less = fma(d[0], d[0], less);
        if (first + 1 >= skip && first + 1 < missed) less = fma(d[1], d[1], less);
    }
    less += __shfl_xor_sync(all, less, 1);
    less += __shfl_xor_sync(all, less, 2);
    return less;
}

/// Returns p.x to all lanes of the pixel. `p` is in shared memory.
__device__ __noinline__ double projection(const float* x, int count, Buffer buffer, int p) {
    double d[2];
    dots(x, count, buffer, p, true, d);
    return __shfl_sync(all, d[0], threadIdx.x % 32 / lanes_each * lanes_each);
}

__device__ bool among(long long pixel, const long long* found, int count) {
    for (int k = 0; k < count; ++k)
        if (found[k] == pixel) return true;
    return false;
}

/// The data that a block's threads share, apart from `memory`.
struct Shared {
    Best warp_best[most_blocks / 32];
    double residual, decisive_projection;
    unsigned long long known_floor; ///< the block's lower bound of the next score, as ordered() encodes it
    int listed, taken, waiting;
};

__device__ Best none() { return {minus_infinity(), -1, minus_infinity()}; }

/// The state of the search in a thread. The functions below take it by reference and are inlined, so that the
/// members they use stay in registers.
struct Search {
    const SearchWork& w;
    const SearchShape shape;
    Shared& shared;
    /// 3 x most_blocks: the best pixels of two rounds, then the best of pixels with nearly equal scores
    Best* const blocks;
    unsigned long long* const floors;
    const int lane, warp;
    const int row, row_pieces;
    const int window;                           ///< number of q_k in shared memory at a time
    const int vector_at, p_at, coefficients_at; ///< positions in shared memory
    const Buffer buffer;
    long long* const found; ///< pixels of the targets
    int* const list;        ///< groups that may contain the next target
    int* const pixel_list;  ///< pixels of a batch of listed groups that may be the next target
    const int64_t step;     ///< distance between two groups of the block
    const int64_t mine;     ///< groups of the block
    double* const greatest; ///< bounds of the block's groups, in shared memory or in SearchWork::greatest
    const int64_t greatest_step;

    Basis basis;
    int count = 0;         ///< targets found
    bool exact = true;     ///< true while the scores are exact norms
    double error = 0;      ///< bound of the error of a screened score
    double first_norm = 0; ///< norm of the first target
    /// The candidates for the next target among the pixels that this lane has examined
    Best of_lane = none();
    unsigned long long visits = 0; ///< pixels that this warp has examined
    End end = End::complete;

    __device__ __forceinline__ Search(const SearchWork& work, const Layout& layout, Shared& of_block,
                                      Best* bests, unsigned long long* bounds)
        : w(work), shape(work.shape), shared(of_block), blocks(bests), floors(bounds),
          lane(static_cast<int>(threadIdx.x) % 32), warp(static_cast<int>(threadIdx.x) / 32),
          row(shape.row()), row_pieces(row / piece), window(layout.window),
          vector_at(static_cast<int>(layout.vector / 8)), p_at(static_cast<int>(layout.p / 8)),
          coefficients_at(static_cast<int>(layout.coefficients / 8)),
          buffer{reinterpret_cast<float*>(memory + layout.buffer) +
                     (warp * pixels_at_once + lane / lanes_each) * layout.stride + lane % lanes_each * 4,
                 layout.pieces},
          found(reinterpret_cast<long long*>(memory + layout.found)),
          list(reinterpret_cast<int*>(memory + layout.list)),
          pixel_list(reinterpret_cast<int*>(memory + layout.pixels)), step(gridDim.x),
          mine(blockIdx.x < shape.groups() ? (shape.groups() - blockIdx.x + step - 1) / step : 0),
          greatest(layout.resident > 0 ? reinterpret_cast<double*>(memory + layout.greatest)
                                       : work.greatest + blockIdx.x),
          greatest_step(layout.resident > 0 ? 1 : step), basis{work.basis, shape.bands, pitch_of(shape), 0} {}

    /// Returns the first pixel of the block's i-th group. The groups are blockIdx.x, blockIdx.x + gridDim.x
    /// ..., so bright areas are spread over all blocks.
    __device__ int64_t first_of(int64_t i) const { return (blockIdx.x + i * step) * group; }
    __device__ double& greatest_of(int64_t i) const { return greatest[i * greatest_step]; }
};

/// Starts the search with the norms as the first scores.
__device__ __forceinline__ void start_from_norms(Search& s) {
    // The values after a vector's last band must be finite.
#pragma unroll 1
    for (double* at = shared_at(threadIdx.x); at < shared_at(s.coefficients_at); at += threads)
        *at = 0;
    unsigned long long valid_here = 0;
    for (int64_t i = s.warp; i < s.mine; i += warps) {
        const int64_t pixel = s.first_of(i) + s.lane;
        if (pixel >= s.shape.pixels) s.w.norm[pixel] = minus_infinity();
        const double n = s.w.norm[pixel];
        s.w.score[pixel] = n;
        s.w.applied[pixel] = 0;
        const double most = warp_max(n);
        if (s.lane == 0) s.greatest_of(i) = most;
        valid_here += n != minus_infinity();
        // Norms are exact, so the second best score is not needed.
        if (n != minus_infinity() && before(n, pixel, s.of_lane.score, s.of_lane.pixel))
            s.of_lane = {n, pixel, minus_infinity()};
    }
    for (int o = 16; o > 0; o /= 2)
        valid_here += __shfl_xor_sync(all, valid_here, o);
    if (s.lane == 0 && valid_here) atomicAdd(&s.w.result->valid, valid_here);
}

/// Applies all targets that a warp's eight pixels have missed. Each set of four lanes passes one pixel, or
/// -1. With `bounding`, skips pixels below the lower bound of the next score, and raises this bound.
__device__ __forceinline__ void look_at(Search& s, int64_t pixel, bool bounding) {
    double score = pixel >= 0 ? s.w.score[pixel] : minus_infinity();
    if (score == minus_infinity()) pixel = -1;
    int first = pixel >= 0 ? s.w.applied[pixel] : s.count;
    // One lane reads the bound for all lanes, since other warps may raise it meanwhile.
    const unsigned long long known =
        __shfl_sync(all, *const_cast<volatile unsigned long long*>(&s.shared.known_floor), 0);
    if (bounding && score + s.error < from_ordered(known)) pixel = -1;
    if (pixel < 0) first = s.count;
    const int had = first;
    for (int o = lanes_each; o < 32; o *= 2)
        first = min(first, __shfl_xor_sync(all, first, o));
    if (first == s.count) return;
    // Sets of lanes without a pixel read the pixel of another set.
    const int somebody = __ffs(static_cast<int>(__ballot_sync(all, pixel >= 0))) - 1;
    const int64_t other = __shfl_sync(all, pixel, somebody);
    const float* const x = s.w.cube + (pixel >= 0 ? pixel : other) * s.row + s.lane % lanes_each * 4;
    score -= missed_squares(x, s.row_pieces, s.buffer, s.basis.pitch, first - s.basis.base, had - first,
                            s.count - first);
    if (pixel < 0) score = minus_infinity();
    if (pixel >= 0 && s.lane % lanes_each == 0) {
        s.w.score[pixel] = score;
        s.w.applied[pixel] = s.count;
        merge(s.of_lane, {score, pixel, minus_infinity()});
    }
    s.visits += static_cast<unsigned>(__popc(__ballot_sync(all, pixel >= 0))) / lanes_each;
    __syncwarp();
    if (!bounding) return;
    score = warp_max(score);
    if (s.lane == 0) {
        const unsigned long long ours = ordered(score - s.error);
        if (ours > known) atomicMax(s.floors + s.count, ours);
        atomicMax(&s.shared.known_floor, ours);
    }
}

/// Writes the block's best pixels. Other blocks may read them after the grid's barrier.
__device__ __forceinline__ void publish_best(Search& s, Best* of_block) {
    merge_lanes(s.of_lane);
    if (s.lane == 0) s.shared.warp_best[s.warp] = s.of_lane;
    __syncthreads();
    if (s.warp == 0) {
        Best here = none();
        if (s.lane < warps) here = s.shared.warp_best[s.lane];
        merge_lanes(here);
        if (s.lane == 0) *of_block = here;
    }
}

/// Returns the best of the pixels that all blocks have published; the result is equal in every block.
__device__ __forceinline__ Best best_of_all(Search& s, const Best* of_blocks) {
    const int parts = (static_cast<int>(gridDim.x) + 31) / 32;
    for (int k = s.warp; k < parts; k += warps) {
        Best here = none();
        const int at = k * 32 + s.lane;
        if (at < static_cast<int>(gridDim.x))
            here = {__ldcg(&of_blocks[at].score), __ldcg(&of_blocks[at].pixel),
                    __ldcg(&of_blocks[at].second)};
        merge_lanes(here);
        if (s.lane == 0) s.shared.warp_best[k] = here;
    }
    __syncthreads();
    Best top = s.shared.warp_best[0];
#pragma unroll 1
    for (int k = 1; k < parts; ++k)
        merge(top, s.shared.warp_best[k]);
    __syncthreads();
    return top;
}

/// Returns the block's best pixel by decisive scores, among all pixels whose screened score may be `least` or
/// more. Every warp computes the same pixels.
__device__ __forceinline__ Best decide(Search& s, double least) {
    Best decided = none();
#pragma unroll 1
    for (int64_t i = 0; i < s.mine; ++i) {
        if (!(s.greatest_of(i) + s.error >= least)) continue;
        const int64_t of_group = s.first_of(i) + s.lane;
        const double score = s.w.score[of_group];
        unsigned those = __ballot_sync(all, score != minus_infinity() && score + s.error >= least &&
                                                (s.shape.gs || s.w.applied[of_group] == s.count) &&
                                                !(s.shape.sign && among(of_group, s.found, s.count)));
        for (; those; those &= those - 1) {
            const int64_t pixel = s.first_of(i) + __ffs(static_cast<int>(those)) - 1;
            const float* const x = s.w.cube + pixel * s.row;
            double decisive;
            if (s.shape.gs) {
                decisive = dot_with_pixel(x, s.p_at, s.shape.bands);
                if (!s.shape.sign) decisive = fabs(decisive);
            } else {
                decisive =
                    squared_residual(x, s.w.norm[pixel], s.basis, s.count, s.vector_at, s.coefficients_at);
            }
            if (before(decisive, pixel, decided.score, decided.pixel))
                decided = {decisive, pixel, minus_infinity()};
        }
    }
    return decided;
}

/// Returns the next target; Best::pixel is -1 if no pixel is left. The whole grid calls this function.
/// `round` alternates between 0 and 1, since a block may still read the best pixels of the last round.
__device__ __forceinline__ Best choose(Search& s, const cg::grid_group& grid, int round) {
    publish_best(s, s.blocks + round * most_blocks + blockIdx.x);
    grid.sync();
    Best chosen = best_of_all(s, s.blocks + round * most_blocks);
    if (!s.exact && chosen.pixel >= 0 && chosen.second + s.error >= chosen.score - s.error) {
        // Other pixels may be better, so decisive scores are computed for all candidates.
        const Best decided = decide(s, chosen.score - s.error);
        if (threadIdx.x == 0) s.blocks[2 * most_blocks + blockIdx.x] = decided;
        grid.sync();
        chosen = best_of_all(s, s.blocks + 2 * most_blocks);
    }
    return chosen;
}

/// Empties the full window of recent targets in shared memory. OSP first applies these targets to all pixels.
__device__ __forceinline__ void empty_window(Search& s) {
    if (!s.shape.gs)
        for (int64_t i = s.warp; i < s.mine; i += warps)
#pragma unroll 1
            for (int from = 0; from < group; from += pixels_at_once)
                look_at(s, s.first_of(i) + from + s.lane / lanes_each, false);
    __syncthreads();
    s.basis.base = s.count;
}

/// Makes the chosen pixel a target, and computes its q and its decisive score. Returns false if the search
/// has ended.
__device__ __forceinline__ bool take_target(Search& s, int64_t pixel) {
    double* const vector = shared_at(s.vector_at);
#pragma unroll 1
    for (int b = static_cast<int>(threadIdx.x); b < s.shape.bands; b += threads)
        vector[b] = static_cast<double>(s.w.cube[pixel * s.row + b]);
    const double squared = s.w.norm[pixel];
    if (s.shape.gs && s.count > 0) {
        __syncthreads();
        if (s.warp == warps - 1) {
            const double d = dot_of(s.p_at, s.vector_at, s.shape.bands);
            if (s.lane == 0) s.shared.decisive_projection = s.shape.sign ? d : fabs(d);
        }
    }
    orthogonalise(s.basis, s.count, s.vector_at, s.coefficients_at, squared, &s.shared.residual);
    const double score = s.shape.gs && s.count > 0 ? s.shared.decisive_projection : s.shared.residual;
    if (s.count > 0) {
        if (s.shape.gs && s.shape.sign && score <= 0) {
            s.end = End::nothing_positive;
            return false;
        }
        if (s.shared.residual < rank_limit * s.first_norm) {
            s.end = End::rank;
            return false;
        }
    }
    if (threadIdx.x == 0) {
        s.found[s.count] = pixel;
        if (blockIdx.x == 0) {
            s.w.found[s.count] = pixel;
            s.w.found_score[s.count] = score;
        }
    }
    if (s.count + 1 == s.shape.targets) {
        ++s.count;
        return false;
    }
    const double length = __dsqrt_rn(dot_of(s.vector_at, s.vector_at, s.shape.bands));
#pragma unroll 1
    for (int b = static_cast<int>(threadIdx.x); b < s.shape.bands; b += threads) {
        const double q = __ddiv_rn(vector[b], length);
        *shared_at((s.count - s.basis.base) * s.basis.pitch + b) = q;
        if (blockIdx.x == 0) s.w.basis[static_cast<size_t>(s.count) * s.shape.bands + b] = q;
    }
    ++s.count;
    s.exact = false;
    s.of_lane = none();
    if (threadIdx.x == 0) s.shared.known_floor = 0;
    __syncthreads();
    s.error = 8.0 * (s.count + 1) * (s.shape.bands + 4) * unit_roundoff * s.first_norm;
    return true;
}

/// GS: computes p, the part of the vector of ones that is orthogonal to the targets, and the scores of all
/// pixels. Returns false if p vanishes.
__device__ __forceinline__ bool project_all(Search& s) {
    double* const p = shared_at(s.p_at);
#pragma unroll 1
    for (int b = static_cast<int>(threadIdx.x); b < s.shape.bands; b += threads)
        p[b] = 1.0;
    orthogonalise(s.basis, s.count, s.p_at, s.coefficients_at, 0, &s.shared.residual);
    const double p_squared = dot_of(s.p_at, s.p_at, s.shape.bands);
    if (p_squared < 1e-16 * s.shape.bands) {
        s.end = End::p_vanished;
        return false;
    }
    s.error = 4.0 * (s.shape.bands + 4) * unit_roundoff * sqrt(p_squared * s.first_norm);
    for (int64_t i = s.warp; i < s.mine; i += warps) {
        double here = minus_infinity();
        const bool valid = s.w.norm[s.first_of(i) + s.lane] != minus_infinity();
        const unsigned those = __ballot_sync(all, valid);
#pragma unroll 1
        for (int from = 0; from < group; from += pixels_at_once) {
            const int64_t pixel = s.first_of(i) + from + s.lane / lanes_each;
            double value =
                projection(s.w.cube + min(pixel, s.shape.pixels - 1) * s.row + s.lane % lanes_each * 4,
                           s.row_pieces, s.buffer, s.p_at);
            if (!s.shape.sign) value = fabs(value);
            if (!(those >> (from + s.lane / lanes_each) & 1)) value = minus_infinity();
            if (s.lane % lanes_each == 0) {
                if (s.shape.sign && value > s.of_lane.second && among(pixel, s.found, s.count))
                    value = minus_infinity();
                s.w.score[pixel] = value;
                if (value != minus_infinity()) merge(s.of_lane, {value, pixel, minus_infinity()});
                here = fmax(here, value);
            }
        }
        here = warp_max(here);
        if (s.lane == 0) s.greatest_of(i) = here;
        s.visits += group;
    }
    return true;
}

/// OSP: computes a lower bound of the next score from the most promising pixels of each warp.
__device__ __forceinline__ void raise_floor(Search& s) {
    double top = minus_infinity();
    int64_t top_at = 0;
    for (int64_t i = s.warp + static_cast<int64_t>(s.lane) * top_warps; i < s.mine; i += 32 * top_warps) {
        const double most = s.greatest_of(i);
        if (most > top) {
            top = most;
            top_at = i;
        }
    }
#pragma unroll 1
    for (int o = 16; o > 0; o /= 2) {
        const double other = __shfl_xor_sync(all, top, o);
        const int64_t other_at = __shfl_xor_sync(all, top_at, o);
        if (other > top || (other == top && other_at < top_at)) {
            top = other;
            top_at = other_at;
        }
    }
    if (top == minus_infinity()) return;
    const int64_t pixel = s.first_of(top_at) + s.lane;
    const double score = s.w.score[pixel];
    int rank = 0;
#pragma unroll 4
    for (int k = 0; k < 32; ++k) {
        const double other = __shfl_sync(all, score, k);
        rank += other > score || (other == score && k < s.lane);
    }
    // The r-th set of lanes takes the pixel of rank r.
    int who = -1;
#pragma unroll 1
    for (int r = 0; r < pixels_at_once; ++r) {
        const int at =
            __ffs(static_cast<int>(__ballot_sync(all, rank == r && score != minus_infinity()))) - 1;
        if (s.lane / lanes_each == r) who = at;
    }
    look_at(s, who < 0 ? -1 : s.first_of(top_at) + who, true);
    const double most = warp_max(s.w.score[pixel]);
    if (s.lane == 0) s.greatest_of(top_at) = most;
}

/// OSP: examines the pixels of the listed groups that may be the next target. For each batch of groups, it
/// lists the pixels, distributes them to the warps, and computes the bounds of the groups again.
__device__ __forceinline__ void look_at_listed(Search& s, int groups_here) {
    for (int batch = 0; batch < groups_here; batch += batch_groups) {
        const int end_of_batch = min(batch + batch_groups, groups_here);
        if (threadIdx.x == 0) s.shared.waiting = s.shared.taken = 0;
        const double least = from_ordered(s.shared.known_floor);
        __syncthreads();
        for (int k = batch + s.warp; k < end_of_batch; k += warps) {
            const int64_t pixel = s.first_of(s.list[k]) + s.lane;
            const bool wanted = s.w.score[pixel] + s.error >= least && s.w.applied[pixel] < s.count;
            const unsigned those = __ballot_sync(all, wanted);
            int at = 0;
            if (s.lane == 0 && those) at = atomicAdd(&s.shared.waiting, __popc(those));
            at = __shfl_sync(all, at, 0) + __popc(those & ((1u << s.lane) - 1));
            if (wanted) s.pixel_list[at] = (s.list[k] * group) + s.lane;
        }
        __syncthreads();
        const int pixels_here = s.shared.waiting;
        for (;;) {
            int at = s.lane == 0 ? atomicAdd(&s.shared.taken, pixels_at_once) : 0;
            at = __shfl_sync(all, at, 0);
            if (at >= pixels_here) break;
            at += s.lane / lanes_each;
            int64_t pixel = -1;
            if (at < pixels_here) pixel = s.first_of(s.pixel_list[at] / group) + s.pixel_list[at] % group;
            look_at(s, pixel, true);
        }
        __syncthreads();
        for (int k = batch + s.warp; k < end_of_batch; k += warps) {
            const double most = warp_max(s.w.score[s.first_of(s.list[k]) + s.lane]);
            if (s.lane == 0) s.greatest_of(s.list[k]) = most;
        }
    }
}

/// OSP: updates the scores of all pixels that may be the next target.
__device__ __forceinline__ void screen(Search& s) {
    for (int64_t from = 0; from < s.mine; from += threads) {
        if (threadIdx.x == 0) s.shared.listed = 0;
        const double least = from_ordered(s.shared.known_floor);
        __syncthreads();
        const int64_t i = from + threadIdx.x;
        if (i < s.mine && s.greatest_of(i) + s.error >= least)
            s.list[atomicAdd(&s.shared.listed, 1)] = static_cast<int>(i);
        __syncthreads();
        look_at_listed(s, s.shared.listed);
        __syncthreads();
    }
}

__global__ void __launch_bounds__(threads, 1)
    search(SearchWork w, Layout layout, Best* blocks, unsigned long long* floors) {
    __shared__ Shared shared;
    const cg::grid_group grid = cg::this_grid();
    Search s(w, layout, shared, blocks, floors);
    start_from_norms(s);
    for (int round = 0;; round ^= 1) {
        const Best chosen = choose(s, grid, round);
        if (s.count == 0) {
            if (chosen.pixel < 0) break; // no pixel is valid
            s.first_norm = chosen.score;
        } else if (chosen.pixel < 0) {
            s.end = s.shape.gs && s.shape.sign ? End::nothing_positive : End::rank;
            break;
        }
        if (s.count - s.basis.base == s.window) empty_window(s);
        if (!take_target(s, chosen.pixel)) break;
        if (s.shape.gs) {
            if (!project_all(s)) break;
            continue;
        }
        if (s.warp < top_warps) raise_floor(s);
        // Without this barrier, some blocks would not have raised the bound yet, and more pixels would be
        // examined. The barrier costs less.
        grid.sync();
        if (threadIdx.x == 0) shared.known_floor = __ldcg(floors + s.count);
        __syncthreads();
        screen(s);
    }
    if (s.lane == 0) atomicAdd(&w.result->visits, s.visits);
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        w.result->found = s.count;
        w.result->end = s.end;
    }
}

constexpr int prepare_threads = 256, prepare_pixels = 64, prepare_bands = 32;
#if __CUDA_ARCH__ >= 800
constexpr int prepare_blocks = 5; ///< minimum number of blocks per multiprocessor
#else
constexpr int prepare_blocks = 4;
#endif

/// Transposes a tile from bands to pixels. A block handles prepare_pixels pixels, prepare_bands bands at a
/// time, in shared memory. It also sums ||x||^2 band by band (the squares are exact).
__global__ void __launch_bounds__(prepare_threads, prepare_blocks)
    prepare(PrepareTile tile, int bands, int row, float* __restrict__ cube, double* __restrict__ norm) {
    __shared__ float part[2][prepare_bands][prepare_pixels + 1];
    constexpr int rows = prepare_threads / prepare_pixels, each = prepare_bands / rows;
    const int t = static_cast<int>(threadIdx.x), column = t % prepare_pixels, line = t / prepare_pixels;
    const int64_t first = static_cast<int64_t>(blockIdx.x) * prepare_pixels,
                  pixels = tile.samples * tile.lines;
    const auto scene_pixel = [&](int64_t k) {
        return (tile.y + k / tile.samples) * tile.scene_samples + tile.x + k % tile.samples;
    };
    const bool present = first + column < pixels;
    const int64_t from =
        present ? (first + column) / tile.samples * tile.line_stride + (first + column) % tile.samples : 0;
    float next[each];
    const auto load = [&](int band) {
#pragma unroll
        for (int k = 0; k < each; ++k) {
            const int b = band + line + k * rows;
            next[k] = present && b < bands ? __ldcs(tile.data + from + b * tile.band_stride) : 0.0f;
        }
    };
    // Positions in `cube` to which this thread writes: sixteen bytes in each of its pixels.
    constexpr int writers = prepare_bands / 4, at_a_time = prepare_threads / writers;
    int64_t to[prepare_pixels / at_a_time];
#pragma unroll
    for (int k = 0; k < prepare_pixels / at_a_time; ++k) {
        const int64_t pixel = first + t / writers + k * at_a_time;
        to[k] = pixel < pixels ? scene_pixel(pixel) * row + t % writers * 4 : -1;
    }
    double n = 0;
    load(0);
    int flip = 0;
    for (int band = 0; band < row; band += prepare_bands, flip ^= 1) {
#pragma unroll
        for (int k = 0; k < each; ++k)
            part[flip][line + k * rows][column] = next[k];
        __syncthreads();
        load(band + prepare_bands);
#pragma unroll
        for (int k = 0; k < prepare_pixels / at_a_time; ++k) {
            const int pixel = t / writers + k * at_a_time, b = t % writers * 4;
            if (to[k] >= 0 && band + b < row)
                *reinterpret_cast<float4*>(cube + to[k] + band) =
                    make_float4(part[flip][b][pixel], part[flip][b + 1][pixel], part[flip][b + 2][pixel],
                                part[flip][b + 3][pixel]);
        }
        if (t < prepare_pixels)
#pragma unroll 8
            for (int b = 0; b < prepare_bands; ++b) { // Bands after the last one are zero.
                const double v = static_cast<double>(part[flip][b][t]);
                n = fma(v, v, n);
            }
    }
    if (t < prepare_pixels && present) norm[scene_pixel(first + t)] = is_valid_sum(n) ? n : minus_infinity();
}

} // namespace

uint64_t SearchWork::scratch_bytes(const SearchShape& shape) {
    return sizeof(Best) * 3 * most_blocks +
           sizeof(unsigned long long) * (static_cast<uint64_t>(shape.targets) + 1);
}

uint64_t SearchWork::state_bytes(const SearchShape& s) {
    const auto groups = static_cast<uint64_t>(s.groups()), targets = static_cast<uint64_t>(s.targets);
    return groups * (group * 20 + 8) + targets * (static_cast<uint64_t>(s.bands) * 8 + 16) +
           sizeof(SearchResult) + scratch_bytes(s);
}

void launch_prepare(const SearchWork& work, const PrepareTile& tile, cudaStream_t stream) {
    const int64_t pixels = tile.samples * tile.lines;
    if (pixels == 0) return;
    prepare<<<static_cast<unsigned>((pixels + prepare_pixels - 1) / prepare_pixels), prepare_threads, 0,
              stream>>>(tile, work.shape.bands, work.shape.row(), work.cube, work.norm);
    HSI_CUDA_CHECK(cudaGetLastError());
}

void launch_search(const SearchWork& work, cudaStream_t stream) {
    const SearchShape& s = work.shape;
    int device = 0, processors = 0, cooperative = 0, limit = 0;
    HSI_CUDA_CHECK(cudaGetDevice(&device));
    HSI_CUDA_CHECK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
    HSI_CUDA_CHECK(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, device));
    HSI_CUDA_CHECK(cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    if (!cooperative) throw Error("this GPU cannot run cooperative kernels", "Use -device cpu.");
    const int64_t grid = std::min<int64_t>({int64_t{processors}, s.groups(), most_blocks});
    // The block's other shared variables take less than two kilobytes.
    Layout layout = layout_of(s, (s.groups() + grid - 1) / grid, static_cast<size_t>(limit) - 2048);
    if (layout.bytes > static_cast<size_t>(limit) - 2048)
        throw Error("the search for " + std::to_string(s.targets) + " targets in " + std::to_string(s.bands) +
                        " bands needs more shared memory than this GPU has",
                    "Use -device cpu.");
    HSI_CUDA_CHECK(cudaFuncSetAttribute(search, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(layout.bytes)));
    HSI_CUDA_CHECK(cudaMemsetAsync(work.result, 0, sizeof(SearchResult), stream));
    auto* blocks = reinterpret_cast<Best*>(work.scratch);
    auto* floors = reinterpret_cast<unsigned long long*>(work.scratch + sizeof(Best) * 3 * most_blocks);
    HSI_CUDA_CHECK(cudaMemsetAsync(
        floors, 0, sizeof(unsigned long long) * (static_cast<size_t>(s.targets) + 1), stream));
    SearchWork copy = work;
    void* arguments[] = {&copy, &layout, &blocks, &floors};
    HSI_CUDA_CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(search),
                                               dim3(static_cast<unsigned>(grid)), dim3(threads), arguments,
                                               layout.bytes, stream));
}

} // namespace hsi::atdca::gpu
