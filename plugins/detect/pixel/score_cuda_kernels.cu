// SPDX-License-Identifier: MIT
// Scores of pixels, mostly one thread per pixel: quantities of the pixel alone, the quadratic form through
// the inverse factor, the products with the targets' rows, and the best target.
#include "core/valid_pixel.h"
#include "cuda/check.h"
#include "detect/pixel/score_cuda_kernels.cuh"

namespace hsi::detect::gpu {
namespace {

constexpr int threads = 128;
constexpr int parts = 8; ///< warps that share the rows of a quadratic form

__device__ int thread_pixel() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }

/// Returns the value of a pixel in the r-th used band.
__device__ double value(const ScoreWork& w, int p, int r) {
    return static_cast<double>(
        w.raw[static_cast<size_t>(w.used[r]) * static_cast<size_t>(w.pixels) + static_cast<size_t>(p)]);
}

/// Finds valid pixels, and computes their lengths (sam) or their greatest value, sum and entropy (sid).
__global__ void look_kernel(ScoreWork w) {
    const int p = thread_pixel();
    if (p >= w.pixels) return;
    bool valid = is_valid_pixel(w.raw + p, w.bands, w.pixels);
    if (w.kind == Kind::sam) {
        double squared = 0;
        for (int r = 0; r < w.used_count; ++r) {
            const double v = value(w, p, r);
            squared = fma(v, v, squared);
        }
        w.squared[p] = squared;
    }
    if (w.kind == Kind::sid) {
        double greatest = value(w, p, 0);
        for (int r = 1; r < w.used_count; ++r)
            greatest = fmax(greatest, value(w, p, r));
        const double least = w.least_part * greatest;
        double sum = 0, entropy = 0;
        valid = valid && greatest > 0;
        for (int r = 0; valid && r < w.used_count; ++r) {
            const double v = fmax(least, value(w, p, r));
            sum += v;
            entropy = fma(v, log(v), entropy);
        }
        w.greatest[p] = greatest;
        w.sum[p] = sum;
        w.entropy[p] = entropy;
    }
    w.valid[p] = valid;
}

/// Computes squared = |L^-1 (x - m)|^2 of 32 pixels per block. Each warp takes every eighth panel of rows;
/// rows end at the diagonal.
__global__ void __launch_bounds__(32 * parts) quadratic_kernel(ScoreWork w) {
    __shared__ double squares[parts][32];
    const int lane = static_cast<int>(threadIdx.x) % 32, part = static_cast<int>(threadIdx.x) / 32;
    const int pixel = static_cast<int>(blockIdx.x) * 32 + lane, p = min(pixel, w.pixels - 1);
    const size_t panel = static_cast<size_t>(w.used_count) * panel_rows / 2;
    double squared = 0;
    for (int first = part * panel_rows; first < w.used_count; first += parts * panel_rows) {
        const auto* __restrict__ const rows =
            reinterpret_cast<const double2*>(w.factor) + static_cast<size_t>(first / panel_rows) * panel;
        const int columns = min(w.used_count, first + panel_rows);
        double sum[panel_rows] = {};
#pragma unroll 4
        for (int c = 0; c < columns; ++c) {
            const double z = value(w, p, c) - w.centre[c];
#pragma unroll
            for (int k = 0; k < panel_rows; k += 2) {
                const double2 pair = __ldg(rows + (c * panel_rows + k) / 2);
                sum[k] = fma(pair.x, z, sum[k]);
                sum[k + 1] = fma(pair.y, z, sum[k + 1]);
            }
        }
#pragma unroll
        for (int k = 0; k < panel_rows; ++k)
            squared = fma(sum[k], sum[k], squared);
    }
    squares[part][lane] = squared;
    __syncthreads();
    if (part > 0 || pixel >= w.pixels) return;
    for (int k = 1; k < parts; ++k)
        squared += squares[k][lane];
    w.squared[p] = squared;
}

__device__ double score(const ScoreWork& w, int p, int target, double product, double log_product) {
    switch (w.kind) {
    case Kind::sam: {
        // |u - v|^2 = 2 - 2 u'v, |u + v|^2 = 2 + 2 u'v
        const double cosine = product / sqrt(w.squared[p]);
        if (1 - cosine <= w.sam_rounding) return 0;
        return 2 * atan2(sqrt(fmax(0.0, 1 - cosine)), sqrt(fmax(0.0, 1 + cosine)));
    }
    case Kind::sid: // ln(sum x+) cancels in the sum over the bands, since p and q both add up to 1.
        return fmax(0.0, (w.entropy[p] - product) / w.sum[p] - log_product + w.constants[target]);
    case Kind::ace: {
        const double squared = w.squared[p]; // product: d / (t-m)'C^-1(t-m)
        return squared > 0 ? fmin(1.0, fmax(-1.0, product * fabs(product) * w.constants[target] / squared))
                           : 0.0;
    }
    default:
        return product;
    }
}

/// Computes the scores of eight targets (blockIdx.y).
__global__ void __launch_bounds__(threads) products_kernel(ScoreWork w) {
    const int p = thread_pixel(), first = static_cast<int>(blockIdx.y) * panel_rows;
    if (p >= w.pixels || w.valid[p] == 0) return;
    const size_t panel = static_cast<size_t>(blockIdx.y) * static_cast<size_t>(w.used_count) * panel_rows;
    const double* __restrict__ const rows = w.rows + panel;
    const bool logs = w.kind == Kind::sid;
    const double* __restrict__ const log_rows = logs ? w.log_rows + panel : rows;
    const double least = logs ? w.least_part * w.greatest[p] : 0.0;
    double sum[panel_rows] = {}, log_sum[panel_rows] = {};
#pragma unroll 4
    for (int c = 0; c < w.used_count; ++c) {
        double z = value(w, p, c) - w.centre[c];
        if (logs) {
            z = fmax(least, z);
            const double l = log(z);
#pragma unroll
            for (int k = 0; k < panel_rows; ++k)
                log_sum[k] = fma(__ldg(log_rows + c * panel_rows + k), l, log_sum[k]);
        }
#pragma unroll
        for (int k = 0; k < panel_rows; ++k)
            sum[k] = fma(__ldg(rows + c * panel_rows + k), z, sum[k]);
    }
#pragma unroll
    for (int k = 0; k < panel_rows; ++k)
        if (first + k < w.targets)
            w.scores[static_cast<size_t>(first + k) * static_cast<size_t>(w.pixels) +
                     static_cast<size_t>(p)] = score(w, p, first + k, sum[k], log_sum[k]);
}

/// Returns 1 + the index of the first score that equals the best, as Decider::best() does; 0 if the best
/// score is not within the threshold.
__device__ float best(const Output& out, const double* scores, int count, size_t pitch) {
    constexpr double equal = 1e-10;
    const double sign = out.small_is_best ? -1 : 1;
    double greatest = sign * scores[0];
    for (int k = 1; k < count; ++k)
        greatest = fmax(greatest, sign * scores[static_cast<size_t>(k) * pitch]);
    const double least = greatest - equal * fabs(greatest);
    int first = 0;
    while (first < count - 1 && !(sign * scores[static_cast<size_t>(first) * pitch] >= least))
        ++first;
    const double found = sign * scores[static_cast<size_t>(first) * pitch];
    return out.has_threshold && !(found >= sign * out.threshold) ? 0.0f : static_cast<float>(first + 1);
}

__global__ void put_kernel(ScoreWork w, Output out) {
    const int p = thread_pixel();
    const bool inside = p < w.pixels, valid = inside && w.valid[p] != 0;
    const int here = __syncthreads_count(inside), valid_here = __syncthreads_count(valid);
    if (threadIdx.x == 0) {
        atomicAdd(out.counts, static_cast<unsigned long long>(valid_here));
        atomicAdd(out.counts + 1, static_cast<unsigned long long>(here - valid_here));
    }
    if (!inside) return;
    const auto pitch = static_cast<size_t>(w.pixels), at = static_cast<size_t>(p);
    const int count = max(1, w.targets);
    const double* const scores = w.targets > 0 ? w.scores : w.squared;
    for (int k = 0; k < count; ++k) {
        const size_t place = static_cast<size_t>(k) * pitch + at;
        out.scores[place] = valid ? static_cast<float>(scores[place]) : nanf("");
    }
    if (out.map != nullptr) out.map[at] = valid ? best(out, scores + at, count, pitch) : nanf("");
}

} // namespace

void launch_scores(const ScoreWork& work, const Output& out, cudaStream_t stream) {
    const unsigned blocks = (static_cast<unsigned>(work.pixels) + threads - 1) / threads;
    look_kernel<<<blocks, threads, 0, stream>>>(work);
    HSI_CUDA_LAUNCHED("look_kernel");
    if (work.factor != nullptr) {
        quadratic_kernel<<<(static_cast<unsigned>(work.pixels) + 31) / 32, 32 * parts, 0, stream>>>(work);
        HSI_CUDA_LAUNCHED("quadratic_kernel");
    }
    if (work.targets > 0) {
        const auto panels = (static_cast<unsigned>(work.targets) + panel_rows - 1) / panel_rows;
        products_kernel<<<dim3(blocks, panels), threads, 0, stream>>>(work);
        HSI_CUDA_LAUNCHED("products_kernel");
    }
    put_kernel<<<blocks, threads, 0, stream>>>(work, out);
    HSI_CUDA_LAUNCHED("put_kernel");
}

} // namespace hsi::detect::gpu
