// SPDX-License-Identifier: MIT
// The kernels of the published algorithm (A. Accion, F. Arguello, D. B. Heras: Extended Anisotropic Diffusion
// Profiles in GPU for Hyperspectral Imagery, Algorithms 4 and 5), written from its description, for
// comparison. Components are processed one after another. The kernels are one convolution for rows and one
// for columns, Scharr in the shared memory of a block, a maximum, a histogram with atomics in shared memory,
// and two launches per FED step. The contrast is computed on the CPU. The paper uses T = double; T = float is
// also measured.
#pragma once

#include "cuda/check.h"
#include "cuda/device_buffer.h"
#include "eadp/eadp.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <functional>
#include <vector>

namespace hsi::eadp::published {

constexpr int block = 16;

__device__ inline int mirror(int i, int n) { return i < 0 ? -1 - i : i >= n ? 2 * n - 1 - i : i; }

template <class T>
__global__ void apply_row_conv(const T* in, T* out, const T* taps, int radius, int w, int h) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    T sum = 0;
    for (int t = -radius; t <= radius; ++t)
        sum += taps[t < 0 ? -t : t] * in[static_cast<size_t>(y) * w + mirror(x + t, w)];
    out[static_cast<size_t>(y) * w + x] = sum;
}

template <class T>
__global__ void apply_col_conv(const T* in, T* out, const T* taps, int radius, int w, int h) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    T sum = 0;
    for (int t = -radius; t <= radius; ++t)
        sum += taps[t < 0 ? -t : t] * in[static_cast<size_t>(mirror(y + t, h)) * w + x];
    out[static_cast<size_t>(y) * w + x] = sum;
}

template <class T>
__global__ void scharr(const T* in, T* gx, T* gy, int w, int h) {
    __shared__ T tile[block + 2][block + 2];
    const int x0 = blockIdx.x * block - 1, y0 = blockIdx.y * block - 1;
    for (int i = threadIdx.y * block + threadIdx.x; i < (block + 2) * (block + 2); i += block * block) {
        const int x = min(max(x0 + i % (block + 2), 0), w - 1), y = min(max(y0 + i / (block + 2), 0), h - 1);
        tile[i / (block + 2)][i % (block + 2)] = in[static_cast<size_t>(y) * w + x];
    }
    __syncthreads();
    const int x = blockIdx.x * block + threadIdx.x, y = blockIdx.y * block + threadIdx.y;
    if (x >= w || y >= h) return;
    const int i = threadIdx.x + 1, j = threadIdx.y + 1;
    const T ul = tile[j - 1][i - 1], ur = tile[j - 1][i + 1], ll = tile[j + 1][i - 1],
            lr = tile[j + 1][i + 1];
    const size_t p = static_cast<size_t>(y) * w + x;
    gx[p] = (3 * (lr - ll + ur - ul) + 10 * (tile[j][i + 1] - tile[j][i - 1])) / 32;
    gy[p] = (3 * (lr + ll - ur - ul) + 10 * (tile[j + 1][i] - tile[j - 1][i])) / 32;
}

template <class T>
__global__ void reduce_max(const T* gx, const T* gy, size_t n, unsigned long long* largest) {
    double best = 0;
    for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
         i += static_cast<size_t>(gridDim.x) * blockDim.x)
        best = fmax(best, sqrt(static_cast<double>(gx[i] * gx[i] + gy[i] * gy[i])));
    for (int o = 16; o > 0; o /= 2)
        best = fmax(best, __shfl_down_sync(~0u, best, o));
    if (threadIdx.x % 32 == 0)
        atomicMax(largest, static_cast<unsigned long long>(__double_as_longlong(best)));
}

template <class T>
__global__ void create_histogram(const T* gx, const T* gy, size_t n, double largest, unsigned* histogram) {
    __shared__ unsigned local[histogram_bins];
    for (int i = threadIdx.x; i < histogram_bins; i += blockDim.x)
        local[i] = 0;
    __syncthreads();
    for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
         i += static_cast<size_t>(gridDim.x) * blockDim.x) {
        const double m = sqrt(static_cast<double>(gx[i] * gx[i] + gy[i] * gy[i]));
        if (m > 0)
            atomicAdd(&local[min(histogram_bins - 1, static_cast<int>(histogram_bins * m / largest))], 1u);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < histogram_bins; i += blockDim.x)
        if (local[i]) atomicAdd(&histogram[i], local[i]);
}

template <class T>
__global__ void pm2_coefficients(const T* gx, const T* gy, size_t n, T k2, T* g) {
    const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) g[i] = 1 / (1 + (gx[i] * gx[i] + gy[i] * gy[i]) / k2);
}

template <class T>
__global__ void fed_nld_step(const T* l, const T* g, T tau, int w, int h, T* delta) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    const size_t p = static_cast<size_t>(y) * w + x;
    const T c = l[p], gc = g[p];
    T sum = 0;
    if (x + 1 < w) sum += (gc + g[p + 1]) * (l[p + 1] - c);
    if (x > 0) sum += (gc + g[p - 1]) * (l[p - 1] - c);
    if (y + 1 < h) sum += (gc + g[p + w]) * (l[p + w] - c);
    if (y > 0) sum += (gc + g[p - w]) * (l[p - w] - c);
    delta[p] = tau * T(0.5) * sum;
}

template <class T>
__global__ void fed_nld_update(T* l, const T* delta, size_t n) {
    const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) l[i] += delta[i];
}

/// Function that is called after each stage of Table III, with the name of the stage.
using Tick = std::function<void(const char*)>;

/// Computes the copies of all components with independent evolution, g2 and one cycle. x: `components` planes
/// of floats. out: components x copies planes of floats.
template <class T>
void profile(const float* x, int components, int w, int h, const Options& options, float* out,
             cudaStream_t stream, const Tick& tick);

template <class T>
__global__ void widen(const float* in, T* out, size_t n) {
    const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i];
}
template <class T>
__global__ void narrow(const T* in, float* out, size_t n) {
    const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) out[i] = static_cast<float>(in[i]);
}

template <class T>
void profile(const float* x, int components, int w, int h, const Options& options, float* out,
             cudaStream_t stream, const Tick& tick) {
    using cuda::DeviceBuffer;
    const size_t n = static_cast<size_t>(w) * static_cast<size_t>(h);
    const auto weights = gaussian_weights(options.sigma);
    const std::vector<T> taps(weights.begin(), weights.end());
    DeviceBuffer<T> d_taps(taps.size()), start(n), a(n), b(n), gx(n), gy(n), g(n);
    DeviceBuffer<unsigned long long> largest(1);
    DeviceBuffer<unsigned> histogram(histogram_bins);
    d_taps.upload(taps.data(), taps.size(), stream);
    const dim3 threads(block, block), grid((w + block - 1) / block, (h + block - 1) / block);
    const unsigned flat = static_cast<unsigned>((n + 255) / 256);
    tick("setup");
    for (int c = 0; c < components; ++c) {
        widen<T><<<flat, 256, 0, stream>>>(x + c * n, start.data(), n);
        tick("setup");
        const int radius = gaussian_radius(options.sigma);
        apply_row_conv<T><<<grid, threads, 0, stream>>>(start.data(), a.data(), d_taps.data(), radius, w, h);
        apply_col_conv<T><<<grid, threads, 0, stream>>>(a.data(), b.data(), d_taps.data(), radius, w, h);
        tick("Gaussian");
        scharr<T><<<grid, threads, 0, stream>>>(b.data(), gx.data(), gy.data(), w, h);
        tick("Scharr");
        largest.clear(stream);
        histogram.clear(stream);
        reduce_max<T><<<256, 256, 0, stream>>>(gx.data(), gy.data(), n, largest.data());
        double hmax = 0;
        HSI_CUDA_CHECK(cudaMemcpyAsync(&hmax, largest.data(), sizeof hmax, cudaMemcpyDeviceToHost, stream));
        HSI_CUDA_CHECK(cudaStreamSynchronize(stream));
        create_histogram<T><<<256, 256, 0, stream>>>(gx.data(), gy.data(), n, hmax, histogram.data());
        std::vector<unsigned> counts(histogram_bins);
        histogram.download(counts.data(), counts.size(), stream);
        HSI_CUDA_CHECK(cudaStreamSynchronize(stream));
        Range range;
        range.steepest = hmax;
        Histogram bins{};
        std::copy(counts.begin(), counts.end(), bins.begin());
        const double k = contrast_of(range, bins, options.percentile);
        tick("contrast");
        pm2_coefficients<T>
            <<<flat, 256, 0, stream>>>(gx.data(), gy.data(), n, static_cast<T>(k * k), g.data());
        tick("diffusivity");
        for (int copy = 0; copy < options.copies(); ++copy) {
            HSI_CUDA_CHECK(
                cudaMemcpyAsync(a.data(), start.data(), n * sizeof(T), cudaMemcpyDeviceToDevice, stream));
            for (double tau : fed_taus(options.times[static_cast<size_t>(copy)], 1)) {
                fed_nld_step<T>
                    <<<grid, threads, 0, stream>>>(a.data(), g.data(), static_cast<T>(tau), w, h, b.data());
                fed_nld_update<T><<<flat, 256, 0, stream>>>(a.data(), b.data(), n);
            }
            narrow<T><<<flat, 256, 0, stream>>>(
                a.data(), out + (static_cast<size_t>(c) * options.copies() + copy) * n, n);
        }
        HSI_CUDA_LAUNCHED("published kernels");
        tick("FED");
    }
    HSI_CUDA_CHECK(cudaStreamSynchronize(stream));
    tick("cleanup");
}

} // namespace hsi::eadp::published
