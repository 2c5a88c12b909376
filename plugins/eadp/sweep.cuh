// SPDX-License-Identifier: MIT
// One sweep of the recurrence over the four lines that a warp has in registers, and the exchange with the
// warps above and below. Compiled with -fmad=false: operations are fused only where the source says fma.
#pragma once

#include "eadp/persistent_cuda_kernels.cuh"

namespace hsi::eadp::gpu {

/// Number of float4 for the first and the last line of every warp.
constexpr size_t edge_vectors = (most_warps + 1) * 64;

/// A barrier of the block's warps. Arriving and waiting are separate functions, so that a warp can work in
/// between.
__device__ __forceinline__ void barrier_init(unsigned barrier, int arrivals) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
/// Arrives at the barrier. Every thread calls this function, so threads that wait see the earlier writes of
/// all threads. One lane per warp would be enough after __syncwarp(), but compute-sanitizer does not
/// recognise this, and it is no faster.
__device__ __forceinline__ void barrier_arrive(unsigned barrier) {
    __syncwarp(); // The warp converges, so that the arrival is one instruction.
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

/// The weights of one lane's pixels in the four lines of a warp.
struct Strip {
    Pixels east, south;    ///< weights to the right neighbour and to the neighbour below
    float west[warp_rows]; ///< weights to the left neighbour of the lane's first sample
    float north[4];        ///< weights to the neighbours above the first line
};

// A sweep computes out = 2 cur - prev + flux; the first sweep computes out = cur + flux / 2. All pixels use
// the same operations in the same order, at any position in the tile. The difference of two pixels is bitwise
// equal from both sides, apart from its sign.

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

/// Computes the lines lo..hi as far as they do not depend on other warps. Afterwards, inner lines are
/// complete. `out` may be `prev`.
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
    // For each pixel, the flux from the north is added before the flux from the south.
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
/// Computes the first line after the line above it has arrived.
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
/// Computes the last line after the line below it has arrived.
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

/// The core keeps Strip::west and Strip::north in shared memory. These are their offsets from the warp's
/// first line in the edges.
constexpr int west_of_edges = 2 * static_cast<int>(edge_vectors), north_of_edges = west_of_edges + 32;

// The block's sweep barrier has four phases per group, so its parity equals the parity of the sweep index
// within the group.

/// Computes one sweep of a core warp. `edges` is the position of the warp's first line; its last line is 32
/// elements further. Even and odd sweeps have different edges, so one barrier per sweep is enough.
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

/// Computes one sweep of the halo's warp in place. `number` is the index of the sweep in the group. The sweep
/// covers the last 3 - number of the four lines above the core, and the first 3 - number lines below it.
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

} // namespace hsi::eadp::gpu
