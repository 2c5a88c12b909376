// SPDX-License-Identifier: MIT
#include "math/philox.h"

#include <gtest/gtest.h>

#include <cmath>

namespace hsi::test {
namespace {

using math::philox;
using math::PhiloxWords;

/// Compares with known answers of the authors' program.
TEST(Philox, KnownAnswers) {
    EXPECT_EQ(philox({{0, 0, 0, 0}}, 0), (PhiloxWords{{0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8}}));
    EXPECT_EQ(philox({0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, ~uint64_t{0}),
              (PhiloxWords{0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD}));
    EXPECT_EQ(philox({0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344}, 0x299F31D0A4093822),
              (PhiloxWords{0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1}));
}

TEST(Philox, NormalNumbersOfAPlace) {
    // Bands 0 to 3 of pixel 0 in draw 0, seed 1.
    const auto z = math::normal_numbers(philox({0, 1u << 24, 0, 0}, 1));
    const double known[] = {0.23228181, 1.09365816, 0.07025087, -0.24063370};
    for (size_t i = 0; i < 4; ++i)
        EXPECT_NEAR(z[i], known[i], 5e-9);
}

/// Compares with the C library's functions, including the ends of both words.
TEST(Philox, NormalPairIsBoxAndMullers) {
    const uint32_t words[] = {0,          1,          2,          0x1FFFFFFF, 0x20000000,
                              0x3FFFFFFF, 0x40000000, 0x5FFFFFFF, 0x60000000, 0x7FFFFFFF,
                              0x80000000, 0x9FFFFFFF, 0xB504F333, 0xB504F334, 0xC0000000,
                              0xDFFFFFFF, 0xE0000000, 0xFFFFFFFE, 0xFFFFFFFF, 0x12345678};
    for (const uint32_t first : words)
        for (const uint32_t second : words) {
            double cosine = 0, sine = 0;
            math::normal_pair<math::PlainNumbers>(first, second, cosine, sine);
            const double length = std::sqrt(-2 * std::log(math::open_uniform(first)));
            const double angle = 6.283185307179586476925287 * math::open_uniform(second);
            EXPECT_NEAR(cosine, length * std::cos(angle), 4e-15 * length) << first << " " << second;
            EXPECT_NEAR(sine, length * std::sin(angle), 4e-15 * length) << first << " " << second;
        }
}

TEST(Philox, UniformStaysInside) {
    EXPECT_GT(math::open_uniform(0), 0);
    EXPECT_LT(math::open_uniform(0xFFFFFFFF), 1);
    EXPECT_EQ(math::open_uniform(0x80000000), 0.5 + 0.5 * 0x1p-32);
}

/// Checks mean, variance and independence of neighbours for a hundred thousand numbers, within five standard
/// deviations.
TEST(Philox, NormalLaw) {
    constexpr int draws = 25000, n = 4 * draws;
    double sum = 0, squares = 0, products = 0, before = 0;
    for (uint32_t i = 0; i < draws; ++i)
        for (const double z : math::normal_numbers(philox({i, 7, 0, 0}, 3))) {
            sum += z;
            squares += z * z;
            products += z * before;
            before = z;
        }
    const double root = std::sqrt(static_cast<double>(n));
    EXPECT_LT(std::fabs(sum / n), 5 / root);
    EXPECT_LT(std::fabs(squares / n - 1), 5 * std::sqrt(2.0) / root);
    EXPECT_LT(std::fabs(products / n), 5 / root);
}

} // namespace
} // namespace hsi::test
