// SPDX-License-Identifier: MIT
// hsi_cuda_svm.so: classification on GPUs, in double precision throughout. Data-centre GPUs have matrix units
// for double precision. Other GPUs are slower, with the same results. Pixels are processed in batches whose
// size depends only on the model. Batches are always full, so results do not depend on the tiling. For a
// batch, cuBLAS computes -2 X S as one matrix product. One sweep over the product computes kernel values and
// their sums by class. Votes and probabilities follow. If a decision value is within its error bound of zero,
// the pixel is listed, and the CPU evaluates it in LIBSVM's order of operations.
#include "core/error.h"
#include "core/valid_pixel.h"
#include "cuda/copy.h"
#include "cuda/cublas.h"
#include "cuda/device.h"
#include "cuda/device_buffer.h"
#include "cuda/exp.cuh"
#include "cuda/lane_operation.h"
#include "cuda/pinned.h"
#include "cuda/stream.h"
#include "svm/svm.h"
#include "svm/svm_math.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace hsi::svm {
namespace {

using cuda::DeviceBuffer;
using cuda::DeviceGuard;
using stream::TileLimits;

constexpr int threads = 128;
constexpr int chunk = 16; ///< sums of a class that one thread keeps in registers
constexpr int parts = 4;  ///< number of threads that share the support vectors of a class for one pixel
constexpr int most_local_votes = 64;
// Times for one scene, measured on an H200: 4.2 ms with products of 32 MB, 2.9 ms with 64 MB, 2.7 ms with 128
// MB. Decisions on only 32768 pixels at a time do not use the whole device.
constexpr int64_t product_bytes = int64_t{128} << 20;
constexpr int64_t batch_bytes = int64_t{320} << 20;
constexpr int64_t smallest_batch = threads, largest_batch = 131072;

int blocks(int64_t n) { return static_cast<int>((n + threads - 1) / threads); }
int64_t even(int64_t n) { return (n + 1) / 2 * 2; }

/// The sizes of batches, which depend only on the model.
struct Batches {
    int product = 0;  ///< number of pixels of one matrix product, a multiple of `threads`
    int batch = 0;    ///< number of pixels whose decisions are computed together, a multiple of `product`
    int features = 0; ///< number of features, padded to a multiple of 32 bytes, as the matrix units require
    Batches(const Model& model, bool estimates) {
        const int64_t k = model.class_count();
        const int64_t scratch =
            8 * (parts * k * (k - 1) + (estimates ? k * (k + 2) + model.pair_count() : 0)) + 8 * k;
        const int64_t most =
            std::clamp(batch_bytes / scratch / threads * threads, smallest_batch, largest_batch);
        product = static_cast<int>(
            std::clamp(product_bytes / (8 * model.vector_count()) / threads * threads, smallest_batch, most));
        batch = static_cast<int>(most / product * product);
        features = (model.features() + 3) / 4 * 4;
    }
};

/// Scales the features of one tile from raw [feature][pixel] to doubles [product][feature][pixel of product].
/// Also computes |x|^2 and the validity.
__global__ void scale(const float* raw, int64_t pixels, int64_t padded, int features, int padded_features,
                      int batch, const double* minimum, const double* factor, double* x, double* x2,
                      unsigned char* valid) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= padded) return;
    double* to = x + i / batch * batch * padded_features + i % batch;
    double sum = 0;
    PixelLook<float> look; // Threads beyond the last pixel read nothing, so their pixels are invalid.
    for (int f = 0; f < features && i < pixels; ++f) {
        const float v = raw[f * pixels + i];
        look.at(v);
        // The operations are not fused, because the result must be bitwise equal to the CPU's.
        const float s =
            static_cast<float>(__dmul_rn(__dsub_rn(static_cast<double>(v), minimum[f]), factor[f]));
        const double d = static_cast<double>(s);
        to[static_cast<int64_t>(f) * batch] = d;
        sum += d * d;
    }
    const bool ok = look.is_valid();
    valid[i] = ok;
    x2[i] = sum;
    for (int f = ok ? features : 0; f < padded_features; ++f)
        to[static_cast<int64_t>(f) * batch] = 0;
}

struct SumsWork {
    double* product = nullptr; ///< [vector][pixel], -2 x s; the first chunk replaces it by kernel values
    const double *x2 = nullptr, *s2 = nullptr;
    const double* coefficients = nullptr; ///< [vector][other class]; the pitch is even
    const int* class_begin = nullptr;
    double gamma = 1;
    int pixels = 0; ///< pixels per product
    int pitch = 0, others = 0, first = 0;

    /// [class][other][part][pixel of the batch], starting at the product's first pixel.
    double* sums = nullptr;
    int batch = 0;
};

/// Sums coefficient times kernel value over one part of the support vectors of class blockIdx.y, for the N
/// other classes that start at `first`. A thread processes two pixels, which share each value that it reads
/// from the model. If `Fresh` is true, the product holds -2 x s. Otherwise it holds kernel values that an
/// earlier chunk stored (`Keep`).
template <int N, bool Fresh, bool Keep>
__global__ void class_sums(const SumsWork w) {
    const int i = 2 * static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x),
              c = static_cast<int>(blockIdx.y);
    if (i >= w.pixels) return;
    const int part = static_cast<int>(blockIdx.z);
    constexpr int pairs = (N + 1) / 2;
    double one[2 * pairs], two[2 * pairs];
#pragma unroll
    for (int t = 0; t < 2 * pairs; ++t)
        one[t] = two[t] = 0;
    const double2 norm = *reinterpret_cast<const double2*>(w.x2 + i);
    const double gamma = -w.gamma;
    const int begin = w.class_begin[c], count = w.class_begin[c + 1] - begin;
    const int from = begin + static_cast<int>(static_cast<int64_t>(count) * part / parts);
    const int to = begin + static_cast<int>(static_cast<int64_t>(count) * (part + 1) / parts);
    const auto* coefficient =
        reinterpret_cast<const double2*>(w.coefficients + static_cast<int64_t>(from) * w.pitch + w.first);
    auto* at = reinterpret_cast<double2*>(w.product + static_cast<int64_t>(from) * w.pixels + i);
    const double* __restrict__ square = w.s2;
#pragma unroll 4
    for (int v = from; v < to; ++v, at += w.pixels / 2, coefficient += w.pitch / 2) {
        double2 value = Keep ? *at : __ldg(at);
        if (Fresh) {
            const double s2 = __ldg(square + v);
            value.x = cuda::exp_of_negative(gamma * fmax(0.0, norm.x + s2 + value.x));
            value.y = cuda::exp_of_negative(gamma * fmax(0.0, norm.y + s2 + value.y));
            if (Keep) *at = value;
        }
#pragma unroll
        for (int t = 0; t < pairs; ++t) {
            const double2 q = __ldg(coefficient + t);
            one[2 * t] = fma(q.x, value.x, one[2 * t]);
            two[2 * t] = fma(q.x, value.y, two[2 * t]);
            one[2 * t + 1] = fma(q.y, value.x, one[2 * t + 1]);
            two[2 * t + 1] = fma(q.y, value.y, two[2 * t + 1]);
        }
    }
#pragma unroll
    for (int t = 0; t < N; ++t)
        *reinterpret_cast<double2*>(
            w.sums + (static_cast<int64_t>(c * w.others + w.first + t) * parts + part) * w.batch + i) =
            make_double2(one[t], two[t]);
}

struct DecideWork {
    int batch = 0, classes = 0, features = 0;
    int64_t first = 0, pixels = 0; ///< first pixel of the batch and number of pixels in the tile
    const double *sums = nullptr, *rho = nullptr, *coefficient_sum = nullptr, *x2 = nullptr;
    const unsigned char* valid = nullptr;
    const float* class_value = nullptr;
    double gamma = 1, reach = 0, terms = 0;
    int* votes = nullptr;    ///< [class][pixel] in scratch memory; used for many classes
    double* pairs = nullptr; ///< [pair][pixel]: pairwise probabilities; null if not requested
    const double *prob_a = nullptr, *prob_b = nullptr;
    int* label = nullptr;    ///< [pixel of the batch]: index of the class; -1 for invalid pixels
    float* labels = nullptr; ///< class map of the tile
    int* unsure = nullptr;   ///< list of the tile's uncertain pixels
    int* unsure_count = nullptr;
};

__device__ double sum_of(const DecideWork& w, int c, int other, int i) {
    const double* at = w.sums + static_cast<int64_t>(c * (w.classes - 1) + other) * parts * w.batch + i;
    double sum = at[0];
#pragma unroll
    for (int part = 1; part < parts; ++part)
        sum += at[static_cast<int64_t>(part) * w.batch];
    return sum;
}

template <class Votes>
__device__ void decide_pixel(const DecideWork& w, int i, int64_t pixel, const Votes& votes) {
    const int k = w.classes;
    for (int c = 0; c < k; ++c)
        votes(c) = 0;
    const double spread = deviation(w.x2[i], w.reach, w.gamma, w.features, w.terms);
    bool sure = true;
    int p = 0;
    for (int a = 0; a < k; ++a)
#pragma unroll 4
        for (int b = a + 1; b < k; ++b) {
            const double value = sum_of(w, a, b - 1, i) + sum_of(w, b, a, i) - w.rho[p];
            sure = sure && fabs(value) > decision_bound(spread, w.coefficient_sum[p], w.rho[p]);
            ++votes(value > 0 ? a : b);
            if (w.pairs) {
                const double t = value * w.prob_a[p] + w.prob_b[p];
                w.pairs[static_cast<int64_t>(p) * w.batch + i] = pairwise_probability(t, exp(-fabs(t)));
            }
            ++p;
        }
    int best = 0, most = votes(0);
    for (int c = 1; c < k; ++c)
        if (votes(c) > most) {
            most = votes(c);
            best = c;
        }
    w.label[i] = best;
    w.labels[pixel] = w.class_value[best];
    if (!sure) w.unsure[atomicAdd(w.unsure_count, 1)] = static_cast<int>(pixel);
}

__global__ void decide(const DecideWork w) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    const int64_t pixel = w.first + i;
    if (i >= w.batch || pixel >= w.pixels) return;
    if (!w.valid[i]) {
        w.label[i] = -1;
        w.labels[pixel] = nanf("");
        return;
    }
    if (w.classes <= most_local_votes) {
        unsigned char local[most_local_votes];
        decide_pixel(w, i, pixel, [&](int c) -> unsigned char& { return local[c]; });
    } else {
        decide_pixel(w, i, pixel,
                     [&](int c) -> int& { return w.votes[static_cast<int64_t>(c) * w.batch + i]; });
    }
}

struct EstimateWork {
    int batch = 0, classes = 0;
    int64_t first = 0, pixels = 0;
    const double* pairs = nullptr;
    const int* label = nullptr;
    double *p = nullptr, *q = nullptr, *qp = nullptr; ///< scratch memory, [..][pixel]
    float* probabilities = nullptr;                   ///< [class][pixel of the tile]; may be null
    float* confidence = nullptr;                      ///< may be null
};

__global__ void estimate(const EstimateWork w) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    const int64_t pixel = w.first + i;
    if (i >= w.batch || pixel >= w.pixels) return;
    const int k = w.classes, best = w.label[i];
    if (best < 0) {
        if (w.probabilities)
            for (int c = 0; c < k; ++c)
                w.probabilities[c * w.pixels + pixel] = nanf("");
        if (w.confidence) w.confidence[pixel] = nanf("");
        return;
    }
    const auto r = [&](int a, int b) {
        const int64_t at =
            static_cast<int64_t>(a < b ? pair_index(a, b, k) : pair_index(b, a, k)) * w.batch + i;
        return a < b ? w.pairs[at] : 1 - w.pairs[at];
    };
    couple(k, r, w.p + i, w.q + i, w.qp + i, w.batch);
    if (w.probabilities)
        for (int c = 0; c < k; ++c)
            w.probabilities[c * w.pixels + pixel] =
                static_cast<float>(w.p[static_cast<int64_t>(c) * w.batch + i]);
    if (w.confidence) w.confidence[pixel] = static_cast<float>(w.p[static_cast<int64_t>(best) * w.batch + i]);
}

/// Launches class_sums for `count` other classes.
template <int N>
void launch_sums(int count, const SumsWork& work, dim3 grid, cudaStream_t stream) {
    if constexpr (N > 1)
        if (count < N) return launch_sums<N - 1>(count, work, grid, stream);
    if (work.first > 0)
        class_sums<N, false, false><<<grid, threads, 0, stream>>>(work);
    else if (N == chunk && work.others > chunk)
        class_sums<N, true, N == chunk><<<grid, threads, 0, stream>>>(work);
    else
        class_sums<N, true, false><<<grid, threads, 0, stream>>>(work);
    HSI_CUDA_LAUNCHED("class_sums");
}

/// The model on one device, shared by all workers.
struct DeviceModel {
    Batches batches;
    int pitch = 0; ///< pitch of the coefficients
    double reach = 0, terms = 0;
    DeviceBuffer<double> minimum, factor, vectors, squares, coefficients, rho, coefficient_sum, prob_a,
        prob_b;
    DeviceBuffer<float> class_value;
    DeviceBuffer<int> class_begin;

    DeviceModel(const Model& m, bool estimates) : batches(m, estimates) {
        const auto n = static_cast<size_t>(m.features()), l = static_cast<size_t>(m.vector_count());
        const auto k = static_cast<size_t>(m.class_count());
        const auto padded = static_cast<size_t>(batches.features);
        std::vector<double> f, s(l * padded, 0.0), s2;
        for (int i = 0; i < m.features(); ++i)
            f.push_back(m.factor(i));
        for (size_t v = 0; v < l; ++v) {
            double sum = 0;
            for (size_t i = 0; i < n; ++i) {
                const auto x = static_cast<double>(m.support_vectors[v * n + i]);
                s[v * padded + i] = x;
                sum += x * x;
            }
            s2.push_back(sum);
        }
        const DecisionErrors errors(m);
        reach = errors.reach;
        terms = errors.terms;
        const auto firsts = svm::class_begin(m);
        const std::vector<int> begin(firsts.begin(), firsts.end());
        pitch = static_cast<int>(even(m.class_count() - 1));
        std::vector<double> by_vector(l * static_cast<size_t>(pitch), 0.0);
        for (size_t o = 0; o + 1 < k; ++o)
            for (size_t v = 0; v < l; ++v)
                by_vector[v * static_cast<size_t>(pitch) + o] = m.coefficients[o * l + v];
        std::vector<float> value;
        for (const auto& c : m.classes)
            value.push_back(static_cast<float>(c.value));
        minimum = DeviceBuffer(m.minimum);
        factor = DeviceBuffer(f);
        vectors = DeviceBuffer(s);
        squares = DeviceBuffer(s2);
        coefficients = DeviceBuffer(by_vector);
        rho = DeviceBuffer(m.rho);
        coefficient_sum = DeviceBuffer(errors.coefficient_sum);
        prob_a = DeviceBuffer(m.prob_a);
        prob_b = DeviceBuffer(m.prob_b);
        class_value = DeviceBuffer(value);
        class_begin = DeviceBuffer(begin);
    }
};

size_t count_of(int64_t a, int64_t b = 1, int64_t c = 1) { return static_cast<size_t>(a * b * c); }
int64_t padded_to(int64_t pixels, int batch) { return (pixels + batch - 1) / batch * batch; }

class CudaWorker final : public stream::Worker {
  public:
    /// Precondition: `ordinal` is the current device.
    CudaWorker(int ordinal, std::shared_ptr<const Model> model, const ClassifyOptions& options,
               std::shared_ptr<const DeviceModel> device_model, const TileLimits& limits)
        : by_class(model->classes.size(), 0), m_ordinal(ordinal), m_model(std::move(model)),
          m_options(options), m_device(std::move(device_model)), m_cublas(m_product_stream.get()),
          m_pixels(limits.core_samples * limits.core_lines),
          m_padded(padded_to(m_pixels, m_device->batches.product)),
          m_raw(count_of(m_pixels, m_model->features())), m_x(count_of(m_padded, m_device->batches.features)),
          m_x2(count_of(m_padded)), m_valid(count_of(m_padded)),

          m_sums(count_of(int64_t{parts} * m_device->batches.batch, m_model->class_count(),
                          m_model->class_count() - 1)),
          m_votes(count_of(m_device->batches.batch, m_model->class_count())),
          m_label(count_of(m_device->batches.batch)), m_labels(count_of(m_pixels)),
          m_unsure(count_of(m_pixels) + 1),
          m_host_unsure(std::make_shared<cuda::PinnedAllocator>(ordinal), count_of(m_pixels) + 1) {
        for (auto& buffer : m_product)
            buffer = DeviceBuffer<double>(count_of(m_device->batches.product, m_model->vector_count()));
        const int64_t k = m_model->class_count(), batch = m_device->batches.batch;
        if (estimates()) {
            m_pairs = DeviceBuffer<double>(count_of(m_model->pair_count(), batch));
            m_p = DeviceBuffer<double>(count_of(k, batch));
            m_qp = DeviceBuffer<double>(count_of(k, batch));
            m_q = DeviceBuffer<double>(count_of(k, k, batch));
        }
        if (options.probabilities) m_probabilities = DeviceBuffer<float>(count_of(k, m_pixels));
        if (options.confidence) m_confidence = DeviceBuffer<float>(count_of(m_pixels));
    }

    static uint64_t device_bytes(const Model& m, const ClassifyOptions& o, const TileLimits& l) {
        const int64_t pixels = l.core_samples * l.core_lines, n = m.features(), k = m.class_count();
        const bool estimates = o.probabilities || o.confidence;
        const Batches b(m, estimates);
        int64_t bytes = pixels * (4 * n + 8) + padded_to(pixels, b.product) * (8 * b.features + 9) +
                        b.product * 16 * m.vector_count() + b.batch * (8 * parts * k * (k - 1) + 4 * k + 4);
        if (estimates) bytes += b.batch * 8 * (m.pair_count() + k * (k + 2));
        if (o.probabilities) bytes += pixels * 4 * k;
        if (o.confidence) bytes += pixels * 4;
        return static_cast<uint64_t>(bytes) + (uint64_t{64} << 20); // cuBLAS's workspace
    }

    void process(const Tile&, const CubeView<float>& in, const std::vector<CubeView<float>>& out) override {
        const DeviceGuard guard(m_ordinal);
        const auto stream = m_stream.get();
        const Model& model = *m_model;
        const int n = model.features(), k = model.class_count();
        const Batches& b = m_device->batches;
        const auto l = model.vector_count();
        const int64_t pixels = in.lines * in.samples; // The window equals the core.
        const int64_t padded = padded_to(pixels, b.product);
        // One stream computes the next product while the other stream sums over the current product. Products
        // are limited by the matrix units and memory, sums by arithmetic.
        const auto products = m_product_stream.get();
        const float* const raw = m_raw.packed(in, stream);
        HSI_CUDA_CHECK(cudaMemsetAsync(m_unsure.data(), 0, sizeof(int), stream));

        m_clock.start(stream);
        scale<<<blocks(padded), threads, 0, stream>>>(raw, pixels, padded, n, b.features, b.product,
                                                      m_device->minimum.data(), m_device->factor.data(),
                                                      m_x.data(), m_x2.data(), m_valid.data());
        HSI_CUDA_LAUNCHED("scale");
        SumsWork work;

        work.s2 = m_device->squares.data();
        work.coefficients = m_device->coefficients.data();
        work.class_begin = m_device->class_begin.data();
        work.gamma = model.gamma;
        work.pixels = b.product;
        work.pitch = m_device->pitch;
        work.others = k - 1;

        work.batch = b.batch;
        const dim3 grid(static_cast<unsigned>(blocks(b.product / 2)), static_cast<unsigned>(k), parts);
        m_scaled.record(stream);
        HSI_CUDA_CHECK(cudaStreamWaitEvent(products, m_scaled.get(), 0));
        int64_t number = 0;
        for (int64_t first = 0; first < pixels; first += b.batch) {
            for (int64_t at = first; at < std::min(first + b.batch, padded); at += b.product, ++number) {
                const auto side = static_cast<size_t>(number % 2);
                if (number >= 2) HSI_CUDA_CHECK(cudaStreamWaitEvent(products, m_summed[side].get(), 0));
                work.product = m_product[side].data();
                const double minus_two = -2, zero = 0;
                HSI_CUBLAS_CHECK(
                    cublasDgemm(m_cublas.get(), CUBLAS_OP_N, CUBLAS_OP_N, b.product, static_cast<int>(l),
                                b.features, &minus_two, m_x.data() + at * b.features, b.product,
                                m_device->vectors.data(), b.features, &zero, work.product, b.product));
                m_multiplied[side].record(products);
                m_stream.wait_for(m_multiplied[side]);
                work.x2 = m_x2.data() + at;
                work.sums = m_sums.data() + (at - first);
                for (int other = 0; other < k - 1; other += chunk) {
                    work.first = other;

                    launch_sums<chunk>(std::min(chunk, k - 1 - other), work, grid, stream);
                }
                m_summed[side].record(stream);
            }
            launch_decision(first, pixels, stream);
        }
        m_clock.stop(stream);

        size_t next = 0;
        float* labels = out[next++].data;
        m_labels.download(labels, count_of(pixels), stream);
        float *probabilities = nullptr, *confidence = nullptr;
        if (m_options.probabilities) {
            probabilities = out[next++].data;
            m_probabilities.download(probabilities, count_of(k, pixels), stream);
        }
        if (m_options.confidence) {
            confidence = out[next++].data;
            m_confidence.download(confidence, count_of(pixels), stream);
        }
        m_unsure.download(m_host_unsure.data(), 1, stream);
        m_stream.synchronize();
        kernel_seconds += m_clock.seconds();
        const int unsure = m_host_unsure[0];
        if (unsure > 0) {
            HSI_CUDA_CHECK(cudaMemcpyAsync(m_host_unsure.data(), m_unsure.data(),
                                           (count_of(unsure) + 1) * sizeof(int), cudaMemcpyDeviceToHost,
                                           stream));
            m_stream.synchronize();
        }
        repeat(in, pixels, unsure, labels, probabilities, confidence);
        tally(labels, pixels);
    }

    std::vector<int64_t> by_class;
    int64_t invalid = 0, repeated = 0;
    double kernel_seconds = 0;

  private:
    bool estimates() const { return m_options.probabilities || m_options.confidence; }

    void launch_decision(int64_t first, int64_t pixels, cudaStream_t stream) {
        const Model& model = *m_model;
        DecideWork w;
        w.batch = m_device->batches.batch;
        w.classes = model.class_count();
        w.features = model.features();
        w.first = first;
        w.pixels = pixels;
        w.sums = m_sums.data();
        w.rho = m_device->rho.data();
        w.coefficient_sum = m_device->coefficient_sum.data();
        w.x2 = m_x2.data() + first;
        w.valid = m_valid.data() + first;
        w.class_value = m_device->class_value.data();
        w.gamma = model.gamma;
        w.reach = m_device->reach;
        w.terms = m_device->terms;
        w.votes = m_votes.data();
        w.pairs = estimates() ? m_pairs.data() : nullptr;
        w.prob_a = m_device->prob_a.data();
        w.prob_b = m_device->prob_b.data();
        w.label = m_label.data();
        w.labels = m_labels.data();
        w.unsure = m_unsure.data() + 1;
        w.unsure_count = m_unsure.data();
        decide<<<blocks(w.batch), threads, 0, stream>>>(w);
        HSI_CUDA_LAUNCHED("decide");
        if (!estimates()) return;
        EstimateWork e;
        e.batch = w.batch;
        e.classes = w.classes;
        e.first = first;
        e.pixels = pixels;
        e.pairs = m_pairs.data();
        e.label = m_label.data();
        e.p = m_p.data();
        e.q = m_q.data();
        e.qp = m_qp.data();
        e.probabilities = m_options.probabilities ? m_probabilities.data() : nullptr;
        e.confidence = m_options.confidence ? m_confidence.data() : nullptr;
        estimate<<<blocks(w.batch), threads, 0, stream>>>(e);
        HSI_CUDA_LAUNCHED("estimate");
    }

    /// Loads all features of a pixel from host or device memory.
    static void load_pixel(const CubeView<float>& in, bool device, int64_t at, std::vector<float>& to) {
        const auto line = static_cast<ptrdiff_t>(at / in.samples),
                   sample = static_cast<ptrdiff_t>(at % in.samples);
        const float* const from = in.data + line * in.line_stride + sample;
        if (device)
            HSI_CUDA_CHECK(cudaMemcpy2D(to.data(), sizeof(float), from,
                                        static_cast<size_t>(in.band_stride) * sizeof(float), sizeof(float),
                                        to.size(), cudaMemcpyDeviceToHost));
        else
            for (size_t f = 0; f < to.size(); ++f)
                to[f] = from[static_cast<ptrdiff_t>(f) * in.band_stride];
    }

    /// Classifies the uncertain pixels of the device again.
    void repeat(const CubeView<float>& in, int64_t pixels, int count, float* labels, float* probabilities,
                float* confidence) {
        const Model& model = *m_model;
        const int n = model.features();
        const bool device = count > 0 && cuda::on_device(in);
        std::vector<float> x(count_of(n));
        for (int u = 1; u <= count; ++u) {
            const int64_t at = m_host_unsure[count_of(u)];
            load_pixel(in, device, at, x);
            for (int f = 0; f < n; ++f)
                x[count_of(f)] = scaled(x[count_of(f)], model.minimum[count_of(f)], model.factor(f));
            const Prediction exact = predict_exactly(model, x.data());
            const auto label = count_of(exact.label);
            labels[at] = static_cast<float>(model.classes[label].value);
            if (probabilities)
                for (size_t c = 0; c < exact.probabilities.size(); ++c)
                    probabilities[static_cast<int64_t>(c) * pixels + at] =
                        static_cast<float>(exact.probabilities[c]);
            if (confidence) confidence[at] = static_cast<float>(exact.probabilities[label]);
        }
        repeated += count;
    }

    void tally(const float* labels, int64_t pixels) {
        const auto& classes = m_model->classes;
        if (m_class_of.empty()) {
            m_class_of.assign(65536, 0);
            for (size_t c = 0; c < classes.size(); ++c)
                m_class_of[count_of(classes[c].value)] = static_cast<int>(c);
        }
        for (int64_t i = 0; i < pixels; ++i) {
            if (std::isnan(labels[i]))
                ++invalid;
            else
                ++by_class[count_of(m_class_of[static_cast<size_t>(labels[i])])];
        }
    }

    int m_ordinal;
    std::shared_ptr<const Model> m_model;
    ClassifyOptions m_options;
    std::shared_ptr<const DeviceModel> m_device;
    cuda::Stream m_stream, m_product_stream;
    cuda::Cublas m_cublas;
    cuda::Event m_scaled;
    std::array<cuda::Event, 2> m_multiplied, m_summed;
    cuda::KernelClock m_clock;
    int64_t m_pixels, m_padded;
    cuda::TileInput m_raw;
    DeviceBuffer<double> m_x, m_x2;
    DeviceBuffer<unsigned char> m_valid;
    std::array<DeviceBuffer<double>, 2> m_product;
    DeviceBuffer<double> m_sums;
    DeviceBuffer<int> m_votes, m_label;
    DeviceBuffer<float> m_labels;
    DeviceBuffer<int> m_unsure; ///< number of uncertain pixels, then their indices
    HostBuffer<int> m_host_unsure;
    DeviceBuffer<double> m_pairs, m_p, m_q, m_qp;
    DeviceBuffer<float> m_probabilities, m_confidence;
    std::vector<int> m_class_of;
};

class CudaClassification final : public cuda::LaneOperation<Classification> {
  public:
    CudaClassification(std::vector<CudaDevice> devices, std::shared_ptr<const Model> model,
                       const ClassifyOptions& options, double& kernel_seconds)
        : LaneOperation(std::move(devices), std::move(model), options), m_shared(this->devices().size()),
          m_kernel_seconds(kernel_seconds) {
        if (m_model->vector_count() > std::numeric_limits<int>::max() / 2)
            throw Error("the model has too many support vectors for the GPU", "Use -device cpu.");
    }
    int takes_from() const override { return only_device(); }
    uint64_t preferred_bytes() const override { return uint64_t{64} << 20; }
    uint64_t scratch_bytes(const TileLimits& l) const override {
        return 4 * (count_of(l.core_samples, l.core_lines) + 1) + 4 * 65536;
    }
    uint64_t device_bytes(const TileLimits& l) const override {
        return CudaWorker::device_bytes(*m_model, m_options, l);
    }
    void stop(stream::Worker& worker) override {
        const auto& w = static_cast<const CudaWorker&>(worker);
        count(w.by_class, w.invalid, w.repeated);
        m_kernel_seconds += w.kernel_seconds;
    }

  private:
    std::unique_ptr<stream::Worker> make_lane(const cuda::LaneDevice& on, const TileLimits& limits) override {
        auto shared = m_shared.on(on, [&] {
            return std::make_shared<DeviceModel>(*m_model, m_options.probabilities || m_options.confidence);
        });
        return std::make_unique<CudaWorker>(on.ordinal, m_model, m_options, std::move(shared), limits);
    }

    cuda::OncePerDevice<DeviceModel> m_shared;
    double& m_kernel_seconds;
};

class CudaBackend final : public cuda::TimedBackend<Backend> {
  public:
    using TimedBackend::TimedBackend;
    std::unique_ptr<Classification> make_classification(std::shared_ptr<const Model> model,
                                                        const ClassifyOptions& options) override {
        return std::make_unique<CudaClassification>(m_devices, std::move(model), options, m_kernel_seconds);
    }
};

} // namespace
} // namespace hsi::svm

extern "C" __attribute__((visibility("default"))) hsi::svm::Backend*
hsi_cuda_svm(const std::vector<hsi::CudaDevice>& devices) {
    return new hsi::svm::CudaBackend(devices);
}
