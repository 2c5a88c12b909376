// SPDX-License-Identifier: MIT
// What stands for no value in an output. Asks GDAL nothing: outputs in memory follow the same rules as files.
#pragma once

#include "raster/codec/nodata_value.h"
#include "raster/raster_sink.h"

#include <optional>
#include <vector>

namespace hsi::raster {

/// A value (-dstnodata) in the output's type; none when it does not fit.
std::optional<NodataValue> fitting(double value, SampleType type);

/// Of the scene that an output takes over from.
struct SourceNodata {
    bool masked = false;             ///< it has a mask beside nodata values
    std::vector<NodataValue> values; ///< of its bands, in their order
};

/// -dstnodata, the output's own, the first one of the source that fits, or one that is made up for an output
/// with holes; none where every pixel has a value.
std::optional<NodataValue> choose_nodata(const OutputOptions& options, const OutputSpec& spec,
                                         const SourceNodata& source, SampleType type);

} // namespace hsi::raster
