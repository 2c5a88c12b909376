// SPDX-License-Identifier: MIT
// The training problem on the CPU, for both solvers. Each product runs in a BLAS on one thread, over blocks
// whose size does not depend on the number of threads. Therefore the result does not depend on the number of
// threads either.
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

/// Keeps OpenBLAS on the calling thread while this object exists, because the team distributes the work.
/// OpenBLAS uses kernels that every x86-64 processor with FMA supports, unless the environment variable
/// OPENBLAS_CORETYPE names other kernels.
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

/// All data that depend only on the samples. There are d = 1 + J features and M = K - 1 regressors.
struct Problem {
    int64_t samples = 0, d = 0; ///< J and 1 + J
    int classes = 0, m = 0;
    double spread = 1;
    std::vector<int> label;
    std::vector<double> kernel; ///< J x J matrix, symmetric

    Problem(const TrainingSet& set, const LorsalOptions& options, Team& team);
    /// Computes z = H' w, where z is J x M and w is d x M.
    void logits(Team& team, const double* w, double* z) const {
        multiply(team, false, samples, m, samples, kernel.data(), samples, w + 1, d, z, samples);
        for (int k = 0; k < m; ++k)
            for (int64_t i = 0; i < samples; ++i)
                z[k * samples + i] += w[k * d];
    }
    /// Computes g = H r, where g is d x M and r is J x M.
    void gradient(Team& team, const double* r, double* g) const {
        multiply(team, false, samples, m, samples, kernel.data(), samples, r, samples, g + 1, d);
        for (int k = 0; k < m; ++k)
            g[k * d] = std::accumulate(r + k * samples, r + (k + 1) * samples, 0.0);
    }
    /// Replaces logits by P - Y (first M classes). Returns -log likelihood.
    double residual(double* z) const;
};

inline double norm1(const std::vector<double>& v) {
    return std::accumulate(v.begin(), v.end(), 0.0, [](double s, double x) { return s + std::fabs(x); });
}

inline void check_cancel(const LorsalOptions& o) {
    if (o.cancel && o.cancel->requested()) throw Cancelled();
}

/// The result of find_optimum(), including the weights [class - 1][1 + sample].
struct Optimum {
    std::vector<double> weights;
    double objective = 0, gap = 0; ///< gap: objective minus a lower bound that the dual proves
    int iterations = 0;            ///< number of Newton steps
    std::vector<double> history;   ///< objective of each working set
};

/// Finds the minimum of -log likelihood + lambda_C |w|_1. Throws Error if memory is too small.
Optimum find_optimum(const Problem& problem, const LorsalOptions& options, Team& team);

} // namespace hsi::sahic::training
