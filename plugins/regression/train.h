// SPDX-License-Identifier: MIT
// Training of regressions: folds of groups, the choice of a model by held-out errors, estimates of held-out
// samples that were not used for this choice, members, and the domain.
#pragma once

#include "core/cancel.h"
#include "regression/regression.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace hsi::regression {

/// The training samples. Lists have one entry per sample.
struct Samples {
    size_t bands = 0;      ///< transformed
    std::vector<double> x; ///< [sample][band]
    std::vector<double> y;
    std::vector<int> group; ///< from 0, by first appearance
    size_t count() const { return y.size(); }
};

struct TrainOptions {
    Method method = Method::plsr;
    bool scale = false; ///< plsr, ridge: divide bands by their standard deviation
    int folds = 10;
    uint64_t seed = 1;
    int components = 0, max_components = 20; ///< plsr; 0: by cross-validation
    std::vector<double> lambda;              ///< ridge: candidates; empty: 10^(k/2), k = -20 .. 4
    int members = 100;                       ///< plsr, ridge; below 2: one model of all samples
    double share = 0.8;                      ///< fraction of the groups that a member is trained with
    bool select_by_errors = false;           ///< gp
    std::vector<double> c, gamma;            ///< svr: candidates; empty: the grid
    double epsilon = 0.1;
    int threads = 1;
    const CancelFlag* cancel = nullptr;
    std::function<void(double)> progress; ///< fraction of the work done; called by one thread at a time
};

/// Returns these rows of a matrix.
std::vector<double> chosen_rows(const std::vector<double>& matrix, size_t columns,
                                const std::vector<size_t>& rows);
/// Returns the fold, from 0, of every group. Groups are taken in the order of their random words, and each is
/// assigned to the fold with the fewest samples. There is at most one fold per group.
std::vector<int> folds_of(const std::vector<int>& group, int folds, uint64_t seed);
/// Returns the groups that member d is trained with: the ceil(share groups) groups with the lowest random
/// words.
std::vector<char> member_groups(int groups, double share, int64_t d, uint64_t seed);
/// Returns the `most` samples with the lowest random words, in their order.
std::vector<size_t> thinned(size_t samples, size_t most, uint64_t seed);

struct TrainResult {
    Model model;
    std::vector<int> fold;
    std::vector<double> estimate, deviation; ///< of held-out samples; deviation: gp, else empty
    Standard standard;                       ///< mean and spread of the bands
    bool standardised = false;               ///< the method uses mean and spread
    bool at_grid_end = false;                ///< gp: the length or the noise is the first or last value of
                                             ///< the grid
    int64_t at_limit = 0;                    ///< svr: trainings that LIBSVM did not complete
};

/// Completes `about`: bands, names and transform. Throws Error: fewer than two groups, equal values, values
/// beyond the range of float, more components than samples allow.
TrainResult train(const Samples& samples, const TrainOptions& options, Model about);

/// Returns the domain of transformed pixels ([pixel][band], all finite), standardised by `standard` if it is
/// given.
Domain domain_of(const std::vector<double>& pixels, size_t bands, const Standard* standard);

} // namespace hsi::regression
