// SPDX-License-Identifier: MIT
#include "core/error.h"
#include "math/linear_algebra.h"
#include "sahic/lorsal.h"
#include "stream/pipeline.h"
#include "support/memory_cube.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace hsi::sahic {
namespace {

TrainingSet made_set(int samples, int features, int classes) {
    TrainingSet set;
    set.features = features;
    set.scale = 3000;
    std::mt19937 random(5);
    std::normal_distribution<float> noise(0.0f, 250.0f);
    for (int c = 0; c < classes; ++c) {
        ModelClass one;
        one.value = 2 * c + 1;
        set.classes.push_back(one);
    }
    for (int i = 0; i < samples; ++i) {
        const int c = i % classes;
        set.label.push_back(static_cast<uint16_t>(2 * c + 1));
        for (int f = 0; f < features; ++f)
            set.values.push_back(1000.0f + 300.0f * static_cast<float>((c * (f + 2)) % 4) + noise(random));
    }
    return set;
}

/// Runs the specification's steps, inverting each shifted system; returns the objective at v.
double naive_objective(const TrainingSet& set, const LorsalOptions& o) {
    const auto j = static_cast<int>(set.samples()), d = j + 1, n = set.features;
    const auto classes = static_cast<int>(set.classes.size()), m = classes - 1;
    const auto u = [&](int i, int f) {
        return static_cast<double>(set.values[static_cast<size_t>(i * n + f)]) / set.scale;
    };
    const auto distance = [&](int a, int b) {
        double sum = 0;
        for (int f = 0; f < n; ++f)
            sum += (u(a, f) - u(b, f)) * (u(a, f) - u(b, f));
        return sum;
    };
    double s = 0;
    for (int a = 0; a < j; ++a)
        for (int b = 0; b < j; ++b)
            s += distance(a, b) / j / j;
    std::vector<double> h(static_cast<size_t>(d * j), 1.0); // [feature][sample]
    for (int a = 0; a < j; ++a)
        for (int b = 0; b < j; ++b)
            h[static_cast<size_t>((a + 1) * j + b)] = std::exp(-distance(a, b) / (2 * o.delta * o.delta * s));
    std::vector<double> r(static_cast<size_t>(d * d), 0.0);
    for (int a = 0; a < d; ++a)
        for (int b = 0; b < d; ++b)
            for (int i = 0; i < j; ++i)
                r[static_cast<size_t>(a * d + b)] +=
                    h[static_cast<size_t>(a * j + i)] * h[static_cast<size_t>(b * j + i)];
    const auto size = static_cast<size_t>(d * m);
    std::vector<double> w(size, 0.0), v(size, 0.0), mult(size, 0.0), g(size);
    const auto gradient = [&](const std::vector<double>& at) {
        double loss = 0;
        std::fill(g.begin(), g.end(), 0.0);
        for (int i = 0; i < j; ++i) {
            std::vector<double> z(static_cast<size_t>(classes), 0.0);
            for (int k = 0; k < m; ++k)
                for (int a = 0; a < d; ++a)
                    z[static_cast<size_t>(k)] +=
                        at[static_cast<size_t>(k * d + a)] * h[static_cast<size_t>(a * j + i)];
            double sum = 0;
            for (const double x : z)
                sum += std::exp(x);
            const int mine = (set.label[static_cast<size_t>(i)] - 1) / 2;
            loss -= z[static_cast<size_t>(mine)] - std::log(sum);
            for (int k = 0; k < m; ++k)
                for (int a = 0; a < d; ++a)
                    g[static_cast<size_t>(k * d + a)] +=
                        h[static_cast<size_t>(a * j + i)] *
                        (std::exp(z[static_cast<size_t>(k)]) / sum - (k == mine ? 1 : 0));
        }
        return loss;
    };
    double beta = o.beta;
    for (int it = 0; it < o.iterations; ++it) {
        gradient(w);
        // B (x) R + beta I as a single matrix.
        std::vector<double> a(size * size, 0.0), rhs(size);
        for (int k = 0; k < m; ++k)
            for (int l = 0; l < m; ++l)
                for (int x = 0; x < d; ++x)
                    for (int y = 0; y < d; ++y)
                        a[static_cast<size_t>(k * d + x) * size + static_cast<size_t>(l * d + y)] =
                            0.5 * ((k == l ? 1.0 : 0.0) - 1.0 / classes) * r[static_cast<size_t>(x * d + y)];
        for (size_t x = 0; x < size; ++x) {
            rhs[x] = beta * (v[x] + mult[x]) - g[x];
            for (size_t y = 0; y < size; ++y)
                rhs[x] += a[x * size + y] * w[y];
        }
        for (size_t x = 0; x < size; ++x)
            a[x * size + x] += beta;
        const auto inverse = math::invert_positive(a, static_cast<int>(size));
        for (size_t x = 0; x < size; ++x) {
            w[x] = 0;
            for (size_t y = 0; y < size; ++y)
                w[x] += inverse[x * size + y] * rhs[y];
        }
        for (size_t x = 0; x < size; ++x) {
            const double t = w[x] - mult[x];
            v[x] = std::copysign(std::max(std::fabs(t) - o.lambda_c / beta, 0.0), t);
            mult[x] = (mult[x] - (w[x] - v[x])) / 1.05;
        }
        beta *= 1.05;
    }
    double f = gradient(v);
    for (const double x : v)
        f += o.lambda_c * std::fabs(x);
    return f;
}

TEST(Lorsal, FollowsTheNaivePath) {
    const auto set = made_set(24, 6, 3);
    const LorsalOptions o;
    const auto result = train(set, o);
    const double truth = naive_objective(set, o);
    EXPECT_NEAR(result.objective, truth, 1e-6 * truth);
    EXPECT_EQ(result.iterations, 200);
}

/// Finds the least objective by proximal gradient steps with momentum (restarted when the objective rises),
/// with explicit features and sums. It uses no knowledge of the solver under test.
double naive_optimum(const TrainingSet& set, const LorsalOptions& o, int iterations) {
    const auto j = static_cast<size_t>(set.samples()), d = j + 1, n = static_cast<size_t>(set.features);
    const size_t classes = set.classes.size(), m = classes - 1;
    std::vector<double> square(j * j, 0.0), h(d * j, 1.0); // [feature][sample]
    double s = 0;
    for (size_t a = 0; a < j; ++a)
        for (size_t b = 0; b < j; ++b) {
            for (size_t f = 0; f < n; ++f) {
                const double x = (static_cast<double>(set.values[a * n + f]) -
                                  static_cast<double>(set.values[b * n + f])) /
                                 set.scale;
                square[a * j + b] += x * x;
            }
            s += square[a * j + b] / static_cast<double>(j * j);
        }
    for (size_t a = 0; a < j * j; ++a)
        h[j + a] = std::exp(-square[a] / (2 * o.delta * o.delta * s));
    std::vector<double> g(d * m), z(j * m);
    const auto loss = [&](const std::vector<double>& at) { // also stores the gradient in g
        std::fill(z.begin(), z.end(), 0.0);
        std::fill(g.begin(), g.end(), 0.0);
        for (size_t k = 0; k < m; ++k)
            for (size_t a = 0; a < d; ++a)
                for (size_t i = 0; i < j; ++i)
                    z[k * j + i] += at[k * d + a] * h[a * j + i];
        double sum = 0;
        for (size_t i = 0; i < j; ++i) {
            double total = 1;
            for (size_t k = 0; k < m; ++k)
                total += std::exp(z[k * j + i]);
            const auto mine = static_cast<size_t>(set.label[i] - 1) / 2;
            sum += std::log(total) - (mine < m ? z[mine * j + i] : 0.0);
            for (size_t k = 0; k < m; ++k)
                z[k * j + i] = std::exp(z[k * j + i]) / total - (k == mine ? 1.0 : 0.0);
        }
        for (size_t k = 0; k < m; ++k)
            for (size_t a = 0; a < d; ++a)
                for (size_t i = 0; i < j; ++i)
                    g[k * d + a] += z[k * j + i] * h[a * j + i];
        return sum;
    };
    const auto l1 = [&](const std::vector<double>& at) {
        double sum = 0;
        for (const double x : at)
            sum += o.lambda_c * std::fabs(x);
        return sum;
    };
    // 1/2 of the largest eigenvalue of H H' bounds the curvature.
    std::vector<double> x(d, 1.0);
    double bound = 0;
    for (int it = 0; it < 100; ++it) {
        std::vector<double> y(j, 0.0), back(d, 0.0);
        for (size_t a = 0; a < d; ++a)
            for (size_t i = 0; i < j; ++i)
                y[i] += h[a * j + i] * x[a];
        double norm = 0;
        for (size_t a = 0; a < d; ++a) {
            for (size_t i = 0; i < j; ++i)
                back[a] += h[a * j + i] * y[i];
            norm += back[a] * back[a];
        }
        bound = std::sqrt(norm);
        for (size_t a = 0; a < d; ++a)
            x[a] = back[a] / bound;
    }
    const double step = 1 / (0.5 * bound * 1.01);
    std::vector<double> w(d * m, 0.0), before = w, y = w;
    double momentum = 1, least = INFINITY;
    for (int it = 0; it < iterations; ++it) {
        loss(y);
        double uphill = 0;
        for (size_t i = 0; i < w.size(); ++i) {
            const double t = y[i] - step * g[i];
            before[i] = w[i];
            w[i] = std::copysign(std::max(std::fabs(t) - step * o.lambda_c, 0.0), t);
            uphill += (y[i] - w[i]) * (w[i] - before[i]);
        }
        const double next = uphill > 0 ? 1 : 0.5 * (1 + std::sqrt(1 + 4 * momentum * momentum));
        for (size_t i = 0; i < w.size(); ++i)
            y[i] = w[i] + (uphill > 0 ? 0 : (momentum - 1) / next * (w[i] - before[i]));
        momentum = next;
        if (it % 500 == 499) least = std::min(least, loss(w) + l1(w));
    }
    return least;
}

/// Returns class probabilities of spectra in one line, class by class. The spectra are given band by band.
std::vector<float> probabilities_of(const MlrModel& model, const std::vector<float>& spectra,
                                    int64_t samples) {
    test::Cube cube(samples, 1, model.features());
    cube.values = spectra;
    SpectralOptions options;
    options.probabilities = true;
    const auto pass = make_spectral_pass(std::make_shared<const MlrModel>(model), options, samples, 1);
    test::MemorySink sink(samples, 1, model.class_count());
    stream::run_pass(test::MemorySource(cube), *pass, {&sink}, {});
    return sink.cube.values;
}

/// Returns the objective of a model file's weights on its training set.
double objective_of(const TrainingSet& set, const MlrModel& model) {
    const auto j = static_cast<size_t>(set.samples()), n = static_cast<size_t>(set.features);
    std::vector<float> cube(n * j);
    for (size_t i = 0; i < j; ++i)
        for (size_t f = 0; f < n; ++f)
            cube[f * j + i] = set.values[i * n + f];
    const auto p = probabilities_of(model, cube, set.samples());
    double sum = 0;
    for (size_t i = 0; i < j; ++i)
        sum -= std::log(static_cast<double>(p[static_cast<size_t>(set.label[i] - 1) / 2 * j + i]));
    for (const double w : model.weights)
        sum += model.lambda_c * std::fabs(w);
    return sum;
}

struct OptimumCase {
    int samples, features, classes;
    double lambda;
    int naive_iterations;
};

class KnownOptimum : public testing::TestWithParam<OptimumCase> {};

// All regressors at once, and a working set that grows.
TEST_P(KnownOptimum, IsThatOfAnIndependentSolverAndProven) {
    const auto c = GetParam();
    const auto set = made_set(c.samples, c.features, c.classes);
    LorsalOptions o;
    o.optimum = true;
    o.lambda_c = c.lambda;
    const auto result = train(set, o);
    const double truth = naive_optimum(set, o, c.naive_iterations);
    EXPECT_NEAR(result.objective, truth, 1e-3 * truth);
    EXPECT_LE(result.gap, 1e-4 * result.objective);
    EXPECT_LE(result.objective - result.gap, truth * (1 + 1e-12)) << "the lower bound is no lower bound";
    EXPECT_NEAR(objective_of(set, result.model), result.objective, 1e-4 * result.objective);
    EXPECT_LT(result.model.active_weights(), static_cast<int64_t>(c.samples) * (c.classes - 1));
    EXPECT_EQ(result.model.solver, "optimum");
    // The paper's method cannot reach a lower objective.
    o.optimum = false;
    EXPECT_GE(train(set, o).objective, result.objective - result.gap);
}

INSTANTIATE_TEST_SUITE_P(Sets, KnownOptimum,
                         testing::Values(OptimumCase{24, 6, 3, 1e-3, 100000},
                                         OptimumCase{150, 5, 5, 1.0, 10000},
                                         OptimumCase{60, 4, 2, 0.5, 20000}));

TEST(Optimum, NoRegressorAtAllWhereLambdaIsLarge) {
    const auto set = made_set(30, 5, 3);
    LorsalOptions o;
    o.optimum = true;
    o.lambda_c = 1000;
    const auto result = train(set, o);
    EXPECT_EQ(result.model.active_weights(), 0);
    EXPECT_NEAR(result.objective, 30 * std::log(3.0), 1e-6);
    EXPECT_EQ(to_json(from_json(to_json(result.model), "m")), to_json(result.model));
    EXPECT_NEAR(objective_of(set, result.model), result.objective, 1e-4);
}

TEST(Optimum, TheSameForAnyNumberOfThreads) {
    const auto set = made_set(200, 10, 5);
    LorsalOptions o;
    o.optimum = true;
    const auto one = to_json(train(set, o).model);
    o.threads = 3;
    EXPECT_EQ(one, to_json(train(set, o).model));
}

TEST(Optimum, CancelledAndTooLittleMemory) {
    const auto set = made_set(60, 10, 10);
    LorsalOptions o;
    o.optimum = true;
    o.memory = uint64_t{1} << 20; // enough for the kernel, but not for the working set
    EXPECT_THROW(train(set, o), Error);
    o.memory = uint64_t{1} << 30;
    CancelFlag cancel;
    cancel.request();
    o.cancel = &cancel;
    EXPECT_THROW(train(set, o), Cancelled);
}

TEST(Lorsal, TheSameModelForAnyNumberOfThreads) {
    const auto set = made_set(300, 10, 4);
    LorsalOptions o;
    const auto one = to_json(train(set, o).model);
    o.threads = 3;
    EXPECT_EQ(one, to_json(train(set, o).model));
}

TEST(Lorsal, ModelFileComesBackAndDamageIsTold) {
    const auto model = train(made_set(30, 5, 3), {}).model;
    const std::string text = to_json(model);
    EXPECT_EQ(to_json(from_json(text, "m")), text);
    // A document is incomplete before its last brace; only a line end follows. The length of the text depends
    // on the digits of the weights.
    const size_t whole = text.find_last_of('}') + 1;
    for (size_t cut = 0; cut < whole; cut += whole / 37)
        EXPECT_THROW(from_json(text.substr(0, cut), "m"), Error) << cut << " of " << whole;
    EXPECT_THROW(from_json(text.substr(0, whole - 1), "m"), Error);
    EXPECT_EQ(to_json(from_json(text.substr(0, whole), "m")), text);
}

TEST(Lorsal, ProbabilitiesAreTheModelsFormula) {
    const auto set = made_set(40, 5, 3);
    const auto m = train(set, {}).model;
    std::vector<float> cube(5 * 7);
    for (size_t i = 0; i < 7; ++i)
        for (size_t f = 0; f < 5; ++f)
            cube[f * 7 + i] = set.values[i * 5 + f] + 10;
    const auto p = probabilities_of(m, cube, 7);
    const auto anchors = static_cast<size_t>(m.anchor_count());
    for (size_t i = 0; i < 7; ++i) {
        double z[3] = {0, 0, 0}, sum = 0;
        for (size_t k = 0; k < 2; ++k) {
            z[k] = m.weights[k * (anchors + 1)];
            for (size_t a = 0; a < anchors; ++a) {
                double square = 0;
                for (size_t f = 0; f < 5; ++f) {
                    const double x = static_cast<double>(cube[f * 7 + i] - m.anchors[a * 5 + f]) / m.scale;
                    square += x * x;
                }
                z[k] += m.weights[k * (anchors + 1) + 1 + a] * std::exp(-m.gamma() * square);
            }
        }
        for (const double x : z)
            sum += std::exp(x);
        for (size_t k = 0; k < 3; ++k)
            EXPECT_NEAR(static_cast<double>(p[k * 7 + i]), std::exp(z[k]) / sum, 1e-6);
    }
}

TEST(Lorsal, OneClassIsAnError) { EXPECT_THROW(train(made_set(10, 3, 1), {}), Error); }

} // namespace
} // namespace hsi::sahic
