// SPDX-License-Identifier: MIT
// What the rooms above common/raster, and the files of common/raster that are compiled for this library, too,
// call of GDAL's C functions: about types, conversions and configuration, without a line of GDAL's. The
// linker keeps these names inside of the library: another GDAL in the process has its own.
#include "raster/sample_convert.h"

#include <cpl_conv.h>
#include <gdal.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <type_traits>

namespace {

struct Type {
    int number;
    const char* name;
    int bytes;
};
constexpr Type types[] = {{1, "Byte", 1},   {2, "UInt16", 2},  {3, "Int16", 2},   {4, "UInt32", 4},
                          {5, "Int32", 4},  {6, "Float32", 4}, {7, "Float64", 8}, {12, "UInt64", 8},
                          {13, "Int64", 8}, {14, "Int8", 1}};

const Type* type_of(GDALDataType number) {
    const auto found = std::find_if(std::begin(types), std::end(types),
                                    [&](const Type& t) { return t.number == static_cast<int>(number); });
    return found == std::end(types) ? nullptr : found;
}

/// As GDAL rounds and clamps: half away from zero, to the ends of the type, NaN to 0.
template <class To>
To stored(float v) {
    if constexpr (std::is_floating_point_v<To>) {
        return static_cast<To>(v);
    } else {
        if (std::isnan(v)) return 0;
        // The first value beyond the type, which a float holds.
        const float end = std::ldexp(1.0f, std::numeric_limits<To>::digits);
        const float rounded = std::is_signed_v<To> && v < 0 ? v - 0.5f : v + 0.5f;
        if (rounded >= end) return std::numeric_limits<To>::max();
        if constexpr (std::is_signed_v<To>) {
            if (rounded <= -end) return std::numeric_limits<To>::min();
        } else {
            if (rounded <= 0) return 0;
        }
        return static_cast<To>(rounded);
    }
}

template <class To>
void store(const char* from, int from_step, char* to, int to_step, GPtrDiff_t count) {
    for (GPtrDiff_t i = 0; i < count; ++i) {
        float v;
        std::memcpy(&v, from + i * from_step, sizeof v);
        const To s = stored<To>(v);
        std::memcpy(to + i * to_step, &s, sizeof s);
    }
}

} // namespace

extern "C" {

const char* GDALGetDataTypeName(GDALDataType number) {
    const Type* const type = type_of(number);
    return type != nullptr ? type->name : nullptr;
}

int GDALGetDataTypeSizeBytes(GDALDataType number) {
    const Type* const type = type_of(number);
    return type != nullptr ? type->bytes : 0;
}

/// From floats alone: all that results are stored from.
void GDALCopyWords64(const void* from, GDALDataType, int from_step, void* to, GDALDataType to_type,
                     int to_step, GPtrDiff_t count) {
    const auto* const source = static_cast<const char*>(from);
    auto* const target = static_cast<char*>(to);
    switch (static_cast<int>(to_type)) {
    case 1:
        return store<uint8_t>(source, from_step, target, to_step, count);
    case 2:
        return store<uint16_t>(source, from_step, target, to_step, count);
    case 3:
        return store<int16_t>(source, from_step, target, to_step, count);
    case 4:
        return store<uint32_t>(source, from_step, target, to_step, count);
    case 5:
        return store<int32_t>(source, from_step, target, to_step, count);
    case 6:
        return store<float>(source, from_step, target, to_step, count);
    case 7:
        return store<double>(source, from_step, target, to_step, count);
    case 12:
        return store<uint64_t>(source, from_step, target, to_step, count);
    case 13:
        return store<int64_t>(source, from_step, target, to_step, count);
    case 14:
        return store<int8_t>(source, from_step, target, to_step, count);
    default:
        break;
    }
}

const char* GDALVersionInfo(const char*) { return "none"; }

const char* CPLGetConfigOption(const char* name, const char* otherwise) {
    const char* const text = std::getenv(name);
    return text != nullptr ? text : otherwise;
}

} // extern "C"
