// SPDX-License-Identifier: MIT
#include "cuda/check.h"
#include "pca/pca_cuda_kernels.cuh"

#include <algorithm>
#include <cmath>

namespace hsi::pca::gpu {
namespace {

constexpr int threads = 256;
constexpr int most_lanczos = 160; ///< steps before the dense solver takes over

unsigned blocks_for(size_t n) { return static_cast<unsigned>((n + threads - 1) / threads); }

__global__ void valid_kernel(const float* __restrict__ cube, int bands, size_t pixels, bool zero_is_invalid,
                             uint8_t* valid) {
    const size_t p = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (p >= pixels) return;
    bool finite = true, nonzero = false;
    for (int b = 0; b < bands; ++b) {
        const float v = cube[static_cast<size_t>(b) * pixels + p];
        finite = finite && isfinite(v);
        nonzero = nonzero || v != 0;
    }
    valid[p] = finite && (nonzero || !zero_is_invalid);
}

template <class T>
__device__ T block_total(T v) {
    __shared__ T part[32];
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    for (int o = 16; o > 0; o /= 2)
        v += __shfl_xor_sync(~0u, v, o);
    __syncthreads();
    if (lane == 0) part[warp] = v;
    __syncthreads();
    v = lane < static_cast<int>(blockDim.x) / 32 ? part[lane] : T(0);
    for (int o = 16; o > 0; o /= 2)
        v += __shfl_xor_sync(~0u, v, o);
    return v; // in every thread
}

// A block of threads a band.
__global__ void block_sums_kernel(BlockWork work, const uint8_t* __restrict__ valid, double* sum, int* finite,
                                  int* count, float* centre) {
    const int band = static_cast<int>(blockIdx.x);
    const float* const in = work.cube + static_cast<size_t>(band) * work.samples * work.lines;
    double total = 0;
    int is_finite = 0, is_valid = 0;
    for (int i = static_cast<int>(threadIdx.x); i < work.w * work.h; i += static_cast<int>(blockDim.x)) {
        const size_t p = static_cast<size_t>(work.y + i / work.w) * work.samples + work.x + i % work.w;
        const float v = in[p];
        is_finite += isfinite(v);
        if (valid[p]) {
            total += static_cast<double>(v);
            ++is_valid;
        }
    }
    total = block_total(total);
    is_finite = block_total(is_finite);
    is_valid = block_total(is_valid);
    if (threadIdx.x == 0) {
        sum[band] = total;
        finite[band] = is_finite;
        if (band == 0) *count = is_valid;
        centre[band] = is_valid > 0 ? static_cast<float>(total / is_valid) : 0.0f;
    }
}

__global__ void pack_kernel(BlockWork work, const uint8_t* __restrict__ valid,
                            const float* __restrict__ centre, float* __restrict__ packed) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x),
              band = static_cast<int>(blockIdx.y);
    float v = 0;
    if (i < work.w * work.h) {
        const size_t p = static_cast<size_t>(work.y + i / work.w) * work.samples + work.x + i % work.w;
        if (valid[p]) v = work.cube[static_cast<size_t>(band) * work.samples * work.lines + p] - centre[band];
    }
    packed[static_cast<size_t>(band) * block_pixels + i] = v;
}

__global__ void add_products_kernel(const float* __restrict__ products, int entries, int count,
                                    double* __restrict__ scatter) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= entries) return;
    double sum = 0;
    for (int k = 0; k < count; ++k)
        sum += static_cast<double>(products[static_cast<size_t>(k) * entries + i]);
    scatter[i] = sum;
}

constexpr int transform_outputs = 8;

__global__ void transform_kernel(const float* __restrict__ cube, int inputs, size_t pitch, size_t pixels,
                                 const double* __restrict__ matrix, const double* __restrict__ offset,
                                 int outputs, const uint8_t* __restrict__ valid, float* __restrict__ out) {
    extern __shared__ double rows[]; // [input][transform_outputs]
    const int first = static_cast<int>(blockIdx.y) * transform_outputs,
              n = min(transform_outputs, outputs - first);
    for (int i = static_cast<int>(threadIdx.x); i < inputs * transform_outputs;
         i += static_cast<int>(blockDim.x)) {
        const int o = i % transform_outputs, b = i / transform_outputs;
        rows[i] = o < n ? matrix[static_cast<size_t>(first + o) * inputs + b] : 0.0;
    }
    __syncthreads();
    const size_t p = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (p >= pixels) return;
    double sum[transform_outputs];
#pragma unroll
    for (int o = 0; o < transform_outputs; ++o)
        sum[o] = o < n ? offset[first + o] : 0.0;
#pragma unroll 4
    for (int b = 0; b < inputs; ++b) {
        const auto x = static_cast<double>(__ldg(cube + static_cast<size_t>(b) * pitch + p));
#pragma unroll
        for (int o = 0; o < transform_outputs; ++o)
            sum[o] = fma(rows[b * transform_outputs + o], x, sum[o]);
    }
    const bool ok = !valid || valid[p];
    for (int o = 0; o < n; ++o)
        out[static_cast<size_t>(first + o) * pixels + p] = ok ? static_cast<float>(sum[o]) : nanf("");
}

// --- from device memory to device memory
// ------------------------------------------------------------------------------

constexpr int sample_pixels = 1024; ///< behind the provisional mean

__global__ void provisional_mean_kernel(const float* __restrict__ cube, size_t pixels, float* centre) {
    const float* const in = cube + static_cast<size_t>(blockIdx.x) * pixels;
    const size_t n = pixels < sample_pixels ? pixels : sample_pixels;
    double sum = 0;
    for (size_t i = threadIdx.x; i < n; i += blockDim.x)
        sum += static_cast<double>(in[i * pixels / n]);
    sum = block_total(sum);
    if (threadIdx.x == 0) centre[blockIdx.x] = static_cast<float>(sum / static_cast<double>(n));
}

constexpr int slices = 8; ///< of a band, in the centring kernel

__global__ void centre_kernel(const float* __restrict__ cube, size_t pixels, size_t padded,
                              const float* __restrict__ centre, float* __restrict__ shifted,
                              double* __restrict__ partial) {
    const int band = static_cast<int>(blockIdx.y);
    const float c = centre[band];
    const float* const in = cube + static_cast<size_t>(band) * pixels;
    float* const out = shifted + static_cast<size_t>(band) * padded;
    const size_t length = (padded / 4 + slices - 1) / slices * 4, begin = length * blockIdx.x,
                 end = begin + length < padded ? begin + length : padded;
    double sum = 0;
    const bool aligned = pixels % 4 == 0;
    for (size_t i = begin + 4 * threadIdx.x; i < end; i += 4 * blockDim.x) {
        float4 v = make_float4(c, c, c, c);
        if (aligned && i + 4 <= pixels) {
            v = *reinterpret_cast<const float4*>(in + i);
        } else {
            if (i < pixels) v.x = in[i];
            if (i + 1 < pixels) v.y = in[i + 1];
            if (i + 2 < pixels) v.z = in[i + 2];
            if (i + 3 < pixels) v.w = in[i + 3];
        }
        v.x -= c, v.y -= c, v.z -= c, v.w -= c;
        sum += (static_cast<double>(v.x) + static_cast<double>(v.y)) +
               (static_cast<double>(v.z) + static_cast<double>(v.w));
        *reinterpret_cast<float4*>(out + i) = v;
    }
    sum = block_total(sum);
    if (threadIdx.x == 0) partial[band * slices + blockIdx.x] = sum;
}

__global__ void band_sums_kernel(const double* __restrict__ partial, int bands, double* sums) {
    const int b = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (b >= bands) return;
    double sum = 0;
    for (int i = 0; i < slices; ++i)
        sum += partial[b * slices + i];
    sums[b] = sum;
}

// Several threads an entry, so that the many batches are read at full rate.
__global__ void covariance_kernel(const float* __restrict__ products, int bands, int count,
                                  const double* __restrict__ sums, double pixels,
                                  double* __restrict__ matrix) {
    __shared__ double part[8][32];
    const int i = static_cast<int>(blockIdx.x) * 32 + static_cast<int>(threadIdx.x), entries = bands * bands;
    double sum = 0;
    if (i < entries)
        for (int k = static_cast<int>(threadIdx.y); k < count; k += 8)
            sum += static_cast<double>(products[static_cast<size_t>(k) * entries + i]);
    part[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y > 0 || i >= entries) return;
    for (int k = 1; k < 8; ++k)
        sum += part[k][threadIdx.x];
    const int a = i / bands, b = i % bands;
    matrix[i] = (sum - sums[a] * sums[b] / pixels) / (pixels - 1);
}

/// Lanczos with full reorthogonalisation in one block, for the leading eigenvectors of a covariance matrix:
/// the matrix in single precision in shared memory, everything else in double. Rounding the entries of the
/// matrix moves an eigenvector by 1e-10 of lambda_1 over its gap: far less than the products in single
/// precision behind it. steps are checked for convergence against residuals; info[0] = 1 when they are not
/// small enough after `most` steps.
constexpr int lanczos_threads = 1024;
constexpr int most_pairs = 16;

struct LanczosShared {
    double v[256]; ///< the current vector
    double w[256]; ///< the matrix times it
    double alpha[most_lanczos + 1], beta[most_lanczos + 1];
    double value[most_pairs], tail[most_pairs];
    double dots[most_lanczos + 1];
    int done;
};

/// Eigenvalues of the m x m tridiagonal matrix greater than x.
__device__ int count_above(const double* alpha, const double* beta, int m, double x, double tiny) {
    int below = 0;
    double d = 1;
    for (int i = 0; i < m; ++i) {
        const double b = i > 0 ? beta[i - 1] : 0.0;
        d = alpha[i] - x - (i > 0 ? b * b / d : 0.0);
        if (fabs(d) < tiny) d = -tiny;
        below += d < 0;
    }
    return m - below;
}

/// The eigenvector of a tridiagonal matrix for an eigenvalue, by one twisted factorisation: stable without
/// pivoting.
__device__ void tridiagonal_vector(const double* alpha, const double* beta, int m, double x, double tiny,
                                   double* plus, double* minus, double* y) {
    double d = alpha[0] - x;
    if (fabs(d) < tiny) d = tiny;
    plus[0] = d;
    for (int i = 1; i < m; ++i) {
        d = alpha[i] - x - beta[i - 1] * beta[i - 1] / d;
        if (fabs(d) < tiny) d = tiny;
        plus[i] = d;
    }
    d = alpha[m - 1] - x;
    if (fabs(d) < tiny) d = tiny;
    minus[m - 1] = d;
    for (int i = m - 2; i >= 0; --i) {
        d = alpha[i] - x - beta[i] * beta[i] / d;
        if (fabs(d) < tiny) d = tiny;
        minus[i] = d;
    }
    int twist = 0;
    double least = 1e300;
    for (int i = 0; i < m; ++i) {
        const double gamma = fabs(plus[i] + minus[i] - (alpha[i] - x));
        if (gamma < least) least = gamma, twist = i;
    }
    y[twist] = 1;
    for (int i = twist - 1; i >= 0; --i)
        y[i] = -beta[i] / plus[i] * y[i + 1];
    for (int i = twist + 1; i < m; ++i)
        y[i] = -beta[i - 1] / minus[i] * y[i - 1];
    double norm = 0;
    for (int i = 0; i < m; ++i)
        norm += y[i] * y[i];
    norm = 1 / sqrt(norm);
    for (int i = 0; i < m; ++i)
        y[i] *= norm;
}

__global__ void __launch_bounds__(lanczos_threads, 1)
    lanczos_kernel(const double* __restrict__ matrix, int n, int pairs, int most, double tolerance,
                   double* __restrict__ basis /* most + 1 rows of n */,
                   double* __restrict__ scratch /* pairs x 3 x most */, double* __restrict__ values,
                   double* __restrict__ vectors, int* info) {
    extern __shared__ float entries[]; // n rows of pitch floats
    __shared__ LanczosShared s;
    const int t = static_cast<int>(threadIdx.x), lane = t % 32, warp = t / 32, warps = lanczos_threads / 32;
    const int pitch = n | 1;
    for (int i = t; i < n * n; i += lanczos_threads)
        entries[i / n * pitch + i % n] = static_cast<float>(matrix[i]);
    // A start with something of every eigenvector: no spectrum is orthogonal to it by accident.
    if (t < n) s.v[t] = 1.0 + 0.5 * sin(1.0 + 2.3 * t);
    __syncthreads();
    double norm = block_total(t < n ? s.v[t] * s.v[t] : 0.0);
    norm = 1 / sqrt(norm);
    if (t < n) {
        s.v[t] *= norm;
        basis[t] = s.v[t];
    }
    if (t == 0) s.done = 0;
    __syncthreads();
    int m = 0;
    while (m < most) {
        // w = A v: four threads a row, neighbouring rows in different banks.
        {
            const int row = t / 4, part = t % 4;
            double sum = 0;
            if (row < n)
                for (int j = part; j < n; j += 4)
                    sum = fma(static_cast<double>(entries[row * pitch + j]), s.v[j], sum);
            sum += __shfl_xor_sync(~0u, sum, 1);
            sum += __shfl_xor_sync(~0u, sum, 2);
            if (row < n && part == 0) s.w[row] = sum;
        }
        __syncthreads();
        const double a = block_total(t < n ? s.v[t] * s.w[t] : 0.0);
        if (t == 0) s.alpha[m] = a;
        // Classical Gram-Schmidt against all vectors, twice.
        for (int round = 0; round < 2; ++round) {
            __syncthreads();
            for (int k = warp; k <= m; k += warps) {
                double dot = 0;
                for (int i = lane; i < n; i += 32)
                    dot = fma(basis[static_cast<size_t>(k) * n + i], s.w[i], dot);
                for (int o = 16; o > 0; o /= 2)
                    dot += __shfl_xor_sync(~0u, dot, o);
                if (lane == 0) s.dots[k] = dot;
            }
            __syncthreads();
            const int row = t / 4, part = t % 4;
            double sum = 0;
            if (row < n)
                for (int k = part; k <= m; k += 4)
                    sum = fma(basis[static_cast<size_t>(k) * n + row], s.dots[k], sum);
            sum += __shfl_xor_sync(~0u, sum, 1);
            sum += __shfl_xor_sync(~0u, sum, 2);
            __syncthreads();
            if (row < n && part == 0) s.w[row] -= sum;
        }
        __syncthreads();
        const double beta = sqrt(block_total(t < n ? s.w[t] * s.w[t] : 0.0));
        if (t == 0) s.beta[m] = beta;
        ++m;
        const double top = fabs(s.alpha[0]);
        const bool closed = beta <= 1e-14 * top || m == n; // the vectors span an invariant space
        if (!closed && t < n) {
            s.v[t] = s.w[t] / beta;
            basis[static_cast<size_t>(m) * n + t] = s.v[t];
        }
        __syncthreads();
        const int check = 2 * pairs + 8;
        if (closed && m < pairs) break; // too few directions: the dense solver sorts it out
        if (m < pairs || !(closed || m == most || (m >= check && (m - check) % 8 == 0))) continue;
        // A warp a pair: the eigenvalue by 32-section, then the vector.
        if (warp < pairs) {
            double low = 0, high = 0;
            for (int i = lane; i < m; i += 32) {
                const double reach = (i > 0 ? s.beta[i - 1] : 0.0) + (i + 1 < m ? s.beta[i] : 0.0);
                low = fmin(low, s.alpha[i] - reach);
                high = fmax(high, s.alpha[i] + reach);
            }
            for (int o = 16; o > 0; o /= 2) {
                low = fmin(low, __shfl_xor_sync(~0u, low, o));
                high = fmax(high, __shfl_xor_sync(~0u, high, o));
            }
            const double tiny = 1e-300 + 1e-32 * high, width = high - low;
            high += 1e-15 * width;
            while (high - low > 4e-16 * width && high - low > 2e-16 * fabs(high)) {
                const double x = low + (high - low) * (lane + 1) / 33.0;
                // more than `warp` eigenvalues above x: the wanted one is above x
                const unsigned above = __ballot_sync(~0u, count_above(s.alpha, s.beta, m, x, tiny) > warp);
                const int k = __popc(above); // the first k points are below the eigenvalue
                const double step = (high - low) / 33.0, base = low;
                if (k > 0) low = base + step * k;
                if (k < 32) high = base + step * (k + 1);
                if (!(step > 1e-17 * width)) break;
            }
            if (lane == 0) {
                double* const work = scratch + static_cast<size_t>(warp) * 3 * (most + 1);
                const double x = 0.5 * (low + high);
                tridiagonal_vector(s.alpha, s.beta, m, x, tiny, work, work + most + 1, work + 2 * (most + 1));
                s.value[warp] = x;
                s.tail[warp] = fabs(work[2 * (most + 1) + m - 1]) * beta; // the residual's norm
            }
        }
        __syncthreads();
        if (t == 0) {
            bool good = true;
            for (int k = 0; k < pairs; ++k)
                good = good && s.tail[k] <= tolerance * fabs(s.value[0]);
            s.done = good || closed ? 1 : 0;
        }
        __syncthreads();
        if (s.done) break;
        if (closed) break;
    }
    __threadfence_block();
    __syncthreads();
    // Vectors: basis' times those of the tridiagonal matrix, unit length, largest entry positive.
    if (warp < pairs) {
        const double* const y = scratch + static_cast<size_t>(warp) * 3 * (most + 1) + 2 * (most + 1);
        double largest = 0, square = 0;
        int where = 0;
        for (int i = lane; i < n; i += 32) {
            double sum = 0;
            for (int k = 0; k < m; ++k)
                sum = fma(basis[static_cast<size_t>(k) * n + i], y[k], sum);
            vectors[static_cast<size_t>(warp) * n + i] = sum;
            square += sum * sum;
            if (fabs(sum) > fabs(largest)) largest = sum, where = i;
        }
        for (int o = 16; o > 0; o /= 2) {
            square += __shfl_xor_sync(~0u, square, o);
            const double other = __shfl_xor_sync(~0u, largest, o);
            const int there = __shfl_xor_sync(~0u, where, o);
            if (fabs(other) > fabs(largest) || (fabs(other) == fabs(largest) && there < where))
                largest = other, where = there;
        }
        const double factor = (largest < 0 ? -1.0 : 1.0) / sqrt(square);
        for (int i = lane; i < n; i += 32)
            vectors[static_cast<size_t>(warp) * n + i] *= factor;
        if (lane == 0) values[warp] = s.value[warp];
    }
    if (t == 0) {
        info[0] = s.done ? 0 : 1;
        info[1] = m;
    }
}

/// Rows of the projection and its offset: y = V (x - centre) - V (mean - centre).
__global__ void projection_kernel(const double* __restrict__ vectors, const double* __restrict__ sums,
                                  int bands, double pixels, double* __restrict__ transform,
                                  double* __restrict__ offset) {
    const int k = static_cast<int>(blockIdx.x);
    double sum = 0;
    for (int b = static_cast<int>(threadIdx.x); b < bands; b += static_cast<int>(blockDim.x)) {
        const double v = vectors[static_cast<size_t>(k) * bands + b];
        transform[static_cast<size_t>(k) * bands + b] = v;
        sum += v * sums[b] / pixels;
    }
    sum = block_total(sum);
    if (threadIdx.x == 0) offset[k] = -sum;
}

/// Of the dense solver's rising eigenvectors (rows), the last ones in falling order with their signs fixed.
__global__ void pick_kernel(const double* __restrict__ all_values, const double* __restrict__ rows, int n,
                            double* values, double* vectors) {
    const int k = static_cast<int>(blockIdx.x), from = n - 1 - k, lane = static_cast<int>(threadIdx.x);
    double largest = 0;
    int where = 0;
    for (int i = lane; i < n; i += 32) {
        const double v = rows[static_cast<size_t>(from) * n + i];
        if (fabs(v) > fabs(largest)) largest = v, where = i;
    }
    for (int o = 16; o > 0; o /= 2) {
        const double other = __shfl_xor_sync(~0u, largest, o);
        const int there = __shfl_xor_sync(~0u, where, o);
        if (fabs(other) > fabs(largest) || (fabs(other) == fabs(largest) && there < where))
            largest = other, where = there;
    }
    for (int i = lane; i < n; i += 32)
        vectors[static_cast<size_t>(k) * n + i] =
            (largest < 0 ? -1.0 : 1.0) * rows[static_cast<size_t>(from) * n + i];
    if (lane == 0) values[k] = all_values[from];
}

size_t lanczos_shared(int n) { return static_cast<size_t>(n) * static_cast<size_t>(n | 1) * sizeof(float); }

} // namespace

void launch_valid(const float* cube, int bands, size_t pixels, bool zero_is_invalid, uint8_t* valid,
                  cudaStream_t stream) {
    valid_kernel<<<blocks_for(pixels), threads, 0, stream>>>(cube, bands, pixels, zero_is_invalid, valid);
    HSI_CUDA_LAUNCHED("valid_kernel");
}

void launch_block_sums(const BlockWork& work, const uint8_t* valid, double* sum, int* finite, int* count,
                       float* centre, cudaStream_t stream) {
    block_sums_kernel<<<static_cast<unsigned>(work.bands), threads, 0, stream>>>(work, valid, sum, finite,
                                                                                 count, centre);
    HSI_CUDA_LAUNCHED("block_sums_kernel");
}

void launch_pack(const BlockWork& work, const uint8_t* valid, const float* centre, float* packed,
                 cudaStream_t stream) {
    pack_kernel<<<dim3(block_pixels / threads, static_cast<unsigned>(work.bands)), threads, 0, stream>>>(
        work, valid, centre, packed);
    HSI_CUDA_LAUNCHED("pack_kernel");
}

void multiply_batches(cublasHandle_t blas, const float* packed, int bands, int64_t pitch, int length,
                      int count, float* products) {
    const float one = 1, zero = 0;
    // Row-major bands x pixels is column-major pixels x bands: C = A' A.
    HSI_CUBLAS_CHECK(cublasSgemmStridedBatched(blas, CUBLAS_OP_T, CUBLAS_OP_N, bands, bands, length, &one,
                                               packed, static_cast<int>(pitch), length, packed,
                                               static_cast<int>(pitch), length, &zero, products, bands,
                                               static_cast<long long>(bands) * bands, count));
}

void launch_add_products(const float* products, int bands, int count, double* scatter, cudaStream_t stream) {
    add_products_kernel<<<blocks_for(static_cast<size_t>(bands) * static_cast<size_t>(bands)), threads, 0,
                          stream>>>(products, bands * bands, count, scatter);
    HSI_CUDA_LAUNCHED("add_products_kernel");
}

namespace {
void transform_pitched(const float* cube, int inputs, size_t pitch, size_t pixels, const double* matrix,
                       const double* offset, int outputs, const uint8_t* valid, float* out,
                       cudaStream_t stream) {
    const size_t shared = static_cast<size_t>(inputs) * transform_outputs * sizeof(double);
    HSI_CUDA_CHECK(cudaFuncSetAttribute(transform_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(shared)));
    transform_kernel<<<dim3(blocks_for(pixels),
                            static_cast<unsigned>((outputs + transform_outputs - 1) / transform_outputs)),
                       threads, shared, stream>>>(cube, inputs, pitch, pixels, matrix, offset, outputs, valid,
                                                  out);
    HSI_CUDA_LAUNCHED("transform_kernel");
}
} // namespace

void launch_transform(const float* cube, int inputs, size_t pixels, const double* matrix,
                      const double* offset, int outputs, const uint8_t* valid, float* out,
                      cudaStream_t stream) {
    transform_pitched(cube, inputs, pixels, pixels, matrix, offset, outputs, valid, out, stream);
}

constexpr int device_batch = 2048;

DevicePca::DevicePca(int bands, size_t pixels, int components, cudaStream_t stream)
    : m_bands(bands), m_components(components), m_pixels(pixels),
      m_padded((pixels + device_batch - 1) / device_batch * device_batch),
      m_batches(static_cast<int>(m_padded / device_batch)), m_stream(stream), m_blas(stream),
      m_solver(stream), m_centre(static_cast<size_t>(bands)),
      m_shifted(static_cast<size_t>(bands) * m_padded),
      m_products(static_cast<size_t>(m_batches) * static_cast<size_t>(bands) * static_cast<size_t>(bands)),
      m_partial(static_cast<size_t>(bands * slices)), m_sums(static_cast<size_t>(bands)),
      m_matrix(static_cast<size_t>(bands) * static_cast<size_t>(bands)), m_dense_matrix(m_matrix.size()),
      m_values(static_cast<size_t>(2 * bands)),
      m_vectors(static_cast<size_t>(components) * static_cast<size_t>(bands)),
      m_basis(static_cast<size_t>(most_lanczos + 1) * static_cast<size_t>(bands) +
              most_pairs * 3 * (most_lanczos + 1)),
      m_transform(m_vectors.size()), m_offset(static_cast<size_t>(components)), m_info(2) {
    HSI_CUBLAS_CHECK(cublasSetMathMode(m_blas.get(), CUBLAS_PEDANTIC_MATH));
    HSI_CUSOLVER_CHECK(
        cusolverDnXsyevd_bufferSize(m_solver.get(), nullptr, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER,
                                    bands, CUDA_R_64F, m_dense_matrix.data(), bands, CUDA_R_64F,
                                    m_values.data() + bands, CUDA_R_64F, &m_device_bytes, &m_host_bytes));
    m_solver_work = cuda::DeviceBuffer<unsigned char>(m_device_bytes);
    m_solver_host.resize(m_host_bytes);
    HSI_CUDA_CHECK(
        cudaHostAlloc(reinterpret_cast<void**>(&m_host_info), 2 * sizeof(int), cudaHostAllocDefault));
}

DevicePca::~DevicePca() {
    if (m_host_info) cudaFreeHost(m_host_info);
}

void DevicePca::centre(const float* cube) {
    provisional_mean_kernel<<<static_cast<unsigned>(m_bands), threads, 0, m_stream>>>(cube, m_pixels,
                                                                                      m_centre.data());
    HSI_CUDA_LAUNCHED("provisional_mean_kernel");
    centre_kernel<<<dim3(slices, static_cast<unsigned>(m_bands)), threads, 0, m_stream>>>(
        cube, m_pixels, m_padded, m_centre.data(), m_shifted.data(), m_partial.data());
    HSI_CUDA_LAUNCHED("centre_kernel");
    band_sums_kernel<<<blocks_for(static_cast<size_t>(m_bands)), threads, 0, m_stream>>>(
        m_partial.data(), m_bands, m_sums.data());
    HSI_CUDA_LAUNCHED("band_sums_kernel");
}

void DevicePca::covariance() {
    multiply_batches(m_blas.get(), m_shifted.data(), m_bands, static_cast<int64_t>(m_padded), device_batch,
                     m_batches, m_products.data());
    covariance_kernel<<<static_cast<unsigned>((m_bands * m_bands + 31) / 32), dim3(32, 8), 0, m_stream>>>(
        m_products.data(), m_bands, m_batches, m_sums.data(), static_cast<double>(m_pixels), m_matrix.data());
    HSI_CUDA_LAUNCHED("covariance_kernel");
}

void DevicePca::eigenproblem() {
    m_dense = false;
    int device = 0, most_shared = 0;
    HSI_CUDA_CHECK(cudaGetDevice(&device));
    HSI_CUDA_CHECK(cudaDeviceGetAttribute(&most_shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    const size_t shared = lanczos_shared(m_bands);
    if (m_components > most_pairs || m_bands > 256 || m_components >= m_bands ||
        shared + sizeof(LanczosShared) + 1024 > static_cast<size_t>(most_shared)) {
        dense_eigenproblem();
        return;
    }
    HSI_CUDA_CHECK(cudaFuncSetAttribute(lanczos_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(shared)));
    lanczos_kernel<<<1, lanczos_threads, shared, m_stream>>>(
        m_matrix.data(), m_bands, m_components, std::min(most_lanczos, m_bands), 1e-9, m_basis.data(),
        m_basis.data() + static_cast<size_t>(most_lanczos + 1) * static_cast<size_t>(m_bands),
        m_values.data(), m_vectors.data(), m_info.data());
    HSI_CUDA_LAUNCHED("lanczos_kernel");
    HSI_CUDA_CHECK(
        cudaMemcpyAsync(m_host_info, m_info.data(), 2 * sizeof(int), cudaMemcpyDeviceToHost, m_stream));
    HSI_CUDA_CHECK(cudaStreamSynchronize(m_stream));
    if (m_host_info[0] != 0) dense_eigenproblem();
}

void DevicePca::dense_eigenproblem() {
    m_dense = true;
    HSI_CUDA_CHECK(cudaMemcpyAsync(m_dense_matrix.data(), m_matrix.data(), m_matrix.bytes(),
                                   cudaMemcpyDeviceToDevice, m_stream));
    HSI_CUSOLVER_CHECK(cusolverDnXsyevd(
        m_solver.get(), nullptr, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, m_bands, CUDA_R_64F,
        m_dense_matrix.data(), m_bands, CUDA_R_64F, m_values.data() + m_bands, CUDA_R_64F,
        m_solver_work.data(), m_device_bytes, m_solver_host.data(), m_host_bytes, m_info.data()));
    pick_kernel<<<static_cast<unsigned>(m_components), 32, 0, m_stream>>>(
        m_values.data() + m_bands, m_dense_matrix.data(), m_bands, m_values.data(), m_vectors.data());
    HSI_CUDA_LAUNCHED("pick_kernel");
}

void DevicePca::project(float* out) {
    projection_kernel<<<static_cast<unsigned>(m_components), threads, 0, m_stream>>>(
        m_vectors.data(), m_sums.data(), m_bands, static_cast<double>(m_pixels), m_transform.data(),
        m_offset.data());
    HSI_CUDA_LAUNCHED("projection_kernel");
    transform_pitched(m_shifted.data(), m_bands, m_padded, m_pixels, m_transform.data(), m_offset.data(),
                      m_components, nullptr, out, m_stream);
}

void DevicePca::run(const float* cube, float* out) {
    centre(cube);
    covariance();
    eigenproblem();
    project(out);
}

void DevicePca::result(std::vector<double>& values, std::vector<double>& loadings,
                       std::vector<double>& mean) const {
    values.resize(static_cast<size_t>(m_components));
    loadings.resize(m_vectors.size());
    std::vector<float> centre(static_cast<size_t>(m_bands));
    std::vector<double> sums(centre.size());
    m_values.download(values.data(), values.size(), m_stream);
    m_vectors.download(loadings.data(), loadings.size(), m_stream);
    m_centre.download(centre.data(), centre.size(), m_stream);
    m_sums.download(sums.data(), sums.size(), m_stream);
    HSI_CUDA_CHECK(cudaStreamSynchronize(m_stream));
    mean.clear();
    for (size_t b = 0; b < centre.size(); ++b)
        mean.push_back(static_cast<double>(centre[b]) + sums[b] / static_cast<double>(m_pixels));
}

} // namespace hsi::pca::gpu
