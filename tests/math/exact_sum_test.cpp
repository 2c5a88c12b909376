// SPDX-License-Identifier: MIT
#include "math/exact_sum.h"

#include "core/error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace hsi::math {
namespace {

double sum_of(const std::vector<double>& terms) {
    ExactSum s;
    for (double t : terms)
        s.add(t);
    return s.value();
}

TEST(ExactSum, GivesSimpleSums) {
    EXPECT_EQ(sum_of({}), 0.0);
    EXPECT_EQ(sum_of({1.5, 2.25, -0.75}), 3.0);
    EXPECT_EQ(sum_of({-1.5}), -1.5);
    EXPECT_EQ(sum_of({1e300, 1.0, -1e300}), 1.0);
    EXPECT_EQ(sum_of({1e16, 1.0, -1e16, 1e-30}), 1.0 + 1e-30);
    EXPECT_EQ(sum_of({-1e300, -1.0, 1e300}), -1.0);
}

TEST(ExactSum, HoldsTheWholeRange) {
    const double tiny = std::numeric_limits<double>::denorm_min(), huge = std::numeric_limits<double>::max();
    EXPECT_EQ(sum_of({tiny}), tiny);
    EXPECT_EQ(sum_of({-tiny, -tiny}), -2 * tiny);
    EXPECT_EQ(sum_of({huge}), huge);
    EXPECT_EQ(sum_of({huge, huge, -huge, tiny, -huge}), tiny);
}

TEST(ExactSum, DoesNotDependOnOrderOrGrouping) {
    std::mt19937_64 random(7);
    std::uniform_real_distribution<double> mantissa(-1, 1);
    std::uniform_int_distribution<int> exponent(-60, 60);
    std::vector<double> terms;
    for (int i = 0; i < 5000; ++i)
        terms.push_back(std::ldexp(mantissa(random), exponent(random)));
    const double want = sum_of(terms);
    for (int round = 0; round < 10; ++round) {
        std::shuffle(terms.begin(), terms.end(), random);
        ExactSum parts[3];
        for (size_t i = 0; i < terms.size(); ++i)
            parts[i % 3].add(terms[i]);
        parts[0].add(parts[2]);
        parts[0].add(parts[1]);
        EXPECT_EQ(parts[0].value(), want);
    }
    long double witness = 0;
    for (double t : terms)
        witness += t;
    EXPECT_NEAR(want, static_cast<double>(witness), 1e-12 * std::fabs(want) + 1e-2);
}

TEST(ExactSum, AddsManyTermsWithoutDrift) {
    ExactSum s;
    for (int i = 0; i < 3000000; ++i)
        s.add(0.1);
    EXPECT_NEAR(s.value(), 0.1 * 3e6, 1e-10);
    for (int i = 0; i < 3000000; ++i)
        s.add(-0.1);
    EXPECT_EQ(s.value(), 0.0);
}

TEST(ExactSum, KeepsNonFiniteTerms) {
    EXPECT_TRUE(std::isnan(sum_of({1.0, std::nan("")})));
    EXPECT_TRUE(std::isinf(sum_of({1.0, HUGE_VAL})));
}

TEST(ExactSum, CancelsAcrossDigits) {
    // Carries and borrows over several digits, for both signs of the sum.
    for (double sign : {1.0, -1.0}) {
        EXPECT_EQ(sum_of({sign * 0x1p200, -sign * 0x1p-200}), sign * 0x1p200);
        EXPECT_EQ(sum_of({sign * 0x1p200, -sign * 0x1p-200, -sign * 0x1p200}), -sign * 0x1p-200);
        EXPECT_EQ(sum_of({sign * 0x1p64, -sign}), sign * 18446744073709551615.0);
        EXPECT_EQ(sum_of({sign * 0x1p64, -sign, -sign * 0x1p64, sign}), 0.0);
    }
}

TEST(ExactSums, AgreeWithSingleSums) {
    std::mt19937_64 random(11);
    std::normal_distribution<double> value;
    std::uniform_int_distribution<int> exponent(-200, 200);
    constexpr size_t count = 37;
    std::vector<ExactSum> one(count);
    ExactSums many(count), other(count);
    for (int round = 0; round < 300; ++round) {
        std::vector<double> x;
        const size_t first = static_cast<size_t>(round) % 5;
        for (size_t k = first; k < count; ++k)
            x.push_back(k % 5 == 1 ? 0.0 : std::ldexp(value(random), k % 3 ? 0 : exponent(random)));
        if (round == 7) x[20] = std::numeric_limits<double>::infinity();
        (round % 2 ? many : other).add(first, x.data(), x.size());
        for (size_t k = 0; k < x.size(); ++k)
            one[first + k].add(x[k]);
    }
    many.add(other);
    for (size_t k = 0; k < count; ++k)
        EXPECT_EQ(many.value(k), one[k].value()) << k;
}

TEST(ExactSums, KeepNonFiniteTermsApart) {
    ExactSums a(3), b(3);
    const double x[] = {1.0, std::nan(""), 2.0}, y[] = {HUGE_VAL, 1.0};
    a.add(0, x, 3);
    b.add(1, y, 2);
    a.add(b);
    EXPECT_EQ(a.value(0), 1.0);
    EXPECT_TRUE(std::isnan(a.value(1)));
    EXPECT_EQ(a.value(2), 3.0);
    EXPECT_EQ(ExactSums(1).value(0), 0.0);
}

TEST(ExactSums, AreTheSameInAnotherProcess) {
    constexpr size_t count = 4;
    const double first[] = {1e300, -3.25, 5e-324, 1.0}, second[] = {-1e300, 1e-30, 7.0};
    ExactSums here(count), there(count);
    here.add(0, first, count);
    there.add(1, second, 3);
    ExactSums whole(count);
    whole.add_packed(here.packed());
    whole.add_packed(there.packed());
    here.add(there);
    for (size_t k = 0; k < count; ++k)
        EXPECT_EQ(whole.value(k), here.value(k)) << k;
    const double none = HUGE_VAL;
    here.add(2, &none, 1);
    whole.add_packed(here.packed());
    EXPECT_EQ(whole.value(2), HUGE_VAL);
    whole.set_packed(there.packed()); // the old sum is replaced, including the infinity
    for (size_t k = 0; k < count; ++k)
        EXPECT_EQ(whole.value(k), there.value(k)) << k;
    EXPECT_THROW(ExactSums(count + 1).add_packed(here.packed()), Error);
    EXPECT_THROW(whole.add_packed(here.packed().substr(0, 40)), Error);
}

TEST(ExactSums, TakeNoMoreMemoryThanTheySay) {
    for (auto [lowest, highest] : {std::pair{-1074, 1024}, {-298, 298}, {-149, 170}, {0, 1}, {31, 33}}) {
        ExactSums s(10);
        const double terms[] = {std::ldexp(1.0, lowest), -std::ldexp(2 - 0x1p-52, highest - 1),
                                std::ldexp(1.5, lowest + 1)};
        for (int round = 0; round < 3; ++round)
            for (const double& x : terms)
                s.add(static_cast<size_t>(round), &x, 1);
        EXPECT_LE(s.bytes(), ExactSums::most_bytes(10, lowest, highest)) << lowest << " " << highest;
        const double none = std::nan("");
        s.add(3, &none, 1);
        EXPECT_LE(s.bytes(), ExactSums::most_bytes(10, lowest, highest));
    }
    EXPECT_LT(3 * ExactSums::most_bytes(10, -298, 298), ExactSums::most_bytes(10, -1074, 1024));
}

TEST(ExactSums, TakeDigitsThatWereAddedElsewhere) {
    const std::vector<double> terms{1e300, -3.5, 0x1p-1074, -1e300, 7e-20, 0};
    ExactSums whole(2), parts(2);
    ExactSum one;
    std::vector<std::array<int64_t, 2>> digits(exact::digits);
    for (const double x : terms) {
        const double both[] = {x, 2 * x};
        whole.add(0, both, 2);
        one.add(x);
        for (size_t k = 0; k < 2; ++k) {
            const auto term = exact::split(both[k]);
            const auto at = static_cast<size_t>(term.digit);
            digits[at][k] += term.low;
            digits[at + 1][k] += term.middle;
            digits[at + 2][k] += term.high;
        }
    }
    parts.expect(static_cast<int64_t>(terms.size()));
    for (size_t d = 0; d < digits.size(); ++d)
        if (digits[d] != std::array<int64_t, 2>{}) parts.add_digits(d, digits[d].data());
    for (size_t k = 0; k < 2; ++k) {
        EXPECT_EQ(parts.value(k), whole.value(k));
        EXPECT_EQ(parts.value_with(k, {3.5, -1e-310}), whole.value_with(k, {3.5, -1e-310}));
    }
    EXPECT_EQ(parts.value(0), one.value());
    const double infinite[] = {0, std::numeric_limits<double>::infinity()};
    parts.add_special(infinite);
    EXPECT_EQ(parts.value(0), one.value());
    EXPECT_EQ(parts.value(1), infinite[1]);
}

} // namespace
} // namespace hsi::math
