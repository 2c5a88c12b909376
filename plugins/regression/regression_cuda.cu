// SPDX-License-Identifier: MIT
// hsi_cuda_regression.so: estimates on GPUs, in double precision throughout. Pixels are processed in batches
// whose size depends only on the model. Batches are always full, so results do not depend on the tiling. A
// thread loads, transforms and standardises a pixel. Products with rows of weights (components, samples,
// L^-1) are matrix products of cuBLAS. The last kernel computes the estimate, the standard deviation and the
// outside flag from the products.
#include "core/valid_pixel.h"
#include "cuda/copy.h"
#include "cuda/cublas.h"
#include "cuda/device.h"
#include "cuda/device_buffer.h"
#include "cuda/exp.cuh"
#include "cuda/lane_operation.h"
#include "cuda/stream.h"
#include "regression/regression.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace hsi::regression {
namespace {

using cuda::DeviceBuffer;
using stream::TileLimits;

constexpr int threads = 128;
constexpr int kernel_rows = 8; ///< number of kernel values that a thread computes
/// Rows per matrix product; in a triangular matrix, the rows end at the diagonal.
constexpr size_t row_block = 256;
constexpr uint64_t batch_bytes = uint64_t{256} << 20;
constexpr uint64_t largest_batch = 65536;
constexpr uint64_t cublas_bytes = uint64_t{64} << 20; ///< size of the workspace of cuBLAS

// Returns the number of columns padded to a multiple of 32 bytes, as the matrix units require.
size_t filled_up(size_t columns) { return (columns + 3) / 4 * 4; }

uint64_t bytes_of(const math::RowPanels& panels) { return 8 * panels.results() * filled_up(panels.length()); }

/// The sizes of a batch of pixels of a model.
struct Batch {
    size_t bands = 0;  ///< largest number of bands before or after the transform
    size_t pixels = 0; ///< a multiple of `threads`
    explicit Batch(const Part& part) {
        const auto& w = part.fitted.weights();
        const auto& transform = part.fitted.model().transform;
        bands = std::max(transform.inputs(), transform.outputs());
        doubles = 2 * bands + w.rows.results() + w.samples.results() + w.spread.results() + 3;
        pixels =
            std::clamp<uint64_t>(batch_bytes / (8 * doubles), threads, largest_batch) / threads * threads;
    }
    /// Returns the number of doubles in the buffer of a batch.
    uint64_t room() const { return doubles * pixels; }

  private:
    uint64_t doubles = 0; ///< doubles per pixel
};

/// Weighted sums of bands. The terms of sum j are at [begin[j], begin[j + 1]).
struct Sums {
    int count = 0;
    const int *begin = nullptr, *source = nullptr;
    const double* weight = nullptr;
    template <class Add>
    __device__ double sum(int j, const Add& add) const {
        double sum = 0;
        for (int k = begin[j]; k < begin[j + 1]; ++k)
            sum = add(sum, weight[k], source[k]);
        return sum;
    }
};

class DeviceSums {
  public:
    explicit DeviceSums(const std::vector<math::ResampledBand>& bands)
        : m_count(static_cast<int>(bands.size())) {
        std::vector<int> begin{0}, source;
        std::vector<double> weight;
        for (const auto& band : bands) {
            for (const size_t b : band.sources)
                source.push_back(static_cast<int>(b));
            weight.insert(weight.end(), band.weights.begin(), band.weights.end());
            begin.push_back(static_cast<int>(weight.size()));
        }
        m_begin = DeviceBuffer(begin);
        m_source = DeviceBuffer(source);
        m_weight = DeviceBuffer(weight);
    }
    Sums view() const { return {m_count, m_begin.data(), m_source.data(), m_weight.data()}; }

  private:
    int m_count;
    DeviceBuffer<int> m_begin, m_source;
    DeviceBuffer<double> m_weight;
};

/// Rows of weights for cuBLAS, [row][column], padded with zeros.
class DeviceRows {
  public:
    explicit DeviceRows(const math::RowPanels& panels)
        : m_rows(panels.results()), m_pitch(filled_up(panels.length())) {
        constexpr size_t group = math::RowPanels::group_size;
        std::vector<double> values(m_rows * m_pitch);
        for (size_t r = 0; r < m_rows; ++r)
            for (size_t c = 0; c < panels.length_of(r / group); ++c)
                values[r * m_pitch + c] = panels.weights_of(r / group)[c * group + r % group];
        for (size_t first = 0; first < m_rows; first += row_block)
            m_depth.push_back(panels.length_of((std::min(first + row_block, m_rows) - 1) / group));
        m_values = DeviceBuffer(values);
    }
    size_t rows() const { return m_rows; }
    /// Sets to[row][pixel] to the product of the row with x[column][pixel].
    void multiply(cublasHandle_t cublas, const double* x, size_t pixels, double* to) const {
        const double one = 1, zero = 0;
        const auto whole = [](size_t n) { return static_cast<int>(n); };
        for (size_t first = 0; first < m_rows; first += row_block)
            HSI_CUBLAS_CHECK(cublasDgemm(
                cublas, CUBLAS_OP_N, CUBLAS_OP_N, whole(pixels), whole(std::min(row_block, m_rows - first)),
                whole(m_depth[first / row_block]), &one, x, whole(pixels), m_values.data() + first * m_pitch,
                whole(m_pitch), &zero, to + first * pixels, whole(pixels)));
    }

  private:
    size_t m_rows, m_pitch;
    std::vector<size_t> m_depth; ///< per block of rows: number of columns that are not all zero
    DeviceBuffer<double> m_values;
};

/// Returns the index of the thread's pixel in the batch. Values in a batch are [entry][pixel].
__device__ int batch_pixel() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }

struct LoadWork {
    const float* raw = nullptr; ///< [band of the scene][pixel of the tile]
    int64_t first = 0, pixels = 0;
    const int* used = nullptr; ///< indices of the bands that are read
    int used_count = 0;
    Sums bands;
    const double *scale = nullptr, *offset = nullptr; ///< one value per band of the scene; null: 1 and 0
    size_t batch = 0;
    double* x = nullptr;
    unsigned char* valid = nullptr;
    float* greatest = nullptr; ///< greatest magnitude of the values that are read, one per pixel
};

/// Loads scaled values of the model's bands. If a pixel is invalid, its values are set to 0.
__global__ void __launch_bounds__(threads) load_pixels(const LoadWork w) {
    const int i = batch_pixel();
    const int64_t pixel = w.first + i;
    PixelLook<float> look; // Threads beyond the last pixel read nothing, so their pixels are invalid.
    float greatest = 0;
    for (int k = 0; k < w.used_count && pixel < w.pixels; ++k) {
        const float v = w.raw[w.used[k] * w.pixels + pixel];
        look.at(v);
        greatest = fmaxf(greatest, fabsf(v));
    }
    const bool valid = look.is_valid();
    w.valid[i] = valid;
    w.greatest[i] = greatest;
    const auto add = [&](double sum, double weight, int band) {
        const auto v = static_cast<double>(w.raw[band * w.pixels + pixel]);
        return fma(fma(v, w.scale ? w.scale[band] : 1.0, w.offset ? w.offset[band] : 0.0), weight, sum);
    };
    for (int j = 0; j < w.bands.count; ++j)
        w.x[j * w.batch + i] = valid ? w.bands.sum(j, add) : 0.0;
}

/// Applies a step that is not a derivative, in place.
__global__ void __launch_bounds__(threads)
    transform_pixels(Step::Kind kind, int bands, size_t batch, double* x) {
    x += batch_pixel();
    if (kind == Step::Kind::log) {
        for (int b = 0; b < bands; ++b)
            x[b * batch] = log(1 / x[b * batch]);
        return;
    }
    double centre = 0, by = 0;
    for (int b = 0; b < bands && kind == Step::Kind::snv; ++b)
        centre += x[b * batch];
    centre /= bands;
    for (int b = 0; b < bands; ++b) {
        const double v = x[b * batch] - centre;
        by += kind == Step::Kind::mean ? v : v * v;
    }
    by = kind == Step::Kind::mean ? by / bands : sqrt(kind == Step::Kind::snv ? by / (bands - 1) : by);
    if (!(by > 0)) by = nan("");
    for (int b = 0; b < bands; ++b)
        x[b * batch] = (x[b * batch] - centre) / by;
}

__global__ void __launch_bounds__(threads)
    derive_pixels(const Sums rows, size_t batch, const double* x, double* to) {
    const int i = batch_pixel();
    for (int j = 0; j < rows.count; ++j)
        to[j * batch + i] = rows.sum(j, [&](double sum, double weight, int band) {
            // The operations are not fused, so that the result is 0 exactly where the CPU's result is 0.
            return __dadd_rn(sum, __dmul_rn(weight, x[band * batch + i]));
        });
}

/// Computes z = (x - centre) * factor, and the sum of the squares of z for each pixel.
__global__ void __launch_bounds__(threads)
    standardise_pixels(const double* x, const double* centre, const double* factor, int bands, size_t batch,
                       double* z, double* squares) {
    const int i = batch_pixel();
    double sum = 0;
    for (int b = 0; b < bands; ++b) {
        const double v = (x[b * batch + i] - centre[b]) * factor[b];
        z[b * batch + i] = v;
        sum = fma(v, v, sum);
    }
    squares[i] = sum;
}

/// Converts products of pixels and samples to kernel values exp(-gamma d^2).
__global__ void __launch_bounds__(threads)
    find_kernel_values(double* values, const double* of_pixels, const double* of_samples, int samples,
                       size_t batch, double gamma) {
    const int i = batch_pixel(), first = static_cast<int>(blockIdx.y) * kernel_rows;
    const double square = of_pixels[i];
    for (int s = first; s < min(samples, first + kernel_rows); ++s) {
        double& value = values[s * batch + i];
        value = cuda::exp_of_negative(-gamma * fmax(0.0, square + of_samples[s] - 2 * value));
    }
}

struct ResultWork {
    int64_t first = 0, pixels = 0; ///< position of the batch in the tile
    size_t batch = 0;
    const unsigned char* valid = nullptr;
    const float* greatest = nullptr;
    const double* squares = nullptr; ///< |z|^2
    const double *components = nullptr, *t2 = nullptr;
    int component_count = 0;
    bool has_domain = false;
    double t2_limit = 0, q_limit = 0;
    const double* sum = nullptr; ///< [pixel]; the estimate is estimate_offset + estimate_factor * sum
    double estimate_offset = 0, estimate_factor = 1, lowest = 0, highest = 0;
    const double *spread = nullptr, *spread_offsets = nullptr;
    int spread_rows = 0;
    double variance_offset = 0, variance_factor = 0; ///< the variance is offset + factor * sum of squares
    bool has_deviation = false;
    double scale = 1, known = 0;
    float* out = nullptr; ///< [estimate, deviation, outside][pixel of the tile]
    unsigned long long* counts = nullptr;
};

__global__ void __launch_bounds__(threads) put_results(const ResultWork w) {
    const int i = batch_pixel();
    const int64_t pixel = w.first + i;
    const bool inside = pixel < w.pixels, valid = inside && w.valid[i] != 0,
               made = valid && isfinite(w.squares[i]);
    int outside = 0;
    if (made) {
        double t2 = 0, q = w.squares[i], squares = 0;
        for (int c = 0; c < w.component_count; ++c) {
            const double t = w.components[c * w.batch + i];
            t2 = fma(t * t, w.t2[c], t2);
            q = fma(-t, t, q);
        }
        if (w.has_domain && is_unlike(t2, q, w.squares[i], w.t2_limit, w.q_limit)) outside = 2;
        const double estimate = fma(w.estimate_factor, w.sum[i], w.estimate_offset);
        if (estimate < w.lowest || estimate > w.highest) outside += 1;
        for (int r = 0; r < w.spread_rows; ++r) {
            const double v = w.spread[r * w.batch + i] + w.spread_offsets[r];
            squares = fma(v, v, squares);
        }
        w.out[pixel] = static_cast<float>(estimate);
        w.out[w.pixels + pixel] =
            w.has_deviation
                ? static_cast<float>(sqrt(fmax(0.0, fma(w.variance_factor, squares, w.variance_offset))))
                : nanf("");
        w.out[2 * w.pixels + pixel] = static_cast<float>(outside);
    } else if (inside) {
        for (int k = 0; k < 3; ++k)
            w.out[k * w.pixels + pixel] = nanf("");
    }
    const bool far =
        outside > 1 && is_of_another_scale(static_cast<double>(w.greatest[i]) * w.scale, w.known);
    const int counts[] = {__syncthreads_count(made), __syncthreads_count(valid && !made),
                          __syncthreads_count(outside > 0), __syncthreads_count(far)};
    if (threadIdx.x != 0) return;
    for (int k = 0; k < 4; ++k)
        atomicAdd(w.counts + k, static_cast<unsigned long long>(counts[k]));
}

/// A model on one device, shared by all workers.
class DevicePart {
  public:
    explicit DevicePart(const Part& part)
        : m_part(part), m_batch(part), m_inputs(part.inputs.bands), m_scale(part.inputs.scale),
          m_offset(part.inputs.offset), m_centre(weights().centre), m_factor(weights().factor),
          m_t2(weights().t2), m_spread_offsets(weights().spread_offsets),
          m_kernel_centre(kernel().standard.centre), m_kernel_factor(weights().kernel_factor),
          m_squares(weights().squares), m_weights(kernel().weights), m_rows(weights().rows),
          m_samples(weights().samples), m_spread(weights().spread) {
        std::vector<int> used;
        for (const size_t band : part.sources)
            used.push_back(static_cast<int>(band));
        m_used = DeviceBuffer(used);
        const auto& steps = model().transform.steps();
        for (size_t k = 0; k < steps.size(); ++k)
            m_derivatives.emplace_back(model().transform.rows_of(k));
    }
    static uint64_t bytes(const Part& part) {
        const auto& w = part.fitted.weights();
        return bytes_of(w.rows) + bytes_of(w.samples) + bytes_of(w.spread);
    }

    /// Estimates the batch of a tile that starts at pixel `first`. `room` has Batch::room() doubles; `valid`
    /// and `greatest` have one value per pixel of the batch. `out` has the model's three bands.
    void estimate(const float* raw, int64_t first, int64_t pixels, cuda::Cublas& cublas, cudaStream_t stream,
                  double* room, unsigned char* valid, float* greatest, float* out,
                  unsigned long long* counts) const {
        const size_t batch = m_batch.pixels;
        const auto blocks = static_cast<unsigned>(batch / threads);
        const auto take = [&](size_t entries) { return std::exchange(room, room + entries * batch); };
        double *x = take(m_batch.bands), *z = take(m_batch.bands), *const components = take(m_rows.rows()),
               *const values = take(m_samples.rows()), *const spread = take(m_spread.rows()),
               *const squares = take(1), *const kernel_squares = take(1), *const sum = take(1);
        LoadWork load;
        load.raw = raw;
        load.first = first;
        load.pixels = pixels;
        load.used = m_used.data();
        load.used_count = static_cast<int>(m_used.size());
        load.bands = m_inputs.view();
        load.scale = m_scale.data();
        load.offset = m_offset.data();
        load.batch = batch;
        load.x = x;
        load.valid = valid;
        load.greatest = greatest;
        load_pixels<<<blocks, threads, 0, stream>>>(load);
        HSI_CUDA_LAUNCHED("load_pixels");
        int bands = load.bands.count;
        for (size_t k = 0; k < m_derivatives.size(); ++k) {
            if (const Sums rows = m_derivatives[k].view(); rows.count > 0) {
                derive_pixels<<<blocks, threads, 0, stream>>>(rows, batch, x, z);
                HSI_CUDA_LAUNCHED("derive_pixels");
                std::swap(x, z);
                bands = rows.count;
            } else {
                transform_pixels<<<blocks, threads, 0, stream>>>(model().transform.steps()[k].kind, bands,
                                                                 batch, x);
                HSI_CUDA_LAUNCHED("transform_pixels");
            }
        }
        standardise_pixels<<<blocks, threads, 0, stream>>>(x, m_centre.data(), m_factor.data(), bands, batch,
                                                           z, squares);
        HSI_CUDA_LAUNCHED("standardise_pixels");
        m_rows.multiply(cublas.get(), z, batch, components);
        ResultWork result = result_work();
        if (model().is_linear()) {
            result.sum = components + result.component_count * batch;
            m_spread.multiply(cublas.get(), z, batch, spread);
        } else {
            standardise_pixels<<<blocks, threads, 0, stream>>>(
                x, m_kernel_centre.data(), m_kernel_factor.data(), bands, batch, z, kernel_squares);
            HSI_CUDA_LAUNCHED("standardise_pixels");
            m_samples.multiply(cublas.get(), z, batch, values);
            const auto samples = static_cast<int>(m_weights.size());
            const Kernel& k = kernel();
            find_kernel_values<<<dim3(blocks,
                                      static_cast<unsigned>((samples + kernel_rows - 1) / kernel_rows)),
                                 threads, 0, stream>>>(
                values, kernel_squares, m_squares.data(), samples, batch,
                model().method == Method::gp ? 1 / (2 * k.length * k.length) : k.gamma);
            HSI_CUDA_LAUNCHED("find_kernel_values");
            const double one = 1, zero = 0;
            HSI_CUBLAS_CHECK(cublasDgemv(cublas.get(), CUBLAS_OP_N, static_cast<int>(batch), samples, &one,
                                         values, static_cast<int>(batch), m_weights.data(), 1, &zero, sum,
                                         1));
            result.sum = sum;
            m_spread.multiply(cublas.get(), values, batch, spread);
        }
        result.first = first;
        result.pixels = pixels;
        result.batch = batch;
        result.valid = valid;
        result.greatest = greatest;
        result.squares = squares;
        result.components = components;
        result.spread = spread;
        result.out = out;
        result.counts = counts;
        put_results<<<blocks, threads, 0, stream>>>(result);
        HSI_CUDA_LAUNCHED("put_results");
    }
    size_t batch() const { return m_batch.pixels; }

  private:
    const Model& model() const { return m_part.fitted.model(); }
    const Kernel& kernel() const { return model().kernel; }
    const Fitted::Weights& weights() const { return m_part.fitted.weights(); }

    /// Returns the parameters of the results that depend only on the model.
    ResultWork result_work() const {
        const Model& m = model();
        const Kernel& k = kernel();
        ResultWork w;
        w.t2 = m_t2.data();
        w.component_count = static_cast<int>(m_t2.size());
        w.has_domain = m.domain.has_value();
        if (m.domain) {
            w.t2_limit = m.domain->t2_limit;
            w.q_limit = m.domain->q_limit;
        }
        w.lowest = m.lowest;
        w.highest = m.highest;
        w.spread_offsets = m_spread_offsets.data();
        w.spread_rows = static_cast<int>(m_spread.rows());
        w.has_deviation = m.has_deviation();
        w.scale = m_part.scale;
        w.known = weights().greatest;
        if (m.is_linear()) {
            w.estimate_offset = weights().mean_offset;
            w.variance_factor = 1 / (static_cast<double>(m.members()) - 1);
            return w;
        }
        w.estimate_factor = k.value_spread;
        w.estimate_offset = k.value_mean - (m.method == Method::svr ? k.value_spread * k.rho : 0);
        w.variance_factor = -k.value_spread * k.value_spread * k.variance;
        w.variance_offset = -w.variance_factor * (1 + k.noise);
        return w;
    }

    const Part& m_part;
    Batch m_batch;
    DeviceBuffer<int> m_used;
    DeviceSums m_inputs;
    std::vector<DeviceSums> m_derivatives; ///< one per step; empty for steps that are not derivatives
    DeviceBuffer<double> m_scale, m_offset, m_centre, m_factor, m_t2, m_spread_offsets, m_kernel_centre,
        m_kernel_factor, m_squares, m_weights;
    DeviceRows m_rows, m_samples, m_spread;
};
using DeviceParts = std::vector<DevicePart>;

class CudaWorker final : public stream::Worker {
  public:
    /// Precondition: `ordinal` is the current device.
    CudaWorker(int ordinal, std::shared_ptr<const DeviceParts> parts, size_t counts_of_all, int bands,
               uint64_t room, size_t batch, const TileLimits& l)
        : counts(counts_of_all), m_ordinal(ordinal), m_parts(std::move(parts)), m_cublas(m_stream.get()),
          m_x(pixels_of(l) * static_cast<size_t>(bands)), m_out(pixels_of(l) * 3 * m_parts->size()),
          m_room(room), m_valid(batch), m_greatest(batch), m_counts(counts_of_all - 1) {}
    static size_t pixels_of(const TileLimits& l) {
        return static_cast<size_t>(l.core_samples * l.core_lines);
    }

    void process(const Tile&, const CubeView<float>& in, const std::vector<CubeView<float>>& out) override {
        const cuda::DeviceGuard guard(m_ordinal);
        const auto stream = m_stream.get();
        const float* const raw = m_x.packed(in, stream);
        float* const to = m_out.begin(out[0]);
        const int64_t pixels = in.lines * in.samples; // The window equals the core.
        m_counts.clear(stream);
        m_clock.start(stream);
        for (size_t m = 0; m < m_parts->size(); ++m) {
            const DevicePart& part = (*m_parts)[m];
            for (int64_t first = 0; first < pixels; first += static_cast<int64_t>(part.batch()))
                part.estimate(raw, first, pixels, m_cublas, stream, m_room.data(), m_valid.data(),
                              m_greatest.data(), to + 3 * static_cast<int64_t>(m) * pixels,
                              m_counts.data() + 4 * m);
        }
        m_clock.stop(stream);
        m_out.end(stream);
        std::vector<unsigned long long> found(m_counts.size());
        m_counts.download(found.data(), found.size(), stream);
        m_stream.synchronize();
        kernel_seconds += m_clock.seconds();
        counts[0] += pixels;
        for (size_t k = 0; k < found.size(); ++k)
            counts[k + 1] += static_cast<int64_t>(found[k]);
    }

    std::vector<int64_t> counts; ///< in the order of Estimation::add()
    double kernel_seconds = 0;

  private:
    const int m_ordinal;
    const std::shared_ptr<const DeviceParts> m_parts;
    cuda::Stream m_stream;
    cuda::Cublas m_cublas;
    cuda::KernelClock m_clock;
    cuda::TileInput m_x;
    cuda::TileOutput m_out;
    DeviceBuffer<double> m_room;
    DeviceBuffer<unsigned char> m_valid;
    DeviceBuffer<float> m_greatest;
    DeviceBuffer<unsigned long long> m_counts;
};

class CudaEstimation final : public cuda::LaneOperation<Estimation> {
  public:
    CudaEstimation(std::vector<CudaDevice> devices, int inputs, std::vector<Applied> models,
                   double& kernel_seconds)
        : LaneOperation(std::move(devices), inputs, std::move(models)), m_bands(inputs),
          m_shared(this->devices().size()), m_kernel_seconds(kernel_seconds) {
        for (const Part& part : *m_parts) {
            const Batch batch(part);
            m_room = std::max(m_room, batch.room());
            m_batch = std::max(m_batch, batch.pixels);
            m_model_bytes += DevicePart::bytes(part);
        }
    }
    int takes_from() const override { return only_device(); }
    int puts_on() const override { return only_device(); }
    uint64_t preferred_bytes() const override { return uint64_t{64} << 20; }
    uint64_t device_bytes(const TileLimits& l) const override {
        return CudaWorker::pixels_of(l) * (4 * static_cast<uint64_t>(m_bands) + 12 * m_parts->size()) +
               8 * m_room + 5 * m_batch + m_model_bytes + cublas_bytes;
    }
    void stop(stream::Worker& worker) override {
        const auto& w = static_cast<const CudaWorker&>(worker);
        add(w.counts);
        m_kernel_seconds += w.kernel_seconds;
    }

  private:
    std::unique_ptr<stream::Worker> make_lane(const cuda::LaneDevice& on, const TileLimits& limits) override {
        auto shared = m_shared.on(on, [&] {
            auto parts = std::make_shared<DeviceParts>();
            for (const Part& part : *m_parts)
                parts->emplace_back(part);
            return parts;
        });
        return std::make_unique<CudaWorker>(on.ordinal, std::move(shared), count_of(*m_parts), m_bands,
                                            m_room, m_batch, limits);
    }
    const int m_bands;
    uint64_t m_room = 0, m_model_bytes = 0;
    size_t m_batch = 0;
    cuda::OncePerDevice<DeviceParts> m_shared;
    double& m_kernel_seconds;
};

class CudaBackend final : public cuda::TimedBackend<Backend> {
  public:
    using TimedBackend::TimedBackend;
    std::unique_ptr<Estimation> make_estimation(int inputs, std::vector<Applied> models) override {
        return std::make_unique<CudaEstimation>(m_devices, inputs, std::move(models), m_kernel_seconds);
    }
};

} // namespace
} // namespace hsi::regression

extern "C" __attribute__((visibility("default"))) hsi::regression::Backend*
hsi_cuda_regression(const std::vector<hsi::CudaDevice>& devices) {
    return new hsi::regression::CudaBackend(devices);
}
