// SPDX-License-Identifier: MIT
// hsi_cuda_sahic.so: training, class probabilities and the Markov random field on GPUs.
#include "core/error.h"
#include "core/host_memory.h"
#include "core/valid_pixel.h"
#include "cuda/copy.h"
#include "cuda/cublas.h"
#include "cuda/cusolver.h"
#include "cuda/device.h"
#include "cuda/device_buffer.h"
#include "cuda/lane_operation.h"
#include "cuda/pinned.h"
#include "cuda/stream.h"
#include "sahic/lorsal.h"
#include "sahic/mlr_cuda_kernels.cuh"
#include "sahic/mrf_cuda_kernels.cuh"
#include "sahic/sahic.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace hsi::sahic {
namespace {

using cuda::DeviceBuffer;
using cuda::DeviceGuard;
using stream::TileLimits;

template <class... T>
size_t count_of(T... factors) {
    return (static_cast<size_t>(factors) * ...);
}

// ---- Class probabilities --------------------------------------------------------------------------------

/// The model on one device, shared by all workers.
struct DeviceModel {
    gpu::Products products;
    int64_t anchors;
    int outputs;
    DeviceBuffer<double> vectors; ///< [anchor][feature], scaled and padded
    DeviceBuffer<double> squares, weights, constant;
    DeviceBuffer<float> class_value, first_line, first_sample;
    DeviceBuffer<unsigned char> first_line_valid, first_sample_valid;

    DeviceModel(const MlrModel& m, const SpectralOptions& o, int64_t samples, int64_t lines)
        : products(m.features(), m.anchor_count(), m.class_count() - 1), anchors(m.anchor_count()),
          outputs(m.class_count() - 1) {
        const auto n = count_of(m.features()), count = count_of(anchors), pitch = count_of(products.pitch);
        const auto padded = count_of(products.features);
        std::vector<double> v(count * padded, 0.0), s(count, 0.0), w(count * pitch, 0.0), c;
        for (size_t a = 0; a < count; ++a) {
            for (size_t f = 0; f < n; ++f) {
                const double x = static_cast<double>(m.anchors[a * n + f]) / m.scale;
                v[a * padded + f] = x;
                s[a] += x * x;
            }
            for (size_t k = 0; k < count_of(outputs); ++k)
                w[a * pitch + k] = m.weights[k * (count + 1) + 1 + a];
        }
        for (size_t k = 0; k < count_of(outputs); ++k)
            c.push_back(m.weights[k * (count + 1)]);
        std::vector<float> values;
        for (const auto& k : m.classes)
            values.push_back(static_cast<float>(k.value));
        vectors = DeviceBuffer(v);
        squares = DeviceBuffer(s);
        weights = DeviceBuffer(w);
        constant = DeviceBuffer(c);
        class_value = DeviceBuffer(values);
        if (o.first_line.empty()) return;
        first_line = DeviceBuffer(o.first_line);
        first_sample = DeviceBuffer(o.first_sample);
        first_line_valid = DeviceBuffer(valid_of(o.first_line, n, count_of(samples)));
        first_sample_valid = DeviceBuffer(valid_of(o.first_sample, n, count_of(lines)));
    }
    static uint64_t bytes(const MlrModel& m) {
        const gpu::Products p(m.features(), m.anchor_count(), m.class_count() - 1);
        return 8 * count_of(m.anchor_count()) * count_of(p.features + p.pitch + 1);
    }

  private:
    static std::vector<unsigned char> valid_of(const std::vector<float>& border, size_t bands,
                                               size_t pixels) {
        std::vector<unsigned char> valid(pixels);
        for (size_t i = 0; i < pixels; ++i)
            valid[i] =
                is_valid_pixel(border.data() + i, static_cast<int>(bands), static_cast<ptrdiff_t>(pixels));
        return valid;
    }
};

class SpectralWorker final : public stream::Worker {
  public:
    /// Precondition: `ordinal` is the current device.
    SpectralWorker(int ordinal, std::shared_ptr<const MlrModel> model, const SpectralOptions& options,
                   std::shared_ptr<const DeviceModel> device, int64_t samples, int64_t lines,
                   const TileLimits& l)
        : by_class(model->classes.size(), 0), m_ordinal(ordinal), m_model(std::move(model)),
          m_options(options), m_device(std::move(device)), m_samples(samples), m_lines(lines),
          m_cublas(m_stream.get()), m_input(count_of(m_model->features(), l.window_samples, l.window_lines)),
          m_valid(count_of(l.window_samples, l.window_lines)),
          m_x(count_of(m_device->products.features, m_device->products.pixels)),
          m_x2(count_of(m_device->products.pixels)),
          m_product(count_of(std::max<int64_t>(1, m_device->anchors), m_device->products.pixels)),
          m_sums(count_of(m_device->outputs, m_device->products.parts, m_device->products.pixels)),
          m_counts(by_class.size() + 1),
          m_host_counts(std::make_shared<cuda::PinnedAllocator>(ordinal), m_counts.size()) {
        const auto pixels = count_of(l.core_samples, l.core_lines);
        if (options.map) m_map = DeviceBuffer<float>(pixels);
        if (options.probabilities) m_probabilities = DeviceBuffer<float>(by_class.size() * pixels);
        if (options.confidence) m_confidence = DeviceBuffer<float>(pixels);
        if (options.weight) m_weight = DeviceBuffer<float>(pixels);
    }

    static uint64_t device_bytes(const MlrModel& m, const SpectralOptions& o, const TileLimits& l) {
        const gpu::Products p(m.features(), m.anchor_count(), m.class_count() - 1);
        const size_t window = count_of(l.window_samples, l.window_lines),
                     core = count_of(l.core_samples, l.core_lines);
        const size_t planes = (o.map ? 1u : 0u) + (o.probabilities ? m.classes.size() : 0u) +
                              (o.confidence ? 1u : 0u) + (o.weight ? 1u : 0u);
        return window * (4 * count_of(m.features()) + 1) + 4 * core * planes +
               8 * count_of(p.pixels) *
                   (count_of(p.features) + 1 + count_of(std::max<int64_t>(1, m.anchor_count())) +
                    count_of(m.class_count() - 1, p.parts)) +
               (uint64_t{40} << 20); // cuBLAS's workspace
    }

    void process(const Tile& tile, const CubeView<float>& in,
                 const std::vector<CubeView<float>>& out) override {
        const DeviceGuard guard(m_ordinal);
        const auto stream = m_stream.get();
        const int bands = m_model->features();
        const int64_t window = in.lines * in.samples, core = tile.core.area();
        m_raw = m_input.packed(in, stream);
        m_counts.clear(stream);
        m_clock.start(stream);
        gpu::launch_valid(m_raw, window, bands, m_valid.data(), stream);
        const int64_t origin = (tile.core.y - tile.window.y) * in.samples + tile.core.x - tile.window.x;
        for (int64_t first = 0; first < core; first += m_device->products.pixels)
            product(tile, in, origin, first);
        if (m_options.weight) weigh(tile, in, origin);
        m_clock.stop(stream);

        size_t next = 0;
        if (m_options.map) m_map.download(out[next++].data, count_of(core), stream);
        if (m_options.probabilities)
            m_probabilities.download(out[next++].data, by_class.size() * count_of(core), stream);
        if (m_options.confidence) m_confidence.download(out[next++].data, count_of(core), stream);
        if (m_options.weight) m_weight.download(out[next++].data, count_of(core), stream);
        m_counts.download(m_host_counts.data(), m_counts.size(), stream);
        m_done.record(stream);
        m_done.wait();
        kernel_seconds += m_clock.seconds();
        for (size_t c = 0; c < by_class.size(); ++c)
            by_class[c] += m_host_counts[c];
        invalid += m_host_counts[by_class.size()];
    }

    std::vector<int64_t> by_class;
    int64_t invalid = 0;
    double kernel_seconds = 0;

  private:
    void product(const Tile& tile, const CubeView<float>& in, int64_t origin, int64_t first) {
        const auto stream = m_stream.get();
        const gpu::Products& p = m_device->products;
        gpu::ScaleWork scale;
        scale.raw = m_raw;
        scale.valid = m_valid.data();
        scale.window_samples = in.samples;
        scale.window_pixels = in.samples * in.lines;
        scale.core_samples = tile.core.w;
        scale.core_pixels = tile.core.area();
        scale.origin = origin;
        scale.first = first;
        scale.features = m_model->features();
        scale.padded_features = p.features;
        scale.pixels = p.pixels;
        scale.scale = m_model->scale;
        scale.x = m_x.data();
        scale.x2 = m_x2.data();
        gpu::launch_scale(scale, stream);
        if (m_device->anchors > 0) {
            const double minus_two = -2, zero = 0;
            HSI_CUBLAS_CHECK(cublasDgemm(m_cublas.get(), CUBLAS_OP_N, CUBLAS_OP_N, p.pixels,
                                         static_cast<int>(m_device->anchors), p.features, &minus_two,
                                         m_x.data(), p.pixels, m_device->vectors.data(), p.features, &zero,
                                         m_product.data(), p.pixels));
            gpu::LogitsWork logits;
            logits.product = m_product.data();
            logits.x2 = m_x2.data();
            logits.a2 = m_device->squares.data();
            logits.weights = m_device->weights.data();
            logits.anchors = m_device->anchors;
            logits.pixels = p.pixels;
            logits.pitch = p.pitch;
            logits.outputs = m_device->outputs;
            logits.parts = p.parts;
            logits.gamma = m_model->gamma();
            logits.sums = m_sums.data();
            gpu::launch_logits(logits, stream);
        } else {
            m_sums.clear(stream);
        }
        gpu::SoftmaxWork softmax;
        softmax.sums = m_sums.data();
        softmax.constant = m_device->constant.data();
        softmax.valid = m_valid.data();
        softmax.class_value = m_device->class_value.data();
        softmax.window_samples = in.samples;
        softmax.core_samples = tile.core.w;
        softmax.core_pixels = tile.core.area();
        softmax.origin = origin;
        softmax.first = first;
        softmax.pixels = p.pixels;
        softmax.outputs = m_device->outputs;
        softmax.parts = p.parts;
        softmax.map = m_map.data();
        softmax.probabilities = m_probabilities.data();
        softmax.confidence = m_confidence.data();
        softmax.counts = m_counts.data();
        gpu::launch_softmax(softmax, stream);
    }

    void weigh(const Tile& tile, const CubeView<float>& in, int64_t origin) {
        gpu::WeightWork w;
        w.raw = m_raw;
        w.valid = m_valid.data();
        w.bands = m_model->features();
        w.window_samples = in.samples;
        w.window_pixels = in.samples * in.lines;
        w.core_samples = tile.core.w;
        w.core_lines = tile.core.h;
        w.origin = origin;
        w.core_x = tile.core.x;
        w.core_y = tile.core.y;
        w.samples = m_samples;
        w.lines = m_lines;
        w.first_line = m_device->first_line.data();
        w.first_sample = m_device->first_sample.data();
        w.first_line_valid = m_device->first_line_valid.data();
        w.first_sample_valid = m_device->first_sample_valid.data();
        w.scale = m_model->scale;
        w.out = m_weight.data();
        gpu::launch_weight(w, m_stream.get());
    }

    const int m_ordinal;
    std::shared_ptr<const MlrModel> m_model;
    const SpectralOptions& m_options;
    std::shared_ptr<const DeviceModel> m_device;
    const int64_t m_samples, m_lines;
    cuda::Stream m_stream;
    cuda::Cublas m_cublas;
    cuda::KernelClock m_clock;
    cuda::Event m_done;
    cuda::TileInput m_input;
    const float* m_raw = nullptr; ///< the tile's pixels, packed
    DeviceBuffer<unsigned char> m_valid;
    DeviceBuffer<double> m_x, m_x2, m_product, m_sums;
    DeviceBuffer<int> m_counts;
    HostBuffer<int> m_host_counts;
    DeviceBuffer<float> m_map, m_probabilities, m_confidence, m_weight;
};

class CudaSpectralPass final : public cuda::LaneOperation<SpectralPass> {
  public:
    CudaSpectralPass(std::vector<CudaDevice> devices, std::shared_ptr<const MlrModel> model,
                     const SpectralOptions& options, int64_t samples, int64_t lines, double& kernel_seconds)
        : LaneOperation(std::move(devices), std::move(model), options, samples, lines),
          m_shared(this->devices().size()), m_kernel_seconds(kernel_seconds) {}
    int takes_from() const override { return only_device(); }
    uint64_t preferred_bytes() const override { return uint64_t{32} << 20; }
    uint64_t device_bytes(const TileLimits& l) const override {
        return SpectralWorker::device_bytes(*m_model, m_options, l) + DeviceModel::bytes(*m_model);
    }
    void stop(stream::Worker& worker) override {
        const auto& w = static_cast<const SpectralWorker&>(worker);
        count(w.by_class, w.invalid);
        m_kernel_seconds += w.kernel_seconds;
    }

  private:
    std::unique_ptr<stream::Worker> make_lane(const cuda::LaneDevice& on, const TileLimits& l) override {
        auto shared = m_shared.on(
            on, [&] { return std::make_shared<DeviceModel>(*m_model, m_options, m_samples, m_lines); });
        return std::make_unique<SpectralWorker>(on.ordinal, m_model, m_options, std::move(shared), m_samples,
                                                m_lines, l);
    }

    cuda::OncePerDevice<DeviceModel> m_shared;
    double& m_kernel_seconds;
};

// ---- The Markov random field ------------------------------------------------------------------------------

class CudaMrfSolver final : public MrfSolver {
  public:
    /// Precondition: `ordinal` is the current device.
    CudaMrfSolver(int ordinal, const MrfOptions& options, const MrfLimits& limits, double& kernel_seconds)
        : m_ordinal(ordinal), m_options(options), m_kernel_seconds(kernel_seconds),
          m_on_device(std::make_unique<OnDevice>(options, limits)) {}
    ~CudaMrfSolver() override {
        int before = 0;
        if (cudaGetDevice(&before) != cudaSuccess) return;
        cudaSetDevice(m_ordinal);
        m_on_device.reset();
        cudaSetDevice(before);
    }

    MrfResiduals solve(const MrfProblem& problem, float* q, const CancelFlag* cancel) override {
        const DeviceGuard guard(m_ordinal);
        OnDevice& d = *m_on_device;
        const auto stream = d.stream.get();
        d.field.upload(problem, stream);
        d.clock.start(stream);
        const int all = m_options.iterations;
        int done = 0, launched = 0;
        // The host prepares one piece of work while the device computes another.
        const auto keep_pace = [&] {
            if (launched > 0) d.reached[(launched - 1) % 2].wait();
            d.reached[launched++ % 2].record(stream);
            if (cancel && cancel->requested()) {
                d.stream.synchronize();
                throw Cancelled();
            }
            if (progress) progress(static_cast<double>(done) / all);
        };
        d.field.iterate(0, 1, stream);
        done = 1;
        keep_pace();
        const int piece = piece_of(all - 2);
        for (; piece > 0 && done + piece <= all - 1; done += piece) {
            d.field.iterate_graph(piece, stream);
            keep_pace();
        }
        for (; done < all; ++done)
            d.field.iterate(done, 1, stream);
        d.clock.stop(stream);
        d.field.residuals(stream);
        d.field.download(q, stream);
        d.stream.synchronize();
        m_kernel_seconds += d.clock.seconds();
        if (progress) progress(1);
        return d.field.total();
    }

  private:
    struct OnDevice {
        cuda::Stream stream;
        cuda::KernelClock clock;
        std::array<cuda::Event, 2> reached;
        gpu::DeviceMrf field;
        OnDevice(const MrfOptions& options, const MrfLimits& limits) : field(options, limits) {}
    };
    /// Returns the number of iterations in a graph. The number is even, so that each graph starts with the
    /// same multiplier buffers. Among the even numbers from 16 to 32, it leaves the smallest remainder.
    static int piece_of(int inner) {
        int best = 0;
        for (int n = 16; n <= 32 && n <= inner; n += 2)
            if (best == 0 || inner % n <= inner % best) best = n;
        return best;
    }
    const int m_ordinal;
    const MrfOptions m_options;
    double& m_kernel_seconds;
    std::unique_ptr<OnDevice> m_on_device;
};

// ---- LORSAL -----------------------------------------------------------------------------------------------

/// Trains by the paper's method. lorsal.cpp has the same method on the CPU.
class Trainer {
  public:
    Trainer(int ordinal, const TrainingSet& set, const LorsalOptions& options)
        : m_set(set), m_options(options), m_samples(set.samples()), m_d(m_samples + 1),
          m_outputs(static_cast<int>(set.classes.size()) - 1), m_spread(detail::mean_square_distance(set)),
          m_label(DeviceBuffer(detail::class_indices(set))), m_cublas(m_stream.get()),
          m_cusolver(m_stream.get()) {
        const uint64_t least = 8 * count_of(m_d, m_d) * 5;
        if (m_d > 40000 || least > cuda::free_memory(ordinal))
            throw Error(std::to_string(m_samples) + " training pixels need " + format_byte_size(least) +
                            " of GPU memory for their kernel matrix and its factors",
                        "Draw fewer with gdal_hsi_sample, or use -device cpu.");
        m_kernel = DeviceBuffer<double>(count_of(m_samples, m_samples));
        m_vectors = DeviceBuffer<double>(count_of(m_d, m_d));
        m_values = DeviceBuffer<double>(count_of(m_d));
    }

    LorsalResult run(double& kernel_seconds) {
        cuda::KernelClock clock;
        clock.start(m_stream.get());
        make_kernel();
        decompose();
        LorsalResult way;
        const auto weights = iterate(way);
        clock.stop(m_stream.get());
        m_stream.synchronize();
        kernel_seconds += clock.seconds();
        LorsalResult result = detail::pack(m_set, m_options, m_spread, weights);
        result.iterations = way.iterations;
        result.objective = way.objective;
        result.history = std::move(way.history);
        result.model.iterations = result.iterations;
        result.model.objective = result.objective;
        return result;
    }

  private:
    /// Computes c = op(a) b for column-major matrices; c is rows x cols, op(a) rows x inner, and b inner x
    /// cols.
    void multiply(bool transposed, int64_t rows, int64_t cols, int64_t inner, const double* a, int64_t lda,
                  const double* b, int64_t ldb, double* c, int64_t ldc) {
        const double one = 1, zero = 0;
        HSI_CUBLAS_CHECK(cublasDgemm(m_cublas.get(), transposed ? CUBLAS_OP_T : CUBLAS_OP_N, CUBLAS_OP_N,
                                     static_cast<int>(rows), static_cast<int>(cols), static_cast<int>(inner),
                                     &one, a, static_cast<int>(lda), b, static_cast<int>(ldb), &zero, c,
                                     static_cast<int>(ldc)));
    }

    void make_kernel() {
        const int64_t bands = m_set.features;
        std::vector<double> mean(count_of(bands), 0.0), u(count_of(m_samples, bands)),
            square(count_of(m_samples), 0.0);
        for (int64_t i = 0; i < m_samples; ++i)
            for (int64_t b = 0; b < bands; ++b) {
                const double v = static_cast<double>(m_set.values[count_of(i * bands + b)]) / m_set.scale;
                u[count_of(i * bands + b)] = v;
                mean[count_of(b)] += v / static_cast<double>(m_samples);
            }
        // The spectra are centred, so that differences of nearly equal values stay accurate.
        for (int64_t i = 0; i < m_samples; ++i)
            for (int64_t b = 0; b < bands; ++b) {
                double& v = u[count_of(i * bands + b)];
                v -= mean[count_of(b)];
                square[count_of(i)] += v * v;
            }
        const auto spectra = DeviceBuffer(u), squares = DeviceBuffer(square);
        multiply(true, m_samples, m_samples, bands, spectra.data(), bands, spectra.data(), bands,
                 m_kernel.data(), m_samples);
        gpu::launch_kernel_matrix(m_kernel.data(), squares.data(), m_samples,
                                  1.0 / (2.0 * m_options.delta * m_options.delta * m_spread), m_stream.get());
        m_stream.synchronize(); // The spectra on the host must outlive the copy.
    }

    /// Decomposes R = H H' = U diag(values) U'.
    void decompose() {
        const double one = 1, zero = 0;
        const int n = static_cast<int>(m_d), j = static_cast<int>(m_samples);
        gpu::launch_border(m_kernel.data(), m_samples, m_vectors.data(), m_stream.get());
        HSI_CUBLAS_CHECK(cublasDsyrk(m_cublas.get(), CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, j, j, &one,
                                     m_kernel.data(), j, &zero, m_vectors.data() + n + 1, n));
        int lwork = 0;
        HSI_CUSOLVER_CHECK(cusolverDnDsyevd_bufferSize(m_cusolver.get(), CUSOLVER_EIG_MODE_VECTOR,
                                                       CUBLAS_FILL_MODE_LOWER, n, m_vectors.data(), n,
                                                       m_values.data(), &lwork));
        DeviceBuffer<double> work(count_of(lwork));
        DeviceBuffer<int> info(1);
        HSI_CUSOLVER_CHECK(cusolverDnDsyevd(m_cusolver.get(), CUSOLVER_EIG_MODE_VECTOR,
                                            CUBLAS_FILL_MODE_LOWER, n, m_vectors.data(), n, m_values.data(),
                                            work.data(), lwork, info.data()));
        int failed = 0;
        info.download(&failed, 1, m_stream.get());
        m_stream.synchronize();
        if (failed != 0)
            throw Error("the eigenproblem of the training features could not be solved",
                        "Look for extreme values among the training pixels.");
    }

    std::vector<double> iterate(LorsalResult& result) {
        const auto stream = m_stream.get();
        const LorsalOptions& o = m_options;
        const auto size = count_of(m_d, m_outputs);
        DeviceBuffer<double> w(size), v(size), multiplier(size), rhs(size), turned(size), next(size),
            z(count_of(m_samples, m_outputs)), losses(count_of(m_samples)),
            objective(count_of(o.iterations / 10 + 1));
        for (auto* b : {&w, &v, &multiplier, &turned})
            b->clear(stream);
        gpu::ResidualWork residual;
        residual.samples = m_samples;
        residual.outputs = m_outputs;
        residual.label = m_label.data();
        residual.z = z.data();
        residual.losses = losses.data();
        const auto evaluate = [&](const double* at) {
            multiply(false, m_samples, m_outputs, m_samples, m_kernel.data(), m_samples, at + 1, m_d,
                     z.data(), m_samples);
            residual.w = at;
            gpu::launch_residual(residual, stream);
        };
        double beta = o.beta;
        size_t noted = 0;
        for (int it = 0; it < o.iterations; ++it) {
            evaluate(w.data());
            multiply(false, m_samples, m_outputs, m_samples, m_kernel.data(), m_samples, z.data(), m_samples,
                     rhs.data() + 1, m_d);
            gpu::launch_right_side(m_samples, m_outputs, beta, v.data(), multiplier.data(), z.data(),
                                   rhs.data(), stream);
            multiply(true, m_d, m_outputs, m_d, m_vectors.data(), m_d, rhs.data(), m_d, next.data(), m_d);
            gpu::launch_shifted(m_d, m_outputs, beta, m_values.data(), next.data(), turned.data(), stream);
            multiply(false, m_d, m_outputs, m_d, m_vectors.data(), m_d, turned.data(), m_d, w.data(), m_d);
            gpu::launch_soft(static_cast<int64_t>(size), o.lambda_c / beta, o.growth, w.data(), v.data(),
                             multiplier.data(), stream);
            beta *= o.growth;
            if ((it + 1) % 10 == 0 || it + 1 == o.iterations) {
                evaluate(v.data());
                gpu::launch_objective(losses.data(), m_samples, v.data(), static_cast<int64_t>(size),
                                      o.lambda_c, objective.data() + noted++, stream);
                if (o.cancel || o.progress) m_stream.synchronize();
                if (o.cancel && o.cancel->requested()) throw Cancelled();
                if (o.progress) o.progress(static_cast<double>(it + 1) / o.iterations);
            }
        }
        std::vector<double> weights(size);
        result.history.resize(noted);
        v.download(weights.data(), size, stream);
        objective.download(result.history.data(), noted, stream);
        m_stream.synchronize();
        result.iterations = o.iterations;
        result.objective = noted > 0 ? result.history.back() : 0;
        return weights;
    }

    const TrainingSet& m_set;
    const LorsalOptions& m_options;
    const int64_t m_samples, m_d;
    const int m_outputs;
    const double m_spread;
    cuda::Stream m_stream;
    DeviceBuffer<int> m_label;
    cuda::Cublas m_cublas;
    cuda::Cusolver m_cusolver;
    DeviceBuffer<double> m_kernel, m_vectors, m_values;
};

class CudaBackend final : public Backend {
  public:
    explicit CudaBackend(std::vector<CudaDevice> devices) : m_devices(std::move(devices)) {}
    LorsalResult train(const TrainingSet& set, const LorsalOptions& options) override {
        // The optimum uses a small working set and many steps, so the CPU computes it for all backends.
        if (options.optimum) return sahic::train(set, options);
        const DeviceGuard guard(first());
        return Trainer(first(), set, options).run(m_kernel_seconds[0]);
    }
    std::unique_ptr<SpectralPass> make_spectral_pass(std::shared_ptr<const MlrModel> model,
                                                     const SpectralOptions& options, int64_t samples,
                                                     int64_t lines) override {
        return std::make_unique<CudaSpectralPass>(m_devices, std::move(model), options, samples, lines,
                                                  m_kernel_seconds[1]);
    }
    std::unique_ptr<MrfSolver> make_mrf_solver(const MrfOptions& options, const MrfLimits& limits) override {
        const DeviceGuard guard(first());
        return std::make_unique<CudaMrfSolver>(first(), options, limits, m_kernel_seconds[2]);
    }
    uint64_t mrf_host_bytes(const MrfLimits&) const override { return 0; }
    uint64_t mrf_device_bytes(const MrfLimits& limits) const override {
        return gpu::DeviceMrf::bytes(limits);
    }
    uint64_t free_memory() const override { return cuda::least_free_memory(m_devices); }
    std::shared_ptr<HostAllocator> allocator() const override {
        return std::make_shared<cuda::PinnedAllocator>(first());
    }
    std::array<double, 3> kernel_seconds() const override { return m_kernel_seconds; }

  private:
    /// Returns the device that trains and solves the Markov random field.
    int first() const { return m_devices.front().ordinal; }
    const std::vector<CudaDevice> m_devices;
    std::array<double, 3> m_kernel_seconds{};
};

} // namespace
} // namespace hsi::sahic

extern "C" __attribute__((visibility("default"))) hsi::sahic::Backend*
hsi_cuda_sahic(const std::vector<hsi::CudaDevice>& devices) {
    return new hsi::sahic::CudaBackend(devices);
}
