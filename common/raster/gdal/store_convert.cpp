// SPDX-License-Identifier: MIT
#include "raster/gdal/store_convert.h"

#include "raster/gdal/sample_convert.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace hsi::raster {

StoreRule::StoreRule(GDALDataType type, const std::optional<NodataValue>& nodata)
    : m_type(type), m_bytes(static_cast<size_t>(GDALGetDataTypeSizeBytes(type))) {
    if (!nodata) return;
    const NodataMatch match = match_in_type(*nodata, type);
    m_replace = match.active;
    m_real = nodata->as_double();
    std::memcpy(m_value, match.bytes, sizeof m_value);
    if (!m_replace || m_type == GDT_Float32 || m_type == GDT_Float64) return;
    NodataValue beside = *nodata;
    if (beside.kind == GDT_Float64 &&
        (type == GDT_Int64 || type == GDT_UInt64)) { // whose steps it may not know
        beside.kind = type;
        if (type == GDT_Int64)
            beside.whole = static_cast<int64_t>(beside.real);
        else
            beside.natural = static_cast<uint64_t>(beside.real);
    }
    const auto step = [](auto v) { return v > 0 ? v - 1 : v + 1; };
    beside.real = step(beside.real);
    beside.whole = step(beside.whole);
    beside.natural = step(beside.natural);
    std::memcpy(m_beside, match_in_type(beside, type).bytes, sizeof m_beside);
    m_beside_real = beside.as_double();
    m_moved = std::make_shared<std::atomic<int64_t>>(0);
}

/// Samples of an integer type as the bits that they are.
template <class Bits>
void StoreRule::replace(const float* values, size_t count, unsigned char* samples) const {
    Bits nothing, beside;
    std::memcpy(&nothing, m_value, sizeof nothing);
    std::memcpy(&beside, m_beside, sizeof beside);
    int64_t moved = 0;
    for (size_t i = 0; i < count; ++i) {
        Bits stored;
        std::memcpy(&stored, samples + i * sizeof stored, sizeof stored);
        const bool none = values[i] != values[i], met = m_replace && !none && stored == nothing;
        moved += met;
        // Conversion of NaN to an integer is not the same on every processor and version of GDAL.
        stored = none ? nothing : met ? beside : stored;
        std::memcpy(samples + i * sizeof stored, &stored, sizeof stored);
    }
    if (moved > 0) m_moved->fetch_add(moved, std::memory_order_relaxed);
}

void StoreRule::finish(float* values, size_t count) const {
    if (!m_replace) return;
    float nodata;
    std::memcpy(&nodata, m_value, sizeof nodata);
    const float beside = nodata == 0 ? std::numeric_limits<float>::min() : std::nextafter(nodata, 0.0f);
    for (size_t i = 0; i < count; ++i) {
        const float v = values[i], kept = v == nodata ? beside : v;
        values[i] = v != v ? nodata : kept;
    }
}

template <class Real>
void StoreRule::finish_reals(const float* values, size_t count, Real* samples) const {
    if (!m_replace) return;
    const auto nodata = static_cast<Real>(m_real);
    const Real beside =
        nodata == 0 ? static_cast<Real>(std::numeric_limits<float>::min()) : std::nextafter(nodata, Real{0});
    for (size_t i = 0; i < count; ++i) {
        if (values[i] != values[i])
            samples[i] = nodata;
        else if (samples[i] == nodata)
            samples[i] = beside;
    }
}

void StoreRule::store(const float* values, size_t count, void* samples) const {
    GDALCopyWords64(values, GDT_Float32, sizeof(float), samples, m_type, static_cast<int>(m_bytes),
                    static_cast<GPtrDiff_t>(count));
    finish_stored(values, count, samples);
}

void StoreRule::finish_stored(const float* values, size_t count, void* samples) const {
    auto* bytes = static_cast<unsigned char*>(samples);
    if (m_type == GDT_Float64)
        finish_reals(values, count, static_cast<double*>(samples));
    else if (m_type == GDT_Float32)
        finish_reals(values, count, static_cast<float*>(samples));
    else if (m_bytes == 1)
        replace<uint8_t>(values, count, bytes);
    else if (m_bytes == 2)
        replace<uint16_t>(values, count, bytes);
    else if (m_bytes == 4)
        replace<uint32_t>(values, count, bytes);
    else
        replace<uint64_t>(values, count, bytes);
}

void StoreRule::take_parts(GDALDataType from) {
    m_from = from;
    m_parts = bit_parts(from);
}

void StoreRule::store_parts(const float* values, ptrdiff_t step, size_t count, void* samples) const {
    constexpr size_t piece = 256;
    double joined[piece]; // of any type
    const auto size = static_cast<size_t>(GDALGetDataTypeSizeBytes(m_from));
    auto* to = static_cast<unsigned char*>(samples);
    for (size_t done = 0; done < count; done += piece) {
        const size_t n = std::min(piece, count - done);
        std::memset(joined, 0, sizeof joined);
        for (size_t i = 0; i < n; ++i)
            if (values[done + i] == values[done + i])
                from_bit_parts(values + done + i, step, m_from,
                               reinterpret_cast<unsigned char*>(joined) + i * size);
        GDALCopyWords64(joined, m_from, static_cast<int>(size), to + done * m_bytes, m_type,
                        static_cast<int>(m_bytes), static_cast<GPtrDiff_t>(n));
    }
    finish_stored(values, count, samples);
    if (m_replace || !(m_type == GDT_Float32 || m_type == GDT_Float64)) return;
    for (size_t i = 0; i < count; ++i) { // without a nodata value floats have NaN
        if (values[i] == values[i]) continue;
        if (m_type == GDT_Float32)
            static_cast<float*>(samples)[i] = values[i];
        else
            static_cast<double*>(samples)[i] = static_cast<double>(values[i]);
    }
}

void StoreRule::store_line(const CubeView<float>& src, int band, int64_t line, int64_t x, size_t count,
                           void* samples) const {
    float* const values = src.row(band * m_parts, line) + x;
    if (m_parts > 1) return store_parts(values, src.band_stride, count, samples);
    if (!floats()) return store(values, count, samples);
    finish(values, count);
    std::memcpy(samples, values, count * sizeof(float));
}

void StoreRule::store_pixels(const CubeView<float>& src, int64_t line, int64_t x, size_t pixels,
                             void* samples, Scratch& scratch) const {
    const auto bands = static_cast<size_t>(src.bands / m_parts);
    auto* const to = static_cast<char*>(samples);
    if (m_parts > 1) {
        scratch.stored.resize(std::max(scratch.stored.size(), pixels));
        for (size_t k = 0; k < bands; ++k) {
            store_line(src, static_cast<int>(k), line, x, pixels, scratch.stored.data());
            const char* const from = reinterpret_cast<const char*>(scratch.stored.data());
            for (size_t i = 0; i < pixels; ++i)
                std::memcpy(to + (i * bands + k) * m_bytes, from + i * m_bytes, m_bytes);
        }
        return;
    }
    constexpr size_t piece_bytes = size_t{256} << 10;
    const size_t piece = std::clamp<size_t>(piece_bytes / (bands * sizeof(float)), 1, pixels);
    scratch.rows.resize(bands);
    if (!floats()) scratch.floats.resize(std::max(scratch.floats.size(), piece * bands));
    for (size_t done = 0, n = 0; done < pixels; done += n) {
        n = std::min(piece, pixels - done);
        for (size_t k = 0; k < bands; ++k) {
            float* const row = src.row(static_cast<int>(k), line) + x + done;
            if (floats()) finish(row, n);
            scratch.rows[k] = row;
        }
        char* const there = to + done * bands * m_bytes;
        float* const turned = floats() ? reinterpret_cast<float*>(there) : scratch.floats.data();
        rows_to_pixels(scratch.rows.data(), bands, n, turned, bands);
        if (!floats()) store(turned, n * bands, there);
    }
}

} // namespace hsi::raster
