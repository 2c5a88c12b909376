// SPDX-License-Identifier: MIT
// One pixel's constrained least squares, for the processor and the GPU: the same operations in the same
// order, none fused, so that both give the same bits. The method is told in unmix.h and mixture.h.
#pragma once

#include <cfloat>
#include <cmath>
#include <cstddef>

#ifdef __CUDACC__
#define HSI_HOST_DEVICE __host__ __device__
#else
#define HSI_HOST_DEVICE
#endif

namespace hsi::unmix {

/// What all pixels share; p x p matrices row by row. mixture.h says what they hold.
struct Problem {
    int size = 0; ///< p
    bool sum = false, nonnegative = false;
    const double* gram = nullptr;     ///< E'E
    const double* bordered = nullptr; ///< the same with weight_squared added
    const double* whole = nullptr;    ///< the lower Cholesky factor of `bordered`
    double weight_squared = 0, longest = 0;
};

/// Numbers that lie `step` apart: those of one thread among those of others.
template <class T>
struct Strided {
    T* first = nullptr;
    ptrdiff_t step = 1;
    HSI_HOST_DEVICE T& operator[](ptrdiff_t i) const { return first[i * step]; }
};

/// Room for one pixel, indexed from 0: p numbers each; part: p x p.
template <class Doubles, class Flags>
struct Room {
    Doubles products; ///< E'x, given
    Doubles a;        ///< the abundances
    Doubles c, trial, gradient, u, v, part;
    Flags passive; ///< abundances that may differ from 0
    Flags barred;  ///< those that rounding keeps out
    Flags index;   ///< the passive ones
};

/// The Cholesky factor of the rows and columns `index` of a p x p matrix: lower triangle, row by row.
template <class Index, class Lower>
HSI_HOST_DEVICE void factorise(const double* matrix, int p, const Index& index, int n, const Lower& lower) {
    for (int r = 0; r < n; ++r)
        for (int c = 0; c <= r; ++c) {
            double v = matrix[index[r] * p + index[c]];
            for (int i = 0; i < c; ++i)
                v -= lower[r * n + i] * lower[c * n + i];
            // Endmembers are independent, so a pivot is above 0 but for rounding.
            lower[r * n + c] = c < r ? v / lower[c * n + c] : sqrt(v > DBL_MIN ? v : DBL_MIN);
        }
}

/// x = (L L')^-1 x
template <class Lower, class Doubles>
HSI_HOST_DEVICE void substitute(const Lower& lower, int n, const Doubles& x) {
    for (int r = 0; r < n; ++r) {
        double v = x[r];
        for (int i = 0; i < r; ++i)
            v -= lower[r * n + i] * x[i];
        x[r] = v / lower[r * n + r];
    }
    for (int r = n; r-- > 0;) {
        double v = x[r];
        for (int i = r + 1; i < n; ++i)
            v -= lower[i * n + r] * x[i];
        x[r] = v / lower[r * n + r];
    }
}

template <class Doubles, class Flags>
class PixelSolver {
  public:
    HSI_HOST_DEVICE PixelSolver(const Problem& problem, const Room<Doubles, Flags>& room)
        : m_problem(problem), m_room(room), m_size(problem.size) {}

    /// From room.products and x'x to room.a.
    HSI_HOST_DEVICE void solve(double squared) {
        for (int k = 0; k < m_size; ++k)
            m_room.c[k] = m_room.products[k] + m_problem.weight_squared;
        start();
        if (!m_problem.nonnegative) return;
        // What rounding makes of a gradient that is zero: endmembers that are alike in all but a thousandth
        // differ in no more than the square of that.
        const double tolerance = 1e-14 * m_problem.longest * (sqrt(squared) + m_problem.longest);
        for (int k = 0; k < m_size; ++k)
            m_room.barred[k] = 0;
        // Every round lowers the error, so no passive set comes twice; rounding could make it, hence the
        // bound.
        for (int rounds = 0; rounds < 30 * m_size + 30; ++rounds) {
            for (int k = 0; k < m_size; ++k)
                m_room.gradient[k] = m_room.products[k] - row_product(k);
            const int entering = next_to_enter(tolerance);
            if (entering == m_size) return;
            m_room.passive[entering] = 1;
            solve_passive();
            if (!(m_room.trial[entering] > 0)) { // by rounding alone
                m_room.passive[entering] = 0;
                m_room.barred[entering] = 1;
                continue;
            }
            while (some_fall()) {
                step_to_border();
                solve_passive();
            }
            take_trial();
        }
    }

    /// |x - E a|^2 of that pixel, from the products.
    HSI_HOST_DEVICE double residual(double squared) const {
        double sum = squared;
        for (int k = 0; k < m_size; ++k)
            sum += m_room.a[k] * (row_product(k) - 2 * m_room.products[k]);
        return sum > 0 ? sum : 0.0;
    }

  private:
    /// Row k of E'E times a.
    HSI_HOST_DEVICE double row_product(int k) const {
        const double* const row = m_problem.gram + static_cast<ptrdiff_t>(k) * m_size;
        double sum = 0;
        for (int i = 0; i < m_size; ++i)
            sum += row[i] * m_room.a[i];
        return sum;
    }

    /// The minimiser over the passive set alone, into trial (0 elsewhere).
    HSI_HOST_DEVICE void solve_passive() {
        m_count = 0;
        for (int k = 0; k < m_size; ++k) {
            m_room.trial[k] = 0;
            if (m_room.passive[k]) m_room.index[m_count++] = static_cast<unsigned short>(k);
        }
        if (m_count == 0) return;
        if (m_count < m_size) {
            factorise(m_problem.bordered, m_size, m_room.index, m_count, m_room.part);
            solve_with(m_room.part);
        } else {
            solve_with(m_problem.whole);
        }
    }

    template <class Lower>
    HSI_HOST_DEVICE void solve_with(const Lower& factor) {
        for (int i = 0; i < m_count; ++i)
            m_room.u[i] = m_room.c[m_room.index[i]];
        substitute(factor, m_count, m_room.u);
        double excess = 0; // of the sum, for each unit along v
        if (m_problem.sum) {
            for (int i = 0; i < m_count; ++i)
                m_room.v[i] = 1;
            substitute(factor, m_count, m_room.v);
            double u = 0, v = 0;
            for (int i = 0; i < m_count; ++i) {
                u += m_room.u[i];
                v += m_room.v[i];
            }
            excess = (u - 1) / v;
        }
        for (int i = 0; i < m_count; ++i)
            m_room.trial[m_room.index[i]] = m_problem.sum ? m_room.u[i] - excess * m_room.v[i] : m_room.u[i];
    }

    /// The first feasible point: what solve_passive() gives when negative entries leave until there are none.
    HSI_HOST_DEVICE void start() {
        for (int k = 0; k < m_size; ++k)
            m_room.passive[k] = 1;
        for (bool left = true; left;) {
            solve_passive();
            left = false;
            if (!m_problem.nonnegative) break;
            for (int i = 0; i < m_count; ++i) {
                const int k = m_room.index[i];
                if (!(m_room.trial[k] > 0)) {
                    m_room.passive[k] = 0;
                    left = true;
                }
            }
        }
        take_trial();
    }

    HSI_HOST_DEVICE void take_trial() {
        for (int k = 0; k < m_size; ++k)
            m_room.a[k] = m_room.trial[k];
    }

    /// The endmember outside of the passive set whose abundance would lower the error the most; size: none.
    HSI_HOST_DEVICE int next_to_enter(double tolerance) const {
        double mean = 0;
        if (m_problem.sum) {
            int count = 0;
            for (int k = 0; k < m_size; ++k)
                if (m_room.passive[k]) {
                    mean += m_room.gradient[k];
                    ++count;
                }
            mean /= static_cast<double>(count);
        }
        int best = m_size;
        double most = tolerance;
        for (int k = 0; k < m_size; ++k)
            if (!m_room.passive[k] && !m_room.barred[k] && m_room.gradient[k] - mean > most) {
                most = m_room.gradient[k] - mean;
                best = k;
            }
        return best;
    }

    HSI_HOST_DEVICE bool some_fall() const {
        for (int i = 0; i < m_count; ++i)
            if (!(m_room.trial[m_room.index[i]] > 0)) return true;
        return false;
    }

    /// From a towards the trial as far as all stay above zero; those at zero leave the passive set.
    HSI_HOST_DEVICE void step_to_border() {
        double share = 1;
        for (int i = 0; i < m_count; ++i) {
            const int k = m_room.index[i];
            if (m_room.trial[k] > 0) continue;
            const double reach = m_room.a[k] / (m_room.a[k] - m_room.trial[k]);
            if (reach < share) share = reach;
        }
        for (int i = 0; i < m_count; ++i) {
            const int k = m_room.index[i];
            const double a = m_room.a[k], trial = m_room.trial[k];
            const bool falls = !(trial > 0) && a / (a - trial) <= share;
            const double moved = a + share * (trial - a);
            const bool out = falls || !(moved > 0);
            m_room.a[k] = out ? 0.0 : moved;
            if (out) m_room.passive[k] = 0;
        }
    }

    const Problem& m_problem;
    const Room<Doubles, Flags>& m_room;
    const int m_size;
    int m_count = 0; ///< of the passive set, in room.index
};

} // namespace hsi::unmix
