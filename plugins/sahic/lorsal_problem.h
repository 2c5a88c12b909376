// SPDX-License-Identifier: MIT
// The training problem on the CPU, for both solvers. All products run in a BLAS on one thread each, over
// blocks whose size does not depend on the number of threads, so the result does not depend on it either.
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

/// Keeps OpenBLAS on the calling thread while this object exists; the team distributes the work. OpenBLAS
/// uses the kernels that every x86-64 with FMA supports, unless the environment variable OPENBLAS_CORETYPE
/// names others.
class SingleThreadedBlas {
  public:
    /// threads: the number of threads that will call the BLAS. Throws Error if the process has no addresses
    /// left for their buffers (ulimit -v), since OpenBLAS would request them forever.
    explicit SingleThreadedBlas(int threads);
    SingleThreadedBlas(const SingleThreadedBlas&) = delete;
    SingleThreadedBlas& operator=(const SingleThreadedBlas&) = delete;
    ~SingleThreadedBlas();
};

/// Multiplies column-major matrices: c (rows x cols) = alpha op(a) (rows x inner) b (inner x cols).
void multiply(Team& team, bool transposed, int64_t rows, int cols, int64_t inner, const double* a,
              int64_t lda, const double* b, int64_t ldb, double* c, int64_t ldc);

/// All data that depend only on the samples. d = 1 + J features, M = K - 1 regressors.
struct Problem {
    int64_t samples = 0, d = 0; ///< J, 1 + J
    int classes = 0, m = 0;
    double spread = 1;
    std::vector<int> label;
    std::vector<double> kernel; ///< J x J, symmetric

    Problem(const TrainingSet& set, const LorsalOptions& options, Team& team);
    /// Computes z (J x M) = H' w, w: d x M.
    void logits(Team& team, const double* w, double* z) const {
        multiply(team, false, samples, m, samples, kernel.data(), samples, w + 1, d, z, samples);
        for (int k = 0; k < m; ++k)
            for (int64_t i = 0; i < samples; ++i)
                z[k * samples + i] += w[k * d];
    }
    /// Computes g (d x M) = H r, r: J x M.
    void gradient(Team& team, const double* r, double* g) const {
        multiply(team, false, samples, m, samples, kernel.data(), samples, r, samples, g + 1, d);
        for (int k = 0; k < m; ++k)
            g[k * d] = std::accumulate(r + k * samples, r + (k + 1) * samples, 0.0);
    }
    /// Replaces logits by P - Y (first M classes) and returns -log likelihood.
    double residual(double* z) const;
};

inline double norm1(const std::vector<double>& v) {
    return std::accumulate(v.begin(), v.end(), 0.0, [](double s, double x) { return s + std::fabs(x); });
}

inline void check_cancel(const LorsalOptions& o) {
    if (o.cancel && o.cancel->requested()) throw Cancelled();
}

/// The results of the optimum's solver in addition to the weights [class - 1][1 + sample].
struct Optimum {
    std::vector<double> weights;
    double objective = 0, gap = 0; ///< gap: objective - a lower bound that the dual proves
    int iterations = 0;            ///< Newton steps
    std::vector<double> history;   ///< objective of each working set
};

/// Finds the minimum of -log likelihood + lambda_C |w|_1. Throws Error if memory is too small.
Optimum find_optimum(const Problem& problem, const LorsalOptions& options, Team& team);

} // namespace hsi::sahic::training
