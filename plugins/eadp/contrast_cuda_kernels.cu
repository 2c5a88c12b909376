// SPDX-License-Identifier: MIT
// Computes histograms of gradients, and the recurrence's weights from the contrasts of these histograms.
// Compiled with -fmad=false: operations are fused only where the source says fma.
#include "eadp/launch.cuh"

#include <cmath>

namespace hsi::eadp::gpu {
namespace {

__global__ void histogram_kernel(Planes planes, const uint8_t* __restrict__ valid,
                                 const double* __restrict__ squared, Core core,
                                 const double* __restrict__ steepest, unsigned long long* counts) {
    // Each warp has its own histogram. Most gradients are small, so warps would wait for each other at the
    // same bins.
    constexpr int copies = threads / 32;
    __shared__ unsigned local[copies * histogram_bins];
    const int t = static_cast<int>(threadIdx.x);
    for (int i = t; i < copies * histogram_bins; i += threads)
        local[i] = 0;
    __syncthreads();
    const double top = steepest[blockIdx.y];
    const size_t plane = static_cast<size_t>(blockIdx.y) * planes.pixels();
    unsigned* const mine = local + t / 32 * histogram_bins;
    if (top > 0)
        for (int y = static_cast<int>(blockIdx.x); y < core.h; y += static_cast<int>(gridDim.x))
            for (int x = t; x < core.w; x += threads) {
                const size_t p = static_cast<size_t>(core.y + y) * planes.samples + core.x + x;
                const double s = squared[plane + p];
                if (!valid[p] || !(s > 0)) continue;
                atomicAdd(&mine[min(histogram_bins - 1, static_cast<int>(histogram_bins * sqrt(s) / top))],
                          1u);
            }
    __syncthreads();
    for (int i = t; i < histogram_bins; i += threads) {
        unsigned sum = 0;
        for (int w = 0; w < copies; ++w)
            sum += local[w * histogram_bins + i];
        if (sum)
            atomicAdd(&counts[static_cast<size_t>(blockIdx.y) * histogram_bins + i],
                      static_cast<unsigned long long>(sum));
    }
}

__device__ double diffusivity(double squared, double k, Diffusivity kind) {
    if (!(k > 0)) return 1.0;
    const double k2 = k * k;
    if (kind == Diffusivity::g2) return k2 / (k2 + squared);
    const double q = squared / k2;
    if (kind == Diffusivity::g1) return exp(-q);
    const double q4 = (q * q) * (q * q);
    return q4 > 0 ? 1.0 - exp(-3.31488 / q4) : 1.0;
}

constexpr int weights_w = 64, weights_h = 16;

template <class T>
__global__ void __launch_bounds__(threads)
    weights_kernel(Planes planes, const uint8_t* __restrict__ valid, const double* __restrict__ squared,
                   const double* __restrict__ contrast, const float* __restrict__ level, Diffusivity kind,
                   T* __restrict__ start, T* __restrict__ east, T* __restrict__ south) {
    constexpr int wide = weights_w + 1, all = wide * (weights_h + 1), rounds = (all + threads - 1) / threads;
    __shared__ double g[all]; // diffusivity; -2 for invalid pixels
    const int t = static_cast<int>(threadIdx.x), c = static_cast<int>(blockIdx.z);
    const int x0 = static_cast<int>(blockIdx.x) * weights_w, y0 = static_cast<int>(blockIdx.y) * weights_h;
    const size_t plane = static_cast<size_t>(c) * planes.pixels();
    const double k = contrast[c];
    double s[rounds]; // squared gradients; all loads precede the first division
#pragma unroll
    for (int round = 0; round < rounds; ++round) {
        const int at = round * threads + t, x = x0 + at % wide, y = y0 + at / wide;
        s[round] = -1;
        if (at < all && x < planes.samples && y < planes.lines) {
            const size_t p = static_cast<size_t>(y) * planes.samples + x;
            const double there = squared[plane + p];
            if (valid[p]) s[round] = there;
        }
    }
    const T base = static_cast<T>(level[c]);
    const int pitch = padded(planes.samples);
    constexpr int lines_each = weights_w * weights_h / threads;
    const int i = t % weights_w, j = t / weights_w * lines_each, x = x0 + i;
    float value[lines_each];
#pragma unroll
    for (int r = 0; r < lines_each; ++r)
        value[r] = x < planes.samples && y0 + j + r < planes.lines
                       ? planes.x[plane + static_cast<size_t>(y0 + j + r) * planes.samples + x]
                       : 0.0f;
#pragma unroll
    for (int round = 0; round < rounds; ++round) {
        const int at = round * threads + t;
        if (at < all) g[at] = s[round] >= 0 ? diffusivity(s[round], k, kind) : -2.0;
    }
    __syncthreads();
    if (x >= pitch) return;
    double own = g[j * wide + i];
#pragma unroll
    for (int r = 0; r < lines_each; ++r) {
        const int y = y0 + j + r;
        if (y >= planes.lines) return;
        const double* const at = g + (j + r) * wide + i;
        const double below = at[wide];
        const size_t p = (static_cast<size_t>(c) * planes.lines + y) * pitch + x;
        // The padding after the last sample becomes zero.
        start[p] = own >= 0 ? static_cast<T>(value[r]) - base : T(0);
        east[p] = static_cast<T>(tau_max * fmax(0.0, own + at[1]));
        south[p] = static_cast<T>(tau_max * fmax(0.0, own + below));
        own = below;
    }
}

} // namespace

void launch_histogram(const Planes& planes, const uint8_t* valid, const double* squared, Core core,
                      const double* steepest, unsigned long long* counts, cudaStream_t stream) {
    histogram_kernel<<<scan_grid(core, planes.components), threads, 0, stream>>>(planes, valid, squared, core,
                                                                                 steepest, counts);
    HSI_CUDA_LAUNCHED("histogram_kernel");
}

template <class T>
void launch_weights(const Planes& planes, const uint8_t* valid, const double* squared, const double* k,
                    const float* level, Diffusivity kind, T* start, T* east, T* south, cudaStream_t stream) {
    const dim3 grid(static_cast<unsigned>((padded(planes.samples) + weights_w - 1) / weights_w),
                    static_cast<unsigned>((planes.lines + weights_h - 1) / weights_h),
                    static_cast<unsigned>(planes.components));
    weights_kernel<T>
        <<<grid, threads, 0, stream>>>(planes, valid, squared, k, level, kind, start, east, south);
    HSI_CUDA_LAUNCHED("weights_kernel");
}
template void launch_weights<float>(const Planes&, const uint8_t*, const double*, const double*, const float*,
                                    Diffusivity, float*, float*, float*, cudaStream_t);
template void launch_weights<double>(const Planes&, const uint8_t*, const double*, const double*,
                                     const float*, Diffusivity, double*, double*, double*, cudaStream_t);

} // namespace hsi::eadp::gpu
