// SPDX-License-Identifier: MIT
// The optimum of the sparse multinomial logistic regression, with a proof.
//
//   minimise  F(H'w) + lambda |w|_1,   F = -log likelihood,
//
// Kernel matrices are nearly singular, so first-order methods converge slowly. The minimum is found by an
// interior point method (K. Koh, S.-J. Kim, S. Boyd, "An interior-point method for large-scale l1-regularized
// logistic regression", JMLR 8, 2007), extended to several classes. It runs on a working set of regressors.
// The working set gains regressors that violate the optimality conditions and loses regressors that are idle
// (as in M. Massias, A. Gramfort, J. Salmon, "Celer: a fast solver for the Lasso with dual extrapolation",
// ICML 2018).
//
// The proof uses Fenchel duality. The dual problem is
//   maximise  sum over samples of the entropy of p_i   subject to  |H (Y - P)|_inf <= lambda,  p_i in the
//   simplex.
// For any w, the point (1 - s) Y + s P(w), s = min(1, lambda / |H (Y - P(w))|_inf), satisfies its conditions.
#include "core/error.h"
#include "core/host_memory.h"
#include "math/elementary.h"
#include "sahic/blas.h"
#include "sahic/lorsal_problem.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace hsi::sahic::training {
namespace {

using blas::Op;
using Index = std::vector<int>;

/// Computes L of a = L L' in the lower triangle of the column-major n x n matrix. The threads of the team
/// share the blocks. Returns false if `a` is not positive definite.
bool cholesky(const LorsalOptions& options, Team& team, std::vector<double>& a, int64_t n) {
    constexpr int64_t nb = 128;
    const auto at = [&](int64_t i, int64_t j) { return a.data() + j * n + i; };
    const auto width = [&](int64_t j) { return static_cast<int>(std::min(nb, n - j)); };
    const int ld = static_cast<int>(n);
    for (int64_t j = 0; j < n; j += nb) {
        const int b = width(j);
        check_cancel(options);
        if (blas::cholesky_lower(b, at(j, j), ld) != 0) return false;
        const int64_t below = (n - j - 1) / nb; // number of blocks below the diagonal block
        team.run(below, [&](int64_t u, int) {
            const int64_t i = j + (u + 1) * nb;
            blas::divide_by_lower_transposed(width(i), b, at(j, j), ld, at(i, j), ld);
        });
        std::vector<std::pair<int64_t, int64_t>> blocks;
        for (int64_t c = j + nb; c < n; c += nb)
            for (int64_t r = c; r < n; r += nb)
                blocks.emplace_back(r, c);
        team.run(static_cast<int64_t>(blocks.size()), [&](int64_t u, int) {
            const auto [r, c] = blocks[static_cast<size_t>(u)];
            if (r == c)
                blas::syrk_lower(width(r), b, -1.0, at(r, j), ld, 1.0, at(r, r), ld);
            else
                blas::gemm(Op::none, Op::transpose, width(r), width(c), b, -1.0, at(r, j), ld, at(c, j), ld,
                           1.0, at(r, c), ld);
        });
    }
    return true;
}

class Solver {
  public:
    Solver(const Problem& p, const LorsalOptions& o, Team& team)
        : m_p(p), m_o(o), m_team(team), m_rows(static_cast<size_t>(p.m)),
          m_features(static_cast<size_t>(p.m)), m_scaled(static_cast<size_t>(team.size())),
          m_z(static_cast<size_t>(p.samples * p.m), 0.0), m_r(m_z) {}

    Optimum run() {
        Optimum best;
        start();
        m_null = static_cast<double>(m_p.samples) * math::log(static_cast<double>(m_p.classes));
        double least = INFINITY, tolerance = 1e-2;
        const double finest = 0.1 * m_o.gap;
        for (int round = 0; round < 100; ++round) {
            minimise(tolerance);
            // Computes the proof over all regressors.
            std::vector<double> g(static_cast<size_t>(m_p.d * m_p.m));
            m_p.gradient(m_team, m_r.data(), g.data());
            const double f = m_loss + m_o.lambda_c * norm1(m_w), gap = f - bound(largest(g));
            best.history.push_back(f);
            if (gap < least) {
                least = gap;
                best.weights = dense();
                best.objective = f;
                best.gap = gap;
            }
            if (m_o.progress)
                m_o.progress(std::clamp(math::log(least / f) / math::log(m_o.gap / 2), 0.0, 0.99));
            if (least <= 0.5 * m_o.gap * f) break;
            const bool fine = tolerance <= finest, grown = renew(g);
            // No regressor violates the condition, so rounding errors prevent a better result.
            if (fine && !grown) break;
            tolerance = std::max(grown ? std::min(tolerance, 0.05 * gap / f) : finest, finest);
        }
        best.iterations = m_steps;
        sparsify(best);
        return best;
    }

  private:
    size_t regressors() const { return m_w.size(); }

    /// Selects, for each class, the features that span the kernel best, and the constant. These features are
    /// the pivots of the kernel's Cholesky factor.
    void start() {
        Index rows{0};
        if (m_p.d * m_p.m <= 600) {
            for (int i = 1; i < m_p.d; ++i)
                rows.push_back(i);
        } else {
            const auto samples = static_cast<size_t>(m_p.samples);
            const size_t pivots = std::min<size_t>(40, samples);
            std::vector<double> rest(samples, 1.0), factor;
            for (size_t r = 0; r < pivots; ++r) {
                const auto at =
                    static_cast<size_t>(std::max_element(rest.begin(), rest.end()) - rest.begin());
                if (rest[at] < 1e-10) break;
                const double scale = 1 / std::sqrt(rest[at]);
                factor.resize((r + 1) * samples);
                double* column = factor.data() + r * samples;
                std::copy_n(m_p.kernel.data() + at * samples, samples, column);
                for (size_t q = 0; q < r; ++q)
                    blas::axpy(static_cast<int>(samples), -factor[q * samples + at],
                               factor.data() + q * samples, column);
                for (size_t i = 0; i < samples; ++i) {
                    column[i] *= scale;
                    rest[i] = std::max(0.0, rest[i] - column[i] * column[i]);
                }
                rows.push_back(static_cast<int>(at) + 1);
            }
        }
        std::fill(m_rows.begin(), m_rows.end(), rows);
        m_w.assign(rows.size() * m_rows.size(), 0.0);
        gather();
    }

    /// Allocates memory for the working set and copies its features.
    void gather() {
        const auto samples = static_cast<size_t>(m_p.samples);
        const uint64_t n = regressors(), bytes = 8 * n * n;
        if (bytes > m_o.memory / 2 || n > 40000)
            throw Error(
                "the optimum of " + std::to_string(m_p.samples) + " training pixels needs " +
                    format_byte_size(bytes) + " for " + std::to_string(n) + " regressors",
                "Give more -memory, a larger -lambda-c, fewer training pixels, or use -lorsal-solver paper.");
        m_offset.assign(1, 0);
        size_t widest = 0;
        for (size_t k = 0; k < m_rows.size(); ++k) {
            auto& h = m_features[k];
            h.resize(samples * m_rows[k].size());
            for (size_t a = 0; a < m_rows[k].size(); ++a)
                if (m_rows[k][a] == 0)
                    std::fill_n(h.data() + a * samples, samples, 1.0);
                else
                    std::copy_n(m_p.kernel.data() + static_cast<size_t>(m_rows[k][a] - 1) * samples, samples,
                                h.data() + a * samples);
            m_offset.push_back(m_offset.back() + m_rows[k].size());
            widest = std::max(widest, m_rows[k].size());
        }
        for (auto& s : m_scaled)
            s.resize(widest * samples);
        m_hessian.resize(static_cast<size_t>(n * n));
    }

    /// Computes the logits z (J x M) from weights of the working set.
    void logits(const std::vector<double>& w, double* z) {
        m_team.run(m_p.m, [&](int64_t k, int) {
            const auto s = static_cast<size_t>(k);
            const auto count = static_cast<int>(m_rows[s].size());
            double* to = z + k * m_p.samples;
            std::fill_n(to, m_p.samples, 0.0);
            if (count > 0)
                blas::gemv(Op::none, static_cast<int>(m_p.samples), count, m_features[s].data(),
                           static_cast<int>(m_p.samples), w.data() + m_offset[s], to);
        });
    }
    std::vector<double> gradient() {
        std::vector<double> g(regressors());
        m_team.run(m_p.m, [&](int64_t k, int) {
            const auto s = static_cast<size_t>(k);
            if (!m_rows[s].empty())
                blas::gemv(Op::transpose, static_cast<int>(m_p.samples), static_cast<int>(m_rows[s].size()),
                           m_features[s].data(), static_cast<int>(m_p.samples), m_r.data() + k * m_p.samples,
                           g.data() + m_offset[s]);
        });
        return g;
    }
    static double largest(const std::vector<double>& g) {
        return std::accumulate(g.begin(), g.end(), 0.0,
                               [](double m, double x) { return std::max(m, std::fabs(x)); });
    }
    /// Returns the value of the dual at the point given by m_r = P - Y. `most` is the greatest absolute
    /// gradient.
    double bound(double most) const {
        const double s = most > m_o.lambda_c ? m_o.lambda_c / most : 1.0;
        double entropy = 0;
        const auto add = [&](double p) {
            if (p > 0) entropy -= p * math::log(p);
        };
        for (int64_t i = 0; i < m_p.samples; ++i) {
            const int mine = m_p.label[static_cast<size_t>(i)];
            double sum = 0; // sum of P - Y over the other classes; the last class has the negative sum
            for (int k = 0; k < m_p.m; ++k) {
                const double r = m_r[static_cast<size_t>(k * m_p.samples + i)];
                sum += r;
                add((k == mine ? 1.0 : 0.0) + s * r);
            }
            add((m_p.m == mine ? 1.0 : 0.0) - s * sum);
        }
        return entropy;
    }
    /// Returns the loss at the given logits. Stores P - Y in `r`.
    double loss(const std::vector<double>& z, std::vector<double>& r) const {
        r = z;
        return m_p.residual(r.data());
    }

    /// Computes the lower triangle of H diag(W) H' over the working set. For each sample, W = p_k (delta_kl -
    /// p_l).
    void hessian() {
        const int64_t samples = m_p.samples;
        const auto n = static_cast<int64_t>(regressors());
        m_team.run(int64_t{m_p.m} * (m_p.m + 1) / 2, [&](int64_t unit, int member) {
            int k = 0;
            while ((k + 1) * (k + 2) / 2 <= unit)
                ++k;
            const int l = static_cast<int>(unit - k * (k + 1) / 2);
            const auto sk = static_cast<size_t>(k), sl = static_cast<size_t>(l);
            const auto rows = static_cast<int>(m_rows[sk].size()),
                       columns = static_cast<int>(m_rows[sl].size());
            if (rows == 0 || columns == 0 || (m_o.cancel && m_o.cancel->requested())) return;
            std::vector<double> weight(static_cast<size_t>(samples));
            for (int64_t i = 0; i < samples; ++i) {
                const auto p = [&](int c) {
                    return m_r[static_cast<size_t>(c * samples + i)] +
                           (m_p.label[static_cast<size_t>(i)] == c ? 1.0 : 0.0);
                };
                weight[static_cast<size_t>(i)] = p(k) * ((k == l ? 1.0 : 0.0) - p(l));
            }
            double* scaled = m_scaled[static_cast<size_t>(member)].data();
            for (int64_t c = 0; c < columns; ++c)
                for (int64_t i = 0; i < samples; ++i)
                    scaled[c * samples + i] =
                        weight[static_cast<size_t>(i)] * m_features[sl][static_cast<size_t>(c * samples + i)];
            blas::gemm(Op::transpose, Op::none, rows, columns, static_cast<int>(samples), 1.0,
                       m_features[sk].data(), static_cast<int>(samples), scaled, static_cast<int>(samples),
                       0.0,
                       m_hessian.data() + static_cast<int64_t>(m_offset[sl]) * n +
                           static_cast<int64_t>(m_offset[sk]),
                       static_cast<int>(n));
        });
    }

    /// Runs the interior point method on the working set, until the relative gap on this set is small enough.
    /// It does Newton steps on F + lambda sum u - 1/t sum log(u^2 - w^2), |w| < u, with growing t. The
    /// equations of each step are solved after elimination of u.
    void minimise(double tolerance) {
        const size_t n = regressors();
        logits(m_w, m_z.data());
        m_loss = loss(m_z, m_r);
        const double lambda = m_o.lambda_c, most = largest(m_w);
        std::vector<double> u(n), w(n), v(n), du(n), direction(n), scale(n);
        for (size_t i = 0; i < n; ++i)
            u[i] = most > 0 ? std::max(1.1 * std::fabs(m_w[i]), 0.01 * most) : 1.0;
        double t = 0, step = 1;
        std::vector<double> dz(m_z.size()), z(m_z.size()), r(m_z.size());
        for (int it = 0; it < 200; ++it) {
            check_cancel(m_o);
            const auto g = gradient();
            const double f = m_loss + lambda * norm1(m_w);
            const double gap = f - bound(largest(g));
            if (gap <= tolerance * f) break;
            const double aim = 2 * static_cast<double>(n) / std::min(gap, m_null);
            if (t == 0)
                t = aim;
            else if (step >= 0.5)
                t = std::max(t, growth * std::min(aim, t));
            ++m_steps;
            hessian();
            check_cancel(m_o);
            std::vector<double> ratio(n);
            double slope = 0;
            for (size_t i = 0; i < n; ++i) {
                const double a = 1 / (u[i] + m_w[i]), b = 1 / (u[i] - m_w[i]);
                const double same = a * a + b * b, cross = a * a - b * b;
                ratio[i] = cross / same;
                // The negative gradients in u here, and in w on the next line.
                du[i] = -(lambda - (a + b) / t);
                const double along = -(g[i] - (a - b) / t);
                direction[i] = along - ratio[i] * du[i];
                v[i] = along;
                double& diagonal = m_hessian[i * n + i];
                diagonal += 4 * a * a * b * b / same / t; // equals (same^2 - cross^2) / same
                scale[i] = 1 / std::sqrt(diagonal);
            }
            solve(direction, scale);
            double longest = 1;
            for (size_t i = 0; i < n; ++i) {
                const double a = 1 / (u[i] + m_w[i]), b = 1 / (u[i] - m_w[i]);
                const double against = du[i];
                du[i] = t * du[i] / (a * a + b * b) - ratio[i] * direction[i];
                slope += v[i] * direction[i] + against * du[i]; // decrease of the function for a small step
                if (du[i] + direction[i] < 0)
                    longest = std::min(longest, 0.99 * (u[i] + m_w[i]) / -(du[i] + direction[i]));
                if (du[i] - direction[i] < 0)
                    longest = std::min(longest, 0.99 * (u[i] - m_w[i]) / -(du[i] - direction[i]));
            }
            logits(direction, dz.data());
            const auto barrier = [&](const std::vector<double>& x, const std::vector<double>& above) {
                double sum = 0;
                for (size_t i = 0; i < n; ++i)
                    sum += lambda * above[i] - (math::log(above[i] + x[i]) + math::log(above[i] - x[i])) / t;
                return sum;
            };
            const double before = m_loss + barrier(m_w, u);
            double value = 0;
            bool better = false;
            for (step = longest; step > 1e-10 && !better; step /= 2) {
                for (size_t i = 0; i < n; ++i) {
                    w[i] = m_w[i] + step * direction[i];
                    v[i] = u[i] + step * du[i];
                }
                for (size_t i = 0; i < z.size(); ++i)
                    z[i] = m_z[i] + step * dz[i];
                value = loss(z, r);
                better = value + barrier(w, v) <= before - 0.01 * step * slope;
            }
            if (!better) break; // Rounding errors prevent a better point.
            step *= 2;
            m_w.swap(w);
            u.swap(v);
            m_z.swap(z);
            m_r.swap(r);
            m_loss = value;
        }
    }

    /// Solves hessian * step = direction in place. First, both sides are scaled so that the diagonal is one.
    /// If rounding errors make the matrix not positive definite, a small value is added to the diagonal.
    void solve(std::vector<double>& direction, const std::vector<double>& scale) {
        const size_t n = direction.size();
        m_team.run(static_cast<int64_t>(n), [&](int64_t c, int) {
            const auto j = static_cast<size_t>(c);
            for (size_t i = j; i < n; ++i)
                m_hessian[j * n + i] *= scale[i] * scale[j];
        });
        std::vector<double> rhs(n);
        for (size_t i = 0; i < n; ++i)
            rhs[i] = direction[i] * scale[i];
        m_factor = m_hessian;
        for (double more = 1e-14; !cholesky(m_o, m_team, m_factor, static_cast<int64_t>(n)); more *= 100) {
            if (more > 1)
                throw Error(
                    "the optimum's Newton step could not be solved",
                    "Look for extreme values among the training pixels, or use -lorsal-solver paper.");
            m_factor = m_hessian;
            for (size_t i = 0; i < n; ++i)
                m_factor[i * n + i] += more;
        }
        auto x = rhs;
        const int size = static_cast<int>(n);
        blas::solve_lower(Op::none, size, m_factor.data(), size, x.data());
        blas::solve_lower(Op::transpose, size, m_factor.data(), size, x.data());
        for (size_t i = 0; i < n; ++i)
            direction[i] = x[i] * scale[i];
    }

    std::vector<double> dense() const {
        std::vector<double> w(static_cast<size_t>(m_p.d * m_p.m), 0.0);
        for (size_t k = 0; k < m_rows.size(); ++k)
            for (size_t a = 0; a < m_rows[k].size(); ++a)
                w[k * static_cast<size_t>(m_p.d) + static_cast<size_t>(m_rows[k][a])] = m_w[m_offset[k] + a];
        return w;
    }

    /// Changes the working set, the features of each class whose weights are optimised. Removes features with
    /// |gradient| < 0.9 lambda_C, but keeps the constant. Adds features that violate |gradient| <= lambda_C,
    /// those with the greatest gradients first. The number of a class's features may at most double, or grow
    /// by 20 if this is more. Returns false if no feature was added.
    bool renew(const std::vector<double>& g) {
        bool grown = false;
        std::vector<double> kept;
        for (size_t k = 0; k < m_rows.size(); ++k) {
            const double* of = g.data() + k * static_cast<size_t>(m_p.d);
            std::vector<char> present(static_cast<size_t>(m_p.d), 0);
            Index rows, violators;
            for (size_t a = 0; a < m_rows[k].size(); ++a) {
                const int row = m_rows[k][a];
                present[static_cast<size_t>(row)] = 1;
                if (row != 0 && std::fabs(of[row]) < 0.9 * m_o.lambda_c) continue;
                rows.push_back(row);
                kept.push_back(m_w[m_offset[k] + a]);
            }
            for (int row = 0; row < m_p.d; ++row)
                if (!present[static_cast<size_t>(row)] && std::fabs(of[row]) > m_o.lambda_c)
                    violators.push_back(row);
            std::stable_sort(violators.begin(), violators.end(),
                             [&](int x, int y) { return std::fabs(of[x]) > std::fabs(of[y]); });
            violators.resize(std::min(violators.size(), std::max<size_t>(20, rows.size())));
            grown = grown || !violators.empty();
            rows.insert(rows.end(), violators.begin(), violators.end());
            kept.insert(kept.end(), violators.size(), 0.0);
            m_rows[k] = std::move(rows);
        }
        m_w = std::move(kept);
        gather();
        return grown;
    }

    /// Sets weights to zero if the proof does not need them. The result of an interior point method has no
    /// zeros.
    void sparsify(Optimum& best) {
        const double most = largest(best.weights);
        for (const double share : {1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8, 1e-10}) {
            auto w = best.weights;
            for (double& x : w)
                if (std::fabs(x) < share * most) x = 0;
            m_p.logits(m_team, w.data(), m_r.data());
            const double f = m_p.residual(m_r.data()) + m_o.lambda_c * norm1(w);
            std::vector<double> g(w.size());
            m_p.gradient(m_team, m_r.data(), g.data());
            // Any point may prove a lower bound, so the greater bound is used.
            const double lower = std::max(best.objective - best.gap, bound(largest(g)));
            if (f - lower <= std::max(m_o.gap * f, best.gap)) {
                best.weights = std::move(w);
                best.objective = f;
                best.gap = std::max(0.0, f - lower);
                return;
            }
        }
    }

    static constexpr double growth = 20; ///< factor of t after a good step
    const Problem& m_p;
    const LorsalOptions& m_o;
    Team& m_team;
    /// The features in the working set of each class; 0 is the constant.
    std::vector<Index> m_rows;
    std::vector<std::vector<double>> m_features; ///< [feature][sample] for each class
    std::vector<std::vector<double>> m_scaled;   ///< scratch memory of each thread of the team
    std::vector<size_t> m_offset;                ///< index in m_w of the first weight of each class
    std::vector<double> m_w, m_z, m_r, m_hessian, m_factor;
    double m_loss = 0, m_null = 0; ///< -log likelihood at the current point, and without any regressors
    int m_steps = 0;
};

} // namespace

Optimum find_optimum(const Problem& problem, const LorsalOptions& options, Team& team) {
    return Solver(problem, options, team).run();
}

} // namespace hsi::sahic::training
