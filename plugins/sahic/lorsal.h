// SPDX-License-Identifier: MIT
// Training of the sparse multinomial logistic regression: by LORSAL, variable splitting (J. Bioucas-Dias,
// M. Figueiredo, "Logistic regression via variable splitting and augmented Lagrangian tools", 2009), or to
// its optimum by an interior point method on a working set.
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
    /// false: the paper's path, an exact number of steps; true: the optimum itself, to a proven gap.
    bool optimum = false;
    double delta = 0.8;
    double lambda_c = 1e-3; ///< weight of |w|_1
    double beta = 1e-4;     ///< first penalty of the splitting; multiplied by `growth` after each iteration
    double growth = 1.05;
    int iterations = 200; ///< exactly this count: early stopping is part of the method
    double gap = 1e-4;    ///< of the optimum: (objective - lower bound) / objective
    int threads = 1;
    uint64_t memory = uint64_t{1} << 31; ///< bytes for the kernel matrix and its factors
    const CancelFlag* cancel = nullptr;
    std::function<void(double)> progress; ///< share of the work done
};

struct LorsalResult {
    MlrModel model; ///< without names of bands, files and the like: the caller knows these
    int iterations = 0;
    double objective = 0;        ///< at the sparse weights that the model holds
    int64_t active_features = 0; ///< anchors (and the constant) that some class uses
    double gap = 0; ///< optimum: objective - a lower bound of the minimum, proven by the dual problem
    /// The objective after every 10th iteration of the paper's path, or of each working set up to the
    /// optimum.
    std::vector<double> history;
};

/// The most host bytes of training with so many features: one per training pixel, and the constant.
inline uint64_t training_bytes(uint64_t features) {
    return 8 * features * features * 5; // kernel, R turned into its eigenvectors, and LAPACK's workspace
}

/// Both solvers run on the CPU. Throws Error: one class only, samples that are all alike, out of memory;
/// Cancelled. The same set and options give the same model, with any threads.
LorsalResult train(const TrainingSet& set, const LorsalOptions& options);

/// Shared by both backends.
namespace detail {
/// Index of the class of each sample. Throws Error when there are fewer than two classes.
std::vector<int> class_indices(const TrainingSet& set);
/// Mean of |u_i - u_j|^2 over all ordered pairs of samples. Throws Error when it is 0.
double mean_square_distance(const TrainingSet& set);
/// The result from dense weights [class - 1][1 + sample]; keeps anchors that are used.
LorsalResult pack(const TrainingSet& set, const LorsalOptions& options, double spread,
                  const std::vector<double>& weights);
} // namespace detail

/// The CPU backend; its solvers use so many threads.
std::unique_ptr<Backend> make_cpu_backend(int threads);

} // namespace hsi::sahic
