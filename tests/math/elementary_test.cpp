// SPDX-License-Identifier: MIT
// Elementary functions, compared with the C library's functions of long double, and with the bits that they
// must have on every machine.
#include "math/elementary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace {

namespace math = hsi::math;

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Returns numbers between two bounds; with `scales`, all powers of two in between are equally likely.
std::vector<double> arguments(double low, double high, bool scales = false, int count = 100000) {
    std::mt19937_64 random(7);
    std::vector<double> all;
    for (int i = 0; i < count; ++i) {
        const double u = static_cast<double>(random() >> 11) * 0x1p-53;
        all.push_back(scales ? std::exp2(std::log2(low) + u * (std::log2(high) - std::log2(low)))
                             : low + u * (high - low));
    }
    return all;
}

double unit_of(long double value) {
    const double v = std::fabs(static_cast<double>(value));
    if (v < std::numeric_limits<double>::min()) return std::numeric_limits<double>::denorm_min();
    return std::nextafter(v, infinity) - v;
}

/// Returns the largest error in units in the last place.
template <class Ours, class Exact>
double error(const std::vector<double>& all, const Ours& ours, const Exact& exact) {
    double most = 0;
    for (const double x : all) {
        const long double wanted = exact(static_cast<long double>(x));
        const auto off = static_cast<double>(std::fabs(static_cast<long double>(ours(x)) - wanted));
        most = std::max(most, off / unit_of(wanted));
    }
    return most;
}

TEST(Elementary, ExponentialsAndLogarithms) {
    const auto exact_exp = [](long double x) { return std::exp(x); };
    const auto exact_log = [](long double x) { return std::log(x); };
    EXPECT_LT(error(arguments(-700, 709), math::exp, exact_exp), 0.56);
    EXPECT_LT(error(arguments(-1, 1), math::exp, exact_exp), 0.56);
    EXPECT_LT(error(arguments(-745, -705), math::exp, exact_exp), 1.01);
    EXPECT_LT(error(arguments(1e-320, 1e308, true), math::log, exact_log), 0.56);
    EXPECT_LT(error(arguments(0.5, 2), math::log, exact_log), 0.56);
    EXPECT_LT(error(arguments(0.999, 1.001), math::log, exact_log), 0.56);
    EXPECT_LT(error(arguments(1e-3, 1e3, true), math::log10, [](long double x) { return std::log10(x); }), 2);
}

TEST(Elementary, Powers) {
    for (const double y : {0.45, 2.2, -3.7, 117.0, -1e-5, 1000.5}) {
        const auto exact = [y](long double x) { return std::pow(x, static_cast<long double>(y)); };
        EXPECT_LT(error(
                      arguments(0.6, 1.8), [y](double x) { return math::pow(x, y); }, exact),
                  1.1)
            << y;
    }
    EXPECT_LT(error(
                  arguments(-300, 300), [](double y) { return math::pow(10, y); },
                  [](long double y) { return std::pow(10.0L, y); }),
              1.1);
    EXPECT_EQ(math::pow(10, 3), 1000);
    EXPECT_EQ(math::pow(2, -3), 0.125);
}

TEST(Elementary, Angles) {
    const auto exact_sin = [](long double x) { return std::sin(x); };
    const auto exact_cos = [](long double x) { return std::cos(x); };
    for (const double bound : {1.0, 7.0, 1e5}) {
        EXPECT_LT(error(arguments(-bound, bound), math::sin, exact_sin), 0.9) << bound;
        EXPECT_LT(error(arguments(-bound, bound), math::cos, exact_cos), 0.9) << bound;
    }
    EXPECT_LT(error(arguments(1e-300, 1, true), math::sin, exact_sin), 0.9);
    for (const double x : {1e6, 1e15, -3e22})
        EXPECT_NEAR(math::sin(x), std::sin(x), 1e-15 * std::fabs(x));
    const auto exact_asin = [](long double x) { return std::asin(x); };
    EXPECT_LT(error(arguments(-1, 1), math::asin, exact_asin), 1);
    EXPECT_LT(error(arguments(1e-200, 1, true), math::asin, exact_asin), 1);
    EXPECT_LT(error(arguments(-1, 1), math::acos, [](long double x) { return std::acos(x); }), 1.2);
    for (const double x : {1.0, -1.0, 3e-200, 7e150}) {
        const auto ours = [x](double y) { return math::atan2(y, x); };
        const auto exact = [x](long double y) { return std::atan2(y, static_cast<long double>(x)); };
        EXPECT_LT(error(arguments(-3 * std::fabs(x), 3 * std::fabs(x)), ours, exact), 1.6) << x;
    }
}

TEST(Elementary, OfStatistics) {
    const auto exact = [](long double x) { return std::erfc(x); };
    EXPECT_LT(error(arguments(-6, 1), math::erfc, exact), 30);
    EXPECT_LT(error(arguments(1, 26), math::erfc, exact), 30);
    for (const double x : arguments(1e-3, 1e6, true, 10000)) {
        const auto wanted = static_cast<double>(std::lgamma(static_cast<long double>(x)));
        EXPECT_NEAR(math::log_gamma(x), wanted, 2e-14 * std::max(1.0, std::fabs(wanted))) << x;
    }
}

TEST(Elementary, SpecialValues) {
    const double nan = std::nan("");
    EXPECT_EQ(math::exp(infinity), infinity);
    EXPECT_EQ(math::exp(710), infinity);
    EXPECT_EQ(math::exp(-infinity), 0);
    EXPECT_EQ(math::exp(-746), 0);
    EXPECT_EQ(math::exp(0), 1);
    EXPECT_EQ(math::log(1), 0);
    EXPECT_EQ(math::log(0), -infinity);
    EXPECT_EQ(math::log(infinity), infinity);
    EXPECT_TRUE(std::isnan(math::log(-1)));
    EXPECT_EQ(math::pow(0, 2), 0);
    EXPECT_EQ(math::pow(0, -2), infinity);
    EXPECT_EQ(math::pow(0, 0), 1);
    EXPECT_EQ(math::pow(3, infinity), infinity);
    EXPECT_EQ(math::pow(3, 1e300), infinity);
    EXPECT_EQ(math::pow(3, -1e300), 0);
    EXPECT_EQ(math::sin(0), 0);
    EXPECT_EQ(math::cos(0), 1);
    EXPECT_TRUE(std::isnan(math::cos(infinity)));
    EXPECT_EQ(math::asin(1), std::asin(1.0));
    EXPECT_EQ(math::acos(1), 0);
    EXPECT_EQ(math::acos(-1), std::acos(-1.0));
    EXPECT_TRUE(std::isnan(math::asin(1.0000001)));
    for (const double y : {0.0, -0.0, 1.0, -1.0, infinity, -infinity})
        for (const double x : {0.0, -0.0, 1.0, -1.0, infinity, -infinity}) {
            EXPECT_EQ(math::atan2(y, x), std::atan2(y, x)) << y << " " << x;
            EXPECT_EQ(std::signbit(math::atan2(y, x)), std::signbit(y)) << y << " " << x;
        }
    EXPECT_EQ(math::erfc(-infinity), 2);
    EXPECT_EQ(math::erfc(infinity), 0);
    EXPECT_EQ(math::erfc(0), 1);
    for (double (*const f)(double) :
         {math::exp, math::log, math::sin, math::cos, math::asin, math::acos, math::erfc, math::log_gamma})
        EXPECT_TRUE(std::isnan(f(nan)));
    EXPECT_TRUE(std::isnan(math::pow(nan, 2)) && std::isnan(math::pow(2, nan)));
    EXPECT_TRUE(std::isnan(math::atan2(nan, 1)) && std::isnan(math::atan2(1, nan)));
}

/// Compares a hash of all results' bits, which must be equal on every processor, with every compiler and C
/// library.
TEST(Elementary, HaveTheSameBitsEverywhere) {
    uint64_t sum = 0;
    const auto take = [&sum](double value) {
        sum = (sum ^ std::bit_cast<uint64_t>(value)) * 0x9E3779B97F4A7C15u;
        sum ^= sum >> 29;
    };
    uint64_t state = 1;
    const auto uniform = [&state] {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return static_cast<double>(state >> 11) * 0x1p-53;
    };
    for (int i = 0; i < 20000; ++i) {
        const double u = uniform(), v = uniform();
        take(math::exp(1400 * u - 700));
        take(math::log(1000 * u + 0x1p-60));
        take(math::log10(v + 0x1p-60));
        take(math::pow(10 * u, 20 * v - 10));
        take(math::sin(100 * u - 50));
        take(math::cos(100 * v - 50));
        take(math::asin(2 * u - 1));
        take(math::acos(2 * v - 1));
        take(math::atan2(u - 0.5, v - 0.5));
        take(math::erfc(10 * u - 3));
        take(math::log_gamma(30 * v + 0x1p-60));
    }
    EXPECT_EQ(sum, 9114929687502089203u);
}

} // namespace
