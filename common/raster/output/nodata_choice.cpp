// SPDX-License-Identifier: MIT
#include "raster/output/nodata_choice.h"

#include "raster/sample_convert.h"

#include <cmath>
#include <cstdint>
#include <limits>

namespace hsi::raster {
namespace {

/// Returns NaN for floats, the lowest value for signed integers, and 0 for unsigned integers.
NodataValue invented_nodata(SampleType type) {
    NodataValue nodata;
    switch (type) {
    case SampleType::float32:
    case SampleType::float64:
        nodata.real = std::numeric_limits<double>::quiet_NaN();
        break;
    case SampleType::int16:
        nodata.real = std::numeric_limits<int16_t>::min();
        break;
    case SampleType::int32:
        nodata.real = std::numeric_limits<int32_t>::min();
        break;
    case SampleType::int64:
        nodata.kind = SampleType::int64;
        nodata.whole = std::numeric_limits<int64_t>::min();
        break;
    case SampleType::uint64:
        nodata.kind = SampleType::uint64;
        break;
    default:
        if (type == SampleType::int8) nodata.real = std::numeric_limits<int8_t>::min();
        break;
    }
    return nodata;
}

} // namespace

std::optional<NodataValue> fitting(double value, SampleType type) {
    NodataValue nodata;
    nodata.real = value;
    if (std::isnan(value)) {
        if (type == SampleType::float32 || type == SampleType::float64) return nodata;
        return std::nullopt;
    }
    if (!match_in_type(nodata, type).active) return std::nullopt;
    return nodata;
}

std::optional<NodataValue> choose_nodata(const OutputOptions& options, const OutputSpec& spec,
                                         const SourceNodata& source, SampleType type) {
    if (options.nodata) return fitting(*options.nodata, type);
    if (spec.nodata) return fitting(*spec.nodata, type);
    const bool holes = spec.holes || source.masked || !source.values.empty();
    for (const NodataValue& value : source.values) {
        if (value.kind == SampleType::float64) {
            if (const auto nodata = fitting(value.real, type)) return nodata;
        } else if (match_in_type(value, type).active) {
            return value;
        }
    }
    return holes ? std::optional<NodataValue>(invented_nodata(type)) : std::nullopt;
}

} // namespace hsi::raster
