// SPDX-License-Identifier: MIT
// Turning stored samples into floats, and turning pixel-interleaved data around.
#pragma once

#include "raster/scene_metadata.h"

#include <cstddef>
#include <cstdint>

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

/// values[i] = NaN where it equals nodata.
void blank(float* values, size_t count, float nodata);

/// rows[k][i] = src[i * pixel_stride + first + k]: pixels to bands. k < bands, i < pixels.
void pixels_to_rows(const float* src, size_t pixel_stride, size_t bands, size_t pixels, float* const* rows);
/// The reverse: dst[i * pixel_stride + k] = rows[k][i].
void rows_to_pixels(const float* const* rows, size_t bands, size_t pixels, float* dst, size_t pixel_stride);

/// Reverses the bytes of each sample.
void swap_bytes(void* samples, GDALDataType type, size_t count);

} // namespace hsi::raster
