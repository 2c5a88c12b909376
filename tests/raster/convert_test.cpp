// SPDX-License-Identifier: MIT
#include "raster/gdal/dataset_handle.h"
#include "raster/gdal_type.h"
#include "raster/sample_convert.h"
#include "stream/value_parts.h"

#include <gdal_priv.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

namespace hsi::raster {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
const SampleType all_types[] = {SampleType::uint8,  SampleType::uint16,  SampleType::int16,
                                SampleType::uint32, SampleType::int32,   SampleType::int64,
                                SampleType::uint64, SampleType::float32, SampleType::float64};

NodataValue real(double v) {
    NodataValue n;
    n.real = v;
    return n;
}

TEST(Convert, EqualsGdalForRandomBitsOfEveryType) {
    std::mt19937 random(7);
    for (const SampleType type : all_types) {
        const auto size = sample_bytes(type);
        constexpr size_t count = 1003;
        for (const size_t stride : {size, size + 5}) {
            std::vector<unsigned char> bytes(count * stride + 1);
            for (auto& b : bytes)
                b = static_cast<unsigned char>(random());
            // Copies byte by byte, since GDAL requires an alignment that the file may lack.
            std::vector<double> packed(count);
            for (size_t i = 0; i < count; ++i)
                std::memcpy(reinterpret_cast<char*>(packed.data()) + i * size, bytes.data() + 1 + i * stride,
                            size);
            std::vector<float> expected(count), got(count), swapped(count);
            GDALCopyWords64(packed.data(), gdal_type(type), static_cast<int>(size), expected.data(),
                            GDT_Float32, 4, count);
            to_floats(bytes.data() + 1, static_cast<ptrdiff_t>(stride), type, false, {}, got.data(), count);
            for (size_t i = 0; i < count; ++i)
                ASSERT_TRUE(got[i] == expected[i] || (std::isnan(got[i]) && std::isnan(expected[i])))
                    << name_of(type) << " " << got[i] << " " << expected[i];
            swap_bytes(packed.data(), type, count);
            to_floats(packed.data(), static_cast<ptrdiff_t>(size), type, true, {}, swapped.data(), count);
            for (size_t i = 0; i < count; ++i)
                ASSERT_TRUE(swapped[i] == expected[i] || (std::isnan(swapped[i]) && std::isnan(expected[i])));
        }
    }
}

/// Returns numbers of a type: random bits, some of them near the ends of integer types or halfway between
/// integers.
template <class T>
std::vector<T> numbers_of() {
    std::vector<T> all;
    std::mt19937_64 random(11);
    for (int i = 0; i < 4096; ++i) {
        const uint64_t bits = random();
        T v;
        std::memcpy(&v, &bits, sizeof v);
        if (v == v) all.push_back(v); // the result for NaN depends on the processor and on GDAL's version
    }
    if constexpr (std::is_floating_point_v<T>) {
        for (const int digits : {0, 7, 8, 15, 16, 31, 32, 63, 64, 128})
            for (const double sign : {-1.0, 1.0})
                for (const double by : {-1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0}) {
                    const auto v = static_cast<T>(sign * std::ldexp(1.0, digits) + by);
                    all.insert(all.end(), {v, std::nextafter(v, T{0}), std::nextafter(v, T{INFINITY})});
                }
        std::uniform_real_distribution<double> near(-300, 300);
        for (int i = 0; i < 4096; ++i)
            all.push_back(static_cast<T>(near(random)));
        all.insert(all.end(), {T{0}, -T{0}, T{INFINITY}, -T{INFINITY}});
    } else {
        all.insert(all.end(), {T{0}, T{1}, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()});
    }
    return all;
}

TEST(Convert, StoresEveryTypeAsEveryOtherOneAsGdalDoes) {
    for (const SampleType from : all_types)
        with_type(from, [&](auto one) {
            const auto values = numbers_of<decltype(one)>();
            for (const SampleType to : all_types)
                with_type(to, [&](auto other) {
                    std::vector<decltype(other)> got(values.size()), expected(values.size());
                    convert_samples(values.data(), from, got.data(), to, values.size());
                    GDALCopyWords64(values.data(), gdal_type(from), sizeof one, expected.data(),
                                    gdal_type(to), sizeof other, static_cast<GPtrDiff_t>(values.size()));
                    for (size_t i = 0; i < values.size(); ++i) {
                        // GDAL 3.6 does not clamp values outside a type of 64 bits.
                        if (sizeof other == 8 && std::is_integral_v<decltype(other)> &&
                            static_cast<double>(values[i]) >=
                                std::ldexp(1.0, std::numeric_limits<decltype(other)>::digits))
                            continue;
                        ASSERT_EQ(got[i], expected[i])
                            << +values[i] << " of " << name_of(from) << " as " << name_of(to);
                    }
                });
        });
}

TEST(Convert, NodataIsComparedInTheFilesType) {
    // Neighbours that round to the same float.
    const int32_t ints[] = {-99999999, -99999998, 100000000};
    float out[3];
    to_floats(ints, 4, SampleType::int32, false, match_in_type(real(-99999999), SampleType::int32), out, 3);
    EXPECT_TRUE(std::isnan(out[0]));
    EXPECT_EQ(out[1], -100000000.0f);
    EXPECT_EQ(out[2], 100000000.0f);
    const double doubles[] = {1e30, 1e30 * (1 + 1e-6), 0.1};
    to_floats(doubles, 8, SampleType::float64, false, match_in_type(real(1e30), SampleType::float64), out, 3);
    EXPECT_TRUE(std::isnan(out[0]));
    EXPECT_EQ(out[1], static_cast<float>(1e30 * (1 + 1e-6)));
    NodataValue whole;
    whole.kind = SampleType::int64;
    whole.whole = 9007199254740993; // 2^53 + 1 is not a double
    const int64_t longs[] = {9007199254740993, 9007199254740992, 0};
    to_floats(longs, 8, SampleType::int64, false, match_in_type(whole, SampleType::int64), out, 3);
    EXPECT_TRUE(std::isnan(out[0]));
    EXPECT_FALSE(std::isnan(out[1]));
}

TEST(Convert, NodataThatATypeCannotHoldMatchesNothing) {
    EXPECT_FALSE(match_in_type(real(-9999), SampleType::uint8).active);
    EXPECT_FALSE(match_in_type(real(0.5), SampleType::int16).active);
    EXPECT_FALSE(match_in_type(real(4294967296.0), SampleType::uint32).active);
    EXPECT_TRUE(match_in_type(real(4294967295.0), SampleType::uint32).active);
    EXPECT_TRUE(match_in_type(real(-2147483648.0), SampleType::int32).active);
    EXPECT_FALSE(match_in_type(real(-2147483649.0), SampleType::int32).active);
    EXPECT_FALSE(match_in_type(real(9223372036854775808.0), SampleType::int64).active);
    EXPECT_FALSE(match_in_type(real(1e39), SampleType::float32).active);
    EXPECT_TRUE(match_in_type(real(-3.40282347e38), SampleType::float32).active);
    EXPECT_FALSE(match_in_type(real(std::nan("")), SampleType::float32).active);
}

/// A band in memory with one line of `values`. Its GDAL mask is the reference.
template <class T>
void expect_gdals_mask(SampleType type, double nodata, std::vector<T> values) {
    const DatasetHandle dataset(GetGDALDriverManager()->GetDriverByName("MEM")->Create(
        "", static_cast<int>(values.size()), 1, 1, gdal_type(type), nullptr));
    GDALRasterBand& band = *dataset->GetRasterBand(1);
    const int n = static_cast<int>(values.size());
    ASSERT_EQ(band.RasterIO(GF_Write, 0, 0, n, 1, values.data(), n, 1, gdal_type(type), 0, 0, nullptr),
              CE_None);
    band.SetNoDataValue(nodata);
    std::vector<unsigned char> mask(values.size());
    ASSERT_EQ(band.GetMaskBand()->RasterIO(GF_Read, 0, 0, n, 1, mask.data(), n, 1, GDT_Byte, 0, 0, nullptr),
              CE_None);
    std::vector<float> out(values.size());
    const auto range = nodata_range(real(nodata), type);
    to_floats(values.data(), sizeof(T), type, false, match_in_type(real(nodata), type), out.data(),
              out.size());
    for (size_t i = 0; i < values.size(); ++i) {
        EXPECT_EQ(std::isnan(out[i]), mask[i] == 0) << nodata << " " << values[i];
        EXPECT_EQ(range && range->holds(static_cast<double>(values[i])), mask[i] == 0);
        if (!exact_in_float(type)) continue;
        auto blanked = static_cast<float>(values[i]);
        blank(&blanked, 1, match_in_type(real(nodata), type), type);
        EXPECT_EQ(std::isnan(blanked), mask[i] == 0) << nodata << " " << values[i];
    }
    // Additional nodata values follow the same rule.
    InvalidSamples further;
    further.values = {-9999.5, nodata};
    std::vector<float> marks(values.size(), 0);
    blank_invalid(further, values.data(), sizeof(T), type, false, marks.data(), marks.size());
    for (size_t i = 0; i < values.size(); ++i)
        EXPECT_EQ(std::isnan(marks[i]), mask[i] == 0) << nodata << " " << values[i];
}

TEST(Convert, NodataIsWhatGdalsMasksSay) {
    GDALAllRegister();
    constexpr double lowest = -3.4028234663852886e38;
    for (const double nodata : {lowest, -3.402823e38, -3.40282e38, -3.4e38, -2e38, 3.40282e38, 1e20, -1e20,
                                1e-20, 1e-40, -9999.0, -9999.001, 1.0, 0.1, 0.0, 32767.0, -1e30}) {
        std::vector<float> floats = {0, 1e-45F, 1, -1, -9999, 3e38F, -3e38F, static_cast<float>(lowest)};
        std::vector<double> doubles = {0, 1e-300, 1, -1, -9999, 3e38, -3e38, lowest, 1e300};
        const auto nearest = static_cast<float>(nodata);
        floats.push_back(nearest);
        doubles.push_back(nodata);
        for (const float to : {0.0F, std::copysign(std::numeric_limits<float>::max(), nearest)})
            for (float v = nearest, step = 0; step < 12; ++step)
                floats.push_back(v = std::nextafter(v, to));
        for (const double part : {1e-16, 1e-9, 4.7e-7, 4.75e-7, 4.8e-7, 4.9e-7, 1e-6})
            for (const double sign : {-1, 1})
                doubles.push_back(nodata * (1 + sign * part));
        expect_gdals_mask(SampleType::float32, nodata, floats);
        expect_gdals_mask(SampleType::float64, nodata, doubles);
    }
    for (const double nodata : {-1.797693e308, 1.797693e308, -1e308})
        expect_gdals_mask<double>(SampleType::float64, nodata,
                                  {-1.7976931348623157e308, 1.7976931348623157e308, 1, nodata});
    for (const double nodata : {-9999.0, 0.0, 255.0, 32767.0})
        expect_gdals_mask<int16_t>(SampleType::int16, nodata, {-9999, -9998, 0, 1, 255, 32767});
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
    const StoreRule rule(SampleType::float32, real(-9999));
    float v[] = {1, nan, -9999, std::numeric_limits<float>::infinity()};
    rule.finish(v, 4);
    EXPECT_EQ(v[0], 1);
    EXPECT_EQ(v[1], -9999);
    EXPECT_GT(v[2], -9999); // the nearest value that GDAL does not treat as nodata
    EXPECT_EQ(v[2], -9999 + 5 * (std::nextafter(9999.0f, 10000.0f) - 9999));
    float again = v[2];
    blank(&again, 1, match_in_type(real(-9999), SampleType::float32), SampleType::float32);
    EXPECT_EQ(again, v[2]);
    EXPECT_TRUE(std::isinf(v[3]));
    float zero[] = {0, -0.0f, nan};
    StoreRule(SampleType::float32, real(0)).finish(zero, 3);
    EXPECT_GT(zero[0], 0);
    EXPECT_GT(zero[1], 0);
    EXPECT_EQ(zero[2], 0);
    float plain[] = {nan, 2};
    StoreRule(SampleType::float32, std::nullopt).finish(plain, 2);
    EXPECT_TRUE(std::isnan(plain[0]));
}

TEST(Store, IntegersRoundClampAndKeepExactNodata) {
    const float v[] = {1.5f, -1.5f, 70000, -70000, nan, 2.4f};
    int16_t out[6];
    StoreRule(SampleType::int16, real(-32768)).store(v, 6, out);
    const int16_t expected[] = {2, -2, 32767, -32767, -32768, 2};
    for (int i = 0; i < 6; ++i)
        EXPECT_EQ(out[i], expected[i]) << i;
    int32_t wide[6];
    StoreRule(SampleType::int32, real(-99999999)).store(v, 6, wide);
    EXPECT_EQ(wide[4], -99999999); // as a float it would be -100000000
    uint8_t bytes[6];
    StoreRule(SampleType::uint8, std::nullopt).store(v, 6, bytes);
    EXPECT_EQ(bytes[4], 0);
    EXPECT_EQ(bytes[2], 255);
    const auto moved = [&](SampleType type, double nodata, auto sample) {
        const StoreRule rule(type, real(nodata)), copy = rule; // they share a count
        decltype(sample) stored[6];
        rule.store(v, 6, stored);
        copy.store(v, 3, stored);
        EXPECT_EQ(stored[4], static_cast<decltype(sample)>(nodata));
        return std::pair<int64_t, double>(rule.lost().moved, rule.beside());
    };
    using Moved = std::pair<int64_t, double>;
    EXPECT_EQ(moved(SampleType::int16, 2, int16_t{}), (Moved{3, 1}));
    EXPECT_EQ(moved(SampleType::int16, -2, int16_t{}), (Moved{2, -1}));
    EXPECT_EQ(moved(SampleType::int16, -5, int16_t{}), (Moved{0, -4}));
    EXPECT_EQ(moved(SampleType::uint8, 0, uint8_t{}), (Moved{3, 1}));
    EXPECT_EQ(moved(SampleType::uint8, 255, uint8_t{}), (Moved{2, 254}));
    EXPECT_EQ(moved(SampleType::uint32, 70000, uint32_t{}), (Moved{2, 69999}));
    EXPECT_EQ(moved(SampleType::int64, -70000, int64_t{}), (Moved{1, -69999}));
    double doubles[6];
    StoreRule(SampleType::float64, real(-1.7976931348623157e308)).store(v, 6, doubles);
    EXPECT_EQ(doubles[4], -1.7976931348623157e308);
}

TEST(Store, CountsWhatIntegersDoNotHold) {
    const float v[] = {0, 0.49F, -0.01F, 0.5F, 255.4F, 255.5F, -0.6F, nan, 1e30F, -32768.4F, -32769.0F};
    const auto lost = [&](SampleType type, const std::optional<NodataValue>& nodata) {
        const std::vector<StoreRule> rules(2, StoreRule(type, nodata)); // they share a count
        std::vector<double> stored(11);
        rules[0].store(v, 7, stored.data());
        rules[1].store(v + 7, 4, stored.data());
        const auto found = rules[0].lost();
        return std::array<int64_t, 3>{found.vanished, found.clamped, found.stored};
    };
    using Counts = std::array<int64_t, 3>;
    EXPECT_EQ(lost(SampleType::uint8, std::nullopt), (Counts{2, 5, 10}));
    EXPECT_EQ(lost(SampleType::int16, real(-32768)), (Counts{2, 2, 10}));
    EXPECT_EQ(lost(SampleType::uint16, real(7)), (Counts{2, 4, 10}));
    EXPECT_EQ(lost(SampleType::int32, std::nullopt), (Counts{2, 1, 10}));
    EXPECT_EQ(lost(SampleType::uint64, std::nullopt), (Counts{2, 4, 10}));
    EXPECT_EQ(lost(SampleType::float32, real(0)), (Counts{0, 0, 0}));
    EXPECT_EQ(lost(SampleType::float64, std::nullopt), (Counts{0, 0, 0}));
}

/// Returns random samples of a type, some of them difficult, at odd addresses and in both byte orders.
std::vector<unsigned char> random_samples(SampleType type, size_t count, bool swapped) {
    std::mt19937_64 random(11);
    const auto size = sample_bytes(type);
    std::vector<unsigned char> bytes(count * size + 1);
    for (size_t i = 0; i < count; ++i) {
        uint64_t bits = random();
        if (type == SampleType::float64) { // within the range of floats, without NaN
            const double v =
                std::ldexp(static_cast<double>(static_cast<int64_t>(bits)), static_cast<int>(i % 150) - 110);
            std::memcpy(&bits, &v, sizeof bits);
        } else if (type == SampleType::float32) {
            const float v =
                std::ldexp(static_cast<float>(static_cast<int64_t>(bits)), static_cast<int>(i % 150) - 110);
            std::memcpy(&bits, &v, sizeof v);
        }
        std::memcpy(bytes.data() + 1 + i * size, &bits, size);
    }
    if (swapped) swap_bytes(bytes.data() + 1, type, count);
    return bytes;
}

TEST(Parts, BitsComeTogetherAgain) {
    constexpr size_t count = 700;
    for (const SampleType type : all_types)
        for (const bool swapped : {false, true}) {
            const auto size = sample_bytes(type);
            const auto bytes = random_samples(type, count, swapped),
                       native = random_samples(type, count, false);
            if (type == SampleType::float32) continue; // already a float
            std::vector<float> parts(count * 3, nan);
            const auto bits = all_bits(type);
            ASSERT_EQ(bits.size(), static_cast<size_t>(bit_parts(type)));
            for (size_t k = 0; k < bits.size(); ++k)
                to_part(bits[k], bytes.data() + 1, static_cast<ptrdiff_t>(size), type, swapped, {}, type,
                        parts.data() + k * count, count);
            for (size_t i = 0; i < count; ++i) {
                uint64_t sample = 0;
                from_bit_parts(parts.data() + i, count, type, &sample);
                EXPECT_EQ(std::memcmp(&sample, native.data() + 1 + i * size, size), 0) << name_of(type) << i;
            }
        }
}

TEST(Parts, SumsAreTheNumbers) {
    constexpr size_t count = 700;
    for (const SampleType type : all_types) {
        const auto size = sample_bytes(type);
        const auto bytes = random_samples(type, count, false);
        std::vector<double> packed(count), expected(count);
        std::memcpy(packed.data(), bytes.data() + 1, count * size);
        GDALCopyWords64(packed.data(), gdal_type(type), static_cast<int>(size), expected.data(), GDT_Float64,
                        8, count);
        std::vector<float> parts(count * 3), plain(count);
        const SamplePart sum[] = {SamplePart::value, SamplePart::remainder, SamplePart::rest};
        for (size_t k = 0; k < 3; ++k)
            to_part(sum[k], bytes.data() + 1, static_cast<ptrdiff_t>(size), type, false, {}, type,
                    parts.data() + k * count, count);
        to_floats(bytes.data() + 1, static_cast<ptrdiff_t>(size), type, false, {}, plain.data(), count);
        for (size_t i = 0; i < count; ++i) {
            EXPECT_EQ(parts[i], plain[i]);
            EXPECT_EQ(stream::joined(parts.data() + i, count), expected[i]) << name_of(type) << i;
        }
    }
    // Neighbours that round to the same double.
    const int64_t near[] = {std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::max() - 1};
    float parts[3][2];
    const SamplePart sum[] = {SamplePart::value, SamplePart::remainder, SamplePart::rest};
    for (int k = 0; k < 3; ++k)
        to_part(sum[k], near, 8, SampleType::int64, false, {}, SampleType::int64, parts[k], 2);
    EXPECT_EQ(static_cast<double>(parts[0][0] - parts[0][1]) +
                  static_cast<double>(parts[1][0] - parts[1][1]) +
                  static_cast<double>(parts[2][0] - parts[2][1]),
              1);
}

TEST(Parts, NodataAndNanAreNoValue) {
    const double v[] = {0.1, std::numeric_limits<double>::quiet_NaN(), -9999,
                        std::numeric_limits<double>::infinity()};
    for (const SamplePart part : {SamplePart::remainder, SamplePart::low_bits, SamplePart::high_bits}) {
        float out[4];
        to_part(part, v, 8, SampleType::float64, false, match_in_type(real(-9999), SampleType::float64),
                SampleType::float64, out, 4);
        EXPECT_FALSE(std::isnan(out[0]));
        EXPECT_TRUE(std::isnan(out[1]) && std::isnan(out[2]));
        EXPECT_FALSE(std::isnan(out[3]));
    }
}

TEST(Parts, AreStoredAsTheOutputsTypeHoldsThem) {
    const int64_t v[] = {(int64_t{1} << 53) + 1, -5, 7, -9999};
    std::vector<float> parts(12);
    const auto bits = all_bits(SampleType::int64);
    for (size_t k = 0; k < 3; ++k)
        to_part(bits[k], v, 8, SampleType::int64, false, match_in_type(real(-9999), SampleType::int64),
                SampleType::int64, parts.data() + 4 * k, 4);
    StoreRule same(SampleType::int64, real(7)), small(SampleType::int16, real(-5)),
        floats(SampleType::float64, std::nullopt), single(SampleType::float32, real(7));
    for (auto* rule : {&same, &small, &floats, &single})
        rule->take_parts(SampleType::int64);
    int64_t whole[4];
    same.store_parts(parts.data(), 4, 4, whole);
    EXPECT_EQ(whole[0], v[0]);
    EXPECT_EQ(whole[2], 6); // moved, since 7 is nodata
    EXPECT_EQ(whole[3], 7);
    EXPECT_EQ(same.lost().moved, 1);
    int16_t narrow[4];
    small.store_parts(parts.data(), 4, 4, narrow);
    EXPECT_EQ(narrow[0], 32767);
    EXPECT_EQ(narrow[1], -4);
    EXPECT_EQ(narrow[3], -5);
    double doubles[4];
    floats.store_parts(parts.data(), 4, 4, doubles);
    EXPECT_EQ(doubles[1], -5);
    EXPECT_TRUE(std::isnan(doubles[3]));
    float of_single[4];
    EXPECT_FALSE(single.floats());
    single.store_parts(parts.data(), 4, 4, of_single);
    EXPECT_EQ(of_single[3], 7);
    EXPECT_LT(of_single[2], 7);
    EXPECT_NEAR(of_single[2], 7, 1e-5);
}

} // namespace
} // namespace hsi::raster
