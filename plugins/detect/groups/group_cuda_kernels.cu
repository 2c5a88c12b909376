// SPDX-License-Identifier: MIT
#include "core/valid_pixel.h"
#include "cuda/block_fold.cuh"
#include "cuda/check.h"
#include "detect/groups/group_cuda_kernels.cuh"
#include "detect/groups/groups.h"

#include <algorithm>
#include <cmath>

namespace hsi::detect::gpu {
namespace {

constexpr int threads = 256;
constexpr int block = 32; ///< rows and columns of the matrix that a block of threads computes at a time
constexpr int warps = threads / 32;
constexpr uint8_t is_good = 1, in_background = 2, in_statistics = 4;

__device__ double block_sum(double v) { return cuda::block_sum<threads>(v); }
__device__ double block_least(double v) { return cuda::block_least<threads>(v); }

/// Returns the pixel's index in the raster.
__device__ int64_t pixel_of(const GroupWork& w, const DeviceGroup& group, int i) {
    if (w.order != nullptr) return w.order[group.place + i];
    return static_cast<int64_t>(i / group.width) * w.samples + group.first + i % group.width;
}

__device__ const float* band_of(const GroupWork& w, const DeviceGroup& group, int b) {
    return w.x + group.values + b * w.pitch;
}

__global__ void __launch_bounds__(threads)
    sort_band(const GroupWork w, const float* __restrict__ band, float* __restrict__ to) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * threads + threadIdx.x;
    if (i < w.places) to[i] = band[w.order[i]];
}

/// Returns a thread's first pixel in the group.
__device__ int first_pixel() { return static_cast<int>(blockIdx.y * threads + threadIdx.x); }
__device__ int pixel_step() { return static_cast<int>(gridDim.y) * threads; }

/// Finds and counts the valid pixels, and those among them that belong to the background.
__global__ void __launch_bounds__(threads) look_at_groups(const GroupWork w) {
    DeviceGroup& group = w.group[blockIdx.x];
    double valid = 0, counting = 0;
    for (int i = first_pixel(); i < group.pixels; i += pixel_step()) {
        const bool good = is_valid_pixel(band_of(w, group, 0) + i, w.bands, w.pitch);
        const bool counts = good && (w.mask == nullptr || w.mask[pixel_of(w, group, i)] != 0);
        w.state[group.place + i] =
            static_cast<uint8_t>((good ? is_good : 0) | (counts ? in_background | in_statistics : 0));
        valid += good;
        counting += counts;
    }
    valid = block_sum(valid);
    counting = block_sum(counting);
    if (threadIdx.x != 0) return;
    atomicAdd(&group.valid, static_cast<int>(valid));
    atomicAdd(&group.background, static_cast<int>(counting));
    atomicAdd(&group.counted, static_cast<int>(counting));
}

/// Computes the mean of a band, and finds whether all values are equal.
__global__ void __launch_bounds__(threads) find_means(const GroupWork w) {
    const int g = static_cast<int>(blockIdx.x), b = static_cast<int>(blockIdx.y);
    const DeviceGroup& group = w.group[g];
    if (group.settled()) return;
    const float* const x = band_of(w, group, b);
    const uint8_t* const state = w.state + group.place;
    double sum = 0;
    float low = INFINITY, high = -INFINITY;
    for (int i = static_cast<int>(threadIdx.x); i < group.pixels; i += threads)
        if (state[i] & in_statistics) {
            sum += static_cast<double>(x[i]);
            low = fminf(low, x[i]);
            high = fmaxf(high, x[i]);
        }
    sum = block_sum(sum);
    const double least = block_least(static_cast<double>(low)),
                 greatest = -block_least(-static_cast<double>(high));
    if (threadIdx.x != 0) return;
    const int64_t at = static_cast<int64_t>(g) * w.bands + b;
    const bool constant = !(least < greatest);
    w.constant[at] = constant;
    w.mean[at] = !w.centred || group.counted == 0 ? 0.0 : constant ? least : sum / group.counted;
}

/// Sums the products of the centred pixels: a block of the lower triangle, and its mirror image.
__global__ void __launch_bounds__(threads) find_products(const GroupWork w) {
    __shared__ double row[block][block + 1], column[block][block + 1];
    int a = 0, left = static_cast<int>(blockIdx.y); // blockIdx.y counts the blocks of the triangle row by row
    while (left > a) {
        left -= a + 1;
        ++a;
    }
    const int r0 = a * block, c0 = left * block, g = static_cast<int>(blockIdx.x);
    const DeviceGroup& group = w.group[g];
    if (group.settled()) return;
    const uint8_t* const state = w.state + group.place;
    const double* const mean = w.mean + static_cast<int64_t>(g) * w.bands;
    const int tx = static_cast<int>(threadIdx.x) % 16, ty = static_cast<int>(threadIdx.x) / 16;
    double sum[2][2] = {};
    for (int from = 0; from < group.pixels; from += block) {
        const int lane = static_cast<int>(threadIdx.x) % block, i = from + lane;
        const bool counts = i < group.pixels && (state[i] & in_statistics) != 0;
        __syncthreads();
        for (int k = static_cast<int>(threadIdx.x) / block; k < block; k += threads / block) {
            const int r = r0 + k, c = c0 + k;
            row[lane][k] =
                counts && r < w.bands ? static_cast<double>(band_of(w, group, r)[i]) - mean[r] : 0.0;
            column[lane][k] =
                counts && c < w.bands ? static_cast<double>(band_of(w, group, c)[i]) - mean[c] : 0.0;
        }
        __syncthreads();
#pragma unroll 8
        for (int k = 0; k < block; ++k) {
            const double u0 = row[k][ty], u1 = row[k][ty + 16], v0 = column[k][tx], v1 = column[k][tx + 16];
            sum[0][0] = fma(u0, v0, sum[0][0]);
            sum[0][1] = fma(u0, v1, sum[0][1]);
            sum[1][0] = fma(u1, v0, sum[1][0]);
            sum[1][1] = fma(u1, v1, sum[1][1]);
        }
    }
    double* const m = w.matrix + w.matrix_at(g);
    for (int p = 0; p < 2; ++p)
        for (int q = 0; q < 2; ++q) {
            const int r = r0 + ty + 16 * p, c = c0 + tx + 16 * q;
            if (r >= w.bands || c > r) continue;
            m[static_cast<int64_t>(r) * w.bands + c] = sum[p][q];
            if (r == c)
                w.own[static_cast<int64_t>(g) * w.bands + r] = sum[p][q];
            else
                m[static_cast<int64_t>(c) * w.bands + r] = sum[p][q];
        }
}

/// Computes |z|^4 of the pixels; z is scaled to unit variance in each band.
__global__ void __launch_bounds__(threads) find_fourth_powers(const GroupWork w) {
    const int g = static_cast<int>(blockIdx.x);
    const DeviceGroup& group = w.group[g];
    if (group.settled()) return;
    const int64_t first = static_cast<int64_t>(g) * w.bands;
    if (blockIdx.y == 0) // One block per group stores the weights for later kernels.
        for (int b = static_cast<int>(threadIdx.x); b < w.bands; b += threads) {
            const double own = w.own[first + b];
            w.weight[first + b] = own > 0 ? group.counted / own : 0.0;
        }
    for (int i = first_pixel(); i < group.pixels; i += pixel_step()) {
        double squared = 0;
        if (w.state[group.place + i] & in_statistics)
            for (int b = 0; b < w.bands; ++b) {
                const double own = w.own[first + b];
                if (!(own > 0)) continue;
                const double z = static_cast<double>(band_of(w, group, b)[i]) - w.mean[first + b];
                squared += group.counted / own * z * z;
            }
        w.squares[group.place + i] = squared * squared;
    }
}

/// Returns the group's shrinkage (BandShrinkage).
__device__ double share_of(const GroupWork& w, const DeviceGroup& group, int g, double used) {
    const int n = w.bands;
    const int64_t first = static_cast<int64_t>(g) * n;
    const double* const m = w.matrix + w.matrix_at(g);
    const double count = group.counted;
    double off = 0, fourth = 0;
    for (int r = static_cast<int>(threadIdx.x) / 32; r < n; r += warps) // one warp per row
        for (int c = static_cast<int>(threadIdx.x) % 32; c < r; c += 32) {
            const double v = m[static_cast<int64_t>(r) * n + c];
            off += v * v * w.weight[first + r] * w.weight[first + c];
        }
    for (int i = static_cast<int>(threadIdx.x); i < group.pixels; i += threads)
        fourth += w.squares[group.place + i];
    off = 2 * block_sum(off) / (count * count);
    fourth = block_sum(fourth);
    const double delta = off / used, beta = (fourth / count - (off + used)) / (used * count);
    return off > 0 ? fmin(fmax(beta, 0.0), delta) / delta : 1.0;
}

/// Computes each group's shrinkage, decides whether its matrix can be inverted, and forms the matrix from the
/// sums: shrunk, or with a ridge on the diagonal if there are too few pixels for the bands. A constant band
/// has 1 on the diagonal and zeros elsewhere.
__global__ void __launch_bounds__(threads) shrink_groups(const GroupWork w) {
    const int g = static_cast<int>(blockIdx.x), n = w.bands;
    DeviceGroup& group = w.group[g];
    if (group.settled()) return;
    const int64_t first = static_cast<int64_t>(g) * n;
    double* const m = w.matrix + w.matrix_at(g);
    const double count = group.counted;
    double varying = 0, trace = 0, positive = 0, least = INFINITY;
    for (int b = static_cast<int>(threadIdx.x); b < n; b += threads) {
        const bool varies = w.constant[first + b] == 0;
        varying += varies;
        if (!varies && w.centred) continue;
        const double own = w.own[first + b];
        trace += own;
        positive += own > 0;
        least = fmin(least, own);
    }
    varying = block_sum(varying);
    trace = block_sum(trace);
    positive = block_sum(positive);
    least = block_least(least);
    const double used = w.centred ? varying : n,
                 unbiased = count > 1 ? 1 / (w.centred ? count - 1 : count) : 0.0;
    const double share =
        w.ledoit_wolf && count >= 2 && varying > 0 ? share_of(w, group, g, positive) : w.share;
    __syncthreads(); // the first thread overwrites the data after all threads have read it
    const bool surely = share > 0 ? least > 0 && share * least >= 2 * least_share * trace / used
                                  : w.inverse != nullptr; // check_inverses() decides later
    const int fate = count < 2 ? few_pixels : !(varying > 0) ? no_variance : surely ? going : uncertain;
    const double mean_eigenvalue = trace * unbiased / used,
                 ridge = share == 0 && count <= used ? ridge_share * mean_eigenvalue : 0.0;
    if (threadIdx.x == 0) {
        group.varying = static_cast<int>(varying);
        group.share = share;
        group.mean_eigenvalue = mean_eigenvalue;
        group.regularised = ridge > 0;
        group.fate = fate;
    }
    if (fate != going) return;
    const double rest = (1 - share) * unbiased;
    for (int r = static_cast<int>(threadIdx.x) / 32; r < n; r += warps)
        for (int c = static_cast<int>(threadIdx.x) % 32; c <= r; c += 32) {
            double& v = m[static_cast<int64_t>(r) * n + c];
            const bool left = w.centred && (w.constant[first + r] != 0 || w.constant[first + c] != 0);
            v = r == c ? (left ? 1.0 : v * unbiased + ridge) : left ? 0.0 : v * rest;
        }
}

/// Computes the Cholesky factor of a group's matrix in place, in panels of `block` columns.
__global__ void __launch_bounds__(threads) factorise_groups(const GroupWork w) {
    __shared__ double top[block][block + 1], row[block][block + 1], column[block][block + 1];
    const int g = static_cast<int>(blockIdx.x), n = w.bands;
    if (w.group[g].fate != going) return;
    double* const m = w.matrix + w.matrix_at(g);
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    const int tx = static_cast<int>(threadIdx.x) % 16, ty = static_cast<int>(threadIdx.x) / 16;
    for (int k0 = 0; k0 < n; k0 += block) {
        const int width = min(block, n - k0);
        for (int r = warp; r < block; r += threads / 32)
            top[r][lane] = r < width && lane <= r ? m[static_cast<int64_t>(k0 + r) * n + k0 + lane] : 0.0;
        __syncthreads();
        if (warp == 0)
            for (int c = 0; c < width; ++c) {
                const double pivot = sqrt(top[c][c]);
                __syncwarp();
                if (lane == c)
                    top[c][c] = pivot;
                else if (lane > c && lane < width)
                    top[lane][c] /= pivot;
                __syncwarp();
                for (int j = c + 1; j < width; ++j)
                    if (lane >= j && lane < width) top[lane][j] -= top[lane][c] * top[j][c];
                __syncwarp();
            }
        __syncthreads();
        for (int r = warp; r < width; r += threads / 32)
            if (lane <= r) m[static_cast<int64_t>(k0 + r) * n + k0 + lane] = top[r][lane];
        // Each thread computes rows below the corner.
        for (int r = k0 + block + static_cast<int>(threadIdx.x); r < n; r += threads) {
            double* const at = m + static_cast<int64_t>(r) * n + k0;
            double v[block];
#pragma unroll
            for (int c = 0; c < block; ++c)
                v[c] = at[c];
#pragma unroll
            for (int c = 0; c < block; ++c) {
#pragma unroll
                for (int j = 0; j < c; ++j)
                    v[c] -= v[j] * top[c][j];
                v[c] /= top[c][c];
            }
#pragma unroll
            for (int c = 0; c < block; ++c)
                at[c] = v[c];
        }
        // Subtracts the panel's products from the blocks right of the panel.
        for (int r0 = k0 + block; r0 < n; r0 += block)
            for (int c0 = k0 + block; c0 <= r0; c0 += block) {
                __syncthreads();
                for (int k = warp; k < block; k += threads / 32) {
                    row[lane][k] = r0 + k < n ? m[static_cast<int64_t>(r0 + k) * n + k0 + lane] : 0.0;
                    column[lane][k] = c0 + k < n ? m[static_cast<int64_t>(c0 + k) * n + k0 + lane] : 0.0;
                }
                __syncthreads();
                double sum[2][2] = {};
#pragma unroll 8
                for (int k = 0; k < block; ++k) {
                    const double u0 = row[k][ty], u1 = row[k][ty + 16], v0 = column[k][tx],
                                 v1 = column[k][tx + 16];
                    sum[0][0] = fma(u0, v0, sum[0][0]);
                    sum[0][1] = fma(u0, v1, sum[0][1]);
                    sum[1][0] = fma(u1, v0, sum[1][0]);
                    sum[1][1] = fma(u1, v1, sum[1][1]);
                }
                for (int p = 0; p < 2; ++p)
                    for (int q = 0; q < 2; ++q) {
                        const int r = r0 + ty + 16 * p, c = c0 + tx + 16 * q;
                        if (r < n && c <= r) m[static_cast<int64_t>(r) * n + c] -= sum[p][q];
                    }
            }
        __syncthreads();
    }
}

/// Inverts the factor, one column per thread; the columns of a warp begin with the same row.
__global__ void __launch_bounds__(threads) invert_factors(const GroupWork w) {
    const int g = static_cast<int>(blockIdx.x), n = w.bands;
    if (w.group[g].fate != going) return;
    const int j = static_cast<int>(blockIdx.y * threads + threadIdx.x), from = j / 32 * 32;
    if (from >= n) return;
    const double* const m = w.matrix + w.matrix_at(g);
    double* const inverse = w.inverse + w.matrix_at(g);
    const bool inside = j < n, left = inside && w.centred && w.constant[static_cast<int64_t>(g) * n + j] != 0;
    for (int i = from; i < n; ++i) {
        const double* const row = m + static_cast<int64_t>(i) * n;
        double sums[4] = {};
        int k = from;
        for (; k + 4 <= i; k += 4)
#pragma unroll
            for (int q = 0; q < 4; ++q)
                sums[q] =
                    fma(row[k + q], inside ? inverse[static_cast<int64_t>(k + q) * n + j] : 0.0, sums[q]);
        for (; k < i; ++k)
            sums[k % 4] = fma(row[k], inside ? inverse[static_cast<int64_t>(k) * n + j] : 0.0, sums[k % 4]);
        if (!inside) continue;
        const double sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
        inverse[static_cast<int64_t>(i) * n + j] =
            left || i < j ? 0.0 : ((i == j ? 1.0 : 0.0) - sum) / row[i];
    }
}

/// Marks groups as uncertain whose matrix, not shrunk, may be nearly singular. The test uses the trace of the
/// inverse, which is an upper bound of 1 / least eigenvalue.
__global__ void __launch_bounds__(threads) check_inverses(const GroupWork w) {
    const int g = static_cast<int>(blockIdx.x), n = w.bands;
    DeviceGroup& group = w.group[g];
    if (group.fate != going || group.share > 0) return;
    const double* const inverse = w.inverse + w.matrix_at(g);
    double squared = 0;
    for (int r = static_cast<int>(threadIdx.x) / 32; r < n; r += warps)
        for (int c = static_cast<int>(threadIdx.x) % 32; c <= r; c += 32) {
            const double v = inverse[static_cast<int64_t>(r) * n + c];
            squared = fma(v, v, squared);
        }
    squared = block_sum(squared);
    if (threadIdx.x == 0 && !(squared * 2 * least_share * group.mean_eigenvalue <= 1)) group.fate = uncertain;
}

/// Computes the row of a target in a group: M^-1 z / z'M^-1 z.
__global__ void __launch_bounds__(threads) find_rows(const GroupWork w) {
    extern __shared__ double z[];
    const int g = static_cast<int>(blockIdx.x), target = static_cast<int>(blockIdx.y), n = w.bands;
    DeviceGroup& group = w.group[g];
    __shared__ bool goes;
    if (threadIdx.x == 0) goes = group.fate == going; // another target's block may change the fate
    __syncthreads();
    if (!goes) return;
    const int64_t first = static_cast<int64_t>(g) * n;
    const double* const m = w.matrix + w.matrix_at(g);
    for (int b = static_cast<int>(threadIdx.x); b < n; b += threads) {
        const double t = w.spectra[static_cast<int64_t>(target) * n + b], mean = w.mean[first + b];
        z[b] = w.centred && w.constant[first + b] != 0 ? 0.0 : w.absorption ? t * mean : t - mean;
    }
    for (int a = 0; a < n; ++a) {
        __syncthreads();
        const double v = z[a] / m[static_cast<int64_t>(a) * (n + 1)];
        __syncthreads();
        if (threadIdx.x == 0) z[a] = v;
        for (int b = a + 1 + static_cast<int>(threadIdx.x); b < n; b += threads)
            z[b] -= m[static_cast<int64_t>(b) * n + a] * v;
    }
    __syncthreads();
    double contrast = 0;
    for (int b = static_cast<int>(threadIdx.x); b < n; b += threads)
        contrast += z[b] * z[b];
    contrast = block_sum(contrast);
    if (!is_enough_contrast(contrast, w.absorption)) {
        if (threadIdx.x == 0) group.fate = target_is_mean;
        return;
    }
    for (int a = n - 1; a >= 0; --a) {
        __syncthreads();
        const double v = z[a] / m[static_cast<int64_t>(a) * (n + 1)];
        __syncthreads();
        if (threadIdx.x == 0) z[a] = v;
        for (int b = static_cast<int>(threadIdx.x); b < a; b += threads)
            z[b] -= m[static_cast<int64_t>(a) * n + b] * v;
    }
    __syncthreads();
    const int64_t at = static_cast<int64_t>(g) * w.targets + target;
    if (threadIdx.x == 0) w.constants[at] = contrast;
    for (int b = static_cast<int>(threadIdx.x); b < n; b += threads)
        w.rows[at * n + b] = z[b] / contrast;
}

/// Computes |L^-1 (x - m)|^2 of `block` pixels at a time.
__global__ void __launch_bounds__(threads) find_squares(const GroupWork w) {
    __shared__ double row[block][block + 1], z[block][block + 1];
    const int g = static_cast<int>(blockIdx.x), n = w.bands;
    const DeviceGroup& group = w.group[g];
    if (group.fate != going) return;
    const double* const inverse = w.inverse + w.matrix_at(g);
    const double* const mean = w.mean + static_cast<int64_t>(g) * n;
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    const int tx = static_cast<int>(threadIdx.x) % 16, ty = static_cast<int>(threadIdx.x) / 16;
    for (int from = static_cast<int>(blockIdx.y) * block; from < group.pixels;
         from += static_cast<int>(gridDim.y) * block) {
        const int i = from + lane;
        double squared[2] = {};
        for (int r0 = 0; r0 < n; r0 += block) {
            double sum[2][2] = {};
            for (int c0 = 0; c0 <= r0; c0 += block) {
                __syncthreads();
                for (int k = warp; k < block; k += warps) {
                    row[lane][k] = r0 + k < n && c0 + lane <= r0 + k
                                       ? inverse[static_cast<int64_t>(r0 + k) * n + c0 + lane]
                                       : 0.0;
                    z[k][lane] = i < group.pixels && c0 + k < n
                                     ? static_cast<double>(band_of(w, group, c0 + k)[i]) - mean[c0 + k]
                                     : 0.0;
                }
                __syncthreads();
#pragma unroll 8
                for (int k = 0; k < block; ++k) {
                    const double u0 = row[k][ty], u1 = row[k][ty + 16], v0 = z[k][tx], v1 = z[k][tx + 16];
                    sum[0][0] = fma(u0, v0, sum[0][0]);
                    sum[0][1] = fma(u0, v1, sum[0][1]);
                    sum[1][0] = fma(u1, v0, sum[1][0]);
                    sum[1][1] = fma(u1, v1, sum[1][1]);
                }
            }
            for (int q = 0; q < 2; ++q)
                squared[q] = fma(sum[1][q], sum[1][q], fma(sum[0][q], sum[0][q], squared[q]));
        }
        __syncthreads();
        for (int q = 0; q < 2; ++q)
            z[ty][tx + 16 * q] = squared[q];
        __syncthreads();
        if (warp != 0 || i >= group.pixels) continue;
        double all = 0;
        for (int k = 0; k < block / 2; ++k)
            all += z[k][lane];
        w.squares[group.place + i] = all;
    }
}

/// Computes the scores of a group's pixels.
__global__ void __launch_bounds__(threads) score_groups(const GroupWork w) {
    const int g = static_cast<int>(blockIdx.x);
    const DeviceGroup& group = w.group[g];
    if (group.fate != going) return;
    const double* const mean = w.mean + static_cast<int64_t>(g) * w.bands;
    for (int i = first_pixel(); i < group.pixels; i += pixel_step()) {
        const int64_t place = group.place + i;
        if ((w.state[place] & is_good) == 0) continue;
        if (w.targets == 0) w.scores[place] = w.squares[place];
        for (int t = 0; t < w.targets; ++t) {
            const int64_t target = static_cast<int64_t>(g) * w.targets + t;
            const double* const row = w.rows + target * w.bands;
            double sum = 0;
            for (int b = 0; b < w.bands; ++b)
                sum = fma(row[b], static_cast<double>(band_of(w, group, b)[i]) - mean[b], sum);
            if (w.ace) {
                const double squared = w.squares[place];
                sum = squared > 0 ? fmin(1.0, fmax(-1.0, sum * fabs(sum) * w.constants[target] / squared))
                                  : 0.0;
            }
            w.scores[t * w.places + place] = sum;
        }
    }
}

/// Returns the greatest score of a pixel, rounded to float as in the output, as an integer that rises with
/// the score.
__device__ unsigned rising_score(const GroupWork& w, int64_t place) {
    float score = static_cast<float>(w.scores[place]);
    for (int t = 1; t < w.targets; ++t)
        score = fmaxf(score, static_cast<float>(w.scores[t * w.places + place]));
    const unsigned bits = __float_as_uint(score + 0.0f); // turns -0 into 0
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

/// Excludes the pixels of greatest score from a group's statistics. It finds the least excluded score digit
/// by digit; among the pixels with this score, it excludes the first ones.
__global__ void __launch_bounds__(threads) exclude_greatest(const GroupWork w) {
    __shared__ int counts[256], ahead[warps + 1];
    __shared__ int wanted;
    __shared__ unsigned least;
    DeviceGroup& group = w.group[blockIdx.x];
    if (group.fate != going) return;
    const int leave = static_cast<int>(excluded_pixels(w.exclude_share, group.background));
    if (leave == 0) return;
    uint8_t* const state = w.state + group.place;
    const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
    if (thread == 0) {
        wanted = leave;
        least = 0;
    }
    for (int shift = 24; shift >= 0; shift -= 8) {
        for (int k = thread; k < 256; k += threads)
            counts[k] = 0;
        __syncthreads();
        for (int i = thread; i < group.pixels; i += threads) {
            if ((state[i] & in_background) == 0) continue;
            const unsigned score = rising_score(w, group.place + i);
            if (shift == 24 || score >> (shift + 8) == least) atomicAdd(counts + (score >> shift & 255), 1);
        }
        __syncthreads();
        if (thread == 0) {
            int digit = 255;
            for (; digit > 0 && wanted > counts[digit]; --digit)
                wanted -= counts[digit];
            least = least << 8 | static_cast<unsigned>(digit);
        }
        __syncthreads();
    }
    int before = 0; // number of earlier pixels with the score `least`
    for (int base = 0; base < group.pixels; base += threads) {
        const int i = base + thread;
        const bool inside = i < group.pixels && (state[i] & in_background) != 0;
        const unsigned score = inside ? rising_score(w, group.place + i) : 0;
        const bool equal = inside && score == least;
        const unsigned equals = __ballot_sync(~0u, equal);
        if (lane == 0) ahead[warp + 1] = __popc(equals);
        __syncthreads();
        if (thread == 0) {
            ahead[0] = 0;
            for (int k = 1; k <= warps; ++k)
                ahead[k] += ahead[k - 1];
        }
        __syncthreads();
        const int rank = before + ahead[warp] + __popc(equals & ((1u << lane) - 1));
        if (inside) {
            const bool leaves = score > least || (equal && rank < wanted);
            state[i] = static_cast<uint8_t>(leaves ? state[i] & ~in_statistics : state[i] | in_statistics);
        }
        before += ahead[warps];
        __syncthreads();
    }
    if (thread != 0) return;
    group.excluded = leave;
    group.counted = group.background - leave;
}

/// Returns Decider::best() of the scores.
__device__ float best_target(const double* scores, int count, int64_t pitch, const Output& out) {
    double greatest = scores[0];
    for (int k = 1; k < count; ++k)
        greatest = fmax(greatest, scores[k * pitch]);
    const double least = greatest - 1e-10 * fabs(greatest);
    int first = 0;
    while (first < count - 1 && !(scores[first * pitch] >= least))
        ++first;
    return out.has_threshold && !(scores[first * pitch] >= out.threshold) ? 0.0f
                                                                          : static_cast<float>(first + 1);
}

/// Writes the results of a group's pixels to the core of the raster.
__global__ void __launch_bounds__(threads) put_groups(const GroupWork w, const Output out) {
    const DeviceGroup& group = w.group[blockIdx.x];
    double counts[4] = {};
    for (int i = first_pixel(); i < group.pixels; i += pixel_step()) {
        const int64_t place = group.place + i, pixel = pixel_of(w, group, i),
                      sample = pixel % w.samples - w.core_first;
        if (sample < 0 || sample >= w.core_samples) continue;
        const bool good = (w.state[place] & is_good) != 0, scored = good && group.fate == going;
        ++counts[scored ? 0 : !good ? 1 : group.fate == no_group ? 3 : 2];
        const int64_t at = pixel / w.samples * w.core_samples + sample;
        for (int t = 0; t < w.planes(); ++t)
            out.scores[t * w.lines * w.core_samples + at] =
                scored ? static_cast<float>(w.scores[t * w.places + place]) : nanf("");
        if (out.map != nullptr)
            out.map[at] = scored ? best_target(w.scores + place, w.planes(), w.places, out) : nanf("");
    }
    for (int k = 0; k < 4; ++k) {
        const double sum = block_sum(counts[k]);
        if (threadIdx.x == 0 && sum > 0) atomicAdd(out.counts + k, static_cast<unsigned long long>(sum));
    }
}

unsigned parts(int64_t n, int64_t of) { return static_cast<unsigned>((n + of - 1) / of); }

/// Returns a grid of one block of threads per `pixels` pixels of a group; the blocks loop over further
/// pixels.
dim3 pixel_grid(const GroupWork& w, int pixels) {
    constexpr unsigned most = 1024;
    return {static_cast<unsigned>(w.groups), std::clamp(parts(w.most, pixels), 1u, most)};
}

} // namespace

void launch_sort(const GroupWork& w, float* band, float* room, cudaStream_t stream) {
    sort_band<<<parts(w.places, threads), threads, 0, stream>>>(w, band, room);
    HSI_CUDA_LAUNCHED("sort_band");
    HSI_CUDA_CHECK(cudaMemcpyAsync(band, room, static_cast<size_t>(w.places) * sizeof(float),
                                   cudaMemcpyDeviceToDevice, stream));
}

void launch_look(const GroupWork& w, cudaStream_t stream) {
    look_at_groups<<<pixel_grid(w, threads), threads, 0, stream>>>(w);
    HSI_CUDA_LAUNCHED("look_at_groups");
}

void launch_statistics(const GroupWork& w, cudaStream_t stream) {
    const auto groups = static_cast<unsigned>(w.groups), bands = static_cast<unsigned>(w.bands),
               panels = parts(w.bands, block);
    find_means<<<dim3(groups, bands), threads, 0, stream>>>(w);
    HSI_CUDA_LAUNCHED("find_means");
    find_products<<<dim3(groups, panels * (panels + 1) / 2), threads, 0, stream>>>(w);
    HSI_CUDA_LAUNCHED("find_products");
    if (w.ledoit_wolf) {
        find_fourth_powers<<<pixel_grid(w, threads), threads, 0, stream>>>(w);
        HSI_CUDA_LAUNCHED("find_fourth_powers");
    }
    shrink_groups<<<groups, threads, 0, stream>>>(w);
    HSI_CUDA_LAUNCHED("shrink_groups");
    factorise_groups<<<groups, threads, 0, stream>>>(w);
    HSI_CUDA_LAUNCHED("factorise_groups");
    if (w.inverse != nullptr) {
        invert_factors<<<dim3(groups, parts(w.bands, threads)), threads, 0, stream>>>(w);
        HSI_CUDA_LAUNCHED("invert_factors");
        check_inverses<<<groups, threads, 0, stream>>>(w);
        HSI_CUDA_LAUNCHED("check_inverses");
    }
    if (w.targets == 0) return;
    find_rows<<<dim3(groups, static_cast<unsigned>(w.targets)), threads, bands * sizeof(double), stream>>>(w);
    HSI_CUDA_LAUNCHED("find_rows");
}

void launch_group_scores(const GroupWork& w, cudaStream_t stream) {
    if (w.measures) {
        find_squares<<<pixel_grid(w, block), threads, 0, stream>>>(w);
        HSI_CUDA_LAUNCHED("find_squares");
    }
    score_groups<<<pixel_grid(w, threads), threads, 0, stream>>>(w);
    HSI_CUDA_LAUNCHED("score_groups");
}

void launch_exclusion(const GroupWork& w, cudaStream_t stream) {
    exclude_greatest<<<static_cast<unsigned>(w.groups), threads, 0, stream>>>(w);
    HSI_CUDA_LAUNCHED("exclude_greatest");
}

void launch_output(const GroupWork& w, const Output& out, cudaStream_t stream) {
    put_groups<<<pixel_grid(w, threads), threads, 0, stream>>>(w, out);
    HSI_CUDA_LAUNCHED("put_groups");
}

} // namespace hsi::detect::gpu
