// SPDX-License-Identifier: MIT
// Constrained least squares of one pixel (NNLS, SCLS, FCLS), solved by one thread of the CPU, by one thread
// of a GPU, or by a team of GPU threads. All use the same operations in the same order, without fused
// operations, so that their results are bitwise equal. unmix.h and mixture.h describe the method.
#pragma once

#include "core/host_device.h"

#include <cmath>
#include <cstddef>
#include <limits>

namespace hsi::unmix {

/// The data that all pixels share, for p endmembers. Triangular matrices are Cholesky factors, stored row by
/// row. Entry (r, c) is at triangle(r) + c, and the diagonal has the reciprocal pivots.
struct Problem {
    int size = 0;                       ///< p, the number of endmembers
    bool sum = false;                   ///< true if abundances sum to one
    bool nonnegative = false;           ///< true if all abundances are at least 0
    double weight_squared = 0;          ///< added to every entry of gram before factorisation
    double longest = 0;                 ///< length of the longest column of E
    const double* gram = nullptr;       ///< E'E, p x p
    const double* whole = nullptr;      ///< Cholesky factor with all endmembers
    const double* whole_ones = nullptr; ///< solution for a right side of ones, p values
};

/// The replacement of a pivot that rounding errors have made 0 or negative.
inline constexpr double least_pivot = std::numeric_limits<double>::min();

HSI_HOST_DEVICE inline size_t triangle(int rows) {
    return static_cast<size_t>(rows) * (static_cast<size_t>(rows) + 1) / 2;
}

/// The data of one pixel. All except `products` are scratch memory.
struct Workspace {
    const double* products = nullptr; ///< E'x; the product of endmember k is at k * stride
    size_t stride = 1;
    double* factor = nullptr;       ///< triangle(p) values
    double* abundances = nullptr;   ///< p values
    double* trial = nullptr;        ///< p values: the minimiser over the passive set, in the order of `index`
    double* ones = nullptr;         ///< p values
    int* index = nullptr;           ///< p values: indices of the passive endmembers
    unsigned char* state = nullptr; ///< p values
};

/// A team of one thread.
struct Alone {
    static constexpr int lanes = 1;
    HSI_HOST_DEVICE int lane() const { return 0; }
    HSI_HOST_DEVICE void sync() const {}
    HSI_HOST_DEVICE bool any(bool mine) const { return mine; }
    HSI_HOST_DEVICE double least(double mine) const { return mine; }
    /// Replaces the value and the k of each lane by the largest value of all lanes and its k. Among equal
    /// values, the smallest k wins.
    HSI_HOST_DEVICE void best(double&, int&) const {}
    /// Sets `before` to the number of lanes before this lane for which `mine` is true, and `all` to the
    /// number of all such lanes.
    HSI_HOST_DEVICE void count(bool mine, int& before, int& all) const {
        before = 0;
        all = mine ? 1 : 0;
    }
};

/// The active set method of Lawson and Hanson, with the constraint on the sum as an additional equation. It
/// starts with all endmembers, and removes endmembers whose abundances are not positive until all are
/// positive. All lanes of the team must call all functions together.
template <class Team>
class ActiveSet {
  public:
    HSI_HOST_DEVICE ActiveSet(const Problem& problem, const Workspace& space, const Team& team)
        : m_problem(problem), m_space(space), m_team(team) {}

    /// Computes the minimiser into abundances; `squared` is x'x.
    HSI_HOST_DEVICE void solve(double squared) {
        start();
        if (!m_problem.nonnegative) return;
        // The rounding error of a gradient that is zero. It must be small, because the gradients of two
        // endmembers that differ by a thousandth differ only by the square of a thousandth.
        const double tolerance = 1e-14 * m_problem.longest * (sqrt(squared) + m_problem.longest);
        // Every round reduces the error, so no passive set occurs twice. Because rounding errors could repeat
        // a set, the number of rounds is limited.
        for (int rounds = 0; rounds < 30 * m_problem.size + 30; ++rounds) {
            const int entering = next_to_enter(tolerance);
            if (entering == m_problem.size) return;
            set_state(entering, passive);
            solve_passive();
            if (fails(entering)) { // This can happen only because of rounding errors.
                set_state(entering, barred);
                gather();
                continue;
            }
            while (any_fails()) {
                step_to_border();
                solve_passive();
            }
            keep();
        }
    }

    /// Returns |x - E a|^2 of the last pixel that was solved.
    HSI_HOST_DEVICE double residual(double squared) const {
        const int n = m_count;
        for (int i = m_team.lane(); i < n; i += Team::lanes) {
            const int k = m_space.index[i];
            m_space.ones[i] = m_space.abundances[k] * (explained(k) - 2 * product(k));
        }
        m_team.sync();
        double sum = squared;
        for (int i = 0; i < n; ++i)
            sum += m_space.ones[i];
        m_team.sync();
        return sum > 0 ? sum : 0.0;
    }

    /// Computes the Cholesky factor of gram + weight_squared, restricted to the rows and columns in `index`.
    HSI_HOST_DEVICE static void factorise(const Problem& problem, const int* index, int n, double* lower,
                                          const Team& team) {
        for (int c = 0; c < n; ++c) {
            const double* const column = problem.gram + static_cast<size_t>(index[c]) * problem.size;
            const double* const pivot_row = lower + triangle(c);
            double pivot = column[index[c]] + problem.weight_squared;
            for (int i = 0; i < c; ++i)
                pivot -= pivot_row[i] * pivot_row[i];
            // Endmembers are independent, so a pivot is above 0 except for rounding errors.
            const double over = 1 / sqrt(pivot > least_pivot ? pivot : least_pivot);
            for (int r = first_from(c, team); r < n; r += Team::lanes) {
                double* const row = lower + triangle(r);
                if (r == c) {
                    row[c] = over;
                    continue;
                }
                double v = column[index[r]] + problem.weight_squared;
                for (int i = 0; i < c; ++i)
                    v -= row[i] * pivot_row[i];
                row[c] = v * over;
            }
            team.sync();
        }
    }

    /// Replaces x by (L L')^-1 x. If `Both` is true, also replaces y by (L L')^-1 y. Each has n values.
    template <bool Both>
    HSI_HOST_DEVICE static void substitute(const double* lower, int n, double* x, double* y,
                                           const Team& team) {
        if constexpr (Team::lanes == 1)
            substitute_alone<Both>(lower, n, x, y);
        else
            substitute_together<Both>(lower, n, x, y, team);
    }

  private:
    enum State : unsigned char { outside, passive, barred }; ///< barred: excluded because of rounding errors

    /// Returns the lane's first row that is not before `from`. A row belongs to the lane whose index equals
    /// the row index modulo the number of lanes.
    HSI_HOST_DEVICE static int first_from(int from, const Team& team) {
        const int row = from / Team::lanes * Team::lanes + team.lane();
        return row < from ? row + Team::lanes : row;
    }

    template <bool Both>
    HSI_HOST_DEVICE static void substitute_alone(const double* lower, int n, double* x, double* y) {
        for (int r = 0; r < n; ++r) {
            const double* const row = lower + triangle(r);
            double u = x[r], v = Both ? y[r] : 0.0;
            for (int i = 0; i < r; ++i) {
                u -= row[i] * x[i];
                if (Both) v -= row[i] * y[i];
            }
            x[r] = u * row[r];
            if (Both) y[r] = v * row[r];
        }
        for (int r = n - 1; r >= 0; --r) {
            const double* const row = lower + triangle(r);
            const double u = x[r] * row[r], v = Both ? y[r] * row[r] : 0.0;
            x[r] = u;
            if (Both) y[r] = v;
            for (int i = 0; i < r; ++i) {
                x[i] -= row[i] * u;
                if (Both) y[i] -= row[i] * v;
            }
        }
    }

    /// Does the same operations on every value as substitute_alone(), in the same order. The division by the
    /// pivots comes last, so that no lane reads a value that another lane writes.
    template <bool Both>
    HSI_HOST_DEVICE static void substitute_together(const double* lower, int n, double* x, double* y,
                                                    const Team& team) {
        for (int c = 0; c < n; ++c) {
            const double over = lower[triangle(c) + c];
            const double u = x[c] * over, v = Both ? y[c] * over : 0.0;
            for (int r = first_from(c + 1, team); r < n; r += Team::lanes) {
                const double l = lower[triangle(r) + c];
                x[r] -= l * u;
                if (Both) y[r] -= l * v;
            }
            team.sync();
        }
        divide<Both>(lower, n, x, y, team);
        for (int r = n - 1; r >= 0; --r) {
            const double* const row = lower + triangle(r);
            const double u = x[r] * row[r], v = Both ? y[r] * row[r] : 0.0;
            for (int i = team.lane(); i < r; i += Team::lanes) {
                x[i] -= row[i] * u;
                if (Both) y[i] -= row[i] * v;
            }
            team.sync();
        }
        divide<Both>(lower, n, x, y, team);
    }

    template <bool Both>
    HSI_HOST_DEVICE static void divide(const double* lower, int n, double* x, double* y, const Team& team) {
        for (int r = team.lane(); r < n; r += Team::lanes) {
            const double over = lower[triangle(r) + r];
            x[r] *= over;
            if (Both) y[r] *= over;
        }
        team.sync();
    }

    HSI_HOST_DEVICE double product(int k) const {
        return m_space.products[static_cast<size_t>(k) * m_space.stride];
    }

    /// Returns entry k of E'E a, from the passive endmembers only, since the abundances of the others are 0.
    HSI_HOST_DEVICE double explained(int k) const {
        double sum = 0;
        for (int i = 0; i < m_count; ++i) {
            const int j = m_space.index[i];
            sum += m_problem.gram[static_cast<size_t>(j) * m_problem.size + k] * m_space.abundances[j];
        }
        return sum;
    }

    HSI_HOST_DEVICE void set_state(int k, State state) {
        if (m_team.lane() == 0) m_space.state[k] = state;
        m_team.sync();
    }

    /// Collects the indices of the passive endmembers in order.
    HSI_HOST_DEVICE void gather() {
        m_count = 0;
        for (int first = 0; first < m_problem.size; first += Team::lanes) {
            const int k = first + m_team.lane();
            const bool mine = k < m_problem.size && m_space.state[k] == passive;
            int before = 0, all = 0;
            m_team.count(mine, before, all);
            if (mine) m_space.index[m_count + before] = k;
            m_count += all;
        }
        m_team.sync();
    }

    /// Computes the minimiser over the passive set, into trial.
    HSI_HOST_DEVICE void solve_passive() {
        gather();
        const int n = m_count;
        const bool part = n < m_problem.size;
        for (int i = m_team.lane(); i < n; i += Team::lanes) {
            m_space.trial[i] = product(m_space.index[i]) + m_problem.weight_squared;
            m_space.ones[i] = 1;
        }
        if (part) factorise(m_problem, m_space.index, n, m_space.factor, m_team);
        m_team.sync();
        if (part && m_problem.sum)
            substitute<true>(m_space.factor, n, m_space.trial, m_space.ones, m_team);
        else
            substitute<false>(part ? m_space.factor : m_problem.whole, n, m_space.trial, nullptr, m_team);
        if (!m_problem.sum || n == 0) return;
        const double* const along = part ? m_space.ones : m_problem.whole_ones;
        double u = 0, v = 0;
        for (int i = 0; i < n; ++i) {
            u += m_space.trial[i];
            v += along[i];
        }
        const double excess = (u - 1) / v; // excess of the sum, per unit along v
        m_team.sync();
        for (int i = m_team.lane(); i < n; i += Team::lanes)
            m_space.trial[i] -= excess * along[i];
        m_team.sync();
    }

    HSI_HOST_DEVICE bool any_fails() const {
        bool mine = false;
        for (int i = m_team.lane(); i < m_count; i += Team::lanes)
            mine = mine || !(m_space.trial[i] > 0);
        return m_team.any(mine);
    }

    HSI_HOST_DEVICE bool fails(int k) const {
        bool mine = false;
        for (int i = m_team.lane(); i < m_count; i += Team::lanes)
            mine = mine || (m_space.index[i] == k && !(m_space.trial[i] > 0));
        return m_team.any(mine);
    }

    /// Copies the trial to the abundances.
    HSI_HOST_DEVICE void keep() {
        for (int k = m_team.lane(); k < m_problem.size; k += Team::lanes)
            m_space.abundances[k] = 0;
        m_team.sync();
        for (int i = m_team.lane(); i < m_count; i += Team::lanes)
            m_space.abundances[m_space.index[i]] = m_space.trial[i];
        m_team.sync();
    }

    /// Computes the first feasible point. It is the minimiser with all endmembers or, if abundances must be
    /// at least 0, with a passive set from which endmembers were removed until all its abundances are
    /// positive.
    HSI_HOST_DEVICE void start() {
        for (int k = m_team.lane(); k < m_problem.size; k += Team::lanes)
            m_space.state[k] = passive;
        m_team.sync();
        for (bool left = true; left;) {
            solve_passive();
            left = m_problem.nonnegative && any_fails();
            if (!left) break;
            for (int i = m_team.lane(); i < m_count; i += Team::lanes)
                if (!(m_space.trial[i] > 0)) m_space.state[m_space.index[i]] = outside;
            m_team.sync();
        }
        keep();
    }

    /// Returns the endmember outside the passive set with the steepest fall of the error; p if none lowers
    /// the error by more than the tolerance.
    HSI_HOST_DEVICE int next_to_enter(double tolerance) const {
        double mean = 0;
        if (m_problem.sum) {
            for (int i = m_team.lane(); i < m_count; i += Team::lanes) {
                const int k = m_space.index[i];
                m_space.ones[i] = product(k) - explained(k);
            }
            m_team.sync();
            for (int i = 0; i < m_count; ++i)
                mean += m_space.ones[i];
            mean /= m_count;
        }
        double most = tolerance;
        int best = m_problem.size;
        for (int k = m_team.lane(); k < m_problem.size; k += Team::lanes) {
            if (m_space.state[k] != outside) continue;
            const double gain = product(k) - explained(k) - mean;
            if (gain > most) {
                most = gain;
                best = k;
            }
        }
        m_team.best(most, best);
        m_team.sync();
        return best;
    }

    /// Moves the abundances towards the trial until one of them becomes zero. Endmembers with zero abundance
    /// leave the passive set.
    HSI_HOST_DEVICE void step_to_border() {
        double share = 1;
        for (int i = m_team.lane(); i < m_count; i += Team::lanes) {
            const double a = m_space.abundances[m_space.index[i]], to = m_space.trial[i];
            if (to > 0) continue;
            const double until = a / (a - to);
            if (until < share) share = until;
        }
        share = m_team.least(share);
        for (int i = m_team.lane(); i < m_count; i += Team::lanes) {
            const int k = m_space.index[i];
            const double a = m_space.abundances[k], to = m_space.trial[i];
            const double there = a + share * (to - a);
            const bool falls = (!(to > 0) && a / (a - to) <= share) || !(there > 0);
            m_space.abundances[k] = falls ? 0.0 : there;
            if (falls) m_space.state[k] = outside;
        }
        m_team.sync();
    }

    const Problem m_problem;
    const Workspace m_space;
    const Team m_team;
    int m_count = 0; ///< number of passive endmembers
};

} // namespace hsi::unmix
