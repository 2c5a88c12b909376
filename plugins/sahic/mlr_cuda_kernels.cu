// SPDX-License-Identifier: MIT
#include "sahic/mlr_cuda_kernels.cuh"

#include "core/valid_pixel.h"
#include "cuda/exp.cuh"

#include <algorithm>
#include <limits>

namespace hsi::sahic::gpu {
namespace {

constexpr int threads = 128;
constexpr int64_t product_bytes = int64_t{128} << 20;
/// Largest number of pixels in a product; small tiles also use full products.
constexpr int largest_product = 16384;
constexpr int chunk = 16; ///< number of sums that one thread keeps in registers

unsigned blocks_for(int64_t n, int64_t each = threads) {
    return static_cast<unsigned>((n + each - 1) / each);
}

__global__ void valid_kernel(const float* __restrict__ raw, int64_t pixels, int bands, unsigned char* valid) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= pixels) return;
    valid[i] = is_valid_pixel(raw + i, bands, pixels);
}

/// Returns the index in the window of a pixel of the core.
__device__ int64_t window_index(int64_t i, int64_t core_samples, int64_t window_samples, int64_t origin) {
    return origin + i / core_samples * window_samples + i % core_samples;
}

__global__ void scale_kernel(const ScaleWork w) {
    const int local = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (local >= w.pixels) return;
    const int64_t i = w.first + local;
    const int64_t at = i < w.core_pixels ? window_index(i, w.core_samples, w.window_samples, w.origin) : 0;
    const bool ok = i < w.core_pixels && w.valid[at];
    double sum = 0;
    for (int f = 0; f < w.padded_features; ++f) {
        const double v =
            ok && f < w.features ? static_cast<double>(w.raw[f * w.window_pixels + at]) / w.scale : 0.0;
        w.x[static_cast<int64_t>(f) * w.pixels + local] = v;
        sum = fma(v, v, sum);
    }
    w.x2[local] = sum;
}

/// Sums weight times kernel value over part blockIdx.y of the anchors, for N outputs starting at `from`. Each
/// thread processes two pixels. If `Fresh` is true, w.product holds -2 x'a for each pixel x and anchor a.
/// Otherwise it holds the kernel values that an earlier launch stored, for which `Keep` was true.
template <int N, bool Fresh, bool Keep>
__global__ void logits_kernel(const LogitsWork w, int from) {
    const int i = 2 * static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x),
              part = static_cast<int>(blockIdx.y);
    if (i >= w.pixels) return;
    double one[N], two[N];
#pragma unroll
    for (int t = 0; t < N; ++t)
        one[t] = two[t] = 0;
    const double2 norm = *reinterpret_cast<const double2*>(w.x2 + i);
    const double gamma = -w.gamma;
    const int64_t begin = w.anchors * part / w.parts, end = w.anchors * (part + 1) / w.parts;
    const auto* weight = reinterpret_cast<const double2*>(w.weights + begin * w.pitch + from);
    auto* at = reinterpret_cast<double2*>(w.product + begin * w.pixels + i);
#pragma unroll 4
    for (int64_t a = begin; a < end; ++a, at += w.pixels / 2, weight += w.pitch / 2) {
        double2 value = *at;
        if (Fresh) {
            const double a2 = __ldg(w.a2 + a);
            value.x = cuda::exp_of_negative(gamma * fmax(0.0, norm.x + a2 + value.x));
            value.y = cuda::exp_of_negative(gamma * fmax(0.0, norm.y + a2 + value.y));
            if (Keep) *at = value;
        }
#pragma unroll
        for (int t = 0; t < N / 2; ++t) {
            const double2 q = __ldg(weight + t);
            one[2 * t] = fma(q.x, value.x, one[2 * t]);
            two[2 * t] = fma(q.x, value.y, two[2 * t]);
            one[2 * t + 1] = fma(q.y, value.x, one[2 * t + 1]);
            two[2 * t + 1] = fma(q.y, value.y, two[2 * t + 1]);
        }
    }
#pragma unroll
    for (int t = 0; t < N; ++t)
        if (from + t < w.outputs)
            *reinterpret_cast<double2*>(w.sums +
                                        static_cast<int64_t>((from + t) * w.parts + part) * w.pixels + i) =
                make_double2(one[t], two[t]);
}

template <int N>
void launch_logits_of(const LogitsWork& w, int from, bool more, cudaStream_t stream) {
    const dim3 grid(blocks_for(w.pixels / 2), static_cast<unsigned>(w.parts));
    if (from > 0)
        logits_kernel<N, false, false><<<grid, threads, 0, stream>>>(w, from);
    else if (more)
        logits_kernel<N, true, true><<<grid, threads, 0, stream>>>(w, from);
    else
        logits_kernel<N, true, false><<<grid, threads, 0, stream>>>(w, from);
    HSI_CUDA_LAUNCHED("logits");
}

__global__ void softmax_kernel(const SoftmaxWork w) {
    const int local = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    const int64_t i = w.first + local;
    const bool there = local < w.pixels && i < w.core_pixels;
    int best = -1;
    if (there) {
        const bool valid = w.valid[window_index(i, w.core_samples, w.window_samples, w.origin)];
        const float none = nanf("");
        float confidence = none, value = none;
        const auto logit = [&](int o) {
            return o < w.outputs ? w.sums[static_cast<int64_t>(o * w.parts) * w.pixels + local] : 0.0;
        };
        best = w.outputs + 1; // marks an invalid pixel
        if (valid) {
            // The last class has logit 0. If several classes are equal, the first one wins.
            double top = 0, sum = 0;
            for (int o = 0; o < w.outputs; ++o) {
                double z = w.constant[o];
                double* part = w.sums + static_cast<int64_t>(o * w.parts) * w.pixels + local;
                for (int n = 0; n < w.parts; ++n)
                    z += part[static_cast<int64_t>(n) * w.pixels];
                *part = z;
                top = fmax(top, z);
            }
            double highest = -1;
            for (int o = 0; o <= w.outputs; ++o) {
                const double p = exp(logit(o) - top);
                sum += p;
                if (p > highest) {
                    highest = p;
                    best = o;
                }
            }
            const double factor = 1.0 / sum;
            confidence = static_cast<float>(highest * factor);
            value = w.class_value[best];
            if (w.probabilities)
                for (int o = 0; o <= w.outputs; ++o)
                    w.probabilities[o * w.core_pixels + i] = static_cast<float>(exp(logit(o) - top) * factor);
        } else if (w.probabilities) {
            for (int o = 0; o <= w.outputs; ++o)
                w.probabilities[o * w.core_pixels + i] = none;
        }
        if (w.map) w.map[i] = value;
        if (w.confidence) w.confidence[i] = confidence;
    }
    const unsigned same = __match_any_sync(~0u, best);
    if (there && (threadIdx.x & 31u) == static_cast<unsigned>(__ffs(static_cast<int>(same)) - 1))
        atomicAdd(w.counts + best, __popc(same));
}

__global__ void weight_kernel(const WeightWork w) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= w.core_samples * w.core_lines) return;
    const int64_t x = i % w.core_samples, y = i / w.core_samples;
    const int64_t sx = w.core_x + x, sy = w.core_y + y; // position in the scene
    const int64_t at = w.origin + y * w.window_samples + x;
    const bool valid = w.valid[at], wraps = w.first_line != nullptr;
    const bool last_sample = sx + 1 == w.samples, last_line = sy + 1 == w.lines;
    bool right = valid, below = valid;
    if (!last_sample)
        right = right && w.valid[at + 1];
    else
        right = right && wraps && w.samples > 1 && w.first_sample_valid[sy];
    if (!last_line)
        below = below && w.valid[at + w.window_samples];
    else
        below = below && wraps && w.lines > 1 && w.first_line_valid[sx];
    float sum = 0;
    // The differences are added band by band, first right, then below, without fused operations. Therefore
    // every tile and the CPU compute the same bits.
    for (int b = 0; b < w.bands; ++b) {
        const float* v = w.raw + b * w.window_pixels + at;
        if (right) {
            const float d = __fsub_rn(last_sample ? w.first_sample[b * w.lines + sy] : v[1], *v);
            sum = __fadd_rn(sum, __fmul_rn(d, d));
        }
        if (below) {
            const float d = __fsub_rn(last_line ? w.first_line[b * w.samples + sx] : v[w.window_samples], *v);
            sum = __fadd_rn(sum, __fmul_rn(d, d));
        }
    }
    w.out[i] = static_cast<float>(1.0 / (1.0 + sqrt(static_cast<double>(sum)) / w.scale));
}

// ---- LORSAL

__global__ void kernel_matrix_kernel(double* k, const double* __restrict__ squares, int64_t samples,
                                     double gamma) {
    // The grid has 32 x 32 tiles of the upper triangle. The mirror image is written through shared memory.
    __shared__ double tile[32][33];
    const int64_t ti = blockIdx.x, tj = blockIdx.y; // row and column of the tile, column-major
    if (ti > tj) return;
    const int64_t i = ti * 32 + threadIdx.x;
    for (int r = static_cast<int>(threadIdx.y); r < 32; r += static_cast<int>(blockDim.y)) {
        const int64_t j = tj * 32 + r;
        double value = 0;
        if (i < samples && j < samples && i <= j) {
            const double distance =
                i == j ? 0.0 : fmax(0.0, squares[i] + squares[j] - 2 * k[j * samples + i]);
            value = exp(-gamma * distance);
        }
        tile[threadIdx.x][r] = value; // [row][column]
    }
    __syncthreads();
    for (int r = static_cast<int>(threadIdx.y); r < 32; r += static_cast<int>(blockDim.y)) {
        const int64_t j = tj * 32 + r;
        if (i < samples && j < samples && i <= j) k[j * samples + i] = tile[threadIdx.x][r];
        // The row of the element is in tile column tj, and its column in tile row ti.
        const int64_t row = tj * 32 + threadIdx.x, column = ti * 32 + r;
        if (row < samples && column < samples && row > column)
            k[column * samples + row] = tile[r][threadIdx.x];
    }
}

/// Returns the sum over the block to thread 0. The order of additions is fixed.
__device__ double block_sum(double v) {
    __shared__ double warps[32];
    for (int o = 16; o > 0; o /= 2)
        v += __shfl_down_sync(~0u, v, o);
    __syncthreads();
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x == 0)
        for (unsigned i = 1; i < blockDim.x / 32; ++i)
            v += warps[i];
    return v;
}

__global__ void border_kernel(const double* __restrict__ k, int64_t samples, double* r) {
    const int64_t j = blockIdx.x, d = samples + 1;
    double sum = 0;
    for (int64_t i = threadIdx.x; i < samples; i += blockDim.x)
        sum += k[j * samples + i];
    sum = block_sum(sum);
    if (threadIdx.x != 0) return;
    r[j + 1] = r[(j + 1) * d] = sum;
    if (j == 0) r[0] = static_cast<double>(samples);
}

__global__ void residual_kernel(const ResidualWork w) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= w.samples) return;
    const int64_t d = w.samples + 1;
    const int mine = w.label[i];
    double top = 0, of_mine = 0;
    for (int k = 0; k < w.outputs; ++k) {
        const double z = w.z[k * w.samples + i] + w.w[k * d];
        w.z[k * w.samples + i] = z;
        top = fmax(top, z);
        if (k == mine) of_mine = z;
    }
    double sum = exp(-top);
    for (int k = 0; k < w.outputs; ++k) {
        const double e = exp(w.z[k * w.samples + i] - top);
        w.z[k * w.samples + i] = e;
        sum += e;
    }
    w.losses[i] = top - of_mine + log(sum);
    for (int k = 0; k < w.outputs; ++k)
        w.z[k * w.samples + i] = w.z[k * w.samples + i] / sum - (k == mine ? 1.0 : 0.0);
}

__global__ void right_side_kernel(int64_t samples, double beta, const double* __restrict__ v,
                                  const double* __restrict__ multiplier, const double* __restrict__ r,
                                  double* g) {
    const int64_t d = samples + 1, k = blockIdx.y;
    if (blockIdx.x == 0) { // the sum for the constant
        double sum = 0;
        for (int64_t i = threadIdx.x; i < samples; i += blockDim.x)
            sum += r[k * samples + i];
        sum = block_sum(sum);
        if (threadIdx.x == 0) g[k * d] = beta * (v[k * d] + multiplier[k * d]) - sum;
        return;
    }
    const int64_t i = static_cast<int64_t>(blockIdx.x - 1) * blockDim.x + threadIdx.x + 1;
    if (i < d) g[k * d + i] = beta * (v[k * d + i] + multiplier[k * d + i]) - g[k * d + i];
}

/// Solves the shifted systems. B = 1/2 (I - 1 1'/K) has the eigenvalue 1/(2K) along the vector of ones, and
/// 1/2 in all orthogonal directions.
__global__ void shifted_kernel(int64_t d, int outputs, double beta, const double* __restrict__ values,
                               const double* __restrict__ next, double* turned) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= d) return;
    const double s = fmax(values[i], 0.0);
    double mean_next = 0, mean_w = 0;
    for (int k = 0; k < outputs; ++k) {
        mean_next += next[k * d + i] / outputs;
        mean_w += turned[k * d + i] / outputs;
    }
    const double along = s / (2.0 * (outputs + 1)), across = s / 2.0;
    const double mean = (mean_next + along * mean_w) / (along + beta);
    for (int k = 0; k < outputs; ++k)
        turned[k * d + i] =
            mean + (next[k * d + i] - mean_next + across * (turned[k * d + i] - mean_w)) / (across + beta);
}

__global__ void soft_kernel(int64_t count, double threshold, double growth, const double* __restrict__ w,
                            double* v, double* multiplier) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const double t = w[i] - multiplier[i];
    const double kept = t > threshold ? t - threshold : t < -threshold ? t + threshold : 0.0;
    v[i] = kept;
    multiplier[i] = (kept - t) / growth;
}

__global__ void objective_kernel(const double* __restrict__ losses, int64_t samples,
                                 const double* __restrict__ v, int64_t count, double lambda, double* out) {
    double loss = 0, norm = 0;
    for (int64_t i = threadIdx.x; i < samples; i += blockDim.x)
        loss += losses[i];
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x)
        norm += fabs(v[i]);
    loss = block_sum(loss);
    norm = block_sum(norm);
    if (threadIdx.x == 0) *out = loss + lambda * norm;
}

} // namespace

Products::Products(int features_, int64_t anchors, int outputs) {
    features = std::max(4, (features_ + 3) / 4 * 4);
    pitch = std::max(chunk, (outputs + chunk - 1) / chunk * chunk);
    parts = static_cast<int>(std::clamp<int64_t>(anchors / 32, 1, 16));
    const int64_t bytes = 8 * std::max<int64_t>({anchors, features, int64_t{parts} * outputs});
    pixels = static_cast<int>(std::clamp<int64_t>(product_bytes / bytes / 256 * 256, 256, largest_product));
}

void launch_valid(const float* raw, int64_t pixels, int bands, unsigned char* valid, cudaStream_t stream) {
    valid_kernel<<<blocks_for(pixels), threads, 0, stream>>>(raw, pixels, bands, valid);
    HSI_CUDA_LAUNCHED("valid");
}

void launch_scale(const ScaleWork& work, cudaStream_t stream) {
    scale_kernel<<<blocks_for(work.pixels), threads, 0, stream>>>(work);
    HSI_CUDA_LAUNCHED("scale");
}

void launch_logits(const LogitsWork& work, cudaStream_t stream) {
    for (int from = 0; from < work.outputs; from += chunk) {
        const int left = work.outputs - from;
        const bool more = left > chunk;
        if (left <= 4)
            launch_logits_of<4>(work, from, more, stream);
        else if (left <= 8)
            launch_logits_of<8>(work, from, more, stream);
        else
            launch_logits_of<chunk>(work, from, more, stream);
    }
}

void launch_softmax(const SoftmaxWork& work, cudaStream_t stream) {
    softmax_kernel<<<blocks_for(work.pixels), threads, 0, stream>>>(work);
    HSI_CUDA_LAUNCHED("softmax");
}

void launch_weight(const WeightWork& work, cudaStream_t stream) {
    weight_kernel<<<blocks_for(work.core_samples * work.core_lines), threads, 0, stream>>>(work);
    HSI_CUDA_LAUNCHED("weight");
}

void launch_kernel_matrix(double* k, const double* squares, int64_t samples, double gamma,
                          cudaStream_t stream) {
    const dim3 grid(blocks_for(samples, 32), blocks_for(samples, 32));
    kernel_matrix_kernel<<<grid, dim3(32, 8), 0, stream>>>(k, squares, samples, gamma);
    HSI_CUDA_LAUNCHED("kernel matrix");
}

void launch_border(const double* k, int64_t samples, double* r, cudaStream_t stream) {
    border_kernel<<<static_cast<unsigned>(samples), 256, 0, stream>>>(k, samples, r);
    HSI_CUDA_LAUNCHED("border");
}

void launch_residual(const ResidualWork& work, cudaStream_t stream) {
    residual_kernel<<<blocks_for(work.samples), threads, 0, stream>>>(work);
    HSI_CUDA_LAUNCHED("residual");
}

void launch_right_side(int64_t samples, int outputs, double beta, const double* v, const double* multiplier,
                       const double* r, double* g_to_rhs, cudaStream_t stream) {
    const dim3 grid(blocks_for(samples, 256) + 1, static_cast<unsigned>(outputs));
    right_side_kernel<<<grid, 256, 0, stream>>>(samples, beta, v, multiplier, r, g_to_rhs);
    HSI_CUDA_LAUNCHED("right side");
}

void launch_shifted(int64_t d, int outputs, double beta, const double* values, const double* next,
                    double* turned, cudaStream_t stream) {
    shifted_kernel<<<blocks_for(d), threads, 0, stream>>>(d, outputs, beta, values, next, turned);
    HSI_CUDA_LAUNCHED("shifted");
}

void launch_soft(int64_t count, double threshold, double growth, const double* w, double* v,
                 double* multiplier, cudaStream_t stream) {
    soft_kernel<<<blocks_for(count), threads, 0, stream>>>(count, threshold, growth, w, v, multiplier);
    HSI_CUDA_LAUNCHED("soft");
}

void launch_objective(const double* losses, int64_t samples, const double* v, int64_t count, double lambda,
                      double* out, cudaStream_t stream) {
    objective_kernel<<<1, 1024, 0, stream>>>(losses, samples, v, count, lambda, out);
    HSI_CUDA_LAUNCHED("objective");
}

} // namespace hsi::sahic::gpu
