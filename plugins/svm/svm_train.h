// SPDX-License-Identifier: MIT
// Trains support vector machines: scales the features, searches a grid of C and gamma by cross-validation,
// and trains the final machine. LIBSVM's svm_train does the optimisation. The code in this file and
// svm_train.cpp handles folds, threads and kernel tables, and suppresses LIBSVM's output.
#pragma once

#include "core/cancel.h"
#include "model/training_set.h"
#include "svm/svm.h"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace hsi::svm {

/// Return the powers 2^-5, 2^-3 .. 2^15 for C, and 2^-15, 2^-13 .. 2^3 for gamma.
std::vector<double> default_c();
std::vector<double> default_gamma();

using model::TrainingSet;

struct GridPoint {
    double c = 0, gamma = 0;
    double accuracy = 0; ///< fraction of the samples that were classified correctly when they were held out
    double error = 0;    ///< standard error over the accuracies of the folds
};

struct TrainOptions {
    std::vector<double> c = default_c();         ///< candidates of C, ascending
    std::vector<double> gamma = default_gamma(); ///< candidates of gamma
    /// Requested number of folds; reduced if the smallest class has fewer samples, but at least 2.
    int folds = 5;
    /// The fold of every sample, from 0 to folds - 1; empty: stratified_folds(). A sample is not counted if
    /// its class is missing in all other folds.
    std::vector<int> fold;
    /// true: searches a coarse grid first, continues to larger C only while the accuracy rises, and then
    /// searches the neighbours of the best candidate. false: evaluates all candidates.
    bool refine = false;
    uint64_t seed = 1;        ///< seed of the folds, and of LIBSVM's own cross-validation for probabilities
    bool probability = false; ///< true: estimate pairwise probabilities (LIBSVM does five more trainings)
    bool always_validate = false; ///< cross-validate even if there is only one candidate
    int threads = 1;
    uint64_t memory = uint64_t{1} << 30; ///< bytes for kernel tables and caches
    const CancelFlag* cancel = nullptr;
    std::function<void(double)> progress; ///< fraction of the work done; called by one thread at a time
    /// Called by one thread after each step of a search with `refine`, with the candidates evaluated so far.
    std::function<void(const std::vector<GridPoint>&)> searched;
};

struct TrainResult {
    Model model; ///< the trained model; the caller sets names of bands, files and so on
    /// Candidates, with C in the outer loop, both ascending; empty without cross-validation.
    std::vector<GridPoint> grid;
    int folds = 0;
    std::vector<int> fold; ///< fold of every sample; empty without cross-validation
    int64_t samples = 0;   ///< number of samples that were counted
    double guess = 0; ///< accuracy of always guessing the largest class: its fraction of the counted samples
    bool kernel_tables = false; ///< true if the grid search had enough memory for whole kernel matrices
    /// The warnings that LIBSVM prints, with the number of trainings that printed each.
    std::map<std::string, int64_t> warnings;
};

/// Trains a model. The same set, options and seed give the same model with any number of threads. The ranks
/// of a job call this function together, and share the cross-validation. Throws Error if there is only one
/// class, if memory is too small, or if folds are requested and a class has a single sample; the message then
/// names the class and its number.
TrainResult train(const TrainingSet& set, const TrainOptions& options);

/// Returns the fold (0-based) of every sample. Samples are drawn with the seed within each class. The sizes
/// of the folds differ by at most one sample, within each class and in total.
std::vector<int> stratified_folds(const std::vector<uint16_t>& label, int folds, uint64_t seed);

/// Returns the point with the highest accuracy. If several points have this accuracy, returns the point with
/// the smallest C, then with the smallest gamma.
const GridPoint& best_of(const std::vector<GridPoint>& grid);

/// Considers the points whose accuracy is within one standard error of the highest accuracy. Returns the
/// point among them with the smallest C, then with the smallest gamma. A point that is not better than
/// `guess`, the share of the largest class, is returned only if no point is better. This rule is used if
/// TrainOptions::fold is given: a few folds of whole patches cannot distinguish these points, and a large C
/// overfits single patches. L. Breiman, J. H. Friedman, R. A. Olshen, C. J. Stone: Classification and
/// Regression Trees, 1984, section 3.4.3.
const GridPoint& simplest_of_best(const std::vector<GridPoint>& grid, double guess);

/// Returns weights with which all classes have the same influence: samples / (classes * samples of the
/// class).
std::vector<double> balanced_weights(const std::vector<ModelClass>& classes);

} // namespace hsi::svm
