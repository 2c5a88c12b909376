// SPDX-License-Identifier: MIT
// The nodata value of an output. Does not call GDAL, so outputs in memory follow the same rules as files.
#pragma once

#include "raster/codec/nodata_value.h"
#include "raster/raster_sink.h"

#include <optional>
#include <vector>

namespace hsi::raster {

/// Returns a value (-dstnodata) in the output's type; nullopt if the type cannot represent it.
std::optional<NodataValue> fitting(double value, SampleType type);

/// The nodata values of the scene, which an output inherits.
struct SourceNodata {
    bool masked = false;             ///< it has a mask in addition to nodata values
    std::vector<NodataValue> values; ///< of its bands, in their order
};

/// Returns the value of -dstnodata, the output's own value, the first value of the source that fits, or a
/// chosen value for an output with missing pixels; nullopt if every pixel has a value.
std::optional<NodataValue> choose_nodata(const OutputOptions& options, const OutputSpec& spec,
                                         const SourceNodata& source, SampleType type);

} // namespace hsi::raster
