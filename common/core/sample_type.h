// SPDX-License-Identifier: MIT
// The types of samples in files and in memory, and the conversions between them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace hsi {

/// The values equal those of GDAL (GDALDataType) and of hsi.h.
enum class SampleType : int32_t {
    unknown = 0,
    uint8 = 1,
    uint16 = 2,
    int16 = 3,
    uint32 = 4,
    int32 = 5,
    float32 = 6,
    float64 = 7,
    uint64 = 12,
    int64 = 13,
    int8 = 14,
    float16 = 15, ///< not used: drivers convert it to float32
};

/// Calls f with a zero of the C++ type that `type` stands for. Returns false without a call if `type` is not
/// one of the ten types from uint8 to int8.
template <class F>
bool with_type(SampleType type, F&& f) {
    switch (type) {
    case SampleType::uint8:
        f(uint8_t{});
        return true;
    case SampleType::uint16:
        f(uint16_t{});
        return true;
    case SampleType::int16:
        f(int16_t{});
        return true;
    case SampleType::uint32:
        f(uint32_t{});
        return true;
    case SampleType::int32:
        f(int32_t{});
        return true;
    case SampleType::uint64:
        f(uint64_t{});
        return true;
    case SampleType::int64:
        f(int64_t{});
        return true;
    case SampleType::float32:
        f(float{});
        return true;
    case SampleType::float64:
        f(double{});
        return true;
    case SampleType::int8:
        f(int8_t{});
        return true;
    default:
        return false;
    }
}

/// Returns true for the ten types that with_type() supports.
inline bool convertible(SampleType type) {
    return with_type(type, [](auto) {});
}

/// Returns the bytes of one sample; 0 for types that are not convertible().
inline size_t sample_bytes(SampleType type) {
    size_t bytes = 0;
    with_type(type, [&](auto sample) { bytes = sizeof sample; });
    return bytes;
}

/// Returns true if a float represents every value of the type exactly. Values of such types can be compared
/// as floats.
inline bool exact_in_float(SampleType type) {
    return type == SampleType::float32 || (convertible(type) && sample_bytes(type) <= 2);
}

/// Returns GDAL's name, "Byte" or "Float32"; null for types that are not convertible().
const char* name_of(SampleType type);
/// Returns the type with that name; unknown if no convertible() type has the name.
SampleType sample_type_of(const std::string& name);

/// Converts `count` packed samples between two convertible() types, as GDALCopyWords() does. Values beyond
/// the limits of an integer type become the nearer limit. Real numbers are first rounded to the nearest
/// integer, halves away from zero. A double beyond the range of float becomes infinite. The integer for NaN
/// is undefined. `from` and `to` are aligned for their types.
void convert_samples(const void* from, SampleType from_type, void* to, SampleType to_type, size_t count);

} // namespace hsi
