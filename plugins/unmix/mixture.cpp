// SPDX-License-Identifier: MIT
#include "unmix/mixture.h"

#include "core/counted.h"
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

/// Returns the columns of E one after the other, each scaled to length 1. If `bordered` is true, a row of
/// ones is below them.
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
    if (e.spectra.empty())
        throw Error("the library has no endmember", "Give a library with at least one spectrum.");
    const bool bordered = sums_to_one(method);
    const size_t p = e.spectra.size(), bands = static_cast<size_t>(e.bands()),
                 rows = bands + (bordered ? 1 : 0);
    for (size_t k = 0; k < p; ++k)
        if (!std::all_of(e.spectra[k].begin(), e.spectra[k].end(), [](double v) { return std::isfinite(v); }))
            throw Error("the spectrum '" + e.names[k] + "' is NaN or infinite in some bands",
                        "Leave out these bands with -b, or use another spectrum.");
    if (p > rows)
        throw Error(counted(p, "endmember is", "endmembers are") + " too many for " + counted(bands, "band") +
                        ": at most " + std::to_string(rows),
                    "Use fewer endmembers or more bands.");
    // Modified Gram-Schmidt, applied twice, gives E = Q R. The distance of column k from the span of the
    // other columns is 1 / (length of row k of R^-1).
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
                         (longest_column({{e.names[k]}, {e.spectra[k]}}) > 0
                              ? "a mixture of the spectra before it"
                              : "all zero"));
        r[k * p + k] = left;
        for (size_t i = 0; i < rows; ++i)
            column[i] /= left;
    }
    Independence least{std::numeric_limits<double>::infinity(), 0};
    std::vector<double> row(p);
    // Computes row k of R^-1, starting at its diagonal.
    for (size_t k = 0; k < p; ++k) {
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
    : m_size(e.spectra.size()), m_bands(static_cast<size_t>(e.bands())), m_gram(m_size * m_size) {
    for (const auto& x : e.spectra)
        m_spectra.insert(m_spectra.end(), x.begin(), x.end());
    for (size_t a = 0; a < m_size; ++a)
        for (size_t b = 0; b < m_size; ++b)
            m_gram[a * m_size + b] = product(spectrum(a), spectrum(b), m_bands);
    m_problem.size = static_cast<int>(m_size);
    m_problem.sum = sums_to_one(method);
    m_problem.nonnegative = is_nonnegative(method);
    m_problem.longest = longest_column(e);
    m_problem.weight_squared = m_problem.sum ? m_problem.longest * m_problem.longest : 0.0;
    m_problem.gram = m_gram.data();
    std::vector<int> all(m_size);
    std::iota(all.begin(), all.end(), 0);
    m_whole.resize(triangle(m_problem.size));
    ActiveSet<Alone>::factorise(m_problem, all.data(), m_problem.size, m_whole.data(), {});
    m_whole_ones.assign(m_size, 1.0);
    ActiveSet<Alone>::substitute<false>(m_whole.data(), m_problem.size, m_whole_ones.data(), nullptr, {});
    m_problem.whole = m_whole.data();
    m_problem.whole_ones = m_whole_ones.data();
}

Solver::Solver(const Mixture& mixture)
    : m_problem(mixture.problem()), m_factor(triangle(m_problem.size)), m_abundances(mixture.size()),
      m_trial(mixture.size()), m_ones(mixture.size()), m_index(mixture.size()), m_state(mixture.size()) {
    m_space.factor = m_factor.data();
    m_space.abundances = m_abundances.data();
    m_space.trial = m_trial.data();
    m_space.ones = m_ones.data();
    m_space.index = m_index.data();
    m_space.state = m_state.data();
}

double Solver::solve(const double* products, double squared, bool with_residual) {
    m_space.products = products;
    ActiveSet<Alone> active(m_problem, m_space, {});
    active.solve(squared);
    return with_residual ? active.residual(squared) : 0.0;
}

} // namespace hsi::unmix
