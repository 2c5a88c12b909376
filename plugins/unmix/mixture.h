// SPDX-License-Identifier: MIT
// One pixel's constrained least squares, in the p-dimensional space of the products E'x.
#pragma once

#include "unmix/solve.h"
#include "unmix/unmix.h"

#include <cstddef>
#include <vector>

namespace hsi::unmix {

/// Data shared by all pixels.
class Mixture {
  public:
    Mixture(const Endmembers& endmembers, Method method);

    Mixture(const Mixture&) = delete;
    Mixture& operator=(const Mixture&) = delete;

    size_t size() const { return m_size; }
    size_t bands() const { return m_bands; }
    const double* spectrum(size_t k) const { return m_spectra.data() + k * m_bands; }
    /// For scls and fcls, the sum has the weight of a row of ones below E that is as long as the longest
    /// column: where the sum is exactly one it changes no distance, and makes a dark endmember harmless. The
    /// result points into this object.
    const Problem& problem() const { return m_problem; }

  private:
    size_t m_size, m_bands;
    std::vector<double> m_spectra, m_gram, m_whole, m_whole_ones;
    Problem m_problem;
};

/// Solves pixel after pixel on the processor; one a thread.
class Solver {
  public:
    explicit Solver(const Mixture& mixture);

    /// products: E'x, p numbers; squared: x'x. The result is in abundances() until the next call. Returns
    /// |x - E a|^2, where it is wanted.
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
