// SPDX-License-Identifier: MIT
#include "unmix/draws.h"

#include "math/philox.h"
#include "support/simd_targets.h"
#include "unmix/draws_simd.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace hsi::test {
namespace {

using Subset = std::vector<std::vector<int>>;

TEST(Draws, ClassesByName) {
    const auto classes = unmix::classes_of(
        {"soil 3 17", "1-tree", "soil 3", "soil", "water_2", "a:1#2", "Soil,4", "12", "b 1 2 3"});
    EXPECT_EQ(classes.names, (std::vector<std::string>{"soil", "1-tree", "water", "a", "Soil", "12", "b 1"}));
    EXPECT_EQ(classes.members, (Subset{{0, 2, 3}, {1}, {4}, {5}, {6}, {7}, {8}}));
}

/// Compares with the documented table.
TEST(Draws, KnownSubsets) {
    unmix::Classes classes;
    classes.names = {"a", "b", "c"};
    classes.members = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {10, 11}, {12}};
    unmix::DrawOptions options;
    options.per_class = 2;
    EXPECT_EQ(unmix::drawn(classes, options, 0), (Subset{{8, 9}, {10, 11}, {12}}));
    EXPECT_EQ(unmix::drawn(classes, options, 1), (Subset{{0, 3}, {10, 11}, {12}}));
    EXPECT_EQ(unmix::drawn(classes, options, 2), (Subset{{9, 5}, {10, 11}, {12}}));
}

/// Noise and products of a strip equal those of single numbers, bit by bit, in every instruction set.
TEST(Draws, KernelsAreOnePixelAfterAnotherInEveryInstructionSet) {
    constexpr int bands = 23, spectra = 7;
    constexpr size_t n = unmix::draw_pixels;
    constexpr uint64_t first = (uint64_t{3} << 32) - 5, seed = 0x123456789ABCDEF;
    constexpr uint32_t draw = 11;
    std::vector<double> values(bands * n), sigma(bands * n), library(spectra * bands);
    for (size_t i = 0; i < values.size(); ++i) {
        values[i] = std::sin(static_cast<double>(i)) * 1000;
        sigma[i] = static_cast<double>(i % 13);
    }
    for (size_t i = 0; i < library.size(); ++i)
        library[i] = std::cos(static_cast<double>(i)) * 300;
    std::vector<const double*> rows;
    for (size_t k = 0; k < spectra; ++k)
        rows.push_back(library.data() + k * bands);
    std::vector<double> noisy(bands * n), squared(n), products(spectra * n);
    for (size_t i = 0; i < n; ++i) {
        const uint64_t pixel = first + i;
        for (size_t b = 0; b < bands; ++b) {
            const auto z = math::normal_numbers(
                math::philox({{static_cast<uint32_t>(b / 4), (1u << 24) + draw, static_cast<uint32_t>(pixel),
                               static_cast<uint32_t>(pixel >> 32)}},
                             seed));
            const double x = values[b * n + i] + sigma[b * n + i] * z[b % 4];
            noisy[b * n + i] = x;
            squared[i] += x * x;
            for (size_t k = 0; k < spectra; ++k)
                products[k * n + i] += rows[k][b] * x;
        }
    }
    for_every_simd([&](const std::string& name) {
        std::vector<double> x(bands * n), sums(n), found(spectra * n);
        const auto& kernels = unmix::draw_kernels();
        kernels.add_noise(values.data(), sigma.data(), bands, draw, seed, first, x.data(), sums.data());
        kernels.multiply(x.data(), bands, rows.data(), spectra, found.data());
        EXPECT_EQ(x, noisy) << name;
        EXPECT_EQ(sums, squared) << name;
        EXPECT_EQ(found, products) << name;
    });
}

} // namespace
} // namespace hsi::test
