// SPDX-License-Identifier: MIT
#pragma once

#include "core/sample_type.h"

#include <cstdint>

namespace hsi::raster {

/// A nodata value without loss: 64-bit integer types do not fit a double.
struct NodataValue {
    SampleType kind = SampleType::float64; ///< float64, int64 or uint64: which member counts
    double real = 0;
    int64_t whole = 0;
    uint64_t natural = 0;
    double as_double() const;
};

} // namespace hsi::raster
