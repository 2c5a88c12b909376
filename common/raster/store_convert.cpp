// SPDX-License-Identifier: MIT
#include "raster/store_convert.h"

#include "raster/sample_convert.h"

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

void StoreRule::store(const float* values, size_t count, void* samples) const {
    GDALCopyWords64(values, GDT_Float32, sizeof(float), samples, m_type, static_cast<int>(m_bytes),
                    static_cast<GPtrDiff_t>(count));
    auto* bytes = static_cast<unsigned char*>(samples);
    if (m_type == GDT_Float64) {
        if (!m_replace) return;
        const double beside = m_real == 0 ? static_cast<double>(std::numeric_limits<float>::min())
                                          : std::nextafter(m_real, 0.0);
        auto* doubles = reinterpret_cast<double*>(samples);
        for (size_t i = 0; i < count; ++i) {
            if (values[i] != values[i])
                doubles[i] = m_real;
            else if (doubles[i] == m_real)
                doubles[i] = beside;
        }
        return;
    }
    // Conversion of NaN to an integer is not the same on every processor and version of GDAL.
    for (size_t i = 0; i < count; ++i)
        if (values[i] != values[i]) std::memcpy(bytes + i * m_bytes, m_value, m_bytes);
}

} // namespace hsi::raster
