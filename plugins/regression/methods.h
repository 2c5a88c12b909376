// SPDX-License-Identifier: MIT
// The methods of regression, one class per fitting method: candidates, their estimates for samples outside
// their training data, and the model of one candidate.
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
    /// Returns the number of candidates. For plsr and ridge, the simplest candidate is first. For the other
    /// methods, the first of equally good candidates is chosen.
    virtual size_t candidates() const = 0;
    /// Returns the estimates for `held_out` after training with `rows`: of all candidates, or of a method's
    /// only candidate.
    virtual Estimates estimates(const Rows& rows, const Rows& held_out) const = 0;
    /// Fits a candidate. Adds a member to model.linear, or sets model.kernel.
    virtual void fit(const Rows& rows, size_t candidate, Model& model) const = 0;
    /// Returns the estimates of a model that fit() has fitted.
    Estimates of_model(Model model, const Rows& held_out) const;
    /// Returns true if the simplest candidate within one standard error of the best is chosen. Otherwise the
    /// candidate with the smallest error is chosen.
    virtual bool simplest() const { return true; }
    /// Returns whether the last fit() chose a value at the end of its grid.
    virtual bool at_grid_end() const { return false; }
    mutable std::atomic<int64_t> at_limit{0};

  protected:
    const Samples& m_samples;
    const TrainOptions& m_options;
};

/// `most_components` is the maximum number of components of plsr's candidates.
std::unique_ptr<Fitting> make_fitting(const Samples& samples, const TrainOptions& options,
                                      size_t most_components);

/// Returns the mean and the standard deviation (n - 1) of the bands of these samples. For constant bands, the
/// spread is 1.
Standard standard_of(const Samples& samples, const Rows& rows);

} // namespace hsi::regression
