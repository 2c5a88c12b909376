// SPDX-License-Identifier: MIT
// Matched filters against groups of columns on GPUs, all groups of a tile at a time: their pixels side by
// side, means, products, the shrinkage of each, factors in the place of the products, the targets' rows,
// scores. All in double precision, in an order that depends on a group's own pixels alone. Groups whose
// matrix may not bear an inverse, and those that have no scores, are left to the processor.
#include "core/valid_pixel.h"
#include "detect/column_task.h"
#include "detect/columns_cuda.h"
#include "detect/detect_cuda_lane.cuh"

#include <algorithm>
#include <cmath>

namespace hsi::detect {
namespace {

using cuda::DeviceBuffer;

constexpr int threads = 256;
constexpr int block = 32; ///< rows and columns of a matrix that a block of threads makes at a time
constexpr uint8_t is_good = 1, in_background = 2;

/// A group of a tile; found: by kernels.
struct DeviceGroup {
    int first = 0, width = 0; ///< samples of the tile's window
    int pixels = 0;
    int background = 0, valid = 0, varying = 0;
    int regular = 0;        ///< the matrix bears an inverse
    int without_target = 0; ///< a target is the mean
    __host__ __device__ bool scored() const {
        return regular != 0 && without_target == 0;
    } ///< else by the processor
    double share = 0;
};

struct ColumnWork {
    const float* raw = nullptr;    ///< the window: [band][line][sample]
    const uint8_t* mask = nullptr; ///< [line][sample]; null: all
    int64_t samples = 0, lines = 0;
    int bands = 0, groups = 0, targets = 0;
    int64_t pitch = 0; ///< pixels that a group has room for
    DeviceGroup* group = nullptr;
    float* x = nullptr;              ///< [group][band][pixel]
    uint8_t* state = nullptr;        ///< [group][pixel]
    double* mean = nullptr;          ///< [group][band]
    uint8_t* constant = nullptr;     ///< [group][band]
    double* matrix = nullptr;        ///< [group][band][band], lower
    double* weight = nullptr;        ///< [group][band]
    double* fourth = nullptr;        ///< [group][pixel]: |z|^4
    const double* spectra = nullptr; ///< [target][band]
    double* rows = nullptr;          ///< [group][target][band]
    double* scores = nullptr;        ///< [group][target][pixel]
    bool ledoit_wolf = false, absorption = false;
    double share = 0;
    // Of the tile's core.
    int64_t core_first = 0, core_samples = 0; ///< in the window
    __device__ const float* band(int g, int b) const {
        return x + (static_cast<int64_t>(g) * bands + b) * pitch;
    }
    __device__ double* matrix_of(int g) const { return matrix + static_cast<int64_t>(g) * bands * bands; }
};

/// The sum of a block's threads, the same whatever else runs; for all of them.
__device__ double block_sum(double v) {
    __shared__ double sums[threads];
    __syncthreads();
    sums[threadIdx.x] = v;
    for (int half = threads / 2; half > 0; half /= 2) {
        __syncthreads();
        if (static_cast<int>(threadIdx.x) < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    __syncthreads();
    return sums[0];
}

/// Pixel by pixel side by side, by way of shared memory: blocks of lines and samples are turned around.
__global__ void __launch_bounds__(threads) pack_groups(const ColumnWork w, const int* group_of) {
    __shared__ float part[block][block + 1];
    const int b = static_cast<int>(blockIdx.z);
    const int64_t s0 = static_cast<int64_t>(blockIdx.x) * block,
                  y0 = static_cast<int64_t>(blockIdx.y) * block;
    const int lane = static_cast<int>(threadIdx.x) % block, row = static_cast<int>(threadIdx.x) / block;
    for (int r = row; r < block; r += threads / block)
        if (s0 + lane < w.samples && y0 + r < w.lines)
            part[r][lane] = w.raw[(b * w.lines + y0 + r) * w.samples + s0 + lane];
    __syncthreads();
    for (int r = row; r < block; r += threads / block) {
        const int64_t s = s0 + r, y = y0 + lane;
        if (s >= w.samples || y >= w.lines) continue;
        const int g = group_of[s];
        if (g < 0) continue;
        const DeviceGroup& group = w.group[g];
        w.x[(static_cast<int64_t>(g) * w.bands + b) * w.pitch + y * group.width + (s - group.first)] =
            part[lane][r];
    }
}

/// Which pixels are valid and count; how many.
__global__ void __launch_bounds__(threads) look_at_groups(const ColumnWork w) {
    const int g = static_cast<int>(blockIdx.x);
    DeviceGroup& group = w.group[g];
    double valid = 0, counting = 0;
    for (int i = static_cast<int>(threadIdx.x); i < group.pixels; i += threads) {
        const bool good = is_valid_pixel(w.band(g, 0) + i, w.bands, w.pitch);
        const bool counts =
            good &&
            (w.mask == nullptr || w.mask[i / group.width * w.samples + group.first + i % group.width] != 0);
        w.state[g * w.pitch + i] = static_cast<uint8_t>((good ? is_good : 0) | (counts ? in_background : 0));
        valid += good;
        counting += counts;
    }
    valid = block_sum(valid);
    counting = block_sum(counting);
    if (threadIdx.x != 0) return;
    group.valid = static_cast<int>(valid);
    group.background = static_cast<int>(counting);
}

/// The mean of a band, and whether all values are the same.
__global__ void __launch_bounds__(threads) find_means(const ColumnWork w) {
    const int g = static_cast<int>(blockIdx.x), b = static_cast<int>(blockIdx.y);
    const DeviceGroup& group = w.group[g];
    const float* const x = w.band(g, b);
    const uint8_t* const state = w.state + g * w.pitch;
    double sum = 0;
    float low = INFINITY, high = -INFINITY;
    for (int i = static_cast<int>(threadIdx.x); i < group.pixels; i += threads)
        if (state[i] & in_background) {
            sum += static_cast<double>(x[i]);
            low = fminf(low, x[i]);
            high = fmaxf(high, x[i]);
        }
    __shared__ int differs;
    __shared__ float first;
    if (threadIdx.x == 0) {
        differs = 0;
        first = 0;
        for (int i = 0; i < group.pixels; ++i) // the first one that counts
            if (state[i] & in_background) {
                first = x[i];
                break;
            }
    }
    __syncthreads();
    if (low <= high && (low != first || high != first)) atomicOr(&differs, 1);
    sum = block_sum(sum);
    if (threadIdx.x != 0) return;
    const int64_t at = static_cast<int64_t>(g) * w.bands + b;
    w.constant[at] = differs == 0;
    w.mean[at] = differs == 0 ? static_cast<double>(first) : sum / group.background;
}

/// Sums of products of the pixels less their mean: a block of the lower triangle.
__global__ void __launch_bounds__(threads) find_products(const ColumnWork w) {
    __shared__ double row[block][block + 1], column[block][block + 1];
    int a = 0, left = static_cast<int>(blockIdx.y); // blocks row by row
    while (left > a) {
        left -= a + 1;
        ++a;
    }
    const int r0 = a * block, c0 = left * block, g = static_cast<int>(blockIdx.x);
    const DeviceGroup& group = w.group[g];
    const uint8_t* const state = w.state + g * w.pitch;
    const int tx = static_cast<int>(threadIdx.x) % 16, ty = static_cast<int>(threadIdx.x) / 16;
    double sum[2][2] = {};
    for (int from = 0; from < group.pixels; from += block) {
        const int lane = static_cast<int>(threadIdx.x) % block, i = from + lane;
        const bool counts = i < group.pixels && (state[i] & in_background) != 0;
        __syncthreads();
        for (int k = static_cast<int>(threadIdx.x) / block; k < block; k += threads / block) {
            const int r = r0 + k, c = c0 + k;
            const double* const mean = w.mean + static_cast<int64_t>(g) * w.bands;
            row[lane][k] = counts && r < w.bands ? static_cast<double>(w.band(g, r)[i]) - mean[r] : 0.0;
            column[lane][k] = counts && c < w.bands ? static_cast<double>(w.band(g, c)[i]) - mean[c] : 0.0;
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
    double* const m = w.matrix_of(g);
    for (int p = 0; p < 2; ++p)
        for (int q = 0; q < 2; ++q) {
            const int r = r0 + ty + 16 * p, c = c0 + tx + 16 * q;
            if (r < w.bands && c <= r) m[static_cast<int64_t>(r) * w.bands + c] = sum[p][q];
        }
}

/// |z|^4 of pixels, z on bands of unit variance.
__global__ void __launch_bounds__(threads) find_fourth_powers(const ColumnWork w) {
    const int g = static_cast<int>(blockIdx.x);
    const DeviceGroup& group = w.group[g];
    const int64_t first = static_cast<int64_t>(g) * w.bands;
    if (blockIdx.y == 0) // for the kernels that follow
        for (int b = static_cast<int>(threadIdx.x); b < w.bands; b += threads) {
            const double own = w.matrix_of(g)[static_cast<int64_t>(b) * (w.bands + 1)];
            w.weight[first + b] = own > 0 ? group.background / own : 0.0;
        }
    const int i = static_cast<int>(blockIdx.y) * threads + static_cast<int>(threadIdx.x);
    if (i >= group.pixels) return;
    double squared = 0;
    if (w.state[g * w.pitch + i] & in_background)
        for (int b = 0; b < w.bands; ++b) {
            const double own = w.matrix_of(g)[static_cast<int64_t>(b) * (w.bands + 1)];
            if (!(own > 0)) continue;
            const double z = static_cast<double>(w.band(g, b)[i]) - w.mean[first + b];
            squared += group.background / own * z * z;
        }
    w.fourth[g * w.pitch + i] = squared * squared;
}

/// The share of each group (BandShrinkage), whether its matrix bears an inverse, and the matrix: that of the
/// sums, shrunk. Bands that are constant have a 1 on the diagonal and nothing else.
__global__ void __launch_bounds__(threads) shrink_groups(const ColumnWork w) {
    const int g = static_cast<int>(blockIdx.x), n = w.bands;
    DeviceGroup& group = w.group[g];
    const int64_t first = static_cast<int64_t>(g) * n;
    double* const m = w.matrix_of(g);
    const double count = group.background;
    double varying = 0, trace = 0, used = 0;
    __shared__ double least;
    for (int b = static_cast<int>(threadIdx.x); b < n; b += threads)
        if (w.constant[first + b] == 0) {
            const double own = m[static_cast<int64_t>(b) * (n + 1)];
            varying += 1;
            trace += own;
            used += own > 0;
        }
    varying = block_sum(varying);
    trace = block_sum(trace);
    used = block_sum(used);
    if (threadIdx.x == 0) {
        least = INFINITY;
        for (int b = 0; b < n; ++b)
            if (w.constant[first + b] == 0) least = fmin(least, m[static_cast<int64_t>(b) * (n + 1)]);
    }
    __syncthreads();
    double share = w.share;
    if (w.ledoit_wolf) {
        double off = 0, fourth = 0;
        for (int r = static_cast<int>(threadIdx.x) / 32; r < n; r += threads / 32) // a warp a row
            for (int c = static_cast<int>(threadIdx.x) % 32; c < r; c += 32) {
                const double v = m[static_cast<int64_t>(r) * n + c];
                off += v * v * w.weight[first + r] * w.weight[first + c];
            }
        for (int i = static_cast<int>(threadIdx.x); i < group.pixels; i += threads)
            fourth += w.fourth[g * w.pitch + i];
        off = 2 * block_sum(off) / (count * count);
        fourth = block_sum(fourth);
        const double delta = off / used, beta = (fourth / count - (off + used)) / (used * count);
        share = off > 0 ? fmin(fmax(beta, 0.0), delta) / delta : 1.0;
    }
    const bool regular = group.background >= 2 && varying > 0 && least > 0 &&
                         share * least >= 2 * least_share * trace / varying;
    if (threadIdx.x == 0) {
        group.varying = static_cast<int>(varying);
        group.share = share;
        group.regular = regular;
    }
    if (!regular) return;
    const double unbiased = 1 / (count - 1), rest = (1 - share) * unbiased;
    for (int r = static_cast<int>(threadIdx.x) / 32; r < n; r += threads / 32)
        for (int c = static_cast<int>(threadIdx.x) % 32; c <= r; c += 32) {
            double& v = m[static_cast<int64_t>(r) * n + c];
            const bool left = w.constant[first + r] != 0 || w.constant[first + c] != 0;
            v = r == c ? (left ? 1.0 : v * unbiased) : left ? 0.0 : v * rest;
        }
}

/// The Cholesky factor of a group's matrix, in its place, by panels of `block` columns.
__global__ void __launch_bounds__(threads) factorise_groups(const ColumnWork w) {
    __shared__ double top[block][block + 1], row[block][block + 1], column[block][block + 1];
    const int g = static_cast<int>(blockIdx.x), n = w.bands;
    if (w.group[g].regular == 0) return;
    double* const m = w.matrix_of(g);
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
        // Rows below: a thread each.
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
        // What is right of the panel, block by block.
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

/// The row of a target in a group: M^-1 z / z'M^-1 z.
__global__ void __launch_bounds__(threads) find_rows(const ColumnWork w) {
    extern __shared__ double z[];
    const int g = static_cast<int>(blockIdx.x), target = static_cast<int>(blockIdx.y), n = w.bands;
    DeviceGroup& group = w.group[g];
    if (group.regular == 0) return;
    const int64_t first = static_cast<int64_t>(g) * n;
    const double* const m = w.matrix_of(g);
    for (int b = static_cast<int>(threadIdx.x); b < n; b += threads) {
        const double t = w.spectra[static_cast<int64_t>(target) * n + b], mean = w.mean[first + b];
        z[b] = w.constant[first + b] != 0 ? 0.0 : w.absorption ? t * mean : t - mean;
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
    const bool enough = w.absorption ? contrast > 0 && isfinite(1 / contrast) : contrast >= least_contrast;
    if (!enough) { // the processor says so
        if (threadIdx.x == 0) group.without_target = 1;
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
    double* const to = w.rows + (static_cast<int64_t>(g) * w.targets + target) * n;
    for (int b = static_cast<int>(threadIdx.x); b < n; b += threads)
        to[b] = z[b] / contrast;
}

/// Decider::best()
__device__ float best_target(const double* scores, int count, int64_t pitch, const gpu::Output& out) {
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

/// Scores of the pixels of a group, into the tile's core.
__global__ void __launch_bounds__(threads) score_groups(const ColumnWork w, const gpu::Output out) {
    const int g = static_cast<int>(blockIdx.x);
    const DeviceGroup& group = w.group[g];
    const int i = static_cast<int>(blockIdx.y) * threads + static_cast<int>(threadIdx.x);
    if (!group.scored() || i >= group.pixels) return;
    const int64_t first = static_cast<int64_t>(g) * w.bands, line = i / group.width,
                  sample = group.first + i % group.width - w.core_first;
    const bool good = (w.state[g * w.pitch + i] & is_good) != 0;
    double* const scores = w.scores + static_cast<int64_t>(g) * w.targets * w.pitch + i;
    for (int t = 0; good && t < w.targets; ++t) {
        const double* const row = w.rows + (static_cast<int64_t>(g) * w.targets + t) * w.bands;
        double sum = 0;
        for (int b = 0; b < w.bands; ++b)
            sum = fma(row[b], static_cast<double>(w.band(g, b)[i]) - w.mean[first + b], sum);
        scores[t * w.pitch] = sum;
    }
    if (sample < 0 || sample >= w.core_samples) return;
    const int64_t at = line * w.core_samples + sample;
    for (int t = 0; t < w.targets; ++t)
        out.scores[t * w.lines * w.core_samples + at] =
            good ? static_cast<float>(scores[t * w.pitch]) : nanf("");
    if (out.map != nullptr) out.map[at] = good ? best_target(scores, w.targets, w.pitch, out) : nanf("");
}

/// Groups that a tile of so many samples has a part of.
int64_t most_groups(const ColumnTask& task, int64_t samples) {
    return std::min<int64_t>(samples, samples / task.columns.width + 2);
}

/// A lane: the device, and the processor for what is left to it.
class ColumnDeviceLane final : public CudaWorker {
  public:
    ColumnDeviceLane(int ordinal, const ColumnTask& task, const TileLimits& l)
        : CudaWorker(ordinal, task.scene.bands, output_list(task.scores(), task.decision), task.decision, l),
          m_task(task), m_pitch((task.pixels() + 31) / 32 * 32),
          m_groups(static_cast<size_t>(most_groups(task, l.window_samples))),
          m_of_sample(static_cast<size_t>(l.window_samples)), m_mask(task.mask ? window_pixels(l) : 0),
          m_x(m_groups.size() * bands() * pitch()), m_state(m_groups.size() * pitch()),
          m_mean(m_groups.size() * bands()), m_constant(m_mean.size()),
          m_matrix(m_groups.size() * bands() * bands()), m_weight(m_mean.size()),
          m_fourth(m_groups.size() * pitch()), m_spectra(static_cast<size_t>(task.scores()) * bands()),
          m_rows(m_groups.size() * m_spectra.size()),
          m_scores(m_groups.size() * static_cast<size_t>(task.scores()) * pitch()),
          m_host_mask(task.mask ? window_pixels(l) : 1) {
        std::vector<double> spectra;
        for (const auto& one : task.options.targets.spectra)
            spectra.insert(spectra.end(), one.begin(), one.end());
        m_spectra.upload(spectra.data(), spectra.size(), m_stream.get());
        m_stream.synchronize();
    }
    static uint64_t device_bytes(const ColumnTask& task, const TileLimits& l) {
        const auto groups = static_cast<uint64_t>(most_groups(task, l.window_samples)),
                   pixels = static_cast<uint64_t>((task.pixels() + 31) / 32 * 32),
                   all = static_cast<uint64_t>(task.scene.bands),
                   targets = static_cast<uint64_t>(task.scores());
        return common_bytes(task.scene.bands, output_list(task.scores(), task.decision), l) +
               groups * (pixels * (4 * all + 9 + 8 * targets) + 8 * all * (all + 2 + targets) + all +
                         sizeof(DeviceGroup)) +
               static_cast<uint64_t>(l.window_samples) * 4 + (task.mask ? window_pixels(l) : 0) +
               8 * all * targets;
    }

    void process(const Tile& tile, const CubeView<float>& in,
                 const std::vector<CubeView<float>>& out) override {
        const Columns& c = m_task.columns;
        m_first = c.group(tile.core.x);
        m_count = static_cast<size_t>(c.group(tile.core.right() - 1) - m_first + 1);
        m_found.assign(m_count, {});
        std::vector<int> of_sample(static_cast<size_t>(in.samples), -1);
        for (size_t g = 0; g < m_count; ++g) {
            const int64_t group = m_first + static_cast<int64_t>(g), x = m_task.first_sample(group),
                          width = m_task.end_sample(group) - x;
            m_found[g].first = static_cast<int>(x - tile.window.x);
            m_found[g].width = static_cast<int>(width);
            m_found[g].pixels = static_cast<int>(width * in.lines);
            std::fill_n(of_sample.begin() + (x - tile.window.x), width, static_cast<int>(g));
        }
        m_groups.upload(m_found.data(), m_count, m_stream.get());
        m_of_sample.upload(of_sample.data(), of_sample.size(), m_stream.get());
        if (m_task.mask != nullptr) {
            for (int64_t y = 0; y < in.lines; ++y)
                for (int64_t x = 0; x < in.samples; ++x)
                    m_host_mask[static_cast<size_t>(y * in.samples + x)] =
                        m_task.mask->at(tile.window.y + y, tile.window.x + x);
            m_mask.upload(m_host_mask.data(), static_cast<size_t>(in.lines * in.samples), m_stream.get());
        }
        CudaWorker::process(tile, in, out);
        tell(tile, in, out);
    }

    /// What devices have found, and the processor, where it had to.
    std::vector<ColumnLane::Found> found;
    int64_t valid = 0, invalid = 0;
    std::unique_ptr<ColumnLane> processor; ///< null: it had nothing to do

  private:
    size_t bands() const { return static_cast<size_t>(m_task.scene.bands); }
    size_t pitch() const { return static_cast<size_t>(m_pitch); }

    void launch(const Tile& tile, const CubeView<float>& in, gpu::Output& to, cudaStream_t stream) override {
        ColumnWork w;
        w.raw = m_raw;
        w.mask = m_mask.data();
        w.samples = in.samples;
        w.lines = in.lines;
        w.bands = m_task.scene.bands;
        w.groups = static_cast<int>(m_count);
        w.targets = m_task.scores();
        w.pitch = m_pitch;
        w.group = m_groups.data();
        w.x = m_x.data();
        w.state = m_state.data();
        w.mean = m_mean.data();
        w.constant = m_constant.data();
        w.matrix = m_matrix.data();
        w.weight = m_weight.data();
        w.fourth = m_fourth.data();
        w.spectra = m_spectra.data();
        w.rows = m_rows.data();
        w.scores = m_scores.data();
        w.ledoit_wolf = m_task.options.ledoit_wolf;
        w.absorption = m_task.options.targets.absorption;
        w.share = m_task.options.conditioning.shrinkage;
        w.core_first = tile.core.x - tile.window.x;
        w.core_samples = tile.core.w;
        const auto groups = static_cast<unsigned>(m_count);
        const auto parts = [](int64_t n, int64_t of) { return static_cast<unsigned>((n + of - 1) / of); };
        const unsigned panels = parts(w.bands, block);
        pack_groups<<<dim3(parts(w.samples, block), parts(w.lines, block), static_cast<unsigned>(w.bands)),
                      threads, 0, stream>>>(w, m_of_sample.data());
        HSI_CUDA_LAUNCHED("pack_groups");
        look_at_groups<<<groups, threads, 0, stream>>>(w);
        HSI_CUDA_LAUNCHED("look_at_groups");
        find_means<<<dim3(groups, static_cast<unsigned>(w.bands)), threads, 0, stream>>>(w);
        HSI_CUDA_LAUNCHED("find_means");
        find_products<<<dim3(groups, panels * (panels + 1) / 2), threads, 0, stream>>>(w);
        HSI_CUDA_LAUNCHED("find_products");
        if (w.ledoit_wolf) {
            find_fourth_powers<<<dim3(groups, parts(m_pitch, threads)), threads, 0, stream>>>(w);
            HSI_CUDA_LAUNCHED("find_fourth_powers");
        }
        shrink_groups<<<groups, threads, 0, stream>>>(w);
        HSI_CUDA_LAUNCHED("shrink_groups");
        factorise_groups<<<groups, threads, 0, stream>>>(w);
        HSI_CUDA_LAUNCHED("factorise_groups");
        find_rows<<<dim3(groups, static_cast<unsigned>(w.targets)), threads, bands() * sizeof(double),
                    stream>>>(w);
        HSI_CUDA_LAUNCHED("find_rows");
        score_groups<<<dim3(groups, parts(m_pitch, threads)), threads, 0, stream>>>(w, to);
        HSI_CUDA_LAUNCHED("score_groups");
        HSI_CUDA_CHECK(cudaMemcpyAsync(m_found.data(), m_groups.data(), m_count * sizeof(DeviceGroup),
                                       cudaMemcpyDeviceToHost, stream));
    }

    /// What became of the groups; those without scores go to the processor.
    void tell(const Tile& tile, const CubeView<float>& in, const std::vector<CubeView<float>>& out) {
        for (size_t g = 0; g < m_count; ++g) {
            const int64_t group = m_first + static_cast<int64_t>(g), x = m_task.first_sample(group);
            const DeviceGroup& one = m_found[g];
            if (!one.scored()) {
                if (!processor) processor = make_column_lane(m_task);
                processor->take_groups(tile, in, group, group + 1, out);
                continue;
            }
            const int64_t from = std::max(x, tile.core.x),
                          to = std::min(m_task.end_sample(group), tile.core.right());
            for (int64_t line = 0; line < tile.core.h; ++line)
                for (int64_t s = from; s < to; ++s)
                    ++(std::isnan(out[0].row(0, line)[s - tile.core.x]) ? invalid : valid);
            if (x < tile.core.x) continue;
            GroupRecord record;
            record.state = GroupState::scored;
            record.pixels = one.background;
            record.shrinkage = one.share;
            found.push_back({group - m_task.columns.group(0), record});
        }
    }

    const ColumnTask& m_task;
    const int64_t m_pitch;
    DeviceBuffer<DeviceGroup> m_groups;
    DeviceBuffer<int> m_of_sample;
    DeviceBuffer<uint8_t> m_mask;
    DeviceBuffer<float> m_x;
    DeviceBuffer<uint8_t> m_state;
    DeviceBuffer<double> m_mean;
    DeviceBuffer<uint8_t> m_constant;
    DeviceBuffer<double> m_matrix, m_weight, m_fourth, m_spectra, m_rows, m_scores;
    std::vector<uint8_t> m_host_mask;
    std::vector<DeviceGroup> m_found; ///< of the tile
    int64_t m_first = 0;              ///< group of the tile
    size_t m_count = 0;
};

class CudaColumns final : public cuda::LaneOperation<ColumnDetection> {
  public:
    CudaColumns(std::vector<CudaDevice> devices, ColumnTask task, double& kernel_seconds)
        : LaneOperation(std::move(devices), std::move(task)), m_kernel_seconds(kernel_seconds) {}
    uint64_t preferred_bytes() const override { return uint64_t{64} << 20; }
    uint64_t scratch_bytes(const TileLimits& l) const override {
        return column_lane_bytes(task()) + window_pixels(l);
    }
    uint64_t device_bytes(const TileLimits& l) const override {
        return ColumnDeviceLane::device_bytes(task(), l);
    }
    void stop(stream::Worker& worker) override {
        const auto& lane = static_cast<const ColumnDeviceLane&>(worker);
        take(lane.valid, lane.invalid, 0, lane.found);
        if (lane.processor) take(*lane.processor);
        m_kernel_seconds += lane.kernel_seconds;
    }

  private:
    std::unique_ptr<stream::Worker> make_lane(const cuda::LaneDevice& on, const TileLimits& l) override {
        return std::make_unique<ColumnDeviceLane>(on.ordinal, task(), l);
    }
    double& m_kernel_seconds;
};

} // namespace

std::unique_ptr<GroupedDetection> make_cuda_columns(std::vector<CudaDevice> devices, ColumnTask task,
                                                    double& kernel_seconds) {
    constexpr int most_bands = 4096; // a vector of them lies in shared memory
    if (!columns_on_devices(task.options) || !task.finite || task.scene.bands > most_bands) return nullptr;
    return std::make_unique<CudaColumns>(std::move(devices), std::move(task), kernel_seconds);
}

} // namespace hsi::detect
