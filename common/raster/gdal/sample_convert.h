// SPDX-License-Identifier: MIT
// Turning stored samples into floats, and turning pixel-interleaved data around.
#pragma once

#include "raster/gdal/nodata_value.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hsi::raster {

/// A nodata value in a file's own type.
struct NodataMatch {
    bool active = false;
    alignas(8) unsigned char bytes[8] = {}; ///< one value of the type, native byte order
    friend bool operator==(const NodataMatch& a, const NodataMatch& b);
};

/// Inactive when no value of `type` can equal it (out of range, fractional for an integer type, NaN).
NodataMatch match_in_type(const NodataValue& nodata, GDALDataType type);

/// True for types that every float tells apart: comparing after conversion is the same as before.
bool exact_in_float(GDALDataType type);
/// True for the types that to_floats() takes.
bool convertible(GDALDataType type);
/// Float16 of GDAL 3.11 and newer, which older ones read as Float32. GDAL's RasterIO makes Float32 of it.
bool is_half(GDALDataType type);

/// dst[i] = the i-th sample of `type`, `stride` bytes apart, at any alignment; NaN where it equals nodata.
/// `swapped`: the bytes are not in this machine's order. Rounds as GDAL does.
void to_floats(const void* src, ptrdiff_t stride, GDALDataType type, bool swapped, const NodataMatch& nodata,
               float* dst, size_t count);

/// What is delivered of a sample. A float tells 24 bits of a number; where that is not enough, a band is read
/// as several, each a part of its samples.
enum class SamplePart : uint8_t {
    value,     ///< the nearest float
    remainder, ///< what the float leaves of the number, to the nearest float
    rest,      ///< what both leave: the sum of the three is the number (stream/value_parts.h)
    low_bits,  ///< bits 0 to 21 of the sample as it is stored, as a whole number
    middle_bits,
    high_bits, ///< from 44 on
};
/// Parts of bits that hold a sample of the type: how many, and which.
int bit_parts(GDALDataType type);
std::vector<SamplePart> all_bits(GDALDataType type);

/// As to_floats(), for one part; NaN where the sample is nodata or NaN. `as`, of bits: the type whose samples
/// they are, which holds all values of `type` and is not Float32.
void to_part(SamplePart part, const void* src, ptrdiff_t stride, GDALDataType type, bool swapped,
             const NodataMatch& nodata, GDALDataType as, float* dst, size_t count);
/// A sample of `type` from its parts, `step` floats apart, none of which is NaN.
void from_bit_parts(const float* parts, ptrdiff_t step, GDALDataType type, void* sample);

/// values[i] = NaN where it equals nodata.
void blank(float* values, size_t count, float nodata);

/// rows[k][i] = src[i * pixel_stride + first + k]: pixels to bands. k < bands, i < pixels.
void pixels_to_rows(const float* src, size_t pixel_stride, size_t bands, size_t pixels, float* const* rows);
/// The reverse: dst[i * pixel_stride + k] = rows[k][i].
void rows_to_pixels(const float* const* rows, size_t bands, size_t pixels, float* dst, size_t pixel_stride);

/// Reverses the bytes of each sample.
void swap_bytes(void* samples, GDALDataType type, size_t count);

} // namespace hsi::raster
