// SPDX-License-Identifier: MIT
#pragma once

#include <gdal.h>

#include <cstdint>

namespace hsi::raster {

/// A nodata value without loss: 64-bit integer types do not fit a double.
struct NodataValue {
    GDALDataType kind = GDT_Float64; ///< GDT_Float64, GDT_Int64 or GDT_UInt64: which member counts
    double real = 0;
    int64_t whole = 0;
    uint64_t natural = 0;
    double as_double() const;
};

} // namespace hsi::raster
