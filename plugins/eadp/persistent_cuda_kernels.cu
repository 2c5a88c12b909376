// SPDX-License-Identifier: MIT
// Places the tiles of a team, exchanges their halos, and sums and writes copies. Compiled with -fmad=false:
// operations are fused only where the source says fma.
#include "cuda/check.h"
#include "eadp/persistent_cuda_kernels.cuh"
#include "eadp/sweep.cuh"

namespace hsi::eadp::gpu {
namespace {

constexpr int most_threads = 32 * most_warps;
/// Number of float4 for the coefficients and masks of the current group and of the next group.
constexpr size_t term_vectors = 2 * (batch_copies + 1);
constexpr size_t side_vectors =
    /// Number of float4 for both sides of a warp's lines: 4 samples of Y_k and of Y_{k-1}.
    (most_warps - 1) * 16;
/// Returns the bytes of shared memory: Place, terms, sides, edges for even and odd sweeps, and sums.
constexpr size_t shared_of(int core_lines) {
    return (3 + term_vectors + side_vectors + 3 * edge_vectors) * sizeof(float4) +
           static_cast<size_t>(batch_copies * core_lines * 128) * sizeof(float);
}

/// A window that is processed by a team of across x down blocks, and its output.
struct Window {
    int component;
    int x, y; ///< position of the window's first pixel in the planes
    int out_x, out_y, out_w, out_h;
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800

/// Writes two samples, each with the tag of its epoch. A reader that finds the right tags has the right
/// samples, because the 8 bytes of an aligned access arrive together. No fence or flag is needed.
__device__ __forceinline__ void publish(uint4* to, float a, float b, unsigned epoch) {
    asm volatile("st.relaxed.gpu.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(__float_as_uint(a)),
                 "r"(epoch), "r"(__float_as_uint(b)), "r"(epoch)
                 : "memory");
}
__device__ __forceinline__ uint4 observe(const uint4* from) {
    uint4 v;
    asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(from)
                 : "memory");
    return v;
}

/// Acts as a __syncthreads() that different warps may call from different places. Terms and sides are
/// overwritten after the barrier.
__device__ __forceinline__ void block_barrier() { asm volatile("bar.sync 0;" ::: "memory"); }

__device__ __forceinline__ void add_terms(float& sum, float4 a, float y0, float y1, float y2, float y3) {
    sum = fmaf(a.w, y3, fmaf(a.z, y2, fmaf(a.y, y1, fmaf(a.x, y0, sum))));
}

/// The position of a block in its team.
struct Place {
    uint64_t barrier; ///< the barrier that separates sweeps
    int bx, by;       ///< position in the team
    int neighbours;   ///< bits to_left ... to_south: neighbours that exist
};
enum : int { to_left = 1, to_right = 2, to_north = 4, to_south = 8 };
/// The offsets of the parts of shared memory, in float4. The edges are [even, odd][warp, with the halo's
/// lines before and after][first, last][lane]. The sums are [copy][line of the core][lane].
constexpr int terms_at = 3, sides_at = terms_at + static_cast<int>(term_vectors),
              edges_at = sides_at + static_cast<int>(side_vectors),
              sums_at = edges_at + 3 * static_cast<int>(edge_vectors);
static_assert(sizeof(Place) <= terms_at * sizeof(float4));

/// Returns the half of a block's exchange words that an epoch uses.
__device__ __forceinline__ uint4* half_of(const PersistentWork& work, int block, unsigned epoch) {
    return work.exchange + (2 * block + static_cast<int>(epoch & 1)) * static_cast<int>(exchange_words);
}

__device__ Window window_of(const PersistentWork& work, int job) {
    const int windows = work.windows_across * work.windows_down;
    const int wx = job % windows % work.windows_across, wy = job % windows / work.windows_across;
    Window win;
    win.component = job / windows;
    win.out_x = work.output.x + wx * work.step_x;
    win.out_y = work.output.y + wy * work.step_y;
    win.out_w = min(work.step_x, work.output.x + work.output.w - win.out_x);
    win.out_h = min(work.step_y, work.output.y + work.output.h - win.out_y);
    win.x = max(0, win.out_x - work.halo) & ~3; // aligned to float4
    win.y = max(0, win.out_y - work.halo);
    return win;
}

/// Returns four pixels of a line. Pixels outside the planes are zero. x and the pitch are multiples of 4.
__device__ __forceinline__ float4 load_four(const float* plane, int pitch, int lines, int x, int y) {
    if (x < 0 || x >= pitch || y < 0 || y >= lines) return make_float4(0, 0, 0, 0);
    return __ldg(reinterpret_cast<const float4*>(plane + static_cast<size_t>(y) * pitch + x));
}
__device__ __forceinline__ void load_pixels(Pixels& to, const float* plane, int pitch, int lines, int x,
                                            int y) {
#pragma unroll
    for (int r = 0; r < warp_rows; ++r) {
        const float4 v = load_four(plane, pitch, lines, x, y + r);
        to[r][0] = v.x, to[r][1] = v.y, to[r][2] = v.z, to[r][3] = v.w;
    }
}

/// Loads the weights and start values of four lines of a warp. `line` is counted from the core's first line.
__device__ __forceinline__ void load_strip(const PersistentWork& work, const Place& place, const Window& win,
                                           int lane, int line, Strip& s, Pixels& start) {
    const auto& stage = work.stage;
    const size_t plane = static_cast<size_t>(win.component) * stage.pitch * stage.lines;
    const int x = win.x + place.bx * core_samples - group_sweeps + lane * 4,
              y = win.y + place.by * work.core_lines + line;
    load_pixels(start, stage.start + plane, stage.pitch, stage.lines, x, y);
    load_pixels(s.east, stage.east + plane, stage.pitch, stage.lines, x, y);
    load_pixels(s.south, stage.south + plane, stage.pitch, stage.lines, x, y);
    const float4 v = load_four(stage.south + plane, stage.pitch, stage.lines, x, y - 1);
    s.north[0] = v.x, s.north[1] = v.y, s.north[2] = v.z, s.north[3] = v.w;
#pragma unroll
    for (int r = 0; r < warp_rows; ++r) {
        const float left = __shfl_up_sync(~0u, s.east[r][3], 1);
        s.west[r] = lane > 0 ? left : 0.0f; // The first sample of the first lane is not used.
    }
}

/// Loads the coefficients of group g, one copy per thread, and the mask in one more thread. The values are
/// visible after the next barrier.
__device__ __forceinline__ void fetch_terms(const PersistentWork& work, float4* terms, int g, int lane) {
    if (lane > batch_copies || g >= work.groups) return;
    float4& to = terms[(g & 1) * (batch_copies + 1) + lane];
    if (lane < batch_copies)
        to = __ldg(reinterpret_cast<const float4*>(work.coefficients + batch_copies) + g * batch_copies +
                   lane);
    else
        to.x = __int_as_float(__ldg(work.masks + g));
}

/// Returns which samples of a warp's lines are written. Copies are written 32 samples of a line at a time.
/// Bit 4 r + j describes line r, sample lane + 32 j. In the high half, the bit is set for samples inside the
/// window's output. In the low half, the bit is set for samples that have a value.
__device__ __noinline__ unsigned output_of(const PersistentWork& work, const Place& place, int job) {
    const Window win = window_of(work, job);
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const int x = win.x + place.bx * core_samples + lane,
              y = win.y + place.by * work.core_lines + warp * warp_rows;
    unsigned bits = 0;
#pragma unroll
    for (int r = 0; r < warp_rows; ++r)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int xx = x + 32 * j, yy = y + r;
            if (lane + 32 * j < core_samples && yy >= win.out_y && yy < win.out_y + win.out_h &&
                xx >= win.out_x && xx < win.out_x + win.out_w)
                bits |= (work.stage.valid[static_cast<size_t>(yy) * work.stage.samples + xx] ? 0x10001u
                                                                                             : 0x10000u)
                        << (4 * r + j);
        }
    return bits;
}

/// Writes the complete copies of a warp. The function is rarely called. It is not inlined, so that its
/// addresses occupy no registers during the sweeps.
__device__ __noinline__ void put_out(const PersistentWork& work, const Place& place, int job,
                                     const float* sums, int complete, unsigned bits) {
    const auto& stage = work.stage;
    const Window win = window_of(work, job);
    // Copies in local variables. For arguments, the compiler must assume that stores change them.
    const Core core = stage.core;
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const int x = win.x + place.bx * core_samples + lane,
              y = win.y + place.by * work.core_lines + warp * warp_rows;
    const int copy_stride = work.core_lines * 128, pitch = stage.pitch;
    const size_t out_plane = static_cast<size_t>(core.w) * core.h;
    const float level = stage.level[win.component];
    float* const out = stage.out +
                       (static_cast<size_t>(win.component) * stage.out_bands + work.first_copy) * out_plane +
                       static_cast<ptrdiff_t>(y - core.y) * core.w + (x - core.x);
    sums += 4 + lane; // The four samples of the first lane belong to the left neighbour.
    if (work.write_next && (complete & 1)) {
        float* const next = stage.next + (static_cast<size_t>(win.component) * stage.lines + y) * pitch + x;
#pragma unroll
        for (int r = 0; r < warp_rows; ++r)
#pragma unroll
            for (int j = 0; j < 4; ++j)
                if (bits >> (16 + 4 * r + j) & 1u) next[r * pitch + 32 * j] = sums[r * 128 + 32 * j];
    }
#pragma unroll
    for (int r = 0; r < warp_rows; ++r) // A window's output may be larger than the core of a block.
#pragma unroll
        for (int j = 0; j < 4; ++j)
            if (x + 32 * j < core.x || x + 32 * j >= core.x + core.w || y + r < core.y ||
                y + r >= core.y + core.h)
                bits &= ~(0x10000u << (4 * r + j));
    while (complete) {
        const int c = __ffs(complete) - 1;
        complete &= complete - 1;
        const float* const from = sums + c * copy_stride;
        float* const to = out + c * out_plane;
        float v[warp_rows][4];
#pragma unroll
        for (int r = 0; r < warp_rows; ++r)
#pragma unroll
            // Only 24 of the last 32 samples are written. The other samples are only read.
            for (int j = 0; j < 4; ++j)
                v[r][j] = from[r * 128 + (j < 3 || lane < 24 ? 32 * j : 0)];
#pragma unroll
        for (int r = 0; r < warp_rows; ++r)
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const float value = bits >> (4 * r + j) & 1u ? v[r][j] + level : nanf("");
                if (bits >> (16 + 4 * r + j) & 1u) to[r * core.w + 32 * j] = value;
            }
    }
}

/// Prefetches lines of a plane that a warp will load soon.
__device__ __forceinline__ void prefetch_lines(const float* plane, int pitch, int lines, int x, int y) {
    if (x < 0 || x >= pitch) return;
#pragma unroll
    for (int r = 0; r < warp_rows; ++r)
        if (y + r >= 0 && y + r < lines)
            asm volatile("prefetch.global.L2 [%0];" ::"l"(plane + static_cast<size_t>(y + r) * pitch + x));
}

/// The exchange tasks of a thread in the core's warps, as bits.
enum : int { fetches = 1, shows = 2, takes = 4, northern = 8, southern = 16 };

/// The position of a thread in the core's warps, and its shared memory.
struct CoreThread {
    int warp, lane;
    int part; ///< tasks: bits fetches ... southern
    float4* own_sums;
    float4* sides; ///< sides of the warp: [left, right][line][Y_k, Y_{k-1}]
    /// Index of the thread's word among the side words of a block. Both sides have two words per line and
    /// level; each lane loads one word.
    int words;
};

/// The levels of the recurrence after a group of sweeps. Blocks exchange the last two levels.
struct Levels {
    Pixels y0, y1, y2, y3;
};

__device__ __forceinline__ int part_of(const PersistentWork& work, int neighbours, int warp, int lane) {
    int part = 0;
    if (neighbours & (lane < 16 ? to_left : to_right)) part |= fetches; // The lane loads a word of a side.
    if (lane == 1 || lane == 30) part |= shows;
    if (neighbours & (lane == 0 ? to_left : lane == 31 ? to_right : 0)) part |= takes;
    if (warp == 0 && neighbours & to_north) part |= northern;
    if (warp == work.core_lines / warp_rows - 1 && neighbours & to_south) part |= southern;
    // Keeps the value in one register; the compiler would compute it repeatedly.
    asm volatile("" : "+r"(part));
    return part;
}

/// Initialises the sums with the term of Y_0.
__device__ __forceinline__ void begin_sums(const PersistentWork& work, float4* own_sums,
                                           const Pixels& start) {
    for (int c = 0; c < work.copies; ++c) {
        const float a = work.coefficients[c]; // the coefficient of Y_0
#pragma unroll
        for (int r = 0; r < warp_rows; ++r)
            own_sums[(c * work.core_lines + r) * 32] =
                make_float4(a * start[r][0], a * start[r][1], a * start[r][2], a * start[r][3]);
    }
}

/// Publishes the samples of the last two levels that neighbours need. The core's first and last lines come
/// from registers. Its first and last samples go through `sides`, so that each lane writes one word.
__device__ __forceinline__ void show_halo(const PersistentWork& work, const CoreThread& t, const Levels& l,
                                          unsigned epoch) {
    // Two halves alternate. Before a block writes a half again, it has received the next epoch of its
    // neighbours. The neighbours therefore no longer read this half.
    uint4* const half = half_of(work, static_cast<int>(blockIdx.x), epoch);
    for (int which = 0; which < 2; ++which)
        if (t.part & (which == 0 ? northern : southern)) {
            uint4* const to = half + which * (warp_rows * 128) + t.lane;
#pragma unroll
            for (int r = 0; r < warp_rows; ++r) {
                publish(to + r * 128, l.y3[r][0], l.y3[r][1], epoch);
                publish(to + r * 128 + 32, l.y3[r][2], l.y3[r][3], epoch);
                publish(to + r * 128 + 64, l.y2[r][0], l.y2[r][1], epoch);
                publish(to + r * 128 + 96, l.y2[r][2], l.y2[r][3], epoch);
            }
        }
    if (t.part & shows) {
        float4* const to = t.sides + (t.lane == 1 ? 0 : 8);
#pragma unroll
        for (int r = 0; r < warp_rows; ++r) {
            to[2 * r] = line_of(l.y3, r);
            to[2 * r + 1] = line_of(l.y2, r);
        }
    }
    __syncwarp();
    const float2 own = reinterpret_cast<const float2*>(t.sides)[t.lane];
    if (t.part & fetches)
        publish(half + t.words + (t.lane < 16 ? 0 : most_core_lines * 4), own.x, own.y, epoch);
}

/// Loads the sums of a copy for a warp's lines.
__device__ __forceinline__ void load_sums(float4 (&v)[warp_rows], const float4* sum) {
#pragma unroll
    for (int r = 0; r < warp_rows; ++r)
        v[r] = sum[r * 32];
}
__device__ __forceinline__ void add_group(float4* sum, float4 a, float4 (&v)[warp_rows], const Levels& l) {
#pragma unroll
    for (int r = 0; r < warp_rows; ++r) {
        add_terms(v[r].x, a, l.y0[r][0], l.y1[r][0], l.y2[r][0], l.y3[r][0]);
        add_terms(v[r].y, a, l.y0[r][1], l.y1[r][1], l.y2[r][1], l.y3[r][1]);
        add_terms(v[r].z, a, l.y0[r][2], l.y1[r][2], l.y2[r][2], l.y3[r][2]);
        add_terms(v[r].w, a, l.y0[r][3], l.y1[r][3], l.y2[r][3], l.y3[r][3]);
        sum[r * 32] = v[r];
    }
}

/// Adds the terms of a group to the sums of the copies in `live`, two copies at a time. If `observes` is
/// true, also reads the neighbour's word before the last copies and returns the word for take_halo().
__device__ __forceinline__ uint4 add_sums(const PersistentWork& work, const CoreThread& t, const Levels& l,
                                          const float4* terms, unsigned live, bool observes,
                                          const uint4* from) {
    uint4 found = make_uint4(0, 0, 0, 0);
    do {
        const int c0 = __ffs(live) - 1;
        live &= live - 1;
        const int c1 = __ffs(live) - 1; // -1: no second copy is left
        live &= live - 1;
        if (live == 0 && observes && t.part & fetches) found = observe(from);
        if (c0 < 0) break;
        float4* const sum0 = t.own_sums + c0 * work.core_lines * 32;
        float4* const sum1 = t.own_sums + c1 * work.core_lines * 32;
        const float4 a0 = terms[c0];
        float4 v0[warp_rows];
        load_sums(v0, sum0);
        if (c1 < 0) {
            add_group(sum0, a0, v0, l);
        } else {
            const float4 a1 = terms[c1];
            float4 v1[warp_rows];
            load_sums(v1, sum1);
            add_group(sum0, a0, v0, l);
            add_group(sum1, a1, v1, l);
        }
    } while (live != 0);
    return found;
}

/// Copies the neighbours' samples next to the core into the last two levels. `found` is the word that
/// add_sums() read.
__device__ __forceinline__ void take_halo(const CoreThread& t, Levels& l, uint4 found, const uint4* from,
                                          unsigned epoch) {
    while (t.part & fetches && (found.y != epoch || found.w != epoch))
        found = observe(from);
    __syncwarp();
    reinterpret_cast<float2*>(t.sides)[t.lane] =
        make_float2(__uint_as_float(found.x), __uint_as_float(found.z));
    __syncwarp();
    if (t.part & takes) {
        const float4* const side = t.sides + (t.lane == 0 ? 0 : 8);
#pragma unroll
        for (int r = 0; r < warp_rows; ++r) {
            const float4 a = side[2 * r], b = side[2 * r + 1];
            l.y3[r][0] = a.x, l.y3[r][1] = a.y, l.y3[r][2] = a.z, l.y3[r][3] = a.w;
            l.y2[r][0] = b.x, l.y2[r][1] = b.y, l.y2[r][2] = b.z, l.y2[r][3] = b.w;
        }
    }
    __syncwarp();
}

/// Prefetches the planes of the next job.
__device__ __forceinline__ void prefetch_job(const PersistentWork& work, const Place& place, int job,
                                             int warp, int lane) {
    const auto& stage = work.stage;
    const Window win = window_of(work, job);
    const size_t plane = static_cast<size_t>(win.component) * stage.pitch * stage.lines;
    const int x = win.x + place.bx * core_samples + lane * 4,
              y = win.y + place.by * work.core_lines + warp * warp_rows;
    prefetch_lines(stage.start + plane, stage.pitch, stage.lines, x, y);
    prefetch_lines(stage.east + plane, stage.pitch, stage.lines, x, y);
    prefetch_lines(stage.south + plane, stage.pitch, stage.lines, x, y);
}

/// Processes all windows in the core's warps: runs the sweeps, adds to the sums, and writes copies as soon as
/// they are complete.
__device__ __forceinline__ void core_warps(const PersistentWork& work, float4* shared, unsigned barrier) {
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const Place& place = *reinterpret_cast<const Place*>(shared);
    float4* const edges = shared + edges_at + (warp + 1) * 64 + lane;
    const int neighbours = place.neighbours, windows = work.windows_across * work.windows_down;
    unsigned epoch = work.epoch, bits = 0;
    const int first_job = static_cast<int>(blockIdx.x) / (work.across * work.down);
    const CoreThread t{warp,
                       lane,
                       part_of(work, neighbours, warp, lane),
                       shared + sums_at + warp * (warp_rows * 32) + lane,
                       shared + sides_at + warp * 16,
                       static_cast<int>(exchange_lines) + warp * 16 + lane % 16};
    for (int job = first_job; job < windows * work.stage.components; job += work.teams) {
        Strip s;
        Levels l;
        load_strip(work, place, window_of(work, job), lane, warp * warp_rows, s, l.y3);
        edges[west_of_edges] = make_float4(s.west[0], s.west[1], s.west[2], s.west[3]);
        edges[north_of_edges] = make_float4(s.north[0], s.north[1], s.north[2], s.north[3]);
        if (job == first_job || windows > 1) bits = output_of(work, place, job);
        begin_sums(work, t.own_sums, l.y3);
        for (int g = 0; g < work.groups; ++g) {
            if (g == 0)
                sweep_core<true, 0>(l.y3, l.y3, l.y0, s, barrier, edges);
            else
                sweep_core<false, 0>(l.y2, l.y3, l.y0, s, barrier, edges);
            sweep_core<false, 1>(l.y3, l.y0, l.y1, s, barrier, edges);
            sweep_core<false, 2>(l.y0, l.y1, l.y2, s, barrier, edges);
            sweep_core<false, 3>(l.y1, l.y2, l.y3, s, barrier, edges);
            const bool exchanges = neighbours != 0 && g + 1 < work.groups;
            if (exchanges) show_halo(work, t, l, ++epoch);
            // The sums are updated while the neighbours' halos are in transit.
            const float4* const terms = shared + terms_at + (g & 1) * (batch_copies + 1);
            const int mask = __float_as_int(terms[batch_copies].x);
            const uint4* const from =
                half_of(work, static_cast<int>(blockIdx.x) + (lane < 16 ? -1 : 1), epoch) + t.words +
                (lane < 16 ? most_core_lines * 4 : 0);
            const uint4 found =
                add_sums(work, t, l, terms, mask & ((1 << batch_copies) - 1), exchanges, from);
            if (const int complete = mask >> batch_copies) {
                __syncwarp(); // Waits for the sums of the other lanes.
                put_out(work, place, job,
                        reinterpret_cast<const float*>(shared + sums_at + warp * (warp_rows * 32)), complete,
                        bits);
                __syncwarp();
            }
            if (exchanges) take_halo(t, l, found, from, epoch);
            if (g == work.groups / 2 && job + work.teams < windows * work.stage.components && lane % 8 == 0)
                prefetch_job(work, place, job + work.teams, warp, lane);
        }
        block_barrier();
    }
}

/// Processes all windows in the halo's warp. The warp sweeps the lines above and below the core on which the
/// core still depends; their number falls with every sweep. While the core updates its sums, the warp loads
/// these lines again.
__device__ __forceinline__ void halo_warp(const PersistentWork& work, float4* shared, unsigned barrier) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const Place& place = *reinterpret_cast<const Place*>(shared);
    // Positions in shared memory of the last line above the core and of the first line below it.
    float4 *const above = shared + edges_at + 32 + lane, *const below =
                                                             shared + edges_at +
                                                             (work.core_lines / warp_rows + 1) * 64 + lane;
    const int neighbours = place.neighbours;
    // The lines above and below the core are in the cores of the blocks above and below. Their samples in
    // lanes 0 and 31 are in the blocks to the left and to the right of these. There, other lanes have
    // published the samples: lane 30 of the left block, and lane 1 of the right block.
    const int dx = lane == 0 ? -1 : lane == 31 ? 1 : 0;
    const bool there = lane == 0 ? neighbours & to_left : lane == 31 ? neighbours & to_right : true;
    const int words = lane == 0 ? 30 : lane == 31 ? 1 : lane;
    unsigned epoch = work.epoch;
    for (int job = static_cast<int>(blockIdx.x) / (work.across * work.down);
         job < work.windows_across * work.windows_down * work.stage.components; job += work.teams) {
        Strip s[2];
        Pixels a[2], b[2]; // Y_{k-1} and Y_k; always zero outside the scene
        {
            const Window win = window_of(work, job);
            load_strip(work, place, win, lane, -warp_rows, s[0], b[0]);
            load_strip(work, place, win, lane, work.core_lines, s[1], b[1]);
        }
#pragma unroll
        for (int side = 0; side < 2; ++side)
#pragma unroll
            for (int r = 0; r < warp_rows; ++r)
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    a[side][r][i] = b[side][r][i];
        fetch_terms(work, shared + terms_at, 0, lane);
        for (int g = 0; g < work.groups; ++g) {
            if (g == 0)
                sweep_halo<true, 0>(a, b, s, barrier, above, below);
            else
                sweep_halo<false, 0>(a, b, s, barrier, above, below);
            sweep_halo<false, 1>(b, a, s, barrier, above, below);
            sweep_halo<false, 2>(a, b, s, barrier, above, below);
            sweep_halo<false, 3>(b, a, s, barrier, above, below);
            fetch_terms(work, shared + terms_at, g + 1, lane);
            if (neighbours == 0 || g + 1 == work.groups) continue;
            ++epoch;
#pragma unroll
            for (int side = 0; side < 2; ++side) {
                if (!there || !(neighbours & (side == 0 ? to_north : to_south))) continue;
                const uint4* const from =
                    half_of(work,
                            static_cast<int>(blockIdx.x) + dx + (side == 0 ? -work.across : work.across),
                            epoch) +
                    (side == 0 ? warp_rows * 128 : 0) + words;
                // The farthest line is read but not swept, so its Y_{k-1} is not needed.
                const int farthest = side == 0 ? 0 : warp_rows - 1;
                uint4 v[warp_rows][4];
                bool here;
                do {
                    here = true;
#pragma unroll
                    for (int r = 0; r < warp_rows; ++r)
#pragma unroll
                        for (int i = 0; i < (r == farthest ? 2 : 4); ++i)
                            v[r][i] = observe(from + r * 128 + i * 32);
#pragma unroll
                    for (int r = 0; r < warp_rows; ++r)
#pragma unroll
                        for (int i = 0; i < (r == farthest ? 2 : 4); ++i)
                            here = here && v[r][i].y == epoch && v[r][i].w == epoch;
                } while (!here);
#pragma unroll
                for (int r = 0; r < warp_rows; ++r)
#pragma unroll
                    for (int i = 0; i < 2; ++i) {
                        b[side][r][2 * i] = __uint_as_float(v[r][i].x);
                        b[side][r][2 * i + 1] = __uint_as_float(v[r][i].z);
                        if (r == farthest) continue;
                        a[side][r][2 * i] = __uint_as_float(v[r][i + 2].x);
                        a[side][r][2 * i + 1] = __uint_as_float(v[r][i + 2].z);
                    }
            }
            __syncwarp();
        }
        block_barrier();
    }
}

__global__ void __launch_bounds__(most_threads, 1)
    persistent_kernel(const __grid_constant__ PersistentWork work) {
    extern __shared__ float4 shared[];
    auto barrier = static_cast<unsigned>(__cvta_generic_to_shared(shared));
    // Keeps the value in a register, since computing it again reads a slow special register.
    asm volatile("" : "+r"(barrier));
    if (threadIdx.x == 0) {
        auto& place = *reinterpret_cast<Place*>(shared);
        const int block = static_cast<int>(blockIdx.x) % (work.across * work.down);
        place.bx = block % work.across;
        place.by = block / work.across;
        place.neighbours = (place.bx > 0 ? to_left : 0) | (place.bx + 1 < work.across ? to_right : 0) |
                           (place.by > 0 ? to_north : 0) | (place.by + 1 < work.down ? to_south : 0);
        barrier_init(barrier, static_cast<int>(blockDim.x));
    }
    __syncthreads();
    if (threadIdx.x / 32 == blockDim.x / 32 - 1)
        halo_warp(work, shared, barrier);
    else
        core_warps(work, shared, barrier);
}
#else
__global__ void __launch_bounds__(most_threads) persistent_kernel(const PersistentWork) {
} // never launched, since shared memory is too small
#endif

} // namespace

bool fits_persistent(int ordinal) {
    int shared = 0, cooperative = 0;
    HSI_CUDA_CHECK(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, ordinal));
    HSI_CUDA_CHECK(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, ordinal));
    return cooperative && static_cast<size_t>(shared) >= shared_of(most_core_lines);
}

void allow_persistent() {
    HSI_CUDA_CHECK(cudaFuncSetAttribute(persistent_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(shared_of(most_core_lines))));
}

void launch_persistent(PersistentWork work, cudaStream_t stream) {
    void* arguments[] = {&work};
    HSI_CUDA_CHECK(
        cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(persistent_kernel),
                                    dim3(static_cast<unsigned>(work.across * work.down * work.teams)),
                                    dim3(static_cast<unsigned>(32 * (work.core_lines / warp_rows + 1))),
                                    arguments, shared_of(work.core_lines), stream));
}

} // namespace hsi::eadp::gpu
