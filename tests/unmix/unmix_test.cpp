// SPDX-License-Identifier: MIT
// Abundances, compared with a reference that tries every set of endmembers; optimality, closed forms, tiles
// and threads.
#include "core/error.h"
#include "stream/pipeline.h"
#include "support/cancelled_tile.h"
#include "support/memory_cube.h"
#include "unmix/draws.h"
#include "unmix/unmix.h"
#include "unmix/unmix_scene.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace hsi;
using test::mixtures;
using test::spectra;
using unmix::Endmembers;
using unmix::Method;
using Vector = std::vector<long double>;

constexpr Method methods[] = {Method::ucls, Method::nnls, Method::scls, Method::fcls};

/// Solves a system by Gaussian elimination with full pivoting; empty if the matrix is singular.
std::optional<Vector> solve_linear(std::vector<Vector> m, Vector r) {
    const size_t n = r.size();
    for (size_t c = 0; c < n; ++c) {
        size_t best = c;
        for (size_t i = c; i < n; ++i)
            if (std::fabs(m[i][c]) > std::fabs(m[best][c])) best = i;
        if (m[best][c] == 0) return {};
        std::swap(m[c], m[best]);
        std::swap(r[c], r[best]);
        for (size_t i = 0; i < n; ++i) {
            if (i == c) continue;
            const long double f = m[i][c] / m[c][c];
            for (size_t j = c; j < n; ++j)
                m[i][j] -= f * m[c][j];
            r[i] -= f * r[c];
        }
    }
    for (size_t i = 0; i < n; ++i)
        r[i] /= m[i][i];
    return r;
}

long double error_of(const Endmembers& e, const Vector& x, const Vector& a) {
    long double sum = 0;
    for (size_t b = 0; b < x.size(); ++b) {
        long double left = x[b];
        for (size_t k = 0; k < a.size(); ++k)
            left -= a[k] * static_cast<long double>(e.spectra[k][b]);
        sum += left * left;
    }
    return sum;
}

/// Returns the minimiser over every set of endmembers whose abundances are all allowed, so that it cannot
/// miss the minimum.
Vector reference(const Endmembers& e, Method method, const Vector& x) {
    const auto p = static_cast<size_t>(e.count());
    const bool sum = unmix::sums_to_one(method), positive = unmix::is_nonnegative(method);
    Vector best(p, 0);
    long double least = sum ? std::numeric_limits<long double>::infinity() : error_of(e, x, best);
    for (size_t set = positive ? 1 : (size_t{1} << p) - 1; set < size_t{1} << p; ++set) {
        std::vector<size_t> index;
        for (size_t k = 0; k < p; ++k)
            if (set >> k & 1) index.push_back(k);
        const size_t n = index.size() + (sum ? 1 : 0);
        std::vector<Vector> m(n, Vector(n, 0));
        Vector r(n, 1);
        for (size_t i = 0; i < index.size(); ++i) {
            r[i] = 0;
            for (size_t b = 0; b < x.size(); ++b)
                r[i] += static_cast<long double>(e.spectra[index[i]][b]) * x[b];
            for (size_t j = 0; j < index.size(); ++j)
                for (size_t b = 0; b < x.size(); ++b)
                    m[i][j] += static_cast<long double>(e.spectra[index[i]][b]) *
                               static_cast<long double>(e.spectra[index[j]][b]);
            if (sum) m[i][n - 1] = m[n - 1][i] = 1;
        }
        const auto found = solve_linear(m, r);
        if (!found) continue;
        Vector a(p, 0);
        bool allowed = true;
        for (size_t i = 0; i < index.size(); ++i) {
            a[index[i]] = (*found)[i];
            allowed = allowed && (!positive || (*found)[i] >= 0);
        }
        if (const long double error = error_of(e, x, a); allowed && error < least) {
            least = error;
            best = a;
        }
    }
    return best;
}

struct Unmixed {
    test::MemorySink abundances, rmse;
    int64_t valid = 0, invalid = 0;
};
Unmixed unmixed(const test::Cube& cube, const Endmembers& e, Method method,
                const stream::PassOptions& pass = {}) {
    const auto s = cube.shape;
    Unmixed u{test::MemorySink(s.samples, s.lines, e.count()), test::MemorySink(s.samples, s.lines, 1)};
    const auto operation = unmix::make_unmixing(e, {method, true});
    stream::run_pass(test::MemorySource(cube), *operation, {&u.abundances, &u.rmse}, pass);
    u.valid = operation->valid();
    u.invalid = operation->invalid();
    return u;
}

Vector pixel(const test::Cube& cube, int64_t y, int64_t x) {
    Vector v;
    for (int b = 0; b < cube.shape.bands; ++b)
        v.push_back(cube.at(b, y, x));
    return v;
}

TEST(Unmix, EndsWithinATile) {
    const Endmembers e = spectra(4, 9, 3);
    for (const Method method : methods)
        EXPECT_TRUE(
            test::ends_within_its_tile(mixtures(e, 11, 3, 2), *unmix::make_unmixing(e, {method, true})));
    unmix::Classes classes;
    classes.names = {"a", "b"};
    classes.members = {{0, 1}, {2, 3}};
    unmix::DrawOptions options;
    options.draws = 3;
    EXPECT_TRUE(test::ends_within_its_tile(mixtures(e, 11, 3, 2), *unmix::make_draws(e, classes, options)));
}

TEST(Unmix, FindsTheMinimiserThatTryingEverySetFinds) {
    for (int p : {1, 2, 3, 6}) {
        const auto e = spectra(p, 30, static_cast<uint32_t>(10 + p));
        const auto cube = mixtures(e, 23, 11, static_cast<uint32_t>(20 + p));
        for (const Method method : methods) {
            const auto got = unmixed(cube, e, method);
            for (int64_t y = 0; y < 11; ++y)
                for (int64_t x = 0; x < 23; ++x) {
                    const Vector spectrum = pixel(cube, y, x), want = reference(e, method, spectrum);
                    for (int k = 0; k < p; ++k)
                        ASSERT_NEAR(got.abundances.cube.at(k, y, x),
                                    static_cast<double>(want[static_cast<size_t>(k)]), 1e-5)
                            << p << " " << static_cast<int>(method) << " " << y << " " << x;
                    const auto rmse = static_cast<double>(
                        std::sqrt(error_of(e, spectrum, want) / static_cast<long double>(e.bands())));
                    ASSERT_NEAR(got.rmse.cube.at(0, y, x), rmse, 1e-5 * rmse + 1e-6 * 2000);
                }
        }
    }
}

TEST(Unmix, ManyEndmembersMeetTheConditionsOfOptimality) {
    const auto e = spectra(25, 60, 3);
    const auto cube = mixtures(e, 40, 9, 4);
    double longest = 0;
    for (const auto& s : e.spectra) {
        double squared = 0;
        for (double v : s)
            squared += v * v;
        longest = std::max(longest, std::sqrt(squared));
    }
    for (const Method method : {Method::nnls, Method::fcls}) {
        const auto got = unmixed(cube, e, method);
        int zeros = 0;
        for (int64_t y = 0; y < 9; ++y)
            for (int64_t x = 0; x < 40; ++x) {
                const Vector spectrum = pixel(cube, y, x);
                Vector a, g;
                long double sum = 0, squared = 0;
                for (int k = 0; k < 25; ++k) {
                    a.push_back(got.abundances.cube.at(k, y, x));
                    ASSERT_GE(a.back(), 0);
                    zeros += a.back() == 0;
                    sum += a.back();
                }
                if (method == Method::fcls) {
                    ASSERT_NEAR(static_cast<double>(sum), 1, 1e-6);
                }
                for (const auto v : spectrum)
                    squared += v * v;
                for (const auto& s : e.spectra) {
                    long double v = 0;
                    for (size_t b = 0; b < spectrum.size(); ++b) {
                        long double left = spectrum[b];
                        for (size_t k = 0; k < a.size(); ++k)
                            left -= a[k] * static_cast<long double>(e.spectra[k][b]);
                        v += static_cast<long double>(s[b]) * left;
                    }
                    g.push_back(v);
                }
                long double mean = 0;
                int passive = 0;
                for (size_t k = 0; k < a.size(); ++k)
                    if (a[k] > 0 && method == Method::fcls) {
                        mean += g[k];
                        ++passive;
                    }
                if (passive > 0) mean /= passive;
                // Abundances are rounded to single precision, which changes the gradient by this amount.
                const double allowed =
                    2e-7 * longest * (std::sqrt(static_cast<double>(squared)) + 25 * longest);
                for (size_t k = 0; k < a.size(); ++k) {
                    ASSERT_LE(static_cast<double>(g[k] - mean), allowed);
                    if (a[k] > 0) {
                        ASSERT_GE(static_cast<double>(g[k] - mean), -allowed);
                    }
                }
            }
        EXPECT_GT(zeros, 40 * 9 * 5) << "the constraints were of no account";
    }
}

TEST(Unmix, NearlyEqualEndmembersKeepTheirAccuracy) {
    const auto e = spectra(4, 40, 7, 0.998);
    EXPECT_LT(unmix::check_endmembers(e, Method::fcls).distance, 2e-3);
    const auto cube = mixtures(e, 15, 8, 8);
    for (const Method method : methods) {
        const auto got = unmixed(cube, e, method);
        for (int64_t y = 0; y < 8; ++y)
            for (int64_t x = 0; x < 15; ++x) {
                const Vector want = reference(e, method, pixel(cube, y, x));
                for (int k = 0; k < 4; ++k) {
                    const auto w = static_cast<double>(want[static_cast<size_t>(k)]);
                    ASSERT_NEAR(got.abundances.cube.at(k, y, x), w, 1e-5 * std::max(1.0, std::fabs(w)));
                }
            }
    }
}

TEST(Unmix, PureAndMixedPixelsComeBack) {
    const auto e = spectra(3, 20, 5);
    test::Cube cube(4, 1, 20);
    const double parts[4][3] = {{1, 0, 0}, {0, 0, 1}, {0.25, 0.75, 0}, {0.5, 0.25, 0.25}};
    for (int x = 0; x < 4; ++x)
        for (int b = 0; b < 20; ++b) {
            double v = 0;
            for (size_t k = 0; k < 3; ++k)
                v += parts[x][k] * e.spectra[k][static_cast<size_t>(b)];
            cube.at(b, 0, x) = static_cast<float>(v);
        }
    for (const Method method : methods) {
        const auto got = unmixed(cube, e, method);
        for (int x = 0; x < 4; ++x) {
            for (int k = 0; k < 3; ++k)
                EXPECT_NEAR(got.abundances.cube.at(k, 0, x), parts[x][k], 1e-5);
            EXPECT_LT(got.rmse.cube.at(0, 0, x), 1e-3);
        }
    }
}

TEST(Unmix, ADarkEndmemberIsAllowedWhereTheSumIsOne) {
    auto e = spectra(2, 12, 6);
    e.names.emplace_back("shade");
    e.spectra.emplace_back(12, 0.0);
    test::Cube cube(1, 1, 12);
    for (int b = 0; b < 12; ++b)
        cube.at(b, 0, 0) = static_cast<float>(0.3 * e.spectra[0][static_cast<size_t>(b)]);
    for (const Method method : {Method::scls, Method::fcls}) {
        const auto got = unmixed(cube, e, method);
        EXPECT_NEAR(got.abundances.cube.at(0, 0, 0), 0.3, 1e-6);
        EXPECT_NEAR(got.abundances.cube.at(2, 0, 0), 0.7, 1e-6);
    }
    EXPECT_THROW(unmix::make_unmixing(e, {Method::ucls}), Error);
    EXPECT_THROW(unmix::make_unmixing(e, {Method::nnls}), Error);
}

TEST(Unmix, InvalidPixelsStayWithoutAValue) {
    const auto e = spectra(3, 10, 9);
    auto cube = mixtures(e, 9, 3, 9);
    test::make_invalid(cube, 0, 0, 4);
    test::make_invalid(cube, 1, 5, 0, std::numeric_limits<float>::infinity());
    for (int b = 0; b < 10; ++b)
        cube.at(b, 2, 8) = 0;
    const auto got = unmixed(cube, e, Method::fcls);
    EXPECT_EQ(got.valid, 24);
    EXPECT_EQ(got.invalid, 3);
    for (int64_t y = 0; y < 3; ++y)
        for (int64_t x = 0; x < 9; ++x) {
            const bool hole = (y == 0 && x == 0) || (y == 1 && x == 5) || (y == 2 && x == 8);
            for (int k = 0; k < 3; ++k)
                EXPECT_EQ(std::isnan(got.abundances.cube.at(k, y, x)), hole);
            EXPECT_EQ(std::isnan(got.rmse.cube.at(0, y, x)), hole);
        }
}

TEST(Unmix, TilesAndThreadsChangeNoBit) {
    const auto e = spectra(7, 33, 11);
    auto cube = mixtures(e, 301, 23, 12);
    test::make_invalid(cube, 7, 130, 3);
    for (const Method method : methods) {
        const auto whole = unmixed(cube, e, method);
        for (const auto& [samples, lines, lanes] :
             {std::array<int, 3>{17, 5, 3}, {301, 1, 2}, {129, 23, 4}, {1, 23, 2}}) {
            stream::PassOptions pass;
            pass.tile_samples = samples;
            pass.tile_lines = lines;
            pass.lanes = lanes;
            const auto cut = unmixed(cube, e, method, pass);
            EXPECT_TRUE(test::identical(whole.abundances.cube, cut.abundances.cube)) << samples;
            EXPECT_TRUE(test::identical(whole.rmse.cube, cut.rmse.cube)) << samples;
        }
    }
}

std::string complaint(const Endmembers& e, Method method) {
    try {
        unmix::check_endmembers(e, method);
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

TEST(Unmix, EndmembersThatCannotBeToldApartAreRefused) {
    auto twice = spectra(3, 20, 13);
    twice.spectra[2] = twice.spectra[0];
    auto mixed = spectra(3, 20, 14);
    for (size_t b = 0; b < 20; ++b)
        mixed.spectra[1][b] = 0.4 * mixed.spectra[0][b] + 0.6 * mixed.spectra[2][b];
    auto brighter = spectra(2, 20, 15);
    for (size_t b = 0; b < 20; ++b)
        brighter.spectra[1][b] = 2 * brighter.spectra[0][b];
    auto damaged = spectra(2, 20, 16);
    damaged.spectra[1][3] = std::nan("");
    for (const Method method : methods) {
        EXPECT_NE(complaint(twice, method).find("'m3'"), std::string::npos) << complaint(twice, method);
        EXPECT_NE(complaint(mixed, method).find("mixture"), std::string::npos) << complaint(mixed, method);
        EXPECT_NE(complaint(damaged, method).find("'m2'"), std::string::npos);
        EXPECT_EQ(complaint(brighter, method).empty(), unmix::sums_to_one(method))
            << "the sum tells brightness apart, and nothing else does";
        EXPECT_NE(complaint({}, method), "");
    }
    // Scaled spectra at a known angle: the sine is 1e-4.
    Endmembers near;
    near.names = {"a", "b"};
    near.spectra = {{1, 0, 0}, {std::cos(1e-4), std::sin(1e-4), 0}};
    EXPECT_NEAR(unmix::check_endmembers(near, Method::ucls).distance, std::sin(1e-4), 1e-10);
    const auto many = spectra(4, 3, 17);
    EXPECT_NE(complaint(many, Method::ucls).find("at most 3"), std::string::npos);
    EXPECT_EQ(complaint(many, Method::fcls), "") << "one more with the sum";
}

} // namespace
