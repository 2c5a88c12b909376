// SPDX-License-Identifier: MIT
// Constrained least squares of one pixel, from the p products E'x of the pixel x with the p endmembers E.
#pragma once

#include "unmix/solve.h"
#include "unmix/unmix.h"

#include <cstddef>
#include <vector>

namespace hsi::unmix {

/// The data of a set of endmembers that all pixels share.
class Mixture {
  public:
    Mixture(const Endmembers& endmembers, Method method);

    Mixture(const Mixture&) = delete;
    Mixture& operator=(const Mixture&) = delete;

    size_t size() const { return m_size; }
    size_t bands() const { return m_bands; }
    const double* spectrum(size_t k) const { return m_spectra.data() + k * m_bands; }
    /// Returns the problem, which refers to data of this object. For scls and fcls, the problem has an
    /// additional row below E whose values are all equal to the length of E's longest column. Since the sum
    /// of the abundances is exactly one, this row does not change the distances. It prevents numerical
    /// problems with dark endmembers.
    const Problem& problem() const { return m_problem; }

  private:
    size_t m_size, m_bands;
    std::vector<double> m_spectra, m_gram, m_whole, m_whole_ones;
    Problem m_problem;
};

/// Solves pixels one by one on the CPU. Each thread has its own object.
class Solver {
  public:
    explicit Solver(const Mixture& mixture);

    /// Solves one pixel. `products` is E'x (p values), and `squared` is x'x. The result is in abundances()
    /// until the next call. If `with_residual` is true, returns |x - E a|^2.
    double solve(const double* products, double squared, bool with_residual);
    const std::vector<double>& abundances() const { return m_abundances; }

  private:
    const Problem m_problem;
    std::vector<double> m_factor, m_abundances, m_trial, m_ones;
    std::vector<int> m_index;
    std::vector<unsigned char> m_state;
    Workspace m_space;
};

} // namespace hsi::unmix
