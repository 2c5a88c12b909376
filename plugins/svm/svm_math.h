// SPDX-License-Identifier: MIT
// The steps after the decision values, for the CPU and the GPU: votes, and LIBSVM's probability
// estimates.
#pragma once

#include "core/host_device.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hsi::svm {

struct Model;

inline constexpr double unit_roundoff = 1.1102230246251565e-16; // 2^-53

/// Returns the index of the pair (i, j), i < j, among k classes.
HSI_HOST_DEVICE inline int pair_index(int i, int j, int k) { return i * (2 * k - i - 1) / 2 + (j - i - 1); }

/// Returns the index of the first support vector of each class, and the end of the last class.
std::vector<size_t> class_begin(const Model& model);

/// The data of a model from which deviation() and decision_bound() compute bounds of rounding errors.
struct DecisionErrors {
    explicit DecisionErrors(const Model& model);
    std::vector<double> coefficient_sum; ///< sum of |coefficients| for each pair
    double reach = 0;                    ///< greatest length |s| of a support vector
    double terms = 0;                    ///< largest number of terms of a decision value
};

/// Returns a bound of the difference between a pixel's decision value and LIBSVM's, both computed in double
/// precision, divided by the pair's sum of |coefficients|. x2 is |x|^2, and n is the number of features; see
/// DecisionErrors for `reach` and `terms`. The error of |x|^2 + |s|^2 - 2 x s is at most (n + 4) u 2 (|x|^2 +
/// |s|^2). The error of LIBSVM's sum (x - s)^2 has the same bound. Twice this bound, times gamma, is the
/// relative error of a kernel value. No kernel value exceeds exp(-gamma (|x| - reach)^2).
HSI_HOST_DEVICE inline double deviation(double x2, double reach, double gamma, int n, double terms) {
    const double far = fmax(0.0, sqrt(x2) - reach) * (1 - 1e-9);
    const double largest = exp(-gamma * far * far);
    const double relative = 8 * (n + 4) * unit_roundoff * gamma * (x2 + reach * reach);
    return largest * (expm1(relative) + (terms + 64) * unit_roundoff) + 1e-300;
}

/// Returns the absolute value from which on the sign of a pair's decision value is certain. `deviation` is
/// the result of deviation() for the pixel.
HSI_HOST_DEVICE inline double decision_bound(double deviation, double coefficient_sum, double rho) {
    return deviation * coefficient_sum + 4 * unit_roundoff * fabs(rho);
}

/// Returns the probability of class i against class j, limited to 1e-7 .. 1 - 1e-7, from t = a decision + b
/// and e = exp(-|t|). The caller computes e, because the CPU and the GPU have different exponential
/// functions.
HSI_HOST_DEVICE inline double pairwise_probability(double t, double e) {
    const double least = 1e-7, p = (t >= 0 ? e : 1.0) / (1.0 + e);
    return p < least ? least : p > 1 - least ? 1 - least : p;
}

/// Computes class probabilities from pairwise probabilities: T.-F. Wu, C.-J. Lin, R. C. Weng, JMLR 5, 2004,
/// Algorithm 2, with LIBSVM's stopping rule. Two classes need no coupling. r(i, j) returns a pairwise
/// probability. `p` receives k values with stride `stride`. `q` (k*k values) and `qp` (k values) are scratch
/// memory with the same stride.
template <class R>
HSI_HOST_DEVICE inline void couple(int k, const R& r, double* p, double* q, double* qp, int64_t stride) {
    if (k == 2) {
        p[0] = r(0, 1);
        p[stride] = r(1, 0);
        return;
    }
    const int rounds = k > 100 ? k : 100;
    const double tolerance = 0.005 / k;
    for (int t = 0; t < k; ++t) {
        p[t * stride] = 1.0 / k;
        double diagonal = 0;
        for (int j = 0; j < k; ++j) {
            if (j == t) continue;
            const double other = r(j, t);
            diagonal += other * other;
            q[(t * k + j) * stride] = -other * r(t, j);
        }
        q[(t * k + t) * stride] = diagonal;
    }
    for (int round = 0; round < rounds; ++round) {
        double pqp = 0;
        for (int t = 0; t < k; ++t) {
            double sum = 0;
            for (int j = 0; j < k; ++j)
                sum += q[(t * k + j) * stride] * p[j * stride];
            qp[t * stride] = sum;
            pqp += p[t * stride] * sum;
        }
        double worst = 0;
        for (int t = 0; t < k; ++t)
            worst = fmax(worst, fabs(qp[t * stride] - pqp));
        if (worst < tolerance) break;
        for (int t = 0; t < k; ++t) {
            const double diagonal = q[(t * k + t) * stride];
            const double step = (-qp[t * stride] + pqp) / diagonal;
            p[t * stride] += step;
            pqp = (pqp + step * (step * diagonal + 2 * qp[t * stride])) / (1 + step) / (1 + step);
            for (int j = 0; j < k; ++j) {
                qp[j * stride] = (qp[j * stride] + step * q[(t * k + j) * stride]) / (1 + step);
                p[j * stride] /= (1 + step);
            }
        }
    }
}

} // namespace hsi::svm
