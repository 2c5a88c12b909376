// SPDX-License-Identifier: MIT
#pragma once

#include <gdal.h>

#include <cstdint>

namespace hsi::raster {

/// GDT_Int8, which GDAL has from 3.7 on; no file of an older one has it.
inline constexpr auto type_int8 = static_cast<GDALDataType>(14);

/// A nodata value without loss: 64-bit integer types do not fit a double.
struct NodataValue {
    GDALDataType kind = GDT_Float64; ///< GDT_Float64, GDT_Int64 or GDT_UInt64: which member counts
    double real = 0;
    int64_t whole = 0;
    uint64_t natural = 0;
    double as_double() const;
};

} // namespace hsi::raster
