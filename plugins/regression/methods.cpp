// SPDX-License-Identifier: MIT
#include "regression/methods.h"

#include "core/error.h"
#include "math/linear_algebra.h"
#include "svm/svm.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace hsi::regression {
namespace {

using Vector = std::vector<double>;

/// Returns the dot product. Eight partial sums allow the compiler to compute several products at once.
double dot(const double* a, const double* b, size_t n) {
    std::array<double, 8> sums{};
    size_t i = 0;
    for (; i + sums.size() <= n; i += sums.size())
        for (size_t k = 0; k < sums.size(); ++k)
            sums[k] += a[i + k] * b[i + k];
    for (; i < n; ++i)
        sums[0] += a[i] * b[i];
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}
double squared_distance(const double* a, const double* b, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; ++i)
        sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sum;
}
double length_of(const Vector& v) { return std::sqrt(dot(v.data(), v.data(), v.size())); }
void add(Vector& to, double weight, const double* v) {
    for (size_t i = 0; i < to.size(); ++i)
        to[i] += weight * v[i];
}

/// The samples in the coordinates that a method uses.
struct Set {
    size_t n = 0, bands = 0;
    Vector x, y; ///< standardised values of the samples, [sample][band], and of the variable
    Standard standard;
    double value_mean = 0, value_spread = 1;
    const double* row(size_t i) const { return x.data() + i * bands; }
};

Vector standardised(const Samples& s, const Rows& rows, const Standard& by) {
    Vector x;
    x.reserve(rows.size() * s.bands);
    for (const size_t i : rows)
        for (size_t b = 0; b < s.bands; ++b)
            x.push_back((s.x[i * s.bands + b] - by.centre[b]) / by.spread[b]);
    return x;
}

Set set_of(const Samples& s, const Rows& rows, bool spread_bands, bool spread_values) {
    Set set;
    set.n = rows.size();
    set.bands = s.bands;
    set.standard = standard_of(s, rows);
    if (!spread_bands) set.standard.spread.assign(s.bands, 1.0);
    set.x = standardised(s, rows, set.standard);
    for (const size_t i : rows)
        set.value_mean += s.y[i] / static_cast<double>(set.n);
    double squares = 0;
    for (const size_t i : rows) {
        set.y.push_back(s.y[i] - set.value_mean);
        squares += set.y.back() * set.y.back();
    }
    if (!spread_values || !(squares > 0)) return set;
    set.value_spread = std::sqrt(squares / static_cast<double>(set.n - 1));
    for (double& y : set.y)
        y /= set.value_spread;
    return set;
}

/// Adds a member with these coefficients of standardised bands.
void add_member(const Set& set, const Vector& coefficients, Model& model) {
    double intercept = set.value_mean;
    for (size_t b = 0; b < set.bands; ++b) {
        model.linear.coefficients.push_back(coefficients[b] / set.standard.spread[b]);
        intercept -= model.linear.coefficients.back() * set.standard.centre[b];
    }
    model.linear.intercepts.push_back(intercept);
}

// Partial least squares
// ----------------------------------------------------------------------------------------------------------

/// Computes the bidiagonalisation X W = U B by Golub and Kahan, started from s = X'y. W and U are
/// orthonormal, and B is upper bidiagonal. W spans s, (X'X)s ... The least-squares solution in its first A
/// vectors, b = W B^-1 U'y, is PLSR with A components.
class Bidiagonal {
  public:
    Bidiagonal(const Set& set, size_t most) {
        constexpr double exhausted = 1e-13;
        Vector w(set.bands), u(set.n);
        for (size_t i = 0; i < set.n; ++i)
            add(w, set.y[i], set.row(i));
        double theta = length_of(w);
        if (!(theta > 0)) return;
        for (size_t a = 0; a < most; ++a) {
            for (double& v : w)
                v /= theta;
            for (size_t i = 0; i < set.n; ++i)
                u[i] = dot(set.row(i), w.data(), set.bands);
            const double before = length_of(u);
            orthogonalise(u, m_u);
            const double alpha = length_of(u);
            if (!(alpha > exhausted * before)) return;
            for (double& v : u)
                v /= alpha;
            m_w.push_back(w);
            m_u.push_back(u);
            m_alpha.push_back(alpha);
            if (a > 0) m_theta.push_back(theta);
            m_z.push_back(dot(u.data(), set.y.data(), set.n));
            std::fill(w.begin(), w.end(), 0.0);
            for (size_t i = 0; i < set.n; ++i)
                add(w, u[i], set.row(i));
            const double whole = length_of(w);
            orthogonalise(w, m_w);
            theta = length_of(w);
            if (!(theta > exhausted * whole)) return;
        }
    }
    /// Returns the number of components, which may be fewer than requested.
    size_t size() const { return m_w.size(); }
    const Vector& direction(size_t a) const { return m_w[a]; }
    /// Returns the weights of the directions, computed with the first a components.
    Vector weights(size_t a) const {
        Vector c(m_z.begin(), m_z.begin() + static_cast<ptrdiff_t>(std::min(a, size())));
        for (size_t i = c.size(); i-- > 0;)
            c[i] = (c[i] - (i + 1 < c.size() ? m_theta[i] * c[i + 1] : 0.0)) / m_alpha[i];
        return c;
    }

  private:
    static void orthogonalise(Vector& v, const std::vector<Vector>& to) {
        // A single pass leaves rounding errors, so the projection is subtracted twice.
        for (int twice = 0; twice < 2; ++twice)
            for (size_t k = to.size(); k-- > 0;)
                add(v, -dot(to[k].data(), v.data(), v.size()), to[k].data());
    }
    std::vector<Vector> m_w, m_u;
    Vector m_alpha, m_theta, m_z;
};

class Plsr final : public Fitting {
  public:
    Plsr(const Samples& samples, const TrainOptions& options, size_t most)
        : Fitting(samples, options),
          m_least(options.components > 0 ? static_cast<size_t>(options.components) : 1),
          m_most(options.components > 0 ? m_least : most) {}
    size_t candidates() const override { return m_most - m_least + 1; }
    Estimates estimates(const Rows& rows, const Rows& held_out) const override {
        const Set set = set_of(m_samples, rows, m_options.scale, false);
        const Bidiagonal made(set, m_most);
        std::vector<Vector> weights;
        for (size_t a = m_least; a <= m_most; ++a)
            weights.push_back(made.weights(a));
        const Vector x = standardised(m_samples, held_out, set.standard);
        Vector t(made.size());
        Estimates all;
        for (size_t i = 0; i < held_out.size(); ++i) {
            for (size_t a = 0; a < t.size(); ++a)
                t[a] = dot(x.data() + i * set.bands, made.direction(a).data(), set.bands);
            for (const Vector& c : weights)
                all.value.push_back(set.value_mean + dot(t.data(), c.data(), c.size()));
        }
        return all;
    }
    void fit(const Rows& rows, size_t candidate, Model& model) const override {
        const Set set = set_of(m_samples, rows, m_options.scale, false);
        const size_t components = m_least + candidate;
        const Bidiagonal made(set, components);
        Vector coefficients(set.bands);
        const Vector c = made.weights(components);
        for (size_t a = 0; a < c.size(); ++a)
            add(coefficients, c[a], made.direction(a).data());
        model.linear.components = static_cast<int>(components);
        add_member(set, coefficients, model);
    }

  private:
    size_t m_least, m_most;
};

// Ridge regression
// ----------------------------------------------------------------------------------------------------------

class Ridge final : public Fitting {
  public:
    Ridge(const Samples& samples, const TrainOptions& options)
        : Fitting(samples, options), m_lambda(options.lambda) {
        for (int k = 4; k >= -20 && options.lambda.empty(); --k)
            m_lambda.push_back(std::pow(10.0, k / 2.0));
        std::sort(m_lambda.begin(), m_lambda.end(), std::greater<>());
    }
    size_t candidates() const override { return m_lambda.size(); }
    Estimates estimates(const Rows& rows, const Rows& held_out) const override {
        const Set set = set_of(m_samples, rows, m_options.scale, false);
        const Solved solved(set);
        const Vector x = standardised(m_samples, held_out, set.standard);
        Estimates all;
        all.value.resize(held_out.size() * m_lambda.size());
        for (size_t k = 0; k < m_lambda.size(); ++k) {
            const Vector b = solved.coefficients(set, m_lambda[k]);
            for (size_t i = 0; i < held_out.size(); ++i)
                all.value[i * m_lambda.size() + k] =
                    set.value_mean + dot(x.data() + i * set.bands, b.data(), set.bands);
        }
        return all;
    }
    void fit(const Rows& rows, size_t candidate, Model& model) const override {
        const Set set = set_of(m_samples, rows, m_options.scale, false);
        model.linear.lambda = m_lambda[candidate];
        add_member(set, Solved(set).coefficients(set, m_lambda[candidate]), model);
    }

  private:
    /// The decomposition X'X = V D V' and the vector V'X'y. If there are fewer samples than bands, X X' and
    /// V'y are used instead.
    class Solved {
      public:
        explicit Solved(const Set& set) : m_of_bands(set.bands <= set.n) {
            const size_t n = m_of_bands ? set.bands : set.n;
            Vector gram(n * n), right = m_of_bands ? Vector(n) : set.y;
            if (m_of_bands)
                for (size_t i = 0; i < set.n; ++i) {
                    const double* const x = set.row(i);
                    add(right, set.y[i], x);
                    for (size_t a = 0; a < n; ++a)
                        for (size_t b = 0; b <= a; ++b)
                            gram[a * n + b] += x[a] * x[b];
                }
            else
                for (size_t a = 0; a < n; ++a)
                    for (size_t b = 0; b <= a; ++b)
                        gram[a * n + b] = dot(set.row(a), set.row(b), set.bands);
            for (size_t a = 0; a < n; ++a)
                m_trace += gram[a * n + a];
            m_eigen = math::eigen_symmetric(gram, static_cast<int>(n));
            for (size_t k = 0; k < n; ++k)
                m_turned.push_back(dot(m_eigen.vector(static_cast<int>(k)), right.data(), n));
        }
        Vector coefficients(const Set& set, double t) const {
            const double lambda = t * m_trace / static_cast<double>(set.bands);
            Vector b(m_turned.size());
            for (size_t k = 0; k < m_turned.size(); ++k) {
                const double value = std::max(m_eigen.values[k], 0.0) + lambda;
                if (value > 0) add(b, m_turned[k] / value, m_eigen.vector(static_cast<int>(k)));
            }
            if (m_of_bands) return b;
            Vector of_bands(set.bands);
            for (size_t i = 0; i < set.n; ++i)
                add(of_bands, b[i], set.row(i));
            return of_bands;
        }

      private:
        bool m_of_bands;
        double m_trace = 0;
        math::SymmetricEigen m_eigen;
        Vector m_turned;
    };
    Vector m_lambda; ///< candidates in falling order
};

// Gaussian process
// ----------------------------------------------------------------------------------------------------------

class GaussianProcess final : public Fitting {
  public:
    using Fitting::Fitting;
    bool simplest() const override { return false; }
    size_t candidates() const override { return m_options.select_by_errors ? lengths * noises : 1; }
    Estimates estimates(const Rows& rows, const Rows& held_out) const override {
        if (m_options.select_by_errors) return kernel_ridge(rows, held_out);
        Model model;
        fit(rows, 0, model);
        return of_model(model, held_out);
    }
    void fit(const Rows& rows, size_t candidate, Model& model) const override {
        const Set set = set_of(m_samples, rows, true, true);
        const Vector distances = squared_distances(set);
        const double median = median_distance(distances, set.n);
        if (!m_options.select_by_errors) candidate = most_likely(set, distances, median);
        m_at_grid_end = candidate / noises == 0 || candidate / noises + 1 == lengths ||
                        candidate % noises == 0 || candidate % noises + 1 == noises;
        Kernel& k = model.kernel;
        k.standard = set.standard;
        k.value_mean = set.value_mean;
        k.value_spread = set.value_spread;
        k.samples = set.x;
        k.length = length_of_candidate(candidate / noises, median);
        k.noise = noise_of(candidate % noises);
        Vector m = kernel(distances, k.length);
        for (size_t i = 0; i < set.n; ++i)
            m[i * set.n + i] += k.noise;
        const Vector factor = math::invert_factor(m, static_cast<int>(set.n));
        k.weights.assign(set.n, 0.0);
        k.variance = 0;
        for (size_t i = 0; i < set.n; ++i) {
            const double v = dot(factor.data() + i * set.n, set.y.data(), i + 1);
            k.variance += v * v / static_cast<double>(set.n);
            for (size_t j = 0; j <= i; ++j)
                k.weights[j] += factor[i * set.n + j] * v;
        }
    }
    bool at_grid_end() const override { return m_at_grid_end; }

  private:
    static constexpr size_t lengths = 13, noises = 15;
    static double noise_of(size_t k) { return std::pow(10.0, (static_cast<double>(k) - 12) / 2); }
    static double length_of_candidate(size_t k, double median) {
        return std::pow(2.0, (static_cast<double>(k) - 4) / 2) * median;
    }
    static Vector squared_distances(const Set& set) {
        Vector d(set.n * set.n);
        for (size_t i = 0; i < set.n; ++i)
            for (size_t j = 0; j < i; ++j)
                d[i * set.n + j] = d[j * set.n + i] = squared_distance(set.row(i), set.row(j), set.bands);
        return d;
    }
    static double median_distance(const Vector& squared, size_t n) {
        Vector pairs;
        for (size_t i = 0; i < n; ++i)
            for (size_t j = 0; j < i; ++j)
                pairs.push_back(std::sqrt(squared[i * n + j]));
        if (pairs.empty()) return 1;
        const auto middle = pairs.begin() + static_cast<ptrdiff_t>(pairs.size() / 2);
        std::nth_element(pairs.begin(), middle, pairs.end());
        double median = *middle;
        if (pairs.size() % 2 == 0) median = (median + *std::max_element(pairs.begin(), middle)) / 2;
        return median > 0 ? median : 1;
    }
    static Vector kernel(const Vector& squared, double length) {
        Vector k = squared;
        for (double& v : k)
            v = std::exp(-v / (2 * length * length));
        return k;
    }
    /// Returns the candidate with the greatest likelihood. K = Q T Q' with tridiagonal T is computed once per
    /// length, so that each noise value takes only n steps.
    static size_t most_likely(const Set& set, const Vector& distances, double median) {
        const auto n = static_cast<double>(set.n);
        double greatest = -std::numeric_limits<double>::infinity();
        size_t best = 0;
        for (size_t l = 0; l < lengths; ++l) {
            const auto t = math::tridiagonal_of(kernel(distances, length_of_candidate(l, median)), set.y);
            for (size_t q = 0; q < noises; ++q) {
                double log_determinant = 0, squares = 0, pivot = 0, last = 0;
                for (size_t i = 0; i < set.n; ++i) {
                    const double lower = i > 0 ? t.beside[i - 1] / pivot : 0;
                    pivot = t.diagonal[i] + noise_of(q) - (i > 0 ? lower * t.beside[i - 1] : 0);
                    last = t.turned[i] - lower * last;
                    squares += last * last / pivot;
                    log_determinant += std::log(pivot);
                }
                const double likelihood = -(n * std::log(squares / n) + log_determinant) / 2;
                if (likelihood > greatest) {
                    greatest = likelihood;
                    best = l * noises + q;
                }
            }
        }
        return best;
    }
    /// Returns the estimates of all candidates.
    Estimates kernel_ridge(const Rows& rows, const Rows& held_out) const {
        const Set set = set_of(m_samples, rows, true, true);
        const Vector distances = squared_distances(set), x = standardised(m_samples, held_out, set.standard);
        const double median = median_distance(distances, set.n);
        Estimates all;
        all.value.resize(held_out.size() * candidates());
        for (size_t l = 0; l < lengths; ++l) {
            const double length = length_of_candidate(l, median);
            const auto eigen = math::eigen_symmetric(kernel(distances, length), static_cast<int>(set.n));
            Vector turned, near(set.n), projected(set.n);
            for (size_t k = 0; k < set.n; ++k)
                turned.push_back(dot(eigen.vector(static_cast<int>(k)), set.y.data(), set.n));
            for (size_t i = 0; i < held_out.size(); ++i) {
                for (size_t s = 0; s < set.n; ++s)
                    near[s] = std::exp(-squared_distance(x.data() + i * set.bands, set.row(s), set.bands) /
                                       (2 * length * length));
                for (size_t k = 0; k < set.n; ++k)
                    projected[k] = turned[k] * dot(eigen.vector(static_cast<int>(k)), near.data(), set.n);
                for (size_t q = 0; q < noises; ++q) {
                    double sum = 0;
                    for (size_t k = 0; k < set.n; ++k)
                        sum += projected[k] / (eigen.values[k] + noise_of(q));
                    all.value[i * candidates() + l * noises + q] = set.value_mean + set.value_spread * sum;
                }
            }
        }
        return all;
    }
    mutable std::atomic<bool> m_at_grid_end{false};
};

// Support vector regression
// ----------------------------------------------------------------------------------------------------------

class SupportVectors final : public Fitting {
  public:
    SupportVectors(const Samples& samples, const TrainOptions& options)
        : Fitting(samples, options), m_c(options.c), m_gamma(options.gamma) {
        for (int k = -3; k <= 9 && options.c.empty(); k += 2)
            m_c.push_back(std::ldexp(1.0, k));
        for (int k = -13; k <= 1 && options.gamma.empty(); k += 2)
            m_gamma.push_back(std::ldexp(1.0, k));
        std::sort(m_c.begin(), m_c.end());
        std::sort(m_gamma.begin(), m_gamma.end());
    }
    bool simplest() const override { return false; }
    size_t candidates() const override { return m_c.size() * m_gamma.size(); }
    Estimates estimates(const Rows& rows, const Rows& held_out) const override {
        const Scaled set(m_samples, rows);
        Estimates all;
        all.value.resize(held_out.size() * candidates());
        for (size_t candidate = 0; candidate < candidates(); ++candidate) {
            if (m_options.cancel != nullptr && m_options.cancel->requested()) throw Cancelled();
            Model model;
            train(set, candidate, model.kernel);
            const auto made = of_model(std::move(model), held_out);
            for (size_t i = 0; i < held_out.size(); ++i)
                all.value[i * candidates() + candidate] = made.value[i];
        }
        return all;
    }
    void fit(const Rows& rows, size_t candidate, Model& model) const override {
        train(Scaled(m_samples, rows), candidate, model.kernel);
    }

  private:
    /// The samples with bands scaled to [0, 1].
    struct Scaled {
        Scaled(const Samples& s, const Rows& rows) : values(set_of(s, rows, false, true)) {
            range = {Vector(s.bands, std::numeric_limits<double>::infinity()),
                     Vector(s.bands, -std::numeric_limits<double>::infinity())};
            for (const size_t i : rows)
                for (size_t b = 0; b < s.bands; ++b) {
                    range.centre[b] = std::min(range.centre[b], s.x[i * s.bands + b]);
                    range.spread[b] = std::max(range.spread[b], s.x[i * s.bands + b]);
                }
            for (size_t b = 0; b < s.bands; ++b)
                range.spread[b] = range.spread[b] > range.centre[b] ? range.spread[b] - range.centre[b] : 1;
            const Vector all = standardised(s, rows, range);
            x.assign(all.begin(), all.end());
        }
        Set values;
        Standard range;
        std::vector<float> x;
    };
    void train(const Scaled& set, size_t candidate, Kernel& k) const {
        const auto machine = svm::train_regression(set.x, set.values.y,
                                                   {c_of(candidate), gamma_of(candidate), m_options.epsilon});
        at_limit += machine.at_limit;
        k.standard = set.range;
        k.value_mean = set.values.value_mean;
        k.value_spread = set.values.value_spread;
        k.c = c_of(candidate);
        k.gamma = gamma_of(candidate);
        k.epsilon = m_options.epsilon;
        k.rho = machine.rho;
        k.weights = machine.coefficients;
        for (const int v : machine.support) {
            const auto row =
                set.x.begin() + static_cast<ptrdiff_t>(v) * static_cast<ptrdiff_t>(m_samples.bands);
            k.samples.insert(k.samples.end(), row, row + static_cast<ptrdiff_t>(m_samples.bands));
        }
        // A model without support vectors has the same estimate everywhere.
        if (k.weights.empty()) {
            k.samples.assign(m_samples.bands, 0.0);
            k.weights.assign(1, 0.0);
        }
    }
    double c_of(size_t candidate) const { return m_c[candidate / m_gamma.size()]; }
    double gamma_of(size_t candidate) const { return m_gamma[candidate % m_gamma.size()]; }
    Vector m_c, m_gamma;
};

} // namespace

Standard standard_of(const Samples& s, const Rows& rows) {
    Standard by{Vector(s.bands), Vector(s.bands, 1.0)};
    const auto n = static_cast<double>(rows.size());
    Vector squares(s.bands), least, most;
    for (const size_t i : rows)
        add(by.centre, 1, s.x.data() + i * s.bands);
    for (double& m : by.centre)
        m /= n;
    for (const size_t i : rows) {
        const double* const x = s.x.data() + i * s.bands;
        if (least.empty()) least = most = Vector(x, x + s.bands);
        for (size_t b = 0; b < s.bands; ++b) {
            squares[b] += (x[b] - by.centre[b]) * (x[b] - by.centre[b]);
            least[b] = std::min(least[b], x[b]);
            most[b] = std::max(most[b], x[b]);
        }
    }
    for (size_t b = 0; b < s.bands; ++b)
        if (most[b] > least[b]) by.spread[b] = std::sqrt(squares[b] / (n - 1));
    return by;
}

Estimates Fitting::of_model(Model model, const Rows& held_out) const {
    const size_t bands = m_samples.bands;
    model.method = m_options.method;
    model.transform = {{}, {}, bands};
    Estimates all;
    Fitted(std::make_shared<const Model>(std::move(model)))
        .evaluate_rows(chosen_rows(m_samples.x, bands, held_out), [&](const Fitted::Buffers& b, size_t i) {
            all.value.push_back(b.estimate[i]);
            all.deviation.push_back(b.deviation[i]);
        });
    return all;
}

std::unique_ptr<Fitting> make_fitting(const Samples& samples, const TrainOptions& options,
                                      size_t most_components) {
    switch (options.method) {
    case Method::plsr:
        return std::make_unique<Plsr>(samples, options, most_components);
    case Method::ridge:
        return std::make_unique<Ridge>(samples, options);
    case Method::gp:
        return std::make_unique<GaussianProcess>(samples, options);
    case Method::svr:
        break;
    }
    return std::make_unique<SupportVectors>(samples, options);
}

} // namespace hsi::regression
