// SPDX-License-Identifier: MIT
// The decisive scores, in double precision and in a fixed order of operations: one rounding per step, no
// fused multiply and add. Backends may compute other scores to exclude pixels (screened scores). The decisive
// scores then choose among the remaining pixels, so all backends choose the same pixel.
#pragma once

#include "atdca/atdca.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hsi::atdca {

struct Position {
    int64_t line = 0, sample = 0;
    friend bool operator==(const Position& a, const Position& b) {
        return a.line == b.line && a.sample == b.sample;
    }
    friend bool operator<(const Position& a, const Position& b) {
        return a.line != b.line ? a.line < b.line : a.sample < b.sample;
    }
};

/// Returns true if a pixel at pa with score a is chosen before a pixel at pb with score b.
inline bool before(double a, const Position& pa, double b, const Position& pb) {
    return a != b ? a > b : pa < pb;
}

/// The orthonormalised targets so far (classical Gram-Schmidt, two rounds) and the paper's vector p.
class Basis {
  public:
    explicit Basis(int bands);
    int bands() const { return m_bands; }
    int size() const { return m_size; }
    /// Returns q_k, one value per band.
    const double* q(int k) const {
        return m_q.data() + static_cast<size_t>(k) * static_cast<size_t>(m_bands);
    }
    /// Return p = 1 - sum_k (q_k.1) q_k over all targets of the basis, where 1 is the vector of ones, and
    /// ||p||^2.
    const std::vector<double>& p() const { return m_p; }
    double p_squared() const { return m_p_squared; }
    /// Adds a target; its residual must not be zero (see squared_residual()).
    void add(const float* spectrum);
    /// Returns a basis of only the first `size` targets.
    Basis first(int size) const;

    /// Returns ||x||^2, summed band by band (each product is exact).
    static double squared_norm(const float* x, int bands);
    /// Returns ||x||^2 - sum_k (q_k.x)^2.
    double squared_residual(const float* x) const;
    /// Returns the score of x for the method in `options` and the targets of the basis; ||x||^2 without
    /// targets.
    double score(const float* x, const Options& options) const;

  private:
    void update_p();
    void orthogonalise(std::vector<double>& r) const;
    int m_bands, m_size = 0;
    std::vector<double> m_q, m_p;
    double m_p_squared = 0;
};

/// Returns an upper bound of |screened score - decisive score| for OSP. The bound holds if the screened score
/// is computed in double precision, in any order of summation, with or without fused multiply and add. With u
/// = 2^-53, a dot product of n terms has an error of at most n u |a||b| (1 + small), so two dot products
/// differ by at most twice this error. With k targets, the error is 2 n u ||x||^2 for the norm, 4 n u |q_k.x|
/// ||x|| for each square, where sum_k |q_k.x| <= sqrt(k) ||x||, and one rounding of ||x||^2 per subtraction.
/// The returned bound is greater than their sum.
double osp_error(int bands, int targets, double squared_norm);
/// Returns an upper bound of |screened score - decisive score| for GS, whose score is |p.x|.
double gs_error(int bands, double p_squared, double squared_norm);

} // namespace hsi::atdca
