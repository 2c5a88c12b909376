// SPDX-License-Identifier: MIT
// One pixel's constrained least squares, in the p-dimensional space of the products E'x.
#pragma once

#include "unmix/unmix.h"

#include <cstddef>
#include <vector>

namespace hsi::unmix {

/// What all pixels share.
class Mixture {
  public:
    Mixture(const Endmembers& endmembers, Method method);

    size_t size() const { return m_size; }
    size_t bands() const { return m_bands; }
    const double* spectrum(size_t k) const { return m_spectra.data() + k * m_bands; }
    /// E'E, p x p
    const double* gram() const { return m_gram.data(); }
    /// The same with the square of the weight of the row of ones added for scls and fcls: where the sum is
    /// exactly one it changes no distance, and makes a dark endmember harmless.
    const double* bordered() const { return m_bordered.data(); }
    double weight_squared() const { return m_weight_squared; }
    double longest() const { return m_longest; } ///< length of the longest column
    Method method() const { return m_method; }

  private:
    Method m_method;
    size_t m_size, m_bands;
    std::vector<double> m_spectra, m_gram, m_bordered;
    double m_weight_squared = 0, m_longest = 0;
};

/// Solves pixel after pixel; one a thread.
class Solver {
  public:
    explicit Solver(const Mixture& mixture);

    /// products: E'x, p numbers; squared: x'x. The result is in abundances() until the next call.
    void solve(const double* products, double squared);
    const std::vector<double>& abundances() const { return m_a; }
    /// |x - E a|^2 of the last pixel, from the products.
    double residual(const double* products, double squared) const;

  private:
    /// The minimiser over the passive set alone, into m_trial (0 elsewhere).
    void solve_passive();
    /// The first feasible point: what solve_passive() gives when negative entries leave until there are none.
    void start();
    /// The endmember outside of the passive set whose abundance would lower the error the most; m_size: none.
    size_t next_to_enter(double tolerance) const;
    /// From m_a towards m_trial as far as all stay above zero; those at zero leave the passive set.
    void step_to_border();

    const Mixture& m_mixture;
    const size_t m_size;
    const bool m_sum, m_nonnegative;
    std::vector<double> m_c; ///< right side: products, with the weight of the border
    std::vector<double> m_a, m_trial, m_gradient;
    std::vector<char> m_passive;         ///< abundances that may differ from 0
    std::vector<char> m_barred;          ///< those that rounding keeps out
    std::vector<size_t> m_index;         ///< the passive ones
    std::vector<double> m_whole, m_part; ///< Cholesky factors of all and of the passive part
    std::vector<double> m_u, m_v;
};

} // namespace hsi::unmix
