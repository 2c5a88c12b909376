// SPDX-License-Identifier: MIT
// A nodata value of any sample type, which is stored exactly.
#pragma once

#include "core/sample_type.h"

#include <cstdint>

namespace hsi::raster {

/// Stores a nodata value of any sample type exactly. A double alone could not represent all 64-bit integers.
struct NodataValue {
    SampleType kind = SampleType::float64; ///< float64, int64 or uint64: the member in use
    double real = 0;
    int64_t whole = 0;
    uint64_t natural = 0;
    double as_double() const;
};

} // namespace hsi::raster
