// SPDX-License-Identifier: MIT
// One pixel's constrained least squares, in the p-dimensional space of the products E'x.
#pragma once

#include "unmix/solve.h"
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
    /// The matrices stay those of this object.
    Problem problem() const;

  private:
    Method m_method;
    size_t m_size, m_bands;
    std::vector<double> m_spectra, m_gram, m_bordered, m_whole;
    double m_weight_squared = 0, m_longest = 0;
};

/// Solves pixel after pixel; one a thread.
class Solver {
  public:
    explicit Solver(const Mixture& mixture);
    Solver(const Solver&) = delete;
    Solver& operator=(const Solver&) = delete;

    /// products: E'x, p numbers; squared: x'x. The result is in abundances() until the next call.
    void solve(const double* products, double squared);
    const std::vector<double>& abundances() const { return m_a; }
    /// |x - E a|^2 of the last pixel, from the products.
    double residual(double squared) const;

  private:
    const Problem m_problem;
    std::vector<double> m_products, m_a, m_numbers;
    std::vector<unsigned short> m_flags;
    Room<double*, unsigned short*> m_room;
};

} // namespace hsi::unmix
