// SPDX-License-Identifier: MIT
// The fitting methods of regression, one class per method. A candidate is a choice of the method's
// parameters. A class estimates held-out samples with all candidates, and fits the model of one candidate.
#pragma once

#include "regression/train.h"

#include <atomic>
#include <memory>
#include <vector>

namespace hsi::regression {

using Rows = std::vector<size_t>; ///< indices of samples

/// The estimates of candidates: [sample][candidate].
struct Estimates {
    std::vector<double> value, deviation; ///< deviation: only of a Gaussian process, otherwise empty
};

class Fitting {
  public:
    Fitting(const Samples& samples, const TrainOptions& options) : m_samples(samples), m_options(options) {}
    virtual ~Fitting() = default;
    /// Returns the number of candidates. For plsr and ridge, they are ordered from simple to complex. For the
    /// other methods, the order only matters among equally good candidates, of which the first is chosen.
    virtual size_t candidates() const = 0;
    /// Trains all candidates with the samples `rows`, and returns their estimates for the samples `held_out`.
    virtual Estimates estimates(const Rows& rows, const Rows& held_out) const = 0;
    /// Fits a candidate to the samples `rows`. Adds a member to model.linear, or sets model.kernel.
    virtual void fit(const Rows& rows, size_t candidate, Model& model) const = 0;
    /// Returns the estimates that a model from fit() gives for the samples `held_out`.
    Estimates of_model(Model model, const Rows& held_out) const;
    /// States which candidate is to be chosen. true: the simplest one whose error is within one standard
    /// error of the smallest error. false: the one with the smallest error.
    virtual bool simplest() const { return true; }
    /// Returns true if the last fit() chose a parameter at an end of its grid.
    virtual bool at_grid_end() const { return false; }
    mutable std::atomic<int64_t> at_limit{0};

  protected:
    const Samples& m_samples;
    const TrainOptions& m_options;
};

/// Creates the class of options.method. `most_components` is the greatest number of components of plsr's
/// candidates.
std::unique_ptr<Fitting> make_fitting(const Samples& samples, const TrainOptions& options,
                                      size_t most_components);

/// Returns the mean and the standard deviation (n - 1) of each band over the samples `rows`. For constant
/// bands, the spread is 1.
Standard standard_of(const Samples& samples, const Rows& rows);

} // namespace hsi::regression
