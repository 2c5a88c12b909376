// SPDX-License-Identifier: MIT
// A nodata value of any sample type, without loss.
#pragma once

#include "core/sample_type.h"

#include <cstdint>

namespace hsi::raster {

/// A nodata value without loss, because a double cannot represent all 64-bit integers.
struct NodataValue {
    SampleType kind = SampleType::float64; ///< float64, int64 or uint64: the member in use
    double real = 0;
    int64_t whole = 0;
    uint64_t natural = 0;
    double as_double() const;
};

} // namespace hsi::raster
