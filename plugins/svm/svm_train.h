// SPDX-License-Identifier: MIT
// Training: scaling, a grid search over C and gamma by cross-validation, and the support vector machine
// itself. LIBSVM's svm_train does the optimisation. This code does the rest: folds, threads, kernel tables,
// and suppression of LIBSVM's output.
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

/// Return 2^-5, 2^-3 .. 2^15 and 2^-15, 2^-13 .. 2^3.
std::vector<double> default_c();
std::vector<double> default_gamma();

using model::TrainingSet;

struct GridPoint {
    double c = 0, gamma = 0;
    double accuracy = 0; ///< fraction of the samples that were right when they were held out
    double error = 0;    ///< standard error of the folds' accuracies
};

struct TrainOptions {
    std::vector<double> c = default_c();         ///< candidates, ascending
    std::vector<double> gamma = default_gamma(); ///< values of gamma to try
    int folds = 5; ///< requested; fewer if the smallest class has fewer samples, at least 2
    /// The fold of every sample, from 0 to folds - 1; empty: stratified_folds(). A sample whose class is
    /// missing in all other folds is not counted.
    std::vector<int> fold;
    /// Searches a coarse grid first, larger C only while they are better, then the neighbours of the best;
    /// otherwise all candidates.
    bool refine = false;
    uint64_t seed = 1;            ///< of the folds, and of LIBSVM's own cross-validation for probabilities
    bool probability = false;     ///< estimate pairwise probabilities (LIBSVM: five more trainings)
    bool always_validate = false; ///< cross-validate even if there is only one candidate
    int threads = 1;
    uint64_t memory = uint64_t{1} << 30; ///< bytes for kernel tables and caches
    const CancelFlag* cancel = nullptr;
    std::function<void(double)> progress; ///< fraction of the work done; called by one thread at a time
    /// With `refine`: called after each step of the search with the candidates so far, by one thread.
    std::function<void(const std::vector<GridPoint>&)> searched;
};

struct TrainResult {
    Model model;                 ///< without names of bands, files and so on, which the caller sets
    std::vector<GridPoint> grid; ///< C outermost, both ascending; empty without cross-validation
    int folds = 0;
    std::vector<int> fold;      ///< of every sample; empty without cross-validation
    int64_t samples = 0;        ///< samples that were counted
    double guess = 0;           ///< fraction of the largest class among them: the accuracy of guessing
    bool kernel_tables = false; ///< the grid search had room for whole kernel matrices
    /// Warnings that LIBSVM would have printed, with the number of trainings.
    std::map<std::string, int64_t> warnings;
};

/// Trains a model. Throws Error: only one class, a class with a single sample when folds are requested (names
/// class and number), not enough memory. The same set, options and seed give the same model, with any number
/// of threads. The ranks of a job call it together, and share the cross-validation.
TrainResult train(const TrainingSet& set, const TrainOptions& options);

/// Returns the fold (0-based) of every sample. Samples are drawn with the seed within each class, so that the
/// folds of a class, and the folds as a whole, differ by at most one sample.
std::vector<int> stratified_folds(const std::vector<uint16_t>& label, int folds, uint64_t seed);

/// Returns the point with the highest accuracy; among equal ones, that of the smallest C, then the smallest
/// gamma.
const GridPoint& best_of(const std::vector<GridPoint>& grid);

/// Returns, among the points whose accuracy is within one standard error of the highest, that of the smallest
/// C, then the smallest gamma; a point that is not better than `guess`, the share of the largest class, only
/// if no point is better. It is used if TrainOptions::fold is given: a few folds of whole patches cannot
/// distinguish these points, and a large C overfits single patches. L. Breiman, J. H. Friedman, R. A. Olshen,
/// C. J. Stone: Classification and Regression Trees, 1984, section 3.4.3.
const GridPoint& simplest_of_best(const std::vector<GridPoint>& grid, double guess);

/// Returns weights that give all classes the same influence: samples / (classes * samples of the class).
std::vector<double> balanced_weights(const std::vector<ModelClass>& classes);

} // namespace hsi::svm
