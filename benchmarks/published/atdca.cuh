// SPDX-License-Identifier: MIT
// The GPU implementations that paper 002 measures (Table III), written from the text of the paper, for
// comparison only. Each step is a kernel with one thread per pixel. The projection vector (or a row of the
// projector) is in shared memory. The reduction is a separate kernel, and the small orthogonalisation runs on
// the CPU. All values have single precision, as in the paper. Also contains GS without the paper's
// optimisations (the upper half of its Fig. 2): the cube is stored pixel by pixel, so neighbouring threads
// read distant values, and the vector and the reduction are in global memory.
#pragma once

#include "cuda/check.h"
#include "cuda/device_buffer.h"

#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

namespace hsi::atdca::published {

constexpr int threads = 256;

/// Computes value[i] = ||x_i||^2.
__global__ inline void norms(const float* cube, int bands, int pixels, int64_t pitch, float* value) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= pixels) return;
    float sum = 0;
    for (int b = 0; b < bands; ++b)
        sum += cube[b * pitch + i] * cube[b * pitch + i];
    value[i] = sum;
}

/// Computes value[i] = |p.x_i| for ATDCA-GS.
__global__ inline void project(const float* cube, int bands, int pixels, int64_t pitch, const float* p,
                               float* value) {
    extern __shared__ float shared[];
    for (int b = static_cast<int>(threadIdx.x); b < bands; b += static_cast<int>(blockDim.x))
        shared[b] = p[b];
    __syncthreads();
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= pixels) return;
    float sum = 0;
    for (int b = 0; b < bands; ++b)
        sum += shared[b] * cube[b * pitch + i];
    value[i] = fabsf(sum);
}

/// Computes value[i] = ||P x_i||^2 with the explicit projector, row by row, for ATDCA-OSP.
__global__ inline void project_explicitly(const float* cube, int bands, int pixels, int64_t pitch,
                                          const float* projector, float* value) {
    extern __shared__ float row[];
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    float total = 0;
    for (int r = 0; r < bands; ++r) {
        __syncthreads();
        for (int b = static_cast<int>(threadIdx.x); b < bands; b += static_cast<int>(blockDim.x))
            row[b] = projector[static_cast<int64_t>(r) * bands + b];
        __syncthreads();
        if (i >= pixels) continue;
        float sum = 0;
        for (int b = 0; b < bands; ++b)
            sum += row[b] * cube[b * pitch + i];
        total += sum * sum;
    }
    if (i < pixels) value[i] = total;
}

struct Best {
    float value;
    int pixel;
};

/// Finds the best value of each piece of the pixels, with one block per piece. The CPU then selects the best
/// piece.
__global__ inline void best_of(const float* value, int pixels, Best* best) {
    __shared__ Best shared[threads];
    Best mine{-1.0f, -1};
    for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < pixels;
         i += static_cast<int>(gridDim.x * blockDim.x))
        if (value[i] > mine.value) mine = {value[i], i};
    shared[threadIdx.x] = mine;
    for (int half = threads / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < static_cast<unsigned>(half) &&
            shared[threadIdx.x + half].value > shared[threadIdx.x].value)
            shared[threadIdx.x] = shared[threadIdx.x + half];
    }
    if (threadIdx.x == 0) best[blockIdx.x] = shared[0];
}

/// Computes value[i] = ||x_i||^2 if p is null, otherwise |p.x_i|. cube: [pixel][band].
__global__ inline void project_plainly(const float* cube, int bands, int pixels, const float* p,
                                       float* value) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= pixels) return;
    const float* x = cube + static_cast<int64_t>(i) * bands;
    float sum = 0;
    for (int b = 0; b < bands; ++b)
        sum += (p ? p[b] : x[b]) * x[b];
    value[i] = fabsf(sum);
}

/// Finds the best value of each piece of the pixels, with one thread per piece. The CPU then selects the best
/// piece.
__global__ inline void best_of_plainly(const float* value, int pixels, Best* best, int pieces) {
    const int piece = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (piece >= pieces) return;
    const int each = (pixels + pieces - 1) / pieces;
    best[piece] = {-1.0f, -1};
    for (int i = piece * each; i < min(pixels, (piece + 1) * each); ++i)
        if (value[i] > best[piece].value) best[piece] = {value[i], i};
}

/// Function that is called after the launch of each step, with the name of the step.
using Tick = std::function<void(const char*)>;

class Search {
  public:
    /// pitch: distance of the bands of the cube, in floats; 0: no optimisations, and a cube of [pixel][band].
    Search(const float* cube, int bands, int pixels, int64_t pitch, cudaStream_t stream)
        : m_cube(cube), m_bands(bands), m_pixels(pixels), m_pitch(pitch), m_stream(stream),
          m_value(static_cast<size_t>(pixels)), m_best(pitch > 0 ? blocks : pieces),
          m_vector(static_cast<size_t>(bands) * static_cast<size_t>(bands)) {}

    std::vector<int64_t> run(
        int targets, bool gs, const Tick& tick = [](const char*) {}) {
        std::vector<int64_t> found;
        std::vector<std::vector<double>> q;
        const auto n = static_cast<size_t>(m_bands);
        const int grid = (m_pixels + threads - 1) / threads;
        for (int t = 0; t < targets; ++t) {
            if (t == 0 && m_pitch > 0) {
                norms<<<grid, threads, 0, m_stream>>>(m_cube, m_bands, m_pixels, m_pitch, m_value.data());
                tick("norms");
            } else if (t == 0) {
                project_plainly<<<grid, threads, 0, m_stream>>>(m_cube, m_bands, m_pixels, nullptr,
                                                                m_value.data());
                tick("norms");
            } else if (gs) {
                std::vector<double> p(n, 1.0);
                for (const auto& v : q)
                    remove(v, p);
                const std::vector<float> single(p.begin(), p.end());
                tick("host");
                m_vector.upload(single.data(), n, m_stream);
                tick("transfers");
                if (m_pitch > 0)
                    project<<<grid, threads, n * 4, m_stream>>>(m_cube, m_bands, m_pixels, m_pitch,
                                                                m_vector.data(), m_value.data());
                else
                    project_plainly<<<grid, threads, 0, m_stream>>>(m_cube, m_bands, m_pixels,
                                                                    m_vector.data(), m_value.data());
                tick("projection");
                HSI_CUDA_CHECK(cudaStreamSynchronize(m_stream));
            } else {
                std::vector<float> projector(n * n);
                for (size_t a = 0; a < n; ++a)
                    for (size_t b = 0; b < n; ++b) {
                        double v = a == b ? 1.0 : 0.0;
                        for (const auto& k : q)
                            v -= k[a] * k[b];
                        projector[a * n + b] = static_cast<float>(v);
                    }
                m_vector.upload(projector.data(), n * n, m_stream);
                project_explicitly<<<grid, threads, n * 4, m_stream>>>(m_cube, m_bands, m_pixels, m_pitch,
                                                                       m_vector.data(), m_value.data());
                HSI_CUDA_CHECK(cudaStreamSynchronize(m_stream));
            }
            HSI_CUDA_LAUNCHED("a published kernel");
            if (m_pitch > 0)
                best_of<<<blocks, threads, 0, m_stream>>>(m_value.data(), m_pixels, m_best.data());
            else
                best_of_plainly<<<pieces / threads, threads, 0, m_stream>>>(m_value.data(), m_pixels,
                                                                            m_best.data(), pieces);
            HSI_CUDA_LAUNCHED("best_of");
            tick("reduction");
            std::vector<Best> best(m_best.size());
            m_best.download(best.data(), best.size(), m_stream);
            HSI_CUDA_CHECK(cudaStreamSynchronize(m_stream));
            tick("transfers");
            Best top = best[0];
            for (const Best& b : best)
                if (b.value > top.value || (b.value == top.value && b.pixel < top.pixel)) top = b;
            found.push_back(top.pixel);
            std::vector<float> x(n);
            tick("host");
            if (m_pitch > 0)
                HSI_CUDA_CHECK(cudaMemcpy2DAsync(x.data(), 4, m_cube + top.pixel,
                                                 static_cast<size_t>(m_pitch) * 4, 4, n,
                                                 cudaMemcpyDeviceToHost, m_stream));
            else
                HSI_CUDA_CHECK(cudaMemcpyAsync(x.data(), m_cube + static_cast<int64_t>(top.pixel) * m_bands,
                                               n * 4, cudaMemcpyDeviceToHost, m_stream));
            HSI_CUDA_CHECK(cudaStreamSynchronize(m_stream));
            tick("transfers");
            std::vector<double> r(x.begin(), x.end());
            for (const auto& v : q)
                remove(v, r);
            double norm = 0;
            for (double v : r)
                norm += v * v;
            for (double& v : r)
                v /= std::sqrt(norm);
            q.push_back(std::move(r));
        }
        return found;
    }

  private:
    static constexpr int blocks = 128, pieces = 2048;
    static void remove(const std::vector<double>& q, std::vector<double>& v) {
        double c = 0;
        for (size_t i = 0; i < v.size(); ++i)
            c += q[i] * v[i];
        for (size_t i = 0; i < v.size(); ++i)
            v[i] -= c * q[i];
    }
    const float* m_cube;
    int m_bands, m_pixels;
    int64_t m_pitch;
    cudaStream_t m_stream;
    cuda::DeviceBuffer<float> m_value;
    cuda::DeviceBuffer<Best> m_best;
    cuda::DeviceBuffer<float> m_vector;
};

} // namespace hsi::atdca::published
