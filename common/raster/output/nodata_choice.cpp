// SPDX-License-Identifier: MIT
#include "raster/output/nodata_choice.h"

#include "raster/sample_convert.h"

#include <cmath>
#include <cstdint>
#include <limits>

namespace hsi::raster {
namespace {

/// The lowest value of a signed type, 0 of an unsigned one, NaN of floats.
NodataValue invented_nodata(GDALDataType type) {
    NodataValue nodata;
    switch (type) {
    case GDT_Float32:
    case GDT_Float64:
        nodata.real = std::numeric_limits<double>::quiet_NaN();
        break;
    case GDT_Int16:
        nodata.real = std::numeric_limits<int16_t>::min();
        break;
    case GDT_Int32:
        nodata.real = std::numeric_limits<int32_t>::min();
        break;
    case GDT_Int64:
        nodata.kind = GDT_Int64;
        nodata.whole = std::numeric_limits<int64_t>::min();
        break;
    case GDT_UInt64:
        nodata.kind = GDT_UInt64;
        break;
    default:
        if (type == type_int8) nodata.real = std::numeric_limits<int8_t>::min();
        break;
    }
    return nodata;
}

} // namespace

std::optional<NodataValue> fitting(double value, GDALDataType type) {
    NodataValue nodata;
    nodata.real = value;
    if (std::isnan(value)) {
        if (type == GDT_Float32 || type == GDT_Float64) return nodata;
        return std::nullopt;
    }
    if (!match_in_type(nodata, type).active) return std::nullopt;
    return nodata;
}

std::optional<NodataValue> choose_nodata(const OutputOptions& options, const OutputSpec& spec,
                                         const SourceNodata& source, GDALDataType type) {
    if (options.nodata) return fitting(*options.nodata, type);
    if (spec.nodata) return fitting(*spec.nodata, type);
    const bool holes = spec.holes || source.masked || !source.values.empty();
    for (const NodataValue& value : source.values) {
        if (value.kind == GDT_Float64) {
            if (const auto nodata = fitting(value.real, type)) return nodata;
        } else if (match_in_type(value, type).active) {
            return value;
        }
    }
    return holes ? std::optional<NodataValue>(invented_nodata(type)) : std::nullopt;
}

} // namespace hsi::raster
