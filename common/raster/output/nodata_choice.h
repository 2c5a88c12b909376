// SPDX-License-Identifier: MIT
// The nodata value of an output. It does not call GDAL: outputs in memory follow the same rules as files.
#pragma once

#include "raster/codec/nodata_value.h"
#include "raster/raster_sink.h"

#include <optional>
#include <vector>

namespace hsi::raster {

/// A value (-dstnodata) in the output's type; nullopt when it does not fit.
std::optional<NodataValue> fitting(double value, SampleType type);

/// The nodata of the scene that an output takes over from.
struct SourceNodata {
    bool masked = false;             ///< it has a mask in addition to nodata values
    std::vector<NodataValue> values; ///< of its bands, in their order
};

/// -dstnodata, the output's own, the first one of the source that fits, or a chosen one for an output with
/// holes; nullopt if every pixel has a value.
std::optional<NodataValue> choose_nodata(const OutputOptions& options, const OutputSpec& spec,
                                         const SourceNodata& source, SampleType type);

} // namespace hsi::raster
