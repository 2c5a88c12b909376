// SPDX-License-Identifier: MIT
// The methods of regression, one class per way of fitting: candidates, their estimates for samples that they
// were not trained with, and the model of one candidate.
#pragma once

#include "regression/train.h"

#include <atomic>
#include <memory>
#include <vector>

namespace hsi::regression {

using Rows = std::vector<size_t>; ///< indices of samples

/// The estimates of candidates: [sample][candidate].
struct Estimates {
    std::vector<double> value, deviation; ///< deviation: gp, else empty
};

class Fitting {
  public:
    Fitting(const Samples& samples, const TrainOptions& options) : m_samples(samples), m_options(options) {}
    virtual ~Fitting() = default;
    /// Returns the number of candidates, simplest first (plsr, ridge), or in the order in which the first of
    /// equal ones wins.
    virtual size_t candidates() const = 0;
    /// Returns the estimates of the candidate trained with `rows`, or of all candidates.
    virtual Estimates estimates(const Rows& rows, const Rows& held_out) const = 0;
    /// Fits into model.linear (adds a member) or model.kernel.
    virtual void fit(const Rows& rows, size_t candidate, Model& model) const = 0;
    /// Returns the estimates of a model that fit() has made.
    Estimates of_model(Model model, const Rows& held_out) const;
    /// Returns whether the simplest candidate within one standard error is chosen, instead of the one with
    /// the smallest error.
    virtual bool simplest() const { return true; }
    virtual bool at_grid_end() const { return false; } ///< of the last fit()
    mutable std::atomic<int64_t> at_limit{0};

  protected:
    const Samples& m_samples;
    const TrainOptions& m_options;
};

/// most_components: the maximum of plsr's candidates.
std::unique_ptr<Fitting> make_fitting(const Samples& samples, const TrainOptions& options,
                                      size_t most_components);

/// Returns mean and standard deviation (n - 1) of these samples' bands; constant bands have spread 1.
Standard standard_of(const Samples& samples, const Rows& rows);

} // namespace hsi::regression
