// SPDX-License-Identifier: MIT
// Computes the moments of a scene by their definition. Also makes scenes with holes for tests.
#pragma once

#include "stream/statistics_scan.h"
#include "support/memory_cube.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace hsi::test {

/// Computes the moments by their definition, in long double.
inline stream::SceneStatistics moment_reference(const Cube& cube) {
    const auto n = static_cast<size_t>(cube.shape.bands);
    const auto pixels = static_cast<size_t>(cube.shape.pixels());
    const auto value = [&](size_t b, size_t p) {
        return static_cast<long double>(cube.values[b * pixels + p]);
    };
    stream::SceneStatistics r;
    std::vector<char> valid(pixels);
    for (size_t p = 0; p < pixels; ++p) {
        bool finite = true, zero = true;
        for (size_t b = 0; b < n; ++b) {
            finite = finite && std::isfinite(cube.values[b * pixels + p]);
            zero = zero && value(b, p) == 0;
        }
        valid[p] = finite && !zero;
        ++(valid[p] ? r.valid_pixels : r.invalid_pixels);
    }
    std::vector<long double> mean(n, 0), products(n * n, 0), differences(n * n, 0);
    for (size_t p = 0; p < pixels; ++p)
        for (size_t b = 0; b < n && valid[p]; ++b)
            mean[b] += value(b, p) / static_cast<long double>(r.valid_pixels);
    for (size_t p = 0; p < pixels; ++p) {
        if (!valid[p]) continue;
        const bool pair = (p + 1) % static_cast<size_t>(cube.shape.samples) != 0 && valid[p + 1];
        r.pairs += pair;
        for (size_t a = 0; a < n; ++a)
            for (size_t b = 0; b < n; ++b) {
                products[a * n + b] += (value(a, p) - mean[a]) * (value(b, p) - mean[b]);
                if (pair)
                    differences[a * n + b] +=
                        (value(a, p + 1) - value(a, p)) * (value(b, p + 1) - value(b, p));
            }
    }
    for (size_t b = 0; b < n; ++b)
        r.mean.push_back(static_cast<double>(mean[b]));
    for (size_t i = 0; i < n * n; ++i) {
        r.covariance.push_back(static_cast<double>(products[i] / static_cast<long double>(r.valid_pixels)));
        r.differences.push_back(static_cast<double>(differences[i] / static_cast<long double>(r.pairs)));
    }
    return r;
}

inline void expect_matrix(const std::vector<double>& got, const std::vector<double>& want, size_t n,
                          double tolerance) {
    ASSERT_EQ(got.size(), n * n);
    for (size_t a = 0; a < n; ++a)
        for (size_t b = 0; b < n; ++b)
            EXPECT_NEAR(got[a * n + b], want[a * n + b],
                        tolerance * std::sqrt(want[a * n + a] * want[b * n + b]))
                << a << "," << b;
}

inline void expect_close(const stream::SceneStatistics& got, const stream::SceneStatistics& want,
                         double tolerance) {
    const size_t n = want.mean.size();
    EXPECT_EQ(got.valid_pixels, want.valid_pixels);
    EXPECT_EQ(got.invalid_pixels, want.invalid_pixels);
    EXPECT_EQ(got.pairs, want.pairs);
    for (size_t b = 0; b < n; ++b)
        EXPECT_NEAR(got.mean[b], want.mean[b], 1e-15 * std::fabs(want.mean[b]));
    expect_matrix(got.covariance, want.covariance, n, tolerance);
    if (want.pairs > 0) expect_matrix(got.differences, want.differences, n, tolerance);
}

/// Adds holes, infinities and zeros to a cube, some of them next to the borders of blocks.
inline void spoil(Cube& cube) {
    const int64_t samples = cube.shape.samples, lines = cube.shape.lines;
    for (int64_t l = lines / 4; l < lines / 2; ++l)
        for (int64_t s = samples / 5; s < samples / 2; s += 1 + l % 3)
            make_invalid(cube, l, s, static_cast<int>((l + s) % cube.shape.bands));
    make_invalid(cube, lines - 1, samples - 1, 1, std::numeric_limits<float>::infinity());
    for (int b = 0; b < cube.shape.bands; ++b)
        cube.at(b, lines - 2, samples / 2) = 0;
    if (samples > 1024) {
        make_invalid(cube, 3, 1023, 0);
        make_invalid(cube, 5, 1024, 2);
    }
}

} // namespace hsi::test
