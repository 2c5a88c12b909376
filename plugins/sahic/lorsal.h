// SPDX-License-Identifier: MIT
// Training of the sparse multinomial logistic regression: by LORSAL, variable splitting (J. Bioucas-Dias, M.
// Figueiredo, "Logistic regression via variable splitting and augmented Lagrangian tools", 2009), or to its
// optimum by an interior point method on a working set.
#pragma once

#include "core/cancel.h"
#include "model/training_set.h"
#include "sahic/sahic.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace hsi::sahic {

using model::TrainingSet;

struct LorsalOptions {
    /// false: the paper's method, an exact number of steps; true: the optimum itself, to a proven gap.
    bool optimum = false;
    double delta = 0.8;
    double lambda_c = 1e-3; ///< weight of |w|_1
    double beta = 1e-4;     ///< first penalty of the splitting; multiplied by `growth` after each iteration
    double growth = 1.05;
    int iterations = 200; ///< exactly this number: early stopping is part of the method
    double gap = 1e-4;    ///< of the optimum: (objective - lower bound) / objective
    int threads = 1;
    uint64_t memory = uint64_t{1} << 31; ///< bytes for the kernel matrix and its factors
    const CancelFlag* cancel = nullptr;
    std::function<void(double)> progress; ///< fraction of the work done
};

struct LorsalResult {
    MlrModel model; ///< without names of bands, files and so on, which the caller sets
    int iterations = 0;
    double objective = 0;        ///< at the sparse weights of the model
    int64_t active_features = 0; ///< anchors (and the constant) that some class uses
    double gap = 0; ///< optimum: objective - a lower bound of the minimum, proven by the dual problem
    /// The objective after every 10th iteration of the paper's method, or of each working set until the
    /// optimum.
    std::vector<double> history;
};

/// Returns the maximum host bytes of training with this number of features: one per training pixel, and the
/// constant.
inline uint64_t training_bytes(uint64_t features) {
    return 8 * features * features * 5; // kernel, R replaced by its eigenvectors, and LAPACK's workspace
}

/// Trains the model; both solvers run on the CPU. Throws Error: only one class, samples that are all equal,
/// out of memory; Cancelled. The same set and options give the same model, with any number of threads.
LorsalResult train(const TrainingSet& set, const LorsalOptions& options);

/// Shared by both backends.
namespace detail {
/// Returns the index of the class of each sample. Throws Error if there are fewer than two classes.
std::vector<int> class_indices(const TrainingSet& set);
/// Returns the mean of |u_i - u_j|^2 over all ordered pairs of samples. Throws Error if it is 0.
double mean_square_distance(const TrainingSet& set);
/// Returns the result for dense weights [class - 1][1 + sample]; keeps only anchors that are used.
LorsalResult pack(const TrainingSet& set, const LorsalOptions& options, double spread,
                  const std::vector<double>& weights);
} // namespace detail

/// Creates the CPU backend, whose solvers use `threads` threads.
std::unique_ptr<Backend> make_cpu_backend(int threads);

} // namespace hsi::sahic
