// SPDX-License-Identifier: MIT
// The training problem on the CPU, for both solvers. All products run in a BLAS on one thread each, over
// blocks whose cut does not depend on the number of threads: neither does any bit of the result.
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

/// While this lives, the BLAS stays on the calling thread when it is OpenBLAS; the team does the sharing. It
/// computes with the kernels that every x86-64 with FMA has, unless the environment variable
/// OPENBLAS_CORETYPE names others.
class SingleThreadedBlas {
  public:
    /// For so many threads that will call it. Throws Error when the process has no addresses left for their
    /// buffers (ulimit -v), since OpenBLAS would request them for ever.
    explicit SingleThreadedBlas(int threads);
    SingleThreadedBlas(const SingleThreadedBlas&) = delete;
    SingleThreadedBlas& operator=(const SingleThreadedBlas&) = delete;
    ~SingleThreadedBlas();
};

/// Column-major matrices; c (rows x cols) = alpha op(a) (rows x inner) b (inner x cols).
void multiply(Team& team, bool transposed, int64_t rows, int cols, int64_t inner, const double* a,
              int64_t lda, const double* b, int64_t ldb, double* c, int64_t ldc);

/// Everything that depends on the samples alone. d = 1 + J features, M = K - 1 regressors.
struct Problem {
    int64_t samples = 0, d = 0; ///< J, 1 + J
    int classes = 0, m = 0;
    double spread = 1;
    std::vector<int> label;
    std::vector<double> kernel; ///< J x J, symmetric

    Problem(const TrainingSet& set, const LorsalOptions& options, Team& team);
    /// z (J x M) = H' w, w: d x M.
    void logits(Team& team, const double* w, double* z) const {
        multiply(team, false, samples, m, samples, kernel.data(), samples, w + 1, d, z, samples);
        for (int k = 0; k < m; ++k)
            for (int64_t i = 0; i < samples; ++i)
                z[k * samples + i] += w[k * d];
    }
    /// g (d x M) = H r, r: J x M.
    void gradient(Team& team, const double* r, double* g) const {
        multiply(team, false, samples, m, samples, kernel.data(), samples, r, samples, g + 1, d);
        for (int k = 0; k < m; ++k)
            g[k * d] = std::accumulate(r + k * samples, r + (k + 1) * samples, 0.0);
    }
    /// Turns logits into P - Y (first M classes) and returns -log likelihood.
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

/// The minimum of -log likelihood + lambda_C |w|_1. Throws Error when memory does not do.
Optimum find_optimum(const Problem& problem, const LorsalOptions& options, Team& team);

} // namespace hsi::sahic::training
