// SPDX-License-Identifier: MIT
// Each transform against its definition in long double. The pass has equal bits for every tiling and thread
// count, and no result where none exists.
#include "smooth/smooth.h"

#include "stream/pipeline.h"
#include "support/memory_cube.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

namespace hsi::test {
namespace {

using smooth::Method;
using smooth::Norm;
using smooth::Transform;
using Long = std::vector<long double>;

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

long double mean_of(const Long& v) {
    return std::accumulate(v.begin(), v.end(), 0.0L) / static_cast<long double>(v.size());
}

/// Returns a and b of y = a + b x.
std::pair<long double, long double> line_of(const Long& x, const Long& y) {
    const long double mx = mean_of(x), my = mean_of(y);
    long double xy = 0, xx = 0;
    for (size_t k = 0; k < x.size(); ++k) {
        xy += (x[k] - mx) * (y[k] - my);
        xx += (x[k] - mx) * (x[k] - mx);
    }
    return {my - xy / xx * mx, xy / xx};
}

/// Removes a polynomial by the normal equations of powers, with elimination.
Long without_polynomial(const Long& x, Long y, int degree) {
    const auto n = static_cast<size_t>(degree) + 1;
    std::vector<Long> a(n, Long(n + 1));
    const auto power = [&](size_t k, size_t j) {
        return std::pow((x[k] - 680) / 180, static_cast<long double>(j));
    };
    for (size_t k = 0; k < x.size(); ++k)
        for (size_t i = 0; i < n; ++i) {
            for (size_t j = 0; j < n; ++j)
                a[i][j] += power(k, i) * power(k, j);
            a[i][n] += power(k, i) * y[k];
        }
    for (size_t p = 0; p < n; ++p)
        for (size_t i = 0; i < n; ++i) {
            const long double f = a[i][p] / a[p][p];
            for (size_t j = p; j <= n && i != p; ++j)
                a[i][j] -= f * a[p][j];
        }
    for (size_t k = 0; k < x.size(); ++k)
        for (size_t i = 0; i < n; ++i)
            y[k] -= a[i][n] / a[i][i] * power(k, i);
    return y;
}

long double divisor(const Transform& t, const Long& x) {
    long double sum = 0;
    for (size_t b = 0; b < x.size(); ++b) {
        if (t.norm == Norm::area && b > 0 && t.wavelengths[b] - t.wavelengths[b - 1] < 30)
            sum += (x[b] + x[b - 1]) / 2 * (t.wavelengths[b] - t.wavelengths[b - 1]);
        if (t.norm == Norm::l2) sum += x[b] * x[b];
    }
    if (t.norm == Norm::max) return *std::max_element(x.begin(), x.end());
    if (t.norm == Norm::mean) return mean_of(x);
    return t.norm == Norm::l2 ? std::sqrt(sum) : sum;
}

Long reference(const Transform& t, const Long& x) {
    const size_t n = x.size();
    const Long r(t.reference.begin(), t.reference.end()), nm(t.wavelengths.begin(), t.wavelengths.end());
    const long double mean = mean_of(x);
    Long y(n);
    long double variance = 0, logarithms = 0;
    for (const long double v : x) {
        variance += (v - mean) * (v - mean) / static_cast<long double>(n - 1);
        logarithms += std::log(v) / static_cast<long double>(n);
    }
    for (size_t b = 0; b < n; ++b) {
        if (t.method == Method::absorbance) y[b] = -std::log10(t.factor * x[b]);
        if (t.method == Method::snv) y[b] = (x[b] - mean) / std::sqrt(variance);
        if (t.method == Method::msc) y[b] = (x[b] - line_of(r, x).first) / line_of(r, x).second;
        if (t.method == Method::normalise) y[b] = x[b] / divisor(t, x);
        if (t.method == Method::gain) y[b] = t.gain[b] * x[b] + t.offset[b];
        if (t.method == Method::logarithm) y[b] = std::log(x[b]);
        if (t.method == Method::log_residual)
            y[b] = std::exp(std::log(x[b]) - logarithms - r[b] + mean_of(r));
    }
    return t.method == Method::detrend ? without_polynomial(nm, x, t.degree) : y;
}

constexpr size_t bands = 30;

Transform of(Method method, Norm norm = Norm::area, int degree = 2) {
    Transform t;
    t.method = method;
    t.norm = norm;
    t.degree = degree;
    t.factor = 1e-4;
    for (size_t b = 0; b < bands; ++b) {
        const auto i = static_cast<double>(b);
        t.wavelengths.push_back(500 + 8 * i + std::fmod(i, 3) + (b > 11 ? 100 : 0));
        t.reference.push_back(3 + std::sin(i / 4));
        t.gain.push_back(0.001 * (1 + i));
        t.offset.push_back(0.1 - i / 50);
    }
    return t;
}

std::vector<double> spectrum(int seed) {
    std::vector<double> x;
    for (size_t b = 0; b < bands; ++b)
        x.push_back(2000 + 900 * std::sin(static_cast<double>(b) / 4 + 0.3 * std::sin(seed)) +
                    50 * std::cos(static_cast<double>(b) * 2.3 * (1 + seed)));
    return x;
}

std::vector<Transform> all_transforms() {
    std::vector<Transform> all{of(Method::absorbance), of(Method::snv),       of(Method::msc),
                               of(Method::gain),       of(Method::logarithm), of(Method::log_residual)};
    for (const Norm norm : {Norm::area, Norm::max, Norm::l2, Norm::mean})
        all.push_back(of(Method::normalise, norm));
    for (int degree = 0; degree <= 5; ++degree)
        all.push_back(of(Method::detrend, Norm::area, degree));
    return all;
}

TEST(Transform, AgreesWithItsDefinition) {
    for (const Transform& t : all_transforms())
        for (int seed = 0; seed < 5; ++seed) {
            const auto x = spectrum(seed);
            const auto got = smooth::transformed({x}, t).front();
            const auto expected = reference(t, Long(x.begin(), x.end()));
            long double greatest = 0;
            for (const long double v : expected)
                greatest = std::max(greatest, std::fabs(v));
            for (size_t b = 0; b < bands; ++b)
                EXPECT_NEAR(got[b], static_cast<double>(expected[b]), 1e-11 * static_cast<double>(greatest))
                    << name_of(t.method) << " " << b;
        }
}

TEST(Transform, HasNoResultWhereNoneExists) {
    auto x = spectrum(0), zero = x, falling = x;
    zero[3] = 0;
    for (size_t b = 0; b < bands; ++b)
        falling[b] = 10 - of(Method::msc).reference[b];
    const std::vector<double> flat(bands, 5), negative(bands, -5);
    const struct {
        Transform t;
        std::vector<double> x;
    } rows[] = {{of(Method::absorbance), zero},
                {of(Method::absorbance), negative},
                {of(Method::logarithm), zero},
                {of(Method::log_residual), zero},
                {of(Method::snv), flat},
                {of(Method::msc), falling},
                {of(Method::msc), flat},
                {of(Method::normalise, Norm::area), negative},
                {of(Method::normalise, Norm::max), negative},
                {of(Method::normalise, Norm::mean), negative},
                {of(Method::normalise, Norm::l2), std::vector<double>(bands)},
                {of(Method::gain), std::vector<double>(bands, 1e42)}};
    for (const auto& row : rows) {
        const auto got = smooth::transformed({row.x}, row.t);
        for (const double v : got.front())
            EXPECT_TRUE(std::isnan(v)) << name_of(row.t.method);
    }
}

/// The result of a spectrum with holes is that of its valid bands.
TEST(Transform, LeavesOutHolesOfSpectra) {
    for (Transform t : all_transforms()) {
        auto holes = spectrum(1);
        holes[0] = holes[7] = unknown;
        auto fewer = holes;
        Transform of_fewer = t;
        for (auto* list :
             {&fewer, &of_fewer.wavelengths, &of_fewer.reference, &of_fewer.gain, &of_fewer.offset})
            for (const ptrdiff_t b : {7, 0})
                list->erase(list->begin() + b);
        auto got = smooth::transformed({holes}, t).front();
        EXPECT_TRUE(std::isnan(got[0]) && std::isnan(got[7]));
        for (const ptrdiff_t b : {7, 0})
            got.erase(got.begin() + b);
        EXPECT_EQ(got, smooth::transformed({fewer}, of_fewer).front()) << name_of(t.method);
    }
}

TEST(Transform, SumsLeaveOutShortSegments) {
    Transform t = of(Method::savgol);
    t.wavelengths.back() = 3000;
    t.derivative = 1;
    EXPECT_EQ(smooth::Transformer(bands, t).outputs(), bands - 1);
    const auto got = smooth::transformed({t.wavelengths}, t).front(); // the derivative of x is 1
    for (size_t b = 0; b + 1 < bands; ++b)
        EXPECT_NEAR(got[b], 1, 1e-9);
    EXPECT_TRUE(std::isnan(got.back()));
}

TEST(Transform, PassHasTheSameBitsForEveryTiling) {
    Cube scene(150, 9, static_cast<int>(bands));
    for (int64_t line = 0; line < 9; ++line)
        for (int64_t sample = 0; sample < 150; ++sample) {
            const auto x = spectrum(static_cast<int>(line * 150 + sample));
            for (size_t b = 0; b < bands; ++b)
                scene.at(static_cast<int>(b), line, sample) = static_cast<float>(x[b]);
        }
    make_invalid(scene, 1, 1, 2);
    scene.at(4, 2, 70) = -3; // has no logarithm
    std::vector<Transform> all = all_transforms();
    all.push_back(of(Method::whittaker));
    all.push_back(of(Method::savgol));
    for (const Transform& t : all) {
        const auto made = [&](int lanes, int64_t samples, int64_t lines) {
            MemorySource source(scene);
            MemorySink sink(150, 9, static_cast<int>(bands));
            stream::PassOptions pass;
            pass.lanes = lanes;
            pass.tile_samples = samples;
            pass.tile_lines = lines;
            const auto operation = smooth::make_transform(static_cast<int>(bands), t);
            stream::run_pass(source, *operation, {&sink}, pass);
            EXPECT_EQ(operation->valid(), 150 * 9 - 1);
            EXPECT_EQ(operation->invalid(), 1);
            const bool logarithms = t.method == Method::absorbance || t.method == Method::logarithm ||
                                    t.method == Method::log_residual;
            EXPECT_EQ(operation->undefined(), logarithms ? 1 : 0) << name_of(t.method);
            return sink.cube;
        };
        const auto whole = made(1, 150, 9);
        for (const auto& [lanes, samples, lines] : {std::tuple(1, 7, 3), std::tuple(3, 65, 1)}) {
            const auto tiled = made(lanes, samples, lines);
            EXPECT_EQ(
                0, std::memcmp(whole.values.data(), tiled.values.data(), whole.values.size() * sizeof(float)))
                << name_of(t.method);
        }
        std::vector<double> one;
        for (int b = 0; b < static_cast<int>(bands); ++b)
            one.push_back(static_cast<double>(scene.at(b, 5, 100)));
        const auto expected = smooth::transformed({one}, t).front();
        for (size_t b = 0; b < bands; ++b)
            EXPECT_EQ(whole.at(static_cast<int>(b), 5, 100), static_cast<float>(expected[b]));
        EXPECT_TRUE(std::isnan(whole.at(0, 1, 1)));
    }
}

} // namespace
} // namespace hsi::test
