// SPDX-License-Identifier: MIT
#include "raster/sample_convert.h"
#include "raster/store_convert.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace hsi::raster {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
const GDALDataType all_types[] = {GDT_Byte,  GDT_UInt16, GDT_Int16,   GDT_UInt32, GDT_Int32,
                                  GDT_Int64, GDT_UInt64, GDT_Float32, GDT_Float64};

NodataValue real(double v) {
    NodataValue n;
    n.real = v;
    return n;
}

TEST(Convert, EqualsGdalForRandomBitsOfEveryType) {
    std::mt19937 random(7);
    for (const GDALDataType type : all_types) {
        const auto size = static_cast<size_t>(GDALGetDataTypeSizeBytes(type));
        constexpr size_t count = 1003;
        for (const size_t stride : {size, size + 5}) {
            std::vector<unsigned char> bytes(count * stride + 1);
            for (auto& b : bytes)
                b = static_cast<unsigned char>(random());
            // Byte by byte through a copy, since GDAL wants alignment that the file need not have.
            std::vector<double> packed(count);
            for (size_t i = 0; i < count; ++i)
                std::memcpy(reinterpret_cast<char*>(packed.data()) + i * size, bytes.data() + 1 + i * stride,
                            size);
            std::vector<float> expected(count), got(count), swapped(count);
            GDALCopyWords64(packed.data(), type, static_cast<int>(size), expected.data(), GDT_Float32, 4,
                            count);
            to_floats(bytes.data() + 1, static_cast<ptrdiff_t>(stride), type, false, {}, got.data(), count);
            for (size_t i = 0; i < count; ++i)
                ASSERT_TRUE(got[i] == expected[i] || (std::isnan(got[i]) && std::isnan(expected[i])))
                    << GDALGetDataTypeName(type) << " " << got[i] << " " << expected[i];
            swap_bytes(packed.data(), type, count);
            to_floats(packed.data(), static_cast<ptrdiff_t>(size), type, true, {}, swapped.data(), count);
            for (size_t i = 0; i < count; ++i)
                ASSERT_TRUE(swapped[i] == expected[i] || (std::isnan(swapped[i]) && std::isnan(expected[i])));
        }
    }
}

TEST(Convert, NodataIsComparedInTheFilesType) {
    // Neighbours that one float stands for.
    const int32_t ints[] = {-99999999, -99999998, 100000000};
    float out[3];
    to_floats(ints, 4, GDT_Int32, false, match_in_type(real(-99999999), GDT_Int32), out, 3);
    EXPECT_TRUE(std::isnan(out[0]));
    EXPECT_EQ(out[1], -100000000.0f);
    EXPECT_EQ(out[2], 100000000.0f);
    const double doubles[] = {1e30, 1e30 * (1 + 1e-14), 0.1};
    to_floats(doubles, 8, GDT_Float64, false, match_in_type(real(1e30), GDT_Float64), out, 3);
    EXPECT_TRUE(std::isnan(out[0]));
    EXPECT_EQ(out[1], 1e30f);
    NodataValue whole;
    whole.kind = GDT_Int64;
    whole.whole = 9007199254740993; // 2^53 + 1: no double
    const int64_t longs[] = {9007199254740993, 9007199254740992, 0};
    to_floats(longs, 8, GDT_Int64, false, match_in_type(whole, GDT_Int64), out, 3);
    EXPECT_TRUE(std::isnan(out[0]));
    EXPECT_FALSE(std::isnan(out[1]));
}

TEST(Convert, NodataThatATypeCannotHoldMatchesNothing) {
    EXPECT_FALSE(match_in_type(real(-9999), GDT_Byte).active);
    EXPECT_FALSE(match_in_type(real(0.5), GDT_Int16).active);
    EXPECT_FALSE(match_in_type(real(4294967296.0), GDT_UInt32).active);
    EXPECT_TRUE(match_in_type(real(4294967295.0), GDT_UInt32).active);
    EXPECT_TRUE(match_in_type(real(-2147483648.0), GDT_Int32).active);
    EXPECT_FALSE(match_in_type(real(-2147483649.0), GDT_Int32).active);
    EXPECT_FALSE(match_in_type(real(9223372036854775808.0), GDT_Int64).active);
    EXPECT_FALSE(match_in_type(real(1e39), GDT_Float32).active);
    EXPECT_TRUE(match_in_type(real(-3.40282347e38), GDT_Float32).active);
    EXPECT_FALSE(match_in_type(real(std::nan("")), GDT_Float32).active);
}

TEST(Convert, TurningIsExactForEverySize) {
    for (const size_t bands : {1u, 3u, 4u, 15u, 16u, 17u, 37u})
        for (const size_t pixels : {1u, 3u, 4u, 7u, 50u}) {
            const size_t stride = bands + 2;
            std::vector<float> src(pixels * stride);
            for (size_t i = 0; i < src.size(); ++i)
                src[i] = static_cast<float>(i);
            std::vector<std::vector<float>> rows(bands, std::vector<float>(pixels + 1, -1.0f));
            std::vector<float*> pointers;
            for (auto& r : rows)
                pointers.push_back(r.data());
            pixels_to_rows(src.data(), stride, bands, pixels, pointers.data());
            for (size_t k = 0; k < bands; ++k) {
                for (size_t i = 0; i < pixels; ++i)
                    ASSERT_EQ(rows[k][i], src[i * stride + k]);
                ASSERT_EQ(rows[k][pixels], -1.0f);
            }
            std::vector<float> back(src.size(), -2.0f);
            rows_to_pixels(pointers.data(), bands, pixels, back.data(), stride);
            for (size_t i = 0; i < pixels; ++i)
                for (size_t k = 0; k < stride; ++k)
                    ASSERT_EQ(back[i * stride + k], k < bands ? src[i * stride + k] : -2.0f);
        }
}

TEST(Store, FloatsGetNodataForNanAndNeverByChance) {
    const StoreRule rule(GDT_Float32, real(-9999));
    float v[] = {1, nan, -9999, std::numeric_limits<float>::infinity()};
    rule.finish(v, 4);
    EXPECT_EQ(v[0], 1);
    EXPECT_EQ(v[1], -9999);
    EXPECT_EQ(v[2], std::nextafter(-9999.0f, 0.0f));
    EXPECT_TRUE(std::isinf(v[3]));
    float zero[] = {0, -0.0f, nan};
    StoreRule(GDT_Float32, real(0)).finish(zero, 3);
    EXPECT_GT(zero[0], 0);
    EXPECT_GT(zero[1], 0);
    EXPECT_EQ(zero[2], 0);
    float plain[] = {nan, 2};
    StoreRule(GDT_Float32, std::nullopt).finish(plain, 2);
    EXPECT_TRUE(std::isnan(plain[0]));
}

TEST(Store, IntegersRoundClampAndKeepExactNodata) {
    const float v[] = {1.5f, -1.5f, 70000, -70000, nan, 2.4f};
    int16_t out[6];
    StoreRule(GDT_Int16, real(-32768)).store(v, 6, out);
    const int16_t expected[] = {2, -2, 32767, -32767, -32768, 2};
    for (int i = 0; i < 6; ++i)
        EXPECT_EQ(out[i], expected[i]) << i;
    int32_t wide[6];
    StoreRule(GDT_Int32, real(-99999999)).store(v, 6, wide);
    EXPECT_EQ(wide[4], -99999999); // as a float it would be -100000000
    uint8_t bytes[6];
    StoreRule(GDT_Byte, std::nullopt).store(v, 6, bytes);
    EXPECT_EQ(bytes[4], 0);
    EXPECT_EQ(bytes[2], 255);
    const auto moved = [&](GDALDataType type, double nodata, auto sample) {
        const StoreRule rule(type, real(nodata)), copy = rule; // which count together
        decltype(sample) stored[6];
        rule.store(v, 6, stored);
        copy.store(v, 3, stored);
        EXPECT_EQ(stored[4], static_cast<decltype(sample)>(nodata));
        return std::pair<int64_t, double>(rule.moved(), rule.beside());
    };
    using Moved = std::pair<int64_t, double>;
    EXPECT_EQ(moved(GDT_Int16, 2, int16_t{}), (Moved{3, 1}));
    EXPECT_EQ(moved(GDT_Int16, -2, int16_t{}), (Moved{2, -1}));
    EXPECT_EQ(moved(GDT_Int16, -5, int16_t{}), (Moved{0, -4}));
    EXPECT_EQ(moved(GDT_Byte, 0, uint8_t{}), (Moved{3, 1}));
    EXPECT_EQ(moved(GDT_Byte, 255, uint8_t{}), (Moved{2, 254}));
    EXPECT_EQ(moved(GDT_UInt32, 70000, uint32_t{}), (Moved{2, 69999}));
    EXPECT_EQ(moved(GDT_Int64, -70000, int64_t{}), (Moved{1, -69999}));
    double doubles[6];
    StoreRule(GDT_Float64, real(-1.7976931348623157e308)).store(v, 6, doubles);
    EXPECT_EQ(doubles[4], -1.7976931348623157e308);
}

} // namespace
} // namespace hsi::raster
