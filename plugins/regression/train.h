// SPDX-License-Identifier: MIT
// Trains regressions: divides groups of samples into folds, and selects a model by held-out errors. The
// samples of each fold are estimated by models whose selection did not use them. The final model has members
// and a domain.
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
    size_t bands = 0;      ///< number of transformed bands
    std::vector<double> x; ///< [sample][band]
    std::vector<double> y;
    std::vector<int> group; ///< index of the group, counted from 0 by first appearance
    size_t count() const { return y.size(); }
};

struct TrainOptions {
    Method method = Method::plsr;
    bool scale = false; ///< plsr, ridge: true: bands are divided by their standard deviation
    int folds = 10;
    uint64_t seed = 1;
    /// plsr: number of components; 0: selected by cross-validation up to max_components.
    int components = 0, max_components = 20;
    std::vector<double> lambda;    ///< ridge: candidates; empty: 10^(k/2), k = -20 .. 4
    int members = 100;             ///< plsr, ridge: number of members; below 2: one model of all samples
    double share = 0.8;            ///< fraction of the groups with which a member is trained
    bool select_by_errors = false; ///< gp: true: the candidate with the smallest held-out error is chosen
    std::vector<double> c, gamma;  ///< svr: candidates; empty: the grid
    double epsilon = 0.1;
    int threads = 1;
    const CancelFlag* cancel = nullptr;
    std::function<void(double)> progress; ///< fraction of the work done; called by one thread at a time
};

/// Returns the selected rows of a matrix.
std::vector<double> chosen_rows(const std::vector<double>& matrix, size_t columns,
                                const std::vector<size_t>& rows);
/// Returns the fold of every group, counted from 0. In a random order that depends on the seed, each group is
/// assigned to the fold that has the fewest samples so far. There are at most as many folds as groups.
std::vector<int> folds_of(const std::vector<int>& group, int folds, uint64_t seed);
/// Returns 1 for each group with which member d is trained, otherwise 0. These are the ceil(share * groups)
/// groups with the lowest random words.
std::vector<char> member_groups(int groups, double share, int64_t d, uint64_t seed);
/// Chooses `most` of the samples at random, by the lowest random words of the seed. Returns their indices in
/// rising order.
std::vector<size_t> thinned(size_t samples, size_t most, uint64_t seed);

struct TrainResult {
    Model model;
    std::vector<int> fold;
    /// Results for held-out samples; deviation: only of gp, otherwise empty.
    std::vector<double> estimate, deviation;
    Standard standard;         ///< mean and spread of the bands
    bool standardised = false; ///< true if the method uses mean and spread
    bool at_grid_end = false;  ///< gp: true if the length or the noise is the first or last value of the grid
    int64_t at_limit = 0;      ///< svr: number of trainings that LIBSVM did not complete
};

/// Trains a model. `about` is a model with bands, names and transform; the result is `about` with all other
/// members set. Throws Error if there are fewer than two groups, if all values are equal, if values exceed
/// the range of float, or if the samples allow fewer components than requested.
TrainResult train(const Samples& samples, const TrainOptions& options, Model about);

/// Returns the domain of transformed pixels ([pixel][band], all finite). The bands are centred on their means
/// over the pixels, and divided by `standard->spread`, or not divided if `standard` is null.
Domain domain_of(const std::vector<double>& pixels, size_t bands, const Standard* standard);

} // namespace hsi::regression
