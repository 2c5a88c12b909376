// SPDX-License-Identifier: MIT
#include "unmix/mixture.h"

#include "core/error.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace hsi::unmix {
namespace {

double product(const double* a, const double* b, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; ++i)
        sum += a[i] * b[i];
    return sum;
}

/// The Cholesky factor of the rows and columns `index` of a p x p matrix: lower triangle, row by row.
void factorise(const double* matrix, size_t p, const std::vector<size_t>& index, std::vector<double>& lower) {
    const size_t n = index.size();
    lower.resize(n * n);
    for (size_t r = 0; r < n; ++r)
        for (size_t c = 0; c <= r; ++c) {
            double v = matrix[index[r] * p + index[c]];
            for (size_t i = 0; i < c; ++i)
                v -= lower[r * n + i] * lower[c * n + i];
            // Endmembers are independent, so a pivot is above 0 but for rounding.
            lower[r * n + c] =
                c < r ? v / lower[c * n + c] : std::sqrt(std::max(v, std::numeric_limits<double>::min()));
        }
}

/// x = (L L')^-1 x
void substitute(const std::vector<double>& lower, size_t n, double* x) {
    for (size_t r = 0; r < n; ++r) {
        for (size_t i = 0; i < r; ++i)
            x[r] -= lower[r * n + i] * x[i];
        x[r] /= lower[r * n + r];
    }
    for (size_t r = n; r-- > 0;) {
        for (size_t i = r + 1; i < n; ++i)
            x[r] -= lower[i * n + r] * x[i];
        x[r] /= lower[r * n + r];
    }
}

/// The columns of E, or with the row of ones below them, one after the other, each scaled to length 1.
std::vector<double> unit_columns(const Endmembers& e, bool bordered, double longest) {
    const size_t bands = static_cast<size_t>(e.bands()), rows = bands + (bordered ? 1 : 0);
    std::vector<double> columns(rows * e.spectra.size());
    for (size_t k = 0; k < e.spectra.size(); ++k) {
        double* const to = columns.data() + k * rows;
        std::copy(e.spectra[k].begin(), e.spectra[k].end(), to);
        if (bordered) to[bands] = longest;
        const double length = std::sqrt(product(to, to, rows));
        for (size_t i = 0; i < rows; ++i)
            to[i] = length > 0 ? to[i] / length : 0.0;
    }
    return columns;
}

double longest_column(const Endmembers& e) {
    double longest = 0;
    for (const auto& x : e.spectra)
        longest = std::max(longest, std::sqrt(product(x.data(), x.data(), x.size())));
    return longest;
}

} // namespace

Independence check_endmembers(const Endmembers& e, Method method) {
    const auto refuse = [](const std::string& what) {
        return Error(what, "Leave it out, or use endmembers that are not mixtures of one another.");
    };
    if (e.spectra.empty()) throw Error("there is no endmember", "Give a library with at least one spectrum.");
    const bool bordered = sums_to_one(method);
    const size_t p = e.spectra.size(), bands = static_cast<size_t>(e.bands()),
                 rows = bands + (bordered ? 1 : 0);
    for (size_t k = 0; k < p; ++k)
        if (!std::all_of(e.spectra[k].begin(), e.spectra[k].end(), [](double v) { return std::isfinite(v); }))
            throw Error("the spectrum '" + e.names[k] + "' holds values that are no numbers",
                        "Leave these bands out with -b, or take another spectrum.");
    if (p > rows)
        throw Error(std::to_string(p) + " endmembers are more than " + std::to_string(bands) +
                        " bands can tell apart: at most " + std::to_string(rows),
                    "Use fewer endmembers or more bands.");
    // Modified Gram-Schmidt, twice: E = Q R, and the distance of column k from the span of the others is one
    // over the length of row k of the inverse of R.
    std::vector<double> q = unit_columns(e, bordered, longest_column(e)), r(p * p);
    for (size_t k = 0; k < p; ++k) {
        double* const column = q.data() + k * rows;
        for (int again = 0; again < 2; ++again)
            for (size_t j = 0; j < k; ++j) {
                const double along = product(q.data() + j * rows, column, rows);
                for (size_t i = 0; i < rows; ++i)
                    column[i] -= along * q[j * rows + i];
                r[j * p + k] += along;
            }
        const double left = std::sqrt(product(column, column, rows));
        if (!(left > 1e-12))
            throw refuse("the spectrum '" + e.names[k] + "' is " +
                         (longest_column({{e.names[k]}, {e.spectra[k]}}) > 0 ? "a mixture of those before it"
                                                                             : "all zero"));
        r[k * p + k] = left;
        for (size_t i = 0; i < rows; ++i)
            column[i] /= left;
    }
    Independence least{std::numeric_limits<double>::infinity(), 0};
    std::vector<double> row(p);
    for (size_t k = 0; k < p; ++k) { // row k of R^-1, from its diagonal on
        std::fill(row.begin(), row.end(), 0.0);
        double squared = 0;
        for (size_t j = k; j < p; ++j) {
            double v = j == k ? 1.0 : 0.0;
            for (size_t i = k; i < j; ++i)
                v -= row[i] * r[i * p + j];
            row[j] = v / r[j * p + j];
            squared += row[j] * row[j];
        }
        const double distance = 1 / std::sqrt(squared);
        if (distance < least.distance) least = {distance, static_cast<int>(k)};
    }
    if (!(least.distance > 1e-6))
        throw refuse("the spectrum '" + e.names[static_cast<size_t>(least.endmember)] +
                     "' is nearly a mixture of the others");
    return least;
}

Mixture::Mixture(const Endmembers& e, Method method)
    : m_method(method), m_size(e.spectra.size()), m_bands(static_cast<size_t>(e.bands())),
      m_gram(m_size * m_size), m_longest(longest_column(e)) {
    for (const auto& x : e.spectra)
        m_spectra.insert(m_spectra.end(), x.begin(), x.end());
    for (size_t a = 0; a < m_size; ++a)
        for (size_t b = 0; b < m_size; ++b)
            m_gram[a * m_size + b] = product(spectrum(a), spectrum(b), m_bands);
    m_weight_squared = sums_to_one(method) ? m_longest * m_longest : 0.0;
    m_bordered = m_gram;
    for (double& v : m_bordered)
        v += m_weight_squared;
}

Solver::Solver(const Mixture& mixture)
    : m_mixture(mixture), m_size(mixture.size()), m_sum(sums_to_one(mixture.method())),
      m_nonnegative(is_nonnegative(mixture.method())), m_c(m_size), m_a(m_size), m_trial(m_size),
      m_gradient(m_size), m_passive(m_size), m_index(m_size), m_u(m_size), m_v(m_size) {
    std::iota(m_index.begin(), m_index.end(), size_t{0});
    factorise(mixture.bordered(), m_size, m_index, m_whole);
}

void Solver::solve_passive() {
    m_index.clear();
    for (size_t k = 0; k < m_size; ++k)
        if (m_passive[k]) m_index.push_back(k);
    const size_t n = m_index.size();
    std::fill(m_trial.begin(), m_trial.end(), 0.0);
    if (n == 0) return;
    if (n < m_size) factorise(m_mixture.bordered(), m_size, m_index, m_part);
    const auto& factor = n < m_size ? m_part : m_whole;
    for (size_t i = 0; i < n; ++i)
        m_u[i] = m_c[m_index[i]];
    substitute(factor, n, m_u.data());
    double excess = 0; // of the sum, for each unit along v
    if (m_sum) {
        std::fill_n(m_v.begin(), n, 1.0);
        substitute(factor, n, m_v.data());
        double u = 0, v = 0;
        for (size_t i = 0; i < n; ++i) {
            u += m_u[i];
            v += m_v[i];
        }
        excess = (u - 1) / v;
    }
    for (size_t i = 0; i < n; ++i)
        m_trial[m_index[i]] = m_sum ? m_u[i] - excess * m_v[i] : m_u[i];
}

void Solver::start() {
    std::fill(m_passive.begin(), m_passive.end(), char{1});
    for (bool left = true; left;) {
        solve_passive();
        left = false;
        if (!m_nonnegative) break;
        for (size_t k : m_index)
            if (!(m_trial[k] > 0)) {
                m_passive[k] = 0;
                left = true;
            }
    }
    m_a = m_trial;
}

size_t Solver::next_to_enter(double tolerance) const {
    double mean = 0;
    if (m_sum) {
        size_t count = 0;
        for (size_t k = 0; k < m_size; ++k)
            if (m_passive[k]) {
                mean += m_gradient[k];
                ++count;
            }
        mean /= static_cast<double>(count);
    }
    size_t best = m_size;
    double most = tolerance;
    for (size_t k = 0; k < m_size; ++k)
        if (!m_passive[k] && !m_barred[k] && m_gradient[k] - mean > most) {
            most = m_gradient[k] - mean;
            best = k;
        }
    return best;
}

void Solver::step_to_border() {
    double share = 1;
    for (size_t k : m_index)
        if (!(m_trial[k] > 0)) share = std::min(share, m_a[k] / (m_a[k] - m_trial[k]));
    for (size_t k : m_index) {
        const bool falls = !(m_trial[k] > 0) && m_a[k] / (m_a[k] - m_trial[k]) <= share;
        m_a[k] += share * (m_trial[k] - m_a[k]);
        if (falls || !(m_a[k] > 0)) {
            m_a[k] = 0;
            m_passive[k] = 0;
        }
    }
}

void Solver::solve(const double* products, double squared) {
    for (size_t k = 0; k < m_size; ++k)
        m_c[k] = products[k] + m_mixture.weight_squared();
    start();
    if (!m_nonnegative) return;
    // What rounding makes of a gradient that is zero: endmembers that are alike in all but a thousandth
    // differ in no more than the square of that.
    const double tolerance = 1e-14 * m_mixture.longest() * (std::sqrt(squared) + m_mixture.longest());
    m_barred.assign(m_size, 0);
    // Every round lowers the error, so no passive set comes twice; rounding could make it, hence the bound.
    for (size_t rounds = 0; rounds < 30 * m_size + 30; ++rounds) {
        for (size_t k = 0; k < m_size; ++k)
            m_gradient[k] = products[k] - product(m_mixture.gram() + k * m_size, m_a.data(), m_size);
        const size_t entering = next_to_enter(tolerance);
        if (entering == m_size) return;
        m_passive[entering] = 1;
        solve_passive();
        if (!(m_trial[entering] > 0)) { // by rounding alone
            m_passive[entering] = 0;
            m_barred[entering] = 1;
            continue;
        }
        while (std::any_of(m_index.begin(), m_index.end(), [&](size_t k) { return !(m_trial[k] > 0); })) {
            step_to_border();
            solve_passive();
        }
        m_a = m_trial;
    }
}

double Solver::residual(const double* products, double squared) const {
    double sum = squared;
    for (size_t k = 0; k < m_size; ++k)
        sum += m_a[k] * (product(m_mixture.gram() + k * m_size, m_a.data(), m_size) - 2 * products[k]);
    return std::max(0.0, sum);
}

} // namespace hsi::unmix
