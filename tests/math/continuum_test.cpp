// SPDX-License-Identifier: MIT
// Ratios to the continuum, compared with a hull from all pairs of bands, and with closed forms.
#include "core/error.h"
#include "math/continuum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace {

using hsi::math::Continuum;
using hsi::math::rising_bands;

/// Returns the upper hull at x[i], the greatest of all chords over it.
double hull_at(const std::vector<double>& x, const std::vector<double>& v, size_t i) {
    double most = v[i];
    for (size_t a = 0; a < i; ++a)
        for (size_t b = i + 1; b < x.size(); ++b)
            most = std::max(most, v[a] + (v[b] - v[a]) * (x[i] - x[a]) / (x[b] - x[a]));
    return most;
}

TEST(Continuum, IsTheGreatestOfAllChords) {
    std::mt19937 random(5);
    std::uniform_real_distribution<double> step(0.5, 40), value(-0.2, 1);
    for (int trial = 0; trial < 200; ++trial) {
        std::vector<double> x, v;
        const int bands = 2 + trial % 40;
        for (int b = 0; b < bands; ++b) {
            x.push_back((b ? x.back() : 400) + step(random));
            v.push_back(value(random));
        }
        v.front() = std::fabs(v.front()) + 0.01;
        v.back() = std::fabs(v.back()) + 0.01;
        Continuum continuum(x);
        std::vector<double> ratios(x.size());
        ASSERT_TRUE(continuum.remove(v.data(), ratios.data()));
        for (size_t i = 0; i < x.size(); ++i) {
            const double hull = hull_at(x, v, i);
            EXPECT_NEAR(ratios[i], v[i] / hull, 1e-12 * std::max(1.0, std::fabs(v[i] / hull)));
            EXPECT_LE(ratios[i], 1);
            if (hull == v[i]) {
                EXPECT_EQ(ratios[i], 1);
            }
        }
        EXPECT_EQ(ratios.front(), 1);
        EXPECT_EQ(ratios.back(), 1);
        // In place, and with the values of several spectra interleaved.
        std::vector<double> mixed(x.size() * 3, -7), same = v;
        for (size_t i = 0; i < x.size(); ++i)
            mixed[i * 3 + 1] = v[i];
        ASSERT_TRUE(continuum.remove(mixed.data() + 1, mixed.data() + 1, 3));
        ASSERT_TRUE(continuum.remove(same.data(), same.data()));
        EXPECT_EQ(same, ratios);
        for (size_t i = 0; i < x.size(); ++i) {
            EXPECT_EQ(mixed[i * 3 + 1], ratios[i]);
            EXPECT_EQ(mixed[i * 3], -7);
        }
    }
}

TEST(Continuum, OfALineIsOneAndOfAVHasItsDepth) {
    Continuum continuum({1000, 1100, 1300, 1400});
    std::vector<double> r(4);
    ASSERT_TRUE(continuum.remove(std::vector<double>{2, 3, 5, 6}.data(), r.data()));
    for (const double one : r)
        EXPECT_NEAR(one, 1, 1e-15);
    ASSERT_TRUE(continuum.remove(std::vector<double>{1, 0.5, 0, 1}.data(), r.data()));
    EXPECT_EQ(r, (std::vector<double>{1, 0.5, 0, 1}));
    ASSERT_TRUE(continuum.remove(std::vector<double>{1, -1, 0.25, 1}.data(), r.data()));
    EXPECT_EQ(r, (std::vector<double>{1, -1, 0.25, 1}));
}

TEST(Continuum, NeedsEndsAboveZero) {
    Continuum continuum({1, 2, 3});
    std::vector<double> r{9, 9, 9};
    EXPECT_FALSE(continuum.remove(std::vector<double>{0, 1, 1}.data(), r.data()));
    EXPECT_FALSE(continuum.remove(std::vector<double>{1, 1, -1}.data(), r.data()));
    EXPECT_EQ(r, (std::vector<double>{9, 9, 9}));
    EXPECT_THROW(Continuum({5}), hsi::Error);
    EXPECT_THROW(Continuum({5, 5}), hsi::Error);
}

TEST(RisingBands, AreSortedWithoutDoubles) {
    const double unknown = std::nan("");
    EXPECT_EQ(rising_bands({500, 400, unknown, 400 - 5e-7, 450}), (std::vector<size_t>{1, 4, 0}));
    EXPECT_EQ(rising_bands({500, 400, unknown, 450}, 400, 450), (std::vector<size_t>{1, 3}));
    EXPECT_TRUE(rising_bands({500, unknown}, 501, 600).empty());
}

/// Points that are skipped on the way to the hull change no bit: the result equals the chain of all points,
/// which is used for interleaved spectra.
TEST(Continuum, PointsThatArePassedOverChangeNoBit) {
    std::mt19937 random(5);
    std::normal_distribution<double> normal;
    for (const size_t n : {32, 33, 40, 57, 224, 425}) {
        std::vector<double> x;
        for (size_t i = 0; i < n; ++i)
            x.push_back(400 + 7.3 * static_cast<double>(i) + (i % 3 == 1 ? 0.5 : 0));
        Continuum continuum(x);
        for (int kind = 0; kind < 400; ++kind) {
            std::vector<double> v(n), spread(3 * n), ratios(n);
            for (size_t i = 0; i < n; ++i) {
                const double t = static_cast<double>(i) / static_cast<double>(n);
                const double noise = kind % 7 == 0 ? 0 : normal(random) * std::pow(10.0, -(kind % 7));
                v[i] = kind % 11 == 0   ? 2 + (i % 3 == 0 ? 1.0 : 0.0)              // many equal heights
                       : kind % 11 == 1 ? 3 + x[i]                                  // a line
                       : kind % 11 == 2 ? 5 - (t - 0.5) * (t - 0.5)                 // all points are vertices
                       : kind % 11 == 3 ? (i == 0 || i == n - 1 ? 1.0 : -3 + noise) // negative inside
                                        : 1 + 0.3 * std::sin(9 * t) + noise;
                if (kind % 13 == 12) v[i] = static_cast<double>(static_cast<float>(v[i]));
                spread[3 * i] = v[i];
            }
            if (!(v[0] > 0 && v[n - 1] > 0)) continue;
            ASSERT_TRUE(continuum.remove(v.data(), ratios.data()));
            ASSERT_TRUE(continuum.remove(spread.data(), spread.data(), 3));
            for (size_t i = 0; i < n; ++i)
                ASSERT_EQ(ratios[i], spread[3 * i]) << n << " bands, kind " << kind << ", band " << i;
        }
    }
}

} // namespace
