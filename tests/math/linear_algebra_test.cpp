// SPDX-License-Identifier: MIT
#include "core/error.h"
#include "math/linear_algebra.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <utility>
#include <vector>

namespace hsi::math {
namespace {

std::vector<double> random_symmetric(int n, uint32_t seed, bool positive) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    const auto size = static_cast<size_t>(n);
    std::vector<double> g(size * size), a(size * size, 0.0);
    for (auto& x : g)
        x = normal(random);
    for (size_t i = 0; i < size; ++i)
        for (size_t j = 0; j < size; ++j) {
            if (positive)
                for (size_t k = 0; k < size; ++k)
                    a[i * size + j] += g[i * size + k] * g[j * size + k];
            else
                a[i * size + j] = g[i * size + j] + g[j * size + i];
        }
    return a;
}

TEST(LinearAlgebra, NoBitDependsOnWhoDoesTheParts) {
    const Spread backwards = [](int64_t units, const std::function<void(int64_t)>& work) {
        for (int64_t unit = units; unit-- > 0;)
            work(unit);
    };
    for (int n : {1, 2, 3, 16, 17, 60, 130}) {
        const auto a = random_symmetric(n, 3, false), b = random_symmetric(n, 4, true);
        const auto one = eigen_symmetric(a, n), other = eigen_symmetric(a, n, backwards);
        EXPECT_EQ(one.values, other.values);
        EXPECT_EQ(one.vectors, other.vectors);
        EXPECT_EQ(eigen_generalized(a, b, n).vectors, eigen_generalized(a, b, n, backwards).vectors);
    }
}

TEST(LinearAlgebra, KnowsMatricesThatAreDiagonalOrZero) {
    for (int n : {1, 2, 3, 40}) {
        const auto size = static_cast<size_t>(n);
        std::vector<double> a(size * size);
        const auto zero = eigen_symmetric(a, n);
        EXPECT_EQ(zero.values, std::vector<double>(size, 0.0));
        for (size_t i = 0; i < size; ++i)
            a[i * (size + 1)] = static_cast<double>(i + 1);
        const auto e = eigen_symmetric(a, n);
        for (int k = 0; k < n; ++k) {
            EXPECT_DOUBLE_EQ(e.values[static_cast<size_t>(k)], n - k);
            for (int i = 0; i < n; ++i)
                EXPECT_EQ(e.vector(k)[i], i == n - 1 - k ? 1 : 0);
        }
    }
}

TEST(LinearAlgebra, RowsOfZerosKeepToThemselves) {
    // Rows 0, 2 and 4 of five; one eigenvalue is negative.
    const std::vector<double> part{2, 1, 0.5, 1, 3, -1, 0.5, -1, -1e-30};
    std::vector<double> matrix(25);
    const size_t rows[] = {0, 2, 4};
    for (size_t a = 0; a < 3; ++a)
        for (size_t b = 0; b < 3; ++b)
            matrix[rows[a] * 5 + rows[b]] = part[a * 3 + b];
    const auto small = eigen_symmetric(part, 3), whole = eigen_symmetric(matrix, 5);
    EXPECT_EQ(whole.values, (std::vector<double>{small.values[0], small.values[1], 0, 0, small.values[2]}));
    for (const int k : {0, 1, 4}) {
        const int same = k < 2 ? k : 2;
        for (size_t a = 0; a < 3; ++a)
            EXPECT_EQ(whole.vector(k)[rows[a]], small.vector(same)[a]);
        EXPECT_EQ(whole.vector(k)[1], 0);
        EXPECT_EQ(whole.vector(k)[3], 0);
    }
    double axes = 0; // of the two rows, in either order
    for (const int k : {2, 3})
        axes += std::fabs(whole.vector(k)[1]) + std::fabs(whole.vector(k)[3]);
    EXPECT_EQ(axes, 2);
}

TEST(LinearAlgebra, EigenvectorsDiagonaliseTheMatrix) {
    for (int n : {1, 2, 7, 60}) {
        const auto a = random_symmetric(n, 5, false);
        const auto e = eigen_symmetric(a, n);
        const auto values = eigenvalues_symmetric(a, n);
        for (int k = 0; k < n; ++k) {
            const double value = e.values[static_cast<size_t>(k)];
            EXPECT_NEAR(values[static_cast<size_t>(k)], value, 1e-11 * n);
            if (k > 0) {
                EXPECT_LE(value, e.values[static_cast<size_t>(k - 1)]);
            }
            double largest = 0;
            for (int i = 0; i < n; ++i) {
                double product = 0;
                for (int j = 0; j < n; ++j)
                    product += a[static_cast<size_t>(i * n + j)] * e.vector(k)[j];
                EXPECT_NEAR(product, value * e.vector(k)[i], 1e-11 * n);
                if (std::fabs(e.vector(k)[i]) > std::fabs(largest)) largest = e.vector(k)[i];
            }
            EXPECT_GT(largest, 0); // checks the sign rule
            for (int m = 0; m <= k; ++m) {
                double dot = 0;
                for (int i = 0; i < n; ++i)
                    dot += e.vector(k)[i] * e.vector(m)[i];
                EXPECT_NEAR(dot, k == m ? 1.0 : 0.0, 1e-13 * n);
            }
        }
    }
}

TEST(LinearAlgebra, TheFirstOfEqualEntriesDecidesTheSign) {
    double v[] = {-0.5, 0.5, -0.5, 0.5};
    fix_sign(v, 4);
    EXPECT_EQ(v[0], 0.5);
    EXPECT_EQ(v[1], -0.5);
}

TEST(LinearAlgebra, TheInverseTimesTheMatrixIsOne) {
    const int n = 40;
    const auto a = random_symmetric(n, 8, true), inverse = invert_positive(a, n);
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j) {
            double sum = 0;
            for (int k = 0; k < n; ++k)
                sum += a[static_cast<size_t>(i * n + k)] * inverse[static_cast<size_t>(k * n + j)];
            EXPECT_NEAR(sum, i == j ? 1.0 : 0.0, 1e-8);
        }
}

TEST(LinearAlgebra, WhatCannotBeSolvedIsAnError) {
    EXPECT_THROW(invert_positive({1, 1, 1, 1}, 2), Error);
    EXPECT_THROW(eigen_symmetric({1, std::numeric_limits<double>::quiet_NaN(), 0, 1}, 2), Error);
    EXPECT_THROW(eigenvalues_symmetric({std::numeric_limits<double>::infinity(), 0, 0, 1}, 2), Error);
    EXPECT_THROW(eigen_symmetric({1, 2, 3}, 2), Error);
}

TEST(LinearAlgebra, InverseFactorTurnsTheMatrixIntoOne) {
    for (int n : {1, 2, 9, 50}) {
        const auto size = static_cast<size_t>(n);
        const auto a = random_symmetric(n, 8, true);
        const auto w = invert_factor(a, n);
        for (size_t i = 0; i < size; ++i)
            for (size_t j = 0; j < size; ++j) {
                double sum = 0; // sum of W A W'
                for (size_t k = 0; k < size; ++k)
                    for (size_t l = 0; l < size; ++l)
                        sum += w[i * size + k] * a[k * size + l] * w[j * size + l];
                EXPECT_NEAR(sum, i == j ? 1 : 0, 1e-7) << n << " " << i << " " << j;
                if (j > i) {
                    EXPECT_EQ(w[i * size + j], 0);
                }
            }
    }
    EXPECT_THROW(invert_factor({1, 2, 2, 4}, 2), Error);
}

TEST(LinearAlgebra, LowerFactorHasTheProductsOfItsRows) {
    std::mt19937 random(4);
    std::normal_distribution<double> normal;
    for (const auto& [count, n] : {std::pair{1, 1}, {1, 5}, {3, 7}, {6, 6}, {2, 40}, {2, 1}, {30, 4}}) {
        const auto rows = static_cast<size_t>(count), size = static_cast<size_t>(n);
        std::vector<double> w(rows * size);
        for (double& v : w)
            v = normal(random);
        if (count == 3) std::fill(w.begin(), w.begin() + n, 0.0); // also with dependent rows
        const auto lower = lower_factor(w, count, n);
        for (size_t i = 0; i < size; ++i)
            for (size_t j = 0; j < size; ++j) {
                double want = 0, found = 0;
                for (size_t k = 0; k < rows; ++k)
                    want += w[k * size + i] * w[k * size + j];
                for (size_t k = 0; k < size; ++k)
                    found += lower[k * size + i] * lower[k * size + j];
                EXPECT_NEAR(found, want, 1e-12 * (1 + std::fabs(want))) << count << " " << n;
                if (j > i || i + rows < size) {
                    EXPECT_EQ(lower[i * size + j], 0);
                }
                if (i == j) {
                    EXPECT_GE(lower[i * size + j], 0);
                }
            }
    }
    EXPECT_THROW(lower_factor({1, 2}, 2, 2), Error);
}

} // namespace
} // namespace hsi::math
