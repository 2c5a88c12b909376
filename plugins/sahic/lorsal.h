// SPDX-License-Identifier: MIT
// Training of the sparse multinomial logistic regression. LORSAL uses variable splitting (J. Bioucas-Dias, M.
// Figueiredo, "Logistic regression via variable splitting and augmented Lagrangian tools", 2009). The other
// solver finds the optimum by an interior point method on a working set.
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
    /// false: the paper's method with a fixed number of steps; true: the optimum, to a proven gap.
    bool optimum = false;
    double delta = 0.8;
    double lambda_c = 1e-3; ///< weight of the L1 norm of the weights
    double beta = 1e-4;     ///< first penalty of the splitting; multiplied by `growth` after each iteration
    double growth = 1.05;
    int iterations = 200; ///< exact number of iterations; early stopping is part of the paper's method
    double gap = 1e-4;    ///< largest gap of the optimum: (objective - lower bound) / objective
    int threads = 1;
    uint64_t memory = uint64_t{1} << 31; ///< bytes for the kernel matrix and its factors
    const CancelFlag* cancel = nullptr;
    std::function<void(double)> progress; ///< receives the fraction of the work that is done
};

struct LorsalResult {
    MlrModel model; ///< the trained model; the caller sets names of bands, files and so on
    int iterations = 0;
    double objective = 0; ///< objective for the sparse weights of the model
    /// Number of features (anchors and the constant) that at least one class uses.
    int64_t active_features = 0;
    double gap = 0; ///< optimum: objective minus a lower bound of the minimum, which the dual problem proves
    /// The objective after every 10th iteration of the paper's method. For the optimum, the objective of each
    /// working set.
    std::vector<double> history;
};

/// Returns the greatest number of host bytes that training takes with this number of features. There is one
/// feature per training pixel, and one for the constant.
inline uint64_t training_bytes(uint64_t features) {
    // The bytes are for the kernel, R (later its eigenvectors), and LAPACK's workspace.
    return 8 * features * features * 5;
}

/// Trains the model. Both solvers run on the CPU. The same training set and options give the same model with
/// any number of threads. Throws Error if there is only one class, if all samples are equal, or if memory is
/// too small. Throws Cancelled if options.cancel is requested.
LorsalResult train(const TrainingSet& set, const LorsalOptions& options);

/// Functions that both backends use.
namespace detail {
/// Returns the index of each sample's class. Throws Error if there are fewer than two classes.
std::vector<int> class_indices(const TrainingSet& set);
/// Returns the mean of |u_i - u_j|^2 over all ordered pairs of samples. Throws Error if it is 0.
double mean_square_distance(const TrainingSet& set);
/// Returns the result for dense weights, [class, without the last][1 + sample]. In the model, only anchors
/// with a non-zero weight are kept.
LorsalResult pack(const TrainingSet& set, const LorsalOptions& options, double spread,
                  const std::vector<double>& weights);
} // namespace detail

/// Creates the CPU backend, whose solvers use `threads` threads.
std::unique_ptr<Backend> make_cpu_backend(int threads);

} // namespace hsi::sahic
