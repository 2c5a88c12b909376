// SPDX-License-Identifier: MIT
// The training problem on the CPU, for both solvers. Matrix products are divided into blocks whose size does
// not depend on the number of threads. A BLAS computes each block on one thread. Therefore the result does
// not depend on the number of threads.
#pragma once

#include "core/error.h"
#include "parallel/team.h"
#include "sahic/lorsal.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

namespace hsi::sahic::training {

/// Makes OpenBLAS compute on the calling thread only while this object exists, because the team distributes
/// the work. OpenBLAS uses kernels that every x86-64 processor with FMA supports, unless the environment
/// variable OPENBLAS_CORETYPE names other kernels.
class SingleThreadedBlas {
  public:
    /// `threads` is the number of threads that will call the BLAS. Throws Error if the address space of the
    /// process (ulimit -v) is too small for their buffers, since OpenBLAS would retry the allocation forever.
    explicit SingleThreadedBlas(int threads);
    SingleThreadedBlas(const SingleThreadedBlas&) = delete;
    SingleThreadedBlas& operator=(const SingleThreadedBlas&) = delete;
    ~SingleThreadedBlas();
};

/// Computes c = op(a) b for column-major matrices; c is rows x cols, op(a) rows x inner, and b inner x cols.
void multiply(Team& team, bool transposed, int64_t rows, int cols, int64_t inner, const double* a,
              int64_t lda, const double* b, int64_t ldb, double* c, int64_t ldc);

/// The data that both solvers need. They depend only on the J samples, of K classes, and on the kernel's
/// width. A sample has d = 1 + J features: 1, and its kernel values with all samples. H (d x J) has the
/// features of all samples. There are M = K - 1 regressors w, since the last class has w = 0.
struct Problem {
    int64_t samples = 0, d = 0; ///< J and 1 + J
    int classes = 0, m = 0;
    double spread = 1;
    std::vector<int> label;
    std::vector<double> kernel; ///< J x J matrix, symmetric

    Problem(const TrainingSet& set, const LorsalOptions& options, Team& team);
    /// Computes the logits z = H' w, where z is J x M and w is d x M.
    void logits(Team& team, const double* w, double* z) const {
        multiply(team, false, samples, m, samples, kernel.data(), samples, w + 1, d, z, samples);
        for (int k = 0; k < m; ++k)
            for (int64_t i = 0; i < samples; ++i)
                z[k * samples + i] += w[k * d];
    }
    /// Computes the gradient g = H r, where g is d x M and r is J x M (see residual()).
    void gradient(Team& team, const double* r, double* g) const {
        multiply(team, false, samples, m, samples, kernel.data(), samples, r, samples, g + 1, d);
        for (int k = 0; k < m; ++k)
            g[k * d] = std::accumulate(r + k * samples, r + (k + 1) * samples, 0.0);
    }
    /// Replaces the logits z of each sample and each of the first M classes by P - Y. P is the probability of
    /// the class, and Y is 1 if it is the class of the sample, otherwise 0. Returns -log likelihood.
    double residual(double* z) const;
};

inline double norm1(const std::vector<double>& v) {
    return std::accumulate(v.begin(), v.end(), 0.0, [](double s, double x) { return s + std::fabs(x); });
}

inline void check_cancel(const LorsalOptions& o) {
    if (o.cancel && o.cancel->requested()) throw Cancelled();
}

/// The result of find_optimum(). Weights are [class, without the last][1 + sample].
struct Optimum {
    std::vector<double> weights;
    double objective = 0, gap = 0; ///< gap: objective minus a lower bound that the dual proves
    int iterations = 0;            ///< number of Newton steps
    std::vector<double> history;   ///< objective of each working set
};

/// Finds the weights w that minimise -log likelihood + lambda_C |w|_1, to the gap in `options`. Throws Error
/// if memory is too small.
Optimum find_optimum(const Problem& problem, const LorsalOptions& options, Team& team);

} // namespace hsi::sahic::training
