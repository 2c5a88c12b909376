// SPDX-License-Identifier: MIT
// hsi_cuda_gas.so: the filters on GPUs, all groups of a tile at a time. The pixels of a group are contiguous,
// in single precision. All other values are in double precision. The order of operations depends only on the
// group's own pixels. An iteration has two kernels. The first computes the filter w of every
// group. The second computes the value `a` of every pixel and the sums for the next covariance (see gas.h).
#include "core/valid_pixel.h"
#include "cuda/block_fold.cuh"
#include "cuda/column_pack.cuh"
#include "cuda/copy.h"
#include "cuda/device.h"
#include "cuda/device_buffer.h"
#include "cuda/lane_operation.h"
#include "cuda/stream.h"
#include "gas/filter_task.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace hsi::gas {
namespace {

using cuda::DeviceBuffer;
using stream::TileLimits;

constexpr int threads = 256;
constexpr int warps = threads / 32;
constexpr int panel = 32; ///< rows and columns of a covariance that a block of threads computes at a time
constexpr int solve_threads = 128; ///< a small block, so that several groups share a multiprocessor
constexpr int most_bands = 1024;   ///< limit set by the vectors in shared memory
constexpr uint8_t is_good = 1, counts_too = 2;
constexpr int count_kinds = 4; ///< counts of pixels: with a value, invalid, in groups without values, dark

/// Kernels set `state` and the members that follow it.
struct DeviceGroup {
    int first = 0, width = 1, pixels = 0; ///< first sample and width in the window, number of pixels
    int state = static_cast<int>(GroupState::filtered); ///< set by kernels, like all members below
    int counting = 0;
    double share = 0;
    double q = 0, level = 0;
    double squared_mean = 0; ///< m0'm0
    __device__ bool goes() const { return state == static_cast<int>(GroupState::filtered); }
};

struct Work {
    int64_t samples = 0, lines = 0; ///< size of the window
    const uint8_t* mask = nullptr;  ///< [line][sample]; null: all pixels count in statistics
    int bands = 0, groups = 0;
    int64_t pitch = 0; ///< stored positions per band of a group
    /// Division of a group's pixels among blocks: pixels per part, number of parts
    int part = 0, parts = 0;
    int product_part = 0, product_parts = 0; ///< the same division for the covariance
    bool mag1c = false, log = false, albedo = false, sparsity = false, ledoit_wolf = false;
    double share = 0;
    const double* k = nullptr; ///< [band]; absorption in the filter's unit
    DeviceGroup* group = nullptr;
    float* x = nullptr;          ///< [group][band][position]
    uint8_t* state = nullptr;    ///< [group][position]
    double* mean = nullptr;      ///< [group][band]; the mean m0, or 0 for constant bands
    uint8_t* constant = nullptr; ///< [group][band]
    /// [group][product part][band][band]; add_products() leaves C0 in the first part.
    double* covariance = nullptr;
    double* matrix = nullptr;          ///< [group][band][matrix_pitch()]; null if it is in shared memory
    double* t = nullptr;               ///< [group][band]
    double* w = nullptr;               ///< [group][band]
    double* sums = nullptr;            ///< [group][part][band + 2]: sums of d x, d, d^2
    double *a = nullptr, *r = nullptr; ///< [group][position]
    int64_t core_first = 0, core_samples = 0;

    // The pitch is odd, so that rows use different banks of shared memory.
    __host__ __device__ int matrix_pitch() const { return (bands + 1) | 1; }
    __device__ double* covariance_of(int64_t g, int p) const {
        return covariance + (g * product_parts + p) * bands * bands;
    }
    __device__ double* sums_of(int64_t g, int p) const { return sums + (g * parts + p) * (bands + 2); }
    __device__ const float* band_of(int64_t g, int b) const { return x + (g * bands + b) * pitch; }
    /// Returns the value that statistics use.
    __device__ double value(const float* at) const {
        return log ? ::log(static_cast<double>(*at)) : static_cast<double>(*at);
    }
};

/// The outputs and the parameters that they need.
struct Results {
    float* out = nullptr; ///< [output][line][core sample]
    Output outputs[4] = {};
    int count = 0;
    const double* noise = nullptr; ///< [band][a, b, d]
    double scale = 1;
    unsigned long long* counts = nullptr; ///< [count_kinds]
};

/// Returns the sum over the threads of a warp. Only the first thread gets the sum.
__device__ double warp_sum(double v) {
    for (int away = 16; away > 0; away /= 2)
        v += __shfl_down_sync(~0u, v, away);
    return v;
}

/// Finds valid pixels, and pixels that count in the statistics.
__global__ void __launch_bounds__(threads) look_at_pixels(const Work w) {
    const int64_t g = blockIdx.x;
    DeviceGroup& group = w.group[g];
    const int from = static_cast<int>(blockIdx.y) * w.part, to = min(group.pixels, from + w.part);
    double counting = 0;
    for (int i = from + static_cast<int>(threadIdx.x); i < to; i += threads) {
        bool good = is_valid_pixel(w.band_of(g, 0) + i, w.bands, w.pitch);
        for (int b = 0; b < w.bands && good && w.log; ++b)
            good = w.band_of(g, b)[i] > 0;
        const int64_t at = static_cast<int64_t>(i / group.width) * w.samples + group.first + i % group.width;
        const bool counts = good && (w.mask == nullptr || w.mask[at] != 0);
        w.state[g * w.pitch + i] = static_cast<uint8_t>((good ? is_good : 0) | (counts ? counts_too : 0));
        counting += counts;
    }
    counting = cuda::block_sum<threads>(counting);
    if (threadIdx.x == 0) atomicAdd(&group.counting, static_cast<int>(counting));
}

/// Computes the mean of a band, and whether the band is constant.
__global__ void __launch_bounds__(threads) find_means(const Work w) {
    const int64_t g = blockIdx.x;
    const int b = static_cast<int>(blockIdx.y);
    const DeviceGroup& group = w.group[g];
    const float* const x = w.band_of(g, b);
    const uint8_t* const state = w.state + g * w.pitch;
    double sum = 0, low = INFINITY, high = -INFINITY;
    for (int i = static_cast<int>(threadIdx.x); i < group.pixels; i += threads)
        if (state[i] & counts_too) {
            sum += w.value(x + i);
            low = fmin(low, static_cast<double>(x[i]));
            high = fmax(high, static_cast<double>(x[i]));
        }
    sum = cuda::block_sum<threads>(sum);
    low = cuda::block_least<threads>(low);
    high = -cuda::block_least<threads>(-high);
    if (threadIdx.x != 0) return;
    const bool constant = !(low < high);
    w.constant[g * w.bands + b] = constant;
    w.mean[g * w.bands + b] = constant ? 0 : sum / group.counting;
}

/// Sums the products of centred values for one panel of the upper triangle, over one part of the pixels.
__global__ void __launch_bounds__(threads) find_products(const Work w) {
    __shared__ double row[panel][panel + 1], column[panel][panel + 1];
    int c0 = 0, r0 = static_cast<int>(blockIdx.y); // Panels are numbered column by column.
    while (r0 > c0) {
        r0 -= c0 + 1;
        ++c0;
    }
    r0 *= panel;
    c0 *= panel;
    const int64_t g = blockIdx.x;
    const int p = static_cast<int>(blockIdx.z), first = p * w.product_part,
              end = min(w.group[g].pixels, first + w.product_part);
    const uint8_t* const state = w.state + g * w.pitch;
    const double* const mean = w.mean + g * w.bands;
    const int lane = static_cast<int>(threadIdx.x) % panel, warp = static_cast<int>(threadIdx.x) / panel;
    const int tx = static_cast<int>(threadIdx.x) % 16, ty = static_cast<int>(threadIdx.x) / 16;
    double sum[2][2] = {};
    for (int from = first; from < end; from += panel) {
        const int i = from + lane;
        const bool counts = i < end && (state[i] & counts_too) != 0;
        __syncthreads();
        for (int k = warp; k < panel; k += warps) {
            const int r = r0 + k, c = c0 + k;
            row[lane][k] = counts && r < w.bands ? w.value(w.band_of(g, r) + i) - mean[r] : 0.0;
            column[lane][k] = counts && c < w.bands ? w.value(w.band_of(g, c) + i) - mean[c] : 0.0;
        }
        __syncthreads();
#pragma unroll 8
        for (int k = 0; k < panel; ++k) {
            const double u0 = row[k][ty], u1 = row[k][ty + 16], v0 = column[k][tx], v1 = column[k][tx + 16];
            sum[0][0] = fma(u0, v0, sum[0][0]);
            sum[0][1] = fma(u0, v1, sum[0][1]);
            sum[1][0] = fma(u1, v0, sum[1][0]);
            sum[1][1] = fma(u1, v1, sum[1][1]);
        }
    }
    double* const to = w.covariance_of(g, p);
    for (int y = 0; y < 2; ++y)
        for (int x = 0; x < 2; ++x) {
            const int r = r0 + ty + 16 * y, c = c0 + tx + 16 * x;
            if (c < w.bands && r <= c) to[static_cast<int64_t>(r) * w.bands + c] = sum[y][x];
        }
}

/// Adds the sums of all other parts to the sums of the first part.
__global__ void __launch_bounds__(threads) add_products(const Work w) {
    const int64_t g = blockIdx.x, all = static_cast<int64_t>(w.bands) * w.bands;
    double* const to = w.covariance_of(g, 0);
    for (int64_t i = static_cast<int64_t>(blockIdx.y) * threads + threadIdx.x; i < all;
         i += static_cast<int64_t>(gridDim.y) * threads) {
        if (i / w.bands > i % w.bands) continue;
        double sum = to[i];
        for (int p = 1; p < w.product_parts; ++p)
            sum += w.covariance_of(g, p)[i];
        to[i] = sum;
    }
}

/// Computes the sum of |z|^4 over a part of the pixels, and stores it in the first sum of the part. z is
/// scaled to unit variance in each band.
__global__ void __launch_bounds__(threads) find_fourth_powers(const Work w) {
    const int64_t g = blockIdx.x;
    const DeviceGroup& group = w.group[g];
    const int part = static_cast<int>(blockIdx.y), from = part * w.part,
              to = min(group.pixels, from + w.part);
    const double* const products = w.covariance_of(g, 0);
    double fourth = 0;
    for (int i = from + static_cast<int>(threadIdx.x); i < to; i += threads) {
        if ((w.state[g * w.pitch + i] & counts_too) == 0) continue;
        double squared = 0;
        for (int b = 0; b < w.bands; ++b) {
            const double own = products[static_cast<int64_t>(b) * (w.bands + 1)];
            if (w.constant[g * w.bands + b] != 0 || !(own > 0)) continue;
            const double z = w.value(w.band_of(g, b) + i) - w.mean[g * w.bands + b];
            squared += group.counting / own * z * z;
        }
        fourth += squared * squared;
    }
    fourth = cuda::block_sum<threads>(fourth);
    if (threadIdx.x == 0) *w.sums_of(g, part) = fourth;
}

/// Returns the shrinkage of a group as detect::BandShrinkage does, from the sums of products and of fourth
/// powers.
__device__ double ledoit_wolf_share(const Work& w, int64_t g, double count) {
    const double* const products = w.covariance_of(g, 0);
    const auto weight = [&](int b) {
        const double own = products[static_cast<int64_t>(b) * (w.bands + 1)];
        return w.constant[g * w.bands + b] == 0 && own > 0 ? count / own : 0.0;
    };
    double off = 0, fourth = 0, used = 0;
    for (int r = static_cast<int>(threadIdx.x) / 32; r < w.bands; r += warps) {
        const double own = weight(r);
        if (threadIdx.x % 32 == 0) used += own > 0;
        for (int c = r + 1 + static_cast<int>(threadIdx.x) % 32; c < w.bands; c += 32) {
            const double v = products[static_cast<int64_t>(r) * w.bands + c];
            off += v * v * own * weight(c);
        }
    }
    for (int p = static_cast<int>(threadIdx.x); p < w.parts; p += threads)
        fourth += *w.sums_of(g, p);
    used = cuda::block_sum<threads>(used);
    off = 2 * cuda::block_sum<threads>(off) / (count * count);
    fourth = cuda::block_sum<threads>(fourth);
    if (!(off > 0)) return 1;
    const double delta = off / used, beta = (fourth / count - (off + used)) / (used * count);
    return fmin(fmax(beta, 0.0), delta) / delta;
}

/// Decides which groups have values, and computes C0 and V.
__global__ void __launch_bounds__(threads) settle_groups(const Work w) {
    const int64_t g = blockIdx.x;
    DeviceGroup& group = w.group[g];
    double varying = 0, squared = 0;
    for (int b = static_cast<int>(threadIdx.x); b < w.bands; b += threads) {
        varying += w.constant[g * w.bands + b] == 0;
        squared += w.mean[g * w.bands + b] * w.mean[g * w.bands + b];
    }
    varying = cuda::block_sum<threads>(varying);
    squared = cuda::block_sum<threads>(squared);
    const double count = group.counting;
    const bool few = count < 2 || (varying > 0 && count <= varying && !w.ledoit_wolf && w.share == 0);
    const auto state = few           ? GroupState::few_pixels
                       : varying > 0 ? GroupState::filtered
                                     : GroupState::singular;
    double share = 0;
    if (state == GroupState::filtered) share = w.ledoit_wolf ? ledoit_wolf_share(w, g, count) : w.share;
    __syncthreads(); // All threads must have read the sums before they are overwritten.
    if (threadIdx.x == 0) {
        group.state = static_cast<int>(state);
        group.share = share;
        group.squared_mean = squared;
    }
    double* const c = w.covariance_of(g, 0);
    for (int i = static_cast<int>(threadIdx.x); i < w.bands * w.bands; i += threads)
        if (i / w.bands <= i % w.bands) c[i] /= count;
}

/// Replaces M by the upper triangular matrix R with R'R = M. Replaces t, in the column after M, by R'^-1 t.
/// Sets `inverse` to the reciprocals of R's diagonal. Returns false if a pivot is too small.
__device__ bool factorise(double* m, int pitch, int n, double* diagonal, double* inverse) {
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    for (int k = 0; k < n; ++k) {
        __syncthreads();
        const double pivot = m[k * pitch + k];
        // The condition also holds for NaN. All threads see the same value.
        if (!(pivot > least_pivot * diagonal[k])) return false;
        const double over = 1 / sqrt(pivot);
        for (int j = k + 1 + static_cast<int>(threadIdx.x); j <= n; j += solve_threads)
            m[k * pitch + j] *= over;
        if (threadIdx.x == 0) inverse[k] = over;
        __syncthreads();
        for (int i = k + 1 + warp; i < n; i += solve_threads / 32) {
            const double left = m[k * pitch + i];
            for (int j = i + lane; j <= n; j += 32)
                m[i * pitch + j] -= left * m[k * pitch + j];
        }
    }
    __syncthreads();
    return true;
}

/// Computes the mean and the covariance of z = x - d t of a group from the sums of the last sweep, and then
/// w, q and w'm. `before` is true if a sweep has been done.
__global__ void __launch_bounds__(solve_threads) solve_groups(const Work w, bool before) {
    extern __shared__ double room[];
    const int64_t g = blockIdx.x;
    DeviceGroup& group = w.group[g];
    if (!group.goes()) return;
    const int n = w.bands, pitch = w.matrix_pitch(), thread = static_cast<int>(threadIdx.x);
    double *const t = room, *const c = t + n, *const mean = c + n + 2, *const diagonal = mean + n,
                  *const inverse = diagonal + n;
    double* const m = w.matrix != nullptr ? w.matrix + g * n * pitch : inverse + n;
    const double count = group.counting;
    for (int b = thread; b < n + 2; b += solve_threads) {
        double sum = 0;
        for (int p = 0; before && p < w.parts; ++p)
            sum += w.sums_of(g, p)[b];
        c[b] = sum;
        if (b < n) t[b] = before ? w.t[g * n + b] : 0.0;
    }
    __syncthreads();
    const double all = c[n], mean_d = all / count, squared_d = c[n + 1] / count - mean_d * mean_d;
    for (int b = thread; b < n; b += solve_threads) {
        const double first = w.mean[g * n + b];
        mean[b] = first - mean_d * t[b];
        c[b] = (c[b] - all * first) / count;
        const double next = w.constant[g * n + b] != 0 ? 0.0 : w.log ? w.k[b] : w.k[b] * mean[b];
        w.t[g * n + b] = next;
        m[b * pitch + n] = next;
    }
    __syncthreads();
    const double* const c0 = w.covariance_of(g, 0);
    const uint8_t* const constant = w.constant + g * n;
    for (int i = thread / 32; i < n; i += solve_threads / 32)
        for (int j = i + thread % 32; j < n; j += 32) {
            double v =
                c0[static_cast<int64_t>(i) * n + j] - c[i] * t[j] - t[i] * c[j] + squared_d * t[i] * t[j];
            if (constant[i] != 0 || constant[j] != 0) v = i == j;
            if (i == j)
                diagonal[i] = v;
            else
                v *= 1 - group.share;
            m[i * pitch + j] = v;
        }
    __syncthreads();
    if (!factorise(m, pitch, n, diagonal, inverse)) {
        if (thread == 0) group.state = static_cast<int>(GroupState::singular);
        return;
    }
    if (thread >= 32) return;
    double squared = 0, level = 0;
    for (int b = thread; b < n; b += 32)
        squared += m[b * pitch + n] * m[b * pitch + n];
    const double q = __shfl_sync(~0u, warp_sum(squared), 0);
    for (int a = n - 1; a >= 0; --a) { // solves R w = R'^-1 t
        __syncwarp();
        const double v = m[a * pitch + n] * inverse[a];
        for (int b = thread; b < a; b += 32)
            m[b * pitch + n] -= m[b * pitch + a] * v;
        if (thread == 0) w.w[g * n + a] = v;
        level += thread == 0 ? v * mean[a] : 0.0;
    }
    if (thread != 0) return;
    group.q = q;
    group.level = level;
    if (!isfinite(q) || (!before && !(q > 0))) group.state = static_cast<int>(GroupState::singular);
}

/// Computes the albedo x'm0/(m0'm0) of each pixel, or 1 if albedos are not used.
__global__ void __launch_bounds__(threads) find_albedos(const Work w) {
    const int64_t g = blockIdx.x;
    const DeviceGroup& group = w.group[g];
    if (!group.goes()) return;
    const int from = static_cast<int>(blockIdx.y) * w.part, to = min(group.pixels, from + w.part);
    for (int i = from + static_cast<int>(threadIdx.x); i < to; i += threads) {
        double sum = 0;
        for (int b = 0; b < w.bands && w.albedo; ++b)
            sum = fma(w.mean[g * w.bands + b], static_cast<double>(w.band_of(g, b)[i]), sum);
        w.r[g * w.pitch + i] = w.albedo ? sum / group.squared_mean : 1.0;
        w.a[g * w.pitch + i] = 0;
    }
}

/// Computes a of each pixel. In all rounds but the last, also sums d x, d and d^2 with d = r a.
__global__ void __launch_bounds__(threads) sweep(const Work w, int round, bool last) {
    extern __shared__ double room[];
    const int64_t g = blockIdx.x;
    const DeviceGroup& group = w.group[g];
    if (!group.goes()) return;
    const int n = w.bands, thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
    double *const weights = room, *const sums = weights + n, *const d = sums + n + 2;
    for (int b = thread; b < n + 2; b += threads) {
        if (b < n) weights[b] = w.w[g * n + b];
        sums[b] = 0;
    }
    const double q = round > 0 ? fmax(group.q, 1.0) : group.q;
    const int part = static_cast<int>(blockIdx.y), from = part * w.part,
              to = min(group.pixels, from + w.part);
    for (int first = from; first < to; first += threads) {
        const int i = first + thread;
        const uint8_t state = i < to ? w.state[g * w.pitch + i] : 0;
        double part_of_sums = 0;
        __syncthreads(); // The weights and the sums of the previous chunk must be complete.
        if (state & is_good) {
            const float* x = w.band_of(g, 0) + i;
            double sum = 0;
            if (w.log)
                for (int b = 0; b < n; ++b)
                    sum = fma(weights[b], w.value(x + b * w.pitch), sum);
            else
#pragma unroll 8
                for (int b = 0; b < n; ++b)
                    sum = fma(weights[b], static_cast<double>(x[b * w.pitch]), sum);
            double& a = w.a[g * w.pitch + i];
            if (w.mag1c) {
                const double r = w.r[g * w.pitch + i], inverse = r > 0 ? 1 / r : 0.0,
                             penalty = round > 0 && w.sparsity ? inverse / (a + least_amount) : 0.0,
                             v = fmax(0.0, (sum - group.level - penalty) * inverse / q);
                a = v;
                if (state & counts_too) part_of_sums = r * v;
            } else {
                a = (sum - group.level) / q;
            }
        }
        if (last) continue;
        d[thread] = part_of_sums;
        __syncthreads();
        for (int b = warp; b < n + 2; b += warps) {
            double sum = 0;
#pragma unroll
            for (int k = 0; k < threads; k += 32) {
                const double v = d[k + lane];
                if (v == 0) continue; // A pixel that does not count in statistics may be NaN.
                sum = fma(v,
                          b < n    ? static_cast<double>(w.band_of(g, b)[first + k + lane])
                          : b == n ? 1
                                   : v,
                          sum);
            }
            sum = warp_sum(sum);
            if (lane == 0) sums[b] += sum;
        }
    }
    if (last) return;
    __syncthreads();
    for (int b = thread; b < n + 2; b += threads)
        w.sums_of(g, part)[b] = sums[b];
}

/// Returns w'(k x), or w'k for the lognormal method.
__device__ double response_of(const Work& w, int64_t g, int i) {
    double sum = 0;
    for (int b = 0; b < w.bands; ++b)
        sum += w.w[g * w.bands + b] * w.k[b] * (w.log ? 1 : static_cast<double>(w.band_of(g, b)[i]));
    return sum; // For mag1c, k is K = 1e5 k.
}

/// Returns the standard deviation of w'x due to the sensor's noise; for the lognormal method, of w'ln x.
__device__ double noise_of(const Work& w, const Results& to, int64_t g, int i) {
    double sum = 0;
    for (int b = 0; b < w.bands; ++b) {
        const double x = w.band_of(g, b)[i], level = x * to.scale + to.noise[3 * b + 1];
        double s =
            fabs(to.noise[3 * b] * sqrt(level > 0 ? level : least_radiance) + to.noise[3 * b + 2]) / to.scale;
        if (w.log) s /= x;
        const double one = w.w[g * w.bands + b] * s;
        sum += one * one;
    }
    return sqrt(sum);
}

__device__ double result_of(const Work& w, const Results& to, Output output, int64_t g, int i) {
    const DeviceGroup& group = w.group[g];
    const double unit = w.mag1c ? mag1c_unit : 1.0, r = w.mag1c ? w.r[g * w.pitch + i] : 1.0;
    switch (output) {
    case Output::enhancement:
        return unit * w.a[g * w.pitch + i];
    case Output::albedo:
        return r;
    case Output::sensitivity:
        return w.log ? 1.0 : fabs(response_of(w, g, i)) / (r * fabs(group.q));
    case Output::uncertainty:
        break;
    }
    const double v = unit * noise_of(w, to, g, i) / fabs(response_of(w, g, i));
    return isfinite(v) ? v : nan("");
}

/// Writes the results of a group's pixels to the core of the tile.
__global__ void __launch_bounds__(threads) put_results(const Work w, const Results to) {
    const int64_t g = blockIdx.x;
    const DeviceGroup& group = w.group[g];
    const int from = static_cast<int>(blockIdx.y) * w.part, end = min(group.pixels, from + w.part);
    double counts[count_kinds] = {};
    for (int i = from + static_cast<int>(threadIdx.x); i < end; i += threads) {
        const int64_t line = i / group.width, sample = group.first + i % group.width - w.core_first;
        if (sample < 0 || sample >= w.core_samples) continue;
        const bool good = (w.state[g * w.pitch + i] & is_good) != 0, filtered = good && group.goes();
        ++counts[filtered ? 0 : good ? 2 : 1];
        const bool dark = filtered && w.mag1c && !(w.r[g * w.pitch + i] > 0);
        counts[3] += dark;
        for (int k = 0; k < to.count; ++k)
            to.out[(k * w.lines + line) * w.core_samples + sample] =
                filtered && !dark ? static_cast<float>(result_of(w, to, to.outputs[k], g, i)) : nanf("");
    }
    for (int k = 0; k < count_kinds; ++k) {
        const double sum = cuda::block_sum<threads>(counts[k]);
        if (threadIdx.x == 0 && sum > 0) atomicAdd(to.counts + k, static_cast<unsigned long long>(sum));
    }
}

int64_t parts_of(int64_t n, int64_t one) { return (n + one - 1) / one; }
unsigned blocks_of(int64_t n, int64_t one) { return static_cast<unsigned>(parts_of(n, one)); }

/// The sizes of a worker's buffers.
struct Sizes {
    Sizes(const FilterTask& task, int64_t window_samples)
        : bands(static_cast<size_t>(task.scene.bands)),
          groups(static_cast<size_t>(
              std::min<int64_t>(window_samples, window_samples / task.columns.width + 2))),
          pitch(parts_of(task.pixels(), 32) * 32) {
        constexpr int64_t most_parts = 1024, most_product_parts = 64, least_product_part = 16384;
        part = static_cast<int>(parts_of(parts_of(pitch, most_parts), threads) * threads);
        parts = static_cast<int>(parts_of(pitch, part));
        product_part = static_cast<int>(
            std::max(least_product_part, parts_of(parts_of(pitch, most_product_parts), panel) * panel));
        product_parts = static_cast<int>(parts_of(pitch, product_part));
    }
    size_t places() const { return groups * static_cast<size_t>(pitch); }
    size_t matrix() const { return bands * ((bands + 1) | 1); }
    size_t sums() const { return groups * static_cast<size_t>(parts) * (bands + 2); }
    size_t products() const { return groups * static_cast<size_t>(product_parts) * bands * bands; }
    /// Doubles per group that solve_groups() keeps in shared memory.
    size_t vectors() const { return 5 * bands + 2; }
    uint64_t bytes() const {
        return places() * (4 * bands + 1 + 16) +
               8 * (groups * (matrix() + 3 * bands) + sums() + products() + 4 * bands) + groups * bands +
               groups * sizeof(DeviceGroup);
    }
    const size_t bands, groups;
    const int64_t pitch;
    int part, parts, product_part, product_parts;
};

/// Filters the groups of a worker's tiles.
class DeviceLane final : public FilterLane {
  public:
    /// Precondition: `ordinal` is the current device.
    DeviceLane(int ordinal, const FilterTask& task, const TileLimits& l)
        : m_ordinal(ordinal), m_task(task), m_size(task, l.window_samples),
          m_input(m_size.bands * window_pixels(l)),
          m_output(task.options.outputs.size() * static_cast<size_t>(l.core_samples * l.core_lines)),
          m_places(static_cast<size_t>(l.window_samples)), m_mask(task.mask ? window_pixels(l) : 0),
          m_host_mask(m_mask.size()), m_group(m_size.groups), m_x(m_size.places() * m_size.bands),
          m_state(m_size.places()), m_mean(m_size.groups * m_size.bands), m_constant(m_mean.size()),
          m_covariance(m_size.products()), m_t(m_mean.size()), m_w(m_mean.size()), m_sums(m_size.sums()),
          m_a(m_size.places()), m_r(task.is_mag1c() ? m_size.places() : 0), m_k(m_size.bands),
          m_noise(task.options.noise.size() * 3), m_counts(count_kinds) {
        int most_shared = 0;
        HSI_CUDA_CHECK(
            cudaDeviceGetAttribute(&most_shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, ordinal));
        m_shared = 8 * (m_size.vectors() + m_size.matrix());
        if (m_shared > static_cast<size_t>(most_shared)) {
            m_shared = 8 * m_size.vectors();
            m_matrix = DeviceBuffer<double>(m_size.groups * m_size.matrix());
        }
        HSI_CUDA_CHECK(
            cudaFuncSetAttribute(solve_groups, cudaFuncAttributeMaxDynamicSharedMemorySize, most_shared));
        std::vector<double> k, noise;
        for (const double v : task.options.absorption)
            k.push_back((task.is_mag1c() ? mag1c_unit : 1) * v);
        for (const auto& band : task.options.noise)
            noise.insert(noise.end(), {band.a, band.b, band.d});
        m_k.upload(k.data(), k.size(), m_stream.get());
        if (!noise.empty()) m_noise.upload(noise.data(), noise.size(), m_stream.get());
        m_stream.synchronize();
    }
    static uint64_t device_bytes(const FilterTask& task, const TileLimits& l) {
        return Sizes(task, l.window_samples).bytes() +
               window_pixels(l) * (4 * static_cast<uint64_t>(task.scene.bands) + (task.mask ? 1 : 0)) +
               4 * task.options.outputs.size() * static_cast<uint64_t>(l.core_samples * l.core_lines) +
               static_cast<uint64_t>(l.window_samples) * sizeof(cuda::SamplePlace) + 8 * count_kinds;
    }

    void process(const Tile& tile, const CubeView<float>& in,
                 const std::vector<CubeView<float>>& out) override {
        const cuda::DeviceGuard guard(m_ordinal);
        const auto stream = m_stream.get();
        const float* const raw = m_input.packed(in, stream);
        Work w = work_of(tile, in);
        auto groups = place_groups(tile, in, w, stream);
        take_mask(tile, in, w, stream);
        m_counts.clear(stream);
        m_clock.start(stream);
        cuda::pack_columns(raw, w.bands, in.lines, in.samples, m_places.data(), w.pitch, w.x, stream);
        filter(w, stream);
        launch_results(w, m_output.begin(out[0]), stream);
        m_clock.stop(stream);
        m_output.end(stream);
        std::array<unsigned long long, count_kinds> counts{};
        m_counts.download(counts.data(), counts.size(), stream);
        m_group.download(groups.data(), groups.size(), stream);
        m_stream.synchronize();
        kernel_seconds += m_clock.seconds();
        valid += static_cast<int64_t>(counts[0]);
        invalid += static_cast<int64_t>(counts[1]);
        in_bad_groups += static_cast<int64_t>(counts[2]);
        dark += static_cast<int64_t>(counts[3]);
        const int64_t first = m_task.columns.group(tile.core.x);
        for (size_t g = 0; g < groups.size(); ++g) {
            const int64_t group = first + static_cast<int64_t>(g);
            // The record of this group comes from the previous tile.
            if (m_task.first_sample(group) < tile.core.x) continue;
            found.push_back(
                {group - m_task.columns.group(0),
                 {static_cast<GroupState>(groups[g].state), groups[g].counting, groups[g].share}});
        }
        copy_kept(m_task, out);
    }

    double kernel_seconds = 0;

  private:
    static size_t window_pixels(const TileLimits& l) {
        return static_cast<size_t>(l.window_samples * l.window_lines);
    }

    Work work_of(const Tile& tile, const CubeView<float>& in) const {
        const auto& o = m_task.options;
        Work w;
        w.samples = in.samples;
        w.lines = in.lines;
        w.bands = m_task.scene.bands;
        w.pitch = m_size.pitch;
        w.part = m_size.part;
        w.parts = m_size.parts;
        w.product_part = m_size.product_part;
        w.product_parts = m_size.product_parts;
        w.mag1c = m_task.is_mag1c();
        w.log = m_task.is_log();
        w.albedo = o.albedo;
        w.sparsity = o.sparsity;
        w.ledoit_wolf = o.ledoit_wolf;
        w.share = o.shrinkage;
        w.k = m_k.data();
        w.group = m_group.data();
        w.x = m_x.data();
        w.state = m_state.data();
        w.mean = m_mean.data();
        w.constant = m_constant.data();
        w.covariance = m_covariance.data();
        w.matrix = m_matrix.data();
        w.t = m_t.data();
        w.w = m_w.data();
        w.sums = m_sums.data();
        w.a = m_a.data();
        w.r = m_r.data();
        w.core_first = tile.core.x - tile.window.x;
        w.core_samples = tile.core.w;
        return w;
    }

    /// Uploads the groups of a tile and the positions of each sample's pixels. Returns the groups.
    std::vector<DeviceGroup> place_groups(const Tile& tile, const CubeView<float>& in, Work& w,
                                          cudaStream_t stream) {
        const auto& c = m_task.columns;
        const int64_t first = c.group(tile.core.x), end = c.group(tile.core.right() - 1) + 1;
        std::vector<DeviceGroup> groups(static_cast<size_t>(end - first));
        std::vector<cuda::SamplePlace> places(static_cast<size_t>(in.samples));
        for (size_t g = 0; g < groups.size(); ++g) {
            const int64_t group = first + static_cast<int64_t>(g), x = m_task.first_sample(group),
                          width = m_task.end_sample(group) - x,
                          values = static_cast<int64_t>(g) * w.bands * w.pitch;
            groups[g].first = static_cast<int>(x - tile.window.x);
            groups[g].width = static_cast<int>(width);
            groups[g].pixels = static_cast<int>(width * in.lines);
            for (int64_t s = 0; s < width; ++s)
                places[static_cast<size_t>(x - tile.window.x + s)] = {values + s, groups[g].width};
        }
        w.groups = static_cast<int>(groups.size());
        m_group.upload(groups.data(), groups.size(), stream);
        m_places.upload(places.data(), places.size(), stream);
        return groups;
    }

    void take_mask(const Tile& tile, const CubeView<float>& in, Work& w, cudaStream_t stream) {
        if (m_task.mask == nullptr) return;
        for (int64_t y = 0; y < in.lines; ++y)
            for (int64_t x = 0; x < in.samples; ++x)
                m_host_mask[static_cast<size_t>(y * in.samples + x)] =
                    m_task.mask->at(tile.window.y + y, tile.window.x + x);
        m_mask.upload(m_host_mask.data(), static_cast<size_t>(in.lines * in.samples), stream);
        w.mask = m_mask.data();
    }

    void filter(const Work& w, cudaStream_t stream) const {
        const auto groups = static_cast<unsigned>(w.groups), bands = static_cast<unsigned>(w.bands),
                   parts = static_cast<unsigned>(w.parts), panels = blocks_of(w.bands, panel),
                   product_parts = static_cast<unsigned>(w.product_parts);
        look_at_pixels<<<dim3(groups, parts), threads, 0, stream>>>(w);
        HSI_CUDA_LAUNCHED("look_at_pixels");
        find_means<<<dim3(groups, bands), threads, 0, stream>>>(w);
        HSI_CUDA_LAUNCHED("find_means");
        find_products<<<dim3(groups, panels * (panels + 1) / 2, product_parts), threads, 0, stream>>>(w);
        HSI_CUDA_LAUNCHED("find_products");
        if (product_parts > 1) {
            add_products<<<dim3(groups, std::min(64u, blocks_of(w.bands * w.bands, threads))), threads, 0,
                           stream>>>(w);
            HSI_CUDA_LAUNCHED("add_products");
        }
        if (w.ledoit_wolf) {
            find_fourth_powers<<<dim3(groups, parts), threads, 0, stream>>>(w);
            HSI_CUDA_LAUNCHED("find_fourth_powers");
        }
        settle_groups<<<groups, threads, 0, stream>>>(w);
        HSI_CUDA_LAUNCHED("settle_groups");
        if (w.mag1c) {
            find_albedos<<<dim3(groups, parts), threads, 0, stream>>>(w);
            HSI_CUDA_LAUNCHED("find_albedos");
        }
        const int rounds = w.mag1c ? m_task.options.iterations : 0;
        for (int round = 0; round <= rounds; ++round) {
            solve_groups<<<groups, solve_threads, m_shared, stream>>>(w, round > 0);
            HSI_CUDA_LAUNCHED("solve_groups");
            sweep<<<dim3(groups, parts), threads, 8 * (2 * m_size.bands + 2 + threads), stream>>>(
                w, round, round == rounds);
            HSI_CUDA_LAUNCHED("sweep");
        }
    }

    void launch_results(const Work& w, float* out, cudaStream_t stream) const {
        Results to;
        to.out = out;
        to.count = static_cast<int>(m_task.options.outputs.size());
        std::copy(m_task.options.outputs.begin(), m_task.options.outputs.end(), to.outputs);
        to.noise = m_noise.data();
        to.scale = m_task.options.radiance_scale;
        to.counts = m_counts.data();
        put_results<<<dim3(static_cast<unsigned>(w.groups), static_cast<unsigned>(w.parts)), threads, 0,
                      stream>>>(w, to);
        HSI_CUDA_LAUNCHED("put_results");
    }

    const int m_ordinal;
    const FilterTask& m_task;
    const Sizes m_size;
    cuda::Stream m_stream;
    cuda::KernelClock m_clock;
    cuda::TileInput m_input;
    cuda::TileOutput m_output;
    DeviceBuffer<cuda::SamplePlace> m_places;
    DeviceBuffer<uint8_t> m_mask;
    std::vector<uint8_t> m_host_mask;
    DeviceBuffer<DeviceGroup> m_group;
    DeviceBuffer<float> m_x;
    DeviceBuffer<uint8_t> m_state;
    DeviceBuffer<double> m_mean;
    DeviceBuffer<uint8_t> m_constant;
    DeviceBuffer<double> m_covariance, m_t, m_w, m_sums, m_a, m_r, m_k, m_noise, m_matrix;
    DeviceBuffer<unsigned long long> m_counts;
    size_t m_shared = 0; ///< bytes of shared memory of solve_groups()
};

class CudaFilter final : public cuda::LaneOperation<ColumnFilter> {
  public:
    CudaFilter(std::vector<CudaDevice> devices, FilterTask task, double& kernel_seconds)
        : LaneOperation(std::move(devices), std::move(task)), m_kernel_seconds(kernel_seconds) {}
    uint64_t preferred_bytes() const override { return uint64_t{64} << 20; }
    uint64_t scratch_bytes(const TileLimits& l) const override {
        return task().mask ? static_cast<uint64_t>(l.window_samples * l.window_lines) : 0;
    }
    uint64_t device_bytes(const TileLimits& l) const override { return DeviceLane::device_bytes(task(), l); }
    void stop(stream::Worker& worker) override {
        ColumnFilter::stop(worker);
        m_kernel_seconds += static_cast<const DeviceLane&>(worker).kernel_seconds;
    }

  private:
    std::unique_ptr<stream::Worker> make_lane(const cuda::LaneDevice& on, const TileLimits& l) override {
        return std::make_unique<DeviceLane>(on.ordinal, task(), l);
    }
    double& m_kernel_seconds;
};

class CudaBackend final : public cuda::TimedBackend<Backend> {
  public:
    using TimedBackend::TimedBackend;
    std::unique_ptr<Filter> make_filter(const stream::CubeShape& scene, const stream::Columns& columns,
                                        const FilterOptions& options,
                                        const stream::PixelMask* mask) override {
        if (scene.bands > most_bands) return Backend::make_filter(scene, columns, options, mask);
        return std::make_unique<CudaFilter>(m_devices, make_task(scene, columns, options, mask),
                                            m_kernel_seconds);
    }
};

} // namespace
} // namespace hsi::gas

extern "C" __attribute__((visibility("default"))) hsi::gas::Backend*
hsi_cuda_gas(const std::vector<hsi::CudaDevice>& devices) {
    return new hsi::gas::CudaBackend(devices);
}
