// SPDX-License-Identifier: MIT
// The kernels of paper 003's Markov random field (SAHIC_P, Algorithm 2 and Figs. 2, 4 and 5), written from
// the text of the paper, for comparison with ours. They use double precision, one kernel per step, cuFFT over
// all classes at once, and one launch of V4_kernel and V5_kernel per class. The border is periodic. Matrices
// K x N store the pixels column by column, but the transformed planes are stored line by line. V4_kernel
// therefore transposes its plane, as printed. Some details differ because the paper does not state them, or
// states them wrongly: H'(V5 + D5) is summed before the inverse transform. Vs_kernel computes D1 to D3, and a
// separate kernel computes D4. The threshold lambda a / mu is a plane instead of the single number in Fig. 5.
// The indices of Fig. 4, which would mirror each tile, are replaced by the indices of a transposition.
// LORSAL_P comes from another paper and is not included.
#pragma once

#include "cuda/cufft.h"
#include "cuda/device_buffer.h"
#include "sahic/sahic.h"

#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <vector>

namespace hsi::sahic::published {

constexpr int thread_num = 256, block_size = 16;

__global__ inline void IL_kernel(double2* fh, double2* fv, double* il, int rows, int cols) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows * cols) return;
    // A difference of neighbouring pixels multiplies a wave e^(iax) by (e^(ia) - 1).
    double hs, hc, vs, vc;
    sincospi(2.0 * (i % cols) / cols, &hs, &hc);
    sincospi(2.0 * (i / cols) / rows, &vs, &vc);
    fh[i] = {hc - 1, hs};
    fv[i] = {vc - 1, vs};
    il[i] = 1 / (1 + (2 - 2 * hc) + (2 - 2 * vc));
}

struct Matrices { // each matrix is K x N
    double *p, *q, *v1, *v2, *v3, *v4, *d1, *d2, *d3, *d4, *s;
};

__global__ inline void q_kernel(Matrices m, int64_t size) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < size)
        m.q[i] = 0.25 * (m.v1[i] + m.d1[i] + m.v2[i] + m.d2[i] + m.v3[i] + m.d3[i] + m.v4[i] + m.d4[i]);
}

__global__ inline void fixq_kernel(double* q, const int* pixel, const int* label, int count, int rows,
                                   int cols) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count * rows) return;
    const int k = i / count, j = i % count;
    q[static_cast<int64_t>(k) * cols + pixel[j]] = label[j] == k ? 1.0 : 0.0;
}

/// Computes s = q - D3 and its sum over the classes, pixel by pixel (Fig. 2).
__global__ inline void nu_aux3_sum_kernel(const double* q, const double* d3, double* s, double* sum, int rows,
                                          int cols) {
    __shared__ double block[thread_num];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    block[threadIdx.x] = 0;
    for (int k = 0; k < rows && i < cols; ++k) {
        const int64_t at = static_cast<int64_t>(k) * cols + i;
        s[at] = q[at] - d3[at];
        block[threadIdx.x] += s[at];
    }
    __syncthreads();
    if (i < cols) sum[i] = block[threadIdx.x];
}

__global__ inline void Vs_kernel(Matrices m, const double* sum, double mu, int rows, int cols) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= static_cast<int64_t>(rows) * cols) return;
    const double q = m.q[i], v1 = (m.p[i] + mu * (q - m.d1[i])) / (1 + mu), v2 = fmax(q - m.d2[i], 0.0),
                 v3 = m.s[i] + (1 - sum[i % cols]) / rows;
    m.v1[i] = v1;
    m.v2[i] = v2;
    m.v3[i] = v3;
    m.d1[i] -= q - v1;
    m.d2[i] -= q - v2;
    m.d3[i] -= q - v3;
}

/// Prepares the transforms of a = q - D4, transposed, and of V5 + D5. The z index of the grid is the class.
__global__ inline void join_kernel(Matrices m, const double* v5, const double* d5, double2* inner,
                                   double2* mid, int rows, int cols) {
    __shared__ double block[block_size][block_size + 1];
    const int64_t size = static_cast<int64_t>(rows) * cols, k = blockIdx.z;
    int x = blockDim.x * blockIdx.x + threadIdx.y, y = blockDim.y * blockIdx.y + threadIdx.x;
    if (x < cols && y < rows) {
        const int64_t from = k * size + static_cast<int64_t>(x) * rows + y;
        block[threadIdx.x][threadIdx.y] = m.q[from] - m.d4[from];
    }
    __syncthreads();
    x = blockDim.x * blockIdx.x + threadIdx.x;
    y = blockDim.y * blockIdx.y + threadIdx.y;
    if (x >= cols || y >= rows) return;
    const int64_t to = static_cast<int64_t>(y) * cols + x;
    inner[k * size + to] = {block[threadIdx.y][threadIdx.x], 0};
    for (int64_t part = 2 * k * size + to; part < (2 * k + 2) * size; part += size)
        mid[part] = {v5[part] + d5[part], 0};
}

__device__ inline double2 times(double2 a, double2 b) {
    return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x};
}

/// Computes inner = L (inner + conj(FH) mid_h + conj(FV) mid_v).
__global__ inline void right_side_kernel(double2* inner, const double2* mid, const double2* fh,
                                         const double2* fv, const double* il, int64_t size) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x, k = blockIdx.y;
    if (i >= size) return;
    const double2 a = inner[k * size + i], h = times({fh[i].x, -fh[i].y}, mid[2 * k * size + i]),
                  v = times({fv[i].x, -fv[i].y}, mid[(2 * k + 1) * size + i]);
    inner[k * size + i] = {il[i] * (a.x + h.x + v.x), il[i] * (a.y + h.y + v.y)};
}

/// Computes V4, and two copies of V4 for the transforms (Fig. 4).
__global__ inline void V4_kernel(double2* mid, double* v4, int v4_cols, double2* inner, int rows, int cols,
                                 int k) {
    __shared__ double block[block_size][block_size + 1];
    int row = blockDim.y * blockIdx.y + threadIdx.y, col = blockDim.x * blockIdx.x + threadIdx.x;
    if (row < rows && col < cols) {
        const int i = row * cols + col, size = rows * cols;
        inner[i].x /= size;
        block[threadIdx.y][threadIdx.x] = inner[i].x;
        const double2 value = inner[i];
        mid[i] = value;
        mid[i + size] = value;
    }
    __syncthreads();
    row = blockDim.x * blockIdx.x + threadIdx.y;
    col = blockDim.y * blockIdx.y + threadIdx.x;
    if (row < cols && col < rows)
        v4[static_cast<int64_t>(k) * v4_cols + row * rows + col] = block[threadIdx.x][threadIdx.y];
}

__global__ inline void product_kernel(double2* mid, const double2* fh, const double2* fv, int64_t size) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x,
                  at = 2 * blockIdx.y * size + i;
    if (i >= size) return;
    mid[at] = times(fh[i], mid[at]);
    mid[at + size] = times(fv[i], mid[at + size]);
}

/// Computes V5 and D5 of one class (Fig. 5). The four pointers of Fig. 5 are halves of two planes here.
__global__ inline void V5_kernel(double* v5, double* d5, const double2* mid, const double* param, int rows,
                                 int cols) {
    const int row = blockDim.y * blockIdx.y + threadIdx.y, col = blockDim.x * blockIdx.x + threadIdx.x;
    if (row >= rows || col >= cols) return;
    const int i = row * cols + col, size = rows * cols;
    const double h = mid[i].x / size, v = mid[i + size].x / size, limit = param[i];
    const double th = h - d5[i], tv = v - d5[i + size];
    const double over = fmax(sqrt(th * th + tv * tv) - limit, 0.0), factor = over / (over + limit);
    v5[i] = factor * th;
    v5[i + size] = factor * tv;
    d5[i] -= h - v5[i];
    d5[i + size] -= v - v5[i + size];
}

__global__ inline void D4_kernel(Matrices m, int64_t size) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < size) m.d4[i] -= m.q[i] - m.v4[i];
}

enum class Step { q, fixq, nu_aux3_sum, vs, v4, v5, transforms_before, transforms_after, d4 };

/// Step 3 of Algorithm 2. An object must be created, used and destroyed while its device is current.
class CudaField {
  public:
    CudaField(const MrfProblem& problem, const MrfOptions& options, cudaStream_t stream)
        : m_mu(options.mu), m_classes(problem.classes), m_rows(static_cast<int>(problem.lines)),
          m_cols(static_cast<int>(problem.samples)), m_size(problem.lines * problem.samples),
          m_stream(stream), m_matrix(planes(11)), m_v5(planes(2)), m_d5(planes(2)), m_sum(plane()),
          m_il(plane()), m_threshold(plane()), m_fh(plane()), m_fv(plane()), m_inner(planes(1)),
          m_mid(planes(2)), m_p(planes(1)), m_q(planes(1)), m_limit(plane()) {
        double** const of[] = {&m.p, &m.q, &m.v1, &m.v2, &m.v3, &m.v4, &m.d1, &m.d2, &m.d3, &m.d4, &m.s};
        for (size_t i = 0; i < 11; ++i)
            *of[i] = m_matrix.data() + i * planes(1);
        for (int k = 0; k < m_classes; ++k)
            for (int y = 0; y < m_rows; ++y)
                for (int x = 0; x < m_cols; ++x)
                    m_p[static_cast<size_t>(k * m_size + static_cast<int64_t>(x) * m_rows + y)] =
                        problem.p[k * m_size + static_cast<int64_t>(y) * m_cols + x];
        for (int64_t i = 0; i < m_size; ++i) {
            m_limit[static_cast<size_t>(i)] =
                options.lambda * static_cast<double>(problem.weight[i]) / options.mu;
            if (problem.fixed[i] == 0) continue;
            m_pixel.push_back(static_cast<int>(i % m_cols * m_rows + i / m_cols));
            m_label.push_back(problem.fixed[i] - 1);
        }
        m_device_pixel = cuda::DeviceBuffer<int>(m_pixel.size());
        m_device_label = cuda::DeviceBuffer<int>(m_label.size());
        plan(m_one, m_classes);
        plan(m_two, 2 * m_classes);
    }
    CudaField(const CudaField&) = delete;
    CudaField& operator=(const CudaField&) = delete;
    ~CudaField() {
        for (const cufftHandle plan : {m_one, m_two})
            if (plan) cufftDestroy(plan);
    }

    /// Copies the inputs to the device. Sets V1 to V4 to p, and all other variables to 0.
    void upload() {
        m_matrix.clear(m_stream);
        m_v5.clear(m_stream);
        m_d5.clear(m_stream);
        m_device_pixel.upload(m_pixel.data(), m_pixel.size(), m_stream);
        m_device_label.upload(m_label.data(), m_label.size(), m_stream);
        m_threshold.upload(m_limit.data(), m_limit.size(), m_stream);
        HSI_CUDA_CHECK(cudaMemcpyAsync(m.p, m_p.data(), planes(1) * 8, cudaMemcpyHostToDevice, m_stream));
        for (double* v : {m.v1, m.v2, m.v3, m.v4})
            HSI_CUDA_CHECK(cudaMemcpyAsync(v, m.p, planes(1) * 8, cudaMemcpyDeviceToDevice, m_stream));
        IL_kernel<<<blocks(m_size), thread_num, 0, m_stream>>>(m_fh.data(), m_fv.data(), m_il.data(), m_rows,
                                                               m_cols);
        HSI_CUDA_LAUNCHED("IL_kernel");
    }

    void iterate(int count) {
        for (int i = 0; i < count; ++i)
            for (const Step step : {Step::q, Step::fixq, Step::nu_aux3_sum, Step::vs, Step::transforms_before,
                                    Step::v4, Step::transforms_after, Step::v5, Step::d4})
                launch(step);
    }

    void copy_back() {
        HSI_CUDA_CHECK(cudaMemcpyAsync(m_q.data(), m.q, planes(1) * 8, cudaMemcpyDeviceToHost, m_stream));
        HSI_CUDA_CHECK(cudaStreamSynchronize(m_stream));
    }
    /// Returns q in our layout, [class][line][sample]. Call copy_back() first.
    std::vector<float> result() const {
        std::vector<float> q(planes(1));
        for (int k = 0; k < m_classes; ++k)
            for (int y = 0; y < m_rows; ++y)
                for (int x = 0; x < m_cols; ++x)
                    q[static_cast<size_t>(k * m_size + static_cast<int64_t>(y) * m_cols + x)] =
                        static_cast<float>(
                            m_q[static_cast<size_t>(k * m_size + static_cast<int64_t>(x) * m_rows + y)]);
        return q;
    }

    void launch(Step step) {
        const int64_t all = m_classes * m_size;
        const int cols = static_cast<int>(m_size), count = static_cast<int>(m_pixel.size());
        const dim3 tile(block_size, block_size),
            tiles((m_cols + block_size - 1) / block_size, (m_rows + block_size - 1) / block_size),
            each(blocks(m_size), m_classes);
        switch (step) {
        case Step::q:
            q_kernel<<<blocks(all), thread_num, 0, m_stream>>>(m, all);
            break;
        case Step::fixq:
            if (count > 0)
                fixq_kernel<<<blocks(int64_t{count} * m_classes), thread_num, 0, m_stream>>>(
                    m.q, m_device_pixel.data(), m_device_label.data(), count, m_classes, cols);
            break;
        case Step::nu_aux3_sum:
            nu_aux3_sum_kernel<<<blocks(cols), thread_num, 0, m_stream>>>(m.q, m.d3, m.s, m_sum.data(),
                                                                          m_classes, cols);
            break;
        case Step::vs:
            Vs_kernel<<<blocks(all), thread_num, 0, m_stream>>>(m, m_sum.data(), m_mu, m_classes, cols);
            break;
        case Step::transforms_before:
            join_kernel<<<dim3(tiles.x, tiles.y, m_classes), tile, 0, m_stream>>>(
                m, m_v5.data(), m_d5.data(), m_inner.data(), m_mid.data(), m_rows, m_cols);
            HSI_CUFFT_CHECK(cufftExecZ2Z(m_one, m_inner.data(), m_inner.data(), CUFFT_FORWARD));
            HSI_CUFFT_CHECK(cufftExecZ2Z(m_two, m_mid.data(), m_mid.data(), CUFFT_FORWARD));
            right_side_kernel<<<each, thread_num, 0, m_stream>>>(m_inner.data(), m_mid.data(), m_fh.data(),
                                                                 m_fv.data(), m_il.data(), m_size);
            HSI_CUFFT_CHECK(cufftExecZ2Z(m_one, m_inner.data(), m_inner.data(), CUFFT_INVERSE));
            break;
        case Step::v4:
            for (int k = 0; k < m_classes; ++k)
                V4_kernel<<<tiles, tile, 0, m_stream>>>(m_mid.data() + 2 * k * m_size, m.v4, cols,
                                                        m_inner.data() + k * m_size, m_rows, m_cols, k);
            break;
        case Step::transforms_after:
            HSI_CUFFT_CHECK(cufftExecZ2Z(m_two, m_mid.data(), m_mid.data(), CUFFT_FORWARD));
            product_kernel<<<each, thread_num, 0, m_stream>>>(m_mid.data(), m_fh.data(), m_fv.data(), m_size);
            HSI_CUFFT_CHECK(cufftExecZ2Z(m_two, m_mid.data(), m_mid.data(), CUFFT_INVERSE));
            break;
        case Step::v5:
            for (int k = 0; k < m_classes; ++k)
                V5_kernel<<<tiles, tile, 0, m_stream>>>(
                    m_v5.data() + 2 * k * m_size, m_d5.data() + 2 * k * m_size, m_mid.data() + 2 * k * m_size,
                    m_threshold.data(), m_rows, m_cols);
            break;
        case Step::d4:
            D4_kernel<<<blocks(all), thread_num, 0, m_stream>>>(m, all);
            break;
        }
        HSI_CUDA_LAUNCHED("a published kernel");
    }

  private:
    size_t plane() const { return static_cast<size_t>(m_size); }
    size_t planes(int a_class) const { return static_cast<size_t>(a_class * m_classes) * plane(); }
    static unsigned blocks(int64_t threads) {
        return static_cast<unsigned>((threads + thread_num - 1) / thread_num);
    }
    void plan(cufftHandle& made, int batch) {
        int n[] = {m_rows, m_cols};
        HSI_CUFFT_CHECK(cufftPlanMany(&made, 2, n, nullptr, 1, 0, nullptr, 1, 0, CUFFT_Z2Z, batch));
        HSI_CUFFT_CHECK(cufftSetStream(made, m_stream));
    }

    const double m_mu;
    const int m_classes, m_rows, m_cols;
    const int64_t m_size;
    cudaStream_t m_stream;
    Matrices m{};
    cuda::DeviceBuffer<double> m_matrix, m_v5, m_d5, m_sum, m_il, m_threshold;
    cuda::DeviceBuffer<double2> m_fh, m_fv, m_inner, m_mid;
    cuda::DeviceBuffer<int> m_device_pixel, m_device_label;
    std::vector<double> m_p, m_q, m_limit;
    std::vector<int> m_pixel, m_label;
    cufftHandle m_one = 0, m_two = 0;
};

} // namespace hsi::sahic::published
