// SPDX-License-Identifier: MIT
// Tails of the beta distribution, compared with sums of the binomial distribution, closed forms, and their
// own inverse.
#include "core/error.h"
#include "math/distributions.h"

#include <gtest/gtest.h>

#include <cmath>

namespace hsi::test {
namespace {

/// Returns P(B(a, b) > x) for integers a and b: fewer than a of a + b - 1 trials succeed with probability x.
double binomial_tail(double x, int a, int b) {
    const int n = a + b - 1;
    long double sum = 0;
    for (int k = 0; k < a; ++k)
        sum += std::exp(std::lgamma(n + 1.0L) - std::lgamma(k + 1.0L) - std::lgamma(n - k + 1.0L) +
                        k * std::log(static_cast<long double>(x)) +
                        (n - k) * std::log1p(-static_cast<long double>(x)));
    return static_cast<double>(sum);
}

TEST(Beta, TailIsThatOfTheBinomialDistribution) {
    for (const auto& [a, b] : {std::pair{1, 1}, {2, 5}, {7, 3}, {40, 400}, {122, 20000}, {300, 2}})
        for (const double x : {1e-6, 1e-3, 0.01, 0.2, 0.5, 0.9, 0.999}) {
            const double want = binomial_tail(x, a, b);
            if (want < 1e-280) continue;
            EXPECT_NEAR(math::beta_tail(x, a, b), want, 1e-9 * want) << a << " " << b << " " << x;
        }
}

TEST(Beta, ClosedForms) {
    for (const double x : {1e-5, 0.1, 0.7, 0.99}) {
        EXPECT_NEAR(math::beta_tail(x, 1, 2.5), std::pow(1 - x, 2.5), 1e-13);
        EXPECT_NEAR(math::beta_tail(x, 0.5, 1), 1 - std::sqrt(x), 1e-13);
        EXPECT_NEAR(math::beta_tail(x, 0.5, 0.5), 1 - std::asin(std::sqrt(x)) / std::asin(1.0), 1e-13);
    }
    EXPECT_EQ(math::beta_tail(-1, 2, 3), 1);
    EXPECT_EQ(math::beta_tail(0, 2, 3), 1);
    EXPECT_EQ(math::beta_tail(1, 2, 3), 0);
    EXPECT_EQ(math::beta_tail(2, 2, 3), 0);
}

TEST(Beta, QuantileIsTheInverse) {
    for (const auto& [a, b] : {std::pair{0.5, 99.5}, {100.0, 0.5}, {122.0, 5e6}, {2.0, 3.0}, {0.5, 0.5}})
        for (const double tail : {1e-12, 1e-6, 1e-3, 0.3, 0.9}) {
            const double x = math::beta_quantile_of_tail(tail, a, b);
            if (x < 1 - 1e-9) {
                EXPECT_NEAR(math::beta_tail(x, a, b), tail, 1e-7 * tail) << a << " " << b << " " << tail;
            }
        }
}

TEST(Beta, RefusesWhatIsNoDistribution) {
    EXPECT_THROW(math::beta_tail(0.5, 0, 1), Error);
    EXPECT_THROW(math::beta_tail(0.5, 1, std::nan("")), Error);
    EXPECT_THROW(math::beta_quantile_of_tail(0, 1, 1), Error);
    EXPECT_THROW(math::beta_quantile_of_tail(1, 1, 1), Error);
}

} // namespace
} // namespace hsi::test
