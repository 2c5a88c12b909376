// SPDX-License-Identifier: MIT
#include "core/valid_pixel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace hsi {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float smallest = std::numeric_limits<float>::denorm_min(); // 1.4e-45
constexpr float largest = std::numeric_limits<float>::max();

using Pixel = std::vector<float>;

/// Implements the rule's text on the bits of values: an exponent of ones is NaN or an infinity, and a value
/// whose bits are all zero except the sign is zero.
bool reference(const Pixel& values, bool zero_is_invalid) {
    bool finite = true, nonzero = false;
    for (const float v : values) {
        uint32_t bits = 0;
        std::memcpy(&bits, &v, sizeof bits);
        finite = finite && (bits >> 23 & 0xff) != 0xff;
        nonzero = nonzero || (bits & 0x7fffffff) != 0;
    }
    return finite && (nonzero || !zero_is_invalid);
}

std::string text(const Pixel& values) {
    std::string all;
    for (const float v : values)
        all += std::to_string(static_cast<double>(v)) + " ";
    return all;
}

/// Tests pixels with an equal number of bands by all functions, and compares the results with the right
/// answers.
void judge(const std::vector<Pixel>& pixels, bool zero_is_invalid) {
    const size_t count = pixels.size(), bands = pixels.front().size();
    PixelRow row, one_by_one;
    row.start(count);
    one_by_one.start(count);
    std::vector<float> cube(bands * count), band(count);
    for (size_t b = 0; b < bands; ++b) {
        for (size_t i = 0; i < count; ++i) {
            band[i] = cube[b * count + i] = pixels[i][b];
            one_by_one.look(i, band[i]);
        }
        row.look(band.data());
    }
    const int64_t in_row = row.judge(zero_is_invalid), by_one = one_by_one.judge(zero_is_invalid);
    int64_t valid = 0;
    const auto width = static_cast<int>(bands);
    const auto stride = static_cast<ptrdiff_t>(count);
    for (size_t i = 0; i < count; ++i) {
        const Pixel& x = pixels[i];
        const bool right = reference(x, zero_is_invalid);
        valid += right;
        SCOPED_TRACE(text(x) + (zero_is_invalid ? "zero is invalid" : "zero is valid"));
        EXPECT_EQ(row.is_valid(i), right);
        EXPECT_EQ(one_by_one.is_valid(i), right);
        EXPECT_EQ(is_valid_pixel(x.data(), width, 1, zero_is_invalid), right);
        EXPECT_EQ(is_valid_pixel(cube.data() + i, width, stride, zero_is_invalid), right);
        const std::vector<double> wide(x.begin(), x.end());
        EXPECT_EQ(is_valid_pixel(wide.data(), width, 1, zero_is_invalid), right);
        double squares = 0, magnitudes = 0;
        float magnitude = 0, greatest = 0;
        for (const float v : x) {
            squares += static_cast<double>(v) * static_cast<double>(v);
            magnitudes += std::fabs(static_cast<double>(v));
            magnitude += std::fabs(v);
            greatest = std::fmax(greatest, std::fabs(v));
        }
        EXPECT_EQ(is_valid_sum(squares, zero_is_invalid), right);
        EXPECT_EQ(is_valid_sum(magnitudes, zero_is_invalid), right);
        if (zero_is_invalid) {
            EXPECT_EQ(is_valid_sum(magnitude, cube.data() + i, width, stride), right);
        }
        if (right) {
            EXPECT_EQ(row.greatest(i), greatest);
        }
    }
    EXPECT_EQ(in_row, valid);
    EXPECT_EQ(by_one, valid);
}

void judge(const std::vector<Pixel>& pixels) {
    judge(pixels, true);
    judge(pixels, false);
}

TEST(ValidPixel, IsFiniteAndNotAllZero) {
    const auto valid = [](const Pixel& x) { return is_valid_pixel(x.data(), static_cast<int>(x.size()), 1); };
    EXPECT_TRUE(valid({1, 2, 3}));
    EXPECT_TRUE(valid({0, -2, 0}));
    EXPECT_FALSE(valid({0, 0, 0}));
    EXPECT_FALSE(valid({-0.0f, 0, -0.0f}));
    EXPECT_FALSE(valid({1, nan, 3}));
    EXPECT_FALSE(valid({infinity, 2, 3}));
    EXPECT_FALSE(valid({1, 2, -infinity}));
    EXPECT_FALSE(valid({infinity, -infinity, 3}));
    EXPECT_TRUE(valid({1e-40f, 0, 0})) << "its square is no float";
    EXPECT_TRUE(valid({0, 0, smallest}));
    EXPECT_TRUE(valid({largest, -largest, largest})) << "the sum of its magnitudes is no float";
}

TEST(ValidPixel, HasFormsThatAgree) {
    judge({{1, 2, 3},
           {0, -2, 0},
           {0, 0, 0},
           {-0.0f, 0, -0.0f},
           {nan, 2, 3},
           {0, nan, 0},
           {0, 0, nan},
           {infinity, 0, 0},
           {-infinity, 2, 3},
           {infinity, -infinity, 1},
           {nan, infinity, 0},
           {1e-23f, 0, 0},
           {1e-40f, -1e-40f, 0},
           {0, 0, smallest},
           {-smallest, smallest, 0},
           {largest, largest, largest},
           {largest, -largest, infinity},
           {largest, largest, nan},
           {largest, 0, -0.0f}});
}

TEST(ValidPixel, OfOneBand) {
    judge({{1}, {-1}, {0}, {-0.0f}, {smallest}, {1e-40f}, {largest}, {infinity}, {nan}});
}

/// Uses random bits with many zeros and invalid values, so that every exponent occurs.
TEST(ValidPixel, OfAnyBits) {
    std::mt19937 random(1);
    for (const size_t bands : {1, 2, 7, 64}) {
        std::vector<Pixel> pixels(1000, Pixel(bands));
        for (Pixel& x : pixels) {
            const uint32_t kind = random() % 4;
            for (float& v : x) {
                auto bits = static_cast<uint32_t>(random());
                if (kind == 1) bits &= 0x807fffff;                             // denormal
                if (kind == 2) bits = random() % 8 ? bits & 0x80000000 : bits; // nearly all zero
                if (kind == 3 && (bits >> 23 & 0xff) == 0xff) bits = 0;        // finite throughout
                std::memcpy(&v, &bits, sizeof v);
            }
        }
        judge(pixels);
    }
}

/// Uses doubles whose parts do not fit into a float.
TEST(ValidPixel, OfDoubles) {
    const auto valid = [](const std::vector<double>& x, bool zero_is_invalid = true) {
        return is_valid_pixel(x.data(), static_cast<int>(x.size()), 1, zero_is_invalid);
    };
    EXPECT_TRUE(valid({9007199254740993.0, 0}));
    EXPECT_TRUE(valid({0, 3e38 + 1e30}));
    EXPECT_FALSE(valid({0, -0.0}));
    EXPECT_TRUE(valid({0, -0.0}, false));
    EXPECT_FALSE(valid({1, std::numeric_limits<double>::quiet_NaN()}, false));
    EXPECT_FALSE(valid({1, std::numeric_limits<double>::infinity()}, false));
}

TEST(ValidPixel, OfNoBandsIsZeroThroughout) {
    EXPECT_FALSE(PixelLook<float>().is_valid());
    EXPECT_TRUE(PixelLook<float>().is_valid(false));
}

TEST(ValidPixel, RowStartsAnew) {
    PixelRow row;
    row.start(3);
    row.look(std::vector<float>{nan, 5, 0}.data());
    EXPECT_EQ(row.judge(), 1);
    row.start(2);
    row.look(std::vector<float>{2, 0}.data());
    EXPECT_EQ(row.judge(), 1);
    EXPECT_TRUE(row.is_valid(0));
    EXPECT_FALSE(row.is_valid(1));
    EXPECT_EQ(row.greatest(0), 2.0f);
}

} // namespace
} // namespace hsi
