// SPDX-License-Identifier: MIT
// Training: scaling, a grid search over C and gamma by stratified cross-validation, and the machine itself.
// LIBSVM's svm_train does the optimisation; everything around it is ours: folds, threads, kernel tables,
// silence.
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

/// 2^-5, 2^-3 .. 2^15 and 2^-15, 2^-13 .. 2^3.
std::vector<double> default_c();
std::vector<double> default_gamma();

using model::TrainingSet;

struct TrainOptions {
    std::vector<double> c = default_c();         ///< candidates, ascending
    std::vector<double> gamma = default_gamma(); ///< likewise
    int folds = 5;                ///< wanted; fewer when the smallest class has fewer samples, at least 2
    uint64_t seed = 1;            ///< of the folds, and of LIBSVM's own cross-validation for probabilities
    bool probability = false;     ///< estimate pairwise probabilities (LIBSVM: five more trainings)
    bool always_validate = false; ///< cross-validate even when there is nothing to choose
    int threads = 1;
    uint64_t memory = uint64_t{1} << 30; ///< bytes for kernel tables and caches
    const CancelFlag* cancel = nullptr;
    std::function<void(double)> progress; ///< share of the work done; called by one thread at a time
};

struct GridPoint {
    double c = 0, gamma = 0;
    double accuracy = 0; ///< share of all samples that were right while held out
};

struct TrainResult {
    Model model;                 ///< without names of bands, files and the like: the caller knows these
    std::vector<GridPoint> grid; ///< C outermost, both ascending; empty without cross-validation
    int folds = 0;
    bool kernel_tables = false; ///< the grid search had room for whole kernel matrices
    /// What LIBSVM would have printed as a warning, and in how many trainings.
    std::map<std::string, int64_t> warnings;
};

/// Throws Error: one class only, a class with a single sample when folds are wanted (naming class and count),
/// not enough memory. The same set, options and seed give the same model, whatever the threads. The ranks of
/// a job call it together, and share the cross-validation.
TrainResult train(const TrainingSet& set, const TrainOptions& options);

/// The fold (0-based) of every sample: within each class drawn with the seed, so that the folds of a class
/// differ by one sample at most, and the folds as a whole by one as well.
std::vector<int> stratified_folds(const std::vector<uint16_t>& label, int folds, uint64_t seed);

/// Weights that make classes count alike: samples / (classes * samples of the class).
std::vector<double> balanced_weights(const std::vector<ModelClass>& classes);

} // namespace hsi::svm
