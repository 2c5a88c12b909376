// SPDX-License-Identifier: MIT
#include "atdca/classify.h"
#include "atdca/atdca_simd.h"
#include "core/cube_view.h"
#include "core/error.h"
#include "math/elementary.h"
#include "math/linear_algebra.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

namespace hsi::atdca {
namespace {

double degrees(double cosine) { return math::acos(std::clamp(cosine, -1.0, 1.0)) * degrees_per_radian; }

class ClassifyWorker final : public stream::Worker {
  public:
    /// units, weights: one row per target.
    ClassifyWorker(const ClassifyOptions& options, int bands, const std::vector<double>& units,
                   const std::vector<double>& weights)
        : m_simd(simd_kernels()), m_options(options), m_bands(static_cast<size_t>(bands)), m_units(units),
          m_weights(weights), m_targets(units.size() / m_bands),
          m_spectra(static_cast<size_t>(strip) * m_bands), m_norm(strip), m_cosine(m_targets * group),
          m_abundance(weights.size() / m_bands * group) {}

    void process(const Tile&, const CubeView<float>& in, const std::vector<CubeView<float>>& out) override {
        if (in.line_stride != in.samples) throw Error("internal: the tile is not packed");
        const int64_t pixels = in.lines * in.samples;
        for (int64_t first = 0; first < pixels; first += strip) {
            const int64_t count = std::min(strip, pixels - first);
            m_simd.pack(in.row(0, 0) + first, in.band_stride, in.bands, count, m_spectra.data(),
                        m_norm.data());
            for (int64_t g = 0; g < count; g += group)
                classify(g, first + g, std::min<int64_t>(group, count - g), out);
        }
    }

  private:
    void multiply(const std::vector<double>& rows, int64_t at, std::vector<double>& result) const {
        const size_t targets = rows.size() / m_bands;
        for (size_t k = 0; k < targets; k += vectors) {
            const double* row[vectors];
            const size_t count = std::min<size_t>(vectors, targets - k);
            for (size_t j = 0; j < count; ++j)
                row[j] = rows.data() + (k + j) * m_bands;
            m_simd.dots(m_spectra.data() + static_cast<size_t>(at) * m_bands, static_cast<int>(m_bands), row,
                        static_cast<int>(count), result.data() + k * group);
        }
    }

    void classify(int64_t at, int64_t pixel, int64_t count, const std::vector<CubeView<float>>& out) {
        multiply(m_units, at, m_cosine);
        if (!m_weights.empty()) multiply(m_weights, at, m_abundance);
        size_t next = 0;
        const CubeView<float>* const map = m_options.map ? &out[next++] : nullptr;
        const CubeView<float>* const scores =
            m_options.scores != ClassifyOptions::Scores::none ? &out[next] : nullptr;
        for (int64_t i = 0; i < count; ++i) {
            const double squared = m_norm[static_cast<size_t>(at + i)];
            const bool valid = squared > 0;
            const double inverse = valid ? 1.0 / std::sqrt(squared) : 0.0;
            if (map) {
                size_t best = 0;
                for (size_t k = 1; k < m_targets; ++k)
                    if (m_cosine[k * group + static_cast<size_t>(i)] >
                        m_cosine[best * group + static_cast<size_t>(i)])
                        best = k;
                const double angle = degrees(m_cosine[best * group + static_cast<size_t>(i)] * inverse);
                map->row(0, 0)[pixel + i] = !valid                         ? no_value
                                            : angle <= m_options.max_angle ? static_cast<float>(best + 1)
                                                                           : 0.0f;
            }
            if (!scores) continue;
            for (size_t k = 0; k < m_targets; ++k) {
                const size_t from = k * group + static_cast<size_t>(i);
                float value = no_value;
                if (valid)
                    value = static_cast<float>(m_options.scores == ClassifyOptions::Scores::angle
                                                   ? degrees(m_cosine[from] * inverse)
                                                   : m_abundance[from]);
                scores->row(static_cast<int>(k), 0)[pixel + i] = value;
            }
        }
    }

    const SimdKernels& m_simd;
    const ClassifyOptions m_options;
    const size_t m_bands;
    const std::vector<double>&m_units, &m_weights;
    const size_t m_targets;
    std::vector<float> m_spectra;
    std::vector<double> m_norm, m_cosine, m_abundance;
};

class Classification final : public stream::Operation {
  public:
    explicit Classification(Classifier classifier) : m_classifier(std::move(classifier)) {}
    bool divides() const override { return true; }
    std::vector<int> output_bands() const override { return m_classifier.output_bands(); }
    uint64_t scratch_bytes(const stream::TileLimits&) const override {
        return static_cast<uint64_t>(strip) * (static_cast<uint64_t>(m_classifier.bands) * 4 + 8) +
               static_cast<uint64_t>(m_classifier.targets) * group * 16;
    }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
        return std::make_unique<ClassifyWorker>(m_classifier.options, m_classifier.bands, m_classifier.units,
                                                m_classifier.weights);
    }

  private:
    const Classifier m_classifier;
};

/// Returns the rows of the pseudo-inverse (U'U)^-1 U', where the columns of U are the targets. The matrix
/// that is inverted has the products of unit vectors, so it is well scaled.
std::vector<double> weights_of(const Classifier& c, const std::vector<double>& norms) {
    const auto t = static_cast<size_t>(c.targets), n = static_cast<size_t>(c.bands);
    std::vector<double> gram(t * t);
    for (size_t a = 0; a < t; ++a)
        for (size_t b = 0; b < t; ++b)
            for (size_t i = 0; i < n; ++i)
                gram[a * t + b] += c.units[a * n + i] * c.units[b * n + i];
    std::vector<double> inverse;
    try {
        inverse = math::invert_positive(gram, c.targets);
    } catch (const Error&) {
        throw Error("the spectra of the targets are linearly dependent: abundances are not defined",
                    "Use fewer targets, or compute angles.");
    }
    std::vector<double> weights(t * n, 0.0);
    for (size_t a = 0; a < t; ++a)
        for (size_t b = 0; b < t; ++b)
            for (size_t i = 0; i < n; ++i)
                weights[a * n + i] += inverse[a * t + b] * c.units[b * n + i] / norms[a];
    return weights;
}

} // namespace

Classifier::Classifier(const std::vector<std::vector<float>>& spectra, const ClassifyOptions& given)
    : options(given) {
    if (spectra.empty()) throw Error("internal: no target to classify by");
    bands = static_cast<int>(spectra.front().size());
    targets = static_cast<int>(spectra.size());
    std::vector<double> norms;
    for (const auto& x : spectra) {
        double squared = 0;
        for (float v : x)
            squared += static_cast<double>(v) * static_cast<double>(v);
        norms.push_back(std::sqrt(squared));
        for (float v : x)
            units.push_back(squared > 0 ? static_cast<double>(v) / norms.back() : 0.0);
    }
    if (options.scores == ClassifyOptions::Scores::abundance) weights = weights_of(*this, norms);
}

std::vector<int> Classifier::output_bands() const {
    std::vector<int> outputs;
    if (options.map) outputs.push_back(1);
    if (has_scores()) outputs.push_back(targets);
    return outputs;
}

std::unique_ptr<stream::Operation> make_classification(const std::vector<std::vector<float>>& spectra,
                                                       const ClassifyOptions& options) {
    return std::make_unique<Classification>(Classifier(spectra, options));
}

double spectral_angle(const double* a, const double* b, size_t n) {
    double aa = 0, bb = 0;
    for (size_t i = 0; i < n; ++i) {
        aa += a[i] * a[i];
        bb += b[i] * b[i];
    }
    if (!(aa > 0 && bb > 0)) return std::numeric_limits<double>::quiet_NaN();
    const double ia = 1.0 / std::sqrt(aa), ib = 1.0 / std::sqrt(bb);
    double apart = 0, together = 0;
    for (size_t i = 0; i < n; ++i) {
        const double u = a[i] * ia, v = b[i] * ib;
        apart += (u - v) * (u - v);
        together += (u + v) * (u + v);
    }
    // Unlike acos of the dot product, this formula is accurate for nearly parallel spectra.
    return 2.0 * math::atan2(std::sqrt(apart), std::sqrt(together)) * (180.0 / std::numbers::pi);
}

} // namespace hsi::atdca
