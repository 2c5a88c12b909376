// SPDX-License-Identifier: MIT
#include "core/error.h"
#include "math/linear_algebra.h"
#include "regression/regression.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hsi::regression {
namespace {

constexpr double none = std::numeric_limits<double>::quiet_NaN();
constexpr double over_limit = 1 + 1e-6; ///< by which a distance must be larger

/// [band][width] of x, standardised.
void standardise(const Standard& by, const std::vector<double>& x, size_t width, std::vector<double>& to) {
    to.resize(x.size());
    for (size_t b = 0; b < by.centre.size(); ++b)
        for (size_t i = b * width; i < (b + 1) * width; ++i)
            to[i] = (x[i] - by.centre[b]) / by.spread[b];
}

/// Of each pixel the sum of the squares of `rows` rows.
void add_squares(const std::vector<double>& x, size_t rows, size_t width, std::vector<double>& squares) {
    squares.assign(width, 0.0);
    for (size_t b = 0; b < rows; ++b)
        for (size_t i = 0; i < width; ++i)
            squares[i] += x[b * width + i] * x[b * width + i];
}

void multiply(const math::RowPanels& panels, const std::vector<double>& x, size_t width,
              std::vector<double>& results) {
    results.resize(panels.results() * width);
    math::row_kernels().multiply(panels, x.data(), results.data());
}

/// L^-1 of K + q I = L L'.
std::vector<double> inverse_factor(const Kernel& k) {
    const size_t n = k.weights.size(), bands = k.standard.centre.size();
    std::vector<double> m(n * n);
    for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j <= i; ++j) {
            double d2 = 0;
            for (size_t b = 0; b < bands; ++b) {
                const double d = k.samples[i * bands + b] - k.samples[j * bands + b];
                d2 += d * d;
            }
            m[i * n + j] = std::exp(-d2 / (2 * k.length * k.length)) + (i == j ? k.noise : 0.0);
        }
    return math::invert_factor(m, static_cast<int>(n));
}

} // namespace

Metrics metrics_of(const std::vector<double>& values, const std::vector<double>& estimates) {
    Metrics m;
    m.n = static_cast<int64_t>(values.size());
    const auto n = static_cast<double>(m.n);
    double mean = 0, total = 0, errors = 0;
    for (const double v : values)
        mean += v / n;
    for (size_t i = 0; i < values.size(); ++i) {
        const double e = estimates[i] - values[i];
        m.bias += e / n;
        errors += e * e;
        total += (values[i] - mean) * (values[i] - mean);
    }
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    m.rmse = std::sqrt(errors / n);
    m.r2 = total > 0 ? 1 - errors / total : none;
    m.nrmse_percent = *most > *least ? 100 * m.rmse / (*most - *least) : none;
    m.rpd = m.rmse > 0 && total > 0 ? std::sqrt(total / (n - 1)) / m.rmse : none;
    return m;
}

Fitted::Fitted(std::shared_ptr<const Model> model) : m_model(std::move(model)) {
    const size_t bands = m_model->transform.outputs();
    if (m_model->domain) m_components = {m_model->domain->components, bands};
    if (m_model->is_linear()) {
        m_members = {m_model->linear.coefficients, bands};
        return;
    }
    const Kernel& k = m_model->kernel;
    m_samples = {k.samples, bands};
    for (size_t s = 0; s < k.weights.size(); ++s) {
        m_squares.push_back(0);
        for (size_t b = 0; b < bands; ++b)
            m_squares.back() += k.samples[s * bands + b] * k.samples[s * bands + b];
    }
    if (m_model->method == Method::gp) m_factor = {inverse_factor(k), k.weights.size(), true};
}

void Fitted::evaluate_linear(Buffers& b) const {
    const size_t w = width(), members = m_model->members();
    multiply(m_members, b.x, w, b.results);
    for (size_t i = 0; i < w; ++i) {
        double mean = 0;
        for (size_t d = 0; d < members; ++d)
            mean += b.results[d * w + i] += m_model->linear.intercepts[d];
        mean /= static_cast<double>(members);
        double squares = 0;
        for (size_t d = 0; d < members; ++d) {
            const double beside = b.results[d * w + i] - mean;
            squares += beside * beside;
        }
        b.estimate[i] = mean;
        if (members > 1) b.deviation[i] = std::sqrt(squares / static_cast<double>(members - 1));
    }
}

void Fitted::evaluate_kernel(Buffers& b) const {
    const Kernel& k = m_model->kernel;
    const size_t w = width(), n = k.weights.size();
    const bool gp = m_model->method == Method::gp;
    standardise(k.standard, b.x, w, b.standard);
    if (!gp)
        for (double& v : b.standard)
            v = static_cast<double>(static_cast<float>(v));
    multiply(m_samples, b.standard, w, b.results);
    add_squares(b.standard, k.standard.centre.size(), w, b.squares);
    const double gamma = gp ? 1 / (2 * k.length * k.length) : k.gamma;
    for (size_t s = 0; s < n; ++s)
        for (size_t i = 0; i < w; ++i) {
            double& value = b.results[s * w + i];
            value = -gamma * std::max(0.0, b.squares[i] + m_squares[s] - 2 * value);
        }
    math::row_kernels().exponentials(b.results.data(), n);
    std::fill(b.estimate.begin(), b.estimate.end(), -k.rho * (gp ? 0 : 1));
    for (size_t s = 0; s < n; ++s)
        for (size_t i = 0; i < w; ++i)
            b.estimate[i] += k.weights[s] * b.results[s * w + i];
    for (double& e : b.estimate)
        e = k.value_mean + k.value_spread * e;
    if (!gp) return;
    multiply(m_factor, b.results, w, b.solved); // k'M^-1 k = |L^-1 k|^2
    add_squares(b.solved, n, w, b.squares);
    for (size_t i = 0; i < w; ++i)
        b.deviation[i] = k.value_spread * std::sqrt(std::max(0.0, k.variance * (1 + k.noise - b.squares[i])));
}

void Fitted::distances(const Domain& domain, const math::RowPanels& components, Buffers& b) {
    const size_t w = width();
    standardise(domain.standard, b.x, w, b.standard);
    multiply(components, b.standard, w, b.results);
    add_squares(b.standard, domain.standard.centre.size(), w, b.squares);
    b.estimate.assign(w, 0.0);
    b.deviation.assign(w, 0.0);
    for (size_t k = 0; k < domain.variances.size(); ++k)
        for (size_t i = 0; i < w; ++i) {
            const double t2 = b.results[k * w + i] * b.results[k * w + i];
            b.estimate[i] += t2 / domain.variances[k];
            b.squares[i] -= t2;
        }
    b.deviation = b.squares;
}

void Fitted::evaluate(Buffers& b) const {
    const size_t w = width();
    const Model& m = *m_model;
    m.transform.apply(b.x, w, b.spare);
    std::vector<double>& rest = b.squares;
    rest.assign(w, 0.0);
    for (size_t at = 0; at < b.x.size(); at += w)
        for (size_t i = 0; i < w; ++i)
            rest[i] += b.x[at + i] * 0; // NaN and infinities leave NaN
    b.defined.resize(w);
    for (size_t i = 0; i < w; ++i)
        b.defined[i] = rest[i] == 0 ? 1 : 0;
    b.outside.assign(w, 0.0);
    if (m.domain) {
        distances(*m.domain, m_components, b);
        for (size_t i = 0; i < w; ++i)
            if (b.estimate[i] > m.domain->t2_limit * over_limit ||
                b.deviation[i] > m.domain->q_limit * over_limit)
                b.outside[i] = 2;
    }
    b.estimate.resize(w);
    b.deviation.assign(w, none);
    m.is_linear() ? evaluate_linear(b) : evaluate_kernel(b);
    for (size_t i = 0; i < w; ++i)
        if (b.estimate[i] < m.lowest || b.estimate[i] > m.highest) b.outside[i] += 1;
}

double Fitted::products() const {
    const auto bands = static_cast<double>(m_model->transform.outputs()),
               n = static_cast<double>(m_factor.rows());
    return bands * static_cast<double>(m_members.results() + m_components.results() + m_samples.results()) +
           n * n / 2;
}

uint64_t Fitted::buffer_bytes() const {
    const size_t rows = std::max({m_members.results(), m_components.results(), m_samples.results()});
    return sizeof(double) * width() *
           (3 * std::max(m_model->transform.inputs(), m_model->transform.outputs()) + rows +
            m_factor.results() + 8);
}

} // namespace hsi::regression
