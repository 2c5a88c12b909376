// SPDX-License-Identifier: MIT
#include "raster/codec/lerc_codec.h"

#include "core/error.h"

#include <Lerc_c_api.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace hsi::raster {
namespace {

constexpr int codec_version = 4; // version 2.4 of the codec, which libtiff writes

/// Returns LERC's number of a type of samples.
unsigned lerc_type(BlockCoding::Values values, int64_t sample_bytes) {
    if (values == BlockCoding::Values::floats) return sample_bytes == 4 ? 6 : 7;
    const unsigned of_size = sample_bytes == 1 ? 0 : sample_bytes == 2 ? 2 : 4;
    return of_size + (values == BlockCoding::Values::without_sign ? 1 : 0);
}

/// Calls f(Float{}) for the floating-point type with this number of bytes.
template <class F>
void with_float(int64_t bytes, const F& f) {
    if (bytes == 4)
        f(float{});
    else
        f(double{});
}

} // namespace

std::optional<BlockCoding::Lerc> lerc_of(GDALDataType type) {
    if (GDALDataTypeIsComplex(type) != 0 || GDALGetDataTypeSizeBytes(type) == 0) return std::nullopt;
    if (GDALDataTypeIsFloating(type) != 0) {
        if (type != GDT_Float32 && type != GDT_Float64) return std::nullopt;
        return BlockCoding::Lerc{BlockCoding::Values::floats};
    }
    if (GDALGetDataTypeSizeBytes(type) > 4) return std::nullopt;
    return BlockCoding::Lerc{GDALDataTypeIsSigned(type) != 0 ? BlockCoding::Values::with_sign
                                                             : BlockCoding::Values::without_sign};
}

uint64_t LercCodec::bound(const BlockForm& form) {
    const auto bytes = static_cast<uint64_t>(form.bytes());
    return bytes + bytes / 3 + static_cast<uint64_t>(form.line_samples * form.lines) + 1024;
}

size_t LercCodec::encode(const char* samples, int64_t lines, std::span<char> to) {
    const auto count = static_cast<size_t>(m_form.line_samples * lines);
    bool all = true;
    if (m_how.values == BlockCoding::Values::floats) {
        m_valid.resize(count);
        with_float(m_form.sample_bytes, [&](auto number) {
            const auto* const a = reinterpret_cast<const decltype(number)*>(samples);
            for (size_t i = 0; i < count; ++i)
                m_valid[i] = !std::isnan(a[i]);
        });
        all = std::find(m_valid.begin(), m_valid.end(), 0) == m_valid.end();
    }
    unsigned written = 0;
    if (lerc_encodeForVersion(samples, codec_version, lerc_type(m_how.values, m_form.sample_bytes), 1,
                              static_cast<int>(m_form.line_samples), static_cast<int>(lines), 1, all ? 0 : 1,
                              all ? nullptr : m_valid.data(), m_how.max_error,
                              reinterpret_cast<unsigned char*>(to.data()), static_cast<unsigned>(to.size()),
                              &written) != 0)
        throw Error("a block cannot be compressed with LERC");
    return written;
}

int64_t LercCodec::decode(std::span<const char> bytes, int64_t lines, char* samples) {
    const auto* const blob = reinterpret_cast<const unsigned char*>(bytes.data());
    const auto size = static_cast<unsigned>(bytes.size());
    const unsigned type = lerc_type(m_how.values, m_form.sample_bytes);
    enum { type_of = 1, depth_of = 2, columns_of = 3, rows_of = 4, bands_of = 5, size_of = 7, masks_of = 8 };
    unsigned facts[9] = {};
    if (bytes.size() > std::numeric_limits<unsigned>::max() ||
        lerc_getBlobInfo(blob, size, facts, nullptr, 9, 0) != 0)
        return 0;
    const auto step = static_cast<unsigned>(m_form.step);
    const int64_t rows = facts[rows_of];
    const unsigned depth = facts[depth_of], bands = facts[bands_of], masks = facts[masks_of];
    const bool together = depth == step && bands == 1 && masks <= 1;
    const bool apart = depth == 1 && bands == step && (masks == 0 || masks == step);
    const bool floats = m_how.values == BlockCoding::Values::floats;
    if (facts[type_of] != type || int64_t{facts[columns_of]} * m_form.step != m_form.line_samples ||
        (rows != lines && rows != m_form.lines) || facts[size_of] != size || (!together && !apart) ||
        (masks > 0 && !floats))
        return 0;
    const auto pixels = static_cast<size_t>(rows) * facts[columns_of];
    m_valid.resize(pixels * masks);
    char* to = samples;
    if (!together) {
        m_apart.resize(pixels * step * static_cast<size_t>(m_form.sample_bytes));
        to = m_apart.data();
    }
    if (lerc_decode(blob, size, static_cast<int>(masks), masks > 0 ? m_valid.data() : nullptr,
                    static_cast<int>(depth), static_cast<int>(facts[columns_of]), static_cast<int>(rows),
                    static_cast<int>(bands), type, to) != 0)
        return 0;
    const auto place = [&](auto number) { // interleaves the bands, and sets missing values to NaN
        using Number = decltype(number);
        auto* const out = reinterpret_cast<Number*>(samples);
        const auto* const in = reinterpret_cast<const Number*>(m_apart.data());
        for (size_t i = 0; i < pixels; ++i)
            for (size_t b = 0; b < step; ++b) {
                Number& value = out[i * step + b];
                if (!together) value = in[b * pixels + i];
                // A single mask applies to all bands of a pixel. If only some bands of a pixel are NaN,
                // liblerc then silently replaces these values by the lowest number of the type. libtiff 4.5
                // writes such blocks.
                if ((masks > 0 && m_valid[masks == 1 ? i : b * pixels + i] == 0) ||
                    (together && step > 1 && value == std::numeric_limits<Number>::lowest()))
                    value = static_cast<Number>(std::numeric_limits<float>::quiet_NaN());
            }
    };
    if (floats && (step > 1 || masks > 0))
        with_float(m_form.sample_bytes, place);
    else if (!together)
        return 0; // libtiff does not write blocks of integers with separate bands
    return rows;
}

} // namespace hsi::raster
