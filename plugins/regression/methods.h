// SPDX-License-Identifier: MIT
// The methods of regression, one class for each way of fitting: candidates, their estimates for samples that
// they were not trained with, and the model of one of them.
#pragma once

#include "regression/train.h"

#include <atomic>
#include <memory>
#include <vector>

namespace hsi::regression {

using Rows = std::vector<size_t>; ///< of samples

/// The estimates of candidates: [sample][candidate].
struct Estimates {
    std::vector<double> value, deviation; ///< deviation: gp, else empty
};

class Fitting {
  public:
    Fitting(const Samples& samples, const TrainOptions& options) : m_samples(samples), m_options(options) {}
    virtual ~Fitting() = default;
    /// Simplest first (plsr, ridge), or in the order in which the first of equals wins.
    virtual size_t candidates() const = 0;
    /// Estimates of the candidate trained with `rows`, or of all of them.
    virtual Estimates estimates(const Rows& rows, const Rows& held_out) const = 0;
    /// Into model.linear (one member more) or model.kernel.
    virtual void fit(const Rows& rows, size_t candidate, Model& model) const = 0;
    /// Estimates of a model that fit() has made.
    Estimates of_model(Model model, const Rows& held_out) const;
    /// Whether the simplest within one standard error is chosen, instead of the least error.
    virtual bool simplest() const { return true; }
    virtual bool at_grid_end() const { return false; } ///< of the last fit()
    mutable std::atomic<int64_t> at_limit{0};

  protected:
    const Samples& m_samples;
    const TrainOptions& m_options;
};

/// most_components: of plsr's candidates.
std::unique_ptr<Fitting> make_fitting(const Samples& samples, const TrainOptions& options,
                                      size_t most_components);

/// Mean and standard deviation (n - 1) of these samples' bands; constant bands have spread 1.
Standard standard_of(const Samples& samples, const Rows& rows);

} // namespace hsi::regression
