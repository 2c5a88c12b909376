// SPDX-License-Identifier: MIT
// The kernels of the CUDA backend. Cubes are packed, [band][line][sample], in device memory.
#pragma once

#include "cuda/cublas.h"
#include "cuda/cusolver.h"
#include "cuda/device_buffer.h"

#include <cuda_runtime.h>

#include <cstdint>
#include <vector>

namespace hsi::pca::gpu {

/// One statistics block of a tile: at most 128 x 64 pixels, centred on its own mean and multiplied in batches
/// of 512 pixels. The shape of every product is fixed, so a block's result does not depend on the tile that
/// it came in.
struct BlockWork {
    const float* cube = nullptr; ///< of the tile
    int bands = 0, samples = 0, lines = 0;
    int x = 0, y = 0, w = 0, h = 0; ///< the block in the tile
};
inline constexpr int block_pixels = 8192, batch_pixels = 512, batches = block_pixels / batch_pixels;

/// valid[p] = 1 where all bands are finite and not all of them zero, for a whole tile.
void launch_valid(const float* cube, int bands, size_t pixels, bool zero_is_invalid, uint8_t* valid,
                  cudaStream_t stream);
/// Of a block: sum[b] of the valid pixels, finite[b] values, count[0] valid pixels, centre[b] = the mean in
/// single precision.
void launch_block_sums(const BlockWork& work, const uint8_t* valid, double* sum, int* finite, int* count,
                       float* centre, cudaStream_t stream);
/// packed: bands x block_pixels, x - centre, zero where invalid or outside.
void launch_pack(const BlockWork& work, const uint8_t* valid, const float* centre, float* packed,
                 cudaStream_t stream);
/// scatter[a * bands + b] = sum of the `count` single-precision products in double.
void launch_add_products(const float* products, int bands, int count, double* scatter, cudaStream_t stream);
/// products: count matrices of bands x bands; rows of `packed` are `pitch` apart; matrix i takes columns
/// [i * length, (i + 1) * length).
void multiply_batches(cublasHandle_t blas, const float* packed, int bands, int64_t pitch, int length,
                      int count, float* products);

/// out[o][p] = offset[o] + sum over b of matrix[o * inputs + b] cube[b][p], in double precision; NaN where
/// invalid.
void launch_transform(const float* cube, int inputs, size_t pixels, const double* matrix,
                      const double* offset, int outputs, const uint8_t* valid, float* out,
                      cudaStream_t stream);

/// PCA of a cube that lies in device memory, start to end without the host: provisional mean, centred copy,
/// covariance in batches, leading eigenvectors, projection.
class DevicePca {
  public:
    DevicePca(int bands, size_t pixels, int components, cudaStream_t stream);
    ~DevicePca();
    DevicePca(const DevicePca&) = delete;
    DevicePca& operator=(const DevicePca&) = delete;
    /// out: components x pixels.
    void run(const float* cube, float* out);
    /// After run() and a synchronisation: eigenvalues (variances) and loadings (components x bands).
    void result(std::vector<double>& values, std::vector<double>& loadings, std::vector<double>& mean) const;
    /// The stages of run() one by one, for benchmarks.
    void centre(const float* cube);
    void covariance();
    void eigenproblem();
    void dense_eigenproblem();
    void project(float* out);
    /// Covariance for tests and other solvers: bands x bands on the device.
    const double* matrix() const { return m_matrix.data(); }
    /// True when the fast solver's residuals were not small enough and the dense one was used (after
    /// synchronising).
    bool used_dense_solver() const { return m_dense; }
    int steps() const { return m_host_info[1]; } ///< of the fast solver

  private:
    const int m_bands, m_components;
    const size_t m_pixels;
    size_t m_padded;
    int m_batches;
    cudaStream_t m_stream;
    cuda::Cublas m_blas;
    cuda::Cusolver m_solver;
    cuda::DeviceBuffer<float> m_centre, m_shifted, m_products;
    cuda::DeviceBuffer<double> m_partial, m_sums, m_matrix, m_dense_matrix, m_values, m_vectors, m_basis,
        m_transform, m_offset;
    cuda::DeviceBuffer<unsigned char> m_solver_work;
    cuda::DeviceBuffer<int> m_info;
    std::vector<unsigned char> m_solver_host;
    size_t m_device_bytes = 0, m_host_bytes = 0;
    int* m_host_info = nullptr;
    bool m_dense = false;
};

} // namespace hsi::pca::gpu
