// SPDX-License-Identifier: MIT
// The scores that decide, in double precision and in a fixed order of operations: one rounding a step, no
// fused multiply and add. Backends may screen in any way, but these functions decide among near candidates.
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

/// True when (score a, at pa) is chosen before (score b, at pb).
inline bool before(double a, const Position& pa, double b, const Position& pb) {
    return a != b ? a > b : pa < pb;
}

/// The orthonormalised targets so far (classical Gram-Schmidt, two rounds) and the paper's vector p.
class Basis {
  public:
    explicit Basis(int bands);
    int bands() const { return m_bands; }
    int size() const { return m_size; }
    /// q_k, a value a band.
    const double* q(int k) const {
        return m_q.data() + static_cast<size_t>(k) * static_cast<size_t>(m_bands);
    }
    /// p = 1 - sum_k (q_k.1) q_k for the present size.
    const std::vector<double>& p() const { return m_p; }
    double p_squared() const { return m_p_squared; }
    /// Adds a target; its residual must not vanish (see squared_residual()).
    void add(const float* spectrum);
    /// The first `size` targets only.
    Basis first(int size) const;

    /// ||x||^2, summed band by band (each product is exact).
    static double squared_norm(const float* x, int bands);
    /// ||x||^2 - sum_k (q_k.x)^2
    double squared_residual(const float* x) const;
    /// The score of the options' method with the present targets: ||x||^2 without targets.
    double score(const float* x, const Options& options) const;

  private:
    void update_p();
    void orthogonalise(std::vector<double>& r) const;
    int m_bands, m_size = 0;
    std::vector<double> m_q, m_p;
    double m_p_squared = 0;
};

/// Bounds of |screened - decisive score|, for any order of summation and any fusing, when both work in
/// double: a dot product of n terms errs by at most n u |a||b| (1 + small), u = 2^-53; twice that for two of
/// them. OSP with k targets: 2 n u ||x||^2 for the norm and 4 n u |q_k.x| ||x|| for each square, sum_k
/// |q_k.x| <= sqrt(k) ||x||, plus a rounding of ||x||^2 for each subtraction. The bounds are generous.
double osp_error(int bands, int targets, double squared_norm);
/// GS: |p.x|
double gs_error(int bands, double p_squared, double squared_norm);

} // namespace hsi::atdca
