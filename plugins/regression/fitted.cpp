// SPDX-License-Identifier: MIT
// Evaluates a model for a block of pixels: estimate, standard deviation, distance to the training data.
#include "core/error.h"
#include "math/linear_algebra.h"
#include "regression/regression.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hsi::regression {
namespace {

constexpr double none = std::numeric_limits<double>::quiet_NaN();
/// Models with more bands or values are not rearranged. Otherwise, reading a model from an untrusted source
/// could take an hour.
constexpr size_t most_columns = 4096, most_numbers = size_t{4} << 20;

std::vector<double> reciprocals(std::vector<double> values) {
    for (double& v : values)
        v = 1 / v;
    return values;
}

/// Returns L^-1, where L L' = K + q I.
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
    m_weights.centre.assign(bands, 0.0);
    m_weights.factor.assign(bands, 1.0);
    if (m_model->domain) {
        m_weights.centre = m_model->domain->standard.centre;
        m_weights.factor = reciprocals(m_model->domain->standard.spread);
        m_weights.t2 = reciprocals(m_model->domain->variances);
        m_weights_q.assign(m_weights.t2.size(), -1.0);
    }
    for (const auto* list : {&m_model->minimum, &m_model->maximum})
        for (const double v : *list)
            m_weights.greatest = std::max(m_weights.greatest, std::fabs(v));
    if (m_model->is_linear())
        take_members();
    else
        take_kernel();
}

/// Stores the mean of the members and their spread about the mean, as rows for standardised bands. Let W be
/// the matrix of the deviations of all members, with a first column of intercepts. Then |W (1, z)|^2 = |L (1,
/// z)|^2 with L'L = W'W. L is lower triangular. For any number of members, it has at most as many rows as
/// columns.
void Fitted::take_members() {
    const Linear& linear = m_model->linear;
    const size_t bands = m_weights.centre.size(), members = m_model->members(), columns = bands + 1;
    std::vector<double> rows = m_model->domain ? m_model->domain->components : std::vector<double>(),
                        mean(columns), spread;
    std::vector<double> all(members * columns);
    for (size_t d = 0; d < members; ++d) {
        double* const to = all.data() + d * columns;
        to[0] = linear.intercepts[d];
        for (size_t b = 0; b < bands; ++b) {
            const double c = linear.coefficients[d * bands + b];
            to[0] += c * m_weights.centre[b];
            to[b + 1] = c / m_weights.factor[b];
        }
        for (size_t c = 0; c < columns; ++c)
            mean[c] += to[c] / static_cast<double>(members);
    }
    m_weights.mean_offset = mean[0];
    rows.insert(rows.end(), mean.begin() + 1, mean.end());
    m_weights.rows = {rows, bands};
    if (members < 2) return;
    for (size_t i = 0; i < all.size(); ++i)
        all[i] -= mean[i % columns];
    size_t left_out = 0, first = bands;
    if (columns <= most_columns && all.size() <= most_numbers) {
        all = math::lower_factor(all, static_cast<int>(members), static_cast<int>(columns));
        first = left_out = columns - std::min(members, columns);
    }
    for (size_t at = left_out * columns; at < all.size(); at += columns) {
        m_weights.spread_offsets.push_back(all[at]);
        spread.insert(spread.end(), all.begin() + static_cast<ptrdiff_t>(at + 1),
                      all.begin() + static_cast<ptrdiff_t>(at + columns));
    }
    m_weights.spread = {spread, bands, first};
    m_weights.spread_offsets.resize(m_weights.spread.results());
}

void Fitted::take_kernel() {
    const Kernel& k = m_model->kernel;
    const size_t bands = m_weights.centre.size(), n = k.weights.size();
    if (m_model->domain) m_weights.rows = {m_model->domain->components, bands};
    m_weights.kernel_factor = reciprocals(k.standard.spread);
    m_weights.samples = {k.samples, bands};
    for (size_t s = 0; s < n; ++s) {
        m_weights.squares.push_back(0);
        for (size_t b = 0; b < bands; ++b)
            m_weights.squares.back() += k.samples[s * bands + b] * k.samples[s * bands + b];
    }
    if (m_model->method != Method::gp) return;
    m_weights.spread = {inverse_factor(k), n, 1};
    m_weights.spread_offsets.assign(m_weights.spread.results(), 0.0);
}

void Fitted::sum_spread(const std::vector<double>& of, Buffers& b) const {
    b.rows.resize(m_weights.spread.results() * width());
    math::row_kernels().sum_squares(m_weights.spread, m_weights.spread_offsets.data(), of.data(),
                                    b.rows.data(), b.squares.data());
}

void Fitted::evaluate_linear(Buffers& b) const {
    const size_t w = width(), members = m_model->members();
    const double* const mean = b.results.data() + m_weights.t2.size() * w;
    for (size_t i = 0; i < w; ++i)
        b.estimate[i] = mean[i] + m_weights.mean_offset;
    if (members < 2) return;
    sum_spread(b.standard, b);
    for (size_t i = 0; i < w; ++i)
        b.deviation[i] = std::sqrt(b.squares[i] / static_cast<double>(members - 1));
}

void Fitted::evaluate_kernel(Buffers& b) const {
    const auto& kernels = math::row_kernels();
    const Kernel& k = m_model->kernel;
    const size_t w = width(), n = k.weights.size();
    const bool gp = m_model->method == Method::gp;
    kernels.standardise(b.x.data(), k.standard.centre.data(), m_weights.kernel_factor.data(),
                        m_weights.centre.size(), b.standard.data(), b.squares.data());
    b.results.resize(m_weights.samples.results() * w);
    kernels.multiply(m_weights.samples, b.standard.data(), b.results.data());
    kernels.kernels(b.results.data(), b.squares.data(), m_weights.squares.data(), n,
                    gp ? 1 / (2 * k.length * k.length) : k.gamma);
    std::fill(b.estimate.begin(), b.estimate.end(), gp ? 0 : -k.rho);
    kernels.add(b.results.data(), k.weights.data(), n, b.estimate.data());
    for (double& e : b.estimate)
        e = k.value_mean + k.value_spread * e;
    if (!gp) return;
    sum_spread(b.results, b); // k' M^-1 k = |L^-1 k|^2
    for (size_t i = 0; i < w; ++i)
        b.deviation[i] = k.value_spread * std::sqrt(std::max(0.0, k.variance * (1 + k.noise - b.squares[i])));
}

void Fitted::distances(Buffers& b) const {
    const auto& kernels = math::row_kernels();
    const size_t w = width(), bands = m_weights.centre.size(), components = m_weights.t2.size();
    b.standard.resize(bands * w);
    b.results.resize(m_weights.rows.results() * w);
    b.q.resize(w);
    kernels.standardise(b.x.data(), m_weights.centre.data(), m_weights.factor.data(), bands,
                        b.standard.data(), b.q.data());
    b.defined.resize(w);
    for (size_t i = 0; i < w; ++i)
        b.defined[i] = std::isfinite(b.q[i]) ? 1 : 0;
    b.squares = b.q;
    kernels.multiply(m_weights.rows, b.standard.data(), b.results.data());
    b.t2.assign(w, 0.0);
    kernels.add_squares(b.results.data(), m_weights.t2.data(), components, b.t2.data());
    kernels.add_squares(b.results.data(), m_weights_q.data(), components, b.q.data());
}

void Fitted::evaluate(Buffers& b) const {
    const size_t w = width();
    const Model& m = *m_model;
    m.transform.apply(b.x, w, b.spare);
    distances(b);
    b.outside.assign(w, 0.0);
    if (m.domain)
        for (size_t i = 0; i < w; ++i)
            if (is_unlike(b.t2[i], b.q[i], b.squares[i], m.domain->t2_limit, m.domain->q_limit))
                b.outside[i] = 2;
    b.estimate.resize(w);
    b.deviation.assign(w, none);
    m.is_linear() ? evaluate_linear(b) : evaluate_kernel(b);
    for (size_t i = 0; i < w; ++i)
        if (b.estimate[i] < m.lowest || b.estimate[i] > m.highest) b.outside[i] += 1;
}

double product_count(const Model& model) {
    const auto bands = static_cast<double>(model.transform.outputs()),
               members = static_cast<double>(model.members()),
               samples = static_cast<double>(model.kernel.weights.size()),
               components = model.domain ? static_cast<double>(model.domain->variances.size()) : 0;
    const double spread = model.method == Method::gp ? samples * samples / 2
                          : members > 1              ? bands * std::min(members, bands)
                                                     : 0;
    return bands * (components + samples + 1) + spread;
}

uint64_t Fitted::buffer_bytes() const {
    return sizeof(double) * width() *
           (3 * std::max(m_model->transform.inputs(), m_model->transform.outputs()) +
            std::max(m_weights.rows.results(), m_weights.samples.results()) + m_weights.spread.results() + 8);
}

} // namespace hsi::regression
