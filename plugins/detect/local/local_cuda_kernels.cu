// SPDX-License-Identifier: MIT
// RX against the ring around each pixel, in two steps per batch of pixels. The first step sums products over
// rings: a warp holds 32 x 32 sums in registers and slides along a run of pixels, adding and removing columns
// of pixels, with the tensor cores in double precision. In the second step, a block of threads per pixel
// computes the covariance from these sums, its factor, and d'M^-1 d, with the matrix in shared memory if it
// fits. Every spectrum ends in a 1, so the sums' last row holds the sums of the values, and its last entry
// the count. Rings of few pixels use U U' instead, as on the CPU (local.cpp); the last row of U is then d.
#include "core/valid_pixel.h"
#include "cuda/check.h"
#include "detect/local/local_cuda_kernels.cuh"

#include <cstddef>

namespace hsi::detect::gpu {
namespace {

constexpr int warps = 4;              ///< warps of a block that sums products
constexpr int most_solvers = 512;     ///< most threads of a block that factorises
constexpr unsigned all = ~0u;         ///< all lanes of a warp
constexpr double least_pivot = 1e-11; ///< equals least_local_pivot (local.h)

/// The result of the first look at a pixel.
enum Status : uint8_t {
    outside, ///< outside the core
    invalid,
    few,         ///< the ring has fewer than two pixels, or without a ridge fewer than bands + 1
    equal_here,  ///< all pixels of the ring are equal, and this pixel equals them
    equal_there, ///< all pixels of the ring are equal, and this pixel differs
    again,       ///< the sums have almost no variance left: compute them from the ring itself
    ready
};

__device__ int lane() { return static_cast<int>(threadIdx.x) % 32; }
__device__ int warp() { return static_cast<int>(threadIdx.x) / 32; }

/// Where a pixel of a batch is.
struct Place {
    int x, y, at; ///< x, y: position in the window; at: index in the window
    bool inside;
    size_t core; ///< index in the core
};
__device__ Place place_of(const LocalTile& t, const LocalBatch& b, int pixel) {
    const int run = b.first_run + pixel / run_pixels,
              across = run % t.runs_of_line() * run_pixels + pixel % run_pixels;
    const int line = run / t.runs_of_line();
    Place p;
    p.x = t.core_x + across;
    p.y = t.core_y + line;
    p.at = p.y * t.w + p.x;
    p.inside = across < t.core_w;
    p.core = static_cast<size_t>(line) * static_cast<size_t>(t.core_w) + static_cast<size_t>(across);
    return p;
}

/// Computes c += a b' for a and b of 8 x 4. A lane holds the entry (lane / 4, lane % 4) of a and of b, and
/// the entries (lane / 4, 2 (lane % 4)) and (lane / 4, 2 (lane % 4) + 1) of c.
__device__ __forceinline__ void multiply_add(double (&c)[2], double a, double b) {
#if __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                 : "+d"(c[0]), "+d"(c[1])
                 : "d"(a), "d"(b));
#else
    const int from = lane() / 4 * 4, first = lane() % 4 * 8;
    for (int k = 0; k < 4; ++k) {
        const double left = __shfl_sync(all, a, from + k);
        c[0] = fma(left, __shfl_sync(all, b, first + k), c[0]);
        c[1] = fma(left, __shfl_sync(all, b, first + 4 + k), c[1]);
    }
#endif
}

__device__ int solvers() { return static_cast<int>(blockDim.x); }

/// Returns the index of entry (row, column) of a matrix. The column must be <= row, or be in the same tile.
__device__ size_t entry(int row, int column) {
    const int i = row / 8, j = column / 8;
    return static_cast<size_t>(i * (i + 1) / 2 + j) * 64 +
           static_cast<size_t>(column % 8 / 4 * 32 + row % 8 * 4 + column % 4);
}
/// Returns the index of a lane's two entries in a tile, in the layout of multiply_add().
__device__ int pair_place() { return lane() % 4 / 2 * 32 + lane() / 4 * 4 + lane() % 2 * 2; }

/// Returns the sum of v over the block to every thread. The order of additions depends only on the number of
/// threads. All threads of the block must call this function.
__device__ double block_total(double v) {
    __shared__ double part[32];
    for (int o = 16; o > 0; o /= 2)
        v += __shfl_xor_sync(all, v, o);
    __syncthreads();
    if (lane() == 0) part[warp()] = v;
    __syncthreads();
    v = lane() < static_cast<int>(blockDim.x) / 32 ? part[lane()] : 0.0;
    for (int o = 16; o > 0; o /= 2)
        v += __shfl_xor_sync(all, v, o);
    return v;
}

// --- The tile

__global__ void states_kernel(const float* __restrict__ raw, int bands, int pixels,
                              const uint8_t* __restrict__ in_mask, uint8_t* __restrict__ state) {
    const int p = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (p >= pixels) return;
    const bool valid = is_valid_pixel(raw + p, bands, pixels);
    state[p] =
        static_cast<uint8_t>((valid ? 1 : 0) | (valid && (in_mask == nullptr || in_mask[p] != 0) ? 2 : 0));
}

/// Transposes 32 pixels and 32 bands per block of 32 x 8 threads.
__global__ void spectra_kernel(const float* __restrict__ raw, int bands, int pixels,
                               const uint8_t* __restrict__ state, float* __restrict__ spectra) {
    __shared__ float corner[32][33];
    const int first = static_cast<int>(blockIdx.x) * 32, band = static_cast<int>(blockIdx.y) * 32,
              column = static_cast<int>(threadIdx.x);
    for (int r = static_cast<int>(threadIdx.y); r < 32; r += 8) {
        const int b = band + r, p = first + column;
        float v = b == bands ? 1.0f : 0.0f;
        if (p < pixels && b < bands && state[p] != 0)
            v = raw[static_cast<size_t>(b) * static_cast<size_t>(pixels) + static_cast<size_t>(p)];
        corner[r][column] = v;
    }
    __syncthreads();
    for (int r = static_cast<int>(threadIdx.y); r < 32; r += 8)
        if (first + r < pixels)
            spectra[static_cast<size_t>(first + r) * static_cast<size_t>(spectrum_pitch(bands)) +
                    static_cast<size_t>(band + column)] = corner[column][r];
}

// --- Sums

/// Computes the mean of a run's valid pixels in single precision, one run per block.
__global__ void centres_kernel(LocalTile t, LocalBatch b) {
    const int run = static_cast<int>(blockIdx.x);
    const Place first = place_of(t, b, run * run_pixels);
    const int count = min(run_pixels, t.core_x + t.core_w - first.x);
    for (int k = static_cast<int>(threadIdx.x); k < t.pitch; k += static_cast<int>(blockDim.x)) {
        double sum = 0;
        int valid = 0;
        for (int i = 0; i < count; ++i)
            if ((t.state[first.at + i] & 1) != 0) {
                sum += static_cast<double>(t.spectra[static_cast<size_t>(first.at + i) * t.pitch + k]);
                ++valid;
            }
        b.centres[static_cast<size_t>(run) * t.pitch + k] =
            k < t.bands && valid > 0 ? static_cast<float>(sum / valid) : 0.0f;
    }
}

/// A pixel of a ring, or a pixel that enters or leaves the ring when the ring moves on by one pixel.
struct Member {
    int at = 0;
    float weight = 0; ///< 1, -1, or 0 for no pixel
};
__device__ Member member(const LocalTile& t, int x, int y, int dx, int dy, float weight) {
    const int i = x + dx, j = y + dy;
    Member m;
    if (i < 0 || j < 0 || i >= t.w || j >= t.h) return m;
    m.at = j * t.w + i;
    m.weight = weight;
    return m;
}
/// Returns the member's weight, or 0 if the pixel is not in the background.
__device__ float weight_of(const LocalTile& t, const Member& m) {
    return (t.state[m.at] & 2) != 0 ? m.weight : 0.0f;
}
/// Returns member k of the ring around (x, y), line by line.
__device__ Member ring_member(const LocalTile& t, int x, int y, int k) {
    const int reach = t.outer / 2, gap = t.inner / 2, above = (reach - gap) * t.outer, side = reach - gap;
    if (k < above) return member(t, x, y, k % t.outer - reach, k / t.outer - reach, 1);
    k -= above;
    if (k < t.inner * 2 * side) {
        const int i = k % (2 * side), dy = k / (2 * side) - gap;
        return member(t, x, y, i < side ? i - reach : i - side + gap + 1, dy, 1);
    }
    k -= t.inner * 2 * side;
    return member(t, x, y, k % t.outer - reach, k / t.outer + gap + 1, 1);
}
/// Returns the k-th pixel that enters or leaves when the ring moves from the previous pixel to (x, y).
__device__ Member moving_member(const LocalTile& t, int x, int y, int k) {
    const int reach = t.outer / 2, gap = t.inner / 2;
    if (k < t.outer) return member(t, x, y, reach, k - reach, 1);
    k -= t.outer;
    if (k < t.inner) return member(t, x, y, -gap - 1, k - gap, 1);
    k -= t.inner;
    if (k < t.outer) return member(t, x, y, -reach - 1, k - reach, -1);
    return member(t, x, y, gap, k - t.outer - gap, -1);
}

/// The 32 x 32 entries that a warp holds: row and column of their first tile. any: false if there are none.
struct Macro {
    int row, column;
    bool any;
};
__device__ Macro macro_of(int order) {
    const int rows = (tile_rows(order) + 3) / 4;
    int k = static_cast<int>(blockIdx.x) * warps + warp(), row = 0;
    while (row < rows && k > row)
        k -= ++row;
    return {4 * row, 4 * k, row < rows};
}
__device__ bool kept(const Macro& m, int i, int j, int rows) {
    return m.row + i < rows && m.column + j <= m.row + i;
}
__device__ void store(const Macro& m, const double (&sum)[4][4][2], int rows, double* matrix) {
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
            if (kept(m, i, j, rows)) {
                const int row = m.row + i;
                double* const to = matrix + static_cast<size_t>(row * (row + 1) / 2 + m.column + j) * 64;
                *reinterpret_cast<double2*>(to + pair_place()) = make_double2(sum[i][j][0], sum[i][j][1]);
            }
}

/// The values of a ring's member that a lane needs.
struct Taken {
    __device__ Taken(const LocalTile& t, const Macro& macro, const Member& m) : weight(weight_of(t, m)) {
        const float* const values = t.spectra + static_cast<size_t>(m.at) * t.pitch + lane() / 4;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            row[i] = values[8 * (macro.row + i)];
            column[i] = values[8 * (macro.column + i)];
        }
    }
    float weight, row[4], column[4];
};

/// Computes U'U of the rings of a run (blockIdx.y), or, if `single`, of a pixel whose ring is summed
/// separately.
template <bool single>
__global__ void __launch_bounds__(32 * warps, 3) sums_kernel(LocalTile t, LocalBatch b) {
    const Macro macro = macro_of(t.bands);
    if (!macro.any) return;
    const int rows = tile_rows(t.bands), number = static_cast<int>(blockIdx.y);
    if (single && b.status[number] != again) return;
    const int first_pixel = single ? number : number * run_pixels;
    const Place first = place_of(t, b, first_pixel);
    const int count = single ? 1 : min(run_pixels, t.core_x + t.core_w - first.x);
    float row_centre[4], column_centre[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int r = 8 * (macro.row + i) + lane() / 4, c = 8 * (macro.column + i) + lane() / 4;
        const size_t at = static_cast<size_t>(number) * t.pitch;
        row_centre[i] = !single       ? b.centres[at + r]
                        : r < t.bands ? static_cast<float>(b.means[at + r])
                                      : 0.0f;
        column_centre[i] = !single       ? b.centres[at + c]
                           : c < t.bands ? static_cast<float>(b.means[at + c])
                                         : 0.0f;
    }
    double sum[4][4][2] = {};
    for (int x = 0; x < count; ++x) {
        const int members = x == 0 ? t.ring() : 2 * (t.outer + t.inner);
        const auto find = [&](int k) {
            if (k >= members) return Member{};
            return x == 0 ? ring_member(t, first.x, first.y, k) : moving_member(t, first.x + x, first.y, k);
        };
        // The next values are loaded while the current ones are multiplied.
        Member next = find(lane() % 4);
        Taken taken(t, macro, next);
        next = find(4 + lane() % 4);
        for (int k = 0; k < members; k += 4) {
            double u[4], v[4];
            const auto weight = static_cast<double>(taken.weight);
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                u[i] = weight * (static_cast<double>(taken.row[i]) - static_cast<double>(row_centre[i]));
                v[i] = static_cast<double>(taken.column[i]) - static_cast<double>(column_centre[i]);
            }
            taken = Taken(t, macro, next);
            next = find(k + 8 + lane() % 4);
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    if (kept(macro, i, j, rows)) multiply_add(sum[i][j], u[i], v[j]);
        }
        store(macro, sum, rows, b.matrices + static_cast<size_t>(first_pixel + x) * matrix_size(t.bands));
    }
}

/// Decides whether the sums around a run's pixels have enough variance. One block of 32 warps per run.
__global__ void __launch_bounds__(1024) totals_kernel(LocalTile t, LocalBatch b) {
    __shared__ double totals[run_pixels];
    const int pixel = static_cast<int>(blockIdx.x) * run_pixels + warp();
    const Place place = place_of(t, b, pixel);
    const double* const m = b.matrices + static_cast<size_t>(pixel) * matrix_size(t.bands);
    uint8_t status = !place.inside ? outside : (t.state[place.at] & 1) == 0 ? invalid : ready;
    double squares = 0, apart = 0;
    if (status == ready) {
        const double n = m[entry(t.bands, t.bands)];
        if (n < (t.ridge_share > 0 ? 2 : t.bands + 1)) status = few;
        for (int a = lane(); status == ready && a < t.bands; a += 32) {
            const double square = m[entry(a, a)], sum = m[entry(t.bands, a)];
            squares += square;
            apart += square - sum * (sum / n);
        }
    }
    for (int o = 16; o > 0; o /= 2) {
        squares += __shfl_xor_sync(all, squares, o);
        apart += __shfl_xor_sync(all, apart, o);
    }
    if (lane() == 0) totals[warp()] = squares;
    __syncthreads();
    if (lane() != 0) return;
    double greatest = 0;
    for (int i = 0; i <= warp(); ++i)
        greatest = fmax(greatest, totals[i]);
    // Pixels that entered and left have left rounding errors in the sums.
    if (status == ready && !(apart > 1e-9 * greatest)) status = again;
    b.status[pixel] = status;
}

/// Computes the mean of a pixel's ring, and decides whether all its pixels are equal. One block per pixel.
/// With U U' this applies to all pixels, otherwise to pixels with status `again`.
__global__ void means_kernel(LocalTile t, LocalBatch b) {
    const int pixel = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x),
              threads = static_cast<int>(blockDim.x);
    const Place place = place_of(t, b, pixel);
    if (t.by_pixels) {
        if (!place.inside || (t.state[place.at] & 1) == 0) {
            if (thread == 0) b.status[pixel] = place.inside ? invalid : outside;
            return;
        }
    } else if (b.status[pixel] != again) {
        return;
    }
    const int reach = t.outer / 2, gap = t.inner / 2;
    const int left = max(0, place.x - reach), right = min(t.w - 1, place.x + reach);
    int count = 0;
    bool differs = false, is_other = false;
    for (int k = thread; k < t.pitch; k += threads) {
        double sum = 0;
        float one = 0;
        count = 0;
        for (int j = max(0, place.y - reach); j <= min(t.h - 1, place.y + reach); ++j)
            for (int i = left; i <= right; ++i) {
                if (abs(j - place.y) <= gap && abs(i - place.x) <= gap) continue;
                const int at = j * t.w + i;
                if ((t.state[at] & 2) == 0) continue;
                const float v = t.spectra[static_cast<size_t>(at) * t.pitch + k];
                if (count++ == 0) one = v;
                differs = differs || v != one;
                sum += static_cast<double>(v);
            }
        b.means[static_cast<size_t>(pixel) * t.pitch + k] = count > 0 ? sum / count : 0.0;
        is_other = is_other || t.spectra[static_cast<size_t>(place.at) * t.pitch + k] != one;
    }
    const bool any_differs = __syncthreads_or(differs) != 0, any_other = __syncthreads_or(is_other) != 0;
    if (thread != 0) return;
    b.ring_counts[pixel] = count;
    if (count < 2)
        b.status[pixel] = few;
    else if (!any_differs)
        b.status[pixel] = any_other ? equal_there : equal_here;
    else
        b.status[pixel] = t.by_pixels ? ready : again;
}

/// Computes U U' of the ring of a pixel (blockIdx.y), with x - mean as the last row of U.
__global__ void __launch_bounds__(32 * warps) gram_kernel(LocalTile t, LocalBatch b) {
    const int order = t.ring(), rows = tile_rows(order), pixel = static_cast<int>(blockIdx.y);
    const Macro macro = macro_of(order);
    if (!macro.any || b.status[pixel] != ready) return;
    const Place place = place_of(t, b, pixel);
    const auto find = [&](int k) {
        Member m;
        m.at = place.at;
        m.weight = k == order ? 1.0f : 0.0f;
        if (k < order) {
            m = ring_member(t, place.x, place.y, k);
            m.weight = weight_of(t, m);
        }
        return m;
    };
    Member row[4], column[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        row[i] = find(8 * (macro.row + i) + lane() / 4);
        column[i] = find(8 * (macro.column + i) + lane() / 4);
    }
    double sum[4][4][2] = {};
    for (int band = lane() % 4; band - lane() % 4 < t.bands; band += 4) {
        const double mean = b.means[static_cast<size_t>(pixel) * t.pitch + band];
        double u[4], v[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            u[i] = static_cast<double>(row[i].weight) *
                   (static_cast<double>(t.spectra[static_cast<size_t>(row[i].at) * t.pitch + band]) - mean);
            v[i] =
                static_cast<double>(column[i].weight) *
                (static_cast<double>(t.spectra[static_cast<size_t>(column[i].at) * t.pitch + band]) - mean);
        }
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
            for (int j = 0; j < 4; ++j)
                if (kept(macro, i, j, rows)) multiply_add(sum[i][j], u[i], v[j]);
    }
    store(macro, sum, rows, b.matrices + static_cast<size_t>(pixel) * matrix_size(order));
}

// --- Solving

/// Factorises the first `columns` columns of a tile on the diagonal; inverse[j] = 1 / L_jj. A whole warp
/// calls it.
__device__ void factorise_corner(double* tile, int columns, double* inverse) {
    const int r = lane() % 8;
    double row[8];
#pragma unroll
    for (int j = 0; j < 8; ++j)
        row[j] = tile[j / 4 * 32 + r * 4 + j % 4];
    __syncwarp();
    // L D L' comes first, since its chain of dependences from column to column is shorter.
    double pivot[8];
#pragma unroll
    for (int j = 0; j < 8; ++j)
        if (j < columns) {
            pivot[j] = __shfl_sync(all, row[j], j);
            const double share = row[j] * __drcp_rn(pivot[j]);
#pragma unroll
            for (int c = j + 1; c < 8; ++c)
                row[c] = fma(-share, __shfl_sync(all, row[j], c), row[c]);
        }
#pragma unroll
    for (int j = 0; j < 8; ++j)
        if (j < columns) {
            const double one = rsqrt(pivot[j]);
            row[j] *= one;
            if (lane() == j) inverse[j] = one;
        }
    if (lane() < 8)
#pragma unroll
        for (int j = 0; j < 8; ++j)
            tile[j / 4 * 32 + r * 4 + j % 4] = row[j];
}

/// Solves the rows below the corner of tile column k, one row per thread.
__device__ void solve_panel(double* m, int k, int rows, const double* inverse) {
    const double* const corner = m + static_cast<size_t>(k * (k + 1) / 2 + k) * 64;
    for (int r = 8 * (k + 1) + static_cast<int>(threadIdx.x); r < 8 * rows; r += solvers()) {
        const int i = r / 8;
        double* const at = m + static_cast<size_t>(i * (i + 1) / 2 + k) * 64 + static_cast<size_t>(r % 8 * 4);
        double v[8];
#pragma unroll
        for (int j = 0; j < 8; ++j)
            v[j] = at[j / 4 * 32 + j % 4];
#pragma unroll
        for (int j = 0; j < 8; ++j) {
#pragma unroll
            for (int c = 0; c < j; ++c)
                v[j] -= v[c] * corner[c / 4 * 32 + j * 4 + c % 4];
            v[j] *= inverse[j];
        }
#pragma unroll
        for (int j = 0; j < 8; ++j)
            at[j / 4 * 32 + j % 4] = v[j];
    }
}

/// Subtracts the products of panel i and panels j .. j + count - 1 of tile column k from their tiles. A whole
/// warp calls it.
__device__ void take_product(double* m, int k, int i, int j, int count) {
    const double* const left = m + static_cast<size_t>(i * (i + 1) / 2 + k) * 64 + lane();
    const double a0 = -left[0], a1 = -left[32];
#pragma unroll
    for (int q = 0; q < 4; ++q)
        if (q < count) {
            const int c = j + q;
            const double* const right = m + static_cast<size_t>(c * (c + 1) / 2 + k) * 64 + lane();
            double* const to = m + static_cast<size_t>(i * (i + 1) / 2 + c) * 64 + pair_place();
            const double2 old = *reinterpret_cast<const double2*>(to);
            double v[2] = {old.x, old.y};
            multiply_add(v, a0, right[0]);
            multiply_add(v, a1, right[32]);
            *reinterpret_cast<double2*>(to) = make_double2(v[0], v[1]);
        }
}

/// Replaces the matrix of order n by its factor L, and its last row by L^-1 times this row. While most warps
/// subtract products from the rest, the first warp factorises the next corner.
__device__ void factorise(double* m, int n, double* inverse) {
    const int rows = tile_rows(n);
    if (warp() == 0) factorise_corner(m, min(8, n), inverse);
    __syncthreads();
    for (int k = 0; 8 * k < n; ++k) {
        solve_panel(m, k, rows, inverse);
        __syncthreads();
        if (warp() == 0) {
            if (8 * (k + 1) < n) {
                take_product(m, k, k + 1, k + 1, 1);
                __syncwarp();
                const int next = k + 1;
                factorise_corner(m + static_cast<size_t>(next * (next + 1) / 2 + next) * 64,
                                 min(8, n - 8 * next), inverse);
            }
        } else {
            int i = k + 2, part = warp() - 1;
            while (i < rows) {
                const int parts = (i - k + 3) / 4;
                if (part >= parts) {
                    part -= parts;
                    ++i;
                    continue;
                }
                const int j = k + 1 + 4 * part;
                take_product(m, k, i, j, min(4, i + 1 - j));
                part += solvers() / 32 - 1;
            }
        }
        __syncthreads();
    }
}

__device__ void put(const Output& out, size_t at, bool has, double score) {
    out.scores[at] = has ? static_cast<float>(score) : nanf("");
    if (out.map != nullptr)
        out.map[at] = !has ? nanf("") : out.has_threshold && !(score >= out.threshold) ? 0.0f : 1.0f;
}

/// Writes a pixel that needs no matrix. One thread calls it.
__device__ void put_plain(const Output& out, size_t at, uint8_t status) {
    atomicAdd(out.counts + (status == invalid ? 1 : 0), 1ull);
    if (status == few) atomicAdd(out.counts + 2, 1ull);
    if (status == equal_here || status == equal_there) atomicAdd(out.counts + 3, 1ull);
    put(out, at, status == equal_here, 0);
}

/// Replaces the sums in m by the covariance with its ridge, and the row below by x - mean. `sums` is the last
/// row of m; the function fills `means`, of the same length.
__device__ void centre(const LocalTile& t, const LocalBatch& b, int pixel, const Place& place,
                       const double* sums, double* means, double* m) {
    const int n = t.bands, rows = tile_rows(n);
    const double count = sums[n], share = 1.0 / (count - 1);
    double apart = 0;
    for (int a = static_cast<int>(threadIdx.x); a < n; a += solvers()) {
        means[a] = sums[a] / count;
        apart += m[entry(a, a)] - sums[a] * means[a];
    }
    // After block_total(), all threads have also written their means.
    const double ridge = t.ridge_share * (block_total(apart) * share) / n;
    const bool single = b.status[pixel] == again;
    const size_t centre_at = static_cast<size_t>(single ? pixel : pixel / run_pixels) * t.pitch;
    const float* const x = t.spectra + static_cast<size_t>(place.at) * t.pitch;
    int i = 0;
    for (int j = warp();; j += solvers() / 32) {
        while (j > i)
            j -= ++i;
        if (i >= rows) break;
        double* const tile = m + static_cast<size_t>(i * (i + 1) / 2 + j) * 64;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int row = 8 * i + lane() / 4, column = 8 * j + half * 4 + lane() % 4;
            double v = 0;
            if (row < n && column < n)
                v = (tile[half * 32 + lane()] - sums[row] * means[column]) * share +
                    (row == column ? ridge : 0.0);
            if (row == n && column < n) {
                const float c =
                    single ? static_cast<float>(b.means[centre_at + column]) : b.centres[centre_at + column];
                v = static_cast<double>(x[column]) - static_cast<double>(c) - means[column];
            }
            tile[half * 32 + lane()] = v;
        }
    }
}

/// Solves one pixel per block. in_shared: the matrix fits into shared memory.
template <bool in_shared>
__global__ void __launch_bounds__(most_solvers) solve_kernel(LocalTile t, LocalBatch b, Output out) {
    extern __shared__ double shared[];
    __shared__ double inverse[8];
    const int pixel = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x), n = t.order();
    const Place place = place_of(t, b, pixel);
    const uint8_t status = b.status[pixel];
    if (status == outside) return;
    if (status < again) {
        if (thread == 0) put_plain(out, place.core, status);
        return;
    }
    const int padded = 8 * tile_rows(n);
    double* const from = b.matrices + static_cast<size_t>(pixel) * matrix_size(n);
    double* const sums = shared;
    double* const m = in_shared ? shared + 2 * padded : from;
    if (in_shared) {
        auto* const to = reinterpret_cast<double2*>(m);
        const auto* const source = reinterpret_cast<const double2*>(from);
        const int pairs = static_cast<int>(matrix_size(n) / 2);
#pragma unroll 8
        for (int e = thread; e < pairs; e += solvers())
            to[e] = source[e];
        __syncthreads();
    }
    for (int c = thread; c < padded; c += solvers())
        sums[c] = m[entry(n, c)];
    __syncthreads();
    double delta = 0;
    const double squared = sums[n];
    if (t.by_pixels) {
        double squares = 0;
        for (int a = thread; a < n; a += solvers())
            squares += m[entry(a, a)];
        const double ridge = t.ridge_share * block_total(squares) / t.bands;
        delta = ridge / (b.ring_counts[pixel] - 1);
        for (int a = thread; a < n; a += solvers())
            m[entry(a, a)] += ridge;
    } else {
        centre(t, b, pixel, place, sums, sums + padded, m);
    }
    __syncthreads();
    const bool plain = !t.by_pixels && !(t.ridge_share > 0);
    if (plain) { // from here on, `sums` holds the variances
        for (int a = thread; a < n; a += solvers())
            sums[a] = m[entry(a, a)];
        __syncthreads();
    }
    factorise(m, n, inverse);
    double square = 0;
    bool singular = false;
    for (int c = thread; c < n; c += solvers()) {
        const double y = m[entry(n, c)], pivot = m[entry(c, c)];
        square += y * y;
        singular = singular || (plain && !(pivot * pivot > least_pivot * sums[c]));
    }
    square = block_total(square);
    singular = __syncthreads_or(singular) != 0;
    if (thread != 0) return;
    atomicAdd(out.counts, 1ull);
    if (singular) atomicAdd(out.counts + 2, 1ull);
    put(out, place.core, !singular, t.by_pixels ? fmax(0.0, (squared - square) / delta) : square);
}

unsigned blocks(size_t n, size_t of) { return static_cast<unsigned>((n + of - 1) / of); }

/// Returns the bytes of shared memory that the device allows a block.
size_t most_shared() {
    int device = 0, bytes = 0;
    HSI_CUDA_CHECK(cudaGetDevice(&device));
    HSI_CUDA_CHECK(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    return static_cast<size_t>(bytes) - 1024; // leaves room for the kernel's other shared variables
}

} // namespace

void launch_states(const float* raw, int bands, int pixels, const uint8_t* in_mask, uint8_t* state,
                   cudaStream_t stream) {
    states_kernel<<<blocks(static_cast<size_t>(pixels), 256), 256, 0, stream>>>(raw, bands, pixels, in_mask,
                                                                                state);
    HSI_CUDA_LAUNCHED("states_kernel");
}

void launch_spectra(const float* raw, int bands, int pixels, const uint8_t* state, float* spectra,
                    cudaStream_t stream) {
    const dim3 grid(blocks(static_cast<size_t>(pixels), 32),
                    static_cast<unsigned>(spectrum_pitch(bands) / 32));
    spectra_kernel<<<grid, dim3(32, 8), 0, stream>>>(raw, bands, pixels, state, spectra);
    HSI_CUDA_LAUNCHED("spectra_kernel");
}

void launch_local(const LocalTile& tile, const LocalBatch& batch, const Output& out, cudaStream_t stream) {
    const auto runs = static_cast<unsigned>(batch.runs), pixels = runs * run_pixels;
    const auto macros = static_cast<size_t>((tile_rows(tile.order()) + 3) / 4);
    const unsigned across = blocks(macros * (macros + 1) / 2, warps);
    if (tile.by_pixels) {
        means_kernel<<<pixels, 128, 0, stream>>>(tile, batch);
        HSI_CUDA_LAUNCHED("means_kernel");
        gram_kernel<<<dim3(across, pixels), 32 * warps, 0, stream>>>(tile, batch);
        HSI_CUDA_LAUNCHED("gram_kernel");
    } else {
        centres_kernel<<<runs, 128, 0, stream>>>(tile, batch);
        HSI_CUDA_LAUNCHED("centres_kernel");
        sums_kernel<false><<<dim3(across, runs), 32 * warps, 0, stream>>>(tile, batch);
        HSI_CUDA_LAUNCHED("sums_kernel");
        totals_kernel<<<runs, 32 * run_pixels, 0, stream>>>(tile, batch);
        HSI_CUDA_LAUNCHED("totals_kernel");
        means_kernel<<<pixels, 128, 0, stream>>>(tile, batch);
        HSI_CUDA_LAUNCHED("means_kernel");
        sums_kernel<true><<<dim3(across, pixels), 32 * warps, 0, stream>>>(tile, batch);
        HSI_CUDA_LAUNCHED("sums_kernel");
    }
    const int rows = tile_rows(tile.order());
    const unsigned threads = rows <= 6 ? 64 : rows <= 10 ? 128 : rows <= 16 ? 256 : most_solvers;
    const size_t vectors = 2 * static_cast<size_t>(8 * rows) * sizeof(double),
                 whole = vectors + matrix_size(tile.order()) * sizeof(double);
    if (whole <= most_shared()) {
        HSI_CUDA_CHECK(cudaFuncSetAttribute(solve_kernel<true>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            static_cast<int>(whole)));
        solve_kernel<true><<<pixels, threads, whole, stream>>>(tile, batch, out);
    } else {
        HSI_CUDA_CHECK(cudaFuncSetAttribute(solve_kernel<false>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            static_cast<int>(vectors)));
        solve_kernel<false><<<pixels, threads, vectors, stream>>>(tile, batch, out);
    }
    HSI_CUDA_LAUNCHED("solve_kernel");
}

} // namespace hsi::detect::gpu
