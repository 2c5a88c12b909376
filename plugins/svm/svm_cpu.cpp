// SPDX-License-Identifier: MIT
// Classification of tiles on the processor.
#include "core/cube_view.h"
#include "core/error.h"
#include "core/valid_pixel.h"
#include "math/rbf_sums.h"
#include "parallel/group.h"
#include "svm/svm.h"
#include "svm/svm_math.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace hsi::svm {
namespace {

/// Returns the support vectors of each class as a separate group.
math::RbfPanels make_panels(const Model& model, std::vector<int64_t>& group_begin) {
    const auto n = static_cast<size_t>(model.features()), vectors = static_cast<size_t>(model.vector_count());
    math::RbfPanels panels(model.features(), model.class_count() - 1, model.gamma);
    size_t v = 0;
    group_begin.assign(1, 0);
    for (const int support : model.support_count) {
        const auto count = static_cast<size_t>(support);
        panels.append(
            count,
            [&](size_t k, size_t f) { return static_cast<double>(model.support_vectors[(v + k) * n + f]); },
            [&](size_t o, size_t k) { return model.coefficients[o * vectors + v + k]; });
        v += count;
        group_begin.push_back(panels.groups());
    }
    return panels;
}

/// Data shared by all workers.
struct Shared {
    std::shared_ptr<const Model> model;
    ClassifyOptions options;
    math::RbfPanels panels;
    /// Index of the first vector of each class, and the end of the last class.
    std::vector<int64_t> group_begin;
    std::vector<double> factor;
    std::optional<DecisionErrors> errors;
};

class ClassifyWorker final : public stream::Worker {
  public:
    explicit ClassifyWorker(std::shared_ptr<const Shared> shared)
        : by_class(static_cast<size_t>(shared->model->class_count()), 0), m_shared(std::move(shared)),
          m_simd(math::rbf_kernels()), m_width(m_simd.width), m_n(m_shared->panels.features()),
          m_k(m_shared->model->class_count()), m_x(static_cast<size_t>(m_n * m_width)),
          m_x2(static_cast<size_t>(m_width)), m_sums(static_cast<size_t>(m_k * (m_k - 1) * m_width)),
          m_decision(m_shared->errors->coefficient_sum.size()), m_votes(static_cast<size_t>(m_k)),
          m_features(static_cast<size_t>(m_n)), m_p(static_cast<size_t>(m_k)),
          m_q(static_cast<size_t>(m_k * m_k)), m_qp(static_cast<size_t>(m_k)) {}

    void process(const Tile&, const CubeView<float>& in, const std::vector<CubeView<float>>& out) override {
        // The pixels are packed, since the window equals the core.
        const int64_t pixels = in.lines * in.samples;
        size_t next = 0;
        m_labels = out[next++].data;
        m_probabilities = m_shared->options.probabilities ? &out[next++] : nullptr;
        m_confidence = m_shared->options.confidence ? out[next++].data : nullptr;
        for (int64_t first = 0; first < pixels; first += m_width)
            block(in, first, static_cast<int>(std::min<int64_t>(m_width, pixels - first)));
    }

    std::vector<int64_t> by_class;
    int64_t invalid = 0, repeated = 0;

  private:
    void block(const CubeView<float>& in, int64_t first, int count) {
        std::fill(m_x2.begin(), m_x2.end(), 0.0);
        m_pixels.start(static_cast<size_t>(count));
        const Model& model = *m_shared->model;
        for (int f = 0; f < m_n; ++f) {
            const float* v = in.data + f * in.band_stride + first;
            double* x = m_x.data() + f * m_width;
            const double minimum = model.minimum[static_cast<size_t>(f)],
                         factor = m_shared->factor[static_cast<size_t>(f)];
            for (int i = 0; i < count; ++i) {
                const auto at = static_cast<size_t>(i);
                x[i] = static_cast<double>(scaled(v[i], minimum, factor));
                m_x2[at] += x[i] * x[i];
                m_pixels.look(at, v[i]);
            }
            for (int i = count; i < m_width; ++i)
                x[i] = 0;
        }
        if (m_pixels.judge() > 0) add_sums();
        for (int i = 0; i < count; ++i) {
            if (m_pixels.is_valid(static_cast<size_t>(i)))
                pixel(first + i, i);
            else
                no_class(first + i);
        }
    }

    /// For each class i, and each other class in order, adds the sum of coefficient times kernel value over
    /// the support vectors of class i.
    void add_sums() {
        std::fill(m_sums.begin(), m_sums.end(), 0.0);
        for (int c = 0; c < m_k; ++c)
            m_simd.add_sums(m_shared->panels, m_shared->group_begin[static_cast<size_t>(c)],
                            m_shared->group_begin[static_cast<size_t>(c) + 1], m_x.data(), m_x2.data(),
                            m_sums.data() + c * (m_k - 1) * m_width);
    }

    void no_class(int64_t at) {
        ++invalid;
        m_labels[at] = no_value;
        if (m_confidence) m_confidence[at] = no_value;
        if (m_probabilities)
            for (int c = 0; c < m_k; ++c)
                m_probabilities->data[c * m_probabilities->band_stride + at] = no_value;
    }

    double sum_of(int c, int other, int i) const {
        return m_sums[static_cast<size_t>((c * (m_k - 1) + other) * m_width + i)];
    }

    void pixel(int64_t at, int i) {
        const Model& model = *m_shared->model;
        const DecisionErrors& errors = *m_shared->errors;
        const double spread =
            deviation(m_x2[static_cast<size_t>(i)], errors.reach, model.gamma, m_n, errors.terms);
        std::fill(m_votes.begin(), m_votes.end(), 0);
        bool certain = true;
        size_t p = 0;
        for (int a = 0; a < m_k; ++a)
            for (int b = a + 1; b < m_k; ++b, ++p) {
                const double value = sum_of(a, b - 1, i) + sum_of(b, a, i) - model.rho[p];
                const double bound = decision_bound(spread, errors.coefficient_sum[p], model.rho[p]);
                m_decision[p] = value;
                certain = certain && std::fabs(value) > bound; // False for NaN.
                ++m_votes[static_cast<size_t>(value > 0 ? a : b)];
            }
        auto label = static_cast<int>(std::max_element(m_votes.begin(), m_votes.end()) - m_votes.begin());
        const bool estimates = m_probabilities || m_confidence;
        if (!certain) {
            ++repeated;
            for (int f = 0; f < m_n; ++f)
                m_features[static_cast<size_t>(f)] =
                    static_cast<float>(m_x[static_cast<size_t>(f * m_width + i)]);
            const Prediction exact = predict_exactly(model, m_features.data());
            label = exact.label;
            if (estimates) std::copy(exact.probabilities.begin(), exact.probabilities.end(), m_p.begin());
        } else if (estimates) {
            const auto r = [&](int a, int b) {
                const auto q = static_cast<size_t>(a < b ? pair_index(a, b, m_k) : pair_index(b, a, m_k));
                return a < b ? m_decision[q] : 1 - m_decision[q];
            };
            for (size_t q = 0; q < m_decision.size(); ++q)
                m_decision[q] = probability_of(m_decision[q], model.prob_a[q], model.prob_b[q]);
            couple(m_k, r, m_p.data(), m_q.data(), m_qp.data(), 1);
        }
        ++by_class[static_cast<size_t>(label)];
        m_labels[at] = static_cast<float>(model.classes[static_cast<size_t>(label)].value);
        if (m_confidence) m_confidence[at] = static_cast<float>(m_p[static_cast<size_t>(label)]);
        if (m_probabilities)
            for (int c = 0; c < m_k; ++c)
                m_probabilities->data[c * m_probabilities->band_stride + at] =
                    static_cast<float>(m_p[static_cast<size_t>(c)]);
    }

    const std::shared_ptr<const Shared> m_shared;
    const math::RbfKernels& m_simd;
    const int m_width, m_n, m_k;
    std::vector<double> m_x, m_x2, m_sums;
    PixelRow m_pixels;
    std::vector<double> m_decision;
    std::vector<int> m_votes;
    std::vector<float> m_features;
    std::vector<double> m_p, m_q, m_qp;
    float *m_labels = nullptr, *m_confidence = nullptr;
    const CubeView<float>* m_probabilities = nullptr;
};

class CpuClassification final : public Classification {
  public:
    CpuClassification(std::shared_ptr<const Model> model, const ClassifyOptions& options)
        : Classification(std::move(model), options) {
        auto shared = std::make_shared<Shared>();
        shared->model = m_model;
        shared->options = m_options;
        shared->panels = make_panels(*m_model, shared->group_begin);
        for (int f = 0; f < m_model->features(); ++f)
            shared->factor.push_back(m_model->factor(f));
        shared->errors.emplace(*m_model);
        m_shared = std::move(shared);
    }

    uint64_t preferred_bytes() const override { return uint64_t{8} << 20; }
    uint64_t scratch_bytes(const stream::TileLimits&) const override {
        const auto n = static_cast<uint64_t>(m_model->features()),
                   k = static_cast<uint64_t>(m_model->class_count());
        return 8 * static_cast<uint64_t>(math::rbf_kernels().width) * (n + k * k + 2) + 16 * k * k + 8 * n;
    }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
        return std::make_unique<ClassifyWorker>(m_shared);
    }
    void stop(stream::Worker& worker) override {
        const auto& w = static_cast<const ClassifyWorker&>(worker);
        count(w.by_class, w.invalid, w.repeated);
    }

  private:
    std::shared_ptr<const Shared> m_shared;
};

} // namespace

Classification::Classification(std::shared_ptr<const Model> model, const ClassifyOptions& options)
    : m_model(std::move(model)), m_options(options), m_by_class(m_model->classes.size(), 0) {
    if ((options.probabilities || options.confidence) && !m_model->has_probabilities())
        throw Error("the model has no probability estimates", "Train it with -probability.");
}

std::vector<int> Classification::output_bands() const {
    std::vector<int> bands{1};
    if (m_options.probabilities) bands.push_back(m_model->class_count());
    if (m_options.confidence) bands.push_back(1);
    return bands;
}

void Classification::exchange(parallel::Group& ranks) {
    ranks.add_up("classes", m_by_class);
    m_classified = ranks.sum("classified pixels", m_classified);
    m_invalid = ranks.sum("invalid pixels", m_invalid);
    m_repeated = ranks.sum("repeated pixels", m_repeated);
}

void Classification::count(const std::vector<int64_t>& by_class, int64_t invalid, int64_t repeated) {
    for (size_t c = 0; c < m_by_class.size(); ++c) {
        m_by_class[c] += by_class[c];
        m_classified += by_class[c];
    }
    m_invalid += invalid;
    m_repeated += repeated;
}

std::unique_ptr<Classification> make_classification(std::shared_ptr<const Model> model,
                                                    const ClassifyOptions& options) {
    return std::make_unique<CpuClassification>(std::move(model), options);
}

const char* simd_target() { return math::rbf_kernels().target; }

namespace {

class CpuBackend final : public Backend {
  public:
    std::unique_ptr<Classification> make_classification(std::shared_ptr<const Model> model,
                                                        const ClassifyOptions& options) override {
        return svm::make_classification(std::move(model), options);
    }
};

} // namespace

std::unique_ptr<Backend> make_cpu_backend() { return std::make_unique<CpuBackend>(); }

} // namespace hsi::svm
